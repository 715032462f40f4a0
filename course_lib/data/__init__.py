"""Sentence pairs: the corpora, and batches of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "augment": ["augmented"],
        "corpus": ["Corpus", "Pair", "describe"],
        "corpora": ["NAMES", "load_corpus"],
        "course": ["load_course"],
        "digits": ["Pictures", "load_digits"],
        "scenes": ["NEW_THINGS", "WORDS", "Scene", "compose", "draw_scenes", "make_scenes"],
        "batches": ["Batch", "BucketedBatches", "IdPair", "encode_pairs", "make_batch", "pad"],
    },
)
