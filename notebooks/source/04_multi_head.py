# %% [markdown]
# # 04 · Multi-head attention: several looks at once
#
# **Question.** Attention gives each token one weighted mean. What if it needs two things?
#
# **Afterwards you can**
#
# 1. say what one head cannot do, and what several heads cost;
# 2. compute all heads in one product, and recognize the reshape that mixes positions;
# 3. find out what the heads of a trained translator look at, and check it against a control.
#
# **You need** attention: query, key, value, scores → weights → context (lesson [03](03_attention.ipynb)); sinusoids (lesson [02](02_position.ipynb)).
# **Time**: {minutes} minutes to read, under 20 seconds to run.
# **In the paper**: section 3.2.2, and rows (A) of table 3 [@vaswani2017].

# %%
import torch
from torch import nn

from course_lib.attention import MultiHeadAttention, attention
from course_lib.figures import Panel, curves, panels
from course_lib.position import sinusoidal
from course_lib.widgets import Predict, Predictions

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # small tensors: two threads would wait for each other

# %% [markdown]
# ## Die Frau or der Frau?
#
# `course`, the translator of lesson 03, translates two sentences.

# %% tags=["nbval-check-output"]
from course_lib import Translator

translator = Translator.from_pretrained("course")
translator.model.to(device)
text = "The old woman gives the child a red apple."
translation = translator.translate(text, attention=True)
src_tokens = translation.src_tokens
print(translation.text)
print(translator.translate("The old man gives the woman a red apple."))

# %% [markdown]
# Look at the German articles.
# *dem Kind*, but *der Frau*: both receive the apple, but *Kind* is neuter and *Frau* feminine.
# So an article depends on its noun.
# *Die alte Frau*, but *der Frau*: the noun is the same, but in one sentence she gives and in the other she receives.
# So it also depends on its noun's role, which the verb and the word order tell.
#
# To translate *the* in *the child*, it helps to know two things: its noun and the verb before it.
# The translator's encoder has two layers of four attentions side by side; each attention is a **head**.
# Here are two heads of the last layer (layer 1), where English words look at English words.

# %% tags=["hide-input"]
from matplotlib.patches import Rectangle

in_encoder = translation.attention.encoder[-1].cpu()  # (heads, queries, keys)
both, words = (1, 3), (src_tokens, src_tokens)
two = [
    Panel(in_encoder[head], *words, f"head {head}", "weights", "key", "query")
    for head in both
]
title = "For “the child”, head 1 looks at the noun, head 3 at the verb"
figure = panels(two, title=title)
for place, row in ((0, 4), (0, 6), (1, 4), (1, 6)):  # the articles of the objects
    look = dict(fill=False, lw=1.8, edgecolor="#222222", clip_on=False, zorder=5)
    frame = Rectangle((-0.5, row - 0.5), len(src_tokens), 1, **look)
    figure.axes[place].add_patch(frame)
figure

# %% tags=["hide-input"]
assert translation.text == "Die alte Frau gibt dem Kind einen roten Apfel."
verb = src_tokens.index("▁gives")
for row, noun in ((0, "▁woman"), (4, "▁child"), (6, "▁apple")):
    assert src_tokens[row].lower() in ("▁the", "▁a")
    assert in_encoder[1, row, src_tokens.index(noun)] > 0.9
assert in_encoder[3, [4, 6], verb].min() > 0.9 and in_encoder[3, 0, verb] < 0.1

# %% tags=["hide-input"]
# 540 sentences: The man gives the child a letter.
from course_lib import record_attention

people = "man woman child boy girl teacher queen mother father neighbor".split()
things = "book letter key ball gift coat".split()
three = [(a, b, thing) for a in people for b in people if a != b for thing in things]
encode, end = translator.tokenizer.encode, translator.model.config.eos_id
given = [[*encode(f"The {a} gives the {b} a {thing}."), end] for a, b, thing in three]
with torch.no_grad(), record_attention(translator.model) as maps:
    translator.model.encode(torch.tensor(given, device=device))
of_given = maps.encoder[-1].argmax(dim=-1)  # (540, heads, queries): keys
for row, noun in ((3, 4), (5, 6)):  # "the" and "a"; the verb is token 2
    assert (of_given[:, 1, row] == noun).all() and (of_given[:, 3, row] == 2).all()
assert len(given) == 540 and (of_given[:, 3, 0] != 2).all()  # subject

# %% [markdown]
# Find the row of the second *the* (the upper frame).
# In head 1 nearly all of its weight is on *child*; in head 3 it is on *gives*.
# The row *a* (the lower frame) does the same: *apple* in head 1, *gives* in head 3.
# The first *The*, of the subject, looks at *woman* in head 1, but not at the verb in head 3.
# So head 3 separates these objects from the subject.
#
# We picked these two heads by looking. Is it an accident?
# A folded cell counts in 540 sentences like *The man gives the child a letter*.
# The articles of both objects always give their largest weight to their noun in head 1, and to *gives* in head 3, where the subject's never does.
# That is one pattern with one verb; varied sentences follow at the end.
#
# One row of weights, which add up to 1, cannot give nearly all to both noun and verb.
# But it could give half to each.
#
# ## Who sees whom?
#
# We try that in two smaller sentences.
# *The cat sees the dog.* · *The dog sees the cat.*
# The word *sees* needs two things from its sentence: who sees, and who is seen.
# Each word is a vector of four numbers here, which is also its value: *cat* is 2 0 4 0, *dog* is 0 6 0 2.
# We give *sees* equal weights: half for the subject, half for the object.

# %%
vocab = ["the", "cat", "sees", "dog", "."]
vectors = torch.tensor(
    [[1.0, 1, 0, 0], [2, 0, 4, 0], [0, 1, 1, 0], [0, 6, 0, 2], [0, 0, 0, 1]]
)
sentences = ["the cat sees the dog .".split(), "the dog sees the cat .".split()]
ids = torch.tensor([[vocab.index(word) for word in words] for words in sentences])
values = vectors[ids]  # (batch, keys, d_v)

# %%
of_sees = Predict(
    "How do the two contexts of *sees* differ?",
    ["not at all", "in half of the numbers", "in all numbers"],
    section="Who sees whom?",
)
of_sees

# %% tags=["nbval-check-output"]
one_row = torch.tensor([0, 0.5, 0, 0, 0.5, 0])  # (keys,): the weights of "sees"
one_context = one_row @ values  # (batch, d_v)
differ = (one_context[0] != one_context[1]).sum().item()
print("the two contexts:", *one_context.int().tolist())
with_positions = one_row @ (values + sinusoidal(6, 4))
apart = (with_positions[0] - with_positions[1]).abs().max()
print("with positions added:", "they differ" if apart > 1e-6 else "still the same")
choices = {0: "not at all", 2: "in half of the numbers", 4: "in all numbers"}
of_sees.reveal(choices[differ], because="half a cat and half a dog has no order")

# %% [markdown]
# The context of *sees* is 1 3 2 1 in both sentences.
# The sentences mean different things, but no later layer can tell them apart by it.
# Positions do not help: in both sentences the same two positions are added.
#
# Now *sees* gets two rows of weights from two heads, set by hand for now: one for the subject and one for the object.
# The two contexts are put side by side: they are **concatenated**.

# %%
two_rows = torch.tensor([[0.0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]])  # (heads, keys)
two_contexts = (two_rows @ values).flatten(1)  # (batch, heads * d_v)

# %% tags=["hide-input"]
which = ["cat sees dog", "dog sees cat"]
heads_of_sees = ["one head", "head 0", "head 1"]
both_ways = torch.cat([one_row[None], two_rows])
in_both = "the cat/dog sees the dog/cat .".split()  # words of both sentences
panels(
    [
        Panel(both_ways, heads_of_sees, in_both, "weights of sees", "weights"),
        Panel(one_context, which, range(4), "context of one head"),
        Panel(two_contexts, which, range(8), "contexts of two heads"),
    ],
    title="Equal weights give the same row for both sentences, two heads do not",
)

# %% tags=["hide-input"]
_, the_cat, _, the_dog, _ = vectors
assert differ == 0 and apart < 1e-6 and one_context[0].tolist() == [1, 3, 2, 1]
assert torch.equal(two_contexts[0], torch.cat([the_cat, the_dog]))
assert torch.equal(two_contexts[1], torch.cat([the_dog, the_cat]))

# %% [markdown]
# In the middle both rows are the same; on the right the halves swap.
#
# ## Can unequal weights save one head?
#
# With weights of 0.8 and 0.2 the two contexts differ. Is one head enough, then?
# For two known sentences it is: a later layer can learn both contexts by heart.
# For words that can be any numbers it is not.
# Take one number of the context: 0.8 × (subject) + 0.2 × (object) = 4.
# Was it 5 and 0, or 4 and 4, or 3 and 8? The sum alone does not tell.
# So one sum cannot return two unknown numbers; two heads keep two sums.

# %% tags=["hide-input"]
unequal = torch.tensor([0, 0.8, 0, 0, 0.2, 0]) @ values  # (batch, d_v)
assert (unequal[0] - unequal[1]).abs().min() > 1
pairs_of_4 = torch.tensor([[5.0, 0], [4, 4], [3, 8]])
torch.testing.assert_close(pairs_of_4 @ torch.tensor([0.8, 0.2]), torch.full((3,), 4.0))

# %% [markdown]
# Where do two rows come from?
# A row is softmax(query · keys / √d_k), and in lesson 03 a token had one query.
# Give it two pairs of W_Q and W_K, and *sees* asks two questions of the same words: which noun is before me, and which is after me?
# Each pair compares the words in its own few dimensions, a *subspace*.
# The paper (section 3.2.2): "Multi-head attention allows the model to jointly attend to information from different representation subspaces at different positions. With a single attention head, averaging inhibits this."
# Each such attention, with its own W_V too, is a head; several in parallel are **multi-head attention**.
#
# ## One head after another
#
# A head is the attention of lesson 03 after narrow projections, d_model → d_k.
# The paper's formula is head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).


# %%
class Head(nn.Module):
    """One attention in a d_k-wide projection."""

    def __init__(self, d_model, d_k):
        super().__init__()
        self.query_proj = nn.Linear(d_model, d_k)
        self.key_proj = nn.Linear(d_model, d_k)
        self.value_proj = nn.Linear(d_model, d_k)

    def forward(self, query, key, value):
        projected = self.query_proj(query), self.key_proj(key), self.value_proj(value)
        return attention(*projected)  # context (batch, queries, d_k), weights


# %% [markdown]
# We take four heads of width 3 for tokens of width 12.
# Their contexts are concatenated, and a last matrix follows, the **output projection** W_O: MultiHead = Concat(head_1, …, head_h) W^O.
# The input `x` holds the two sentences of cat and dog, embedded, with their positions.

# %%
of_weights = Predict(
    "`x` is 2 × 6 × 12. Which shape do the weights of *one* head have?",
    ["2 × 6 × 3", "2 × 3 × 3", "2 × 6 × 6", "2 × 6 × 12"],
    section="One head after another",
)
of_weights

# %%
torch.manual_seed(0)
batch, length, d_model, num_heads, d_k = 2, 6, 12, 4, 3
x = torch.randn(len(vocab), d_model)[ids] + sinusoidal(length, d_model)
heads = nn.ModuleList(Head(d_model, d_k) for _ in range(num_heads))
output_proj = nn.Linear(d_model, d_model)

results = [head(x, x, x) for head in heads]
concatenated = torch.cat([context for context, _ in results], dim=-1)
by_loop = output_proj(concatenated)  # (batch, length, d_model)

# %% tags=["nbval-check-output"]
stations = {"x": x, "query of a head": heads[0].query_proj(x)}
stations |= {"weights of a head": results[0][1], "context of a head": results[0][0]}
stations |= {"concatenated": concatenated, "output": by_loop}
shown = {name: " × ".join(map(str, each.shape)) for name, each in stations.items()}
for name, sizes in shown.items():
    print(f"{name:18}{sizes}")
of_weights.reveal(shown["weights of a head"], because="six queries meet six keys")

# %% [markdown]
# The output has the shape of `x`, so such layers can be stacked.
#
# ## One product for all heads
#
# Each head multiplies the same `x` by its own narrow matrix.
# Side by side, the four narrow matrices are one of 12 × 12, and one product does the work of four.


# %%
def stacked(name):
    """The heads' projections of that name as one d_model-wide projection."""
    parts = [getattr(head, name) for head in heads]
    wide = nn.Linear(d_model, d_model)
    # nn.Linear stores its matrix transposed: side by side is one below the other.
    wide.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    wide.bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    return wide


query_proj, key_proj = stacked("query_proj"), stacked("key_proj")
value_proj = stacked("value_proj")
one_by_one = torch.cat([head.query_proj(x) for head in heads], dim=-1)
print(f"they differ by {(query_proj(x) - one_by_one).abs().max():.0e} at most")

# %% [markdown]
# Now the 12 features of a token have to become 4 heads of 3.
# The figure shows the whole path, with a color for each head.
# `split` cuts the columns apart, each head attends on its own, and `merge` puts the columns back side by side, for W_O.

# %% tags=["hide-input"]
from course_lib.figures import Block, flow_figure

wide, narrow = (length, d_model), (num_heads, length, d_k)
head_colors = "#cfe6f7", "#fbe3b5", "#cdebdf", "#f0d5e5"
paint = dict(fills=head_colors)
blocks = [Block("x", wide, "length × d_model", (0, 1.25))]
for row, name in zip((0, 1.25, 2.5), ("queries", "keys", "values"), strict=True):
    blocks.append(Block(name, wide, "length × d_model", (1.1, row), **paint))
    split_up = f"{name} by head"
    blocks.append(Block(split_up, narrow, "heads × length × d_k", (2.25, row), **paint))
by_head = (num_heads, length, length)
blocks += [Block("weights", by_head, "heads × queries × keys", (3.4, 0.6), **paint)]
blocks += [Block("context", narrow, "heads × length × d_k", (4.5, 1.0), **paint)]
blocks += [Block("concatenated", wide, "length × d_model", (4.5, 2.5), **paint)]
out_at = 3.4, 2.499  # not 2.5: an arrow back along a row would go under it
blocks += [Block("output", wide, "length × d_model", out_at)]

# %% tags=["hide-input"]
three = ("queries", "W_Q"), ("keys", "W_K"), ("values", "W_V")
ways = [("x", name, matrix) for name, matrix in three]
ways += [(name, f"{name} by head", "split") for name, _ in three]
ways += [("queries by head", "weights", "Q Kᵀ / √d_k,\nsoftmax")]
ways += [("keys by head", "weights", ""), ("weights", "context", "weights @ V")]
ways += [("values by head", "context", "")]
ways += [("context", "concatenated", "merge"), ("concatenated", "output", "W_O")]
assert (batch, *wide) == x.shape == concatenated.shape
assert by_head == (num_heads, *results[0][1].shape[1:])
title = "Split cuts the columns into four heads, merge puts them back, W_O mixes them"
flow_figure(blocks, ways, title=title)

# %% [markdown]
# The heads also have to come before the positions: then the last two dimensions, (length, d_k), belong to one head.
# So `split` has two steps: **unflatten** the features, then **transpose** heads and length.
# The way back is the same in reverse: transpose, then flatten.


# %% tags=["nbval-check-output"]
def split(x):
    """(batch, length, d_model) to (batch, heads, length, d_k)."""
    x = x.unflatten(-1, (num_heads, d_k))  # (batch, length, heads, d_k)
    return x.transpose(1, 2)  # (batch, heads, length, d_k)


def merge(context):
    """(batch, heads, length, d_k) to (batch, length, d_model)."""
    return context.transpose(1, 2).flatten(2)


query, key, value = split(query_proj(x)), split(key_proj(x)), split(value_proj(x))
print(tuple(x.shape), "→", tuple(query.shape), "→", tuple(merge(query).shape))

# %% [markdown]
# As in lesson 03, `@` treats every dimension but the last two as a batch.
# So all heads of all sentences go through `attention` at once.

# %%
context, weights = attention(query, key, value)
at_once = output_proj(merge(context))
print("weights", tuple(weights.shape), "· context", tuple(context.shape))
print(f"loop and product differ by {(at_once - by_loop).abs().max():.0e} at most")
torch.testing.assert_close(at_once, by_loop)

# %% tags=["hide-input"]
assert (query[0].shape, context[0].shape) == (narrow, narrow)
assert weights[0].shape == by_head
torch.testing.assert_close(query_proj(x), one_by_one)
strips = query_proj(x).split(d_k, dim=-1)  # the colored columns of the figure
for number, head in enumerate(heads):
    torch.testing.assert_close(query[:, number], head.query_proj(x))
    assert torch.equal(query[:, number], strips[number])
torch.testing.assert_close(merge(context), concatenated)

# %% [markdown]
# ## What does W_O do?
#
# The concatenated contexts lie side by side: features 0 to 2 come from head 0, features 3 to 5 from head 1, and so on.
# Let us cut W_O into slices, one for each head's features, and add up (context of a head) @ (its slice).

# %%
slices = output_proj.weight.T.split(d_k)  # one (d_k, d_model) for each head
added = sum(context[:, number] @ each for number, each in enumerate(slices))
difference = (added + output_proj.bias - by_loop).abs().max()
print(f"the sum, plus the bias, differs from the output by {difference:.0e} at most")

# %% tags=["hide-input"]
torch.testing.assert_close(added + output_proj.bias, by_loop)
assert len(slices) == num_heads and slices[0].shape == (d_k, d_model)
for function, expected in ((lambda x: x, [0]), (output_proj, [0, 1, 2, 3])):
    leaf = concatenated.detach().requires_grad_()
    function(leaf)[..., 0].sum().backward()  # on which heads does feature 0 depend?
    reach = leaf.grad.abs().unflatten(-1, (num_heads, d_k)).sum(dim=(0, 1, 3))
    assert reach.nonzero().flatten().tolist() == expected

# %% [markdown]
# So each head writes to the output through its own d_k × d_model matrix, and the results are added.
# Without W_O, an output feature depends on one head alone; W_O mixes the heads.
#
# **A common mistake**: "W_O reduces the dimension."
# With d_v = d_model / h there is nothing to reduce. (In general W_O is (heads · d_v) × d_model.)
# In the paper's base model (section 3.2.2), h = 8 and d_k = d_v = 64: together the heads have 512 numbers already, and W_O is 512 × 512.

# %% tags=["hide-input"]
from course_lib import model_preset

for name, sizes in (("base", (8, 64, 512)), ("big", (16, 64, 1024))):
    preset = model_preset(name, vocab_size=37_000)
    assert (preset.num_heads, preset.d_k, preset.d_model) == sizes

# %% [markdown]
# ## The class
#
# The query may come from other tokens than the key and the value, so there are three arguments.
# As in PyTorch, our projections have biases; the paper's formula has none.


# %%
class MultiHead(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        four = [nn.Linear(d_model, d_model) for _ in range(4)]
        self.query_proj, self.key_proj, self.value_proj, self.output_proj = four

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def attend(self, query, key, value):
        projected = self.query_proj(query), self.key_proj(key), self.value_proj(value)
        return attention(*map(self.split, projected))  # context, weights of all heads

    def forward(self, query, key, value):
        return self.output_proj(self.merge(self.attend(query, key, value)[0]))


# %% [markdown]
# Does it compute the same as the layers of `course_lib` and of PyTorch?
# We copy the parameters of our layer (`ours`) into both (PyTorch's is `theirs`).
# Then we compare outputs and gradients for four queries (`tgt`) and six keys (`src`).

# %% tags=["hide-input"]
ours = MultiHead(d_model, num_heads).double()
finished = MultiHeadAttention(d_model, num_heads).double()
finished.load_state_dict(ours.state_dict())
theirs = nn.MultiheadAttention(d_model, num_heads, batch_first=True).double()
projections = (ours.query_proj, ours.key_proj, ours.value_proj)
with torch.no_grad():  # PyTorch has all three in one matrix, one below the other
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
_ = theirs.out_proj.load_state_dict(ours.output_proj.state_dict())

# %% tags=["hide-input"]
tgt, src = torch.randn(batch, 4, d_model).double(), x.double()
for tensor in (tgt, src):
    tensor.requires_grad_()
by_page = ours(tgt, src, src)
by_library = finished(tgt, src, src)
by_torch, torch_weights = theirs(tgt, src, src, average_attn_weights=False)
print("output", tuple(by_page.shape))
for name, other in (("course_lib", by_library), ("PyTorch", by_torch)):
    losses_of_both = (each.square().sum() for each in (by_page, other))
    of_src = [
        torch.autograd.grad(each, src, retain_graph=True)[0] for each in losses_of_both
    ]
    off = (by_page - other).abs().max(), (of_src[0] - of_src[1]).abs().max()
    print(f"{name:11}output differs by {off[0]:.0e}, gradient by {off[1]:.0e}")

# %% tags=["hide-input"]
exact = dict(rtol=1e-9, atol=1e-12)
torch.testing.assert_close(by_library, by_page, **exact)
torch.testing.assert_close(by_torch, by_page, **exact)
mine = [tgt, src, ours.output_proj.weight, ours.output_proj.bias]
parts = [[getattr(each, name) for each in projections] for name in ("weight", "bias")]
our_gradients = torch.autograd.grad(by_page.square().sum(), mine + sum(parts, []))
our_gradients = [*our_gradients[:4], torch.cat(our_gradients[4:7])] + [
    torch.cat(our_gradients[7:])
]
their = [tgt, src, theirs.out_proj.weight, theirs.out_proj.bias]
their += [theirs.in_proj_weight, theirs.in_proj_bias]
their_gradients = torch.autograd.grad(by_torch.square().sum(), their)
for our_gradient, their_gradient in zip(our_gradients, their_gradients, strict=True):
    assert our_gradient.abs().max() > 0
    torch.testing.assert_close(our_gradient, their_gradient, **exact)

# %% [markdown]
# The outputs are the same up to rounding, and so are the gradients of `src`. (A folded cell compares those of `tgt` and of all parameters with PyTorch's.)
#
# **A common mistake**: reading the weights that PyTorch's layer returns as those of a head.
# Without `average_attn_weights=False` they are the mean over the heads, and what the heads do differently is gone.

# %% tags=["nbval-check-output"]
_, our_weights = ours.attend(tgt, src, src)
_, averaged = theirs(tgt, src, src)
print("of each head", tuple(our_weights.shape), "· averaged", tuple(averaged.shape))

# %% tags=["hide-input"]
torch.testing.assert_close(torch_weights, our_weights, **exact)
torch.testing.assert_close(averaged, our_weights.mean(dim=1), **exact)

# %% [markdown]
# ## The reshape that mixes positions
#
# The class transposes twice, in `split` and in `merge`. What if one of them is forgotten?
#
# **A common mistake**: asking for the final shape of `split` in one step, `reshape(batch, heads, length, d_k)`.
# Nothing crashes, because the shapes agree.


# %%
def wrong_split(x, heads=num_heads):  # to (batch, heads, length, d_k) in one step
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


# %% [markdown]
# To see what it does, we fill the features of every token with the number of its position.

# %%
of_head_0 = Predict(
    "After the one-step reshape, from how many of the six positions is head 0 made?",
    section="The reshape that mixes positions",
)
of_head_0

# %% tags=["nbval-check-output"]
position = torch.arange(6)[None, :, None].expand(1, 6, d_model)  # (1, length, d_model)
with_transpose = split(position)[0]  # (heads, length, d_k)
one_step = wrong_split(position)[0]
for number in range(num_heads):
    good, bad = (way[number].unique().tolist() for way in (with_transpose, one_step))
    print(f"head {number}: with the transpose {good}, in one step {bad}")
why = "18 numbers are one token of 12 and half of the next"
of_head_0.reveal(len(one_step[0].unique()), because=why)

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

from course_lib.figures import new_figure, styled


@styled
def draw_owners(owners, title):
    """Two tables, colored by the head of each cell, with its number."""
    figure = new_figure(title, 9, 2.9)
    paint = dict(cmap=ListedColormap(head_colors), vmin=0, vmax=3, aspect="auto")
    for axes, (name, owner) in zip(figure.subplots(1, 2), owners.items(), strict=True):
        axes.imshow(owner, **paint)
        axes.set(title=name, xlabel="feature", ylabel="token", xticks=range(d_model))
        for row, column in torch.cartesian_prod(*map(torch.arange, owner.shape)):
            text = owner[row, column].item()
            axes.text(column, row, text, ha="center", va="center", size=9)
    return figure


# %% tags=["hide-input"]
owners, numbers = [], torch.arange(length * d_model).reshape(1, length, d_model)
for way in (split, wrong_split):
    owner = torch.empty(length * d_model, dtype=torch.long)
    for head, part in enumerate(way(numbers)[0]):
        owner[part.flatten()] = head
    owners.append(owner.reshape(length, d_model))  # rows: tokens, columns: features
cuts = {"right: cut by columns": owners[0], "wrong: cut by rows": owners[1]}
draw_owners(cuts, "A head is a set of columns, not a set of rows")

# %% tags=["hide-input"]
assert with_transpose.shape == one_step.shape
for number in range(num_heads):
    assert with_transpose[number].unique().tolist() == list(range(6))
    assert len(one_step[number].unique()) == 2
by_columns = torch.arange(num_heads).repeat_interleave(d_k).expand(length, -1)
assert torch.equal(owners[0], by_columns)
by_rows = torch.arange(num_heads).repeat_interleave(18).reshape(length, d_model)
assert torch.equal(owners[1], by_rows)

# %% [markdown]
# The number in a cell is the head that gets it.
# The right way cuts the table by columns: every head gets all six tokens, a quarter of the features of each.
# The wrong way cuts it by rows: head 0 gets token 0 and half of token 1, and attends among their pieces.
#
# Which test finds it?
# Lesson 02 showed that self-attention is equivariant: permuted rows in, permuted rows out.


# %% tags=["nbval-check-output"]
def attend_with(split, x):
    projected = query_proj(x), key_proj(x), value_proj(x)
    return output_proj(merge(attention(*map(split, projected))[0]))


order = torch.tensor([3, 0, 5, 1, 4, 2])
for name, way in (("right", split), ("wrong", wrong_split)):
    permuted, output = attend_with(way, x[:, order]), attend_with(way, x)
    equivariant = torch.allclose(permuted, output[:, order], atol=1e-5)
    print(f"{name}: shape {tuple(output.shape)}, equivariant: {equivariant}")
print("one token, same split:", torch.equal(wrong_split(x[:, :1]), split(x[:, :1])))
print("one head, same split:", torch.equal(wrong_split(x, heads=1), x[:, None]))

# %% tags=["hide-input"]
assert not equivariant  # of the wrong way
assert torch.allclose(attend_with(split, x[:, order]), at_once[:, order], atol=1e-5)
assert not torch.allclose(at_once, output, atol=0.01)
assert torch.equal(wrong_split(x[:, :1]), split(x[:, :1]))
assert torch.equal(wrong_split(x, heads=1), x[:, None])

# %% [markdown]
# The shapes are equal, but only the right way is equivariant.
# A test with one token, or with one head, does not find the mistake: there both ways are the same.
#
# ## Break it: forget to transpose back
#
# Now we forget the transpose of `merge`, in a layer that learns.


# %%
class MergeWithoutTranspose(MultiHead):
    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


# %% [markdown]
# No error tells us: the output has the right shape. Will the training tell us?
#
# Six tokens stand in a circle.
# Each wants the contents of the tokens before and after it; a content is eight random numbers.


# %%
def neighbors(count, generator):
    """Random tokens (count, 6, 16), and what each of them wants (count, 6, 16)."""
    content = torch.randn(count, 6, 8, generator=generator)
    position = 2 * torch.eye(8)[:6].expand(count, -1, -1)  # tells the six apart
    tokens = torch.cat([content, position], dim=-1)
    return tokens, torch.cat([content.roll(1, 1), content.roll(-1, 1)], dim=-1)


# %% [markdown]
# A token is 16 numbers, its content and its position.
# `fresh` makes a layer, and `train` shows it 100 batches of 32 new sentences (Adam, learning rate 0.03).
# "Lost" is the mean squared error over the last ten batches (`at_end`). What is wanted has variance 1, so this is the share of it that is lost.


# %% tags=["hide-input"]
def train(layer, seed, steps=100, lr=0.03, after_step=None):
    """Share that is lost at each step, always on new sentences."""
    generator = torch.Generator().manual_seed(seed)
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=lr, fused=True), []
    for _ in range(steps):
        pair = neighbors(32, generator)
        tokens, wanted = (each.to(layer.query_proj.weight) for each in pair)
        loss = (layer(tokens, tokens, tokens) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if after_step:
            after_step(layer)
    return losses


# %% tags=["hide-input"]
def fresh(layer_class, num_heads, seed):
    torch.manual_seed(seed)
    return layer_class(16, num_heads)


def at_end(losses):
    return sum(losses[-10:]) / 10


# %%
variants = {
    "right, 4 heads": (MultiHead, 4),
    "wrong, 4 heads": (MergeWithoutTranspose, 4),
    "right, 2 heads": (MultiHead, 2),
    "wrong, 2 heads": (MergeWithoutTranspose, 2),
}
trained, ended = {}, {}
print("lost, with two seeds")
for name, (layer_class, count) in variants.items():
    trained[name] = [fresh(layer_class, count, seed) for seed in range(2)]
    ended[name] = [at_end(train(each, seed)) for seed, each in enumerate(trained[name])]
    print(f"{name:16}", *(f"{loss:.3f}" for loss in ended[name]), sep="   ")

# %% tags=["hide-input"]
one_sentence, _ = neighbors(1, torch.Generator().manual_seed(0))
right, wrong = (
    fresh(layer_class, 4, seed=0)(*[one_sentence] * 3)
    for layer_class in (MultiHead, MergeWithoutTranspose)
)
assert wrong.shape == right.shape and not torch.allclose(wrong, right, atol=0.01)
fine = ended["right, 4 heads"] + ended["right, 2 heads"] + ended["wrong, 2 heads"]
assert max(fine) < 0.02 and 0.3 < min(ended["wrong, 4 heads"])
assert max(ended["wrong, 4 heads"]) < 0.8  # and yet it has learned something

# %% tags=["hide-input"]
# Number of a context: 6 * head + position.
context_numbers = torch.arange(12).view(1, 2, 6, 1).expand(-1, -1, -1, 8)
for layer in trained["wrong, 2 heads"]:
    assert layer.merge(context_numbers)[0, 0].unique().tolist() == [0, 1]
    top = layer.attend(*[one_sentence] * 3)[1].argmax(dim=-1)  # (1, heads, queries)
    assert set(top[0, 0, :2].tolist()) == {1, 5}  # the neighbors of token 0

# %% [markdown]
# With four heads the wrong layer stays behind.
# With *two* heads it ends as low as the right one.
# There output 0 is made from head 0's contexts at positions 0 and 1, and training aims one at each neighbor of token 0.
#
# So neither the right shape nor a low loss shows that the code is right.
# A much stronger test: compare with the loop, or with PyTorch's layer, for several heads and several tokens.
#
# ## What do heads cost?
#
# We count **FLOPs** (floating-point operations: a multiplication and an addition are two) for d_model 512 (each head is 512 / heads wide) and 30 tokens.

# %%
of_price = Predict(
    "By what factor do the FLOPs grow from 1 head to 16?",
    ["×1", "×4", "×16"],
    section="What do heads cost?",
)
of_price

# %% [markdown]
# We count multiplications, then double the sum for the additions.
# Each of the four projections takes 30 tokens through a 512 × 512 matrix.
# In each head, every one of the 30 × 30 pairs takes 512 / heads for its score, and as many for the context.

# %% tags=["nbval-check-output"]
counts, entries, flops = (1, 2, 4, 8, 16), [], []
for count in counts:
    projections = 4 * 30 * 512 * 512
    attending = count * 2 * 30 * 30 * (512 // count)
    flops.append(2 * (projections + attending))
    entries.append(count * 30 * 30)
    print(f"{count:2} heads: {flops[-1]:,} FLOPs, {entries[-1]:6,} weights")
why = "each of the 16 is a sixteenth as wide"
of_price.reveal(f"×{flops[-1] / flops[0]:.0f}", because=why)

# %% tags=["hide-input"]
# The check: PyTorch's counter gives the same numbers.
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

sentence = torch.zeros(1, 30, 512)
for count, ours_counted, entry in zip(counts, flops, entries, strict=True):
    layer, counter = MultiHeadAttention(512, count), FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        layer(sentence, sentence, sentence)
    assert counter.get_total_flops() == ours_counted == flops[0]
    assert sum(each.numel() for each in layer.parameters()) == 4 * (512 * 512 + 512)
    assert MultiHead(512, count).attend(*[sentence] * 3)[1].numel() == entry

# %% [markdown]
# `count * (512 // count)` is 512, however many heads there are.
# The parameters do not grow either: four matrices of 512 × 512, with their biases.
# Only the number of attention weights, heads × queries × keys, grows: more to store, and more exponentials (not counted here).
# (In grouped-query and multi-query attention, heads share keys and values: lesson [14](14_cost_and_memory.ipynb#Fewer-keys-than-queries).)
#
# The heads share d_model, so it must be divisible by num_heads.

# %% tags=["nbval-check-output"]
try:
    MultiHeadAttention(512, 6)
except ValueError as error:
    print(error)

# %% [markdown]
# ## How many heads?
#
# If heads cost no parameters and (almost) no FLOPs, why not 512 of them?
# The paper tried several numbers (table 3, rows (A) and the base model).
# More heads mean narrower ones, d_k = d_v = 512 / heads.
# BLEU (lesson [10](10_translation.ipynb)) scores translations, here of the validation set; higher is better:
#
# | heads | 1 | 4 | 8 | 16 | 32 |
# |---|---|---|---|---|---|
# | d_k | 512 | 128 | 64 | 32 | 16 |
# | BLEU | 24.9 | 25.5 | 25.8 | 25.8 | 25.4 |
#
# One head is worst, and 32 are worse than 8 or 16.
#
# Why can there be too many? They get narrow, and width matters: rows (B) of table 3 narrow d_k alone, and BLEU falls, too.
# What a narrow head cannot do is easiest to see at the extreme, d_k = 1.
# Each query and each key is one number then, and a score is their product.
# Take a sentence of six tokens.

# %%
of_aims = Predict(
    "Queries and keys are single numbers. A key wins if a query gives it the largest "
    "weight. At most how many of the six keys can win, whatever the queries?",
    section="How many heads?",
)
of_aims

# %%
generator = torch.Generator().manual_seed(0)
for width in (8, 4, 2, 1):
    queries, keys = torch.randn(2, 1000, 6, width, generator=generator)
    top = (queries @ keys.mT).argmax(dim=-1)  # (1000, queries): keys
    aims = max(len(set(row.tolist())) for row in top)
    print(f"d_k {width}: {aims} keys at most in 1,000 random draws")
of_aims.reveal(aims, because="only the largest and the smallest key ever win")

# %% tags=["hide-input"]
assert aims == 2  # with d_k = 1
word_before = (torch.arange(6) - 1) % 6
assert (top == word_before).sum(dim=1).max() == 2  # queries that point rightly
keys = torch.tensor([-2, -1, 0.5, 1, 2, 3])
assert (2 * keys).tolist() == [-4, -2, 1, 2, 4, 6]
assert [keys[(query * keys).argmax()].item() for query in (2, 0.1, -1)] == [3, 3, -2]
circle = torch.tensor([[60.0 * corner] for corner in range(6)]).deg2rad()
circle = torch.cat([circle.cos(), circle.sin()], dim=-1)  # six keys with d_k = 2
assert (circle @ circle.T).argmax(dim=-1).tolist() == list(range(6))

# %% [markdown]
# Put the keys on a line, say −2, −1, 0.5, 1, 2, 3.
# A positive query keeps their order: the key 3 wins.
# A negative query turns the line around: −2 wins.
# So, however it is trained, such a head can give its largest weight to only two positions of a sentence.
# (With d_k = 2, six keys on a circle can each win; random draws need not find that.)
#
# What does that cost?
# We train layers of 1 to 16 heads on the two neighbors again, three seeds each.

# %%
ends = {}
for count in counts:
    layers = [fresh(MultiHeadAttention, count, seed) for seed in range(3)]
    ends[count] = [at_end(train(layer, seed)) for seed, layer in enumerate(layers)]
    by_seed = " ".join(f"{loss:.3f}" for loss in ends[count])
    print(f"{count:2} heads, d_k {16 // count:2}: lost {by_seed}")

# %% tags=["hide-input"]
figure = curves(
    {"3 seeds, after 100 steps": (counts, list(zip(*ends.values(), strict=True)))},
    xlabel="heads; d_k = 16 / heads",
    ylabel="share that is lost",
    title="After 100 steps one head loses half, two to eight little, sixteen half",
    log_x=True,
    marks={"half": (None, 0.5)},
)
figure.axes[0].minorticks_off()
_ = figure.axes[0].set_xticks(counts, counts)
figure

# %% tags=["hide-input"]
assert 0.45 < min(ends[1]) <= max(ends[1]) < 0.6
assert max(ends[2] + ends[4]) < 0.02 and max(ends[8]) < 0.2
assert 0.4 < min(ends[16]) <= max(ends[16]) < 0.6
_, contents = neighbors(500, torch.Generator().manual_seed(0))
contents = contents.flatten(0, 1)  # (tokens, 16): before, after
of_mean, of_wanted = (contents[:, :8] + contents[:, 8:]) / 2, contents
ranks = [torch.linalg.matrix_rank(each).item() for each in (of_mean, of_wanted)]
assert ranks == [8, 16]
for count in (8, 16):
    longer = at_end(train(fresh(MultiHeadAttention, count, seed=0), 0, steps=400))
    print(f"{count:2} heads after 400 steps: lost {longer:.3f}")
    assert longer < 0.02 if count == 8 else longer > 0.4

# %% [markdown]
# One head loses half: sixteen independent numbers are wanted, and its mean of the two contents has eight.
# Two deliver both neighbors.
# Eight only need more time: after 400 steps (one seed) they lose almost nothing.
# Sixteen still lose more than 0.4.
#
# Why do sixteen fail?
# Each head carries one number (d_v is 1, too), and 16 must be delivered to every query.
# A head that carries a number of the token before has to look there for all six queries.
# But its largest weight falls on two positions only, and each is the token before of one query: it points to the right token for two of the six queries at most.
# (This shows that it fails, not by how much.)
#
# @bhojanapalli2020 call this the **low-rank bottleneck**: a head much narrower than the sentence is long cannot produce every pattern of weights.
# Not every task needs every pattern: with six tokens, our heads of width 2 only need more time.
#
# ## Why do heads become different?
#
# No rule says what a head should do.
# At first, two heads differ only by their random start.
# What if they start alike?


# %%
@torch.no_grad()
def make_alike(layer):
    """Gives the second of two heads the first one's numbers, in W_O as well."""
    for projection in (layer.query_proj, layer.key_proj, layer.value_proj):
        projection.weight[8:] = projection.weight[:8]
        projection.bias[8:] = projection.bias[:8]
    layer.output_proj.weight[:, 8:] = layer.output_proj.weight[:, :8]


def twins(nudge=0.0):
    """Two heads with the same start, apart from a nudge to one number, in float64."""
    layer = fresh(MultiHeadAttention, 2, seed=0).double()
    make_alike(layer)
    layer.query_proj.weight.data[0, 0] += nudge
    return layer


# %% [markdown]
# Heads with equal parameters, and equal slices of W_O, get equal gradients.
# Swapping them changes nothing, so the loss cannot treat them differently.
# If nothing is rounded, they stay equal: one head, paid for twice.
# Now let one number differ by one millionth. Is that enough?

# %%
of_twins = Predict(
    "Two heads are equal but for one number, which differs by one millionth. Their "
    "loss comes down to about one half. What happens by step 170?",
    ["it stays there", "it falls on at once", "it stays there for a while, then falls"],
    section="Why do heads become different?",
)
of_twins

# %% [markdown]
# `follow` trains two heads for 170 steps, and notes the loss and the largest difference between them.
# It gets three pairs: nudged by 10⁻⁶, by 10⁻¹⁰, and kept equal (one head is copied onto the other after each step, so that rounding cannot part them).


# %% tags=["hide-input"]
def gap_between(layer):
    """Largest difference between a number of the first head and of the second."""
    inputs = (layer.query_proj, layer.key_proj, layer.value_proj)
    gaps = [each.weight[:8] - each.weight[8:] for each in inputs]
    return max(gap.abs().max().item() for gap in gaps)


def follow(layer, after_step=None):
    """Losses and differences, at each of 170 steps."""
    differences = []

    def note(layer):
        if after_step:
            after_step(layer)
        differences.append(gap_between(layer))

    return train(layer, 0, steps=170, after_step=note), differences


# %%
followed = {
    "nudged by 1e-6": follow(twins(1e-6)),
    "nudged by 1e-10": follow(twins(1e-10)),
    "kept equal": follow(twins(), after_step=make_alike),
}
for name, (losses, gaps) in followed.items():
    print(f"{name:16}loss {at_end(losses):.3f}, difference {gaps[-1]:.0e}")
late, early = at_end(followed["nudged by 1e-6"][0]), followed["nudged by 1e-6"][0][50]
outcome = "it stays there for a while, then falls" if late < 0.3 else "it stays there"
of_twins.reveal("it falls on at once" if early < 0.3 else outcome)


# %% tags=["hide-input"]
@styled
def draw_growth(followed, title):
    """Above the loss, below the difference between the heads, on one axis of steps."""
    figure, dashes = new_figure(title, 7.0, 5.4), ("-", "--", "-.")
    above, below = figure.subplots(2, 1, sharex=True)
    above.set(ylabel="share that is lost", ylim=(0, 1.25))
    words = "largest difference\nbetween the heads"
    below.set(yscale="log", ylabel=words, xlabel="step")
    below.set_yticks([1, 1e-5, 1e-10, 1e-17], ["1", "$10^{-5}$", "$10^{-10}$", "0"])
    for number, (name, (losses, gaps)) in enumerate(followed.items()):
        look = dict(color=f"C{number}", ls=dashes[number], label=name)
        above.plot(losses, **look)  # 0 has no logarithm:
        below.plot([max(gap, 1e-17) for gap in gaps], **look)
    _ = above.grid(True), below.grid(True), above.legend()
    return figure


# %% tags=["hide-input"]
draw_growth(followed, "A tiny difference grows until it counts")


# %% tags=["hide-input"]
def falls_at(name):
    """The first step with a loss below 0.3; 170 if there is none."""
    losses, _ = followed[name]
    return next((step for step, loss in enumerate(losses) if loss < 0.3), 170)


six, ten = falls_at("nudged by 1e-6"), falls_at("nudged by 1e-10")
assert 50 < six < ten - 10 < 140 and falls_at("kept equal") == 170
nudged = [followed[f"nudged by 1e-{power}"] for power in (6, 10)]
assert max(at_end(losses) for losses, _ in nudged) < 0.1
assert all(abs(losses[step] - 0.5) < 0.12 for losses, _ in nudged for step in (35, 50))

# %% tags=["hide-input"]
# Without the copying: equal gradients, up to rounding.
layer, sentences_of_32 = twins(), neighbors(32, torch.Generator().manual_seed(0))
tokens_of_32, wanted_of_32 = (each.double() for each in sentences_of_32)
(layer(*[tokens_of_32] * 3) - wanted_of_32).square().mean().backward()
into_heads = (layer.query_proj, layer.key_proj, layer.value_proj)
of_heads = [each.weight.grad for each in into_heads]
for gradient in (*of_heads, layer.output_proj.weight.grad.T):
    assert gradient.abs().max() > 1e-6
    torch.testing.assert_close(gradient[:8], gradient[8:], rtol=1e-9, atol=1e-12)

# %% tags=["hide-input"]
kept, kept_gaps = followed["kept equal"]
assert max(kept_gaps) == 0 and all(abs(loss - 0.5) < 0.12 for loss in kept[35:])
_, rounding_gaps = follow(twins(1e-15))  # as large as a rounding
assert rounding_gaps[10] < 1e-13 and rounding_gaps[-1] > 0.1
parting = [gaps for _, gaps in nudged] + [rounding_gaps]
growth = [(each[55] / each[40]) ** (1 / 15) for each in parting]
assert 1.3 < min(growth) <= max(growth) < 1.6

# %% [markdown]
# One millionth is enough, but it takes time.
# While the heads are nearly equal they work like one head, and the loss waits near one half.
# They are close to a **saddle point**: there is a way down, but at first it hardly slopes.
# Near it the difference grows by a factor of about 1.4 in every step.
# Once it is large enough to count, the loss falls; from 10⁻¹⁰, later.
#
# Heads kept equal stay at one half.
#
# So parameters start at random: this is called **symmetry breaking**. Two heads that started at random solved the task within 100 steps.
#
# ## What does a head look for?
#
# In one pattern of sentence, head 1 took the objects' articles to their nouns.
# Does it do so elsewhere? (Of head 3 we claim no more.)
# Here is another sentence; type your own with several articles.

# %%
from course_lib.widgets import AttentionExplorer

other_text = "The dog sees a small cat in the garden."
explorer = AttentionExplorer(translator, other_text, kind="encoder", head=1)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for(other_text, explorer.text):
    tokens = explorer.view["src"]
    largest = explorer.exploration.attention.encoder[-1][1].argmax(dim=-1).tolist()
    targets = [tokens[largest[tokens.index(word)]] for word in ("▁The", "▁a", "▁the")]
    assert targets == ["▁dog", "▁cat", "▁garden"]

# %% [markdown]
# It does here: *The* looks at *dog*, *a* past *small* at *cat*, *the* at *garden*.
#
# Are articles the job of head 1, or does it take every word to the next noun?
# We count in 200 varied sentences of the course corpus (1000 where there is a GPU).
# Its pairs are generated, and come with **gold links**: which word translates which.
# They tell us the nouns: German writes these, and names, with a capital (a first word counts only if it is a name).

# %%
from course_lib.data import encode_pairs, load_course, make_batch

num_pairs = 1000 if device == "cuda" else 200
pairs = load_course(num_train=1, num_valid=1, num_test=num_pairs, seed=1).test
words_of_example = "Your mother told the strong men a story."
example = next(pair for pair in pairs if pair.src == words_of_example)
print(example.src, "→", example.tgt)
source, target = example.src_words, example.tgt_words
print(*(f"{source[s]} = {target[t]}" for s, t in example.links), sep=" · ")

# %% [markdown]
# Of each word that is no noun but has a noun after it we ask: does the head's largest weight fall on the *next* noun?
# We count five groups:
#
# | group | which words | in our sentence (next noun) |
# |---|---|---|
# | article right before | right before the next noun | *a* (story) |
# | article further left | with words between | *the* (men) |
# | possessive | *my*, *your*, … | *Your* (mother) |
# | adjective | between a determiner (article or possessive) and its noun | *strong* (men) |
# | any other word | the **control**: does it look there? | *told* (men) |

# %%
of_others = Predict(
    "Of all other words with a noun after them (*gives*, *in* and so on), how many "
    "look most at the next noun in head 1?",
    unit="%",
    off_by=10,
    section="What does a head look for?",
)
of_others

# %%
from course_lib import record_attention

encoded = make_batch(encode_pairs(translator.tokenizer, pairs)).to(device)
with torch.no_grad(), record_attention(translator.model) as maps:
    translator.model(encoded.src, encoded.tgt_in)
last_layer = maps.encoder[-1].cpu()  # (pairs, heads, queries, keys)

# %% tags=["hide-input"]
ARTICLES = {"the", "a", "an"}
POSSESSIVES = {"my", "your", "his", "her", "its", "our", "their"}
GROUPS = ["article right before", "article further left", "possessive", "adjective"]
GROUPS += ["any other word"]
NAMES = {"Anna", "Maria", "Paul", "Peter"}


def group_of(words, word, noun):
    """What an English word is to the next noun on its right."""
    if words[word] in ARTICLES:
        return GROUPS[0] if noun == word + 1 else GROUPS[1]
    if words[word] in POSSESSIVES:
        return GROUPS[2]
    before = word > 0 and words[word - 1] in ARTICLES | POSSESSIVES
    return GROUPS[3] if before and noun == word + 1 else GROUPS[4]


# %% tags=["hide-input"]
from course_lib.analysis import word_spans


def before_nouns(pair):
    """Group, row, and tokens of the next noun, of each word with a noun after it."""
    spans = word_spans(pair.src_words, translator.tokenizer.tokens(pair.src))
    capital = {t: word[0].isupper() for t, word in enumerate(pair.tgt_words)}
    first = pair.tgt_words[0].removesuffix("s") in NAMES  # or only at the start
    nouns = {s for s, t in pair.links if capital[t] and (t or first)}
    words = [word.lower() for word in pair.src_words]
    for word in range(max(nouns, default=0)):
        if word not in nouns:
            noun = min(each for each in nouns if each > word)
            yield group_of(words, word, noun), spans[word][0], spans[noun]


# %% tags=["hide-input"]
assert len(translator.tokenizer.tokens(example.src)) == len(source)  # word = token
of_example = [
    (group, source[row], source[noun[0]]) for group, row, noun in before_nouns(example)
]
counted, their_nouns = "a the Your strong told", "story men mother men men"
in_table = zip(GROUPS, counted.split(), their_nouns.split(), strict=True)
assert sorted(of_example) == sorted(in_table)
firsts = {pair.tgt_words[0] for pair in pairs}  # of German nouns, only names
later = (word for pair in pairs for word in pair.tgt_words[1:])
german_nouns = {word for word in later if word[0].isupper()}
assert {word.removesuffix("s") for word in firsts & german_nouns} <= NAMES

# %% [markdown]
# `before_nouns` (folded) gives each counted word's group and row, and the tokens of its next noun.


# %%
def hits_of(pairs, weights):
    """Of each group, hits (words, heads): 1 if the largest weight is on the noun."""
    hits = {group: [] for group in GROUPS}
    for pair, of_pair in zip(pairs, weights, strict=True):
        looks_at = of_pair.argmax(dim=-1).tolist()  # (heads, queries): keys
        for group, row, noun in before_nouns(pair):
            hits[group].append([head[row] in noun for head in looks_at])
    return {group: torch.tensor(each).double() for group, each in hits.items()}


hits = hits_of(pairs, last_layer)
roles = torch.stack([hits[group].mean(dim=0) for group in GROUPS])  # (groups, heads)
of_others.reveal(round(100 * roles[-1, 1].item()))

# %% tags=["hide-input"]
rows = [f"{group} ({len(hits[group])})" for group in GROUPS]
columns = [f"head {head}" for head in range(4)]
panels(
    [Panel(roles, rows, columns, "encoder, last layer", "weights")],
    title="Encoder head 1 takes determiners and adjectives to their noun",
    words={"weights": "share of words that look most at the next noun"},
)

# %% tags=["hide-input"]
from course_lib.metrics import share_estimate

assert roles[:4, 1].min() > 0.85 and roles[4, 1] < 0.3
assert roles[:4, [0, 2, 3]].max() < 0.6
for group in GROUPS[:4]:  # the 95 % interval of each share of head 1
    of_head_1 = hits[group][:, 1]
    assert share_estimate(int(of_head_1.sum()), len(of_head_1)).low > 0.8

# %% [markdown]
# In head 1, determiners and adjectives nearly always look at the next noun, other words rarely.
# (In brackets: how many words.)
#
# We picked head 1 by looking at one sentence; these varied ones are the test.
# This is one trained model; another training may give the job to another head.
#
# Does it only count positions? Not for articles: it finds the noun across other words (figure, row 2).
# (Our adjectives cannot tell: their noun is always next.)
# Lesson [12](12_reading_attention.ipynb) compares every head with a rule that only counts positions.
# It also switches heads off: a weight says where a head *looks*, not what the model *uses*.
# @michel2019 did so in a large translator and in BERT (lesson 16), and many heads could be removed with little loss.
#
# @clark2019 found heads like ours in BERT, and @voita2019 found heads with syntactic roles in translators.
# Our head 1, which in lesson 03 took *it* to its noun, began with random numbers; the training asked only for the next German token.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **head**: one attention with its own narrow W_Q, W_K and W_V.
# - **multi-head attention**: several heads on the same input, their contexts concatenated and mixed by W_O.
# - **concatenated**: put side by side, so that the widths add up.
# - **output projection**: W_O, d_model × d_model, through which every head writes to the output.
# - **unflatten**: to cut one dimension into two, here d_model into heads × d_k.
# - **FLOPs**: floating-point operations; a multiplication and an addition are two.
# - **low-rank bottleneck**: a head that is too narrow cannot produce every pattern of weights.
# - **saddle point**: a point where the loss is flat, rises in some directions and falls in others.
# - **symmetry breaking**: starting at random, so that equal parts can become different.
# - **gold links**: the true word pairs, here known because the pairs are generated.
# - **control**: a measurement where a claimed effect should be absent.

# %% [markdown]
# ## Summary
#
# A row of weights makes one mean, and two unknown words cannot be got back from it; several heads, each with its own W_Q, W_K and W_V, carry them side by side.
# Each of W_Q, W_K and W_V is one projection for all heads, d_model wide; its result is unflattened and transposed to (batch, heads, length, d_k). The context is transposed back, then flattened. Without a transpose the shape stays right, but positions mix.
# W_O, d_model × d_model, mixes the heads: the output is the sum of what each head writes through its slice.
# More heads cost no parameters and no FLOPs in the matrix products, only more attention weights.
# But they share d_model, so num_heads must divide it, and each gets narrower: a head of width 1 can give its largest weight to only two positions.
# Heads that start equal, in W_O too, have equal gradients; a random start makes them different.
# So a token can get two things: in the `course` translator, in one pattern of sentence, the article of an object of *gives* looks at its noun in one head and at the verb in another.
# In many sentences, the first of these heads takes articles, possessives and adjectives to the next noun, and other words seldom.
#
# **Practice**: [assignment 04](assignments/release/04_multi_head/04_multi_head.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [05](05_masks.ipynb) decides who may look at whom, because in a batch some keys are padding, and a decoder must not see the future.
