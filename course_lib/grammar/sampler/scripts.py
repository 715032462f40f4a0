"""Scripts: two events that belong together, read from the tables of the lexicon.

A line is "event | event", an event "subject verb ...", and a capital letter a participant, whose noun classes stand
where it is new: "A:person waschen O:apple/tomato | A essen O" is somebody who washes an apple or a tomato and eats it.
A verb has its German name (sich_waschen), its objects come dative first; =tired is what the subject is, @bed a place or
a set of places, @into.kitchen where it leads, +want a modal, ~well a manner, ^perfect, ^future and ^ing a tense, "not"
a negation, and "it" as subject is the weather. A slash stands between alternatives.
"""

from typing import NamedTuple

from course_lib.grammar.lexicon import (
    ADJECTIVE,
    BE,
    CAUSES,
    CONTRASTS,
    COURSES,
    PLACES,
    SCENES,
    VERB,
    Adjective,
    Modal,
    Noun,
    Verb,
)
from course_lib.grammar.lexicon import function_words as words
from course_lib.grammar.sampler.selection import nouns_of

_MODALS = {"want": words.WANT, "must": words.MUST, "can": words.CAN}


class Event(NamedTuple):
    """What happens: a verb, its participants by their letters, and the rest of the clause."""

    subject: str
    verb: Verb
    objects: tuple[str, ...] = ()
    adjectives: tuple[Adjective, ...] = ()
    places: tuple[str, ...] = ()
    manners: tuple[str, ...] = ()
    modal: Modal | None = None
    time: str = ""
    negated: bool = False


class Script(NamedTuple):
    """Two events, the relations that hold between them, and the nouns of each participant."""

    relations: tuple[str, ...]
    first: Event
    second: Event
    cast: dict[str, tuple[Noun, ...]]


def _places(token: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in token.split("/"):
        found += PLACES[name] if name in PLACES else (name.replace(".", " "),)
    return tuple(found)


def _event(text: str, cast: dict[str, tuple[Noun, ...]]) -> Event:
    """Reads an event and notes who is new in it."""
    participants, found = [], {}
    for token in text.split():
        mark, rest = token[0], token[1:]
        if mark.isupper():
            letter, _, classes = token.partition(":")
            participants.append(letter)
            if classes:
                cast[letter] = nouns_of(classes)
        elif mark == "=":
            found |= {"verb": BE, "adjectives": tuple(ADJECTIVE[name] for name in rest.split("/"))}
        elif mark == "@":
            found["places"] = _places(rest)
        elif mark == "+":
            found["modal"] = _MODALS[rest]
        elif mark == "~":
            found["manners"] = tuple(rest.split("/"))
        elif mark == "^":
            found["time"] = rest
        elif token == "not":
            found["negated"] = True
        elif token == "it":
            participants.append(token)
        else:
            found["verb"] = token
    return Event(participants[0], objects=tuple(participants[1:]), **found)


def _events(text: str, cast: dict[str, tuple[Noun, ...]]) -> list[Event]:
    """The events of a text whose verb has alternatives, one each."""
    event = _event(text, cast)
    names = event.verb.split("/") if isinstance(event.verb, str) else ()
    return [event._replace(verb=VERB[name.replace("_", " ")]) for name in names] or [event]


def _scripts(relations: str, lines: str) -> list[Script]:
    found = []
    for line in lines.strip().splitlines():
        cast: dict[str, tuple[Noun, ...]] = {}
        first, second = (_events(text, cast) for text in line.split(" | "))
        found += [Script(tuple(relations.split()), one, other, cast) for one in first for other in second]
    return found


SCRIPTS = {
    name: tuple(script for relations, lines in table for script in _scripts(relations, lines))
    for name, table in (("causes", CAUSES), ("courses", COURSES + SCENES + CONTRASTS))
}
