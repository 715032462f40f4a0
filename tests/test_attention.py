"""Attention: equal to torch's with the weights copied, and the laws of its weights and masks."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import FusedAttention, MultiHeadAttention, attention, attention_scores, attention_weights
from course_lib.masks import causal_mask, padding_mask
from tests.helpers.laws import tells_apart
from tests.helpers.parity import assert_same_function, assert_same_module, close, noise, scrambled

pytestmark = pytest.mark.usefixtures("float64")

IDS = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 0, 0]])
MASKS = {
    "none": None,
    "padding": padding_mask(IDS, 0),
    "causal": causal_mask(5),
    "both": padding_mask(IDS, 0) & causal_mask(5),
}
each_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


def heads(queries=5, keys=5, d_k=4, d_v=4):
    """Query, key and value, (batch, heads, length, width)."""
    return [noise(2, 3, queries, d_k, seed=1), noise(2, 3, keys, d_k, seed=2), noise(2, 3, keys, d_v, seed=3)]


# --- parity -------------------------------------------------------------------------------------


def parity_with_torchs_function(context_of, mask):
    assert_same_function(
        lambda query, key, value: context_of(query, key, value, mask),
        lambda query, key, value: F.scaled_dot_product_attention(query, key, value, attn_mask=mask),
        heads(),
    )


@pytest.fixture(params=["fused", "written out"], autouse=True)
def kernel(request, monkeypatch):
    """Both ways of FusedAttention: the sentences here are short, and so one would never be seen."""
    if request.param == "fused":
        monkeypatch.setattr("course_lib.attention.SHORT", 0)


def parity_with_torchs_module(ours, mask):
    ids_hidden = None if mask is None or mask.shape[0] == 1 else ~padding_mask(IDS, 0)[:, 0, 0]  # True = hidden
    future_hidden = None if mask is None or mask.shape[-2] == 1 else ~causal_mask(5)[0, 0]
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    assert_same_module(
        ours,
        theirs,
        [noise(2, 5, 12, seed=4), noise(2, 5, 12, seed=5), noise(2, 5, 12, seed=6)],
        call_ours=lambda *inputs: ours(*inputs, mask),
        call_theirs=lambda *inputs: theirs(
            *inputs, key_padding_mask=ids_hidden, attn_mask=future_hidden, need_weights=False
        )[0],
    )


@each_mask
def test_attention_is_torchs(mask):
    parity_with_torchs_function(lambda *inputs: attention(*inputs)[0], mask)


@each_mask
def test_fused_attention_is_the_explicit_one(mask):
    assert_same_function(lambda *x: FusedAttention()(*x, mask), lambda *x: attention(*x, mask)[0], heads())


def law_a_bias_is_added_to_the_scores(fused, mask):
    bias = noise(3, 5, 5, seed=9)  # (heads, queries, keys)
    floating = bias if mask is None else torch.where(mask, bias, -math.inf)
    theirs = lambda *x: F.scaled_dot_product_attention(*x, attn_mask=floating)  # noqa: E731
    assert_same_function(lambda *x: fused(*x, mask, bias), theirs, heads())
    assert_same_function(lambda *x: attention_weights(*x[:2], mask, bias=bias) @ x[2], theirs, heads())


def law_scores_are_dot_products_divided_by_the_temperature(scores_of):
    query, key, _ = heads(queries=2, keys=3, d_k=5)
    raw = torch.stack([(query * key[..., each, :][..., None, :]).sum(dim=-1) for each in range(3)], dim=-1)
    close(scores_of(query, key), raw / math.sqrt(5))
    for temperature in (0.1, 1.0, 7.5):
        close(scores_of(query, key, temperature=temperature), raw / temperature)


def test_scores_are_dot_products_divided_by_the_temperature():
    law_scores_are_dot_products_divided_by_the_temperature(attention_scores)
    query, key, _ = heads()
    close(attention_scores(query, key).softmax(dim=-1), attention_weights(query, key))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda q, k, temperature=1.0: attention_scores(q, k, temperature=temperature),  # no scale by itself
        lambda q, k, temperature=1.0: attention_scores(q, k) / temperature,  # the scale always
        lambda q, k, temperature=None: attention_scores(q, k, temperature=temperature) * (temperature or 1.0),
        lambda q, k, temperature=None: attention_scores(k, q, temperature=temperature).mT.flip(-1),
    ],
)
def test_the_law_of_scores_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_scores_are_dot_products_divided_by_the_temperature(wrong)


class BiasInsteadOfMask(FusedAttention):
    def forward(self, query, keys, values, mask, bias=None):
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=bias)


class MaskInsteadOfBias(FusedAttention):
    def forward(self, query, keys, values, mask, bias=None):
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


@each_mask
def test_a_bias_is_added_to_the_scores(mask):
    law_a_bias_is_added_to_the_scores(FusedAttention(), mask)


@pytest.mark.parametrize("wrong", [BiasInsteadOfMask(), MaskInsteadOfBias()])
def test_a_bias_that_is_lost_or_hides_the_mask_is_found(wrong):
    with pytest.raises(AssertionError):
        law_a_bias_is_added_to_the_scores(wrong, MASKS["both"])


@each_mask
def test_multi_head_attention_is_torchs(mask):
    parity_with_torchs_module(MultiHeadAttention(12, 3), mask)


def test_cross_attention_with_other_lengths_is_torchs():
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    assert_same_module(
        MultiHeadAttention(12, 3),
        theirs,
        [noise(2, 4, 12, seed=4), noise(2, 7, 12, seed=5), noise(2, 7, 12, seed=6)],
        call_theirs=lambda *inputs: theirs(*inputs, need_weights=False)[0],
    )


def test_the_average_of_our_heads_weights_is_torchs():
    theirs, x = nn.MultiheadAttention(12, 3, batch_first=True), noise(2, 5, 12)
    ours = MultiHeadAttention(12, 3)
    assert_same_module(ours, theirs, [x], call_ours=lambda x: ours(x, x, x), call_theirs=lambda x: theirs(x, x, x)[0])
    split = [projection(x).unflatten(-1, (3, 4)).transpose(1, 2) for projection in (ours.query_proj, ours.key_proj)]
    close(attention_weights(*split).mean(dim=1), theirs(x, x, x)[1])


class Unscaled(FusedAttention):
    def forward(self, query, keys, values, mask, bias=None):
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=1.0)


class ByModelWidth(FusedAttention):
    """√d_model instead of √d_k."""

    def forward(self, query, keys, values, mask, bias=None):
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=12**-0.5)


class Inverted(FusedAttention):
    """True = hidden."""

    def forward(self, query, keys, values, mask, bias=None):
        blocked = torch.zeros(mask.shape).masked_fill(mask, -1e9)
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=blocked)


class HeadsInterleaved(MultiHeadAttention):
    """Every num_heads-th feature to the same head."""

    def _split(self, x):
        return x.unflatten(-1, (-1, self.num_heads)).movedim(-1, 1)


class HeadsReshaped(MultiHeadAttention):
    """(batch, length, d_model) viewed as (batch, heads, length, d_k) without a transpose: mixes tokens."""

    def _split(self, x):
        return x.reshape(len(x), self.num_heads, x.shape[1], -1)


@pytest.mark.parametrize("fused", [Unscaled(), ByModelWidth(), Inverted()])
def test_parity_fails_for_another_attention(fused):
    with pytest.raises(AssertionError):
        parity_with_torchs_function(fused, MASKS["both"])
    wrong = MultiHeadAttention(12, 3)
    wrong.fused = fused
    with pytest.raises(AssertionError):
        parity_with_torchs_module(wrong, MASKS["both"])


@pytest.mark.parametrize("wrong", [HeadsInterleaved, HeadsReshaped])
def test_parity_fails_for_other_heads(wrong):
    with pytest.raises(AssertionError):
        parity_with_torchs_module(wrong(12, 3), None)


# --- laws ---------------------------------------------------------------------------------------


def law_rows_sum_to_1_and_hidden_keys_get_nothing(weights_of):
    query, key, _ = heads()
    for mask in MASKS.values():
        weights = weights_of(30 * query, key, mask)  # far from uniform
        assert weights.shape == (2, 3, 5, 5) and (weights >= 0).all()
        close(weights.sum(dim=-1), torch.ones(2, 3, 5))
        if mask is not None:
            assert (weights[~mask.expand_as(weights)] == 0).all()


def law_no_context_sees_the_future(context_of):
    query, key, value = (tensor.requires_grad_() for tensor in heads())
    context = context_of(query, key, value, causal_mask(5))
    for t in range(5):
        gradients = torch.autograd.grad(context[:, :, t].sum(), [query, key, value], retain_graph=True)
        for gradient in gradients:
            assert (gradient[:, :, t + 1 :] == 0).all()
        assert (gradients[2][:, :, : t + 1] != 0).all()


def hidden_after_the_softmax(query, key, mask):
    weights = attention_weights(query, key)
    return weights if mask is None else weights * mask


def hidden_scores_are_0(query, key, mask):
    scores = query @ key.mT / 2
    return (scores if mask is None else scores * mask).softmax(-1)


def softmax_over_the_queries(query, key, mask):
    scores = query @ key.mT / 2
    return (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-2)


def with_weights(weights_of):
    return lambda query, key, value, mask: weights_of(query, key, mask) @ value


def test_rows_of_weights_sum_to_1():
    law_rows_sum_to_1_and_hidden_keys_get_nothing(attention_weights)


def test_no_context_sees_the_future():
    law_no_context_sees_the_future(lambda *inputs: attention(*inputs)[0])
    law_no_context_sees_the_future(FusedAttention())


@pytest.mark.parametrize("wrong", [hidden_after_the_softmax, hidden_scores_are_0, softmax_over_the_queries])
def test_other_weights_break_the_laws(wrong):
    with pytest.raises(AssertionError):
        law_rows_sum_to_1_and_hidden_keys_get_nothing(wrong)
    with pytest.raises(AssertionError):
        law_no_context_sees_the_future(with_weights(wrong))


def law_one_head_after_another(multi_head):
    """All heads at once are the list of heads, each computed alone, side by side, then mixed."""
    module, x, memory = scrambled(multi_head(12, 3)), noise(2, 4, 12), noise(2, 6, 12, seed=1)
    contexts = []
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)  # this head's d_k = 4 outputs of each projection
        query, key, value = (
            F.linear(of, projection.weight[rows], projection.bias[rows])
            for of, projection in ((x, module.query_proj), (memory, module.key_proj), (memory, module.value_proj))
        )
        contexts.append(attention(query, key, value)[0])
    close(module(x, memory, memory), module.output_proj(torch.cat(contexts, dim=-1)))


def test_all_heads_at_once_are_one_head_after_another():
    tells_apart(law_one_head_after_another, MultiHeadAttention, HeadsInterleaved, HeadsReshaped)


def test_the_number_of_heads_costs_no_parameters():
    sizes = {sum(p.numel() for p in MultiHeadAttention(12, num_heads).parameters()) for num_heads in (1, 2, 3, 12)}
    assert sizes == {4 * (12 * 12 + 12)}


# --- bad input ----------------------------------------------------------------------------------


def refuses(message, *inputs, function=None):
    with pytest.raises(ValueError, match=message):
        (function or attention)(*inputs)


def test_widths_and_lengths_must_fit():
    query, key, value = heads()
    refuses(r"query and key must share d_k, got \(2, 3, 5, 3\) and \(2, 3, 5, 4\)", query[..., :3], key, value)
    refuses(r"each key needs one value, got key \(2, 3, 5, 4\) and value \(2, 3, 4, 4\)", query, key, value[:, :, :4])


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_a_temperature_is_above_0(temperature):
    with pytest.raises(ValueError, match=f"temperature must be above 0, got {temperature}"):
        attention_scores(*heads()[:2], temperature=temperature)


def test_only_d_k_must_match():
    context, weights = attention(*heads(queries=2, keys=7, d_v=9))
    assert context.shape == (2, 3, 2, 9) and weights.shape == (2, 3, 2, 7)


@pytest.mark.parametrize("function", [attention, MultiHeadAttention(12, 3).double()], ids=["explicit", "multi-head"])
def test_a_mask_that_does_not_fit_is_refused(function):
    inputs = [noise(5, 3, 5, 4)] * 3 if function is attention else [noise(5, 5, 12)] * 3  # batch = queries = 5
    every = torch.ones(5, 1, 5, 5, dtype=torch.bool)
    for dtype in (torch.float64, torch.int64):
        message = f"expected a bool mask, True = may attend, got {dtype}"
        refuses(message, *inputs, every.to(dtype), function=function)
    refuses(r"as in the scores \(5, 3, 5, 5\), keys in full; got \(5, 5\)", *inputs, every[:, 0, 0], function=function)
    refuses(r"keys in full; got \(5, 1, 5, 1\)", *inputs, every[..., :1], function=function)
    refuses("a query has nothing to attend to", *inputs, every & False, function=function)


def test_multi_head_attention_refuses_wrong_shapes():
    module = MultiHeadAttention(12, 3)
    good = noise(2, 5, 12)
    for bad in (noise(5, 12), noise(2, 5, 6), noise(2, 3, 5, 12)):
        got = rf"expected \(batch, length, 12\), got \({', '.join(map(str, bad.shape))}\)"
        refuses(got, bad, good, good, function=module)
        refuses(got, good, bad, bad, function=module)
    refuses("each key needs one value", good, good, good[:, :4], function=module)
    refuses("query and key must share the batch, got 1 and 2 rows", good[:1], good, good, function=module)


@pytest.mark.parametrize("num_heads", [5, 24])
def test_heads_must_divide_the_model(num_heads):
    message = f"d_model must be divisible by num_heads, got d_model=12, num_heads={num_heads}"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(12, num_heads)


@pytest.mark.parametrize("num_heads", [0, -3])
def test_there_is_at_least_one_head(num_heads):
    with pytest.raises(ValueError, match="num_heads"):
        MultiHeadAttention(12, num_heads)


def law_a_query_has_something_to_attend_to(attend):
    query, key, value = heads()
    for number in (0, 3):
        try:
            context, weights = attend(query, key[..., :number, :], value[..., :number, :])
        except ValueError as error:
            assert number == 0 and "a query has nothing to attend to: there are no keys" in str(error)
        else:
            assert number == 3, f"a context of nothing: {context.unique().tolist()}"


def of_nothing(query, key, value):
    weights = (query @ key.transpose(-2, -1)).softmax(dim=-1)
    return weights @ value, weights


def test_a_query_has_something_to_attend_to():
    tells_apart(law_a_query_has_something_to_attend_to, attention, of_nothing, match="a context of nothing")
    module, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    for training in (True, False):
        with torch.set_grad_enabled(training):
            refuses("there are no keys", x, x[:, :0], x[:, :0], function=module)


def test_a_bias_fits_the_scores():
    query, key, _ = heads()
    for bias in (noise(2, 1, 3, 5, 5), noise(7, 1, 5, 5), noise(5, 4), torch.ones(5, 5, dtype=torch.long)):
        with pytest.raises(ValueError, match="expected a bias of floating-point numbers"):
            attention_weights(query, key, bias=bias)


def test_a_bias_hides_no_key():
    """A row of -inf would leave nothing to attend to; also where bias and mask close it together only."""
    query, key, value = heads()
    bias = noise(5, 5)
    bias[2, 1:] = -math.inf
    mask = torch.ones(1, 1, 5, 5, dtype=torch.bool)
    mask[..., 2, 0] = False
    for bad, beside in ((torch.full((5, 5), -math.inf), None), (bias, mask), (bias, None)):
        with pytest.raises(ValueError, match="a bias must not hold -inf"):
            attention_weights(query, key, beside, bias=bad)
        with pytest.raises(ValueError, match="a bias must not hold -inf"):
            FusedAttention()(query, key, value, beside, bad)


def test_dtypes_must_be_the_same():
    query, key, value = heads()
    refuses("of one dtype and device", query.float(), key, value)
    refuses("of one dtype and device", query, key, value.float())
