"""Convolutional sequence to sequence: stacks of gated convolutions with attention, called like the Transformer."""

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.alternatives.shared import (
    check_together,
    fields_like,
    nearest,
    real_tokens,
    tie_embeddings,
    widths_below,
)
from course_lib.attention import attention
from course_lib.blocks import Dropout
from course_lib.config import ModelConfig, check_shared, from_values, require
from course_lib.masks import padding_mask
from course_lib.transformer import Embedding

HALF = 0.5**0.5  # the sum of two independent paths keeps its variance


@dataclass(frozen=True)
class ConvolutionalConfig:
    """All sizes of a ConvolutionalModel; names as in ModelConfig.

    Args:
        vocab_size: number of subwords, shared by source and target.
        d_model: width of the embedded tokens, of attention and of the output.
        d_hidden: width between the convolutions.
        num_layers: convolutions in the encoder, and again in the decoder.
        kernel_width: tokens that one convolution sees; odd, so that the encoder sees as many to each side.
        dropout: probability, on the embedded input and before each convolution.
        max_len: longest sentence in tokens; positions are learned.
        pad_id, bos_id, eos_id, unk_id: ids of the four special tokens.

    Raises:
        ValueError: on a value with which no model can be built.
    """

    vocab_size: int
    d_model: int = 512
    d_hidden: int = 512
    num_layers: int = 4
    kernel_width: int = 3
    dropout: float = 0.1
    max_len: int = 512
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    architecture = "convolutional"  # one of ARCHITECTURES

    def __post_init__(self):
        check_shared(self, sizes=("vocab_size", "d_model", "d_hidden", "num_layers", "max_len", "kernel_width"))
        odd = self.kernel_width % 2 == 1
        require(odd, f"kernel_width must be odd, as many tokens on each side, got {self.kernel_width}")

    @property
    def position(self) -> str:
        """What is added to the embedded tokens: "learned", as a convolution sees neighbors and not the place."""
        return "learned"

    def parameter_counts(self) -> dict[str, int]:
        """Trainable parameters by component, in closed form; `sum(...values())` is the whole model."""
        d_model, d_hidden = self.d_model, self.d_hidden
        wider, narrower = (d_model + 1) * d_hidden, (d_hidden + 1) * d_model
        convolutions = self.num_layers * (self.kernel_width * d_hidden + 1) * 2 * d_hidden  # values and gates
        return {
            "embeddings": (self.vocab_size + 2 * self.max_len) * d_model,
            "encoder": wider + convolutions + narrower,
            "decoder": wider + convolutions + narrower,
            "attention": self.num_layers * (wider + narrower),
        }

    @property
    def num_parameters(self) -> int:
        """All trainable parameters."""
        return sum(self.parameter_counts().values())

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "ConvolutionalConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values)


def convolutional_like(config: ModelConfig, **changes) -> ConvolutionalConfig:
    """The convolutional model that is most nearly as large as a Transformer, with its vocabulary, d_model and layers.

    Args:
        config: the Transformer's.
        changes: fields of ConvolutionalConfig, but for d_hidden, which follows from the number of parameters.
    """
    shared = fields_like(config, ConvolutionalConfig) | changes
    configs = (ConvolutionalConfig(**shared, d_hidden=width) for width in widths_below(config, 1))
    return nearest(configs, config.num_parameters)


class GatedConvolution(nn.Module):
    """A convolution over the tokens that makes values and gates: values · sigmoid(gates).

    Args:
        d_hidden: width of input and output.
        kernel_width: tokens that it sees.
        causal: see none after the own token, as a decoder must; else as many on each side.
        dropout: probability, on the input.

    Paper: Gehring et al. 2017, section 3.2; the gate is that of Dauphin et al. 2016.
    """

    def __init__(self, d_hidden: int, kernel_width: int, *, causal: bool, dropout: float = 0.0):
        super().__init__()
        behind = kernel_width - 1 if causal else kernel_width // 2
        self.around = (behind, kernel_width - 1 - behind)  # tokens seen before the own one, and after it
        self.dropout = Dropout(dropout)
        self.convolution = nn.Conv1d(d_hidden, 2 * d_hidden, kernel_width)

    def forward(self, x: Tensor, past: Tensor | None = None) -> Tensor:
        """x (batch, length, d_hidden), zero at the padding, to such a tensor.

        Before it are zeros, or for causal convolutions what `past` (batch, kernel_width - 1, d_hidden) holds.
        """
        x = self.dropout(x)
        x = F.pad(x, (0, 0, *self.around)) if past is None else torch.cat([past, x], dim=1)
        both = self.convolution(x.transpose(1, 2))  # (batch, 2 d_hidden, length)
        return F.glu(both, dim=1).transpose(1, 2)  # (batch, length, d_hidden)


@dataclass
class ConvolutionalCache:
    """What a convolution of the decoder keeps between steps: the last inputs (batch, kernel_width - 1, d_hidden).

    Zeros stand before the first token; `length` counts the tokens so far.
    """

    past: Tensor | None = None
    length: int = 0

    def select(self, rows: Tensor) -> None:
        """Keeps the given batch rows, in the given order, repeats allowed (beam search)."""
        self.past = self.past.index_select(0, rows)

    def before(self, x: Tensor, count: int) -> Tensor:
        """The `count` tokens before x (batch, length, d_hidden); keeps those that will be before the next one."""
        past = x.new_zeros(len(x), count, x.shape[-1]) if self.past is None else self.past
        self.past = torch.cat([past, x], dim=1)[:, x.shape[1] :]
        self.length += x.shape[1]
        return past


class MultiStepAttention(nn.Module):
    """From a convolution's output and the token it is at, a look at the source; each decoder layer has its own.

    Args:
        config: the model's.

    Paper: Gehring et al. 2017, section 3.3, equation 1. Ours: scores are divided by √d_model.
    """

    def __init__(self, config: ConvolutionalConfig):
        super().__init__()
        self.query_proj = nn.Linear(config.d_hidden, config.d_model)
        self.output_proj = nn.Linear(config.d_model, config.d_hidden)

    def forward(self, x: Tensor, embedded: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """x (batch, tgt_len, d_hidden) and its tokens (batch, tgt_len, d_model), to what is added to x."""
        query = (self.query_proj(x) + embedded) * HALF
        keys, values = memory.chunk(2, dim=-1)  # (batch, src_len, d_model) each
        return self.output_proj(attention(query, keys, values, mask)[0])


class ConvolutionalModel(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token, by convolutions and attention.

    Args:
        config: all sizes; see ConvolutionalConfig.

    Paper: Gehring et al. 2017, section 3. Left out are weight normalization and the scaled gradients of the encoder
    (section 3.4), which deeper stacks needed; embeddings and generator are tied, as everywhere in this course.
    """

    def __init__(self, config: ConvolutionalConfig):
        super().__init__()
        self.config = config
        d_model, d_hidden = config.d_model, config.d_hidden
        self.src_embedding = Embedding(config)
        self.tgt_embedding = Embedding(config)
        self.encoder_in, self.decoder_in = nn.Linear(d_model, d_hidden), nn.Linear(d_model, d_hidden)
        sizes, layers = (d_hidden, config.kernel_width), range(config.num_layers)
        self.encoder, self.decoder = (
            nn.ModuleList(GatedConvolution(*sizes, causal=causal, dropout=config.dropout) for _ in layers)
            for causal in (False, True)
        )
        self.attentions = nn.ModuleList(MultiStepAttention(config) for _ in range(config.num_layers))
        self.encoder_out, self.decoder_out = nn.Linear(d_hidden, d_model), nn.Linear(d_hidden, d_model)
        self.generator = nn.Linear(d_model, config.vocab_size, bias=False)
        self._initialize()
        tie_embeddings(self)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits (batch, tgt_len, vocab) of every target position, as Transformer.forward."""
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Source ids (batch, src_len) to the memory (batch, src_len, 2 d_model): keys, and values with the tokens."""
        real = real_tokens(src, "src", self.config)[:, :, None]  # (batch, src_len, 1)
        embedded = self.src_embedding(src)
        x = self.encoder_in(embedded) * real
        for convolution in self.encoder:
            x = (x + convolution(x)) * HALF * real  # padding stays zero, as what is beyond the edge
        keys = self.encoder_out(x)
        return torch.cat([keys, (keys + embedded) * HALF], dim=-1)

    def decode(
        self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[ConvolutionalCache] | None = None
    ) -> Tensor:
        """Target ids to the decoder's output (batch, tgt_len, d_model); arguments as of Transformer.decode."""
        real_tokens(tgt_in, "tgt_in", self.config)
        check_together(src, memory, tgt_in, 2 * self.config.d_model, None if cache is None else cache[0].past)
        mask = padding_mask(src, self.config.pad_id)[:, 0]  # (batch, 1, src_len)
        embedded = self.tgt_embedding(tgt_in, start=0 if cache is None else cache[0].length)
        x = self.decoder_in(embedded)
        for index, (convolution, attend) in enumerate(zip(self.decoder, self.attentions, strict=True)):
            seen = convolution(x, None if cache is None else cache[index].before(x, self.config.kernel_width - 1))
            x = (x + (seen + attend(seen, embedded, memory, mask)) * HALF) * HALF
        return self.decoder_out(x)

    def new_cache(self) -> list[ConvolutionalCache]:
        """An empty cache for `decode`, one part for each convolution of the decoder."""
        return [ConvolutionalCache() for _ in self.decoder]

    def _initialize(self) -> None:
        """Embeddings as the Transformer's; a gate halves its values, so convolutions start twice as large (3.5)."""
        for name, parameter in self.named_parameters():
            if name.endswith("table.weight") or name.startswith("generator"):
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "convolution" in name:
                fan_in = self.config.d_hidden * self.config.kernel_width
                nn.init.normal_(parameter, std=(4 * (1 - self.config.dropout) / fan_in) ** 0.5)
            elif name.endswith("weight"):
                nn.init.xavier_uniform_(parameter)
