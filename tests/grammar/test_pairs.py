"""What holds of every pair: text, links, phenomena, and that English determines German."""

from collections import Counter
from itertools import islice

import pytest

from course_lib.grammar import derivations, detokenize, generate, realize
from course_lib.grammar.build import a, adverb, clause, modal, noun, pair, sentence, the, who
from course_lib.grammar.generate import MAX_WORDS
from course_lib.grammar.lexicon.function_words import HOW_MANY, THAT, WHEN_PAST, WHEN_PRESENT
from course_lib.grammar.phenomena import PHENOMENA
from course_lib.grammar.sampler.chooser import Chooser, Weighted

PAIRS = generate(6_000, 1)


def test_generate_is_reproducible_and_depends_on_the_seed():
    assert generate(50, 1) == PAIRS[:50]
    assert generate(50, 2) != PAIRS[:50]


def test_every_corpus_has_the_sentences_of_the_lessons():
    wanted = {"The cat sleeps.": "Die Katze schläft.", "The cat sees the dog.": "Die Katze sieht den Hund."}
    for pairs in (PAIRS, generate(10, 5)):
        said = {found.src: found.tgt for found in pairs}
        assert {src: said.get(src) for src in wanted} == wanted


def test_generate_refuses_a_negative_number():
    with pytest.raises(ValueError, match="num_pairs: expected 0 or more, got -1"):
        generate(-1, 0)


def test_no_sentence_of_either_language_twice():
    assert len({found.src for found in PAIRS}) == len({found.tgt for found in PAIRS}) == len(PAIRS)
    drawn = {found.src: found.tgt for found in islice(derivations(1), 6_000)}
    assert len(set(drawn.values())) < len(drawn)  # she reads, she is reading: as drawn they share their German


def test_ambiguous_german_is_not_repeated_either():
    pairs = generate(3_000, 2, ambiguous=True)
    assert len({found.tgt for found in pairs}) == len(pairs)


def assert_written_correctly(pairs):
    for found in pairs:
        for text, words in ((found.src, found.src_words), (found.tgt, found.tgt_words)):
            assert text == detokenize(words)
            assert text[0].isupper() and text[-1] in ".?" and "  " not in text
            assert 2 < len(words) <= MAX_WORDS + 6 and not any(mark in text for mark in (" ,", " .", ",,", ",.", ",?"))
            assert all(word in (",", words[-1]) or word.replace("'", "").isalpha() for word in words)
        assert len(found.tgt_words) <= MAX_WORDS
        assert found.src[-1] == found.tgt[-1]


def test_sentences_are_written_correctly():
    assert_written_correctly(PAIRS)


def test_a_badly_written_sentence_is_noticed():
    for wrong in ("the cat sleeps .", "The cat sleeps", "The cat, sleeps,."):
        with pytest.raises(AssertionError):
            assert_written_correctly([PAIRS[0]._replace(src=wrong)])


def assert_linked(pairs):
    """Links are in range and sorted, and only commas are linked to nothing."""
    for found in pairs:
        assert list(found.links) == sorted(set(found.links))
        assert all(0 <= i < len(found.src_words) and 0 <= j < len(found.tgt_words) for i, j in found.links)
        for words, side in ((found.src_words, 0), (found.tgt_words, 1)):
            linked = {link[side] for link in found.links}
            assert all(at in linked or word == "," for at, word in enumerate(words))


def test_every_word_is_linked():
    assert_linked(PAIRS)


def test_a_missing_link_is_noticed():
    with pytest.raises(AssertionError):
        assert_linked([found._replace(links=found.links[1:]) for found in PAIRS])
    with pytest.raises(AssertionError):
        assert_linked([PAIRS[0]._replace(links=(*PAIRS[0].links, (99, 99)))])


def links_of(found):
    """Links as words: "closes-macht"."""
    return {f"{found.src_words[i]}-{found.tgt_words[j]}" for i, j in found.links}


def test_links_follow_meaning_not_position():
    closes = pair(clause(the("mother"), "zumachen", accusative=the("window")))
    expected = {"The-Die", "mother-Mutter", "closes-macht", "closes-zu", "the-das", "window-Fenster", ".-."}
    assert links_of(closes) == expected
    kein = pair(clause("she", "kaufen", accusative=a("car"), negated=True))
    assert {"not-kein", "a-kein", "does-kauft", "buy-kauft"} <= links_of(kein)
    perfect = pair(clause(the("man"), "aufwachen", tense="perfect"))
    assert {"has-ist", "woken-aufgewacht", "up-aufgewacht"} <= links_of(perfect)
    progressive = pair(clause(the("man"), "sich ausruhen", progressive=True))
    assert {"is-ruht", "resting-ruht", "resting-sich", "resting-aus"} <= links_of(progressive)
    assert not {"is-sich", "is-aus"} & links_of(progressive)
    eggs = noun(HOW_MANY, "egg", plural=True)
    count = pair(clause("you", "brauchen", accusative=eggs, front="accusative", force="wh"))
    assert {link for link in links_of(count) if link[:3] in ("How", "man")} == {"How-Wie", "many-viele"}
    assert "to-zum" in links_of(next(found for found in PAIRS if "zum" in found.tgt_words))


def test_tags_are_known_and_frequent_enough():
    counts = Counter(tag for found in PAIRS for tag in found.phenomena)
    assert set(counts) == set(PHENOMENA)
    assert {tag: count for tag, count in counts.items() if count < 0.025 * len(PAIRS)} == {}


def conflicts(pairs):
    """English sentences that have two translations."""
    first, found = {}, []
    for item in pairs:
        if first.setdefault(item.src, item.tgt) != item.tgt:
            found.append(item.src)
    return found, len(first)


def test_english_determines_german():
    found, distinct = conflicts(islice(derivations(0), 120_000))
    assert found == [] and distinct >= 100_000


def test_ambiguous_english_does_not():
    found, _ = conflicts(islice(derivations(0, ambiguous=True), 20_000))
    assert len(found) >= 3 and all(" you" in f" {text.lower()}" for text in found)


def test_address_decides_how_you_is_said():
    tree = sentence(clause("you", "sich waschen"))
    said = {address: realize(tree, address).tgt for address in ("du", "ihr", "Sie")}
    assert said == {"du": "Du wäschst dich.", "ihr": "Ihr wascht euch.", "Sie": "Sie waschen sich."}
    with pytest.raises(ValueError, match="address: expected du, ihr or Sie, got 'er'"):
        realize(tree, "er")


def test_sie_is_not_taken_for_the_subject():
    seen = sentence(clause("I", "wissen"), THAT, clause(the("woman", plural=True), "sehen", accusative=who("you")))
    said = {address: realize(seen, address).tgt for address in ("du", "ihr", "Sie")}
    assert said["du"] == "Ich weiß, dass dich die Frauen sehen."
    assert said["ihr"] == "Ich weiß, dass euch die Frauen sehen."
    assert said["Sie"] == "Ich weiß, dass die Frauen Sie sehen."


def test_when_is_als_only_in_the_past():
    past = [(clause("he", "lachen", tense="past"), clause("she", "singen", tense="past"))]
    now = [(clause("he", "lachen"), clause("she", "singen"))]
    assert [pair(sentence(m, WHEN_PAST, s)).tgt for m, s in past] == ["Er lachte, als sie sang."]
    assert [pair(sentence(m, WHEN_PRESENT, s)).tgt for m, s in now] == ["Er lacht, wenn sie singt."]
    for found in PAIRS:
        if "als" in (word.lower() for word in found.tgt_words):
            assert "when" in found.src.lower() and "preterite" in found.phenomena | {"modal"}


def test_build_names_what_it_does_not_know():
    for wrong in (lambda: the("unicorn"), lambda: adverb("henceforth"), lambda: modal("ought to"),
                  lambda: clause("she", "fliegen"), lambda: noun(None, "dog", "purple")):
        with pytest.raises(ValueError, match="expected one of .* got '"):
            wrong()


def test_chooser_keeps_to_its_weights():
    chooser, table = Chooser(0), Weighted({"often": 9, "rarely": 1})
    counts = Counter(chooser.weighted(table) for _ in range(2_000))
    assert 1_700 < counts["often"] < 1_900
    items = list(range(20))
    chooser.shuffle(items)
    assert sorted(items) == list(range(20)) != items
