"""Widgets that answer in the page: tokenizer, door and search are those of the library, and nobody else is asked."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, Route

from course_lib.analysis import explore
from course_lib.data import load_corpus, load_course
from course_lib.recording import KINDS
from course_lib.translator import Translator
from notebooks.source.book_alive import LIVING
from tests.helpers.rounding import in_255_steps
from tests.helpers.visitors import ROWS

ODD = [  # and what nobody in the corpora types
    *("HELP!", "DVD", "A DVD", "A4 PDF", "BMW M3 ", "NATO", "I AM", "BERLIN", "YES"),
    *("<b></b>", "<s> </s>", "Hello.\n\n How are you?\n", "\nHi."),
    *("\ue000\U000f0001", "I like Жа, but Жб, or Жв, not Жг.", "π, " * 7000 + "and me"),
]
SENTENCES = [
    "I am tired.",
    "Where is the train station?",
    "She gave him 3 books.",
    "we live in berlin",
    "Who is Zendaya?",
    "I like Жа, but Жб, or Жв, not Жг.",
]
PREPARE = """async ([alive, texts]) => {
  const { Tokenizer } = await import(alive + "tokenizer.js"), { prepare } = await import(alive + "door.js");
  const tokenizer = new Tokenizer(await (await fetch(alive + "models/everyday/tokenizer.json")).json());
  const door = (text) => {
    try { return prepare(text, tokenizer); } catch (error) { return error.message; }
  };
  return texts.map((text) => [tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text)), door(text)]);
}"""
TRANSLATE = """async ([alive, texts]) => {
  const { Engine } = await import(alive + "engine.js");
  const engine = await Engine.load({ model: alive + "models/everyday/", runtime: alive + "runtime/" });
  const found = [], started = performance.now();
  for (const text of texts) found.push((await engine.translate(text)).text);
  return [found, (performance.now() - started) / texts.length];
}"""
EXPLORE = """async ([alive, text, prefix, silent]) => {
  const { Engine } = await import(alive + "engine.js"), { explorer } = await import(alive + "widgets.js");
  window.engine ||= Engine.load({ model: alive + "models/everyday/", runtime: alive + "runtime/" });
  const model = await explorer(await window.engine, text);
  for (const [name, value] of [["forced", prefix], ["silent", silent]]) model.set(name, value);
  await model.save_changes();
  const weights = Array.from(new Uint16Array(model.get("weights").buffer));
  return { view: model.get("view"), weights, message: model.get("message") };
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def rounded() -> Translator:
    """The everyday translator with weights as the page has them: the rows of a matrix in 255 steps."""
    translator = Translator.from_pretrained("everyday")
    in_255_steps(translator.model)
    return translator


def typed() -> list[str]:
    """5,000 texts: ODD, what visitors type, both languages of the course corpus, and of Tatoeba where it is."""
    texts = [*ODD, *(row[1].replace("\\n", "\n") for row in ROWS)]
    try:
        pairs = load_corpus("tatoeba").valid
    except FileNotFoundError:
        pairs = []
    pairs = [*pairs, *load_course(num_train=1, num_valid=1, num_test=2600).test]
    return [*texts, *(text for pair in pairs for text in (pair.src, pair.tgt))][:5000]


def by_library(translator: Translator, text: str) -> list:
    tokenizer = translator.tokenizer
    try:
        found = translator.prepare(text)
        door = {"pieces": [vars(piece) | {"copied": list(piece.copied)} for piece in found.pieces]}
        door |= {"remarks": list(found.remarks)}
    except ValueError as error:
        door = str(error).replace(r"\ue000\U000f0001", "\ue000\U000f0001")
    return [tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text)), door]


def test_tokenizer_and_door_are_those_of_the_library(page: Page, address: str) -> None:
    texts, translator = typed(), Translator.from_pretrained("everyday")
    assert len(texts) == 5000
    page.goto(f"{address}/index.html")
    ours = page.evaluate(PREPARE, [f"{address}/_static/alive/", texts])
    for text, each in zip(texts, ours, strict=True):
        assert each == by_library(translator, text), text


@pytest.mark.parametrize(
    ("script", "old", "new", "text"),
    [
        ("tokenizer", "ranks[least]", "-ranks[least]", "Where is the train station?"),
        ("tokenizer", 'i ? " " : ""', '""', "Where is the train station?"),
        ("door", "RARE_PIECES = 3", "RARE_PIECES = 9", "Who is Zendaya?"),
        ("door", "if (isLower(text))", "if (false)", "we live in berlin"),
        ("door", "pieces(long[0]) > 1 &&", "", "TOM"),
        ("door", "ABBREVIATED.test", "!ABBREVIATED.test", "Dr. Smith is here. He is late. He is busy."),
    ],
)
def test_a_broken_script_is_seen(page: Page, address: str, script: str, old: str, new: str, text: str) -> None:
    translator = Translator.from_pretrained("everyday")
    page.goto(f"{address}/index.html")
    (right,) = page.evaluate(PREPARE, [f"{address}/_static/alive/", [text]])
    assert right == by_library(translator, text)

    def broken(route: Route) -> None:
        code = route.fetch().text()
        assert old in code
        route.fulfill(body=code.replace(old, new), content_type="text/javascript")

    page.route(f"**/alive/{script}.js", broken)
    page.reload()
    (wrong,) = page.evaluate(PREPARE, [f"{address}/_static/alive/", [text]])
    assert wrong != right


@pytest.mark.parametrize("text", SENTENCES)
def test_the_page_explores_as_the_library_does(page: Page, address: str, rounded: Translator, text: str) -> None:
    """Tokens, probabilities, candidates and every attention weight; with forced tokens and silent heads."""
    page.goto(f"{address}/index.html")
    (forced,) = [explore(rounded, text).candidates[0][1].id]
    for prefix, silent in (([], []), ([forced], [("cross", 1, 3), ("encoder", 0, 0), ("decoder", 2, 5)])):
        ours = page.evaluate(EXPLORE, [f"{address}/_static/alive/", text, prefix, silent])
        theirs = explore(rounded, text, prefix=prefix, silent=silent)
        assert not ours["message"] and ours["view"]["text"] == theirs.text
        assert ours["view"]["src"] == theirs.src_tokens and ours["view"]["tgt"] == theirs.tgt_tokens
        assert ours["view"]["probabilities"] == pytest.approx(theirs.probabilities, abs=1e-4)
        for row, candidates in zip(ours["view"]["candidates"], theirs.candidates, strict=True):
            assert row[0][:2] == [candidates[0].id, candidates[0].token]
        weights = torch.cat([torch.stack(getattr(theirs.attention, kind)).flatten() for kind in KINDS])
        np.testing.assert_allclose(np.array(ours["weights"]) / 65535, weights, atol=1e-4)


def test_200_sentences_come_out_as_in_the_library(page: Page, address: str, rounded: Translator) -> None:
    texts = [pair.src for pair in load_course(num_train=1, num_valid=1, num_test=200, seed=1).test]
    page.goto(f"{address}/index.html")
    ours, milliseconds = page.evaluate(TRANSLATE, [f"{address}/_static/alive/", texts])
    print(f"{milliseconds:.0f} ms a sentence in the page")
    assert ours == [rounded.translate(text, beam_size=1).text for text in texts]
    coarser = Translator.from_pretrained("course")
    assert ours[:20] != [coarser.translate(text, beam_size=1).text for text in texts[:20]]


@pytest.mark.parametrize("name", ["notebooks/00_welcome.html", "notebooks/12_reading_attention.html", "index.html"])
def test_a_page_is_light_until_the_model_is_asked_for(page: Page, address: str, name: str) -> None:
    """As a static host sends it, text compressed."""
    sizes: dict[str, int] = {}
    page.on("response", lambda response: sizes.update({response.url: len(gzip.compress(response.body()))}))
    page.goto(f"{address}/{name}", wait_until="networkidle")
    assert len(sizes) > 5 and sum(sizes.values()) <= 3_000_000
    assert not any("/models/" in url or "/runtime/" in url for url in sizes)


def test_one_translates_in_the_page_and_nobody_else_is_asked(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/translate.html")
    page.wait_for_selector(".alive .cw-answer:not(:empty)", timeout=120_000)
    page.get_by_label("English").first.fill("I am tired.")
    page.wait_for_function("document.querySelector('.cw-answer').textContent === 'Ich bin müde.'", timeout=60_000)
    page.wait_for_selector(".alive [data-key='on']", timeout=60_000)  # of the explorer
    assert "in your browser" in page.locator(".alive").first.inner_text()
    assert len(asked) > 10 and all(url.startswith((address, "blob:", "data:")) for url in asked)


def test_a_lesson_starts_its_widgets_when_asked(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/12_reading_attention.html")
    place = page.locator(".alive")
    assert place.count() == 1 and "first state of a widget" in place.inner_text()
    place.get_by_role("button").click()
    page.wait_for_selector(".alive .cw", timeout=120_000)
    assert "Die alte Frau" in place.inner_text()


def test_a_browser_without_webassembly_is_told(page: Page, address: str) -> None:
    page.add_init_script("delete globalThis.WebAssembly")
    page.goto(f"{address}/translate.html")
    page.wait_for_selector(".alive-failed")
    assert "has no WebAssembly" in page.locator(".alive-failed").first.inner_text()


def test_every_living_widget_has_its_place(root: Path) -> None:
    for living in LIVING:
        stored = json.loads((root / living.lesson).read_text(encoding="utf-8"))
        sources = "\n".join("".join(cell["source"]) for cell in stored["cells"])
        assert living.text in sources, f"{living.lesson} begins with another sentence"
