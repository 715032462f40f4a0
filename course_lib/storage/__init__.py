"""Files that are written whole or not at all, tensors in them, and where translators are; text alone loads no torch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "files": ["check_files", "hashes", "read_as", "read_bytes", "read_text", "remove_half_written", "replacing"],
        "checkpoint": ["average_checkpoints", "check_enough", "load_tensors", "load_weights", "save_tensors"],
        "translators": ["PRETRAINED", "SHIPPED", "saved_steps", "step_file", "translator_folder", "weights_file"],
    },
)
