"""What a JavaScript file is made of, as far as laws need it: its code without words, its functions, its names."""

import re

CONTROL = {"if", "for", "while", "switch", "catch"}
BEFORE_REGEX = set("(,=:[!&|?{};>")


def code_of(text: str) -> str:
    """The text with comments, strings, templates and regular expressions blanked out; code in ${…} stays."""
    out, modes, at = list(text), [], 0  # modes: open braces inside of each open template

    def blank(until: int) -> int:
        for index in range(at, until):
            out[index] = "\n" if text[index] == "\n" else " "
        return until

    while at < len(text):
        rest, before = text[at : at + 2], "".join(out[:at][-200:]).rstrip()[-1:]
        if modes and modes[-1] == 0 and text[at] == "}":  # back in the template
            modes.pop()
            at = blank(_template_end(text, at + 1, modes))
        elif rest == "//":
            at = blank(text.find("\n", at))
        elif rest == "/*":
            at = blank(text.index("*/", at) + 2)
        elif text[at] in "\"'":
            at = blank(re.compile(r"(?:\\.|[^\\])*?" + text[at]).match(text, at + 1).end())
        elif text[at] == "`":
            at = blank(_template_end(text, at + 1, modes))
        elif text[at] == "/" and (before in BEFORE_REGEX or not before):
            at = blank(re.compile(r"/(?:\\.|\[(?:\\.|[^\]])*\]|[^/\\])+/\w*").match(text, at).end())
        else:
            if modes:
                modes[-1] += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    return "".join(out)


def _template_end(text: str, at: int, modes: list[int]) -> int:
    """Behind the end of a template, or behind the next ${, which opens a mode."""
    found = re.compile(r"(?:\\.|(?!\$\{)[^`\\])*(`|\$\{)", re.DOTALL).match(text, at)
    if found[1] == "${":
        modes.append(0)
    return found.end()


def closing(code: str, start: int) -> int:
    """Where the bracket that opens at start is closed."""
    depth = 0
    for index in range(start, len(code)):
        depth += (code[index] in "([{") - (code[index] in ")]}")
        if depth == 0:
            return index
    raise AssertionError(f"a bracket is not closed: {code[start : start + 40]!r}")


def functions_of(text: str) -> dict[int, int]:
    """The line in which each function begins → its lines; of several that begin in a line, the longest."""
    code, found = code_of(text), {}

    def note(start: int, end: int) -> None:
        line = code.count("\n", 0, start) + 1
        found[line] = max(found.get(line, 0), code.count("\n", start, end) + 1)

    for opened in (index for index, character in enumerate(code) if character == "("):
        word, end = re.search(r"(\w*)\s*$", code[:opened])[1], closing(code, opened)
        body = re.compile(r"\s*\{").match(code, end + 1)
        if body and word not in CONTROL:  # a function, or a method
            note(opened, closing(code, body.end() - 1))
    for arrow in re.finditer(r"=>\s*", code):
        note(arrow.start(), _arrow_end(code, arrow.end()))
    return found


def _arrow_end(code: str, start: int) -> int:
    """The last place of an arrow function's body, a block or an expression."""
    if code[start] == "{":
        return closing(code, start)
    at = start
    while code[at] not in ",;)]}":
        at = closing(code, at) + 1 if code[at] in "([{" else at + 1
    return at - 1


def names_of(text: str) -> set[str]:
    """The names that a file uses or declares, without properties and keys of objects."""
    code = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
    code = re.sub(r"(?<!\.)\.\s*\w+|\w+:", " ", code_of(code))
    return set(re.findall(r"[A-Za-z_]\w*", code))
