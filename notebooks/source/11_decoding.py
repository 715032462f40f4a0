# %% [markdown]
# # 11 · How to decode: from probabilities to a sentence
#
# **Question.** The model gives every next token a probability. Which one do we write?
#
# **Afterwards you can**
#
# 1. decode greedily, by sampling and with a beam, and say what each of them is good for;
# 2. tell an error of the search from an error of the model, and spot a search that is wrong without crashing;
# 3. ask the right questions about a number that is called BLEU.
#
# **You need** the decoder, teacher forcing and free running (lesson [07](07_decoder.ipynb)), BLEU and its signature (lesson [10](10_translation.ipynb)).
# **Time**: {minutes} minutes to read, one to two minutes to run.
# **In the paper**: section 6.1, which decodes with a beam of 4.

# %%
import math
import time
from collections import Counter
from functools import partial
from statistics import mean

import torch

from course_lib import Translator
from course_lib.decoding import greedy, sample
from course_lib.figures import bars, curves, stacked_bars
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

# %%
translator = Translator.from_pretrained("course", step=933)  # of 5,572 steps
model, tokenizer = translator.model.to(device), translator.tokenizer
pad_id, bos_id, eos_id = model.config.pad_id, model.config.bos_id, model.config.eos_id

# %% [markdown]
# With the finished translator of the course, greedy decoding and a beam write the same for nearly all sentences of its grammar.
# So we take it from an early point of its training, where the searches differ.
#
# ## All that a search can ask
#
# Given a source and the beginning of a target, the model returns a log-probability for each possible next token.
# Every search that we write by hand is built on this one function.


# %%
def encode(text):
    """A sentence to its ids, (1, src_len)."""
    return torch.tensor([[*tokenizer.encode(text), eos_id]], device=device)


@torch.no_grad()
def next_log_probs(src, ids):
    """Source (1, src_len) and the target ids so far, to (vocab,)."""
    tgt_in = torch.tensor([[bos_id, *ids]], device=device)  # starts from <s>
    log_probs = model(src, tgt_in)[0, -1].log_softmax(dim=-1)
    log_probs[[pad_id, bos_id]] = -math.inf  # these are never written
    return log_probs


# %% [markdown]
# ## Greedy: the most probable next token
#
# **Greedy decoding** takes the favorite, the most probable next token, until it is `</s>`.
# We also add up the log-probabilities.
# What does the sum tell us?


# %%
def greedy_by_hand(src, max_len):
    """Ids without </s>, their log-probability, and whether </s> came."""
    ids, total = [], 0.0
    while len(ids) < max_len:
        log_probs = next_log_probs(src, ids)
        best = log_probs.argmax().item()
        total += log_probs[best].item()
        if best == eos_id:
            return ids, total, True
        ids.append(best)
    return ids, total, False


# %% tags=["nbval-check-output"]
shirt, sang = "The shirt lies there.", "I sang three days ago."
for text in ("The cat sleeps.", shirt, sang):
    ids, total, finished = greedy_by_hand(encode(text), max_len=20)
    print(f"{total:6.2f}  {math.exp(total):.2f}  {tokenizer.decode(ids)}")

# %% tags=["hide-input"]
for text in ("The cat sleeps.", shirt, sang):
    ids, total, finished = greedy_by_hand(encode(text), max_len=20)
    (theirs,) = greedy(model, encode(text), max_len=20)
    assert (ids, finished) == (theirs.ids, theirs.finished)
    assert math.isclose(total, theirs.log_prob, abs_tol=1e-4)

# %% [markdown]
# The sum is the log-probability of the *whole* output, and the second column is its probability.
# This probability is a product, p(y_1 | X) · p(y_2 | y_1, X) · …, with `</s>` as its last factor; logarithms turn it into a sum.
# (The third output is wrong: *ago* is missing, German *vor*. We come back to it.)
#
# ## When does it stop?
#
# At `</s>`, which is a token like any other.
# So what does the translator write if we forbid it?

# %%
ids = []
while len(ids) < 30:
    log_probs = next_log_probs(encode(shirt), ids)
    log_probs[eos_id] = -math.inf
    ids.append(log_probs.argmax().item())
print(tokenizer.decode(ids))

# %% tags=["hide-input"]
(theirs,) = greedy(model, encode(shirt))
assert ids[: len(theirs.ids)] == theirs.ids and len(theirs.ids) < 10

# %% [markdown]
# It repeats itself until we stop it.
# So every search needs a **maximum length**, in case `</s>` never comes.
# The paper allows 50 tokens more than the source has, and so does `course_lib` by default.
# An output that hits the limit is *unfinished*, and the search must say so:

# %% tags=["nbval-check-output"]
for max_len in (3, 5, 6):
    (cut,) = greedy(model, encode(shirt), max_len=max_len)
    print(f"limit {max_len}: finished {cut.finished!s:6}{tokenizer.decode(cut.ids)}")

# %% [markdown]
# Five tokens and `</s>` need a limit of 6.
#
# ## What the favorite hides
#
# *I sang three days ago* is *Ich sang vor drei Tagen*.
# How sure is the model of what follows *Ich sang*?

# %%
src = encode(sang)
unsure = next_log_probs(src, tokenizer.encode("Ich sang")).cpu()
probs, order = unsure.exp().sort(descending=True)
others = 100 * probs[6:].sum().item()
bars(
    [*map(tokenizer.token, order[:6].tolist()), f"{len(probs) - 6:,} others"],
    [*(100 * probs[:6]).tolist(), others],
    xlabel="probability of the token after Ich sang (%)",
    title="Two tokens compete, and the wrong one is ahead",
    value_format="{:.1f}",
)

# %% tags=["hide-input"]
first, second = map(tokenizer.token, order[:2].tolist())
assert (first, second) == ("▁drei", "▁vor") and probs[0] < 3 * probs[1]

# %% [markdown]
# Greedy decoding writes `▁drei` and never looks back.
# There are two other ways: *draw* the next token, or *follow several*.
#
# ## Sampling: draw the next token
#
# We draw each token with the probability that the model gives it, and write a thousand outputs for one sentence.
# What share of them will be *Das Hemd liegt dort.*, whose probability was 0.44?

# %%
many = encode(shirt).expand(1000, -1)
generator = torch.Generator(device).manual_seed(0)
drawn = sample(model, many, generator=generator, max_len=20)
(favorite,) = greedy(model, many[:1])
share = sum(each.ids == favorite.ids for each in drawn) / len(drawn)
print(f"drawn {share:.3f}, exp(log-probability) {math.exp(favorite.log_prob):.3f}")
counted = Counter(tokenizer.decode(each.ids) for each in drawn)
rare = [text for text, count in counted.items() if count == 1]
print(f"{len(rare)} outputs came once, among them:", *rare[:4], sep="\n  ")

# %% tags=["hide-input"]
assert abs(share - math.exp(favorite.log_prob)) < 0.06 and favorite.log_prob < -0.75
assert len(rare) > 200

# %% [markdown]
# About as large as its probability says.
# Each of the rare outputs is improbable, but there are very many of them.
# If the tails were everywhere as they are along the favorite, how likely would a draw leave the five most probable tokens at least once on the way?

# %%
tails = []
for t in range(len(favorite.ids) + 1):
    probs = next_log_probs(encode(shirt), favorite.ids[:t]).exp()
    tails.append(1 - probs.topk(5).values.sum().item())
print("outside the first five:", *(f"{tail:.2f}" for tail in tails))
ever = 1 - math.prod(1 - tail for tail in tails)
print(f"at least once in {len(tails)} steps: {ever:.2f}")

# %% tags=["hide-input"]
assert 0.06 < mean(tails) < 0.14 and 0.4 < ever < 0.55

# %% [markdown]
# A tail of about a tenth at each of six steps becomes nearly a half.
# So before we draw, we change the distribution.
#
# A temperature, which in lesson [03](03_attention.ipynb) divided scores, here divides the log-probabilities (or the logits) before the softmax.
# **Top-k sampling** keeps the k most probable tokens.
# **Top-p sampling** (or nucleus sampling) keeps the fewest tokens that together reach the probability p [@holtzman2020].
# Where both are asked for, the temperature comes first and the cut second.


# %%
def keep_top_k(log_probs, k):
    smallest = log_probs.topk(k).values[-1]
    return log_probs.masked_fill(log_probs < smallest, -math.inf)


def keep_top_p(log_probs, p):
    probs, order = log_probs.softmax(dim=-1).sort(descending=True)
    before = probs.cumsum(dim=-1) - probs  # what more probable tokens have
    return log_probs.index_fill(0, order[before >= p], -math.inf)


# %% [markdown]
# After *Ich sang* the model is unsure; after *Das Hemd liegt dort* it is sure of the full stop.
# How many tokens does each cut keep?

# %%
sure = next_log_probs(encode(shirt), tokenizer.encode("Das Hemd liegt dort")).cpu()
places = {"unsure": unsure, "sure": sure}
kept = {}
for name, each in places.items():
    cuts = keep_top_k(each, 5), keep_top_p(each, 0.8)
    kept[name] = [int(cut.isfinite().sum()) for cut in cuts]
    print(f"{name:7} top-k 5 keeps {kept[name][0]}, top-p 0.8 keeps {kept[name][1]}")

# %% tags=["hide-input"]
assert kept["sure"] == [5, 1] and kept["unsure"][0] == 5 and kept["unsure"][1] > 1

# %% [markdown]
# Top-k keeps five even where one is enough; top-p adapts.
# The whole loop:


# %%
def sample_by_hand(src, change, generator, max_len=20):
    """Ids without </s>, and whether </s> came; `change` maps log-probabilities."""
    ids = []
    while len(ids) < max_len:
        probs = change(next_log_probs(src, ids)).softmax(dim=-1)
        token = probs.multinomial(1, generator=generator).item()
        if token == eos_id:
            return ids, True
        ids.append(token)
    return ids, False


# %% [markdown]
# The library's `sample` does the same for many rows at once. Here are 300 draws for each of two sentences:

# %%
ways = {
    "as it is": (lambda log_probs: log_probs, {}),
    "temperature 0.5": (lambda log_probs: log_probs / 0.5, {"temperature": 0.5}),
    "top-k 5": (lambda log_probs: keep_top_k(log_probs, 5), {"top_k": 5}),
    "top-p 0.8": (lambda log_probs: keep_top_p(log_probs, 0.8), {"top_p": 0.8}),
}
shares, answers = {}, {shirt: "Das Hemd liegt dort.", sang: "Ich sang vor drei Tagen."}
for text, answer in answers.items():
    print(answer)
    for name, (_, options) in ways.items():
        options = {"generator": torch.Generator(device).manual_seed(0), **options}
        drawn = sample(model, encode(text).expand(300, -1), max_len=20, **options)
        counted = Counter(tokenizer.decode(each.ids) for each in drawn)
        shares[text, name] = counted[answer] / 3
        print(f"  {name:16}{counted[answer] / 3:4.0f} %, {len(counted):3} different")

# %% tags=["hide-input"]
for change, options in ways.values():
    for seed in range(3):
        ours, theirs = (torch.Generator(device).manual_seed(seed) for _ in range(2))
        (other,) = sample(model, src, generator=theirs, max_len=20, **options)
        assert sample_by_hand(src, change, ours) == (other.ids, other.finished)
of_shirt, of_sang = ([shares[text, name] for name in ways] for text in answers)
assert of_shirt[0] < 60 < 75 < min(of_shirt[1:])
assert max(of_sang[:2]) < 19 and min(of_sang) > 3 and max(of_sang) < 33
assert min(of_sang[2:]) > of_sang[1]

# %% [markdown]
# Every change helps where the favorite is right.
# Where the favorite is wrong, as after *Ich sang*, a temperature of 0.5 removes the tail but favors the wrong token, too; the cuts keep the ratio of the two tokens, and make the right output more frequent.
#
# What does the temperature do to the entropy, which lesson [03](03_attention.ipynb) measured on attention weights?


# %%
def entropy(log_probs):
    probs = log_probs.double().softmax(dim=-1)
    return -torch.special.xlogy(probs, probs).sum().item()  # 0 · log 0 is 0


temperatures = [10 ** (number / 10) for number in range(-10, 16)]  # 0.1 to 32
limit = math.log(len(unsure) - 2)  # two tokens are never written
series = {
    name: (temperatures, [entropy(each / t) for t in temperatures])
    for name, each in places.items()
}

# %% tags=["hide-input"]
curves(
    series,
    xlabel="temperature",
    ylabel="entropy (nats)",
    title="From the favorite alone to all tokens alike",
    log_x=True,
    marks={f"all alike: ln {len(unsure) - 2:,}": (None, limit), "as it is": (1, None)},
)

# %% tags=["hide-input"]
for _, y in series.values():
    assert y == sorted(y) and y[0] < 0.3 and y[-1] > 0.98 * limit
tail_of = {
    (name, t): 1 - (each / t).softmax(dim=-1).topk(5).values.sum().item()
    for name, each in places.items()
    for t in (0.5, 1, 1.5)
}
assert tail_of["sure", 0.5] < 0.001 and tail_of["sure", 1.5] > tail_of["unsure", 1.5]
assert 0.05 < tail_of["unsure", 1] < 0.08 < tail_of["sure", 1] < 0.1
finished_model = Translator.from_pretrained("course").model.to(device).eval()
with torch.no_grad():
    ids = [bos_id, *tokenizer.encode("Das Hemd liegt dort")]
    log_probs = finished_model(encode(shirt), torch.tensor([ids], device=device))[0, -1]
assert 0.1 < 1 - log_probs.softmax(dim=-1).topk(5).values.sum().item() < 0.12

# %% [markdown]
# On the left, sampling becomes greedy decoding; on the right, noise.
# Why do the curves cross? Entropy mixes two kinds of doubt.
# At the unsure place two tokens compete, and at low temperatures hardly anything else counts. The rest, and at the sure place nearly everything, is a long thin tail, 9 % outside the first five tokens (7 % at the unsure place); above temperature 1 the larger tail counts more.
# More training does not remove the tail: the finished translator has 11 % there. Label smoothing (lesson [09](09_training.ipynb)) asks for about 10 %.
# At temperature 0.5 it is gone.
#
# Move the sliders: at which temperature do most of the twenty translations go wrong?

# %%
from course_lib.widgets import SamplingSliders

sliders = SamplingSliders(translator, shirt, place=1)
sliders

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for((shirt, 1), (sliders.text, sliders.place)):
    assert sliders.probs[0].item() == max(sliders.probs.tolist())

# %% [markdown]
# At temperature 1 already: above, 44 % were right.
#
# ### Is sampling good for translating?
#
# We need references, of sentences that this translator has never seen: the test part of its corpus.

# %%
from course_lib.data import load_course, pad
from course_lib.metrics import bleu

num_pairs = 200
pairs = load_course(num_train=60_000).test[:num_pairs]
references = [pair.tgt for pair in pairs]
for pair in pairs[:3]:
    print(pair.src, "→", pair.tgt)


def decode_all(search, sources, model=model):
    """What a search finds for each source, 100 at a time."""
    rows = [[*tokenizer.encode(text), eos_id] for text in sources]
    batches = [pad(rows[i : i + 100]).to(device) for i in range(0, len(rows), 100)]
    return [found for batch in batches for found in search(model, batch)]


# %%
def bleu_of(hypotheses, references=references):
    return bleu([tokenizer.decode(each.ids) for each in hypotheses], references).score


sources = [pair.src for pair in pairs]
by_greedy = decode_all(greedy, sources)
print(f"greedy decoding: {bleu_of(by_greedy):.1f} BLEU")
sampled_bleu = Predict(
    "Drawn from all tokens at temperature 1, the same sentences reach how many BLEU?",
    off_by=5,
    section="Is sampling good for translating?",
)
sampled_bleu

# %%
settings = {f"temperature {t}": {"temperature": t} for t in (0.25, 0.5, 1.0)}
settings |= {"top-k 5": {"top_k": 5}, "top-p 0.8": {"top_p": 0.8}}
drawn_bleu = {name: [] for name in settings}
for name, options in settings.items():
    for seed in range(3):
        generator = torch.Generator(device).manual_seed(seed)
        search = partial(sample, generator=generator, **options)
        drawn_bleu[name].append(bleu_of(decode_all(search, sources)))
    print(f"{name:17}", *(f"{score:5.1f}" for score in drawn_bleu[name]))
sampled_bleu.reveal(round(mean(drawn_bleu["temperature 1.0"]), 1))

# %% tags=["hide-input"]
right_of = {"greedy": greedy, "drawn": partial(sample, generator=generator)}
for name, search in right_of.items():
    hypotheses = decode_all(search, sources[:100], finished_model)
    written = [tokenizer.decode(each.ids) for each in hypotheses]
    right_of[name] = sum(map(str.__eq__, written, references))
    print(f"the finished translator, {name:6} {right_of[name]:3} of 100 right")

# %% tags=["hide-input"]
coolest, cool, hottest, top_k, top_p = map(mean, drawn_bleu.values())
assert abs(coolest - bleu_of(by_greedy)) < 2 and coolest > cool > hottest
assert hottest + 8 < min(top_k, top_p) < max(top_k, top_p) < bleu_of(by_greedy) - 5
for each in (top_k, top_p):
    assert 0.4 < (each - hottest) / (bleu_of(by_greedy) - hottest) < 0.85
assert right_of["drawn"] < 40 and 90 < right_of["greedy"]

# %% [markdown]
# (Three draws each.)
# The higher the temperature, the worse the translation; the coolest draws are about as good as greedy decoding.
# Cutting the tail wins back more than half of what temperature 1 loses. Both cuts still draw among several likely tokens, and where one is nearly certain, top-k 5 keeps four of the tail.
# The finished translator has the same tail: with greedy decoding it is nearly always right, with a draw from all tokens seldom.
#
# For open-ended text, such as a story, the opposite is reported: the most probable text repeats itself, and top-p sampling does better [@holtzman2020].

# %% [markdown]
# ## Greedy decoding need not find the most probable output
#
# We score two outputs of *I sang three days ago*, each with one parallel pass: what greedy decoding writes, and what is right.


# %%
@torch.no_grad()
def token_log_probs(src, ids):
    """Log-probability of each token of a finished output; len(ids) + 1 of them."""
    tgt = torch.tensor([[bos_id, *ids, eos_id]], device=device)
    log_probs = model(src, tgt[:, :-1])[0].log_softmax(dim=-1)
    return log_probs.gather(1, tgt[0, 1:, None]).squeeze(1).tolist()


# %% tags=["nbval-check-output"]
(sang_greedy,) = greedy(model, src)
sums = []
for ids in (sang_greedy.ids, tokenizer.encode("Ich sang vor drei Tagen.")):
    each = token_log_probs(src, ids)
    sums.append(sum(each))
    tokens = map(tokenizer.token, [*ids, eos_id])
    parts = [f"{token} {lp:.2f} " for token, lp in zip(tokens, each, strict=True)]
    print(f"{sums[-1]:.2f} =", *parts)

# %% tags=["hide-input"]
assert sums[1] > sums[0] + 0.1
assert math.isclose(sums[0], sang_greedy.log_prob, abs_tol=1e-4)

# %% [markdown]
# The model itself prefers the right output, but greedy decoding never saw it.
# It took `▁drei`, the more probable token, and paid for it later: after *drei Tagen* the full stop costs 1.20, in the right sentence 0.03.
#
# ## Beam search
#
# **Beam search** keeps *beam_size* beginnings, its **hypotheses**.
# At each step it extends every one of them by every token, which makes its candidates; a beginning that it dropped never comes back.
# Those of the beam_size most probable candidates that end in `</s>` are put aside as finished; the beam_size best of the others go on.
# When beam_size have finished, the search is over.


# %%
def beam_by_hand(src, beam_size, max_len=30, scores=next_log_probs):
    """Outputs, best first: (log-probability, ids without </s>, whether </s> came)."""
    live, finished = [(0.0, [])], []
    while len(finished) < beam_size and len(live[0][1]) < max_len:
        grown = []
        for total, ids in live:
            for score, token in zip(*scores(src, ids).topk(2 * beam_size), strict=True):
                grown.append((total + score.item(), [*ids, token.item()]))
        grown.sort(reverse=True)
        ended = [one for one in grown[:beam_size] if one[1][-1] == eos_id]
        finished += [(total, ids[:-1], True) for total, ids in ended]
        live = [one for one in grown if one[1][-1] != eos_id][:beam_size]
    outputs = finished or [(total, ids, False) for total, ids in live]
    return sorted(outputs, reverse=True)[:beam_size]


# %% [markdown]
# Why more than beam_size candidates from each?
# One of them may be `</s>`, and the others must still fill the beam.

# %% tags=["nbval-check-output"]
from course_lib.decoding import beam_search, record_beam

for total, ids, _ in beam_by_hand(src, beam_size=3):
    print(f"{total:6.2f}  {tokenizer.decode(ids)}")

# %% tags=["hide-input"]
for text in (shirt, sang, *sources[:4]):
    for size in (1, 3):  # 0.0 turns off a length penalty, which comes later
        ours = beam_by_hand(encode(text), beam_size=size, max_len=60)
        (theirs,) = beam_search(model, encode(text), beam_size=size, length_penalty=0.0)
        assert [ids for _, ids, _ in ours] == [each.ids for each in theirs]
        assert [one[2] for one in ours] == [each.finished for each in theirs]
        for (total, *_), each in zip(ours, theirs, strict=True):
            assert math.isclose(total, each.log_prob, abs_tol=1e-3)
    (only,) = greedy(model, encode(text))
    ((best,),) = beam_search(model, encode(text), beam_size=1, length_penalty=0.0)
    assert best.ids == only.ids

# %% [markdown]
# With a beam of 3 `▁vor` survives, and wins.
# (A beam of 1 is greedy decoding, token for token.)
#
# `record_beam` returns the search as a tree.
# Each box shows a token and the log-probability of everything up to it.
# Follow greedy decoding along the top, then the winner: at which step does the winner take the lead?

# %% id="beam-tree"
from course_lib.figures import beam_figure

(tree,) = record_beam(model, src, beam_size=3, length_penalty=0.0)
best = tokenizer.decode(tree.tokens(tree.best[0]))
beam_figure(
    tree,
    [tokenizer.token(node.token) for node in tree.nodes],
    title=f"A beam of 3 keeps what greedy decoding drops: {best}",
)

# %% tags=["hide-input"]
winner = [tree.nodes[index].total for index in tree.path(tree.best[0])]
second = next(i for i in tree.best if tree.tokens(i)[:-1] == sang_greedy.ids)
loser = [tree.nodes[index].total for index in tree.path(second)]
assert winner[3] < loser[3] and winner[4] < loser[4] and winner[5] > loser[5]
assert tree.nodes[second].step == 6 and winner[6] > loser[6] and winner[7] > loser[6]
at_7 = [node.total for node in tree.nodes if node.step == 7 and node.fate == "kept"]
assert max(at_7) < winner[7] and len(winner) == 8
third, last = tree.nodes[tree.best[2]].total, max(node.step for node in tree.nodes)
alive = max(n.total for n in tree.nodes if n.fate == "unfinished")
assert last == 8 and alive > third + 2

# %% [markdown]
# At step 5, where greedy decoding pays for its full stop.
#
# ### When may a beam stop?
#
# Not at the first `</s>`: at step 6 *Ich sang drei Tagen.* has finished with −2.47, but a hypothesis with −2.16 is alive, and it wins.
# For the best output alone, one may stop when it beats every live hypothesis, because totals only fall. (With a length penalty, below, scores can rise.)
# Here that is at step 7: −2.28 against −3.53.
# Our rule waits until beam_size have finished, one step longer, and its third is poor: −6.98, while a hypothesis with −3.55 is cut off.
#
# Here is the search for any sentence, with any beam.
# Narrow the beam from 4 to 1: is the more probable output the better one?

# %%
from course_lib.widgets import BeamTreeExplorer

denied = "He was not clever."
explorer = BeamTreeExplorer(translator, denied, beam_size=4)
explorer

# %% tags=["hide-input"]
(wide_tree,) = record_beam(model, encode(denied), beam_size=4)
now = explorer.text, explorer.beam_size, explorer.length_penalty
with written_for((denied, 4, 0.0), now):
    shown = [node.total for node in explorer.tree.nodes]
    assert shown == [node.total for node in wide_tree.nodes]

# %% tags=["hide-input"]
(narrow,), ((wide, *_),) = (
    greedy(model, encode(denied)),
    beam_search(model, encode(denied), length_penalty=0.0),
)
assert tokenizer.decode(narrow.ids) == "Er war nicht klug."
assert tokenizer.decode(wide.ids) == "Er war klug." and wide.log_prob > narrow.log_prob

# %% [markdown]
# The wide beam finds the more probable output, *Er war klug*, which says the opposite.
# It has a token less, and each token costs: we come back to that.

# %% [markdown]
# ### Whose error is it?
#
# If an output is wrong, there are two suspects.
# A **search error**: the model gives the reference a higher probability, but the search missed it: *Ich sang drei Tagen*, −2.47 against −2.28.
# A **model error**: the model gives the wrong output the higher probability, so a search that finds the most probable output would not write the reference.
# A wider beam (`search_with`) mends a search error, or turns it into a model error, or spoils an output that was right, like that of *He was not clever*.
# (Others call every miss of the most probable output a search error. The references, with the log-probabilities `of_reference`, prove only some.)

# %%
whose_errors = Predict(
    "Of the outputs of greedy decoding that differ from the reference, "
    "how many are search errors?",
    unit="%",
    off_by=5,
    section="Whose error is it?",
)
whose_errors


# %% tags=["hide-input"]
def search_with(beam_size, length_penalty=0.0):
    options = dict(beam_size=beam_size, length_penalty=length_penalty)
    return lambda m, s: [found[0] for found in beam_search(m, s, **options)]


of_reference = [
    sum(token_log_probs(encode(pair.src), tokenizer.encode(pair.tgt))) for pair in pairs
]

# %%
found = {"greedy": by_greedy}
found |= {f"beam {size}": decode_all(search_with(size), sources) for size in (2, 4, 8)}
errors = {}
for name, hypotheses in found.items():
    rows = list(zip(hypotheses, references, of_reference, strict=True))
    wrong = [(h, p) for h, text, p in rows if tokenizer.decode(h.ids) != text]
    missed = sum(of_reference > h.log_prob + 1e-3 for h, of_reference in wrong)
    errors[name] = {"search errors": missed, "model errors": len(wrong) - missed}
    print(f"{name:7}", *(f"{count:4} {kind}" for kind, count in errors[name].items()))
of_greedy = errors["greedy"]
share = of_greedy["search errors"] / sum(of_greedy.values())
whose_errors.reveal(round(100 * share, 1))

# %% tags=["hide-input"]
stacked_bars(
    errors,
    xlabel=f"outputs that are not the reference, of {num_pairs}",
    title="With a beam of 8 the references prove no search error",
)

# %% tags=["hide-input"]
missed = [each["search errors"] for each in errors.values()]
assert missed == sorted(missed, reverse=True) and missed[-1] <= 0.02 * num_pairs
assert of_greedy["search errors"] > 0.05 * num_pairs
assert sum(errors["beam 8"].values()) > 0.9 * sum(of_greedy.values())
assert errors["beam 8"]["model errors"] > 0.4 * num_pairs
one, other = (  # with the finished translator
    decode_all(search, sources[:100], finished_model)
    for search in (greedy, search_with(4))
)
assert sum(a.ids == b.ids for a, b in zip(one, other, strict=True)) >= 97

# %% [markdown]
# (Some of these "errors" are good translations in other words.)
# With a small beam, the references prove hardly any search error; but hardly fewer outputs are wrong.
#
# How often does a search miss the most probable output of all?
# We cannot score *every* output, but we need not: a total can only fall.
# So a beginning whose total is below that of a finished output is cut, with all that could follow it [@stahlberg2019].
# `exact` goes depth first, the most probable token first, and begins with the best output that a beam has found.


# %%
def exact(src, best, asked, total=0.0, ids=()):
    """The better of `best`, a pair (total, ids), and the best output that begins so."""
    asked.append(ids)
    totals = total + next_log_probs(src, ids)
    best = max(best, (totals[eos_id].item(), [*ids]))
    totals[eos_id] = -math.inf
    for token in totals.argsort(descending=True).tolist():
        if totals[token] <= best[0] or len(asked) >= 1000:
            break  # all others are less probable still, or we give up
        best = exact(src, best, asked, totals[token].item(), [*ids, token])
    return best


# %%
hits, calls = Counter(), []
for row, text in enumerate(sources[:100]):
    outputs = {name: hypotheses[row] for name, hypotheses in found.items()}
    start = max((each.log_prob, each.ids) for each in outputs.values() if each.finished)
    asked = []
    total, ids = exact(encode(text), start, asked)
    calls.append(len(asked))
    if calls[-1] < 1000:
        hits.update(name for name, each in outputs.items() if each.ids == ids)
        if (widest := outputs["beam 8"]).ids != ids:
            print(text, f"\n  {widest.log_prob:6.2f} {tokenizer.decode(widest.ids)}")
            print(f"  {total:6.2f} {tokenizer.decode(ids)}")
proved = sum(count < 1000 for count in calls)
print(f"{proved} of 100 in time; half of them in {sorted(calls)[50]} calls or fewer")

# %% tags=["hide-input"]
bars(
    list(found),
    [hits[name] for name in found],
    xlabel=f"sentences of {proved} whose most probable output is found",
    title="Even a beam of 8 misses the most probable output of some",
)

# %% tags=["hide-input"]
assert proved >= 97 and sorted(calls)[50] < 25
by_size = [hits[name] for name in found]
assert by_size == sorted(by_size) and by_size[0] + 10 < by_size[1] < by_size[3] < proved
assert 58 < by_size[0] < 78 and by_size[3] > 90
unasked = "He may invite a neighbor who loves the blue flower."
assert unasked in sources[:100]
darf = sum(token_log_probs(encode(unasked), tokenizer.encode("Er darf?")))
assert darf > found["beam 8"][sources.index(unasked)].log_prob + 1

# %% [markdown]
# Greedy decoding finds the most probable output of two sentences in three, a beam of 8 that of nearly all.
# (With a full-size Transformer even a beam of 100 missed most [@stahlberg2019].)
# But look at what a beam of 8 has missed: the exact search writes *Er darf?* for a sentence of ten words.
#
# ## Two searches that are wrong
#
# **A common mistake**: beam search that adds raw logits.
# If all logits of a step grow by 7, the probabilities stay the same, but the sum does not.
# And each token whose logit is positive makes an output look *better*.
#
# **A common mistake**: beam search that drops what has finished, `finished = …` in place of `finished += …`. Then only hypotheses that end in its last step count (`beam_that_drops`).
#
# Neither crashes. How would we notice?


# %% tags=["hide-input"]
def beam_that_drops(src, beam_size, max_len=30, scores=next_log_probs):
    live, finished = [(0.0, [])], []
    while len(finished) < beam_size and len(live[0][1]) < max_len:
        grown = []
        for total, ids in live:
            for score, token in zip(*scores(src, ids).topk(2 * beam_size), strict=True):
                grown.append((total + score.item(), [*ids, token.item()]))
        grown.sort(reverse=True)
        ended = [one for one in grown[:beam_size] if one[1][-1] == eos_id]
        finished = [(total, ids[:-1], True) for total, ids in ended]  # the mistake
        live = [one for one in grown if one[1][-1] != eos_id][:beam_size]
    outputs = finished or [(total, ids, False) for total, ids in live]
    return sorted(outputs, reverse=True)[:beam_size]


# %%
@torch.no_grad()
def raw_logits(src, ids):
    tgt_in = torch.tensor([[bos_id, *ids]], device=device)
    logits = model(src, tgt_in)[0, -1]
    logits[[pad_id, bos_id]] = -math.inf
    return logits


# %%
searches = {
    "right": beam_by_hand,
    "raw logits": partial(beam_by_hand, scores=raw_logits),
    "dropped": beam_that_drops,
}
scored = {}
print("            reported recomputed")
for text in (sang, shirt):
    for name, search in searches.items():
        reported, ids, _ = search(encode(text), 3)[0]
        scored[text, name] = reported, sum(token_log_probs(encode(text), ids))
        print(f"{name:11}", *(f"{total:8.2f}" for total in scored[text, name]), end=" ")
        print(tokenizer.decode(ids)[:50])

# %% tags=["hide-input"]
rows = [row for row in range(20) if by_greedy[row].finished]
print(f"greedy     {mean(by_greedy[row].log_prob for row in rows):8.2f}")
for name, search in list(searches.items())[::2]:
    totals = [search(encode(sources[row]), 3)[0][0] for row in rows]
    print(f"{name:11}{mean(totals):8.2f}, below greedy decoding in", end=" ")
    bounds = [by_greedy[row].log_prob - 1e-3 for row in rows]
    print(sum(total < bound for total, bound in zip(totals, bounds, strict=True)))

# %% tags=["hide-input"]
for text in (sang, shirt):
    for name in ("right", "dropped"):
        assert math.isclose(*scored[text, name], abs_tol=1e-3)
    reported, recomputed = scored[text, "raw logits"]
    assert abs(reported - recomputed) > 1
    assert scored[text, "dropped"][1] < scored[text, "right"][1] - 1
assert mean(totals) < mean(by_greedy[row].log_prob for row in rows) - 1
lower = {
    name: sum(
        each.log_prob < one.log_prob - 1e-3
        for each, one in zip(hypotheses, by_greedy, strict=True)
    )
    for name, hypotheses in found.items()
}
assert lower["beam 2"] >= 1 and lower["beam 8"] <= lower["beam 2"]

# %% [markdown]
# The outputs look like those of a weak model, and now and then a wrong search finds the right one.
# Raw logits report a score that one parallel pass does not confirm. This check needs no other search.
# The search that drops reports a true score, so this check does not find it. A comparison with another search does, and greedy decoding is the simplest: over many sentences, the mean of a beam should not be lower.
# (For single sentences it may be: a beam of 2 ends lower for a few of the 200.)
#
# ## Every further token costs
#
# The logarithm of a probability is never positive, so each token lowers the total. If the model gives `</s>` too much probability too early, a short output can have a higher total than a complete one.
# To see it, we translate our sentences with wider and wider beams.
# What happens to the length?


# %%
def output(tree, index):
    """Ids of the output that ends at this node, without </s>."""
    return [token for token in tree.tokens(index) if token != eos_id]


trees = {}
for size in (1, 2, 4, 8):
    options = dict(beam_size=size, length_penalty=0.0)
    trees[size] = decode_all(lambda m, s, o=options: record_beam(m, s, **o), sources)

# %% tags=["hide-input"]
from course_lib.metrics import bleu_difference


def told(gain):
    return f"{gain.value:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


facts, texts_of = {}, {}
print("beam  log-prob.  tokens  unfinished  BLEU  against a beam of 1")
for size, grown in trees.items():
    ends = [tree.nodes[tree.best[0]] for tree in grown]
    lengths = [len(output(tree, tree.best[0])) for tree in grown]
    texts_of[size] = [tokenizer.decode(output(tree, tree.best[0])) for tree in grown]
    gain = bleu_difference(texts_of[size], texts_of[1], references)
    cut_off = sum(end.fate == "unfinished" for end in ends)
    facts[size] = mean(end.total for end in ends), mean(lengths), cut_off, gain
    print(f"{size:4}{facts[size][0]:11.2f}{mean(lengths):8.1f}{cut_off:12}", end="")
    print(f"{bleu(texts_of[size], references).score:6.1f}  {told(gain)}")

# %% tags=["hide-input"]
rows = [row for row, each in enumerate(by_greedy) if each.finished]
print(f"without {num_pairs - len(rows)} sentences whose greedy output is unfinished:")
finished_length = mean(len(by_greedy[row].ids) for row in rows)
print(f"greedy decoding {finished_length:.1f} tokens", end=", ")
wanted = mean(len(tokenizer.encode(references[row])) for row in rows)
print(f"the references {wanted:.1f}")
gains = []
for size in (2, 4, 8):
    ours, theirs = ([texts_of[each][row] for row in rows] for each in (size, 1))
    gains.append(bleu_difference(ours, theirs, [references[row] for row in rows]))
    print(f"a beam of {size} against 1: {told(gains[-1])} BLEU")

# %% tags=["hide-input"]
totals, tokens, unfinished, _ = map(list, zip(*facts.values(), strict=True))
assert totals == sorted(totals) and tokens == sorted(tokens, reverse=True)
assert tokens[1] < wanted - 0.5 and unfinished[0] >= 2 and unfinished[1:] == [0, 0, 0]
assert finished_length < wanted - 0.2 < tokens[0]
runaways = [tokenizer.decode(each.ids) for each in by_greedy if not each.finished]
assert any(text.endswith("p" * 20) for text in runaways)
assert facts[2][3].value > 1 and facts[4][3].low > -0.3 and facts[2][3].low > 0
assert facts[8][3].value < facts[2][3].value + 0.8
assert all(0 < each.value < 3 and each.low < 0.4 for each in gains)

# %% [markdown]
# From a beam of 2 to one of 8 the outputs become more probable, and slightly shorter.
# (A beam of 1, which is greedy decoding, has its mean length from three outputs that run to the limit, such as *Sppp…*.)
#
# The 95 % intervals come from **paired bootstrap resampling** [@koehn2004]: we draw the sentences again, with replacement, and score both sides on each draw.
# Beams of 2 and 4 gain BLEU. A beam of 8 gains no more than they do, and its interval reaches 0.
# Without the three sentences the gain is smaller, and its intervals reach zero. So a beam avoids outputs that run to the limit here; that it translates the others better is not shown.
# With a full-size Transformer, the most probable output of all was the *empty* one for more than half of the sentences: a good translation needed search errors [@stahlberg2019].
#
# ### The length penalty
#
# @wu2016 divide the log-probability by a number that grows with the length, the **length penalty**:
#
# score(Y) = log P(Y | X) / lp(Y), with lp(Y) = ((5 + |Y|) / 6)^α
#
# |Y| is the number of tokens, `</s>` included.
# α = 0 compares bare log-probabilities; the larger α, the more a long output is favored.
# The wide beam preferred *Er war klug.*, with five tokens, to *Er war nicht klug.*, with six. What does α = 0.6 say?


# %% tags=["nbval-check-output"]
def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


for text in ("Er war klug.", "Er war nicht klug."):
    each = token_log_probs(encode(denied), tokenizer.encode(text))
    total, divisor = sum(each), penalty(len(each), 0.6)
    print(f"{total:.2f} / {divisor:.2f} = {total / divisor:.2f}  {text}")

# %% [markdown]
# The longer, right one wins.
# As in `beam_search`, the penalty only ranks what has finished, so for each α we choose again from the trees that we have.


# %%
def pick(tree, alpha):
    """Ids of the output with the best score; unfinished only where none finished."""
    ends = [i for i, node in enumerate(tree.nodes) if node.score is not None]
    ends = [i for i in ends if tree.nodes[i].fate == "finished"] or ends
    scores = [tree.nodes[i].total / penalty(tree.nodes[i].step, alpha) for i in ends]
    return output(tree, ends[scores.index(max(scores))])


# %% tags=["hide-input"]
for alpha in (0.0, 0.6, 2.0):
    found = decode_all(search_with(4, alpha), sources[:50])
    assert [each.ids for each in found] == [pick(tree, alpha) for tree in trees[4][:50]]

# %% [markdown]
# Which α? The paper took 0.6 with a beam of 4, "chosen after experimentation on the development set" (section 6.1).
# We choose on the first half of our texts, and report on the second.
# BLEU lowers the score of too short outputs by a factor, its brevity penalty; we also print the score without it.


# %%
def bare(result):
    """BLEU without its brevity penalty."""
    return result.score / min(1, math.exp(1 - 1 / result.length_ratio))


half, alphas = num_pairs // 2, (0, 0.3, 0.6, 1, 1.5, 2, 3)
texts = {a: [tokenizer.decode(pick(tree, a)) for tree in trees[8]] for a in alphas}
first = {a: bleu(each[:half], references[:half]) for a, each in texts.items()}
best_alpha = max(alphas, key=lambda alpha: first[alpha].score)
lengths = [mean(len(pick(tree, a)) for tree in trees[8][:half]) for a in alphas]
for a, length in zip(alphas, lengths, strict=True):
    chosen = "  ← chosen" if a == best_alpha else ""
    print(f"α {a:3}  {length:4.1f} tokens  {first[a].score:.1f} BLEU", end="")
    print(f"  {bare(first[a]):.1f} without brevity penalty{chosen}")

# %% tags=["hide-input"]
gain = bleu_difference(texts[best_alpha][half:], texts[0][half:], references[half:])
print(f"second half: α = {best_alpha} against 0: {told(gain)} BLEU")
second = {a: bleu(texts[a][half:], references[half:]) for a in (0, best_alpha)}
for a, result in second.items():
    print(f"α = {a}: {result.length_ratio:.2f} of the references' length", end=", ")
    print(f"{bare(result):.1f} without brevity penalty")

# %% tags=["hide-input"]
assert lengths == sorted(lengths)
assert second[0].length_ratio < 0.95 and best_alpha > 0 and gain.low > 0
assert sum(each.score > first[best_alpha].score - 0.5 for each in first.values()) > 2
kept_gain = bare(second[best_alpha]) - bare(second[0])
assert -0.5 < kept_gain < 0.4 * gain.value
assert bare(first[best_alpha]) < bare(first[0]) - 0.5
short, long = (
    token_log_probs(encode(denied), tokenizer.encode(text))
    for text in ("Er war klug.", "Er war nicht klug.")
)
assert (len(short), len(long)) == (5, 6) and sum(short) > sum(long)
assert sum(short) / penalty(5, 0.6) < sum(long) / penalty(6, 0.6)

# %% [markdown]
# The interval lies above 0: the penalty helps. But most of the gain is BLEU's brevity penalty.
# Without it the second half gains little and the first half loses: the outputs have become longer, but their words are not shown to be better.
# Which α, these texts cannot say: several score nearly the same.
#
# ## The key-value cache
#
# Lesson 07 counted how much of its work the decoder repeats at every step.
# But position *t* sees no later token, so its key and its value never change.
# The **key-value cache** keeps them, and each step computes only those of its newest token.
# Here it is by hand, for one attention.

# %%
of_mask = Predict(
    "Does attention over the kept keys need a causal mask?",
    ["yes, at every step", "yes, at the first step", "no"],
    section="The key-value cache",
)
of_mask

# %%
import copy

from course_lib.masks import causal_mask

precise = copy.deepcopy(model).double()  # "equal" to nine digits
tgt_in = torch.tensor([[bos_id, *sang_greedy.ids]], device=device)
x = precise.tgt_embedding(tgt_in).detach()  # (1, tgt_len, d_model)
attn = precise.decoder.layers[0].self_attn
with torch.no_grad():
    keys, values, outputs = [], [], []
    for t in range(x.shape[1]):
        newest = x[:, t : t + 1]
        key, value = attn.keys_values(newest, newest)  # (1, heads, 1, d_k)
        keys, values = [*keys, key], [*values, value]
        kept = torch.cat(keys, dim=2), torch.cat(values, dim=2)  # length t + 1
        outputs.append(attn.attend(newest, *kept))
    at_once = attn(x, x, x, causal_mask(x.shape[1], device=device))

# %%
off = (torch.cat(outputs, dim=1) - at_once).abs().max()
print(f"without a mask, largest difference to all at once with one: {off:.0e}")
of_mask.reveal("no" if off < 1e-9 else "yes, at every step")

# %% tags=["hide-input"]
torch.testing.assert_close(torch.cat(outputs, dim=1), at_once, rtol=1e-9, atol=1e-10)

# %% [markdown]
# With one new token at a time, the future is not there yet, so there is nothing to hide. (Several new tokens at once, such as a given beginning, need a mask among themselves.)
# But a token that comes alone must still get its own position, t and not 0, or the outputs change without a crash.
#
# `model.new_cache` keeps keys and values for every layer, those of the memory too, which are the same at all steps.
# Here is the loop that all searches share, with and without it.


# %%
@torch.no_grad()
def write(model, src, ids, cached):
    """Feeds ids in one by one, as a search does; logits of all steps, and the cache."""
    memory, cache = model.encode(src), model.new_cache() if cached else None
    logits = []
    for t in range(ids.shape[1]):
        new = ids[:, t : t + 1] if cached else ids[:, : t + 1]
        hidden = model.decode(new, memory, src, cache=cache)
        logits.append(model.generator(hidden[:, -1]))
    return torch.stack(logits, dim=1), cache  # (batch, tgt_len, vocab)


# %%
uncached, _ = write(precise, src, tgt_in, cached=False)
logits, cache = write(precise, src, tgt_in, cached=True)
print(f"largest difference: {(logits - uncached).abs().max():.0e}")
for name, kept in vars(cache[0]).items():
    print(f"layer 0, {name} {tuple(kept.shape)}")  # (batch, heads, length, d_k)

# %% tags=["hide-input"]
torch.testing.assert_close(logits, uncached, rtol=1e-9, atol=1e-9)
torch.testing.assert_close(logits, precise(src, tgt_in), rtol=1e-9, atol=1e-9)
numbers = sum(kept.numel() for layer in cache for kept in vars(layer).values())
lengths = src.shape[1] + tgt_in.shape[1]
assert numbers == 2 * model.config.num_layers * model.config.d_model * lengths

# %% [markdown]
# The cache trades memory for time: 2 · layers · d_model numbers for each token of source and target, and for each hypothesis (lesson [14](14_cost_and_memory.ipynb) adds it all up).
# How much time does it save? For 64 tokens, 64 steps compute 1 + 2 + … + 64 = 2,080 positions without it and 64 with it, 32 times fewer.
# We write several sentences of arbitrary tokens at once, and time it (`seconds`).

# %% tags=["hide-input"]
sentences, out_lengths = 4, [8, 16, 32, 64]
several = src.expand(sentences, -1)
any_ids = torch.arange(4, 68, device=device).expand(sentences, -1)


def seconds(length, cached):
    started = time.perf_counter()
    write(model, several, any_ids[:, :length], cached)[0].sum().item()
    return time.perf_counter() - started


# %% tags=["hide-input"]
runs = {"without cache": [], "with cache": []}
seconds(8, True), seconds(8, False)  # the first run of all is slower
for _ in range(3):
    for name, run in runs.items():
        run.append([seconds(length, name == "with cache") for length in out_lengths])
slow, fast = (torch.tensor(run).min(dim=0).values for run in runs.values())  # the best
for place, length in enumerate(out_lengths):
    each_step = [f"{1000 * run[place] / length:5.1f} ms" for run in (slow, fast)]
    print(f"{length:3} tokens: a step {each_step[0]} without", end=", ")
    print(f"{each_step[1]} with cache, {slow[place] / fast[place]:.1f} times as fast")

# %% tags=["hide-input"]
assert slow[-1] - fast[-1] > max(0, slow[0] - fast[0])
assert sum(range(65)) == 2080 and slow[-1] / fast[-1] < 20
assert fast[-1] / 64 < 2 * fast[0] / 8 and slow[0] < 2 * fast[0]

# %% [markdown]
# Far less than 32 times: a step with the cache is nearly all fixed overhead, which a step without it pays, too. At the shortest length the cache saves little or nothing.
# The longer the output, the more the cache saves. (The times are those of the machine that ran this page.)
#
# **A common mistake**: a beam search that reorders its hypotheses but not the cache.
# Its two rows (`old`) are *Die Katze* and *Der Hund*; it drops the first and extends the second twice, to *Der Hund sieht* and *Der Hund schläft* (`new`).

# %%
of_rows = Predict(
    "Which rows come out wrong if the cache stays as it was?",
    ["the first", "the second", "both", "neither"],
    section="The key-value cache",
)
of_rows


# %% tags=["hide-input"]
def ids_of(*starts):
    ids = [[bos_id, *tokenizer.encode(each)] for each in starts]
    return torch.tensor(ids, device=device)


old = ids_of("Die Katze", "Der Hund")
new = ids_of("Der Hund sieht", "Der Hund schläft")
assert old.shape == (2, 3) and new.shape == (2, 4)

# %% tags=["nbval-check-output"]
src_two = encode("The dog sees the cat.").expand(2, -1)
with torch.no_grad():
    memory = precise.encode(src_two)
    expected = precise.decode(new, memory, src_two)[:, -1]
    for reorder in (True, False):
        cache = precise.new_cache()
        precise.decode(old, memory, src_two, cache=cache)
        for layer in cache if reorder else []:
            layer.select(torch.tensor([1, 1], device=device))
        hidden = precise.decode(new[:, -1:], memory, src_two, cache=cache)[:, -1]
        right = [torch.allclose(a, b) for a, b in zip(hidden, expected, strict=True)]
        print(f"cache reordered: {reorder!s:5} rows right: {right}")
of_rows.reveal({(False, True): "the first"}.get((*right,), "others"))

# %% tags=["hide-input"]
assert right == [False, True]

# %% [markdown]
# The first row reads *sieht*, but its cache remembers *Die Katze*.
# All shapes are right, so nothing crashes.
#
# ## Teacher-forced or free-running?
#
# One parallel pass over the references tells how often the model predicts the right next token.

# %%
from course_lib.data import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
with torch.no_grad():
    forced = model(batch.src, batch.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = batch.tgt_out != pad_id

# %% tags=["hide-input"]
from difflib import SequenceMatcher


def in_common(answer, tokens):
    matcher = SequenceMatcher(None, answer, tokens, False)
    return sum(block.size for block in matcher.get_matching_blocks())


# %% tags=["hide-input"]
all_right, after, same = 0, Counter(), 0
for row, each in enumerate(by_greedy):
    answer, read = (ids[row, real[row]].tolist() for ids in (batch.tgt_out, forced))
    written = each.outputs(eos_id)
    wrong = [t for t, token in enumerate(read) if token != answer[t]]
    all_right += not wrong
    begin = wrong[0] + 1 if wrong else len(answer)
    same += written[:begin] == read[:begin]
    rest = answer[begin:-2]  # without the full stop and </s>
    after["tokens"] += len(rest)
    for mode, tokens in (("forced", read[begin:]), ("free", written[begin:])):
        after[mode, "place"] += sum(a == b for a, b in zip(rest, tokens, strict=False))
        after[mode, "aligned"] += in_common(rest, tokens)

# %% tags=["hide-input"]
print(f"{all_right} of {num_pairs} without an error, teacher-forced or running free")
print(f"in the others {after['tokens']} tokens follow the first error, of which right:")
for mode in ("forced", "free"):
    for how in ("place", "aligned"):
        after[mode, how] *= 100 / after["tokens"]
    print(f"  {mode:6} {after[mode, 'place']:.0f} % by place", end=", ")
    print(f"{after[mode, 'aligned']:.0f} % aligned")

# %% tags=["hide-input"]
assert same >= 0.98 * num_pairs
assert 70 < after["forced", "place"] <= after["forced", "aligned"] < 90
assert after["free", "place"] < 35 and 50 < after["free", "aligned"] < 72

# %% [markdown]
# Up to its first error the model reads the same in both modes, so it makes the same first error.
# After it, the teacher-forced model reads the reference, and gets four tokens in five right; running free it reads its own error.
# How much worse it is then depends on the measure: by place, one extra token makes all others wrong; an alignment forgives a wrong place, which in German can be the error; and both count a good translation in other words as wrong.
# So the exposure bias of lesson 07 is only a part of these differences.
#
# ## One output, many scores
#
# How should we score what we have decoded?
# BLEU counts tokens, so it depends on how a text is cut into them.
# 13a splits off ASCII quotation marks only, not typographic ones; intl splits off both.
# And the paper's evaluation splits compounds at their hyphens, which no signature records: each part that is right counts.


# %%
import re


def split_compounds(texts):
    """As the paper's evaluation script does, before it counts."""
    return [re.sub(r"(\S)-(?=\S)", r"\1 ##AT##-##AT## ", text) for text in texts]


# %% tags=["hide-input", "nbval-check-output"]
reference = ["Sie sagte: „Der Hund schläft heute nicht.“"]
ascii_quotes = ['Sie sagte: "Der Hund schläft heute nicht."']
print(*reference, *ascii_quotes, sep="\n")
for tokens in ("13a", "intl"):
    score = bleu(ascii_quotes, reference, tokenize=tokens).score
    print(f"  quotes, {tokens:6}{score:5.1f}")
written = ["Die E-Mail-Adresse steht auf der Web-Seite."]
wanted_text = ["Die E-Mail-Anschrift steht auf der Web-Seite."]
print(*wanted_text, *written, sep="\n")
print(f"  hyphens, whole {bleu(written, wanted_text, tokenize='none').score:5.1f}")
by_paper = [split_compounds(texts) for texts in (written, wanted_text)]
print(f"  hyphens, split {bleu(*by_paper, tokenize='none').score:5.1f}")

# %% [markdown]
# The paper's 28.4 for English to German counts split compounds; sacreBLEU has given lower numbers for the same kind of output [@post2018].
# Neither is wrong; comparing them is.
#
# Our sentences have neither quotes nor hyphens, so intl or Moses tokens change hardly anything; nor does lower case. Other ways of counting do:

# %% tags=["hide-input"]
outputs = [tokenizer.decode(each.ids) for each in by_greedy]
for tokens in ("13a", "none", "char"):
    result = bleu(outputs, references, tokenize=tokens)
    print(f"{result.score:5.1f}  {result.signature}")
alone = [bleu([o], [r]).score for o, r in zip(outputs, references, strict=True)]
perfect = [o for o, r in zip(outputs, references, strict=True) if o == r]
no_credit = sum(bleu([text], [text]).score == 0 for text in perfect)
print(f"{mean(alone):5.1f}  mean over sentences ({no_credit} perfect one scores 0)")
forced_ids = [ids[row].tolist() for ids, row in zip(forced, real, strict=True)]
pretended = [tokenizer.decode(ids) for ids in forced_ids]  # leaves out </s>
print(f"{bleu(pretended, references).score:5.1f}  teacher-forced argmax")

# %% tags=["hide-input"]
from course_lib.metrics import tokenized_bleu

ours = bleu(outputs, references).score
for same in (
    bleu(outputs, references, tokenize="intl"),
    bleu(outputs, references, lowercase=True),
    tokenized_bleu(outputs, references),
):
    assert abs(same.score - ours) < 0.5
for other in ("none", "char"):
    assert abs(bleu(outputs, references, tokenize=other).score - ours) > 1.5
assert ours + 1 < bleu(pretended, references).score < ours + 2
assert not any(sign in text for text in references for sign in '"„“-')
assert 1 <= no_credit <= 3 and mean(alone) < ours - 2
assert bleu(["Wer schläft?"], ["Wer schläft?"]).score == 0  # three tokens

# %% [markdown]
# The mean over sentences has no signature. It gives short sentences the weight of long ones, and a perfect output of three tokens, which has no 4-gram, gets 0 (rare here).
#
# **A common mistake**: BLEU of the teacher-forced argmax.
# Nobody can produce this output without the reference, which corrects its beginning at each step. It is invalid, however little it flatters.
#
# So compute BLEU on detokenized text, and report with it the signature and the search: beam size, α, maximum length.
#
# ## Which search for what?
#
# All searches once more, on the same sentences and with the same translator.

# %%
draw = partial(sample, generator=torch.Generator(device).manual_seed(0))
choices = {
    "greedy": (greedy, "speed"),
    "drawn, T = 1": (draw, "all that the model considers"),
    "top-p 0.8": (partial(draw, top_p=0.8), "variety, open-ended text"),
    "beam 4, α = 0": (search_with(4, 0.0), "the probable, often short"),
    "beam 4, α = 0.6": (search_with(4, 0.6), "translating (the paper)"),
}
compared, took = {}, {}
for name, (search, _) in choices.items():
    started = time.perf_counter()
    compared[name] = decode_all(search, sources)
    took[name] = time.perf_counter() - started

# %% tags=["hide-input"]
print(f"{'BLEU':>21}  {'against greedy':20}{'log-p.':>7}{'length':>8}", end="")
print(f"{'unfinished':>12}{'time':>7}  use it for")
for name, hypotheses in compared.items():
    written = [tokenizer.decode(each.ids) for each in hypotheses]
    gain = bleu_difference(written, outputs, references)
    result = bleu(written, references)
    unfinished = sum(not each.finished for each in hypotheses)
    print(f"{name:16}{result.score:5.1f}  {told(gain):20}", end="")
    print(f"{mean(each.log_prob for each in hypotheses):7.2f}", end="")
    print(f"{result.length_ratio:8.2f}{unfinished:12}", end="")
    print(f"{took[name] / took['greedy']:5.1f} ×  {choices[name][1]}")

# %% tags=["hide-input"]
scores = {name: bleu_of(hypotheses) for name, hypotheses in compared.items()}
assert scores["drawn, T = 1"] + 8 < scores["top-p 0.8"] < scores["greedy"] - 5
best_two = scores["beam 4, α = 0"], scores["beam 4, α = 0.6"]
assert scores["greedy"] < min(best_two) and abs(best_two[0] - best_two[1]) < 2

# %% [markdown]
# (In brackets the 95 % interval; one draw each for sampling; the times vary from run to run.)
# For translating, the beams score best, partly because of greedy decoding's three outputs that run to the limit. Drawing costs BLEU and buys variety.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **greedy decoding**: writing the most probable next token, again and again.
# - **maximum length**: number of tokens after which a search stops, finished or not.
# - **top-k sampling**: drawing from the k most probable tokens.
# - **top-p sampling**: drawing from the fewest tokens that together reach the probability p.
# - **beam search**: following beam_size beginnings at once, the most probable extensions of those before.
# - **hypotheses**: the beginnings and outputs that a search follows.
# - **search error**: the model prefers the right output to the one that the search has written.
# - **model error**: the model prefers a wrong output.
# - **length penalty**: a divisor that grows with the length, so that short outputs lose their advantage.
# - **paired bootstrap resampling**: scoring two systems on the same redrawn sentences, to see how sure their difference is.
# - **key-value cache**: the keys and values of earlier tokens, kept from step to step.

# %% [markdown]
# ## Summary
#
# The log-probabilities of an output's tokens add up to that of the output.
# Greedy decoding takes each favorite, sampling draws, and a beam keeps several beginnings and finds outputs that greedy decoding misses.
# As far as references can tell, what a wide beam gets wrong is mostly the model's error; exact search shows that the most probable output can be short and wrong.
# A length penalty, chosen on other sentences than it is reported on, makes outputs longer; here that raises BLEU mostly through its brevity penalty.
# The key-value cache keeps what cannot change, so that each position is computed once, with the same logits.
# A BLEU score means something if it is of free-running output, over the whole corpus, with its signature.
#
# **Practice**: [assignment 11](assignments/release/11_decoding/11_decoding.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [12](12_reading_attention.ipynb) looks into the translator while it writes.
