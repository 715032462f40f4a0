"""The German linearizer, second half: the verb bracket and the order of the middle field.

A main clause has one constituent before the finite verb (verb second), a question none or the question
word, a subordinate clause has the finite verb at its end. Between the finite verb and the rest of the verb
lies the middle field, whose order is fixed here (`_middle_field`), so that a tree has one German sentence.
"""

from typing import Any

from course_lib.grammar.lexicon import BE
from course_lib.grammar.lexicon.function_words import GERMAN_PRONOUNS, YOU_REFLEXIVE
from course_lib.grammar.linearizers.german_morphology import finite_form, present, preterite
from course_lib.grammar.linearizers.german_phrases import constituent, is_definite, is_indefinite, nominal
from course_lib.grammar.syntax import Adverb, Clause, Notes, NounPhrase, Pronoun, Sentence, Word, agreement

_COMMA = Word(",")


def german_tense(node: Clause) -> str:
    """The German tense: a question about the past is asked in the Perfekt (Hat er geschlafen?)."""
    if node.tense == "past" and node.force in ("yes-no", "wh") and node.modal is None and node.verb is not BE:
        return "perfect"
    return node.tense


def verb_bracket(node: Clause, notes: Notes, final: bool) -> tuple[Word, list[Word]]:
    """The finite verb and what closes the bracket: prefix, participle or infinitive."""
    verb, tense = node.verb, german_tense(node)
    person, plural = agreement(node.subject, notes.address)
    both = ((node, "tense"), (node, "verb"))
    lexical, first = ((node, "verb"),), ((node, "tense"),)
    notes.lemmas.add(verb.name)
    if node.modal is not None:
        notes.tags.add("modal")
        stem = node.modal.preterite
        text = preterite(stem, person, plural) if tense == "past" else present(node.modal.german, "", person, plural)
        finite, rest = Word(text, first), [Word(verb.infinitive, lexical)]
    elif tense == "future":
        notes.tags.add("future")
        finite, rest = Word(present("werden", "", person, plural), first), [Word(verb.infinitive, lexical)]
    elif tense == "perfect":
        notes.tags.add("perfect")
        if verb.auxiliary == "sein":
            notes.tags.add("perfect with sein")
        finite = Word(present(verb.auxiliary, "", person, plural), first)
        rest = [Word(verb.german_participle, lexical)]
    else:
        notes.tags.add("preterite" if tense == "past" else "present")
        text = finite_form(verb, tense, person, plural)
        if verb.prefix and not final:
            notes.tags.add("separable apart")
            notes.facts.add("apart:" + verb.name)
            return Word(text, both), [Word(verb.prefix, lexical)]
        if verb.prefix:
            notes.facts.add("final:" + verb.name)
        finite, rest = Word(verb.prefix + text, both), []
    if verb.prefix:
        notes.tags.add("separable together")
    return finite, rest


def _reflexive(node: Clause, notes: Notes) -> Word:
    notes.tags.add("reflexive")
    subject = node.subject
    person, plural = agreement(subject)
    if person == 2:
        text = YOU_REFLEXIVE[notes.address]
    elif person == 1:
        text = GERMAN_PRONOUNS[person, plural, ""][1]
    else:
        text = "sich"
    return Word(text, ((node, "reflexive" if node.verb.english_reflexive else "verb"),))


def _ranks(node: Clause, address: str) -> tuple[float, float, float]:
    """The places of subject, accusative and dative in the middle field.

    A pronoun object stands before a noun subject (weil ihn die Frau sieht), unless its form could be taken for
    the subject (weil die Frau sie sieht). Of two nouns the dative comes first.
    """
    subject, accusative, dative = node.subject, node.accusative, node.dative
    first = 0 if type(subject) is Pronoun else 2
    moves = not (type(accusative) is Pronoun and _like_nominative(accusative, address))
    direct = (1.2 if moves else 3) if type(accusative) is Pronoun else 7 if is_definite(accusative) else 11
    indirect = (
        (1.4 if moves else 4)
        if type(dative) is Pronoun
        else 5
        if is_definite(dative)
        else 6.5
        if accusative is not None
        else 10
    )
    return first, direct, indirect


def _like_nominative(node: Pronoun, address: str) -> bool:
    """Whether accusative and nominative are the same: sie, es, Sie, but not ihn, mich, uns."""
    gender = node.antecedent.noun.gender if node.antecedent is not None and not node.plural else node.gender
    if node.person == 2:
        return address == "Sie"
    return node.person == 3 and (node.plural or gender != "m")


def _middle_field(node: Clause, front: Any, notes: Notes) -> list[Word]:
    """Everything between the brackets, in the one canonical order.

    Pronouns before nouns (accusative before dative; see `_ranks`), a reflexive even before the subject; then the
    definite dative, time, an indefinite dative beside an accusative, the definite accusative, nicht and how often,
    here and there, the indefinite objects, manner, place, prepositional object, direction, predicate.
    """
    fields: list[tuple[float, list[Word]]] = []
    subject, accusative, dative = node.subject, node.accusative, node.dative
    first, direct, indirect = _ranks(node, notes.address)
    if subject is not front and not node.silent_subject:
        fields.append((first, nominal(subject, "nominative", notes)))
    if node.verb.reflexive:
        fields.append((1, [_reflexive(node, notes)]))
    negating = node if node.negated and is_indefinite(accusative) else None
    if accusative is not None and accusative is not front:
        fields.append((direct, nominal(accusative, "accusative", notes, negating)))
    if dative is not None and dative is not front:
        fields.append((indirect, nominal(dative, "dative", notes, extra=((node, "recipient"),))))
    if node.negated and negating is None:
        notes.tags.add("negation nicht")
        fields.append((8, [Word("nicht", ((node, "negation"),))]))
    adverbials = (
        (6, node.time),
        (9, node.frequency),
        (12, node.manner),
        (9.5 if type(node.location) is Adverb and len(node.location.entry.german) == 1 else 13, node.location),
        (14, node.governed),
        (15, node.direction),
        (16, node.predicate),
    )
    fields += [(rank, constituent(part, notes)) for rank, part in adverbials if part is not None and part is not front]
    fields.sort(key=lambda ranked: ranked[0])
    return [word for _, words in fields for word in words]


def _front(node: Clause, front: Any, notes: Notes) -> list[Word]:
    if front is node.subject:
        return nominal(front, "nominative", notes)
    if front is node.accusative:
        return nominal(front, "accusative", notes)
    if front is node.dative:
        return nominal(front, "dative", notes, extra=((node, "recipient"),))
    return constituent(front, notes)


def _relative(antecedent: Any, notes: Notes) -> list[Word]:
    if type(antecedent) is not NounPhrase or antecedent.relative is None:
        return []
    notes.tags.add("relative clause")
    return [_COMMA, *clause(antecedent.relative, notes, "last"), _COMMA]


def clause(node: Clause, notes: Notes, order: str) -> list[Word]:
    """The words of a clause.

    Args:
        node: the clause.
        notes: where phenomena are written down.
        order: where the finite verb stands: second, first or last.
    """
    front = node.opener or node.fronted
    if order == "second" and front is None and not node.silent_subject:
        front = node.subject
    finite, rest = verb_bracket(node, notes, final=order == "last")
    before = [] if front is None else _front(node, front, notes)
    middle = _middle_field(node, front, notes)
    after: list[Word] = []
    for part in (node.subject, node.accusative, node.dative):
        if part is not None and not (part is node.subject and node.silent_subject):
            if part is front and node.force in ("statement", "wh"):
                before += _relative(part, notes)
            else:
                after += _relative(part, notes)
    if order == "last":
        notes.tags.add("verb final")
        return [*before, *middle, *rest, finite, *after]
    if order == "second" and front is not node.subject and not node.silent_subject and node.force == "statement":
        notes.tags.add("verb second")
    return [*before, finite, *middle, *rest, *after]


def _observe_force(node: Clause, notes: Notes) -> None:
    if node.force in ("yes-no", "wh"):
        notes.tags.add("yes-no question" if node.force == "yes-no" else "wh-question")
    if node.accusative is not None and node.dative is not None:
        notes.tags.add("ditransitive")


def sentence(node: Sentence, notes: Notes) -> list[Word]:
    """The words of a sentence, final punctuation included."""
    first, second = node.first, node.second
    _observe_force(first, notes)
    order = "first" if first.force == "yes-no" or node.second_first else "second"
    words = clause(first, notes, order)
    if second is not None:
        _observe_force(second, notes)
        conjunction = Word(node.conjunction.german, ((node, "conjunction"),))
        comma = Word(",", ((node, "comma"),))
        joined = [conjunction, *clause(second, notes, "last" if node.conjunction.subordinating else "second")]
        if node.second_first:
            notes.tags.add("verb second")
            words = [*joined, comma, *words]
        elif node.conjunction.german == "und":
            words = words + joined
        else:
            words = [*words, comma, *joined]
    mark = "?" if first.force in ("yes-no", "wh") else "."
    return _tidy([*words, Word(mark, ((node, "end"),))])


def _tidy(words: list[Word]) -> list[Word]:
    """Drops a comma that stands before another punctuation mark."""
    return [
        word
        for word, after in zip(words, [*words[1:], _COMMA], strict=True)
        if not (word.text == "," and after.text in ",.?")
    ]
