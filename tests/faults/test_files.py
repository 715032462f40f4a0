"""Damaged, foreign and malicious files: each is refused by name, none is run, and none is waited for."""

import gzip
import json
import os
import pickle
import random
import shutil
from unittest import mock

import pytest
import torch
from safetensors.torch import save_file

from course_lib.config import ModelConfig
from course_lib.data import load_corpus
from course_lib.data.download import read_verified
from course_lib.experiments.record import new_record, read_record, write_record
from course_lib.storage import checkpoint, load_tensors, save_tensors
from course_lib.storage.checkpoint import FORMAT, SCALE
from course_lib.tokenizer import Tokenizer
from course_lib.translator import Translator
from tests.helpers.corpora import toy_pairs
from tests.helpers.faults import at_most
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import toy_translator


def flips(content, number=None, seed=0):
    """The content with one bit flipped: each, or so many drawn ones."""
    places = range(8 * len(content))
    for place in places if number is None else random.Random(seed).sample(places, number):
        byte, bit = divmod(place, 8)
        yield content[:byte] + bytes([content[byte] ^ 1 << bit]) + content[byte + 1 :]


def cuts(content, number=40):
    """The beginning of the content, in many lengths."""
    return (content[: length * len(content) // number] for length in range(number))


def law_damage_is_refused(load, path, damaged, *, unnoticed=0.0):
    """Each damage is a ValueError that names the file; but for a share of those that leave a file of its kind."""
    whole, taken, count = path.read_bytes(), 0, 0
    for content in damaged:
        path.write_bytes(content)
        count += 1
        try:
            with at_most(20):
                load()
        except ValueError as error:
            assert path.name in str(error) or path.parent.name in str(error), f"not named in: {error}"
        except BaseException as error:  # a panic of a library in Rust is no Exception
            raise AssertionError(f"{type(error).__name__} instead of ValueError: {error}") from error
        else:
            taken += 1
    path.write_bytes(whole)
    load()
    assert taken <= unnoticed * count, f"{taken} of {count} damaged files are taken"


# --- checkpoints, translators -------------------------------------------------------------------


def checkpoint_file(folder):
    tensors = {"a": torch.arange(3.0), "b": torch.tensor(True)}
    save_tensors(folder / "a.safetensors", tensors | {"c": tensors["a"]}, {"step": 7})
    return folder / "a.safetensors"


def without_checksum(path):
    with mock.patch.object(checkpoint, "_check_unchanged", lambda *_: None):
        return load_tensors(path)


def test_every_flipped_bit_of_a_checkpoint_is_seen(tmp_path):
    path = checkpoint_file(tmp_path)
    content = path.read_bytes()
    law_damage_is_refused(lambda: load_tensors(path), path, [*cuts(content), *flips(content)])
    with pytest.raises(AssertionError, match="damaged files are taken"):
        law_damage_is_refused(lambda: without_checksum(path), path, flips(content, 300))


def test_a_checkpoint_of_the_first_edition_has_no_checksum(tmp_path):
    metadata = {"format": FORMAT, "info": '{"x": 1}', "aliases": "{}"}
    save_file({"a": torch.ones(2)}, tmp_path / "a", metadata=metadata)
    assert load_tensors(tmp_path / "a")[1] == {"x": 1}


@pytest.fixture
def folder(tmp_path):
    toy_translator().save_pretrained(tmp_path / "translator")
    return tmp_path / "translator"


FILES = ("config.json", "tokenizer.json", "model.safetensors")


@pytest.mark.parametrize("name", FILES)
def test_every_damage_of_a_translator_is_seen(name, folder):
    path = folder / name
    content = path.read_bytes()
    damaged = [*cuts(content), *flips(content, 150)]
    law_damage_is_refused(lambda: Translator.from_pretrained(folder), path, damaged)
    if name != "model.safetensors":
        unhashed = patched(Translator.from_pretrained, mock.patch("course_lib.translator.check_files"))
        with pytest.raises(AssertionError, match="damaged files are taken|not named in"):
            law_damage_is_refused(lambda: unhashed(folder), path, flips(content, 150))


def test_the_tokenizer_of_another_translator_of_the_same_size_is_refused(folder):
    path = folder / "tokenizer.json"
    parts = json.loads(path.read_text(encoding="utf-8"))
    vocab = parts["model"]["vocab"]
    vocab["▁dog"], vocab["▁cat"] = vocab["▁cat"], vocab["▁dog"]
    path.write_text(json.dumps(parts), encoding="utf-8")
    error = raised(ValueError, lambda: Translator.from_pretrained(folder))
    assert "tokenizer.json is damaged, or not what was saved with the weights" in str(error)


def test_a_damaged_tokenizer_is_refused_or_still_one(tmp_path):
    path = tmp_path / "tokenizer.json"
    toy_translator().tokenizer.save(path)

    def load():
        try:
            Tokenizer.load(path).encode("a dog")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    content = path.read_bytes()
    law_damage_is_refused(load, path, cuts(content))
    law_damage_is_refused(load, path, flips(content, 400), unnoticed=0.9)


# --- corpora, records ---------------------------------------------------------------------------


def test_every_flipped_bit_of_a_pinned_corpus_is_seen(tmp_path):
    import hashlib

    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a dog\tein Hund\n" * 5))
    content, pinned = path.read_bytes(), hashlib.sha256(path.read_bytes()).hexdigest()
    tells_apart(
        lambda read: law_damage_is_refused(lambda: read(path, pinned), path, [*cuts(content), *flips(content)]),
        read_verified,
        lambda path, _: path.read_bytes(),
    )


def test_a_damaged_own_corpus_is_refused_or_still_one(tmp_path):
    text = "".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs()[:40]).encode()
    for path, content in ((tmp_path / "a.tsv", text), (tmp_path / "a.tsv.gz", gzip.compress(text, mtime=0))):
        path.write_bytes(content)
        damaged = [*flips(content, 300), *cuts(content)]
        law_damage_is_refused(lambda path=path: load_corpus(path), path, damaged, unnoticed=0.95)
    with pytest.raises(AssertionError, match="instead of ValueError"):
        law_damage_is_refused(lambda: gzip.decompress(path.read_bytes()), path, cuts(content))


def test_a_damaged_record_is_refused_or_still_one(tmp_path):
    path, run = tmp_path / "record.json", {"side": "a", "stage": "final", "seed": 0, "choices": {}, "results": {"x": 1}}
    run |= dict.fromkeys(("seconds", "cpu_seconds"), 1.0) | dict.fromkeys(("date", "commit", "machine"), "x")
    write_record(path, new_record("x", "y") | {"runs": [run, run | {"seed": 1}]})
    content = path.read_bytes().rstrip()
    law_damage_is_refused(lambda: read_record(path), path, cuts(content))
    law_damage_is_refused(lambda: read_record(path), path, flips(content, 400), unnoticed=0.8)
    path.write_text(json.dumps(new_record("x", "y") | {"runs": [{"side": "a"}]}))
    assert "not the record of an experiment" in str(raised(ValueError, lambda: read_record(path)))


# --- malice -------------------------------------------------------------------------------------


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def law_nothing_is_unpickled(load, path, exploded):
    for dump in (lambda bomb: path.write_bytes(pickle.dumps(bomb)), lambda bomb: torch.save(bomb, path)):
        dump(Bomb(exploded))
        error = raised(ValueError, load)
        assert not exploded.exists(), "the file was run"
        assert error and path.name in str(error)


@pytest.mark.parametrize("name", FILES)
def test_a_pickle_is_refused_and_not_run(name, folder, tmp_path):
    law_nothing_is_unpickled(lambda: Translator.from_pretrained(folder), folder / name, tmp_path / "exploded")


def test_a_reader_that_unpickles_is_caught(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(AssertionError, match="the file was run"):
        law_nothing_is_unpickled(lambda: pickle.loads(path.read_bytes()), path, tmp_path / "exploded")


DEEP = '{"a": ' * 100_000
HUGE = ModelConfig(vocab_size=100_000, d_model=65_536, num_heads=1, num_layers=1000, d_ff=1_000_000).to_dict()
CONFIGS = {
    "deep": DEEP,
    "many layers": json.dumps(HUGE | {"num_layers": 10**9}),
    "more memory than there is": json.dumps(HUGE),
    "no numbers": json.dumps(HUGE | {"dropout": "0.1"}),
    "NaN": json.dumps(HUGE | {"dropout": float("nan")}),
    "long number": '{"vocab_size": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_malicious_configuration_is_refused_at_once(name, folder):
    (folder / "config.json").write_text(CONFIGS[name], encoding="utf-8")
    with at_most(5):
        error = raised(ValueError, lambda: Translator.from_pretrained(folder))
    assert str(folder) in str(error)


def test_a_malicious_tokenizer_is_refused(folder):
    for content in (DEEP, '{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}'):
        (folder / "tokenizer.json").write_text(content, encoding="utf-8")
        assert "tokenizer.json" in str(raised(ValueError, lambda: Translator.from_pretrained(folder)))


HEADERS = {
    "a scale without its matrix": ({"a" + SCALE: torch.ones(2)}, "{}", "{}"),
    "a scale of another shape": ({"a": torch.ones(2, 3), "a" + SCALE: torch.ones(5)}, "{}", "{}"),
    "an alias of nothing": ({"a": torch.ones(2)}, "{}", '{"b": "c"}'),
    "aliases that are none": ({"a": torch.ones(2)}, "{}", "[1]"),
    "values that are none": ({"a": torch.ones(2)}, "[[1]]", "{}"),
    "deep values": ({"a": torch.ones(2)}, DEEP, "{}"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_malicious_checkpoint_is_refused(name, tmp_path):
    tensors, info, aliases = HEADERS[name]
    path = tmp_path / "a.safetensors"
    save_file(tensors, path, metadata={"format": FORMAT, "info": info, "aliases": aliases})
    assert str(path) in str(raised(ValueError, lambda: load_tensors(path)))


def test_a_header_that_lies_about_its_length_is_refused(tmp_path):
    path = checkpoint_file(tmp_path)
    content = path.read_bytes()
    for length in (0, 1, 2**31, 2**63 - 1, 2**64 - 1):
        path.write_bytes(length.to_bytes(8, "little") + content[8:])
        assert str(path) in str(raised(ValueError, lambda: load_tensors(path)))


# --- what has no end ----------------------------------------------------------------------------


def endless(path):
    """A pipe into which nobody writes, and a device that never ends."""
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        path.unlink(missing_ok=True)
        make(path)
        yield path


def law_nothing_is_waited_for(load, path):
    for each in endless(path):
        with at_most(3):
            error = raised(OSError, load)
        assert isinstance(error, FileNotFoundError) and each.name in str(error)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_nothing_is_waited_for(folder, tmp_path):
    for name in FILES:
        other = shutil.copytree(folder, tmp_path / name)
        law_nothing_is_waited_for(lambda other=other: Translator.from_pretrained(other), other / name)
    for load, name in ((Tokenizer.load, "tokenizer.json"), (load_corpus, "a.tsv"), (read_record, "record.json")):
        law_nothing_is_waited_for(lambda load=load, name=name: load(tmp_path / f"x-{name}"), tmp_path / f"x-{name}")
    law_nothing_is_waited_for(lambda: load_tensors(tmp_path / "a.safetensors"), tmp_path / "a.safetensors")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_reader_that_waits_is_caught(tmp_path):
    from tests.helpers.faults import Hangs

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Hangs), at_most(1):
        (tmp_path / "pipe").read_bytes()
