"""Pages for everyone: an outline, words for pictures, and contrast; each law is seen to fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pytest_playwright", reason="the extra [browser] is not installed: make test-book")
from playwright.sync_api import Browser, Page  # noqa: E402

from notebooks.source.book_alive import from_npm  # noqa: E402
from tests.helpers.web_pages import WebPage  # noqa: E402

AXE = "axe-core@4.10.3"
CHECKED = """async () => {
  const wanted = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] };
  const rules = Object.fromEntries(["heading-order", "page-has-heading-one", "skip-link", "empty-heading"]
    .map((rule) => [rule, { enabled: true }]));
  const { violations } = await axe.run(document, { runOnly: wanted, rules });
  return violations.flatMap(({ id, nodes }) => nodes.map((each) =>
    `${id}: ${each.html.slice(0, 160)} ${(each.any[0] ?? each.all[0] ?? each.none[0] ?? {}).message ?? ""}`));
}"""

MOVED = """window.moved = 0;
new PerformanceObserver((list) => list.getEntries().forEach((one) => { window.moved += one.value; }))
  .observe({ type: "layout-shift", buffered: true });"""


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


def law_anyone_can_read_it(page: Page, axe: str) -> None:
    """In both themes."""
    page.evaluate(axe)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = page.evaluate(CHECKED)
        assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ("index.html", "notebooks/03_attention.html", "docs/book/translate.html"))
def test_anyone_can_read_it(page: Page, address: str, axe: str, name: str) -> None:
    page.goto(f"{address}/{name}", wait_until="networkidle")
    law_anyone_can_read_it(page, axe)


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


def law_little_moves(page: Page, most: float = 0.1) -> None:
    """Of what a reader sees while a page loads; more than 0.1 is what the Web Vitals call poor."""
    moved = page.evaluate("window.moved")
    assert moved <= most, f"moved by {moved:.3f}"


@pytest.mark.parametrize("name", ("index.html", "notebooks/08_transformer.html"))
def test_little_moves_while_a_page_loads(page: Page, address: str, name: str) -> None:
    page.add_init_script(MOVED)
    page.goto(f"{address}/{name}", wait_until="networkidle")
    law_little_moves(page)
    page.evaluate("document.querySelector('main').style.marginTop = '400px'")
    page.wait_for_function("window.moved > 0.1")
    with pytest.raises(AssertionError, match="moved by"):
        law_little_moves(page)


def test_the_first_key_leads_past_the_menus(page: Page, address: str) -> None:
    """Tab, then Enter: the text, and not one of the hundred links before it."""
    page.goto(f"{address}/notebooks/03_attention.html", wait_until="networkidle")
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.textContent.trim()")
    assert first == "Skip to main content"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("Boolean(document.activeElement.closest('main'))")
