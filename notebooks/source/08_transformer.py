# %% [markdown]
# # 08 · The Transformer, assembled
#
# **Question.** We have every part. What happens to a sentence on its way through all of them, and where do 63 million parameters go?
#
# **Afterwards you can**
#
# 1. write the Transformer class, and give the shape at every station between an English sentence and the logits of the German tokens;
# 2. count parameters, FLOPs and optimizer memory of the paper's two models from a row of its table 3, the vocabulary and the lengths, and measure activations;
# 3. test a newly assembled model on one batch, and tell a good loss from one that is too good.
#
# **You need** the parts: batches and embeddings ([01](01_text_to_tensors.ipynb)), positions ([02](02_position.ipynb)), attention ([03](03_attention.ipynb), [04](04_multi_head.ipynb)), masks ([05](05_masks.ipynb)), encoder ([06](06_encoder.ipynb)) and decoder ([07](07_decoder.ipynb)).
# **Time**: {minutes} minutes to read, about a minute to run.
# **In the paper**: figure 1, sections 3.1, 3.4 and 3.5, and the rows "base" and "big" of table 3 [@vaswani2017].

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
# Eight sentences are enough to try the whole model, and few enough to read every output.
# Between the first and the second, cat and dog change places, and the German articles change with them.

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
# It is learned from these sentences alone, so each word is one token, and so is the full stop.

# %% tags=["nbval-check-output"]
from course_lib.data import encode_pairs, make_batch
from course_lib.tokenizer import EOS_ID, PAD_ID, Tokenizer

texts = [text for pair in pairs for text in pair]
tokenizer = Tokenizer.train(texts, vocab_size=160)
for text in pairs[0]:
    print(tokenizer.tokens(text), tokenizer.encode(text))
print(f"{tokenizer.vocab_size} subwords")

# %% tags=["hide-input"]
assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)
assert all(len(tokenizer.tokens(text)) == len(text.split()) + 1 for text in texts)

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
# What is predicted on one line is read on the next.
#
# ## The class
#
# A Transformer embeds, encodes, decodes and generates logits.
# The embedding is that of lessons 01 and 02: a row of the table, times √d_model, plus the position.
# Dropout follows the sum (section 5.4).

# %%
from course_lib import ModelConfig
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
# One class does for both: what differs is the layer, and what each layer gets beside x.


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


# %% [markdown]
# As written it is not fit to train yet, because `nn.Embedding` fills the shared matrix with numbers that are too large; [below](#How-does-it-start?) we initialize it.
# Does it compute what the library's computes?
# We give both the same weights and the whole padded batch.

# %% tags=["nbval-check-output"]
from course_lib import Transformer

sizes = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.0, max_len=64)
small = ModelConfig(vocab_size=tokenizer.vocab_size, **sizes)
torch.manual_seed(0)
ours, model = OurTransformer(small).eval(), Transformer(small).eval()
ours.load_state_dict(model.state_dict())
ours_logits, theirs = ours(batch.src, batch.tgt_in), model(batch.src, batch.tgt_in)
print(f"equal logits: {torch.allclose(ours_logits, theirs)}", tuple(theirs.shape))

# %% tags=["hide-input"]
torch.testing.assert_close(ours_logits, theirs)
ours.src_embedding.scale = 1.0  # and it matters
assert not torch.allclose(ours(batch.src, batch.tgt_in), theirs, rtol=0.1, atol=0.1)
ours.src_embedding.scale = math.sqrt(small.d_model)
pre_norm = replace(small, norm_first=True)  # the same for pre-norm
one_way, other_way = OurTransformer(pre_norm), Transformer(pre_norm)
one_way.load_state_dict(other_way.state_dict())
torch.testing.assert_close(*(m(batch.src, batch.tgt_in) for m in (one_way, other_way)))

# %% [markdown]
# From here on we use the library's, which also checks its ids, and can keep keys and values from one token to the next (lesson [11](11_decoding.ipynb)).
#
# ## The shape at every station
#
# *The dog does not sleep.* and *Der Hund schläft nicht.* have different lengths, 7 tokens and 6, counting `</s>` and `<s>`.

# %%
of_memory = Predict(
    "d_model is 64. What is the shape of the memory, for this one pair?",
    ["(1, 64)", "(1, 6, 64)", "(1, 7, 64)"],
    section="The shape at every station",
)
of_memory

# %% tags=["nbval-check-output"]
memory = model.encode(one.src)
hidden = model.decode(one.tgt_in, memory, one.src)
stations = {
    "src": one.src,
    "embedded source": model.src_embedding(one.src),
    "memory": memory,
    "tgt_in": one.tgt_in,
    "embedded target": model.tgt_embedding(one.tgt_in),
    "decoder's output": hidden,
    "logits": model.generator(hidden),
}
for name, tensor in stations.items():
    print(f"{name:18}{tuple(tensor.shape)}")
of_memory.reveal(tuple(memory.shape), because="each source token keeps its own vector")

# %% tags=["hide-input"]
assert one.src.shape[1] != one.tgt_in.shape[1]
assert memory.shape == (*one.src.shape, small.d_model)
assert stations["logits"].shape == (*one.tgt_in.shape, small.vocab_size)

# %% [markdown]
# The memory has one row for each *source* token, and the logits have one for each *target* position.
#
# **A common mistake**: "each output dimension is a word."
# Each is an entry of the shared vocabulary, of either language: a word, a piece of one, a punctuation mark or a special token.
# How many of ours are whole words?

# %% tags=["nbval-check-output"]
whole = {token for text in texts for token in tokenizer.tokens(text)} - {"."}
every = [tokenizer.token(i) for i in range(small.vocab_size)]
pieces = [token for token in every if token not in whole]
print(f"{len(whole)} words, {len(pieces)} others:", *pieces[:6], "…", *pieces[-6:])

# %% tags=["hide-input"]
assert len(every) == len(whole) + len(pieces) and len(pieces) > len(whole)

# %% [markdown]
# ## Where do the parameters go?
#
# So far our model was small.
# Two rows of table 3 define the two models of the paper, *base* and *big*; section 5.1 gives the vocabulary, about 37,000 subwords.

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
of_values = model.decoder.layers[0].cross_attn.value_proj
assert of_values.out_features == small.num_heads * small.d_k

# %%
largest = Predict(
    "Which part of base holds the most parameters?",
    ["the shared embedding matrix", "all attentions", "all feed-forward networks"],
    section="Where do the parameters go?",
)
largest

# %% [markdown]
# Three formulas are enough.
# Attention has four matrices of d_model × d_model, each with a bias.
# The feed-forward network has one matrix up to d_ff and one back down, each with a bias.
# A norm has a scale and a shift for each feature.


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
for name, config in (("base", base), ("big", big)):
    row = config.vocab_size, config.d_model, config.d_ff, config.num_layers
    by_hand[name] = count_by_hand(*row)
    total = sum(by_hand[name].values())
    print(f"{name}: {total:,} = {total / 1e6:.1f} M")
    for part, size in by_hand[name].items():
        print(f"    {part:28}{size:12,}  {size / total:4.0%}")
first_place = max(by_hand["base"], key=by_hand["base"].get)
why = "12 networks have more than 18 attentions of half their size"
largest.reveal(first_place, because=why)

# %% [markdown]
# The attention that gave the paper its title holds less than a third of base, and the embedding matrix as much as all 18 attentions together.
#
# Are the formulas right?
# We build both models and count.
# PyTorch's *meta* device makes tensors that have a shape but no memory, so even big costs nothing.

# %% tags=["nbval-check-output"]
for name, config in (("base", base), ("big", big)):
    with torch.device("meta"):
        built = Transformer(config)
    counted = sum(parameter.numel() for parameter in built.parameters())
    print(f"{name:5}{counted:12,} parameters built")


# %% tags=["hide-input"]
def part_of(name):
    """The part of the model that a parameter belongs to."""
    if "norm" in name or "embedding" in name:
        return "norms" if "norm" in name else "embeddings"
    stack, _, _, sublayer, *_ = name.split(".")  # "encoder.layers.0.self_attn.…"
    return f"{stack} {sublayer}".replace("_attn", "-attention").replace("_", "-")


# %% tags=["hide-input"]
for name, config in (("base", base), ("big", big)):
    counted = Counter()
    with torch.device("meta"):
        for path, parameter in Transformer(config).named_parameters():
            counted[part_of(path)] += parameter.numel()
    assert counted == config.parameter_counts()
    assert counted.total() == config.num_parameters == sum(by_hand[name].values())
assert first_place == "all feed-forward networks"
assert by_hand["base"]["all attentions"] < sum(by_hand["base"].values()) / 3
of_table = by_hand["base"]["the shared embedding matrix"]
assert math.isclose(of_table, by_hand["base"]["all attentions"], rel_tol=0.01)

# %% [markdown]
# The map shows the parameters of every box of base; click on one for its shapes and FLOPs.
# Click on the boxes and change the sizes.
# What doubles when d_model doubles, and what grows fourfold?
# Which boxes do not depend on the number of heads?

# %% id="architecture-map"
ArchitectureMap(base)

# %% tags=["hide-input"]
assert ArchitectureMap(base).view["parameters"] == base.num_parameters

# %% [markdown]
# ### The paper prints 65 and 213 million
#
# We get 63.1 and 214.2: too few for base, too many for big.
# The vocabulary is the first suspect, because section 5.1 says "about 37000 tokens".
# With which vocabulary sizes would our count round to the printed number?

# %% tags=["hide-input", "nbval-check-output"]
fitting = {}
for name, config, printed in (("base", base, 65), ("big", big, 213)):
    without = config.num_parameters - config.vocab_size * config.d_model
    low, high = (
        math.ceil(((printed + half) * 1e6 - without) / config.d_model)
        for half in (-0.5, 0.5)
    )
    fitting[name] = range(low, high)
    print(f"{name:5}needs {low:,} to {high - 1:,} subwords")

# %% tags=["hide-input"]
assert not set(fitting["base"]) & set(fitting["big"])
assert 37_000 not in fitting["base"] and 37_000 not in fitting["big"]
for config, printed, gap in ((base, 65, 0.03), (big, 213, 0.01)):
    biases = 3 * config.num_layers * 4 * config.d_model
    separate = replace(config, tie_weights=False).num_parameters
    for total in (separate, config.num_parameters - biases):
        assert round(total / 1e6) != printed
    assert abs(config.num_parameters / (printed * 1e6) - 1) < gap

# %% [markdown]
# No single vocabulary explains both numbers.
# Neither do three separate matrices, nor attention without biases, as section 3.2.2 writes it (a folded cell tries both).
# The paper does not say what its count includes, so the gap stays unexplained: less than 3 % for base, less than 1 % for big.
#
# ## Where do the FLOPs go?
#
# A parameter costs memory, a FLOP costs time (lesson [04](04_multi_head.ipynb)).
# A matrix of *n* parameters takes 2*n* FLOPs for each token that it multiplies: a multiplication and an addition for each parameter.
# Take a pair of 30 source and 30 target tokens.
# Nearly every matrix of the model multiplies 30 tokens: those of the encoder the source's, those of the decoder the target's.
# (The shared matrix too: looking up a row takes no FLOPs, but it multiplies 30 tokens as the generator.)
# So there is a simple rule: the forward pass takes 2 · 30 · parameters.
# `ModelConfig.flop_counts` adds up all matrix products; how good is the rule?

# %% tags=["nbval-check-output"]
for name, config in (("base", base), ("big", big)):
    flops = sum(config.flop_counts(src_len=30, tgt_len=30).values())
    rule = 2 * 30 * config.num_parameters
    print(f"{name:5}{flops / 1e9:5.2f} GFLOPs, by the rule {rule / 1e9:.2f}")

# %% tags=["hide-input"]
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

for config in (base, big):
    rule, flops = 60 * config.num_parameters, config.flop_counts(30, 30)
    assert math.isclose(sum(flops.values()), rule, rel_tol=0.01)
counter = FlopCounterMode(display=False)
plain = sdpa_kernel(SDPBackend.MATH)  # attention as products that the counter sees
with torch.no_grad(), counter, plain:
    model(one.src, one.tgt_in)
formula = small.flop_counts(one.src.shape[1], one.tgt_in.shape[1])
print(f"PyTorch counts {counter.get_total_flops():,} in our small model", end=", ")
print(f"the formula {sum(formula.values()):,}")
assert counter.get_total_flops() == sum(formula.values())

# %% [markdown]
# Right to within one percent.
# What the rule leaves out are the products without parameters: query times key, and attention weights times value.
# In one self-attention they take 4 · length² · d_model FLOPs; its four projections take 8 · length · d_model².

# %%
crossing = Predict(
    "From how many tokens on do scores and weighted values take more FLOPs than the "
    "four projections, in a self-attention of base?",
    unit="tokens",
    within=0.1,
    section="Where do the FLOPs go?",
)
crossing


# %% tags=["nbval-check-output"]
def quadratic_share(config, length):
    """Share of encoder self-attention that grows with the square of the length."""
    total = config.flop_counts(length, length)["encoder self-attention"]
    return config.num_layers * 4 * length * length * config.d_model / total


for length in (30, 300, 3000):
    print(f"{length:5} tokens: {quadratic_share(base, length):.1%}")
equal = next(n for n in range(1, 4000) if quadratic_share(base, n) >= 0.5)
crossing.reveal(equal, because="4 n² d = 8 n d² where n is twice d_model")

# %% tags=["hide-input"]
assert quadratic_share(base, 30) < 0.03
assert equal == 2 * base.d_model

# %% [markdown]
# At 30 tokens the quadratic part is less than 3 % of self-attention, at 3,000 tokens most of it: it is n / (n + 2 d_model).
# And in the whole model, part by part?

# %% tags=["hide-input"]
from course_lib.figures import stacked_bars


def percent(parts):
    """Shares of the whole; the matrix that embeds and generates is one part."""
    parts = dict(parts)
    parts["shared matrix"] = parts.pop("embeddings", 0) + parts.pop("generator", 0)
    return {part: 100 * size / sum(parts.values()) for part, size in parts.items()}


# %% tags=["hide-input"]
shares = {"base: parameters": percent(base.parameter_counts())}
for length in (30, 3000):
    flops = base.flop_counts(src_len=length, tgt_len=length)
    row = percent(flops | {"norms": 0})  # the norms' are few, and not counted
    order = shares["base: parameters"]
    shares[f"base: FLOPs, {length:,} tokens"] = {part: row[part] for part in order}
stacked_bars(
    shares,
    xlabel="share (%)",
    title="FLOPs go where the parameters are, until the sentences are long",
    value_format="{:.0f}",
)

# %% tags=["hide-input"]
few, many = shares["base: FLOPs, 30 tokens"], shares["base: FLOPs, 3,000 tokens"]
assert all(abs(few[part] - share) < 1 for part, share in order.items())


def of_attention(row):
    return sum(share for part, share in row.items() if part.endswith("attention"))


assert of_attention(many) > 50 > of_attention(few)

# %% [markdown]
# At 30 tokens each part's share of the FLOPs is its share of the parameters, within one percentage point.
# At 3,000 tokens attention takes more than half.
# (The norms have too few parameters to be seen.)
#
# ## Where does the memory go?
#
# Training keeps four numbers for each parameter: the weight, its gradient, and two running averages, one of the gradient and one of its square, the moments of the optimizer Adam (lesson [09](09_training.ipynb)).
# In float32 that is 16 bytes.
# We look into our small model after one step of training.


# %% tags=["nbval-check-output"]
def mean_loss(logits, tgt_out):
    """Cross-entropy in nats per token, over real tokens."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)


optimizer = torch.optim.Adam(model.parameters())
mean_loss(model(batch.src, batch.tgt_in), batch.tgt_out).backward()
optimizer.step()
states = optimizer.state.values()
held = {
    "weights": sum(parameter.nbytes for parameter in model.parameters()),
    "gradients": sum(parameter.grad.nbytes for parameter in model.parameters()),
    "moments": sum(s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in states),
}
print(held, f"{sum(held.values()) / small.num_parameters:.0f} bytes per parameter")
for name, config in (("base", base), ("big", big)):
    print(f"{name:5}{16 * config.num_parameters / 1e9:.2f} GB")

# %% tags=["hide-input"]
assert list(held.values()) == list(small.memory_bytes().values())
for config in (small, base, big):
    assert sum(config.memory_bytes().values()) == 16 * config.num_parameters

# %% [markdown]
# The backward pass needs one more thing: **activations**, the intermediate results that the forward pass keeps for it.
# They grow with the batch.
# The paper's batch has about 25,000 source and 25,000 target tokens (section 5.1) on eight GPUs (section 5.2): 3,125 of each on every GPU.

# %%
of_activations = Predict(
    "Base, 3,125 source and 3,125 target tokens on one GPU, float32. What takes more "
    "memory?",
    ["the 16 bytes per parameter", "the activations"],
    section="Where does the memory go?",
)
of_activations

# %% [markdown]
# PyTorch can call a function for each tensor that it saves for the backward pass.
# `saved_bytes` (folded) adds up the sizes of these tensors.
# We print kilobytes for one source token and one target token together:


# %% tags=["hide-input"]
def saved_bytes(model, run):
    """Bytes that a forward pass keeps for the backward pass, parameters apart."""
    parameters = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = run()  # is held until all is counted, so that no address comes twice
    del result
    return sum(size for pointer, size in kept.items() if pointer not in parameters)


# %%
def activations(model, count, length=30):
    """Bytes per token in a batch of random pairs: encoder, decoder, loss."""
    src, tgt = torch.randint(4, model.config.vocab_size, (2, count, length))
    runs = (
        lambda: model.encode(src),
        lambda: model(src, tgt),
        lambda: mean_loss(model(src, tgt), tgt),
    )
    first, both, whole = (saved_bytes(model, run) / tgt.numel() for run in runs)
    return {"encoder": first, "decoder": both - first, "loss": whole - both}


of_base = Transformer(base)
for count in (1, 2, 4):
    per_token = activations(of_base, count)
    parts = (f"{part} {size / 1000:.0f} kB" for part, size in per_token.items())
    print(f"batch of {count}, per token:", *parts)

# %% [markdown]
# The bytes per token do not depend on the number of sentences, so we may multiply by 3,125: about 104 sentences of 30 tokens.
# They do depend on the length, because each attention keeps heads × length weights for each token, and on the code: a fused attention (lesson [14](14_cost_and_memory.ipynb)) does not keep these weights.

# %%
gigabytes = 3125 * sum(per_token.values()) / 1e9
parameters_take = 16 * base.num_parameters / 1e9
print(f"activations {gigabytes:.2f} GB, parameters {parameters_take:.2f} GB")
more = gigabytes > parameters_take
of_activations.reveal(
    "the activations" if more else "the 16 bytes per parameter",
    because="600 kB for each source and target token add up",
)

# %% tags=["hide-input"]
assert more
ones = activations(of_base, 1)
assert list(ones) == list(per_token)
for alone, in_four in zip(ones.values(), per_token.values(), strict=True):
    assert math.isclose(alone, in_four, rel_tol=0.02)
assert 550e3 < sum(per_token.values()) < 650e3
assert per_token["loss"] > sum(per_token.values()) / 5
del of_base

# %% [markdown]
# So a smaller batch saves activations, but nothing of the 16 bytes per parameter.
# And about a quarter of the activations belongs to the loss alone, which keeps a number for each of the 37,000 subwords at every target token.
#
# ## One matrix, three uses
#
# Section 3.4 shares one matrix between both embeddings and the generator, which is called **weight tying**, after @press2017.
# A token's row stands for it when it is read, and is compared with the decoder's output when it is predicted.

# %% tags=["nbval-check-output"]
matrices = (model.src_embedding.table, model.tgt_embedding.table, model.generator)
print("one tensor:", all(each.weight is matrices[0].weight for each in matrices))
saved = replace(base, tie_weights=False).num_parameters - base.num_parameters
print(f"tying saves base {saved / 1e6:.1f} M parameters")

# %% [markdown]
# One matrix has one gradient.
# What is it made of?
# A second model gets three separate copies of the same matrix.

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
assert saved == 2 * 37_000 * 512
assert all(each.weight.grad.abs().max() > 0 for each in three)
ours_gradient = tied.generator.weight.grad
torch.testing.assert_close(ours_gradient, total_gradient, rtol=1e-9, atol=1e-12)

# %% [markdown]
# It is.
# The embeddings train only the rows of tokens that they read; the generator trains all rows at every position, because the softmax compares all of them.
#
# ## How does it start?
#
# The paper does not say how the weights are initialized.
# The library's start Xavier-uniform [@glorot2010], with biases of 0.
# The shared matrix has a standard deviation of 1/√d_model, which suits the embedding: times √d_model, a token has variance 1 (lesson 01).


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


# %%
first = Predict(
    "A model with 2,000 subwords has just been initialized. What is its loss on "
    "random tokens?",
    unit="nats",
    within=0.15,
    section="How does it start?",
)
first

# %%
torch.manual_seed(1)
sizes = dict(vocab_size=2000, d_model=256, num_layers=2, d_ff=512, max_len=64)
wide = OurTransformer(ModelConfig(**sizes)).eval()
initialize(wide)
src, tgt_in, tgt_out = torch.randint(4, 2000, (3, 8, 32))
with torch.no_grad():
    logits = wide(src, tgt_in)
start = mean_loss(logits, tgt_out).item()
too_large = mean_loss(logits * math.sqrt(256), tgt_out).item()
print(f"guessing evenly among 2,000: ln 2000 = {math.log(2000):.2f} nats")
print(f"rows of standard deviation 1 in the generator: {too_large:.1f} nats")
first.reveal(round(start, 2), because="it starts out guessing nearly evenly")

# %% tags=["hide-input"]
assert math.log(2000) < start < math.log(2000) + 1
assert too_large > 5 * math.log(2000)
for each in (wide, Transformer(ModelConfig(**sizes))):  # both by the same rules
    for name, parameter in each.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif part_of(name) not in ("norms", "embeddings"):
            bound = math.sqrt(6 / sum(parameter.shape))  # Xavier's
            assert 0.99 * bound < parameter.abs().max() <= bound
    assert math.isclose(each.generator.weight.std().item(), 1 / 16, rel_tol=0.01)
assert math.isclose(nn.Embedding(2000, 256).weight.std().item(), 1, rel_tol=0.01)

# %% [markdown]
# The same small numbers suit the generator.
# It gets a normalized vector: d_model features of variance 1.
# Its product with a row has variance d_model · 1/d_model = 1.
# Such logits are not all equal, so the loss starts a little above that of an even guess: for normal logits of variance σ², by about σ² / 2.
# PyTorch's `nn.Embedding` starts with a standard deviation of 1. Shared with the generator that makes the logits 16 times as large, the second line above, and a model that is very sure of itself, and wrong.
#
# ## Is it the same function as PyTorch's?
#
# Lessons 06 and 07 compared one layer; now we compare whole stacks.
# The folded cells copy every weight into `nn.TransformerEncoder` and `nn.TransformerDecoder`, invert the masks (lesson [05](05_masks.ipynb)), and run the padded batch.

# %% tags=["hide-input"]
from course_lib.checks import copy_into_torch


def torch_stacks(ours):
    """torch's two stacks with our weights; a final norm only where ours has one."""
    config = ours.config
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


# %% tags=["hide-input", "nbval-check-output"]
for norm_first in (False, True):
    filled = Transformer(replace(small, norm_first=norm_first)).double().eval()
    rng = torch.Generator().manual_seed(3)
    for parameter in filled.parameters():  # zeros and ones would hide mistakes
        nn.init.normal_(parameter, mean=0.1, std=0.2, generator=rng)
    with torch.no_grad():
        expected = filled(batch.src, batch.tgt_in)
    theirs = torch_logits(filled, batch.src, batch.tgt_in)
    torch.testing.assert_close(expected, theirs, rtol=1e-9, atol=1e-10)
    order = "pre-norm" if norm_first else "post-norm"
    print(f"{order} equals torch's stacks to nine digits:", tuple(expected.shape))

# %% [markdown]
# **A common mistake**: to take `nn.Transformer` for the paper's model.
# It has no embeddings, positions or generator, so we leave ours out of the count.
# By default it is post-norm, as the paper's, but it adds a final norm to each stack.

# %% tags=["nbval-check-output"]
layers = dict(num_encoder_layers=2, num_decoder_layers=2)
torchs = nn.Transformer(64, 4, **layers, dim_feedforward=128, batch_first=True)
theirs = sum(parameter.numel() for parameter in torchs.parameters())
without = small.num_parameters - small.parameter_counts()["embeddings"]
print(f"nn.Transformer has {theirs - without} parameters more: two norms of 2 × 64")

# %% tags=["hide-input"]
assert theirs - without == 2 * 2 * small.d_model
assert not torchs.encoder.layers[0].norm_first
assert isinstance(torchs.encoder.norm, nn.LayerNorm)
assert isinstance(torchs.decoder.norm, nn.LayerNorm)
assert isinstance(model.encoder.norm, nn.Identity)

# %% [markdown]
# ## Can it learn at all?
#
# The cheapest test of an assembled model is to **overfit one batch**: let it learn eight sentences by heart.
# If it cannot at any of a few learning rates, suspect the wiring or the initialization; more data will not help.
# Dropout is off, because here we want it to memorize.
# (On a GPU the model is larger.)

# %%
larger = dict(d_model=256, num_heads=8, num_layers=4, d_ff=1024)
config = replace(small, **larger) if device == "cuda" else small
usual_rate, seeds = 3e-4 if device == "cuda" else 1e-3, range(3)
batch = batch.to(device)


def new_model(seed, **changes):
    torch.manual_seed(seed)
    return Transformer(replace(config, **changes)).to(device)


# %%
def memorize(model, tgt_in, rate=usual_rate, steps=100, enough=0.0):
    """The losses of all steps on the one batch, until one is low enough."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    losses = []
    while len(losses) < steps and not (losses and losses[-1] < enough):
        loss = mean_loss(model(batch.src, tgt_in), batch.tgt_out)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
learned = [new_model(seed) for seed in seeds]
losses = [memorize(each, batch.tgt_in) for each in learned]
below = [next(n for n, loss in enumerate(run) if loss < 0.05) for run in losses]
print("steps until the loss is below 0.05, three seeds:", *below)

# %% tags=["hide-input"]
from course_lib.figures import curves

even, steps = math.log(config.vocab_size), range(len(losses[0]))
curves(
    {"loss of the batch, three seeds": (steps, losses)},
    xlabel="step",
    ylabel="nats per token",
    title="One batch is learned by heart",
    log_y=True,
    marks={"guessing evenly": (None, even), "0.05": (None, 0.05)},
)

# %% tags=["hide-input"]
assert all(abs(run[0] - even) < 1.5 and run[-1] < 0.05 for run in losses)

# %% [markdown]
# The loss starts near that of guessing evenly, ln 135, and falls below 0.05 with every seed.
# But this is the loss under teacher forcing, with the right target to read.
# Does the model write the sentences when it reads only its own output?
# We wrote the loop of greedy decoding in lesson 07; here we take the library's.


# %%
from course_lib import greedy


def write(model):
    """German for the eight sources, the most probable token at each step."""
    return [tokenizer.decode(found.ids) for found in greedy(model.eval(), batch.src)]


def number_right(model):
    written = write(model)
    return sum(german == pair.tgt for german, pair in zip(written, pairs, strict=True))


for pair, german in zip(pairs, write(learned[0]), strict=True):
    print(f"{pair.src:40}{german}")
print("right of 8, three seeds:", *map(number_right, learned))

# %% tags=["hide-input"]
assert all(number_right(each) == 8 for each in learned)

# %% [markdown]
# "The dog" becomes *Der Hund*, *den Hund* or *dem Hund*, as the sentence requires.
# This is memorizing, not translating: lesson [10](10_translation.ipynb) asks for sentences that a model has not seen.
#
# ## Break it: forget the shift
#
# The decoder reads `tgt_out` where it should read `tgt_in`.
# No shape changes and nothing crashes.

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
low = [next((n for n, loss in enumerate(run) if loss < 0.05), 100) for run in too_good]
print("steps until the loss is below 0.05, shifted:", *below, " not shifted:", *low)
faster = max(low) < min(below)
how = "it falls faster" if faster else "it falls more slowly"
unshifted.reveal(how, because="each position can read its own answer")

# %% tags=["hide-input"]
curves(
    {"shifted right": (steps, losses), "not shifted": (steps, too_good)},
    xlabel="step",
    ylabel="nats per token",
    title="Without the shift the loss falls faster, and means nothing",
    log_y=True,
    marks={"0.05": (None, 0.05)},
)

# %% tags=["hide-input"]
assert faster
assert all(bad[0] < good[0] for bad, good in zip(too_good, losses, strict=True))

# %% [markdown]
# By the loss alone, the broken model looks better while it learns, and in the end no worse.
# Three tests tell more: let both kinds of model write, give them the *wrong* source sentences, and let them read random German tokens.

# %%
german_ids = sorted(set(batch.tgt_out.flatten().tolist()) - {PAD_ID, EOS_ID})
torch.manual_seed(0)
places = torch.randint(len(german_ids), (8, 7))
noise = torch.tensor(german_ids)[places].to(device)  # (batch, tgt_len)


@torch.no_grad()
def examined(model, tgt_in):
    """Sentences right; loss with the wrong sources; share of random tokens repeated."""
    swapped = mean_loss(model(batch.src.roll(1, 0), tgt_in), batch.tgt_out).item()
    repeated = (model(batch.src, noise).argmax(dim=-1) == noise).float().mean().item()
    return number_right(model), swapped, repeated


# %%
found = {"shifted right": [examined(each, batch.tgt_in) for each in learned]}
found["not shifted"] = [examined(each, batch.tgt_out) for each in copiers]
for name, rows in found.items():
    for right, swapped, repeated in rows:
        print(f"{name:14}{right} of 8 right; with wrong sources", end=" ")
        print(f"the loss is {swapped:.2f}; repeats {repeated:.0%} of random tokens")

# %% tags=["hide-input"]
for right, swapped, repeated in found["shifted right"]:
    assert right == 8 and swapped > 1 and repeated < 0.5
for right, swapped, repeated in found["not shifted"]:
    assert right == 0 and swapped < 0.05 and repeated > 0.9

# %% [markdown]
# With the right sources both losses are below 0.05. With wrong ones the sound model's rises above 1: it uses the source, and the other does not.
# The broken models do not write a single sentence. (They get `<s>` there, which they have never read.)
# They copy: position *t* reads the very token that it must predict.
# The causal mask does not help, because it lets a position see itself.
# On a corpus there is a plainer sign: one source has several right translations, so a loss near zero on unseen sentences is too good to be true.
#
# In the figure, they are ahead even before the first step.
# Why?
# Perhaps because of tying.
# Each position starts with the row of the token that it reads, and the residual paths carry part of it to the generator, weaker after each norm.
# There the tied matrix compares it with all rows, which raises the token's own logit.
# If so, an untrained *untied* model should hardly ever repeat what it reads.

# %%
real = batch.tgt_in != PAD_ID
read, before = batch.tgt_in[real], {}
for tie_weights in (True, False):
    shares, losses_then = [], []
    for seed in range(5):
        untrained = new_model(seed, tie_weights=tie_weights).eval()
        with torch.no_grad():
            logits = untrained(batch.src, batch.tgt_in)[real]
        shares.append((logits.argmax(dim=-1) == read).float().mean().item())
        losses_then.append(F.cross_entropy(logits, read).item())
    before[tie_weights] = sum(shares) / 5, sum(losses_then) / 5
    tied = "tied" if tie_weights else "untied"
    print(f"untrained, {tied}: repeats {before[tie_weights][0]:.0%},", end=" ")
    print(f"loss of repeating {before[tie_weights][1]:.2f}")

# %% tags=["hide-input"]
assert before[True][0] > 0.1 and before[False][0] < 0.05
assert before[True][1] < before[False][1] - 0.1

# %% [markdown]
# The untied model does not, and its loss of repeating is higher: tying gives the head start. (Lesson [15](15_alternatives.ipynb#An-echo) measures what it costs a sound model.)
#
# ## Break it: forget √d_model
#
# Lesson 01 showed that positions are louder than unscaled tokens.
# Can such a model learn the batch?
# A change may need another learning rate, so each side gets the best of three, with three seeds.

# %%
without_scale = Predict(
    "How many times as many steps does it take without √d_model?",
    ["it never learns", "less than 1.5 times", "1.5 times or more"],
    section="Break it: forget √d_model",
)
without_scale


# %%
def steps_needed(scale, rate, seed):
    """Steps until the loss is below 0.5; 100 if it takes longer."""
    ours = OurTransformer(config).to(device)
    ours.load_state_dict(new_model(seed).state_dict())
    ours.src_embedding.scale = scale
    return len(memorize(ours, batch.tgt_in, rate, enough=0.5))


needed = {}
for name, scale in (("√d_model", math.sqrt(config.d_model)), ("1", 1.0)):
    for rate in (usual_rate, 3 * usual_rate, 10 * usual_rate):
        runs = [steps_needed(scale, rate, seed) for seed in seeds]
        needed.setdefault(name, {})[rate] = runs
        print(f"tokens times {name:9} rate {rate:.0e}: {runs} steps")

# %%
best = {name: min(rates.values(), key=sum) for name, rates in needed.items()}
factor = sum(best["1"]) / sum(best["√d_model"])
print(f"each at its best rate: {factor:.1f} times as many steps without the scale")
more = "1.5 times or more" if factor >= 1.5 else "less than 1.5 times"
without_scale.reveal(
    "it never learns" if min(best["1"]) == 100 else more,
    because="its tokens start 8 times smaller, beside the same positions",
)

# %% tags=["hide-input"]
assert max(best["√d_model"]) < min(best["1"]) < 100 and factor > 1.5
for rates in needed.values():  # the best rate is not the largest that was tried
    assert min(rates, key=lambda rate: sum(rates[rate])) < 10 * usual_rate

# %% [markdown]
# It can, but even at its best rate it takes far more steps, with every seed. (100 means: not within 100. And each step of Adam, too, moves unscaled tokens 8 times less; this run does not tell the two reasons apart.)
# And a model that memorizes one batch quickly may still train badly on a corpus: this is a test of the wiring, and no more.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **activations**: intermediate results that the forward pass keeps for the backward pass.
# - **weight tying**: using one matrix as both embeddings and as the generator.
# - **overfit one batch**: to train on one batch until the model knows it by heart, as a test of the model's code.

# %% [markdown]
# ## Summary
#
# A Transformer embeds, encodes, decodes and generates: source ids and shifted target ids go in, and logits for all target positions come out at once.
# One row of table 3 and the vocabulary fix all sizes, and three short formulas count the 63.1 and 214.2 million parameters exactly; feed-forward networks hold the largest share.
# For ordinary sentences FLOPs go where the parameters are; training keeps 16 bytes per parameter, and base with the paper's batch, at 30 tokens a sentence, more than that in activations.
# Our model computes what PyTorch's stacks compute, in both norm orders; one matrix serves in three places and gets the sum of three gradients.
# A model must be able to overfit one batch and to write it in free running; a low loss alone proves nothing, because without the shift it falls even faster.
#
# **Practice**: [assignment 08](assignments/release/08_transformer/08_transformer.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [09](09_training.ipynb) takes training apart, until a model solves a task on inputs that it has never seen.
