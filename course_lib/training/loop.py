"""Training: `fit` runs epochs over batches, keeps a history, and survives interruption."""

from collections.abc import Callable
from pathlib import Path

import torch
from tqdm import tqdm

from course_lib.data import BucketedBatches
from course_lib.training.allocator import keep_freed_memory
from course_lib.training.config import TrainConfig
from course_lib.training.distributed import anyone, rank
from course_lib.training.interrupt import Interrupt
from course_lib.training.run import DivergedError, History, Run
from course_lib.transformer import Transformer

__all__ = ["DivergedError", "History", "fit"]

SEEDS_APART = 1_000_003  # between processes, so that each drops out something else


def fit(
    model: Transformer,
    batches: BucketedBatches,
    config: TrainConfig,
    *,
    valid: BucketedBatches | None = None,
    folder: str | Path | None = None,
    keep: int = 0,
    loss: Callable | None = None,
    start: str | None = None,
    on_step: Callable[[Transformer, History], None] | None = None,
    on_epoch: Callable[[Transformer, History], dict | None] | None = None,
    progress: bool = True,
) -> History:
    """Trains a model; where `folder` holds an unfinished run of the same configuration, goes on with that run.

    A resumed run equals an uninterrupted one, bit for bit on CPU. Ctrl-C (or the notebook's stop button) ends the
    training after the current step; the history is returned and the state is saved.

    Under torchrun (see process_group) each process takes its rows of every batch, and all make the same step: that of
    one process with whole batches. Rank 0 measures, calls and writes; all must see the folder, to resume from it.

    Args:
        model: is changed in place, and trains on the device it is on.
        batches: of the training pairs.
        config: of the run.
        valid: batches of held-out pairs, for `validate` after each epoch.
        folder: for `last.safetensors`, written after each epoch, and the weights of the newest `keep` epochs.
        keep: how many epochs' weights to keep for `average_checkpoints`.
        loss: of a batch, called as `batch_loss` is, which is the default and stays that of the validation; whoever
            resumes a run gives the same one again.
        start: the translator whose weights the model begins with, if any: a part of the configuration of the run.
        on_step, on_epoch: called after each step and each epoch; what on_epoch returns is added to the history.
        progress: show a progress bar.

    Returns:
        the history of the run, with `stopped` "finished" or "interrupted"; the model is left in evaluation mode.

    Raises:
        DivergedError: if the loss becomes infinite or NaN; the weights are then those before that step.
        ValueError: if `folder` holds another run.

    Paper: sections 5.2 to 5.4.
    """
    keep_freed_memory()
    run, stop = Run(model, batches, config, folder, keep, loss, start), False
    torch.manual_seed(config.seed + rank() * SEEDS_APART)
    if rank() > 0:
        valid, on_step, on_epoch, progress = None, None, None, False
    run.resume()
    bar = tqdm(total=run.history.total_steps, initial=run.step, unit="step", disable=not progress, mininterval=1.0)
    model.train()
    with bar, Interrupt() as interrupt:
        while run.epoch < config.epochs and not stop:
            for group in run.rest_of_epoch():
                run.train_step(group)
                bar.set_postfix(loss=f"{run.history.losses[-1]:.3f}", refresh=False)
                bar.update()
                if on_step:
                    on_step(model, run.history)
                if stop := anyone(interrupt.requested):
                    break
            if run.at_end_of_epoch:
                run.finish_epoch(valid, on_epoch)
            run.save()
            stop = anyone(stop or interrupt.requested)
    run.history.stopped = "finished" if run.epoch == config.epochs else "interrupted"
    model.eval()
    return run.history
