"""Widgets over recorded states in the page: it answers as the library does, and keys alone operate it."""

import gzip
import json
import random
from collections.abc import Iterator

import pytest

pytest.importorskip("pytest_playwright", reason="the extra [browser] is not installed: make test-book")
from playwright.sync_api import Browser, Locator, Page, Response, Route  # noqa: E402

from notebooks.source.book_recorded import Recorded, ask, one_thread  # noqa: E402
from notebooks.source.book_recordings import RECORDED  # noqa: E402
from tests.helpers.web_pages import TOO_WIDE  # noqa: E402

NAMES = sorted(RECORDED)
REPLAY = """async ([alive, name, asks]) => {
  const { replayed } = await import(alive + "recorded.js");
  const model = replayed(await (await fetch(`${alive}recorded/${name}.json`)).json());
  const plain = (value) => (value instanceof DataView ? Array.from(new Uint8Array(value.buffer)) : value);
  const all = () => Object.fromEntries(Object.entries(model.values).map(([each, value]) => [each, plain(value)]));
  const found = [all()];
  for (const inputs of asks) {
    for (const [each, value] of Object.entries(inputs)) model.set(each, value);
    await model.save_changes();
    found.push(all());
  }
  return found;
}"""
LANDING = """async ([alive, cases]) => {
  const { landing } = await import(alive + "recorded.js");
  return cases.map((each) => landing(...each));
}"""
WHERE = "document.activeElement.closest('[data-recorded]')?.dataset.recorded"
VALUES = """(place) => [...place.querySelectorAll("input, select, output, [aria-pressed]")].map((node) =>
  [node.value, node.checked, node.getAttribute("aria-pressed")].join()).join(";")"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def asks_of(recorded: Recorded) -> list[dict]:
    """Some of what a reader may ask for, one after another: of each table, some keys."""
    draw, found = random.Random(5), []
    for table in recorded.tables:
        keys = draw.sample(table.keys, min(8, len(table.keys)))
        found += [dict(zip(table.inputs, key, strict=True)) for key in keys]
    return found


def by_library(recorded: Recorded, asks: list[dict]) -> list[dict]:
    def seen() -> dict:
        values = {name: getattr(widget, name) for name in recorded.kind.class_own_traits(sync=True)}
        plain = {name: list(value) if isinstance(value, bytes) else value for name, value in values.items()}
        return json.loads(json.dumps(plain))

    with one_thread():
        widget = recorded.make()
        found = [seen()]
        for inputs in asks:
            ask(widget, inputs)
            found.append(seen())
    return found


def law_the_page_answers_as_the_library_does(ours: list[dict], theirs: list[dict]) -> None:
    for mine, right in zip(ours, theirs, strict=True):
        for trait, value in right.items():
            assert mine[trait] == value, f"the page has another {trait}"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_answers_as_the_library_does(page: Page, address: str, name: str) -> None:
    """Every trait, after every question of a row; a broken script is seen."""
    asks, alive = asks_of(RECORDED[name]), f"{address}/_static/alive/"
    theirs = by_library(RECORDED[name], asks)
    page.goto(f"{address}/search.html")
    law_the_page_answers_as_the_library_does(page.evaluate(REPLAY, [alive, name, asks]), theirs)

    def broken(route: Route) -> None:
        code = route.fetch().text()
        assert "states[at[numberOf(inputs, chosen)]]" in code
        route.fulfill(body=code.replace("numberOf(inputs, chosen)", "0"), content_type="text/javascript")

    page.route("**/alive/recorded.js", broken)
    page.reload()
    with pytest.raises(AssertionError, match="the page has another"):
        law_the_page_answers_as_the_library_does(page.evaluate(REPLAY, [alive, name, asks]), theirs)


def test_a_control_leads_to_a_recorded_value(page: Page, address: str) -> None:
    page.goto(f"{address}/search.html")
    cases = {
        ((1, 2, 8), 2, 8): 8,
        ((1, 2, 8), 2, 3): 8,  # one step of a key
        ((1, 2, 8), 8, 7): 2,
        ((1, 2, 8), 1, 5): 2,  # a drag: the nearest
        ((1, 2, 8), 8, 9): 8,
        ((1, 2, 8), 8, 9, True): 1,
        (("a", "b"), "b", "c"): "b",
    }
    assert page.evaluate(LANDING, [f"{address}/_static/alive/", [list(each) for each in cases]]) == [*cases.values()]


@pytest.fixture(params=[390, 1280])
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def wakened(page: Page, address: str, name: str) -> tuple[Locator, list[str]]:
    """The widget on its page, started with the Enter key, and what the page asked for elsewhere or complained of."""
    found: list[str] = []
    page.on("request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or found.append(asked.url))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: message.type == "error" and found.append(message.text))
    page.goto(f"{address}/notebooks/{RECORDED[name].lesson}.html", wait_until="networkidle")
    place = page.locator(f'[data-recorded="{name}"]')
    assert "first state of a widget" in place.inner_text()
    place.get_by_role("button").focus()
    page.keyboard.press("Enter")
    place.locator(".cw").wait_for()
    return place, found


def operated(page: Page, place: Locator, name: str) -> set[str]:
    """Takes Tab through the widget, and a key to each control that it meets; the kinds that moved something."""
    moved = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(WHERE) != name:
            break
        kind, at_end = page.evaluate(
            """() => { const node = document.activeElement;
              return [node.type || node.getAttribute("role") || node.tagName, node.type === "range"
                ? node.value === node.max : node.selectedIndex === node.length - 1]; }"""
        )
        key = {"range": ("ArrowRight", "ArrowLeft"), "select-one": ("ArrowDown", "ArrowUp")}.get(kind)
        press = key[at_end] if key else "Space" if kind in ("checkbox", "button", "submit") else None
        if press is None:
            continue
        before = place.evaluate(VALUES), place.inner_text()
        page.keyboard.press(press)
        page.wait_for_timeout(350)  # a widget waits for 200 ms of rest
        if (place.evaluate(VALUES), place.inner_text()) != before:
            moved.add(kind)
        else:
            assert kind not in ("range", "select-one"), f"{name}: {press} moves nothing"
    return moved


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_widget_is_operated_by_keys_alone(reader: Page, address: str, name: str) -> None:
    place, found = wakened(reader, address, name)
    assert reader.evaluate(WHERE) == name
    assert "This page has recorded" in place.inner_text() and "first state" not in place.inner_text()
    for words in RECORDED[name].off:
        control = place.get_by_label(words, exact=True).or_(place.get_by_role("button", name=words, exact=True))
        assert control.last.is_disabled(), words
    assert operated(reader, place, name) & {"range", "select-one"}
    assert not place.locator(".cw-error:not(:empty)").count()
    for theme in ("light", "dark"):
        reader.emulate_media(color_scheme=theme)
        assert reader.evaluate(TOO_WIDE) == []
    assert found == []


def test_a_page_with_its_recordings_is_light(page: Page, address: str) -> None:
    """As a static host sends it, text compressed; the lesson has two recordings."""
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))
    page.goto(f"{address}/notebooks/11_decoding.html", wait_until="networkidle")
    names = [place.get_attribute("data-recorded") for place in page.locator("[data-recorded]").all()]
    assert len(names) == 2
    for name in names:
        with page.expect_response(f"**/{name}.js"):  # asked for after its recording
            page.locator(f'[data-recorded="{name}"]').get_by_role("button").click()
        page.locator(f'[data-recorded="{name}"] .cw').wait_for()
    sizes = {response.url: len(gzip.compress(response.body())) for response in responses}
    for name in names:
        assert {f"{name}.json", f"{name}.js"} <= {url.rpartition("/")[2] for url in sizes}
    assert sum(sizes.values()) <= 3_000_000


def test_a_recording_that_is_gone_is_told(page: Page, address: str) -> None:
    page.route("**/recorded/merge_stepper.json", lambda route: route.fulfill(status=404))
    page.goto(f"{address}/notebooks/01_text_to_tensors.html")
    place = page.locator('[data-recorded="merge_stepper"]')
    place.get_by_role("button").click()
    place.locator(".alive-failed").wait_for()
    assert "the recording cannot be read: 404" in place.inner_text()
    page.unroute("**/recorded/merge_stepper.json")
    place.get_by_role("button", name="Try again").click()
    place.locator(".cw").wait_for()
