"""What a beam search must find, for any model with the Transformer's calls: all there is, if it is wide enough."""

import itertools

import pytest
import torch

from course_lib.decoding import greedy
from tests.helpers.tiny import padded, sources, tiny_model

# Chosen so that the best outputs have 0 to 3 tokens and greedy search does not find them all.
SEEDS_AND_SPREADS = [(0, 5), (7, 5), (15, 3), (21, 3), (25, 3), (29, 3), (52, 3), (57, 3)]
MODELS = [tiny_model(seed, spread=spread, norm_first=seed % 2 == 1, vocab_size=7) for seed, spread in SEEDS_AND_SPREADS]
SOURCES = sources([4, 1, 3], vocab_size=7)
SRC = padded(SOURCES)
MAX_LEN = 4
ENDINGS = sum(4**length for length in range(MAX_LEN))  # finished outputs of at most MAX_LEN tokens: 85
WIDE = 5 * 4 ** (MAX_LEN - 1)  # all continuations in the last step: nothing is ever cut


def all_outputs(model, src, length_penalty):
    """Every finished output of at most MAX_LEN tokens as (score, log_prob, ids), best first, without cache or beam."""
    bodies = [list(ids) for length in range(MAX_LEN) for ids in itertools.product([3, 4, 5, 6], repeat=length)]
    found = []
    for length, group in itertools.groupby(bodies, key=len):
        group = list(group)
        tgt_in = torch.tensor([[1, *ids] for ids in group])  # (outputs, length + 1)
        with torch.no_grad():
            logits = model(torch.tensor([src]).expand(len(group), -1), tgt_in)
        tgt_out = torch.tensor([[*ids, 2] for ids in group])
        log_probs = logits.log_softmax(dim=-1).gather(2, tgt_out[:, :, None]).sum(dim=(1, 2)).tolist()
        for ids, log_prob in zip(group, log_probs, strict=True):
            found.append((log_prob / ((5 + length + 1) / 6) ** length_penalty, log_prob, ids))
    return sorted(found, reverse=True)


def a_wide_beam_is_exhaustive(search, *, length_penalty=0.6, models=MODELS):
    row, greedy_lost = SOURCES[0], 0
    for model in models:
        expected = all_outputs(model, row, length_penalty)
        options = dict(beam_size=WIDE, length_penalty=length_penalty, max_len=MAX_LEN)
        (found,) = search(model, torch.tensor([row]), **options)
        assert found[0].ids == expected[0][2]
        assert len(found) == len(expected) == ENDINGS
        for ours, (score, log_prob, _) in zip(found, expected, strict=True):
            assert ours.finished
            assert (ours.score, ours.log_prob) == (pytest.approx(score, abs=1e-4), pytest.approx(log_prob, abs=1e-4))
        (first,) = greedy(model, torch.tensor([row]), max_len=MAX_LEN)
        greedy_lost += first.finished and first.ids != found[0].ids
    assert 1 <= greedy_lost < len(models), "greedy search is always or never right"
