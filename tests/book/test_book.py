"""Laws of the book's pages; each is seen to fail on a broken one."""

import importlib
import pkgutil
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag

import nbformat
import pytest
from nbformat import NotebookNode

import course_lib
from notebooks.source.terms import read_terms
from tests.helpers.sphinx import built
from tests.helpers.web_pages import STYLE, WebPage

REMOTE = re.compile(r"([a-z][a-z0-9+.-]*:)?//|(https?|ftp):", re.IGNORECASE)
ASKS = ("Predict: ", "Predictions: ")


@pytest.fixture(scope="module")
def lessons(root: Path) -> dict[str, NotebookNode]:
    """What is stored, by the address of its page."""
    paths = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return {f"notebooks/{path.stem}.html": nbformat.read(path, as_version=4) for path in paths}


def changed(page: WebPage, tmp_path: Path, old: str, new: str) -> WebPage:
    """A copy of the page, beside nothing, in which something is broken."""
    text = page.path.read_text(encoding="utf-8")
    assert old in text
    broken = tmp_path / page.path.name
    broken.write_text(text.replace(old, new, 1), encoding="utf-8")
    return WebPage(broken)


# --- nothing from elsewhere ---------------------------------------------------------------------


def law_nothing_remote_is_loaded(addresses: list[str], where: str) -> None:
    remote = [address for address in addresses if REMOTE.match(address.strip())]
    assert not remote, f"{where} loads {remote}"


def test_nothing_remote_is_loaded(book: dict[str, WebPage], folder: Path, tmp_path: Path) -> None:
    for name, page in book.items():
        law_nothing_remote_is_loaded(page.loads, name)
    styles = sorted(folder.rglob("*.css"))
    assert len(book) > 50 and len(styles) > 5
    for path in styles:
        law_nothing_remote_is_loaded(STYLE.findall(path.read_text(encoding="utf-8")), path.name)
    for broken in (
        '<script src="https://example.org/require.js"></script>',
        '<link rel="preconnect stylesheet" href="//example.org/css">',
        "<style>@import url(https://example.org/css?family=Lato);</style>",
        '<p style="background: url(http://example.org/x.png)">',
        '<img srcset="https://example.org/2.png 2x">',
    ):
        page = changed(book["index.html"], tmp_path, "</head>", f"{broken}</head>")
        with pytest.raises(AssertionError, match="index.html loads"):
            law_nothing_remote_is_loaded(page.loads, "index.html")
    with pytest.raises(AssertionError, match="loads"):
        law_nothing_remote_is_loaded(STYLE.findall("@font-face { src: url('https://example.org/f.woff') }"), "x.css")


# --- links --------------------------------------------------------------------------------------


def law_links_lead_somewhere(page: WebPage, folder: Path, pages: dict[Path, WebPage]) -> None:
    """Addresses are relative, their files are in the folder, and what they name after # is on that page."""
    for address in (*page.links, *page.loads):
        if REMOTE.match(address) or address.startswith(("data:", "mailto:")):
            continue
        rest, anchor = urldefrag(address)
        target = (page.path.parent / unquote(rest.partition("?")[0])).resolve() if rest else page.path.resolve()
        assert not rest.startswith("/") and target.is_relative_to(folder), f"{page.path.name}: {address} leads outside"
        assert target.is_file(), f"{page.path.name}: {address} is not there"
        if anchor and target in pages:
            assert unquote(anchor) in pages[target].ids, f"{page.path.name}: {address} names nothing on that page"


def test_links_lead_somewhere(book: dict[str, WebPage], folder: Path, tmp_path: Path) -> None:
    folder = folder.resolve()
    pages = {page.path.resolve(): page for page in book.values()}
    for page in book.values():
        law_links_lead_somewhere(page, folder, pages)
    place = tmp_path / "web"
    place.mkdir()
    shutil.copy(book["index.html"].path, place)
    for broken, message in (
        ("99_none.html", "99_none.html is not there"),
        ("index.html#nowhere", "names nothing on that page"),
        ("/index.html", "leads outside"),
        ("../../index.html", "leads outside"),
    ):
        (place / "page.html").write_text(f'<a href="{broken}">')
        pages[place / "index.html"] = book["index.html"]
        with pytest.raises(AssertionError, match=message):
            law_links_lead_somewhere(WebPage(place / "page.html"), place, pages)


def test_lessons_lead_to_lessons(book: dict[str, WebPage]) -> None:
    page = book["notebooks/07_decoder.html"]
    assert {"06_encoder.html", "08_transformer.html"} <= {link.partition("#")[0] for link in page.links}
    for each in book.values():
        assert not [link for link in each.links if ".ipynb" in link and not REMOTE.match(link)]


def test_a_warning_fails_the_build(installed: None, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "docs" / "book", tmp_path / "source", ignore=shutil.ignore_patterns("*.md"))
    page = tmp_path / "source" / "index.md"
    page.write_text("# A page\n\n## A part\n\n[x](#A-part)\n")
    done = built(tmp_path / "source", tmp_path / "web", root)
    assert done.returncode == 0, done.stderr
    page.write_text("# A page\n\n## A part\n\n[x](#Another-part)\n")
    assert "Another-part" in built(tmp_path / "source", tmp_path / "web", root).stderr


# --- lessons ------------------------------------------------------------------------------------


def figures(notebook: NotebookNode) -> list[str]:
    """The words for each picture that the lesson stores."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [out.metadata["image/png"]["alt"] for out in outputs if "image/png" in out.get("data", {})]


def law_a_page_shows_the_figures_of_its_lesson(page: WebPage, notebook: NotebookNode) -> None:
    shown = [" ".join(alt.split()) for alt in page.figures]
    stored = [" ".join(alt.split()) for alt in figures(notebook)]
    assert shown == stored, f"{page.path.name} lacks {set(stored) - set(shown)}"


def test_a_page_shows_the_figures_of_its_lesson(
    book: dict[str, WebPage], lessons: dict[str, NotebookNode], tmp_path: Path
) -> None:
    assert len(lessons) >= 19
    for name, notebook in lessons.items():
        law_a_page_shows_the_figures_of_its_lesson(book[name], notebook)
        assert f"maps/{name[10:12]}.svg" in {f"maps/{Path(load).name}" for load in book[name].loads}
    name = "notebooks/03_attention.html"
    text = book[name].path.read_text(encoding="utf-8")
    picture = re.search(r'<img [^>]*alt="Exact queries[^>]*>', text)
    with pytest.raises(AssertionError, match="lacks {'Exact queries"):
        page = changed(book[name], tmp_path, picture[0], "")
        law_a_page_shows_the_figures_of_its_lesson(page, lessons[name])


def plain_texts(cell: NotebookNode) -> list[str]:
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [data["text/plain"] for data in shown if {"image/png", "text/html"} & data.keys()]


def law_folded_cells_are_folded(page: WebPage, notebook: NotebookNode) -> None:
    """Those of the lesson, and the code of what the page asks in words."""
    folded = [
        cell
        for cell in notebook.cells
        if "hide-input" in cell.metadata.get("tags", []) or any(text.startswith(ASKS) for text in plain_texts(cell))
    ]
    assert len(page.folds) == len(folded), f"{page.path.name}: expected {len(folded)} folds, got {len(page.folds)}"
    assert not any(page.folds), f"{page.path.name} has a fold that is open"


def test_folded_cells_are_folded(book: dict[str, WebPage], lessons: dict[str, NotebookNode], tmp_path: Path) -> None:
    for name, notebook in lessons.items():
        law_folded_cells_are_folded(book[name], notebook)
    name = "notebooks/03_attention.html"
    for new, message in (("<div", "expected .* folds"), ("<details open", "a fold that is open")):
        page = changed(book[name], tmp_path, '<details class="admonition hide', f'{new} class="admonition hide')
        with pytest.raises(AssertionError, match=message):
            law_folded_cells_are_folded(page, lessons[name])


def law_each_widget_says_how_to_run_it(page: WebPage, notebook: NotebookNode) -> None:
    operated = [cell.id for cell in notebook.cells for text in plain_texts(cell) if not text.startswith("<")]
    assert page.widgets == operated, f"{page.path.name}: {set(operated) ^ set(page.widgets)}"


def test_each_widget_says_how_to_run_it(
    book: dict[str, WebPage], lessons: dict[str, NotebookNode], tmp_path: Path
) -> None:
    assert sum(len(book[name].widgets) for name in lessons) > 120
    for name, notebook in lessons.items():
        law_each_widget_says_how_to_run_it(book[name], notebook)
    name = "notebooks/00_welcome.html"
    page = changed(book[name], tmp_path, 'class="course-widget"', "")
    with pytest.raises(AssertionError, match="00_welcome.html: {'"):
        law_each_widget_says_how_to_run_it(page, lessons[name])


# --- the library --------------------------------------------------------------------------------


def faces() -> list[str]:
    prefix = f"{course_lib.__name__}."
    return [prefix[:-1], *(found.name for found in pkgutil.walk_packages(course_lib.__path__, prefix) if found.ispkg)]


def law_every_public_name_is_explained(face: str, names: list[str], book: dict[str, WebPage]) -> None:
    """Its page has the name itself, or leads to where another page has it."""
    page = book[f"api/{face.partition('.')[2] or 'index'}.html"]
    led = {link.rpartition(".")[2] for link in page.links if "course_lib." in link.partition("#")[2]}
    there = page.ids | {anchor.removeprefix("module-") for anchor in page.ids}
    lacking = [name for name in names if f"{face}.{name}" not in there and name not in led]
    assert not lacking, f"the reference of {face} lacks {lacking}"


def test_every_public_name_is_explained(book: dict[str, WebPage]) -> None:
    assert {"course_lib", "course_lib.figures", "course_lib.grammar.lexicon"} <= set(faces())
    for face in faces():
        law_every_public_name_is_explained(face, importlib.import_module(face).__all__, book)
    with pytest.raises(AssertionError, match=r"the reference of course_lib.figures lacks \['unheard_of'\]"):
        law_every_public_name_is_explained("course_lib.figures", ["curves", "unheard_of"], book)


def law_signatures_are_our_own(text: str) -> None:
    """Not those of another library's base class, and without addresses or paths of this machine."""
    shown = re.sub(r"<[^>]+>", "", text)
    strange = re.search(r"\(\*args: [\w.]*Any, \*\*kwargs|\bat 0x|/site-packages/", shown)
    assert not strange, f"a stranger's signature: {strange and strange[0]}"


def test_signatures_are_our_own(book: dict[str, WebPage]) -> None:
    pages = [page.path.read_text(encoding="utf-8") for name, page in book.items() if name.startswith("api/")]
    for text in pages:
        law_signatures_are_our_own(text)
    with pytest.raises(AssertionError, match="stranger"):
        law_signatures_are_our_own(pages[0] + "<em>(</em>*args: t.Any, **kwargs: t.Any)")


# --- the index ----------------------------------------------------------------------------------


def law_the_index_has_the_terms(text: str, terms: set[str]) -> None:
    found = re.findall(r'<a href="notebooks/terms\.html#[^"]+">([^<]+)</a>', text)
    lacking = terms - {unescape(each) for each in found}
    assert not lacking, f"the index lacks {sorted(lacking)}"


def test_the_index_has_the_terms(book: dict[str, WebPage], lessons: dict[str, NotebookNode]) -> None:
    """Beside the names of the library, each with a link to its line."""
    terms = {term.name.strip("`") for notebook in lessons.values() for term in read_terms(notebook, "")}
    text = book["genindex.html"].path.read_text(encoding="utf-8")
    assert len(terms) > 150 and "causal_mask" in text
    law_the_index_has_the_terms(text, terms)
    with pytest.raises(AssertionError, match=r"the index lacks \['causal mask'\]"):
        law_the_index_has_the_terms(text.replace(">causal mask<", "><"), terms)
