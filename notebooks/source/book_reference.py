"""The reference of the library, from its docstrings: a page for each module at the top, and for each face below.

course_lib.masks, course_lib.figures, ... -> reference -> api/masks.rst, api/figures.rst, ...
docstring, for people -> as_rst -> docstring, for Sphinx
"""

import hashlib
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import course_lib

OPTIONS = {"class": "\n   :members:", "module": "\n   :members:", "function": ""}
PAGE = "a page of its own"
LONGEST = 60  # of a constant that is shown, in characters
INDEX = """The library
===========

All names below are of ``course_lib``: first the modules of the paper, then the faces from which one imports.
The :ref:`index <genindex>` has them from A to Z.

.. toctree::
   :maxdepth: 1

{pages}

From ``course_lib`` itself come

{names}
"""
CODE = re.compile(r"(`[^`]+`)")
FORWARDED = re.compile(r"\(\*args: ~?[\w.]*Any, \*\*kwargs: ~?[\w.]*Any\)")
ADDRESS = re.compile(r"<\w+ \S+ at 0x\w+>")
SECTIONS = ("Args:", "Attributes:", "Returns:", "Yields:", "Raises:")


def reference() -> dict[str, str]:
    """The text of each page by its name, in reStructuredText."""
    places: dict[int, str] = {}
    modules = _modules()
    places |= {id(module): PAGE for module in modules}
    pages = {module.__name__.partition(".")[2]: _page(module, places) for module in modules}
    listed = "\n".join(f"   {name}" for name in pages)
    names = "\n".join(_entry(course_lib, name, places) for name in course_lib.__all__)
    pages["index"] = INDEX.format(pages=listed, names=names)
    return {name: f".. {edition()}\n\n{text}" for name, text in pages.items()}


def edition() -> str:
    """Of this file: each page carries it, because Sphinx reads only pages again that have changed."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]


def public_names(module: ModuleType) -> list[str]:
    """What a face lists; of a module without a list, its own functions and classes without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return [name for name in own if not name.startswith("_")]


def as_rst(_app: Any, _kind: str, _name: str, _value: Any, _options: Any, lines: list[str]) -> None:
    """Makes reStructuredText of a docstring, in place: stars and bars mean themselves, drawings keep their lines."""
    text: list[str] = []
    drawing, before = False, ""  # the last line that is not empty
    for line in lines:
        if line and not line.startswith("    "):
            drawing = False
        elif line and text and not text[-1] and not before.startswith(" ") and before not in SECTIONS:
            drawing = True
            text += ["::", ""]
        text.append(line if drawing else "".join(map(_escaped, CODE.split(line))))
        before = line or before
    lines[:] = text


def _escaped(piece: str) -> str:
    if CODE.fullmatch(piece):
        return f"{piece}\\ "  # so that letters may follow
    return re.sub(r"([*|\\])", r"\\\1", piece)


def skip_foreign(_app: Any, _kind: str, _name: str, value: Any, _skip: bool, _options: Any) -> bool | None:
    """Leaves out what a class has from another library."""
    return None if getattr(value, "__module__", None) is None or value.__module__.startswith("course_lib") else True


def own_signature(
    _app: Any, kind: str, _name: str, value: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """What a class asks for itself, where its base from another library takes anything; no address of this process."""
    from sphinx.util.inspect import stringify_signature  # here, because the rest needs no Sphinx

    if not signature:
        return None
    if kind != "class" or not FORWARDED.fullmatch(signature):
        return ADDRESS.sub("...", signature), returned
    own = vars(value).get("__init__")
    if own is None:
        return "()", returned
    asked = list(inspect.signature(own).parameters.values())[1:]
    return stringify_signature(inspect.Signature(asked), unqualified_typehints=True), returned


def _modules() -> list[ModuleType]:
    """The modules at the top of the library, then every folder that has a face."""
    prefix = f"{course_lib.__name__}."
    top = [found.name for found in pkgutil.iter_modules(course_lib.__path__, prefix) if not found.ispkg]
    faces = [found.name for found in pkgutil.walk_packages(course_lib.__path__, prefix) if found.ispkg]
    return [importlib.import_module(name) for name in (*top, *faces) if not name.endswith("__main__")]


def _page(module: ModuleType, places: dict[int, str]) -> str:
    title = module.__name__
    head = f"{title}\n{'=' * len(title)}\n\n.. automodule:: {title}\n   :no-members:"
    return "\n\n".join([head, *(_entry(module, name, places) for name in public_names(module))]) + "\n"


def _entry(module: ModuleType, name: str, places: dict[int, str]) -> str:
    """What the docstring says; of what another page has already, the way there. `places`: where, by identity."""
    value, whole = getattr(module, name), f"{module.__name__}.{name}"
    for kind, holds in (("module", inspect.ismodule), ("class", inspect.isclass), ("function", inspect.isroutine)):
        if holds(value):
            if places.get(id(value)) == PAGE:
                return f"- :py:mod:`{name} <{value.__name__}>`"
            if (place := places.setdefault(id(value), whole)) != whole:
                return f"- :py:obj:`{name} <{place}>`"
            return f".. auto{kind}:: {whole}{OPTIONS[kind]}"
    short = len(repr(value)) <= LONGEST and " at 0x" not in repr(value)
    shown = f"\n   :value: {value!r}" if short else ""
    return f".. py:data:: {whole}{shown}"
