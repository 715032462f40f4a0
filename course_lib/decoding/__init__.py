"""From a source sentence to target ids: greedy, sampled, or with a beam, one decoder step after another."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "limits": ["check_search", "normalized"],
        "steps": ["Hypothesis", "Steps", "output_limits"],
        "one_path": ["cut", "greedy", "place_log_probs", "sample", "sampling_probs"],
        "beam": [
            *("BeamNode", "BeamTree", "beam_search", "record_beam"),
            *("DROPPED", "FINISHED", "KEPT", "UNFINISHED"),
        ],
    },
)
