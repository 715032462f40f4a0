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
# **You need** the parts: batches and embeddings ([01](01_text_to_tensors.ipynb)), positions ([02](02_position.ipynb)), attention ([03](03_attention.ipynb), [04](04_multi_head.ipynb)), masks ([05](05_masks.ipynb)), encoder ([06](06_encoder.ipynb)) and decoder ([07](07_decoder.ipynb)).
# **Time**: 35 minutes to read, under a minute to run.
# **In the paper**: figure 1, sections 3.1, 3.4 and 3.5, and table 3.

# %%
import math
from collections import Counter
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from course_lib import ModelConfig, Transformer

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

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
    Pair(
        "The woman sees the child and the dog.", "Die Frau sieht das Kind und den Hund."
    ),
    Pair("Today the woman sleeps.", "Heute schläft die Frau."),
]

# %% [markdown]
# As in lesson 01, both languages share one vocabulary of subwords (section 5.1).
# We learn it from these sentences alone, so each word becomes one token, and so does the full stop.

# %% tags=["nbval-check-output"]
from course_lib.tokenizer import EOS_ID, PAD_ID, Tokenizer

texts = [text for pair in pairs for text in pair]
tokenizer = Tokenizer.train(texts, vocab_size=160)
for text in pairs[0]:
    print(tokenizer.tokens(text), tokenizer.encode(text))
print(f"{tokenizer.vocab_size} subwords")
assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)
assert all(len(tokenizer.tokens(text)) == len(text.split()) + 1 for text in texts)

# %% [markdown]
# ## What goes in, and what should come out?
#
# The source gets `</s>` at its end.
# The target is used twice, as in lesson 07.
# The decoder *reads* it **shifted right**, with `<s>` in front.
# It must *predict* it with `</s>` at its end.

# %% tags=["nbval-check-output"]
from course_lib.data import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs))
one = make_batch(encode_pairs(tokenizer, pairs[:1]))
print("src  ", [tokenizer.token(i) for i in one.src[0].tolist()])
for read, predict in zip(one.tgt_in[0].tolist(), one.tgt_out[0].tolist(), strict=True):
    print(f"reads {tokenizer.token(read):8} predicts {tokenizer.token(predict)}")
assert torch.equal(one.tgt_in[0, 1:], one.tgt_out[0, :-1])

# %% [markdown]
# What is predicted on one line is read on the next: that is the assertion.
#
# ## The stations
#
# A small model is enough to see every shape.
# Before you run the next two cells: which shapes will depend on the length of the source, and which on the target's?

# %%
sizes = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.0, max_len=64)
small = ModelConfig(vocab_size=tokenizer.vocab_size, **sizes)
torch.manual_seed(0)
model = Transformer(small).eval()
memory = model.encode(one.src)
hidden = model.decode(one.tgt_in, memory, one.src)

# %% tags=["nbval-check-output"]
stations = {
    "src": one.src,
    "embedded source": model.src_embedding(one.src),
    "memory": memory,
    "tgt_in": one.tgt_in,
    "embedded target": model.tgt_embedding(one.tgt_in),
    "hidden": hidden,
    "logits": model.generator(hidden),
}
for name, tensor in stations.items():
    print(f"{name:16}{tuple(tensor.shape)}")
assert stations["memory"].shape == stations["embedded source"].shape
assert stations["logits"].shape == (*one.tgt_in.shape, small.vocab_size)

# %% [markdown]
# Axes are (batch, length), (batch, length, d_model), and at the end (batch, tgt_len, vocab).
# Our pair has seven tokens on both sides, which hides a difference.
# The memory has one vector for each *source* token, the logits have one row for each *target* position.
# A pair with two lengths shows it.

# %% tags=["nbval-check-output"]
uneven = make_batch(encode_pairs(tokenizer, pairs[3:4]))
memory, logits = model.encode(uneven.src), model(uneven.src, uneven.tgt_in)
print("src   ", tuple(uneven.src.shape), "memory", tuple(memory.shape))
print("tgt_in", tuple(uneven.tgt_in.shape), "logits", tuple(logits.shape))
assert uneven.src.shape[1] != uneven.tgt_in.shape[1]
assert memory.shape == (*uneven.src.shape, small.d_model)
assert logits.shape == (*uneven.tgt_in.shape, small.vocab_size)

# %% [markdown]
# So the memory is no "fixed-length representation": a longer source gives a longer memory.
# Only its width, d_model, is fixed.
#
# **A common mistake**: "each output dimension is a word."
# Each is a *subword* of either language; here, how many of the 131 are words?

# %% tags=["nbval-check-output"]
whole = {token for text in texts for token in tokenizer.tokens(text)} - {"."}
every = [tokenizer.token(i) for i in range(logits.shape[-1])]
pieces = [token for token in every if token not in whole]
print(f"{len(whole)} words, {len(pieces)} others:", *pieces[:6], "…", *pieces[-6:])
assert len(every) == len(whole) + len(pieces) and len(pieces) > len(whole)

# %% [markdown]
# ## By hand
#
# What does `Transformer.forward` do?
# We write it out: embed, encode, decode, generate.
# The layers are those of lessons 06 and 07, the masks those of lesson 05.
# The embedding is that of lessons 01 and 02: a row of the table, times a scale, plus the position.


# %%
from course_lib.masks import causal_mask, padding_mask
from course_lib.position import sinusoidal


def embed(model, ids, scale):
    """Ids (batch, length) to (batch, length, d_model): scaled rows plus positions."""
    table = model.src_embedding.table.weight
    return table[ids] * scale + sinusoidal(ids.shape[1], table.shape[1]).to(table)


# %%
def forward_by_hand(model, src, tgt_in, scale):
    """Ids (batch, src_len) and (batch, tgt_len) to logits (batch, tgt_len, vocab)."""
    src_mask, tgt_mask = padding_mask(src, PAD_ID), padding_mask(tgt_in, PAD_ID)
    tgt_mask = tgt_mask & causal_mask(tgt_in.shape[1], device=tgt_in.device)
    memory, hidden = embed(model, src, scale), embed(model, tgt_in, scale)
    for layer in model.encoder.layers:
        memory = layer(memory, src_mask)
    for layer in model.decoder.layers:
        hidden = layer(hidden, memory, tgt_mask, src_mask)
    return hidden @ model.src_embedding.table.weight.T


# %% [markdown]
# Is it the same function, with the scale √d_model of section 3.4, and with no scale?

# %%
theirs = model(batch.src, batch.tgt_in)
ours = forward_by_hand(model, batch.src, batch.tgt_in, scale=math.sqrt(small.d_model))
torch.testing.assert_close(ours, theirs)
unscaled = forward_by_hand(model, batch.src, batch.tgt_in, scale=1)
assert not torch.allclose(unscaled, theirs, rtol=0.1, atol=0.1)

# %% [markdown]
# With √d_model the logits are the same, for all eight sentences, padding included.
# Every decoder layer reads the same memory: the output of the *last* encoder layer.
#
# ## The map
#
# Here is the paper's base model with a vocabulary of 37,000 subwords.
# The numbers behind the names are parameters, those in parentheses are shapes for our sentence.
# Where do you expect most of the parameters?

# %% id="architecture-map"
from course_lib import analysis, model_preset
from course_lib.figures import architecture_figure

base = model_preset("base", vocab_size=37_000)
big = model_preset("big", vocab_size=37_000)
million = base.num_parameters / 1e6
title = f"The base model: {million:.1f} million parameters, one matrix in three places"
figure = architecture_figure(analysis.stations(base, 7, 7), title=title)
labels = [text.get_text() for text in figure.axes[0].texts]
assert "memory (7, 512)" in labels and "logits (7, 37,000)" in labels
assert sum(label.endswith("same matrix") for label in labels) == 2
figure

# %% [markdown]
# The two stacks meet in one place: every decoder layer attends to the same memory.
# And two boxes say *same matrix*: they have no numbers of their own.
#
# Change the sizes, and look into the boxes.
# What doubles when d_model doubles, and what grows fourfold? Which boxes do not care about num_heads?

# %%
from course_lib.widgets import ArchitectureMap

explorer = ArchitectureMap(base)
assert explorer.view["parameters"] == base.num_parameters
explorer

# %% [markdown]
# ## The paper's table
#
# Two rows of table 3 fix the two models of the paper.
# `ModelConfig` has the base model as its default.

# %% tags=["nbval-check-output"]
print("      layers  d_model   d_ff  heads  d_k  dropout   parameters")
for name, row in (("base", base), ("big", big)):
    print(f"{name:5}{row.num_layers:>3} + {row.num_layers}", end="")
    print(f"{row.d_model:9}{row.d_ff:7}{row.num_heads:7}{row.d_k:5}", end="")
    print(f"{row.dropout:9}{row.num_parameters:13,}")
assert base == ModelConfig(vocab_size=37_000)
assert base.d_k == big.d_k == 64
assert (big.d_model, big.num_heads) == (2 * base.d_model, 2 * base.num_heads)
attn = model.decoder.layers[0].cross_attn
assert attn.value_proj.out_features == attn.key_proj.out_features == small.d_model

# %% [markdown]
# **A common mistake**: lists of these sizes that leave out d_k = d_v = 64.
# A head's values are as wide as its keys.
# Big has twice the width and twice the heads, so its heads are no wider.
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
    sizes = config.vocab_size, config.d_model, config.d_ff, config.num_layers
    total = count_by_hand(*sizes)
    print(f"{name:5}{total:12,} = {total / 1e6:.1f} M")
    assert total == config.num_parameters

# %% [markdown]
# Is the formula right?
# We build both models and count, part by part.
# PyTorch's *meta* device makes tensors that have a shape and no memory, so even big costs nothing.


# %%
def part_of(name):
    """The part of the model that a parameter belongs to."""
    if "norm" in name or "embedding" in name:
        return "norms" if "norm" in name else "embeddings"
    stack, _, _, sublayer, *_ = name.split(".")  # "encoder.layers.0.self_attn.…"
    return f"{stack} {sublayer}".replace("_attn", "-attention").replace("_", "-")


def count(config):
    """Parameters of each part, counted in a model without numbers."""
    counted = Counter()
    with torch.device("meta"):
        for name, parameter in Transformer(config).named_parameters():
            counted[part_of(name)] += parameter.numel()
    return counted


# %% tags=["nbval-check-output"]
counted = {"base": count(base), "big": count(big)}
for part, size in counted["base"].items():
    print(f"{part:24}{size:12,}{counted['big'][part]:13,}")
for config, parts in zip((base, big), counted.values(), strict=True):
    assert parts.total() == config.num_parameters
    assert parts == config.parameter_counts()

# %% [markdown]
# The sums are those of the formula.
# And `ModelConfig.parameter_counts` knows each part without building anything.
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
    low, high = (
        math.ceil(((printed + half) * 1e6 - without) / config.d_model)
        for half in (-0.5, 0.5)
    )
    fitting[name] = range(low, high)
    print(f"{name:5}needs {low:,} to {high - 1:,} subwords")
assert not set(fitting["base"]) & set(fitting["big"])
assert 37_000 not in fitting["base"] and 37_000 not in fitting["big"]

# %% [markdown]
# No single vocabulary explains both numbers.
# Do three separate matrices explain them, or attention without biases, which is how section 3.2.2 writes it?

# %% tags=["nbval-check-output"]
for name, config, printed in (("base", base, 65), ("big", big, 213)):
    attentions = 3 * config.num_layers  # 1 in an encoder layer, 2 in a decoder layer
    biases = 4 * config.d_model  # of one attention
    variants = {
        "as built": config.num_parameters,
        "three matrices": replace(config, tie_weights=False).num_parameters,
        "no biases in attention": config.num_parameters - attentions * biases,
    }
    for variant, total in variants.items():
        print(f"{name:5}{variant:24}{total / 1e6:7.1f} M")
        assert round(total / 1e6) != printed
assert abs(base.num_parameters / 65e6 - 1) < 0.03
assert abs(big.num_parameters / 213e6 - 1) < 0.01

# %% [markdown]
# Neither does.
# The paper does not say what its count includes, so we leave the gap open: it is less than 3 % for base and less than 1 % for big.
#
# ## Where do the operations go?
#
# A parameter costs memory, an operation costs time.
# A matrix of *n* parameters takes 2*n* operations for each token: a multiplication and an addition.
# Looking up a row of the embedding takes none, but the same matrix works again as the generator.
# So are the operations where the parameters are?
# `ModelConfig.flop_counts` adds up all matrix products of a forward pass.
# To check it, we let PyTorch count those of our small model.

# %% tags=["nbval-check-output"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

counter = FlopCounterMode(display=False)
plain = sdpa_kernel(SDPBackend.MATH)  # attention as products that the counter sees
with torch.no_grad(), counter, plain:
    model(uneven.src, uneven.tgt_in)
measured = counter.get_total_flops()
formula = small.flop_counts(uneven.src.shape[1], uneven.tgt_in.shape[1])
print(f"PyTorch counts {measured:,} operations, the formula {sum(formula.values()):,}")
assert measured == sum(formula.values())

# %% [markdown]
# If each parameter takes two operations for each token, a pair of 30 and 30 tokens takes 2 · 30 · parameters.
# How good is this rule?

# %% tags=["nbval-check-output"]
for name, config in (("base", base), ("big", big)):
    operations = sum(config.flop_counts(src_len=30, tgt_len=30).values())
    rule = 2 * 30 * config.num_parameters
    print(f"{name:5}{operations / 1e9:5.2f} billion, by the rule {rule / 1e9:.2f}")
    assert math.isclose(operations, rule, rel_tol=0.01)

# %% [markdown]
# It is right to one percent.
# Now part by part.
# Predict: which parts will grow if the sentences have 3000 tokens?

# %%
from course_lib.figures import stacked_bars


def percent(parts):
    """Shares of the whole; the matrix that embeds and generates is one part."""
    parts = dict(parts)
    parts["shared matrix"] = parts.pop("embeddings", 0) + parts.pop("generator", 0)
    return {part: 100 * size / sum(parts.values()) for part, size in parts.items()}


shares = {}
for name, config in (("base", base), ("big", big)):
    shares[f"{name}: parameters"] = percent(config.parameter_counts())
    for length in (30, 3000):
        operations = config.flop_counts(src_len=length, tgt_len=length)
        row = percent(operations | {"norms": 0})  # the norms' are few, and not counted
        parts = shares[f"{name}: parameters"]  # the same order of the parts
        shares[f"{name}: operations, {length} tokens"] = {p: row[p] for p in parts}

# %%
figure = stacked_bars(
    shares,
    xlabel="share (%)",
    title="Operations go where the parameters are, "
    "until the sentences are long and attention takes over",
    value_format="{:.0f}",
)
for name in ("base", "big"):
    parts = shares[f"{name}: parameters"]
    short = shares[f"{name}: operations, 30 tokens"]
    assert all(abs(short[part] - share) < 1 for part, share in parts.items())
widths = [bar.get_width() for bar in figure.axes[0].patches]
assert math.isclose(sum(widths), 100 * len(shares))
figure

# %% [markdown]
# For a sentence of ordinary length the shares of operations and of parameters differ by less than one percentage point.
# Attention is in the title of the paper; is it the largest part?


# %%
def share_of(parts, ending):
    return sum(share for part, share in parts.items() if part.endswith(ending))


for row, parts in shares.items():
    attention = share_of(parts, "attention")
    feed_forward = share_of(parts, "feed-forward")
    print(f"{row:30} feed-forward {feed_forward:3.0f} %, attention {attention:3.0f} %")
    if "3000" in row:
        assert attention > 50
    else:
        assert feed_forward > max(attention, parts["shared matrix"])

# %% [markdown]
# No: the feed-forward networks are, of the parameters and of the operations for 30 tokens.
# At 3000 tokens attention takes more than half of the operations.
# What grows there?
# Scores and weighted values take 4 · length² · d_model operations, the four projections 8 · length · d_model².
# At which length are the two equal?


# %% tags=["nbval-check-output"]
def quadratic_share(config, length):
    """Share of encoder self-attention that grows with the square of the length."""
    total = config.flop_counts(length, length)["encoder self-attention"]
    return config.num_layers * 4 * length * length * config.d_model / total


for length in (30, 300, 1024, 4096):
    print(f"{length:5} tokens: {quadratic_share(base, length):.1%}")
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

# %%
def mean_loss(logits, tgt_out):
    """Cross-entropy in nats a token, over real tokens."""
    real = tgt_out != PAD_ID
    return F.cross_entropy(logits[real], tgt_out[real])


def total_bytes(tensors):
    return sum(tensor.nbytes for tensor in tensors)


# %% tags=["nbval-check-output"]
optimizer = torch.optim.Adam(model.parameters())
mean_loss(model(batch.src, batch.tgt_in), batch.tgt_out).backward()
optimizer.step()
parameters = list(model.parameters())
states = optimizer.state.values()
moments = [state[name] for state in states for name in ("exp_avg", "exp_avg_sq")]
held = {
    "weights": total_bytes(parameters),
    "gradients": total_bytes(parameter.grad for parameter in parameters),
    "optimizer": total_bytes(moments),
}
print(held)
assert held == small.memory_bytes()
assert sum(held.values()) == 16 * small.num_parameters

# %%
gigabytes = {
    name: {part: size / 1e9 for part, size in config.memory_bytes().items()}
    for name, config in (("base", base), ("big", big))
}
figure = stacked_bars(
    gigabytes,
    xlabel="GB in float32, without activations",
    title="Half of what training holds for the parameters is the optimizer's",
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
    """Bytes that a forward pass keeps for the backward pass, parameters not counted."""
    parameters = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(src, tgt_in)
    return sum(size for pointer, size in kept.items() if pointer not in parameters)


# %%
single = saved_bytes(model, batch.src, batch.tgt_in)
double = saved_bytes(model, batch.src.repeat(2, 1), batch.tgt_in.repeat(2, 1))
print(f"activations {single:,} bytes, with twice the batch {double:,}")
print(f"weights {held['weights']:,} bytes either way")
assert math.isclose(double / single, 2, rel_tol=0.02)

# %% [markdown]
# They double, and the weights stay.
# So smaller batches save memory for activations only.
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
parts = [
    untied.src_embedding.table.weight,
    untied.tgt_embedding.table.weight,
    untied.generator.weight,
]
assert all(part.grad.abs().max() > 0 for part in parts)
torch.testing.assert_close(
    tied.generator.weight.grad, sum(part.grad for part in parts), rtol=1e-9, atol=1e-12
)

# %% [markdown]
# The shared gradient is the sum of the three: every use teaches the same rows.
#
# ## How does it start?
#
# The paper does not say how its weights are initialized.
# Ours are Xavier-uniform, with biases of 0.
# The shared matrix has a standard deviation of 1/√d_model, which suits the embedding: times √d_model, a token has variance 1 (lesson 01).

# %%
torch.manual_seed(1)
sizes = dict(vocab_size=2000, d_model=256, num_layers=2, d_ff=512, max_len=64)
wide = Transformer(ModelConfig(**sizes)).eval()
for name, parameter in wide.named_parameters():
    if name.endswith("bias"):
        assert not parameter.any()
    elif part_of(name) not in ("norms", "embeddings"):
        bound = math.sqrt(6 / sum(parameter.shape))  # Xavier's
        assert 0.99 * bound < parameter.abs().max() <= bound
table = wide.src_embedding.table.weight
assert math.isclose(table.std().item(), 1 / math.sqrt(256), rel_tol=0.01)
assert math.isclose(nn.Embedding(2000, 256).weight.std().item(), 1, rel_tol=0.01)

# %% [markdown]
# The same small numbers suit the generator.
# A normalized output has variance 1 in each of d_model features, so its product with a row has variance d_model · 1/d_model = 1.
# PyTorch's own `nn.Embedding` starts with a standard deviation of 1 instead.
# What does the first loss look like with such a generator?

# %%
generator = torch.Generator().manual_seed(0)
src, tgt_in, tgt_out = torch.randint(4, 2000, (3, 8, 32), generator=generator)
first_loss = {}
for name, factor in (("1/√d_model", 1), ("1", math.sqrt(256))):
    with torch.no_grad():
        logits = wide(src, tgt_in) * factor
    first_loss[name] = loss = mean_loss(logits, tgt_out).item()
    print(f"standard deviation {name:10}: ", end="")
    print(f"logits {logits.std():5.2f}, first loss {loss:6.2f} nats")
print(f"guessing evenly: {math.log(2000):.2f} nats")
assert math.log(2000) < first_loss["1/√d_model"] < math.log(2000) + 1
assert first_loss["1"] > 5 * math.log(2000)

# %% [markdown]
# A good start is close to guessing evenly among all subwords: ln(vocab) nats.
# With the large numbers the model starts out sure of itself, and wrong.
#
# ## Where does the final norm come from?
#
# Lesson 06 promised a reason why pre-norm stacks end with a norm.
# The paper normalizes *after* each residual sum: post-norm.
# Pre-norm does it *before* each sub-layer, and then nothing normalizes the sum itself.
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
from course_lib.figures import curves

depth = range(len(post))
figure = curves(
    {"pre-norm": (depth, pre), "post-norm": (depth, post)},
    xlabel="layers passed",
    ylabel="standard deviation",
    title="In a pre-norm stack the sum grows; a final norm brings it back to 1",
    marks={"pre-norm, after the final norm": (depth[-1], pre_end)},
)
assert list(figure.axes[0].lines[0].get_ydata()) == pre
assert pre == sorted(pre) and pre[-1] > 1.5 * pre[0]
assert all(math.isclose(size, 1, abs_tol=0.01) for size in [*post[1:], pre_end])
figure

# %% [markdown]
# Every post-norm layer leaves size 1, so these stacks need no norm at their end, and the paper's figure 1 has none.
# Pre-norm stacks need one each, encoder and decoder.
#
# **A common mistake**: to take `torch.nn.Transformer` for the paper's model.
# It is post-norm unless we say otherwise, and has a final norm on each stack all the same.

# %% tags=["nbval-check-output"]
layers = dict(num_encoder_layers=2, num_decoder_layers=2)
torchs = nn.Transformer(64, 4, **layers, dim_feedforward=128, batch_first=True)
theirs = sum(parameter.numel() for parameter in torchs.parameters())
ours = small.num_parameters - small.parameter_counts()["embeddings"]  # as torch's
print(f"torch.nn.Transformer has {theirs - ours} more: two norms of 2 × 64")
assert theirs - ours == 2 * 2 * small.d_model
assert not torchs.encoder.layers[0].norm_first
assert isinstance(torchs.encoder.norm, nn.LayerNorm)
assert isinstance(torchs.decoder.norm, nn.LayerNorm)
assert isinstance(model.encoder.norm, nn.Identity)

# %% [markdown]
# ## Is it the same function as PyTorch's?
#
# Lessons 06 and 07 compared one layer; now it is whole stacks.
# As there, we copy our weights into PyTorch's layers, which keep the three projections of attention in one matrix.


# %%
def copy(ours, theirs):
    """Copies parameters that come in the same order."""
    values = ours.state_dict().values()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))


@torch.no_grad()
def copy_attention(ours, theirs):
    """Copies the projections, three of them into one."""
    three = (ours.query_proj, ours.key_proj, ours.value_proj)
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in three]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in three]))
    copy(ours.output_proj, theirs.out_proj)


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


# %%
def copy_stack(ours, theirs):
    """Copies all layers, and the final norm if there is one."""
    for mine, torchs in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, torchs)
    if isinstance(ours.norm, nn.Identity):
        theirs.norm = None
    else:
        theirs.norm = nn.LayerNorm(len(ours.norm.scale), dtype=torch.float64)
        copy(ours.norm, theirs.norm)


# %%
def torch_stacks(ours):
    """torch's two stacks with our weights; a final norm only where ours has one."""
    config = ours.config
    sizes = (config.d_model, config.num_heads, config.d_ff)
    look = dict(norm_first=config.norm_first, batch_first=True)
    layer = nn.TransformerEncoderLayer(*sizes, **look)
    few = config.num_layers
    encoder = nn.TransformerEncoder(layer, few, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **look), few)
    encoder, decoder = encoder.double().eval(), decoder.double().eval()
    copy_stack(ours.encoder, encoder)
    copy_stack(ours.decoder, decoder)
    return encoder, decoder


# %% [markdown]
# PyTorch's boolean masks say the opposite of ours: there, True means *hidden*.


# %%
@torch.no_grad()
def torch_logits(ours, src, tgt_in):
    """Our embeddings and generator around torch's two stacks."""
    encoder, decoder = torch_stacks(ours)
    src_padding, tgt_padding = src == PAD_ID, tgt_in == PAD_ID
    memory = encoder(ours.src_embedding(src), src_key_padding_mask=src_padding)
    masks = dict(
        tgt_mask=~causal_mask(tgt_in.shape[1])[0, 0],
        tgt_key_padding_mask=tgt_padding,
        memory_key_padding_mask=src_padding,
    )
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
    theirs = torch_logits(ours, batch.src, batch.tgt_in)
    torch.testing.assert_close(expected, theirs, rtol=1e-9, atol=1e-10)
    order = "pre-norm" if norm_first else "post-norm"
    print(order, "equals torch's stacks:", tuple(expected.shape))

# %% [markdown]
# Both orders agree to nine digits, on a padded batch.
#
# ## Can it learn at all?
#
# The cheapest test of an assembled model: let it learn one batch by heart.
# If it cannot, something is wired wrongly, and no data will help.
# Dropout is off, because here we want it to memorize.
# All models below start from the same seed; a GPU gets a larger one.

# %%
larger = dict(d_model=256, num_heads=8, num_layers=4, d_ff=1024)
config = replace(small, **larger) if device == "cuda" else small
adam = dict(lr=3e-4 if device == "cuda" else 1e-3, betas=(0.9, 0.98), eps=1e-9)
batch = batch.to(device)


def new_model():
    torch.manual_seed(0)
    return Transformer(config).to(device)


# %%
def memorize(tgt_in, forward=Transformer.__call__, steps=120):
    """A fresh model after some steps on the one batch, and the loss before each."""
    fresh, losses = new_model(), []
    optimizer = torch.optim.Adam(fresh.parameters(), **adam)
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


# %%
learned, losses = memorize(batch.tgt_in)
steps, even = steps_to(0.05, losses), math.log(config.vocab_size)
figure = curves(
    {"loss of the batch": (range(len(losses)), losses)},
    xlabel="step",
    ylabel="nats a token",
    title=f"One batch is learned by heart: its loss is below 0.05 after {steps} steps",
    log_y=True,
    marks={"guessing evenly": (None, even), "0.05": (None, 0.05)},
)
assert abs(losses[0] - even) < 1.5
assert losses[-1] < 0.05
assert list(figure.axes[0].lines[0].get_ydata()) == losses
figure

# %% [markdown]
# The loss starts near guessing and falls below 0.05.
# But that is the loss under teacher forcing, with the right target to read.
# Does the model write the sentences when it has only its own words to read?
# We wrote that loop in lesson 07; here we take the library's.


# %% tags=["nbval-check-output"]
from course_lib import greedy


def write(model):
    """German for the eight sources, the most probable token at each step."""
    return [tokenizer.decode(written.ids) for written in greedy(model, batch.src)]


for pair, german in zip(pairs, write(learned), strict=True):
    print(f"{pair.src:40}{german}")
    assert german == pair.tgt

# %% [markdown]
# All eight are right: "the dog" is *Der Hund*, *den Hund* or *dem Hund*, as the sentence asks.
# This is learning by heart, not translation: the model has seen nothing else.
# Lesson [10](10_translation.ipynb) gives it sentences that it has not seen.
#
# ## Break it: forget the shift
#
# The slip of lesson 07: the decoder reads `tgt_out` where it should read `tgt_in`.
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
    written = write(each)
    right = sum(german == pair.tgt for german, pair in zip(written, pairs, strict=True))
    print(f"{name:14}{right} of 8 right, the first: {written[0][:40]!r}")
    assert right == (8 if each is learned else 0)

# %% [markdown]
# Not one sentence.
# What has it learned instead?
# Two experiments tell: we give each model the sources of *other* sentences, and we let the broken one read random German tokens.

# %%
with torch.no_grad():
    for name, each, tgt_in in (
        ("shifted right", learned, batch.tgt_in),
        ("not shifted", copier, batch.tgt_out),
    ):
        swapped = mean_loss(each(batch.src.roll(1, 0), tgt_in), batch.tgt_out).item()
        print(f"{name:14}loss with the wrong sources {swapped:.3f}")
        assert swapped > 1 if each is learned else swapped < 0.05

# %%
german_ids = sorted(set(batch.tgt_out.flatten().tolist()) - {PAD_ID, EOS_ID})
generator = torch.Generator().manual_seed(0)
places = torch.randint(len(german_ids), (8, 7), generator=generator)
noise = torch.tensor(german_ids)[places].to(device)
with torch.no_grad():
    repeated = copier(batch.src, noise).argmax(dim=-1) == noise
copied = repeated.float().mean().item()
print(f"not shifted: repeats {copied:.0%} of random tokens that it reads")
assert copied > 0.9

# %% [markdown]
# The broken model has no use for the source.
# It copies: position *t* reads the very token that it must predict.
# The causal mask does not help, because it lets a position see itself.
#
# Why was it ahead before the first step?
# The residual paths carry the token that was read to the end, and the shared matrix compares it with itself.
# If that is the reason, an untrained model often repeats what it reads, and one with separate matrices hardly ever.
# We try five seeds of each.

# %%
real, repeats = batch.tgt_in != PAD_ID, {True: [], False: []}
for tie_weights, found in repeats.items():
    for seed in range(5):
        torch.manual_seed(seed)
        untrained = Transformer(replace(small, tie_weights=tie_weights)).to(device)
        with torch.no_grad():
            guesses = untrained.eval()(batch.src, batch.tgt_in).argmax(dim=-1)
        found.append((guesses == batch.tgt_in)[real].float().mean().item())
shared, separate = (sum(repeats[tie]) / 5 for tie in (True, False))
print(f"one shared matrix repeats {shared:.0%}, three matrices {separate:.0%}")
assert shared > 0.2 and separate < 0.05

# %% [markdown]
# ## Break it: forget √d_model
#
# Lesson 01 showed that unscaled tokens are drowned by their positions.
# Can such a model learn the batch at all?

# %%
_, unscaled_losses = memorize(
    batch.tgt_in,
    forward=lambda model, src, tgt_in: forward_by_hand(model, src, tgt_in, 1.0),
)
scaled, unscaled = steps_to(0.5, losses), steps_to(0.5, unscaled_losses)
print(f"steps to a loss below 0.5: {scaled} with √d_model, {unscaled} without")
assert unscaled > scaled

# %% [markdown]
# It can, but it takes longer.
#
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

# %% [markdown]
# The heads share d_model among them, a sine needs its cosine beside it, and four special tokens need four ids.
#
# **A common mistake**: "it works for any d_model."
# With sinusoids it must be even; learned positions do not mind.

# %%
odd = replace(small, d_model=65, num_heads=5, position="learned")
logits = Transformer(odd)(one.src, one.tgt_in)
assert logits.shape == (*one.tgt_in.shape, small.vocab_size)

# %% [markdown]
# **A common mistake**: "d_model must be the same for both languages."
# Only W_K and W_V of the cross-attention meet the memory (lesson 07), so a decoder of width 64 can read one of width 96.

# %%
reader = nn.MultiheadAttention(64, num_heads=4, kdim=96, vdim=96, batch_first=True)
query, wider_memory = torch.randn(1, 6, 64), torch.randn(1, 7, 96)
context, _ = reader(query, wider_memory, wider_memory)
assert context.shape == query.shape

# %% [markdown]
# One matrix for both languages, as in the paper, does ask for one width.

# %% [markdown]
# ## Summary
#
# A Transformer embeds, encodes, decodes and generates; source ids and shifted target ids go in, and logits for every target position come out at once.
# Table 3 fixes all sizes, and three short formulas count the 63.1 and 214.2 million parameters exactly.
# Feed-forward networks hold the largest share, one matrix serves in three places, and training keeps 16 bytes for each parameter.
# Our model computes what PyTorch's stacks compute, in both norm orders; only pre-norm needs a norm at the end.
# A model should learn one batch by heart and write it without help; a low loss alone proves nothing, because without the shift it falls sooner.
#
# **Practice**: [assignment 08](assignments/release/08_transformer/08_transformer.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [09](09_training.ipynb) takes training apart, until a model solves a task on inputs that it has never seen.
