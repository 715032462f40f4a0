"""How much data does it take? The same training on 1 to 32 thousand pairs of the course corpus, and BLEU after it.

Three of the sizes are trained four times as long, too: is it the data that is missing, or the training?
"""

import random
from functools import cache
from pathlib import Path

import torch

from course_lib.config import model_preset
from course_lib.data import BucketedBatches, Corpus, encode_pairs, load_course
from course_lib.experiments.grid import Grid
from course_lib.tokenizer import Tokenizer
from course_lib.training import fit, score, train_preset, validate
from course_lib.transformer import Transformer
from course_lib.translator import Translator

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)  # pairs
SEEN = 32_000  # pairs in a training, however often each of them: all sizes get the same number of steps, nearly
LONGER, LONGER_SIZES, LONGER_RATE = 128_000, (1_000, 4_000, 32_000), 0.012  # the rate that all sizes chose
VOCAB_SIZE = 1000
MODEL = dict(num_layers=1, d_model=64, d_ff=128, dropout=0.1)  # small, so that 30 trainings take minutes
TRAINING = dict(batch_tokens=1024, warmup_steps=100, precision="bfloat16")
NUM_VALID, NUM_TEST = 500, 1000


@cache
def _corpus(pairs: int) -> Corpus:
    return load_course(num_train=pairs, num_valid=NUM_VALID, num_test=NUM_TEST)


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains a small model on pairs that each seed draws from the largest corpus.

    Args:
        choices: pairs to learn from; seen, pairs in the whole training; rate, of Adam after the warm-up.
        seed: of the pairs, the weights and the batches.
        folder: is not used, a run is short.

    Returns:
        valid_bleu, by which rates are chosen; bleu and exact_match on the test part; train_loss of the last epoch, and
        valid_loss (nats a subword; each size has subwords of its own); epochs, steps, and target tokens of an epoch.
    """
    corpus = _corpus(max(SIZES))
    pairs = random.Random(seed).sample(corpus.train, choices["pairs"])
    tokenizer = Tokenizer.train((text for pair in pairs for text in (pair.src, pair.tgt)), VOCAB_SIZE)
    torch.manual_seed(seed)
    model = Transformer(model_preset("mini", tokenizer.vocab_size, **MODEL))
    config = train_preset(
        "mini", epochs=choices["seen"] // choices["pairs"], peak_lr=choices["rate"], seed=seed, **TRAINING
    )
    encoded, held_out = encode_pairs(tokenizer, pairs), encode_pairs(tokenizer, corpus.valid)
    history = fit(model, BucketedBatches(encoded, config.batch_tokens, seed=seed), config, progress=False)
    if history.stopped != "finished":
        raise KeyboardInterrupt
    translator = Translator(model, tokenizer)
    tested = score(translator, corpus.test, beam_size=1)
    return {
        "valid_bleu": score(translator, corpus.valid, beam_size=1).bleu.score,
        "bleu": tested.bleu.score,
        "exact_match": tested.exact_match,
        "train_loss": history.epochs[-1]["train_loss"],
        **validate(model, BucketedBatches(held_out, config.batch_tokens)),
        "epochs": config.epochs,
        "steps": history.total_steps,
        "tokens": sum(len(tgt) + 1 for _, tgt in encoded),
    }


GRID = Grid(
    name="corpus_size",
    question="How does BLEU grow with the size of the corpus, at the same length of training?",
    sides={f"{pairs:,} pairs": dict(pairs=pairs, seen=SEEN, rate=(0.006, 0.012)) for pairs in SIZES}
    | {f"{pairs:,} pairs, longer": dict(pairs=pairs, seen=LONGER, rate=LONGER_RATE) for pairs in LONGER_SIZES},
    run=run,
    best="valid_bleu",
)
