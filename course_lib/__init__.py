"""The Transformer of "Attention Is All You Need", and a course around it. Each name is loaded at its first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["ModelConfig", "model_preset"],
        "tokenizer": ["Tokenizer"],
        "attention": ["MultiHeadAttention"],
        "transformer": ["Transformer"],
        "decoding": ["beam_search", "greedy"],
        "recording": ["record_attention"],
        "translator": ["Translation", "Translator"],
    },
)
