# %% [markdown]
# # 07 · The decoder: one token after another
#
# **Question.** The encoder has turned the English sentence into its memory. How does the decoder write a German sentence from it, one token after another?
#
# **Afterwards you can**
#
# 1. shift a target right, and say what each position may read and what it must predict;
# 2. write a decoder layer, and say where the queries, keys and values of both its attentions come from;
# 3. test a decoder for leaks, and read its cross-attention map without being one token off.
#
# **You need** attention (lesson [03](03_attention.ipynb)), several heads ([04](04_multi_head.ipynb)), masks ([05](05_masks.ipynb)) and the encoder layer ([06](06_encoder.ipynb)).
# **Time**: {minutes} minutes to read, under 30 seconds to run.
# **In the paper**: the right half of figure 1, sections 3.1, 3.2.3, 3.3 and 3.4 [@vaswani2017].

# %%
import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from course_lib import Tokenizer, Transformer, Translator, greedy, record_attention
from course_lib.figures import Panel, bars, panels
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.to(device).double(), translator.tokenizer
PAD_ID, BOS_ID, EOS_ID = range(3)  # as in lesson 01

# %% [markdown]
# We take the small `course` translator apart.
# Here it computes in float64, so that "equal" can mean equal to nine digits.
#
# ## What the decoder must do
#
# The decoder has the memory of the source and the tokens that it has written so far.
# From these it predicts the next token, which it then reads in turn.
# Such a model is **autoregressive** (section 3 of the paper).

# %%
of_count = Predict(
    "*Die Katze sieht den Hund.* has six tokens. How many predictions does it take?",
    section="What the decoder must do",
)
of_count

# %% tags=["nbval-check-output"]
english, german = "The cat sees the dog.", "Die Katze sieht den Hund."


def tokens(ids):
    return [tokenizer.token(i) for i in ids]


target = tokenizer.encode(german)
tgt_in, tgt_out = [BOS_ID, *target], [*target, EOS_ID]
for t, answer in enumerate(tgt_out):
    print(f"{' '.join(tokens(tgt_in[: t + 1])):40} → {tokenizer.token(answer)}")
of_count.reveal(len(tgt_out), because="the end is predicted too")

# %% [markdown]
# Without `</s>` the decoder could not say that it is done.
# And `<s>` is there to start from: attention has one output row for each query, so with no token there would be no row to predict from.
#
# ## Shifted right
#
# Lesson [05](05_masks.ipynb) listed the predictions that one sentence gives to learn from; here we build the two tensors that hold them.
# In each line above, the last token before the arrow is the one that the decoder *reads* at that position: together they are `tgt_in`.
# The token after the arrow is what it must *predict* there: `tgt_out`.
# What is predicted at one position is read at the next: the input is the target **shifted right**, as figure 1 of the paper says.
# `make_batch` does this for many pairs, and pads them.

# %% tags=["nbval-check-output"]
from course_lib.data import Pair, encode_pairs, load_course, make_batch

pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair(english, german),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
]
batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
for name, ids in (("tgt_in ", batch.tgt_in), ("tgt_out", batch.tgt_out)):
    print(name, *(f"{token:9}" for token in tokens(ids[0].tolist())))

# %% tags=["hide-input"]
assert tgt_in[1:] == tgt_out[:-1]
assert (tgt_in, tgt_out) == (batch.tgt_in[1].tolist(), batch.tgt_out[1].tolist())
assert (batch.tgt_in[:, 0] == BOS_ID).all() and BOS_ID not in batch.tgt_out

# %% [markdown]
# The causal mask of lesson [05](05_masks.ipynb) lets each position read up to and including itself: with the shift, that is all that comes before the token to predict.
#
# **A common mistake**: feeding in the target without the shift.

# %%
of_answers = Predict(
    "If we fed in `tgt_out`, with the same mask: how many of the seven positions could "
    "see their own answer?",
    section="Shifted right",
)
of_answers

# %% tags=["nbval-check-output"]
seen = {}
for name, read in (("tgt_in", tgt_in), ("tgt_out", tgt_out)):
    seen[name] = sum(read[t] == tgt_out[t] for t in range(len(tgt_out)))
    print(f"fed with {name:8}{seen[name]} of {len(tgt_out)} positions read the answer")
of_answers.reveal(seen["tgt_out"], because="the mask hides no position from itself")

# %% tags=["hide-input"]
assert seen == {"tgt_in": 0, "tgt_out": 7}

# %% [markdown]
# Lesson [08](08_transformer.ipynb) trains such a model, and shows that all it learns is to copy.
#
# ## Attention between two sentences
#
# Self-attention with a causal mask is known from lesson 05.
# New in the decoder is cross-attention: the queries come from the decoder, the keys and values from the encoder's output.
# Lesson [03](03_attention.ipynb) showed it for single sentences; the paper calls it encoder-decoder attention (section 3.2.3).
#
# First a small example in which every size is different, so that shapes tell us where things come from.
# There are three target positions and seven source positions, and even the widths differ: 6 features in the decoder, 8 in the memory.

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


x, memory = random(3, 6), random(7, 8)  # (tgt_len, width), (src_len, width)
W_Q, W_K, W_V = random(6, 4), random(8, 4), random(8, 5)  # d_k = 4, d_v = 5
query, key, value = x @ W_Q, memory @ W_K, memory @ W_V
looped = torch.zeros(3, 5, dtype=torch.float64)
for t in range(3):  # one query at a time
    scores = torch.stack([query[t] @ key[s] / math.sqrt(4) for s in range(7)])
    for s, weight in enumerate(scores.exp() / scores.exp().sum()):
        looped[t] += weight * value[s]
print("context", tuple(looped.shape), "= tgt_len × d_v")

# %% tags=["nbval-check-output"]
from course_lib.attention import MultiHeadAttention, attention
from course_lib.blocks import FeedForward, Residual

weights = (query @ key.T / math.sqrt(4)).softmax(dim=-1)  # (tgt_len, src_len)
context = weights @ value  # (tgt_len, d_v)
theirs, _ = attention(query, key, value)
print("weights", tuple(weights.shape), "= tgt_len × src_len")
print("equal to the loop:   ", torch.allclose(context, looped, rtol=1e-9))
print("equal to the library:", torch.allclose(context, theirs, rtol=1e-9))

# %% tags=["hide-input"]
torch.testing.assert_close(context, looped, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(context, theirs, rtol=1e-9, atol=1e-12)
assert weights.shape == (3, 7)

# %% [markdown]
# A row of weights for each query, a column for each key.
# The two lengths need not agree, and the target's grows with each step.
# The widths need not agree either: W_Q must fit the decoder, W_K and W_V the memory.
# Of the widths, only d_k must agree, because queries and keys meet in a dot product.
# (In the paper's base model, both widths are 512.)
#
# ## The decoder layer
#
# A decoder layer has three sub-layers: the two of the encoder layer, and cross-attention between them.
# Self-attention gets the target's causal and padding masks, cross-attention only the source's padding mask.
# Cross-attention needs no causal mask: the source is complete before the first target token is written.
# Around each sub-layer is the residual path of lesson [06](06_encoder.ipynb).


# %%
class OurDecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout, *, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.cross_attn = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attn_path = Residual(d_model, dropout, norm_first)
        self.cross_attn_path = Residual(d_model, dropout, norm_first)
        self.feed_forward_path = Residual(d_model, dropout, norm_first)

    def forward(self, x, memory, tgt_mask=None, src_mask=None):
        x = self.self_attn_path(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.cross_attn_path(
            x, lambda x: self.cross_attn(x, memory, memory, src_mask)
        )
        return self.feed_forward_path(x, self.feed_forward)


# %% [markdown]
# Query, key, value: self-attention takes all three from x, cross-attention takes keys and values from the memory.
#
# We compare it with the library's and with `torch.nn.TransformerDecoderLayer`, on our padded batch of sentences with four and six tokens.
# We do so twice: with the weights of the first layer of `fresh`, and with those of the translator's first layer, which is pre-norm.
# `fresh` is a small random post-norm Transformer: two layers, d_model = 16, two heads.

# %% tags=["hide-input"]
torch.manual_seed(0)
small = replace(model.config, d_model=16, num_heads=2, d_ff=32, norm_first=False)
fresh = Transformer(small).double().eval()
with torch.no_grad():
    for parameter in fresh.parameters():  # biases of 0 would hide mistakes
        parameter.add_(0.3 * torch.randn_like(parameter))
fresh = fresh.to(device)

# %%
from course_lib.masks import causal_mask, padding_mask

src_mask = padding_mask(batch.src, PAD_ID)  # (batch, 1, 1, src_len)
future_mask = causal_mask(batch.tgt_in.shape[1], device=device)
tgt_mask = padding_mask(batch.tgt_in, PAD_ID) & future_mask

# %% tags=["hide-input"]
from course_lib.checks import copy_into_torch

hidden = {"tgt_mask": ~future_mask[0, 0]}  # in PyTorch's layer, True means hidden
hidden["tgt_key_padding_mask"] = batch.tgt_in == PAD_ID
hidden["memory_key_padding_mask"] = batch.src == PAD_ID

# %% tags=["hide-input"]
compared = []
for whole in (fresh, model):
    their_layer, config = whole.decoder.layers[0], whole.config
    sizes = config.d_model, config.num_heads, config.d_ff, config.dropout
    ours = OurDecoderLayer(*sizes, norm_first=config.norm_first)
    ours.to(device).double().eval().load_state_dict(their_layer.state_dict())
    inputs = [random(3, 7, config.d_model).to(device).requires_grad_() for _ in "xm"]
    out, by_library = (f(*inputs, tgt_mask, src_mask) for f in (ours, their_layer))
    options = dict(norm_first=config.norm_first, batch_first=True)
    torchs = nn.TransformerDecoderLayer(*sizes, **options).eval()
    by_torch = copy_into_torch(their_layer, torchs)(*inputs, **hidden)
    for name, other in (("library", by_library), ("PyTorch", by_torch)):
        order = "pre" if config.norm_first else "post"
        print(f"{order}-norm, ours and {name}: {(out - other).abs().max():.0e} apart")
    compared.append((inputs, out, by_library, by_torch))

# %% tags=["hide-input"]
for inputs, *outputs in compared:
    grads = [torch.autograd.grad(out.square().sum(), inputs) for out in outputs]
    for other, grad in zip(outputs[1:], grads[1:], strict=True):
        torch.testing.assert_close(other, outputs[0], rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(grad, grads[0], rtol=1e-9, atol=1e-8)

# %% [markdown]
# The same function, post-norm and pre-norm, and (in the folded cell) the same gradients.
# As with the encoder layer, that holds in evaluation mode: PyTorch's has more places of dropout.
#
# Here is the path of the first three tokens of `tgt_in`, `<s> Die Katze`, through the first layer of `fresh`, with a source of seven tokens:

# %% tags=["hide-input"]
their_layer = fresh.decoder.layers[0]
with torch.no_grad(), record_attention(fresh) as three:
    one_src, start = batch.src[1:2], batch.tgt_in[1:2, :3]
    into = fresh.tgt_embedding(start)  # (1, tgt_len, d_model)
    small_memory = fresh.encode(one_src)
    fresh.decode(start, small_memory, one_src)
    out = their_layer(into, small_memory, causal_mask(3, device=device))
own_weights, memory_weights = three.decoder[0][0, 0], three.cross[0][0, 0]

# %% tags=["hide-input"]
from course_lib.figures import Block, flow_figure

size, inner = tuple(into.shape[1:]), (into.shape[1], small.d_ff)
written_as, kind = "target × d_model", "weights"
own, cross = "after self-attention", "after cross-attention"
own_map, memory_map = "weights, target × target", "weights, target × source"
shown = [
    Block(own_map, tuple(own_weights.shape), "", (0, 0), kind),
    Block("x", size, written_as, (0, 1.5)),
    Block(own, size, written_as, (1.5, 0)),
    Block(memory_map, tuple(memory_weights.shape), "", (3, 0), kind),
    Block("memory", tuple(small_memory[0].shape), "source × d_model", (3, 1.5)),
    Block(cross, size, written_as, (4.5, 0)),
    Block("inner", inner, "target × d_ff", (4.5, 1.5)),
    Block("out", tuple(out[0].shape), written_as, (5.8, 1.5), "result"),
]

# %% tags=["hide-input"]
arrows = [("x", own_map, "queries, keys (causal)"), ("x", own, "values")]
arrows += [(own_map, own, ""), (own, memory_map, "queries")]
arrows += [("memory", memory_map, "keys"), ("memory", cross, "values")]
arrows += [(memory_map, cross, "")]
arrows += [(cross, "inner", "up, ReLU"), ("inner", "out", "down")]
flow_figure(shown, arrows, title="The memory enters a layer as keys and values only")

# %% tags=["hide-input"]
assert own_weights.shape == (3, 3) and memory_weights.shape == (3, 7)
assert out.shape == (1, 3, 16)
cut_off = OurDecoderLayer(16, 2, 32, 0.0).to(device).double()
cut_off.load_state_dict(their_layer.state_dict())
with torch.no_grad():  # without its keys and values, the memory has no way in
    for projection in (cut_off.cross_attn.key_proj, cut_off.cross_attn.value_proj):
        for parameter in projection.parameters():
            parameter.zero_()
    assert torch.equal(cut_off(into, small_memory), cut_off(into, -small_memory))
    kept = [their_layer(into, each) for each in (small_memory, -small_memory)]
assert not torch.equal(*kept)

# %% [markdown]
# The drawing shows the weights of one of the two heads, and leaves out residual paths and norms, which change no shape.
# x keeps its shape, so layers can be stacked.
#
# ## One memory for all layers
#
# The encoder has several layers too.
# Which encoder layer's output does a decoder layer read?
# The paper says "the output of the encoder" (section 3.2.3): every decoder layer reads what the *last* encoder layer wrote (in a pre-norm model, after the encoder's final norm), and projects keys and values of its own from it.
#
# **A common mistake**: "keys and values come from the corresponding encoder layer."
# Lesson [18](18_errata_lab.ipynb) tests this claim.

# %% tags=["hide-input"]
with torch.no_grad():
    encoded, decoded = model.src_embedding(batch.src), model.tgt_embedding(batch.tgt_in)
    for encoder_layer in model.encoder.layers:
        encoded = encoder_layer(encoded, src_mask)
    last = model.encoder.norm(encoded)
    for decoder_layer in model.decoder.layers:
        decoded = decoder_layer(decoded, last, tgt_mask, src_mask)
    whole = model.decode(batch.tgt_in, model.encode(batch.src), batch.src)
torch.testing.assert_close(model.decoder.norm(decoded), whole, rtol=1e-9, atol=1e-10)
key_weights = [layer.cross_attn.key_proj.weight for layer in model.decoder.layers]
assert not torch.equal(*key_weights)

# %% [markdown]
# ## From vectors to tokens
#
# The decoder ends with a vector for each target position.
# The **generator** multiplies it by a matrix of d_model × vocab, which gives one logit for each token of the vocabulary (section 3.4 of the paper).
# In our translator, as in the paper, this is the transpose of the matrix of the embeddings (weight tying, lesson [08](08_transformer.ipynb)).
# A softmax turns the logits into probabilities.
# We feed `tgt_in` to the translator and look at the most probable token at each position.

# %% tags=["nbval-check-output"]
src, one_in = batch.src[1:2], batch.tgt_in[1:2]
with torch.no_grad():
    y = model.decode(one_in, model.encode(src), src)  # (batch, tgt_len, d_model)
    logits = y @ model.generator.weight.T  # (batch, tgt_len, vocab)
    probabilities = logits.softmax(dim=-1)
print("vectors", tuple(y.shape), " logits", tuple(logits.shape))
predicted = probabilities.argmax(dim=-1)[0].tolist()
print("reads    ", *tokens(tgt_in))
print("predicts ", *tokens(predicted))

# %% tags=["hide-input"]
assert predicted == tgt_out
assert model.generator.weight is model.tgt_embedding.table.weight
with torch.no_grad():
    torch.testing.assert_close(model(src, one_in), logits, rtol=1e-9, atol=1e-9)

# %% [markdown]
# Figure 1 ends with a softmax, but our `Transformer` returns logits, because in training the softmax is *inside* the loss, `F.cross_entropy`.
# If it is applied twice, nothing crashes, but even a perfect model cannot get below a loss of 6.60, only 1 less than if it gave all tokens the same probability:

# %% tags=["nbval-check-output"]
right = torch.tensor(tgt_out)
perfect = F.one_hot(right, tokenizer.vocab_size).double()  # probabilities
once = F.cross_entropy(1000 * perfect, right)  # logits far apart
twice = F.cross_entropy(perfect, right)  # probabilities taken for logits
even = math.log(tokenizer.vocab_size)
print(f"loss per token: softmax once {once:.2f}, twice {twice:.2f}")
print(f"all tokens equally likely: {even:.2f}")

# %% [markdown]
# ## Writing
#
# Now the decoder reads what it has written itself: **free running**.
# We encode once and start from `<s>`; then we take the most probable token (greedy decoding), append it, and repeat until `</s>` (or 20 tokens).

# %%
favorites, written = [], [BOS_ID]
with torch.no_grad():
    memory = model.encode(src)
    while written[-1] != EOS_ID and len(written) < 20:
        y = model.decode(torch.tensor([written], device=device), memory, src)
        best = model.generator(y[0, -1]).softmax(dim=-1).cpu().topk(3)
        top = zip(best.values.tolist(), tokens(best.indices.tolist()), strict=True)
        print(f"{tokens(written)[-1]:8}", *(f"{p:7.1%} {name:9}" for p, name in top))
        favorites.append(best.values[0].item())
        written.append(best.indices[0].item())

# %% tags=["hide-input"]
assert written == [BOS_ID, *tgt_out] and tokenizer.decode(written) == german
assert all(0.8 < favorite < 0.97 for favorite in favorites)
assert probabilities[0].topk(2).values[:, 1].max() < 0.0015  # the same, in one pass

# %% [markdown]
# On the left is the newest token that the decoder has read, on the right are the three most probable next tokens.
# The second choice never gets more than about 0.1 %, and still the first, the favorite, gets only about 90 %.
# Where does the rest go? Thinly over the other tokens.
# A likely reason is label smoothing (lesson [09](09_training.ipynb)), which asks for 0.9 and not for 1.
# The control would be the same translator, trained without it; the aside at the end shows the effect in a tiny model.
# For greedy decoding it matters only who leads.
#
# ## One pass or many?
#
# Writing took seven passes, each one token longer.
# But earlier, when we fed in the whole shifted target, *one* pass gave seven predictions.
# This is **teacher forcing** [@williams1989]: each position reads the true tokens before the one that it must predict, whatever the model would have written.
# Do seven passes over the true tokens give the same logits as one?

# %%
of_positions = Predict(
    "Seven passes, each over all tokens so far: how many positions are that in all?",
    section="One pass or many?",
)
of_positions

# %%
with torch.no_grad():
    memory = model.encode(src)
    parallel = model.generator(model.decode(one_in, memory, src))[0]
    steps, computed = [], 0
    for length in range(1, one_in.shape[1] + 1):
        y = model.decode(one_in[:, :length], memory, src)  # (1, length, d_model)
        steps.append(model.generator(y[0, -1]))  # the newest position only
        computed += length
steps = torch.stack(steps)
print(f"logits of one pass and of seven: {(parallel - steps).abs().max():.0e} apart")
of_positions.reveal(computed, because="1 + 2 + … + 7")

# %% tags=["hide-input"]
torch.testing.assert_close(steps, parallel, rtol=1e-9, atol=1e-9)
assert computed == 28


# %% tags=["hide-input"]
def gradient(losses):
    model.zero_grad()
    sum(losses).backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


one_out = batch.tgt_out[1]
one_pass = gradient([F.cross_entropy(model(src, one_in)[0], one_out, reduction="sum")])
seven_passes = gradient(
    F.cross_entropy(model(src, one_in[:, : t + 1])[0, -1], one_out[t])
    for t in range(len(one_out))
)
assert max(each.abs().max() for each in one_pass) > 0.1
torch.testing.assert_close(one_pass, seven_passes, rtol=1e-7, atol=1e-9)

# %% [markdown]
# The same logits. And (in the folded cell) with true tokens and no dropout, the gradient of one pass equals the summed gradient of the seven.
# The causal mask makes that possible: position *t* cannot tell whether later tokens exist.
#
# Step by step, 21 of the 28 positions are computed again; lesson [11](11_decoding.ipynb) keeps their keys and values in a cache.
#
# ## Does anything leak?
#
# Lesson 05 tested the mask of one attention; now we test a whole decoder of two layers.
# Row *t* shows which input vectors can change the log-probability of the right token at position *t*: blue where the gradient is not zero.
# We compare three decoders: the right one, one without the causal mask, and one whose cross-attention is the wrong way round, with queries from the memory, and keys and values from the target.
# Source and target have seven tokens each, so no error of shapes warns us.


# %%
class Swapped(OurDecoderLayer):
    """The cross-attention's queries come from the memory: wrong."""

    def forward(self, x, memory, tgt_mask=None, src_mask=None):
        x = self.self_attn_path(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.cross_attn_path(x, lambda x: self.cross_attn(memory, x, x, src_mask))
        return self.feed_forward_path(x, self.feed_forward)


# %%
def gradients(kind, mask):
    """Row t: gradient norms of log p(answer t), for each vector that is read."""
    x = fresh.tgt_embedding(one_in).detach().requires_grad_()
    y, memory = x, fresh.encode(src)
    for their_layer in fresh.decoder.layers:
        layer = kind(16, 2, 32, 0.0).to(device).double()
        layer.load_state_dict(their_layer.state_dict())
        y = layer(y, memory, mask, src_mask[1:2])
    log_p = fresh.generator(y)[0].log_softmax(dim=-1)  # (tgt_len, vocab)
    right_ones = [log_p[t, answer] for t, answer in enumerate(tgt_out)]
    kept = dict(retain_graph=True)
    rows = [torch.autograd.grad(each, x, **kept)[0][0] for each in right_ones]
    return torch.stack(rows).norm(dim=-1).cpu()


# %%
found = {
    "right": gradients(OurDecoderLayer, future_mask),
    "no causal mask": gradients(OurDecoderLayer, None),
    "the two sides swapped": gradients(Swapped, future_mask),
}

# %% tags=["hide-input"]
labels, sides = (tokens(tgt_out), tokens(tgt_in)), ("reads", "predicts")
drawn = [Panel(each > 0, *labels, name, "mask", *sides) for name, each in found.items()]
title = "Where a gradient gets through: both mistakes let the future in"
panels(drawn, title=title, words={"mask": ("gets through", "exactly 0")})

# %% tags=["hide-input"]
future = ~causal_mask(7)[0, 0]
correct, *wrong = found.values()
assert (correct[future] == 0).all() and (correct[~future] > 0).all()
assert all((each[future] > 0).all() for each in wrong)

# %% [markdown]
# In the right decoder the zeros are exact.
# With the two sides swapped, the target supplies the keys and values, and cross-attention has only the source's padding mask, which hides none of them.
# So each position reads all target tokens, whatever the causal mask of the self-attention hides.
#
# ## What the ids of the source are for
#
# `decode` takes the ids of the source as well as the memory, but only to find out which keys are padding.
# With the memory of *The cat sees the dog.* and the ids of *The dog sees the cat.*, the output stays the same to the last bit (asserted in the folded cell).
# Everything else about the source comes through the memory.

# %% tags=["hide-input"]
other_src, padded = batch.src[2:3], src.clone()
padded[0, -1] = PAD_ID  # instead of </s>
with torch.no_grad():
    memory, other_memory = model.encode(src), model.encode(other_src)
    whole = model.decode(one_in, memory, src)
    fed = [(memory, other_src), (memory, padded), (other_memory, src)]
    stays = [torch.equal(model.decode(one_in, *each), whole) for each in fed]
assert stays == [True, False, False]

# %% [markdown]
# ## Teacher forcing against free running
#
# For this sentence, teacher forcing predicted what free running wrote.
# Is that always so?
# We do both with 200 sentences of the course corpus, and count those that come out right, token for token.
# (Some may stand in the training part; for this comparison it does not matter.)

# %%
corpus = load_course(num_train=150, num_valid=1, num_test=200, seed=1)
many = make_batch(encode_pairs(tokenizer, corpus.test)).to(device)
with torch.no_grad(), record_attention(model) as many_maps:
    guesses = model(many.src, many.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = many.tgt_out != PAD_ID
correct = (guesses == many.tgt_out) | ~real
forced_right = correct.all(dim=1).tolist()
outputs = [hypothesis.ids for hypothesis in greedy(model, many.src)]
references = [tokenizer.encode(pair.tgt) for pair in corpus.test]
free_right = [ids == right for ids, right in zip(outputs, references, strict=True)]
print(f"right: {sum(forced_right)} teacher forced, {sum(free_right)} free running")

# %% tags=["hide-input"]
assert forced_right == free_right and sum(free_right) > 180

# %% [markdown]
# Both ways get the same sentences right.
# It cannot be otherwise: as long as every prediction is right, the decoder reads the true tokens either way.
# Now take the first mistake, the first predicted token that differs from the reference.
# After it the two *read* different tokens: free running its own mistake, teacher forcing the true token.
# Often, but not always, they then also *predict* different ones.
# Here is a sentence where they do, with the first four positions from the mistake on.

# %% tags=["hide-input"]
missed = [number for number, right_one in enumerate(free_right) if not right_one]
forced = {number: guesses[number][real[number]].tolist() for number in missed}
parting = [number for number in missed if forced[number] != [*outputs[number], EOS_ID]]
one = 63  # its first mistake has one clear consequence
mistake = correct[one].tolist().index(False)
free = [*outputs[one], EOS_ID]
ways = {"forced": (references[one], forced[one]), "free": (outputs[one], free)}
for name in ("src", "tgt"):
    print(f"{name:7} {getattr(corpus.test[one], name)}")
for name, (fed_back, guessed) in ways.items():
    print(f"{name:7} {tokenizer.decode(guessed)}")
    for what, ids in (("reads", [BOS_ID, *fed_back]), ("predicts", guessed)):
        shown_here = tokens(ids[mistake : mistake + 4])
        print(f"{what:>16}", *(f"{token:11}" for token in shown_here))
print(f"predictions differ in {len(parting)} of the {len(missed)} wrong sentences")

# %% tags=["hide-input"]
for number in missed:
    common = correct[number].tolist().index(False)
    assert outputs[number][:common] == forced[number][:common]
assert one in parting and 0 < len(parting) < len(missed)
slips = {name: [] for name in ways}
for name, (_, guessed) in ways.items():
    for true, guess in zip([*references[one], EOS_ID], guessed, strict=True):
        if guess != true:
            slips[name].append((tokenizer.token(true), tokenizer.token(guess)))
assert slips["forced"] == [("▁zu", "▁in")]
assert slips["free"] == [("▁zu", "▁in"), ("▁diesem", "▁diesen")]

# %% [markdown]
# Both ways predict *in* where the reference has *zu*.
# Teacher forcing then reads the true *zu* and goes on with *diesem*; free running reads its own *in* and goes on with *diesen*, the case that *in* takes here.
# So teacher-forced predictions need not fit together: *diesem* continues the reference, not the predicted *in*.
# And in free running, a model that was trained on true tokens only must continue from its own mistakes: here one wrong token becomes two.
# This is **exposure bias** [@ranzato2016]. (Whether such training does harm, one sentence cannot tell. The first mistake has another cause: it is made after true tokens only.)
#
# **A common mistake**: scoring a translator by how many tokens it predicts right with teacher forcing.
# The reference corrects it after each mistake; in use nothing does.
#
# ## Which token does a row explain?
#
# Row *t* of a cross-attention map comes from the query at position *t*.
# That position reads one token, and predicts another.
# Which of the two should label the row?
# Here is the map of our sentence, the mean of the four heads of the last layer, with both labels.

# %% tags=["hide-input"]
with torch.no_grad(), record_attention(model) as maps:
    model(src, one_in)
# Last layer, mean over its heads: (tgt_len, src_len).
cross_map, source = maps.cross[-1][0].mean(dim=0).cpu(), tokens(src[0].tolist())
read_and_predicted = [
    f"{read} → {predicts}"
    for read, predicts in zip(tokens(tgt_in), tokens(tgt_out), strict=True)
]
axes = "weights", "source: key", "reads → predicts"
panels(
    [Panel(cross_map, read_and_predicted, source, "", *axes)],
    title="The row Katze → sieht looks at “sees”",
)

# %% tags=["hide-input"]
top_keys = [source[key] for key in cross_map.argmax(dim=1).tolist()]  # for each row
assert (tokens([tgt_in[2], tgt_out[2]]), top_keys[2]) == (["▁Katze", "▁sieht"], "▁sees")
assert (tokens([tgt_out[1], tgt_out[4]]), top_keys[1]) == (["▁Katze", "▁Hund"], "▁cat")
assert cross_map[[1, 2, 4], [1, 2, 4]].min() > 0.97 and top_keys[4] == "▁dog"

# %% [markdown]
# The row that reads `▁Katze` has its weight on *sees*, and the row that predicts `▁Katze` on *cat*.
# In these two rows, the label that fits is the token predicted.
#
# **A common mistake**: drawing the map without saying which of the two labels its rows have.
#
# One sentence proves little.
# The course corpus has links, which tell which source and target words belong together.
# For each row of the 200 sentences we take the source token with the largest weight, again in the mean of the last layer's four heads.
# Is it linked to the token that the row must *predict* (the reference's), or to the one that it *reads*?
# Rows where one of these two has no link are left out.
# Chance is the score of a source token drawn at random.

# %%
of_rows = Predict(
    "How often is a row's largest weight on a word linked to the one that it *reads*?",
    ["more often than chance", "about as often as chance, or less"],
    section="Which token does a row explain?",
)
of_rows


# %% tags=["hide-input"]
def word_of(text):
    """The number of the word that each token of a text belongs to."""
    pieces = tokenizer.tokens(text)
    opens = torch.tensor([piece[0] == "▁" or piece in ".,?" for piece in pieces])
    return opens.cumsum(dim=0) - 1


def token_links(pair):
    """(tgt tokens, src tokens and </s>), True where their words are linked."""
    table = torch.zeros(len(pair.tgt_words), len(pair.src_words), dtype=torch.bool)
    for src_word, tgt_word in pair.links:
        table[tgt_word, src_word] = True
    linked = table[word_of(pair.tgt)][:, word_of(pair.src)]
    return F.pad(linked, (0, 1))  # nothing is linked with </s>


# %% tags=["hide-input"]
def agreement(weights):
    """(rows, 4): is the largest weight on a link of what the row must predict, and of
    what it reads? And the chances of a source token drawn at random.
    """
    hits = []
    for each, linked in zip(weights, links, strict=True):
        count, width = linked.shape
        top = each[1:count, :width].argmax(dim=1)  # row t reads t - 1, predicts t
        rows, sides = torch.arange(count - 1), (linked[1:], linked[:-1])
        found = [side[rows, top].double() for side in sides]
        found += [side.double().mean(dim=1) for side in sides]
        linkable = sides[0].any(dim=1) & sides[1].any(dim=1)
        hits.append(torch.stack(found, dim=1)[linkable])
    return torch.cat(hits)


# %% tags=["hide-input"]
links = [token_links(pair) for pair in corpus.test]
averaged = many_maps.cross[-1].mean(dim=1).cpu()  # the last layer, as above
hits = agreement(averaged)
by_predicted, by_read, chance_predicted, chance_read = hits.mean(dim=0).tolist()
only_read = int((hits[:, 1] > hits[:, 0]).sum())
print(f"{len(hits)} rows; linked only to the token read: {only_read}")
row_reads = of_rows.choices[0 if by_read > chance_read else 1]
because = f"it is {by_read:.0%}, where chance is {chance_read:.0%}"
of_rows.reveal(row_reads, because=because)

# %% tags=["hide-input"]
shares = by_predicted, chance_predicted, by_read, chance_read
ways_to_choose = "largest weight", "random source token"
bars(
    [f"{way}, token {of}" for of in ("predicted", "read") for way in ways_to_choose],
    [100 * share for share in shares],
    xlabel="rows in which the two are linked (%)",
    title="In our translator, the largest weight mostly fits the token predicted",
)

# %% tags=["hide-input"]
assert by_predicted > 0.8 and max(chance_predicted, chance_read) < 0.2
assert by_read < chance_read and only_read < 20 < 1500 < len(hits)
for layer in many_maps.cross:
    for head in layer.cpu().unbind(dim=1):  # every head of both layers says the same
        predicted_share, read_share, *_ = agreement(head).mean(dim=0).tolist()
        assert predicted_share > read_share + 0.2

# %% [markdown]
# If we label the rows by what they read, the largest weight fits the label no more often than a source token drawn at random.
# And nearly every row that fits the token read fits the predicted one too, as when the two are pieces of one word.
# In each head of both layers (a folded cell checks it), the predicted token does better than the one that is read.
# In larger translators, trained on other text, @chen2020 got better word alignments from the row that *reads* a token.
# So measure before you label.
#
# Now go through a translation step by step, with this sentence or one of your own: the rows are labeled by what they predict.
# The stepper opens at `▁Hund`, with the mean of the four heads of the last layer.
# What does the decoder look at when it chooses a noun, and what when it chooses an article?

# %% tags=["hide-input"]
from course_lib.checks import written_for
from course_lib.widgets import DecoderStepper

stepper = DecoderStepper(translator, english, step=5)
stepper

# %% tags=["hide-input"]
with written_for(english, stepper.text):
    assert stepper.view["text"] == german
    assert stepper.view["predicted"] == tokens(tgt_out)

# %% [markdown]
# *Hund* looks at *dog*, but *den* gives 0.77 to *the* and 0.23 to *dog*.
# Where does the 0.23 come from?
# Here are the four heads of layer 1, which is the last (we count from 0): point at a German token, and see what the decoder looked at to predict it.

# %% tags=["hide-input"]
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, english, kind="cross")
explorer

# %% tags=["hide-input"]
now = explorer.text, explorer.forced, explorer.silent
with written_for((english, [], []), now):
    assert explorer.view["text"] == german and explorer.view["tgt"] == tokens(tgt_out)

# %% tags=["hide-input"]
the, dog = 3, 4  # in the source; ▁den and ▁Hund are rows 3 and 4
assert abs(cross_map[3, the] - 0.77) < 0.03 and abs(cross_map[3, dog] - 0.23) < 0.03
last_heads = maps.cross[-1][0]  # (heads, tgt_len, src_len)
assert abs(last_heads[0, 3, dog] - 0.92) < 0.04 and last_heads[1:, 3, the].min() > 0.97
assert all(layer[0, :, 0, 0].min() > 0.97 for layer in maps.cross)  # Die: The

# %% [markdown]
# From a single head: head 0 puts 0.92 on *dog*, the other three look only at *the*. The mean hides that.
# (Lesson [12](12_reading_attention.ipynb) looks at this head in many sentences.)
#
# *Die* looks only at *The*, in all heads of both layers.
# How can it agree with *Katze*, then? Lesson 12 tests where the model finds the gender.
#
# ## An aside: why only 90 %?
#
# On our sentence, the favorite led by far and never came near 100 %.
# Our translator was trained with label smoothing (section 5.4 of the paper).
# Its training target shares 0.1 equally among all tokens of the vocabulary, and adds 0.9 to the right one.
# We look at the effect in a tiny Transformer, which memorizes 32 short pairs, with three amounts of smoothing and three seeds each.
# Its tokenizer is `own_tokenizer`, with 240 tokens.
# `memorize` trains the model, and returns the favorite's mean probability and how often the favorite is right.

# %%
of_smoothing = Predict(
    "What will the favorite get, on average, without label smoothing?",
    unit="%",
    off_by=3,
    section="An aside: why only 90 %?",
)
of_smoothing

# %% tags=["hide-input"]
from course_lib import ModelConfig

short_pairs = [pair for pair in corpus.train if len(pair.tgt_words) <= 6][:32]
texts = [text for pair in short_pairs for text in (pair.src, pair.tgt)]
own_tokenizer = Tokenizer.train(texts, vocab_size=240)
few = make_batch(encode_pairs(own_tokenizer, short_pairs)).to(device)
sizes = dict(d_model=32, num_heads=4, d_ff=64, num_layers=1, dropout=0.0)
tiny = ModelConfig(own_tokenizer.vocab_size, norm_first=True, **sizes)
is_real = few.tgt_out != PAD_ID


# %% tags=["hide-input"]
def memorize(smoothing, seed, steps=120):
    """Mean probability of the favorite, and the share of favorites that are right."""
    torch.manual_seed(seed)
    pupil = Transformer(tiny).to(device)
    optimizer = torch.optim.Adam(pupil.parameters(), lr=1e-2, fused=True)
    for _ in range(steps):
        real_logits = pupil(few.src, few.tgt_in)[is_real]  # (tokens, vocab)
        answers = few.tgt_out[is_real]
        loss = F.cross_entropy(real_logits, answers, label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    best = real_logits.softmax(dim=-1).max(dim=-1)
    return best.values.mean().item(), (best.indices == answers).double().mean().item()


# %%
amounts = (0.0, 0.1, 0.2)
pupils = {amount: [memorize(amount, seed) for seed in range(3)] for amount in amounts}
for amount, runs in pupils.items():
    asked = 1 - amount + amount / own_tokenizer.vocab_size  # of the right token
    print(f"target {asked:6.1%}: favorite", *(f"{p:.1%}" for p, _ in runs), end=", ")
    print("right", *(f"{share:.0%}" for _, share in runs))
of_smoothing.reveal(round(100 * sum(p for p, _ in pupils[0.0]) / 3, 1))

# %% tags=["hide-input"]
for told, runs in zip((0.996, 0.886, 0.773), pupils.values(), strict=True):
    assert all(abs(p - told) < 0.02 and share > 0.98 for p, share in runs)

# %% [markdown]
# Every model has learned the pairs, and gives its favorite nearly what its target asks for: with targets of 100, 90 and 80 %, the favorite gets about 100, 89 and 77 %.
# So in a model trained with smoothing, a favorite near 90 % need not be a sign of doubt.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **autoregressive**: said of a model that predicts each token from the tokens before it.
# - **shifted right**: said of the decoder's input: `<s>`, followed by the target without `</s>`.
# - **generator**: the last linear layer, from d_model to one logit for each token of the vocabulary.
# - **free running**: reading what the model has written itself.
# - **teacher forcing**: reading the true tokens before the one to predict, whatever the model would have written.
# - **exposure bias**: a model is trained on true tokens only, but in use must continue from its own.

# %% [markdown]
# ## Summary
#
# The decoder reads `<s>` and the target shifted right, and predicts the target up to and including `</s>`.
# Each of its layers has masked self-attention, attention to the memory, and a feed-forward network, each in a residual path with a norm.
# In the attention to the memory, queries come from the decoder, and every layer projects keys and values of its own from the encoder's final output.
# Thanks to the causal mask, one parallel pass gives what one step for each token would give, so training is parallel, and only translation goes token by token.
# In our translator, the largest weight in row *t* of a cross-attention map usually fits the token that position *t* must predict, and seldom the one that it reads.
#
# **Practice**: [assignment 07](assignments/release/07_decoder/07_decoder.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [08](08_transformer.ipynb) puts embeddings, encoder, decoder and generator together.
