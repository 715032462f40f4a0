"""Laws of every model with the Transformer's calls: encode, decode with and without a cache, forward."""

import pytest
import torch

from tests.helpers.parity import close
from tests.helpers.tiny import padded

SRC = [[5, 6, 7, 8, 9, 4, 2], [12, 3, 2], [4, 2]]
TGT = [[1, 6, 7], [1, 10, 4, 4, 9], [1]]


def ids(*rows, dtype=torch.long):
    return torch.tensor(rows, dtype=dtype)


# --- laws ---------------------------------------------------------------------------------------


def law_no_output_sees_the_future(model, tolerance=0.0):
    """The gradient of output t with respect to the embedded input u is exactly 0 for u > t, and not before.

    A Fourier transform mixes all places and takes them apart again: there it is 0 up to rounding.
    """
    embedded = []

    def cut(module, inputs, output):
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    src, tgt_in = padded(SRC), torch.tensor([[1, 6, 7, 8, 9]] * 3)
    handle = model.tgt_embedding.register_forward_hook(cut)
    logits = model(src, tgt_in)
    handle.remove()
    for t in range(5):
        (gradient,) = torch.autograd.grad(logits[:, t].square().sum(), embedded, retain_graph=True)
        assert (gradient[:, t + 1 :].abs() <= tolerance).all(), f"output {t} sees the future"
        assert (gradient[:, : t + 1].abs().amax(-1) > tolerance).all(), f"output {t} does not see the past"


def law_a_later_token_changes_no_earlier_output(model, tolerance=0.0):
    """And each token changes the outputs from its own place on."""
    src, tgt_in = padded(SRC), torch.tensor([[1, 6, 7, 8, 9]] * 3)
    logits = model(src, tgt_in)
    for place in range(5):
        changed = tgt_in.clone()
        changed[:, place] = 11
        same = ((model(src, changed) - logits).abs() <= tolerance).all(dim=-1)  # (batch, tgt_len)
        expected = torch.arange(5) < place
        assert (same == expected).all(), f"place {place} is seen wrongly"


def law_padding_changes_nothing(model):
    """A sentence pair padded up in a batch has the logits that it has alone."""
    together = model(padded(SRC, 8), padded(TGT, 7))
    for row, (src, tgt_in) in enumerate(zip(SRC, TGT, strict=True)):
        alone = model(torch.tensor([src]), torch.tensor([tgt_in]))
        close(together[row, : len(tgt_in)], alone[0], f"row {row}")


def law_a_batch_is_its_sentences_one_by_one(model):
    """Without padding: all rows of the batch have the same length."""
    src, tgt_in = torch.tensor([[5, 6, 2], [4, 4, 2], [9, 8, 2]]), torch.tensor([[1, 7], [1, 5], [1, 7]])
    together = model(src, tgt_in)
    for row in range(3):
        close(together[row], model(src[row : row + 1], tgt_in[row : row + 1])[0], f"row {row}")


def law_cached_decoding_is_uncached(model):
    src, tgt_in = padded(SRC), torch.tensor([[1, 6, 7, 8, 9], [1, 4, 4, 4, 4], [1, 12, 3, 5, 6]])
    memory = model.encode(src)
    whole = model.decode(tgt_in, memory, src)
    for cuts in ([1, 1, 1, 1, 1], [2, 3], [1, 4], [5]):
        cache = model.new_cache()
        pieces = [model.decode(piece, memory, src, cache=cache) for piece in tgt_in.split(cuts, dim=1)]
        close(torch.cat(pieces, dim=1), whole, f"in pieces of {cuts}")


def law_selected_rows_go_on_as_they_began(model):
    src, tgt_in = padded(SRC), torch.tensor([[1, 6, 7], [1, 4, 4], [1, 12, 3]])
    rows, memory, cache = torch.tensor([2, 0, 0, 1, 2]), model.encode(src), model.new_cache()
    model.decode(tgt_in[:, :2], memory, src, cache=cache)
    for part in cache:
        part.select(rows)
    selected = model.decode(tgt_in[rows, 2:], memory[rows], src[rows], cache=cache)
    close(selected, model.decode(tgt_in, memory, src)[rows, 2:], "selected rows")


BAD_IDS = {
    "one dimension": (torch.tensor([5, 2]), r"ids of shape \(batch, length\), at least one; got torch.int64 \(2,\)"),
    "empty batch": (torch.empty(0, 3, dtype=torch.long), r"at least one; got torch.int64 \(0, 3\)"),
    "no tokens": (torch.empty(2, 0, dtype=torch.long), r"at least one; got torch.int64 \(2, 0\)"),
    "float": (ids([5, 2], dtype=torch.float32), r"got torch.float32 \(1, 2\)"),
    "int32": (ids([5, 2], dtype=torch.int32), r"got torch.int32 \(1, 2\)"),
    "negative": (ids([5, -1]), r"holds ids -1..5, the vocabulary has 0..12"),
    "too large": (ids([5, 13]), r"holds ids 5..13, the vocabulary has 0..12"),
    "empty sentence": (ids([5, 2], [0, 0]), r"an empty sentence: rows \[1\] of ids hold only padding"),
    "too long": (ids([5] * 9), r"the sentence has 9 tokens, the model has positions for 8"),
}


def law_bad_ids_are_refused_on_both_sides(model, name):
    bad, message = BAD_IDS[name]
    good = torch.full((max(1, len(bad) if bad.dim() == 2 else 1), 3), 5)
    calls = {"src": lambda: model.encode(bad), "tgt_in": lambda: model.decode(bad, model.encode(good), good)}
    whole = {"src": lambda: model(bad, good), "tgt_in": lambda: model(good, bad)}
    for side in ("src", "tgt_in"):
        named = message if message.startswith(("an empty", "the sentence")) else f"{side}.*{message}"
        for call in (calls[side], whole[side]):
            with pytest.raises(ValueError, match=named):
                call()
