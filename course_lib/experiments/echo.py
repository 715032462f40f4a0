"""Why does a Transformer learn so little at first? The residual path leads what it reads to the tied matrix."""

from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.alternatives import AttentiveRNN
from course_lib.experiments.architectures import batches, exercise, new_model
from course_lib.experiments.grid import Grid
from course_lib.experiments.timed import train_steps
from course_lib.tokenizer import SPECIALS
from course_lib.training import validate

STEPS = 400
OUTPUTS = ("tied", "projected", "untied")


class RNNWithPath(AttentiveRNN):
    """A recurrent translator with a residual path around all of the decoder, from the token that it reads."""

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list | None = None) -> Tensor:
        """As AttentiveRNN.decode, plus the embedded target tokens."""
        return super().decode(tgt_in, memory, src, cache=cache) + self.tgt_embedding(tgt_in)


def echo_model(architecture: str, *, output: str = "tied", path: bool = False) -> nn.Module:
    """A translator of race 2.

    Args:
        architecture: as of `architectures.new_model`.
        output: "tied" scores the tokens with the matrix of both embeddings; "projected" does, too, after one more
            matrix, (d_model, d_model); "untied" has a matrix for each embedding, and one for the scores.
        path: of an LSTM or GRU, with the residual path of RNNWithPath.

    Raises:
        ValueError: on another output, and on a path around something else.
    """
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}; got {output!r}")
    model = new_model(architecture)
    if path:
        if not isinstance(model, AttentiveRNN):
            raise ValueError(f"the path is for lstm and gru, got {architecture!r}")
        model = RNNWithPath(model.config)
    if output == "projected":
        d_model = model.config.d_model
        model.generator = nn.Sequential(nn.Linear(d_model, d_model, bias=False), model.generator)
    if output == "untied":
        for part in (model.src_embedding.table, model.generator):
            part.weight = nn.Parameter(torch.randn_like(part.weight) * model.config.d_model**-0.5)
    return model


@torch.no_grad()
def echoes(model: nn.Module) -> float:
    """The share of validation tokens at which the model says what it has just read: the best next token is the last."""
    said = [(model(batch.src, batch.tgt_in).argmax(dim=-1), batch.tgt_in) for batch in batches("valid").epoch(0)]
    words = [(best == read)[read >= len(SPECIALS)] for best, read in said]
    return torch.cat(words).float().mean().item()


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one translator for a number of steps.

    Returns:
        valid: accuracy of the next token on the validation part, by which is chosen; test: on the test part; echo:
        see `echoes`, before the first step and after the last; parameters; history: four measurements.
    """
    choices = dict(choices)
    rate, steps = choices.pop("rate"), choices.pop("steps")
    torch.manual_seed(seed)
    model = echo_model(**choices).eval()
    before = echoes(model)
    loss, measure = exercise(model, seed)
    history = train_steps(steps, model, loss, rate=rate, measure=measure, measurements=4)
    return {
        "valid": history[-1]["valid_accuracy"],
        "test": round(validate(model, batches("test"))["valid_accuracy"], 4),
        "echo": [round(before, 4), round(echoes(model), 4)],
        "parameters": sum(each.numel() for each in model.parameters()),
        "history": history,
    }


RATES = dict(steps=STEPS, rate=(2e-3, 4e-3, 1e-2, 2e-2))
LONGER = dict(steps=4 * STEPS, rate=(4e-3, 1e-2))
GRID = Grid(
    name="echo",
    question="What makes a Transformer learn less from its first steps than an LSTM?",
    sides={
        "Transformer": RATES | dict(architecture="transformer"),
        "Transformer, projected": RATES | dict(architecture="transformer", output="projected"),
        "Transformer, untied": RATES | dict(architecture="transformer", output="untied"),
        "state space": RATES | dict(architecture="state space"),
        "state space, projected": RATES | dict(architecture="state space", output="projected"),
        "state space, untied": RATES | dict(architecture="state space", output="untied"),
        "LSTM": RATES | dict(architecture="lstm"),
        "LSTM, untied": RATES | dict(architecture="lstm", output="untied"),
        "GRU": RATES | dict(architecture="gru"),
        "LSTM with a path": RATES | dict(architecture="lstm", path=True),
        "LSTM with a path, projected": RATES | dict(architecture="lstm", path=True, output="projected"),
        "LSTM with a path, untied": RATES | dict(architecture="lstm", path=True, output="untied"),
        "convolutional": RATES | dict(architecture="convolutional"),
        "Transformer, longer": LONGER | dict(architecture="transformer"),
        "Transformer, projected, longer": LONGER | dict(architecture="transformer", output="projected"),
        "Transformer, untied, longer": LONGER | dict(architecture="transformer", output="untied"),
        "LSTM, longer": LONGER | dict(architecture="lstm"),
        "LSTM with a path, longer": LONGER | dict(architecture="lstm", path=True),
    },
    run=run,
)
