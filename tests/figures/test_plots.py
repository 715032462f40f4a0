"""Laws of the matrices of attention: what is drawn are the numbers that went in, where they belong."""

import numpy as np
import pytest

from course_lib.figures import canvas, plots
from tests.figures.test_canvas import SRC, TGT, lightness, some_weights, tick_labels

LOW, HIGH = 0.0, 1.0


def law_attention_map_shows_the_weights(draw):
    for weights, queries, keys in ((some_weights(3, 4), TGT, SRC), (some_weights(4, 4), ["a", "b", "c", "d"], SRC)):
        figure = draw(weights, queries, keys, title="t")
        axes = figure.axes[0]
        (image,) = axes.images
        assert np.shape(image.get_array()) == weights.shape and np.allclose(image.get_array(), weights)
        assert (image.norm.vmin, image.norm.vmax) == (LOW, HIGH)
        assert image.cmap.name == canvas.WEIGHTS_MAP
        left, right, bottom, top = image.get_extent()
        assert left < right and top < bottom, "row 0 is on top, column 0 on the left"
        assert axes.get_ylim()[0] > axes.get_ylim()[1] and axes.get_xlim()[0] < axes.get_xlim()[1]
        assert tick_labels(axes.yaxis) == queries and list(axes.get_yticks()) == list(range(len(queries)))
        assert tick_labels(axes.xaxis) == keys and list(axes.get_xticks()) == list(range(len(keys)))
        shown = axes.xaxis.get_tick_params()
        assert shown["labeltop"] and not shown["labelbottom"]
        assert (axes.get_ylabel(), axes.get_xlabel()) == ("query", "key")


def _changed(change):
    def draw(*arguments, title):
        figure = plots.attention_map(*arguments, title=title)
        change(figure.axes[0])
        return figure

    return draw


def test_attention_map_shows_the_weights():
    law_attention_map_shows_the_weights(plots.attention_map)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda weights, queries, keys, title: plots.attention_map(weights.T, keys, queries, title=title),
        _changed(lambda axes: axes.images[0].set_data(np.asarray(axes.images[0].get_array())[::-1])),
        _changed(lambda axes: axes.invert_yaxis()),
        _changed(lambda axes: axes.images[0].set_clim(0, 0.5)),
        _changed(lambda axes: axes.tick_params(labeltop=False, labelbottom=True)),
        _changed(lambda axes: axes.set_xticks(axes.get_xticks(), tick_labels(axes.xaxis)[::-1])),
        _changed(lambda axes: axes.set(xlabel="query", ylabel="key")),
    ],
    ids=["swapped axes", "reversed rows", "upside down", "other limits", "keys below", "keys reversed", "other names"],
)
def test_the_law_of_the_map_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_attention_map_shows_the_weights(wrong)


def law_attention_grid_shows_each_head(draw):
    weights = some_weights(6, 3, 4)
    figure = draw(weights, TGT, SRC, title="t")
    panels = [axes for axes in figure.axes if axes.get_xlabel().startswith("head")]
    assert [axes.get_xlabel() for axes in panels] == [f"head {number}" for number in range(6)]
    for axes, head in zip(panels, weights, strict=True):
        assert np.allclose(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (LOW, HIGH)
    assert tick_labels(panels[0].xaxis) == SRC and tick_labels(panels[0].yaxis) == TGT


def test_attention_grid_shows_each_head():
    law_attention_grid_shows_each_head(plots.attention_grid)
    assert len(plots.attention_grid(some_weights(1, 3, 4), TGT, SRC, title="one head").axes) == 2  # and the color bar


@pytest.mark.parametrize(
    "wrong",
    [
        lambda weights, *labels, title: plots.attention_grid(weights[::-1], *labels, title=title),
        lambda weights, *labels, title: plots.attention_grid(weights[:1].repeat(6, 0), *labels, title=title),
        lambda weights, *labels, title: plots.attention_grid(weights[:5], *labels, title=title),
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
    law_mask_grid_is_dark_where_a_query_may_attend(plots.mask_grid)
    with pytest.raises(AssertionError):
        law_mask_grid_is_dark_where_a_query_may_attend(
            lambda mask, *labels, **named: plots.mask_grid(~mask, *labels, **named)
        )


def test_the_axes_of_a_mask_can_be_named():
    for names in ({}, {"xlabel": "tgt_in", "ylabel": "tgt_out"}):
        axes = plots.mask_grid(np.tri(3, 4, dtype=bool), TGT, SRC, title="t", **names).axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(names.values() or ("key", "query"))


def law_signed_matrix_is_white_at_zero(draw):
    values = np.array([[-1.0, 0.0, 3.0], [0.5, -2.0, 1.0]])
    (image,) = draw(values, ["a", "b"], ["x", "y", "z"], title="t").axes[0].images
    assert np.allclose(image.get_array(), values) and image.norm.vmin == -image.norm.vmax
    shown = image.to_rgba(image.get_array())
    assert lightness(shown[0, 1, :3]) > 95 and shown[0, 0, 2] > shown[0, 0, 0] and shown[0, 2, 0] > shown[0, 2, 2]


def _own_limits(values, *labels, title):
    figure = plots.signed_matrix(values, *labels, title=title)
    figure.axes[0].images[0].set_clim(values.min(), values.max())
    return figure


def test_signed_matrix_is_white_at_zero():
    law_signed_matrix_is_white_at_zero(plots.signed_matrix)
    for wrong in (_own_limits, lambda values, *labels, title: plots.signed_matrix(-values, *labels, title=title)):
        with pytest.raises(AssertionError):
            law_signed_matrix_is_white_at_zero(wrong)
    plots.signed_matrix(np.zeros((50, 60)), range(50), range(60), title="all zero, labels thinned")


# --- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.attention_map(some_weights(4, 3), TGT, SRC, title="t"), r"shape \(3, 4\).*got \(4, 3\)"),
        (lambda: plots.attention_map(some_weights(2, 3, 4), TGT, SRC, title="t"), r"got \(2, 3, 4\)"),
        (lambda: plots.attention_map(2 * np.eye(3, 4), TGT, SRC, title="t"), r"weights in 0\.\.1, got 0 to 2"),
        (lambda: plots.attention_map(np.full((3, 4), np.nan), TGT, SRC, title="t"), r"weights in 0\.\.1, got nan"),
        (lambda: plots.attention_map(np.zeros((0, 0)), [], [], title="t"), r"got \(0, 0\)"),
        (lambda: plots.attention_grid(some_weights(3, 4), TGT, SRC, title="t"), r"\(heads, 3, 4\).*got \(3, 4\)"),
        (lambda: plots.mask_grid(np.eye(3, 4), TGT, SRC, title="t"), "bool mask, True = may attend, got float64"),
        (lambda: plots.mask_grid(np.eye(4, dtype=bool), TGT, SRC, title="t"), r"got \(4, 4\)"),
        (lambda: plots.signed_matrix(np.full((3, 4), np.inf), TGT, SRC, title="t"), "NaN or infinity"),
        (lambda: plots.signed_matrix(np.eye(4, 3), TGT, SRC, title="t"), r"got \(4, 3\)"),
    ],
)
def test_bad_input_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
