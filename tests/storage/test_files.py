"""Replacing a file: whatever happens while the new content is written, the old content is kept."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from course_lib.storage import remove_half_written, replacing


def law_a_failure_keeps_the_old_file(replace, folder):
    for number, failure in enumerate((OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bug"))):
        path = folder / str(number) / "file.bin"
        path.parent.mkdir()
        path.write_bytes(b"old")
        with pytest.raises(type(failure)) as caught, replace(path) as temporary:
            temporary.write_bytes(b"half of the ne")
            raise failure
        assert caught.value is failure
        assert path.read_bytes() == b"old"
        assert [each.name for each in path.parent.iterdir()] == ["file.bin"], "a temporary file is left behind"


def law_a_success_replaces_the_file_at_the_end(replace, folder):
    path = folder / "file.bin"
    for old in (None, b"old"):
        with replace(path) as temporary:
            temporary.write_bytes(b"new")
            assert (path.read_bytes() if path.exists() else None) == old, "half a file can be seen"
        assert path.read_bytes() == b"new"
        assert [each.name for each in folder.iterdir()] == ["file.bin"]
        path.write_bytes(b"old")


def law_two_can_write_at_once(replace, folder):
    """As two threads do; the file is that of whoever ends last, whole."""
    path = folder / "file.bin"
    with replace(path) as first, replace(path) as second:
        assert first != second, "both write to one file"
        first.write_bytes(b"first")
        second.write_bytes(b"second, and longer")
    assert path.read_bytes() == b"first"
    assert [each.name for each in folder.iterdir()] == ["file.bin"]


@contextmanager
def in_place(path):
    yield path


@contextmanager
def without_cleaning(path):
    temporary = path.with_suffix(".tmp")
    yield temporary
    os.replace(temporary, path)


@contextmanager
def replaced_anyway(path):
    temporary = path.with_suffix(".tmp")
    try:
        yield temporary
    finally:
        os.replace(temporary, path)


@contextmanager
def only_errors(path):
    """KeyboardInterrupt is no Exception."""
    temporary = path.with_suffix(".tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except Exception:
        temporary.unlink()
        raise


def test_a_failure_keeps_the_old_file(tmp_path):
    law_a_failure_keeps_the_old_file(replacing, tmp_path)


@pytest.mark.parametrize("wrong", [in_place, without_cleaning, replaced_anyway, only_errors])
def test_careless_writing_breaks_the_law(tmp_path, wrong):
    with pytest.raises(AssertionError):
        law_a_failure_keeps_the_old_file(wrong, tmp_path)


def test_a_success_replaces_the_file_at_the_end(tmp_path):
    law_a_success_replaces_the_file_at_the_end(replacing, tmp_path)


def test_writing_in_place_breaks_the_law(tmp_path):
    with pytest.raises(AssertionError, match="half a file"):
        law_a_success_replaces_the_file_at_the_end(in_place, tmp_path)


def test_two_can_write_at_once(tmp_path):
    law_two_can_write_at_once(replacing, tmp_path)
    with pytest.raises(AssertionError, match="both write to one file"):
        law_two_can_write_at_once(without_cleaning, tmp_path)


def test_a_failure_without_an_old_file_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="bug"), replacing(tmp_path / "new" / "file.bin") as temporary:
        temporary.write_bytes(b"half")
        raise ValueError("bug")
    assert list((tmp_path / "new").iterdir()) == []


def test_folders_are_made_and_text_paths_taken(tmp_path):
    with replacing(str(tmp_path / "a" / "b" / "file.txt")) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a" / "b" / "file.txt").read_text() == "new"


def test_a_block_that_writes_nothing_is_an_error(tmp_path):
    (tmp_path / "file.bin").write_bytes(b"old")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "file.bin"):
        pass
    assert (tmp_path / "file.bin").read_bytes() == b"old"


def test_a_folder_in_the_way_is_an_error_and_stays(tmp_path):
    (tmp_path / "name" / "inside").mkdir(parents=True)
    with pytest.raises(OSError), replacing(tmp_path / "name") as temporary:
        temporary.write_bytes(b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["name"] and (tmp_path / "name" / "inside").is_dir()


def test_the_temporary_file_is_on_the_same_disk_and_of_this_process(tmp_path):
    with replacing(tmp_path / "file.bin") as temporary:
        assert temporary.parent == tmp_path and str(os.getpid()) in temporary.name
        temporary.write_bytes(b"new")


def law_content_is_on_the_disk_before_it_gets_the_name(replace, path, monkeypatch):
    """Else a power cut can leave the new name with no content."""
    calls, fsync, rename = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *args: (calls.append("fsync"), fsync(*args)))
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("replace"), rename(*args)))
    with replace(path) as temporary:
        temporary.write_bytes(b"new")
    assert calls == ["fsync", "replace"]


def test_content_is_on_the_disk_before_it_gets_the_name(tmp_path, monkeypatch):
    law_content_is_on_the_disk_before_it_gets_the_name(replacing, tmp_path / "a", monkeypatch)
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        law_content_is_on_the_disk_before_it_gets_the_name(without_cleaning, tmp_path / "a", monkeypatch)


def test_a_killed_process_leaves_the_old_file(root, tmp_path):
    (tmp_path / "file.bin").write_bytes(b"old")
    code = (
        "import os, sys; from course_lib.storage import replacing\n"
        "with replacing(sys.argv[1]) as temporary: temporary.write_bytes(b'half'); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "file.bin"], cwd=root, timeout=300)
    assert done.returncode == 9 and (tmp_path / "file.bin").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2, "the killed process has written nothing: this shows nothing"
    remove_half_written(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["file.bin"]
