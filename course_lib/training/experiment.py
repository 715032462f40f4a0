"""A whole experiment: corpus in, trained and scored translator out, with a log that can be plotted later."""

import json
from pathlib import Path

import torch

from course_lib.alternatives import AttentiveLSTM, lstm_like
from course_lib.config import ModelConfig, model_preset
from course_lib.data import BucketedBatches, Corpus, IdPair, encode_pairs
from course_lib.storage import average_checkpoints, load_weights, replacing
from course_lib.tokenizer import Tokenizer
from course_lib.training.config import TrainConfig
from course_lib.training.evaluation import score
from course_lib.training.loop import History, fit
from course_lib.training.machine import machine
from course_lib.training.run import epoch_file
from course_lib.training.subword_dropout import SubwordDropout
from course_lib.transformer import Transformer
from course_lib.translator import Translator


def train_translator(
    corpus: Corpus,
    folder: str | Path,
    *,
    preset: str,
    config: TrainConfig,
    vocab_size: int,
    lowercase: bool = False,
    architecture: str = "transformer",
    model_changes: dict | None = None,
    subword_dropout: float = 0.0,
    average: int = 1,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    report: str = "test",
    device: str = "cpu",
    progress: bool = True,
) -> dict:
    """Trains on a corpus, averages the last epochs, scores on held-out pairs; resumes what it finds in the folder.

    The subwords come from the training part only.

    Args:
        corpus: with train, valid and test parts.
        folder: gets config.json, tokenizer.json, model.safetensors, log.json, and checkpoints/.
        preset: of the model, see model_preset.
        config: of the training.
        vocab_size: most subwords.
        lowercase: learn from, and translate to, lower case only, as many papers do.
        architecture: "transformer", or "lstm": the recurrent baseline of as many parameters, whose weights are left in
            checkpoints/.
        model_changes: fields of the model's configuration that differ from the preset.
        subword_dropout: share of merges left out in training, see SubwordDropout.
        average: last epochs whose weights are averaged at the end: at most a quarter of the run, and what the folder
            has kept of it (as many as an earlier call asked for). 5 in the paper's section 6.1; with a learning rate
            that comes down to 0, 1 can be better.
        beam_size, length_penalty: of the final scores, beside greedy search.
        report: part that is scored at the end: "test", or "valid" while choosing between models.
        device: to train on.
        progress: show a progress bar and a line for each epoch.

    Returns:
        the log: corpus, model, training, machine, the history's epochs, seconds and cpu_seconds, and `report`'s scores
        once finished.

    Raises:
        ValueError: if the folder holds another experiment, a part that is needed is empty, or a sentence is longer than
            the model's positions.
    """
    if report not in ("valid", "test"):
        raise ValueError(f"report must be 'valid' or 'test', got {report!r}")
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, got {beam_size}")
    folder = Path(folder)
    checkpoints, keep = folder / "checkpoints", max(1, min(average, config.epochs // 4))
    checkpoints.mkdir(parents=True, exist_ok=True)
    texts = (text for pair in corpus.train for text in (pair.src, pair.tgt))
    tokenizer = Tokenizer.train(texts, vocab_size, lowercase=lowercase)
    torch.manual_seed(config.seed)
    model = build_model(architecture, model_preset(preset, tokenizer.vocab_size, **(model_changes or {}))).to(device)
    translator = Translator(model, tokenizer)
    encoded = {part: _encoded(corpus, part, translator) for part in ("train", "valid", report)}
    noise = SubwordDropout(tokenizer, corpus.train, subword_dropout, seed=config.seed) if subword_dropout else None
    batches = BucketedBatches(encoded["train"], config.batch_tokens, seed=config.seed, noise=noise)
    valid = BucketedBatches(encoded["valid"], config.batch_tokens)

    def on_epoch(model: Transformer, history: History) -> dict:
        found = score(translator, corpus.valid, beam_size=1)
        if progress:
            print(_line(history.epochs[-1], found.bleu.score), flush=True)
        return {"valid_bleu": found.bleu.score, "valid_exact_match": found.exact_match}

    history = fit(
        model, batches, config, valid=valid, folder=checkpoints, keep=keep, on_epoch=on_epoch, progress=progress
    )
    log = {
        "corpus": corpus.name,
        "train_pairs": len(corpus.train),
        "architecture": architecture,
        "model": model.config.to_dict(),
        "parameters": model.config.num_parameters,
        "lowercase": lowercase,
        "training": config.to_dict(),
        "subword_dropout": subword_dropout,
        "averaged_epochs": keep,
        "machine": machine(device),
        "epochs": history.epochs,
        "seconds": history.seconds,
        "cpu_seconds": history.cpu_seconds,
        "stopped": history.stopped,
    }
    if history.stopped == "finished":
        newest = [epoch_file(checkpoints, epoch) for epoch in range(config.epochs - keep + 1, config.epochs + 1)]
        newest = [path for path in newest if path.exists()]
        load_weights(model, average_checkpoints(newest))
        log["averaged_epochs"] = len(newest)
        if architecture == "transformer":
            translator.save_pretrained(folder)
        log[report] = []
        for size in (1, beam_size):
            result = score(translator, getattr(corpus, report), beam_size=size, length_penalty=length_penalty)
            log[report].append(result.entry)
            if progress:
                print(f"{report}, beam {size}: {result.summary}")
    with replacing(folder / "log.json") as path:
        path.write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
    return log


def _encoded(corpus: Corpus, part: str, translator: Translator) -> list[IdPair]:
    """A part of the corpus as ids, all of which the model has positions for; else a ValueError, before any training."""
    pairs = getattr(corpus, part)
    if not pairs:
        raise ValueError(f"the {part} part of corpus {corpus.name} has no pairs")
    encoded, longest = encode_pairs(translator.tokenizer, pairs), translator.model.config.max_len
    for pair, (src, tgt) in zip(pairs, encoded, strict=True):
        if (tokens := max(len(src), len(tgt) + 1)) > longest:
            raise ValueError(
                f"corpus {corpus.name}, {part}: a sentence has {tokens} tokens, "
                f"the model has positions for {longest}: {pair.src[:60]!r}"
            )
    return encoded


def build_model(architecture: str, config: ModelConfig) -> Transformer | AttentiveLSTM:
    """A Transformer, or the LSTM with attention that is most nearly as large; ValueError on another architecture."""
    if architecture not in ("transformer", "lstm"):
        raise ValueError(f"architecture must be 'transformer' or 'lstm', got {architecture!r}")
    return Transformer(config) if architecture == "transformer" else AttentiveLSTM(lstm_like(config))


def _line(record: dict, valid_bleu: float) -> str:
    return (
        f"epoch {record['epoch']:3}  {record['seconds']:6.0f} s  train loss {record['train_loss']:.3f}  "
        f"valid loss {record['valid_loss']:.3f}  accuracy {record['valid_accuracy']:.3f}  BLEU {valid_bleu:.1f}"
    )
