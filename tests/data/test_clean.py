"""Cleaning: what is repaired, what is dropped and why, and that nothing else changes."""

import random

import pytest

from course_lib.data.clean import MAX_WORDS, clean, fault, tidy
from course_lib.data.corpus import Pair

GOOD = [
    Pair("I'm from Kyoto.", "Ich komme aus Kyoto."),
    Pair("How are you?", "Wie geht's?"),
    Pair("Tom came at 2:30.", "Tom kam um halb drei."),
    Pair("He owes me 1,000 dollars.", "Er schuldet mir 1.000 Dollar."),
    Pair("Birds sing in the cocktail bar.", "Vögel singen in der Cocktailbar."),
    Pair('"Ready?" she asked.', "„Fertig?“, fragte sie."),
]
FAULTY = {
    "unfit": Pair("Go away.", "Verpiss dich!"),
    "characters": Pair("The word is 猫.", "Das Wort ist 猫."),
    "long": Pair("No " * (MAX_WORDS + 1) + "!", "Nein " * (MAX_WORDS + 1) + "!"),
    "unequal": Pair("Deal.", "Da haben wir jetzt wohl eine Abmachung getroffen."),
    "numbers": Pair("I lost 30 pounds.", "Ich habe 14 Kilo abgenommen."),
    "ending": Pair("Who found him?", "Wer hat ihn gefunden."),
}


def good_pairs_stay(clean):
    assert clean(GOOD) == (GOOD, {})


def each_fault_is_named(clean):
    for reason, pair in FAULTY.items():
        assert clean([GOOD[0], pair]) == (GOOD[:1], {reason: 1})


def duplicates_go_but_other_translations_stay(clean):
    other = Pair("How are you?", "Wie geht es Ihnen?")
    shouted = Pair("How are you", "Wie geht's")
    assert clean([GOOD[1], other, shouted, GOOD[1]]) == ([GOOD[1], other], {"duplicate": 2})


def nothing_is_lost_uncounted(clean):
    pairs = [*GOOD, *FAULTY.values()] * 3
    random.Random(0).shuffle(pairs)
    kept, dropped = clean(pairs)
    assert len(kept) + sum(dropped.values()) == len(pairs)
    assert kept == list(dict.fromkeys(pair for pair in pairs if pair in GOOD))


def keep_all(pairs):
    return list(pairs), {}


def by_source_only(pairs):
    """Broken on purpose: takes another translation for a duplicate."""
    first = {}
    for pair in clean(pairs)[0]:
        first.setdefault(pair.src, pair)
    return list(first.values()), {"duplicate": len(pairs) - len(first)} if len(first) < len(pairs) else {}


def without_short(pairs):
    """Broken on purpose: drops more than it counts."""
    kept, dropped = clean(pairs)
    return [pair for pair in kept if len(pair.src) > 15], dropped


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (good_pairs_stay, without_short),
        (each_fault_is_named, keep_all),
        (duplicates_go_but_other_translations_stay, by_source_only),
        (nothing_is_lost_uncounted, without_short),
    ],
)
def test_cleaning_obeys_and_a_broken_variant_does_not(law, wrong):
    law(clean)
    with pytest.raises(AssertionError):
        law(wrong)


@pytest.mark.parametrize(
    ("src", "tgt"),
    [("A jerk!", "Er ist gemein."), ("Crap!", "Mist!"), ("A naked man.", "Ein Mann."), ("Damn!", "So ein Arsch!")],
)
def test_one_unfit_side_is_enough(src, tgt):
    assert fault(Pair(src, tgt)) == "unfit"
    assert fault(Pair("He jerked back.", "Er zuckte zurück.")) is None


def test_texts_are_tidied():
    assert tidy("Es ist un\xadwahr\xadschein\xadlich.") == "Es ist unwahrscheinlich."
    assert tidy("um 9\xa0Uhr \u200bin  Kyo\u0304to, wer’s weiß") == "um 9 Uhr in Kyoto, wer's weiß"
    assert tidy(tidy("„So\u0308 ist‟ das")) == tidy("„So\u0308 ist‟ das") == "„Sö ist“ das"


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("9:15", "9.15"),
        ("School starts at 8:30", "Die Schule beginnt um 08:30"),
        ("It costs $1,000", "Es kostet 1.000 $"),
    ],
)
def test_numbers_in_other_notation_are_the_same(src, tgt):
    assert fault(Pair(src, tgt)) is None
    assert fault(Pair(src, tgt.replace("0", "7").replace("5", "6"))) == "numbers"
