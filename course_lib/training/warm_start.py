"""A training that begins with what another translator has learned, in the new one's own subwords."""

import random

import torch

from course_lib.config import require
from course_lib.tokenizer import UNK_ID
from course_lib.training.subword_dropout import SubwordDropout
from course_lib.translator import Translator

EMBEDDINGS = ("src_embedding.table.weight", "tgt_embedding.table.weight", "generator.weight")


@torch.no_grad()
def take_over(translator: Translator, start: Translator) -> None:
    """Copies the weights of `start`; of the embeddings each subword that both know takes its row.

    A subword that only the new translator has takes the mean of the rows of the pieces into which the merges of `start`
    cut it; one with a character that `start` never saw keeps its random row. Units that only the new feed-forward
    networks have keep their random weights on the way in, and get 0 on the way out: at first they change nothing.

    Args:
        translator: is changed in place.
        start: a Transformer, too; its vocabulary may be another, its feed-forward networks narrower.

    Raises:
        ValueError: if the two models differ in more than the vocabulary, the dropout and a larger d_ff.

    References: Gee et al. 2022, Fast Vocabulary Transfer; Chen et al. 2016, Net2Net.
    """
    architecture = start.model.config.architecture
    require(architecture == "transformer", f"only a Transformer can be started from, this translator is {architecture}")
    own, other = (one.model.config.to_dict() for one in (translator, start))
    free = {"vocab_size", "dropout"} | ({"d_ff"} if own["d_ff"] > other["d_ff"] else set())
    changed = sorted(name for name in own if own[name] != other[name] and name not in free)
    if changed:
        raise ValueError(f"cannot start from this translator: its model differs in {changed}")
    pieces = SubwordDropout(start.tokenizer, [], 0.0)
    learned = start.model.state_dict()
    for name, tensor in translator.model.state_dict().items():
        if name not in EMBEDDINGS:
            if name.endswith(".down.weight"):
                tensor.zero_()
            tensor[tuple(map(slice, learned[name].shape))] = learned[name]  # all of it, but for new units
            continue
        for token_id in range(translator.tokenizer.vocab_size):
            token = translator.tokenizer.token(token_id)
            cut = [token] if token in pieces.ids else pieces.split(token, random.Random(), 0.0)
            ids = [pieces.ids.get(piece, UNK_ID) for piece in cut]
            if token_id <= UNK_ID or UNK_ID not in ids:
                tensor[token_id] = learned[name][ids].mean(dim=0)
