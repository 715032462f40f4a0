"""The course corpus and its splits: sizes, what each split promises, and the checksums."""

from dataclasses import replace

import pytest

from course_lib.data.course import CHECKSUMS, checksum, load_course
from course_lib.grammar.align import CoursePair
from course_lib.grammar.lexicon.verbs import VERB
from course_lib.grammar.splits import (
    MAX_TRAIN_WORDS,
    NEVER_FINAL,
    NEW_CELLS,
    RARE,
    SUBJECT_ONLY,
    needs_unseen_form,
    novelties,
)

SIZES = {"num_train": 4_000, "num_valid": 200, "num_test": 300}


@pytest.fixture(scope="module")
def corpora():
    return {split: load_course(split, **SIZES) for split in CHECKSUMS}


def assert_disjoint(corpus):
    """No sentence of either language is in two parts."""
    for text in (lambda pair: pair.src, lambda pair: pair.tgt):
        train, valid, test = ({text(pair) for pair in part} for part in (corpus.train, corpus.valid, corpus.test))
        assert not train & valid and not train & test and not valid & test


@pytest.mark.parametrize("split", CHECKSUMS)
def test_parts_have_their_sizes_and_share_no_sentence(corpora, split):
    corpus = corpora[split]
    assert [len(part) for part in (corpus.train, corpus.valid, corpus.test)] == list(SIZES.values())
    assert all(isinstance(pair, CoursePair) for part in (corpus.train, corpus.valid, corpus.test) for pair in part)
    assert_disjoint(corpus)
    with pytest.raises(AssertionError):
        assert_disjoint(replace(corpus, test=corpus.train[:1]))
    with pytest.raises(AssertionError):
        assert_disjoint(replace(corpus, test=[corpus.train[0]._replace(src="Another.")]))


def assert_longer(corpus):
    for side in (lambda pair: len(pair.src_words), lambda pair: len(pair.tgt_words)):
        assert max(map(side, corpus.train)) <= MAX_TRAIN_WORDS < min(map(side, corpus.test))


def test_length_split_tests_longer_sentences_than_it_trains(corpora):
    assert_longer(corpora["length"])
    with pytest.raises(AssertionError):
        assert_longer(corpora["random"])


def words(part, languages=("src_words", "tgt_words")):
    return {word for pair in part for language in languages for word in getattr(pair, language)}


def assert_novel(corpus):
    """Training has nothing of what is held out, each test sentence something, all of it made of known words."""
    held_out = {f"object:{noun}" for noun in SUBJECT_ONLY} | {f"final:{verb}" for verb in NEVER_FINAL} | NEW_CELLS
    trained = {fact for pair in corpus.train + corpus.valid for fact in pair.facts}
    assert not held_out & trained
    assert all(held_out & pair.facts for pair in corpus.test)
    known = {lemma for pair in corpus.train for lemma in pair.lemmas}
    assert known >= SUBJECT_ONLY | NEVER_FINAL
    assert words(corpus.test, ["src_words"]) <= words(corpus.train, ["src_words"])
    prefixes = tuple(VERB[name].prefix for name in NEVER_FINAL)
    assert all(word.startswith(prefixes) for word in words(corpus.test) - words(corpus.train))


def test_compositional_split_tests_new_combinations_of_known_words(corpora):
    assert_novel(corpora["compositional"])
    kinds = [kind for pair in corpora["compositional"].test for kind in novelties(pair)]
    assert min(kinds.count(kind) for kind in ("object", "verb final", "cell")) >= 20
    with pytest.raises(AssertionError):
        assert_novel(corpora["random"])


def assert_one_shot(corpus):
    for word in RARE:
        assert sum(word in pair.lemmas for pair in corpus.train) == 1
        assert not any(word in pair.lemmas for pair in corpus.valid)
    assert all(len(pair.lemmas & RARE) == 1 for pair in corpus.test)


def test_one_shot_words_are_in_one_training_sentence(corpora):
    assert_one_shot(corpora["one_shot"])
    assert {lemma for pair in corpora["one_shot"].test for lemma in pair.lemmas & RARE} == RARE
    with pytest.raises(AssertionError):
        assert_one_shot(corpora["random"])


def forms(part):
    return {word.lower() for word in words(part)}


def assert_marked(corpus):
    """A test pair is marked where, and only where, a word of it is in no training sentence."""
    known = forms(corpus.train)
    assert all(needs_unseen_form(pair) == bool(forms([pair]) - known) for pair in corpus.test)


def test_one_shot_pairs_that_need_an_unseen_form_are_marked(corpora):
    corpus = corpora["one_shot"]
    assert_marked(corpus)
    needed = [needs_unseen_form(pair) for pair in corpus.test]
    assert 0.2 < sum(needed) / len(needed) < 0.8  # enough of both to report both
    with pytest.raises(AssertionError):
        assert_marked(replace(corpus, test=[pair._replace(facts=frozenset()) for pair in corpus.test]))


def test_splits_are_reproducible_and_depend_on_the_seed():
    small = {"num_train": 60, "num_valid": 5, "num_test": 5}
    first, second, other = (load_course(seed=seed, **small) for seed in (0, 0, 1))
    assert checksum(first) == checksum(second) != checksum(other)


def test_ambiguous_corpus_keeps_one_english_sentence_in_one_part():
    corpus = load_course(ambiguous=True, **SIZES)
    assert_disjoint(corpus)
    assert [len(part) for part in (corpus.train, corpus.valid, corpus.test)] == list(SIZES.values())
    assert any(" ihr " in pair.tgt or pair.tgt.startswith("Ihr ") for pair in corpus.train)


def test_checksum_notices_any_change(corpora):
    corpus = corpora["random"]
    changed = corpus.test[0]._replace(links=corpus.test[0].links[1:])
    assert checksum(replace(corpus, test=[changed, *corpus.test[1:]])) != checksum(corpus)


@pytest.mark.parametrize("split", CHECKSUMS)
def test_default_splits_have_their_checksums(split):
    assert checksum(load_course(split)) == CHECKSUMS[split]


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split: expected one of random, length, compositional, one_shot, got 'easy'"):
        load_course("easy")


def test_empty_part_is_refused():
    with pytest.raises(ValueError, match="expected 1 or more each, got 0"):
        load_course(num_test=0)
