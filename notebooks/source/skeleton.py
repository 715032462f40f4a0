"""The first files of a new lesson, assignment or widget, and of a corpus in another language: whole, to be changed.

    kind, name -> skeletons/*.txt, with the name in its places -> files that pass the tests of their kind

What comes out works, and its tests pass. A corpus has an empty second column, and is refused until that is filled.

Usage: python -m notebooks.source.skeleton lesson 19_topic
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKELETONS = Path(__file__).resolve().parent / "skeletons"
NUMBERED, PLAIN = r"\d\d_[a-z0-9_]+", r"[a-z][a-z0-9_]*"
PATTERNS = {"lesson": NUMBERED, "exercise": NUMBERED, "widget": PLAIN, "language": PLAIN}
FILES = {
    "lesson": {"lesson.py": "notebooks/source/@NAME@.py"},
    "exercise": {f"{part}.py": f"course_lib/assignments/a@NAME@/{part}.py" for part in ("text", "checks", "answers")},
    "widget": {
        "widget.py": "course_lib/widgets/@NAME@.py",
        "widget.js": "course_lib/widgets/static/@NAME@.js",
        "test_widget.py": "tests/widgets/test_@NAME@.py",
        "browser_test.py": "tests/browser/test_@NAME@.py",
    },
}
FACE = "course_lib/widgets/__init__.py"
CORPUS = "my_course/@NAME@.tsv"
SENTENCES = 2_000  # English ones that wait for their translation
THEN = {
    "lesson": "make notebooks LESSON=@NUMBER@, and name it where the tests ask: on the map (course_map.py), what you\n"
    "do in it (readme.py), its widgets (tests/notebooks/test_notebooks.py). docs/editing.md says what a lesson may do.",
    "exercise": 'make assignments ASSIGNMENT=@NUMBER@, then make test ARGS="-k assignments".',
    "widget": 'make test ARGS="-k @NAME@", then make test-browser ARGS="-k @NAME@".',
    "language": "fill the second column, as many lines as you like, and delete the others; then\n"
    ".venv/bin/python -m course_lib train --data @FILE@ --preset tiny --out runs/@NAME@",
}


def make(kind: str, name: str, root: Path = ROOT) -> list[Path]:
    """Writes the first files of something new.

    Args:
        kind: "lesson", "exercise", "widget" or "language".
        name: NN_topic for a lesson or an assignment, else a word in lower case.
        root: the checkout.

    Returns:
        the files that are new.

    Raises:
        ValueError: another kind, a name that does not fit, or a file that is there already; nothing is written.
    """
    if kind not in PATTERNS:
        raise ValueError(f"expected one of {', '.join(PATTERNS)}, got {kind!r}")
    if not re.fullmatch(PATTERNS[kind], name):
        raise ValueError(f"expected a name like {'19_topic' if PATTERNS[kind] == NUMBERED else 'a_name'}, got {name!r}")
    texts = _corpus(name) if kind == "language" else _filled(kind, name)
    there = [place for place in texts if (root / place).exists()]
    if there:
        raise ValueError(f"{there[0]} is there already: edit it, or take another name")
    for place, text in texts.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text, encoding="utf-8", newline="\n")
    if kind == "widget":
        _list_in_the_face(name, root / FACE)
    return [root / place for place in texts]


def class_name(name: str) -> str:
    """mask_painter → MaskPainter."""
    return "".join(word.capitalize() for word in name.split("_"))


def _named(text: str, name: str) -> str:
    number, _, topic = name.partition("_")
    title = (topic if number.isdigit() else name).replace("_", " ").capitalize()
    values = {"NAME": name, "NUMBER": number, "TITLE": title, "CLASS": class_name(name)}
    values["FILE"] = CORPUS.replace("@NAME@", name)
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)


def _filled(kind: str, name: str) -> dict[str, str]:
    return {
        _named(place, name): _named((SKELETONS / f"{file}.txt").read_text(encoding="utf-8"), name)
        for file, place in FILES[kind].items()
    }


def _corpus(name: str) -> dict[str, str]:
    """English sentences of the course corpus, each once, with an empty second column."""
    from course_lib.data import load_course  # here, because nothing else needs it

    sources = list(dict.fromkeys(pair.src for pair in load_course(num_train=SENTENCES).train))
    return {_named(CORPUS, name): "".join(f"{source}\t\n" for source in sources)}


def _list_in_the_face(name: str, face: Path) -> None:
    """Adds a line to the widgets' face, in the order of the alphabet."""
    before, entries, after = re.split(r"(?<=submod_attrs=\{\n)|(?=    \},\n)", face.read_text(encoding="utf-8"))
    lines = sorted([*entries.splitlines(), f'        "{name}": ["{class_name(name)}"],'])
    face.write_text(before + "\n".join(lines) + "\n" + after, encoding="utf-8", newline="\n")


def main() -> int:
    """Makes what the command line names, and says what comes next."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.source.skeleton", description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=PATTERNS)
    parser.add_argument("name", help="NN_topic for a lesson or an assignment, else a word in lower case")
    options = parser.parse_args()
    try:
        made = make(options.kind, options.name)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(*(path.relative_to(ROOT) for path in made), sep="\n")
    print(f"\nNext: {_named(THEN[options.kind], options.name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
