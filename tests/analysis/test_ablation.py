"""Heads switched off: as if their columns of W_O were zero, however the model is run, and undone without a trace."""

from contextlib import contextmanager

import pytest
import torch

from course_lib.analysis.ablation import KINDS, ablate_heads, all_heads, attentions
from course_lib.decoding import greedy
from course_lib.recording import record_attention
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import tiny_batch, tiny_model
from tests.helpers.training import assert_same_weights, weights_of

pytestmark = pytest.mark.usefixtures("float64")
SRC, TGT_IN = tiny_batch()


def model_of(**changes):
    """A model whose every parameter is random, because zeros and ones hide mistakes."""
    model = tiny_model(spread=3, **changes)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model


def columns(model, kind, layer, head):
    """The head's columns of W_O, as a view: (d_model, d_k)."""
    weight = attentions(model, kind)[layer].output_proj.weight
    return weight.unflatten(1, (model.config.num_heads, -1))[:, head]


@contextmanager
def zeroed_columns(model, heads):
    """The slow specification: zeros in W_O, and the old weights back at the end."""
    before = weights_of(model)
    with torch.no_grad():
        for kind, layer, head in heads:
            columns(model, kind, layer, head).zero_()
    try:
        yield
    finally:
        model.load_state_dict(before)


# --- mutants ------------------------------------------------------------------------------------


@contextmanager
def hooks(model, heads, change, where="fused"):
    handles = []
    for kind, layer, head in heads:
        module = attentions(model, kind)[layer]
        module = getattr(module, where) if where else module
        handles.append(module.register_forward_hook(lambda module, args, out, head=head: change(out.clone(), head)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def zero_features(output, head):
    output.unflatten(-1, (2, -1))[..., head, :] = 0
    return output


def zero_positions(context, head):
    context[:, :, head] = 0  # the axis of the queries
    return context


def zero_next(context, head):
    context[:, (head + 1) % 2] = 0
    return context


def halve(context, head):
    context[:, head] *= 0.5
    return context


def after_the_mix(model, heads):
    """Zeros after W_O instead of before it."""
    return hooks(model, heads, zero_features, where="output_proj")


def only_in_forward(model, heads):
    """A hook on the attention module itself, past which the decoder and its cache go."""
    return hooks(model, heads, zero_features, where="")


def wrong_axis(model, heads):
    return hooks(model, heads, zero_positions)


def wrong_head(model, heads):
    return hooks(model, heads, zero_next)


def half_silent(model, heads):
    return hooks(model, heads, halve)


def only_the_encoder(model, heads):
    return ablate_heads(model, [name for name in heads if name[0] == "encoder"])


# --- laws ---------------------------------------------------------------------------------------


def silence_is_zeros_in_the_output_matrix(silence, **changes):
    model = model_of(**changes)
    plain = model(SRC, TGT_IN)
    names = all_heads(model)
    for heads in ([name] for name in names), [names[::2], names[1:4], names]:
        for some in heads:
            with silence(model, some):
                ours = model(SRC, TGT_IN)
            with zeroed_columns(model, some):
                theirs = model(SRC, TGT_IN)
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
            assert (theirs - plain).abs().max() > 1e-3, "this head is heard"


def with_the_cache_too(silence):
    """Greedy search, with the key-value cache, finds what it finds with zeros in W_O."""
    model = model_of()
    found = {}
    for heads in [[name] for name in all_heads(model)]:
        with silence(model, heads):
            ours = greedy(model, SRC, max_len=8)
        with zeroed_columns(model, heads):
            theirs = greedy(model, SRC, max_len=8)
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, rel=1e-9)
        found[heads[0]] = tuple(each.log_prob for each in ours)
    assert len(set(found.values())) == len(found), "no two heads are the same"


WRONG = [after_the_mix, only_in_forward, wrong_axis, wrong_head, half_silent, only_the_encoder]


@pytest.mark.parametrize("law", [silence_is_zeros_in_the_output_matrix, with_the_cache_too])
@pytest.mark.parametrize("mutant", WRONG)
def test_silence_is_zeros_in_the_heads_columns_of_the_output_matrix(law, mutant):
    law(ablate_heads)
    with pytest.raises((AssertionError, IndexError)):
        law(mutant)


@pytest.mark.parametrize("changes", [dict(norm_first=True), dict(position="alibi"), dict(position="rotary")])
def test_silence_in_other_models(changes):
    silence_is_zeros_in_the_output_matrix(ablate_heads, **changes)


def recording_sees_the_silent_model(silence):
    """Weights are those of the model with zeros in W_O, whichever block is the inner one."""
    model, heads = model_of(), [("encoder", 0, 1), ("cross", 0, 0)]
    with zeroed_columns(model, heads), record_attention(model) as theirs:
        model(SRC, TGT_IN)
    with silence(model, heads), record_attention(model) as inner:
        model(SRC, TGT_IN)
    with record_attention(model) as outer, silence(model, heads):
        model(SRC, TGT_IN)
    for ours in (inner, outer):
        for kind in KINDS:
            torch.testing.assert_close(getattr(ours, kind), getattr(theirs, kind), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mutant", WRONG)
def test_recording_sees_the_silent_model(mutant):
    recording_sees_the_silent_model(ablate_heads)
    with pytest.raises((AssertionError, IndexError)):
        recording_sees_the_silent_model(mutant)


def nothing_is_left(silence):
    model = model_of()
    before, weights = {name: dict(vars(module)) for name, module in model.named_modules()}, weights_of(model)
    plain = model(SRC, TGT_IN)

    def fail():
        with silence(model, [("decoder", 1, 0), ("cross", 0, 1)]):
            model(SRC, TGT_IN)
            raise OSError("in the block")

    assert raised(OSError, fail)
    with silence(model, all_heads(model)):
        model(SRC, TGT_IN)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys(), name
    assert_same_weights(model, weights)
    assert torch.equal(model(SRC, TGT_IN), plain), "bit for bit"


@contextmanager
def undone_only_without_errors(model, heads):
    handles = [
        attentions(model, kind)[layer].fused.register_forward_hook(lambda module, args, out: 0 * out)
        for kind, layer, _ in heads
    ]
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def zeros_that_stay(model, heads):
    with torch.no_grad():
        for name in heads:
            columns(model, *name).zero_()
    yield


@pytest.mark.parametrize("mutant", [undone_only_without_errors, zeros_that_stay])
def test_nothing_is_left_on_the_model_even_after_an_error(mutant):
    tells_apart(nothing_is_left, ablate_heads, mutant)


def silent_heads_cannot_spoil_anything(silence):
    """Not even a head whose context is not a number."""
    model = model_of()
    with torch.no_grad():
        attentions(model, "cross")[0].value_proj.bias[:8] = torch.nan  # of head 0
    assert model(SRC, TGT_IN).isnan().any()
    with silence(model, [("cross", 0, 0)]):
        assert not model(SRC, TGT_IN).isnan().any()


def test_silent_heads_cannot_spoil_anything():
    tells_apart(silent_heads_cannot_spoil_anything, ablate_heads, half_silent)


def test_gradients_pass_by_a_silent_head():
    model = model_of()
    with ablate_heads(model, [("decoder", 1, 1)]):
        model(SRC, TGT_IN).square().sum().backward()
    gradient = model.decoder.layers[1].self_attn.query_proj.weight.grad
    assert (gradient[8:] == 0).all() and gradient[:8].abs().max() > 0


def test_no_heads_repeats_and_nesting():
    model = model_of()
    plain = model(SRC, TGT_IN)
    with ablate_heads(model, []):
        assert torch.equal(model(SRC, TGT_IN), plain)
    first, second = ("encoder", 0, 0), ("cross", 1, 1)
    with ablate_heads(model, iter([first, second, first])):
        both = model(SRC, TGT_IN)
    with ablate_heads(model, [first]):
        with ablate_heads(model, [second]):
            assert torch.equal(model(SRC, TGT_IN), both)
        assert not torch.allclose(model(SRC, TGT_IN), both)
    assert torch.equal(model(SRC, TGT_IN), plain)


# --- names --------------------------------------------------------------------------------------


def test_all_heads_are_listed_once_in_order():
    model = model_of(num_layers=3, num_heads=4)
    found = all_heads(model)
    assert found == [(kind, layer, head) for kind in KINDS for layer in range(3) for head in range(4)]
    for kind in KINDS:
        modules = attentions(model, kind)
        assert [module.num_heads for module in modules] == [4] * 3
    assert attentions(model, "encoder")[1] is model.encoder.layers[1].self_attn
    assert attentions(model, "decoder")[2] is model.decoder.layers[2].self_attn
    assert attentions(model, "cross")[0] is model.decoder.layers[0].cross_attn


@pytest.mark.parametrize(
    "name, message",
    [
        (("memory", 0, 0), "expected a kind among encoder, decoder, cross, got 'memory'"),
        (("encoder", 2, 0), "encoder has layers 0..1, got ('encoder', 2, 0)"),
        (("encoder", -1, 0), "encoder has layers 0..1, got ('encoder', -1, 0)"),
        (("cross", 1, 2), "layer 1 of cross has heads 0..1, got ('cross', 1, 2)"),
        (("cross", 1, -1), "layer 1 of cross has heads 0..1, got ('cross', 1, -1)"),
        (("cross", 1), "expected heads as (kind, layer, head), got ('cross', 1)"),
        ("cross", "expected heads as (kind, layer, head), got 'cross'"),
    ],
)
def test_unknown_heads_are_named_and_nothing_is_silenced(name, message):
    model = model_of()

    def enter():
        with ablate_heads(model, [("encoder", 0, 0), name]):
            pass

    assert str(raised(ValueError, enter)) == message
    assert not any(module._forward_hooks for module in model.modules())


def test_one_head_in_place_of_several_is_refused():
    def enter():
        with ablate_heads(model_of(), ("cross", 1, 0)):
            pass

    assert str(raised(ValueError, enter)) == "expected heads as (kind, layer, head), got 'cross'"
