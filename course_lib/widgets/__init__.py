"""Interactive widgets: controls and views; what they show is computed by the library."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "architecture_map": ["ArchitectureMap"],
        "attention_calculator": ["AttentionCalculator"],
        "attention_explorer": ["AttentionExplorer"],
        "beam_tree_explorer": ["BeamTreeExplorer"],
        "budget_planner": ["BudgetPlanner"],
        "cost_calculator": ["CostCalculator"],
        "decoder_stepper": ["DecoderStepper"],
        "depth_explorer": ["DepthExplorer"],
        "errata_lab": ["ErrataLab"],
        "live_training": ["LiveTraining"],
        "mask_painter": ["MaskPainter"],
        "merge_stepper": ["MergeStepper"],
        "model_playground": ["ModelPlayground"],
        "offset_explorer": ["OffsetExplorer"],
        "playground": ["Playground"],
        "position_explorer": ["PositionExplorer"],
        "predict": ["Predict", "Predictions"],
        "race_viewer": ["RaceViewer"],
        "sampling_sliders": ["SamplingSliders"],
        "schedule_explorer": ["ScheduleExplorer"],
        "training_dashboard": ["TrainingDashboard"],
    },
)
