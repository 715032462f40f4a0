"""Checks of assignment 09: one training step, from the smoothed loss to the weights."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

PAD_ID = 0
BETA1, BETA2 = 0.9, 0.98
MEAN = "(each * real).sum() / real.sum()"
NORM = "torch.cat([gradient.flatten() for gradient in gradients]).norm()"
REST = " or i + 1 == len(micro_batches)"


def logits_and_targets(generator):
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


def weights_and_moments(generator):
    """Tensors of these shapes at these steps, with gradients of these sizes; m and v are as earlier ones left them."""
    settings = [((3,), 1, 0.1, 0.3, 1.0), ((2, 4), 1, 0.05, 0.5, 1e-6), ((4, 3), 2, 0.1, 0.0, 1e3)]
    settings += [((1, 5), 10, 0.2, 0.3, 1e-6), ((2, 3, 2), 7, 0.1, 0.5, 1.0)]
    cases = []
    for shape, step, lr, decay, size in settings:
        weight, gradient, m, v = torch.randn(4, *shape, generator=generator)
        started = float(step > 1)
        m, v = started * size * m * (1 - BETA1**step), started * (size * v) ** 2 * (1 - BETA2**step)
        cases.append((weight, size * gradient, m, v, step, lr, decay))
    return cases


def gradients_of_models(generator):
    """One tensor, several, all of them 0; long ones, some on one side of 1 with their limit, and short ones."""
    settings = [(((2, 3),), 3.0, 1.0), (((4,), (3, 5), (1, 2)), 5.0, 0.5), (((2, 2), (6,)), 0.0, 1.0)]
    settings += [(((5,), (3, 1)), 0.6, 9.0), (((2,), (2, 2)), 0.2, 0.1)]
    settings += [(((3,), (2, 4), (4, 1, 2), (1,)), 2.0, 2.0), (((5,), (3, 3), (2,)), 0.1, 3.0)]
    return [([size * torch.randn(one, generator=generator) for one in shapes], top) for shapes, size, top in settings]


def micro_batches(generator):
    """Micro-batches with so many tokens each, n of them a step: exactly, with a rest, fewer than n, one by one."""
    settings = [((4, 2), 2, 3, 4), ((3, 1, 5, 2, 4), 2, 4, 5), ((1, 4, 2), 5, 3, 6), ((2, 5, 3, 1), 1, 5, 4)]
    cases = []
    for counts, n, d_model, vocab in [*settings, ((3, 1, 2, 6, 2, 1, 4), 3, 4, 6)]:
        weight = torch.randn(vocab, d_model, generator=generator)
        hidden = [torch.randn(count, d_model, generator=generator) for count in counts]
        true = [torch.randint(vocab, (count,), generator=generator) for count in counts]
        cases.append((weight, hidden, true, n, 0.5))
    return cases


def train(answer, weight, hidden, true, n, lr):
    """Asks for the weights of an epoch, with a gradient that is taken of one micro-batch at a time."""

    def gradient_of(weight, micro_batch):
        vectors, ids = micro_batch
        if len(ids) > max(map(len, true)):
            raise MemoryError("only one micro-batch at a time fits into memory")
        wanted = ids.unsqueeze(1) == torch.arange(weight.size(0), device=ids.device)  # (tokens, vocab)
        return ((vectors @ weight.T).softmax(dim=-1) - wanted.to(vectors)).T @ vectors, len(ids)

    return answer(weight, list(zip(hidden, true, strict=True)), n, lr, gradient_of)


EXERCISES = (
    Exercise(
        "09.loss",
        logits_and_targets,
        {
            "That is PyTorch's smoothing. "
            "Here the true subword gets no share of ε; the others have it to themselves.":
                Edit("(log_probs.sum(dim=-1) - true) / (logits.size(-1) - 1)", "log_probs.mean(dim=-1)"),
            "Each of the other subwords gets the whole ε; they have to share it.":
                Edit(" / (logits.size(-1) - 1)", ""),
            "This is the plain loss; the labels are not smoothed.":
                Edit("-(1 - smoothing) * true - smoothing * others", "-true"),
            "Padding counts as a word to be predicted. Only real tokens count, in the sum and in the number.":
                Edit(MEAN, "each.mean()"),
            "Padding is left out of the sum, but you divide by all places.": Edit(MEAN, "(each * real).mean()"),
            "This is the mean of the sentences' means; each token must weigh the same.":
                Edit(MEAN, "((each * real).sum(dim=1) / real.sum(dim=1)).mean()"),
            "A tiny probability becomes 0, and its logarithm infinite. Take log_softmax, which does both at once.":
                Edit("log_softmax(dim=-1)", "softmax(dim=-1).log()"),
            "This is a sum; the mean over real tokens is asked for.": Edit(" / real.sum()", ""),
            "You leave out <pad> when ε is shared. Here all other subwords get a share.":
                Edit("- true) / (logits.size(-1) - 1)", "- true - log_probs[..., PAD_ID]) / (logits.size(-1) - 2)"),
            "These are logits; the loss is made of log-probabilities.": Edit("logits.log_softmax(dim=-1)", "logits"),
            "The sign is wrong: the loss is what a probability of less than 1 costs, and positive.":
                Edit("return ", "return -"),
        },
        forbidden=(F.cross_entropy, F.nll_loss, F.kl_div),
        loops=False,
    ),
    Exercise(
        "09.adam",
        weights_and_moments,
        {
            "The correction is missing: m and v start at 0 and are too small in the first steps.":
                Edit(" / (1 - BETA1**step)", "", " / (1 - BETA2**step)", ""),
            "Your decay goes through m and v, as part of the gradient; decoupled, it goes past them to the weight.":
                Edit("    m = ", "    gradient = gradient + decay * weight\n    m = ", " - lr * decay * weight", ""),
            "The decay is not multiplied by the learning rate.": Edit("lr * decay", "decay"),
            "Your ε is inside the root, where it is large beside the square of a small gradient.":
                Edit("v_corrected.sqrt() + EPS", "(v_corrected + EPS).sqrt()"),
            "Both of your means fade with β₁; that of the squares has β₂.": Edit("BETA2", "BETA1"),
            "You return the corrected m and v. The next step would correct them again: hand on the running means.":
                Edit("move, m, v", "move, m_corrected, v_corrected"),
            "β₁ and β₂ are exchanged.": Edit("BETA1", "FADE", "BETA2", "BETA1", "FADE", "BETA2"),
            "β₂ is 0.98 in the paper; PyTorch's default is 0.999.": Edit("BETA2", "0.999"),
            "ε is 1e-9, as in the paper.": Edit("EPS", "1e-5"),
            "It climbs: a step goes against the gradient.": Edit("- lr * move", "+ lr * move"),
            "You divide by the mean of the squares; its root is missing.": Edit(".sqrt()", ""),
            "The correction is one step ahead: in the first step it is 1 − β.": Edit("**step", "**(step + 1)"),
            "Three tensors are asked for: weight, m, v.": Edit("move, m, v", "move"),
            "Only matrices decay here. Every weight that is given does, whatever its shape.":
                Edit("- lr * decay * weight", "- lr * decay * weight * (weight.dim() > 1)"),
        },
        forbidden=(torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam),
    ),
    Exercise(
        "09.clip",
        gradients_of_models,
        {
            "Each tensor is still clipped by its own norm, so they change their proportions. "
            "One norm, of all numbers of the model, makes one factor for all.": PLANTED,
            "You give every gradient the largest norm; one that is short enough must stay as it is.":
                Edit("min(1.0, longest / norm)", "longest / norm"),
            "You add the norms of the tensors. Their squares add up, to the square of the whole norm.":
                Edit(NORM, "sum(gradient.norm() for gradient in gradients)"),
            "You cut each number to a range, which changes the direction of the gradient.":
                Edit("min(1.0, longest / norm)", "longest", "gradient * factor", "gradient.clamp(-factor, factor)"),
            "You compare the square of the norm.": Edit(".norm()", ".norm() ** 2"),
            "You take the largest of the tensors' norms. One norm, of all numbers of the model, is asked for.":
                Edit("torch.cat([gradient.flatten() for gradient in gradients]).norm()",
                     "max(gradient.norm() for gradient in gradients)"),
            "You divide the norm by the number of tensors. It is the norm of all numbers together.":
                Edit(".norm()", ".norm() / len(gradients)"),
            "A gradient that is too large becomes 0 here. It keeps its direction, and the norm `longest`.":
                Edit("min(1.0, longest / norm)", "(norm <= longest)"),
            "You compare the norm with 1. The limit is `longest`, which may be more, or less.":
                Edit("min(1.0, longest / norm)", "longest / norm if norm > 1 else 1.0"),
        },
        forbidden=(nn.utils.clip_grad_norm_,),
    ),
    Exercise(
        "09.accumulate",
        micro_batches,
        {
            "You step at i % n == 0: the very first micro-batch makes a step of its own, and the last ones make none.":
                Edit("(i + 1) % n == 0", "i % n == 0", REST, ""),
            "The last micro-batches are forgotten where they are fewer than n; they make a step, too.": Edit(REST, ""),
            "You take the mean of the micro-batches' means; each token must weigh the same.":
                Edit("total + gradient", "total + gradient / count / n", " / tokens", ""),
            "You add the means of the micro-batches, so the gradient of a step is about n times too long.":
                Edit("total + gradient", "total + gradient / count", " / tokens", ""),
            "You step by the gradient of the summed loss; divide by the tokens of the step.": Edit(" / tokens", ""),
            "After a step, what was added up for it is still there; the next step has to start from 0.":
                Edit("            total, tokens = 0, 0\n", ""),
            "You divide by n. Divide by the tokens of the step: "
            "micro-batches differ in size, and the last step may have fewer of them.": Edit(" / tokens", " / n"),
            "These are the last weights; a list of those after each step is asked for.":
                Edit("return weights", "return weights[-1]"),
        },
        ask=train,
    ),
    Exercise(
        "09.numbers",
        mistakes={
            "After the peak the rate falls with the root of the step: the root of 4 is 2.":
                Edit('16,000 / peak": 0.5', '16,000 / peak": 0.25'),
            "With the mistake there is no step in the first term: nothing makes the rate fall.":
                Edit('20,000": 1.0', '20,000": 0.5**0.5'),
            "After one step m and √v, both corrected, are as large as the gradient. What is their quotient?":
                Edit('Adam": 1.0', 'Adam": 0.001'),
            "This is the average of the losses; average the weights first.": Edit('average": 1.0', 'average": 5.0'),
            "Warm-up is linear: a quarter of the way, a quarter of the peak.": Edit("0.25", "0.5"),
            "The peak goes with the root of d_model: four times as wide, half as high.":
                Edit('wide": 0.5', 'wide": 0.25'),
        },
        ask=value,
    ),
)
