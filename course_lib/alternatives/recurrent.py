"""The recurrent baseline: an encoder and a decoder of LSTM or GRU cells with attention, called like the Transformer."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from course_lib.alternatives.shared import (
    backward_order,
    check_together,
    fields_like,
    nearest,
    real_tokens,
    reordered,
    tie_embeddings,
    widths_below,
)
from course_lib.attention import attention
from course_lib.blocks import Dropout
from course_lib.config import ModelConfig, check_shared, from_values, require
from course_lib.masks import padding_mask
from course_lib.transformer import Embedding

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}
GATES = {"lstm": 4, "gru": 3}  # matrices for the input, and again for the state


@dataclass(frozen=True)
class RecurrentConfig:
    """All sizes of an AttentiveRNN; names as in ModelConfig.

    Args:
        vocab_size: number of subwords, shared by source and target.
        cell: "lstm", or "gru": one gate and one state less.
        d_model: width of the embedded tokens and of the output.
        d_hidden: width of the decoder's state; each direction of the encoder has half of it.
        num_layers: layers in the encoder, and again in the decoder.
        dropout: probability, on the embedded input, between layers, and on the output.
        max_len: most tokens of an output; inputs may have any length.
        pad_id, bos_id, eos_id, unk_id: ids of the four special tokens.

    Raises:
        ValueError: on a value with which no model can be built.
    """

    vocab_size: int
    cell: str = "lstm"
    d_model: int = 512
    d_hidden: int = 1024
    num_layers: int = 1
    dropout: float = 0.1
    max_len: int = 512
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    unk_id: int = 3

    def __post_init__(self):
        check_shared(self, sizes=("vocab_size", "d_model", "num_layers", "max_len"))
        require(self.cell in CELLS, f"cell must be one of {', '.join(CELLS)}, got {self.cell!r}")
        require(
            isinstance(self.d_hidden, int) and self.d_hidden >= 2 and self.d_hidden % 2 == 0,
            f"d_hidden must be an even int, two directions share it, got {self.d_hidden!r}",
        )

    @property
    def architecture(self) -> str:
        """Its name among ARCHITECTURES."""
        return self.cell

    @property
    def position(self) -> str:
        """What is added to the embedded tokens: "none", the recurrence reads them in order."""
        return "none"

    def parameter_counts(self) -> dict[str, int]:
        """Trainable parameters by component, in closed form; `sum(...values())` is the whole model."""

        def cells(d_in, d_out):
            return GATES[self.cell] * d_out * (d_in + d_out + 2)  # of each gate two matrices and torch's two biases

        d_model, d_hidden, half, upper = self.d_model, self.d_hidden, self.d_hidden // 2, self.num_layers - 1
        return {
            "embeddings": self.vocab_size * d_model,
            "encoder": 2 * (cells(d_model, half) + upper * cells(d_hidden, half)),
            "first state": (half + 1) * self.num_layers * d_hidden,
            "decoder": cells(d_model, d_hidden) + upper * cells(d_hidden, d_hidden),
            "attention": d_hidden * d_hidden,
            "output": 2 * d_hidden * d_model,
        }

    @property
    def num_parameters(self) -> int:
        """All trainable parameters."""
        return sum(self.parameter_counts().values())

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "RecurrentConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, {"cell": "lstm"} | values)  # the first edition's files do not name it


def recurrent_like(config: ModelConfig, **changes) -> RecurrentConfig:
    """The LSTM, or GRU, of one layer that is most nearly as large as a Transformer, with its vocabulary and d_model.

    Args:
        config: the Transformer's.
        changes: fields of RecurrentConfig, but for d_hidden, which follows from the number of parameters.
    """
    shared = fields_like(config, RecurrentConfig) | {"num_layers": 1} | changes
    widths = widths_below(config, 2)  # a recurrent model has more than d_hidden² parameters
    return nearest((RecurrentConfig(**shared, d_hidden=width) for width in widths), config.num_parameters)


class Bidirectional(nn.Module):
    """Reads each sentence from both ends, so that a token's output knows what is before it and what is after it.

    Equal to torch's bidirectional layer on packed sequences, but in two runs over padded ones: faster on a CPU.

    Args:
        d_in: width of the input.
        d_hidden: width of the output; each direction makes half of it.
        cell: as in RecurrentConfig.

    Paper: Bahdanau et al. 2015, section 3.2, with LSTM or GRU cells.
    """

    def __init__(self, d_in: int, d_hidden: int, cell: str = "lstm"):
        super().__init__()
        self.from_left = CELLS[cell](d_in, d_hidden // 2, batch_first=True)
        self.from_right = CELLS[cell](d_in, d_hidden // 2, batch_first=True)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (batch, length, d_in) and the tokens' `backward_order` (batch, length), to (batch, length, d_hidden)."""
        left, _ = self.from_left(x)  # (batch, length, d_hidden / 2)
        right, _ = self.from_right(reordered(x, order))  # (batch, length, d_hidden / 2), the last token first
        return torch.cat([left, reordered(right, order)], dim=-1)


@dataclass
class RecurrentCache:
    """What the decoder keeps, however many steps: its state (num_layers, batch, d_hidden), and of an LSTM its cells."""

    state: Tensor | None = None
    cells: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        """Keeps the given batch rows, in the given order, repeats allowed (beam search)."""
        self.state = self.state.index_select(1, rows)
        self.cells = None if self.cells is None else self.cells.index_select(1, rows)


class AttentiveRNN(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token, by recurrence and attention.

    Args:
        config: all sizes; see RecurrentConfig.

    Paper: Luong et al. 2015, sections 3 and 3.1: global attention with the "general" score, without the input feeding
    of section 3.3, so that no state waits for the attention and torch's kernel computes all of them in one call. From
    Bahdanau et al. 2015 come the encoder and the decoder's first state (appendix A.2.2). Ours: scores are divided by
    √d_hidden, and the output has width d_model, so that the generator can be tied to the embeddings.
    """

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        d_model, d_hidden, num_layers = config.d_model, config.d_hidden, config.num_layers
        self.src_embedding = Embedding(config)
        self.tgt_embedding = Embedding(config)
        d_ins = [d_model] + [d_hidden] * (num_layers - 1)
        self.encoder = nn.ModuleList(Bidirectional(d_in, d_hidden, config.cell) for d_in in d_ins)
        self.first_state = nn.Linear(d_hidden // 2, num_layers * d_hidden)
        between = config.dropout if num_layers > 1 else 0.0  # torch warns where there is no "between layers"
        self.decoder = CELLS[config.cell](d_model, d_hidden, num_layers, batch_first=True, dropout=between)
        self.query_proj = nn.Linear(d_hidden, d_hidden, bias=False)
        self.output_proj = nn.Linear(2 * d_hidden, d_model, bias=False)
        self.dropout = Dropout(config.dropout)
        self.generator = nn.Linear(d_model, config.vocab_size, bias=False)
        self._initialize()
        tie_embeddings(self)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits (batch, tgt_len, vocab) of every target position, as Transformer.forward."""
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Source ids (batch, src_len), padded at the end only, to the memory (batch, src_len, d_hidden)."""
        order, x = backward_order(real_tokens(src, "src", self.config)), self.src_embedding(src)
        for index, layer in enumerate(self.encoder):
            x = layer(self.dropout(x) if index else x, order)
        return x

    def decode(
        self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[RecurrentCache] | None = None
    ) -> Tensor:
        """Target ids to the decoder's output (batch, tgt_len, d_model); arguments as of Transformer.decode."""
        return self._decode(tgt_in, memory, src, cache)[0]

    def alignment(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """The attention weights (batch, tgt_len, src_len); row t belongs to the token that position t predicts."""
        return self._decode(tgt_in, self.encode(src), src, None)[1]

    def new_cache(self) -> list[RecurrentCache]:
        """An empty cache for `decode`: one part, for all layers."""
        return [RecurrentCache()]

    def _decode(self, tgt_in, memory, src, cache):
        real_tokens(tgt_in, "tgt_in", self.config)
        past = (None, None) if cache is None else (cache[0].state, cache[0].cells)
        cached = None if past[0] is None else past[0][0]  # (batch, d_hidden)
        check_together(src, memory, tgt_in, self.config.d_hidden, cached)
        if cached is None:
            past = self._first_state(memory)
        mask = padding_mask(src, self.config.pad_id)[:, 0]  # (batch, 1, src_len)
        is_lstm, x = self.config.cell == "lstm", self.tgt_embedding(tgt_in)
        states, newest = self.decoder(x, past if is_lstm else past[0])  # (batch, tgt_len, d_hidden)
        context, weights = attention(self.query_proj(states), memory, memory, mask)  # weights (batch, tgt_len, src_len)
        if cache is not None:
            cache[0].state, cache[0].cells = newest if is_lstm else (newest, None)
        output = torch.tanh(self.output_proj(torch.cat([context, states], dim=-1)))  # (batch, tgt_len, d_model)
        return self.dropout(output), weights

    def _first_state(self, memory):
        read = memory[:, 0, self.config.d_hidden // 2 :]  # from the right, the first token comes last: all is read
        state = torch.tanh(self.first_state(read)).unflatten(1, (self.config.num_layers, -1))
        state = state.transpose(0, 1).contiguous()  # (num_layers, batch, d_hidden)
        return state, torch.zeros_like(state)

    def _initialize(self) -> None:
        """Embeddings as the Transformer's; recurrent gates orthogonal; what keeps the old state open at first."""
        gates = GATES[self.config.cell]
        for name, parameter in self.named_parameters():
            if name.endswith("table.weight") or name.startswith("generator"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif "bias" in name:
                nn.init.zeros_(parameter)
                if "bias_ih" in name:  # torch's order: input, forget, cell, output; or reset, update, new
                    nn.init.ones_(parameter.chunk(gates)[1])
            else:
                for gate in parameter.chunk(gates if "weight_" in name else 1):
                    (nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_)(gate)
