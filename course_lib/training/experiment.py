"""A whole experiment: corpus in, trained and scored translator out, with a log that can be plotted later."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import torch
from torch import nn

from course_lib.alternatives import model_like
from course_lib.config import model_preset
from course_lib.data import BucketedBatches, Corpus, augmented
from course_lib.storage import remove_half_written, replacing, save_tensors, step_file
from course_lib.tokenizer import Tokenizer
from course_lib.training.choice import Choice, choose
from course_lib.training.config import Experiment
from course_lib.training.distributed import rank, world_size
from course_lib.training.encoding import Encoded, encode_parts
from course_lib.training.evaluation import score
from course_lib.training.loop import History, fit
from course_lib.training.machine import describe_machine, revision
from course_lib.training.subword_dropout import SubwordDropout
from course_lib.training.warm_start import take_over
from course_lib.translator import Translator

FIRST_SNAPSHOT = 100  # step


def train_translator(
    corpus: Corpus, folder: str | Path, experiment: Experiment, *, device: str = "cpu", progress: bool = True
) -> dict:
    """Trains on a corpus, averages the last epochs, scores on held-out pairs; resumes what it finds in the folder.

    The subwords come from the training part only.

    Args:
        corpus: with train, valid and test parts.
        folder: gets config.json, tokenizer.json, model.safetensors, log.json, and checkpoints/.
        experiment: model, training, average and final scores.
        device: to train on.
        progress: show a progress bar and a line for each epoch.

    Returns:
        the log: corpus, model, training, date, commit, machine, the history's epochs, seconds and cpu_seconds; of the
        training part corpus_pairs as it was given, and train_pairs with what was made up and without what was skipped;
        once finished what was chosen, all choices with their BLEU, and the scores of the part to report. Of several
        processes, rank 0 alone chooses, scores and writes.

    Raises:
        ValueError: if the folder holds another experiment, or a part that is needed has no pairs that the model has
            positions for; single pairs that are too long are skipped, counted and told.
    """
    folder, given = Path(folder), len(corpus.train)
    if experiment.augment:
        corpus = replace(corpus, train=_with_made_up(corpus, experiment.made_up_share))
    checkpoints = folder / "checkpoints"
    _make_room(folder, checkpoints)
    translator = _untrained(corpus, experiment, device)
    start = {name: tensor.clone() for name, tensor in translator.model.state_dict().items()}
    encoded = encode_parts(corpus, ("train", "valid", experiment.report), translator)
    corpus = encoded.corpus
    if encoded.skipped and progress:
        print(encoded, flush=True)
    batches, valid = _batches(encoded, experiment, translator.tokenizer)
    history = fit(
        translator.model,
        batches,
        experiment.training,
        valid=valid,
        folder=checkpoints,
        keep=experiment.kept_epochs,
        start=experiment.start,
        on_step=_keeping(folder, experiment.snapshots),
        on_epoch=_scoring(translator, corpus, progress),
        progress=progress,
    )
    log = _header(corpus, experiment, translator) | _story(history, device)
    log |= {"corpus_pairs": given, "skipped_pairs": len(encoded.skipped)}
    if rank() > 0:
        return log
    if history.stopped == "finished":
        best, *_ = choices = choose(translator, checkpoints, experiment, corpus.valid, start)
        log |= _chosen(choices)
        translator.save_pretrained(folder, dtype=getattr(torch, experiment.storage))
        translator.model.load_state_dict(Translator.from_pretrained(folder).model.state_dict())  # as it is stored
        log[experiment.report] = _final_scores(translator, corpus, experiment, best.length_penalty, progress)
    with replacing(folder / "log.json") as path:
        path.write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
    return log


def _with_made_up(corpus: Corpus, share: float) -> list:
    """The training part and a share of the pairs made of it, none of which is held out."""
    return augmented(corpus.train, held_out=[*corpus.valid, *corpus.test], share=share)


def _make_room(folder: Path, checkpoints: Path) -> None:
    """A folder for the checkpoints, and nothing in any that a killed process had half written."""
    checkpoints.mkdir(parents=True, exist_ok=True)
    if rank() == 0:
        remove_half_written(folder, folder / "steps")


def _untrained(corpus: Corpus, experiment: Experiment, device: str) -> Translator:
    """A new model, or one with the weights of the start; its subwords are the training part's or the start's."""
    start = None if experiment.start is None else Translator.from_pretrained(experiment.start)
    if start and experiment.keep_subwords:
        tokenizer = start.tokenizer
    else:
        texts = (text for pair in corpus.train for text in (pair.src, pair.tgt))
        tokenizer = Tokenizer.train(texts, experiment.vocab_size, lowercase=experiment.lowercase)
    torch.manual_seed(experiment.training.seed)
    config = model_preset(experiment.preset, tokenizer.vocab_size, **experiment.model_changes)
    translator = Translator(model_like(experiment.architecture, config).to(device), tokenizer)
    if start:
        take_over(translator, start)
    return translator


def _batches(encoded: Encoded, experiment: Experiment, tokenizer: Tokenizer) -> tuple[BucketedBatches, BucketedBatches]:
    """Of the training pairs, and of the validation pairs."""
    run, share = experiment.training, experiment.subword_dropout
    where = dict(side=experiment.subword_dropout_side, seed=run.seed)
    noise = SubwordDropout(tokenizer, encoded.corpus.train, share, **where) if share else None
    batches = BucketedBatches(encoded.ids["train"], run.batch_tokens, seed=run.seed, noise=noise)
    return batches, BucketedBatches(encoded.ids["valid"], run.batch_tokens)


def _scoring(translator: Translator, corpus: Corpus, progress: bool) -> Callable[[nn.Module, History], dict]:
    """What is measured after each epoch, beside the loss: greedy translations of the validation part."""

    def on_epoch(model: nn.Module, history: History) -> dict:
        found = score(translator, corpus.valid, beam_size=1)
        if progress:
            print(_line(history.epochs[-1], found.bleu.score), flush=True)
        return {"valid_bleu": found.bleu.score, "valid_exact_match": found.exact_match}

    return on_epoch


def _keeping(folder: Path, snapshots: int) -> Callable[[nn.Module, History], None]:
    """Saves the weights in int8 after some steps."""

    def on_step(model: nn.Module, history: History) -> None:
        if len(history.losses) in snapshot_steps(history.total_steps, snapshots):
            save_tensors(step_file(folder, len(history.losses)), model.state_dict(), {}, dtype=torch.int8)

    return on_step


def snapshot_steps(total: int, count: int) -> list[int]:
    """Steps from the first to the last, each the same factor after the one before."""
    factor = total / FIRST_SNAPSHOT
    return [round(FIRST_SNAPSHOT * factor ** (number / max(1, count - 1))) for number in range(count)]


def _line(record: dict, valid_bleu: float) -> str:
    return (
        f"epoch {record['epoch']:3}  {record['seconds']:6.0f} s  train loss {record['train_loss']:.3f}  "
        f"valid loss {record['valid_loss']:.3f}  accuracy {record['valid_accuracy']:.3f}  BLEU {valid_bleu:.1f}"
    )


def _header(corpus: Corpus, experiment: Experiment, translator: Translator) -> dict:
    """What was asked for, as the log begins with it."""
    return {
        "corpus": corpus.name,
        "train_pairs": len(corpus.train),
        "architecture": experiment.architecture,
        "model": translator.model.config.to_dict(),
        "parameters": translator.model.config.num_parameters,
        "lowercase": translator.tokenizer.lowercase,
        "start": experiment.start,
        "keep_subwords": experiment.keep_subwords,
        "training": experiment.training.to_dict(),
        "augment": experiment.augment,
        "made_up_share": experiment.made_up_share,
        "subword_dropout": experiment.subword_dropout,
        "subword_dropout_side": experiment.subword_dropout_side,
        "averaged_epochs": experiment.kept_epochs,
        "beam_size": experiment.beam_size,
        "storage": experiment.storage,
    }


def _story(history: History, device: str) -> dict:
    """What came of it, when and where."""
    return {
        "date": date.today().isoformat(),
        "commit": revision(),
        "machine": describe_machine(device),
        "processes": world_size(),
        "epochs": history.epochs,
        "seconds": history.seconds,
        "cpu_seconds": history.cpu_seconds,
        "stopped": history.stopped,
    }


def _chosen(choices: list[Choice]) -> dict:
    """The best, and all of them with their BLEU."""
    entries = [asdict(choice) for choice in choices]
    return {name: value for name, value in entries[0].items() if name != "bleu"} | {"choices": entries}


def _final_scores(
    translator: Translator, corpus: Corpus, experiment: Experiment, penalty: float, progress: bool
) -> list[dict]:
    """Entries of greedy search and of the beam, on the part to report."""
    part, entries = experiment.report, []
    for size in (1, experiment.beam_size):
        result = score(translator, getattr(corpus, part), beam_size=size, length_penalty=penalty)
        entries.append(result.entry)
        if progress:
            print(f"{part}, beam {size}: {result.summary}")
    return entries
