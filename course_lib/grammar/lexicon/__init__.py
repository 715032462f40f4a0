"""The words: what each is in English and German, how it inflects and what it goes with.

The small words (the, must, because, tomorrow) are many, and stay in `function_words`.
"""

from course_lib.grammar.lexicon import function_words
from course_lib.grammar.lexicon.adjectives import ADJECTIVE, ADJECTIVES_FOR
from course_lib.grammar.lexicon.causes import CAUSES
from course_lib.grammar.lexicon.contrasts import CONTRASTS
from course_lib.grammar.lexicon.courses import COURSES
from course_lib.grammar.lexicon.entries import Adjective, AdverbEntry, Conjunction, Determiner, Modal, Noun, Verb
from course_lib.grammar.lexicon.nouns import NAMES, NOUN, NOUNS
from course_lib.grammar.lexicon.places import PLACES
from course_lib.grammar.lexicon.principal_parts import stem_and_link
from course_lib.grammar.lexicon.scenes import SCENES
from course_lib.grammar.lexicon.verbs import BE, RAIN, SNOW, VERB, VERBS

__all__ = [
    "ADJECTIVE",
    "ADJECTIVES_FOR",
    "BE",
    "CAUSES",
    "CONTRASTS",
    "COURSES",
    "NAMES",
    "NOUN",
    "NOUNS",
    "PLACES",
    "RAIN",
    "SCENES",
    "SNOW",
    "VERB",
    "VERBS",
    "Adjective",
    "AdverbEntry",
    "Conjunction",
    "Determiner",
    "Modal",
    "Noun",
    "Verb",
    "function_words",
    "stem_and_link",
]
