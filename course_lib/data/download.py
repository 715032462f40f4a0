"""Files with a pinned checksum: find the local copy, or download it once, atomically."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tqdm import tqdm

CHUNK = 1 << 16  # bytes
ATTEMPTS = 5  # requests for one file, each of which has to bring something new


class CorpusNotFoundError(FileNotFoundError):
    """No local copy of a corpus, and no download was asked for or possible."""


def cache_folder() -> Path:
    """Map the environment to the folder that downloads go to (COURSE_CACHE, or the user's cache).

    Returns:
        An absolute path; the folder may not exist yet.
    """
    chosen = os.environ.get("COURSE_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else _account_cache()


def _account_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "transformer_course"


def data_folder() -> Path | None:
    """Map the environment variable COURSE_DATA to an absolute path, or to None where it is not set."""
    chosen = os.environ.get("COURSE_DATA")
    return Path(chosen).expanduser().absolute() if chosen else None


def find(corpus: str, filename: str) -> Path | None:
    """Map a corpus and a file name to the local copy: in COURSE_DATA, else in the cache, else in the account's cache.

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
    """Map a corpus without local copy to the error that says what to do about it.

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


def file_sha256(path: str | Path) -> str:
    """Map a file to the SHA-256 of its bytes, as 64 lower-case hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_verified(path: str | Path, sha256: str) -> bytes:
    """Map a local copy to its bytes, after the check that they are the pinned ones.

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
    """Map a URL and a pinned checksum to a verified file at `path`, downloading what is missing of it.

    The bytes arrive in `path` + ".part" and move to `path` in one step, once their checksum is right:
    whatever happens on the way, `path` is either untouched or good. A transfer that breaks off is
    continued where it stopped, in this call as long as each request brings something new, and
    otherwise in the next call. Two processes must not fetch one file at the same time; if they do,
    the checksum refuses what comes out.

    Args:
        url: address of the file, http or https.
        path: where it belongs; folders are made, and a good file already there is kept as it is.
        sha256: the pinned checksum, 64 lower-case hexadecimal digits.
        timeout: seconds of silence after which the connection counts as broken.

    Returns:
        `path`.

    Raises:
        ValueError: a complete download with another checksum; the message has both.
        ConnectionError: the server did not answer, refused, or broke off; what arrived is kept.
        OSError: the disk did not take the bytes.
    """
    path = Path(path)
    if path.is_file() and file_sha256(path) == sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    resumed = _size(part) > 0
    _transfer(url, part, timeout=timeout)
    if resumed and file_sha256(part) != sha256:
        # The old beginning does not belong to this file: once more, from nothing.
        part.unlink()
        _transfer(url, part, timeout=timeout)
    got = file_sha256(part)
    if got != sha256:
        part.unlink()
        raise ValueError(f"{url}: expected SHA-256 {sha256}, got {got}; {path} was left as it was")
    os.replace(part, path)
    return path


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _transfer(url: str, part: Path, *, timeout: float) -> None:
    """Request the file until it has arrived whole, continuing after breaks that brought something."""
    for attempt in range(1, ATTEMPTS + 1):
        before = _size(part)
        try:
            return _request(url, part, timeout=timeout)
        except ConnectionError:
            if attempt == ATTEMPTS or _size(part) <= before:
                raise


def _request(url: str, part: Path, *, timeout: float) -> None:
    """Append what one request brings; start anew if the server does not serve parts of files."""
    start = _size(part)
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(request, timeout=timeout)
    except HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing after `start`: complete or too long, the checksum decides
            return
        raise ConnectionError(f"{url}: the server answered {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise ConnectionError(f"{url}: no answer ({getattr(error, 'reason', error)})") from error
    start = start if response.status == 206 else 0
    length = response.headers["Content-Length"]
    total = start + int(length) if length else None
    got = start
    with (
        response,
        open(part, "ab" if start else "wb") as file,
        tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=part.stem) as bar,
    ):
        while got != total:
            chunk = _read(response, url, part, got, total)
            if not chunk:
                break
            file.write(chunk)
            got += len(chunk)
            bar.update(len(chunk))


def _read(response: HTTPResponse, url: str, part: Path, got: int, total: int | None) -> bytes:
    """Read what has arrived, and tell the end of the file from the end of the connection."""
    reason = "end of the connection"
    try:
        chunk = response.read1(CHUNK)
        if chunk or total is None:
            return chunk
    except (OSError, HTTPException) as error:
        reason = str(error) or type(error).__name__
    of_total = f" of {total:,}" if total is not None else ""
    raise ConnectionError(
        f"{url}: the transfer broke off after {got:,}{of_total} bytes ({reason}); "
        f"they are kept in {part}, and the next call continues there"
    )
