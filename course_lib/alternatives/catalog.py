"""All architectures by name: as large as a given Transformer, or of a configuration that was written down."""

from dataclasses import replace

from torch import nn

from course_lib.alternatives.convolutional import ConvolutionalConfig, ConvolutionalModel, convolutional_like
from course_lib.alternatives.recurrent import AttentiveRNN, RecurrentConfig, recurrent_like
from course_lib.alternatives.state_space_model import StateSpaceConfig, StateSpaceModel, state_space_like
from course_lib.config import ARCHITECTURES, ModelConfig, check_architecture, require
from course_lib.transformer import Transformer

ALTERNATIVES = ARCHITECTURES[1:]
KINDS = {
    "transformer": (ModelConfig, Transformer),
    "lstm": (RecurrentConfig, AttentiveRNN),
    "gru": (RecurrentConfig, AttentiveRNN),
    "convolutional": (ConvolutionalConfig, ConvolutionalModel),
    "state space": (StateSpaceConfig, StateSpaceModel),
}


def model_like(name: str, config: ModelConfig, **changes) -> nn.Module:
    """A new model that is most nearly as large as a Transformer, with its vocabulary and d_model.

    Args:
        name: one of ARCHITECTURES.
        config: the Transformer's.
        changes: fields of the model's own configuration.

    Raises:
        ValueError: on an unknown name.
    """
    check_architecture(name)
    match name:
        case "lstm" | "gru":
            return model_of(recurrent_like(config, cell=name, **changes))
        case "convolutional":
            return model_of(convolutional_like(config, **changes))
        case "state space":
            return model_of(state_space_like(config, **changes))
    return model_of(replace(config, **changes))


def model_of(config) -> nn.Module:
    """A new model of a configuration, of whichever architecture."""
    return KINDS[config.architecture][1](config)


def config_to_values(config) -> dict:
    """A configuration as plain JSON values, which say what architecture it is unless it is a Transformer."""
    named = {} if config.architecture == "transformer" else {"architecture": config.architecture}
    return named | config.to_dict()


def config_from_values(values: dict):
    """The configuration that config_to_values wrote; ValueError on what it cannot have written."""
    require(isinstance(values, dict), f"expected names with values, got {values!r:.60}")
    name = values.get("architecture", "transformer")
    check_architecture(name)
    if name == "transformer":
        return ModelConfig.from_dict(values)
    config = KINDS[name][0].from_dict({field: value for field, value in values.items() if field != "architecture"})
    require(config.architecture == name, f"architecture is {name!r}, but the other values are of {config.architecture}")
    return config
