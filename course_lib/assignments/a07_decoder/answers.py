"""Answers to assignment 07: right ones, written differently, and plausible wrong ones beside the known mistakes."""

from functools import reduce
from types import SimpleNamespace

import torch
from torch import nn

from course_lib.attention import attention as library_attention
from course_lib.blocks import DecoderLayer
from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.data import make_batch
from course_lib.decoding import greedy
from course_lib.masks import causal_mask
from course_lib.recording import record_attention
from course_lib.tokenizer import EOS_ID
from course_lib.transformer import Decoder, Encoder, Transformer

MASKED = "scores.masked_fill(~seen, -math.inf).softmax(dim=-1)"
OUTPUTS = (  # of every encoder layer, and the number of the decoder layer
    "    for encoder", "    outputs = [x_src]\n    for encoder",
    "x_src = encoder_layer(x_src)", "outputs.append(encoder_layer(outputs[-1]))",
    "decoder_layer in decoder_layers", "number, decoder_layer in enumerate(decoder_layers)",
)
ENCODE = "{0}for encoder_layer in encoder_layers:\n{0}    x_src = encoder_layer(x_src)\n"
CROSS = "cross_attn(norms[{}](x), memory, memory, memory_mask)"


def extend_by_torch(x, keys, values, w_query, w_key, w_value):
    keys, values = (torch.cat(pair, dim=-2) for pair in ((keys, x @ w_key), (values, x @ w_value)))
    seen = torch.ones(x.size(1), keys.size(1), dtype=torch.bool, device=x.device).tril(keys.size(1) - x.size(1))
    return nn.functional.scaled_dot_product_attention(x @ w_query, keys, values, attn_mask=seen), keys, values


def extend_one_by_one(x, keys, values, w_query, w_key, w_value):
    found = []
    for newest in x.split(1, dim=1):
        context, keys, values = extend_by_torch(newest, keys, values, w_query, w_key, w_value)
        found.append(context)
    return torch.cat(found, dim=1), keys, values


class Stacks:
    def __call__(self, x_src, x_tgt, encoder_layers, decoder_layers):
        memory = reduce(lambda x, layer: layer(x), encoder_layers, x_src)
        return reduce(lambda x, layer: layer(x, memory), decoder_layers, x_tgt)


def layer_by_paths(x, memory, self_attn, cross_attn, feed_forward, norms, *masks):
    sublayers = lambda x: self_attn(x, x, x, masks[0]), lambda x: cross_attn(x, memory, memory, masks[1]), feed_forward
    for norm, sublayer in zip(norms, sublayers, strict=True):
        x = x + sublayer(norm(x))
    return x


def cut_afterwards(step, start, eos_id, pad_id, max_len):
    ids = start
    for _ in range(max_len):
        ids = torch.cat([ids, step(ids)[:, -1].argmax(-1)[:, None]], dim=1)
    written = ids[:, 1:]
    ended = (written == eos_id).cumsum(1) - (written == eos_id).int()  # how many </s> stand before
    return written.masked_fill(ended > 0, pad_id)[:, : int((ended == 0).sum(1).max())]


RIGHT = {
    "07.shapes": [Edit(), Edit("(", "[", ")", "]"), Edit("64)", "512 // 8)")],
    "07.cache": [
        extend_by_torch,
        Edit("~seen, -math.inf)", "seen.logical_not(), -torch.inf)", "keys.mT", "keys.transpose(1, 2)"),
        Edit("place <= place[past:, None]", "torch.ones_like(scores[0], dtype=torch.bool).tril(past)",
             "    seen", "    scores = x @ w_query @ keys.mT / math.sqrt(keys.size(-1))\n    seen"),
    ],
    "07.stacks": [
        Stacks(),
        Edit(*OUTPUTS, "x_tgt, x_src)", "x_tgt, outputs[-1])"),
        Edit("for encoder_layer in", "while", "encoder_layer(x_src)", "encoder_layers[0](x_src)",
             "    for decoder", "        encoder_layers = encoder_layers[1:]\n    for decoder"),
    ],
    "07.decoder_layer": [
        layer_by_paths,
        Edit("query, query, query, tgt_mask", "*[query] * 3, tgt_mask"),
        Edit("    query = norms[0](x)\n", "", "query, query, query", "norms[0](x), norms[0](x), norms[0](x)"),
        Edit(f"x = x + {CROSS.format(1)}", f"x = torch.add({CROSS.format(1)}, x)"),
    ],
    "07.generate": [
        cut_afterwards,
        Edit("logits.argmax(dim=-1).masked_fill(finished, pad_id)", "logits.max(-1).indices.where(~finished, pad_id)"),
        Edit("while ids.size(1) <= max_len and not finished.all()", "for _ in range(max_len)",
             "    return", "        if finished.all():\n            break\n    return"),
    ],
}

WRONG = {
    "07.shapes": [
        Edit("(3, 8, 6, 6)", "None"),
    ],
    "07.cache": [
        (extend_one_by_one, "one by one"),
        Edit("dim=1)  # (batch", "dim=0)  # (batch"),
        Edit(MASKED, "scores.masked_fill(seen, -math.inf).softmax(dim=-1)"),
        Edit("    keys = torch", "    w_key = w_value[:, : keys.size(-1)]\n    keys = torch"),
    ],
    "07.stacks": [
        (Edit(*OUTPUTS, "x_tgt, x_src)", "x_tgt, outputs[1:][number])"), "encoder layer beside it."),
        Edit(*OUTPUTS, "x_tgt, x_src)", "x_tgt, outputs[-1 - number])"),
        Edit(*OUTPUTS, "x_tgt, x_src)", "x_tgt, sum(outputs[1:]))"),
        Edit(ENCODE.format(" " * 4), "", "        x_tgt", ENCODE.format(" " * 8) + "        x_tgt"),  # again and again
    ],
    "07.decoder_layer": [
        Edit("x = x + self", "x = query + self", "x + cross", "norms[1](x) + cross", "x + feed", "norms[2](x) + feed"),
        Edit("feed_forward(norms[2](x))", CROSS.format(2), CROSS.format(1), "feed_forward(norms[1](x))"),
        Edit("x = x +", "x +="),
    ],
    "07.generate": [
        Edit("ids[:, 1:]", "ids[:, 1:].tolist()"),
        Edit("dim=1)\n    return", "dim=1)[~finished[:, 0]]\n    return"),  # without the rows that are finished
    ],
}


def part(function, number=1):
    """A module that is this function of its first so many inputs."""
    module = nn.Module()
    module.forward = lambda *inputs, **others: function(*inputs[:number])
    return module


def measured():
    """The prediction's shapes, taken from a model of the library."""
    batch = make_batch([([5] * 6 + [EOS_ID], [5] * 5)] * 3)
    with torch.random.fork_rng(), torch.no_grad():
        model = Transformer(ModelConfig(2000, d_model=512, num_heads=8, num_layers=1, d_ff=8)).eval()
        with record_attention(model) as maps:
            logits = model(batch.src, batch.tgt_in)
        cross, memory = maps.cross[0], model.encode(batch.src)
        values = model.decoder.layers[0].cross_attn.keys_values(memory, memory)[1]
    shapes = {"tgt_in": batch.tgt_in, "memory": memory, "logits": logits, "self-attention, weights": maps.decoder[0]}
    shapes |= {"cross-attention, weights": cross, "cross-attention, values": values}
    shapes["cross-attention, context"] = cross @ values
    return {name: tuple(tensor.shape) for name, tensor in shapes.items()}


def library_cache(x, keys, values, w_query, w_key, w_value):
    keys, values = torch.cat([keys, x @ w_key], dim=1), torch.cat([values, x @ w_value], dim=1)
    seen = causal_mask(keys.size(1))[0, :, -x.size(1) :]  # (1, new, past + new)
    return library_attention(x @ w_query, keys, values, seen)[0], keys, values


def library_stacks(x_src, x_tgt, encoder_layers, decoder_layers):
    config = ModelConfig(4, d_model=2, num_heads=1, num_layers=1, d_ff=1, norm_first=False)
    encoder, decoder = Encoder(config), Decoder(config)
    encoder.layers = nn.ModuleList(part(layer) for layer in encoder_layers)
    decoder.layers = nn.ModuleList(part(layer, 2) for layer in decoder_layers)
    return decoder(x_tgt, encoder(x_src))


def library_layer(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    layer = DecoderLayer(x.size(-1), num_heads=1, d_ff=1, dropout=0.0, norm_first=True)
    for attention, given in ((layer.self_attn, self_attn), (layer.cross_attn, cross_attn)):
        attention.keys_values, attention.attend = lambda key, value: (key, value), given
    layer.feed_forward = part(feed_forward)
    for path, norm in zip((layer.self_attn_path, layer.cross_attn_path, layer.feed_forward_path), norms, strict=True):
        path.norm = part(norm)
    return layer(x, memory, tgt_mask, memory_mask)


def library_generate(step, start, eos_id, pad_id, max_len):
    """The library's search with `step` for a model; its memory holds the numbers of the rows that go on."""
    read = []

    def decode(newest, memory, src, cache):
        read.append(torch.full_like(start, pad_id))
        read[-1][memory[:, 0]] = newest
        return step(torch.cat(read, dim=1))[memory[:, 0], -1:]

    model = nn.Module()
    model.config = SimpleNamespace(max_len=max_len, bos_id=int(start[0]), eos_id=eos_id, pad_id=pad_id)
    model.encode = model.generator = nn.Identity()
    model.new_cache, model.decode = list, decode
    found = greedy(model, torch.arange(len(start))[:, None], max_len=max_len)
    rows = [torch.tensor(hypothesis.ids + [eos_id] * hypothesis.finished) for hypothesis in found]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)


# What a solution must agree with.
LIBRARY = {
    "07.shapes": measured(),
    "07.cache": library_cache,
    "07.stacks": library_stacks,
    "07.decoder_layer": library_layer,
    "07.generate": library_generate,
}
