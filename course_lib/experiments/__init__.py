"""Experiments that take longer than a lesson: grids of runs, each made again by one command."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "catalog": ["NAMES", "find_grid"],
        "family_models": [
            *("CAPTIONS", "CHARACTERS", "captions_of", "fit", "next_loss", "parse", "right_share", "some"),
            *("train_captioner", "train_classifier", "train_digits", "train_on_holes", "train_parser", "train_writer"),
        ],
        "families": ["sentences_to_write", "tree_bank", "words_of"],
        "grid": ["Grid", "run_grid"],
        "odd_words": ["labeled_sentences"],
        "positions": ["VOCABULARY", "Reader", "named_last", "right_answers", "train_reader"],
        "record": ["final_results", "read_record"],
        "word_ids": ["WordIds"],
    },
)
