"""Sentence pairs made from others, or from templates: names, numbers, times, prices, dates, addresses, haste."""

import random
import re
from collections.abc import Callable, Iterator, Sequence

from course_lib.config import check_numbers, require
from course_lib.data.augment import fills
from course_lib.data.augment.names import CITIES, MEN, SURNAMES, WOMEN
from course_lib.data.augment.sources import of_the_grammar, of_the_phrasebook
from course_lib.data.augment.words import (
    ADDRESSES,
    CLOCKS,
    COUNTS,
    DATES,
    DAYS,
    DIGITS,
    NUMBER_WORDS,
    PEOPLE,
    PRICES,
    RANGES,
    ROUTES,
    SHARES,
    TITLES,
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


def augmented(pairs: Sequence, *, seed: int = 0, held_out: Sequence = (), share: float = 1.0) -> list[Pair]:
    """The pairs, and after them the made ones: some 60 for 100, a third of the course corpus, and the phrasebook.

    Args:
        pairs: objects with texts `src` and `tgt`: everyday sentences, as of Tatoeba's training part.
        seed: of all choices.
        held_out: pairs that are to stay unseen: nothing is made that has a text of theirs.
        share: of the made pairs that are kept, drawn at random, in (0, 1].

    Raises:
        ValueError: on a share outside of this.
    """
    check_numbers(share=share)
    require(0 < share <= 1, f"share must be in (0, 1], got {share}")
    pairs = [Pair(pair.src, pair.tgt) for pair in pairs]
    made = [pair for name in KINDS for pair in _some(name, pairs, random.Random(f"{seed}/{name}"))]
    rng = random.Random(f"{seed}/joined")
    several = (joined(*rng.sample(pairs, 2), rng) for _ in range(round(JOINED * len(pairs))))
    made += [pair for pair in several if pair is not None]
    made += of_the_phrasebook(pairs, random.Random(f"{seed}/phrases"), joined)
    made += of_the_grammar(round(GRAMMAR * len(pairs)))
    unseen = {text for pair in held_out for text in (pair.src, pair.tgt)}
    made = [pair for pair in made if unseen.isdisjoint(pair)]
    if share < 1:
        made = random.Random(f"{seed}/share").sample(made, round(share * len(made)))
    return [*pairs, *made]


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


def name_in_lower_case(pair: Pair, rng: random.Random) -> Pair | None:
    """A name without its capital: my sister lives in berlin"""
    found = other_name(pair, rng)
    return found and lower_case(found, rng)


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
    if not (short and pair.src[-1] in ".!?" and pair.tgt[-1] == pair.src[-1] and other.src[-1] in ".!?"):
        return None
    if pair.src[-1] != "." or rng.random() < 0.6:
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
            name = fills.name(rng, names)
            if names is not CITIES and rng.random() < 0.2:
                name += " " + fills.name(rng, SURNAMES)
            src, tgt = pattern.sub(name, src), pattern.sub(name, tgt)
            of = next(iter(found)) + "s"
            if re.search(rf"\b{of}\b", tgt) or re.search(rf"{name}'s", src):
                if name[-1] in "sxzß":
                    return None
                tgt = re.sub(rf"\b{of}\b", name + "s", tgt)
    return None if src == pair.src else Pair(src, tgt)


def with_title(pair: Pair, rng: random.Random) -> Pair | None:
    """Mrs. and Dr. for Mary and Tom; Mr. only where Tom is the subject of the sentence: elsewhere it is Herrn."""
    src, tgt = pair
    found = re.findall(r"\b(Tom|Mary)\b(?!')", src)
    others = re.findall(r"\b(Tom|Mary|Maria)\b", tgt)
    if len(found) != 1 or len(others) != 1 or (found[0] == "Tom") != (others[0] == "Tom"):
        return None
    titles = TITLES[:2] if found[0] == "Mary" else TITLES[2:]
    if src.startswith("Tom ") and tgt.startswith("Tom ") and not _DATIVE.search(tgt):
        titles = [titles[0], ("Mr.", "Herr"), ("Mr.", "Herr")]
    english, german = rng.choice(titles)
    name = fills.name(rng, SURNAMES)
    src = re.sub(rf"\b{found[0]}\b", f"{english} {name}", src)
    return Pair(src, re.sub(rf"\b{others[0]}\b", f"{german} {name}", tgt))


def something(pair: Pair, rng: random.Random) -> Pair | None:
    """In the place of one or two words that are alike in both languages what cannot be read and is to be copied."""
    both = [(word.casefold(), word) for word in re.findall(r"\w+", pair.tgt) if word[0].isupper() and len(word) > 2]
    english = [word.casefold() for word in re.findall(r"\w+", pair.src)]
    alike = {one: word for one, word in both if english.count(one) == 1 and [name for name, _ in both].count(one) == 1}
    chosen = [word for word in english if word in alike][: rng.choice((1, 1, 2))]
    places = [rng.choice(PLACEHOLDERS)] if len(chosen) == 1 else PLACEHOLDERS
    src, tgt = pair
    for word, place in zip(chosen, places, strict=False):
        src, tgt = re.sub(rf"(?i)\b{word}\b", place, src), re.sub(rf"\b{alike[word]}\b", place, tgt)
    return Pair(src, tgt) if chosen else None


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


def template(table: str, fill: fills.Fill, other: fills.Fill | None = None) -> Change:
    """A line of the table with something made up in it, and `other` in its second place; the pair plays no part."""
    lines = templates(table)

    def change(pair: Pair, rng: random.Random) -> Pair:
        (src, tgt), both = rng.choice(lines), [fill(rng), (other or fill)(rng)]
        while both[0] == both[1]:
            both[1] = (other or fill)(rng)
        said = src.format(*(one for one, _ in both))
        return Pair(said.replace(".m..", ".m."), tgt.format(*(one for _, one in both)))

    return change


JOINED = 0.08
GRAMMAR = 0.2
KINDS: dict[str, tuple[float, Change]] = {  # share of the pairs that are tried, and what is made of them
    "lower case": (0.04, lower_case),
    "name in lower case": (0.08, name_in_lower_case),
    "loud word": (0.015, loud_word),
    "unfinished": (0.02, unfinished),
    "other name": (0.3, other_name),
    "with title": (0.15, with_title),
    "something": (0.12, something),
    "other number": (0.8, other_number),
    "yet another number": (0.8, other_number),
    "other time": (0.8, other_time),
    "yet another time": (0.8, other_time),
    "price": (0.012, template(PRICES, fills.price)),
    "share": (0.003, template(SHARES, fills.share)),
    "clock": (0.025, template(CLOCKS, fills.clock)),
    "people": (0.02, template(PEOPLE, fills.person, fills.city)),
    "route": (0.005, template(ROUTES, fills.city)),
    "date": (0.006, template(DATES, fills.date)),
    "count": (0.006, template(COUNTS, fills.count)),
    "range": (0.006, template(RANGES, fills.few)),
    "digits": (0.006, template(DIGITS, fills.digits)),
    "address": (0.006, template(ADDRESSES, fills.place)),
}
