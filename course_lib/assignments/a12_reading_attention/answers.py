"""Answers to assignment 12: differently written right ones, and plausible wrong ones with the hint that they get."""

import torch

# 12.error_rate


def rate_by_sums(predicted, sure, possible):
    right = (predicted & sure).sum() + (predicted & (sure | possible)).sum()
    return 1 - right / (predicted.sum() + sure.sum())


def rate_by_products(predicted, sure, possible):
    a, s, p = predicted.float(), sure.float(), possible.float().maximum(sure.float())
    return 1 - (a * (s + p)).sum() / (a + s).sum()


def rate_by_einsum(predicted, sure, possible):
    a, s, p = (each.flatten().float() for each in (predicted, sure, possible))
    return 1 - (2 * (a @ s) + a @ (p * (1 - s))) / (a.sum() + s.sum())


def rate_of_picked(predicted, sure, possible):
    right = sure[predicted].sum() + (sure | possible)[predicted].sum()
    return 1 - right / (len(predicted[predicted]) + len(sure[sure]))


def rate_with(allowed=lambda s, p: s | p, below=lambda s, p: s, turn=False):
    def answer(predicted, sure, possible):
        right = (predicted * sure).sum() + (predicted * allowed(sure, possible)).sum()
        share = right / (predicted.sum() + below(sure, possible).sum())
        return share if turn else 1 - share

    return answer


def rate_by_sentence(predicted, sure, possible):
    return torch.stack([rate_by_sums(*each) for each in zip(predicted, sure, possible, strict=True)]).mean()


def rate_of_precision(predicted, sure, possible):
    return 1 - (predicted & (sure | possible)).sum() / predicted.sum()


# 12.rows


def rows_by_zip(weights, src, tgt_in):
    best = weights.argmax(dim=1).tolist()
    return [(token, src[column]) for token, column in zip([*tgt_in[1:], "</s>"], best, strict=True)]


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


def rows_as_read(weights, src, tgt_in):
    return [(token, src[int(row.argmax())]) for token, row in zip(tgt_in, weights, strict=True)]


def rows_without_start(weights, src, tgt_in):
    return rows_as_read(weights, src, tgt_in)[1:]


def rows_without_end(weights, src, tgt_in):
    return rows_by_number(weights, src, tgt_in)[:-1]


def rows_shifted_back(weights, src, tgt_in):
    return [((["</s>"] + tgt_in)[row], src[weights[row].argmax()]) for row in range(len(tgt_in))]


def rows_that_start(weights, src, tgt_in):
    names = ["<s>", *tgt_in][: len(tgt_in)]
    return [(name, src[column]) for name, column in zip(names, weights.argmax(1), strict=True)]


def rows_rolled(weights, src, tgt_in):
    """The rows go the other way, and the names stay."""
    return rows_as_read(weights.roll(-1, dims=0), src, tgt_in)


def rows_of_columns(weights, src, tgt_in):
    best = weights.argmax(dim=0).tolist()
    names = [*tgt_in[1:], "</s>"]
    return [(names[row], token) for token, row in zip(src, best, strict=True)]


# 12.best_head


def best_by_gather(weights, gold, num_choosing):
    hit = weights.argmax(dim=-1) == gold[:, None]  # (sentences, heads, rows)
    links = gold != -1
    first = hit[:num_choosing].sum(dim=(0, 2)) / links[:num_choosing].sum()
    other = hit[num_choosing:].sum(dim=(0, 2)) / links[num_choosing:].sum()
    head = first.argmax()
    return head, other.gather(0, head.view(1)).squeeze(0)


def best_by_index(weights, gold, num_choosing):
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


def chosen_on(choose, report, links=lambda gold: gold >= 0, mean=False):
    """The parts to choose and to report on, as functions of the number of sentences to choose from."""

    def share(weights, gold):
        right = (weights.argmax(3) == gold.unsqueeze(1)).float().sum(2)  # (sentences, heads)
        real = links(gold).float().sum(1, keepdim=True)
        return (right / real).mean(0) if mean else right.sum(0) / real.sum()

    def answer(weights, gold, num_choosing):
        one, other = choose(num_choosing), report(num_choosing)
        head = share(weights[one], gold[one]).argmax()
        return head, share(weights[other], gold[other]).index_select(0, head[None])[0]

    return answer


def first_part(number):
    return slice(None, number)


def other_part(number):
    return slice(number, None)


def everything(number):
    return slice(None)


def best_after_mean_of_heads(weights, gold, num_choosing):
    head, _ = best_by_gather(weights, gold, num_choosing)
    mean = weights.mean(dim=1)[num_choosing:]
    links = gold[num_choosing:] != -1
    return head, (mean.argmax(-1) == gold[num_choosing:]).sum() / links.sum()


def best_of_the_last(weights, gold, num_choosing):
    head, share = best_by_gather(weights.flip(1), gold, num_choosing)
    return weights.size(1) - 1 - head, share


def best_by_weight(weights, gold, num_choosing):
    """Chosen by the weight on the links, reported by hits."""
    head, _ = best_weight(weights, gold, num_choosing)
    return head, best_by_gather(weights[:, head[None]], gold, num_choosing)[1]


def best_weight(weights, gold, num_choosing):
    """The weight on the gold links, where the largest weight was asked for."""
    links = (gold != -1).float()
    on_gold = weights.gather(3, gold.clamp(min=0)[:, None, :, None].expand(-1, weights.size(1), -1, 1))[..., 0]
    on_gold = on_gold * links[:, None]
    head = on_gold[:num_choosing].sum((0, 2)).argmax()
    return head, (on_gold[num_choosing:].sum((0, 2)) / links[num_choosing:].sum()).index_select(0, head[None])[0]


# 12.em


def em_by_index_put(t, src, tgt):
    places = src[:, :, None], tgt[:, None, :]
    shares = t[places]  # (pairs, src_len, tgt_len)
    shares = shares / shares.sum(dim=1, keepdim=True)
    counts = torch.zeros_like(t).index_put(places, shares, accumulate=True)
    return counts / counts.sum(dim=1, keepdim=True)


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
            total = sum(t[source, word] for source in sources)
            for source in sources:
                counts[source, word] += t[source, word] / total
    return counts / counts.sum(1, keepdim=True)


def rows_to_one(counts):
    return counts / counts.sum(dim=1, keepdim=True)


def em_with(share=lambda found: found / found.sum(1, keepdim=True), norm=rows_to_one):
    def answer(t, src, tgt):
        cells = src[:, :, None] * t.size(1) + tgt[:, None, :]
        shares = share(t.take(cells))
        counts = t.new_zeros(t.numel()).scatter_add(0, cells.flatten(), shares.flatten())
        return norm(counts.view_as(t))

    return answer


def em_that_assigns(t, src, tgt):
    counts = torch.zeros_like(t)
    found = t[src[:, :, None], tgt[:, None, :]]
    counts[src[:, :, None], tgt[:, None, :]] += found / found.sum(dim=1, keepdim=True)
    return counts / counts.sum(dim=1, keepdim=True)


def hardest(found):
    """All of a word goes to the one that explains it best."""
    return (found == found.amax(1, keepdim=True)).to(found.dtype)


def em_without_t(t, src, tgt):
    return em_by_index_put(torch.ones_like(t), src, tgt)


# 12.predict

PREDICTED = {
    "the row that predicts schläft": 2,
    "the weight on <s>": 1.0,
    "the weight on the word": 0.5,
    "the weight of the word's row": 0.25,
    "the error rate, two in common": 0.5,
    "the error rate, two missing": 0.25,
}


def predicted(**changed):
    names = dict(zip(("row", "start", "key", "query", "common", "missing"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "12.error_rate": [rate_by_sums, rate_by_products, rate_by_einsum, rate_of_picked],
    "12.rows": [rows_by_zip, rows_by_number, rows_by_topk],
    "12.best_head": [best_by_gather, best_by_index, best_in_a_loop],
    "12.em": [em_by_index_put, em_by_products, em_by_flat_numbers],
    "12.predict": [PREDICTED, predicted(row=torch.tensor(2), start=1), predicted(missing=1 / 4, common=1 - 4 / 8)],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "12.error_rate": [
        (rate_with(allowed=lambda s, p: p), "belongs to P"),
        (rate_with(allowed=lambda s, p: s), "make no difference"),
        (rate_by_sentence, "mean over sentences"),
        (rate_with(below=lambda s, p: s + p), "only possible"),
        (rate_with(turn=True), "share that is right"),
        (rate_of_precision, None),
        (rate_with(allowed=lambda s, p: s & p), None),
        (lambda predicted, sure, possible: rate_by_sums(predicted, possible, sure), None),
        (lambda predicted, sure, possible: 100 * rate_by_sums(predicted, sure, possible), None),
    ],
    "12.rows": [
        (rows_as_read, "still named by the token that it reads"),
        (rows_without_start, "Without the row of <s>"),
        (rows_without_end, "last row is missing"),
        (rows_shifted_back, "wrong way"),
        (rows_that_start, None),
        (rows_rolled, None),
        (rows_of_columns, None),
        (lambda weights, src, tgt_in: [pair[::-1] for pair in rows_by_zip(weights, src, tgt_in)], None),
        (lambda weights, src, tgt_in: dict(rows_by_zip(weights, src, tgt_in)), None),
    ],
    "12.best_head": [
        (chosen_on(everything, everything), "on all sentences"),
        (chosen_on(first_part, first_part), "by which the head was chosen"),
        (chosen_on(other_part, other_part), "without that part"),
        (chosen_on(first_part, other_part, links=lambda gold: gold == gold), "without a gold link"),
        (chosen_on(first_part, other_part, mean=True), "mean over sentences"),
        (chosen_on(other_part, first_part), None),
        (chosen_on(everything, other_part), "without that part"),
        (best_after_mean_of_heads, None),
        (best_weight, None),
        (best_of_the_last, None),
        (best_by_weight, None),
        (lambda weights, gold, number: best_by_gather(weights, gold, number)[::-1], None),
    ],
    "12.em": [
        (em_in_loops, "one by one"),
        (em_that_assigns, "does not add up"),
        (em_with(share=lambda found: found / found.sum(2, keepdim=True)), "share each source word"),
        (em_with(share=lambda found: found), "added up as they are"),
        (em_with(norm=lambda counts: counts / counts.sum(0)), "each column"),
        (em_with(norm=lambda counts: counts), "These are the counts"),
        (em_with(share=hardest), None),
        (em_with(norm=lambda counts: counts.softmax(1)), None),
        (em_with(share=lambda found: found.softmax(1)), None),
        (em_without_t, None),
        (lambda t, src, tgt: t / t.sum(1, keepdim=True), None),
    ],
    "12.predict": [
        (predicted(row=3), "Row 3 reads"),
        (predicted(key=0.25), "the two add up"),
        (predicted(query=0.5), "Each row sums to 1"),
        (predicted(missing=0.0), "two are missing"),
        (predicted(missing=0.4), "share of the missing"),
        (predicted(row=1), None),
        (predicted(start=1 / 6), None),
        (predicted(common=None), None),
    ],
}
