"""The beam tree, operated by mouse and keyboard; what it shows is compared with the library's search."""

import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.decoding import BeamTree, record_beam
from course_lib.translator import Translator
from tests.helpers.lab import eventually
from tests.helpers.pages import REFUSED, enter, new_widget

CELLS = (
    "from course_lib.translator import Translator\nfrom course_lib.widgets import BeamTreeExplorer",
    'widget = BeamTreeExplorer(Translator.from_pretrained("course"), "I play.", beam_size=3)\nwidget',
)
TEXT = "I play."
BEAR = "When the bear ate a banana, their happy sister dreamed of the boy and the girl."
POINT = "Point at a box, or walk through the tree with Tab and the arrow keys."


widget = new_widget


def searched(translator: Translator, text: str, beam_size: int, length_penalty: float = 0.0) -> BeamTree:
    src = torch.tensor([[*translator.tokenizer.encode(text), translator.model.config.eos_id]])
    return record_beam(translator.model, src, beam_size=beam_size, length_penalty=length_penalty, max_len=40)[0]


def output(translator: Translator, tree: BeamTree, index: int) -> str:
    return translator.tokenizer.decode([token for token in tree.tokens(index) if token != 2])


def written(number: float) -> str:
    """As the page has it."""
    return f"{number:.2f}".replace("-0.00", "0.00").replace("-", "−")


@eventually
def shows(widget: Locator, tree: BeamTree, translator: Translator, *, dropped: bool = True) -> None:
    """The page has a box and an edge for each node, with its token and total, the winner's way, and the ranking."""
    shown = {index: node for index, node in enumerate(tree.nodes) if dropped or node.fate != "dropped"}
    winner = set(tree.path(tree.best[0]))
    boxes = widget.locator("g[data-node]").evaluate_all(
        "nodes => nodes.map(n => [n.dataset.node, n.classList[1], ...[...n.querySelectorAll('text')]"
        ".map(text => text.textContent)])"
    )
    assert [int(index) for index, *_ in boxes] == list(shown)
    for index, look, token, total in boxes:
        node = shown[int(index)]
        assert (token, total) == (translator.tokenizer.token(node.token), written(node.total))
        assert look == f"cw-{'winner' if int(index) in winner else node.fate}"
    edges = widget.locator("line[data-edge]").evaluate_all("lines => lines.map(line => line.dataset.edge)")
    assert [int(index) for index in edges] == [index for index in shown if index]
    found = widget.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    unpenalized = tree.rescored(0.0).best
    for place, (index, cells) in enumerate(zip(tree.best, found, strict=True)):
        node = tree.nodes[index]
        before = f"was {unpenalized.index(index) + 1}" if index in unpenalized else "was not among the best"
        expected = [str(place + 1), output(translator, tree, index) or "(empty)", str(node.step)]
        expected += [written(node.total), written(node.score)]
        assert cells == [*expected, "" if index == unpenalized[place] else before]


def slide(widget: Locator, name: str, value: float) -> None:
    widget.get_by_label(name).fill(str(value))


# --- what is drawn ------------------------------------------------------------------------------


def test_the_tree_of_each_beam_is_the_librarys(widget, translator):
    for beam_size in (3, 1, 6, 2):
        slide(widget, "beam size", beam_size)
        shows(widget, searched(translator, TEXT, beam_size), translator)
    for wrong in (searched(translator, "You play.", 2), searched(translator, TEXT, 2, 2.0)):
        with pytest.raises(AssertionError):
            shows(widget, wrong, translator, seconds=0.2)


def test_the_penalty_ranks_the_outputs_anew(widget, translator):
    enter(widget, BEAR)
    slide(widget, "beam size", 4)
    winners = set()
    for penalty in (0.0, 0.25, 0.3, 0.6, 3.0):
        slide(widget, "length penalty", penalty)
        tree = searched(translator, BEAR, 4, penalty)
        shows(widget, tree, translator)
        winners.add(tree.best[0])
    assert len(winners) > 1, "too uniform to compare"
    with pytest.raises(AssertionError):
        shows(widget, searched(translator, BEAR, 4, 0.0), translator, seconds=0.2)


def test_what_was_dropped_can_be_hidden(widget, translator):
    widget.get_by_label("show what was dropped").uncheck()
    tree = searched(translator, TEXT, 3)
    shows(widget, tree, translator, dropped=False)
    with pytest.raises(AssertionError):
        shows(widget, searched(translator, TEXT, 2), translator, dropped=False, seconds=0.2)
    widget.get_by_label("show what was dropped").check()
    shows(widget, tree, translator)


def test_no_box_covers_another_and_each_edge_touches_its_boxes(widget, translator):
    enter(widget, BEAR)
    slide(widget, "beam size", 6)
    tree = searched(translator, BEAR, 6)
    shows(widget, tree, translator)
    boxes = dict(
        widget.locator("g[data-node] rect").evaluate_all(
            "rects => rects.map(r => [Number(r.parentNode.dataset.node), ['x', 'y', 'width', 'height']"
            ".map(name => Number(r.getAttribute(name)))])"
        )
    )
    lines = widget.locator("line[data-edge]").evaluate_all(
        "lines => lines.map(l => [Number(l.dataset.edge), ...['x1', 'y1', 'x2', 'y2'].map(n => +l.getAttribute(n))])"
    )
    for index, x1, y1, x2, y2 in lines:
        above, below = boxes[tree.nodes[index].parent], boxes[index]
        assert (x1, y1) == pytest.approx((above[0] + above[2], above[1] + above[3] / 2))
        assert (x2, y2) == pytest.approx((below[0], below[1] + below[3] / 2))
    by_place = sorted((x, y, width, height) for x, y, width, height in boxes.values())
    for (x, y, width, height), (other_x, other_y, _, _) in zip(by_place, by_place[1:], strict=False):
        assert x + width < other_x or (x == other_x and y + height < other_y)
    outside = widget.locator("g[data-node]").evaluate_all(
        "nodes => nodes.filter(n => n.querySelector('text').getBBox().width > n.querySelector('rect').getBBox().width)"
        ".map(n => n.textContent)"
    )
    assert not outside


# --- what is pointed at -------------------------------------------------------------------------


def told(widget: Locator) -> Locator:
    return widget.locator(".cw-details")


def test_pointing_at_a_box_tells_what_it_costs(widget, translator):
    slide(widget, "length penalty", 0.6)
    tree = searched(translator, TEXT, 3, 0.6)
    shows(widget, tree, translator)
    expect(told(widget)).to_have_text(POINT)
    for fate in ("kept", "dropped", "finished", "unfinished"):
        index = max(index for index, node in enumerate(tree.nodes) if node.fate == fate)
        widget.locator(f"g[data-node='{index}']").hover()
        node = tree.nodes[index]
        words = " ".join(map(translator.tokenizer.token, tree.tokens(index)))
        numbers = f"{written(node.log_prob)} (probability {2.718281828459045**node.log_prob:.2f})"
        expect(told(widget)).to_contain_text(f"{words} · log-probability of {words.split()[-1]} {numbers}")
        level = sorted((each.total for each in tree.nodes if each.step == node.step), reverse=True)
        rank = level.index(node.total) + 1
        expect(told(widget)).to_contain_text(f"total {written(node.total)}, rank {rank} of step {node.step} · {fate}")
        score = "no score" if node.score is None else f"score {written(node.score)} at α 0.60"
        expect(told(widget)).to_contain_text(score)
        path = widget.locator("g.cw-path").evaluate_all("nodes => nodes.map(n => Number(n.dataset.node))")
        assert path == tree.path(index)
    widget.locator("tbody tr").nth(1).hover()
    expect(widget.locator("g.cw-path").last).to_have_attribute("data-node", str(tree.best[1]))


def test_the_keyboard_walks_through_the_tree(widget, translator):
    tree = searched(translator, TEXT, 3)
    page = widget.page
    widget.get_by_label("English").focus()
    seen = []
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.dataset.node || document.activeElement.type || 'other'"))
    assert seen[:4] == ["submit", "range", "range", "checkbox"] and "0" in seen
    assert str(tree.best[0]) in seen, "the ranking is one stop"
    widget.locator("g[data-node='0']").focus()
    at = 0
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        step = tree.nodes[at].step
        level = [index for index, node in enumerate(tree.nodes) if node.step == step]
        level.sort(key=lambda index: (tree.nodes[index].parent or 0, index))
        place = level.index(at)
        at = {
            "ArrowRight": next((i for i, node in enumerate(tree.nodes) if node.parent == at), at),
            "ArrowLeft": tree.nodes[at].parent or 0,
            "ArrowDown": level[min(place + 1, len(level) - 1)],
            "ArrowUp": level[max(place - 1, 0)],
        }[key]
        assert page.evaluate("Number(document.activeElement.dataset.node)") == at, key
    expect(told(widget)).to_contain_text("where each output begins")
    slider = widget.get_by_label("length penalty")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("0.05")


# --- what is typed ------------------------------------------------------------------------------


def test_any_text_is_answered(widget, translator):
    first = searched(translator, TEXT, 3)
    message = widget.locator(".cw-error")
    for text, words in REFUSED:
        enter(widget, text)
        expect(message).to_contain_text(words)
        shows(widget, first, translator)
    for text in ("😀 <b onclick=alert(1)>bold</b> & 'so' on", "The cat sleeps."):
        enter(widget, text)
        shows(widget, searched(translator, text, 3), translator)
        expect(message).to_have_text("")
    assert widget.locator("b").count() == 0


# --- how fast, how it looks ---------------------------------------------------------------------


def test_pointing_and_dragging_are_answered_at_once(widget, lab):
    stage, ends = widget.locator(".cw-scroll"), widget.locator(".cw-ends")
    lab.answers_within(50, widget.locator("g[data-node]"), range(1, 31), stage, event="mouseenter")
    penalties = [step / 20 for step in range(1, 31)]
    lab.answers_within(50, widget.get_by_label("length penalty"), penalties, ends)
    lab.answers_within(100, widget.get_by_label("beam size"), [1, 2, 3, 4, 6] * 5, stage)  # a whole new tree
    with pytest.raises(AssertionError):
        lab.answers_within(1, widget.get_by_label("length penalty"), penalties[:3], ends)


def test_it_is_photographed(widget, lab, translator):
    widget.locator("g[data-node='9']").hover()
    lab.photograph(widget, "beam_tree")
    enter(widget, BEAR)
    slide(widget, "beam size", 4)
    slide(widget, "length penalty", 0.6)
    shows(widget, searched(translator, BEAR, 4, 0.6), translator)
    lab.photograph(widget, "beam_tree_long")
