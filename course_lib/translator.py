"""Text in, translation out: a model and its tokenizer, together in one folder."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from course_lib.alternatives import config_from_values, config_to_values, model_of
from course_lib.data import pad
from course_lib.decoding import Hypothesis, beam_search, check_search, greedy, normalized
from course_lib.preprocessing import PLACEHOLDERS, Piece, Prepared, doubts, prepare
from course_lib.recording import AttentionMaps, record_attention
from course_lib.storage import (
    PRETRAINED,
    SHIPPED,
    check_enough,
    check_files,
    hashes,
    load_tensors,
    load_weights,
    read_as,
    replacing,
    save_tensors,
    saved_steps,
    translator_folder,
    weights_file,
)
from course_lib.tokenizer import Tokenizer, closed
from course_lib.transformer import Transformer, eval_mode

__all__ = ["PRETRAINED", "SHIPPED", "Translation", "Translator", "saved_steps"]

BATCH_SENTENCES = 64


@dataclass(frozen=True)
class Translation:
    """A translated sentence; of a long text all sentences, one after another.

    Args:
        text: the translation.
        src_tokens: subwords of the source, with the closing </s>.
        tgt_tokens: subwords of the translation, with the closing </s> if it has one.
        score: log-probability over the length penalty, in nats; higher is better. Of several sentences the mean.
        attention: weights of every layer, (heads, queries, keys) each, if asked for. Rows of `decoder` and `cross`
            belong to tgt_tokens, the tokens they predict; keys of `decoder` to <s> and the tokens before.
        remarks: what the reader should know: a long text that was split, numbers that got lost, and the like.
    """

    text: str
    src_tokens: list[str]
    tgt_tokens: list[str]
    score: float
    attention: AttentionMaps | None = None
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Translator:
    """Translates plain text.

    Args:
        model: a trained Transformer, or one of the alternatives.
        tokenizer: the one it was trained with.

    Raises:
        ValueError: if their vocabularies differ.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer):
        if model.config.vocab_size != tokenizer.vocab_size:
            raise ValueError(f"the model has {model.config.vocab_size} subwords, the tokenizer {tokenizer.vocab_size}")
        self.model, self.tokenizer = model, tokenizer

    def translate(
        self, text: str, *, beam_size: int = 4, length_penalty: float = 0.6, attention: bool = False
    ) -> Translation:
        """The translation of a sentence, or of a text.

        A translator that was trained with `augment` takes what people type, see `preprocessing.prepare`.

        Args:
            text: one sentence; that kind of translator splits a longer text into sentences.
            beam_size: 1 is greedy search.
            length_penalty: see beam_search.
            attention: record the weights as well; the translation is the same.

        Raises:
            ValueError: if text is not text, empty, of another script, or longer than the model's positions; with
                attention, if it is more than one sentence; on a beam_size or length_penalty that is no such number.
        """
        if attention:
            self.sentence(text)
        return self._translations([text], beam_size, length_penalty, attention)[0]

    def translate_batch(
        self, texts: Sequence[str], *, beam_size: int = 4, length_penalty: float = 0.6
    ) -> list[Translation]:
        """The translations of many texts, the same as one by one, but faster; texts that are one string: ValueError."""
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValueError(f"expected several texts, got {texts!r}; use translate for one")
        return self._translations(list(texts), beam_size, length_penalty, False)

    def prepare(self, text: str) -> Prepared:
        """A text as the model reads it, see `prepare`; as it is, where the model has not learned placeholders."""
        _check_text(text)
        if all(map(self.tokenizer.knows, PLACEHOLDERS)):
            return prepare(text, self.tokenizer.knows, lambda word: len(self.tokenizer.encode(word)))
        return Prepared((Piece(text),), ())

    def sentence(self, text: str) -> Piece:
        """As prepare, for a text that is looked into and so must be one sentence; ValueError if it is several."""
        pieces = self.prepare(text).pieces
        if len(pieces) > 1:
            raise ValueError(f"one sentence can be looked into at a time, got {len(pieces)}: {text[:60]!r}")
        return pieces[0]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Source sentences as the model reads them: ids, closed by </s>.

        Raises:
            ValueError: if a text is not text, or has no token.
        """
        for text in texts:
            _check_text(text)
        ids = self.tokenizer.encode_batch(list(texts))
        for text, row in zip(texts, ids, strict=True):
            if not row:
                raise ValueError(f"an empty sentence cannot be translated: {text!r}")
        return [closed(row) for row in ids]

    def save_pretrained(self, folder: str | Path, *, dtype: torch.dtype = torch.float32) -> None:
        """Writes config.json, tokenizer.json and model.safetensors; old files stay until all three are complete.

        Args:
            folder: is made if missing.
            dtype: of the weights on disk; torch.float16 takes half the bytes, torch.int8, with a scale for each row of
                a matrix, a quarter.
        """
        folder = Path(folder)
        with replacing(folder / "config.json") as config, replacing(folder / "tokenizer.json") as tokenizer:
            config.write_text(json.dumps(config_to_values(self.model.config), indent=2) + "\n", encoding="utf-8")
            self.tokenizer.save(tokenizer)
            beside = hashes({"config.json": config, "tokenizer.json": tokenizer})
            save_tensors(weights_file(folder), self.model.state_dict(), beside, dtype=dtype)

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path = "everyday", *, step: int | None = None) -> "Translator":
        """Reads a translator that comes with the course, or one that save_pretrained wrote.

        Args:
            name_or_folder: "everyday", for short everyday sentences; "course", small, for sentences of the course
                corpus only; or a folder.
            step: of the training, to see what it knew by then: one of `saved_steps`; None for the finished one.

        Raises:
            FileNotFoundError: if there is no such translator, or a file is missing.
            ValueError: if a file is damaged or belongs to something else, or on a step that was not kept.
        """
        folder = translator_folder(name_or_folder)
        config = read_as(folder / "config.json", lambda text: config_from_values(json.loads(text)))
        tokenizer = read_as(folder / "tokenizer.json", Tokenizer.from_json)
        path = weights_file(folder, step)
        tensors, beside = load_tensors(path)
        check_enough(path, tensors, config.num_parameters)  # before memory is taken for them
        model = model_of(config)
        load_weights(model, tensors)
        check_files(folder, {name: beside.get(name) for name in ("config.json", "tokenizer.json")})
        return cls(model.eval(), tokenizer)

    def _translations(
        self, texts: list[str], beam_size: int, length_penalty: float, attention: bool
    ) -> list[Translation]:
        """Of each text, made of the translations of its pieces."""
        check_search(beam_size, length_penalty)
        prepared = [self.prepare(text) for text in texts]
        pieces = [piece for text in prepared for piece in text.pieces]
        found = iter(zip(pieces, self._pieces(pieces, beam_size, length_penalty, attention), strict=True))
        return [
            _joined(text, list(islice(found, len(asked.pieces))), asked.remarks)
            for text, asked in zip(texts, prepared, strict=True)
        ]

    def _pieces(self, pieces: list[Piece], beam_size: int, length_penalty: float, attention: bool) -> list[Translation]:
        """Of each piece, the best hypothesis of those that lose least; pieces of about the same length together."""
        ids = self.encode([piece.text for piece in pieces])
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        translations: list[Translation | None] = [None] * len(ids)
        for start in range(0, len(order), BATCH_SENTENCES):
            chunk = order[start : start + BATCH_SENTENCES]
            src = pad([ids[index] for index in chunk]).to(next(self.model.parameters()).device)
            for index, beams in zip(chunk, self._search(src, beam_size, length_penalty), strict=True):
                best = min(beams, key=lambda beam: pieces[index].losses(self.tokenizer.decode(beam.ids)))
                maps = self._attention(src, best) if attention else None
                translations[index] = self._translation(ids[index], best, maps)
        return translations

    def _search(self, src: Tensor, beam_size: int, length_penalty: float) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, the best first."""
        if beam_size == 1:
            return [
                [replace(best, score=normalized(best.log_prob, len(best.ids) + best.finished, length_penalty))]
                for best in greedy(self.model, src)
            ]
        return beam_search(self.model, src, beam_size=beam_size, length_penalty=length_penalty)

    def _attention(self, src: Tensor, best: Hypothesis) -> AttentionMaps:
        """The weights of one parallel pass over the finished translation, which equal those of the search."""
        config = self.model.config
        tgt_in = torch.tensor([[config.bos_id, *best.outputs(config.eos_id)[:-1]]], device=src.device)
        with eval_mode(self.model), record_attention(self.model) as maps:
            self.model(src, tgt_in)
        return AttentionMaps(*([weights[0] for weights in part] for part in (maps.encoder, maps.decoder, maps.cross)))

    def _translation(self, ids: list[int], best: Hypothesis, maps: AttentionMaps | None) -> Translation:
        return Translation(
            text=self.tokenizer.decode(best.ids),
            src_tokens=[self.tokenizer.token(i) for i in ids],
            tgt_tokens=[self.tokenizer.token(i) for i in best.outputs(self.model.config.eos_id)],
            score=best.score,
            attention=maps,
        )


def _joined(text: str, found: list[tuple[Piece, Translation]], remarks: tuple[str, ...]) -> Translation:
    """One translation of all pieces of a text, with what was copied in its place."""
    whole = "".join(piece.restore(part.text) + piece.gap for piece, part in found).strip()
    return Translation(
        text=whole,
        src_tokens=[token for piece, part in found for token in piece.restore_tokens(part.src_tokens)],
        tgt_tokens=[token for piece, part in found for token in piece.restore_tokens(part.tgt_tokens)],
        score=sum(part.score for _, part in found) / len(found),
        attention=found[0][1].attention,
        remarks=(*remarks, *doubts(text, whole, [original for piece, _ in found for original in piece.copied])),
    )


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise ValueError(f"expected the text of a sentence, got {text!r}")
