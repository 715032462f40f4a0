"""From a syntax tree to words with their parts: `english.sentence` and `german.sentence`."""

from course_lib.grammar.linearizers import english, german
from course_lib.grammar.linearizers.german_morphology import joined_forms
from course_lib.grammar.linearizers.german_phrases import is_definite, is_indefinite

__all__ = ["english", "german", "is_definite", "is_indefinite", "joined_forms"]
