"""The everyday translator: light enough for one core, described by its own log, and as good as that says."""

import ast
import gzip
import json
import re

import pytest
from safetensors import safe_open

from course_lib.config import ModelConfig
from course_lib.data import augmented
from course_lib.data.augment.sources import phrasebook
from course_lib.data.clean import clean, fault, tidy
from course_lib.data.corpora import load_corpus
from course_lib.data.corpus import Pair
from course_lib.data.download import find
from course_lib.data.tatoeba import FILENAME
from course_lib.data.tsv import parse_tsv
from course_lib.preprocessing import Piece, Prepared
from course_lib.training.evaluation import score
from course_lib.translator import PRETRAINED, Translator
from notebooks.source.readme import ROOT, in_a_table
from tests.helpers.laws import tells_apart
from tests.helpers.visitors import ROWS, accepted

FOLDER = PRETRAINED / "everyday"
DROPPED = {  # reasons of `clean`, and how the card says them
    "ending": "one side ends a sentence or asks, the other does not",
    "duplicate": "the same pair as one before, but for case and punctuation",
    "unfit": "vulgar, sexual, slurs, self-harm",
    "numbers": "different numbers in digits",
    "unequal": "lengths that do not fit",
    "characters": "characters outside Latin letters and common punctuation",
    "long": "more than 40 words",
}


@pytest.fixture(scope="module")
def log():
    return json.loads((FOLDER / "log.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def card():
    return (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def corpus():
    try:
        return load_corpus("tatoeba")
    except FileNotFoundError:
        pytest.skip("the snapshot of Tatoeba is not here (COURSE_DATA)")


def test_it_is_the_default():
    assert Translator.from_pretrained().model.config == Translator.from_pretrained("everyday").model.config
    assert Translator.from_pretrained("course").model.config != Translator.from_pretrained().model.config


def test_its_file_is_small_and_its_matrices_are_int8():
    weights = FOLDER / "model.safetensors"
    assert weights.stat().st_size <= 16_000_000
    with safe_open(weights, framework="pt") as file:
        slices = [file.get_slice(name) for name in file.keys()]  # file is not a dict
    kept = {piece.get_dtype() for piece in slices if len(piece.get_shape()) == 2 and piece.get_shape()[1] > 1}
    assert kept == {"I8"}


# --- described by its log -----------------------------------------------------------------------


def card_tells_the_log(card, log):
    """Sizes, the size of the file, each pass and each score with its signature stand in the card."""
    model, training = log["model"], log["training"]
    layers, heads = model["num_layers"], model["num_heads"]
    for text in (
        f"{layers} + {layers} layers, d_model {model['d_model']}, {heads} heads, d_ff {model['d_ff']}",
        f"| Parameters | {log['parameters']:,} |",
        f"{model['vocab_size']:,} byte-pair subwords",
        f"{(FOLDER / 'model.safetensors').stat().st_size:,} bytes",
        f"{training['epochs']} passes, batches of {training['batch_tokens']:,} tokens",
        f"peak learning rate of {training['peak_lr']} after {training['warmup_steps']} steps",
        f"dropout {model['dropout']}, label smoothing {training['label_smoothing']}",
        f"the last {log['averaged_epochs']} passes averaged",
        f"It took {log['seconds'] / 3600:.1f} hours",
    ):
        assert text in card, text
    for epoch in log["epochs"]:
        losses = f"| {epoch['epoch']} | {epoch['train_loss']:.3f} | {epoch['valid_loss']:.3f} | "
        assert f"{losses}{100 * epoch['valid_accuracy']:.1f} % | {epoch['valid_bleu']:.1f} |" in card, losses
    for entry in log["test"]:
        search = "greedy" if entry["beam_size"] == 1 else f"beam {entry['beam_size']}"
        exact = f"{100 * entry['exact_match']:.1f} %"
        assert f"| {search} | {entry['bleu']:.1f} | {exact} | `{in_a_table(entry['signature'])}` |" in card
        assert f"| {search} | {entry['tokenized_bleu']:.1f} | | `{in_a_table(entry['tokenized_signature'])}` |" in card


def test_the_card_tells_the_log(card, log):
    card_tells_the_log(card, log)
    for number in (f"{log['test'][1]['bleu']:.1f}", f"{log['parameters']:,}", f"{log['epochs'][-1]['valid_loss']:.3f}"):
        with pytest.raises(AssertionError):
            card_tells_the_log(card.replace(number, "99.9"), log)


def test_the_log_is_of_these_weights(log):
    config = Translator.from_pretrained("everyday").model.config
    assert config == ModelConfig.from_dict(log["model"]) and config.num_parameters == log["parameters"]
    assert log["stopped"] == "finished" and log["corpus"] == "tatoeba"


def card_counts(card, kept, dropped, parts):
    """What cleaning drops for each reason, what the split drops, and what is left in each part."""
    for reason, count in dropped.items():
        assert f"| {DROPPED[reason]} | {count} |" in card, reason
    assert f"{len(kept) - sum(map(len, parts.values()))} more pairs are dropped" in card
    for part, pairs in parts.items():
        assert f"| {part} | {len(pairs):,} | {len({pair.src for pair in pairs}):,} |" in card


def test_the_card_counts_what_was_dropped_and_what_is_left(card, corpus):
    raw = gzip.decompress(find("tatoeba", FILENAME).read_bytes())
    counts = *clean(parse_tsv(raw, name=FILENAME)), {part: getattr(corpus, part) for part in ("train", "valid", "test")}
    card_counts(card, *counts)
    for number in ("314", "738", "127,668"):
        with pytest.raises(AssertionError):
            card_counts(card.replace(number, "999"), *counts)


def noodles_are_fit(faults):
    pairs = parse_tsv(gzip.decompress(find("tatoeba", FILENAME).read_bytes()), name=FILENAME)
    noodles = [Pair(*map(tidy, pair)) for pair in pairs if "Nudel" in pair.tgt]
    assert len(noodles) > 5 and not [pair for pair in noodles if faults(pair) == "unfit"]


def test_a_word_is_not_taken_for_its_first_letters(corpus):
    tells_apart(noodles_are_fit, fault, lambda pair: "unfit" if "nude" in pair.tgt.lower() else fault(pair))


def test_the_card_gives_license_and_attribution(card, corpus):
    assert "CC BY 2.0 FR" in card and all(part in card for part in re.findall(r"attribution: (.*)", corpus.license))


# --- as good as that says -----------------------------------------------------------------------


def scores_as_logged(translator, corpus, log):
    """Half precision and another machine move a score of 2,001 sentences by less than 0.3."""
    entry = log["test"][0]
    assert entry["beam_size"] == 1
    assert abs(score(translator, corpus.test, beam_size=1).bleu.score - entry["bleu"]) < 0.3


def test_it_scores_on_the_test_part_what_its_log_says(corpus, log):
    translator = Translator.from_pretrained("everyday")
    scores_as_logged(translator, corpus, log)
    translator.model.encoder.layers[0].self_attn.value_proj.weight.data.neg_()
    with pytest.raises(AssertionError):
        scores_as_logged(translator, corpus, log)


def test_its_subwords_are_those_of_the_training_pairs(corpus):
    shipped = Translator.from_pretrained("everyday").tokenizer
    texts = [text for pair in augmented(corpus.train) for text in (pair.src, pair.tgt)]
    assert type(shipped).train(texts, shipped.vocab_size).to_json() == shipped.to_json()


def passes_visitors(translator):
    """What people type; the goal is 114 of 120."""

    def answer(text):
        found = translator.translate(text)
        return found.text, found.remarks

    assert len(accepted(answer)) >= 112


def without_a_door():
    translator = Translator.from_pretrained("everyday")
    translator.prepare = lambda text: Prepared((Piece(text),), ())
    return translator


def test_it_passes_most_of_what_visitors_type():
    tells_apart(passes_visitors, Translator.from_pretrained("everyday"), without_a_door())


def shown_first():
    """The sentences that lesson 00 says it does not recite."""
    source = (ROOT / "notebooks" / "source" / "00_welcome.py").read_text(encoding="utf-8")
    sentences = ast.literal_eval(re.search(r"^examples = (\[.*?^\])", source, re.MULTILINE | re.DOTALL)[1])
    assert len(sentences) == 6
    return sentences


def plain(text):
    return re.sub(r"[^\w' ]", "", text.casefold()).strip()


def no_phrase_is_tested(phrases, corpus):
    """None is a sentence of the held-out parts, in either language, or what visitors type, or what lesson 00 shows."""
    tested = [text for pair in corpus.valid + corpus.test for text in pair]
    tested += [sentence for _, text, *_ in ROWS for sentence in (text, *re.split(r"(?<=[.!?]) ", text))]
    tested = set(map(plain, tested + shown_first()))
    assert not [phrase for phrase in phrases if {plain(phrase.src), plain(phrase.tgt)} & tested]


def test_no_phrase_is_what_it_is_tested_on(corpus):
    phrases = phrasebook()
    for tested in (corpus.test[0], Pair("what time is it", "Wie spät ist es jetzt?"), Pair(shown_first()[0], "Ja.")):
        tells_apart(lambda found: no_phrase_is_tested(found, corpus), phrases, [*phrases, tested])


def test_it_has_not_learned_what_lesson_00_shows(corpus):
    learned = {pair.src.casefold() for pair in augmented(corpus.train)}

    def new_to_it(sentences):
        assert not [text for text in sentences if text.casefold() in learned]

    tells_apart(new_to_it, shown_first(), [corpus.train[0].src])


def test_it_has_not_learned_the_words_that_lesson_00_calls_unknown(corpus):
    def unknown(words):
        pattern = re.compile(rf"\b({'|'.join(words)})s?\b", re.IGNORECASE)
        assert not [pair.src for pair in corpus.train if pattern.search(pair.src)]

    tells_apart(unknown, ["plaintiff", "tendon", "lichen"], ["tennis"])
    assert round(len(corpus.train), -4) == 160_000
