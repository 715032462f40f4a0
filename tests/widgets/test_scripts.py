"""The widgets' scripts as files: small, named as their modules, each importing what it uses, joined into one."""

import re
from pathlib import Path

import pytest

from course_lib import widgets
from course_lib.widgets.base import CourseWidget
from course_lib.widgets.scripts import IMPORT, STATIC, exports, joined
from tests.helpers.laws import raised
from tests.helpers.scripts import functions_of, names_of

TESTS = Path(__file__).resolve().parents[1]
SCRIPTS = {str(path.relative_to(STATIC)): path for path in sorted(STATIC.rglob("*.js"))}
LONGEST, LONGEST_FUNCTION, WIDEST = 250, 40, 120
EXPORTED = {name for path in SCRIPTS.values() for name in exports(path)}
BROWSER = set(
    "Array Boolean Error Float64Array ImageData KeyboardEvent Map MutationObserver Number ResizeObserver Set String "
    "clearTimeout getComputedStyle requestAnimationFrame setTimeout".split()
)


def law_small(name, text):
    """A script obeys the sizes that Python does."""
    lines = text.splitlines()
    assert len(lines) <= LONGEST, f"{name} has {len(lines)} lines, at most {LONGEST} are easy to read"
    for number, line in enumerate(lines, start=1):
        assert len(line) <= WIDEST, f"{name}:{number} has {len(line)} characters, at most {WIDEST}"
    for number, length in functions_of(text).items() if name.endswith(".js") else ():
        told = f"{name}:{number} begins a function of {length} lines, at most {LONGEST_FUNCTION} are easy to read"
        assert length <= LONGEST_FUNCTION, told


@pytest.mark.parametrize("name", [*SCRIPTS, "widgets.css"])
def test_scripts_and_styles_are_small(name):
    law_small(name, (STATIC / name).read_text(encoding="utf-8"))


def test_scripts_of_the_book_are_small(root):
    scripts = sorted((root / "docs" / "book" / "alive").glob("*.js"))
    assert len(scripts) >= 7
    for path in scripts:
        law_small(path.name, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("let a;\n" * 251, "x.js has 251 lines"),
        (f"let a;\nlet b; // {'b' * 120}", "x.js:2 has 130 characters"),
        ("let a;\nfunction f(a, b) {\n" + "a;\n" * 39 + "}", "x.js:2 begins a function of 41 lines"),
        ("const f = (a) => {\n" + "a;\n" * 39 + "};", "x.js:1 begins a function of 41 lines"),
        ("const f = (a) =>\n" + "a +\n" * 39 + "1;", "x.js:1 begins a function of 41 lines"),
        ("const f = { g(a) {\n" + "if (a) { a; }\n" * 39 + "} };", "x.js:1 begins a function of 41 lines"),
        ("f(() => { // }\n" + 'g(`}${a ? "}" : b}`);\n' * 39 + "});", "x.js:1 begins a function of 41 lines"),
        ("f(function () {\n" + "g(/[/}]/.test('}')); /* } */\n" * 39 + "});", "x.js:1 begins a function of 41 lines"),
    ],
)
def test_what_is_too_long_is_found(text, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        law_small("x.js", text)
    law_small("x.js", " ".join(text.strip().rsplit("\n", 1)).replace("b" * 120, "b"))  # one line less


# --- names --------------------------------------------------------------------------------------


def law_all_have_one_name(modules, *others):
    for other in others:
        assert modules == other, f"one has no other, or another name: {sorted(modules ^ other)}"


def test_class_module_script_and_tests_have_one_name():
    classes = [cls for cls in map(widgets.__getattr__, widgets.__all__) if issubclass(cls, CourseWidget)]
    modules = {cls.__module__.rpartition(".")[2] for cls in classes}
    snake = {re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower() for cls in classes}
    scripts = {path.stem for path in STATIC.glob("*.js")}
    law_all_have_one_name(modules, snake, scripts)
    assert len(modules) > 10 and {path.name for path in STATIC.iterdir() if path.is_dir()} <= {*modules, "shared"}
    for folder in ("browser", "widgets"):
        tests = {path.stem.removeprefix("test_") for path in (TESTS / folder).glob("test_*.py")}
        law_all_have_one_name(modules, modules & tests)
    with pytest.raises(AssertionError, match=r"\['attention_explorer', 'explorer'\]"):
        law_all_have_one_name(modules, modules - {"attention_explorer"} | {"explorer"})


def law_a_script_imports_what_it_uses(name, text):
    """And nothing else: files that are joined, or loaded before, hide a missing import."""
    imported, declared, used, called = names_of(text)
    assert imported <= used, f"{name} does not use {sorted(imported - used)}"
    unknown = called - imported - declared - BROWSER
    assert not unknown, f"{name} calls {sorted(unknown)}, which it neither imports nor declares"
    constants = {each for each in used & EXPORTED if each.isupper()} - imported - declared
    assert not constants, f"{name} uses {sorted(constants)}, which it neither imports nor declares"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_what_it_uses(name):
    law_a_script_imports_what_it_uses(name, SCRIPTS[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text, message",
    [
        ('import { el, svg } from "./dom.js";\nel("p");', "x.js does not use ['svg']"),
        ('import { el } from "./dom.js";\n// el\nconst a = { el: "el" };\na.el();', "x.js does not use ['el']"),
        ("const f = () => el();", "x.js calls ['el'], which it neither imports nor declares"),
        ("const f = () => `${el()}`;", "x.js calls ['el']"),
        ("const kinds = KINDS;", "x.js uses ['KINDS']"),
    ],
)
def test_what_is_not_imported_is_found(text, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        law_a_script_imports_what_it_uses("x.js", text)


def law_no_script_is_left_behind(scripts):
    """`scripts`: path → text; each is a widget's, or another one imports it."""
    imports = [(path, target) for path, text in scripts.items() for _, target in IMPORT.findall(text)]
    imported = {(path.parent / target).resolve() for path, target in imports}
    left = {path.name for path in scripts if path.parent != STATIC and path not in imported}
    assert not left, f"no script imports {left}"


def test_no_script_is_left_behind():
    texts = {path: path.read_text(encoding="utf-8") for path in SCRIPTS.values()}
    law_no_script_is_left_behind(texts)
    with pytest.raises(AssertionError, match="no script imports {'old.js'}"):
        law_no_script_is_left_behind(texts | {STATIC / "shared" / "old.js": ""})


# --- joined -------------------------------------------------------------------------------------


def written(folder, **scripts):
    for name, text in scripts.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "top.js"


def test_what_is_imported_comes_first_and_once_each_in_a_scope(tmp_path):
    top = written(
        tmp_path,
        top='import { a } from "./left.js";\nimport { b } from "./right.js";\nexport default { a, b };\n',
        left='import { one } from "./base.js";\n\nexport const a = one + 1;\n',
        right='import { one } from "./base.js";\n\nconst two = 2 * one;\n\nexport function b() {\n  return two;\n}\n',
        base="const hidden = 1;\n\nexport const one = hidden;\n",
    )
    assert joined(top) == (
        "const base = (() => {\nconst hidden = 1;\n\nconst one = hidden;\nreturn { one };\n})();\n\n"
        "const left = (() => {\nconst { one } = base;\n\nconst a = one + 1;\nreturn { a };\n})();\n\n"
        "const right = (() => {\nconst { one } = base;\n\nconst two = 2 * one;\n\n"
        "function b() {\n  return two;\n}\nreturn { b };\n})();\n\n"
        "const { a } = left;\nconst { b } = right;\nexport default { a, b };\n"
    )


@pytest.mark.parametrize(
    "scripts, message",
    [
        (
            dict(top='import { a } from "./a.js";', a='import { b } from "./b.js";', b='import { a } from "./a.js";'),
            "a circle of imports: top.js → a.js → b.js → a.js",
        ),
        (
            dict(top='import { a, b } from "./a.js";', a="export const a = 1;\nconst b = 2;"),
            "top.js imports b, which a.js does not export",
        ),
        (
            dict(top='import * as a from "./a.js";', a=""),
            "top.js: expected an import or export of a known kind, got 'import * as a from \"./a.js\";'",
        ),
        (
            dict(top='import { a } from "./a.js";', a="const a = 1;\nexport { a };"),
            "a.js: expected an import or export of a known kind, got 'export { a };'",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(scripts, message, tmp_path):
    assert message in str(raised(ValueError, lambda: joined(written(tmp_path, **scripts))))
