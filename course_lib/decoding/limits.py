"""What a search may be asked for; needs no torch, so that a command can refuse before it loads anything."""

import math

WIDEST_BEAM = 1000


def check_search(beam_size: int, length_penalty: float) -> None:
    """Raises ValueError unless the one is a whole number from 1 to 1,000, and the other a finite number."""
    whole = isinstance(beam_size, int) and not isinstance(beam_size, bool)
    if not whole or not 1 <= beam_size <= WIDEST_BEAM:
        raise ValueError(f"beam_size must be a whole number from 1 to {WIDEST_BEAM}, got {beam_size!r}")
    number = isinstance(length_penalty, int | float) and not isinstance(length_penalty, bool)
    if not number or not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be a finite number, got {length_penalty!r}")
