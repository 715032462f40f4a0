# %% [markdown]
# # 07 · The decoder: one token after another
#
# **Question.** The encoder has read the English sentence. How does the decoder write German from its memory, when the German is not there yet?
#
# **Afterwards you can**
#
# 1. shift a target right, and say what each position may read and what it must predict;
# 2. build a decoder layer, and say where the queries, keys and values of both its attentions come from;
# 3. test a decoder for leaks, and read its cross-attention map without being one token off.
#
# **You need** attention (lesson [03](03_attention.ipynb)), several heads ([04](04_multi_head.ipynb)), masks ([05](05_masks.ipynb)) and the encoder layer ([06](06_encoder.ipynb)).
# **Time**: 35 minutes to read, under 30 seconds to run.
# **In the paper**: the right half of figure 1, sections 3.1, 3.2.3, 3.3 and 3.4.

# %%
import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from course_lib import Translator

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.to(device).double(), translator.tokenizer
assert not model.training

# %% [markdown]
# We take the translator of lesson [00](00_welcome.ipynb) apart.
# It computes in float64 today, so that "equal" can mean equal to nine digits.
#
# ## What the decoder must do
#
# The decoder has the source, and it has the tokens that it wrote so far.
# From these it predicts the next token, and then it reads that one too.
# The paper calls this *auto-regressive* (section 3).
#
# *Die Katze sieht den Hund.* has six tokens.
# How many predictions does it take?

# %% tags=["nbval-check-output"]
english, german = "The cat sees the dog.", "Die Katze sieht den Hund."


def tokens(ids):
    return [tokenizer.token(i) for i in ids]


target = tokenizer.encode(german)
bos_id, eos_id = model.config.bos_id, model.config.eos_id
tgt_in, tgt_out = [bos_id, *target], [*target, eos_id]
for number in range(len(tgt_out)):
    so_far = " ".join(tokens(tgt_in[: number + 1]))
    print(f"{so_far:40} → {tokenizer.token(tgt_out[number])}")
assert len(tgt_in) == len(tgt_out) == len(target) + 1

# %% [markdown]
# Seven: the end is predicted too.
# Without `</s>` the decoder could not say that it is done.
#
# ## Shifted right
#
# The last token of each line is what the decoder *reads* at that position: `tgt_in`.
# The token behind the arrow is what it must *predict* there: `tgt_out`.
# Figure 1 of the paper writes "Outputs (shifted right)" below the decoder.

# %%
from course_lib.data import Pair, encode_pairs, make_batch

pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
]
batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
assert tgt_in[1:] == tgt_out[:-1]
assert (tgt_in, tgt_out) == (batch.tgt_in[1].tolist(), batch.tgt_out[1].tolist())

# %% [markdown]
# What is predicted at one position is read at the next.
# `make_batch` does the same for many pairs, and pads.
#
# Now we draw it, with the causal mask of lesson 05 (section 3.2.3).
# Each row is a prediction, each column a token that is read.

# %%
from course_lib.figures import mask_grid
from course_lib.masks import causal_mask

past = causal_mask(len(tgt_in))[0, 0]  # (tgt_len, tgt_len)
for t, token in enumerate(tgt_out):
    visible = [tgt_in[s] for s in range(len(tgt_in)) if past[t, s]]
    assert visible == [bos_id, *tgt_out[:t]]
    assert token not in visible
rows = [f"predicts {token}" for token in tokens(tgt_out)]
finding = "Each prediction may use <s> and the tokens before it, never itself"
mask_grid(past, rows, tokens(tgt_in), title=finding)

# %% [markdown]
# The mask lets position *t* see itself, on the diagonal.
# That is no cheating, because what stands there is the token *before* the one it predicts.
#
# **A common mistake**: "the mask keeps word *t* + 1 from being used to predict word *t*."
# That would still allow word *t* itself.
# To predict y_t only y_<t may be used: that is the first assertion above.
#
# **A common mistake**: "in training the whole target is fed in."
# What would position *t* see if we fed in `tgt_out`, with the same mask?

# %% tags=["nbval-check-output"]
for name, read in (("tgt_in", tgt_in), ("tgt_out", tgt_out)):
    answers_seen = sum(tgt_out[t] in read[: t + 1] for t in range(len(tgt_out)))
    print(f"fed with {name:8}{answers_seen} of {len(tgt_out)} answers are visible")
    assert answers_seen == (0 if read is tgt_in else len(tgt_out))

# %% [markdown]
# Every answer.
# Lesson [08](08_transformer.ipynb) trains such a model and shows what it learns: to copy.
#
# **A common mistake**: "the decoder starts from an empty sentence."
# Attention has one output row for each query.
# With no token there is no query, and no row that could predict anything.

# %% tags=["nbval-check-output"]
key = value = torch.ones(1, 7, 8)  # (batch, keys, d_k)
for start in ([], [bos_id]):
    query = torch.ones(1, len(start), 8)  # (batch, queries, d_k)
    context = F.scaled_dot_product_attention(query, key, value)
    print(f"starts from {tokens(start)}: context {tuple(context.shape)}")
    assert context.shape[1] == len(start)
refused = ""
try:
    model.decode(batch.tgt_in[:, :0], model.encode(batch.src), batch.src)
except ValueError as error:
    refused = str(error)
print(refused)
assert "at least one" in refused
assert (batch.tgt_in[:, 0] == bos_id).all() and bos_id not in batch.tgt_out

# %% [markdown]
# So it starts from `<s>`: a token that is only ever read, never predicted.
#
# ## Attention between two sentences
#
# Self-attention with a causal mask is not new: lesson 05 built it.
# New is attention *to the memory* (section 3.2.3, first item).
# The queries come from the decoder, the keys and values from the encoder's output.
#
# We make it small, with every size different.
# Three target tokens are written: `<s> Die Katze`.
# The source has seven.
# Even the widths differ: 6 features in the decoder, 8 in the memory.

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


hidden, memory = random(3, 6), random(7, 8)  # (tgt_len, width), (src_len, width)
W_Q, W_K, W_V = random(6, 4), random(8, 4), random(8, 5)  # d_k = 4, d_v = 5
query, key, value = hidden @ W_Q, memory @ W_K, memory @ W_V
for name, matrix in (("query", query), ("key", key), ("value", value)):
    print(f"{name:6}{tuple(matrix.shape)}")
assert query.shape[1] == key.shape[1] and len(key) == len(value)

# %% [markdown]
# One query at a time, in a loop.
# Before you run the cell after it: what will be the shape of all weights, and what of all contexts?

# %%
loop_weights, loop_context = torch.zeros(3, 7).double(), torch.zeros(3, 5).double()
for t in range(3):
    scores = torch.stack([query[t] @ key[s] / math.sqrt(4) for s in range(7)])
    loop_weights[t] = scores.exp() / scores.exp().sum()
    for s in range(7):
        loop_context[t] += loop_weights[t, s] * value[s]
assert torch.allclose(loop_weights.sum(dim=1), torch.ones(3).double())

# %% tags=["nbval-check-output"]
from course_lib.attention import attention

weights = (query @ key.T / math.sqrt(4)).softmax(dim=-1)  # (tgt_len, src_len)
context = weights @ value  # (tgt_len, d_v)
torch.testing.assert_close(weights, loop_weights)
torch.testing.assert_close(context, loop_context)
torch.testing.assert_close(attention(query, key, value), (context, weights))
print("weights", tuple(weights.shape), "context", tuple(context.shape))

# %% [markdown]
# Loop, matrices and `course_lib.attention` agree.
# The weights are tgt_len × src_len: a row for each query, a column for each key.
#
# **A common mistake**: "cross-attention gives the Value matrix."
# It gives the *context*, tgt_len × d_v.
# The values are src_len × d_v, and they go in.
#
# **A common mistake**: "both lengths can differ, but equal ones work well; the widths of both languages must be the same."
# Both lengths are what the sentences have: here 3 and 7, one growing with each step.
# And the widths? Ours are 6 and 8.
# W_K and W_V must fit the memory, W_Q must fit the decoder, and that is all.
# PyTorch's module says the same with `kdim` and `vdim`.

# %% tags=["nbval-check-output"]
wide = dict(kdim=8, vdim=8)
for options in (wide, {}):
    heads = nn.MultiheadAttention(6, 2, batch_first=True, **options).double()
    try:
        output, seen = heads(hidden[None], memory[None], memory[None])
        print(options, "context", tuple(output.shape), "weights", tuple(seen.shape))
        assert (output.shape, seen.shape, options) == ((1, 3, 6), (1, 3, 7), wide)
    except (AssertionError, RuntimeError) as error:
        assert not options, error
        print(options, "refused: W_K and W_V do not fit the memory")

# %% [markdown]
# The paper has one width, d_model = 512, on both sides; our models have one width too.
# That is a choice.
#
# ## The decoder layer
#
# The encoder layer has two sub-layers.
# What does the decoder layer have on top?

# %% tags=["nbval-check-output"]
from course_lib.blocks import DecoderLayer, EncoderLayer

parts = {}
for kind in (EncoderLayer, DecoderLayer):
    parts[kind] = [name for name, _ in kind(16, 2, 32, 0.0).named_children()]
    print(f"{kind.__name__:13}", *(name for name in parts[kind] if "path" not in name))
added = set(parts[DecoderLayer]) - set(parts[EncoderLayer])
assert added == {"cross_attn", "cross_attn_path"}

# %% [markdown]
# **A common mistake**: "the decoder's added sub-layer is the masked one."
# The added one is the encoder-decoder attention, with its own residual path.
# The self-attention was there already; in the decoder it gets the causal mask.
#
# Each sub-layer sits in a residual path with its norm, as in lesson 06.
# In the paper's order (post-norm, section 3.1) the layer is three lines:
#
# - x ← norm(x + self-attention(x, x, x)), with the causal mask;
# - x ← norm(x + cross-attention(x, memory, memory)), without the padding of the source;
# - x ← norm(x + feed-forward(x)).

# %% [markdown]
# So the model uses attention in three ways (section 3.2.3):
#
# | | queries from | keys and values from | hidden |
# |---|---|---|---|
# | encoder self-attention | the source | the source | padding |
# | decoder self-attention | the target | the target | padding and the future |
# | encoder-decoder attention | the target | the memory | padding of the source |
#
# ## The layer by hand
#
# We write it with functions, and borrow the weights of a layer of `course_lib`.
# First attention with several heads, as in lesson 04.


# %%
def multi_head(attn, query, memory, mask):
    """Queries (batch, queries, d_model) attend to memory (batch, keys, d_model)."""

    def split(x):  # (batch, length, d_model) to (batch, heads, length, d_k)
        return x.unflatten(-1, (attn.num_heads, -1)).transpose(1, 2)

    query = split(attn.query_proj(query))
    key, value = split(attn.key_proj(memory)), split(attn.value_proj(memory))
    context, _ = attention(query, key, value, mask)  # (batch, heads, queries, d_k)
    return attn.output_proj(context.transpose(1, 2).flatten(2))


# %% [markdown]
# In self-attention `query` and `memory` are the same tensor.
# Then the residual path and the feed-forward network, as in lesson 06.
# The small course translator is pre-norm, so we need both orders.


# %%
from course_lib.blocks import layer_norm


def add_and_norm(path, x, sublayer):
    scale, shift = path.norm.scale, path.norm.shift
    if path.norm_first:
        return x + sublayer(layer_norm(x, scale, shift))
    return layer_norm(x + sublayer(x), scale, shift)


def feed_forward(net, x):
    inner = torch.relu(x @ net.up.weight.T + net.up.bias)  # (batch, length, d_ff)
    return inner @ net.down.weight.T + net.down.bias


# %%
def decoder_layer(layer, x, memory, tgt_mask, memory_mask):
    """x (batch, tgt_len, d_model), memory (batch, src_len, d_model); as x."""

    def attend_self(x):
        return multi_head(layer.self_attn, x, x, tgt_mask)

    def attend_memory(x):
        return multi_head(layer.cross_attn, x, memory, memory_mask)

    x = add_and_norm(layer.self_attn_path, x, attend_self)
    x = add_and_norm(layer.cross_attn_path, x, attend_memory)
    path, net = layer.feed_forward_path, layer.feed_forward
    return add_and_norm(path, x, lambda x: feed_forward(net, x))


# %% [markdown]
# To test it we need a layer of each order.
# Pre-norm: the first one of the translator.
# Post-norm: a fresh one, with every parameter moved at random, because biases of 0 and scales of 1 hide mistakes.
# Source and target of our batch are both padded: the first sentence has four tokens, the others six.

# %%
from course_lib import Transformer
from course_lib.masks import padding_mask

small = replace(model.config, d_model=16, num_heads=2, d_ff=32, norm_first=False)
torch.manual_seed(0)
fresh = Transformer(small).double().eval()
with torch.no_grad():
    for parameter in fresh.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
fresh.to(device)
src_mask, tgt_mask = padding_mask(batch.src, 0), padding_mask(batch.tgt_in, 0)
tgt_mask = tgt_mask & causal_mask(batch.tgt_in.shape[1], device=device)
assert not src_mask.all() and src_mask.shape == (3, 1, 1, 7)
assert tgt_mask.shape == (3, 1, 7, 7)

# %% tags=["nbval-check-output"]
for each in (fresh, model):
    layer = each.decoder.layers[0]
    x, memory = each.tgt_embedding(batch.tgt_in), each.encode(batch.src)
    ours = decoder_layer(layer, x, memory, tgt_mask, src_mask)
    theirs = layer(x, memory, tgt_mask, src_mask)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    order = "pre-norm " if each.config.norm_first else "post-norm"
    print(order, *(tuple(tensor.shape) for tensor in (x, memory, ours)))
    assert ours.shape == x.shape

# %% [markdown]
# By hand and from the library: the same, in both orders.
# The shapes are those of x, the memory and the output: x keeps its shape, so layers can be stacked.
#
# ## One memory for all layers
#
# The encoder has several layers too.
# Which of them does a decoder layer listen to?
# The paper's answer is "the output of the encoder" (section 3.2.3): the *last* one's, for every decoder layer.


# %%
def decoder_stack(decoder, x, memories):
    for layer, memory in zip(decoder.layers, memories, strict=True):
        x = decoder_layer(layer, x, memory, tgt_mask, src_mask)
    return decoder.norm(x)  # the identity in a post-norm decoder


for each in (fresh, model):
    x, first = each.tgt_embedding(batch.tgt_in), each.src_embedding(batch.src)
    first = each.encoder.layers[0](first, src_mask)
    memory = each.encoder.norm(each.encoder.layers[1](first, src_mask))
    theirs = each.decoder(x, memory, tgt_mask, src_mask)
    ours = decoder_stack(each.decoder, x, [memory, memory])
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    corresponding = decoder_stack(each.decoder, x, [first, memory])
    assert (corresponding - theirs).abs().max() > 0.1

# %% [markdown]
# That is `course_lib.transformer.Decoder`: a loop over layers, and the same memory for each.
#
# **A common mistake**: "keys and values come from the corresponding encoder layer."
# The last two lines tried it, and it is another function.
#
# **A common mistake**: "the last encoder layer's K and V go to the decoder."
# Its *output* goes there, and every decoder layer has its own W_K and W_V.
# We compare three sets of keys: the first 12 of their 128 features, before they are split into heads.

# %%
with torch.no_grad():
    last = model.encoder.layers[1]  # it gets `first`, the first layer's output
    x = last.self_attn_path.norm(first)
    keys = {"last encoder layer": last.self_attn.key_proj(x)}
    for number, layer in enumerate(model.decoder.layers):
        keys[f"decoder layer {number}"] = layer.cross_attn.key_proj(memory)
for each in keys.values():
    assert each.shape == (3, 7, 128)  # (batch, src_len, d_model)
    differences = [(each - other).abs().max().item() for other in keys.values()]
    assert sorted(differences)[0] == 0 and sorted(differences)[1] > 1

# %%
from course_lib.figures import Panel, panels

source, features = tokens(batch.src[1].tolist()), range(1, 13)
drawn = {name: each[1, :, :12].cpu() for name, each in keys.items()}
assert len({each.sum().item() for each in drawn.values()}) == 3
look = ("signed", "feature", "source token")
shown = [Panel(each, source, features, name, *look) for name, each in drawn.items()]
panels(
    shown,
    title="Three layers, three sets of keys: each layer makes its own",
    words={"signed": "value of the key"},
)

# %% [markdown]
# ## From vectors to tokens
#
# The decoder ends with a vector for each target position.
# The *generator* multiplies it with a matrix of d_model × vocab: one score for each subword, the logits (section 3.4).
# A softmax makes probabilities of them.
# We feed the target in and look at the most probable token of each position.

# %% tags=["nbval-check-output"]
src, one_in = batch.src[1:2], batch.tgt_in[1:2]
with torch.no_grad():
    hidden = model.decode(one_in, model.encode(src), src)  # (batch, tgt_len, d_model)
    logits = model.generator(hidden)  # (batch, tgt_len, vocab)
    probabilities = logits.softmax(dim=-1)
for name, tensor in (("hidden", hidden), ("logits", logits)):
    print(f"{name:7}{tuple(tensor.shape)}")
predicted = probabilities.argmax(dim=-1)[0].tolist()
print("reads    ", *tokens(tgt_in))
print("predicts ", *tokens(predicted))
assert predicted == tgt_out
torch.testing.assert_close(logits, hidden @ model.generator.weight.T)
torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones_like(hidden[..., 0]))

# %% [markdown]
# **A common mistake**: "each output dimension is a word of the target language."
# It is a *subword*, and the vocabulary is shared by both languages (section 5.1).
# What must the decoder predict for *rote Blumen* (red flowers)?

# %% tags=["nbval-check-output"]
print(*tokenizer.tokens("Sie gibt dem Kind rote Blumen."))
vocabulary = tokens(range(tokenizer.vocab_size))
inside = [piece for piece in vocabulary[4:] if piece[0].isalpha() and len(piece) > 1]
print(f"{len(inside)} of {len(vocabulary)} subwords are longer pieces inside words")
assert "en" in inside and "en" in tokenizer.tokens("Blumen")
assert {"▁dog", "▁Hund"} <= set(vocabulary)

# %% [markdown]
# *Blumen* takes two steps: `▁Blum`, then `en`.
#
# Figure 1 ends with a softmax, and our `Transformer` returns logits.
# During training the softmax is *inside* the loss.
# What happens if we apply it twice?
# We test a perfect model, which gives the right token all the probability.

# %% tags=["nbval-check-output"]
vocab = tokenizer.vocab_size
right = torch.tensor(tgt_out)
perfect = F.one_hot(right, vocab).double()  # probabilities, (tgt_len, vocab)
once = F.cross_entropy(1000 * perfect, right)  # logits far apart
twice = F.cross_entropy(perfect, right)  # probabilities taken for logits
print(f"softmax once: {once:.2f} nats a token, twice: {twice:.2f}")
assert once < 1e-6
assert math.isclose(twice, math.log(1 + (vocab - 1) / math.e))
picked = probabilities[0].cpu().log()[range(len(right)), right]
torch.testing.assert_close(F.cross_entropy(logits[0].cpu(), right), -picked.mean())

# %% [markdown]
# Twice is a bug that does not crash: with 2,000 subwords even perfection costs 6.60 nats.
#
# ## One pass or many?
#
# Above we fed the whole shifted target in and got seven predictions from *one* pass.
# This is **teacher forcing**: each position reads the true tokens before it, whatever the model would have written.
# Translating goes one token at a time: seven passes, each one token longer.
# Do both give the same logits?

# %% tags=["nbval-check-output"]
with torch.no_grad():
    memory = model.encode(src)
    at_once = model.decode(one_in, memory, src)  # (1, tgt_len, d_model)
    parallel, steps, computed = model.generator(at_once)[0], [], 0
    for length in range(1, one_in.shape[1] + 1):
        hidden = model.decode(one_in[:, :length], memory, src)  # (1, length, d_model)
        torch.testing.assert_close(hidden, at_once[:, :length], rtol=1e-9, atol=1e-9)
        steps.append(model.generator(hidden[0, -1]))  # the newest position only
        computed += hidden.shape[1]
torch.testing.assert_close(torch.stack(steps), parallel, rtol=1e-9, atol=1e-9)
print(f"parallel:      1 pass,   {len(parallel):2} positions computed")
print(f"step by step:  {len(steps)} passes, {computed:2} positions computed")
assert computed - len(parallel) == 21

# %% [markdown]
# The same logits, to nine digits.
# The causal mask does that: position *t* cannot tell whether later tokens exist.
# We need it not "because the decoder starts with nothing", but so that all positions can be trained at once.
#
# Step by step, 21 of 28 positions are old work: every step computes the earlier ones again, and gets the same.
# `Transformer.new_cache` keeps them; lesson [11](11_decoding.ipynb) shows how.
#
# **A common mistake**: "learning goes word by word."
# Only inference does, because there the next token must be chosen before it can be read.
# To be sure, we compare what training is about: the gradients.

# %%
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
# One pass teaches what seven passes would teach.
#
# ## The two maps of a decoder layer
#
# A decoder layer attends twice, so it has two kinds of maps.
# `record_attention` keeps the weights of a pass.
# Before you run the cell: which cells of the left map must be white, and may any cell of the right map be forbidden?

# %%
from course_lib import record_attention

with torch.no_grad(), record_attention(model) as maps:
    model(src, one_in)
# Last layer, mean over its heads: (tgt_len, tgt_len) and (tgt_len, src_len).
self_map, cross_map = maps.decoder[-1][0].mean(dim=0), maps.cross[-1][0].mean(dim=0)
self_map, cross_map = self_map.cpu(), cross_map.cpu()
assert (self_map.triu(1) == 0).all() and (self_map.tril() > 0).sum() == 28
assert (cross_map > 0).all()
look = ("weights", "key", "query")
shown = [
    Panel(self_map, tokens(tgt_in), tokens(tgt_in), "masked self-attention", *look),
    Panel(cross_map, tokens(tgt_in), source, "encoder-decoder attention", *look),
]
panels(shown, title="The decoder looks back at German, and anywhere at English")

# %% [markdown]
# Left, everything above the diagonal is exactly 0.
#
# **A common mistake**: "every decoder position attends to all positions of the layer before."
# To those up to and including itself.
#
# Right, nothing is forbidden: all of the source is there from the start.
# Its rows look shifted against what we expect; we come back to that.
#
# ## Does anything leak?
#
# Lesson 05 tested one attention.
# We test a whole decoder: how does the log-probability of the right token at *t* depend on each vector that goes in?
# If the gradient is exactly 0, not even a tiny change gets through.


# %%
def gradient_lengths(decode, x, memory, answers):
    """Row t: lengths of the gradients of log p(answer t), for all x and all memory."""
    x, memory = x.detach().requires_grad_(), memory.detach().requires_grad_()
    log_probs = fresh.generator(decode(x, memory))[0].log_softmax(dim=-1)
    lengths = ([], [])
    for t, answer in enumerate(answers):
        one = log_probs[t, answer]
        grads = torch.autograd.grad(one, (x, memory), retain_graph=True)
        for rows, grad in zip(lengths, grads, strict=True):
            rows.append(grad[0].norm(dim=-1).cpu())
    return [torch.stack(rows) for rows in lengths]


# %% [markdown]
# We take the fresh decoder, because leaks come from wiring, not from training, and *The cat sleeps.*
# In our batch its source and its target end with two tokens of padding.

# %% tags=["nbval-check-output"]
answers = batch.tgt_out[0, :5].tolist()  # Die Katze schläft . </s>
to_target, to_source = gradient_lengths(
    lambda x, memory: fresh.decoder(x, memory, tgt_mask[:1], src_mask[:1]),
    fresh.tgt_embedding(batch.tgt_in[:1]),
    fresh.encode(batch.src[:1]),
    answers,
)
may_flow = torch.ones(5, 7).tril().bool()
assert (to_target[~may_flow] == 0).all() and (to_target[may_flow] > 0).all()
assert (to_source[:, 5:] == 0).all() and (to_source[:, :5] > 0).all()
print("exactly 0:", *(int((each == 0).sum()) for each in (to_target, to_source)))

# %% [markdown]
# In the picture each row is divided by its sum.

# %%
rows = [f"predicts {token}" for token in tokens(answers)]
shown = []
inputs = {"tgt_in": (to_target, batch.tgt_in), "src": (to_source, batch.src)}
for name, (lengths, ids) in inputs.items():
    shares = lengths / lengths.sum(dim=1, keepdim=True)
    columns = tokens(ids[0].tolist())
    shown.append(Panel(shares, rows, columns, f"gradient share, {name}", "weights"))
assert [int((panel.values > 0.005).sum()) for panel in shown] == [15, 25]
finding = "Nothing comes from the future or the padding, something from all the rest"
words = {"weights": "share of the gradient"}
panels(shown, title=finding, words=words)

# %% [markdown]
# The 20 and 10 zeros are exact, through two layers and all heads.
# And each prediction depends on *all* real source tokens, the later ones too.
#
# ## The source enters through the memory, and nowhere else
#
# `decode` gets the ids of the source as well.
# What for?
# We keep the memory of *The cat sees the dog.* and hand over other ids.

# %% tags=["nbval-check-output"]
other_src = batch.src[2:3]  # The dog sees the cat.
padded = src.clone()
padded[0, -1] = 0  # <pad> instead of </s>
with torch.no_grad(), record_attention(model) as maps:
    memory = model.encode(src)
    ours, ours_self = model.decode(one_in, memory, src), list(maps.decoder)
    fed = {"other ids": (memory, other_src), "<pad> at the end": (memory, padded)}
    fed["other memory"] = (model.encode(other_src), other_src)
    stays = [torch.equal(model.decode(one_in, *each), ours) for each in fed.values()]
    other_self = maps.decoder  # of the last pass: other memory
for name, same in zip(fed, stays, strict=True):
    print(f"{name:17}: the output {'stays' if same else 'changes'}")
assert stays == [True, False, False]

# %% [markdown]
# Only their padding counts: it becomes the mask of the cross-attention.
# Everything else about the source comes through the memory.
#
# The first self-attention comes before the first cross-attention.
# So what must its map look like when the source changes?
# And the second layer's?

# %%
assert torch.equal(ours_self[0], other_self[0])
assert (ours_self[1] - other_self[1]).abs().max() > 0.01
difference = (ours_self[1] - other_self[1]).abs().max().item()
print(f"layer 0: the same map; layer 1: weights differ by up to {difference:.2f}")

# %% [markdown]
# We count layers and heads from 0.
# In layer 0 the weights are the same to the last bit: it knows German only.
# Layer 1 reads what layer 0 has fetched from the memory.
#
# ## The same function as PyTorch's
#
# `torch.nn.TransformerDecoderLayer` keeps the three projections of an attention in one matrix.
# Its boolean masks say the opposite of ours: True means *hidden*.
# We copy our weights into it, for both orders.


# %%
def copy(ours, theirs):
    """Copies parameters that come in the same order."""
    values = ours.state_dict().values()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))


@torch.no_grad()
def copy_attention(ours, theirs):
    projections = (ours.query_proj, ours.key_proj, ours.value_proj)
    theirs.in_proj_weight.copy_(torch.cat([each.weight for each in projections]))
    theirs.in_proj_bias.copy_(torch.cat([each.bias for each in projections]))
    copy(ours.output_proj, theirs.out_proj)


# %%
def torch_layer(ours, config):
    sizes = (config.d_model, config.num_heads, config.d_ff)
    look = dict(norm_first=config.norm_first, batch_first=True, dtype=torch.float64)
    theirs = nn.TransformerDecoderLayer(*sizes, **look).to(device).eval()
    copy_attention(ours.self_attn, theirs.self_attn)
    copy_attention(ours.cross_attn, theirs.multihead_attn)
    copy(ours.feed_forward.up, theirs.linear1)
    copy(ours.feed_forward.down, theirs.linear2)
    copy(ours.self_attn_path.norm, theirs.norm1)
    copy(ours.cross_attn_path.norm, theirs.norm2)
    copy(ours.feed_forward_path.norm, theirs.norm3)
    return theirs


# %% [markdown]
# Forward and backward, on the padded batch: the outputs must agree, and the gradients with respect to both inputs.

# %% tags=["nbval-check-output"]
hidden = {"tgt_mask": ~causal_mask(7, device=device)[0, 0]}
hidden["tgt_key_padding_mask"] = batch.tgt_in == 0
hidden["memory_key_padding_mask"] = batch.src == 0
for whole in (fresh, model):
    ours = whole.decoder.layers[0]
    theirs = torch_layer(ours, whole.config)
    x, memory = (random(3, 7, whole.config.d_model) for _ in range(2))
    x, memory = x.to(device).requires_grad_(), memory.to(device).requires_grad_()
    outputs = ours(x, memory, tgt_mask, src_mask), theirs(x, memory, **hidden)
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-10)
    grads = [torch.autograd.grad(each.square().sum(), (x, memory)) for each in outputs]
    torch.testing.assert_close(*grads, rtol=1e-9, atol=1e-8)
    order = "pre-norm " if whole.config.norm_first else "post-norm"
    print(order, tuple(outputs[0].shape), "forward and gradient agree")

# %% [markdown]
# ## Writing
#
# Now the decoder works on its own words: **free running**.
# Encode once, start from `<s>`, take the most probable token, read it, go on until `</s>` (or until 20 tokens, should it never come).
# (Drawing a token at random, or following several at once, are for lesson [11](11_decoding.ipynb).)
# What do you expect in second place, after *Die Katze*?

# %%
probabilities, written = [], [bos_id]
with torch.no_grad():
    memory = model.encode(src)
    while written[-1] != eos_id and len(written) < 20:
        hidden = model.decode(torch.tensor([written], device=device), memory, src)
        probabilities.append(model.generator(hidden[0, -1]).softmax(dim=-1).cpu())
        best = probabilities[-1].topk(3)
        top = zip(best.values.tolist(), tokens(best.indices.tolist()), strict=True)
        print(f"{tokens(written)[-1]:8}", *(f"{p:8.2%} {name:10}" for p, name in top))
        written.append(best.indices[0].item())
assert written == [bos_id, *tgt_out] and tokenizer.decode(written) == german
rivals = tokens(probabilities[2].topk(3).indices[1:].tolist())
assert set(rivals) == {"▁sehen", "▁will"}
assert all(each.topk(2).values[1] < 0.05 for each in probabilities)
assert translator.translate(english, beam_size=1).text == german

# %% [markdown]
# On the left is the newest token that it has read, on the right are its three favorites for the next.
# After *Die Katze*, second and third are *sehen*, another form of the same verb, and *will* (wants): *Die Katze will den Hund sehen*.
# But whatever comes second is far behind.

# %%
from course_lib.figures import bars, stacked_bars
from course_lib.training import train_preset

taught = 100 * (1 - train_preset("mini").label_smoothing)  # the translator's recipe
rows = {}
for t, each in enumerate(probabilities):
    first, second, third = (100 * each.topk(3).values).tolist()
    parts = {"favorite": first, "second and third": second + third}
    parts["1,997 others"] = others = 100 - first - second - third
    rows[" → ".join(tokens([tgt_in[t], tgt_out[t]]))] = parts
    assert abs(first - taught) < 10 and second + third < others and len(each) == 2000
stacked_bars(
    rows,
    xlabel="probability of the next token (%)",
    title="The favorite takes about 90 %, 1,997 others share most of the rest",
)

# %% [markdown]
# Why never near 100 %?
# Training asked for 90 % on the right token and spread the rest over all: label smoothing (section 5.4; lesson [09](09_training.ipynb)).
#
# Go through it step by step, with this sentence or one of your own.
# What does the decoder look at when it chooses the noun, and what when it chooses its article?

# %%
from course_lib.widgets import DecoderStepper

stepper = DecoderStepper(translator, english, step=3)
assert stepper.view["text"] == german and stepper.view["predicted"] == tokens(tgt_out)
stepper

# %% [markdown]
# ## Teacher forcing against free running
#
# For this sentence, teacher forcing predicted what free running writes.
# Is that always so?
# We take 200 sentences of the course corpus and do both.

# %%
from course_lib import greedy
from course_lib.data import load_course

corpus = load_course(num_train=1, num_valid=1, num_test=200, seed=1).test
many = make_batch(encode_pairs(tokenizer, corpus)).to(device)
with torch.no_grad(), record_attention(model) as many_maps:
    guesses = model(many.src, many.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = many.tgt_out != 0
correct = (guesses == many.tgt_out) | ~real
forced_right = correct.all(dim=1).tolist()
outputs = [hypothesis.ids for hypothesis in greedy(model, many.src)]
references = [tokenizer.encode(pair.tgt) for pair in corpus]
free_right = [ids == right for ids, right in zip(outputs, references, strict=True)]
print(f"right: {sum(forced_right)} teacher forced, {sum(free_right)} free running")
assert forced_right == free_right and sum(free_right) > 180

# %% [markdown]
# The same sentences are right, token for token.
# It must be so: as long as every prediction is right, the decoder reads the true tokens either way.
# After a first mistake the two part: free running goes on from the mistake, teacher forcing puts the true token back.
# We look at the sentences where that made a difference.

# %%
parted = 0
for number, (pair, ids) in enumerate(zip(corpus, outputs, strict=True)):
    forced, text = guesses[number][real[number]].tolist(), tokenizer.decode(ids)
    if free_right[number] or tokenizer.decode(forced) == text:
        continue
    parted += 1
    mistake = correct[number].tolist().index(False)
    assert ids[:mistake] == forced[:mistake]
    print(f"{pair.src}\n  right   {pair.tgt}\n  free    {text}")
    print(f"  forced  {tokenizer.decode(forced)}")
assert parted > 0

# %% [markdown]
# Up to the first mistake both are the same, as they must be.
# Behind it, each position of teacher forcing answers a text that nobody wrote.
#
# **A common mistake**: BLEU from teacher-forced predictions.
# Whoever scores a translator lets it run free.
#
# ## Which token does a row explain?
#
# Back to the map of the encoder-decoder attention.
# Its row *t* is made by the query at position *t*.
# That position has read one token, and it predicts another.
# With which of the two should we label the row?
# Compare *Katze* in both pictures.

# %%
best = [source[key] for key in cross_map.argmax(dim=1).tolist()]  # for each row
for row, word in ((1, "▁cat"), (2, "▁sees"), (4, "▁dog")):
    assert best[row] == word and best[row + 1] != word
assert tokens([tgt_out[row] for row in (1, 2, 4)]) == ["▁Katze", "▁sieht", "▁Hund"]
look = ("weights", "source: key", "target: query")
shown = [
    Panel(cross_map, tokens(tgt_in), source, "rows named by what they read", *look),
    Panel(cross_map, tokens(tgt_out), source, "rows named by what they predict", *look),
]
panels(shown, title="One map, named twice: what a row predicts is what it looks up")

# %% [markdown]
# The row of `▁Katze`, read, points at *sees*: the decoder is already looking for the verb.
# The row that predicts `▁Katze` points at *cat*.
#
# **A common mistake**: "row *t* explains word *t*."
# Query *t* holds y_t and predicts y_{t+1}, where y_0 is `<s>`.
# So name the row by the token that it predicts, or say which you mean.
#
# One sentence proves little.
# The grammar of the course corpus knows which words belong together: `links`, pairs of an English and a German position.
# First we carry them over from words to tokens.


# %%
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


# %%
links = [token_links(pair) for pair in corpus]
for pair in corpus:
    for text, text_words in ((pair.src, pair.src_words), (pair.tgt, pair.tgt_words)):
        glued = [""] * len(text_words)
        for word, piece in zip(word_of(text), tokenizer.tokens(text), strict=True):
            glued[word] += piece.removeprefix("▁")
        assert glued == list(text_words)

# %% [markdown]
# Glued together again, the tokens give back the grammar's words, in all 200 pairs.
#
# The test: take a row's largest weight.
# Is that source token linked with the token that the row *predicts*?
# And with the one that it *reads*?
# We ask it of every row for which both are real tokens with a link, in 200 sentences.
# Chance is what a source token drawn at random would score on the same rows.
# Predict the shares before you run it.


# %%
def agreement(weights):
    """Shares of rows whose largest weight is on a link of what they predict, or read.

    The third is chance: the same for reading, with a source token drawn at random.
    """
    hits = []
    for each, linked in zip(weights, links, strict=True):
        count, width = linked.shape
        best = each[1:count, :width].argmax(dim=1)  # row t reads t - 1, predicts t
        rows, linkable = torch.arange(count - 1), linked.any(dim=1)
        found = [linked[1:][rows, best], linked[:-1][rows, best]]
        found = torch.stack([*found, linked[:-1].double().mean(dim=1)], dim=1)
        hits.append(found[linkable[1:] & linkable[:-1]])
    return torch.cat(hits).mean(dim=0).tolist()


# %%
averaged = many_maps.cross[-1].mean(dim=1).cpu()  # the last layer, as above
by_predicted, by_read, chance = agreement(averaged)
assert by_predicted > 0.8 and by_read < chance < 0.2
bars(
    ["named by what it predicts", "named by what it reads", "drawn at random"],
    [100 * by_predicted, 100 * by_read, 100 * chance],
    xlabel="rows whose largest weight is on a linked source token (%)",
    title="A row of the map belongs to the token that it predicts",
)

# %% [markdown]
# Read the wrong way, the map is no better than chance.
# We chose the mean over the heads of the last layer, before looking.
# Does the finding depend on it?

# %%
print("            predicts   reads")
for number, layer in enumerate(many_maps.cross):
    for head, weights in enumerate(layer.cpu().unbind(dim=1)):
        shares = agreement(weights)
        print(f"layer {number} head {head}{shares[0]:8.0%}{shares[1]:8.0%}")
        assert shares[0] > shares[1] + 0.2

# %% [markdown]
# Every head of both layers says the same.
# Here they all are, for a sentence of your own: point at a German token, and see what was looked at to predict it.

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, english, kind="cross")
assert explorer.view["text"] == german and explorer.view["tgt"] == tokens(tgt_out)
explorer

# %% [markdown]
# **A common mistake** in published plots: the source tokens stand on the axis of the target.
# *The old woman gives the child a red apple.* and its translation have eleven tokens each, so no shape warns us.
# But one axis can be told from the other. How?

# %% tags=["nbval-check-output"]
sentence = "The old woman gives the child a red apple."
seen = translator.translate(sentence, attention=True)
weights = seen.attention.cross[-1].mean(dim=0).cpu()  # (tgt_len, src_len)
assert weights.shape == (len(seen.tgt_tokens), len(seen.src_tokens)) == (11, 11)
for name, each in (("as recorded", weights), ("transposed", weights.T)):
    sums_to_one = (each.sum(dim=1) - 1).abs() < 1e-6
    print(f"{name:12}{int(sums_to_one.sum()):3} of 11 rows sum to 1")
    assert sums_to_one.all() == (name == "as recorded")

# %% [markdown]
# Queries share out their attention, so the *query* axis is the one along which the sums are 1.
# Rows are target queries, columns are source keys: tgt_len × src_len.
#
# ## Break it: queries and keys swapped
#
# What if the cross-attention asks the wrong way round, with queries from the memory and keys from the decoder?
# When both sentences have the same length, will anything fail?


# %%
def swapped_layer(layer, x, memory, tgt_mask, memory_mask):
    def attend_self(x):
        return multi_head(layer.self_attn, x, x, tgt_mask)

    def attend_memory(x):
        return multi_head(layer.cross_attn, memory, x, None)  # wrong way round

    x = add_and_norm(layer.self_attn_path, x, attend_self)
    x = add_and_norm(layer.cross_attn_path, x, attend_memory)
    path, net = layer.feed_forward_path, layer.feed_forward
    return add_and_norm(path, x, lambda x: feed_forward(net, x))


# %% tags=["nbval-check-output"]
memory, embedded = fresh.encode(src), fresh.tgt_embedding(one_in)
for length in (7, 6, 1):
    try:
        x = embedded[:, :length]
        output = swapped_layer(fresh.decoder.layers[0], x, memory, None, None)
        print(f"tgt_len {length}: runs, output {tuple(output.shape)}")
        assert length != 6
    except RuntimeError:
        print(f"tgt_len {length}: fails, 7 rows cannot be added to {length}")
        assert length == 6

# %% [markdown]
# With seven and seven it runs.
# With a single `<s>`, the first step of every translation, it runs as well: broadcasting makes seven rows out of one.
# The leak test of above sees it.
# In the picture, dark cells are those whose gradient is not exactly 0.


# %%
def future_gradients(layer_function, mask):
    """With respect to tgt_in, of the fresh decoder with another layer or mask."""

    def decode(x, memory):
        for layer in fresh.decoder.layers:
            x = layer_function(layer, x, memory, mask, None)
        return x

    return gradient_lengths(decode, embedded, memory, tgt_out)[0]


# %%
causal, future = causal_mask(7, device=device), ~causal_mask(7)[0, 0]
tests = {
    "right": future_gradients(decoder_layer, causal),
    "queries and keys swapped": future_gradients(swapped_layer, causal),
    "no causal mask": future_gradients(decoder_layer, None),
}
right, *wrong = tests.values()
assert (right[future] == 0).all() and all((each[future] > 0).all() for each in wrong)
rows, read = [f"predicts {token}" for token in tokens(tgt_out)], tokens(tgt_in)
shown = [Panel(each > 0, rows, read, name, "mask") for name, each in tests.items()]
panels(
    shown,
    title="Where a gradient gets through: both mistakes let the future in",
    words={"mask": ("gets through", "exactly 0")},
)

# %% [markdown]
# Swapped, every position mixes all target tokens, and the causal mask of the self-attention cannot prevent it.
#
# ## Break it: forget the causal mask
#
# The third panel is the other classic.
# Without the mask the model may read the answers while it trains, and finds none while it writes.
# So one parallel pass and the steps must disagree.
# At one position they still agree. Which?

# %%
with torch.no_grad():
    memory, x = model.encode(src), model.tgt_embedding(one_in)
    hidden = [model.decoder(x[:, :end], memory)[0] for end in range(1, 8)]  # no mask
    newest = torch.stack([each[-1] for each in hidden])  # (tgt_len, d_model)
    parallel, steps = model.generator(hidden[-1]), model.generator(newest)
differences = (parallel - steps).abs().amax(dim=1).tolist()
print("largest difference:", *(f"{difference:.1f}" for difference in differences))
print("parallel:    ", *tokens(parallel.argmax(dim=1).tolist()))
print("step by step:", *tokens(steps.argmax(dim=1).tolist()))
assert min(differences[:-1]) > 0.1 and differences[-1] < 1e-9
assert parallel.argmax(dim=1).tolist() != tgt_out

# %% [markdown]
# At the last one, which has no future.

# %% [markdown]
# ## Summary
#
# The decoder reads `<s>` and the target shifted right, and predicts the target up to and including `</s>`.
# Each of its layers has masked self-attention, attention to the memory, and a feed-forward network, each in a residual path with a norm.
# In the second of them, queries come from the decoder, and every layer projects keys and values of its own from the encoder's final output.
# Thanks to the causal mask one parallel pass gives what one step for each token would give, so training is parallel, and only translating goes token by token.
# Row *t* of a cross-attention map belongs to the token that position *t* predicts.
#
# **Practice**: [assignment 07](assignments/release/07_decoder/07_decoder.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [08](08_transformer.ipynb) puts embeddings, encoder, decoder and generator together.
