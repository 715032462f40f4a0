"""Other conventions of assignment 03: the order of the axes, and what scores are divided by."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "03.scores": (
        Variant(
            "keys before queries",
            Edit(
                "This is the specification.",
                "This is the specification; here each *key* has a row, and each query a column.",
                "(batch, queries, keys)", "(batch, keys, queries)",
                "query.size(0), query.size(1), key.size(1)", "query.size(0), key.size(1), query.size(1)",
                "[sentence, row, column] =", "[sentence, column, row] =",
                "query @ key.transpose(1, 2)", "key @ query.transpose(1, 2)",
                "the keys are rows, so they have to be turned.", "the queries are rows, so they have to be turned.",
            ),
        ),
        Variant(
            "divided by d_k",
            Edit(
                "This is the specification.",
                "This is the specification; it divides by d_k, as μP does, and not by its root.",
                "math.sqrt(query.size(-1))", "query.size(-1)",
            ),
            untrue=("These are divided by the root of the number of keys;",),
        ),
    ),
}
