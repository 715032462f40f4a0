"""Checkpoints: what is written is read, nothing else is, and a failed write costs nothing."""

import errno
import json
import subprocess
import sys

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from course_lib.config import ModelConfig
from course_lib.storage import average_checkpoints, checkpoint, load_tensors, load_weights, save_tensors
from course_lib.storage.checkpoint import FORMAT
from course_lib.transformer import Transformer
from tests.helpers.laws import tells_apart

CONFIG = ModelConfig(vocab_size=40, d_model=8, num_heads=2, num_layers=1, d_ff=12, max_len=6)
INFO = {"step": 3, "losses": [1.5, 2e-9], "name": "Größe", "nothing": None, "nested": {"a": [True]}}


def same(ours, theirs):
    """Equal names, and bit for bit equal tensors of equal dtype and shape."""
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), name


# --- round trip ---------------------------------------------------------------------------------


def test_tensors_and_values_come_back(tmp_path):
    tensors = {
        "float": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
        "double": torch.tensor([1 / 3], dtype=torch.float64),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "ids": torch.arange(5),
        "random state": torch.get_rng_state(),
        "flag": torch.tensor([True, False]),
        "scalar": torch.tensor(7.0),
        "empty": torch.empty(0, 3),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
        "a row": torch.arange(12.0).reshape(3, 4)[1],
    }
    save_tensors(tmp_path / "a.safetensors", tensors, INFO)
    again, info = load_tensors(tmp_path / "a.safetensors")
    same(again, tensors)
    assert info == INFO


def law_int8_is_near(save, folder):
    """Within half a step of each row's own scale, in a quarter of the room; vectors in half precision."""
    torch.manual_seed(0)
    rows = torch.randn(64, 100) * torch.logspace(-4, 3, 64)[:, None]
    rows[3] = 0
    tensors = {"rows": rows, "same": rows, "bias": torch.randn(5)}
    save(folder / "a.safetensors", tensors, INFO, dtype=torch.int8)
    again, info = load_tensors(folder / "a.safetensors")
    assert again.keys() == tensors.keys() and info == INFO
    assert torch.equal(again["rows"], again["same"]) and torch.equal(again["bias"], tensors["bias"].half())
    steps = rows.abs().amax(dim=1, keepdim=True) / 127
    assert ((again["rows"] - rows).abs() <= 0.51 * steps).all()
    assert (folder / "a.safetensors").stat().st_size < rows.numel() + 64 * 4 + 1000


def one_scale_for_all(path, tensors, info, *, dtype):
    scale = max(tensor.abs().max() for tensor in tensors.values()) / 127
    rounded = {name: (tensor / scale).round() * scale for name, tensor in tensors.items()}
    save_tensors(path, rounded | {"same": rounded["rows"]}, info, dtype=dtype)


def test_int8_is_near(tmp_path):
    tells_apart(
        lambda save: law_int8_is_near(save, tmp_path),
        save_tensors,
        one_scale_for_all,
        lambda path, tensors, info, dtype: save_tensors(path, tensors, info, dtype=torch.float16),
    )


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back(tmp_path, tied):
    torch.manual_seed(0)
    model, other = (Transformer(ModelConfig(**CONFIG.to_dict() | {"tie_weights": tied})) for _ in range(2))
    save_tensors(tmp_path / "model.safetensors", model.state_dict(), CONFIG.to_dict())
    tensors, info = load_tensors(tmp_path / "model.safetensors")
    load_weights(other, tensors)
    same(other.state_dict(), model.state_dict())
    assert ModelConfig.from_dict(info) == CONFIG
    assert (other.generator.weight is other.src_embedding.table.weight) == tied


def test_tied_weights_are_stored_once(tmp_path):
    weight = torch.randn(100, 100)
    save_tensors(tmp_path / "one", {"a": weight}, {})
    save_tensors(tmp_path / "tied", {"a": weight, "b": weight, "c": weight}, {})
    save_tensors(tmp_path / "untied", {"a": weight, "b": weight.clone(), "c": weight.clone()}, {})
    size = {name: (tmp_path / name).stat().st_size for name in ("one", "tied", "untied")}
    assert size["tied"] < size["one"] + 1000 and size["untied"] > 2.9 * size["one"]
    for name in ("tied", "untied"):
        same(load_tensors(tmp_path / name)[0], {"a": weight, "b": weight, "c": weight})


def test_weights_can_be_stored_in_half(tmp_path):
    weight = torch.randn(4, 4)
    save_tensors(tmp_path / "a", {"a": weight, "b": weight}, {}, dtype=torch.bfloat16)
    same(load_tensors(tmp_path / "a")[0], dict.fromkeys("ab", weight.bfloat16()))


def test_there_is_no_pickle_inside(tmp_path):
    save_tensors(tmp_path / "a", {"a": torch.zeros(2)}, {"x": 1})
    content = (tmp_path / "a").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["__metadata__"]["format"] == FORMAT and json.loads(header["__metadata__"]["info"]) == {"x": 1}


# --- damaged and foreign files ------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"no checkpoint at {path}"):
            load_tensors(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"{}", b"a text that is longer than any header", b"\xff" * 100])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.safetensors is (damaged or no safetensors file|not from this course)"):
        load_tensors(tmp_path / "a.safetensors")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": FORMAT + "0"}, {"info": "{}"}])
def test_a_foreign_safetensors_file_is_refused(tmp_path, metadata):
    save_file({"a": torch.zeros(2)}, tmp_path / "a.safetensors", metadata=metadata)
    with pytest.raises(ValueError, match=f"a.safetensors is not from this course: expected format '{FORMAT}', got"):
        load_tensors(tmp_path / "a.safetensors")


def law_damage_gives_no_error_but_value_error(load, folder, damaged):
    """Every damage is refused with a ValueError that names the file, or (a digit of a number) goes unnoticed."""
    path, refused = folder / "damaged.safetensors", 0
    for content in damaged:
        path.write_bytes(content)
        try:
            load(path)
        except ValueError as error:
            assert path.name in str(error), f"not named in: {error}"
            refused += 1
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of ValueError: {error}") from error
    return refused


def small_file(folder):
    save_tensors(folder / "a.safetensors", {"a": torch.arange(4.0)}, {"x": 1})
    return (folder / "a.safetensors").read_bytes()


def flipped(content):
    """The file with one bit of its header flipped, for each bit."""
    for place in range(8 + int.from_bytes(content[:8], "little")):
        for bit in range(8):
            yield content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def test_a_truncated_file_is_refused(tmp_path):
    content = small_file(tmp_path)
    cut = [content[:length] for length in range(len(content))]
    assert law_damage_gives_no_error_but_value_error(load_tensors, tmp_path, cut) == len(cut)


def test_a_damaged_header_is_refused(tmp_path):
    content = small_file(tmp_path)
    refused = law_damage_gives_no_error_but_value_error(load_tensors, tmp_path, flipped(content))
    assert refused > 0.9 * 8 * (8 + int.from_bytes(content[:8], "little"))


def test_a_reader_that_lets_other_errors_through_breaks_the_law(tmp_path):
    def careless(path):
        content = path.read_bytes()
        return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["info"]

    with pytest.raises(AssertionError, match="instead of ValueError|not named in"):
        law_damage_gives_no_error_but_value_error(careless, tmp_path, flipped(small_file(tmp_path)))


@pytest.mark.parametrize(
    "change, first",
    [
        (dict(d_model=16), "expected"),
        (dict(num_layers=2), r"first decoder.layers.1.*: expected \(.*\), got None"),
        (dict(norm_first=True), r"first decoder.norm.scale: expected \(8,\), got None"),
        (dict(vocab_size=41), r"first generator.weight: expected \(41, 8\), got \(40, 8\)"),
    ],
)
def test_weights_of_another_model_are_refused_and_change_nothing(change, first):
    weights = Transformer(CONFIG).state_dict()
    model = Transformer(ModelConfig(**CONFIG.to_dict() | change))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=rf"these weights belong to another model: \d+ tensors differ.*{first}"):
        load_weights(model, weights)
    same(model.state_dict(), before)


def test_unknown_weights_are_refused():
    model = Transformer(CONFIG)
    with pytest.raises(ValueError, match=r"1 tensors differ, first zebra: expected None, got \(2,\)"):
        load_weights(model, model.state_dict() | {"zebra": torch.zeros(2)})


# --- averaging ----------------------------------------------------------------------------------


def law_average_is_the_mean(average, folder):
    for number in (1, 2, 5):
        states = [{"a": torch.randn(3, 2), "b": torch.randn(4)} for _ in range(number)]
        for index, state in enumerate(states):
            save_tensors(folder / str(index), state, {})
        averaged = average([folder / str(index) for index in range(number)])
        assert averaged.keys() == {"a", "b"}
        for name, tensor in averaged.items():
            assert tensor.dtype == torch.float32
            torch.testing.assert_close(tensor, torch.stack([state[name] for state in states]).mean(0))


def the_last(paths):
    return load_tensors(paths[-1])[0]


def running(paths):
    """(a + b) / 2, then (that + c) / 2: the last one counts half."""
    total = load_tensors(paths[0])[0]
    for path in paths[1:]:
        total = {name: (tensor + load_tensors(path)[0][name]) / 2 for name, tensor in total.items()}
    return total


def test_the_average_is_the_mean(tmp_path):
    law_average_is_the_mean(average_checkpoints, tmp_path)
    for wrong in (the_last, running):
        with pytest.raises(AssertionError):
            law_average_is_the_mean(wrong, tmp_path)


def test_the_average_of_tied_models_loads(tmp_path):
    models = [Transformer(CONFIG) for _ in range(2)]
    for index, model in enumerate(models):
        save_tensors(tmp_path / str(index), model.state_dict(), {})
    averaged = Transformer(CONFIG)
    load_weights(averaged, average_checkpoints([tmp_path / "0", tmp_path / "1"]))
    expected = (models[0].generator.weight + models[1].generator.weight) / 2
    torch.testing.assert_close(averaged.src_embedding.table.weight, expected)


def test_only_checkpoints_of_one_model_are_averaged(tmp_path):
    save_tensors(tmp_path / "0", {"a": torch.zeros(2)}, {})
    for other in ({"a": torch.zeros(3)}, {"b": torch.zeros(2)}, {"a": torch.zeros(2), "b": torch.zeros(2)}):
        save_tensors(tmp_path / "1", other, {})
        with pytest.raises(ValueError, match=rf"{tmp_path / '1'} holds another model than {tmp_path / '0'}"):
            average_checkpoints([tmp_path / "0", tmp_path / "1"])
    with pytest.raises(ValueError, match="no checkpoints to average"):
        average_checkpoints([])


# --- failed writes ------------------------------------------------------------------------------


def law_a_failed_write_keeps_the_old_file(save, folder, monkeypatch):
    path = folder / "a.safetensors"
    failures = {
        SafetensorError("I/O error: No space left on device"): OSError,
        OSError(errno.ENOSPC, "No space left on device"): OSError,
        KeyboardInterrupt(): KeyboardInterrupt,
    }
    for failure, expected in failures.items():
        monkeypatch.undo()
        save_tensors(path, {"a": torch.arange(3.0)}, {"old": True})

        def half(tensors, where, metadata=None, failure=failure):
            with open(where, "wb") as file:
                file.write(b"half of it")
            raise failure

        monkeypatch.setattr(checkpoint, "save_file", half)
        with pytest.raises(expected):
            save(path, {"a": torch.zeros(3)}, {})
        try:
            tensors, info = load_tensors(path)
        except ValueError as error:
            raise AssertionError("the old file is lost") from error
        assert tensors["a"].tolist() == [0, 1, 2] and info == {"old": True}
        assert [each.name for each in folder.iterdir()] == ["a.safetensors"]


def save_in_place(path, tensors, info):
    try:
        checkpoint.save_file(tensors, path, metadata={"format": FORMAT, "info": json.dumps(info), "aliases": "{}"})
    except SafetensorError as error:
        raise OSError from error


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    law_a_failed_write_keeps_the_old_file(save_tensors, tmp_path, monkeypatch)


def test_writing_in_place_breaks_the_law(tmp_path, monkeypatch):
    with pytest.raises(AssertionError, match="the old file is lost"):
        law_a_failed_write_keeps_the_old_file(save_in_place, tmp_path, monkeypatch)


def test_values_that_are_no_json_are_refused_before_anything_is_written(tmp_path):
    save_tensors(tmp_path / "a", {"a": torch.zeros(2)}, {"old": True})
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_tensors(tmp_path / "a", {"a": torch.zeros(2)}, {"module": nn.Identity()})
    assert load_tensors(tmp_path / "a")[1] == {"old": True}
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_full_disk_is_an_os_error_and_keeps_the_old_file(root, tmp_path):
    code = (
        "import resource, sys, torch; from course_lib.storage import load_tensors, save_tensors\n"
        "path = sys.argv[1]; save_tensors(path, {'a': torch.arange(3.0)}, {'old': True})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "try: save_tensors(path, {'a': torch.zeros(100_000)}, {})\n"
        "except OSError as error: print(error)\n"
        "print(load_tensors(path))"
    )
    path = tmp_path / "a.safetensors"
    done = subprocess.run([sys.executable, "-c", code, path], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    message, content = done.stdout.splitlines()
    assert message.startswith(f"could not write {path}: ") and "too large" in message.lower()
    assert content == "({'a': tensor([0., 1., 2.])}, {'old': True})"
    assert [each.name for each in tmp_path.iterdir()] == ["a.safetensors"]
