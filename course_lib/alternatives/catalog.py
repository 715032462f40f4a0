"""The architectures by name, each as large as a given Transformer."""

from torch import nn

from course_lib.alternatives.convolutional import ConvolutionalModel, convolutional_like
from course_lib.alternatives.recurrent import AttentiveRNN, recurrent_like
from course_lib.alternatives.state_space_model import StateSpaceModel, state_space_like
from course_lib.config import ModelConfig

ALTERNATIVES = ("lstm", "gru", "convolutional", "state space")


def model_like(name: str, config: ModelConfig, **changes) -> nn.Module:
    """A new model that is most nearly as large as a Transformer, with its vocabulary and d_model.

    Args:
        name: one of ALTERNATIVES.
        config: the Transformer's.
        changes: fields of the model's own configuration.

    Raises:
        ValueError: on an unknown name.
    """
    match name:
        case "lstm" | "gru":
            return AttentiveRNN(recurrent_like(config, cell=name, **changes))
        case "convolutional":
            return ConvolutionalModel(convolutional_like(config, **changes))
        case "state space":
            return StateSpaceModel(state_space_like(config, **changes))
    raise ValueError(f"architecture must be one of {', '.join(ALTERNATIVES)}, got {name!r}")
