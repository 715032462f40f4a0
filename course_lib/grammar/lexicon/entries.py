"""What a lexicon entry is: the dataclasses that the lexicon modules fill in.

Nothing here is a sentence: an entry says how one word behaves in both languages.
Entries compare by identity, so they are cheap dictionary keys.
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun in both languages.

    `pronoun` is the English pronoun that takes it up: he, she or it.
    A weak noun (der Bär, den Bären) has its ending in every form but the nominative singular.
    A mass noun has no plural and no indefinite article.
    """

    english: str
    english_plural: str
    german: str
    gender: str
    genitive: str
    plural: str
    classes: frozenset[str]
    pronoun: str
    weak: bool = False
    mass: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective; `stem` is what endings attach to (teuer, teur-), `rank` orders two of them."""

    english: str
    german: str
    stem: str
    rank: int
    classes: frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """What a verb wants around it; names of noun classes, or None.

    Args:
        subject: class of the subject.
        accusative: class of the direct object.
        dative: class of the indirect or only object.
        preposition: (English, German, case, class) of the prepositional object.
        optional: the prepositional object may be missing.
        location: sets of places where it may happen ("area seat"), "" for none.
        direction: sets of places where it may lead, "" for none.
        place_needed: one of both must be there.
        manner: the manner adverbs that make sense, in English.
        clause: the conjunctions of its complement clause, in English.
        habit: it is done every day, or often.
        season: it fills a season: in summer, last year.
    """

    subject: str
    accusative: str | None = None
    dative: str | None = None
    preposition: tuple[str, str, str, str] | None = None
    optional: bool = False
    location: str = ""
    direction: str = ""
    place_needed: bool = False
    manner: tuple[str, ...] = ()
    clause: tuple[str, ...] = ()
    habit: bool = False
    season: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb in both languages.

    `english` is the base form, `particle` what follows it ("pick" + "up").
    `to` is an English preposition where German has a bare case ("look for" = suchen).
    `prefix` is the separable prefix and `stem_verb` the infinitive without it.
    `change` is the stem of du and er where it differs (geben, gib-).
    A stative verb takes neither the progressive nor the present perfect.
    """

    english: str
    past: str
    participle: str
    ing: str
    particle: str
    to: str
    prefix: str
    stem_verb: str
    change: str
    preterite: str
    german_participle: str
    auxiliary: str
    reflexive: bool
    english_reflexive: bool
    stative: bool
    frame: Frame

    @property
    def infinitive(self) -> str:
        """The German infinitive, prefix attached."""
        return self.prefix + self.stem_verb

    @property
    def name(self) -> str:
        """The German lemma, with sich where the verb is reflexive."""
        return ("sich " if self.reflexive else "") + self.infinitive


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A German modal verb and the English that says it."""

    german: str
    preterite: str
    english: str
    past: str


@dataclass(frozen=True, eq=False, slots=True)
class Determiner:
    """A determiner; `pattern` names its endings and those of the adjective after it.

    Patterns: "der" and "dieser" (weak adjectives), "ein" (mixed), "viele" (strong, in the plural).
    """

    english: str
    german: str
    pattern: str
    definite: bool


@dataclass(frozen=True, eq=False, slots=True)
class AdverbEntry:
    """A fixed adverbial; a word is (text, part) and words of both languages with equal parts belong together."""

    english: tuple[tuple[str, str], ...]
    german: tuple[tuple[str, str], ...]
    tenses: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Conjunction:
    """A conjunction; a subordinating one sends the German verb to the end."""

    english: str
    german: str
    subordinating: bool
