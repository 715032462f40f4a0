"""One block, many models: each family on a small task, judged by examples that it never saw."""

from functools import partial
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from course_lib.data import draw_scenes, load_course, load_digits, make_scenes, pad
from course_lib.experiments.family_models import (
    CHARACTERS,
    captions_of,
    next_loss,
    parse,
    right_share,
    train_captioner,
    train_classifier,
    train_digits,
    train_on_holes,
    train_parser,
    train_writer,
)
from course_lib.experiments.grid import Grid
from course_lib.experiments.odd_words import MASK, labeled_sentences
from course_lib.experiments.word_ids import WordIds
from course_lib.families import MaskedLanguageModel, TextEncoder, write
from course_lib.grammar import WORD, constituents, detokenize, labeled_f1, linearized, trees
from course_lib.metrics import exact_match
from course_lib.tokenizer import BOS_ID
from course_lib.transformer import eval_mode

SHORT = 10  # words of the longest sentence that the parser learns from
TAUGHT, EXAMINED = 4000, 300  # sentences
LABELS, RATES = (100, 1000), (1e-3, 3e-3)
WITH_BLANKS = (f"the boy is {MASK} .", f"the shirt is {MASK} .")


def examine_digits(seed: int) -> dict:
    """Shares of right classes."""
    train, valid, test = load_digits()
    model = train_digits(train, seed=seed)
    return {
        "valid": right_share(model, valid.pictures, valid.classes),
        "test": right_share(model, test.pictures, test.classes),
    }


def examine_captions(seed: int, **training: int) -> dict:
    """Shares of captions that are right word for word, by what is new in the pictures, and some that are wrong."""
    model = train_captioner(seed=seed, **training)
    results: dict = {"valid": _captioned(model, "known", 5000)[0]}
    for kind in ("known", "new pair", "new thing"):
        results[kind], results[f"wrong, {kind}"] = _captioned(model, kind, 6000)
    return results


def _captioned(model, kind: str, seed: int) -> tuple[float, list]:
    scenes = make_scenes(EXAMINED, seed, kind=kind)
    said, right = captions_of(model, draw_scenes(scenes, seed=seed)), [scene.caption for scene in scenes]
    wrong = [pair for pair in zip(said, right, strict=True) if pair[0] != pair[1]]
    return exact_match(said, right), wrong[:5]


def sentences_to_write(seed: int) -> tuple[list[str], list[str]]:
    """English sentences of the course corpus to learn from, and others to be examined by."""
    corpus = load_course(num_train=TAUGHT, num_valid=1, num_test=EXAMINED, seed=seed)
    return [pair.src for pair in corpus.train], [pair.src for pair in corpus.test]


def examine_writer(seed: int, steps: int = 600) -> dict:
    """Bits a character on unseen sentences, and what 100 drawn sentences consist of."""
    texts, unseen = sentences_to_write(seed)
    model = train_writer(texts, seed=seed, steps=steps)
    with torch.no_grad():
        nats = next_loss(model, pad([CHARACTERS.closed(text) for text in unseen])).item()
    start = torch.full((100, 1), BOS_ID)
    drawn = write(model, start, most=90, temperature=0.7, generator=torch.Generator().manual_seed(seed))
    written = ["".join(CHARACTERS.words(i for i in row if i > 3)) for row in drawn.tolist()]
    known = {word for text in texts for word in words_of(text)}
    words = [word for text in written for word in words_of(text)]
    return {
        "valid": -nats,
        "bits": nats / torch.tensor(2.0).log().item(),
        "known words": sum(word in known for word in words) / len(words),
        "copied": sum(text in set(texts) for text in written) / len(written),
        "written": written[:10],
    }


def words_of(text: str) -> list[str]:
    """The words of a text, without case and punctuation."""
    return [word.strip(".,?").lower() for word in text.split()]


def tree_bank(number: int, seed: int, *, shortest: int = 1, longest: int = SHORT) -> list[tuple[list[str], list[str]]]:
    """Distinct sentences of so many words, each with its linearized tree."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for tree in trees(seed):
        words, spans = constituents(tree)
        if shortest <= len(words) <= longest:
            found[detokenize(words)] = words, linearized(words, spans)
        if len(found) == number:
            return list(found.values())
    raise AssertionError("trees never end")


def examine_parser(seed: int) -> dict:
    """Labeled F1 and shares of perfect trees on unseen sentences, as long as those of training and longer.

    For each sentence, whether its tree is perfect (1 or 0) and how many of its words the row of brackets lacks; and
    five wrong rows: the sentence, what was said, and what is right.
    """
    bank = tree_bank(TAUGHT + 2 * EXAMINED, seed)
    taught, valid, test = bank[: -2 * EXAMINED], bank[-2 * EXAMINED : -EXAMINED], bank[-EXAMINED:]
    longer = tree_bank(EXAMINED, seed + 100, shortest=SHORT + 1, longest=99)
    model, vocabulary = train_parser(taught, seed=seed)
    results: dict = {}
    for name, part in (("valid", valid), ("test", test), ("longer", longer)):
        rows = parse(model, vocabulary, [words for words, _ in part])
        right = [row for _, row in part]
        results[name] = labeled_f1(rows, right)
        results[f"each perfect, {name}"] = perfect = [int(a == b) for a, b in zip(rows, right, strict=True)]
        results[f"perfect, {name}"] = sum(perfect) / len(part)
        wrong = ((words, said, row) for (words, row), said in zip(part, rows, strict=True) if row != said)
        missing = [len(words) - said.count(WORD) for (words, _), said in zip(part, rows, strict=True)]
        results[f"words missing, {name}"] = missing
        results[f"wrong, {name}"] = [[" ".join(each) for each in three] for three in islice(wrong, 5)]
    return results


def examine_masked(seed: int, *, times: int = 1, **training: int) -> dict:
    """How many holes are filled rightly, and with what; classifiers with and without what was learned from holes."""
    sentences = [words for words, odd in labeled_sentences(2 * TAUGHT * times, seed) if not odd]
    model, vocabulary = train_on_holes(sentences, seed=seed, **training)
    parts = {name: labeled_sentences(1000, seed + 100 * n) for n, name in enumerate(("train", "valid", "test"), 1)}
    ids = {name: pad([vocabulary.closed(words) for words, _ in part]) for name, part in parts.items()}
    classes = {name: torch.tensor([label for _, label in part]) for name, part in parts.items()}
    results: dict = {"valid": filled(model, ids["test"][classes["test"] == 0], *vocabulary.ids([MASK]))}
    results["fillings"] = {text: fillings(model, vocabulary, text.split()) for text in WITH_BLANKS}
    torch.manual_seed(seed + 1)
    fresh = TextEncoder(model.config)
    for labels in LABELS:
        for name, encoder in (("from scratch", fresh), ("pretrained", model.text_encoder)):
            tried = []
            for rate in RATES:
                found = train_classifier(encoder, parts["train"][:labels], vocabulary, seed=seed, rate=rate)
                valid, test = (right_share(found, ids[part], classes[part]) for part in ("valid", "test"))
                tried.append((valid, test, rate))
            _, results[f"{name}, {labels}"], results[f"rate, {name}, {labels}"] = max(tried)
    return results


def filled(model: MaskedLanguageModel, ids: Tensor, mask_id: int) -> float:
    """The share of words that the model finds if one word of each sentence, the third, is hidden."""
    holes = ids.clone()
    holes[:, 3] = mask_id
    with eval_mode(model):
        return (model(holes)[:, 3].argmax(dim=-1) == ids[:, 3]).float().mean().item()


def fillings(model: MaskedLanguageModel, vocabulary: WordIds, words: list[str], most: int = 5) -> dict[str, float]:
    """The most probable words for the hole of a sentence, each with its probability."""
    with eval_mode(model):
        logits = model(torch.tensor([vocabulary.closed(words)]))[0, 1 + words.index(MASK)]
    best = logits.softmax(dim=-1).topk(most)
    return dict(zip(vocabulary.words(best.indices.tolist()), best.values.tolist(), strict=True))


TASKS = {
    "digits": examine_digits,
    "captions": examine_captions,
    "captions, longer": partial(examine_captions, steps=4000),
    "captions, longer, more": partial(examine_captions, steps=4000, pictures=20_000),
    "captions, longest, more": partial(examine_captions, steps=12_000, pictures=20_000),
    "writer": examine_writer,
    "long writer": partial(examine_writer, steps=3000),
    "parser": examine_parser,
    "masked": examine_masked,
    "masked, longer, more": partial(examine_masked, times=10, steps=10_000),
}


def run(choices: dict, seed: int, folder: Path) -> dict:
    """What a model of one family is worth; see the functions of TASKS."""
    return TASKS[choices["task"]](seed)


GRID = Grid(
    name="families",
    question="What do five small models of the same blocks reach on examples that they never saw?",
    sides={task: {"task": task} for task in TASKS},
    run=run,
)
