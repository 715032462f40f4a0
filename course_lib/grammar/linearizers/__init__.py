"""From a syntax tree to words: one linearizer for each language."""
