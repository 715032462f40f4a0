"""Laws of the merges: each is the most frequent pair, counted in the text as it stands, and the text stays the text."""

import random
from collections import Counter

import pytest

from course_lib.analysis.merges import Merges, count_pairs, learn_merges, merge_pair
from course_lib.tokenizer import SPECIALS, Tokenizer
from tests.helpers.laws import raised

TINY = "The cat sleeps. The cat sees the dog. The dog sees the cat."
TEXTS = [TINY, "a", "aaaa aaa aaaaaaa", "Die alte Frau gibt dem Kind einen roten Apfel.", "<s> </s> <b>😀</b> a_b é é"]


def random_texts(number=40):
    rng, alphabets = random.Random(0), ["ab", "abcdef", "abcdefghijklm.,"]
    words = ["".join(rng.choices(rng.choice(alphabets), k=rng.randint(1, 7))) for _ in range(20 * number)]
    return [" ".join(words[each::number]) for each in range(number)]


def law_each_merge_is_the_most_frequent_pair(learn):
    """The recipe of lesson 01, with its rule for ties, on texts of every kind."""
    for text in TEXTS + random_texts():
        found = learn(text)
        assert len(found.pairs) == len(found.counts) == len(found.stages) - 1
        numbers = {symbol: number for number, symbol in enumerate([*SPECIALS, *sorted(set("".join(found.words)))])}
        for pair, counts, before, after in zip(found.pairs, found.counts, found.stages, found.stages[1:], strict=False):
            in_the_text = Counter(
                each for word in found.words for each in zip(before[word], before[word][1:], strict=False)
            )
            assert counts == in_the_text and list(counts) == list(in_the_text)
            assert pair == min(counts, key=lambda p: (-counts[p], numbers[p[0]], numbers[p[1]]))
            numbers.setdefault("".join(pair), len(numbers))
            for word, symbols in after.items():
                assert "".join(symbols) == word and symbols == merge_pair(before[word], pair)
        assert all(symbols == list(word) for word, symbols in found.stages[0].items())
        assert all(symbols == [word] for word, symbols in found.stages[-1].items())
        assert found.vocab == numbers


def test_each_merge_is_the_most_frequent_pair():
    law_each_merge_is_the_most_frequent_pair(learn_merges)


def changed(**change):
    """learn_merges with one of its results changed."""

    def learn(text):
        found = vars(learn_merges(text))
        return Merges(**found | {name: function(found) for name, function in change.items()})

    return learn


@pytest.mark.parametrize(
    "wrong",
    [
        changed(pairs=lambda found: found["pairs"][::-1]),
        changed(pairs=lambda found: found["pairs"][:-1]),
        changed(counts=lambda found: [{pair: 1 for pair in counts} for counts in found["counts"]]),
        changed(counts=lambda found: [dict(sorted(counts.items())) for counts in found["counts"]]),
        changed(stages=lambda found: found["stages"][:1] * len(found["stages"])),
        changed(words=lambda found: sorted(set(found["words"]))),  # each word once
        changed(vocab=lambda found: {symbol: number + 1 for symbol, number in found["vocab"].items()}),
    ],
)
def test_the_law_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_each_merge_is_the_most_frequent_pair(wrong)


def test_the_lessons_text_gives_the_lessons_merges():
    found = learn_merges(TINY)
    assert found.words == "▁The ▁cat ▁sleeps . ▁The ▁cat ▁sees ▁the ▁dog . ▁The ▁dog ▁sees ▁the ▁cat .".split()
    assert found.pairs[:2] == [("h", "e"), ("T", "he")] and found.counts[0]["h", "e"] == 5
    whole = Tokenizer.train([TINY], vocab_size=1_000)
    assert whole.vocab_size == len(found.vocab)
    assert [found.stages[-1][word] for word in found.words] == [[token] for token in whole.tokens(TINY)]


def test_pairs_are_counted_as_often_as_their_word_occurs():
    assert count_pairs({"aba": ["a", "b", "a"], "ab": ["a", "b"]}, {"aba": 2, "ab": 5}) == {
        ("a", "b"): 7,
        ("b", "a"): 2,
    }
    assert merge_pair(list("aaaaa"), ("a", "a")) == ["aa", "aa", "a"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_is_refused(text):
    assert str(raised(ValueError, lambda: learn_merges(text))) == "no text to learn subwords from"
