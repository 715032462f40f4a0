"""Interactive views for JupyterLab and its relatives; what they show is computed by the library."""

from course_lib.widgets.architecture import ArchitectureMap
from course_lib.widgets.beam_tree import BeamTreeExplorer
from course_lib.widgets.calculator import AttentionCalculator
from course_lib.widgets.decoder_stepper import DecoderStepper
from course_lib.widgets.depth import DepthExplorer
from course_lib.widgets.explorer import AttentionExplorer
from course_lib.widgets.mask_painter import MaskPainter
from course_lib.widgets.merge_stepper import MergeStepper
from course_lib.widgets.playground import Playground
from course_lib.widgets.position_explorer import PositionExplorer
from course_lib.widgets.sampling import SamplingSliders
from course_lib.widgets.schedule import ScheduleExplorer
from course_lib.widgets.training import TrainingDashboard

__all__ = [
    "ArchitectureMap",
    "AttentionCalculator",
    "AttentionExplorer",
    "BeamTreeExplorer",
    "DecoderStepper",
    "DepthExplorer",
    "MaskPainter",
    "MergeStepper",
    "Playground",
    "PositionExplorer",
    "SamplingSliders",
    "ScheduleExplorer",
    "TrainingDashboard",
]
