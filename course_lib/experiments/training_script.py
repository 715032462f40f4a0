"""A training script of six parts that can be exchanged one by one: what it trains, logs and measures."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import ModelConfig
from course_lib.data import IdPair, Pair, encode_pairs, pad
from course_lib.masks import padding_mask
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from course_lib.transformer import Transformer, eval_mode

SIZES = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.1, max_len=64)
SUBWORDS, ROWS, STEPS, EVERY = 500, 32, 300, 50  # most subwords; pairs in a batch; steps, and between two rows of a log
SCHEDULE = (1e-2, 50)  # peak of the rate, warm-up steps
MOST_WRITTEN = 16  # tokens of a translation

Split = tuple[Sequence[Pair], Sequence[Pair], Sequence[Pair]]  # to train on, validation, test


def texts_of(train: Sequence[Pair], valid: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The texts that the vocabulary is learned from."""
    return [text for pair in train for text in (pair.src, pair.tgt)]


def batch_of(pairs: Sequence[IdPair]) -> tuple[Tensor, Tensor, Tensor]:
    """Encoded pairs to padded ids: the source, what the decoder reads, what it must predict; (batch, length) each."""
    tgt = pad([[BOS_ID, *tgt, EOS_ID] for _, tgt in pairs])
    return pad([src for src, _ in pairs]), tgt[:, :-1], tgt[:, 1:]


def may_attend(length: int) -> Tensor:
    """(1, 1, length, length): True where a position of the decoder (row) may see another one (column)."""
    return torch.ones(length, length, dtype=torch.bool).tril()[None, None]


def rate_at(step: int, peak: float, warmup_steps: int) -> float:
    """The learning rate of a step; steps count from 1."""
    return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)


def loss_of(logits: Tensor, tgt_out: Tensor) -> Tensor:
    """Mean cross-entropy in nats; logits are (batch, tgt_len, vocab)."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)


def evaluate(model: Transformer, measure: Callable[[], float]) -> float:
    """What is measured of a model between two steps of its training."""
    model.eval()
    with torch.no_grad():
        result = measure()
    model.train()
    return result


@dataclass(frozen=True)
class Parts:
    """What the script is made of; see the functions above."""

    texts_of: Callable = texts_of
    batch_of: Callable = batch_of
    may_attend: Callable = may_attend
    rate_at: Callable = rate_at
    loss_of: Callable = loss_of
    evaluate: Callable = evaluate


@dataclass(repr=False)  # it would name the parts
class ScriptRun:
    """A training with these parts: its model, its log, and what can be measured of it.

    Args:
        parts: of the script.
        split: pairs to train on, of the validation, of the test.
        seed: of weights, batches and dropout.
        sizes: of the model, which is post-norm.
        schedule: the peak of the rate, and the number of warm-up steps.
    """

    parts: Parts
    split: Split
    seed: int = 0
    sizes: dict = field(default_factory=lambda: SIZES)
    schedule: tuple[float, int] = SCHEDULE
    log: list[dict] = field(default_factory=list)

    def __post_init__(self):
        torch.manual_seed(self.seed)
        self.tokenizer = Tokenizer.train(self.parts.texts_of(*self.split), SUBWORDS)
        self.train, self.valid, self.test = (encode_pairs(self.tokenizer, part) for part in self.split)
        self.model = Transformer(ModelConfig(self.tokenizer.vocab_size, **self.sizes))

    def batch(self, pairs: Sequence[IdPair]) -> tuple[Tensor, Tensor, Tensor]:
        """Source, decoder input and expected output of encoded pairs, as the script makes them."""
        return self.parts.batch_of(pairs)

    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(batch, tgt_len, vocab), with the script's mask; in the mode in which the model is."""
        memory, mask = self.model.encode(src), self.parts.may_attend(tgt_in.shape[1])
        x = self.model.decoder(self.model.tgt_embedding(tgt_in), memory, mask, padding_mask(src, PAD_ID))
        return self.model.generator(x)

    def loss(self, logits: Tensor, tgt_out: Tensor) -> Tensor:
        """The script's loss."""
        return self.parts.loss_of(logits, tgt_out)

    def rate(self, step: int) -> float:
        """The script's learning rate at a step."""
        return self.parts.rate_at(step, *self.schedule)

    def fit(self, steps: int = STEPS, every: int = EVERY, rows: int = ROWS) -> "ScriptRun":
        """Trains for some steps; the log gets the first of them, and then every so many."""
        rng, order = random.Random(self.seed), []
        optimizer = torch.optim.Adam(self.model.parameters(), betas=(0.9, 0.98), eps=1e-9)
        for step in range(1, steps + 1):
            if len(order) < rows:
                order = rng.sample(self.train, len(self.train))
            pairs, order = order[:rows], order[rows:]
            optimizer.param_groups[0]["lr"] = self.rate(step)
            src, tgt_in, tgt_out = self.batch(pairs)
            loss = self.loss(self.logits(src, tgt_in), tgt_out)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            if step == 1 or step % every == 0:
                row = dict(step=step, loss=loss.item(), validation=self.validate(), norm=norm.item())
                self.log.append({name: round(value, 4) for name, value in row.items()})
        return self

    def validate(self) -> float:
        """The loss on the validation pairs, as the script measures it."""
        src, tgt_in, tgt_out = self.batch(self.valid)
        return self.parts.evaluate(self.model, lambda: self.loss(self.logits(src, tgt_in), tgt_out).item())

    def translate(self, pairs: Sequence[IdPair]) -> list[str]:
        """Translations of encoded pairs, the most probable token at each step; in the mode in which the model is."""
        src = pad([src for src, _ in pairs])
        written = torch.full((len(src), 1), BOS_ID)
        for _ in range(MOST_WRITTEN):
            written = torch.cat([written, self.logits(src, written)[:, -1:].argmax(dim=-1)], dim=1)
            if (written == EOS_ID).any(dim=1).all():
                break
        rows = [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in written[:, 1:].tolist()]
        return [self.tokenizer.decode(row) for row in rows]

    def translated_right(self) -> float:
        """The share of the test sentences that are translated as they should be, as the script measures it."""
        wanted = [pair.tgt for pair in self.split[2]]

        def share() -> float:
            return sum(map(str.__eq__, self.translate(self.test), wanted)) / len(wanted)

        return self.parts.evaluate(self.model, share)


PEOPLE = {"woman": "die Frau", "child": "das Kind", "cat": "die Katze", "horse": "das Pferd", "girl": "das Mädchen"}
ACTIONS = {"sees": "sieht", "hears": "hört", "seeks": "sucht", "finds": "findet"}
MORE = [("today", "heute"), ("again", "wieder"), ("here", "hier"), ("often", "oft")]


@lru_cache(maxsize=16)
def few_pairs(seed: int) -> Split:
    """A small corpus of its own for each seed, without the grammar, which no submission may see where it is graded."""
    rng, pairs = random.Random(seed), []
    for who, whom, verb in rng.sample([*product(PEOPLE, PEOPLE, ACTIONS)], 24):
        more = rng.sample(MORE, rng.randrange(len(MORE) + 1))  # so that no two corpora have the same lengths
        english, german = (" ".join(["", *words]) for words in zip(*more, strict=True)) if more else ("", "")
        src = f"The {who} {verb} the {whom}{english}."
        pairs.append(Pair(src, f"{PEOPLE[who][0].upper()}{PEOPLE[who][1:]} {ACTIONS[verb]} {PEOPLE[whom]}{german}."))
    return pairs[:18], pairs[18:22], pairs[22:]


def retrained(part: str, answer: Callable, seed: int) -> dict:
    """What a small training does with another part in the script.

    Args:
        part: its name, see Parts.
        answer: what stands there.
        seed: of sentences, weights and dropout.

    Returns:
        rates of the steps; whether an output depends on a token that comes later; losses and validation losses as in
        the log; the validation loss once more; whether the model is in training mode in the end.
    """
    dropout = 0.3 if part == "evaluate" else 0.0
    sizes = dict(d_model=16, num_heads=2, num_layers=1, d_ff=32, dropout=dropout, max_len=64)
    run = ScriptRun(replace(Parts(), **{part: answer}), few_pairs(seed), seed, sizes, (0.02, 3))
    run.fit(steps=5, every=2, rows=6)
    return {
        "the rates": [run.rate(step) for step in range(1, 8)],
        "an output depends on a later token": sees_later(run),
        "the losses": [row["loss"] for row in run.log],
        "the validation losses": [row["validation"] for row in run.log],
        "the last one, measured again": round(run.validate(), 4),
        "the model is in training mode": run.model.training,
    }


def sees_later(run: ScriptRun) -> bool:
    """Whether an output changes with a token that the decoder reads at a later position."""
    src, tgt_in, _ = run.batch(run.valid[:1])
    changed = tgt_in.clone()
    changed[0, -1] = tgt_in[0, 1]
    with eval_mode(run.model):
        moved = (run.logits(src, tgt_in) - run.logits(src, changed)).abs().amax(dim=-1)[0]  # (tgt_len,)
    return bool((moved[:-1] > 1e-5).any())
