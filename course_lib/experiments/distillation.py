"""What a student of a third of the size learns from a teacher: from its probabilities, and from its translations."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.compression import translated, word_level
from course_lib.config import ModelConfig, model_preset
from course_lib.data import BucketedBatches, Pair, encode_pairs, load_course
from course_lib.experiments.grid import Grid
from course_lib.storage import replacing
from course_lib.training import batch_loss, fit, score, train_preset, validate
from course_lib.transformer import Transformer
from course_lib.translator import Translator

TEACHER, ITS_PAIRS = "course", 60_000  # the shipped translator, and how many pairs of the corpus it has learned from
LONGEST = 6  # words of a source: short sentences are learned in seconds
LABELED, UNLABELED, HELD_OUT = 250, 4_000, 200
STUDENT = dict(d_model=64, d_ff=128)  # half of the teacher's widths
BATCH_TOKENS, WARMUP, STEPS, LONGER = 256, 60, 300, 3000


@dataclass(frozen=True)
class Texts:
    """What can be learned from, and what is scored; no two parts share a sentence of either language.

    Args:
        labeled: pairs with their true translations, few of those that the teacher has learned from.
        unlabeled: pairs that neither the teacher nor a student has learned from; only the sources are for students.
        valid, test: held out from teacher and students.
        by_teacher: the teacher's translations of what is labeled and what is not, in this order.
    """

    labeled: list[Pair]
    unlabeled: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    by_teacher: list[Pair]


def make_texts() -> Texts:
    """The parts of the course corpus, and what the teacher makes of them; takes a quarter of a minute."""
    corpus, other = load_course(num_train=ITS_PAIRS), load_course(num_train=5 * UNLABELED, seed=1)
    known = [*corpus.train, *corpus.valid, *corpus.test]
    sources, targets = {pair.src for pair in known}, {pair.tgt for pair in known}
    new = [pair for pair in other.train if pair.src not in sources and pair.tgt not in targets]
    parts = ((corpus.train, LABELED), (new, UNLABELED), (corpus.valid, HELD_OUT), (corpus.test, HELD_OUT))
    parts = [[pair for pair in part if len(pair.src.split()) <= LONGEST][:size] for part, size in parts]
    teacher = Translator.from_pretrained(TEACHER)
    return Texts(*parts, translated(teacher, [pair.src for part in parts[:2] for pair in part]))


def texts(folder: Path) -> Texts:
    """As make_texts, which is asked once: the folder of the experiment keeps the answer for all runs."""
    path = folder / "texts.json"
    if not path.exists():
        parts = {name: [pair[:2] for pair in part] for name, part in vars(make_texts()).items()}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(parts), encoding="utf-8")
    return Texts(**{name: [Pair(*pair) for pair in part] for name, part in json.loads(path.read_text()).items()})


def student_config(vocab_size: int) -> ModelConfig:
    """The teacher's shape, narrower."""
    return model_preset("mini", vocab_size, **STUDENT)


def pairs_to_learn(given: Texts, material: str) -> list[Pair]:
    """The pairs of a side.

    Args:
        given: all texts.
        material: "true" (the labeled pairs), "teacher" (the same sources in the teacher's translation), "more teacher"
            (the labeled pairs and all unlabeled sources in the teacher's translation), or "more true" (with the true
            translations instead: what the teacher must replace).
    """
    of_labeled, of_unlabeled = given.by_teacher[: len(given.labeled)], given.by_teacher[len(given.labeled) :]
    return {
        "true": given.labeled,
        "teacher": of_labeled,
        "more teacher": [*given.labeled, *of_unlabeled],
        "more true": [*given.labeled, *given.unlabeled],
    }[material]


def train_student(
    pairs: list[Pair], *, rate: float, steps: int = STEPS, weight: float = 0.0, smoothing: float = 0.1, seed: int = 0
) -> Translator:
    """A student after some steps, whatever the number of pairs.

    Args:
        pairs: to learn from.
        rate: peak of the learning rate.
        steps: of the whole run; the rate falls to 0 at its end.
        weight: of the teacher's probabilities for each word, see word_level.
        smoothing: of the labels, in what of the loss is not the teacher's.
        seed: of weights and batches.
    """
    teacher = Translator.from_pretrained(TEACHER)
    torch.manual_seed(seed)
    student = Transformer(student_config(teacher.tokenizer.vocab_size))
    batches = _Limited(encode_pairs(teacher.tokenizer, pairs), BATCH_TOKENS, seed=seed)
    batches.steps = steps
    sizes = dict(epochs=math.ceil(steps / len(batches.plan(0))), batch_tokens=BATCH_TOKENS, warmup_steps=WARMUP)
    run = train_preset("mini", peak_lr=rate, seed=seed, label_smoothing=smoothing, **sizes)
    loss = word_level(teacher.model, weight=weight) if weight else batch_loss
    fit(student, batches, run, loss=loss, progress=False)
    return Translator(student, teacher.tokenizer)


class _Limited(BucketedBatches):
    """Batches that end after so many steps, within an epoch if need be."""

    steps: int

    def plan(self, epoch: int) -> list[list[int]]:
        whole = super().plan(epoch)
        return whole[: max(0, self.steps - epoch * len(whole))]


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains and scores one student; see train_student.

    Args:
        choices: material, rate, weight, smoothing, steps.
        seed: of weights and batches.
        folder: of the run; the texts are kept beside it.

    Returns:
        valid (minus the loss on the validation part, nats a token), test (share of exact matches, greedy), bleu (of
        the test part), pairs, parameters.
    """
    choices, given = dict(choices), texts(folder.parent)
    pairs = pairs_to_learn(given, choices.pop("material"))
    student = train_student(pairs, seed=seed, **choices)
    valid = BucketedBatches(encode_pairs(student.tokenizer, given.valid), BATCH_TOKENS)
    test = score(student, given.test, beam_size=1)
    return {
        "valid": -validate(student.model, valid)["valid_loss"],
        "test": test.exact_match,
        "bleu": test.bleu.score,
        "pairs": len(pairs),
        "parameters": student.model.config.num_parameters,
    }


RATES = (0.005, 0.01)
GRID = Grid(
    name="distillation",
    question="What does a student of a third of the size learn from its teacher, beside 250 true pairs?",
    sides={
        "alone": dict(material="true", rate=RATES),
        "word level": dict(material="true", rate=RATES, weight=0.5),
        "sequence level, same sentences": dict(material="teacher", rate=RATES),
        "sequence level, 4,000 more": dict(material="more teacher", rate=RATES),
        "4,000 more true pairs": dict(material="more true", rate=RATES),
        "alone, longer": dict(material="true", rate=RATES, steps=LONGER),
        "word level, longer": dict(material="true", rate=RATES, weight=0.5, steps=LONGER),
        "sequence level, 4,000 more, longer": dict(material="more teacher", rate=RATES, steps=LONGER),
        "both levels, 4,000 more, longer": dict(material="more teacher", rate=RATES, weight=(0.5, 1.0), steps=LONGER),
        "4,000 more true pairs, longer": dict(material="more true", rate=RATES, steps=LONGER),
        "sequence level, 4,000 more, without smoothing, longer": dict(
            material="more teacher", rate=RATES, smoothing=0.0, steps=LONGER
        ),
    },
    run=run,
)
