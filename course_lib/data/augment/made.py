"""Sentence pairs made from others, or from templates: names, numbers, times, prices, dates, addresses, haste."""

import random
import re
from collections.abc import Callable, Iterator, Sequence

from course_lib.data.augment import fills
from course_lib.data.augment.words import (
    ADDRESSES,
    CITIES,
    CLOCKS,
    COUNTS,
    DATES,
    DAYS,
    DIGITS,
    MEN,
    NUMBER_WORDS,
    PRICES,
    RANGES,
    SHARES,
    SURNAMES,
    WOMEN,
    templates,
)
from course_lib.data.corpus import Pair
from course_lib.preprocessing import PLACEHOLDERS

Change = Callable[[Pair, random.Random], Pair | None]
_TOM, _MARY, _CITY = re.compile(r"\bTom\b"), re.compile(r"\bMary\b"), re.compile(r"\bBoston\b|\bLondon\b|\bParis\b")
_DATIVE = re.compile(
    r"gefällt|gefiel|gelang|gelingt|fehl|schmeckt|passiert|geht es|geht's|ging es|tut|tat|gehör|ist .*kalt"
)
_TIME = re.compile(r"\b(\d{1,2}):(\d\d)\b(?!\s*[ap]\.m)"), re.compile(r"\b\d{1,2}[:.]\d\d( Uhr)?")
_NOT_NUMBERS = re.compile(r"o'clock|Uhr|half|halb|\d|-|hundert|thousand|one of|\bat\b|\bum\b")
_SMALL_IN_GERMAN = frozenset("Ich Du Er Es Wir Das Dies Der Die Mein Meine Dein Deine Was Wo Wie Warum".split())
_SMALL = frozenset("It He She They We You The A This That There My His Her What Where How Why Do Don't Please".split())
_IN_YEAR = re.compile(r"\b(1[5-9]|20)\d\d\b")


def augmented(pairs: Sequence[Pair], *, seed: int = 0) -> list[Pair]:
    """The pairs, and after them the made ones: about a quarter as many.

    Args:
        pairs: everyday sentences, as of Tatoeba's training part.
        seed: of all choices.
    """
    made = [pair for name in KINDS for pair in _some(name, pairs, random.Random(f"{seed}/{name}"))]
    rng = random.Random(f"{seed}/joined")
    several = (joined(*rng.sample(pairs, 2), rng) for _ in range(round(JOINED * len(pairs))))
    return [*pairs, *made, *(pair for pair in several if pair is not None)]


def _some(name: str, pairs: Sequence[Pair], rng: random.Random) -> Iterator[Pair]:
    share, change = KINDS[name]
    for pair in rng.sample(list(pairs), round(share * len(pairs))):
        found = change(pair, rng)
        if found is not None:
            yield found


def lower_case(pair: Pair, rng: random.Random) -> Pair:
    """The source as one types it in haste: i live in berlin"""
    src, tgt = pair.src.lower(), pair.tgt
    return unfinished(Pair(src, tgt), rng) if rng.random() < 0.6 else Pair(src, tgt)


def loud_word(pair: Pair, rng: random.Random) -> Pair:
    """One word in capitals: I am VERY tired."""
    words = pair.src.split()
    spot = rng.randrange(len(words))
    words[spot] = words[spot].upper()
    return Pair(" ".join(words), pair.tgt)


def unfinished(pair: Pair, rng: random.Random) -> Pair:
    """Without the full stop on either side; a question mark is left out of the source only."""
    src = re.sub(r"(?<!\.)[.?]$", "", pair.src)
    return Pair(src, pair.tgt if pair.src.endswith("?") else re.sub(r"(?<!\.)\.$", "", pair.tgt))


def joined(pair: Pair, other: Pair, rng: random.Random) -> Pair | None:
    """Two short ones in one, joined by a space, a dash, a semicolon or three dots."""
    short = len(pair.src) < 90 and len(other.src) < 45
    if not (short and pair.src.endswith(".") and pair.tgt.endswith(".") and other.src[-1] in ".!?"):
        return None
    if rng.random() < 0.6:
        return Pair(f"{pair.src} {other.src}", f"{pair.tgt} {other.tgt}")
    between = rng.choice([(" - ", " – "), ("; ", "; "), ("... ", "... ")])
    first_word = other.src.split()[0]
    small = first_word in _SMALL and rng.random() < 0.4
    second = first_word.lower() + other.src[len(first_word) :] if small else other.src
    german, after = other.tgt, re.split(r"\W", other.tgt)[0]
    if between[1] != "... " and after in _SMALL_IN_GERMAN:
        german = after.lower() + other.tgt[len(after) :]
    return Pair(pair.src[:-1] + between[0] + second, pair.tgt[:-1] + between[1] + german)


def other_name(pair: Pair, rng: random.Random) -> Pair | None:
    """Another name for Tom, Mary or Boston."""
    src, tgt = pair
    for pattern, names in ((_TOM, MEN), (_MARY, WOMEN), (_CITY, CITIES)):
        found = {*pattern.findall(src)}
        if len(found) == 1 and found <= {*re.findall(r"\w+", tgt)}:
            name = fills.invented(rng) if rng.random() < 0.45 else rng.choice(names)
            if rng.random() < 0.2:
                name += " " + (fills.invented(rng) if rng.random() < 0.5 else rng.choice(SURNAMES))
            src, tgt = pattern.sub(name, src), pattern.sub(name, tgt)
            of = next(iter(found)) + "s"
            if re.search(rf"\b{of}\b", tgt) or re.search(rf"{name}'s", src):
                if name[-1] in "sxzß":
                    return None
                tgt = re.sub(rf"\b{of}\b", name + "s", tgt)
    return None if src == pair.src else Pair(src, tgt)


def with_title(pair: Pair, rng: random.Random) -> Pair | None:
    """Mr. and Ms. for Tom and Mary where they are the subject of the sentence: elsewhere it is Herrn."""
    src, tgt = pair
    titles = {
        "Tom": (("Mr.", "Herr"), ("Dr.", "Dr."), ("Professor", "Professor")),
        "Mary": (("Mrs.", "Frau"), ("Ms.", "Frau")),
    }
    first = src.split()[0]
    others = re.findall(r"\b(Tom|Toms|Mary|Maria|Marys|Marias)\b", tgt)
    if first not in titles or not tgt.startswith(first + " ") or len(others) != 1 or _DATIVE.search(tgt):
        return None
    english, german = rng.choice(titles[first])
    name = fills.invented(rng) if rng.random() < 0.5 else rng.choice(SURNAMES)
    return Pair(f"{english} {name}{src[len(first) :]}", f"{german} {name}{tgt[len(first) :]}")


def something(pair: Pair, rng: random.Random) -> Pair | None:
    """In the place of a name what cannot be read and is to be copied; see preprocessing.PLACEHOLDERS."""
    if len(_TOM.findall(pair.src)) != 1 or len(_TOM.findall(pair.tgt)) != 1 or "Mary" in pair.src:
        return None
    place = rng.choice(PLACEHOLDERS)
    return Pair(_TOM.sub(place, pair.src), _TOM.sub(place, pair.tgt))


def other_number(pair: Pair, rng: random.Random) -> Pair | None:
    """Digits for a number word that stands on both sides, or another year."""
    years = _IN_YEAR.findall(pair.src)
    if len(years) == 1 and len(re.findall(r"\d+", pair.src)) == 1 and _IN_YEAR.search(pair.src)[0] in pair.tgt:
        old, new = _IN_YEAR.search(pair.src)[0], str(rng.randrange(1500, 2040))
        return Pair(pair.src.replace(old, new), pair.tgt.replace(old, new))
    if _NOT_NUMBERS.search(pair.src) or _NOT_NUMBERS.search(pair.tgt):
        return None
    found = [word for word in NUMBER_WORDS if re.search(rf"\b{word}\b", pair.src)]
    if len(found) != 1 or not re.search(rf"\b{NUMBER_WORDS[found[0]]}\b", pair.tgt):
        return None
    english, german = fills.number(rng)
    return Pair(
        re.sub(rf"\b{found[0]}\b", english, pair.src), re.sub(rf"\b{NUMBER_WORDS[found[0]]}\b", german, pair.tgt)
    )


def other_time(pair: Pair, rng: random.Random) -> Pair | None:
    """Another time of day, day or date."""
    english, german = _TIME
    if len(english.findall(pair.src)) == 1 and len(german.findall(pair.tgt)) == 1:
        said, written = fills.clock(rng)
        return Pair(english.sub(said, pair.src).replace("..", "."), german.sub(written, pair.tgt))
    for word, other in DAYS.items():
        if f"on {word}" in pair.src and f"am {other}" in pair.tgt and pair.src.count("day") == 1:
            said, written = fills.date(rng)
            return Pair(pair.src.replace(f"{word}", said), pair.tgt.replace(other, written))
    hour = re.search(r"\bat (\w+)( o'clock)?\b", pair.src)
    if hour and hour[1] in NUMBER_WORDS:
        german_hour = re.search(rf"\bum {NUMBER_WORDS[hour[1]]}( Uhr)?\b", pair.tgt)
        if german_hour:
            other = rng.randrange(1, 13)
            tgt = pair.tgt.replace(german_hour[0], f"um {other} Uhr", 1)
            return Pair(pair.src.replace(hour[0], f"at {other}{hour[2] or ''}", 1), tgt)
    return None


def template(table: str, fill: Callable[[random.Random], tuple[str, str]]) -> Change:
    """A line of the table with something made up in it; the pair plays no part."""
    lines = templates(table)

    def change(pair: Pair, rng: random.Random) -> Pair:
        (src, tgt), both = rng.choice(lines), [fill(rng), fill(rng)]
        while both[0] == both[1]:
            both[1] = fill(rng)
        return Pair(src.format(*(one for one, _ in both)), tgt.format(*(one for _, one in both)))

    return change


JOINED = 0.06
KINDS: dict[str, tuple[float, Change]] = {  # share of the pairs that are tried, and what is made of them
    "lower case": (0.04, lower_case),
    "loud word": (0.015, loud_word),
    "unfinished": (0.02, unfinished),
    "other name": (0.2, other_name),
    "with title": (0.15, with_title),
    "something": (0.02, something),
    "other number": (0.8, other_number),
    "yet another number": (0.8, other_number),
    "other time": (0.8, other_time),
    "yet another time": (0.8, other_time),
    "price": (0.012, template(PRICES, fills.price)),
    "share": (0.003, template(SHARES, fills.share)),
    "clock": (0.006, template(CLOCKS, fills.clock)),
    "date": (0.006, template(DATES, fills.date)),
    "count": (0.006, template(COUNTS, fills.count)),
    "range": (0.006, template(RANGES, fills.few)),
    "digits": (0.004, template(DIGITS, fills.digits)),
    "address": (0.006, template(ADDRESSES, fills.place)),
}
