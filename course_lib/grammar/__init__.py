"""The course corpus: English-German sentence pairs from an abstract syntax, with gold word alignment."""

from course_lib.grammar import build
from course_lib.grammar.align import CoursePair, detokenize, realize
from course_lib.grammar.brackets import WORD, Span, constituents, labeled_f1, linearized, read_brackets
from course_lib.grammar.generate import MAX_WORDS, derivations, generate, trees
from course_lib.grammar.lexicon import NOUN, NOUNS
from course_lib.grammar.linearizers import english, german
from course_lib.grammar.sampler import Chooser
from course_lib.grammar.splits import SPLITS, needs_unseen_form
from course_lib.grammar.syntax import Notes

__all__ = [
    "MAX_WORDS",
    "NOUN",
    "NOUNS",
    "SPLITS",
    "WORD",
    "Chooser",
    "CoursePair",
    "Notes",
    "Span",
    "build",
    "constituents",
    "derivations",
    "detokenize",
    "english",
    "generate",
    "german",
    "labeled_f1",
    "linearized",
    "needs_unseen_form",
    "read_brackets",
    "realize",
    "trees",
]
