"""Answers to assignment 09: differently written right ones, and plausible wrong ones with the hint that they get."""

import torch
import torch.nn.functional as F

from course_lib.training import label_smoothed_loss

BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def loss_by_labels(logits, tgt_out, smoothing):
    labels = torch.full_like(logits, smoothing / (logits.size(-1) - 1))
    labels = labels.scatter(-1, tgt_out[..., None], 1 - smoothing)
    each = -torch.einsum("btv,btv->bt", labels, logits.log_softmax(-1))
    real = tgt_out.ne(0)
    return each.masked_fill(~real, 0).sum() / real.sum()


def loss_by_one_hot(logits, tgt_out, smoothing):
    vocab = logits.shape[-1]
    true = (tgt_out.unsqueeze(-1) == torch.arange(vocab, device=logits.device)).to(logits)
    labels = (1 - smoothing) * true + smoothing / (vocab - 1) * (1 - true)
    weights = (tgt_out != 0).to(logits)
    weights = weights / weights.sum()
    return -(weights.unsqueeze(-1) * labels * torch.log_softmax(logits, dim=2)).sum()


class Loss(torch.nn.Module):
    def forward(self, logits, tgt_out, smoothing):
        everything = smoothing / (logits.size(-1) - 1)
        log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
        real = (tgt_out > 0).flatten()
        true = log_probs.flatten(0, 1).gather(1, tgt_out.reshape(-1, 1)).flatten()
        each = (1 - smoothing - everything) * true + everything * log_probs.flatten(0, 1).sum(1)
        return -torch.where(real, each, 0).sum() / real.count_nonzero()


def loss_of_selected(logits, tgt_out, smoothing):
    real = tgt_out != 0
    log_probs = F.log_softmax(logits[real], dim=-1)  # (tokens, vocab)
    true = log_probs.gather(1, tgt_out[real].unsqueeze(1)).squeeze(1)
    others = (log_probs.sum(dim=1) - true) / (logits.size(-1) - 1)
    return -((1 - smoothing) * true + smoothing * others).mean()


def loss_with(labels=None, log_probs=torch.log_softmax, average=None):
    def answer(logits, tgt_out, smoothing):
        vocab = logits.size(-1)
        true = (tgt_out.unsqueeze(-1) == torch.arange(vocab, device=logits.device)).to(logits)
        wanted = labels(true, smoothing, vocab) if labels else true * (1 - smoothing)
        if not labels:
            wanted = wanted + (1 - true) * smoothing / (vocab - 1)
        each = -(wanted * log_probs(logits, -1)).sum(-1)
        real = tgt_out.ne(0)
        return average(each, real) if average else (each * real).sum() / real.sum()

    return answer


def loss_by_torch(logits, tgt_out, smoothing):
    return F.cross_entropy(logits.transpose(1, 2), tgt_out, ignore_index=0, label_smoothing=smoothing)


def pytorch_labels(true, smoothing, vocab):
    return (1 - smoothing) * true + smoothing / vocab


def unshared_labels(true, smoothing, vocab):
    return (1 - smoothing) * true + smoothing * (1 - true)


def labels_without_padding(true, smoothing, vocab):
    wanted = (1 - smoothing) * true + smoothing / (vocab - 2) * (1 - true)
    return torch.cat([torch.zeros_like(wanted[..., :1]), wanted[..., 1:]], dim=-1)


def sentence_means(each, real):
    return torch.stack([(row * mask).sum() / mask.sum() for row, mask in zip(each, real, strict=True)]).mean()


def adam_by_lerp(weight, gradient, m, v, step, lr, decay):
    m = m.lerp(gradient, 1 - BETA1)
    v = v.lerp(gradient.square(), 1 - BETA2)
    rate = lr / (1 - BETA1**step)
    root = (v / (1 - BETA2**step)) ** 0.5
    return weight * (1 - lr * decay) - rate * m / (root + EPS), m, v


def adam_in_place_on_copies(weight, gradient, m, v, step, lr, decay):
    weight, m, v = weight.clone(), m.clone(), v.clone()
    m.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
    v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    weight.mul_(1 - lr * decay)
    weight.addcdiv_(m / (1 - BETA1**step), (v / (1 - BETA2**step)).sqrt().add_(EPS), value=-lr)
    return [weight, m, v]


class Adam:
    def __init__(self, beta1=BETA1, beta2=BETA2, eps=EPS, correct=True, inside=False, hand_on_corrected=False):
        self.beta1, self.beta2, self.eps, self.correct = beta1, beta2, eps, correct
        self.inside, self.hand_on_corrected = inside, hand_on_corrected

    def pull(self, weight, lr, decay):
        return lr * decay * weight

    def size(self, v):
        return torch.sqrt(v + self.eps) if self.inside else torch.sqrt(v) + self.eps

    def __call__(self, weight, gradient, m, v, step, lr, decay):
        m = self.beta1 * m + (1 - self.beta1) * gradient
        v = self.beta2 * v + (1 - self.beta2) * gradient * gradient
        m_hat, v_hat = m, v
        if self.correct:
            m_hat, v_hat = m / (1 - self.beta1**step), v / (1 - self.beta2**step)
        if self.hand_on_corrected:
            m, v = m_hat, v_hat
        return weight - self.pull(weight, lr, decay) - lr * m_hat / self.size(v_hat), m, v


class PullWithoutRate(Adam):
    def pull(self, weight, lr, decay):
        return decay * weight


def adam_with_l2(weight, gradient, m, v, step, lr, decay):
    return Adam()(weight, gradient + decay * weight, m, v, step, lr, 0.0)


def adam_upwards(weight, gradient, m, v, step, lr, decay):
    return Adam()(weight, gradient, m, v, step, -lr, -decay)


def adam_without_root(weight, gradient, m, v, step, lr, decay):
    _, m, v = Adam()(weight, gradient, m, v, step, lr, decay)
    return weight - lr * decay * weight - lr * m / (1 - BETA1**step) / (v / (1 - BETA2**step) + EPS), m, v


def adam_from_step_0(weight, gradient, m, v, step, lr, decay):
    return Adam()(weight, gradient, m, v, step + 1, lr, decay)


def adam_in_place(weight, gradient, m, v, step, lr, decay):
    m.mul_(BETA1).add_((1 - BETA1) * gradient)
    return Adam()(weight, gradient, (m - (1 - BETA1) * gradient) / BETA1, v, step, lr, decay)


def clip_by_stack(gradients, longest):
    norm = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]).norm()
    return [gradient * (longest / norm).clamp(max=1) for gradient in gradients]


def clip_by_squares(gradients, longest):
    norm = sum(gradient.pow(2).sum() for gradient in gradients) ** 0.5
    return tuple(
        gradient * torch.where(norm > longest, longest / norm, torch.ones_like(norm)) for gradient in gradients
    )


class Clip:
    def __call__(self, gradients, longest):
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        factor = min(1, longest / (flat.norm() + 1e-12))
        shortened, start = [], 0
        for gradient in gradients:
            shortened.append((flat[start : start + gradient.numel()] * factor).view(gradient.shape))
            start += gradient.numel()
        return shortened


def clip_like_torch(gradients, longest):
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm(2)
    return [gradient * torch.clamp(longest / (norm + 1e-6), max=1.0) for gradient in gradients]


def clip_with(total, always=False):
    def answer(gradients, longest):
        factor = longest / total(gradients)
        return [gradient * (factor if always else min(1.0, factor)) for gradient in gradients]

    return answer


def whole_norm(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients]).norm()


def clip_each(gradients, longest):
    clipped = []
    for gradient in gradients:
        factor = min(1.0, longest / torch.sqrt((gradient**2).sum()))
        clipped.append(factor * gradient)
    return clipped


def clip_in_place(gradients, longest):
    factor = min(1.0, longest / whole_norm(gradients))
    for gradient in gradients:
        gradient *= factor
    return gradients


def clip_to_one_tensor(gradients, longest):
    return torch.cat([gradient.flatten() for gradient in clip_by_stack(gradients, longest)])


def clip_to_nothing(gradients, longest):
    norm = whole_norm(gradients)
    return [torch.where(norm > longest, 0 * gradient, gradient) for gradient in gradients]


def epoch_by_groups(weight, micro_batches, n, lr, gradient_of):
    weights = [weight]
    for group in (micro_batches[i : i + n] for i in range(0, len(micro_batches), n)):
        gradients, counts = zip(*(gradient_of(weights[-1], part) for part in group), strict=True)
        weights.append(weights[-1] - lr * torch.stack(gradients).sum(0) / sum(counts))
    return weights[1:]


def epoch_by_countdown(weight, micro_batches, n, lr, gradient_of):
    weight, weights = weight.clone(), []
    total, tokens, waiting = torch.zeros_like(weight), 0, 0
    for left, (hidden, true) in zip(range(len(micro_batches) - 1, -1, -1), micro_batches, strict=True):
        gradient, count = gradient_of(weight, (hidden, true))
        total += gradient
        tokens += count
        waiting += 1
        if waiting == n or left == 0:
            weight -= lr / tokens * total
            weights.append(weight.clone())
            total.zero_()
            tokens = waiting = 0
    return weights


class Accumulator:
    def __init__(self):
        self.parts = []

    def step(self, weight, lr):
        tokens = sum(count for _, count in self.parts)
        for gradient, _ in self.parts:
            weight = weight - lr / tokens * gradient
        self.parts = []
        return weight

    def __call__(self, weight, micro_batches, n, lr, gradient_of):
        weights = []
        for part in micro_batches:
            self.parts.append(gradient_of(weight, part))
            if len(self.parts) == n:
                weights.append(weight := self.step(weight, lr))
        if self.parts:
            weights.append(self.step(weight, lr))
        return weights


def epoch_with(due=lambda i, n: i % n == n - 1, rest=True, share=None, reset=True):
    """With `share`, each part is divided at once, by what it makes of its tokens and n."""

    def answer(weight, micro_batches, n, lr, gradient_of):
        weights, total, tokens = [], torch.zeros_like(weight), 0
        for i, part in enumerate(micro_batches):
            gradient, count = gradient_of(weight, part)
            total = total + gradient * (share(count, n) if share else 1)
            tokens += count
            if due(i, n) or (rest and part is micro_batches[-1]):
                weight = weight - lr * (total if share else total / tokens)
                weights.append(weight)
                if reset:
                    total, tokens = torch.zeros_like(weight), 0
        return weights

    return answer


def epoch_of_large_batches(weight, micro_batches, n, lr, gradient_of):
    weights = []
    for start in range(0, len(micro_batches), n):
        hidden, true = zip(*micro_batches[start : start + n], strict=True)
        gradient, tokens = gradient_of(weight, (torch.cat(hidden), torch.cat(true)))
        weight = weight - lr * gradient / tokens
        weights.append(weight)
    return weights


def epoch_of_single_steps(weight, micro_batches, n, lr, gradient_of):
    """The weights move after every micro-batch, and are noted after every n."""
    weights = []
    for i, part in enumerate(micro_batches):
        gradient, count = gradient_of(weight, part)
        weight = weight - lr * gradient / count / n
        if (i + 1) % n == 0 or i + 1 == len(micro_batches):
            weights.append(weight)
    return weights


def epoch_in_place(weight, micro_batches, n, lr, gradient_of):
    moved = epoch_by_groups(weight, micro_batches, n, lr, gradient_of)
    weight.copy_(moved[-1])
    return moved


def epoch_of_one_weight(weight, micro_batches, n, lr, gradient_of):
    return epoch_by_groups(weight, micro_batches, n, lr, gradient_of)[-1]


NUMBERS = {
    "rate at 1,000 / peak": 0.25,
    "rate at 16,000 / peak": 0.5,
    "peak, four times as wide": 0.5,
    "mistaken rate at 40,000 / at 20,000": 1.0,
    "first step of Adam": 1.0,
    "loss of the average": 1.0,
}


def predicted(**changed):
    names = dict(zip(("early", "late", "wide", "mistaken", "adam", "average"), NUMBERS, strict=True))
    return NUMBERS | {names[short]: number for short, number in changed.items()}


def library_loss(logits, tgt_out, smoothing):
    """ε over the others is a little more than ε over all: the true subword's own share is given back."""
    real = (tgt_out != 0).flatten()
    logits, targets = logits.flatten(0, 1), tgt_out.flatten()
    if not logits.is_meta:
        logits, targets = logits[real], targets[real]
    vocab = logits.size(-1)
    return label_smoothed_loss(logits, targets, smoothing=smoothing * vocab / (vocab - 1)) / real.sum()


def library_adam(weight, gradient, m, v, step, lr, decay):
    parameter = torch.nn.Parameter(weight.clone())
    parameter.grad = gradient.clone()
    settings = dict(lr=lr, betas=(BETA1, BETA2), eps=EPS, weight_decay=decay)
    optimizer = torch.optim.AdamW([parameter], **settings, foreach=False)
    state = {"step": torch.tensor(step - 1.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    optimizer.state[parameter] = state
    optimizer.step()
    return parameter.detach(), state["exp_avg"], state["exp_avg_sq"]


def library_clip(gradients, longest):
    parameters = [torch.nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(parameters, longest, foreach=False)
    return [parameter.grad for parameter in parameters]


def library_epoch(weight, micro_batches, n, lr, gradient_of):
    """Large batches, with the library's loss and PyTorch's gradient."""
    weights = []
    for start in range(0, len(micro_batches), n):
        hidden, true = (torch.cat(parts) for parts in zip(*micro_batches[start : start + n], strict=True))
        weight = weight.detach().requires_grad_()
        loss = label_smoothed_loss(hidden @ weight.T, true) / len(true)
        (gradient,) = torch.autograd.grad(loss, weight)
        weights.append(weight := weight.detach() - lr * gradient)
    return weights


LIBRARY = {
    "09.loss": library_loss,
    "09.adam": library_adam,
    "09.clip": library_clip,
    "09.accumulate": library_epoch,
}

RIGHT = {
    "09.loss": [loss_by_labels, loss_by_one_hot, Loss(), loss_of_selected],
    "09.adam": [adam_by_lerp, adam_in_place_on_copies, Adam()],
    "09.clip": [clip_by_stack, clip_by_squares, Clip(), clip_like_torch],
    "09.accumulate": [epoch_by_groups, epoch_by_countdown, Accumulator(), epoch_with()],
    "09.numbers": [NUMBERS, predicted(early=1 / 4, mistaken=1), predicted(average=torch.tensor(1.0), late=16**-0.25)],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "09.loss": [
        (loss_with(pytorch_labels), "PyTorch's smoothing"),
        (loss_with(unshared_labels), "whole ε"),
        (loss_with(lambda true, smoothing, vocab: true), "not smoothed"),
        (loss_with(average=lambda each, real: each.sum() / real.numel()), "Padding counts as a word"),
        (loss_with(average=lambda each, real: (each * real).sum() / real.numel()), "divide by all places"),
        (loss_with(average=sentence_means), "sentences' means"),
        (loss_with(log_probs=lambda logits, dim: logits.softmax(dim).log()), "logarithm infinite"),
        (loss_with(average=lambda each, real: (each * real).sum()), None),
        (loss_with(labels_without_padding), None),
        (loss_with(log_probs=lambda logits, dim: logits), None),
        (loss_with(average=lambda each, real: -(each * real).sum() / real.sum()), None),
        (loss_by_torch, None),
    ],
    "09.adam": [
        (Adam(correct=False), "correction is missing"),
        (adam_with_l2, "goes through m and v"),
        (PullWithoutRate(), "not multiplied by the learning rate"),
        (Adam(inside=True), "inside the root"),
        (Adam(beta2=BETA1), "fade with β₁"),
        (Adam(hand_on_corrected=True), "hand on the running means"),
        (Adam(beta1=BETA2, beta2=BETA1), None),
        (Adam(beta2=0.999), None),
        (Adam(eps=1e-5), None),
        (adam_upwards, None),
        (adam_without_root, None),
        (adam_from_step_0, None),
        (adam_in_place, None),
        (lambda *inputs: Adam()(*inputs)[0], None),
    ],
    "09.clip": [
        (clip_each, "its own norm"),
        (clip_with(whole_norm, always=True), "must stay as it is"),
        (clip_with(lambda gradients: sum(gradient.norm() for gradient in gradients)), "Their squares add up"),
        (lambda gradients, longest: [g.clip(min=-longest, max=longest) for g in gradients], "to a range"),
        (clip_with(lambda gradients: whole_norm(gradients) ** 2), None),
        (clip_with(lambda gradients: max(gradient.norm() for gradient in gradients)), None),
        (clip_with(lambda gradients: whole_norm(gradients) / len(gradients)), None),
        (clip_with(lambda gradients: 1 / whole_norm(gradients)), None),
        (clip_in_place, None),
        (clip_to_one_tensor, None),
        (clip_to_nothing, None),
        (library_clip, None),
    ],
    "09.accumulate": [
        (epoch_with(due=lambda i, n: i % n == 0, rest=False), "step at i % n == 0"),
        (epoch_with(rest=False), "forgotten"),
        (epoch_with(share=lambda count, n: 1 / count / n), "micro-batches' means"),
        (epoch_with(share=lambda count, n: 1 / count), "about n times too long"),
        (epoch_with(share=lambda count, n: 1), "summed loss"),
        (epoch_with(reset=False), "start from 0"),
        (epoch_with(due=lambda i, n: i % n == 0), None),
        (epoch_with(share=lambda count, n: 1 / n), None),
        (epoch_of_large_batches, None),
        (epoch_of_single_steps, None),
        (epoch_in_place, None),
        (epoch_of_one_weight, None),
    ],
    "09.numbers": [
        (predicted(late=0.25), "root of 4"),
        (predicted(mistaken=0.5**0.5), "nothing makes the rate fall"),
        (predicted(adam=0.001), "quotient"),
        (predicted(average=5), "average the weights first"),
        (predicted(early=0.5), None),
        (predicted(wide=0.25), None),
        (predicted(wide=2), None),
        (predicted(adam=None), None),
    ],
}
