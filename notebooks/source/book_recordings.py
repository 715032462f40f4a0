"""Which widgets move over recorded states in the page, and over which: several examples of each."""

from collections.abc import Callable
from functools import cache

from course_lib.config import model_preset
from course_lib.translator import Translator
from course_lib.widgets import (
    ArchitectureMap,
    BeamTreeExplorer,
    DecoderStepper,
    DepthExplorer,
    MergeStepper,
    SamplingSliders,
    ScheduleExplorer,
)
from notebooks.source.book_recorded import Recorded, Table, defined

translator = cache(Translator.from_pretrained)


def half_trained() -> Translator:
    """The one that lesson 11 decodes with."""
    return translator("course", step=933)


MERGED = (
    "The cat sleeps. The cat sees the dog. The dog sees the cat.",
    "The cat sleeps. The cat sleeps. The cat sees the dog. The dog sees the cat.",
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest",
    "Wenn Fliegen hinter Fliegen fliegen, fliegen Fliegen Fliegen nach.",
    "She sells sea shells by the sea shore. The shells she sells are sea shells.",
    "aaabdaaabac",
)
STEPPED = (
    "The cat sees the dog.",
    "The old woman gives the child a red apple.",
    "Which boy does the teacher have to call?",
    "The man whom the child sees sleeps.",
    "She does not see him.",
)
SEARCHED = (
    "He was not clever.",
    "I sang three days ago.",
    "What have you given to your grandmother?",
    "Did my daughter find the dogs?",
)
DRAWN = ("The shirt lies there.", "I sang three days ago.", "The cat sleeps.")
PLACES = tuple(range(10))  # more than the translations of DRAWN have tokens
LENGTHS = (7, 50, 300, 1000, 2000, 4000)
DEPTHS = (24, 1, 2, 4, 6, 8, 12, 16, 32, 48)


def _probe() -> Callable:
    """What lesson 06 defines for its explorer."""
    names = ("Switched", "build", "draws", "answers", "loss_of", "through_the_stack")
    return defined("06_encoder", *names)["through_the_stack"]


RECORDED = {
    "merge_stepper": Recorded(
        "01_text_to_tensors",
        "stepper",
        MergeStepper,
        lambda: MergeStepper(MERGED[0]),
        (Table({"text": MERGED}, ("merges", "view")),),
        "every merge of six texts",
        off=("text", "Learn"),
    ),
    "depth_explorer": Recorded(
        "06_encoder",
        "explorer",
        DepthExplorer,
        lambda: DepthExplorer(_probe(), depth=DEPTHS[0]),
        (
            Table(
                {"depth": DEPTHS, "residual": (True, False), "norm": ("pre", "", "post"), "seed": (0, 1, 2)}, ("view",)
            ),
        ),
        "stacks of ten depths in all six ways, with three draws of the weights",
        turns=("seed",),
    ),
    "decoder_stepper": Recorded(
        "07_decoder",
        "stepper",
        DecoderStepper,
        lambda: DecoderStepper(translator("course"), STEPPED[0], step=5),
        (Table({"text": STEPPED}, ("step", "view", "cross", "own")),),
        "every step, layer and head for five sentences",
        off=("English", "Translate"),
    ),
    "architecture_map": Recorded(
        "08_transformer",
        "ArchitectureMap(base)",
        ArchitectureMap,
        lambda: ArchitectureMap(model_preset("base", vocab_size=37_000)),
        (
            Table(
                {"d_model": (512, 1024), "num_heads": (8, 16), "d_ff": (2048, 4096)}
                | {"src_len": LENGTHS, "tgt_len": LENGTHS},
                ("view",),
            ),
        ),
        "the sizes of base and big in any mixture, and sentences of six lengths",
        off=("layers", "subwords"),
    ),
    "schedule_explorer": Recorded(
        "09_training",
        "ScheduleExplorer(d_model=512, warmup_steps=4000)",
        ScheduleExplorer,
        lambda: ScheduleExplorer(d_model=512, warmup_steps=4000),
        (
            Table(
                {"d_model": (512, 64, 96, 128, 256, 1024, 2048), "warmup_steps": (4000, 2000, 8000, 16000)}
                | {"total_steps": (100_000, 700, 10_000, 300_000), "decay": ("inverse_sqrt", "linear")},
                ("view",),
            ),
        ),
        "every choice with warm-ups of 2,000, 4,000, 8,000 and 16,000 steps",
    ),
    "sampling_sliders": Recorded(
        "11_decoding",
        "sliders",
        SamplingSliders,
        lambda: SamplingSliders(half_trained(), DRAWN[0], place=1),
        (
            Table({"text": DRAWN, "place": (1, 0, *PLACES[2:])}, ("place", "pieces", "tokens", "log_probs")),
            Table(
                {"text": DRAWN, "temperature": (1.0, 0.5, 1.5, 2.0), "top_k": (0, 5), "top_p": (1.0, 0.9)}, ("drawn",)
            ),
        ),
        "three sentences, drawn under each of sixteen settings, to which the sliders go",
        off=("English", "Translate", "seed"),
    ),
    "beam_tree_explorer": Recorded(
        "11_decoding",
        "explorer",
        BeamTreeExplorer,
        lambda: BeamTreeExplorer(half_trained(), SEARCHED[0], beam_size=4),
        (Table({"text": SEARCHED}, ("beams",)),),
        "every beam and length penalty for four sentences",
        off=("English", "Search"),
    ),
}
