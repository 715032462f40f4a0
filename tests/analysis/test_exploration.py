"""A translation open to inspection: it is the translator's own, and what is shown of it is the model's."""

from dataclasses import replace

import pytest
import torch

from course_lib.analysis.ablation import ablate_heads
from course_lib.analysis.exploration import Candidate, explore
from course_lib.recording import KINDS
from tests.helpers.laws import raised
from tests.helpers.tiny import toy_translator

TRANSLATORS = [toy_translator(seed, spread=4) for seed in range(3)]
TEXT = "a dog sees a cat ."


def it_is_the_translators_own(look):
    """Same text, tokens and weights as Translator.translate gives with greedy search."""
    for translator in TRANSLATORS:
        ours, theirs = look(translator, TEXT), translator.translate(TEXT, beam_size=1, attention=True)
        assert (ours.text, ours.src_tokens, ours.tgt_tokens) == (theirs.text, theirs.src_tokens, theirs.tgt_tokens)
        for kind in KINDS:
            pairs = zip(getattr(ours.attention, kind), getattr(theirs.attention, kind), strict=True)
            assert all(torch.equal(*pair) for pair in pairs)


def probabilities_are_the_models(look):
    """Of each token after those before it, by a parallel pass; candidates are the best ones, in order."""
    for translator in TRANSLATORS:
        model, ours = translator.model, look(translator, TEXT)
        src = torch.tensor([[*translator.tokenizer.encode(TEXT), 2]])
        with torch.no_grad():
            probs = model(src, torch.tensor([[1, *ours.tgt_ids[:-1]]]))[0].softmax(dim=-1)
        for place, token in enumerate(ours.tgt_ids):
            assert ours.probabilities[place] == pytest.approx(probs[place, token].item(), rel=1e-4)
            row = probs[place].clone()
            row[[0, 1]] = 0
            best = row.topk(5)
            assert [each.id for each in ours.candidates[place]] == best.indices.tolist()
            assert [each.probability for each in ours.candidates[place]] == pytest.approx(best.values.tolist())
            assert ours.candidates[place][0].id == token, "greedy takes the best"
            assert all(each.token == translator.tokenizer.token(each.id) for each in ours.candidates[place])


def of_the_wrong_place(translator, text, **options):
    found = explore(translator, text, **options)
    moved = found.probabilities[1:] + found.probabilities[:1]
    return replace(found, probabilities=moved, text=found.text + "!")


def test_what_is_explored_is_the_translators_own():
    for law in (it_is_the_translators_own, probabilities_are_the_models):
        law(explore)
        with pytest.raises(AssertionError):
            law(of_the_wrong_place)


def test_a_forced_beginning_is_followed_by_the_models_choice():
    translator = TRANSLATORS[0]
    free = explore(translator, TEXT)
    other = free.candidates[1][1]
    forced = explore(translator, TEXT, prefix=[free.tgt_ids[0], other.id])
    assert forced.tgt_ids[:2] == [free.tgt_ids[0], other.id] and forced.text != free.text
    assert forced.probabilities[1] == pytest.approx(other.probability, rel=1e-4)
    assert forced.candidates[1] == [Candidate(*vars(each).values()) for each in free.candidates[1]]


def test_a_target_is_read_and_not_written():
    """Weights and probabilities are those of the translator that writes it; another one reads it as well."""
    writer, reader = TRANSLATORS[:2]
    own = explore(writer, TEXT)
    read = explore(writer, TEXT, target=own.tgt_ids)
    assert (read.text, read.tgt_tokens, read.probabilities) == (own.text, own.tgt_tokens, own.probabilities)
    assert all(map(torch.equal, read.attention.cross, own.attention.cross))
    other = explore(reader, TEXT, target=own.tgt_ids)
    assert other.text == own.text != explore(reader, TEXT).text and other.tgt_ids == own.tgt_ids
    assert other.probabilities != own.probabilities
    assert not torch.equal(other.attention.cross[0], own.attention.cross[0])


def test_silent_heads_are_silent_while_it_translates_and_while_it_is_looked_at():
    translator = TRANSLATORS[1]
    heads = [("encoder", 0, 0), ("encoder", 0, 1)]
    ours = explore(translator, TEXT, silent=heads)
    with ablate_heads(translator.model, heads):
        it_is = explore(translator, TEXT)
    assert ours.text == it_is.text and ours.probabilities == it_is.probabilities
    assert ours.probabilities != explore(translator, TEXT).probabilities


def test_the_model_is_left_as_it_was():
    translator = toy_translator(dropout=0.5)
    translator.model.train()
    explore(translator, TEXT, silent=[("cross", 1, 1)])
    assert translator.model.training
    assert not any(module._forward_hooks for module in translator.model.modules())


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("", {}, "an empty sentence cannot be translated: ''"),
        ("  ", {}, "an empty sentence cannot be translated: '  '"),
        (TEXT, {"prefix": [1]}, "a prefix holds ids"),
        (TEXT, {"prefix": [5], "target": [6, 2]}, "expected a prefix or a target, got both: [5] and [6, 2]"),
        (TEXT, {"silent": [("cross", 9, 0)]}, "cross has layers 0..1"),
        (TEXT, {"num_candidates": 0}, "num_candidates must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused(text, options, message):
    assert message in str(raised(ValueError, lambda: explore(TRANSLATORS[0], text, **options)))


def test_there_are_never_more_candidates_than_tokens():
    translator = TRANSLATORS[0]
    found = explore(translator, TEXT, num_candidates=10_000)
    assert len(found.candidates[0]) == translator.tokenizer.vocab_size
