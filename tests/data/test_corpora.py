"""Laws of the corpora, on invented sentences; the real ones are read where COURSE_DATA has them."""

import dataclasses
import functools
import gzip
import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
import types
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from course_lib.data import download, multi30k, tatoeba, tsv
from course_lib.data.clean import clean
from course_lib.data.corpora import NAMES, load_corpus
from course_lib.data.corpus import Corpus, Pair, describe

REAL = Path(os.environ.get("COURSE_DATA") or "not set").absolute()
needs_multi30k = pytest.mark.skipif(
    not (REAL / "multi30k").is_dir(), reason="COURSE_DATA has no multi30k, which is not ours to ship"
)
needs_tatoeba = pytest.mark.skipif(
    not (REAL / "tatoeba").is_dir(), reason="COURSE_DATA has no tatoeba snapshot, which has no address"
)
PARTS = ("train", "valid", "test")


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "account"))
    monkeypatch.delenv("COURSE_DATA", raising=False)


@pytest.fixture
def invented(monkeypatch, tmp_path):
    """A COURSE_DATA folder of six invented Multi30k files, whose checksums are pinned instead."""
    folder = tmp_path / "served" / "multi30k"
    folder.mkdir(parents=True)
    for name in multi30k.SHA256:
        (folder / name).write_bytes(gzip.compress(f" one {name}\u2028more \ntwo\n".encode()))
    pinned = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    monkeypatch.setattr(multi30k, "SHA256", pinned)
    monkeypatch.setenv("COURSE_DATA", str(folder.parent))
    return folder


@pytest.fixture
def served(invented, monkeypatch):
    """The invented files on a server on loopback, and nowhere else."""
    monkeypatch.delenv("COURSE_DATA")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = HTTPServer(("127.0.0.1", 0), functools.partial(SimpleHTTPRequestHandler, directory=invented))
    monkeypatch.setattr(multi30k, "URL", f"http://127.0.0.1:{server.server_port}/")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield invented
    server.shutdown()
    server.server_close()


def write_tsv(tmp_path, content):
    path = tmp_path / "mine.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def many_pairs():
    """300 sources with 1 to 3 translations each, some of them shared by two sources."""
    return [Pair(f"Say {n}{mark}", f"Sag {n // 2} {mark}") for n in range(300) for mark in ".!?"[: 1 + n % 3]]


# --- your own TSV -------------------------------------------------------------------------------


def law_no_source_sentence_is_shared(split):
    parts = split(many_pairs(), num_valid=30, num_test=40, seed=0)
    keys = [{tsv.sentence_key(pair.src) for pair in part} for part in parts]
    assert [len(part_keys) for part_keys in keys] == [230, 30, 40]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert sorted(pair for part in parts for pair in part) == sorted(many_pairs())


def law_split_does_not_depend_on_the_order_of_lines(split):
    pairs = many_pairs()
    ours = split(pairs, num_valid=30, num_test=40, seed=0)
    random.Random(1).shuffle(pairs)
    theirs = split(pairs, num_valid=30, num_test=40, seed=0)
    assert [set(part) for part in ours] == [set(part) for part in theirs]


def law_another_seed_gives_another_split(split):
    one, two = (split(many_pairs(), num_valid=30, num_test=40, seed=seed) for seed in (0, 1))
    assert one == split(many_pairs(), num_valid=30, num_test=40, seed=0)
    assert set(one[2]) != set(two[2])


def split_lines(pairs, *, num_valid, num_test, seed):
    """Broken on purpose: splits lines, not sentences."""
    pairs = random.Random(0).sample(pairs, len(pairs))
    return pairs[num_valid + num_test :], pairs[:num_valid], pairs[num_valid : num_valid + num_test]


SPLIT_LAWS = (
    law_no_source_sentence_is_shared,
    law_split_does_not_depend_on_the_order_of_lines,
    law_another_seed_gives_another_split,
)


@pytest.mark.parametrize("law", SPLIT_LAWS)
def test_split_by_source_obeys_and_a_split_of_lines_breaks(law):
    law(tsv.split_by_source)
    with pytest.raises(AssertionError):
        law(split_lines)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_tsv_file_becomes_a_corpus(tmp_path, compress):
    lines = "".join(f"{src}\t {tgt}\r\n" for src, tgt in many_pairs())
    path = tmp_path / ("mine.tsv" if compress is bytes else "mine.tsv.gz")
    path.write_bytes(compress(b"\xef\xbb\xbf" + lines.encode() + b"\n\n"))
    corpus = load_corpus(path)
    assert corpus.name == "mine" and corpus == load_corpus(str(path))
    assert sorted(corpus.train + corpus.valid + corpus.test) == sorted(many_pairs())
    assert [len({pair.src[:-1] for pair in getattr(corpus, part)}) for part in PARTS] == [270, 15, 15]
    assert len(tsv.load_tsv(path, valid=0, test=0.5).train) > len(tsv.load_tsv(path, valid=0, test=0.6).train)
    assert tsv.load_tsv(path, valid=0).valid == []


@pytest.mark.parametrize(
    "content, message",
    [
        ("a\tb\nc\n", "line 2: expected 2 columns separated by one tab, got 1: 'c'"),
        ("a\tb\tc\n", "line 1: expected 2 columns separated by one tab, got 3: 'a<tab>b<tab>c'"),
        ("a\tb\n\nc\td\n", "line 2: expected 2 columns separated by one tab, got 1: ''"),
        ("a\tb\nc\t \n", "line 2: expected text in both columns, got an empty field"),
        (b"a\tb\nc\t\xfcber\n", r"line 2: expected UTF-8, got b'c\t\xfcber' (invalid start byte)"),
        ("", "got an empty file"),
        (" \n\n", "got an empty file"),
        ("a\tb\nA!\tc\nd\te\n", "too few lines: expected at least 3 different source sentences"),
    ],
)
def test_malformed_tsv_is_refused_with_file_and_line(tmp_path, content, message):
    with pytest.raises(ValueError) as error:
        load_corpus(write_tsv(tmp_path, content))
    assert message in str(error.value).replace("\\\\", "\\") and "mine.tsv" in str(error.value)


def test_bad_shares_damaged_compression_and_absent_files_are_refused(tmp_path):
    path = write_tsv(tmp_path, "a\tb\nc\td\ne\tf\n")
    assert [len(part) for part in dataclasses.astuple(load_corpus(path))[1:4]] == [1, 1, 1]
    with pytest.raises(ValueError, match=r"valid \+ test < 1, got 0.5 and 0.5"):
        tsv.load_tsv(path, valid=0.5, test=0.5)
    with pytest.raises(ValueError, match="got -0.1 and"):
        tsv.load_tsv(path, valid=-0.1)
    for damaged in (b"no gzip", gzip.compress(b"a\tb\n" * 99)[:-9]):
        (tmp_path / "mine.tsv.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mine.tsv.gz: expected a gzip file"):
            load_corpus(tmp_path / "mine.tsv.gz")
    with pytest.raises(FileNotFoundError):
        load_corpus(tmp_path / "absent.tsv")


# --- local copies, Multi30k -----------------------------------------------------------------------


def test_local_copy_in_course_data_is_found_before_the_cache(invented, tmp_path, monkeypatch):
    assert download.find("multi30k", "val.en.gz") == invented / "val.en.gz"
    first = Pair("one val.en.gz\u2028more", "one val.de.gz\u2028more")
    assert load_corpus("multi30k").valid == [first, Pair("two", "two")]
    invented.parent.rename(tmp_path / "cache")
    assert download.find("multi30k", "val.en.gz") == tmp_path / "cache/multi30k/val.en.gz"
    shutil.copytree(tmp_path / "cache", tmp_path / "account/transformer_course")  # a download without `make`
    assert download.find("multi30k", "val.en.gz") == tmp_path / "cache/multi30k/val.en.gz"
    shutil.rmtree(tmp_path / "cache")
    in_account = tmp_path / "account/transformer_course/multi30k/val.en.gz"
    assert download.find("multi30k", "val.en.gz") == in_account
    assert download.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("COURSE_CACHE")
    assert download.find("multi30k", "val.en.gz") == in_account
    assert download.cache_folder() == tmp_path / "account/transformer_course"
    in_account.unlink()
    assert download.find("multi30k", "val.en.gz") is None


def law_damaged_copy_is_refused(read, path):
    good, bad = (hashlib.sha256(content).hexdigest() for content in (b"good", b"bad"))
    path.write_bytes(b"bad")
    try:
        read(path, good)
    except ValueError as error:
        assert all(part in str(error) for part in (str(path), good, bad))
    else:
        raise AssertionError("a damaged copy was read")


def test_damaged_copy_is_refused_naming_file_and_both_checksums(tmp_path, invented):
    law_damaged_copy_is_refused(download.read_verified, tmp_path / "x.gz")
    with pytest.raises(AssertionError):
        law_damaged_copy_is_refused(lambda path, _: path.read_bytes(), tmp_path / "x.gz")
    (invented / "train.de.gz").write_bytes(gzip.compress(b"one\n"))
    for asked in (False, True):
        with pytest.raises(ValueError, match=r"train\.de\.gz is damaged or another version: expected"):
            multi30k.load_multi30k(download=asked)


def test_unequal_line_counts_are_refused():
    with pytest.raises(ValueError, match="expected equally many lines, got 2 English and 1 German"):
        multi30k.zip_lines("one\ntwo\n", "eins\n", split="val")


def law_nothing_is_downloaded_unless_asked_for(load):
    try:
        load()
    except FileNotFoundError:
        assert not download.cache_folder().exists()
    else:
        raise AssertionError("a missing corpus was loaded")


def test_nothing_is_downloaded_unless_asked_for(served):
    law_nothing_is_downloaded_unless_asked_for(lambda: load_corpus("multi30k"))
    with pytest.raises(AssertionError):
        law_nothing_is_downloaded_unless_asked_for(lambda: load_corpus("multi30k", download=True))


def test_download_fills_the_cache_and_repairs_it(served):
    corpus = load_corpus("multi30k", download=True)
    assert corpus.test[0].src == "one test_2016_flickr.en.gz\u2028more" and corpus == load_corpus("multi30k")
    (download.cache_folder() / "multi30k/val.de.gz").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"val\.de\.gz is damaged"):
        load_corpus("multi30k")
    assert load_corpus("multi30k", download=True) == corpus


# --- Tatoeba --------------------------------------------------------------------------------------


def law_no_two_parts_share_a_sentence_of_either_language(split):
    parts = split(many_pairs(), num_held_out=20)
    for side in (0, 1):
        train, valid, test = ({tsv.sentence_key(pair[side]) for pair in part} for part in parts)
        assert not train & valid and not train & test and not valid & test
    assert len(parts[0]) > 300


def law_held_out_sentences_keep_all_their_translations(split):
    pairs = many_pairs()
    _, valid, test = split(pairs, num_held_out=20)
    held_out = {tsv.sentence_key(pair.src) for pair in test}
    assert len(held_out) == 20
    assert set(test) == {pair for pair in pairs if tsv.sentence_key(pair.src) in held_out}
    assert len(test) > 20 and 15 < len({tsv.sentence_key(pair.src) for pair in valid}) <= 20
    found = [tsv.sentence_key(pair.src) for pair in test]
    assert sum(here != there for here, there in zip(found, found[1:], strict=False)) == 19  # side by side


def law_held_out_does_not_depend_on_the_order_of_lines(split):
    pairs = many_pairs()
    ours = split(pairs, num_held_out=20)
    random.Random(1).shuffle(pairs)
    assert split(pairs, num_held_out=20)[1:] == ours[1:]


def split_english_only(pairs, *, num_held_out):
    """Broken on purpose: looks at one language, and takes held-out pairs in the order of the lines."""
    return tsv.split_by_source(pairs, num_valid=num_held_out, num_test=num_held_out, seed=0)


def split_one_translation(pairs, *, num_held_out):
    """Broken on purpose: forgets the other translations of a held-out sentence."""
    parts = tatoeba.split_everyday(pairs, num_held_out=num_held_out)
    return [list({tsv.sentence_key(pair.src): pair for pair in part}.values()) for part in parts]


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (law_no_two_parts_share_a_sentence_of_either_language, split_english_only),
        (law_held_out_sentences_keep_all_their_translations, split_one_translation),
        (law_held_out_does_not_depend_on_the_order_of_lines, split_english_only),
    ],
)
def test_everyday_split_obeys_and_a_broken_variant_does_not(law, wrong):
    law(tatoeba.split_everyday)
    with pytest.raises(AssertionError):
        law(wrong)


# --- all of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, second_way",
    [("multi30k", "python -m course_lib data multi30k"), ("tatoeba", 'load_corpus("deu.tsv")')],
)
def test_missing_corpus_says_both_ways_out(name, second_way, monkeypatch, tmp_path):
    with pytest.raises(download.CorpusNotFoundError) as unset:
        load_corpus(name)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "wrong"))
    with pytest.raises(download.CorpusNotFoundError) as wrong:
        load_corpus(name)
    assert "it is now not set" in str(unset.value) and f"it is now {tmp_path / 'wrong'}" in str(wrong.value)
    for expected in (f"{name}/", "COURSE_DATA", second_way, "Every lesson also runs on the course corpus"):
        assert expected in str(unset.value)


def test_failed_download_says_both_ways_out_and_why(served, monkeypatch):
    (served / "train.de.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"(?s)COURSE_DATA.*failed: .*answered 404.*course corpus"):
        load_corpus("multi30k", download=True)


def test_load_corpus_knows_its_names(monkeypatch, tmp_path):
    course = types.SimpleNamespace(load_course=lambda: "the course corpus")
    monkeypatch.setitem(sys.modules, "course_lib.data.course", course)
    assert load_corpus("course") == "the course corpus"
    choices = "expected one of course, multi30k, tatoeba, or a path ending in .tsv or .tsv.gz, got 'multi3k'"
    with pytest.raises(ValueError, match=choices):
        load_corpus("multi3k")
    assert all(name in choices for name in NAMES)


def test_describe_gives_sizes_lengths_and_license():
    pairs = [Pair("a b c", "d e"), Pair("f", "g h i")]
    lines = describe(Corpus("mine", pairs * 1000, pairs[:1], [], "CC0")).splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["train", "2,000", "2.0", "2.5"],
        ["valid", "1", "3.0", "2.0"],
        ["test", "0", "-", "-"],
        ["license:", "CC0"],
    ]
    assert "license" not in describe(types.SimpleNamespace(name="x", train=pairs, valid=[], test=[]))


def law_import_does_no_work(more=""):
    """Import in a fresh process that ends at any connection, look-up of a host, or compressed file."""
    code = (
        "import sys\n"
        "def refuse(event, args):\n"
        "    connects = event in ('socket.connect', 'socket.getaddrinfo')\n"
        "    if connects or event == 'open' and str(args[0]).endswith('.gz'):\n"
        "        raise SystemExit(event)\n"
        "sys.addaudithook(refuse)\n"
        "import course_lib.data, course_lib.data.multi30k, course_lib.data.tatoeba, course_lib.data.tsv\n"
        f"{more}\n"
        "assert not {'torch', 'pooch', 'requests', 'course_lib.data.course'} & set(sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_import_does_no_work():
    law_import_does_no_work()
    connect = "import socket\ntry: socket.create_connection(('127.0.0.1', 9))\nexcept OSError: pass"
    opens = "try: open('absent.gz')\nexcept OSError: pass"
    for work in (connect, opens, "sys.modules['torch'] = None", "import pooch"):
        with pytest.raises(AssertionError):
            law_import_does_no_work(work)


@needs_multi30k
def test_real_multi30k_has_its_published_sizes(monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(REAL))
    corpus = load_corpus("multi30k")
    assert [len(getattr(corpus, part)) for part in PARTS] == [29_000, 1_014, 1_000]
    texts = [text for part in PARTS for pair in getattr(corpus, part) for text in pair]
    assert all(text and text == text.strip() for text in texts)
    assert corpus.license.startswith("for research and education only")


@needs_tatoeba
def test_real_tatoeba_obeys_the_laws_of_its_split(monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(REAL))
    corpus = load_corpus("tatoeba")
    assert [len(getattr(corpus, part)) for part in PARTS] == [159_616, 2_471, 2_524]
    assert len({tsv.sentence_key(pair.src) for pair in corpus.test}) == 2_000
    for side in (0, 1):
        train, valid, test = ({tsv.sentence_key(pair[side]) for pair in getattr(corpus, part)} for part in PARTS)
        assert not train & valid and not train & test and not valid & test
    assert clean(corpus.train + corpus.valid + corpus.test)[1] == {}
    assert "CC BY 2.0 FR" in corpus.license and tatoeba.ATTRIBUTION in corpus.license
