"""What makes sentences sensible, as far as rules can tell; test_judgements has what only a reader can."""

from itertools import islice

import pytest

from course_lib.grammar import realize
from course_lib.grammar.build import adjective, bare, clause, it, noun, sentence, the, who
from course_lib.grammar.generate import trees
from course_lib.grammar.lexicon import function_words as f
from course_lib.grammar.lexicon.adjectives import ADJECTIVES_FOR
from course_lib.grammar.lexicon.verbs import BE
from course_lib.grammar.sampler import pairs, scripts, selection
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.syntax import Name, NounPhrase, Pronoun
from tests.helpers.syntax_trees import clauses, nodes

TREES = list(islice(trees(3), 6_000))


def untold(table, tries=150):
    """The scripts of a table, with a relation, of which no cast makes a sentence."""
    chooser = Chooser(0)
    return [
        (script.first.verb.name, script.second.verb.name, name)
        for script in table
        for name in script.relations
        if not any(pairs._tell(chooser, script, pairs._RELATIONS[name]) for _ in range(tries))
    ]


@pytest.mark.parametrize("kind", scripts.SCRIPTS)
def test_every_script_can_be_told(kind):
    assert untold(scripts.SCRIPTS[kind]) == []


def test_a_script_that_cannot_be_told_is_noticed():
    assert untold(scripts._scripts("because", "A:baby schlafen | A =fresh")) == [("schlafen", "sein", "because")]


def said(tree):
    """The nouns and names of a sentence, one for each time that it is said."""
    silent = {id(node) for part in clauses(tree) if part.silent_subject for node in nodes(part.subject)}
    seen = {id(node): node for part in clauses(tree) for node in nodes(part)}
    first = {id(node) for node in nodes(tree.first)}
    shown = [node for key, node in seen.items() if key in first or key not in silent]
    words = [node for node in shown if isinstance(node, (NounPhrase, Name))]
    return [node.noun if isinstance(node, NounPhrase) else node.name for node in words]


def assert_said_once(sample):
    for tree in sample:
        assert len(said(tree)) == len(set(said(tree))), realize(tree).src


def test_nothing_is_named_twice():
    assert_said_once(TREES)


def test_a_repeated_name_is_noticed():
    with pytest.raises(AssertionError, match="Paul sees Paul's bottle"):
        assert_said_once([sentence(clause("Paul", "sehen", accusative=bare("bottle", possessor=who("Paul"))))])


def can_be(part, slot, node):
    """Whether a noun phrase can be what a pronoun in a slot of a clause means, by the lexicon alone."""
    if part.verb is BE:
        return part.predicate is None or part.predicate.adjective in ADJECTIVES_FOR[node.noun]
    group = getattr(part.verb.frame, slot)
    return node.noun in selection.nouns_of(group)


def doubtful(tree):
    """The words "it" of the later clause for which the earlier clause has two antecedents that make sense."""
    if tree.second is None:
        return []
    earlier, later = (tree.second, tree.first) if tree.second_first else (tree.first, tree.second)
    things = [node for node in nodes(earlier) if isinstance(node, NounPhrase)]
    things = [node for node in things if not node.plural and node.noun.pronoun == "it"]
    things = [node for node in things if node.determiner not in (f.NO, f.EVERY)]  # they name nobody
    found = []
    for slot in ("subject", "accusative", "dative"):
        word = getattr(later, slot)
        if isinstance(word, Pronoun) and word.gender == "n" and not word.plural and word.antecedent is not None:
            subject = None if slot == "subject" else later.subject
            taken = getattr(subject, "antecedent", None) or subject
            rivals = [node for node in things if node not in (word.antecedent, taken) and can_be(later, slot, node)]
            found += [word] if rivals or word.antecedent not in things else []
    return found


def assert_clear(sample):
    for tree in sample:
        assert doubtful(tree) == [], realize(tree).src


def test_it_has_one_antecedent_that_makes_sense():
    assert_clear(TREES)


def test_a_doubtful_it_is_noticed():
    cat, dog = the("cat"), the("dog")
    hungry = clause(it(dog), "sein", predicate=adjective("hungry"))
    with pytest.raises(AssertionError, match="The cat sees the dog because it is hungry"):
        assert_clear([sentence(clause(cat, "sehen", accusative=dog), f.BECAUSE, hungry)])


def two_nouns(tree):
    """Whether the clause before "it" has two nouns of different German gender that "it" could stand for by form."""
    words = [node for part in clauses(tree) for node in nodes(part) if isinstance(node, Pronoun) and node.antecedent]
    words = [word for word in words if not word.plural and word.gender == "n"]
    things = [node for part in clauses(tree) for node in nodes(part) if isinstance(node, NounPhrase)]
    genders = {node.noun.gender for node in things if not node.plural and node.noun.pronoun == "it"}
    return bool(words) and len(genders) > 1


def test_many_pronouns_choose_between_two_nouns():
    assert sum(map(two_nouns, TREES)) > 0.02 * len(TREES)


def oddities(tree):
    """What is grammatical and yet nobody says."""
    found = []
    for part in clauses(tree):
        subject, name = part.subject, part.verb.name
        determiner = getattr(subject, "determiner", None)
        if part.negated and determiner is f.EVERY:
            found.append("every ... not")
        if part.modal is f.CAN and part.tense == "past" and part.force == "yes-no":
            found.append("could you")
        if part.direction is part.fronted is not None and part.force == "wh" and name == "kommen":
            found.append("where ... come")
        if part.predicate is not None and isinstance(subject, NounPhrase):
            rank = getattr(getattr(part.predicate, "adjective", None), "rank", None)
            if rank in {said.rank for said in subject.adjectives}:
                found.append("the sad ... is happy")
        if name == "anziehen" and getattr(getattr(part.accusative, "noun", None), "english", "") == "hat":
            found.append("Hut anziehen")
        for node in (subject, part.accusative, part.dative):
            if getattr(node, "determiner", None) is f.MANY and not node.plural:
                found.append("many hat")
            if isinstance(node, NounPhrase) and node.plural and node.noun.english in ("mother", "father"):
                found += ["Paul's mothers"] if node.possessor is not None else []
    return found


def test_nothing_is_said_that_nobody_says():
    assert [(realize(tree).src, oddities(tree)) for tree in TREES if oddities(tree)] == []


ODD = {
    "every ... not": clause(noun(f.EVERY, "key"), "sein", predicate=adjective("old"), negated=True),
    "could you": clause("you", "anziehen", accusative=the("coat"), modal=f.CAN, tense="past", force="yes-no"),
    "where ... come": clause(the("cat"), "kommen", direction="where to", front="direction", force="wh"),
    "the sad ... is happy": clause(the("student", "sad"), "sein", predicate=adjective("happy")),
    "Hut anziehen": clause("he", "anziehen", accusative=the("hat")),
    "many hat": clause("he", "sehen", accusative=noun(f.MANY, "hat")),
    "Paul's mothers": clause(bare("mother", plural=True, possessor=who("Paul")), "schlafen"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_oddity_is_noticed(name):
    assert oddities(sentence(ODD[name])) == [name]
