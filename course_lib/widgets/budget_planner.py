"""The budget planner: what the paper's training takes on other devices, in operations, hours and money."""

import traitlets as t

from course_lib.figures import CourseFigure, curves
from course_lib.training import PEAKS, Budget
from course_lib.widgets.base import CourseWidget, short

PRESETS = {"base": "base (27.3 BLEU)", "big": "big (28.4 BLEU)"}
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STEPS = (10_000, 100_000, 300_000)


class BudgetPlanner(CourseWidget):
    """Plans a training on WMT14 with the paper's batches; the hours are drawn for 1 to 256 devices.

    Args:
        preset: "base" or "big".
        steps: of the training, one of STEPS.
        device: one of PEAKS.
        devices: how many, one of COUNTS.
        utilization: percent of the peak that is used, 1 to 100.
        serial: percent of one device's time that more devices do not shorten, 0 to 50.
        price: of one device for an hour, in any currency, 0 to 20.

    Raises:
        ValueError: on a value that no control has.

    Paper: sections 5.2 and 6.1, table 2.
    """

    preset = t.Unicode("base").tag(sync=True)
    steps = t.Int(100_000).tag(sync=True)
    device = t.Unicode("P100").tag(sync=True)
    devices = t.Int(8).tag(sync=True)
    utilization = t.Int(29, min=1, max=100).tag(sync=True)
    serial = t.Float(0.0, min=0.0, max=50.0).tag(sync=True)
    price = t.Float(0.0, min=0.0, max=20.0).tag(sync=True)
    view = t.Dict().tag(sync=True)  # flops, hours, money, capacity, and the curve: counts, their hours, and ideal ones
    limits = t.Dict(
        {"presets": [list(each) for each in PRESETS.items()], "steps": list(STEPS), "counts": list(COUNTS)}
        | {"devices": [[name, f"{name}, {peak / 1e12:g} TFLOPS"] for name, peak in PEAKS.items()]}
    ).tag(sync=True)

    def __init__(
        self,
        *,
        preset: str = "base",
        steps: int = 100_000,
        device: str = "P100",
        devices: int = 8,
        utilization: int = 29,
        serial: float = 0.0,
        price: float = 0.0,
    ):
        for name, value, known in (
            ("preset", preset, PRESETS),
            ("steps", steps, STEPS),
            ("device", device, PEAKS),
            ("devices", devices, COUNTS),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(str, known))}; got {value!r}")
        for name, value, low, high in (
            ("utilization", utilization, 1, 100),
            ("serial", serial, 0, 50),
            ("price", price, 0, 20),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name} must be in {low}..{high}, got {value}")
        given = dict(preset=preset, steps=steps, device=device, devices=devices, utilization=utilization)
        super().__init__(**given, serial=serial, price=price)
        self._compute()
        self.observe(lambda _: self._compute(), [*given, "serial", "price"])

    def budget(self, devices: int | None = None, serial: float | None = None) -> Budget:
        """The plan as the library has it, with another number of devices or serial share (percent) if given."""
        return Budget(
            preset=self.preset,
            steps=self.steps,
            device=self.device,
            devices=devices or self.devices,
            utilization=self.utilization / 100,
            serial=(self.serial if serial is None else serial) / 100,
            price=self.price,
        )

    def _compute(self) -> None:
        plan = self.budget()
        self.view = {
            "flops": plan.flops,
            "hours": plan.hours,
            "money": plan.money,
            "capacity": plan.capacity,
            "counts": list(COUNTS),
            "planned": [self.budget(count).hours for count in COUNTS],
            "ideal": [self.budget(count, 0.0).hours for count in COUNTS],
        }

    def picture(self) -> CourseFigure:
        """Hours against devices, and the plan as a point."""
        series = {f"{self.serial:g} % serial": (COUNTS, self.view["planned"])}
        if self.serial:
            series["nothing serial"] = (COUNTS, self.view["ideal"])
        hours = self.view["hours"]
        figure = curves(
            series,
            xlabel=f"number of {self.device}",
            ylabel="hours",
            title=f"{self.preset}, {self.steps:,} steps: {short(self.view['flops'])} FLOPs, "
            f"{hours:,.1f} hours on {self.devices} {self.device}",
            log_x=True,
            log_y=True,
            marks={"the plan": (self.devices, hours)},
        )
        (axes,) = figure.axes
        axes.set_xticks(COUNTS, map(str, COUNTS))
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:,.10g}")  # 100, not a power of ten
        return figure
