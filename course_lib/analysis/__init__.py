"""What is inside: of a tokenizer, of a model's shape, of what its heads attend to; and claims put to the test."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "merges": ["Merges", "learn_merges"],
        "anatomy": ["Station", "stations"],
        "alignment": [
            "alignment_error_rate",
            "column_links",
            "corpus_error_rate",
            "diagonal_links",
            "error_rate_estimate",
            "strongest_links",
            "word_spans",
            "word_weights",
        ],
        "ibm": ["Aligner", "diagonal_prior", "train_fast_align", "train_ibm1"],
        "ablation": ["Head", "ablate_heads", "all_heads"],
        "claims": ["VERDICTS", "Claim", "LabBook", "Page", "written"],
        "exploration": ["Candidate", "Exploration", "explore"],
        "relations": ["PREVIOUS", "Case", "Goal", "Role", "control_rows", "find_role", "goals", "previous_tokens"],
        "probes": ["Label", "Probe", "fit_probe", "layer_states", "word_labels"],
        "films": ["Film", "Scene", "film"],
    },
)
