"""Our weights in torch.nn's layers: each stands at the one place where it does the same."""

import pytest
import torch
from torch import nn

from course_lib.attention import MultiHeadAttention
from course_lib.blocks import DecoderLayer, EncoderLayer, LayerNorm
from course_lib.checks import copy_into_torch, in_our_names
from tests.helpers.laws import tells_apart
from tests.helpers.parity import close, noise, scrambled

pytestmark = pytest.mark.usefixtures("float64")
SIZES, OPTIONS = (8, 2, 12), dict(batch_first=True, norm_first=True)


@pytest.mark.parametrize("ours, theirs", [
    (LayerNorm(8), nn.LayerNorm(8)),
    (EncoderLayer(*SIZES, 0.0, norm_first=True), nn.TransformerEncoderLayer(*SIZES, **OPTIONS)),
], ids=["norm", "encoder layer"])  # fmt: skip
def test_theirs_becomes_the_same_function(ours, theirs):
    ours, x = scrambled(ours).double(), noise(2, 5, 8)
    mask = (torch.ones(2, 1, 1, 5, dtype=torch.bool),) if isinstance(ours, EncoderLayer) else ()

    def law(copy):
        close(ours(x, *mask), copy(ours, theirs.eval())(x))

    tells_apart(law, copy_into_torch, lambda ours, theirs: scrambled(theirs.double()))
    assert all(parameter.dtype == torch.float64 for parameter in theirs.parameters())


def test_query_key_and_value_are_not_exchanged():
    ours, theirs = (
        scrambled(MultiHeadAttention(8, 2)).double(),
        nn.MultiheadAttention(8, 2, batch_first=True).eval(),
    )
    query, memory = noise(2, 3, 8), noise(2, 5, 8, seed=1)

    def law(copy):
        close(ours(query, memory, memory), copy(ours, theirs)(query, memory, memory)[0])

    def exchanged(ours, theirs):
        copy_into_torch(ours, theirs)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(theirs.in_proj_weight.roll(8, 0))
        return theirs

    tells_apart(law, copy_into_torch, exchanged)


def test_what_has_no_counterpart_is_refused():
    with pytest.raises(ValueError, match=r"same parameters on both sides, got .*cross_attn"):
        copy_into_torch(DecoderLayer(*SIZES, 0.0), nn.TransformerEncoderLayer(*SIZES))
    with pytest.raises(ValueError, match=r"self_attn.query_proj.weight': \("):
        copy_into_torch(EncoderLayer(*SIZES, 0.0), nn.TransformerEncoderLayer(16, 2, 12))
    with pytest.raises(ValueError, match="expected a layer or stack of torch.nn, got Conv1d"):
        in_our_names(nn.Conv1d(2, 2, 1))
