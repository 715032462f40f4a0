"""Widgets that move over recorded states in the page: every state that their inputs lead to is computed beforehand.

book_recordings.py, widgets' classes -> record -> recorded/NAME.json of the book -> docs/book/alive/recorded.js
"""

import ast
import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from anywidget import AnyWidget

from course_lib.storage import replacing
from course_lib.translator import PRETRAINED

ROOT = Path(__file__).resolve().parents[2]
LESSONS = Path(__file__).parent


@dataclass(frozen=True)
class Table:
    """Which traits a page sets, to which values, all combined; and the traits with which a kernel would answer.

    The first values are those that the widget begins with.
    """

    inputs: dict[str, tuple]
    answers: tuple[str, ...]

    @property
    def keys(self) -> list[tuple]:
        """All combinations, the last input first."""
        return list(product(*self.inputs.values()))


@dataclass(frozen=True)
class Recorded:
    """A widget of a lesson that moves over recorded states on the lesson's page.

    Args:
        lesson: stem of its notebook, which has one cell that ends with `last`.
        last: the line that shows it.
        kind: the widget's class.
        make: makes the widget as the lesson does.
        tables: what is recorded.
        told: the same in words.
        off: words on the controls that lead to nothing recorded.
        turns: inputs whose last value the first one follows.
    """

    lesson: str
    last: str
    kind: type[AnyWidget]
    make: Callable[[], AnyWidget]
    tables: tuple[Table, ...]
    told: str
    off: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


def place(name: str, recorded: Recorded) -> str:
    """HTML attributes of the element that docs/book/alive/mount.js fills."""
    return f' data-recorded="{name}" data-told="{html.escape(recorded.told)}"'


def record(recorded: Recorded) -> dict[str, Any]:
    """All that the page needs: the traits at first, and every answer, as JSON has them."""
    with one_thread():
        widget = recorded.make()
        start = {name: packed(getattr(widget, name)) for name in recorded.kind.class_own_traits(sync=True)}
        tables = [_answers(widget, table) for table in recorded.tables]
    return {"start": start, "tables": tables, "off": recorded.off, "turns": recorded.turns}


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums come out alike, however many cores there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _answers(widget: AnyWidget, table: Table) -> dict[str, Any]:
    """Each different state once, and for each key which one it leads to."""
    keys = table.keys
    found: dict[str, int] = {}
    at = [0] * len(keys)
    for number in (*range(1, len(keys)), 0):  # the widget begins with the first: coming back there is a change too
        ask(widget, dict(zip(table.inputs, keys[number], strict=True)))
        state = {name: packed(getattr(widget, name)) for name in table.answers}
        at[number] = found.setdefault(json.dumps(state), len(found))
    return {"inputs": table.inputs, "at": at, "states": [json.loads(state) for state in found]}


def ask(widget: AnyWidget, inputs: dict[str, Any]) -> None:
    """Sets traits, as a page does: a text first, because others have to fit to it, and these together.

    Raises:
        ValueError: if the widget refuses them.
    """
    if "text" in inputs:
        widget.text = inputs["text"]
    with widget.hold_trait_notifications():
        for name, value in inputs.items():
            setattr(widget, name, value)
    if message := getattr(widget, "message", ""):
        raise ValueError(f"{type(widget).__name__} refuses {inputs}: {message}")


def packed(value: Any) -> Any:
    """A trait's value as JSON has it: bytes in base64, of float64 that float32 holds exactly only those."""
    if not isinstance(value, bytes):
        return value
    float32, kept = False, value
    if len(value) % 8 == 0:
        wide = np.frombuffer(value, "<f8")
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = wide.astype("<f4")
        if len(wide) and (narrow.astype("<f8") == wide).all():
            float32, kept = True, narrow.tobytes()
    return {"packed": {"base64": base64.b64encode(kept).decode(), "float32": float32}}


def defined(lesson: str, *names: str) -> dict[str, Any]:
    """What a lesson's source defines under these names, behind what it imports; nothing else of it runs."""
    path = LESSONS / f"{lesson}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wanted = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom) or _bound(each) & set(names)]
    lacking = set(names).difference(*map(_bound, wanted))
    if lacking:
        raise ValueError(f"{path.name} defines no {sorted(lacking)}")
    namespace: dict[str, Any] = {"__name__": lesson}
    exec(compile(ast.Module(wanted, []), path.name, "exec"), namespace)
    return namespace


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement defines or assigns."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return {each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)}


def recordings(kept: Path, wanted: dict[str, Recorded]) -> dict[str, Path]:
    """The files of all recordings by name; they are made again when the library or what is recorded changes.

    Args:
        kept: folder that keeps them.
        wanted: by name.
    """
    code = [*(ROOT / "course_lib").rglob("*.py"), *PRETRAINED.rglob("*.safetensors"), *LESSONS.glob("book_record*.py")]
    code += [LESSONS / f"{each.lesson}.py" for each in wanted.values()]
    digest = hashlib.sha256(torch.__version__.encode())
    for path in sorted(set(code)):
        digest.update(path.read_bytes())
    folder = kept / f"recorded-{digest.hexdigest()[:12]}"
    for name, recorded in wanted.items():
        if not (folder / f"{name}.json").exists():
            text = json.dumps(record(recorded), ensure_ascii=False, separators=(",", ":"))
            with replacing(folder / f"{name}.json") as path:
                path.write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.json" for name in wanted}
