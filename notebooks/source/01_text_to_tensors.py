# %% [markdown]
# # 01 · Text to tensors: from a sentence to a batch of vectors
#
# **Question.** A Transformer multiplies matrices. How does *The cat sleeps.* become a matrix? And after training, which words are nearest to *cat*?
#
# **Afterwards you can**
#
# 1. learn a subword vocabulary by hand, and say why words or characters alone would not do;
# 2. turn sentences of any length into one padded batch, and keep the padding small;
# 3. turn that batch into vectors, and say what the factor √d_model is for.
#
# **You need** Python and a little PyTorch. Lesson [00](00_welcome.ipynb) shows where all this leads.
# **Time**: {minutes} minutes to read, under 30 seconds to run.
# **In the paper**: section 5.1 (subwords, batches) and section 3.4 (embeddings) [@vaswani2017].

# %%
import math
import re
from collections import Counter
from itertools import pairwise

import torch

from course_lib.data import Pair, load_course
from course_lib.figures import new_figure, styled
from course_lib.widgets import MergeStepper, Predict, Predictions

# %% [markdown]
# ## Four pairs
#
# These four sentences and their translations stay with us through the whole course.

# %% tags=["nbval-check-output"]
pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
    Pair(
        "The old woman gives the child a red apple.",
        "Die alte Frau gibt dem Kind einen roten Apfel.",
    ),
]
for pair in pairs:
    print(len(pair.src), "characters", pair.src.split())

# %% [markdown]
# Four steps turn a sentence into vectors: split it into tokens, number them, pad several sentences to one length, and look up a vector for each number.
# In the figure d_model is the length of a vector; red is a positive number, blue a negative one.

# %% tags=["hide-input"]
from matplotlib import colormaps

from course_lib import Translator
from course_lib.data import pad
from course_lib.tokenizer import EOS_ID

course = Translator.from_pretrained("course")
numbered = [[*course.tokenizer.encode(pair.src), EOS_ID] for pair in pairs]
pieces = [*course.tokenizer.tokens(pairs[0].src), "</s>"]
rectangle = pad(numbered)  # (batch, length)
looked_up = course.model.src_embedding.table.weight[numbered[0], :8].tolist()


def put(axes, left, line, words, wide=1.0, tall=0.84, color="#b9d7ee"):
    (box,) = axes.barh(line, wide - 0.12, left=left, height=tall, color=color)
    axes.annotate(words, box.get_center(), ha="center", va="center", size=9)


# %% tags=["hide-input"]
def put_sentence(axes):
    """Its characters, tokens, ids and vectors, one below the other."""
    for place, character in enumerate(pairs[0].src):
        put(axes, place, 0, character)
    left, largest = 0, max(map(abs, sum(looked_up, [])))
    for piece, i, numbers in zip(pieces, numbered[0], looked_up, strict=True):
        wide = 2.3 if piece == "</s>" else len(piece) - (left == 0)
        put(axes, left, 1.8, piece, wide)
        put(axes, left, 3.6, i, wide)
        for line, number in enumerate(numbers):
            tone = colormaps["RdBu_r"](0.5 + number / largest / 2)
            put(axes, left + wide / 2 - 0.5, 5.2 + line * 0.4, "", 1, 0.38, tone)
        left += wide


# %% tags=["hide-input"]
def put_batch(axes):
    """The padded sentences, with words."""
    for row, ids in enumerate(rectangle.tolist()):
        for place, i in enumerate(ids):
            color = "#b9d7ee" if i else "#ececec"
            put(axes, 21.6 + 0.95 * place, 3.6 + 0.75 * row, "", 0.95, 0.66, color)
    axes.text(19.7, 3.6, "pad →", ha="center", va="center", size=9)
    words = {2.7: "with three more sentences: one batch, 4 × 11"}
    words |= {6.9: "gray: padding", 7.6: "each cell gets a vector: 4 × 11 × d_model"}
    for line, text in words.items():
        axes.text(21.6, line, text, va="center", size=9)


# %% tags=["hide-input"]
@styled
def four_steps(title):
    figure = new_figure(title, 10, 3.7)
    axes = figure.add_subplot(xlim=(-4, 32), ylim=(8.4, -0.6))
    axes.axis("off")
    put_sentence(axes)
    put_batch(axes)
    axes.text(17.8, 1.8, "▁ begins a word; </s> ends the sentence", va="center")
    names = {0: "characters", 1.8: "tokens", 3.6: "ids", 6.2: "vectors"}
    steps = {0.9: "↓ split", 2.7: "↓ number", 4.5: "↓ look up"}
    steps |= {7: "first 8 of their", 7.6: "d_model numbers"}
    for size, column in ((10, names), (8.5, steps)):
        for line, words in column.items():
            axes.text(-0.4, line, words, ha="right", va="center", size=size)
    return figure


# %% tags=["hide-input"]
figure = four_steps("“The cat sleeps.”: from 15 characters to 5 vectors")
figure

# %% tags=["hide-input"]
assert (len(pairs[0].src), len(looked_up), rectangle.shape) == (15, 5, (4, 11))
assert "".join(pieces[:4]).replace("▁", " ").strip() == pairs[0].src
assert [int((row != 0).sum()) for row in rectangle] == list(map(len, numbered))

# %% [markdown]
# The first step is to split.
# Splitting at the spaces leaves the full stop glued to the word before it.
# Then `dog.` and `dog` would be two different words.
# So we let punctuation stand alone.


# %% tags=["nbval-check-output"]
def words(text):
    """The words and the punctuation marks of a text."""
    return re.findall(r"\w+|[^\w\s]", text)


print(words("The cat sleeps."))

# %% tags=["hide-input"]
assert words("The dog sees the cat.")[-1] == "."
assert words("The cat sees the dog.")[-2] == "dog"

# %% [markdown]
# ## A number for each word?
#
# The first idea: list all the words of the training text, and number them.
# A word that is not on the list becomes `<unk>`, for *unknown*.
# We make the list from the course corpus: 4,000 sentence pairs.
# 1,000 others are kept apart: 500 for checks during training (validation) and 500 for the test.

# %% tags=["nbval-check-output"]
corpus = load_course(num_train=4_000, num_valid=500, num_test=500)
for pair in corpus.train[:3]:
    print(f"{pair.src}\n    {pair.tgt}")

# %% tags=["hide-input"]
assert not {pair.src for pair in corpus.train} & {pair.src for pair in corpus.test}
assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (4_000, 500, 500)


# %%
def word_list(texts):
    """All words and marks of the texts."""
    return {word for text in texts for word in words(text)}


def percent_unknown(listed, texts):
    """Share of the texts' words and marks that are not on the list."""
    found = [word in listed for text in texts for word in words(text)]
    return 100 * found.count(False) / len(found)


# %% tags=["nbval-check-output"]
listed = {
    "English": word_list(pair.src for pair in corpus.train),
    "German": word_list(pair.tgt for pair in corpus.train),
}
for language, entries in listed.items():
    print(f"{language}: {len(entries)} words and marks")

# %% tags=["hide-input"]
assert len(listed["German"]) > 1.5 * len(listed["English"])
forms = {word for word in listed["German"] if word.startswith("schmutzig")}
assert forms == {"schmutzig", "schmutzige", "schmutzigen", "schmutziges"}
assert {w for w in listed["English"] if w.startswith("dirt")} == {"dirty"}

# %% [markdown]
# One reason why the German list is longer: German words have more forms.
# For *dirty* it has *schmutzig, schmutzige, schmutzigen* and *schmutziges*.
#
# Now two everyday sentences, not from our corpus.

# %%
from_life = [
    "The kitten purrs on the windowsill.",
    "My grandma rewatched her favourite cartoons.",
]
of_life = Predict(
    "What share of their words and marks is not on the English list?",
    unit="%",
    off_by=10,
    section="A number for each word?",
)
of_life

# %% tags=["nbval-check-output"]
for text in from_life:
    print(*(word if word in listed["English"] else "<unk>" for word in words(text)))
of_life.reveal(round(percent_unknown(listed["English"], from_life)))

# %% tags=["hide-input"]
assert percent_unknown(listed["English"], from_life) > 40

# %% [markdown]
# This is all that a model would get to read. Nobody could translate it.
# We chose these two; others give other shares.
# But real language is open: there is always another name, compound or invention.
# This is the **open vocabulary problem**.
#
# Even our small corpus has it, though a grammar with a closed list of words wrote it:
# 0.4 % of the words and marks in the German test sentences are not on our list.
# Here are five, with known words that begin in the same way:

# %% tags=["nbval-check-output", "hide-input"]
german_test = [pair.tgt for pair in corpus.test]
missing = sorted(word_list(german_test) - listed["German"])
alike = {
    word: [each for each in sorted(listed["German"]) if each[:4] == word[:4]]
    for word in missing
}
for word in ("bleibst", "holten", "lachst", "schmutziger", "süßen"):
    print(f"{word:12}known: {', '.join(alike[word])}")

# %% tags=["hide-input"]
assert len(missing) == 20 and sum(map(bool, alike.values())) >= len(missing) / 2
assert round(percent_unknown(listed["German"], german_test), 1) == 0.4
assert {"bleiben", "bleibt"} < listed["German"] and "bleibst" in missing

# %% [markdown]
# A person who knows *bleiben* and *bleibt* can guess *bleibst*.
# A word list cannot: to the list, *bleibst* is as strange as *kitten*.
#
# ## A number for each character?
#
# With a few dozen characters almost every word can be spelled: only a letter that the training text never had is unknown.
# What does that cost, over both languages?

# %% tags=["nbval-check-output"]
train_texts = [text for pair in corpus.train for text in pair[:2]]
test_texts = [text for pair in corpus.test for text in pair[:2]]
ways = {"characters": list, "words": words}
cost = {}
for name, split in ways.items():
    vocabulary = {unit for text in train_texts for unit in split(text)}
    lengths = [len(split(text)) for text in test_texts]
    cost[name] = len(vocabulary), sum(lengths) / len(lengths)
    print(f"{name:11} {cost[name][0]:5} in the list, {cost[name][1]:.0f} in a sentence")
    new = {unit for text in test_texts for unit in split(text)} - vocabulary
    print(f"{'':11} unseen text: {len(new)} new {name}")

# %% tags=["hide-input"]
assert cost["characters"][1] > 4 * cost["words"][1]
assert (round(cost["words"][1]), round(cost["characters"][1])) == (10, 45)
assert not set("QX") & set("".join(train_texts))  # two letters that are unknown

# %% [markdown]
# The list is short and no character is unknown, but a sentence is more than four times as long.
# That is costly: attention (lesson 03) compares every token with every token. 10 tokens make 100 comparisons; 45 make 2,025.
# And a single *d* tells little about *dog*.
#
# Words give short sequences and a list that is never complete; characters give a short list and long sequences.
# **Subwords** are in between: frequent words stay whole, rare ones are spelled from pieces.
# Which pieces?
# We let the text decide.
#
# ## Byte-pair encoding by hand
#
# The paper (section 5.1) encodes sentences with **byte-pair encoding** [@sennrich2016, section 3.2].
# Start from characters, the first *symbols*.
# Find the two symbols that stand side by side most often, and **merge** them into a new symbol.
# Repeat.
# When we are done, the pieces in the vocabulary are *subwords*, and those of a sentence are its *tokens*.
#
# Our tiny text is three sentences.
# No token should span two words, so we cut the text into words first.
# A space becomes the character `▁` in front of the next word, so that the spaces can be put back.
# The first word gets a `▁` too: then a word has the same characters wherever it stands.


# %% tags=["nbval-check-output"]
def marked_words(text):
    """Words, with ▁ where a space was (and at the start), and punctuation alone."""
    return re.findall(r"▁?\w+|▁|[^\w▁]", "▁" + text.replace(" ", "▁"))


tiny = [pair.src for pair in pairs[:3]]
counts = Counter(word for text in tiny for word in marked_words(text))
parts = {word: list(word) for word in counts}  # each distinct word once
for word, count in counts.items():
    print(f"{count} × {' '.join(parts[word])}")

# %% tags=["hide-input"]
assert "".join(marked_words(tiny[0])) == "▁The▁cat▁sleeps."

# %%
of_neighbors = Predict(
    "Which two symbols stand side by side most often?",
    ["`▁ s`", "`h e`", "`a t`", "`▁ t`"],
    section="Byte-pair encoding by hand",
)
of_neighbors


# %% tags=["nbval-check-output"]
def count_pairs(parts, counts):
    """How often two symbols stand side by side in the text."""
    neighbors = Counter()
    for word, count in counts.items():
        for pair in pairwise(parts[word]):
            neighbors[pair] += count
    return neighbors


neighbors = count_pairs(parts, counts)
print(neighbors.most_common(5))
((top, _),) = neighbors.most_common(1)
of_neighbors.reveal(f"`{' '.join(top)}`")

# %% tags=["hide-input"]
assert neighbors["h", "e"] == counts["▁The"] + counts["▁the"]

# %% [markdown]
# `h e` wins: three times in *The* and twice in *the*.
# We merge it everywhere.


# %%
def merge(symbols, pair):
    """The symbols with each occurrence of the pair made one, from left to right."""
    merged = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


# %% tags=["nbval-check-output"]
before = sum(count * len(parts[word]) for word, count in counts.items())
parts = {word: merge(symbols, ("h", "e")) for word, symbols in parts.items()}
after = sum(count * len(parts[word]) for word, count in counts.items())
print(" ".join(symbol for word in marked_words(tiny[1]) for symbol in parts[word]))
print(f"the text: {before} symbols before, {after} after")

# %% tags=["hide-input"]
assert after == before - neighbors["h", "e"]

# %% [markdown]
# One new symbol, `he`, and the text is five symbols shorter.
#
# We repeat this until the vocabulary has the size that we want or nothing is left to merge.
# Symbols are numbered: four special ones (explained below), the characters (in our tiny text `.`, `T`, the small letters, `▁`), then each merged symbol as it is made.
# Of equally frequent pairs, `most_frequent` takes the one whose left symbol has the smallest number.
# If that is a tie too, the right symbol decides.
# That is the whole training:


# %%
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>"]


def most_frequent(neighbors, vocab):
    """The pair that occurs most often; of equals, that with the smallest numbers."""

    def rank(pair):
        left, right = pair
        return -neighbors[pair], vocab[left], vocab[right]

    return min(neighbors, key=rank)


# %%
def learn_bpe(texts, vocab_size, choose=most_frequent):
    """Texts to a numbered vocabulary of at most vocab_size, and merges in order."""
    counts = Counter(word for text in texts for word in marked_words(text))
    parts = {word: list(word) for word in counts}
    symbols, merges = SPECIALS + sorted(set("".join(counts))), []
    vocab = {symbol: number for number, symbol in enumerate(symbols)}
    while len(vocab) < vocab_size and (neighbors := count_pairs(parts, counts)):
        pair = choose(neighbors, vocab)
        merges.append(pair)
        symbol = "".join(pair)  # `a bc` and `ab c` spell the same one
        vocab.setdefault(symbol, len(vocab))
        parts = {word: merge(symbols, pair) for word, symbols in parts.items()}
    return vocab, merges


# %% [markdown]
# On the tiny text it can go on until every word is whole:

# %% tags=["nbval-check-output"]
vocab, merges = learn_bpe(tiny, vocab_size=1_000)
for number, pair in enumerate(merges, 1):
    print(f"{number:2}. {' '.join(pair):9}", end="" if number % 5 else "\n")

# %% tags=["hide-input"]
stages = {}
for step in range(len(merges) + 1):
    symbols = [list(word) for word in marked_words(tiny[0])]
    for pair in merges[:step]:
        symbols = [merge(each, pair) for each in symbols]
    stages[step] = [symbol for each in symbols for symbol in each]
assert merges[0] == ("h", "e") and stages[len(merges)] == marked_words(tiny[0])
assert "".join(list(vocab)[4:18]) == ".Tacdeghlopst▁"
assert stages[8][:2] == ["▁The", "▁cat"] and stages[len(merges) - 1][-2] != "▁sleeps"
for size in (21, 25, 30):  # a smaller vocabulary is the beginning of a larger one
    assert (
        learn_bpe(tiny, vocab_size=size)[1] == merges[: len(learn_bpe(tiny, size)[1])]
    )

# %% [markdown]
# Frequent words become whole first; *sleeps*, which occurs once, comes last.
# Here is what the merges do to *The cat sleeps.*


# %% tags=["hide-input"]
@styled
def boxes(rows, labels, *, title, xlabel, width):
    figure = new_figure(title, 9, 1.2 + 0.36 * len(rows))
    y_axis = dict(ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)))
    axes = figure.add_subplot(xlabel=xlabel, **y_axis, yticklabels=labels)
    columns = max(sum(map(width, tokens)) for tokens in rows)
    axes.set_xticks([number + 0.47 for number in range(columns)], range(columns))
    for line, tokens in enumerate(rows):
        left = 0
        for token in tokens:
            color, size = "#ececec" if token == "<pad>" else "#b9d7ee", width(token)
            (box,) = axes.barh(line, size - 0.06, left=left, color=color)
            axes.annotate(token, box.get_center(), ha="center", va="center", size=9)
            left += size
    return figure


# %% tags=["hide-input"]
changed = [0] + [step for step in stages if step and stages[step] != stages[step - 1]]
figure = boxes(
    [stages[step] for step in changed],
    [f"{step} merges" if step != 1 else "1 merge" for step in changed],
    title=f"{len(changed) - 1} of the {len(merges)} merges turn "
    f"{len(stages[0])} symbols into {len(stages[len(merges)])} tokens",
    xlabel="character of ▁The▁cat▁sleeps.",
    width=len,
)
lengths = [len(stages[step]) for step in changed]
figure

# %% tags=["hide-input"]
assert len({"".join(stage) for stage in stages.values()}) == 1
assert lengths == sorted(lengths, reverse=True) and lengths[-1] == 4
assert changed == [*range(9), *range(16, 20)] and (len(merges), lengths[0]) == (19, 16)

# %% [markdown]
# Every line spells the same text.
# Only the boundaries between the symbols disappear, one merge after another.
# Merges 9 to 15 change only other words, so they have no line.
#
# Now merge by hand, a step at a time.
# Which pair is next, and why?
# (Tied pairs stand in the order of the text; the rule above decides between them.)
#
# Then add `+ " sleeps"` to the line `text = …`, and run the cell again.
# How many extra copies does it take until `▁sleeps` is made before `▁cat`?
# The second folded cell below has the answer.

# %%
text = " ".join(tiny)
stepper = MergeStepper(text)
stepper

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for((text, 0), (stepper.text, stepper.merges)):
    assert stepper.learned.pairs == merges
    assert stepper.pieces() == [
        symbol for word in marked_words(text) for symbol in word
    ]

# %% tags=["hide-input"]
for more, expected in ((2, False), (3, True)):
    order = list(learn_bpe([" ".join(tiny) + more * " sleeps"], 1_000)[0])
    assert (order.index("▁sleeps") < order.index("▁cat")) == expected
# Three extra copies are enough, two are not.

# %% [markdown]
# ## Encode a new word
#
# To encode a new word, spell it and apply the merges in the order in which they were learned.

# %%
of_dogs = Predict(
    "The tiny text has *dog*, but not *dogs*. What becomes of *dogs*?",
    ["`<unk>`", "`▁dog s`", "`▁dog` and the *s* is lost", "single characters"],
    section="Encode a new word",
)
of_dogs


# %% tags=["nbval-check-output"]
def tokenize(text, vocab, merges):
    """Text to subwords; a character that is not in the vocabulary becomes <unk>."""
    tokens = []
    for word in marked_words(text):
        symbols = list(word)
        for pair in merges:
            symbols = merge(symbols, pair)
        tokens += [symbol if symbol in vocab else "<unk>" for symbol in symbols]
    return tokens


for text in ("The dogs sleep.", "The sheep sees the ghost."):
    print(tokenize(text, vocab, merges))
came = " ".join(tokenize("dogs", vocab, merges))
of_dogs.reveal(f"`{came}`")

# %% tags=["hide-input"]
assert tokenize("dogs", vocab, merges) == ["▁dog", "s"]
assert "<unk>" not in tokenize("The sheep sees the ghost.", vocab, merges)
trace, steps = list("▁dogs"), {}
for number, pair in enumerate(merges, 1):
    trace, older = merge(trace, pair), trace
    steps |= {number: " ".join(trace)} if trace != older else {}
assert steps == {9: "▁ do g s", 11: "▁do g s", 15: "▁dog s"}
assert tokenize("sheep", vocab, merges) == ["▁s", "he", "e", "p"] and "ee" in vocab
assert (merges[0], merges[4]) == (("h", "e"), ("e", "e"))

# %% [markdown]
# *dogs* was never in the text. Merges 9, 11 and 15 build it:
#
# ```
# ▁ d o g s   →   ▁ do g s   →   ▁do g s   →   ▁dog s
# ```
#
# Now look at *sheep*. The vocabulary has `ee`, but we get `▁s he e p`.
# `h e` is merge 1 and `e e` is merge 5: when the turn of merge 5 comes, the first *e* is already part of `he`.
# So a tokenizer must keep its merges in order.
# And a subword need not mean anything.
#
# ## With the library
#
# `course_lib.tokenizer.Tokenizer` builds on the `tokenizers` library, which does the same work in Rust.
# Does it learn the same merges as our loop?
# We compare them twice: on the tiny text until nothing is left to merge, and on all 4,000 sentence pairs, both languages together, up to 300 subwords.

# %% tags=["nbval-check-output"]
import json

from course_lib import Tokenizer

for texts, size in ((tiny, 1_000), (train_texts, 300)):
    own_vocab, own_merges = learn_bpe(texts, vocab_size=size)
    tokenizer = Tokenizer.train(texts, vocab_size=size)
    model = json.loads(tokenizer.to_json())["model"]
    same = [tuple(pair) for pair in model["merges"]] == own_merges
    print(len(own_merges), "merges, the last:", *own_merges[-3:], end=" ")
    print("· the library's are the same:", same and model["vocab"] == own_vocab)

# %% tags=["hide-input"]
import tokenizers

inside = tokenizers.Tokenizer.from_str(tokenizer.to_json())
assert same and model["vocab"] == own_vocab
all_words = {word for text in train_texts + test_texts for word in marked_words(text)}
own = {}
for word in all_words:
    own[word] = list(word)
    for pair in own_merges:
        own[word] = merge(own[word], pair)
for text in train_texts + test_texts:  # the same cut, of texts seen and unseen
    assert [p for p, _ in inside.pre_tokenizer.pre_tokenize_str(text)] == marked_words(
        text
    )
    ours = [symbol for word in marked_words(text) for symbol in own[word]]
    assert ours == tokenizer.tokens(text)

# %% [markdown]
# The same merges in the same order.
# A folded cell also cuts 9,000 sentences with both: no token differs.
#
# For that, both must break ties in the same way.
# In the tiny text, after merge 1, seven pairs occur three times each.
# What if, in the sentence pairs, a program takes the tied pair that comes first, and then reads our numbers?


# %% tags=["nbval-check-output", "hide-input"]
def first_in_text(neighbors, vocab):
    return max(neighbors, key=neighbors.get)  # a Counter remembers who came first


other_vocab, other_merges = learn_bpe(train_texts, 300, choose=first_in_text)
shared = set(own_vocab) & set(other_vocab)
moved = sum(own_vocab[token] != other_vocab[token] for token in shared)
print(f"{300 - len(shared)} of 300 subwords differ, {moved} others change their number")
other_token = dict(zip(other_vocab.values(), other_vocab, strict=True))
misread = {}
for text in (pairs[0].tgt, corpus.train[0].src):
    sent = [own_vocab[token] for token in tokenize(text, own_vocab, own_merges)]
    misread[text] = "".join(map(other_token.get, sent)).replace("▁", " ").strip()
    print(f"“{text}” is read as “{misread[text]}”")

# %% tags=["hide-input"]
parts = {word: merge(list(word), ("h", "e")) for word in counts}
neighbors = count_pairs(parts, counts)
tied = [pair for pair, count in neighbors.items() if count == 3]
assert max(neighbors.values()) == 3 and len(tied) == 7 and merges[1] in tied
assert merges[1] == ("T", "he")
assert other_merges != own_merges
assert 270 < len(shared) < 300 and moved > 30
assert all(text != came for text, came in misread.items()) and len(misread) == 2

# %% [markdown]
# A model trained with one numbering misreads the other.
# So a tokenizer is saved with its model, and never trained again.
#
# ## How many subwords?
#
# A larger vocabulary makes shorter sequences.
# We start with no merges (61 characters; the four special symbols count too), and end when nothing is left to merge.
# Each line has the mean number of tokens in a test sentence, and what becomes of *schmutziger*, not on our word list.

# %% tags=["nbval-check-output"]
characters = {c for text in train_texts for c in "".join(marked_words(text))}
sizes = [len(SPECIALS) + len(characters), 100, 200, 400, 800, 1_600, 5_000]
learned = {}
for size in sizes:
    each = Tokenizer.train(train_texts, vocab_size=size)
    encoded = each.encode_batch(test_texts)
    mean = learned[each.vocab_size] = sum(map(len, encoded)) / len(encoded)
    print(f"{each.vocab_size:5} subwords: {mean:4.1f} tokens ", end=" ")
    print(*each.tokens("schmutziger"))

# %% tags=["hide-input"]
largest, lengths = each, list(learned.values())
as_words = sum(len(marked_words(text)) for text in test_texts) / len(test_texts)
assert len(characters) == 61 and largest.tokens("schmutziger") == ["▁schmutzig", "er"]
seen = {word for text in train_texts for word in marked_words(text)}
spelled = {largest.token(i) for i in range(largest.vocab_size)}
assert "▁Kat" in spelled - seen and "▁Katze" in spelled & seen
assert lengths == sorted(lengths, reverse=True)
assert as_words < lengths[-1] < 1.05 * as_words
assert all(largest.tokens(text) == marked_words(text) for text in train_texts)
assert cost["words"][0] < largest.vocab_size < 3_000

# %% [markdown]
# At the top the tokens are characters, at the bottom mostly words.
# Asked for 5,000 subwords, the library stops before 3,000: every word of the training text is one token.
# (The vocabulary is larger than the word list, because pieces on the way to a word stay in it: `▁Kat` besides `▁Katze`.)
# *schmutzig* is in the training text: from 1,600 subwords on, only the ending of *schmutziger* is left to spell.
#
# Why not as many as possible?
# Each subword needs a vector, and a score at every output position.
# And the model sees a rare subword too seldom to learn a good vector for it.
# So the size is a compromise.
# The paper has about 37,000 subwords for both languages, lesson 00's translator 8,000.
# The course's second, small translator has 2,000.
# From here on we use its tokenizer.

# %% tags=["nbval-check-output"]
from course_lib import Translator

translator = Translator.from_pretrained("course")
tokenizer = translator.tokenizer
for pair in pairs:
    print(*tokenizer.tokens(pair.src), " ", *tokenizer.tokens(pair.tgt))
kitten = from_life[0]
print(*(word if word in listed["English"] else "<unk>" for word in words(kitten)))
print(*tokenizer.tokens(kitten))

# %% tags=["hide-input"]
assert tokenizer.vocab_size == 2_000 < largest.vocab_size
assert all(tokenizer.tokens(text) == marked_words(text) for text in sum(pairs, ()))
assert {"▁kit", "▁window"} < set(tokenizer.tokens(kitten))

# %% [markdown]
# In our four pairs every word is one token.
# Here is the kitten again: the word list lost three words, the subwords none.
# Whether the model has learned what `▁kit ten` means is another question.
#
# ## The vocabulary
#
# The second step is to number.
# The **vocabulary** is the numbered list of the special symbols and all subwords, and the number is the **id**.
# There are four special symbols.
#
# - `<pad>`, 0: fills up the shorter rows of a batch.
# - `<s>`, 1: begins what the decoder reads, so that it has something to start from.
# - `</s>`, 2: ends a sentence; the decoder writes it when it is done.
# - `<unk>`, 3: stands for a character that is not in the vocabulary.

# %% tags=["nbval-check-output"]
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

print([tokenizer.token(i) for i in range(10)])
for i in tokenizer.encode("The cat sleeps."):
    print(f"{tokenizer.token(i):8} {i}")

# %% tags=["hide-input"]
assert [tokenizer.token(i) for i in (PAD_ID, BOS_ID, EOS_ID, UNK_ID)] == SPECIALS
assert (PAD_ID, BOS_ID, EOS_ID, UNK_ID) == (0, 1, 2, 3)
assert tokenizer.encode("😀")[-1] == UNK_ID

# %% [markdown]
# ## And back again: is anything lost?
#
# The way back needs no merges: put the tokens of the ids side by side, read `▁` as a space, and drop the first space.

# %% tags=["nbval-check-output"]
by_hand = "".join(tokenizer.tokens("The cat sleeps.")).replace("▁", " ").strip()
texts = train_texts + test_texts + from_life
back = [tokenizer.decode(tokenizer.encode(text)) == text for text in texts]
print(f"{by_hand} {sum(back)} of {len(texts)} texts come back as they were")

# %% tags=["hide-input"]
assert all(back)
assert by_hand == "The cat sleeps."

# %% [markdown]
# All sentences come back, even with *kitten* and *windowsill*.
#
# What does not come back?
# A character that the training text never had: 😀 becomes `<unk>`.
# GPT-2 and its successors avoid this loss.
# They start from the 256 values of a byte, so nothing is unknown, and 😀 is four bytes.
#
# On purpose, space at both ends is removed, and a tab or a literal `▁` becomes a space.
# An *ä* written as *a* and a combining mark becomes one character, so both spellings give the same ids.

# %% tags=["hide-input"]
import unicodedata

two_dots = unicodedata.normalize("NFD", "Die Katze schläft.")
assert len(two_dots) == len("Die Katze schläft.") + 1 and len("😀".encode()) == 4
for text, returned in {
    "The cat sleeps 😀": "The cat sleeps <unk>",
    " The\tcat sleeps. ": "The cat sleeps.",
    "The▁cat": "The cat",
    "The  cat sleeps.": "The  cat sleeps.",
    two_dots: "Die Katze schläft.",
}.items():
    assert tokenizer.decode(tokenizer.encode(text)) == returned
assert tokenizer.encode(two_dots) == tokenizer.encode("Die Katze schläft.")

# %% [markdown]
# ## One vocabulary for two languages
#
# Section 5.1 learns one **shared vocabulary** from both languages together.
# Then one table of vectors can serve the source and the target (section 3.4).
# Which tokens do both share?

# %% tags=["nbval-check-output"]
english = Counter(i for pair in corpus.train for i in tokenizer.encode(pair.src))
german = Counter(i for pair in corpus.train for i in tokenizer.encode(pair.tgt))
rarer = english & german  # of each token, the smaller of its two counts
common = sorted(rarer, key=lambda i: (-rarer[i], i))
print(f"English {len(english)}, German {len(german)}, both {len(common)}")
print(*(tokenizer.token(i) for i in common[:16]))

# %% tags=["hide-input"]
assert {tokenizer.encode(word)[0] for word in ("Maria", "in", "will")} < set(common)
assert 6.5 < len(english) / len(common) < 7.5

# %% [markdown]
# One in seven of the distinct English tokens is shared: punctuation, names, short pieces, and a few words such as *in*.
# Some are traps: *will* marks the future in English and a wish in German (*er will*, he wants).
# With one shared table, the English *will* and the German *will* start from the same row.
# The encoder and the decoder must then make different things of it.
#
# ## From the training part only
#
# **A common mistake**: learning the vocabulary from training, validation and test sentences together.
# What does that change?
# We take the word list of 500 training pairs.
# Then we add the 1,000 validation and test pairs, or 1,000 more training pairs.
# What share of the words and marks in the test sentences is unknown, English and German together?

# %% tags=["nbval-check-output", "hide-input"]
few, held_out = corpus.train[:500], corpus.valid + corpus.test
longer = {
    "500 training pairs": few,
    "  + validation and test": few + held_out,
    "  + more training pairs": corpus.train[:1_500],
}
absent = {}
for name, chosen in longer.items():
    entries = word_list(text for pair in chosen for text in pair[:2])
    absent[name] = percent_unknown(entries, test_texts)
    print(f"{name:24} {absent[name]:.1f} % unknown")

# %% tags=["hide-input"]
honest, leaked, larger = absent.values()
added = word_list(text for pair in held_out for text in pair[:2])
assert len(added - word_list(text for pair in few for text in pair[:2])) > 300
assert len(held_out) == 1_000 and leaked == 0 < 2 * larger < honest

# %% [markdown]
# The 0.0 % is an illusion: 1,000 other pairs, added honestly, leave 1.0 % unknown.
# The model gains nothing either: no training sentence shows it what the added words mean.
# Subwords can spell unknown words, but the rule is the same: a test that shaped the vocabulary is no test on unseen text.
#
# ## From ids to a batch
#
# A model reads many sentences at once, a **batch**, as one tensor of ids with the shape (batch, length).
# We end each of our four sentences with `</s>`.
# Can we stack them?

# %% tags=["nbval-check-output"]
rows = [tokenizer.encode(pair.src) + [EOS_ID] for pair in pairs]
print([len(row) for row in rows])
try:
    torch.tensor(rows)
except ValueError as error:
    refused = str(error)
    print(refused)

# %% tags=["hide-input"]
assert "expected sequence of length" in refused

# %% [markdown]
# The rows of a tensor must all have the same length.
# So the third step is to pad: we fill up the shorter rows with `<pad>`, to the length of the longest row *of this batch*.
# We start with a rectangle full of padding, and write each sentence over the start of its row.
# `pad` from `course_lib` does the same.


# %% tags=["nbval-check-output"]
from course_lib.data import pad


def pad_by_hand(rows):
    """Lists of ids to one tensor (batch, length)."""
    ids = torch.full((len(rows), max(map(len, rows))), PAD_ID)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    return ids


src = pad(rows)
print(src)

# %% tags=["hide-input"]
assert torch.equal(pad_by_hand(rows), src)

# %% tags=["hide-input"]
real = src != PAD_ID  # (batch, length), True at real tokens
padding = 1 - real.float().mean().item()
shown = [[tokenizer.token(i) for i in row] for row in src.tolist()]
figure = boxes(
    shown,
    [f"sentence {number}" for number in range(len(src))],
    title=f"Four sentences, one batch: {100 * padding:.0f} % of it is padding",
    xlabel="position",
    width=lambda token: 1,
)
figure

# %% tags=["hide-input"]
assert sum(shown, []).count("<pad>") == int((~real).sum())
assert torch.equal(real.sum(dim=1), torch.tensor([len(row) for row in rows]))

# %% [markdown]
# `src != PAD_ID` finds the real tokens; as a mask (lesson [05](05_masks.ipynb)) it hides the rest.
#
# **A common mistake**: "every sentence is padded to the model's maximal length".
# **Padding** belongs to a batch, not to a sentence: the same sentence gets more or less of it, depending on the others.

# %% tags=["nbval-check-output"]
for others in ([0], [0, 1], [0, 3]):
    print(pad([rows[number] for number in others])[0].tolist())

# %% [markdown]
# The target is padded in the same way, on its own.
# It comes in two versions: `tgt_in`, which starts with `<s>`, is what the decoder reads, and `tgt_out`, which ends with `</s>`, is what it should write.
# (*reads* and *answers* in lesson 00; why: lesson [07](07_decoder.ipynb).)

# %% tags=["nbval-check-output"]
from course_lib.data import encode_pairs, make_batch

batch = make_batch(encode_pairs(tokenizer, pairs))
for name in ("src", "tgt_in", "tgt_out"):
    ids = getattr(batch, name)
    first = " ".join(tokenizer.token(i) for i in ids[0].tolist() if i != PAD_ID)
    print(f"{name:8} {tuple(ids.shape)}  {first}")
other = make_batch(encode_pairs(tokenizer, corpus.train[:4]))
print("four other pairs:", tuple(other.src.shape), tuple(other.tgt_in.shape))

# %% tags=["hide-input"]
assert torch.equal(batch.src, src)
assert other.src.shape[1] != other.tgt_in.shape[1]

# %% [markdown]
# ## Less padding: bucketing
#
# The model computes on padding as on everything else, and the results are thrown away.
# Here are eight training sentences, in two batches of four. Each `·` is padding.

# %% tags=["nbval-check-output"]
eight = [len(tokenizer.encode(pair.src)) + 1 for pair in corpus.train[32:40]]
for name, row_lengths in (("as they come", eight), ("sorted", sorted(eight))):
    print(name)
    for four in (row_lengths[:4], row_lengths[4:]):
        for length in four:
            print("  " + "■" * length + "·" * (max(four) - length))
        print()

# %% tags=["hide-input"]
dots = [
    4 * (max(each[:4]) + max(each[4:])) - sum(eight) for each in (eight, sorted(eight))
]
assert dots == [34, 14]

# %% [markdown]
# Sort the sentences by length first, and more than half of the dots are gone.
# This is **bucketing**: sentences of similar length go into one batch.
# Section 5.1: "Sentence pairs were batched together by approximate sequence length."
#
# How much does it save?
# Three plans for the 4,000 training pairs:
#
# 1. all in one batch, padded to the longest sentence of each language;
# 2. 80 random pairs in each batch;
# 3. sorted by length; each batch takes as many pairs as fit in 1,024 source and 1,024 target tokens, padding included. (The paper: about 25,000 of each.)

# %%
from course_lib.data import BucketedBatches

encoded = encode_pairs(tokenizer, corpus.train)
bucketed = BucketedBatches(encoded, batch_tokens=1_024).plan(epoch=0)
shuffled = torch.Generator().manual_seed(0)
order = torch.randperm(len(encoded), generator=shuffled).tolist()
at_random = [order[start : start + 80] for start in range(0, len(order), 80)]
plans = {"one batch": [order], "at random": at_random, "by length": bucketed}

# %% tags=["hide-input"]
for plan in plans.values():
    assert sorted(index for indices in plan for index in indices) == sorted(order)
assert abs(len(bucketed) - len(at_random)) <= 1

# %%
of_padding = Predict(
    "How much of the random batches is padding?",
    unit="%",
    off_by=8,
    section="Less padding: bucketing",
)
of_padding


# %% tags=["hide-input"]
def percent_padding(plan):
    """Share of src and tgt_out that is padding."""
    real = total = 0
    for indices in plan:
        batch = make_batch([encoded[index] for index in indices])
        for ids in (batch.src, batch.tgt_out):
            real += int((ids != PAD_ID).sum())
            total += ids.numel()
    return 100 * (1 - real / total)


# %% [markdown]
# The folded function `percent_padding` counts the padding of both languages.

# %%
shares = {name: percent_padding(plan) for name, plan in plans.items()}
for name, share in shares.items():
    print(f"{name:11} {share:2.0f} % padding")
of_padding.reveal(round(shares["at random"]))

# %% tags=["hide-input"]
assert shares["by length"] < 8 and 38 < shares["at random"] < shares["one batch"]
saved = 1 - (100 - shares["at random"]) / (100 - shares["by length"])
assert saved > 1 / 3

# %% [markdown]
# One pass over all pairs is an **epoch**.
# With bucketing an epoch has over a third fewer tokens than with random batches, padding included.
#
# There is a price: a batch of similar lengths is not a random sample.
# To soften this, the batches come in random order, and pairs of equal lengths are shuffled in each epoch.

# %% tags=["hide-input"]
shapes = [tuple(make_batch([encoded[i] for i in plan]).src.shape) for plan in bucketed]
lengths = [length for _, length in shapes]
later = BucketedBatches(encoded, batch_tokens=1_024).plan(epoch=1)


def sides(index):
    src, tgt = encoded[index]
    return len(tgt) + 1, len(src)


assert all(sentences * length <= 1_024 for sentences, length in shapes)
by_length = sorted(bucketed, key=lambda plan: sorted(map(sides, plan)))
for plan, after in pairwise(by_length):  # one more pair would be too many
    longest = max(max(sides(i)) for i in [*plan, min(after, key=sides)])
    assert longest * (len(plan) + 1) > 1_024
assert {frozenset(plan) for plan in later} != {frozenset(plan) for plan in bucketed}
assert lengths != sorted(lengths)

# %% [markdown]
# ## Embedding: from ids to vectors
#
# An id is a name, not a quantity: adding two of them would mean nothing.
# So the fourth step looks up a vector of **d_model** numbers for each token, its **embedding**: a row of a table that the model learns.
# We take d_model = 128, as in the small course translator (the paper has 512), and a random table.
# One token at a time:

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(0)
vocab_size, d_model = tokenizer.vocab_size, 128
table = torch.randn(vocab_size, d_model, generator=generator)
ids = torch.tensor(tokenizer.encode("The cat sleeps."))  # (length,)

embedded = torch.stack([table[i] for i in ids.tolist()])  # (length, d_model)
print(tuple(table.shape), tuple(ids.shape), tuple(embedded.shape))

# %% tags=["hide-input"]
assert torch.equal(embedded, table[ids])

# %% [markdown]
# Indexing with all ids at once, `table[ids]`, does the same as the loop.
#
# People also draw this step as a matrix product: each token is a **one-hot** row, with a 1 at its id.
# Is that the same?

# %% tags=["nbval-check-output"]
one_hot = torch.nn.functional.one_hot(ids, vocab_size).float()  # (length, vocab)
print(tuple(one_hot.shape), "@", tuple(table.shape), end=" ")
print("gives the same numbers:", torch.equal(one_hot @ table, table[ids]))

# %% tags=["hide-input"]
assert torch.equal(one_hot @ table, table[ids])
assert one_hot.sum(dim=1).tolist() == [1, 1, 1, 1]

# %% [markdown]
# The 1 picks a row, and the zeros erase all others.
# The look-up needs no multiplication.
# In a module it is `nn.Embedding`; here with a whole batch.

# %% tags=["nbval-check-output"]
embedding = torch.nn.Embedding.from_pretrained(table, freeze=False)
print(tuple(batch.src.shape), "->", tuple(embedding(batch.src).shape))

# %% tags=["hide-input"]
assert torch.equal(embedding(ids), one_hot @ table)
for sentence, row in zip(embedding(batch.src), batch.src, strict=True):
    assert torch.equal(sentence, table[row])

# %% [markdown]
# (batch, length) became (batch, length, d_model).
#
# ## What is still missing
#
# Each token now has a vector. Is that enough?
# We look up two sentences that mean different things, in the trained table of the small course translator.

# %%
trained = translator.model.src_embedding.table.weight.detach()  # (vocab, d_model)

# %% tags=["hide-input"]
from matplotlib.patches import Rectangle

from course_lib.figures import Panel, panels

shown, sets = [], []
for pair in pairs[1:3]:
    tokens, ids = tokenizer.tokens(pair.src), tokenizer.encode(pair.src)
    vectors = trained[ids]  # (length, d_model)
    shown.append(Panel(vectors[:, :16], tokens, range(16), pair.src, xlabel="feature"))
    sets.append({tuple(vector) for vector in vectors.tolist()})
title = "Two sentences, the same six vectors in another order (16 of 128 features)"
figure = panels(shown, title=title, words={"signed": "number in the row"})

# %% tags=["hide-input"]
for axes, panel in zip(figure.axes, shown, strict=False):
    for token, line in (("▁cat", "-"), ("▁dog", ":")):
        corner, look = (-0.5, panel.rows.index(token) - 0.5), dict(lw=2.4, ls=line)
        look |= dict(fill=False, edgecolor="#222222", clip_on=False, zorder=5)
        axes.add_patch(Rectangle(corner, 16, 1, **look))
figure

# %% tags=["hide-input"]
assert sets[0] == sets[1] and len(sets[0]) == 6 and trained.shape[1] == 128
assert not torch.equal(shown[0].values, shown[1].values)

# %% [markdown]
# Only the order of the rows differs: nothing *in* a vector says where it stands.
# So lesson [02](02_position.ipynb) makes one vector for each place, and the model adds it to the row.
#
# ## Times √d_model
#
# Before the position is added, section 3.4 multiplies each row by √d_model.
# Here are three tokens in the translator. Positions count from 0.

# %% tags=["hide-input"]
from course_lib.position import sinusoidal

added = []  # a sentence, and the named vectors of one of its tokens
for number, at in ((1, 1), (2, 4), (2, 1)):
    i = batch.src[number, at].item()
    scaled, vector = trained[i] * math.sqrt(128), sinusoidal(5, 128)[at]
    named = {f"√128 · {tokenizer.token(i)}": scaled, f"position {at}": vector}
    added.append((pairs[number].src, named | {"input": scaled + vector}))


# %% tags=["hide-input"]
@styled
def draw_sums(title, groups, lines=1):
    figure = new_figure(title, 10, 2.3 + 0.2 * lines)
    axes = figure.add_subplot(xlim=(-0.4, 29), ylim=(5.6, -2.1 - 0.4 * lines))
    axes.axis("off")
    for group, (heading, named) in enumerate(groups):
        axes.text(10 * group + 3.94, -1.6 - 0.4 * lines, heading, ha="center", size=10)
        for column, (name, numbers) in enumerate(named.items()):
            left = 10 * group + 3 * column
            axes.text(left + 0.94, -0.8, name, ha="center", size=9)
            axes.text(left + 2.44, 2.7, "+= "[column], ha="center", size=12)
            for line, x in enumerate(numbers[:6].tolist()):
                tone = colormaps["RdBu_r"](0.5 + max(-2.5, min(x, 2.5)) / 8)
                put(axes, left, line, f"{x:z.2f}".replace("-", "−"), 2, 0.9, tone)
    return figure


# %% tags=["hide-input"]
title = "One row for “cat”, one vector for position 1, three inputs (6 of 128 numbers)"
figure = draw_sums(title, added)
figure

# %% tags=["hide-input"]
with torch.no_grad():
    read = translator.model.src_embedding(batch.src)  # (batch, length, d_model)
drawn = [torch.stack(list(named.values())) for _, named in added]  # (3, d_model)
for vectors, entered in zip(drawn, read[[1, 2, 2], [1, 4, 1]], strict=True):
    torch.testing.assert_close(vectors[2], entered)
assert [list(named)[0][-3:] for _, named in added] == ["cat", "cat", "dog"]
assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[2][1])
assert all((drawn[0][2] - each[2])[:6].abs().min() > 0.1 for each in drawn[1:])

# %% [markdown]
# So *cat* enters as two vectors. What is the factor for?
# The paper does not say.
# A likely reason begins at the other end of the model: the same table serves English, German and the output's scores.
#
# The decoder's last step is a layer normalization (lesson 06). Before training, it gives a vector whose numbers have *size* (root mean square) 1.
# The dot product of this vector with a token's row is the token's score, its logit (lesson [08](08_transformer.ipynb)).
# A score is a sum of d_model = 128 products.
# If the numbers in the rows are independent, with mean 0 and size 1, the products have variance 1 on average, and their sum has 128.
# So the scores have size √d_model ≈ 11.3.
#
# What does the softmax make of such scores, and what if the table has our models' starting size, 1/√d_model ≈ 0.088?
# Random vectors (`last`) stand in for the decoder's.

# %%
small = d_model**-0.5
last = torch.randn(200, d_model, generator=generator)  # of size 1, for the output
for start in (1.0, small):
    scores = last @ (start * table).T  # (200, vocab)
    surest = 100 * scores.softmax(dim=1).amax(dim=1).mean()
    print(f"table of size {start:.2g}: scores of size {scores.std():.1f},", end=" ")
    print(f"{surest:.0f} % for the likeliest of {vocab_size:,} tokens")

# %% tags=["hide-input"]
for start, expected in ((small, 1), (1, 11.3)):
    scores = last @ (start * table).T
    assert math.isclose(scores.square().mean().sqrt(), expected, rel_tol=0.03)
    surest = scores.softmax(dim=1).amax(dim=1).mean()
    assert surest < 0.05 if start == small else surest > 0.6
tied = translator.model
assert tied.src_embedding.table.weight is tied.generator.weight
assert tied.tgt_embedding.table.weight is tied.generator.weight

# %% [markdown]
# A model that has learned nothing should be sure of nothing.
# With a table of size 1 it is far too sure of some token; with ours the scores have size 1: none stands out.
# So the output wants small rows.
#
# And the input? With small rows and no factor, is the token recognized in its sum with a position?
# The paper's positions are sines and cosines, so their size is √½ ≈ 0.71; each row gets one of the first 100, at random.

# %%
of_factor = Predict(
    "We add a position to each of the 2,000 small rows, and compare each sum with all "
    "the rows. For how many sums is the right row the most similar one?",
    unit="%",
    off_by=10,
    section="Times √d_model",
)
of_factor

# %%
from course_lib.position import sinusoidal

position = sinusoidal(100, d_model)  # (length, d_model)
places = torch.randint(100, (vocab_size,), generator=generator)
every = torch.arange(vocab_size)


def recognized(sums, rows, right):
    """How many % of the sums have the largest dot product with the right row."""
    nearest = (sums @ rows.T).argmax(dim=1)
    return 100 * (nearest == right).float().mean().item()


# %% [markdown]
# `start`: the table's size, ours or 1; `factor`: 1 or √128 ≈ 11.3.
# `right token %`: how many sums have their largest dot product with the row they were made from.
# `right place %`: the same for the position.

# %%
results = {}
print("line    start   factor  right token %  right place %  place ± 1 %")
for start in (small, 1.0):
    for factor in (1.0, math.sqrt(d_model)):
        rows = start * table  # (vocab, d_model)
        sums = factor * rows + position[places]
        token, place = recognized(sums, rows, every), recognized(sums, position, places)
        off_by = (sums @ position.T).argmax(dim=1) - places
        near = 100 * (off_by.abs() <= 1).float().mean()
        results[start, factor] = token, place
        print(f"{len(results):4}{start:9.3g}{factor:9.3g}", end="")
        print(f"{token:15.0f}{place:15.0f}{near:13.0f}")
of_factor.reveal(round(results[small, 1.0][0]))

# %% tags=["hide-input"]
assert math.isclose(position.square().mean().sqrt(), 0.71, abs_tol=0.01)
assert position.abs().max() <= 1
assert round((position.square().mean().sqrt() / small).item()) == 8
without, good, large, loud = results.values()
assert without[0] < 20 and without[1] > 99 and loud[0] > 99 and loud[1] < 20
assert min(good[0], large[0]) > 95 and all(58 < each[1] < 75 for each in (good, large))
guessed = ((table + position[places]) @ position.T).argmax(dim=1)
assert 100 * ((guessed - places).abs() <= 1).float().mean() > 95

# %% [markdown]
# Here is *cat* (its random row) at position 1, in lines 1, 2 and 4:

# %% tags=["hide-input"]
by_line, (cat,) = [], tokenizer.encode("cat")
for line, (start, factor) in enumerate(results, 1):
    scaled, vector = factor * start * table[cat], position[1]
    final = scaled + vector
    best, at = ((each @ final).argmax().item() for each in (rows, position))
    heading = f"line {line}: start {start:.2g}, factor {factor:.3g}\n"
    heading += f"most similar row: {tokenizer.token(best)}\n"
    heading += f"most similar position: {at}"
    name = "▁cat" if factor == 1 else "√128 · ▁cat"
    by_line.append((heading, {name: scaled, "position 1": vector, "sum": final}))
title = "“cat”, position 1: line 1 hides the token, line 4 the place (6 of 128 numbers)"
figure = draw_sums(title, [by_line[0], by_line[1], by_line[3]], lines=3)
figure

# %% tags=["hide-input"]
ends = [heading.splitlines()[1:] for heading, _ in by_line]
wanted = ["most similar row: ▁cat", "most similar position: 1"]
assert ends[1] == ends[2] == wanted
assert ends[0][0] != wanted[0] and ends[0][1] == wanted[1]
assert ends[3][0] == wanted[0] and ends[3][1] != wanted[1]
torch.testing.assert_close(position[1], drawn[0][1])  # as in the figure before
off = [(named["sum"] - position[1]).abs() for _, named in by_line]
torch.testing.assert_close(off[1], off[2])
assert off[0].max() < 0.3 and off[1][:6].max() > 0.8 and off[3][:6].max() > 16

# %% [markdown]
# In line 1 the position's size is eight times the row's, and 97 % of the sums are more similar to another row.
# The token is not lost (subtract the position, and the row is back), but hard to recognize.
# In line 2 the factor makes the row's size √128 × 0.088 ≈ 1: all tokens and two of three places are recognized; most others are one place off.
#
# A table that starts at size 1, as `nn.Embedding` does, needs no factor (line 3, like line 2); with it (line 4) the place is drowned.
# So the input wants larger rows than the output.
# One table serves both: it starts small, and the factor √d_model makes its rows large at the input.
#
# ## All of it in one module
#
# The finished module, `Embedding` in `course_lib.transformer`, looks up, multiplies by √d_model, and adds a position.
# (In training, the paper's dropout then zeroes numbers at random.)

# %% tags=["nbval-check-output"]
finished = translator.model.src_embedding
length = batch.src.shape[1]
with torch.no_grad():
    theirs = finished(batch.src)  # (batch, length, d_model)
ours = trained[batch.src] * math.sqrt(d_model) + sinusoidal(length, d_model)
print(type(finished).__name__)
print(len(pairs), "sentences ->", tuple(batch.src.shape), "->", tuple(theirs.shape))
print(f"ours and the library's: {(ours - theirs).abs().max():.0e} apart")

# %% tags=["hide-input"]
assert type(finished).__name__ == "Embedding" and not finished.training
torch.testing.assert_close(ours, theirs)

# %% [markdown]
# ## Who learns?
#
# The table is a parameter.
# We look up the batch of our four sentences in a fresh table, and call `backward` on a toy loss, the sum of squares.

# %%
of_rows = Predict(
    "Through the look-up, how many of the 2,000 rows get a gradient other than zero?",
    [15, 16, 2_000],
    section="Who learns?",
)
of_rows

# %% tags=["nbval-check-output"]
embedding = torch.nn.Embedding(vocab_size, d_model)
embedding(batch.src).square().sum().backward()
touched = embedding.weight.grad.any(dim=1).nonzero().flatten().tolist()
print(*map(tokenizer.token, touched))
of_rows.reveal(len(touched))

# %% tags=["hide-input"]
assert touched == sorted(set(batch.src.flatten().tolist())) and len(touched) == 16
assert PAD_ID in touched and translator.model.src_embedding.table.weight[PAD_ID].any()

# %% [markdown]
# One row for each different token of the batch, and `<pad>` is one of them.
# So through the look-up a token learns only from batches that contain it.
# (At the output every row takes part: lesson 08.)
#
# **A common mistake**: "zero padding", as if padding were nothing and needed no mask.
# The *id* of `<pad>` is 0; its row is a row like any other.
# Only a mask hides the padding (lesson [05](05_masks.ipynb)), and the loss must leave it out (lesson 09).
#
# ## What the rows learn
#
# A fresh table is noise.
# In the trained table, which rows are nearest to the row of a word, in direction?

# %%
of_cat = Predict(
    "Which three rows are the nearest to the row of *cat*?",
    ["dog, bird, mouse", "mouse, jacket, bag", "sleeps, sees, eats", "the, a, my"],
    section="What the rows learn",
)
of_cat

# %%
directions = torch.nn.functional.normalize(trained, dim=1)
nearest = {}
for word in ("the", "cat", "dog", "house"):
    (i,) = tokenizer.encode(word)
    similar = (directions @ directions[i]).topk(4).indices.tolist()[1:]
    nearest[word] = [tokenizer.token(other).strip("▁") for other in similar]
    print(f"{word}: {', '.join(nearest[word])}")
of_cat.reveal(", ".join(nearest["cat"]))

# %% tags=["hide-input"]
from course_lib.grammar import NOUN

assert nearest["the"] == ["this", "my", "a"]
for word, gender in (("cat", "f"), ("dog", "m"), ("house", "n")):
    assert {NOUN[each].gender for each in (word, *nearest[word])} == {gender}
assert nearest["cat"] == ["mouse", "jacket", "bag"] and "ball" in nearest["dog"]

# %% [markdown]
# *the* is near other words that open a noun phrase.
# The row nearest to *cat* is *mouse*, another animal. Then come *jacket* and *bag*, not *dog*.
# What do a cat, a mouse, a jacket and a bag have in common?
#
# In English, little more than that they are nouns.
# In German they are all feminine: *die Katze, die Maus, die Jacke, die Tasche*.
# *dog* is among masculine nouns (*der Hund, der Ball*), and *house* among neuter ones (*das Haus, das Sofa*).
# An accident?
# For every noun that is one token, we look up the nearest other noun.

# %% tags=["nbval-check-output", "hide-input"]
by_gender = sorted(NOUN, key=lambda noun: "mfn".index(NOUN[noun].gender))
ids_of = {noun: tokenizer.encode(noun) for noun in by_gender}
single = {noun: row[0] for noun, row in ids_of.items() if len(row) == 1}
rows = directions[list(single.values())]  # (nouns, d_model)
likeness = (rows @ rows.T).fill_diagonal_(-1)  # (nouns, nouns)
closest = likeness.argmax(dim=1).tolist()
genders = [NOUN[noun].gender for noun in single]
same = sum(genders[i] == genders[j] for i, j in enumerate(closest))
counted = Counter(genders).values()
chance = sum(n * (n - 1) for n in counted) / len(genders) / (len(genders) - 1)
print(f"same gender: {same} of {len(single)} nouns, by chance {chance:.0%}")

# %% tags=["hide-input"]
assert same == len(single) == 88 and 0.3 < chance < 0.35

# %% tags=["hide-input"]
from itertools import accumulate


@styled
def draw_nouns(title):
    figure = new_figure(title, 6.6, 4.9)
    axes, look = figure.add_subplot(), dict(cmap="RdBu_r", vmin=-0.7, vmax=0.7)
    image = axes.imshow(likeness.clone().fill_diagonal_(math.nan), **look)
    figure.colorbar(image, label="similarity (1: the same direction)")
    ends = [0, *accumulate(counted)]
    middles = [sum(each) / 2 - 0.5 for each in pairwise(ends)]
    for axis, line in ((axes.xaxis, axes.axvline), (axes.yaxis, axes.axhline)):
        axis.set_ticks(middles, ["masculine", "feminine", "neuter"])
        for end in ends[1:-1]:
            line(end - 0.5, color="#222222", lw=1)
    axes.set_xlabel("88 nouns by German gender; a noun with itself is left white")
    return figure


# %% tags=["hide-input"]
figure = draw_nouns("Rows of nouns of one German gender have similar directions")
figure

# %% tags=["hide-input"]
assert list(counted) == [30, 30, 28] and genders == sorted(genders, key="mfn".index)
between = likeness.clone().fill_diagonal_(math.nan)
for start, end in pairwise([0, *accumulate(counted)]):
    block, beside = between[start:end, start:end], between[start:end].clone()
    beside[:, start:end] = math.nan
    assert block.nanmean() > 0.25 > 0.2 > beside.nanmean()
    human = ["human" in NOUN[noun].classes for noun in list(single)[start:end]]
    people = sum(human)
    assert human == [True] * people + [False] * (end - start - people) and people > 2
    corner, rest = block[:people, :people], block[people:, people:]
    assert corner.nanmean() > 1.1 * rest.nanmean()
    assert corner.nanmean() > 1.1 * block[:people, people:].mean()

# %% [markdown]
# Each gender forms a block; in two, people (listed first) form a darker corner.
# Nobody told the model what gender is.
# A likely reason: to write *der*, *die* or *das*, the model must know the noun's gender.
# The id of *cat* is only a name; its row holds something that the translation needs.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **open vocabulary problem**: however long a list of words is, real text contains words that are not on it.
# - **subwords**: the characters and every piece that a merge has made, up to whole frequent words.
# - **byte-pair encoding**: learning subwords by merging the most frequent pair of neighbors, again and again.
# - **merge**: to make one symbol of two neighbors, everywhere in the text.
# - **vocabulary**: the numbered list of the special symbols and all subwords.
# - **id**: the number of a token.
# - **batch**: several sentences that a model reads at once, as one tensor.
# - **shared vocabulary**: one vocabulary for both languages.
# - **padding**: `<pad>` after shorter sentences, so that a batch is a rectangle.
# - **bucketing**: putting sentences of similar length into one batch.
# - **epoch**: one pass over all training pairs.
# - **d_model**: how many numbers stand for a token.
# - **embedding**: the row of numbers that stands for a token; also the module that looks it up.
# - **one-hot**: a row that is 0 everywhere except for a 1 at the id.

# %% [markdown]
# ## Summary
#
# 1. Split: a list of words is never complete, and characters make long sequences. Byte-pair encoding merges the most frequent pair of neighbors again and again, which keeps frequent words whole and spells the rest.
# 2. Number: the vocabulary is learned from the training part only. Text comes back from ids, except for characters never seen and a few kinds of spaces and accents.
# 3. Pad: a batch has the shape (batch, length). Padding belongs to the batch and needs a mask, and bucketing by length keeps it small.
# 4. Look up: a row for each id gives (batch, length, d_model). The table starts small for the output, and the factor √d_model makes its rows large for the input.
#
# Training fills the rows: for each one-token noun, the nearest other noun has the same German gender, which nobody told the model.
#
# **Practice**: [assignment 01](assignments/release/01_text_to_tensors/01_text_to_tensors.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [02](02_position.ipynb) shows how the position vectors tell a model the order of the words.
