"""The same translations at a lower price: weights of one byte, and small models that learn from large ones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "quantization": ["quantized", "weight_bytes"],
        "distillation": ["distillation_loss", "translated", "word_level"],
    },
)
