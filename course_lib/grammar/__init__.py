"""The course corpus: English-German sentence pairs from an abstract syntax, with gold word alignment."""

from .align import CoursePair, detokenize, realize
from .generate import derivations, generate

__all__ = ["CoursePair", "derivations", "detokenize", "generate", "realize"]
