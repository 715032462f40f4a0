"""Answers to assignment 20: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch
import torch.nn.functional as F

from course_lib.checks import Edit
from course_lib.data import make_batch
from course_lib.masks import causal_mask
from course_lib.training import TrainConfig, label_smoothed_loss, learning_rate
from course_lib.transformer import eval_mode

FAULTS = {"A": "dropout", "B": "shift", "C": "vocabulary", "D": "mask", "E": "padding", "F": "warm-up"}


def batch_in_columns(pairs):
    """Fills rows of padding from the left."""
    longest = max(len(tgt) for _, tgt in pairs) + 1
    reads, predicts = torch.zeros(2, len(pairs), longest, dtype=torch.long)
    for row, (_, tgt) in enumerate(pairs):
        reads[row, : len(tgt) + 1] = torch.tensor([1, *tgt])
        predicts[row, : len(tgt) + 1] = torch.tensor([*tgt, 2])
    sources = [torch.tensor(src) for src, _ in pairs]
    return torch.nn.utils.rnn.pad_sequence(sources, batch_first=True), reads, predicts


def batch_with_columns_to_spare(pairs):
    batch = make_batch(pairs)
    return tuple(F.pad(ids, (0, 3)) for ids in (batch.src, batch.tgt_in, batch.tgt_out))


def mask_by_places(length):
    place = torch.arange(length)
    return (place[:, None] >= place).expand(1, 1, length, length)


def rate_in_two_parts(step, peak, warmup_steps):
    if step <= warmup_steps:
        return peak / warmup_steps * step
    return peak * math.sqrt(warmup_steps) / math.sqrt(step)


def loss_of_real_tokens(logits, tgt_out):
    real = tgt_out != 0
    return F.cross_entropy(logits[real], tgt_out[real])


def loss_by_gathering(logits, tgt_out):
    each = -logits.log_softmax(-1).gather(-1, tgt_out[..., None])[..., 0]
    real = tgt_out.ne(0)
    return each[real].sum() / real.sum()


def measured_in_eval_mode(model, measure):
    with eval_mode(model):
        return measure()


@torch.no_grad()
def measured_with_care(model, measure):
    before = model.training
    try:
        return model.eval() and measure()
    finally:
        model.train(before)


RIGHT = {
    "20.faults": [Edit(), Edit('faults = {"A"', 'faults = {**{}, "A"'), dict(reversed(FAULTS.items()))],
    "20.shift": [
        *(batch_in_columns, batch_with_columns_to_spare),
        Edit("tgt[:, :-1], tgt[:, 1:]", "tgt[:, :-1], tgt.roll(-1, dims=1)[:, :-1]"),
    ],
    "20.mask": [
        mask_by_places,
        Edit("torch.ones(length, length, dtype=torch.bool).tril()", "~torch.ones(length, length).triu(1).bool()"),
        Edit(".tril()", ".triu().mT"),
    ],
    "20.rate": [
        rate_in_two_parts,
        Edit("peak * min(step / warmup_steps, ", "min(peak * step / warmup_steps, peak * "),
        Edit("(warmup_steps / step) ** 0.5", "warmup_steps**0.5 * step**-0.5"),
    ],
    "20.loss": [
        *(loss_of_real_tokens, loss_by_gathering),
        Edit("ignore_index=PAD_ID", 'ignore_index=PAD_ID, reduction="sum") / (tgt_out != PAD_ID).sum('),
        Edit("logits.flatten(0, 1), tgt_out.flatten()", "logits.mT, tgt_out"),
    ],
    "20.evaluate": [
        *(measured_in_eval_mode, measured_with_care),
        Edit("with torch.no_grad():\n        result = measure()", "result = measure()"),
    ],
}


def every_fault(name):
    return dict.fromkeys(FAULTS, name)


def shift_of_the_source(pairs):
    batch = make_batch(pairs)
    return batch.src[:, 1:], batch.tgt_in, batch.tgt_out


def reads_the_future(length):
    return torch.ones(1, 1, length, length).bool()


def two_peaks(step, peak, warmup_steps):
    return 2 * peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)


def mean_of_means(logits, tgt_out):
    each, real = F.cross_entropy(logits.mT, tgt_out, reduction="none"), tgt_out != 0
    return ((each * real).sum(dim=1) / real.sum(dim=1)).mean()


def half(model, measure):
    model.eval()
    result = measure() / 2
    model.train()
    return result


WRONG = {
    "20.faults": [every_fault("shift")],
    "20.shift": [
        (lambda pairs: (make_batch(pairs).src, *[make_batch(pairs).tgt_out] * 2), "reads the very token"),
        shift_of_the_source,
    ],
    "20.mask": [
        (lambda length: torch.ones(1, 1, length, length).tril().mT.bool(), "Upside down still"),
        (reads_the_future, "the future too"),
    ],
    "20.rate": [
        (lambda step, peak, warmup_steps: peak / max(1, step / warmup_steps) ** 0.5, "still begins at its peak"),
        two_peaks,
    ],
    "20.loss": [
        (lambda logits, tgt_out: F.cross_entropy(logits.mT, tgt_out), "<pad> still counts"),
        mean_of_means,
    ],
    "20.evaluate": [(lambda model, measure: measure(), "Dropout is still on"), half],
}


def library_rate(step, peak, warmup_steps):
    config = TrainConfig(peak_lr=peak, warmup_steps=warmup_steps)
    return learning_rate(config, step, d_model=64, total_steps=10)


def library_loss(logits, tgt_out):
    real = tgt_out != 0
    return label_smoothed_loss(logits[real], tgt_out[real]) / real.sum()


def library_batch(pairs):
    batch = make_batch(pairs)
    return batch.src, batch.tgt_in, batch.tgt_out


# What a solution must agree with.
LIBRARY = {
    "20.shift": library_batch,
    "20.mask": causal_mask,
    "20.rate": library_rate,
    "20.loss": library_loss,
    "20.evaluate": measured_in_eval_mode,
}
