"""What a model is: its sizes, their named presets, and closed-form counts; needs no torch."""

import sys
from dataclasses import asdict, dataclass, fields, replace

ARCHITECTURES = ("transformer", "lstm", "gru", "convolutional", "state space")
POSITIONS = ("sinusoidal", "learned", "alibi", "rotary", "none")

_MODELS = {
    "mini": dict(d_model=128, num_heads=4, num_layers=2, d_ff=256, dropout=0.0, norm_first=True),
    "tiny": dict(d_model=128, num_heads=4, num_layers=4, d_ff=256, dropout=0.1, norm_first=True),
    "small": dict(d_model=256, num_heads=8, num_layers=3, d_ff=1024, dropout=0.1, norm_first=True),
    "base": dict(d_model=512, num_heads=8, num_layers=6, d_ff=2048, dropout=0.1),
    "big": dict(d_model=1024, num_heads=16, num_layers=6, d_ff=4096, dropout=0.3),
}

PRESETS = tuple(_MODELS)
COUNTABLE = 10**18  # a model may be planned that no machine can hold
LARGEST = {"num_layers": 1000, "epochs": 100_000}  # one after the other, more would take for ever


@dataclass(frozen=True)
class ModelConfig:
    """Everything that fixes the shape of a Transformer; the defaults are the paper's base model.

    Args:
        vocab_size: number of subwords, shared by source and target.
        d_model: width of every token's vector between the sub-layers.
        num_heads: attention heads; must divide d_model.
        num_layers: layers in the encoder, and again in the decoder.
        d_ff: inner width of the position-wise feed-forward network.
        dropout: probability, on the output of each sub-layer and on the embedded input.
        max_len: longest sentence in tokens.
        norm_first: False normalizes after each residual sum (paper), True before each sub-layer.
        position: "sinusoidal" (paper) or "learned", added to the tokens; "alibi" or "rotary", in each
            self-attention; or "none".
        tie_weights: share one matrix between both embeddings and the generator (paper, section 3.4).
        key_width: d_k where it is not d_model / num_heads, which stays the width of a head's values (table 3, row B).
        pad_id, bos_id, eos_id, unk_id: ids of the four special tokens.

    Raises:
        ValueError: on a value with which no model can be built.

    Paper: table 3, row "base".
    """

    vocab_size: int
    d_model: int = 512
    num_heads: int = 8
    num_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    max_len: int = 512
    norm_first: bool = False
    position: str = "sinusoidal"
    tie_weights: bool = True
    key_width: int | None = None
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    architecture = "transformer"  # one of ARCHITECTURES

    def __post_init__(self):
        sizes = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_len")
        check_shared(self, sizes=sizes if self.key_width is None else (*sizes, "key_width"))
        check_flags(norm_first=self.norm_first, tie_weights=self.tie_weights)
        require(
            self.d_model % self.num_heads == 0,
            f"d_model must be divisible by num_heads, got d_model={self.d_model}, num_heads={self.num_heads}",
        )
        require(self.position in POSITIONS, f"position must be one of {POSITIONS}, got {self.position!r}")
        for position, name in (("sinusoidal", "d_model"), ("rotary", "d_k")):
            require(
                self.position != position or getattr(self, name) % 2 == 0,
                f"{position} positions pair the dimensions: {name} must be even, got {getattr(self, name)}",
            )

    @property
    def d_k(self) -> int:
        """Width of one head's queries and keys; and of its values, unless key_width is given."""
        return self.d_model // self.num_heads if self.key_width is None else self.key_width

    def parameter_counts(self) -> dict[str, int]:
        """Trainable parameters by component, in closed form.

        Returns:
            dict with embeddings, encoder attention and feed-forward, decoder self-attention, cross-attention
            and feed-forward, and norms; `sum(...values())` is the whole model.
        """
        keys = self.num_heads * self.d_k  # of all heads, side by side
        attention = 2 * (self.d_model * keys + keys) + 2 * (self.d_model * self.d_model + self.d_model)
        feed_forward = 2 * self.d_model * self.d_ff + self.d_ff + self.d_model
        norms = 5 * self.num_layers + (2 if self.norm_first else 0)  # pre-norm ends each stack with a norm
        learned_positions = 2 * self.max_len * self.d_model if self.position == "learned" else 0
        return {
            "embeddings": self.vocab_size * self.d_model * (1 if self.tie_weights else 3) + learned_positions,
            "encoder self-attention": self.num_layers * attention,
            "encoder feed-forward": self.num_layers * feed_forward,
            "decoder self-attention": self.num_layers * attention,
            "decoder cross-attention": self.num_layers * attention,
            "decoder feed-forward": self.num_layers * feed_forward,
            "norms": norms * 2 * self.d_model,
        }

    @property
    def num_parameters(self) -> int:
        """All trainable parameters."""
        return sum(self.parameter_counts().values())

    def flop_counts(self, src_len: int, tgt_len: int) -> dict[str, int]:
        """Floating-point operations of one forward pass over one sentence pair, by component.

        Counts the matrix products (two operations a multiply-add), not the softmax, norms and sums.

        Args:
            src_len: source tokens.
            tgt_len: target tokens.

        Raises:
            ValueError: on a length below 1.
        """
        check_sizes(src_len=src_len, tgt_len=tgt_len)
        d_model, num_layers = self.d_model, self.num_layers
        widths = self.num_heads * self.d_k + d_model  # of queries and contexts, and of keys and values

        def attention(queries, keys):
            projections = 2 * (queries + keys) * d_model * widths
            return projections + 2 * queries * keys * widths  # scores, then weights @ value

        def feed_forward(length):
            return 2 * 2 * length * d_model * self.d_ff

        return {
            "encoder self-attention": num_layers * attention(src_len, src_len),
            "encoder feed-forward": num_layers * feed_forward(src_len),
            "decoder self-attention": num_layers * attention(tgt_len, tgt_len),
            "decoder cross-attention": num_layers * attention(tgt_len, src_len),
            "decoder feed-forward": num_layers * feed_forward(tgt_len),
            "generator": 2 * tgt_len * d_model * self.vocab_size,
        }

    def memory_bytes(self, bytes_per_number: int = 4) -> dict[str, int]:
        """Bytes that training holds for the parameters themselves: weights, gradients and Adam's two moments."""
        check_sizes(bytes_per_number=bytes_per_number)
        size = self.num_parameters * bytes_per_number
        return {"weights": size, "gradients": size, "optimizer": 2 * size}

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "ModelConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values, key_width=None)  # the first edition's files do not name it


def model_preset(name: str, vocab_size: int, **changes) -> ModelConfig:
    """The model configuration called `name`, with named fields changed.

    Args:
        name: "mini" (for the course corpus, minutes on two CPU cores), "tiny" (for Multi30k, half an hour), "small"
            (for everyday sentences, hours), all pre-norm; "base" or "big" (the paper's table 3).
        vocab_size: number of subwords.
        changes: fields of ModelConfig.

    Raises:
        ValueError: on an unknown name.
    """
    check_preset(name)
    return replace(ModelConfig(vocab_size=vocab_size, **_MODELS[name]), **changes)


def check_preset(name: str) -> None:
    """Raises ValueError unless there is a preset of this name."""
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")


def check_architecture(name: str) -> None:
    """Raises ValueError unless there is an architecture of this name."""
    require(name in ARCHITECTURES, f"architecture must be one of {', '.join(ARCHITECTURES)}; got {name!r}")


def check_shared(config, *, sizes: tuple[str, ...]) -> None:
    """Raises ValueError unless what models of every kind have can be built: the sizes, the dropout, the special ids.

    Args:
        config: of a model.
        sizes: its fields that count something.
    """
    check_sizes(most=COUNTABLE, **{name: getattr(config, name) for name in sizes})
    check_shares(dropout=config.dropout)
    specials = (config.pad_id, config.bos_id, config.eos_id, config.unk_id)
    require(
        all(isinstance(i, int) and 0 <= i < config.vocab_size for i in specials) and len(set(specials)) == 4,
        f"the four special ids must differ and lie in 0..{config.vocab_size - 1}, got {specials}",
    )


def check_sizes(*, most: int = 10_000_000, **sizes: int) -> None:
    """Raises ValueError unless each of the named sizes is a whole number from 1 to `most`, or to its own in LARGEST."""
    for name, size in sizes.items():
        require(isinstance(size, int) and not isinstance(size, bool), f"{name} must be an int, got {size!r}")
        require(size >= 1, f"{name} must be at least 1, got {size}")
        limit = LARGEST.get(name, most)
        require(size <= limit, f"{name} must be at most {limit:,}, got {size}")


def check_numbers(**numbers: float) -> None:
    """Raises ValueError unless each of the named numbers is an int or a float, and finite."""
    for name, number in numbers.items():
        require(_is_finite(number), f"{name} must be a finite number, got {number!r}")


def check_shares(**shares: float) -> None:
    """Raises ValueError unless each of the named shares is a number in [0, 1)."""
    for name, share in shares.items():
        require(_is_finite(share) and 0 <= share < 1, f"{name} must be in [0, 1), got {share!r}")


def check_flags(**flags: bool) -> None:
    """Raises ValueError unless each of the named flags is True or False: any text would count as True."""
    for name, flag in flags.items():
        require(isinstance(flag, bool), f"{name} must be True or False, got {flag!r}")


def _is_finite(number: float) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= sys.float_info.max


def require(condition: bool, message: str) -> None:
    """Raises ValueError with the message unless the condition holds."""
    if not condition:
        raise ValueError(message)


def from_values(cls, values: dict, **absent):
    """The dataclass with these values, `absent` for fields they lack; ValueError names unknown and missing ones."""
    require(isinstance(values, dict), f"{cls.__name__}: expected names with values, got {values!r:.60}")
    values = absent | values
    known = {field.name for field in fields(cls)}
    if set(values) != known:
        raise ValueError(
            f"{cls.__name__}: unknown {sorted(map(str, set(values) - known))}, missing {sorted(known - set(values))}"
        )
    return cls(**values)
