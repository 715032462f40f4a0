"""Pages for everyone: an outline, words for pictures, contrast, keys, and nothing jumps; each law is seen to fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pytest_playwright", reason="the extra [browser] is not installed: make test-book")
from playwright.sync_api import Browser, Page  # noqa: E402

from notebooks.source.book_alive import from_npm  # noqa: E402
from notebooks.source.book_recordings import RECORDED  # noqa: E402
from tests.helpers.web_pages import WebPage  # noqa: E402

AXE = "axe-core@4.10.3"
PAGES = ("index.html", "notebooks/08_transformer.html")
CHECKED = """async (where) => {
  const wanted = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] };
  const rules = Object.fromEntries(["heading-order", "page-has-heading-one", "skip-link", "empty-heading"]
    .map((rule) => [rule, { enabled: true }]));
  const { violations } = await axe.run(where, { runOnly: wanted, rules });
  return violations.flatMap(({ id, nodes }) => nodes.map((each) =>
    `${id}: ${each.html.slice(0, 160)} ${(each.any[0] ?? each.all[0] ?? each.none[0] ?? {}).message ?? ""}`));
}"""
MOST_SHIFT = 0.1  # what the web's own measure calls good
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifts.push(each.value);
}).observe({ type: "layout-shift", buffered: true });
"""


# --- outline and words --------------------------------------------------------------------------


def law_the_outline_has_one_top_and_skips_no_level(page: WebPage) -> None:
    levels = page.headings
    assert levels.count(1) == 1, f"{page.path.name} has {levels.count(1)} headings of level 1"
    first = levels[levels.index(1) :]
    skipped = [(above, below) for above, below in zip(first, first[1:], strict=False) if below > above + 1]
    assert not skipped, f"{page.path.name} skips from level {skipped[0][0]} to {skipped[0][1]}"


def law_pictures_have_words(page: WebPage) -> None:
    silent = [source for source, words in page.images if not (words or "").strip()]
    assert not silent, f"{page.path.name} has no words for {silent}"


def test_outlines_and_words(book: dict[str, WebPage], tmp_path: Path) -> None:
    for page in book.values():
        law_the_outline_has_one_top_and_skips_no_level(page)
        law_pictures_have_words(page)
    for law, broken, message in (
        (law_the_outline_has_one_top_and_skips_no_level, "<h1>a</h1><h1>b</h1>", "has 2 headings"),
        (law_the_outline_has_one_top_and_skips_no_level, "<h2>a</h2>", "has 0 headings"),
        (law_the_outline_has_one_top_and_skips_no_level, "<h1>a</h1><h2>b</h2><h4>c</h4>", "from level 2 to 4"),
        (law_pictures_have_words, '<img src="a.png">', "no words for .'a.png'"),
        (law_pictures_have_words, '<img src="a.png" alt=" ">', "no words for"),
    ):
        (tmp_path / "page.html").write_text(broken)
        with pytest.raises(AssertionError, match=message):
            law(WebPage(tmp_path / "page.html"))


# --- in a browser -------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    yield page
    context.close()


@pytest.fixture(scope="module")
def axe(installed: None) -> str:
    """The program that checks pages against WCAG, to be put into one."""
    return (from_npm(AXE, "axe.min.js") / "axe.min.js").read_text(encoding="utf-8")


def law_anyone_can_read_it(page: Page, axe: str, where: str = "html") -> None:
    """In both themes."""
    page.evaluate(axe)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = page.evaluate(CHECKED, where)
        assert not found, "\n".join(found)


def test_anyone_can_read_the_first_page(page: Page, address: str, axe: str) -> None:
    page.goto(f"{address}/index.html", wait_until="networkidle")
    law_anyone_can_read_it(page, axe)


@pytest.mark.parametrize("name", ["merge_stepper", "decoder_stepper"])
def test_anyone_can_read_a_recorded_widget(page: Page, address: str, axe: str, name: str) -> None:
    page.goto(f"{address}/notebooks/{RECORDED[name].lesson}.html")
    place = page.locator(f'[data-recorded="{name}"]')
    place.get_by_role("button").click()
    place.locator(".cw").wait_for()
    law_anyone_can_read_it(page, axe, f'[data-recorded="{name}"]')


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ('<p style="color: #999; background: #fff">pale</p>', "color-contrast"),
        ('<img src="data:,">', "image-alt"),
        ("<h5>deep</h5>", "heading-order"),
        ("<button></button>", "button-name"),
        ("<input>", "label"),
    ],
)
def test_what_not_everyone_can_read_is_found(page: Page, axe: str, broken: str, message: str) -> None:
    page.set_content(f'<html lang="en"><title>a</title><body><main><h1>a</h1>{broken}</main></body></html>')
    with pytest.raises(AssertionError, match=message):
        law_anyone_can_read_it(page, axe)


def test_keys_skip_to_the_text_and_show_where_they_are(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/03_attention.html", wait_until="networkidle")
    page.keyboard.press("Tab")
    assert "Skip to main content" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => { const node = document.activeElement, style = getComputedStyle(node);
                  return [node.closest("main") !== null, style.outlineStyle !== "none" || style.boxShadow !== "none",
                    node.outerHTML.slice(0, 120)]; }"""
            )
        )
    assert all(inside for inside, *_ in seen[:4]), seen
    assert all(visible for _, visible, _ in seen), [html for _, visible, html in seen if not visible]


@pytest.fixture(params=[390, 1280])
def sized(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    page = context.new_page()
    page.add_init_script(SHIFTS)
    yield page
    context.close()


def law_nothing_jumps(page: Page) -> None:
    """While the page is loaded, and while one reads down to its end."""
    for _ in range(12):
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(60)
    shift = sum(page.evaluate("window.shifts"))
    assert shift < MOST_SHIFT, f"the page jumps by {shift:.3f}"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_jumps(sized: Page, address: str, name: str) -> None:
    sized.goto(f"{address}/{name}", wait_until="networkidle")
    law_nothing_jumps(sized)


def test_what_jumps_is_found(sized: Page, tmp_path: Path) -> None:
    late = "setTimeout(() => { document.querySelector('div').style.height = '500px'; }, 300)"
    text = "<p>words of the page</p>" * 60
    (tmp_path / "page.html").write_text(f"<!doctype html><div></div>{text}<script>{late}</script>")
    sized.goto((tmp_path / "page.html").as_uri())
    sized.wait_for_timeout(600)
    with pytest.raises(AssertionError, match="the page jumps by"):
        law_nothing_jumps(sized)
