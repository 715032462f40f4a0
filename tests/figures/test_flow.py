"""The flow of data: every tensor has its name, its shape and its proportions, and every way leads where it should."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from course_lib.figures import Block, flow, flow_figure
from tests.helpers.laws import raised, tells_apart

BLOCKS = [
    Block("Q", (2, 4), "queries × d_k", (0, 0)),
    Block("K", (3, 4), "keys × d_k", (0, 1)),
    Block("scores", (2, 3), "queries × keys", (1, 0.5), "weights"),
    Block("heads", (8, 2, 3), "heads × queries × keys", (1, 1.5), "result"),
]
WAYS = [("Q", "scores", "QKᵀ"), ("K", "scores", ""), ("scores", "heads", "eight times")]


def drawn(blocks=BLOCKS, ways=WAYS, make=flow_figure):
    (axes,) = make(blocks, ways, title="A flow").axes
    return axes


def law_a_block_says_what_it_is(make):
    texts = [text.get_text() for text in drawn(make=make).texts]
    for words in ("Q", "K", "scores", "heads", "2 × 4\nqueries × d_k", "8 × 2 × 3\nheads × queries × keys", "QKᵀ"):
        assert words in texts


def law_a_block_has_the_proportions_of_its_shape(make):
    sizes = [(p.get_width(), p.get_height()) for p in drawn(make=make).patches if isinstance(p, Rectangle)]
    unit = flow.UNIT
    assert (4 * unit, 2 * unit) in sizes and (4 * unit, 3 * unit) in sizes
    assert sizes.count((3 * unit, 2 * unit)) == 1 + 4, "the scores, and four sheets for eight heads"


def law_ways_lead_from_block_to_block(make):
    arrows = [p for p in drawn(make=make).patches if isinstance(p, FancyArrowPatch)]
    ends = [[tuple(point) for point in arrow._posA_posB] for arrow in arrows]
    assert len(ends) == len(WAYS)
    found = {block.name: block for block in BLOCKS}
    for (start, end, _), (first, last) in zip(WAYS, ends, strict=True):
        for name, (x, y) in ((start, first), (end, last)):
            middle, size = found[name].middle, found[name].size
            assert abs(x - middle[0]) <= size[0] / 2 + 0.3 and abs(y - middle[1]) <= size[1] / 2 + 0.4


STEPS = [Block("x", (2, 4), "", (0, 0)), Block("step", (), "", (1, 0), "step"), Block("y", (2, 4), "", (2, 0))]
LOOP = [("x", "step", ""), ("step", "y", ""), ("y", "x", "again")]


def law_a_step_is_a_box_and_a_way_back_a_loop_under_the_row(make):
    axes = drawn(STEPS, LOOP, make)
    boxes, lines = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)], axes.lines
    assert (len(boxes), len(lines)) == (1, 1)
    assert abs(boxes[0].get_x() + boxes[0].get_width() / 2 - STEPS[1].middle[0]) < 1e-6
    (line,) = lines
    x, y = line.get_data()
    assert (x[0], x[-1]) == (STEPS[2].middle[0], STEPS[0].middle[0]) and line.get_linestyle() == "--"
    assert axes.get_ylim()[0] < min(y) < -STEPS[0].size[1] / 2 - 0.4, "on the page, and under the shapes"


WORDS = ("<s>", "▁Wir", "▁aufstehen", "")
ROW_OF_WORDS = [
    Block("words", (1, 4), "", (0, 0), "data", WORDS),
    Block("vectors", (256, 4), "4 vectors", (0, 1), "data", WORDS),
    Block("best", (3, 1), "", (2.5, 0), "result", ("▁auf 42 %", "ste", "stehen")),
]


def law_parts_are_boxes_around_their_words_with_bars_below_them(make):
    axes = drawn(ROW_OF_WORDS, [("best", "words", "again")], make)
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(boxes) == 4 + 4 + 3
    middles = [(box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2) for box in boxes]
    written = {text.get_text(): text.get_position() for text in axes.texts}
    for word, middle in zip((*WORDS[:3], *ROW_OF_WORDS[2].parts), middles[:3] + middles[8:], strict=True):
        assert word in written and written[word] == pytest.approx(middle), word
    assert [x for x, _ in middles[:4]] == pytest.approx([x for x, _ in middles[4:8]]), "each bar below its word"
    assert all(box.get_height() > box.get_width() == flow.UNIT for box in boxes[4:7])
    assert boxes[2].get_width() > boxes[1].get_width() > 0, "room for the longer word"
    assert [box.get_linestyle().replace("solid", "-") for box in boxes[2:4]] == ["-", ":"], "a place still empty"
    (line,) = axes.lines
    assert line.get_xdata()[-1] == pytest.approx(middles[3][0]), "which is where the way back ends"
    assert "4 vectors" in written and not any("256" in text for text in written)


COLORS = ("#ff0000", "#00ff00", "#0000ff", "#ffff00")
TABLE = Block("table", (2, 8), "length × d_model", (0, 0), fills=COLORS)
STACK = Block("stack", (4, 2, 2), "heads × length × d_k", (1, 0), fills=COLORS)


def law_strips_and_sheets_have_the_colors_they_are_given(make):
    axes = drawn([TABLE, STACK], [("table", "stack", "split")], make)
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [to_hex(box.get_facecolor()) for box in boxes] == [*COLORS[::-1]] * 2, "the first sheet in front"
    strips, sheets = sorted(boxes[:4], key=Rectangle.get_x), boxes[4:]
    assert [to_hex(box.get_facecolor()) for box in strips] == [*COLORS]
    corners = [(box.get_x(), box.get_y(), box.get_width(), box.get_height()) for box in strips]
    left, wide = -TABLE.size[0] / 2, TABLE.size[0] / 4
    for number, corner in enumerate(corners):
        assert corner == pytest.approx((left + number * wide, -TABLE.size[1] / 2, wide, TABLE.size[1]))
    assert len({box.get_y() for box in sheets}) == 4
    assert all((box.get_width(), box.get_height()) == STACK.size for box in sheets)


def without_fills(blocks, ways, *, title):
    return flow_figure([replace(b, fills=()) for b in blocks], ways, title=title)


def with_fills_backward(blocks, ways, *, title):
    return flow_figure([replace(b, fills=b.fills[::-1]) for b in blocks], ways, title=title)


def without_words(blocks, ways, *, title):
    return flow_figure([Block(b.name, b.shape, b.axes, b.at, b.kind) for b in blocks], ways, title=title)


def with_one_word_for_all(blocks, ways, *, title):
    return flow_figure([replace(b, parts=("▁Wir",) * len(b.parts)) for b in blocks], ways, title=title)


def with_bars_elsewhere(blocks, ways, *, title):
    return flow_figure(
        [replace(b, parts=b.parts[::-1] if b.shape[0] == 256 else b.parts) for b in blocks], ways, title=title
    )


def without_steps_and_loops(blocks, ways, *, title):
    return flow_figure([Block(b.name, b.shape or (1, 1), b.axes, b.at) for b in blocks], ways[:-1], title=title)


def without_shapes(blocks, ways, *, title):
    return flow_figure([Block(b.name, (1, 1), "", b.at) for b in blocks], ways, title=title)


def with_ways_reversed(blocks, ways, *, title):
    return flow_figure(blocks, [(end, start, words) for start, end, words in ways], title=title)


def test_laws_of_the_flow():
    tells_apart(law_a_block_says_what_it_is, flow_figure, without_shapes)
    tells_apart(law_a_block_has_the_proportions_of_its_shape, flow_figure, without_shapes)
    tells_apart(law_ways_lead_from_block_to_block, flow_figure, with_ways_reversed)
    tells_apart(law_a_step_is_a_box_and_a_way_back_a_loop_under_the_row, flow_figure, without_steps_and_loops)


def test_laws_of_parts():
    mutants = without_words, with_one_word_for_all, with_bars_elsewhere
    tells_apart(law_parts_are_boxes_around_their_words_with_bars_below_them, flow_figure, *mutants)


def test_laws_of_fills():
    mutants = without_fills, with_fills_backward
    tells_apart(law_strips_and_sheets_have_the_colors_they_are_given, flow_figure, *mutants)


def test_large_and_small_tensors_stay_readable():
    assert Block("X", (1, 10_000), "", (0, 0)).size == (flow.LARGEST, flow.SMALLEST)


@pytest.mark.parametrize(
    ("blocks", "ways"), [(BLOCKS, WAYS), (ROW_OF_WORDS, [("best", "words", "again")]), ([TABLE, STACK], [])]
)
def test_everything_is_on_the_page(blocks, ways):
    axes = drawn(blocks, ways)
    for patch in axes.patches:
        if isinstance(patch, Rectangle):
            assert axes.get_xlim()[0] < patch.get_x() and patch.get_x() + patch.get_width() < axes.get_xlim()[1]
            assert axes.get_ylim()[0] < patch.get_y() and patch.get_y() + patch.get_height() < axes.get_ylim()[1]


@pytest.mark.parametrize(
    ("blocks", "ways", "message"),
    [
        ([BLOCKS[0], BLOCKS[0]], [], "expected each name once, got ['Q', 'Q']"),
        (BLOCKS[:1], [("Q", "V", "")], "ways lead from or to ['V'], the blocks are Q"),
        ([Block("v", (3,), "d_v", (0, 0))], [], "v: expected 2 or 3 sizes (none of a step) and a kind among"),
        ([Block("v", (3, 1), "", (0, 0), "step")], [], "got (3, 1) and 'step'"),
        ([Block("v", (3, 1), "d_v", (0, 0), "blue")], [], "got (3, 1) and 'blue'"),
        ([Block("v", (1, 3), "", (0, 0), "data", ("a", "b"))], [], "v: expected a part for each column, got (1, 3)"),
        ([Block("v", (3, 1), "", (0, 0), "data", ("a", "b"))], [], "v: expected a part for each column, got (3, 1)"),
        ([Block("v", (2, 1, 2), "", (0, 0), "data", ("a", "b"))], [], "v: expected a part for each column"),
        ([Block("v", (), "", (0, 0), "step", ("a", "b"))], [], "v: expected a part for each column"),
        ([replace(TABLE, fills=COLORS[:3])], [], "table: expected a fill for each sheet, or for equal strips"),
        ([replace(STACK, fills=COLORS[:2])], [], "got (4, 2, 2) and ('#ff0000', '#00ff00')"),
        ([Block("v", (), "", (0, 0), "step", (), COLORS)], [], "v: expected a fill for each sheet"),
        ([Block("v", (1, 4), "", (0, 0), "data", ("a",) * 4, COLORS)], [], "v: expected a fill for each sheet"),
    ],
)
def test_bad_flows_are_refused(blocks, ways, message):
    assert message in str(raised(ValueError, lambda: flow_figure(blocks, ways, title="A flow")))
