"""Laws of the drawn beam: every node of the tree is there with its numbers, in its column, under its parent."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from course_lib.decoding import DROPPED, FINISHED, KEPT, UNFINISHED, BeamNode, BeamTree, record_beam
from course_lib.figures import beam_tree as trees
from course_lib.figures.beam_tree import beam_figure
from course_lib.figures.palette import BLUE
from tests.helpers.figures import (
    law_a_long_title_takes_nothing_from_the_drawing,
    law_looks_the_same_in_a_users_own_style,
    law_nothing_is_left_behind,
    law_stays_on_the_page,
    lightness,
)
from tests.helpers.laws import raised
from tests.helpers.tiny import padded, sources, tiny_model

SMALL = BeamTree(
    nodes=[
        BeamNode(1, 0, None, 0.0, 0.0, "kept"),
        BeamNode(7, 1, 0, -0.5, -0.5, "kept"),
        BeamNode(8, 1, 0, -1.5, -1.5, "kept"),
        BeamNode(9, 1, 0, -2.5, -2.5, "dropped"),
        BeamNode(5, 2, 2, -0.25, -1.75, "kept"),  # the second beginning has the best continuation
        BeamNode(2, 2, 1, -1.5, -2.0, "finished", -1.71),
        BeamNode(6, 2, 1, -2.25, -2.75, "kept"),
        BeamNode(4, 2, 2, -9.0, -10.5, "dropped"),
        BeamNode(2, 3, 4, -0.125, -1.875, "finished", -1.5),
        BeamNode(3, 3, 6, -0.5, -3.25, "unfinished", -2.9),
    ],
    best=[8, 5],
    beam_size=2,
    length_penalty=0.6,
)
MODEL = tiny_model(7, spread=5, norm_first=True, vocab_size=7)
DRAWN = [SMALL, *record_beam(MODEL, padded(sources([4, 1, 3], vocab_size=7))[:2], beam_size=3, max_len=6)]


def names(tree):
    return [f"t{node.token}" if node.token > 2 else ("<pad>", "<s>", "</s>")[node.token] for node in tree.nodes]


def drawn(tree, draw=beam_figure):
    """The axes' texts, boxes and edges by the node they belong to, edges by the pair of nodes."""
    axes = draw(tree, names(tree), title="t").axes[0]
    found = {"node": {}, "box": {}, "edge": {}}
    for artist in (*axes.texts, *axes.patches):
        kind, *indices = (artist.get_gid() or "other").split()
        if kind != "other":
            found[kind][tuple(map(int, indices))] = artist
    return found


def number(words):
    return float(words.replace("−", "-"))


# --- what is drawn ------------------------------------------------------------------------------


def law_the_boxes_hold_the_tree(draw):
    for tree in DRAWN:
        found = drawn(tree, draw)
        assert set(found["node"]) == set(found["box"]) == {(index,) for index in range(len(tree.nodes))}
        for (index,), text in found["node"].items():
            node, (token, numbers) = tree.nodes[index], text.get_text().split("\n")
            total, *score = map(number, numbers.split(" → "))
            assert token == names(tree)[index] and total == pytest.approx(node.total, abs=0.0051)
            assert len(score) == (node.score is not None and tree.length_penalty != 0)
            assert not score or score[0] == pytest.approx(node.score, abs=0.0051)


def law_edges_lead_from_parent_to_child(draw):
    for tree in DRAWN:
        found = drawn(tree, draw)
        expected = {(node.parent, index) for index, node in enumerate(tree.nodes) if node.parent is not None}
        assert set(found["edge"]) == expected
        boxes = {index: box.get_bbox() for (index,), box in found["box"].items()}
        for (parent, child), edge in found["edge"].items():
            (x0, y0), (x1, y1) = edge._posA_posB
            assert (x0, x1) == pytest.approx((boxes[parent].x1, boxes[child].x0))
            assert y0 == pytest.approx((boxes[parent].y0 + boxes[parent].y1) / 2)
            assert y1 == pytest.approx((boxes[child].y0 + boxes[child].y1) / 2)


def law_a_column_for_each_step_and_no_crossing(draw):
    for tree in DRAWN:
        boxes = {index: box.get_bbox() for (index,), box in drawn(tree, draw)["box"].items()}
        steps = {index: node.step for index, node in enumerate(tree.nodes)}
        for one, other in itertools.combinations(boxes, 2):
            assert not boxes[one].overlaps(boxes[other])
            if steps[one] < steps[other]:
                assert boxes[one].x1 + 0.2 < boxes[other].x0
            elif steps[one] == steps[other] and steps[one]:
                assert boxes[one].x0 == boxes[other].x0
                parents = [boxes[tree.nodes[index].parent].y0 for index in (one, other)]
                assert np.sign(parents[0] - parents[1]) in (0, np.sign(boxes[one].y0 - boxes[other].y0)), "edges cross"


def law_the_steps_are_numbered(draw):
    for tree in DRAWN:
        heads = [text for text in draw(tree, names(tree), title="t").axes[0].texts if not text.get_gid()]
        last = max(node.step for node in tree.nodes)
        assert [text.get_text() for text in heads] == [f"step {step}" for step in range(1, last + 1)]
        places = [text.get_position()[0] for text in heads]
        boxes = {index: box.get_bbox() for (index,), box in drawn(tree, draw)["box"].items()}
        for index, node in enumerate(tree.nodes[1:], start=1):
            assert places[node.step - 1] == pytest.approx((boxes[index].x0 + boxes[index].x1) / 2)


def law_looks_follow_the_fates(draw):
    """Strong lines where the search went on, pale ones where it did not, one colored way to the best output."""
    for tree in DRAWN:
        found = drawn(tree, draw)
        winner = {(tree.nodes[index].parent, index) for index in tree.path(tree.best[0])[1:]}
        colored = {pair for pair, edge in found["edge"].items() if edge.get_edgecolor() == to_rgba(BLUE)}
        assert colored == winner
        for pair, edge in found["edge"].items():
            node, width = tree.nodes[pair[1]], edge.get_linewidth()
            box, text = found["box"][pair[1:]], found["node"][pair[1:]]
            darkness = [100 - lightness(color[:3]) for color in (edge.get_edgecolor(), box.get_edgecolor())]
            if node.fate == "dropped":
                assert width < 1 and box.get_linewidth() < 1 and max(darkness) < 25
                assert 40 < lightness(text.get_color()) < 55, "pale, but readable"
            else:
                assert width > 1 and min(darkness) > 45 and lightness(text.get_color()) < 20
            assert (box.get_linewidth() > 2) == (node.fate == "finished" or pair in winner)
            assert (box.get_linestyle() == "--") == (node.fate == "unfinished" and pair not in winner)


def law_words_stay_in_their_boxes(draw):
    for tree in DRAWN:
        figure = draw(tree, [f"{name}{'m' * (index % 13)}" for index, name in enumerate(names(tree))], title="t")
        figure.draw_without_rendering()
        axes = figure.axes[0]
        boxes = {box.get_gid()[4:]: box for box in axes.patches if box.get_gid().startswith("box")}
        for text in axes.texts:
            words = text.get_window_extent()
            if text.get_gid():
                box = boxes[text.get_gid()[5:]].get_window_extent()
                assert box.x0 < words.x0 and words.x1 < box.x1 and box.y0 < words.y0 and words.y1 < box.y1
            else:  # above the first row of boxes
                assert all(not words.overlaps(box.get_window_extent()) for box in boxes.values())
        legend, content = figure.legends[0].get_window_extent(), axes.patches[0].get_window_extent()
        assert all(not legend.overlaps(box.get_window_extent()) for box in boxes.values()) and content.y0 > legend.y1
        assert figure.bbox.contains(legend.x0, legend.y0) and figure.bbox.contains(legend.x1, legend.y1)


def of_another_tree(change):
    return lambda tree, labels, title: beam_figure(change(tree), labels, title=title)


def with_nodes(change):
    return of_another_tree(lambda tree: replace(tree, nodes=[change(node) for node in tree.nodes]))


def with_artists(change):
    def draw(tree, labels, title):
        figure = beam_figure(tree, labels, title=title)
        change(figure.axes[0])
        return figure

    return draw


def _sort_by_total(columns):
    def broken(tree):
        return [sorted(column, key=lambda index: -tree.nodes[index].total) for column in columns(tree)]

    return broken


def _in_order_of_totals(*arguments, **named):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_columns", _sort_by_total(trees._columns))
        return beam_figure(*arguments, **named)


def _narrow_boxes(*arguments, **named):
    with pytest.MonkeyPatch.context() as patch:
        place = trees._place
        patch.setattr(trees, "_place", lambda columns, widths: place(columns, [0.5] * len(widths)))
        return beam_figure(*arguments, **named)


LAWS = [
    (law_the_boxes_hold_the_tree, with_nodes(lambda node: replace(node, total=node.log_prob))),
    (law_the_boxes_hold_the_tree, with_nodes(lambda node: replace(node, score=None))),
    (law_the_boxes_hold_the_tree, lambda tree, labels, title: beam_figure(tree, labels[::-1], title=title)),
    (law_the_boxes_hold_the_tree, with_artists(lambda axes: axes.texts[1].remove())),
    (law_edges_lead_from_parent_to_child, with_artists(lambda axes: axes.patches[-1].remove())),
    (law_edges_lead_from_parent_to_child, with_artists(lambda axes: axes.patches[-1].set_positions((0, 0), (1, 1)))),
    (law_a_column_for_each_step_and_no_crossing, _in_order_of_totals),
    (law_the_steps_are_numbered, with_artists(lambda axes: axes.texts[-1].remove())),
    (law_looks_follow_the_fates, with_nodes(lambda node: replace(node, fate="kept"))),
    (law_looks_follow_the_fates, of_another_tree(lambda tree: replace(tree, best=tree.best[::-1]))),
    (law_words_stay_in_their_boxes, _narrow_boxes),
]


@pytest.mark.parametrize("law", dict.fromkeys(law for law, _ in LAWS))
def test_law_of_the_tree(law):
    law(beam_figure)


@pytest.mark.parametrize("law, wrong", LAWS)
def test_a_wrong_tree_is_caught(law, wrong):
    with pytest.raises(AssertionError):
        law(wrong)


def test_the_trees_differ_enough_to_compare():
    assert {node.fate for tree in DRAWN for node in tree.nodes} == {KEPT, DROPPED, FINISHED, UNFINISHED}
    assert max(node.step for tree in DRAWN for node in tree.nodes) >= 3
    assert all(len(tree.best) > 1 for tree in DRAWN)


def test_without_a_length_penalty_no_score_is_written():
    bare = drawn(replace(SMALL, length_penalty=0.0))
    assert not any("→" in text.get_text() for text in bare["node"].values())
    assert all(re.fullmatch(r"[^\n]+\n(−\d+|0)\.\d\d", text.get_text()) for text in bare["node"].values())


# --- the page -----------------------------------------------------------------------------------


def test_a_tree_leaves_nothing_behind_and_ignores_the_users_style():
    def draw():
        return beam_figure(SMALL, names(SMALL), title="a finding " * 15)

    for law in (law_nothing_is_left_behind, law_looks_the_same_in_a_users_own_style, law_stays_on_the_page):
        law(draw)


def test_a_long_title_takes_nothing_from_the_tree():
    law_a_long_title_takes_nothing_from_the_drawing(lambda title: beam_figure(SMALL, names(SMALL), title=title))


def test_the_legend_names_what_is_there():
    def words(tree):
        return [text.get_text() for text in beam_figure(tree, names(tree), title="t").legends[0].get_texts()]

    assert words(SMALL) == ["best output", "kept", "finished", "unfinished", "dropped"]
    pruned = BeamTree(SMALL.nodes[:3], [1], 2, 0.0)
    assert words(pruned) == ["best output", "kept"]


def test_a_dollar_is_a_dollar():
    labels = ["$x$"] * len(SMALL.nodes)
    texts = [text.get_text() for text in beam_figure(SMALL, labels, title="t").axes[0].texts if text.get_gid()]
    assert all(text.startswith("$x$\n") for text in texts)
    law_stays_on_the_page(lambda: beam_figure(SMALL, labels, title="t"))


def test_each_node_needs_a_label():
    error = raised(ValueError, lambda: beam_figure(SMALL, ["a"], title="t"))
    assert str(error) == "expected a label for each of 10 nodes, got 1"
