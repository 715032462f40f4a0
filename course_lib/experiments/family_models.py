"""A model of each family, trained on a small task of its own in less than a minute."""

from collections.abc import Callable
from copy import deepcopy
from string import ascii_letters

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import ModelConfig
from course_lib.data import WORDS as CAPTION_WORDS
from course_lib.data import Pictures, draw_scenes, make_batch, make_scenes, pad
from course_lib.decoding import greedy
from course_lib.experiments.odd_words import MASK, Labeled, Sentences
from course_lib.experiments.word_ids import WordIds
from course_lib.families import (
    Captioner,
    LanguageModel,
    MaskedLanguageModel,
    TextClassifier,
    TextEncoder,
    VisionTransformer,
    mask_tokens,
)
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID
from course_lib.transformer import Transformer, eval_mode

SIZES = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, max_len=96, norm_first=True)
CAPTIONS = WordIds(CAPTION_WORDS)
CHARACTERS = WordIds(sorted(" ',.?" + ascii_letters))


def fit(
    model: nn.Module, loss_of: Callable[[torch.Generator], Tensor], *, steps: int, rate: float, seed: int
) -> list[float]:
    """Trains with AdamW: 50 steps of warm-up, and in the second half the rate falls to 0 in a straight line.

    Args:
        model: put into training mode.
        loss_of: a source of randomness to the loss of a batch.
        steps: of training.
        rate: the highest learning rate.
        seed: of the batches.

    Returns:
        the loss of every step.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    generator = torch.Generator().manual_seed(seed)
    losses = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 50, 2 * (steps - step) / steps)
        loss = loss_of(generator)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def some(number: int, generator: torch.Generator, batch: int = 64) -> Tensor:
    """Indices of a random batch."""
    return torch.randint(number, (batch,), generator=generator)


# --- pictures -----------------------------------------------------------------------------------


def train_digits(part: Pictures, *, seed: int, steps: int = 1000, rate: float = 3e-3) -> VisionTransformer:
    """A vision transformer that has learned digits from 16 patches of 2 × 2 pixels."""
    torch.manual_seed(seed)
    config = ModelConfig(vocab_size=10, **SIZES, dropout=0.1, position="learned")
    model = VisionTransformer(config, side=8, patch=2, channels=1, num_classes=10)

    def loss_of(generator: torch.Generator) -> Tensor:
        batch = some(len(part.classes), generator)
        return F.cross_entropy(model(part.pictures[batch]), part.classes[batch])

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model


def right_share(model: nn.Module, inputs: Tensor, classes: Tensor) -> float:
    """The share of inputs whose class the model finds."""
    with eval_mode(model):
        return (model(inputs).argmax(dim=-1) == classes).float().mean().item()


def train_captioner(*, seed: int, steps: int = 1000, pictures: int = 6000, rate: float = 3e-3) -> Captioner:
    """A captioner that has seen so many pictures of known things."""
    torch.manual_seed(seed)
    config = ModelConfig(vocab_size=len(CAPTIONS), **SIZES, dropout=0.0, position="learned")
    model = Captioner(config, side=16, patch=4, channels=3)
    scenes = make_scenes(pictures, seed=seed)
    drawn = draw_scenes(scenes, seed=seed)
    captions = make_batch([([BOS_ID], CAPTIONS.ids(scene.caption.split())) for scene in scenes])

    def loss_of(generator: torch.Generator) -> Tensor:
        batch = some(len(scenes), generator)
        logits = model(drawn[batch], captions.tgt_in[batch])
        return F.cross_entropy(logits.flatten(0, 1), captions.tgt_out[batch].flatten(), ignore_index=PAD_ID)

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model


def captions_of(model: Captioner, pictures: Tensor) -> list[str]:
    """What the model says of pictures, decoded greedily."""
    return [" ".join(CAPTIONS.words(found.ids)) for found in greedy(model, pictures, max_len=12)]


# --- texts --------------------------------------------------------------------------------------


def train_writer(texts: list[str], *, seed: int, steps: int = 600, rate: float = 3e-3) -> LanguageModel:
    """A language model of characters; each text is a sentence."""
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(vocab_size=len(CHARACTERS), **SIZES, dropout=0.0))
    rows = [CHARACTERS.closed(text) for text in texts if len(text) < SIZES["max_len"] - 1]

    def loss_of(generator: torch.Generator) -> Tensor:
        ids = pad([rows[index] for index in some(len(rows), generator, 32).tolist()])
        return next_loss(model, ids)

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model


def next_loss(model: LanguageModel, ids: Tensor) -> Tensor:
    """Mean surprise at the next token of padded texts, in nats."""
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD_ID)


def train_parser(
    bank: list[tuple[list[str], list[str]]], *, seed: int, steps: int = 800, rate: float = 3e-3
) -> tuple[Transformer, WordIds]:
    """The Transformer of lesson 08, from the words of a sentence to its linearized tree; and its vocabulary."""
    torch.manual_seed(seed)
    vocabulary = WordIds(sorted({token for pair in bank for side in pair for token in side}))
    pairs = [([*vocabulary.ids(words), EOS_ID], vocabulary.ids(row)) for words, row in bank]
    model = Transformer(ModelConfig(vocab_size=len(vocabulary), **SIZES, dropout=0.0))

    def loss_of(generator: torch.Generator) -> Tensor:
        batch = make_batch([pairs[index] for index in some(len(pairs), generator, 32).tolist()])
        logits = model(batch.src, batch.tgt_in)
        return F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD_ID)

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model, vocabulary


def parse(model: Transformer, vocabulary: WordIds, sentences: list[list[str]]) -> list[list[str]]:
    """Words of sentences to rows of brackets, decoded greedily."""
    src = pad([[*vocabulary.ids(words), EOS_ID] for words in sentences])
    return [vocabulary.words(found.ids) for found in greedy(model, src, max_len=64)]


def train_on_holes(
    sentences: Sentences, *, seed: int, steps: int = 1000, rate: float = 3e-3
) -> tuple[MaskedLanguageModel, WordIds]:
    """A masked language model of sentences that nobody has labeled; and its vocabulary, which knows <mask>."""
    torch.manual_seed(seed)
    vocabulary = WordIds([MASK, *sorted({word for words in sentences for word in words})])
    model = MaskedLanguageModel(ModelConfig(vocab_size=len(vocabulary), **SIZES, dropout=0.1))
    rows, (mask_id,) = [vocabulary.closed(words) for words in sentences], vocabulary.ids([MASK])

    def loss_of(generator: torch.Generator) -> Tensor:
        ids = pad([rows[index] for index in some(len(rows), generator).tolist()])
        holes, targets = mask_tokens(ids, model.config, mask_id, generator=generator)
        return F.cross_entropy(model(holes).flatten(0, 1), targets.flatten())

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model, vocabulary


def train_classifier(
    encoder: TextEncoder, labeled: list[Labeled], vocabulary: WordIds, *, seed: int, steps: int = 200, rate: float
) -> TextClassifier:
    """A classifier of sentences; the encoder is copied, and trained with the rest."""
    torch.manual_seed(seed)
    model = TextClassifier(deepcopy(encoder), 2)
    rows = [vocabulary.closed(words) for words, _ in labeled]
    classes = torch.tensor([label for _, label in labeled])

    def loss_of(generator: torch.Generator) -> Tensor:
        batch = some(len(rows), generator, 32)
        return F.cross_entropy(model(pad([rows[index] for index in batch.tolist()])), classes[batch])

    fit(model, loss_of, steps=steps, rate=rate, seed=seed)
    return model
