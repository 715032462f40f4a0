"""On a GPU a model computes, trains, goes on and decodes as on the CPU: `.ci/gpu tests`."""

import copy
import os
import signal

import pytest
import torch
from torch import nn

from course_lib import Transformer, Translator, beam_search, greedy, record_attention
from course_lib.data import BucketedBatches, encode_pairs, load_corpus
from course_lib.training import TrainConfig, fit, label_smoothed_loss
from tests.helpers.tiny import MODEL_VARIANTS, padded, sources, tiny_model

DEVICE = os.environ.get("COURSE_TEST_DEVICE", "cuda")  # "cpu" tries these tests themselves
pytestmark = pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no GPU that CUDA can use")

SRC, TGT = padded(sources([6, 1, 3], vocab_size=23)), padded(sources([4, 5, 2], seed=1, vocab_size=23))
# A GPU sums in another order; its matrix products in float32 do not round to TF32 unless asked.
CLOSE = dict(rtol=1e-4, atol=1e-5)


def loss_and_gradients(model: nn.Module, device: str) -> list[torch.Tensor]:
    model = copy.deepcopy(model).to(device)
    logits = model(SRC.to(device), TGT.to(device)[:, :-1])
    loss = label_smoothed_loss(logits.flatten(0, 1), TGT.to(device)[:, 1:].flatten(), smoothing=0.1)
    loss.backward()
    return [loss.detach().cpu(), *(weight.grad.cpu() for weight in model.parameters() if weight.grad is not None)]


@pytest.mark.parametrize("config", MODEL_VARIANTS, ids=lambda config: f"{config.position}-{config.norm_first}")
def test_loss_and_gradients_are_those_of_the_cpu(config) -> None:
    torch.manual_seed(0)
    model = Transformer(config).eval()
    for ours, theirs in zip(loss_and_gradients(model, DEVICE), loss_and_gradients(model, "cpu"), strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def test_decoding_gives_the_tokens_of_the_cpu() -> None:
    translator = Translator.from_pretrained("course")
    src = padded(translator.encode([pair.src for pair in load_corpus("course").test[:32]]))
    there = copy.deepcopy(translator.model).to(DEVICE)
    for decode in (greedy, beam_search):
        ours, theirs = decode(there, src.to(DEVICE)), decode(translator.model, src)
        first = [found[0] if decode is beam_search else found for found in ours]
        assert [found.ids for found in first] == [(f[0] if decode is beam_search else f).ids for f in theirs]


def test_attention_is_that_of_the_cpu() -> None:
    model, ids = tiny_model(spread=2), padded(sources([6, 1, 3]))
    found = []
    for device in (DEVICE, "cpu"):
        there = copy.deepcopy(model).to(device)
        with torch.no_grad(), record_attention(there) as maps:
            there(ids.to(device), ids.to(device))
        found.append([weights.cpu() for part in (maps.encoder, maps.decoder, maps.cross) for weights in part])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def trained(device: str, folder=None, *, stop_at: int = 0, precision: str = "float32") -> tuple[list[float], nn.Module]:
    """The losses of a short training on the course corpus, and the model."""
    translator = Translator.from_pretrained("course")
    pairs = encode_pairs(translator.tokenizer, load_corpus("course").train[:400])
    torch.manual_seed(0)
    model = Transformer(translator.model.config).to(device)
    config = TrainConfig(epochs=2, warmup_steps=10, peak_lr=1e-3, precision=precision)

    def press(model, history) -> None:
        if len(history.losses) == stop_at:
            signal.raise_signal(signal.SIGINT)

    batches = BucketedBatches(pairs, batch_tokens=1024, seed=0)
    history = fit(model, batches, config, folder=folder, on_step=press, progress=False)
    assert history.stopped == ("interrupted" if stop_at else "finished")
    return history.losses, model


def test_training_goes_the_way_of_the_cpu() -> None:
    (ours, _), (theirs, _) = trained(DEVICE), trained("cpu")
    assert ours == pytest.approx(theirs, rel=1e-2) and ours[-1] < 0.9 * ours[0]


def test_a_resumed_run_goes_on_as_if_nothing_had_been(tmp_path) -> None:
    whole, model = trained(DEVICE)
    trained(DEVICE, tmp_path, stop_at=5)
    resumed, other = trained(DEVICE, tmp_path)
    assert resumed == pytest.approx(whole, rel=1e-4)
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_mixed_precision_trains_almost_as_float32() -> None:
    (half, _), (whole, _) = trained(DEVICE, precision="bfloat16"), trained(DEVICE)
    assert half != whole and half == pytest.approx(whole, rel=0.03)
