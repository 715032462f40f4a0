"""Other conventions of assignment 05: what a mask says, and in which dtype."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

ASKED = "Return both masks, in this order and in their full shapes"
ADDED = "torch.where({}, 0.0, -math.inf)"
BOTH = f"return {ADDED.format('own')}, {ADDED.format('cross')}"

VARIANTS = {
    "05.decoder": (
        Variant(
            "True hides",
            Edit(
                ASKED, f"Here, and in no other exercise, **True means: hidden**, as in `torch.nn`'s attention. {ASKED}",
                "return own, cross", "return ~own, ~cross",
            ),
        ),
        Variant(
            "added to the scores",
            Edit(
                ASKED,
                "Here a mask is *added* to the scores: it is float32, 0 where a query may attend and −∞ where not. "
                + ASKED,
                "return own, cross.expand(-1, -1, tgt_in.size(1), -1)",
                f"cross = cross.expand(-1, -1, tgt_in.size(1), -1)\n    {BOTH}",
                "return own, cross", BOTH,
            ),
        ),
    ),
}
