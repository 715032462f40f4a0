"""The widgets' scripts as files: small, named as their modules, each importing what it uses, joined into one."""

import re

import pytest

from course_lib import widgets
from course_lib.widgets.base import CourseWidget
from course_lib.widgets.scripts import IMPORT, STATIC, exports, joined
from tests.helpers.scripts import functions_of, names_of

SCRIPTS = {str(path.relative_to(STATIC)): path for path in sorted(STATIC.rglob("*.js"))}
LONGEST, LONGEST_FUNCTION, WIDEST = 250, 40, 120
EXPORTED = {name for path in SCRIPTS.values() for name in exports(path)}


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


@pytest.mark.parametrize(
    "text, message",
    [
        ("let a;\n" * 251, "x.js has 251 lines"),
        (f"let a;\nlet b; // {'b' * 120}", "x.js:2 has 131 characters"),
        ("let a;\nfunction f(a, b) {\n" + "a;\n" * 39 + "}", "x.js:2 begins a function of 41 lines"),
        ("const f = (a) => {\n" + "a;\n" * 39 + "};", "x.js:1 begins a function of 41 lines"),
        ("const f = (a) =>\n" + "a +\n" * 40 + "1;", "x.js:1 begins a function of 42 lines"),
        ("const f = { g(a) {\n" + "if (a) { a; }\n" * 39 + "} };", "x.js:1 begins a function of 41 lines"),
        ("f(() => {\n" + 'g(`}${a ? "}" : b}`); // }\n' * 39 + "});", "x.js:1 begins a function of 41 lines"),
        ("f(function () {\n" + "g(/[/}]/.test('}')); /* } */\n" * 39 + "});", "x.js:1 begins a function of 41 lines"),
    ],
)
def test_what_is_too_long_is_found(text, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        law_small("x.js", text)
    law_small("x.js", "\n".join(text.splitlines()[2:-1])[:4000].replace("b" * 120, "b"))  # what is left is small


# --- names --------------------------------------------------------------------------------------


def law_a_script_is_named_as_its_module(modules, scripts):
    assert set(modules) == set(scripts), f"scripts without a module, or modules without one: {modules ^ scripts}"


def test_class_module_script_and_tests_have_one_name():
    classes = [cls for cls in map(widgets.__getattr__, widgets.__all__) if issubclass(cls, CourseWidget)]
    modules = {cls.__module__.rpartition(".")[2] for cls in classes}
    assert modules == {re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower() for cls in classes} and len(modules) > 10
    law_a_script_is_named_as_its_module(modules, {path.stem for path in STATIC.glob("*.js")})
    law_a_script_is_named_as_its_module(modules, {path.stem for path in STATIC.glob("*.js")})
    with pytest.raises(AssertionError, match="explorer"):
        law_a_script_is_named_as_its_module(modules, {*modules, "explorer"})
