"""Other architectures behind the Transformer's interface."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "lstm": ["AttentiveLSTM", "LstmConfig", "lstm_like"],
    },
)
