"""Your own corpus: a text file of two columns, and the split that keeps a sentence on one side."""

import gzip
import hashlib
import unicodedata
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from course_lib.data.corpus import Corpus, Pair
from course_lib.storage import read_bytes


def load_tsv(path: str | Path, *, valid: float = 0.05, test: float = 0.05, seed: int = 0) -> Corpus:
    """Maps a file of "source TAB target" lines to a corpus split at random by source sentence.

    UTF-8, one pair a line, no header, no quoting. Lines whose source is the same up to case and
    punctuation go to the same part, so that no test sentence was seen in training; the parts do not
    depend on the order of the lines.

    Args:
        path: a .tsv file, or a .tsv.gz file.
        valid: share of the distinct source sentences held out for validation, 0 <= valid < 1.
        test: share held out for the test, 0 <= test < 1; at least one sentence each unless 0.
        seed: another seed gives another split.

    Returns:
        The corpus, named after the file.

    Raises:
        ValueError: a malformed line (the message has its number), an empty file, too few sentences
            for the split, damaged compression, or shares outside their range.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if not (valid >= 0 and test >= 0 and valid + test < 1):
        raise ValueError(f"expected valid >= 0, test >= 0 and valid + test < 1, got {valid} and {test}")
    content = read_bytes(path)
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: expected a gzip file, got damaged bytes ({error})") from error
    pairs = parse_tsv(content, name=str(path))
    distinct = len({sentence_key(pair.src) for pair in pairs})
    num_valid, num_test = (max(1, round(share * distinct)) if share else 0 for share in (valid, test))
    if distinct <= num_valid + num_test:
        raise ValueError(
            f"{path}: too few lines: expected at least {num_valid + num_test + 1} "
            f"different source sentences for the split, got {distinct}"
        )
    parts = split_by_source(pairs, num_valid=num_valid, num_test=num_test, seed=seed)
    lines = {pair: number for number, pair in reversed(list(enumerate(pairs, start=1)))}
    return Corpus(path.name.removesuffix(".gz").removesuffix(".tsv"), *parts, lines=lines)


def parse_tsv(content: bytes, *, name: str) -> list[Pair]:
    """Maps the bytes of a two-column TSV file to pairs of stripped sentences.

    Args:
        content: UTF-8 text, with or without a byte order mark; empty lines may end it.
        name: what messages call the file.

    Returns:
        One pair a line.

    Raises:
        ValueError: an empty file, or a line with bad UTF-8, not two columns, or an empty field.
    """
    content = content.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    if not content.strip():
        raise ValueError(f"{name}: expected lines of two columns, got an empty file")
    # Not splitlines(): it also breaks at characters that may stand inside a sentence.
    return [
        _parse_line(line, place=f"{name}, line {number}")
        for number, line in enumerate(content.split(b"\n"), start=1)
    ]


def _parse_line(line: bytes, *, place: str) -> Pair:
    try:
        fields = [field.strip() for field in line.decode("utf-8").rstrip("\r").split("\t")]
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: expected UTF-8, got {line[:40]!r} ({error.reason})") from error
    if len(fields) != 2:
        shown = "<tab>".join(fields)[:80]
        raise ValueError(f"{place}: expected 2 columns separated by one tab, got {len(fields)}: {shown!r}")
    if not all(fields):
        raise ValueError(f"{place}: expected text in both columns, got an empty field: {fields!r}")
    return Pair(*fields)


@lru_cache(maxsize=500_000)  # a split asks several times for each sentence
def sentence_key(text: str) -> str:
    """Maps a sentence to its letters and digits, lower case: equal for what differs in punctuation only."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(char if char.isalnum() else " " for char in folded).split()
    return " ".join(words) or folded


def split_by_source(
    pairs: Sequence[Pair], *, num_valid: int, num_test: int, seed: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Maps pairs to train, valid and test so that all pairs of one source sentence are in one part.

    Which part a pair is in depends on the set of source sentences and the seed, never on their order.

    Args:
        pairs: all pairs; every part keeps their order.
        num_valid: number of distinct source sentences (up to `sentence_key`) in valid.
        num_test: number of distinct source sentences in test.
        seed: another seed gives another split.

    Returns:
        Train, valid and test, which together are `pairs`.
    """
    keys = [sentence_key(pair.src) for pair in pairs]
    order = sorted(set(keys), key=lambda key: hashlib.sha256(f"{seed}\n{key}".encode()).digest())
    part_of = dict.fromkeys(order, 0)
    part_of.update(dict.fromkeys(order[:num_valid], 1))
    part_of.update(dict.fromkeys(order[num_valid : num_valid + num_test], 2))
    parts: tuple[list[Pair], list[Pair], list[Pair]] = ([], [], [])
    for pair, key in zip(pairs, keys, strict=True):
        parts[part_of[key]].append(pair)
    return parts
