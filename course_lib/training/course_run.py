"""Training on the course corpus of any model that maps source ids and shifted target ids to logits."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from course_lib.config import ModelConfig
from course_lib.data import Batch, BucketedBatches, encode_pairs, load_course
from course_lib.tokenizer import PAD_ID, Tokenizer
from course_lib.training.config import TrainConfig
from course_lib.training.loop import fit
from course_lib.training.loss import label_smoothed_loss
from course_lib.training.run import History
from course_lib.translator import PRETRAINED

RECIPE = TrainConfig(epochs=3, batch_tokens=512, peak_lr=4e-3, warmup_steps=400, decay="linear", clip_norm=1.0)


def train_on_course(
    model: nn.Module,
    *,
    passes: int = 3,
    pairs: int = 60_000,
    seed: int = 0,
    on_step: Callable | None = None,
    progress: bool = True,
    **changes,
) -> History:
    """Trains a model as the shipped translator "course" was, but for three passes instead of four, in its subwords.

    Args:
        model: called as model(src, tgt_in) it returns logits (batch, tgt_len, 2000); it is changed in place.
        passes: over the training pairs.
        pairs: of the training part.
        seed: of the order of the batches.
        on_step, progress: see `fit`.
        changes: fields of TrainConfig that differ from the recipe, such as peak_lr.

    Returns:
        the history of the run; the model is left in evaluation mode.
    """
    tokenizer = Tokenizer.from_json((PRETRAINED / "course" / "tokenizer.json").read_text(encoding="utf-8"))
    config = replace(RECIPE, epochs=passes, seed=seed, **changes)
    train = encode_pairs(tokenizer, load_course(num_train=pairs).train)
    batches = BucketedBatches(train, config.batch_tokens, seed=seed)
    return fit(_Sized(model, tokenizer.vocab_size), batches, config, loss=_loss, on_step=on_step, progress=progress)


class _Sized(nn.Module):
    """A model with what `fit` asks of one: a configuration, of which no field is used where the recipe has a peak."""

    def __init__(self, model: nn.Module, vocab_size: int):
        super().__init__()
        self.model, self.config = model, ModelConfig(vocab_size)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.model(src, tgt_in)


def _loss(model: nn.Module, batch: Batch, *, smoothing: float) -> tuple[Tensor, int]:
    real = batch.tgt_out != PAD_ID  # (batch, tgt_len)
    logits = model(batch.src, batch.tgt_in)[real]  # (tokens, vocab)
    return label_smoothed_loss(logits.float(), batch.tgt_out[real], smoothing=smoothing), 0
