"""The weights of one of our models in Hugging Face's M2M100, which is the same architecture, and in CTranslate2."""

from pathlib import Path

import torch
from torch import nn
from transformers import M2M100Config, M2M100ForConditionalGeneration

from course_lib import Transformer
from course_lib.attention import MultiHeadAttention
from course_lib.blocks import FeedForward, LayerNorm
from course_lib.transformer import Embedding


def to_hugging_face(model: Transformer) -> M2M100ForConditionalGeneration:
    """The same function of the same weights.

    Args:
        model: pre-norm, sinusoidal, weights tied, as the shipped translators are.
    """
    config = model.config
    assert config.norm_first and config.tie_weights and config.position == "sinusoidal" and config.pad_id == 0
    both = dict(layers=config.num_layers, attention_heads=config.num_heads, ffn_dim=config.d_ff, layerdrop=0.0)
    theirs = M2M100ForConditionalGeneration(
        M2M100Config(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            max_position_embeddings=config.max_len,
            dropout=config.dropout,
            attention_dropout=0.0,
            pad_token_id=config.pad_id,
            bos_token_id=config.bos_id,
            eos_token_id=config.eos_id,
            decoder_start_token_id=config.bos_id,
            **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in both.items()},
        )
    )
    with torch.no_grad():
        for own, other, embedding in (
            (model.encoder, theirs.model.encoder, model.src_embedding),
            (model.decoder, theirs.model.decoder, model.tgt_embedding),
        ):
            _positions(embedding, other.embed_positions)
            _norm(own.norm, other.layer_norm)
            for layer, copy in zip(own.layers, other.layers, strict=True):
                _attention(layer.self_attn, copy.self_attn)
                _norm(layer.self_attn_path.norm, copy.self_attn_layer_norm)
                if hasattr(layer, "cross_attn"):
                    _attention(layer.cross_attn, copy.encoder_attn)
                    _norm(layer.cross_attn_path.norm, copy.encoder_attn_layer_norm)
                _feed_forward(layer.feed_forward, copy)
                _norm(layer.feed_forward_path.norm, copy.final_layer_norm)
        theirs.model.shared.weight.copy_(model.generator.weight)
    theirs.tie_weights()
    return theirs.eval()


def to_ctranslate2(theirs: M2M100ForConditionalGeneration, tokens: list[str], folder: Path) -> None:
    """Writes Hugging Face's model, float32, as CTranslate2 reads it; `tokens` are the vocabulary, by id."""
    from ctranslate2.converters.transformers import M2M100Loader  # here, so that the GPU part does without it

    loader = M2M100Loader()
    spec = loader.get_model_spec(theirs)
    loader.set_vocabulary(spec, tokens)
    spec.config.bos_token, spec.config.eos_token = tokens[1], tokens[2]
    spec.config.unk_token, spec.config.decoder_start_token = tokens[3], tokens[1]
    spec.validate()
    spec.optimize(quantization="float32")
    spec.save(str(folder))


def _positions(own: Embedding, theirs: nn.Module) -> None:
    table = own.position.table
    blank = table.new_zeros(1, table.shape[1])
    theirs.weights = torch.cat([blank, table, blank])  # position p stands in row pad_id + 1 + p
    theirs.offset = 1


def _norm(own: LayerNorm, theirs: nn.LayerNorm) -> None:
    theirs.weight.copy_(own.scale)
    theirs.bias.copy_(own.shift)


def _attention(own: MultiHeadAttention, theirs: nn.Module) -> None:
    pairs = (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out"))
    for name, other in pairs:
        getattr(theirs, f"{other}_proj").load_state_dict(getattr(own, f"{name}_proj").state_dict())


def _feed_forward(own: FeedForward, theirs: nn.Module) -> None:
    theirs.fc1.load_state_dict(own.up.state_dict())
    theirs.fc2.load_state_dict(own.down.state_dict())
