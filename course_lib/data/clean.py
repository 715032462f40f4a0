"""Cleaning sentence pairs from the web: repairs characters, drops odd and unfit pairs, and duplicates."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from course_lib.data.corpus import Pair
from course_lib.data.tsv import sentence_key

MAX_WORDS = 40
_REPAIRS = str.maketrans("āīōūŌ’‟－", "aiouO'“–", "\u00ad\u200b")
_LETTERS = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿŒœ0-9\s.,;:!?'\"„“‚‘–—%€$&+/-]*")
_END = re.compile(r"[.!?…][\"“'‘]*$")
# Stems, English and German: vulgar, sexual, slurs, self-harm. Not for a classroom, whatever the rest of the sentence.
_UNFIT = re.compile(
    r"\b(fuck|shit|bullshit|bitch|cunt|whore|slut|porn|rapist|raped|sexy|nigger|fag\b|faggot|retard|jerk\b|crap\b"
    r"|nudes?\b|nudi|naked|suicid|hanged (him|her|your|my)self|fick|scheiß|bescheiß|beschiss|fotze|schlampe|hure|nutte"
    r"|nackt|titten|wichs|piss|verpiss|kack|furz|neger\b|schwuchtel|miststück|geil|vergewaltig|arsch|selbstmord|erhängt)",
    re.IGNORECASE,
)


def clean(pairs: Sequence[Pair]) -> tuple[list[Pair], Counter]:
    """Pairs with tidy texts, without faults and duplicates, in their order; and how many were dropped for what.

    Args:
        pairs: of any source; pairs that differ in case and punctuation only count as one, the first.
    """
    kept, seen, dropped = [], set(), Counter()
    for pair in pairs:
        pair = Pair(tidy(pair.src), tidy(pair.tgt))
        key = (sentence_key(pair.src), sentence_key(pair.tgt))
        reason = fault(pair) or ("duplicate" if key in seen else None)
        if reason:
            dropped[reason] += 1
        else:
            seen.add(key)
            kept.append(pair)
    return kept, dropped


def tidy(text: str) -> str:
    """The text composed (NFC), with one kind of apostrophe and of space; no soft hyphens, invisible spaces, macrons."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_REPAIRS).split())


def fault(pair: Pair) -> str | None:
    """Why a tidy pair is no good example of a translation, or None.

    Returns:
        "unfit" for a classroom; "characters" outside Latin letters and common punctuation; "long", above MAX_WORDS
        words; "unequal" lengths; "numbers" in digits that differ; "ending", a sentence that is finished, or a question,
        on one side only.
    """
    shorter, longer = sorted(len(text.split()) for text in pair)
    checks = {
        "unfit": lambda: any(_UNFIT.search(text) for text in pair),
        "characters": lambda: not all(_LETTERS.fullmatch(text) for text in pair),
        "long": lambda: longer > MAX_WORDS,
        "unequal": lambda: longer > 2.2 * shorter + 2,
        "numbers": lambda: all(map(_numbers, pair)) and _numbers(pair.src) != _numbers(pair.tgt),
        "ending": lambda: _ending(pair.src) != _ending(pair.tgt),
    }
    return next((name for name, found in checks.items() if found()), None)


def _numbers(text: str) -> list[int]:
    """What is written in digits, without separators: 2:30 and 2.30 are the same."""
    return sorted(int(digits) for digits in re.findall(r"\d+", re.sub(r"(?<=\d)[.,:](?=\d)", "", text)))


def _ending(text: str) -> str:
    """Whether the text ends a sentence, and asks."""
    end = _END.search(text)
    return "" if not end else "?" if "?" in end.group() else "."
