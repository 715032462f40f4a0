"""The README's pictures show what the pages show; COURSE_SCREENSHOTS=docs/pictures takes them anew."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pytest_playwright", reason="the extra [browser] is not installed: make test-book")
from playwright.sync_api import Browser, Page  # noqa: E402

FOLDER = os.environ.get("COURSE_SCREENSHOTS")
MOST_BYTES = 150_000


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 760}, color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def shown(root: Path) -> dict[str, str]:
    """The README's pictures and their words."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    return {name: words for words, name in re.findall(r"!\[([^\]]+)\]\(docs/pictures/(\w+)\.png\)", readme)}


def keep(root: Path, name: str, picture: bytes) -> None:
    """Where asked, in place of the old one; there must be one, and small."""
    if FOLDER:
        (root / FOLDER / f"{name}.png").write_bytes(picture)
    assert 10_000 < (root / "docs" / "pictures" / f"{name}.png").stat().st_size <= MOST_BYTES


def law_the_words_are_those_of_the_explorer(words: str, sentence: str, translation: str) -> None:
    for said in (sentence, translation):
        assert said and said in words, f"the README's words lack {said!r}"


def law_the_words_name_a_heading_of_the_page(words: str, page: Page) -> None:
    """In quotation marks."""
    named = re.search(r"“(.+)”", words)
    heading = page.locator("h2").filter(has_text=named[1] if named else "no heading is named")
    assert heading.count() == 1, f"{heading.count()} headings are what the README's words name"


def test_the_explorer_says_what_the_readme_says(page: Page, address: str, root: Path, shown: dict[str, str]) -> None:
    page.goto(f"{address}/translate.html")
    page.wait_for_selector(".alive [data-key='on']", timeout=120_000)
    explorer = page.locator(".alive").nth(1)
    explorer.get_by_label("head", exact=True).select_option("1")
    translation = explorer.get_by_role("status").first.inner_text()
    sentence = page.get_by_label("English").nth(1).input_value()
    law_the_words_are_those_of_the_explorer(shown["explorer"], sentence, translation)
    for part in (sentence, translation):
        broken = shown["explorer"].replace(part, part[1:])
        with pytest.raises(AssertionError, match=re.escape(f"lack {part!r}")):
            law_the_words_are_those_of_the_explorer(broken, sentence, translation)
    keep(root, "explorer", explorer.screenshot())


def test_the_lesson_has_the_heading_that_the_readme_names(
    page: Page, address: str, root: Path, shown: dict[str, str]
) -> None:
    page.goto(f"{address}/notebooks/03_attention.html")
    law_the_words_name_a_heading_of_the_page(shown["lesson"], page)
    for broken in (shown["lesson"].replace("”", "ly”"), shown["lesson"].replace("“", "")):
        with pytest.raises(AssertionError, match="0 headings"):
            law_the_words_name_a_heading_of_the_page(broken, page)
    heading = page.locator("h2").filter(has_text=re.search(r"“(.+)”", shown["lesson"])[1])
    heading.scroll_into_view_if_needed()
    heading.evaluate("node => node.scrollIntoView()")
    keep(root, "lesson", page.screenshot())
