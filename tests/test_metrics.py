"""Scores: corpus BLEU with its signature, and exact match."""

import math
from statistics import mean, stdev

import pytest
import sacrebleu

from course_lib.metrics import (
    Bleu,
    Estimate,
    bleu,
    bleu_difference,
    exact_match,
    mean_estimate,
    share_estimate,
    tokenized_bleu,
)
from tests.helpers.laws import raised, tells_apart

# A short perfect sentence and a long bad one: their mean says 50, but most of the text is wrong.
OUTPUTS = ["A man walks his dog .", "The the the the the the the the the the the the the the the the ."]
REFERENCES = ["A man walks his dog .", "Two women in red coats are standing in front of a very old church today ."]


def bleu_is_of_the_corpus(score):
    whole = score(OUTPUTS, REFERENCES).score
    by_sentence = mean(score([o], [r]).score for o, r in zip(OUTPUTS, REFERENCES, strict=True))
    assert by_sentence > 45
    assert whole < 0.6 * by_sentence


def mean_of_sentences(outputs, references):
    return Bleu(mean(bleu([o], [r]).score for o, r in zip(outputs, references, strict=True)), "", 1.0)


def test_bleu_is_of_the_corpus_not_a_mean_over_sentences():
    tells_apart(bleu_is_of_the_corpus, bleu, mean_of_sentences)


def bleu_is_cased(score):
    assert score(["ein Hund im alten Park"], ["ein Hund im alten Park"]).score == pytest.approx(100)
    assert score(["ein hund im alten park"], ["ein Hund im alten Park"]).score < 50


def test_bleu_is_cased():
    tells_apart(
        bleu_is_cased,
        bleu,
        lambda outputs, references: bleu([o.lower() for o in outputs], [r.lower() for r in references]),
    )


def punctuation_counts_as_tokens(score):
    assert score(["der Hund schläft, er träumt."], ["der Hund schläft , er träumt ."]).score == pytest.approx(100)


def test_punctuation_is_split_off_before_counting():
    tells_apart(punctuation_counts_as_tokens, bleu, lambda o, r: sacrebleu.BLEU(tokenize="none").corpus_score(o, [r]))


def test_bleu_by_hand():
    """1 of 1 sentence, 5 of 6 words right: precisions 5/6, 3/5, 2/4, 1/3, no brevity penalty."""
    score = bleu(["the cat sat on a mat"], ["the cat sat on the mat"]).score
    assert score == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25, abs=1e-6)


def test_the_length_ratio_is_of_the_nearest_references():
    outputs = ["a dog runs now", "no"]
    references = [["a big dog", "a big old brown dog runs"], ["no", "oh no not again"]]
    for found in (bleu(outputs, references), tokenized_bleu(outputs, references)):
        assert found.length_ratio == (4 + 1) / (3 + 1)
    outputs, references = ["a cat sat on it"], ["a cat sat on it today ."]
    assert bleu(outputs, references).length_ratio == 5 / 7
    assert bleu(outputs, references).score == pytest.approx(100 * math.exp(1 - 7 / 5))  # all right, but too short


def test_the_signature_says_how_bleu_was_computed():
    result = bleu(OUTPUTS, REFERENCES)
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in result.signature
    assert str(result) == f"{result.score:.1f} BLEU ({result.signature})"


SEVERAL = [["Hallo Tom, wie geht es dir?", "Hallo Tom, wie geht es Ihnen?"], ["Sie liest ein sehr altes Buch."]]


def any_reference_will_do(score):
    for first in SEVERAL[0]:
        assert score([first, SEVERAL[1][0]], SEVERAL).score == pytest.approx(100)
    assert score(["Hallo Tom, wie geht es euch?", SEVERAL[1][0]], SEVERAL).score < 95
    assert "nrefs:var" in score([SEVERAL[0][0], SEVERAL[1][0]], SEVERAL).signature


@pytest.mark.parametrize("score", [bleu, tokenized_bleu])
def test_an_output_is_compared_with_all_its_references(score):
    tells_apart(
        any_reference_will_do, score, lambda outputs, references: score(outputs, [texts[0] for texts in references])
    )


def test_one_reference_in_a_list_is_one_reference():
    assert bleu(OUTPUTS, [[text] for text in REFERENCES]) == bleu(OUTPUTS, REFERENCES)


def test_case_and_tokenizer_are_as_asked_and_in_the_signature():
    assert bleu(["DER HUND SCHLÄFT HEUTE"], ["der Hund schläft heute"], lowercase=True).score == pytest.approx(100)
    assert "case:lc" in bleu(OUTPUTS, REFERENCES, lowercase=True).signature
    glued, apart = "der Hund schläft, er träumt.", "der Hund schläft , er träumt ."
    assert bleu([glued], [apart], tokenize="none").score < 50
    assert "tok:intl" in bleu([glued], [apart], tokenize="intl").signature


def tokenized_bleu_is_moses_and_lower_case(score):
    assert score(["DER Hund schläft, er träumt."], ["der Hund schläft, er träumt."]).score == pytest.approx(100)
    # One wrong word of seven tokens, the comma among them.
    by_hand = 100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25
    output, reference = "der alte Hund schläft, er träumt", "der rote Hund schläft, er träumt"
    assert score([output], [reference]).score == pytest.approx(by_hand)


def test_tokenized_bleu_is_what_older_papers_print():
    tokenized_bleu_is_moses_and_lower_case(tokenized_bleu)
    assert "case:lc" in tokenized_bleu(OUTPUTS, REFERENCES).signature
    assert "tok:moses" in tokenized_bleu(OUTPUTS, REFERENCES).signature
    for wrong in (bleu, lambda outputs, references: bleu(outputs, references, tokenize="none", lowercase=True)):
        with pytest.raises(AssertionError):
            tokenized_bleu_is_moses_and_lower_case(wrong)


def exact_match_is_exact(score):
    assert score(["a", "b", "c", "d"], ["a", "B", "c ", "d"]) == 0.5
    assert score(["a"], ["a"]) == 1.0 and score(["a"], ["b"]) == 0.0


def test_exact_match_takes_any_reference():
    assert exact_match([SEVERAL[0][1], "nein"], SEVERAL) == 0.5


def test_exact_match_counts_equal_texts():
    tells_apart(
        exact_match_is_exact,
        exact_match,
        lambda outputs, references: exact_match(outputs, [r.lower().strip() for r in references]),
    )


@pytest.mark.parametrize("score", [bleu, tokenized_bleu, exact_match])
def test_outputs_and_references_must_pair_up(score):
    assert str(raised(ValueError, lambda: score(["a", "b"], ["a"]))).endswith("got 2 outputs and 1")
    assert str(raised(ValueError, lambda: score([], []))).endswith("got 0 outputs and 0")
    assert str(raised(ValueError, lambda: score(["a", "b"], ["a", []]))) == "output 1 has no reference"


# --- how sure a number is -----------------------------------------------------------------------


def interval_of_a_mean(estimate):
    """By hand, from a table of Student's t: mean 2, deviation 1, and t = 4.303 with two degrees of freedom."""
    found = estimate([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.high - 2 == pytest.approx(4.3027 / 3**0.5, abs=1e-4) == 2 - found.low


def with_a_normal_interval(values):
    half = 1.96 * stdev(values) / len(values) ** 0.5
    return Estimate(2.0, 2 - half, 2 + half)


def test_a_mean_of_few_seeds_has_students_interval():
    tells_apart(interval_of_a_mean, mean_estimate, with_a_normal_interval)
    assert str(raised(ValueError, lambda: mean_estimate([1.0]))) == "an interval needs two values or more, got 1"


def interval_of_a_share(estimate):
    """Wilson 1927, by hand."""
    assert [round(bound, 4) for bound in (estimate(0, 10).low, estimate(0, 10).high)] == [0.0, 0.2775]
    assert [round(bound, 4) for bound in (estimate(5, 10).low, estimate(5, 10).high)] == [0.2366, 0.7634]
    assert estimate(5, 10).value == 0.5


def with_walds_interval(count, total):
    share, half = count / total, 1.96 * (count * (total - count) / total**3) ** 0.5
    return Estimate(share, share - half, share + half)


def test_a_share_has_wilsons_interval():
    tells_apart(interval_of_a_share, share_estimate, with_walds_interval)
    for count, total in ((3, 2), (-1, 2), (0, 0)):
        assert f"got {count} of {total}" in str(raised(ValueError, lambda c=count, t=total: share_estimate(c, t)))


# --- differences --------------------------------------------------------------------------------

NUMBERS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"]
COUNTED = [" ".join(NUMBERS[k % 8 :] + NUMBERS[: k % 8]) for k in range(40)]
GOOD = [text.replace("acht", "neun") if k % 2 else text for k, text in enumerate(COUNTED)]
BAD = [text.replace("eins", "neun") for text in GOOD]


def law_difference_is_of_pairs(difference) -> None:
    """It is that of the two scores, 0 for sure between equals, and the interval is narrow where both err alike."""
    found = difference(BAD, GOOD, COUNTED)
    assert found.value == pytest.approx(bleu(BAD, COUNTED).score - bleu(GOOD, COUNTED).score)
    assert found.low < found.value < found.high < 0
    assert difference(GOOD, GOOD, COUNTED) == Estimate(0.0, 0.0, 0.0)
    assert difference(GOOD, BAD, COUNTED).low == pytest.approx(-found.high, abs=1)


def redrawn_apart(outputs, others, references):
    """Draws other sentences for the other side."""
    ours, theirs = (
        bleu_difference(texts, [""] * len(texts), references, seed=k) for k, texts in enumerate((outputs, others))
    )
    return Estimate(ours.value - theirs.value, ours.low - theirs.high, ours.high - theirs.low)


def of_sentences(outputs, others, references):
    """Compares means over sentences."""
    rows = zip(outputs, others, references, strict=True)
    return mean_estimate([bleu([o], [r]).score - bleu([b], [r]).score for o, b, r in rows])


def test_difference_is_of_pairs():
    tells_apart(law_difference_is_of_pairs, bleu_difference, redrawn_apart, of_sentences)


@pytest.mark.parametrize("outputs, others", [(GOOD[:-1], GOOD), (GOOD, GOOD[:-1]), ([], [])])
def test_difference_needs_a_reference_for_each(outputs, others):
    with pytest.raises(ValueError, match="expected references for each output"):
        bleu_difference(outputs, others, COUNTED)
