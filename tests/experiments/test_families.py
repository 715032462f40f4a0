"""The experiment on families: its tasks are what they say, and each model is examined from end to end."""

from itertools import pairwise
from string import ascii_lowercase

import pytest
import torch

from course_lib.experiments import (
    CHARACTERS,
    WordIds,
    families,
    family_models,
    labeled_sentences,
    sentences_to_write,
    tree_bank,
)
from course_lib.experiments.families import TASKS
from course_lib.grammar import NOUNS, labeled_f1
from course_lib.tokenizer import UNK_ID
from tests.helpers.laws import tells_apart

CLASSES = {form: noun.classes for noun in NOUNS for form in (noun.english, noun.english_plural)}


def law_every_second_sentence_is_odd(make):
    sentences = make(400, 5)
    assert [odd for _, odd in sentences] == [0, 1] * 200
    articles = [pair for words, _ in sentences for pair in pairwise(words) if pair[0] in ("a", "an")]
    assert all((article == "an") == (word[0] in "aeiou") for article, word in articles)
    sleepers = {
        odd: [
            words[1] for words, label in sentences if label == odd and words[2] in ("sleeps", "sleep", "slept", "reads")
        ]
        for odd in (0, 1)
    }
    assert all("animate" in CLASSES[word] for word in sleepers[0] if word in CLASSES)


def never_odd(number, seed):
    return [(words, 0) for words, _ in labeled_sentences(number, seed)]


def with_any_noun(number, seed):
    return [([word if word != "an" else "a" for word in words], odd) for words, odd in labeled_sentences(number, seed)]


def test_every_second_sentence_is_odd():
    tells_apart(law_every_second_sentence_is_odd, labeled_sentences, never_odd, with_any_noun)
    assert labeled_sentences(20, 1) == labeled_sentences(20, 1) != labeled_sentences(20, 2)


def test_trees_are_as_long_as_asked_and_distinct():
    short, long = tree_bank(50, 1), tree_bank(20, 1, shortest=11, longest=99)
    assert max(len(words) for words, _ in short) <= 10 < min(len(words) for words, _ in long)
    assert len({tuple(words) for words, _ in short}) == 50
    assert labeled_f1([row for _, row in short], [row for _, row in short]) == 1


def test_words_have_ids_and_come_back():
    vocabulary = WordIds(["cat", "dog"])
    assert len(vocabulary) == 6 and vocabulary.closed(["dog", "zebra"]) == [1, 5, 3, 2]
    assert vocabulary.words([4, 3]) == ["cat", "<unk>"]
    with pytest.raises(ValueError, match="each word must come once, got 1 of them again"):
        WordIds(["cat", "cat"])


def law_the_alphabet_has_every_character(alphabet):
    texts = [text for part in sentences_to_write(seed=0) for text in part]
    assert UNK_ID not in {index for text in texts for index in alphabet.ids(text)}


def test_the_alphabet_has_every_character_of_the_texts():
    few_capitals = WordIds(sorted(" ',.?AMP" + ascii_lowercase))
    tells_apart(law_the_alphabet_has_every_character, CHARACTERS, few_capitals)


def test_training_fits_a_line():
    torch.manual_seed(0)
    model, x = torch.nn.Linear(1, 1), torch.linspace(-1, 1, 50)[:, None]
    losses = family_models.fit(
        model, lambda generator: (model(x) - 2 * x).square().mean(), steps=300, rate=0.05, seed=0
    )
    assert len(losses) == 300 and losses[-1] < 1e-3 < losses[0] and not model.training


@pytest.mark.parametrize("task", TASKS)
def test_each_task_runs_from_end_to_end(task, monkeypatch):
    monkeypatch.setattr(families, "TAUGHT", 60)
    monkeypatch.setattr(families, "EXAMINED", 8)
    for name in [name for name in vars(family_models) if name.startswith("train_")]:
        train = getattr(family_models, name)
        monkeypatch.setattr(families, name, lambda *given, train=train, **named: train(*given, **named | {"steps": 2}))
    results = families.run({"task": task}, 0, None)
    assert "valid" in results and all(not isinstance(value, torch.Tensor) for value in results.values())
    if task == "parser":
        for text, said, right in results["wrong, test"]:
            assert said != right and len(text.split()) == right.split().count("XX")
        first, said, _ = results["wrong, test"][0]
        assert len(results["words missing, test"]) == len(results["each perfect, test"]) == 8
        assert sum(results["each perfect, test"]) == 8 * results["perfect, test"]
        assert len(first.split()) - said.split().count("XX") in results["words missing, test"]
    if task == "masked":
        for found in results["fillings"].values():
            p = list(found.values())
            assert len(p) == 5 and p == sorted(p, reverse=True) and sum(p) <= 1
