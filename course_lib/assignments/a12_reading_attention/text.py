# %% [markdown]
# # Assignment 12 · Reading attention
#
# You turn maps into numbers: error rates, the choice of a head, and the baseline that it has to beat.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [12](../../../12_reading_attention.ipynb).
# In all maps rows are target queries and columns are source keys.
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `weights.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import torch

from course_lib.assignments import check

# %% [markdown] exercise="12.error_rate" title="Sure links and possible links" minutes=10 points=2 difficulty=1
# In the course corpus all gold links are sure.
# People who link words by hand are not always: they mark some links as *sure* and others as *possible*.
# With $A$ for the predicted links, as in the lesson, $S$ for the sure ones, and $P$ for sure and possible ones together, the alignment error rate is (Och and Ney 2003)
#
# $$\text{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$
#
# So to predict a link that is only possible does no harm, and to miss it costs nothing.
#
# You get three tensors of `torch.bool`, (sentences, tgt_words, src_words) each: `predicted`, `sure`, and `possible`.
# As in the files of the annotators, each link is marked once: `possible` has those that are *only* possible.
# Return the error rate of all sentences together, as a float32 tensor without dimensions.
# Each sentence has at least one sure link.
#
# <details><summary>Hint</summary>
#
# `&` and `|` are intersection and union; `sum()` counts.
#
# </details>

# %% tags=["solution"]
def error_rate(predicted, sure, possible):
    """Alignment error rate of all sentences together."""
    ### BEGIN SOLUTION
    right = (predicted & sure).sum() + (predicted & (sure | possible)).sum()
    return 1 - right / (predicted.sum() + sure.sum())
    ### END SOLUTION


# %% tags=["check"]
check("12.error_rate", error_rate)

# %% [markdown] exercise="12.rows" title="Find the mistake" minutes=8 points=2 difficulty=1
# This code stands in popular tutorials, and its mistake in their plots.
# It should read pairs of tokens off a map of the cross-attention: for each row, its target token, and the source token with the largest weight.
#
# `weights` (rows, columns) is the map of one head.
# `src` has the source tokens, with `</s>` at the end.
# `tgt_in` has the tokens that the decoder reads, one for each row, `<s>` first.
# The sentence is over when the last of them has been read.
#
# Find the mistake, and repair it.
# The result is a list of pairs of tokens, one pair for each row.
#
# <details><summary>Hint</summary>
#
# What does the decoder write when it has read nothing but `<s>`?
#
# </details>

# %% tags=["planted"]
def row_links(weights, src, tgt_in):
    """For each row its target token, and the source token with the largest weight."""
    best = weights.argmax(dim=-1).tolist()
    return [(tgt_in[row], src[column]) for row, column in enumerate(best)]


# %% tags=["solution"]
def row_links(weights, src, tgt_in):
    """For each row its target token, and the source token with the largest weight."""
    best = weights.argmax(dim=-1).tolist()
    predicted = [*tgt_in[1:], "</s>"]
    return [(predicted[row], src[column]) for row, column in enumerate(best)]


# %% tags=["check"]
check("12.rows", row_links)

# %% [markdown] exercise="12.best_head" title="Choose here, report there" minutes=12 points=3 difficulty=2
# Which head aligns best, and how well?
# Whoever chooses a head and reports its score on the same sentences flatters it.
# So the first `num_choosing` sentences are for choosing, and all others for reporting.
#
# - `weights` (sentences, heads, tgt_words, src_words): row $t$ is the one that predicts word $t$.
# - `gold` (sentences, tgt_words): the source word to which each target word is linked, or −1 where there is no link.
#
# A head finds a link if its largest weight in that row is on the linked word.
# Its score on some sentences is the share of their links that it finds, all links counted together.
# Rows without a link do not count.
#
# Return two tensors without dimensions: the number of the head with the best score on the first part (int64), and the score of this head on the other part (float32).
# Of equally good heads take the first.
#
# <details><summary>Hint</summary>
#
# The largest weights are (sentences, heads, tgt_words).
# The gold links need a dimension more to be compared with them.
#
# </details>

# %% tags=["solution"]
def best_head(weights, gold, num_choosing):
    """The head that is best on the first sentences, and its share of links found on the others."""
    ### BEGIN SOLUTION
    hit = weights.argmax(dim=-1) == gold[:, None]  # (sentences, heads, tgt_words); never where gold is -1
    links = gold != -1
    first = hit[:num_choosing].sum(dim=(0, 2)) / links[:num_choosing].sum()  # (heads,)
    other = hit[num_choosing:].sum(dim=(0, 2)) / links[num_choosing:].sum()
    head = first.argmax()
    return head, other[head]
    ### END SOLUTION


# %% tags=["check"]
check("12.best_head", best_head)

# %% [markdown] exercise="12.em" title="A round of IBM model 1, in tensors" minutes=15 points=3 difficulty=3
# In folded cells the lesson learned the table t(German word | English word) with dictionaries.
# Here words are ids, and the table `t` is a tensor (src_vocab, tgt_vocab); each row sums to 1.
# `src` (pairs, src_len) and `tgt` (pairs, tgt_len) are the ids of sentence pairs that all have the same lengths, so there is no padding.
# (The lesson's `None`, for no word, would be an id in `src` like any other.)
# This is the specification of one round.

# %% tags=["specification"]
def slow_round(t, src, tgt):
    """A new table (src_vocab, tgt_vocab) from the old one."""
    counts = torch.zeros_like(t)
    for sources, words in zip(src.tolist(), tgt.tolist(), strict=True):
        for word in words:
            total = sum(t[source, word] for source in sources)
            for source in sources:
                counts[source, word] += t[source, word] / total
    return counts / counts.sum(dim=1, keepdim=True)


# %% [markdown]
# Write the same without a loop.
# Every source id occurs in some sentence; some ids stand twice in a sentence, and many pairs of words meet more than once.
#
# <details><summary>Hint</summary>
#
# `t[rows, columns]` with index tensors of the shapes (pairs, src_len, 1) and (pairs, 1, tgt_len) has the shape (pairs, src_len, tgt_len).
# To put the shares back, read in PyTorch's documentation what `index_put` does with positions that occur twice.
#
# </details>

# %% tags=["solution"]
def em_round(t, src, tgt):
    """A new table (src_vocab, tgt_vocab) from the old one."""
    ### BEGIN SOLUTION
    places = src[:, :, None], tgt[:, None, :]
    found = t[places]  # (pairs, src_len, tgt_len)
    shares = found / found.sum(dim=1, keepdim=True)
    counts = torch.zeros_like(t).index_put(places, shares, accumulate=True)
    return counts / counts.sum(dim=1, keepdim=True)
    ### END SOLUTION


# %% tags=["check"]
check("12.em", em_round)

# %% [markdown] exercise="12.predict" title="Predict, then check" minutes=6 points=2 difficulty=1
# Six numbers to predict on paper.
#
# 1. The decoder reads `<s>`, *Die*, *Katze*, *schläft* and *.*, in rows 0 to 4. Which row predicts *schläft*?
# 2. How large is the weight on `<s>` in row 0 of a map of the decoder's self-attention?
# 3. An English word is two subwords. A row gives them the weights 0.2 and 0.3. Which weight does this row give the word, as the lesson counts?
# 4. A German word is two subwords. The row of one gives some English word the weight 0.2, the row of the other 0.3. Which weight does the German word give it, as the lesson counts?
# 5. A head predicts 4 links, the gold has 4, all of them sure, and 2 are in both. How large is the alignment error rate?
# 6. A head predicts 3 links, all of them right. The gold has 5, all of them sure. How large is it now?

# %% tags=["planted"]
prediction = {
    "the row that predicts schläft": None,
    "the weight on <s>": None,
    "the weight on the word": None,
    "the weight of the word's row": None,
    "the error rate, two in common": None,
    "the error rate, two missing": None,
}

# %% tags=["solution"]
prediction = {
    "the row that predicts schläft": 2,
    "the weight on <s>": 1.0,
    "the weight on the word": 0.5,
    "the weight of the word's row": 0.25,
    "the error rate, two in common": 0.5,
    "the error rate, two missing": 0.25,
}

# %% tags=["check"]
check("12.predict", prediction)

# %% [markdown] exercise="12.explanation" title="In your own words" minutes=8 points=2 difficulty=2
# A colleague shows you the map of one head of the last layer's cross-attention.
# In the row that predicts *Der* the full stop has the weight 0.8, and the noun *man* next to none.
# "So the model chose *Der* because of the full stop, and it did not need the noun", says the colleague.
# Give two reasons why the map does not show that, and for each an experiment that could tell.
# Five or six sentences.

# %% [markdown] tags=["answer"]
# First, a weight is not what arrives: the full stop may be an attention sink with a short value, so that the head adds little to the row.
# We can measure the length of what it adds, or switch the head off: if *Der* stays as probable, the full stop was not the reason.
# Second, this is one head of many: another one may have looked at the article or the noun, and with this one off or its weights permuted, others may stand in.
# So we switch off all heads of the layer but this one, and look whether *Der* survives.
# Third, a position is not a word: the encoder may have carried the gender of *man* to the position of *The*, where another head reads it.
# We hide *man* behind `<unk>`, or patch in single vectors of the memory from a sentence with *woman*, and look whether *Der* turns into *Die*.
#
# === BEGIN MARK SCHEME ===
# 1 point for each reason with a fitting experiment, at most 2; half a point for a reason without one.
# Reasons: weight is not what is added (attention sink); other heads can stand in, or did it; the memory's positions hold more than their words.
# Experiments: length of weight times value; switching off heads, one or several; other weights, same output; hiding a word; patching memory vectors.
# === END MARK SCHEME ===
