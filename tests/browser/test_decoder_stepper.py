"""The decoder stepper, operated by mouse and keyboard; each step is compared with the library's exploration."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis.exploration import Exploration, explore
from tests.helpers.lab import eventually
from tests.helpers.pages import REFUSED, enter, new_widget

CELLS = (
    "from course_lib.translator import Translator\nfrom course_lib.widgets import DecoderStepper",
    'stepper = DecoderStepper(Translator.from_pretrained("course"), "The cat sees the dog.")\nstepper',
)
TEXT = "The cat sees the dog."
BEAR = "When the bear ate a banana, their happy sister dreamed of the boy and the girl."


@pytest.fixture(scope="module")
def found(translator):
    return explore(translator, TEXT)


stepper = new_widget


@eventually
def shows(stepper: Locator, found: Exploration, step: int, *, layer: int = 1, head: int | None = None) -> None:
    """The page has this step: what was read and predicted, each weight, each candidate, and the words."""
    now, read = step - 1, ["<s>", *found.tgt_tokens[:-1]]
    count = min(len(found.tgt_tokens), 40)
    told = stepper.locator(".cw-told").inner_text()
    assert told.startswith(f"Step {step} of {count}: has read ")
    assert f" predicts {found.tgt_tokens[now]} ({100 * found.probabilities[now]:.1f} %)" in told
    boxes = stepper.locator("g.cw-box").evaluate_all(
        "boxes => boxes.map(b => [b.dataset.step ? 'predicts' : b.classList[1], b.textContent, "
        "b.querySelector('rect').dataset.weight, +b.querySelector('rect').getAttribute('x')])"
    )
    maps = [
        (each[layer].mean(dim=0) if head is None else each[layer][head])[now]
        for each in (found.attention.cross, found.attention.decoder)
    ]
    parts = {
        name: [box[1:] for box in boxes if box[0] == name] for name in ("cw-source", "predicts", "cw-past", "cw-unseen")
    }
    for name, tokens, weights in (("cw-source", found.src_tokens, maps[0]), ("cw-past", read[:step], maps[1][:step])):
        assert [text for text, *_ in parts[name]] == tokens
        assert [float(weight) for _, weight, _ in parts[name]] == pytest.approx(weights.tolist(), abs=1e-5)
    seen = [token if index < step else "·" for index, token in enumerate(found.tgt_tokens[:count])]
    assert [text for text, *_ in parts["predicts"]] == seen
    assert [text for text, *_ in parts["cw-unseen"]] == ["·"] * (count - step)
    lefts = [left for *_, left in parts["predicts"]]
    assert [left for *_, left in [*parts["cw-past"], *parts["cw-unseen"]]] == lefts == sorted(lefts)
    shifts = stepper.locator("line[data-shift]").evaluate_all(
        "lines => lines.map(l => [+l.dataset.shift, +l.getAttribute('x1'), +l.getAttribute('x2'), "
        "l.classList.contains('cw-next')])"
    )
    assert [index for index, *_ in shifts] == list(range(min(step, count - 1)))
    for index, start, end, ahead in shifts:  # from a prediction to the place one further, where it is read
        assert lefts[index] < start < lefts[index + 1] < end and ahead == (index == now)
        assert index + 1 > now or parts["cw-past"][index + 1][0] == parts["predicts"][index][0]
    drawn = stepper.locator("line[data-weight]").evaluate_all("lines => lines.map(line => +line.dataset.weight)")
    assert drawn == pytest.approx([weight for weight in maps[0].tolist() if weight >= 0.02], abs=1e-5)
    rivals = stepper.locator(".cw-number").evaluate_all("texts => texts.map(t => +t.dataset.probability)")
    probabilities = [each.probability for each in found.candidates[now]]
    assert rivals == pytest.approx([*probabilities, 1 - sum(probabilities)], abs=1e-6)
    best = maps[0].argmax().item()
    assert f"looks most at {found.src_tokens[best]} ({maps[0][best]:.2f})" in told


# --- what is drawn ------------------------------------------------------------------------------


def test_each_step_is_the_librarys(stepper, found):
    back, on = stepper.get_by_label("one step back"), stepper.get_by_label("one step on")
    expect(back).to_be_disabled()
    shows(stepper, found, 1)
    for step in range(2, 8):
        on.click()
        shows(stepper, found, step)
    expect(on).to_be_disabled()
    expect(back).to_be_focused()  # `on` had it, and is off
    expect(stepper.locator(".cw-told")).to_contain_text("It is done: Die Katze sieht den Hund.")
    back.click()
    shows(stepper, found, 6)
    for wrong in (dict(step=5), dict(step=6, layer=0), dict(step=6, head=1)):
        with pytest.raises(AssertionError):
            shows(stepper, found, seconds=0.2, **wrong)


def test_each_layer_and_head_is_the_librarys(stepper, found):
    stepper.get_by_label("step", exact=True).fill("3")
    for layer in (0, 1):
        stepper.get_by_label("layer").select_option(str(layer))
        for head in (None, 0, 1, 2, 3):
            stepper.get_by_label("head").select_option(index=0 if head is None else head + 1)
            shows(stepper, found, 3, layer=layer, head=head)
    with pytest.raises(AssertionError):
        shows(stepper, found, 3, layer=1, head=2, seconds=0.2)


def test_a_click_on_a_prediction_goes_there(stepper, found):
    stepper.locator("g[data-step='5']").click()
    shows(stepper, found, 5)
    stepper.locator("g[data-step='2']").click()
    shows(stepper, found, 2)


# --- what is typed ------------------------------------------------------------------------------


def test_any_text_is_answered(stepper, translator, found):
    stepper.get_by_label("one step on").click()
    message = stepper.locator(".cw-error")
    for text, words in REFUSED:
        enter(stepper, text)
        expect(message).to_contain_text(words)
        shows(stepper, found, 2)
    for text in ("😀 <b onclick=alert(1)>bold</b> & 'so' on", BEAR, "I play."):
        enter(stepper, text)
        other = explore(translator, text)
        shows(stepper, other, 1)
        expect(message).to_have_text("")
        last = min(len(other.tgt_tokens), 40)
        stepper.get_by_label("step", exact=True).fill(str(last))
        shows(stepper, other, last)
        expect(stepper.locator(f"g[data-step='{last}']")).to_be_in_viewport()
    assert stepper.locator("b").count() == 0


def test_a_step_that_the_next_sentence_has_not_becomes_its_last(stepper, lab, translator):
    """It is asked for while the kernel still translates."""
    lab.run("import time\nfirst = stepper._explored\nstepper._explored = lambda text: (time.sleep(2), first(text))[1]")
    enter(stepper, "I play.")
    stepper.get_by_label("step", exact=True).fill("7")
    other = explore(translator, "I play.")
    assert len(other.tgt_tokens) < 7
    shows(stepper, other, len(other.tgt_tokens))


def test_the_keyboard_is_enough(stepper, found):
    page = stepper.page
    stepper.get_by_label("English").focus()
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent || document.activeElement.type"))
    assert seen[:3] == ["Translate", "range", "▶"] and seen[5] == "▁Die"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    shows(stepper, found, 3)
    expect(stepper.locator("g[data-step='3']")).to_be_focused()
    slider = stepper.get_by_label("step", exact=True)
    slider.focus()
    page.keyboard.press("End")
    shows(stepper, found, 7)
    page.keyboard.press("ArrowLeft")
    shows(stepper, found, 6)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_stepping_is_answered_at_once(stepper, lab):
    slider, stage = stepper.get_by_label("step", exact=True), stepper.locator(".cw-scroll")
    lab.answers_within(50, slider, [2, 3, 4, 5, 6, 7] * 4, stage)
    with pytest.raises(AssertionError):
        lab.answers_within(1, slider, [2, 3, 4], stage)


def test_it_is_photographed(stepper, lab, translator):
    lab.photograph(stepper, "decoder_stepper")
    stepper.get_by_label("step", exact=True).fill("3")
    lab.photograph(stepper, "decoder_stepper_3")
    enter(stepper, BEAR)
    shows(stepper, explore(translator, BEAR), 1)
    stepper.get_by_label("layer").select_option("0")
    stepper.get_by_label("step", exact=True).fill("14")
    lab.photograph(stepper, "decoder_stepper_long")
