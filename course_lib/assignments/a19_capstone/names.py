"""Names: of the parts and their exercises, and of what the learner's Transformer learns and the course's does."""

PARTS = {
    "targets": "01.targets",
    "scores": "03.scores",
    "contributions": "04.contributions",
    "masked_softmax": "05.weights",
    "decoder_masks": "05.decoder",
    "layer_norm": "06.layer_norm",
    "encoder_layer": "06.encoder_layer",
    "decoder_layer": "07.decoder_layer",
    "generate": "07.generate",
    "ends": "08.ends",
}


def shapes_of(vocab, d_model, num_layers, d_ff):
    """Names and shapes of what MyTransformer learns."""
    found = {"table.weight": (vocab, d_model)}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "cross_attn"])):
        for layer in (f"{stack}.{number}" for number in range(num_layers)):
            for linear in [f"{one}.{part}_proj" for one in attentions for part in ("query", "key", "value", "output")]:
                found |= {f"{layer}.{linear}.weight": (d_model, d_model), f"{layer}.{linear}.bias": (d_model,)}
            found |= {f"{layer}.feed_forward.0.weight": (d_ff, d_model), f"{layer}.feed_forward.0.bias": (d_ff,)}
            found |= {f"{layer}.feed_forward.2.weight": (d_model, d_ff), f"{layer}.feed_forward.2.bias": (d_model,)}
            norms = [f"{layer}.norms.{number}" for number in range(1 + len(attentions))]
            found |= {f"{norm}.{part}": (d_model,) for norm in norms for part in ("scale", "shift")}
        found |= {f"{stack}_norm.{part}": (d_model,) for part in ("scale", "shift")}
    return found


def theirs(name):
    """The name of a weight of MyTransformer in course_lib's Transformer."""
    if name == "table.weight":
        return "src_embedding.table.weight"
    if "_norm." in name:
        return name.replace("_norm.", ".norm.")
    stack, layer, part, *rest = name.split(".")
    paths = ["self_attn", "feed_forward"] if stack == "encoder" else ["self_attn", "cross_attn", "feed_forward"]
    if part == "norms":
        part, rest = f"{paths[int(rest[0])]}_path.norm", rest[1:]
    if part == "feed_forward":
        rest[0] = {"0": "up", "2": "down"}[rest[0]]
    return ".".join([stack, "layers", layer, part, *rest])
