"""Laws of the download, on a real HTTP server on loopback; each mutant is our source with one change."""

import errno
import functools
import hashlib
import random
import socket
import threading
import time
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tqdm import tqdm

from course_lib.data import download

CONTENT = random.Random(0).randbytes(200_000)
OLD = b"an older file, still good"
REAL_OPEN = open


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def mutant(old, new):
    """Our `fetch` with one piece of its module's source replaced."""
    source = Path(download.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"expected {old!r} once in the source"
    module = types.ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), module.__dict__)
    return module.fetch


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        web = self.server
        asked = self.headers.get("Range")
        web.requests.append(asked)
        content = web.files.get(self.path.removeprefix("/"))
        if content is None:
            return self.send_error(404)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and web.ranges else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cut = web.cuts.pop(0) if web.cuts else None  # bytes after which this answer breaks off
        self.wfile.write(content[start:][:cut])
        if cut is not None:
            time.sleep(web.silence)

    def log_message(self, *_):
        pass


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.requests, server.cuts = {"file.gz": CONTENT}, [], []
    server.ranges, server.silence = True, 0.0
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "file.gz"


def call(fetch, web, path, *, pinned=CONTENT, timeout=10.0):
    """Fetch; return the error it ended with, or None."""
    try:
        assert fetch(web.url + "file.gz", path, sha256(pinned), timeout=timeout) == path
    except (Exception, KeyboardInterrupt) as error:
        return error


def lay(path, *, old=b"", part=b""):
    """Write what earlier calls have left behind; return the path of the part."""
    path.parent.mkdir(exist_ok=True)
    part_path = path.with_name("file.gz.part")
    for target, content in ((path, old), (part_path, part)):
        if content:
            target.write_bytes(content)
    return part_path


class FailingFile:
    """A file that takes 1,000 bytes of a write and then raises."""

    def __init__(self, file, error):
        self.file, self.error = file, error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, chunk):
        self.file.write(chunk[:1000])
        raise self.error


def failing_disk(path, error):
    """An `open` that gives failing files in the folder of `path`."""

    def failing_open(name, mode="r", *args, **kwargs):
        file = REAL_OPEN(name, mode, *args, **kwargs)
        fails = mode[0] in "wa" and Path(name).parent == path.parent
        return FailingFile(file, error) if fails else file

    return failing_open


def law_download_is_exact(fetch, web, path):
    assert call(fetch, web, path) is None
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file.gz"]


def law_good_file_needs_no_network(fetch, web, path):
    lay(path, old=CONTENT)
    assert call(fetch, web, path) is None
    assert web.requests == []


def law_wrong_checksum_never_replaces_a_file(fetch, web, path):
    part = lay(path, old=OLD)
    error = call(fetch, web, path, pinned=b"something else")
    assert isinstance(error, ValueError)
    assert sha256(b"something else") in str(error) and sha256(CONTENT) in str(error)
    assert path.is_file() and path.read_bytes() == OLD
    assert not part.exists() and len(web.requests) == 1


def law_broken_transfer_continues_where_it_stopped(fetch, web, path):
    web.cuts = [70_000, 50_000]
    assert call(fetch, web, path) is None
    assert path.read_bytes() == CONTENT
    assert web.requests == [None, "bytes=70000-", "bytes=120000-"]


def law_silent_server_counts_as_broken(fetch, web, path):
    web.cuts, web.silence = [70_000], 1.5
    began = time.monotonic()
    assert call(fetch, web, path, timeout=0.2) is None
    assert time.monotonic() - began < web.silence
    assert web.requests == [None, "bytes=70000-"]


def law_interrupted_download_continues_in_the_next_call(fetch, web, path):
    part = lay(path, old=OLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", failing_disk(path, KeyboardInterrupt()))
        assert isinstance(call(fetch, web, path), KeyboardInterrupt)
    assert path.read_bytes() == OLD
    assert part.read_bytes() == CONTENT[:1000]
    assert call(fetch, web, path) is None
    assert path.read_bytes() == CONTENT and web.requests == [None, "bytes=1000-"]


def law_disk_error_leaves_the_old_file(fetch, web, path):
    lay(path, old=OLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", failing_disk(path, OSError(errno.ENOSPC, "No space left on device")))
        error = call(fetch, web, path)
    assert isinstance(error, OSError) and error.errno == errno.ENOSPC
    assert path.read_bytes() == OLD and len(web.requests) == 1


def law_server_without_ranges_starts_anew(fetch, web, path):
    web.ranges = False
    lay(path, part=CONTENT[:300])
    assert call(fetch, web, path) is None
    assert path.read_bytes() == CONTENT and web.requests == ["bytes=300-"]


def law_complete_part_is_used(fetch, web, path):
    lay(path, part=CONTENT)
    assert call(fetch, web, path) is None
    assert path.read_bytes() == CONTENT and web.requests == ["bytes=200000-"]


def law_foreign_part_starts_anew_once(fetch, web, path):
    for foreign in (b"of another file", CONTENT + b"too long"):
        web.requests.clear()
        path.unlink(missing_ok=True)
        part = lay(path, part=foreign)
        assert call(fetch, web, path) is None
        assert path.read_bytes() == CONTENT and not part.exists()
        assert web.requests == [f"bytes={len(foreign)}-", None]
        part = lay(path, part=foreign)
        web.requests.clear()
        assert isinstance(call(fetch, web, path, pinned=b"never served"), ValueError)
        assert len(web.requests) == 2 and not part.exists()


def law_hopeless_server_is_given_up(fetch, web, path):
    web.cuts, web.ranges = [1000] * 20, False
    error = call(fetch, web, path)
    assert isinstance(error, ConnectionError) and "broke off after 1,000 of 200,000 bytes" in str(error)
    assert len(web.requests) == 2  # the second brought nothing new
    web.cuts, web.ranges = [1] * 20, True
    web.requests.clear()
    assert isinstance(call(fetch, web, path), ConnectionError)
    assert len(web.requests) == download.ATTEMPTS and not path.exists()


STRAIGHT = 'part = path.with_name(path.name + ".part")', "part = path"
ALWAYS_ANEW = '{"Range": f"bytes={start}-"} if start else {}', "{}"
MUTANTS = [
    (law_download_is_exact, "os.replace(part, path)", "path.write_bytes(part.read_bytes())"),
    (law_download_is_exact, "file.write(chunk)", "file.write(chunk[:-1])"),
    (law_good_file_needs_no_network, "if path.is_file() and file_sha256", "if False and file_sha256"),
    (law_wrong_checksum_never_replaces_a_file, *STRAIGHT),
    (law_wrong_checksum_never_replaces_a_file, "if got != sha256:\n        part", "if False:\n        part"),
    (law_broken_transfer_continues_where_it_stopped, *ALWAYS_ANEW),
    (law_broken_transfer_continues_where_it_stopped, "ATTEMPTS = 5", "ATTEMPTS = 1"),
    (law_silent_server_counts_as_broken, "urlopen(request, timeout=timeout)", "urlopen(request)"),
    (law_interrupted_download_continues_in_the_next_call, *STRAIGHT),
    (law_interrupted_download_continues_in_the_next_call, *ALWAYS_ANEW),
    (law_disk_error_leaves_the_old_file, *STRAIGHT),
    (law_disk_error_leaves_the_old_file, "except ConnectionError:", "except OSError:"),
    (law_server_without_ranges_starts_anew, "start if response.status == 206 else 0", "start"),
    (law_complete_part_is_used, "error.code == 416 and start", "False"),
    (law_foreign_part_starts_anew_once, "if resumed and file_sha256", "if False and file_sha256"),
    (law_hopeless_server_is_given_up, " or _size(part) <= before", ""),
    (law_hopeless_server_is_given_up, "ATTEMPTS = 5", "ATTEMPTS = 50"),
]


@pytest.mark.parametrize("law", dict.fromkeys(law for law, *_ in MUTANTS), ids=lambda law: law.__name__)
def test_fetch_obeys(law, web, path):
    law(download.fetch, web, path)


@pytest.mark.parametrize("law, old, new", MUTANTS)
def test_mutant_breaks(law, old, new, web, path):
    broken = mutant(old, new)
    with pytest.raises(AssertionError):
        law(broken, web, path)


def test_refused_and_absent_are_connection_errors_that_say_why(web, path):
    with pytest.raises(ConnectionError, match="the server answered 404"):
        download.fetch(web.url + "absent.gz", path, sha256(CONTENT))
    assert len(web.requests) == 1
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"no answer \(.*refused"):
        download.fetch(f"http://127.0.0.1:{port}/file.gz", path, sha256(CONTENT))
    assert not path.exists()


def test_download_does_not_depend_on_the_progress_bar(web, path, monkeypatch):
    monkeypatch.setattr(download, "tqdm", functools.partial(tqdm, disable=True))
    law_download_is_exact(download.fetch, web, path)
