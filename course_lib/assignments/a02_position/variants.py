"""Other conventions of assignment 02: how steep ALiBi's slopes are, and whether it looks to both sides."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "02.alibi": (
        Variant(
            "slopes down to 2 to the −4",
            Edit(
                "times the slope of the head.", "times the slope of the head; the last head's slope is 2⁻⁴ here.",
                "2 ** (-8 * ", "2 ** (-4 * ",
            ),
            untrue=("The slopes begin with 1 here.",),
        ),
        Variant(
            "to both sides",
            Edit(
                "Scores of keys *after* the query stay as they are: a decoder's causal mask hides them.",
                "Keys *after* the query count as well, by how far they are away: there is no causal mask here.",
                "in range(position + 1)", "in range(keys)", "(position - key)", "abs(position - key)",
                ".clamp(min=0)", ".abs()",
            ),
        ),
    ),
}
