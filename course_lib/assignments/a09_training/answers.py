"""Answers to assignment 09: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import torch

from course_lib.checks import Edit
from course_lib.training import label_smoothed_loss

BETA1, BETA2, EPS = 0.9, 0.98, 1e-9
SHORTER, NORM = "min(1.0, longest / norm)", "torch.cat([gradient.flatten() for gradient in gradients]).norm()"
ALL_SHORTER = "[gradient * factor for gradient in gradients]"


def loss_by_labels(logits, tgt_out, smoothing):
    labels = torch.full_like(logits, smoothing / (logits.size(-1) - 1))
    labels = labels.scatter(-1, tgt_out[..., None], 1 - smoothing)
    each = -torch.einsum("btv,btv->bt", labels, logits.log_softmax(-1))
    real = tgt_out.ne(0)
    return each.masked_fill(~real, 0).sum() / real.sum()


def loss_by_torch(logits, tgt_out, smoothing):
    return torch.nn.functional.cross_entropy(logits.mT, tgt_out, ignore_index=0, label_smoothing=smoothing)


def epoch_by_groups(weight, micro_batches, n, lr, gradient_of):
    weights = [weight]
    for group in (micro_batches[i : i + n] for i in range(0, len(micro_batches), n)):
        gradients, counts = zip(*(gradient_of(weights[-1], part) for part in group), strict=True)
        weights.append(weights[-1] - lr * torch.stack(gradients).sum(0) / sum(counts))
    return weights[1:]


def library_loss(logits, tgt_out, smoothing):
    """ε over the others is a little more than ε over all: the true subword's own share is given back."""
    real, vocab = tgt_out != 0, logits.size(-1)
    return label_smoothed_loss(logits[real], tgt_out[real], smoothing=smoothing * vocab / (vocab - 1)) / real.sum()


def library_adam(weight, gradient, m, v, step, lr, decay):
    parameter = torch.nn.Parameter(weight.clone())
    parameter.grad = gradient.clone()
    optimizer = torch.optim.AdamW([parameter], lr, (BETA1, BETA2), EPS, weight_decay=decay, foreach=False)
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
        (gradient,) = torch.autograd.grad(label_smoothed_loss(hidden @ weight.T, true), weight)
        weights.append(weight := weight.detach() - lr * gradient / len(true))
    return weights


# What a solution must agree with.
LIBRARY = {"09.loss": library_loss, "09.adam": library_adam, "09.clip": library_clip, "09.accumulate": library_epoch}

RIGHT = {
    "09.loss": [
        loss_by_labels,
        Edit("-(1 - smoothing) * true - smoothing * others", "-true.lerp(others, smoothing)"),
        Edit("logits.log_softmax(dim=-1)", "logits - logits.logsumexp(dim=-1, keepdim=True)"),
        Edit("(each * real).sum() / real.sum()", "each[real].mean()"),
    ],
    "09.adam": [
        Edit("BETA1 * m + (1 - BETA1) * gradient", "m.lerp(gradient, 1 - BETA1)", "gradient**2", "gradient.square()"),
        Edit(
            *("BETA1 * m + (1 - BETA1) * gradient", "m.clone().mul_(BETA1).add_(gradient, alpha=1 - BETA1)"),
            *("BETA2 * v + (1 - BETA2) * gradient**2", "(BETA2 * v).addcmul_(gradient, gradient, value=1 - BETA2)"),
            *("return weight", "return [weight", "move, m, v", "move, m, v]"),
        ),
        Edit("weight - lr * decay * weight", "(1 - lr * decay) * weight", "**2", " * gradient", ".sqrt()", "**0.5"),
    ],
    "09.clip": [
        Edit(NORM, "torch.stack([g.norm() for g in gradients]).norm()", SHORTER, "(longest / norm).clamp(max=1)"),
        Edit(NORM, "sum(g.pow(2).sum() for g in gradients) ** 0.5", ALL_SHORTER, f"tuple({ALL_SHORTER})"),
        Edit(SHORTER, "longest / norm if norm > longest else 1"),
        Edit("longest / norm", "longest / (norm + 1e-6)"),  # as in PyTorch
    ],
    "09.accumulate": [
        epoch_by_groups,
        Edit("(i + 1) % n == 0", "i % n == n - 1", "i + 1 == len(micro_batches)", "micro_batch is micro_batches[-1]"),
        Edit(
            *("    weights, total", "    weight = weight.clone()\n    weights, total"),
            *("weight = weight - lr * total / tokens", "weight -= lr / tokens * total"),
            *("weights.append(weight)", "weights.append(weight.clone())"),
        ),
        Edit(
            *("weights, total, tokens = [], 0, 0", "weights, parts = [], []"),
            *("total, tokens = total + gradient, tokens + count", "parts.append((gradient, count))"),
            *("total / tokens", "sum(g for g, _ in parts) / sum(k for _, k in parts)"),
            *("total, tokens = 0, 0", "parts.clear()"),
        ),
    ],
    "09.numbers": [
        Edit(),
        Edit("0.25", "1 / 4", '20,000": 1.0', '20,000": 1'),
        Edit('average": 1.0', 'average": torch.tensor(1.0)', '16,000 / peak": 0.5', '16,000 / peak": 16**-0.25'),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "09.loss": [
        (loss_by_torch, "yours to write"),
    ],
    "09.adam": [
        Edit("BETA1 * m + (1 - BETA1) * gradient", "m.lerp_(gradient, 1 - BETA1)"),
    ],
    "09.clip": [
        Edit(".norm()", ".norm() ** -1"),
        Edit("gradient * factor", "gradient.mul_(factor)"),
        Edit(
            *(SHORTER, "(longest / norm).clamp(max=1)"),
            *(ALL_SHORTER, "torch.cat([gradient.flatten() for gradient in gradients]) * factor"),
        ),
        (library_clip, "yours to write"),
    ],
    "09.accumulate": [
        Edit("(i + 1) % n", "i % n"),
        Edit(
            "weights, total, tokens = [], 0, 0",
            "return epoch_of_large_batches(weight, micro_batches, n, lr, gradient_of)",
        ),
        Edit(
            *("total, tokens = total + gradient, tokens + count", "weight = weight - lr * gradient / count / n"),
            *("            weight = weight - lr * total / tokens\n", ""),
        ),
        Edit("weight = weight - lr", "weight -= lr"),
    ],
    "09.numbers": [
        Edit('wide": 0.5', 'wide": 2'),
        Edit('Adam": 1.0', 'Adam": None'),
    ],
}
