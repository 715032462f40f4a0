"""A translator for a page in the browser: two ONNX graphs that share one file of int8 weights."""

import hashlib
import json
import logging
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from onnx import ModelProto, TensorProto, helper, numpy_helper
from torch import nn

from course_lib.storage import replacing
from course_lib.transformer import Transformer, eval_mode
from course_lib.translator import Translator
from notebooks.source.book_graphs import DecoderGraph, EncoderGraph

WEIGHTS = "weights.bin"
SMALLEST = 4096  # numbers: a tensor that has fewer stays as it is


def export(translator: Translator, folder: str | Path) -> None:
    """Writes encoder.onnx, decoder.onnx, their common weights.bin, tokenizer.json, and config.json with all sizes.

    The weights are float32 in the graphs and on disk int8, each row of a matrix with a scale, as in `save_tensors`.

    Args:
        translator: with positions that are added to the tokens.
        folder: is made if missing.

    Raises:
        ValueError: if its positions are not added.
    """
    model, folder = translator.model, Path(folder)
    config = model.config
    if config.position not in ("sinusoidal", "learned"):
        raise ValueError(f"expected positions that are added to the tokens, got {config.position!r}")
    folder.mkdir(parents=True, exist_ok=True)
    with eval_mode(model):
        graphs = {"encoder": _encoder(model), "decoder": _decoder(model)}
    with replacing(folder / WEIGHTS) as path, open(path, "wb") as file:
        shared = _SharedWeights(file)
        for name, graph in graphs.items():
            shared.take(graph, exact=model.tgt_embedding.position.table.shape)
            with replacing(folder / f"{name}.onnx") as target:
                target.write_bytes(graph.SerializeToString())
    translator.tokenizer.save(folder / "tokenizer.json")
    sizes = {
        name: (folder / name).stat().st_size for name in (WEIGHTS, "encoder.onnx", "decoder.onnx", "tokenizer.json")
    }
    (folder / "config.json").write_text(json.dumps(config.to_dict() | {"sizes": sizes}) + "\n", encoding="utf-8")


def _encoder(model: Transformer):
    src = torch.ones(1, 5, dtype=torch.long)
    audible = torch.ones(model.config.num_layers, model.config.num_heads)
    return _traced(
        EncoderGraph(model),
        {"src": src, "audible": audible},
        ["memory_keys", "memory_values", "weights"],
        {"src": {1: torch.export.Dim("src_len", min=1)}, "audible": None},
    )


def _decoder(model: Transformer):
    config = model.config
    lengths = {"keys": 3, "values": 3, "memory_keys": 5, "memory_values": 5}
    shape = (config.num_layers, config.num_heads)
    inputs = {"token": torch.ones(1, 1, dtype=torch.long)}
    inputs |= {name: torch.zeros(*shape, length, config.d_k) for name, length in lengths.items()}
    inputs |= {"audible": torch.ones(shape), "audible_cross": torch.ones(shape)}  # no two inputs may be one tensor
    past, src_len = {2: torch.export.Dim("past", min=0)}, {2: torch.export.Dim("src_len", min=1)}
    dynamic = {"keys": past, "values": past, "memory_keys": src_len, "memory_values": src_len}
    outputs = ["logits", "new_keys", "new_values", "weights", "cross_weights"]
    return _traced(DecoderGraph(model), inputs, outputs, {name: dynamic.get(name) for name in inputs})


def _traced(graph: nn.Module, inputs: dict, outputs: list[str], dynamic: dict):
    """The graph as an ONNX model with its weights inside."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # else it tells of torchvision, which nobody asked for
    with warnings.catch_warnings():  # of PyTorch's own exporter, about itself
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            graph.eval(),
            kwargs=inputs,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes=dynamic,
            dynamo=True,
            verbose=False,
        )
    return program.model_proto


class _SharedWeights:
    """One file for the weights of several graphs; what two of them have is written once."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.places: dict[bytes, int] = {}  # digest of the content to where it begins

    def take(self, graph: ModelProto, exact: torch.Size) -> None:
        """Moves the matrices of an ONNX model to the file, as int8 with a scale for each output.

        Args:
            graph: is changed in place.
            exact: shape of what stays float32: the table of positions.
        """
        first, kept = [], []
        for tensor in graph.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.ndim != 2 or values.size < SMALLEST or values.dtype != np.float32:
                kept.append(tensor)
                continue
            if values.shape == tuple(exact):
                kept.append(self._elsewhere(values, tensor.name))
                continue
            axis = 1 if tensor.name.endswith("weight") else 0  # the exporter has transposed the others
            scale = np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12) / 127
            whole, factor = f"{tensor.name}:int8", f"{tensor.name}:scale"
            kept += [self._elsewhere(np.rint(values / scale).astype(np.int8), whole)]
            kept += [self._elsewhere(scale.astype(np.float32), factor)]
            first += [helper.make_node("Cast", [whole], [f"{tensor.name}:float"], to=1)]
            first += [helper.make_node("Mul", [f"{tensor.name}:float", factor], [tensor.name])]
        nodes = [*first, *graph.graph.node]
        del graph.graph.initializer[:], graph.graph.node[:]
        graph.graph.initializer.extend(kept)
        graph.graph.node.extend(nodes)

    def _elsewhere(self, values: np.ndarray, name: str):
        content = np.ascontiguousarray(values).tobytes()
        place = self.places.setdefault(hashlib.sha256(content).digest(), self.file.tell())
        if place == self.file.tell():
            self.file.write(content)
        tensor = TensorProto(name=name, dims=values.shape, data_location=TensorProto.EXTERNAL)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
        for key, value in (("location", WEIGHTS), ("offset", place), ("length", len(content))):
            tensor.external_data.add(key=key, value=str(value))
        return tensor
