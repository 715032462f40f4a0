"""Answers to assignment 11: differently written right ones, and plausible wrong ones with the hint that they get."""

import math
from heapq import nlargest
from types import SimpleNamespace

import torch

from course_lib.beam import beam_search as library_beam_search
from course_lib.decoding import _cut as library_cut
from course_lib.decoding import greedy as library_greedy

pad_id, bos_id, eos_id = 0, 1, 2

# 11.greedy


def greedy_with_mask(log_probs, max_len):
    rows = torch.arange(log_probs.size(0), device=log_probs.device)
    last = torch.full_like(rows, bos_id)
    finished = torch.zeros_like(rows, dtype=torch.bool)
    ids = []
    for _ in range(max_len):
        last = log_probs[rows, last].argmax(dim=-1).masked_fill(finished, pad_id)
        finished = finished | (last == eos_id)
        ids.append(last)
    return torch.stack(ids, dim=1)


def greedy_that_stops(log_probs, max_len):
    ids = torch.full((len(log_probs), max_len), pad_id, device=log_probs.device)
    last = torch.full((len(log_probs), 1, 1), bos_id, device=log_probs.device)
    live = torch.ones(len(log_probs), dtype=torch.bool, device=log_probs.device)
    for step in range(max_len):
        following = log_probs.gather(1, last.expand(-1, 1, log_probs.size(2)))  # (batch, 1, vocab)
        last = following.argmax(dim=2, keepdim=True)
        ids[:, step] = torch.where(live, last[:, 0, 0], pad_id)
        live &= last[:, 0, 0] != eos_id
        if not live.any():
            break
    return ids


def greedy_and_cut(log_probs, max_len):
    """Writes on to the end, and takes back what comes after </s>."""
    favorites = log_probs.argmax(dim=-1)  # (batch, vocab)
    ids = [favorites[:, bos_id]]
    while len(ids) < max_len:
        ids.append(favorites.gather(1, ids[-1][:, None])[:, 0])
    ids = torch.stack(ids, 1)
    ended = (ids == eos_id).cumsum(1).roll(1, dims=1)
    ended[:, 0] = 0
    return torch.where(ended > 0, pad_id, ids)


def greedy_one_by_one(log_probs, max_len):
    rows = []
    for table in log_probs.argmax(-1).tolist():
        row, last = [], bos_id
        while len(row) < max_len and last != eos_id:
            last = table[last]
            row.append(last)
        rows.append(row + [pad_id] * (max_len - len(row)))
    return torch.tensor(rows)


def greedy_with(start=bos_id, fill=None, keep_end=True):
    def answer(log_probs, max_len):
        favorites = log_probs.argmax(dim=-1)
        last = torch.full_like(favorites[:, 0], start)
        over = torch.zeros_like(last)
        ids = []
        for _ in range(max_len):
            last = favorites.gather(1, last[:, None]).squeeze(1)
            before, over = over, over | (last == eos_id).long()
            written = last if fill is None else last.masked_fill((before if keep_end else over) == 1, fill)
            ids.append(written)
        return torch.stack(ids, dim=1)

    return answer


def greedy_that_stops_early(log_probs, max_len):
    """As long as the longest output, which may be shorter than max_len."""
    ids = greedy_with_mask(log_probs, max_len)
    return ids[:, (ids != pad_id).any(dim=0)]


def greedy_that_stops_for_all(log_probs, max_len):
    ids = greedy_with()(log_probs, max_len)
    first = min((row.index(eos_id) for row in ids.tolist() if eos_id in row), default=max_len)
    ids[:, first + 1 :] = pad_id
    return ids


def greedy_with_start(log_probs, max_len):
    return torch.nn.functional.pad(greedy_with_mask(log_probs, max_len), (1, 0), value=bos_id)[:, :max_len]


# 11.top_p


def top_p_by_sorting(logits, p):
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    late = probs.cumsum(dim=-1) - probs >= p
    return logits.masked_fill(late.gather(-1, order.argsort(dim=-1)), -math.inf)


def top_p_by_scatter(logits, p):
    ordered, order = torch.sort(logits, dim=1, descending=True)
    crossed = ordered.softmax(1).cumsum(1) >= p
    crossed[:, 1:] = crossed[:, :-1].clone()
    crossed[:, 0] = False
    late = torch.zeros_like(crossed).scatter(1, order, crossed)
    return torch.where(late, -torch.inf, logits)


def top_p_without_sorting(logits, p):
    probs = logits.softmax(-1)
    ahead = (probs[:, None, :] * (probs[:, None, :] > probs[:, :, None])).sum(-1)
    return logits.masked_fill(ahead >= p, -math.inf)


def top_p_in_a_loop(logits, p):
    kept = torch.full_like(logits, -math.inf)
    for row, probs in enumerate(logits.softmax(dim=-1)):
        reached = 0.0
        for token in probs.argsort(descending=True).tolist():
            kept[row, token] = logits[row, token]
            reached += probs[token].item()
            if reached >= p:
                break
    return kept


def top_p_that_drops_the_crossing(logits, p):
    ordered, order = logits.sort(dim=-1, descending=True)
    ordered = torch.where(ordered.softmax(-1).cumsum(-1) > p, -math.inf, ordered)
    return torch.empty_like(ordered).scatter(-1, order, ordered)


def top_p_in_two_orders(logits, p):
    probs = logits.softmax(-1).sort(-1, descending=True).values
    return torch.where(probs.cumsum(-1) - probs >= p, -torch.inf, logits)


def top_p_as_they_stand(logits, p):
    probs = logits.softmax(-1)
    before = torch.nn.functional.pad(probs.cumsum(-1), (1, -1))
    return torch.where(before < p, logits, -torch.inf)


def top_p_from_below(logits, p):
    ordered, order = logits.sort(dim=-1)
    probs = ordered.softmax(-1)
    return torch.empty_like(logits).scatter(-1, order, torch.where(probs.cumsum(-1) - probs < p, ordered, -torch.inf))


def top_p_of_single_tokens(logits, p):
    return torch.where(logits.softmax(-1) < p, -torch.inf, logits)


def top_p_as_probabilities(logits, p):
    powers = top_p_by_sorting(logits, p).exp()
    return powers / powers.sum(-1, keepdim=True)


def top_p_with_zeros(logits, p):
    kept = top_p_by_sorting(logits, p)
    return kept.masked_fill(kept == -math.inf, 0.0)


# 11.step


def step_by_topk(totals, logits):
    grown = totals.unsqueeze(-1) + logits.log_softmax(dim=-1)  # (batch, beam_size, vocab)
    best = grown.flatten(1).topk(totals.size(1), dim=1)
    return best.values, best.indices // logits.size(-1), best.indices % logits.size(-1)


def step_by_sorting(totals, logits):
    beam_size, vocab = logits.shape[1:]
    grown = logits - logits.logsumexp(-1, keepdim=True) + totals[:, :, None]
    values, order = grown.reshape(-1, beam_size * vocab).sort(dim=1, descending=True)
    order = order[:, :beam_size]
    parents = torch.div(order, vocab, rounding_mode="floor")
    return values[:, :beam_size], parents, order - parents * vocab


def step_in_two_stages(totals, logits):
    """No hypothesis can give more than beam_size continuations."""
    size = totals.size(1)
    some = torch.nn.functional.log_softmax(logits, dim=2).topk(size, dim=2)
    values, index = (some.values + totals[..., None]).flatten(1).topk(size)
    return values, index // size, some.indices.flatten(1).gather(1, index)


def step_sentence_by_sentence(totals, logits):
    found = []
    for before, scores in zip(totals, logits, strict=True):
        values, index = (before[:, None] + scores.log_softmax(1)).flatten().topk(len(before))
        found.append((values, index // scores.size(1), index.remainder(scores.size(1))))
    return tuple(torch.stack(part) for part in zip(*found, strict=True))


def step_with(scores=lambda logits: logits.log_softmax(-1), add=True, vocab=lambda logits: logits.size(2)):
    def answer(totals, logits):
        grown = scores(logits)
        grown = grown + totals[:, :, None] if add else grown
        values, index = grown.reshape(len(grown), -1).sort(dim=1, descending=True)
        values, index = values[:, : totals.size(1)], index[:, : totals.size(1)]
        return values, index.div(vocab(logits), rounding_mode="trunc"), index.remainder(vocab(logits))

    return answer


def step_of_each_its_own(totals, logits):
    best = logits.log_softmax(-1).topk(1, dim=-1)
    grown = (best.values + totals[..., None]).squeeze(-1)
    values, parents = grown.sort(descending=True)
    return values, parents, best.indices.squeeze(-1).gather(1, parents)


def step_of_all_together(totals, logits):
    grown = (totals.repeat_interleave(logits.size(2), dim=1) + logits.flatten(1).log_softmax(-1)).topk(totals.size(1))
    return grown.values, grown.indices // logits.size(2), grown.indices % logits.size(2)


def step_that_multiplies(totals, logits):
    values, index = (totals[..., None] * logits.log_softmax(-1)).flatten(1).topk(totals.size(1))
    return values, index // logits.size(2), index % logits.size(2)


def step_with_flat_tokens(totals, logits):
    values, parents, tokens = step_by_topk(totals, logits)
    return values, parents, tokens + parents * logits.size(2)


def step_worst_first(totals, logits):
    return tuple(part.flip(1) for part in step_by_topk(totals, logits))


# 11.finished


def search_repaired(model, beam_size, alpha, max_len):
    live, finished = [(0.0, ["<s>"])], []
    for _ in range(max_len):
        grown = []
        for total, words in live:
            for word, log_prob in model[words[-1]].items():
                grown.append((total + log_prob, [*words, word]))
        grown.sort(reverse=True)
        finished += [one for one in grown[:beam_size] if one[1][-1] == "</s>"]
        live = [one for one in grown if one[1][-1] != "</s>"][:beam_size]
        if len(finished) >= beam_size:
            break
    scored = [(total / ((5 + len(words) - 1) / 6) ** alpha, words[1:-1]) for total, words in finished]
    score, words = max(scored, default=(-math.inf, []))
    return words, score


def search_with_records(model, beam_size, alpha, max_len):
    """Keeps the best score so far, and how many have finished."""
    beam, ended, best = {("<s>",): 0.0}, 0, ([], -math.inf)
    for length in range(1, max_len + 1):
        grown = {
            (*words, word): total + log_prob
            for words, total in beam.items()
            for word, log_prob in model[words[-1]].items()
        }
        order = sorted(grown, key=grown.get, reverse=True)
        for words in order[:beam_size]:
            if words[-1] == "</s>":
                ended += 1
                score = grown[words] / ((5 + length) / 6) ** alpha
                best = (list(words[1:-1]), score) if score > best[1] else best
        beam = {words: grown[words] for words in [w for w in order if w[-1] != "</s>"][:beam_size]}
        if ended >= beam_size:
            break
    return best


class Search:
    """The search as a recursion over steps."""

    def __call__(self, model, beam_size, alpha, max_len):
        done = self.step(model, [("<s>", 0.0)], [], beam_size, max_len)
        if not done:
            return [], -math.inf
        scores = [total / (5 / 6 + text.count(" ") / 6) ** alpha for text, total in done]
        text, score = max(zip([text for text, _ in done], scores, strict=True), key=lambda pair: pair[1])
        return text.split(" ")[1:-1], score

    def step(self, model, live, done, size, left):
        if left == 0 or len(done) >= size:
            return done
        grown = [(f"{t} {w}", total + lp) for t, total in live for w, lp in model[t.split(" ")[-1]].items()]
        best = nlargest(2 * size, grown, key=lambda pair: pair[1])
        done = done + [one for one in best[:size] if one[0].endswith("</s>")]
        return self.step(model, [one for one in best if not one[0].endswith("</s>")][:size], done, size, left - 1)


def search_with_a_shrinking_beam(model, beam_size, alpha, max_len):
    live, finished = [(0.0, ["<s>"])], []
    for _ in range(max_len):
        grown = [(total + lp, [*words, w]) for total, words in live for w, lp in model[words[-1]].items()]
        best = sorted(grown, reverse=True)[:beam_size]
        finished += [one for one in best if one[1][-1] == "</s>"]
        live = [one for one in best if one[1][-1] != "</s>"]
        if len(finished) >= beam_size or not live:
            break
    scored = [(total / ((5 + len(words) - 1) / 6) ** alpha, words[1:-1]) for total, words in finished]
    return max(scored, default=(-math.inf, []))[::-1]


def search_with(keep=True, enough=None, ends="beam", length=lambda words: len(words) - 1, score=None, by_total=False):
    """The planted code with its mistake repaired, or other ones made."""
    score = score or (lambda total, penalty: total / penalty)

    def answer(model, beam_size, alpha, max_len):
        live, finished = [(["<s>"], 0.0)], []
        for _ in range(max_len):
            grown = [([*words, w], total + lp) for words, total in live for w, lp in model[words[-1]].items()]
            grown.sort(key=lambda one: -one[1])
            if not keep:
                finished = []
            for rank, one in enumerate(grown):
                if one[0][-1] == "</s>" and (rank < beam_size or ends == "all"):
                    finished.append(one)
            live = [one for one in grown if one[0][-1] != "</s>"][:beam_size]
            if len(finished) >= (enough or beam_size):
                break
        best, record = ([], -math.inf), -math.inf
        for words, total in finished:
            this = score(total, ((5 + length(words)) / 6) ** alpha)
            if (total if by_total else this) > record:
                best, record = (words[1:-1], this), total if by_total else this
        return best

    return answer


def search_with_finished_in_the_beam(model, beam_size, alpha, max_len):
    """Finished outputs keep a place of the beam for themselves."""
    beam = [(0.0, ["<s>"])]
    for _ in range(max_len):
        grown = []
        for total, words in beam:
            following = {"</s>": 0.0} if words[-1] == "</s>" else model[words[-1]]
            grown += [(total + lp, words if words[-1] == "</s>" else [*words, w]) for w, lp in following.items()]
        beam = sorted(grown, reverse=True)[:beam_size]
    ended = [(t / ((4 + len(w)) / 6) ** alpha, w[1:-1]) for t, w in beam if w[-1] == "</s>"]
    score, words = max(ended, default=(-math.inf, []))
    return words, score


def search_with_end_in_the_output(model, beam_size, alpha, max_len):
    words, score = search_repaired(model, beam_size, alpha, max_len)
    return [*words, "</s>"], score


# 11.predict

PREDICTED = {
    "the probability after the temperature": 0.9,
    "the probability after top-k": 0.75,
    "the tokens that top-p keeps": 3,
    "the change of the log-probability": 0.0,
    "the tokens of the winner, alpha 0": 1,
    "the tokens of the winner, alpha 1": 7,
}


def predicted(**changed):
    names = dict(zip(("temperature", "top_k", "top_p", "seven", "zero", "one"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "11.greedy": [greedy_with_mask, greedy_that_stops, greedy_and_cut, greedy_one_by_one],
    "11.top_p": [top_p_by_sorting, top_p_by_scatter, top_p_without_sorting],
    "11.step": [step_by_topk, step_by_sorting, step_in_two_stages, step_sentence_by_sentence],
    "11.finished": [search_repaired, search_with_records, Search()],
    "11.predict": [PREDICTED, predicted(temperature=9 / 10, top_p=3.0), predicted(seven=0, top_k=torch.tensor(0.75))],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "11.greedy": [
        (greedy_with(), "is over"),
        (greedy_with(fill=eos_id), "more of them"),
        (greedy_with(fill=pad_id, keep_end=False), "itself is missing"),
        (greedy_with(fill=bos_id), None),
        (greedy_with(start=pad_id, fill=pad_id), None),
        (greedy_that_stops_for_all, None),
        (greedy_that_stops_early, None),
        (greedy_with_start, None),
        (lambda log_probs, max_len: greedy_with_mask(-log_probs, max_len), None),
        (lambda log_probs, max_len: greedy_with_mask(log_probs, max_len)[:, :-1], None),
    ],
    "11.top_p": [
        (top_p_in_a_loop, "one by one"),
        (top_p_that_drops_the_crossing, "crosses p"),
        (top_p_in_two_orders, "Put the cut back"),
        (top_p_as_they_stand, "order of the vocabulary"),
        (top_p_of_single_tokens, "compare each token"),
        (top_p_as_probabilities, "These are probabilities"),
        (top_p_from_below, None),
        (top_p_with_zeros, None),
        (lambda logits, p: top_p_by_sorting(logits.softmax(-1), p), None),
        (lambda logits, p: torch.where(logits.softmax(-1) < 1 - p, -math.inf, logits), None),
        (lambda logits, p: top_p_by_sorting(logits.T, p).T, None),
    ],
    "11.step": [
        (step_with(scores=lambda logits: logits), "raw logits"),
        (step_with(scores=lambda logits: logits.softmax(-1)), "add probabilities"),
        (step_with(add=False), "is forgotten"),
        (step_with(vocab=lambda logits: logits.size(1)), "flat order"),
        (step_of_each_its_own, "its own best token"),
        (step_of_all_together, None),
        (step_that_multiplies, None),
        (step_with_flat_tokens, None),
        (step_worst_first, None),
        (lambda totals, logits: step_by_topk(totals, logits)[::-1], None),
    ],
    "11.finished": [
        (search_with(keep=False), "still dropped"),
        (search_with(enough=1), "first output that finishes"),
        (search_with(ends="all"), "not among the best"),
        (search_with(length=lambda words: len(words) - 2), "counts its </s>"),
        (search_with(by_total=True), "bare log-probabilities"),
        (search_with(score=lambda total, penalty: total * penalty), None),
        (search_with(score=lambda total, penalty: total), None),
        (search_with_finished_in_the_beam, None),
        (search_with_a_shrinking_beam, None),
        (search_with_end_in_the_output, None),
        (search_with(length=len), None),
    ],
    "11.predict": [
        (predicted(temperature=0.75), "squares"),
        (predicted(top_k=0.6), "sum to 1 again"),
        (predicted(top_p=2), "crosses it"),
        (predicted(seven=35), "does not notice"),
        (predicted(one=1), "of seven tokens"),
        (predicted(zero=7), None),
        (predicted(top_p=4), None),
        ({"the probability after top-k": 0.75}, None),
    ],
}


# The library's own functions, with the same inputs and results; its searches get a model that looks at the last token.


class LastTokenModel(torch.nn.Module):
    """Has what the searches ask a Transformer for.

    Args:
        log_probs: (batch, vocab, vocab), of the next token after each token.
    """

    def __init__(self, log_probs):
        super().__init__()
        self.log_probs = log_probs
        self.config = SimpleNamespace(pad_id=pad_id, bos_id=bos_id, eos_id=eos_id, max_len=64)

    def new_cache(self):
        return []

    def encode(self, src):
        return src.clone()

    def decode(self, tgt_in, memory, src, cache=None):
        return self.log_probs[memory[:, :1], tgt_in]  # the source is the number of the sentence

    def generator(self, hidden):
        return hidden


def greedy_of_the_library(log_probs, max_len):
    found = library_greedy(LastTokenModel(log_probs), torch.arange(len(log_probs))[:, None], max_len=max_len)
    rows = [one.ids + [eos_id] * one.finished for one in found]
    return torch.tensor([row + [pad_id] * (max_len - len(row)) for row in rows])


def search_of_the_library(model, beam_size, alpha, max_len):
    words = ["<pad>", "<s>", "</s>", *sorted({word for word in model if word != "<s>"})]
    table = torch.full((1, len(words), len(words)), -math.inf, dtype=torch.float64)
    for last, following in model.items():
        for word, log_prob in following.items():
            table[0, words.index(last), words.index(word)] = log_prob
    options = dict(beam_size=beam_size, length_penalty=alpha, max_len=max_len)
    ((best, *_),) = library_beam_search(LastTokenModel(table), torch.tensor([[0]]), **options)
    return ([words[token] for token in best.ids], best.score) if best.finished else ([], -math.inf)


LIBRARY = {
    "11.greedy": greedy_of_the_library,
    "11.top_p": lambda logits, p: library_cut(logits, None, p),
    "11.finished": search_of_the_library,
}
