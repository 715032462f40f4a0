"""The sampling sliders, operated by mouse and keyboard; bars and draws are compared with the library's."""

import math

import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.decoding import greedy, place_log_probs, sample, sampling_probs
from course_lib.translator import Translator
from tests.helpers.lab import eventually
from tests.helpers.pages import REFUSED, enter, new_widget

CELLS = (
    "from course_lib.translator import Translator\nfrom course_lib.widgets import SamplingSliders",
    'widget = SamplingSliders(Translator.from_pretrained("course"), "I play.", place=1)\nwidget',
)
TEXT = "I play."


widget = new_widget


def source(translator: Translator, text: str) -> torch.Tensor:
    return torch.tensor([[*translator.tokenizer.encode(text), translator.model.config.eos_id]])


def rows(translator: Translator, text: str) -> torch.Tensor:
    """Log-probabilities at each place of the greedy translation."""
    (best,) = greedy(translator.model, source(translator, text), max_len=40)
    return place_log_probs(translator.model, source(translator, text), best.ids + [2] * best.finished).double()


@eventually
def shows(widget: Locator, translator: Translator, text: str = TEXT, place: int = 1, **options) -> None:
    """The bars have the library's probabilities, and the words count what remains."""
    row, order = rows(translator, text)[place].sort(descending=True)
    row = row[row.isfinite()]
    probs, own = sampling_probs(row[None], **options)[0], row.exp()
    kept, count = int((probs > 0).sum()), f"{len(row):,}"
    entropy = abs(torch.special.xlogy(probs, probs).sum().item())
    words = f"{kept:,} token{'' if kept == 1 else 's'} of {count} can be drawn; entropy {entropy:.2f} nats"
    assert widget.locator(".cw-details").inner_text() == f"{words} (all alike: {math.log(len(row)):.2f})"
    names = widget.locator("svg text:not(.cw-number)").all_text_contents()
    assert names == [*map(translator.tokenizer.token, order[:12].tolist()), f"{len(row) - 12:,} others"]
    expected = [*probs[:12].tolist(), probs[12:].sum().item()]
    found = widget.locator(".cw-number").evaluate_all(
        "texts => texts.map(t => [+t.dataset.probability, t.textContent])"
    )
    for (number, written), prob in zip(found, expected, strict=True):
        assert number == pytest.approx(prob, rel=1e-6, abs=1e-9)
        assert written == (f"{100 * number:.1f} %" if number else "cut") or abs(100 * number * 10 % 1 - 0.5) < 1e-3
    cut = widget.locator(".cw-cut").all_text_contents()
    assert cut == [name for name, prob in zip(names, expected, strict=True) if not prob]
    shares = own / own.sum()  # without the two tokens that are never written
    for look, values in (("cw-drawn", expected), ("cw-own", [*shares[:12].tolist(), shares[12:].sum().item()])):
        widths = widget.locator(f"rect.{look}").evaluate_all("bars => bars.map(bar => +bar.getAttribute('width'))")
        assert widths == pytest.approx([220 * value for value in values], abs=0.01)


def drew(widget: Locator, translator: Translator, text: str = TEXT, *, seed: int = 0, **options) -> int:
    """The translations on the page are the library's draws; returns how many are what greedy search writes."""
    many = source(translator, text).expand(20, -1)
    found = sample(translator.model, many, generator=torch.Generator().manual_seed(seed), max_len=40, **options)
    (best,) = greedy(translator.model, many[:1], max_len=40)
    decode = translator.tokenizer.decode
    different, right = len({tuple(each.ids) for each in found}), sum(each.ids == best.ids for each in found)
    words = f"20 draws, {different} different; {right} of them (✓) are what greedy search writes: {decode(best.ids)}"
    texts = [decode(each.ids) + ("" if each.finished else " …") or "(empty)" for each in found]
    lists(widget, words, texts, decode(best.ids))
    return right


@eventually
def lists(widget: Locator, words: str, texts: list[str], best: str) -> None:
    """The sample on the page is these texts, counted; the best one has a mark."""
    assert widget.locator(".cw-sample [role=status]").inner_text() == words
    assert widget.locator(".cw-sample.cw-stale").count() == 0
    table = widget.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(c => c.textContent))"
    )
    assert sum(int(count) for count, *_ in table) == 20
    for count, output, mark, _ in table[:8]:
        assert texts.count(output) >= int(count) and (mark == "✓") == (output == best)


def slide(widget: Locator, name: str, value: float) -> None:
    widget.get_by_label(name, exact=True).fill(str(value))


# --- what is drawn ------------------------------------------------------------------------------


def test_the_bars_are_the_librarys_probabilities(widget, translator):
    shows(widget, translator)
    for options in (
        dict(temperature=0.05),
        dict(temperature=5.0),
        dict(temperature=1.0, top_k=1),
        dict(temperature=1.0, top_k=50),
        dict(temperature=0.5, top_k=5),
        dict(top_p=0.05),
        dict(top_p=0.95, temperature=0.7),
        dict(temperature=2.0, top_k=7, top_p=0.75),
    ):
        slide(widget, "temperature", options.get("temperature", 1.0))
        slide(widget, "top-k", options.get("top_k", 0))
        slide(widget, "top-p", options.get("top_p", 1.0))
        shows(widget, translator, **options)
    for wrong in (dict(temperature=2.0, top_k=7), dict(temperature=1.9, top_k=7, top_p=0.75)):
        with pytest.raises(AssertionError):
            shows(widget, translator, seconds=0.2, **wrong)


def test_each_place_has_its_distribution(widget, translator):
    places = widget.locator(".cw-piece")
    (best,) = greedy(translator.model, source(translator, TEXT))
    tokens = [translator.tokenizer.token(token) for token in [*best.ids, 2]]
    for place in (0, len(tokens) - 1, 2):
        places.nth(place).click()
        expect(places.nth(place)).to_have_attribute("aria-pressed", "true")
        assert places.all_inner_texts() == [f"{token} ?" if i == place else token for i, token in enumerate(tokens)]
        shows(widget, translator, place=place)
    with pytest.raises(AssertionError):
        shows(widget, translator, place=1, seconds=0.2)


def test_the_sample_is_the_librarys_draw(widget, translator):
    assert drew(widget, translator) < 5
    slide(widget, "seed", 99)
    drew(widget, translator, seed=99)
    slide(widget, "top-k", 1)
    assert drew(widget, translator, seed=99, top_k=1) == 20
    slide(widget, "temperature", 5)
    slide(widget, "top-k", 0)
    slide(widget, "top-p", 0.9)
    assert drew(widget, translator, seed=99, temperature=5.0, top_p=0.9) == 0
    expect(widget.locator("tbody")).to_contain_text(" …")
    enter(widget, "The cat sleeps.")
    slide(widget, "temperature", 0.5)
    assert drew(widget, translator, "The cat sleeps.", seed=99, temperature=0.5, top_p=0.9) > 15


def test_a_sample_that_is_out_of_date_looks_so(widget, lab, translator):
    lab.run("import time\noriginal = widget._draw\nwidget._draw = lambda: (time.sleep(2), original())")
    expect(widget.locator(".cw-sample.cw-stale")).to_have_count(0)
    slide(widget, "top-k", 1)
    expect(widget.locator(".cw-sample.cw-stale")).to_have_count(1)
    drew(widget, translator, top_k=1)
    enter(widget, "word " * 200)
    expect(widget.locator(".cw-error")).to_contain_text("takes up to 40")
    expect(widget.locator(".cw-sample.cw-stale")).to_have_count(0)  # it is of the sentence that stays
    enter(widget, "The cat sleeps.")
    drew(widget, translator, "The cat sleeps.", top_k=1)
    expect(widget.locator(".cw-error")).to_have_text("")
    enter(widget, TEXT)
    expect(widget.locator(".cw-sample.cw-stale")).to_have_count(1)
    drew(widget, translator, top_k=1)


def test_the_bars_are_told_in_words(widget):
    """A picture is one thing to a screen reader, a group is its texts."""
    bars = widget.get_by_role("group", name="probabilities of the next token")
    expect(bars).to_contain_text(" %")
    expect(widget.get_by_label("temperature")).to_have_attribute("aria-valuetext", "1.00")
    expect(widget.get_by_label("top-k")).to_have_attribute("aria-valuetext", "off")
    slide(widget, "top-k", 5)
    expect(widget.get_by_label("top-k")).to_have_attribute("aria-valuetext", "5")


# --- what is typed ------------------------------------------------------------------------------


def test_any_text_is_answered(widget, translator):
    message = widget.locator(".cw-error")
    for text, words in REFUSED:
        enter(widget, text)
        expect(message).to_contain_text(words)
        shows(widget, translator)
    for text in ("😀 <b onclick=alert(1)>bold</b> & 'so' on", "The cat sleeps."):
        enter(widget, text)
        shows(widget, translator, text)
        expect(message).to_have_text("")
        drew(widget, translator, text)
    assert widget.locator("b").count() == 0


def test_the_keyboard_is_enough(widget, translator):
    page = widget.page
    widget.get_by_label("English").focus()
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.type + ' ' + document.activeElement.textContent"))
    assert seen == ["submit Translate", "submit ▁Ich", "range ", "range ", "range ", "range "]
    widget.locator(".cw-piece").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    shows(widget, translator, place=2)
    page.keyboard.press("ArrowLeft")  # the place keeps the focus
    expect(widget.locator(".cw-piece").nth(1)).to_be_focused()
    widget.get_by_label("top-k").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    shows(widget, translator, place=2, top_k=3)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_dragging_is_answered_at_once(widget, lab):
    bars = widget.locator("svg").first
    for name, values in (
        ("temperature", [each / 10 for each in range(1, 31)]),
        ("top-k", range(1, 31)),
        ("top-p", [each / 20 for each in range(1, 21)]),
    ):
        slide(widget, "top-k", 0)  # else top-p would have nothing left to cut
        lab.answers_within(50, widget.get_by_label(name), values, bars)
    with pytest.raises(AssertionError):
        lab.answers_within(1, widget.get_by_label("temperature"), [1, 2, 3], bars)


def cut(widget: Locator, width: int) -> list[str]:
    """Heads of the table that do not fit into it where the widget has that width, in pixels."""
    heads = widget.locator("th")
    found = heads.evaluate_all(
        """(nodes, width) => {
          const widget = nodes[0].closest(".cw"), before = widget.style.width;
          widget.style.width = `${width}px`;
          const cut = nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.textContent);
          widget.style.width = before;
          return cut;
        }""",
        width,
    )
    return found


def test_no_head_is_cut_where_the_widget_is_narrow(widget):
    assert [cut(widget, width) for width in (340, 700, 900)] == [[], [], []]
    widget.page.add_style_tag(content=".cw-sampling th:nth-child(4) { width: 4em !important; }")
    assert cut(widget, 700) == ["log-probability"]


def test_it_is_photographed(widget, lab, translator):
    lab.photograph(widget, "sampling")
    slide(widget, "temperature", 5)
    slide(widget, "top-p", 0.9)
    drew(widget, translator, temperature=5.0, top_p=0.9)
    lab.photograph(widget, "sampling_hot")
    enter(widget, "The cat sleeps.")
    slide(widget, "temperature", 0.5)
    slide(widget, "top-k", 5)
    drew(widget, translator, "The cat sleeps.", temperature=0.5, top_k=5, top_p=0.9)
    lab.photograph(widget, "sampling_cut")
