"""Recording attention: the weights that were really used, and not a trace on the model."""

from contextlib import contextmanager

import pytest
import torch

from course_lib import attention as attention_module
from course_lib import recording
from course_lib.alternatives.recurrent import AttentiveRNN, recurrent_like
from course_lib.attention import attention_weights
from course_lib.decoding import greedy
from course_lib.recording import AttentionMaps, record_attention
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import padded, sources, tiny_batch, tiny_model

pytestmark = pytest.mark.usefixtures("float64")
SRC, TGT_IN = tiny_batch()


def model_of(**changes):
    return tiny_model(spread=3, **changes)


def before_the_mask(query, key, mask=None, *, bias=None):
    return attention_weights(query, key)


def without_the_bias(query, key, mask=None, *, bias=None):
    return attention_weights(query, key, mask)


def of_the_keys_alone(query, key, mask=None, *, bias=None):
    return attention_weights(key, key)


# The recorder with another function in the place of attention_weights.
def recorder_with(weights_of):
    @contextmanager
    def recorder(model):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recording, "attention_weights", weights_of)
            with record_attention(model) as maps:
                yield maps

    return recorder


# --- laws ---------------------------------------------------------------------------------------


def recorded_weights_are_those_that_were_used(recorder, **changes):
    """weights @ values is the context that the fused kernel returned."""
    model, calls, handles = model_of(**changes), [], []
    for name, module in model.named_modules():
        if name.endswith(".fused"):
            hook = module.register_forward_hook(lambda module, args, out, name=name: calls.append((name, args[2], out)))
            handles.append(hook)
    with torch.no_grad(), recorder(model) as maps:
        model(SRC, TGT_IN)
    assert len(calls) == 6
    for name, values, context in calls:
        stack, _, layer, kind, _ = name.split(".")
        part = maps.cross if kind == "cross_attn" else getattr(maps, stack)
        torch.testing.assert_close(part[int(layer)] @ values, context, rtol=1e-9, atol=1e-12)


def masked_keys_get_no_weight(recorder):
    model = model_of()
    with torch.no_grad(), recorder(model) as maps:
        model(SRC, TGT_IN)
    src_pad, tgt_pad = SRC == 0, TGT_IN == 0  # (batch, keys)
    for weights in (*maps.encoder, *maps.decoder, *maps.cross):
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    for weights in (*maps.encoder, *maps.cross):
        assert (weights[src_pad[:, None, None, :].expand_as(weights)] == 0).all()
    for weights in maps.decoder:
        assert (weights.triu(diagonal=1) == 0).all()
        assert (weights[tgt_pad[:, None, None, :].expand_as(weights)] == 0).all()
        assert (weights.tril() > 0).any()


@pytest.mark.parametrize("law", [recorded_weights_are_those_that_were_used, masked_keys_get_no_weight])
def test_recorded_weights(law):
    tells_apart(law, record_attention, recorder_with(before_the_mask))


@pytest.mark.parametrize("position", ["alibi", "rotary"])
def test_recorded_weights_know_the_positions_that_attention_is_told(position):
    recorded_weights_are_those_that_were_used(record_attention, position=position)


def test_recorded_weights_law_catches_a_forgotten_bias():
    with pytest.raises(AssertionError):
        recorded_weights_are_those_that_were_used(recorder_with(without_the_bias), position="alibi")


def test_recorded_weights_law_catches_the_wrong_queries():
    same_lengths = padded(sources([3, 3, 3])), TGT_IN[:, :4]
    assert same_lengths[0].shape == same_lengths[1].shape, "so that no shape gives the mutant away"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError):
        patch.setitem(globals(), "SRC", same_lengths[0])
        patch.setitem(globals(), "TGT_IN", same_lengths[1])
        recorded_weights_are_those_that_were_used(recorder_with(of_the_keys_alone))


def recording_changes_no_output(recorder):
    model = model_of()
    with torch.no_grad():
        plain = model(SRC, TGT_IN)
        with recorder(model):
            recorded = model(SRC, TGT_IN)
    assert torch.equal(plain, recorded)
    with recorder(model):
        found = greedy(model, SRC, max_len=8)
    assert found == greedy(model, SRC, max_len=8)


@contextmanager
def by_the_explicit_formula(model):
    """Computes the context anew, a rounding error away from the fused kernel."""

    def explicit(module, query, keys, values, mask, bias=None):
        return attention_module.attention(query, keys, values, mask)[0] * (1 + 1e-12)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_module.FusedAttention, "forward", explicit)
        yield


def test_recording_changes_no_output_bit_for_bit():
    tells_apart(recording_changes_no_output, record_attention, by_the_explicit_formula)


def nothing_is_left_on_the_model(recorder):
    model = model_of()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}

    def fail():
        with recorder(model):
            model(SRC, TGT_IN)
            raise OSError("in the block")

    assert raised(OSError, fail)
    with recorder(model) as maps:
        model(SRC, TGT_IN)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys(), name
    kept = [weights.clone() for weights in maps.encoder]
    model(padded(sources([5, 3, 2], seed=7)), TGT_IN)
    assert all(map(torch.equal, maps.encoder, kept)), "a later pass changed the maps"
    assert not any(weights.requires_grad for weights in maps.encoder + maps.decoder + maps.cross)


@contextmanager
def leaves_hooks(model):
    maps = AttentionMaps([None] * 2, [None] * 2, [None] * 2)
    for index, layer in enumerate(model.encoder.layers):
        layer.self_attn.fused.register_forward_hook(recording._keep_weights(maps.encoder, index))
    yield maps


def test_nothing_is_left_on_the_model_even_after_an_error():
    tells_apart(nothing_is_left_on_the_model, record_attention, leaves_hooks)


def test_the_maps_have_one_tensor_a_layer_and_their_shapes():
    model = model_of()
    with record_attention(model) as maps:
        model(SRC, TGT_IN)
    batch, heads, src_len, tgt_len = 3, 2, 6, 5
    assert [tuple(weights.shape) for weights in maps.encoder] == [(batch, heads, src_len, src_len)] * 2
    assert [tuple(weights.shape) for weights in maps.decoder] == [(batch, heads, tgt_len, tgt_len)] * 2
    assert [tuple(weights.shape) for weights in maps.cross] == [(batch, heads, tgt_len, src_len)] * 2


def test_recordings_can_be_nested():
    model = model_of()
    with record_attention(model) as outer:
        with record_attention(model) as inner:
            model(SRC, TGT_IN)
        assert all(map(torch.equal, outer.cross, inner.cross))
        model(SRC.flip(0), TGT_IN.flip(0))
    assert not any(map(torch.equal, outer.cross, inner.cross))


def test_a_recurrent_model_is_refused_by_name():
    config = recurrent_like(tiny_model().config)
    error = raised(ValueError, lambda: record_attention(AttentiveRNN(config)).__enter__())
    assert error and "got AttentiveRNN" in str(error)
    assert raised(ValueError, lambda: record_attention(tiny_model()).__enter__()) is None
