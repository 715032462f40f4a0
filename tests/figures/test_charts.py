"""Laws of lines and bars: what is drawn are the numbers that went in, and all stays apart in grey."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from course_lib.figures import charts, row_charts
from tests.helpers.figures import SERIES, lightness, tick_labels

STEPS = np.array([1.0, 10.0, 100.0])
RUNS = np.array([[4.0, 2.0, 1.0], [6.0, 2.5, 1.5], [8.0, 6.0, 2.6]])  # (runs, points)
MARKS = {"here": (2, None), "there": (None, 1.5), "a point": (3, 4)}


def law_curves_stay_apart_in_grey(draw):
    figure = draw(SERIES, xlabel="step", ylabel="loss (nats)", title="t", log_y=True, marks=MARKS)
    axes = figure.axes[0]
    for line, (name, (x, y)) in zip(axes.lines, SERIES.items(), strict=False):
        assert line.get_label() == name
        assert np.array_equal(line.get_xdata(), x) and np.array_equal(line.get_ydata(), y)
    drawn = [(line.get_linestyle(), line.get_marker(), line._unscaled_dash_pattern) for line in axes.lines[:3]]
    assert len({marker for _, marker, _ in drawn}) == len({str(dash) for *_, dash in drawn}) == 3
    assert axes.get_yscale() == "log" and (axes.get_xlabel(), axes.get_ylabel()) == ("step", "loss (nats)")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*SERIES, *MARKS]
    assert len({str(line._unscaled_dash_pattern) for line in axes.lines[3:5]}) == 2
    assert list(axes.lines[5].get_xydata()[0]) == [3, 4]


def law_a_long_legend_covers_no_line(draw):
    series = {f"name {number}": (STEPS, RUNS + number) for number in range(8)}
    figure = draw(series, xlabel="x", ylabel="y", title="t", marks=MARKS)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend().get_window_extent()
    assert not legend.overlaps(axes.bbox) and legend.x1 <= figure.bbox.x1 and legend.y0 >= 0


def test_a_long_legend_covers_no_line(monkeypatch):
    law_a_long_legend_covers_no_line(charts.curves)
    monkeypatch.setattr(charts, "LEGEND_INSIDE", 99)
    with pytest.raises(AssertionError):
        law_a_long_legend_covers_no_line(charts.curves)


def _one_style(*arguments, **named):
    figure = charts.curves(*arguments, **named)
    for line in figure.axes[0].lines:
        line.set(linestyle="-", marker="o")
    return figure


def test_curves_stay_apart_in_grey():
    law_curves_stay_apart_in_grey(charts.curves)
    for wrong in (_one_style, lambda series, **named: charts.curves(dict(reversed(series.items())), **named)):
        with pytest.raises(AssertionError):
            law_curves_stay_apart_in_grey(wrong)


def law_the_line_is_the_mean_and_the_band_spans_the_runs(draw):
    figure = draw({"ours": (STEPS, RUNS), "theirs": (STEPS, 2 * RUNS[0])}, xlabel="step", ylabel="loss", title="t")
    axes = figure.axes[0]
    ours, theirs = axes.lines
    assert np.array_equal(ours.get_xdata(), STEPS) and np.allclose(ours.get_ydata(), [6.0, 3.5, 1.7])
    assert np.array_equal(theirs.get_ydata(), [8.0, 4.0, 2.0])
    assert len(axes.collections) == 1, "one band, none around a single run"
    band = axes.collections[0]
    (path,) = band.get_paths()
    edges = {x: sorted({y for x_, y in path.vertices if x_ == x}) for x in STEPS}
    assert edges == {1.0: [4.0, 8.0], 10.0: [2.0, 6.0], 100.0: [1.0, 2.6]}
    assert tuple(band.get_facecolor()[0, :3]) == to_rgba(ours.get_color())[:3], "the line's own color"
    assert 0.15 < band.get_facecolor()[0, 3] < 0.5 < band.get_edgecolor()[0, 3], "the grid and other lines show through"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "theirs"]


def test_the_line_is_the_mean_and_the_band_spans_the_runs():
    law_the_line_is_the_mean_and_the_band_spans_the_runs(charts.curves)


def _other_runs(change):
    def draw(series, **named):
        return charts.curves({name: (x, change(np.asarray(y))) for name, (x, y) in series.items()}, **named)

    return draw


def _changed_band(change):
    def draw(series, **named):
        figure = charts.curves(series, **named)
        change(figure.axes[0])
        return figure

    return draw


@pytest.mark.parametrize(
    "wrong",
    [
        _other_runs(lambda y: y[:2] if y.ndim == 2 else y),
        _other_runs(lambda y: np.median(y, axis=0) if y.ndim == 2 else y),
        _other_runs(lambda y: y.mean(axis=0) + y.std(axis=0) * [[-1], [0], [1]] if y.ndim == 2 else y),
        _changed_band(lambda axes: axes.collections[0].remove()),
        _changed_band(lambda axes: axes.collections[0].set_facecolor((0.5, 0.5, 0.5, 0.25))),
        _changed_band(lambda axes: axes.collections[0].set_alpha(1.0)),
        _changed_band(lambda axes: axes.legend([*axes.lines, *axes.collections], ["ours", "theirs", "band"])),
    ],
    ids=["a run less", "median", "deviation", "no band", "grey", "opaque", "in the legend"],
)
def test_the_law_of_runs_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_the_line_is_the_mean_and_the_band_spans_the_runs(wrong)


def law_a_band_is_seen_in_grey(draw):
    figure = draw({str(number): (STEPS, RUNS + number) for number in range(8)}, xlabel="x", ylabel="y", title="t")
    for band in figure.axes[0].collections:
        for *color, alpha in (band.get_facecolor()[0], band.get_edgecolor()[0]):
            assert lightness(alpha * np.array(color) + 1 - alpha) < 98, "on a white page"


def test_a_band_is_seen_in_grey():
    law_a_band_is_seen_in_grey(charts.curves)
    with pytest.raises(AssertionError, match="white page"):
        law_a_band_is_seen_in_grey(_changed_band(lambda axes: axes.collections[7].set_alpha(0.05)))


def test_one_run_is_a_line_without_a_band():
    alone, plain = (
        charts.curves({"a": (STEPS, y)}, xlabel="x", ylabel="y", title="t").axes[0] for y in (RUNS[:1], RUNS[0])
    )
    assert np.array_equal(alone.lines[0].get_xydata(), plain.lines[0].get_xydata()) and not alone.collections


@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_each_axis_is_logarithmic_where_asked(log_x, log_y):
    named = dict(xlabel="x", ylabel="y", title="t", marks={"here": (2, 3)}, log_x=log_x, log_y=log_y)
    axes = charts.curves({"a": (STEPS, RUNS)}, **named).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log" if log_x else "linear", "log" if log_y else "linear")


def law_bars_show_their_values(draw):
    figure = draw(["a", "b"], [3.0, 1.5], xlabel="MB", title="t", reference=("limit", 2), value_format="{:.1f}")
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [3.0, 1.5]
    assert tick_labels(axes.yaxis) == ["a", "b"] and axes.yaxis_inverted() and axes.get_xlim()[0] == 0
    assert [text.get_text() for text in axes.texts] == ["3.0", "1.5"]
    assert figure.legends[0].get_texts()[0].get_text() == "limit (2.0)" and set(axes.lines[0].get_xdata()) == {2}


def test_bars_show_their_values():
    law_bars_show_their_values(row_charts.bars)
    unnamed = row_charts.bars(["a"], [3.0], xlabel="MB", title="t", reference=2.0)
    assert unnamed.legends[0].get_texts()[0].get_text() == "reference (2)"
    with pytest.raises(AssertionError):
        law_bars_show_their_values(lambda labels, values, **named: row_charts.bars(labels, sorted(values), **named))


def law_dots_are_the_runs_and_their_mean(draw):
    figure = draw({"a": [30.0, 34.0, 33.5], "b": [20.0]}, xlabel="BLEU", title="t", reference=("whole", 31))
    axes = figure.axes[0]
    assert tick_labels(axes.yaxis) == ["a", "b"] and axes.yaxis_inverted() and axes.get_xlim()[0] > 15
    drawn = [(line.get_marker(), list(line.get_xdata()), set(line.get_ydata())) for line in axes.lines]
    assert drawn[:2] == [("D", [32.5], {0}), ("o", [30, 34, 33.5], {0})]
    assert drawn[2:4] == [("D", [20], {1}), ("o", [20], {1})]
    assert [text.get_text() for text in axes.texts] == ["32.5", "20.0"]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["mean", "a run", "whole (31.0)"] and set(axes.lines[4].get_xdata()) == {31}


def law_intervals_are_a_number_between_two_ends(draw):
    figure = draw({"a": (90.0, 80.0, 95.0), "b": (50.0, 50.0, 51.0)}, xlabel="%", title="t", reference=60)
    axes = figure.axes[0]
    assert tick_labels(axes.yaxis) == ["a", "b"] and axes.yaxis_inverted()
    (ends,) = (collection.get_segments() for collection in axes.collections)
    assert [segment.tolist() for segment in ends] == [[[80, 0], [95, 0]], [[50, 1], [51, 1]]]
    assert list(axes.lines[0].get_xdata()) == [90, 50]
    assert [text.get_text() for text in axes.texts] == ["90.0", "50.0"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["reference (60.0)"]


def test_intervals_are_a_number_between_two_ends():
    law_intervals_are_a_number_between_two_ends(row_charts.intervals)
    for broken in (lambda v, low, high: (low, low, high), lambda v, low, high: (v, low, v)):
        with pytest.raises(AssertionError):
            law_intervals_are_a_number_between_two_ends(
                lambda rows, *, broken=broken, **named: row_charts.intervals(
                    {name: broken(*row) for name, row in rows.items()}, **named
                )
            )


@pytest.mark.parametrize("change", [sorted, lambda runs: runs[:2], lambda runs: runs + [31.0]])
def test_dots_are_the_runs_and_their_mean(change):
    law_dots_are_the_runs_and_their_mean(row_charts.dots)
    with pytest.raises(AssertionError):
        law_dots_are_the_runs_and_their_mean(
            lambda rows, **named: row_charts.dots({name: change(runs) for name, runs in rows.items()}, **named)
        )


def law_stacked_bars_add_up(draw):
    rows = {"base": {"x": 3.0, "y": 1.0}, "big": {"x": 4.0, "y": 6.0}}
    figure = draw(rows, xlabel="M", title="t", value_format="{:.0f}")
    axes = figure.axes[0]
    drawn = sorted((round(bar.get_y() + bar.get_height() / 2), bar.get_x(), bar.get_width()) for bar in axes.patches)
    assert drawn == [(0, 0, 3), (0, 3, 1), (1, 0, 4), (1, 4, 6)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y"]
    assert [text.get_text() for text in axes.texts][-2:] == ["4", "10"]


def test_stacked_bars_add_up():
    law_stacked_bars_add_up(row_charts.stacked_bars)
    with pytest.raises(AssertionError):
        law_stacked_bars_add_up(
            lambda rows, **named: row_charts.stacked_bars({name: rows["big"] for name in rows}, **named)
        )


# --- bad input -------------------------------------------------------------------------------------


CURVE = dict(xlabel="x", ylabel="y", title="t")


def _curve(x, y, **named):
    return charts.curves({"a": (x, y)}, **CURVE, **named)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: charts.curves({}, xlabel="x", ylabel="y", title="t"), "1 to 8 series, got 0"),
        (lambda: charts.curves({"a": ([1, 2], [1])}, xlabel="x", ylabel="y", title="t"), r"a: .*got \(2,\) and \(1,\)"),
        (lambda: charts.curves(SERIES, xlabel="x", ylabel="y", title="t", marks={"m": (None, None)}), "m: .*neither"),
        (lambda: _curve([1, 2], [[1], [2]]), r"a: .*\(runs, points\), got \(2,\) and \(2, 1\)"),
        (lambda: _curve([1, 2], np.ones((1, 1, 2))), r"a: .*got \(2,\) and \(1, 1, 2\)"),
        (lambda: _curve([[1, 2]], [[1, 2]]), r"a: expected x \(points,\).*got \(1, 2\) and \(1, 2\)"),
        (lambda: _curve([1, 2], np.ones((0, 2))), r"a: .*got \(2,\) and \(0, 2\)"),
        (lambda: _curve([], []), r"a: .*got \(0,\) and \(0,\)"),
        (lambda: _curve([1, 2], 3.0), r"a: .*got \(2,\) and \(\)"),
        (lambda: _curve([1, 2], [3, 0], log_y=True), "a: expected y above 0 on a logarithmic axis, got 0"),
        (lambda: _curve([1, 2], [[3, 1], [3, -2]], log_y=True), "a: expected y above 0 .*got -2"),
        (lambda: _curve([0, 2], [3, 1], log_x=True), "a: expected x above 0 on a logarithmic axis, got 0"),
        (lambda: _curve([1, 2], [3, 1], log_x=True, marks={"m": (0, None)}), "m: expected x above 0"),
        (lambda: _curve([1, 2], [3, 1], log_y=True, marks={"m": (1, -1)}), "m: expected y above 0"),
        (lambda: charts.curves({str(n): (STEPS, STEPS) for n in range(9)}, **CURVE), "1 to 8 series, got 9"),
        (lambda: row_charts.bars(["a"], [1, 2], xlabel="x", title="t"), r"1 labels and values \(2,\)"),
        (lambda: row_charts.bars(["a"], [-1], xlabel="x", title="t"), r"at least 0, got \[-1.0\]"),
        (lambda: row_charts.stacked_bars({"a": {"x": 1}, "b": {"y": 1}}, xlabel="x", title="t"), "the same parts"),
        (lambda: row_charts.intervals({}, xlabel="x", title="t"), "(value, low, high)"),
        (lambda: row_charts.intervals({"a": (1, 2, 3)}, xlabel="x", title="t"), "low <= value <= high"),
        (lambda: row_charts.intervals({"a": (2, 1, float("nan"))}, xlabel="x", title="t"), "low <= value <= high"),
        (lambda: row_charts.dots({}, xlabel="x", title="t"), "one run or more in each row, got {}"),
        (lambda: row_charts.dots({"a": []}, xlabel="x", title="t"), "one run or more in each row"),
        (lambda: row_charts.dots({"a": [1, float("nan")]}, xlabel="x", title="t"), "finite values"),
        (lambda: row_charts.stacked_bars({}, xlabel="x", title="t"), "the same parts"),
    ],
)
def test_bad_input_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
