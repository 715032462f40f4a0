"""The English linearizer: abstract syntax in, English words with their parts out.

English order: subject, auxiliary, not, adverb of frequency, verb, objects, manner,
direction, place, time. Questions and negation need an auxiliary: do, where there is no other.
"""

from typing import Any

from course_lib.grammar.lexicon import NAMES
from course_lib.grammar.lexicon.function_words import (
    CAN,
    ENGLISH_PRONOUNS,
    MAY,
    MUST,
    NUMBERS,
    THIS,
    WANT,
    WOULD_LIKE,
    A,
)
from course_lib.grammar.linearizers.english_morphology import article, be_form, finite_form, possessive
from course_lib.grammar.syntax import (
    Adverb,
    Clause,
    Coordination,
    Interrogative,
    Name,
    NounPhrase,
    Predicate,
    PrepPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Word,
    agreement,
    inverted,
)


def nominal(node: Any, role: str = "object") -> list[Word]:
    """The words of a noun phrase, name, pronoun or coordination; `role` is subject or object."""
    kind = type(node)
    if kind is NounPhrase:
        return noun_phrase(node)
    if kind is Pronoun:
        form = ENGLISH_PRONOUNS[node.person, node.plural, node.gender][role != "subject"]
        return [Word(form, ((node, "pronoun"),))]
    if kind is Name:
        return [Word(node.name, ((node, "name"),))]
    if kind is Interrogative:
        return [Word("who" if node.animate else "what", ((node, "pronoun"),))]
    if kind is RelativePronoun:
        human = ("who" if role == "subject" else "whom") if "human" in node.antecedent.noun.classes else ""
        return [Word(human or "that", ((node, "pronoun"),))]
    assert kind is Coordination
    return nominal(node.first, role) + [Word("and", ((node, "and"),))] + nominal(node.second, role)


def noun_phrase(node: NounPhrase) -> list[Word]:
    """Determiner, number, adjectives, noun and relative clause."""
    noun = node.noun
    words = [Word(adjective.english, ((node, adjective.english),)) for adjective in node.adjectives]
    words.append(Word(noun.english_plural if node.plural else noun.english, ((node, "noun"),)))
    if node.number:
        words.insert(0, Word(NUMBERS[node.number][0], ((node, "number"),)))
    if node.possessor is not None:
        words = _possessor(node) + words
    elif node.determiner is A:
        words.insert(0, Word(article(words[0].text), ((node, "det"),)))
    elif node.determiner is not None:
        text = "these" if node.determiner is THIS and node.plural else node.determiner.english
        words = [Word(part, ((node, det),)) for part, det in zip(text.split(), ("det", "det 2"), strict=False)] + words
    if node.relative is not None:
        words += clause(node.relative)
    return words


def _possessor(node: NounPhrase) -> list[Word]:
    words = nominal(node.possessor)
    last = words[-1]
    plural = isinstance(node.possessor, NounPhrase) and node.possessor.plural
    return words[:-1] + [Word(possessive(last.text, plural), (*last.parts, (node, "det")))]


def prep_phrase(node: PrepPhrase) -> list[Word]:
    """The preposition, if English has one here, and its noun phrase."""
    return _preposition(node) + nominal(node.noun_phrase)


def _preposition(node: PrepPhrase) -> list[Word]:
    return [Word(text, ((node, "preposition"),)) for text in node.english.split() if text != "-"]


def adverb(node: Adverb) -> list[Word]:
    """The words of a fixed adverbial."""
    return [Word(text, tuple((node, part) for part in parts)) for text, parts in node.entry.english]


def constituent(node: Any) -> list[Word]:
    """The words of any adverbial or predicate."""
    if type(node) is Adverb:
        return adverb(node)
    if type(node) is PrepPhrase:
        return prep_phrase(node)
    if type(node) is Predicate:
        return [Word(node.adjective.english, ((node, "adjective"),))]
    return nominal(node)


def _do_support(node: Clause, base: str, finite: str, past: bool) -> tuple[list[Word], list[Word]]:
    """Auxiliary and verb of a simple tense: (does, see) or ((), sees)."""
    verb, tense = (node, "verb"), (node, "tense")
    if not (node.negated or inverted(node)):
        return [], [Word(finite, (tense, verb))]
    person, plural = agreement(node.subject)
    do = "did" if past else ("does" if person == 3 and not plural else "do")
    return [Word(do, (tense,))], [Word(base, (verb,))]


def _modal_group(node: Clause) -> tuple[list[Word], list[Word]]:
    """Auxiliary and verb of a modal clause; want to and have to are full verbs in English."""
    modal, past = node.modal, node.tense == "past"
    verb, tense = (node, "verb"), (node, "tense")
    if modal is WANT or (modal is MUST and (past or node.negated or inverted(node))):
        base = "want" if modal is WANT else "have"
        person, plural = agreement(node.subject)
        third = person == 3 and not plural
        forms = {"want": ("wants", "wanted"), "have": ("has", "had")}[base]
        finite = forms[1] if past else (forms[0] if third else base)
        aux, main = _do_support(node, base, finite, past)
        main = [Word(word.text, (tense,)) for word in main] + [Word("to", (verb,))]
    elif modal is WOULD_LIKE:
        aux, main = [Word("would", (tense,))], [Word("like", (tense,)), Word("to", (verb,))]
    else:
        text = modal.past if past else modal.english
        if node.negated and modal is MAY:
            text = "must"
        if node.negated and modal is CAN and not past:
            return [Word("cannot", (tense, (node, "negation")))], [Word(node.verb.english, (verb,))]
        aux, main = [Word(text, (tense,))], []
    return aux, main + [Word(node.verb.english, (verb,))]


def verb_group(node: Clause) -> tuple[list[Word], list[Word]]:
    """The auxiliary (at most one word) and the words of the verb after it."""
    verb, tense = (node, "verb"), (node, "tense")
    lexical, person_plural = node.verb, agreement(node.subject)
    if node.modal is not None:
        return _modal_group(node)
    if node.tense == "future":
        return [Word("will", (tense,))], [Word(lexical.english, (verb,))]
    if node.tense == "perfect":
        have = "has" if person_plural == (3, False) else "have"
        return [Word(have, (tense,))], [Word(lexical.participle, (verb,))]
    if node.progressive:
        return [Word(be_form(node.tense, *person_plural), (tense,))], [Word(lexical.ing, (verb,))]
    finite = finite_form(lexical, node.tense, *person_plural)
    if lexical.english == "be":
        return [Word(finite, (tense, verb))], []
    return _do_support(node, lexical.english, finite, node.tense == "past")


def _objects(node: Clause, front: Any) -> list[Word]:
    """Particle, objects and prepositional object, in English order."""
    verb = (node, "verb")
    particle = [Word(node.verb.particle, (verb,))] if node.verb.particle else []
    to = [Word(node.verb.to, (verb,))] if node.verb.to else []
    accusative = [] if node.accusative in (None, front) else nominal(node.accusative)
    dative = [] if node.dative in (None, front) else nominal(node.dative)
    if node.verb.english_reflexive:
        person, plural = agreement(node.subject)
        gender = _natural_gender(node.subject)
        accusative = [Word(ENGLISH_PRONOUNS[person, plural, gender][2], ((node, "reflexive"),))]
    if type(node.accusative) is Pronoun:
        words = accusative + particle
    else:
        words = particle + to + accusative
        to = []
    if node.accusative is not None and node.dative is not None:
        if node.dative_with_to:
            words += [Word("to", ((node, "recipient"),))] + dative
        else:
            words = dative + words
    else:
        words = to + words + dative if to else words + dative
    if node.governed is not None:
        stranded = node.governed is front
        words += _preposition(node.governed) if stranded else prep_phrase(node.governed)
    return words


def _natural_gender(subject: Any) -> str:
    if type(subject) is Pronoun:
        return subject.gender
    if agreement(subject)[1]:
        return ""
    if type(subject) is RelativePronoun:
        subject = subject.antecedent
    pronoun = NAMES[subject.name] if type(subject) is Name else getattr(getattr(subject, "noun", None), "pronoun", "he")
    return {"he": "m", "she": "f", "it": "n"}[pronoun]


def clause(node: Clause) -> list[Word]:
    """The words of a clause, without conjunction and final punctuation."""
    aux, verb = verb_group(node)
    if node.governed is not None and node.governed.english == "-":
        verb[-1] = Word(verb[-1].text, (*verb[-1].parts, (node.governed, "preposition")))  # remember: sich erinnern an
    front = node.fronted
    negation = node.negated and not (aux and aux[0].text == "cannot")
    middle = [Word("not", ((node, "negation"),))] if negation else []
    if node.frequency is not None:
        middle += adverb(node.frequency)
    subject = [] if node.silent_subject or node.subject is front else nominal(node.subject, "subject")
    words = []
    if node.opener is not None:
        words += adverb(node.opener)
    if front is not None:
        words += _fronted(node, front)
    words += aux + subject if inverted(node) else subject + aux
    words += middle + verb + _objects(node, front)
    for part in (node.predicate, node.manner, node.direction, node.location, node.time):
        if part is not None and part is not front:
            words += constituent(part)
    return words


def _fronted(node: Clause, front: Any) -> list[Word]:
    if front is node.subject:
        return nominal(front, "subject")
    if front is node.governed:
        return nominal(front.noun_phrase)
    return constituent(front)


def sentence(node: Sentence) -> list[Word]:
    """The words of a sentence, final punctuation included."""
    words = clause(node.first)
    if node.second is not None:
        conjunction = Word(node.conjunction.english, ((node, "conjunction"),))
        comma = Word(",", ((node, "comma"),))
        second = [conjunction, *clause(node.second)]
        if node.second_first:
            words = [*second, comma, *words]
        elif node.conjunction.subordinating or node.second.silent_subject:
            words = words + second
        else:
            words = [*words, comma, *second]
    question = node.first.force in ("yes-no", "wh")
    return [*words, Word("?" if question else ".", ((node, "end"),))]
