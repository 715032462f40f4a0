"""Reads a graded notebook for what results cannot tell: a loop where none is wanted, a call of what is finished."""

import ast
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from course_lib.assignments import find
from course_lib.checks import Exercise
from course_lib.grading.personal import variants_of

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def look_at(notebook: NotebookNode) -> Iterator[str]:
    """What a teacher should look at in a graded notebook, exercise by exercise; it costs no points by itself."""
    variants = variants_of(notebook)
    cells = [(cell.metadata.get("nbgrader", {}), cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    given = [code for marks, code in cells if marks and not marks.get("solution") and not marks.get("grade")]
    theirs = [(marks, code) for marks, code in cells if not marks or marks.get("solution")]
    for marks, code in theirs:
        name = marks.get("grade_id", "").replace("-", ".", 1)
        if name and not name.startswith("inventory."):
            others = [other for place, other in theirs if place is not marks]
            exercise = find(name, variants.get(name))
            yield from (f"{name} {what}" for what in needs_a_look(exercise, code, others, given))


def needs_a_look(exercise: Exercise, code: str, added: Sequence[str] = (), given: Sequence[str] = ()) -> list[str]:
    """What a teacher should look at in an answer; code can be read wrong.

    Args:
        exercise: with its rules.
        code: of the answer's cell.
        added: of the other cells that the learner wrote; what the answer uses of them is a part of it.
        given: of the assignment's own cells, one of which may define a specification that has a loop.
    """
    answer = statements(code)
    helpers = _used(answer, added)
    nodes = [node for statement in (*answer, *helpers) for node in ast.walk(statement)]
    found = []
    if not exercise.loops:
        found += ["has a loop"] if any(map(_has_loop, answer)) else []
        behind = [*helpers, *_used([*answer, *helpers], given)]
        slow = {name for statement in behind if _loops_when_called(statement) for name in defined(statement)}
        found += [f"uses {name}, which has a loop" for name in sorted(slow)]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {node.attr for node in functions if isinstance(node, ast.Attribute)}
    called |= {node.id for node in functions if isinstance(node, ast.Name)} - own
    finished = {thing.__name__ for thing in exercise.forbidden} & called
    imported = [name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in _modules(node)]
    ours = [name for name in imported if name.startswith("course_lib")]
    return [*found, *(f"calls {name}" for name in sorted(finished)), *(f"imports {name}" for name in ours)]


def only_defines(code: str) -> bool:
    """Whether a cell does no more than import, and define functions and classes."""
    return all(isinstance(statement, DEFINITIONS) for statement in statements(code)) and bool(statements(code))


def statements(code: str) -> list[ast.stmt]:
    """The statements at the top of a cell; none of one that is no Python."""
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def defined(statement: ast.stmt) -> set[str]:
    """The names that a statement defines as a function, a class or a value."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _used(answer: Sequence[ast.stmt], cells: Sequence[str]) -> list[ast.stmt]:
    """The statements of other cells that bind a name which an answer takes from there, and those that these need."""
    others = [statement for code in cells for statement in statements(code)]
    own = {name for statement in answer for name in defined(statement)}
    found: list[ast.stmt] = []
    waiting = list(answer)
    while waiting:
        wanted = {name for statement in waiting for name in _taken(statement)} - own
        waiting = [one for one in others if one not in found and (defined(one) | _imported(one)) & wanted]
        found += waiting
    return found


def _taken(statement: ast.stmt) -> set[str]:
    """The names that a statement uses and does not bind itself."""
    nodes = list(ast.walk(statement))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in names} - bound


def _has_loop(node: ast.AST) -> bool:
    return any(isinstance(inner, LOOPS) for inner in ast.walk(node))


def _loops_when_called(statement: ast.stmt) -> bool:
    return any(_has_loop(inner) for inner in ast.walk(statement) if isinstance(inner, FUNCTIONS))


def _imported(statement: ast.stmt) -> set[str]:
    aliases = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else []
    return {alias.asname or alias.name for alias in aliases}


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
