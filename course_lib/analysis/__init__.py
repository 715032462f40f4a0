"""What is inside: of a tokenizer, of a model's shape, of what its heads attend to; and claims put to the test."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "merges": ["Merges", "learn_merges"],
        "anatomy": ["Station", "stations"],
        "alignment": [
            "alignment_error_rate",
            "corpus_error_rate",
            "diagonal_links",
            "strongest_links",
            "word_spans",
            "word_weights",
        ],
        "ibm": ["Ibm1", "train_ibm1"],
        "ablation": ["Head", "ablate_heads", "all_heads"],
        "claims": ["VERDICTS", "Claim", "LabBook", "Page", "written"],
        "exploration": ["Candidate", "Exploration", "explore"],
        "relations": ["PREVIOUS", "Case", "Goal", "Role", "find_role", "goals", "previous_tokens"],
        "films": ["Film", "Scene", "film"],
    },
)
