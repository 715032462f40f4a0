"""The race viewer: who is ahead after which share of the training time, and at which distances."""

from collections.abc import Mapping, Sequence

import traitlets as t

from course_lib.figures import CourseFigure, curves
from course_lib.widgets.base import CourseWidget

History = Sequence[Mapping]  # of one run: for each measurement its steps, and valid_accuracy or by_distance
LOOKS = 5  # lines that can be told apart


class RaceViewer(CourseWidget):
    """Shows recorded trainings of equal time side by side, measurement after measurement.

    Args:
        races: by name, for each side the histories of its runs, as `final_results(record, "history")` has them. All
            have as many measurements, at equal shares of the time; each has `steps`, and `valid_accuracy` or
            `by_distance`, shares of right answers.
        distances: names of the distances that by_distance is about; longer lists end in None.
        moment: measurement to begin with, from 1.

    Raises:
        ValueError: if there is no race, a race has no sides or too many, numbers of measurements differ, or there is no
            such moment.
    """

    race = t.Unicode().tag(sync=True)
    moment = t.Int(1).tag(sync=True)
    data = t.Dict().tag(sync=True)  # for each race its sides: names, and means, lowest, highest, steps, profiles
    distances = t.List(t.Unicode()).tag(sync=True)
    moments = t.Int().tag(sync=True)

    def __init__(
        self,
        races: Mapping[str, Mapping[str, Sequence[History]]],
        *,
        distances: Sequence[str] = (),
        moment: int = 3,
    ):
        counts = {len(run) for sides in races.values() for runs in sides.values() for run in runs}
        if len(counts) != 1 or not all(1 <= len(sides) <= LOOKS for sides in races.values()):
            raise ValueError(f"expected races of 1 to {LOOKS} sides, all measured as often; got {sorted(counts)}")
        (moments,) = counts
        if not 1 <= moment <= moments:
            raise ValueError(f"moment must be in 1..{moments}, got {moment}")
        data = {
            race: [{"name": name, **_summary(runs, len(distances))} for name, runs in sides.items()]
            for race, sides in races.items()
        }
        super().__init__(race=next(iter(data)), moment=moment, moments=moments, data=data, distances=list(distances))

    def standing(self) -> list[tuple[str, float, float, float, int]]:
        """Name, mean, lowest and highest share of right answers, and steps so far, the best side first."""
        now = self.moment - 1
        keys = ("means", "lowest", "highest", "steps")
        rows = [(side["name"], *(side[key][now] for key in keys)) for side in self.data[self.race]]
        return sorted(rows, key=lambda row: -row[1])

    def picture(self) -> CourseFigure:
        """The race up to its end."""
        shares = [100 * (number + 1) / self.moments for number in range(self.moments)]
        lines = {
            side["name"]: (shares, [[100 * each for each in side[key]] for key in ("lowest", "means", "highest")])
            for side in self.data[self.race]
        }
        first, second = self.standing()[:2] if len(self.data[self.race]) > 1 else self.standing() * 2
        done = f"{100 * self.moment / self.moments:.0f} %"
        title = f"{self.race}, after {done} of the time: {first[0]} {first[1]:.0%}, {second[0]} {second[1]:.0%}"
        return curves(
            lines,
            xlabel="share of the training time (%)",
            ylabel="right answers (%)",
            title=title,
            marks={"now": (100 * self.moment / self.moments, None)},
        )


def _summary(runs: Sequence[History], distances: int) -> dict:
    """Of the runs of one side, for each measurement."""
    values = [[_value(entry) for entry in run] for run in runs]  # (runs, moments)
    moments = list(zip(*values, strict=True))
    profiles = []
    for entries in zip(*runs, strict=True):
        columns = zip(*(entry["by_distance"][:distances] for entry in entries if "by_distance" in entry), strict=True)
        profiles.append([sum(column) / len(column) for column in columns])
    return {
        "means": [sum(each) / len(each) for each in moments],
        "lowest": [min(each) for each in moments],
        "highest": [max(each) for each in moments],
        "steps": [round(sum(entry["steps"] for entry in each) / len(each)) for each in zip(*runs, strict=True)],
        "profiles": profiles,
    }


def _value(entry: Mapping) -> float:
    if "by_distance" not in entry:
        return entry["valid_accuracy"]
    shares = [share for share in entry["by_distance"] if share is not None]
    return sum(shares) / len(shares)
