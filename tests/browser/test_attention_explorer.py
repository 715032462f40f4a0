"""The attention explorer, operated by mouse and keyboard; what it shows is compared with the library."""

import re

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis.exploration import explore
from course_lib.translator import Translator
from tests.helpers import explorer as explorer_page
from tests.helpers.explorer import KINDS, TEXT, choose, shows, shows_every_head
from tests.helpers.pages import enter, new_widget

CELLS = explorer_page.CELLS
EXPLORED = explore(Translator.from_pretrained("course"), TEXT)


explorer = new_widget


def says(explorer: Locator, text: str) -> None:
    expect(explorer.get_by_role("status").first).to_have_text(text)


# --- what is drawn ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_is_drawn_as_the_library_has_it(kind, explorer, translator):
    maps = getattr(explore(translator, TEXT).attention, kind)
    explorer.get_by_label("attention", exact=True).select_option(index=KINDS.index(kind))
    assert [len(heads) for heads in maps] == [4, 4]
    shows_every_head(explorer, maps)
    with pytest.raises(AssertionError):
        shows(explorer, maps[0][3], seconds=0.2)


def test_all_heads_stand_side_by_side_and_a_click_enlarges_one(explorer, translator):
    choose(explorer, "head", "all")
    cross = explore(translator, TEXT).attention.cross[1]
    expect(explorer.locator(".cw-small")).to_have_count(4)
    for head in range(4):
        weights = explorer.locator(".cw-small").nth(head).locator("rect[data-weight]")
        found = weights.evaluate_all("nodes => nodes.map(n => Number(n.dataset.weight))")
        assert found == pytest.approx(cross[head].flatten().tolist(), abs=1e-4)
    explorer.locator(".cw-small").nth(2).click()
    expect(explorer.get_by_label("head", exact=True)).to_have_value("2")
    shows(explorer, cross[2])


def test_pointing_at_a_token_leaves_its_lines_and_tells_its_weights(explorer, translator):
    row, weights = 3, explore(translator, TEXT).attention.cross[1][1]
    explorer.locator("text.cw-token").nth(row).hover()
    lines = explorer.locator("line[data-row]")
    expect(explorer.locator(f"line:not([data-row='{row}'])")).to_have_count(0)
    columns = lines.evaluate_all("nodes => nodes.map(n => Number(n.dataset.column))")
    assert set(columns) == {column for column, weight in enumerate(weights[row].tolist()) if weight >= 0.02}
    best = weights[row].argmax().item()
    told = explorer.get_by_role("status").last
    expect(told).to_contain_text(f"{EXPLORED.src_tokens[best]} {weights[row, best]:.2f}")
    explorer.locator("rect[data-row='5'][data-column='2']").hover()
    expect(told).to_contain_text(f"▁Kind → ▁woman: {weights[5, 2]:.3f}")


def test_gold_links_and_error_rates_are_the_librarys(explorer):
    expect(explorer.locator(".cw-gold")).to_have_count(10)
    expect(explorer.get_by_role("status").last).to_contain_text("alignment error rate of this head: 5 %")
    choose(explorer, "head", "0")
    expect(explorer.get_by_role("status").last).to_contain_text("alignment error rate of this head: 47 %")
    enter(explorer, "The cat sleeps.")
    expect(explorer.locator(".cw-gold")).to_have_count(0)


# --- what is changed ----------------------------------------------------------------------------


def test_a_forced_token_is_followed_by_what_the_library_says(explorer, translator):
    explorer.locator(".cw-piece").nth(3).click()
    others = EXPLORED.candidates[3]
    rivals = explorer.locator(".cw-rivals button")
    assert rivals.all_inner_texts() == [f"{each.token} {each.probability:.3f}" for each in others]
    rivals.nth(1).click()
    forced = explore(translator, TEXT, prefix=[*EXPLORED.tgt_ids[:3], others[1].id])
    says(explorer, f"{forced.text} (before: {EXPLORED.text})")
    shows(explorer, forced.attention.cross[1][1])
    explorer.get_by_role("button", name="as the model likes").click()
    says(explorer, f"{EXPLORED.text} (before: {forced.text})")


def test_heads_go_off_and_on_again(explorer, translator):
    explorer.get_by_label("switch this head off").check()
    off = explore(translator, TEXT, silent=[("cross", 1, 1)])
    expect(explorer.get_by_role("button", name="all on again")).to_have_text("all on again (1 off)")
    shows(explorer, off.attention.cross[1][1])
    choose(explorer, "head", "all")
    explorer.get_by_label("switch off all of this layer").check()
    off = explore(translator, TEXT, silent=[("cross", 1, head) for head in range(4)])
    assert off.text != EXPLORED.text
    says(explorer, f"{off.text} (before: {EXPLORED.text})")
    explorer.get_by_role("button", name="all on again").click()
    says(explorer, f"{EXPLORED.text} (before: {off.text})")


def looks(button):
    return button.evaluate("node => ['color', 'borderStyle', 'cursor'].map((name) => getComputedStyle(node)[name])")


def test_the_translation_is_written_token_by_token(explorer):
    back, on = explorer.get_by_label("one token back"), explorer.get_by_label("one token on")
    count = len(EXPLORED.tgt_tokens)
    expect(on).to_be_disabled()
    assert all(off != usual for off, usual in zip(looks(on), looks(back), strict=True))
    for shown in range(count - 1, 0, -1):
        back.click()
        expect(explorer.locator(".cw-stage rect[data-weight]")).to_have_count(shown * len(EXPLORED.src_tokens))
    expect(back).to_be_disabled()
    assert explorer.locator(".cw-piece").all_inner_texts() == [EXPLORED.tgt_tokens[0], *["·"] * (count - 1)]
    on.click()
    expect(explorer.locator(".cw-piece").nth(1)).to_have_text(EXPLORED.tgt_tokens[1])


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_what_is_not_written_yet_is_told_nowhere(kind, explorer):
    """Neither in words nor to who points at it; the last key is the token that was written last."""
    explorer.get_by_label("attention", exact=True).select_option(index=KINDS.index(kind))
    explorer.locator(".cw-piece").nth(4).click()
    expect(explorer.locator(".cw-rivals")).to_contain_text(f"instead of {EXPLORED.tgt_tokens[4]}:")
    for _ in range(len(EXPLORED.tgt_tokens) - 3):
        explorer.get_by_label("one token back").click()
    expect(explorer.locator(".cw-piece:disabled")).to_have_count(len(EXPLORED.tgt_tokens) - 3)
    columns = len(EXPLORED.src_tokens if kind == "cross" else EXPLORED.tgt_tokens)
    expect(explorer.locator(".cw-stage rect[data-weight]")).to_have_count(3 * columns)
    explorer.locator("text.cw-token").nth(3).hover()
    expect(explorer.get_by_role("status").last).to_contain_text("Point at a token")
    told = explorer.locator(".cw-output, .cw-rivals, .cw-stage").evaluate_all(
        "parts => parts.flatMap(part => [part, ...part.querySelectorAll('*')])"
        ".map(node => `${node.getAttribute('aria-label')} ${node.title || ''} ${node.textContent}`).join(' ')"
    )
    assert EXPLORED.tgt_tokens[2] in told and "not written yet" in told
    assert not any(token in told for token in EXPLORED.tgt_tokens[3:] if token.startswith("▁"))


def test_a_german_token_is_no_row_of_the_encoder(explorer):
    explorer.get_by_label("attention", exact=True).select_option(index=0)
    told = explorer.get_by_role("status").last
    expect(told).to_contain_text("Point at a token")
    explorer.locator(".cw-piece").nth(1).click()
    expect(explorer.locator(".cw-rivals")).to_contain_text("instead of")
    explorer.page.wait_for_timeout(100)  # the frame in which a row would be drawn
    expect(told).to_contain_text("Point at a token")


def test_more_tokens_than_there_are_do_no_harm(explorer, lab, translator):
    """The page may have asked for as many as the former sentence had."""
    enter(explorer, "The cat sleeps.")
    expect(explorer.locator(".cw-piece")).to_have_count(5)
    lab.run("explorer.shown = 12")
    shows(explorer, explore(translator, "The cat sleeps.").attention.cross[1][1])


# --- what is typed ------------------------------------------------------------------------------


def test_any_text_is_answered(explorer, translator):
    enter(explorer, "")
    says(explorer, "an empty sentence cannot be translated: ''")
    enter(explorer, "word " * 200)
    expect(explorer.get_by_role("status").first).to_contain_text("tokens; the widget takes up to 40")
    for text in ("The dog sees the cat.", "😀 <b onclick=alert(1)>bold</b> & 'so' on"):
        enter(explorer, text)
        expect(explorer.locator(".cw-piece").first).to_be_visible()
        expected = explore(translator, text)
        expect(explorer.get_by_role("status").first).to_contain_text(expected.text)
        choose(explorer, "layer", "1")
        shows(explorer, expected.attention.cross[1][1][:40, :40])
    assert explorer.locator("b").count() == 0


STOP = """() => {
  const node = document.activeElement;
  return node.getAttribute("aria-label") || (node.labels?.length ? node.labels[0].textContent : node.textContent);
}"""


def test_the_keyboard_is_enough(explorer):
    """Tab reaches every control; arrow keys walk through the tokens, and stay away from JupyterLab's cells."""
    page = explorer.page
    explorer.get_by_label("English").focus()
    explorer.get_by_label("one token back").click()  # else ▶ is disabled
    explorer.locator(".cw-piece").nth(1).click()  # rivals, one of which is what stands there
    explorer.get_by_label("English").focus()
    seen = []
    for _ in range(15):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(STOP))
    rivals = [f"{each.token} {each.probability:.3f}" for each in EXPLORED.candidates[1] if each.token != "▁alte"]
    controls = ["Translate", "attention", "layer", "head", "switch this head off"]
    stops = [*controls, "▁alte", "one token back", "one token on", *rivals]
    assert seen[: len(stops)] == stops and seen[len(stops)].startswith("▁Die: ▁The ")
    explorer.locator("text.cw-token").first.focus()
    for row in (1, 2):
        page.keyboard.press("ArrowDown")
        expect(explorer.locator("text.cw-token.cw-strong")).to_have_text(EXPLORED.tgt_tokens[row])
    expect(explorer.locator("line:not([data-row='2'])")).to_have_count(0)


def test_what_is_pressed_keeps_the_focus(explorer):
    press = explorer.page.keyboard.press
    back, on = explorer.get_by_label("one token back"), explorer.get_by_label("one token on")
    back.focus()
    count = len(EXPLORED.tgt_tokens)
    for shown in (count - 1, count - 2):
        press("Enter")
        expect(explorer.locator(".cw-stage rect[data-weight]")).to_have_count(shown * len(EXPLORED.src_tokens))
        expect(back).to_be_focused()
    on.focus()
    press("Enter")
    expect(on).to_be_focused()
    press("Enter")
    expect(on).to_be_disabled()
    expect(back).to_be_focused()  # the nearest that can have it
    off, again = explorer.get_by_label("switch this head off"), explorer.get_by_role("button", name="all on again")
    off.focus()
    press("Space")
    expect(again).to_have_text("all on again (1 off)")
    expect(off).to_be_focused()
    again.focus()
    press("Enter")
    expect(again).to_be_disabled()
    expect(off).to_be_focused()
    piece = explorer.locator(".cw-piece").nth(3)
    piece.focus()
    press("Enter")
    expect(piece).to_have_attribute("aria-pressed", "true")
    expect(piece).to_be_focused()
    rival = explorer.locator(".cw-rivals button:enabled").first
    rival.focus()
    press("Enter")
    expect(explorer.get_by_role("button", name="as the model likes")).to_be_enabled()
    expect(explorer.locator(".cw-rivals button:focus")).to_have_count(1)


def test_the_focus_stays_where_it_is_when_the_kernel_answers(explorer):
    switch = explorer.get_by_role("checkbox")  # clicked by the page itself, which moves no focus
    token = explorer.locator("text.cw-token").nth(2)
    token.focus()
    token.evaluate("token => token.dataset.former = true")
    switch.evaluate("box => { box.former = true; box.click(); }")
    expect(token).not_to_have_attribute("data-former", "true")  # drawn again
    assert switch.evaluate("box => box.former")  # but not the box: a click while it is drawn anew would be lost
    expect(token).to_be_focused()
    expect(token).to_have_class(re.compile("cw-strong"))
    choose(explorer, "head", "all")
    small = explorer.locator(".cw-small").nth(2)
    small.focus()
    switch.evaluate("box => box.click()")
    expect(small).to_contain_text("(off)")
    expect(small).to_be_focused()
    explorer.page.keyboard.press("Enter")
    expect(explorer.locator(".cw-small")).to_have_count(0)
    expect(explorer.get_by_label("head", exact=True)).to_be_focused()


# --- how fast, how it looks ---------------------------------------------------------------------


def test_pointing_is_answered_at_once(explorer, lab):
    tokens = explorer.locator("text.cw-token")
    lab.answers_within(50, tokens, range(2, 22), explorer.locator(".cw-stage"), event="mouseenter")


def test_it_is_photographed(explorer, lab):
    lab.photograph(explorer, "explorer")
    choose(explorer, "head", "all")
    lab.photograph(explorer, "explorer_all")
