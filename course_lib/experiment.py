"""A whole experiment: corpus in, trained and scored translator out, with a log that can be plotted later."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.alternatives import AttentiveLSTM, lstm_like
from course_lib.checkpoint import average_checkpoints, load_weights
from course_lib.config import ModelConfig, TrainConfig
from course_lib.data import Corpus
from course_lib.data.batches import BucketedBatches, IdPair, encode_pairs
from course_lib.files import replacing
from course_lib.machine import machine
from course_lib.metrics import Bleu, bleu, exact_match, tokenized_bleu
from course_lib.presets import model_preset
from course_lib.run import epoch_file
from course_lib.subword_dropout import SubwordDropout
from course_lib.tokenizer import Tokenizer
from course_lib.training import History, fit
from course_lib.transformer import Transformer
from course_lib.translator import Translator


@dataclass(frozen=True)
class Score:
    """How a translator did on some pairs.

    Args:
        bleu: corpus BLEU with its signature.
        exact_match: share of outputs equal to a reference.
        outputs: the translations, one for each source, in the order of the pairs.
        references: of each output.
        beam_size, length_penalty: of the search.
    """

    bleu: Bleu
    exact_match: float
    outputs: list[str]
    references: list[list[str]]
    beam_size: int
    length_penalty: float

    @property
    def tokenized_bleu(self) -> Bleu:
        """Lower-cased, over Moses tokens: for comparison with papers that print it."""
        return tokenized_bleu(self.outputs, self.references)

    @property
    def entry(self) -> dict:
        """JSON values for a log: all scores with their signatures, and the search that they belong to."""
        tokenized = self.tokenized_bleu
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "bleu": self.bleu.score,
            "signature": self.bleu.signature,
            "length_ratio": self.bleu.length_ratio,
            "tokenized_bleu": tokenized.score,
            "tokenized_signature": tokenized.signature,
            "exact_match": self.exact_match,
        }

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.bleu}; {self.exact_match:.1%} exact match on {len(self.outputs)} sentences"


def score(translator: Translator, pairs, *, beam_size: int = 4, length_penalty: float = 0.6) -> Score:
    """Translates each source of the pairs once, free-running, and compares with all its targets.

    The targets are compared as the translator's tokenizer has them: composed, with plain spaces, and in lower case if
    it makes all texts so, as the signature then says.

    Args:
        translator: to be scored.
        pairs: objects with texts `src` and `tgt`; the targets of one source are references for one another.
        beam_size, length_penalty: of the search.
    """
    targets: dict[str, list[str]] = {}
    for pair in pairs:
        targets.setdefault(pair.src, []).append(pair.tgt)
    translations = translator.translate_batch(list(targets), beam_size=beam_size, length_penalty=length_penalty)
    outputs, references = [translation.text for translation in translations], list(targets.values())
    references = [[translator.tokenizer.normalize(text) for text in texts] for texts in references]
    found = bleu(outputs, references, lowercase=translator.tokenizer.lowercase)
    return Score(found, exact_match(outputs, references), outputs, references, beam_size, length_penalty)


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
