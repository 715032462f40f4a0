# %% [markdown]
# # Assignment 11 · How to decode
#
# You write three pieces of decoding for a whole batch, one of them without all logits in memory, and repair a search.
# No model is needed for that: you get logits, or a small table in a model's place.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [11](../../../11_decoding.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `logits.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="11.stream" title="A vocabulary in pieces" minutes=12 points=3 difficulty=2
# With a vocabulary of 256,000 tokens and 64 sentences, the logits of one step take 66 MB in float32, and their softmax as much again.
# For greedy decoding neither has to exist as a whole: the logits can come in blocks of the vocabulary.
#
# A `for` loop over `blocks` gets each block once: (batch, size), the last one perhaps narrower.
# All of them use the same memory: **a block is overwritten when the next one comes.**
# This is the specification, which keeps every logit.

# %% tags=["specification"]
def slow_stream(blocks):
    """Ids (batch,) of the most probable tokens, and their log-probabilities (batch,)."""
    rows = {}
    for logits in blocks:
        for sentence, row in enumerate(logits):
            for logit in row:
                rows.setdefault(sentence, []).append(logit.clone())
    whole = torch.stack([torch.stack(row) for row in rows.values()])  # (batch, vocab)
    shifted = whole - whole.amax(dim=-1, keepdim=True)
    return whole.argmax(dim=-1), -shifted.exp().sum(dim=-1).log()


# %% [markdown]
# Write it with one loop over the blocks, keeping a few numbers for each sentence and no block.
# No finished softmax or logsumexp; `exp` and `log` are what it takes.
# Logits lie between −1,000 and 1,000, or are $-\infty$, but never all of a sentence in one block.
#
# <details><summary>Hint</summary>
#
# Subtract the largest logit *so far* before each `exp`.
# When a larger one comes, the sum so far was made with the old one: by which factor is it too large now?
#
# </details>

# %% tags=["solution"]
def stream(blocks):
    """Ids (batch,) of the most probable tokens, and their log-probabilities (batch,)."""
    ### BEGIN SOLUTION
    ids, largest, total, start = 0, -math.inf, 0.0, 0
    for logits in blocks:  # (batch, size)
        value, place = logits.max(dim=-1)
        ids = torch.where(value > largest, start + place, ids)
        newest = value.clamp(min=largest)  # the largest so far
        total = total * (largest - newest).exp() + (logits - newest[:, None]).exp().sum(dim=-1)
        largest, start = newest, start + logits.size(1)
    return ids, -total.log()
    ### END SOLUTION


# %% tags=["check"]
check("11.stream", stream)

# %% [markdown] exercise="11.top_p" title="Top-p without a loop" minutes=12 points=3 difficulty=3
# Top-p keeps the fewest tokens that together reach the probability $p$.
# So the token that crosses $p$ is kept, and there is always at least one.
# The lesson did it for one row.
#
# Write it for `logits` (batch, vocab), without a loop.
# Return logits of the same shape: what is kept keeps its logit, everything else gets $-\infty$.
# A logit may already be $-\infty$; $0 < p < 1$.
# No two tokens of a row are equally probable, except those with probability 0.
#
# <details><summary>Hint</summary>
#
# Sort, and add up with `cumsum`: how much had been reached *before* each token?
# Then the decision must go back to where the token stands in the vocabulary; `gather` or `scatter` takes it there.
#
# </details>

# %% tags=["solution"]
def keep_top_p(logits, p):
    """The same logits, with −∞ for all that top-p cuts."""
    ### BEGIN SOLUTION
    probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    late = probs.cumsum(dim=-1) - probs >= p  # p was reached before this token
    return logits.masked_fill(late.gather(-1, order.argsort(dim=-1)), -math.inf)
    ### END SOLUTION


# %% tags=["check"]
check("11.top_p", keep_top_p)

# %% [markdown] exercise="11.step" title="One step of a beam" minutes=12 points=3 difficulty=3
# A beam search has `beam_size` hypotheses for each sentence.
# `totals` (batch, beam_size) are their log-probabilities so far.
# `logits` (batch, beam_size, vocab) is what the model's last layer says about the next token of each.
#
# All continuations of a sentence's hypotheses (the lesson's candidates) compete, and the `beam_size` most probable are kept.
# Return three tensors (batch, beam_size), the best continuation first:
#
# 1. their log-probabilities;
# 2. which hypothesis each continues, counted from 0;
# 3. with which token.
#
# The vocabulary is larger than the beam.
#
# <details><summary>Hint</summary>
#
# `topk` over the flat (batch, beam_size · vocab) gives one number for each winner.
# Hypothesis and token can be computed from it.
#
# </details>

# %% tags=["solution"]
def beam_step(totals, logits):
    """Log-probabilities, origins and tokens of the best continuations, (batch, beam_size) each."""
    ### BEGIN SOLUTION
    beam_size, vocab = logits.shape[1:]
    grown = totals[:, :, None] + logits.log_softmax(dim=-1)  # (batch, beam_size, vocab)
    best = grown.flatten(1).topk(beam_size, dim=1)
    return best.values, best.indices // vocab, best.indices % vocab
    ### END SOLUTION


# %% tags=["check"]
check("11.step", beam_step)

# %% [markdown] exercise="11.finished" title="Find the mistake" minutes=12 points=2 difficulty=2
# Searches like this one stand in popular code.
# It raises no error, and its outputs look like those of a weak model.
#
# `model` is a dictionary: `model["Ich"]` maps each word that may follow *Ich*, sometimes `</s>` too, to its log-probability.
# The search should do this:
#
# - Each step extends all live hypotheses by all words. Among the `beam_size` best continuations, those that end in `</s>` have finished. Of all that do not end in `</s>`, the `beam_size` best live on.
# - It stops when `beam_size` outputs have finished, in whichever steps, and at the latest after `max_len` words, `</s>` included.
# - All finished outputs compete by their scores, the log-probability divided by $((5 + n) / 6)^\alpha$ for $n$ words, where $n$ counts `</s>`.
#
# It returns the words of the best one, without `<s>` and `</s>`, and its score; or `[]` and $-\infty$ if none has finished.
# Find the mistake, and repair it.
#
# <details><summary>Hint</summary>
#
# Follow an output that finishes in the second step. Where is it in the third?
#
# </details>

# %% tags=["planted"]
def beam_search(model, beam_size, alpha, max_len):
    """The words of the best finished output, and its score."""
    live = [(0.0, ["<s>"])]
    for _ in range(max_len):
        grown = []
        for total, words in live:
            for word, log_prob in model[words[-1]].items():
                grown.append((total + log_prob, [*words, word]))
        grown.sort(reverse=True)
        finished = [one for one in grown[:beam_size] if one[1][-1] == "</s>"]
        live = [one for one in grown if one[1][-1] != "</s>"][:beam_size]
        if len(finished) >= beam_size:
            break
    best, best_score = [], -math.inf
    for total, words in finished:
        score = total / ((5 + len(words[1:])) / 6) ** alpha
        if score > best_score:
            best, best_score = words[1:-1], score
    return best, best_score


# %% tags=["solution"]
def beam_search(model, beam_size, alpha, max_len):
    """The words of the best finished output, and its score."""
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
    best, best_score = [], -math.inf
    for total, words in finished:
        score = total / ((5 + len(words[1:])) / 6) ** alpha
        if score > best_score:
            best, best_score = words[1:-1], score
    return best, best_score


# %% tags=["check"]
check("11.finished", beam_search)

# %% [markdown] exercise="11.predict" title="Predict, then check" minutes=8 points=2 difficulty=2
# Six numbers to predict on paper.
#
# 1. Two tokens have the probabilities 0.75 and 0.25. Which probability has the first one at temperature 1/2?
# 2. Four tokens have the probabilities 0.6, 0.2, 0.15 and 0.05. With which probability is the first one drawn after top-k with $k = 2$?
# 3. Four tokens have the probabilities 0.5, 0.25, 0.15 and 0.1. How many does top-p with $p = 0.8$ keep?
# 4. A model adds 7 to all its logits, in each of the five steps of an output. By how much does the log-probability of the output change?
# 5. Two outputs have finished: one of 1 token with the log-probability −3, one of 7 tokens with −4, `</s>` counted. How many tokens has the winner at $\alpha = 0$?
# 6. And at $\alpha = 1$?

# %% tags=["planted"]
prediction = {
    "the probability after the temperature": None,
    "the probability after top-k": None,
    "the tokens that top-p keeps": None,
    "the change of the log-probability": None,
    "the tokens of the winner, alpha 0": None,
    "the tokens of the winner, alpha 1": None,
}

# %% tags=["solution"]
prediction = {
    "the probability after the temperature": 0.9,
    "the probability after top-k": 0.75,
    "the tokens that top-p keeps": 3,
    "the change of the log-probability": 0.0,
    "the tokens of the winner, alpha 0": 1,
    "the tokens of the winner, alpha 1": 7,
}

# %% tags=["check"]
check("11.predict", prediction)

# %% [markdown] exercise="11.wider" title="In your own words" minutes=8 points=2 difficulty=2
# A translator has 24 BLEU with a beam of 4 and $\alpha = 0$.
# Somebody widens the beam to 32, and gets 19 BLEU.
# "So the wide beam has a bug", they say.
# Which measurement tells whether the search has a bug, or the model is to blame?
# What would you expect to see in the outputs if it is the model, why, and what is the remedy? Four or five sentences.

# %% [markdown] tags=["answer"]
# Compare the log-probabilities of the outputs, computed again in one parallel pass over each: if the wide beam finds outputs that are on the whole more probable, it does what a search is for.
# Then the errors are the model's: it prefers outputs that are worse.
# They are probably shorter, some of them empty, because each further token adds a negative number to the log-probability.
# The remedy is a length penalty with an alpha above 0, or a narrower beam, chosen on validation data and never on the test set.
# If the wide beam's outputs were on the whole less probable, we would look for a bug: raw logits, dropped outputs, a cache that was not reordered.
#
# === BEGIN MARK SCHEME ===
# 1 point: compares the log-probability of the outputs of both beams; more probable means no search error but a model error.
# 1 point: shorter (or empty) outputs because every token costs, and a length penalty or a beam size chosen on validation data.
# Half of a point for half of it.
# === END MARK SCHEME ===
