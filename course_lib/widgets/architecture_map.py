"""The architecture map: the paper's figure 1 as boxes, each with its shapes, parameters and FLOPs."""

from dataclasses import asdict, replace

import traitlets as t

from course_lib.analysis import stations
from course_lib.config import ModelConfig, model_preset
from course_lib.figures import CourseFigure, architecture_figure
from course_lib.widgets.base import CourseWidget

SIZES = ("d_model", "num_heads", "num_layers", "d_ff")
PAPER = ("base", "big")


class ArchitectureMap(CourseWidget):
    """Shows where a model's parameters and FLOPs are; the kernel counts, for each move of a slider.

    Args:
        config: sizes to begin with; its norm_first, position and tie_weights stay.
        src_len, tgt_len: tokens of the sentence pair.
        box: name of the station that is looked into, see course_lib.analysis.stations.

    Raises:
        ValueError: if there is no such box, or a length is below 1.
    """

    d_model = t.Int().tag(sync=True)
    num_heads = t.Int().tag(sync=True)
    num_layers = t.Int().tag(sync=True)
    d_ff = t.Int().tag(sync=True)
    vocab_size = t.Int().tag(sync=True)
    src_len = t.Int().tag(sync=True)
    tgt_len = t.Int().tag(sync=True)
    box = t.Unicode().tag(sync=True)
    measure = t.Enum(("parameters", "flops"), "parameters").tag(sync=True)  # whose shares the boxes show
    presets = t.Dict().tag(sync=True)  # the paper's models: name to sizes
    view = t.Dict().tag(sync=True)  # the boxes and their sums
    message = t.Unicode().tag(sync=True)

    def __init__(self, config: ModelConfig, *, src_len: int = 7, tgt_len: int = 7, box: str = "encoder self-attention"):
        names = [station.name for station in stations(config, src_len, tgt_len)]
        if box not in names:
            raise ValueError(f"box must be one of {', '.join(names)}; got {box!r}")
        self.config = config
        sizes = {name: getattr(config, name) for name in (*SIZES, "vocab_size")}
        paper = {name: model_preset(name, config.vocab_size) for name in PAPER}
        presets = {name: {size: getattr(model, size) for size in SIZES} for name, model in paper.items()}
        super().__init__(**sizes, src_len=src_len, tgt_len=tgt_len, box=box, presets=presets)
        self._count()
        self.observe(lambda _: self._count(), [*sizes, "src_len", "tgt_len"])

    def _count(self) -> None:
        try:
            sizes = {name: getattr(self, name) for name in (*SIZES, "vocab_size")}
            config = replace(self.config, **sizes)
            boxes = stations(config, self.src_len, self.tgt_len)
        except ValueError as error:
            self.message = str(error)
            return
        self.config = config
        with self.hold_sync():
            self.message = ""
            self.view = {
                "boxes": [
                    asdict(box) | {"shapes": [[name, *shape] for name, shape in box.shapes.items()]} for box in boxes
                ],
                "parameters": config.num_parameters,
                "flops": sum(config.flop_counts(self.src_len, self.tgt_len).values()),
                "bytes": sum(config.memory_bytes().values()),
                "layers": config.num_layers,
                "lengths": [self.src_len, self.tgt_len],
            }

    def picture(self) -> CourseFigure:
        """The boxes with their parameters, as a figure."""
        src_len, tgt_len = self.view["lengths"]
        flops = f"{self.view['flops'] / 1e9:.2f} billion FLOPs for {src_len:,} + {tgt_len:,} tokens"
        title = f"{self.config.num_parameters / 1e6:.1f} million parameters, {flops}"
        return architecture_figure(stations(self.config, src_len, tgt_len), title=title)
