"""The concept inventory: twelve questions before the course and after it, whose wrong choices are known errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "questions": ["QUESTIONS", "Question"],
        "forms": ["ACCEPTED", "FORMS", "LETTERS", "choices", "key", "meaning"],
        "answers": ["EXERCISE", "VARIABLE", "answers_in", "what_moved"],
    },
)
