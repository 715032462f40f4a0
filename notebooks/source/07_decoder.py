# %% [markdown]
# # 07 · The decoder: one token after another
#
# **Question.** A decoder writes German one token after another. Where in the English sentence does it look for each token, and how can one pass train it on all of them?
#
# **Afterwards you can**
#
# 1. shift a target right, and say what each position may see and what it must predict;
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

from course_lib import Transformer, Translator, greedy, record_attention
from course_lib.figures import Panel, panels
from course_lib.masks import causal_mask, padding_mask
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.to(device).double(), translator.tokenizer
PAD_ID, BOS_ID, EOS_ID = range(3)  # as in lesson 01

# %% [markdown]
# ## What the decoder must do
#
# We take the small `course` translator apart.
# Its encoder runs once, and turns the English sentence into the memory.
# Its decoder then writes the German sentence, one token at a time.
# At each step it sees the memory and all that it has written so far, and predicts one more token.
# A model that predicts each token from those before it is **autoregressive** (section 3 of the paper).

# %%
of_count = Predict(
    "*Die Katze sieht den Hund.* has six tokens. How many predictions does it take?",
    section="What the decoder must do",
)
of_count

# %% [markdown]
# Watch the translator write.
# It always takes the most probable token (greedy decoding, lesson [11](11_decoding.ipynb)).
# `decode` is the decoder, `generator` makes logits from its last vector; this lesson opens both.

# %% tags=["nbval-check-output"]
english, german = "The cat sees the dog.", "Die Katze sieht den Hund."


def tokens(ids):
    return [tokenizer.token(i) for i in ids]


src = torch.tensor([[*tokenizer.encode(english), EOS_ID]], device=device)
written = [BOS_ID]
with torch.no_grad():
    memory = model.encode(src)  # once
    while written[-1] != EOS_ID and len(written) < 20:
        so_far = torch.tensor([written], device=device)
        y = model.decode(so_far, memory, src)  # src: only for its padding mask
        token = model.generator(y[0, -1]).argmax().item()  # the most probable one
        print(f"{' '.join(tokens(written)):40} → {tokenizer.token(token)}")
        written.append(token)
of_count.reveal(len(written) - 1, because="the end is predicted too")

# %% tags=["hide-input"]
assert written == [BOS_ID, *tokenizer.encode(german), EOS_ID]
assert tokenizer.decode(written) == german

# %% [markdown]
# Each line adds a position, which stands between two tokens.
# It *reads* the newest one on the left, *sees* that and all before it, and must *predict* the one on the right.
# Training, leak tests and attention maps depend on keeping these apart.
#
# `<s>` is there to start from: without any token there would be no position, and nothing to predict from.
# With `</s>` the decoder says that it is done.
# Reading its own output is called **free running**.
#
# First we look from outside: what goes in, what comes out, and how one pass trains it.
# Then inside: cross-attention, and the layer around it.
# Then come two tests.
#
# ## Shifted right
#
# To train, we do not let the model write: the right translation is known.
# So both tokens of each position can be prepared in advance: those to read, `tgt_in`, and those to predict, `tgt_out`.

# %% tags=["nbval-check-output"]
target = tokenizer.encode(german)
tgt_in, tgt_out = [BOS_ID, *target], [*target, EOS_ID]
one_in = torch.tensor([tgt_in], device=device)  # (1, tgt_len)
for name, ids in (("tgt_in ", tgt_in), ("tgt_out", tgt_out)):
    print(name, *(f"{token:7}" for token in tokens(ids)))

# %% [markdown]
# What is predicted at one position is read at the next, so the input is the target **shifted right** (figure 1 of the paper).
# `make_batch` does this for many pairs, and fills up the shorter sentences with `<pad>`.
# (The folded cell makes `batch`, of our pair and two others.)

# %% tags=["hide-input"]
from course_lib.data import Pair, encode_pairs, make_batch

pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair(english, german),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
]
batch = make_batch(encode_pairs(tokenizer, pairs)).to(device)
assert torch.equal(one_in, batch.tgt_in[1:2])
assert (tgt_in, tgt_out) == (one_in[0].tolist(), batch.tgt_out[1].tolist())
assert tgt_in[1:] == tgt_out[:-1] and torch.equal(src, batch.src[1:2])
assert (batch.tgt_in[:, 0] == BOS_ID).all() and BOS_ID not in batch.tgt_out
assert (batch.tgt_in[0] == PAD_ID).sum() == 2

# %% [markdown]
# The causal mask of lesson [05](05_masks.ipynb) lets each position see itself and all before it: with the shift, that is every token before the one to predict.
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
of_answers.reveal(len(tgt_out), because="the mask hides no position from itself")

# %% tags=["hide-input"]
assert len(tgt_out) == 7 and causal_mask(7)[0, 0].diagonal().all()
assert all(read != answer for read, answer in zip(tgt_in, tgt_out, strict=True))

# %% [markdown]
# A model trained so can copy instead of translating (lesson [08](08_transformer.ipynb) trains some).
#
# ## From vectors to tokens
#
# Now the decoder reads all of `tgt_in` at once, and ends with a vector for each position.
# The **generator** multiplies it by a matrix of d_model × vocab, which gives one logit for each token of the vocabulary (section 3.4 of the paper).
# In our translator, as in the paper, this is the transposed embedding matrix (weight tying, lesson [08](08_transformer.ipynb)).
#
# A softmax turns the logits into probabilities.
# The paper's figure 1 draws it inside the model; our `Transformer` returns logits, because the loss, `F.cross_entropy`, has a softmax of its own.
# (Do not apply one before it: nothing crashes, but even a perfect model's loss stays at 6.60, near the 7.60 of guessing evenly among 2,000 tokens; folded below.)
#
# At each position, we look at the most probable token.

# %%
with torch.no_grad():
    y = model.decode(one_in, memory, src)  # (batch, tgt_len, d_model)
    logits = y @ model.generator.weight.T  # (batch, tgt_len, vocab)
print("vectors", tuple(y.shape), " logits", tuple(logits.shape))
top, runner_up = logits.softmax(dim=-1)[0].topk(2).values.T  # (tgt_len,) each
predicted = tokens(logits[0].argmax(dim=-1).tolist())
rows = {"reads": tokens(tgt_in), "predicts": predicted}
for name, column in (("p", top), ("second p", runner_up)):
    rows[name] = [f"{p:.1%}" for p in column.tolist()]
for name, row in rows.items():
    print(f"{name:9}", *(f"{entry:7}" for entry in row))

# %% tags=["hide-input"]
assert rows["predicts"] == tokens(tgt_out)
assert model.generator.weight is model.tgt_embedding.table.weight
with torch.no_grad():
    torch.testing.assert_close(model(src, one_in), logits, rtol=1e-9, atol=1e-9)
assert 0.8 < top.min() and top.max() < 0.97 and runner_up.max() < 0.0015

# %% tags=["hide-input"]
right = torch.tensor(tgt_out)
perfect = F.one_hot(right, tokenizer.vocab_size).double()  # probabilities
once = F.cross_entropy(1000 * perfect, right)  # logits far apart
twice = F.cross_entropy(perfect, right)  # probabilities taken for logits
assert once < 1e-9 and abs(twice - 6.60) < 0.005 and tokenizer.vocab_size == 2000
assert abs(math.log(tokenizer.vocab_size) - 7.60) < 0.005

# %% [markdown]
# The translator is right everywhere.
# Why does it give its top token only about 90 %?
# It is not doubt between two tokens: no other gets more than about 0.1 %.
# The likely reason is label smoothing (lesson [09](09_training.ipynb)): in training, the target was about 0.9, not 1.
#
# ## One pass or many?
#
# All seven predictions of the last section came out of *one* pass.
# Writing took seven passes, each one token longer.
# Feeding in the true tokens, whatever the model would have written, is called **teacher forcing** [@williams1989].
#
# The probability of a sentence is the product of its steps' probabilities, `</s>` included, so its loss is a sum:
#
# $$p(\text{tgt} \mid \text{src}) = \prod_t p(\text{tgt}_t \mid \text{tgt}_{<t},\, \text{src}) \qquad -\log p(\text{tgt} \mid \text{src}) = -\sum_t \log p(\text{tgt}_t \mid \text{tgt}_{<t},\, \text{src})$$
#
# Each row of `logits` gives one term.
# (In a batch, rows whose answer is `<pad>` are left out, lesson [09](09_training.ipynb).)

# %%
of_positions = Predict(
    "Seven passes, each over all tokens so far: how many positions is that in all?",
    section="One pass or many?",
)
of_positions

# %% [markdown]
# Does one pass over the true tokens give the same logits, loss and gradient as seven?

# %%
passes, computed = [], 0
with torch.no_grad():
    for length in range(1, len(tgt_out) + 1):
        y = model.decode(one_in[:, :length], memory, src)  # (1, length, d_model)
        passes.append(model.generator(y[0]))  # (length, vocab)
        computed += length
apart = max((each - logits[0, : len(each)]).abs().max() for each in passes)
print(f"logits of one pass and of seven: {apart:.0e} apart")
of_positions.reveal(computed, because="1 + 2 + … + 7")

# %%
one_out = batch.tgt_out[1]  # tgt_out, as a tensor
in_one_pass = F.cross_entropy(model(src, one_in)[0], one_out, reduction="sum")
in_seven = sum(  # of each pass, the newest prediction
    F.cross_entropy(model(src, one_in[:, : t + 1])[0, -1], one_out[t])
    for t in range(len(one_out))
)
print(f"loss of one pass {in_one_pass:.3f}, sum of the seven {in_seven:.3f}")

# %% tags=["hide-input"]
for each in passes:  # all positions, the newest and those computed again
    torch.testing.assert_close(each, logits[0, : len(each)], rtol=1e-9, atol=1e-9)
assert computed == sum(len(each) for each in passes) == 28
torch.testing.assert_close(in_one_pass, in_seven, rtol=1e-9, atol=1e-9)
of_sentence = top.log().sum()  # the top tokens are the answers
torch.testing.assert_close(-of_sentence, in_one_pass.detach(), rtol=1e-9, atol=1e-9)

# %% tags=["hide-input"]
parameters = list(model.parameters())
one_pass, seven_passes = (
    torch.autograd.grad(loss, parameters) for loss in (in_one_pass, in_seven)
)
gaps = [(a - b).abs().max() for a, b in zip(one_pass, seven_passes, strict=True)]
print(f"gradient of one pass and sum of the seven: {max(gaps):.0e} apart")

# %% tags=["hide-input"]
assert max(each.abs().max() for each in one_pass) > 0.1
torch.testing.assert_close(one_pass, seven_passes, rtol=1e-7, atol=1e-9)

# %% [markdown]
# It does, up to rounding (in float64, without dropout).
# The reason is the causal mask: position *t* cannot tell whether later tokens exist.
# The answers' probabilities in each pass (empty: not reached):

# %% tags=["hide-input"]
by_pass = torch.zeros(len(passes), len(tgt_out), dtype=torch.float64)
for row, each in zip(by_pass, passes, strict=True):
    p = each.softmax(dim=-1).cpu()  # (length, vocab)
    row[: len(each)] = p[range(len(each)), tgt_out[: len(each)]]

# %% tags=["hide-input"]
numbered = [f"pass {number}" for number in range(1, len(passes) + 1)]
figure = panels(
    [Panel(by_pass, numbered, tokens(tgt_out), "", "weights", "answer")],
    title="With the causal mask, a new token changes no earlier prediction",
    words={"weights": "probability of the answer"},
)
for text in (text for place in figure.axes for text in place.texts):
    column, row = text.get_position()
    text.set_visible(column <= row)  # the others are not computed
figure

# %% tags=["hide-input"]
for t, column in enumerate(by_pass.T):
    assert (column[t:] - column[t]).abs().max() < 1e-9 and column[t] > 0.8

# %% [markdown]
# With the mask no column changes, and the last row is the one pass: a model can be trained on all positions at once.
# In translation this does not help: the next token is not known until it is written.
#
# Without the mask, positions would see their own answers.
# A model trained so could learn to copy them, and would fail when it writes, with none to copy (lesson [05](05_masks.ipynb) trains some).
#
# Of the 28 positions, 21 had been computed before; lesson [11](11_decoding.ipynb) keeps their keys and values in a cache.
#
# ## Teacher forcing against free running
#
# For our sentence, both ways gave the same tokens.
# They can part only after a mistake, a prediction that differs from the reference (`tgt`).
# Here is one, and what both ways read and predict from there on:

# %% tags=["hide-input"]
from course_lib.data import load_course

# Some of the 200 pairs are in the translator's training part.
corpus = load_course(num_train=150, num_valid=1, num_test=200, seed=1)

# %% tags=["hide-input"]
many = make_batch(encode_pairs(tokenizer, corpus.test)).to(device)
with torch.no_grad(), record_attention(model) as many_maps:
    guesses = model(many.src, many.tgt_in).argmax(dim=-1)  # (batch, tgt_len)
real = many.tgt_out != PAD_ID
correct = (guesses == many.tgt_out) | ~real
outputs = [hypothesis.ids for hypothesis in greedy(model, many.src)]
references = [tokenizer.encode(pair.tgt) for pair in corpus.test]
forced = [ids[kept].tolist() for ids, kept in zip(guesses, real, strict=True)]

# %% tags=["hide-input"]
one = 63  # its first mistake has one clear consequence
mistake = correct[one].tolist().index(False)
free = [*outputs[one], EOS_ID]
ways_to_feed = {
    "teacher forcing": (references[one], forced[one]),
    "free running": (outputs[one], free),
}
for name in ("src", "tgt"):
    print(f"{name:16}{getattr(corpus.test[one], name)}")
for name, (fed_back, guessed) in ways_to_feed.items():
    print(f"{name:16}{tokenizer.decode(guessed)}")
    for what, ids in (("reads", [BOS_ID, *fed_back]), ("predicts", guessed)):
        shown_here = tokens(ids[mistake : mistake + 4])
        print(f"{what:>24}", *(f"{token:11}" for token in shown_here))

# %% tags=["hide-input"]
slips = {name: [] for name in ways_to_feed}
for name, (_, guessed) in ways_to_feed.items():
    for true, guess in zip([*references[one], EOS_ID], guessed, strict=True):
        if guess != true:
            slips[name].append((tokenizer.token(true), tokenizer.token(guess)))
assert slips["teacher forcing"] == [("▁zu", "▁in")]
assert slips["free running"] == [("▁zu", "▁in"), ("▁diesem", "▁diesen")]
for number, true in enumerate(references):  # both ways are the same up to a mistake
    same = [*correct[number].tolist(), False].index(False)
    assert [*outputs[number], EOS_ID][:same] == forced[number][:same]
    assert (outputs[number] == true) == bool(correct[number].all())

# %% [markdown]
# Both ways predict *in*, where the reference has *zu*.
# Teacher forcing is handed the true *zu*, and goes on with *diesem*.
# Free running has to read its own *in*, and goes on with *diesen*.
# (*In* with a direction takes the accusative *diesen*, *zu* the dative *diesem*.)
# So the teacher-forced line is not a translation: its *diesem* goes with a *zu* that it did not write.
# Against the reference, teacher forcing has one wrong token, free running two: the first slip caused the second.
#
# **A common mistake**: scoring a translator by how many tokens it predicts right with teacher forcing.
# There the reference corrects it after each mistake.
# In use it must go on from its own mistakes, and training on true tokens has never shown it one.
# This is called **exposure bias** [@ranzato2016].
# One sentence cannot tell how much harm it does.
#
# ## Attention between two sentences
#
# Now we open the decoder. How does the memory get in?
# By attention between two sequences (lesson [03](03_attention.ipynb)): each German position sends a query, and each English token offers a key and a value.
# This is cross-attention; the paper calls it encoder-decoder attention (section 3.2.3).
#
# Which sizes must agree?
# We try sizes that all differ, with numbers drawn by `random` (folded).

# %% tags=["hide-input"]
draws = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


# %% tags=["nbval-check-output"]
x, toy_memory = random(3, 6), random(7, 8)  # (tgt_len, width), (src_len, width)
W_Q, W_K, W_V = random(6, 4), random(8, 4), random(8, 5)  # d_k = 4, d_v = 5
query, key, value = x @ W_Q, toy_memory @ W_K, toy_memory @ W_V
weights = (query @ key.T / math.sqrt(4)).softmax(dim=-1)
context = weights @ value
print("weights", tuple(weights.shape), "= tgt_len × src_len")
print("context", tuple(context.shape), "= tgt_len × d_v")

# %% tags=["hide-input"]
from course_lib.attention import MultiHeadAttention, attention

looped = torch.zeros(3, 5, dtype=torch.float64)
for t in range(3):  # one query at a time
    scores = torch.stack([query[t] @ key[s] / math.sqrt(4) for s in range(7)])
    for s, weight in enumerate(scores.exp() / scores.exp().sum()):
        looped[t] += weight * value[s]
theirs, _ = attention(query, key, value)
torch.testing.assert_close(context, looped, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(context, theirs, rtol=1e-9, atol=1e-12)
assert weights.shape == (3, 7) and context.shape == (3, 5)

# %% [markdown]
# The result has one row for each *query*: it is as long as the target, whatever the length of the source.
# W_Q fits the decoder's width, W_K and W_V fit the memory's (in the paper, both are d_model).
# Only d_k must be the same on both sides, because a query and a key meet in a dot product.
#
# Now our sentence in the trained translator:

# %%
of_row = Predict(
    "One position has just read `▁Katze` and must predict `▁sieht`. "
    "Which English token gets most of its attention?",
    ["cat", "sees"],
    section="Attention between two sentences",
)
of_row

# %% [markdown]
# Here is the cross-attention for our sentence (the mean of the four heads of the last layer):

# %% tags=["hide-input"]
from itertools import pairwise

with torch.no_grad(), record_attention(model) as maps:
    model.decode(one_in, memory, src)
# Last layer, mean over its heads: (tgt_len, src_len).
cross_map, source = maps.cross[-1][0].mean(dim=0).cpu(), tokens(src[0].tolist())
read_and_predicted = [
    f"{read} → {predicts}" for read, predicts in pairwise(tokens(written))
]
axes = "weights", "source: key", "target: query (reads → predicts)"
panels(
    [Panel(cross_map, read_and_predicted, source, "", *axes)],
    title="Rows: German positions; columns: English tokens",
)

# %% tags=["hide-input"]
top_keys = [source[key] for key in cross_map.argmax(dim=1).tolist()]  # for each row
because = f"its weight is {cross_map[2].max():.2f}"
of_row.reveal(top_keys[2].removeprefix("▁"), because=because)
assert (tokens(written[2:4]), top_keys[2]) == (["▁Katze", "▁sieht"], "▁sees")
assert (tokens([written[2], written[5]]), top_keys[1]) == (["▁Katze", "▁Hund"], "▁cat")
assert cross_map[[1, 2, 4], [1, 2, 4]].min() > 0.97 and top_keys[4] == "▁dog"

# %% [markdown]
# The position looks at *sees*, whose translation it will write next, and not at *cat*, whose translation it has just read.
#
# ## The decoder layer
#
# Cross-attention is the second of the layer's three sub-layers.
# At each position, each sub-layer answers one question:
#
# 1. *self-attention*: what has been written so far? (queries, keys and values from the target)
# 2. *cross-attention*: what in the source matters now? (queries from the target, keys and values from the memory)
# 3. *feed-forward network*: what follows from both? (each position on its own)
#
# Cross-attention comes after self-attention, so its query is made from all that has been written.
# Without cross-attention, the layer is that of a decoder-only model such as GPT (lesson [16](16_one_block_many_models.ipynb)): an encoder layer with a causal mask.
# Here are the shapes for three target tokens, `<s> Die Katze`, and a source of seven tokens.
# (They are from `fresh`, a small Transformer with random weights: two layers, d_model = 16.)

# %% tags=["hide-input"]
torch.manual_seed(0)
small = replace(model.config, d_model=16, num_heads=2, d_ff=32, norm_first=False)
fresh = Transformer(small).double().eval()
with torch.no_grad():
    for parameter in fresh.parameters():  # biases of 0 would hide mistakes
        parameter.add_(0.3 * torch.randn_like(parameter))
fresh = fresh.to(device)

# %% tags=["hide-input"]
their_layer = fresh.decoder.layers[0]
with torch.no_grad(), record_attention(fresh) as three:
    start = one_in[:, :3]
    into = fresh.tgt_embedding(start)  # (1, tgt_len, d_model)
    small_memory = fresh.encode(src)
    fresh.decode(start, small_memory, src)
    out = their_layer(into, small_memory, causal_mask(3, device=device))
own_weights, memory_weights = three.decoder[0][0, 0], three.cross[0][0, 0]

# %% tags=["hide-input"]
from course_lib.figures import Block, flow_figure

size, inner = tuple(into.shape[1:]), (into.shape[1], small.d_ff)
names = "x (target)", "memory (source)"
own, cross = "x₁", "x₂"
own_map = "masked self-attention:\ntarget × target"
memory_map = "cross-attention:\ntarget × source"
sentence = english.replace(" sees the ", "\nsees the\n").replace(".", " . </s>")
shown = [
    Block(own_map, tuple(own_weights.shape), "weights", (0.9, 0), "weights"),
    Block(names[0], size, "<s> Die Katze", (0, 1.3)),
    Block(own, size, "after self-attention", (1.9, 1.3)),
    Block(names[1], tuple(small_memory[0].shape), sentence, (2.12, 0)),
    Block(memory_map, tuple(memory_weights.shape), "weights", (3.35, 0), "weights"),
    Block(cross, size, "after cross-attention", (4.2, 1.3)),
]

# %% tags=["hide-input"]
shown += [
    Block("inner", inner, "target × d_ff", (5.05, 0)),
    Block("out", tuple(out[0].shape), "target × d_model", (5.9, 1.3), "result"),
]
through = "weights\n× values"
residual = pairwise((names[0], own, cross, "out"))
arrows = [(names[0], own_map, "queries,\nkeys, values"), (own_map, own, through)]
arrows += [(own, memory_map, "queries"), (names[1], memory_map, "keys,\nvalues")]
arrows += [(memory_map, cross, through), (cross, "inner", "up, ReLU")]
arrows += [("inner", "out", "down"), *((*way, "add & norm") for way in residual)]
flow_figure(shown, arrows, title="The memory enters a layer as keys and values only")

# %% tags=["hide-input"]
assert own_weights.shape == (3, 3) and memory_weights.shape == (3, 7)
assert out.shape == (1, 3, 16)
assert len({block.size[0] for block in shown if block.shape[1] >= 7}) == 1
with torch.no_grad():  # along the arrows: x₁, x₂ and out
    to_self = their_layer.self_attn(into, into, into, causal_mask(3, device=device))
    x_1 = their_layer.self_attn_path.norm(into + to_self)
    to_memory = their_layer.cross_attn(x_1, small_memory, small_memory)
    x_2 = their_layer.cross_attn_path.norm(x_1 + to_memory)
    at_end = their_layer.feed_forward_path.norm(x_2 + their_layer.feed_forward(x_2))
torch.testing.assert_close(at_end, out, rtol=1e-9, atol=1e-10)

# %% [markdown]
# A blue box is an attention, with the size of one head's weights; *add & norm* marks the residual paths of lesson [06](06_encoder.ipynb) (`fresh` is post-norm).
# (Sides of 7 and more are drawn equally long.)
# x comes out with the shape that it had, so layers can be stacked.
#
# Each attention has its own mask.
# Only self-attention passes anything from one German position to another.
# So it alone gets the causal mask, with the target's padding mask.
# (With `<pad>` at the end, the causal mask already hides it from real positions.)
# Cross-attention gets only the source's padding mask: it may look at the whole source, which is complete before the first German token is written.

# %%
from course_lib.blocks import FeedForward, Residual

src_mask = padding_mask(batch.src, PAD_ID)  # (batch, 1, 1, src_len)
future_mask = causal_mask(batch.tgt_in.shape[1], device=device)
tgt_mask = padding_mask(batch.tgt_in, PAD_ID) & future_mask

# %% tags=["hide-input"]
of_real = batch.tgt_in != PAD_ID  # with <pad> at the end, for these both masks agree
assert torch.equal(tgt_mask[:, 0][of_real], future_mask[:, 0].expand(3, 7, 7)[of_real])

# %% [markdown]
# Here is the layer in code, with its three residual paths.


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
# Is it the same function as the library's layer and `torch.nn.TransformerDecoderLayer`?
# We compare them on random inputs with the batch's masks, in both orders of norms.

# %% tags=["hide-input"]
from course_lib.checks import copy_into_torch

hidden = {"tgt_mask": ~future_mask[0, 0]}  # in PyTorch's layer, True means hidden
hidden["tgt_key_padding_mask"] = batch.tgt_in == PAD_ID
hidden["memory_key_padding_mask"] = batch.src == PAD_ID

# %% tags=["hide-input"]
compared = []
for net in (fresh, model):
    their_layer, config = net.decoder.layers[0], net.config
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
for inputs, *layers_out in compared:
    grads = [torch.autograd.grad(out.square().sum(), inputs) for out in layers_out]
    for other, grad in zip(layers_out[1:], grads[1:], strict=True):
        torch.testing.assert_close(other, layers_out[0], rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(grad, grads[0], rtol=1e-9, atol=1e-8)

# %% tags=["hide-input"]
cut_off = OurDecoderLayer(16, 2, 32, 0.0).to(device).double()
cut_off.load_state_dict(fresh.decoder.layers[0].state_dict())
with torch.no_grad():  # without its keys and values, the memory has no way in
    kept = [cut_off(into, each) for each in (small_memory, -small_memory)]
    for projection in (cut_off.cross_attn.key_proj, cut_off.cross_attn.value_proj):
        for parameter in projection.parameters():
            parameter.zero_()
    assert torch.equal(cut_off(into, small_memory), cut_off(into, -small_memory))
assert not torch.equal(*kept)

# %% [markdown]
# In evaluation mode it is, up to rounding, gradients included (folded).
#
# ### One memory for all layers
#
# The encoder has several layers, too.
# Which of them does decoder layer 0 see? The last, as every decoder layer does:

# %% tags=["hide-input"]
first, second = ("encoder\nlayer 0", "encoder\nlayer 1")
readers = ("decoder\nlayer 0", "decoder\nlayer 1")
places = [(first, (0, 0.6)), (second, (1, 0.6)), ("final\nnorm", (2, 0.6))]
places += [(readers[0], (5, 0)), (readers[1], (5, 1.2))]
parts = [Block(name, (), "", at, "step") for name, at in places]
parts.append(Block("memory", tuple(memory[0].shape), "source × d_model", (3, 0.6)))
ways = [(first, second, ""), (second, "final\nnorm", ""), ("final\nnorm", "memory", "")]
ways += [("memory", reader, "keys and values, own W_K, W_V") for reader in readers]
ways.append((*readers, "x"))
flow_figure(parts, ways, title="Every decoder layer sees the same memory")

# %% tags=["hide-input"]
with torch.no_grad():
    encoded = model.src_embedding(batch.src)
    for encoder_layer in model.encoder.layers:
        encoded = encoder_layer(encoded, src_mask)
    last = model.encoder.norm(encoded)
    torch.testing.assert_close(last, model.encode(batch.src), rtol=1e-9, atol=1e-10)
key_weights = [layer.cross_attn.key_proj.weight for layer in model.decoder.layers]
assert not torch.equal(*key_weights) and len(model.encoder.layers) == 2

# %% [markdown]
# So the memory is the last encoder layer's output (section 3.2.3; in a pre-norm model like `course`, after the final norm).
# From it, each decoder layer makes keys and values of its own.
# The decoder is a loop over its layers:

# %%
with torch.no_grad():
    memories = model.encode(batch.src)  # (batch, src_len, d_model)
    x = model.tgt_embedding(batch.tgt_in)  # (batch, tgt_len, d_model)
    for layer in model.decoder.layers:
        x = layer(x, memories, tgt_mask, src_mask)
    x = model.decoder.norm(x)  # pre-norm only
    whole = model.decode(batch.tgt_in, memories, batch.src)
print(f"the loop and decode: {(x - whole).abs().max():.0e} apart")

# %% tags=["hide-input"]
torch.testing.assert_close(x, whole, rtol=1e-9, atol=1e-10)

# %% tags=["hide-input"]
# what decode takes from the source's ids: where padding is, and nothing else
other_src, padded = batch.src[2:3], src.clone()
padded[0, -1] = PAD_ID  # instead of </s>
with torch.no_grad():
    as_it_is = model.decode(one_in, memory, src)
    assert torch.equal(model.decode(one_in, memory, other_src), as_it_is)
    for its_memory, ids in ((memory, padded), (model.encode(other_src), src)):
        assert (model.decode(one_in, its_memory, ids) - as_it_is).abs().max() > 0.2

# %% [markdown]
# **A common mistake**: "keys and values come from the corresponding encoder layer" (lesson [18](18_errata_lab.ipynb) tests it).
#
# A change of the source reaches the target through the memory alone; the ids of the source only say which keys are padding (folded).
#
# ## Does anything leak?
#
# One pass equals seven only if nothing leaks, and a forgotten mask raises no error.
# So we test: if one input vector moves a little, which answers feel it?
# The gradient tells us for each input and answer.
# A gradient norm above 0 at a later input is a leak; exactly 0 at every later input is what a tight decoder gives.
# The test cannot show a forgotten shift: there each position reads its own answer, and no later input is needed.
# For that, compare `tgt_in[1:]` with `tgt_out[:-1]`.
# A leak is in the wiring, so random weights will do.
# We test `fresh`, at position 2: it has read `▁Katze` and must predict `▁sieht`.

# %%
x = fresh.tgt_embedding(one_in).detach().requires_grad_()  # (1, tgt_len, d_model)
y = fresh.decoder(x, fresh.encode(src), future_mask, src_mask[1:2])
answer = fresh.generator(y)[0, 2].log_softmax(dim=-1)[tgt_out[2]]  # its log p
felt = torch.autograd.grad(answer, x)[0][0].norm(dim=-1)  # (tgt_len,)
rows = {"input": tokens(tgt_in), "norm": [f"{each:.2g}" for each in felt]}
for name, row in rows.items():
    print(f"{name:9}", *(f"{entry:7}" for entry in row))

# %% tags=["hide-input"]
assert (felt[:3] > 0).all() and (felt[3:] == 0).all()
assert (tokens(tgt_in)[2], tokens(tgt_out)[2]) == ("▁Katze", "▁sieht")
own_answer = torch.tensor([tgt_out], device=device)  # the shift forgotten: all still 0
x = fresh.tgt_embedding(own_answer).detach().requires_grad_()
y = fresh.decoder(x, fresh.encode(src), future_mask, src_mask[1:2])
log_p = fresh.generator(y)[0].log_softmax(dim=-1)[range(7), tgt_out]
for t, each in enumerate(log_p):
    unshifted = torch.autograd.grad(each, x, retain_graph=True)[0][0].norm(dim=-1)
    assert (unshifted[: t + 1] > 0).all() and (unshifted[t + 1 :] == 0).all()

# %% [markdown]
# The folded cells do this for every answer, and for three decoders with the weights of `fresh`:
#
# - the right one;
# - one without the causal mask;
# - one with the causal mask, but with its cross-attention the wrong way round.
#
# Source and target have seven tokens each, so no shape warns us.


# %%
class Swapped(OurDecoderLayer):
    def forward(self, x, memory, tgt_mask=None, src_mask=None):
        x = self.self_attn_path(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        # Wrong: the queries are from the memory, the keys and values from the target.
        x = self.cross_attn_path(x, lambda x: self.cross_attn(memory, x, x, src_mask))
        return self.feed_forward_path(x, self.feed_forward)


# %%
of_leaks = Predict(
    "Which of the two wrong decoders can see the future?",
    ["only the one without a causal mask", "both"],
    section="Does anything leak?",
)
of_leaks


# %% tags=["hide-input"]
def gradients(kind, mask):
    """(answers, inputs): norms of the gradients of each answer's log p."""
    x = fresh.tgt_embedding(one_in).detach().requires_grad_()
    y, memory = x, fresh.encode(src)
    for their_layer in fresh.decoder.layers:
        layer = kind(16, 2, 32, 0.0).to(device).double()
        layer.load_state_dict(their_layer.state_dict())
        y = layer(y, memory, mask, src_mask[1:2])
    answers = fresh.generator(y)[0].log_softmax(dim=-1)[range(7), tgt_out]
    rows = [torch.autograd.grad(each, x, retain_graph=True)[0][0] for each in answers]
    return torch.stack(rows).norm(dim=-1).cpu()


# %% tags=["hide-input"]
found = {
    "right": gradients(OurDecoderLayer, future_mask),
    "no mask": gradients(OurDecoderLayer, None),
    "swapped": gradients(Swapped, future_mask),
}
future = ~causal_mask(7)[0, 0]
ahead = {name: answers[future] for name, answers in found.items()}
print("gradient norms, 21 pairs of an answer and a later input")
for name, each in ahead.items():
    above = f"{(each > 0).sum():2} of {len(each)} above 0"
    print(f"{name:9}{above}; the largest is {each.max():.2g}")
both = all((ahead[name] > 0).all() for name in ("no mask", "swapped"))
of_leaks.reveal(of_leaks.choices[both])

# %% tags=["hide-input"]
assert (ahead["right"] == 0).all() and (found["right"][~future] > 0).all()
torch.testing.assert_close(found["right"][2], felt.cpu(), rtol=1e-9, atol=1e-12)
assert both and min(ahead[name].max() for name in ("no mask", "swapped")) > 0.05

# %% [markdown]
# Without the mask, self-attention leaks.
# In the swapped decoder it is cross-attention, which now joins German positions and has no causal mask.
#
# ## Which token does a row explain?
#
# Should the token read or the token predicted label a row of a cross-attention map?
# In the first map, the token predicted fits: the row `▁Die → ▁Katze` looks at *cat*.
#
# **A common mistake**: drawing a map without saying which token labels its rows.
# Labeled by the token read, `▁Katze` seems to look at *sees*.
#
# The course corpus records links: which source and target words belong together.
# So we check other rows: is the source token with the largest weight linked to the token predicted, or to the token read?
# (It can be linked to both: the tokens of one word share its links.)
# We take every row whose two tokens both have links, in 200 sentences, some from training (last layer, mean of heads).


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
links = [token_links(pair) for pair in corpus.test]
last_maps = many_maps.cross[-1].mean(dim=1).cpu()  # the last layer, as above
duck = 59  # "The old duck is white.": the tokens of one word share its links
duck_src = tokens(many.src[duck].tolist())
linked_to = [" ".join(duck_src[at] for at in row.nonzero()) for row in links[duck]]
assert tokens(many.tgt_out[duck].tolist())[2:4] == ["▁En", "te"]
assert linked_to == ["▁The", "▁old", "▁duck", "▁duck", "▁is", "▁white", "."]


# %% tags=["hide-input"]
def agreement(weights):
    """(rows, 4): is the largest weight on a link of what the row must predict, and of
    what it reads? And the chances of a source token drawn at random.
    """
    hits = []
    for each, linked in zip(weights, links, strict=True):
        count, width = linked.shape
        top = each[1:count, :width].argmax(dim=1)  # row t reads t - 1, predicts t
        at, sides = torch.arange(count - 1), (linked[1:], linked[:-1])
        in_row = [side[at, top].double() for side in sides]
        in_row += [side.double().mean(dim=1) for side in sides]
        linkable = sides[0].any(dim=1) & sides[1].any(dim=1)
        hits.append(torch.stack(in_row, dim=1)[linkable])
    return torch.cat(hits)


# %% tags=["hide-input"]
hits = agreement(last_maps)
predicted_fits, read_fits = hits[:, :2].bool().T
fits = {
    "only the token predicted": predicted_fits & ~read_fits,
    "both": predicted_fits & read_fits,
    "only the token read": read_fits & ~predicted_fits,
    "neither": ~(predicted_fits | read_fits),
}
print(f"{len(hits)} rows; the largest weight is on a token linked to")
for name, each in fits.items():
    print(f"{name:26}{each.sum():5}")
heads = [head for layer in many_maps.cross for head in layer.cpu().unbind(dim=1)]
shares = torch.stack([agreement(head)[:, :2].mean(dim=0) for head in heads])
favoring = (shares[:, 0] > shares[:, 1]).sum()
print(f"heads that favor the token predicted: {favoring} of {len(heads)}")

# %% tags=["hide-input"]
by_predicted, by_read, *chances = hits.mean(dim=0).tolist()
assert by_predicted > 0.8 and max(chances) < 0.2 and by_read < chances[1]
assert fits["only the token read"].sum() == 4 and len(hits) == 1743
assert fits["both"].sum() > 100 and sum(each.sum() for each in fits.values()) == 1743
assert (shares[:, 0] > shares[:, 1] + 0.2).all() and len(heads) == 8

# %% [markdown]
# The label that fits is the token predicted, for each head of both layers, too.
# Where the token read fits, the token predicted almost always fits too: the token read fits alone in only 4 of 1,743 rows.
# But this is no law: in larger translators, trained on other text, @chen2020 got better word alignments from the row that *reads* a token.
# So measure before you label.
#
# Now step through a translation, of our sentence or yours: left self-attention, right cross-attention (last layer, mean of heads).

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
# The position that predicts `▁den` looks at *the*, but gives 0.23 to *dog* as well.
# (The article must agree with *Hund*, which is not written yet: this may be the reason.)
# Do all heads of the last layer, layer 1, divide their attention like that?

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
on_dog = last_heads[:, 3, dog].tolist()
print("predicts ▁den; weight on dog, by head:", *(f"{w:.2f}" for w in on_dog))
assert last_heads[0, 3, dog] > 0.88 and last_heads[1:, 3, the].min() > 0.97

# %% [markdown]
# No: head 0 looks at *dog*, the others at *the*. The mean hides that.
# Lesson [12](12_reading_attention.ipynb) looks at this head in many sentences.
#
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
# Each position stands between two tokens: the decoder reads `<s>` and the target shifted right, and predicts the target up to and including `</s>`.
# A layer has masked self-attention, cross-attention and a feed-forward network, each in a residual path with a norm.
# In cross-attention, queries come from the decoder, and every layer projects keys and values of its own from the memory, the encoder's final output.
# Only self-attention joins target positions; with the causal mask there, one pass over known tokens gives the same as one pass for each token.
# So training is parallel; only translation goes token by token.
# In our translator, the largest weight in row *t* of a cross-attention map usually fits the token that position *t* must predict, and seldom the one that it reads.
#
# **Practice**: [assignment 07](assignments/release/07_decoder/07_decoder.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [08](08_transformer.ipynb) puts embeddings, encoder, decoder and generator together.
