# %% [markdown]
# # 18 · Errata lab: what popular explanations get wrong
#
# **Question.** "Self-attention is permutation-invariant." "Zero padding needs no mask." "The encoder turns a sentence into a representation of fixed length." You find such sentences in [posts, lecture notes and tutorials](#The-whole-list). Which of them survive an experiment, and how do the wrong ones live on?
#
# **Afterwards you can**
#
# 1. turn a sentence about a model into an experiment of a few lines, with one knob to turn;
# 2. judge what you read about the Transformer: right, half right or wrong;
# 3. say what is right instead, and which lesson teaches it.
#
# **You need** lessons 01 to [12](12_reading_attention.ipynb), and for a few claims [13](13_positions_past_the_paper.ipynb) to [15](15_alternatives.ipynb): nothing here is new, except that you judge.
# **Time**: {minutes} minutes to read, about 20 more for the tables and the verdicts, under 60 seconds to run. The [bench](#The-bench) is optional and not counted.
# **In the paper**: sections 3 to 5 with table 1; for the bench, section 6.1 and table 3. Some claims go beyond the paper.

# %% [markdown]
# ## One claim, by hand
#
# "Zero padding needs no mask: zeros get no attention."
# Right, half right or wrong? Decide now.
#
# It sounds right: zero times anything is zero.
# And it predicts a number: however many keys of zeros follow the four real keys, they get 0 % of the attention.
# So we count.

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

# %%
from course_lib.analysis import LabBook, Page
from course_lib.widgets import ErrataLab, Predict, Predictions

book = LabBook()
book.say("By hand", zeros="Zero padding needs no mask: zeros get no attention.")
query, words = draw(1, 8, seed=1), draw(4, 8)  # (queries, d_k), (keys, d_k)


def on_padding(padding):
    keys = torch.cat([words, torch.zeros(padding, 8)])
    found = weights(query, keys)[0, 4:].sum()
    return {"attention on padding, predicted": 0, "attention on padding": found}


book.test("zeros", on_padding, values=(0, 1, 2, 4, 8, 16))

# %% [markdown]
# Wrong, and the more padding, the worse: 16 zeros take 80 %.
# Where does the weight of a single zero key come from?

# %%
scores = query @ torch.cat([words, torch.zeros(1, 8)]).T / math.sqrt(8)  # (1, keys)
steps = {"score": scores, "e to the score": scores.exp(), "weight": scores.softmax(-1)}
print(" " * 15, "  word 1  word 2  word 3  word 4   zeros")
for name, row in steps.items():
    print(f"{name:15}", "".join(f"{x:8.3f}" for x in row[0]))

# %% [markdown]
# A score of 0 gives e⁰ = 1: words 3 and 4, with negative scores, get less.
# (In a whole model the keys of padding are not even 0: positions and biases are added.)
#
# Every experiment below has these three parts:
#
# - the **claim**, a sentence that could be false;
# - the **knob**, the one quantity that we vary (here the number of zeros: the columns);
# - the **measure**, a function that takes a value of the knob and returns numbers (here the share of the zeros: the rows).
#
# Now cover all columns of the claim's table but the first: the wrong claim passes.
# A test is only as good as its values: look for one where the claim must break, if it is wrong.

# %% [markdown]
# ## Six rounds
#
# The next 24 claims stand in six rounds, one for each way to test.
# Judge each claim before you scroll on (six of them have buttons):
#
# - *right*: true as it stands, of the paper's model or the code that it names;
# - *half right*: one part, or one common case, is true, and another is not;
# - *wrong*: it fails in the usual case, even if a special case saves it.
#
# Then come the experiments; closed cells hold the longer ones.
# For three claims, design the experiment before you open our table.
# In the tables, *predicted* is what must come out if the claim holds, *done as said* is what its own recipe gives, and 2e-16 is 0 up to rounding.
# Under each table, click *What is right?* for the verdict.
# A table can refute "always", but not prove it, so a verdict *right* also gives the reason.
#
# (To play instead, run all cells and go to [the widget](#All-of-them,-to-play).)

# %% tags=["hide-input"]
# the bets of the rounds, and checks of claim 1
from contextlib import redirect_stdout
from io import StringIO

bets = {}


def bet(name, section):
    """Asks for a verdict on a claim of this round."""
    question = f"Claim {book[name].number}: is it right?"
    bets[name] = Predict(question, ["right", "half right", "wrong"], section=section)
    return bets[name]

# %% tags=["hide-input"]
def settle(*names):
    """Tells bets their results, which the list at the end shows."""
    with redirect_stdout(StringIO()):
        for name in names:
            bets[name].reveal(book[name].verdict)


def measured(name):
    """The numbers of a claim: a tensor for each row of its table."""
    rows = book[name].numbers.values()
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


right_version = "A score of 0 gets e⁰ = 1: 16 zeros take 80 %. Only a mask hides keys."


said, share = measured("zeros")
assert share[0] == 0 and (share.diff() > 0).all() and abs(share[-1] - 0.8) < 0.01
assert said.max() == 0 and (scores[0] < 0).tolist() == [0, 0, 1, 1, 0]
assert torch.equal(steps["weight"] < steps["weight"][0, -1], scores < 0)
page = book.judge(zeros=("wrong", "05_masks", right_version))

# %% [markdown]
# ## Round 1: count it
#
# Three claims about an amount.
# The cheapest experiment is to count.

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "Count it",
    fixed="The encoder turns a sentence into a representation of fixed length.",
    more_heads="In `nn.MultiheadAttention`, sixty-four heads have as many parameters "
    "as one.",
    cheap="Self-attention multiplies less than a recurrent layer as long as the text "
    "is shorter than the model is wide.",
)

# %% tags=["hide-input"]
bet("more_heads", section="Round 1: count it")

# %% tags=["hide-input"]
bet("cheap", section="Round 1: count it")

# %% tags=["hide-input"]
# verdicts of round 1: they open under the tables
page = book.judge(
    fixed=("wrong", "06_encoder", "Each further word adds vectors, one for each token "
    "(a word may be several tokens, and `</s>` is one more). Only their width, 128, is "
    "fixed. One vector for any sentence is the bottleneck that attention removed."),
    more_heads=("right", "04_multi_head", "Each head is d_model / h wide: more heads "
    "are narrower heads, and together they stay d_model wide. So the projections, W_O "
    "too, stay d_model × d_model."),
    cheap=("half right", "15_alternatives", "True: for n < d the scores and the "
    "context take fewer multiplications (2·n²·d) than this recurrent layer "
    "(2·n·d²). But: attention also has four projections, 4·n·d², and with them it "
    "takes more than this layer at every length. (A GRU takes 6·n·d²: against "
    "that, the claim holds.)"),
)

# %% [markdown]
# ### Claim 2: one vector
#
# Older translation models did squeeze a sentence into one vector, and "a representation" sounds like one thing.
# If the claim holds, one word and eight words give equally many vectors.
# (The closed cell loads the course corpus and the course translator, `model`, in float64; `batch_of` makes batches of sentence pairs, such as `batch`.)

# %% tags=["hide-input"]
# what the experiments work with
from course_lib import Translator
from course_lib.data import encode_pairs, load_course, make_batch

corpus = load_course(num_train=2000, num_valid=1, num_test=100)
translator = Translator.from_pretrained("course")
model, pad_id = translator.model.double(), translator.model.config.pad_id


def batch_of(pairs):
    return make_batch(encode_pairs(translator.tokenizer, pairs))


batch = batch_of(corpus.test[:4])

# %%
@torch.no_grad()
def memory(words):
    text = " ".join(corpus.test[0].src.split()[:words])
    vectors = model.encode(torch.tensor(translator.encode([text])))[0]
    return {"vectors in the memory": len(vectors), "width": vectors.shape[1]}


book.test("fixed", memory, values=(1, 2, 4, 8))

# %% [markdown]
# ### Claim 3: the price of a head
#
# Each head has matrices of its own, so 64 heads should cost more than one.
# If the claim holds, the three columns are equal.

# %% tags=["nbval-check-output"]
def parameters(num_heads):
    layer = nn.MultiheadAttention(512, num_heads)
    return {"parameters": sum(each.numel() for each in layer.parameters())}


book.test("more_heads", parameters, values=(1, 8, 64))

# %% [markdown]
# ### Claim 4: the price of attention
#
# For n words and the width d, the paper's table 1 compares n²·d (self-attention) with n·d² (recurrent).
# For n < d the first is smaller.
# If these are all the multiplications, *attention* needs fewer than *recurrent layer* in each column left of 64, the width.

# %% tags=["nbval-check-output"]
from torch.utils.flop_counter import FlopCounterMode

recurrent = nn.RNN(64, 64).double()
multi_head = nn.MultiheadAttention(64, 1).double()


def operations(words):
    x, counts = draw(words, 64), {}
    layers = {"scores and context alone": lambda: (x @ x.T) @ x}
    layers["attention"] = lambda: multi_head(x, x, x)
    layers["recurrent layer"] = lambda: recurrent(x)
    for name, run in layers.items():
        with FlopCounterMode(display=False) as counter:
            run()
        counts[name] = counter.get_total_flops() / 2  # torch counts additions too
    return counts


book.test("cheap", operations, values=(16, 32, 64, 128, 512))

# %% tags=["hide-input"]
# checks of round 1: every number of the prose
settle("more_heads", "cheap")
vectors, width = measured("fixed")
assert (vectors.diff() > 0).all() and (width == 128).all()
assert measured("more_heads")[0].tolist() == [1_050_624] * 3
core, whole_layer, simple = measured("cheap")
n, d = torch.tensor(book["cheap"].values), 64
assert torch.equal(core, 2.0 * n**2 * d) and torch.equal(simple, 2.0 * n * d**2)
assert torch.equal(whole_layer, core + 4 * n * d**2)
assert torch.equal(core < simple, n < d) and (whole_layer > simple).all()
with torch.random.fork_rng(), FlopCounterMode(display=False) as counter:
    nn.GRU(d, d)(torch.zeros(16, d))
assert counter.get_total_flops() / 2 == 6 * 16 * d**2
assert torch.equal(whole_layer < 6 * n * d**2, n < d)

# %% [markdown]
# ### Rule 1: ask what the number counts
#
# One vector or all, one head or the whole layer?

# %% [markdown]
# ## Round 2: move it
#
# What does a model know about order, without positions (5, 6) and with them (7 to 9)?

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "Move it",
    invariant="Self-attention is permutation-invariant.",
    order="Without positions, no order of the source words changes the translation.",
    longer="Sinusoids go on for ever, so a model reads longer texts than it was "
    "trained on as well as others.",
    axis="A table of (max_len, 1, d_model), sliced by `x.size(0)` and added to a "
    "batch-first x, would crash.",
    pairs="Dimension i of the encoding has the exponent i / d_model, odd or even.",
)

# %% tags=["hide-input"]
bet("longer", section="Round 2: move it")

# %% tags=["hide-input"]
# verdicts of round 2: they open under the tables
page = book.judge(
    invariant=("half right", "02_position", "True: the mean of the rows does not "
    "change. But: each row moves along with its word (man′ bites′ dog′), which is "
    "called equivariant. Under a causal mask even the mean changes."),
    order=("right", "02_position", "Without positions the flipped source changes the "
    "output by rounding alone: the rows of the memory move along with their words, and "
    "cross-attention sums over them. A sum has no order."),
    longer=("wrong", "02_position", "Training taught the model only the first 16 "
    "rows: at 17 words the last answer already fails more often, and from 20 on it "
    "is mostly wrong. Section 3.5 says only that sinusoids may extrapolate."),
)

# %% tags=["hide-input"]
# more verdicts of round 2: they open under the tables
page = book.judge(
    axis=("wrong", "02_position", "Nothing crashes while the batch has no more "
    "sentences than the table has rows: the table broadcasts, and all 6 words of a "
    "text get one position. Slice by the length, `x.size(1)`."),
    pairs=("wrong", "02_position", "In dimension i the exponent is 2⌊i/2⌋ / "
    "d_model: a sine and its cosine share an angle, so a linear map reaches the "
    "row three words on. Done as said, even the best map misses some entries by "
    "more than 1, the largest value of a sine."),
)

# %% [markdown]
# ### Claim 5: the flipped text
#
# Attention takes means, and a mean does not ask for the order.
# So we flip a text end to end.
# Take three words, and write dog′ for the row that came out for dog:
#
# | place | 1 | 2 | 3 |
# |---|---|---|---|
# | dog bites man | dog′ | bites′ | man′ |
# | man bites dog | ? | ? | ? |
#
# *Invariant*: each place keeps its row, dog′ bites′ man′ again (no change *place by place*).
# *Equivariant*: each word keeps its row, man′ bites′ dog′ (no change *word by word*).

# %% tags=["hide-input"]
# our experiment for claim 5
attend = nn.MultiheadAttention(16, 4, batch_first=True).double().eval()


@torch.no_grad()
def flipped(words):
    x, causal = draw(1, words, 16), torch.ones(words, words).triu(1).bool()
    plain, turned = (attend(y, y, y)[0][0] for y in (x, x.flip(1)))
    masked, back = (attend(y, y, y, attn_mask=causal)[0][0] for y in (x, x.flip(1)))
    change = turned - plain, turned - plain.flip(0), (turned - plain).mean(dim=0)
    names = "place by place", "word by word", "of the mean", "of the mean, causal mask"
    change = *change, (back - masked).mean(dim=0)
    found = {n: c.abs().max() for n, c in zip(names, change, strict=True)}
    return {f"change {n}": largest for n, largest in found.items()}


book.test("invariant", flipped, values=(2, 5, 10, 50))

# %% [markdown]
# ### Claim 6: the source's order
#
# Can "dog bites man" and "man bites dog" get the same translation?
# Your design (double-click here, and write before you open our table): in which order would you put the source words, and which number would tell?
#
# - *knob*:
# - *measured*:
# - *predicted*:

# %% tags=["hide-input"]
# our experiment for claim 6
from course_lib.position import SinusoidalPosition, sinusoidal

whole = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True).double()


@torch.no_grad()
def reordered(source_words):
    src, tgt = draw(1, source_words, 16), draw(1, 5, 16, seed=1)
    change, position = {}, sinusoidal(source_words, 16)
    for name, extra in (("without positions", 0), ("with positions", position)):
        difference = whole(src.flip(1) + extra, tgt) - whole(src + extra, tgt)
        change[f"change of the output {name}"] = difference.abs().max()
    return change


book.test("order", reordered, values=(2, 5, 10, 50), closed=True)

# %% [markdown]
# ### Claim 7: longer texts
#
# The formula of the sinusoids gives a row for position 1,000 as easily as for position 10.
# `train_reader` trains one encoder layer on texts of 16 random words: for each word it names the word *before* it, and only the position can help.
# Then the layer reads longer texts.
# We measure how often its last answer is right, and how often its first 7 are, at places that every training text had.
# If the formula were enough, the last answer would stay at 100 %.

# %% tags=["hide-input"]
# the training for claim 7
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
    torch.manual_seed(words)
    ids = torch.randint(20, (200, words), device=device)
    answers = torch.stack([reader(ids)[:, 1:].argmax(dim=-1) for reader in readers])
    right = 100 * (answers == ids[:, :-1]).double().mean(dim=(0, 1))  # (answers,)
    counted = {"first 7 answers": right[:7].mean(), "last answer": right[-1]}
    return {f"% right, {n}": x for n, x in counted.items()}


book.test("longer", right_answers, values=(16, 17, 20, 32, 128))

# %% tags=["hide-input"]
# the figure of claim 7
from course_lib.figures import new_figure, styled

lengths = [8, 16, 17, 20, 24, 32, 64, 128]
counted = [[*map(float, right_answers(n).values())] for n in lengths]
first, last = zip(*counted, strict=True)
named_lines = ("first 7 answers", first, "C0o-"), ("last answer", last, "C1s--")

# %% tags=["hide-input"]
@styled
def longer_figure():
    figure = new_figure("Trained on 16 words: the last answer fails first", 7, 3.4)
    axes = figure.add_subplot(xlabel="words", ylabel="% right")
    axes.set_xscale("log", base=2)
    axes.set(xlim=(7.5, 250), ylim=(-4, 106))
    axes.set_xticks([8, 16, 32, 64, 128], ["8", "16", "32", "64", "128"])
    axes.axvspan(7.5, 16, color="0.9")
    axes.text(7.8, 45, "positions seen\nin training", color="0.3")
    axes.axhline(5, color="0.4", ls=":")
    axes.text(138, -1, "chance: 5 %", color="0.4")
    for name, row, line in named_lines:
        axes.plot(lengths, row, line)
        axes.text(138, row[-1] + 2, name, color=line[:2])
    return figure

# %% tags=["hide-input"]
few = [lengths.index(n) for n in book["longer"].values]
for row, shown in zip((first, last), measured("longer"), strict=True):
    assert (torch.tensor([row[n] for n in few]) - shown).abs().max() < 0.5
assert min(min(first[:4]), min(last[:2])) > 95 and last[2] < 93 and max(last[3:]) < 50
assert first[-2] < 90 and first[-1] < 70
longer_figure()

# %% [markdown]
# The last answer falls right after the gray band.
# In long texts the first answers fail too, probably because their queries now read more keys, at untrained positions.
# (Without a GPU, each curve is the mean of two readers: its ups and downs mean little.)
#
# ### Claim 8: the first axis
#
# In PyTorch's tutorial x is (length, batch, d_model), so `x.size(0)` is the length.
# Copied into a batch-first model, it is the number of sentences.
# The claim predicts an error.
# If none comes, six words should get six positions.

# %%
def places(sentences):
    x, table = torch.zeros(sentences, 6, 8), sinusoidal(50, 8)[:, None]
    said, right = x + table[: x.size(0)], x + table[: x.size(1), 0]
    said, right = (len(each[-1].unique(dim=0)) for each in (said, right))
    return {"positions, done as said": said, "positions, sliced by x.size(1)": right}


book.test("axis", places, values=(1, 2, 8))

# %% [markdown]
# ### Claim 9: the letter i
#
# The paper's exponent is 2i / d_model, where i counts *pairs* of dimensions.
# Each pair, a sine and a cosine of one angle, is a clock hand.
# Three words on, the hand has turned by a fixed angle, and a turn is a linear map.
# That is what section 3.5 promises.
# Take i for the dimension, and sine and cosine get different angles.
# The table looks fine, but does a linear map still reach the row three words on?
# If so, the error is 0.

# %% tags=["hide-input"]
# our experiment for claim 9
def residual(d_model):
    dimension, position = torch.arange(d_model), torch.arange(500).double()[:, None]
    missed = {}
    exponents = {"done as said": dimension, "in pairs": dimension // 2 * 2}
    for name, exponent in exponents.items():
        angle = position / 10000 ** (exponent / d_model)
        table = torch.where(dimension % 2 == 0, angle.sin(), angle.cos())
        best = torch.linalg.lstsq(table[:-3], table[3:], driver="gelsd").solution
        missed[f"largest error, {name}"] = (table[:-3] @ best - table[3:]).abs().max()
    return missed


book.test("pairs", residual, values=(16, 64, 128))

# %% tags=["hide-input"]
# checks of round 2: every number of the prose
settle("longer")
rows, along, mean, causal = measured("invariant")
assert min(rows.min(), causal.min()) > 1e-3 and max(along.max(), mean.max()) < 1e-12
blind, seeing = measured("order")
assert blind.max() < 1e-12 and seeing.min() > 1e-3
said, right = measured("axis")
assert (said == 1).all() and (right == 6).all()
try:
    torch.zeros(60, 6, 8) + sinusoidal(50, 8)[:, None][:60]
    raise AssertionError("more sentences than rows fit")
except RuntimeError:
    pass

# %% tags=["hide-input"]
said, paired = measured("pairs")
assert said.min() > 1 and said.max() < 2 and paired.max() < 1e-9
assert 10000 ^ 2 == 10_002  # flips bits; a power is **
base = 10000
for slip in ("base ^ 0.5", "base ^ 0.0", "base(2)", "[pos for pos in 50]"):
    try:
        eval(slip)
        raise AssertionError(f"{slip} works")
    except TypeError:
        pass
for width in (6, 7, 8, 9):  # an odd width lacks a column for its last cosine
    columns = torch.zeros(10, width)[:, 1::2].shape[1]
    assert len(range(0, width, 2)) - columns == width % 2

# %% [markdown]
# ### Rule 2: change the input
#
# Flip, shift and lengthen it, and look for what stays, what moves along and what breaks.

# %% [markdown]
# ## Round 3: leave it out
#
# A formula looks simpler without one of its parts.

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "Leave it out",
    scale="softmax(QKᵀ)V will do: dividing by √d_k is cosmetic, as the softmax "
    "normalizes the scores anyway.",
    key_bias="The bias of the keys does nothing: whatever it is, the output stays.",
    undivided="If the losses of n small batches are added up and not divided by n, "
    "Adam does not mind.",
)

# %% tags=["hide-input"]
# verdicts of round 3: they open under the tables
page = book.judge(
    scale=("wrong", "03_attention", "The softmax makes the sum 1, but it does not "
    "undo the size of the scores, whose variance grows with d_k. At d_k = 256 one "
    "key takes 94 % of the weight on average, and a saturated softmax hardly "
    "learns."),
    key_bias=("right", "03_attention", "The bias adds the same number to all scores of "
    "one query, and a softmax ignores that: scores 2, 1, 0 give the weights 0.665, "
    "0.245, 0.090, and so do 7, 6, 5. The bias of the values counts."),
    undivided=("half right", "09_training", "True: Adam divides the gradient by "
    "its size, and n cancels. But: clipping comes before Adam and cuts the larger "
    "gradient more. (SGD does not divide: its first step is n "
    "times as long.)"),
)

# %% [markdown]
# ### Claim 10: without √d_k
#
# With or without the divisor the weights sum to 1.
# If it is cosmetic, the two rows are equal.

# %%
def largest(d_k):
    query, key = draw(200, d_k), draw(10, d_k, seed=1)
    scores, divisors = query @ key.T, {"no scale": 1, "√d_k": math.sqrt(d_k)}
    shares = {by: (scores / size).softmax(dim=-1) for by, size in divisors.items()}
    return {f"largest weight, {by}": x.amax(dim=-1).mean() for by, x in shares.items()}


book.test("scale", largest, values=(1, 4, 16, 64, 256))

# %% [markdown]
# ### Claim 11: without a bias
#
# The keys' bias is a parameter like any other, so why should it do nothing?
# Your design: what would you vary, and what would show that the experiment can see the effect of a bias?
#
# - *knob*:
# - *measured*:
# - *predicted*:

# %% tags=["hide-input"]
# our experiment for claim 11
@torch.no_grad()
def biased(size):
    x, change = draw(1, 5, 16), {}
    for place, name in ((16, "keys"), (32, "values")):  # torch keeps q, k, v in one row
        layer = nn.MultiheadAttention(16, 4, batch_first=True).double()
        before = layer(x, x, x)[0]
        layer.in_proj_bias[place : place + 16] = size * draw(16, seed=2)
        change[f"change by the {name}' bias"] = (layer(x, x, x)[0] - before).abs().max()
    return change


book.test("key_bias", biased, values=(0.1, 1, 10, 100), closed=True)

# %% [markdown]
# ### Claim 12: without 1/n
#
# A batch that the memory cannot hold is cut into n small ones, and their losses are added up.
# Without the division by n, the gradients are n times as large, but Adam divides each step by the size of the gradients.
# A small regression (`fitted`) takes 50 steps, once with each loss divided by n, once without.
# If Adam does not mind, both of its rows are near 0, the one with clipped gradients too.

# %% tags=["hide-input"]
# the regression of claim 12
def fitted(n, divisor, kind, clip, steps=50):
    w = torch.zeros(4).double().requires_grad_()
    optimizer, x = kind([w], lr=0.03), draw(40, 4)
    y = x.sum(dim=1) + draw(40, seed=1)
    for _ in range(steps):
        optimizer.zero_grad()
        for rows in torch.arange(40).chunk(n):
            ((x[rows] @ w - y[rows]).square().mean() / divisor).backward()
        nn.utils.clip_grad_norm_([w], clip)
        optimizer.step()
    return w.detach()

# %%
def undivided(n):
    change, adam, sgd = {}, torch.optim.Adam, (torch.optim.SGD, math.inf)
    for name, clip in {"Adam": math.inf, "Adam, clipped": 0.5}.items():
        difference = fitted(n, n, adam, clip) - fitted(n, 1, adam, clip)
        change[f"largest change of a weight, {name}"] = difference.abs().max()
    first, usual = (fitted(n, divisor, *sgd, steps=1).norm() for divisor in (1, n))
    return change | {"first step of SGD, times as long": first / usual}


book.test("undivided", undivided, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
# checks of round 3: every number of the prose
unscaled, scaled = measured("scale")
assert (unscaled.diff() > 0).all() and abs(unscaled[-1] - 0.935) < 0.01
assert abs(scaled[1:] - 0.33).max() < 0.03
for length, expected in ((10, (1, 1)), (1, (0.355, 0.373))):  # √4 for keys of width 3
    scores = length**2 * torch.tensor([1.0, 0.0, 0.0, 0.0])  # one key is the query
    found = [(scores / math.sqrt(d_k)).softmax(dim=0)[0].item() for d_k in (4, 3)]
    assert tuple(round(x, 3) for x in found) == expected
keys, values = measured("key_bias")
assert keys.max() < 1e-9 and (values.diff() > 0).all() and values[0] > 1e-3
for scores in (torch.tensor([2.0, 1.0, 0.0]), torch.tensor([7.0, 6.0, 5.0])):
    shares = scores.softmax(dim=0).tolist()
    assert [round(share, 3) for share in shares] == [0.665, 0.245, 0.090]

# %% tags=["hide-input"]
adam, clipped, longer_step = measured("undivided")
assert (longer_step - torch.tensor(book["undivided"].values)).abs().max() < 1e-9
assert adam.max() < 1e-6 and clipped[0] < 1e-12 and clipped[1:].min() > 0.01

# %% [markdown]
# ### Rule 3: leave a part out, at several sizes
#
# At d_k = 1 and at n = 1 nothing shows.
# Or make the part huge, as in claim 11.

# %% [markdown]
# ## Round 4: would you notice?
#
# Ask of each of these six: if it were wrong, at which size would you notice?

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "Would you notice?",
    masked="Where padding is masked, any amount of it at the end changes nothing.",
    afterwards="To hide keys, set their weights to 0 after the softmax.",
    minus="`masked_fill(mask == 0, -1e9)` hides keys.",
    shape="A padding mask of (batch, keys) can be used as it is: if its shape did not "
    "fit, there would be an error.",
    corresponding="Decoder layer n takes its keys and values from encoder layer n.",
    rate="lr = d^−0.5 · min(d^−0.5, i · w^−1.5), at step i, with w warmup steps.",
)

# %% tags=["hide-input"]
# verdicts of round 4: they open under the tables
page = book.judge(
    masked=("right", "05_masks", "A masked key has a weight of exactly 0, so it "
    "adds nothing, 1 time or 100 times. Unmasked, a single extra token moves a "
    "logit by 3.9."),
    afterwards=("wrong", "05_masks", "Hidden keys stay in the denominator: with three "
    "of six hidden, the others sum to 0.3 instead of 1, and a hidden score still "
    "changes their weights. Put −∞ before the softmax."),
    minus=("half right", "05_masks", "True: with up to 4 of 5 keys hidden, the "
    "hidden ones get a weight of 0. But: with all 5 hidden, all scores are equal, "
    "and the hidden keys share all the weight, without an error."),
)

# %% tags=["hide-input"]
# more verdicts of round 4: they open under the tables
page = book.judge(
    shape=("wrong", "05_masks", "Torch raises an error, unless there is one sentence "
    "(harmless) or as many as words: then query i of each sentence gets the mask of "
    "sentence i, and here 14 to 24 % of the attention of real words goes to padding. "
    "Make the mask (batch, 1, 1, keys) for scores with heads."),
    corresponding=("wrong", "07_decoder", "Every decoder layer reads the output of the "
    "last encoder layer, each with its own W_K and W_V. With one layer each, both "
    "wirings are the same."),
    rate=("wrong", "09_training", "Done as said, the rate grows to 1.95e-3 at step "
    "11,181 and stays there. The first term of equation 3 is i^−0.5: with it the rate "
    "peaks at 6.99e-4 at step 4,000 and then falls."),
)

# %% [markdown]
# ### Claim 13: more padding
#
# Padding still runs through every layer: do 100 tokens of it leave no trace?
# If the claim holds, the first row is 0 up to rounding.
# The second row shows that this experiment could have seen a change.

# %%
@torch.no_grad()
def padded_more(padding):
    change, expected = {}, model(batch.src, batch.tgt_in)
    for name, token in (("masked padding", pad_id), ("unmasked tokens", 3)):
        wide = F.pad(batch.src, (0, padding), value=token)
        change[name] = (model(wide, batch.tgt_in) - expected).abs().max()
    return {f"change of a logit by {name}": x for name, x in change.items()}


book.test("masked", padded_more, values=(1, 10, 100))

# %% [markdown]
# ### Claim 14: zeros by hand
#
# A weight of 0 is what we want, so why not write it?
# If that works, the visible ones of our six weights sum to 1, and a change of a hidden score moves none of them.
# (*Leak*: by how much a visible weight moves when the hidden scores alone grow by 3.)

# %% tags=["hide-input"]
# our experiment for claim 14
def zeroed(hidden_keys):
    hidden, scores, found = torch.arange(6) < hidden_keys, draw(6), {}
    louder = scores + 3 * hidden  # only hidden keys change
    after, other = (x.softmax(dim=0).masked_fill(hidden, 0) for x in (scores, louder))
    hide = [x.masked_fill(hidden, -math.inf).softmax(dim=0) for x in (scores, louder)]
    for name, one, two in (("done as said", after, other), ("−∞ before", *hide)):
        found[f"sum of the weights, {name}"] = one.sum()
        found[f"leak of a hidden score, {name}"] = (two - one).abs().max()
    return found


book.test("afterwards", zeroed, values=(0, 1, 3, 5))

# %% [markdown]
# ### Claim 15: a very small number
#
# Beside ordinary scores, −1e9 gives a weight of exactly 0, as −∞ does.
# Your design: of five keys, how many would you hide?
#
# - *knob*:
# - *measured*:
# - *predicted*:

# %% tags=["hide-input"]
# our experiment for claim 15
def minus_1e9(hidden_keys):
    hidden = torch.arange(5) < hidden_keys
    shares = draw(5).masked_fill(hidden, -1e9).softmax(dim=0)
    said = {"weight on hidden keys, predicted": 0}
    return said | {"weight on hidden keys": shares[hidden].sum()}


book.test("minus", minus_1e9, values=(0, 1, 3, 4, 5), closed=True)

# %% [markdown]
# ### Claim 16: two axes
#
# Torch complains about shapes that do not fit, so no error sounds like a good sign.
# Take two sentences with two places each: A has two real words, B has one.
# The scores are (batch, queries, keys), so torch reads the first axis of the mask as *queries*:
#
# ```text
# mask     meant for    taken for
# [1 1]    A            query 1 of A and of B
# [1 0]    B            query 2 of A and of B
# ```
#
# Query 1 of B, a real word, now sees padding, and query 2 of A loses word 2.
# Our larger batches, too, have as many places as sentences, and each sentence has one word less than the one before it.
# How much of the attention of real words goes to padding?
# The claim predicts 0, or an error.

# %%
def two_axes(sentences):
    real = torch.ones(sentences, sentences).tril().flip(0).bool()  # (batch, keys)
    scores, share = draw(sentences, sentences, sentences), {}  # (batch, queries, keys)
    for name, mask in (("done as said", real), ("(batch, 1, keys)", real[:, None])):
        shares = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        lost = shares.masked_fill(real[:, None], 0).sum(dim=-1)  # (batch, queries)
        share[f"attention on padding, {name}"] = lost[real].mean()  # of real words
    return share


book.test("shape", two_axes, values=(2, 4, 8, 16))

# %% [markdown]
# ### Claim 17: the wires
#
# The stacks stand side by side and are equally high, so a line from each layer to its neighbor looks natural.
# Here it is with two layers each, and another wiring:
#
# ```text
# done as said:                encoder 1 → decoder 1    encoder 2 → decoder 2
# last encoder layer for all:  encoder 2 → decoder 1    encoder 2 → decoder 2
# ```
#
# `wired` connects the layers of a fresh `nn.Transformer` both ways by hand, and compares the output with that of the whole model.
# If the claim holds, the first row is 0 in every column.

# %% tags=["hide-input"]
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
    said = {"change of the output, done as said": off[0]}
    return said | {"change of the output, last encoder layer for all": off[1]}

# %%
book.test("corresponding", wired, values=(1, 2, 4, 6))

# %% [markdown]
# ### Claim 18: the learning rate
#
# As in the paper, the rate is a minimum of two terms, and one grows with the step i.
# `paper_rate` is equation 3: if the claim is the paper's formula, the two rows agree in every column.

# %%
from course_lib.training import paper_rate


def rates(step):
    said = 512**-0.5 * min(512**-0.5, step * 4000**-1.5)
    right = paper_rate(step, d_model=512, warmup_steps=4000)
    return {"rate, done as said": said, "rate, equation 3": right}


book.test("rate", rates, values=(1000, 4000, 8000, 11_181, 20_000, 100_000))

# %% tags=["hide-input"]
# checks of round 4: every number of the prose
masked, filled = measured("masked")
assert masked.max() < 1e-9 and filled.min() > 1 and abs(filled[0] - 3.9) < 0.1
after, leak, before, tight = measured("afterwards")
assert (after[1:] < 0.9).all() and abs(before - 1).max() < 1e-12
assert (leak[1:] > 0.01).all() and leak[0] == 0 and tight.max() == 0
assert abs(after[2] - 0.3) < 0.01
assert torch.full((6,), -math.inf).softmax(dim=0).isnan().all()  # one must stay open
_, shares = measured("minus")
assert shares[:-1].max() == 0 and shares[-1] == 1
assert torch.finfo(torch.float16).max == 65504
wrong, right = measured("shape")
assert 0.14 < wrong.min() and wrong.max() < 0.24 and right.max() == 0

# %% tags=["hide-input"]
for sentences in (1, 2, 4, 5, 6):  # of 5 words
    try:
        torch.zeros(sentences, 5, 5).masked_fill(torch.ones(sentences, 5).bool(), 0)
        fits = True
    except RuntimeError:
        fits = False
    assert fits == (sentences in (1, 5))
said, right = measured("corresponding")
assert right.max() < 1e-12 and said[0] < 1e-12 and said[1:].min() > 1e-3
said, right = measured("rate")
assert f"{right.max():.2e}" == "6.99e-04" and right.argmax() == 1
assert said.max() == said[3] == said[-1] > rates(11_180)["rate, done as said"]
assert f"{said.max():.2e}" == "1.95e-03"

# %% [markdown]
# ### Rule 4: go where it must fail
#
# With everything hidden, as many sentences as words, more than one layer, at late steps.

# %% [markdown]
# ## Round 5: one step off
#
# The decoder reads one token and predicts the next one, so each of its rows belongs to two tokens.
# Which inputs may a row read (19, 20)?
# Does a row change when the text grows (21, 22)?
# Which of its two tokens does a row explain (23)?

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "One step off",
    triangle="In the decoder, the upper triangle is masked.",
    whole="In training the decoder is fed the whole target; the causal mask does the "
    "rest.",
    word_by_word="Without dropout, one pass over a sentence gives the same gradient as "
    "one pass per word, added up (the weights do not change in between).",
    cache="A key-value cache skips work, so it changes the output a little.",
    row_t="Row t of the cross-attention explains word t, which the decoder reads "
    "there.",
)

# %% tags=["hide-input"]
bet("word_by_word", section="Round 5: one step off")

# %% tags=["hide-input"]
bet("cache", section="Round 5: one step off")

# %% tags=["hide-input"]
# verdicts of round 5: they open under the tables
page = book.judge(
    triangle=("half right", "05_masks", "True: what lies above the diagonal is "
    "masked, on the scores. But: the diagonal stays open. With it masked, the "
    "first query has no key (column 0); with the mask begun one further up, five "
    "of six queries see their future (column 2)."),
    whole=("half right", "07_decoder", "True: the mask hides all later inputs. But: a "
    "row may read its own input, and unshifted that is its answer. So the decoder is "
    "fed `<s>` and then the sentence."),
    word_by_word=("right", "07_decoder", "The mask makes each row depend on its "
    "prefix only, so the losses of one pass are those of the separate passes, and "
    "their gradients add up. That is what the mask is for: one pass trains all "
    "positions."),
)

# %% tags=["hide-input"]
# more verdicts of round 5: they open under the tables
page = book.judge(
    cache=("wrong", "11_decoding", "The outputs agree up to rounding. The causal mask "
    "keeps each earlier row as it was when a token is added, so its keys and values "
    "can be kept: 8 rows for 8 tokens instead of 36."),
    row_t=("wrong", "12_reading_attention", "In this map, the row that predicts a "
    "word finds its source word in 87 % of the links, and the row that reads it in "
    "6 %. So write at a plot whether its rows are named by what they read or by "
    "what they predict."),
)

# %% [markdown]
# ### Claim 19: the triangle
#
# Where does the mask begin: at the diagonal (0), above it (1), or one further up (2)?
# For three words (■ open, · masked):
#
# ```text
# diagonal    0      1      2
# query 1    ···    ■··    ■■·
# query 2    ■··    ■■·    ■■■
# query 3    ■■·    ■■■    ■■■
# ```
#
# A good mask has 0 in both rows of the table.

# %% tags=["nbval-check-output"]
def hidden_above(diagonal):
    seen = ~torch.ones(6, 6).triu(diagonal).bool()  # (queries, keys)
    blind, cheats = ~seen.any(dim=1), seen.triu(1).any(dim=1)
    found = {"queries without a key": blind.sum()}
    return found | {"queries that see their future": cheats.sum()}


book.test("triangle", hidden_above, values=(0, 1, 2))

# %% [markdown]
# ### Claim 20: the decoder's input
#
# The causal mask hides the future, so the whole target looks safe.
# But row p reads the inputs up to and including input p:
#
# | row | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | fed as it is | die | Katze | schläft | `</s>` |
# | fed shifted right | `<s>` | die | Katze | schläft |
# | must predict | die | Katze | schläft | `</s>` |
#
# If the claim holds, no row reads its own answer: *done as said* is 0 (no).
# `inputs_read` looks at the gradient, which is 0 at an input that the row does not read.

# %% tags=["hide-input"]
# the gradients of claim 20
def inputs_read(part, fed, row, first_hidden=1):
    """The inputs of the decoder, or a part of it, that a row depends on: (tgt_len,)."""
    x = model.tgt_embedding(fed).detach().requires_grad_()
    seen = ~torch.ones(1, 1, *2 * fed.shape[1:]).triu(first_hidden).bool()
    out = part(x, model.encode(src).detach(), seen)  # (1, tgt_len, d_model)
    (out[0, row] @ draw(out.shape[-1])).backward()
    return x.grad[0].abs().sum(dim=-1) > 0

# %%
pair = batch_of(corpus.test[:1])
src, tgt_in, tgt_out = pair.src, pair.tgt_in, pair.tgt_out


def visible(position):
    whole = inputs_read(model.decoder, tgt_out, position)[position]
    shifted = inputs_read(model.decoder, tgt_in, position)[position + 1]
    return {"answer read, done as said": whole, "answer read, shifted right": shifted}


book.test("whole", visible, values=(0, 1, 2, 3, 4))

# %% [markdown]
# ### Claim 21: one pass
#
# One pass reads the whole target at once; writing reads one prefix after the other.
# If the claim holds, the gradients differ by rounding alone.

# %%
def gradient(losses):
    model.zero_grad()
    sum(losses).backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


def passes(words):
    read, true = tgt_in[:, :words], tgt_out[0, :words]
    at_once = gradient(F.cross_entropy(model(src, read)[0], true, reduction="none"))
    steps = [model(src, read[:, : t + 1])[0, -1] for t in range(words)]
    by_word = gradient(map(F.cross_entropy, steps, true))
    off = (at_once - by_word).norm() / by_word.norm()
    return {"passes, word by word": len(steps), "relative difference of gradients": off}


book.test("word_by_word", passes, values=(1, 2, 4, 8))

# %% [markdown]
# ### Claim 22: the kept rows
#
# A cache leaves out most of the work, and a shortcut often costs accuracy.
# The decoder reads the reference of one sentence token by token, once with a cache, once from the beginning each time.
# `cached` counts the rows that a layer computes.
# If the cache loses something, the last row of the table is above rounding.

# %% tags=["hide-input"]
# the decoder of claim 22, with a cache and without
@torch.no_grad()
def cached(tokens_read):
    held, kept, counted = model.encode(src), model.new_cache(), []
    count = model.decoder.layers[0].register_forward_hook(
        lambda layer, inputs, out: counted.append(out.shape[1])
    )
    tokens, ends = tgt_in[:, :tokens_read].split(1, dim=1), range(1, tokens_read + 1)
    new = [model.decode(token, held, src, cache=kept)[:, -1] for token in tokens]
    again = [model.decode(tgt_in[:, :end], held, src)[:, -1] for end in ends]
    count.remove()
    rows = {"rows computed, cached": sum(counted[:tokens_read])}
    rows["rows computed, without a cache"] = sum(counted[tokens_read:])
    change = (torch.stack(new) - torch.stack(again)).abs().max()
    return rows | {"largest change of an output": change}

# %%
book.test("cache", cached, values=(1, 2, 4, 8))

# %% [markdown]
# ### Claim 23: the name of a row
#
# In row t the decoder reads word t, so the row seems to be about word t.
# Our map is the translator's last cross-attention, the mean of its heads, for 50 sentences.
# Here are seven rows, for "…, but Paul does not throw it away.":

# %% tags=["hide-input"]
# the map and the links of claim 23
from course_lib import record_attention
from course_lib.analysis import word_spans

some, tokens = corpus.test[:50], translator.tokenizer.tokens
half = batch_of(some)
with torch.no_grad(), record_attention(model) as maps:
    model(half.src, half.tgt_in)
looked_at = maps.cross[-1].mean(dim=1).argmax(dim=-1)  # (batch, tgt_len): source places


def links_found(looked_at, rows_below=0):
    """Of the grammar's links, how many have their source word looked at, in percent."""
    hits = []
    for looks, pair in zip(looked_at.tolist(), some, strict=True):
        source, target = (word_spans(pair[2 + i], tokens(pair[i])) for i in (0, 1))
        hits += [looks[target[t][0] + rows_below] in source[s] for s, t in pair.links]
    return 100 * sum(hits) / len(hits)

# %% tags=["hide-input"]
# rows 6 to 12 of the first sentence
def spelled(ids):
    names = (translator.tokenizer.token(i).strip("▁") for i in ids.tolist())
    return [name.replace("</s>", "`</s>`") for name in names]


def row_by_row(columns):
    rows = [[*columns], ["---"] * len(columns), *zip(*columns.values(), strict=True)]
    return Page("\n".join(f"| {' | '.join(map(str, row))} |" for row in rows))


clause = slice(6, 13)
seven_rows = {"t": range(6, 13), "reads": spelled(half.tgt_in[0, clause])}
seven_rows["predicts"] = spelled(half.tgt_out[0, clause])
seven_rows["strongest weight at"] = spelled(half.src[0, looked_at[0, clause]])
row_by_row(seven_rows)

# %% [markdown]
# Now all 50 sentences, with the corpus's *links*: which English word belongs to which German one.
# A row finds a link if its strongest weight stands at the English word.
# If the claim holds, column 1 (the row that reads the German word) finds more links than column 0 (the row that predicts it).

# %% tags=["hide-input"]
# our experiment for claim 23
def found(rows_below):
    return {"% of the links found": links_found(looked_at, rows_below)}


book.test("row_t", found, values=(0, 1))

# %% tags=["hide-input"]
# checks of round 5: every number of the prose
settle("word_by_word", "cache")
empty, ahead = measured("triangle")
assert empty.tolist() == [1, 0, 0] and ahead.tolist() == [0, 0, 5]
whole_target, shifted = measured("whole")
assert whole_target.min() == 1 and shifted.max() == 0
_, off = measured("word_by_word")
assert off.max() < 1e-9
computed, again, off = measured("cache")
assert off.max() < 1e-12 and (computed[-1], again[-1]) == (8, 36)
predicts, reads = measured("row_t")[0]
assert abs(predicts - 87) < 1.5 and abs(reads - 6) < 1.5

# %% tags=["hide-input"]
# checks of the seven rows
assert corpus.test[0].src.endswith(", but Paul does not throw it away.")
assert seven_rows["strongest weight at"][:4] == ["Paul", "throw", "it", "not"]
assert seven_rows["predicts"] == ["Paul", "wirft", "ihn", "nicht", "weg", ".", "`</s>`"]
assert seven_rows["reads"] == ["aber", *seven_rows["predicts"][:-1]]

# %% [markdown]
# ### Rule 5: say what a row reads and what it predicts
#
# Many mistakes about the decoder are off by one step.

# %% [markdown]
# ## Round 6: what does the number show?
#
# A score and a map are computed without a mistake.
# Do they show what we want to know?

# %% tags=["hide-input"]
# the claims of this round
book.say(
    "What does the number show?",
    teacher="BLEU of the teacher-forced predictions says how well a model translates.",
    explains="The attention map shows what the output depends on.",
)

# %% tags=["hide-input"]
bet("explains", section="Round 6: what does the number show?")

# %% tags=["hide-input"]
# verdicts of round 6: they open under the tables
page = book.judge(
    teacher=("half right", "07_decoder", "True: here it ranks the five checkpoints "
    "as their own writing does. But: it is too high for each of them, because "
    "every step gets help from the reference. Score what the model writes on its "
    "own."),
    explains=("half right", "12_reading_attention", "True: in this map, in four of "
    "five cases, replacing the token of the highest weight harms the word most. But: "
    "in one of five, replacing another harms more (t = 7), and in 15 %, each `</s>` "
    "among them (t = 12), the harm is below 0.1. The map weighs places of the memory, "
    "where the tokens are mixed: for these it is right in nine of ten cases."),
)

# %% [markdown]
# ### Claim 24: BLEU in one pass
#
# Teacher-forced predictions come from the same model, in a single pass, so why not score them?
# The finished course translator hardly errs, so we take five early checkpoints, after 156 to 933 of 5,572 training steps (`written` holds both kinds of translations).
# If the teacher-forced predictions say how well it translates, the two rows agree.

# %% tags=["hide-input"]
# the translations of claim 24
from course_lib.metrics import bleu

everything, loss = batch_of(corpus.test), nn.CrossEntropyLoss(ignore_index=pad_id)
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

# %% [markdown]
# ### Claim 25: a map as a cause
#
# If the map of claim 23 shows what a word depends on, the token of highest weight (rank 1) is the one whose absence hurts most.
# So we replace each source token in turn by `<unk>` before the encoder mixes it in, or hide only its place in the memory from the decoder.
# The *harm* is how far a predicted token's loss rises (below 0.1: hardly).
# First the seven rows of claim 23:

# %% tags=["hide-input"]
# the harm of claim 25
@torch.no_grad()
def harm_of_each(put):
    """By how much each loss rises with this id at each source place in turn."""
    by_token = nn.CrossEntropyLoss(ignore_index=pad_id, reduction="none")
    before, harm = by_token(model(half.src, half.tgt_in).mT, half.tgt_out), []
    for place in range(half.src.shape[1]):
        without = half.src.index_fill(1, torch.tensor(place), put)
        without = without.where(half.src != pad_id, pad_id)
        # Padding is hidden from the decoder; the memory then has all tokens.
        memory = model.encode(half.src if put == pad_id else without)
        logits = model.generator(model.decode(half.tgt_in, memory, without))
        harm.append(by_token(logits.mT, half.tgt_out) - before)
    return torch.stack(harm, dim=-1)  # (batch, tgt_len, src_len)

# %% tags=["hide-input"]
# weights and harm, word by word
def of_words(x):
    """Of (batch, tgt_len, …) the places that predict a token: (words, …)."""
    return x[half.tgt_out != pad_id]


pads = of_words((half.src == pad_id)[:, None].expand_as(maps.cross[-1][:, 0]))
share = of_words(maps.cross[-1].mean(dim=1))  # (words, src_len)
harm = of_words(harm_of_each(model.config.unk_id))
if_hidden = of_words(harm_of_each(pad_id))
by_weight = share.masked_fill(pads, -1).argsort(dim=-1, descending=True)
most, most_hidden = (  # (words,): source places
    each.masked_fill(pads, -math.inf).argmax(dim=-1) for each in (harm, if_hidden)
)
top_share, top_harm = (x.gather(1, by_weight[:, :1])[:, 0] for x in (share, harm))

# %% tags=["hide-input"]
# the rows of claim 23 once more
with_harm = {name: row for name, row in seven_rows.items() if name != "reads"}
of_highest = {"this weight": top_share, "harm of replacing this token": top_harm}
for name, row in of_highest.items():
    with_harm[name] = [f"{each:.2f}" for each in row[clause]]
with_harm["most harm by replacing"] = spelled(half.src[0, most[clause]])
row_by_row(with_harm)

# %% [markdown]
# Which two rows break the claim?
# All 50 sentences: if it holds, rank 1 harms most in nearly 100 %.

# %% tags=["hide-input"]
# our experiment for claim 25
def of_rank(rank):
    token = by_weight[:, rank - 1 : rank]  # (words, 1)
    found = {"mean weight": share.gather(1, token).mean()}
    ways = {"replacing this token": (harm, most)}
    ways["hiding its place"] = if_hidden, most_hidden
    for way, (each, largest) in ways.items():
        found[f"mean harm of {way}"] = each.gather(1, token).mean()
        idle = (each.gather(1, token) < 0.1).double()  # the loss hardly rises
        found[f"% where {way} harms less than 0.1"] = 100 * idle.mean()
        hit = (token[:, 0] == largest).double().mean()
        found[f"% where {way} harms most"] = 100 * hit
    return found


book.test("explains", of_rank, values=(1, 2, 3, 4, 5))

# %% tags=["hide-input"]
# checks of round 6: every number of the prose
settle("explains")
forced, free = measured("teacher")
assert (forced > free).all() and torch.equal(forced.argsort(), free.argsort())
weight, without, idle, hits, hidden, _, hidden_hits = measured("explains")
assert without[0] > 5 * without[1] and hidden[0] > 20 * hidden[1]
assert 75 < hits[0] < 86 and hits[1:].max() < 15 and abs(idle[0] - 15) < 2
assert 88 < hidden_hits[0] < 93 and hidden[2:].max() < 0.05
ends = of_words(half.tgt_out) == tgt_out[0, -1]  # </s>
assert ends.sum() == 50 and top_harm[ends].max() < 0.1 < top_share[ends].min()
assert with_harm["strongest weight at"] == spelled(half.src[0, by_weight[clause, 0]])
t_of_rows = torch.tensor(with_harm["t"])
assert t_of_rows[(most != by_weight[:, 0])[clause]].tolist() == [7]
assert t_of_rows[top_harm[clause] < 0.1].tolist() == [12]

# %% [markdown]
# ### Rule 6: ask which question the number answers
#
# A correct number may answer another than yours, so say what it was computed on.
# If a claim names a cause, change that cause alone.

# %% [markdown]
# ## Why wrong claims survive
#
# Of the 25 claims, 12 are wrong and 8 half right.
#
# *An easy test agrees.*
# Eight claims come out as said in the first column of their table, and not in the last:

# %% tags=["hide-input"]
# two rows of each table, which agree where the claim comes out as said
easy = {
    "zeros": ("zero padding", 0, 1),
    "longer": ("longer texts", 0, 1),
    "scale": ("without √d_k", 0, 1),
    "undivided": ("without 1/n, clipped", 0, 1),
    "afterwards": ("zeros by hand", 0, 2),
    "minus": ("a very small number", 0, 1),
    "corresponding": ("the wires", 0, 1),
    "rate": ("the learning rate", 0, 1),
}


def agreeing(name):
    one, two = (measured(name)[row] for row in easy[name][1:])
    return ((one - two).abs() < 0.05 * two.abs() + 1e-9).tolist()

# %% tags=["hide-input"]
lines = ["| claim | knob | as said at | not as said at |", "|---|---|---|---|"]
for name, (heading, *_) in easy.items():
    tried = [*zip(book[name].values, agreeing(name), strict=True)]
    passed, missed = (
        "; ".join(f"{value:,}" for value, holds in tried if holds is side)
        for side in (True, False)
    )
    first_cells = f"{book[name].number}: {heading} | {book[name].knob}"
    lines.append(f"| {first_cells} | {passed} | {missed} |")
Page("\n".join(lines))

# %% tags=["hide-input"]
assert [book[name].number for name in easy] == [1, 7, 10, 12, 14, 15, 17, 18]
assert all(agreeing(name)[0] and not agreeing(name)[-1] for name in easy)

# %% [markdown]
# *Nothing crashes.*
# One position for a whole text (8), a mask on the wrong axis (16), a schedule with one wrong letter (18): each can run without an error.
# Where do the claims stand, in the model and beside it?

# %% tags=["hide-input"]
stages = {  # lower left corner, width, claims
    "word vectors + positions": (0, 0, 3.7, [7, 8, 9]),
    "self-attention without positions": (0, 1, 3.7, [5, 6]),
    "scores, softmax, masks": (0, 2, 3.7, [1, 10, 11, 13, 14, 15, 16]),
    "heads": (0, 3, 3.7, [3, 4]),
    "output of the encoder": (0, 4, 3.7, [2, 17]),
    "input of the decoder": (4.4, 0, 2.6, [20]),
    "masked self-attention": (4.4, 1, 2.6, [19, 21, 22]),
    "cross-attention": (4.4, 3, 2.6, [23, 25]),
    "training": (7.6, 0, 1.6, [12, 18]),
    "scoring": (7.6, 3, 1.6, [24]),
}
tones = {"right": "#cdebdf", "half right": "#fbe3b5", "wrong": "#f6c9b5"}

# %% tags=["hide-input"]
from course_lib.analysis import VERDICTS


def dots(axes, x, y, numbers):
    for place, number in enumerate(numbers):
        verdict = book.claims[number - 1].verdict
        box = dict(boxstyle="round,pad=0.25", fc=tones[verdict], ec="0.45")
        words, at = f"{number}{VERDICTS[verdict]}", (x + 0.3 + 0.51 * place, y + 0.24)
        axes.text(*at, words, bbox=box, ha="center", va="center")

# %% tags=["hide-input"]
@styled
def mistakes_figure():
    title = "The first 25 claims: ✗ wrong, ◐ half right, ✓ right"
    figure = new_figure(title, 9.3, 4.4)
    axes = figure.add_subplot(xlim=(-0.1, 9.3), ylim=(-0.15, 5.1))
    axes.axis("off")
    for name, (x, y, width, numbers) in stages.items():
        axes.fill_between([x, x + width], y, y + 0.82, fc="0.97", ec="0.6")
        axes.text(x + 0.08, y + 0.6, name, fontsize=9, va="center")
        dots(axes, x, y, numbers)
    ways = [((1.85, y + 0.82), (1.85, y + 1)) for y in range(4)]
    ways += [((5.7, 0.82), (5.7, 1)), ((5.7, 1.82), (5.7, 3)), ((3.7, 4.4), (4.4, 3.4))]
    for start, end in ways:
        axes.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", color="0.4"))
    return figure

# %% tags=["hide-input"]
drawn = [number for *_, numbers in stages.values() for number in numbers]
assert sorted(drawn) == [*range(1, 26)]
most_dots = max(stages, key=lambda name: len(stages[name][3]))
assert most_dots == "scores, softmax, masks" and len(stages[most_dots][3]) == 7
failed = {
    name: sum(book.claims[n - 1].verdict != "right" for n in stage[3])
    for name, stage in stages.items()
}
assert failed.pop(most_dots) == 5 > max(failed.values())
mistakes_figure()

# %% [markdown]
# At *scores, softmax, masks* stand 7 of the claims that we chose, 5 of them not right: the most of any box.
# There a wrong line of code often still gives the right shape.
#
# *Half of it is true.*
# A condition or a part got lost: the mean is invariant, not the rows (5); the upper triangle is masked, without its diagonal (19).
#
# And what sounds wrong may be right: the key bias does nothing (11), and masked padding leaves no trace (13).

# %% [markdown]
# ## The bench
#
# Here are 34 more claims, which the summary does not need (skip to [the widget](#All-of-them,-to-play)).
# Scroll past the closed cells, which test them; open a topic, then each table and verdict.
# Above each table stands what it shows if the claim is true, and if not (wrong or half right): judge first.

# %% tags=["hide-input"]
# the bench: words
page = book.say(
    "Words",
    words="Each output dimension of the model is a word of the target language.",
    splits="It does not help to put a word into the vocabulary that occurs in the test "
    "text only.",
)


from collections import Counter

bench = {}  # topics, and what to expect of their experiments
train, test = ([pair.tgt for pair in part] for part in (corpus.train, corpus.test))
counts, asked = (Counter(" ".join(texts).split()) for texts in (train, test))

# %% tags=["hide-input"]
from course_lib import Tokenizer


def unknown(entries):
    listed = dict(counts.most_common(entries))
    missing = sum(asked[word] for word in asked if word not in listed)
    tokenizer = Tokenizer.train(train, vocab_size=entries)
    ids = sum(tokenizer.encode_batch(test), [])
    words, subwords = missing / asked.total(), ids.count(3) / len(ids)  # 3: <unk>
    unknown = {"% unknown to the word list": 100 * words}
    unknown["% unknown to the subwords"] = 100 * subwords
    names = map(tokenizer.token, range(entries))  # "▁" begins a word
    whole = sum(name[0] == "▁" and name[1:] in counts for name in names)
    unknown["% of the subwords that are words, predicted"] = 100
    return unknown | {"% of the subwords that are words": 100 * whole / entries}


page = book.test("words", unknown, values=(250, 500, 1000, 1500))

# %% tags=["hide-input"]
def probabilities(seen):
    """Of each word of the test, in guesses, and whether only the test holds it."""
    place = {each: row for row, each in enumerate(sorted({*seen, *asked}))}
    texts = [torch.tensor([place[each] for each in text.split()]) for text in test]
    before, word = (torch.cat([x[i : len(x) - 1 + i] for x in texts]) for i in (0, 1))
    ids, size = torch.tensor([place[each] for each in seen]), len(place)
    reader = nn.Sequential(nn.Embedding(size, 32), nn.Linear(32, size))
    optimizer = torch.optim.Adam(reader.parameters(), lr=2e-2)
    for _ in range(100):
        at = torch.randint(len(ids) - 1, (256,))
        optimizer.zero_grad()
        F.cross_entropy(reader(ids[at]), ids[at + 1]).backward()
        optimizer.step()
    found = reader(before).detach().softmax(dim=-1)[torch.arange(len(word)), word]
    return size * found, ~torch.isin(word, ids)

# %% tags=["hide-input"]
def leaked(training_pairs):
    torch.manual_seed(0)
    guesses, new = probabilities(" ".join(train[:training_pairs]).split())
    found = {"% of the test's words that only it holds": 100 * new.double().mean()}
    found["guesses for such a word, predicted at most"] = 1
    found["guesses for such a word"] = guesses[new].mean()
    return found | {"guesses for another word": guesses[~new].mean()}


page = book.test("splits", leaked, values=(500, 1000, 2000))

# %% tags=["hide-input"]
# verdicts on words
page = book.judge(
    words=("wrong", "01_text_to_tensors", "Each dimension is an entry of the "
    "vocabulary, and here fewer than half of these are words: the others are pieces, "
    "so that no word is unknown. (The translator's vocabulary holds both languages.)"),
    splits=("right", "01_text_to_tensors", "Training teaches only that such a word "
    "never comes: it gets less than a third of a guess, others more than ten. And a "
    "vocabulary made with the test text is a leak."),
)

# %% tags=["hide-input"]
lacking, subwords, _, whole_words = measured("words")
assert (lacking > 1).all() and (lacking.diff() < 0).all() and (subwords == 0).all()
assert 10 < whole_words.min() and whole_words.max() < 50
only_test, guess, of_new, of_others = measured("splits")
assert only_test.min() > 1 and of_new.max() < guess[0] / 3 and of_others.min() > 10
entries = {translator.tokenizer.token(i) for i in range(model.config.vocab_size)}
assert {"▁The", "▁letter", "▁Brief", "▁nicht"} < entries  # of both languages
bench["Words"] = dict(
    words="A list of the most frequent words and a subword vocabulary of the same size "
    "read unseen German. If true, the last row is 100 throughout; if not, lower.",
    splits="A small model, its vocabulary from training and test text, names the next "
    "word. A guess is the probability 1 / vocabulary. If true, words of the test alone "
    "get at most one guess on average; if not, more.",
)

# %% tags=["hide-input"]
# the bench: positions
page = book.say(
    "Positions",
    start="Position 0 changes nothing, and the others change a word's vector a little.",
    multiples="After an offset, the encodings are multiples of each other.",
    fourier="The encoding is a kind of Fourier transform.",
    dimension="The wavelengths of the encoding form a geometric progression from 2π to "
    "10,000 · 2π.",
)

# %% tags=["hide-input"]
embedded = model.src_embedding.table.weight.detach() * math.sqrt(128)  # d_model


def added(position):
    row, word = sinusoidal(position + 1, 128)[position], embedded.norm(dim=1).median()
    lengths = {"length of a word's vector": word}
    lengths["length of the position's vector"] = row.norm()
    return lengths | {"dimensions changed by 0.5 or more": (row.abs() >= 0.5).sum()}


page = book.test("start", added, values=(0, 1, 10, 100))


def alike(offset):
    table = sinusoidal(100 + offset, 512)
    cosine = F.cosine_similarity(table[:100], table[offset:]).mean()
    return {"cosine, predicted": 1, "cosine of PE(pos), PE(pos + offset)": cosine}


page = book.test("multiples", alike, values=(1, 2, 5, 10, 50))

# %% tags=["hide-input"]
encoding, positions = sinusoidal(8, 512).double(), torch.arange(100).double()
pulse = (positions == 7).double()
turns = torch.atan2(encoding[1, ::2], encoding[1, 1::2])  # (pairs,): angles in a step


def frequencies(wave):  # from the slowest pair on
    found = {"frequency / lowest, predicted": wave}
    found["frequency / lowest, in PE"] = turns[-wave] / turns[-1]
    found["sine in row 7 of PE"] = encoding[7, -2 * wave]
    transformed = pulse @ (turns[-wave] * positions).sin()
    return found | {"sine in the transform of the pulse": transformed}


page = book.test("fourier", frequencies, values=(1, 2, 3, 11, 65, 129, 256))

# %% tags=["hide-input"]
def wavelengths(dimension):
    said = 10000 ** (dimension // 2 / 255)  # 255 equal factors between 256 pairs
    found = {"wavelength / 2π, predicted": said}
    return found | {"wavelength / 2π, in PE": 1 / turns[dimension // 2]}


page = book.test("dimension", wavelengths, values=(0, 170, 340, 510))

# %% tags=["hide-input"]
# verdicts on positions
page = book.judge(
    start=("wrong", "02_position", "Position 0 adds 1 to half the dimensions, the "
    "cosines. No position is small: each has length √(d_model / 2) = 8, a word 18."),
    multiples=("wrong", "02_position", "At offset 50 the cosine is 0.51, not 1 or −1. "
    "An offset turns each pair of dimensions by an angle of its own and keeps the "
    "length."),
    fourier=("half right", "02_position", "True: row 7 equals the transform of a "
    "pulse at position 7. But: no sentence is transformed, and the frequencies grow "
    "by a constant factor, here 1.04, not in equal steps."),
)

# %% tags=["hide-input"]
# more verdicts on positions
page = book.judge(
    dimension=("half right", "02_position", "True: from 2π on, every 170 dimensions "
    "multiply the wavelength by 21.3. But: the end is rounded, in section 3.5 too: the "
    "last pair (dimension 510) has 9,647 · 2π."),
)

# %% tags=["hide-input"]
word, row, large = measured("start")
assert abs(row - 8).max() < 1e-4 and 15 < word[0] < 21 and row[0] > 0.3 * word[0]
assert large[0] == large.min() == 64
assert abs(sinusoidal(9, 512).norm(dim=1) - 16).max() < 1e-4
_, cosine = measured("multiples")
assert abs(cosine[0] - 0.973) + abs(cosine[-1] - 0.512) < 1e-2
harmonics, pairs, sines, transformed = measured("fourier")
assert abs(pairs[4] - 10) < 1e-4 and abs(pairs[5] - 100) < 1e-3  # accidents of the base
assert abs(pairs[1:4] - harmonics[1:4]).min() > 0.5
assert abs(pairs[1] - 1.04) < 0.01 and abs(sines - transformed).max() < 1e-5
cosines = pulse @ (positions[:, None] * turns).cos()  # (pairs,)
assert abs(cosines - encoding[7, 1::2]).max() < 1e-5
geometric, in_encoding = measured("dimension")
assert abs(in_encoding / 21.2875 ** torch.arange(4) - 1).max() < 1e-4
assert abs(in_encoding[-1] - 9647) < 1 and abs(geometric[-1] - 10000) < 1e-6

# %% tags=["hide-input"]
bench["Positions"] = dict(
    start="If true, the last row begins with 0, and the position's vector is far "
    "shorter than the word's; if not, one or both fail.",
    multiples="If true, each cosine is 1 or −1; if not, some lie between.",
    fourier="We transform a pulse at position 7 at the frequencies of PE. If true, "
    "this gives its row 7, and wave n has n times the lowest frequency, as in a "
    "discrete transform; if not, one of these fails.",
    dimension="Width 512. If true, every 170 dimensions multiply the wavelength in PE "
    "by one factor, up to 10,000 · 2π; if not, one of these fails.",
)

# %% tags=["hide-input"]
# the bench: queries, keys and values
page = book.say(
    "Queries, keys, values",
    scores="QKᵀ is the attention matrix.",
    encodings="The context is the weighted sum of the words' encodings.",
    lengths="In cross-attention, source and target may differ in length and, with "
    "projections that fit, in width.",
    lossless="Attention looks at every word, so a context loses no information.",
)


def row_sums(d_k):
    query, key = draw(1, d_k, seed=1), draw(5, d_k)
    sums = {"sum of a row of QKᵀ": (query @ key.T).sum()}
    return sums | {"sum of a row of weights": weights(query, key).sum()}


page = book.test("scores", row_sums, values=(1, 4, 16, 64))

# %% tags=["hide-input"]
with torch.random.fork_rng():
    torch.manual_seed(0)
    one_head = nn.MultiheadAttention(16, 1, batch_first=True).double()
nn.init.eye_(one_head.out_proj.weight)  # so that the context comes out as it is


def projected(words):
    x, W_V = draw(1, words, 16), one_head.in_proj_weight[32:].T
    context, shares = one_head(x, x, x)
    sums = {"done as said": shares @ x, "sum times W_V": shares @ x @ W_V}
    off = {name: (each - context).abs().max() for name, each in sums.items()}
    return {f"difference from the context, {name}": each for name, each in off.items()}


page = book.test("encodings", projected, values=(1, 2, 5, 20))

# %% tags=["hide-input"]
def cross(target_words):
    look = nn.MultiheadAttention(6, 2, kdim=8, vdim=8, batch_first=True).double()
    memory = draw(1, 7, 8)
    context, shares = look(draw(1, target_words, 6), memory, memory)
    (queries, keys), out = shares.shape[1:], context.shape[1]
    return {"rows of Q": queries, "rows of K and V": keys, "rows that come out": out}


page = book.test("lengths", cross, values=(1, 3, 7, 20))


def noticed(words):
    def context(text):
        return weights(draw(1, 8, seed=1), text) @ text  # (1, d_v)

    slopes = torch.autograd.functional.jacobian(context, draw(words, 8))
    directions = torch.linalg.matrix_rank(slopes.reshape(8, -1))
    return {"directions of the words": 8 * words, "seen in the context": directions}


page = book.test("lossless", noticed, values=(1, 2, 10, 100))

# %% tags=["hide-input"]
# verdicts on queries, keys and values
page = book.judge(
    scores=("wrong", "03_attention", "The entries of QKᵀ are scores, with any sum. "
    "Weights, softmax(QKᵀ / √d_k), sum to 1."),
    encodings=("half right", "03_attention", "True: the context "
    "equals the weighted sum of the encodings times W_V. But: it sums value vectors, "
    "x W_V, not the encodings x."),
    lengths=("right", "07_decoder", "The output has a row for each query. Queries and "
    "keys must agree in their width d_k, keys and values in their number."),
)

# %% tags=["hide-input"]
# more verdicts on queries, keys and values
page = book.judge(
    lossless=("wrong", "03_attention", "A context has d_v = 8 numbers, however long "
    "the text. Of the 800 directions of 100 words it shows 8, to first order: many "
    "different texts have nearly the same context."),
)

# %% tags=["hide-input"]
sums, ones = measured("scores")
assert (sums - ones).abs().min() > 0.1 and (ones - 1).abs().max() < 1e-12
of_encodings, of_values = measured("encodings")
assert of_encodings.min() > 0.1 and of_values.max() < 1e-12
queries, keys, out = measured("lengths")
assert (keys == 7).all() and torch.equal(queries, out)
assert queries.tolist() == [1, 3, 7, 20]
directions, seen = measured("lossless")
assert (seen == 8).all() and directions.tolist() == [8, 16, 80, 800]
# %% tags=["hide-input"]
bench["Queries, keys, values"] = dict(
    scores="If true, both rows show 1; if not, only the second does.",
    encodings="One head of torch's layer, W_O the identity. If true, the first row is "
    "0; if not, above.",
    lengths="A decoder of width 6 reads a memory of 7 vectors of width 8. If true, "
    "each query gets a row; if not, torch raises an error.",
    lossless="In how many independent directions can the words change, and how many "
    "does a context show? If true, all; if not, fewer.",
)

# %% tags=["hide-input"]
# the bench: heads
page = book.say(
    "Heads",
    always="More heads are always better.",
    w_o="W_O leaves the dimension as it is: concatenated heads have the width of the "
    "model.",
    unbiased="Many heads are noisy copies of one attention pattern: together they "
    "average out each other's errors.",
)


PAPER = {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}  # BLEU, newstest2013


def in_tables(heads):
    return {"BLEU, the paper's table 3": PAPER[heads]}


page = book.test("always", in_tables, values=(1, 4, 8, 16, 32))

# %% tags=["hide-input"]
def mixed(layer):
    W_O = model.decoder.layers[layer].cross_attn.output_proj.weight
    out, side_by_side = W_O.shape
    widths = {"width of the heads side by side": side_by_side, "width after W_O": out}
    return widths | {"rank of W_O": torch.linalg.matrix_rank(W_O)}


page = book.test("w_o", mixed, values=(0, 1))


def averaging(part):
    def hook(module, inputs, context):
        query, keys, values, mask, _ = inputs
        scores = query @ keys.mT / math.sqrt(query.shape[-1])
        own = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        mean = own.mean(dim=1, keepdim=True)  # (batch, 1, queries, keys)
        return ((1 - part) * own + part * mean) @ values  # each head's own values

    return hook

# %% tags=["hide-input"]
@torch.no_grad()
def heads_mixed(part_averaged):
    losses, modules = {}, [layer.cross_attn.fused for layer in model.decoder.layers]
    for name, part in (("predicted at most", 0), ("averaged weights", part_averaged)):
        hooks = [module.register_forward_hook(averaging(part)) for module in modules]
        logits = model(everything.src, everything.tgt_in)
        losses[f"loss, {name}"] = loss(logits.mT, everything.tgt_out)
        for hook in hooks:
            hook.remove()
    return losses


page = book.test("unbiased", heads_mixed, values=(0, 0.25, 0.5, 0.75, 1))

# %% tags=["hide-input"]
# verdicts on heads
page = book.judge(
    always=("wrong", "04_multi_head", "BLEU is 25.8 with 8 and 16 heads, and falls to "
    "25.4 with 32, while each head gets narrower."),
    w_o=("right", "04_multi_head", "Side by side, the paper's heads are 8 × 64 = 512 "
    "wide, and these 4 × 32 = 128. W_O has full rank: it reduces nothing, it mixes "
    "what the heads bring."),
    unbiased=("wrong", "04_multi_head", "With the mean of the heads' weights the "
    "loss about doubles: the model uses the differences between its heads."),
)

# %% tags=["hide-input"]
assert measured("always")[0].tolist() == [24.9, 25.5, 25.8, 25.8, 25.4]
assert model.config.num_heads == 4
for heads in (1, 4, 5, 12, 24):  # of 12 features
    try:
        built = bool(nn.MultiheadAttention(12, heads))
    except AssertionError:
        built = False
    assert built == (12 % heads == 0)
assert all((row == 128).all() for row in measured("w_o"))
own, averaged_loss = measured("unbiased")
with torch.no_grad():
    untouched = loss(model(everything.src, everything.tgt_in).mT, everything.tgt_out)
assert abs(own - untouched).max() < 1e-9 and averaged_loss[0] == own[0]
assert (averaged_loss.diff() > 0).all() and 1.5 < averaged_loss[-1] / own[-1] < 2.5

# %% tags=["hide-input"]
bench["Heads"] = dict(
    always="Part (A) of the paper's table 3, where all heads together have 512 "
    "features. If true, BLEU rises in each column; if not, it stays or falls in one.",
    w_o="If true, both widths are the model's, 128; if not, they differ.",
    unbiased="We replace the weights of each cross-attention head by the mean over its "
    "layer, in part or altogether. If true, errors average out, and the loss does not "
    "rise; if not, it rises.",
)

# %% tags=["hide-input"]
# the bench: layers
page = book.say(
    "Layers",
    layer_norm="LayerNorm is γ (x − x.mean()) / x.std() + β.",
    pre_norm="LayerNorm(x + Sublayer(x)) and x + Sublayer(LayerNorm(x)) are two ways "
    "to write the same layer.",
    final_norm="`nn.Transformer` has two LayerNorms more than the paper's model.",
)

# %% tags=["hide-input"]
norms = {"done as said": lambda x: (x - x.mean()) / x.std()}
norms["torch's LayerNorm"] = lambda x: F.layer_norm(x, (8,))


def normalized(spread):
    token, found = 3 + spread * draw(8), {}  # its 8 features
    beside = torch.stack([token, 3 + draw(8, seed=1)])  # with a second token
    for name, norm in norms.items():
        found[f"size, {name}"] = norm(token).norm() / 8**0.5
        change = norm(beside)[0] - norm(token)
        found[f"change by a second token, {name}"] = change.abs().max()
    return found


page = book.test("layer_norm", normalized, values=(1, 0.1, 0.01, 0.001, 0.0001))

# %% tags=["hide-input"]
@torch.no_grad()
def top_of(num_layers, norm_first):
    torch.manual_seed(0)
    options = dict(dropout=0.0, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(32, 4, 64, **options).double()
    stack = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
    return stack(draw(4, 10, 32))


def two_sizes(layers):
    post, pre = top_of(layers, False), top_of(layers, True)
    return {"size at the top, post-norm": post.std(), "size, pre-norm": pre.std()}


page = book.test("pre_norm", two_sizes, values=(1, 4, 16))

# %% tags=["hide-input"]
def one_more(layers):
    whole = nn.Transformer(32, 4, layers, layers, 64, batch_first=True)
    norms = sum(isinstance(part, nn.LayerNorm) for part in whole.modules())
    return {"LayerNorms by figure 1": 5 * layers, "LayerNorms counted": norms}


page = book.test("final_norm", one_more, values=(1, 4, 16))

# %% tags=["hide-input"]
# verdicts on layers
page = book.judge(
    layer_norm=("half right", "06_encoder", "True: LayerNorm subtracts the mean of "
    "a token's features and divides by their deviation. But: `x.std()` divides by "
    "n − 1, which leaves a size of 0.935 for 8 features. Missing are ε, which "
    "counts at small spreads, and `dim=-1`, without which tokens mix."),
    pre_norm=("wrong", "06_encoder", "With 16 fresh layers, the output of post-norm "
    "has size 1, that of pre-norm more than 4. The paper has the first, post-norm; the "
    "code of The Annotated Transformer has pre-norm."),
    final_norm=("right", "08_transformer", "Figure 1 has 2 in an encoder layer and 3 "
    "in a decoder layer. The two more stand behind the stacks, one each."),
)

# %% tags=["hide-input"]
said, mixing, torchs, alone = measured("layer_norm")
assert abs(said - math.sqrt(7 / 8)).max() < 1e-6 and abs(torchs[0] - 1) < 1e-3
assert torchs[-1] < 0.1 and norms["done as said"](torch.ones(8)).isnan().all()
assert mixing.min() > 0.1 and alone.max() < 1e-9
after, before = measured("pre_norm")
assert abs(after - 1).max() < 1e-2 and before[-1] > 4 and (before.diff() > 0).all()
figure_1, torchs = measured("final_norm")
assert (torchs - figure_1 == 2).all()
fresh = nn.Transformer(16, 4, 1, 1, 32, batch_first=True).eval()
assert isinstance(fresh.encoder.norm, nn.LayerNorm)

# %% tags=["hide-input"]
inner = fresh.encoder.layers[0]  # up to d_ff and back, each position alone
assert inner.linear1.weight.shape == (32, 16) and inner.linear2.weight.shape == (16, 32)
feed_forward = nn.Sequential(inner.linear1, nn.ReLU(), inner.linear2)
x = torch.randn(5, 16)
alone = torch.stack([feed_forward(row) for row in x])
assert (feed_forward(x) - alone).abs().max() < 1e-5 and not inner.norm_first
bench["Layers"] = dict(
    layer_norm="If true, the two agree in size (root mean square) and in the change by "
    "a second token; if not, they differ.",
    pre_norm="If true, stacks with the same weights put out one size; if not, two.",
    final_norm="If true, the rows differ by 2 at each depth; if not, by another "
    "number.",
)

# %% tags=["hide-input"]
# the bench: from the encoder to the decoder
page = book.say(
    "Encoder to decoder",
    added="What the decoder layer has on top of the encoder layer is the masked "
    "self-attention.",
    last_keys="All decoder layers read the same memory, but each with keys of its own.",
    empty="The decoder cannot start from an empty sentence.",
)

# %% tags=["hide-input"]
def on_top(d_model):
    kinds = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    encoder, decoder = (kind(d_model, 4, dim_feedforward=4 * d_model) for kind in kinds)
    parts = encoder, decoder, encoder.self_attn, decoder.self_attn
    parts += decoder.multihead_attn, decoder.norm2
    counted = (sum(p.numel() for p in part.parameters()) for part in parts)
    less, more, plain, masked, *new = counted
    found = {"parameters added": more - less, "by self-attention": masked - plain}
    return found | {"by cross-attention and its norm": sum(new)}


page = book.test("added", on_top, values=(64, 512))

# %% tags=["hide-input"]
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

# %% tags=["hide-input"]
page = book.test("last_keys", key_angle, values=(0, 1))


def rows_out(tokens_read):
    out = whole(draw(1, 7, 16), draw(1, tokens_read, 16))  # claim 6's model
    return {"rows that can predict a token": out.shape[1]}


page = book.test("empty", rows_out, values=(0, 1, 2, 3))

# %% tags=["hide-input"]
# verdicts on encoder and decoder
page = book.judge(
    added=("wrong", "07_decoder", "All that is added is cross-attention and its "
    "LayerNorm. The encoder layer has self-attention too; in the decoder it gets a "
    "mask, which has no parameters."),
    last_keys=("right", "07_decoder", "All mean cosines are near 0. The encoder hands "
    "over its output; W_K and W_V belong to each decoder layer."),
    empty=("right", "07_decoder", "Attention returns a row for each query. With no "
    "token read there is no row to predict from, so the decoder starts from `<s>`."),
)

# %% tags=["hide-input"]
more, own_attention, cross_attn = measured("added")
assert torch.equal(more, cross_attn) and own_attention.abs().max() == 0 < more.min()
assert all(row.abs().max() < 0.1 for row in measured("last_keys"))
assert measured("empty")[0].tolist() == [0, 1, 2, 3]
bench["Encoder to decoder"] = dict(
    added="If true, self-attention brings the added parameters; if not, another part "
    "does.",
    last_keys="If true, both cosines of a layer's keys are far from 1; if not, one is "
    "1.",
    empty="If true, no row can predict after 0 tokens; if not, one can.",
)

# %% tags=["hide-input"]
# the bench: masks and rows
page = book.say(
    "Masks and rows",
    nothing="The causal mask is needed because the translation starts with nothing.",
    all_positions="In the decoder's self-attention, each position attends to itself as "
    "well, not only to those before it.",
    t_plus_1="It is enough that the mask hides word t + 1, and all later ones, when "
    "word t is predicted.",
    axes="From the numbers alone one can tell if a plot has source and target swapped.",
)

# %% tags=["hide-input"]
layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).double()
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
text, causal = draw(1, 8, 16), torch.ones(8, 8).triu(1).bool()


@torch.no_grad()
def newest_row(words_read):
    n, off = words_read, {}
    so_far = stack(text[:, :n], causal[:n, :n])[0, -1]
    off["all words, with the mask"] = stack(text, causal)[0, n - 1] - so_far
    off["all words, without it"] = stack(text)[0, n - 1] - so_far
    off["words so far, without it"] = stack(text[:, :n])[0, -1] - so_far
    return {f"change, {name}": each.abs().max() for name, each in off.items()}


page = book.test("nothing", newest_row, values=(1, 2, 4, 7))

# %% tags=["hide-input"]
with torch.no_grad(), record_attention(model) as recorded:
    model(src, tgt_in)
seen = recorded.decoder[0][0, 0] > 0  # (queries, keys)


def open_keys(position):
    read = seen[position].sum()
    return {"positions before it": position, "positions attended to": read}


page = book.test("all_positions", open_keys, values=range(0, 12, 2))


def used(t):
    found = {}
    for name, first_hidden in (("done as said", 2), ("causal mask", 1)):
        read = inputs_read(model.decoder.layers[0], tgt_in, t - 1, first_hidden)
        found[f"words read for word t, {name}"] = read[1:].sum()  # without <s>
        found[f"is word t one of them, {name}"] = read[t]
    return found


page = book.test("t_plus_1", used, values=(1, 2, 3, 5, 8))

# %% tags=["hide-input"]
def sums(words):
    shares = weights(draw(words, 8), draw(words, 8, seed=1))  # (target, source)
    off = {"source": shares.sum(dim=1) - 1, "target": shares.sum(dim=0) - 1}
    return {f"sums over the {n} miss 1 by": each.abs().max() for n, each in off.items()}


page = book.test("axes", sums, values=(2, 4, 8, 16))

# %% tags=["hide-input"]
# verdicts on masks and rows
page = book.judge(
    nothing=("wrong", "05_masks", "The mask is there for training: with it a row "
    "reads only its prefix, so one pass trains all positions. Writing keeps it, or its "
    "rows would differ from those of training."),
    all_positions=("right", "05_masks", "The mask hides only what is strictly above "
    "the diagonal."),
    t_plus_1=("wrong", "05_masks", "Done as said, the row that predicts word t reads "
    "it. The causal mask leaves it t − 1 words: to predict y_t only y_<t may be used."),
)

# %% tags=["hide-input"]
# more verdicts on masks and rows
page = book.judge(
    axes=("right", "12_reading_attention", "Each query shares out a weight of 1 over "
    "the source. Rows are target queries, columns source keys."),
)

# %% tags=["hide-input"]
masked, free, writing = measured("nothing")
assert masked.max() < 1e-12 and free.min() > 1e-3
assert writing[0] < 1e-12 and writing[1:].min() > 1e-3
with torch.no_grad():  # with one layer nobody could tell
    one = stack.layers[0]
    assert (one(text)[0, -1] - one(text, causal)[0, -1]).abs().max() < 1e-12
before, attended = measured("all_positions")
assert torch.equal(attended, before + 1)
said, answer_read, words_used, answer_used = measured("t_plus_1")
asked_for = torch.tensor(book["t_plus_1"].values, dtype=torch.float64)
assert torch.equal(said, asked_for) and torch.equal(words_used, asked_for - 1)
assert answer_read.min() == 1 and answer_used.max() == 0
source, target = measured("axes")
assert source.max() < 1e-12 and target.min() > 0.01

# %% tags=["hide-input"]
bench["Masks and rows"] = dict(
    nothing="Two layers compute the newest word's row from the words so far, with the "
    "mask; the table shows how far other ways miss it. If true, a missing mask matters "
    "at word 1 alone; if not, later too.",
    all_positions="If true, the second row is one more than the first; if not, they "
    "agree.",
    t_plus_1="Row t − 1 predicts word t, as position 0 holds `<s>`. If true, it "
    "does not read word t under the mask as said (0); if not, it does (1).",
    axes="If true, one direction alone sums to 1; if not, both do, or neither.",
)

# %% tags=["hide-input"]
# the bench: training
page = book.say(
    "Training",
    adam="Width 512, 8 heads, 6 + 6 layers, d_ff 2,048, dropout 0.1, trained with "
    "Adam: that is the paper's recipe.",
    dropped="In training, the rows of attention weights in a torch layer with dropout "
    "do not sum to 1.",
    accumulation="Accumulating gradients reduces the memory that a model needs.",
    pad_loss="If padding counts in the loss, the loss of the same sentences changes "
    "when a longer sentence joins their batch.",
    smoothing="With label smoothing, a perfect model has a cross-entropy above 0.",
)

# %% tags=["hide-input"]
from course_lib.training import TrainConfig


def remembered(steps_ago):
    usual = torch.optim.Adam([torch.zeros(1)]).defaults["betas"][1]
    paper = TrainConfig().betas[1]
    return {f"share left, β₂ = {each}": each**steps_ago for each in (usual, paper)}


page = book.test("adam", remembered, values=(1, 10, 50, 100, 500))


def rows_in_training(dropout):
    layer = nn.MultiheadAttention(16, 4, dropout=dropout, batch_first=True)
    x = torch.randn(8, 30, 16)
    totals = layer(x, x, x, average_attn_weights=False)[1].sum(dim=-1)
    return {"smallest sum of a row": totals.min(), "largest sum": totals.max()}


page = book.test("dropped", rows_in_training, values=(0, 0.1, 0.3))

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

# %% tags=["hide-input"]
page = book.test("accumulation", kilobytes, values=(1, 2, 4, 8, 16, 32))


@torch.no_grad()
def losses(padding):
    read, true = (F.pad(x, (0, padding)) for x in (batch.tgt_in, batch.tgt_out))
    logits = model(batch.src, read).transpose(1, 2)  # (batch, vocab, tgt_len)
    each = F.cross_entropy(logits, true, reduction="none")
    real = {"loss over real tokens": each[true != pad_id].mean()}
    return {"loss over all places": each.mean()} | real


page = book.test("pad_loss", losses, values=(0, 5, 10, 20, 40))

# %% tags=["hide-input"]
def perfect_loss(smoothing, vocab=2000):
    wanted = torch.full((vocab,), smoothing / vocab, dtype=torch.float64)
    wanted[0] += 1 - smoothing  # of the true token
    divergence = F.kl_div(wanted.log(), wanted, reduction="sum")
    floor = {"lowest cross-entropy": -(wanted * wanted.log()).sum()}
    return floor | {"lowest KL divergence": divergence}


page = book.test("smoothing", perfect_loss, values=(0.001, 0.01, 0.1, 0.2))

# %% tags=["hide-input"]
# verdicts on training
page = book.judge(
    adam=("half right", "09_training", "True: those are the base model's sizes and its "
    "optimizer. But: with torch's β₂ a gradient of 100 steps ago still counts 0.9, "
    "with the paper's 0.13. Warm-up, label smoothing and averaged checkpoints are "
    "missing, too."),
    dropped=("right", "06_encoder", "Dropout sets some weights to 0 and scales the "
    "others up. torch drops weights and inner feed-forward activations as well; the "
    "paper drops sub-layer outputs and embeddings."),
)

# %% tags=["hide-input"]
# more verdicts on training
page = book.judge(
    accumulation=("half right", "09_training", "True: the activations shrink to a "
    "32nd. But: weights, gradients and Adam's moments stay at 800 kB."),
    pad_loss=("right", "09_training", "The mean over all places counts padding, which "
    "is no prediction: leave it out."),
    smoothing=("right", "09_training", "The best prediction is the smoothed target "
    "itself, and its cross-entropy the target's entropy: 1.08 for ε = 0.1 and 2,000 "
    "subwords. The KL divergence, which The Annotated Transformer uses, subtracts that "
    "entropy and can reach 0."),
)

# %% tags=["hide-input"]
from course_lib import ModelConfig, beam_search

base, recipe = ModelConfig(vocab_size=37_000), TrainConfig()
sizes = (base.d_model, base.num_heads, base.num_layers, base.d_ff, base.dropout)
assert sizes == (512, 8, 6, 2048, 0.1) and base.d_k == 64 == 512 // 8
assert (recipe.betas, recipe.eps, recipe.warmup_steps) == ((0.9, 0.98), 1e-9, 4000)
assert recipe.label_smoothing == 0.1
search = beam_search.__kwdefaults__
assert (search["beam_size"], search["length_penalty"]) == (4, 0.6)
usual, paper = measured("adam")
assert abs(usual[3] - 0.9) < 0.01 and abs(paper[3] - 0.13) < 0.01
smallest, largest_sum = measured("dropped")
assert abs(smallest[0] - 1) < 1e-5 and smallest[1:].max() < 0.9
assert largest_sum[1:].min() > 1.05 and isinstance(layer.dropout, nn.Dropout)  # inner

# %% tags=["hide-input"]
parameters_kb, activations = measured("accumulation")
assert len(set(parameters_kb.tolist())) == 1 and round(parameters_kb[0].item()) == 800
parts = torch.tensor(book["accumulation"].values)
assert ((activations[0] / activations / parts - 1).abs() < 0.1).all()
slipped = [i for i in range(100) if i % 4 == 0]  # a slip: it steps after one batch,
assert slipped[0] == 0 and slipped[-1] < 99  # leaves some over; (i + 1) % 4 is right
all_places, real = measured("pad_loss")
assert (all_places.diff() > 0).all() and real.max() - real.min() < 1e-9
assert all_places[-1] > 3 * all_places[0]
floor, divergence = measured("smoothing")
assert floor.min() > 0 and abs(floor[2] - 1.08) < 0.01 and divergence.abs().max() < 1e-9

# %% tags=["hide-input"]
bench["Training"] = dict(
    adam="\"Adam\" alone leaves torch's β₂ = 0.999. How much does an old gradient "
    "still count in Adam's second moment, compared with the newest? If true, both rows "
    "agree; if not, they part.",
    dropped="If true, dropout moves the sums away from 1; if not, they stay.",
    accumulation="One layer trained with Adam reads 32 sentences in 1 to 32 "
    "micro-batches. If true, both rows fall; if not, one stays.",
    pad_loss="If true, the first row changes with the padding; if not, it stays.",
    smoothing="If true, the first row is above 0 throughout; if not, it is 0.",
)

# %% tags=["hide-input"]
# the bench: decoding and scores
page = book.say(
    "Decoding and scores",
    logits="A beam search may add up logits: they rank like log-probabilities.",
    finished="In a beam search, only the hypotheses of its last step can win.",
    average="The BLEU of a system is the mean of the BLEU of its sentences.",
    perfect="A translation that equals its reference can have a BLEU of 0.",
)


src_all, start = everything.src, everything.tgt_in[:, :1]
scored = {"done as said": lambda x: x}
scored["log-probabilities"] = lambda x: x.log_softmax(dim=-1)

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
        found[f"mean score of the 2nd token, {name}"] = best.mean()
        orders.append(total[:, :, None] > total[:, None])  # (batch, 4, 4)
    swapped = (orders[0] != orders[1]).double().sum(dim=(1, 2)).mean() / 12
    return found | {"% of the pairs in another order": 100 * swapped}


page = book.test("logits", two_tokens, values=(156, 244, 382, 597, 933))

# %% tags=["hide-input"]
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
    found = {"log-probability of the winner, done as said": said}
    return found | {"the same, if all compete": right}


page = book.test("finished", ended, values=(1, 2, 4, 8))

# %% tags=["hide-input"]
def averaged(training_step):
    free, _ = written[training_step]
    alone = [bleu([x], [y]).score for x, y in zip(free, references, strict=True)]
    whole_corpus = bleu(free, references).score
    return {"BLEU, done as said": sum(alone) / len(alone), "BLEU": whole_corpus}


page = book.test("average", averaged, values=list(written))


def of_itself(words):
    text = " ".join("Die Katze sieht den alten Hund".split()[:words])
    return {"BLEU of a sentence against itself": bleu([text], [text]).score}


page = book.test("perfect", of_itself, values=range(1, 7))

# %% tags=["hide-input"]
# verdicts on decoding and scores
page = book.judge(
    logits=("wrong", "11_decoding", "A softmax divides each step by a sum of its "
    "own, which logits leave out: even hypotheses of one length change their "
    "order, a few pairs in 100 here. A constant added to all logits changes no "
    "probability, but favors long hypotheses or short ones."),
    finished=("wrong", "11_decoding", "A hypothesis that has ended keeps competing. If "
    "only the last step counts, the winners of beams of 2 to 8 lose more than half a "
    "unit of log-probability."),
    average=("wrong", "10_translation", "BLEU counts the n-grams of all sentences "
    "together. The mean of the sentences' BLEU differs, here by up to several points."),
)

# %% tags=["hide-input"]
# more verdicts on decoding and scores
page = book.judge(
    perfect=("right", "10_translation", "A text of 1 to 3 words has no 4-gram to "
    "match. (sacreBLEU's `sentence_bleu` leaves out the orders that cannot occur, and "
    "gives 100.)"),
)

# %% tags=["hide-input"]
logits, log_probs, swapped = measured("logits")
assert logits.min() > 1 and log_probs.max() < 0
assert 1 < swapped.min() < swapped.max() < 15
late, compete = measured("finished")
assert abs(late[0] - compete[0]) < 1e-6 and (compete - late)[1:].min() > 0.5
free_bleu = measured("teacher")[1]
mean, whole_corpus = measured("average")
assert torch.equal(whole_corpus, free_bleu) and (mean - free_bleu).abs().max() > 2
itself = measured("perfect")[0]
assert itself[:3].max() == 0 and itself[3:].min() > 99.9

# %% tags=["hide-input"]
bench["Decoding and scores"] = dict(
    logits="Early checkpoints continue each of their four favorite first tokens by the "
    "best second one: six pairs of hypotheses. If true, both scores order all pairs "
    "alike (0 %); if not, some swap.",
    finished="The winner's mean log-probability over 20 sentences, after 597 training "
    "steps, without a length penalty. If true, both rows agree; if not, some winners "
    "ended earlier.",
    average="If true, both rows agree in each column; if not, they differ.",
    perfect="If true, some text has 0 against itself; if not, each has 100.",
)

# %% tags=["hide-input"]
# the bench: past the paper
page = book.say(
    "Past the paper",
    rotary="Rotary positions extrapolate: they know the offset alone, so they work at "
    "any length.",
    int8="Storing weights in int8 makes a linear layer smaller and faster.",
)

# %% tags=["hide-input"]
from course_lib.experiments import final_results, read_record

accuracy = final_results(read_record("records/positions.json"), "accuracy")


def at_length(words):
    place, shares = (16, 32, 64).index(words), {}
    for d_k, base in ((8, 10000), (16, 10000), (8, 100), (16, 100)):
        runs = accuracy[f"rotary, d_k {d_k}, base {base}"]
        right = 100 * sum(run[place] for run in runs) / 3
        shares[f"% right, heads of {d_k}, base {base:,}"] = right
    return {"% right, predicted": 100} | shares


page = book.test("rotary", at_length, values=(16, 32, 64))


from time import perf_counter

from course_lib.compression import quantized, weight_bytes

layer = nn.Linear(1024, 1024)
variants = {"float32": layer, "int8 weights": quantized(nn.Sequential(layer))[0]}
stored = {name: weight_bytes(each) / 1000 for name, each in variants.items()}

# %% tags=["hide-input"]
@torch.no_grad()
def microseconds(tokens):
    x, best = torch.randn(tokens, 1024), {}
    for name, variant in variants.items():
        for _ in range(30):
            started = perf_counter()
            variant(x)
            spent = 1e6 * (perf_counter() - started)
            best[name] = min(spent, best.get(name, spent))
    found = {f"µs a call, {name}": each for name, each in best.items()}
    return found | {f"kB, {name}": size for name, size in stored.items()}


page = book.test("int8", microseconds, values=(1, 8, 64))

# %% tags=["hide-input"]
# verdicts on what came later
page = book.judge(
    rotary=("wrong", "13_positions_past_the_paper", "At 64 words (base 10,000), heads "
    "16 wide are right in 43 of 100 cases, 8 wide in 97: an offset never seen is not "
    "safe. Width and base set the wavelengths."),
    int8=("half right", "14_cost_and_memory", "True: the weights take a quarter of "
    "the bytes. But: this kernel is slower for a single token. (Lesson 14 "
    "times one that multiplies integers.)"),
)

# %% tags=["hide-input"]
_, *heads = (row.round().tolist() for row in measured("rotary"))
assert [row[2] for row in heads] == [97, 43, 51, 71]
assert min(row[0] for row in heads) > 98
floats, integers, whole_kb, int8_kb = measured("int8")
assert integers[0] > 1.1 * floats[0] and 0.24 < int8_kb[0] / whole_kb[0] < 0.27
bench["Past the paper"] = dict(
    rotary="The record of lesson 13, mean of three seeds: readers trained on 16 words "
    "answer on longer stories. If true, all rows stay near 100; if not, some fall.",
    int8="One linear layer, 1,024 to 1,024 features, on a CPU; the fastest of 30 calls "
    "counts. If true, int8 takes fewer kB and µs; if not, as many or more of one.",
)

# %% tags=["hide-input"]
# the list of the bench: each claim with what to expect
assert all(
    "If true, " in notes[claim.name] and "; if not, " in notes[claim.name]
    for group, notes in bench.items()
    for claim in book.claims
    if claim.group == group
)
Page("\n\n".join(book.topic(group, **notes).text for group, notes in bench.items()))

# %% [markdown]
# ## All of them, to play
#
# In a running notebook you first see only the sentence.
# Judge it, and the verdict and a picture of its numbers appear; the slider is the claim's knob.
# We begin with claim 18.

# %%
lab = ErrataLab(book.claims, chosen=17)
lab

# %% tags=["hide-input"]
assert [claim["said"] for claim in lab.claims] == [claim.said for claim in book.claims]
assert all(len(claim.values) > 1 and claim.right for claim in book.claims)
for plain, claim in zip(lab.claims, book.claims, strict=True):
    assert [*map(tuple, plain["numbers"].values())] == [*claim.numbers.values()]

# %% [markdown]
# ## Your own claim
#
# "A model twice as wide has twice as many parameters."
#
# Fill in the list and the function, and uncomment the test.
#
# - *It sounds right because*:
# - *knob*:
# - *measured*, and *predicted*:

# %%
def parameters_of(d_model):
    d_ff = 4 * d_model
    model = nn.Transformer(d_model, 4, 2, 2, d_ff, batch_first=True)
    # return {"parameters, predicted": ..., "parameters": ...}
    raise NotImplementedError(f"count the parameters of {model}")


page = book.say("Yours", wide="A model twice as wide has twice as many parameters.")
# book.test("wide", parameters_of, values=(32, 64, 128))

# %% [markdown]
# Two more: "Twice the temperature makes the largest probability half as large." "A wider beam never returns a less probable output."
# (Run yours, then open our tables and verdicts on width and temperature. The beam is yours.)

# %% tags=["hide-input"]
# verdicts on your own claims: they open under the tables
halved = "Twice the temperature makes the largest probability half as large."
book.say("Yours", half=halved)
page = book.judge(
    wide=("wrong", "08_transformer", "Each side of a weight matrix is d_model or d_ff "
    "= 4 · d_model long, so twice the width means about four times the parameters. "
    "(Embeddings, which `nn.Transformer` lacks, only double.) With `d_ff` left at "
    "2,048, the feed-forward layers only double. A claim about size must say what else "
    "grows."),
    half=("wrong", "11_decoding", "A temperature of 2 halves the scores, not the "
    "probabilities: 0.644 falls to 0.455. The largest of four never falls below 1/4."),
)

# %% tags=["hide-input"]
# our experiment for your own claim
def both_ways(d_model):
    found = {}
    for name, d_ff in (("d_ff = 4 d_model", 4 * d_model), ("d_ff = 2,048", 2048)):
        whole = nn.Transformer(d_model, 4, 2, 2, d_ff, batch_first=True)
        found[f"parameters, {name}"] = sum(each.numel() for each in whole.parameters())
    return found


book.test("wide", both_ways, values=(32, 64, 128), closed=True)

# %% tags=["hide-input"]
def certainty(temperature):
    scores = torch.tensor([3.0, 2.0, 1.0, 0.0])
    said = scores.softmax(dim=0).max() / temperature
    found = (scores / temperature).softmax(dim=0).max()
    return {"largest probability, predicted": said, "largest probability": found}


book.test("half", certainty, values=(1, 2, 4, 8), closed=True)

# %% tags=["hide-input"]
grown, fixed_inside = measured("wide")
assert (abs(grown[1:] / grown[:-1] - 4) < 0.1).all()
for part in (lambda d: nn.Linear(d, 2048), lambda d: nn.Embedding(2048, d)):
    inner_sizes = [part(d).weight.numel() for d in (32, 64)]
    assert inner_sizes[1] == 2 * inner_sizes[0]
assert ((fixed_inside[1:] / fixed_inside[:-1] - 2.3).abs() < 0.3).all()
less, found_share = measured("half")
assert (found_share[1:] > 1.3 * less[1:]).all() and found_share.min() > 0.25
assert abs(found_share[0] - 0.644) < 1e-3 and abs(found_share[1] - 0.455) < 1e-3

# %% [markdown]
# ## The whole list
#
# Of all 61 claims, 17 are right, 15 half right and 29 wrong: whoever says *wrong* each time is right on fewer than half.

# %% tags=["hide-input", "nbval-check-output"]
closed = {claim.group for claim in book.claims if claim.number > 25}
book.summary(closed)

# %% tags=["hide-input"]
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
sources["none: our own claims"] = " ".join(judged - named)
rows = ["| a kind of text | claims |", "|---|---|"]
for text, names in sources.items():
    numbers = sorted(book[name].number for name in names.split())
    rows.append(f"| {text} | {', '.join(map(str, numbers))} |")
intro = "We worded all claims ourselves. Most repeat, or put right, what stands in such"
words = "<details><summary>Where do they come from?</summary>"
Page("\n".join([words, "", f"{intro} texts:", "", *rows, "", "</details>"]))

# %% tags=["hide-input"]
from pathlib import Path

of_course = [claim for claim in book.claims if claim.number <= 61]  # then yours
verdicts = Counter(claim.verdict for claim in of_course if claim.verdict)
assert verdicts == {"right": 17, "half right": 15, "wrong": 29}
seen_first = Counter(claim.verdict for claim in book.claims[:25])
assert seen_first == {"right": 5, "half right": 8, "wrong": 12}
order = "zeros fixed more_heads cheap invariant order longer axis pairs scale key_bias "
order += "undivided masked afterwards minus shape corresponding rate triangle whole "
order += "word_by_word cache row_t teacher explains"
assert [claim.name for claim in book.claims[:25]] == order.split()
assert len(of_course) == 59 + 2
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
# - **measure**: a function from a value of the knob to numbers, measured and sometimes predicted.

# %% [markdown]
# ## Summary
#
# A sentence about a model becomes an experiment when it predicts a number: choose a knob, with a value at which the claim must break if it is wrong; measure, compare.
#
# - *Six ways to test*: count, change the input, leave a part out, go where it must fail, name what a row reads and predicts, ask which question the number answers.
# - *Wrong sentences live on* where an easy test agrees, nothing crashes, or half is true.
#
# **Practice**: the [capstone](assignments/release/19_capstone/19_capstone.ipynb), a translator from an empty file; and then test the next sentence that you doubt, at a value where it must break.
# **Your progress**: the [twelve questions](assignments/release/99_concepts_after/99_concepts_after.ipynb) from before the course, asked again.
#
# **Next**: train on sentence pairs of your own (lesson [17](17_scaling_out.ipynb)), and read the paper once more from its title to its last table.
