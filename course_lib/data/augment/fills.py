"""What stands in the place of a name or a number, in English and German: made up, the same for a seed."""

import random
from collections.abc import Callable, Sequence

from course_lib.data.augment.names import CITIES, CODAS, MEN, ONSETS, SURNAMES, VOWELS, WOMEN
from course_lib.data.augment.words import MONTHS, TITLES
from course_lib.preprocessing import PLACEHOLDERS

Fill = Callable[[random.Random], tuple[str, str]]
_CURRENCIES = [("${}", "{} Dollar"), ("${}", "{} Dollar"), ("{} dollars", "{} Dollar"), ("€{}", "{} Euro")]
_CURRENCIES += [("{} euros", "{} Euro"), ("£{}", "{} Pfund"), ("{} pounds", "{} Pfund"), ("{} yen", "{} Yen")]


def invented(rng: random.Random) -> str:
    """A name that nobody has."""
    length = rng.choice((1, 2, 2, 2, 3, 3))
    parts = [
        (rng.choice(ONSETS) if place or rng.random() < 0.8 else "")
        + rng.choice(VOWELS)
        + (rng.choice(CODAS) if place == length - 1 or rng.random() < 0.3 else "")
        for place in range(length)
    ]
    return "".join(parts).capitalize()


def name(rng: random.Random, names: Sequence[str]) -> str:
    """One of the names, or an invented one."""
    return invented(rng) if rng.random() < 0.4 else rng.choice(names)


def person(rng: random.Random) -> tuple[str, str]:
    """A first name, now and then with a surname or a title."""
    first, last = name(rng, MEN + WOMEN), name(rng, SURNAMES)
    if rng.random() < 0.15:
        english, german = rng.choice(TITLES)
        return f"{english} {last}", f"{german} {last}"
    said = f"{first} {last}" if rng.random() < 0.3 else first
    return said, said


def city(rng: random.Random) -> tuple[str, str]:
    """A place whose name is the same in both languages."""
    said = name(rng, CITIES)
    return said, said


def number(rng: random.Random) -> tuple[str, str]:
    """A number above 1, in English and German digits: 1,250.5 is 1.250,5."""
    whole, _ = count(rng)
    if rng.random() < 0.15:
        whole += f".{rng.randrange(1, 10 ** rng.choice((1, 1, 2, 3)))}"
    return whole, whole.translate(str.maketrans(",.", ".,"))


def count(rng: random.Random) -> tuple[str, str]:
    """A whole number above 1."""
    length = rng.choice((1, 2, 2, 2, 3, 3, 4, 5, 6, 7))
    value = rng.randrange(max(2, 10 ** (length - 1)), 10**length)
    whole = f"{value:,}" if length > 3 and rng.random() < 0.5 else str(value)
    return whole, whole.replace(",", ".")


def few(rng: random.Random) -> tuple[str, str]:
    """A whole number from 2 to 60."""
    value = str(rng.randrange(2, 61))
    return value, value


def price(rng: random.Random) -> tuple[str, str]:
    """A sum of money."""
    english, german = rng.choice(_CURRENCIES)
    one, other = number(rng)
    if rng.random() < 0.5:
        cents = f"{rng.randrange(1, 500)}", f"{rng.randrange(100):02}"
        one, other = ".".join(cents), ",".join(cents)
    return english.format(one), german.format(other)


def share(rng: random.Random) -> tuple[str, str]:
    """Percents."""
    one, other = str(value := rng.randrange(2, 100)), str(value)
    if rng.random() < 0.4:
        tenth = rng.randrange(1, 10)
        one, other = f"{value}.{tenth}", f"{value},{tenth}"
    sign, word = rng.choice((("%", " %"), ("%", " %"), (" percent", " Prozent")))
    return one + sign, other + word


def clock(rng: random.Random) -> tuple[str, str]:
    """A time of day; German counts to 24."""
    hour, minute = rng.randrange(24), rng.randrange(60)
    if rng.random() < 0.5:
        minute = rng.randrange(0, 60, 5)
    if rng.random() < 0.35:
        return f"{hour}:{minute:02}", f"{hour}:{minute:02} Uhr"
    half = rng.choice(("a.m.", "a.m.", "am", "AM") if hour < 12 else ("p.m.", "p.m.", "pm", "PM"))
    return f"{hour % 12 or 12}:{minute:02} {half}", f"{hour}:{minute:02} Uhr"


def date(rng: random.Random) -> tuple[str, str]:
    """A day of a month, now and then of a year."""
    month, day = rng.choice(list(MONTHS)), rng.randrange(1, 29)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day // 10 != 1 else 0, "th")
    english, german = f"{month} {day}{ending if rng.random() < 0.5 else ''}", f"{day}. {MONTHS[month]}"
    if rng.random() < 0.4:
        year = rng.randrange(1400, 2040)
        return f"{english}, {year}", f"{german} {year}"
    return english, german


def digits(rng: random.Random) -> tuple[str, str]:
    """A row of digits, as of a telephone."""
    row = "".join(rng.choices("0123456789", k=rng.randrange(2, 12)))
    return row, row


def place(rng: random.Random) -> tuple[str, str]:
    """What is copied, whatever it is."""
    mark = rng.choice(PLACEHOLDERS)
    return mark, mark
