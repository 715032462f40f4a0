"""Other conventions of assignment 07: where the norms of a decoder layer stand."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "07.decoder_layer": (
        Variant(
            "post-norm",
            Edit(
                "in *pre-norm* order, as in the translator of the course.", "in *post-norm* order, as in the paper.",
                "    query = norms[0](x)\n", "", "x = x + self_attn(query, query, query, tgt_mask)",
                "x = norms[0](x + self_attn(x, x, x, tgt_mask))",
                "x = x + cross_attn(norms[1](x), memory, memory, memory_mask)",
                "x = norms[1](x + cross_attn(x, memory, memory, memory_mask))",
                "return x + feed_forward(norms[2](x))", "return norms[2](x + feed_forward(x))",
            ),
        ),
        Variant(
            "a memory without its last norm",
            Edit(
                "The memory comes as the encoder has left it, finished.",
                "The memory comes without the encoder's last norm: `norms[1]` is for the memory too.",
                "memory, memory, memory_mask", "norms[1](memory), norms[1](memory), memory_mask",
            ),
        ),
    ),
}
