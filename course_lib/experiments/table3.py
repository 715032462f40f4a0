"""The paper's table 3 in miniature: one thing changed at a time, on a small corpus."""

from pathlib import Path

from course_lib.data import Corpus, load_corpus, load_course
from course_lib.experiments.grid import Grid
from course_lib.training import Experiment, train_preset, train_translator

# The model around which things change: the preset `mini` with the paper's dropout and label smoothing.
CORPORA = {
    "course": dict(pairs=20_000, vocab_size=2000, epochs=6, peak_lr=0.006, precision="bfloat16"),
    "multi30k": dict(vocab_size=4000, epochs=4, peak_lr=0.004, precision="float32"),
}
BASE = dict(preset="mini", dropout=0.1, label_smoothing=0.1)
# By the letters of the paper's rows; F is ours. A factor is of the corpus's rate: of several the validation part
# chooses, where another size or norm may ask for another rate.
SIZES = dict(factor=(0.5, 1.0, 1.5))
ROWS = {
    "base": {},
    "A 1 head": dict(num_heads=1),
    "A 2 heads": dict(num_heads=2),
    "A 8 heads": dict(num_heads=8),
    "A 16 heads": dict(num_heads=16),
    "B d_k 8": dict(key_width=8),
    "B d_k 16": dict(key_width=16),
    "C 1 layer": dict(num_layers=1) | SIZES,
    "C 4 layers": dict(num_layers=4) | SIZES,
    "C d_model 64": dict(d_model=64) | SIZES,
    "C d_model 256": dict(d_model=256) | SIZES,
    "C d_ff 64": dict(d_ff=64),
    "C d_ff 1024": dict(d_ff=1024),
    "D dropout 0": dict(dropout=0.0),
    "D dropout 0.2": dict(dropout=0.2),
    "D label smoothing 0": dict(label_smoothing=0.0),
    "D label smoothing 0.2": dict(label_smoothing=0.2),
    "E learned positions": dict(position="learned"),
    "F no positions": dict(position="none"),
    "F weights not tied": dict(tie_weights=False),
    "F post-norm": dict(norm_first=False, factor=(0.25, 0.5, 1.0)),
    "F subword dropout 0.1": dict(subword_dropout=0.1),
    "F LSTM with attention": dict(architecture="lstm", factor=(0.5, 0.75, 1.0)),
    "big": dict(d_model=256, num_heads=8, d_ff=1024, num_layers=3) | SIZES,
}
OF_TRAINING = ("label_smoothing", "precision", "epochs")
OF_EXPERIMENT = ("preset", "vocab_size", "subword_dropout", "architecture")


def train_row(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one row with one seed, and scores it on the validation part, as the paper's table does.

    Args:
        choices: corpus, preset, factor (of peak_lr); pairs of the course corpus; fields of TrainConfig, Experiment and
            ModelConfig.
        seed: of weights, batches and dropout.
        folder: for the translator and its checkpoints, with which an interrupted run goes on.

    Returns:
        parameters, cpu_seconds of training, valid_loss (nats a subword), bleu (beam 4), greedy_bleu, exact_match, and
        last_bleu, with the last epoch's weights alone.
    """
    choices = dict(choices)
    corpus = _corpus(choices.pop("corpus"), choices.pop("pairs", None))
    rate = choices.pop("peak_lr") * choices.pop("factor")
    training = {name: choices.pop(name) for name in OF_TRAINING}
    options = {name: choices.pop(name) for name in OF_EXPERIMENT if name in choices}
    if options.get("architecture") == "lstm":
        choices = {"dropout": choices["dropout"]}
    run = train_preset(options["preset"], peak_lr=rate, seed=seed, **training)
    experiment = Experiment(training=run, model_changes=choices, average=(1, 2), **options)
    log = train_translator(corpus, folder, experiment, progress=False)
    if log["stopped"] != "finished":
        raise KeyboardInterrupt
    greedy, beam = log["valid"]
    return {
        "parameters": log["parameters"],
        "cpu_seconds": log["cpu_seconds"],
        "valid_loss": log["epochs"][-1]["valid_loss"],
        "bleu": beam["bleu"],
        "greedy_bleu": greedy["bleu"],
        "exact_match": beam["exact_match"],
        "last_bleu": next(choice["bleu"] for choice in log["choices"] if choice["averaged_epochs"] == 1),
    }


def _corpus(name: str, pairs: int | None) -> Corpus:
    return load_corpus(name) if pairs is None else load_course(num_train=pairs)


def table_on(corpus: str, name: str) -> Grid:
    """All rows on one of CORPORA, as an experiment of its own."""
    base = dict(corpus=corpus, factor=1.0) | CORPORA[corpus] | BASE
    return Grid(
        name=name,
        question=f"What does each size and each ingredient of the recipe bring, on the corpus {corpus}?",
        sides={row: base | changes for row, changes in ROWS.items()},
        run=train_row,
        best="bleu",
    )


GRID = table_on("course", "table3")
