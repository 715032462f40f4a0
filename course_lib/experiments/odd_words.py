"""Sensible or odd? Sentences of the course corpus, half of them with one noun that does not belong there."""

from collections.abc import Iterator
from itertools import islice

from course_lib.grammar import Chooser, english, trees

MASK = "<mask>"
Sentences = list[list[str]]  # words
Labeled = tuple[list[str], int]  # words, and 1 where one of them is odd


def labeled_sentences(number: int, seed: int) -> list[Labeled]:
    """Sentences in turn as the grammar makes them (0) and with a noun exchanged for one of another kind (1).

    The new noun comes from another sentence, so that frequent nouns are as frequent there. It has the same number,
    begins with a vowel if the old one does, and belongs to no class that the old one belongs to: *the cat drinks the
    milk* may become *the book drinks the milk*, and not *the dog drinks the milk*.

    Args:
        number: how many sentences.
        seed: of the sentences and of the exchange.
    """
    return list(islice(_labeled(seed), number))


def _labeled(seed: int) -> Iterator[Labeled]:
    chooser = Chooser(seed)
    recent: list[tuple] = []  # nouns of the last sentences
    odd = False
    for tree in trees(seed):
        words = english.sentence(tree)
        texts = [word.text for word in words]
        nouns = [
            (index, node)
            for index, word in enumerate(words)
            for node, part in word.parts
            if part == "noun" and "'" not in word.text
        ]
        if odd and nouns:
            index, node = chooser.pick(nouns)
            fitting = [text for text, other in recent if _unlike(texts[index], node, text, other)]
            if not fitting:
                continue
            texts[index] = chooser.pick(fitting)
        recent = [*recent, *((words[index].text, node) for index, node in nouns)][-200:]
        if odd and not nouns:
            continue
        yield texts, int(odd)
        odd = not odd


def _unlike(text: str, node, other_text: str, other) -> bool:
    vowels = (text[0] in "aeiou") == (other_text[0] in "aeiou")
    return vowels and node.plural == other.plural and not node.noun.classes & other.noun.classes
