"""What a training takes: operations, hours on some devices, and money; needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.config import ModelConfig, model_preset, require

# Operations a second of one device: the first four as the paper counts them, in single precision (footnote 5); the
# others with matrices in bfloat16, from their maker's data sheets.
PEAKS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12, "A100": 312e12, "H100": 989e12}
PAPER_VOCABULARY = 37_000  # English-German, both languages together
PAPER_TOKENS = 25_000  # of each language, in a batch
PAPER_STEPS = {"base": 100_000, "big": 300_000}
PAPER_HOURS = {"base": 12.0, "big": 84.0}  # on 8 P100
PAPER_DEVICES = 8


def training_flops(model: ModelConfig, *, steps: int, batch_tokens: int, length: int = 25) -> float:
    """Operations of a training: three times those of the forward passes, as each product has two gradients.

    Args:
        model: its sizes.
        steps: of the training.
        batch_tokens: of a batch, source tokens and as many target tokens.
        length: of a sentence, in tokens.
    """
    forward = sum(model.flop_counts(length, length).values())
    return 3.0 * forward * (batch_tokens / length) * steps


def speed_up(devices: int, serial: float) -> float:
    """How many times as fast as one device: Amdahl's law, for the share of one device's time that stays serial."""
    return 1 / (serial + (1 - serial) / devices)


def serial_share(devices: Sequence[int], rates: Sequence[float]) -> float:
    """The serial share with which Amdahl's law is nearest to measured rates, by least squares of the times.

    Args:
        devices: numbers of devices; the first is 1.
        rates: work a second with each.

    Returns:
        the share; below 0 where the devices were faster than the law allows.

    Raises:
        ValueError: if the first number is not 1, or there is no other.
    """
    require(len(devices) == len(rates) and len(devices) > 1, "expected a rate for each of at least 2 numbers")
    require(devices[0] == 1, f"expected the rate of 1 device first, got {devices[0]}")
    times = [rates[0] / rate for rate in rates]  # of one unit of work, in units of one device's time
    free = [1 - 1 / count for count in devices]  # time = 1/count + share · (1 - 1/count)
    gained = sum(left * (time - 1 / count) for left, time, count in zip(free, times, devices, strict=True))
    return gained / sum(left * left for left in free)


@dataclass(frozen=True)
class Budget:
    """A training on some devices, and what it takes.

    Args:
        preset: of the model, with the paper's vocabulary.
        steps: of the training.
        device: one of PEAKS.
        devices: how many.
        utilization: share of the peak that is used, in (0, 1].
        serial: share of one device's time that more devices do not shorten, in [0, 1].
        price: of one device for an hour.

    Raises:
        ValueError: if a value is outside its range.
    """

    preset: str = "base"
    steps: int = PAPER_STEPS["base"]
    device: str = "P100"
    devices: int = PAPER_DEVICES
    utilization: float = 0.3
    serial: float = 0.0
    price: float = 0.0

    def __post_init__(self):
        require(self.device in PEAKS, f"device must be one of {', '.join(PEAKS)}; got {self.device!r}")
        require(self.steps >= 1 and self.devices >= 1, f"expected steps and devices, got {self.steps}, {self.devices}")
        require(0 < self.utilization <= 1, f"utilization must be in (0, 1], got {self.utilization}")
        require(0 <= self.serial <= 1, f"serial must be in [0, 1], got {self.serial}")
        require(self.price >= 0, f"price must not be negative, got {self.price}")

    @property
    def flops(self) -> float:
        """Operations of the training."""
        model = model_preset(self.preset, PAPER_VOCABULARY)
        return training_flops(model, steps=self.steps, batch_tokens=PAPER_TOKENS)

    @property
    def hours(self) -> float:
        """Of the training."""
        rate = PEAKS[self.device] * self.utilization * speed_up(self.devices, self.serial)
        return self.flops / rate / 3600

    @property
    def money(self) -> float:
        """In the currency of the price."""
        return self.hours * self.devices * self.price

    @property
    def capacity(self) -> float:
        """Operations that the devices could have done in these hours: what the paper prints as training cost."""
        return capacity(self.hours, self.devices, self.device)


def capacity(hours: float, devices: int, device: str) -> float:
    """Operations that devices can do at their peak in some hours. Paper: section 6.1, footnote 5."""
    return hours * 3600 * devices * PEAKS[device]


def paper_utilization(preset: str) -> float:
    """The share of the peak that the paper's own training of `base` or `big` used, if our count is right."""
    flops = Budget(preset=preset, steps=PAPER_STEPS[preset]).flops
    return flops / capacity(PAPER_HOURS[preset], PAPER_DEVICES, "P100")
