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
# **You need** lessons [01](01_text_to_tensors.ipynb) and [02](02_position.ipynb): a sentence is a matrix, a row for each token.
# **Time**: {minutes} minutes to read, about 20 seconds to run.
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
# Yet orange is half red and half yellow, so half of each value would be a good answer.
# A *soft* look-up gives it, with three roles:
#
# - the **query**: what we look for;
# - the **keys**: what each entry is found by;
# - the **values**: what each entry gives.
#
# To match *more or less*, queries and keys become vectors. For the dot product, our measure of a match, both must have one width, which the paper calls d_k.
# The width of the values is d_v.

# %%
names = list(dictionary)
red, yellow, blue = color_keys = torch.eye(3)  # (keys, d_k), a direction for each
color_values = torch.tensor([dictionary[name] for name in names])  # (keys, d_v)
orange = red + yellow  # a query: some red, some yellow

# %% [markdown]
# ### Dot products
#
# How well does a key match the query?
# We take their **dot product**: multiply number by number, then sum.
# It is large if both have large numbers of the same sign in the same places, negative if the signs are mostly opposite, and 0 if the vectors are perpendicular.

# %% tags=["nbval-check-output"]
color_products = []
for name, color_key in zip(names, color_keys, strict=True):
    pairs = zip(orange.tolist(), color_key.tolist(), strict=True)
    color_products.append(sum(q * k for q, k in pairs))
    print(f"{name:8}dot product {color_products[-1]:.1f}")

# %% [markdown]
# ### Weights
#
# Dot products are not proportions: they can be negative, and they sum to anything.
# The **softmax** turns numbers into proportions: it takes the exponential of each, and divides by their sum.
# What enters the softmax is called a **score**; for now it is the dot product.
# A score that is higher by 1 always gets 2.72 times the weight.

# %%
of_blue = Predict(
    "The dot product with blue is 0. What share of the weights does it get?",
    unit="%",
    off_by=4,
    section="Weights",
)
of_blue

# %% tags=["nbval-check-output"]
exponentials = [math.exp(score) for score in color_products]
color_weights = [each / sum(exponentials) for each in exponentials]
for name, weight in zip(names, color_weights, strict=True):
    print(f"{name:8}weight {weight:.2f}")
of_blue.reveal(round(100 * color_weights[2]), because="1 / (2.72 + 2.72 + 1) = 0.16")

# %% tags=["hide-input"]
# The softmax of the library gives the same, whatever is added to all scores.
for shift in (0, -800, 800):
    softmaxed = (torch.tensor(color_products) + shift).softmax(dim=0)
    torch.testing.assert_close(torch.tensor(color_weights), softmaxed)
assert math.exp(-800) == 0
try:
    raise AssertionError(f"expected an overflow, got {math.exp(800)}")
except OverflowError:
    pass

# %% [markdown]
# Every exponential is above 0, so every key gets some weight (lesson [05](05_masks.ipynb) leaves some out all the same).
# On a computer `math.exp(-800)` is 0.0, and `math.exp(800)` is an error.
# But softmax(s) = softmax(s + c) for any number c, because the factor eᶜ cancels, so libraries subtract the largest score from all of them first.
#
# ### Context
#
# The answer is the mean of the values, each counted with its weight: the **context**.
# "The output is computed as a weighted sum of the values", says section 3.2 of the paper.
#
# For orange, 16 % of blue is too much.
# So `look_up` divides the dot products by a **temperature**, here 0.1: the score is now the dot product divided by the temperature, and differences between scores are ten times as large.


# %%
def look_up(query, keys, values, temperature=0.1):
    """The context of one query, and the weights: a loop over the keys."""
    exponentials = []
    for key in keys:
        product = sum(q * k for q, k in zip(query.tolist(), key.tolist(), strict=True))
        exponentials.append(math.exp(product / temperature))  # of the score
    weights = [each / sum(exponentials) for each in exponentials]
    context = torch.zeros(values.shape[1])
    for weight, value in zip(weights, values, strict=True):
        context += weight * value
    return context, torch.tensor(weights)


# %% tags=["nbval-check-output"]
for temperature in (1, 0.1):
    parts = look_up(orange, color_keys, color_values, temperature)
    told = [" ".join(f"{each:.2f}" for each in part) for part in parts]
    print(f"temperature {temperature:3}: weights {told[1]}, context {told[0]}")

# %% [markdown]
# At 0.1 the context is full red and half green: that is how a screen shows orange.
# At 1 it is darker and has some blue.
# Now four queries, one exact key and three mixtures; `color_bars` draws their weights and contexts, and below them orange at temperature 1.
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
def color_bars(answers, title):
    """A bar of weights for each query, and the color that they mix."""
    figure = new_figure(title, 7.0, 3.4)
    axes = figure.add_subplot(xlabel="weight of each key, and the context as a color")
    axes.set_yticks(range(len(answers)), list(answers))
    axes.set(ylabel="query", xticks=[0, 0.5, 1], ylim=(len(answers) - 0.4, -0.6))
    for row, (context, weights) in enumerate(answers.values()):
        look = dict(left=weights.cumsum(0) - weights, color=color_values.tolist())
        shares = axes.barh([row] * 3, weights, edgecolor="white", **look)
        words = [names[each] if weights[each] > 0.1 else "" for each in range(3)]
        axes.bar_label(shares, words, label_type="center", bbox=dict(color="white"))
        axes.barh(row, 0.2, left=1.1, color=context.tolist(), edgecolor="#444444")
    return figure


# %%
color_queries = {"red": red, "orange": red + yellow, "purple": red + blue}
color_queries["green"] = yellow + blue
answers = {
    name: look_up(query, color_keys, color_values)
    for name, query in color_queries.items()
}
answers["orange, at 1"] = look_up(orange, color_keys, color_values, 1)
of_green.reveal("gray", because="it is the mean of yellow and blue light")
color_bars(answers, "Exact queries find one color, mixed ones a mean; “green” is gray")

# %% tags=["hide-input"]
close = dict(rtol=0, atol=1e-3)
torch.testing.assert_close(answers["red"][0], color_values[0], **close)
torch.testing.assert_close(answers["green"][0], torch.full((3,), 0.5), **close)
for mixture in ("orange", "purple", "green"):
    halves = answers[mixture][1].topk(2).values
    torch.testing.assert_close(halves, torch.tensor([0.5, 0.5]), **close)
torch.testing.assert_close(answers["orange, at 1"][1], torch.tensor(color_weights))
assert answers["orange, at 1"][0][0] < 0.9 and answers["orange, at 1"][0][2] > 0.1

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
    twice_context, twice_weights = look_up(color_query, twice_keys, twice_values)
    print(f"{asked:11}weights {[round(each, 2) for each in twice_weights.tolist()]}")
    print(f"{'':11}context {[round(each, 2) for each in twice_context.tolist()]}")

# %% tags=["hide-input"]
torch.testing.assert_close(twice_weights, torch.tensor([1, 0, 1, 1]) / 3, **close)
twice_context, twice_weights = look_up(blue, twice_keys, twice_values)
assert twice_weights[2] == twice_weights[3]
assert math.isclose(twice_context[2], 0.75, abs_tol=1e-3)

# %% [markdown]
# Each copy gets the score that it would get alone, so two copies get twice the weight of one.
# Beside red, the two blues get two thirds of the weight, where one blue got half.
#
# ### Temperature
#
# What do other temperatures than 0.1 do?
# We ask for 0.9 red and 0.6 yellow.

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
    title="Cold looks up the best key, hot takes the mean of all; the order stays",
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
# A cold softmax is **peaked**: the key with the highest score takes all, and keys that tie for it share.
# A hot one is flat: all keys are nearly equal.
# The paper's score is q · k / √d_k: the temperature is √d_k, 8 in its model. That is not hot, because dot products of wide vectors are larger.
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
for what, matrix in (("x · y", plain_products), ("weight", plain_weights)):
    print(f"{what:8}", *(f"{token:>7}" for token in tokens))
    for token, row in zip(tokens, matrix, strict=True):
        print(f"{token:8}", *(f"{each:7.2g}" for each in row))
itself = tokens[plain_weights[sleeps].argmax()]
finds.reveal(itself, because="no row of zeros and ones matches it better than itself")

# %% tags=["hide-input"]
assert torch.equal(plain_weights.argmax(dim=-1), torch.arange(len(tokens)))
assert torch.equal(plain_products, plain_products.T)
assert plain_products.count_nonzero() == len(tokens)
assert plain_weights[the, cat] > plain_weights[cat, the] + 0.01

# %% [markdown]
# Without projections this is the rule: among rows of equal length, and among rows of zeros and ones, none matches x better than x itself.
# And whatever the rows, x · y = y · x: *sleeps* matches *cat* exactly as well as *cat* matches *sleeps*.
# (The weights may differ, 0.22 and 0.19 between *The* and *cat*, because each row is divided by its own sum.)
# So what a token *asks for* must be different from what it *is found by*.
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
# Now you: what does the full stop find?
# Replace each `...` by a number, from the matrices above, with pencil and paper; `by_hand` (folded) says what is right.


# %% tags=["hide-input"]
def verdict(yours, expected, hint):
    """On numbers that somebody wrote down, to two digits."""
    if ... in yours:
        return "not filled in yet"
    near = (abs(a - b) < 0.011 for a, b in zip(yours, expected, strict=False))
    return "right" if len(yours) == len(expected) and all(near) else f"not yet: {hint}"


def by_hand(scores, weights, context):
    products = X @ w_key @ (X[stop] @ w_query)
    expected = (products / math.sqrt(d_k)).softmax(dim=0)
    print("scores: ", verdict(scores, products / 2, "q · k, divided by √d_k"))
    print("weights:", verdict(weights, expected, "exponentials, divided by their sum"))
    hint = "each row of X @ w_value, times its weight"
    print("context:", verdict(context, expected @ X @ w_value, hint))


# %%
by_hand(
    scores=[..., ..., ..., ...],  # of The, cat, sleeps and the full stop
    weights=[..., ..., ..., ...],
    context=[..., ...],  # animal, asleep
)

# %% tags=["hide-input"]
assert verdict([0, 0, 3, 0], [0, 0, 3, 0], "") == "right"
assert verdict([0, 0, 6, 0], [0, 0, 3, 0], "half").endswith("half")
assert (X @ w_key @ (X[stop] @ w_query) / 2).tolist() == [0, 0, 3, 0]
of_stop = torch.tensor([0.0, 0, 3, 0]).softmax(dim=0)
assert verdict([0.04, 0.04, 0.87, 0.04], of_stop, "") == "right"
assert verdict([0.04], of_stop, "all four").endswith("all four")

# %% [markdown]
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
# The full stop is none of the four kinds, so its key is zero; it and *The* hand over nothing.
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
# Its score with itself is −4/2 = −2, less than the 0 of the full stop, so it gives itself the smallest weight.
# That it is an animal has almost vanished from its context; lesson [06](06_encoder.ipynb) adds the token itself back.
#
# The numbers of Q, K and V can be changed here, and everything after them is computed anew.
# Change only the row *cat* of Q so that *The* gets at least 95 % of its weight.
# Which number did you change, and why can it never be 100 %?
# (An answer is folded below the calculator.)

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

# %% tags=["hide-input", "hide-output"]
changes = {"article from 5 to 12": (0, 12), "verb from 5 to −20": (2, -20)}
of_the = []
for change, (kind, number) in changes.items():
    changed = Q.clone()
    changed[cat, kind] = number
    of_cat = (changed @ K.T / math.sqrt(d_k)).softmax(dim=-1)[cat]
    of_the.append(of_cat[the].item())
    print(f"{change}: The {of_cat[the]:.1%}, the full stop {of_cat[stop]:.1%}")
print("To raise article is enough.")
print("To lower verb is not: the full stop keeps its score 0.")
print("Never 100 %: the exponential of every score is above 0.")
assert of_the[0] > 0.95 > of_the[1] > 0.9

# %% [markdown]
# ### Three words
#
# Explanations often use one name for all of it, so we keep three apart:
#
# | word | what | shape | tells you |
# |---|---|---|---|
# | **scores** | QKᵀ/√d_k, what enters the softmax | (queries, keys) | how well they match, any number |
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
# Is it what the course's library computes, and what PyTorch computes, on random numbers?

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
# They agree up to rounding.
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
projections = [torch.randn(8, width, **exact) for width in (4, 4, 3)]
batched = [batch @ projection for projection in projections]
for name, tensor in zip(("queries", "keys", "values"), batched, strict=True):
    print(f"{name:8}{tuple(tensor.shape)}")

# %% [markdown]
# `batch @ projection` **broadcasts**: each sentence is multiplied by the same matrix.
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
# So lesson [02](02_position.ipynb) adds positions to the rows.
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

for width, three in zip(widths, variances, strict=True):
    for variance, expected in zip(three, (width, 1, 1 / width), strict=True):
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
# And we call a query **saturated** if one key has more than 0.99 of its weight.
#
# Learning needs a gradient: how far do the weights move if the scores move a little?
# With two keys, the weight w of the first changes with its score at the rate w(1 − w): 0.25 at w = 0.5, but 0.0099 at w = 0.99.
# For any number of keys this becomes a matrix of rates, which weight moves with which score: diag(w) − w wᵀ, the **Jacobian** of the softmax.
# Its size is the root of the sum of its squared entries.
# To compare, we ask how the weights move with q · k itself. Where the score is q · k / √d_k, we therefore divide the size of the Jacobian by √d_k.
#
# For each width, `measure` (folded) draws 1,000 queries with 8 keys, five times. It divides the dot products in each of three ways, takes the softmax, and returns what a function such as `saturated` (folded) says of the weights.


# %%
def jacobian_size(weights):
    """How much the weights move with the scores, one number for each row."""
    change = weights.diag_embed() - weights[..., :, None] * weights[..., None, :]
    return change.flatten(-2).norm(dim=-1)


# %% tags=["hide-input"]
def entropy(weights):
    """In nats, one for each row."""
    return torch.special.entr(weights).sum(dim=-1)


def saturated(weights):
    """Whether one key has more than 0.99 of the weight, one for each row."""
    return weights.amax(dim=-1) > 0.99


def draw_products(width, generator, queries=1000, keys=8):
    """Dot products (queries, keys) of random queries and keys, in float64."""
    query = torch.randn(queries, 1, width, generator=generator)
    key = torch.randn(queries, keys, width, generator=generator)
    return (query @ key.mT)[:, 0].double()


# %% tags=["hide-input"]
powers = {"divided by √d_k": 0.5, "not divided": 0, "divided by d_k": 1}
generator = torch.Generator().manual_seed(3)
drawn = {
    width: torch.stack([draw_products(width, generator) for _ in range(5)])
    for width in widths
}


def measure(function):
    """A function of the weights, by what divides: name to (widths, draws, queries)."""
    measured = {}
    for name, power in powers.items():
        divided = (drawn[width] / width**power for width in widths)
        measured[name] = torch.stack([function(each.softmax(-1)) for each in divided])
    return measured


# %% tags=["hide-input"]
entropies = {name: each.mean(dim=-1).T for name, each in measure(entropy).items()}
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
two = torch.tensor([0.99, 0.01], dtype=torch.float64)
assert math.isclose(jacobian_size(two), 2 * 0.99 * 0.01)  # four entries
some = drawn[16][0, 0]
by_autograd = torch.autograd.functional.jacobian(lambda each: each.softmax(-1), some)
torch.testing.assert_close(jacobian_size(some.softmax(-1)), by_autograd.norm())

# %%
shares = {name: each.double().mean((1, 2)) for name, each in measure(saturated).items()}
print(f"{'saturated, d_k:':16}", *(f"{width:6}" for width in widths))
for name, share in shares.items():
    print(f"{name:16}", *(f"{each:6.0%}" for each in share))


# %% tags=["hide-input"]
@styled
def histograms(sizes, title):
    """Shares of queries by the size of their gradient, a panel for each width."""
    figure, bins = new_figure(title, 9.0, 3.4), torch.logspace(-8, 0, 33)
    both = figure.subplots(1, 2, sharey=True)
    for panel, width in zip(both, (64, 1024), strict=True):
        panel.set(xscale="log", xlabel="size of the gradient", title=f"d_k = {width}")
        for number, name in enumerate(("divided by √d_k", "not divided")):
            each = sizes[name][widths.index(width)].flatten().clamp(min=1.1e-8)
            part = torch.full_like(each, 100 / len(each))
            look = dict(histtype="step", ls=("-", "--")[number], lw=2)
            panel.hist(each, bins, weights=part, label=name, **look)
    both[0].set_ylabel("queries (%)")
    both[0].legend(loc="upper left")
    return figure


# %% tags=["hide-input"]
sizes = measure(jacobian_size)
for name, power in powers.items():
    sizes[name] = sizes[name] / torch.tensor(widths)[:, None, None] ** power
histograms(sizes, "Gradients: very different without the scale, nearly equal with it")

# %% tags=["hide-input"]
raw = shares["not divided"]
assert shares["divided by √d_k"].max() < 0.01 and (raw.diff() > 0).all()
assert 0.34 < raw[3] < 0.40 and 0.77 < raw[-1] < 0.83
scaled, unscaled = (sizes[name].flatten(1) for name in list(sizes)[:2])
assert 0.045 < scaled[3].median() < 0.047 and 0.065 < unscaled[3].median() < 0.07
assert unscaled[-1].median() < 1e-4 < 1e-2 < scaled[-1].median()
ends = torch.tensor([0.1, 0.9], dtype=torch.float64)
low, high = scaled[3:].quantile(ends, dim=1)
assert (high < 1.5 * low).all()
low, high = unscaled[3:].quantile(ends, dim=1)
assert (high > 1000 * low).all() and (unscaled[-1] < 1e-8).double().mean() > 0.3
on_one = saturated(drawn[64].softmax(dim=-1)).flatten()
assert unscaled[3][on_one].median() < scaled[3].median() / 20

# %% [markdown]
# (The leftmost bar holds everything below.)
#
# "Regions where it has extremely small gradients", says section 3.2.1 of the softmax without the scale.
# At d_k = 64 small gradients are not the rule without the scale: the median is even larger (0.07 against 0.05). But there is a long tail of tiny ones: 37 % of the queries are already saturated, on a key chosen by chance, and the more weight that key has, the less gradient is left to change it.
# At 1,024 it is 80 %.
# With √d_k, how peaked the weights are hardly depends on d_k.
# Whether that is what slows training, this does not say; an experiment below tests it.
#
# ## The attention before this one
#
# Before the Transformer, @bahdanau2015 let a recurrent translator look at its source.
# Their score is not a dot product but a small network with one hidden layer:
#
# $$\mathrm{score}(q, k) = v^\top \tanh(W_q q + W_k k)$$
#
# Section 3.2.1 calls it **additive attention**.
# W_q and W_k are projections like ours, so `Additive` (folded) takes projected queries and keys, and adds what is new: tanh and v.


# %% tags=["hide-input"]
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
    one = sum(additive.v * torch.tanh(batch_q[0, i] + batch_k[0, j]))
    torch.testing.assert_close(additive_scores[i, j], one, rtol=1e-9, atol=1e-12)

# %% [markdown]
# On the way, it keeps a number for each query, key *and* dimension: d_k times as many as there are scores.
# The paper prefers the dot product because it is matrix multiplication, for which highly optimized code exists.
#
# ## Does the scale matter in training?
#
# The paper cites a study: for small d_k both kinds perform similarly, for large d_k the dot product without the scale falls behind additive attention.
#
# The task is a look-up: eight keys with a value each, and a query that is one of the keys (`look_ups` draws them at random).
# *Which value belongs to it?*


# %% tags=["hide-input"]
def look_ups(size, generator, words=16, entries=8):
    """Ids: queries (size,), keys, values (size, entries), wanted values (size,)."""
    shuffled = torch.rand(size, words, generator=generator).argsort(dim=1)
    keys = shuffled[:, :entries]  # all different
    values = torch.randint(words, (size, entries), generator=generator)
    pick = torch.randint(entries, (size, 1), generator=generator)
    query, wanted = (each.gather(1, pick).squeeze(1) for each in (keys, values))
    return [part.to(device) for part in (query, keys, values, wanted)]


# %%
asked, keys, values, wanted = look_ups(1, torch.Generator().manual_seed(0))
print(dict(zip(keys[0].tolist(), values[0].tolist(), strict=True)))
print(f"asked for {asked.item()}, right is {wanted.item()}")

# %% [markdown]
# The dictionary is new each time, so no pair can be learned by heart.
# What must be learned is *how* to look up: that a query matches the key with the same id.
# The model maps the ids of a query, of keys and of values to a logit for each of the 16 ids.
# Its projections start with random numbers such that queries and keys have about mean 0 and variance 1, as in the footnote.


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


# %% tags=["hide-input"]
def scaled_dot(d_k):
    return lambda query, key: query @ key.mT / math.sqrt(d_k)


def plain_dot(d_k):
    return lambda query, key: query @ key.mT


def new_model(make_score, d_k, seed):
    torch.manual_seed(seed)
    return LookUp(make_score, d_k).to(device)


@torch.no_grad()
def score_table(model):
    """The scores (ids, ids) of every query id with every key id."""
    rows = model.key_words.weight
    return model.score(rows @ model.w_query, rows @ model.w_key)


# %% tags=["hide-input"]
unseen = look_ups(250, torch.Generator().manual_seed(100))  # to test on


@torch.no_grad()
def look(model):
    """Accuracy, and the share of saturated queries."""
    query, keys, values, wanted = unseen
    right = model(query, keys, values).argmax(dim=-1) == wanted
    weights = score_table(model)[query[:, None], keys].softmax(dim=-1)
    return right.float().mean().item(), saturated(weights).float().mean().item()


# %% tags=["hide-input"]
def train(model, seed, rates=lambda name: 5e-3, steps=100, every=10):
    """What `look` sees, before training and after each `every` steps."""
    generator = torch.Generator().manual_seed(1000 + seed)  # of the examples
    named = model.named_parameters()
    groups = [{"params": [each], "lr": rates(name)} for name, each in named]
    optimizer, seen = torch.optim.Adam(groups), [look(model)]
    for step in range(1, steps + 1):
        *inputs, target = look_ups(64, generator)
        loss = F.cross_entropy(model(*inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            seen.append(look(model))
    return seen


# %% [markdown]
# ### Nobody says which ones
#
# `new_model` (folded) makes a model, here with d_k = 16 and `scaled_dot`, q · k / √d_k; `train` shows it 100 batches of 64 look-ups, with Adam at a rate of 0.005.
# `score_table` gives the scores of every query id with every key id.

# %%
torch.set_flush_denormal(True)  # a CPU is slow with numbers that have almost vanished
model = new_model(scaled_dot, 16, seed=0)
before = score_table(model)
train(model, seed=0)
after = score_table(model)

# %% tags=["hide-input"]
numbers = [str(number) for number in range(16)]
axes = dict(xlabel="key id", ylabel="query id")
panels(
    [
        Panel(before.cpu(), numbers, numbers, "step 0", **axes),
        Panel(after.cpu(), numbers, numbers, "step 100", **axes),
    ],
    title="After 100 steps each query id has its highest score with its own key",
    words={"signed": "score"},
)

# %% tags=["hide-input"]
own = torch.arange(16, device=device)
for seed in range(5):
    model = new_model(scaled_dot, 16, seed)
    assert (score_table(model).argmax(dim=1) == own).float().mean() < 0.5
    assert train(model, seed)[-1][0] > 0.95
    assert torch.equal(score_table(model).argmax(dim=1), own)

# %% [markdown]
# Nobody wrote this diagonal.
# The loss did: it counts only the answers, and its gradient went through the softmax into `w_query`, `w_key` and the rows of the ids.
# The same happened with four more seeds: after 100 steps each of the 16 ids finds itself.
#
# ### With the scale and without
#
# Now three kinds of scores (`plain_dot` has no scale), a narrow and a wide d_k, five seeds each (`runs_of`, folded); everything else is the same.
# (The additive score starts with variance below 1 at every width, because of its *v*, and needs no scale.)
# Without a look-up, the best guess is the most frequent of the eight values, right in 26 %.


# %% tags=["hide-input"]
def runs_of(make_score, d_k, start=1, slower=1, those=""):
    """Accuracy and saturated share (5 seeds, points, 2).

    `start` divides w_query before training, `slower` the rates of `those`.
    """

    def rates(name):
        return 5e-3 / (slower if name.startswith(those) else 1)

    runs = []
    for seed in range(5):
        model = new_model(make_score, d_k, seed)
        model.w_query.data /= start
        runs.append(train(model, seed, rates))
    return torch.tensor(runs)


of_scores = "w_query", "w_key", "key_words"


# %% tags=["hide-input"]
@styled
def learning_curves(learned, title):
    """A panel for each d_k: for each kind the mean of its runs, and a band."""
    figure, steps = new_figure(title, 9.0, 3.8), range(0, 101, 10)
    for d_k, panel in zip((16, 256), figure.subplots(1, 2, sharey=True), strict=True):
        panel.set(xlabel="step", ylabel="accuracy", title=f"d_k = {d_k}")
        for number, name in enumerate(choices):
            runs, ink = learned[name, d_k][..., 0], f"C{number}"
            look = dict(color=ink, ls=("-", "--", ":")[number], label=name)
            panel.plot(steps, runs.mean(dim=0), **look)
            panel.fill_between(steps, *runs.aminmax(dim=0), color=ink, alpha=0.15)
        panel.axhline(0.26, color="#555555", ls="-.", lw=1, label="best guess")
    place = dict(loc="outside lower center", ncols=4)
    figure.legend(*panel.get_legend_handles_labels(), **place)
    return figure


# %%
choices = {"q · k / √d_k": scaled_dot, "q · k": plain_dot, "additive": Additive}
learned = {
    (name, d_k): runs_of(make_score, d_k)
    for d_k in (16, 256)
    for name, make_score in choices.items()
}

# %% tags=["hide-input"]
learning_curves(learned, "Without √d_k: slower at d_k = 16, far behind at d_k = 256")

# %% tags=["hide-input"]
last = {key: runs[:, -1, 0] for key, runs in learned.items()}  # (seeds,) each
for name in ("q · k / √d_k", "additive"):
    assert min(last[name, 16].min(), last[name, 256].min()) > 0.9
narrow, wide = last["q · k", 16], last["q · k", 256]
assert narrow.min() > 0.75 and narrow.mean() > 0.9
assert wide.min() < 0.5 < 0.6 < wide.max() and wide.mean() < 0.8
halfway = [learned[name, 16][:, 4, 0].mean() for name in choices]  # step 40
assert halfway[1] < halfway[0] - 0.1
_, _, values, wanted = look_ups(20_000, torch.Generator().manual_seed(5))
counts = F.one_hot(values, 16).sum(dim=1)
frequent = counts == counts.amax(dim=1, keepdim=True)
hits = frequent.gather(1, wanted[:, None])[:, 0] / frequent.sum(dim=1)
assert abs(hits.mean() - 0.26) < 0.01
assert learned["q · k / √d_k", 256][:, 2, 0].min() < 0.26

# %% [markdown]
# Lines are means of five runs, bands go from worst to best; accuracy is on 250 other look-ups.
# With d_k = 16 the scaled and the additive score learn the task in every run; without the scale the worst run ends at about 0.9.
# With d_k = 256 the runs without the scale are far behind, and far apart.
#
# ### The start or the step?
#
# Without the scale the first scores are √d_k = 16 times as large.
# But there is a second difference: in every step the same change of the parameters moves the scores 16 times as far.
# To tell the two apart, we leave the scale out and let `w_query` start divided by 16, so that the first scores equal those of the scaled model.
# And we leave the start as it is, and make the steps smaller: all of them, or those of the scores (`of_scores`: `w_query`, `w_key` and the rows of the ids).

# %%
start_alone = Predict(
    "Does it learn as well with the smaller start as with the scale?",
    ["yes", "no"],
    section="The start or the step?",
)
start_alone

# %%
arms = {
    "with the scale": learned["q · k / √d_k", 256],
    "without": learned["q · k", 256],
    "w_query starts / 16": runs_of(plain_dot, 256, 16),
    "all rates / 4": runs_of(plain_dot, 256, 1, 4),
    "rates of the scores / 16": runs_of(plain_dot, 256, 1, 16, of_scores),
    "w_query: start and rate / 16": runs_of(plain_dot, 256, 16, 16, "w_query"),
}

# %%
print(f"{'':29}saturated at step     accuracy at step")
print(f"{'':29}   0    10   100     10   100")
for name, runs in arms.items():
    full, right = runs[:, [0, 1, -1], 1].mean(dim=0), runs[:, :, 0]
    print(f"{name:29}", *(f"{each:5.0%}" for each in full), end="")
    print(f"   {right[:, 1].mean():.2f}  {right[:, -1].mean():.2f}", end="")
    print(f" ({right[:, -1].min():.2f} to {right[:, -1].max():.2f})")
as_well = arms["w_query starts / 16"][:, -1, 0].mean() > 0.95
start_alone.reveal("yes" if as_well else "no")

# %% tags=["hide-input"]
torch.set_flush_denormal(False)
with_scale, without, start, quarter, slow, both = arms.values()
assert with_scale[:, -1, 0].min() > 0.9 and both[:, -1, 0].min() > 0.9
assert (with_scale - both).mean(dim=0).abs().max() < 0.15
for runs in (without, start, quarter, slow):
    assert runs[:, -1, 0].mean() < 0.8
assert slow[:, 0, 1].mean() > 0.5 and quarter[:, -1, 0].mean() < 0.6
assert with_scale[:, 0, 1].max() == 0 == start[:, 0, 1].max()
assert with_scale[:, 1, 1].mean() < 0.2
assert start[:, 1, 1].mean() > 0.5 > 0.3 > start[:, 1, 0].mean()
assert without[:, 0, 1].mean() > 0.4 and with_scale[:, -1, 1].mean() > 0.9
model = new_model(plain_dot, 256, seed=0)
model.w_query.data /= 16
same_start = score_table(new_model(scaled_dot, 256, seed=0))
torch.testing.assert_close(score_table(model), same_start)

# %% [markdown]
# In these 100 steps the smaller start alone does not make up for the scale.
# At first none of its 1,250 queries is saturated; but `w_query` moves the scores 16 times as far as in the scaled model, and after ten steps most are, while its answers are no better than guessing.
# Smaller steps alone do not either: they leave the start as it is, and they are slow.
#
# The last row changes both, the start of `w_query` and its rate.
# It learns like the scaled model, and it must: it *is* that model in other numbers, as Adam divides by the size of the gradient (lesson [09](09_training.ipynb)).
#
# So √d_k does two things here, the first scores are small, and so is every step of the scores; and neither alone was enough, at the few rates that we tried.
# Saturation is no harm in itself: after 100 steps most queries of the scaled model are saturated, on the right key.
# The paper only *suspects* that small gradients are the reason; our runs fit that, but do not prove it.

# %% [markdown]
# ## What a trained head looks at
#
# *The dog eats the meat because it is hungry.*
# Who is *it*?
# German must know: *er* for the dog, *es* for the meat.
# We ask the translator `course`.

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
hungry = "The dog eats the meat because it is hungry."
for sentence in (hungry, hungry.replace("hungry", "fresh")):
    print(translator.translate(sentence))

# %% [markdown]
# Both pronouns are right.
# Where does *it* look?
# Each layer of the translator holds four attentions side by side, its heads (lesson [04](04_multi_head.ipynb)); this is one of the encoder's last layer.

# %%
seen = translator.translate(hungry, attention=True)
head = seen.attention.encoder[-1][1]  # (queries, keys)
it, dog = (seen.src_tokens.index(token) for token in ("▁it", "▁dog"))
title = f"In this head, “it” gives {100 * head[it, dog]:.0f} % of its weight to “dog”"
attention_map(head, seen.src_tokens, seen.src_tokens, title=title)

# %% tags=["hide-input"]
assert head[it, dog] > 0.8 and torch.allclose(head.sum(dim=-1), torch.ones(len(head)))
assert " er " in str(translator.translate(hungry))
assert " es " in str(translator.translate(hungry.replace("hungry", "fresh")))

# %% [markdown]
# We picked this picture among eight by looking.
# Is it an accident?
# Here are 70 pairs of sentences, each with an eater and a food.
# The eater may be *hungry*, the food *fresh*: one word at the end decides.

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
# Does *it* give more weight to the right noun, the eater (word 1) with *hungry* and the food (word 4) with *fresh*, than to the other one?
# A head that ignores the last word does the same in both sentences of a pair, and is right in one of them: 50 %.

# %% tags=["hide-input"]
from course_lib.recording import record_attention

of_right, of_other = [], []
for word, ids in encoded.items():
    with record_attention(translator.model) as maps, torch.no_grad():
        translator.model.encode(ids)
    of_it = torch.stack(maps.encoder)[..., 6, :]  # (layers, sentences, heads, keys)
    nouns = (1, 4) if word == "hungry" else (4, 1)
    of_right.append(of_it[..., nouns[0]])
    of_other.append(of_it[..., nouns[1]])
of_right, of_other = torch.stack(of_right), torch.stack(of_other)  # a row for each word
of_heads = (of_right > of_other).float().mean(dim=(0, 2))  # (layers, heads)
for layer, row in enumerate(of_heads):
    print(f"layer {layer}:", *(f"{each:5.0%}" for each in row))

# %% [markdown]
# To be fair, we choose the best head on one half of the pairs and count on the other half.

# %%
chosen = (of_right > of_other)[:, :, ::2].float().mean(dim=(0, 2)).argmax().item()
layer, number = divmod(chosen, 4)
rights, others = (each[:, layer, 1::2, number] for each in (of_right, of_other))
count = (rights > others).sum()
print(f"head {number} of layer {layer}: right in {count} of {rights.numel()} sentences")
for word, right_one, other in zip(encoded, rights.mean(1), others.mean(1), strict=True):
    print(f"{word:7} mean weight: right noun {right_one:.2f}, other noun {other:.2f}")

# %% tags=["hide-input"]
assert chosen == 5 and count >= 66 and rights.numel() == 70
assert rights.mean(1).min() > 0.75 and others.mean(1).max() < 0.25
assert (of_heads[0] == 0.5).all()
for ids in encoded.values():
    assert len(ids[0]) == 11 and (ids[:, 6] == ids[0, 6]).all()
assert torch.equal(encoded["hungry"][:, :8], encoded["fresh"][:, :8])

# %% [markdown]
# These 70 sentences did not choose the head, but they share one template and few nouns, and some of their kind were in the training set.
#
# The 50 % of layer 0 are forced: there neither *it* nor the nouns know the last word yet.
# By layer 1 the last word may have changed the row of *it*, and so the query, or those of the nouns, and so the keys.
#
# A weight says where a head looks, not what the model does with it: lesson [12](12_reading_attention.ipynb) asks that.
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
# Ten times the length is a hundred times the weights: O(length²), in each head of each layer.
#
# ## Break it on purpose
#
# Four ways to get it wrong: softmax over the queries, transpose forgotten, a d_k from a default (**a common mistake**), scale forgotten (**a common mistake**).


# %%
def over_queries(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-2)
    return weights @ value, weights


def no_transpose(query, key, value):
    weights = (query @ key / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ value, weights


# %%
def default_d_k(query, key, value, d_k=4):
    weights = (query @ key.mT / math.sqrt(d_k)).softmax(dim=-1)
    return weights @ value, weights


def no_scale(query, key, value):
    weights = (query @ key.mT).softmax(dim=-1)
    return weights @ value, weights


# %% [markdown]
# There are four trials: our sentence, with four tokens and d_k = 4; the same with queries twenty times as long; the same with the identity as K; and random numbers, with 3 queries, 4 keys, d_k = 5 and d_v = 2.
# `tests` (folded) names the first test that a function fails: a crash, the shape of the context, the row sums of the weights, or the values, which must be the library's.


# %% tags=["hide-input"]
def tests(function, query, key, value):
    """The first test that the function fails."""
    try:
        context, weights = function(query, key, value)
    except RuntimeError:
        return "crash"
    expected, _ = attention(query, key, value)
    if context.shape != expected.shape:
        return "shape"
    if not torch.allclose(weights.sum(dim=-1), torch.ones(len(query))):
        return "row sums"
    return "passes" if torch.allclose(context, expected, atol=1e-3) else "values"


# %% [markdown]
# Before you run it: which mistakes are caught in which trial?
# Replace each `?` by *p*, passes, or *c*, is caught.

# %%
guesses = {  # our sentence, long queries, K = identity, random
    over_queries: "????",
    no_transpose: "????",
    default_d_k: "????",
    no_scale: "????",
}

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(5)
shapes = (3, 5), (4, 5), (4, 2)  # queries × d_k, keys × d_k, keys × d_v
trials = {"our sentence": (Q, K, V), "long queries": (20 * Q, K, V)}
trials["K = identity"] = Q, torch.eye(4), V
trials["random"] = [torch.randn(shape, generator=generator) for shape in shapes]
print(f"{'':14}", *(f"{trial:13}" for trial in trials), "your guess")
caught = {}
for function in (attend, *guesses):
    caught[function] = [tests(function, *tensors) for tensors in trials.values()]
    told = [f"{each:13}" for each in caught[function]]
    print(f"{function.__name__:14}", *told, guesses.get(function, ""))

# %% tags=["hide-input"]
assert caught[attend] == ["passes"] * 4 and not torch.equal(K, K.T)
assert caught[over_queries] == ["row sums"] * 4
assert caught[no_transpose] == ["values", "values", "passes", "crash"]
assert caught[default_d_k] == ["passes"] * 3 + ["values"]
assert caught[no_scale] == ["values", "passes", "values", "values"]

# %% [markdown]
# No result ever has a wrong shape.
# Rows that sum to 1 catch the softmax.
# A missing transpose passes wherever K equals its own transpose, and crashes at once where all sizes differ.
# The default of 4 passes wherever d_k is 4: take d_k from the query's own shape.
# And where scores are so large that one key takes all, or tied keys share, the scale makes no difference: test with numbers of ordinary size.
#
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
# - **scores**: what enters the softmax; in the paper QKᵀ/√d_k, dot products divided by √d_k.
# - **weights**: the proportions after the softmax; each row sums to 1.
# - **context**: weights times values, one row for each query.
# - **temperature**: what dot products are divided by before the softmax; cold is peaked, hot is flat.
# - **entropy**: how evenly weights are spread, from 0 to the logarithm of their number.
# - **Jacobian**: the matrix of how each output of a function changes with each input.
# - **saturated**: said of a query one of whose keys has more than 0.99 of its weight; the closer to 1, the less gradient the softmax passes on.
# - **additive attention**: scores from a small network with tanh, older than the Transformer's.
# - **self-attention**: attention whose queries, keys and values come from one sequence.
# - **cross-attention**: attention whose queries come from one sequence, keys and values from another.

# %% [markdown]
# ## Summary
#
# Attention is a soft look-up: a query is compared with all keys, and gets a weighted mean of their values.
# Scores become weights by a softmax over the keys, and weights times values are the context, one row for each query.
# Queries, keys and values are learned projections of tokens; queries and keys share d_k, each key has a value, and any number of queries can ask any number of keys.
# The dot product of independent numbers with mean 0 and variance 1 has variance d_k; division by √d_k brings it back to 1, whatever the width. In our small training the unscaled model fell behind, and neither a smaller start nor smaller steps alone made up for the scale.
# Shapes catch few mistakes: rows must sum to 1, sizes in tests must differ, no softmax may be saturated, and a second implementation must agree.
#
# **Practice**: [assignment 03](assignments/release/03_attention/03_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [04](04_multi_head.ipynb): one look-up gives one mean for each token, but a token may need several.
