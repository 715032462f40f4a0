"""Figures: arrays and labels in, a Matplotlib figure out; nothing here knows a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "canvas": ["CourseFigure", "new_figure", "styled"],
        "matrices": ["Panel", "attention_grid", "attention_map", "mask_grid", "panels", "signed_matrix"],
        "charts": ["curves"],
        "row_charts": ["bars", "dots", "intervals", "stacked_bars"],
        "architecture": ["architecture_figure"],
        "beam_tree": ["beam_figure"],
        "clocks": ["clock_faces"],
        "flow": ["Block", "flow_figure"],
    },
)
