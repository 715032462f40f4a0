"""Other conventions of assignment 11: how the length of an output counts in its score."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "11.finished": (
        Variant(
            "divided by n to the α",
            Edit(
                r"$((5 + n) / 6)^\alpha$", r"$n^\alpha$",
                "((5 + len(words[1:])) / 6) ** alpha", "len(words[1:]) ** alpha",
            ),
        ),
        Variant(
            "without the </s>",
            Edit("where $n$ counts `</s>`.", "where $n$ does not count `</s>`.", "len(words[1:])", "len(words[1:-1])"),
        ),
    ),
}
