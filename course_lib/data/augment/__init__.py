"""Made-up sentence pairs that teach a translator to copy what must be copied, and to read careless writing."""

from course_lib.data.augment.made import KINDS, augmented

__all__ = ["KINDS", "augmented"]
