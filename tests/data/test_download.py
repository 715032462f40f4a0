"""Laws of the download, on a real HTTP server on loopback; each mutant is our source with a change, or written out."""

import errno
import functools
import gc
import gzip
import hashlib
import random
import socket
import stat
import threading
import time
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from course_lib.data import download

CONTENT = random.Random(0).randbytes(200_000)
OLD = b"an older file, still good"
REAL_OPEN = open
# pooch leaves the connection of a failed transfer to the garbage collector, which `web` calls.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def mutant(old, new):
    """Our `fetch` with one piece of its module's source replaced."""
    source = Path(download.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"expected {old!r} once in the source"
    module = types.ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), module.__dict__)
    return module.fetch


def naive(url, path, sha256, *, timeout):
    """Broken on purpose: writes straight to the file's place whatever comes, even if a good file is there."""
    path.parent.mkdir(exist_ok=True)
    with urlopen(url, timeout=timeout) as response, open(path, "wb") as file:
        for chunk in iter(lambda: response.read1(1 << 16), b""):
            file.write(chunk)
    return path


def stubborn(*args, **kwargs):
    """Broken on purpose: asks a server again that has just failed."""
    for _ in range(5):
        try:
            return download.fetch(*args, **kwargs)
        except ConnectionError:
            pass
    return download.fetch(*args, **kwargs)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        web = self.server
        web.requests.append(self.path)
        content = web.files.get(self.path.removeprefix("/"))
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        if content.startswith(b"\x1f\x8b") and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")  # as some servers do with every .gz file
        self.send_header("Content-Length", str(len(content) + web.lie))
        self.end_headers()
        cut = web.cuts.pop(0) if web.cuts else None  # bytes after which this answer breaks off
        self.wfile.write(content[:cut])
        if cut is not None:
            time.sleep(web.silence)

    def log_message(self, *_):
        pass


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.requests, server.cuts, server.silence = {"file.gz": CONTENT}, [], [], 0.0
    server.lie = 0  # bytes by which the length that it names is too large
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
    gc.collect()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "file.gz"


def call(fetch, web, path, *, pinned=CONTENT, timeout=10.0):
    """Fetch; return the error it ended with, or None."""
    try:
        assert fetch(web.url + "file.gz", path, sha256(pinned), timeout=timeout) == path
    except (Exception, KeyboardInterrupt) as error:
        return error


def lay(path, old):
    """Write what an earlier call has left behind."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(old)


def holds_only(path, content):
    return [entry.name for entry in path.parent.iterdir()] == [path.name] and path.read_bytes() == content


class FailingFile:
    """A file that takes 1,000 bytes of a write and then raises."""

    def __init__(self, file, error):
        self.file, self.error, self.close = file, error, file.close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

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
    assert holds_only(path, CONTENT)


def law_good_file_needs_no_network(fetch, web, path):
    lay(path, CONTENT)
    assert call(fetch, web, path) is None
    assert web.requests == []


def law_damaged_file_is_replaced(fetch, web, path):
    lay(path, CONTENT[:-1])
    assert call(fetch, web, path) is None
    assert holds_only(path, CONTENT)


def law_wrong_checksum_never_replaces_a_file(fetch, web, path):
    lay(path, OLD)
    error = call(fetch, web, path, pinned=b"something else")
    assert isinstance(error, ValueError)
    assert sha256(b"something else") in str(error) and sha256(CONTENT) in str(error)
    assert holds_only(path, OLD) and len(web.requests) == 1


def law_broken_transfer_leaves_the_old_file_and_the_next_call_works(fetch, web, path):
    web.cuts = [70_000]
    lay(path, OLD)
    error = call(fetch, web, path)
    assert isinstance(error, ConnectionError) and "70000 bytes read, 130000 more expected" in str(error)
    assert holds_only(path, OLD)
    assert call(fetch, web, path) is None
    assert holds_only(path, CONTENT)


def law_a_length_that_is_a_lie_never_replaces_a_file(fetch, web, path):
    for web.lie, kind in ((-1000, ValueError), (1000, ConnectionError)):
        lay(path, OLD)
        assert isinstance(call(fetch, web, path), kind)
        assert holds_only(path, OLD)
    web.lie = 0
    assert call(fetch, web, path) is None
    assert holds_only(path, CONTENT)


def law_silent_server_counts_as_broken(fetch, web, path):
    web.cuts, web.silence = [70_000], 1.5
    began = time.monotonic()
    assert isinstance(call(fetch, web, path, timeout=0.2), ConnectionError)
    assert time.monotonic() - began < web.silence
    assert list(path.parent.iterdir()) == []


def law_interrupted_download_leaves_the_old_file_and_the_next_call_works(fetch, web, path):
    lay(path, OLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", failing_disk(path, KeyboardInterrupt()))
        assert isinstance(call(fetch, web, path), KeyboardInterrupt)
    assert holds_only(path, OLD)
    assert call(fetch, web, path) is None
    assert holds_only(path, CONTENT)


def law_disk_error_leaves_the_old_file(fetch, web, path):
    lay(path, OLD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", failing_disk(path, OSError(errno.ENOSPC, "No space left on device")))
        error = call(fetch, web, path)
    assert isinstance(error, OSError) and error.errno == errno.ENOSPC
    assert holds_only(path, OLD) and len(web.requests) == 1


def law_hopeless_server_is_given_up(fetch, web, path):
    web.cuts = [1000] * 20
    assert isinstance(call(fetch, web, path), ConnectionError)
    assert len(web.requests) == 1 and list(path.parent.iterdir()) == []


def law_bytes_arrive_as_they_are(fetch, web, path):
    web.files["file.gz"] = packed = gzip.compress(CONTENT)
    assert call(fetch, web, path, pinned=packed) is None
    assert path.read_bytes() == packed


def law_others_can_read_the_file(fetch, web, path):
    assert call(fetch, web, path) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


UNCHECKED = "pooch.retrieve(url, sha256,", "pooch.retrieve(url, None,"
UNCAUGHT = "except RequestException as error:", "except ZeroDivisionError as error:"
MUTANTS = [
    (law_download_is_exact, "path.name, path.parent", "'other', path.parent"),
    (law_good_file_needs_no_network, naive),
    (law_damaged_file_is_replaced, *UNCHECKED),
    (law_wrong_checksum_never_replaces_a_file, naive),
    (law_wrong_checksum_never_replaces_a_file, *UNCHECKED),
    (law_broken_transfer_leaves_the_old_file_and_the_next_call_works, naive),
    (law_broken_transfer_leaves_the_old_file_and_the_next_call_works, *UNCAUGHT),
    (law_a_length_that_is_a_lie_never_replaces_a_file, naive),
    (law_a_length_that_is_a_lie_never_replaces_a_file, *UNCHECKED),
    (law_silent_server_counts_as_broken, " timeout=timeout,", ""),
    (law_interrupted_download_leaves_the_old_file_and_the_next_call_works, naive),
    (law_disk_error_leaves_the_old_file, naive),
    (law_disk_error_leaves_the_old_file, "except RequestException as error:", "except OSError as error:"),
    (law_hopeless_server_is_given_up, stubborn),
    (law_bytes_arrive_as_they_are, ", headers=as_it_is", ""),
    (law_others_can_read_the_file, "os.chmod(path, 0o644)", "pass"),
]


@pytest.mark.parametrize("law", dict.fromkeys(law for law, *_ in MUTANTS), ids=lambda law: law.__name__)
def test_fetch_obeys(law, web, path):
    law(download.fetch, web, path)


@pytest.mark.parametrize("law, change", [(law, change) for law, *change in MUTANTS])
def test_mutant_breaks(law, change, web, path):
    broken = change[0] if callable(change[0]) else mutant(*change)
    with pytest.raises(AssertionError):
        law(broken, web, path)


def test_refused_and_absent_are_connection_errors_that_say_why(web, path):
    with pytest.raises(ConnectionError, match="the server answered 404"):
        download.fetch(web.url + "absent.gz", path, sha256(CONTENT))
    assert len(web.requests) == 1
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"the transfer failed \(.*refused"):
        download.fetch(f"http://127.0.0.1:{port}/file.gz", path, sha256(CONTENT))
    assert not path.exists()


def test_download_does_not_depend_on_the_progress_bar(web, path, monkeypatch):
    from pooch import downloaders

    monkeypatch.setattr(downloaders, "tqdm", functools.partial(downloaders.tqdm, disable=True))
    law_download_is_exact(download.fetch, web, path)
