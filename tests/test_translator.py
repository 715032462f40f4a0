"""Text in, translation out: one by one or many at once, saved and loaded, with or without attention maps."""

from functools import partial
from unittest import mock

import pytest
import torch

from course_lib import translator as translator_module
from course_lib.decoding import beam, beam_search, greedy, one_path, output_limits
from course_lib.preprocessing import PLACEHOLDERS, Piece, Prepared
from course_lib.tokenizer import Tokenizer
from course_lib.translator import Translator
from tests.helpers.corpora import TEXTS
from tests.helpers.decoding import ATTENDS_TO_PADDING
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import Echo, toy_translator

# --- translating --------------------------------------------------------------------------------


def batch_equals_one_by_one(translate_batch):
    """Also where outputs end at their own limits only, which the model's 24 positions would hide."""
    for beam_size, positions in ((1, 24), (3, 24), (1, 120), (3, 120)):
        translator = toy_translator(max_len=positions)
        together = translate_batch(translator, TEXTS, beam_size=beam_size)
        for text, ours in zip(TEXTS, together, strict=True):
            theirs = translator.translate(text, beam_size=beam_size)
            assert (ours.text, ours.src_tokens, ours.tgt_tokens) == (theirs.text, theirs.src_tokens, theirs.tgt_tokens)
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert len({ours.text for ours in together}) > 3, "too uniform to compare"
    lengths = {len(ours.tgt_tokens) - len(ours.src_tokens) for ours in together if ours.tgt_tokens[-1] != "</s>"}
    assert lengths == {50}, "no output has come to its limit"


def order_of_lengths(translator, texts, **options):
    return Translator.translate_batch(translator, sorted(texts, key=len), **options)


def test_a_batch_equals_its_sentences_one_by_one():
    batch_equals_one_by_one(patched(Translator.translate_batch, with_another("BATCH_SENTENCES", 4)))
    limits = [mock.patch.object(module, "output_limits", limits_of_the_longest) for module in (one_path, beam)]
    searches = [with_another(search.__name__, patched(search, ATTENDS_TO_PADDING)) for search in (greedy, beam_search)]
    mutants = [patched(Translator.translate_batch, *patches) for patches in (searches, limits[:1], limits[1:])]
    tells_apart(batch_equals_one_by_one, Translator.translate_batch, order_of_lengths, *mutants)


def limits_of_the_longest(model, src, max_len, limits=output_limits):
    return [max(limits(model, src, max_len))] * len(src)


def with_another(name, value):
    return mock.patch.object(translator_module, name, value)


def greedy_has_the_score_of_a_beam_of_one(translate):
    translator = toy_translator()
    for text in TEXTS:
        src = torch.tensor(translator.encode([text]))
        for penalty in (0.0, 0.6, 2.0):
            ((best, *_),) = beam_search(translator.model, src, beam_size=1, length_penalty=penalty)
            found = translate(translator, text, beam_size=1, length_penalty=penalty)
            assert found.score == pytest.approx(best.score, abs=1e-5)


def test_greedy_has_the_score_of_a_beam_of_one():
    bare = patched(Translator.translate, with_another("normalized", lambda log_prob, length, penalty: log_prob))
    tells_apart(greedy_has_the_score_of_a_beam_of_one, Translator.translate, bare)


def test_beam_size_and_length_penalty_reach_the_search():
    translator, seen = toy_translator(), {}

    def spy(model, src, **options):
        seen.update(options)
        return beam_search(model, src, **options)

    with with_another("beam_search", spy):
        translator.translate("a dog", beam_size=3, length_penalty=0.2)
        assert seen == dict(beam_size=3, length_penalty=0.2)
        translator.translate("a dog")
        assert seen == dict(beam_size=4, length_penalty=0.6), "the paper's"
    assert "beam_size" in str(raised(ValueError, lambda: translator.translate("a dog", beam_size=0)))


def test_tokens_are_those_of_the_text():
    translator = toy_translator()
    for text in TEXTS:
        found = translator.translate(text)
        assert found.src_tokens == [*translator.tokenizer.tokens(text), "</s>"]
        assert str(found) == found.text == translator.tokenizer.decode(ids_of(translator, found.tgt_tokens))


def ids_of(translator, tokens):
    table = {translator.tokenizer.token(i): i for i in range(translator.tokenizer.vocab_size)}
    return [table[token] for token in tokens]


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_sentence_is_refused(text):
    translator = toy_translator()
    for call in (lambda: translator.translate(text), lambda: translator.translate_batch(["a dog", text])):
        assert "empty sentence" in str(raised(ValueError, call)) and repr(text) in str(raised(ValueError, call))


def test_a_sentence_beyond_the_models_positions_is_refused():
    translator = toy_translator()
    error = raised(ValueError, lambda: translator.translate("dog " * 30))
    assert str(error) == "the sentence has 31 tokens, the model has positions for 24"
    assert translator.translate("dog " * 23).text is not None


def test_unknown_characters_are_translated_as_unk():
    assert "<unk>" in toy_translator().translate("a 犬 sees").src_tokens


def test_no_sentences_give_no_translations():
    assert toy_translator().translate_batch([]) == []


def test_one_text_is_no_batch():
    assert raised(ValueError, lambda: toy_translator().translate_batch("dog"))


def test_vocabularies_of_model_and_tokenizer_must_agree():
    translator = toy_translator()
    other = Tokenizer.train(["some other words, and fewer"], 40)
    error = raised(ValueError, lambda: Translator(translator.model, other))
    assert str(error) == f"the model has 80 subwords, the tokenizer {other.vocab_size}"


# --- attention ----------------------------------------------------------------------------------


def attention_changes_no_text_and_fits_its_labels(translate):
    translator, finished = toy_translator(), set()
    for text in TEXTS:
        plain, found = translator.translate(text), translate(translator, text)
        assert (found.text, found.tgt_tokens, found.score) == (plain.text, plain.tgt_tokens, plain.score)
        assert plain.attention is None
        src_len, tgt_len = len(found.src_tokens), len(found.tgt_tokens)
        shapes = dict(encoder=(2, src_len, src_len), decoder=(2, tgt_len, tgt_len), cross=(2, tgt_len, src_len))
        for part, shape in shapes.items():
            maps = getattr(found.attention, part)
            assert [tuple(weights.shape) for weights in maps] == [shape] * 2
            for weights in maps:
                torch.testing.assert_close(weights.sum(dim=-1), torch.ones(shape[:-1]))
        finished.add(found.tgt_tokens[-1] == "</s>")
    assert finished == {True, False}, "both kinds of endings"


def one_row_short(translator, text):
    found = translator.translate(text, attention=True)
    found.attention.cross[:] = [weights[:, :-1] for weights in found.attention.cross]
    return found


def test_attention_changes_no_text_and_fits_its_labels():
    tells_apart(
        attention_changes_no_text_and_fits_its_labels, partial(Translator.translate, attention=True), one_row_short
    )


def maps_are_those_of_the_search(translate):
    """Greedy search step by step, without a cache: its last row at each step is the row of the map."""
    translator = toy_translator()
    found = translate(translator, TEXTS[0])
    src = torch.tensor([ids_of(translator, found.src_tokens)])
    tgt = [1, *ids_of(translator, found.tgt_tokens)]
    for step in range(len(found.tgt_tokens)):
        with torch.no_grad(), translator_module.record_attention(translator.model) as maps:
            logits = translator.model(src, torch.tensor([tgt[: step + 1]]))[0, -1, 2:]
        assert int(logits.argmax()) + 2 == tgt[step + 1], "row `step` belongs to the token it predicts"
        for ours, theirs in zip(found.attention.cross, maps.cross, strict=True):
            torch.testing.assert_close(ours[:, step], theirs[0, :, -1], rtol=0, atol=1e-5)


def labels_shifted(translator, text):
    found = translator.translate(text, beam_size=1, attention=True)
    found.attention.cross[:] = [weights.roll(1, dims=1) for weights in found.attention.cross]
    return found


def test_maps_are_those_of_the_search():
    greedily = partial(Translator.translate, beam_size=1, attention=True)
    tells_apart(maps_are_those_of_the_search, greedily, labels_shifted)


# --- what people type ---------------------------------------------------------------------------

REFUSED = [
    *(((text,), {}, rf"expected the text of a sentence, got {text!r}") for text in (None, 3, b"a dog", ["a dog"])),
    *((("cat",), {"beam_size": size}, f"beam_size must be .*got {size!r}") for size in (0, 1.5, "4", True, None)),
    *((("cat",), {"length_penalty": p}, f"length_penalty must be .*got {p!r}") for p in ("x", None, True)),
]


@pytest.mark.parametrize(("arguments", "options", "message"), REFUSED)
def test_what_is_no_text_and_no_number_is_refused(arguments, options, message):
    for call in (Translator.translate, lambda ours, text, **options: ours.translate_batch([text], **options)):
        with pytest.raises(ValueError, match=message.replace("[", r"\[")):
            call(toy_translator(), *arguments, **options)


@pytest.mark.parametrize("texts", ["cat", None, 3])
def test_a_batch_is_several_texts(texts):
    with pytest.raises(ValueError, match=f"expected several texts, got {texts!r}"):
        toy_translator().translate_batch(texts)


def law_what_is_copied_comes_back(translate):
    for text in ("A dog sees www.a.org/b.", "A 李雷 sees a Москва , a cat", "A bird 😀"):
        found = translate(Echo(), text)
        assert found.text == text and not found.remarks
        assert any(word in token for token in found.tgt_tokens for word in ("www.a.org/b", "李雷", "😀"))
        assert not any(mark in token for token in found.src_tokens + found.tgt_tokens for mark in PLACEHOLDERS)


def test_what_is_copied_comes_back():
    unread = patched(Translator.translate, mock.patch.object(Translator, "prepare", lambda _, text: as_it_is(text)))
    tells_apart(law_what_is_copied_comes_back, Translator.translate, unread)
    assert toy_translator().prepare("Привет") == as_it_is("Привет")


def as_it_is(text):
    return Prepared((Piece(text),), ())


def test_a_long_text_is_translated_sentence_by_sentence():
    sentences = ["A dog sees a cat.", "A bird hears a man!", "A child knows a horse."]
    for gap in (" ", "\n"):
        found = Echo().translate(gap.join(sentences * 3))
        assert found.text == gap.join(sentences * 3)
        assert found.remarks == ("9 sentences, translated one by one",)
        assert found.tgt_tokens.count("</s>") == found.src_tokens.count("</s>") == 9
    with pytest.raises(ValueError, match="one sentence can be looked into at a time, got 9"):
        Echo().translate(" ".join(sentences * 3), attention=True)
    together = Echo().translate_batch([" ".join(sentences * 3), "A cat"])
    assert [one.text for one in together] == [" ".join(sentences * 3), "A cat"] and not together[1].remarks


def test_what_is_lost_is_said():
    with mock.patch.object(Tokenizer, "decode", lambda self, ids: "a cat"):
        assert Echo().translate("a dog 12345").remarks == ("not in the translation: 12345, A",)
