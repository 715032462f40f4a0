"""Trees built by hand: short constructors for lessons and tests.

>>> pair(clause(the("cat"), "sehen", accusative=the("dog"))).tgt
'Die Katze sieht den Hund.'

Nouns, adjectives and adverbials are named by their English, verbs by their German dictionary form
("sehen", "sich setzen"), because English "put" is several verbs.
"""

from typing import Any

from course_lib.grammar import syntax
from course_lib.grammar.align import CoursePair, realize
from course_lib.grammar.lexicon import ADJECTIVE, NAMES, NOUN, VERB, Conjunction, Determiner, Modal
from course_lib.grammar.lexicon import function_words as words

_PRONOUNS = {forms[0]: key for key, forms in words.ENGLISH_PRONOUNS.items()}
_ADVERBS = {
    " ".join(text for text, _ in entry.english): entry
    for entry in (
        *words.TIMES,
        *words.CLOCK_TIMES,
        *words.CLOCK_PREDICATES,
        *words.FREQUENCIES,
        *words.MANNERS.values(),
        words.ALREADY,
        words.PERHAPS,
        words.UNFORTUNATELY,
        words.HERE,
        words.THERE,
        words.AT_HOME,
        words.IN_BED,
        words.HOME,
        words.WHEN,
        words.WHY,
    )
} | {"where": words.WHERE, "where to": words.WHERE_TO}


def _look_up(table: dict[str, Any], key: str, what: str) -> Any:
    if key not in table:
        raise ValueError(f"{what}: expected one of {', '.join(sorted(table))}, got {key!r}")
    return table[key]


def noun(determiner: Determiner | None, english: str, *adjectives: str, **details: Any) -> syntax.NounPhrase:
    """A noun phrase with any determiner; the keyword arguments are those of `NounPhrase`."""
    described = tuple(_look_up(ADJECTIVE, adjective, "adjective") for adjective in adjectives)
    return syntax.NounPhrase(_look_up(NOUN, english, "noun"), determiner, described, **details)


def the(english: str, *adjectives: str, **details: Any) -> syntax.NounPhrase:
    """A definite noun phrase: the("dog", "big", plural=True)."""
    return noun(words.THE, english, *adjectives, **details)


def a(english: str, *adjectives: str, **details: Any) -> syntax.NounPhrase:
    """An indefinite noun phrase."""
    return noun(words.A, english, *adjectives, **details)


def bare(english: str, *adjectives: str, **details: Any) -> syntax.NounPhrase:
    """A noun phrase without determiner: milk, red apples, three dogs, Anna's dog."""
    return noun(None, english, *adjectives, **details)


def who(english: str) -> syntax.Name | syntax.Pronoun | syntax.Interrogative:
    """A person by name or pronoun (Anna, he, we), or the question words who and what."""
    if english in ("who", "what"):
        return syntax.Interrogative(english == "who")
    return syntax.Name(english) if english in NAMES else syntax.Pronoun(*_look_up(_PRONOUNS, english, "pronoun"))


def it(antecedent: syntax.NounPhrase) -> syntax.Pronoun:
    """The pronoun it, whose German gender is that of its antecedent."""
    return syntax.Pronoun(3, False, "n", antecedent)


def place(relation: str, phrase: syntax.NounPhrase, case: str = "") -> syntax.PrepPhrase:
    """A place or direction; `relation` as in `function_words.RELATIONS`, `case` only to override its case."""
    _look_up(words.RELATIONS, relation, "relation")
    result = syntax.place(relation, phrase)
    result.case = case or result.case
    return result


def adverb(english: str) -> syntax.Adverb:
    """A fixed adverbial by its English words: adverb("in the evening")."""
    return syntax.Adverb(_look_up(_ADVERBS, english, "adverb"))


def adjective(english: str) -> syntax.Predicate:
    """A predicate: the soup is hot."""
    return syntax.Predicate(_look_up(ADJECTIVE, english, "adjective"))


def clause(subject: Any, verb: str, *, front: str = "", governed: Any = None, **details: Any) -> syntax.Clause:
    """A clause.

    Args:
        subject: a noun phrase, or a string for `who`.
        verb: German dictionary form.
        front: the name of the slot that stands before the verb (time, accusative, subject, ...).
        governed: the noun phrase of the prepositional object; the verb knows the preposition.
        **details: the other arguments of `Clause`; a string stands for an adverb.
    """
    entry = _look_up(VERB, verb, "verb")
    texts = {slot: adverb(value) for slot, value in details.items() if isinstance(value, str) and slot in _ADVERBIAL}
    result = syntax.Clause(who(subject) if isinstance(subject, str) else subject, entry, **(details | texts))
    if governed is not None:
        english, german, case, _ = entry.frame.preposition
        result.governed = syntax.PrepPhrase(english, german, case, governed, contracts=case == "dative")
    if front:
        result.fronted = getattr(result, front)
    return result


_ADVERBIAL = ("time", "frequency", "manner", "location", "direction", "opener")


def relative(head: syntax.NounPhrase, slot: str, verb: str, subject: Any = None, **details: Any) -> syntax.NounPhrase:
    """Gives a noun phrase a relative clause in which it fills a slot (subject, accusative, dative), and returns it."""
    word = syntax.RelativePronoun(head)
    if slot == "subject":
        head.relative = clause(word, verb, front=slot, force="relative", **details)
    else:
        head.relative = clause(subject, verb, front=slot, force="relative", **{slot: word}, **details)
    return head


def sentence(
    first: syntax.Clause, conjunction: Conjunction | None = None, second: syntax.Clause | None = None, **details: Any
) -> syntax.Sentence:
    """A sentence of one or two clauses; `second_first` puts the subordinate clause in front."""
    if second is not None and conjunction.subordinating:
        second.force = "subordinate"
    return syntax.Sentence(first, conjunction, second, **details)


def pair(first: syntax.Clause | syntax.Sentence, address: str = "du") -> CoursePair:
    """The sentence pair of a clause or sentence."""
    return realize(first if isinstance(first, syntax.Sentence) else syntax.Sentence(first), address)


def modal(english: str) -> Modal:
    """A modal by its English: can, must, may, should, want to, would like to."""
    return _look_up({entry.english: entry for entry in words.MODALS}, english, "modal")
