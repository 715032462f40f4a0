"""Checks of assignment 07: attention with a cache, the decoder's layer, its memory, and writing token by token."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.checks import PLANTED, Edit, Exercise, value

BEHIND = "torch.cat([keys, x @ w_key], dim=1)"
MASKED, NO_MASK = "scores.masked_fill(~seen, -math.inf).softmax(dim=-1)", "scores.softmax(dim=-1)"
CROSS = "    x = x + cross_attn(norms[{}](x), memory, memory, memory_mask)\n"


def positions_and_cache(generator):
    """One new position and several, with nothing kept so far and with a longer past; all widths differ."""
    cases, shapes = [], ((1, 3, 1, 4, 2, 3), (2, 0, 1, 3, 4, 2), (2, 2, 3, 6, 4, 5), (3, 0, 4, 5, 3, 4))
    for batch, past, new, d_model, d_k, d_v in shapes:
        sizes = (new, d_model), (past, d_k), (past, d_v)
        x, keys, values = (torch.randn(batch, *size, generator=generator) for size in sizes)
        weights = (torch.randn(d_model, width, generator=generator) for width in (d_k, d_k, d_v))
        cases.append((x, keys, values, *weights))
    return cases


def weights_of_stacks(generator):
    """Two embedded sentences, and a matrix for each layer of encoder and decoder, which differ in height."""
    cases = []
    for batch, src_len, tgt_len, heights in ((1, 3, 3, (2, 2)), (3, 2, 4, (1, 3)), (2, 5, 1, (4, 2))):
        x_src, x_tgt = (torch.randn(batch, length, 4, generator=generator) for length in (src_len, tgt_len))
        weights = ([torch.randn(4, 4, generator=generator) for _ in range(height)] for height in heights)
        cases.append((x_src, x_tgt, *weights))
    return cases


def output_of_stacks(answer, x_src, x_tgt, encoder_weights, decoder_weights):
    """What the answer writes with stand-ins for layers that have these matrices."""

    def encoder_layer(weight):
        return lambda x: torch.tanh((x + x.mean(dim=1, keepdim=True)) @ weight)

    def decoder_layer(weight):
        return lambda x, memory: torch.tanh(x @ weight + (x @ memory.mT).softmax(dim=-1) @ memory)

    return answer(x_src, x_tgt, [*map(encoder_layer, encoder_weights)], [*map(decoder_layer, decoder_weights)])


def masks_and_weights(generator):
    """The first case has equal lengths, so that queries, keys and masks of the wrong side fit there."""
    random = partial(torch.randn, generator=generator)
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


def output_of_layer(answer, x, memory, tgt_mask, memory_mask, self_weights, cross_weights, scales):
    """The output of the layer that the answer makes of stand-ins with these weights."""

    def attention(to_query, to_key, to_value):
        def attend(query, key, value, mask=None):  # one head; the mask has a dimension for heads all the same
            heads = (x.unsqueeze(1) for x in (query @ to_query, key @ to_key, value @ to_value))
            return F.scaled_dot_product_attention(*heads, attn_mask=mask).squeeze(1)

        return attend

    norms = tuple(partial(F.layer_norm, normalized_shape=scale.shape, weight=scale) for scale in scales)
    functions = attention(*self_weights), attention(*cross_weights), torch.relu, norms
    return answer(x, memory, *functions, tgt_mask, memory_mask)


def tables_and_lengths(generator):
    """What a stand-in for a decoder reads, how many tokens each row writes, </s> among them, and at most."""
    cases = []
    ids = ((1, 2, 0), (1, 2, 0), (0, 1, 2), (2, 0, 3), (0, 3, 1), (1, 2, 0))
    limits = ([4], 9), ([2, 5, 3], 8), ([9, 3], 6), ([1, 1], 5), ([3, 7, 2, 4], 7), ([6, 7], 3)
    for (ends, max_len), special in zip(limits, ids, strict=True):
        table = torch.randn(12, 12, generator=generator)
        source = torch.randn(len(ends), 12, generator=generator)
        cases.append((table, source, torch.tensor(ends), *special, max_len))
    return cases


def written(answer, table, source, ends, bos_id, eos_id, pad_id, max_len):
    """What the answer writes with a decoder without layers: it reads all tokens so far, their order, its source."""

    def step(tgt_in):
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


EXERCISES = (
    Exercise(
        "07.shapes",
        mistakes={
            "There are five tokens, and the decoder reads one more: <s> stands in front of them.":
                Edit("6,", "5,", "6)", "5)"),
            "Weights have a row for each query and a column for each key. Whose are the queries?":
                Edit("6, 7)", "7, 6)"),
            "Values and context are the other way round: values come from the memory, a context belongs to a query.":
                Edit('values": (3, 8, 7', 'values": (3, 8, 6', 'context": (3, 8, 6', 'context": (3, 8, 7'),
            "All heads together are 512 wide; how wide is one?": Edit("64)", "512)"),
            "In training every target position predicts, not only the last one.": Edit("6, 2000", "2000"),
            "The memory has one vector for each source token.": Edit("7, 512", "512"),
            "The decoder reads the target, not the source.": Edit("(3, 6)", "(3, 7)"),
            "In self-attention the keys are the target's, as the queries are.": Edit("6, 6)", "6, 7)"),
        },
        ask=value,
    ),
    Exercise(
        "07.cache",
        positions_and_cache,
        {
            "The mask counts from the first key. The first new position stands behind all that was kept.":
                Edit("place[past:, None]", "place[: x.size(1), None]"),
            "A new position sees those after it: they must not see each other's future.": Edit(MASKED, NO_MASK),
            "The new positions see each other, and nothing that was kept.":
                Edit("place <= place[past:, None]", "(place <= place[past:, None]) & (place >= past)"),
            "The new positions see what was kept, and each itself, but not the new ones before it.":
                Edit("place <= place[past:, None]", "(place < past) | (place == place[past:, None])"),
            "The new keys stand before the old ones, and the values behind: no value belongs to its key.":
                Edit(BEHIND, "torch.cat([x @ w_key, keys], dim=1)"),
            "What you return is the cache as it came. The next step needs the new keys and values as well.":
                Edit("values, keys, values", "values, keys[:, :past], values[:, :past]"),
            "You return the keys and values of the new positions alone; the next step needs all of them.":
                Edit("values, keys, values", "values, keys[:, past:], values[:, past:]"),
            "The scores are not divided by √d_k.": Edit(" / math.sqrt(keys.size(-1))", ""),
            "The scores are divided by the root of the model's width; d_k is that of a key.":
                Edit("math.sqrt(keys", "math.sqrt(x"),
            "Only the newest position gets a context. There is one for each new position.":
                Edit("return weights @", "return weights[:, -1:] @"),
            "What is hidden is hidden after the softmax, so its share is lost. Hide it before.":
                Edit(MASKED, f"{NO_MASK} * seen"),
            "Keys and values are returned in the other order.": Edit("values, keys, values", "values, values, keys"),
            "Three tensors are asked for: contexts, keys, values.": Edit("@ values, keys, values", "@ values, [keys]"),
            "A hidden score of 0 is a score like any other. It has to be −∞.": Edit("-math.inf", "0.0"),
        },
        loops=False,
    ),
    Exercise(
        "07.stacks",
        weights_of_stacks,
        {
            "Each decoder layer still gets its memory from the encoder layer beside it.": PLANTED,
            "Each decoder layer still gets its memory from the encoder layer beside it, and the longer stack is cut.":
                Edit("    for decoder_layer in decoder_layers:\n", "",
                     "er_layer in encoder_layers", "er_layer, decoder_layer in zip(encoder_layers, decoder_layers)"),
            "All decoder layers get the same here, but it comes from the first encoder layer.":
                Edit("in encoder_layers", "in encoder_layers[:1]"),
            "Nothing has encoded what the decoder gets.": Edit("in encoder_layers", "in []"),
            "Only the first decoder layer is there.": Edit("in decoder_layers", "in decoder_layers[:1]"),
            "Only the last encoder layer has worked on the memory. They all do, one after another.":
                Edit("in encoder_layers", "in encoder_layers[-1:]"),
        },
        ask=output_of_stacks,
    ),
    Exercise(
        "07.decoder_layer",
        masks_and_weights,
        {
            "The cross-attention asks the wrong way round: its queries come from the memory.":
                Edit("norms[1](x), memory, memory", "memory, norms[1](x), norms[1](x)"),
            "The cross-attention comes before the self-attention here.":
                Edit(CROSS.format(1), "", "    query = norms[0](x)\n", CROSS.format(0) + "    query = norms[1](x)\n"),
            "The self-attention gets no mask.": Edit("query, tgt_mask", "query, None"),
            "The cross-attention gets no mask.": Edit("memory, memory_mask", "memory, None"),
            "The memory is normalized once more here. The norms of this layer are for x.":
                Edit("memory, memory, ", "norms[1](memory), norms[1](memory), "),
            "In the self-attention only the queries are normalized; its keys and values are not.":
                Edit("query, query, query", "query, x, x"),
            "This is post-norm: the norms come after the sums.":
                Edit("= norms[0](x)", "= x", CROSS.format(1), "    x = norms[0](x)\n" + CROSS.format(1),
                     "norms[1](x), memory", "x, memory", "return x", "x = norms[1](x)\n    return norms[2](x",
                     "norms[2](x))", "x))"),
            "The residuals are missing: each sub-layer's output is added to x.": Edit("x + ", ""),
            "The self-attention has the memory's mask; it is the other one.":
                Edit("query, tgt_mask", "query, memory_mask"),
            "The two masks are exchanged.":
                Edit("query, tgt_mask", "query, memory_mask", "memory, memory_mask", "memory, tgt_mask"),
            "The second attention looks at the target once more; its keys and values are the memory.":
                Edit("norms[1](x), memory, memory, memory_mask", "*[norms[1](x)] * 3"),
            "The queries of the cross-attention are not normalized.": Edit("norms[1](x), memory", "x, memory"),
        },
        ask=output_of_layer,
    ),
    Exercise(
        "07.generate",
        tables_and_lengths,
        {
            "The next token is read off at the first position, which predicts the first token again and again.":
                Edit("[:, -1:]", "[:, :1]"),
            "`step` gets the newest token alone. The decoder reads all tokens so far.":
                Edit("step(ids)", "step(ids[:, -1:])"),
            "A row that has written </s> writes on.": Edit(".masked_fill(finished, pad_id)", ""),
            "It stops as soon as one row has written </s>; the others are not done.":
                Edit("finished.all()", "finished.any()"),
            "All rows have written </s>, and it goes on until max_len.": Edit(" and not finished.all()", ""),
            "<s> is part of the result. It is read, never written.": Edit("ids[:, 1:]", "ids"),
            "It stops one token early: `max_len` counts what is written, and <s> is not written.":
                Edit("<= max_len", "< max_len"),
            "It writes one token more than max_len.": Edit("<= max_len", "<= max_len + 1"),
            "The </s> itself is missing: it is written, and padding begins after it.":
                Edit("ids[:, 1:]", "ids[:, 1:].masked_fill(ids[:, 1:] == eos_id, pad_id)"),
            "After the first </s> more of them are written. Fill up with pad_id.":
                Edit("ids[:, 1:]", "ids[:, 1:].masked_fill(ids[:, 1:] == pad_id, eos_id)"),
        },
        ask=written,
        any_device=False,  # how many steps it takes depends on the numbers
    ),
)
