# %% [markdown]
# # Capstone · Your own Transformer
#
# You have written every part of a Transformer in assignments 01 to 08.
# Here you put your own parts together, train the result at home, and hand in two files: this notebook and `weights.safetensors`.
# Nothing is trained when your work is graded: your code loads your weights and translates sentences that nobody has seen.
#
# **You need** lessons [08](../../../08_transformer.ipynb), [09](../../../09_training.ipynb) and [10](../../../10_translation.ipynb), and what you wrote in assignments 01 to 08.
#
# **Time**: about an hour of writing, ten minutes of training on two cores, and the training of your ablation beside something else.

# %%
import math
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import course_lib
from course_lib.assignments import check

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
SHIPPED = Path(course_lib.__file__).parent / "pretrained" / "course"
WEIGHTS = Path("weights.safetensors")  # yours, beside this notebook
PARTS = (
    *("targets", "scores", "contributions", "masked_softmax", "decoder_masks"),
    *("layer_norm", "encoder_layer", "decoder_layer", "generate", "ends"),
)

# %% [markdown] exercise="19.parts" title="Your parts" minutes=5 points=5 difficulty=1
# Ten functions of yours go into the next cell, as you wrote them: `targets` (assignment 01), `scores` (03), `contributions` (04), `masked_softmax` and `decoder_masks` (05), `layer_norm` and `encoder_layer` (06), `decoder_layer` and `generate` (07), `ends` (08).
# `.venv/bin/python -m notebooks.parts my_course`, in the folder of the course, brings them from your notebooks; close this notebook first.
# You may also copy them by hand.
#
# A part that did not work out is taken from the solutions: the command puts it into a cell below the check.
# The model works with it all the same; the half point of that part is lost, and nothing else.

# %% tags=["planted"]
# Your functions from assignments 01 to 08 go here.

own = {name: globals().get(name) for name in PARTS}

# %% tags=["solution"]
### PARTS 01.targets 03.scores 04.contributions 05.weights 05.decoder 06.layer_norm
### PARTS 06.encoder_layer 07.decoder_layer 07.generate 08.ends
own = {name: globals().get(name) for name in PARTS}

# %% tags=["check"]
check("19.parts", own)

# %% [markdown] exercise="19.attend" title="Attention of many heads, masked" minutes=10 points=3 difficulty=2
# In assignment 03 you had one head and no mask, in 05 a mask for scores that were given.
# This is the specification of both together, for query (batch, queries, d_model), key and value (batch, keys, d_model) *after* their projections.
# The mask has a 1 in the place of the heads, and may have a 1 elsewhere too.

# %% tags=["specification"]
def slow_attend(query, key, value, mask, num_heads):
    """Contexts (batch, heads, queries, d_k), one sentence and one head after another."""
    (batch, queries, d_model), keys = query.shape, key.size(1)
    mask, d_k, sentences = mask.expand(batch, 1, queries, keys), d_model // num_heads, []
    for sentence in range(batch):
        heads = []
        for head in range(num_heads):
            part = slice(head * d_k, (head + 1) * d_k)
            products = query[sentence, :, part] @ key[sentence, :, part].T / math.sqrt(d_k)
            weights = products.masked_fill(~mask[sentence, 0], -math.inf).softmax(dim=-1)
            heads.append(weights @ value[sentence, :, part])
        sentences.append(torch.stack(heads))
    return torch.stack(sentences)


# %% [markdown]
# Write the same with your own `scores` and `masked_softmax`, without a loop.
#
# <details><summary>Hint</summary>
#
# Your `scores` take three dimensions: what if each head of each sentence is a sentence of its own?
#
# </details>

# %% tags=["solution"]
def attend(query, key, value, mask, num_heads):
    """Contexts (batch, heads, queries, d_k) of projected query, key and value."""
    ### BEGIN SOLUTION
    query, key, value = split(query, num_heads), split(key, num_heads), split(value, num_heads)
    flat = scores(query.flatten(0, 1), key.flatten(0, 1))  # (batch · heads, queries, keys)
    weights = masked_softmax(flat.unflatten(0, (-1, num_heads)), mask)
    return weights @ value


def split(x, num_heads):
    """(batch, length, d_model) to (batch, heads, length, d_k)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    ### END SOLUTION


# %% tags=["check"]
check("19.attend", attend)

# %% [markdown] exercise="19.model" title="Your Transformer" minutes=20 points=6 difficulty=3
# The next two cells have what a model learns; what it computes comes from your functions.
# `sinusoids` is the table of lesson 02.

# %%
class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return layer_norm(x, self.scale, self.shift, 1e-5)


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query_proj, self.key_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value_proj, self.output_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask):
        projected = self.query_proj(query), self.key_proj(key), self.value_proj(value)
        context = attend(*projected, mask, self.num_heads)  # (batch, heads, queries, d_k)
        return contributions(context, self.output_proj.weight.T).sum(dim=1) + self.output_proj.bias


# %%
class Layer(nn.Module):
    """What a layer learns; one of the decoder has a second attention, and so a third norm."""

    def __init__(self, d_model, num_heads, d_ff, cross):
        super().__init__()
        self.self_attn = Attention(d_model, num_heads)
        self.cross_attn = Attention(d_model, num_heads) if cross else None
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList(Norm(d_model) for _ in range(3 if cross else 2))


def sinusoids(max_len, d_model):
    angle = torch.arange(max_len).double()[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()  # (max_len, d_model)


# %% [markdown]
# Write `encode`, `decode` and `forward` of a pre-norm Transformer, out of your functions; leave `__init__` as it is.
# Each stack ends with its own norm; one matrix, `table.weight`, embeds both sentences and makes the logits.
# There is no dropout: the corpus is large for the model.
# The check gives your model weights of its own choice, and compares the logits with those of the course's Transformer.
#
# <details><summary>Hint 1</summary>
#
# Your `ends` do two things at once.
# If you want only one of them, give the other a tensor without tokens: `hidden[:, :0]` or `ids[:, :0]`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Which mask does the encoder need?
# Your `decoder_masks` make two; look what the second one is if the source stands in both places.
#
# </details>

# %% tags=["solution"]
class MyTransformer(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.encoder = nn.ModuleList(Layer(d_model, num_heads, d_ff, cross=False) for _ in range(num_layers))
        self.decoder = nn.ModuleList(Layer(d_model, num_heads, d_ff, cross=True) for _ in range(num_layers))
        self.encoder_norm, self.decoder_norm = Norm(d_model), Norm(d_model)
        self.register_buffer("position", sinusoids(512, d_model), persistent=False)

    def encode(self, src):
        """Source ids (batch, src_len) to the memory (batch, src_len, d_model)."""
        ### BEGIN SOLUTION
        x, _ = ends(src, self.table.weight[None, :0], self.table.weight, self.position)
        mask = decoder_masks(src, src, PAD_ID)[1]  # (batch, 1, src_len, src_len)
        for layer in self.encoder:
            self_attn = partial(self.attend_itself, layer.self_attn, mask)
            x = encoder_layer(x, self_attn, layer.feed_forward, layer.norms, nn.Identity(), True)
        return self.encoder_norm(x)

    @staticmethod
    def attend_itself(self_attn, mask, x):
        return self_attn(x, x, x, mask)
        ### END SOLUTION

    def decode(self, tgt_in, memory, src):
        """Target ids (batch, tgt_len) to what the generator reads, (batch, tgt_len, d_model)."""
        ### BEGIN SOLUTION
        x, _ = ends(tgt_in, memory[:, :0], self.table.weight, self.position)
        tgt_mask, memory_mask = decoder_masks(src, tgt_in, PAD_ID)
        for layer in self.decoder:
            parts = layer.self_attn, layer.cross_attn, layer.feed_forward, layer.norms
            x = decoder_layer(x, memory, *parts, tgt_mask, memory_mask)
        return self.decoder_norm(x)
        ### END SOLUTION

    def forward(self, src, tgt_in):
        """Logits (batch, tgt_len, vocab)."""
        ### BEGIN SOLUTION
        hidden = self.decode(tgt_in, self.encode(src), src)
        return ends(tgt_in[:, :0], hidden, self.table.weight, self.position)[1]
        ### END SOLUTION


# %% tags=["check"]
check("19.model", MyTransformer)

# %% [markdown] exercise="19.memorize" title="Overfit one batch" minutes=10 points=3 difficulty=2
# A model that cannot learn one batch by heart learns nothing else either.
# Write the loop: `steps` steps of Adam with the paper's β₁ = 0.9, β₂ = 0.98, ε = 1e-9 and the rate `rate`, always on this batch.
# `src` is (batch, src_len), `tgt` is (batch, tgt_len), without `<s>` and `</s>`, both padded with `PAD_ID`; your `targets` make of it what is read and what is predicted.
# The loss is the mean of the cross-entropy over all real tokens of the batch.
# Return a list of numbers: the loss of each step, before the step.

# %% tags=["solution"]
def memorize(model, src, tgt, steps, rate):
    """Trains model(src, tgt_in) on one batch; the losses."""
    ### BEGIN SOLUTION
    tgt_in, tgt_out = targets(tgt)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for _ in range(steps):
        logits = model(src, tgt_in)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% tags=["check"]
check("19.memorize", memorize)

# %% [markdown]
# Now your own model learns four sentences by heart.
# `fresh` starts it as lesson 08 does; the subwords are those of the shipped translator.

# %%
SIZES = (2000, 128, 4, 2, 256)  # vocab_size, d_model, num_heads, num_layers, d_ff: those of the shipped translator
tokenizer = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))


def fresh(seed, sizes=SIZES):
    """A model of yours that has learned nothing yet."""
    torch.manual_seed(seed)
    model = MyTransformer(*sizes)
    for name, parameter in model.named_parameters():
        if name == "table.weight":
            nn.init.normal_(parameter, std=parameter.size(1) ** -0.5)
        elif name.endswith("weight"):
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return model


def to_ids(sentences, *last):
    """Ids (batch, length), padded; each row ends with the ids in `last`."""
    found = tokenizer.encode_batch(sentences, add_special_tokens=False)
    return pad_sequence([torch.tensor([*one.ids, *last]) for one in found], True, PAD_ID)


# %% tags=["home"]
english = ["The cat sleeps.", "The dog sees the cat.", "The old woman gives the child a red apple.", "We read."]
german = ["Die Katze schläft.", "Der Hund sieht die Katze.", "Die alte Frau gibt dem Kind einen roten Apfel.", "Wir lesen."]
losses = memorize(fresh(0), to_ids(english, EOS_ID), to_ids(german), steps=60, rate=1e-3)
print(f"loss {losses[0]:.2f} before the first step, {losses[-1]:.3f} before the last")

# %% [markdown] exercise="19.adopt" title="Other people's weights" minutes=10 points=3 difficulty=2
# The course ships weights for a model of the same sizes.
# Its parts have other names than yours, as always with other people's weights:
#
# | shipped | yours |
# |---|---|
# | `src_embedding.table.weight` | `table.weight` |
# | `encoder.layers.0.self_attn.key_proj.bias` | `encoder.0.self_attn.key_proj.bias` |
# | `decoder.layers.1.feed_forward.up.weight`, `….down.weight` | `decoder.1.feed_forward.0.weight`, `….2.weight` |
# | `encoder.layers.0.self_attn_path.norm.scale` | `encoder.0.norms.0.scale` |
# | `decoder.norm.shift` | `decoder_norm.shift` |
#
# The norms of a layer are numbered in the order of its sub-layers: of `self_attn_path`, `cross_attn_path` (in the decoder only) and `feed_forward_path`.
# Map a dict of shipped weights to one with your names; the tensors stay as they are.
# There may be any number of layers.

# %% tags=["solution"]
def adopt(shipped):
    """The same tensors under the names of MyTransformer."""
    ### BEGIN SOLUTION
    renamed = {"src_embedding.": "", ".layers.": ".", "coder.norm.": "coder_norm."}
    renamed |= {"feed_forward.up": "feed_forward.0", "feed_forward.down": "feed_forward.2"}
    mine = {}
    for name, tensor in shipped.items():
        cross = name.startswith("decoder")
        paths = {"self_attn_path.norm": 0, "cross_attn_path.norm": 1, "feed_forward_path.norm": 2 if cross else 1}
        for old, new in (renamed | {path: f"norms.{number}" for path, number in paths.items()}).items():
            name = name.replace(old, new)
        mine[name] = tensor
    return mine
    ### END SOLUTION


# %% tags=["check"]
check("19.adopt", adopt)

# %% [markdown]
# `translate` lets a model write with your `generate`: it runs free, and nothing of the right translations goes in.

# %%
def translate(model, sentences):
    """Translations of a list of sentences."""
    src = to_ids(sentences, EOS_ID)
    with torch.no_grad():
        memory = model.encode(src)

        def step(tgt_in):
            return model.decode(tgt_in, memory, src)[:, -1:] @ model.table.weight.T  # (batch, 1, vocab)

        ids = generate(step, torch.full((len(src), 1), BOS_ID), EOS_ID, PAD_ID, max_len=50)
    return tokenizer.decode_batch(ids.tolist())


# %% tags=["home"]
if (SHIPPED / "model.safetensors").exists():  # not where your work is graded: only your own weights are there
    adopted = MyTransformer(*SIZES)
    adopted.load_state_dict(adopt(load_file(SHIPPED / "model.safetensors")))
    print(*translate(adopted, english), sep="\n")

# %% [markdown]
# Now train your own.
# `train_on_course` reads 60,000 sentence pairs of the course corpus three times, with Adam, label smoothing and a warm-up.
# A file of weights that is there already is loaded instead; delete it to train again.

# %%
def train(model, file, **options):
    """Trains a model of yours and keeps its weights, in half precision."""
    if not Path(file).exists():
        from course_lib.training import train_on_course

        train_on_course(model, **options)
        save_file({name: tensor.half() for name, tensor in model.state_dict().items()}, file)
    model.load_state_dict(load_file(file))
    return model.eval()


# %% tags=["home"]
print(*translate(train(fresh(0), WEIGHTS), english), sep="\n")

# %% [markdown] exercise="19.weights" title="Hand it in" minutes=5 points=8 difficulty=1
# Write the function that grading calls: it loads `weights.safetensors`, which lies beside this notebook, into your model.
# Another size than `SIZES` is welcome; the file may have 8 MB, and 200 sentences, a hundred at a time, must be done in 30 seconds on one core.
#
# All points are for 90 % exact match, half of them for 70 %.
# The check here takes 200 sentences that are not among the 60,000 of the training; grading takes 200 others.
# With a nickname, and from 70 % on, you are on the class's leaderboard: exact match against parameters.

# %% tags=["solution"]
NICKNAME = ""  # up to 24 characters; without one you are not on the leaderboard


def my_translations(sentences):
    """Translations of a list of English sentences, by your code with your weights."""
    ### BEGIN SOLUTION
    model = MyTransformer(*SIZES)
    model.load_state_dict(load_file(WEIGHTS))
    return translate(model.eval(), sentences)
    ### END SOLUTION


# %% tags=["check"]
check("19.weights", my_translations)

# %% [markdown] exercise="19.report" title="One ablation" minutes=15 points=8 difficulty=3
# Take one thing out of your model, or change one: the positions (`model.position.zero_()`), the number of heads or of layers (`fresh(seed, sizes)`), the causal mask, √d_model, the warm-up (`train(…, warmup_steps=1)`), half of the pairs (`pairs=30_000`).
# Say first what you expect.
# Train three models with it and three without, with seeds 0, 1 and 2: `train(fresh(1), "whole-1.safetensors", passes=1, seed=1)`.
# One pass is enough if both sides have it.
# Score each of them on the sentences of `load_course(num_train=60_000).valid` (from `course_lib.data`).
#
# Report in about 200 words: the question and your expectation, what was the same on both sides, a table of the six results, mean and spread of each side, what you conclude, and what this experiment cannot tell.
# (Cells in which you train may stay: where you are graded there is no corpus, so they end at once.)

# %% [markdown] tags=["answer"]
# The numbers are yours, so there is no solution to look up.
# A report can go in this order: the question; what we expected, and why; what both sides shared; the table; mean and spread; what follows; what does not.
# [One that has all points](../../../../docs/capstone_report.md), from the solutions' parts, asks what the positions bring.
#
# === BEGIN MARK SCHEME ===
# 1 point: one question, and an expectation that was written before the result.
# 2 points: one change only; the same pairs, passes, sizes and rate on both sides, and said so.
# 2 points: three seeds a side, all six results in a table, scored running free on sentences that were not trained on.
# 1 point: mean and spread of both sides (an interval, or all values in sight), and the difference held against the spread.
# 1 point: a conclusion that the numbers carry, also where the expectation was wrong.
# 1 point: what the experiment cannot tell: other sizes, longer training, another corpus.
# Half of a point for half of it. A result against the expectation costs nothing; a result without a table has no points for it.
# === END MARK SCHEME ===
