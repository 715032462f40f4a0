"""The course corpus: English-German sentence pairs from an abstract syntax, with gold word alignment."""

from course_lib.grammar import build
from course_lib.grammar.align import CoursePair, detokenize, realize
from course_lib.grammar.generate import MAX_WORDS, derivations, generate, trees
from course_lib.grammar.lexicon import NOUN, NOUNS
from course_lib.grammar.linearizers import english, german
from course_lib.grammar.splits import SPLITS, needs_unseen_form
from course_lib.grammar.syntax import Notes

__all__ = [
    "MAX_WORDS",
    "NOUN",
    "NOUNS",
    "SPLITS",
    "CoursePair",
    "Notes",
    "build",
    "derivations",
    "detokenize",
    "english",
    "generate",
    "german",
    "needs_unseen_form",
    "realize",
    "trees",
]
