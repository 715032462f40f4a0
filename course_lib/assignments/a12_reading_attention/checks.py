"""Assignment 12: reading attention: error rates of links, rows and their tokens, the choice of a head, IBM model 1."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

# 12.error_rate


def error_rate(predicted: Tensor, sure: Tensor, possible: Tensor) -> Tensor:
    """Alignment error rate of all sentences together (Och and Ney 2003), one pair of words after the other."""
    in_sure = in_possible = num_predicted = num_sure = torch.zeros((), device=predicted.device)
    for sentence in range(predicted.size(0)):
        for row in range(predicted.size(1)):
            for column in range(predicted.size(2)):
                place = sentence, row, column
                num_predicted, num_sure = num_predicted + predicted[place], num_sure + sure[place]
                in_sure = in_sure + (predicted[place] & sure[place])
                in_possible = in_possible + (predicted[place] & (sure[place] | possible[place]))
    return 1 - (in_sure + in_possible) / (num_predicted + num_sure)


def _links(generator: torch.Generator) -> list[tuple]:
    cases = []
    for shape in ((1, 3, 4), (2, 4, 4), (3, 6, 2), (4, 3, 6)):
        sure, marked, found, kept = torch.rand(4, *shape, generator=generator)
        sure, possible = sure < 0.3, marked < 0.3
        sure[:, 0, :2] = torch.tensor([True, False])
        possible[:, 0, :2] = torch.tensor([False, True])
        predicted = torch.where(sure, kept < 0.6, found < 0.15)
        predicted[:, 0, :2] = torch.tensor([False, True])
        cases.append((predicted, sure, possible & ~sure))
    return cases


def _rate(predicted: Tensor, sure: Tensor, possible: Tensor, dim: tuple[int, ...] = (0, 1, 2)) -> Tensor:
    right = (predicted & sure).sum(dim) + (predicted & possible).sum(dim)
    return 1 - right / (predicted.sum(dim) + sure.sum(dim))


def _over_possible(predicted: Tensor, sure: Tensor, possible: Tensor) -> Tensor:
    allowed = sure | possible
    return 1 - ((predicted & sure).sum() + (predicted & allowed).sum()) / (predicted.sum() + allowed.sum())


ERROR_RATE = Exercise(
    "12.error_rate",
    error_rate,
    _links,
    (
        Variant(
            _rate,
            "A sure link is possible, too: it belongs to P.",
        ),
        Variant(
            lambda predicted, sure, possible: _rate(predicted, sure, sure),
            "The possible links make no difference here.",
        ),
        Variant(
            lambda predicted, sure, possible: _rate(predicted, sure, sure | possible, dim=(1, 2)).mean(),
            "This is a mean over sentences. Count the links of all sentences together.",
        ),
        Variant(
            _over_possible,
            "You divide by |A| + |P|. Nobody has to find the links that are only possible.",
        ),
        Variant(
            lambda predicted, sure, possible: 1 - _rate(predicted, sure, sure | possible),
            "This is the share that is right; the error rate is 1 minus that.",
        ),
    ),
)


# 12.rows


def row_links(weights: Tensor, src: list[str], tgt_in: list[str]) -> list[tuple[str, str]]:
    """For each row the token that it predicts, and the source token with the largest weight."""
    predicted = [*tgt_in[1:], "</s>"]
    return [(predicted[row], src[int(weights[row].argmax())]) for row in range(weights.size(0))]


def _maps(generator: torch.Generator) -> list[tuple]:
    """Weights of one head; no token stands twice in its sentence."""
    sentences = [
        ("▁The ▁cat ▁sleeps . </s>", "<s> ▁Die ▁Katze ▁schläft ."),
        ("▁She ▁gi ves ▁him ▁an ▁apple </s>", "<s> ▁Sie ▁gibt ▁ihm"),
        ("▁Run </s>", "<s> ▁Lauf ▁doch !"),
        ("▁Yes </s>", "<s>"),
        ("▁The ▁dog ▁sees ▁a ▁cat . </s>", "<s> ▁Der ▁Hund ▁sieht ▁eine ▁Katze ."),
    ]
    pairs = [(src.split(), tgt_in.split()) for src, tgt_in in sentences]
    logits = [2 * torch.randn(len(tgt_in), len(src), generator=generator) for src, tgt_in in pairs]
    return [(scores.softmax(dim=-1), src, tgt_in) for scores, (src, tgt_in) in zip(logits, pairs, strict=True)]


def _named(weights: Tensor, src: list[str], names: list[str], first: int = 0) -> list[tuple[str, str]]:
    """Links of the rows from `first` on, under these names."""
    best = weights[first:].argmax(dim=1).tolist()
    return [(name, src[column]) for name, column in zip(names, best, strict=False)]


ROWS = Exercise(
    "12.rows",
    row_links,
    _maps,
    (
        Variant(
            _named,
            "Row t is still named by the token that it reads. It predicts the next one.",
        ),
        Variant(
            lambda weights, src, tgt_in: _named(weights, src, tgt_in[1:], first=1),
            "Without the row of <s>, the others are still named by what they read. The row of <s> predicts a word.",
        ),
        Variant(
            lambda weights, src, tgt_in: _named(weights, src, tgt_in[1:]),
            "The last row is missing: it predicts </s>.",
        ),
        Variant(
            lambda weights, src, tgt_in: _named(weights, src, ["</s>", *tgt_in[:-1]]),
            "The names are shifted the wrong way: a row predicts what comes after the token that it reads.",
        ),
    ),
    any_device=False,  # the result is text
)


# 12.best_head


def best_head(weights: Tensor, gold: Tensor, num_choosing: int) -> tuple[Tensor, Tensor]:
    """The head that finds most links in the first sentences, and its share of those in the others."""
    shares = []
    for part in (range(num_choosing), range(num_choosing, weights.size(0))):
        for head in range(weights.size(1)):
            found = links = torch.zeros((), device=weights.device)
            for sentence in part:
                for row in range(gold.size(1)):
                    wanted = gold[sentence, row]
                    links = links + (wanted != -1)
                    found = found + (weights[sentence, head, row].argmax() == wanted)
            shares.append(found / links)
    choosing, reporting = torch.stack(shares).view(2, -1)
    head = choosing.argmax()
    return head, reporting.index_select(0, head.view(1)).squeeze(0)


def _ties() -> tuple:
    """Heads 1 and 2 find 3 of 5 links, and head 2 is surer of them; by the mean over sentences head 0 is the best."""
    gold = torch.tensor([[0, -1, -1, -1], [1, 2, 0, 1], [2, 1, 0, -1]])
    hit = torch.zeros(3, 3, 4, dtype=torch.bool)
    hit[:2, 0, 0] = hit[1, 1, :3] = hit[1, 2, 1:] = True
    hit[2, 0, :3] = hit[2, 1, 0] = hit[2, 2, :2] = True
    looked_at = torch.where(hit, gold[:, None], gold[:, None] + 1)
    sure = torch.tensor([0.9, 0.4, 0.9])[:, None, None]
    return torch.where(F.one_hot(looked_at, 4).bool(), sure, (1 - sure) / 3), gold, 2


def _heads(generator: torch.Generator) -> list[tuple]:
    """Head 1 is perfect in the first part, head 0 in the second; each finds half of the other part's links."""
    cases = [_ties()]
    for sentences, heads, rows, columns, num_choosing in ((4, 2, 3, 4, 2), (5, 3, 4, 6, 2), (8, 4, 6, 5, 3)):
        gold = torch.randint(columns, (sentences, rows), generator=generator)
        unlinked = torch.rand(sentences, rows, generator=generator) < 0.3
        unlinked[:, 0] = False
        hit = torch.rand(sentences, heads, rows, generator=generator) < 0.3
        hit[:, :2] = torch.arange(rows) % 2 == 1
        hit[:num_choosing, 1] = hit[num_choosing:, 0] = True
        hit[:, 2:, 0] = False
        looked_at = torch.where(hit, gold[:, None], (gold[:, None] + 1) % columns)
        scores = torch.randn(sentences, heads, rows, columns, generator=generator) + 9 * F.one_hot(looked_at, columns)
        cases.append((scores.softmax(dim=-1), gold.masked_fill(unlinked, -1), num_choosing))
    return cases


def _shares(weights: Tensor, gold: Tensor, *, padding: bool = False, by_sentence: bool = False) -> Tensor:
    """Share of the links that each head finds, (heads,)."""
    hit = weights.argmax(dim=-1) == gold[:, None]  # (sentences, heads, rows)
    real = torch.ones_like(gold) if padding else (gold != -1).long()
    if by_sentence:
        return (hit.sum(dim=2) / real.sum(dim=1, keepdim=True)).mean(dim=0)
    return hit.sum(dim=(0, 2)) / real.sum()


def _choice(choosing: Tensor, reporting: Tensor) -> tuple[Tensor, Tensor]:
    head = choosing.argmax()
    return head, reporting.gather(0, head[None]).squeeze(0)


BEST_HEAD = Exercise(
    "12.best_head",
    best_head,
    _heads,
    (
        Variant(
            lambda weights, gold, n: _choice(_shares(weights, gold), _shares(weights, gold)),
            "You choose and report on all sentences. That flatters the head.",
        ),
        Variant(
            lambda weights, gold, n: _choice(_shares(weights[:n], gold[:n]), _shares(weights[:n], gold[:n])),
            "The share is that of the sentences by which the head was chosen. Report it on the others.",
        ),
        Variant(
            lambda weights, gold, n: _choice(_shares(weights[n:], gold[n:]), _shares(weights[n:], gold[n:])),
            "The head is the best of the part that you report on. It must be chosen without that part.",
        ),
        Variant(
            lambda weights, gold, n: _choice(
                _shares(weights[:n], gold[:n]), _shares(weights[n:], gold[n:], padding=True)
            ),
            "Rows without a gold link are counted. They are no links that could be found.",
        ),
        Variant(
            lambda weights, gold, n: _choice(
                _shares(weights[:n], gold[:n], by_sentence=True), _shares(weights[n:], gold[n:], by_sentence=True)
            ),
            "This is a mean over sentences. Count the links of all of them together.",
        ),
    ),
    any_dtype=False,  # a number and a share of counts
)


# 12.em


def em_round(t: Tensor, src: Tensor, tgt: Tensor) -> Tensor:
    """One round of IBM model 1: shares each target word by t, and turns the counts into a new t."""
    src_ids, tgt_ids = (torch.arange(size, device=t.device) for size in t.shape)
    counts = torch.zeros_like(t)
    for pair in range(src.size(0)):
        for position in range(tgt.size(1)):
            word = tgt[pair, position]
            explain = t.index_select(0, src[pair]).index_select(1, word.view(1)).squeeze(1)  # (src_len,)
            for place in range(src.size(1)):
                cell = (src_ids == src[pair, place])[:, None] & (tgt_ids == word)
                counts = counts + cell * (explain[place] / explain.sum())
    return counts / counts.sum(dim=1, keepdim=True)


def _pairs(generator: torch.Generator) -> list[tuple]:
    """Each source word occurs; some stand twice in a sentence."""
    cases = []
    for src_vocab, tgt_vocab, pairs, src_len, tgt_len in (
        (3, 4, 1, 4, 3),
        (4, 5, 3, 2, 4),
        (5, 4, 4, 3, 3),
        (6, 7, 5, 4, 2),
    ):
        rest = torch.randint(src_vocab, (pairs * src_len - src_vocab,), generator=generator)
        src = torch.cat([torch.arange(src_vocab), rest])
        src = src[torch.randperm(len(src), generator=generator)].view(pairs, src_len)
        tgt = torch.randint(tgt_vocab, (pairs, tgt_len), generator=generator)
        tgt[:, -1] = tgt[:, 0]  # one stands twice
        t = torch.randn(src_vocab, tgt_vocab, generator=generator).softmax(dim=-1)
        cases.append((t, src, tgt))
    return cases


def _round(t: Tensor, src: Tensor, tgt: Tensor, *, over: int = 1, add: bool = True, rows: int = 1) -> Tensor:
    places = src[:, :, None], tgt[:, None, :]
    t_of = t[places]  # (pairs, src_len, tgt_len)
    shares = t_of / t_of.sum(dim=over, keepdim=True) if over else t_of
    counts = torch.zeros_like(t).index_put(places, shares, accumulate=add)
    return counts / counts.sum(dim=rows, keepdim=True) if rows >= 0 else counts


EM = Exercise(
    "12.em",
    em_round,
    _pairs,
    (
        Variant(
            lambda *inputs: _round(*inputs, add=False),
            "Where two words meet more than once, only one of their shares is counted. "
            "An assignment by index does not add up; look for what accumulates.",
        ),
        Variant(
            lambda *inputs: _round(*inputs, over=2),
            "You share each source word among the German ones. It is the German word that is shared.",
        ),
        Variant(
            lambda *inputs: _round(*inputs, over=0),
            "The probabilities are added up as they are. Those that explain one German word must first sum to 1.",
        ),
        Variant(
            lambda *inputs: _round(*inputs, rows=0),
            "Here each column sums to 1. The row of a source word must.",
        ),
        Variant(
            lambda *inputs: _round(*inputs, rows=-1),
            "These are the counts. Divide those of each source word by their sum.",
        ),
    ),
    loops=False,
)


# 12.predict

NUMBERS = {
    "the row that predicts schläft": 2,
    "the weight on <s>": 1.0,
    "the weight on the word": 0.5,
    "the weight of the word's row": 0.25,
    "the error rate, two in common": 0.5,
    "the error rate, two missing": 0.25,
}


def _instead(situation: str, number: float, hint: str) -> Variant:
    return Variant(NUMBERS | {situation: number}, hint)


PREDICT = Exercise(
    "12.predict",
    NUMBERS,
    variants=(
        _instead("the row that predicts schläft", 3, "Row 3 reads schläft, and predicts what comes after it."),
        _instead("the weight on the word", 0.25, "What goes to either subword goes to the word: the two add up."),
        _instead("the weight of the word's row", 0.5, "Each row sums to 1, and so must the row of the word."),
        _instead("the error rate, two missing", 0.0, "That all predicted links are right is not all: two are missing."),
        _instead("the error rate, two missing", 0.4, "That is the share of the missing links; look at the formula."),
    ),
    ask=value,
)

EXERCISES = (ERROR_RATE, ROWS, BEST_HEAD, EM, PREDICT)
