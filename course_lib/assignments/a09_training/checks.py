"""Assignment 09: one training step, from the smoothed loss to the weights."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checks import Exercise, Variant, value

PAD_ID = 0
BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


# 09.loss


def smoothed_loss(logits: Tensor, tgt_out: Tensor, smoothing: float) -> Tensor:
    """Mean over real tokens of the cross-entropy to the smoothed labels, one subword after the other."""
    log_probs = logits.log_softmax(dim=-1)
    real = tgt_out != PAD_ID
    total = logits.new_zeros(())
    for subword in range(logits.size(-1)):
        log_prob = log_probs[:, :, subword]  # (batch, tgt_len)
        if_true = -(1 - smoothing) * log_prob
        if_other = -smoothing / (logits.size(-1) - 1) * log_prob
        total += (torch.where(tgt_out == subword, if_true, if_other) * real).sum()
    return total / real.sum()


def _logits(generator: torch.Generator) -> list[tuple]:
    """Sentences of these lengths, alone and with others; the fourth case has logits hundreds apart."""
    shapes = [((3,), 4, 6, 0.1, 1), ((5, 2), 5, 7, 0.1, 1), ((3, 1, 2, 3), 3, 5, 0.0, 1), ((2, 6), 6, 8, 0.2, 200)]
    cases = []
    for lengths, tgt_len, vocab, smoothing, size in [*shapes, ((5, 3, 1), 5, 9, 0.3, 1)]:
        tgt_out = torch.randint(1, vocab, (len(lengths), tgt_len), generator=generator)
        for row, length in enumerate(lengths):
            tgt_out[row, length:] = PAD_ID
        logits = size * torch.randn(len(lengths), tgt_len, vocab, generator=generator)
        cases.append((logits, tgt_out, smoothing))
    return cases


def _over_real(each: Tensor, real: Tensor) -> Tensor:
    return (each * real).sum() / real.sum()


def _over_sentences(each: Tensor, real: Tensor) -> Tensor:
    return ((each * real).sum(dim=1) / real.sum(dim=1)).mean()


def _loss(logits, tgt_out, smoothing, *, log_softmax=F.log_softmax, over_all=False, shared=True, mean=_over_real):
    """The loss with ε spread over all subwords, or given to each of the others whole; and with another mean."""
    log_probs = log_softmax(logits, dim=-1)
    true = log_probs.gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)
    rest = log_probs.sum(dim=-1) - (0 if over_all else true)
    shares = log_probs.size(-1) - (0 if over_all else 1) if shared else 1
    return mean(-(1 - smoothing) * true - smoothing * rest / shares, tgt_out != PAD_ID)


LOSS = Exercise(
    "09.loss",
    smoothed_loss,
    _logits,
    (
        Variant(
            lambda *inputs: _loss(*inputs, over_all=True),
            "That is PyTorch's smoothing. Here the true subword gets no share of ε; the others have it to themselves.",
        ),
        Variant(
            lambda *inputs: _loss(*inputs, shared=False),
            "Each of the other subwords gets the whole ε; they have to share it.",
        ),
        Variant(
            lambda logits, tgt_out, smoothing: _loss(logits, tgt_out, 0.0),
            "This is the plain loss; the labels are not smoothed.",
        ),
        Variant(
            lambda *inputs: _loss(*inputs, mean=lambda each, real: each.mean()),
            "Padding counts as a word to be predicted. Only real tokens count, in the sum and in the number.",
        ),
        Variant(
            lambda *inputs: _loss(*inputs, mean=lambda each, real: (each * real).mean()),
            "Padding is left out of the sum, but you divide by all places.",
        ),
        Variant(
            lambda *inputs: _loss(*inputs, mean=_over_sentences),
            "This is the mean of the sentences' means; each token must weigh the same.",
        ),
        Variant(
            lambda *inputs: _loss(*inputs, log_softmax=lambda logits, dim: F.softmax(logits, dim).log()),
            "A tiny probability becomes 0, and its logarithm infinite. Take log_softmax, which does both at once.",
        ),
    ),
    forbidden=(F.cross_entropy, F.nll_loss, F.kl_div),
    loops=False,
)


# 09.adam


def adam_step(
    weight: Tensor, gradient: Tensor, m: Tensor, v: Tensor, step: int, lr: float, decay: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The new weight, m and v, one number after the other."""
    moved, means, squares = [], [], []
    numbers = (tensor.flatten().unbind() for tensor in (weight, gradient, m, v))
    for w, g, old_m, old_v in zip(*numbers, strict=True):
        new_m = BETA1 * old_m + (1 - BETA1) * g
        new_v = BETA2 * old_v + (1 - BETA2) * g * g
        move = new_m / (1 - BETA1**step) / (torch.sqrt(new_v / (1 - BETA2**step)) + EPS)
        moved.append(w - lr * decay * w - lr * move)
        means.append(new_m)
        squares.append(new_v)
    return tuple(torch.stack(new).view(weight.shape) for new in (moved, means, squares))


def _moments(generator: torch.Generator) -> list[tuple]:
    """Tensors of these shapes at these steps, with gradients of these sizes; m and v are as earlier ones left them."""
    settings = [((3,), 1, 0.1, 0.0, 1.0), ((2, 4), 1, 0.05, 0.5, 1e-6), ((4, 3), 2, 0.1, 0.0, 1e3)]
    settings += [((1, 5), 10, 0.2, 0.3, 1e-6), ((2, 3, 2), 7, 0.1, 0.5, 1.0)]
    cases = []
    for shape, step, lr, decay, size in settings:
        weight, gradient, m, v = torch.randn(4, *shape, generator=generator)
        started = float(step > 1)
        m, v = started * size * m * (1 - BETA1**step), started * (size * v) ** 2 * (1 - BETA2**step)
        cases.append((weight, size * gradient, m, v, step, lr, decay))
    return cases


def _adam(weight, gradient, m, v, step, lr, decay, *, root=0.0, added=EPS, late=1, beta2=BETA2, l2=0.0, share=1.0):
    """A step with ε inside the root or after it, without correction, with another β₂, L2 decay, or decay without lr."""
    gradient = gradient + l2 * decay * weight
    m, v = torch.lerp(gradient, m, BETA1), torch.lerp(gradient**2, v, beta2)
    move = m / (1 - late * BETA1**step) / ((v / (1 - late * beta2**step) + root).sqrt() + added)
    return weight - (1 - l2) * decay * lr**share * weight - lr * move, m, v


def _corrected_state(weight, gradient, m, v, step, lr, decay):
    weight, m, v = _adam(weight, gradient, m, v, step, lr, decay)
    return weight, m / (1 - BETA1**step), v / (1 - BETA2**step)


ADAM = Exercise(
    "09.adam",
    adam_step,
    _moments,
    (
        Variant(
            lambda *inputs: _adam(*inputs, late=0),
            "The correction is missing: m and v start at 0 and are too small in the first steps.",
        ),
        Variant(
            lambda *inputs: _adam(*inputs, l2=1.0),
            "Your decay goes through m and v, as part of the gradient; decoupled, it goes past them to the weight.",
        ),
        Variant(lambda *inputs: _adam(*inputs, share=0.0), "The decay is not multiplied by the learning rate."),
        Variant(
            lambda *inputs: _adam(*inputs, root=EPS, added=0.0),
            "Your ε is inside the root, where it is large beside the square of a small gradient.",
        ),
        Variant(
            lambda *inputs: _adam(*inputs, beta2=BETA1),
            "Both of your means fade with β₁; that of the squares has β₂.",
        ),
        Variant(
            _corrected_state,
            "You return the corrected m and v. The next step would correct them again: hand on the running means.",
        ),
    ),
    forbidden=(torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam),
)


# 09.clip


def clip(gradients: list[Tensor], longest: float) -> list[Tensor]:
    """All tensors by one factor: the squares of all numbers of the model make one norm."""
    squares = sum((gradient * gradient).sum() for gradient in gradients)
    factor = (longest / torch.sqrt(squares)).clamp(max=1.0)  # longest / 0 is infinite: nothing to shorten
    return [gradient * factor for gradient in gradients]


def _gradients(generator: torch.Generator) -> list[tuple]:
    """One tensor, several, all of them 0; long ones and, the last, short ones."""
    settings = [(((2, 3),), 3.0, 1.0), (((4,), (3, 5), (1, 2)), 5.0, 0.5), (((2, 2), (6,)), 0.0, 1.0)]
    settings += [(((3,), (2, 4), (4, 1, 2), (1,)), 2.0, 2.0), (((5,), (3, 3), (2,)), 0.1, 3.0)]
    return [
        ([size * torch.randn(shape, generator=generator) for shape in shapes], longest)
        for shapes, size, longest in settings
    ]


def _norms(gradients: list[Tensor]) -> Tensor:
    return torch.stack([gradient.norm() for gradient in gradients])


CLIP = Exercise(
    "09.clip",
    clip,
    _gradients,
    (
        Variant(
            lambda gradients, longest: [g * min(1.0, longest / g.norm()) for g in gradients],
            "Each tensor is still clipped by its own norm, so they change their proportions. "
            "One norm, of all numbers of the model, makes one factor for all.",
        ),
        Variant(
            lambda gradients, longest: [g * longest / _norms(gradients).norm() for g in gradients],
            "You give every gradient the largest norm; one that is short enough must stay as it is.",
        ),
        Variant(
            lambda gradients, longest: [g * min(1.0, longest / _norms(gradients).sum()) for g in gradients],
            "You add the norms of the tensors. Their squares add up, to the square of the whole norm.",
        ),
        Variant(
            lambda gradients, longest: [gradient.clamp(-longest, longest) for gradient in gradients],
            "You cut each number to a range, which changes the direction of the gradient.",
        ),
    ),
    forbidden=(nn.utils.clip_grad_norm_,),
)


# 09.accumulate


def epoch(weight: Tensor, micro_batches: list[tuple], n: int, lr: float, gradient_of) -> list[Tensor]:
    """The weights after each step; a step sums the gradients and the tokens of n micro-batches."""
    weights = []
    for start in range(0, len(micro_batches), n):
        parts = [gradient_of(weight, micro_batch) for micro_batch in micro_batches[start : start + n]]
        tokens = sum(count for _, count in parts)
        weight = weight - lr * sum(gradient for gradient, _ in parts) / tokens
        weights.append(weight)
    return weights


def _micro_batches(generator: torch.Generator) -> list[tuple]:
    """Micro-batches with so many tokens each, n of them a step: exactly, with a rest, fewer than n, one by one."""
    settings = [((4, 2), 2, 3, 4), ((3, 1, 5, 2, 4), 2, 4, 5), ((1, 4, 2), 5, 3, 6), ((2, 5, 3, 1), 1, 5, 4)]
    return [
        (
            torch.randn(vocab, d_model, generator=generator),
            [torch.randn(count, d_model, generator=generator) for count in counts],
            [torch.randint(vocab, (count,), generator=generator) for count in counts],
            n,
            0.5,
        )
        for counts, n, d_model, vocab in [*settings, ((3, 1, 2, 6, 2, 1, 4), 3, 4, 6)]
    ]


def _train(answer, weight, hidden, true, n, lr):
    """Ask for the weights of an epoch, with a gradient that is taken of one micro-batch at a time."""

    def gradient_of(weight, micro_batch):
        vectors, ids = micro_batch
        if len(ids) > max(map(len, true)):
            raise MemoryError("only one micro-batch at a time fits into memory")
        wanted = ids.unsqueeze(1) == torch.arange(weight.size(0), device=ids.device)  # (tokens, vocab)
        return ((vectors @ weight.T).softmax(dim=-1) - wanted.to(vectors)).T @ vectors, len(ids)

    return answer(weight, list(zip(hidden, true, strict=True)), n, lr, gradient_of)


def _loop(weight, micro_batches, n, lr, gradient_of, *, remainder=-1, rest=True, clear=True, scale=None):
    """An epoch that steps at other places, forgets the rest or clears nothing, or divides each part by a scale."""
    weights, total, tokens = [], 0, 0
    for i, micro_batch in enumerate(micro_batches):
        gradient, count = gradient_of(weight, micro_batch)
        total, tokens = total + (gradient / scale(count, n) if scale else gradient), tokens + count
        if i % n == remainder % n or (rest and i + 1 == len(micro_batches)):
            weight = weight - lr * total / (1 if scale else tokens)
            weights.append(weight)
            total, tokens = (0, 0) if clear else (total, tokens)
    return weights


ACCUMULATE = Exercise(
    "09.accumulate",
    epoch,
    _micro_batches,
    (
        Variant(
            lambda *inputs: _loop(*inputs, remainder=0, rest=False),
            "You step at i % n == 0: the very first micro-batch makes a step of its own, and the last ones make none.",
        ),
        Variant(
            lambda *inputs: _loop(*inputs, rest=False),
            "The last micro-batches are forgotten where they are fewer than n; they make a step, too.",
        ),
        Variant(
            lambda *inputs: _loop(*inputs, scale=lambda count, n: count * n),
            "You take the mean of the micro-batches' means; each token must weigh the same.",
        ),
        Variant(
            lambda *inputs: _loop(*inputs, scale=lambda count, n: count),
            "You add the means of the micro-batches, so the gradient of a step is about n times too long.",
        ),
        Variant(
            lambda *inputs: _loop(*inputs, scale=lambda count, n: 1),
            "You step by the gradient of the summed loss; divide by the tokens of the step.",
        ),
        Variant(
            lambda *inputs: _loop(*inputs, clear=False),
            "After a step, what was added up for it is still there; the next step has to start from 0.",
        ),
    ),
    ask=_train,
)


# 09.numbers

NUMBERS = {
    "rate at 1,000 / peak": 0.25,
    "rate at 16,000 / peak": 0.5,
    "peak, four times as wide": 0.5,
    "mistaken rate at 40,000 / at 20,000": 1.0,
    "first step of Adam": 1.0,
    "loss of the average": 1.0,
}

PREDICT = Exercise(
    "09.numbers",
    NUMBERS,
    variants=(
        Variant(
            NUMBERS | {"rate at 16,000 / peak": 0.25},
            "After the peak the rate falls with the root of the step: the root of 4 is 2.",
        ),
        Variant(
            NUMBERS | {"mistaken rate at 40,000 / at 20,000": math.sqrt(0.5)},
            "With the mistake there is no step in the first term: nothing makes the rate fall.",
        ),
        Variant(
            NUMBERS | {"first step of Adam": 0.001},
            "After one step m and √v, both corrected, are as large as the gradient. What is their quotient?",
        ),
        Variant(
            NUMBERS | {"loss of the average": 5.0},
            "This is the average of the losses; average the weights first.",
        ),
    ),
    ask=value,
)

EXERCISES = (LOSS, ADAM, CLIP, ACCUMULATE, PREDICT)
