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
# **Time**: {minutes} minutes to read, about a minute to run.
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
# The finished translator of the course hardly errs on sentences of its grammar, and then every search finds the same.
# So we take it from an early point of its training, where it translates well enough and is often unsure.
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
# The shortest answer to our question is **greedy decoding**: take the favorite, the most probable next token, until it is `</s>`.
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
assert abs(share - math.exp(favorite.log_prob)) < 0.06
assert len(rare) > 200

# %% [markdown]
# About as large as its probability says.
# Each of the rare outputs is improbable, but there are very many of them.
# So before we draw, we change the distribution.
#
# A temperature, which in lesson [03](03_attention.ipynb) divided scores, here divides the log-probabilities (or the logits) before the softmax.
# **Top-k sampling** keeps the k most probable tokens.
# **Top-p sampling** (or nucleus sampling) keeps the fewest tokens that together reach the probability p [@holtzman2020].


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
# Here is the whole loop.


# %%
def sample_by_hand(src, change, generator, max_len=20):
    """Ids without </s>; `change` maps log-probabilities to log-probabilities."""
    ids = []
    while len(ids) < max_len:
        probs = change(next_log_probs(src, ids)).softmax(dim=-1)
        token = probs.multinomial(1, generator=generator).item()
        if token == eos_id:
            break
        ids.append(token)
    return ids


# %%
ways = {
    "as it is": (lambda log_probs: log_probs, {}),
    "temperature 0.5": (lambda log_probs: log_probs / 0.5, {"temperature": 0.5}),
    "top-k 5": (lambda log_probs: keep_top_k(log_probs, 5), {"top_k": 5}),
    "top-p 0.8": (lambda log_probs: keep_top_p(log_probs, 0.8), {"top_p": 0.8}),
}
for name, (change, _) in ways.items():
    generators = [torch.Generator(device).manual_seed(seed) for seed in range(8)]
    outputs = [sample_by_hand(src, change, each) for each in generators]
    different = list(dict.fromkeys(map(tokenizer.decode, outputs)))
    print(f"{name:16}{len(different)} different of 8, the last: {different[-1]}")

# %% tags=["hide-input"]
for change, options in ways.values():
    for seed in range(3):
        ours, theirs = (torch.Generator(device).manual_seed(seed) for _ in range(2))
        ids = sample_by_hand(src, change, ours)
        (other,) = sample(model, src, generator=theirs, max_len=20, **options)
        assert ids == other.ids

# %% [markdown]
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

# %% [markdown]
# On the left, sampling becomes greedy decoding; on the right, noise.
# At temperature 1 even the sure place has about one nat: label smoothing (lesson [09](09_training.ipynb)) left a tail on all tokens. At 0.5 it is gone.
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
# ### Is sampling good for translating?
#
# We need references, of sentences that this translator has never seen: the test part of its corpus.

# %%
from course_lib.data import load_course, pad
from course_lib.metrics import bleu

num_pairs = 1000 if device == "cuda" else 200
pairs = load_course(num_train=60_000).test[:num_pairs]
references = [pair.tgt for pair in pairs]
for pair in pairs[:3]:
    print(pair.src, "→", pair.tgt)


def decode_all(search, sources):
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
cuts = {"all tokens": {}, "top-k 5": {"top_k": 5}, "top-p 0.8": {"top_p": 0.8}}
grid, drawn_bleu = (0.25, 0.5, 1.0), {name: [] for name in cuts}
for seed in range(3):
    generator = torch.Generator(device).manual_seed(seed)
    for name, options in cuts.items():
        options |= dict(generator=generator, max_len=40)
        searches = [partial(sample, temperature=t, **options) for t in grid]
        scores = [bleu_of(decode_all(search, sources)) for search in searches]
        drawn_bleu[name].append(scores)
hottest = {name: mean(row[-1] for row in rows) for name, rows in drawn_bleu.items()}
sampled_bleu.reveal(round(hottest["all tokens"], 1))

# %% tags=["hide-input"]
curves(
    {name: (grid, rows) for name, rows in drawn_bleu.items()},
    xlabel="temperature",
    ylabel="BLEU",
    title="For translating, a draw must stay close to the favorite",
    marks={"greedy": (None, bleu_of(by_greedy))},
)

# %% tags=["hide-input"]
assert hottest["all tokens"] < min(hottest["top-k 5"], hottest["top-p 0.8"])
coolest = {name: mean(row[0] for row in rows) for name, rows in drawn_bleu.items()}
assert max(hottest.values()) < bleu_of(by_greedy)
assert all(abs(each - bleu_of(by_greedy)) < 1.5 for each in coolest.values())
assert all(coolest[name] > hottest[name] + 1 for name in cuts)
lost = {name: bleu_of(by_greedy) - score for name, score in hottest.items()}
assert 0.2 < lost["top-k 5"] / lost["all tokens"] < 0.45

# %% [markdown]
# (The bands span three draws.)
# The higher the temperature, the worse the translation; the coolest draws are about as good as greedy decoding.
# Two thirds of the loss is the tail, which a draw from all tokens can hit at every step; the last third, which top-k 5 has too, is doubt among the first few.
# Sampling suits tasks with many good outputs, such as a story or a conversation.

# %% [markdown]
# ## Greedy decoding does not find the most probable output
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
def beam_by_hand(src, beam_size, max_len=30, scores=next_log_probs, keep_finished=True):
    """Finished outputs with </s>, best first: pairs of (log-probability, ids)."""
    live, finished = [(0.0, [])], []
    for _ in range(max_len):
        grown = []
        for total, ids in live:
            for score, token in zip(*scores(src, ids).topk(2 * beam_size), strict=True):
                grown.append((total + score.item(), [*ids, token.item()]))
        grown.sort(reverse=True)
        finished = finished if keep_finished else []  # False is a mistake, for later
        finished += [one for one in grown[:beam_size] if one[1][-1] == eos_id]
        live = [one for one in grown if one[1][-1] != eos_id][:beam_size]
        if len(finished) >= beam_size:
            break
    return sorted(finished, reverse=True)[:beam_size]


# %% [markdown]
# Why more than beam_size candidates from each?
# One of them may be `</s>`, and the others must still fill the beam.
# (One more would be enough; twice as many is customary.)

# %% tags=["nbval-check-output"]
from course_lib.decoding import beam_search, record_beam

for total, ids in beam_by_hand(src, beam_size=3):
    print(f"{total:6.2f}  {tokenizer.decode(ids)}")

# %% tags=["hide-input"]
for text in (shirt, sang, *sources[:4]):
    for size in (1, 3):  # 0.0 turns off a length penalty, which comes later
        ours = beam_by_hand(encode(text), beam_size=size, max_len=60)
        (theirs,) = beam_search(model, encode(text), beam_size=size, length_penalty=0.0)
        assert [ids[:-1] for _, ids in ours] == [each.ids for each in theirs]
        for (total, _), each in zip(ours, theirs, strict=True):
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
# Follow greedy decoding along the top, then the winner: where does the winner take the lead?

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
ranks = []
for node in (tree.nodes[index] for index in tree.path(tree.best[0])[1:]):
    level = [each.total for each in tree.nodes if each.step == node.step]
    ranks.append(1 + sorted(level, reverse=True).index(node.total))
assert ranks[:2] == [1, 1] and ranks[2] > 1 == ranks[-1]

# %% [markdown]
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
# (Others call it a search error whenever the most probable output of all is missed; ours are those that a reference can prove.)

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

# %%
stacked_bars(
    errors,
    xlabel=f"outputs that are not the reference, of {num_pairs}",
    title="With a beam of 8 the search errors are gone; the model's remain",
)

# %% tags=["hide-input"]
missed = [each["search errors"] for each in errors.values()]
assert missed == sorted(missed, reverse=True) and missed[-1] <= 0.02 * num_pairs
assert of_greedy["search errors"] > 0.05 * num_pairs
assert sum(errors["beam 8"].values()) > 0.9 * sum(of_greedy.values())
assert errors["beam 8"]["model errors"] > 0.4 * num_pairs

# %% [markdown]
# (Some of these "errors" are good translations in other words.)
# With a small beam, nearly every error is the model's own; but hardly fewer outputs are wrong.
#
# How often does a search miss the most probable output of all?
# With 2,000 subwords we cannot score *every* output.
# With four words, and at most three of them in a sentence, there are only 1 + 4 + 16 + 64 = 85.
# So we ask 50 untrained models with this tiny vocabulary (`tiny_model`), and score all outputs (`exhaustive`).

# %% tags=["hide-input"]
from itertools import product

from course_lib import ModelConfig, Transformer

sizes = dict(d_model=16, num_heads=2, num_layers=1, d_ff=32, dropout=0.0, max_len=16)
tiny_src = torch.tensor([[4, 6, 3, 5, eos_id]])


@torch.no_grad()
def tiny_model(seed):
    torch.manual_seed(seed)
    tiny = Transformer(ModelConfig(vocab_size=7, tie_weights=False, **sizes)).eval()
    tiny.generator.weight.mul_(3)  # stronger opinions
    return tiny


# %% tags=["hide-input"]
@torch.no_grad()
def exhaustive(tiny):
    """The most probable of all finished outputs of at most three words."""
    scored = []
    for length in range(4):
        outputs = list(product(range(3, 7), repeat=length))
        tgt_in = torch.tensor([[bos_id, *output] for output in outputs])
        tgt_out = torch.tensor([[*output, eos_id] for output in outputs])
        logits = tiny(tiny_src.expand(len(outputs), -1), tgt_in)
        log_probs = logits.log_softmax(dim=-1).gather(2, tgt_out[:, :, None])
        scored += zip(log_probs.sum(dim=(1, 2)).tolist(), outputs, strict=True)
    assert len(scored) == 85
    return list(max(scored)[1])


# %%
beam_sizes, hits = (1, 2, 4, 8, 320), Counter()
for seed in range(50):
    tiny = tiny_model(seed)
    best = exhaustive(tiny)
    for size in beam_sizes:
        options = dict(beam_size=size, length_penalty=0.0, max_len=4)
        ((first, *_),) = beam_search(tiny, tiny_src, **options)
        hits[size] += first.finished and first.ids == best
bars(
    [f"beam {size}" for size in beam_sizes],
    [hits[size] for size in beam_sizes],
    xlabel="models of 50 whose most probable output is found",
    title="A wider beam misses less, and one of 320 cannot miss",
)

# %% tags=["hide-input"]
assert hits[320] == 50 and hits[1] < 30
assert hits[1] < hits[2] < hits[4] <= hits[8] <= hits[320]

# %% [markdown]
# In the last step 4³ beginnings have 5 continuations each, which makes 320: a beam that wide drops nothing, so it *is* exhaustive search.
#
# ## Two searches that are wrong
#
# **A common mistake**: beam search that adds raw logits.
# If all logits of a step grow by 7, the probabilities stay the same, but the sum does not.
# And each token whose logit is positive makes an output look *better*.
#
# **A common mistake**: beam search that drops what has finished, so that only hypotheses that end in its last step count.
#
# Our function can make both, without a crash.
# How would we notice?

# %%
@torch.no_grad()
def raw_logits(src, ids):
    tgt_in = torch.tensor([[bos_id, *ids]], device=device)
    logits = model(src, tgt_in)[0, -1]
    logits[[pad_id, bos_id]] = -math.inf
    return logits


# %%
mistakes = {
    "right": {},
    "raw logits": {"scores": raw_logits},
    "dropped": {"keep_finished": False},
}
wrongly = {}
for text in (sang, shirt):
    for name, options in mistakes.items():
        best = beam_by_hand(encode(text), beam_size=3, **options)[0][1]
        wrongly[text, name] = sum(token_log_probs(encode(text), best[:-1]))
        print(f"{name:11}{wrongly[text, name]:8.2f}  {tokenizer.decode(best)[:60]}")

# %% tags=["hide-input"]
losses = {key: wrongly[key[0], "right"] - total for key, total in wrongly.items()}
assert min(losses.values()) > -1e-4
for name in ("raw logits", "dropped"):
    assert max(losses[text, name] for text in (sang, shirt)) > 1
for text in (sang, shirt):
    (reported, best), *_ = beam_by_hand(encode(text), beam_size=3, scores=raw_logits)
    assert abs(reported - sum(token_log_probs(encode(text), best[:-1]))) > 1
    (plain,) = greedy(model, encode(text))
    assert wrongly[text, "dropped"] < plain.log_prob - 1

# %% [markdown]
# The outputs look like those of a weak model, and now and then a wrong search finds the right one.
# Their log-probabilities, recomputed in one parallel pass, give them away, and two checks need no right search.
# The score that a search reports must equal the recomputed one, which raw logits fail; and over many sentences a beam must not find less probable outputs than greedy decoding, as the one that drops does here.
#
# ## Every further token costs
#
# The logarithm of a probability is never positive, so each token lowers the total. Where a model gives an early `</s>` too much, short outputs have an advantage.
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

# %%
facts = {}
print("beam  log-probability  tokens  BLEU")
for size, found in trees.items():
    total = mean(tree.nodes[tree.best[0]].total for tree in found)
    ids = [output(tree, tree.best[0]) for tree in found]
    score = bleu([tokenizer.decode(each) for each in ids], references).score
    facts[size] = total, mean(map(len, ids)), score
    print(f"{size:4}{total:17.2f}{facts[size][1]:8.1f}{score:6.1f}")
wanted = mean(len(tokenizer.encode(text)) for text in references)
print(f"the references have {wanted:.1f} tokens")

# %% tags=["hide-input"]
totals, tokens, scores = map(list, zip(*facts.values(), strict=True))
assert totals == sorted(totals) and tokens == sorted(tokens, reverse=True)
assert tokens[-1] < wanted - 0.5
assert scores[1] > scores[0] + 1 and abs(scores[-1] - scores[1]) < 1.5

# %% [markdown]
# The wider the beam, the more probable the outputs, and the shorter.
# With other models BLEU falls as the beam grows; and for a full-size Transformer the most probable output of all was the *empty* one for more than half of the sentences [@stahlberg2019].
# Here a beam of 2 gains BLEU and wider ones no more. All of them write less than the references have.
# Can we keep the wide beam, and the length too?
#
# ### The length penalty
#
# @wu2016 divide the log-probability by a number that grows with the length, the **length penalty**:
#
# score(Y) = log P(Y | X) / lp(Y), with lp(Y) = ((5 + |Y|) / 6)^α
#
# |Y| is the number of tokens, `</s>` included.
# α = 0 compares bare log-probabilities; the larger α, the more a long output is favored.
# As in `beam_search`, the penalty only ranks what has finished, so for each α we choose again from the trees that we have.


# %%
def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


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
# Which α?
# The paper took 0.6 with a beam of 4, "chosen after experimentation on the development set" (section 6.1).
# We choose on the first half of our texts, and report on the second, which is enough to see whether a penalty helps.

# %%
half = num_pairs // 2
alphas = (0, 0.3, 0.6, 1, 1.5, 2, 3)
texts = {
    alpha: [tokenizer.decode(pick(tree, alpha)) for tree in trees[8]]
    for alpha in alphas
}
chosen_on = [bleu(t[:half], references[:half]).score for t in texts.values()]
best_alpha = alphas[chosen_on.index(max(chosen_on))]
lengths = [mean(len(pick(tree, alpha)) for tree in trees[8]) for alpha in alphas]
for alpha, score, length in zip(alphas, chosen_on, lengths, strict=True):
    chosen = "  ← chosen" if alpha == best_alpha else ""
    print(f"α {alpha:3}  {length:4.1f} tokens  {score:.1f} BLEU, first half{chosen}")

# %%
from course_lib.metrics import bleu_difference

gain = bleu_difference(texts[best_alpha][half:], texts[0][half:], references[half:])
print(f"second half: α = {best_alpha} against 0: {gain.value:+.1f} BLEU")
print(f"95 % interval: {gain.low:+.1f} to {gain.high:+.1f}")
for alpha in (0, best_alpha):
    ratio = bleu(texts[alpha][half:], references[half:]).length_ratio
    print(f"α = {alpha}: {ratio:.2f} of the references' length")

# %% tags=["hide-input"]
assert lengths == sorted(lengths) and lengths[0] < wanted - 0.5 < lengths[-1] - 0.2
assert best_alpha > 0 and gain.low > 0
assert sorted(chosen_on)[-3] > max(chosen_on) - 0.5

# %% [markdown]
# The interval comes from **paired bootstrap resampling** [@koehn2004]: we draw the texts again, with replacement, and score both sides on each draw.
# The interval, over the choice of sentences, lies above 0: the penalty helps. Part of the gain is BLEU's own brevity penalty, which too short outputs pay. Which α, these texts cannot say: several score nearly the same.
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
# With one new token at a time, the future is not there yet, so there is nothing to hide.
# (But a token that comes alone must still get its own position, t and not 0, or the outputs change without a crash.)
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
# How much time does it save?
# We write several sentences at once, of arbitrary tokens, and time it (`seconds`).

# %% tags=["hide-input"]
sentences, longest = (1024, 128) if device == "cuda" else (4, 64)
several = src.expand(sentences, -1)
any_ids = torch.arange(4, 4 + longest, device=device).expand(sentences, -1)
out_lengths = [2**n for n in range(3, 8) if 2**n <= longest]


def seconds(length, cached):
    started = time.perf_counter()
    write(model, several, any_ids[:, :length], cached)[0].sum().item()
    return time.perf_counter() - started


# %%
runs = {"without cache": [], "with cache": []}
seconds(8, True), seconds(8, False)  # the first run of all is slower
for _ in range(3):
    for name, run in runs.items():
        run.append([seconds(length, name == "with cache") for length in out_lengths])
slow, fast = (torch.tensor(run).min(dim=0).values for run in runs.values())  # the best
print(f"at {longest} tokens the cache is {slow[-1] / fast[-1]:.1f} times as fast")
curves(
    {name: (out_lengths, run) for name, run in runs.items()},
    xlabel="length of the output (tokens)",
    ylabel=f"seconds for {sentences} sentences",
    title="The longer the output, the more the cache saves",
)

# %% tags=["hide-input"]
assert slow[-1] - fast[-1] > max(0, slow[0] - fast[0])

# %% [markdown]
# **A common mistake**: a beam search that reorders its hypotheses but not the cache.
# Its two rows are *Die Katze* and *Der Hund*; it drops the first and extends the second twice, to *Der Hund sieht* and *Der Hund schläft*.

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
src_two = encode("The dog sees the cat.").expand(2, -1)
assert old.shape == (2, 3) and new.shape == (2, 4)

# %% tags=["nbval-check-output"]
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
# What share of the tokens is right at each position of the target, in each mode?
#
# Running free, one extra token shifts all that follow, and a strict count takes them for wrong.
# So we count twice: place by place, and after aligning the output with the reference by the blocks that both share. (The full stop and `</s>` of a reference are left out: an alignment nearly always finds them.)

# %% tags=["hide-input"]
from difflib import SequenceMatcher

from course_lib.data import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
with torch.no_grad():
    forced = model(batch.src, batch.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = batch.tgt_out != pad_id
forced_right = ((forced == batch.tgt_out) & real).cpu()
free_right = torch.zeros_like(forced_right)
aligned_right = free_right.clone()
for row, each in enumerate(by_greedy):
    answer, written = batch.tgt_out[row, real[row]].tolist(), [*each.ids, eos_id]
    for t, pair in enumerate(zip(written, answer, strict=False)):
        free_right[row, t] = pair[0] == pair[1]
    for block in SequenceMatcher(None, answer, written, False).get_matching_blocks():
        aligned_right[row, block.a : block.a + block.size] = True

# %% tags=["hide-input"]
lengths_of = real.sum(dim=1, keepdim=True)
places_of = torch.arange(real.shape[1], device=device)
counted = (places_of < lengths_of - 2).cpu()  # without the full stop and </s>

# %%
counts = counted.sum(dim=0)
often = counts >= num_pairs // 5  # positions that many references have
by_mode = {"teacher-forced": forced_right, "free-running, aligned": aligned_right}
by_mode["free-running, place by place"] = free_right
found = {name: (each & counted).sum(dim=0) for name, each in by_mode.items()}
shares = {name: (100 * each / counts)[often] for name, each in found.items()}
curves(
    {name: (range(1, len(y) + 1), y) for name, y in shares.items()},
    xlabel="position in the target",
    ylabel="right tokens (%)",
    title="Counted place by place, running free collapses; aligned, it does not",
)

# %% tags=["hide-input"]
falls = [(y[:3].mean() - y[-3:].mean()).item() for y in shares.values()]
forced_falls, aligned_falls, free_falls = falls
assert free_falls > 30 > 10 > max(abs(forced_falls), abs(aligned_falls))
lead = shares["teacher-forced"] - shares["free-running, aligned"]
assert lead[:2].abs().max() < 1 and lead[:5].mean() < 3 < lead[5:].mean() < 8

# %% [markdown]
# Teacher-forced, the model reads the *right* beginning at each position; running free, it reads its own.
# Counted place by place, running free looks like a collapse.
# Aligned, it loses nothing at first, and from the sixth token on about five points: most of the "wrong" tokens merely stand elsewhere.
# These five points are what the exposure bias of lesson 07 costs here.
#
# ## One output, many scores
#
# How should we score what we have decoded?
# We keep the outputs of greedy decoding, and change only what BLEU counts: how a text is cut into tokens (13a, intl and Moses are tokenizers), and whether case matters.


# %%
from course_lib.metrics import tokenized_bleu

outputs = [tokenizer.decode(each.ids) for each in by_greedy]
rulers = {
    "cased, 13a tokens": bleu(outputs, references),
    "cased, intl tokens": bleu(outputs, references, tokenize="intl"),
    "lower-cased, 13a": bleu(outputs, references, lowercase=True),
    "lower-cased, Moses tokens": tokenized_bleu(outputs, references),
    "words as they stand": bleu(outputs, references, tokenize="none"),
    "characters": bleu(outputs, references, tokenize="char"),
}
table = {name: result.score for name, result in rulers.items()}
for name, result in rulers.items():
    print(f"{name:26}{result.score:5.1f}  {result.signature}")

# %% [markdown]
# With the four that use a real tokenizer, hardly at all; the last two count something else, and their signatures say so.
# Some numbers that are called BLEU have no signature.
# One is a mean over sentences, where an output of three tokens, which has no 4-gram, scores 0 even if it is perfect.
#
# **A common mistake**: BLEU of the teacher-forced argmax.
# Nobody can produce this output without the reference, which corrects its beginning at each step. It is invalid however little it flatters, here by less than two points.

# %%
alone = [bleu([o], [r]).score for o, r in zip(outputs, references, strict=True)]
table["mean over sentences"] = mean(alone)
forced_ids = [ids[row].tolist() for ids, row in zip(forced, real, strict=True)]
pretended = [tokenizer.decode(ids) for ids in forced_ids]  # leaves out </s>
table["teacher-forced argmax"] = bleu(pretended, references).score
bars(
    list(table),
    list(table.values()),
    xlabel="BLEU",
    title="Eight numbers that are called BLEU",
    value_format="{:.1f}",
)

# %% tags=["hide-input"]
assert len({result.signature for result in rulers.values()}) == len(rulers)
ours = table["cased, 13a tokens"]
for same in ("cased, intl tokens", "lower-cased, 13a", "lower-cased, Moses tokens"):
    assert abs(table[same] - ours) < 1.5
for other in ("words as they stand", "characters"):
    assert abs(table[other] - ours) > 1.5
assert ours + 1 < table["teacher-forced argmax"] < ours + 2
assert bleu(["Wer schläft?"], ["Wer schläft?"]).score == 0  # three tokens

# %% [markdown]
# On other texts the tokens matter more.
# 13a splits off ASCII quotation marks only, not typographic ones.
# And the paper's evaluation splits compounds at their hyphens, which no signature records: each part that is right counts.


# %% tags=["nbval-check-output"]
import re


def split_compounds(texts):
    """As the paper's evaluation script does, before it counts."""
    return [re.sub(r"(\S)-(?=\S)", r"\1 ##AT##-##AT## ", text) for text in texts]


reference = ["Sie sagte: „Der Hund schläft heute nicht.“"]
ascii_quotes = ['Sie sagte: "Der Hund schläft heute nicht."']
for tokens in ("13a", "intl"):
    score = bleu(ascii_quotes, reference, tokenize=tokens).score
    print(f"quotes, {tokens:6}{score:5.1f}")
written = ["Die E-Mail-Adresse steht auf der Web-Seite."]
wanted_text = ["Die E-Mail-Anschrift steht auf der Web-Seite."]
print(f"hyphens, whole {bleu(written, wanted_text, tokenize='none').score:5.1f}")
by_paper = [split_compounds(texts) for texts in (written, wanted_text)]
print(f"hyphens, split {bleu(*by_paper, tokenize='none').score:5.1f}")

# %% [markdown]
# The paper's 28.4 for English to German counts split compounds; sacreBLEU has given lower numbers for the same kind of output [@post2018].
# Neither is wrong; comparing them is.
# So report a score with its signature, of raw text, and with the search that wrote the output.

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
# What a wide beam gets wrong is mostly the model's error; and bare log-probability favors short outputs, which a length penalty, chosen on other sentences than it is reported on, counteracts.
# The key-value cache keeps what cannot change, so that each position is computed once, with the same logits.
# A BLEU score means something if it is of free-running output, over the whole corpus, with its signature.
#
# **Practice**: [assignment 11](assignments/release/11_decoding/11_decoding.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [12](12_reading_attention.ipynb) looks into the translator while it writes.
