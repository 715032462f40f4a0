"""The German linearizer, first half: noun phrases, pronouns, prepositional phrases, adverbials.

Every function takes a case and the `Notes` in which it writes down which phenomena it has met.
"""

from typing import Any

from course_lib.grammar.lexicon import Noun
from course_lib.grammar.lexicon.function_words import (
    CONTRACTIONS,
    GERMAN_PRONOUNS,
    NO,
    NUMBERS,
    THE,
    YOU_PRONOUNS,
    YOUR,
    YOUR_FORMS,
    A,
)
from course_lib.grammar.linearizers.german_morphology import (
    adjective_form,
    declension_after,
    determiner_form,
    noun_form,
    relative_pronoun,
)
from course_lib.grammar.syntax import (
    Adverb,
    Clause,
    Coordination,
    Interrogative,
    Name,
    Notes,
    NounPhrase,
    Part,
    Predicate,
    PrepPhrase,
    Pronoun,
    RelativePronoun,
    Word,
)

_SLOT = {"nominative": 0, "accusative": 1, "dative": 2}
_WHO = ("wer", "wen", "wem")


def nominal(
    node: Any, case: str, notes: Notes, negating: Clause | None = None, extra: tuple[Part, ...] = ()
) -> list[Word]:
    """The words of a noun phrase, name, pronoun or coordination in a case, without its relative clause.

    Args:
        node: the abstract noun phrase.
        case: nominative, accusative, dative or genitive.
        notes: where phenomena are written down.
        negating: the clause whose negation this noun phrase says (kein).
        extra: parts that the first word says too.
    """
    kind = type(node)
    if kind is NounPhrase:
        words = noun_phrase(node, case, notes, negating)
    else:
        if case != "nominative" and kind is not Coordination:
            notes.tags.add(case)
        if kind is Pronoun:
            words = [Word(_pronoun(node, case, notes), ((node, "pronoun"),))]
        elif kind is Name:
            words = [Word(node.name + ("s" if case == "genitive" else ""), ((node, "name"),))]
        elif kind is Interrogative:
            words = [Word(_WHO[_SLOT[case]] if node.animate else "was", ((node, "pronoun"),))]
        elif kind is RelativePronoun:
            noun = node.antecedent.noun
            form = relative_pronoun(case, noun.gender, node.antecedent.plural)
            words = [Word(form, ((node, "pronoun"),))]
        else:
            words = [
                *nominal(node.first, case, notes),
                Word("und", ((node, "and"),)),
                *nominal(node.second, case, notes),
            ]
    if extra:
        words[0] = Word(words[0].text, words[0].parts + extra)
    return words


def _pronoun(node: Pronoun, case: str, notes: Notes) -> str:
    slot = _SLOT[case]
    if node.person == 2:
        return YOU_PRONOUNS[notes.address][slot]
    gender = node.gender
    if node.antecedent is not None and not node.plural:
        gender = node.antecedent.noun.gender
        notes.tags.add("pronoun gender")
    return GERMAN_PRONOUNS[node.person, node.plural, gender][slot]


def _observe(node: NounPhrase, noun: Noun, case: str, notes: Notes) -> None:
    tags, facts = notes.tags, notes.facts
    notes.lemmas.add(noun.german)
    facts.add(("subject:" if case == "nominative" else "object:") + noun.german)
    if case != "nominative":
        tags.add(case)
    if node.plural:
        tags.add("plural")
        if case == "dative":
            tags.add("dative plural")
    elif noun.weak and case != "nominative":
        tags.add("weak noun")
    if node.number:
        tags.add("number")


def noun_phrase(node: NounPhrase, case: str, notes: Notes, negating: Clause | None = None) -> list[Word]:
    """Determiner, number, adjectives and noun, agreeing in gender, case and number; then the genitive."""
    noun, plural = node.noun, node.plural
    _observe(node, noun, case, notes)
    words = []
    determiner = NO if negating is not None else node.determiner
    if determiner is None and node.possessor is not None:
        if type(node.possessor) is Name:
            text = nominal(node.possessor, "genitive", notes)[0].text
            words.append(Word(text, ((node.possessor, "name"), (node, "det"))))
            notes.tags.add("genitive")
        else:
            determiner = THE
    if determiner is not None:
        german = YOUR_FORMS[notes.address] if determiner is YOUR else determiner.german
        form = determiner_form(german, determiner.pattern, case, noun.gender, plural)
        parts = ((node, "det"),) if negating is None else ((node, "det"), (negating, "negation"))
        one, *two = form.split()  # wie viele
        words += [Word(one, parts), *(Word(text, ((node, "det 2"),)) for text in two)]
        if determiner is NO:
            notes.tags.add("negation kein")
    if node.number:
        words.append(Word(NUMBERS[node.number][1], ((node, "number"),)))
    if node.adjectives:
        declension = declension_after(determiner)
        notes.tags.add(declension + " ending")
        cell = f"/{'plural' if plural else noun.gender}/{case}"
        for adjective in node.adjectives:
            form = adjective_form(adjective, declension, case, noun.gender, plural)
            words.append(Word(form, ((node, adjective.english),)))
            notes.lemmas.add(adjective.german)
            notes.facts.add("cell:" + adjective.german + cell)
    words.append(Word(noun_form(noun, case, plural), ((node, "noun"),)))
    if node.possessor is not None and type(node.possessor) is not Name:
        words += noun_phrase(node.possessor, "genitive", notes)
    return words


def prep_phrase(node: PrepPhrase, notes: Notes) -> list[Word]:
    """The preposition, contracted with the definite article where German does so, and its noun phrase."""
    words = nominal(node.noun_phrase, node.case, notes)
    parts = ((node, "preposition"),)
    if node.two_way:
        notes.tags.add("two-way " + node.case)
    contraction = CONTRACTIONS.get((node.german, words[0].text)) if node.contracts else None
    if contraction and getattr(node.noun_phrase, "determiner", None) is THE:
        notes.tags.add("contraction")
        return [Word(contraction, parts + words[0].parts), *words[1:]]
    return [Word(node.german, parts), *words]


def constituent(node: Any, notes: Notes) -> list[Word]:
    """The words of an adverbial or predicate."""
    kind = type(node)
    if kind is Adverb:
        notes.tags.update(node.entry.tags)
        return [Word(text, tuple((node, part) for part in parts)) for text, parts in node.entry.german]
    if kind is Predicate:
        notes.lemmas.add(node.adjective.german)
        return [Word(node.adjective.german, ((node, "adjective"),))]
    assert kind is PrepPhrase
    return prep_phrase(node, notes)


def is_indefinite(node: Any) -> bool:
    """Whether negation turns it into kein: a noun phrase with ein or with no determiner at all."""
    return type(node) is NounPhrase and node.determiner in (A, None) and node.possessor is None and not node.number


def is_definite(node: Any) -> bool:
    """Whether German puts it before adverbs: what is known comes first."""
    if type(node) is Coordination:
        return is_definite(node.first)
    return type(node) is not NounPhrase or node.definite
