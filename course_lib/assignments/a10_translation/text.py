# %% [markdown]
# # Assignment 10 · Translation: training and scoring
#
# You make the batches that training reads, and the numbers that say what the model has learned.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [10](../../../10_translation.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `logits.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
from collections import Counter

import torch

from course_lib.assignments import check

# %% [markdown] exercise="10.batches" title="Batches by a budget" minutes=12 points=3 difficulty=2
# A batch is padded to its longest sentence.
# So $n$ sentences of which the longest has $L$ tokens cost $n \cdot L$ tokens of memory, padding included.
# Divide sentences into batches that cost at most a budget; only a single sentence may cost more.
#
# You get `lengths`, a list with the number of tokens of each sentence (at least one sentence, at least one token), and the `budget`.
# Return a list of batches; each is a list of indices into `lengths`.
#
# - The sentences are taken in the order of their lengths, the shortest first; of equal length, the one with the lower index first.
# - A batch takes the next sentence if it then costs at most the budget; else a new batch begins.
# - A sentence that is longer than the budget is a batch alone. All sentences may be so long.
#
# For example, `batches([3, 5, 4, 3, 5], 10)` is `[[0, 3], [2, 1], [4]]`.
#
# <details><summary>Hint</summary>
#
# In this order, which sentence of a batch is its longest?
#
# </details>

# %% tags=["solution"]
def batches(lengths, budget):
    """Indices of the sentences of each batch."""
    ### BEGIN SOLUTION
    found = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # The newest sentence is the longest, because they come sorted.
        if found and (len(found[-1]) + 1) * lengths[index] <= budget:
            found[-1].append(index)
        else:
            found.append([index])
    return found
    ### END SOLUTION


# %% tags=["check"]
check("10.batches", batches)

# %% [markdown] exercise="10.accuracy" title="From two loops to masks" minutes=10 points=3 difficulty=2
# One parallel pass over a batch, teacher-forced, gives the `logits` (batch, tgt_len, vocab) of what follows each right beginning.
# `tgt_out` (batch, tgt_len) says what should follow, with padding at the end.
# Two shares can be read from that:
#
# 1. the share of tokens that are predicted right;
# 2. the share of sentences in which *every* token is predicted right.
#
# The first is the accuracy that training logs print.
# The second is worth more: where every prediction is right, greedy search reads these same beginnings, and writes the reference.
# So it is the exact match of free-running greedy search.
#
# This is the specification.

# %% tags=["specification"]
def slow_accuracy(logits, tgt_out, pad_id):
    """Share of right tokens, and share of sentences in which every token is right."""
    right, tokens, whole = 0, 0, 0
    for sentence in range(tgt_out.size(0)):
        every = True
        for position in range(tgt_out.size(1)):
            if tgt_out[sentence, position] != pad_id:
                guess = logits[sentence, position].argmax()
                hit = bool(guess == tgt_out[sentence, position])
                right, tokens, every = right + hit, tokens + 1, every and hit
        whole += every
    return torch.tensor(right / tokens), torch.tensor(whole / tgt_out.size(0))


# %% [markdown]
# Write the same without a loop.
# Return two float32 tensors without dimensions.
# `pad_id` may be any id; each sentence has at least one real token.
# What the logits say at padding must not count, neither for nor against the model.
#
# <details><summary>Hint</summary>
#
# A position does no harm to its sentence if it is right *or* padding.
#
# </details>

# %% tags=["solution"]
def accuracy(logits, tgt_out, pad_id):
    """Share of right tokens, and share of sentences in which every token is right."""
    ### BEGIN SOLUTION
    real = tgt_out != pad_id  # (batch, tgt_len)
    hit = logits.argmax(dim=-1) == tgt_out
    return (hit & real).sum() / real.sum(), (hit | ~real).all(dim=1).float().mean()
    ### END SOLUTION


# %% tags=["check"]
check("10.accuracy", accuracy)

# %% [markdown] exercise="10.clipped" title="Count n-grams, and clip" minutes=12 points=3 difficulty=2
# BLEU counts the n-grams of an output, its sequences of $n$ words, that stand in a reference.
# Counted like that, *the the the the* would be a fine translation of nearly everything.
# So the counts are **clipped**: an n-gram counts at most as often as the reference has it.
# Where there are several references, at most as often as the one that has it *most* often; the references are not added up.
#
# You get the words of the `output` (a list), the `references` (a list of at least one such list), and $n$.
# Return two whole numbers: the clipped matches, and how many n-grams the output has.
# An output with fewer than $n$ words has none: return 0 and 0.
#
# For example, *the the the the* has 4 single words, and 2 of them match *the cat sees the dog*.
#
# <details><summary>Hint</summary>
#
# A `Counter` of tuples counts n-grams, and answers 0 for those that it has not seen.
#
# </details>

# %% tags=["solution"]
def clipped(output, references, n):
    """Clipped matches, and the number of n-grams of the output."""
    ### BEGIN SOLUTION
    def ngrams(words):
        return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))

    mine, tables = ngrams(output), [ngrams(reference) for reference in references]
    matches = sum(min(count, max(table[ngram] for table in tables)) for ngram, count in mine.items())
    return matches, sum(mine.values())
    ### END SOLUTION


# %% tags=["check"]
check("10.clipped", clipped)

# %% [markdown] exercise="10.bleu" title="Find the mistake" minutes=10 points=2 difficulty=2
# With $p_n$ for the share of n-grams that match, clipped, and $c$ and $r$ for the numbers of words in output and reference,
#
# $$\text{BLEU} = 100 \cdot \text{BP} \cdot \exp\Big(\frac{1}{4} \sum_{n=1}^{4} \ln p_n\Big), \qquad \text{BP} = \exp(\min(0,\ 1 - r / c))$$
#
# BP is the brevity penalty: an output that is too short must not win by leaving out what is difficult.
#
# The code below stands in popular tutorials.
# It gets the counts of each sentence: `matches` and `totals` (sentences, 4), `output_lengths` and `reference_lengths` (sentences,).
# It should return the BLEU score of the corpus, as a float32 tensor without dimensions.
# But sacreBLEU, without smoothing, gives another number for nearly every corpus of more than one sentence.
# Find the mistake, and repair it.
#
# In the tests every corpus has at least one output of four words or more; others may be shorter.
# There is no smoothing: if no four words in a row match anywhere, the score is 0.
#
# <details><summary>Hint</summary>
#
# How many brevity penalties are there in the definition, and how many in the code?
#
# </details>

# %% tags=["planted"]
def bleu(matches, totals, output_lengths, reference_lengths):
    """BLEU of a corpus, 0 to 100."""
    precisions = matches / totals.clamp(min=1)
    brevity = (1 - reference_lengths / output_lengths).clamp(max=0).exp()
    scores = 100 * brevity * precisions.log().mean(dim=-1).exp()
    return scores.mean()


# %% tags=["solution"]
def bleu(matches, totals, output_lengths, reference_lengths):
    """BLEU of a corpus, 0 to 100."""
    precisions = matches.sum(dim=0) / totals.sum(dim=0)  # (4,)
    brevity = (1 - reference_lengths.sum() / output_lengths.sum()).clamp(max=0).exp()
    return 100 * brevity * precisions.log().mean(dim=-1).exp()


# %% tags=["check"]
check("10.bleu", bleu)

# %% [markdown] exercise="10.predict" title="Predict, then check" minutes=8 points=2 difficulty=1
# Six numbers to predict on paper.
#
# 1. The output is *the cat the cat*, the reference *the cat sleeps*: which share of the output's single words is found, clipped?
# 2. The outputs of a corpus have 100 words, their references 90. How large is the brevity penalty BP?
# 3. Half of all single words match, but no four words in a row anywhere. How large is BLEU, without smoothing?
# 4. Sentences of 3, 4 and 5 tokens are one batch. Which share of its positions is padding?
# 5. Every sentence has two tokens, `</s>` included. Each token is predicted right with probability 0.9, independently of the other. Which share of sentences is right?
# 6. A corpus has two outputs: one of 4 words, all of which match, and one of 12 words, none of which does. How large is the precision $p_1$ of the corpus?

# %% tags=["planted"]
prediction = {
    "the share of words found": None,
    "the brevity penalty": None,
    "the BLEU score": None,
    "the share of padding": None,
    "the share of sentences": None,
    "the precision of the corpus": None,
}

# %% tags=["solution"]
prediction = {
    "the share of words found": 0.5,
    "the brevity penalty": 1.0,
    "the BLEU score": 0.0,
    "the share of padding": 0.2,
    "the share of sentences": 0.81,
    "the precision of the corpus": 0.25,
}

# %% tags=["check"]
check("10.predict", prediction)

# %% [markdown] exercise="10.report" title="In your own words" minutes=8 points=2 difficulty=2
# One report says "our model reaches 31.4 BLEU on Multi30k", another one "ours reaches 29.8".
# That does not tell which translator is better.
# Name four things that must stand beside such a score, or be the same for both, and say for one of them how it moves the number though the translations stay as they are.
# Four or five sentences.

# %% [markdown] tags=["answer"]
# The signature of the score must be there: how the text was cut into tokens, whether case counted, how many references there were, which smoothing was used, which version computed it.
# The same part of the same corpus must have been translated, and no sentence of it may stand in what the model learned from.
# The output must be free-running and scored over the whole corpus, not teacher-forced and not as a mean over sentences.
# The search belongs to it: greedy or beam, of which size, with which length penalty.
# And one run of each is little: another seed may give another score.
# Without case, *hund* and *Hund* match, so the same output gets more matches and a higher number.
#
# === BEGIN MARK SCHEME ===
# 1 point for four of these, half a point for two or three: tokens, case, references, smoothing (or "the signature", which counts as two), test part and its separation from the training, free-running, corpus instead of mean over sentences, the search, the number of runs or the seeds.
# 1 point: one of them with the direction or the way in which it moves the score of unchanged translations (case, tokens, more references, mean over sentences).
# === END MARK SCHEME ===
