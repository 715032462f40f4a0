"""The Transformer with state spaces in the place of self-attention."""

from dataclasses import asdict, dataclass

from torch import Tensor, nn

from course_lib.alternatives.shared import (
    backward_order,
    check_together,
    fields_like,
    nearest,
    real_tokens,
    tie_embeddings,
)
from course_lib.alternatives.state_space import StateSpaceMixing
from course_lib.attention import MultiHeadAttention
from course_lib.blocks import FeedForward, LayerNorm, Residual, attend_memory
from course_lib.config import ModelConfig, check_shared, from_values, require
from course_lib.masks import padding_mask
from course_lib.transformer import Embedding, initialize


@dataclass(frozen=True)
class StateSpaceConfig:
    """All sizes of a StateSpaceModel; names as in ModelConfig.

    Args:
        vocab_size: number of subwords, shared by source and target.
        d_model: width of every token's vector between the sub-layers.
        num_heads: of the attention to the source; must divide d_model.
        num_layers: layers in the encoder, and again in the decoder.
        d_ff: inner width of the feed-forward network.
        d_state: complex numbers that a feature is remembered by.
        dropout: probability, on the output of each sub-layer and on the embedded input.
        max_len: most tokens of an output; inputs may have any length.
        pad_id, bos_id, eos_id, unk_id: ids of the four special tokens.

    Raises:
        ValueError: on a value with which no model can be built.
    """

    vocab_size: int
    d_model: int = 512
    num_heads: int = 8
    num_layers: int = 6
    d_ff: int = 2048
    d_state: int = 16
    dropout: float = 0.1
    max_len: int = 512
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    architecture = "state space"  # one of ARCHITECTURES

    def __post_init__(self):
        sizes = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "d_state", "max_len")
        check_shared(self, sizes=sizes)
        require(
            self.d_model % self.num_heads == 0,
            f"d_model must be divisible by num_heads, got d_model={self.d_model}, num_heads={self.num_heads}",
        )

    @property
    def position(self) -> str:
        """What is added to the embedded tokens: "none", the states are read in order."""
        return "none"

    def parameter_counts(self) -> dict[str, int]:
        """Trainable parameters by component, in closed form; `sum(...values())` is the whole model."""
        d_model, num_layers = self.d_model, self.num_layers
        state_space = d_model * (2 + 4 * self.d_state)  # step and skip; decay, frequency, and two of the output
        mixing = (d_model + 1) * 2 * d_model
        feed_forward = 2 * d_model * self.d_ff + self.d_ff + d_model
        return {
            "embeddings": self.vocab_size * d_model,
            "encoder mixing": num_layers * (2 * state_space + mixing),
            "encoder feed-forward": num_layers * feed_forward,
            "decoder mixing": num_layers * (state_space + mixing),
            "decoder cross-attention": num_layers * 4 * (d_model + 1) * d_model,
            "decoder feed-forward": num_layers * feed_forward,
            "norms": (5 * num_layers + 2) * 2 * d_model,
        }

    @property
    def num_parameters(self) -> int:
        """All trainable parameters."""
        return sum(self.parameter_counts().values())

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "StateSpaceConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values)


def state_space_like(config: ModelConfig, **changes) -> StateSpaceConfig:
    """The state-space model that is most nearly as large as a Transformer: its sizes, but for d_ff, which follows.

    Args:
        config: the Transformer's.
        changes: fields of StateSpaceConfig, but for d_ff.
    """
    shared = fields_like(config, StateSpaceConfig) | changes
    shared.pop("d_ff")
    widths = range(1, max(config.num_parameters // config.d_model, 2))
    return nearest((StateSpaceConfig(**shared, d_ff=width) for width in widths), config.num_parameters)


class StateSpaceEncoderLayer(nn.Module):
    """State spaces from both ends, then the feed-forward network, each in a pre-norm residual path.

    Args:
        config: the model's.
    """

    def __init__(self, config: StateSpaceConfig):
        super().__init__()
        self.mixing = StateSpaceMixing(config.d_model, config.d_state, both_ways=True)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.mixing_path = Residual(config.d_model, config.dropout, True)
        self.feed_forward_path = Residual(config.d_model, config.dropout, True)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (batch, src_len, d_model) and the tokens' backward_order, to such a tensor."""
        x = self.mixing_path(x, lambda x: self.mixing(x, order))
        return self.feed_forward_path(x, self.feed_forward)


@dataclass
class StateSpaceCache:
    """What a decoder layer keeps between steps: its state, however many steps, and the projected memory."""

    state: Tensor | None = None
    memory_keys: Tensor | None = None
    memory_values: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        """Keeps the given batch rows, in the given order, repeats allowed (beam search)."""
        for name, tensor in vars(self).items():
            setattr(self, name, tensor[rows])


class StateSpaceDecoderLayer(nn.Module):
    """A state space, attention to the encoder's memory, feed-forward network, each in a pre-norm residual path.

    Args:
        config: the model's.
    """

    def __init__(self, config: StateSpaceConfig):
        super().__init__()
        self.mixing = StateSpaceMixing(config.d_model, config.d_state, both_ways=False)
        self.cross_attn = MultiHeadAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.mixing_path, self.cross_attn_path, self.feed_forward_path = (
            Residual(config.d_model, config.dropout, True) for _ in range(3)
        )

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor, cache: StateSpaceCache | None = None) -> Tensor:
        """As DecoderLayer.forward; with a cache by the recurrence, without one by the convolution."""
        x = self.mixing_path(x, lambda x: self.mixing(x) if cache is None else self._go_on(x, cache))
        x = self.cross_attn_path(x, lambda x: attend_memory(self.cross_attn, x, memory, mask, cache))
        return self.feed_forward_path(x, self.feed_forward)

    def _go_on(self, x, cache):
        y, cache.state = self.mixing.from_left.scan(x, cache.state)
        return self.mixing.mix(y)


class StateSpaceModel(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token; attention to the source stays.

    Args:
        config: all sizes; see StateSpaceConfig.
    """

    def __init__(self, config: StateSpaceConfig):
        super().__init__()
        self.config = config
        self.src_embedding, self.tgt_embedding = Embedding(config), Embedding(config)
        self.encoder = nn.ModuleList(StateSpaceEncoderLayer(config) for _ in range(config.num_layers))
        self.decoder = nn.ModuleList(StateSpaceDecoderLayer(config) for _ in range(config.num_layers))
        self.encoder_norm, self.decoder_norm = LayerNorm(config.d_model), LayerNorm(config.d_model)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config.d_model)
        tie_embeddings(self)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits (batch, tgt_len, vocab) of every target position, as Transformer.forward."""
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Source ids (batch, src_len) to the memory (batch, src_len, d_model)."""
        order, x = backward_order(real_tokens(src, "src", self.config)), self.src_embedding(src)
        for layer in self.encoder:
            x = layer(x, order)
        return self.encoder_norm(x)

    def decode(
        self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[StateSpaceCache] | None = None
    ) -> Tensor:
        """Target ids to the decoder's output (batch, tgt_len, d_model); arguments as of Transformer.decode."""
        real_tokens(tgt_in, "tgt_in", self.config)
        check_together(src, memory, tgt_in, self.config.d_model, None if cache is None else cache[0].state)
        mask, x = padding_mask(src, self.config.pad_id), self.tgt_embedding(tgt_in)
        for index, layer in enumerate(self.decoder):
            x = layer(x, memory, mask, None if cache is None else cache[index])
        return self.decoder_norm(x)

    def new_cache(self) -> list[StateSpaceCache]:
        """An empty cache for `decode`, one part for each decoder layer."""
        return [StateSpaceCache() for _ in self.decoder]
