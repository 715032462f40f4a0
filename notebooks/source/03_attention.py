# %% [markdown]
# # 03 · Attention: a soft look-up
#
# **Question.** How does a token take what it needs from the other tokens, when nobody says which ones?
#
# **Afterwards you can**
#
# 1. compute attention by hand, and say at each stage whether you hold scores, weights or the context;
# 2. explain why scores are divided by √d_k, and show what training does without it;
# 3. choose checks that catch an attention that runs and is wrong.
#
# **You need** lessons 01 and 02: a sentence is a matrix, one row of numbers for each token.
# **Time**: 35 minutes to read, under 20 seconds to run.
# **In the paper**: sections 3.2 and 3.2.1, equation 1 and footnote 4.

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.figures import Panel, curves, new_figure, panels, styled

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# ## A look-up that finds exact keys only
#
# A Python dictionary gives a value for a key.
# Here is one from names of colors to red, green and blue light.
# What does it say to a color that it does not know?

# %% tags=["nbval-check-output"]
dictionary = {
    "red": (1.0, 0.0, 0.0),
    "yellow": (1.0, 1.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
}
print("red:", dictionary["red"])
try:
    print("orange:", dictionary["orange"])
except KeyError as error:
    print("no such key:", error)

# %% [markdown]
# Nothing at all.
# Yet orange is half red and half yellow, so half of each value would be a good answer.
# A *soft* look-up gives it.
# It has three roles:
#
# - the **query**: what we look for;
# - the **keys**: what each entry is found by;
# - the **values**: what each entry gives.
#
# To match *more or less*, queries and keys must be vectors, of one width that the paper calls d_k.
# The width of the values is d_v.

# %%
names = list(dictionary)
color_keys = torch.eye(3)  # (keys, d_k), one direction for each name
color_values = torch.tensor([dictionary[name] for name in names])  # (keys, d_v)
orange = color_keys[0] + color_keys[1]  # a query: some red, some yellow
assert orange.shape == color_keys[0].shape == (3,)

# %% [markdown]
# ### Scores
#
# How well does a key match the query?
# We take their dot product: multiply number by number, then sum.

# %% tags=["nbval-check-output"]
scores = []
for name, key in zip(names, color_keys, strict=True):
    score = sum(q * k for q, k in zip(orange.tolist(), key.tolist(), strict=True))
    scores.append(score)
    print(f"{name:8}score {score:.1f}")

# %% [markdown]
# ### Weights
#
# Scores are no shares: they can be negative, and they sum to anything.
# The **softmax** makes shares of them: it takes the exponential of each, and divides by their sum.
# Predict: what does blue get, whose score is 0?

# %% tags=["nbval-check-output"]
exponentials = [math.exp(score) for score in scores]
weights = [each / sum(exponentials) for each in exponentials]
for name, weight in zip(names, weights, strict=True):
    print(f"{name:8}weight {weight:.2f}")
assert math.isclose(sum(weights), 1)
torch.testing.assert_close(torch.tensor(weights), torch.tensor(scores).softmax(dim=0))

# %% [markdown]
# Blue gets 16 %: a score of 0 is no match, but its exponential is 1.
# The softmax leaves nobody out.
# Lesson [05](05_masks.ipynb) shows how to.
#
# Here we make the scores larger.
# We divide them by a **temperature** of 0.1, and blue all but disappears.
#
# ### Context
#
# The answer is the mean of the values, each counted with its weight.
# We call it the **context**.
# Section 3.2 of the paper puts attention in similar words: a query and a set of key-value pairs go in, and a weighted sum of the values comes out.


# %%
def look_up(query, keys, values, temperature=0.1):
    """The context of one query, and the weights: a loop over the keys."""
    exponentials = []
    for key in keys:
        score = sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True))
        exponentials.append(math.exp(score / temperature))
    weights = [each / sum(exponentials) for each in exponentials]
    context = torch.zeros(values.shape[1])
    for weight, value in zip(weights, values, strict=True):
        context += weight * value
    return context, torch.tensor(weights)


# %% tags=["nbval-check-output"]
context, weights = look_up(orange, color_keys, color_values)
for name, weight in zip(names, weights.tolist(), strict=True):
    print(f"{name:8}weight {weight:.2f}")
print("context", [round(each, 2) for each in context.tolist()])
close = dict(rtol=0, atol=1e-3)
torch.testing.assert_close(weights, torch.tensor([0.5, 0.5, 0.0]), **close)
torch.testing.assert_close(context, (color_values[0] + color_values[1]) / 2, **close)

# %% [markdown]
# Full red and half green: that is how a screen shows orange.
#
# Now more queries.
# Predict: `red` is a key of the dictionary, what comes back?
# And yellow and blue *paint* make green: what comes back for `green`, asked as yellow + blue?


# %%
@styled
def color_bars(found, title):
    """A bar of weights for each query, and the color that they mix."""
    figure = new_figure(title, 7.0, 3.4)
    axes = figure.add_subplot(xlabel="weight of each key, and the context as a color")
    axes.set_yticks(range(len(found)), list(found))
    axes.set(ylabel="query", xticks=[0, 0.5, 1], ylim=(len(found) - 0.4, -0.6))
    box = dict(color="white", pad=1.5)
    for row, (context, weights) in enumerate(found.values()):
        look = dict(left=weights.cumsum(0) - weights, color=color_values.tolist())
        shares = axes.barh([row] * 3, weights, edgecolor="white", **look)
        words = [names[each] if weights[each] > 0.1 else "" for each in range(3)]
        axes.bar_label(shares, words, label_type="center", bbox=box)
        axes.barh(row, 0.2, left=1.1, color=context.tolist(), edgecolor="#444444")
    return figure


# %%
red, yellow, blue = color_keys
mixtures = {"orange": red + yellow, "purple": red + blue, "green": yellow + blue}
found = {
    name: look_up(query, color_keys, color_values)
    for name, query in {"red": red, **mixtures}.items()
}
torch.testing.assert_close(found["red"][0], color_values[0], **close)
for name in mixtures:
    largest = found[name][1].topk(2).values
    torch.testing.assert_close(largest, torch.tensor([0.5, 0.5]), **close)
torch.testing.assert_close(found["green"][0], torch.full((3,), 0.5), **close)
assert all(green <= red for red, green, blue in dictionary.values())
title = "Exact queries find one color, mixed ones a mean; “green” is gray"
color_bars(found, title)

# %% [markdown]
# `red` finds what the dictionary has.
# `green` comes out gray, because a look-up mixes light, not paint.
# And it can do nothing else: a weighted mean lies *between* the values.
# No value here has more green light than red, so no mean of them has.
#
# ### The same key twice
#
# A dictionary cannot hold a key twice: the last one wins.
# A soft look-up can.
# What do two blues get, a bright one and a dark one?

# %% tags=["nbval-check-output"]
dark_blue = torch.tensor([0.0, 0.0, 0.5])
twice_keys = torch.stack([red, yellow, blue, blue])
twice_values = torch.cat([color_values, dark_blue[None]])
context, weights = look_up(blue, twice_keys, twice_values)
print("weights", [round(each, 2) for each in weights.tolist()])
print("context", [round(each, 2) for each in context.tolist()])
assert weights[2] == weights[3]
torch.testing.assert_close(weights[2:], torch.tensor([0.5, 0.5]), **close)
torch.testing.assert_close(context, (blue + dark_blue) / 2, **close)
_, thirds = look_up(red + blue, twice_keys, twice_values)
torch.testing.assert_close(thirds, torch.tensor([1, 0, 1, 1]) / 3, **close)

# %% [markdown]
# Half each, and the mean of both values.
# In a mixture the two count as two: asked for red and blue, red gets a third, and each blue a third.
#
# ### Temperature
#
# We divided the scores by 0.1.
# What do other temperatures do?
# We ask for a reddish orange: 0.9 red, 0.6 yellow.

# %%
temperatures = torch.logspace(-2, 1.5, 36).tolist()
reddish = 0.9 * red + 0.6 * yellow
rows = [look_up(reddish, color_keys, color_values, each)[1] for each in temperatures]
shares = torch.stack(rows)  # (temperatures, keys)
figure = curves(
    {name: (temperatures, shares[:, number]) for number, name in enumerate(names)},
    xlabel="temperature",
    ylabel="weight",
    title="Cold looks up one key, hot takes the mean of all; the order stays",
    log_x=True,
    marks={"one third": (None, 1 / 3)},
)
assert shares[0, 0] > 0.99 and (shares[-1] - 1 / 3).abs().max() < 0.02
assert (shares[:, 0] >= shares[:, 1]).all() and (shares[:, 1] >= shares[:, 2]).all()
figure

# %% [markdown]
# A cold softmax is *peaky*: one key takes all.
# A hot one is less peaky, until all keys are nearly equal.
# The paper's temperature is √d_k, and we will see why.
#
# ## A sentence looks itself up
#
# *The cat sleeps.* has four tokens, and each may need something from the others.
# A verb needs to know who does it.
# A noun needs its article, and what it does.
#
# In lesson 01 a token is a row of learned numbers without names.
# For once we write the rows by hand, with names, so that we can read along.
# (Lesson 02 adds positions to the rows; nothing here needs them.)

# %%
tokens = ["The", "cat", "sleeps", "."]
features = ["article", "noun", "verb", "stop", "animal", "asleep"]
marks = {"The": ["article"], "cat": ["noun", "animal"], "sleeps": ["verb", "asleep"]}
marks["."] = ["stop"]


def embed(tokens):
    """Tokens to their rows, (tokens, d_model)."""
    rows = [[feature in marks[token] for feature in features] for token in tokens]
    return torch.tensor(rows).float()


x = embed(tokens)
d_model = len(features)
assert x.shape == (len(tokens), d_model)

# %% [markdown]
# Every token plays all three roles, so it needs three vectors.
# Three matrices make them.
# `w_query` says what a token *asks for*, `w_key` what it *can be found by*, `w_value` what it *hands over*.
# In a real model all three are learned; we fill in wishes by hand.

# %%
kinds, facts = features[:4], features[4:]
d_k, d_v = len(kinds), len(facts)
w_query, w_key, w_value = (torch.zeros(d_model, width) for width in (d_k, d_k, d_v))
wishes = {("article", "noun"): 6, ("verb", "noun"): 6, ("stop", "verb"): 6}
wishes |= {("noun", "article"): 5, ("noun", "verb"): 5}
for (asking, wanted), strength in wishes.items():
    w_query[features.index(asking), kinds.index(wanted)] = strength
w_key[:4] = torch.eye(4)  # a token is found by its kind
w_value[4:] = torch.eye(2)  # and hands over whether it is an animal, or asleep
assert w_query.count_nonzero() == len(wishes)

# %% [markdown]
# ### One query, in a loop
#
# What does *sleeps* find?
# The steps are those of the colors.
# The temperature is now √d_k = 2.

# %% tags=["nbval-check-output"]
query = x[tokens.index("sleeps")] @ w_query  # (d_k,)
scores = []
for row in x:
    key = row @ w_key  # (d_k,)
    scores.append((query @ key).item() / math.sqrt(d_k))
total = sum(math.exp(score) for score in scores)
weights = [math.exp(score) / total for score in scores]
context = torch.zeros(d_v)
for token, row, score, weight in zip(tokens, x, scores, weights, strict=True):
    context += weight * (row @ w_value)
    print(f"{token:8}score {score:.1f}   weight {weight:.2f}")
told = [f"{fact} {each:.2f}" for fact, each in zip(facts, context, strict=True)]
print("context:", ", ".join(told))
assert weights[tokens.index("cat")] > 0.8

# %% [markdown]
# *Sleeps* asks for a noun, finds *cat*, and learns that an animal does it.
#
# ### All queries at once
#
# Four loops like this one are three matrix products.
# First the projections: each row of `x` times the same matrix.
# The paper's Q, K and V hold all queries, all keys and all values, one in each row.

# %%
Q = x @ w_query  # (queries, d_k)
K = x @ w_key  # (keys, d_k)
V = x @ w_value  # (keys, d_v)
the, cat, sleeps, stop = range(len(tokens))
torch.testing.assert_close(Q[sleeps], query)
assert kinds[Q[sleeps].argmax()] == kinds[K[cat].argmax()] == "noun"
assert [kinds[k] for k in Q[cat].nonzero()] == ["article", "verb"]
assert V[[the, stop]].count_nonzero() == 0

# %%
panels(
    [
        Panel(x, tokens, features, "X: the sentence"),
        Panel(Q, tokens, kinds, "Q: asks for"),
        Panel(K, tokens, kinds, "K: is found by"),
        Panel(V, tokens, facts, "V: hands over"),
    ],
    title="One sentence, three roles: “sleeps” asks for a noun, “cat” is found as one",
    words={"signed": "number in the row"},
)

# %% [markdown]
# Read the rows: *cat* asks for an article and for a verb.
# *The* and the full stop hand over nothing.
#
# Then all scores, all weights, all contexts: equation 1 of the paper,
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Entry (i, j) of QKᵀ is the dot product of query i and key j: how relevant is token j for token i?

# %%
scores = Q @ K.T / math.sqrt(d_k)  # (queries, keys)
weights = scores.softmax(dim=-1)  # (queries, keys)
context = weights @ V  # (queries, d_v)
one_by_one = torch.zeros(len(tokens), d_v)
for i, query in enumerate(Q):
    exponentials = [math.exp(query @ key / math.sqrt(d_k)) for key in K]
    for exponential, value in zip(exponentials, V, strict=True):
        one_by_one[i] += exponential / sum(exponentials) * value
torch.testing.assert_close(context, one_by_one)
torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(tokens)))
assert context[cat, facts.index("asleep")] > 0.4
assert context[cat, facts.index("animal")] < 0.05

# %% [markdown]
# The matrices give what the loop gives.
# The softmax runs along each row, over the keys, so each row of weights sums to 1.
# Predict: which row will have *two* dark cells?

# %%
axes = dict(xlabel="key", ylabel="query")
figure = panels(
    [
        Panel(scores, tokens, tokens, "scores", **axes),
        Panel(weights, tokens, tokens, "weights", kind="weights", **axes),
        Panel(context, tokens, facts, "context", xlabel="fact", ylabel="query"),
    ],
    title="Scores → weights → context: “cat” attends to two tokens, the rest to one",
    words={"signed": "score; context"},
)
assert (weights > 0.4).sum(dim=-1).tolist() == [1, 2, 1, 1]
assert (weights[cat] > 0.4).nonzero().flatten().tolist() == [the, sleeps]
figure

# %% [markdown]
# *Cat* is like orange: two keys match equally well, and share its weight.
# From *The* comes nothing, from *sleeps* comes *asleep*: now *cat* knows that it is asleep.
# That it is an animal is almost gone from its context; lesson [06](06_encoder.ipynb) adds the token itself back.
#
# All numbers of this example can be changed here, and everything after them is computed anew.
# Can you make *cat* look at *The* only, by changing its query and nothing else?

# %%
from course_lib.widgets import AttentionCalculator

calculator = AttentionCalculator(Q, K, V, tokens, tokens, kinds, facts)
for ours, shown in zip((scores, weights, context), calculator.compute(), strict=True):
    torch.testing.assert_close(ours.double(), shown)
calculator

# %% [markdown]
# ## Three words
#
# Explanations often use one name for all of it, so we keep three apart:
#
# | word | what | shape | tells you |
# |---|---|---|---|
# | **scores** | QKᵀ/√d_k | (queries, keys) | how well they match, any number |
# | **weights** | softmax of the scores | (queries, keys) | shares, rows sum to 1 |
# | **context** | weights · V | (queries, d_v) | what each query takes away |
#
# **A common mistake**: calling QKᵀ the attention matrix.
# Those are scores, and nobody has been attended to yet.

# %%
assert not torch.allclose((Q @ K.T).sum(dim=-1), torch.ones(len(tokens)))
assert (Q @ K.T).max() > 1 and weights.max() <= 1

# %% [markdown]
# **A common mistake**: saying that the context sums the *encodings* of the words.
# It sums their *value* vectors.
# Sum the encodings instead, and what comes out has another width, and holds things that no token handed over.

# %% tags=["nbval-check-output"]
summed_encodings = weights @ x  # (queries, d_model)
print("summed encodings", tuple(summed_encodings.shape))
print("context", tuple(context.shape))
article = summed_encodings[cat, features.index("article")]
print(f"summed encodings of “cat”: {article:.2f} article, which no value has")
assert article > 0.4 and summed_encodings.shape != context.shape
torch.testing.assert_close(summed_encodings @ w_value, context)

# %% [markdown]
# The last check says how the two belong together: `w_value` decides how much of a token gets through.
#
# ## Why three projections?
#
# Could a token not look up with its own row, with Q = K = V = X?
# Predict: which token would each token find?
# Below it are two scores that the projections made.

# %% tags=["nbval-check-output"]
plain = (x @ x.T / math.sqrt(d_model)).softmax(dim=-1)
for token, row in zip(tokens, plain, strict=True):
    print(f"{token:8}finds {tokens[row.argmax()]}")
print(f"“.” asks “sleeps”: {scores[stop, sleeps]:.1f}")
print(f"“sleeps” asks “.”: {scores[sleeps, stop]:.1f}")
assert torch.equal(plain.argmax(dim=-1), torch.arange(len(tokens)))
torch.testing.assert_close(x @ x.T, (x @ x.T).T)
assert not torch.equal(scores, scores.T)

# %% [markdown]
# Itself.
# And its scores are symmetric: the full stop could not ask for the verb unless the verb asked for the full stop.
# With two projections the question and the label are different things, and the scores need not be symmetric.
#
# **A common mistake**: writing Q = W·W_Q, with one letter for the sentence and for what is learned.
# It is Q = X·W_Q: X is the sentence and changes each time, W_Q is a parameter and stays.
# In PyTorch W_Q is an `nn.Linear` without bias, which keeps the matrix transposed.
# A shorter sentence goes through the same one.

# %% tags=["nbval-check-output"]
query_proj = nn.Linear(d_model, d_k, bias=False)
with torch.no_grad():
    query_proj.weight.copy_(w_query.T)  # (d_k, d_model)
for sentence in (tokens, ["The", "cat", "."]):
    projected = query_proj(embed(sentence))
    shape, parameters = tuple(projected.shape), query_proj.weight.numel()
    print(f"{len(sentence)} tokens: Q {shape}, {parameters} parameters")
    torch.testing.assert_close(projected, embed(sentence) @ w_query)
assert (w_query.shape[1], w_query.shape[0]) == query_proj.weight.shape

# %% [markdown]
# ## Queries from another sentence
#
# Must there be as many queries as keys?
# The German translation so far reads *Die Katze schläft*, three tokens.
# Each looks for its counterpart among the four English ones, again with numbers by hand.
# Even its rows may be of another width: here 3 numbers, the English ones have 6.

# %%
from course_lib.figures import attention_map

german = ["Die", "Katze", "schläft"]
x_german = torch.eye(3)  # article, noun, verb
w_query_german = 6 * torch.eye(3, d_k)  # each asks for its own kind
Q_german = x_german @ w_query_german  # (3, d_k)
cross = (Q_german @ K.T / math.sqrt(d_k)).softmax(dim=-1)  # (3, 4)
assert cross.shape == (len(german), len(tokens)) and Q_german.shape != K.shape
assert cross.argmax(dim=-1).tolist() == [the, cat, sleeps]
assert (cross.max(dim=-1).values > 0.8).all()
title = "Each German token finds its English one"
attention_map(cross, german, tokens, title=title)

# %% [markdown]
# **A common mistake**: believing that Q and K must have the same shape.
# Only d_k must be the same: queries × d_k against keys × d_k gives queries × keys.
#
# And what comes out?
# **A common mistake**: calling it "the value matrix".
# It is the context: one row for each *query*, as wide as a value.

# %% tags=["nbval-check-output"]
context_german = cross @ V  # (queries, d_v)
print("V", tuple(V.shape), " context", tuple(context_german.shape))
assert context_german.shape == (len(german), d_v) != V.shape

# %% [markdown]
# Lesson [07](07_decoder.ipynb) builds translation on this.
#
# ## The function
#
# Three lines hold everything so far.


# %%
def attend(query, key, value):
    """Context (..., queries, d_v) and weights (..., queries, keys)."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = scores.softmax(dim=-1)  # (..., queries, keys)
    return weights @ value, weights


torch.testing.assert_close(attend(Q, K, V), (context, weights))
torch.testing.assert_close(attend(Q_german, K, V), (context_german, cross))

# %% [markdown]
# Ones and zeros hide mistakes, as we will see at the end, so here the numbers are random, and every size is different.
# Is it what the course's library computes, and PyTorch?

# %%
from course_lib.attention import attention

generator = torch.Generator().manual_seed(1)
exact = dict(generator=generator, dtype=torch.float64)
query, key = torch.randn(5, 16, **exact), torch.randn(7, 16, **exact)
value = torch.randn(7, 3, **exact)
ours, our_weights = attend(query, key, value)
library, library_weights = attention(query, key, value)
torchs = F.scaled_dot_product_attention(query, key, value)
torch.testing.assert_close(ours, library, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(our_weights, library_weights, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(ours, torchs, rtol=1e-9, atol=1e-12)
assert ours.shape == (5, 3) and our_weights.shape == (5, 7)

# %% [markdown]
# All three agree to nine digits.
# PyTorch's function returns the context only.
#
# Two laws hold for any numbers.
# Rows of weights sum to 1.
# And each context lies among the values: in no direction is it farther out than the farthest value.

# %%
directions = torch.randn(3, 1000, **exact)  # (d_v, directions)
assert torch.allclose(our_weights.sum(dim=-1), torch.ones(5, dtype=torch.float64))
assert (our_weights > 0).all()
farthest_value = (value @ directions).max(dim=0).values  # (directions,)
assert (ours @ directions <= farthest_value + 1e-12).all()
assert not (2 * ours @ directions <= farthest_value).all()  # the check can fail

# %% [markdown]
# ## Many sentences at once
#
# A batch has one more dimension in front: (batch, length, d_model).
# *The cat sees the dog.* and *The dog sees the cat.* have six tokens each.
# We give each token random numbers, as at the start of training.

# %% tags=["nbval-check-output"]
sentences = ["The cat sees the dog .".split(), "The dog sees the cat .".split()]
words = sorted({word for sentence in sentences for word in sentence})
ids = torch.tensor([[words.index(word) for word in sentence] for sentence in sentences])
table = torch.randn(len(words), 8, **exact)  # (vocab, d_model)
batch = table[ids]
w_q, w_k, w_v = (torch.randn(8, width, **exact) for width in (4, 4, 3))
query, key, value = batch @ w_q, batch @ w_k, batch @ w_v
for name, tensor in (("batch", batch), ("queries", query), ("values", value)):
    print(f"{name:8}{tuple(tensor.shape)}")
assert query.shape == (*ids.shape, 4) and value.shape == (*ids.shape, 3)

# %% [markdown]
# `batch @ w_q` *broadcasts*: each sentence is multiplied by the same matrix.
# For Q times Kᵀ each sentence has its own two matrices.
# `torch.bmm` multiplies such pairs, and `@` does it too, in the `attend` from above.
# A loop over the sentences is the specification.

# %%
one_by_one = [attend(*parts)[0] for parts in zip(query, key, value, strict=True)]
one_by_one = torch.stack(one_by_one)  # (batch, queries, d_v)
scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(4)  # (batch, queries, keys)
with_bmm = torch.bmm(scores.softmax(dim=-1), value)  # (batch, queries, d_v)
with_at, _ = attend(query, key, value)
library, _ = attention(query, key, value)
for batched in (with_bmm, with_at, library):
    torch.testing.assert_close(batched, one_by_one, rtol=1e-9, atol=1e-12)

# %% [markdown]
# All agree.
# Lesson 04 needs one dimension more, for several attentions at once; `@` takes it, so we stay with `@`.
#
# The two sentences mean different things.
# Predict: does *cat* take away the same context from both?

# %%
cats = with_at[ids == words.index("cat")]  # (2, d_v): one from each sentence
torch.testing.assert_close(cats[0], cats[1], rtol=1e-9, atol=1e-12)

# %% [markdown]
# The same, to the last digit that counts.
# A look-up does not care where an entry stands, only what its key is.
# That is why lesson [02](02_position.ipynb) adds positions to the rows.
#
# ## Why √d_k?
#
# A dot product sums d_k products.
# Take numbers with mean 0 and variance 1 for queries and keys, all independent.
# How does the variance of q · k grow with d_k?

# %%
from course_lib import ModelConfig

generator = torch.Generator().manual_seed(2)
print("  d_k   variance of q·k   variance of q·k/√d_k")
for width in (1, 4, 16, 64, 256, 1024):
    q, k = torch.randn(2, 20_000, width, generator=generator)
    products = (q * k).sum(dim=1)
    variance = products.var().item()
    scaled = (products / math.sqrt(width)).var().item()
    print(f"{width:5}{variance:18.1f}{scaled:23.2f}")
    assert math.isclose(variance, width, rel_tol=0.1)
    assert math.isclose(scaled, 1, rel_tol=0.1)
assert math.sqrt(ModelConfig(vocab_size=37_000).d_k) == 8  # the paper's base model

# %% [markdown]
# It *is* d_k, as the paper's footnote 4 says.
# So the standard deviation is √d_k, and scores divided by √d_k have variance 1 at every width.
# The paper's heads have d_k = 64, so it divides by 8.
#
# What do large scores do to the softmax?
# We measure how peaky the weights are by their *entropy*.
# It is 0 if one key takes all, and ln 8 if eight keys are equal.


# %%
def draw_scores(width, generator, queries=1000, keys=8):
    """Raw scores (queries, keys) of random queries and keys."""
    query = torch.randn(queries, 1, width, generator=generator)
    key = torch.randn(queries, keys, width, generator=generator)
    return (query @ key.mT).squeeze(1)


def entropy(weights):
    """In nats, one for each row."""
    return torch.special.entr(weights).sum(dim=-1)


assert math.isclose(entropy(torch.full((8,), 1 / 8)).item(), math.log(8), rel_tol=1e-6)
assert entropy(torch.eye(8)).max() == 0

# %%
widths = [1, 4, 16, 64, 256, 1024]
generator = torch.Generator().manual_seed(3)
drawn = {width: [draw_scores(width, generator) for _ in range(5)] for width in widths}


def measure(function):
    """A function of the weights, scaled and not: name to (draws, widths)."""
    found = {"divided by √d_k": [], "not divided": []}
    for (name, columns), power in zip(found.items(), (0.5, 0), strict=True):
        for width in widths:
            weights = [(raw / width**power).softmax(dim=-1) for raw in drawn[width]]
            columns.append([function(each) for each in weights])
        found[name] = torch.tensor(columns).T
    return found


# %%
entropies = measure(lambda weights: entropy(weights).mean().item())
scaled, raw = entropies.values()
figure = curves(
    {name: (widths, runs) for name, runs in entropies.items()},
    xlabel="d_k",
    ylabel="mean entropy of the weights (nats)",
    title="Without the scale, wide keys make peaky weights; with it, they do not",
    log_x=True,
    marks={"eight equal weights": (None, math.log(8))},
)
assert (raw.diff(dim=1) < 0).all() and raw[:, -1].max() < 0.15
assert (scaled - scaled.mean()).abs().max() < 0.1 * scaled.mean()
figure

# %% [markdown]
# A line is the mean of five draws of 1,000 queries, its band goes from the smallest draw to the largest.
#
# A model whose weights are almost one-hot at the start has made up its mind before it has learned anything.
# Can it change it?
# Learning needs a gradient: how far do the weights move if the scores move a little?
# For weights w this is the matrix diag(w) − w wᵀ.
# We check the formula with autograd.


# %%
def jacobian(weights):
    """How the softmax changes with its scores: (..., keys, keys)."""
    return weights.diag_embed() - weights[..., :, None] * weights[..., None, :]


some = drawn[16][0][0].double()  # (keys,)
by_autograd = torch.autograd.functional.jacobian(lambda each: each.softmax(-1), some)
by_formula = jacobian(some.softmax(dim=-1))
torch.testing.assert_close(by_formula, by_autograd, rtol=1e-9, atol=1e-12)

# %% [markdown]
# Its size (the root of the sum of squares) says how much gradient gets through the softmax.
# We take the *median*: half of the queries have less.
# Predict how small it becomes at d_k = 1024.


# %%
def sizes(weights):
    return jacobian(weights).flatten(1).norm(dim=1)  # (queries,)


# %%
gradients = measure(lambda weights: sizes(weights).median().item())
scaled, raw = gradients.values()
figure = curves(
    {name: (widths, runs) for name, runs in gradients.items()},
    xlabel="d_k",
    ylabel="median size of the softmax's gradient",
    title="Without the scale, wide keys let most queries' softmax gradient vanish",
    log_x=True,
    log_y=True,
)
assert (raw[:, 2:].diff(dim=1) < 0).all() and raw[:, -1].max() < raw[:, 0].min() / 1000
assert (scaled - scaled.mean()).abs().max() < 0.1 * scaled.mean()
figure

# %% [markdown]
# "Regions where it has extremely small gradients", says section 3.2.1: here they are.
#
# Why the median, and not the mean?
# Some queries have two keys almost level, and their gradient stays large.
# The mean sees those, the median sees the rest.
#
# And the softmax is not the end of the way.
# To reach the *query*, the gradient is multiplied by the keys, and divided by √d_k if the scores are.
# Predict: what do median and mean say there?

# %%
generator = torch.Generator().manual_seed(4)
q, k = (torch.randn(1000, count, 1024, generator=generator) for count in (1, 8))
raw = (q @ k.mT).squeeze(1)  # (queries, keys)
reached = {}
for name, scale in (("divided by √d_k", math.sqrt(1024)), ("not divided", 1)):
    change = jacobian((raw / scale).softmax(dim=-1))  # (queries, keys, keys)
    reached[name, "softmax"] = change.flatten(1).norm(dim=1)
    reached[name, "query"] = (change @ k / scale).flatten(1).norm(dim=1)
for (name, where), size in reached.items():
    print(f"{name:16} {where:8} median {size.median():.1e}   mean {size.mean():.2f}")

# %%
for where in ("softmax", "query"):
    with_scale, without = (reached[name, where] for name in gradients)
    assert without.median() < with_scale.median() / 1000
assert without.mean() > 2 * with_scale.mean()  # at the query
unscaled = reached["not divided", "softmax"]
assert (unscaled < 0.01).float().mean() > 0.6
first, second = raw.topk(2).values.T
level = first - second < 5  # of scores whose standard deviation is 32
assert unscaled[level].sum() > 0.9 * unscaled.sum() and level.float().mean() < 0.4

# %% [markdown]
# Without the scale, most queries get next to no gradient, at the softmax and at the query.
# But those that are almost level get so much that the *mean* at the query is larger than with the scale.
# What vanishes is the softmax's gradient, for most queries, not for all.
#
# ### A wrong d_k that nobody notices
#
# **A common mistake**: a function with a default such as `d_k=4`, called with keys of another width.
# Our color keys have three numbers.
# We ask for red among red, yellow, blue and blue, once with vectors of length 10 and once of length 1.
# Where does the mistake show?


# %% tags=["nbval-check-output"]
def careless(query, key, d_k=4):
    return (query @ key.T / math.sqrt(d_k)).softmax(dim=-1)


gap = {}
for length in (10, 1):
    asked, entries = length * red[None], length * twice_keys
    right, wrong = attention(asked, entries, twice_values)[1], careless(asked, entries)
    gap[length] = (right - wrong).abs().max().item()
    found = f"{right[0, 0]:.3f} with √3, {wrong[0, 0]:.3f} with √4"
    print(f"length {length:2}: weight of red {found}")
assert gap[10] < 1e-6 and gap[1] > 0.01

# %% [markdown]
# With long vectors the softmax is *saturated*: one key has all the weight, whatever we divide by.
# A test with such numbers passes a wrong scale.
# Take d_k from the query's own shape, never from a default, and test with numbers of ordinary size.
# And **a common mistake** in print is √d_b: it is √d_k, the width of one key.
#
# ## The attention before this one
#
# Before the Transformer, @bahdanau2015 let a recurrent translator look at its source.
# Their score is not a dot product but a small network with one hidden layer:
#
# $$\mathrm{score}(q, k) = v^\top \tanh(W_q q + W_k k)$$
#
# Section 3.2.1 calls it **additive attention**.
# W_q and W_k are projections like ours, so we take projected queries and keys, and add what is new: tanh and v.


# %%
class Additive(nn.Module):
    """Scores (..., queries, keys) of projected queries and keys: v · tanh(q + k)."""

    def __init__(self, d_k):
        super().__init__()
        self.v = nn.Parameter(torch.randn(d_k) / math.sqrt(d_k))

    def forward(self, query, key):
        sums = query[..., :, None, :] + key[..., None, :, :]
        return torch.tanh(sums) @ self.v  # sums: (..., queries, keys, d_k)


# %%
torch.manual_seed(4)
additive = Additive(4).double()
scores = additive(query[0], key[0])
for i, j in ((0, 0), (2, 5), (5, 1)):
    by_hand = sum(additive.v * torch.tanh(query[0, i] + key[0, j]))
    torch.testing.assert_close(scores[i, j], by_hand, rtol=1e-9, atol=1e-12)
sums = query[0][:, None] + key[0]  # (queries, keys, d_k)
assert sums.numel() == 4 * scores.numel()

# %% [markdown]
# From the scores on, nothing is new: softmax over the keys, then the mean of the values.
# On the way, our code keeps a number for each query, key *and* dimension: d_k times as many as there are scores.
# The paper prefers the dot product because it is matrix multiplication, for which highly optimized code exists.
#
# ## Does the scale matter in training?
#
# The paper reports: for small d_k both do alike, for large d_k the dot product without the scale falls behind additive attention.
# (That small gradients are the reason, it only *suspects*.)
# Do we see it, too?
#
# The task is a look-up: eight keys with a value each, and a query that is one of the keys.
# *Which value belongs to it?*


# %%
def look_ups(size, generator, words=16, entries=8):
    """Ids: queries (size,), keys, values (size, entries), right values (size,)."""
    shuffled = torch.rand(size, words, generator=generator).argsort(dim=1)
    keys = shuffled[:, :entries]  # all different
    values = torch.randint(words, (size, entries), generator=generator)
    pick = torch.randint(entries, (size, 1), generator=generator)
    query, right = (each.gather(1, pick).squeeze(1) for each in (keys, values))
    return [part.to(device) for part in (query, keys, values, right)]


asked, keys, values, right = look_ups(1, torch.Generator().manual_seed(0))
pairs = dict(zip(keys[0].tolist(), values[0].tolist(), strict=True))
print(f"{pairs}\nasked for {asked.item()}, right is {right.item()}")
assert pairs[asked.item()] == right.item()

# %% [markdown]
# The dictionary is new each time, so nothing can be learned by heart.
# What must be learned is *how* to look up: that a query matches the key with the same id.
# The model maps the ids of a query, of keys and of values to logits of the right value.
# Its projections start such that queries and keys have about mean 0 and variance 1, as in the footnote.


# %%
class LookUp(nn.Module):
    def __init__(self, make_score, d_k, d_model=32, words=16):
        super().__init__()
        self.key_words = nn.Embedding(words, d_model)
        self.value_words = nn.Embedding(words, d_model)
        start = torch.randn(2, d_model, d_k) / math.sqrt(d_model)
        self.w_query, self.w_key = nn.Parameter(start[0]), nn.Parameter(start[1])
        self.generator, self.score = nn.Linear(d_model, words), make_score(d_k)

    def forward(self, query, keys, values):
        query = self.key_words(query)[:, None] @ self.w_query  # (batch, 1, d_k)
        scores = self.score(query, self.key_words(keys) @ self.w_key)
        context = scores.softmax(dim=-1) @ self.value_words(values)
        return self.generator(context)[:, 0]  # (batch, words)


# %% [markdown]
# Three scores, four seeds, a narrow and a wide d_k; everything else is the same.
# A GPU gets more seeds and wider keys.

# %%
choices = {
    "dot product / √d_k": lambda d_k: lambda q, k: q @ k.mT / math.sqrt(d_k),
    "dot product": lambda d_k: lambda q, k: q @ k.mT,
    "additive": Additive,
}
narrow_d_k, wide_d_k, seeds = (16, 512, 10) if device == "cuda" else (16, 256, 4)
*unseen, right = look_ups(250, torch.Generator().manual_seed(100))  # to test on
model = LookUp(choices["dot product"], wide_d_k).requires_grad_(False)
start = model.key_words.weight @ model.w_key  # (words, d_k)
assert start.mean().abs() < 0.1 and 0.7 < start.var() < 1.3


@torch.no_grad()
def accuracy(model):
    return (model(*unseen).argmax(dim=-1) == right).float().mean().item()


# %%
def train(make_score, d_k, seed, steps=100, every=10):
    """Share of right look-ups before training and after each `every` steps."""
    torch.manual_seed(seed)
    model = LookUp(make_score, d_k).to(device)
    generator = torch.Generator().manual_seed(1000 + seed)  # of the examples
    optimizer, found = torch.optim.Adam(model.parameters(), lr=5e-3), [accuracy(model)]
    for step in range(1, steps + 1):
        *inputs, target = look_ups(64, generator)
        loss = F.cross_entropy(model(*inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            found.append(accuracy(model))
    return found


# %%
torch.set_flush_denormal(True)  # a CPU is slow with numbers that have almost vanished
learned = {}  # (d_k, name) to right look-ups (seeds, points)
for d_k in (narrow_d_k, wide_d_k):
    for name, make_score in choices.items():
        runs = torch.tensor([train(make_score, d_k, seed) for seed in range(seeds)])
        learned[d_k, name], last = runs, runs[:, -1]
        print(f"d_k {d_k:4}  {name:20}mean {last.mean():.2f}", end=", ")
        print(f"{last.min():.2f} to {last.max():.2f} over {seeds} seeds")
_ = torch.set_flush_denormal(False)

# %%
last = {key: runs[:, -1] for key, runs in learned.items()}  # (seeds,) each
for scaled in ("dot product / √d_k", "additive"):
    assert min(last[narrow_d_k, scaled].min(), last[wide_d_k, scaled].min()) > 0.8
behind = {d_k: 1 - last[d_k, "dot product"].mean() for d_k in (narrow_d_k, wide_d_k)}
assert behind[narrow_d_k] < 0.2 and behind[wide_d_k] > behind[narrow_d_k] + 0.1
figure = curves(
    {name: (range(0, 101, 10), learned[wide_d_k, name]) for name in choices},
    xlabel="step",
    ylabel="right look-ups (share)",
    title=f"With d_k = {wide_d_k}, the unscaled dot product falls behind in the mean",
)
figure.axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
figure

# %% [markdown]
# After 100 steps, the additive score and the *scaled* dot product get more than 80 % right in every run, with narrow and with wide keys.
# The dot product without the scale does so in the mean with narrow keys; with wide ones its mean is behind.
# A line is the mean of the seeds, a band goes from the worst to the best: single runs differ much.
# One small task, one learning rate and few seeds show that the effect exists, not how large it is elsewhere, nor what causes it.
#
# ## Self-attention
#
# Where queries, keys and values all come from one sentence, we speak of **self-attention**.
# Our four tokens did it: each looks at the whole sentence and takes a new vector away.
#
# What might it be good for?
# *The dog eats the meat because it is hungry.*
# Who is *it*?
# German must know, because *it* is *er* for the dog and *es* for the meat.
# We ask the translator of lesson 00 where *it* looks.
# Each of its layers holds four attentions side by side, called *heads* (lesson [04](04_multi_head.ipynb)); this is one of the encoder's last layer.

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
text = "The dog eats the meat because it is hungry."
seen = translator.translate(text, attention=True)
every_head = torch.stack(seen.attention.encoder)  # (layers, heads, queries, keys)
head = every_head[-1, 1]  # (queries, keys)
it, noun = (seen.src_tokens.index(token) for token in ("▁it", "▁dog"))
title = f"In this head, “it” gives {100 * head[it, noun]:.0f} % of its weight to “dog”"
assert head[it, noun] > 0.8
assert every_head.shape[:2] == (2, 4)
assert (every_head[..., it, noun] > 0.5).nonzero().tolist() == [[1, 1], [1, 3]]
assert torch.allclose(head.sum(dim=-1), torch.ones(len(head)))
attention_map(head, seen.src_tokens, seen.src_tokens, title=title)

# %% [markdown]
# Is that an accident of this sentence?
# We look at others, where a single word decides: whoever eats is hungry, and what is eaten is fresh.

# %% tags=["nbval-check-output"]
meals = {"dog": "meat", "cat": "cheese", "horse": "apple", "child": "apple"}
pronouns = {"dog": "er", "cat": "sie", "horse": "es", "child": "es"}
pronouns |= {"meat": "es", "cheese": "er", "apple": "er"}
misses = []
for noun, food in meals.items():
    for meant, word in ((noun, "hungry"), (food, "fresh")):
        meal = f"The {noun} eats the {food} because it is {word}."
        seen = translator.translate(meal, attention=True)
        row = seen.attention.encoder[-1][1][seen.src_tokens.index("▁it")]  # (keys,)
        looked_at = seen.src_tokens[row.argmax()]
        print(f"{word:6} it → {looked_at:8} {seen.text}")
        misses += [(noun, word)] * (looked_at != f"▁{meant}")
        assert f"weil {pronouns[meant]} " in seen.text
assert misses == [("child", "hungry")]

# %% [markdown]
# Change *hungry* to *fresh*, and the head looks at the food.
# Once it is wrong: the hungry child's *it* goes to the apple.
# The German is right all the same (*es*, the child; the apple would be *er*), so the translator does not go by this head's largest weight alone.
#
# Nobody told this head to do so: it is what training made of its W_Q and W_K.
# We picked it among eight by looking; in our first sentence one other, head 3 of the same layer, gives *dog* more than half of its weight.
# A weight says where a head looks, not yet what the model does with it.
#
# ### The price
#
# Every token looks at every token.
# What happens to the weights if the sentence is ten times as long?

# %% tags=["nbval-check-output"]
counted = []
for length in (10, 100, 1000):
    rows = torch.zeros(length, 4)
    counted.append(attend(rows, rows, rows)[1].numel())
    print(f"{length:5} tokens: {counted[-1]:9,} weights, {4 * counted[-1]:9,} bytes")
assert counted[1] == 100 * counted[0] and counted[2] == 100 * counted[1]

# %% [markdown]
# A hundred times as many: O(length²), for each head and each layer.
#
# ## Break it on purpose
#
# Here are three ways to get it wrong: the softmax over the queries, the transpose forgotten, and, **a common mistake** even in formulas, the scale forgotten.
# Will the shapes give them away?


# %%
def over_queries(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-2)
    return weights @ value, weights


def no_transpose(query, key, value):
    weights = (query @ key / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ value, weights


def no_scale(query, key, value):
    weights = (query @ key.mT).softmax(dim=-1)
    return weights @ value, weights


# %% [markdown]
# We try each of them three times: on our sentence, where four tokens meet d_k = 4; on random numbers in the same shapes; and on random numbers whose sizes all differ.
# Before you run it: which check catches which mistake?


# %%
def checks(function, query, key, value):
    """The names of the checks that catch the function."""
    try:
        context, weights = function(query, key, value)
    except RuntimeError:
        return ["crashes"]
    expected, _ = attention(query, key, value)
    passed = {
        "shape": context.shape == expected.shape,
        "rows sum to 1": torch.allclose(weights.sum(dim=-1), torch.ones(len(query))),
        "equal to the library": torch.allclose(context, expected, atol=1e-3),
    }
    return [name for name, good in passed.items() if not good]


# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(5)
trials = {"our sentence": (Q, K, V)}
for name, sizes in (("same shapes", (4, 4, 4, 2)), ("all different", (3, 4, 5, 2))):
    queries, keys, d_k, d_v = sizes
    shapes = (queries, d_k), (keys, d_k), (keys, d_v)
    trials[name] = [torch.randn(shape, generator=generator) for shape in shapes]
caught = {}
for function in (attend, over_queries, no_transpose, no_scale):
    for trial, tensors in trials.items():
        caught[function, trial] = checks(function, *tensors)
        found = ", ".join(caught[function, trial]) or "passes"
        print(f"{function.__name__:14}{trial:15}{found}")

# %%
assert caught[no_transpose, "our sentence"] == [] and torch.equal(K, K.T)
assert caught[no_transpose, "all different"] == ["crashes"]
assert all(caught[over_queries, trial][0] == "rows sum to 1" for trial in trials)
assert all(caught[no_scale, trial] == ["equal to the library"] for trial in trials)
assert not any("shape" in found for found in caught.values())
assert not any(caught[attend, trial] for trial in trials)

# %% [markdown]
# No result ever has a wrong shape.
# Rows that sum to 1 catch the softmax.
# Our tidy sentence lets the missing transpose pass, because its K equals its own transpose.
# Random numbers find it, and sizes that all differ make it crash at once.
# The missing scale passes every law that we know: only a second implementation finds it.

# %% [markdown]
# ## Summary
#
# Attention is a soft look-up: a query is compared with all keys, and gets a weighted mean of their values.
# Scores become weights by a softmax over the keys, and weights times values are the context, one row for each query.
# Queries, keys and values are learned projections of tokens; only d_k must be shared, so any number of queries can ask any number of keys.
# Dot products of independent numbers with variance 1 have the standard deviation √d_k; divided by it they leave the softmax its gradient, and in our small training run the unscaled model fell behind.
# Shapes catch few mistakes: rows must sum to 1, sizes in tests must differ, and a second implementation must agree.
#
# **Practice**: [assignment 03](assignments/release/03_attention/03_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [04](04_multi_head.ipynb): one look-up gives one mean for each token, but a token may need several things at once, and so several look-ups.
