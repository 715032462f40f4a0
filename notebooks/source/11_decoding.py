# %% [markdown]
# # 11 · How to decode: from probabilities to a sentence
#
# **Question.** The model gives every next token a probability. Which one do we write?
#
# **Afterwards you can**
#
# 1. decode greedily, with a beam and by sampling, say what each is good for, and why a key-value cache changes no logit;
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
from course_lib.figures import bars, intervals, stacked_bars
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

# %%
translator = Translator.from_pretrained("course", step=933)  # of 5,572 steps
model, tokenizer = translator.model.to(device), translator.tokenizer
pad_id, bos_id, eos_id = model.config.pad_id, model.config.bos_id, model.config.eos_id

# %% [markdown]
# Three answers offer themselves: take the most probable token each time, search for the most probable sentence, or draw.
# The first loses a word, and a better search finds it again.
# But a better search also turns a right translation into a wrong one. How can that be?
#
# (A better search hardly changes what the finished translator writes for sentences like those it was trained on. So we use an early checkpoint.)
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
# *I sang three days ago* is *Ich sang vor drei Tagen*: German *vor* is the English *ago*, and it stands in front.
# Suppose that the translator has written *Ich sang*. What may come next?

# %%
shirt, sang = "The shirt lies there.", "I sang three days ago."
src = encode(sang)
unsure = next_log_probs(src, tokenizer.encode("Ich sang")).cpu()
probs, order = unsure.exp().sort(descending=True)
others = 100 * probs[6:].sum().item()
bars(
    [*map(tokenizer.token, order[:6].tolist()), f"{(probs > 0).sum() - 6:,} others"],
    [*(100 * probs[:6]).tolist(), others],
    xlabel="probability of the token after Ich sang (%)",
    title="Two tokens compete, and the wrong one is ahead",
    value_format="{:.1f}",
)

# %% tags=["hide-input"]
first, second = map(tokenizer.token, order[:2].tolist())
assert (first, second) == ("▁drei", "▁vor") and probs[0] < 3 * probs[1]
assert 0.65 < probs[0] < 0.67 and 0.24 < probs[1] < 0.26

# %% [markdown]
# `▁vor` is right, and the model gives it 25 %. But `▁drei` has 66 %.
# Our first answer takes the first bar.
#
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
for text in ("The cat sleeps.", shirt, sang):
    ids, total, finished = greedy_by_hand(encode(text), max_len=20)
    print(f"{total:6.2f}  {math.exp(total):.3f}  {tokenizer.decode(ids)}")

# %% tags=["hide-input"]
for text in ("The cat sleeps.", shirt, sang):
    ids, total, finished = greedy_by_hand(encode(text), max_len=20)
    (theirs,) = greedy(model, encode(text), max_len=20)
    assert (ids, finished) == (theirs.ids, theirs.finished)
    assert math.isclose(total, theirs.log_prob, abs_tol=1e-4)

# %% [markdown]
# The sum is the log-probability of the *whole* output, and the second column is its probability.
# For a source X this is the product p(y₁ | X) · p(y₂ | y₁, X) · …, with `</s>` as last factor; logarithms turn it into a sum.
#
# ## When does a search stop?
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
# So every search needs a *maximum length*, in case `</s>` never comes.
# The paper allows 50 tokens more than the source has, and so does `course_lib` by default.
# An output that reaches the limit without `</s>` is *unfinished*, and the search must say so:

# %% tags=["hide-input", "nbval-check-output"]
for max_len in (3, 5, 6):
    (cut,) = greedy(model, encode(shirt), max_len=max_len)
    print(f"limit {max_len}: finished {cut.finished!s:6}{tokenizer.decode(cut.ids)}")

# %% [markdown]
# Five tokens and `</s>` need a limit of 6.
#
# ## Did the model want this?
#
# Greedy decoding took the first bar, `▁drei`, and wrote *Ich sang drei Tagen.*, without *ago*.
# Does the model prefer this to the right sentence?
# We score both, each with one parallel pass.


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
# No: the model prefers the right output, but greedy decoding never saw it.
# It took `▁drei` and paid for it later: after *drei Tagen* the full stop costs 1.20, in the right sentence 0.03.
#
# Greedy decoding never looks back.
# So we need a search that keeps `▁vor` alive for a while.
#
# ## Beam search
#
# Keep two beginnings in place of one.
# This is our sentence from step 3 on; a number is the log-probability of everything so far.
#
# | step | the better one | | the other one | |
# |---|---|---|---|---|
# | 3 | Ich sang **drei** | −1.03 | Ich sang **vor** | −2.01 |
# | 4 | Ich sang drei Tagen | −1.17 | Ich sang vor drei | −2.03 |
# | 5 | Ich sang vor drei Tagen | −2.13 | Ich sang drei Tagen. | −2.36 |
# | 6 | Ich sang vor drei Tagen. | −2.16 | Ich sang drei Tagen. `</s>` | −2.47, finished |
# | 7 | Ich sang vor drei Tagen. `</s>` | −2.28, finished | | |
#
# At step 5 the order turns: greedy's sentence pays for its full stop, and the one with `▁vor` overtakes it.
# Here is the same search as a tree, with the four best candidates of each step.

# %% id="beam-tree"
from course_lib.decoding import beam_search, record_beam
from course_lib.figures import beam_figure

(tree,) = record_beam(model, src, beam_size=2, length_penalty=0.0)
best = tokenizer.decode(tree.tokens(tree.best[0]))
beam_figure(
    tree,
    [tokenizer.token(node.token) for node in tree.nodes],
    title=f"A beam of 2 keeps what greedy decoding drops: {best}",
)

# %% tags=["hide-input"]
winner = [tree.nodes[index].total for index in tree.path(tree.best[0])]
second = next(i for i in tree.best if tree.tokens(i)[:-1] == sang_greedy.ids)
loser = [tree.nodes[index].total for index in tree.path(second)]
told_of = (winner, [-2.01, -2.03, -2.13, -2.16, -2.28]), (loser, [-1.03, -1.17, -2.36])
for totals, numbers in told_of:
    for total, number in zip(totals[3:], numbers, strict=False):
        assert math.isclose(total, number, abs_tol=0.01)
assert tree.nodes[second].step == 6 and math.isclose(loser[6], -2.47, abs_tol=0.01)
assert len(winner) == 8 and max(node.step for node in tree.nodes) == 7
alive = [node.total for node in tree.nodes if node.fate == "unfinished"]
assert math.isclose(max(alive), -9.29, abs_tol=0.01)

# %% [markdown]
# (Boxes of one parent stand together, whatever their rank. Dashed ones are alive at the end.)
#
# This is **beam search**.
# It keeps *beam_size* beginnings, its *hypotheses*. One step goes like this:
#
# 1. Extend each hypothesis by every token: these are the candidates.
# 2. Look at the beam_size best candidates. Those that end in `</s>` are finished; put them aside.
# 3. Of the candidates that do not end in `</s>`, the beam_size best go on. All others are dropped for good.
#
# The search is over when beam_size outputs have finished, or at the maximum length.


# %%
def beam_by_hand(src, beam_size, max_len=30, scores=next_log_probs):
    """Outputs, best first: (log-probability, ids without </s>, whether </s> came)."""
    live, finished = [(0.0, [])], []
    while len(finished) < beam_size and len(live[0][1]) < max_len:
        grown = []
        for total, ids in live:
            for score, token in zip(*scores(src, ids).topk(beam_size + 1), strict=True):
                grown.append((total + score.item(), [*ids, token.item()]))
        grown.sort(reverse=True)
        ended = [one for one in grown[:beam_size] if one[1][-1] == eos_id]
        finished += [(total, ids[:-1], True) for total, ids in ended]
        live = [one for one in grown if one[1][-1] != eos_id][:beam_size]
    outputs = finished or [(total, ids, False) for total, ids in live]
    return sorted(outputs, reverse=True)[:beam_size]


# %% [markdown]
# Why one candidate more than beam_size from each?
# All that go on may come from one hypothesis, and `</s>` may be among its best.

# %% tags=["nbval-check-output"]
for total, ids, _ in beam_by_hand(src, beam_size=2):
    print(f"{total:6.2f}  {tokenizer.decode(ids)}")

# %% [markdown]
# Both outputs are found, the right one first.
# (A beam of 1 is greedy decoding, token for token.)
#
# ### When may a beam stop?
#
# Not at the first `</s>`.
# At step 6 the wrong sentence has finished with −2.47, but the right one is alive at −2.16, and it wins.
#
# A total can only fall, because the logarithm of a probability is never positive.
# So when a finished output beats every live hypothesis, none of them can overtake it any more.
# Here that is at step 7: −2.28 against −9.29.
# Our rule is simpler and can stop too early: a live hypothesis may still be ahead.
#
# ### Whose error is it?
#
# Is a more probable output a better one?
# Try *He was not clever.*, with a beam of 4.
# The top row is the path of greedy decoding.

# %%
from course_lib.widgets import BeamTreeExplorer

denied = "He was not clever."
explorer = BeamTreeExplorer(translator, denied, beam_size=4)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

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
assert tokenizer.decode(wide.ids) == "Er war klug."
assert math.isclose(narrow.log_prob, -2.09, abs_tol=0.01)
assert math.isclose(wide.log_prob, -2.01, abs_tol=0.01)
end = next(i for i in wide_tree.best if wide_tree.tokens(i)[:-1] == narrow.ids)
way, parents = wide_tree.path(end), [node.parent for node in wide_tree.nodes]
assert way[1:] == [parents.index(index) for index in way[:-1]]  # the top row

# %% [markdown]
# Greedy decoding writes *Er war nicht klug.*, which is right.
# The beam finds something more probable: *Er war klug.*, "he was clever".
#
# So two outputs are wrong, for different reasons:
#
# | source | right output | wrong output | who is to blame? |
# |---|---|---|---|
# | I sang three days ago. | … vor drei Tagen. **−2.28** | … drei Tagen. −2.47 (greedy) | the search |
# | He was not clever. | Er war nicht klug. −2.09 | Er war klug. **−2.01** (beam of 4) | the model |
#
# In the first row the model prefers the right output, and the search missed it: a **search error**.
# In the second row the model itself prefers the wrong output: a **model error**.
# A wider beam can mend only a search error.
#
# Now 200 test sentences, which this translator has never seen, first greedily:

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

# %% tags=["hide-input"]
for text in (shirt, sang, *sources[:4]):
    for size in (1, 2, 3):  # 0.0 turns off a length penalty, which comes later
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
# How many outputs differ from their reference, greedily and with three beams (`search_with`)?


# %% tags=["hide-input"]
def search_with(beam_size, length_penalty=0.0):
    options = dict(beam_size=beam_size, length_penalty=length_penalty)
    return lambda m, s: [found[0] for found in beam_search(m, s, **options)]


# %%
found = {"greedy": by_greedy}
found |= {f"beam {size}": decode_all(search_with(size), sources) for size in (2, 4, 8)}
print(f"outputs that differ from their reference, of {num_pairs}:")
differing = {}
for name, hypotheses in found.items():
    written = [tokenizer.decode(each.ids) for each in hypotheses]
    differing[name] = sum(map(str.__ne__, written, references))
    print(f"{name:6}{differing[name]:5}")

# %% tags=["hide-input"]
finished_model = Translator.from_pretrained("course").model.to(device).eval()
one, other = (
    decode_all(search, sources[:100], finished_model)
    for search in (greedy, search_with(4))
)
unchanged = sum(a.ids == b.ids for a, b in zip(one, other, strict=True))
print("the finished translator, greedily and with a beam of 4:")
print(f"{unchanged} of 100 outputs are the same")
assert unchanged >= 97

# %% [markdown]
# A beam of 8 leaves nearly as many as greedy decoding. Is its search still too weak, or is it the model?
# (The finished translator hardly needs a beam.)
#
# ### Search everything
#
# What is the most probable output of *all*, our second answer?
#
# There are too many to score, but a total can only fall.
# Once a beginning is below some finished output, its whole branch is cut [@stahlberg2019].
# `exact` tries the most probable token first and gives up after 1,000 calls.


# %%
def exact(src, best, asked, total=0.0, ids=()):
    """The better of `best`, a pair (total, ids), and the best output that begins so."""
    asked.append((total, [*ids]))
    totals = total + next_log_probs(src, ids)
    best = max(best, (totals[eos_id].item(), [*ids]))
    totals[eos_id] = -math.inf
    for token in totals.argsort(descending=True).tolist():
        if totals[token] <= best[0] or len(asked) >= 1000:
            break  # all others are less probable still, or we give up
        best = exact(src, best, asked, totals[token].item(), [*ids, token])
    return best


# %% [markdown]
# Its calls for *I sang three days ago.*, starting from greedy decoding's −2.47 (last column: the best continuation it cuts):

# %% tags=["hide-input"]
asked, cut_totals = [], []
top, top_ids = exact(src, (sang_greedy.log_prob, sang_greedy.ids), asked)
followed = [ids for _, ids in asked]
print(f" total  {'beginning':26}best it cuts")
for total, ids in asked:
    totals = total + next_log_probs(src, ids)
    order = totals.argsort(descending=True).tolist()
    gone = next(t for t in order if t != eos_id and [*ids, t] not in followed)
    cut_totals.append(totals[gone].item())
    line = f"{total:6.2f}  {tokenizer.decode(ids) or '<s>':26}"
    print(f"{line}{cut_totals[-1]:6.2f} {tokenizer.token(gone)}")
print(f"most probable of all outputs:\n{top:6.2f}  {tokenizer.decode(top_ids)}")

# %% tags=["hide-input"]
bound = sang_greedy.log_prob
assert max(cut_totals) < bound - 0.1 < bound + 0.05 < min(total for total, _ in asked)
assert tokenizer.decode(top_ids) == "Ich sang vor drei Tagen."
assert math.isclose(top, -2.28, abs_tol=0.01) and len(asked) == 10

# %% [markdown]
# All cuts are below −2.47, and each call also scores `</s>`: ten calls prove that nothing beats −2.28.
# Now the first 100 test sentences. `exact` starts from the best output of greedy decoding and the beams.

# %%
missed_by_greedy = Predict(
    "For how many of 100 sentences "
    "does greedy decoding miss the most probable output?",
    off_by=5,
    section="Search everything",
)
missed_by_greedy

# %%
hits, calls, beaten = Counter(), [], {}
for row, text in enumerate(sources[:100]):
    outputs = {name: hypotheses[row] for name, hypotheses in found.items()}
    start = max((each.log_prob, each.ids) for each in outputs.values() if each.finished)
    asked = []
    total, ids = exact(encode(text), start, asked)
    calls.append(len(asked))
    if calls[-1] < 1000:
        hits.update(name for name, each in outputs.items() if each.ids == ids)
        if outputs["beam 8"].ids != ids:
            beaten[text] = total, ids
proved = sum(count < 1000 for count in calls)
print(f"{proved} of 100 in time; half of them in {sorted(calls)[50]} calls or fewer")
missed_by_greedy.reveal(proved - hits["greedy"])

# %% tags=["hide-input"]
bars(
    list(found),
    [hits[name] for name in found],
    xlabel=f"sentences of {proved} whose most probable output is found",
    title="Even a beam of 8 misses some most probable outputs",
)

# %% tags=["hide-input"]
assert proved >= 97 and sorted(calls)[50] < 25
by_size = [hits[name] for name in found]
assert by_size == sorted(by_size) and by_size[0] + 10 < by_size[1] < by_size[3] < proved
assert 58 < by_size[0] < 78 and by_size[3] > 90
assert abs(proved - by_size[0] - 31) <= 2 and abs(proved - by_size[3] - 3) <= 2
assert abs(differing["greedy"] - 123) <= 3 and abs(differing["beam 8"] - 121) <= 3

# %% [markdown]
# Greedy decoding misses 31 of the 99 most probable outputs, a beam of 8 only 3; yet 123 and 121 of all 200 outputs differ from their references.
# A better search does not mend the model.
# (A search error need not be a wrong translation: *Er war nicht klug.* was one, and right.)
#
# And what the beam missed can be far worse:

# %% tags=["hide-input"]
unasked = "He may invite a neighbor who loves the blue flower."
widest, (total, ids) = found["beam 8"][sources.index(unasked)], beaten[unasked]
print(unasked)
print(f"  beam 8 {widest.log_prob:6.2f} {tokenizer.decode(widest.ids)}")
print(f"  exact  {total:6.2f} {tokenizer.decode(ids)}")

# %% tags=["hide-input"]
assert tokenizer.decode(ids) == "Er darf?" and total > widest.log_prob + 1
assert "die die" in tokenizer.decode(widest.ids)

# %% [markdown]
# The beam writes the whole sentence, with one word doubled; the most probable output is "He may?".
# Here the beam translates better because its search fails.
#
# With a full-size Transformer, even a beam of 100 missed the most probable output of most sentences, and for more than half of the sentences this output was *empty* [@stahlberg2019].
# Why can the most probable output be so short?
#
# ## Every further token costs
#
# Each token lowers the total, so it pays to leave words out, unless the model charges enough for the gap.
# For the missing *vor* it did, at the full stop; for the missing *nicht* it did not, nor for all that *Er darf?* leaves out.
# What do wider beams do to the length (column *tokens*), and to BLEU?


# %% tags=["hide-input"]
def output(tree, index):
    """Ids of the output that ends at this node, without </s>."""
    return [token for token in tree.tokens(index) if token != eos_id]


trees = {}
for size in (1, 2, 4, 8):
    options = dict(beam_size=size, length_penalty=0.0)
    trees[size] = decode_all(lambda m, s, o=options: record_beam(m, s, **o), sources)

# %% tags=["hide-input"]
facts, texts_of = {}, {}
rows = [row for row, each in enumerate(by_greedy) if each.finished]
print("beam  unfinished  log-prob.*  tokens*  BLEU")
for size, grown in trees.items():
    ends = [tree.nodes[tree.best[0]] for tree in grown]
    texts_of[size] = [tokenizer.decode(output(tree, tree.best[0])) for tree in grown]
    cut_off = sum(end.fate == "unfinished" for end in ends)
    length = mean(ends[row].step - 1 for row in rows)  # without </s>
    score = bleu(texts_of[size], references).score
    facts[size] = mean(ends[row].total for row in rows), length, cut_off, score
    print(f"{size:4}{cut_off:12}{facts[size][0]:12.2f}{length:9.1f}{score:6.1f}")
wanted = mean(len(tokenizer.encode(references[row])) for row in rows)
print(f"references{wanted:27.1f}\n* of the {len(rows)} sentences that all beams finish")

# %% tags=["hide-input"]
totals, tokens, unfinished, bleus = zip(*facts.values(), strict=True)
assert sorted(totals) == [*totals] and sorted(tokens, reverse=True) == [*tokens]
assert tokens[0] < wanted - 0.2 and tokens[1] < wanted - 0.5
assert unfinished[0] == num_pairs - len(rows) >= 2 and not any(unfinished[1:])
assert bleus[1] > bleus[0] + 1 and bleus[3] < bleus[1] + 0.8

# %% [markdown]
# With wider beams the outputs become more probable, and shorter.
# BLEU does not follow: a beam of 8 gains no more than a beam of 2.
#
# How sure is beam 4's gain over beam 1, with and without the three sentences whose greedy output is unfinished?
# **Paired bootstrap resampling** [@koehn2004] draws the sentences again and again, with replacement, and scores both systems on each draw.
# The interval holds the middle 95 % of the gains.

# %% tags=["hide-input"]
from course_lib.metrics import bleu_difference


def gain_of_4(rows):
    """In BLEU, of a beam of 4 over one of 1 on these sentences; and its interval."""
    sides = texts_of[4], texts_of[1], references
    gain = bleu_difference(*([side[row] for row in rows] for side in sides))
    return gain.value, gain.low, gain.high


gains = {f"all {num_pairs}": gain_of_4(range(num_pairs))}
gains[f"the {len(rows)} that all beams finish"] = gain_of_4(rows)
title = "Without three runaway outputs the interval contains 0"
xlabel = "gain in BLEU of beam 4 over beam 1, 95 % interval"
intervals(gains, xlabel=xlabel, title=title, reference=("no gain", 0))

# %% tags=["hide-input"]
over_all, over_rows = gains.values()
assert num_pairs - len(rows) == 3 and over_all[1] > 0 > over_rows[1]
assert 0.2 < 1 - over_rows[0] / over_all[0] < 0.5

# %% [markdown]
# Not very: about a third of the gain comes from three greedy outputs that run to the limit, and the rest may be chance.
#
# ### The length penalty
#
# With every beam, our outputs are shorter than their references (end of the beam table).
# To make up for the cost of each token, @wu2016 divide the log-probability by a number that grows with the length, the **length penalty**:
#
# score(Y) = log p(Y | X) / lp(Y), with lp(Y) = ((5 + |Y|) / 6)^α
#
# |Y| is the number of tokens, `</s>` included.
# (Dividing by |Y| would give the mean log-probability per token; the 5 softens this for short outputs.)
# α = 0 changes nothing; the larger α, the nearer to 0 comes the (negative) total of a long output.
# With α > 0 a score can rise as an output grows, so the safe stop no longer holds.
# The wide beam preferred *Er war klug.* (five tokens) to *Er war nicht klug.* (six). Which one wins with the paper's α = 0.6?


# %% tags=["nbval-check-output"]
def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


for text in ("Er war klug.", "Er war nicht klug."):
    each = token_log_probs(encode(denied), tokenizer.encode(text))
    total, divisor = sum(each), penalty(len(each), 0.6)
    print(f"{total:.2f} / {divisor:.2f} = {total / divisor:.2f}  {text}")

# %% [markdown]
# The longer, right one wins. Does BLEU gain, too?
#
# The penalty only ranks what has finished, so we rank again what the beam of 8 has found for the first 100 sentences:


# %% tags=["hide-input"]
def pick(tree, alpha):
    """Ids of the output with the best score; unfinished only where none finished."""
    ends = [i for i, node in enumerate(tree.nodes) if node.score is not None]
    ends = [i for i in ends if tree.nodes[i].fate == "finished"] or ends
    scores = [tree.nodes[i].total / penalty(tree.nodes[i].step, alpha) for i in ends]
    return output(tree, ends[scores.index(max(scores))])


# %% tags=["hide-input"]
for alpha in (0.0, 0.6, 2.0):
    again = decode_all(search_with(4, alpha), sources[:50])
    assert [each.ids for each in again] == [pick(tree, alpha) for tree in trees[4][:50]]

# %% tags=["hide-input"]
alphas, of_first = (0, 0.6, 1, 2, 3), references[:100]
on_first, lengths = [], []
print(f"{'α':>10}  tokens  BLEU")
for alpha in alphas:
    picked = [pick(tree, alpha) for tree in trees[8][:100]]
    lengths.append(mean(map(len, picked)))
    on_first.append(bleu([*map(tokenizer.decode, picked)], of_first).score)
    print(f"{alpha:10}{lengths[-1]:8.1f}{on_first[-1]:6.1f}")
in_references = mean(len(tokenizer.encode(text)) for text in of_first)
print(f"references{in_references:8.1f}")

# %% tags=["hide-input"]
assert lengths == sorted(lengths) and lengths[0] < in_references - 0.3
assert all(abs(score - on_first[0] - 1.8) < 0.5 for score in on_first[1:])
assert 0.05 < lengths[1] - lengths[0] < 0.35 < lengths[-1] - lengths[0] < 0.8

# %% tags=["hide-input"]
short, long = (
    token_log_probs(encode(denied), tokenizer.encode(text))
    for text in ("Er war klug.", "Er war nicht klug.")
)
assert (len(short), len(long)) == (5, 6) and sum(short) > sum(long)
assert sum(short) / penalty(5, 0.6) < sum(long) / penalty(6, 0.6)

# %% [markdown]
# Every positive α gains nearly 2 BLEU here, with outputs 0.2 to 0.6 tokens longer.
# BLEU's brevity penalty punishes short outputs, so this does not say that a larger share of what is written is right.
#
# ## Sampling: draw the next token
#
# The third answer does not search: we draw each token with the probability that the model gives it.
# So we get many different outputs: ten ways to say it, or a story.
#
# We write a thousand outputs for one sentence.
# What share of them will be *Das Hemd liegt dort.*, whose probability was 0.445?

# %%
many = encode(shirt).expand(1000, -1)
generator = torch.Generator(device).manual_seed(0)
drawn = sample(model, many, generator=generator, max_len=20)
(shirt_greedy,) = greedy(model, many[:1])
share = sum(each.ids == shirt_greedy.ids for each in drawn) / len(drawn)
print(f"drawn {share:.3f}, exp(log-probability) {math.exp(shirt_greedy.log_prob):.3f}")
counted = Counter(tokenizer.decode(each.ids) for each in drawn)
rare = [text for text, count in counted.items() if count == 1]
print(f"{len(rare)} outputs came once, among them:", *rare[:4], sep="\n  ")

# %% tags=["hide-input"]
assert (
    abs(share - math.exp(shirt_greedy.log_prob)) < 0.06
    and shirt_greedy.log_prob < -0.75
)
assert len(rare) > 200

# %% [markdown]
# About as large as its probability says.
# Each of the rare outputs is improbable, but there are very many of them.
# How much probability lies outside the five most probable tokens, in the *tail*, at each step of the greedy output?

# %%
tails = []
for t in range(len(shirt_greedy.ids) + 1):
    probs = next_log_probs(encode(shirt), shirt_greedy.ids[:t]).exp()
    tails.append(1 - probs.topk(5).values.sum().item())
print("outside the first five:", *(f"{tail:.2f}" for tail in tails))
ever = 1 - math.prod(1 - tail for tail in tails)
print(f"at least once in {len(tails)} steps: {ever:.2f}")

# %% tags=["hide-input"]
assert 0.06 < mean(tails) < 0.14 and 0.4 < ever < 0.55
with torch.no_grad():
    ids = [bos_id, *tokenizer.encode("Das Hemd liegt dort")]
    log_probs = finished_model(encode(shirt), torch.tensor([ids], device=device))[0, -1]
assert log_probs.argmax().item() == tokenizer.encode("dort.")[-1]
assert 0.1 < 1 - log_probs.softmax(dim=-1).topk(5).values.sum().item() < 0.12

# %% [markdown]
# On average, a step leaves only about a tenth to the tail.
# But the sentence has six steps, and one bad draw is enough: by this estimate nearly half of the outputs are hit.
#
# More training does not remove the tail: label smoothing (lesson [09](09_training.ipynb)) asks for about 10 % on all other tokens together.
#
# So we change the distribution before we draw. Three ways are common:
#
# - A *temperature* below 1 shrinks the tail. It divides the log-probabilities before the softmax, as it divided the scores in lesson [03](03_attention.ipynb). Dividing by 0.5 doubles each logarithm: it *squares* each probability, and the softmax makes the sum 1 again. After *Ich sang*, a token with 0.2 % ends below 0.001 %.
# - **Top-k sampling** cuts the tail off: it keeps the k most probable tokens.
# - **Top-p sampling** (or nucleus sampling) cuts, too: it keeps the fewest tokens that together reach the probability p [@holtzman2020].


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
# What do the three ways do to the two tokens after *Ich sang*?

# %%
ways = {
    "as it is": (lambda log_probs: log_probs, {}),
    "temperature 0.5": (lambda log_probs: log_probs / 0.5, {"temperature": 0.5}),
    "top-k 5": (lambda log_probs: keep_top_k(log_probs, 5), {"top_k": 5}),
    "top-p 0.8": (lambda log_probs: keep_top_p(log_probs, 0.8), {"top_p": 0.8}),
}

# %% tags=["hide-input"]
two, parts_of = unsure.topk(2).indices, {}
for name, (change, _) in ways.items():
    drei, vor = (100 * change(unsure).softmax(dim=-1)[two]).tolist()
    parts_of[name] = {
        "▁drei": drei,
        "▁vor": vor,
        "all others": max(0, 100 - drei - vor),
    }
stacked_bars(
    parts_of,
    xlabel="probability of the token after Ich sang (%)",
    title="A low temperature favors the wrong token, a cut keeps the ratio",
)

# %% tags=["hide-input"]
before, cool, *cuts = ([*parts.values()] for parts in parts_of.values())
assert abs(before[0] / before[1] - 2.7) < 0.1 and abs(cool[0] / cool[1] - 7) < 0.3
assert 0.002**2 / unsure.exp().square().sum() < 1e-5 and cool[2] < 0.2
for parts in cuts:
    assert math.isclose(parts[0] / parts[1], before[0] / before[1], rel_tol=1e-3)
    assert abs(parts[1] - 27) < 0.6
assert abs(cool[1] - 12.3) < 0.5
for each in places.values():
    assert (each / 0.1).softmax(dim=-1).max() > 0.99
    assert (each / 1000).softmax(dim=-1).max() < 1.1 / (len(each) - 2)

# %% [markdown]
# A low temperature helps whichever token is ahead, here the wrong one: the lead of `▁drei` grows from 2.7 : 1 to 7 : 1.
# The cuts keep the ratio.
# (Near temperature 0, sampling is greedy decoding; at a high one all tokens become equally probable.)
#
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
# The library's `sample` does the same for many rows at once.
# Right outputs among 300 draws:

# %%
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
assert max(of_sang[:2]) < 16 < min(of_sang[2:]) and min(of_sang) > 3
assert max(of_sang) < 30

# %% [markdown]
# - *Das Hemd liegt dort.*: the favorite is right at every step, so every change helps.
# - *Ich sang vor drei Tagen.*: at one step the favorite is wrong. At temperature 0.5 about a tenth of the outputs are right; with the cuts, which leave more to `▁vor`, about a fifth.
#
# The sliders show what follows *Das*. Move the temperature down and watch the last bar, the 1,986 others.

# %%
from course_lib.widgets import SamplingSliders

sliders = SamplingSliders(translator, shirt, place=1)
sliders

# %% tags=["hide-input"]
with written_for((shirt, 1), (sliders.text, sliders.place)):
    assert sliders.probs[0].item() == max(sliders.probs.tolist())

# %% [markdown]
# ### Is sampling good for translating?
#
# Greedy decoding reached about 70 BLEU on the 200 sentences.

# %%
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
assert 10 < right_of["drawn"] < 30 and 90 < right_of["greedy"]

# %% [markdown]
# The higher the temperature, the worse the translation (three draws a row); the coolest draws are about as good as greedy decoding.
# Cutting the tail wins back more than half of what temperature 1 loses.
# The finished translator has such a tail, too: greedy decoding gets nearly all of 100 sentences right, a draw from all tokens one in five.
#
# Many draws together can help: *minimum Bayes risk decoding* writes the one that is on average most like the others, whatever its own probability [@eikema2020].
#
# For open-ended text, such as a story, the opposite is reported: the most probable text repeats itself, and top-p sampling does better [@holtzman2020].
# Chat models usually combine top-p with a temperature.
#
# ## Which search for what?
#
# The three answers in five ways, on the same sentences (T: temperature).
# *Calls*: beginnings that the model is asked about, per sentence.
# *Different*: distinct outputs of 100 runs on *I sang three days ago.*

# %%
draw = partial(sample, generator=torch.Generator(device).manual_seed(0))
choices = {
    "greedy": (greedy, "speed"),
    "beam 4, α = 0": (search_with(4, 0.0), "a high probability"),
    "beam 4, α = 0.6": (search_with(4, 0.6), "translating (the paper)"),
    "drawn, T = 1": (draw, "seeing what the model thinks possible"),
    "top-p 0.8": (partial(draw, top_p=0.8), "variety, stories"),
}
compared, calls_of, seen = {}, {}, []  # seen: rows of logits, one for each beginning
hook = model.generator.register_forward_hook(lambda *call: seen.append(len(call[-1])))
for name, (search, _) in choices.items():
    seen.clear()
    compared[name] = decode_all(search, sources)
    calls_of[name] = sum(seen) / num_pairs
hook.remove()

# %% tags=["hide-input"]
variety = {}
print(f"{'BLEU':>21}{'calls':>8}{'different':>11}  use it for")
for name, (search, use) in choices.items():
    repeated = decode_all(search, [sang] * 100)
    variety[name] = len({tokenizer.decode(each.ids) for each in repeated})
    print(f"{name:16}{bleu_of(compared[name]):5.1f}{calls_of[name]:8.1f}", end="")
    print(f"{variety[name]:11}  {use}")

# %% tags=["hide-input"]
scores = {name: bleu_of(hypotheses) for name, hypotheses in compared.items()}
assert scores["drawn, T = 1"] + 8 < scores["top-p 0.8"] < scores["greedy"] - 5
best_two = scores["beam 4, α = 0"], scores["beam 4, α = 0.6"]
assert scores["greedy"] < min(best_two) and abs(best_two[1] - best_two[0] - 0.6) < 0.5
*searched, of_all, of_top_p = variety.values()
assert searched == [1, 1, 1] and 10 < of_top_p < of_all - 15
of_one, of_beam, of_penalized, *_ = calls_of.values()
by_length = mean(len(each.outputs(eos_id)) for each in compared["greedy"])
extended = sum(node.fate == "kept" for tree in trees[4] for node in tree.nodes)
assert math.isclose(of_one, by_length)
assert math.isclose(of_beam, extended / num_pairs, rel_tol=0.02)
assert math.isclose(of_beam, of_penalized, rel_tol=0.02)
assert 3.4 < of_beam / of_one < 4

# %% tags=["hide-input"]
texts_by = {
    name: [tokenizer.decode(each.ids) for each in hypotheses]
    for name, hypotheses in compared.items()
}
over_greedy = {
    name: bleu_difference(texts, texts_by["greedy"], references)
    for name, texts in texts_by.items()
}
assert min(over_greedy[name].low for name in choices if "beam" in name) > 0
assert max(over_greedy[name].high for name in ("drawn, T = 1", "top-p 0.8")) < 0

# %% [markdown]
# The beams score best, for nearly four times the calls.
# These draws cost BLEU and buy variety.
#
# ## The key-value cache
#
# Can a call cost less?
# Greedy decoding writes *Ich sang drei Tagen*. What does the decoder compute at the first four steps?
#
# | step | it reads | without a cache it computes | with a cache |
# |---|---|---|---|
# | 1 | `<s>` | `<s>` | `<s>` |
# | 2 | `<s>` Ich | `<s>` Ich | Ich |
# | 3 | `<s>` Ich sang | `<s>` Ich sang | sang |
# | 4 | `<s>` Ich sang drei | `<s>` Ich sang drei | drei |
# | all | | 10 positions | 4 positions |
#
# Without a cache, `<s>` is computed four times, with the same result each time: under the causal mask no position sees a later token, so its key and its value never change, in any layer.
# The **key-value cache** keeps them, and each step computes only those of its newest token.
#
# Why not the queries, too?
# A query is used once, by its own position. Only the newest token has something left to ask.
#
# Here it is by hand, for one attention.

# %%
of_mask = Predict(
    "Fed one new token at a time, "
    "does attention over the kept keys need a causal mask?",
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
# `model.new_cache` keeps the keys and values of every layer.
# It also keeps those of the memory, which are the same at all steps.
# We feed in a whole output token by token, with and without the cache (`write`).
# The logits agree:


# %% tags=["hide-input"]
@torch.no_grad()
def write(model, src, memory, ids, cached):
    """Feeds ids in one by one, as a search does; logits of all steps, and the cache."""
    logits, cache = [], model.new_cache() if cached else None
    for t in range(ids.shape[1]):
        new = ids[:, t : t + 1] if cached else ids[:, : t + 1]
        hidden = model.decode(new, memory, src, cache=cache)
        logits.append(model.generator(hidden[:, -1]))
    return torch.stack(logits, dim=1), cache  # (batch, tgt_len, vocab)


# %%
memory = precise.encode(src).detach()
uncached, _ = write(precise, src, memory, tgt_in, cached=False)
logits, cache = write(precise, src, memory, tgt_in, cached=True)
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
# The price is space for the cache (lesson [14](14_cost_and_memory.ipynb)).
#
# For 64 tokens, the decoder with the cache computes 64 positions in place of 2,080. Is it 32.5 times as fast? (We do not time the encoder.)

# %% tags=["hide-input"]
sentences, out_lengths = 4, [8, 16, 32, 64]
several = src.expand(sentences, -1)
encoded = model.encode(several).detach()  # once, so that only the decoder is timed
any_ids = torch.arange(4, 68, device=device).expand(sentences, -1)


def seconds(length, cached):
    started = time.perf_counter()
    write(model, several, encoded, any_ids[:, :length], cached)[0].sum().item()
    return time.perf_counter() - started


# %% tags=["hide-input"]
runs = {"without cache": [], "with cache": []}
seconds(8, True), seconds(8, False)  # the first run of all is slower
for _ in range(3):
    for name, run in runs.items():
        run.append([seconds(length, name == "with cache") for length in out_lengths])
slow, fast = (torch.tensor(run).min(dim=0).values for run in runs.values())  # the best
print(f"{'positions computed':>29}{'ms a step (4 sentences)':>34}")
print("tokens   without  cached    fewer   without  cached   faster")
for place, length in enumerate(out_lengths):
    positions = sum(range(length + 1))
    print(f"{length:6}{positions:10,}{length:8}{positions / length:7.1f} ×", end="")
    print(*(f"{1000 * run[place] / length:9.1f}" for run in (slow, fast)), end="")
    print(f"{slow[place] / fast[place]:7.1f} ×")

# %% tags=["hide-input"]
assert (length, positions) == (64, 2080) and positions / length == 32.5
if device == "cpu":  # on a GPU both are overhead
    assert slow[-1] - fast[-1] > max(0, slow[0] - fast[0]) and slow[-1] / fast[-1] < 20
    assert fast[-1] / 64 < 2 * fast[0] / 8 and slow[0] < 2 * fast[0]

# %% [markdown]
# No. With the cache, a step of this small model is nearly all fixed overhead: the average step of a 64-token output takes about as long as that of an 8-token one.
# A step without it pays this overhead, too; only the rest is saved, which grows with length.
# One cost still grows with the length: each step attends to all t keys; at 64 tokens it is small.
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
# The first row reads *sieht*, but its cache remembers *Die Katze*; the second has its own beginning.
# All shapes are right, so this does not crash.
#
# ## Two searches that are wrong
#
# Neither crashes, either.
#
# **A common mistake**: beam search that adds raw logits (`raw_logits`).
# If all logits of a step grow by 7, the probabilities stay the same, but the sum does not.
# And each further token with a positive logit makes an output look *better*.
#
# **A common mistake**: beam search that drops what has finished, with `finished = …` for the `finished += …` of `beam_by_hand` (`beam_that_drops`).
# Then only the outputs that finish in the last step are left.
#
# How would we notice?
# First check: does one parallel pass (*recomputed*) confirm the score?


# %% tags=["hide-input"]
def beam_that_drops(src, beam_size, max_len=30, scores=next_log_probs):
    live, finished = [(0.0, [])], []
    while len(finished) < beam_size and len(live[0][1]) < max_len:
        grown = []
        for total, ids in live:
            for score, token in zip(*scores(src, ids).topk(beam_size + 1), strict=True):
                grown.append((total + score.item(), [*ids, token.item()]))
        grown.sort(reverse=True)
        ended = [one for one in grown[:beam_size] if one[1][-1] == eos_id]
        finished = [(total, ids[:-1], True) for total, ids in ended]  # the mistake
        live = [one for one in grown if one[1][-1] != eos_id][:beam_size]
    outputs = finished or [(total, ids, False) for total, ids in live]
    return sorted(outputs, reverse=True)[:beam_size]


# %% tags=["hide-input"]
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

# %% [markdown]
# The outputs look like those of a weak model, and now and then a wrong search finds the right one.
#
# The check finds the raw logits, but the search that drops reports a true score.
# Second check: take the first twenty sentences without those that greedy decoding leaves unfinished.
# A beam's outputs should on average be no less probable.

# %% tags=["hide-input"]
rows = [row for row in range(20) if by_greedy[row].finished]
print(f"mean log-probability of {len(rows)} sentences:")
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
lower = {  # a beam may end lower than greedy decoding, for a few single sentences
    name: sum(
        each.log_prob < one.log_prob - 1e-3
        for each, one in zip(hypotheses, by_greedy, strict=True)
    )
    for name, hypotheses in found.items()
}
assert lower["beam 2"] >= 1 and lower["beam 8"] <= lower["beam 2"]

# %% [markdown]
# The search that drops fails this one.
#
# ## One output, many scores
#
# Free-running, *Ich sang drei Tagen.* has one word missing, and compared position by position, everything after it is wrong.
# So never compare free-running output place by place; BLEU does not.
#
# The greedy outputs have about 70 BLEU. But which BLEU? Five numbers for the same 200 sentences:

# %% tags=["hide-input"]
from course_lib.data import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
with torch.no_grad():
    forced = model(batch.src, batch.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = batch.tgt_out != pad_id

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
assert 69 < ours < 72 and ours + 1 < bleu(pretended, references).score < ours + 2
assert not any(sign in text for text in references for sign in '"„“-')
assert 1 <= no_credit <= 3 and mean(alone) < ours - 2
assert bleu(["Wer schläft?"], ["Wer schläft?"]).score == 0  # three tokens

# %% tags=["hide-input"]
own = sang_greedy.outputs(eos_id)
answer = [*tokenizer.encode(answers[sang]), eos_id]
assert own == answer[:2] + answer[3:]  # without ▁vor
assert not any(a == b for a, b in zip(own[2:], answer[2:], strict=False))

# %% tags=["hide-input"]
import re

words = "Adresse", "Anschrift"  # of the output, of the reference
whole = [f"Die E-Mail-{word} steht auf der Web-Seite." for word in words]
split = [re.sub(r"(\S)-(?=\S)", r"\1 ##AT##-##AT## ", text) for text in whole]
by_us, by_paper = (bleu(t[:1], t[1:], tokenize="none") for t in (whole, split))
assert by_us.signature == by_paper.signature and by_paper.score > by_us.score + 15

# %% [markdown]
# The first four score the same outputs.
#
# - *13a, none, char* differ in what they call a token: words and punctuation, whatever stands between spaces, or characters.
# - *Mean over sentences*: no signature says so. A short sentence weighs as much as a long one, and a perfect one of three tokens gets 0, because it has no 4-gram.
# - **A common mistake**: the *teacher-forced argmax*. No one can produce this output without the reference, which corrects it at every step (lesson [07](07_decoder.ipynb)). Here it gains only about 1.5 points, but it is not a translation.
#
# The paper's evaluation splits compounds at hyphens, which no signature records: do not set its 28.4 beside a sacreBLEU score [@post2018].
# With a score, report the signature and the search: beam size, α, maximum length.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **greedy decoding**: writing the most probable next token, again and again.
# - **beam search**: following beam_size beginnings (its hypotheses) at once, keeping at each step the most probable extensions.
# - **search error**: the search missed an output that the model prefers to the one written.
# - **model error**: the model prefers a wrong output.
# - **length penalty**: a divisor that grows with the length, so that short outputs lose their advantage.
# - **paired bootstrap resampling**: scoring two systems on the same redrawn sentences, to see how sure their difference is.
# - **top-k sampling**: drawing from the k most probable tokens.
# - **top-p sampling**: drawing from the fewest tokens that together reach the probability p.
# - **key-value cache**: the keys and values of earlier tokens, kept from step to step.

# %% [markdown]
# ## Summary
#
# | we write | what goes wrong | what helps |
# |---|---|---|
# | the most probable token each time | it never looks back: *Ich sang drei Tagen.* | a beam |
# | the most probable sentence | a gap can be cheap: *Er war klug.*, *Er darf?* | a length penalty, or a beam that misses it |
# | a draw | one bad token is enough | a low temperature, top-k, top-p |
#
# The examples are an early checkpoint's; the finished translator hardly changes with a better search.
# A better search can do worse: it finds what the model prefers, right or wrong. A wide beam finds nearly all of the most probable outputs that we could prove: what is left is the model's.
# A length penalty makes outputs longer; BLEU's brevity penalty alone can reward that.
# The key-value cache keeps what cannot change, so that each position is computed once, with the same logits.
# A BLEU score means something only if it is of free-running output, over the whole corpus, with its signature.
#
# **Practice**: [assignment 11](assignments/release/11_decoding/11_decoding.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [12](12_reading_attention.ipynb) looks into the translator while it writes.
