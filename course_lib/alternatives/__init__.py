"""Other architectures behind the Transformer's interface."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "catalog": ["ALTERNATIVES", "config_from_values", "config_to_values", "model_like", "model_of"],
        "convolutional": ["ConvolutionalConfig", "ConvolutionalModel", "GatedConvolution", "convolutional_like"],
        "recurrent": ["AttentiveRNN", "RecurrentConfig", "recurrent_like"],
        "selective": ["SelectiveMixing", "SelectiveStateSpace"],
        "state_space": ["DiagonalStateSpace", "StateSpaceMixing"],
        "state_space_model": ["StateSpaceConfig", "StateSpaceModel", "state_space_like"],
    },
)
