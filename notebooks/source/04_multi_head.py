# %% [markdown]
# # 04 · Multi-head attention: several looks at once
#
# **Question.** Attention gives each token one weighted mean. What if it needs two things?
#
# **Afterwards you can**
#
# 1. say what one head cannot do, and what several heads cost;
# 2. compute all heads in one product, and recognize the reshape that mixes positions;
# 3. score what the heads of a trained translator look at.
#
# **You need** attention: query, key, value, scores → weights → context (lesson [03](03_attention.ipynb)); sinusoids (lesson [02](02_position.ipynb)).
# **Time**: 35 minutes to read, under 20 seconds to run.
# **In the paper**: section 3.2.2, and rows (A) of table 3.

# %%
import torch
from torch import nn

from course_lib.attention import attention
from course_lib.figures import Panel, attention_grid, bars, curves, panels
from course_lib.position import sinusoidal

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # small tensors: two threads would wait for each other
assert torch.ones(1, device=device).item() == 1

# %% [markdown]
# ## Who sees whom?
#
# *The cat sees the dog.* · *The dog sees the cat.*
# The word *sees* needs two things from its sentence: who sees, and who is seen.
# Each word is a vector of four numbers here, drawn at random.
# We give *sees* the fairest row of weights there is: half for the subject, half for the object.
# Predict: how do its contexts in the two sentences differ?

# %% tags=["nbval-check-output"]
words = ["the", "cat", "sees", "dog", "."]
numbers = torch.randn(len(words), 4, generator=torch.Generator().manual_seed(0))
vectors = dict(zip(words, numbers, strict=True))
sentences = ["the cat sees the dog .", "the dog sees the cat ."]
values = torch.stack(
    [torch.stack([vectors[word] for word in text.split()]) for text in sentences]
)  # (batch, keys, d_v)

one_head = torch.tensor([[0, 0.5, 0, 0, 0.5, 0]])  # (queries, keys): the row of "sees"
mean_context = one_head @ values  # (batch, queries, d_v)
print("largest difference:", (mean_context[0] - mean_context[1]).abs().max().item())
assert torch.equal(mean_context[0], mean_context[1])

# %% [markdown]
# Not at all.
# Half a cat and half a dog is half a dog and half a cat.
# The two sentences mean different things, and nothing that comes later in the model could tell them apart from this context.
#
# Now two rows of weights: one head for the subject, one for the object.
# Their contexts go side by side.

# %%
two_heads = torch.tensor([[0.0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]])  # (heads, keys)
contexts = (two_heads @ values).flatten(1)  # (batch, heads * d_v)
assert torch.equal(contexts[0], torch.cat([vectors["cat"], vectors["dog"]]))
assert torch.equal(contexts[1], torch.cat([vectors["dog"], vectors["cat"]]))

# %%
rows, keys = ["cat sees dog", "dog sees cat"], sentences[0].split()
names, weights = ["one head", "head 0", "head 1"], torch.cat([one_head, two_heads])
figure = panels(
    [
        Panel(weights, names, keys, "weights of sees", "weights"),
        Panel(mean_context[:, 0], rows, range(4), "context of one head"),
        Panel(contexts, rows, range(8), "contexts of two heads"),
    ],
    title="One head hands on the same row for both sentences, two heads do not",
)
drawn = [axes.images[0].get_array() for axes in figure.axes[:3]]
assert (drawn[1][0] == drawn[1][1]).all() and (drawn[2][0] != drawn[2][1]).all()
figure

# %% [markdown]
# Both rows in the middle are the same; on the right the halves change places.
#
# ## Can unequal weights save one head?
#
# With 0.8 and 0.2 the two means differ.
# So let us ask in general: a token wants the content of the word **before** it and of the word **after** it, each in its own place.
# The contents are random, eight numbers each, in sentences of six tokens.
# (Before the first word comes the last, so that every token has two neighbors.)


# %%
def neighbors(count, generator):
    """Random tokens (count, 6, 16), and what each of them wants (count, 6, 16)."""
    content = torch.randn(count, 6, 8, generator=generator)
    place = 2 * torch.eye(8)[:6].expand(count, -1, -1)  # tells the six places apart
    x = torch.cat([content, place], dim=-1)
    wanted = torch.cat([content.roll(1, 1), content.roll(-1, 1)], dim=-1)
    return x, wanted


_, wanted = neighbors(500, torch.Generator().manual_seed(0))
wanted = wanted.flatten(0, 1)  # (tokens, 16)
before, after = wanted.chunk(2, dim=-1)  # (tokens, 8) each
assert wanted.shape == (3000, 16)

# %% [markdown]
# One head mixes both into one mean: a share of the word before, the rest of the word after.
# Then the best possible matrix tries to get both back.
# Predict: which share loses least?


# %%
def lost(context):
    """Share of what is wanted that the best matrix cannot get back: before, after."""
    matrix = torch.linalg.lstsq(context, wanted).solution
    errors = (context @ matrix - wanted).square().sum(dim=0)
    errors = errors / wanted.square().sum(dim=0)  # (16,)
    return [half.mean().item() for half in errors.chunk(2)]


shares = [number / 20 for number in range(21)]
losses = [lost(share * before + (1 - share) * after) for share in shares]
lost_before, lost_after = zip(*losses, strict=True)
both = [(first + second) / 2 for first, second in losses]
assert all(abs(loss - 0.5) < 0.02 for loss in both)
assert max(lost(torch.cat([before, after], dim=-1))) < 1e-6  # two heads

# %%
figure = curves(
    {
        "word before": (shares, lost_before),
        "word after": (shares, lost_after),
        "both together": (shares, both),
    },
    xlabel="share of the weights on the word before",
    ylabel="share that is lost",
    title="However one head divides its weights, half of what is wanted is lost",
)
assert lost_before[0] > 0.98 and lost_before[-1] < 1e-6
assert list(figure.axes[0].lines[2].get_ydata()) == both
figure

# %% [markdown]
# The shares decide *what* is lost, never *how much*.
# (Two heads lose nothing: that is the last assertion of the cell before the figure.)
# Why half?
# A mean of contents has 8 numbers, and a matrix makes 16 of them, but they all come from those 8.
# So the rows that one head hands on form a matrix of rank 8, and the wanted rows one of rank 16.
# The singular values say how near *any* matrix of rank 8 can come (the theorem of Eckart and Young).

# %%
singular = torch.linalg.svdvals(wanted.double())
bound = (singular[8:].square().sum() / singular.square().sum()).item()
rank = torch.linalg.matrix_rank
ranks = int(rank(before + after)), int(rank(wanted))
print(f"rank {ranks[0]} against {ranks[1]}: at least {bound:.2f} is lost")
assert ranks == (8, 16)
assert 0.45 < bound < min(both)

# %% [markdown]
# This holds for all weights, even for a different row in each sentence: whatever the shares are, a mean of contents has 8 numbers.
# The paper says it in three words: "averaging inhibits this" (section 3.2.2).
#
# What a token has to know about the others has several aspects: which word it belongs to, who does what, gender, number.
# So the paper runs several attentions in parallel, each with its own W_Q, W_K and W_V: the **heads**.
# They are a little like the channels of a convolution: the same input, several filters, and the outputs are stacked.
#
# ## One head after another
#
# A head is the attention of lesson 03 in a narrow projection: d_model → d_k.
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
# Four heads of width 3 for tokens of width 12.
# Their contexts are concatenated, and a last matrix W_O follows: MultiHead = Concat(head_1, …, head_h) W^O.
# x is our two sentences, embedded, with their positions (lesson 02).
# Predict: which shapes has a tensor on its way from x to the output?

# %%
torch.manual_seed(0)
batch, length, d_model, num_heads, d_k = 2, 6, 12, 4, 3
ids = torch.tensor([[words.index(word) for word in text.split()] for text in sentences])
x = torch.randn(len(words), d_model)[ids] + sinusoidal(length, d_model)
heads = nn.ModuleList(Head(d_model, d_k) for _ in range(num_heads))
output_proj = nn.Linear(d_model, d_model)

results = [head(x, x, x) for head in heads]
concatenated = torch.cat([context for context, _ in results], dim=-1)
by_loop = output_proj(concatenated)  # (batch, length, d_model)
assert by_loop.shape == x.shape

# %% tags=["nbval-check-output"]
stations = {"x": x, "query of a head": heads[0].query_proj(x)}
stations |= {"weights of a head": results[0][1], "context of a head": results[0][0]}
stations |= {"concatenated": concatenated, "output": by_loop}
for name, tensor in stations.items():
    print(f"{name:18}{tuple(tensor.shape)}")

# %% [markdown]
# What comes out has the shape of what went in, so layers can be stacked.
#
# ## One product for all heads
#
# Each head multiplies the same x by its own narrow matrix.
# Side by side, the four narrow matrices are one of 12 × 12, and one product does the work of four.


# %%
def stacked(name):
    """The heads' projections of that name as one d_model-wide projection."""
    parts = [getattr(head, name) for head in heads]
    wide = nn.Linear(d_model, d_model)
    wide.weight = nn.Parameter(torch.cat([part.weight for part in parts]))
    wide.bias = nn.Parameter(torch.cat([part.bias for part in parts]))
    return wide


names = ("query_proj", "key_proj", "value_proj")
query_proj, key_proj, value_proj = map(stacked, names)
one_by_one = torch.cat([head.query_proj(x) for head in heads], dim=-1)
torch.testing.assert_close(query_proj(x), one_by_one)

# %% [markdown]
# Now the 12 features of a token have to become 4 heads of 3, and the heads have to come before the positions.
# Then each (length, d_k) matrix at the end belongs to one head.
# Two steps: **unflatten** the features, **transpose** heads and length.


# %% tags=["nbval-check-output"]
def split(x):
    """(batch, length, d_model) to (batch, heads, length, d_k)."""
    x = x.unflatten(-1, (num_heads, d_k))  # (batch, length, heads, d_k)
    return x.transpose(1, 2)  # (batch, heads, length, d_k)


query = split(query_proj(x))
print(tuple(query_proj(x).shape), "→", tuple(query.shape))
for number, head in enumerate(heads):
    torch.testing.assert_close(query[:, number], head.query_proj(x))

# %% [markdown]
# In lesson 03, `@` treated every axis but the last two as a batch.
# So all heads of all sentences go through `attention` at once.
# The way back is the same in reverse: transpose, then flatten.


# %% tags=["nbval-check-output"]
def merge(context):
    """(batch, heads, length, d_k) to (batch, length, d_model)."""
    return context.transpose(1, 2).flatten(2)


context, weights = attention(query, split(key_proj(x)), split(value_proj(x)))
print("weights", tuple(weights.shape), "context", tuple(context.shape))
at_once = output_proj(merge(context))
torch.testing.assert_close(merge(context), concatenated)
torch.testing.assert_close(at_once, by_loop)

# %% [markdown]
# Equal to the loop.
# The loop over the heads has become one batched product.
#
# ## The reshape that mixes positions
#
# **A common mistake**: to ask for the final shape in one step, `view(batch, heads, length, d_k)`.
# Nothing crashes, because the shapes agree.
# To see what it does, we fill the features of every token with the number of its position.
# Predict: which positions does head 0 get?

# %%
position = torch.arange(6)[None, :, None].expand(1, 6, d_model)  # (1, length, d_model)
right = split(position)[0]  # (heads, length, d_k)
wrong = position.reshape(1, num_heads, length, d_k)[0]
labels = [f"row {row}" for row in range(length)]
figure = panels(
    [
        Panel(part[number], labels, range(d_k), f"head {number}, {name}")
        for name, part in (("right", right), ("wrong", wrong))
        for number in range(2)
    ],
    title="Each number is the position it came from: "
    "without the transpose, heads get other positions",
    words={"signed": "position"},
)
figure

# %% tags=["nbval-check-output"]
assert right.shape == wrong.shape
for number in range(num_heads):
    found = [part[number].unique().tolist() for part in (right, wrong)]
    print(f"head {number}: with the transpose {found[0]}, without {found[1]}")
    assert found[0] == list(range(6)) and len(found[1]) == 2
drawn = [axes.images[0].get_array().tolist() for axes in figure.axes[:4]]
assert drawn == [*right[:2].tolist(), *wrong[:2].tolist()]

# %% [markdown]
# Right: every head gets all six tokens, a quarter of the features of each.
# Wrong: every head gets a token and a half, cut in pieces, and the pieces attend to one another.
#
# How would a test find it?
# In lesson 02 we saw that self-attention is equivariant: shuffled rows in, shuffled rows out.


# %% tags=["nbval-check-output"]
def wrong_split(x, heads=num_heads):
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


def attend(x, split):
    projected = query_proj(x), key_proj(x), value_proj(x)
    return output_proj(merge(attention(*map(split, projected))[0]))


order = torch.tensor([3, 0, 5, 1, 4, 2])
for name, way in (("right", split), ("wrong", wrong_split)):
    shuffled_first, output = attend(x[:, order], way), attend(x, way)
    equivariant = torch.allclose(shuffled_first, output[:, order], atol=1e-5)
    print(f"{name}: shape {tuple(output.shape)}, equivariant: {equivariant}")
    assert equivariant == (way is split)
assert not torch.allclose(attend(x, split), attend(x, wrong_split), atol=0.01)

# %% [markdown]
# Equal shapes, different numbers.
# Which tests would *not* find it?

# %%
one_token = x[:, :1]
assert torch.equal(wrong_split(one_token), split(one_token))
assert torch.equal(wrong_split(x, heads=1), x[:, None])

# %% [markdown]
# A test with one token, or with one head: there the wrong way is right.
#
# ## What does W_O do?
#
# The concatenated contexts lie side by side: features 0 to 2 come from head 0, features 3 to 5 from head 1, and so on.
# Cut W_O into slices, one for each head's features.
# Predict: what is the sum of (context of a head) @ (its slice)?

# %%
slices = output_proj.weight.T.split(d_k)  # one (d_k, d_model) for each head
added = sum(context[:, number] @ each for number, each in enumerate(slices))
torch.testing.assert_close(added + output_proj.bias, by_loop)
assert len(slices) == num_heads and slices[0].shape == (d_k, d_model)

# %% [markdown]
# The output itself (the bias apart).
# Concatenation and one matrix is the same as: each head speaks through its own matrix d_k → d_model, and all are added.
#
# So W_O **mixes**.
# Without it, an output feature hears from one head alone.
# With it, from which heads does output feature 0 hear?

# %% tags=["nbval-check-output"]
for name, function in (("without W_O", lambda x: x), ("with W_O", output_proj)):
    leaf = concatenated.detach().requires_grad_()
    function(leaf)[..., 0].sum().backward()
    strength = leaf.grad.abs().unflatten(-1, (num_heads, d_k)).sum(dim=(0, 1, 3))
    heard = strength.nonzero().flatten().tolist()
    print(f"{name}: output feature 0 depends on heads {heard}")
    assert heard == ([0] if name == "without W_O" else [0, 1, 2, 3])

# %% [markdown]
# **A common mistake**: "W_O reduces the dimension".
# There is nothing to reduce.
# In the paper's base model, 8 heads of 64 are 512 numbers already, and W_O is 512 × 512.

# %% tags=["nbval-check-output"]
from course_lib import model_preset

for name in ("base", "big"):
    sizes = model_preset(name, vocab_size=37_000)
    print(f"{name:5}{sizes.num_heads} heads × {sizes.d_k} = d_model {sizes.d_model}")
    assert sizes.num_heads * sizes.d_k == sizes.d_model and sizes.d_k == 64
W_O = nn.Linear(8 * 64, 512, dtype=torch.float64).weight
print("W_O of base:", tuple(W_O.shape), "of rank", int(rank(W_O)))
assert rank(W_O) == 512

# %% [markdown]
# Full rank: no direction is lost.
# Section 3.2.2 gives all of it in one line: h = 8, d_k = d_v = d_model / h = 64.
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
# `course_lib` has the finished one.
# It names its matrices as we do, so one line copies our weights.

# %%
from course_lib.attention import MultiHeadAttention

ours = MultiHead(d_model, num_heads).double()
finished = MultiHeadAttention(d_model, num_heads).double()
finished.load_state_dict(ours.state_dict())
tgt, src = torch.randn(batch, 4, d_model).double(), x.double()
expected = ours(tgt, src, src)
torch.testing.assert_close(finished(tgt, src, src), expected, rtol=1e-9, atol=1e-12)
assert expected.shape == (batch, 4, d_model)

# %% [markdown]
# Four queries, six keys: the output has one row for each query.
#
# ## Is it the same function as PyTorch's?
#
# `torch.nn.MultiheadAttention` keeps W_Q, W_K and W_V in one matrix, one below the other.
# We copy and compare the outputs, and then the gradients of everything.

# %%
theirs = nn.MultiheadAttention(d_model, num_heads, batch_first=True).double()
projections = (ours.query_proj, ours.key_proj, ours.value_proj)
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
theirs.out_proj.load_state_dict(ours.output_proj.state_dict())

queries, keys = tgt.clone().requires_grad_(), src.clone().requires_grad_()
output, weights = theirs(queries, keys, keys, average_attn_weights=False)
expected = ours(queries, keys, keys)
torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-12)

# %%
expected.square().sum().backward()
mine = [queries.grad, keys.grad]
mine += [ours.output_proj.weight.grad, ours.output_proj.bias.grad]
mine.append(torch.cat([each.weight.grad for each in projections]))
mine.append(torch.cat([each.bias.grad for each in projections]))
inputs = [queries, keys, theirs.out_proj.weight, theirs.out_proj.bias]
inputs += [theirs.in_proj_weight, theirs.in_proj_bias]
torchs = torch.autograd.grad(output.square().sum(), inputs)
for our_gradient, their_gradient in zip(mine, torchs, strict=True):
    assert our_gradient.abs().max() > 0
    torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-9, atol=1e-12)

# %% [markdown]
# The same numbers, forward and backward.
# One thing to know: without `average_attn_weights=False`, PyTorch returns the mean of the weights over the heads, and what the heads do differently is gone.

# %%
per_head = ours.attend(tgt, src, src)[1]  # (batch, heads, queries, keys)
torch.testing.assert_close(weights, per_head, rtol=1e-9, atol=1e-12)
averaged = theirs(tgt, src, src)[1]  # (batch, queries, keys)
torch.testing.assert_close(averaged, per_head.mean(dim=1), rtol=1e-9, atol=1e-12)

# %% [markdown]
# ## What do heads cost?
#
# Sixteen heads must cost more than one.
# Or not?
# Predict how parameters and operations grow from 1 to 16 heads, for d_model 512 and a sentence of 30 tokens.

# %% tags=["nbval-check-output"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

counts, sentence = (1, 2, 4, 8, 16), torch.zeros(1, 30, 512)
parameters, operations = [], []
for count in counts:
    layer, counter = MultiHeadAttention(512, count), FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        layer(sentence, sentence, sentence)
    parameters.append(sum(each.numel() for each in layer.parameters()))
    operations.append(counter.get_total_flops())
    sizes = f"{parameters[-1]:,} parameters, {operations[-1]:,} operations"
    print(f"num_heads {count:2}: {sizes}")
assert set(parameters) == {4 * (512 * 512 + 512)}
assert set(operations) == {8 * 30 * 512 * 512 + 4 * 30 * 30 * 512}

# %% [markdown]
# They do not grow at all.
# Twice the heads are half as wide each: the projections stay d_model × d_model, and scores and context take heads × d_k = d_model multiplications for each pair of tokens.
# (The formula in the last line: four projections, then scores and context.)
#
# One thing does grow: every head has its own weights, heads × queries × keys numbers, and each of them is an exponential to compute.

# %% tags=["nbval-check-output"]
for count in counts:
    _, weights = MultiHead(512, count).attend(sentence, sentence, sentence)
    print(f"num_heads {count:2}: {weights.numel():6,} weights")
    assert weights.numel() == count * 30 * 30

# %% [markdown]
# **A common mistake**: "the number of heads must be divisible by the model dimension".
# It is the other way around: d_model is divided among the heads.

# %% tags=["nbval-check-output"]
for sizes in ((512, 8), (512, 6), (8, 16)):
    try:
        MultiHeadAttention(*sizes)
        print(sizes, "is built")
        refused = False
    except ValueError as error:
        print(sizes, error)
        refused = True
    assert refused == (sizes[0] % sizes[1] != 0)

# %% [markdown]
# 8 is not divisible by 512, and is built; 16 is divisible by 8, and is refused.
#
# ## How many heads?
#
# If heads are free, why not 512 of them?
# In rows (A) of the paper's table 3, one head translates 0.9 BLEU worse than the best number, and too many are worse as well.
# We repeat that in small, with a layer of width 16 that has to deliver both neighbors.
# "Lost" is the mean squared error: 1 means that nothing arrives, because the contents have variance 1.


# %%
def train(layer, seed, steps=100):
    """Share that is lost at each step, always on new sentences."""
    generator = torch.Generator().manual_seed(seed)
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=0.03), []
    for _ in range(steps):
        x, wanted = neighbors(32, generator)
        x, wanted = x.to(layer.query_proj.weight), wanted.to(layer.query_proj.weight)
        loss = (layer(x, x, x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
def fresh(layer_class, num_heads, seed):
    torch.manual_seed(seed)
    return layer_class(16, num_heads)


def at_end(losses):
    return sum(losses[-10:]) / 10


# %% [markdown]
# Three seeds for each number of heads.
# Predict the two ends: one head, and sixteen heads that are one number wide.

# %%
trained, histories, ends = {}, {}, {}
for count in counts:
    trained[count] = [fresh(MultiHeadAttention, count, seed) for seed in range(3)]
    histories[count] = [train(layer, seed) for seed, layer in enumerate(trained[count])]
    ends[count] = [at_end(losses) for losses in histories[count]]
    lost_by_seed = " ".join(f"{loss:.3f}" for loss in ends[count])
    print(f"num_heads {count:2}, d_k {16 // count:2}: lost {lost_by_seed}")
assert 0.45 < min(ends[1]) <= max(ends[1]) < 0.6 and max(ends[2] + ends[4]) < 0.2
assert min(ends[16]) > 0.4

# %%
figure = curves(
    {"3 seeds, after 100 steps": (counts, list(zip(*ends.values(), strict=True)))},
    xlabel="heads; d_k = 16 / heads",
    ylabel="share that is lost",
    title="One head loses half, two to eight far less, sixteen again half",
    marks={"half": (None, 0.5)},
)
drawn = figure.axes[0].lines[0].get_ydata()
assert max(drawn[1:4]) < 0.2 < 0.4 < min(drawn[0], drawn[4])
figure

# %% [markdown]
# One head ends at the half that we computed.
# Two find a way to deliver both.
#
# And why do sixteen fail?
# With d_k = 1, a score is a product of two numbers.
# For any query, the largest score belongs to the largest key or to the smallest.
# So however it is trained, such a head has only two places that it can look at first.

# %% tags=["nbval-check-output"]
x, _ = neighbors(200, torch.Generator().manual_seed(9))
for count in (2, 16):
    copy = MultiHead(16, count)
    copy.load_state_dict(trained[count][0].state_dict())
    with torch.no_grad():
        first = copy.attend(x, x, x)[1].argmax(dim=-1)  # (sentences, heads, queries)
    places = max(len(set(row.tolist())) for row in first.flatten(0, 1))
    print(f"{count} heads: six queries, at most {places} places looked at first")
    assert places == (6 if count == 2 else 2)

# %% [markdown]
# Heads are free, but narrow heads aim badly: d_k is what is traded.
# The paper's choice is d_k = 64.
#
# ## Why do heads become different?
#
# No rule says what a head should do.
# All that makes two heads different at first is their random start.
# What if they start alike?


# %%
def twins():
    """Two heads with the same start, W_O included; in float64."""
    layer = fresh(MultiHeadAttention, 2, seed=0).double()
    with torch.no_grad():
        for projection in (layer.query_proj, layer.key_proj, layer.value_proj):
            projection.weight[8:] = projection.weight[:8]
            projection.bias[8:] = projection.bias[:8]
        layer.output_proj.weight[:, 8:] = layer.output_proj.weight[:, :8]
    return layer


def difference(matrices):
    """Largest difference between the rows of the first and the second head."""
    return max((each[:8] - each[8:]).abs().max().item() for each in matrices)


def matrices(layer):
    return [layer.query_proj.weight, layer.key_proj.weight, layer.value_proj.weight]


# %%
layer = twins()
x, wanted = (each.double() for each in neighbors(64, torch.Generator().manual_seed(0)))
(layer(x, x, x) - wanted).square().mean().backward()
gradients = [weight.grad for weight in matrices(layer)]
assert difference(matrices(layer)) == 0 and difference(gradients) < 1e-12
assert all(gradient.abs().max() > 0.001 for gradient in gradients)

# %% [markdown]
# The same weights, so the same context; the same context, so the same gradient; the same gradient, so the same weights.
# Two heads that start alike stay alike: they are one head that was paid for twice.
# Predict the loss of the twins, and of twins where one number was nudged by 0.01.

# %%
nudged, alike = twins(), twins()
with torch.no_grad():
    nudged.query_proj.weight[0, 0] += 0.01
runs = {
    "different starts": histories[2][0],
    "one number nudged": train(nudged, 0),
    "twins": train(alike, 0, steps=60),
}
for name, layer in (("nudged", nudged), ("twins", alike)):
    print(f"{name}: largest difference {difference(matrices(layer)):.2f}")
assert difference(matrices(alike)) < 1e-4 and difference(matrices(nudged)) > 0.5
assert min(runs["twins"]) > 0.4 and at_end(runs["one number nudged"]) < 0.1

# %%
figure = curves(
    {name: (range(len(losses)), losses) for name, losses in runs.items()},
    xlabel="step",
    ylabel="share that is lost",
    title="Twins stay at the loss of a single head; a nudge to one number frees them",
    marks={"half": (None, 0.5)},
)
assert [len(line.get_ydata()) for line in figure.axes[0].lines[:3]] == [100, 100, 60]
figure

# %% [markdown]
# The balance is that of a pencil on its tip.
# That is why weights are initialized at random, and how heads come to divide the work among themselves.
#
# ## Break it: forget to transpose back
#
# Before the flatten, heads and positions must change places again.
# What if we forget that, or the transpose in the split, in a layer that learns?


# %%
class SplitWithoutTranspose(MultiHead):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


class MergeWithoutTranspose(MultiHead):
    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


x, _ = neighbors(1, torch.Generator().manual_seed(0))
right = fresh(MultiHead, 4, seed=0)(x, x, x)
for broken in (SplitWithoutTranspose, MergeWithoutTranspose):
    output = fresh(broken, 4, seed=0)(x, x, x)
    assert output.shape == right.shape and not torch.allclose(output, right, atol=0.01)

# %% [markdown]
# Shapes agree, numbers do not, and no error says so.
# Will the training tell us?
# We let each deliver both neighbors, with four heads and three seeds.

# %%
learned = {"right, 4 heads": histories[4]}
split_4, merge_4 = (SplitWithoutTranspose, 4), (MergeWithoutTranspose, 4)
for broken, count in (split_4, merge_4, (MergeWithoutTranspose, 2)):
    layers = [fresh(broken, count, seed) for seed in range(3)]
    runs = [train(layer, seed) for seed, layer in enumerate(layers)]
    learned[f"{broken.__name__}, {count} heads"] = runs
for name, runs in learned.items():
    losses = (f"{run[0]:.2f} → {at_end(run):.3f}" for run in runs)
    print(f"{name:32}", *losses, sep="   ")
assert all(at_end(run) < 0.85 * run[0] for runs in learned.values() for run in runs)
last = [[at_end(run) for run in runs] for runs in learned.values()]
assert max(last[0] + last[3]) < 0.2 < min(last[1] + last[2])

# %% [markdown]
# The loss falls everywhere: a network learns around a mistake as far as it can.
# With two heads, it even learns to live with the wrong merge.
# So a low loss does not show that the code is right.
# Being equal to the loop, or to PyTorch's layer, does.
#
# ## Heads at work
#
# Do the heads of a trained model look at different things?
# We ask the translator of lesson [00](00_welcome.ipynb): two layers, four heads each.

# %% tags=["nbval-check-output"]
from course_lib import Translator

translator = Translator.from_pretrained("course")
translator.model.to(device)
text = "The old woman gives the child a red apple."
translation = translator.translate(text, attention=True)
src_tokens, tgt_tokens = translation.src_tokens, translation.tgt_tokens
print(translation.text)
print(" ".join(src_tokens), "→", " ".join(tgt_tokens))
print(translator.translate("The old man gives the woman a red apple."))
assert [len(layer) for layer in translation.attention.cross] == [4, 4]  # heads

# %% [markdown]
# The German words look at the English words: that is cross-attention, and lesson [07](07_decoder.ipynb) builds it.
# A row belongs to the German token that is being *predicted*.
# Here are the four heads of the last layer.

# %%
cross = translation.attention.cross[-1].cpu()  # (heads, queries, keys)
figure = attention_grid(
    cross,
    tgt_tokens,
    src_tokens,
    title="For dem and einen, head 0 looks at the noun, the other heads at the article",
)
looks = [[src_tokens[key] for key in row] for row in cross.argmax(dim=-1).tolist()]
for article, noun, own in (("▁dem", "▁child", "▁the"), ("▁einen", "▁apple", "▁a")):
    row = tgt_tokens.index(article)
    assert [head[row] for head in looks] == [noun, own, own, own]
assert all(head[tgt_tokens.index("▁Kind")] == "▁child" for head in looks)
assert looks[0][tgt_tokens.index("▁Die")] == "▁The"
figure

# %% [markdown]
# Three heads find the word that is being translated.
# Head 0 looks at the noun when *dem* or *einen* is due (not yet for *Die*: there it looks at *The*, as the others do).
# German needs to know the noun: the child is *dem Kind*, the woman is *der Frau*, as the last line above shows.
#
# And where could the English *the* learn what it belongs to?
# In the encoder, where English words look at English words.

# %%
encoder = translation.attention.encoder[-1].cpu()
figure = attention_grid(
    encoder,
    src_tokens,
    src_tokens,
    title="In the encoder, head 1 takes each article to its noun",
)
for row, noun in ((0, "▁woman"), (4, "▁child"), (6, "▁apple")):
    assert src_tokens[row].lower() in ("▁the", "▁a")
    assert src_tokens[encoder[1, row].argmax()] == noun
verb = src_tokens.index("▁gives")
assert encoder[3, [4, 6], verb].min() > 0.9 and encoder[3, 0, verb] < 0.1
figure

# %% [markdown]
# Head 1: *The* looks at *woman*, *the* at *child*, *a* at *apple*.
# Head 3: the articles of the two objects look at the verb, whose objects they are; the article of the subject does not.
#
# These are pictures of one sentence.
# Does it hold? Try others, and the other heads: type a sentence with several articles.

# %%
from course_lib.widgets import AttentionExplorer

picker = AttentionExplorer(translator, text, kind="encoder", head=1)
assert picker.view["src"] == src_tokens
picker

# %% [markdown]
# ## Attention, scored
#
# The course corpus knows which word translates which: its pairs come with **gold links**.
# Links connect words, and attention connects tokens, so we need the tokens of each word.


# %% tags=["nbval-check-output"]
def spans(words, tokens):
    """The positions of the tokens of each word."""
    found, end = [], 0
    for word in words:
        start, spelled = end, ""
        while spelled != word:
            spelled += tokens[end].replace("▁", "")
            end += 1
        found.append(range(start, end))
    return found


words = ["Die", "Katze", "sieht", "die", "Mäuse", "."]
mice = translator.tokenizer.tokens("Die Katze sieht die Mäuse.")
found = zip(words, spans(words, mice), strict=True)
print(*(f"{word} {list(span)}" for word, span in found), sep=" · ")

# %% tags=["nbval-check-output"]
from course_lib.grammar import build as grammar

woman, child = grammar.the("woman", "old"), grammar.the("child")
apple = grammar.a("apple", "red")
gold = grammar.pair(grammar.clause(woman, "geben", dative=child, accusative=apple))
links = [f"{gold.tgt_words[tgt]} = {gold.src_words[src]}" for src, tgt in gold.links]
print(*links, sep=" · ")
assert (gold.src, gold.tgt) == (text, translation.text) and len(links) == 10

# %% [markdown]
# How often does a head's strongest weight fall on the linked word?
# We ask for each German word, in the row that predicts its first token.
# First for this pair, in the last layer.


# %%
def linked(pair):
    """For each linked German word: its row, and the tokens of its English words."""
    src = spans(pair.src_words, translator.tokenizer.tokens(pair.src))
    tgt = spans(pair.tgt_words, translator.tokenizer.tokens(pair.tgt))
    wanted = {}
    for src_word, tgt_word in pair.links:
        wanted.setdefault(tgt[tgt_word][0], set()).update(src[src_word])
    return list(wanted.items())


def hits(weights, goals):
    """For each (row, keys): whether each head's strongest key is among the keys."""
    first = weights.argmax(dim=-1).tolist()  # (heads, queries)
    return [[head[row] in keys for head in first] for row, keys in goals]


# %%
found = torch.tensor(hits(cross, linked(gold))).sum(dim=0).tolist()
print(f"of {len(links)} German words (the full stop is one), heads 0 to 3 find", found)
assert found[0] + 2 <= min(found[1:]) and min(found[1:]) >= 9

# %% [markdown]
# Now 200 sentence pairs from the same grammar (1000 where there is a GPU).
# The model is given the true German sentence, and we record all its heads.

# %%
from course_lib import record_attention
from course_lib.data import encode_pairs, load_course, make_batch

num_pairs = 1000 if device == "cuda" else 200
pairs = load_course(num_train=1, num_valid=1, num_test=num_pairs, seed=1).test
batch = make_batch(encode_pairs(translator.tokenizer, pairs)).to(device)
with torch.no_grad(), record_attention(translator.model) as maps:
    translator.model(batch.src, batch.tgt_in)
all_cross = torch.cat(maps.cross, dim=1).cpu()  # (pairs, all heads, queries, keys)
assert all_cross.shape[:2] == (num_pairs, 8)

# %% [markdown]
# A score needs something to compare with.
# Ours is the *diagonal*: a guess that knows no words and always points from row *t* to English token *t*.
#
# **A common mistake**: to read row *t* as the row of the German token that position *t* has been *given*, not of the one it predicts.
# That is one row lower.
# We score it too.

# %%
goals = [linked(pair) for pair in pairs]
found, lower = [], []
for weights, goal in zip(all_cross, goals, strict=True):
    found += hits(weights, goal)
    lower += hits(weights, [(row + 1, keys) for row, keys in goal])
each_head = (torch.tensor(rows).double().mean(dim=0) for rows in (found, lower))
score, one_row_lower = (100 * share for share in each_head)  # (8,)
on_diagonal = [row in keys for goal in goals for row, keys in goal]
diagonal = 100 * sum(on_diagonal) / len(on_diagonal)
best, worst = score.argmax().item(), score.argmin().item()
assert best >= 4 and score[best] > 90 and score[best] - score[worst] > 25
assert score[4] + 8 < min(score[5:]) > 80 and diagonal + 5 < score[worst]
assert max(one_row_lower) < diagonal and max(one_row_lower[4:]) < 20

# %%
names = [f"layer {layer}, head {head}" for layer in range(2) for head in range(4)]
figure = bars(
    names,
    score.tolist(),
    xlabel=f"German words that look most at a linked word (%), of {len(found)}",
    title=f"The best head finds the linked word in {score[best]:.0f} %, "
    f"the worst in {score[worst]:.0f} %, the diagonal in {diagonal:.0f} %",
    reference=("diagonal", diagonal),
)
assert [bar.get_width() for bar in figure.axes[0].patches] == score.tolist()
figure

# %% [markdown]
# Heads differ clearly, and each is better than the diagonal.
# (One row lower, each is worse than the diagonal: the rows do belong to the predicted tokens.)
# In layer 1, the last one, three heads are good aligners, and head 0 is behind them.
#
# Is it a bad head?
# We have seen it look at nouns where articles were due.
# So we score that alone: does an article look at its *noun*?
# English articles in the encoder, German ones in cross-attention.


# %%
def articles(pair):
    """Row of an English article, row of its German one, tokens of its English noun."""
    src = spans(pair.src_words, translator.tokenizer.tokens(pair.src))
    tgt = spans(pair.tgt_words, translator.tokenizer.tokens(pair.tgt))
    capital = [word[0].isupper() for word in pair.tgt_words]  # German nouns have one
    for src_word, tgt_word in pair.links:
        alone = sum(other == tgt_word for _, other in pair.links) == 1  # no "am", "zur"
        if pair.src_words[src_word].lower() in ("the", "a", "an") and alone:
            noun = capital.index(True, tgt_word + 1)
            src_noun = next(src_word for src_word, other in pair.links if other == noun)
            yield src[src_word][0], tgt[tgt_word][0], src[src_noun]


found = [(src_tokens[row], src_tokens[noun[0]]) for row, _, noun in articles(gold)]
assert found == [("▁The", "▁woman"), ("▁the", "▁child"), ("▁a", "▁apple")]

# %%
noun_hits = []  # a row for each article: 4 encoder heads, 4 cross-attention heads
opens, apart = [], []  # opens the German sentence? not next to its noun?
layers = zip(maps.encoder[-1].cpu(), maps.cross[-1].cpu(), pairs, strict=True)
for encoder_weights, cross_weights, pair in layers:
    for src_row, tgt_row, noun in articles(pair):
        (in_encoder,) = hits(encoder_weights, [(src_row, noun)])
        (in_cross,) = hits(cross_weights, [(tgt_row, noun)])
        noun_hits.append(in_encoder + in_cross)
        opens.append(tgt_row == 0)
        apart.append(noun[0] > src_row + 1)
noun_hits = torch.tensor(noun_hits).double()  # (articles, 8)
noun_score = (100 * noun_hits.mean(dim=0)).tolist()
assert len(noun_hits) > num_pairs

# %%
figure = bars(
    [f"{kind}, head {head}" for kind in ("encoder", "cross") for head in range(4)],
    noun_score,
    xlabel=f"articles that look most at their noun (%), of {len(noun_hits)}",
    title="Two heads of the last layers go from article to noun: "
    f"encoder head 1 in {noun_score[1]:.0f} %, cross head 0 in {noun_score[4]:.0f} %",
)
others = [noun_score[0], *noun_score[2:4], *noun_score[5:]]
assert noun_score[1] > 90 and noun_score[4] > 45 and max(others) < 40
figure

# %% [markdown]
# In both places one head of four has made the noun of an article its business.
# But is it the *noun*, or only the next token?
# And what about the articles that cross head 0 misses, and those that encoder head 0 finds?

# %%
opens, apart = torch.tensor(opens), torch.tensor(apart)
groups = {"noun is not next": apart, "opens the sentence": opens, "later": ~opens}
percent = {name: 100 * noun_hits[group].mean(dim=0) for name, group in groups.items()}
columns = {"encoder head 0": 0, "encoder head 1": 1, "cross head 0": 4}
for name, group in groups.items():
    shares = (f"{head} {percent[name][row]:3.0f} %" for head, row in columns.items())
    print(f"{name:18} {group.sum():4} articles:", *shares, sep="  ")
assert percent["noun is not next"][1] > 90
opening, elsewhere = percent["opens the sentence"], percent["later"]
assert opening[4] < 10 and elsewhere[4] > 60 and elsewhere[0] < 20 and opening[0] > 80

# %% [markdown]
# Encoder head 1 finds the noun also where another word stands between: it does not count places.
# Cross head 0 finds most nouns, unless the article opens the German sentence; then it finds hardly any.
# With encoder head 0 it is the other way round.
# A mean can hide a rule and its exception.
#
# Nobody told these heads to do so, but a German article depends on its noun.
# The head that aligns worse than its neighbors is the one that does something else.
# (Where a head *looks* does not yet prove what the model *uses*: lesson [12](12_reading_attention.ipynb) switches heads off.)
#
# **A common mistake**: "several heads make the context unbiased".
# Then heads would be repeated measurements of one thing, and the differences between them would be noise.
# Noise comes out differently each time, so we halve the articles.

# %%
halves = [100 * half.mean(dim=0) for half in noun_hits.chunk(2)]
for name, half in zip(("first half", "second half"), halves, strict=True):
    print(f"{name:12}", *(f"{percent:3.0f}" for percent in half.tolist()))
noise = (halves[0] - halves[1]).abs().max().item()
assert noun_score[1] - max(noun_score[0], *noun_score[2:4]) > 3 * noise
assert noun_score[4] - max(noun_score[5:]) > 3 * noise

# %% [markdown]
# Between the halves nearly nothing changes, and in both of them the same two heads stand out.
# So these heads are specialists, and W_O gets the reports of all heads side by side, not their average.

# %% [markdown]
# ## Summary
#
# A row of weights makes one mean, and no matrix gets two independent things back from one mean; several heads carry them side by side.
# All heads are one projection, d_model wide, unflattened and transposed to (batch, heads, length, d_k), and transposed back before the flatten.
# W_O, d_model × d_model, mixes the heads: the output is the sum of what each head says through its slice.
# Heads cost no further parameters or multiplications but share d_model among them, so num_heads must divide it, and heads that are too narrow cannot aim.
# In the small course translator some heads find the translated word and others the noun of an article, and scores against gold links prove what pictures only suggest.
#
# **Practice**: [assignment 04](assignments/release/04_multi_head/04_multi_head.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [05](05_masks.ipynb) decides who may look at whom, because in a batch some keys are padding, and a decoder must not see the future.
