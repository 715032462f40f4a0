"""Answers to assignment 16: right ones, written differently, and plausible wrong ones beside the known mistakes."""

from unittest.mock import patch

import torch
import torch.nn.functional as F

from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.families import PatchEmbedding, mask_tokens
from course_lib.masks import causal_mask

SAME = "texts[:, :, None] == texts[:, None, :]"
ORDER = "permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)"
TARGETS = "torch.where(asked, ids, -100)"
LOSSES = "-log_probs.gather(-1, targets[..., None])[..., 0]"


def blanks_by_masks(ids, chance, fate, other, specials, mask_id):
    asked = (chance < 0.15) & (ids[..., None] != specials).all(dim=-1)
    reads = ids.masked_fill(asked & (fate < 0.8), mask_id)
    random = asked & ~(fate < 0.8) & (fate < 0.9)
    return torch.where(random, other, reads), ids.masked_fill(~asked, -100)


def loss_by_cross_entropy(logits, ids, prompt_lens):
    place = torch.arange(ids.shape[1], device=ids.device)
    targets = ids.masked_fill((place < prompt_lens.unsqueeze(1)) | (ids == 0), -100)[:, 1:]
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), targets, ignore_index=-100)


def loss_by_one_hot(logits, ids, prompt_lens):
    before = torch.cumsum(torch.ones_like(ids), dim=1) - 1
    true = (ids[..., None] == torch.arange(logits.size(2), device=ids.device)).to(logits.dtype)
    true = true * ((before >= prompt_lens[:, None]) & (ids != 0))[..., None]
    return -(true[:, 1:] * logits.log_softmax(-1)[:, :-1]).sum() / true.sum()


def packed_by_starts(texts, prompt):
    """Positions from where each text begins."""
    place = torch.arange(texts.size(1), device=texts.device).expand(texts.shape)
    begins = torch.ones_like(prompt)
    begins[:, 1:] = texts[:, 1:] != texts[:, :-1]
    starts = (place * begins).cummax(dim=1).values
    same = starts.unsqueeze(2) == starts.unsqueeze(1)
    return same & ((place.unsqueeze(2) >= place.unsqueeze(1)) | prompt.unsqueeze(1)), place - starts


def packed_by_triangles(texts, prompt):
    same = (texts.unsqueeze(-1) - texts.unsqueeze(-2)) == 0
    return same.tril() | same & prompt.unsqueeze(-2), same.tril(-1).sum(-1)


def join_by_shuffle_of_rows(patches, height, width, patch):
    columns = width // patch
    lines = patches.unflatten(-1, (-1, patch, patch)).unflatten(1, (-1, columns))
    lines = lines.movedim(2, 4)  # (batch, rows, channels, patch, columns, patch)
    return lines.transpose(1, 2).reshape(len(patches), -1, height, width)


def join_by_index(patches, height, width, patch):
    y, x = torch.arange(height, device=patches.device)[:, None], torch.arange(width, device=patches.device)
    which = (y // patch) * (width // patch) + x // patch  # (height, width)
    inside = (y % patch) * patch + x % patch
    return patches.unflatten(2, (-1, patch * patch))[:, which, :, inside].permute(2, 3, 0, 1)


def join_by_concatenation(patches, height, width, patch):
    squares = patches.unflatten(2, (-1, patch, patch)).unbind(dim=1)
    step = width // patch
    lines = [torch.cat(squares[at : at + step], dim=3) for at in range(0, len(squares), step)]
    return torch.cat(lines, dim=2)


RIGHT = {
    "16.numbers": [Edit(), Edit("2.0", "2", ": 13,", ": 13.0,"), Edit(": 28", ": torch.tensor(28)", "135", "135.0")],
    "16.blanks": [
        blanks_by_masks,
        Edit("torch.where(asked, changed, ids)", "changed * asked + ids * ~asked"),
        Edit(TARGETS, "torch.full_like(ids, -100).where(~asked, ids)"),
    ],
    "16.answers": [
        *(loss_by_cross_entropy, loss_by_one_hot),
        Edit("(losses * counts).sum() / counts.sum()", "torch.where(counts, losses, 0).sum() / counts.count_nonzero()"),
        Edit("(losses * counts).sum() / counts.sum()", "losses[counts].mean()"),
    ],
    "16.packed": [
        *(packed_by_starts, packed_by_triangles),
        Edit(SAME, "torch.eq(texts.unsqueeze(2), texts.unsqueeze(1))", "(same & earlier).sum(dim=-1)",
             "same.cumsum(dim=-1).diagonal(dim1=1, dim2=2) - 1"),
    ],
    "16.join": [
        *(join_by_shuffle_of_rows, join_by_index),
        Edit(f"parts.{ORDER}", 'torch.einsum("brcxyz->bxrycz", parts).reshape(len(parts), -1, height, width)'),
    ],
}

WRONG = {
    "16.numbers": [Edit("135", "15"), {"tokens of the picture": 13}],
    "16.blanks": [
        Edit("return reads, targets", "return targets, reads"),
        Edit("chance < 0.15", "chance < 0.5"),
    ],
    "16.answers": [
        Edit("log_softmax(dim=-1)", "log_softmax(dim=1)"),
        Edit("losses = -", "losses = "),
    ],
    "16.packed": [
        Edit("return mask, (same & earlier).sum(dim=-1)", "return mask"),
        Edit("return mask, (same & earlier).sum(dim=-1)", "return ~mask, (same & earlier).sum(dim=-1)"),
    ],
    "16.join": [
        (join_by_concatenation, "one by one"),
        (lambda patches, height, width, patch: F.fold(patches.mT, (height, width), patch, stride=patch),
         "yours to write"),
    ],
}


def measured():
    """The prediction's numbers, counted by what the library does."""
    rows, columns = torch.ones(32, 24).unfold(0, 8, 8).unfold(1, 8, 8).shape[:2]
    config = ModelConfig(4, d_model=8, num_heads=1, num_layers=1, d_ff=8, max_len=99)
    embedding = PatchEmbedding(config, side=32, patch=8, channels=3, class_token=False)
    shares = (torch.arange(100) + 0.5) / 100  # one word for each pair of dice
    words = torch.arange(5, 10_005).view(100, 100)
    dice = shares[:, None].expand(words.shape), shares.expand(words.shape)
    reads, targets = library_blanks(words, *dice, words + 1, torch.arange(5), 4)
    probs = torch.tensor([1 / 2, 1 / 2, 1 / 2, 1 / 32])
    texts, prompt = torch.zeros(1, 7, dtype=torch.long), torch.arange(7)[None] < 4
    return {
        "tokens of the picture": rows * columns + 1,
        "numbers of a patch": embedding.patch_proj.in_features,
        "places with another word": (reads != words).sum().item() / 10,
        "places that are asked for": (targets > 0).sum().item() / 10,
        "bits per token": -probs.log2().mean().item(),
        "pairs of the causal mask": packed_by_triangles(texts, prompt & False)[0].sum().item(),
        "pairs with an open prompt": packed_by_triangles(texts, prompt)[0].sum().item(),
    }


def library_blanks(ids, chance, fate, other, specials, mask_id):
    """The library's, which throws its dice itself: here they fall as the exercise wants."""
    config = ModelConfig(5 + int(torch.stack([ids, other]).max()), pad_id=0, bos_id=1, eos_id=2, unk_id=3)
    thrown = iter((chance, fate))
    with patch.multiple(torch, rand=lambda *_, **__: next(thrown), randint=lambda *_, **__: other):
        return mask_tokens(ids, config, mask_id)


def library_loss(logits, ids, prompt_lens):
    losses = F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], reduction="none")
    rows = [row[start - 1 :][of[start:] != 0] for row, of, start in zip(losses, ids, prompt_lens.tolist(), strict=True)]
    return torch.cat(rows).mean()


def library_packed(texts, prompt):
    """Each text by itself, with the library's mask; then the blocks of a row."""
    masks, positions = [], []
    for row, opened in zip(texts, prompt, strict=True):
        lengths = torch.unique_consecutive(row, return_counts=True)[1].tolist()
        parts = zip(lengths, opened.split(lengths), strict=True)
        masks.append(torch.block_diag(*((causal_mask(length)[0, 0] | part).int() for length, part in parts)).bool())
        positions.append(torch.cat([torch.arange(length) for length in lengths]))
    return torch.stack(masks), torch.stack(positions)


# What a solution must agree with.
LIBRARY = {
    "16.numbers": measured(),
    "16.blanks": library_blanks,
    "16.answers": library_loss,
    "16.packed": library_packed,
    "16.join": lambda patches, height, width, patch: F.fold(patches.mT, (height, width), patch, stride=patch),
}
