"""A translator on disk: what is saved is what is loaded, and damage is named, never guessed around."""

import json
import shutil
from functools import partial
from unittest import mock

import pytest
import torch
from safetensors.torch import save_file

from course_lib import translator as translator_module
from course_lib.data.batches import BucketedBatches, encode_pairs
from course_lib.storage import load_tensors, load_weights, save_tensors
from course_lib.tokenizer import Tokenizer
from course_lib.training.config import TrainConfig
from course_lib.training.loop import fit
from course_lib.translator import Translator, saved_steps
from tests.helpers.corpora import TEXTS, toy_pairs
from tests.helpers.laws import raised
from tests.helpers.tiny import toy_translator
from tests.helpers.training import weights_of

FILES = ["config.json", "model.safetensors", "tokenizer.json"]


def texts_of(translator):
    return [translation.text for translation in translator.translate_batch(TEXTS)]


def loaded_translates_as_saved(load, folder):
    """All of it: other sizes than the defaults, both norm orders, tied weights or not."""
    for number, changes in enumerate([dict(norm_first=True), dict(tie_weights=True), dict(position="learned")]):
        translator = toy_translator(number, **changes)
        translator.save_pretrained(folder / str(number))
        found = load(folder / str(number))
        assert found.model.config == translator.model.config and not found.model.training
        for ours, theirs in zip(found.translate_batch(TEXTS), translator.translate_batch(TEXTS), strict=True):
            assert (ours.text, ours.score) == (theirs.text, theirs.score)
        assert sorted(path.name for path in (folder / str(number)).iterdir()) == FILES


def without_weights(folder):
    with mock.patch.object(translator_module, "load_weights", lambda model, tensors: None):
        return Translator.from_pretrained(folder)


def test_a_loaded_translator_translates_as_the_saved_one(tmp_path):
    loaded_translates_as_saved(Translator.from_pretrained, tmp_path / "ours")
    with pytest.raises(AssertionError):
        loaded_translates_as_saved(without_weights, tmp_path / "mutant")


def test_float16_halves_the_file_and_keeps_the_translations(tmp_path):
    translator = toy_translator()
    translator.save_pretrained(tmp_path / "full")
    translator.save_pretrained(tmp_path / "half", dtype=torch.float16)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half")]
    assert 0.4 < sizes[1] / sizes[0] < 0.65  # the header, with the names, stays
    half = Translator.from_pretrained(tmp_path / "half")
    assert {tensor.dtype for tensor in half.model.state_dict().values()} == {torch.float32}
    equal = [ours == theirs for ours, theirs in zip(texts_of(half), texts_of(translator), strict=True)]
    assert sum(equal) >= 0.8 * len(equal)
    assert {tensor.dtype for tensor in weights_of(translator.model).values()} == {torch.float32}, "ours were touched"


def no_pickle_is_written(save, folder):
    save(toy_translator(), folder)
    for path in folder.iterdir():
        start = path.read_bytes()[:9]  # JSON opens with a brace, safetensors with 8 bytes of length and a brace
        assert start[:1] == b"{" or start[8:] == b"{", f"{path.name} is neither JSON nor safetensors"


def with_torch_save(translator, folder):
    folder.mkdir()
    torch.save(translator.model.state_dict(), folder / "model.safetensors")


def test_no_pickle_is_written_or_read(tmp_path, monkeypatch):
    no_pickle_is_written(Translator.save_pretrained, tmp_path / "ours")
    with pytest.raises(AssertionError):
        no_pickle_is_written(with_torch_save, tmp_path / "mutant")
    monkeypatch.setattr("pickle.Unpickler", None)
    monkeypatch.setattr(torch, "load", None)
    assert texts_of(Translator.from_pretrained(tmp_path / "ours")) == texts_of(toy_translator())


# --- saving over an old one ---------------------------------------------------------------------


def test_an_existing_folder_is_replaced(tmp_path):
    toy_translator(0).save_pretrained(tmp_path)
    (tmp_path / "log.json").write_text("{}")
    other = toy_translator(1, d_ff=24)
    other.save_pretrained(tmp_path)
    assert texts_of(Translator.from_pretrained(tmp_path)) == texts_of(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "log.json"])


def an_interrupted_save_keeps_the_old_translator(save, folder):
    old, new = toy_translator(0), toy_translator(1, d_ff=24)
    old.save_pretrained(folder)
    expected = texts_of(old)

    def fails(*args, **options):
        raise KeyboardInterrupt

    def half_written(tensors, path, metadata):
        path.write_bytes(b"half of it")
        raise OSError("No space left on device")

    for patch in (
        mock.patch("course_lib.storage.checkpoint.save_file", half_written),
        mock.patch("course_lib.storage.checkpoint.save_file", fails),
        mock.patch.object(Tokenizer, "save", fails),
        mock.patch.object(translator_module, "save_tensors", fails),
    ):
        with patch:
            assert raised(BaseException, partial(save, new, folder))
        assert sorted(path.name for path in folder.iterdir()) == FILES, "half-written files stay"
        loaded = raised(ValueError, lambda: Translator.from_pretrained(folder))
        assert loaded is None, loaded
        assert texts_of(Translator.from_pretrained(folder)) == expected


def one_after_the_other(translator, folder):
    (folder / "config.json").write_text(json.dumps(translator.model.config.to_dict()))
    translator.tokenizer.save(folder / "tokenizer.json")
    translator_module.save_tensors(folder / "model.safetensors", translator.model.state_dict(), {})


def test_an_interrupted_save_keeps_the_old_translator(tmp_path):
    an_interrupted_save_keeps_the_old_translator(Translator.save_pretrained, tmp_path / "ours")
    with pytest.raises(AssertionError):
        an_interrupted_save_keeps_the_old_translator(one_after_the_other, tmp_path / "mutant")


# --- damage -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    toy_translator().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "translator")


def refused(folder, *parts):
    error = raised(ValueError, lambda: Translator.from_pretrained(folder))
    assert error is not None, "loaded all the same"
    for part in parts:
        assert part in str(error), str(error)


def test_an_unknown_translator_is_told_which_there_are(tmp_path):
    for name in ("german", tmp_path / "german", str(tmp_path / "german")):
        error = raised(FileNotFoundError, partial(Translator.from_pretrained, name))
        assert str(error) == f"no translator at {name}: expected everyday, course, or the folder of another"
    for name in (None, 7):
        error = raised(ValueError, partial(Translator.from_pretrained, name))
        assert str(error) == f"expected the name of a translator, or its folder, got {name!r}"


def test_an_unknown_step_is_told_which_there_are(folder):
    kept = ", ".join(map(str, saved_steps("course")))
    for step in (99, 100.5, "100", -1):
        error = raised(ValueError, partial(Translator.from_pretrained, "course", step=step))
        assert str(error).endswith(f"course has the weights after step {kept}, got {step!r}")
    error = raised(ValueError, lambda: Translator.from_pretrained(folder, step=100))
    assert str(error) == f"{folder} has the weights of no step before the last, got 100"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(name, folder):
    (folder / name).unlink()
    error = raised(FileNotFoundError, lambda: Translator.from_pretrained(folder))
    assert str(folder / name) in str(error)


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "text",
    ["", "{", "3", "null", "\udc80", "[1, 2]", '{"vocab_size": 80}'],
)
def test_a_damaged_configuration_is_named(text, folder):
    (folder / "config.json").write_text(text, errors="surrogateescape")
    refused(folder, str(folder / "config.json"))


def test_a_foreign_configuration_is_refused(folder):
    change(folder, nhead=2)
    refused(folder, "unknown ['nhead']", str(folder / "config.json"))


@pytest.mark.parametrize("value", ["16", None, 16.0])
def test_a_value_of_the_wrong_type_is_refused(value, folder):
    change(folder, d_model=value)
    refused(folder, str(folder / "config.json"))


def test_a_configuration_of_another_model_is_refused(folder):
    change(folder, d_ff=24)
    refused(folder, "these weights belong to another model", "expected (16, 24), got (16, 32)")


@pytest.mark.parametrize("content", [b"", b"{", b'{"model": {}}', b"[]", b"\x80\x81"])
def test_a_damaged_tokenizer_is_named(content, folder):
    (folder / "tokenizer.json").write_bytes(content)
    refused(folder, "tokenizer.json")


def test_the_tokenizer_of_another_model_is_refused(folder):
    Tokenizer.train(["some other words, and fewer"], 40).save(folder / "tokenizer.json")
    refused(folder, "tokenizer.json is damaged, or not what was saved with the weights")
    weights, _ = load_tensors(folder / "model.safetensors")
    save_tensors(folder / "model.safetensors", weights, {})  # as those of the first edition, which know no other file
    refused(folder, "the model has 80 subwords")


WEIGHTS = {
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-10]), "damaged"),
    "empty": (lambda path: path.write_bytes(b""), "damaged"),
    "another program's": (lambda path: save_file({"x": torch.zeros(2)}, path), "not from this course"),
    "another model's": (lambda path: save_tensors(path, {"x": torch.zeros(2)}, {}), "belong to another model"),
}


@pytest.mark.parametrize("damage", WEIGHTS)
def test_damaged_weights_are_named(damage, folder):
    spoil, message = WEIGHTS[damage]
    spoil(folder / "model.safetensors")
    refused(folder, message)


def test_a_training_state_is_no_translator(folder):
    translator = toy_translator()
    batches = BucketedBatches(encode_pairs(translator.tokenizer, toy_pairs()[:4]), 64)
    fit(translator.model, batches, TrainConfig(epochs=1), folder=folder, progress=False)
    (folder / "last.safetensors").replace(folder / "model.safetensors")
    refused(folder, "belong to another model")


def all_or_none_is_copied(load, folder):
    model = toy_translator().model
    before = weights_of(model)
    partial_weights = {name: tensor * 0 for name, tensor in before.items() if "encoder" in name}
    assert raised(ValueError, lambda: load(model, partial_weights))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def not_strict(model, tensors):
    model.load_state_dict(tensors, strict=False)
    raise ValueError("too late")


def test_weights_of_another_model_change_nothing(tmp_path):
    all_or_none_is_copied(load_weights, tmp_path)
    with pytest.raises(AssertionError):
        all_or_none_is_copied(not_strict, tmp_path)
