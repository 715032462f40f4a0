"""The errata lab in the browser: judged first, then the numbers of the experiment, wherever its knob stands."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis import LabBook
from course_lib.widgets.errata_lab import shown
from tests.helpers.lab import eventually
from tests.helpers.pages import move, new_widget

BOOK = """from course_lib.analysis import LabBook
book = LabBook()
book.say("Powers", double="A square is the double.", root="A root `x` is the half.")
book.say("Signs", minus="A square has no sign.")
book.test("double", lambda base: {"as said": 2 * base, "found": base**2}, values=(1, 2, 5, 10, 100))
book.test("root", lambda base: {"found": base**0.5 - 3}, values=(1, 2, 4))
book.test("minus", lambda base: {"as said": 0, "found": 0 * base}, values=(-2, 2))
book.judge(double=("half right", "03_attention", "At 0 and `2`."))
book.judge(root=("wrong", "", "At 4."), minus=("right", "", "It has none."))"""
CELLS = (BOOK, "from course_lib.widgets import ErrataLab\nlab = ErrataLab(book.claims)\nlab")


errata = new_widget


def claims() -> tuple:
    """The same book, here."""
    names: dict = {}
    exec(BOOK, names)
    book: LabBook = names["book"]
    return book.claims


def choose(errata: Locator, number: int) -> None:
    errata.get_by_label("claim", exact=True).select_option(str(number))


def judge(errata: Locator, verdict: str) -> None:
    errata.get_by_role("button", name=verdict, exact=True).click()


@eventually
def tells(errata: Locator, number: int, place: int) -> None:
    """The page shows the claim's verdict, and its numbers at that place of the knob, in the table and as lines."""
    claim = claims()[number]
    plain = shown(claim)
    assert errata.locator(".cw-said").inner_text() == f"“{claim.said}”"
    assert f": {claim.verdict}. {claim.right.replace('`', '')}" in errata.locator(".cw-verdict").inner_text()
    assert errata.locator("output").inner_text() == plain["names"][place]
    cells = errata.locator("table td").all_inner_texts()
    assert cells == [row[place] for row in plain["written"].values()]
    lines = errata.locator("polyline")
    assert lines.evaluate_all("nodes => nodes.map(n => n.dataset.name)") == list(claim.numbers)
    for line in lines.all():
        points = [tuple(map(float, point.split(","))) for point in line.get_attribute("points").split()]
        assert len(points) == len(claim.values) and all(0 <= x <= 520 and 0 <= y <= 230 for x, y in points)
        steps = [b[0] - a[0] for a, b in zip(points, points[1:], strict=False)]
        assert max(steps) - min(steps) < 0.5, "each value of the knob has its place"


def test_first_there_is_the_sentence_alone(errata):
    expect(errata.locator(".cw-said")).to_have_text("“A square is the double.”")
    for hidden in (".cw-verdict", "table", "polyline", "input[type=range]"):
        expect(errata.locator(hidden)).to_have_count(0)
    expect(errata.locator(".cw-message")).to_have_text("judged 0 of 3, 0 of them as the experiment does")


def test_after_the_judgement_the_experiment_tells(errata, lab):
    judge(errata, "wrong")
    tells(errata, 0, 0)
    expect(errata.locator(".cw-verdict")).to_contain_text("The experiment disagrees: half right.")
    expect(errata.locator(".cw-verdict")).to_contain_text("(Lesson 03.)")
    expect(errata.locator(".cw-verdict code")).to_have_text("2")
    for place in (4, 0, 2):  # both ends, and between
        move(errata, "base", place)
        tells(errata, 0, place)
    with pytest.raises(AssertionError):
        tells(errata, 0, 1, seconds=0.2)
    judge(errata, "half right")
    expect(errata.locator(".cw-verdict")).to_contain_text("The experiment agrees: half right.")
    pressed = errata.locator("button[aria-pressed=true]")
    expect(pressed).to_have_text("half right")
    expect(errata.locator(".cw-message")).to_have_text("judged 1 of 3, 1 of them as the experiment does")
    assert lab.run("print(lab.answers, lab.at, lab.score)") == "{'1': 'half right'} 2 (1, 1)"


def test_each_claim_can_be_chosen_and_judged(errata):
    back, on = (errata.get_by_role("button", name=f"one claim {way}") for way in ("back", "on"))
    expect(back).to_be_disabled()
    for number, verdict in enumerate(("right", "wrong", "right")):
        expect(errata.locator(".cw-said")).to_have_text(f"“{claims()[number].said}”")
        expect(errata.locator("polyline")).to_have_count(0)
        judge(errata, verdict)
        for place in (0, len(claims()[number].values) - 1):
            move(errata, "base", place)
            tells(errata, number, place)
        if number < 2:
            on.click()
    expect(on).to_be_disabled()
    expect(errata.locator(".cw-message")).to_have_text("judged 3 of 3, 2 of them as the experiment does")
    options = errata.locator("option").all_inner_texts()
    assert [option[0] for option in options] == ["✗", "✓", "✓"]
    assert errata.locator("optgroup").evaluate_all("nodes => nodes.map(n => n.label)") == ["Powers", "Signs"]
    choose(errata, 0)  # what was judged stays so, and the knob is back at its first value
    tells(errata, 0, 0)


def test_the_keyboard_plays_it(errata):
    keyboard = errata.page.keyboard
    errata.get_by_role("button", name="one claim on").focus()
    for _ in range(3):
        keyboard.press("Tab")
    keyboard.press("Enter")
    expect(errata.get_by_role("button", name="wrong", exact=True)).to_be_focused()
    tells(errata, 0, 0)
    keyboard.press("Tab")
    keyboard.press("ArrowRight")
    tells(errata, 0, 1)
    keyboard.press("Tab")
    expect(errata.locator("svg[role=img]")).to_be_focused()
    keyboard.press("End")
    tells(errata, 0, 4)
    expect(errata.get_by_label("base", exact=True)).to_have_value("4")
    keyboard.press("ArrowLeft")
    tells(errata, 0, 3)


def test_a_narrow_page_shows_all_of_it(errata):
    judge(errata, "right")
    errata.evaluate("node => { node.style.width = '360px'; }")
    outer = errata.bounding_box()
    for part in ("select", "svg[role=img]", "table", ".cw-verdict"):
        box = errata.locator(part).first.bounding_box()
        assert box["x"] + box["width"] <= outer["x"] + outer["width"]


def test_answers_come_soon(errata, lab):
    judge(errata, "right")
    lab.answers_within(100, errata.get_by_label("base", exact=True), (1, 2, 3, 4, 0), errata.locator("table"))


def test_it_is_photographed(errata, lab):
    judge(errata, "wrong")
    move(errata, "base", 3)
    lab.photograph(errata, "errata")
