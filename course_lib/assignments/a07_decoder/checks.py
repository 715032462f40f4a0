"""Assignment 07: what the decoder reads and predicts, its layer, its memory, and writing one token at a time."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

# 07.shapes

SHAPES = {
    "tgt_in": (3, 6),
    "memory": (3, 7, 512),
    "self-attention, weights": (3, 8, 6, 6),
    "cross-attention, weights": (3, 8, 6, 7),
    "cross-attention, values": (3, 8, 7, 64),
    "cross-attention, context": (3, 8, 6, 64),
    "logits": (3, 6, 2000),
}

PREDICTION = Exercise(
    "07.shapes",
    SHAPES,
    variants=(
        Variant(
            {name: tuple(5 if size == 6 else size for size in shape) for name, shape in SHAPES.items()},
            "There are five tokens, and the decoder reads one more: <s> stands in front of them.",
        ),
        Variant(
            SHAPES | {"cross-attention, weights": (3, 8, 7, 6)},
            "Weights have a row for each query and a column for each key. Whose are the queries?",
        ),
        Variant(
            SHAPES | {"cross-attention, values": (3, 8, 6, 64), "cross-attention, context": (3, 8, 7, 64)},
            "Values and context are the other way round: values come from the memory, a context belongs to a query.",
        ),
        Variant(
            SHAPES | {"cross-attention, values": (3, 8, 7, 512), "cross-attention, context": (3, 8, 6, 512)},
            "All heads together are 512 wide; how wide is one?",
        ),
        Variant(SHAPES | {"logits": (3, 2000)}, "In training every target position predicts, not only the last one."),
    ),
    ask=value,
)


# 07.shift


def shift(tgt: Tensor, bos_id: int, eos_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    """What the decoder reads and what it predicts, one position at a time."""
    tgt_in = torch.cat([torch.full_like(tgt[:, :1], bos_id), tgt], dim=1)
    tgt_out = torch.cat([tgt, torch.full_like(tgt[:, :1], pad_id)], dim=1)
    for sentence in range(tgt.size(0)):
        for position in range(tgt.size(1) + 1):
            read, predicted = tgt_in[sentence, position], tgt_out[sentence, position]
            ends = (read != pad_id) & (predicted == pad_id)
            tgt_out[sentence, position] = torch.where(ends, eos_id, predicted)
    return tgt_in, tgt_out


def _targets(generator: torch.Generator) -> list[tuple]:
    """Lengths of the sentences, width of the batch, and the ids of <s>, </s> and <pad>."""
    cases = []
    for lengths, width, special in (
        ([4], 4, (1, 2, 0)),
        ([3, 1, 5], 5, (1, 2, 0)),
        ([1], 1, (2, 0, 3)),
        ([4, 2, 3], 6, (0, 3, 1)),
        ([3, 5, 2, 5], 5, (3, 1, 2)),
    ):
        tgt = torch.randint(4, 100, (len(lengths), width), generator=generator)
        for row, length in zip(tgt, lengths, strict=True):
            row[length:] = special[2]
        cases.append((tgt, *special))
    return cases


def _end_is_read(tgt: Tensor, bos_id: int, eos_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    tgt_in, tgt_out = shift(tgt, bos_id, eos_id, pad_id)
    return torch.cat([tgt_in[:, :1], tgt_out[:, :-1]], dim=1), tgt_out


def _ends_late(tgt: Tensor, bos_id: int, eos_id: int, pad_id: int) -> tuple[Tensor, Tensor]:
    framed = F.pad(F.pad(tgt, (1, 0), value=bos_id), (0, 1), value=eos_id)
    return framed[:, :-1], framed[:, 1:]


SHIFT = Exercise(
    "07.shift",
    shift,
    _targets,
    (
        Variant(_ends_late, "</s> stands behind the padding; it belongs directly behind its sentence."),
        Variant(_end_is_read, "In the shorter sentences </s> is read as well. It is only ever predicted."),
        Variant(lambda *inputs: shift(*inputs)[::-1], "What is read and what is predicted are the other way round."),
        Variant(
            lambda *inputs: (shift(*inputs)[1], shift(*inputs)[1]),
            "The decoder reads the answers here: tgt_in and tgt_out are the same.",
        ),
    ),
    loops=False,
)


# 07.stacks


def stacks(x_src: Tensor, x_tgt: Tensor, encoder_layers: list, decoder_layers: list) -> Tensor:
    """The decoder's output: every decoder layer gets what the last encoder layer has written."""
    memory = x_src
    for encoder_layer in encoder_layers:
        memory = encoder_layer(memory)
    for decoder_layer in decoder_layers:
        x_tgt = decoder_layer(x_tgt, memory)
    return x_tgt


def _ask_stacks(answer, x_src, x_tgt, encoder_weights, decoder_weights):
    def encoder_layer(weight):
        return lambda x: torch.tanh((x + x.mean(dim=1, keepdim=True)) @ weight)

    def decoder_layer(weight):
        return lambda x, memory: torch.tanh(x @ weight + (x @ memory.mT).softmax(dim=-1) @ memory)

    encoder_layers = [encoder_layer(weight) for weight in encoder_weights]
    return answer(x_src, x_tgt, encoder_layers, [decoder_layer(weight) for weight in decoder_weights])


def _stack_cases(generator: torch.Generator) -> list[tuple]:
    cases = []
    for batch, src_len, tgt_len, heights in ((1, 3, 3, (2, 2)), (3, 2, 4, (1, 3)), (2, 5, 1, (4, 2))):
        x_src, x_tgt = (torch.randn(batch, length, 4, generator=generator) for length in (src_len, tgt_len))
        weights = ([torch.randn(4, 4, generator=generator) for _ in range(height)] for height in heights)
        cases.append((x_src, x_tgt, *weights))
    return cases


def _beside(x_src: Tensor, x_tgt: Tensor, encoder_layers: list, decoder_layers: list, *, strict: bool = True) -> Tensor:
    for encoder_layer, decoder_layer in zip(encoder_layers, decoder_layers, strict=strict):
        x_src = encoder_layer(x_src)
        x_tgt = decoder_layer(x_tgt, x_src)
    return x_tgt


STACKS = Exercise(
    "07.stacks",
    stacks,
    _stack_cases,
    (
        Variant(_beside, "Each decoder layer still gets its memory from the encoder layer beside it."),
        Variant(
            lambda *inputs: _beside(*inputs, strict=False),
            "Each decoder layer still gets its memory from the encoder layer beside it, and the longer stack is cut.",
        ),
        Variant(
            lambda *inputs: stacks(*inputs[:2], inputs[2][:1], inputs[3]),
            "All decoder layers get the same here, but it comes from the first encoder layer.",
        ),
        Variant(lambda *inputs: stacks(*inputs[:2], [], inputs[3]), "Nothing has encoded what the decoder gets."),
    ),
    ask=_ask_stacks,
)


# 07.decoder_layer


def decoder_layer(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask) -> Tensor:
    """One pre-norm decoder layer; everything in it that has weights is given as a function."""
    normed = norms[0](x)
    x = x + self_attn(normed, normed, normed, tgt_mask)
    normed = norms[1](x)
    x = x + cross_attn(normed, memory, memory, memory_mask)
    return x + feed_forward(norms[2](x))


def _ask_decoder_layer(answer, x, memory, tgt_mask, memory_mask, self_weights, cross_weights, scales):
    def attention(to_query, to_key, to_value):
        def attend(query, key, value, mask=None):  # one head; the mask has a dimension for heads all the same
            heads = (x.unsqueeze(1) for x in (query @ to_query, key @ to_key, value @ to_value))
            return F.scaled_dot_product_attention(*heads, attn_mask=mask).squeeze(1)

        return attend

    def norm(scale):
        return lambda x: F.layer_norm(x, scale.shape, scale)

    functions = attention(*self_weights), attention(*cross_weights), torch.relu, tuple(map(norm, scales))
    return answer(x, memory, *functions, tgt_mask, memory_mask)


def _layer_cases(generator: torch.Generator) -> list[tuple]:
    """The first case has equal lengths, so that queries, keys and masks of the wrong side fit there."""

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    cases = []
    for batch, tgt_len, src_len, d_model in ((2, 4, 4, 6), (1, 3, 5, 4), (3, 1, 4, 6), (2, 5, 3, 8)):
        tgt_mask = torch.ones(tgt_len, tgt_len, dtype=torch.bool).tril().repeat(batch, 1, 1, 1)
        memory_mask = torch.ones(batch, 1, 1, src_len, dtype=torch.bool)
        memory_mask[0, ..., -1] = False
        tgt_mask[0, ..., 1:, -1] = False  # in the first sentence both sides end with padding
        x, memory = random(batch, tgt_len, d_model), random(batch, src_len, d_model)
        weights = (random(3, d_model, d_model) / 2 for _ in range(2))
        cases.append((x, memory, tgt_mask, memory_mask, *weights, 1 + random(3, d_model) / 3))
    return cases


def _cross_first(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask) -> Tensor:
    x = x + cross_attn(norms[0](x), memory, memory, memory_mask)
    normed = norms[1](x)
    x = x + self_attn(normed, normed, normed, tgt_mask)
    return x + feed_forward(norms[2](x))


def _post_norm(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask) -> Tensor:
    x = norms[0](x + self_attn(x, x, x, tgt_mask))
    x = norms[1](x + cross_attn(x, memory, memory, memory_mask))
    return norms[2](x + feed_forward(x))


def _raw_keys(x, memory, self_attn, *rest) -> Tensor:
    return decoder_layer(x, memory, lambda query, key, value, mask: self_attn(query, x, x, mask), *rest)


def _asked_by_memory(x, memory, self_attn, cross_attn, *rest) -> Tensor:
    def turned(query, key, value, mask):
        return cross_attn(key, query, query, mask)

    return decoder_layer(x, memory, self_attn, turned, *rest)


DECODER_LAYER = Exercise(
    "07.decoder_layer",
    decoder_layer,
    _layer_cases,
    (
        Variant(_asked_by_memory, "The cross-attention asks the wrong way round: its queries come from the memory."),
        Variant(_cross_first, "The cross-attention comes before the self-attention here."),
        Variant(lambda *inputs: decoder_layer(*inputs[:6], None, inputs[7]), "The self-attention gets no mask."),
        Variant(lambda *inputs: decoder_layer(*inputs[:7], None), "The cross-attention gets no mask."),
        Variant(
            lambda x, memory, *rest: decoder_layer(x, rest[3][1](memory), *rest),
            "The memory is normalized once more here. The norms of this layer are for x.",
        ),
        Variant(_raw_keys, "In the self-attention only the queries are normalized; its keys and values are not."),
        Variant(_post_norm, "This is post-norm: the norms come after the sums."),
    ),
    ask=_ask_decoder_layer,
)


# 07.generate


def generate(step: Callable, start: Tensor, eos_id: int, pad_id: int, max_len: int) -> Tensor:
    """Greedy output of each row, one row and one token at a time."""
    tgt_in, finished = start, [False] * start.size(0)
    while not all(finished) and tgt_in.size(1) <= max_len:
        logits = step(tgt_in)
        newest = start.clone()
        for row in range(start.size(0)):
            newest[row] = pad_id if finished[row] else logits[row, -1].argmax()
            finished[row] = finished[row] or int(newest[row]) == eos_id
        tgt_in = torch.cat([tgt_in, newest], dim=1)
    return tgt_in[:, 1:]


def _ask_generate(answer, table, source, ends, bos_id, eos_id, pad_id, max_len):
    def step(tgt_in):
        """A decoder without layers: it reads all tokens so far, their order, and the row's source."""
        rows, length = tgt_in.shape
        if rows != len(ends):
            raise ValueError(f"step expects all {len(ends)} rows, got {rows}")
        turn = torch.tensor([1.0, -1.5, 0.5], dtype=table.dtype).repeat(length)[:length, None]
        logits = source[:, None] + (turn * table[tgt_in]).cumsum(dim=1)  # (batch, tgt_len, vocab)
        logits[..., [bos_id, pad_id, eos_id]] = -100.0
        last = torch.arange(1, length + 1) == ends[:, None]  # where a row predicts </s>
        logits[..., eos_id] += 200.0 * last
        return logits

    start = torch.full((len(ends), 1), bos_id)
    return answer(step, start, eos_id, pad_id, max_len)


def _generate_cases(generator: torch.Generator) -> list[tuple]:
    """How many tokens each row writes, </s> among them, and the most that it may write."""
    cases = []
    for ends, max_len, special in (
        ([4], 9, (1, 2, 0)),
        ([2, 5, 3], 8, (1, 2, 0)),
        ([9, 3], 6, (0, 1, 2)),
        ([1, 1], 5, (2, 0, 3)),
        ([3, 7, 2, 4], 7, (0, 3, 1)),
        ([6, 7], 3, (1, 2, 0)),
    ):
        table = torch.randn(12, 12, generator=generator)
        source = torch.randn(len(ends), 12, generator=generator)
        cases.append((table, source, torch.tensor(ends), *special, max_len))
    return cases


def _generate(step, start, eos_id, pad_id, max_len, *, look=-1, read=0, stop=torch.all, fill=True, keep=1) -> Tensor:
    tgt_in, finished = start, torch.zeros_like(start, dtype=torch.bool)
    for _ in range(max_len):
        newest = step(tgt_in[:, read:])[:, look].argmax(dim=-1, keepdim=True)
        newest = newest.masked_fill(finished, pad_id) if fill else newest
        finished = finished | (newest == eos_id)
        tgt_in = torch.cat([tgt_in, newest], dim=1)
        if stop(finished):
            break
    return tgt_in[:, keep:]


GENERATE = Exercise(
    "07.generate",
    generate,
    _generate_cases,
    (
        Variant(
            lambda *inputs: _generate(*inputs, look=0),
            "The next token is read off at the first position, which predicts the first token again and again.",
        ),
        Variant(
            lambda *inputs: _generate(*inputs, read=-1),
            "`step` gets the newest token alone. The decoder reads all tokens so far.",
        ),
        Variant(lambda *inputs: _generate(*inputs, fill=False), "A row that has written </s> writes on."),
        Variant(
            lambda *inputs: _generate(*inputs, stop=torch.any),
            "It stops as soon as one row has written </s>; the others are not done.",
        ),
        Variant(
            lambda *inputs: _generate(*inputs, stop=lambda finished: False),
            "All rows have written </s>, and it goes on until max_len.",
        ),
        Variant(lambda *inputs: _generate(*inputs, keep=0), "<s> is part of the result. It is read, never written."),
        Variant(
            lambda *inputs: generate(*inputs[:-1], inputs[-1] - 1),
            "It stops one token early: `max_len` counts what is written, and <s> is not written.",
        ),
    ),
    ask=_ask_generate,
    any_device=False,  # how many steps it takes depends on the numbers
)

EXERCISES = (PREDICTION, SHIFT, STACKS, DECODER_LAYER, GENERATE)
