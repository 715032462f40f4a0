"""Made-up pairs: what is copied stands on both sides, nothing is made where the two sides do not agree."""

import random
import re
from collections import Counter

import pytest

from course_lib.data import Pair, load_course
from course_lib.data.augment import KINDS, augmented, fills, made, sources
from course_lib.data.augment.names import CITIES, MEN, SURNAMES, WOMEN
from course_lib.preprocessing import PLACEHOLDERS
from tests.helpers.laws import raised, tells_apart

NAMES = {*CITIES, *MEN, *SURNAMES, *WOMEN}
PAIRS = [
    Pair("Tom lives in Boston.", "Tom lebt in Boston."),
    Pair("Mary has three brothers.", "Maria hat drei Brüder."),
    Pair("Mary likes Tom.", "Mary mag Tom."),
    Pair("Tom's dog is old.", "Toms Hund ist alt."),
    Pair("I met him on Monday.", "Ich traf ihn am Montag."),
    Pair("He was born in 1970.", "Er wurde 1970 geboren."),
    Pair("We met at 2:30.", "Wir trafen uns um 2.30 Uhr."),
    Pair("I get up at six.", "Ich stehe um sechs Uhr auf."),
    Pair("Tom likes the soup.", "Tom schmeckt die Suppe."),
    Pair("Is it cold?", "Ist es kalt?"),
]


def changed(name, pair, seeds=40):
    """What one kind makes of a pair, with many seeds."""
    return [found for seed in range(seeds) if (found := KINDS[name][1](pair, random.Random(seed)))]


def law_names_are_the_same_on_both_sides(change):
    for pair in PAIRS[:4]:
        for seed in range(60):
            found = change(pair, random.Random(seed))
            if found:
                new = set(re.findall(r"[A-Z][\w'ß]+", found.src)) - set(re.findall(r"[A-Z][\w']+", pair.src))
                assert new and all(name.removesuffix("'s") in found.tgt for name in new), found
                assert ("'s" in found.src) == bool(re.search(r"\w+s Hund", found.tgt))


def only_in_english(pair, rng):
    found = made.other_name(pair, rng)
    return found and Pair(found.src, pair.tgt)


def test_another_name_stands_on_both_sides():
    tells_apart(law_names_are_the_same_on_both_sides, made.other_name, only_in_english)
    assert not changed("other name", PAIRS[-1])
    assert all(pair.tgt.startswith(pair.src.split("'")[0]) for pair in changed("other name", PAIRS[3]))


def law_titles_agree(change):
    for pair in PAIRS:
        for seed in range(40):
            found = change(pair, random.Random(seed))
            if found:
                title = r"(Mr\.|Ms\.|Mrs\.|Dr\.|Professor|Herr|Frau) (\w+)"
                english, german = (re.findall(title, text) for text in found)
                assert len(english) == len(german) == 1 and english[0][1] == german[0][1], found
                assert TITLES_IN_GERMAN[english[0][0]] == german[0][0], found
                assert german[0][0] != "Herr" or found.tgt.startswith("Herr "), found


TITLES_IN_GERMAN = {"Mr.": "Herr", "Ms.": "Frau", "Mrs.": "Frau", "Dr.": "Dr.", "Professor": "Professor"}


def mister_anywhere(pair, rng):
    return Pair(re.sub(r"\bTom\b", "Mr. Lee", pair.src), re.sub(r"\bTom\b", "Herr Lee", pair.tgt))


def test_a_mister_is_given_to_subjects_only():
    """Herr is Herrn in the object, Frau and Dr. stay what they are."""
    tells_apart(law_titles_agree, made.with_title, mister_anywhere)
    assert len(changed("with title", PAIRS[0])) == len(changed("with title", PAIRS[1])) == 40
    assert {pair.tgt.split()[0] for pair in changed("with title", PAIRS[8])} == {"Dr.", "Professor"}  # a dative
    assert not changed("with title", PAIRS[2]) and not changed("with title", PAIRS[3])  # two names; an owner


def law_names_come_through(changes):
    for pair in (change(PAIRS[0], random.Random(seed)) for change in changes for seed in range(200)):
        english, german = ({word for word in re.findall(r"[^\W\d]+", text) if word in NAMES} for text in pair)
        assert english <= german, pair


def test_people_and_places_stand_on_both_sides():
    kinds = [KINDS[name][1] for name in ("people", "route")]
    exchanged = made.template("{} lives in {}.|{} lebt in Wien.", fills.person, fills.city)
    tells_apart(law_names_come_through, kinds, [exchanged])
    assert all(pair.src.islower() and not pair.tgt.islower() for pair in changed("name in lower case", PAIRS[0]))


def law_digits_agree(change):
    for pair in PAIRS:
        for seed in range(60):
            found = change(pair, random.Random(seed))
            if found:
                english, german = (re.findall(r"\d+", text) for text in found)
                assert english and [int(digits) for digits in english] == [int(digits) for digits in german], found


def english_separators(pair, rng):
    found = made.other_number(pair, rng)
    return found and Pair(found.src, re.sub(r"(\d)[.](\d)", r"\1\2", found.tgt))


def test_numbers_agree():
    tells_apart(law_digits_agree, made.other_number, english_separators)
    assert any("," in pair.src for pair in changed("other number", PAIRS[1], 200))
    assert not changed("other number", PAIRS[0]) and not changed("other number", PAIRS[6])


def law_clock(clock):
    for seed in range(200):
        english, german = clock(random.Random(seed))
        hour, minute = map(int, re.match(r"(\d+):(\d\d)", english).groups())
        half = re.search("[ap](?=.?m)", english.lower())
        assert german == f"{hour % 12 + 12 * (half[0] == 'p') if half else hour}:{minute:02} Uhr"


def noon_is_morning(rng):
    english, german = fills.clock(rng)
    return re.sub("[pP](?=.?[mM])", "a", english), german


def test_german_counts_hours_to_24():
    tells_apart(law_clock, fills.clock, noon_is_morning)
    for seed in range(100):
        english, german = fills.date(random.Random(seed))
        assert int(re.search(r"\d+", english)[0]) == int(re.match(r"(\d+)\. ", german)[1])
        assert not re.search(r"1[123](st|nd|rd)|[^1]1th|[^1]2th|[^1]3th", english)


def test_separators_are_those_of_the_language():
    found = [fills.number(random.Random(seed)) for seed in range(300)]
    assert all(english.replace(",", "").replace(".", ",") == german.replace(".", "") for english, german in found)
    assert {len(english) for english, _ in found} >= {1, 2, 3, 4, 5, 6, 7}
    assert any("," in english and "." in english for english, _ in found)


def test_times_and_days_change_on_both_sides():
    assert all(re.search(r"um \d+:\d\d Uhr", pair.tgt) for pair in changed("other time", PAIRS[6]))
    assert all("Monday" not in pair.src and "Montag" not in pair.tgt for pair in changed("other time", PAIRS[4]))
    assert all(re.search(r"um \d+ Uhr", pair.tgt) for pair in changed("other time", PAIRS[7]))
    assert not changed("other time", PAIRS[0])


def test_amounts_are_the_same_on_both_sides():
    for pair in changed("count", PAIRS[0], 200) + changed("range", PAIRS[0], 200):
        english, german = (re.findall(r"\d[\d.,]*\d|\d", text) for text in pair)
        assert [one.replace(",", ".") for one in english] == german and english


def test_placeholders_stand_as_often_on_both_sides():
    found = changed("something", PAIRS[0]) + changed("address", PAIRS[0], 200)
    assert len(found) == 240
    for pair in found:
        marks = [Counter(character for character in text if character in PLACEHOLDERS) for text in pair]
        assert marks[0] == marks[1] and marks[0] and max(marks[0].values()) == 1, pair


def law_places_are_numbered_as_read(change):
    pairs = *PAIRS, Pair("In Boston Tom was happy.", "Tom war in Boston glücklich.")
    two = [found for pair in pairs for seed in range(40) if (found := change(pair, random.Random(seed)))]
    two = [[re.findall("[\ue000-\ue0ff]", text) for text in pair] for pair in two]
    two = [(english, german) for english, german in two if len(english) == 2]
    assert two and all(english == [*PLACEHOLDERS[:2]] == sorted(german) for english, german in two)


def numbered_as_written(pair, rng):
    found = made.something(Pair(pair.tgt, pair.src), rng)
    return found and Pair(found.tgt, found.src)


def test_places_are_numbered_as_they_are_read():
    """As the door numbers them; in German the second may come first."""
    tells_apart(law_places_are_numbered_as_read, made.something, numbered_as_written)


def law_phrases_are_learned(pairs):
    """Each as it stands and in haste, more than once, and with another sentence beside it."""
    found = Counter(pairs)
    for phrase in sources.phrasebook():
        assert found[phrase] == sources.REPEATED and found[sources.bare(phrase)] >= 1, phrase
    ends = tuple(f" {pair.src}" for pair in PAIRS)
    assert sum(pair.src.endswith(ends) for pair in found) > 100


def test_the_phrasebook_is_learned_several_times():
    def once(*_):
        return sources.phrasebook()

    rng = random.Random(0)
    tells_apart(
        lambda of: law_phrases_are_learned(list(of(PAIRS, rng, made.joined))), sources.of_the_phrasebook, once
    )
    assert sources.bare(Pair("Happy Easter, children!", "Frohe Ostern, Kinder!")) == Pair(
        "happy easter, children", "Frohe Ostern, Kinder"
    )
    assert sources.bare(Pair("Is it far?", "Ist es weit?")) == Pair("is it far", "Ist es weit?")


def law_phrases_are_sound(phrases):
    assert len({phrase.src for phrase in phrases}) == len(phrases) > 1000
    for phrase in phrases:
        for text in phrase:
            assert re.fullmatch(r"[A-ZÄÖÜ][\w ,.'!?:-]*[.!?]", text), text
        assert phrase.src[-1] == phrase.tgt[-1] and len(phrase.src.split()) <= 10, phrase


def test_phrases_are_short_sentences_with_the_same_mark():
    phrases = sources.phrasebook()
    odd = [*phrases, Pair("Is it you?", "Bist du es.")]
    tells_apart(law_phrases_are_sound, phrases, odd)


TESTED = {size: load_course(num_train=size) for size in (30_000, 60_000)}


def law_of_the_grammar(pairs):
    assert len(set(pairs)) == 50 and all(len(pair.src.split()) > 6 for pair in pairs)
    for course in TESTED.values():
        held_out = {text for pair in course.valid + course.test for text in (pair.src, pair.tgt)}
        assert not [pair for pair in pairs if {*pair} & held_out]


def test_the_grammars_sentences_are_long_and_no_lesson_tests_on_them():
    def of(part):
        return [Pair(pair.src, pair.tgt) for pair in part if len(pair.src_words) > 7][:50]

    smaller, larger = TESTED.values()
    english = made.of_the_grammar(49) + [Pair(larger.test[0].src, "Das steht nur auf Englisch auf beiden Seiten.")]
    tells_apart(law_of_the_grammar, made.of_the_grammar(50), of(smaller.test), of(larger.valid), english)
    with pytest.raises(AssertionError):
        law_of_the_grammar([Pair(pair.src, pair.tgt) for pair in smaller.train[:50]])


def test_careless_writing_changes_the_source_only():
    for name in ("lower case", "loud word"):
        assert all(pair.src.lower() == PAIRS[0].src.lower().rstrip(".") + "." * pair.src.endswith(".")
                   for pair in changed(name, PAIRS[0]))  # fmt: skip
    assert {pair.tgt for pair in changed("loud word", PAIRS[0])} == {PAIRS[0].tgt}
    assert {pair.tgt for pair in changed("unfinished", PAIRS[0])} == {PAIRS[0].tgt[:-1]}
    assert changed("unfinished", PAIRS[-1])[0] == Pair("Is it cold", "Ist es kalt?")


def test_after_a_dash_a_german_pronoun_is_small():
    other = Pair("I'm cold.", "Ich friere.")
    found = {made.joined(PAIRS[0], other, random.Random(seed)).tgt[18:] for seed in range(60)}
    assert found == {". Ich friere.", " – ich friere.", "; ich friere.", "... Ich friere."}


def test_two_sentences_are_joined_alike():
    found = [made.joined(PAIRS[0], PAIRS[-1], random.Random(seed)) for seed in range(60)]
    assert {pair.src[19:].removesuffix("s it cold?").strip() for pair in found} >= {". I", "- I", "; I", "... I"}
    asked = {made.joined(PAIRS[-1], PAIRS[0], random.Random(seed)) for seed in range(60)}
    assert asked == {Pair("Is it cold? Tom lives in Boston.", "Ist es kalt? Tom lebt in Boston.")}
    assert made.joined(Pair("Stop!", "Halt."), PAIRS[0], random.Random(0)) is None


def law_nothing_held_out_is_made(make):
    """All else is made as before."""
    many = PAIRS * 30
    all_made = augmented(many)[len(many) :]
    held_out = [*all_made[::7], Pair("Nobody wrote that.", all_made[1].tgt)]
    unseen = {text for pair in held_out for text in pair}
    expected = [pair for pair in all_made if not {*pair} & unseen]
    assert make(many, held_out=held_out) == [*many, *expected] and len(expected) > len(all_made) / 2


def test_nothing_held_out_is_made():
    tells_apart(law_nothing_held_out_is_made, augmented, lambda pairs, held_out: augmented(pairs))


def test_pairs_that_know_more_are_augmented_as_plain_ones():
    course = load_course(num_train=40, num_valid=1, num_test=1).train
    plain = [Pair(pair.src, pair.tgt) for pair in course]
    assert augmented(course) == augmented(plain) and augmented(course)[:40] == plain


def test_the_same_seed_makes_the_same_pairs():
    many = PAIRS * 30
    assert augmented(many) == augmented(many) != augmented(many, seed=1)
    assert augmented(many)[: len(many)] == many and len(augmented(many)) > 1.1 * len(many)
    with pytest.raises(TypeError):
        augmented(many, 1)  # the seed has a name


def law_a_share_is_drawn_from_what_is_made(make):
    many = PAIRS * 30
    all_made, some = augmented(many)[len(many) :], make(many, share=0.25)
    assert some[: len(many)] == many
    drawn = some[len(many) :]
    assert len(drawn) == round(0.25 * len(all_made)) and not Counter(drawn) - Counter(all_made)
    kinds = [{pair.tgt for pair in part} for part in (drawn, all_made[: len(drawn)])]
    assert kinds[0] != kinds[1], "the first ones are of the first kinds only"
    assert make(many, share=0.25) == some and make(many, share=1.0) == [*many, *all_made]


def test_a_share_is_drawn_from_what_is_made():
    def the_first(pairs, share):
        made = augmented(pairs)
        return made[: len(pairs) + round(share * (len(made) - len(pairs)))]

    tells_apart(law_a_share_is_drawn_from_what_is_made, augmented, the_first, lambda pairs, share: augmented(pairs))
    for share in (0, 1.5, -0.1, "half", float("nan")):
        assert "share must be" in str(raised(ValueError, lambda share=share: augmented(PAIRS, share=share)))
