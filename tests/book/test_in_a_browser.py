"""The book in a browser, below any address: it asks for nothing else, its formulas are set, and it fits a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pytest_playwright", reason="the extra [browser] is not installed: make test-book")
from playwright.sync_api import Browser, Page  # noqa: E402

from tests.helpers.web_pages import TOO_WIDE  # noqa: E402

PAGES = ("index.html", "notebooks/00_welcome.html", "notebooks/03_attention.html", "api/attention.html")


@pytest.fixture(params=["light", "dark"])
def phone(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A narrow page, of a reader who likes it light or dark."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=request.param)
    page = context.new_page()
    page.set_default_timeout(120_000)
    yield page
    context.close()


def visit(page: Page, home: str, name: str) -> list[str]:
    """Opens a page of the book; what it asks for outside of it, and its complaints."""
    found: list[str] = []
    page.on("request", lambda request: request.url.startswith((home, "data:", "blob:")) or found.append(request.url))
    page.on("requestfailed", lambda request: found.append(request.url))
    page.on("response", lambda response: response.status >= 400 and found.append(response.url))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: message.type == "error" and found.append(message.text))
    page.goto(f"{home}/{name}", wait_until="networkidle")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_else_and_fits_a_phone(phone: Page, address: str, name: str) -> None:
    assert visit(phone, address, name) == []
    assert phone.evaluate(TOO_WIDE) == []


def test_formulas_are_set_even_without_a_server(phone: Page, folder: Path) -> None:
    assert visit(phone, folder.as_uri(), "notebooks/03_attention.html") == []
    phone.locator("mjx-container").first.wait_for()
    assert phone.locator(".math", has=phone.locator("mjx-container")).count() == phone.locator(".math").count() > 0


def test_the_search_finds_a_term(phone: Page, address: str) -> None:
    found = visit(phone, address, "search.html?q=causal")
    phone.locator("#search-results li").first.wait_for()
    assert "Masks" in phone.locator("#search-results").inner_text()
    assert found == []


def test_what_goes_wrong_is_found(phone: Page, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<div class="bd-article"><img src="missing.png"><p style="width: 900px">wide</p></div>'
        '<script src="http://127.0.0.1:9/x.js"></script><script>throw new Error("broken")</script>'
    )
    found = visit(phone, tmp_path.as_uri(), "page.html")
    for part in ("missing.png", "127.0.0.1:9", "broken"):
        assert any(part in each for each in found), found
    assert phone.evaluate(TOO_WIDE) == ['<p style="width: 900px">wide</p>']
