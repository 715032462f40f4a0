# %% [markdown]
# # 03 · Attention: a soft look-up
#
# **Question.** How does a token take what it needs from the other tokens, when nobody says which ones?
#
# **Afterwards you can**
#
# 1. compute attention by hand, and say at each stage whether you hold scores, weights or the context;
# 2. explain why dot products are divided by √d_k, and show what training does without it;
# 3. choose tests that catch an attention that runs and is wrong.
#
# **You need** lessons [01](01_text_to_tensors.ipynb) and [02](02_position.ipynb): a sentence is a matrix, one row of numbers for each token.
# **Time**: {minutes} minutes to read, under 20 seconds to run.
# **In the paper**: sections 3.2 and 3.2.1, equation 1 and footnote 4 [@vaswani2017].

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.figures import Block, Panel, curves, flow_figure, panels
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# ## A look-up that knows exact keys only
#
# A Python dictionary gives a value for a key.
# This one goes from names of colors to red, green and blue light.
# What does it give for a color that it does not hold?

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
# To match *more or less*, queries and keys must be vectors of one width, which the paper calls d_k.
# The width of the values is d_v.

# %%
names = list(dictionary)
red, yellow, blue = color_keys = torch.eye(3)  # (keys, d_k), a direction for each
color_values = torch.tensor([dictionary[name] for name in names])  # (keys, d_v)
orange = red + yellow  # a query: some red, some yellow

# %% [markdown]
# ### Scores
#
# How well does a key match the query?
# We take their **dot product**: multiply number by number, then sum.
# It is large where both have large numbers of one sign in the same places, 0 where they are perpendicular, and it grows with their lengths.
# (Here it is the score as it stands; the paper divides it first.)

# %% tags=["nbval-check-output"]
color_scores = []
for name, color_key in zip(names, color_keys, strict=True):
    products = zip(orange.tolist(), color_key.tolist(), strict=True)
    color_scores.append(sum(q * k for q, k in products))
    print(f"{name:8}score {color_scores[-1]:.1f}")

# %% [markdown]
# ### Weights
#
# Scores are not proportions: they can be negative, and they sum to anything.
# The **softmax** turns them into proportions: it takes the exponential of each, and divides by their sum.
# The exponential makes all positive and keeps their order; a point more is always 2.72 times the weight.

# %%
of_blue = Predict(
    "The score of blue is 0. What share of the weights does it get?",
    unit="%",
    off_by=4,
    section="Weights",
)
of_blue

# %% tags=["nbval-check-output"]
exponentials = [math.exp(score) for score in color_scores]
color_weights = [each / sum(exponentials) for each in exponentials]
for name, weight in zip(names, color_weights, strict=True):
    print(f"{name:8}weight {weight:.2f}")
of_blue.reveal(round(100 * color_weights[2]), because="1 / (2.72 + 2.72 + 1) = 0.16")

# %% tags=["hide-input"]
# The softmax of the library gives the same proportions.
softmaxed = torch.tensor(color_scores).softmax(dim=0)
torch.testing.assert_close(torch.tensor(color_weights), softmaxed)

# %% [markdown]
# The softmax leaves nobody out: no exponential is 0.
# (Lesson [05](05_masks.ipynb) shows how to leave someone out all the same.)
# Here we make the differences ten times as large: we divide by a **temperature** of 0.1 before the exponential, and blue all but disappears.
#
# ### Context
#
# The answer is the mean of the values, each counted with its weight: the **context**.
# In the words of the paper's section 3.2, attention maps a query and a set of key-value pairs to an output, which is a weighted sum of the values.


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
orange_context, orange_weights = look_up(orange, color_keys, color_values)
for name, weight in zip(names, orange_weights.tolist(), strict=True):
    print(f"{name:8}weight {weight:.2f}")
print("context", [round(each, 2) for each in orange_context.tolist()])

# %% [markdown]
# Full red and half green: that is how a screen shows orange.
#
# Now four queries, one exact key and three mixtures; `color_bars` draws their weights.
# Yellow and blue *paint* make green: does a look-up?

# %%
of_green = Predict(
    "Which color comes back for *green*, asked as yellow + blue?",
    ["green", "gray", "yellow", "blue"],
    section="Context",
)
of_green

# %% tags=["hide-input"]
from course_lib.figures import new_figure, styled


@styled
def color_bars(found, title):
    """A bar of weights for each query, and the color that they mix."""
    figure = new_figure(title, 7.0, 3.4)
    axes = figure.add_subplot(xlabel="weight of each key, and the context as a color")
    axes.set_yticks(range(len(found)), list(found))
    axes.set(ylabel="query", xticks=[0, 0.5, 1], ylim=(len(found) - 0.4, -0.6))
    for row, (context, weights) in enumerate(found.values()):
        look = dict(left=weights.cumsum(0) - weights, color=color_values.tolist())
        shares = axes.barh([row] * 3, weights, edgecolor="white", **look)
        words = [names[each] if weights[each] > 0.1 else "" for each in range(3)]
        axes.bar_label(shares, words, label_type="center", bbox=dict(color="white"))
        axes.barh(row, 0.2, left=1.1, color=context.tolist(), edgecolor="#444444")
    return figure


# %%
color_queries = {"red": red, "orange": red + yellow, "purple": red + blue}
color_queries["green"] = yellow + blue
found = {
    name: look_up(query, color_keys, color_values)
    for name, query in color_queries.items()
}
of_green.reveal("gray", because="it is the mean of yellow and blue light")
color_bars(found, "Exact queries find one color, mixed ones a mean; “green” is gray")

# %% tags=["hide-input"]
close = dict(rtol=0, atol=1e-3)
torch.testing.assert_close(found["red"][0], color_values[0], **close)
torch.testing.assert_close(found["green"][0], torch.full((3,), 0.5), **close)
for mixed in ("orange", "purple", "green"):
    halves = found[mixed][1].topk(2).values
    torch.testing.assert_close(halves, torch.tensor([0.5, 0.5]), **close)

# %% [markdown]
# An exact query finds what the dictionary has.
# *Green* comes out gray, and green it could not be: a weighted mean lies *between* the values, and no value here has more green light than red.
#
# ### The same key twice
#
# A dictionary cannot hold a key twice: the last one wins.
# What does a soft look-up make of two blues, a bright one and a dark one?

# %% tags=["nbval-check-output"]
twice_keys = torch.stack([red, yellow, blue, blue])
twice_values = torch.cat([color_values, torch.tensor([[0.0, 0.0, 0.5]])])
for asked, color_query in (("blue", blue), ("red + blue", red + blue)):
    mixture, shares = look_up(color_query, twice_keys, twice_values)
    print(f"{asked:11}weights {[round(each, 2) for each in shares.tolist()]}")
    print(f"{'':11}context {[round(each, 2) for each in mixture.tolist()]}")

# %% tags=["hide-input"]
torch.testing.assert_close(shares, torch.tensor([1, 0, 1, 1]) / 3, **close)
mixture, shares = look_up(blue, twice_keys, twice_values)
assert shares[2] == shares[3] and math.isclose(mixture[2], 0.75, abs_tol=1e-3)

# %% [markdown]
# Each copy scores as if it were alone, so a duplicate doubles the pull.
# Beside red, the two blues get two thirds of the weight, where one blue got half.
#
# ### Temperature
#
# What do other temperatures than 0.1 do?
# We ask for a reddish orange: 0.9 red, 0.6 yellow.

# %%
temperatures = torch.logspace(-2, 1.5, 36).tolist()
reddish = 0.9 * red + 0.6 * yellow
rows = [look_up(reddish, color_keys, color_values, each)[1] for each in temperatures]
by_temperature = torch.stack(rows)  # (temperatures, keys)

# %% tags=["hide-input"]
figure = curves(
    {name: (temperatures, by_temperature[:, n]) for n, name in enumerate(names)},
    xlabel="temperature",
    ylabel="weight",
    title="Cold looks up one key, hot takes the mean of all; the order stays",
    log_x=True,
    marks={"one third": (None, 1 / 3)},
)
inks = "#c8102e", "#dcb800", "#0047bb", "grey"  # each key in the color that it names
for line, ink in zip(figure.axes[0].lines, inks, strict=True):
    line.set_color(ink)
figure.axes[0].legend()
figure

# %% tags=["hide-input"]
assert by_temperature[0, 0] > 0.99 and (by_temperature[-1] - 1 / 3).abs().max() < 0.02
assert (by_temperature[:, 0] >= by_temperature[:, 1]).all()
assert (by_temperature[:, 1] >= by_temperature[:, 2]).all()

# %% [markdown]
# A cold softmax is **peaked**: one key takes all.
# A hot one is flat: all keys are nearly equal.
# In the paper √d_k takes this place, 8 in its model. That is not hot: dot products of wide vectors are larger, as we will see.
#
# ## A sentence looks itself up
#
# *The cat sleeps.* has four tokens, and each may need something from the others.
# A verb needs to know who does it.
# A noun needs its article, and what it does.
#
# In lesson 01 a token is a row of learned numbers without names.
# For once we write the rows by hand, with names, so that we can read along.

# %%
tokens = ["The", "cat", "sleeps", "."]
features = ["article", "noun", "verb", "stop", "animal", "asleep"]
marks = {"The": ["article"], "cat": ["noun", "animal"], "sleeps": ["verb", "asleep"]}
marks["."] = ["stop"]
the, cat, sleeps, stop = range(len(tokens))
d_model = len(features)


def embed(tokens):
    """Tokens to their rows, (tokens, d_model)."""
    rows = [[feature in marks[token] for feature in features] for token in tokens]
    return torch.tensor(rows).float()


X = embed(tokens)
print(f"X: {tuple(X.shape)}, tokens × d_model")

# %% [markdown]
# ### First without parameters
#
# The simplest thing: each row is query, key and value at once.

# %%
finds = Predict(
    "Each token asks with its own row. Whom does *sleeps* find?",
    ["sleeps", "cat", "The and cat alike"],
    section="First without parameters",
)
finds

# %% tags=["nbval-check-output"]
plain_products = X @ X.T  # (queries, keys)
plain_weights = (plain_products / math.sqrt(d_model)).softmax(dim=-1)
for token, row in zip(tokens, plain_weights, strict=True):
    print(f"{token:8}", *(f"{weight:5.2f}" for weight in row), "", tokens[row.argmax()])
found = tokens[plain_weights[sleeps].argmax()]
finds.reveal(found, because="no row matches it better than its own")
print("symmetric:", torch.equal(plain_products, plain_products.T))

# %% tags=["hide-input"]
assert torch.equal(plain_weights.argmax(dim=-1), torch.arange(len(tokens)))
assert torch.equal(plain_products, plain_products.T)

# %% [markdown]
# Everyone finds themselves, because no two rows share a feature.
# And the dot products are symmetric: the verb could not ask for its noun unless the noun asked for the verb just as much.
# What a token *asks for* must be different from what it *is found by*.
#
# ### Three projections
#
# So three matrices make three vectors of each token.
# `w_query` says what a token asks for, `w_key` what it can be found by, `w_value` what it hands over.
# In a real model all three are learned; we write them by hand, a row for each feature.
# A negative number says what is not wanted.

# %%
kinds, facts = ["article", "noun", "verb", "animal"], ["animal", "asleep"]
d_k, d_v = len(kinds), len(facts)
w_query = [  # article, noun, verb, animal
    [0, 6, 0, 0],  # an article asks for a noun
    [5, -4, 5, 0],  # a noun for an article and a verb, not for a noun
    [0, 4, 0, 2],  # a verb for a noun, all the more for an animal
    [0, 0, 6, 0],  # a stop for a verb
    [0, 0, 0, 0],  # being an animal asks for nothing
    [0, 0, 0, 0],  # nor does being asleep
]
w_query = torch.tensor(w_query).float()  # (d_model, d_k)
w_key = torch.eye(d_model)[:, [0, 1, 2, 4]]  # found by being one of the kinds
w_value = torch.eye(d_model)[:, [4, 5]]  # hands over whether an animal, or asleep

# %% [markdown]
# ### One query, in a loop
#
# What does *sleeps* find now?
# The steps are those of the colors, with the temperature √d_k = 2.

# %% tags=["nbval-check-output"]
query = X[sleeps] @ w_query  # (d_k,)
scores = []
for token, row in zip(tokens, X, strict=True):
    key = row @ w_key  # (d_k,)
    terms = " + ".join(f"{q:.0f}·{k:.0f}" for q, k in zip(query, key, strict=True))
    scores.append((query @ key).item() / math.sqrt(d_k))
    print(f"sleeps · {token:6} = {terms} = {query @ key:.0f}", end="")
    print(f"; divided by √4: {scores[-1]:.1f}")

# %% tags=["nbval-check-output"]
total = sum(math.exp(score) for score in scores)
weights = [math.exp(score) / total for score in scores]
context = torch.zeros(d_v)
for token, row, weight in zip(tokens, X, weights, strict=True):
    context += weight * (row @ w_value)
    print(f"{token:8}weight {weight:.2f}")
told = [f"{fact} {each:.2f}" for fact, each in zip(facts, context, strict=True)]
print("context:", ", ".join(told))

# %% [markdown]
# *Cat* is a noun and an animal, so two products add up.
# *Sleeps* finds it, and learns that an animal does it.
#
# ### All queries at once
#
# For all four tokens at once, the loop becomes matrix products.
# First the projections: every row of X times the same matrix.
# The paper's Q, K and V hold all queries, all keys and all values, one in each row.

# %%
Q = X @ w_query  # (queries, d_k)
K = X @ w_key  # (keys, d_k)
V = X @ w_value  # (keys, d_v)

# %% tags=["hide-input"]
from matplotlib.patches import Rectangle


def outlined(figure, row, places):
    """Frames a row of some panels."""
    for axes in (figure.axes[place] for place in places):
        corner, width = (-0.5, row - 0.5), axes.images[0].get_array().shape[1]
        look = dict(fill=False, lw=2.2, edgecolor="#222222", clip_on=False, zorder=5)
        axes.add_patch(Rectangle(corner, width, 1, **look))
    return figure


# %% tags=["hide-input"]
shown = [
    Panel(X, tokens, features, ""),  # a place that stays empty
    Panel(w_query, features, kinds, "W_Q"),
    Panel(w_key, features, kinds, "W_K"),
    Panel(w_value, features, facts, "W_V"),
    Panel(X, tokens, features, "X: the sentence"),
    Panel(Q, tokens, kinds, "Q: asks for"),
    Panel(K, tokens, kinds, "K: is found by"),
    Panel(V, tokens, facts, "V: hands over"),
]
title = "X times W_Q, W_K, W_V: “sleeps” asks for noun and animal, “cat” is both"
figure = panels(shown, title=title, words={"signed": "number"})
figure.axes[0].set_visible(False)
outlined(figure, features.index("verb"), [1])
outlined(figure, sleeps, [4, 5])

# %% tags=["hide-input"]
torch.testing.assert_close(Q[sleeps], query)
assert [kinds[k] for k in Q[sleeps].nonzero()] == ["noun", "animal"]
assert [kinds[k] for k in K[cat].nonzero()] == ["noun", "animal"]
assert [kinds[k] for k in (Q[cat] > 0).nonzero()] == ["article", "verb"]
assert V[[the, stop]].count_nonzero() == 0 == K[stop].count_nonzero()

# %% [markdown]
# Each product stands below its matrix.
# The frames follow *sleeps*: its row of X picks two rows of W_Q, *verb* (framed) and *asleep* (all zeros), and adds them.
# The full stop is none of the four kinds, so its key is zero: every query scores 0 with it.
# *The* and the full stop hand over nothing.
#
# Then all scores, all weights, all contexts.
# That is equation 1 of the paper:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Entry (i, j) of QKᵀ is the dot product of query i and key j: how relevant is token j for token i?
# The softmax runs along each row, over the keys.

# %%
scores = Q @ K.T / math.sqrt(d_k)  # (queries, keys)
weights = scores.softmax(dim=-1)  # (queries, keys)
context = weights @ V  # (queries, d_v)

# %% tags=["hide-input"]
blocks = [
    Block("X", (4, 6), "tokens × d_model", (0, 1)),
    Block("Q", (4, 4), "queries × d_k", (1.2, 0)),
    Block("K", (4, 4), "keys × d_k", (1.2, 1)),
    Block("V", (4, 2), "keys × d_v", (1.2, 2)),
    Block("scores", (4, 4), "queries × keys", (2.5, 0.5)),
    Block("weights", (4, 4), "queries × keys", (3.7, 0.5), "weights"),
    Block("context", (4, 2), "queries × d_v", (4.9, 1.2), "result"),
]
ways = [("X", "Q", "W_Q"), ("X", "K", "W_K"), ("X", "V", "W_V")]
ways += [("Q", "scores", "QKᵀ / √d_k"), ("K", "scores", ""), ("V", "context", "")]
ways += [("scores", "weights", "softmax"), ("weights", "context", "@")]
tensors = (X, Q, K, V, scores, weights, context)
assert [block.shape for block in blocks] == [tuple(tensor.shape) for tensor in tensors]
flow_figure(blocks, ways, title="Four tokens of six features become four contexts")

# %% tags=["hide-input"]
one_by_one = torch.zeros(len(tokens), d_v)  # the loops, for every token
for i, one_query in enumerate(Q):
    exponentials = [math.exp(one_query @ key / math.sqrt(d_k)) for key in K]
    for exponential, value in zip(exponentials, V, strict=True):
        one_by_one[i] += exponential / sum(exponentials) * value
torch.testing.assert_close(context, one_by_one)

# %%
on_the = Predict(
    "What weight does *cat* give to *The*?",
    unit="%",
    off_by=5,
    section="All queries at once",
)
on_the

# %%
why = "*The* and *sleeps* match equally well, the other two badly"
on_the.reveal(round(100 * weights[cat, the].item()), because=why)

# %% tags=["hide-input"]
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
outlined(figure, sleeps, range(3))

# %% tags=["hide-input"]
assert (weights > 0.4).sum(dim=-1).tolist() == [1, 2, 1, 1]
assert (weights[cat] > 0.4).nonzero().flatten().tolist() == [the, sleeps]
assert scores[cat, cat] == -2 and 0.002 < weights[cat, cat] < 0.01 < weights[cat, stop]
torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(tokens)))
animal, asleep = context[cat]
assert asleep > 0.4 > 0.05 > animal

# %% [markdown]
# *Cat* is like orange: two keys match equally well, and split its weight.
# From *The* comes nothing, from *sleeps* comes *asleep*: now *cat* knows that it is asleep.
# With itself it scores −4/2 = −2, less than the 0 of the full stop, and gets the smallest weight.
# That it is an animal has almost vanished from its context; lesson [06](06_encoder.ipynb) adds the token itself back.
#
# All numbers of this example can be changed here, and everything after them is computed anew.
# Can you make *cat* look at *The* only, by changing its query and nothing else?

# %%
from course_lib.widgets import AttentionCalculator

calculator = AttentionCalculator(Q, K, V, tokens, tokens, kinds, facts)
calculator

# %% tags=["hide-input"]
from course_lib.checks import written_for

now = tuple(getattr(calculator, name) for name in calculator.first)
with written_for(tuple(calculator.first.values()), now):
    steps = scores, weights, context
    for ours, shown in zip(steps, calculator.compute(), strict=True):
        torch.testing.assert_close(ours.double(), shown)

# %% [markdown]
# ### Three words
#
# Explanations often use one name for all of it, so we keep three apart:
#
# | word | what | shape | tells you |
# |---|---|---|---|
# | **scores** | QKᵀ/√d_k | (queries, keys) | how well they match, any number |
# | **weights** | softmax of the scores | (queries, keys) | proportions, rows sum to 1 |
# | **context** | weights · V | (queries, d_v) | what each query takes away |
#
# The context sums *value vectors*, not the rows of X.
# What would be the difference?

# %% tags=["nbval-check-output"]
summed_rows = weights @ X  # (queries, d_model)
sums = (("rows", features, summed_rows[cat]), ("values", facts, context[cat]))
for what, labels, row in sums:
    told = [f"{label} {number:.2f}" for label, number in zip(labels, row, strict=True)]
    print(f"sum of the {what}:", ", ".join(told))

# %% tags=["hide-input"]
assert summed_rows[cat, features.index("article")] > 0.4
torch.testing.assert_close(summed_rows @ w_value, context)

# %% [markdown]
# The sum of the rows of X says that *cat* is nearly half an article.
# `w_value` decides what of each token gets through.
#
# ## Queries from another sentence
#
# Must there be as many queries as keys?
# Take the German sentence *Die Katze schläft*, three tokens.
# Let each look for its counterpart among the four English ones, again with numbers by hand.
# Even its rows may be of another width: here 3 numbers, where the English ones have 6.

# %%
from course_lib.figures import attention_map

german = ["Die", "Katze", "schläft"]
X_german = torch.eye(3)  # article, noun, verb
w_query_german = 6 * torch.eye(3, d_k)  # each asks for its own kind
Q_german = X_german @ w_query_german  # (3, d_k)
cross = (Q_german @ K.T / math.sqrt(d_k)).softmax(dim=-1)  # (3, 4)
attention_map(cross, german, tokens, title="Each German token finds its English one")

# %% tags=["hide-input"]
assert cross.argmax(dim=-1).tolist() == [the, cat, sleeps]
assert cross.max(dim=-1).values.min() > 0.8

# %%
of_shape = Predict(
    "V is 4 × 2. What is the shape of the German context, weights · V?",
    ["4 × 2", "3 × 2", "3 × 4"],
    section="Queries from another sentence",
)
of_shape

# %% tags=["nbval-check-output"]
context_german = cross @ V  # (queries, d_v)
rows, columns = context_german.shape
why = "every query gets one row, as wide as a value"
of_shape.reveal(f"{rows} × {columns}", because=why)

# %% [markdown]
# **A common mistake**: believing that Q and K must have the same shape.
# Only d_k must be the same: queries × d_k against keys × d_k gives queries × keys.
# Attention whose queries come from one sequence and whose keys and values from another is called **cross-attention**; lesson [07](07_decoder.ipynb) builds translation on it.
# Where all three come from the same sequence, as in *The cat sleeps.*, it is **self-attention**.
#
# ## The function
#
# Three lines hold everything after the projections.


# %%
def attend(query, key, value):
    """Context (..., queries, d_v) and weights (..., queries, keys)."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = scores.softmax(dim=-1)  # (..., queries, keys)
    return weights @ value, weights


# %% [markdown]
# Is it what the course's library computes, and what PyTorch computes?
# Equal sizes, and a K that equals its own transpose, hide mistakes, as we will see at the end, so here the numbers are random, and every size is different.

# %%
from course_lib.attention import attention

generator = torch.Generator().manual_seed(1)
exact = dict(generator=generator, dtype=torch.float64)
some_queries, some_keys = torch.randn(5, 16, **exact), torch.randn(7, 16, **exact)
some_values = torch.randn(7, 3, **exact)
ours, our_weights = attend(some_queries, some_keys, some_values)
library, library_weights = attention(some_queries, some_keys, some_values)
pytorchs = F.scaled_dot_product_attention(some_queries, some_keys, some_values)
for name, theirs in (("course_lib", library), ("PyTorch", pytorchs)):
    print(f"{name:11}differs by {(ours - theirs).abs().max():.0e}")

# %% tags=["hide-input"]
torch.testing.assert_close(ours, library, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(our_weights, library_weights, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(ours, pytorchs, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(attend(Q_german, K, V), (context_german, cross))
# Each context lies among the values: in no direction is it farther out than all.
directions = torch.randn(3, 1000, **exact)  # (d_v, directions)
farthest = (some_values @ directions).max(dim=0).values
assert (ours @ directions <= farthest + 1e-12).all()
assert not (2 * ours @ directions <= farthest).all()

# %% [markdown]
# They agree to the last digits.
# PyTorch's function returns the context only.
#
# ## Many sentences at once
#
# A batch has one more dimension in front: (batch, length, d_model).
# *The cat sees the dog.* and *The dog sees the cat.* have six tokens each.
# We give each word a row of random numbers, as at the start of training.

# %% tags=["nbval-check-output"]
sentences = ["The cat sees the dog .".split(), "The dog sees the cat .".split()]
words = sorted({word for sentence in sentences for word in sentence})
ids = torch.tensor([[words.index(word) for word in sentence] for sentence in sentences])
table = torch.randn(len(words), 8, **exact)  # (vocab, d_model)
batch = table[ids]
w_q, w_k, w_v = (torch.randn(8, width, **exact) for width in (4, 4, 3))
batched = batch @ w_q, batch @ w_k, batch @ w_v
for name, tensor in zip(("queries", "keys", "values"), batched, strict=True):
    print(f"{name:8}{tuple(tensor.shape)}")

# %% [markdown]
# `batch @ w_q` **broadcasts**: each sentence is multiplied by the same matrix.
# For Q times Kᵀ each sentence has its own two matrices.
# `@` multiplies such pairs, in the `attend` from above (`torch.bmm` does, too).
# (`.mT` transposes the last two dimensions, as `.transpose(-2, -1)` does.)

# %%
batch_q, batch_k, batch_v = batched
with_at, _ = attend(*batched)
singly = torch.stack([attend(*parts)[0] for parts in zip(*batched, strict=True)])
print(f"against sentence by sentence: {(with_at - singly).abs().max():.0e}")

# %% tags=["hide-input"]
torch.testing.assert_close(with_at, singly, rtol=1e-9, atol=1e-12)

# %%
both_cats = Predict(
    "The sentences mean different things. Is the context of *cat* different in them?",
    ["yes", "no"],
    section="Many sentences at once",
)
both_cats

# %% tags=["nbval-check-output"]
cats = with_at[ids == words.index("cat")]  # (2, d_v): one from each sentence
for row in cats:
    print([round(number, 6) for number in row.tolist()])
same = torch.allclose(*cats, rtol=1e-9, atol=1e-12)
why = "both sentences hold the same rows, and a look-up does not care where one stands"
both_cats.reveal("no" if same else "yes", because=why)

# %% [markdown]
# That is why lesson [02](02_position.ipynb) adds positions to the rows.
#
# ## Why √d_k?
#
# A dot product sums d_k products.
# Take numbers with mean 0 and variance 1 for queries and keys, all independent.

# %%
grows = Predict(
    "How does the variance of q · k grow with d_k?",
    ["not at all", "like √d_k", "like d_k", "like d_k²"],
    section="Why √d_k?",
)
grows

# %%
generator = torch.Generator().manual_seed(2)
widths = [1, 4, 16, 64, 256, 1024]
variances = []
print("  d_k   variance of: q·k   q·k/√d_k   q·k/d_k")
for width in widths:
    q, k = torch.randn(2, 20_000, width, generator=generator)
    products = (q * k).sum(dim=1)
    tried = products, products / math.sqrt(width), products / width
    variances.append([each.var().item() for each in tried])
    print("{:5}{:18.1f}{:11.2f}{:10.4f}".format(width, *variances[-1]))
power = math.log(variances[-1][0] / variances[0][0], widths[-1])
grows.reveal({0: "not at all", 0.5: "like √d_k", 1: "like d_k"}[round(2 * power) / 2])

# %% tags=["hide-input"]
from course_lib import ModelConfig

for width, found in zip(widths, variances, strict=True):
    for variance, expected in zip(found, (width, 1, 1 / width), strict=True):
        assert math.isclose(variance, expected, rel_tol=0.1)
assert math.sqrt(ModelConfig(vocab_size=37_000).d_k) == 8  # the paper's base model

# %% [markdown]
# Why d_k?
# Each product qᵢkᵢ has mean 0 and variance E[qᵢ²]·E[kᵢ²] = 1.
# Variances of independent terms add: d_k terms give d_k, as the paper's footnote 4 says.
#
# Dividing by c divides the variance by c², so c = √d_k gives 1 at every width.
# Dividing by d_k would give 1/d_k: wide keys would start with nearly equal weights.
# The paper's base model has d_k = 64, so it divides by 8.
#
# What do large scores do to the softmax?
# We measure how peaked the weights are by their **entropy**: 0 if one key takes all, ln 8 if eight keys are equal.
#
# And we measure what learning needs, a gradient: how far do the weights move if the scores move a little?
# With two keys, the weight w of the first changes with its score at the rate w(1 − w): 0.25 at w = 0.5, but 0.0099 at w = 0.99.
# For any number of keys this becomes a matrix of rates, which weight moves with which score: diag(w) − w wᵀ, the **Jacobian** of the softmax.
# Its size is the root of the sum of its squared entries.
# Where dot products are divided by √d_k, their rates are smaller by the same factor, so we divide here, too.
#
# We call a query **stuck** if one key has more than 0.99 of its weight.
# `measure` (folded) draws 1,000 queries with 8 keys five times for each width, divides the dot products, and returns what we ask of the weights.


# %%
def draw_products(width, generator, queries=1000, keys=8):
    """Dot products (queries, keys) of random queries and keys."""
    query = torch.randn(queries, 1, width, generator=generator)
    return (query @ torch.randn(queries, keys, width, generator=generator).mT)[:, 0]


def entropy(weights):
    """In nats, one for each row."""
    return torch.special.entr(weights).sum(dim=-1)


def jacobian_size(weights):
    """How much the weights move with the scores, one number for each row."""
    change = weights.diag_embed() - weights[..., :, None] * weights[..., None, :]
    return change.flatten(1).norm(dim=1)


# %% tags=["hide-input"]
some = draw_products(16, generator)[:1].double()
two = torch.tensor([0.99, 0.01], dtype=torch.float64)
assert math.isclose(jacobian_size(two[None]).item(), 2 * 0.99 * 0.01)  # four entries
by_autograd = torch.autograd.functional.jacobian(lambda each: each.softmax(-1), some[0])
torch.testing.assert_close(jacobian_size(some.softmax(-1))[0], by_autograd.norm())
assert math.isclose(entropy(torch.full((8,), 1 / 8)).item(), math.log(8), rel_tol=1e-6)


# %% tags=["hide-input"]
def measure(function):
    """A function of weights and divisor, by what divides: name to (draws, widths)."""
    found = {}
    powers = {"divided by √d_k": 0.5, "not divided": 0, "divided by d_k": 1}
    for name, power in powers.items():
        found[name] = torch.empty(5, len(widths))
        for column, width in enumerate(widths):
            for row, products in enumerate(drawn[width]):
                weights = (products / width**power).softmax(dim=-1)
                found[name][row, column] = function(weights, width**power)
    return found


# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(3)
drawn = {width: [draw_products(width, generator) for _ in range(5)] for width in widths}
entropies = measure(lambda weights, _: entropy(weights).mean())
curves(
    {name: (widths, runs) for name, runs in entropies.items()},
    xlabel="d_k",
    ylabel="mean entropy of the weights (nats)",
    title="Wide keys: peaked weights without a scale, equal ones divided by d_k",
    log_x=True,
    marks={"eight equal weights": (None, math.log(8))},
)

# %% tags=["hide-input"]
scaled, raw, flat = entropies.values()
assert (raw[:, 2:].diff(dim=1) < 0).all() and raw[:, -1].max() < 0.15
assert (scaled - scaled.mean()).abs().max() < 0.1 * scaled.mean()
assert flat[:, -1].min() > 0.999 * math.log(8)
stuck = measure(lambda weights, _: (weights.max(dim=-1).values > 0.99).float().mean())
del stuck["divided by d_k"]
curves(
    {name: (widths, 100 * runs) for name, runs in stuck.items()},
    xlabel="d_k",
    ylabel="queries with one weight above 0.99 (%)",
    title="Without a scale, most queries of wide keys are stuck on one key",
    log_x=True,
    marks={"the paper's d_k": (64, None)},
)

# %%
mean_rate = measure(lambda weights, by: jacobian_size(weights).mean() / by)
median_rate = measure(lambda weights, by: jacobian_size(weights).median() / by)
print(f"{'':27}stuck   gradient: mean   median")
for width in (64, 1024):
    at = widths.index(width)
    for name, runs in stuck.items():
        print(f"d_k {width:4}, {name:16}{runs[:, at].mean():6.0%}", end="")
        print(f"{mean_rate[name][:, at].mean():15.3f}", end="")
        print(f"{median_rate[name][:, at].mean():11.5f}")

# %% tags=["hide-input"]
raw = stuck["not divided"]
assert stuck["divided by √d_k"].max() < 0.01 and (raw.diff(dim=1) > 0).all()
assert 0.3 < raw[:, 3].mean() < 0.5 < 0.7 < raw[:, -1].min()
for rates, ordered in ((mean_rate, True), (median_rate, False)):
    larger = rates["not divided"][:, -1] > rates["divided by √d_k"][:, -1]
    assert (larger == ordered).all()
assert median_rate["not divided"][:, -1].max() < 1e-3
for rates in (mean_rate, median_rate):
    scaled, unscaled = (rates[name][:, 3].mean() for name in stuck)
    assert scaled < unscaled

# %% [markdown]
# "Regions where it has extremely small gradients", says section 3.2.1.
# That is true of most queries with wide keys: at 1,024 they give nearly all weight to one key, at random, before anything is learned, and the median query gets next to no gradient to change it.
# It is not true of the mean: a few queries with two keys almost level get a large gradient, and the division takes its share. But that share is one factor for all queries, for which a larger learning rate, or Adam, makes up; it cannot make up for a gradient that has vanished for some.
# So what √d_k buys is that no query *starts* stuck, whatever the width.
#
# ### A wrong d_k that nobody notices
#
# **A common mistake**: a function with a default such as `d_k=4`, called with keys of another width.
# Our color keys have three numbers.
# We ask for red among red, yellow, blue and blue, once with vectors of norm 10 and once of norm 1.
# Where does the mistake show?


# %% tags=["nbval-check-output"]
def careless(query, key, d_k=4):
    return (query @ key.T / math.sqrt(d_k)).softmax(dim=-1)


gap = {}
for norm in (10, 1):
    asked, entries = norm * red[None], norm * twice_keys
    right, wrong = attention(asked, entries, twice_values)[1], careless(asked, entries)
    gap[norm] = (right - wrong).abs().max().item()
    shares = f"{right[0, 0]:.3f} with √3, {wrong[0, 0]:.3f} with √4"
    print(f"norm {norm:2}: red gets {shares}")

# %% tags=["hide-input"]
assert gap[10] < 1e-6 and gap[1] > 0.01

# %% [markdown]
# With long vectors the softmax is **saturated**: one key has all the weight, with √3 as with √4.
# A test with such numbers passes a wrong scale.
# Take d_k from the query's own shape, never from a default, and test with numbers of ordinary size.
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


# %% tags=["hide-input"]
torch.manual_seed(4)
additive = Additive(4).double()
additive_scores = additive(batch_q[0], batch_k[0])
for i, j in ((0, 0), (2, 5), (5, 1)):
    by_hand = sum(additive.v * torch.tanh(batch_q[0, i] + batch_k[0, j]))
    torch.testing.assert_close(additive_scores[i, j], by_hand, rtol=1e-9, atol=1e-12)

# %% [markdown]
# On the way, this code keeps a number for each query, key *and* dimension: d_k times as many as there are scores.
# The paper prefers the dot product because it is matrix multiplication, for which highly optimized code exists.
#
# ## Does the scale matter in training?
#
# The paper cites a study: for small d_k both kinds perform similarly, for large d_k the dot product without the scale falls behind additive attention.
# That small gradients are the reason, the paper only *suspects*.
#
# The task is a look-up: eight keys with a value each, and a query that is one of the keys (`look_ups` draws them at random).
# *Which value belongs to it?*


# %% tags=["hide-input"]
def look_ups(size, generator, words=16, entries=8):
    """Ids: queries (size,), keys, values (size, entries), right values (size,)."""
    shuffled = torch.rand(size, words, generator=generator).argsort(dim=1)
    keys = shuffled[:, :entries]  # all different
    values = torch.randint(words, (size, entries), generator=generator)
    pick = torch.randint(entries, (size, 1), generator=generator)
    query, right = (each.gather(1, pick).squeeze(1) for each in (keys, values))
    return [part.to(device) for part in (query, keys, values, right)]


# %%
asked, keys, values, right = look_ups(1, torch.Generator().manual_seed(0))
pairs = dict(zip(keys[0].tolist(), values[0].tolist(), strict=True))
print(f"{pairs}\nasked for {asked.item()}, right is {right.item()}")

# %% [markdown]
# The dictionary is new each time, so no pair can be learned by heart.
# What must be learned is *how* to look up: that a query matches the key with the same id.
# The model maps the ids of a query, of keys and of values to a logit for each of the 16 ids.
# Its projections start such that queries and keys have about mean 0 and variance 1, as in the footnote.


# %%
class LookUp(nn.Module):
    def __init__(self, make_score, d_k, d_model=32, words=16):
        super().__init__()
        self.key_words = nn.Embedding(words, d_model)
        self.value_words = nn.Embedding(words, d_model)
        start = torch.randn(2, d_model, d_k) / math.sqrt(d_model)
        self.w_query, self.w_key = nn.Parameter(start[0]), nn.Parameter(start[1])
        self.output, self.score = nn.Linear(d_model, words), make_score(d_k)

    def forward(self, query, keys, values):
        query = self.key_words(query)[:, None] @ self.w_query  # (batch, 1, d_k)
        scores = self.score(query, self.key_words(keys) @ self.w_key)
        context = scores.softmax(dim=-1) @ self.value_words(values)
        return self.output(context)[:, 0]  # (batch, words)


# %% [markdown]
# Three kinds of scores, a narrow and a wide d_k, several seeds; everything else is the same, Adam's rate of 0.005 too.
# (The additive score starts with variance below 1 at every width, because of its *v*, and needs no scale.)
# `train` shows each model 100 batches of 64 look-ups. Without a look-up, the value of any entry is right in 18 % (values may repeat).

# %% tags=["hide-input"]
choices = {
    "dot product / √d_k": lambda d_k: lambda q, k: q @ k.mT / math.sqrt(d_k),
    "dot product": lambda d_k: lambda q, k: q @ k.mT,
    "additive": Additive,
}
narrow_d_k, wide_d_k, seeds = 16, 256, 12 if device == "cuda" else 5
*unseen, unseen_right = look_ups(250, torch.Generator().manual_seed(100))  # to test on


@torch.no_grad()
def accuracy(model):
    return (model(*unseen).argmax(dim=-1) == unseen_right).float().mean().item()


# %% tags=["hide-input"]
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


# %% tags=["hide-input"]
@styled
def learning_curves(learned, title):
    """A panel for each d_k, and in it a thin line for each run."""
    figure = new_figure(title, 9.0, 3.8)
    both = figure.subplots(1, 2, sharey=True)
    for panel, d_k in zip(both, (narrow_d_k, wide_d_k), strict=True):
        panel.set(xlabel="step", ylabel="accuracy", title=f"d_k = {d_k}")
        panel.grid(True)
        for number, name in enumerate(choices):
            look = dict(color=f"C{number}", ls=("-", "--", ":")[number], lw=1)
            lines = panel.plot(range(0, 101, 10), learned[d_k, name].T, **look)
            lines[0].set_label(name)
    lines, labels = panel.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=3)
    return figure


# %%
torch.set_flush_denormal(True)  # a CPU is slow with numbers that have almost vanished
learned = {}  # (d_k, name) to right look-ups (seeds, points)
for d_k_tried in (narrow_d_k, wide_d_k):
    for name, make_score in choices.items():
        runs = [train(make_score, d_k_tried, seed) for seed in range(seeds)]
        learned[d_k_tried, name] = torch.tensor(runs)
        last = learned[d_k_tried, name][:, -1]
        print(f"d_k {d_k_tried:4}  {name:20}mean {last.mean():.2f},", end=" ")
        print(f"{last.min():.2f} to {last.max():.2f} over {seeds} seeds")
_ = torch.set_flush_denormal(False)

# %% tags=["hide-input"]
title = "Unscaled dot product: a slow run at d_k = 16, all slow at d_k = 256"
learning_curves(learned, title)

# %% tags=["hide-input"]
last = {key: runs[:, -1] for key, runs in learned.items()}  # (seeds,) each
for scaled in ("dot product / √d_k", "additive"):
    assert min(last[narrow_d_k, scaled].min(), last[wide_d_k, scaled].min()) > 0.9
narrow, wide = (last[d_k, "dot product"] for d_k in (narrow_d_k, wide_d_k))
assert narrow.min() > 0.75 and narrow.mean() > 0.9
assert wide.min() < 0.5 < 0.6 < wide.max() and wide.mean() < 0.8
halfway = [learned[narrow_d_k, name][:, 4].mean() for name in choices]  # step 40
assert halfway[1] < halfway[0] - 0.1
any_entry = (unseen[2] == unseen_right[:, None]).float().mean()
assert abs(any_entry - 0.18) < 0.03

# %% [markdown]
# A line is one run: its accuracy on 250 other look-ups.
# With d_k = 16 all three learn the task; without the scale most runs are about as fast as the additive ones, and one may be slow.
# With d_k = 256 it is far behind, and its runs are far apart, down to one that has learned no look-up, while all those of the others end above 90 %. (A scaled one may stay near guessing for a while, too, before it finds the way.)
# This shows that the effect exists, at this rate and in these 100 steps, and not why.

# %% [markdown]
# ## What a trained head looks at
#
# *The dog eats the meat because it is hungry.*
# Who is *it*?
# German must know, because *it* is *er* for the dog and *es* for the meat.
# We ask the translator `course`, which learned from 60,000 sentences of our grammar, where *it* looks.
# Each of its layers holds four attentions side by side, its heads (lesson [04](04_multi_head.ipynb)); this is one of the encoder's last layer.

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
hungry = "The dog eats the meat because it is hungry."
seen = translator.translate(hungry, attention=True)
head = seen.attention.encoder[-1][1]  # (queries, keys)
it, dog = (seen.src_tokens.index(token) for token in ("▁it", "▁dog"))
title = f"In this head, “it” gives {100 * head[it, dog]:.0f} % of its weight to “dog”"
attention_map(head, seen.src_tokens, seen.src_tokens, title=title)

# %% tags=["hide-input"]
assert head[it, dog] > 0.8 and torch.allclose(head.sum(dim=-1), torch.ones(len(head)))

# %% [markdown]
# A striking picture, and we picked it among eight by looking.
# Is it an accident of this sentence?
# Here are 70 pairs of an eater and a food.
# Whoever eats may be *hungry*, and what is eaten may be *fresh*: one word at the end decides.

# %% tags=["hide-input", "nbval-check-output"]
from course_lib.tokenizer import EOS_ID

eaters = "dog cat horse child mouse bird cow bear girl pig".split()
foods = "meat cheese apple bread soup cake egg".split()
meals = [f"The {one} eats the {food} because it is" for one in eaters for food in foods]
encoded = {}  # word to ids (70, 11), all sentences of one length
for word in ("hungry", "fresh"):
    rows = [translator.tokenizer.encode(f"{meal} {word}.") for meal in meals]
    encoded[word] = torch.tensor([[*row, EOS_ID] for row in rows])
print(*(translator.tokenizer.token(i) for i in encoded["fresh"][0].tolist()))

# %% [markdown]
# Does *it* give more weight to the eater, word 1, or to the food, word 4?
# A rule that knows nothing, such as "the nearest noun", is right in exactly half of these 140 sentences.

# %%
from course_lib.metrics import share_estimate
from course_lib.recording import record_attention

right = []
for word, ids in encoded.items():
    with record_attention(translator.model) as maps, torch.no_grad():
        translator.model.encode(ids)
    of_it = torch.stack(maps.encoder)[..., 6, :]  # (layers, sentences, heads, keys)
    eater, food = of_it[..., 1], of_it[..., 4]
    right.append(eater > food if word == "hungry" else food > eater)
right = torch.cat(right, dim=1).transpose(1, 2)  # (layers, heads, sentences)
for layer, shares in enumerate(right.float().mean(dim=-1)):
    print(f"layer {layer}:", *(f"{share:5.0%}" for share in shares))

# %% [markdown]
# To be fair, we choose the best head on one half of the sentences and count on the other half.

# %%
first, second = right[..., ::2], right[..., 1::2]
best = first.float().mean(dim=-1).flatten().argmax().item()
counted = second.flatten(0, 1)[best]
share = share_estimate(int(counted.sum()), len(counted))
print(f"head {best % 4} of layer {best // 4}:")
print(f"{share.value:.0%} of the {len(counted)} sentences not used for the choice,")
print(f"95 % interval {share.low:.0%} to {share.high:.0%}")

# %% tags=["hide-input"]
assert best == 5 and share.low > 0.8
first_layer = right[0].float().mean(dim=-1)
assert (first_layer == 0.5).all()
for ids in encoded.values():
    assert len(ids[0]) == 11 and (ids[:, 6] == ids[0, 6]).all()
assert torch.equal(encoded["hungry"][:, :8], encoded["fresh"][:, :8])

# %% [markdown]
# The head of the picture gives the right noun *more* weight than the other, in sentences where one word after *it* decides.
# They were not used to choose the head, but some of them, like the sentence of the picture, were in the training set.
# All share one template and few nouns, so they are not the independent draws that the interval assumes.
#
# The 50 % of layer 0 are forced: there neither *it* nor the nouns know the last word yet, so the same noun wins in both sentences of a pair.
# In layer 1 the last word may have reached *it* or the nouns, query or keys; the accuracy cannot say which.
#
# Nobody told this head to do so; it emerged in training.
# A weight says where a head looks, not yet what the model does with it: lesson [12](12_reading_attention.ipynb) asks that.
#
# ## The price
#
# Every token looks at every token.
# What does a text of 1,000 tokens cost, beside one of 10?

# %% tags=["nbval-check-output"]
for length in (10, 100, 1000):
    rows = torch.zeros(length, 4)
    number = attend(rows, rows, rows)[1].numel()
    print(f"{length:5} tokens: {number:9,} weights, {4 * number:9,} bytes")

# %% [markdown]
# Ten times the length is a hundred times the weights: O(length²), "of the order of length squared", in each head of each layer.
#
# ## Break it on purpose
#
# Here are three ways to get it wrong: the softmax over the queries, the transpose forgotten, and, **a common mistake**, the scale forgotten.
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
# There are four trials: our sentence, with four tokens and d_k = 4; a tidier one, whose K is the identity; random numbers of the same shapes; and random numbers whose sizes all differ.


# %%
def tests(function, query, key, value):
    """What is wrong with the function."""
    try:
        context, weights = function(query, key, value)
    except RuntimeError:
        return ["crashes"]
    expected, _ = attention(query, key, value)
    passed = {
        "wrong shape": context.shape == expected.shape,
        "rows do not sum to 1": torch.allclose(weights.sum(-1), torch.ones(len(query))),
        "differs from the library": torch.allclose(context, expected, atol=1e-3),
    }
    return [name for name, good in passed.items() if not good]


# %%
by_shape = Predict(
    "How many of the three mistakes return a context of the wrong shape?",
    ["none", "one", "two", "all"],
    section="Break it on purpose",
)
by_shape

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(5)
trials = {"our sentence": (Q, K, V), "K = identity": (Q, torch.eye(4), V)}
for name, sizes in (("same shapes", (4, 4, 4, 2)), ("all different", (3, 4, 5, 2))):
    queries, keys, width, d_value = sizes
    shapes = (queries, width), (keys, width), (keys, d_value)
    trials[name] = [torch.randn(shape, generator=generator) for shape in shapes]
caught = {}
for function in (attend, over_queries, no_transpose, no_scale):
    for trial, tensors in trials.items():
        caught[function, trial] = tests(function, *tensors)
        found = ", ".join(caught[function, trial]) or "passes"
        print(f"{function.__name__:14}{trial:15}{found}")
shapes = {f for (f, _), found in caught.items() if "wrong shape" in found}
by_shape.reveal(["none", "one", "two", "all"][len(shapes)])

# %% tags=["hide-input"]
assert caught[no_transpose, "K = identity"] == [] and not torch.equal(K, K.T)
assert caught[no_transpose, "our sentence"] == ["differs from the library"]
assert caught[no_transpose, "same shapes"] == ["differs from the library"]
assert caught[no_transpose, "all different"] == ["crashes"]
assert all(caught[over_queries, trial][0] == "rows do not sum to 1" for trial in trials)
assert all(caught[no_scale, trial] == ["differs from the library"] for trial in trials)
assert not any(caught[attend, trial] for trial in trials)

# %% [markdown]
# No result ever has a wrong shape.
# Rows that sum to 1 catch the softmax.
# A missing transpose passes wherever K equals its own transpose, and crashes at once where all sizes differ.
#
# The missing scale can also be found without a second implementation, by a weight computed by hand or by the law of variances: the logarithms of a row's weights are its scores, all shifted by one number.

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(6)
drawn = torch.randn(3, 64, 64, generator=generator, dtype=torch.float64)  # d_k = 64
for function in (attend, over_queries, no_transpose, no_scale):
    spread = function(*drawn)[1].log().var(dim=-1).mean()  # along the rows
    print(f"{function.__name__:14}variance of the log-weights {spread:4.0f}")

# %% tags=["hide-input"]
assert 50 < spread < 80
assert 0.8 < attend(*drawn)[1].log().var(dim=-1).mean() < 1.2

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **query**: what is looked for, a vector of width d_k.
# - **keys**: what the entries are found by, one vector of width d_k for each.
# - **values**: what the entries give, one vector of width d_v for each.
# - **dot product**: the sum of the products of two vectors' numbers; here it says how well a query and a key match.
# - **softmax**: exponentials divided by their sum; turns scores into proportions.
# - **scores**: QKᵀ/√d_k, before the softmax.
# - **weights**: the proportions after the softmax; each row sums to 1.
# - **context**: weights times values, one row for each query.
# - **temperature**: what dot products are divided by before the softmax; cold is peaked, hot is flat.
# - **entropy**: how evenly weights are spread, from 0 to the logarithm of their number.
# - **Jacobian**: the matrix of how each output of a function changes with each input.
# - **saturated**: said of a softmax that gives all weight to one key, and passes on almost no gradient.
# - **stuck**: said of a query one of whose keys has more than 0.99 of its weight.
# - **additive attention**: scores from a small network with tanh, older than the Transformer's.
# - **self-attention**: attention whose queries, keys and values come from one sequence.
# - **cross-attention**: attention whose queries come from one sequence, keys and values from another.

# %% [markdown]
# ## Summary
#
# Attention is a soft look-up: a query is compared with all keys, and gets a weighted mean of their values.
# Scores become weights by a softmax over the keys, and weights times values are the context, one row for each query.
# Queries, keys and values are learned projections of tokens; queries and keys share d_k, each key has a value, and any number of queries can ask any number of keys.
# The dot product of independent numbers with mean 0 and variance 1 has variance d_k; division by √d_k brings it back to 1, and no query starts stuck on one key. In our small training run the unscaled model fell behind.
# Shapes catch few mistakes: rows must sum to 1, scores of random inputs must have variance 1, sizes in tests must differ, and a second implementation must agree.
#
# **Practice**: [assignment 03](assignments/release/03_attention/03_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [04](04_multi_head.ipynb): one look-up gives one mean for each token, but a token may need several things at once, and so several look-ups.
