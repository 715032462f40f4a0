"""Malformed calls of the public functions: each gives a right result, or an error that says what is wrong.

Hypothesis puts junk in the place of one or two good arguments. No result may be silently wrong, no error may come raw
from inside, nothing may hang, and nothing may end the process.
"""

import json
import math
import signal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.attention import MultiHeadAttention, attention, attention_scores, attention_weights
from course_lib.blocks import DecoderLayer, Dropout, EncoderLayer, FeedForward, LayerNorm, Residual, layer_norm
from course_lib.config import PRESETS, ModelConfig, check_preset, model_preset
from course_lib.decoding import (
    BeamTree,
    beam_search,
    check_search,
    cut,
    greedy,
    normalized,
    place_log_probs,
    record_beam,
    sample,
    sampling_probs,
)
from course_lib.masks import causal_mask, check_bias, check_mask, padding_mask
from course_lib.metrics import bleu, bleu_difference, exact_match, mean_estimate, share_estimate
from course_lib.position import (
    ALiBi,
    ConcatenatedPosition,
    LearnedPosition,
    RelativeBias,
    Rotary,
    SinusoidalPosition,
    sinusoidal,
)
from course_lib.storage import load_weights
from course_lib.tokenizer import Tokenizer
from course_lib.training import (
    Experiment,
    TrainConfig,
    label_smoothed_loss,
    learning_rate,
    paper_rate,
    smoothing_floor,
    train_preset,
)
from course_lib.transformer import Transformer, check_ids
from tests.helpers.corpora import TEXTS
from tests.helpers.faults import Case, law_right_or_refused, replacements
from tests.helpers.laws import tells_apart
from tests.helpers.tiny import SMALL, tiny_batch, tiny_model, toy_translator

EXAMPLES = 60  # calls with two faults, beside all with one
MODEL, TRANSLATOR = tiny_model(), toy_translator()
TOKENIZER = TRANSLATOR.tokenizer


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def holds(condition):
    assert condition


def as_expected(result, expected):
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


# --- attention, masks ---------------------------------------------------------------------------


def heads(**more):
    query, key, value = noise(2, 3, 5, 4), noise(2, 3, 6, 4, seed=1), noise(2, 3, 6, 4, seed=2)
    return dict(query=query, key=key, value=value) | more


def some_mask():
    mask = torch.ones(2, 1, 5, 6, dtype=torch.bool)
    mask[:, :, :, 4:] = False
    return mask


def expanded(*tensors):
    """With all leading dimensions."""
    lead = torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors))
    return [tensor.expand(*lead, *tensor.shape[-2:]) for tensor in tensors]


def right_scores(result, query, key, temperature=None):
    scale = math.sqrt(query.shape[-1]) if temperature is None else temperature
    query, key = expanded(query, key)
    meta = result.device.type == "meta"
    expected = torch.einsum("...qd,...kd->...qk", query, key) / scale
    assert result.shape == expected.shape and result.shape[-1] > 0
    if not meta:
        as_expected(result, expected)


def right_weights(result, query, key, mask=None, bias=None):
    scores = attention_scores(query, key)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    assert result.shape == attention_scores(query, key).shape and result.dtype == scores.dtype
    assert result.is_floating_point() and (query.numel() == 0 or result.isnan().any() or result.shape[-1] > 0)
    if result.device.type != "meta":
        as_expected(result, scores.softmax(dim=-1))


def right_attention(result, query, key, value, mask=None):
    context, weights = result
    if context.device.type == "meta":
        return
    dimensions = max(query.dim(), key.dim(), value.dim())
    ours, keys, values = (each[(None,) * (dimensions - each.dim())] for each in (query, key, value))
    ours, keys = expanded(ours, keys)
    scores = ours @ keys.transpose(-2, -1) / math.sqrt(ours.shape[-1])
    expected = (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(dim=-1) @ values
    as_expected(context, expected)
    assert weights.shape == (*ours.shape[:-1], key.shape[-2])[-weights.dim() :]


MULTI = MultiHeadAttention(12, 3).eval()


def inputs(**more):
    return dict(query=noise(2, 5, 12), key=noise(2, 6, 12, seed=1), value=noise(2, 6, 12, seed=2)) | more


def right_multi_head(result, query, key, value, mask=None):
    assert result.shape == query.shape and result.dtype == torch.float32
    if query.numel():
        parts = [projection(x) for projection, x in
                 ((MULTI.query_proj, query), (MULTI.key_proj, key), (MULTI.value_proj, value))]
        split = [part.unflatten(-1, (3, 4)).transpose(1, 2) for part in parts]
        context = attention(*split, mask)[0]
        as_expected(result, MULTI.output_proj(context.transpose(1, 2).flatten(2)))


def built(*names):
    """Specification of a constructor: the named arguments are ints, and all numbers are finite."""

    def check(result, **arguments):
        given = [arguments[name] for name in names if arguments[name] is not None]
        assert all(type(size) is int and size > 0 for size in given)
        assert all(each.isfinite().all() and each.numel() for each in [*result.parameters(), *result.buffers()])

    return check


def right_padding(result, ids, pad_id):
    assert result.shape == (ids.shape[0], 1, 1, ids.shape[1]) and result.dtype == torch.bool
    assert isinstance(pad_id, int) and torch.equal(result[:, 0, 0], ids != pad_id) and result.any(dim=-1).all()


def right_causal(result, length):
    assert torch.equal(result[0, 0], torch.ones(length, length).tril().bool())


CASES = {
    "attention_scores": Case(
        attention_scores,
        lambda: dict(query=noise(2, 5, 4), key=noise(2, 6, 4), temperature=2.0),
        dict(query="tensor", key="tensor", temperature="float"),
        right_scores,
    ),
    "attention_weights": Case(
        attention_weights,
        lambda: dict(query=noise(2, 3, 5, 4), key=noise(2, 3, 6, 4), mask=some_mask(), bias=noise(3, 5, 6)),
        dict(query="tensor", key="tensor", mask="tensor", bias="tensor"),
        right_weights,
    ),
    "attention": Case(
        attention,
        lambda: heads(mask=some_mask()),
        dict(query="tensor", key="tensor", value="tensor", mask="tensor"),
        right_attention,
    ),
    "attention without a mask": Case(
        attention, heads, dict(query="tensor", key="tensor", value="tensor"), right_attention
    ),
    "MultiHeadAttention": Case(
        MultiHeadAttention,
        lambda: dict(d_model=12, num_heads=3, key_width=2),
        dict(d_model="int", num_heads="int", key_width="int"),
        built("d_model", "num_heads", "key_width"),
    ),
    "MultiHeadAttention.forward": Case(
        lambda **arguments: MULTI(**arguments),
        lambda: inputs(mask=some_mask()),
        dict(query="tensor", key="tensor", value="tensor", mask="tensor"),
        right_multi_head,
        own=(MultiHeadAttention.forward,),
    ),
    "MultiHeadAttention.forward without a mask": Case(
        lambda **arguments: MULTI(**arguments),
        inputs,
        dict(query="tensor", key="tensor", value="tensor"),
        right_multi_head,
        own=(MultiHeadAttention.forward,),
    ),
    "padding_mask": Case(
        padding_mask, lambda: dict(ids=tiny_batch()[0], pad_id=0), dict(ids="tensor", pad_id="int"), right_padding
    ),
    "causal_mask": Case(causal_mask, lambda: dict(length=5), dict(length="int"), right_causal),
    "check_mask": Case(
        lambda mask: check_mask(mask, (2, 3, 5, 6)),
        lambda: dict(mask=some_mask()),
        dict(mask="tensor"),
        lambda result, mask: F.scaled_dot_product_attention(*heads().values(), mask),
        own=(check_mask,),
    ),
    "check_bias": Case(
        lambda bias: check_bias(bias, (2, 3, 5, 6)),
        lambda: dict(bias=noise(3, 5, 6)),
        dict(bias="tensor"),
        lambda result, bias: bias.expand(2, 3, 5, 6),
        own=(check_bias,),
    ),
}


# --- positions ----------------------------------------------------------------------------------

POSITIONED = SinusoidalPosition(9, 12), LearnedPosition(9, 12), ConcatenatedPosition(9, 14, 2)
RELATIVE = ALiBi(3), RelativeBias(3, 2), Rotary(9, 4)


def right_sinusoids(result, max_len, d_model, base=10000.0):
    assert result.shape == (max_len, d_model) and 0 < base < math.inf
    angles = np.arange(max_len)[:, None] / float(base) ** (np.arange(0, d_model, 2) / d_model)
    if np.abs(angles).max(initial=0) < 1e6:
        np.testing.assert_allclose(result[:, ::2], np.sin(angles), atol=1e-5)
        np.testing.assert_allclose(result[:, 1::2], np.cos(angles), atol=1e-5)


def right_position(module):
    def check(result, x, start):
        assert type(start) in (int, bool)
        table = module.table[start : start + x.shape[1]]
        assert len(table) == x.shape[1] and x.is_floating_point()
        if result.device.type == "meta":
            return
        if isinstance(module, ConcatenatedPosition):
            as_expected(result, torch.cat([x, table.to(x.dtype).expand(len(x), -1, -1)], dim=-1))
        else:
            as_expected(result, x + table)

    return check


def right_relative(module):
    def check(result, query, keys):
        turned, others, bias = result
        assert turned.shape == query.shape and others.shape == keys.shape and query.shape[-2] <= keys.shape[-2]
        assert bias is None or bias.shape == (3, query.shape[-2], keys.shape[-2])
        if isinstance(module, Rotary) and turned.dtype == torch.float32:
            as_expected(turned.norm(dim=-1), query.norm(dim=-1))

    return check


CASES |= {
    "sinusoidal": Case(
        sinusoidal,
        lambda: dict(max_len=5, d_model=6, base=100.0),
        dict(max_len="int", d_model="int", base="float"),
        right_sinusoids,
    ),
    "SinusoidalPosition": Case(
        SinusoidalPosition, lambda: dict(max_len=5, d_model=6), dict(max_len="int", d_model="int"),
        built("max_len", "d_model"), own=(SinusoidalPosition, sinusoidal),
    ),
    "LearnedPosition": Case(
        LearnedPosition,
        lambda: dict(max_len=5, d_model=6, std=0.5),
        dict(max_len="int", d_model="int", std="float"),
        built("max_len", "d_model"),
    ),
    "ConcatenatedPosition": Case(
        ConcatenatedPosition,
        lambda: dict(max_len=5, d_model=6, d_position=2),
        dict(max_len="int", d_model="int", d_position="int"),
        built("max_len", "d_model", "d_position"),
    ),
    "ALiBi": Case(
        ALiBi, lambda: dict(num_heads=3, scale=1.0), dict(num_heads="int", scale="float"), built("num_heads")
    ),
    "RelativeBias": Case(
        RelativeBias,
        lambda: dict(num_heads=3, farthest=4),
        dict(num_heads="int", farthest="int"),
        built("num_heads", "farthest"),
    ),
    "Rotary": Case(
        Rotary, lambda: dict(max_len=5, d_k=6), dict(max_len="int", d_k="int"), built("max_len", "d_k"),
        own=(Rotary, sinusoidal),
    ),
    "ALiBi.bias": Case(
        RELATIVE[0].bias,
        lambda: dict(queries=3, keys=5),
        dict(queries="int", keys="int"),
        lambda result, queries, keys: as_expected(result, RELATIVE[0].bias(keys, keys)[:, keys - queries :]),
    ),
    "Rotary.rotate": Case(
        RELATIVE[2].rotate,
        lambda: dict(x=noise(2, 5, 4), start=1),
        dict(x="tensor", start="int"),
        lambda result, x, start: as_expected(result, RELATIVE[2].rotate(F.pad(x, (0, 0, start, 0)))[..., start:, :])
        if result.device.type == "cpu" else None,
    ),
    **{
        f"{type(module).__name__}.forward": Case(
            lambda module=module, **arguments: module(**arguments),
            lambda: dict(x=noise(2, 5, 12), start=2),
            dict(x="tensor", start="int"),
            right_position(module),
            own=(type(module).forward,),
        )
        for module in POSITIONED
    },
    **{
        f"{type(module).__name__}.forward": Case(
            lambda module=module, **arguments: module(**arguments),
            lambda: dict(query=noise(2, 3, 4, 4), keys=noise(2, 3, 6, 4)),
            dict(query="tensor", keys="tensor"),
            right_relative(module),
            own=(type(module).forward,),
        )
        for module in RELATIVE
    },
}


# --- blocks, transformer ------------------------------------------------------------------------

ENCODER, DECODER = EncoderLayer(12, 3, 20, 0.1).eval(), DecoderLayer(12, 3, 20, 0.1).eval()
NORM, NETWORK, PATH = LayerNorm(12), FeedForward(12, 20), Residual(12, 0.1, True).eval()


def right_norm(result, x, scale, shift, eps):
    assert scale.shape == shift.shape == x.shape[-1:] and eps >= 0
    if result.device.type != "meta":
        plain = F.layer_norm(x.double(), scale.shape, scale.double(), shift.double(), eps)
        torch.testing.assert_close(result.double(), plain, rtol=1e-2, atol=1e-2, equal_nan=True)


def same_shape(result, x, **_):
    assert result.shape == x.shape and result.dtype == x.dtype == torch.float32


def right_logits(result, src, tgt_in):
    assert result.shape == (*tgt_in.shape, 12) and result.isfinite().all() and len(src) == len(tgt_in)
    assert 0 <= src.min() and src.max() < 12


CASES |= {
    "layer_norm": Case(
        layer_norm,
        lambda: dict(x=noise(2, 5, 6), scale=noise(6), shift=noise(6), eps=1e-5),
        dict(x="tensor", scale="tensor", shift="tensor", eps="float"),
        right_norm,
    ),
    "LayerNorm": Case(
        LayerNorm, lambda: dict(d_model=6, eps=1e-5), dict(d_model="int", eps="float"), built("d_model")
    ),
    "FeedForward": Case(
        FeedForward, lambda: dict(d_model=6, d_ff=8), dict(d_model="int", d_ff="int"), built("d_model", "d_ff")
    ),
    "Residual": Case(
        Residual,
        lambda: dict(d_model=6, dropout=0.1, norm_first=True),
        dict(d_model="int", dropout="float", norm_first="flag"),
        built("d_model"),
    ),
    "Dropout": Case(Dropout, lambda: dict(p=0.1), dict(p="float"), lambda result, p: holds(0 <= result.p <= 1)),
    **{
        layer.__name__: Case(
            layer,
            lambda: dict(d_model=12, num_heads=3, d_ff=20, dropout=0.1, norm_first=True, key_width=2),
            dict(d_model="int", num_heads="int", d_ff="int", dropout="float", norm_first="flag", key_width="int"),
            built("d_model", "num_heads", "d_ff", "key_width"),
        )
        for layer in (EncoderLayer, DecoderLayer)
    },
    **{
        f"{type(module).__name__}.forward": Case(
            lambda module=module, **arguments: module(**arguments),
            lambda: dict(x=noise(2, 5, 12)),
            dict(x="tensor"),
            same_shape,
            own=(type(module).forward,),
        )
        for module in (NORM, NETWORK)
    },
    "Residual.forward": Case(
        lambda x: PATH(x, NETWORK), lambda: dict(x=noise(2, 5, 12)), dict(x="tensor"), same_shape,
        own=(Residual.forward,),
    ),
    "EncoderLayer.forward": Case(
        lambda **arguments: ENCODER(**arguments),
        lambda: dict(x=noise(2, 5, 12), mask=torch.ones(2, 1, 5, 5, dtype=torch.bool)),
        dict(x="tensor", mask="tensor"),
        same_shape,
        own=(EncoderLayer.forward,),
    ),
    "DecoderLayer.forward": Case(
        lambda **arguments: DECODER(**arguments),
        lambda: dict(x=noise(2, 5, 12), memory=noise(2, 6, 12), tgt_mask=causal_mask(5), memory_mask=some_mask()),
        dict(x="tensor", memory="tensor", tgt_mask="tensor", memory_mask="tensor"),
        same_shape,
        own=(DecoderLayer.forward,),
    ),
    "Transformer.forward": Case(
        lambda **arguments: MODEL(**arguments),
        lambda: dict(zip(("src", "tgt_in"), tiny_batch(), strict=True)),
        dict(src="tensor", tgt_in="tensor"),
        right_logits,
        own=(Transformer.forward,),
    ),
    "Transformer.encode": Case(
        MODEL.encode,
        lambda: dict(src=tiny_batch()[0]),
        dict(src="tensor"),
        lambda result, src: as_expected(result.shape, torch.Size((*src.shape, 16))),
    ),
    "Transformer.decode": Case(
        MODEL.decode,
        lambda: dict(tgt_in=tiny_batch()[1], memory=noise(3, 6, 16), src=tiny_batch()[0]),
        dict(tgt_in="tensor", memory="tensor", src="tensor"),
        lambda result, tgt_in, **_: as_expected(result.shape, torch.Size((*tgt_in.shape, 16))),
    ),
    "check_ids": Case(
        lambda ids: check_ids(ids, "ids", 12),
        lambda: dict(ids=tiny_batch()[0]),
        dict(ids="tensor"),
        lambda result, ids: F.one_hot(ids, 12),
        own=(check_ids,),
    ),
}


# --- configurations, schedule, loss -------------------------------------------------------------

INTS = dict.fromkeys(("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_len", "key_width"), "int")
INTS |= dict.fromkeys(("pad_id", "bos_id", "eos_id", "unk_id"), "int")


def plain_config(result, **arguments):
    """It is what was asked for, survives JSON, and its sizes are sizes."""
    again = type(result).from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result and json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for name, value in result.to_dict().items():
        assert not isinstance(value, float) or math.isfinite(value), name


def right_model_config(result, **arguments):
    plain_config(result)
    assert 0 < result.num_parameters < 1e40 and result.num_layers <= 1000
    assert all(type(getattr(result, name)) in (int, type(None)) for name in INTS if not name.endswith("id"))


def right_paper_rate(result, step, d_model, warmup_steps):
    assert result == pytest.approx(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)) and result > 0


def right_rate(result, step, d_model, total_steps, **_):
    assert math.isfinite(result) and result >= 0 and step >= 1 and (result > 0 or step == total_steps + 1)


def right_loss(result, logits, targets, smoothing):
    assert logits.is_floating_point()
    if result.device.type == "cpu" and logits.dtype == torch.float32:
        expected = F.cross_entropy(logits, targets, label_smoothing=float(smoothing), reduction="sum")
        as_expected(result, expected)


CASES |= {
    "ModelConfig": Case(
        ModelConfig,
        lambda: SMALL | dict(key_width=4, position="learned", norm_first=True, pad_id=0, bos_id=1, eos_id=2, unk_id=3),
        INTS | dict(dropout="float", norm_first="flag", tie_weights="flag", position="name"),
        right_model_config,
    ),
    "ModelConfig.from_dict": Case(
        ModelConfig.from_dict, lambda: dict(values=MODEL.config.to_dict()), dict(values="options"), right_model_config
    ),
    "ModelConfig.flop_counts": Case(
        MODEL.config.flop_counts,
        lambda: dict(src_len=3, tgt_len=4),
        dict(src_len="int", tgt_len="int"),
        lambda result, src_len, tgt_len: holds(min(result.values()) > 0 and type(src_len) is type(tgt_len) is int),
    ),
    "ModelConfig.memory_bytes": Case(
        MODEL.config.memory_bytes,
        lambda: dict(bytes_per_number=4),
        dict(bytes_per_number="int"),
        lambda result, bytes_per_number: holds(min(result.values()) > 0),
    ),
    "model_preset": Case(
        model_preset, lambda: dict(name="tiny", vocab_size=50, max_len=9),
        dict(name="name", vocab_size="int", max_len="int"), right_model_config, own=(model_preset, ModelConfig),
    ),
    "check_preset": Case(
        check_preset, lambda: dict(name="tiny"), dict(name="name"), lambda result, name: PRESETS.index(name)
    ),
    "TrainConfig": Case(
        TrainConfig,
        lambda: TrainConfig(peak_lr=1e-3, clip_norm=1.0).to_dict(),
        dict.fromkeys(("epochs", "batch_tokens", "accumulate", "warmup_steps", "seed"), "int")
        | dict.fromkeys(("peak_lr", "label_smoothing", "clip_norm", "weight_decay", "eps"), "float")
        | dict(decay="name", precision="name", betas="numbers"),
        plain_config,
    ),
    "TrainConfig.from_dict": Case(
        TrainConfig.from_dict, lambda: dict(values=TrainConfig().to_dict()), dict(values="options"), plain_config
    ),
    "train_preset": Case(
        train_preset, lambda: dict(name="tiny", epochs=3), dict(name="name", epochs="int"), plain_config,
        own=(train_preset, TrainConfig),
    ),
    "Experiment": Case(
        Experiment,
        lambda: dict(preset="mini", vocab_size=50, training=TrainConfig(), subword_dropout=0.1, average=2, beam_size=3,
                     length_penalty=0.5, snapshots=2, lowercase=True, augment=False, made_up_share=0.5, report="valid",
                     architecture="transformer", subword_dropout_side="source"),
        dict(preset="name", vocab_size="int", subword_dropout="float", average="int", beam_size="int",
             length_penalty="float", snapshots="int", lowercase="flag", augment="flag", made_up_share="float",
             report="name", architecture="name", subword_dropout_side="name"),
        lambda result, **_: holds(1 <= result.kept_epochs and all(map(math.isfinite, result.length_penalty))),
    ),
    "paper_rate": Case(
        paper_rate,
        lambda: dict(step=3, d_model=16, warmup_steps=5),
        dict(step="int", d_model="int", warmup_steps="int"),
        right_paper_rate,
    ),
    **{
        f"learning_rate, {decay}": Case(
            learning_rate,
            lambda decay=decay: dict(
                config=TrainConfig(decay=decay, warmup_steps=4), step=9, d_model=8, total_steps=10
            ),
            dict(step="int", d_model="int", total_steps="int"),
            right_rate,
            own=(learning_rate, paper_rate),
        )
        for decay in ("linear", "inverse_sqrt")
    },
    "label_smoothed_loss": Case(
        label_smoothed_loss,
        lambda: dict(logits=noise(5, 7), targets=torch.tensor([0, 3, 6, 2, 2]), smoothing=0.1),
        dict(logits="tensor", targets="tensor", smoothing="float"),
        right_loss,
    ),
    "smoothing_floor": Case(
        smoothing_floor,
        lambda: dict(smoothing=0.1, vocab_size=50),
        dict(smoothing="float", vocab_size="int"),
        lambda result, smoothing, vocab_size: holds(0 <= result <= math.log(vocab_size) + 1e-9 and 0 <= smoothing < 1),
    ),
}


# --- tokenizer ----------------------------------------------------------------------------------


def right_tokenizer(result, texts, vocab_size, lowercase):
    assert not isinstance(texts, str) and result.vocab_size <= vocab_size and type(lowercase) is bool
    for text in texts:
        assert result.decode(result.encode(text)) == result.normalize(text)


def right_ids(result, text):
    assert all(type(i) is int and 0 <= i < TOKENIZER.vocab_size for i in result)
    if 3 not in result and "▁" not in text:
        assert TOKENIZER.decode(result) == TOKENIZER.normalize(text)


def right_batch(result, texts):
    assert not isinstance(texts, str) and result == [TOKENIZER.encode(text) for text in texts]


def right_text(result, ids):
    assert not isinstance(ids, str) and isinstance(result, str) and len(ids) >= (result != "")


CASES |= {
    "Tokenizer.train": Case(
        Tokenizer.train,
        lambda: dict(texts=list(TEXTS), vocab_size=200, lowercase=False),
        dict(texts="texts", vocab_size="int", lowercase="flag"),
        right_tokenizer,
    ),
    "Tokenizer.encode": Case(TOKENIZER.encode, lambda: dict(text="a dog"), dict(text="text"), right_ids),
    "Tokenizer.encode_batch": Case(
        TOKENIZER.encode_batch, lambda: dict(texts=["a dog", "a cat"]), dict(texts="texts"), right_batch
    ),
    "Tokenizer.decode": Case(TOKENIZER.decode, lambda: dict(ids=[5, 6]), dict(ids="ids"), right_text),
    "Tokenizer.token": Case(
        TOKENIZER.token,
        lambda: dict(token_id=5),
        dict(token_id="int"),
        lambda result, token_id: holds(0 <= token_id < TOKENIZER.vocab_size and isinstance(result, str)),
    ),
    **{
        f"Tokenizer.{name}": Case(
            getattr(TOKENIZER, name),
            lambda: dict(text="a dog"),
            dict(text="text"),
            lambda result, text, name=name: holds(isinstance(text, str)),
        )
        for name in ("normalize", "tokens", "words")
    },
    "Tokenizer.from_json": Case(
        Tokenizer.from_json,
        lambda: dict(text=TOKENIZER.to_json()),
        dict(text="text"),
        lambda result, text: holds(result.encode("a dog") == TOKENIZER.encode("a dog")),
    ),
}


# --- decoding -----------------------------------------------------------------------------------


def sentences():
    return tiny_batch()[0]


def right_outputs(result, src, prefix=(), max_len=None, **_):
    assert len(result) == len(src)
    for each in result:
        assert all(4 <= i < 12 or i == 3 for i in each.ids) and math.isfinite(each.log_prob)
        assert each.ids[: len(prefix)] == [int(i) for i in prefix] and (max_len is None or len(each.ids) <= max_len)


def right_beams(result, beam_size, length_penalty, src, max_len):
    check_search(beam_size, length_penalty)
    for beams in result:
        assert 0 < len(beams) <= beam_size and all(math.isfinite(each.score) for each in beams)
        right_outputs(beams, [None] * len(beams), max_len=max_len)


def right_trees(result, beam_size, length_penalty, src, max_len):
    found = beam_search(MODEL, src, beam_size=beam_size, length_penalty=length_penalty, max_len=max_len)
    for tree, beams in zip(result, found, strict=True):
        assert [tree.nodes[end].score for end in tree.best] == [each.score for each in beams]


def right_probs(result, log_probs, temperature, top_k, top_p):
    assert 0 < temperature < math.inf and (top_k is None or top_k >= 1) and (top_p is None or 0 < top_p <= 1)
    if result.device.type == "cpu":
        assert result.shape == log_probs.shape and not result.isnan().any() and (result >= 0).all()
        torch.testing.assert_close(result.sum(-1).float(), torch.ones(len(result)), rtol=0, atol=1e-2)


def right_normalized(result, log_prob, length, length_penalty):
    assert result == log_prob / ((5 + length) / 6) ** length_penalty and length >= 1 and math.isfinite(length_penalty)


SEARCH = dict(src="tensor", beam_size="int", length_penalty="float", max_len="int")
TREE = record_beam(MODEL, sentences()[:1], beam_size=2, max_len=4)[0]


def log_probs():
    return noise(3, 12).log_softmax(dim=-1)


CASES |= {
    "greedy": Case(
        lambda **arguments: greedy(MODEL, **arguments),
        lambda: dict(src=sentences(), prefix=[5, 6], max_len=9),
        dict(src="tensor", prefix="ids", max_len="int"),
        right_outputs,
        own=(greedy,),
    ),
    "sample": Case(
        lambda **arguments: sample(MODEL, **arguments),
        lambda: dict(src=sentences(), temperature=1.0, top_k=5, top_p=0.9, max_len=9),
        dict(src="tensor", temperature="float", top_k="int", top_p="float", max_len="int"),
        right_outputs,
        own=(sample, sampling_probs, cut),
    ),
    "beam_search": Case(
        lambda **arguments: beam_search(MODEL, **arguments),
        lambda: dict(src=sentences(), beam_size=3, length_penalty=0.6, max_len=9),
        SEARCH,
        right_beams,
        own=(beam_search,),
    ),
    "record_beam": Case(
        lambda **arguments: record_beam(MODEL, **arguments),
        lambda: dict(src=sentences()[:1], beam_size=2, length_penalty=0.6, max_len=4),
        SEARCH,
        right_trees,
        own=(record_beam,),
    ),
    "sampling_probs": Case(
        sampling_probs,
        lambda: dict(log_probs=log_probs(), temperature=1.0, top_k=5, top_p=0.9),
        dict(log_probs="tensor", temperature="float", top_k="int", top_p="float"),
        right_probs,
        own=(sampling_probs, cut),
    ),
    "place_log_probs": Case(
        lambda **arguments: place_log_probs(MODEL, **arguments),
        lambda: dict(src=sentences()[:1], ids=[5, 6, 2]),
        dict(src="tensor", ids="ids"),
        lambda result, src, ids: as_expected(result.shape, torch.Size((len(ids), 12))),
        own=(place_log_probs,),
    ),
    "check_search": Case(
        check_search,
        lambda: dict(beam_size=4, length_penalty=0.6),
        dict(beam_size="int", length_penalty="float"),
        lambda result, beam_size, length_penalty: holds(1 <= beam_size <= 1000 and 555.0**length_penalty < math.inf),
    ),
    "normalized": Case(
        normalized,
        lambda: dict(log_prob=-3.0, length=4, length_penalty=0.6),
        dict(length="int", length_penalty="float"),
        right_normalized,
    ),
    "BeamTree.rescored": Case(
        TREE.rescored,
        lambda: dict(length_penalty=0.6),
        dict(length_penalty="float"),
        lambda result, length_penalty: holds(all(math.isfinite(result.nodes[i].score) for i in result.best)),
    ),
    "BeamTree.from_dict": Case(
        BeamTree.from_dict,
        lambda: dict(values=TREE.to_dict()),
        dict(values="options"),
        lambda result, values: holds(result == TREE),
    ),
    "Translator.translate": Case(
        TRANSLATOR.translate,
        lambda: dict(text="a dog sees a cat .", beam_size=2, length_penalty=0.6, attention=False),
        dict(text="text", beam_size="int", length_penalty="float"),
        lambda result, text, **_: holds(isinstance(text, str) and isinstance(result.text, str)),
    ),
    "Translator.translate_batch": Case(
        TRANSLATOR.translate_batch,
        lambda: dict(texts=["a dog", "a man sees a cat ."], beam_size=1),
        dict(texts="texts", beam_size="int"),
        lambda result, texts, **_: holds(not isinstance(texts, str) and len(result) == len(texts)),
    ),
}


# --- metrics, weights ---------------------------------------------------------------------------


def two(seed=0):
    return ["ein Hund sieht eine Katze .", "ein Mann hört einen Vogel ."]


def right_bleu(result, outputs, references, tokenize, lowercase):
    assert not isinstance(outputs, str) and not isinstance(references, str)
    assert 0 <= result.score <= 100 + 1e-6 and len(outputs) == len(references)
    assert outputs != references or result.score == pytest.approx(100) or max(map(len, outputs)) < 20


def right_estimate(result, values, level):
    assert 0 < level < 1 and len(values) > 1 and not isinstance(values, str)
    assert result.value == pytest.approx(sum(values) / len(values)) and not math.isnan(result.low)
    assert result.low <= result.value <= result.high


CASES |= {
    "bleu": Case(
        bleu,
        lambda: dict(outputs=two(), references=two(), tokenize="13a", lowercase=False),
        dict(outputs="texts", references="texts", tokenize="name", lowercase="flag"),
        right_bleu,
    ),
    "exact_match": Case(
        exact_match,
        lambda: dict(outputs=two(), references=two()),
        dict(outputs="texts", references="texts"),
        lambda result, outputs, references: holds(0 <= result <= 1 and not isinstance(outputs, str)),
    ),
    "mean_estimate": Case(
        mean_estimate,
        lambda: dict(values=[1.0, 2.0, 4.0], level=0.9),
        dict(values="numbers", level="float"),
        right_estimate,
    ),
    "share_estimate": Case(
        share_estimate,
        lambda: dict(count=2, total=5, level=0.9),
        dict(count="int", total="int", level="float"),
        lambda result, count, total, level: holds(0 <= result.low <= count / total <= result.high <= 1),
    ),
    "bleu_difference": Case(
        bleu_difference,
        lambda: dict(outputs=two(), others=two(), references=two(), samples=5, seed=1),
        dict(outputs="texts", others="texts", references="texts", seed="int"),
        lambda result, **_: holds(result.low <= result.value <= result.high),
    ),
    "load_weights": Case(
        lambda tensors: load_weights(tiny_model(1), tensors),
        lambda: dict(tensors=MODEL.state_dict()),
        dict(tensors="options"),
        lambda result, tensors: holds(tensors.keys() == MODEL.state_dict().keys()),
        own=(load_weights,),
    ),
}


# --- the law ------------------------------------------------------------------------------------

made = {name: 0 for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_call_with_one_fault_is_right_or_refused(name):
    case = CASES[name]
    assert law_right_or_refused(case, []) == "right", "the good call"
    wrong = []
    for fault in replacements(case):
        made[name] += 1
        try:
            law_right_or_refused(case, [fault])
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, f"{len(wrong)} of {made[name]}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case.kinds) > 1])
def test_a_call_with_two_faults_is_right_or_refused(name):
    case = CASES[name]
    fault = st.sampled_from(replacements(case))
    two_faults = st.tuples(fault, fault).filter(lambda both: both[0][0] < both[1][0])

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
    @given(two_faults)
    def check(faults):
        made[name] += 1
        law_right_or_refused(case, list(faults))

    check()


# --- the law can fail ---------------------------------------------------------------------------


def positive(number):
    if not isinstance(number, int):
        raise TypeError(f"number must be an int, got {type(number).__name__}")
    if number < 1:
        raise ValueError(f"number must be at least 1, got {number}")
    return 2 * number


def wide(number):
    """The mistake: it takes what is no number from 1 on."""
    return 2 * number if isinstance(number, int | float) else positive(number)


def raw(number):
    """The mistake: an error of another kind."""
    return {1: 2, 2: 4, 3: 6, 7: 14}[number] if isinstance(number, int) else positive(number)


def deep(number):
    """The mistake: an error from inside, that names no argument."""
    return positive(json.loads(json.dumps(number)))


def endless(number):
    """The mistake: it goes on until the number is reached."""
    reached = 0
    while isinstance(number, int) and reached < min(number, 10**9):
        reached += 1
    return positive(number)


def doubled(function):
    def specification(result, number):
        assert isinstance(number, int) and number >= 1 and result == 2 * number

    return Case(function, lambda: dict(number=3), dict(number="int"), specification, own=(function,))


def every_fault(function):
    case = doubled(function)
    for fault in replacements(case):
        law_right_or_refused(case, [fault])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no clock that ends what hangs")
def test_the_law_tells_mistakes_apart(monkeypatch):
    monkeypatch.setattr("tests.helpers.faults.SECONDS", 1)
    monkeypatch.setattr("tests.helpers.faults.LIBRARY", __file__)
    mistakes = {wide: "a silent wrong answer", raw: "a raw error from inside, KeyError"}
    mistakes |= {deep: "a TypeError that names no argument", endless: "no end after 1 seconds"}
    for mistake, match in mistakes.items():
        tells_apart(every_fault, positive, mistake, match=match)


def test_there_were_at_least_2000_calls():
    if not all(made.values()):
        pytest.skip("not all of the calls were asked for")
    assert sum(made.values()) >= 2000, made
