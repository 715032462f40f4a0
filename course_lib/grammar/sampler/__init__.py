"""Syntax trees drawn at random, of sentences that make sense."""

from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.mixture import attempt

__all__ = ["Chooser", "attempt"]
