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
# ## One word at the end
#
# We give two sentences to the small course translator.
# They differ in the last word only.

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
hungry = "The dog eats the meat because it is hungry."
fresh = hungry.replace("hungry", "fresh")
for sentence in (hungry, fresh):
    print(translator.translate(sentence))

# %% tags=["hide-input"]
assert " er " in str(translator.translate(hungry))
assert " es " in str(translator.translate(fresh))

# %% [markdown]
# German says *er* for the dog (*der Hund*, masculine) and *es* for the meat (*das Fleisch*, neuter), so both translations are right.
# Yet the word *it* is the same in both sentences.
# What decides is *hungry* or *fresh*, two words later.
# So something must travel from one token to another, and nobody told the model from which to which.
#
# Attention does that.
# We build attention from a dictionary of three colors. At the end we look where *it* looks.
#
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
# To match *more or less*, queries and keys become vectors.
# We shall compare them number by number, so they must have the same width, d_k in the paper.
# The width of the values is d_v.

# %%
names = list(dictionary)
red, yellow, blue = color_keys = torch.eye(3)  # (keys, d_k), a direction for each
color_values = torch.tensor([dictionary[name] for name in names])  # (keys, d_v)
orange = red + yellow  # a query: some red, some yellow

# %% [markdown]
# Keys and values have three numbers each, but with different meanings.
# In a key they stand for the *names* red, yellow and blue.
# In a value they are amounts of red, green and blue *light*.
# So (1, 1, 0) as a query means *red and yellow*; as a value it is the color yellow.
#
# ### Dot products
#
# How well does a key match the query?
# We take their **dot product**: multiply number by number, then sum.
# It is large if both have large numbers of the same sign in the same places.
# Numbers of opposite signs make it smaller, even negative.
# It is 0 if the vectors are perpendicular.

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
# The softmax of the library gives the same, whatever is added to all scores:
# softmax(s + c) = softmax(s), because the factor exp(c) cancels. So libraries subtract
# the largest score first. Without that, exp(800) is an error, and exp(-800) is 0.0.
for shift in (0, -800, 800):
    softmaxed = (torch.tensor(color_products) + shift).softmax(dim=0)
    torch.testing.assert_close(torch.tensor(color_weights), softmaxed)
assert math.exp(-800) == 0
try:
    raise AssertionError(f"expected an overflow, got {math.exp(800)}")
except OverflowError:
    pass

# %% [markdown]
# Every exponential is above 0, so every key gets some weight.
# (Adding the same number to all scores changes no weight: folded.)
#
# ### Context
#
# The answer is the weighted mean of the values: the **context**.
#
# For orange, 16 % of blue is too much.
# So we divide the dot products by a **temperature**, here 0.1.
# The quotients are now the scores, and their differences are ten times as large.


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
#
# Now one exact query, three mixtures, and orange at 1 again. `color_bars` (folded) draws their weights and contexts.
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

# %% tags=["hide-input"]
# The same key twice: a bright blue and a dark one.
twice_keys = torch.stack([red, yellow, blue, blue])
twice_values = torch.cat([color_values, torch.tensor([[0.0, 0.0, 0.5]])])
twice_context, twice_weights = look_up(red + blue, twice_keys, twice_values)
torch.testing.assert_close(twice_weights, torch.tensor([1, 0, 1, 1]) / 3, **close)
twice_context, twice_weights = look_up(blue, twice_keys, twice_values)
assert twice_weights[2] == twice_weights[3]
assert math.isclose(twice_context[2], 0.75, abs_tol=1e-3)

# %% [markdown]
# An exact query finds what the dictionary has.
# *Green* comes out gray, and it could never come out green.
# A weighted mean lies *between* the values, and none of our values has more green light than red.
#
# A dictionary cannot hold a key twice. A soft look-up can, and each copy counts.
# If *blue* is there twice, purple gives red and each blue a third of its weight (folded).
#
# ### Temperature
#
# What do other temperatures than 0.1 do? (We call a low one cold and a high one hot.)
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
# At a low temperature the softmax is **peaked**: the best key takes nearly all, and keys that tie for the first place share it.
# At a high one it is flat: all count nearly the same, in the same order.
# We divided by 0.1. The paper divides by √d_k: *Why √d_k?* below tells why.
#
# ## A sentence looks itself up
#
# *The cat sleeps.* has four tokens, and each may need something from the others.
# A verb needs to know who does it.
# A noun needs to know its article and its verb.
#
# In lesson 01 a token is a row of learned numbers without names.
# Here we write the rows by hand and name their columns, so that we can read them.

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
# The temperature is √6, the root of the width of the rows.

# %%
finds = Predict(
    "Each token asks with its own row. Whom does *sleeps* find?",
    ["sleeps", "cat", "The and cat alike"],
    section="First without parameters",
)
finds

# %%
plain_products = X @ X.T  # (queries, keys)
plain_weights = (plain_products / math.sqrt(d_model)).softmax(dim=-1)

# %% tags=["hide-input", "nbval-check-output"]
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
# Weights are not symmetric, because each row is divided by its own sum.
assert plain_weights[the, cat] > plain_weights[cat, the] + 0.01

# %% [markdown]
# This is the rule, not an accident.
# If all rows have the same norm, or consist of zeros and ones, no row matches x better than x itself.
# And whatever the rows, x · y = y · x: *sleeps* matches *cat* exactly as well as *cat* matches *sleeps*.
# So what a token *asks for* must be different from what it *is found by*.
#
# ### Three projections
#
# Three matrices *project* each token to three vectors.
# `w_query` says what a token asks for, `w_key` what it can be found by, `w_value` what it hands over.
# For now we write them by hand, a row for each feature.
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
# A row of zeros and ones, times a matrix, adds the rows of the matrix that the ones pick.
# *Sleeps* is a verb and asleep.
# So its query is the row *verb* of `w_query` (W_Q below), plus the row *asleep*, which is all zeros: (0, 4, 0, 2).
#
# The paper calls the products Q, K and V. They hold all queries, all keys and all values, one in each row.

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
assert Q[sleeps].tolist() == [0, 4, 0, 2]
assert [kinds[k] for k in Q[sleeps].nonzero()] == ["noun", "animal"]
assert [kinds[k] for k in K[cat].nonzero()] == ["noun", "animal"]
assert [kinds[k] for k in (Q[cat] > 0).nonzero()] == ["article", "verb"]
assert V[[the, stop]].count_nonzero() == 0 == K[stop].count_nonzero()

# %% [markdown]
# The frames follow *sleeps*.
# The key of the full stop is all zeros, for it is none of the four kinds.
#
# ### One query, in a loop
#
# What does *sleeps* find now?
# The steps are those of the colors, with the temperature √d_k = 2.

# %% tags=["nbval-check-output"]
query = Q[sleeps]  # (d_k,)
scores = []
for token, key in zip(tokens, K, strict=True):
    terms = " + ".join(f"{q:.0f}·{k:.0f}" for q, k in zip(query, key, strict=True))
    scores.append((query @ key).item() / math.sqrt(d_k))
    print(f"sleeps · {token:6} = {terms} = {query @ key:.0f}", end="")
    print(f"; divided by √4: {scores[-1]:.1f}")

# %% tags=["nbval-check-output"]
total = sum(math.exp(score) for score in scores)
weights = [math.exp(score) / total for score in scores]
context = torch.zeros(d_v)
for token, value, weight in zip(tokens, V, weights, strict=True):
    context += weight * value
    print(f"{token:8}weight {weight:.2f}")
told = [f"{fact} {each:.2f}" for fact, each in zip(facts, context, strict=True)]
print("context:", ", ".join(told))

# %% [markdown]
# *Cat* is a noun and an animal, so two products add up.
# *Sleeps* finds *cat*, and learns that an animal sleeps.
#
# Now you: what does the full stop find?
# Replace each `...` by a number, from Q, K and V above, with pencil and paper; `by_hand` (folded) says what is right.


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
# Does `by_hand` tell right from wrong?
assert verdict([0, 0, 3, 0], [0, 0, 3, 0], "") == "right"
assert verdict([0, 0, 6, 0], [0, 0, 3, 0], "half").endswith("half")
assert (X @ w_key @ (X[stop] @ w_query) / 2).tolist() == [0, 0, 3, 0]
of_stop = torch.tensor([0.0, 0, 3, 0]).softmax(dim=0)
assert verdict([0.04, 0.04, 0.87, 0.04], of_stop, "") == "right"
assert verdict([0.04], of_stop, "all four").endswith("all four")

# %% [markdown]
# ### All queries at once
#
# For all four tokens at once, the loop becomes two matrix products.
# That is equation 1 of the paper:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Entry (i, j) of QKᵀ is the dot product of query i and key j: how relevant token j is for token i.
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

# %% [markdown]
# Four of these boxes are 4 × 4. For Q and K that is an accident: d_k is 4, like the number of tokens.
# Read the words below the boxes. Such accidents hide mistakes, as *Break it on purpose* shows.
#
# ### Three words
#
# Three results are easily confused:
#
# | word | what | shape | tells you |
# |---|---|---|---|
# | **scores** | QKᵀ/√d_k, what enters the softmax | (queries, keys) | how well they match, any number |
# | **weights** | softmax of the scores | (queries, keys) | proportions, rows sum to 1 |
# | **context** | weights · V | (queries, d_v) | what each query takes away |
#
# ### What does the cat take?
#
# *Cat* asks for an article and for a verb, and not for a noun.

# %%
on_the = Predict(
    "What weight does *cat* give to *The*?",
    unit="%",
    off_by=5,
    section="What does the cat take?",
)
on_the

# %%
why = "*The* and *sleeps* match equally well, the other two badly"
on_the.reveal(round(100 * weights[cat, the].item()), because=why)

# %% [markdown]
# Here is all of it in one picture.
# Change Q, K or V, and everything after them is computed anew.

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
# Its score with itself, −4/2 = −2, is even below that with the full stop, so *cat* gives itself the smallest weight.
# That it is an animal has almost vanished from its context; lesson [06](06_encoder.ipynb) adds the token itself back.
#
# Now you: in the picture, change only the row *cat* of Q so that *The* gets at least 95 % of its weight.
# Which number did you change, and why can it never be 100 %?
# (An answer follows.)

# %% tags=["hide-input", "hide-output"]
# One answer, and one change that is not enough.
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

# %%
from course_lib.figures import attention_map

german = ["Die", "Katze", "schläft"]
X_german = torch.eye(3)  # article, noun, verb: not as wide as X
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
# Only d_k must be the same: (queries × d_k) times (d_k × keys) gives queries × keys.
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
# We compare `attend` with the course's library and with PyTorch, on random numbers.

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
# For QKᵀ, `transpose(-2, -1)` turns each sentence's K.
# `@` multiplies sentence by sentence, so `attend` works as it is.

# %%
with_at, _ = attend(*batched)
print(f"context {tuple(with_at.shape)}")

# %% tags=["hide-input"]
singly = torch.stack([attend(*parts)[0] for parts in zip(*batched, strict=True)])
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
# ## Who writes the matrices?
#
# We wrote `w_query` and `w_key` by hand, so we did say who finds whom.
# Can a model find that out itself, from right answers alone?
# (Lesson [09](09_training.ipynb) explains training: loss, gradient, batches, Adam. Here we only watch.)
#
# The task is a look-up: eight keys with a value each, and a query that is one of the keys (`look_ups` draws from 16 ids).
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
# What can be learned is *how* to look up: find the key with the query's id, and answer with its value.
# The model maps the ids of a query, of keys and of values to a logit for each of the 16 ids.


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


def saturated(weights):
    """Whether one key has more than 0.99 of the weight, one for each row."""
    return weights.amax(dim=-1) > 0.99


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
# `new_model` (folded) makes a model, here with d_k = 16 and `scaled_dot`, q · k / √d_k.
# `train` shows it 100 batches of 64 look-ups, with Adam at a learning rate of 0.005.
# `score_table` gives the scores of every query id with every key id.
# Before and after, we ask for each key printed above.

# %%
torch.set_flush_denormal(True)  # a CPU is slow with numbers that have almost vanished
each_key = keys[0], keys.expand(8, -1), values.expand(8, -1)  # asked for in turn
model = new_model(scaled_dot, 16, seed=0)
before, guesses = score_table(model), model(*each_key).argmax(dim=-1)
train(model, seed=0)
after, replies = score_table(model), model(*each_key).argmax(dim=-1)

# %% tags=["hide-input"]
for what, row in (("asked for key", keys[0]), ("its value", values[0])):
    print(f"{what:21}", *(f"{each:5}" for each in row.tolist()))
on_asked = {}  # step to the weight of the key that is asked for, (8,)
for step, made, answered in ((0, before, guesses), (100, after, replies)):
    on_asked[step] = made[keys[0]][:, keys[0]].softmax(dim=-1).diagonal()
    print(f"step {step:3}: key's weight", *(f"{each:5.2f}" for each in on_asked[step]))
    print(f"{'':10}answer     ", *(f"{each:5}" for each in answered.tolist()))

# %% tags=["hide-input"]
assert torch.equal(replies, values[0]) and (guesses == values[0]).sum() <= 3
assert on_asked[0].mean() < 0.5 and on_asked[100].min() > 0.9

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
# Now all eight answers are right, and nobody wrote this diagonal.
# The loss counts only the answers, but its gradient went through the softmax into `w_query`, `w_key` and the embeddings of the ids.
# With four more seeds too, every id finds itself.
#
# It works because the look-up is soft.
# Every key has some weight, so a score that rises a little moves the answer a little, and the gradient says which way is better.
# A *hard* look-up, like the Python dictionary's, gives the scores no gradient: a key is found or it is not.
#
# ## Why √d_k?
#
# So a look-up must be soft while it learns.
# Is it soft at the start, when queries and keys are random?
# A dot product sums d_k products.
# Take numbers with mean 0 and variance 1, all independent.

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
# Why like d_k?
# Each product qᵢkᵢ has mean 0 and variance E[qᵢ²]·E[kᵢ²] = 1.
# Variances of independent terms add: d_k terms give d_k, as the paper's footnote 4 says.
#
# Dividing by c divides the variance by c², so c = √d_k gives 1 at every width.
# The paper's base model has d_k = 64: such dot products have a standard deviation of 8, and it divides by 8.
# (The dot products of our colors were too close together, so we divided by 0.1.)
#
# ### What large scores do
#
# Here are one query's dot products with eight keys, all random, at d_k = 64, then its weights.

# %%
generator = torch.Generator().manual_seed(1)
one_query = torch.randn(64, generator=generator)
eight_keys = torch.randn(8, 64, generator=generator)
eight_products = eight_keys @ one_query
unscaled_weights = eight_products.softmax(dim=-1)
scaled_weights = (eight_products / 8).softmax(dim=-1)

# %% tags=["hide-input"]
print(f"{'q · k':12}", *(f"{each:5.1f}" for each in eight_products))
for divisor, eight_weights in ((1, unscaled_weights), (8, scaled_weights)):
    told = " ".join(f"{each:5.2f}" for each in eight_weights)
    print(f"divided by {divisor} {told}")

# %% tags=["hide-input"]
assert unscaled_weights.argmax() == 3 and unscaled_weights[3] > 0.998
assert abs(scaled_weights[3] - 0.5) < 0.01 and (scaled_weights > 0.015).all()

# %% [markdown]
# Without the division this look-up is as good as hard: the fourth key has nearly all the weight, by chance.
# Divided by 8, it has half, and the other keys still count.
#
# How fast does a weight w move with its q · k?
# We measure this *rate*: we add 0.1 to one q · k, and divide w's move by 0.1.

# %%
eight_rates = {}  # by divisor: the weights, and how far each moves per 1 of its q · k
for divisor, eight_weights in ((8, scaled_weights), (1, unscaled_weights)):
    raised = (eight_products + 0.1 * torch.eye(8)) / divisor  # a row for each key
    moved = raised.softmax(dim=-1).diagonal() - eight_weights
    eight_rates[divisor] = eight_weights, moved / 0.1

# %% tags=["hide-input"]
w = torch.linspace(0, 1, 101)
slopes = {"divided by 8: w(1 − w) / 8": (w, w * (1 - w) / 8)}
slopes["not divided: w(1 − w)"] = w, w * (1 - w)
title = "The largest weight: at the foot of the high curve, on top of the low one"
axes = dict(xlabel="weight w", ylabel="rate: how fast w moves with its q · k")
figure = curves(slopes, **axes, title=title)
(chart,), arrow = figure.axes, dict(ha="center", arrowprops=dict(arrowstyle="->"))
for number, (eight_weights, moved) in enumerate(eight_rates.values()):
    chart.lines[number].set_markevery([])  # the marker stays in the legend
    ink, told = chart.lines[number].get_color(), f"largest w:\nrate {moved[3]:.4f}"
    chart.plot(eight_weights, moved, "os"[number], color=ink, zorder=3)
    tip = eight_weights[3], moved[3]
    chart.annotate(told, tip, ((0.5, 0.8)[number], 0.055), **arrow)
figure

# %% tags=["hide-input"]
for divisor, (eight_weights, moved) in eight_rates.items():
    expected = eight_weights * (1 - eight_weights) / divisor
    torch.testing.assert_close(moved, expected, rtol=0.1, atol=0)
    # The rate is the slope of the weight in its own q · k, as autograd finds it.
    slope = eight_products.clone().requires_grad_()
    (slope / divisor).softmax(dim=-1)[3].backward()
    assert math.isclose(slope.grad[3], expected[3], rel_tol=0.01)
    assert eight_weights.argmax() == 3
assert 19 < eight_rates[8][1][3] / eight_rates[1][1][3] < 25
assert eight_rates[8][1].argmax() == 3 and 0.031 < eight_rates[8][1][3] < 0.0315
assert eight_rates[1][1].max() < 0.002

# %% [markdown]
# The points lie on the curves, the softmax's slope w(1 − w) over the divisor: highest at w = 0.5, tiny at the ends.
# With the *scale*, the division by √d_k, this largest weight moves about 22 times as fast: more gradient gets through.
#
# We call a query **saturated** if one key has more than 0.99 of its weight (the right foot of the curves).
# How many are? We draw 5,000 queries for each width, with 8 keys each.


# %% tags=["hide-input"]
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
shares = {name: each.double().mean((1, 2)) for name, each in measure(saturated).items()}
print(f"{'saturated, d_k:':16}", *(f"{width:6}" for width in widths))
for name, share in shares.items():
    print(f"{name:16}", *(f"{each:6.0%}" for each in share))


# %% tags=["hide-input"]
raw = shares["not divided"]
assert shares["divided by √d_k"].max() < 0.005 and (raw.diff() > 0).all()
assert shares["divided by d_k"].max() < 0.005
assert 0.34 < raw[3] < 0.40 and 0.77 < raw[-1] < 0.83
nearly_even = (drawn[1024] / 1024).softmax(dim=-1)
assert nearly_even.shape[-1] == 8 and (nearly_even - 1 / 8).abs().max() < 0.025


# %% tags=["hide-input"]
def jacobian_size(weights):
    """How much all weights move with all scores, one number for each row."""
    change = weights.diag_embed() - weights[..., :, None] * weights[..., None, :]
    return change.flatten(-2).norm(dim=-1)


def largest_rate(weights):
    """How much the largest weight moves with its own score, one for each row."""
    largest = weights.amax(dim=-1)
    return largest * (1 - largest)


# %% tags=["hide-input"]
@styled
def rate_histograms(rates, title):
    """A panel for each name: the rates of its sorts of queries, their bars stacked."""
    two = new_figure(title, 8.0, 4.4).subplots(2, sharex=True, sharey=True)
    for panel, ink, (name, sorts) in zip(two, ("C0", "C1"), rates.items(), strict=True):
        parts, full = list(sorts.values()), torch.cat(list(sorts.values()))
        one = [torch.full_like(each, 1 / len(full)) for each in parts]
        told = [f"{sort}: {each.mean():.3f}" for sort, each in sorts.items()]
        look = dict(color=[ink, "#222222"][: len(parts)], label=told, stacked=True)
        panel.hist(parts, 80, range=(0, 0.25), weights=one, **look)
        panel.axvline(full.mean(), color="k", ls="--", label=f"all: {full.mean():.3f}")
        panel.set(title=name, ylabel="share of queries")
        panel.legend(loc="upper right", title="mean rate of")
    panel.set(xlabel="rate: how fast the largest weight moves with its q · k")
    return panel.figure


# %% [markdown]
# Without the scale, chance has decided 37 % of the look-ups at d_k = 64, and 80 % at 1,024.
# With it hardly any are decided, at any width.
# Division by d_k also prevents this, but goes too far: at 1,024 all eight weights are nearly 1/8, whatever the query (folded).
#
# The paper (section 3.2.1) suspects that large dot products push the softmax "into regions where it has extremely small gradients".
# Is that so? Here are the 5,000 largest weights' *rates* at d_k = 64.

# %% tags=["hide-input"]
# Rates with q · k itself, where the score is q · k divided by something.
by_size, by_rate = measure(jacobian_size), measure(largest_rate)
for name, power in powers.items():
    divisors = torch.tensor(widths)[:, None, None] ** power
    by_size[name], by_rate[name] = by_size[name] / divisors, by_rate[name] / divisors
scaled, unscaled = (by_rate[name].flatten(1) for name in list(powers)[:2])
on_one = saturated(drawn[64].softmax(dim=-1)).flatten()  # without the scale
percent, rest = (f"{each.double().mean():.0%}" for each in (on_one, ~on_one))
by_sort = {f"{rest} not saturated": unscaled[3][~on_one]}
by_sort[f"{percent} saturated"] = unscaled[3][on_one]
rate_histograms(
    {"divided by √d_k": {"100% not saturated": scaled[3]}, "not divided": by_sort},
    f"Without the scale {percent} of the largest weights hardly move; "
    "most others move faster",
)

# %% tags=["hide-input"]
assert 0.34 < on_one.double().mean() < 0.40
assert saturated((drawn[64] / 8).softmax(dim=-1)).double().mean() < 0.001
assert scaled[3].min() > 0.005 and scaled[3].max() < 0.25 / 8 + 1e-6
assert (unscaled[3] > scaled[3])[~on_one].double().mean() > 0.8
assert (unscaled[3] < 1 / 320).double().mean() > 0.2
assert 0.0265 < scaled[3].median() < 0.0285 and 0.035 < unscaled[3].median() < 0.04
assert unscaled[-1].median() < 1e-5 < 5e-3 < scaled[-1].median()
assert 0.0015 < unscaled[3][on_one].mean() < 0.0025
assert 0.0285 < scaled[3][on_one].mean() < 0.0315
assert unscaled[3][~on_one].mean() > 4 * scaled[3][~on_one].mean()
assert unscaled[3][on_one].max() < 0.01 and unscaled[3][on_one].median() < 0.001
assert unscaled[3][on_one].median() < scaled[3].median() / 20
assert (unscaled[1:].mean(dim=1) > 1.5 * scaled[1:].mean(dim=1)).all()
assert 0.075 < unscaled[3].mean() < 0.085 and 0.025 < scaled[3].mean() < 0.03

# %% tags=["hide-input"]
# All rates at once, the Jacobian of the softmax, tell the same.
scaled, unscaled = (by_size[name].flatten(1) for name in list(powers)[:2])
assert scaled[3].median() < unscaled[3].median()
assert unscaled[-1].median() < 1e-4 < 1e-2 < scaled[-1].median()
ends = torch.tensor([0.1, 0.9], dtype=torch.float64)
low, high = scaled[3:].quantile(ends, dim=1)
assert (high < 1.5 * low).all()
low, high = unscaled[3:].quantile(ends, dim=1)
assert (high > 1000 * low).all() and (unscaled[-1] < 1e-8).double().mean() > 0.3
some = drawn[16][0, 0]
by_autograd = torch.autograd.functional.jacobian(lambda each: each.softmax(-1), some)
torch.testing.assert_close(jacobian_size(some.softmax(-1)), by_autograd.norm())

# %% [markdown]
# It is true of the saturated queries: mean rate 0.002; with the scale, that of all is 0.027.
# But the others are so fast (0.129) that the mean of *all* is larger: 0.082.
# Which matters more? We try it in training.
#
# ## Does the scale matter in training?
#
# We train the look-up again. Its queries and keys start with about mean 0 and variance 1, as above.
# We compare three scores at d_k = 16 and at d_k = 256, five runs each (`runs_of`, folded):
#
# - *scaled*: q · k / √d_k (`scaled_dot`, folded);
# - *plain*: q · k (`plain_dot`, folded);
# - **additive attention**: vᵀ tanh(q + k) with a learned vector v, a small network (`Additive`, folded). It is older: @bahdanau2015 used it to let a recurrent translator look at its source.
#
# Without a look-up, the best guess is the most frequent of the eight values. It is right 26 % of the time.


# %% tags=["hide-input"]
class Additive(nn.Module):
    """Scores (..., queries, keys) of projected queries and keys: v · tanh(q + k)."""

    def __init__(self, d_k):
        super().__init__()
        # With this v the scores start with variance below 1: no scale needed.
        self.v = nn.Parameter(torch.randn(d_k) / math.sqrt(d_k))

    def forward(self, query, key):
        sums = query[..., :, None, :] + key[..., None, :, :]
        return torch.tanh(sums) @ self.v  # sums: (..., queries, keys, d_k)


# %% tags=["hide-input"]
torch.manual_seed(4)
additive = Additive(4).double()
batch_q, batch_k, _ = batched
additive_scores = additive(batch_q[0], batch_k[0])
for i, j in ((0, 0), (2, 5), (5, 1)):
    one = sum(additive.v * torch.tanh(batch_q[0, i] + batch_k[0, j]))
    torch.testing.assert_close(additive_scores[i, j], one, rtol=1e-9, atol=1e-12)


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
# The scale matters, most of all for wide keys.
# At d_k = 256 the plain score is far behind, while the scaled and the additive score learn the task in every run.
# At d_k = 16 it is only slower, and its worst run ends at about 0.9.
# (Lines are means, bands go from the worst run to the best; accuracy is on 250 other look-ups.)
#
# The paper cites a study that found the same at large d_k.
# The paper still prefers the dot product, for which highly optimized code exists. The additive score must keep d_k numbers for every pair of query and key.
#
# ### The start or the step?
#
# Does the scale matter at the *start* of training, or at each *step* of it?
# At d_k = 256 it divides by 16. So all scores start 16 times as small, and each step moves them 16 times less.
# (Adam's steps are about equally long, whether the gradients are large or small.)
# We leave the scale out and change `w_query` alone:
#
# - *small start only*: it starts 16 times as small;
# - *small steps only*: its learning rate is 16 times as small (`w_key` and the embeddings move as before);
# - *both*: this must equal the scale.

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
    "small start only": runs_of(plain_dot, 256, 16),
    "small steps only": runs_of(plain_dot, 256, 1, 16, "w_query"),
    "both": runs_of(plain_dot, 256, 16, 16, "w_query"),
}

# %% tags=["hide-input"]
print(f"{'':18}saturated at step   accuracy at step 100")
print(f"{'':18}    0    10   100     mean (worst to best run)")
for name, runs in arms.items():
    full, right = runs[:, [0, 1, -1], 1].mean(dim=0), runs[:, -1, 0]
    print(f"{name:18}", *(f"{each:5.0%}" for each in full), end="")
    print(f"{right.mean():9.2f} ({right.min():.2f} to {right.max():.2f})")
as_well = arms["small start only"][:, -1, 0].mean() > 0.95
start_alone.reveal("yes" if as_well else "no")

# %% tags=["hide-input"]
# Each share is one of 5 runs × 250 look-ups = 1,250 queries.
with_scale, without, start, small_steps, both = arms.values()
of_scores = "w_query", "w_key", "key_words"
slow = runs_of(plain_dot, 256, 1, 16, of_scores)  # steps of all that makes the scores
quarter = runs_of(plain_dot, 256, 1, 4)  # all steps
torch.set_flush_denormal(False)
assert with_scale[:, -1, 0].min() > 0.9 and both[:, -1, 0].min() > 0.9
assert (with_scale - both).mean(dim=0).abs().max() < 0.15
for runs in (without, start, small_steps, quarter, slow):
    assert runs[:, -1, 0].mean() < 0.8
for runs in (start, small_steps):
    assert (runs - without)[:, -1, 0].mean().abs() < 0.25
    assert runs[:, -1, 0].max() > 0.8
assert slow[:, 0, 1].mean() > 0.5 and quarter[:, -1, 0].mean() < 0.6

# %% tags=["hide-input"]
assert with_scale[:, 0, 1].max() == 0 == start[:, 0, 1].max()
assert with_scale[:, 1, 1].mean() < 0.2 and with_scale[:, -1, 1].mean() > 0.9
assert start[:, 1, 1].mean() > 0.5
assert torch.equal(small_steps[:, 0], without[:, 0]) and without[:, 0, 1].mean() > 0.5
assert small_steps[:, 1, 1].mean() > small_steps[:, 0, 1].mean() + 0.1
model = new_model(plain_dot, 256, seed=0)
model.w_query.data /= 16
same_start = score_table(new_model(scaled_dot, 256, seed=0))
torch.testing.assert_close(score_table(model), same_start)

# %% [markdown]
# The scale matters at both: neither change alone helps on average in these 100 steps, and together they do as well as the scale.
# (To slow `w_key` and `key_words` too is not enough: folded.)
#
# The saturated queries suggest why.
# A small start alone does not last: each step of `w_query` still moves the scores 16 times as far as with the scale, and after ten steps 74 % are saturated.
# Small steps alone come too late: 59 % are saturated from the start, on keys that chance has chosen.
# With both, as with the scale, it is 4 % after ten steps.
#
# At the end nearly all queries are saturated in every row; with the scale, on the right keys.
# So a look-up may end hard. What seems to hurt is being hard *before* anything is learned.
# (Our runs do not prove that the reason is small gradients, as the paper suspects: Adam evens them out.)

# %% [markdown]
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
# Ten times the length is a hundred times the weights: O(length²), in every attention of a model.
#
# ## Break it on purpose
#
# Four mistakes raise no error on our sentence:
#
# - the softmax runs over the queries;
# - the transpose is forgotten;
# - d_k comes from a default (**a common mistake**);
# - the scale is forgotten (**a common mistake**).


# %%
def over_queries(query, key, value):  # .mT transposes the last two dimensions
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
# We put each mistake through four trials:
#
# - *our sentence*: Q, K and V of *The cat sleeps.*;
# - *long queries*: the same, with Q 20 times as large;
# - *K = identity*: the same, with the identity as K;
# - *random*: random numbers, with 3 queries, 4 keys, d_k = 5 and d_v = 2.
#
# `tests` (folded) names the first thing that is wrong: a crash, the shape of the context, the row sums of the weights, or the values, which must equal the library's.


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


# %%
best_trial = Predict(
    "Only one trial catches all four mistakes. Which?",
    ["our sentence", "long queries", "K = identity", "random"],
    section="Break it on purpose",
)
best_trial

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(5)
shapes = (3, 5), (4, 5), (4, 2)  # queries × d_k, keys × d_k, keys × d_v
trials = {"our sentence": (Q, K, V), "long queries": (20 * Q, K, V)}
trials["K = identity"] = Q, torch.eye(4), V
trials["random"] = [torch.randn(shape, generator=generator) for shape in shapes]
print(f"{'':14}", *(f"{trial:13}" for trial in trials))
caught = {}
for function in (attend, over_queries, no_transpose, default_d_k, no_scale):
    caught[function] = [tests(function, *tensors) for tensors in trials.values()]
    print(f"{function.__name__:14}", *(f"{each:13}" for each in caught[function]))
columns = zip(*list(caught.values())[1:], strict=True)  # of the four mistakes
(only,) = [t for t, c in zip(trials, columns, strict=True) if "passes" not in c]
why = "its sizes all differ, and its numbers are of ordinary size"
best_trial.reveal(only, because=why)

# %% tags=["hide-input"]
assert caught[attend] == ["passes"] * 4 and not torch.equal(K, K.T)
assert caught[over_queries] == ["row sums"] * 4
assert caught[no_transpose] == ["values", "values", "passes", "crash"]
assert caught[default_d_k] == ["passes"] * 3 + ["values"]
assert caught[no_scale] == ["values", "passes", "values", "values"]

# %% [markdown]
# Each of the other trials hides a mistake:
#
# - all three have d_k = 4, so the default of 4 is right by accident;
# - with long queries the softmax is so peaked that the scale makes no difference;
# - the identity equals its own transpose.
#
# The shape of the result caught no mistake, and the row sums only the wrong axis.
# The other three need right values to compare with; where all sizes differ, the forgotten transpose crashes.
#
# ## Where does *it* look?
#
# Back to the dog and the meat.
# The translator was trained on sentences and their translations alone: nobody wrote its matrices, or marked what *it* stands for.
# Its encoder has two layers. Each holds four attentions side by side, its heads (lesson [04](04_multi_head.ipynb)).
# Here is one head of the last layer: the row of *it* in each of the two sentences.

# %%
seen = [translator.translate(each, attention=True) for each in (hungry, fresh)]
source = seen[0].src_tokens
it, dog, meat = (source.index(token) for token in ("▁it", "▁dog", "▁meat"))
looks = torch.stack([each.attention.encoder[-1][1][it] for each in seen])  # (2, keys)
marked = [token.replace("hungry", "hungry/fresh") for token in source]
told = f"{looks[0, dog]:.2f} to “dog”, then {looks[1, meat]:.2f} to “meat”"
title = f"One head, two last words: “it” gives {told}"
attention_map(looks, ["it … hungry", "it … fresh"], marked, title=title)

# %% tags=["hide-input"]
assert looks[0, dog] > 0.8 and looks[1, meat] > 0.8
assert torch.allclose(looks.sum(dim=-1), torch.ones(2))
assert seen[1].src_tokens[:8] == source[:8]

# %% [markdown]
# With *hungry*, *it* looks at the dog; with *fresh*, at the meat.
#
# We picked this head after looking at all eight. Is it an accident?
# The test: 70 pairs of such sentences, each with an eater, which is *hungry*, and a food, which is *fresh*.

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
# How often does *it* give the right noun more weight than the other noun?
# A head that ignores the last word does the same in both sentences of a pair, so it scores exactly 50 %.
# Here are the eight heads, over all 140 sentences:

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
# Now one half of the pairs chooses the head, and the other half, 35 pairs or 70 sentences, counts.

# %% tags=["hide-input"]
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
# It is the head of our picture, and nearly always right.
# But both halves share one template and few nouns, and the translator was trained on such sentences.
#
# A weight says where a head looks, not what the model does with it: lesson [12](12_reading_attention.ipynb) asks that.
#
# All four heads of layer 0 score exactly 50 %. They must: there the rows of *it* and of the nouns do not yet know the last word.
# Layer 0 can carry that word into these rows, and from them layer 1 makes its queries and keys: one look-up prepares the next.
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
# - **saturated**: said of a query one of whose keys has more than 0.99 of its weight; the closer to 1, the less gradient the softmax passes on.
# - **additive attention**: scores from a small network with tanh, older than the Transformer's.
# - **self-attention**: attention whose queries, keys and values come from one sequence.
# - **cross-attention**: attention whose queries come from one sequence, keys and values from another.

# %% [markdown]
# ## Summary
#
# Nobody says which tokens a token needs: its query finds them by their keys, and the projections that make queries, keys and values are learned.
# They can be, because the look-up is soft: a context is a weighted mean of *all* values, and the gradient passes through the weights.
# Scores become weights by a softmax over the keys; weights times values are the context. Queries and keys share d_k, each key has a value, and any number of queries can ask any number of keys.
# The dot product of independent numbers with mean 0 and variance 1 has variance d_k; division by √d_k makes it 1, so that the look-up starts soft. In our small training the model without it fell behind, and neither a smaller start nor smaller steps alone made up for it.
# The shape of the result caught none of our four mistakes. Random numbers of ordinary size, shapes that all differ and a second implementation to compare with caught them all.
#
# **Practice**: [assignment 03](assignments/release/03_attention/03_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [04](04_multi_head.ipynb): one look-up gives one mean for each token, but a token may need several.
