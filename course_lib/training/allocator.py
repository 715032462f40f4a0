"""A faster memory allocator setting for training on CPU."""

import ctypes
import sys

# from glibc's malloc.h
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def _glibc() -> ctypes.CDLL | None:
    """The C library, where it is glibc."""
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    return library if library is not None and hasattr(library, "gnu_get_libc_version") else None


def give_back_memory() -> bool:
    """Gives freed memory back to the system after all, wherever it lies; True where it applies.

    Blocks of ever new sizes leave gaps: without this, now and then, a long training fills several gigabytes with them.
    """
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


def keep_freed_memory() -> bool:
    """Makes the C library keep freed memory for reuse, for the rest of the process.

    A training step allocates and frees the same tens of megabytes again and again. By default glibc gives each large
    block back to the system at once and fetches it anew, zeroed page by page, which costs a quarter of the step.

    Returns:
        True where it applies (Linux with glibc), False elsewhere, where nothing is changed.
    """
    library = _glibc()
    return library is not None and bool(
        library.mallopt(_M_MMAP_MAX, 0)
        and library.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        and library.mallopt(_M_TOP_PAD, 2**28)
    )
