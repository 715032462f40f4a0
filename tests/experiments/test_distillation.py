"""The students of the record: equal work for every side, and nothing that a teacher or a student has seen is scored."""

import math
from unittest import mock

import pytest

from course_lib.data import Pair
from course_lib.experiments import distillation
from course_lib.experiments.distillation import GRID, Texts, student_config, texts
from tests.helpers.laws import tells_apart

SMALL = dict(ITS_PAIRS=600, LABELED=60, UNLABELED=150, HELD_OUT=40)


@pytest.fixture(scope="module")
def small():
    with mock.patch.multiple(distillation, **SMALL):
        return texts.__wrapped__()


def law_no_sentence_is_in_two_parts(given):
    parts = [given.labeled, given.unlabeled, given.valid, given.test]
    for side in (0, 1):
        sentences = [{pair[side] for pair in part} for part in parts]
        assert len(set.union(*sentences)) == sum(map(len, sentences))


def test_no_sentence_is_in_two_parts(small):
    mixed = Texts(small.labeled, [*small.unlabeled, small.test[0]], small.valid, small.test)
    tells_apart(law_no_sentence_is_in_two_parts, small, mixed)
    assert [len(part) for part in vars(small).values()] == [60, 150, 40, 40]
    assert all(len(pair.src.split()) <= distillation.LONGEST for part in vars(small).values() for pair in part)


def law_the_teacher_has_not_read_what_is_new(given):
    with mock.patch.multiple(distillation, **SMALL):
        known = distillation.load_course(num_train=600)
    read = {pair.tgt for pair in known.train}
    assert not read & {pair.tgt for pair in (*given.unlabeled, *given.valid, *given.test)}


def test_the_teacher_has_not_read_what_is_new(small):
    leaking = Texts(small.labeled, small.labeled, small.valid, small.test)
    tells_apart(law_the_teacher_has_not_read_what_is_new, small, leaking)


def test_each_side_learns_from_what_it_is_named_after():
    given = Texts([Pair("a", "1"), Pair("b", "2")], [Pair("c", "3")], [], [])
    with (
        mock.patch.object(distillation, "texts", return_value=given),
        mock.patch.object(distillation, "translated", lambda teacher, sources: [Pair(src, "?") for src in sources]),
    ):
        found = {
            name: {pair.src: pair.tgt for pair in distillation.pairs_to_learn.__wrapped__(choices["material"])}
            for name, choices in GRID.sides.items()
        }
    true, more = {"a": "1", "b": "2"}, {"c": "3"}
    assert found["alone"] == found["word level"] == true
    assert found["sequence level, same sentences"] == {"a": "?", "b": "?"}
    assert found["sequence level, 10,000 more"] == true | {"c": "?"}
    assert found["10,000 more true pairs"] == true | more


def law_the_steps_are_those_of_the_grid(kind):
    """Whatever the number of pairs."""
    for count in (30, 100, 2000):
        batches = kind([([7] * 10, [8] * 9)] * count, 50)  # five pairs a batch
        for steps in (20, 33):
            batches.steps = steps
            assert sum(len(batches.plan(epoch)) for epoch in range(math.ceil(5 * steps / count))) == steps


def test_the_steps_are_those_of_the_grid():
    tells_apart(law_the_steps_are_those_of_the_grid, distillation._Limited, distillation.BucketedBatches)


@pytest.mark.parametrize("pairs", [40, 150])
def test_every_student_makes_as_many_steps(small, pairs):
    with mock.patch.object(distillation, "fit", wraps=distillation.fit) as fit:
        distillation.train_student((small.labeled + small.unlabeled)[:pairs], rate=1e-3, steps=5)
    (_, batches, config), _ = fit.call_args
    assert sum(len(batches.plan(epoch)) for epoch in range(config.epochs)) == 5


def test_the_student_has_less_than_half_of_the_teacher():
    config = student_config(2000)
    assert 0.4 < config.num_parameters / 919_040 < 0.5


def test_each_side_has_a_rate_of_its_own():
    assert all(isinstance(choices["rate"], tuple) for choices in GRID.sides.values())


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_a_run_reports_what_the_record_needs(small, weight, tmp_path):
    distillation.pairs_to_learn.cache_clear()
    with mock.patch.object(distillation, "texts", return_value=small):
        results = distillation.run(dict(material="true", rate=1e-3, steps=2, weight=weight), 0, tmp_path)
    distillation.pairs_to_learn.cache_clear()
    assert results["pairs"] == 60 and results["parameters"] == student_config(2000).num_parameters
    assert 0 <= results["valid"] <= 100 and 0 <= results["test"] <= 1 and 0 <= results["bleu"] <= 100
    assert results["valid_loss"] > 1
