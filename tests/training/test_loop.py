"""Training steps and epochs: what one step does, which batches it sees, and what is recorded."""

import math
from collections import Counter
from dataclasses import replace
from itertools import islice
from unittest import mock

import pytest
import torch

from course_lib.data.batches import BucketedBatches
from course_lib.training import run as run_module
from course_lib.training.allocator import give_back_memory, keep_freed_memory
from course_lib.training.config import TrainConfig
from course_lib.training.evaluation import batch_loss, validate
from course_lib.training.run import Run
from course_lib.training.schedule import learning_rate
from tests.helpers.laws import raised, tells_apart
from tests.helpers.parity import double_precision
from tests.helpers.tiny import tiny_model
from tests.helpers.training import FixedBatches, assert_same_weights, fit, fit_with, reversal_pairs

# A large eps makes Adam's step smooth: with the paper's, a gradient of 1e-17 that should be 0 moves a weight.
CONFIG = TrainConfig(epochs=2, peak_lr=0.05, warmup_steps=2, eps=1e-2)
PAIRS = reversal_pairs(12)
UNEQUAL = FixedBatches([PAIRS[:2], PAIRS[2:9], PAIRS[9:]])


# --- accumulation -------------------------------------------------------------------------------


def accumulation_equals_one_large_batch(train):
    with double_precision():
        large, small, before = tiny_model(), tiny_model(), tiny_model()
        once = train(large, FixedBatches([PAIRS]), CONFIG)
        summed = train(small, UNEQUAL, replace(CONFIG, accumulate=3))
    assert raised(AssertionError, lambda: assert_same_weights(large, before, atol=1e-2)), "nothing was learned"
    assert len(summed.losses) == len(once.losses) == CONFIG.epochs
    torch.testing.assert_close(torch.tensor(summed.losses), torch.tensor(once.losses), rtol=0, atol=1e-6)
    assert_same_weights(small, large, atol=1e-6)


class MeanOfMeans(Run):
    def train_step(self, group):
        tokens = sum(batch.num_tokens for batch in group)

        def own_mean(model, batch, *, smoothing):
            loss, correct = batch_loss(model, batch, smoothing=smoothing)
            return loss / batch.num_tokens * tokens / len(group), correct

        with mock.patch.object(run_module, "batch_loss", own_mean):
            super().train_step(group)


class StepAtEachMicroBatch(Run):
    def train_step(self, group):
        for batch in group:
            super().train_step([batch])


def test_accumulated_micro_batches_equal_one_large_batch():
    accumulation_equals_one_large_batch(fit)


@pytest.mark.parametrize("mutant", [MeanOfMeans, StepAtEachMicroBatch])
def test_accumulation_law_catches(mutant):
    with pytest.raises(AssertionError):
        accumulation_equals_one_large_batch(fit_with(mutant))


def each_batch_is_trained_once(run_class, accumulate):
    seen, sizes = [], []

    class Spy(run_class):
        def train_step(self, group):
            seen.extend((self.epoch, tuple(batch.src[0].tolist())) for batch in group)
            sizes.append(len(group))
            super().train_step(group)

    single = FixedBatches([[pair] for pair in PAIRS[:7]])
    history = fit_with(Spy)(tiny_model(), single, replace(CONFIG, accumulate=accumulate))
    assert Counter(seen) == Counter((epoch, tuple(src)) for epoch in range(2) for src, _ in PAIRS[:7])
    assert sizes == 2 * ([accumulate] * (7 // accumulate) + [7 % accumulate] * (7 % accumulate > 0))
    assert [record["step"] for record in history.epochs] == [math.ceil(7 / accumulate), 2 * math.ceil(7 / accumulate)]


class ZipGroups(Run):
    def rest_of_epoch(self):
        self.batches_left = len(self.batches.plan(self.epoch)) - self.batch
        stream = self.batches.epoch(self.epoch, start=self.batch)
        while group := [batch for batch, _ in zip(stream, range(self.config.accumulate), strict=False)]:
            yield group


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_each_batch_of_an_epoch_is_trained_exactly_once(accumulate):
    each_batch_is_trained_once(Run, accumulate)
    with pytest.raises(AssertionError):
        each_batch_is_trained_once(ZipGroups, accumulate)


def gradients_of_before_play_no_part(train, accumulate):
    """As a learner's own loss.backward() leaves them: the first step is that of a new model."""
    ours, theirs, config = tiny_model(), tiny_model(), replace(CONFIG, accumulate=accumulate)
    for weights in ours.parameters():
        weights.grad = torch.ones_like(weights)
    assert train(ours, UNEQUAL, config).losses == train(theirs, UNEQUAL, config).losses
    assert_same_weights(ours, theirs)


class AddsToThem(Run):
    def __init__(self, model, *args):
        before = [weights.grad for weights in model.parameters()]
        super().__init__(model, *args)
        for weights, gradient in zip(model.parameters(), before, strict=True):
            weights.grad = gradient


@pytest.mark.parametrize("accumulate", [1, 3])
def test_gradients_of_before_play_no_part(accumulate):
    gradients_of_before_play_no_part(fit, accumulate)
    with pytest.raises(AssertionError):
        gradients_of_before_play_no_part(fit_with(AddsToThem), accumulate)


# --- clipping -----------------------------------------------------------------------------------


def clipping_bounds_the_gradient(run_class):
    norms = {}

    def trained(clip_norm):
        class Spy(run_class):
            def __init__(self, *args):
                super().__init__(*args)
                self.optimizer.register_step_pre_hook(self.measure)

            def measure(self, *_):
                grads = [parameter.grad.flatten() for parameter in self.model.parameters()]
                norms.setdefault(clip_norm, []).append(torch.cat(grads).norm().item())

        fit_with(Spy)(tiny_model(), UNEQUAL, replace(CONFIG, clip_norm=clip_norm))

    trained(None)
    bound = sorted(norms[None])[len(norms[None]) // 2]  # some steps are above it
    trained(bound)
    assert max(norms[None]) > 1.1 * bound
    assert max(norms[bound]) <= bound * (1 + 1e-4)
    assert norms[bound][0] == pytest.approx(min(norms[None][0], bound), rel=1e-4)  # no shorter than it must be


class Unclipped(Run):
    def __init__(self, model, batches, config, *args):
        super().__init__(model, batches, replace(config, clip_norm=None), *args)


def test_clipping_bounds_the_norm_of_the_gradient():
    tells_apart(clipping_bounds_the_gradient, Run, Unclipped)


# --- the history --------------------------------------------------------------------------------


def history_tells_the_whole_run(train):
    model, valid = tiny_model(dropout=0.1), FixedBatches([PAIRS[:5], PAIRS[5:8]])
    steps, epochs = [], []

    def on_epoch(model, history):
        epochs.append(dict(history.epochs[-1]))
        return {"sample": len(epochs)}

    def on_step(model, history):
        steps.append(history.losses[-1])

    history = train(model, UNEQUAL, CONFIG, valid=valid, on_step=on_step, on_epoch=on_epoch)
    assert history.stopped == "finished" and not model.training
    assert history.losses == steps and len(steps) == history.total_steps == 6 and all(map(math.isfinite, steps))
    assert history.rates == [learning_rate(CONFIG, n, d_model=16, total_steps=6) for n in range(1, 7)]
    assert [record["epoch"] for record in history.epochs] == [1, 2]
    assert [record["step"] for record in history.epochs] == [3, 6]
    for record, part in zip(history.epochs, (steps[:3], steps[3:]), strict=True):
        assert record["train_loss"] == pytest.approx(sum(part) / 3)
    assert 0 < history.epochs[0]["seconds"] < history.epochs[1]["seconds"] <= history.seconds
    assert 0 < history.epochs[0]["cpu_seconds"] < history.epochs[1]["cpu_seconds"] <= history.cpu_seconds
    assert {name: history.epochs[-1][name] for name in ("valid_loss", "valid_accuracy")} == validate(model, valid)
    assert [record["sample"] for record in history.epochs] == [1, 2]
    assert "valid_loss" in epochs[0], "on_epoch sees the epoch's record"


class Clocks:
    """In the place of the time module: clocks that stand still until they are told."""

    def __init__(self):
        self.wall = self.processor = 0.0

    def pass_by(self, wall, processor):
        self.wall, self.processor = self.wall + wall, self.processor + processor

    def perf_counter(self):
        return self.wall

    def process_time(self):
        return self.processor


def clocks_count_batches_and_steps_and_nothing_between(train):
    """A batch takes 10 seconds of waiting, a step 3 with 2 threads at work; callbacks are not training."""
    clocks = Clocks()

    class SlowBatches(FixedBatches):
        def epoch(self, epoch, *, start=0):
            for batch in super().epoch(epoch, start=start):
                clocks.pass_by(10, 0)
                yield batch

    def slow_loss(*args, **options):
        clocks.pass_by(3, 6)
        return batch_loss(*args, **options)

    pause = lambda *_: clocks.pass_by(100, 100)  # noqa: E731
    with mock.patch.object(run_module, "time", clocks), mock.patch.object(run_module, "batch_loss", slow_loss):
        history = train(tiny_model(), SlowBatches([PAIRS[:5]] * 3), CONFIG, on_step=pause, on_epoch=pause)
    assert (history.seconds, history.cpu_seconds) == (6 * 13, 6 * 6)
    assert [(record["seconds"], record["cpu_seconds"]) for record in history.epochs] == [(39, 18), (78, 36)]


class TimesTheStepsAlone(Run):
    def _next(self, stream):
        return list(islice(stream, self.config.accumulate))


class TakesWallTimeForTheProcessors(Run):
    def train_step(self, group):
        super().train_step(group)
        self.history.cpu_seconds = self.history.seconds


class CountsFromTheStart(Run):
    def train_step(self, group):
        super().train_step(group)
        self.history.seconds = run_module.time.perf_counter()


@pytest.mark.parametrize("mutant", [TimesTheStepsAlone, TakesWallTimeForTheProcessors, CountsFromTheStart])
def test_clocks_count_batches_and_steps_and_nothing_between(mutant):
    tells_apart(clocks_count_batches_and_steps_and_nothing_between, fit, fit_with(mutant))


class MeanOverAllEpochs(Run):
    def finish_epoch(self, valid, on_epoch):
        super().finish_epoch(valid, on_epoch)
        self.history.epochs[-1]["train_loss"] = sum(self.history.losses) / len(self.history.losses)


class NoDropoutAfterCallback(Run):
    def finish_epoch(self, valid, on_epoch):
        super().finish_epoch(valid, on_epoch)
        self.model.eval()


def test_history_tells_the_whole_run():
    tells_apart(history_tells_the_whole_run, fit, fit_with(MeanOverAllEpochs))


def dropout_stays_on_between_epochs(train):
    modes = []
    train(
        tiny_model(),
        UNEQUAL,
        CONFIG,
        valid=UNEQUAL,
        on_step=lambda model, _: modes.append(model.training),
        on_epoch=lambda model, _: model.eval() and None,
    )
    assert modes == [True] * 6


def test_dropout_stays_on_between_epochs():
    tells_apart(dropout_stays_on_between_epochs, fit, fit_with(NoDropoutAfterCallback))


def test_bfloat16_trains_almost_as_float32(monkeypatch):
    exact = fit(tiny_model(), UNEQUAL, CONFIG).losses
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)  # crashes on virtual machines without real AMX units
    mixed = fit(tiny_model(), UNEQUAL, replace(CONFIG, precision="bfloat16")).losses
    assert mixed != exact
    assert mixed == pytest.approx(exact, rel=0.03)
    assert exact[-1] < 0.97 * exact[0], "if nothing were learned, this would compare nothing"


def test_the_seed_fixes_the_dropout():
    def losses(seed):
        return fit(tiny_model(dropout=0.3), BucketedBatches(PAIRS, 20), replace(CONFIG, seed=seed)).losses

    assert losses(1) == losses(1) != losses(2)


def steps_are_adams(train, config):
    """Each field of the configuration acts: a loop by hand, with torch's AdamW for each parameter, does the same."""
    with double_precision():
        ours, theirs = tiny_model(), tiny_model().train()
        history = train(ours, UNEQUAL, config)
        optimizers = [
            torch.optim.AdamW(
                [weights],
                lr=1.0,
                betas=config.betas,
                eps=config.eps,
                weight_decay=config.weight_decay * (weights.dim() > 1),
            )
            for weights in theirs.parameters()
        ]
        groups = [list(UNEQUAL.epoch(0))[:2], list(UNEQUAL.epoch(0))[2:]] * config.epochs
        assert history.total_steps == len(history.losses) == len(groups)
        for step, group in enumerate(groups, 1):
            tokens = sum(batch.num_tokens for batch in group)
            losses = [batch_loss(theirs, batch, smoothing=config.label_smoothing)[0] / tokens for batch in group]
            sum(losses).backward()
            for optimizer in optimizers:
                rate = learning_rate(config, step, d_model=16, total_steps=len(groups))
                optimizer.param_groups[0]["lr"] = rate
                optimizer.step()
                optimizer.zero_grad()
            assert history.losses[step - 1] == pytest.approx(sum(losses).item(), abs=1e-6)
    assert_same_weights(ours, theirs, atol=1e-6)


FIELDS = replace(
    CONFIG, accumulate=2, decay="linear", label_smoothing=0.3, betas=(0.5, 0.7), weight_decay=0.5, peak_lr=0.02
)


def forgets(**fields):
    class Forgets(Run):
        def __init__(self, model, batches, config, *args):
            super().__init__(model, batches, replace(config, **fields), *args)

    return fit_with(Forgets)


class DecaysEverything(Run):
    def __init__(self, *args):
        super().__init__(*args)
        for group in self.optimizer.param_groups:
            group["weight_decay"] = self.config.weight_decay


class CountsFullGroups(Run):
    def __init__(self, *args):
        super().__init__(*args)
        self.history.total_steps = self.config.epochs * (len(self.batches.plan(0)) // self.config.accumulate)


def test_steps_are_adams():
    steps_are_adams(fit, FIELDS)
    defaults = dict(label_smoothing=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, decay="inverse_sqrt")
    wrong = [forgets(**{name: value}) for name, value in defaults.items()]
    for mutant in [*wrong, fit_with(DecaysEverything), fit_with(CountsFullGroups)]:
        with pytest.raises((AssertionError, ValueError)):  # one counts more steps than there are rates
            steps_are_adams(mutant, FIELDS)


def test_the_allocator_setting_says_whether_it_applies():
    assert keep_freed_memory() in (True, False)
    with mock.patch("course_lib.training.allocator.sys.platform", "darwin"):
        assert keep_freed_memory() is False


def law_memory_is_given_back_every_second_step(every):
    with mock.patch.object(run_module, "STEPS_BETWEEN_TRIMS", every):
        with mock.patch.object(run_module, "give_back_memory") as given_back:
            history = fit(tiny_model(), UNEQUAL, CONFIG)
    assert len(history.losses) == 6 and given_back.call_count == 3


def test_memory_is_given_back_now_and_then():
    tells_apart(law_memory_is_given_back_every_second_step, 2, 1, 100)
    assert give_back_memory() in (True, False)
    with mock.patch("course_lib.training.allocator.sys.platform", "darwin"):
        assert give_back_memory() is False
