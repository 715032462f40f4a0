# %% [markdown]
# # 18 · Errata lab: what popular explanations get wrong
#
# **Question.** "Attention is permutation-invariant." "Zero padding needs no mask." "The bias of the keys does nothing." You find such sentences in posts, slides and code. Which of them survive an experiment?
#
# **Afterwards you can**
#
# 1. turn a sentence about a model into an experiment of a few lines, with one knob to turn;
# 2. judge what you read about the Transformer: right, half right or wrong;
# 3. say what is right instead, and which lesson teaches it.
#
# **You need** lessons 01 to [12](12_reading_attention.ipynb), and for a few claims [13](13_positions_past_the_paper.ipynb) to [15](15_alternatives.ipynb): nothing here is new, except that you judge.
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
# The **measure** is a function: it takes a value of the knob and returns numbers.
# A row "as said" holds what the claim predicts.
# If there is none, first write down what the claim predicts for the rows: equal, unequal, 0 or growing.
# One row that contradicts a sentence with *always*, *never* or *any* refutes it; no table proves one.
# Where a claim is judged right, the table could have refuted it and did not, and the verdict says why it holds.
#
# All experiments of this lesson have that form.
# A `LabBook` keeps them, in three steps: `say` the claim, `test` it, `judge` it.

# %%
from course_lib.analysis import LabBook
from course_lib.widgets import ErrataLab, Predict, Predictions

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
bets = {}


def bet(name, section):
    """Asks for a verdict on a claim of this round."""
    question = f"Claim {book[name].number}: is it right?"
    bets[name] = Predict(question, ["right", "half right", "wrong"], section=section)
    return bets[name]


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
# The other claims come in rounds: some as they are often written, some put right, some that only sound wrong.
# **Judge them before you scroll on**: note R for true as it stands (of the paper's model, or of the code that it names), H for true in part or under a condition that it omits, W for false in the case that it is about.
# Then come the experiments (long helpers are collapsed), and under each its verdict, folded: open it when you have read the table.
# A number such as 2e-16 is what rounding leaves of 0 (where float32 takes part, 1e-8 to 1e-6).
# On some claims we ask for your bet; the list at the end says how you did.
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
    splits="The vocabulary should come from the training text alone, even if words of "
    "the test are then unknown.",
    masked="Where padding is masked, any amount of it at the end changes nothing.",
    fixed="The encoder turns a sentence into a representation of fixed length.",
)

# %% [markdown]
# For claim 2, we let a list of the most frequent words and a subword vocabulary of the same size read unseen German.
# And how many of the subwords are words?

# %% tags=["hide-input"]
from collections import Counter

from course_lib import Tokenizer
from course_lib.data import load_course

size = 400 if device == "cuda" else 100
corpus = load_course(num_train=2000, num_valid=1, num_test=size)
train, test = ([pair.tgt for pair in part] for part in (corpus.train, corpus.test))
counts, asked = (Counter(" ".join(texts).split()) for texts in (train, test))


# %%
def unknown(entries):
    listed = dict(counts.most_common(entries))
    missing = sum(asked[word] for word in asked if word not in listed)
    tokenizer = Tokenizer.train(train, vocab_size=entries)
    ids = sum(tokenizer.encode_batch(test), [])
    words, subwords = missing / asked.total(), ids.count(3) / len(ids)  # 3: <unk>
    unknown = {"% unknown, words": 100 * words, "% unknown, subwords": 100 * subwords}
    names = map(tokenizer.token, range(entries))  # "▁" begins a word
    whole = sum(name[0] == "▁" and name[1:] in counts for name in names)
    return unknown | {"% of the subwords that are words": 100 * whole / entries}


book.test("words", unknown, values=(250, 500, 1000, 1500))

# %% tags=["hide-input"]
book.judge(
    words=("wrong", "01_text_to_tensors", "A subword: many, here most, are pieces of "
    "words, and the translator's are of both languages. A word list as long lacks "
    "words of the test; the subwords lack none."),
)

# %% [markdown]
# A tempting cure is a vocabulary of training, validation *and* test text, which knows every word. Claim 3 turns it down.
# What could the rows that it adds to the embedding learn?


# %%
def leaked(training_pairs):
    seen = set(" ".join(train[:training_pairs]).split())
    new = [word for word in asked if word not in seen]
    unknown = 100 * sum(asked[word] for word in new) / asked.total()
    return {"% unknown": unknown, "rows added, of words never seen": len(new)}


book.test("splits", leaked, values=(100, 500, 1000, 2000))

# %% tags=["hide-input"]
book.judge(
    splits=("right", "01_text_to_tensors", "Rows of words that no training sentence "
    "holds learn nothing of their use, and the score hides what will really come. "
    "(Subwords leave nothing unknown.)"),
)

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

# %% tags=["hide-input"]
book.judge(
    masked=("right", "05_masks", "Masked padding has a weight of exactly 0."),
)

# %%
@torch.no_grad()
def memory(words):
    text = " ".join(corpus.test[0].src.split()[:words])
    vectors = model.encode(torch.tensor(translator.encode([text])))[0]
    return {"vectors in the memory": len(vectors), "width": vectors.shape[1]}


book.test("fixed", memory, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
book.judge(
    fixed=("wrong", "06_encoder", "One vector for each source token; only the width is "
    "fixed. The vector of fixed length is the bottleneck that attention removed."),
)

# %% tags=["hide-input"]
lacking, subwords, whole_words = measured("words")
assert (lacking > 1).all() and (lacking.diff() < 0).all() and (subwords == 0).all()
assert 10 < whole_words.min() and whole_words.max() < 50
honest, untrained = measured("splits")
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
    axis="A table of (max_len, 1, d_model), sliced by `x.size(0)` and added to a "
    "batch-first x, would crash.",
)

# %% tags=["hide-input"]
bet("longer", section="Round 2: positions")

# %%
from course_lib.position import SinusoidalPosition, sinusoidal

embedded = model.src_embedding.table.weight.detach() * math.sqrt(128)  # d_model


def added(position):
    row, word = sinusoidal(position + 1, 128)[position], embedded.norm(dim=1).median()
    lengths = {"length of a word (median)": word, "of its position": row.norm()}
    return lengths | {"dimensions that get 0.5 or more": (row >= 0.5).sum()}


book.test("start", added, values=(0, 1, 10, 100))

# %% tags=["hide-input"]
book.judge(
    start=("wrong", "02_position", "It adds 1 to all 64 cosines, and every position "
    "has length √(d_model / 2) = 8, beside about 18 of a word. It perturbs, and not a "
    "little."),
)

# %%
def alike(offset):
    table = sinusoidal(100 + offset, 512)
    cosine = F.cosine_similarity(table[:100], table[offset:]).mean()
    return {"cosine, as said": 1, "cosine of PE(pos), PE(pos + offset)": cosine}


book.test("multiples", alike, values=(1, 2, 5, 10, 50))

# %% tags=["hide-input"]
book.judge(
    multiples=("wrong", "02_position", "A rotation of each pair, which keeps lengths. "
    "(Nor were encodings of positions new: section 3.5 cites earlier ones.)"),
)

# %% [markdown]
# For claim 8 we transform the simplest signal, one pulse at position 7, at the table's frequencies, and compare with row 7.
# A discrete Fourier transform takes 1, 2, 3, … times its lowest frequency. Does the table?

# %%
pulse, seven = (torch.arange(100) == 7).double(), sinusoidal(8, 512)[7].double()


def frequencies(wave):  # from the slowest pair on
    slowest, own = 10000 ** (-510 / 512), 10000 ** (-(512 - 2 * wave) / 512)
    angles = own * torch.arange(100).double()
    pair = torch.stack([(pulse * angles.sin()).sum(), (pulse * angles.cos()).sum()])
    off = (pair - seven[512 - 2 * wave :][:2]).abs().max()
    named = {"frequency, discrete Fourier": wave, "sinusoids": own / slowest}
    return named | {"apart: row 7, pulse's transform": off}


book.test("fourier", frequencies, values=(1, 2, 3, 11, 65, 129, 256))

# %% tags=["hide-input"]
book.judge(
    fourier=("half right", "02_position", "A row is the transform of one pulse at its "
    "position. But it transforms no sentence, and its frequencies grow by a factor, "
    "not in equal steps: no harmonics, but for accidents such as 10 and 100 (owed to "
    "the base 10,000 and a width divisible by 8)."),
)

# %% [markdown]
# For claim 9 a model must be trained (`train_reader`).
# One encoder layer reads 16 random words, and names for each the word *before* it: nothing but position can help.
# Then it reads texts up to eight times as long: we count its first 7 answers, at places that every training text had, and its last one.


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
    right = 100 * (answers == ids[:, :-1]).double().mean(dim=(0, 1))  # (answers,)
    counted = {"first 7 answers": right[:7].mean(), "last answer": right[-1]}
    return {f"% right, {n}": x for n, x in counted.items()} | {"% by chance": 5}


book.test("longer", right_answers, values=(8, 16, 17, 20, 24, 32, 64, 128))

# %% tags=["hide-input"]
verdict = book.judge(
    longer=("wrong", "02_position", "Section 3.5 says that they may. Here the last "
    "answer is less often right from word 17 on, and far beyond even the first 7 "
    "suffer: the rows exist, but no text has taught how to read them."),
)
bets["longer"].reveal(book["longer"].verdict)
verdict

# %% tags=["hide-input"]
figure = ErrataLab([book["longer"]]).picture()
first, last, chance = measured("longer")
assert min(first[:4].min(), last[:2].min()) > 95 and last[2] < 93 and first[-1] < 70
assert (last[3:] < 75).all() and (last[5:] < 60).all() and last[-1] < 30
word, row, large = measured("start")
assert abs(row - 8).max() < 1e-4 and 15 < word[0] < 21 and row[0] > 0.3 * word[0]
assert large[0] == 64 and large.min() > 50
assert abs(sinusoidal(9, 512).norm(dim=1) - 16).max() < 1e-4
_, cosine = measured("multiples")
assert cosine.max() < 0.98 and (cosine.diff() < 0).all()
harmonics, pairs, apart = measured("fourier")
assert abs(pairs[4] - 10) < 1e-9 and abs(pairs[5] - 100) < 1e-9  # accidents of the base
assert abs(pairs[1:4] - harmonics[1:4]).min() > 0.5 and apart.max() < 1e-6
figure

# %% [markdown]
# The figure shows the table of claim 9.
# Up to 16 words, the length of training, nearly every answer is right; at 17 the last one already fails more often.
# (From there on it goes up and down: two readers are few, and each fails at places of its own.)
# At 128 words, even the first 7 suffer.
#
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

# %% tags=["hide-input"]
book.judge(
    invariant=("half right", "02_position", "Equivariant: rows move along with their "
    "words. Their mean is invariant. With a causal mask not even the mean is."),
)

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

# %% tags=["hide-input"]
book.judge(
    order=("right", "02_position", "The memory's rows move along, and cross-attention "
    "sums over them: a sum has no order."),
)

# %%
def places(sentences):
    x, table = torch.zeros(sentences, 6, 8), sinusoidal(50, 8)[:, None]
    said, right = x + table[: x.size(0)], x + table[: x.size(1), 0]
    said, right = (len(each[-1].unique(dim=0)) for each in (said, right))
    return {"positions in a text of 6, as said": said, "sliced by x.size(1)": right}


book.test("axis", places, values=(1, 2, 8))

# %% tags=["hide-input"]
book.judge(
    axis=("wrong", "02_position", "Up to max_len sentences it broadcasts: each "
    "token gets the position of its sentence in the batch. The line is right in "
    "PyTorch's tutorial, whose x is (length, batch, d_model). Slice by the length."),
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
    lengths="In cross-attention, source and target may differ in length and in width.",
    lossless="Attention looks at every word, so a context loses no information.",
)

# %%
def row_sums(d_k):
    query, key = draw(1, d_k, seed=1), draw(5, d_k)
    return {"sum of a row of QKᵀ": (query @ key.T).sum(), "of weights": 1}


book.test("scores", row_sums, values=(1, 4, 16, 64))

# %% tags=["hide-input"]
book.judge(
    scores=("wrong", "03_attention", "Those are scores. Weights, which sum to 1, exist "
    "after the scale and the softmax."),
)

# %%
def projected(d_v):
    x, W_V = draw(5, 16), draw(16, d_v, seed=1)
    said, context = weights(x, x) @ x, weights(x, x) @ (x @ W_V)
    widths = {"width, as said": said.shape[1], "width of the context": context.shape[1]}
    return widths | {"apart, once times W_V": (said @ W_V - context).abs().max()}


book.test("encodings", projected, values=(2, 4, 8, 16))

# %% tags=["hide-input"]
book.judge(
    encodings=("half right", "03_attention", "Of their value vectors, x W_V. For given "
    "weights that is the sum of encodings times W_V: another width, and only what W_V "
    "lets through."),
)

# %% [markdown]
# Claim 15: a decoder of width 6 reads a memory of 7 vectors of width 8.


# %%
def cross(target_words):
    look = nn.MultiheadAttention(6, 2, kdim=8, vdim=8, batch_first=True).double()
    memory = draw(1, 7, 8)
    context, shares = look(draw(1, target_words, 6), memory, memory)
    (queries, keys), out = shares.shape[1:], context.shape[1]
    return {"rows of Q": queries, "rows of K and V": keys, "rows that come out": out}


book.test("lengths", cross, values=(1, 3, 7, 20))

# %% tags=["hide-input"]
book.judge(
    lengths=("right", "07_decoder", "Only d_k must agree, after the projections: W_Q "
    "fits the decoder, W_K and W_V the memory. Keys and values go in, a row of each "
    "for a source token; the context comes out, a row for each query."),
)

# %% [markdown]
# For claim 16: in how many independent directions can the words change, and how many of those does a query's context show?


# %%
def noticed(words):
    def context(text):
        return weights(draw(1, 8, seed=1), text) @ text  # (1, d_v)

    slopes = torch.autograd.functional.jacobian(context, draw(words, 8))
    directions = torch.linalg.matrix_rank(slopes.reshape(8, -1))
    return {"directions of the words": 8 * words, "seen in the context": directions}


book.test("lossless", noticed, values=(1, 2, 10, 100))

# %% tags=["hide-input"]
book.judge(
    lossless=("wrong", "03_attention", "One context is d_v numbers, however long the "
    "text: in all other directions the words may change a little and it does not "
    "show."),
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
directions, seen = measured("lossless")
assert (seen == 8).all() and directions.tolist() == [8, 16, 80, 800]

# %% [markdown]
# ## Round 4: scale, cost, biases
#
# Three sentences about what may be left out.

# %% tags=["hide-input"]
book.say(
    "Scale and cost",
    scale="softmax(QKᵀ)V will do: dividing by √d_k is cosmetic, as the softmax "
    "normalizes the scores anyway.",
    cheap="Self-attention multiplies less than a recurrent layer as long as the text "
    "is shorter than the model is wide.",
    key_bias="The bias of the keys does nothing: whatever it is, the output stays.",
)

# %% tags=["hide-input"]
bet("cheap", section="Round 4: scale, cost, biases")

# %%
def largest(d_k):
    query, key = draw(200, d_k), draw(10, d_k, seed=1)
    scores, divisors = query @ key.T, {"no scale": 1, "√4": 2, "√d_k": math.sqrt(d_k)}
    shares = {by: (scores / size).softmax(dim=-1) for by, size in divisors.items()}
    return {f"largest weight, {by}": x.amax(dim=-1).mean() for by, x in shares.items()}


book.test("scale", largest, values=(1, 4, 16, 64, 256))

# %% tags=["hide-input"]
book.judge(
    scale=("wrong", "03_attention", "With entries of variance 1, as at the start of a "
    "training, unscaled scores have variance d_k: the softmax saturates, and one key "
    "takes nearly all. A constant such as √4, some code's default, suits one width "
    "only. (T5 divides by nothing, and begins with a smaller W_Q instead.)"),
)

# %% [markdown]
# For claim 18 torch counts the operations of whole layers itself, all of width 64.

# %% tags=["nbval-check-output"]
from torch.utils.flop_counter import FlopCounterMode

recurrent, lstm = (layer(64, 64).double() for layer in (nn.RNN, nn.LSTM))
multi_head = nn.MultiheadAttention(64, 1).double()


def operations(words):
    x, counts = draw(words, 64), {}
    layers = {"scores and context": lambda: (x @ x.T) @ x}
    layers["attention, with its four projections"] = lambda: multi_head(x, x, x)
    layers |= {"recurrent layer": lambda: recurrent(x), "LSTM": lambda: lstm(x)}
    for name, run in layers.items():
        with FlopCounterMode(display=False) as counter:
            run()
        counts[name] = counter.get_total_flops()
    return counts


book.test("cheap", operations, values=(16, 32, 64, 128, 512))

# %% tags=["hide-input"]
verdict = book.judge(
    cheap=("half right", "15_alternatives", "Table 1 compares the terms n²·d and n·d², "
    "which cross at n = d. It leaves out attention's projections, 4·n·d². With them, "
    "attention multiplies more than this recurrent layer at every length, and less "
    "than an LSTM while n < 2d. It wins on sequential steps: O(1) against O(n)."),
)
bets["cheap"].reveal(book["cheap"].verdict)
verdict

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
    key_bias=("right", "03_attention", "It adds the same to all scores of a query, and "
    "a softmax ignores what is added to all. (Where keys are turned, in rotary "
    "positions, so is their bias, and it counts. That of the values always does.)"),
)

# %% tags=["hide-input"]
raw, constant, scaled = measured("scale")
assert (raw.diff() > 0).all() and raw[-1] > 0.85 and scaled[1:].max() < 0.45
assert constant[1] == scaled[1] and constant[-1] > 0.75
for length, expected in ((10, (1, 1)), (1, (0.355, 0.373))):
    scores = length**2 * torch.tensor([1.0, 0.0, 0.0, 0.0])  # one key is the query
    found = [(scores / math.sqrt(d_k)).softmax(dim=0)[0].item() for d_k in (4, 3)]
    assert tuple(round(x, 3) for x in found) == expected
core, whole_layer, simple, gated = measured("cheap")
lengths = torch.tensor(book["cheap"].values)
assert torch.equal(core < simple, lengths < 64) and (whole_layer > simple).all()
assert torch.equal(whole_layer < gated, lengths < 128)
keys, values = measured("key_bias")
assert keys.max() < 1e-9 and (values.diff() > 0).all() and values[0] > 1e-3

# %% [markdown]
# ## Round 5: heads
#
# What do many heads cost, and what do they give?

# %% tags=["hide-input"]
book.say(
    "Heads",
    always="More heads are always better.",
    more_heads="Sixty-four heads have as many parameters as one.",
    w_o="W_O leaves the dimension as it is: concatenated heads have the width of the "
    "model.",
    unbiased="Many heads average out each other's errors: the context becomes "
    "unbiased.",
)

# %% tags=["hide-input"]
bet("more_heads", section="Round 5: heads")

# %% [markdown]
# For claim 20 we read two tables: part (A) of the paper's table 3, with 512 features in all, and our record of it in miniature, with 128 (`records/table3.json`, one run each).

# %% tags=["hide-input"]
from course_lib.experiments import final_results, read_record

PAPER = {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}  # BLEU, newstest2013
ours = final_results(read_record("records/table3.json"), "bleu")
ours = {h: ours[f"course: A {h} head{'s' * (h > 1)}"][0] for h in (1, 8, 16)}


# %% tags=["nbval-check-output"]
def in_tables(heads):
    return {"BLEU, the paper's table 3": PAPER[heads], "ours": ours[heads]}


book.test("always", in_tables, values=(1, 8, 16))

# %% tags=["hide-input"]
book.judge(
    always=("wrong", "04_multi_head", "From 1 to 8 both gain, from 8 to 16 neither, "
    "and with 32 the paper's loses 0.4 BLEU: each head is narrower. (Their number must "
    "divide d_model where d_k = d_model / h; not the reverse, as is also printed.)"),
)


# %% tags=["nbval-check-output"]
def parameters(num_heads):
    layer = nn.MultiheadAttention(512, num_heads)
    return {"parameters": sum(each.numel() for each in layer.parameters())}


book.test("more_heads", parameters, values=(1, 8, 64))

# %% tags=["hide-input"]
verdict = book.judge(
    more_heads=("right", "04_multi_head", "Each head has width d_model / h; the "
    "projections stay d_model × d_model."),
)
bets["more_heads"].reveal(book["more_heads"].verdict)
verdict

# %% tags=["nbval-check-output"]
def mixed(layer):
    W_O = model.decoder.layers[layer].cross_attn.output_proj.weight
    out, side_by_side = W_O.shape
    return {"in": side_by_side, "out": out, "rank": torch.linalg.matrix_rank(W_O)}


book.test("w_o", mixed, values=(0, 1))

# %% tags=["hide-input"]
book.judge(
    w_o=("right", "04_multi_head", "In the paper 8 × 64 = 512 already; here W_O is "
    "128 × 128. Of full rank, it reduces nothing: it mixes what the heads say."),
)

# %% [markdown]
# Claim 23 treats heads as measurements of one thing, each with an error of its own.
# Then their mean would be the best measurement.
# So `averaging` replaces the weights of each cross-attention head of the translator by the mean over its layer, first in part, then altogether.

# %% tags=["hide-input"]
def averaging(part):
    def hook(module, inputs, context):
        query, keys, values, mask, _ = inputs
        scores = query @ keys.mT / math.sqrt(query.shape[-1])
        own = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        mean = own.mean(dim=1, keepdim=True)  # (batch, 1, queries, keys)
        return ((1 - part) * own + part * mean) @ values  # each head's own values

    return hook


# %%
everything, loss = batch_of(corpus.test), nn.CrossEntropyLoss(ignore_index=pad_id)


@torch.no_grad()
def heads_mixed(part_averaged):
    losses, modules = {}, [layer.cross_attn.fused for layer in model.decoder.layers]
    for name, part in (("own weights", 0), ("averaged", part_averaged)):
        hooks = [module.register_forward_hook(averaging(part)) for module in modules]
        logits = model(everything.src, everything.tgt_in)
        losses[f"loss, {name}"] = loss(logits.mT, everything.tgt_out)
        for hook in hooks:
            hook.remove()
    return losses


book.test("unbiased", heads_mixed, values=(0, 0.25, 0.5, 0.75, 1))

# %% tags=["hide-input"]
book.judge(
    unbiased=("wrong", "04_multi_head", "W_O adds up what the heads bring, each by "
    "matrices of its own; nobody averages their weights. Averaged, this model loses: "
    "it uses their differences."),
)

# %% tags=["hide-input"]
papers, in_small = measured("always")
assert papers[1] > papers[0] and in_small[1] > in_small[0]
assert papers[2] <= papers[1] and in_small[2] < in_small[1] and PAPER[32] < PAPER[8]
for heads in (1, 4, 5, 12, 24):  # of 12 features
    try:
        built = bool(nn.MultiheadAttention(12, heads))
    except AssertionError:
        built = False
    assert built == (12 % heads == 0)

# %% tags=["hide-input"]
assert len(set(measured("more_heads")[0].tolist())) == 1
assert all((row == 128).all() for row in measured("w_o"))
own, averaged_loss = measured("unbiased")
with torch.no_grad():
    untouched = loss(model(everything.src, everything.tgt_in).mT, everything.tgt_out)
assert abs(own - untouched).max() < 1e-9 and averaged_loss[0] == own[0]
assert (averaged_loss.diff() > 0).all() and averaged_loss[-1] > 1.5 * own[-1]

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

# %% tags=["hide-input"]
book.judge(
    triangle=("half right", "05_masks", "Strictly above the diagonal, and on the "
    "scores; with the diagonal the first query has nothing to attend to."),
)

# %%
def zeroed(hidden_keys):
    hidden, scores, found = torch.arange(6) < hidden_keys, draw(6), {}
    louder = scores + 3 * hidden  # only hidden keys change
    after, other = (x.softmax(dim=0).masked_fill(hidden, 0) for x in (scores, louder))
    found |= {"sum, 0 after": after.sum(), "leak, 0 after": (other - after).abs().max()}
    hide = [x.masked_fill(hidden, -math.inf).softmax(dim=0) for x in (scores, louder)]
    leak = (hide[1] - hide[0]).abs().max()
    return found | {"sum, −∞ before": hide[0].sum(), "leak, −∞ before": leak}


book.test("afterwards", zeroed, values=(0, 1, 3, 5))

# %% tags=["hide-input"]
book.judge(
    afterwards=("wrong", "05_masks", "Hidden keys stay in the denominator: the rest "
    "sums to less than 1, and what is hidden, the future too, still leaks. Put −∞ "
    "before (or divide what is left by its sum)."),
)

# %%
def minus_1e9(hidden_keys):
    hidden = torch.arange(5) < hidden_keys
    shares = draw(5).masked_fill(hidden, -1e9).softmax(dim=0)
    return {"as said": 0, "weight on hidden keys": shares[hidden].sum()}


book.test("minus", minus_1e9, values=(0, 1, 3, 4, 5))

# %% tags=["hide-input"]
book.judge(
    minus=("half right", "05_masks", "It fails where all keys are hidden: they get all "
    "the weight, silently. And float16, which ends at 65,504, cannot hold it."),
)

# %% [markdown]
# For claim 27: as many sentences as words, sentence *i* with *i* + 1 real words.


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

# %% tags=["hide-input"]
book.judge(
    shape=("wrong", "05_masks", "With as many sentences as words, the axis of the "
    "sentences lands on that of the queries, silently: query i of each sentence gets "
    "the mask of sentence i. Make it (batch, 1, 1, keys) for scores with heads."),
)

# %% [markdown]
# For claim 28, two layers compute the row of the newest word.
# The reference reads the words so far, with the mask.
# We compare three others with it: all words at once with the mask, all at once without, and the words so far without.
# Which of them give the same row?

# %%
layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).double()
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
text, causal = draw(1, 8, 16), torch.ones(8, 8).triu(1).bool()


@torch.no_grad()
def newest_row(words_read):
    n, off = words_read, {}
    so_far = stack(text[:, :n], causal[:n, :n])[0, -1]
    off["all at once, with the mask"] = stack(text, causal)[0, n - 1] - so_far
    off["all at once, without"] = stack(text)[0, n - 1] - so_far
    off["writing without the mask"] = stack(text[:, :n])[0, -1] - so_far
    return {f"off, {name}": each.abs().max() for name, each in off.items()}


book.test("nothing", newest_row, values=(1, 2, 4, 7))

# %% tags=["hide-input"]
book.judge(
    nothing=("wrong", "05_masks", "Without it, training on a whole sentence shows each "
    "position its answer. With it every row depends on its prefix only, so one pass "
    "computes all positions, and writing reproduces the same rows (so a cache works). "
    "Writing without it, each new word changes the earlier rows, and from the "
    "second layer on the newest row reads those."),
)

# %% tags=["hide-input"]
empty, ahead = measured("triangle")
assert empty.tolist() == [1, 0, 0] and ahead.tolist() == [0, 0, 5]
after, leak, before, tight = measured("afterwards")
assert (after[1:] < 0.9).all() and abs(before - 1).max() < 1e-12
assert (leak[1:] > 0.01).all() and leak[0] == 0 and tight.max() == 0

# %% tags=["hide-input"]
_, shares = measured("minus")
assert shares[:-1].max() == 0 and shares[-1] == 1
assert torch.finfo(torch.float16).max == 65504
wrong, right = measured("shape")
assert wrong.min() > 0.05 and right.max() == 0
masked, free, writing = measured("nothing")
assert masked.max() < 1e-12 and free.min() > 1e-3
assert writing[0] < 1e-12 and writing[1:].min() > 1e-3
with torch.no_grad():  # with one layer nobody could tell
    one = stack.layers[0]
    assert (one(text)[0, -1] - one(text, causal)[0, -1]).abs().max() < 1e-12

# %% [markdown]
# ## Round 7: layers and stacks
#
# The paper's figure 1 is copied often, and seldom exactly.

# %% tags=["hide-input"]
book.say(
    "Layers and stacks",
    layer_norm="LayerNorm is γ (x − x.mean()) / x.std() + β.",
    pre_norm="LayerNorm(x + Sublayer(x)) and x + Sublayer(LayerNorm(x)) are two ways "
    "to write the same layer.",
    final_norm="`nn.Transformer` has two LayerNorms more than the paper's model.",
)

# %% tags=["hide-input"]
bet("final_norm", section="Round 7: layers and stacks")

# %%
def normalized(spread):
    x = 3 + spread * draw(8)  # the features of a token
    said, torchs = (x - x.mean()) / x.std(), F.layer_norm(x, (8,))
    return {"size, as said": said.norm() / 8**0.5, "torch's": torchs.norm() / 8**0.5}


book.test("layer_norm", normalized, values=(1, 0.1, 0.01, 0.001, 0.0001))

# %% tags=["hide-input"]
book.judge(
    layer_norm=("half right", "06_encoder", "Per token, over its features; but the "
    "biased variance, and ε under the root (The Annotated Transformer adds ε to an "
    "unbiased deviation). Without ε equal features give 0 / 0."),
)

# %% [markdown]
# For claims 30 and 31 we build stacks of torch's layers without the final norm (`top_of`), and ask what it would change.
# Training moves the gains and biases of LayerNorm from 1 and 0, so we also move them by about 0.3.


# %% tags=["hide-input"]
@torch.no_grad()
def top_of(num_layers, norm_first, moved=0.0):
    torch.manual_seed(0)
    options = dict(dropout=0.0, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(32, 4, 64, **options).double()
    stack = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
    norms = [part for part in stack.modules() if isinstance(part, nn.LayerNorm)]
    for seed, norm in enumerate(norms):
        gains, biases = moved * draw(2, 32, seed=seed)
        norm.weight += gains
        norm.bias += biases
    return stack(draw(4, 10, 32))


# %%
def two_sizes(layers):
    post, pre = top_of(layers, False), top_of(layers, True)
    return {"size at the top, post-norm": post.std(), "pre-norm": pre.std()}


book.test("pre_norm", two_sizes, values=(1, 4, 16))

# %% tags=["hide-input"]
book.judge(
    pre_norm=("wrong", "06_encoder", "Post-norm (the paper) and pre-norm (the code of "
    "The Annotated Transformer beside it): at initialization only post-norm keeps the "
    "size. Both exist; say which."),
)

# %%
def one_more(layers):
    whole = nn.Transformer(32, 4, layers, layers, 64, batch_first=True)
    norms = sum(isinstance(part, nn.LayerNorm) for part in whole.modules())
    tops = {"fresh": top_of(layers, False), "moved": top_of(layers, False, 0.3)}
    found = {"LayerNorms, figure 1": 5 * layers, "nn.Transformer": norms}
    for name, x in (tops | {"pre-norm": top_of(layers, True)}).items():
        share = (F.layer_norm(x, (32,)) - x).norm() / x.norm()
        found[f"% changed by one more, {name}"] = 100 * share
    return found


book.test("final_norm", one_more, values=(1, 4, 16))

# %% tags=["hide-input"]
verdict = book.judge(
    final_norm=("right", "08_transformer", "One behind each stack. A fresh post-norm "
    "stack hardly notices; once gains and biases have moved, it does. Pre-norm needs "
    "it: its sums have grown."),
)
bets["final_norm"].reveal(book["final_norm"].verdict)
verdict

# %% tags=["hide-input"]
said, torchs = measured("layer_norm")
assert abs(said - math.sqrt(7 / 8)).max() < 1e-6 and abs(torchs[0] - 1) < 1e-3
equal = torch.ones(8)
assert torchs[-1] < 0.1 and ((equal - equal.mean()) / equal.std()).isnan().all()
after, before = measured("pre_norm")
assert abs(after - 1).max() < 1e-2 and before[-1] > 3 and (before.diff() > 0).all()
figure_1, torchs, fresh, moved, pre = measured("final_norm")
assert (torchs - figure_1 == 2).all()
assert fresh.max() < 0.1 and min(moved.min(), pre.min()) > 3
assert isinstance(whole.encoder.norm, nn.LayerNorm) and not layer.norm_first

# %% [markdown]
# ## Round 8: from the encoder to the decoder
#
# What goes from one stack to the other, and what is new there?

# %% tags=["hide-input"]
book.say(
    "Encoder to decoder",
    added="What the decoder layer has on top of the encoder layer is the masked "
    "self-attention.",
    corresponding="Decoder layer n takes its keys and values from encoder layer n.",
    last_keys="All decoder layers read the same memory, but each with keys of its own.",
    empty="The decoder cannot start from an empty sentence.",
)

# %% tags=["nbval-check-output"]
def on_top(d_model):
    kinds = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    encoder, decoder = (kind(d_model, 4, dim_feedforward=4 * d_model) for kind in kinds)
    parts = encoder, decoder, decoder.multihead_attn, decoder.norm3
    less, more, *new = (sum(p.numel() for p in part.parameters()) for part in parts)
    return {"parameters added": more - less, "of cross-attention, norm": sum(new)}


book.test("added", on_top, values=(64, 512))

# %% tags=["hide-input"]
book.judge(
    added=("wrong", "07_decoder", "The added one is encoder-decoder attention. The "
    "self-attention was there before; it only gets the mask."),
)

# %% [markdown]
# Claim 33: we wire the layers of a fresh `nn.Transformer` in both ways, and compare with the whole.


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

# %% tags=["hide-input"]
book.judge(
    corresponding=("wrong", "07_decoder", "Every decoder layer reads the output of the "
    "last encoder layer. With one layer each, nobody could tell."),
)

# %%
@torch.no_grad()
def key_angle(decoder_layer):
    x, (first, last) = model.src_embedding(batch.src), model.encoder.layers
    encoders = last.self_attn.key_proj(last.self_attn_path.norm(first(x)))
    memory, layers = model.encode(batch.src), model.decoder.layers
    which = decoder_layer, 1 - decoder_layer
    own, others = (layers[i].cross_attn.key_proj(memory) for i in which)
    keys = {"the encoder's last keys": encoders, "the other decoder layer's": others}
    cosine = {n: F.cosine_similarity(own, x, dim=-1).mean() for n, x in keys.items()}
    return {f"cosine to {name}": each for name, each in cosine.items()}


book.test("last_keys", key_angle, values=(0, 1))

# %% tags=["hide-input"]
book.judge(
    last_keys=("right", "07_decoder", "The encoder hands over its output, not the K "
    "and V of its last layer; W_K and W_V belong to each decoder layer."),
)

# %% tags=["nbval-check-output"]
def rows_out(tokens_read):
    query, memory = torch.ones(1, tokens_read, 8), torch.ones(1, 7, 8)
    context = F.scaled_dot_product_attention(query, memory, memory)
    return {"rows that can predict a token": context.shape[1]}


book.test("empty", rows_out, values=(0, 1, 2, 3))

# %% tags=["hide-input"]
book.judge(
    empty=("right", "07_decoder", "Without a query there is no row. It starts from "
    "`<s>`."),
)

# %% tags=["hide-input"]
more, cross_attn = measured("added")
assert torch.equal(more, cross_attn)
said, right = measured("corresponding")
assert right.max() < 1e-12 and said[0] < 1e-12 and said[1:].min() > 1e-3
assert all(row.abs().max() < 0.5 for row in measured("last_keys"))
assert measured("empty")[0].tolist() == [0, 1, 2, 3]

# %% [markdown]
# ## Round 9: what the decoder may see
#
# Mostly, it is a matter of one position.

# %% tags=["hide-input"]
book.say(
    "Inside the decoder",
    all_positions="In the decoder's self-attention, each position attends to itself "
    "as well, not only to those before it.",
    t_plus_1="The mask keeps word t + 1 from being used to predict word t.",
    whole="In training the decoder is fed the whole target; the causal mask does the "
    "rest.",
    word_by_word="One pass over a whole sentence gives the gradient that learning word "
    "by word would give.",
    row_t="Row t of the cross-attention explains word t, which the decoder reads "
    "there.",
    axes="From the numbers alone one can tell if a plot has source and target swapped.",
)

# %%
from course_lib import record_attention

pair = batch_of(corpus.test[:1])
src, tgt_in, tgt_out = pair.src, pair.tgt_in, pair.tgt_out
with torch.no_grad(), record_attention(model) as maps:
    model(src, tgt_in)
seen = maps.decoder[0][0, 0] > 0  # (queries, keys)


def open_keys(position):
    return {"positions before it": position, "attended to": seen[position].sum()}


book.test("all_positions", open_keys, values=range(0, 12, 2))

# %% tags=["hide-input"]
book.judge(
    all_positions=("right", "05_masks", "The mask hides what is strictly above the "
    "diagonal. (Only the encoder's self-attention and the cross-attention reach all "
    "positions.)"),
)

# %%
def used(t):
    x = model.tgt_embedding(tgt_in).detach().requires_grad_()
    past = torch.ones(len(seen), len(seen)).tril().bool()[None, None]
    hidden = model.decoder(x, model.encode(src), past)  # (batch, tgt_len, d_model)
    hidden[0, t - 1].sum().backward()  # position 0 predicts word 1
    inputs = (x.grad[0].abs().sum(dim=-1) > 0).sum()  # <s> is one of them
    return {"words used for word t, as said": t, "words used": inputs - 1}


book.test("t_plus_1", used, values=(1, 2, 3, 5, 8))

# %% tags=["hide-input"]
book.judge(
    t_plus_1=("half right", "05_masks", "True, and too little: that would allow word "
    "t, the answer. To predict y_t only y_<t may be used."),
)

# %%
def visible(position):
    fed = {"fed whole": tgt_out, "shifted right": tgt_in}
    answer = tgt_out[0, position]
    see = {n: (row[0, : position + 1] == answer).any() for n, row in fed.items()}
    return {f"answer visible, {name}": each for name, each in see.items()}


book.test("whole", visible, values=(0, 1, 2, 3, 4))

# %% tags=["hide-input"]
book.judge(
    whole=("half right", "07_decoder", "The decoder reads `<s>` and all but the last "
    "token; its labels end in `</s>`. Unshifted, the diagonal shows every answer."),
)

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
    return {"passes, word by word": words, "at once": 1, "gradients differ by": off}


book.test("word_by_word", passes, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
book.judge(
    word_by_word=("right", "07_decoder", "The mask makes the rows independent of what "
    "follows, so, with the same weights for all words, the losses add up. Only "
    "inference goes word by word."),
)

# %% [markdown]
# For claim 40 the corpus helps: its grammar knows which English word belongs to which German one.
# `links_found` counts how often the strongest weight of a row finds it, in the row that *predicts* the German word and in the row below, which *reads* it.

# %%
from course_lib.analysis import word_spans

some, tokens = corpus.test[:50], translator.tokenizer.tokens
half = batch_of(some)
with torch.no_grad(), record_attention(model) as maps:
    model(half.src, half.tgt_in)
looked_at = maps.cross[-1].mean(dim=1).argmax(dim=-1)  # (batch, tgt_len): source places


# %% tags=["hide-input"]
def links_found(looked_at, rows_below=0):
    """Of the grammar's links, how many have their source word looked at, in percent."""
    hits = []
    for looks, pair in zip(looked_at.tolist(), some, strict=True):
        source, target = (word_spans(pair[2 + i], tokens(pair[i])) for i in (0, 1))
        hits += [looks[target[t][0] + rows_below] in source[s] for s, t in pair.links]
    return 100 * sum(hits) / len(hits)


# %%

def found(rows_below):
    return {"% of the links found": links_found(looked_at, rows_below)}


book.test("row_t", found, values=(0, 1))

# %% tags=["hide-input"]
book.judge(
    row_t=("wrong", "12_reading_attention", "Query t holds y_t and predicts y_{t+1}. "
    "Name rows by what they predict, or say which."),
)

# %%
def sums(words):
    shares = weights(draw(words, 8), draw(words, 8, seed=1))  # (target, source)
    off = {"source": shares.sum(dim=1) - 1, "target": shares.sum(dim=0) - 1}
    return {f"sums over the {n} miss 1 by": each.abs().max() for n, each in off.items()}


book.test("axes", sums, values=(2, 4, 8, 16))

# %% tags=["hide-input"]
book.judge(
    axes=("right", "12_reading_attention", "Each query shares out 1: sums over the "
    "source are 1. Rows are target queries, columns source keys."),
)

# %% tags=["hide-input"]
before, attended = measured("all_positions")
assert torch.equal(attended, before + 1)
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
    dropped="In training, the rows of attention weights in a torch layer with dropout "
    "do not sum to 1.",
    accumulation="Accumulating gradients reduces the memory that a model needs.",
    undivided="If the accumulated losses are not divided by n, Adam does not mind.",
    pad_loss="If padding counts in the loss, the loss of the same sentences changes "
    "when a longer sentence joins their batch.",
    smoothing="With label smoothing, a perfect model has a cross-entropy above 0.",
)

# %%
from course_lib.training import TrainConfig, paper_rate


def rates(step):
    said = 512**-0.5 * min(512**-0.5, step * 4000**-1.5)
    right = paper_rate(step, d_model=512, warmup_steps=4000)
    return {"rate, as said": said, "rate, equation 3": right}


book.test("rate", rates, values=(1000, 4000, 8000, 11_181, 20_000, 100_000))

# %% tags=["hide-input"]
book.judge(
    rate=("wrong", "09_training", "The first term is i^−0.5. With one wrong letter "
    "the rate grows to 1.95e-3 at step 11,181 and stays; right, it peaks at 6.99e-4."),
)

# %% [markdown]
# "Adam" alone leaves torch's defaults.
# Beside the newest gradient, how much does one of some steps ago count in its second moment, with the default β₂ and with the paper's?


# %% tags=["nbval-check-output"]
def remembered(steps_ago):
    usual = torch.optim.Adam([torch.zeros(1)]).defaults["betas"][1]
    paper = TrainConfig().betas[1]
    return {f"β₂ = {usual}": usual**steps_ago, f"β₂ = {paper}": paper**steps_ago}


book.test("adam", remembered, values=(1, 10, 50, 100, 500))

# %% tags=["hide-input"]
book.judge(
    adam=("half right", "09_training", "Among others d_k = d_v = 64, batches of 25,000 "
    "tokens, 37,000 shared subwords, β₂ 0.98, ε 1e-9, 4,000 steps of warm-up, "
    "label smoothing 0.1, the last 5 checkpoints averaged (20 for big), and to decode "
    "beam 4 and α 0.6."),
)

# %%
def rows_in_training(dropout):
    layer = nn.MultiheadAttention(16, 4, dropout=dropout, batch_first=True)
    x = torch.randn(8, 30, 16)
    totals = layer(x, x, x, average_attn_weights=False)[1].sum(dim=-1)
    return {"smallest sum": totals.min(), "largest sum": totals.max()}


book.test("dropped", rows_in_training, values=(0, 0.1, 0.3))

# %% tags=["hide-input"]
book.judge(
    dropped=("right", "06_encoder", "torch drops weights after the softmax, and inner "
    "feed-forward activations as well; the paper drops sub-layer outputs and "
    "embeddings."),
)

# %% [markdown]
# For claim 45, one layer and Adam process 32 sentences in so many micro-batches; torch tells what it keeps for the backward pass, and `kilobytes` adds up.


# %% tags=["hide-input"]
def kept_for_backward(layer, x):
    own, held = {each.data_ptr() for each in layer.parameters()}, {}

    def note(each):
        held[each.data_ptr()] = each
        return each

    with torch.autograd.graph.saved_tensors_hooks(note, lambda each: each):
        layer(x).sum().backward()
    return sum(each.nbytes for place, each in held.items() if place not in own)


# %% tags=["hide-input"]
def kilobytes(micro_batches):
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    adam, parts = torch.optim.Adam(layer.parameters()), torch.randn(32, 20, 64)
    parts = parts.chunk(micro_batches)
    most = max(kept_for_backward(layer, part) for part in parts)
    adam.step()
    fixed = [x for each in layer.parameters() for x in (each, each.grad)]
    fixed += [x for state in adam.state.values() for x in state.values()]
    held = {"weights, gradients, moments": sum(x.nbytes for x in fixed)}
    held["activations"] = most
    return {f"kB of {name}": size / 1000 for name, size in held.items()}


# %%
book.test("accumulation", kilobytes, values=(1, 2, 4, 8, 16, 32))

# %% tags=["hide-input"]
book.judge(
    accumulation=("half right", "09_training", "Of activations only: weights, "
    "gradients and moments stay."),
)

# %% [markdown]
# For claim 46, a small regression (`fitted`) takes 50 steps with losses divided by n, and 50 with losses that are not.
# Do the weights end in one place?


# %% tags=["hide-input"]
def fitted(n, divisor, kind, clip):
    w = torch.zeros(4).double().requires_grad_()
    optimizer, x = kind([w], lr=0.03), draw(40, 4)
    y = x.sum(dim=1) + draw(40, seed=1)
    for _ in range(50):
        optimizer.zero_grad()
        for rows in torch.arange(40).chunk(n):
            ((x[rows] @ w - y[rows]).square().mean() / divisor).backward()
        nn.utils.clip_grad_norm_([w], clip)
        optimizer.step()
    return w.detach()


# %%
def undivided(n):
    apart, adam = {}, torch.optim.Adam
    runs = {"Adam": (adam, math.inf), "Adam, clipped": (adam, 0.5)}
    for name, run in (runs | {"SGD": (torch.optim.SGD, math.inf)}).items():
        change = fitted(n, n, *run) - fitted(n, 1, *run)
        apart[f"weights apart, {name}"] = change.abs().max()
    return apart


book.test("undivided", undivided, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
book.judge(
    undivided=("half right", "09_training", "Adam divides by the size of the gradient: "
    "the weights agree, but for ε. Clipped, they do not; and a step of SGD is n times "
    "as long. (Step at `(i + 1) % n == 0`: `i % n == 0` steps after one batch.)"),
)

# %%
@torch.no_grad()
def losses(padding):
    read, true = (F.pad(x, (0, padding)) for x in (batch.tgt_in, batch.tgt_out))
    logits = model(batch.src, read).transpose(1, 2)  # (batch, vocab, tgt_len)
    each = F.cross_entropy(logits, true, reduction="none")
    real = {"over real tokens": each[true != pad_id].mean()}
    return {"loss over all places": each.mean()} | real


book.test("pad_loss", losses, values=(0, 5, 10, 20, 40))

# %% tags=["hide-input"]
book.judge(
    pad_loss=("right", "09_training", "Padding positions are not predictions; "
    "averaging over them makes the loss depend on the batch's padding."),
)

# %%
def perfect_loss(smoothing, vocab=2000):
    wanted = torch.full((vocab,), smoothing / vocab, dtype=torch.float64)
    wanted[0] += 1 - smoothing  # of the true token
    floor = {"cross-entropy when it says just that": -(wanted * wanted.log()).sum()}
    return floor | {"KL divergence": F.kl_div(wanted.log(), wanted, reduction="sum")}


book.test("smoothing", perfect_loss, values=(0.001, 0.01, 0.1, 0.2))

# %% tags=["hide-input"]
book.judge(
    smoothing=("right", "09_training", "Its floor is the entropy of the smoothed "
    "target: above 1 for ε = 0.1 and 2,000 subwords. The KL divergence (as in The "
    "Annotated Transformer) subtracts it, and can reach 0."),
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
slipped = [i for i in range(100) if i % 4 == 0]  # the first step after one batch
assert slipped[0] == 0 and slipped[-1] < 99  # and some left over

# %% tags=["hide-input"]
adam, clipped, sgd = measured("undivided")
assert adam.max() < 1e-6 and max(clipped[0], sgd[0]) < 1e-12
assert min(clipped[1:].min(), sgd[1:].min()) > 0.01
all_places, real = measured("pad_loss")
assert (all_places.diff() > 0).all() and real.max() - real.min() < 1e-9
floor, divergence = measured("smoothing")
assert floor.min() > 0 and floor[2] > 1 and divergence.abs().max() < 1e-9

# %% [markdown]
# ## Round 11: decoding and scores
#
# Much can still go wrong between a model's logits and the score that is printed.

# %% tags=["hide-input"]
book.say(
    "Decoding and scores",
    logits="A beam search may add up logits: they rank like log-probabilities.",
    finished="In a beam search, only the hypotheses of its last step can win.",
    teacher="BLEU of the teacher-forced predictions says how well a model translates.",
    average="The BLEU of a system is the mean of the BLEU of its sentences.",
    perfect="A translation that equals its reference can have a BLEU of 0.",
    cache="A key-value cache changes the output a little, as it leaves out work.",
)

# %% tags=["hide-input"]
bet("cache", section="Round 11: decoding and scores")

# %% [markdown]
# The finished course translator hardly errs; we take it as it was after 156 to 933 of 5,572 training steps.
# For claim 49, `two_tokens` continues each of its four favorite first tokens by the best second one: four hypotheses of one length, six pairs.

# %% tags=["hide-input"]
src_all, start = everything.src, everything.tgt_in[:, :1]
scored = {"logits": lambda x: x, "log-probabilities": lambda x: x.log_softmax(dim=-1)}


# %% tags=["hide-input"]
@torch.no_grad()
def two_tokens(training_step):
    early = Translator.from_pretrained("course", step=training_step).model
    first = early(src_all, start)[:, -1]  # (batch, vocab)
    ids, found, orders = first.topk(4).indices, {}, []
    begun = [torch.cat([start, token[:, None]], dim=1) for token in ids.T]
    second = [early(src_all, read)[:, -1] for read in begun]
    for name, score in scored.items():
        best = torch.stack([score(x).amax(dim=-1) for x in second], dim=1)  # (batch, 4)
        total = score(first).gather(1, ids) + best
        found[f"the 2nd token adds, {name}"] = best.mean()
        orders.append(total[:, :, None] > total[:, None])  # (batch, 4, 4)
    swapped = (orders[0] != orders[1]).double().sum(dim=(1, 2)).mean() / 12
    return found | {"% of the pairs that swap": 100 * swapped}


# %%
book.test("logits", two_tokens, values=(156, 244, 382, 597, 933))

# %% tags=["hide-input"]
book.judge(
    logits=("wrong", "11_decoding", "Softmax normalizes each step by a sum of its own, "
    "which logits leave out: hypotheses change their order, even those of one length. "
    "And each further token adds a large logit, while no log-probability is above 0."),
)

# %%
from course_lib.decoding import record_beam

early = Translator.from_pretrained("course", step=597)


def ended(beam_size):
    options, said, right = dict(beam_size=beam_size, length_penalty=0.0), 0, 0
    for ids in early.encode([pair.src for pair in corpus.test[:20]]):
        (tree,) = record_beam(early.model, torch.tensor([ids]), **options)
        ends = [node for node in tree.nodes if node.fate == "finished"]
        last = max(node.step for node in ends)
        said += max(node.total for node in ends if node.step == last) / 20
        right += max(node.total for node in ends) / 20
    return {"log-probability of the winner, as said": said, "all compete": right}


book.test("finished", ended, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
book.judge(
    finished=("wrong", "11_decoding", "A finished hypothesis keeps competing; dropped, "
    "more probable outputs are lost."),
)

# %% tags=["hide-input"]
from course_lib.metrics import bleu

sources, references = zip(*(pair[:2] for pair in corpus.test), strict=True)
written = {}
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

# %% tags=["hide-input"]
book.judge(
    teacher=("half right", "07_decoder", "It ranks these five checkpoints alike, but "
    "is too high for each: its beginning is corrected at every step. Score what the "
    "model writes on its own, with sacreBLEU and its signature."),
)

# %%
def averaged(training_step):
    free, _ = written[training_step]
    alone = [bleu([x], [y]).score for x, y in zip(free, references, strict=True)]
    return {"as said": sum(alone) / len(alone), "BLEU": bleu(free, references).score}


book.test("average", averaged, values=list(written))

# %% tags=["hide-input"]
book.judge(
    average=("wrong", "10_translation", "BLEU counts n-grams over the corpus; the mean "
    "is another number."),
)

# %% tags=["nbval-check-output"]
def of_itself(words):
    text = " ".join("Die Katze sieht den alten Hund".split()[:words])
    return {"BLEU of a sentence against itself": bleu([text], [text]).score}


book.test("perfect", of_itself, values=range(1, 7))

# %% tags=["hide-input"]
book.judge(
    perfect=("right", "10_translation", "Alone, a sentence of fewer than four tokens "
    "has no 4-gram to match. (sacreBLEU's `sentence_bleu` leaves out what cannot be "
    "there, and gives 100.)"),
)

# %% [markdown]
# Claim 54: the reference of one sentence, read in one pass, and token by token with a cache.


# %%
@torch.no_grad()
def cached(tokens_read):
    read, held, kept = tgt_in[:, :tokens_read], model.encode(src), model.new_cache()
    rows = [model.decode(t, held, src, cache=kept) for t in read.split(1, dim=1)]
    off = (torch.cat(rows, dim=1) - model.decode(read, held, src)).abs().max()
    again = tokens_read * (tokens_read + 1) // 2
    rows = {"rows computed, cached": tokens_read, "without a cache": again}
    return rows | {"largest change of a logit": off}


book.test("cache", cached, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
verdict = book.judge(
    cache=("wrong", "11_decoding", "Only rounding. With a causal mask no earlier row "
    "changes when a token is added, so keys and values can be kept. (In half "
    "precision, rounding can tip a close decision.)"),
)
bets["cache"].reveal(book["cache"].verdict)
verdict

# %% tags=["hide-input"]
raw, log_probs, swapped = measured("logits")
assert raw.min() > 1 and log_probs.max() < 0 and swapped.min() > 0
late, compete = measured("finished")
assert abs(late[0] - compete[0]) < 1e-6 and (compete - late)[1:].min() > 0.2
forced, free = measured("teacher")
assert (forced > free).all() and torch.equal(forced.argsort(), free.argsort())
mean, whole_corpus = measured("average")
assert torch.equal(whole_corpus, free) and (mean - free).abs().max() > 1
computed, again, off = measured("cache")
assert off.max() < 1e-12 and again[-1] > 4 * computed[-1]
itself = measured("perfect")[0]
assert itself[:3].max() == 0 and itself[3:].min() > 99.9

# %% [markdown]
# ## Round 12: misprints
#
# Formulas do not survive copying.
# Each of these two is about one that has been printed.

# %% tags=["hide-input"]
book.say(
    "Misprints",
    pairs="Dimension i of the encoding has the exponent i / d_model, odd or even.",
    dimension="The wavelengths of the encoding form a geometric progression from 2π to "
    "10,000 · 2π.",
)

# %% [markdown]
# Encodings that follow claim 55 look fine.
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

# %% tags=["hide-input"]
book.judge(
    pairs=("wrong", "02_position", "2⌊i/2⌋ / d_model: a sine and its cosine share an "
    "angle. Otherwise no linear map fits; the best misses by about 1. (An odd d_model "
    "lacks a column for its last cosine, and crashes; and in Python a power is `**`: "
    "`10000 ^ 2` is 10,002.)"),
)

# %% tags=["nbval-check-output"]
def wavelengths(dimension):
    counted = {"pairs": dimension // 2, "dimensions": dimension}
    lengths = {name: 10000 ** (2 * i / 512) for name, i in counted.items()}
    return {f"over 2π, i counts {name}": length for name, length in lengths.items()}


book.test("dimension", wavelengths, values=(0, 128, 256, 510))

# %% tags=["hide-input"]
book.judge(
    dimension=("half right", "02_position", "So says section 3.5. But i counts pairs, "
    "0 to d_model / 2 − 1 (not dimensions), so the last wavelength is 9,647 · 2π."),
)

# %% tags=["hide-input"]
assert 10000 ^ 2 == 10_002  # flips bits; a power is **
base = 10000
for slip in ("base ^ 0.5", "base ^ 0.0", "base(2)", "[pos for pos in 50]"):
    try:
        eval(slip)
        raise AssertionError(f"{slip} works")
    except TypeError:
        pass
said, paired = measured("pairs")
assert said.min() > 0.5 and said.max() < 2 and paired.max() < 1e-9
pairs_last, dimensions_last = (row[-1] for row in measured("dimension"))
assert round(pairs_last.item()) == 9647 and dimensions_last > 9e7
for width in (6, 7, 8, 9):  # an odd width has one angle more than columns
    columns = torch.zeros(10, width)[:, 1::2].shape[1]
    assert len(range(0, width, 2)) - columns == width % 2

# %% [markdown]
# ## Round 13: past the paper
#
# Three claims of recent years.

# %% tags=["hide-input"]
book.say(
    "Past the paper",
    explains="The attention map shows what the output depends on.",
    rotary="Rotary positions extrapolate: they know the offset alone, so they work at "
    "any length.",
    int8="A model with int8 weights is faster.",
)

# %% tags=["hide-input"]
bet("explains", section="Round 13: past the paper")

# %% [markdown]
# Claim 57 in numbers: for each of the eight heads of cross-attention, how often does its strongest weight find the right source word (as in claim 40), and how much worse does the translator get if the head says nothing?
# If a map showed how much the output depends on a head, heads that find equally much would be worth equally much.


# %%
@torch.no_grad()
def silenced(cross_head):
    layer, head = divmod(cross_head, 4)

    def without(module, inputs, context):
        return context.index_fill(1, torch.tensor(head), 0)  # (batch, heads, …)

    links = links_found(maps.cross[layer][:, head].argmax(dim=-1))
    module = model.decoder.layers[layer].cross_attn.fused
    whole = loss(model(half.src, half.tgt_in).mT, half.tgt_out)
    hook = module.register_forward_hook(without)
    less = loss(model(half.src, half.tgt_in).mT, half.tgt_out)
    hook.remove()
    return {"% of the links found": links, "loss added without it": less - whole}


book.test("explains", silenced, values=range(8))

# %% tags=["hide-input"]
verdict = book.judge(
    explains=("half right", "12_reading_attention", "Heads that find more words tend "
    "to be worth more. But 3 and 4 find equally many and differ more than tenfold in "
    "what they are worth. A map shows where a head looks, not how much is made of it: "
    "that takes an intervention."),
)
bets["explains"].reveal(book["explains"].verdict)
verdict

# %% [markdown]
# Claim 58 reads the record of lesson 13: readers trained on 16 words, right answers on longer stories, mean of three seeds.

# %%
accuracy = final_results(read_record("records/positions.json"), "accuracy")


def at_length(words):
    place, shares = (16, 32, 64).index(words), {}
    for d_k in (8, 16):
        runs = accuracy[f"rotary, d_k {d_k}, base 10000"]
        shares[f"% right, heads of {d_k}"] = 100 * sum(run[place] for run in runs) / 3
    return {"% right, as said": 100} | shares


book.test("rotary", at_length, values=(16, 32, 64))

# %% tags=["hide-input"]
book.judge(
    rotary=("half right", "13_positions_past_the_paper", "It depends on their "
    "wavelengths: at four times the trained length these readers are right in 97 or in "
    "43 of 100 cases, as their heads are 8 or 16 wide. An offset that was never seen "
    "may look like a near one."),
)

# %% tags=["hide-input"]
from time import perf_counter

from course_lib.compression import quantized

layer = nn.Linear(1024, 1024)
variants = {"float32": layer, "int8 weights": quantized(nn.Sequential(layer))[0]}


@torch.no_grad()
def microseconds(tokens):
    x, best = torch.randn(tokens, 1024), {}
    for name, variant in variants.items():
        for _ in range(30):
            started = perf_counter()
            variant(x)
            spent = 1e6 * (perf_counter() - started)
            best[name] = min(spent, best.get(name, spent))
    return {f"µs, {name}": each for name, each in best.items()}


# %% [markdown]
# For claim 59 `microseconds` times one linear layer, 1,024 to 1,024 features, in both forms; the fastest of 30 calls counts.

# %%
book.test("int8", microseconds, values=(1, 8, 64))

# %% tags=["hide-input"]
book.judge(
    int8=("half right", "14_cost_and_memory", "It is smaller. If it is faster depends "
    "on the kernel: this one turns all weights back into float32 at each call."),
)

# %% tags=["hide-input"]
found_links, costs = measured("explains")
assert abs(found_links[3] - found_links[4]) < 3 and costs[4] > 10 * costs[3]
assert (found_links[[5, 7]] > found_links[4] + 5).all()
assert (costs[[5, 7]] < costs[4]).all()
_, narrow, wide = measured("rotary")
assert narrow[2] > 90 and wide[2] < 50 and min(narrow[0], wide[0]) > 98
floats, integers = measured("int8")
assert integers[0] > 1.2 * floats[0]

# %% [markdown]
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
#
# Where do they come from?
# The wording is ours; what a claim repeats, or puts right, is from such texts:

# %% tags=["hide-input"]
from course_lib.analysis import Page

sources = {
    "a blog post": "zeros words fixed fourier longer scores encodings lengths nothing "
    "empty",
    "university lecture notes": "zeros start invariant scale triangle layer_norm "
    "last_keys whole row_t rate pairs dimension",
    "another author's PyTorch tutorial": "longer invariant axis cheap minus shape "
    "final_norm accumulation",
    "an overview article": "words multiples lossless w_o unbiased added corresponding "
    "all_positions t_plus_1 word_by_word adam",
    "code and plots of other tutorials": "splits pre_norm axes undivided "
    "logits finished teacher average",
}

# %% tags=["hide-input", "nbval-check-output"]
named = set(" ".join(sources.values()).split())
judged = {claim.name for claim in book.claims if claim.verdict}
assert named < judged, named - judged
sources["questions of our own"] = " ".join(judged - named)
rows = ["| a kind of text | claims |", "|---|---|"]
for text, names in sources.items():
    numbers = sorted(book[name].number for name in names.split())
    rows.append(f"| {text} | {', '.join(map(str, numbers))} |")
Page("\n".join(rows))

# %% [markdown]
# 17 are right, 17 half right and 25 wrong: no single answer would have carried you far.

# %% tags=["nbval-check-output"]
book.summary()

# %% tags=["hide-input"]
from pathlib import Path

verdicts = Counter(claim.verdict for claim in book.claims if claim.verdict)
assert verdicts == {"right": 17, "half right": 17, "wrong": 25}
numbered = {2: "words", 3: "splits", 9: "longer", 15: "lengths", 16: "lossless"}
numbered |= {18: "cheap", 20: "always", 23: "unbiased", 27: "shape", 28: "nothing"}
numbered |= {30: "pre_norm", 31: "final_norm", 33: "corresponding", 40: "row_t"}
numbered |= {45: "accumulation", 46: "undivided", 49: "logits", 50: "finished"}
numbered |= {54: "cache", 55: "pairs", 57: "explains", 58: "rotary", 59: "int8"}
assert all(book[name].number == number for number, name in numbered.items())
for claim in book.claims:
    assert not claim.lesson or Path(f"{claim.lesson}.ipynb").exists(), claim.lesson

# %% [markdown]
# ## Your predictions

# %%
Predictions()

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
# A test with easy numbers finds nothing: equal lengths or a single layer hide what the next model shows.
# And a sentence that sounds wrong may be right: the key bias does nothing, and masked padding is not there.
#
# **Practice**: the [capstone](assignments/release/19_capstone/19_capstone.ipynb), a translator from an empty file; and the next bold sentence that you read, with a knob and two numbers.
# **What moved**: the [twelve questions](assignments/release/99_concepts_after/99_concepts_after.ipynb) from before the course, asked again.
#
# **Next**: what you make of it.
# Train on sentence pairs of your own (lesson [17](17_scaling_out.ipynb)), and read the paper once more from its title to its last table.
