"""How good a model is: its loss on batches, and the BLEU of what it translates."""

from dataclasses import dataclass

from torch import Tensor

from course_lib.data import Batch, BucketedBatches
from course_lib.metrics import Bleu, bleu, exact_match, tokenized_bleu
from course_lib.training.loss import label_smoothed_loss
from course_lib.transformer import Transformer, eval_mode
from course_lib.translator import Translator


def batch_loss(model: Transformer, batch: Batch, *, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """The loss of a batch, computed for real tokens only, so that the softmax does no work on padding.

    Args:
        model: on the batch's device.
        batch: padded ids.
        smoothing: label smoothing.

    Returns:
        the summed loss in nats, and the number of correct top predictions (0 in training, where nobody asks).
    """
    logits, targets = token_logits(model, batch)
    correct = int((logits.detach().argmax(dim=-1) == targets).sum()) if not model.training else 0
    return label_smoothed_loss(logits.float(), targets, smoothing=smoothing), correct


def token_logits(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits (tokens, vocab) of the batch's real target tokens, and their true ids (tokens,)."""
    real = batch.tgt_out != model.config.pad_id  # (batch, tgt_len)
    hidden = model.decode(batch.tgt_in, model.encode(batch.src), batch.src)  # (batch, tgt_len, d_model)
    return model.generator(hidden[real]), batch.tgt_out[real]


def validate(model: Transformer, batches: BucketedBatches) -> dict[str, float]:
    """Loss (nats a token, unsmoothed) and accuracy of the next token, teacher-forced; the model's mode is restored."""
    device = next(model.parameters()).device
    loss, correct, tokens = 0.0, 0, 0
    with eval_mode(model):
        for batch in batches.epoch(0):
            batch_sum, batch_correct = batch_loss(model, batch.to(device))
            loss += batch_sum.item()
            correct += batch_correct
            tokens += batch.num_tokens
    return {"valid_loss": loss / tokens, "valid_accuracy": correct / tokens}


@dataclass(frozen=True)
class Score:
    """How a translator did on some pairs.

    Args:
        bleu: corpus BLEU with its signature.
        exact_match: share of outputs equal to a reference.
        outputs: the translations, one for each source, in the order of the pairs.
        references: of each output.
        beam_size, length_penalty: of the search.
    """

    bleu: Bleu
    exact_match: float
    outputs: list[str]
    references: list[list[str]]
    beam_size: int
    length_penalty: float

    @property
    def tokenized_bleu(self) -> Bleu:
        """Lower-cased, over Moses tokens: for comparison with papers that print it."""
        return tokenized_bleu(self.outputs, self.references)

    @property
    def entry(self) -> dict:
        """JSON values for a log: all scores with their signatures, and the search that they belong to."""
        tokenized = self.tokenized_bleu
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "bleu": self.bleu.score,
            "signature": self.bleu.signature,
            "length_ratio": self.bleu.length_ratio,
            "tokenized_bleu": tokenized.score,
            "tokenized_signature": tokenized.signature,
            "exact_match": self.exact_match,
        }

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.bleu}; {self.exact_match:.1%} exact match on {len(self.outputs)} sentences"


def score(translator: Translator, pairs, *, beam_size: int = 4, length_penalty: float = 0.6) -> Score:
    """Translates each source of the pairs once, free-running, and compares with all its targets.

    The targets are compared as the translator's tokenizer has them: composed, with plain spaces, and in lower case if
    it makes all texts so, as the signature then says.

    Args:
        translator: to be scored.
        pairs: objects with texts `src` and `tgt`; the targets of one source are references for one another.
        beam_size, length_penalty: of the search.
    """
    targets: dict[str, list[str]] = {}
    for pair in pairs:
        targets.setdefault(pair.src, []).append(pair.tgt)
    translations = translator.translate_batch(list(targets), beam_size=beam_size, length_penalty=length_penalty)
    outputs, references = [translation.text for translation in translations], list(targets.values())
    references = [[translator.tokenizer.normalize(text) for text in texts] for texts in references]
    found = bleu(outputs, references, lowercase=translator.tokenizer.lowercase)
    return Score(found, exact_match(outputs, references), outputs, references, beam_size, length_penalty)
