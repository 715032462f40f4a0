"""A training as a film: its numbers are those of each checkpoint alone; and one sentence as each of them sees it."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from course_lib.analysis import (
    ablate_heads,
    corpus_error_rate,
    diagonal_links,
    film,
    films,
    goals,
    strongest_links,
    word_spans,
    word_weights,
)
from course_lib.data import encode_pairs, make_batch
from course_lib.grammar import realize, trees
from course_lib.recording import KINDS, record_attention
from course_lib.translator import Translator, saved_steps
from tests.helpers.laws import raised, tells_apart

TREES = list(islice(trees(seed=3), 24))
TEXT = "The old woman gives the child a red apple."
GERMAN = "Die alte Frau gibt dem Kind einen roten Apfel."


@pytest.fixture(scope="module")
def course():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(films, "FEWEST", 5)
        return film("course", TREES)


# --- over all sentences -------------------------------------------------------------------------


def spans_of(translator, pair):
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, translator.tokenizer.tokens(text)) for text, words in texts]


def links_of(translator, pair):
    """(layer, head) → the links of one sentence, by itself."""
    batch = make_batch(encode_pairs(translator.tokenizer, [pair]))
    with torch.no_grad(), record_attention(translator.model) as maps:
        translator.model(batch.src, batch.tgt_in)
    words = word_weights(torch.stack(maps.cross, dim=1)[0], *spans_of(translator, pair))
    return {(layer, head): strongest_links(words[layer, head]) for layer in range(2) for head in range(4)}


def rates_of(translator, pairs):
    found = [links_of(translator, pair) for pair in pairs]
    gold = [pair.links for pair in pairs]
    rates = [corpus_error_rate([each[place] for each in found], gold) for place in found[0]]
    return torch.tensor(rates).unflatten(0, (2, 4))


def law_rates_are_those_of_each_checkpoint_alone(found):
    later = [realize(tree) for tree in TREES[12:]]
    for number, step in ((0, 100), (4, 597), (9, 5572)):
        assert list(found.translators)[number] == step
        torch.testing.assert_close(found.rates[number], rates_of(found.translators[step], later))
    links = [diagonal_links(len(pair.src_words), len(pair.tgt_words)) for pair in later]
    assert found.diagonal == corpus_error_rate(links, [pair.links for pair in later])
    assert found.sentences == 12


def test_rates_are_those_of_each_checkpoint_alone(course):
    mutants = [replace(course, rates=course.rates.roll(1, dims=dim)) for dim in (0, 1, 2)]
    tells_apart(law_rates_are_those_of_each_checkpoint_alone, course, *mutants)


def test_the_best_head_is_chosen_on_other_sentences(course):
    """The second half alone would choose otherwise at some step."""
    earlier = [realize(tree) for tree in TREES[:12]]
    for number, step in ((0, 100), (5, 933), (9, 5572)):
        rates = rates_of(course.translators[step], earlier)
        assert rates[course.best[number]] == rates.min()
        assert course.best_rates[number] == course.rates[number][course.best[number]]
    by_itself = [divmod(place, 4) for place in course.rates.flatten(1).argmin(dim=1).tolist()]
    assert by_itself != list(course.best)


def test_roles_are_counted_as_one_by_one(course):
    """The articles of the second half, by hand."""
    role = next(each for each in course.roles if (each.kind, each.relation) == ("encoder", "determiner → noun"))
    hits = []
    for tree in TREES[12:]:
        pair, translator = realize(tree), course.finished
        ids = torch.tensor([[*translator.tokenizer.encode(pair.src), 2]])
        with torch.no_grad(), record_attention(translator.model) as maps:
            translator.model.encode(ids)
        first = maps.encoder[role.layer][0, role.head].argmax(dim=-1).tolist()
        for goal in goals(tree, "encoder", *spans_of(translator, pair)):
            if goal.relation == role.relation:
                hits.append(first[goal.row] in goal.keys)
    assert len(hits) == role.cases > 10
    assert role.shares[-1] == pytest.approx(sum(hits) / len(hits)) and len(role.shares) == 10


def test_the_film_of_course_shows_it_learn():
    """Error falls below the diagonal's, and articles begin to find their nouns."""
    course = film("course", islice(trees(seed=1), 150))
    assert course.steps == saved_steps("course") and course.sentences == 75
    assert course.best_rates[0] > 0.7 > course.diagonal > 0.3 > 0.2 > course.best_rates[-1]
    assert all(later < earlier + 0.03 for earlier, later in zip(course.best_rates, course.best_rates[1:], strict=False))
    (role,) = [each for each in course.roles if (each.kind, each.relation) == ("encoder", "determiner → noun")]
    assert (role.layer, role.head) == (1, 1) and role.shares[0] < 0.4 < 0.85 < role.shares[-1]


@pytest.mark.parametrize(
    "name, given, message",
    [
        ("everyday", TREES, "expected checkpoints and 2 sentences or more, got 0 and 24"),
        ("course", TREES[:1], "expected checkpoints and 2 sentences or more, got 10 and 1"),
    ],
)
def test_a_film_needs_checkpoints_and_sentences(name, given, message):
    assert message in str(raised(ValueError, lambda: film(name, given)))


# --- one sentence -------------------------------------------------------------------------------


def test_all_steps_read_what_the_finished_one_writes(course):
    for step in course.steps:
        scene = course.scene(TEXT, step)
        assert scene.exploration.text == GERMAN and scene.exploration.tgt_tokens[-1] == "</s>"
        assert scene.written == course.translators[step].translate(TEXT, beam_size=1).text
    assert course.scene(TEXT, 100).written != GERMAN == course.scene(TEXT, 5572).written


def law_maps_are_the_checkpoints(scene):
    for step in (100, 597, 5572):
        translator = Translator.from_pretrained("course", step=step)
        ids = [translator.tokenizer.encode(TEXT) + [2]], [[1, *translator.tokenizer.encode(GERMAN)]]
        with torch.no_grad(), record_attention(translator.model) as maps:
            translator.model(*map(torch.tensor, ids))
        for kind in KINDS:
            ours, theirs = (torch.stack(getattr(each, kind)) for each in (scene(step).exploration.attention, maps))
            torch.testing.assert_close(ours, theirs[:, 0])


def test_maps_are_the_checkpoints(course):
    def law(scene):
        law_maps_are_the_checkpoints(lambda step: scene(TEXT, step))

    def own(text, step):
        return course.scene(text, step, own=True)

    def finished(text, step):
        return course.scene(text, 5572)

    law(course.scene)
    with pytest.raises(AssertionError):
        law(finished)
    with pytest.raises(AssertionError):
        law(own)


def test_its_own_text_is_looked_at_if_wanted(course):
    scene = course.scene(TEXT, 156, own=True)
    assert scene.exploration.text == scene.written != GERMAN
    assert len(scene.exploration.attention.cross[0][0]) == len(scene.exploration.tgt_tokens)


def test_heads_of_the_checkpoint_are_silent_and_those_of_the_finished_one_are_not(course):
    silent = [("cross", 1, head) for head in range(4)]
    for step in (597, 5572):
        scene = course.scene(TEXT, step, silent=silent)
        with ablate_heads(course.translators[step].model, silent):
            assert scene.written == course.translators[step].translate(TEXT, beam_size=1).text
        assert scene.written != course.scene(TEXT, step).written and scene.exploration.text == GERMAN


def test_a_forced_beginning_is_read_and_written(course):
    prefix = course.finished.tokenizer.encode("Das Kind")
    scene = course.scene(TEXT, 933, prefix=prefix)
    assert scene.written.startswith("Das Kind") and scene.exploration.tgt_ids[: len(prefix)] == prefix
    assert scene.exploration.text == course.scene(TEXT, 5572, prefix=prefix).written


def test_a_scene_that_was_seen_is_kept(course):
    for own in (False, True):
        seen = course.scene(TEXT, 933, own=own)
        assert course.scene(TEXT, 933, own=own).exploration is seen.exploration
    assert course.scene(TEXT, 156).exploration is not course.scene(TEXT, 933).exploration


def test_a_step_that_was_not_kept_is_refused(course):
    message = "expected a step among 100, 156, 244, 382, 597, 933, 1459, 2280, 3565, 5572, got 101"
    assert message in str(raised(ValueError, lambda: course.scene(TEXT, 101)))
