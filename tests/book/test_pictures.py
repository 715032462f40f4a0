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


def test_the_explorer_says_what_the_readme_says(page: Page, address: str, root: Path, shown: dict[str, str]) -> None:
    page.goto(f"{address}/translate.html")
    page.wait_for_selector(".alive [data-key='on']", timeout=120_000)
    explorer = page.locator(".alive").nth(1)
    explorer.get_by_label("head", exact=True).select_option("1")
    translation = explorer.get_by_role("status").first.inner_text()
    assert translation and translation in shown["explorer"]
    assert page.get_by_label("English").nth(1).input_value() in shown["explorer"]
    keep(root, "explorer", explorer.screenshot())


def test_the_lesson_has_the_heading_that_the_readme_names(
    page: Page, address: str, root: Path, shown: dict[str, str]
) -> None:
    page.goto(f"{address}/notebooks/03_attention.html")
    heading = page.locator("h2").filter(has_text=re.search(r"“(.+)”", shown["lesson"])[1])
    assert heading.count() == 1
    heading.scroll_into_view_if_needed()
    heading.evaluate("node => node.scrollIntoView()")
    keep(root, "lesson", page.screenshot())
