"""What each ingredient of the recipe brings: the same training again and again, with one thing changed at a time."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from course_lib.data import Corpus
from course_lib.storage import load_tensors, load_weights, replacing
from course_lib.training.config import Experiment, train_preset
from course_lib.training.evaluation import score
from course_lib.training.experiment import train_translator
from course_lib.training.run import epoch_file
from course_lib.translator import Translator

# The whole recipe, and what is changed in it: fields of Experiment, of TrainConfig and of ModelConfig.
RECIPE = dict(preset="tiny", vocab_size=4000, average=5, beam_size=5)
VARIANTS = {
    "the whole recipe": {},
    "subword dropout 0.1": {"options": dict(subword_dropout=0.1)},
    "no dropout": {"model": dict(dropout=0.0)},
    "dropout 0.3": {"model": dict(dropout=0.3)},
    "no label smoothing": {"training": dict(label_smoothing=0.0)},
    "no weight tying": {"model": dict(tie_weights=False)},
    "post-norm": {"model": dict(norm_first=False)},
    "post-norm, a quarter of the rate": {"model": dict(norm_first=False), "training": dict(peak_lr=0.001)},
    "LSTM with attention": {"options": dict(architecture="lstm")},
}
WITHOUT_AVERAGING = "no averaging"  # of the whole recipe's runs, the last epoch instead of the mean


def run_benchmark(
    corpus: Corpus,
    folder: str | Path,
    *,
    seeds: Sequence[int],
    epochs: int,
    variants: Sequence[str] = tuple(VARIANTS),
    device: str = "cpu",
    progress: bool = True,
) -> list[dict]:
    """Trains and scores every variant with every seed, on the validation part; goes on where it was stopped.

    Args:
        corpus: with train and valid parts; the test part is not read.
        folder: gets a folder for each run, and results.json with all of them, those of earlier calls too.
        seeds: of the runs.
        epochs: of each run.
        variants: names in VARIANTS.
        device: to train on.
        progress: show a progress bar and a line for each epoch.

    Returns:
        for each finished run its variant, seed, parameters, epochs, cpu_seconds, valid_loss, and scores, see
        Score.entry. Fewer than asked for if the training was interrupted.

    Raises:
        ValueError: on an unknown variant, or if the folder has one of these runs of another corpus or length.
    """
    if unknown := [name for name in variants if name not in VARIANTS]:
        raise ValueError(f"unknown variants {unknown}; there are {', '.join(VARIANTS)}")
    folder, results = Path(folder), []
    for seed in seeds:
        for name in variants:
            if progress:
                print(f"{name}, seed {seed}", flush=True)
            run = folder / f"{name.replace(' ', '-')}-{seed}"
            log = _train(corpus, run, name, seed, epochs, device, progress)
            if log["stopped"] != "finished":
                return results
            results.append(_result(name, seed, log, log["valid"]))
            if name == "the whole recipe":
                results.append(_result(WITHOUT_AVERAGING, seed, log, _last_epoch(run, corpus, epochs, device)))
            _keep(results, folder / "results.json")
    return results


def _keep(results: list[dict], path: Path) -> None:
    """Writes the results into the file, over older ones of the same variants and seeds."""
    older = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    kept = {(result["variant"], result["seed"]): result for result in older + results}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(list(kept.values()), indent=1) + "\n", encoding="utf-8")


def _train(corpus, run, name, seed, epochs, device, progress) -> dict:
    change = VARIANTS[name]
    training = replace(train_preset(RECIPE["preset"], epochs=epochs, seed=seed), **change.get("training", {}))
    options = RECIPE | dict(model_changes=change.get("model", {}), report="valid") | change.get("options", {})
    experiment = Experiment(training=training, **options)
    return train_translator(corpus, run, experiment, device=device, progress=progress)


def _last_epoch(run: Path, corpus: Corpus, epochs: int, device: str) -> list[dict]:
    """Scores of the last epoch's weights alone."""
    translator = Translator.from_pretrained(run)
    load_weights(translator.model, load_tensors(epoch_file(run / "checkpoints", epochs))[0])
    translator.model.to(device)
    return [score(translator, corpus.valid, beam_size=RECIPE["beam_size"]).entry]


def _result(name: str, seed: int, log: dict, scores: list[dict]) -> dict:
    return {
        "variant": name,
        "seed": seed,
        "parameters": log["parameters"],
        "epochs": len(log["epochs"]),
        "cpu_seconds": log["cpu_seconds"],
        "valid_loss": log["epochs"][-1]["valid_loss"],
        "scores": scores,
    }
