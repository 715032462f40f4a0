"""Checks of assignment 12: error rates of links, rows and their tokens, the choice of a head, IBM model 1."""

import torch
import torch.nn.functional as F

from course_lib.checks import PLANTED, Edit, Exercise, value

# An index cannot be a tensor on the device meta.
RATE = "1 - right / (predicted.sum() + sure.sum())"


def links(generator):
    """Predicted, sure and possible ones: each sentence has some of every kind."""
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


def maps_of_one_head(generator):
    """In the last two sentences tokens stand twice."""
    sentences = [
        ("▁The ▁cat ▁sleeps . </s>", "<s> ▁Die ▁Katze ▁schläft ."),
        ("▁She ▁gi ves ▁him ▁an ▁apple </s>", "<s> ▁Sie ▁gibt ▁ihm"),
        ("▁Run </s>", "<s> ▁Lauf ▁doch !"),
        ("▁Yes </s>", "<s>"),
        ("▁the ▁cat ▁the ▁cat . </s>", "<s> ▁die ▁Katze ▁die ▁Katze ."),
        ("▁A ▁dog ▁sees ▁a ▁dog . </s>", "<s> ▁Ein ▁Hund ▁sieht ▁einen ▁Hund ."),
    ]
    pairs = [(src.split(), tgt_in.split()) for src, tgt_in in sentences]
    logits = [2 * torch.randn(len(tgt_in), len(src), generator=generator) for src, tgt_in in pairs]
    return [(scores.softmax(dim=-1), src, tgt_in) for scores, (src, tgt_in) in zip(logits, pairs, strict=True)]


def ties():
    """Heads 1 and 2 find 3 of 5 links, and head 2 is surer of them; by the mean over sentences head 0 is the best."""
    gold = torch.tensor([[0, -1, -1, -1], [1, 2, 0, 1], [2, 1, 0, -1]])
    hit = torch.zeros(3, 3, 4, dtype=torch.bool)
    hit[:2, 0, 0] = hit[1, 1, :3] = hit[1, 2, 1:] = True
    hit[2, 0, :3] = hit[2, 1, 0] = hit[2, 2, :2] = True
    looked_at = torch.where(hit, gold[:, None], gold[:, None] + 1)
    sure = torch.tensor([0.9, 0.4, 0.9])[:, None, None]
    return torch.where(F.one_hot(looked_at, 4).bool(), sure, (1 - sure) / 3), gold, 2


def heads(generator):
    """Head 1 is perfect in the first part, head 0 in the second; each finds half of the other part's links."""
    cases = [ties()]
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


def sentence_pairs(generator):
    """With a table: each source word occurs; some words stand twice in a sentence."""
    cases = []
    for sizes in ((3, 4, 1, 4, 3), (4, 5, 3, 2, 4), (5, 4, 4, 3, 3), (6, 7, 5, 4, 2)):
        src_vocab, tgt_vocab, pairs, src_len, tgt_len = sizes
        rest = torch.randint(src_vocab, (pairs * src_len - src_vocab,), generator=generator)
        src = torch.cat([torch.arange(src_vocab), rest])
        src = src[torch.randperm(len(src), generator=generator)].view(pairs, src_len)
        tgt = torch.randint(tgt_vocab, (pairs, tgt_len), generator=generator)
        tgt[:, -1] = tgt[:, 0]  # one stands twice
        t = torch.randn(src_vocab, tgt_vocab, generator=generator).softmax(dim=-1)
        cases.append((t, src, tgt))
    return cases


EXERCISES = (
    Exercise(
        "12.error_rate",
        links,
        {
            "A sure link is possible, too: it belongs to P.": Edit("(sure | possible)", "possible"),
            "The possible links make no difference here.": Edit("(sure | possible)", "sure"),
            "This is a mean over sentences. Count the links of all sentences together.":
                Edit(RATE, f"({RATE}).mean()", ".sum()", ".sum(dim=(1, 2))"),
            "You divide by |A| + |P|. Nobody has to find the links that are only possible.":
                Edit("+ sure.sum()", "+ (sure | possible).sum()"),
            "This is the share that is right; the error rate is 1 minus that.": Edit("1 - right", "right"),
            "This is 1 minus the precision; the sure links count as well.":
                Edit("(predicted & sure).sum() + ", "", " + sure.sum()", ""),
            "Each link is marked once, so nothing is sure and possible. P is one or the other.":
                Edit("sure | possible", "sure & possible"),
            "This is in percent; a share is asked for.": Edit("1 - right", "100 - 100 * right"),
        },
    ),
    Exercise(
        "12.rows",
        maps_of_one_head,
        {
            "Row t is still named by the token that it reads. It predicts the next one.": PLANTED,
            "Without the row of <s>, the others are still named by what they read. The row of <s> predicts a word.":
                Edit("predicted[row]", "tgt_in[row]", "enumerate(best)]", "enumerate(best)][1:]"),
            "The last row is missing: it predicts </s>.": Edit("enumerate(best)]", "enumerate(best)][:-1]"),
            "The names are shifted the wrong way: a row predicts what comes after the token that it reads.":
                Edit('[*tgt_in[1:], "</s>"]', '["</s>", *tgt_in]'),
            "The tokens of a pair are the other way round: target, then source.":
                Edit("predicted[row], src[column]", "src[column], predicted[row]"),
            "A dict keeps one pair for each token. A list of pairs is asked for: tokens may stand twice.":
                Edit("return [", "return dict([", "enumerate(best)]", "enumerate(best)])"),
            "You look a token up by its name, and find the first of two that are the same. Rows have numbers.":
                Edit("predicted[row]", "predicted[tgt_in.index(tgt_in[row])]"),
        },
        any_device=False,  # the result is text
    ),
    Exercise(
        "12.best_head",
        heads,
        {
            "You choose and report on all sentences. That flatters the head.":
                Edit("[:num_choosing]", "", "[num_choosing:]", ""),
            "The share is that of the sentences by which the head was chosen. Report it on the others.":
                Edit("other[head]", "first[head]"),
            "The head is the best of the part that you report on. It must be chosen without that part.":
                Edit("first.argmax()", "other.argmax()"),
            "Rows without a gold link are counted. They are no links that could be found.":
                Edit("gold != -1", "torch.ones_like(gold)"),
            "This is a mean over sentences. Count the links of all of them together.":
                Edit("= hit[", "= (hit[", "dim=(0, 2)", "dim=2",
                     "].sum()", "].sum(dim=1, keepdim=True)).mean(dim=0)"),
            "The parts are exchanged: choose on the first, report on the other.":
                Edit("first.argmax()", "other.argmax()", "other[head]", "first[head]"),
            "Of equally good heads take the first; how sure they are does not count.":
                Edit("= first.argmax()", "= len(first) - 1 - first.flip(0).argmax()"),
        },
        any_dtype=False,  # a number and a share of counts
    ),
    Exercise(
        "12.em",
        sentence_pairs,
        {
            "Where two words meet more than once, only one of their shares is counted. "
            "An assignment by index does not add up; look for what accumulates.":
                Edit("accumulate=True", "accumulate=False"),
            "You share each source word among the German ones. It is the German word that is shared.":
                Edit("found.sum(dim=1", "found.sum(dim=2"),
            "The probabilities are added up as they are. Those that explain one German word must first sum to 1.":
                Edit(" / found.sum(dim=1, keepdim=True)", ""),
            "Here each column sums to 1. The row of a source word must.": Edit("counts.sum(dim=1", "counts.sum(dim=0"),
            "These are the counts. Divide those of each source word by their sum.":
                Edit(" / counts.sum(dim=1, keepdim=True)", ""),
            "The source word that explains a German word best gets all of it. It is shared.":
                Edit("found / found.sum(dim=1, keepdim=True)",
                     "(found == found.amax(dim=1, keepdim=True)).to(t.dtype)"),
            "A softmax is no share: divide the counts by their sum.":
                Edit("counts / counts.sum(dim=1, keepdim=True)", "counts.softmax(dim=1)"),
            "These are probabilities already: divide them by their sum, without a softmax.":
                Edit("found / found.sum(dim=1, keepdim=True)", "found.softmax(dim=1)"),
            "All source words get the same share. It goes by the table t.":
                Edit("t[places]", "torch.ones_like(t)[places]"),
            "The old table comes back. The new one is made of the counts.":
                Edit("return counts / counts", "return t / t"),
        },
        loops=False,
    ),
    Exercise(
        "12.predict",
        mistakes={
            "Row 3 reads schläft, and predicts what comes after it.": Edit('schläft": 2', 'schläft": 3'),
            "What goes to either subword goes to the word: the two add up.": Edit('word": 0.5', 'word": 0.25'),
            "Each row sums to 1, and so must the row of the word.": Edit('row": 0.25', 'row": 0.5'),
            "That all predicted links are right is not all: two are missing.": Edit('missing": 0.25', 'missing": 0.0'),
            "That is the share of the missing links; look at the formula.": Edit('missing": 0.25', 'missing": 0.4'),
            "Row 1 reads Die, and predicts what comes after it.": Edit('schläft": 2', 'schläft": 1'),
            "Row 0 may attend to <s> alone.": Edit("1.0", "1 / 6"),
        },
        ask=value,
    ),
)
