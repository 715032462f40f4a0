"""Models of other shapes from the same blocks: encoder only, decoder only, of pictures, from pictures to text."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "texts": ["LanguageModel", "MaskedLanguageModel", "TextClassifier", "TextEncoder"],
        "masking": ["UNASKED", "mask_tokens"],
        "pictures": ["Captioner", "PatchEmbedding", "PictureEncoder", "VisionTransformer"],
        "writing": ["write"],
    },
)
