"""Walking through syntax trees."""

from course_lib.grammar.syntax import Clause

SLOTS = ("subject", "accusative", "dative", "governed", "time", "frequency", "manner", "location", "direction",
         "predicate", "opener")


def nodes(node):
    """A node of the tree and everything below it."""
    found = [node]
    for child in (getattr(node, name, None) for name in ("possessor", "relative", "noun_phrase", "first", "second")):
        found += nodes(child) if child is not None else []
    if isinstance(node, Clause):
        for slot in SLOTS:
            found += nodes(getattr(node, slot)) if getattr(node, slot) is not None else []
    return found


def clauses(tree):
    """Every clause of a sentence, relative clauses included."""
    return {id(node): node for node in nodes(tree) if isinstance(node, Clause)}.values()
