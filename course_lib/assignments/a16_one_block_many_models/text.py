# %% [markdown]
# # Assignment 16 · One block, many models
#
# The blocks of a Transformer stay as they are; you write what stands around them in BERT, in a chat model, and in a model that makes pictures.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [16](../../../16_one_block_many_models.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `ids.new_zeros(...)` or `torch.arange(..., device=ids.device)`.

# %%
import torch

from course_lib.assignments import check

pad_id = 0

# %% [markdown] exercise="16.numbers" title="Predict, then check" minutes=9 points=2 difficulty=1
# Seven numbers to predict on paper.
#
# 1. A picture has 32 × 24 pixels in three colors, and patches have 8 × 8 pixels. How many tokens does a vision transformer read, with its class token?
# 2. How many numbers of a patch does the layer that embeds it get?
# 3. BERT's task is made from a text of 1,000 words, none of them special. In how many places, on average, does the model not read the word that the text has? (That the random word happens to be the right one is too rare to count.)
# 4. And in how many places, on average, does the loss ask for a word?
# 5. A language model gives the three tokens of one text the probabilities 1/2, 1/2 and 1/2, and the only token of another text 1/32. How many bits per token is that, over both texts?
# 6. A decoder-only model reads 4 tokens of a prompt and 3 tokens of its answer with the causal mask. How many of the 49 pairs of a query and a key are allowed?
# 7. And how many are allowed if all tokens of the prompt may see the whole prompt, while the answer stays causal?

# %% tags=["planted"]
prediction = {
    "tokens of the picture": None,
    "numbers of a patch": None,
    "places with another word": None,
    "places that are asked for": None,
    "bits per token": None,
    "pairs of the causal mask": None,
    "pairs with an open prompt": None,
}

# %% tags=["solution"]
prediction = {
    "tokens of the picture": 13,
    "numbers of a patch": 192,
    "places with another word": 135,
    "places that are asked for": 150,
    "bits per token": 2.0,
    "pairs of the causal mask": 28,
    "pairs with an open prompt": 34,
}

# %% tags=["check"]
check("16.numbers", prediction)

# %% [markdown] exercise="16.blanks" title="Find the mistakes" minutes=10 points=3 difficulty=2
# This function makes the inputs and targets of BERT's task.
# Its dice have been thrown before: `chance` and `fate` are random numbers from 0 to 1, `other` are random words, all of the shape of `ids` (batch, length).
#
# - A place is asked for where `chance` is below 0.15, and no special token stands there. `specials` has the ids of all special tokens, among them that of the blank.
# - In a place that is asked for, the model reads `mask_id` where `fate` is below 0.8, the word of `other` where it is from 0.8 up to below 0.9, and else the word itself.
# - `targets` has the word that stood there wherever a place is asked for, and −100 elsewhere.
#
# There are *two* mistakes in it.
# With both of them a model still trains, and the loss looks even better.
# Find both, and repair them.
#
# <details><summary>Hint</summary>
#
# One kind of place is asked for by the rules and never by this function.
# And what does a row of padding look like afterwards?
#
# </details>

# %% tags=["planted"]
def make_blanks(ids, chance, fate, other, specials, mask_id):
    """What the model reads, and its targets; (batch, length) each."""
    asked = chance < 0.15
    changed = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, other, ids))
    reads = torch.where(asked, changed, ids)
    targets = torch.where(reads != ids, ids, -100)
    return reads, targets


# %% tags=["solution"]
def make_blanks(ids, chance, fate, other, specials, mask_id):
    """What the model reads, and its targets; (batch, length) each."""
    asked = (chance < 0.15) & ~torch.isin(ids, specials)
    changed = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, other, ids))
    reads = torch.where(asked, changed, ids)
    targets = torch.where(asked, ids, -100)
    return reads, targets


# %% tags=["check"]
check("16.blanks", make_blanks)

# %% [markdown] exercise="16.answers" title="Only the answer counts" minutes=12 points=3 difficulty=2
# A chat model is a decoder-only model whose training went on with pairs of a prompt and an answer.
# Both stand in one row, and the model reads both.
# The loss is taken at the answer alone, as nobody wants a model that writes prompts.
#
# `logits` is (batch, length, vocab): row t has the logits of token t + 1.
# `ids` is (batch, length), with `pad_id` behind the shorter rows, and `prompt_lens` (batch,) has the length of the prompt that begins each row.
# This is the specification.

# %% tags=["specification"]
def slow_answer_loss(logits, ids, prompt_lens):
    """The mean loss, in nats, of all answer tokens of the batch; a tensor without dimensions."""
    losses = []
    for row in range(ids.size(0)):
        for place in range(prompt_lens[row], ids.size(1)):
            if ids[row, place] != pad_id:
                losses.append(-logits[row, place - 1].log_softmax(dim=-1)[ids[row, place]])
    return torch.stack(losses).mean()


# %% [markdown]
# Write the same without a loop.
# Every prompt has at least one token, and every batch at least one answer token; an answer may be empty.
# `F.cross_entropy` of PyTorch may be used, here as `torch.nn.functional.cross_entropy`.
#
# <details><summary>Hint</summary>
#
# Which target belongs to the last row of logits?
# Cut first, then decide for each *target* whether it counts.
#
# </details>

# %% tags=["solution"]
def answer_loss(logits, ids, prompt_lens):
    """The mean loss, in nats, of all answer tokens of the batch; a tensor without dimensions."""
    ### BEGIN SOLUTION
    targets = ids[:, 1:]  # (batch, length - 1)
    place = torch.arange(1, ids.size(1), device=ids.device)
    counts = (place >= prompt_lens[:, None]) & (targets != pad_id)  # (batch, length - 1)
    log_probs = logits[:, :-1].log_softmax(dim=-1)
    losses = -log_probs.gather(-1, targets[..., None])[..., 0]
    return (losses * counts).sum() / counts.sum()
    ### END SOLUTION


# %% tags=["check"]
check("16.answers", answer_loss)

# %% [markdown] exercise="16.packed" title="Several texts in one row" minutes=14 points=3 difficulty=3
# Padding is computed for nothing.
# So large models are trained on rows that are full of texts, one behind another.
# `texts` (batch, length) tells for each token the number of its text; a text's tokens stand side by side, no two texts of a row have the same number, and the numbers come in any order.
# A text must not see another one, and its positions begin at 0.
#
# `prompt` (batch, length) is True for the tokens of a prompt: all tokens of the *same* text, also earlier ones, may see these.
# Everything else is causal.
# Return two tensors:
#
# 1. a mask (batch, length, length), True where a query (row) may see a key (column);
# 2. positions (batch, length): how many tokens of its own text stand before each token.
#
# This is the specification.

# %% tags=["specification"]
def slow_packed(texts, prompt):
    """Mask (batch, length, length) and positions (batch, length) of rows with several texts."""
    batch, length = texts.shape
    mask = prompt.new_zeros(batch, length, length)
    positions = texts.new_zeros(batch, length)
    for row in range(batch):
        for query in range(length):
            for key in range(length):
                if texts[row, query] == texts[row, key]:
                    mask[row, query, key] = key <= query or prompt[row, key]
                    positions[row, query] += key < query
    return mask, positions


# %% [markdown]
# Write the same without a loop.
#
# <details><summary>Hint</summary>
#
# A comparison of `texts` with itself gives a table (batch, length, length).
# Both results can be made of it.
#
# </details>

# %% tags=["solution"]
def packed(texts, prompt):
    """Mask (batch, length, length) and positions (batch, length) of rows with several texts."""
    ### BEGIN SOLUTION
    place = torch.arange(texts.size(1), device=texts.device)
    same = texts[:, :, None] == texts[:, None, :]  # (batch, length, length)
    earlier = place[:, None] > place  # (length, length): the key stands before the query
    causal = place[:, None] >= place
    mask = same & (causal | prompt[:, None, :])
    return mask, (same & earlier).sum(dim=-1)
    ### END SOLUTION


# %% tags=["check"]
check("16.packed", packed)

# %% [markdown] exercise="16.join" title="From patches back to the picture" minutes=12 points=3 difficulty=3
# The lesson cut pictures into patches.
# A model that *makes* pictures needs the way back: its last layer gives a row of numbers for each patch, and these must become pixels.
#
# `patches` is (batch, patches, channels · patch · patch).
# The patches come row by row, and the numbers of each are sorted by channel first, then by row and column in the patch.
# Return (batch, channels, height, width), without a loop, `fold` or `pixel_shuffle`.
# `patch` divides `height` and `width`, which may differ.
#
# <details><summary>Hint</summary>
#
# Give each of the last two dimensions its parts back with `view` or `unflatten`, until there are six.
# Then ask for each part: does it belong to the channels, to the height or to the width of the picture?
#
# </details>

# %% tags=["solution"]
def join_patches(patches, height, width, patch):
    """Patches (batch, patches, channels · patch · patch) to the picture (batch, channels, height, width)."""
    ### BEGIN SOLUTION
    rows, columns = height // patch, width // patch
    parts = patches.unflatten(2, (-1, patch, patch)).unflatten(1, (rows, columns))
    # (batch, rows, columns, channels, patch, patch)
    return parts.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
    ### END SOLUTION


# %% tags=["check"]
check("16.join", join_patches)

# %% [markdown] exercise="16.which" title="In your own words" minutes=8 points=3 difficulty=2
# A shop has ten million product descriptions without labels, and 2,000 that a person has sorted into 30 categories.
# It wants every new description sorted.
# A colleague proposes: "We train a Transformer from scratch on the 2,000, hold out 200 of them, and if it is right on 95 %, we are done."
#
# Which of the three shapes fits the task, and how would you use the ten million?
# Against which cheap baseline would you hold the result?
# And what is wrong with the test?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# A text goes in and one of 30 classes comes out, so an encoder-only model fits, which sees both sides of every word.
# With so few labels it should be pretrained on the ten million descriptions first, by filling in blanks, which needs no labels, and then be fine-tuned on the 2,000 (the test texts kept out of both).
# A cheap baseline is a linear classifier on counted words, or the category of the most similar labeled description; without it, 95 % tells nothing, since a few words may give the category away.
# A random tenth holds descriptions that are nearly copies of those in training (the same brand, the same template), so it measures known products.
# New descriptions are new in another way: hold out whole brands or the latest month, and report each kind of unseen by itself, with an interval, as 200 texts are few.
#
# === BEGIN MARK SCHEME ===
# 1 point: encoder-only (or a decoder-only model with a head, if argued), pretrained on the unlabeled texts, then fine-tuned.
# 1 point: a cheap baseline: counts of words, nearest neighbor, most frequent class.
# 1 point: says what "unseen" must mean: new brands, products or times, not a random tenth; or that near copies leak.
# === END MARK SCHEME ===
