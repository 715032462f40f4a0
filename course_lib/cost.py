"""What running a model takes in memory, in closed form: activations, the peak of a training step, the cache; no torch.

The counts of `config` are of the parameters alone; these depend on the batch as well.
"""

from course_lib.config import ModelConfig, require

NUMBER, INDEX = 4, 8  # bytes of a float32, and of an int64


def activation_bytes(
    config: ModelConfig,
    batch: int,
    src_len: int,
    tgt_len: int,
    *,
    fused: bool = False,
    training: bool = True,
    bytes_per_number: int = NUMBER,
) -> dict[str, int]:
    """Bytes that a forward pass keeps for the backward pass, of sentences that all have these lengths, by kind.

    Args:
        config: of a model with sinusoidal positions, or none.
        batch: sentence pairs.
        src_len: source tokens, </s> included.
        tgt_len: target tokens that are predicted.
        fused: attention by the fused kernel, which keeps no weights, but a copy of the mask as numbers.
        training: dropout is on.
        bytes_per_number: 4 for float32.

    Returns:
        dict of attention weights (batch × heads × queries × keys, each layer), masks, vectors of d_model (inputs of
        products and norms, queries, keys, values, contexts, dropout), inner vectors of d_ff, logits (one
        log-probability for each subword), and the rest (ids, means and variances of norms).

    Raises:
        ValueError: on other positions, sizes below 1, or fused attention with keys of another width than the values,
            for which there is no such kernel on a CPU.
    """
    _check(config, batch, src_len, tgt_len, fused)
    layers, heads, keys = config.num_layers, config.num_heads, config.num_heads * config.d_k
    src, tgt, number = batch * src_len, batch * tgt_len, bytes_per_number
    tables = src_len * src_len + tgt_len * tgt_len + tgt_len * src_len  # queries × keys of the three attentions
    masks = (2 * src + tgt * tgt_len) * (number if fused else 1)  # a row for each source, a table for each target
    normalizers = heads * (src + 2 * tgt) * number if fused else 0  # one a query, from which the weights come again
    attended = 3 * (src + tgt) * (config.d_model + keys)  # queries, keys, values and contexts of three attentions
    sublayers, ends = layers * (2 * src + 3 * tgt), src + tgt
    passes = 3 if training and config.dropout else 2  # into a product, into a norm, through dropout
    outside = passes - 1 + config.norm_first  # the stacks' outputs, the embedding's dropout, the last norms
    return {
        "attention weights": 0 if fused else layers * heads * batch * tables * number,
        "masks": layers * masks + tgt,
        "vectors": (layers * attended + (passes * sublayers + outside * ends) * config.d_model) * number,
        "inner vectors": layers * (src + tgt) * config.d_ff * number,
        "logits": tgt * config.vocab_size * number,
        "rest": layers * normalizers + 2 * (sublayers + config.norm_first * ends) * number + (src + 2 * tgt) * INDEX,
    }


def peak_bytes(config: ModelConfig, batch: int, src_len: int, tgt_len: int, **options) -> int:
    """The most bytes that a training step holds at any moment: weights, optimizer, and what is largest of the rest.

    That is either the moment at which the backward pass begins, when all activations are there and the logits' gradient
    is made by way of two tables of their size; or its end, when the gradients are there, and those of a matrix with
    three uses are added up: two of its size and their sum, before the encoder has any, and while its activations wait,
    or the last one beside the sum.

    Args:
        config, batch, src_len, tgt_len, options: as in activation_bytes.
    """
    activations = activation_bytes(config, batch, src_len, tgt_len, **options)
    held, parts = config.memory_bytes(), config.parameter_counts()
    table = NUMBER * parts["embeddings"] if config.tie_weights else 0
    encoder = NUMBER * (parts["encoder self-attention"] + parts["encoder feed-forward"])
    begins = sum(activations.values()) + 2 * activations["logits"]
    waiting = _encoder_bytes(config, batch, src_len, **options) if config.tie_weights else 0
    ends = held["gradients"] + max(waiting + 2 * table - encoder, table)
    return held["weights"] + held["optimizer"] + max(begins, ends)


def _encoder_bytes(
    config: ModelConfig,
    batch: int,
    src_len: int,
    *,
    fused: bool = False,
    training: bool = True,
    bytes_per_number: int = NUMBER,
) -> int:
    """What activation_bytes counts of the encoder's layers, without masks and the norms' means and variances."""
    passes = 3 if training and config.dropout else 2
    vectors = (2 + 2 * passes) * config.d_model + 2 * config.num_heads * config.d_k
    weights = 0 if fused else config.num_heads * src_len
    return config.num_layers * batch * src_len * (vectors + config.d_ff + weights) * bytes_per_number


def cache_bytes(config: ModelConfig, batch: int, src_len: int, tgt_len: int, *, bytes_per_number: int = NUMBER) -> int:
    """Bytes of the key-value cache after tgt_len tokens: keys and values of both attentions of each decoder layer.

    Args:
        config: of the model.
        batch: sentences, or hypotheses of all beams.
        src_len: source tokens, </s> included.
        tgt_len: target tokens that the decoder has read.
        bytes_per_number: 4 for float32.
    """
    widths = config.num_heads * config.d_k + config.d_model  # of keys and of values
    return config.num_layers * batch * (src_len + tgt_len) * widths * bytes_per_number


def _check(config: ModelConfig, batch: int, src_len: int, tgt_len: int, fused: bool) -> None:
    known = config.position in ("sinusoidal", "none")
    require(known, f"activations are counted for sinusoidal positions or none, got {config.position!r}")
    sizes = batch, src_len, tgt_len
    require(min(sizes) >= 1, f"batch and lengths must be at least 1, got {sizes}")
    even = config.num_heads * config.d_k == config.d_model
    require(even or not fused, f"the fused kernel needs keys as wide as values, got d_k={config.d_k}")
