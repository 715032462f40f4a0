# %% [markdown]
# # 18 · Errata lab: what popular explanations get wrong
#
# **Question.** "Attention is permutation-invariant." "Zero padding needs no mask." "The key bias does nothing." You have met such sentences in posts, slides and code. Which of them would survive an experiment?
#
# **Afterwards you can**
#
# 1. judge what you read about the Transformer: right, half right or wrong;
# 2. turn a sentence into an experiment of a few lines, with one knob to turn;
# 3. say what is right instead, and which lesson teaches it.
#
# **You need** the lessons up to [12](12_reading_attention.ipynb); you have seen nearly everything that is tested here.
# **Time**: 50 minutes to read, under 60 seconds to run.
# **In the paper**: all of it; most claims misreport section 3, some section 5.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"


def draw(*shape, seed=0):
    """Random numbers of variance 1 in float64: the same seed, the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# %% [markdown]
# ## One claim, by hand
#
# **"Zero padding needs no mask: a key of zeros gets no attention."**
#
# Judge first: is that right, half right, or wrong?
# Then we let the sentence make a prediction, and count.
# A query meets four real keys, and behind them some keys of zeros.
# If the claim is right, the zeros get a weight of 0, however many there are.


# %%
def weights(query, key):
    """Attention weights: softmax(query keyᵀ / √d_k)."""
    return (query @ key.mT / math.sqrt(key.shape[-1])).softmax(dim=-1)


query, words = draw(1, 8, seed=1), draw(4, 8)  # (queries, d_k), (keys, d_k)
for padding in (0, 2, 4, 16):
    keys = torch.cat([words, torch.zeros(padding, 8)])
    share = weights(query, keys)[0, 4:].sum()
    print(f"{padding:2} zeros get {share:.0%} of the attention")

# %% [markdown]
# Wrong, and the more padding, the worse.
# A score of 0 is not a small score: the softmax takes e⁰ = 1.
#
# That was a **claim**, a **knob** (how much padding) and a **measure**: a function that maps a position of the knob to numbers, what the sentence says beside what comes out.
# Every experiment of this lesson has that form.
# `LabBook` keeps them, in three steps: `say` the claim, `test` it, `judge` it.

# %%
from course_lib.analysis import LabBook

book = LabBook()
book.say("Words and padding", zeros="Zero padding needs no mask: zeros get no attention.")


# %% tags=["nbval-check-output"]
def on_padding(padding):
    keys = torch.cat([words, torch.zeros(padding, 8)])
    found = weights(query, keys)[0, 4:].sum()
    return {"weight on padding, as said": 0, "weight on padding": found}


book.test("zeros", on_padding, values=(0, 1, 2, 4, 8, 16))

# %%
book.judge(
    zeros=("wrong", "05_masks", "A score of 0 still gets e⁰ = 1. Only a mask hides.")
)

# %% tags=["hide-input"]
def measured(name):
    """The numbers of a claim, one tensor for each row of its table."""
    rows = book[name].numbers.values()
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


_, share = measured("zeros")
assert share[0] == 0 and (share.diff() > 0).all() and share[-1] > 0.5
by_hand = [weights(query, torch.cat([words, torch.zeros(n, 8)]))[0, 4:].sum() for n in (2, 4, 16)]
torch.testing.assert_close(share[[2, 3, 5]], torch.stack(by_hand))

# %% [markdown]
# The rest of the lesson goes in rounds.
# Each round lists a few claims, as they are often written.
# **Judge them before you scroll**: note R, H or W for each; some of them are right.
# Then come the experiments, with tables to read, and then the verdicts.
# Change a measure or its values wherever you doubt us.
#
# (Would you rather play than read? Run all cells and go to the widget at the end.)
#
# ## Round 1: words and padding

# %% tags=["hide-input"]
book.say(
    "Words and padding",
    words="Each output dimension of the model is a word of the target language.",
    splits="Build the vocabulary from training, validation and test text together, "
    "so that no test word is unknown.",
    masked="Where padding is masked, any amount of it leaves the output as it is.",
    fixed="The encoder turns a sentence into a vector of fixed length.",
)

# %% [markdown]
# Claim 2: what would a dimension a word leave out?
# We compare a list of whole words with a subword vocabulary of the same size.

# %%
from collections import Counter

from course_lib import Tokenizer
from course_lib.data import load_course

corpus = load_course(num_train=2000, num_valid=1, num_test=500 if device == "cuda" else 100)
train, test = ([pair.tgt for pair in part] for part in (corpus.train, corpus.test))
counts = Counter(" ".join(train).split())  # words, with their punctuation
asked = " ".join(test).split()


def unknown(entries):
    listed = {word for word, _ in counts.most_common(entries)}
    subwords = Tokenizer.train(train, vocab_size=entries)
    ids = sum(subwords.encode_batch(test), [])
    return {
        "% of the test unknown, words": 100 * sum(w not in listed for w in asked) / len(asked),
        "% of the test unknown, subwords": 100 * ids.count(subwords.unk_id) / len(ids),
    }


book.test("words", unknown, values=(250, 500, 1000, 2000))
