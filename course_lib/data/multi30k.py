"""Multi30k: 31,014 picture captions in English and German, the benchmark of lesson 10.

The captions are for research and education only. The course therefore contains none of them, nor
weights trained on them: the user downloads them, or has a copy in COURSE_DATA/multi30k.
"""

import gzip

from course_lib.data.corpus import Corpus, Pair
from course_lib.data.download import cache_folder, fetch, find, missing, read_verified

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw/"
LICENSE = "for research and education only (github.com/multi30k/dataset, captions of Flickr30k)"
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
SHA256 = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
}
SECOND_WAY = "Download it once (1.3 MB): python -m course_lib data multi30k"


def load_multi30k(*, download: bool = False) -> Corpus:
    """Maps the six Multi30k files to 29,000 train, 1,014 valid and 1,000 test (test_2016_flickr) pairs.

    Args:
        download: whether missing or damaged files of the cache may be fetched; a damaged file in
            COURSE_DATA is reported, never replaced.

    Returns:
        The corpus; src is English, tgt is German, raw text, stripped.

    Raises:
        FileNotFoundError: a file is missing, and no download was asked for or possible.
        ValueError: a file does not have its pinned checksum.
    """
    if download:
        _download()
    paths = {filename: find("multi30k", filename) for filename in SHA256}
    absent = [filename for filename, path in paths.items() if path is None]
    if absent:
        raise missing("multi30k", absent, second_way=SECOND_WAY)
    text = {
        filename: gzip.decompress(read_verified(paths[filename], sha256)).decode("utf-8")
        for filename, sha256 in SHA256.items()
    }
    parts = {
        part: zip_lines(text[f"{split}.en.gz"], text[f"{split}.de.gz"], split=split)
        for part, split in SPLITS.items()
    }
    return Corpus("multi30k", **parts, license=LICENSE)


def zip_lines(src: str, tgt: str, *, split: str) -> list[Pair]:
    """Maps two texts, one sentence a line, to pairs of stripped sentences.

    Args:
        src: English text, each line ended by a line feed.
        tgt: German text, likewise.
        split: name of the split, for the message.

    Returns:
        One pair a line.

    Raises:
        ValueError: the texts do not have equally many lines.
    """
    # Not splitlines(): it also breaks at characters that may stand inside a sentence.
    src_lines, tgt_lines = (text.removesuffix("\n").split("\n") for text in (src, tgt))
    if len(src_lines) != len(tgt_lines):
        raise ValueError(
            f"multi30k {split}: expected equally many lines, "
            f"got {len(src_lines):,} English and {len(tgt_lines):,} German"
        )
    return [Pair(src.strip(), tgt.strip()) for src, tgt in zip(src_lines, tgt_lines, strict=True)]


def _download() -> None:
    """Brings the files that COURSE_DATA does not have into the cache; good ones there are kept."""
    cache = cache_folder() / "multi30k"
    wanted = [name for name in SHA256 if find("multi30k", name) in (None, cache / name)]
    for filename in wanted:
        try:
            fetch(URL + filename, cache / filename, SHA256[filename])
        except ConnectionError as error:
            way = f"{SECOND_WAY}\n     This was tried and failed: {error}"
            raise missing("multi30k", [filename], second_way=way) from error
