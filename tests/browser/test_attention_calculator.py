"""The attention calculator, operated by mouse and keyboard; what it shows is compared with the library."""

import math

import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.attention import attention, attention_scores
from tests.helpers.lab import Lab, eventually
from tests.helpers.pages import new_widget

CELLS = (
    "import torch\nfrom course_lib.widgets import AttentionCalculator",
    "tokens = ['The', 'cat', 'sleeps', '.']\n"
    "kinds, facts = ['article', 'noun', 'verb', 'animal'], ['animal', 'asleep']\n"
    "Q = torch.tensor([[0, 6, 0, 0], [5, -4, 5, 0], [0, 4, 0, 2], [0, 0, 6, 0]]).float()\n"
    "K = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]).float()\n"
    "V = torch.tensor([[0, 0], [1, 0], [0, 1], [0, 0]]).float()\n"
    "calculator = AttentionCalculator(Q, K, V, tokens, tokens, kinds, facts)\n"
    "calculator",
)
TOKENS = ["The", "cat", "sleeps", "."]
KINDS = ["article", "noun", "verb", "animal"]
Q = torch.tensor([[0, 6, 0, 0], [5, -4, 5, 0], [0, 4, 0, 2], [0, 0, 6, 0]], dtype=torch.float64)
K = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=torch.float64)
V = torch.tensor([[0, 0], [1, 0], [0, 1], [0, 0]], dtype=torch.float64)


calculator = new_widget


def results(query, key, value, *, scaled=True, temperature=1.0):
    """The library's scores, weights and context."""
    scores = attention_scores(query, key, temperature=temperature * (math.sqrt(query.shape[-1]) if scaled else 1))
    return {"scores": scores, "weights": scores.softmax(dim=-1), "context": scores.softmax(dim=-1) @ value}


def shown(calculator: Locator, name: str) -> torch.Tensor:
    """A result on the page, to 7 digits."""
    table = calculator.locator("table").nth(3 + ["scores", "weights", "context"].index(name))
    return torch.tensor(
        table.locator("tr").evaluate_all(
            "rows => rows.slice(1).map(row => [...row.querySelectorAll('td')].map(cell => Number(cell.dataset.value)))"
        ),
        dtype=torch.float64,
    )


def cell(calculator: Locator, label: str) -> Locator:
    return calculator.get_by_label(label, exact=True)


@eventually
def shows(calculator: Locator, expected: dict) -> None:
    """All three results are the expected ones, and their texts are their numbers."""
    for name, numbers in expected.items():
        torch.testing.assert_close(shown(calculator, name), numbers, rtol=1e-6, atol=1e-6)
    texts = calculator.locator(".cw-result").all_inner_texts()
    numbers = [each for name in ("scores", "weights", "context") for each in expected[name].flatten().tolist()]
    assert len(texts) == len(numbers)
    for text, number in zip(texts, numbers, strict=True):
        decimals = 0 if abs(number) >= 1000 else 1 if abs(number) >= 100 else 2
        assert abs(float(text.replace("−", "-")) - number) <= 0.51 * 10**-decimals


def set_cell(calculator: Locator, label: str, text: str) -> None:
    cell(calculator, label).fill(text)
    cell(calculator, label).press("Enter")


@eventually
def kernel_has(lab: Lab, name: str, expected: torch.Tensor) -> None:
    assert lab.run(f"print(calculator.{name})") == str(expected.tolist())


# --- what is computed ---------------------------------------------------------------------------


def test_the_first_state_is_the_lessons(calculator):
    first = results(Q, K, V)
    context, weights = attention(Q, K, V)
    torch.testing.assert_close(first["weights"], weights)
    torch.testing.assert_close(first["context"], context)
    shows(calculator, first)
    for wrong in (results(Q, K, V, scaled=False), results(K, Q, V), results(Q, K, V.flip(1))):
        with pytest.raises(AssertionError):
            shows(calculator, wrong, seconds=0.2)


def test_every_number_that_is_typed_is_computed_with(calculator, lab):
    query, key, value = Q.clone(), K.clone(), V.clone()
    generator = torch.Generator().manual_seed(0)
    for letter, matrix, columns in (("Q", query, KINDS), ("K", key, KINDS), ("V", value, ["animal", "asleep"])):
        for row, token in enumerate(TOKENS):
            for column, name in enumerate(columns):
                number = torch.randint(-200, 201, (), generator=generator).item() / 10
                matrix[row, column] = number
                set_cell(calculator, f"{letter}, {token}, {name}", str(number))
        shows(calculator, results(query, key, value))
    for name, matrix in (("query", query), ("key", key), ("value", value)):
        kernel_has(lab, name, matrix)
    computed = lab.run("print([each.tolist() for each in calculator.compute()])")
    for ours, name in zip(eval(computed), ("scores", "weights", "context"), strict=True):
        torch.testing.assert_close(shown(calculator, name), torch.tensor(ours).double(), rtol=1e-6, atol=1e-6)
    calculator.get_by_role("button", name="Reset").click()
    shows(calculator, results(Q, K, V))
    kernel_has(lab, "query", Q)


@pytest.mark.parametrize("scaled", [True, False])
def test_scale_and_temperature_at_their_extremes(scaled, calculator):
    calculator.get_by_label("scale").set_checked(scaled)
    for temperature in (0.1, 5.0, 1.0, 0.5):
        calculator.get_by_label("temperature").fill(str(temperature))
        shows(calculator, results(Q, K, V, scaled=scaled, temperature=temperature))
        root = ["√4"] * scaled + [f"{temperature:g}"] * (temperature != 1)
        words = " / " + (root[0] if len(root) == 1 else f"({' · '.join(root)})") if root else ""
        expect(calculator.locator("caption").nth(3)).to_have_text(f"scores: QKᵀ{words}")


def test_the_largest_numbers_do_not_overflow(calculator):
    calculator.get_by_label("scale").set_checked(False)
    calculator.get_by_label("temperature").fill("0.1")
    query, key = Q.clone(), K.clone()
    query[0], key[0], key[1] = 20, 20, -20
    for kind in KINDS:
        for label, text in ((f"Q, The, {kind}", "20"), (f"K, The, {kind}", "20"), (f"K, cat, {kind}", "-20")):
            set_cell(calculator, label, text)
    expected = results(query, key, V, scaled=False, temperature=0.1)
    assert expected["scores"].max() == 16_000 and expected["weights"].isfinite().all()
    shows(calculator, expected)


# --- what moves ---------------------------------------------------------------------------------


def moved(calculator: Locator) -> dict[str, set[tuple[int, int]]]:
    """Cells of each result that are marked as moved."""
    return {
        name: {tuple(each) for each in places}
        for name, places in calculator.evaluate(
            """root => Object.fromEntries([...root.querySelectorAll('table')].slice(3).map((table) => [
              table.querySelector('caption').textContent.split(':')[0],
              [...table.rows].slice(1).flatMap((row, i) => [...row.querySelectorAll('td')].flatMap(
                (cell, j) => (cell.classList.contains('cw-moved') ? [[i, j]] : [])))]))"""
        ).items()
    }


@eventually
def marks(calculator: Locator, before: dict, after: dict) -> None:
    """What has moved between the two results is marked, and nothing else."""
    for name, places in moved(calculator).items():
        apart = (after[name] - before[name]).abs() >= 0.005
        assert places == {tuple(each) for each in apart.nonzero().tolist()}, name


def test_q_moves_its_row_k_all_rows_and_v_the_context_only(calculator):
    before, told = results(Q, K, V), calculator.locator(".cw-message").first
    query, key, value = Q.clone(), K.clone(), V.clone()
    set_cell(calculator, "Q, cat, article", "2")
    query[1, 0] = 2
    marks(calculator, before, results(query, K, V))
    words = "Q, “cat”, article: 5 → 2 moves scores of “cat”; weights of “cat”; context of “cat”."
    expect(told).to_have_text(words)
    with pytest.raises(AssertionError):
        marks(calculator, before, results(Q, key * 2, V), seconds=0.2)
    set_cell(calculator, "V, The, animal", "-3")
    value[0, 0] = -3
    before, after = results(query, K, V), results(query, K, value)
    marks(calculator, before, after)
    assert moved(calculator)["weights"] == set() != moved(calculator)["context"]
    expect(told).to_contain_text("V, “The”, animal: 0 → −3 moves no scores; no weights; context of ")
    set_cell(calculator, "K, sleeps, verb", "0")
    key[2, 2] = 0
    marks(calculator, after, results(query, key, value))
    calculator.get_by_label("scale").uncheck()
    marks(calculator, results(query, key, value), results(query, key, value, scaled=False))
    expect(told).to_contain_text("scale: on → off moves scores of ")
    calculator.get_by_role("button", name="Reset").click()
    marks(calculator, before, before)


def test_dragging_steps_a_number_and_stops_at_the_limits(calculator, lab):
    box = cell(calculator, "Q, cat, article").bounding_box()
    page, x, y = calculator.page, box["x"] + 20, box["y"] + 10
    page.mouse.move(x, y)
    page.mouse.down()
    for right in range(1, 33):
        page.mouse.move(x - right, y)
    expect(cell(calculator, "Q, cat, article")).to_have_value("3")  # 32 pixels are four steps
    query = Q.clone()
    query[1, 0] = 3
    shows(calculator, results(query, K, V))
    marks(calculator, results(Q, K, V), results(query, K, V))  # since the drag began
    page.mouse.move(x, y - 8)  # up is more
    expect(cell(calculator, "Q, cat, article")).to_have_value("5.5")
    for far, number in ((1000, "20"), (-1000, "−20")):
        page.mouse.move(x + far, y)
        expect(cell(calculator, "Q, cat, article")).to_have_value(number)
    page.mouse.up()
    page.mouse.move(x, y + 100)
    expect(cell(calculator, "Q, cat, article")).to_have_value("−20")
    query[1, 0] = -20
    kernel_has(lab, "query", query)


# --- what is typed and pressed ------------------------------------------------------------------


def test_what_is_no_number_is_told_and_changes_nothing(calculator):
    told = calculator.locator(".cw-message").first
    for text in ("", "two", "20.1", "-21", "1e1", "NaN", "😀", "<b>7</b>", "word " * 200, "1 2", "--1", "−"):
        set_cell(calculator, "Q, cat, verb", text)
        expect(told).to_have_text(f"“{text[:40]}” is no number from −20 to 20: 5 stays.")
        expect(told).to_have_class("cw-message cw-error")
        expect(cell(calculator, "Q, cat, verb")).to_have_value("5")
    shows(calculator, results(Q, K, V))
    assert calculator.locator("b").count() == 0
    set_cell(calculator, "Q, cat, verb", " −1,5 ")
    expect(told).to_have_class("cw-message")
    query = Q.clone()
    query[1, 2] = -1.5
    shows(calculator, results(query, K, V))


def test_the_keyboard_is_enough(calculator):
    page = calculator.page
    cell(calculator, "Q, The, article").focus()
    for key, label in (("ArrowDown", "Q, cat, article"), ("ArrowRight", "Q, cat, noun"), ("ArrowUp", "Q, The, noun")):
        page.keyboard.press(key)
        expect(cell(calculator, label)).to_be_focused()
    page.keyboard.press("ArrowUp")  # the edge
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageDown")
    expect(cell(calculator, "Q, The, noun")).to_have_value("6.5")
    page.keyboard.type("4")
    page.keyboard.press("Escape")
    expect(cell(calculator, "Q, The, noun")).to_have_value("6.5")
    seen, focused = [], "(({ ariaLabel, type, tagName }) => ariaLabel || type || tagName)(document.activeElement)"
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
    assert seen == ["K, The, article", "V, The, animal", "checkbox", "range", "submit", "TD", "TD", "TD"]


def test_every_result_tells_its_sum(calculator):
    told, cells = calculator.locator(".cw-message").last, calculator.locator(".cw-result")
    cells.nth(4).hover()
    expect(told).to_have_text("score of “cat” with “The”: (5·1 + −4·0 + 5·0 + 0·0) / 2.00 = 2.50")
    cells.nth(16 + 6).focus()
    expect(told).to_have_text("weight of “cat” on “sleeps”: e^2.50 / (e^2.50 + e^−2.00 + e^2.50 + e^0.00) = 0.48")
    calculator.page.keyboard.press("ArrowLeft")
    expect(told).to_contain_text("weight of “cat” on “cat”: e^−2.00 / ")
    cells.nth(32 + 3).hover()
    expect(told).to_have_text("context of “cat”, asleep: 0.48·0 + 0.01·0 + 0.48·1 + 0.04·0 = 0.48")
    set_cell(calculator, "V, sleeps, asleep", "10")
    expect(told).to_have_text("context of “cat”, asleep: 0.48·0 + 0.01·0 + 0.48·10 + 0.04·0 = 4.78")


# --- how fast, how it looks ---------------------------------------------------------------------


def test_changes_are_answered_at_once(calculator, lab):
    numbers, degrees = [each / 2 for each in range(-12, 12)], [0.2 + 0.1 * each for each in range(24)]
    for label, values, event in (("Q, cat, verb", numbers, "change"), ("temperature", degrees, "input")):
        lab.answers_within(50, calculator.get_by_label(label, exact=True), values, calculator, event=event)


def test_it_is_photographed(calculator, lab):
    lab.photograph(calculator, "calculator")
    calculator.get_by_label("scale").uncheck()
    calculator.get_by_label("temperature").fill("0.1")
    set_cell(calculator, "Q, cat, noun", "-20")
    calculator.locator(".cw-result").nth(20).hover()
    lab.photograph(calculator, "calculator_extreme")
