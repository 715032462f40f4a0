# %% [markdown]
# # 08 · The Transformer, assembled
#
# **Question.** We have every part. What happens when a sentence passes through all of them, and where do 63 million parameters go?
#
# **Afterwards you can**
#
# 1. name every station between an English sentence and the scores of the German tokens, with its shape;
# 2. count parameters, operations and memory of the paper's two models from one row of a table;
# 3. recognize three ways to assemble the parts wrongly, by what they do to the loss.
#
# **You need** the parts: attention, masks, the encoder layer and the decoder layer (lessons 03 to 07).
# **Time**: 40 minutes to read, under a minute to run.
# **In the paper**: figure 1, sections 3.1, 3.4 and 3.5, and table 3.

# %%
import math
from collections import Counter
from dataclasses import replace

import torch

from course_lib.config import ModelConfig
from course_lib.transformer import Transformer

device = "cuda" if torch.cuda.is_available() else "cpu"
assert torch.ones(1, device=device).item() == 1

# %% [markdown]
# ## Eight sentences
#
# We follow one sentence through the whole model: *The cat sees the dog.*
# Seven more keep it company, so that there is something to mix up.
# In the second one cat and dog change places, and German changes the articles with them.

# %%
from course_lib.data import Pair

pairs = [
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
    Pair("The child sees the cat.", "Das Kind sieht die Katze."),
    Pair("The dog does not sleep.", "Der Hund schläft nicht."),
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The child gives the dog an egg.", "Das Kind gibt dem Hund ein Ei."),
    Pair("The woman sees the child and the dog.", "Die Frau sieht das Kind und den Hund."),
    Pair("Today the woman sleeps.", "Heute schläft die Frau."),
]

# %% [markdown]
# Both languages share one vocabulary of subwords (section 5.1).
# We learn it from these sentences alone, so each word becomes one token, and so does the full stop.

# %% tags=["nbval-check-output"]
from course_lib.tokenizer import Tokenizer

tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocab_size=160)
for text in pairs[0]:
    print(tokenizer.tokens(text), tokenizer.encode(text))
print(f"{tokenizer.vocab_size} subwords")
assert all(tokenizer.decode(tokenizer.encode(text)) == text for pair in pairs for text in pair)
assert all(len(tokenizer.tokens(text)) == len(text.split()) + 1 for pair in pairs for text in pair)

# %% [markdown]
# ## What goes in, and what should come out?
#
# The source gets `</s>` at its end.
# The target is used twice.
# The decoder *reads* it **shifted right**: `<s>` in front, the last token left out.
# It must *predict* the target with `</s>` at its end.

# %% tags=["nbval-check-output"]
from course_lib.data.batches import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs))
one = make_batch(encode_pairs(tokenizer, pairs[:1]))
print("src  ", [tokenizer.token(i) for i in one.src[0].tolist()])
for read, predict in zip(one.tgt_in[0].tolist(), one.tgt_out[0].tolist(), strict=True):
    print(f"reads {tokenizer.token(read):8} predicts {tokenizer.token(predict)}")
assert torch.equal(one.tgt_in[0, 1:], one.tgt_out[0, :-1])

# %% [markdown]
# What is predicted on one line is read on the next: that is the assertion in the last line of the cell.
#
# ## The stations
#
# A small model is enough to see every shape.
# Before you run the next cell: which of the shapes below depend on the length of the source, and which on the target?

# %% tags=["nbval-check-output"]
small = ModelConfig(
    vocab_size=tokenizer.vocab_size, d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.0, max_len=64
)
torch.manual_seed(0)
model = Transformer(small).eval()
memory = model.encode(one.src)
hidden = model.decode(one.tgt_in, memory, one.src)
logits = model.generator(hidden)
stations = {"src": one.src, "embedded source": model.src_embedding(one.src), "memory": memory}
stations |= {"tgt_in": one.tgt_in, "embedded target": model.tgt_embedding(one.tgt_in), "hidden": hidden}
stations |= {"logits": logits}
for name, tensor in stations.items():
    print(f"{name:16}{tuple(tensor.shape)}")

# %% [markdown]
# Axes are (batch, length), (batch, length, d_model), and at the end (batch, tgt_len, vocab).
# Our pair has seven tokens on both sides, which hides a difference.
# The memory has one vector for each *source* token, the logits have one row for each *target* position.
# A pair with two lengths shows it.

# %% tags=["nbval-check-output"]
uneven = make_batch(encode_pairs(tokenizer, pairs[3:4]))
print("src", tuple(uneven.src.shape), "memory", tuple(model.encode(uneven.src).shape))
print("tgt", tuple(uneven.tgt_in.shape), "logits", tuple(model(uneven.src, uneven.tgt_in).shape))
assert uneven.src.shape[1] != uneven.tgt_in.shape[1]
assert model.encode(uneven.src).shape == (*uneven.src.shape, small.d_model)
assert model(uneven.src, uneven.tgt_in).shape == (*uneven.tgt_in.shape, small.vocab_size)

# %% [markdown]
# So the memory is no "fixed-length representation": a longer source gives a longer memory.
# Only its width, d_model, is fixed.
#
# ## By hand
#
# What does `Transformer.forward` do?
# We write it out: embed, encode, decode, generate.
# The layers are those of lessons 06 and 07, the rest is a few lines.


# %%
from course_lib.position import sinusoidal


def embed(model, ids, scale):
    """Ids (batch, length) to (batch, length, d_model): the tokens' rows, scaled, plus their positions."""
    table = model.src_embedding.table.weight
    return table[ids] * scale + sinusoidal(ids.shape[1], table.shape[1]).to(table)


def may_attend(ids):
    """True at real tokens, (batch, 1, 1, length)."""
    return (ids != 0)[:, None, None]


# %%
def forward_by_hand(model, src, tgt_in, scale):
    """Ids (batch, src_len) and (batch, tgt_len) to logits (batch, tgt_len, vocab)."""
    past = torch.ones(tgt_in.shape[1], tgt_in.shape[1], device=src.device).tril().bool()  # (tgt_len, tgt_len)
    memory, hidden = embed(model, src, scale), embed(model, tgt_in, scale)
    for layer in model.encoder.layers:
        memory = layer(memory, may_attend(src))
    for layer in model.decoder.layers:
        hidden = layer(hidden, memory, may_attend(tgt_in) & past, may_attend(src))
    return hidden @ model.src_embedding.table.weight.T


ours = forward_by_hand(model, batch.src, batch.tgt_in, math.sqrt(small.d_model))
theirs = model(batch.src, batch.tgt_in)
assert not torch.allclose(forward_by_hand(model, batch.src, batch.tgt_in, 1.0), theirs)
torch.testing.assert_close(ours, theirs)

# %% [markdown]
# The same logits, for all eight sentences, padding included.
# Every decoder layer reads the same memory: the output of the *last* encoder layer.
#
# ## The map
#
# Here is the paper's base model with a vocabulary of 37,000 subwords.
# The numbers behind the names are parameters, the pairs in parentheses are shapes for our sentence.
# Where do you expect most of the parameters?

# %% id="architecture-map"
from course_lib.diagram import architecture
from course_lib.presets import model_preset

base, big = model_preset("base", vocab_size=37_000), model_preset("big", vocab_size=37_000)
million = base.num_parameters / 1e6
figure = architecture(
    base, src_len=7, tgt_len=7, title=f"The base model: {million:.1f} million parameters, one matrix in three places"
)
labels = [text.get_text() for text in figure.axes[0].texts]
assert "memory (7, 512)" in labels and "logits (7, 37,000)" in labels
assert sum(label.endswith("same matrix") for label in labels) == 2
figure

# %% [markdown]
# ## The paper's table
#
# Two rows of table 3 fix the two models of the paper.
# `ModelConfig` has the base model as its default.

# %% tags=["nbval-check-output"]
print("      layers  d_model   d_ff  heads  d_k  dropout   parameters")
for name, config in (("base", base), ("big", big)):
    sizes = f"{config.num_layers:>3} + {config.num_layers}{config.d_model:9}{config.d_ff:7}{config.num_heads:7}"
    print(f"{name:5}{sizes}{config.d_k:5}{config.dropout:9}{config.num_parameters:13,}")
assert base == ModelConfig(vocab_size=37_000)
assert base.d_k == big.d_k == 64
assert (big.d_model, big.num_heads) == (2 * base.d_model, 2 * base.num_heads)

# %% [markdown]
# Big has twice the width and twice the heads, so each head keeps its width of 64.
#
# ## Where do the parameters go?
#
# Three formulas are enough.
# Attention has four matrices of d_model × d_model, each with a bias.
# The feed-forward network goes up to d_ff and back down.
# A norm has a scale and a shift for each feature.


# %% tags=["nbval-check-output"]
def count_by_hand(vocab_size, d_model, d_ff, num_layers):
    """Parameters of a post-norm Transformer with one shared embedding matrix."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)


for name, config in (("base", base), ("big", big)):
    count = count_by_hand(config.vocab_size, config.d_model, config.d_ff, config.num_layers)
    assert count == config.num_parameters
    print(f"{name:5}{count:12,} = {count / 1e6:.1f} M")

# %% [markdown]
# Is the formula right?
# We build both models and count.
# PyTorch's *meta* device makes tensors that have a shape and no memory, so even big costs nothing.


# %% tags=["nbval-check-output"]
def component(name):
    """The part of the model that a parameter belongs to."""
    if "norm" in name or "embedding" in name:
        return "norms" if "norm" in name else "embeddings"
    stack, _, _, sublayer, *_ = name.split(".")  # "encoder.layers.0.self_attn.query_proj.weight"
    return f"{stack} " + sublayer.replace("_attn", "-attention").replace("_", "-")


for config in (base, big):
    measured = Counter()
    with torch.device("meta"):
        for name, parameter in Transformer(config).named_parameters():
            measured[component(name)] += parameter.numel()
    assert measured == config.parameter_counts()
    print(f"{measured.total():,}", dict(measured))

# %% [markdown]
# Component by component, the closed form is what PyTorch counts.
#
# ### The paper prints 65 and 213 million
#
# We get 63.1 and 214.2: too few for base, too many for big.
# What would explain that?
# The vocabulary is the first suspect, because section 5.1 says "about 37000 tokens".
# So we ask: which vocabulary sizes would round to the printed number?

# %% tags=["nbval-check-output"]
fitting = {}
for name, config, printed in (("base", base, 65), ("big", big, 213)):
    without = config.num_parameters - config.vocab_size * config.d_model
    low, high = (math.ceil(((printed + half) * 1e6 - without) / config.d_model) for half in (-0.5, 0.5))
    fitting[name] = range(low, high)
    print(f"{name:5}needs {low:,} to {high - 1:,} subwords")
assert not set(fitting["base"]) & set(fitting["big"])
assert 37_000 not in fitting["base"] and 37_000 not in fitting["big"]

# %% [markdown]
# No single vocabulary explains both numbers.
# Do three separate matrices explain them, or attention without biases, which is how section 3.2.2 writes it?

# %% tags=["nbval-check-output"]
variants = {}
for name, config in (("base", base), ("big", big)):
    attentions = 3 * config.num_layers  # one in each encoder layer, two in each decoder layer
    variants[name, "as built"] = config.num_parameters
    variants[name, "three matrices"] = replace(config, tie_weights=False).num_parameters
    variants[name, "no biases in attention"] = config.num_parameters - attentions * 4 * config.d_model
for (name, variant), count in variants.items():
    print(f"{name:5}{variant:24}{count / 1e6:7.1f} M")
assert 65 not in {round(count / 1e6) for (name, _), count in variants.items() if name == "base"}
assert 213 not in {round(count / 1e6) for (name, _), count in variants.items() if name == "big"}

# %% [markdown]
# Neither does.
# The paper does not say what its count includes, so we leave the gap open: it is 3 % for base and under 1 % for big.

# %%
assert abs(base.num_parameters / 65e6 - 1) < 0.03
assert abs(big.num_parameters / 213e6 - 1) < 0.01

# %% [markdown]
# ## Where do the operations go?
#
# A parameter costs memory, an operation costs time.
# A matrix of *n* parameters takes 2*n* operations for each token: a multiplication and an addition.
# Looking up a row of the embedding takes none, but the same matrix works again as the generator.
# So are the operations where the parameters are?
# We let PyTorch count one small forward pass to check the formula.

# %% tags=["nbval-check-output"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

with torch.no_grad(), FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
    model(uneven.src, uneven.tgt_in)
formula = sum(small.flop_counts(uneven.src.shape[1], uneven.tgt_in.shape[1]).values())
print(f"PyTorch counts {counter.get_total_flops():,} operations, the formula {formula:,}")
assert counter.get_total_flops() == formula

# %%
from course_lib.plots import stacked_bars

shares = {}
for name, config in (("base", base), ("big", big)):
    counts = {"parameters": config.parameter_counts()}
    for length in (30, 3000):
        operations = config.flop_counts(src_len=length, tgt_len=length)
        counts[f"operations, {length} tokens"] = operations | {"norms": 0}  # small, and not counted
    for what, parts in counts.items():
        parts["shared matrix"] = parts.pop("embeddings", 0) + parts.pop("generator", 0)
        total = sum(parts.values())
        shares[f"{name}: {what}"] = {part: 100 * parts[part] / total for part in counts["parameters"]}

# %%
figure = stacked_bars(
    shares,
    xlabel="share (%)",
    title="Operations go where the parameters are, until the sentences are long and attention takes over",
    value_format="{:.0f}",
)
for name in ("base", "big"):
    parameters, short = shares[f"{name}: parameters"], shares[f"{name}: operations, 30 tokens"]
    assert all(abs(short[part] - share) < 1 for part, share in parameters.items())
assert math.isclose(sum(bar.get_width() for bar in figure.axes[0].patches), 100 * len(shares))
figure

# %% [markdown]
# For a sentence of ordinary length the two differ by less than one percentage point.
# Attention is in the title of the paper, but which part is largest there?


# %%
def share_of(parts, ending):
    return sum(share for part, share in parts.items() if part.endswith(ending))


for row, parts in shares.items():
    attention, feed_forward = share_of(parts, "attention"), share_of(parts, "feed-forward")
    print(f"{row:30} feed-forward {feed_forward:3.0f} %, attention {attention:3.0f} %")
    assert (attention > 50) if "3000" in row else (feed_forward > max(attention, parts["shared matrix"]))

# %% [markdown]
# The feed-forward networks are.
# At 3000 tokens attention takes more than half of the operations.
# What grows there?
# Scores and weighted values take 4 · length² · d_model operations, the four projections 8 · length · d_model².
# At which length are the two equal?


# %% tags=["nbval-check-output"]
def quadratic_share(config, length):
    """Share of encoder self-attention's operations that grows with the square of the length."""
    total = config.flop_counts(length, length)["encoder self-attention"]
    return config.num_layers * 4 * length * length * config.d_model / total


for length in (30, 300, 1024, 4096):
    print(f"{length:5} tokens: {quadratic_share(base, length):.0%}")
assert quadratic_share(base, 30) < 0.03
assert quadratic_share(base, 2 * base.d_model) == 0.5

# %% [markdown]
# At twice d_model: 1024 tokens for base.
# For a sentence of 30 tokens the quadratic part is under 3 % of self-attention.
#
# ## Where does the memory go?
#
# Training keeps four numbers for each parameter: the weight, its gradient and Adam's two moments.
# In float32 that is 16 bytes.
# We measure it on the small model, after one step.

# %% tags=["nbval-check-output"]
from course_lib.loss import label_smoothed_loss


def mean_loss(logits, tgt_out):
    """Cross-entropy in nats a token, over real tokens."""
    real = tgt_out != 0
    return label_smoothed_loss(logits[real], tgt_out[real]) / real.sum()


optimizer = torch.optim.Adam(model.parameters())
mean_loss(model(batch.src, batch.tgt_in), batch.tgt_out).backward()
optimizer.step()
parameters = list(model.parameters())
moments = [value for state in optimizer.state.values() for key, value in state.items() if key.startswith("exp")]
held = dict(weights=parameters, gradients=[parameter.grad for parameter in parameters], optimizer=moments)
measured = {name: sum(tensor.nbytes for tensor in tensors) for name, tensors in held.items()}
print(measured)
assert measured == small.memory_bytes() and sum(measured.values()) == 16 * small.num_parameters

# %%
gigabytes = {
    name: {part: size / 1e9 for part, size in config.memory_bytes().items()}
    for name, config in (("base", base), ("big", big))
}
figure = stacked_bars(
    gigabytes,
    xlabel="GB in float32, without activations",
    title="Half of the memory that training holds for parameters belongs to the optimizer",
    value_format="{:.2f}",
)
assert all(2 * row["optimizer"] == sum(row.values()) for row in gigabytes.values())
assert [text.get_text() for text in figure.axes[0].texts][-2:] == ["1.01", "3.43"]
figure

# %% [markdown]
# The backward pass needs more: every layer's intermediate results, the *activations*.
# They are not in the picture, because they depend on the batch.
# What happens to them when the batch doubles?


# %%
def saved_bytes(model, src, tgt_in):
    """Bytes that one forward pass keeps for the backward pass, parameters not counted."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(src, tgt_in)
    return sum(size for pointer, size in kept.items() if pointer not in parameters)


# %%
single = saved_bytes(model, batch.src, batch.tgt_in)
double = saved_bytes(model, batch.src.repeat(2, 1), batch.tgt_in.repeat(2, 1))
print(f"activations {single:,} bytes, with twice the batch {double:,}; weights {measured['weights']:,} either way")
assert math.isclose(double / single, 2, rel_tol=0.02)

# %% [markdown]
# They double, and the weights stay.
#
# ## One matrix, three uses
#
# Section 3.4 shares one matrix between both embeddings and the generator.
# A row is what a token *looks like* when it is read, and what the decoder's output is compared with when it is predicted.

# %% tags=["nbval-check-output"]
table = model.src_embedding.table.weight
assert table is model.tgt_embedding.table.weight and table is model.generator.weight
saved = replace(base, tie_weights=False).num_parameters - base.num_parameters
print(f"sharing saves base {saved / 1e6:.1f} M parameters")
assert saved == 2 * 37_000 * 512

# %% [markdown]
# One matrix, so one gradient.
# What is it made of?
# We give a second model three separate copies of the same matrix, and compare.

# %%
untied = Transformer(replace(small, tie_weights=False)).double()
tied = Transformer(small).double()
untied.load_state_dict(tied.state_dict())
for each in (tied, untied):
    mean_loss(each(batch.src, batch.tgt_in), batch.tgt_out).backward()
parts = [untied.src_embedding.table.weight, untied.tgt_embedding.table.weight, untied.generator.weight]
assert all(part.grad.abs().max() > 0 for part in parts)
torch.testing.assert_close(tied.generator.weight.grad, sum(part.grad for part in parts), rtol=1e-9, atol=1e-12)

# %% [markdown]
# The shared gradient is the sum of the three: every use teaches the same rows.
#
# ## How does it start?
#
# The paper does not say how its weights are initialized.
# Ours are Xavier-uniform, with biases of 0, and an embedding whose numbers have a standard deviation of 1/√d_model.
# Section 3.4 multiplies embedded tokens by √d_model.
# Together that gives a token variance 1, beside 0.5 for the position: sine and cosine, squared, have mean one half.

# %%
torch.manual_seed(1)
wide = Transformer(ModelConfig(vocab_size=2000, d_model=256, num_layers=2, d_ff=512, max_len=64)).eval()
table, position = wide.src_embedding.table.weight, wide.src_embedding.position.table
token_variance, position_variance = (table * math.sqrt(256)).var().item(), position.square().mean().item()
print(f"token {token_variance:.2f}, position {position_variance:.2f}; without the factor: token {table.var():.4f}")
assert math.isclose(token_variance, 1, rel_tol=0.02) and math.isclose(position_variance, 0.5, rel_tol=1e-6)
assert table.var() < position_variance / 100

# %% [markdown]
# Without √d_model the position is more than a hundred times as strong as the token.
#
# The same small numbers suit the generator.
# A normalized output has variance 1 in each of d_model features, so its product with a row has variance d_model · 1/d_model = 1.
# PyTorch's own `nn.Embedding` starts with a standard deviation of 1 instead.
# What does the first loss look like with such a generator?

# %%
src, tgt_in, tgt_out = torch.randint(4, 2000, (3, 8, 32), generator=torch.Generator().manual_seed(0))
first_loss = {}
for name, factor in (("1/√d_model", 1), ("1", math.sqrt(256))):
    with torch.no_grad():
        logits = wide(src, tgt_in) * factor
    first_loss[name] = mean_loss(logits, tgt_out).item()
    print(f"standard deviation {name:10}: logits {logits.std():5.2f}, first loss {first_loss[name]:6.2f} nats")
print(f"guessing evenly: {math.log(2000):.2f} nats")
assert math.log(2000) < first_loss["1/√d_model"] < math.log(2000) + 1
assert first_loss["1"] > 5 * math.log(2000)

# %% [markdown]
# A good start is close to guessing evenly among all subwords: ln(vocab) nats.
# With the large numbers the model starts out sure of itself, and wrong.
#
# ## Where does the final norm come from?
#
# The paper normalizes *after* each residual sum: post-norm.
# Many later models normalize *before* each sub-layer: pre-norm.
# Then nothing normalizes the sum itself.
# What happens to its size, layer after layer?


# %%
@torch.no_grad()
def sizes_by_layer(norm_first):
    """Standard deviation of what enters the encoder, and of what leaves each layer."""
    torch.manual_seed(2)
    deep = Transformer(replace(small, num_layers=8, norm_first=norm_first)).eval()
    x = deep.src_embedding(one.src)
    sizes = [x.std().item()]
    for layer in deep.encoder.layers:
        x = layer(x)
        sizes.append(x.std().item())
    return sizes, deep.encoder.norm(x).std().item()


(post, _), (pre, pre_end) = sizes_by_layer(False), sizes_by_layer(True)

# %%
from course_lib.plots import curves

depth = range(len(post))
figure = curves(
    {"pre-norm": (depth, pre), "post-norm": (depth, post)},
    xlabel="layers passed",
    ylabel="standard deviation",
    title="In a pre-norm stack the sum grows; a final norm brings it back to 1",
    marks={"pre-norm, after the final norm": (depth[-1], pre_end)},
)
assert list(figure.axes[0].lines[0].get_ydata()) == pre
assert all(after > before for before, after in zip(pre, pre[1:], strict=False)) and pre[-1] > 1.5 * pre[0]
assert all(math.isclose(size, 1, abs_tol=0.01) for size in [*post[1:], pre_end])
figure

# %% [markdown]
# The post-norm stack leaves every layer at size 1, so the paper's figure has no norm at the end of a stack.
# The pre-norm stack needs one, once for the encoder and once for the decoder.
#
# **A common mistake**: `torch.nn.Transformer` puts a final norm behind *both* kinds, so it is not the paper's model.

# %% tags=["nbval-check-output"]
from torch import nn

sizes = dict(dim_feedforward=128, num_encoder_layers=2, num_decoder_layers=2, batch_first=True)
torchs = nn.Transformer(small.d_model, small.num_heads, **sizes)  # without embeddings
without_embeddings = small.num_parameters - small.parameter_counts()["embeddings"]
extra = sum(parameter.numel() for parameter in torchs.parameters()) - without_embeddings
print(f"torch.nn.Transformer has {extra} more parameters: two norms of 2 × {small.d_model}")
assert extra == 2 * 2 * small.d_model
assert isinstance(torchs.encoder.norm, nn.LayerNorm) and isinstance(model.encoder.norm, nn.Identity)

# %% [markdown]
# ## Is it the same function as PyTorch's?
#
# We copy our weights into PyTorch's layers, which keep the three projections of attention in one matrix.
# If one number were in the wrong place, the outputs would differ.


# %%
@torch.no_grad()
def copy_attention(ours, theirs):
    projections = (ours.query_proj, ours.key_proj, ours.value_proj)
    theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
    theirs.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
    copy(ours.output_proj, theirs.out_proj)


def copy(ours, theirs):
    """Copies parameters that come in the same order."""
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))


# %%
def copy_layer(ours, theirs):
    """Copies an encoder or a decoder layer into torch's."""
    copy_attention(ours.self_attn, theirs.self_attn)
    paths = [ours.self_attn_path, ours.feed_forward_path]
    if hasattr(ours, "cross_attn"):
        copy_attention(ours.cross_attn, theirs.multihead_attn)
        paths.insert(1, ours.cross_attn_path)
    copy(ours.feed_forward.up, theirs.linear1)
    copy(ours.feed_forward.down, theirs.linear2)
    for number, path in enumerate(paths, start=1):
        copy(path.norm, getattr(theirs, f"norm{number}"))


# %% [markdown]
# PyTorch's boolean masks say the opposite of ours: there, True means *hidden*.


# %%
def torch_stacks(ours):
    """torch's encoder and decoder with our weights; a final norm only where ours has one."""
    config = ours.config
    sizes = (config.d_model, config.num_heads, config.d_ff)
    look = dict(norm_first=config.norm_first, batch_first=True, dtype=torch.float64)
    layers = (nn.TransformerEncoderLayer(*sizes, **look), nn.TransformerDecoderLayer(*sizes, **look))
    norms = [nn.LayerNorm(config.d_model, dtype=torch.float64) if config.norm_first else None for _ in layers]
    encoder = nn.TransformerEncoder(layers[0], config.num_layers, norms[0], enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(layers[1], config.num_layers, norms[1])
    for mine, torchs in ((ours.encoder, encoder), (ours.decoder, decoder)):
        for number, layer in enumerate(mine.layers):
            copy_layer(layer, torchs.layers[number])
        if config.norm_first:
            copy(mine.norm, torchs.norm)
    return encoder.eval(), decoder.eval()


# %%
@torch.no_grad()
def torch_logits(ours, src, tgt_in):
    """Our embeddings and generator around torch's two stacks."""
    encoder, decoder = torch_stacks(ours)
    src_hidden, tgt_hidden = src == 0, tgt_in == 0
    future = torch.ones(tgt_in.shape[1], tgt_in.shape[1]).triu(1).bool()
    memory = encoder(ours.src_embedding(src), src_key_padding_mask=src_hidden)
    masks = dict(tgt_mask=future, tgt_key_padding_mask=tgt_hidden, memory_key_padding_mask=src_hidden)
    return ours.generator(decoder(ours.tgt_embedding(tgt_in), memory, **masks))


# %% [markdown]
# We fill *every* parameter with random numbers, biases and norms too, because zeros and ones hide mistakes.

# %% tags=["nbval-check-output"]
for norm_first in (False, True):
    ours = Transformer(replace(small, norm_first=norm_first)).double().eval()
    generator = torch.Generator().manual_seed(3)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, mean=0.1, std=0.2, generator=generator)
    with torch.no_grad():
        expected = ours(batch.src, batch.tgt_in)
    torch.testing.assert_close(torch_logits(ours, batch.src, batch.tgt_in), expected, rtol=1e-9, atol=1e-10)
    print("pre-norm" if norm_first else "post-norm", "equals torch's stacks:", tuple(expected.shape))

# %% [markdown]
# Both orders agree to nine digits, on a padded batch.
#
# ## Can it learn at all?
#
# The cheapest test of an assembled model: let it learn one batch by heart.
# If it cannot, something is wired wrongly, and no data will help.
# Dropout is off, because here we want it to memorize.
# A GPU gets a larger model.

# %%
larger = dict(d_model=256, num_heads=8, num_layers=4, d_ff=1024) if device == "cuda" else {}
config, rate = replace(small, **larger), 3e-4 if device == "cuda" else 1e-3
batch = batch.to(device)


def memorize(tgt_in, forward=Transformer.__call__, steps=120):
    """A fresh model after some steps on the one batch, and the loss before each step."""
    torch.manual_seed(0)
    fresh, losses = Transformer(config).to(device), []
    optimizer = torch.optim.Adam(fresh.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9)
    for _ in range(steps):
        loss = mean_loss(forward(fresh, batch.src, tgt_in), batch.tgt_out)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return fresh.eval(), losses


# %%
def steps_to(threshold, losses):
    return next(step for step, loss in enumerate(losses) if loss < threshold)


learned, losses = memorize(batch.tgt_in)
figure = curves(
    {"loss of the batch": (range(len(losses)), losses)},
    xlabel="step",
    ylabel="nats a token",
    title=f"One batch is learned by heart: its loss is below 0.05 after {steps_to(0.05, losses)} steps",
    log_y=True,
    marks={"guessing evenly": (None, math.log(config.vocab_size)), "0.05": (None, 0.05)},
)
assert abs(losses[0] - math.log(config.vocab_size)) < 1.5
assert losses[-1] < 0.05
assert list(figure.axes[0].lines[0].get_ydata()) == losses
figure

# %% [markdown]
# The loss starts near guessing and falls below 0.05.
# But that is the loss with the right target *read* at every step (teacher forcing).
# Does the model write the sentences when it has only its own words to read?
# One token at a time: encode once, then decode, take the best token, append it.


# %%
@torch.no_grad()
def translate_by_hand(model, src, max_len=15):
    """Source ids to German sentences, the most probable token at each step."""
    memory = model.encode(src)
    tgt_in = torch.full_like(src[:, :1], 1)  # <s>
    for _ in range(max_len):
        hidden = model.decode(tgt_in, memory, src)  # (batch, tgt_len, d_model)
        best = model.generator(hidden[:, -1:]).argmax(dim=-1)  # (batch, 1)
        tgt_in = torch.cat([tgt_in, best], dim=1)
    rows = [row[1 : row.index(2)] if 2 in row else row[1:] for row in tgt_in.tolist()]  # up to </s>
    return [tokenizer.decode(row) for row in rows]


# %% tags=["nbval-check-output"]
from course_lib.decoding import greedy

written = translate_by_hand(learned, batch.src)
for pair, german in zip(pairs, written, strict=True):
    print(f"{pair.src:40}{german}")
assert written == [pair.tgt for pair in pairs]
assert written == [tokenizer.decode(hypothesis.ids) for hypothesis in greedy(learned, batch.src)]

# %% [markdown]
# All eight are right, and the library's `greedy` writes the same.
# "The dog" is *Der Hund*, *den Hund* or *dem Hund*, as the sentence asks.
# This is memory, not translation: the model has seen nothing else.
# Lesson [10](10_translation.ipynb) gives it sentences that it has not seen.
#
# ## Break it: forget the shift
#
# A classic slip: the decoder reads `tgt_out` where it should read `tgt_in`.
# No shape changes and nothing crashes.
# What will the loss do: rise, stay, or fall?

# %%
copier, unshifted_losses = memorize(batch.tgt_out)
steps = range(len(losses))
figure = curves(
    {"shifted right": (steps, losses), "not shifted": (steps, unshifted_losses)},
    xlabel="step",
    ylabel="nats a token",
    title="Without the shift the loss falls sooner, and means nothing",
    log_y=True,
    marks={"0.05": (None, 0.05)},
)
assert steps_to(0.05, unshifted_losses) < steps_to(0.05, losses)
assert unshifted_losses[0] < losses[0]
figure

# %% [markdown]
# It falls *sooner*.
# Whoever watches only the loss is delighted.
# Let both models write.

# %%
for name, each in (("shifted right", learned), ("not shifted", copier)):
    written = translate_by_hand(each, batch.src)
    right = sum(german == pair.tgt for german, pair in zip(written, pairs, strict=True))
    print(f"{name:14}{right} of 8 right, the first: {written[0][:40]!r}")
    assert right == (8 if each is learned else 0)

# %% [markdown]
# Not one sentence.
# What has it learned instead?
# Two experiments tell: we give each model the sources of *other* sentences, and we let the broken one read random German tokens.

# %%
with torch.no_grad():
    for name, each, tgt_in in (("shifted right", learned, batch.tgt_in), ("not shifted", copier, batch.tgt_out)):
        swapped = mean_loss(each(batch.src.roll(1, 0), tgt_in), batch.tgt_out).item()
        print(f"{name:14}loss with the wrong sources {swapped:.3f}")
        assert swapped > 1 if each is learned else swapped < 0.05
    german_ids = torch.tensor(sorted(set(batch.tgt_out.flatten().tolist()) - {0, 2}), device=device)
    noise = german_ids[torch.randint(len(german_ids), (8, 7), generator=torch.Generator().manual_seed(0)).to(device)]
    copied = (copier(batch.src, noise).argmax(dim=-1) == noise).float().mean().item()
print(f"not shifted: repeats {copied:.0%} of random tokens that it reads")
assert copied > 0.9

# %% [markdown]
# The broken model does not look at the source at all.
# It copies: position *t* reads the very token that it must predict.
# The causal mask does not help, because it lets a position see itself.
#
# Why was it ahead before the first step?
# The residual paths carry the token that was read to the end, and the shared matrix compares it with itself.
# If that is the reason, an untrained model must repeat what it reads, and one with separate matrices must not.

# %%
real, repeats = batch.tgt_in != 0, {}
for tie_weights in (True, False):
    shares = []
    for seed in range(5):
        torch.manual_seed(seed)
        untrained = Transformer(replace(small, tie_weights=tie_weights)).to(device).eval()
        with torch.no_grad():
            guesses = untrained(batch.src, batch.tgt_in).argmax(dim=-1)
        shares.append((guesses == batch.tgt_in)[real].float().mean().item())
    repeats[tie_weights] = sum(shares) / len(shares)
    print(f"{'one shared matrix' if tie_weights else 'three matrices':18} repeats {repeats[tie_weights]:.0%}")
assert repeats[True] > 0.2 and repeats[False] < 0.05

# %% [markdown]
# ## Break it: forget √d_model
#
# Tokens that are drowned by their positions can still be learned, but it takes longer.

# %%
_, unscaled_losses = memorize(
    batch.tgt_in, forward=lambda model, src, tgt_in: forward_by_hand(model, src, tgt_in, 1.0)
)
needed = {name: steps_to(0.5, each) for name, each in (("with", losses), ("without", unscaled_losses))}
print(f"steps to a loss below 0.5: {needed['with']} with √d_model, {needed['without']} without")
assert needed["without"] > needed["with"]

# %% [markdown]
# ## What the sizes must satisfy
#
# Some mistakes are caught before they cost a training run.
# Can you say why each of these three models cannot be built?

# %% tags=["nbval-check-output"]
refused = []
for change in (dict(num_heads=7), dict(d_model=65, num_heads=5), dict(vocab_size=3)):
    try:
        replace(small, **change)
    except ValueError as error:
        refused.append(change)
        print(f"{change}\n    {error}")
assert len(refused) == 3
assert replace(small, d_model=65, num_heads=5, position="learned").d_k == 13

# %% [markdown]
# The heads share d_model among them, and a sine needs its cosine beside it; learned positions do not.
#
# ## Summary
#
# A Transformer embeds, encodes, decodes and generates; source ids and shifted target ids go in, and logits for every target position come out at once.
# Table 3 fixes all sizes, and three short formulas count the 63.1 and 214.2 million parameters exactly.
# Feed-forward networks hold most of them, one matrix serves in three places, and training keeps 16 bytes for each.
# Our model computes what PyTorch's stacks compute, in both norm orders; only pre-norm needs a norm at the end.
# One batch learned by heart shows that the wiring is right, and a low loss alone does not: without the shift it is lower sooner, and worth nothing.
#
# **Next**: lesson [10](10_translation.ipynb) trains this model until it translates sentences that it has never seen.
