"""Assignment 11: searches for a sentence: greedy, top-p, a step of a beam, and outputs that have finished."""

import math

import torch
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2

# 11.greedy


def greedy(log_probs: Tensor, max_len: int) -> Tensor:
    """The favorite after each token, one sentence at a time; </s> is written, and padding after it."""
    ids = torch.full((log_probs.size(0), max_len), PAD_ID, device=log_probs.device)
    for sentence in range(log_probs.size(0)):
        last = torch.full((1,), BOS_ID, device=log_probs.device)
        running = torch.ones(1, dtype=torch.bool, device=log_probs.device)
        for step in range(max_len):
            last = log_probs[sentence].index_select(0, last).argmax(dim=-1)  # (1,)
            ids[sentence, step] = last.masked_fill(~running, PAD_ID).squeeze(0)
            running = running & (last != EOS_ID)
    return ids


def _tables(generator: torch.Generator) -> list[tuple]:
    """Models that look at the last token only: all sentences end at once, or one never, one at once, one soon."""
    at_once = torch.full((2, 5, 5), -math.inf)
    at_once[..., EOS_ID] = 0.0
    cases = [(at_once, 4)]
    for batch, vocab, max_len in ((1, 5, 4), (2, 6, 6), (3, 8, 5), (5, 7, 8)):
        logits = 2 * torch.randn(batch, vocab, vocab, generator=generator)
        logits[0, :, EOS_ID] -= 99
        logits[1:2, BOS_ID, EOS_ID] += 99  # slices, because not every batch has a second and a third
        logits[2:3, BOS_ID, EOS_ID] -= 99
        logits[2:3, EOS_ID + 1 :, EOS_ID] += 99
        logits[:, :, [PAD_ID, BOS_ID]] = -math.inf  # these are never written
        cases.append((logits.log_softmax(dim=-1), max_len))
    return cases


def _favorites(log_probs: Tensor, max_len: int) -> Tensor:
    """The favorites without an end, (batch, max_len)."""
    rows, ids = torch.arange(log_probs.size(0), device=log_probs.device), []
    last = torch.full_like(rows, BOS_ID)
    for _ in range(max_len):
        last = log_probs[rows, last].argmax(dim=-1)
        ids.append(last)
    return torch.stack(ids, dim=1)


def _ended(ids: Tensor, filler: int, *, with_end: bool = True) -> Tensor:
    """The same ids with a filler after </s>, or in the place of </s> too."""
    ends = (ids == EOS_ID).long()
    before = ends.cumsum(dim=1) - (ends if with_end else 0)
    return ids.masked_fill(before > 0, filler)


GREEDY = Exercise(
    "11.greedy",
    greedy,
    _tables,
    (
        Variant(_favorites, "A sentence that has written </s> is over: after it comes padding."),
        Variant(
            lambda *inputs: _ended(_favorites(*inputs), EOS_ID),
            "After the first </s> you write more of them. Fill up with pad_id.",
        ),
        Variant(
            lambda *inputs: _ended(_favorites(*inputs), PAD_ID, with_end=False),
            "The </s> itself is missing: it is written, and padding begins after it.",
        ),
    ),
)


# 11.top_p


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """A token is kept as long as those that are more probable do not reach p without it."""
    result = torch.full_like(logits, -math.inf)
    for row in range(logits.size(0)):
        probs = logits[row].softmax(dim=-1)
        for token in range(logits.size(1)):
            ahead = torch.where(probs > probs[token], probs, 0.0).sum()
            result[row, token] = torch.where(ahead < p, logits[row, token], -math.inf)
    return result


def _logits(generator: torch.Generator) -> list[tuple]:
    """Rows that are sure and unsure; in two cases a token that is never written."""
    cases = []
    for rows, vocab, p in ((1, 4, 0.5), (3, 6, 0.8), (2, 9, 0.3), (4, 7, 0.9)):
        logits = 2 * torch.randn(rows, vocab, generator=generator)
        if rows % 2 == 0:
            logits[:, 1] = -math.inf
        if rows > 1:
            logits[0, 2] += 12  # one token has nearly everything
        cases.append((logits, p))
    return cases


def _cut(logits: Tensor, kept: Tensor) -> Tensor:
    return logits.masked_fill(~kept, -math.inf)


def _sorted_cut(logits: Tensor, p: float, *, crossing: bool = True, undo: bool = True) -> Tensor:
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    reached = probs.cumsum(dim=-1)
    kept = reached - probs < p if crossing else reached <= p
    return _cut(logits, kept.gather(-1, order.argsort(dim=-1)) if undo else kept)


TOP_P = Exercise(
    "11.top_p",
    keep_top_p,
    _logits,
    (
        Variant(
            lambda logits, p: _sorted_cut(logits, p, crossing=False),
            "What you keep does not reach p. The token that crosses p is kept as well.",
        ),
        Variant(
            lambda logits, p: _sorted_cut(logits, p, undo=False),
            "Your cut is in the order of the probabilities, the logits are in that of the vocabulary. "
            "Put the cut back in order.",
        ),
        Variant(
            lambda logits, p: _cut(logits, logits.softmax(dim=-1).cumsum(dim=-1) - logits.softmax(dim=-1) < p),
            "You add up the probabilities in the order of the vocabulary. The most probable tokens come first.",
        ),
        Variant(
            lambda logits, p: _cut(logits, logits.softmax(dim=-1) >= p),
            "You compare each token with p. It is the sum of those that are kept that must reach p.",
        ),
        Variant(
            lambda logits, p: _sorted_cut(logits, p).softmax(dim=-1),
            "These are probabilities. What is kept keeps its logit, and the rest gets −∞.",
        ),
    ),
    loops=False,
)


# 11.step


def beam_step(totals: Tensor, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of the hypotheses of each sentence: totals, which they continue, and with which token."""
    beam_size, vocab = logits.shape[1:]
    pairs = [(parent, token) for parent in range(beam_size) for token in range(vocab)]
    origins = torch.tensor(pairs, device=logits.device)  # (beam_size * vocab, 2)
    rows = []
    for sentence in range(logits.size(0)):
        candidates = []
        for parent, token in pairs:
            scores = logits[sentence, parent]
            candidates.append(totals[sentence, parent] + scores[token] - scores.exp().sum().log())
        grown = torch.stack(candidates)
        best = grown.argsort(descending=True)[:beam_size]
        rows.append((grown[best], origins[best, 0], origins[best, 1]))
    found, parents, tokens = (torch.stack(part) for part in zip(*rows, strict=True))
    return found, parents, tokens


def _beams(generator: torch.Generator) -> list[tuple]:
    """Each hypothesis has logits on a level of its own."""
    cases = []
    for batch, beam_size, vocab in ((1, 1, 5), (1, 3, 4), (2, 3, 6), (3, 2, 7), (2, 4, 9)):
        totals = -4 * torch.rand(batch, beam_size, generator=generator).sort(dim=1).values
        level = 4 * torch.randn(batch, beam_size, 1, generator=generator)
        cases.append((totals, level + torch.randn(batch, beam_size, vocab, generator=generator)))
    return cases


def _best(grown: Tensor, *, divisor: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The best of (batch, beam_size, vocab)."""
    divisor = divisor or grown.size(2)
    found, index = grown.flatten(1).topk(grown.size(1), dim=1)
    return found, index // divisor, index % divisor


def _each_its_own(totals: Tensor, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    grown, tokens = (totals[..., None] + logits.log_softmax(dim=-1)).max(dim=-1)
    found, parents = grown.sort(dim=1, descending=True)
    return found, parents, tokens.gather(1, parents)


STEP = Exercise(
    "11.step",
    beam_step,
    _beams,
    (
        Variant(
            lambda totals, logits: _best(totals[..., None] + logits),
            "You add raw logits. Those of two hypotheses cannot be compared; their log-probabilities can.",
        ),
        Variant(
            lambda totals, logits: _best(totals[..., None] + logits.softmax(dim=-1)),
            "You add probabilities to log-probabilities.",
        ),
        Variant(
            lambda totals, logits: _best(logits.log_softmax(dim=-1)),
            "What came before the new token is forgotten: add it to the totals.",
        ),
        Variant(
            lambda totals, logits: _best(totals[..., None] + logits.log_softmax(dim=-1), divisor=logits.size(1)),
            "The totals are right. But in the flat order each hypothesis has as many places as there are tokens.",
        ),
        Variant(
            _each_its_own,
            "Each hypothesis goes on with its own best token. All continuations of all of them must compete.",
        ),
    ),
)


# 11.finished


def beam_search(model: dict, beam_size: int, alpha: float, max_len: int) -> tuple[list[str], float]:
    """The best finished output without </s>, and its score; whatever finishes stays in the competition."""
    live, finished = [(0.0, ["<s>"])], []
    for _ in range(max_len):
        grown = [
            (total + log_prob, [*words, word]) for total, words in live for word, log_prob in model[words[-1]].items()
        ]
        grown.sort(reverse=True)
        for total, words in grown[:beam_size]:
            if words[-1] == "</s>":
                finished.append((total / ((5 + len(words[1:])) / 6) ** alpha, words[1:-1]))
        live = [one for one in grown if one[1][-1] != "</s>"][:beam_size]
        if len(finished) >= beam_size:
            break
    score, words = max(finished, default=(-math.inf, []))
    return words, score


# An empty output finishes first, Ja is the most probable, and with a length penalty a longer one wins.
PROBABILITIES = {
    "<s>": {"Ich": 0.55, "Ja": 0.35, "</s>": 0.1},
    "Ja": {"Ich": 0.2, "</s>": 0.8},
    "Ich": {"laufe": 0.52, "spiele": 0.48},
    "laufe": {"gern": 0.9, "</s>": 0.1},
    "spiele": {"gern": 0.1, "</s>": 0.9},
    "gern": {"Ja": 0.05, "</s>": 0.95},
}
# The empty output is the most probable beginning; a beam that shrinks by it misses Ja, which is the best.
WIDE = {
    "<s>": {"</s>": 0.34, "Ich": 0.335, "Ja": 0.325},
    "Ich": {"Ich": 0.5, "Ja": 0.4, "</s>": 0.1},
    "Ja": {"</s>": 0.9, "Ich": 0.05, "Ja": 0.05},
}


def _logarithms(table: dict) -> dict:
    return {last: {word: math.log(prob) for word, prob in after.items()} for last, after in table.items()}


def _models(generator: torch.Generator) -> list[tuple]:
    words = ("Ja", "Ich", "laufe", "spiele", "gern")

    def some(count: int, ending: float) -> dict:
        table = {}
        for last in ("<s>", *words[:count]):
            logits = 2 * torch.randn(count + 1, generator=generator)
            logits[-1] += ending
            table[last] = dict(zip((*words[:count], "</s>"), logits.double().log_softmax(0).tolist(), strict=True))
        return table

    return [
        (_logarithms(PROBABILITIES), 4, 0.0, 6),
        (_logarithms(PROBABILITIES), 4, 1.0, 6),
        (_logarithms(PROBABILITIES), 3, 1.0, 6),
        (_logarithms(WIDE), 2, 1.0, 6),
        (some(3, 1.0), 1, 0.6, 8),
        (some(4, 0.0), 3, 0.6, 5),
        (some(5, 0.5), 4, 1.5, 6),
        (some(5, -99.0), 2, 0.6, 3),
    ]


def _search(model: dict, beam_size: int, alpha: float, max_len: int, *, wrong: str) -> tuple[list[str], float]:
    """The search with one mistake in it."""
    live, finished = [(0.0, ["<s>"])], []
    for _ in range(max_len):
        grown = sorted(((t + lp, [*ws, w]) for t, ws in live for w, lp in model[ws[-1]].items()), reverse=True)
        ended = [one for one in (grown if wrong == "all" else grown[:beam_size]) if one[1][-1] == "</s>"]
        finished = ended if wrong == "dropped" else finished + ended
        live = [one for one in grown if one[1][-1] != "</s>"][:beam_size]
        if len(finished) >= (1 if wrong == "first" else beam_size):
            break
    extra = 2 if wrong == "short" else 1  # <s>, and with it </s>
    scored = [(total / ((5 + len(words) - extra) / 6) ** alpha, total, words[1:-1]) for total, words in finished]
    score, _, words = max(scored, key=lambda one: one[wrong == "bare"], default=(-math.inf, 0.0, []))
    return words, score


FINISHED = Exercise(
    "11.finished",
    beam_search,
    _models,
    (
        Variant(
            lambda *inputs: _search(*inputs, wrong="dropped"),
            "What finished in an earlier step is still dropped: only the last step's outputs are compared.",
        ),
        Variant(
            lambda *inputs: _search(*inputs, wrong="first"),
            "The search ends with the first output that finishes. It goes on until beam_size of them have.",
        ),
        Variant(
            lambda *inputs: _search(*inputs, wrong="all"),
            "Outputs that are not among the best beam_size continuations of their step count as finished.",
        ),
        Variant(
            lambda *inputs: _search(*inputs, wrong="short"),
            "The length of an output counts its </s>, too.",
        ),
        Variant(
            lambda *inputs: _search(*inputs, wrong="bare"),
            "Finished outputs compete by their scores, not by their bare log-probabilities.",
        ),
    ),
)


# 11.predict

NUMBERS = {
    "the probability after the temperature": 0.9,
    "the probability after top-k": 0.75,
    "the tokens that top-p keeps": 3,
    "the change of the log-probability": 0.0,
    "the tokens of the winner, alpha 0": 1,
    "the tokens of the winner, alpha 1": 7,
}


def _instead(situation: str, number: float, hint: str) -> Variant:
    return Variant(NUMBERS | {situation: number}, hint)


PREDICT = Exercise(
    "11.predict",
    NUMBERS,
    variants=(
        _instead("the probability after the temperature", 0.75, "A temperature of 1/2 squares the probabilities."),
        _instead("the probability after top-k", 0.6, "What remains after a cut must sum to 1 again."),
        _instead("the tokens that top-p keeps", 2, "Two tokens do not reach p; the one that crosses it is kept."),
        _instead("the change of the log-probability", 35, "The softmax does not notice what is added to all logits."),
        _instead(
            "the tokens of the winner, alpha 1", 1, "With alpha 1 the penalty of seven tokens is 2, of one token 1."
        ),
    ),
    ask=value,
)

EXERCISES = (GREEDY, TOP_P, STEP, FINISHED, PREDICT)
