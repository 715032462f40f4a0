"""The attention explorer without a browser: what it sends is the library's, and a bad sentence changes nothing."""

import numpy as np
import pytest
import torch

from course_lib.analysis.alignment import alignment_error_rate
from course_lib.analysis.exploration import explore
from course_lib.grammar import build as grammar
from course_lib.recording import KINDS
from course_lib.translator import Translator
from course_lib.widgets import AttentionExplorer
from course_lib.widgets.attention_explorer import MAX_TOKENS
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

TRANSLATOR = Translator.from_pretrained("course")
APPLE = grammar.a("apple", "red")
PAIR = grammar.pair(
    grammar.clause(grammar.the("woman", "old"), "geben", dative=grammar.the("child"), accusative=APPLE)
)
LOSES = grammar.pair(grammar.clause(grammar.the("student"), "verlieren", accusative=grammar.a("letter")))


def widget(text=PAIR.src, **options):
    return AttentionExplorer(TRANSLATOR, text, **options)


def sent(explorer):
    """The maps as the browser has them: kind → (layers, heads, queries, keys)."""
    numbers, found, view = np.frombuffer(explorer.weights, "<u2") / 65_535, {}, explorer.view
    sides = {"encoder": ("src", "src"), "decoder": ("tgt", "read"), "cross": ("tgt", "src")}
    for kind in KINDS:
        shape = (len(explorer.heads[kind]), explorer.heads[kind][0], *(len(view[side]) for side in sides[kind]))
        found[kind], numbers = numbers[: np.prod(shape)].reshape(shape), numbers[np.prod(shape) :]
    assert not len(numbers)
    return found


def it_sends_the_librarys_weights(make):
    explorer = make()
    for text in (PAIR.src, "The cat sleeps.", "one two three four five six seven"):
        explorer.text = text
        expected = explore(TRANSLATOR, text)
        assert explorer.view["text"] == expected.text and explorer.shown == len(explorer.view["tgt"])
        for kind, maps in sent(explorer).items():
            theirs = torch.stack(getattr(expected.attention, kind))[..., :MAX_TOKENS, :MAX_TOKENS]
            np.testing.assert_allclose(maps, theirs, atol=1e-5)


class OfTheWrongSentence(AttentionExplorer):
    def _translate(self):
        self.set_trait("text", PAIR.src)
        super()._translate()


class RowsMoved(AttentionExplorer):
    def _described(self, found, before):
        return super()._described(found, before) | {"read": found.tgt_tokens}

    def _translate(self):
        super()._translate()
        self.weights = self.weights[2:] + self.weights[:2]


@pytest.mark.parametrize("wrong", [OfTheWrongSentence, RowsMoved])
def test_it_sends_the_librarys_weights(wrong):
    it_sends_the_librarys_weights(widget)
    with pytest.raises(AssertionError):
        it_sends_the_librarys_weights(lambda: wrong(TRANSLATOR, PAIR.src))


def test_gold_links_go_from_words_to_tokens_and_only_with_the_true_translation():
    explorer = widget(LOSES.src, pairs=[PAIR, LOSES])
    src, tgt = explorer.view["src"], explorer.view["tgt"]
    links = {(src[s], tgt[t]) for s, t in explorer.view["gold"]}
    split = {(s, t) for s in ("▁lo", "ses") for t in ("▁verli", "ert")}
    assert split | {("▁a", "▁einen"), (".", ".")} <= links
    assert len(links) == len(explorer.view["gold"]) == 9
    explorer = widget(pairs=[PAIR])
    rates = np.array(explorer.view["rates"])
    assert rates.shape == (2, 4) and rates[1, 2] == alignment_error_rate(set(PAIR.links), set(PAIR.links)) == 0
    assert rates[1, 0] > 0.4
    explorer.forced = [explorer.view["candidates"][0][1][0]]
    assert explorer.view["text"] != PAIR.tgt and explorer.view["gold"] is explorer.view["rates"] is None
    assert widget().view["gold"] is None


def test_forced_tokens_end_with_a_new_sentence_and_silent_heads_do_not():
    explorer = widget()
    explorer.silent = [["cross", 1, head] for head in range(4)]
    quiet = explorer.view["text"]
    assert quiet == explore(TRANSLATOR, PAIR.src, silent=[("cross", 1, head) for head in range(4)]).text
    assert explorer.view["before"] == PAIR.tgt != quiet
    explorer.silent = []
    explorer.forced = [explorer.view["ids"][1]]
    explorer.text = "The cat sleeps."
    assert explorer.forced == [] and explorer.view["text"] == "Die Katze schläft."


def a_bad_sentence_changes_nothing_else(make):
    for text, message in (("", "empty sentence"), ("word " * 200, f"takes up to {MAX_TOKENS}")):
        explorer = make()
        before = explorer.view, explorer.weights, explorer.shown
        explorer.text = text
        assert message in explorer.message and (explorer.view, explorer.weights, explorer.shown) == before
        explorer.text = "The cat sleeps."
        assert explorer.message == "" and explorer.view["text"] == "Die Katze schläft."


class KeepsTheMessage(AttentionExplorer):
    def _translate(self):
        message = self.message
        super()._translate()
        self.message = message or self.message


def test_a_bad_sentence_changes_nothing_else():
    a_bad_sentence_changes_nothing_else(widget)
    with pytest.raises(AssertionError):
        a_bad_sentence_changes_nothing_else(lambda: KeepsTheMessage(TRANSLATOR, PAIR.src))


def test_a_long_translation_is_cut_and_its_maps_fit():
    explorer = widget("a " * 25)
    assert len(explorer.exploration.tgt_tokens) > MAX_TOKENS == len(explorer.view["tgt"]) == explorer.shown
    assert sent(explorer)["decoder"].shape[-2:] == (MAX_TOKENS, MAX_TOKENS)


@pytest.mark.parametrize("options", [dict(kind="memory"), dict(layer=2), dict(layer=-2), dict(head=4), dict(head=-2)])
def test_heads_that_are_not_there_are_refused(options):
    assert "no head" in str(raised(ValueError, lambda: widget(**options)))


def test_a_stored_notebook_keeps_a_picture_with_its_words():
    one, all_of_them = dict(head=1), dict(kind="encoder", layer=0)
    for options, words in ((one, "Head 1 in layer 1 of cross"), (all_of_them, "All heads in layer 0 of encoder")):
        assert words in stored_words(widget(**options))
    assert "an empty sentence" in widget("").picture().get_suptitle()
