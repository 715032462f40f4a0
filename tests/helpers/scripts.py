"""What a JavaScript file is made of, as far as laws need it: its code without words, its functions, its names."""

import re
from collections.abc import Iterator

CONTROL = {"if", "for", "while", "switch", "catch"}
KEYWORDS = {"function", "return", "of", "in", "new", "typeof", "throw", "export"}
WORD, BODY = re.compile(r"[A-Za-z_]\w*"), re.compile(r"\s*\{")
BEFORE_REGEX = set("(,=:[!&|?{};>")


def code_of(text: str) -> str:
    """The text with comments, strings, templates and regular expressions blanked out; code in ${…} stays."""
    out, modes, at, before = list(text), [], 0, ""  # modes: open braces inside of each open template

    def blank(until: int) -> int:
        for index in range(at, until):
            out[index] = "\n" if text[index] == "\n" else " "
        return until

    while at < len(text):
        rest = text[at : at + 2]
        if modes and modes[-1] == 0 and text[at] == "}":  # back in the template
            modes.pop()
            at = blank(_template_end(text, at + 1, modes))
        elif rest == "//":
            at = blank(at + len(text[at:].partition("\n")[0]))
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
            before = text[at].strip() or before  # the last that is no space
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


def opening(code: str, end: int) -> int:
    """Where the bracket that closes at end is opened."""
    depth = 0
    for index in range(end, -1, -1):
        depth += (code[index] in ")]}") - (code[index] in "([{")
        if depth == 0:
            return index
    raise AssertionError(f"a bracket is not opened: {code[end - 40 : end + 1]!r}")


def functions_of(text: str) -> dict[int, int]:
    """The line in which each function begins → its lines; of several that begin in a line, the longest."""
    code, found = code_of(text), {}

    def note(start: int, end: int) -> None:
        line = code.count("\n", 0, start) + 1
        found[line] = max(found.get(line, 0), code.count("\n", start, end) + 1)

    for word, start, end in calls_of(code):
        body = BODY.match(code, end + 1)
        if body and word not in CONTROL:  # a function, or a method
            note(start, closing(code, body.end() - 1))
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


def names_of(text: str) -> tuple[set[str], set[str], set[str], set[str]]:
    """The names that a file imports, declares (parameters too), uses and calls; no properties, no keys of objects."""
    imports = re.findall(r"^import \{([^}]*)\}", text, re.MULTILINE)
    code = code_of(re.sub(r"^import .*$", "", text, flags=re.MULTILINE)).replace("...", "   ")
    declared = set(re.findall(r"(?<![\w.])(\w+)(?:\s*=(?![=>])|\s+of\b)", code))
    for found in re.finditer(r"[\]})](?=\s*=(?!=)|\s+of\b)", code):  # patterns, and parameters
        declared |= set(WORD.findall(code[opening(code, found.start()) : found.start()]))
    for word, start, end in calls_of(code):
        if BODY.match(code, end + 1) and word not in CONTROL:
            declared |= {word, *WORD.findall(code[start:end])}
    called = {word for word, _, _ in calls_of(code) if word} - CONTROL - KEYWORDS - {""}
    used = set(WORD.findall(re.sub(r"\.\s*\w+|\b\w+:", " ", code)))
    return set(WORD.findall(" ".join(imports))), declared, used, called


def calls_of(code: str) -> Iterator[tuple[str, int, int]]:
    """What stands in front of each round bracket, nothing for a method's name, and where it opens and closes."""
    for opened in (index for index, character in enumerate(code) if character == "("):
        before = code[max(0, opened - 60) : opened]
        yield re.search(r"((?<!\.)\b\w+)?\s*$", before)[1] or "", opened, closing(code, opened)
