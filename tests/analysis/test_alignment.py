"""From weights over subwords to links over words: nothing is lost, the right rows are taken, links are counted."""

import random
from functools import partial

import pytest
import torch

from course_lib.analysis.alignment import (
    alignment_error_rate,
    column_links,
    corpus_error_rate,
    diagonal_links,
    error_rate_estimate,
    strongest_links,
    word_spans,
    word_weights,
)
from course_lib.data.batches import encode_pairs, make_batch
from course_lib.recording import record_attention
from course_lib.tokenizer import Tokenizer
from tests.helpers.corpora import toy_pairs
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import toy_translator

pytestmark = pytest.mark.usefixtures("float64")

WORDS = ["Die", "Frau", "gibt", ",", "Apfel", "."]
TOKENS = ["▁Die", "▁Fr", "au", "▁gi", "b", "t", ",", "▁", "Apfel", ".", "</s>"]
SPANS = [range(0, 1), range(1, 3), range(3, 6), range(6, 7), range(7, 9), range(9, 10)]


# --- spans --------------------------------------------------------------------------------------


def spans_by_hand(find):
    assert find(WORDS, TOKENS) == SPANS
    assert find(WORDS, TOKENS[:-1]) == SPANS
    assert find([], ["</s>"]) == []


def by_the_mark_alone(words, tokens):
    """Takes ▁ for the only sign of a new word, and so glues punctuation to the word before."""
    starts = [number for number, token in enumerate(tokens) if token.startswith("▁")]
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True)]


def test_spans_are_the_subwords_of_each_word():
    tells_apart(spans_by_hand, word_spans, by_the_mark_alone)


def spans_spell_the_words(find):
    """With tokenizers that cut words in few and in many pieces."""
    texts = [text for pair in toy_pairs() for text in (pair.src, pair.tgt)]
    for vocab_size in (40, 80, 200):
        tokenizer = Tokenizer.train(texts, vocab_size)
        for text in texts[::17]:
            tokens = tokenizer.tokens(text)
            spans = find(text.split(), tokens)
            assert ["".join(tokens[i] for i in span).replace("▁", "") for span in spans] == text.split()
            assert [position for span in spans for position in span] == list(range(len(tokens)))


def test_spans_spell_the_words_and_leave_no_subword_out():
    tells_apart(spans_spell_the_words, word_spans, lambda words, tokens: [range(n, n + 1) for n in range(len(words))])


@pytest.mark.parametrize(
    "words, tokens, message",
    [
        (["Hunde"], ["▁Hund", "▁er"], "expected subwords that spell 'Hunde', got ['▁Hund', '▁er']"),
        (["Hund", "e"], ["▁Hunde"], "expected subwords that spell 'Hund', got ['▁Hunde']"),
        (["Hund", "Katze"], ["▁Hund"], "expected subwords that spell 'Katze', got []"),
    ],
)
def test_other_subwords_are_refused(words, tokens, message):
    assert message in str(raised(ValueError, lambda: word_spans(words, tokens)))


# --- weights ------------------------------------------------------------------------------------

SRC_SPANS, TGT_SPANS = [range(0, 2), range(2, 3), range(3, 6)], [range(0, 1), range(1, 4)]


def random_weights(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(dim=-1)


def weights_are_merged_by_hand(merge):
    weights = random_weights(2, 6, 8)  # (heads, tgt_len, src_len): each </s>, and a key of padding
    ours = merge(weights, SRC_SPANS, TGT_SPANS)
    assert ours.shape == (2, 2, 4)
    for head in range(2):
        for row, tgt_span in enumerate(TGT_SPANS):
            for column, src_span in enumerate([*SRC_SPANS, range(6, 8)]):
                parts = [sum(weights[head, t, s] for s in src_span) for t in tgt_span]
                torch.testing.assert_close(ours[head, row, column], sum(parts) / len(parts))


def rows_still_sum_to_one(merge):
    merged = merge(random_weights(3, 2, 6, 8), SRC_SPANS, TGT_SPANS)
    torch.testing.assert_close(merged.sum(dim=-1), torch.ones(3, 2, 2))


def whole_words_stay(merge):
    weights = random_weights(4, 5)
    torch.testing.assert_close(merge(weights, [range(n, n + 1) for n in range(4)], SPANS[:1]), weights[:1])


def transposed(weights, src_spans, tgt_spans):
    return word_weights(weights.transpose(-2, -1), src_spans, tgt_spans)


def one_row_lower(weights, src_spans, tgt_spans):
    return word_weights(weights.roll(-1, -2), src_spans, tgt_spans)


def without_the_rest(weights, src_spans, tgt_spans):
    merged = word_weights(weights, src_spans, tgt_spans)
    return torch.cat([merged[..., :-1], torch.zeros_like(merged[..., -1:])], dim=-1)


def mean_over_keys(weights, src_spans, tgt_spans):
    merged = word_weights(weights, src_spans, tgt_spans)
    return merged / torch.tensor([*map(len, src_spans), 1])


def sum_over_rows(weights, src_spans, tgt_spans):
    return word_weights(weights, src_spans, tgt_spans) * torch.tensor([len(span) for span in tgt_spans])[:, None]


@pytest.mark.parametrize(
    "law, mutants",
    [
        (weights_are_merged_by_hand, [transposed, one_row_lower, without_the_rest, mean_over_keys, sum_over_rows]),
        (rows_still_sum_to_one, [without_the_rest, mean_over_keys, sum_over_rows]),
        (whole_words_stay, [transposed, one_row_lower, without_the_rest]),
    ],
)
def test_weights_between_words(law, mutants):
    law(word_weights)
    for mutant in mutants:
        with pytest.raises((AssertionError, ValueError)):
            law(mutant)


def test_weights_of_a_model_fit_the_spans_of_its_tokens():
    translator = toy_translator()
    pair = toy_pairs()[1]
    ((src, tgt),) = encode_pairs(translator.tokenizer, [pair])
    batch = make_batch([(src, tgt), ([*src, *src], [*tgt, *tgt])])  # the first is padded
    with torch.no_grad(), record_attention(translator.model) as maps:
        translator.model(batch.src, batch.tgt_in)
    spans = [word_spans(text.split(), translator.tokenizer.tokens(text)) for text in pair]
    assert sum(map(len, spans[0])) == len(src) - 1 and sum(map(len, spans[1])) == len(tgt)
    merged = word_weights(maps.cross[-1][0], *spans)
    assert merged.shape == (2, 6, 7)  # (heads, tgt_words, src_words + 1)
    torch.testing.assert_close(merged.sum(dim=-1), torch.ones(2, 6))


@pytest.mark.parametrize("src_spans, tgt_spans", [(SPANS, TGT_SPANS), (SRC_SPANS, SPANS), ([], TGT_SPANS)])
def test_spans_beyond_the_weights_are_refused(src_spans, tgt_spans):
    error = raised(ValueError, lambda: word_weights(random_weights(5, 6), src_spans, tgt_spans))
    assert str(error).startswith("expected spans that end within 1..(5, 6), got ends")


# --- links --------------------------------------------------------------------------------------


def links_are_the_largest_weights(find):
    rows = [[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]  # the last column is </s>
    assert find(torch.tensor(rows)) == {(1, 0), (0, 1), (0, 3)}


def largest_for_each_source_word(weights):
    return {(src, int(tgt)) for src, tgt in enumerate(weights[:, :-1].argmax(dim=0))}


def never_nothing(weights):
    return strongest_links(torch.cat([weights[:, :-1], torch.zeros_like(weights[:, :1])], dim=1))


@pytest.mark.parametrize("mutant", [largest_for_each_source_word, never_nothing])
def test_links_are_the_largest_weights(mutant):
    tells_apart(links_are_the_largest_weights, strongest_links, mutant)


def test_columns_link_each_source_word_to_its_strongest_row():
    weights = torch.tensor([[0.5, 0.1, 0.4], [0.3, 0.3, 0.4], [0.0, 0.2, 0.8]])

    def law(find):
        assert find(weights) == {(0, 0), (1, 1)}

    tells_apart(law, column_links, strongest_links, lambda weights: column_links(weights.T))


def diagonal_goes_from_corner_to_corner(diagonal):
    for src_len in range(1, 9):
        assert diagonal(src_len, src_len) == {(position, position) for position in range(src_len)}
        for tgt_len in range(1, 9):
            links = sorted(diagonal(src_len, tgt_len), key=lambda link: link[1])
            assert [tgt for _, tgt in links] == list(range(tgt_len))
            assert [src for src, _ in links] == sorted(src for src, _ in links)
            assert links[0] == (0, 0) and all(0 <= src < src_len for src, _ in links)
            assert tgt_len == 1 or links[-1] == (src_len - 1, tgt_len - 1)


def test_the_diagonal_goes_from_corner_to_corner():
    tells_apart(
        diagonal_goes_from_corner_to_corner, diagonal_links, lambda src, tgt: {(min(n, src - 1), n) for n in range(tgt)}
    )


def error_rate_is_of_all_links(score):
    gold = [{(0, 0)}, {(n, n) for n in range(9)}]
    predicted = [{(0, 0)}, {(n, n + 1) for n in range(9)}]
    assert score(predicted, gold) == pytest.approx(1 - 2 * 1 / 20)
    assert score(gold, [tuple(links) for links in gold]) == 0
    assert score(predicted[:1], gold[:1]) == alignment_error_rate(predicted[0], gold[0])
    assert score([set(), {(0, 0)}], [{(0, 0)}, set()]) == 1, "links of two sentences are not the same link"


def mean_of_sentences(predicted, gold):
    rates = [alignment_error_rate(set(ours), set(true)) for ours, true in zip(predicted, gold, strict=True)]
    return sum(rates) / len(rates)


def without_numbers(predicted, gold):
    return alignment_error_rate(set().union(*predicted), set().union(*gold))


@pytest.mark.parametrize("mutant", [mean_of_sentences, without_numbers])
def test_the_error_rate_is_of_all_links_together(mutant):
    tells_apart(error_rate_is_of_all_links, corpus_error_rate, mutant)


def test_every_sentence_needs_its_links():
    error = raised(ValueError, lambda: corpus_error_rate([set()], [{(0, 0)}, {(0, 0)}]))
    assert str(error) == "expected links for each of 2 sentences, got 1"
    assert str(raised(ValueError, lambda: corpus_error_rate([set()], [set()]))) == "no links to compare"


# --- error rate ---------------------------------------------------------------------------------


def error_rate_by_hand(rate):
    gold = {(0, 0), (1, 2), (2, 1)}
    assert rate(gold, gold) == 0
    assert rate({(0, 1)}, gold) == 1
    assert rate({(0, 0), (1, 2)}, gold) == pytest.approx(1 - 4 / 5)
    assert rate({(0, 0), (5, 5), (6, 6)}, gold) == pytest.approx(1 - 2 / 6)
    assert rate(set(), gold) == rate(gold, set()) == 1


def one_minus_recall(predicted, gold):
    return 1 - len(predicted & gold) / len(gold) if gold else 1.0


def test_alignment_error_rate_by_hand():
    tells_apart(error_rate_by_hand, alignment_error_rate, one_minus_recall)


def test_two_empty_alignments_cannot_be_compared():
    assert str(raised(ValueError, lambda: alignment_error_rate(set(), set()))) == "no links to compare"


# --- intervals ----------------------------------------------------------------------------------


def coins(count, chance, seed, clumped=False):
    """Links of sentences with two words, each right with some chance, and their gold links."""
    rng = random.Random(seed)
    gold, found = [{(0, 0), (1, 1)} for _ in range(count)], []
    for _ in range(count):
        first = rng.random() < chance
        second = first if clumped else rng.random() < chance
        found.append({(0, 0) if first else (1, 0), (1, 1) if second else (0, 1)})
    return found, gold


def intervals_hold_the_true_rate(estimate):
    """In about 95 of 100 measurements; also where the words of a sentence are right or wrong together."""
    for clumped in (False, True):
        found = [estimate(*coins(60, 0.7, seed, clumped), draws=200) for seed in range(100)]
        assert 85 <= sum(each.low <= 0.3 <= each.high for each in found) <= 99, clumped
        assert all(each.low <= each.value <= each.high for each in found)


def of_links(predicted, gold, **options):
    """Draws links instead of sentences, as if the words of a sentence had nothing to do with each other."""
    single = [
        ({link}, {true})
        for ours, right in zip(predicted, gold, strict=True)
        for link, true in zip(sorted(ours, key=lambda link: link[1]), sorted(right), strict=True)
    ]
    return error_rate_estimate(*zip(*single, strict=True), **options)


def test_intervals_hold_the_true_rate():
    tells_apart(intervals_hold_the_true_rate, error_rate_estimate, of_links)


def test_a_sentence_without_links_leaves_the_interval_finite():
    """Some draws hold no other sentence, and so no links to compare."""
    for against in (None, [set(), {(0, 1)}]):
        found = error_rate_estimate([set(), {(0, 0)}], [set(), {(0, 0)}], against=against)
        assert found.low == found.value == found.high == (0 if against is None else -1)


def a_difference_is_taken_on_the_same_sentences(estimate):
    """Half of the sentences are hard for both sides: that says nothing about their difference."""
    gold = [{(0, 0), (1, 1)}] * 100
    ours = [{(1, 0), (0, 1)}] * 50 + [{(0, 0), (1, 1)}] * 50
    theirs = ours[:99] + [{(1, 0), (0, 1)}]
    found = estimate(ours, gold, against=theirs)
    assert found.value == pytest.approx(-0.01) and -0.04 < found.low < -0.01 <= found.high <= 0
    alone = estimate(ours, gold)
    assert alone.value == 0.5 and alone.high - alone.low > 0.15


def test_a_difference_is_taken_on_the_same_sentences():
    def other_sentences(predicted, gold, against=None):
        ours = error_rate_estimate(predicted, gold)
        if against is None:
            return ours
        theirs = error_rate_estimate(against, gold, seed=1)
        return type(ours)(ours.value - theirs.value, ours.low - theirs.high, ours.high - theirs.low)

    tells_apart(a_difference_is_taken_on_the_same_sentences, error_rate_estimate, other_sentences)
    assert error_rate_estimate(*coins(9, 0.5, 0)) == error_rate_estimate(*coins(9, 0.5, 0), seed=0)
    message = "expected links for each of 2 sentences, got 1"
    assert message in str(raised(ValueError, partial(error_rate_estimate, [set()], [{(0, 0)}, {(0, 0)}])))
