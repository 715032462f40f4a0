"""The assignments, a folder each: what a learner reads, how it is checked, and answers right and wrong."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["inventory"],
    submod_attrs={
        "catalog": ["FOLDERS", "answer_of", "check", "declared", "find", "load", "variants_for"],
        "inventory": ["what_moved"],
        "variants": ["PUBLISHED", "Variant", "variants_in"],
        "reader": ["CHECK", "Written", "read_text", "with_parts"],
    },
)
