"""Byte-pair subwords: text to ids and back, on the `tokenizers` library."""

import operator
from collections.abc import Iterable
from pathlib import Path

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from course_lib.config import check_flags, check_sizes
from course_lib.storage import read_text, replacing

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
MOST_SUBWORDS = 1_000_000  # the library takes memory for all of them at once
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)


class Tokenizer:
    """Splits text into subwords and joins them again without loss, but for characters it never saw.

    "▁" opens each word that follows a space, so that joining needs no rules (and comes back as a space where a text
    has it); punctuation marks and digits stand alone. Texts are composed (Unicode NFC) and stripped first, and every
    kind of white space becomes a space.

    Args:
        backend: a trained tokenizer of the `tokenizers` library; use `train` or `load` to get one.

    Paper: section 5.1 (one byte-pair vocabulary for both languages).
    """

    def __init__(self, backend: tokenizers.Tokenizer):
        found = tuple(backend.id_to_token(i) for i in range(len(SPECIALS)))
        if found != SPECIALS:
            raise ValueError(f"the first ids must be the special tokens {SPECIALS}, got {found}")
        if None in (backend.normalizer, backend.pre_tokenizer, backend.decoder):
            raise ValueError("expected a tokenizer with normalizer, pre-tokenizer and decoder, as `train` makes")
        backend.encode_special_tokens = True  # "</s>" in a user's text is text, never the end of a sentence
        self._backend = backend

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, *, lowercase: bool = False) -> "Tokenizer":
        """Learns the merges from texts: of the training split only, both languages together.

        Args:
            texts: sentences.
            vocab_size: most subwords, the four specials and all single characters included.
            lowercase: make all texts lower case first; what is decoded is lower case then.

        Raises:
            ValueError: if there is no text, texts is one string, or vocab_size has no room for the characters.
        """
        _check_several(texts)
        check_sizes(vocab_size=vocab_size, most=MOST_SUBWORDS)
        check_flags(lowercase=lowercase)
        if vocab_size <= len(SPECIALS):
            raise ValueError(f"vocab_size must be above {len(SPECIALS)}, the number of specials, got {vocab_size}")
        backend = tokenizers.Tokenizer(models.BPE(unk_token=SPECIALS[UNK_ID]))
        cleaned = [normalizers.NFC(), normalizers.Replace(Regex(r"\s"), " "), normalizers.Strip()]
        backend.normalizer = normalizers.Sequence(cleaned + [normalizers.Lowercase()] * lowercase)
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(True)]
        )
        backend.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False)
        backend.train_from_iterator(map(_checked, texts), trainer)
        characters = sum(len(token) == 1 for token in backend.get_vocab())
        if characters == 0:
            raise ValueError("no text to learn subwords from")
        if vocab_size < characters + len(SPECIALS):
            raise ValueError(
                f"vocab_size must hold {len(SPECIALS)} specials and {characters} characters, got {vocab_size}"
            )
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        """Number of subwords, specials included."""
        return self._backend.get_vocab_size()

    @property
    def lowercase(self) -> bool:
        """Whether it makes all texts lower case."""
        normalizer = self._backend.normalizer
        return normalizer is not None and normalizer.normalize_str("A") == "a"

    def knows(self, character: str) -> bool:
        """Whether a character is in the vocabulary, as every one of the texts it learned from."""
        return character.isspace() or self._backend.token_to_id(self.normalize(character)) is not None

    def normalize(self, text: str) -> str:
        """The text as it is before it is cut: composed, with plain spaces, stripped, and in lower case if it must be.

        Raises:
            ValueError: on half a surrogate pair, which is no character: bytes that were no UTF-8 can bring one.
        """
        return self._backend.normalizer.normalize_str(_checked(text))

    def encode(self, text: str) -> list[int]:
        """Text to ids, without specials; a character outside the vocabulary becomes unk_id.

        Raises:
            ValueError: as normalize.
        """
        return self._backend.encode(_checked(text), add_special_tokens=False).ids

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """As encode, for many texts at once; texts that are one string: ValueError."""
        _check_several(texts)
        encodings = self._backend.encode_batch([_checked(text) for text in texts], add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Ids to text; specials but <unk> are left out.

        Raises:
            ValueError: on an id outside the vocabulary.
        """
        left_out = (PAD_ID, BOS_ID, EOS_ID)
        return self._backend.decoder.decode([self.token(i) for i in map(operator.index, ids) if i not in left_out])

    def tokens(self, text: str) -> list[str]:
        """Text to subword strings, without specials."""
        return [self.token(i) for i in self.encode(text)]

    def words(self, text: str) -> list[str]:
        """Text to the words and punctuation marks that are split into subwords one by one."""
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(self.normalize(text))]

    def token(self, token_id: int) -> str:
        """The subword of an id.

        Raises:
            ValueError: on an id outside the vocabulary.
        """
        token_id = operator.index(token_id)
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"expected an id in 0..{self.vocab_size - 1}, got {token_id}")
        return self._backend.id_to_token(token_id)

    def to_json(self) -> str:
        """The `tokenizers` library's own JSON."""
        return self._backend.to_str()

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """The tokenizer that `to_json` wrote.

        Raises:
            ValueError: if text is something else.
        """
        try:
            backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"not a tokenizer.json of the tokenizers library: {error}") from error
        return cls(backend)

    def save(self, path: str | Path) -> None:
        """Writes tokenizer.json; an old file is replaced only when the new one is complete."""
        with replacing(path) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Reads tokenizer.json.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file holds something else.
        """
        return cls.from_json(read_text(path))


def closed(ids: list[int]) -> list[int]:
    """The ids of a sentence with </s> behind them: so the encoder reads a source, and the decoder ends a target."""
    return [*ids, EOS_ID]


def _checked(text: str) -> str:
    """The text, if it is one that can be encoded."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{text!r} holds a lone surrogate, which is no character: was it UTF-8?") from error
    return text


def _check_several(texts: Iterable[str]) -> None:
    if isinstance(texts, str | bytes):
        raise ValueError(f"expected several texts, got one, {texts[:40]!r}: its letters are no texts")
