"""The trees of golden_course.tsv, in the order of its rows, built by hand; test_golden compares."""

from course_lib.grammar.build import a, adjective, adverb, bare, it, modal, place, relative, sentence, the, who
from course_lib.grammar.build import clause as c
from course_lib.grammar.build import noun as n
from course_lib.grammar.lexicon import function_words as f
from course_lib.grammar.syntax import Coordination, Pronoun

PAST, PERFECT, FUTURE = {"tense": "past"}, {"tense": "perfect"}, {"tense": "future"}
MANY_OF, TO = {"plural": True}, {"dative_with_to": True}
NOT, ING = {"negated": True}, {"progressive": True}
ASK, WH = {"force": "yes-no"}, {"force": "wh"}
IT = Pronoun(3, False, "n")


def be(subject, what, **details):
    """A clause with sein and an adjective or a place."""
    if isinstance(what, str):
        return c(subject, "sein", predicate=adjective(what), **details)
    return c(subject, "sein", location=what, **details)


def o(english, verb, **details):
    """A clause whose subject is a definite noun of one word, or a pronoun or name."""
    simple = english in ("I", "you", "he", "she", "we", "they", "Anna", "Maria", "Paul", "Peter", "who")
    return c(english if simple else the(english), verb, **details)


def s(english, verb, **details):
    """The same with the definite noun in the plural."""
    return c(the(english, plural=True), verb, **details)


def at(relation, english, *adjectives, case=""):
    """A place with a definite noun."""
    return place(relation, the(english, *adjectives), case)


def then(first, phrase, verb, slot="accusative", **details):
    """The subject does a second thing to what it had in the first clause: ... and gives it to him."""
    return sentence(first, f.AND, c(first.subject, verb, silent_subject=True, **{slot: it(phrase)}, **details))


def taking(subject, verb, phrase, **details):
    """A clause with an accusative object, and that object."""
    return o(subject, verb, accusative=phrase, **details), phrase


TREES = (
    o("cat", "schlafen"),
    o("cat", "sehen", accusative=the("dog")),
    o("dog", "sehen", accusative=the("cat")),
    c(the("woman", "old"), "geben", accusative=a("apple", "red"), dative=the("child")),
    o("he", "sehen", accusative=the("bear")),
    o("she", "helfen", dative=the("boy")),
    o("we", "sprechen", governed=the("student")),
    c(bare("dog", possessor=the("neighbor")), "schlafen"),
    o("lion", "hören", accusative=the("lion", plural=True)),
    s("child", "spielen", location=at("in", "garden")),
    s("child", "laufen", direction=at("into", "garden")),
    o("cat", "sitzen", location=at("on", "table")),
    o("cat", "springen", direction=at("onto", "table")),
    o("cat", "schlafen", location=at("under", "bed")),
    o("mouse", "sich verstecken", location=at("behind", "sofa")),
    o("man", "stellen", accusative=the("bottle"), direction=at("on", "table", case="accusative")),
    o("bottle", "stehen", location=at("on", "table")),
    o("I", "legen", accusative=the("book"), direction=at("next_to", "lamp", case="accusative")),
    o("book", "liegen", location=at("next_to", "lamp")),
    o("she", "gehen", direction=at("to", "cinema")),
    be("she", at("in", "cinema")),
    o("aunt", "fahren", direction=at("to", "station")),
    o("student", "gehen", direction=at("to", "school")),
    o("doctor", "ankommen", location=at("at", "station")),
    o("girl", "gehen", direction=at("to", "window")),
    o("girl", "stehen", location=at("at", "window")),
    o("he", "sich setzen", direction=at("at", "table", case="accusative")),
    o("we", "gehen", direction="home", **ING),
    o("grandmother", "bleiben", location="at home"),
    o("brother", "gehen", direction=at("to", "doctor")),
    o("teacher", "lesen", accusative=the("newspaper"), time="today", front="time", **ING),
    o("teacher", "lesen", accusative=the("newspaper"), time="today", **ING),
    s("girl", "kaufen", accusative=bare("dress", "new", **MANY_OF), time="yesterday", front="time", **PAST),
    o("he", "trinken", accusative=bare("coffee", "hot"), time="in the morning", front="time"),
    o("she", "trinken", accusative=bare("milk", "cold"), time="every day"),
    s("boy", "essen", accusative=bare("bread", "fresh")),
    o("dog", "fressen", accusative=the("meat")),
    o("baby", "trinken", accusative=bare("water", "warm")),
    c(a("man", "young"), "suchen", accusative=a("car", "expensive")),
    be(n(f.THIS, "forest", "dark"), "beautiful"),
    o("teacher", "arbeiten", location=place("in", a("room", "dark"))),
    c(n(f.EVERY, "child", "tired"), "schlafen"),
    s("woman", "kaufen", accusative=bare("table", "small", plural=True, number=3)),
    c(bare("man", "old", plural=True, number=2), "helfen", dative=the("woman", "young", plural=True, number=4)),
    c(n(f.MANY, "student", "clever", **MANY_OF), "lesen", accusative=bare("book", "interesting", **MANY_OF)),
    o("mother", "erzählen", accusative=a("story"), dative=the("child", plural=True)),
    o("he", "zeigen", accusative=the("picture"), dative=n(f.HIS, "neighbor", "friendly", **MANY_OF), **TO),
    o("queen", "geben", accusative=a("flower"), dative=the("girl"), **TO),
    o("I", "schicken", accusative=a("letter"), dative=who("you")),
    o("she", "zeigen", accusative=the("car", "new"), dative=a("doctor"), **TO),
    then(*taking("man", "kaufen", the("book")), "geben", dative=who("he"), **TO),
    then(*taking("man", "kaufen", the("hat")), "geben", dative=who("she"), **TO),
    then(*taking("man", "finden", the("bag")), "geben", dative=the("boy"), **TO),
    sentence(o("man", "kaufen", accusative=(x := the("table"))), f.BECAUSE, be(it(x), "new")),
    sentence(o("man", "kaufen", accusative=(x := the("lamp"))), f.BECAUSE, be(it(x), "new")),
    sentence(o("man", "kaufen", accusative=(x := the("bed"))), f.BECAUSE, be(it(x), "new")),
    sentence(c(x := the("dog"), "schlafen"), f.BECAUSE, be(it(x), "tired")),
    sentence(c(x := the("cat"), "schlafen"), f.BECAUSE, be(it(x), "tired")),
    sentence(
        o("she", "finden", accusative=(x := the("key")), **PAST), f.BUT, o("she", "verlieren", accusative=it(x), **PAST)
    ),
    then(*taking("boy", "sehen", the("dog")), "folgen", slot="dative"),
    then(*taking("boy", "finden", the("cat")), "folgen", slot="dative"),
    o("man", "schlafen", **NOT),
    o("man", "sehen", accusative=the("dog"), **NOT),
    o("man", "helfen", dative=the("woman"), **NOT),
    o("she", "warten", governed=the("bus"), **NOT),
    be(the("soup"), "hot", **NOT),
    o("he", "gehen", direction=at("to", "school"), **NOT),
    o("child", "aufstehen", **NOT),
    o("man", "lesen", accusative=the("letter"), **NOT, **PERFECT),
    o("she", "kaufen", accusative=the("car"), time="today", front="time", **NOT),
    o("she", "kaufen", accusative=a("car"), **NOT),
    o("boy", "trinken", accusative=bare("milk"), **NOT),
    o("we", "haben", accusative=a("dog"), **NOT),
    o("doctor", "lesen", accusative=bare("letter", plural=True), **NOT),
    c(n(f.NO, "child"), "mögen", accusative=the("soup")),
    o("child", "öffnen", accusative=the("window"), modal=modal("may"), **NOT),
    o("you", "schreiben", accusative=a("letter"), modal=modal("may"), **NOT),
    o("child", "schlafen", modal=modal("must"), **NOT),
    o("child", "schlafen", modal=modal("must")),
    o("Peter", "kommen", modal=modal("can"), **NOT),
    o("I", "öffnen", accusative=the("window"), modal=modal("may"), **ASK),
    o("you", "helfen", dative=who("I"), modal=modal("can"), **ASK),
    o("he", "arbeiten", modal=modal("must"), **ASK),
    o("girl", "singen", modal=modal("want to")),
    o("girl", "singen", modal=modal("want to"), **NOT),
    o("you", "spielen", modal=modal("want to"), **ASK),
    o("he", "zurückkommen", modal=modal("want to"), **PAST),
    o("we", "aufstehen", modal=modal("must"), **PAST),
    o("she", "finden", accusative=the("key"), modal=modal("can"), **NOT, **PAST),
    o("I", "trinken", accusative=bare("tea"), modal=modal("would like to")),
    s("student", "lesen", accusative=the("book"), modal=modal("should")),
    o("he", "waschen", accusative=the("car"), **FUTURE),
    o("we", "besuchen", accusative=n(f.OUR, "grandmother"), time="tomorrow", front="time", **FUTURE),
    c(IT, "regnen", **NOT, **FUTURE),
    o("you", "aufwachen", time="in two weeks", front="time", location=at("in", "garden"), **FUTURE),
    o("woman", "essen", accusative=the("apple"), **PERFECT),
    s("man", "gehen", direction="home", **PERFECT),
    o("baby", "einschlafen", **PERFECT),
    o("she", "zumachen", accusative=the("window"), frequency="already", **PERFECT),
    o("I", "schreiben", accusative=a("letter"), frequency="already", **PERFECT),
    o("we", "besuchen", accusative=the("museum"), time="today", **PERFECT),
    o("neighbor", "reparieren", accusative=the("bicycle"), **PERFECT),
    o("bird", "bleiben", location=at("in", "forest"), **PERFECT),
    o("you", "vergessen", accusative=who("I"), **PERFECT),
    o("dog", "folgen", dative=the("boy"), **PERFECT),
    o("mother", "zumachen", accusative=the("window")),
    o("he", "abholen", accusative=the("child")),
    o("she", "anrufen", accusative=who("he")),
    o("father", "aufräumen", accusative=the("kitchen"), time="every day"),
    o("Paul", "einladen", accusative=the("teacher", plural=True)),
    o("she", "anziehen", accusative=the("coat", "red")),
    o("man", "zuhören", dative=the("student")),
    sentence(o("I", "wissen"), f.THAT, o("he", "zumachen", accusative=the("window"))),
    sentence(o("she", "sagen"), f.THAT, o("doctor", "anrufen", **ING)),
    sentence(o("he", "glauben"), f.THAT, o("she", "aufstehen", **PERFECT)),
    sentence(o("they", "hoffen"), f.THAT, o("boy", "zurückkommen", **FUTURE)),
    sentence(o("I", "wissen", **NOT), f.WHETHER, be(the("station"), "old")),
    sentence(o("teacher", "fragen"), f.WHETHER, o("girl", "lesen", accusative=the("book"), modal=modal("can"))),
    sentence(o("Maria", "sagen", **PAST), f.THAT, o("she", "haben", accusative=a("car"), **PAST, **NOT)),
    sentence(o("dog", "schlafen", **PAST, **ING), f.WHEN_PAST, o("man", "zurückkommen", **PAST), second_first=True),
    sentence(s("child", "lachen", **PAST), f.WHEN_PAST, o("bear", "tanzen", **PAST)),
    sentence(c(it(x := the("child")), "schlafen"), f.WHEN_PRESENT, be(x, "tired"), second_first=True),
    sentence(o("we", "bleiben", location="at home", **FUTURE), f.IF, c(IT, "regnen"), second_first=True),
    sentence(o("he", "lachen"), f.WHEN_PRESENT, o("she", "singen")),
    sentence(s("child", "spielen", **PAST), f.WHILE, o("mother", "arbeiten", **PAST), second_first=True),
    sentence(o("she", "waschen", accusative=(x := the("apple"))), f.BEFORE, o("she", "essen", accusative=it(x))),
    sentence(o("student", "arbeiten"), f.ALTHOUGH, be("he", "sick")),
    sentence(o("woman", "lachen"), f.AND, o("man", "weinen")),
    sentence(o("woman", "lachen"), f.BUT, o("man", "weinen")),
    c(Coordination(the("man"), the("woman")), "schlafen", **ING),
    o("cat", "schlafen", **ASK),
    o("boy", "lesen", accusative=the("story"), **ASK, **ING),
    o("you", "sehen", accusative=the("dog"), **ASK, **PAST),
    o("man", "zurückkommen", **ASK, **PAST),
    o("you", "sich waschen", **ASK, **PERFECT),
    be(the("soup"), "cold", **ASK, **PAST),
    be("you", "tired", **ASK),
    o("who", "sehen", accusative=the("man"), front="subject", **WH),
    o("man", "sehen", accusative=who("who"), front="accusative", **WH),
    o("man", "helfen", dative=who("who"), front="dative", **WH),
    o("she", "geben", accusative=the("book"), dative=who("who"), **TO, front="dative", **WH),
    o("he", "warten", governed=who("who"), front="governed", **WH, **ING),
    o("you", "sprechen", governed=who("who"), front="governed", **WH, **ING),
    o("girl", "trinken", accusative=who("what"), front="accusative", **WH, **ING),
    o("grandmother", "sitzen", location="where", front="location", **WH),
    s("student", "gehen", direction="where to", front="direction", **WH, **ING),
    o("bus", "ankommen", time="when", front="time", **WH, **PAST),
    o("child", "weinen", time="why", front="time", **WH, **ING),
    o("you", "lesen", accusative=n(f.WHICH, "book"), front="accusative", **WH, **ING),
    o("she", "kaufen", accusative=n(f.WHICH, "hat"), front="accusative", **WH, **PAST),
    o("you", "brauchen", accusative=n(f.HOW_MANY, "egg", plural=True), front="accusative", **WH),
    be(relative(the("dog"), "subject", "schlafen", location=at("in", "garden")), "old"),
    be(relative(the("book"), "accusative", "lesen", the("woman")), "new"),
    be(relative(the("man"), "dative", "helfen", the("girl")), "sick"),
    be(relative(the("woman", plural=True), "subject", "singen"), "happy"),
    o("boy", "essen", accusative=relative(the("apple"), "accusative", "kaufen", "she", **PAST), **PERFECT),
    o("she", "anrufen", accusative=relative(the("teacher"), "subject", "besuchen", accusative=who("she"), **PERFECT)),
    c(relative(the("child", plural=True), "dative", "danken", "he"), "lachen"),
    o("I", "sich waschen", **ING),
    o("queen", "sich beeilen"),
    o("she", "sich erinnern", governed=the("village")),
    o("we", "sich freuen", governed=the("cake"), **ING),
    o("man", "sich ausruhen", time="today", front="time", **ING),
    sentence(o("I", "wissen"), f.THAT, o("man", "sich ausruhen", **ING)),
    s("boy", "spielen", time="at half past three", front="time"),
    o("he", "aufstehen", time="at a quarter to seven"),
    o("she", "kommen", direction="home", time="at a quarter past one", **PAST),
    c(IT, "sein", predicate=adverb("one o'clock")),
    c(IT, "sein", predicate=adverb("half past twelve")),
    c(the("lion", "old"), "schlafen", location=at("in", "forest"), time="two days ago", front="time", **PAST),
    c(n(f.MY, "sister"), "besuchen", accusative=who("I"), time="on Monday", front="time", **FUTURE),
    c(bare("brother", possessor=who("Anna")), "lieben", accusative=bare("daughter", possessor=the("teacher"))),
    be(bare("ball", possessor=the("child", plural=True)), "red"),
    o("he", "träumen", governed=the("horse", "white", plural=True)),
    o("she", "denken", governed=the("girl")),
    o("car", "gehören", dative=n(f.MY, "father")),
    s("girl", "helfen", dative=n(f.THEIR, "mother", plural=True)),
    s("woman", "wegwerfen", accusative=the("bottle", "empty", plural=True)),
    o("she", "lesen", accusative=the("story"), frequency="always", manner="quietly"),
    o("boy", "kaufen", accusative=bare("chocolate"), frequency="often"),
    o("queen", "schlafen", opener="perhaps", **ING),
    o("he", "verlieren", accusative=n(f.HIS, "key"), opener="unfortunately", **PERFECT),
    c(n(f.THIS, "mouse", "small", plural=True), "fressen", accusative=bare("cheese")),
    s("lamb", "sein", location=at("in_front_of", "house")),
    c(n(f.YOUR, "brother"), "kaufen", accusative=a("gift"), governed=n(f.OUR, "mother")),
    o("cow", "sein", location="here", opener="unfortunately", **NOT, **PAST),
    o("bear", "hören", accusative=who("you"), **ASK),
    o("Maria", "helfen", dative=who("he"), opener="unfortunately", **NOT),
    sentence(o("I", "wissen"), f.THAT, o("woman", "sehen", accusative=who("she"))),
    sentence(o("I", "wissen"), f.THAT, o("woman", "sehen", accusative=who("he"))),
    s("boy", "lachen", manner="loudly", location="there"),
    o("man", "aufsetzen", accusative=the("hat")),
    o("brother", "streichen", accusative=the("bench")),
    o("brother", "malen", accusative=the("bird")),
    o("she", "abwischen", accusative=the("table")),
    o("she", "putzen", accusative=the("window")),
    o("child", "schlafen", location="in bed"),
    o("we", "zeigen", accusative=the("jacket"), dative=a("woman")),
    o("we", "geben", accusative=the("key"), dative=a("man", "old"), time="tomorrow", front="time", **FUTURE),
    sentence(c(x := the("dog"), "fressen", accusative=the("meat")), f.BECAUSE, be(it(x), "hungry")),
    sentence(o("dog", "fressen", accusative=(x := the("meat"))), f.BECAUSE, be(it(x), "fresh")),
    sentence(
        o("she", "stellen", accusative=(x := the("bottle")), direction=at("under", "table", case="accusative")),
        f.BECAUSE,
        be(it(x), "empty"),
    ),
    then(*taking("dog", "sehen", the("cat")), "folgen", slot="dative"),
    sentence(o("man", "kaufen", accusative=(x := the("lamp")), modal=modal("want to")), f.BUT, be(it(x), "expensive")),
)
