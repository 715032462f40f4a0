"""Answers to assignment 07: differently written right ones, and plausible wrong ones with the hint that they get."""

from types import SimpleNamespace

import torch
from torch import nn

from course_lib.blocks import DecoderLayer
from course_lib.config import ModelConfig
from course_lib.data import make_batch
from course_lib.decoding import greedy
from course_lib.recording import record_attention
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID
from course_lib.transformer import Decoder, Encoder, Transformer


class Part(nn.Module):
    """A function in the place of a module: of its first so many inputs."""

    def __init__(self, function, number=1):
        super().__init__()
        self.function, self.number = function, number

    def forward(self, *inputs, **others):
        return self.function(*inputs[: self.number])


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


def shapes(**changed):
    short = dict(zip(("tgt_in", "memory", "own", "cross", "values", "context", "logits"), SHAPES, strict=True))
    return SHAPES | {short[name]: shape for name, shape in changed.items()}


def measured():
    """The prediction's shapes, taken from a model of the library."""
    batch = make_batch([([5] * 6 + [EOS_ID], [5] * 5)] * 3)
    with torch.random.fork_rng(), torch.no_grad():
        model = Transformer(ModelConfig(2000, d_model=512, num_heads=8, num_layers=1, d_ff=8)).eval()
        with record_attention(model) as maps:
            logits = model(batch.src, batch.tgt_in)
        own, cross, memory = maps.decoder[0], maps.cross[0], model.encode(batch.src)
        values = model.decoder.layers[0].cross_attn.keys_values(memory, memory)[1]
    tensors = (batch.tgt_in, memory, own, cross, values, cross @ values, logits)
    return {name: tuple(tensor.shape) for name, tensor in zip(SHAPES, tensors, strict=True)}


# 07.shift


def shift_by_where(tgt, bos_id, eos_id, pad_id):
    before = torch.cat([tgt.new_full((len(tgt), 1), bos_id), tgt], dim=1)
    after = torch.cat([tgt, tgt.new_full((len(tgt), 1), pad_id)], dim=1)
    return before, torch.where((after == pad_id) & (before != pad_id), eos_id, after)


def shift_by_position(tgt, bos_id, eos_id, pad_id):
    real = tgt.ne(pad_id).sum(dim=1)
    tgt_in = torch.nn.functional.pad(tgt, (1, 0), value=bos_id)
    tgt_out = torch.nn.functional.pad(tgt, (0, 1), value=pad_id)
    tgt_out[torch.arange(len(tgt), device=tgt.device), real] = eos_id
    return tgt_in, tgt_out


def shift_by_roll(tgt, bos_id, eos_id, pad_id):
    tgt_in = tgt.new_full((tgt.size(0), tgt.size(1) + 1), bos_id)
    tgt_in[:, 1:] = tgt
    tgt_out = tgt_in.roll(-1, dims=1)
    tgt_out[:, -1] = pad_id
    position = torch.arange(tgt_out.size(1), device=tgt.device)
    length = (tgt != pad_id).sum(1, keepdim=True)
    return tgt_in, tgt_out.masked_fill(position == length, eos_id)


def shift_of_the_text(tgt, bos_id, eos_id, pad_id):
    read, predicted = [], []
    for row in tgt.tolist():
        ids = [number for number in row if number != pad_id]
        padding = [pad_id] * (len(row) - len(ids))
        read.append([bos_id, *ids, *padding])
        predicted.append([*ids, eos_id, *padding])
    return torch.tensor(read), torch.tensor(predicted)


def shift_ending_late(tgt, bos_id, eos_id, pad_id):
    column = torch.ones_like(tgt[:, :1])
    return torch.cat([bos_id * column, tgt], dim=1), torch.cat([tgt, eos_id * column], dim=1)


def shift_of_a_frame(tgt, bos_id, eos_id, pad_id):
    framed = tgt.new_full((tgt.size(0), tgt.size(1) + 2), pad_id)
    framed[:, 0], framed[:, 1:-1] = bos_id, tgt
    framed.scatter_(1, (tgt != pad_id).sum(1, keepdim=True) + 1, eos_id)
    return framed[:, :-1], framed[:, 1:]


def shift_with(frame, read=slice(0, -1), predict=slice(1, None)):
    """Cuts both from a frame: a list of ids for each row, made of its real ids and its number of pads."""

    def answer(tgt, bos_id, eos_id, pad_id):
        rows = []
        for row in tgt.tolist():
            real = [number for number in row if number != pad_id]
            rows.append(frame(real, bos_id, eos_id, [pad_id] * (len(row) - len(real))))
        framed = torch.tensor(rows)
        return framed[:, read], framed[:, predict]

    return answer


def shift_over_the_last(tgt, bos_id, eos_id, pad_id):
    tgt_in, tgt_out = shift_by_position(tgt, bos_id, pad_id, pad_id)
    return tgt_in, tgt_out.scatter(1, (tgt != pad_id).sum(1, keepdim=True) - 1, eos_id)


def shift_filled_with_zero(tgt, bos_id, eos_id, pad_id):
    column = torch.zeros_like(tgt[:, :1])
    tgt_out = torch.cat([tgt, column], 1).scatter(1, (tgt != pad_id).sum(1, keepdim=True), eos_id)
    return torch.cat([column + bos_id, tgt], 1), tgt_out


def shift_in_place(tgt, bos_id, eos_id, pad_id):
    pair = shift_by_where(tgt, bos_id, eos_id, pad_id)
    tgt[:, 0] = bos_id
    return pair


def library_shift(tgt, bos_id, eos_id, pad_id):
    """With ids moved out of the way of the library's own special ids, and moved back."""
    rows = [[number + 1000 for number in row if number != pad_id] for row in tgt.tolist()]
    batch = make_batch([([EOS_ID], row) for row in rows])
    given = {PAD_ID: pad_id, BOS_ID: bos_id, EOS_ID: eos_id}
    pair = []
    for ids in (batch.tgt_in, batch.tgt_out):
        moved = torch.tensor([[given.get(number, number - 1000) for number in row] for row in ids.tolist()])
        wider = tgt.size(1) + 1 - ids.size(1)  # where every row ends with padding
        pair.append(torch.nn.functional.pad(moved, (0, wider), value=pad_id))
    return tuple(pair)


# 07.stacks


def stacks_by_name(x_src, x_tgt, encoder_layers, decoder_layers):
    memory, hidden = x_src, x_tgt
    for layer in encoder_layers:
        memory = layer(memory)
    for layer in decoder_layers:
        hidden = layer(hidden, memory)
    return hidden


def stacks_by_recursion(x_src, x_tgt, encoder_layers, decoder_layers):
    if encoder_layers:
        return stacks_by_recursion(encoder_layers[0](x_src), x_tgt, encoder_layers[1:], decoder_layers)
    if decoder_layers:
        return stacks_by_recursion(x_src, decoder_layers[0](x_tgt, x_src), [], decoder_layers[1:])
    return x_tgt


class Stacks:
    def encode(self, x, layers):
        return self.encode(layers[0](x), layers[1:]) if layers else x

    def __call__(self, x_src, x_tgt, encoder_layers, decoder_layers):
        memory = self.encode(x_src, encoder_layers)
        for number in range(len(decoder_layers)):
            x_tgt = decoder_layers[number](x_tgt, memory)
        return x_tgt


def stacks_with(memory, heights=lambda encoders, decoders: len(decoders)):
    """Asks for the memory of each decoder layer: from what stands at every height of the encoder."""

    def answer(x_src, x_tgt, encoder_layers, decoder_layers):
        outputs = [x_src]
        for layer in encoder_layers:
            outputs.append(layer(outputs[-1]))
        for number in range(heights(encoder_layers, decoder_layers)):
            x_tgt = decoder_layers[number](x_tgt, memory(outputs, number))
        return x_tgt

    return answer


def stacks_encoding_again(x_src, x_tgt, encoder_layers, decoder_layers):
    for decoder_layer in decoder_layers:
        for encoder_layer in encoder_layers:
            x_src = encoder_layer(x_src)
        x_tgt = decoder_layer(x_tgt, x_src)
    return x_tgt


def library_stacks(x_src, x_tgt, encoder_layers, decoder_layers):
    config = ModelConfig(4, d_model=2, num_heads=1, num_layers=1, d_ff=1, norm_first=False)
    encoder, decoder = Encoder(config), Decoder(config)
    encoder.layers = nn.ModuleList(Part(layer) for layer in encoder_layers)
    decoder.layers = nn.ModuleList(Part(layer, 2) for layer in decoder_layers)
    return decoder(x_tgt, encoder(x_src))


# 07.decoder_layer


def layer_line_by_line(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    y = norms[0](x)
    after_self = torch.add(x, self_attn(y, y, y, tgt_mask))
    after_cross = torch.add(after_self, cross_attn(norms[1](after_self), memory, memory, memory_mask))
    return torch.add(after_cross, feed_forward(norms[2](after_cross)))


def layer_by_paths(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    def look_back(x):
        return self_attn(x, x, x, tgt_mask)

    def look_up(x):
        return cross_attn(x, memory, memory, memory_mask)

    for norm, sublayer in zip(norms, (look_back, look_up, feed_forward), strict=True):
        x = x + sublayer(norm(x))
    return x


class Layer:
    def __call__(self, x, memory, self_attn, cross_attn, feed_forward, norms, *masks):
        x = x + self_attn(*[norms[0](x)] * 3, masks[0])
        x = x + cross_attn(norms[1](x), *[memory] * 2, masks[1])
        return feed_forward(norms[2](x)) + x


def layer_with(own=None, cross=None, order=(0, 1, 2), path=lambda x, norm, sub: x + sub(norm(x), x)):
    """Other self- or cross-attention: a function of attention, normalized x, x, memory and both masks."""
    own = own or (lambda attn, n, x, memory, tgt_mask, memory_mask: attn(n, n, n, tgt_mask))
    cross = cross or (lambda attn, n, x, memory, tgt_mask, memory_mask: attn(n, memory, memory, memory_mask))

    def answer(x, memory, self_attn, cross_attn, feed_forward, norms, *masks):
        sublayers = (
            lambda n, x: own(self_attn, n, x, memory, *masks),
            lambda n, x: cross(cross_attn, n, x, memory, *masks),
            lambda n, x: feed_forward(n),
        )
        for norm, number in zip(norms, order, strict=True):
            x = path(x, norm, sublayers[number])
        return x

    return answer


def memory_normalized(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    x = x + self_attn(norms[0](x), norms[0](x), norms[0](x), tgt_mask)
    x = x + cross_attn(norms[1](x), norms[1](memory), norms[1](memory), memory_mask)
    return x + feed_forward(norms[2](x))


def layer_in_place(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    x += self_attn(norms[0](x), norms[0](x), norms[0](x), tgt_mask)
    x += cross_attn(norms[1](x), memory, memory, memory_mask)
    return x + feed_forward(norms[2](x))


class Attention(Part):
    """An attention function in the place of the library's module."""

    def keys_values(self, key, value):
        return key, value

    def attend(self, *inputs):
        return self.function(*inputs)


def library_layer(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    layer = DecoderLayer(x.size(-1), num_heads=1, d_ff=1, dropout=0.0, norm_first=True)
    layer.self_attn, layer.cross_attn = Attention(self_attn, 4), Attention(cross_attn, 4)
    layer.feed_forward = Part(feed_forward)
    paths = (layer.self_attn_path, layer.cross_attn_path, layer.feed_forward_path)
    for path, norm in zip(paths, norms, strict=True):
        path.norm = Part(norm)
    return layer(x, memory, tgt_mask, memory_mask)


# 07.generate


def writer(position=-1, whole=True, fill=True, stop=all, first=1, more=0, end=None):
    """A right answer in lists, and with other arguments a wrong one."""

    def answer(step, start, eos_id, pad_id, max_len):
        rows, done = start.tolist(), [False] * len(start)
        for _ in range(max_len + more):
            ids = torch.tensor(rows)
            best = step(ids if whole else ids[:, -1:])[:, position].argmax(-1).tolist()
            for number, row in enumerate(rows):
                row.append(pad_id if done[number] and fill else best[number])
                done[number] |= row[-1] == eos_id
            if stop(done):
                break
        written = torch.tensor(rows)[:, first:]
        return written if end is None else end(written, eos_id, pad_id)

    return answer


def into_a_table(step, start, eos_id, pad_id, max_len):
    table = torch.full((len(start), max_len + 1), pad_id)
    table[:, 0] = start[:, 0]
    unfinished = torch.ones(len(start), dtype=torch.bool)
    for length in range(1, max_len + 1):
        newest = step(table[:, :length])[:, length - 1].max(dim=-1).indices
        table[unfinished, length] = newest[unfinished]
        unfinished = unfinished & (table[:, length] != eos_id)
        if not unfinished.any():
            return table[:, 1 : length + 1]
    return table[:, 1:]


def cut_afterwards(step, start, eos_id, pad_id, max_len):
    ids = start
    for _ in range(max_len):
        ids = torch.cat([ids, step(ids)[:, -1].argmax(-1)[:, None]], dim=1)
    written = ids[:, 1:]
    ended = (written == eos_id).cumsum(1) - (written == eos_id).int()  # how many </s> stand before
    written = written.masked_fill(ended > 0, pad_id)
    return written[:, : int((ended == 0).sum(1).max())]


def without_finished_rows(step, start, eos_id, pad_id, max_len):
    ids = start
    for _ in range(max_len):
        ids = torch.cat([ids, step(ids)[:, -1:].argmax(-1)], dim=1)
        ids = ids[ids[:, -1] != eos_id]
        if not len(ids):
            break
    return ids[:, 1:]


class Cached(nn.Module):
    """Looks to the library's search like a model; keeps what was read, and asks `step` for all rows."""

    def __init__(self, step, start, eos_id, pad_id, max_len):
        super().__init__()
        special = dict(bos_id=int(start[0]), eos_id=eos_id, pad_id=pad_id)
        self.config = SimpleNamespace(max_len=max_len, **special)
        self.step, self.ids, self.rows = step, start[:, :0], torch.arange(len(start))
        self.encode = self.generator = lambda tensor: tensor

    def new_cache(self):
        return [self]

    def select(self, rows):
        self.rows = self.rows[rows]

    def decode(self, newest, memory, src, *, cache):
        column = torch.full_like(self.ids[:, :1] if self.ids.numel() else self.ids.new_empty(len(self.ids), 1), 0)
        column[self.rows] = newest
        self.ids = torch.cat([self.ids, column], dim=1)
        return self.step(self.ids)[self.rows, -1:]


def library_generate(step, start, eos_id, pad_id, max_len):
    found = greedy(Cached(step, start, eos_id, pad_id, max_len), start, max_len=max_len)
    rows = [hypothesis.ids + [eos_id] * hypothesis.finished for hypothesis in found]
    longest = max(map(len, rows))
    return torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows])


RIGHT = {
    "07.shapes": [measured(), shapes(), {name: list(shape) for name, shape in SHAPES.items()}],
    "07.shift": [shift_by_where, shift_by_position, shift_by_roll],
    "07.stacks": [stacks_by_name, stacks_by_recursion, Stacks()],
    "07.decoder_layer": [layer_line_by_line, layer_by_paths, Layer(), layer_with()],
    "07.generate": [writer(), into_a_table, cut_afterwards],
}

# What the library makes of the same inputs: proof that the references say what the course says.
LIBRARY = {
    "07.shapes": measured(),
    "07.shift": library_shift,
    "07.stacks": library_stacks,
    "07.decoder_layer": library_layer,
    "07.generate": library_generate,
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "07.shapes": [
        (
            shapes(tgt_in=(3, 5), own=(3, 8, 5, 5), cross=(3, 8, 5, 7), context=(3, 8, 5, 64), logits=(3, 5, 2000)),
            "five tokens",
        ),
        (shapes(cross=(3, 8, 7, 6)), "Whose are the queries"),
        (shapes(values=(3, 8, 6, 64), context=(3, 8, 7, 64)), "other way round"),
        (shapes(values=(3, 8, 7, 512), context=(3, 8, 6, 512)), "how wide is one"),
        (shapes(logits=(3, 2000)), "every target position"),
        (shapes(memory=(3, 512)), None),
        (shapes(tgt_in=(3, 7)), None),
        (shapes(own=None), None),
        (shapes(own=(3, 8, 6, 7)), None),
    ],
    "07.shift": [
        (shift_of_the_text, "one by one"),
        (shift_ending_late, "behind the padding"),
        (shift_of_a_frame, "read as well"),
        (lambda *inputs: tuple(reversed(shift_by_roll(*inputs))), "other way round"),
        (lambda *inputs: (shift_by_roll(*inputs)[1],) * 2, "reads the answers"),
        (shift_with(lambda ids, bos, eos, padding: [bos, *ids, eos, *padding], slice(0, -2), slice(1, -1)), None),
        (shift_with(lambda ids, bos, eos, padding: [*padding, bos, *ids, eos]), None),
        (lambda *inputs: (shift_by_where(*inputs)[0],) * 2, None),
        (lambda *inputs: shift_by_where(*inputs)[1], None),
        (shift_over_the_last, None),
        (shift_filled_with_zero, None),
        (shift_in_place, None),
    ],
    "07.stacks": [
        (stacks_with(lambda outputs, number: outputs[1:][number]), "encoder layer beside it."),
        (
            stacks_with(lambda outputs, number: outputs[number + 1], lambda *layers: min(map(len, layers))),
            "longer stack is cut",
        ),
        (stacks_with(lambda outputs, number: outputs[1]), "first encoder layer"),
        (stacks_with(lambda outputs, number: outputs[0]), "Nothing has encoded"),
        (stacks_with(lambda outputs, number: outputs[-1 - number]), None),
        (stacks_with(lambda outputs, number: sum(outputs[1:])), None),
        (stacks_with(lambda outputs, number: outputs[-1], lambda *layers: 1), None),
        (lambda x_src, x_tgt, encoders, decoders: stacks_by_name(x_src, x_tgt, encoders[-1:], decoders), None),
        (stacks_encoding_again, None),
    ],
    "07.decoder_layer": [
        (layer_with(cross=lambda attn, n, x, memory, _, mask: attn(memory, n, n, mask)), "wrong way round"),
        (layer_with(order=(1, 0, 2)), "before the self-attention"),
        (layer_with(own=lambda attn, n, *rest: attn(n, n, n, None)), "The self-attention gets no mask"),
        (
            layer_with(cross=lambda attn, n, x, memory, *rest: attn(n, memory, memory)),
            "The cross-attention gets no mask",
        ),
        (memory_normalized, "once more"),
        (layer_with(own=lambda attn, n, x, memory, mask, _: attn(n, x, x, mask)), "only the queries"),
        (layer_with(path=lambda x, norm, sub: norm(x + sub(x, x))), "post-norm"),
        (layer_with(path=lambda x, norm, sub: norm(x) + sub(norm(x), x)), None),
        (layer_with(path=lambda x, norm, sub: sub(norm(x), x)), None),
        (layer_with(own=lambda attn, n, x, memory, _, mask: attn(n, n, n, mask)), None),
        (layer_with(cross=lambda attn, n, x, memory, _, mask: attn(n, n, n)), None),
        (layer_with(cross=lambda attn, n, x, memory, _, mask: attn(x, memory, memory, mask)), None),
        (layer_with(order=(0, 2, 1)), None),
        (layer_in_place, None),
    ],
    "07.generate": [
        (writer(position=0), "first position"),
        (writer(whole=False), "newest token alone"),
        (writer(fill=False), "writes on"),
        (writer(stop=any), "one row has written"),
        (writer(stop=lambda done: False), "goes on until max_len"),
        (writer(first=0), "<s> is part"),
        (writer(more=-1), "one token early"),
        (writer(more=1), None),
        (writer(end=lambda written, eos_id, pad_id: written.masked_fill(written == eos_id, pad_id)), None),
        (writer(end=lambda written, eos_id, pad_id: written.masked_fill(written == pad_id, eos_id)), None),
        (writer(end=lambda written, eos_id, pad_id: written.tolist()), None),
        (without_finished_rows, None),
    ],
}
