"""The students of the record: equal work for every side, and nothing that a teacher or a student has seen is scored."""

import math
from unittest import mock

import pytest

from course_lib.data import Pair
from course_lib.experiments import distillation
from course_lib.experiments.distillation import GRID, Texts, make_texts, student_config, texts
from tests.helpers.laws import tells_apart

SMALL = dict(ITS_PAIRS=600, LABELED=60, UNLABELED=150, HELD_OUT=40)


@pytest.fixture(scope="module")
def small():
    with mock.patch.multiple(distillation, **SMALL):
        return make_texts()


def replaced(given, **parts):
    return Texts(**vars(given) | parts)


def law_no_sentence_is_in_two_parts(given):
    parts = [given.labeled, given.unlabeled, given.valid, given.test]
    for side in (0, 1):
        sentences = [{pair[side] for pair in part} for part in parts]
        assert len(set.union(*sentences)) == sum(map(len, sentences))


def test_no_sentence_is_in_two_parts(small):
    mixed = replaced(small, unlabeled=[*small.unlabeled, small.test[0]])
    tells_apart(law_no_sentence_is_in_two_parts, small, mixed)
    assert [len(part) for part in vars(small).values()] == [60, 150, 40, 40, 210]
    assert all(len(pair.src.split()) <= distillation.LONGEST for part in vars(small).values() for pair in part)


def law_the_teacher_has_not_read_what_is_new(given):
    with mock.patch.multiple(distillation, **SMALL):
        known = distillation.load_course(num_train=600)
    read = {pair.tgt for pair in known.train}
    assert not read & {pair.tgt for pair in (*given.unlabeled, *given.valid, *given.test)}


def test_the_teacher_has_not_read_what_is_new(small):
    leaking = replaced(small, unlabeled=small.labeled)
    tells_apart(law_the_teacher_has_not_read_what_is_new, small, leaking)


def test_the_teacher_translates_all_sources_in_their_order(small):
    assert [pair.src for pair in small.by_teacher] == [pair.src for pair in (*small.labeled, *small.unlabeled)]
    right = sum(pair.tgt == true.tgt for pair, true in zip(small.by_teacher, small.labeled, strict=False))
    assert right > 0.9 * len(small.labeled)


def test_texts_are_made_once(small, tmp_path):
    with mock.patch.object(distillation, "make_texts", return_value=small) as make:
        first, second = texts(tmp_path), texts(tmp_path)
    assert make.call_count == 1 and first == second
    assert [pair.tgt for pair in first.test] == [pair.tgt for pair in small.test]


def test_each_side_learns_from_what_it_is_named_after():
    labeled, unlabeled = [Pair("a", "1"), Pair("b", "2")], [Pair("c", "3")]
    given = Texts(labeled, unlabeled, [], [], [Pair(src, "?") for src in "abc"])
    found = {
        name: {pair.src: pair.tgt for pair in distillation.pairs_to_learn(given, choices["material"])}
        for name, choices in GRID.sides.items()
    }
    true, more = {"a": "1", "b": "2"}, {"c": "3"}
    assert found["alone"] == found["word level"] == true
    assert found["sequence level, same sentences"] == {"a": "?", "b": "?"}
    assert found["sequence level, 4,000 more"] == true | {"c": "?"}
    assert found["4,000 more true pairs"] == true | more


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


@pytest.mark.parametrize("options, asked", [({}, 0.1), ({"smoothing": 0.0}, 0.0)])
def test_labels_are_smoothed_as_the_side_asks(small, options, asked):
    with mock.patch.object(distillation, "fit") as fit:
        distillation.train_student(small.labeled, rate=1e-3, steps=5, **options)
    assert fit.call_args.args[2].label_smoothing == asked


def test_the_student_has_about_a_third_of_the_teacher():
    assert 0.3 < student_config(2000).num_parameters / 919_040 < 0.37


def test_each_side_has_a_rate_of_its_own():
    assert all(isinstance(choices["rate"], tuple) for choices in GRID.sides.values())


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_a_run_reports_what_the_record_needs(small, weight, tmp_path):
    with mock.patch.object(distillation, "texts", return_value=small) as kept:
        results = distillation.run(dict(material="true", rate=1e-3, steps=2, weight=weight), 0, tmp_path / "run")
    kept.assert_called_once_with(tmp_path)
    assert results["pairs"] == 60 and results["parameters"] == student_config(2000).num_parameters
    assert results["valid"] < -1 and 0 <= results["test"] <= 1 and 0 <= results["bleu"] <= 100
