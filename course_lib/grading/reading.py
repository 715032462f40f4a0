"""Reads the code of an answer for what results cannot tell: a loop where none is wanted, a call of what is finished."""

import ast

from course_lib.checks import Exercise

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def needs_a_look(exercise: Exercise, code: str) -> list[str]:
    """What a teacher should look at in an answer: it costs no points by itself, for code can be read wrong.

    Args:
        exercise: with its rules.
        code: of the answer's cell.
    """
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = ["has a loop"] if not exercise.loops and any(isinstance(node, LOOPS) for node in nodes) else []
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {node.attr for node in functions if isinstance(node, ast.Attribute)}
    called |= {node.id for node in functions if isinstance(node, ast.Name)} - own
    finished = {thing.__name__ for thing in exercise.forbidden} & called
    imported = [name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in _modules(node)]
    ours = [name for name in imported if name.startswith("course_lib")]
    return [*found, *(f"calls {name}" for name in sorted(finished)), *(f"imports {name}" for name in ours)]


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
