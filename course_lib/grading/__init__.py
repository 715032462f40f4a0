"""The teacher's side of the assignments, on nbgrader: submissions run contained and are judged from outside.

    intake (readable?) -> rebuild (on the released notebook) -> execute (contained) -> nbgrader's gradebook

Needs the extra `instructor`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "steps": ["FEEDBACK", "GRADE", "RELEASE", "SANITIZE", "released"],
        "sandbox": ["available"],
        "clear": ["ClearToStubs"],
    },
)
