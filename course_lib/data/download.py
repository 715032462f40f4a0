"""Files with a pinned checksum: find the local copy, or download it once, atomically."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path


class CorpusNotFoundError(FileNotFoundError):
    """No local copy of a corpus, and no download was asked for or possible."""


def cache_folder() -> Path:
    """Maps the environment to the folder that downloads go to (COURSE_CACHE, or the user's cache).

    Returns:
        An absolute path; the folder may not exist yet.
    """
    chosen = os.environ.get("COURSE_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else _account_cache()


def _account_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "transformer_course"


def data_folder() -> Path | None:
    """Maps the environment variable COURSE_DATA to an absolute path, or to None where it is not set."""
    chosen = os.environ.get("COURSE_DATA")
    return Path(chosen).expanduser().absolute() if chosen else None


def find(corpus: str, filename: str) -> Path | None:
    """Maps a corpus and a file name to the local copy: in COURSE_DATA, else in the cache, else in the account's cache.

    (A download without `make` goes to the account's cache; the lessons under `make lab` have another one.)

    Args:
        corpus: name of the corpus, which is the name of its folder.
        filename: name of the file in that folder.

    Returns:
        The path, or None where there is no copy. Nothing is downloaded.
    """
    for folder in (data_folder(), cache_folder(), _account_cache()):
        if folder is not None and (folder / corpus / filename).is_file():
            return folder / corpus / filename
    return None


def missing(corpus: str, filenames: Sequence[str], *, second_way: str) -> CorpusNotFoundError:
    """Maps a corpus without local copy to the error that says what to do about it.

    Args:
        corpus: name of the corpus.
        filenames: the files that were not found.
        second_way: what to do other than setting COURSE_DATA, one sentence.

    Returns:
        The error, for the caller to raise.
    """
    current = data_folder()
    return CorpusNotFoundError(
        f"corpus {corpus}: no local copy of {', '.join(filenames)}. Two ways out:\n"
        f"  1. Set the environment variable COURSE_DATA to a folder that has "
        f"{', '.join(f'{corpus}/{filename}' for filename in filenames)} in it "
        f"(it is now {'not set' if current is None else current}).\n"
        f"  2. {second_way}\n"
        f'Every lesson also runs on the course corpus, which needs neither: load_corpus("course").'
    )


def read_verified(path: str | Path, sha256: str) -> bytes:
    """Maps a local copy to its bytes, after the check that they are the pinned ones.

    Args:
        path: the local copy.
        sha256: the pinned checksum, 64 lower-case hexadecimal digits.

    Returns:
        The bytes of the file.

    Raises:
        ValueError: another checksum; the message names the file and both checksums.
    """
    content = Path(path).read_bytes()
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise ValueError(
            f"{path} is damaged or another version: expected SHA-256 {sha256}, got {got}; "
            f"replace it with a good copy, or delete it and download it again"
        )
    return content


def fetch(url: str, path: str | Path, sha256: str, *, timeout: float = 30.0) -> Path:
    """Maps a URL and a pinned checksum to a verified file at `path`, downloaded unless it is there already.

    The bytes arrive in a temporary file beside `path`, which takes its place once their checksum is right: whatever
    happens on the way, `path` is either untouched or good.

    Args:
        url: address of the file, http or https.
        path: where it belongs; folders are made, and a good file already there is kept as it is.
        sha256: the pinned checksum, 64 lower-case hexadecimal digits.
        timeout: seconds of silence after which the connection counts as broken.

    Returns:
        `path`.

    Raises:
        ValueError: a complete download with another checksum; the message has both.
        ConnectionError: the server did not answer, refused, or broke off; the next call starts anew.
        OSError: the disk did not take the bytes.
    """
    import pooch  # here: slow to load, and only a download needs it
    from requests import RequestException

    path = Path(path)
    # Some servers call a .gz file an encoded one, which would then arrive unpacked.
    as_it_is = {"Accept-Encoding": "identity"}
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=timeout, headers=as_it_is)
    try:
        pooch.retrieve(url, sha256, path.name, path.parent, processor=_let_others_read, downloader=downloader)
    except RequestException as error:
        if error.response is not None:
            answer = f"{error.response.status_code} {error.response.reason}"
            raise ConnectionError(f"{url}: the server answered {answer}") from error
        raise ConnectionError(f"{url}: the transfer failed ({error})") from error
    return path


def _let_others_read(path: str, action: str, _) -> str:
    """Makes a new file readable for a whole class that shares the folder; pooch's are for one user alone."""
    if action != "fetch":
        os.chmod(path, 0o644)
    return path
