"""The abstract syntax: what a sentence means, before it is English or German.

Nodes compare by identity. A linearizer turns a tree into words, and each word carries the parts of the
nodes that it says; two words of different languages with a common part are a gold alignment link.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from course_lib.grammar.lexicon import Adjective, AdverbEntry, Conjunction, Determiner, Modal, Noun, Verb
from course_lib.grammar.lexicon.function_words import RELATIONS, TO_AT, TO_ZU, YOU_AGREEMENT

Part = tuple[Any, str]  # a node and the name of one of its parts: (clause, "verb")


class Word(NamedTuple):
    """A word of a sentence and the parts of the tree that it says."""

    text: str
    parts: tuple[Part, ...] = ()


@dataclass(eq=False, slots=True)
class NounPhrase:
    """A noun with what belongs to it: determiner or number, adjectives, possessor, relative clause."""

    noun: Noun
    determiner: Determiner | None = None
    adjectives: tuple[Adjective, ...] = ()
    plural: bool = False
    number: int | None = None
    possessor: "NounPhrase | Name | None" = None
    relative: "Clause | None" = None

    @property
    def definite(self) -> bool:
        """Whether it is known what is spoken of: the, this, my, Anna's."""
        return self.possessor is not None or (self.determiner is not None and self.determiner.definite)


@dataclass(eq=False, slots=True)
class Name:
    """A first name, the same in both languages."""

    name: str


@dataclass(eq=False, slots=True)
class Pronoun:
    """A personal pronoun; `gender` is the English one, the German one is the antecedent's."""

    person: int
    plural: bool = False
    gender: str = ""
    antecedent: NounPhrase | None = None


@dataclass(eq=False, slots=True)
class Interrogative:
    """Who (animate) or what."""

    animate: bool


@dataclass(eq=False, slots=True)
class RelativePronoun:
    """The pronoun that opens a relative clause."""

    antecedent: NounPhrase


@dataclass(eq=False, slots=True)
class Coordination:
    """Two noun phrases or names joined by and."""

    first: Any
    second: Any


@dataclass(eq=False, slots=True)
class PrepPhrase:
    """A prepositional phrase; `two_way` marks a preposition whose case tells place from direction."""

    english: str
    german: str
    case: str
    noun_phrase: Any
    two_way: bool = False
    contracts: bool = True


@dataclass(eq=False, slots=True)
class Adverb:
    """A fixed adverbial."""

    entry: AdverbEntry


@dataclass(eq=False, slots=True)
class Predicate:
    """An adjective after be."""

    adjective: Adjective


@dataclass(eq=False, slots=True)
class Clause:
    """A clause: a verb, what it governs, and adverbials.

    Args:
        force: statement, yes-no, wh, subordinate or relative.
        tense: present, past, perfect or future.
        fronted: the constituent before the verb, if it is not the subject.
        silent_subject: the subject was said in the clause before (buys it and sells it).
        dative_with_to: English says "the book to the child", not "the child the book".
    """

    subject: Any
    verb: Verb
    tense: str = "present"
    force: str = "statement"
    modal: Modal | None = None
    negated: bool = False
    progressive: bool = False
    accusative: Any = None
    dative: Any = None
    governed: PrepPhrase | None = None
    time: Adverb | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    location: Any = None
    direction: Any = None
    predicate: Any = None
    fronted: Any = None
    opener: Adverb | None = None
    silent_subject: bool = False
    dative_with_to: bool = False


@dataclass(eq=False, slots=True)
class Sentence:
    """One clause, or two joined by a conjunction; `second_first` puts the subordinate clause in front."""

    first: Clause
    conjunction: Conjunction | None = None
    second: Clause | None = None
    second_first: bool = False


@dataclass(slots=True)
class Notes:
    """What the German linearizer observes on its way: phenomena, facts for the splits, lemmas."""

    address: str = "du"
    tags: set[str] = field(default_factory=set)
    facts: set[str] = field(default_factory=set)
    lemmas: set[str] = field(default_factory=set)


def place(relation: str, phrase: NounPhrase) -> PrepPhrase:
    """A place (in the garden) or direction (into the garden) with the German preposition and case for it."""
    english, german, case = RELATIONS[relation]
    if relation == "to" and phrase.noun.english in TO_ZU:
        return PrepPhrase(english, "zu", "dative", phrase)
    german = "an" if relation == "to" and phrase.noun.english in TO_AT else german
    return PrepPhrase(english, german, case, phrase, two_way=True)


def inverted(clause: Clause) -> bool:
    """Whether English puts the auxiliary before the subject: all questions but those about the subject."""
    return clause.force == "yes-no" or (clause.force == "wh" and clause.fronted is not clause.subject)


def agreement(node: Any, address: str = "") -> tuple[int, bool]:
    """Person and plural of a subject; with an address (du, ihr, Sie), of the German verb of "you"."""
    kind = type(node)
    if kind is NounPhrase:
        return 3, node.plural
    if kind is Pronoun:
        if node.person == 2 and address:
            return YOU_AGREEMENT[address]
        return node.person, node.plural
    if kind is Coordination:
        return 3, True
    if kind is RelativePronoun:
        return 3, node.antecedent.plural
    return 3, False
