"""Answers to assignment 11: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math
from types import SimpleNamespace

import torch

from course_lib.checks import Edit
from course_lib.decoding import beam_search as library_beam_search
from course_lib.decoding import cut as library_cut

BEST = "best.values, best.indices // vocab, best.indices % vocab"
CHOOSE = "        if score > best_score:\n            best, best_score = words[1:-1], score\n"


def stream_in_two_rounds(blocks):
    """Of each block its best token and its own sum; the blocks are put together in the end."""
    largest, places, sums, starts = [], [], [], [0]
    for logits in blocks:
        best = logits.max(-1)
        largest, places = [*largest, best.values], [*places, best.indices + starts[-1]]
        sums.append((logits - best.values[:, None]).exp().sum(-1))
        starts.append(starts[-1] + logits.size(-1))
    values = torch.stack(largest)  # (blocks, batch)
    winner = values.argmax(0, keepdim=True)
    fade = (values - values.amax(0)).exp()
    return torch.stack(places).gather(0, winner)[0], -(torch.stack(sums) * fade).sum(0).log()


def stream_with_state(blocks):
    state = None
    for logits in blocks:
        values, ids = logits.topk(1)
        if state is None:
            state = values, ids, (logits - values).exp().sum(-1, True), logits.size(1)
            continue
        top, best, total, start = state
        higher = torch.maximum(top, values)
        total = torch.exp(top - higher) * total + torch.exp(logits - higher).sum(-1, True)
        state = higher, torch.where(top >= values, best, ids + start), total, start + logits.size(1)
    return state[1].squeeze(1), -torch.log(state[2]).squeeze(1)


def top_p_without_sorting(logits, p):
    probs = logits.softmax(-1)
    ahead = (probs[:, None, :] * (probs[:, None, :] > probs[:, :, None])).sum(-1)
    return logits.masked_fill(ahead >= p, -math.inf)


def top_p_in_a_loop(logits, p):
    kept = torch.full_like(logits, -math.inf)
    for row, probs in enumerate(logits.softmax(dim=-1)):
        ordered, order = probs.sort(descending=True)
        tokens = order[ordered.cumsum(dim=0) - ordered < p]
        kept[row, tokens] = logits[row, tokens]
    return kept


def step_in_two_stages(totals, logits):
    """No hypothesis can give more than beam_size continuations."""
    size = totals.size(1)
    some = torch.nn.functional.log_softmax(logits, dim=2).topk(size, dim=2)
    values, index = (some.values + totals[..., None]).flatten(1).topk(size)
    return values, index // size, some.indices.flatten(1).gather(1, index)


def step_sentence_by_sentence(totals, logits):
    found = [step_in_two_stages(*one) for one in zip(totals.split(1), logits.split(1), strict=True)]
    return tuple(torch.cat(part) for part in zip(*found, strict=True))


def search_by_recursion(model, size, alpha, left, live=((0.0, ("<s>",)),), done=()):
    if left and len(done) < size:
        grown = sorted(((t + lp, (*ws, w)) for t, ws in live for w, lp in model[ws[-1]].items()), reverse=True)
        done = [*done, *(one for one in grown[:size] if one[1][-1] == "</s>")]
        live = [one for one in grown if one[1][-1] != "</s>"][:size]
        return search_by_recursion(model, size, alpha, left - 1, live, done)
    scores = {words: total / ((4 + len(words)) / 6) ** alpha for total, words in done}
    best = max(scores, key=scores.get, default=())
    return list(best[1:-1]), scores.get(best, -math.inf)


RIGHT = {
    "11.stream": [
        stream_in_two_rounds,
        stream_with_state,
        Edit("value.clamp(min=largest)", "value if start == 0 else torch.maximum(value, largest)", "-total.log()",
             "(1 / total).log()"),
    ],
    "11.top_p": [
        Edit("late.gather(-1, order.argsort(dim=-1))", "torch.zeros_like(late).scatter(-1, order, late)"),
        Edit("probs.cumsum(dim=-1) - probs >= p", "(probs.cumsum(dim=-1) >= p).roll(1, -1)\n    late[:, 0] = False"),
        top_p_without_sorting,
    ],
    "11.step": [
        Edit(BEST, 'best[0], best[1].div(vocab, rounding_mode="floor"), best[1].remainder(vocab)'),
        Edit("topk(beam_size, dim=1)", "sort(dim=1, descending=True)",
             BEST, f"tuple(part[:, :beam_size] for part in ({BEST}))"),
        *(step_in_two_stages, step_sentence_by_sentence),
    ],
    "11.finished": [
        Edit("grown.sort(reverse=True)", "grown.sort(key=lambda one: -one[0])"),
        Edit("best, best_score = [], -math.inf", "scored = [(-math.inf, [])]",
             CHOOSE, "        scored.append((score, words[1:-1]))\n", "best, best_score", "max(scored)[::-1]"),
        search_by_recursion,
    ],
    "11.predict": [Edit(), Edit("0.9", "9 / 10", ": 3", ": 3.0"), Edit("0.0", "0", "0.75", "torch.tensor(0.75)")],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "11.stream": [
        Edit("return ids,", "return ids.tolist(),"),
        Edit("value > largest", "value < largest"),
    ],
    "11.top_p": [
        (top_p_in_a_loop, "one by one"),
        Edit("dim=-1", "dim=0", "gather(-1", "gather(0"),
    ],
    "11.step": [
        Edit(BEST, f"tuple(part.flip(1) for part in ({BEST}))"),  # the worst first
        Edit(BEST, "best.indices % vocab, best.indices // vocab, best.values"),
    ],
    "11.finished": [
        Edit("grown = []", 'grown = [one for one in live if one[1][-1] == "</s>"]',  # finished ones keep their place
             "model[words[-1]]", "model.get(words[-1], {})", "finished +=", "finished =",
             'grown if one[1][-1] != "</s>"][:beam_size]', "grown[:beam_size]]"),
    ],
    "11.predict": [Edit(": 1,", ": 7,"), Edit(": 3", ": 4"), {"the probability after top-k": 0.75}],
}


class LastTokenModel(torch.nn.Module):
    """What the library's searches ask a Transformer for; log_probs (batch, vocab, vocab) follow the last token."""

    def __init__(self, log_probs):
        super().__init__()
        self.log_probs = log_probs
        self.config = SimpleNamespace(pad_id=0, bos_id=1, eos_id=2, max_len=64)
        self.new_cache, self.encode, self.generator = list, torch.clone, torch.nn.Identity()

    def decode(self, tgt_in, memory, src, cache=None):
        return self.log_probs[memory[:, :1], tgt_in]  # the source is the number of the sentence


def whole_vocabulary(blocks):
    best = torch.cat([block.clone() for block in blocks], dim=1).log_softmax(dim=-1).max(dim=-1)
    return best.indices, best.values


def search_of_the_library(model, beam_size, alpha, max_len):
    words = ["<pad>", "<s>", "</s>", *sorted({word for word in model if word != "<s>"})]
    table = torch.full((1, len(words), len(words)), -math.inf, dtype=torch.float64)
    for last, following in model.items():
        for word, log_prob in following.items():
            table[0, words.index(last), words.index(word)] = log_prob
    options = dict(beam_size=beam_size, length_penalty=alpha, max_len=max_len)
    ((best, *_),) = library_beam_search(LastTokenModel(table), torch.tensor([[0]]), **options)
    return ([words[token] for token in best.ids], best.score) if best.finished else ([], -math.inf)


# What the solutions must agree with.
LIBRARY = {
    "11.stream": whole_vocabulary,
    "11.top_p": lambda logits, p: library_cut(logits, None, p),
    "11.finished": search_of_the_library,
}
