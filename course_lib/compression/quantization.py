"""Models whose matrices are int8, each row with a scale of its own, by torchao, PyTorch's quantization library."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

from torch import Tensor, nn

from course_lib.transformer import Transformer


class Int8Rows(nn.Module):
    """An embedding table in int8; only rows that are looked up are multiplied by their scale.

    Args:
        rows: (vocab, d_model), int8.
        scale: (vocab, 1) or (vocab,), of each row.
    """

    def __init__(self, rows: Tensor, scale: Tensor):
        super().__init__()
        self.embedding_dim = rows.shape[1]
        self.register_buffer("rows", rows)
        self.register_buffer("scale", scale.reshape(-1, 1))

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape to (..., d_model)."""
        return self.rows[ids] * self.scale[ids]


def quantized(model: Transformer, *, activations: bool = False, embedding: bool = False) -> Transformer:
    """A copy whose linear layers have int8 weights, for translating; the model itself stays as it is.

    torchao leaves the embedding table in float32, and so a matrix that is tied to the generator is there twice.

    Args:
        model: on a CPU.
        activations: make also each token's vector int8 before a product, so that the product is one of integers;
            without it the weights become float32 again for each product.
        embedding: let the embeddings read the generator's int8 rows; for a model with tied weights.

    Raises:
        ValueError: on embedding without tied weights.
    """
    if embedding and not model.config.tie_weights:
        raise ValueError("only embeddings that are tied to the generator can read its rows, these are not")
    copy = deepcopy(model).eval()
    with _unannounced():
        from torchao import quantization  # takes seconds, and only who quantizes needs it

        config = "Int8DynamicActivationInt8WeightConfig" if activations else "Int8WeightOnlyConfig"
        quantization.quantize_(copy, getattr(quantization, config)())
    if embedding:
        weight = copy.generator.weight
        for each in (copy.src_embedding, copy.tgt_embedding):
            each.table = Int8Rows(weight.qdata, weight.scale)
    return copy


def weight_bytes(model: nn.Module) -> int:
    """Bytes of the tensors that a model would be saved with, each counted once, scales of int8 included."""
    plain = {}
    for tensor in model.state_dict().values():
        for each in _parts(tensor):
            plain[each.data_ptr()] = each.nbytes
    return sum(plain.values())


def _parts(tensor: Tensor) -> Iterator[Tensor]:
    """The tensors that one of torchao's is made of; any other is its own only part."""
    names = tensor.__tensor_flatten__()[0] if hasattr(tensor, "__tensor_flatten__") else []
    yield from (getattr(tensor, name) for name in names) if names else (tensor,)


@contextmanager
def _unannounced() -> Iterator[None]:
    """Without torchao's warnings about kernels for graphics cards that are not there."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
