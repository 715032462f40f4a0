"""Selection: which nouns a verb class stands for, and which verbs take a noun as their object.

A class is a union of the classes that nouns carry and of single nouns (by their English word).
"""

from course_lib.grammar.lexicon import NOUNS, VERBS, Noun, Verb

_UNIONS = {
    "young_or_baby": "young baby",
    "player": "young player",
    "playmate": "toy pet young",
    "singer": "adult young singer",
    "dancer": "adult young",
    "mobile": "adult young animal",
    "animal_or_young": "animal young",
    "standing": "stand vehicle adult young farm",
    "lying": "lie pet wild baby child",
    "movable_stand": "cup bottle glass lamp chair cake table bicycle",
    "movable_lie": "lie picture",
    "anything": "human animal food drink thing furniture place vehicle window gift",
    "eater": "pet wild mouse pig",
    "feed": "meat bread apple banana egg cake cheese",
    "reader": "adult young",
    "lost": "pet small_thing child key ball letter hat coat jacket shirt car bicycle bus station gift",
    "lovable": "kin pet child baby girl man woman garden city chocolate coffee book flower village forest",
    "known": "adult young city village museum story book forest",
    "known_thing": "key letter bag hat gift book coat jacket newspaper story bicycle",
    "audible": "human animal bus car clock",
    "portable": "bag table chair lamp baby child bottle book gift picture flower clock cat dog bench",
    "visit": "visitable adult baby",
    "losable": "key ball letter hat coat jacket bag book knife gift dog cat",
    "needs": "thing furniture vehicle house room garden egg bread milk water doctor",
    "paintable": ("house flower horse cat picture forest church woman man table bench bird window child room village"),
    "traveler": "adult young bus letter gift",
    "human_not_baby": "adult young",
    "fetched": "young baby kin student letter gift newspaper bicycle car dog",
    "bringable": (
        "gift flower cake soup coffee tea water milk beer bread apple egg book newspaper letter glass "
        "cup bottle chair key coat picture ball chocolate banana"
    ),
    "ownable": "thing furniture vehicle house garden pet horse cow pig lamb room",
    "giveable": (
        "gift flower cake soup coffee tea water milk bread apple egg book newspaper letter glass key "
        "coat picture ball chocolate banana tomato cheese meat hat knife cup"
    ),
    "showable": "thing house garden room picture vehicle dog cat horse baby kitchen",
    "lendable": "book bicycle car coat jacket knife ball bag lamp hat key newspaper chair dress",
    "awaited": "awaited human letter",
    "awaited_gift": "gift cake soup city cinema letter coffee book village",
    "thought": "human pet house garden city village letter gift cake horse book forest school",
    "sendable": "sendable picture flower book newspaper",
    "tellable": "tellable",
    "thing": "thing",
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
for _name in ("kin", "human", "animate", "adult", "own", "goal"):
    NOUNS_OF[_name] = _select(_name)
NOUNS_OF["everything"] = NOUNS

VERBS_OF_SUBJECT = {noun: tuple(v for v in VERBS if noun in NOUNS_OF[v.frame.subject]) for noun in NOUNS}
VERBS_OF_OBJECT = {
    noun: tuple(v for v in VERBS if v.frame.accusative and not v.frame.dative and noun in NOUNS_OF[v.frame.accusative])
    for noun in NOUNS
}
