# %% [markdown]
# # 18 · Errata lab: what popular explanations get wrong
#
# **Question.** "Attention is permutation-invariant." "Zero padding needs no mask." "The bias of the keys does nothing." Sentences like these stand in posts, slides and code. Which of them survive an experiment?
#
# **Afterwards you can**
#
# 1. turn a sentence about a model into an experiment of a few lines, with one knob to turn;
# 2. judge what you read about the Transformer: right, half right or wrong;
# 3. say what is right instead, and which lesson teaches it.
#
# **You need** lessons 01 to [12](12_reading_attention.ipynb): nothing here is new, except that you judge.
# **Time**: {minutes} minutes to read, under 60 seconds to run.
# **In the paper**: all of it.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def draw(*shape, seed=0):
    """Random numbers of variance 1 in float64: the same seed, the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def weights(query, key):
    """Attention weights: softmax(query keyᵀ / √d_k)."""
    return (query @ key.mT / math.sqrt(key.shape[-1])).softmax(dim=-1)


# %% [markdown]
# ## One claim, by hand
#
# "Zero padding needs no mask: zeros get no attention."
#
# Right, half right, or wrong?
# The sentence makes a prediction, so we can count.
# A query meets four real keys, and behind them some keys of zeros.
# If the claim is right, the zeros get 0 % of the attention, however many there are.

# %%
query, words = draw(1, 8, seed=1), draw(4, 8)  # (queries, d_k), (keys, d_k)
for padding in (0, 2, 4, 16):
    keys = torch.cat([words, torch.zeros(padding, 8)])
    share = weights(query, keys)[0, 4:].sum()
    print(f"{padding:2} zeros get {share:.0%} of the attention")

# %% [markdown]
# Wrong, and the more padding, the worse.
# A score of 0 is not a small score: the softmax takes e⁰ = 1.
#
# Three things made this an experiment.
# The **claim** is a sentence that could be false.
# The **knob** is one quantity that we vary: here, how much padding there is.
# The **measure** is a function from a value of the knob to numbers, what the claim predicts beside what comes out.
#
# All experiments of this lesson have that form.
# A `LabBook` keeps them, in three steps: `say` the claim, `test` it, `judge` it.

# %%
from course_lib.analysis import LabBook

book = LabBook()
book.say("Words", zeros="Zero padding needs no mask: zeros get no attention.")


# %%
def on_padding(padding):
    keys = torch.cat([words, torch.zeros(padding, 8)])
    found = weights(query, keys)[0, 4:].sum()
    return {"as said": 0, "attention on padding": found}


book.test("zeros", on_padding, values=(0, 1, 2, 4, 8, 16))

# %%
right_version = "A score of 0 still gets e⁰ = 1. Only a mask hides a key."
book.judge(zeros=("wrong", "05_masks", right_version))


# %% tags=["hide-input"]
def measured(name):
    """The numbers of a claim: a tensor for each row of its table."""
    rows = book[name].numbers.values()
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


said, share = measured("zeros")
assert share[0] == 0 and (share.diff() > 0).all() and share[-1] > 0.5
for place, number in ((2, 2), (3, 4), (5, 16)):  # as by hand
    keys = torch.cat([words, torch.zeros(number, 8)])
    torch.testing.assert_close(share[place], weights(query, keys)[0, 4:].sum())

# %% [markdown]
# The other claims come in rounds.
# A round lists its claims as they are often written.
# **Judge them before you scroll on**: note R, H or W for each one.
# Some are right, and sound wrong.
# Then come the experiments, then the verdicts.
# A number such as 2e-16 is what rounding leaves of 0.
#
# (Would you rather play than read? Run all cells, and go to [the widget](#All-of-them,-to-play) at the end.)
#
# ## Round 1: words
#
# What goes in, before anything attends to anything.

# %% tags=["hide-input"]
book.say(
    "Words",
    words="Each output dimension of the model is a word of the target language.",
    splits="The vocabulary should know the words of the test: build it from training, "
    "validation and test text.",
    masked="Where padding is masked, any amount of it leaves the output as it is.",
    fixed="The encoder turns a sentence into a representation of fixed length.",
)

# %% [markdown]
# For claim 2, we let a list of the most frequent words and a subword vocabulary of the same size read unseen German.

# %%
from collections import Counter

from course_lib import Tokenizer
from course_lib.data import load_course

size = 400 if device == "cuda" else 100
corpus = load_course(num_train=2000, num_valid=1, num_test=size)
train, test = ([pair.tgt for pair in part] for part in (corpus.train, corpus.test))
counts, asked = (Counter(" ".join(texts).split()) for texts in (train, test))


def unknown(entries):
    listed = dict(counts.most_common(entries))
    missing = sum(asked[word] for word in asked if word not in listed)
    ids = sum(Tokenizer.train(train, vocab_size=entries).encode_batch(test), [])
    words, subwords = missing / asked.total(), ids.count(3) / len(ids)  # 3: <unk>
    return {"% unknown, words": 100 * words, "% unknown, subwords": 100 * subwords}


book.test("words", unknown, values=(250, 500, 1000, 2000))

# %% [markdown]
# Claim 3 has another cure for unknown words.
# What can the rows that it adds to the embedding learn?


# %%
def leaked(training_pairs):
    seen = set(" ".join(train[:training_pairs]).split())
    new = [word for word in asked if word not in seen]
    unknown = 100 * sum(asked[word] for word in new) / asked.total()
    return {"% unknown": unknown, "as said": 0, "rows that nothing trains": len(new)}


book.test("splits", leaked, values=(100, 500, 1000, 2000))

# %% [markdown]
# Claims 4 and 5 ask a trained model: the small course translator, in float64.

# %%
from course_lib import Translator
from course_lib.data import encode_pairs, make_batch

translator = Translator.from_pretrained("course")
model, pad_id = translator.model.double(), translator.model.config.pad_id


def batch_of(pairs):
    return make_batch(encode_pairs(translator.tokenizer, pairs))


batch = batch_of(corpus.test[:4])


# %%
@torch.no_grad()
def padded_more(padding):
    change, expected = {}, model(batch.src, batch.tgt_in)
    for name, token in (("<pad>, masked", pad_id), ("<unk>, not masked", 3)):
        wide = F.pad(batch.src, (0, padding), value=token)
        change[name] = (model(wide, batch.tgt_in) - expected).abs().max()
    return {f"change by {name}": largest for name, largest in change.items()}


book.test("masked", padded_more, values=(1, 10, 100))


# %%
@torch.no_grad()
def memory(words):
    text = " ".join(corpus.test[0].src.split()[:words])
    vectors = model.encode(torch.tensor(translator.encode([text])))[0]
    return {"vectors in the memory": len(vectors), "width": vectors.shape[1]}


book.test("fixed", memory, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
book.judge(
    words=("wrong", "01_text_to_tensors", "A subword, and of both languages: even a "
    "word list as long as the vocabulary lacks words of the test; the subwords lack "
    "none."),
    splits=("wrong", "01_text_to_tensors", "From the training part alone. The test's "
    "own words get rows that no sentence trains: a score that hides what real use will "
    "meet."),
    masked=("right", "05_masks", "Masked padding has a weight of exactly 0."),
    fixed=("wrong", "06_encoder", "One vector for each source token; only the width is "
    "fixed. The vector of fixed length is the bottleneck that attention removed."),
)

# %% tags=["hide-input"]
lacking, subwords = measured("words")
assert (lacking > 1).all() and (lacking.diff() < 0).all() and (subwords == 0).all()
honest, _, untrained = measured("splits")
assert (honest > 1).all() and (untrained > 10).all()
masked, filled = measured("masked")
assert masked.max() < 1e-9 and filled.min() > 0.1
vectors, width = measured("fixed")
assert (vectors.diff() > 0).all() and (width == 128).all()

# %% [markdown]
# ## Round 2: positions
#
# Seven sentences on one addition.

# %% tags=["hide-input"]
book.say(
    "Positions",
    start="Position 0 changes nothing, and the others change a word's vector a little.",
    multiples="After an offset, the encodings are multiples of each other.",
    fourier="The encoding is a kind of Fourier transform.",
    longer="Sinusoids go on for ever, so a model reads longer texts than it was "
    "trained on as well as others.",
    invariant="Self-attention is permutation-invariant.",
    order="Without positions, no order of the source words changes the translation.",
    axis="A table of (max_len, 1, d_model), sliced by `x.size(0)`, adds the positions; "
    "if the axes were wrong, it would crash.",
)

# %%
from course_lib.position import SinusoidalPosition, sinusoidal


def added(position):
    row, word = sinusoidal(position + 1, 512)[position], draw(512)
    lengths = {"length of a word": word.norm(), "of its position": row.norm()}
    return lengths | {"dimensions that get 0.5 or more": (row >= 0.5).sum()}


book.test("start", added, values=(0, 1, 10, 100))


# %%
def alike(offset):
    table = sinusoidal(100 + offset, 512)
    cosine = F.cosine_similarity(table[:100], table[offset:]).mean()
    return {"cosine, as said": 1, "cosine of PE(pos), PE(pos + offset)": cosine}


book.test("multiples", alike, values=(1, 2, 5, 10, 50))

# %% [markdown]
# A Fourier transform takes a whole signal apart into waves whose frequencies are 1, 2, 3, … times the lowest.
# Which frequencies does the table have, in units of its lowest?


# %%
def frequency(wave):  # from the slowest pair on
    return {"Fourier": wave, "sinusoids": 10000 ** (2 * (wave - 1) / 512)}


book.test("fourier", frequency, values=(1, 2, 3, 11, 65, 129, 256))

# %% [markdown]
# For claim 9 a model must be trained.
# One encoder layer reads 16 random words, and names for each the word *before* it: nothing but position can help.
# Then it reads texts up to eight times as long.
# (Its training is in the collapsed cell.)


# %% tags=["hide-input"]
def train_reader(seed):
    torch.manual_seed(seed)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    position = SinusoidalPosition(max_len=128, d_model=32)
    parts = nn.Embedding(20, 32), position, layer, nn.Linear(32, 20)
    reader = nn.Sequential(*parts).to(device)
    optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
    for _ in range(300):
        ids = torch.randint(20, (64, 16), device=device)
        logits = reader(ids)[:, 1:]  # (batch, words but the first, vocabulary)
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), ids[:, :-1].flatten()).backward()
        optimizer.step()
    return reader.eval()


# %%
readers = [train_reader(seed) for seed in range(8 if device == "cuda" else 2)]


@torch.no_grad()
def right_answers(words):
    ids = torch.randint(20, (200, words), device=device)
    answers = torch.stack([reader(ids)[:, 1:].argmax(dim=-1) for reader in readers])
    right = 100 * (answers == ids[:, :-1]).double().mean()
    return {"% right, as said": 100, "% right": right, "% by chance": 5}


book.test("longer", right_answers, values=(8, 16, 20, 24, 32, 64, 128))

# %% tags=["hide-input"]
book.judge(
    start=("wrong", "02_position", "It adds 1 to all 256 cosines, and every position "
    "has length √(d_model / 2) = 16, beside 22.6 of a word. It perturbs, and not a "
    "little."),
    multiples=("wrong", "02_position", "A rotation of each pair, which keeps lengths. "
    "(Nor did this paper invent such encodings: its section 3.5 cites earlier ones.)"),
    fourier=("wrong", "02_position", "No signal, no sum, no coefficients: one position "
    "is read off fixed waves. Frequencies grow by a factor, not in steps; that some "
    "pairs still meet at 10 and 100 is owed to the base 10,000 and a width divisible "
    "by 8."),
    longer=("wrong", "02_position", "Section 3.5 says that they may. Here the accuracy "
    "falls from all to hardly any: the rows exist, but no text has taught them."),
)

# %% tags=["hide-input"]
from course_lib.widgets import ErrataLab

figure = ErrataLab([book["longer"]]).picture()
_, right, chance = measured("longer")
assert right[:2].min() > 95 > 92 > right[2] and (right[2:].diff() < 0).all()
assert right[4] < 75 and right[-1] < 40
word, row, large = measured("start")
assert abs(row - 16).max() < 1e-4 and abs(word - math.sqrt(512)).max() < 2
assert large[0] == 256 and large.min() > 200
_, cosine = measured("multiples")
assert cosine.max() < 0.98 and (cosine.diff() < 0).all()
harmonics, pairs = measured("fourier")
assert abs(pairs[4] - 10) < 1e-9 and abs(pairs[5] - 100) < 1e-9  # accidents of the base
figure

# %% [markdown]
# The fall begins exactly where the training ended, at 16 words.
# Three claims of this round are left: they are about order itself.
# We flip a text end to end.

# %%
attend = nn.MultiheadAttention(16, 4, batch_first=True).double().eval()


@torch.no_grad()
def flipped(words):
    x, causal = draw(1, words, 16), torch.ones(words, words).triu(1).bool()
    plain, turned = (attend(y, y, y)[0][0] for y in (x, x.flip(1)))
    masked, back = (attend(y, y, y, attn_mask=causal)[0][0] for y in (x, x.flip(1)))
    change = turned - plain, turned - plain.flip(0), (turned - plain).mean(dim=0)
    names = "of the rows", "once moved along", "of the mean", "of the mean, causal"
    change = *change, (back - masked).mean(dim=0)
    return {f"change {n}": c.abs().max() for n, c in zip(names, change, strict=True)}


book.test("invariant", flipped, values=(2, 5, 10, 50))

# %%
whole = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True).double()


@torch.no_grad()
def reordered(source_words):
    src, tgt = draw(1, source_words, 16), draw(1, 5, 16, seed=1)
    change, position = {}, sinusoidal(source_words, 16)
    for name, extra in (("without positions", 0), ("with positions", position)):
        difference = whole(src.flip(1) + extra, tgt) - whole(src + extra, tgt)
        change[f"change {name}"] = difference.abs().max()
    return change


book.test("order", reordered, values=(2, 5, 10, 50))


# %%
def places(sentences):
    x, table = torch.zeros(sentences, 6, 8), sinusoidal(50, 8)[:, None]
    said, right = x + table[: x.size(0)], x + table[: x.size(1), 0]
    said, right = (len(each[-1].unique(dim=0)) for each in (said, right))
    return {"positions in a text of 6, as said": said, "sliced by x.size(1)": right}


book.test("axis", places, values=(1, 2, 8))

# %% tags=["hide-input"]
book.judge(
    invariant=("half right", "02_position", "Equivariant: rows move along with their "
    "words. Their mean is invariant. With a causal mask neither holds."),
    order=("right", "02_position", "The memory's rows move along, and cross-attention "
    "sums over them: a sum has no order."),
    axis=("wrong", "02_position", "Nothing crashes: with the batch first, each token "
    "gets the position of its sentence in the batch. Slice by the length."),
)

# %% tags=["hide-input"]
rows, along, mean, causal = measured("invariant")
assert min(rows.min(), causal.min()) > 1e-3 and max(along.max(), mean.max()) < 1e-12
blind, seeing = measured("order")
assert blind.max() < 1e-12 and seeing.min() > 1e-3
said, right = measured("axis")
assert (said == 1).all() and (right == 6).all()

# %% [markdown]
# ## Round 3: queries, keys and values
#
# Here one letter often stands for two things.

# %% tags=["hide-input"]
book.say(
    "Attention",
    scores="QKᵀ is the attention matrix.",
    encodings="The context is the weighted sum of the words' encodings.",
    lengths="Q and K must have the same shape: source and target need the same length "
    "and the same width.",
    value="Cross-attention hands the Value matrix of the encoder to the decoder.",
    lossless="Attention looks at every word, so no information is lost.",
)

# %%
def row_sums(d_k):
    query, key = draw(1, d_k, seed=1), draw(5, d_k)
    return {"sum of a row of QKᵀ": (query @ key.T).sum(), "of weights": 1}


book.test("scores", row_sums, values=(1, 4, 16, 64))


# %%
def projected(d_v):
    x, W_V = draw(5, 16), draw(16, d_v, seed=1)
    said, context = weights(x, x) @ x, weights(x, x) @ (x @ W_V)
    widths = {"width, as said": said.shape[1], "width of the context": context.shape[1]}
    return widths | {"apart, once times W_V": (said @ W_V - context).abs().max()}


book.test("encodings", projected, values=(2, 4, 8, 16))

# %% [markdown]
# Claims 15 and 16 are about cross-attention: a decoder of width 6 reads a memory of 7 vectors of width 8.


# %%
def cross(target_words):
    look = nn.MultiheadAttention(6, 2, kdim=8, vdim=8, batch_first=True).double()
    memory = draw(1, 7, 8)
    context, shares = look(draw(1, target_words, 6), memory, memory)
    (queries, keys), out = shares.shape[1:], context.shape[1]
    return {"rows of Q": queries, "rows of K and V": keys, "rows that come out": out}


book.test("lengths", cross, values=(1, 3, 7, 20))

# %%
book.test("value", cross, values=(1, 3, 7, 20))


# %%
def said_again(times):
    text, query = draw(3, 8), draw(1, 8, seed=1)
    all_again, one_again = text.repeat(times, 1), torch.cat([text, *[text[:1]] * times])
    texts = text, all_again, one_again
    once, all_again, one_again = (weights(query, each) @ each for each in texts)
    change = (all_again - once).abs().max(), (one_again - once).abs().max()
    return {"change, all said again": change[0], "change, one word again": change[1]}


book.test("lossless", said_again, values=(2, 10, 100))

# %% tags=["hide-input"]
book.judge(
    scores=("wrong", "03_attention", "Those are scores. Weights, which sum to 1, exist "
    "after the scale and the softmax."),
    encodings=("wrong", "03_attention", "Of their value vectors, x W_V: another width, "
    "and only what W_V lets through."),
    lengths=("wrong", "07_decoder", "Only d_k must agree after the projections. "
    "Lengths are what the sentences have; W_K and W_V fit the memory, W_Q the "
    "decoder."),
    value=("wrong", "07_decoder", "The values go in; what comes out is the context, "
    "one mixture of them for each query."),
    lossless=("wrong", "03_attention", "A weighted mean forgets: it cannot tell a text "
    "from the same text said twice."),
)

# %% tags=["hide-input"]
sums, ones = measured("scores")
assert (sums - ones).abs().min() > 0.1
encodings, context, difference = measured("encodings")
assert (encodings == 16).all() and context.tolist() == list(book["encodings"].values)
assert difference.max() < 1e-12
queries, keys, out = measured("lengths")
assert (keys == 7).all() and torch.equal(queries, out)
assert queries.tolist() == [1, 3, 7, 20]
everything, one = measured("lossless")
assert everything.max() < 1e-12 and one.min() > 0.05

# %% [markdown]
# ## Round 4: scale, cost, biases
#
# Two of these four are right.

# %% tags=["hide-input"]
book.say(
    "Scale and cost",
    scale="Dividing by √d_k is cosmetic: the softmax normalizes the scores anyway.",
    default="A function with the default `d_k=4` finds the right word among keys of "
    "width 3, so the default does no harm.",
    cheap="On texts longer than the model is wide, a recurrent layer multiplies less "
    "than self-attention does.",
    key_bias="The bias of the keys does nothing: whatever it is, the output stays.",
)

# %%
def largest(d_k):
    query, key = draw(200, d_k), draw(10, d_k, seed=1)
    raw, scaled = (query @ key.T).softmax(dim=-1), weights(query, key)
    shares = {"no scale": raw, "scaled": scaled}
    return {f"largest weight, {n}": x.amax(dim=-1).mean() for n, x in shares.items()}


book.test("scale", largest, values=(1, 4, 16, 64, 256))


# %% tags=["nbval-check-output"]
def weight_of_red(length):
    colors = length * torch.eye(3)[[0, 1, 2, 2]]  # red, yellow, blue, blue
    scores = colors[0] @ colors.T  # red among them
    said, right = ((scores / math.sqrt(d_k)).softmax(dim=-1)[0] for d_k in (4, 3))
    return {"weight of red, as said": said, "weight of red": right}


book.test("default", weight_of_red, values=(10, 3, 2, 1))

# %% [markdown]
# For claim 20 torch counts the operations of the matrix products itself, for vectors of width 64.

# %% tags=["nbval-check-output"]
from torch.utils.flop_counter import FlopCounterMode


def operations(words, width=64):
    x, W = draw(words, width), draw(width, width, seed=1)
    with FlopCounterMode(display=False) as attention:
        (x @ x.T) @ x  # scores, then weights @ values
    with FlopCounterMode(display=False) as recurrent:
        last = torch.zeros(1, width).double()
        for word in x[:, None]:
            last = word @ W + last @ W
    counts = recurrent.get_total_flops(), attention.get_total_flops()
    return dict(zip(("recurrent layer", "self-attention"), counts, strict=True))


book.test("cheap", operations, values=(16, 32, 64, 128, 512))


# %%
@torch.no_grad()
def biased(size):
    x, change = draw(1, 5, 16), {}
    for place, name in ((16, "keys"), (32, "values")):  # torch keeps q, k, v in one row
        layer = nn.MultiheadAttention(16, 4, batch_first=True).double()
        before = layer(x, x, x)[0]
        layer.in_proj_bias[place : place + 16] = size * draw(16, seed=2)
        change[f"change by the {name}' bias"] = (layer(x, x, x)[0] - before).abs().max()
    return change


book.test("key_bias", biased, values=(0.1, 1, 10, 100))

# %% tags=["hide-input"]
book.judge(
    scale=("wrong", "03_attention", "Unscaled scores have variance d_k, and the "
    "softmax saturates: one key takes nearly all."),
    default=("wrong", "03_attention", "Long vectors saturate the softmax and hide the "
    "slip; at length 1 it gives 0.355 where 0.373 is right. Take d_k from the query's "
    "shape. (And it is √d_k; a √d_b in print is a typing error.)"),
    cheap=("right", "03_attention", "n²·d against n·d² (the paper's table 1): "
    "attention is cheaper only while n < d."),
    key_bias=("right", "03_attention", "It adds the same to all scores of a query, and "
    "a softmax ignores what is added to all. The bias of the values is another "
    "matter."),
)

# %% tags=["hide-input"]
raw, scaled = measured("scale")
assert (raw.diff() > 0).all() and raw[-1] > 0.85 and scaled[1:].max() < 0.45
wrong, right = measured("default")
assert abs(wrong - right)[0] < 1e-6
assert (round(wrong[-1].item(), 3), round(right[-1].item(), 3)) == (0.355, 0.373)
recurrent, attention = measured("cheap")
lengths = torch.tensor(book["cheap"].values)
assert torch.equal(recurrent < attention, lengths > 64)
keys, values = measured("key_bias")
assert keys.max() < 1e-9 and (values.diff() > 0).all() and values[0] > 1e-3

# %% [markdown]
# ## Round 5: heads
#
# The same question each time: what do many heads cost, and what do they give?

# %% tags=["hide-input"]
book.say(
    "Heads",
    divisible="The number of heads must be divisible by the model dimension.",
    more_heads="Sixty-four heads have as many parameters as one.",
    w_o="W_O reduces the dimension after the heads are concatenated.",
    unbiased="Many heads average out each other's errors: the context becomes "
    "unbiased.",
)

# %% tags=["nbval-check-output"]
def build(num_heads, d_model=12):
    try:
        built = bool(nn.MultiheadAttention(d_model, num_heads))
    except AssertionError:
        built = False
    said, right = num_heads % d_model == 0, d_model % num_heads == 0
    return {"as said (1: yes)": said, "divides d_model": right, "it works": built}


book.test("divisible", build, values=(1, 4, 5, 12, 24))


# %% tags=["nbval-check-output"]
def parameters(num_heads):
    layer = nn.MultiheadAttention(512, num_heads)
    return {"parameters": sum(each.numel() for each in layer.parameters())}


book.test("more_heads", parameters, values=(1, 8, 64))


# %% tags=["nbval-check-output"]
def mixed(layer):
    W_O = model.decoder.layers[layer].cross_attn.output_proj.weight
    out, side_by_side = W_O.shape
    return {"in": side_by_side, "out": out, "rank": torch.linalg.matrix_rank(W_O)}


book.test("w_o", mixed, values=(0, 1))

# %% [markdown]
# Claim 25 treats heads as repeated measurements of one thing.
# Then the differences between them would be noise, and would come out differently on other sentences.
# How focused is each of the translator's eight cross-attention heads: its mean largest weight, on two halves of the sentences?

# %% tags=["hide-input"]
from course_lib import record_attention

focus = []  # for each half, of each head: the mean of the largest weight
for half in (batch_of(corpus.test[0::2]), batch_of(corpus.test[1::2])):
    with torch.no_grad(), record_attention(model) as maps:
        model(half.src, half.tgt_in)
    top = torch.cat(maps.cross, dim=1).amax(dim=-1)  # (batch, heads, tgt_len)
    focus.append(top.transpose(1, 2)[half.tgt_out != pad_id].mean(dim=0))

# %%
def of_head(head):
    return {"one half": focus[0][head], "other half": focus[1][head]}


book.test("unbiased", of_head, values=range(8))

# %% tags=["hide-input"]
book.judge(
    divisible=("wrong", "04_multi_head", "The reverse: d_model is shared out among "
    "heads."),
    more_heads=("right", "04_multi_head", "Each head is as narrow as there are many; "
    "the projections stay d_model × d_model."),
    w_o=("wrong", "04_multi_head", "8 × 64 = 512 already; W_O is 512 × 512, of full "
    "rank here as well, and mixes what the heads say."),
    unbiased=("wrong", "04_multi_head", "Heads differ, and in the same way on other "
    "sentences: specialists, side by side, and nobody averages them."),
)

# %% tags=["hide-input"]
said, right, built = measured("divisible")
assert torch.equal(right, built) and not torch.equal(said, built)
assert len(set(measured("more_heads")[0].tolist())) == 1
assert all((row == 128).all() for row in measured("w_o"))
one, other = measured("unbiased")
assert torch.corrcoef(torch.stack([one, other]))[0, 1] > 0.8
assert (one.max() - one.min()) > 2 * (one - other).abs().max()

# %% [markdown]
# ## Round 6: masks
#
# Masks fail in silence, so every experiment counts what leaks or what is lost.

# %% tags=["hide-input"]
book.say(
    "Masks",
    triangle="In the decoder, the upper triangle is masked.",
    afterwards="To hide keys, set their weights to 0 after the softmax.",
    minus="`masked_fill(mask == 0, -1e9)` hides keys.",
    shape="A padding mask of (batch, keys) can be used as it is: if its shape did not "
    "fit, there would be an error.",
    nothing="The causal mask is needed because the translation starts with nothing.",
)

# %% tags=["nbval-check-output"]
def hidden_above(diagonal):
    seen = ~torch.ones(6, 6).triu(diagonal).bool()  # (queries, keys)
    blind, cheats = ~seen.any(dim=1), seen.triu(1).any(dim=1)
    return {"queries without a key": blind.sum(), "that see their future": cheats.sum()}


book.test("triangle", hidden_above, values=(0, 1, 2))


# %%
def zeroed(hidden_keys):
    hidden, scores = torch.arange(6) < hidden_keys, draw(6)
    after = scores.softmax(dim=0).masked_fill(hidden, 0)
    before = scores.masked_fill(hidden, -math.inf).softmax(dim=0)
    return {"sum, 0 after the softmax": after.sum(), "sum, −∞ before": before.sum()}


book.test("afterwards", zeroed, values=(0, 1, 3, 5))


# %%
def minus_1e9(hidden_keys):
    hidden = torch.arange(5) < hidden_keys
    shares = draw(5).masked_fill(hidden, -1e9).softmax(dim=0)
    return {"as said": 0, "weight on hidden keys": shares[hidden].sum()}


book.test("minus", minus_1e9, values=(0, 1, 3, 4, 5))

# %% [markdown]
# For claim 29: as many sentences as words, sentence *i* with *i* + 1 real words.


# %%
def two_axes(sentences):
    real = torch.ones(sentences, sentences).tril().bool()  # (batch, keys)
    scores, share = draw(sentences, sentences, sentences), {}  # (batch, queries, keys)
    for name, mask in (("as said", real), ("(batch, 1, keys)", real[:, None])):
        shares = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        lost = shares.masked_fill(real[:, None], 0).sum(dim=-1)  # (batch, queries)
        share[f"attention on padding, {name}"] = lost.mean()
    return share


book.test("shape", two_axes, values=(2, 4, 8, 16))

# %% [markdown]
# For claim 30: what would change if a whole text, not the translation so far, went through two layers in one pass?

# %%
layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).double()
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
text, causal = draw(1, 8, 16), torch.ones(8, 8).triu(1).bool()


@torch.no_grad()
def one_pass(words_read):
    n, off = words_read, []
    for mask in (causal, torch.zeros_like(causal)):
        alone = stack(text[:, :n], mask[:n, :n])[0, -1]
        off.append((stack(text, mask)[0, n - 1] - alone).abs().max())
    return {"one pass is off, with the mask": off[0], "without a mask": off[1]}


book.test("nothing", one_pass, values=(1, 2, 4, 7))

# %% tags=["hide-input"]
book.judge(
    triangle=("half right", "05_masks", "Strictly above the diagonal, and on the "
    "scores; with the diagonal the first query has nothing to attend to."),
    afterwards=("wrong", "05_masks", "The rest then sums to less than 1. Put −∞ "
    "before."),
    minus=("half right", "05_masks", "Unless all keys are hidden: then all weight lies "
    "on them, and no error tells. And float16, which ends at 65,504, cannot hold it."),
    shape=("wrong", "05_masks", "With as many sentences as words it broadcasts along "
    "the queries, silently. Make it (batch, 1, 1, keys) for scores with heads."),
    nothing=("wrong", "05_masks", "When the model writes, there is no future to hide. "
    "The mask lets training do all positions in one pass, each as if alone."),
)

# %% tags=["hide-input"]
empty, ahead = measured("triangle")
assert empty.tolist() == [1, 0, 0] and ahead.tolist() == [0, 0, 5]
after, before = measured("afterwards")
assert (after[1:] < 0.9).all() and abs(before - 1).max() < 1e-12
_, shares = measured("minus")
assert shares[:-1].max() == 0 and shares[-1] == 1
assert torch.finfo(torch.float16).max == 65504
wrong, right = measured("shape")
assert wrong.min() > 0.05 and right.max() == 0
masked, free = measured("nothing")
assert masked.max() < 1e-12 and free.min() > 1e-3

# %% [markdown]
# ## Round 7: layers and stacks
#
# The paper's figure 1 is copied often, and seldom exactly.

# %% tags=["hide-input"]
book.say(
    "Layers and stacks",
    layer_norm="LayerNorm is γ (x − x.mean()) / x.std() + β.",
    feed_forward="The feed-forward network, max(0, x W₁ + b) W₂ + b, projects from "
    "d_ff down to d_model.",
    pre_norm="LayerNorm(x + Sublayer(x)) and x + Sublayer(LayerNorm(x)) are two ways "
    "to write the same layer.",
    final_norm="Behind the last layer of the paper's encoder stands one more "
    "LayerNorm, as in `nn.Transformer`.",
)

# %%
def normalized(spread):
    x = 3 + spread * draw(8)  # the features of a token
    said, torchs = (x - x.mean()) / x.std(), F.layer_norm(x, (8,))
    return {"size, as said": said.norm() / 8**0.5, "torch's": torchs.norm() / 8**0.5}


book.test("layer_norm", normalized, values=(1, 0.1, 0.01, 0.001, 0.0001))


# %% tags=["nbval-check-output"]
def widths(d_model):
    layer = nn.TransformerEncoderLayer(d_model, 4, dim_feedforward=4 * d_model)
    up, down = layer.linear1, layer.linear2
    return {"width after W₁, of b₁": len(up.bias), "after W₂, of b₂": len(down.bias)}


book.test("feed_forward", widths, values=(64, 512, 1024))

# %% [markdown]
# Claims 33 and 34 build stacks of torch's layers, and leave out the final norm.


# %%
@torch.no_grad()
def top_of(num_layers, norm_first):
    torch.manual_seed(0)
    options = dict(dropout=0.0, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(32, 4, 64, **options).double()
    stack = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
    return stack(draw(4, 10, 32))


def two_sizes(layers):
    post, pre = top_of(layers, False), top_of(layers, True)
    return {"size at the top, post-norm": post.std(), "pre-norm": pre.std()}


book.test("pre_norm", two_sizes, values=(1, 4, 16))


# %%
def one_more(layers):
    tops = top_of(layers, False), top_of(layers, True)
    post, pre = ((F.layer_norm(x, (32,)) - x).norm() / x.norm() for x in tops)
    return {"% changed by a final norm, post-norm": 100 * post, "pre-norm": 100 * pre}


book.test("final_norm", one_more, values=(1, 4, 16))

# %% tags=["hide-input"]
book.judge(
    layer_norm=("half right", "06_encoder", "Per token, over its features; but the "
    "biased variance, and ε under the root. Without ε equal features give 0 / 0."),
    feed_forward=("wrong", "06_encoder", "Up to d_ff, then back down, with b₁ and b₂; "
    "the same weights for all positions."),
    pre_norm=("wrong", "06_encoder", "Post-norm (the paper) and pre-norm (much code "
    "that quotes it): only post-norm keeps the size. Both exist; say which."),
    final_norm=("wrong", "08_transformer", "Figure 1 has none, and it would change "
    "next to nothing; torch adds it all the same. Pre-norm needs it."),
)

# %% tags=["hide-input"]
said, torchs = measured("layer_norm")
assert abs(said - math.sqrt(7 / 8)).max() < 1e-6 and abs(torchs[0] - 1) < 1e-3
equal = torch.ones(8)
assert torchs[-1] < 0.1 and ((equal - equal.mean()) / equal.std()).isnan().all()
up, down = measured("feed_forward")
assert torch.equal(up, 4 * down) and down.tolist() == [64, 512, 1024]
after, before = measured("pre_norm")
assert abs(after - 1).max() < 1e-2 and before[-1] > 3 and (before.diff() > 0).all()
post, pre = measured("final_norm")
assert post.max() < 0.1 and pre.min() > 5
assert isinstance(whole.encoder.norm, nn.LayerNorm) and not layer.norm_first

# %% [markdown]
# ## Round 8: from the encoder to the decoder
#
# Four ways to connect the two stacks, as they are drawn and told.

# %% tags=["hide-input"]
book.say(
    "Encoder to decoder",
    added="What the decoder layer has on top of the encoder layer is the masked "
    "self-attention.",
    corresponding="Decoder layer n takes its keys and values from encoder layer n.",
    last_keys="K and V of the last encoder layer go to the decoder.",
    empty="The decoder starts from an empty sentence.",
)

# %% tags=["nbval-check-output"]
def on_top(d_model):
    kinds = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    encoder, decoder = (kind(d_model, 4, dim_feedforward=4 * d_model) for kind in kinds)
    parts = encoder, decoder, decoder.multihead_attn, decoder.norm3
    less, more, *new = (sum(p.numel() for p in part.parameters()) for part in parts)
    return {"parameters added": more - less, "of cross-attention, norm": sum(new)}


book.test("added", on_top, values=(64, 512))

# %% [markdown]
# Claim 36: we wire the layers of a fresh `nn.Transformer` in both ways, and compare with the whole.


# %%
@torch.no_grad()
def wired(num_layers):
    options = dict(dropout=0.0, batch_first=True)
    whole = nn.Transformer(16, 4, num_layers, num_layers, 32, **options).double()
    outputs, y = [draw(1, 5, 16)], draw(1, 3, 16, seed=1)
    for layer in whole.encoder.layers:
        outputs.append(layer(outputs[-1]))
    off = []
    for memories in (outputs[1:], outputs[-1:] * num_layers):
        z = y
        for layer, memory in zip(whole.decoder.layers, memories, strict=True):
            z = layer(z, whole.encoder.norm(memory))
        off.append((whole.decoder.norm(z) - whole(outputs[0], y)).abs().max())
    return {"off, as said": off[0], "off, the last output for all": off[1]}


# %%
book.test("corresponding", wired, values=(1, 2, 4, 6))


# %%
@torch.no_grad()
def key_angle(decoder_layer):
    x, (first, last) = model.src_embedding(batch.src), model.encoder.layers
    theirs = last.self_attn.key_proj(last.self_attn_path.norm(first(x)))
    own = model.decoder.layers[decoder_layer].cross_attn.key_proj
    ours = own(model.encoder.norm(last(first(x))))
    cosine = F.cosine_similarity(ours, theirs, dim=-1).mean()
    return {"cosine of the keys, as said": 1, "cosine of the keys": cosine}


book.test("last_keys", key_angle, values=(0, 1))


# %% tags=["nbval-check-output"]
def rows_out(tokens_read):
    query, memory = torch.ones(1, tokens_read, 8), torch.ones(1, 7, 8)
    context = F.scaled_dot_product_attention(query, memory, memory)
    return {"rows that can predict a token": context.shape[1]}


book.test("empty", rows_out, values=(0, 1, 2, 3))

# %% tags=["hide-input"]
book.judge(
    added=("wrong", "07_decoder", "The added one is encoder-decoder attention. The "
    "self-attention was there before; it only gets the mask."),
    corresponding=("wrong", "07_decoder", "Every decoder layer reads the output of the "
    "last encoder layer. With one layer each, nobody could tell."),
    last_keys=("wrong", "07_decoder", "Its output goes there; every decoder layer "
    "projects keys and values of its own from it."),
    empty=("wrong", "07_decoder", "It starts from `<s>`: without a query there is no "
    "row."),
)

# %% tags=["hide-input"]
more, cross_attn = measured("added")
assert torch.equal(more, cross_attn)
said, right = measured("corresponding")
assert right.max() < 1e-12 and said[0] < 1e-12 and said[1:].min() > 1e-3
assert measured("last_keys")[1].abs().max() < 0.5
assert measured("empty")[0].tolist() == [0, 1, 2, 3]

# %% [markdown]
# ## Round 9: what the decoder may see
#
# Off by one, in six variations.

# %% tags=["hide-input"]
book.say(
    "Inside the decoder",
    all_positions="Every position of the decoder attends to all positions.",
    t_plus_1="The mask keeps word t + 1 from being used to predict word t.",
    whole="In training the decoder is fed the whole target; the causal mask does the "
    "rest.",
    word_by_word="The decoder learns word by word.",
    row_t="Row t of the cross-attention explains word t, which the decoder reads "
    "there.",
    axes="From the numbers alone one can tell if a plot has source and target swapped.",
)

# %%
pair = batch_of(corpus.test[:1])
src, tgt_in, tgt_out = pair.src, pair.tgt_in, pair.tgt_out
with torch.no_grad(), record_attention(model) as maps:
    model(src, tgt_in)
seen = maps.decoder[0][0, 0] > 0  # (queries, keys)


def open_keys(position):
    return {"as said": len(seen), "positions attended to": seen[position].sum()}


book.test("all_positions", open_keys, values=range(0, 12, 2))


# %%
def used(t):
    x = model.tgt_embedding(tgt_in).detach().requires_grad_()
    past = torch.ones(len(seen), len(seen)).tril().bool()[None, None]
    hidden = model.decoder(x, model.encode(src), past)  # (batch, tgt_len, d_model)
    hidden[0, t - 1].sum().backward()  # position 0 predicts word 1
    inputs = (x.grad[0].abs().sum(dim=-1) > 0).sum()  # <s> is one of them
    return {"words used for word t, as said": t, "words used": inputs - 1}


book.test("t_plus_1", used, values=(1, 2, 3, 5, 8))


# %%
def visible(position):
    fed = {"fed whole": tgt_out, "shifted right": tgt_in}
    answer = tgt_out[0, position]
    see = {n: (row[0, : position + 1] == answer).any() for n, row in fed.items()}
    return {f"answer visible, {name}": each for name, each in see.items()}


book.test("whole", visible, values=(0, 1, 2, 3, 4))


# %%
def gradient(losses):
    model.zero_grad()
    sum(losses).backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


def passes(words):
    read, true = tgt_in[:, :words], tgt_out[0, :words]
    at_once = gradient(F.cross_entropy(model(src, read)[0], true, reduction="none"))
    steps = (model(src, read[:, : t + 1])[0, -1] for t in range(words))
    by_word = gradient(map(F.cross_entropy, steps, true))
    off = (at_once - by_word).norm() / by_word.norm()
    return {"passes, as said": words, "passes": 1, "gradients differ by": off}


book.test("word_by_word", passes, values=(1, 2, 4, 8))

# %% [markdown]
# For claim 43 the corpus helps: its grammar knows which English word belongs to which German one.
# We count how often the strongest weight of a row finds it, in the row that *predicts* the German word and in the row below, which *reads* it.

# %%
from course_lib.analysis import word_spans

some, tokens = corpus.test[:50], translator.tokenizer.tokens
half = batch_of(some)
with torch.no_grad(), record_attention(model) as maps:
    model(half.src, half.tgt_in)
looked_at = maps.cross[-1].mean(dim=1).argmax(dim=-1)  # (batch, tgt_len): source places


def found(rows_below):
    hits = []
    for looks, pair in zip(looked_at.tolist(), some, strict=True):
        source, target = (word_spans(pair[2 + i], tokens(pair[i])) for i in (0, 1))
        hits += [looks[target[t][0] + rows_below] in source[s] for s, t in pair.links]
    return {"% of the links found": 100 * sum(hits) / len(hits)}


book.test("row_t", found, values=(0, 1))


# %%
def sums(words):
    shares = weights(draw(words, 8), draw(words, 8, seed=1))  # (target, source)
    off = {"source": shares.sum(dim=1) - 1, "target": shares.sum(dim=0) - 1}
    return {f"sums over the {n} miss 1 by": each.abs().max() for n, each in off.items()}


book.test("axes", sums, values=(2, 4, 8, 16))

# %% tags=["hide-input"]
book.judge(
    all_positions=("wrong", "05_masks", "To those up to and including itself."),
    t_plus_1=("half right", "05_masks", "True, and too little: that would allow word "
    "t, the answer. To predict y_t only y_<t may be used."),
    whole=("half right", "07_decoder", "Shifted right by one, up to and including "
    "`</s>` on the other side. Unshifted, the diagonal shows every answer."),
    word_by_word=("half right", "07_decoder", "Only inference does. Training takes one "
    "pass, with the gradient of all."),
)

# %% tags=["hide-input"]
book.judge(
    row_t=("wrong", "12_reading_attention", "Query t holds y_t and predicts y_{t+1}. "
    "Name rows by what they predict, or say which."),
    axes=("right", "12_reading_attention", "Each query shares out 1: sums over the "
    "source are 1. Rows are target queries, columns source keys."),
)

# %% tags=["hide-input"]
positions, attended = measured("all_positions")
assert attended.tolist() == [1, 3, 5, 7, 9, 11] and positions.min() > 11
said, words_used = measured("t_plus_1")
assert torch.equal(words_used, said - 1)
whole_target, shifted = measured("whole")
assert whole_target.min() == 1 and shifted.max() == 0
_, _, off = measured("word_by_word")
assert off.max() < 1e-9
predicts, reads = measured("row_t")[0]
assert predicts > 75 and reads < 25
source, target = measured("axes")
assert source.max() < 1e-12 and target.min() > 0.01

# %% [markdown]
# ## Round 10: training
#
# The longest round: recipes lose a letter or a line each time that they are copied.

# %% tags=["hide-input"]
book.say(
    "Training",
    rate="lr = d^−0.5 · min(d^−0.5, i · w^−1.5).",
    adam="Width 512, 8 heads, 6 + 6 layers, d_ff 2,048, dropout 0.1, trained with "
    "Adam: that is the paper's recipe.",
    dropped="In training too, each row of attention weights in a torch layer sums to "
    "1.",
    accumulation="Accumulating gradients reduces the memory that a model needs.",
    every_n="To step after every n micro-batches, step when `i % n == 0`.",
    undivided="If the accumulated losses are not divided by n, Adam does not mind.",
    pad_loss="The loss is the mean over all places of the batch.",
    smoothing="With label smoothing even a perfect model never has a loss of 0.",
)

# %%
from course_lib.training import TrainConfig, paper_rate


def rates(step):
    said = 512**-0.5 * min(512**-0.5, step * 4000**-1.5)
    right = paper_rate(step, d_model=512, warmup_steps=4000)
    return {"rate, as said": said, "rate, equation 3": right}


book.test("rate", rates, values=(1000, 4000, 8000, 11_181, 20_000, 100_000))

# %% [markdown]
# "Adam" alone leaves torch's defaults.
# How much weight does its second moment give to a gradient of some steps ago, with the default β₂ and with the paper's?


# %% tags=["nbval-check-output"]
def remembered(steps_ago):
    usual = torch.optim.Adam([torch.zeros(1)]).defaults["betas"][1]
    paper = TrainConfig().betas[1]
    return {f"β₂ = {usual}": usual**steps_ago, f"β₂ = {paper}": paper**steps_ago}


book.test("adam", remembered, values=(1, 10, 50, 100, 500))


# %%
def rows_in_training(dropout):
    layer = nn.MultiheadAttention(16, 4, dropout=dropout, batch_first=True)
    x = torch.randn(8, 30, 16)
    totals = layer(x, x, x, average_attn_weights=False)[1].sum(dim=-1)
    return {"smallest sum": totals.min(), "largest sum": totals.max()}


book.test("dropped", rows_in_training, values=(0, 0.1, 0.3))

# %% [markdown]
# For claim 48 we let torch tell what it keeps for the backward pass of one layer, for 32 sentences in so many micro-batches.


# %%
def kilobytes(micro_batches):
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    own, held = {x.data_ptr(): x.nbytes for x in layer.parameters()}, {}

    def note(x):
        held[x.data_ptr()] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        layer(torch.randn(32 // micro_batches, 20, 64))
    kept = sum(x.nbytes for place, x in held.items() if place not in own)
    fixed = 4 * sum(own.values())  # weights, gradients, two moments of Adam
    return {"kB of parameters": fixed / 1000, "kB of activations": kept / 1000}


book.test("accumulation", kilobytes, values=(1, 2, 4, 8, 16, 32))


# %% tags=["nbval-check-output"]
def first_step(n):
    said = [i for i in range(100) if i % n == 0]
    right = [i for i in range(100) if (i + 1) % n == 0]
    return {"in the first step, as said": said[0] + 1, "should be": right[0] + 1}


book.test("every_n", first_step, values=(2, 4, 5, 10))


# %%
def accumulated(n):
    x, y, w = draw(40, 4), draw(40, seed=1), torch.zeros(4).double().requires_grad_()
    for rows in torch.arange(40).chunk(n):
        (x[rows] @ w - y[rows]).square().mean().backward()  # not divided by n
    multiple = w.grad.norm() / (x.T @ y / 20).norm()  # of the whole batch's gradient
    torch.optim.Adam([w], lr=1.0).step()
    return {"gradient, as a multiple": multiple, "first step of Adam": w.abs().max()}


book.test("undivided", accumulated, values=(1, 2, 4, 8))


# %%
@torch.no_grad()
def losses(padding):
    read, true = (F.pad(x, (0, padding)) for x in (batch.tgt_in, batch.tgt_out))
    logits = model(batch.src, read).transpose(1, 2)  # (batch, vocab, tgt_len)
    loss = F.cross_entropy(logits, true, reduction="none")
    return {"as said": loss.mean(), "over real tokens": loss[true != pad_id].mean()}


book.test("pad_loss", losses, values=(0, 5, 10, 20, 40))


# %%
def perfect_loss(smoothing, vocab=2000):
    wanted = torch.full((vocab,), smoothing / vocab, dtype=torch.float64)
    wanted[0] += 1 - smoothing  # of the true token
    return {"loss when the model says exactly this": -(wanted * wanted.log()).sum()}


book.test("smoothing", perfect_loss, values=(0.001, 0.01, 0.1, 0.2))

# %% tags=["hide-input"]
book.judge(
    rate=("wrong", "09_training", "i^−0.5 in the first place. With one wrong letter "
    "the rate grows to 1.95e-3 at step 11,181 and stays; right, it peaks at 6.99e-4."),
    adam=("half right", "09_training", "Also d_k = d_v = 64, β₂ 0.98, ε 1e-9, 4,000 "
    "steps of warm-up, label smoothing 0.1, the last 5 checkpoints averaged (20 for "
    "big), and to decode beam 4 and α 0.6."),
    dropped=("wrong", "06_encoder", "torch's layers also drop attention weights and "
    "inner feed-forward activations; the paper drops sub-layer outputs and "
    "embeddings."),
    accumulation=("half right", "09_training", "Of activations only: weights, "
    "gradients and moments stay."),
)

# %% tags=["hide-input"]
book.judge(
    every_n=("wrong", "09_training", "It steps after the first one, and leaves some "
    "over: `(i + 1) % n == 0`."),
    undivided=("half right", "09_training", "Its step stays, as it divides by the "
    "size. But the gradient is n times as long: clipping, ε and SGD do mind."),
    pad_loss=("wrong", "09_training", "Over the real tokens. Padding asks for what "
    "nobody needs, the more of it there is."),
    smoothing=("right", "09_training", "Its floor is the entropy of the smoothed "
    "target: above 1 for ε = 0.1 and 2,000 subwords."),
)

# %% tags=["hide-input"]
from course_lib import ModelConfig, beam_search

said, right = measured("rate")
assert f"{right.max():.2e}" == "6.99e-04" and right.argmax() == 1
assert said.max() == said[3] == said[-1] > rates(11_180)["rate, as said"]
assert f"{said.max():.2e}" == "1.95e-03"
base, recipe = ModelConfig(vocab_size=37_000), TrainConfig()
sizes = (base.d_model, base.num_heads, base.num_layers, base.d_ff, base.dropout)
assert sizes == (512, 8, 6, 2048, 0.1) and base.d_k == 64 == 512 // 8
assert (recipe.betas, recipe.eps, recipe.warmup_steps) == ((0.9, 0.98), 1e-9, 4000)
assert recipe.label_smoothing == 0.1
search = beam_search.__kwdefaults__
assert (search["beam_size"], search["length_penalty"]) == (4, 0.6)

# %% tags=["hide-input"]
usual, paper = measured("adam")
assert usual[3] > 0.9 and paper[3] < 0.15
smallest, largest_sum = measured("dropped")
assert abs(smallest[0] - 1) < 1e-5 and smallest[1:].max() < 0.9
assert largest_sum[1:].min() > 1.05 and isinstance(layer.dropout, nn.Dropout)  # inner
parameters_kb, activations = measured("accumulation")
assert len(set(parameters_kb.tolist())) == 1
parts = torch.tensor(book["accumulation"].values)
assert ((activations[0] / activations / parts - 1).abs() < 0.1).all()
first_said, first = measured("every_n")
assert (first_said == 1).all() and (first > 1).all()

# %% tags=["hide-input"]
multiple, step = measured("undivided")
assert (multiple.log2() - torch.arange(4)).abs().max() < 1e-9
assert abs(step - 1).max() < 1e-3
everything, real = measured("pad_loss")
assert (everything.diff() > 0).all() and real.max() - real.min() < 1e-9
assert measured("smoothing")[0].min() > 0 and measured("smoothing")[0][2] > 1

# %% [markdown]
# ## Round 11: decoding and scores
#
# The model is trained; much can still go wrong between its logits and the score that is printed.

# %% tags=["hide-input"]
book.say(
    "Decoding and scores",
    logits="A beam search may add up logits: they rank like log-probabilities.",
    finished="In a beam search, only the hypotheses of its last step can win.",
    teacher="BLEU of the teacher-forced predictions says how well a model translates.",
    average="The BLEU of a system is the mean of the BLEU of its sentences.",
    perfect="A translation that equals its reference can have a BLEU of 0.",
)

# %% [markdown]
# Add a constant to all logits of a step, and the model says the same as before.
# Does a longer output still compare in the same way with a shorter one?


# %%
def gain(added):
    logits = draw(3, 10) + added  # of three more steps: (steps, vocab)
    said, right = logits.amax(dim=-1), logits.log_softmax(dim=-1).amax(dim=-1)
    return {"gain of 3 steps, as said": said.sum(), "log-probabilities": right.sum()}


book.test("logits", gain, values=(-5, -2, 0, 2, 5))

# %% [markdown]
# The finished course translator hardly errs.
# For the other claims we take it as it was early in its training, after 156 to 933 of 5,572 steps.

# %%
from course_lib.decoding import record_beam

early = Translator.from_pretrained("course", step=597)


def ended(beam_size):
    options, said, right = dict(beam_size=beam_size, length_penalty=0.0), 0, 0
    for ids in early.encode([pair.src for pair in corpus.test[:20]]):
        (tree,) = record_beam(early.model, torch.tensor([ids]), **options)
        ends = [node for node in tree.nodes if node.fate == "finished"]
        last = max(node.step for node in ends)
        said -= max(node.total for node in ends if node.step == last) / 20
        right -= max(node.total for node in ends) / 20
    return {"nats of the winner, as said": said, "all compete": right}


book.test("finished", ended, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
from course_lib.metrics import bleu

sources, references = zip(*(pair[:2] for pair in corpus.test), strict=True)
everything, written = batch_of(corpus.test), {}
for step in (156, 244, 382, 597, 933):
    early = Translator.from_pretrained("course", step=step)
    free = [each.text for each in early.translate_batch(sources, beam_size=1)]
    with torch.no_grad():
        forced = early.model(everything.src, everything.tgt_in).argmax(dim=-1)
    forced[everything.tgt_out == pad_id] = pad_id
    written[step] = free, [early.tokenizer.decode(ids) for ids in forced.tolist()]


# %%
def on_its_own(training_step):
    free, forced = (bleu(texts, references).score for texts in written[training_step])
    return {"BLEU, teacher-forced": forced, "BLEU, on its own": free}


book.test("teacher", on_its_own, values=list(written))


# %%
def averaged(training_step):
    free, _ = written[training_step]
    alone = [bleu([x], [y]).score for x, y in zip(free, references, strict=True)]
    return {"as said": sum(alone) / len(alone), "BLEU": bleu(free, references).score}


book.test("average", averaged, values=list(written))


# %% tags=["nbval-check-output"]
def of_itself(words):
    text = " ".join("Die Katze sieht den alten Hund".split()[:words])
    return {"BLEU of a sentence against itself": bleu([text], [text]).score}


book.test("perfect", of_itself, values=range(1, 7))

# %% tags=["hide-input"]
book.judge(
    logits=("wrong", "11_decoding", "A constant moves logits, not probabilities. With "
    "log-probabilities a longer output never gains; with logits it may."),
    finished=("wrong", "11_decoding", "A finished hypothesis keeps competing; dropped, "
    "more probable outputs (fewer nats) are lost."),
    teacher=("wrong", "11_decoding", "Its beginning is corrected at each step. Score "
    "what the model writes on its own, with sacreBLEU and its signature."),
    average=("wrong", "11_decoding", "BLEU counts n-grams over the corpus; the mean is "
    "another number, now higher, now lower."),
    perfect=("right", "11_decoding", "Alone, a sentence of fewer than four tokens has "
    "no 4-gram to match."),
)

# %% tags=["hide-input"]
raw, log_probs = measured("logits")
assert raw[0] < 0 < raw[-1] and (raw.diff() > 0).all()
assert log_probs.max() < 0 and log_probs.max() - log_probs.min() < 1e-9
late, compete = measured("finished")
assert abs(late[0] - compete[0]) < 1e-6 and (late - compete)[1:].min() > 0.2
forced, free = measured("teacher")
assert (forced > free).all()
mean, whole_corpus = measured("average")
assert torch.equal(whole_corpus, free) and (mean - free).abs().max() > 1
itself = measured("perfect")[0]
assert itself[:3].max() == 0 and itself[3:].min() > 99.9

# %% [markdown]
# ## Round 12: misprints
#
# Formulas do not survive copying.
# Each of these four has been printed or run.

# %% tags=["hide-input"]
book.say(
    "Misprints",
    caret="In Python, 10000^(2i/d_model) is written `10000 ^ (2 * i / d_model)`.",
    pairs="Dimension i of the encoding has the exponent i / d_model, odd or even.",
    dimension="In PE(pos, 2i), i counts the dimensions, 0 to d_model − 1.",
    odd="`table[:, 0::2] = sin`, `table[:, 1::2] = cos` works for any d_model.",
)

# %% tags=["nbval-check-output"]
def powers(exponent):
    return {"10000 ^ exponent": 10000 ^ exponent, "10000 ** exponent": 10000**exponent}


book.test("caret", powers, values=(0, 1, 2))

# %% [markdown]
# The encodings of claim 59 look fine.
# But can a linear map lead from each position to the one three words on, as section 3.5 promises?


# %%
def residual(d_model):
    dimension, position = torch.arange(d_model), torch.arange(500).double()[:, None]
    missed = {}
    for name, exponent in (("as said", dimension), ("in pairs", dimension // 2 * 2)):
        angle = position / 10000 ** (exponent / d_model)
        table = torch.where(dimension % 2 == 0, angle.sin(), angle.cos())
        best = torch.linalg.lstsq(table[:-3], table[3:], driver="gelsd").solution
        missed[f"off, {name}"] = (table[:-3] @ best - table[3:]).abs().max()
    return missed


book.test("pairs", residual, values=(16, 64, 128))


# %% tags=["nbval-check-output"]
def wavelengths(dimension):
    counted = dimension, dimension // 2  # dimensions, pairs
    said, right = (2 * math.pi * 10000 ** (2 * i / 512) for i in counted)
    return {"wavelength, as said": said, "wavelength": right}


book.test("dimension", wavelengths, values=(0, 128, 256, 510))


# %% tags=["nbval-check-output"]
def room(d_model):
    table, angles = torch.zeros(10, d_model), range(0, d_model, 2)
    return {"cosines to fill in": len(angles), "columns left": table[:, 1::2].shape[1]}


book.test("odd", room, values=(6, 7, 8, 9))

# %% tags=["hide-input"]
book.judge(
    caret=("wrong", "02_position", "`^` flips bits, and a fraction it refuses; a power "
    "is `**`. (Likewise `10000(2i/d)` has lost its exponent, and `for pos in max_len` "
    "is no loop.)"),
    pairs=("wrong", "02_position", "2⌊i/2⌋ / d_model: a sine and its cosine share an "
    "angle. Else no linear map exists; the best one misses by about 1."),
    dimension=("wrong", "02_position", "i counts pairs, 0 to d_model / 2 − 1; "
    "wavelengths end below 2π · 10,000."),
    odd=("wrong", "02_position", "An odd width has one angle more than columns for "
    "cosines: it crashes."),
)

# %% tags=["hide-input"]
wrong, right = measured("caret")
assert wrong.tolist() == [10_000, 10_001, 10_002] and right.tolist() == [1, 1e4, 1e8]
base = 10000
for slip in ("base ^ 0.5", "base(2)", "[pos for pos in 50]"):
    try:
        eval(slip)
        raise AssertionError(f"{slip} works")
    except TypeError:
        pass
said, paired = measured("pairs")
assert said.min() > 0.5 and said.max() < 2 and paired.max() < 1e-9
said, right = measured("dimension")
assert right.max() < 2 * math.pi * 10000 < said.max()
cosines, columns = measured("odd")
assert (cosines - columns).tolist() == [0, 1, 0, 1]

# %% [markdown]
# Some misprints need no experiment.
# Q = W·W_Q should be X·W_Q: X is the sentence, W_Q is learned.
# A network of two linear layers is an MLP, not an "NLP".
# "The same weights for all weights" should end with "for all positions".
# A vector is *perturbed* by its position, not *permuted*.
#
# ## All of them, to play
#
# Every claim once more.
# First you see only the sentence.
# Judge it, and the verdict appears, with the experiment's numbers; the slider is its knob.
# The list remembers what you answered.

# %%
lab = ErrataLab(book.claims)
lab

# %% tags=["hide-input"]
assert [claim["said"] for claim in lab.claims] == [claim.said for claim in book.claims]
assert all(len(claim.values) > 1 and claim.right for claim in book.claims)
for plain, claim in zip(lab.claims, book.claims, strict=True):
    assert [*map(tuple, plain["numbers"].values())] == [*claim.numbers.values()]

# %% [markdown]
# ## Your own claim
#
# You will read the next bold sentence soon.
# Write it down, look for a knob, and let two numbers meet: what the sentence predicts, and what comes out.
# Here is one to begin with; the verdict is yours.


# %%
def certainty(temperature):
    scores = torch.tensor([3.0, 2.0, 1.0, 0.0])
    said = scores.softmax(dim=0).max() / temperature
    found = (scores / temperature).softmax(dim=0).max()
    return {"largest probability, as said": said, "largest probability": found}


book.say("Yours", half="Twice the temperature makes a model half as certain.")
book.test("half", certainty, values=(1, 2, 4, 8))

# %% [markdown]
# ## The whole list

# %% tags=["nbval-check-output"]
book.summary()

# %% tags=["hide-input"]
from pathlib import Path

verdicts = Counter(claim.verdict for claim in book.claims if claim.verdict)
assert verdicts == {"right": 8, "half right": 10, "wrong": 43}
named = {2: "words", 9: "longer", 15: "lengths", 25: "unbiased", 29: "shape"}
named |= {33: "pre_norm", 36: "corresponding", 43: "row_t"}
named |= {48: "accumulation", 59: "pairs"}
assert all(book[name].number == number for number, name in named.items())
for claim in book.claims:
    assert not claim.lesson or Path(f"{claim.lesson}.ipynb").exists(), claim.lesson

# %% [markdown]
# ## Glossary
#
# - **claim**: a sentence that could be false.
# - **knob**: the one quantity that an experiment varies.
# - **measure**: a function from a value of the knob to numbers, those that the claim predicts and those that come out.

# %% [markdown]
# ## Summary
#
# A sentence about a model becomes an experiment when it predicts a number: choose a knob, measure, compare.
# Many wrong sentences are half of a right one: invariant for equivariant, the upper triangle for what lies strictly above the diagonal, QKᵀ for the softmax of it.
# The dangerous ones never crash: padding without a mask, a mask that broadcasts along the wrong axis, positions of the batch, a schedule with one wrong letter.
# A test with easy numbers finds nothing: saturated softmaxes, equal lengths, one layer and one head hide what the next model shows.
# And a sentence that sounds wrong may be right: the key bias does nothing, and masked padding is not there.
#
# **Next**: what you make of it.
# Train on sentence pairs of your own (lesson 17), read the paper once more from its title to its last table, and build a translator from an empty file: the capstone.
