"""Other conventions of assignment 01: what a target begins with, and what stands behind it."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "01.targets": (
        Variant(
            "tgt_in begins with </s>",
            Edit(
                "A decoder reads `tgt_in`, which starts with `<s>`,",
                "As in fairseq, a decoder reads `tgt_in`, which starts with `</s>` here and not with `<s>`,",
                "[BOS_ID, *tokens", "[EOS_ID, *tokens", "value=BOS_ID", "value=EOS_ID",
            ),
            untrue=("The tgt_in of the shorter sentences contains </s>.",),
        ),
        Variant(
            "the padding of tgt_out is −100",
            Edit(
                "and both are to be made.",
                "and both are to be made. In `tgt_out` the padding is −100, which PyTorch's loss leaves out by itself.",
                "[*tokens, EOS_ID, *padding]", "[*tokens, EOS_ID, *[-100] * len(padding)]",
                "EOS_ID, longer)", "EOS_ID, longer.masked_fill(longer == PAD_ID, -100))",
            ),
        ),
    ),
}
