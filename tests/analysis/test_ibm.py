"""Word aligners: expectation maximization as spelled out, a likelihood that never falls, a lexicon found again."""

import math
import random
from collections import defaultdict
from functools import partial
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from course_lib.analysis import ibm
from course_lib.analysis.ibm import Aligner, diagonal_prior, distances, train_fast_align, train_ibm1
from tests.helpers.corpora import NOUNS, VERBS, toy_pairs
from tests.helpers.laws import patched, raised, tells_apart


def random_pairs(count=40, *, seed=0):
    """Pairs of random words, some of them twice in a sentence, of unequal lengths."""
    rng = random.Random(seed)

    def words(letters):
        return [rng.choice(letters) for _ in range(rng.randint(1, 6))]

    return [(words("abcde"), words("UVWXYZ")) for _ in range(count)]


PAIRS = random_pairs()
TOY = [(pair.src.split(), pair.tgt.split()) for pair in toy_pairs()]


def by_hand(pairs, iterations, *, tension=None, null=0.08, total="source", shared=True):
    """The slow specification: dictionaries and loops; with a tension it is fast_align's. The last two break it."""
    src_ids, tgt_ids = {None: 0}, {}
    for src, tgt in pairs:
        for words, ids in ((src, src_ids), (tgt, tgt_ids)):
            for word in words:
                ids.setdefault(word, len(ids))
    t = {(s, w): 1 / len(tgt_ids) for src, tgt in pairs for s in [None, *src] for w in tgt}

    def prior(src, tgt, i, strength):
        """Of each source word and of NULL, for target word i."""
        if tension is None:
            return [1 / (len(src) + 1)] * (len(src) + 1)
        near = [math.exp(-strength * abs((i + 1) / len(tgt) - (j + 1) / len(src))) for j in range(len(src))]
        return [*((1 - null) * each / sum(near) for each in near), null]

    def shares(strength):
        """Source word, its place, target word, its place, sentence pair, prior times t."""
        for src, tgt in pairs:
            for i, w in enumerate(tgt):
                chances = prior(src, tgt, i, strength)
                weights = [p * t[s, w] for p, s in zip(chances, [*src, None], strict=True)]
                yield src, tgt, i, weights

    def log_likelihood(strength):
        return sum(math.log(sum(weights)) for *_, weights in shares(strength))

    log_likelihoods, strength = [log_likelihood(tension)], tension
    for _ in range(iterations):
        counts, totals, explained = defaultdict(float), defaultdict(float), []
        for src, tgt, i, weights in shares(strength):
            parts = [weight / (sum(weights) if shared else 1) for weight in weights]
            explained.append((src, tgt, i, parts))
            for s, part in zip([*src, None], parts, strict=True):
                counts[s, tgt[i]] += part
        for (s, w), count in counts.items():
            totals[s if total == "source" else w] += count
        t = {(s, w): count / totals[s if total == "source" else w] for (s, w), count in counts.items()}
        if tension is not None:
            strength = most_likely(explained, prior)
        log_likelihoods.append(log_likelihood(strength))
    keys = {src_ids[s] * len(tgt_ids) + tgt_ids[w]: value for (s, w), value in t.items()}
    order = sorted(keys)
    found = {"tension": strength or 0.0, "null": None if tension is None else null}
    return Aligner(src_ids, tgt_ids, np.array(order), np.array([keys[key] for key in order]), log_likelihoods, **found)


def most_likely(explained, prior):
    """The tension that makes the places most likely, by search."""

    def surprise(strength):
        return -sum(
            part * math.log(p)
            for src, tgt, i, parts in explained
            for part, p in zip(parts, prior(src, tgt, i, strength), strict=True)
        )

    return minimize_scalar(surprise, bounds=(0, 50), method="bounded", options={"xatol": 1e-10}).x


def loops(pairs, *, iterations=5, **wrong):
    return by_hand(pairs, iterations, **wrong)


def numbered(change):
    """train_ibm1 with sentences that are numbered in another way."""
    original = ibm._numbered

    def other(pairs, src_ids, tgt_ids):
        src, tgt = original(pairs, src_ids, tgt_ids)
        return [change(sentence) for sentence in src], tgt

    return patched(train_ibm1, mock.patch.object(ibm, "_numbered", other))


without_null = numbered(lambda sentence: sentence[:-1])
without_repeats = numbered(np.unique)
shared_over_targets = partial(loops, total="target")
unshared = partial(loops, shared=False)
one_iteration_too_few = partial(loops, iterations=4)


# --- laws ---------------------------------------------------------------------------------------


def equals_the_loops(train):
    ours, theirs = train(PAIRS), by_hand(PAIRS, 5)
    src, tgt = [None, *"abcde"], list("UVWXYZ")
    np.testing.assert_allclose(ours.table(src, tgt), theirs.table(src, tgt), rtol=1e-9)
    np.testing.assert_allclose(ours.log_likelihoods, theirs.log_likelihoods, rtol=1e-9)


@pytest.mark.parametrize(
    "mutant", [without_null, without_repeats, shared_over_targets, unshared, one_iteration_too_few]
)
def test_training_equals_expectation_maximization_in_loops(mutant):
    tells_apart(equals_the_loops, train_ibm1, mutant)


def probabilities_sum_to_one(train):
    model = train(PAIRS)
    table = model.table(list(model.src_ids), list(model.tgt_ids))  # (target words, source words)
    assert (table >= 0).all() and (table <= 1).all()
    np.testing.assert_allclose(table.sum(axis=0), 1)


def test_the_probabilities_of_a_source_word_sum_to_one():
    tells_apart(probabilities_sum_to_one, train_ibm1, shared_over_targets)


def likelihood_never_falls(train):
    for seed in range(5):
        steps = np.diff(train(random_pairs(seed=seed), iterations=20).log_likelihoods)
        assert len(steps) == 20
        assert (steps >= -1e-9).all() and steps[0] > 1


def test_the_likelihood_never_falls():
    tells_apart(likelihood_never_falls, train_ibm1, unshared)


def finds_the_lexicon(train):
    """Nouns and verbs of the toy sentences, where every sentence has two articles and a full stop."""
    model = train(TOY, iterations=10)
    for english, german in (NOUNS | VERBS).items():
        ((best, probability),) = model.translations(english, 1)
        assert best == german and probability > 0.9
    for src, tgt in TOY[1::7]:
        if src[1] == src[4]:  # a dog sees a dog: two equal words
            continue
        found = model.links(src, tgt)
        assert {(1, 1), (2, 2), (4, 4)} <= found  # noun, verb, noun
        assert not found & {(position, other) for position in (1, 2, 4) for other in range(6) if other != position}


def test_a_known_lexicon_is_found_again():
    tells_apart(finds_the_lexicon, train_ibm1, unshared, lambda pairs, iterations: train_ibm1(pairs, iterations=1))


def null_explains_what_translates_nothing(train):
    """Every German sentence has a word more, which no English word stands for."""
    pairs = [(src[1:3], [*tgt[1:3], "doch"]) for src, tgt in TOY]
    model = train(pairs, iterations=10)
    assert model.translations(None, 1)[0][0] == "doch"
    assert model.links(["dog", "sees"], ["Hund", "sieht", "doch"]) == {(0, 0), (1, 1)}


def test_null_explains_what_translates_nothing():
    null_explains_what_translates_nothing(train_ibm1)
    with pytest.raises((AssertionError, IndexError)):
        null_explains_what_translates_nothing(without_null)


def order_does_not_matter(train):
    src, tgt = [None, *"abcde"], list("UVWXYZ")
    np.testing.assert_allclose(train(PAIRS).table(src, tgt), train(PAIRS[::-1]).table(src, tgt), rtol=1e-9)


def test_the_order_of_the_pairs_does_not_matter():
    tells_apart(order_does_not_matter, train_ibm1, lambda pairs: train_ibm1(pairs[:-3]))


# --- links --------------------------------------------------------------------------------------


def small_model(t):
    """An aligner with the given t(target | source)."""
    src_ids, tgt_ids = {None: 0, "a": 1, "b": 2}, {"X": 0, "Y": 1}
    keys = {src_ids[s] * 2 + tgt_ids[w]: value for (s, w), value in t.items()}
    return Aligner(src_ids, tgt_ids, np.array(sorted(keys)), np.array([keys[key] for key in sorted(keys)]), [])


def test_links_go_to_the_most_probable_word_the_nearest_of_equals_and_none_for_null():
    model = small_model({("a", "X"): 0.6, ("b", "X"): 0.2, (None, "X"): 0.3, ("b", "Y"): 0.1, (None, "Y"): 0.4})
    assert model.links(["a", "b"], ["X", "X"]) == {(0, 0), (0, 1)}
    assert model.links(["a", "b", "a"], ["X", "X", "X"]) == {(0, 0), (0, 1), (2, 2)}
    assert model.links(["a", "a"], 4 * ["X"]) == {(0, 0), (0, 1), (0, 2), (1, 3)}, "of two as near the first"
    assert model.links(["b"], ["X", "Y"]) == set(), "NULL is more probable"
    assert small_model({("a", "X"): 0.5, (None, "X"): 0.5}).links(["a"], ["X"]) == {(0, 0)}, "as good as NULL"
    assert model.links(["b"], ["Y"]) == set() and model.scores(["b"], ["Y"]).tolist() == [[0.05, 0.2]]


def test_strangers_have_no_translation_and_no_link():
    model = small_model({("a", "X"): 0.6, ("b", "Y"): 0.1, (None, "Y"): 0.4})
    assert model.translations("zebra") == []
    assert model.links(["zebra"], ["X", "Zebra"]) == model.links(["a"], ["Zebra"]) == set()
    assert model.links(["zebra", "a"], ["Zebra", "X"]) == {(1, 1)}
    assert model.links(["a"], []) == set()
    assert (model.table(["zebra", "a"], ["Zebra", "Y"]) == 0).all()


def test_translations_are_sorted():
    model = train_ibm1(PAIRS)
    for word in (None, *"abcde"):
        found = model.translations(word, 3)
        everything = model.table([word], list(model.tgt_ids))[:, 0]
        assert [probability for _, probability in found] == sorted(everything, reverse=True)[:3]
        assert all(model.table([word], [target]) == probability for target, probability in found)


# --- positions ----------------------------------------------------------------------------------


def fast_align_equals_the_loops(train):
    ours, theirs = train(PAIRS), by_hand(PAIRS, 5, tension=4.0)
    src, tgt = [None, *"abcde"], list("UVWXYZ")
    assert ours.tension == pytest.approx(theirs.tension, abs=1e-5) and 0 < ours.tension != 4
    np.testing.assert_allclose(ours.table(src, tgt), theirs.table(src, tgt), rtol=1e-5)
    np.testing.assert_allclose(ours.log_likelihoods, theirs.log_likelihoods, rtol=1e-8)


def unfitted(pairs, **options):
    return patched(train_fast_align, mock.patch.object(ibm._Places, "fitted", lambda self, tension, shares: tension))(
        pairs, **options
    )


def from_zero(src_len, tgt_len):
    """Distances of places that are counted from 0, though the paper counts from 1."""
    return np.abs(np.arange(tgt_len)[:, None] / tgt_len - np.arange(src_len) / src_len)


misplaced = patched(train_fast_align, mock.patch.object(ibm, "distances", from_zero))


def test_fast_align_equals_expectation_maximization_in_loops():
    tells_apart(fast_align_equals_the_loops, train_fast_align, train_ibm1, unfitted, misplaced)


def test_the_likelihood_of_fast_align_never_falls():
    tells_apart(likelihood_never_falls, train_fast_align, partial(loops, shared=False, tension=4.0))


def the_prior_is_a_distribution_around_the_diagonal(prior):
    found = prior(5, 3, tension=2.0, null=0.1)
    assert found.shape == (3, 6) and (found[:, -1] == 0.1).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[:, :-1].argmax(axis=1).tolist() == [1, 2, 4]  # shares 2/5, 3/5, 5/5 are nearest to 1/3, 2/3, 3/3
    np.testing.assert_allclose(found[0, 1] / found[0, 3], math.exp(2.0 * (abs(1 / 3 - 4 / 5) - abs(1 / 3 - 2 / 5))))
    np.testing.assert_allclose(prior(5, 3), 1 / 6)


def test_the_prior_is_a_distribution_around_the_diagonal():
    def upside_down(src_len, tgt_len, *, tension=0.0, null=None):
        return diagonal_prior(src_len, tgt_len, tension=-tension, null=null)

    def null_on_top(src_len, tgt_len, *, tension=0.0, null=None):
        return diagonal_prior(src_len, tgt_len, tension=tension, null=null) * [*[1] * src_len, 1.5]

    tells_apart(the_prior_is_a_distribution_around_the_diagonal, diagonal_prior, upside_down, null_on_top)
    assert distances(2, 1).tolist() == [[0.5, 0.0]]


def tension_tells_how_strict_the_order_is(train):
    """Sentences word for word in the same order, and the same with shuffled targets."""
    rng = random.Random(0)
    sources = [[rng.choice("abcdefgh") for _ in range(8)] for _ in range(300)]
    ordered = [(words, [word.upper() for word in words]) for words in sources]
    shuffled = [(src, rng.sample(tgt, len(tgt))) for src, tgt in ordered]
    strict, loose = train(ordered), train(shuffled)
    assert strict.tension > 20 > 4 > loose.tension
    aligned = [strict.links(*pair) == {(place, place) for place in range(8)} for pair in ordered]
    assert sum(aligned) == 300, "of equal words, the one at the same place"


def test_tension_tells_how_strict_the_order_is():
    tells_apart(tension_tells_how_strict_the_order_is, train_fast_align, train_ibm1, unfitted)


def test_a_probability_of_null_is_refused_at_the_ends():
    for null in (0, 1):
        error = raised(ValueError, lambda null=null: train_fast_align(PAIRS, null=null))
        assert f"expected a probability of NULL between 0 and 1, got {null}" in str(error)


@pytest.mark.parametrize(
    "pairs, iterations, message",
    [
        ([], 5, "no sentence pairs to learn from"),
        ([(["a"], ["X"]), ([], ["Y"])], 5, "pair 1 has an empty side: [], ['Y']"),
        ([(["a"], [])], 5, "pair 0 has an empty side"),
        (PAIRS, 0, "expected at least 1 iteration, got 0"),
    ],
)
def test_bad_input_is_named(pairs, iterations, message):
    assert message in str(raised(ValueError, lambda: train_ibm1(pairs, iterations=iterations)))
