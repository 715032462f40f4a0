"""Graphs for other runtimes: they say what the model says, with heads on or off, also from disk."""

import json

import numpy as np
import pytest
import torch

from course_lib.analysis import ablate_heads
from course_lib.config import ModelConfig
from course_lib.recording import record_attention
from course_lib.transformer import Transformer
from course_lib.translator import Translator
from notebooks.source.book_graphs import DecoderGraph, EncoderGraph
from tests.helpers.laws import tells_apart
from tests.helpers.rounding import in_255_steps

SIZES = dict(vocab_size=30, d_model=12, num_heads=3, num_layers=2, d_ff=20, max_len=16)
SRC, TGT = [5, 9, 4, 7, 2], [1, 6, 8, 11]
SILENT = [("encoder", 0, 2), ("decoder", 1, 0), ("cross", 0, 1)]


def model_of(**changes):
    torch.manual_seed(3)
    return Transformer(ModelConfig(**SIZES | changes)).double().eval()


def audible(kind, silent):
    each = torch.ones(SIZES["num_layers"], SIZES["num_heads"], dtype=torch.float64)
    for _, layer, head in (one for one in silent if one[0] == kind):
        each[layer, head] = 0
    return each


def by_graphs(model, silent, encoder=EncoderGraph, decoder=DecoderGraph):
    """Logits of each target position, and the weights of each kind as record_attention has them."""
    *memory, seen = encoder(model)(torch.tensor([SRC]), audible("encoder", silent))
    keys = values = torch.zeros(SIZES["num_layers"], SIZES["num_heads"], 0, 4, dtype=torch.float64)
    step, logits = decoder(model), []
    own = torch.zeros(SIZES["num_layers"], SIZES["num_heads"], len(TGT), len(TGT), dtype=torch.float64)
    cross = torch.zeros(SIZES["num_layers"], SIZES["num_heads"], len(TGT), len(SRC), dtype=torch.float64)
    for t, token in enumerate(TGT):
        heard = audible("decoder", silent), audible("cross", silent)
        found, keys, values, own[:, :, t, : t + 1], cross[:, :, t] = step(
            torch.tensor([[token]]), keys, values, *memory, *heard
        )
        logits.append(found)
    return torch.stack(logits), {"encoder": seen, "decoder": own, "cross": cross}


def law_graphs_say_what_the_model_says(graphs) -> None:
    for changes in ({}, {"norm_first": True, "position": "learned"}):
        for silent in ([], SILENT):
            model = model_of(**changes)
            with torch.no_grad():
                ours, seen = graphs(model, silent)
                with ablate_heads(model, silent), record_attention(model) as maps:
                    theirs = model(torch.tensor([SRC]), torch.tensor([TGT]))[0]
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
            for kind, weights in seen.items():
                torch.testing.assert_close(weights, torch.cat(getattr(maps, kind)), rtol=1e-9, atol=1e-10)


def without_silence(model, silent):
    """Hears all heads."""
    return by_graphs(model, [])


def forgetful(model, silent):
    """Gives each step the position 0."""

    class Forgetful(DecoderGraph):
        def forward(self, token, keys, values, *rest):
            logits, new_keys, new_values, own, cross = super().forward(token, keys[:, :, :0], values[:, :, :0], *rest)
            longer = [torch.cat(pair, dim=2) for pair in ((keys, new_keys), (values, new_values))]
            return logits, *longer, torch.nn.functional.pad(own, (keys.shape[2], 0)), cross

    return by_graphs(model, silent, decoder=Forgetful)


def test_graphs_say_what_the_model_says():
    tells_apart(law_graphs_say_what_the_model_says, by_graphs, without_silence, forgetful)


@pytest.mark.parametrize("position", ["rotary", "alibi", "none"])
def test_positions_that_are_not_added_are_refused(installed, tmp_path, position):
    from notebooks.source.book_model import export

    translator = Translator.from_pretrained("course")
    config = ModelConfig(**translator.model.config.to_dict() | {"position": position})
    with pytest.raises(ValueError, match=f"positions that are added to the tokens, got '{position}'"):
        export(Translator(Transformer(config), translator.tokenizer), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def exported(installed):
    from notebooks.source.book_alive import model

    return model("course")


def test_onnx_runtime_says_what_the_rounded_model_says(exported):
    import onnxruntime

    translator = Translator.from_pretrained("course")
    model, config = translator.model, translator.model.config
    in_255_steps(model)
    (src,) = translator.encode(["The old woman sees the dog."])
    tgt = [config.bos_id, *translator.tokenizer.encode("Die alte Frau sieht den Hund.")]
    encoder, decoder = (onnxruntime.InferenceSession(exported / f"{name}.onnx") for name in ("encoder", "decoder"))
    heard = np.ones((config.num_layers, config.num_heads), np.float32)
    memory_keys, memory_values, _ = encoder.run(None, {"src": np.array([src]), "audible": heard})
    keys = values = np.zeros((config.num_layers, config.num_heads, 0, config.d_k), np.float32)
    given = dict(memory_keys=memory_keys, memory_values=memory_values, audible=heard, audible_cross=heard)
    ours = []
    for token in tgt:
        logits, keys, values, *_ = decoder.run(None, dict(token=np.array([[token]]), keys=keys, values=values, **given))
        ours.append(logits)
    with torch.no_grad():
        theirs = model(torch.tensor([src]), torch.tensor([tgt]))[0]
    torch.testing.assert_close(torch.tensor(np.stack(ours)), theirs, rtol=0, atol=1e-3)
    with torch.no_grad():  # of weights that nobody has rounded
        unrounded = Translator.from_pretrained("course").model(torch.tensor([src]), torch.tensor([tgt]))[0]
    assert (unrounded - theirs).abs().max() > 1e-2


def test_both_graphs_share_small_weights(exported):
    config = json.loads((exported / "config.json").read_text())
    assert config["sizes"] == {name: (exported / name).stat().st_size for name in config["sizes"]}
    parameters = ModelConfig(**{k: v for k, v in config.items() if k != "sizes"}).num_parameters
    assert config["sizes"]["weights.bin"] < 1.5 * parameters  # bytes: the positions stand there too
