"""The mask painter, operated by mouse and keyboard; what it shows is compared with the library."""

import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.attention import attention_scores, attention_weights
from course_lib.masks import causal_mask
from tests.helpers.lab import Lab, eventually
from tests.helpers.pages import new_widget

CELLS = (
    "import torch\nfrom course_lib.masks import causal_mask\nfrom course_lib.widgets import MaskPainter",
    "german = '<s> Die Katze schläft . <pad> <pad>'.split()\n"
    "query, key = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(3))\n"
    "padding = torch.tensor([word != '<pad>' for word in german]).expand(7, 7)\n"
    "masks = {'padding': padding, 'causal': causal_mask(7)[0, 0], 'both': padding & causal_mask(7)[0, 0]}\n"
    "painter = MaskPainter(query, key, german, german, masks, mask='both')\n"
    "painter",
)
GERMAN = "<s> Die Katze schläft . <pad> <pad>".split()
QUERY, KEY = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(3)).double()
OPEN = torch.ones(7, 7, dtype=torch.bool)
PADDING = torch.tensor([word != "<pad>" for word in GERMAN]).expand(7, 7)
CAUSAL = causal_mask(7)[0, 0]
MASKS = {"no mask": OPEN, "padding": PADDING, "causal": CAUSAL, "both": PADDING & CAUSAL}
REFUSAL = "a query has nothing to attend to: a row of the mask is False for every key."


painter = new_widget


def told(painter: Locator) -> Locator:
    return painter.locator(".cw-message").first


def cell(painter: Locator, row: int, column: int) -> Locator:
    return painter.locator(f".cw-cell[data-row='{row}'][data-column='{column}']")


@eventually
def shows(painter: Locator, mask: torch.Tensor) -> None:
    """The mask, its scores and the library's weights; rows that the library refuses have none, and are named."""
    pressed = painter.locator(".cw-cell").evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-pressed'))")
    assert [each == "true" for each in pressed] == mask.flatten().tolist()
    scores, weights = attention_scores(QUERY, KEY), painter.locator(".cw-weight")
    for text, score, open in zip(
        painter.locator(".cw-cell").all_inner_texts(), scores.flatten().tolist(), mask.flatten().tolist(), strict=True
    ):
        assert (text == "−∞") == (not open) and (not open or abs(float(text.replace("−", "-")) - score) <= 0.0051)
    values = weights.evaluate_all("nodes => nodes.map(n => n.dataset.weight)")
    labels = weights.evaluate_all("nodes => nodes.map(n => n.getAttribute('aria-label'))")
    texts, empty = weights.all_inner_texts(), ~mask.any(dim=1)
    expected = attention_weights(QUERY, KEY, mask | empty[:, None])
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        row, column = divmod(place, 7)
        if empty[row]:
            assert (value, text) == ("none", "?")
            continue
        weight = expected[row, column].item()
        assert abs(float(value) - weight) <= 1e-6
        assert (float(value) == 0) == (text == "0") == (not mask[row, column])
        assert (text == "~0") == (0 < float(value) < 0.005)
        assert text in ("0", "~0") or abs(float(text) - weight) <= 0.0051
        assert labels[place] == f"{GERMAN[row]} to {GERMAN[column]}: weight {text}"
    if empty.any():
        names = ", ".join(f"“{GERMAN[row]}”" for row in empty.nonzero().flatten().tolist())
        expect(told(painter)).to_have_text(f"{names}: {REFUSAL}")
        with pytest.raises(ValueError, match=REFUSAL[:-1]):
            attention_weights(QUERY, KEY, mask)
    else:
        expect(told(painter)).to_contain_text(f"{mask.sum()} of 49 pairs are open")
        expect(told(painter)).to_contain_text(f"; {(~mask).sum()} weights are exactly 0.")
    assert ("cw-error" in told(painter).get_attribute("class")) == empty.any().item()


@eventually
def kernel_has(lab: Lab, mask: torch.Tensor) -> None:
    assert lab.run("print(painter.mask)") == str(mask.tolist())


# --- what is shown ------------------------------------------------------------------------------


def test_every_preset_is_the_lessons(painter, lab):
    shows(painter, MASKS["both"])
    for name, mask in MASKS.items():
        painter.get_by_role("button", name=name, exact=True).click()
        shows(painter, mask)
        expect(told(painter)).to_contain_text(f"pairs are open ({name})")
        pressed = painter.locator("button[aria-pressed='true']:not(.cw-cell)")
        expect(pressed).to_have_text([name])
        kernel_has(lab, mask)
        wrong = mask.clone()
        wrong[3, 2] ^= True
        with pytest.raises(AssertionError):
            shows(painter, wrong, seconds=0.2)


def moved(painter: Locator) -> list[list[int]]:
    return painter.locator(".cw-weight.cw-moved").evaluate_all(
        "nodes => nodes.map(n => [Number(n.dataset.row), Number(n.dataset.column)])"
    )


def test_one_key_less_and_the_rest_of_the_row_grows_by_one_factor(painter):
    painter.get_by_role("button", name="causal", exact=True).click()
    cell(painter, 4, 1).click()
    mask = CAUSAL.clone()
    mask[4, 1] = False
    shows(painter, mask)
    before, after = attention_weights(QUERY, KEY, CAUSAL), attention_weights(QUERY, KEY, mask)
    factor = (after[4] / before[4])[[0, 2, 3, 4]]
    assert torch.allclose(factor, factor[0])
    expect(told(painter)).to_contain_text(
        f"The other weights of “.” are multiplied by {factor[0]:.2f}; no other row moves."
    )
    expected = ((after - before).abs() >= 0.005).nonzero().tolist()
    assert moved(painter) == expected and all(row == 4 for row, _ in expected)
    cell(painter, 4, 1).click()
    shows(painter, CAUSAL)
    expect(told(painter)).to_contain_text(f"are multiplied by {1 / factor[0]:.2f}")


# --- strokes ------------------------------------------------------------------------------------


def middle(painter: Locator, row: int, column: int) -> tuple[float, float]:
    box = cell(painter, row, column).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_stroke_paints_all_that_it_crosses(painter, lab):
    mouse, mask = painter.page.mouse, MASKS["both"].clone()
    cell(painter, 0, 6).hover()  # hidden, so the stroke opens
    mouse.down()
    mask[0, 6] = True
    shows(painter, mask)
    mouse.move(*middle(painter, 6, 6))  # in one leap, over five cells
    mask[:, 6] = True
    shows(painter, mask)
    mouse.move(*middle(painter, 6, 3), steps=3)
    mask[6, 3:] = True
    shows(painter, mask)
    mouse.move(*(each + 90 for each in middle(painter, 6, 6)))  # outside
    mouse.up()
    shows(painter, mask)
    assert lab.page.evaluate("getSelection().toString()") == ""  # selected text would be dragged by the next stroke
    cell(painter, 0, 1).hover()  # the pointer is up
    shows(painter, mask)
    cell(painter, 2, 2).hover()  # open, so the stroke hides
    mouse.down()
    mouse.move(*middle(painter, 4, 4), steps=6)
    mouse.up()
    for place in (2, 3, 4):
        mask[place, place] = False
    shows(painter, mask)
    kernel_has(lab, mask)


def test_rows_columns_and_everything_by_their_heads(painter, lab):
    mask = MASKS["both"].clone()
    row, column = painter.get_by_label("open or hide query Katze"), painter.get_by_label("open or hide key schläft")
    for head, place in ((column, (slice(None), 3)), (row, (2, slice(None)))):
        for state in (True, False):
            head.click()
            mask[place] = state
            shows(painter, mask)
    assert not mask[2].any()
    painter.get_by_label("open or hide all cells").click()
    shows(painter, OPEN)
    painter.get_by_label("open or hide all cells").click()
    shows(painter, ~OPEN)
    expect(painter.locator(".cw-none")).to_have_count(49)
    kernel_has(lab, ~OPEN)


def test_an_empty_row_is_caught_and_opens_again(painter):
    painter.get_by_role("button", name="both", exact=True).click()
    cell(painter, 0, 0).click()
    mask = MASKS["both"].clone()
    mask[0, 0] = False
    shows(painter, mask)
    expect(told(painter)).to_have_text(f"“<s>”: {REFUSAL}")
    cell(painter, 0, 4).hover()
    details = painter.locator(".cw-message").last
    expect(details).to_contain_text("hidden: −∞; weight none: nothing is left; without a mask 0.")
    cell(painter, 0, 0).click()
    shows(painter, MASKS["both"])


def test_pointing_tells_score_and_weight(painter):
    scores, weights = attention_scores(QUERY, KEY), attention_weights(QUERY, KEY, MASKS["both"])
    plain, details = attention_weights(QUERY, KEY), painter.locator(".cw-message").last
    cell(painter, 3, 1).hover()
    score = f"{scores[3, 1]:.2f}".replace("-", "−")
    words = f"“schläft” → “Die”: score {score}; weight {weights[3, 1]:.3f}; without a mask {plain[3, 1]:.3f}"
    expect(details).to_have_text(words)
    painter.locator(".cw-weight").nth(3 * 7 + 5).hover()
    score = f"{scores[3, 5]:.2f}".replace("-", "−")
    words = f"“schläft” → “<pad>”: score {score}, hidden: −∞; weight 0, exactly; without a mask {plain[3, 5]:.3f}"
    expect(details).to_have_text(words)


# --- by keyboard --------------------------------------------------------------------------------


def test_the_keyboard_is_enough(painter, lab):
    page, mask = painter.page, CAUSAL.clone()
    painter.get_by_role("button", name="no mask", exact=True).focus()
    for key in ("ArrowRight", "ArrowRight", "Enter", "Tab"):
        page.keyboard.press(key)
    shows(painter, mask)
    expect(painter.get_by_label("open or hide all cells")).to_be_focused()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(cell(painter, 1, 1)).to_be_focused()
    for key, state in (("Space", False), ("Enter", True), ("Space", False)):
        page.keyboard.press(key)
        mask[1, 1] = state
        shows(painter, mask)
        expect(cell(painter, 1, 1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    mask[1, 2] = True
    shows(painter, mask)
    page.keyboard.press("Tab")
    expect(painter.locator(".cw-weight").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(painter.locator(".cw-message").last).to_contain_text("“Die” → “<s>”: score ")
    kernel_has(lab, mask)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_painting_is_answered_at_once(painter, lab):
    lab.answers_within(50, painter.locator(".cw-cell"), range(0, 49, 2), painter, event="click")


def test_it_is_photographed(painter, lab):
    lab.photograph(painter, "mask_painter")
    painter.get_by_label("open or hide query .", exact=True).click()
    painter.get_by_label("open or hide query .", exact=True).click()
    cell(painter, 2, 2).click()
    lab.photograph(painter, "mask_painter_empty_row")
