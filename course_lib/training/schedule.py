"""The learning rate as a pure function of the step."""

import math

from course_lib.config import check_sizes
from course_lib.training.config import TrainConfig


def paper_rate(step: int, *, d_model: int, warmup_steps: int) -> float:
    """d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5): up in a line, then down with the root of the step.

    Args:
        step: from 1 on.
        d_model: width of the model.
        warmup_steps: step of the peak.

    Raises:
        ValueError: if step is less than 1, or d_model or warmup_steps no whole number from 1 on.

    Paper: section 5.3, equation 3.
    """
    check_sizes(d_model=d_model, warmup_steps=warmup_steps)
    if not 1 <= step < math.inf:
        raise ValueError(f"steps count from 1, got {step}")
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def learning_rate(config: TrainConfig, step: int, *, d_model: int, total_steps: int) -> float:
    """The rate of a training run at a step: the paper's, scaled to the configured peak, or with a linear decay.

    Args:
        config: peak_lr, warmup_steps and decay are read.
        step: from 1 on.
        d_model: width of the model, sets the peak if peak_lr is None.
        total_steps: the last step of the run, where the linear decay arrives at one step above 0.

    Raises:
        ValueError: as paper_rate; with the linear decay also on a step beyond the first after the last one, where the
            rate is 0 (a scheduler asks for that one before it ends).
    """
    check_sizes(total_steps=total_steps)
    if config.decay == "linear" and step > total_steps + 1:
        raise ValueError(f"a run of {total_steps} steps has no learning rate at step {step}")
    paper = paper_rate(step, d_model=d_model, warmup_steps=config.warmup_steps)
    paper_peak = paper_rate(config.warmup_steps, d_model=d_model, warmup_steps=config.warmup_steps)
    peak = config.peak_lr or paper_peak
    if config.decay == "inverse_sqrt" or step <= config.warmup_steps:
        return peak * paper / paper_peak
    return peak * (total_steps - step + 1) / (total_steps - config.warmup_steps + 1)
