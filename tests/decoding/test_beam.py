"""Beam search: a wide one finds what exhaustive search finds, a narrow one is greedy, scores are the model's own."""

import itertools
import json
from dataclasses import replace
from functools import partial
from unittest import mock

import pytest
import torch

from course_lib.blocks import LayerCache
from course_lib.decoding import BeamTree, Hypothesis, Steps, beam_search, greedy, record_beam
from course_lib.decoding.beam import _Beam, most_probable
from tests.helpers.decoding import ATTENDS_TO_PADDING, naive_greedy, raw_logits
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.searches import MODELS, SOURCES, SRC, a_wide_beam_is_exhaustive, all_outputs
from tests.helpers.tiny import padded, sources, tiny_model

pytestmark = pytest.mark.usefixtures("plain_steps")  # test_packed.py has the others

# --- exhaustive search --------------------------------------------------------------------------


def drops_finished(beam, best, eos_id, extend=_Beam.extend):
    beam.finished = []  # only those that end in the last step remain
    return extend(beam, best, eos_id)


def order_forgotten(cache, rows, select=LayerCache.select):
    if len(rows) != len(cache.keys):  # else the mutant would fail by its shapes
        select(cache, rows)


def order_sorted(cache, rows, select=LayerCache.select):
    select(cache, rows.sort().values)


def unsorted(beam):
    return (beam.finished or beam.unfinished)[: beam.size]


def without_length_penalty(*args, length_penalty=0.6, **options):
    return beam_search(*args, length_penalty=0.0, **options)


def broken(target, name, replacement):
    return patched(beam_search, mock.patch.object(target, name, replacement))


def reward_of_length(*args, length_penalty=0.6, **options):
    return beam_search(*args, length_penalty=-length_penalty, **options)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6])
def test_a_wide_beam_finds_what_exhaustive_search_finds(length_penalty):
    a_wide_beam_is_exhaustive(beam_search, length_penalty=length_penalty)


def test_the_length_penalty_changes_what_is_best():
    best = [[all_outputs(model, SOURCES[0], penalty)[0][2] for model in MODELS] for penalty in (0.0, 0.6)]
    assert best[0] != best[1] and {len(ids) for ids in best[1]} >= {0, 2, 3}, "too uniform to compare"


EXHAUSTIVE_MUTANTS = {
    "raw logits": broken(Steps, "__call__", raw_logits),
    "finished dropped": broken(_Beam, "extend", drops_finished),
    "cache in wrong order": broken(LayerCache, "select", order_sorted),
    "not sorted": broken(_Beam, "best", unsorted),
    "no length penalty": without_length_penalty,
    "wrong sign": reward_of_length,
}


@pytest.mark.parametrize("name", EXHAUSTIVE_MUTANTS)
def test_exhaustive_law_catches(name):
    with pytest.raises(AssertionError):
        a_wide_beam_is_exhaustive(EXHAUSTIVE_MUTANTS[name])


# --- narrow beams -------------------------------------------------------------------------------


def beam_of_one_is_greedy(search, *, models=MODELS):
    for model in models:
        found = search(model, SRC, beam_size=1, length_penalty=0.0, max_len=10)
        for (ours,), theirs in zip(found, greedy(model, SRC, max_len=10), strict=True):
            assert (ours.ids, ours.finished) == (theirs.ids, theirs.finished)
            assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)


def test_a_beam_of_one_is_greedy_search():
    beam_of_one_is_greedy(partial(_any_penalty, length_penalty=0.6))
    tells_apart(beam_of_one_is_greedy, beam_search, _second_best)


def test_a_beam_of_one_is_greedy_search_among_equals_too():
    """With 8 bits for each number several tokens are often the most probable."""
    models = [tiny_model(seed, vocab_size=7).bfloat16() for seed in range(40)]
    law = partial(beam_of_one_is_greedy, models=models)
    last_of_equals = mock.patch("heapq.nlargest", lambda number, totals, key: sorted(totals, reverse=True)[:number])
    tells_apart(law, beam_search, patched(beam_search, last_of_equals))


def _any_penalty(*args, length_penalty, **options):
    return beam_search(*args, **options | {"length_penalty": length_penalty})


def _second_best(*args, beam_size, **options):
    return [found[-1:] for found in beam_search(*args, beam_size=beam_size + 1, **options)]


def scores_are_the_models_own(search):
    """Each hypothesis has the log-probability that one parallel pass over it gives; 4 sentences at once."""
    for model in MODELS:
        for row, found in zip(SOURCES, search(model, SRC, beam_size=3, max_len=8), strict=True):
            assert 1 <= len(found) <= 3
            assert [hypothesis.score for hypothesis in found] == sorted((h.score for h in found), reverse=True)
            assert len({tuple(hypothesis.ids) for hypothesis in found}) == len(found), "the same output twice"
            assert len({hypothesis.finished for hypothesis in found}) == 1
            for ours in found:
                outputs = ours.ids + [2] * ours.finished
                assert len(outputs) <= 8 and not {0, 1, 2} & set(ours.ids)
                with torch.no_grad():
                    logits = model(torch.tensor([row]), torch.tensor([[1, *outputs[:-1]]]))[0]
                total = logits.log_softmax(dim=-1)[range(len(outputs)), outputs].sum().item()
                assert ours.log_prob == pytest.approx(total, abs=1e-4)
                assert ours.score == pytest.approx(total / ((5 + len(outputs)) / 6) ** 0.6, abs=1e-4)


def one_too_many(*args, beam_size, **options):
    return beam_search(*args, beam_size=beam_size + 1, **options)


NARROW_MUTANTS = {
    "cache not reordered": broken(LayerCache, "select", order_forgotten),
    "cache in wrong order": broken(LayerCache, "select", order_sorted),
    "raw logits": broken(Steps, "__call__", raw_logits),
    "not sorted": broken(_Beam, "best", unsorted),
    "one too many": one_too_many,
}


def test_scores_of_a_narrow_beam_are_the_models_own():
    tells_apart(scores_are_the_models_own, beam_search, *NARROW_MUTANTS.values())


def batch_equals_one_by_one(search):
    for model in MODELS:
        for row, together in zip(SOURCES, search(model, SRC, beam_size=3, max_len=8), strict=True):
            (alone,) = search(model, torch.tensor([row]), beam_size=3, max_len=8)
            assert [hypothesis.ids for hypothesis in together] == [hypothesis.ids for hypothesis in alone]
            for ours, theirs in zip(together, alone, strict=True):
                assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)


def test_a_batch_equals_its_sentences_one_by_one():
    tells_apart(batch_equals_one_by_one, beam_search, patched(beam_search, ATTENDS_TO_PADDING))


def test_a_beam_finds_better_outputs_than_greedy_search():
    """Not in each case, which search errors forbid, but on the whole."""
    gain = 0.0
    for model in MODELS:
        for row in SOURCES:
            ids, log_prob, finished = naive_greedy(model, tuple(row), 8)
            best = beam_search(model, torch.tensor([row]), beam_size=6, length_penalty=0.0, max_len=8)[0][0]
            gain += best.log_prob - log_prob if finished and best.finished else 0.0
    assert gain > 0.5


def test_unfinished_hypotheses_come_only_where_none_finished():
    endless = tiny_model(spread=4)
    with torch.no_grad():
        endless.generator.weight[2] = -20 * endless.generator.weight.mean(dim=0)  # </s> is rare
    for found in beam_search(endless, padded(sources([3, 2])), beam_size=4, max_len=3):
        assert len({hypothesis.finished for hypothesis in found}) == 1
    (found,) = beam_search(MODELS[0], torch.tensor([SOURCES[0]]), beam_size=4, max_len=1)
    assert found, "a beam always answers"


# --- the tree -----------------------------------------------------------------------------------

TREE_OPTIONS = [dict(beam_size=1, max_len=6), dict(beam_size=3, max_len=8), dict(beam_size=4, max_len=2)]


def hypotheses(tree):
    """The hypotheses that `best` points at, read from the tree alone."""
    ends = [tree.nodes[index] for index in tree.best]
    return [
        Hypothesis(tree.tokens(index)[: -1 if end.fate == "finished" else None], end.total, end.score, end.token == 2)
        for index, end in zip(tree.best, ends, strict=True)
    ]


def recording_changes_nothing(record):
    """The tree holds every returned hypothesis, with the very numbers of the search that records nothing."""
    for model in MODELS:
        for options in TREE_OPTIONS:
            for penalty in (0.0, 0.6):
                found = beam_search(model, SRC, length_penalty=penalty, **options)
                trees = record(model, SRC, length_penalty=penalty, **options)
                assert [hypotheses(tree) for tree in trees] == found
                assert {(tree.beam_size, tree.length_penalty) for tree in trees} == {(options["beam_size"], penalty)}


def totals_are_sums_of_the_models_log_probs(record):
    """On the way to each node, dropped ones too, and each token's from one parallel pass over its beginning."""
    for model in MODELS[:4]:
        for row, tree in zip(SOURCES, record(model, SRC, beam_size=3, max_len=6), strict=True):
            for index, node in enumerate(tree.nodes):
                tokens = tree.tokens(index)
                assert len(tokens) == node.step and node.total <= 0
                if not tokens:
                    assert (index, node.token, node.log_prob, node.total, node.fate) == (0, 1, 0.0, 0.0, "kept")
                    continue
                with torch.no_grad():
                    logits = model(torch.tensor([row]), torch.tensor([[1, *tokens[:-1]]]))[0]
                log_probs = logits.log_softmax(dim=-1)[range(len(tokens)), tokens]
                assert node.log_prob == pytest.approx(log_probs[-1].item(), abs=1e-4)
                assert node.total == pytest.approx(log_probs.sum().item(), abs=1e-4)
                length = node.step if node.fate in ("finished", "unfinished") else None
                assert (node.score is None) == (length is None)
                assert length is None or node.score == pytest.approx(node.total / ((5 + length) / 6) ** 0.6, abs=1e-5)


def fates_are_those_of_a_beam(record):
    """The beam_size most probable beginnings go on, the others end; no more are considered than twice that."""
    seen = set()
    for model, options in itertools.product(MODELS, TREE_OPTIONS):
        size, max_len = options["beam_size"], options["max_len"]
        for tree in record(model, SRC, **options):
            last = max(node.step for node in tree.nodes)
            finished = 0
            for step in range(1, last + 1):
                level = [node for node in tree.nodes if node.step == step]
                assert 1 <= len(level) <= 2 * size and level == sorted(level, key=lambda node: -node.total)
                goes_on = [node for node in level if node.fate in ("kept", "unfinished")]
                assert {node.fate for node in goes_on} <= {"unfinished" if step == last else "kept"}
                assert goes_on == [node for node in level if node.token != 2][:size]
                assert [node for node in level if node.fate == "finished"] == [n for n in level[:size] if n.token == 2]
                assert finished < size, "the search went on after it was done"
                finished += sum(node.fate == "finished" for node in level)
            assert last == max_len or finished >= size
            for index, node in enumerate(tree.nodes[1:], start=1):
                assert node.parent < index and tree.nodes[node.parent].fate == "kept"
                assert tree.nodes[node.parent].step == node.step - 1
            assert len({tuple(tree.tokens(index)) for index in range(len(tree.nodes))}) == len(tree.nodes)
            seen |= {node.fate for node in tree.nodes}
    assert seen == {"kept", "dropped", "finished", "unfinished"}, "too uniform to compare"


def _other_nodes(change):
    return lambda *arguments, **options: [
        replace(tree, nodes=[tree.nodes[0], *map(change, tree.nodes[1:])])
        for tree in record_beam(*arguments, **options)
    ]


def _front_forgotten(beam, considered, record=_Beam._record):
    record(beam, considered)
    beam.front = sorted(beam.front, reverse=True)


def in_record(target, name, replacement):
    return patched(record_beam, mock.patch.object(target, name, replacement))


TREE_MUTANTS = {
    recording_changes_nothing: [
        lambda *arguments, **options: record_beam(*arguments, **options | {"beam_size": 2}),
        _other_nodes(lambda node: replace(node, total=round(node.total, 3))),
        in_record(_Beam, "_record", _front_forgotten),
        in_record(LayerCache, "select", order_forgotten),
        in_record(_Beam, "extend", drops_finished),
    ],
    totals_are_sums_of_the_models_log_probs: [
        in_record(_Beam, "_record", _front_forgotten),
        in_record(Steps, "__call__", raw_logits),
        _other_nodes(lambda node: replace(node, log_prob=node.total)),
    ],
    fates_are_those_of_a_beam: [
        _other_nodes(lambda node: replace(node, fate=node.fate.replace("dropped", "kept"))),
        _other_nodes(lambda node: replace(node, fate=node.fate.replace("un", ""))),
        in_record(_Beam, "extend", drops_finished),
    ],
}


@pytest.mark.parametrize("law", TREE_MUTANTS)
def test_law_of_the_recorded_tree(law):
    tells_apart(law, record_beam, *TREE_MUTANTS[law])


def rescoring_is_searching_again(rescored):
    """The length penalty ranks what has ended, and nothing else of a search depends on it."""
    moved = 0
    for model, options in itertools.product(MODELS, [*TREE_OPTIONS, dict(beam_size=5, max_len=8)]):
        for tree in record_beam(model, SRC, length_penalty=0.0, **options):
            assert rescored(tree, 0.0) == tree
        for penalty in (0.6, 2.0):
            trees = record_beam(model, SRC, length_penalty=0.0, **options)
            again = record_beam(model, SRC, length_penalty=penalty, **options)
            assert [rescored(tree, penalty) for tree in trees] == again
            moved += sum(ours.best != theirs.best for ours, theirs in zip(trees, again, strict=True))
    assert moved > 5, "too uniform to compare"


RESCORING_MUTANTS = {
    "scores stay": lambda tree, penalty: replace(tree, length_penalty=penalty),
    "order stays": lambda tree, penalty: replace(tree.rescored(penalty), best=tree.best),
    "only the best are ranked": lambda tree, penalty: replace(
        tree.rescored(penalty), best=sorted(tree.best, key=lambda index: -tree.rescored(penalty).nodes[index].score)
    ),
}


def test_rescoring_a_tree_is_searching_again():
    tells_apart(rescoring_is_searching_again, BeamTree.rescored, *RESCORING_MUTANTS.values())


def test_a_tree_is_plain_data():
    for tree in record_beam(MODELS[1], SRC, beam_size=3, max_len=6):
        assert BeamTree.from_dict(json.loads(json.dumps(tree.to_dict(), allow_nan=False))) == tree


def test_recording_refuses_what_searching_refuses():
    assert "beam_size" in str(raised(ValueError, lambda: record_beam(MODELS[0], SRC, beam_size=0)))
    assert "max_len" in str(raised(ValueError, lambda: record_beam(MODELS[0], SRC, max_len=0)))


def test_bad_arguments_are_refused_and_the_mode_is_restored():
    model = tiny_model(vocab_size=7, dropout=0.5).train()
    error = raised(ValueError, lambda: beam_search(model, SRC, beam_size=0))
    assert str(error) == "beam_size must be a whole number from 1 to 1000, got 0"
    assert "max_len" in str(raised(ValueError, lambda: beam_search(model, SRC, max_len=0)))
    assert "only padding" in str(raised(ValueError, lambda: beam_search(model, SRC * 0)))
    beam_search(model, SRC, max_len=3)
    assert model.training


# --- the best of each row -----------------------------------------------------------------------


def the_best_of_each_row_come_first(best):
    generator = torch.Generator().manual_seed(0)
    for vocab, number in ((7, 4), (7, 20), (1000, 4), (2000, 8), (2000, 30), (1001, 8)):
        rows = torch.randn(5, vocab, generator=generator)
        rows[0, :50] += 9  # all in one block
        for row, found in zip(rows.tolist(), best(rows, number), strict=True):
            assert found == sorted(((value, index) for index, value in enumerate(row)), reverse=True)[:number]


def test_the_best_of_each_row_come_first():
    def one_of_each_block(rows, number):
        if rows.shape[1] != 2000:
            return most_probable(rows, number)
        values, places = rows.view(5, -1, 100).max(dim=-1)
        best, blocks = values.topk(min(number, 20))
        ids = blocks * 100 + places.gather(1, blocks)
        return [list(zip(*row, strict=True)) for row in zip(best.tolist(), ids.tolist(), strict=True)]

    tells_apart(the_best_of_each_row_come_first, most_probable, one_of_each_block)
