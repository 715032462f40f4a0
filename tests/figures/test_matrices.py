"""Laws of panels: each matrix as it is, where it belongs, on a scale it shares; and nothing touches anything."""

from dataclasses import FrozenInstanceError, replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from course_lib.figures import palette, styled
from course_lib.figures.matrices import Panel, attention_grid, attention_map, mask_grid, panels, signed_matrix
from tests.helpers.figures import SRC, TGT, lightness, some_weights, tick_labels

WORDS = ["▁The", "▁apple", "▁tree", "▁which", "▁the", "▁schläft", "▁gardener", "▁bought", "▁grows", ".", "</s>"]
SCORES = Panel(np.array([[-1.0, 0.0, 3.0, 0.5]] * 3) * [[1], [2], [3]], TGT, SRC, "scores", "signed", "key", "query")
WEIGHTS = Panel(some_weights(3, 4), TGT, SRC, "weights", "weights", "key")
MASK = Panel(np.tril(np.ones((3, 4), dtype=bool)), TGT, SRC, "mask", "mask")
CONTEXT = Panel(np.array([[0.25, -18.0], [1.0, -0.0], [2.0, 3.0]]), TGT, ["0", "1"], "context")
ALL = [SCORES, WEIGHTS, MASK, CONTEXT]


def matrices(figure):
    """The axes of the panels, in the order they were given, without the color bars."""
    return [axes for axes in figure.axes if axes.images]


def color_bars(figure):
    return [axes for axes in figure.axes if not axes.images]


def noise(rows, columns, *, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def changed(change):
    """A drawing of panels that is changed afterwards."""

    def draw(given, **named):
        figure = panels(given, **named)
        change(figure)
        return figure

    return draw


# --- the numbers ------------------------------------------------------------------------------------


def law_each_panel_shows_its_own_matrix(draw):
    figure = draw(ALL, title="t")
    for axes, panel in zip(matrices(figure), ALL, strict=True):
        (image,) = axes.images
        assert np.array_equal(image.get_array(), panel.values) and np.shape(image.get_array()) == panel.values.shape
        assert axes.get_title() == panel.name
        assert (axes.get_xlabel(), axes.get_ylabel()) == (panel.xlabel, panel.ylabel)
        assert tick_labels(axes.yaxis) == list(panel.rows) and list(axes.get_yticks()) == list(range(len(panel.rows)))
        assert tick_labels(axes.xaxis) == list(panel.columns)
        assert list(axes.get_xticks()) == list(range(len(panel.columns)))
        assert axes.get_ylim() == (len(panel.rows) - 0.5, -0.5) and axes.get_xlim() == (-0.5, len(panel.columns) - 0.5)
        assert axes.xaxis.get_tick_params()["labeltop"] and not axes.xaxis.get_tick_params()["labelbottom"]


def test_each_panel_shows_its_own_matrix():
    law_each_panel_shows_its_own_matrix(panels)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda given, title: panels(given[::-1], title=title),
        lambda given, title: panels([replace(panel, values=panel.values[::-1]) for panel in given], title=title),
        lambda given, title: panels([replace(panel, name="a") for panel in given], title=title),
        lambda given, title: panels([replace(panel, xlabel=panel.ylabel) for panel in given], title=title),
        lambda given, title: panels([replace(panel, columns=panel.columns[::-1]) for panel in given], title=title),
        changed(lambda figure: figure.axes[0].invert_yaxis()),
        changed(lambda figure: figure.axes[3].tick_params(labeltop=False, labelbottom=True)),
    ],
    ids=["reversed", "rows reversed", "names", "axis names", "labels reversed", "upside down", "keys below"],
)
def test_the_law_of_the_matrices_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_each_panel_shows_its_own_matrix(wrong)


def law_the_signed_share_one_scale_and_zero_is_white(draw):
    scores, weights, mask, context = (axes.images[0] for axes in matrices(draw(ALL, title="t")))
    assert scores.get_clim() == context.get_clim() == (-18.0, 18.0)
    assert scores.cmap.name == context.cmap.name == palette.SIGNED_MAP
    assert lightness(scores.to_rgba(0.0)[:3]) > 95
    assert weights.get_clim() == (0.0, 1.0) and weights.cmap.name == palette.WEIGHTS_MAP
    assert mask.get_clim() == (0.0, 1.0)


def _each_its_own_scale(figure):
    for axes in matrices(figure):
        values = np.abs(axes.images[0].get_array()).max()
        axes.images[0].set_clim(-values, values)


@pytest.mark.parametrize(
    "wrong",
    [
        changed(_each_its_own_scale),
        changed(lambda figure: figure.axes[1].images[0].set_clim(0, 0.5)),
        changed(lambda figure: [figure.axes[number].images[0].set_clim(-9, 18) for number in (0, 3)]),
        lambda given, title: panels(given[:3] + [replace(given[3], values=given[3].values / 2)], title=title),
    ],
    ids=["own scales", "weights to 0.5", "zero not white", "other largest"],
)
def test_the_law_of_the_scale_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_the_signed_share_one_scale_and_zero_is_white(wrong)


def test_the_signed_share_one_scale_and_zero_is_white():
    law_the_signed_share_one_scale_and_zero_is_white(panels)
    zero = matrices(panels([replace(CONTEXT, values=np.zeros((3, 2)))], title="all zero"))[0]
    assert zero.images[0].get_clim() == (-1.0, 1.0)


def law_each_kind_has_one_key(draw):
    both = [*ALL, replace(WEIGHTS, name="again"), replace(MASK, name="again")]
    figure = draw(both, title="t")
    assert [axes.get_xlabel() for axes in color_bars(figure)] == ["signed value", "weight"]
    bars = color_bars(draw([WEIGHTS, MASK, SCORES], title="t"))
    assert [axes.get_xlabel() for axes in sorted(bars, key=lambda axes: axes.get_position().x0)] == [
        "weight",
        "signed value",
    ], "keys stand in the order of the panels"
    assert len(figure.legends) == 1
    legend = figure.legends[0]
    tones = {
        text.get_text(): patch.get_facecolor()[:3]
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    assert set(tones) == {"may attend", "hidden"}
    shown = matrices(figure)[2].images[0]
    shown = shown.to_rgba(shown.get_array())[..., :3]  # (queries, keys, red green blue)
    assert np.allclose(shown[MASK.values], tones["may attend"]) and np.allclose(shown[~MASK.values], tones["hidden"])


def law_the_colors_mean_what_the_caller_says(draw):
    words = {"weights": "share of the gradient", "mask": ("flows", "blocked")}
    figure = draw(ALL, title="t", words=words)
    assert [axes.get_xlabel() for axes in color_bars(figure)] == ["signed value", "share of the gradient"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["flows", "blocked"]


def test_the_colors_mean_what_the_caller_says():
    law_the_colors_mean_what_the_caller_says(panels)
    with pytest.raises(AssertionError):
        law_the_colors_mean_what_the_caller_says(lambda given, title, words: panels(given, title=title))
    with pytest.raises(ValueError, match="words: expected kinds among signed, weights, mask, got .*weight"):
        panels(ALL, title="t", words={"weight": "share"})


def test_each_kind_has_one_key():
    law_each_kind_has_one_key(panels)
    for kinds, bars, legends in (([SCORES], 1, 0), ([WEIGHTS], 1, 0), ([MASK], 0, 1), ([MASK, SCORES], 1, 1)):
        figure = panels(kinds, title="t")
        assert (len(color_bars(figure)), len(figure.legends)) == (bars, legends)


@pytest.mark.parametrize(
    "wrong",
    [
        changed(lambda figure: figure.legends[0].remove()),
        changed(lambda figure: color_bars(figure)[0].remove()),
        lambda given, title: panels(sorted(given, key=lambda panel: panel.kind), title=title),
        changed(lambda figure: figure.colorbar(figure.axes[0].images[0], ax=figure.axes[0])),
        lambda given, title: panels(
            [replace(p, values=~p.values) if p.kind == "mask" else p for p in given], title=title
        ),
    ],
    ids=["no words", "no bar", "by kind", "two bars", "the opposite mask"],
)
def test_the_law_of_the_keys_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_each_kind_has_one_key(wrong)


def law_small_panels_show_their_numbers(draw):
    scores, weights, mask, context = matrices(draw(ALL, title="t"))
    written = [text.get_text() for text in context.texts]
    assert written == ["0.25", "−18", "1", "0", "2", "3"], "two digits, a true minus, no minus before 0"
    assert [text.get_text() for text in weights.texts] == [f"{weight:.2f}" for weight in WEIGHTS.values.flat]
    assert [text.get_position() for text in context.texts[:3]] == [(0, 0), (1, 0), (0, 1)]
    assert [text.get_text() for text in scores.texts[:4]] == ["−1", "0", "3", "0.5"] and not mask.texts
    assert context.texts[1].get_color() == "white" != context.texts[0].get_color()


@pytest.mark.parametrize(
    "wrong",
    [
        changed(lambda figure: [text.remove() for text in list(figure.axes[3].texts)]),
        changed(lambda figure: figure.axes[3].texts[1].set_text("-18")),
        changed(lambda figure: figure.axes[3].texts[3].set_text("−0")),
        changed(lambda figure: figure.axes[3].texts[0].set_position((0, 1))),
        changed(lambda figure: figure.axes[2].text(0, 0, "1")),
    ],
    ids=["none", "hyphen", "minus 0", "elsewhere", "in a mask"],
)
def test_the_law_of_numbers_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_small_panels_show_their_numbers(wrong)


def law_numbers_fit_their_cells(figure):
    figure.draw_without_rendering()
    for axes in matrices(figure):
        for text in axes.texts:
            (left, _), (right, _) = axes.transData.transform([(0, 0), (1, 0)])
            assert text.get_window_extent().width < right - left and text.get_fontsize() >= 7


def test_numbers_are_shown_where_they_fit():
    law_small_panels_show_their_numbers(panels)
    law_numbers_fit_their_cells(panels(ALL, title="t"))
    labels = [str(number) for number in range(8)]
    short, long = ([Panel(np.full((4, 8), x), SRC, labels, name) for name in "QKV"] for x in (-0.5, -0.000012345))
    crowded = panels(short, title="t")
    law_numbers_fit_their_cells(crowded)
    assert [len(axes.texts) for axes in matrices(crowded)] == [32, 32, 32]
    assert not any(axes.texts for axes in matrices(panels(long, title="t")))
    one_long = panels([*short[:2], long[2]], title="t")
    assert not any(axes.texts for axes in matrices(one_long)), "all of one kind, or none"
    assert not matrices(panels([Panel(np.eye(11), WORDS, WORDS, "large")], title="t"))[0].texts
    with pytest.raises(AssertionError):
        crowded.axes[0].texts[0].set_fontsize(20)
        law_numbers_fit_their_cells(crowded)


# --- the page ---------------------------------------------------------------------------------------


def _signed(height, width, count, **named):
    given = [Panel(noise(height, width, seed=n), range(height), range(width), f"step {n}") for n in range(count)]
    return [replace(panel, **named) for panel in given], 4  # in a row


QUERIES, KEYS = ["<s>", "Die", "Katze", "schläft", ".", "</s>"], ["▁The", "▁cat", "is", "sleeping", ".", "</s>"]
MASKS = [replace(MASK, values=np.tri(6, dtype=bool), rows=QUERIES, columns=QUERIES, xlabel="key") for _ in range(3)]
CASES = {
    "one": (ALL[:1], 4),
    "all kinds": (ALL, 4),
    "two rows": (ALL, 2),
    "query, key, value": _signed(4, 8, 3, rows=SRC, xlabel="dimension", ylabel="token"),
    "masks": (
        [*MASKS, replace(MASK, values=np.ones((6, 8), bool), rows=QUERIES, columns=[*KEYS, "<pad>", "<pad>"])],
        4,
    ),
    "long labels": ([Panel(some_weights(11, 11), WORDS, WORDS, f"head {n}", "weights", "key") for n in range(4)], 4),
    "heat": _signed(60, 32, 2, xlabel="dimension", ylabel="position"),
    "large": _signed(300, 512, 3),
    "crowded beside small": ([*_signed(4, 64, 1, rows=SRC)[0], *_signed(4, 8, 3, rows=SRC)[0]], 4),
    "unequal rows": ([_signed(n, n, 1)[0][0] for n in (6, 7, 3, 5)], 2),
    "long names": _signed(2, 2, 5, name="a name that is much longer than its matrix is wide"),
    "small numbers": ([replace(CONTEXT, values=CONTEXT.values * 1e-5)], 1),
}
LONG_TITLE = "a finding that needs more than one line because it says so much about so little, and then again, " * 2


@styled
def freshly_drawn(case, *, title="a finding"):
    given, per_row = CASES[case]
    figure = panels(given, title=title, per_row=per_row)
    return figure


drawn = cache(freshly_drawn)  # to look at only


@styled
def law_nothing_touches(figure: Figure, widest=11.05):
    figure.draw_without_rendering()
    boxes = [*(axes.get_tightbbox() for axes in figure.axes), figure._suptitle.get_window_extent()]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for one, other in combinations(boxes, 2):
        assert Bbox.intersection(one, other) is None, "overlap"
    for box in boxes:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, "cut off"
    assert figure.get_size_inches()[0] < widest, "too wide"


@styled
def law_labels_are_readable(figure: Figure):
    figure.draw_without_rendering()
    for axes in matrices(figure):
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels()
            boxes = [label.get_window_extent() for label in labels]
            for one, other in zip(boxes, boxes[1:], strict=False):
                if labels[0].get_rotation():  # slanted lines of text, a line's height from each other
                    assert (other.x0 - one.x0) * np.sin(np.pi / 4) > 0.13 * figure.dpi, "labels touch"
                else:
                    assert Bbox.intersection(one, other) is None, "labels touch"


@pytest.mark.parametrize("case", CASES)
def test_nothing_touches(case):
    law_nothing_touches(drawn(case))
    law_labels_are_readable(drawn(case))


def test_a_long_title_has_its_own_lines():
    figure = freshly_drawn("two rows", title=LONG_TITLE)
    assert figure.get_suptitle().count("\n") >= 2
    law_nothing_touches(figure)


def _move(axes, *, right=0.0, up=0.0):
    box = axes.get_position()
    axes.set_position((box.x0 + right, box.y0 + up, box.width, box.height))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda figure: _move(figure.axes[1], right=-0.08), "overlap"),
        (lambda figure: _move(figure.axes[0], up=0.1), "overlap"),
        (lambda figure: _move(figure.axes[1], up=-0.1), "overlap"),
        (lambda figure: figure.axes[0].set_title("words that reach into the panel beside it"), "overlap"),
        (lambda figure: figure.axes[0].set_ylabel("query\n" * 4), "cut off"),
        (lambda figure: figure.set_size_inches(12, 4), "too wide"),
    ],
)
def test_the_law_of_touching_can_fail(change, message):
    figure = freshly_drawn("all kinds")
    change(figure)
    with pytest.raises(AssertionError, match=message):
        law_nothing_touches(figure)


def test_the_law_of_labels_can_fail():
    level = freshly_drawn("long labels")
    for label in level.axes[0].get_xticklabels():
        label.set(rotation=0, ha="center")
    close = freshly_drawn("heat")
    close.axes[0].set_xticks(range(32))
    close.axes[0].set_xticklabels(range(32))
    for figure in (level, close):
        with pytest.raises(AssertionError, match="labels touch"):
            law_labels_are_readable(figure)


def law_equal_rows_have_equal_cells(figure):
    heights = {}
    for axes in matrices(figure):
        rows, columns = axes.images[0].get_array().shape
        cell_width, cell_height = axes.bbox.width / columns, axes.bbox.height / rows
        assert heights.setdefault(rows, cell_height) == pytest.approx(cell_height), "equal rows, other cells"
        assert max(rows, columns) > 40 or cell_width == pytest.approx(cell_height), "not square"


@pytest.mark.parametrize("case", CASES)
def test_equal_rows_have_equal_cells(case):
    law_equal_rows_have_equal_cells(drawn(case))


@pytest.mark.parametrize(("stretch", "message"), [((1.0, 0.8), "other cells"), ((0.8, 1.0), "not square")])
def test_the_law_of_the_cells_can_fail(stretch, message):
    figure = freshly_drawn("all kinds")
    box = figure.axes[1].get_position()
    figure.axes[1].set_position((box.x0, box.y0, stretch[0] * box.width, stretch[1] * box.height))
    with pytest.raises(AssertionError, match=message):
        law_equal_rows_have_equal_cells(figure)


MANY, FEW = [*WORDS, *WORDS, *WORDS], range(5)
PAGES = {
    "a map": lambda **named: attention_map(some_weights(11, 8), WORDS, WORDS[:8], **named),
    "a wide map": lambda **named: attention_map(some_weights(5, 33), FEW, MANY, **named),
    "a full page": lambda **named: attention_map(some_weights(5, 40), FEW, range(40), **named),
    "a crowded map": lambda **named: attention_map(some_weights(50, 60), range(50), range(60), **named),
    "one number": lambda **named: attention_map([[1.0]], ["—"], ["—"], **named),
    "eight heads": lambda **named: attention_grid(some_weights(8, 11, 11), WORDS, WORDS, **named),
    "six heads": lambda **named: attention_grid(some_weights(6, 3, 4), TGT, SRC, **named),
    "heads of many tokens": lambda **named: attention_grid(some_weights(4, 12, 33), WORDS + ["x"], MANY, **named),
    "a mask": lambda **named: mask_grid(np.tri(11, dtype=bool), WORDS, WORDS, **named),
    "signed": lambda **named: signed_matrix(noise(4, 8), SRC, range(8), xlabel="dimension", **named),
    "a crowded matrix": lambda **named: signed_matrix(noise(100, 512), range(100), range(512), **named),
}


@pytest.mark.parametrize("case", PAGES)
def test_one_matrix_or_all_heads_have_the_same_laws(case):
    figure = PAGES[case](title=LONG_TITLE)
    law_nothing_touches(figure, widest=13.05)
    law_labels_are_readable(figure)
    law_equal_rows_have_equal_cells(figure)


def test_heads_share_their_labels_and_leave_no_place_marked():
    figure = PAGES["six heads"](title="t")
    assert len(figure.axes) == 7 and places(figure) == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]
    for (column, row), axes in zip(places(figure), matrices(figure), strict=True):
        assert axes.yaxis.get_tick_params()["labelleft"] == axes.yaxis.label.get_visible() == (column == 0)
        assert axes.xaxis.get_tick_params()["labeltop"] == (row == 0) and axes.xaxis.get_label_position() == "bottom"


def places(figure):
    """Where the panels begin, as numbers of their column and their row."""
    corners = [(round(axes.bbox.x0), -round(axes.bbox.y1)) for axes in matrices(figure)]
    columns, rows = (sorted(set(numbers)) for numbers in zip(*corners, strict=True))
    return [(columns.index(x), rows.index(y)) for x, y in corners]


def test_panels_are_read_line_by_line():
    given, _ = _signed(2, 3, 5)
    assert places(panels(given, title="t", per_row=3)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    assert places(panels(given, title="t", per_row=1)) == [(0, row) for row in range(5)]
    assert places(panels(given[:3], title="t")) == [(0, 0), (1, 0), (2, 0)]
    assert places(drawn("long labels")) == [(0, 0), (1, 0), (0, 1), (1, 1)], "three and one are no rows of four"


def test_numbered_columns_are_thinned_out_and_words_are_not():
    for axes in matrices(drawn("heat")):
        assert tick_labels(axes.xaxis) == [str(number) for number in range(0, 32, 2)]
        assert list(axes.get_xticks()) == list(range(0, 32, 2))
    for axes in matrices(drawn("long labels")):
        assert tick_labels(axes.xaxis) == tick_labels(axes.yaxis) == WORDS


# --- one matrix, and all heads --------------------------------------------------------------------


def law_attention_map_shows_the_weights(draw):
    for weights, queries, keys in ((some_weights(3, 4), TGT, SRC), (some_weights(4, 4), ["a", "b", "c", "d"], SRC)):
        figure = draw(weights, queries, keys, title="t")
        axes = figure.axes[0]
        (image,) = axes.images
        assert np.shape(image.get_array()) == weights.shape and np.allclose(image.get_array(), weights)
        assert (image.norm.vmin, image.norm.vmax) == (0.0, 1.0)
        assert image.cmap.name == palette.WEIGHTS_MAP
        left, right, bottom, top = image.get_extent()
        assert left < right and top < bottom, "row 0 is on top, column 0 on the left"
        assert axes.get_ylim()[0] > axes.get_ylim()[1] and axes.get_xlim()[0] < axes.get_xlim()[1]
        assert tick_labels(axes.yaxis) == queries and list(axes.get_yticks()) == list(range(len(queries)))
        assert tick_labels(axes.xaxis) == keys and list(axes.get_xticks()) == list(range(len(keys)))
        shown = axes.xaxis.get_tick_params()
        assert shown["labeltop"] and not shown["labelbottom"]
        assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")


def _changed_map(change):
    def draw(*arguments, title):
        figure = attention_map(*arguments, title=title)
        change(figure.axes[0])
        return figure

    return draw


def test_attention_map_shows_the_weights():
    law_attention_map_shows_the_weights(attention_map)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda weights, queries, keys, title: attention_map(weights.T, keys, queries, title=title),
        _changed_map(lambda axes: axes.images[0].set_data(np.asarray(axes.images[0].get_array())[::-1])),
        _changed_map(lambda axes: axes.invert_yaxis()),
        _changed_map(lambda axes: axes.images[0].set_clim(0, 0.5)),
        _changed_map(lambda axes: axes.tick_params(labeltop=False, labelbottom=True)),
        _changed_map(lambda axes: axes.set_xticks(axes.get_xticks(), tick_labels(axes.xaxis)[::-1])),
        _changed_map(lambda axes: axes.set(xlabel="query", ylabel="key")),
    ],
    ids=["swapped axes", "reversed rows", "upside down", "other limits", "keys below", "keys reversed", "other names"],
)
def test_the_law_of_the_map_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_attention_map_shows_the_weights(wrong)


def law_attention_grid_shows_each_head(draw):
    weights = some_weights(6, 3, 4)
    figure = draw(weights, TGT, SRC, title="t")
    heads = [axes for axes in figure.axes if axes.get_xlabel().startswith("head")]
    assert [axes.get_xlabel() for axes in heads] == [f"head {number}" for number in range(6)]
    for axes, head in zip(heads, weights, strict=True):
        assert np.allclose(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0.0, 1.0)
    assert tick_labels(heads[0].xaxis) == SRC and tick_labels(heads[0].yaxis) == TGT


def test_attention_grid_shows_each_head():
    law_attention_grid_shows_each_head(attention_grid)
    assert len(attention_grid(some_weights(1, 3, 4), TGT, SRC, title="one head").axes) == 2  # and the color bar


@pytest.mark.parametrize(
    "wrong",
    [
        lambda weights, *labels, title: attention_grid(weights[::-1], *labels, title=title),
        lambda weights, *labels, title: attention_grid(weights[:1].repeat(6, 0), *labels, title=title),
        lambda weights, *labels, title: attention_grid(weights[:5], *labels, title=title),
    ],
)
def test_the_law_of_the_heads_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_attention_grid_shows_each_head(wrong)


def law_mask_grid_is_dark_where_a_query_may_attend(draw):
    mask = np.tril(np.ones((3, 4), dtype=bool))
    figure = draw(mask, TGT, SRC, title="t")
    (image,) = figure.axes[0].images
    shown = image.to_rgba(image.get_array())[..., :3]  # (queries, keys, red green blue)
    legend = {text.get_text(): patch.get_facecolor()[:3] for text, patch in
              zip(figure.legends[0].get_texts(), figure.legends[0].get_patches(), strict=True)}
    assert np.allclose(shown[mask], legend["may attend"]) and np.allclose(shown[~mask], legend["hidden"])
    assert lightness(legend["hidden"]) - lightness(legend["may attend"]) > 40


def test_mask_grid_is_dark_where_a_query_may_attend():
    law_mask_grid_is_dark_where_a_query_may_attend(mask_grid)
    with pytest.raises(AssertionError):
        law_mask_grid_is_dark_where_a_query_may_attend(
            lambda mask, *labels, **named: mask_grid(~mask, *labels, **named)
        )


def test_the_axes_of_a_mask_can_be_named():
    for names in ({}, {"xlabel": "tgt_in", "ylabel": "tgt_out"}):
        axes = mask_grid(np.tri(3, 4, dtype=bool), TGT, SRC, title="t", **names).axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(names.values() or ("key", "query"))


def law_signed_matrix_is_white_at_zero(draw):
    values = np.array([[-1.0, 0.0, 3.0], [0.5, -2.0, 1.0]])
    (image,) = draw(values, ["a", "b"], ["x", "y", "z"], title="t").axes[0].images
    assert np.allclose(image.get_array(), values) and image.norm.vmin == -image.norm.vmax
    shown = image.to_rgba(image.get_array())
    assert lightness(shown[0, 1, :3]) > 95 and shown[0, 0, 2] > shown[0, 0, 0] and shown[0, 2, 0] > shown[0, 2, 2]


def _own_limits(values, *labels, title):
    figure = signed_matrix(values, *labels, title=title)
    figure.axes[0].images[0].set_clim(values.min(), values.max())
    return figure


def test_signed_matrix_is_white_at_zero():
    law_signed_matrix_is_white_at_zero(signed_matrix)
    for wrong in (_own_limits, lambda values, *labels, title: signed_matrix(-values, *labels, title=title)):
        with pytest.raises(AssertionError):
            law_signed_matrix_is_white_at_zero(wrong)
    signed_matrix(np.zeros((50, 60)), range(50), range(60), title="all zero, labels thinned")


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "arguments", "message"),
    [
        (panels, [[]], "at least 1 panel and 1 per row, got 0 and 4"),
        (panels, [[replace(SCORES, kind="heat")]], "scores: expected kind signed, weights, mask, got 'heat'"),
        (
            panels,
            [[MASK, replace(SCORES, rows=SRC)]],
            r"scores: expected shape \(4, 4\) as the labels say, got \(3, 4\)",
        ),
        (
            panels,
            [[replace(WEIGHTS, values=some_weights(2, 3, 4))]],
            r"weights: expected shape \(3, 4\).*got \(2, 3, 4\)",
        ),
        (panels, [[replace(WEIGHTS, values=2 * np.eye(3, 4))]], r"weights: expected weights in 0\.\.1, got 0 to 2"),
        (panels, [[replace(MASK, values=np.eye(3, 4))]], "mask: expected a bool mask, True = may attend, got float64"),
        (panels, [[replace(MASK, columns=TGT)]], r"mask: expected shape \(3, 3\).*got \(3, 4\)"),
        (
            panels,
            [[replace(CONTEXT, values=np.full((3, 2), -np.inf))]],
            "context: expected finite values, got NaN or infinity",
        ),
        (panels, [[replace(CONTEXT, values=np.zeros((0, 2)), rows=[])]], r"context: .*got \(0, 2\)"),
        (attention_map, [some_weights(4, 3), TGT, SRC], r"shape \(3, 4\).*got \(4, 3\)"),
        (attention_map, [some_weights(2, 3, 4), TGT, SRC], r"got \(2, 3, 4\)"),
        (attention_map, [2 * np.eye(3, 4), TGT, SRC], r"weights in 0\.\.1, got 0 to 2"),
        (attention_map, [np.full((3, 4), np.nan), TGT, SRC], r"weights in 0\.\.1, got nan"),
        (attention_map, [np.zeros((0, 0)), [], []], r"got \(0, 0\)"),
        (attention_grid, [some_weights(3, 4), TGT, SRC], r"\(heads, 3, 4\).*got \(3, 4\)"),
        (mask_grid, [np.eye(3, 4), TGT, SRC], "bool mask, True = may attend, got float64"),
        (mask_grid, [np.eye(4, dtype=bool), TGT, SRC], r"got \(4, 4\)"),
        (signed_matrix, [np.full((3, 4), np.inf), TGT, SRC], "NaN or infinity"),
        (signed_matrix, [np.eye(4, 3), TGT, SRC], r"got \(4, 3\)"),
    ],
)
def test_bad_input_is_refused(draw, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(*arguments, title="t")


def test_a_row_holds_a_panel():
    with pytest.raises(ValueError, match="1 per row, got 1 and 0"):
        panels([SCORES], title="t", per_row=0)


def test_drawing_changes_no_panel():
    before = SCORES.values.copy()
    panels(ALL, title="t")
    assert np.array_equal(SCORES.values, before)
    with pytest.raises(FrozenInstanceError):
        SCORES.name = "other"
