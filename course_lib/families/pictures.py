"""Models that look at pictures: a picture is a sentence of patches."""

import torch
from torch import Tensor, nn

from course_lib.blocks import Dropout, LayerCache
from course_lib.config import ModelConfig
from course_lib.transformer import Decoder, Embedding, Encoder, added_position, check_ids, decode_target, initialize


class PatchEmbedding(nn.Module):
    """Pictures to a vector for each patch, row by row, with positions; a learned class token may stand in front.

    Args:
        config: sizes; its vocabulary is not used, max_len must have room for the patches.
        side: height and width of the pictures in pixels.
        patch: height and width of a patch; must divide side.
        channels: numbers for each pixel, 1 for gray and 3 for colors.
        class_token: put a learned vector in front, whose output stands for the whole picture.

    Raises:
        ValueError: if the patches do not fit the picture, or are more than the model has positions for.

    Paper: not in it; Dosovitskiy et al. 2021 (vision transformer), section 3.1.
    """

    def __init__(self, config: ModelConfig, *, side: int, patch: int, channels: int, class_token: bool):
        super().__init__()
        if patch < 1 or side % patch:
            raise ValueError(f"side must be divisible by patch, got {side=}, {patch=}")
        self.shape, self.patch = (channels, side, side), patch
        length = (side // patch) ** 2 + class_token
        if length > config.max_len:
            raise ValueError(f"the picture has {length} tokens, the model has positions for {config.max_len}")
        self.patch_proj = nn.Linear(channels * patch * patch, config.d_model)
        self.class_token = nn.Parameter(torch.randn(config.d_model)) if class_token else None
        self.position = added_position(config)
        self.dropout = Dropout(config.dropout)

    def cut(self, pictures: Tensor) -> Tensor:
        """Pictures (batch, channels, side, side) to their patches (batch, patches, channels · patch · patch)."""
        if pictures.dim() != 4 or pictures.shape[1:] != self.shape or len(pictures) == 0:
            raise ValueError(
                f"expected pictures (batch, {', '.join(map(str, self.shape))}), got {tuple(pictures.shape)}"
            )
        rows = pictures.unflatten(2, (-1, self.patch)).unflatten(
            4, (-1, self.patch)
        )  # (b, channels, rows, p, columns, p)
        return rows.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def forward(self, pictures: Tensor) -> Tensor:
        """(batch, channels, side, side) to (batch, length, d_model); the class token counts as the first patch."""
        x = self.patch_proj(self.cut(pictures))  # (batch, patches, d_model)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)
        return self.dropout(x if self.position is None else self.position(x))


class PictureEncoder(nn.Module):
    """Pictures to a vector for each patch, which has seen the whole picture.

    Args:
        config, side, patch, channels, class_token: as in PatchEmbedding.
    """

    def __init__(self, config: ModelConfig, *, side: int, patch: int, channels: int, class_token: bool = False):
        super().__init__()
        self.config = config
        self.embedding = PatchEmbedding(config, side=side, patch=patch, channels=channels, class_token=class_token)
        self.encoder = Encoder(config)
        initialize(self, config.d_model)

    def forward(self, pictures: Tensor) -> Tensor:
        """(batch, channels, side, side) to (batch, length, d_model)."""
        return self.encoder(self.embedding(pictures))


class VisionTransformer(nn.Module):
    """A picture to the logits of its class, read from the vector of the class token.

    Args:
        config, side, patch, channels: as in PatchEmbedding.
        num_classes: to choose from.

    Paper: not in it; Dosovitskiy et al. 2021.
    """

    def __init__(self, config: ModelConfig, *, side: int, patch: int, channels: int, num_classes: int):
        super().__init__()
        self.picture_encoder = PictureEncoder(config, side=side, patch=patch, channels=channels, class_token=True)
        self.head = nn.Linear(config.d_model, num_classes)

    def forward(self, pictures: Tensor) -> Tensor:
        """(batch, channels, side, side) to (batch, classes)."""
        return self.head(self.picture_encoder(pictures)[:, 0])


class Captioner(nn.Module):
    """A picture and shifted caption ids to the logits of the next word.

    It has the Transformer's calls, with pictures for source ids, so that greedy, sampled and beam decoding work as
    they are; they cannot tell the length of a picture, so give them max_len.

    Args:
        config: of both stacks and of the captions' vocabulary.
        side, patch, channels: of the pictures, as in PatchEmbedding.

    Paper: figure 1, with a picture on the left.
    """

    def __init__(self, config: ModelConfig, *, side: int, patch: int, channels: int):
        super().__init__()
        self.config = config
        self.picture_encoder = PictureEncoder(config, side=side, patch=patch, channels=channels)
        self.tgt_embedding = Embedding(config)
        self.decoder = Decoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config.d_model)
        if config.tie_weights:
            self.generator.weight = self.tgt_embedding.table.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Pictures (batch, channels, side, side) and ids (batch, tgt_len) to logits (batch, tgt_len, vocab)."""
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Pictures to the memory (batch, patches, d_model)."""
        return self.picture_encoder(src)

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[LayerCache] | None = None) -> Tensor:
        """As Transformer.decode; no part of a picture is padding, so src is not looked at."""
        check_ids(tgt_in, "tgt_in", self.config.vocab_size)
        if len(memory) != len(tgt_in):
            raise ValueError(f"memory and tgt_in must belong together, got {len(memory)} and {len(tgt_in)} rows")
        return decode_target(self, tgt_in, memory, None, cache)

    def new_cache(self) -> list[LayerCache]:
        """As Transformer.new_cache."""
        return [LayerCache() for _ in self.decoder.layers]
