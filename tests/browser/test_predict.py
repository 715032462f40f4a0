"""Predict, then see, in the page: choosing, typing, the result beside it, the end of a lesson."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.lab import Lab, eventually

QUESTION, CHOICES = "What will the vector of cat be now?", ["the same numbers", "those of its place", "others"]
MARKED = QUESTION.replace("cat", "*cat*")
PAGES = "\n\n".join(["More text."] * 40)  # so that a heading is out of sight at the end
CELLS = (
    "from course_lib.widgets.predict import Predict, Predictions, _asked\n_asked.clear()",
    "## What does *shuffling* do?\n\nA question.",
    f"shuffling = Predict({MARKED!r}, {CHOICES}, section='What does *shuffling* do?')\nshuffling",
    'shuffling.reveal("the same numbers", because="a sum has no `order`")',
    f"## How many?\n\n{PAGES}",
    'tokens = Predict("How many tokens?", section="How many?", unit="tokens", within=0.1)\ntokens',
    "tokens.reveal(17)",
    "Predictions()",
    "shuffling",
)
START, CHOOSE, SHOWN, TYPE, TYPED, END, AGAIN = 0, 2, 3, 5, 6, 7, 8  # the code cells
AGAIN_TO_READ = "Read again: What does *shuffling* do?"
RESULT = "Result: the same numbers, because a sum has no `order`."


@pytest.fixture(autouse=True)
def asked(lab: Lab) -> None:
    """Both questions are asked, for the first time in their kernel."""
    lab.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    for cell in (START, TYPE, CHOOSE):
        lab.run_cell(cell)


@pytest.fixture
def choices(lab: Lab) -> Locator:
    return lab.widget(0)


@pytest.fixture
def number(lab: Lab) -> Locator:
    return lab.widget(1)


@eventually
def kernel_has(lab: Lab, code: str, expected: object) -> None:
    assert lab.run(f"print({code})") == str(expected)


@eventually
def shows(choices: Locator, chosen: int | None, result: int | None = None) -> None:
    """Which choice is taken, what stands beside each, and, once there is a result, that none can be taken."""
    boxes = choices.get_by_role("radio")
    assert boxes.evaluate_all("nodes => nodes.map(n => n.checked)") == [index == chosen for index in range(3)]
    assert boxes.evaluate_all("nodes => nodes.map(n => n.disabled)") == [result is not None] * 3
    beside = []
    for index in range(3):
        notes = ["the result"] * (index == result) + ["your prediction"] * (index == chosen and result is not None)
        beside.append(f"← {', and '.join(notes)}" if notes else "")
    assert choices.locator(".cw-muted").all_text_contents() == beside
    strong = [CHOICES[result]] if result is not None else []
    assert choices.locator(".cw-result").all_text_contents() == strong


def told(widget: Locator) -> Locator:
    return widget.get_by_role("status")


def text_of(lab: Lab, source: str) -> str:
    """What the code cells of that source have printed, or show as text."""
    outputs = [out for cell in lab.cells() if source in cell["source"] for out in cell["outputs"]]
    return "".join("".join(out.get("text", out.get("data", {}).get("text/plain", ""))) for out in outputs).strip()


@eventually
def printed(lab: Lab, source: str, *lines: str) -> None:
    """Its first line and its last."""
    found = text_of(lab, source).splitlines() or [""]
    assert [found[0], found[-1]] == [lines[0], lines[-1]]


@eventually
def chosen(lab: Lab, cell: int) -> None:
    """Which cell runs next."""
    assert lab.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex") == cell


# --- choosing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_a_choice_is_kept_and_the_result_shown_beside_it(chosen, choices, lab):
    expect(choices.locator(".cw-question")).to_have_text(QUESTION)
    assert choices.locator(".cw-question em").text_content() == "cat"
    expect(choices.get_by_role("radiogroup", name=QUESTION)).to_be_visible()
    shows(choices, None)
    expect(told(choices)).to_have_text("Predict, then run the next cell.")
    choices.get_by_text(CHOICES[chosen], exact=True).click()
    expect(told(choices)).to_have_text("Kept. Now run the next cell.")
    kernel_has(lab, "shuffling.answer", float(chosen))
    shows(choices, chosen)
    lab.run_cell(SHOWN)
    shows(choices, chosen, 0)
    for wrong in ((chosen, 1), ((chosen + 1) % 3, 0), (chosen, None)):
        with pytest.raises(AssertionError):
            shows(choices, *wrong, seconds=0.2)
    verdict = "right" if chosen == 0 else "not right"
    expect(told(choices)).to_have_text(f"{verdict.capitalize()}. Why: a sum has no order.")
    printed(lab, "shuffling.reveal", f"{RESULT} Your prediction: {CHOICES[chosen]}, {verdict}.")


def test_a_mind_can_be_changed_until_there_is_a_result(choices, lab):
    for chosen in (2, 0, 1):
        choices.get_by_role("radio").nth(chosen).check()
    kernel_has(lab, "shuffling.answer", 1.0)  # of three at once the kernel hears the last one late
    lab.run_cell(CHOOSE)
    shows(choices, 1)  # kept: the cell has run again
    choices.get_by_role("radio").nth(0).check()
    lab.run_cell(SHOWN)
    shows(choices, 0, 0)
    kernel_has(lab, "Predictions().rows[1][0]", "right")


def test_after_run_all_nothing_is_wrong_and_the_lesson_can_still_be_read(choices, number, lab):
    lab.run_all()
    shows(choices, None, 0)
    expect(told(choices)).to_have_text("There was no prediction before the result. Why: a sum has no order.")
    expect(number.get_by_role("spinbutton")).to_be_disabled()
    printed(lab, "shuffling.reveal", RESULT)
    printed(lab, "tokens.reveal", "Result: 17 tokens.")
    printed(lab, "Predictions()", "Predictions: 0 of 2 made.", "- not made: How many tokens? Result: 17 tokens.")
    lab.run_cell(CHOOSE)
    shows(choices, None)
    choices.get_by_role("radio").nth(1).check()
    lab.run_cell(SHOWN)
    lab.run_cell(END)
    shows(choices, 1, 0)
    printed(lab, "Predictions()", "Predictions: 1 of 2 made, 0 right.", AGAIN_TO_READ)


def test_a_choice_that_comes_late_does_not_count(choices, lab):
    """It is made while the kernel works at the cell that knows the result."""
    lab.page.evaluate(
        """() => { window.late = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
          { code: "import time; time.sleep(2); shuffling.reveal('the same numbers')", store_history: false }); }"""
    )
    choices.get_by_role("radio").nth(0).check()
    expect(told(choices)).to_have_text("Kept. Now run the next cell.")
    lab.page.evaluate("() => window.late.done.then(() => null)")
    shows(choices, None, 0)
    kernel_has(lab, "shuffling.answer", None)
    kernel_has(lab, "Predictions().rows[1][0]", "not made")


def test_two_views_of_a_prediction_agree(choices, lab):
    lab.run_cell(AGAIN)
    views = [choices, lab.widget(2)]
    for chosen, view in enumerate([*views, choices]):
        view.get_by_role("radio").nth(chosen).check()
        for each in views:
            shows(each, chosen)
    lab.run_cell(SHOWN)
    for each in views:
        shows(each, 2, 0)


# --- typing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed, answer", [("17", 17.0), ("-3", -3.0), ("0.125", 0.125), ("1e300", 1e300), ("", None)])
def test_a_number_is_kept_and_the_result_shown_beside_it(typed, answer, number, lab):
    box = number.get_by_role("spinbutton", name="How many tokens?")
    expect(number).to_contain_text("right within 10% of the result")
    box.fill(typed)
    kernel_has(lab, "tokens.answer", answer)
    lab.run_cell(TYPED)
    expect(box).to_be_disabled()
    expect(box).to_have_value(typed)
    expect(number.locator(".cw-result")).to_have_text("the result: 17 tokens")
    verdict = {17.0: "Right.", None: "There was no prediction before the result."}.get(answer, "Not right.")
    expect(told(number)).to_have_text(verdict)


def test_what_is_no_number_is_no_prediction(number, lab):
    box = number.get_by_role("spinbutton")
    box.press_sequentially("twelve-")
    kernel_has(lab, "tokens.answer", None)
    box.fill("")
    box.press_sequentially("12")
    kernel_has(lab, "tokens.answer", 12.0)
    box.press("Backspace")
    kernel_has(lab, "tokens.answer", 1.0)
    box.press("Backspace")
    kernel_has(lab, "tokens.answer", None)
    expect(told(number)).to_have_text("Predict, then run the next cell.")


# --- by keyboard --------------------------------------------------------------------------------


def test_the_keyboard_is_enough(choices, number, lab):
    """Arrow keys choose and stay in the cell; Enter gives the keys back to it."""
    page, focused = lab.page, "document.activeElement.classList.contains('jp-Cell')"
    lab.run_cell(CHOOSE)
    choices.get_by_role("radio").nth(0).focus()
    for key, taken in (("ArrowDown", 1), ("ArrowRight", 2), ("ArrowDown", 0), ("ArrowUp", 2), ("ArrowRight", 0)):
        page.keyboard.press(key)
        shows(choices, taken)
        kernel_has(lab, "shuffling.answer", float(taken))
    chosen(lab, CHOOSE)
    assert not page.evaluate(focused)
    page.keyboard.press("Enter")
    chosen(lab, CHOOSE)
    assert page.evaluate(focused)
    choices.get_by_role("radio").nth(0).focus()
    page.keyboard.press("Tab")  # one stop for all choices
    assert page.evaluate("document.activeElement.type") != "radio"


def test_shift_enter_goes_on_from_the_choices(choices, lab):
    """The widget's own cell runs again, and keeps what was chosen; then the next one runs."""
    lab.run_cell(CHOOSE)
    choices.get_by_role("radio").nth(0).focus()
    lab.page.keyboard.press("ArrowDown")
    for cell in (SHOWN, SHOWN + 1):
        lab.page.keyboard.press("Shift+Enter")
        chosen(lab, cell)
    shows(choices, 1, 0)


def test_shift_enter_goes_on_from_the_number(number, lab):
    lab.run_cell(TYPE)
    box = number.get_by_role("spinbutton")
    box.click()
    lab.page.keyboard.type("17")
    for cell in (TYPED, END):
        lab.page.keyboard.press("Shift+Enter")
        chosen(lab, cell)
    expect(told(number)).to_have_text("Right.", timeout=60_000)
    expect(box).to_have_value("17")


def busy(lab, seconds):
    """What the kernel is asked from now on waits."""
    code = f"import time; time.sleep({seconds})"
    lab.page.evaluate(
        """(code) => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
          { code, store_history: false }); }""",
        code,
    )


def test_what_is_typed_before_a_cell_runs_counts(number, lab):
    """All of it, though the kernel is busy with something else and the focus stays in the box."""
    box = number.get_by_role("spinbutton")
    box.click()
    busy(lab, 2)
    lab.page.keyboard.type("17")
    lab.run("tokens.reveal(17)")
    expect(told(number)).to_have_text("Right.")
    expect(box).to_have_value("17")


def test_what_the_kernel_hears_late_takes_no_digit_away(number, lab):
    box = number.get_by_role("spinbutton")
    box.evaluate(
        """(node) => {
          const value = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
          node.written = [];
          const set = (to) => { node.written.push(to); value.set.call(node, to); };
          Object.defineProperty(node, "value", { set, get: () => value.get.call(node) });
        }"""
    )
    box.click()
    busy(lab, 1)
    lab.page.keyboard.type("123")
    kernel_has(lab, "tokens.answer", 123.0)
    assert box.evaluate("node => node.written") == []
    expect(box).to_have_value("123")


def test_the_focus_goes_to_the_cell_when_the_result_comes(choices, lab):
    lab.run_cell(CHOOSE)
    choices.get_by_role("radio").nth(1).focus()
    lab.run("shuffling.reveal('others')")
    shows(choices, None, 2)
    assert lab.page.evaluate("document.activeElement.classList.contains('jp-Cell')")


def test_a_focused_choice_has_a_ring(choices):
    choices.get_by_role("radio").nth(0).focus()
    choices.page.keyboard.press("ArrowDown")
    ring = choices.get_by_role("radio").nth(1).evaluate("node => getComputedStyle(node).outline")
    assert re.search(r"2px", ring) and "solid" in ring


# --- the end of the lesson ----------------------------------------------------------------------


def test_the_end_leads_to_the_section_to_read_again(choices, number, lab):
    choices.get_by_role("radio").nth(1).check()
    number.get_by_role("spinbutton").fill("18")
    for cell in (SHOWN, TYPED, END):
        lab.run_cell(cell)
    printed(lab, "Predictions()", "Predictions: 2 of 2 made, 1 right.", AGAIN_TO_READ)
    heading = lab.page.get_by_role("heading", name="What does shuffling do?")
    link = lab.page.locator(".jp-RenderedHTML a")
    expect(link).to_have_count(1)
    link.scroll_into_view_if_needed()
    expect(heading).not_to_be_in_viewport()
    table = lab.page.locator(".jp-RenderedHTML table")
    expect(table).to_contain_text("right")
    lab.photograph(table.locator(".."), "predictions")
    link.click()
    expect(heading).to_be_in_viewport()
    assert urlsplit(lab.page.url).path.endswith("predict.ipynb")


def law_nothing_leaves_the_machine(urls):
    assert {urlsplit(url).hostname for url in urls} <= {"127.0.0.1", None}, urls


def test_nothing_leaves_the_machine(choices, number, lab):
    urls = []

    def note(request):
        urls.append(request.url)

    lab.page.on("request", note)
    choices.get_by_role("radio").nth(1).check()
    number.get_by_role("spinbutton").fill("18")
    for cell in (SHOWN, TYPED, END):
        lab.run_cell(cell)
    lab.page.remove_listener("request", note)
    law_nothing_leaves_the_machine(urls)
    with pytest.raises(AssertionError):
        law_nothing_leaves_the_machine([*urls, "https://example.org/?answer=18"])


# --- how fast, how it looks ---------------------------------------------------------------------


def test_a_choice_is_answered_at_once(choices, lab):
    lab.answers_within(50, choices.get_by_role("radio"), [0, 1, 2, 0, 1, 2], told(choices), event="change")


def test_it_is_photographed(choices, number, lab):
    lab.photograph(choices, "predict_asked")
    choices.get_by_role("radio").nth(1).check()
    number.get_by_role("spinbutton").fill("18")
    lab.photograph(number, "predict_number")
    for cell in (SHOWN, TYPED):
        lab.run_cell(cell)
    expect(told(number)).to_have_text("Right.", timeout=60_000)
    lab.photograph(choices, "predict_shown")
    lab.photograph(number, "predict_number_shown")
