"""What the widgets share, in a page without a notebook: modules that load, numbers in words, shares, colors."""

import pytest
import torch
from playwright.sync_api import Error, Route

from course_lib.widgets.base import short
from course_lib.widgets.scripts import STATIC, exports, joined
from tests.helpers.lab import Lab

ADDRESS = "http://scripts.test/"
SCRIPTS = sorted(str(path.relative_to(STATIC)) for path in STATIC.rglob("*.js"))
BROKEN = {"parse.js": "const;", "import.js": 'import { nothing } from "./shared/dom.js";', "run.js": "nothing();"}


@pytest.fixture(scope="module", autouse=True)
def served(lab: Lab) -> None:
    """The page is at an address that has the scripts as files, as a web server would give them."""

    def give(route: Route) -> None:
        name = route.request.url.removeprefix(ADDRESS)
        text = BROKEN.get(name) or (STATIC / name).read_text(encoding="utf-8") if name else ""
        route.fulfill(body=text, content_type="text/javascript" if name else "text/html")

    lab.page.route(f"{ADDRESS}**", give)
    lab.page.goto(ADDRESS)


def loaded(lab: Lab, address: str) -> list[str]:
    """What a module exports, in alphabetical order."""
    return lab.page.evaluate("async (address) => Object.keys(await import(address))", address)


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_is_a_module_of_its_own(name, lab):
    own = [] if "/" in name else ["default"]
    assert loaded(lab, ADDRESS + name) == sorted([*exports(STATIC / name), *own])


@pytest.mark.parametrize("name", BROKEN)
def test_a_script_that_is_no_module_is_found(name, lab):
    with pytest.raises(Error, match="SyntaxError|ReferenceError"):
        loaded(lab, ADDRESS + name)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if "/" not in name])
def test_a_joined_script_needs_no_other(name, lab):
    """As JupyterLab loads it: from an address to which no other is relative."""
    address = lab.page.evaluate(
        "text => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }))", joined(STATIC / name)
    )
    assert loaded(lab, address) == ["default"]


def call(lab: Lab, words: str, *given, script: str = "numbers"):
    """The value of an expression over `given` and what a shared script exports, in the page."""
    names = ", ".join(exports(STATIC / "shared" / f"{script}.js"))
    imported = f"const {{ {names} }} = await import('{ADDRESS}shared/{script}.js')"
    return lab.page.evaluate(f"async (given) => {{ {imported}; return {words}; }}", list(given))


@pytest.mark.parametrize("digits", [1, 2])
def test_a_number_is_written_as_the_library_writes_it(digits, lab):
    for number in (0, 1, 3.5, 12.3456, 0.0125, 123_456.7, 1e6, 2.5e9, 1e-3, 6.99e-4, 9.96e-4, 4.27e-5, -2e-7, 1e-12):
        assert call(lab, "short(...given)", number, digits) == short(number, digits)


@pytest.mark.parametrize(
    "number, digits, text",
    [
        (-0.001, 2, "0.00"),
        (0, 2, "0.00"),
        (-0.006, 2, "−0.01"),
        (-0.0004, 3, "0.000"),
        (-1, 0, "−1"),
        (12.5, 1, "12.5"),
    ],
)
def test_zero_has_no_sign(number, digits, text, lab):
    assert call(lab, "signed(...given)", number, digits) == text


def test_counts_have_commas(lab):
    numbers = [1, 6.28, 99.96, 700, 12_000, 1_234_567]
    assert call(lab, "given.map(grouped)", *numbers) == ["1", "6.3", "100", "700", "12,000", "1,234,567"]


@pytest.mark.parametrize(
    "low, high, count, expected",
    [
        (0, 100, 5, [0, 20, 40, 60, 80, 100]),
        (-1, 0, 1, [-1, 0]),
        (-1, 0, 5, [-1, -0.8, -0.6, -0.4, -0.2, 0]),
        (-4, 3, 6, [-4, -2, 0, 2]),
        (0, 0.7, 4, [0, 0.2, 0.4, 0.6]),
    ],
)
def test_ticks_are_multiples_of_their_step(low, high, count, expected, lab):
    """Summed up, five times 0.2 below −1 would be no whole number."""
    found = call(lab, "ticks(...given)", low, high, count)
    assert found == pytest.approx(expected, abs=1e-15) and "-0" not in map(str, found)
    assert [each for each in found if each == round(each)] == [each for each in expected if each == round(each)]


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (100, 5572, [100, 200, 500, 1000, 2000, 5000]),
        (0.03, 1, [0.05, 0.1, 0.2, 0.5, 1]),
        (3, 4, []),
        (20, 20, [20]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_1_2_and_5_times_powers_of_ten(low, high, expected, lab):
    assert call(lab, "logTicks(...given)", low, high) == pytest.approx(expected)


def test_the_nearest_is_found(lab):
    assert [call(lab, "nearest([1, 10, 20], ...given)", wanted) for wanted in (-5, 5, 6, 99)] == [0, 0, 1, 2]


def test_shares_are_the_librarys_and_none_where_all_is_hidden(lab):
    scores = [1.5, -2.0, 800.0, 799.0]
    assert call(lab, "softmax(given)", *scores) == pytest.approx(torch.tensor(scores).double().softmax(0).tolist())
    expected = [*torch.tensor(scores[:2]).double().softmax(0).tolist(), 0, 0]
    assert call(lab, "softmax(given, index => index < 2)", *scores) == pytest.approx(expected)
    assert call(lab, "softmax(given, () => false)", *scores) is None


def test_two_scripts_give_no_id_twice(lab):
    assert len({call(lab, "unique('cw')", script="dom") for _ in range(20)}) == 20


@pytest.mark.parametrize(
    "body, system, scheme",
    [
        ('data-jp-theme-light="true"', "dark", "light"),
        ('data-jp-theme-light="false"', "light", "dark"),
        ('class="vscode-light"', "dark", "light"),
        ('class="vscode-dark"', "light", "dark"),
        ('class="vscode-high-contrast"', "light", "dark"),
        ('class="vscode-high-contrast vscode-high-contrast-light"', "dark", "light"),  # VS Code sets both
        ("", "light", "light"),
        ("", "dark", "dark"),
    ],
)
def test_colors_and_controls_follow_the_page_and_then_the_system(body, system, scheme, lab):
    style = (STATIC / "widgets.css").read_text(encoding="utf-8")
    lab.page.emulate_media(color_scheme=system)
    lab.page.set_content(f"<style>{style}</style><body {body}><div class='cw'><input type='checkbox'></div>")
    found = lab.page.locator("input").evaluate(
        "node => [getComputedStyle(node).colorScheme, getComputedStyle(node).getPropertyValue('--cw-accent')]"
    )
    assert found == {"light": ["normal", "#0072b2"], "dark": ["dark", "#4aa8e0"]}[scheme]


PAGES = {  # where widgets stand: whether it is light, its background, its text
    "JupyterLab, light": ("true", "white", "rgba(0, 0, 0, 0.87)"),
    "JupyterLab, dark": ("false", "#111", "rgba(255, 255, 255, 0.87)"),
    "the book, light": ("true", "white", "rgb(34, 40, 50)"),
    "the book, dark": ("false", "rgb(18, 18, 18)", "rgb(206, 214, 221)"),
}


def contrast(lab: Lab, page: str, background: str) -> float:
    """Of a widget's text on that background: the ratio of WCAG 2, from 1 to 21."""
    light, paper, ink = PAGES[page]
    style = (STATIC / "widgets.css").read_text(encoding="utf-8")
    names = f"--jp-layout-color0: {paper}; --jp-ui-font-color1: {ink}"
    lab.page.set_content(
        f"<style>{style}</style><body data-jp-theme-light='{light}' style='{names}'><div class='cw'>"
        f"<p style='background: {background}'>1.00</p></div>"
    )
    return lab.page.locator("p").evaluate(
        """(node) => {
          const look = getComputedStyle(node), page = getComputedStyle(node.parentNode);
          const over = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
          const luminance = (...layers) => {
            for (const color of layers) { over.fillStyle = color; over.fillRect(0, 0, 1, 1); }
            const [red, green, blue] = [...over.getImageData(0, 0, 1, 1).data].map((each) =>
              each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4);
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
          };
          const below = [page.backgroundColor, look.backgroundColor];
          const [low, high] = [luminance(...below), luminance(...below, look.color)].sort((a, b) => a - b);
          return (high + 0.05) / (low + 0.05);
        }"""
    )


@pytest.mark.parametrize("page", PAGES)
def test_text_stays_readable_on_the_strongest_color(page, lab):
    colors = call(lab, "[behind(1), tint(-1), tint(1)]", script="colors")
    weak = [color for color in colors if contrast(lab, page, color) < 4.5]
    assert not weak
    if "dark" in page:
        assert contrast(lab, page, "var(--cw-accent)") < 4.5, "the full color would be too strong"
