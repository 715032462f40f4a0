"""The experiment on the echo: its sides differ in what they name, and an echo is what it says."""

from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib.experiments import architectures, echo
from course_lib.experiments.echo import GRID, OUTPUTS, STEPS, echo_model, echoes
from tests.helpers.laws import raised, tells_apart
from tests.helpers.parity import scrambled


@pytest.fixture(autouse=True)
def few_pairs():
    architectures.corpus.cache_clear()
    with mock.patch.multiple(architectures, PAIRS=300, HELD_OUT=40):
        yield
    architectures.corpus.cache_clear()


def new(architecture, **options):
    torch.manual_seed(0)
    return echo_model(architecture, **options).eval()


class Parrot(nn.Module):
    """Says the token that it reads, or the one after it in the vocabulary."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, src, tgt_in):
        return nn.functional.one_hot(tgt_in + self.step, 700).float()


def test_an_echo_says_what_was_just_read():
    assert echoes(Parrot(0)) == 1 and echoes(Parrot(1)) == 0


def law_a_new_model_echoes_where_a_path_leads_to_the_tied_matrix(build):
    for architecture, path in (("transformer", False), ("state space", False), ("lstm", True), ("gru", True)):
        echo = {output: echoes(build(architecture, output=output, path=path)) for output in OUTPUTS}
        assert echo["tied"] > 0.5 and max(echo["projected"], echo["untied"]) < 0.05, (architecture, echo)
    for architecture in ("lstm", "gru", "convolutional"):
        assert echoes(build(architecture, output="tied", path=False)) < 0.05, architecture


def test_a_new_model_echoes_where_a_path_leads_to_the_tied_matrix():
    law = law_a_new_model_echoes_where_a_path_leads_to_the_tied_matrix
    never = lambda architecture, output, path: new(architecture, output=output)  # noqa: E731
    always = lambda architecture, output, path: new(architecture, path=path)  # noqa: E731
    tells_apart(law, new, never, always)


def law_the_path_adds_what_is_read(decode):
    model = scrambled(new("lstm", path=True))
    src, tgt_in = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8]])
    memory = model.encode(src)
    around = super(echo.RNNWithPath, model).decode(tgt_in, memory, src)
    assert torch.allclose(decode(model, tgt_in, memory, src) - around, model.tgt_embedding(tgt_in), atol=1e-5)
    cache = model.new_cache()
    parts = [decode(model, token, memory, src, cache=cache) for token in tgt_in.split(1, dim=1)]
    assert torch.allclose(torch.cat(parts, dim=1), decode(model, tgt_in, memory, src), atol=1e-5)


def test_the_path_adds_what_is_read():
    without = lambda model, *args, **options: super(echo.RNNWithPath, model).decode(*args, **options)  # noqa: E731
    tells_apart(law_the_path_adds_what_is_read, echo.RNNWithPath.decode, without)


@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_an_output_changes_what_it_names(architecture, path):
    if path and architecture == "transformer":
        assert "for lstm and gru" in str(raised(ValueError, partial(echo_model, architecture, path=path)))
        return
    tied, projected, untied = (new(architecture, output=output, path=path) for output in OUTPUTS)
    size, (vocab, d_model) = sum(each.numel() for each in tied.parameters()), tied.generator.weight.shape
    assert sum(each.numel() for each in projected.parameters()) == size + d_model**2
    assert projected.generator[1].weight is projected.src_embedding.table.weight
    assert sum(each.numel() for each in untied.parameters()) == size + 2 * vocab * d_model
    assert untied.generator.weight.std().item() == pytest.approx(d_model**-0.5, rel=0.05)
    assert "got 'sideways'" in str(raised(ValueError, partial(echo_model, architecture, output="sideways")))


def test_a_run_reports_what_the_record_needs():
    results = echo.run(dict(architecture="lstm", path=True, rate=1e-2, steps=8), 0, Path())
    assert [entry["steps"] for entry in results["history"]] == [2, 4, 6, 8] and "seconds" not in results["history"][0]
    assert results["valid"] == results["history"][-1]["valid_accuracy"] and 0 <= results["test"] <= 1
    before, after = results["echo"]
    assert before > 0.9 and before > after >= 0
    assert results["parameters"] == sum(each.numel() for each in new("lstm").parameters())


def test_each_side_takes_the_same_steps_and_has_its_own_rate():
    for name, choices in GRID.sides.items():
        assert choices["steps"] == (4 * STEPS if "longer" in name else STEPS)
        assert len(choices["rate"]) >= 2
        for output in OUTPUTS[1:]:
            assert (output in name) == (choices.get("output") == output)
        assert ("path" in name) == choices.get("path", False)
