"""On a GPU: base-size steps in bfloat16 beside torch.nn.Transformer, compiled; decoding beside Hugging Face."""

import os
import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter

import torch
from torch import nn

from course_lib import Transformer, Translator, model_preset
from course_lib.data import Batch, pad
from course_lib.training import train_preset
from course_lib.training.run import _optimizer as our_optimizer
from tests.bench import decoding, torch_nn
from tests.bench.hugging_face import to_hugging_face
from tests.bench.measure import ratio
from tests.bench.training import SMOOTHING, VOCAB, first_batches, operations, our_loss

DEVICE = os.environ.get("COURSE_TEST_DEVICE", "cuda")  # "cpu" tries this part itself, with SIZE=tiny
SIZE = os.environ.get("SIZE", "base")
BATCH_TOKENS = 25_000  # paper, section 5.1


def rows(*, rounds: int, threads: int) -> list[dict]:
    """Lines of the table, as on the CPU; all contestants share the GPU and take turns in one process."""
    return [*training_rows(rounds), *decoding_rows(rounds)]


def training_rows(rounds: int) -> list[dict]:
    """Target tokens a second."""
    batches = [batch.to(DEVICE) for batch in first_batches(BATCH_TOKENS)]
    config = model_preset(SIZE, vocab_size=VOCAB)
    ours, theirs = Transformer(config).to(DEVICE).train(), torch_nn.TorchTransformer(config).to(DEVICE).train()
    torch_nn.compile_layers(theirs)
    contestants = {
        "ours": step(ours, our_optimizer(ours, train_preset(SIZE)), partial(our_loss, ours), batches),
        "compiled": step(theirs, torch_nn.optimizer(theirs), partial(theirs.loss, smoothing=SMOOTHING), batches),
    }
    seconds, _ = in_turn(contestants, rounds, warm_up=len(batches))
    tokens = statistics.mean(batch.num_tokens for batch in batches)
    mine, other = (statistics.median(times) for times in seconds.values())
    return [
        {
            "work": f"train {SIZE}, bfloat16",
            "unit": "target tokens/s",
            "ours": round(tokens / mine),
            "peer": "torch.nn.Transformer, compiled",
            "theirs": round(tokens / other),
            "ratio": round(ratio(seconds["compiled"], seconds["ours"]), 2),
            "share of peak": round(operations(SIZE, batches[:1]) / mine / peak(), 2),
        }
    ]


def decoding_rows(rounds: int) -> list[dict]:
    """Sentences a second, 64 at once."""
    ids, found = decoding.sentences(), []
    model = Translator.from_pretrained("everyday").model.to(DEVICE)
    peer = to_hugging_face(model.cpu()).to(DEVICE)
    model = model.to(DEVICE)
    for beam in (1, 4):
        searches = {
            "ours": partial(decoding.our_search, model, beam),
            "Hugging Face": partial(decoding.their_search, peer, beam),
        }
        contestants = {
            name: lambda number, search=search: [
                row for part in decoding.batches_of(ids, 64) for row in search(pad(part).to(DEVICE))
            ]
            for name, search in searches.items()
        }
        seconds, results = in_turn(contestants, rounds, warm_up=1)
        same = [a == b for a, b in zip(results["ours"], results["Hugging Face"], strict=True)]
        mine, theirs = (statistics.median(times) for times in seconds.values())
        found.append(
            {
                "work": f"decode, batch 64, {'greedy' if beam == 1 else f'beam {beam}'}",
                "unit": "sentences/s",
                "ours": round(len(ids) / mine, 1),
                "peer": "Hugging Face",
                "theirs": round(len(ids) / theirs, 1),
                "ratio": round(ratio(seconds["Hugging Face"], seconds["ours"]), 2),
                "same text": round(statistics.mean(same), 3),
            }
        )
    return found


def step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable, batches: list[Batch]) -> Callable:
    """A training step in mixed precision on the batch of a round."""

    def work(number: int) -> None:
        optimizer.zero_grad()
        with torch.autocast(torch.device(DEVICE).type, dtype=torch.bfloat16):
            value = loss(batches[number % len(batches)])
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return work


def in_turn(contestants: dict[str, Callable], rounds: int, *, warm_up: int) -> tuple[dict, dict]:
    """Seconds of each round, and what the last one returned."""
    seconds, results = {name: [] for name in contestants}, {}
    for number in range(-warm_up, rounds):
        for name, work in contestants.items():
            wait()
            started = perf_counter()
            results[name] = work(number)
            wait()
            if number >= 0:
                seconds[name].append(perf_counter() - started)
    return seconds, results


def wait() -> None:
    """Until the GPU is done."""
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def peak(size: int = 8192) -> float:
    """Operations a second of the product of two bfloat16 matrices."""
    one, other = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    seconds, _ = in_turn({"product": lambda number: [one @ other for _ in range(10)]}, 5, warm_up=1)
    return 10 * 2 * size**3 / statistics.median(seconds["product"])
