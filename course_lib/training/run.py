"""The state of a training run: one step, one epoch, saving and resuming."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from course_lib.config import require
from course_lib.data import Batch
from course_lib.storage import load_tensors, load_weights, remove_half_written, save_tensors
from course_lib.training.allocator import give_back_memory
from course_lib.training.config import TrainConfig
from course_lib.training.consistency import consistent_loss
from course_lib.training.distributed import check_agreement, from_everyone, gradients, rank, shared_loss
from course_lib.training.evaluation import batch_loss, validate
from course_lib.training.schedule import learning_rate
from course_lib.transformer import Transformer

STEPS_BETWEEN_TRIMS = 50


@dataclass
class History:
    """What happened in a training run.

    Args:
        losses: training loss of each step, nats a target token.
        rates: learning rate of each step.
        epochs: for each finished epoch its number (from 1), last step, mean train_loss, valid_loss and
            valid_accuracy if measured, seconds and cpu_seconds of training so far, and what `on_epoch` returned.
        total_steps: that the whole run will take.
        seconds: of training so far, with making the batches; validation and saving are not counted.
        cpu_seconds: of the processor in that time, all threads together.
        stopped: "running", "finished" or "interrupted".
    """

    losses: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    epochs: list[dict] = field(default_factory=list)
    total_steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stopped: str = "running"


class DivergedError(ValueError):
    """The loss is no longer a finite number; `history` is the run up to there, the last checkpoint is kept."""

    def __init__(self, message: str, history: History):
        super().__init__(message)
        self.history = history


class Run:
    """The state of one `fit`: where it stands, and how to save and restore it."""

    def __init__(self, model, batches, config, folder, keep, loss=None, start=None):
        self.model, self.batches, self.config, self.keep, self.start = model, batches, config, keep, start
        self.folder = None if folder is None else Path(folder)
        self.device = next(model.parameters()).device
        self.epoch = self.batch = self.step = 0  # finished epochs; batches done in this one; steps done
        steps = [math.ceil(len(batches.plan(epoch)) / config.accumulate) for epoch in range(config.epochs)]
        self.history = History(total_steps=sum(steps))
        self.batches_left = len(batches.plan(0))
        self.pairs_checksum = batches.checksum()
        check_agreement(self.pairs_checksum, "sentence pairs")
        require(not (loss and config.consistency), "consistency is of the usual loss, and another one was given")
        self.loss = shared_loss(model, config.label_smoothing, loss or _usual_loss(config))
        self.optimizer = _optimizer(model, config)
        self.optimizer.zero_grad()  # of what was done with the model before

    def rest_of_epoch(self) -> Iterator[list[Batch]]:
        """Groups of micro-batches, one group a step, from where the run stands."""
        self.batches_left = len(self.batches.plan(self.epoch)) - self.batch
        stream = self.batches.epoch(self.epoch, start=self.batch)
        while group := self._next(stream):
            yield group

    def _next(self, stream: Iterator[Batch]) -> list[Batch]:
        with self._clock():
            return list(islice(stream, self.config.accumulate))

    @contextmanager
    def _clock(self) -> Iterator[None]:
        """Adds what the block takes to the history's seconds and cpu_seconds."""
        started, cpu_started = time.perf_counter(), time.process_time()
        yield
        self.history.seconds += time.perf_counter() - started
        self.history.cpu_seconds += time.process_time() - cpu_started

    @property
    def at_end_of_epoch(self) -> bool:
        return self.batches_left == 0

    def train_step(self, group: list[Batch]) -> None:
        """One optimizer step on the gradient of the mean loss over all target tokens of the group."""
        with self._clock():
            self._train_step(group)
            if self.step % STEPS_BETWEEN_TRIMS == 0:
                give_back_memory()

    def _train_step(self, group: list[Batch]) -> None:
        rate = learning_rate(
            self.config, self.step + 1, d_model=self.model.config.d_model, total_steps=self.history.total_steps
        )
        loss = gradients(self.loss, group, self.device, self.config.precision)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf).item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self.optimizer.zero_grad()
            kept = f", and {self.folder} the last checkpoint" if self.folder else ""
            raise DivergedError(
                f"loss {loss} and gradient norm {norm} at step {self.step + 1}, learning rate {rate:.2e}: "
                f"training stops, the model keeps the weights of the step before{kept}",
                self.history,
            )
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        self.batch += len(group)
        self.batches_left -= len(group)
        self.history.losses.append(loss)
        self.history.rates.append(rate)

    def finish_epoch(self, valid, on_epoch) -> None:
        """Measures, records and counts the epoch."""
        steps = math.ceil(self.batch / self.config.accumulate)
        record = {
            "epoch": self.epoch + 1,
            "step": self.step,
            "train_loss": sum(self.history.losses[-steps:]) / steps,
        }
        record |= {"seconds": self.history.seconds, "cpu_seconds": self.history.cpu_seconds}
        record |= validate(self.model, valid) if valid else {}
        self.history.epochs.append(record)
        self.epoch, self.batch = self.epoch + 1, 0
        if on_epoch:
            record |= on_epoch(self.model, self.history) or {}
            self.model.train()

    def save(self) -> None:
        """Writes the state, in the process with rank 0; keeps the weights of the newest epochs."""
        if self.folder is None:
            return
        state = _random_states("cpu", torch.get_rng_state())
        if self.device.type == "cuda":
            state |= _random_states("cuda", torch.cuda.get_rng_state(self.device))
        if rank() > 0:
            return
        state |= {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
        if self.keep and self.batch == 0:  # before the state: whoever resumes from it must find these weights
            save_tensors(epoch_file(self.folder, self.epoch), self.model.state_dict(), {})
        save_tensors(self.folder / "last.safetensors", state, self._info())
        if self.keep:
            epoch_file(self.folder, self.epoch - self.keep).unlink(missing_ok=True)

    def resume(self) -> None:
        """Takes over the state in the folder, if there is one; what a killed process had half written is removed."""
        if self.folder is not None and rank() == 0:
            remove_half_written(self.folder)
        if self.folder is None or not (self.folder / "last.safetensors").exists():
            return
        state, info = load_tensors(self.folder / "last.safetensors")
        own = self._info()
        if info.keys() != own.keys():
            raise ValueError(f"{self.folder / 'last.safetensors'} holds no training run")
        info["training"] = {"consistency": 0.0, "start": self.start} | info["training"]  # older runs lack them
        for name in ("model", "training"):
            if info[name] != own[name]:
                changed = sorted(key for key in own[name] if info[name].get(key) != own[name][key])
                raise _another_run(self.folder, f"its {name} configuration differs in {changed}")
        if info["pairs"] != own["pairs"]:
            raise _another_run(self.folder, "its sentence pairs, or their batches, differ")
        load_weights(self.model, _below("model.", state))
        moments: dict[int, dict[str, Tensor]] = {}
        for key, tensor in _below("optimizer.", state).items():
            index, name = key.split(".")
            moments.setdefault(int(index), {})[name] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        if (name := _random_name("cpu", rank())) in state:  # not where the run had fewer processes
            torch.set_rng_state(state[name])
        if self.device.type == "cuda" and (name := _random_name("cuda", rank())) in state:
            torch.cuda.set_rng_state(state[name], self.device)
        self.history = History(**info["history"])
        self.epoch, self.batch, self.step = info["epoch"], info["batch"], info["step"]

    def _info(self) -> dict:
        return {
            "model": self.model.config.to_dict(),
            "training": {**self.config.to_dict(), "betas": list(self.config.betas), "start": self.start},
            "pairs": self.pairs_checksum,
            "history": asdict(self.history),
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
        }


def epoch_file(folder: Path, epoch: int) -> Path:
    """Where a run keeps the weights of an epoch, counted from 1."""
    return folder / f"epoch-{epoch:04d}.safetensors"


def _another_run(folder: Path, difference: str) -> ValueError:
    return ValueError(
        f"{folder} holds another run: {difference}; train into another folder, or delete this one to begin anew"
    )


def _random_name(kind: str, process: int) -> str:
    return f"rng.{kind}.{process}" if process else f"rng.{kind}"


def _random_states(kind: str, own: Tensor) -> dict[str, Tensor]:
    """The state of the random generator in each process, by name."""
    return {_random_name(kind, process): state for process, state in enumerate(from_everyone(own))}


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _usual_loss(config: TrainConfig) -> Callable:
    """Of one pass, or of two that agree; found by its name when it is called: tests put another there."""
    if config.consistency:
        return partial(consistent_loss, consistency=config.consistency)
    return lambda model, batch, *, smoothing: batch_loss(model, batch, smoothing=smoothing)


def _optimizer(model: Transformer, config: TrainConfig) -> torch.optim.Optimizer:
    """Adam; weight decay, if any, is decoupled and leaves biases and norms alone."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=True)
