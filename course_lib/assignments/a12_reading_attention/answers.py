"""Answers to assignment 12: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import torch

from course_lib.checks import Edit

# The weight on the gold links, where the largest weight was asked for.
ON_GOLD = (
    "(weights.gather(3, gold.clamp(min=0)[:, None, :, None].expand(*weights.shape[:3], 1)).squeeze(3)"
    " * (gold != -1)[:, None])"
)
SHARES = "found / found.sum(dim=1, keepdim=True)"


def rate_by_products(predicted, sure, possible):
    a, s, p = predicted.float(), sure.float(), possible.float().maximum(sure.float())
    return 1 - (a * (s + p)).sum() / (a + s).sum()


def rate_by_einsum(predicted, sure, possible):
    a, s, p = (each.flatten().float() for each in (predicted, sure, possible))
    return 1 - (2 * (a @ s) + a @ (p * (1 - s))) / (a.sum() + s.sum())


def rows_by_number(weights, src, tgt_in):
    found = []
    for row in range(len(tgt_in)):
        token = tgt_in[row + 1] if row + 1 < len(tgt_in) else "</s>"
        largest = max(range(len(src)), key=lambda column: weights[row, column].item())
        found.append((token, src[largest]))
    return found


def rows_by_topk(weights, src, tgt_in):
    columns = weights.topk(1, dim=-1).indices.squeeze(-1)
    predicted = iter((tgt_in + ["</s>"])[1:])
    return [(next(predicted), src[column]) for column in columns]


def best_by_parts(weights, gold, num_choosing):
    def share(part, target):
        real = target.ne(-1).unsqueeze(1)
        right = part.max(dim=-1).indices.eq(target.unsqueeze(1)) & real
        return right.float().sum((0, 2)) / real.float().sum()

    head = torch.argmax(share(weights[:num_choosing], gold[:num_choosing]))
    return head, share(weights[num_choosing:], gold[num_choosing:])[head]


def best_in_a_loop(weights, gold, num_choosing):
    counts = []
    for head in range(weights.size(1)):
        right = (weights[:, head].argmax(-1) == gold).sum(dim=1)
        counts.append((right[:num_choosing].sum(), right[num_choosing:].sum()))
    links = (gold[num_choosing:] >= 0).sum()
    head = torch.stack([chosen for chosen, _ in counts]).argmax()
    return head, counts[int(head)][1] / links


def em_by_products(t, src, tgt):
    """One-hot matrices pick rows and columns, and put the shares back."""
    rows = (src[..., None] == torch.arange(t.size(0), device=t.device)).to(t.dtype)  # (pairs, src_len, src_vocab)
    columns = (tgt[..., None] == torch.arange(t.size(1), device=t.device)).to(t.dtype)
    explain = rows @ t @ columns.mT  # (pairs, src_len, tgt_len)
    counts = (rows.mT @ (explain / explain.sum(1, keepdim=True)) @ columns).sum(0)
    return counts / counts.sum(1, keepdim=True)


def em_by_flat_numbers(t, src, tgt):
    cells = (src.unsqueeze(2) * t.size(1) + tgt.unsqueeze(1)).flatten(1)  # (pairs, src_len * tgt_len)
    shares = t.flatten()[cells].view(len(src), src.size(1), -1)
    shares = shares / shares.sum(1, keepdim=True)
    counts = t.new_zeros(t.numel()).index_add(0, cells.flatten(), shares.flatten()).view(t.shape)
    return torch.nn.functional.normalize(counts, p=1, dim=1)


def em_in_loops(t, src, tgt):
    counts = torch.zeros_like(t)
    for sources, words in zip(src.tolist(), tgt.tolist(), strict=True):
        for word in words:
            for source in sources:
                counts[source, word] += t[source, word] / t[sources, word].sum()
    return counts / counts.sum(1, keepdim=True)


RIGHT = {
    "12.error_rate": [
        Edit("&", "*", "|", "+"),
        Edit("(predicted & sure)", "sure[predicted]", "(predicted & (sure | possible))", "(sure | possible)[predicted]",
             "predicted.sum() + sure.sum()", "len(predicted[predicted]) + len(sure[sure])"),
        rate_by_products,
        rate_by_einsum,
    ],
    "12.rows": [
        Edit("predicted[row]", "name", "row, column in enumerate(best)", "name, column in zip(predicted, best)"),
        rows_by_number,
        rows_by_topk,
    ],
    "12.best_head": [Edit("other[head]", "other.gather(0, head[None]).squeeze(0)"), best_by_parts, best_in_a_loop],
    "12.em": [
        Edit("t[places]", "t[src].gather(2, tgt[:, None, :].expand(-1, src.size(1), -1))"),
        em_by_products,
        em_by_flat_numbers,
    ],
    "12.predict": [
        Edit(),
        Edit('schläft": 2', 'schläft": torch.tensor(2)', "1.0", "1"),
        Edit('missing": 0.25', 'missing": 1 / 4', 'common": 0.5', 'common": 1 - 4 / 8'),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "12.error_rate": [
        Edit("& sure)", "& possible)", "+ sure.sum()", "+ possible.sum()"),
    ],
    "12.rows": [
        Edit('[*tgt_in[1:], "</s>"]', '["<s>", *tgt_in]'),
        Edit("weights.argmax", "weights.roll(-1, dims=0).argmax", "predicted[row]", "tgt_in[row]"),
        Edit("dim=-1", "dim=0", "predicted[row], src[column]", "predicted[column], src[row]"),
    ],
    "12.best_head": [
        (Edit("first.argmax()", "(hit.sum(dim=(0, 2)) / links.sum()).argmax()"), "without that part"),
        Edit("other[head]", "other.mean()",
             "other = hit", "other = (weights.mean(dim=1, keepdim=True).argmax(dim=-1) == gold[:, None])"),
        Edit("weights.argmax(dim=-1) == gold[:, None]", ON_GOLD),
        (Edit("first = hit", f"first = {ON_GOLD}"), "equally good"),
        Edit("head, other[head]", "other.gather(0, head[None]).squeeze(0), head"),
    ],
    "12.em": [
        (em_in_loops, "one by one"),
    ],
    "12.predict": [
        Edit('common": 0.5', 'common": None'),
    ],
}
