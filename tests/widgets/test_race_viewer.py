"""The race viewer without a browser: what it shows is what was recorded, summed up over runs."""

import math

import pytest

from course_lib.widgets import RaceViewer
from tests.helpers.laws import raised, tells_apart
from tests.helpers.stored import stored_words

DISTANCES = ["1", "2-3", "4-7"]


def recorded(offset, moments=4):
    """Invented histories of two runs of a side, with a distance that no story has."""
    return [
        [
            {"steps": 10 * moment, "by_distance": [offset + moment / 10 + run / 100, offset, 0.1, None]}
            for moment in range(1, moments + 1)
        ]
        for run in range(2)
    ]


def translated(offset, moments=4):
    return [[{"steps": 5 * moment, "valid_accuracy": offset + moment / 20} for moment in range(1, moments + 1)]]


RACES = {
    "recall": {"near": recorded(0.1), "far": recorded(0.5)},
    "translation": {"slow": translated(0.1), "quick": translated(0.3)},
}


def viewer(**options):
    return RaceViewer(RACES, distances=DISTANCES, **options)


def law_standing_is_the_records(standing):
    shown = viewer(moment=4)
    rows = standing(shown)
    assert [row[0] for row in rows] == ["far", "near"]
    runs = [(0.5 + 0.4 + run / 100 + 0.5 + 0.1) / 3 for run in range(2)]
    name, mean, lowest, highest, steps = rows[0]
    assert (lowest, highest, steps) == (pytest.approx(runs[0]), pytest.approx(runs[1]), 40)
    assert mean == pytest.approx(sum(runs) / 2)
    shown.race, shown.moment = "translation", 2
    assert [row[0] for row in standing(shown)] == ["quick", "slow"]
    assert standing(shown)[0][1:] == (pytest.approx(0.4), pytest.approx(0.4), pytest.approx(0.4), 10)


def of_the_first_moment(shown):
    shown.moment = 1
    return RaceViewer.standing(shown)


def worst_first(shown):
    return RaceViewer.standing(shown)[::-1]


def test_standing_is_the_records():
    tells_apart(law_standing_is_the_records, RaceViewer.standing, of_the_first_moment, worst_first)


def test_profiles_are_means_over_runs_without_what_is_missing():
    side = viewer().data["recall"][0]
    assert side["name"] == "near" and len(side["profiles"]) == 4
    assert side["profiles"][1] == pytest.approx([0.1 + 0.2 + 0.005, 0.1, 0.1])
    assert viewer().data["translation"][0]["profiles"] == [[]] * 4
    assert all(math.isfinite(each) for each in side["means"])


def test_its_picture_shows_the_race_and_where_it_stands():
    figure = viewer(moment=2).picture()
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert lines["near"][1] == pytest.approx(100 * viewer().data["recall"][0]["means"][1])
    assert "recall, after 50 % of the time: far" in figure.get_suptitle().replace("\n", " ")
    assert stored_words(viewer()).startswith("recall, after 75 % of the time: far")


@pytest.mark.parametrize(
    "message, races, options",
    [
        ("moment must be in 1..4, got 5", RACES, dict(moment=5)),
        ("all measured as often; got [3, 4]", {"a": {"b": translated(0, 3), "c": translated(0)}}, {}),
        ("races of 1 to 5 sides", {"a": {str(number): translated(0) for number in range(6)}}, {}),
        ("races of 1 to 5 sides", {}, {}),
    ],
)
def test_what_is_no_race_is_refused(message, races, options):
    assert message in str(raised(ValueError, lambda: RaceViewer(races, **options)))
