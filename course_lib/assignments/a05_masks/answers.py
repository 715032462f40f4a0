"""Answers to assignment 05: differently written right ones, and plausible wrong ones with the hint that they get."""

import math

import torch
import torch.nn.functional as F

from course_lib.attention import attention_weights
from course_lib.masks import causal_mask, padding_mask


def masks_by_tril(src, tgt_in, pad_id):
    length = tgt_in.size(1)
    causal = torch.ones(length, length, dtype=torch.bool, device=tgt_in.device).tril()
    own = tgt_in.ne(pad_id).unsqueeze(1).unsqueeze(1) & causal
    return own, src.ne(pad_id)[:, None, None].repeat(1, 1, length, 1)


def masks_by_triu(src, tgt_in, pad_id):
    future = tgt_in.new_ones(tgt_in.size(1), tgt_in.size(1)).triu(1).bool()
    own = ~(future | (tgt_in == pad_id)[:, None, None])
    rows = torch.ones_like(tgt_in, dtype=torch.bool)[:, None, :, None]
    return own, rows & (src != pad_id)[:, None, None, :]


class DecoderMasks:
    def __call__(self, src, tgt_in, pad_id):
        place = torch.arange(tgt_in.shape[1], device=src.device)
        causal = (place.view(1, -1) - place.view(-1, 1)) < 1
        own = torch.logical_and(tgt_in.not_equal(pad_id)[:, None, None, :], causal[None, None])
        return own, (src != pad_id)[:, None, None, :].expand(*own.shape[:3], src.shape[1])


def masks_with(diagonal=0, turn="tril", flip=False, padding=True, rows=False, cross_ids="src", side=False):
    def answer(src, tgt_in, pad_id):
        length = tgt_in.size(1)
        square = torch.ones(length, length, device=src.device)
        causal = getattr(square, turn)(diagonal).bool()[None, None]
        real = tgt_in != pad_id
        own = causal & real[:, None, None] if padding else causal.repeat(len(src), 1, 1, 1)
        keys = src if cross_ids == "src" else tgt_in
        cross = (keys != pad_id)[:, None, None].repeat(1, 1, length, 1)
        if rows:
            own, cross = own & real[:, None, :, None], cross & real[:, None, :, None]
        if flip:
            own, cross = own.logical_not(), cross.logical_not()
        return own, cross.transpose(2, 3) if side else cross

    return answer


def masks_without_the_heads(src, tgt_in, pad_id):
    own, cross = masks_by_tril(src, tgt_in, pad_id)
    return own.squeeze(1), cross.squeeze(1)


def masks_of_numbers(src, tgt_in, pad_id):
    return tuple(mask.float() for mask in masks_by_tril(src, tgt_in, pad_id))


def masks_by_size_of_the_id(src, tgt_in, pad_id):
    return masks_by_tril((src > pad_id).int(), (tgt_in > pad_id).int(), 0)


def masks_for_pad_id_0(src, tgt_in, pad_id):
    return masks_by_tril(src, tgt_in, 0)


def cross_mask_that_stays_small(src, tgt_in, pad_id):
    return masks_by_tril(src, tgt_in, pad_id)[0], (src != pad_id)[:, None, None]


def causal_cross_mask(src, tgt_in, pad_id):
    own, cross = masks_by_tril(src, tgt_in, pad_id)
    return own, cross.tril()


PREDICTED = {
    "shape of the cross mask": (1, 1, 1, 7),
    "open entries of the causal mask": 21,
    "open entries of both masks together": 20,
    "looks allowed in cross-attention": 24,
    "may Hund attend to schläft": False,
    "key_padding_mask of the source": [False, False, False, False, True, True, True],
    "queries with nothing, padded on the left": 1,
    "places ahead, three attentions with tril(1)": 3,
}


def predicted(**changed):
    shorts = ("shape", "causal", "both", "cross", "may", "padding", "nothing", "ahead")
    names = dict(zip(shorts, PREDICTED, strict=True))
    return PREDICTED | {names[short]: guess for short, guess in changed.items()}


def weights_by_where(scores, mask):
    if (~mask).all(dim=-1).any():
        raise ValueError("nothing to attend to")
    return torch.where(mask, scores, torch.full_like(scores, -math.inf)).softmax(-1)


def weights_by_exp(scores, mask):
    mask = mask.expand_as(scores)
    if bool((mask.sum(-1) == 0).any()):
        raise ValueError(f"empty rows: {(~mask.any(-1)).sum().item()}")
    shown = torch.where(mask, scores, float("-inf"))
    powers = (shown - shown.max(dim=-1, keepdim=True).values).exp()
    return powers / powers.sum(-1, keepdim=True)


def weights_by_the_smallest_number(scores, mask):
    if not mask.any(-1).all():
        raise ValueError
    smallest = torch.finfo(scores.dtype).min
    return F.softmax(scores.masked_fill(mask.logical_not(), smallest), dim=-1)


class MaskedSoftmax(torch.nn.Module):
    def forward(self, scores, mask):
        for row in mask.flatten(0, -2):
            if not row.any():
                raise ValueError("a row is empty")
        shown = scores.clone()
        shown[~mask.expand(scores.shape)] = float("-inf")
        return torch.softmax(shown, -1)


def looks_first(mask):
    if not mask.any(-1).all():
        raise ValueError("an empty row")


def weights_with(fill=None, careful=True, after=False, divide=False, add=False, flip=False):
    def answer(scores, mask):
        if careful:
            looks_first(mask)
        hidden = mask if flip else mask.logical_not()
        if after:
            weights = scores.softmax(-1).masked_fill(hidden, 0)
            return weights / weights.sum(-1, keepdim=True) if divide else weights
        if add:
            return (scores + torch.where(hidden, -math.inf, 0.0).to(scores.dtype)).softmax(-1)
        return scores.masked_fill(hidden, fill).softmax(-1)

    return answer


def zeros_for_empty_rows(scores, mask):
    return weights_with(-math.inf, careful=False)(scores, mask).nan_to_num(0.0)


def asserts(scores, mask):
    assert mask.any(-1).all(), "an empty row"
    return weights_by_where(scores, mask)


def raises_only_if_all_is_hidden(scores, mask):
    if not mask.any():
        raise ValueError("nothing is open")
    return weights_with(-math.inf, careful=False)(scores, mask)


def shown_with(number):
    def answer(scores, mask):
        looks_first(mask)
        return scores.masked_fill(~mask, number).softmax(-1)

    return answer


def weights_of_large_powers(scores, mask):
    looks_first(mask)
    powers = torch.where(mask, scores.exp(), 0)
    return powers / powers.sum(-1, keepdim=True)


def always_float32(scores, mask):
    looks_first(mask)
    return scores.float().masked_fill(~mask, -math.inf).softmax(-1)


def encoder_by_where(scores, ids, pad_id):
    real = ids.ne(pad_id)[:, None, None, :]
    return torch.where(real, scores, -math.inf).softmax(-1)


def encoder_by_expand(scores, ids, pad_id):
    hidden = (ids == pad_id).view(ids.size(0), 1, 1, -1).expand_as(scores)
    return F.softmax(scores.masked_fill(hidden, torch.finfo(scores.dtype).min), dim=3)


def encoder_in_a_loop(scores, ids, pad_id):
    rows = zip(scores, ids, strict=True)
    return torch.stack([one.masked_fill(row == pad_id, -1e9).softmax(-1) for one, row in rows])


def encoder_by_exp(scores, ids, pad_id):
    powers = (scores - scores.amax(-1, keepdim=True)).exp() * (ids != pad_id)[:, None, None]
    return powers / powers.sum(-1, keepdim=True)


def encoder_with(view, fill=-1e9, after=False):
    def answer(scores, ids, pad_id):
        real = view(ids.not_equal(pad_id))
        if after:
            return scores.softmax(-1) * real
        return torch.where(real, scores, fill).softmax(-1)

    return answer


def keys(real):
    return real[:, None, None]


def queries(real):
    return real[:, None, :, None]


def both(real):
    return keys(real) & queries(real)


def sees_by_features(layer, x):
    x = x.detach().clone().requires_grad_()
    output, rows = layer(x)[0], []
    for token in output:
        gradients = [torch.autograd.grad(number, x, retain_graph=True)[0][0] for number in token]
        rows.append(torch.stack(gradients).abs().sum(dim=(0, 2)) > 0)
    return torch.stack(rows)


def sees_by_random_directions(layer, x):
    direction = torch.randn(x.shape[-1], dtype=x.dtype, generator=torch.Generator().manual_seed(5))
    x = x.clone().requires_grad_()
    told = (layer(x) @ direction)[0]
    return torch.stack([torch.autograd.grad(each, x, retain_graph=True)[0][0].ne(0).any(-1) for each in told])


def sees_by_changes(layer, x):
    length, before = x.shape[1], layer(x)[0]
    found = torch.zeros(length, length, dtype=torch.bool)
    for s in range(length):
        changed = x.clone()
        changed[0, s] = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(s)).to(x)
        after = layer(changed)[0]
        for t in range(length):
            found[t, s] = not torch.equal(after[t], before[t])
    return found


class Sees:
    def __call__(self, layer, x):
        jacobian = torch.func.jacrev(layer)(x)
        return jacobian.abs().amax(dim=(0, 2, 3, 5)) > 0


def sees_sums(layer, x):
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x).sum(dim=-1), x)
    return (jacobian.abs() > 1e-6)[0, :, 0].any(-1)


def sees_shifts(layer, x):
    rows = []
    for s in range(x.size(1)):
        shift = torch.zeros_like(x)
        shift[0, s] = 1
        close = torch.isclose(layer(x + shift), layer(x), rtol=0, atol=1e-5)
        rows.append(~close[0].all(-1))
    return torch.stack(rows).T


def sees_from_the_inputs(layer, x):
    jacobian = torch.autograd.functional.jacobian(layer, x)
    return jacobian.ne(0).any(2).any(-1)[0, :, 0].T


def sees_what_it_was_told(layer, x):
    place = torch.arange(x.size(1))
    return place[:, None] >= place


def sees_strengths(layer, x):
    return torch.autograd.functional.jacobian(layer, x).square().sum(dim=(0, 2, 3, 5)).sqrt()


def sees_changes_of_the_first_feature(layer, x):
    before, columns = layer(x), []
    for s in range(x.size(1)):
        changed = x.clone()
        changed[0, s, 0] += 1
        columns.append((layer(changed) != before)[0].any(-1))
    return torch.stack(columns, 1)


def sees_in_place(layer, x):
    before, columns = layer(x), []
    for s in range(x.size(1)):
        x[0, s] *= -2
        columns.append((layer(x) != before)[0].any(-1))
    return torch.stack(columns, 1)


def sees_the_whole_output(layer, x):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x).square().sum(), x)
    return gradient[0].ne(0).any(-1).expand(x.size(1), -1)


RIGHT = {
    "05.decoder": [masks_by_tril, masks_by_triu, DecoderMasks()],
    "05.open": [
        PREDICTED,
        predicted(shape=[1, 1, 1, 7], both=20),
        predicted(cross=torch.tensor(24), causal=6 * 7 // 2),
    ],
    "05.weights": [weights_by_where, weights_by_exp, weights_by_the_smallest_number, MaskedSoftmax()],
    "05.encoder": [encoder_by_where, encoder_by_expand, encoder_in_a_loop, encoder_by_exp],
    "05.sees": [sees_by_features, sees_by_random_directions, sees_by_changes, Sees()],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "05.decoder": [
        (masks_with(flip=True), "True means: may"),
        (masks_with(diagonal=1), "one place too many"),
        (masks_with(diagonal=-1), "may attend to itself here"),
        (masks_with(turn="triu"), "it is the past that it may"),
        (masks_with(padding=False), "padding of the target is open"),
        (masks_with(rows=True), "A mask hides keys"),
        (masks_with(cross_ids="tgt"), "cross-attention are the source's"),
        (masks_with(side=True), "lies on its side"),
        (masks_without_the_heads, None),
        (masks_of_numbers, None),
        (masks_for_pad_id_0, None),
        (masks_by_size_of_the_id, None),
        (cross_mask_that_stays_small, None),
        (causal_cross_mask, None),
        (lambda *inputs: masks_by_tril(*inputs)[::-1], None),
    ],
    "05.open": [
        (predicted(causal=15, both=15), "diagonal is open"),
        (predicted(both=15), "row of the padding stays open"),
        (predicted(cross=20), "also the padded one"),
        (predicted(cross=4), "one row for all 6"),
        (predicted(padding=[True, True, True, True, False, False, False]), "True means hidden"),
        (predicted(ahead=1), "that looked ahead too"),
        (predicted(may=True), None),
        (predicted(shape=(1, 1, 6, 7)), None),
        (predicted(nothing=0), None),
        (predicted(both=None), None),
    ],
    "05.weights": [
        (weights_with(after=True, divide=True), "has taken all the weight"),
        (weights_with(after=True, divide=True, careful=False), "has taken all the weight"),
        (weights_with(after=True), "do not sum to 1"),
        (weights_with(add=True), "∞ − ∞ is NaN"),
        (weights_with(add=True, careful=False), "∞ − ∞ is NaN"),
        (weights_with(0.0), "e⁰ = 1"),
        (weights_with(-math.inf, flip=True), "True means may attend"),
        (weights_with(-math.inf, flip=True, careful=False), "True means may attend"),
        (weights_with(-1e9), "65,504"),
        (weights_with(-1e9, careful=False), "65,504"),
        (weights_with(-math.inf, careful=False), "becomes NaN"),
        (zeros_for_empty_rows, None),
        (asserts, None),
        (raises_only_if_all_is_hidden, "only if all is hidden"),
        *((shown_with(number), None) for number in (-30.0, -1000.0, -1e4, -65504.0)),
        (weights_of_large_powers, None),
        (always_float32, None),
    ],
    "05.encoder": [
        (encoder_with(queries), "Real tokens still attend"),
        (encoder_with(queries, -math.inf), "no column of the padding"),
        (encoder_with(both), "they should stay open"),
        (encoder_with(both, -math.inf), "nothing left, so they are NaN"),
        (encoder_with(lambda real: real), "fits by accident"),
        (encoder_with(lambda real: ~keys(real)), "real tokens that are hidden"),
        (lambda scores, ids, pad_id: scores.softmax(-1), "Nothing is hidden"),
        (encoder_with(keys, after=True), None),
        (encoder_with(keys, fill=0.0), None),
        (encoder_with(keys, fill=-20.0), None),
        (lambda scores, ids, pad_id: encoder_by_where(scores, (ids > pad_id).int(), 0), None),
        (encoder_with(lambda real: real[:, :, None, None]), None),
        (lambda scores, ids, pad_id: encoder_by_where(scores, ids, 0), None),
    ],
    "05.sees": [
        (sees_sums, "the gradient of their sum"),
        (sees_shifts, "takes it away"),
        (sees_from_the_inputs, "exchanged"),
        (sees_what_it_was_told, "find out what this one does"),
        (sees_strengths, None),
        (lambda layer, x: sees_sums(layer, x).float(), None),
        (sees_in_place, None),
        (sees_changes_of_the_first_feature, None),
        (lambda layer, x: sees_by_features(lambda x: layer(x)[..., :1], x), None),
        (sees_the_whole_output, None),
    ],
}


def library_decoder(src, tgt_in, pad_id):
    length = tgt_in.size(1)
    own = padding_mask(tgt_in, pad_id) & causal_mask(length, device=tgt_in.device)
    return own, padding_mask(src, pad_id).expand(-1, -1, length, -1)


def library_weights(scores, mask):
    """The finished softmax takes queries and keys; with zeros for both, the bias is all of the scores."""
    zeros = scores.new_zeros(*scores.shape[:-1], 1), scores.new_zeros(*scores.shape[:-2], scores.size(-1), 1)
    return attention_weights(*zeros, mask, bias=scores)


def library_encoder(scores, ids, pad_id):
    return library_weights(scores, padding_mask(ids, pad_id))


# The library's own: its results must equal the reference's (not on "meta", where a mask cannot be looked at).
LIBRARY = {"05.decoder": library_decoder, "05.weights": library_weights, "05.encoder": library_encoder}
