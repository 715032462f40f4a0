"""The translator that comes with the course: good at its own sentences, small, and described truthfully."""

import json
import re

import pytest
from safetensors import safe_open

from course_lib.data.course import load_course
from course_lib.grammar.lexicon import ADJECTIVE as ADJECTIVES
from course_lib.grammar.lexicon import NOUNS
from course_lib.grammar.lexicon.verbs import ALL_VERBS
from course_lib.training.evaluation import score
from course_lib.translator import PRETRAINED, Translator, saved_steps
from notebooks.source.readme import in_a_table

COURSE = PRETRAINED / "course"


@pytest.fixture(scope="module")
def shipped():
    return Translator.from_pretrained("course")


@pytest.fixture(scope="module")
def corpus():
    return load_course(num_train=60_000)  # as its model card says


def translates_unseen_sentences(translator, pairs):
    assert score(translator, pairs, beam_size=1).exact_match >= 0.95


def test_it_translates_unseen_sentences(shipped, corpus):
    translates_unseen_sentences(shipped, corpus.test)
    shuffled = Translator.from_pretrained("course")
    shuffled.model.encoder.layers[1].self_attn.value_proj.weight.data.neg_()
    with pytest.raises(AssertionError):
        translates_unseen_sentences(shuffled, corpus.test[:100])


def test_its_subwords_are_those_of_the_training_part(shipped, corpus):
    texts = [text for pair in corpus.train for text in (pair.src, pair.tgt)]
    assert type(shipped.tokenizer).train(texts, 2000).to_json() == shipped.tokenizer.to_json()


def law_a_few_meals_were_trained_on(meals, corpus):
    """As lesson 03 says of the sentences that it counts on, and of that of its picture."""
    learned = {pair.src for pair in corpus.train}
    assert "The dog eats the meat because it is hungry." in learned
    assert len(meals) == 140 and 5 <= sum(meal in learned for meal in meals) <= 20


def test_a_few_sentences_of_the_lesson_were_trained_on(corpus):
    eaters = "dog cat horse child mouse bird cow bear girl pig".split()
    foods = "meat cheese apple bread soup cake egg".split()
    pairs = [(eater, food) for eater in eaters for food in foods]
    meals = [f"The {one} eats the {food} because it is {end}." for one, food in pairs for end in ("hungry", "fresh")]
    law_a_few_meals_were_trained_on(meals, corpus)
    for wrong in (meals[:70], [pair.src for pair in corpus.test[:140]], [pair.src for pair in corpus.train[:140]]):
        with pytest.raises(AssertionError):
            law_a_few_meals_were_trained_on(wrong, corpus)


def test_its_files_are_small_and_half_precision():
    assert sum(path.stat().st_size for path in COURSE.iterdir() if path.is_file()) < 4_000_000
    with safe_open(COURSE / "model.safetensors", framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # file is not a dict


def test_the_model_card_gives_its_sizes(shipped):
    card = (COURSE / "README.md").read_text(encoding="utf-8")
    config = shipped.model.config
    assert f"d_model {config.d_model}, {config.num_heads} heads, d_ff {config.d_ff}" in card
    assert f"{config.num_layers} + {config.num_layers} layers" in card
    assert re.search(rf"{shipped.tokenizer.vocab_size:,} byte-pair subwords", card)


def law_it_learns_on_the_way(steps, corpus):
    """Ten files of less than a megabyte; each knows more than the one before, and the last as much as it."""
    files = sorted((COURSE / "steps").iterdir())
    assert len(steps) == len(files) == 10 and max(path.stat().st_size for path in files) < 1_000_000
    assert steps[0] == 100 and steps == sorted(set(steps))
    translators = [Translator.from_pretrained("course", step=step) for step in steps[::3]]
    exact = [score(translator, corpus.test[:200], beam_size=1).exact_match for translator in translators]
    assert exact == sorted(exact) and exact[0] < 0.05 < 0.5 < exact[-2] and exact[-1] >= 0.95


def test_it_learns_on_the_way(corpus):
    law_it_learns_on_the_way(saved_steps("course"), corpus)
    for wrong in (saved_steps("course")[::-1], saved_steps("course")[:-1]):
        with pytest.raises(AssertionError):
            law_it_learns_on_the_way(wrong, corpus)


def test_the_model_card_gives_its_scores():
    """Those of the log, which is that of the recipe."""
    card, log = (COURSE / "README.md").read_text(encoding="utf-8"), json.loads((COURSE / "log.json").read_text())
    for entry in log["test"]:
        line = f"| {100 * entry['exact_match']:.1f} % | {entry['bleu']:.1f} | `{in_a_table(entry['signature'])}` |"
        assert line in card, line
    assert f"{log['parameters']:,}" in card and f"dropout {log['model']['dropout']}" in card
    assert f"It took {log['seconds'] / 60:.0f} minutes" in card
    *early, last = (f"{step:,}" for step in saved_steps("course"))
    assert f"{', '.join(early)} and {last} steps" in card
    assert f"{len(NOUNS)} nouns, {len(ADJECTIVES)} adjectives and {len(ALL_VERBS)} verbs" in card
    assert abs(len(NOUNS) + len(ADJECTIVES) + len(ALL_VERBS) - 215) < 5 and "about 215 words" in card
