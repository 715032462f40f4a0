"""The recurrent baseline: an LSTM encoder and decoder with attention, called like the Transformer."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from course_lib.attention import attention
from course_lib.blocks import Dropout
from course_lib.config import ModelConfig, check_shared, from_values, require
from course_lib.masks import padding_mask
from course_lib.transformer import Embedding, check_ids


@dataclass(frozen=True)
class LstmConfig:
    """All sizes of an AttentiveLSTM; names as in ModelConfig.

    Args:
        vocab_size: number of subwords, shared by source and target.
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
        require(
            isinstance(self.d_hidden, int) and self.d_hidden >= 2 and self.d_hidden % 2 == 0,
            f"d_hidden must be an even int, two directions share it, got {self.d_hidden!r}",
        )

    @property
    def position(self) -> str:
        """What is added to the embedded tokens: "none", the recurrence reads them in order."""
        return "none"

    def parameter_counts(self) -> dict[str, int]:
        """Trainable parameters by component, in closed form; `sum(...values())` is the whole model."""

        def lstm(d_in, d_out):
            return 4 * d_out * (d_in + d_out + 2)  # four gates, each with two matrices and torch's two biases

        d_model, d_hidden, half, upper = self.d_model, self.d_hidden, self.d_hidden // 2, self.num_layers - 1
        return {
            "embeddings": self.vocab_size * d_model,
            "encoder": 2 * (lstm(d_model, half) + upper * lstm(d_hidden, half)),
            "first state": (half + 1) * self.num_layers * d_hidden,
            "decoder": lstm(d_model, d_hidden) + upper * lstm(d_hidden, d_hidden),
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
    def from_dict(cls, values: dict) -> "LstmConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values)


def lstm_like(config: ModelConfig, **changes) -> LstmConfig:
    """The LSTM of one layer that is most nearly as large as a Transformer, with the same vocabulary and d_model.

    Args:
        config: the Transformer's.
        changes: fields of LstmConfig, but for d_hidden, which follows from the number of parameters.
    """
    shared = {name: value for name, value in config.to_dict().items() if name in LstmConfig.__dataclass_fields__}
    widths = range(2, 4 + math.isqrt(config.num_parameters), 2)  # an LSTM has more than d_hidden² parameters
    configs = (LstmConfig(**shared | {"num_layers": 1} | changes, d_hidden=width) for width in widths)
    return min(configs, key=lambda like: abs(like.num_parameters - config.num_parameters))


class BidirectionalLSTM(nn.Module):
    """Reads each sentence from both ends, so that a token's output knows what is before it and what is after it.

    Equal to torch's bidirectional LSTM on packed sequences, but in two runs over padded ones: faster on a CPU.

    Args:
        d_in: width of the input.
        d_hidden: width of the output; each direction makes half of it.

    Paper: Bahdanau et al. 2015, section 3.2, with LSTM cells.
    """

    def __init__(self, d_in: int, d_hidden: int):
        super().__init__()
        self.from_left = nn.LSTM(d_in, d_hidden // 2, batch_first=True)
        self.from_right = nn.LSTM(d_in, d_hidden // 2, batch_first=True)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (batch, length, d_in) and the tokens' `backward_order` (batch, length), to (batch, length, d_hidden)."""
        left, _ = self.from_left(x)  # (batch, length, d_hidden / 2)
        right, _ = self.from_right(_reordered(x, order))  # (batch, length, d_hidden / 2), the last token first
        return torch.cat([left, _reordered(right, order)], dim=-1)


def backward_order(real: Tensor) -> Tensor:
    """Where the tokens of each sentence stand, from its last to its first; the padding stays where it is.

    Args:
        real: (batch, length) bool, True at the tokens, all of them before the padding.

    Returns:
        (batch, length), positions; applied twice, it restores the order.
    """
    place = torch.arange(real.shape[1], device=real.device)
    mirrored = real.sum(dim=1, keepdim=True) - 1 - place  # (batch, length), negative at the padding
    return torch.where(real, mirrored, place)


@dataclass
class LstmCache:
    """What the decoder keeps between steps: its state (num_layers, batch, d_hidden) and cells, however many steps."""

    state: Tensor | None = None
    cells: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        """Keeps the given batch rows, in the given order, repeats allowed (beam search)."""
        self.state, self.cells = self.state.index_select(1, rows), self.cells.index_select(1, rows)


class AttentiveLSTM(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token, by recurrence and attention.

    Args:
        config: all sizes; see LstmConfig.

    Paper: Luong et al. 2015, sections 3 and 3.1: global attention with the "general" score, without the input feeding
    of section 3.3, so that no state waits for the attention and torch's kernel computes all of them in one call. From
    Bahdanau et al. 2015 come the encoder and the decoder's first state (appendix A.2.2). Ours: scores are divided by
    √d_hidden, and the output has width d_model, so that the generator can be tied to the embeddings.
    """

    def __init__(self, config: LstmConfig):
        super().__init__()
        self.config = config
        d_model, d_hidden, num_layers = config.d_model, config.d_hidden, config.num_layers
        self.src_embedding = Embedding(config)
        self.tgt_embedding = Embedding(config)
        self.encoder = nn.ModuleList(BidirectionalLSTM(d_hidden if i else d_model, d_hidden) for i in range(num_layers))
        self.first_state = nn.Linear(d_hidden // 2, num_layers * d_hidden)
        between = config.dropout if num_layers > 1 else 0.0  # torch warns where there is no "between layers"
        self.decoder = nn.LSTM(d_model, d_hidden, num_layers, batch_first=True, dropout=between)
        self.query_proj = nn.Linear(d_hidden, d_hidden, bias=False)
        self.output_proj = nn.Linear(2 * d_hidden, d_model, bias=False)
        self.dropout = Dropout(config.dropout)
        self.generator = nn.Linear(d_model, config.vocab_size, bias=False)
        self._initialize()
        self.tgt_embedding.table.weight = self.src_embedding.table.weight
        self.generator.weight = self.src_embedding.table.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits (batch, tgt_len, vocab) of every target position, as Transformer.forward."""
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Source ids (batch, src_len), padded at the end only, to the memory (batch, src_len, d_hidden)."""
        order, x = backward_order(self._real(src, "src")), self.src_embedding(src)
        for index, layer in enumerate(self.encoder):
            x = layer(self.dropout(x) if index else x, order)
        return x

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[LstmCache] | None = None) -> Tensor:
        """Target ids to the decoder's output (batch, tgt_len, d_model); arguments as of Transformer.decode."""
        return self._decode(tgt_in, memory, src, cache)[0]

    def alignment(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """The attention weights (batch, tgt_len, src_len); row t belongs to the token that position t predicts."""
        return self._decode(tgt_in, self.encode(src), src, None)[1]

    def new_cache(self) -> list[LstmCache]:
        """An empty cache for `decode`: one part, for all layers."""
        return [LstmCache()]

    def _decode(self, tgt_in, memory, src, cache):
        self._real(tgt_in, "tgt_in")
        if memory.shape != (*src.shape, self.config.d_hidden) or len(src) != len(tgt_in):
            shapes = ", ".join(str(tuple(each.shape)) for each in (src, memory, tgt_in))
            raise ValueError(f"src, memory and tgt_in must belong together, got {shapes}")
        past = (None, None) if cache is None else (cache[0].state, cache[0].cells)
        if past[0] is None:
            past = self._first_state(memory)
        elif past[0].shape[1] != len(tgt_in):
            raise ValueError(f"the cache holds {past[0].shape[1]} sentences, tgt_in has {len(tgt_in)}")
        mask = padding_mask(src, self.config.pad_id)[:, 0]  # (batch, 1, src_len)
        states, newest = self.decoder(self.tgt_embedding(tgt_in), past)  # (batch, tgt_len, d_hidden)
        context, weights = attention(self.query_proj(states), memory, memory, mask)  # weights (batch, tgt_len, src_len)
        if cache is not None:
            cache[0].state, cache[0].cells = newest
        output = torch.tanh(self.output_proj(torch.cat([context, states], dim=-1)))  # (batch, tgt_len, d_model)
        return self.dropout(output), weights

    def _first_state(self, memory):
        read = memory[:, 0, self.config.d_hidden // 2 :]  # from the right, the first token comes last: all is read
        state = torch.tanh(self.first_state(read)).unflatten(1, (self.config.num_layers, -1))
        state = state.transpose(0, 1).contiguous()  # (num_layers, batch, d_hidden)
        return state, torch.zeros_like(state)

    def _initialize(self) -> None:
        """Embeddings as the Transformer's; recurrent gates orthogonal; forget gates open at first."""
        for name, parameter in self.named_parameters():
            if name.endswith("table.weight") or name.startswith("generator"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif "bias" in name:
                nn.init.zeros_(parameter)
                if "bias_ih" in name:  # torch's order: input, forget, cell, output
                    nn.init.ones_(parameter.chunk(4)[1])
            else:
                for gate in parameter.chunk(4 if "weight_" in name else 1):
                    (nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_)(gate)

    def _real(self, ids: Tensor, name: str) -> Tensor:
        """(batch, length), True at the tokens; refuses bad ids, and padding that is not at the end."""
        check_ids(ids, name, self.config.vocab_size)
        real = padding_mask(ids, self.config.pad_id)[:, 0, 0]
        if (real[:, 1:] > real[:, :-1]).any():
            raise ValueError(f"{name} has padding before a token, a recurrence needs it behind them all")
        return real


def _reordered(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order[:, :, None].expand_as(x))  # (batch, length, features)
