"""Corpora by name: each is loaded by its own module, on demand."""

from pathlib import Path

from course_lib.data.corpus import Corpus

NAMES = ("course", "multi30k", "tatoeba")


def load_corpus(name_or_path: str | Path, *, download: bool = False) -> Corpus:
    """Maps the name of a corpus, or the path of a two-column TSV file, to its sentence pairs.

    Args:
        name_or_path: "course", "multi30k", "tatoeba", or a path that ends in .tsv or .tsv.gz.
        download: whether a missing corpus may be fetched over the network; nothing is without it.

    Returns:
        The corpus; the pairs have `.src` (English, in the named corpora) and `.tgt` (German).

    Raises:
        ValueError: an unknown name, a damaged file, or a malformed TSV line.
        FileNotFoundError: no local copy and no download; the message says both ways out.
    """
    if name_or_path == "course":
        from course_lib.data.course import load_course

        return load_course()
    if name_or_path == "multi30k":
        from course_lib.data.multi30k import load_multi30k

        return load_multi30k(download=download)
    if name_or_path == "tatoeba":
        from course_lib.data.tatoeba import load_tatoeba

        return load_tatoeba(download=download)
    if str(name_or_path).endswith((".tsv", ".tsv.gz")):
        from course_lib.data.tsv import load_tsv

        return load_tsv(name_or_path)
    raise ValueError(
        f"expected one of {', '.join(NAMES)}, or a path ending in .tsv or .tsv.gz, got {str(name_or_path)!r}"
    )
