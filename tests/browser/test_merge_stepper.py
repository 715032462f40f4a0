"""The merge stepper, operated by mouse and keyboard; what it shows is compared with the library."""

from collections import Counter

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis.merges import learn_merges
from tests.helpers.lab import Lab, eventually
from tests.helpers.pages import enter, new_widget

TINY = "The cat sleeps. The cat sees the dog. The dog sees the cat."
CELLS = (
    "from course_lib.widgets import MergeStepper",
    f"stepper = MergeStepper({TINY!r})\nstepper",
)
LEARNED = learn_merges(TINY)


stepper = new_widget


def told(stepper: Locator) -> Locator:
    return stepper.locator(".cw-message").first


def details(stepper: Locator) -> Locator:
    return stepper.locator(".cw-message").last


def go(stepper: Locator, merges: int) -> None:
    stepper.get_by_label("merges", exact=True).fill(str(merges))


@eventually
def shows(stepper: Locator, merges: int, learned=LEARNED) -> None:
    """The words in pieces, the pairs and the numbers that the library has after so many merges."""
    count = len(learned.pairs)
    begins = f"Merge {merges} of {count}: " if merges else f"No merge yet, {count} to come. "
    words = stepper.locator(".cw-word").evaluate_all("nodes => nodes.map(n => [...n.children].map(c => c.textContent))")
    assert words == [learned.stages[merges][word] for word in learned.words]
    symbols = [symbol for word in words for symbol in word]
    sentence = told(stepper).inner_text()
    assert sentence.startswith(begins)
    assert f"The text has {len(symbols)} symbol" in sentence
    merged = {"".join(pair) for pair in learned.pairs[:merges]}
    characters = len({symbol for word in learned.stages[0].values() for symbol in word})
    assert f"the vocabulary {4 + characters + len(merged)} (4 special, {characters} character" in sentence
    if merges:
        left, right = learned.pairs[merges - 1]
        found = learned.counts[merges - 1][left, right]
        words = {1: "once", 2: "twice"}.get(found, f"{found} times")
        assert sentence.startswith(f"{begins}{left} + {right} → {left + right}, {words}")
    newest = stepper.locator(".cw-newest").all_inner_texts()
    assert newest == [symbol for symbol in symbols if merges and symbol == "".join(learned.pairs[merges - 1])]
    offered = stepper.locator(".cw-pair").evaluate_all("nodes => nodes.map(n => [n.dataset.pair, n.dataset.count])")
    counts = learned.counts[merges] if merges < count else {}
    assert len(offered) == min(12, len(counts))
    assert {pair: int(each) for pair, each in offered}.items() <= {" ".join(p): c for p, c in counts.items()}.items()
    numbers = [int(each) for _, each in offered]
    assert numbers == sorted(numbers, reverse=True) and numbers[:1] == sorted(counts.values())[-1:]


@eventually
def kernel_has(lab: Lab, name: str, expected) -> None:
    assert lab.run(f"print(repr(stepper.{name}))") == repr(expected)


# --- stepping -----------------------------------------------------------------------------------


def test_every_step_forwards_and_backwards(stepper, lab):
    back, on = stepper.get_by_label("one merge back"), stepper.get_by_label("one merge on")
    expect(back).to_be_disabled()
    shows(stepper, 0)
    for wrong in (1, 2):
        with pytest.raises(AssertionError):
            shows(stepper, wrong, seconds=0.2)
    for merges in range(1, 20):
        on.click()
        shows(stepper, merges)
    expect(on).to_be_disabled()
    expect(back).to_be_focused()  # `on` had it, and is off
    assert stepper.locator(".cw-symbol").all_inner_texts() == LEARNED.words
    expect(stepper.locator(".cw-pairs")).to_have_text("No two symbols stand side by side in a word any more.")
    kernel_has(lab, "merges", 19)
    for merges in range(18, -1, -1):
        back.click()
        shows(stepper, merges)
    expect(back).to_be_disabled()
    expect(on).to_be_focused()
    kernel_has(lab, "merges", 0)


def test_the_slider_leaps_to_any_step(stepper, lab):
    for merges in (19, 0, 8, 1, 18):
        go(stepper, merges)
        shows(stepper, merges)
    kernel_has(lab, "merges", 18)
    lab.run("stepper.merges = 3")
    shows(stepper, 3)


# --- the next pair ------------------------------------------------------------------------------


def test_every_pair_is_judged_by_the_rule(stepper):
    numbers = LEARNED.vocab
    for merges in (0, 1, 9, 16):
        go(stepper, merges)
        shows(stepper, merges)
        winner, counts = LEARNED.pairs[merges], LEARNED.counts[merges]
        for chip in stepper.locator(".cw-pair").all():
            chip.click()
            pair = tuple(chip.get_attribute("data-pair").split(" "))
            said = details(stepper).inner_text()
            assert said.startswith("Yes: " if pair == winner else "No: ") and " ".join(pair) in said
            if counts[pair] == counts[winner] and pair != winner:
                side = 0 if pair[0] != winner[0] else 1
                assert numbers[winner[side]] < numbers[pair[side]]
                assert said.endswith(
                    f"has the {('left', 'right')[side]} symbol with the smaller number: "
                    f"{winner[side]} is {numbers[winner[side]]}, {pair[side]} is {numbers[pair[side]]}."
                )
            elif pair != winner:
                assert "stands side by side" in said


def test_pointing_at_a_symbol_tells_its_number_and_its_merge(stepper):
    go(stepper, 1)
    stepper.locator(".cw-newest").first.hover()
    expect(details(stepper)).to_have_text("“he”: number 18, made of h and e by merge 1; occurs in the text 5 times")
    stepper.locator(".cw-symbol").first.hover()
    count = Counter(TINY)[" "] + 1
    number = LEARNED.vocab["▁"]
    expect(details(stepper)).to_have_text(f"“▁”: number {number}, a character; occurs in the text {count} times")


# --- what is typed ------------------------------------------------------------------------------


def test_any_text_is_learned(stepper, lab):
    go(stepper, 5)
    for text, message in (
        ("", "no text to learn subwords from"),
        ("word " * 200, "the text has 1000 characters; the stepper shows up to 300"),
    ):
        enter(stepper, text, label="text")
        expect(told(stepper)).to_have_text(message)
        expect(told(stepper)).to_have_class("cw-message cw-error")
        expect(stepper.locator(".cw-word")).to_have_count(len(LEARNED.words))  # all else stays
        assert stepper.locator(".cw-symbol").count() == len(
            [symbol for word in LEARNED.words for symbol in LEARNED.stages[5][word]]
        )
    for text in ("Die Katze schläft.", "😀 <b onclick=alert(1)>fett</b> & <s> 😀", "a", "x" * 300, "dogs " * 60):
        enter(stepper, text, label="text")
        learned = learn_merges(text)
        expect(stepper.locator(".cw-word")).to_have_count(len(learned.words))
        shows(stepper, 0, learned)
        for merges in (len(learned.pairs), len(learned.pairs) // 2):
            go(stepper, merges)
            shows(stepper, merges, learned)
        kernel_has(lab, "merges", merges)
    assert stepper.locator("b[onclick]").count() == 0
    kernel_has(lab, "text", text)


# --- by keyboard --------------------------------------------------------------------------------


def test_the_keyboard_is_enough(stepper):
    page = stepper.page
    stepper.get_by_label("text").focus()
    seen, focused = [], "(({ ariaLabel, type, textContent: t }) => ariaLabel || t || type)(document.activeElement)"
    for _ in range(5):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
    assert seen == ["Learn", "one merge on", "range", "▁", "h e 5"]  # "one merge back" is off
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(details(stepper)).to_have_text("No: ▁ T stands side by side 3 times, h e 5 times.")
    page.keyboard.press("Shift+Tab")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(details(stepper)).to_contain_text("“h”: number ")
    stepper.get_by_label("merges", exact=True).focus()
    for merges in (1, 2):
        page.keyboard.press("ArrowRight")
        shows(stepper, merges)
    page.keyboard.press("End")
    shows(stepper, 19)
    page.keyboard.press("Home")
    shows(stepper, 0)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_sliding_is_answered_at_once(stepper, lab):
    enter(stepper, "The old woman gives the child a red apple. " * 6, label="text")
    expect(stepper.locator(".cw-word")).to_have_count(60)
    lab.answers_within(50, stepper.get_by_label("merges", exact=True), range(1, 22), stepper)


def test_it_is_photographed(stepper, lab):
    go(stepper, 9)
    stepper.locator(".cw-pair").nth(1).click()
    lab.photograph(stepper, "merge_stepper")
    enter(stepper, "😀 <b>Donaudampfschifffahrtsgesellschaft</b> " * 6, label="text")
    expect(stepper.locator(".cw-word").nth(30)).to_be_visible()
    lab.photograph(stepper, "merge_stepper_long")
