"""What a search may be asked for, and how outputs are compared; needs no torch: a command can refuse at once."""

import math

from course_lib.config import check_sizes

WIDEST_BEAM = 1000
LARGEST_PENALTY = 40


def check_search(beam_size: int, length_penalty: float) -> None:
    """Raises ValueError unless the one is a whole number from 1 to 1,000, and the other a number from -40 to 40."""
    whole = isinstance(beam_size, int) and not isinstance(beam_size, bool)
    if not whole or not 1 <= beam_size <= WIDEST_BEAM:
        raise ValueError(f"beam_size must be a whole number from 1 to {WIDEST_BEAM}, got {beam_size!r}")
    number = isinstance(length_penalty, int | float) and not isinstance(length_penalty, bool)
    if not number or isinstance(length_penalty, float) and not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be a finite number, got {length_penalty!r}")
    if abs(length_penalty) > LARGEST_PENALTY:  # the scores of long outputs would not fit a float
        raise ValueError(f"length_penalty must be from -{LARGEST_PENALTY} to {LARGEST_PENALTY}, got {length_penalty!r}")


def normalized(log_prob: float, length: int, length_penalty: float) -> float:
    """Log-probability over the length penalty of Wu et al. 2016; length, from 1 on, counts </s>."""
    check_sizes(length=length)
    check_search(1, length_penalty)
    return log_prob / ((5 + length) / 6) ** length_penalty
