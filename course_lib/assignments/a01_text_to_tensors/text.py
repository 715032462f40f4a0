# %% [markdown]
# # Assignment 01 · Text to tensors
#
# You take the lesson's steps once more, each from another side: merging and encoding text, preparing a batch, and the way back from vectors to the table.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [01](../../../01_text_to_tensors.ipynb).
# Names and shapes are the lesson's: `ids` is (batch, length), `<pad>` is 0, `<s>` is 1, `</s>` is 2, and `▁` stands for a space.
#
# Tensors in the tests may be on any device.
# Make new ones where the given ones are: `ids.new_zeros(...)`, `torch.arange(..., device=ids.device)`.

# %%
import math

import torch

from course_lib.assignments import check

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2

# %% [markdown] exercise="01.merge" title="Find the mistake" minutes=10 points=2 difficulty=1
# Popular code for byte-pair encoding takes a short cut: it joins the symbols with spaces, and lets `str.replace` do the work.
# On many words it is right.
# Find the mistake, and repair it; you need not keep the short cut.
#
# The function gets a list of at least one symbol, and a pair of symbols.
# It returns a new list, in which each occurrence of the pair is one symbol.
# Occurrences are taken from left to right: with the pair `a a`, the symbols `a a a` become `aa a`.
# A symbol is any text without white space: `▁the` and `.` are symbols, too.
#
# <details><summary>Hint</summary>
#
# Does the pair ("s", "he") stand in ["▁s", "he"]? Ask the function.
#
# </details>

# %% tags=["planted"]
def merge(symbols, pair):
    """The symbols with each occurrence of the pair made one, from left to right."""
    text = " ".join(symbols)
    return text.replace(" ".join(pair), "".join(pair)).split(" ")


# %% tags=["solution"]
def merge(symbols, pair):
    """The symbols with each occurrence of the pair made one, from left to right."""
    merged, place = [], 0
    while place < len(symbols):
        found = tuple(symbols[place : place + 2]) == pair
        merged.append("".join(pair) if found else symbols[place])
        place += 2 if found else 1
    return merged


# %% tags=["check"]
check("01.merge", merge)

# %% [markdown] exercise="01.encode" title="Only the merges that a word needs" minutes=12 points=3 difficulty=3
# To encode a word, the lesson's `tokenize` tries every merge in turn.
# The paper has about 37,000 subwords: almost as many tries for a word of six letters, and nearly all of them in vain.
#
# There is a shorter way.
# Of the pairs that stand side by side in the word, take the one that was *learned first*, and merge it, wherever it stands.
# Look again, because the new symbol has new neighbors.
# Stop when no pair in the word is known.
#
# Write that.
# `word` is a text of at least one character, such as `▁sleeps`.
# `rank` is a dict from pairs to numbers, in any order: `{("T", "he"): 1, ("h", "e"): 0, ...}`, where 0 was learned first.
# Return the list of subwords.
# A word without any known pair stays a list of its characters.
# In the tests no two merges make the same subword, so both ways lead to the same list, and the check cannot tell which of them you took.
#
# You may call your `merge`, once it is right.
#
# <details><summary>Hint</summary>
#
# `min` takes a `key`: by what should it compare two pairs?
#
# </details>

# %% tags=["solution"]
def encode(word, rank):
    """A word to its list of subwords; rank has the number of each known pair."""
    ### BEGIN SOLUTION
    symbols = list(word)
    while True:
        pairs = zip(symbols, symbols[1:], strict=False)
        known = [pair for pair in pairs if pair in rank]
        if not known:
            return symbols
        symbols = merge(symbols, min(known, key=rank.get))
    ### END SOLUTION


# %% tags=["check"]
check("01.encode", encode)

# %% [markdown] exercise="01.targets" title="From rows to tensors" minutes=12 points=3 difficulty=2
# A decoder reads `tgt_in`, which starts with `<s>`, and must predict `tgt_out`, which ends with `</s>`.
# The padded targets are given, without `<s>` and `</s>`; `tgt_in` and `tgt_out` are not, and both are to be made.
# This is the specification.
# It is right, and slow: it takes each row apart.

# %% tags=["specification"]
def slow_targets(ids):
    """Padded targets (batch, length) to tgt_in and tgt_out, (batch, length + 1) each."""
    tgt_in, tgt_out = [], []
    for row in ids.tolist():
        tokens = [token for token in row if token != PAD_ID]
        padding = [PAD_ID] * (len(row) - len(tokens))
        tgt_in.append([BOS_ID, *tokens, *padding])
        tgt_out.append([*tokens, EOS_ID, *padding])
    return torch.tensor(tgt_in), torch.tensor(tgt_out)


print(*slow_targets(torch.tensor([[7, 8, 9], [5, 0, 0]])), sep="\n")

# %% [markdown]
# Write the same without a loop.
# Padding stands only behind the last token of a row, each row has at least one token, and at least one row has no padding.
#
# <details><summary>Hint</summary>
#
# How many tokens does each row have? That is also the number of the place where something new belongs. Compare it with the numbers of all places.
#
# </details>

# %% tags=["solution"]
def targets(ids):
    """Padded targets (batch, length) to tgt_in and tgt_out, (batch, length + 1) each."""
    ### BEGIN SOLUTION
    tokens = (ids != PAD_ID).sum(dim=1, keepdim=True)  # (batch, 1)
    places = torch.arange(ids.size(1) + 1, device=ids.device)  # (length + 1,)
    longer = torch.nn.functional.pad(ids, (0, 1), value=PAD_ID)  # (batch, length + 1)
    tgt_in = torch.nn.functional.pad(ids, (1, 0), value=BOS_ID)
    return tgt_in, torch.where(places == tokens, EOS_ID, longer)
    ### END SOLUTION


# %% tags=["check"]
check("01.targets", targets)

# %% [markdown] exercise="01.gradient" title="What a row of the table learns" minutes=12 points=3 difficulty=3
# The vectors of a batch are rows of the table, times √d_model: `table[ids] * math.sqrt(d_model)`.
# In the backward pass a gradient comes back for each of these vectors: `upstream`, (batch, length, d_model).
# What is the gradient of the table, (vocab_size, d_model)?
# One token at a time, that is:

# %% tags=["specification"]
def slow_gradient(ids, upstream, vocab_size):
    """Gradient of the table (vocab_size, d_model), from that of the vectors."""
    d_model = upstream.size(-1)
    gradient = upstream.new_zeros(vocab_size, d_model)
    for sentence in range(ids.size(0)):
        for place in range(ids.size(1)):
            token = int(ids[sentence, place])
            gradient[token] += math.sqrt(d_model) * upstream[sentence, place]
    return gradient


# %% [markdown]
# Write it without a loop, and without autograd.
# `<pad>` is a token like any other here.
# The result has the dtype of `upstream`, which is float32 or float64.
#
# <details><summary>Hint</summary>
#
# In the lesson, the look-up is also a product with one-hot rows. What is the gradient of such a product with respect to the table?
# Or: which operation of PyTorch <em>adds</em> rows at given indices, even if an index comes twice?
#
# </details>

# %% tags=["solution"]
def gradient(ids, upstream, vocab_size):
    """Gradient of the table (vocab_size, d_model), from that of the vectors."""
    ### BEGIN SOLUTION
    d_model = upstream.size(-1)
    table = upstream.new_zeros(vocab_size, d_model)
    rows = upstream.flatten(0, 1) * math.sqrt(d_model)  # (batch * length, d_model)
    return table.index_add(0, ids.flatten(), rows)
    ### END SOLUTION


# %% tags=["check"]
check("01.gradient", gradient)

# %% [markdown] exercise="01.sizes" title="Predict, then check" minutes=8 points=2 difficulty=1
# Five numbers.
# Predict them on paper; write shares as numbers between 0 and 1, exactly or with four decimals.
#
# 1. Four sentences have 3, 5, 5 and 9 tokens. Each gets a `</s>`, and all are padded into one batch. What share of the batch is padding?
# 2. The same four in two batches, the two shortest together and the two longest. What share of both batches together is padding?
# 3. A text has 30 different characters, `▁` among them. The lesson's `learn_bpe` makes 100 merges, and each makes a new subword. What is the size of the vocabulary?
# 4. A text is the one word `▁aaaaa`. The lesson's `count_pairs` counts `a a` four times. How many symbols shorter is the text after `a a` has been merged?
# 5. d_model is 64. How many times as large is the mean square of a token's vector after the factor √d_model?

# %% tags=["planted"]
prediction = {
    "share of padding, one batch": None,
    "share of padding, two batches": None,
    "size of the vocabulary": None,
    "symbols saved in ▁aaaaa": None,
    "mean square, times": None,
}

# %% tags=["solution"]
prediction = {
    "share of padding, one batch": 14 / 40,
    "share of padding, two batches": 6 / 32,
    "size of the vocabulary": 134,
    "symbols saved in ▁aaaaa": 2,
    "mean square, times": 64,
}

# %% tags=["check"]
check("01.sizes", prediction)

# %% [markdown] exercise="01.leak" title="In your own words" minutes=6 points=3 difficulty=2
# A colleague learns the subwords from the training, validation and test sentences together.
# "There are no translations in a vocabulary", she says, "so it cannot give the test away. And the test has fewer strange pieces this way."
# What does she gain, what does she lose, and what would you do? Three or four sentences.

# %% [markdown] tags=["answer"]
# The test sentences come out shorter, because the merges are cut to fit them.
# So the test no longer shows how the translator does on text that nobody has seen, and its score is better than what a user will get.
# Subwords of the test alone have a row in the table, but no training sentence shows their meaning: the model gains nothing.
# I learn the vocabulary from the training part alone, and read the test with it as it is.
#
# === BEGIN MARK SCHEME ===
# 1 point: a vocabulary shaped by the test is no longer tried on unseen text, so the score flatters (shorter sentences, or unknown words hidden).
# 1 point: training does not show what leaked subwords mean, so the model gains nothing.
# 1 point: learn the vocabulary from the training part alone, and read the test with it as it is.
# === END MARK SCHEME ===
