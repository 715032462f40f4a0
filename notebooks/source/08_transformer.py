# %% [markdown]
# # 08 · The Transformer, assembled
#
# **Question.** We have every part. Do they work together, how would we notice if they did not, and where do 63 million parameters go?
#
# **Afterwards you can**
#
# 1. write the Transformer class, and give the shape at every station between an English sentence and the logits of the German tokens;
# 2. test a newly assembled model on one batch, and tell a good loss from one that is too good;
# 3. work out the parameters and FLOPs of the paper's two models from their sizes in table 3, and the memory that training needs for the parameters.
#
# **You need** the parts: batches and embeddings ([01](01_text_to_tensors.ipynb)), positions ([02](02_position.ipynb)), attention ([03](03_attention.ipynb), [04](04_multi_head.ipynb)), masks ([05](05_masks.ipynb)), encoder ([06](06_encoder.ipynb)) and decoder ([07](07_decoder.ipynb)).
# **Time**: {minutes} minutes to read, one to two minutes to run.
# **In the paper**: figure 1, sections 3.1, 3.2.2, 3.4, 3.5, 5.1 to 5.4, and the rows "base" and "big" of table 3 [@vaswani2017].

# %%
import math
from collections import Counter
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.widgets import ArchitectureMap, Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# ## Eight sentences
#
# A Transformer can be wrong and still run.
# We make three mistakes that change no shape and raise no error, and look for tests that find them.
# Eight sentences are few enough to read every output.
# The dog's article changes with its role; the cat, as subject or object, keeps *die*.

# %%
from course_lib.data import Pair

pairs = [
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
    Pair("The child sees the cat.", "Das Kind sieht die Katze."),
    Pair("The dog does not sleep.", "Der Hund schläft nicht."),
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The child gives the dog an egg.", "Das Kind gibt dem Hund ein Ei."),
    Pair("The woman has a child and a dog.", "Die Frau hat ein Kind und einen Hund."),
    Pair("Today the woman sleeps.", "Heute schläft die Frau."),
]

# %% [markdown]
# Both languages share one vocabulary of subwords, as in lesson [01](01_text_to_tensors.ipynb) (section 5.1 of the paper).
# We allow 160 subwords, but merging stops at 135: by then every word is one token.

# %% tags=["nbval-check-output"]
from course_lib.data import encode_pairs, make_batch
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer

texts = [text for pair in pairs for text in pair]
tokenizer = Tokenizer.train(texts, vocab_size=160)
for text in pairs[0]:
    print(tokenizer.tokens(text), tokenizer.encode(text))
print(f"{tokenizer.vocab_size} subwords")

# %% tags=["hide-input"]
assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)
assert all(len(tokenizer.tokens(text)) == len(text.split()) + 1 for text in texts)
assert tokenizer.vocab_size == 135

# %% [markdown]
# ## What goes in, and what must come out?
#
# The source gets `</s>` at its end.
# The target is used twice, as in lesson [07](07_decoder.ipynb): the decoder reads it shifted right, with `<s>` in front, and must predict it with `</s>` at its end.

# %% tags=["nbval-check-output"]
batch = make_batch(encode_pairs(tokenizer, pairs))
one = make_batch(encode_pairs(tokenizer, pairs[3:4]))
print("src  ", [tokenizer.token(i) for i in one.src[0].tolist()])
for read, predict in zip(one.tgt_in[0].tolist(), one.tgt_out[0].tolist(), strict=True):
    print(f"reads {tokenizer.token(read):8} predicts {tokenizer.token(predict)}")

# %% tags=["hide-input"]
assert torch.equal(one.tgt_in[0, 1:], one.tgt_out[0, :-1])

# %% [markdown]
# ## The class
#
# A Transformer embeds, encodes, decodes and generates logits.
# This is the map of a small model for the pair above.
# White boxes, the memory and the logits show their shapes, without the batch.
# The other boxes show numbers of parameters, in a stack those of one layer.

# %%
from course_lib import ModelConfig, Transformer

sizes = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.0, max_len=64)
small = ModelConfig(vocab_size=tokenizer.vocab_size, **sizes)

# %% tags=["hide-input"]
lengths = dict(src_len=one.src.shape[1], tgt_len=one.tgt_in.shape[1])
figure = ArchitectureMap(small, **lengths).picture()
title = f"OurTransformer, {small.num_parameters:,} parameters: 7 + 6 ids go in"
bold = dict(x=0.02, ha="left", weight="bold", size=11)
figure.suptitle(f"{title}, 6 rows of logits come out", **bold)
written_out = {
    "0.0 M": f"{small.vocab_size * small.d_model:,}",
    "embedding × √d_model": "table × √d_model",
    "Encoder:": "OurStack:",
    "Decoder:": "OurStack:",
}
for words in figure.axes[0].texts:
    for old, new in written_out.items():
        words.set_text(words.get_text().replace(old, new))

# %% tags=["hide-input"]
side = dict(rotation=90, ha="center", va="center", weight="bold", size=9)
low, high = 0.56, 1.88  # around the table and the position, below each stack
for left, where in ((0.55, 0.41), (4.95, 8.24)):
    corners = [left, left + 3.15, left + 3.15, left, left], [low, low, high, high, low]
    figure.axes[0].plot(*corners, color="0.5", ls="--", lw=1)
    figure.axes[0].text(where, (low + high) / 2, "OurEmbedding", **side)
figure

# %% tags=["hide-input"]
assert lengths == dict(src_len=7, tgt_len=6)
assert written_out["0.0 M"] == f"{135 * 64:,}"

# %% [markdown]
# We write three classes: `OurEmbedding` and `OurStack` for the dashed frames, and `OurTransformer` for the whole.
# The embedding is that of lessons 01 and 02: a row of the table, times √d_model, plus the position.
# Dropout follows the sum (section 5.4).

# %%
from course_lib.masks import causal_mask, padding_mask
from course_lib.position import sinusoidal


class OurEmbedding(nn.Module):
    """Ids (batch, length) to vectors (batch, length, d_model)."""

    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.d_model)
        self.scale, self.dropout = math.sqrt(config.d_model), nn.Dropout(config.dropout)

    def forward(self, ids):
        x = self.table(ids) * self.scale  # (batch, length, d_model)
        return self.dropout(x + sinusoidal(*x.shape[1:]).to(x))


# %% [markdown]
# Encoder and decoder are stacks of the layers of lessons 06 and 07.
# One class serves both: only the layer differs, and what it gets beside x.
# This lesson's models are post-norm, like the paper's; with `norm_first` they would be pre-norm (lesson [06](06_encoder.ipynb)).


# %%
from course_lib.blocks import DecoderLayer, EncoderLayer, LayerNorm


class OurStack(nn.Module):
    """num_layers layers of one kind, one after the other; pre-norm ends with a norm."""

    def __init__(self, layer, config):
        super().__init__()
        sizes = config.d_model, config.num_heads, config.d_ff, config.dropout
        new = partial(layer, *sizes, norm_first=config.norm_first)
        self.layers = nn.ModuleList(new() for _ in range(config.num_layers))
        self.norm = LayerNorm(config.d_model) if config.norm_first else nn.Identity()

    def forward(self, x, *others):  # a mask; in the decoder the memory and two masks
        for layer in self.layers:
            x = layer(x, *others)  # (batch, length, d_model)
        return self.norm(x)


# %% [markdown]
# This is the whole model:


# %%
class OurTransformer(nn.Module):
    """Ids (batch, src_len) and (batch, tgt_len) to logits (batch, tgt_len, vocab)."""

    def __init__(self, config):
        super().__init__()
        self.src_embedding = self.tgt_embedding = OurEmbedding(config)
        self.encoder = OurStack(EncoderLayer, config)
        self.decoder = OurStack(DecoderLayer, config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.generator.weight = self.src_embedding.table.weight  # one matrix

    def forward(self, src, tgt_in):
        src_mask, tgt_mask = padding_mask(src, PAD_ID), padding_mask(tgt_in, PAD_ID)
        tgt_mask = tgt_mask & causal_mask(tgt_in.shape[1], device=src.device)
        memory = self.encoder(self.src_embedding(src), src_mask)
        x = self.decoder(self.tgt_embedding(tgt_in), memory, tgt_mask, src_mask)
        return self.generator(x)


# %% tags=["hide-input"]
built = sum(parameter.numel() for parameter in OurTransformer(small).parameters())
assert built == small.num_parameters  # as the map's title says
whole = OurTransformer(small)
assert whole.src_embedding is whole.tgt_embedding
assert whole.generator.weight is whole.src_embedding.table.weight

# %% [markdown]
# `src_embedding` and `tgt_embedding` are two names for one object, and the generator's weight is its table: the three yellow boxes are one matrix.
# `forward` climbs the map: first the left side up to the memory, then the right side.
# `src_mask` is used twice, in the encoder and in cross-attention, because in both the keys come from source tokens.
#
# The paper does not say how the weights are initialized.
# As in `course_lib`, biases start at 0, and matrices are Xavier-uniform [@glorot2010]: random, in a narrower range for larger matrices.
# The shared matrix gets a standard deviation of 1/√d_model, so that a token's numbers, times √d_model, have variance 1 (lesson 01).


# %%
def initialize(model):
    """Xavier-uniform matrices, biases of 0, and a shared matrix of small numbers."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    table = model.generator.weight
    nn.init.normal_(table, std=table.shape[1] ** -0.5)


def mean_loss(logits, tgt_out):
    """Cross-entropy in nats per token; targets that are padding do not count."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)


# %% [markdown]
# ## The shape at every station
#
# *The dog does not sleep.* and *Der Hund schläft nicht.* have different lengths, 7 tokens and 6, counting `</s>` and `<s>`.
# We repeat the steps of `forward` one by one.
# A single sentence needs no padding mask.

# %%
of_keys = Predict(
    "Which shape do the keys of a cross-attention with four heads have here?",
    ["(1, 4, 6, 16)", "(1, 4, 7, 16)", "(1, 4, 7, 64)"],
    section="The shape at every station",
)
of_keys

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
ours = OurTransformer(small).eval()
initialize(ours)
stations = {"src": one.src, "embedded source": ours.src_embedding(one.src)}
stations["memory"] = memory = ours.encoder(stations["embedded source"], None)
keys, values = ours.decoder.layers[0].cross_attn.keys_values(memory, memory)
stations |= {"keys": keys, "tgt_in": one.tgt_in}
stations["embedded target"] = x = ours.tgt_embedding(one.tgt_in)
stations["decoder's output"] = x = ours.decoder(x, memory, causal_mask(6), None)
stations["logits"] = ours.generator(x)
for name, tensor in stations.items():
    print(f"{name:18}{tuple(tensor.shape)}")
why = "they come from the memory, and each head has a quarter of its width"
of_keys.reveal(tuple(keys.shape), because=why)

# %% tags=["hide-input"]
assert memory.shape == (*one.src.shape, small.d_model)
queries = []  # of the first cross-attention
attended = ours.decoder.layers[0].cross_attn.fused
hook = attended.register_forward_pre_hook(lambda _, args: queries.append(args[0]))
assert stations["logits"].shape == (*one.tgt_in.shape, small.vocab_size)
torch.testing.assert_close(stations["logits"], ours(one.src, one.tgt_in))
hook.remove()
assert queries[0].shape == (1, 4, 6, 16)
assert (queries[0] @ keys.transpose(-2, -1)).shape == (1, 4, 6, 7)

# %% [markdown]
# The memory has one row for each *source* token, and the logits have one for each *target* position.
# The two lengths meet only in cross-attention: its queries are (1, 4, 6, 16), so its attention weights are (1, 4, 6, 7).
#
# ## One matrix, three uses
#
# Section 3.4 shares one matrix between both embeddings and the generator, which is called **weight tying**, after @press2017.
# A token's row stands for it when it is read, and is compared with the decoder's output when it is predicted.
#
# One matrix has one gradient.
# What is it made of?
# We compare two `course_lib` models: one tied, one with three separate copies of its matrix (`tie_weights=False`).

# %% tags=["nbval-check-output"]
untied = Transformer(replace(small, tie_weights=False)).double()
tied = Transformer(small).double()
untied.load_state_dict(tied.state_dict())
for each in (tied, untied):
    mean_loss(each(batch.src, batch.tgt_in), batch.tgt_out).backward()
three = untied.src_embedding.table, untied.tgt_embedding.table, untied.generator
total_gradient = sum(each.weight.grad for each in three)
same = torch.allclose(tied.generator.weight.grad, total_gradient, rtol=1e-9)
print("the tied gradient is the sum of the three:", same)

# %% tags=["hide-input"]
assert all(each.weight.grad.abs().max() > 0 for each in three)
tied_gradient = tied.generator.weight.grad
torch.testing.assert_close(tied_gradient, total_gradient, rtol=1e-9, atol=1e-12)
changed = [each.weight.grad.abs().sum(dim=1) > 0 for each in three]  # rows
for rows, ids in zip(changed, (batch.src, batch.tgt_in), strict=False):
    assert set(rows.nonzero().flatten().tolist()) == set(ids[ids != PAD_ID].tolist())
assert changed[2].all()

# %% [markdown]
# As an embedding, the matrix gets a gradient only in the rows of the tokens that were read.
# As the generator, it gets one in every row, because the softmax compares all of them.
#
# ## How does it start?
#
# Before any training, a model knows nothing, and its loss should show that.
# The first mistake is to forget `initialize`, so we look at a model without it, too.

# %%
first = Predict(
    "A model with 2,000 subwords has just been through `initialize`. What is its loss "
    "on random tokens? (Guessing evenly gives ln 2,000 = 7.6 nats.)",
    ["clearly below 7.6 nats", "close to 7.6 nats", "clearly above 7.6 nats"],
    section="How does it start?",
)
first

# %%
torch.manual_seed(1)
of_wide = dict(vocab_size=2000, d_model=256, num_layers=2, d_ff=512, max_len=64)
wide = OurTransformer(ModelConfig(**of_wide)).eval()
src, tgt_in, tgt_out = torch.randint(4, 2000, (3, 8, 32))  # 0 to 3 are special
with torch.no_grad():
    as_written = wide(src, tgt_in)
    initialize(wide)
    logits = wide(src, tgt_in)
start = mean_loss(logits, tgt_out).item()
print(f"guessing evenly among 2,000: ln 2000 = {math.log(2000):.2f} nats")
print(f"as PyTorch fills the matrices: {mean_loss(as_written, tgt_out):.0f} nats")
print(f"after initialize: {start:.2f} nats")
why = "its logits are not all equal, and random targets do not reward that"
found = "clearly above 7.6 nats" if start > 8 else "close to 7.6 nats"
first.reveal(found, because=why)

# %% tags=["hide-input"]
from course_lib.figures import new_figure, styled

just_read = F.one_hot(tgt_in, 2000).bool()  # (batch, tgt_len, vocab)
two_starts = ("without initialize", as_written, 16), ("with initialize", logits, 1)
x = torch.linspace(-5, 5, 101)
normal = (-x * x / 2).exp() / math.sqrt(2 * math.pi)


def draw_panel(panel, name, each, spread):
    """The logits, and a normal curve of the spread expected."""
    panel.set(title=name, xlabel="logit", yticks=[])
    bars = dict(bins=60, density=True, color="#8fc4e8", label="all other tokens")
    panel.hist(each[~just_read].numpy(), **bars)
    panel.plot(spread * x, normal / spread, "k--", label="normal curve")


# %% tags=["hide-input"]
def draw_means(panel, name, each, spread):
    """Of the token just read, and of the largest of all others."""
    largest = each.masked_fill(just_read, -math.inf).amax(dim=-1).mean().item()
    panel.axvline(largest, color="0.3", ls=":", label="mean of their largest")
    mean, side = each[just_read].mean().item(), "right" if spread > 1 else "left"
    panel.axvline(mean, color="C6", label="mean of the token just read")
    panel.text(mean, 0.36 / spread, f"  {mean:.0f}  ", color="C6", ha=side)


# %% tags=["hide-input"]
@styled
def draw_logits(title):
    figure = new_figure(title, 9.0, 3.2)
    panels = figure.subplots(1, 2, width_ratios=(3, 2))
    for panel, start in zip(panels, two_starts, strict=True):
        draw_panel(panel, *start)
        draw_means(panel, *start)
    below = dict(loc="outside lower center", ncols=2)
    figure.legend(*panels[0].get_legend_handles_labels(), **below)
    return figure


# %% [markdown]
# The logits of both models (*just read*: the token of `tgt_in` at the same place):

# %% tags=["hide-input"]
draw_logits("Without initialize the token just read stands far out")

# %% tags=["hide-input"]
for _, each, spread in two_starts:
    of_others, of_read = each[~just_read], each[just_read].mean()
    assert abs(of_others.mean()) < 0.1 * spread > abs(of_others.std() - spread)
    # normal: within one, two and three standard deviations lie 68, 95 and 99.7 %
    for width, share in ((1, 0.683), (2, 0.954), (3, 0.997)):
        within = (of_others.abs() < width * spread).float().mean()
        assert abs(within - share) < 0.03
    largest_other = each.masked_fill(just_read, -math.inf).amax(dim=-1).mean()
    if each is as_written:
        assert of_read > 3 * largest_other > 0 and abs(of_read - 225) < 5
        assert abs(of_read - mean_loss(each, tgt_out)) < 10
    else:
        assert 3.5 < of_read < 4.5 and abs(of_read - largest_other) < 0.8

# %% tags=["hide-input"]
for table, length in ((nn.Embedding(2000, 256), 16), (wide.generator, 1)):
    of_rows = table.weight.norm(dim=-1).mean().item()
    assert math.isclose(of_rows, length, rel_tol=0.02)
of_vectors = LayerNorm(256)(wide.generator.weight).norm(dim=-1).mean().item()
assert math.isclose(of_vectors, 16, rel_tol=0.02)
assert f"{math.log(2000 * math.exp(0.5)):.2f}" == "8.10"
assert abs(logits.gather(-1, tgt_out[..., None]).mean()) < 0.3
assert abs(as_written.gather(-1, tgt_out[..., None]).mean()) < 5
assert abs(start - 8.21) < 0.02 and tgt_out.numel() == 256
assert mean_loss(as_written, tgt_out) > 100 and 14 < as_written.std() < 20
assert 0.8 < logits.std() < 1.2
assert abs(torch.trapezoid(x.exp() * normal, x) - math.exp(0.5)) < 0.01
for logit in (-3.0, 0.0, 1.5):
    moved = math.exp(0.5) * math.exp(-((logit - 1) ** 2) / 2)
    assert math.isclose(math.exp(logit) * math.exp(-logit * logit / 2), moved)

# %% tags=["hide-input"]
assert math.isclose(nn.Embedding(2000, 256).weight.std().item(), 1, rel_tol=0.01)
assert round(sinusoidal(20, 256)[0].norm().item()) == 11  # and 16 · √256 = 256
assert round(math.log(1 + math.exp(4) / (2000 * math.exp(0.5))), 2) == 0.02
for each in (wide, Transformer(ModelConfig(**of_wide))):  # both by the same rules
    for name, parameter in each.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.dim() > 1 and "embedding" not in name:
            bound = math.sqrt(6 / sum(parameter.shape))  # Xavier's
            assert 0.99 * bound < parameter.abs().max() <= bound
    assert math.isclose(each.generator.weight.std().item(), 1 / 16, rel_tol=0.01)

# %% [markdown]
# **Why 226?**
# A logit is the dot product of the vector that enters the generator with a token's row of the shared matrix.
# That is length · length · cosine of their angle (1: same direction, 0: right angle).
# The vector is normalized to length √d_model = 16, and a row drawn by `nn.Embedding` is as long.
# Residual paths carry the row of the token just read up to the generator, 225 of at most about 16 · 16, a cosine near 0.9.
# With unrelated rows the product is 0 ± 16 (standard deviation √d_model; lesson [03](03_attention.ipynb)).
# So the model is sure that the token just read comes next.
# The softmax sums e^x over the logits x, here to about e²²⁵.
# The loss is the sum's logarithm minus the target's logit, for random targets about 225 − 0.
#
# **Why more than 7.60?**
# With `initialize` a row's length is 1, not √d_model: the product with unrelated rows is 0 ± 1, for any d_model.
# The token just read has 4 of at most about 16, a cosine near ¼: it now enters the decoder 16 long, not 256, beside a position of length 11.
#
# Guessing evenly needs equal logits: if all were 0, each e^x would be 1, the sum 2,000.
# But they follow the normal curve, so the mean of e^x is √e, and the loss, with a target's logit near 0, about ln (2,000 · √e) = 7.60 + 0.50 = 8.10.
# We measured 8.21: the token just read adds about 0.02 (e⁴ to a sum of 3,300), and the logits of only 256 targets do not average exactly 0.
#
# <details><summary>Why √e?</summary>
#
# The normal curve is e^(−x²/2) up to a factor.
# Weighted by e^x, it becomes e^x · e^(−x²/2) = e^(1/2) · e^(−(x−1)²/2), the curve moved by 1 (same area), times √e.
#
# </details>
#
# ## Can it learn at all?
#
# The next test needs a little training: **overfit one batch**, that is, let the model learn eight sentences by heart.
# If it fails at several learning rates, suspect the code; more data will not help.
# Dropout is off, because here the model should memorize.
# In a training step `zero_grad` deletes the old gradient, `backward` computes the new one, and the optimizer Adam moves each parameter a little against it (lesson [09](09_training.ipynb)).

# %%
seeds = range(3)
batch = batch.to(device)


def new_model(seed):
    torch.manual_seed(seed)
    model = OurTransformer(small)
    initialize(model)
    return model.to(device)


# %%
def memorize(model, tgt_in, num_steps=100):
    """The losses of training steps on the one batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, betas=(0.9, 0.98))
    losses = []
    for _ in range(num_steps):
        loss = mean_loss(model(batch.src, tgt_in), batch.tgt_out)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def first_below(run, low=0.05):
    return next((step for step, loss in enumerate(run) if loss < low), None)


# %%
learned = [new_model(seed) for seed in seeds]
losses = [memorize(each, batch.tgt_in) for each in learned]
print("first loss, each seed:", *(f"{run[0]:.1f}" for run in losses))
print("steps until the loss is below 0.05:", *map(first_below, losses))

# %% tags=["hide-input"]
even, steps = math.log(small.vocab_size), range(len(losses[0]))
assert all(abs(run[0] - even - 0.5) < 1 and run[-1] < 0.05 for run in losses)
assert f"{even + 0.5:.1f}" == "5.4"

# %% [markdown]
# The loss starts where it should, near ln 135 + 0.5 = 5.4, and falls below 0.05 with every seed.
# But this is under teacher forcing, with the right target to read.
# Does the model write the sentences when it reads only its own output?
# This is the loop of lesson 07, for the whole batch.


# %%
@torch.no_grad()
def write(model):
    """German for the eight sources, the most probable token at each of 12 steps."""
    ids = torch.full((len(pairs), 1), BOS_ID, device=device)
    for _ in range(12):
        best = model(batch.src, ids)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, best], dim=1)  # (batch, tgt_len)
    rows = [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in ids.tolist()]
    return [tokenizer.decode(row) for row in rows]


def number_right(model):
    written = write(model)
    return sum(german == pair.tgt for german, pair in zip(written, pairs, strict=True))


# %%
for pair, german in zip(pairs, write(learned[0]), strict=True):
    print(f"{pair.src:40}{german}")
print("right of 8, each seed:", *map(number_right, learned))

# %% tags=["hide-input"]
assert all(number_right(each) == 8 for each in learned)

# %% [markdown]
# This is memorizing, not translating: lesson [10](10_translation.ipynb) asks for unseen sentences.
#
# ## Break it: forget the shift
#
# We make the mistake of lesson [07](07_decoder.ipynb): the decoder reads `tgt_out`, not `tgt_in`.

# %%
unshifted = Predict(
    "Without the shift, what does the training loss do?",
    ["it does not fall", "it falls more slowly", "it falls faster"],
    section="Break it: forget the shift",
)
unshifted

# %%
copiers = [new_model(seed) for seed in seeds]
too_good = [memorize(each, batch.tgt_out) for each in copiers]
print("steps until the loss is below 0.05, shifted:", *map(first_below, losses))
print("not shifted:", *map(first_below, too_good))
faster = sum(map(sum, too_good)) < sum(map(sum, losses))
how = "it falls faster" if faster else "it falls more slowly"
unshifted.reveal(how, because="each position can read its own answer")

# %% tags=["hide-input"]
from course_lib.figures import curves

starts = [sum(run[0] for run in runs) / len(seeds) for runs in (losses, too_good)]
curves(
    {
        f"shifted right, from {starts[0]:.1f}; band: all seeds": (steps, losses),
        f"not shifted, from {starts[1]:.1f}": (steps, too_good),
    },
    xlabel="step",
    ylabel="nats per token",
    title="Without the shift the loss is low sooner",
    log_y=True,
    marks={f"guessing evenly: {even:.1f}": (None, even), "0.05": (None, 0.05)},
)

# %% tags=["hide-input"]
assert max(map(first_below, too_good)) < min(map(first_below, losses))
assert all(bad[0] < good[0] - 0.5 for bad, good in zip(too_good, losses, strict=True))
assert all(bad[0] < even - 0.2 for bad in too_good)
assert all(run[-1] < 0.01 for run in losses + too_good)

# %% [markdown]
# The broken models are ahead even before the first step: an untrained model favors the token just read ([above](#How-does-it-start?); lesson [15](15_alternatives.ipynb#An-echo) tests whether this slows learning), and here this token is the answer.
# What do they write for two sources?

# %%
for each in copiers:
    print(write(each)[:2])

# %% tags=["hide-input"]
assert not any(map(number_right, copiers))
stutters = {tokenizer.decode([i] * 12) for i in range(4, tokenizer.vocab_size)}
stuttered = [words in stutters for each in copiers for words in write(each)]
assert sum(stuttered) > 0.8 * len(stuttered)

# %% [markdown]
# Without the shift, each position reads the very token that it must predict.
# Copying is enough, and the causal mask allows it: a position may see itself.
#
# When such a model writes, it first reads `<s>`, which it never read in training, and writes some token.
# Then it copies this token, then the copy, and so on: *Heute Heute Heute*.
#
# If so, two things must hold.
# Such a *copier* keeps a low loss with wrong sources, and repeats even random German tokens.

# %%
german_ids = sorted(set(batch.tgt_out.flatten().tolist()) - {PAD_ID, EOS_ID})
torch.manual_seed(0)
places = torch.randint(len(german_ids), (8, 7))
noise = torch.tensor(german_ids)[places].to(device)  # (batch, tgt_len)


@torch.no_grad()
def examined(model, tgt_in):
    """Loss with right and wrong sources; sentences right; random tokens repeated."""
    sources = batch.src, batch.src.roll(1, 0)
    right, wrong = (mean_loss(model(src, tgt_in), batch.tgt_out) for src in sources)
    repeated = (model(batch.src, noise).argmax(dim=-1) == noise).float().mean()
    return right.item(), wrong.item(), number_right(model), repeated.item()


# %% [markdown]
# `print_mean` (folded) prints means over the seeds.


# %% tags=["hide-input"]
def print_mean(name, models, tgt_in):
    rows = [examined(each, tgt_in) for each in models]
    loss, swapped, right, repeated = torch.tensor(rows).mean(dim=0).tolist()
    print(f"{name:14}{loss:7.3f}{swapped:21.3f}{right:9.1f} of 8{repeated:17.0%}")
    return rows


columns = "mean of seeds    loss  loss, wrong sources  writes right  random repeated"
print(columns)
of_sound = print_mean("sound", learned, batch.tgt_in)
of_copiers = print_mean("no shift", copiers, batch.tgt_out)


# %% tags=["hide-input"]
def pass_the_tests(rows):
    for loss, swapped, right, repeated in rows:
        assert loss < 0.05 and right == 8 and swapped > 1 and repeated < 0.5


pass_the_tests(of_sound)
assert 1.4 < sum(row[1] for row in of_sound) / len(seeds) < 2.5
for loss, swapped, right, repeated in of_copiers:
    assert loss < 0.05 and right == 0 and swapped < 0.05 and repeated > 0.9

# %% [markdown]
# With wrong sources the loss of the sound models rises to about 2 on average, so they use the source.
# The others do not need it on this batch: their loss stays near 0, and they repeat nearly all random tokens, so they copy.
# On a corpus there is a plainer sign of such a leak: one source has several right translations, so a loss near zero on unseen sentences is too good to be true.
#
# ## Break it: forget √d_model
#
# Lesson 01 showed that without √d_model a token's numbers are small beside those of its position.
# Do our five tests find this fault: first loss, one batch by heart, writing, wrong sources, random tokens?

# %%
unscaled = [new_model(seed) for seed in seeds]
for each in unscaled:
    each.src_embedding.scale = 1.0  # also the decoder's
slow = [memorize(each, batch.tgt_in) for each in unscaled]
print("first loss, each seed:", *(f"{run[0]:.1f}" for run in slow))
print("steps until the loss is below 0.05, scaled:", *map(first_below, losses))
print("not scaled:", *map(first_below, slow))
print(f"\n{columns}")
of_unscaled = print_mean("no √d_model", unscaled, batch.tgt_in)

# %% tags=["hide-input"]
pass_the_tests(of_unscaled)
fast, late = (list(map(first_below, runs)) for runs in (losses, slow))
assert 2 < sum(late) / sum(fast) < 3
assert all(1.8 < b / a < 3.2 for a, b in zip(fast, late, strict=True))
assert all(abs(run[0] - even - 0.5) < 1 for run in slow)
assert abs(starts[1] - 3.9) < 0.3
for rows in (of_sound, of_unscaled):
    assert max(repeated for *_, repeated in rows) < 0.1

# %% [markdown]
# They do not: the unscaled models pass all five.
# They only need, on average, more than twice as many steps at this learning rate.
# Without sound models beside them, who would notice?
#
# ## Break it: forget `initialize`
#
# The first loss finds this fault, here as [above](#How-does-it-start?). Do the other tests?


# %%
def raw_model(seed):
    torch.manual_seed(seed)
    return OurTransformer(small).to(device)


raw = [raw_model(seed) for seed in seeds]
rough = [memorize(each, batch.tgt_in) for each in raw]
print("first loss, each seed:", *(f"{run[0]:.0f}" for run in rough))
print("steps until the loss is below 0.05:", *map(first_below, rough))
print(f"\n{columns}")
of_raw = print_mean("no initialize", raw, batch.tgt_in)
print("\nThe first two sentences, each seed:")
for each in raw:
    print("   ", *write(each)[:2])

# %% tags=["hide-input"]
for each, (loss, swapped, right, repeated) in zip(raw, of_raw, strict=True):
    assert loss < 0.05 and right == 7 and swapped > 1 and repeated < 0.5
    assert len(set(write(each)[:2])) == 1
assert all(run[0] > 20 for run in rough)
assert torch.equal(*batch.src[:2].sort(dim=-1).values)  # the same tokens
two = raw_model(0), new_model(0)
of_tables = [each.src_embedding.table.weight.std().item() for each in two]
assert math.isclose(of_tables[0] / of_tables[1], math.sqrt(small.d_model), rel_tol=0.05)
floor = 2 * math.log(2) / (batch.tgt_out != PAD_ID).sum().item()
assert (batch.tgt_out != PAD_ID).sum() == 57 and f"{floor:.3f}" == "0.024"
assert abs(sum(loss for loss, *_ in of_raw) / len(seeds) - floor) < 0.004

# %% [markdown]
# The loss passes, but *The cat sees the dog* and *The dog sees the cat*, the same tokens in another order, get the same German.
# Two coin flips between *Die* and *Der*, in 57 target tokens, cost 2 · ln 2 / 57 = 0.024.
# Our limit of 0.05 lets this pass; reading what they write shows it.
# (Without `initialize`, tokens are √d_model times larger; their positions are not.)
#
# ## Is it the same function?
#
# A sixth test compares a model's logits with those of one that we trust, given the same weights and ids.
# `course_lib.Transformer` gets the weights of `ours`:

# %%
padded = batch.to("cpu")  # where these models are
trusted = Transformer(small).eval()
trusted.load_state_dict(ours.state_dict())  # the same names
apart = {}
with torch.no_grad():
    expected = trusted(padded.src, padded.tgt_in)
    for scale in (1.0, math.sqrt(small.d_model)):
        ours.src_embedding.scale = scale
        apart[scale] = (ours(padded.src, padded.tgt_in) - expected).abs().max().item()
        print(f"embeddings times {scale:.0f}: logits up to {apart[scale]:.4f} apart")

# %% tags=["hide-input"]
torch.testing.assert_close(ours(padded.src, padded.tgt_in), expected)
assert apart[1.0] > 0.1 and apart[8.0] < 1e-4 and ours.src_embedding.scale == 8

# %% [markdown]
# The sixth test finds the missing √d_model only with a whole model to trust.
# PyTorch has none: `nn.TransformerEncoder` and `nn.TransformerDecoder`, with inverted masks (lesson [05](05_masks.ipynb)), run between our embeddings and our generator, so they test our stacks alone (folded):

# %% tags=["hide-input"]
from course_lib.checks import copy_into_torch


def torch_stacks(ours, config):
    """torch's two stacks with our weights; a final norm only where ours has one."""
    sizes = (config.d_model, config.num_heads, config.d_ff)
    order = dict(norm_first=config.norm_first, batch_first=True)
    norms = [nn.LayerNorm(config.d_model) if config.norm_first else None for _ in "ed"]
    layer, count = nn.TransformerEncoderLayer(*sizes, **order), config.num_layers
    encoder = nn.TransformerEncoder(layer, count, norms[0], enable_nested_tensor=False)
    layer = nn.TransformerDecoderLayer(*sizes, **order)
    decoder = nn.TransformerDecoder(layer, count, norms[1])
    copy_into_torch(ours.encoder, encoder.eval())
    return encoder, copy_into_torch(ours.decoder, decoder.eval())


# %% tags=["hide-input"]
@torch.no_grad()
def torch_logits(ours, stacks, src, tgt_in):
    """Our embeddings and generator around torch's two stacks."""
    encoder, decoder = stacks
    src_padding, tgt_padding = src == PAD_ID, tgt_in == PAD_ID
    memory = encoder(ours.src_embedding(src), src_key_padding_mask=src_padding)
    masks = dict(
        tgt_mask=~causal_mask(tgt_in.shape[1])[0, 0],
        tgt_key_padding_mask=tgt_padding,
        memory_key_padding_mask=src_padding,
    )
    return ours.generator(decoder(ours.tgt_embedding(tgt_in), memory, **masks))


# %% tags=["hide-input"]
for norm_first in (False, True):
    of_order = replace(small, norm_first=norm_first)
    filled = OurTransformer(of_order).double().eval()
    rng = torch.Generator().manual_seed(3)
    for parameter in filled.parameters():  # zeros and ones would hide mistakes
        nn.init.normal_(parameter, mean=0.1, std=0.2, generator=rng)
    with torch.no_grad():
        of_filled = filled(padded.src, padded.tgt_in)
    stacks = torch_stacks(filled, of_order)
    theirs = torch_logits(filled, stacks, padded.src, padded.tgt_in)
    torch.testing.assert_close(of_filled, theirs, rtol=1e-9, atol=1e-10)
print("equal to torch's stacks, post-norm and pre-norm")

# %% [markdown]
# **A common mistake**: to take `nn.Transformer` for the paper's model.
# It has no embeddings, positions or generator.
# By default it is post-norm, like the paper's, but it adds a final norm to each stack.

# %% tags=["hide-input"]
layers = dict(num_encoder_layers=2, num_decoder_layers=2)
torchs = nn.Transformer(64, 4, **layers, dim_feedforward=128, batch_first=True)
without = small.num_parameters - small.parameter_counts()["embeddings"]
counted = sum(parameter.numel() for parameter in torchs.parameters())
assert counted - without == 2 * 2 * small.d_model  # two norms
assert not torchs.encoder.layers[0].norm_first
assert isinstance(torchs.encoder.norm, nn.LayerNorm)
assert isinstance(torchs.decoder.norm, nn.LayerNorm)
assert isinstance(ours.encoder.norm, nn.Identity)

# %% [markdown]
# The sixth test cannot see the initialization, because the weights are copied, nor the shift, because both models get the same ids.
#
# | test | sound model | what it found here |
# |---|---|---|
# | first loss | near ln vocab_size + 0.5, with our `initialize` | far above, in the larger model 226 instead of about 8: no initialization; 3.9 instead of about 5.4: no shift |
# | one batch by heart | loss below 0.05 within 100 steps | nothing: no √d_model only took longer; no initialization ends at 0.026, below our limit |
# | write, reading only its own output | 8 of 8 | no shift: 0 of 8; no initialization: 7 of 8 |
# | wrong sources | loss rises, here to about 2 | no shift: stays near 0 |
# | random target tokens | repeats almost none | no shift: repeats 99 % |
# | same logits as a model that we trust | equal | no √d_model: not equal |
#
# No single test found all three faults; together they found each.
#
# ## Where do the parameters go?
#
# With the sizes in two rows of table 3, our class becomes the paper's two models, *base* and *big*; section 5.1 gives the English-German vocabulary, about 37,000 subwords.

# %% tags=["nbval-check-output"]
from course_lib import model_preset

base = model_preset("base", vocab_size=37_000)
big = model_preset("big", vocab_size=37_000)
print("      layers  d_model   d_ff  heads  d_k  dropout")
for name, row in (("base", base), ("big", big)):
    print(f"{name:5}{row.num_layers:>3} + {row.num_layers}", end="")
    print(f"{row.d_model:9}{row.d_ff:7}{row.num_heads:7}{row.d_k:5}{row.dropout:9}")

# %% tags=["hide-input"]
assert base == ModelConfig(vocab_size=37_000)
assert base.d_k == big.d_k == 64
assert (big.d_model, big.num_heads) == (2 * base.d_model, 2 * base.num_heads)

# %% [markdown]
# Here is base, with 7 tokens on each side (click on a box for its shapes, or change the sizes; the FLOPs in the title come [later](#Where-do-the-FLOPs-go?)).
# A box in a stack stands for six, and the yellow matrix counts once.

# %% id="architecture-map"
ArchitectureMap(base)

# %% tags=["hide-input"]
assert ArchitectureMap(base).view["parameters"] == base.num_parameters
wider = replace(base, d_model=2 * base.d_model).parameter_counts()
for part, size in base.parameter_counts().items():
    factor = 4 if part.endswith("attention") else 2
    assert math.isclose(wider[part], factor * size, rel_tol=0.002)
assert replace(base, num_heads=16).parameter_counts() == base.parameter_counts()

# %%
largest = Predict(
    "Which part of base holds the most parameters?",
    ["the shared embedding matrix", "all attentions", "all feed-forward networks"],
    section="Where do the parameters go?",
)
largest

# %% [markdown]
# Where do the numbers in the boxes come from?
# An attention has four matrices of 512 × 512, each with 512 biases: 4 · (512 · 512 + 512) = 1,050,624.
# A feed-forward network goes from 512 up to 2,048 and back, with biases: 2,099,712.
# A norm has a scale and a shift for each feature: 2 · 512.
# The shared matrix has 512 numbers for each subword.
# With names instead of numbers:


# %%
def count_by_hand(vocab_size, d_model, d_ff, num_layers):
    """Parameters of a post-norm Transformer with one shared embedding matrix."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norm = 2 * d_model
    return {
        "the shared embedding matrix": vocab_size * d_model,
        "all attentions": num_layers * (1 + 2) * attention,  # encoder, decoder
        "all feed-forward networks": num_layers * (1 + 1) * feed_forward,
        "all norms": num_layers * (2 + 3) * norm,
    }


# %% tags=["nbval-check-output"]
by_hand = {}
for name, paper in (("base", base), ("big", big)):
    row = paper.vocab_size, paper.d_model, paper.d_ff, paper.num_layers
    by_hand[name] = count_by_hand(*row)
    total = sum(by_hand[name].values())
    print(f"{name}: {total:,} = {total / 1e6:.1f} M")
    for part, size in by_hand[name].items():
        print(f"    {part:28}{size:12,}  {size / total:4.0%}")
first_place = max(by_hand["base"], key=by_hand["base"].get)
why = "12 networks, each about twice as large as an attention, outweigh 18 attentions"
largest.reveal(first_place, because=why)

# %% [markdown]
# The paper is called *Attention Is All You Need*, but its 18 attentions hold less than a third of base, about as much as the shared matrix.
#
# We build both models and count (folded):


# %% tags=["hide-input"]
def part_of(name):
    """The part of the model that a parameter belongs to."""
    if "norm" in name or "embedding" in name:
        return "norms" if "norm" in name else "embeddings"
    stack, _, _, sublayer, *_ = name.split(".")  # "encoder.layers.0.self_attn.…"
    return f"{stack} {sublayer}".replace("_attn", "-attention").replace("_", "-")


# %% tags=["hide-input"]
for name, paper in (("base", base), ("big", big)):
    counted = Counter()
    with torch.device("meta"):
        for path, parameter in OurTransformer(paper).named_parameters():
            counted[part_of(path)] += parameter.numel()
    assert counted == paper.parameter_counts()
    assert counted.total() == paper.num_parameters == sum(by_hand[name].values())
    print(f"{name:5}{counted.total():12,} parameters built")

# %% tags=["hide-input"]
assert first_place == "all feed-forward networks"
assert by_hand["base"]["all attentions"] < sum(by_hand["base"].values()) / 3
of_table = by_hand["base"]["the shared embedding matrix"]
assert math.isclose(of_table, by_hand["base"]["all attentions"], rel_tol=0.01)
assert count_by_hand(0, 512, 2048, 1)["all attentions"] == 3 * 1_050_624
assert count_by_hand(0, 512, 2048, 1)["all feed-forward networks"] == 2 * 2_099_712

# %% [markdown]
# The paper prints 65 million for base and 213 for big, and does not say what it counts.
# Ours is 3 % below and less than 1 % above; neither another vocabulary size, nor separate matrices, nor missing biases alone explains both (folded).
#
# Do larger models translate better?
# Lesson [14](14_cost_and_memory.ipynb#What-does-a-size-bring?) repeats the paper's table 3 in miniature.

# %% tags=["hide-input"]
fitting = {}
for name, paper, printed in (("base", base, 65), ("big", big, 213)):
    without = paper.num_parameters - paper.vocab_size * paper.d_model
    low, high = (
        math.ceil(((printed + half) * 1e6 - without) / paper.d_model)
        for half in (-0.5, 0.5)
    )
    fitting[name] = range(low, high)
assert fitting == {"base": range(39_769, 41_722), "big": range(35_296, 36_273)}

# %% tags=["hide-input"]
assert not set(fitting["base"]) & set(fitting["big"])
assert 37_000 not in fitting["base"] and 37_000 not in fitting["big"]
for paper, printed in ((base, 65), (big, 213)):
    biases = 3 * paper.num_layers * 4 * paper.d_model
    separate = replace(paper, tie_weights=False).num_parameters
    for total in (separate, paper.num_parameters - biases):
        assert round(total / 1e6) != printed
assert 0.025 < 1 - base.num_parameters / 65e6 < 0.035
assert 0 < big.num_parameters / 213e6 - 1 < 0.01

# %% [markdown]
# ## Where do the FLOPs go?
#
# Does the number of parameters tell what a model costs?
# First in FLOPs (lesson [04](04_multi_head.ipynb)).
# Send one token through one matrix of 512 × 2,048, about one million parameters.
# Each parameter is used once, in one multiplication and one addition: two million FLOPs.
# So a token costs 2 FLOPs for each parameter that it meets.
#
# Now take 30 source and 30 target tokens.
# The encoder's matrices and the key and value matrices of cross-attention meet the source tokens; all others meet the target tokens.
# (The shared matrix counts once, as the generator; looking up a row takes no product.)
# So every parameter meets 30 tokens, and the forward pass should take 2 · 30 · parameters.
# The formula `ModelConfig.flop_counts` adds up all matrix products; PyTorch counts the same (folded).

# %% tags=["nbval-check-output"]
for name, paper in (("base", base), ("big", big)):
    flops = sum(paper.flop_counts(src_len=30, tgt_len=30).values())
    rule = 2 * 30 * paper.num_parameters
    print(f"{name:5}{flops / 1e9:5.2f} GFLOPs, by the rule {rule / 1e9:.2f}")

# %% tags=["hide-input"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

counter = FlopCounterMode(display=False)
plain = sdpa_kernel(SDPBackend.MATH)  # attention as products that the counter sees
with torch.no_grad(), counter, plain:
    ours(one.src, one.tgt_in)
formula = small.flop_counts(one.src.shape[1], one.tgt_in.shape[1])
print(f"PyTorch counts {counter.get_total_flops():,} in our small model", end=", ")
print(f"the formula {sum(formula.values()):,}")
assert counter.get_total_flops() == sum(formula.values())

# %% tags=["hide-input"]
for paper in (base, big):
    rule, flops = 60 * paper.num_parameters, paper.flop_counts(30, 30)
    assert math.isclose(sum(flops.values()), rule, rel_tol=0.01)
of_long = sum(base.flop_counts(3000, 3000).values())
assert 1.8 < of_long / (2 * 3000 * base.num_parameters) < 1.95

# %% [markdown]
# At 30 tokens the rule is right within 1 %.
# Yet it leaves out the products without parameters: queries with keys, and attention weights with values.
#
# Take one token in a self-attention over *n* tokens, with *d* for d_model.
# Its four projections take 2 · 4 · *d*² = 8*d*² FLOPs, however long the sentence is.
# Its scores are *n* dot products of *d* numbers, all heads together: 2*nd*.
# The weighted sum takes 2*nd* more.
# For all *n* tokens: 8*nd*² for the projections, 4*n*²*d* for scores and weighted sums.
# In base's 18 attentions 4*n*²*d* is 0.03 GFLOPs at 30 tokens: the gap above.

# %%
crossing = Predict(
    "From how many tokens on do scores and weighted values take at least as many "
    "FLOPs as the four projections, in a self-attention of base?",
    unit="tokens",
    within=0.1,
    section="Where do the FLOPs go?",
)
crossing


# %% tags=["nbval-check-output"]
def quadratic_share(config, n):
    """Share of a self-attention over n tokens that grows with the square of n."""
    d = config.d_model
    return 4 * n * n * d / (4 * n * n * d + 8 * n * d * d)


for length in (30, 300, 3000):
    print(f"{length:5} tokens: {quadratic_share(base, length):.1%}")
equal = next(n for n in range(1, 4000) if quadratic_share(base, n) >= 0.5)
crossing.reveal(equal, because="4 n d = 8 d² where n is twice d")

# %% tags=["hide-input"]
assert quadratic_share(base, 30) < 0.03
assert equal == 2 * base.d_model
d = base.d_model
for n in (30, 300, 3000):
    of_encoder = base.flop_counts(n, n)["encoder self-attention"]
    assert of_encoder == 6 * (4 * n * n * d + 8 * n * d * d)
gap = sum(base.flop_counts(30, 30).values()) - 2 * 30 * base.num_parameters
assert f"{18 * 4 * 30**2 * d / 1e9:.2f}" == f"{gap / 1e9:.2f}" == "0.03"

# %% [markdown]
# These shares go to scores and weighted values. And in the whole model?

# %% tags=["hide-input"]
from course_lib.figures import stacked_bars

KINDS = ("attention", "shared matrix", "feed-forward", "norms")  # the maps' colors


def percent(parts):
    """Shares of the whole; the matrix that embeds and generates is one part."""
    sums = dict.fromkeys(KINDS, 0)
    for part, size in parts.items():
        kind = next((kind for kind in KINDS if part.endswith(kind)), KINDS[1])
        sums[kind] += size
    return {kind: 100 * size / sum(parts.values()) for kind, size in sums.items()}


# %% tags=["hide-input"]
shares = {"base: parameters": percent(base.parameter_counts())}
for length in (30, 3000):
    flops = base.flop_counts(src_len=length, tgt_len=length)
    shares[f"base: FLOPs, {length:,} tokens"] = percent(flops)
for parts in shares.values():
    assert parts.pop("norms") < 0.1  # too few to be seen, so left out
figure = stacked_bars(
    shares,
    xlabel="share (%)",
    title="FLOPs go where the parameters are, until the sentences are long",
)
for words in [each for each in figure.axes[0].texts if each.get_text() == "100"]:
    words.remove()  # of a bar whose rounded parts may sum to 101
figure.axes[0].set_xlim(0, 100)
figure

# %% tags=["hide-input"]
parameters, few, many = shares.values()
assert all(abs(few[kind] - share) < 1 for kind, share in parameters.items())
assert many["attention"] > 50 > few["attention"]

# %% [markdown]
# At 3,000 tokens attention, projections included, takes more than half, and the whole forward pass nearly twice what the rule says (folded).
# (Rounded shares can add up to 101.)
#
# ## Where do the bytes go?
#
# Training keeps four numbers for each parameter: the weight, its gradient, and Adam's two moments, running averages of the gradient and of its square.
# In float32 the four take 16 bytes.
# Our small model after one step of training:

# %% tags=["nbval-check-output"]
optimizer = torch.optim.Adam(ours.parameters())
mean_loss(ours(one.src, one.tgt_in), one.tgt_out).backward()
optimizer.step()
states = optimizer.state.values()
held = {
    "weights": sum(parameter.nbytes for parameter in ours.parameters()),
    "gradients": sum(parameter.grad.nbytes for parameter in ours.parameters()),
    "moments": sum(s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in states),
}
print(held, f"{sum(held.values()) / small.num_parameters:.0f} bytes per parameter")
for name, paper in (("base", base), ("big", big)):
    print(f"{name:5}{16 * paper.num_parameters / 1e9:.2f} GB")

# %% tags=["hide-input"]
assert list(held.values()) == list(small.memory_bytes().values())
for paper in (small, base, big):
    assert sum(paper.memory_bytes().values()) == 16 * paper.num_parameters

# %% [markdown]
# The backward pass needs one more thing.
# Take a single weight in y = w · x.
# If the loss changes g times as fast as y, it changes g · x times as fast as w.
# So the gradient of w needs x, and the forward pass must keep it.
# What it keeps are the **activations**.
#
# They grow with the batch.
# With 37,000 subwords, the loss alone keeps as many numbers of 4 bytes for each target token: 148 kB.
# The paper's batch has about 25,000 target tokens (section 5.1) on eight GPUs (section 5.2), 3,125 on each: 0.46 GB, beside 1.01 GB for base's parameters (folded).
# Lesson [14](14_cost_and_memory.ipynb#What-must-be-kept-for-the-backward-pass?) counts the rest.

# %% tags=["hide-input"]
assert base.vocab_size * 4 == 148_000  # measured in lesson 14
assert 25_000 / 8 == 3125 and f"{3125 * 148_000 / 1e9:.2f}" == "0.46"

# %% [markdown]
# So for few and short sentences the number of parameters tells the cost: each takes 2 FLOPs forward for every token it meets, and 16 bytes.
# Two things outgrow it: scores and weighted values grow with the square of a sentence's length, activations with the batch.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **activations**: intermediate results that the forward pass keeps for the backward pass.
# - **weight tying**: using one matrix for several purposes, here as both embeddings and as the generator.
# - **overfit one batch**: to train on one batch until the model knows it by heart, as a test of the model's code.

# %% [markdown]
# ## Summary
#
# A Transformer embeds, encodes, decodes and generates: source ids and shifted target ids go in, and logits for all target positions come out at once.
# One matrix serves in three places, and its gradient is the sum of three.
#
# A low loss on one batch proves little: without the shift it falls even faster, but the model only copies.
# With rows of length 1, a sound start is near ln vocab_size + 0.5.
# Without √d_model a model passes five of six tests, only more slowly.
#
# Four formulas count 63.1 million parameters in base and 214.2 million in big; feed-forward networks hold the largest share.
# Training keeps 16 bytes for each parameter, and activations, which grow with the batch.
#
# **Practice**: [assignment 08](assignments/release/08_transformer/08_transformer.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [09](09_training.ipynb) takes training apart, until a model solves a task on inputs that it has never seen.
