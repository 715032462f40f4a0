"""The translator as two graphs for other runtimes: a whole source sentence, and one decoder step with its cache.

Attention is written out once more because the exporter can follow neither hooks, which record weights and switch heads
off, nor checks of values; tests hold both graphs equal to the model.
"""

import math

import torch
from torch import Tensor, nn

from course_lib.attention import MultiHeadAttention, attention_weights
from course_lib.transformer import Embedding, Transformer


def heard(attn: MultiHeadAttention, x: Tensor, keys: Tensor, values: Tensor, audible: Tensor) -> tuple[Tensor, Tensor]:
    """What MultiHeadAttention.attend says without a mask, with heads that can be switched off; and the weights.

    Args:
        x: (1, queries, d_model).
        keys, values: of `keys_values`, (1, heads, keys, d_k).
        audible: (heads,), 1.0, or 0.0 for a head that nobody hears.

    Returns:
        (1, queries, d_model) and (heads, queries, keys).
    """
    query = attn.query_proj(x).unflatten(-1, (attn.num_heads, -1)).transpose(1, 2)  # (1, heads, queries, d_k)
    weights = attention_weights(query, keys)
    context = weights @ values * audible[:, None, None]
    return attn.output_proj(context.transpose(1, 2).flatten(2)), weights[0]


def embedded(embedding: Embedding, ids: Tensor, positions: Tensor) -> Tensor:
    """(1, length) ids at these positions (length,), to (1, length, d_model)."""
    table = embedding.table
    return table(ids) * math.sqrt(table.embedding_dim) + embedding.position.table[positions]


class EncoderGraph(nn.Module):
    """A whole source sentence: what the decoder's layers keep of it, and all attention weights."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(self, src: Tensor, audible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Source ids and which heads are heard, to keys and values of each decoder layer, and the weights.

        Args:
            src: (1, src_len), with </s>.
            audible: (layers, heads).

        Returns:
            (layers, heads, src_len, d_k) twice, and (layers, heads, src_len, src_len).
        """
        x = embedded(self.model.src_embedding, src, torch.arange(src.shape[1]))
        seen = []
        for layer, heard_here in zip(self.model.encoder.layers, audible.unbind(), strict=True):

            def attend(x, attn=layer.self_attn, heard_here=heard_here):
                context, weights = heard(attn, x, *attn.keys_values(x, x), heard_here)
                seen.append(weights)
                return context

            x = layer.feed_forward_path(layer.self_attn_path(x, attend), layer.feed_forward)
        memory = self.model.encoder.norm(x)
        kept = [layer.cross_attn.keys_values(memory, memory) for layer in self.model.decoder.layers]
        keys, values = (torch.cat(each) for each in zip(*kept, strict=True))
        return keys, values, torch.stack(seen)


class DecoderGraph(nn.Module):
    """One decoder step with a key-value cache, and its attention weights."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self,
        token: Tensor,
        keys: Tensor,
        values: Tensor,
        memory_keys: Tensor,
        memory_values: Tensor,
        audible: Tensor,
        audible_cross: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The newest target token, to the logits of the next one, the longer cache, and the weights of this step.

        Args:
            token: (1, 1); its position is the length of the cache.
            keys, values: the cache, (layers, heads, past, d_k), past from 0 on.
            memory_keys, memory_values: of EncoderGraph.
            audible, audible_cross: (layers, heads), of both kinds of attention.

        Returns:
            (vocab,), the cache twice with past + 1, (layers, heads, past + 1) and (layers, heads, src_len).
        """
        position = torch.full((1,), keys.shape[2])
        x = embedded(self.model.tgt_embedding, token, position)
        kept, seen, seen_cross = [], [], []
        for number, layer in enumerate(self.model.decoder.layers):

            def attend(x, attn=layer.self_attn, number=number):
                fresh = attn.keys_values(x, x)
                past = keys[number : number + 1], values[number : number + 1]
                kept.append([torch.cat(pair, dim=2) for pair in zip(past, fresh, strict=True)])
                context, weights = heard(attn, x, *kept[-1], audible[number])
                seen.append(weights[:, 0])
                return context

            def attend_memory(x, attn=layer.cross_attn, number=number):
                memory = memory_keys[number : number + 1], memory_values[number : number + 1]
                context, weights = heard(attn, x, *memory, audible_cross[number])
                seen_cross.append(weights[:, 0])
                return context

            x = layer.self_attn_path(x, attend)
            x = layer.feed_forward_path(layer.cross_attn_path(x, attend_memory), layer.feed_forward)
        logits = self.model.generator(self.model.decoder.norm(x))[0, 0]
        new_keys, new_values = (torch.cat(each) for each in zip(*kept, strict=True))
        return logits, new_keys, new_values, torch.stack(seen), torch.stack(seen_cross)
