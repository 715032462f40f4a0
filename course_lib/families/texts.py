"""Models that have one stack only: an encoder that reads a text, or a decoder that goes on with one."""

from torch import Tensor, nn

from course_lib.config import ModelConfig
from course_lib.masks import causal_mask, padding_mask
from course_lib.transformer import Embedding, Encoder, check_ids, initialize


class TextEncoder(nn.Module):
    """Token ids to a vector for each, which has seen the whole text: the left half of the paper's figure 1.

    Args:
        config: of the one stack; `tie_weights` concerns the models around it.

    Paper: not in it as a model; Devlin et al. 2019 (BERT), without their second embedding for sentence pairs.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.encoder = Encoder(config)
        initialize(self, config.d_model)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (batch, length), padded with pad_id, to (batch, length, d_model).

        Raises:
            ValueError: on ids of another shape or outside the vocabulary, an empty text, or one too long.
        """
        check_ids(ids, "ids", self.config.vocab_size)
        return self.encoder(self.embedding(ids), padding_mask(ids, self.config.pad_id))


class MaskedLanguageModel(nn.Module):
    """A text with holes to the logits of what stands at each place.

    Args:
        config: as in TextEncoder; with `tie_weights` the generator's matrix is the embedding's.

    Paper: Devlin et al. 2019, section 3.1, task 1; without their layer before the generator.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.text_encoder = TextEncoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config.d_model)
        if config.tie_weights:
            self.generator.weight = self.text_encoder.embedding.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        """ids (batch, length) to (batch, length, vocab)."""
        return self.generator(self.text_encoder(ids))


class TextClassifier(nn.Module):
    """A text to the logits of its class, read from the vector of its first token.

    Args:
        text_encoder: fresh, or one that a MaskedLanguageModel has trained; it is used as it is and trained further.
        num_classes: to choose from.

    Paper: Devlin et al. 2019, section 4.1; their first token is [CLS], ours is <s>.
    """

    def __init__(self, text_encoder: TextEncoder, num_classes: int):
        super().__init__()
        self.text_encoder = text_encoder
        self.head = nn.Linear(text_encoder.config.d_model, num_classes)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (batch, length), each row with <s> in front, to (batch, classes)."""
        return self.head(self.text_encoder(ids)[:, 0])


class LanguageModel(nn.Module):
    """The beginning of a text to the logits of what comes next, at each of its places.

    Without a memory a decoder layer has no cross-attention, and what is left of it is an encoder layer with a causal
    mask: that is what the one stack consists of.

    Args:
        config: of the one stack; with `tie_weights` the generator's matrix is the embedding's.

    Paper: not in it; Radford et al. 2018 (GPT).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.stack = Encoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config.d_model)
        if config.tie_weights:
            self.generator.weight = self.embedding.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        """ids (batch, length) to (batch, length, vocab): position t sees the ids up to t and predicts the next.

        Padding may stand at the end of a row only, where the causal mask hides it from all that is not padding.
        """
        check_ids(ids, "ids", self.config.vocab_size)
        x = self.stack(self.embedding(ids), causal_mask(ids.shape[1], device=ids.device))
        return self.generator(x)
