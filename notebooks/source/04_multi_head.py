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
from course_lib.figures import Panel, attention_grid, bars, curves, panels
from course_lib.position import sinusoidal
from course_lib.widgets import Predict, Predictions

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # small tensors: two threads would wait for each other

# %% [markdown]
# ## Who sees whom?
#
# *The cat sees the dog.* · *The dog sees the cat.*
# The word *sees* needs two things from its sentence: who sees, and who is seen.
# Each word is a vector of four random numbers here, and it is its own value.
# We give *sees* the fairest weights there are: half for the subject, half for the object.

# %%
of_sees = Predict(
    "How do the two contexts of *sees* differ?",
    ["not at all", "in half of the numbers", "in all numbers"],
    section="Who sees whom?",
)
of_sees

# %% tags=["nbval-check-output"]
vocab = ["the", "cat", "sees", "dog", "."]
vectors = torch.randn(len(vocab), 4, generator=torch.Generator().manual_seed(0))
sentences = ["the cat sees the dog .".split(), "the dog sees the cat .".split()]
ids = torch.tensor([[vocab.index(word) for word in words] for words in sentences])
values = vectors[ids]  # (batch, keys, d_v)

one_row = torch.tensor([0, 0.5, 0, 0, 0.5, 0])  # (keys,): the weights of "sees"
one_context = one_row @ values  # (batch, d_v)
differ = (one_context[0] != one_context[1]).sum().item()
print(f"{differ} of 4 numbers differ")
with_positions = one_row @ (values + sinusoidal(6, 4))
apart = (with_positions[0] - with_positions[1]).abs().max()
print("with positions added:", "they differ" if apart > 1e-6 else "still the same")
choices = {0: "not at all", 2: "in half of the numbers", 4: "in all numbers"}
of_sees.reveal(choices[differ], because="half a cat and half a dog has no order")

# %% [markdown]
# The sentences mean different things, and nothing that comes later in the model can tell them apart by this context.
# Positions do not help: in both sentences the same two positions are added.
#
# Now we give *sees* two rows of weights, one for the subject and one for the object.
# Their contexts are put side by side: they are **concatenated**.

# %%
two_rows = torch.tensor([[0.0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]])  # (heads, keys)
two_contexts = (two_rows @ values).flatten(1)  # (batch, heads * d_v)

# %% tags=["hide-input"]
which = ["cat sees dog", "dog sees cat"]
heads_of_sees = ["one head", "head 0", "head 1"]
both_ways = torch.cat([one_row[None], two_rows])
panels(
    [
        Panel(both_ways, heads_of_sees, sentences[0], "weights of sees", "weights"),
        Panel(one_context, which, range(4), "context of one head"),
        Panel(two_contexts, which, range(8), "contexts of two heads"),
    ],
    title="One head gives the same row for both sentences, two heads do not",
)

# %% tags=["hide-input"]
_, the_cat, _, the_dog, _ = vectors
assert differ == 0 and apart < 1e-6
assert torch.equal(two_contexts[0], torch.cat([the_cat, the_dog]))
assert torch.equal(two_contexts[1], torch.cat([the_dog, the_cat]))

# %% [markdown]
# In the middle both rows are the same; on the right the halves swap.
#
# ## Can unequal weights save one head?
#
# With weights of 0.8 and 0.2 the two means differ.
# So let us ask in general: a token wants the content of the word **before** it and of the word **after** it.
# The contents are random, eight numbers each, in sentences of six tokens.
# (Before the first word comes the last, so that every token has two neighbors.)


# %%
def neighbors(count, generator):
    """Random tokens (count, 6, 16), and what each of them wants (count, 6, 16)."""
    content = torch.randn(count, 6, 8, generator=generator)
    position = 2 * torch.eye(8)[:6].expand(count, -1, -1)  # tells the six apart
    tokens = torch.cat([content, position], dim=-1)
    return tokens, torch.cat([content.roll(1, 1), content.roll(-1, 1)], dim=-1)


_, pairs_wanted = neighbors(500, torch.Generator().manual_seed(0))
pairs_wanted = pairs_wanted.flatten(0, 1)  # (tokens, 16)
before, after = pairs_wanted.chunk(2, dim=-1)  # (tokens, 8) each

# %% [markdown]
# One head mixes both into one mean: a share of the word before, the rest of the word after.
# Then the best possible matrix tries to get both back.
# What it cannot get back, as a share of the variance, we call lost.


# %%
def lost(context):
    """Share of what is wanted that the best matrix cannot get back: before, after."""
    matrix = torch.linalg.lstsq(context, pairs_wanted).solution
    errors = (context @ matrix - pairs_wanted).square().sum(dim=0)
    errors = errors / pairs_wanted.square().sum(dim=0)  # (16,)
    return [half.mean().item() for half in errors.chunk(2)]


# %%
best_share = Predict(
    "Which weight on the word before loses least, on average over both words?",
    ["0.5", "0 or 1", "all lose the same"],
    section="Can unequal weights save one head?",
)
best_share

# %%
shares = [number / 20 for number in range(21)]
lost_halves = [lost(share * before + (1 - share) * after) for share in shares]
lost_before, lost_after = zip(*lost_halves, strict=True)
lost_both = [sum(halves) / 2 for halves in lost_halves]
spread = max(lost_both) - min(lost_both)
print(f"lost of both: {min(lost_both):.2f} to {max(lost_both):.2f}")
print(f"with two heads: {max(lost(torch.cat([before, after], dim=-1))):.2f}")
least = "0.5" if lost_both[10] < lost_both[0] else "0 or 1"
best_share.reveal("all lose the same" if spread < 0.03 else least)

# %% tags=["hide-input"]
curves(
    {
        "word before": (shares, lost_before),
        "word after": (shares, lost_after),
        "mean of both": (shares, lost_both),
    },
    xlabel="weight on the word before",
    ylabel="share that is lost",
    title="However one head divides its weights, half of what is wanted is lost",
)

# %% tags=["hide-input"]
assert all(abs(loss - 0.5) < 0.02 for loss in lost_both)
assert max(lost(torch.cat([before, after], dim=-1))) < 1e-6  # two heads
assert lost_before[0] > 0.98 and lost_before[-1] < 1e-6

# %% [markdown]
# The weights decide *what* is lost, but not *how much*.
#
# Why half?
# A mean of contents has 8 numbers, and a matrix makes 16 of them, but they all come from those 8.
# In the words of linear algebra: what one head can deliver here is a matrix of **rank** 8, and what is wanted has rank 16.
# Wider values would not help: a head has one W_V, the same for all keys, so it cannot send the word before to one place and the word after to another. Only the 8 numbers of the mean go in.
# (A nonlinear layer could untangle a mean of unequal weights; two heads never tangle it.)
# The singular values say how close *any* matrix of rank 8 can come (the theorem of Eckart and Young).

# %%
singular = torch.linalg.svdvals(pairs_wanted.double())
bound = (singular[8:].square().sum() / singular.square().sum()).item()
rank = torch.linalg.matrix_rank
print(f"rank {rank(before + after)} against {rank(pairs_wanted)}", end=": ")
print(f"at least {bound:.2f} is lost")

# %% tags=["hide-input"]
assert (int(rank(before + after)), int(rank(pairs_wanted))) == (8, 16)
assert 0.45 < bound < min(lost_both)

# %% [markdown]
# The bound is a little below one half because the best 8 of 16 directions may be chosen after seeing this sample, and by chance some vary more than others.
# It holds even if the weights change from sentence to sentence: a mean of contents always has 8 numbers.
# The paper puts it in three words: "averaging inhibits this" (section 3.2.2).
#
# A token wants to know several things about the others: which word it belongs to, who does what, gender, number.
# So the paper runs several attentions in parallel, each with its own W_Q, W_K and W_V.
# Each of them is a **head**, and all together are **multi-head attention**.
# If you know convolutions, think of channels: one input, several filters, outputs stacked.
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
# The input `x` holds our two sentences, embedded, with their positions.

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
# Side by side, the four narrow matrices are one of 12 × 12, and one product does the work of four. (`nn.Linear` stores its matrix transposed, so in the code they come one below the other.)


# %%
def stacked(name):
    """The heads' projections of that name as one d_model-wide projection."""
    parts = [getattr(head, name) for head in heads]
    wide = nn.Linear(d_model, d_model)
    wide.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    wide.bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    return wide


query_proj, key_proj = stacked("query_proj"), stacked("key_proj")
value_proj = stacked("value_proj")
one_by_one = torch.cat([head.query_proj(x) for head in heads], dim=-1)
print(f"they differ by {(query_proj(x) - one_by_one).abs().max():.0e} at most")

# %% [markdown]
# Now the 12 features of a token have to become 4 heads of 3, and the heads have to come before the positions.
# Then the last two dimensions, (length, d_k), belong to one head.
# There are two steps: **unflatten** the features, then **transpose** heads and length.
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
# In lesson 03, `@` treated every dimension but the last two as a batch.
# So all heads of all sentences go through `attention` at once.

# %%
context, weights = attention(query, key, value)
at_once = output_proj(merge(context))
print("weights", tuple(weights.shape), "· context", tuple(context.shape))
print(f"loop and product differ by {(at_once - by_loop).abs().max():.0e} at most")
torch.testing.assert_close(at_once, by_loop)

# %% tags=["hide-input"]
from course_lib.figures import Block, flow_figure

wide, narrow = (length, d_model), (num_heads, length, d_k)
blocks = [Block("x", wide, "length × d_model", (0, 1.25))]
for row, name in zip((0, 1.25, 2.5), ("queries", "keys", "values"), strict=True):
    blocks.append(Block(name, wide, "length × d_model", (1.1, row)))
    split_up = f"{name} by head"
    blocks.append(Block(split_up, narrow, "heads × length × d_k", (2.25, row)))
by_head = (num_heads, length, length)
blocks += [Block("weights", by_head, "heads × queries × keys", (3.4, 0.6), "weights")]
blocks += [Block("context", narrow, "heads × length × d_k", (4.5, 1.0))]
blocks += [Block("concatenated", wide, "length × d_model", (4.5, 2.5))]
blocks += [Block("output", wide, "length × d_model", (3.4, 2.5), "result")]

# %% tags=["hide-input"]
three = ("queries", "W_Q"), ("keys", "W_K"), ("values", "W_V")
ways = [("x", name, matrix) for name, matrix in three]
ways += [(name, f"{name} by head", "split") for name, _ in three]
ways += [("queries by head", "weights", "softmax"), ("keys by head", "weights", "")]
ways += [("weights", "context", "@"), ("values by head", "context", "")]
ways += [("context", "concatenated", "merge"), ("concatenated", "output", "W_O")]
assert [each.shape for each in blocks[2::2][:3]] == [query[0].shape] * 3
assert (weights[0].shape, context[0].shape) == (by_head, narrow)
title = "One sentence in four heads: split, attend, merge, and mix with W_O"
flow_figure(blocks, ways, title=title)

# %% tags=["hide-input"]
torch.testing.assert_close(query_proj(x), one_by_one)
for number, head in enumerate(heads):
    torch.testing.assert_close(query[:, number], head.query_proj(x))
torch.testing.assert_close(merge(context), concatenated)

# %% [markdown]
# The loop over the heads has become one batched product, with the same result.
#
# ## The reshape that mixes positions
#
# **A common mistake**: asking for the final shape in one step, `view(batch, heads, length, d_k)`.
# Nothing crashes, because the shapes agree.
# To see what it does, we fill the features of every token with the number of its position.

# %%
of_head_0 = Predict(
    "Head 0 has six rows. From how many of the six positions do their numbers come?",
    section="The reshape that mixes positions",
)
of_head_0

# %% tags=["nbval-check-output"]
position = torch.arange(6)[None, :, None].expand(1, 6, d_model)  # (1, length, d_model)
with_transpose = split(position)[0]  # (heads, length, d_k)
one_step = position.reshape(1, num_heads, length, d_k)[0]
for number in range(num_heads):
    good, bad = (way[number].unique().tolist() for way in (with_transpose, one_step))
    print(f"head {number}: with the transpose {good}, in one step {bad}")
why = "18 numbers are one token of 12 and half of the next"
of_head_0.reveal(len(one_step[0].unique()), because=why)

# %% tags=["hide-input"]
labels = [f"row {row}" for row in range(length)]
panels(
    [
        Panel(with_transpose[0], labels, range(d_k), "head 0, right"),
        Panel(one_step[0], labels, range(d_k), "head 0, wrong"),
    ],
    title="Right, a head gets all six positions; wrong, two",
    words={"signed": "position"},
)

# %% tags=["hide-input"]
assert with_transpose.shape == one_step.shape
for number in range(num_heads):
    assert with_transpose[number].unique().tolist() == list(range(6))
    assert len(one_step[number].unique()) == 2

# %% [markdown]
# Right: every head gets all six tokens, a quarter of the features of each.
# Wrong: every head gets a token and a half, cut in pieces, and the pieces attend to one another.
#
# Which test finds it?
# Lesson 02 showed that self-attention is equivariant: permuted rows in, permuted rows out.


# %% tags=["nbval-check-output"]
def wrong_split(x, heads=num_heads):
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


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
# The shapes are equal, and only the right way is equivariant.
# A test with one token, or with one head, does not find the mistake: there both ways are the same.
#
# ## What does W_O do?
#
# The concatenated contexts lie side by side: features 0 to 2 come from head 0, features 3 to 5 from head 1, and so on.
# Let us cut W_O into slices, one for each head's features, and add up (context of a head) @ (its slice).

# %%
slices = output_proj.weight.T.split(d_k)  # one (d_k, d_model) for each head
added = sum(context[:, number] @ each for number, each in enumerate(slices))
difference = (added + output_proj.bias - by_loop).abs().max()
print(f"the sum, plus the bias, differs from the output by {difference:.0e} at most")
for name, function in (("without W_O", lambda x: x), ("with W_O", output_proj)):
    leaf = concatenated.detach().requires_grad_()
    function(leaf)[..., 0].sum().backward()
    reach = leaf.grad.abs().unflatten(-1, (num_heads, d_k)).sum(dim=(0, 1, 3))
    print(f"{name}: feature 0 depends on heads {reach.nonzero().flatten().tolist()}")

# %% tags=["hide-input"]
torch.testing.assert_close(added + output_proj.bias, by_loop)
assert len(slices) == num_heads and slices[0].shape == (d_k, d_model)
assert (reach > 0).all()  # with W_O

# %% [markdown]
# So concatenating and multiplying by one matrix means: each head writes to the output through its own d_k × d_model matrix, and the results are added.
# Without W_O, an output feature depends on one head alone; W_O **mixes** the heads.
#
# **A common mistake**: "W_O reduces the dimension."
# There is nothing to reduce.
# In the paper's base model, 8 heads of width 64 are 512 numbers already, and W_O is 512 × 512.

# %% tags=["nbval-check-output"]
from course_lib import model_preset

for name in ("base", "big"):
    preset = model_preset(name, vocab_size=37_000)
    sizes = f"{preset.num_heads} heads × {preset.d_k} = d_model {preset.d_model}"
    print(f"{name:5}{sizes}")

# %% tags=["hide-input"]
assert preset.num_heads * preset.d_k == preset.d_model and preset.d_k == 64

# %% [markdown]
# Section 3.2.2 has all of it in one line: h = 8, d_k = d_v = d_model / h = 64.
#
# ## The class
#
# We put the parts together.
# The query may come from other tokens than the key and the value, so there are three arguments.
# As in PyTorch, our projections have biases; the paper's formula has none.


# %%
class MultiHead(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("query_proj", "key_proj", "value_proj", "output_proj"):
            setattr(self, name, nn.Linear(d_model, d_model))

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
# Is it the function that `course_lib` has, and that PyTorch has?
# `course_lib` names its matrices as we do, so one line copies our weights.
# `torch.nn.MultiheadAttention` keeps W_Q, W_K and W_V in one matrix, one below the other.
# We take four queries and six keys, and compare outputs and gradients.

# %% tags=["hide-input"]
ours = MultiHead(d_model, num_heads).double()
finished = MultiHeadAttention(d_model, num_heads).double()
finished.load_state_dict(ours.state_dict())
theirs = nn.MultiheadAttention(d_model, num_heads, batch_first=True).double()
projections = (ours.query_proj, ours.key_proj, ours.value_proj)
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
theirs.out_proj.load_state_dict(ours.output_proj.state_dict())

# %%
tgt, src = torch.randn(batch, 4, d_model).double(), x.double()
for tensor in (tgt, src):
    tensor.requires_grad_()
by_page = ours(tgt, src, src)
by_library = finished(tgt, src, src)
by_torch, torch_weights = theirs(tgt, src, src, average_attn_weights=False)
print("output", tuple(by_page.shape))
for name, other in (("course_lib", by_library), ("PyTorch", by_torch)):
    losses_of_both = (each.square().sum() for each in (by_page, other))
    of_src = [torch.autograd.grad(each, src, retain_graph=True)[0]
              for each in losses_of_both]
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
# The same function, forward and backward, up to rounding.
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
# ## What do heads cost?
#
# Sixteen heads must cost more than one, or not?
# We count parameters and **FLOPs** (floating-point operations: a multiplication and an addition are two), for d_model 512 and a sentence of 30 tokens.

# %%
of_price = Predict(
    "By what factor do the FLOPs grow from 1 head to 16?",
    ["×1", "×4", "×16"],
    section="What do heads cost?",
)
of_price

# %% tags=["nbval-check-output"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

counts, sentence = (1, 2, 4, 8, 16), torch.zeros(1, 30, 512)
parameters, flops, entries = [], [], []
print("heads   parameters        FLOPs   weights")
for count in counts:
    layer, counter = MultiHeadAttention(512, count), FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        layer(sentence, sentence, sentence)
    parameters.append(sum(each.numel() for each in layer.parameters()))
    flops.append(counter.get_total_flops())
    entries.append(MultiHead(512, count).attend(*[sentence] * 3)[1].numel())
    print(f"{count:5} {parameters[-1]:12,} {flops[-1]:12,} {entries[-1]:9,}")
why = "each of the 16 is a sixteenth as wide"
of_price.reveal(f"×{flops[-1] / flops[0]:.0f}", because=why)

# %% tags=["hide-input"]
assert set(parameters) == {4 * (512 * 512 + 512)}
# Four projections, then scores and context: two for each multiplication and addition.
assert set(flops) == {2 * (4 * 30 * 512 * 512 + 2 * 30 * 30 * 512)}
assert entries == [count * 30 * 30 for count in counts]

# %% [markdown]
# Neither grows: with twice as many heads, each is half as wide.
# The projections stay d_model × d_model, and scores and context take heads × d_k = d_model multiplications each for each pair of tokens.
# One thing does grow: every head has its own weights, heads × queries × keys numbers, and each is an exponential to compute.
# (The counter leaves exponentials out.)
#
# d_model is divided among the heads, so it must be divisible by num_heads.

# %% tags=["nbval-check-output"]
try:
    MultiHeadAttention(512, 6)
except ValueError as error:
    print(error)

# %% [markdown]
# ## How many heads?
#
# If heads cost no parameters and (almost) no FLOPs, why not 512 of them?
# Rows (A) of the paper's table 3, with the base model between them, change the number of heads, and d_k = d_v with it, and report BLEU on the development set (higher is better):
#
# | heads | 1 | 4 | 8 | 16 | 32 |
# |---|---|---|---|---|---|
# | d_k | 512 | 128 | 64 | 32 | 16 |
# | BLEU | 24.9 | 25.5 | 25.8 | 25.8 | 25.4 |
#
# One head is worst, and too many are worse as well.
# We look for the same on a small scale, with a layer of width 16 that has to deliver both neighbors: `fresh` makes one, `train` shows it 100 batches of new sentences.
# "Lost" is the mean squared error (`at_end` takes the last ten batches): 1 means that nothing arrives, because the contents have variance 1.

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
of_sixteen = Predict(
    "One head loses half. What do sixteen heads lose, each one number wide?",
    unit="%",
    off_by=10,
    section="How many heads?",
)
of_sixteen

# %%
trained, ends = {}, {}
for count in counts:
    trained[count] = [fresh(MultiHeadAttention, count, seed) for seed in range(3)]
    runs = [train(layer, seed) for seed, layer in enumerate(trained[count])]
    ends[count] = [at_end(losses) for losses in runs]
    by_seed = " ".join(f"{loss:.3f}" for loss in ends[count])
    print(f"{count:2} heads, d_k {16 // count:2}: lost {by_seed}")
why = "a head that is one number wide can hardly aim"
of_sixteen.reveal(round(100 * sum(ends[16]) / 3), because=why)

# %% tags=["hide-input"]
figure = curves(
    {"3 seeds, after 100 steps": (counts, list(zip(*ends.values(), strict=True)))},
    xlabel="heads; d_k = 16 / heads",
    ylabel="share that is lost",
    title="One head loses half, two to eight far less, and sixteen lose half as well",
    marks={"half": (None, 0.5)},
)
_ = figure.axes[0].set_xticks(counts)
figure

# %% tags=["hide-input"]
assert 0.45 < min(ends[1]) <= max(ends[1]) < 0.6
assert max(ends[2] + ends[4] + ends[8]) < 0.2 and min(ends[16]) > 0.4
for lr in (0.01, 0.1):  # another learning rate does not save sixteen heads
    again = at_end(train(fresh(MultiHeadAttention, 16, seed=0), 0, lr=lr))
    print(f"16 heads with learning rate {lr}: lost {again:.3f}")
    assert again > 0.4

# %% [markdown]
# One head ends at the half that we computed, two find a way to deliver both, and neither of two other rates (one seed, 100 steps) saves sixteen.
#
# Why?
# With d_k = 1, a score is a product of two numbers.
# A positive query gives the largest score to the largest key, a negative query to the smallest.
# So however it is trained, such a head can give its largest weight to two positions only.
# With d_v = 1 a head also carries one number only.
# There are 16 numbers to deliver and 16 heads, so no head may fail.
# Each must find one neighbor, the word before or the word after, for all six queries.
# But each can aim at two positions only, so for most queries it points at the wrong word.
# (That it is again about half has nothing to do with the bound for one head.)

# %% tags=["nbval-check-output"]
tokens, _ = neighbors(200, torch.Generator().manual_seed(9))
for count in (2, 16):
    copy = MultiHead(16, count)
    copy.load_state_dict(trained[count][0].state_dict())
    with torch.no_grad():
        top = copy.attend(*[tokens] * 3)[1].argmax(dim=-1)  # (batch, heads, queries)
    aims = max(len(set(row.tolist())) for row in top.flatten(0, 1))
    print(f"{count} heads: a head's six queries choose among {aims} positions at most")

# %% tags=["hide-input"]
assert aims == 2  # of 16 heads

# %% [markdown]
# More heads cost no parameters, but narrow heads aim badly: d_k is the price. (Here d_v shrinks along with it; rows (B) of table 3 shrink d_k alone, and BLEU falls, too.)
# @bhojanapalli2020 call it the **low-rank bottleneck**: a head narrower than the sentence is long cannot produce every pattern of weights. Ours of width 4 is narrower than six and loses nothing, because a neighbor is an easy pattern.
# Real sentences do not need every pattern; the paper's choice is d_k = 64.
#
# ## Why do heads become different?
#
# No rule says what a head should do.
# All that makes two heads different at first is their random start.
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
# The same weights give the same context, the same context gives the same gradient, and the same gradient gives the same weights again.
# So two heads that start alike should stay alike: one head, paid for twice.
#
# `follow` trains four pairs: twins; twins with one number nudged by 10⁻⁶ or by 10⁻¹⁰; and twins made equal again after every step.

# %%
of_twins = Predict(
    "What happens to the twins' loss in 170 steps?",
    ["stays near half", "falls at once", "stays near half for long, then falls"],
    section="Why do heads become different?",
)
of_twins

# %% tags=["hide-input"]
def apart(layer):
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
        differences.append(apart(layer))

    return train(layer, 0, steps=170, after_step=note), differences


# %%
followed = {
    "nudged by 1e-6": follow(twins(1e-6)),
    "nudged by 1e-10": follow(twins(1e-10)),
    "twins": follow(twins()),
    "made equal": follow(twins(), after_step=make_alike),
}
for name, (losses, gaps) in followed.items():
    print(f"{name:16}loss {at_end(losses):.3f}, difference {gaps[-1]:.0e}")
late, early = at_end(followed["twins"][0]), followed["twins"][0][60]
outcome = "stays near half for long, then falls" if late < 0.3 else "stays near half"
of_twins.reveal("falls at once" if early < 0.3 else outcome)

# %% tags=["hide-input"]
assert min(followed["made equal"][0]) > 0.4
curves(
    {name: (range(170), losses) for name, (losses, _) in followed.items()},
    xlabel="step",
    ylabel="share that is lost",
    title="The smaller the first difference, the later the heads part",
)

# %% tags=["hide-input"]
curves(
    {  # a difference of exactly 0 has no logarithm, and is drawn at the lower edge
        name: (range(170), [max(gap, 1e-17) for gap in gaps])
        for name, (_, gaps) in followed.items()
    },
    xlabel="step",
    ylabel="largest difference between the heads",
    title="On the plateau any difference grows exponentially, even one of rounding",
    log_y=True,
)

# %% tags=["hide-input"]
def parts_at(name):
    """The first step at which the heads differ by more than 0.1."""
    return next(step for step, gap in enumerate(followed[name][1]) if gap > 0.1)


nudged = [followed[f"nudged by 1e-{power}"] for power in (6, 10)]
sooner, later = parts_at("nudged by 1e-6"), parts_at("nudged by 1e-10")
print(f"the nudged heads differ by 0.1 after {sooner} and {later} steps")
assert 30 < sooner < later - 10 < 140
assert max(at_end(losses) for losses, _ in nudged) < 0.1
growth = [gaps[55] / gaps[40] for _, gaps in nudged]  # on the plateau the same factor
assert min(growth) > 10 and max(growth) < 2 * min(growth)
_, held_gaps = followed["made equal"]
assert max(held_gaps) == 0
gaps = followed["twins"][1]  # 0 on machines that round both heads alike
assert gaps[10] < 1e-14 and (gaps[-1] > 0.1 or max(gaps) == 0)

# %% [markdown]
# As long as the heads are nearly equal, they do what one head can, and the loss waits near one half.
# That is a **saddle point**: equal heads cannot get below one half. Heads that differ can, but while the difference is tiny the loss hardly slopes.
# There every difference grows by the same factor per step, as the parallel lines show, and the smaller it was, the later the loss falls.
#
# The twins that nobody nudged part by rounding alone.
# A sum depends, in its last digit, on the order of its terms, so the two heads do not get exactly the same numbers.
# The run "made equal" removes this difference after every step, and its heads stay equal.
# (On a machine that adds in the same order for both heads, the twins stay equal too; in the figure, a difference of 0 is drawn at 10⁻¹⁷.)
#
# That is why weights start at random: it is called **symmetry breaking**, and it lets heads divide the work from the first step on.
#
# ## Break it: forget to transpose back
#
# Before the flatten, heads and positions must swap again.
# What if we forget that, or the transpose in the split, in a layer that learns?


# %%
class SplitWithoutTranspose(MultiHead):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


class MergeWithoutTranspose(MultiHead):
    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


# %% [markdown]
# No error tells us: the output has the right shape.
# Will the training tell us?
# We train the right layer and the wrong ones, each for 100 steps and with two seeds.

# %%
variants = {
    "right, 4 heads": (MultiHead, 4),
    "wrong split, 4 heads": (SplitWithoutTranspose, 4),
    "wrong merge, 4 heads": (MergeWithoutTranspose, 4),
    "right, 2 heads": (MultiHead, 2),
    "wrong merge, 2 heads": (MergeWithoutTranspose, 2),
}
learned = {}
for name, (layer_class, count) in variants.items():
    layers = [fresh(layer_class, count, seed) for seed in range(2)]
    learned[name] = [train(layer, seed) for seed, layer in enumerate(layers)]
    falls = (f"{run[0]:.2f} → {at_end(run):.3f}" for run in learned[name])
    print(f"{name:22}", *falls, sep="   ")

# %% tags=["hide-input"]
one_sentence, _ = neighbors(1, torch.Generator().manual_seed(0))
right = fresh(MultiHead, 4, seed=0)(*[one_sentence] * 3)
for layer_class in (SplitWithoutTranspose, MergeWithoutTranspose):
    output = fresh(layer_class, 4, seed=0)(*[one_sentence] * 3)
    assert output.shape == right.shape and not torch.allclose(output, right, atol=0.01)
assert all(at_end(run) < 0.85 * run[0] for runs in learned.values() for run in runs)
last = {name: [at_end(run) for run in runs] for name, runs in learned.items()}
fine = last["right, 4 heads"] + last["right, 2 heads"] + last["wrong merge, 2 heads"]
assert max(fine) < 0.02
assert min(last["wrong split, 4 heads"] + last["wrong merge, 4 heads"]) > 0.3

# %% [markdown]
# The loss falls everywhere: a network learns around a mistake as far as it can.
# With two heads the wrong merge ends as low as the right one: each of its rows holds what *one* head found at two positions, and as all sentences here have six tokens, it can learn which neighbor of which row to fetch at each of them. At another length that would be worth nothing.
# So a low loss does not show that the code is right; equality with the loop, or with PyTorch's layer, does.
#
# ## Heads at work
#
# Do the heads of a trained model look at different things?
# We ask `course`, the translator of lesson 03: two layers, four heads each.

# %% tags=["nbval-check-output"]
from course_lib import Translator

translator = Translator.from_pretrained("course")
translator.model.to(device)
text = "The old woman gives the child a red apple."
translation = translator.translate(text, attention=True)
src_tokens, tgt_tokens = translation.src_tokens, translation.tgt_tokens
print(translation.text)
print(translator.translate("The old man gives the woman a red apple."))

# %% [markdown]
# In the picture German words look at English words: that is cross-attention, and lesson [07](07_decoder.ipynb) builds it.
# A row belongs to the German token that is being *predicted*; these are the four heads of the last layer.

# %%
cross = translation.attention.cross[-1].cpu()  # (heads, queries, keys)
title = "For dem and einen, head 0 looks at the noun, the other heads at the article"
figure = attention_grid(cross, tgt_tokens, src_tokens, title=title)
_ = figure.axes[0].set_ylabel("predicted token")
figure

# %% tags=["hide-input"]
assert [len(layer) for layer in translation.attention.cross] == [4, 4]  # heads
looks = [[src_tokens[key] for key in row] for row in cross.argmax(dim=-1).tolist()]
for article, noun, own in (("▁dem", "▁child", "▁the"), ("▁einen", "▁apple", "▁a")):
    row = tgt_tokens.index(article)
    assert [head[row] for head in looks] == [noun, own, own, own]
assert all(head[tgt_tokens.index("▁Kind")] == "▁child" for head in looks)
assert looks[0][tgt_tokens.index("▁Die")] == "▁The"

# %% [markdown]
# Three heads find the word that is being translated.
# Head 0 looks at the noun when *dem* or *einen*, or an adjective, is about to be written (not for *Die*, which opens the sentence).
# German needs to know the noun: the child is *dem Kind*, the woman is *der Frau*, as the second translation above shows.
#
# And where can the English *the* learn what it belongs to?
# In the encoder, where English words look at English words.
# Here are two heads of its last layer.

# %% tags=["hide-input"]
in_encoder = translation.attention.encoder[-1].cpu()  # (heads, queries, keys)
two = [Panel(in_encoder[head], src_tokens, src_tokens, f"head {head}", "weights")
       for head in (1, 3)]
panels(two, title="Head 1: articles look at nouns; head 3: two of them at the verb")

# %% tags=["hide-input"]
for row, noun in ((0, "▁woman"), (4, "▁child"), (6, "▁apple")):
    assert src_tokens[row].lower() in ("▁the", "▁a")
    assert src_tokens[in_encoder[1, row].argmax()] == noun
verb = src_tokens.index("▁gives")
assert in_encoder[3, [4, 6], verb].min() > 0.9 and in_encoder[3, 0, verb] < 0.1

# %% [markdown]
# In head 1 *The* looks mostly at *woman*, *the* at *child*, *a* at *apple*.
# In head 3 the articles of the two objects look at the verb, and the article of the subject does not.
# Does it hold in other sentences?
# Type one with several articles.

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, text, kind="encoder", head=1)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for(text, explorer.text):
    assert explorer.view["src"] == src_tokens

# %% [markdown]
# ## Attention, scored
#
# A picture suggests; only counting decides.
# The course corpus knows which word translates which: its pairs are generated, and come with **gold links**.
# Links connect words and attention connects tokens, so we look up which tokens spell a word.

# %%
from course_lib.data import encode_pairs, load_course, make_batch

num_pairs = 1000 if device == "cuda" else 200
pairs = load_course(num_train=1, num_valid=1, num_test=num_pairs, seed=1).test
print(pairs[3].src, "→", pairs[3].tgt)
source, target = pairs[3].src_words, pairs[3].tgt_words
print(*(f"{source[s]} = {target[t]}" for s, t in pairs[3].links), sep=" · ")

# %% tags=["hide-input"]
from course_lib.analysis import word_spans


def spans(pair):
    """The positions of the tokens of each English word, and of each German word."""
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    tokens = translator.tokenizer.tokens
    return [word_spans(words, tokens(text)) for text, words in texts]


def goals(pair):
    """For each linked German word: its first row, the tokens of its English words."""
    src, tgt = spans(pair)
    wanted = {}
    for src_word, tgt_word in pair.links:
        wanted.setdefault(tgt[tgt_word][0], set()).update(src[src_word])
    return list(wanted.items())


# %% [markdown]
# How often does a head's largest weight fall on a linked word?
# We ask for each German word, in the row that predicts its first token, in 200 sentence pairs (1000 where there is a GPU).
# The model reads the true German sentence, and we record all its heads.


# %%
from course_lib import record_attention


def hits(weights, wanted):
    """For each (row, keys): whether each head's largest weight is among the keys."""
    top = weights.argmax(dim=-1).tolist()  # (heads, queries)
    return [[head[row] in keys for head in top] for row, keys in wanted]


encoded = make_batch(encode_pairs(translator.tokenizer, pairs)).to(device)
with torch.no_grad(), record_attention(translator.model) as maps:
    translator.model(encoded.src, encoded.tgt_in)
all_cross = torch.cat(maps.cross, dim=1).cpu()  # (pairs, all heads, queries, keys)

# %% [markdown]
# A score needs something to compare with.
# Ours is the *diagonal*: a guess that knows no words and always points from row *t* to English token *t*.
# (Lesson [12](12_reading_attention.ipynb) compares with real word aligners.)
# `goals` lists the rows and their tokens; to check our rows, we also score each one row lower, where the word's first token has been read.

# %%
found, lower, on_diagonal = [], [], []
for each, pair in zip(all_cross, pairs, strict=True):
    wanted = goals(pair)
    found += hits(each, wanted)
    lower += hits(each, [(row + 1, keys) for row, keys in wanted])
    on_diagonal += [row in keys for row, keys in wanted]
score = 100 * torch.tensor(found).double().mean(dim=0)  # (heads,), in percent
score_lower = 100 * torch.tensor(lower).double().mean(dim=0)
diagonal = 100 * sum(on_diagonal) / len(on_diagonal)

# %% tags=["hide-input"]
best, worst = score.argmax().item(), score.argmin().item()
bars(
    [f"layer {layer}, head {head}" for layer in range(2) for head in range(4)],
    score.tolist(),
    xlabel=f"German words that look most at a linked word (%), of {len(found)}",
    title=f"The best head finds the linked word in {score[best]:.0f} %, "
    f"the worst in {score[worst]:.0f} %, the diagonal in {diagonal:.0f} %",
    reference=("diagonal", diagonal),
)

# %% tags=["hide-input"]
assert all_cross.shape[:2] == (num_pairs, 8)
assert best >= 4 and score[best] > 90 and score[best] - score[worst] > 25
assert score[4] + 8 < min(score[5:]) > 80 and diagonal + 5 < score[worst]
assert max(score_lower) < diagonal and max(score_lower[4:]) < 20

# %% [markdown]
# In the course's generated sentences, heads differ clearly, and each is better than the diagonal.
# In the last layer three heads are good aligners, and head 0 is worse.
#
# Check: we shift every row by one.

# %%
print(f"one row lower, no head scores above {score_lower.max():.0f} %")

# %% [markdown]
# So a row belongs to the token it predicts.
#
# ### What does a head look for?
#
# In the encoder, head 1 took articles to their nouns.
# Is that its job, or does it take every word to the next noun?
# For each word that has a noun after it we ask: does the head's largest weight fall on the *next* noun? (In cross-attention: in the row that predicts the word's German link.)
# We count articles with the noun next to them and with something between, possessives, adjectives, and, as the **control**, all other words. `select` picks such groups.

# %%
of_others = Predict(
    "Of words such as *gives* or *in*, how many look most at the next noun in head 1?",
    unit="%",
    off_by=10,
    section="What does a head look for?",
)
of_others

# %% tags=["hide-input"]
ARTICLES = {"the", "a", "an"}
POSSESSIVES = {"my", "your", "his", "her", "its", "our", "their"}
GROUPS = ["article, noun next", "article, noun later", "possessive", "adjective"]
GROUPS += ["any other word"]


def group_of(words, word, noun):
    """What an English word is to the next noun on its right."""
    if words[word] in ARTICLES:
        return GROUPS[0] if noun == word + 1 else GROUPS[1]
    if words[word] in POSSESSIVES:
        return GROUPS[2]
    before = word > 0 and words[word - 1] in ARTICLES | POSSESSIVES
    return GROUPS[3] if before and noun == word + 1 else GROUPS[4]


# %% tags=["hide-input"]
def before_nouns(pair):
    """Group, English row, German row or None, and tokens of the next English noun."""
    src, tgt = spans(pair)
    capital = {t: word[0].isupper() for t, word in enumerate(pair.tgt_words)}
    nouns = {s for s, t in pair.links if t and capital[t]}  # German nouns have one
    words = [word.lower() for word in pair.src_words]
    for word in range(max(nouns, default=0)):
        if word in nouns:
            continue
        noun = min(each for each in nouns if each > word)
        linked = [t for s, t in pair.links if s == word]
        alone = len(linked) == sum(t in linked for _, t in pair.links) == 1
        german = tgt[linked[0]][0] if alone else None
        yield group_of(words, word, noun), src[word][0], german, src[noun]


# %% tags=["hide-input"]
seen = {"encoder": [], "cross": []}  # (group, opens the sentence?, half, hits) each
layers = zip(maps.encoder[-1].cpu(), maps.cross[-1].cpu(), pairs, strict=True)
for number, (encoder_weights, cross_weights, pair) in enumerate(layers):
    half = 2 * number // num_pairs
    for group, src_row, tgt_row, noun in before_nouns(pair):
        (in_encoder_hits,) = hits(encoder_weights, [(src_row, noun)])
        seen["encoder"].append((group, src_row == 0, half, in_encoder_hits))
        if tgt_row is not None:
            (in_cross_hits,) = hits(cross_weights, [(tgt_row, noun)])
            seen["cross"].append((group, tgt_row == 0, half, in_cross_hits))


def select(kind, groups=GROUPS, opens=(True, False), halves=(0, 1)):
    """Hits (words, heads) of the words that are asked for."""
    rows = [row for row in seen[kind] if row[0] in groups]
    rows = [row[3] for row in rows if row[1] in opens and row[2] in halves]
    return torch.tensor(rows).double()


# %%
roles = {  # kind to the share of words that look most at the next noun
    kind: torch.stack([select(kind, [group]).mean(dim=0) for group in GROUPS])
    for kind in seen
}
other_words = roles["encoder"][GROUPS.index("any other word"), 1].item()
of_others.reveal(round(100 * other_words))

# %% tags=["hide-input"]
panels(
    [
        Panel(share, GROUPS, [f"head {head}" for head in range(4)], kind, "weights")
        for kind, share in roles.items()
    ],
    title="Encoder head 1 takes determiners and adjectives to their noun",
    words={"weights": "share of words that look most at the next noun"},
)

# %% tags=["hide-input"]
sizes = {kind: [len(select(kind, [group])) for group in GROUPS] for kind in seen}
for kind, words in sizes.items():
    print(f"words in each group, {kind}:", *words)
assert roles["encoder"][:4, 1].min() > 0.85 and roles["encoder"][4, 1] < 0.3
assert roles["encoder"][:4, [0, 2, 3]].max() < 0.6
assert roles["cross"][[0, 1, 3], 0].min() > 0.35 and roles["cross"][4].max() < 0.2
assert roles["cross"][:, 1:].max() < 0.2

# %% [markdown]
# A row is a kind of word, and its number says how often such a word's largest weight falls on the next noun.
# The column of encoder head 1 answers: articles, possessives and adjectives nearly always look at their noun, other words in front of it rarely do.
# So our first description was too narrow: the head takes determiners and adjectives to their noun.
# Does it count positions? For articles no: it finds the noun that comes later as well as the one that comes next.
# For adjectives the noun nearly always comes next, so these sentences cannot tell; lesson [12](12_reading_attention.ipynb) sets a fixed distance against every head.
# @clark2019 found the same kind of head in BERT, and @voita2019 found heads with such syntactic roles in translators.
#
# Head 0 of cross-attention, the poor aligner, does something similar, less strictly.
# Where does it fail?

# %%
articles = GROUPS[:2]
for name, opens in (("opens the sentence", [True]), ("later", [False])):
    german = select("cross", articles, opens).mean(dim=0)[0]
    count = len(select("cross", articles, opens))
    print(f"German article {name:18}: {german:4.0%} of {count} look at the noun")

# %% tags=["hide-input"]
first_word = select("cross", articles, [True])[:, 0].mean()
elsewhere = select("cross", articles, [False])[:, 0].mean()
assert first_word < 0.1 and elsewhere > 0.6

# %% [markdown]
# It fails where the article opens the German sentence; elsewhere it finds the noun most of the time.
# A mean can hide a rule and its exception.
#
# Are these heads specialists, or did we pick the luckiest of four?
# To find out, we choose a head for the articles on the first half of the sentences, and score it on the second half.

# %%
from course_lib.metrics import share_estimate

for kind in seen:
    chosen = select(kind, articles, halves=[0]).mean(dim=0).argmax().item()
    unseen = select(kind, articles, halves=[1])[:, chosen]
    share = share_estimate(int(unseen.sum()), len(unseen))
    others = select(kind, ["any other word"], halves=[1])[:, chosen].mean()
    print(f"{kind}, head {chosen}: {share.value:.0%} of {len(unseen)} articles,")
    print(f"   95 % interval {share.low:.0%} to {share.high:.0%};", end=" ")
    print(f"{others:.0%} of other words")

# %% tags=["hide-input"]
for kind, expected, least in (("encoder", 1, 0.85), ("cross", 0, 0.35)):
    averages = select(kind, articles, halves=[0]).mean(dim=0)
    assert averages.argmax() == expected
    again = select(kind, articles, halves=[1])[:, expected]
    estimate = share_estimate(int(again.sum()), len(again))
    control = select(kind, GROUPS[4:], halves=[1])[:, expected].mean()
    assert estimate.low > least and estimate.low > control + 0.2

# %% [markdown]
# The choice holds on sentences that had no part in it.
# Nobody told these heads what to do; training made encoder head 1 a specialist, cross head 0 leans the same way, and W_O gets their reports side by side.
# The head that aligns worse than its neighbors is the one that does something else.
#
# A weight says where a head *looks*, not what the model *uses*: lesson [12](12_reading_attention.ipynb) switches heads off.
# @michel2019 did so in a large translator and in BERT, and many heads could be removed with little loss.
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
# - **rank**: how many independent directions the rows of a matrix span.
# - **FLOPs**: floating-point operations; a multiplication and an addition are two.
# - **low-rank bottleneck**: a head that is too narrow cannot produce every pattern of weights.
# - **saddle point**: where the loss is lowest in some directions, and falls in others.
# - **symmetry breaking**: starting at random, so that equal parts can become different.
# - **gold links**: which word translates which, known because the pairs are generated.
# - **control**: a measurement where a claimed effect should be absent.

# %% [markdown]
# ## Summary
#
# A row of weights makes one mean, and W_O, a matrix, gets no two independent things back from one mean; several heads carry them side by side.
# All heads are one projection, d_model wide, unflattened and transposed to (batch, heads, length, d_k), and transposed back before the flatten.
# W_O, d_model × d_model, mixes the heads: the output is the sum of what each head writes through its slice.
# Heads cost no further parameters and hardly any FLOPs, only more weights to store, but share d_model among them, so num_heads must divide it, and narrow heads aim badly.
# Heads become different because they start different, and in the small `course` translator one of them takes determiners and adjectives to their noun: a picture suggested it, and a control told us what it is.
#
# **Practice**: [assignment 04](assignments/release/04_multi_head/04_multi_head.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [05](05_masks.ipynb) decides who may look at whom, because in a batch some keys are padding, and a decoder must not see the future.
