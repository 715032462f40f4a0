"""Selection: which nouns a verb class stands for, and which verbs take a noun as their object.

A class is a union of the classes that nouns carry and of single nouns (by their English word).
"""

from typing import Any

from course_lib.grammar.lexicon import NAMES, NOUN, NOUNS, VERBS, Noun, Verb
from course_lib.grammar.syntax import Name, NounPhrase, RelativePronoun

_UNIONS = {
    # who does it
    "person": "adult young",
    "person_or_baby": "adult young baby",
    "person_or_pet": "adult young pet",
    "person_or_dog": "adult young dog",
    "human_or_dog": "adult young dog",
    "worker": "man father brother son teacher doctor neighbor student woman mother sister daughter aunt grandmother",
    "sleeper": "human pet",
    "crier": "baby child boy girl",
    "player": "young pet student brother sister",
    "singer": "adult young bird",
    "dancer": "adult young",
    "jumper": "cat dog child boy girl",
    "standing": "adult young horse cow",
    "lying": "book letter newspaper key ball knife bag jacket coat shirt dress hat picture pet baby child",
    "sitter": "human pet bird",
    "eater": "pet bear lion mouse pig horse cow duck chicken bird lamb",
    "hider": "cat mouse dog child boy girl",
    "returner": "adult young pet",
    "traveler": "adult young bus letter gift",
    "ownable": (
        "book bag lamp clock picture bicycle car ball key coat jacket hat house garden pet horse cow bench knife"
    ),
    # whom one deals with
    "acquaintance": "kin child boy girl teacher doctor neighbor student man woman",
    "reachable": "kin child boy girl teacher doctor neighbor student man woman",
    "borrower": "brother sister son daughter neighbor student teacher aunt boy girl man woman",
    "speaker": "kin child boy girl teacher doctor neighbor student man woman queen",
    "owner": "adult child boy girl",
    "visit": "kin teacher doctor neighbor student museum city village church school",
    "known": (
        "kin child boy girl teacher doctor neighbor student man woman queen city village museum story book forest "
        "school"
    ),
    "playmate": "ball pet child boy girl brother sister",
    "followed": "kin child boy girl teacher neighbor student man woman dog cat doctor",
    "fetched": "kin child boy girl student letter gift newspaper bicycle car dog",
    "awaited": "bus letter doctor teacher kin child boy girl student neighbor man woman",
    "thought": "kin child girl boy man woman teacher pet house garden village letter gift",
    "dreamt": "kin horse bear lion garden house village city cake gift forest dog cat queen",
    "memorable": "kin teacher neighbor girl boy woman man garden house village school story city museum picture horse",
    "anticipated": "gift cake book story",
    "lovable": "kin child baby girl man woman pet horse garden city village forest chocolate coffee flower book",
    "likable": (
        "kin teacher neighbor doctor student child girl boy animal food drink garden city village forest school museum "
        "cinema house room book story picture clothing flower lamp sofa bicycle car"
    ),
    # what one does to things
    "visible": "human pet bird horse cow mouse bus car bicycle house church museum picture",
    "audible": "pet bird child baby boy girl neighbor bus car clock duck cow lion bear",
    "movable_stand": "cup bottle glass lamp chair cake soup bicycle flower",
    "movable_lie": "book letter newspaper key ball knife bag picture jacket coat shirt dress hat apple banana",
    "feed": "meat bread apple banana egg cheese tomato",
    "motif": "flower horse cat dog picture forest church bird village woman lion",
    "paintable": "bench chair table wardrobe shelf house room kitchen bicycle",
    "cleanable": "window bicycle kitchen room lamp",
    "wipeable": "table chair bench shelf",
    "lost": "key letter ball hat bag book knife newspaper dog cat jacket station doctor bicycle",
    "findable": "key letter ball hat bag book knife newspaper dog cat jacket bicycle picture",
    "losable": "key letter ball hat bag book jacket coat",
    "forgettable": "key letter bag hat gift book coat jacket newspaper story",
    "portable": "bag chair lamp bottle book gift picture flower clock baby cake soup bicycle",
    "openable": "letter bag bottle gift window wardrobe book",
    "closable": "window wardrobe bag book",
    "washable": "shirt dress jacket coat cup glass knife car dog apple tomato",
    "tidy": "room kitchen house wardrobe shelf garden",
    "rubbish": "bottle letter newspaper shirt hat flower bread cheese egg lamp chair cup banana tomato bag",
    "garment": "coat jacket shirt dress",
    "headgear": "hat",
    "repairable": "bicycle car lamp clock chair bench bus table",
    "goods": (
        "bread milk cheese meat egg apple banana tomato cake coffee tea beer chocolate flower book newspaper bag "
        "hat coat "
        "jacket shirt dress lamp clock table chair bed sofa shelf wardrobe bicycle car picture cup glass gift "
        "ball house"
    ),
    "small_goods": "bread milk egg apple banana tomato chocolate flower book newspaper ball picture gift cake",
    "needs": (
        "key bag coat jacket lamp table chair bed bicycle car clock knife cup bottle glass egg bread milk water "
        "doctor book"
    ),
    "toys": "ball book bicycle bag pet picture hat jacket brother sister",
    "bringable": (
        "coffee tea soup water milk cake flower newspaper book letter gift chair coat key glass cup bottle bread"
    ),
    "presentable": "cake flower gift book bread chocolate apple newspaper milk picture soup ball",
    "giveable": (
        "gift flower cake coffee tea water milk apple egg book newspaper letter glass key coat picture ball chocolate "
        "banana cheese hat knife cup bread"
    ),
    "showable": (
        "picture house garden room book letter dress car bicycle dog cat horse clock city kitchen coat newspaper"
    ),
    "lendable": "book bicycle car coat jacket bag lamp knife chair hat",
    "sendable": "letter picture flower gift book",
    "own": "pet brother sister son daughter garden house car bicycle key ball bag book lamp clock horse room hat coat",
}
# What a class of subjects does a verb to, where that is less than the verb's frame says.
_NARROWER = {
    "trinken": {"baby": "milk water tea", "young": "milk water tea"},
    "essen": {"baby": "banana soup bread apple egg"},
    "fressen": {
        "pet": "meat cheese",
        "wild": "meat",
        "mouse": "cheese bread",
        "pig": "apple bread tomato banana",
        "horse": "apple bread",
        "cow": "apple bread",
        "farm": "bread",
        "bird": "bread apple",
    },
    "kaufen": {"young": "small_goods", "student": "small_goods", "queen": "gift flower horse picture dress hat book"},
    "haben": {"young": "toys", "student": "toys", "queen": "horse dog cat garden hat coat book son daughter"},
    "brauchen": {"young": "toys", "queen": "doctor key hat coat book"},
    "leihen": {"young": "book bicycle bag jacket", "queen": "book coat hat"},
    "zeigen": {"young": "picture book room letter dog cat bicycle"},
    "bringen": {"young": "water milk flower newspaper book letter gift coat glass cup"},
    "lesen": {"young": "book story letter"},
    "streichen": {"young": "bench chair"},
    "sehen": {"pet": "human pet bird mouse"},
    "hören": {"pet": "human pet bird"},
    "aufräumen": {"young": "room wardrobe shelf", "queen": "room wardrobe"},
    "folgen": {"pet": "child boy girl man woman dog cat"},
    "warten": {"dog": "child boy girl man woman student neighbor"},
    "abholen": {"student": "letter bicycle newspaper gift"},
    "anziehen": {"man father brother son boy teacher doctor neighbor student": "coat jacket shirt"},
}


def _select(name: str) -> tuple[Noun, ...]:
    wanted = frozenset(_UNIONS.get(name, name).split())
    found = tuple(noun for noun in NOUNS if noun.english in wanted or noun.classes & wanted)
    return found + tuple(noun for noun in found if noun.weak)  # twice: there are few, and learners need them


def _classes(verb: Verb) -> list[str]:
    frame = verb.frame
    governed = frame.preposition[3] if frame.preposition else None
    return [name for name in (frame.subject, frame.accusative, frame.dative, governed) if name]


NOUNS_OF = {name: _select(name) for verb in VERBS for name in _classes(verb)}
NOUNS_OF |= {name: _select(name) for name in (*_UNIONS, "kin", "human", "animate", "adult", "pet", "young", "baby")}
NOUNS_OF["everything"] = NOUNS


def nouns_of(classes: str) -> tuple[Noun, ...]:
    """The nouns of one or more classes, written kin/teacher."""
    return tuple(dict.fromkeys(noun for name in classes.split("/") for noun in _select(name)))


_LESS = {
    (verb, noun): _select(objects)
    for verb, subjects in _NARROWER.items()
    for subject, objects in reversed(subjects.items())
    for noun in _select(subject)
}


def _kind_of(subject: Any) -> Noun:
    """The noun of a participant; a man or a woman stands for a name or pronoun."""
    if type(subject) is RelativePronoun:
        subject = subject.antecedent
    if type(subject) is NounPhrase:
        return subject.noun
    she = NAMES[subject.name] == "she" if type(subject) is Name else getattr(subject, "gender", "") == "f"
    return NOUN["woman" if she else "man"]


def objects_of(verb: Verb, nouns: tuple[Noun, ...], subject: Any) -> tuple[Noun, ...]:
    """Those of some nouns to which a subject does what a verb says: children drink milk, but no beer."""
    able = _LESS.get((verb.name, _kind_of(subject)), nouns)
    return tuple(noun for noun in nouns if noun in able)


def can_be(verb: Verb, slot: str, noun: Noun) -> bool:
    """Whether a noun can be the subject, accusative or dative of a verb."""
    frame = verb.frame
    group = (frame.preposition and frame.preposition[3]) if slot == "governed" else getattr(frame, slot)
    return group is not None and noun in NOUNS_OF.get(group, ())


VERBS_OF_SUBJECT = {noun: tuple(v for v in VERBS if noun in NOUNS_OF[v.frame.subject]) for noun in NOUNS}
VERBS_OF_OBJECT = {
    noun: tuple(v for v in VERBS if v.frame.accusative and not v.frame.dative and noun in NOUNS_OF[v.frame.accusative])
    for noun in NOUNS
}
