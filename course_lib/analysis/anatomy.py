"""A Transformer taken apart on paper: each box of the paper's figure 1 with its shapes and counts; needs no torch."""

from dataclasses import dataclass

from course_lib.config import ModelConfig, require

ENCODER, DECODER = "encoder", "decoder"
RELATIVE = {"alibi": ", ALiBi", "rotary": ", rotary"}  # positions that are told in the self-attention
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Station:
    """A box that a sentence pair passes through.

    Args:
        name: unique in a model.
        label: what figure 1 writes into the box.
        stack: "encoder" or "decoder": its column.
        layers: how often the box is there; 0 stands outside the layers, and is there once.
        shapes: name to shape of what goes in, is made and comes out, for one sentence pair: no batch axis.
        parameters: of all its layers together.
        parameter_formula: the count for one layer, as a sum of products; "" where there are none.
        flops: of all its layers, for one forward pass over the pair.
        flop_formula: likewise; matrix products only, as ModelConfig.flop_counts.
        note: what the numbers do not say.
    """

    name: str
    label: str
    stack: str
    layers: int
    shapes: dict[str, Shape]
    parameters: int = 0
    parameter_formula: str = ""
    flops: int = 0
    flop_formula: str = ""
    note: str = ""


def stations(config: ModelConfig, src_len: int, tgt_len: int) -> list[Station]:
    """All boxes in the order in which data flows, the encoder's first.

    Args:
        config: sizes; norm_first, position and tie_weights change the boxes too.
        src_len, tgt_len: tokens of the sentence pair.

    Returns:
        stations whose parameters add up to config.num_parameters, and whose flops to those of config.flop_counts.

    Raises:
        ValueError: if a length is below 1.

    Paper: figure 1.
    """
    for name, length in (("src_len", src_len), ("tgt_len", tgt_len)):
        require(length >= 1, f"{name} must be at least 1, got {length}")
    boxes = _Boxes(config, src_len, tgt_len)
    encoder = [boxes.attention(ENCODER, "self-attention", src_len, src_len), boxes.feed_forward(ENCODER, src_len)]
    decoder = [
        boxes.attention(DECODER, "self-attention", tgt_len, tgt_len),
        boxes.attention(DECODER, "cross-attention", tgt_len, src_len),
        boxes.feed_forward(DECODER, tgt_len),
    ]
    return [
        *boxes.inputs(ENCODER, "source", src_len),
        *boxes.layer(ENCODER, src_len, encoder),
        *boxes.inputs(DECODER, "target", tgt_len),
        *boxes.layer(DECODER, tgt_len, decoder),
        *boxes.outputs(),
    ]


class _Boxes:
    """Makes the stations of one model and one sentence pair."""

    def __init__(self, config: ModelConfig, src_len: int, tgt_len: int):
        self.config, self.tgt_len = config, tgt_len
        self.parameters, self.flops = config.parameter_counts(), config.flop_counts(src_len, tgt_len)
        self.table = config.vocab_size * config.d_model  # the embedding matrix
        self.table_formula = f"{config.vocab_size:,} · {config.d_model:,}"

    def inputs(self, stack: str, side: str, length: int) -> list[Station]:
        config, source = self.config, stack == ENCODER
        shared = config.tie_weights and not source
        ids = Station(
            name=f"{side} ids",
            label="source ids" if source else "target ids, shifted right",
            stack=stack,
            layers=0,
            shapes={"ids": (length,)},
            note="" if source else "<s>, then each token that was predicted",
        )
        embedding = Station(
            name=f"{side} embedding",
            label="embedding × √d_model",
            stack=stack,
            layers=0,
            shapes={"matrix": (config.vocab_size, config.d_model), "out": (length, config.d_model)},
            parameters=0 if shared else self.table,
            parameter_formula="" if shared else self.table_formula,
            note="the same matrix as the source embedding" if shared else "a row is looked up: no matrix product",
        )
        return [ids, embedding, *self.position(stack, side, length)]

    def position(self, stack: str, side: str, length: int) -> list[Station]:
        config = self.config
        if config.position not in ("sinusoidal", "learned"):
            return []  # in the self-attention, or nowhere
        learned, vector = config.position == "learned", (length, config.d_model)
        station = Station(
            name=f"{side} position",
            label=f"+ {config.position} position",
            stack=stack,
            layers=0,
            shapes={"added": vector, "out": vector},
            parameters=config.max_len * config.d_model if learned else 0,
            parameter_formula=f"{config.max_len:,} · {config.d_model:,}" if learned else "",
            note="" if learned else "sines and cosines: nothing to learn",
        )
        return [station]

    def attention(self, stack: str, kind: str, queries: int, keys: int) -> Station:
        name, d_model, heads, d_k = f"{stack} {kind}", self.config.d_model, self.config.num_heads, self.config.d_k
        positions = RELATIVE.get(self.config.position, "") if kind == "self-attention" else ""
        d_v, narrow = d_model // heads, heads * d_k  # narrow: all heads' queries or keys, where key_width is given
        projections = f"4 · ({queries:,} + {keys:,}) · {d_model:,} · {d_model:,}"
        products = f"4 · {queries:,} · {keys:,} · {d_model:,}"
        matrices = f"4 · ({d_model:,} · {d_model:,} + {d_model:,})"
        weights, ones = {"W_Q, W_K, W_V, W_O": (d_model, d_model)}, {"key, value": (heads, keys, d_k)}
        if d_k != d_v:
            projections = f"2 · ({queries:,} + {keys:,}) · {d_model:,} · ({narrow:,} + {d_model:,})"
            products = f"2 · {queries:,} · {keys:,} · ({narrow:,} + {d_model:,})"
            matrices = f"2 · ({d_model:,} · {narrow:,} + {narrow:,}) + 2 · ({d_model:,} · {d_model:,} + {d_model:,})"
            weights = {"W_Q, W_K": (d_model, narrow), "W_V, W_O": (d_model, d_model)}
            ones = {"key": (heads, keys, d_k), "value": (heads, keys, d_v)}
        notes = {
            "encoder self-attention": "the source attends to itself; its padding is masked",
            "decoder self-attention": "the target attends to itself; padding and the future are masked",
            "decoder cross-attention": "the target attends to the memory, the encoder's output; its padding is masked",
        }
        return Station(
            name=name,
            label=("masked " if name == "decoder self-attention" else "") + kind + positions,
            stack=stack,
            layers=self.config.num_layers,
            shapes={
                "in, for queries": (queries, d_model),
                "in, for keys and values": (keys, d_model),
                **weights,
                "query": (heads, queries, d_k),
                **ones,
                "scores, weights": (heads, queries, keys),
                "context": (heads, queries, d_v),
                "out": (queries, d_model),
            },
            parameters=self.parameters[name],
            parameter_formula=matrices,
            flops=self.flops[name],
            flop_formula=f"{projections} + {products}",
            note=notes[name],
        )

    def feed_forward(self, stack: str, length: int) -> Station:
        name, d_model, d_ff = f"{stack} feed-forward", self.config.d_model, self.config.d_ff
        vector = (length, d_model)
        return Station(
            name=name,
            label="feed-forward",
            stack=stack,
            layers=self.config.num_layers,
            shapes={
                "in": vector,
                "W_1": (d_model, d_ff),
                "inside": (length, d_ff),
                "W_2": (d_ff, d_model),
                "out": vector,
            },
            parameters=self.parameters[name],
            parameter_formula=f"{d_model:,} · {d_ff:,} + {d_ff:,} + {d_ff:,} · {d_model:,} + {d_model:,}",
            flops=self.flops[name],
            flop_formula=f"4 · {length:,} · {d_model:,} · {d_ff:,}",
            note="each position alone, with the same two matrices",
        )

    def norm(self, stack: str, length: int, name: str, label: str, layers: int) -> Station:
        vector = (length, self.config.d_model)
        return Station(
            name=name,
            label=label,
            stack=stack,
            layers=layers,
            shapes={"in": vector, "scale, shift": (self.config.d_model,), "out": vector},
            parameters=2 * self.config.d_model * max(1, layers),
            parameter_formula=f"2 · {self.config.d_model:,}",
            note="no matrix product: its FLOPs are few, and not counted",
        )

    def layer(self, stack: str, length: int, sublayers: list[Station]) -> list[Station]:
        """Sub-layers and their norms in order, and the final norm of a pre-norm stack."""
        config, found = self.config, []
        for each in sublayers:
            label = "norm" if config.norm_first else "add & norm"
            pair = [each, self.norm(stack, length, f"{each.name} norm", label, config.num_layers)]
            found += reversed(pair) if config.norm_first else pair
        return found + [self.norm(stack, length, f"{stack} final norm", "final norm", 0)] * config.norm_first

    def outputs(self) -> list[Station]:
        d_model, vocab, shared = self.config.d_model, self.config.vocab_size, self.config.tie_weights
        logits = (self.tgt_len, vocab)
        generator = Station(
            name="generator",
            label="generator",
            stack=DECODER,
            layers=0,
            shapes={"in": (self.tgt_len, d_model), "matrix": (d_model, vocab), "logits": logits},
            parameters=0 if shared else self.table,
            parameter_formula="" if shared else self.table_formula,
            flops=self.flops["generator"],
            flop_formula=f"2 · {self.tgt_len:,} · {d_model:,} · {vocab:,}",
            note="the same matrix as the source embedding, transposed" if shared else "",
        )
        return [generator, Station("softmax", "softmax", DECODER, 0, {"logits": logits, "probabilities": logits})]
