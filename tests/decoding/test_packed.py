"""The packed steps are the plain ones, for every model that fits and after every change; nothing is stale."""

import gc
import weakref
from dataclasses import replace
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib import Translator, record_attention
from course_lib.alternatives import AttentiveRNN, recurrent_like
from course_lib.decoding import Steps, beam, beam_search, greedy, one_path, packed
from course_lib.decoding.packed import PackedModel, PackedSteps, first_step
from course_lib.position import SinusoidalPosition
from course_lib.transformer import Transformer, eval_mode
from tests.helpers import searches
from tests.helpers.decoding import (
    batch_equals_one_by_one,
    cached_equals_uncached,
    log_prob_is_the_teacher_forced_one,
    no_specials_come_out,
)
from tests.helpers.laws import patched, tells_apart
from tests.helpers.tiny import MODEL_VARIANTS, padded, sources, tiny_model

pytestmark = pytest.mark.skipif(not packed.AVAILABLE, reason="this torch has no oneDNN: the plain steps are taken")

ABSOLUTE = ("sinusoidal", "learned", "none")
FITTING = [replace(config, max_len=40) for config in MODEL_VARIANTS if config.position in ABSOLUTE]
SRC = padded(sources([6, 1, 3, 5, 2], vocab_size=23))


def models():
    for seed, config in enumerate(FITTING):
        torch.manual_seed(seed)
        yield Transformer(config).eval()


# --- a step -------------------------------------------------------------------------------------

# What a search may do between two steps with 5 rows, or with as many as the change before left.
CHANGES = {
    "goes on": [],
    "some end": [[0, 2, 3], [2], [0]],
    "beams": [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [1, 0, 3, 3, 8, 9], [5, 4, 1, 0]],
    "not as many for each": [[0, 0, 0, 1, 4], [4, 0, 1], [0, 1, 2]],
    "any order": [[4, 3, 2, 1, 0], [1, 1, 0], [2, 0, 1]],
    "one grows": [[3], [0, 0, 0, 0, 0, 0], [5, 1]],
}


def steps_are_the_plain_ones(first, *, src=SRC, length=36):
    generator = torch.Generator().manual_seed(0)
    for model in models():
        for changes in CHANGES.values():
            with eval_mode(model):
                ours, plain, rows = first(model, src), Steps(model, src), len(src)
                for number in range(length):
                    last = torch.randint(3, 23, (rows,), generator=generator)
                    torch.testing.assert_close(ours(last), plain(last), rtol=1e-4, atol=1e-4)
                    if number < len(changes):
                        kept = torch.tensor(changes[number])
                        ours.select(kept)
                        plain.select(kept)
                        rows = len(kept)


def in_order(steps, rows, select=PackedSteps.select):
    select(steps, rows.sort().values)


def memory_stays(steps, rows, select=PackedSteps.select):
    before, mask = steps.memory, steps.mask
    select(steps, rows)
    if len(steps.memory[0][0]) == len(before[0][0]):
        steps.memory, steps.mask = before, mask


def mask_forgotten(steps, index, attention, x, attend=PackedSteps._attend_memory):
    steps.mask = None
    return attend(steps, index, attention, x)


def query_for_key(*maps, make=packed.PackedLinear):
    return make(maps[1], maps[0], maps[2]) if len(maps) == 3 else make(*maps)


def broken(target, name, replacement):
    return patched(first_step, mock.patch.object(target, name, replacement))


def steps_with(name, replacement):
    """Steps of a class in which one method is broken, for as long as they live."""
    return type("Broken", (PackedSteps,), {name: replacement})


def all_but_the_newest_lost(steps, before=PackedSteps._grow):
    before(steps)
    steps.store.zero_()


def test_steps_are_the_plain_ones():
    assert {config.norm_first for config in FITTING} == {True, False} and len(FITTING) >= 8
    mutants = (
        steps_with("select", in_order),
        steps_with("select", memory_stays),
        steps_with("_attend_memory", mask_forgotten),
        steps_with("_grow", all_but_the_newest_lost),
        broken(packed, "PackedLinear", query_for_key),
    )
    tells_apart(steps_are_the_plain_ones, first_step, *mutants)


# --- searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [cached_equals_uncached, batch_equals_one_by_one, log_prob_is_the_teacher_forced_one, no_specials_come_out],
)
def test_law_of_greedy_search(law):
    wrong = mock.patch.object(one_path, "first_step", steps_with("select", in_another_order))
    tells_apart(law, greedy, *[patched(greedy, wrong)] * (law is not no_specials_come_out))


def in_another_order(steps, rows, select=PackedSteps.select):
    select(steps, rows.flip(0))


def test_a_wide_beam_is_exhaustive():
    wrong = mock.patch.object(beam, "first_step", steps_with("select", in_order))
    tells_apart(searches.a_wide_beam_is_exhaustive, beam_search, patched(beam_search, wrong))


def test_the_shipped_translator_says_the_same():
    translator = Translator.from_pretrained("course")
    texts = [f"the {size} {animal} sees a bird ." for size in ("big", "small") for animal in ("dog", "cat", "horse")]
    ours = translator.translate_batch(texts)
    with mock.patch.object(packed, "fits", lambda model: False):
        plain = translator.translate_batch(texts)
    assert [translation.text for translation in ours] == [translation.text for translation in plain]
    assert [translation.score for translation in ours] == pytest.approx([one.score for one in plain], abs=1e-4)
    assert [translation.score for translation in ours] != [one.score for one in plain], "both went the same way"


# --- weights that change ------------------------------------------------------------------------


def times_minus_one(model):
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.up.weight *= -1


def a_training_step(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, fused=True)
    model(SRC, SRC).logsumexp(-1).sum().backward()
    optimizer.step()


def loaded(model):
    model.load_state_dict(Transformer(model.config).state_dict())


def assigned(model):
    model.load_state_dict(Transformer(model.config).state_dict(), assign=True)


def another_layer(model):
    model.decoder.layers[0].self_attn.output_proj = nn.Linear(model.config.d_model, model.config.d_model)


def other_data(model):
    model.generator.weight.data = model.generator.weight.data.flip(0)


def another_position(model):
    model.src_embedding.position = SinusoidalPosition(40, model.config.d_model, base=3.0)


def without_a_norm(model):
    model.decoder.layers[0].feed_forward_path.norm = nn.Identity()


def the_other_order(model):
    for layer in model.encoder.layers:
        layer.self_attn_path.norm_first = not layer.self_attn_path.norm_first


def flatter_norms(model):
    for layer in model.decoder.layers:
        layer.self_attn_path.norm.eps = 9.0


CHANGED_WEIGHTS = [times_minus_one, a_training_step, loaded, assigned, another_layer, other_data]
CHANGED_PARTS = [another_position, without_a_norm, the_other_order, flatter_norms]


@pytest.mark.parametrize("change", CHANGED_WEIGHTS + CHANGED_PARTS)
def test_changed_parts_and_weights_are_packed_again(change):
    def the_next_step_has_them(first):
        for model in models():
            with eval_mode(model):
                before = first(model, SRC)(SRC[:, 0])
            change(model)
            with eval_mode(model):
                ours, plain = first(model, SRC)(SRC[:, 0]), Steps(model, SRC)(SRC[:, 0])
            assert not torch.allclose(before, plain, atol=1e-2), "the change changes nothing"
            torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)

    tells_apart(the_next_step_has_them, first_step, broken(PackedModel, "is_of", lambda packed, model: True))


def test_unchanged_weights_are_packed_once():
    model = next(models())
    greedy(model, SRC)
    with mock.patch.object(packed, "PackedModel", side_effect=AssertionError("packed again")):
        greedy(model, SRC)


def test_what_is_packed_goes_with_its_model():
    model = next(models())
    greedy(model, SRC)
    watched = weakref.ref(model), weakref.ref(packed.packed(model))
    del model
    gc.collect()
    assert [one() for one in watched] == [None, None]


def test_a_part_may_be_none():
    for model in models():
        model.src_embedding.position = model.tgt_embedding.position = None
        with eval_mode(model):
            ours, plain = first_step(model, SRC)(SRC[:, 0]), Steps(model, SRC)(SRC[:, 0])
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


def test_the_default_dtype_changes_nothing(float64):
    for model in models():
        with eval_mode(model.float()):
            ours, plain, rows = first_step(model, SRC), Steps(model, SRC), torch.arange(10) // 2
            for last in (SRC[:, 0], SRC[rows, 1]):
                torch.testing.assert_close(ours(last), plain(last), rtol=1e-4, atol=1e-4)
                ours.select(rows)
                plain.select(rows)


# --- models that do not fit ---------------------------------------------------------------------


class Louder(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def louder(model):
    model.decoder.layers[1].feed_forward.down = Louder(model.config.d_ff, model.config.d_model)


def hooked(model):
    model.decoder.layers[1].register_forward_hook(lambda layer, given, x: -x)


def hooked_before(model):
    model.decoder.layers[1].register_forward_pre_hook(lambda layer, given: (-given[0], *given[1:]))


def own_forward(model):
    layer = model.encoder.layers[0]
    layer.forward = lambda x, mask: -x


@pytest.mark.parametrize("change", [louder, hooked, hooked_before, own_forward, torch.nn.Module.double])
def test_a_model_that_computes_something_else_takes_the_plain_steps(change):
    for model in models():
        change(model)
        with eval_mode(model):
            assert type(first_step(model, SRC)) is Steps


@pytest.mark.parametrize("position", ["alibi", "rotary"])
def test_relative_positions_take_the_plain_steps(position):
    assert type(first_step(tiny_model(position=position), SRC % 12)) is Steps


def test_an_lstm_takes_the_plain_steps():
    assert type(first_step(AttentiveRNN(recurrent_like(FITTING[0])).eval(), SRC)) is Steps


def test_mixed_precision_and_weights_without_versions_take_the_plain_steps():
    model = next(models())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert type(first_step(model, SRC)) is Steps
    assert type(first_step(model, SRC)) is PackedSteps
    with torch.inference_mode():
        assert type(first_step(next(models()), SRC)) is Steps


def test_attention_is_recorded_in_a_search_too():
    model = next(models())
    with record_attention(model) as maps:
        greedy(model, SRC)
    assert maps.cross[0].shape[:3] == (len(maps.cross[0]), model.config.num_heads, 1)
