"""Experiments that take longer than a lesson: grids of runs, each made again by one command."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["corpus_size"],
    submod_attrs={
        "architectures": ["new_model", "train_model"],
        "broken_runs": ["FAULTS", "broken_run"],
        "catalog": ["NAMES", "find_grid"],
        "distillation": ["train_student"],
        "depth": [
            "CHILDREN",
            "Chaser",
            "chase_loss",
            "draw_names",
            "look_up",
            "own_share",
            "chased_share",
            "train_chaser",
        ],
        "echo": ["echo_model", "echoes"],
        "family_models": [
            *("CAPTIONS", "CHARACTERS", "captions_of", "fit", "next_loss", "parse", "right_share", "some"),
            *("train_captioner", "train_classifier", "train_digits", "train_on_holes", "train_parser", "train_writer"),
        ],
        "families": ["sentences_to_write", "tree_bank", "words_of"],
        "grid": ["Grid", "run_grid"],
        "odd_words": ["labeled_sentences"],
        "positions": ["VOCABULARY", "Reader", "named_last", "right_answers", "train_reader"],
        "recall": [
            *("BINS", "FACTS", "QUESTIONS", "THINGS"),
            *("reader_of_size", "right_by_distance", "stories", "train_to_recall"),
        ],
        "record": ["final_results", "read_record"],
        "training_script": ["Parts", "ScriptRun", "retrained"],
        "timed": ["seconds_a_step", "train_for"],
        "warmup": ["copied", "copy_pairs", "train_copier"],
        "word_ids": ["WordIds"],
    },
)
