# %% [markdown]
# # 01 · Text to tensors: from a sentence to a batch of vectors
#
# **Question.** A Transformer multiplies matrices. How does *The cat sleeps.* become one?
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

import torch

from course_lib.data import Pair, load_course
from course_lib.figures import curves, new_figure, styled
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
# A model computes with numbers, and this lesson gets from characters to numbers in four steps.
# We cut a sentence into tokens, give each token a number, pad the sentences into one batch, and look up a vector for each number.
# With a trained translator it looks like this:

# %% tags=["hide-input"]
from course_lib import Translator
from course_lib.data import pad
from course_lib.figures import Block, flow_figure
from course_lib.tokenizer import EOS_ID

course = Translator.from_pretrained("course")
rows = [[*course.tokenizer.encode(pair.src), EOS_ID] for pair in pairs]
first_tokens, rectangle = course.tokenizer.tokens(pairs[0].src), pad(rows)
looked_up = course.model.src_embedding(rectangle)  # (batch, length, d_model)
print("characters:", pairs[0].src)
print("tokens:    ", *first_tokens)
print("ids:       ", *rows[0], f"(the last, {EOS_ID}, ends the sentence)")

# %% tags=["hide-input"]
blocks = [
    Block("characters", (1, len(pairs[0].src)), "one sentence", (0, 0)),
    Block("tokens", (1, len(first_tokens)), "one sentence", (1.5, 0)),
    Block("ids", (1, len(rows[0])), "one sentence", (1.5, 1.3)),
    Block("batch", tuple(rectangle.shape), "batch × length", (3, 1.3)),
    Block("vectors", tuple(looked_up.shape), "batch × length × d_model", (4.5, 1.3)),
]
arrows = [("characters", "tokens", "split"), ("tokens", "ids", "number, + </s>")]
arrows += [("ids", "batch", "pad"), ("batch", "vectors", "embed")]
flow_figure(
    blocks, arrows, title="From one sentence to ids, from four sentences to vectors"
)

# %% tags=["hide-input"]
assert "".join(first_tokens).replace("▁", " ").strip() == pairs[0].src
assert len(rows[0]) == len(first_tokens) + 1 < rectangle.shape[1] == max(map(len, rows))

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
# A word that is not on the list is unknown.
# Is the list enough for sentences that we have not seen?
# We measure it on the course corpus: 4,000 sentence pairs to make the list from, and 500 others to test it.

# %% tags=["nbval-check-output"]
corpus = load_course(num_train=4_000, num_valid=500, num_test=500)
for pair in corpus.train[:3]:
    print(f"{pair.src}\n    {pair.tgt}")

# %% tags=["hide-input"]
assert not {pair.src for pair in corpus.train} & {pair.src for pair in corpus.test}

# %% [markdown]
# A shorter list keeps the most frequent words.


# %%
def ranked_words(texts):
    """All words and marks of the texts, the most frequent first."""
    counts = Counter(word for text in texts for word in words(text))
    return [word for word, _ in counts.most_common()]


def percent_unknown(vocabulary, texts):
    """Share of the texts' words and marks that the vocabulary does not have."""
    found = [word in vocabulary for text in texts for word in words(text)]
    return 100 * found.count(False) / len(found)


# %% tags=["nbval-check-output"]
ranked, unseen, unknown = {}, {}, {}
for side, language in enumerate(("English", "German")):
    ranked[language] = ranked_words(pair[side] for pair in corpus.train)
    unseen[language] = [pair[side] for pair in corpus.test]
    sizes = [*range(50, len(ranked[language]), 50), len(ranked[language])]
    lists = [set(ranked[language][:size]) for size in sizes]
    shares = [percent_unknown(each, unseen[language]) for each in lists]
    unknown[language] = dict(zip(sizes, shares, strict=True))
    print(f"{language}: all {sizes[-1]} words and marks, {shares[-1]:.2f} % unknown")

# %% tags=["hide-input"]
curves(
    {name: (list(each), list(each.values())) for name, each in unknown.items()},
    xlabel="words and marks in the list",
    ylabel="unknown in unseen text (%)",
    title="Longer lists leave fewer words unknown; German needs longer ones",
)

# %% tags=["hide-input"]
assert len(ranked["German"]) > 1.5 * len(ranked["English"])
for shares in map(list, (each.values() for each in unknown.values())):
    assert shares == sorted(shares, reverse=True) and 0 < shares[-1] < 1
most = len(ranked["English"])
for size, share in unknown["English"].items():
    assert size == most or share < unknown["German"][size]
assert unknown["English"][most] < min(unknown["German"].values())

# %% [markdown]
# German words have more forms: *der, die, das, den, dem, des* are all *the*.
# And even with every word of 4,000 sentences on the list, some words are unknown.
# Here are five, with known words that begin in the same way:

# %% tags=["nbval-check-output", "hide-input"]
known = set(ranked["German"])
missing = sorted({word for text in unseen["German"] for word in words(text)} - known)
alike = {
    word: [each for each in sorted(known) if each[:4] == word[:4]] for word in missing
}
for word in ("bleibst", "holten", "lachst", "schmutziger", "süßen"):
    print(f"{word:12}known: {', '.join(alike[word])}")

# %% tags=["hide-input"]
assert len(missing) == 20 and sum(map(bool, alike.values())) >= len(missing) / 2
assert {"bleiben", "bleibt"} < known and "bleibst" in missing
assert {"der", "die", "das", "den", "dem", "des"} < known

# %% [markdown]
# A person who knows *bleiben* and *bleibt* can guess *bleibst*.
# A word list cannot: to it, *bleibst* is as foreign as any other word that is not on it.
#
# And this is the easy case, because the course corpus is written by a grammar with a small, closed lexicon.
# Here are two sentences that no grammar of ours wrote.

# %%
from_life = [
    "The kitten purrs on the windowsill.",
    "My grandma rewatched her favourite cartoons.",
]
of_life = Predict(
    "How many of their words and marks are not on the English list?",
    unit="%",
    off_by=10,
    section="A number for each word?",
)
of_life

# %% tags=["nbval-check-output"]
new = {word for text in from_life for word in words(text)} - set(ranked["English"])
print(*sorted(new))
of_life.reveal(round(percent_unknown(ranked["English"], from_life)))

# %% tags=["hide-input"]
assert percent_unknown(ranked["English"], from_life) > 40
assert percent_unknown(ranked["English"], unseen["English"]) < 1

# %% [markdown]
# We chose these two for their everyday words; other sentences give other shares.
# But real language is open: there is always another name, compound or invention.
# This is the **open vocabulary problem**.
#
# ## A number for each character?
#
# With a few dozen characters almost every word can be spelled: only a letter that the training text never had is unknown.
# What does that cost?

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
assert not set("QX") & set("".join(train_texts))  # two letters that are unknown

# %% [markdown]
# More than four times as many numbers for the same sentence, and each of them says little.
#
# Words give short sequences, but a long list that is never complete.
# Characters give a short list, complete for our test, but long sequences.
# **Subwords** are in between: frequent words stay whole, rare ones are spelled from pieces.
# Which pieces?
# We let the text decide.
#
# ## Byte-pair encoding by hand
#
# Section 5.1 encodes sentences with **byte-pair encoding** [@sennrich2016, section 3.2].
# Start from characters.
# Find the two symbols that stand side by side most often, and **merge** them into a new symbol.
# Repeat.
# A *symbol* is whatever is being merged.
# A symbol of the finished vocabulary is a subword, and a subword in a sentence is a token.
#
# Our tiny text is three sentences.
# No token should span two words, so we cut the text into words first.
# A space becomes the character `▁` in front of the next word, so that the spaces can be put back.
# The first word gets one too, so that a word is the same everywhere in a sentence.


# %% tags=["nbval-check-output"]
def marked_words(text):
    """Words, with ▁ where a space was (and at the start), and punctuation alone."""
    return re.findall(r"▁?\w+|▁|[^\w▁]", "▁" + text.replace(" ", "▁"))


tiny = [pair.src for pair in pairs[:3]]
counts = Counter(word for text in tiny for word in marked_words(text))
parts = {word: list(word) for word in counts}
for word, count in counts.items():
    print(f"{count} × {' '.join(parts[word])}")

# %% tags=["hide-input"]
assert "".join(marked_words(tiny[0])) == "▁The▁cat▁sleeps."

# %% [markdown]
# Each distinct word is kept once, with its count; that is enough for counting neighbors.

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
        for pair in zip(parts[word], parts[word][1:], strict=False):
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
# Now again and again, until the vocabulary has the size that we want or nothing is left to merge.
# Symbols are numbered: four special ones that we come to below, the characters, then the merged symbols as they are made.
# Where several pairs of neighbors share the highest count, we take the pair with the smallest numbers.
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
        vocab.setdefault("".join(pair), len(vocab))
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
assert len(changed) - 1 == 12 and (len(merges), lengths[0]) == (19, 16)

# %% [markdown]
# Every line spells the same text.
# Only the boundaries between the symbols disappear, one merge after another. (The other merges change only other words.)
#
# Now merge by hand, a step at a time.
# Which pair is next, and why?
# Then add *sleeps* at the end of `text` and run the cell again: how many more make *sleeps* whole before *cat*?

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

# %% [markdown]
# Three more do it; two do not.
#
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

# %% [markdown]
# Words that the tiny text never had, made of subwords that it had.
# Not all subwords make sense: nobody told the algorithm what a syllable is.
#
# ## With the library
#
# `course_lib.tokenizer.Tokenizer` builds on the `tokenizers` library, which does the same work in Rust.
# Does it learn the same merges as our loop?
# We compare them twice: on the tiny text until nothing is left to merge, and on all 4,000 pairs, English and German together, up to 300 subwords.

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
# The same merges in the same order, and the same vocabulary.
# A folded cell also cuts all 9,000 sentences of the training and the test part with both: no token differs.
#
# The same merges need the same rule for ties.
# After the first merge of the tiny text, seven pairs of neighbors occur three times, and the recipe does not say which one comes next.
# Ours takes the pair with the smallest numbers, and so does the library.
# Suppose a program has another rule: of tied pairs, it takes the one that comes first in the text.


# %% tags=["nbval-check-output", "hide-input"]
def first_in_text(neighbors, vocab):
    return max(neighbors, key=neighbors.get)  # a Counter remembers who came first


other_vocab, other_merges = learn_bpe(train_texts, 300, choose=first_in_text)
shared = set(own_vocab) & set(other_vocab)
moved = sum(own_vocab[token] != other_vocab[token] for token in shared)
print(f"{300 - len(shared)} of 300 subwords differ, {moved} others are renumbered")

# %% tags=["hide-input"]
parts = {word: merge(list(word), ("h", "e")) for word in counts}
neighbors = count_pairs(parts, counts)
tied = [pair for pair, count in neighbors.items() if count == 3]
assert max(neighbors.values()) == 3 and len(tied) == 7 and merges[1] in tied
assert merges[1] == ("T", "he")
assert other_merges != own_merges
assert 270 < len(shared) < 300 and moved > 30

# %% [markdown]
# A model trained with one numbering would misread the other.
# So a tokenizer is saved with its model, and never trained again.
#
# ## How many subwords?
#
# A larger vocabulary makes shorter sequences.
# With no merges at all, the tokens are characters.
# What are they when nothing is left to merge?

# %%
characters = {symbol for word in all_words for symbol in word}
sizes = [len(SPECIALS) + len(characters), 100, 200, 400, 800, 1_600, 5_000]
learned = {}
for size in sizes:
    each = Tokenizer.train(train_texts, vocab_size=size)
    encoded = each.encode_batch(test_texts)
    learned[each.vocab_size] = sum(map(len, encoded)) / len(encoded)
    print(f"{each.vocab_size:5} subwords:", f"{learned[each.vocab_size]:.1f} tokens")
largest, lengths = each, list(learned.values())
as_words = sum(len(marked_words(text)) for text in test_texts) / len(test_texts)

# %% tags=["hide-input"]
figure = curves(
    {"subwords": (list(learned), lengths)},
    xlabel="vocabulary size (logarithmic)",
    ylabel="tokens in an unseen sentence",
    title="The more subwords, the fewer tokens, down to whole words",
    log_x=True,
    marks={"words": (None, as_words)},
)
figure.axes[0].set_xticks(list(learned), list(learned))
figure.axes[0].set_xticks([], minor=True)
figure

# %% tags=["hide-input"]
assert lengths == sorted(lengths, reverse=True)
assert as_words < lengths[-1] < 1.05 * as_words
assert all(largest.tokens(text) == marked_words(text) for text in train_texts)
assert cost["words"][0] < largest.vocab_size < 3_000

# %% [markdown]
# They are words.
# Asked for 5,000 subwords, the library stops before 3,000: nothing is left to merge, and every word of the training text is one token.
# (That is more subwords than the text has words, because the pieces on the way keep their numbers.)
# An unseen word is still spelled from shorter subwords.
#
# Why not as many as possible? Each subword needs a vector of its own, which must be learned (below), and a score at every output position; a rare one is seen in few sentences.
# So the size is a compromise. The paper has about 37,000 subwords for English and German together.
# The second translator that comes with the course, called `course`, has 2,000.
# It has learned from the sentences of our grammar only, and is smaller than `everyday`, the one of lesson [00](00_welcome.ipynb).
# From here on we use its tokenizer.

# %% tags=["nbval-check-output"]
from course_lib import Translator

translator = Translator.from_pretrained("course")
tokenizer = translator.tokenizer
mice = Pair("The cat sees the mice.", "Die Katze sieht die Mäuse.")
for pair in [*pairs, mice]:
    for text in pair:
        print(*tokenizer.tokens(text))

# %% tags=["hide-input"]
assert tokenizer.vocab_size == 2_000 < largest.vocab_size
assert all(tokenizer.tokens(text) == marked_words(text) for text in sum(pairs, ()))
for text, word, pieces in zip(mice, ("▁mice", "▁Mäuse"), (3, 2), strict=True):
    cut, whole = tokenizer.tokens(text), marked_words(text)
    assert set(whole) - set(cut) == {word}
    assert len(cut) == len(whole) + pieces - 1

# %% [markdown]
# In these five pairs, all words but *mice* and *Mäuse* are one token.
# *mice* is three tokens and *Mäuse* two, so the model gets an input for them; whether it has learned what `▁m ic e` means is another question.
#
# ## And back again: is anything lost?
#
# Decoding needs no merges: put the tokens side by side, and read `▁` as a space.

# %% tags=["nbval-check-output"]
print(*tokenizer.tokens(from_life[0]))
by_hand = "".join(tokenizer.tokens("The cat sleeps.")).replace("▁", " ").strip()
texts = train_texts + test_texts + from_life
back = [tokenizer.decode(tokenizer.encode(text)) == text for text in texts]
print(f"{by_hand} {sum(back)} of {len(texts)} texts come back as they were")

# %% tags=["hide-input"]
assert all(back)
assert by_hand == "The cat sleeps."

# %% [markdown]
# All sentences come back, even with *kitten* and *windowsill*, which are in none of our word lists.
# Now four strange texts: one with an emoji, one with spaces around it and a tab in it, one with two spaces between words, and one with an *ä* that is written as *a* followed by two combining dots.

# %%
of_strange = Predict(
    "How many of these four come back exactly as they were?",
    [0, 1, 2, 3, 4],
    section="And back again: is anything lost?",
)
of_strange

# %% tags=["nbval-check-output"]
import unicodedata

strange = {
    "a character never seen": "The cat sleeps 😀",
    "spaces around, a tab": " The\tcat sleeps. ",
    "two spaces": "The  cat sleeps.",
    "ä as a and two dots": unicodedata.normalize("NFD", "Die Katze schläft."),
}
returned = {}
for name, text in strange.items():
    back = tokenizer.decode(tokenizer.encode(text))
    returned[name] = back == text
    print(f"{name:23} {'same' if returned[name] else 'changed':8} {back!r}")
two_dots = strange["ä as a and two dots"]
of_strange.reveal(sum(returned.values()))

# %% tags=["hide-input"]
assert list(returned.values()) == [False, False, True, False]
assert tokenizer.decode(tokenizer.encode("The▁cat")) == "The cat"
assert tokenizer.encode(two_dots) == tokenizer.encode("Die Katze schläft.")

# %% [markdown]
# A character that the training text never had becomes `<unk>`: that is a loss.
# GPT-2 and its successors avoid it: they start from the 256 values of a byte instead of characters, so that nothing is unknown, and 😀 is four bytes. The merges are learned as above.
# The other two changes are intended.
# Space at both ends is stripped, and a tab becomes a space. (So does a `▁` in the text.)
# And Unicode can write *ä* in two ways that look alike.
# The tokenizer first composes the two characters into one (NFC), so that both spellings give the same ids.
#
# ## The vocabulary
#
# The subwords are numbered: that list is the **vocabulary**, and the number is the **id**.
# The first four ids are special.
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
# ## One vocabulary for two languages
#
# Section 5.1 learns one **shared vocabulary** from both languages together.
# Then one table of vectors can serve the source and the target (section 3.4).
# Which tokens do the two share?

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
# With one shared table both start from the same row; the layers after it must make different things of it, in the encoder and in the decoder.
#
# ## From the training part only
#
# **A common mistake**: building the vocabulary from training, validation and test sentences together.
# What does that change for the 500 test pairs?
# We take only 500 training pairs, as somebody with little data would, then add the 1,000 held-out pairs, and compare with 1,500 training pairs.

# %% tags=["nbval-check-output"]
few, held_out = corpus.train[:500], corpus.valid + corpus.test
parts_of = {"500 pairs": few, "500 and 1,000 held out": few + held_out}
parts_of["1,500 pairs"] = corpus.train[:1_500]
absent = {}
for name, chosen in parts_of.items():
    listed = set(ranked_words(text for pair in chosen for text in pair[:2]))
    absent[name] = percent_unknown(listed, test_texts)
    print(f"{name:22} {absent[name]:.1f} % of words and marks unknown")

# %% tags=["hide-input"]
assert list(absent.values())[1] == 0 < 2 * absent["1,500 pairs"] < absent["500 pairs"]
known = {word for pair in few for text in pair[:2] for word in words(text)}
leaked = {word for pair in held_out for text in pair[:2] for word in words(text)}
assert len(leaked - known) > 300  # words of the held-out sentences only

# %% [markdown]
# With the leak, the test contains no unknown word, so it hides a problem that real use will have.
# An honest list from as much text, 1,500 training pairs, still has unknown words.
# And the ids of the words that only the held-out sentences have are useless: no training sentence shows the model what they mean.
#
# Subwords spell unknown words, but the rule is the same: a test that shaped the vocabulary is no test on unseen text.
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
# So we fill up the shorter rows with `<pad>`, to the length of the longest row *of this batch*.
# By hand: a rectangle of padding, with the sentences written over it.
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
# `src != PAD_ID` tells real tokens from padding; lesson [05](05_masks.ipynb) turns it into a mask.
#
# **A common mistake**: "every sentence is padded to the model's maximal length".
# **Padding** belongs to a batch, not to a sentence: the same sentence gets more or less of it, depending on the others.

# %% tags=["nbval-check-output"]
for others in ([0], [0, 1], [0, 3]):
    print(pad([rows[number] for number in others])[0].tolist())

# %% [markdown]
# The target is padded in the same way.
# It comes in two versions: `tgt_in`, which starts with `<s>`, is what the decoder reads, and `tgt_out`, which ends with `</s>`, is what it should write.
# Lesson [07](07_decoder.ipynb) explains why; here we note their shapes.

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
# **A common mistake**: "source and target must have the same length".
# Each side is padded on its own, and the two lengths are equal only by chance.
#
# ## Less padding: bucketing
#
# The model computes on padding as on everything else, and the results are thrown away.
# **Bucketing** puts sentences of similar length into one batch.
# Section 5.1: "Sentence pairs were batched together by approximate sequence length."
# How much does that save?
# Three plans for the 4,000 sentence pairs of the training part:
#
# 1. one batch: every sentence as long as the longest of its language;
# 2. 80 pairs at random in each batch, padded to the longest of the batch;
# 3. `BucketedBatches`: sort the pairs by the length of the German sentence, then of the English one, and begin a new batch where one more pair would make more than 1,024 tokens in either language, padding included. (The paper's batches have about 25,000 in each language.)

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


# %%
def percent_padding(plan):
    """Share of src and tgt_out that is padding."""
    real = total = 0
    for indices in plan:
        batch = make_batch([encoded[index] for index in indices])
        for ids in (batch.src, batch.tgt_out):
            real += int((ids != PAD_ID).sum())
            total += ids.numel()
    return 100 * (1 - real / total)


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
# With bucketing, an **epoch**, which is one pass over all pairs, has more than a third fewer tokens to compute than with random batches.
# The limit in tokens, not in sentences, keeps the size of a batch even: all but the smallest, which was left over, have 850 to 1,024 tokens on the English side.
# Here are some of them. (A batch may end early: one more pair may be longer and lengthen all rows, or the German side is full.)

# %% tags=["nbval-check-output", "hide-input"]
shapes = [tuple(make_batch([encoded[i] for i in plan]).src.shape) for plan in bucketed]
full = sorted(shapes, key=lambda shape: shape[1])
full.remove(min(shapes))  # the smallest batch is what was left over
for sentences, length in full[::12]:
    print(f"{sentences:3} sentences × {length:2} = {sentences * length:4} tokens")
later = BucketedBatches(encoded, batch_tokens=1_024).plan(epoch=1)
lengths = [length for _, length in shapes]

# %% tags=["hide-input"]
from itertools import pairwise


def sides(index):
    src, tgt = encoded[index]
    return len(tgt) + 1, len(src)


assert all(sentences * length <= 1_024 for sentences, length in shapes)
assert all(sentences * length > 850 for sentences, length in full)

by_length = sorted(bucketed, key=lambda plan: sorted(map(sides, plan)))
for plan, after in pairwise(by_length):  # one more pair would be too many
    longest = max(max(sides(i)) for i in [*plan, min(after, key=sides)])
    assert longest * (len(plan) + 1) > 1_024
assert {frozenset(plan) for plan in later} != {frozenset(plan) for plan in bucketed}
assert lengths != sorted(lengths)

# %% [markdown]
# The price: the sentences of a batch have similar lengths, so a batch is not a random sample.
# So the batches come in random order, and in each epoch the pairs with the same two lengths are shuffled before the batches are cut.
#
# ## Embedding: from ids to vectors
#
# An id is a name, not a quantity: adding two of them would mean nothing.
# So each token gets a vector of **d_model** numbers, its **embedding**: a row of a table that the model learns.
# We take d_model = 512, as in the paper's base model, and a table of random numbers.
# One token at a time:

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(0)
vocab_size, d_model = tokenizer.vocab_size, 512
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
# Exactly the same numbers: a 1 picks a row, and the zeros erase all others.
# The look-up gets there without multiplying anything.
# In a module it is `nn.Embedding`, which also takes whole batches.

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
# ## Times √d_model
#
# Section 3.4 multiplies the rows by √d_model, and does not say why.
# The paper, like our models, uses the same table twice, and the two uses want rows of different *size* (the root mean square of their numbers):
#
# - At the *output*, the decoder's last vector, whose numbers have size 1, is compared with each row by a dot product. A softmax turns these scores into probabilities (weight tying, lesson [08](08_transformer.ipynb)). With large rows, an untrained model is already sure of some random token.
# - At the *input*, lesson [02](02_position.ipynb) adds to each row a second vector of 512 numbers, one such vector for each place in the sentence. Its numbers lie between −1 and 1, and their size is 0.71. For now, take them as given. Are small rows still seen beside them?
#
# We try two starts of the table, with standard deviation 1/√512 ≈ 0.044 and with 1, each without and with the factor.

# %%
of_factor = Predict(
    "The small start without the factor: we add a position to each of the 2,000 rows. "
    "For how many of the sums is their own row still the most similar one?",
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
    """How many % of the sums are most like their own row, by the dot product."""
    nearest = (sums @ rows.T).argmax(dim=1)
    return 100 * (nearest == right).float().mean().item()


# %% [markdown]
# `token %` and `place %` tell for how many sums the own row and the own position are the most similar ones.
# `surest` is the probability that the likeliest token gets at the output, where random vectors stand in for the decoder's last ones.

# %%
last = torch.randn(200, d_model, generator=generator)  # of size 1
results = {}
print("    start   factor  token %  place % surest %")
for start in (d_model**-0.5, 1.0):
    for factor in (1.0, math.sqrt(d_model)):
        rows = start * table  # (vocab, d_model)
        sums = factor * rows + position[places]
        token, place = recognized(sums, rows, every), recognized(sums, position, places)
        surest = 100 * (last @ rows.T).softmax(dim=1).amax(dim=1).mean().item()
        print(f"{start:9.3g}{factor:9.3g}{token:9.0f}{place:9.0f}{surest:9.0f}")
        results[start, factor] = token, place, surest
of_factor.reveal(round(results[d_model**-0.5, 1.0][0]))

# %% tags=["hide-input"]
assert math.isclose(position.square().mean().sqrt(), 0.71, abs_tol=0.01)
assert position.abs().max() <= 1
without, good, large, loud = results.values()
assert without[0] < 20 and without[1] > 99 and loud[0] > 99 and loud[1] < 20
assert min(*good[:2], *large[:2]) > 85
assert max(without[2], good[2]) < 5 and min(large[2], loud[2]) > 80
for start, expected in ((d_model**-0.5, 1), (1, 22.6)):
    scores = last @ (start * table).T
    assert math.isclose(scores.square().mean().sqrt(), expected, rel_tol=0.03)

# %% [markdown]
# In the first row the sum is almost all position.
# (Whoever knows the position can subtract it. A layer that has learned nothing yet does not know it.)
# Of these four, only the small start with the factor does well on both sides: token and position are recognized, and the untrained model is sure of nothing.
# That is a likely reason for the factor.
# (`nn.Embedding` starts at 1 by default; with the factor, that is the last row.)
#
# Why the root? A score is a sum of 512 products.
# If the values are independent, with mean 0 and size 1, each product has variance 1 and the sum has variance 512: its typical size is √512 ≈ 22.6.
# Starting the table at 1/√512 undoes this, and the factor undoes the start at the input.
# We meet the root again in lesson 03.
#
# ## What the rows learn
#
# A fresh table is noise.
# And a trained one?
# We take the table of the small course translator, and ask which rows point in the same direction.

# %%
from course_lib.grammar import NOUN

trained = translator.model.src_embedding.table.weight.detach()  # (vocab, d_model)
directions = torch.nn.functional.normalize(trained, dim=1)
for word in ("the", "cat", "dog", "house"):
    (i,) = tokenizer.encode(word)
    similar = (directions @ directions[i]).topk(4).indices.tolist()[1:]
    nearest = [tokenizer.token(other).strip("▁") for other in similar]
    genders = [NOUN[each].gender for each in (word, *nearest) if each in NOUN]
    print(f"{word}: {', '.join(nearest)}", *genders)

# %% tags=["hide-input"]
assert nearest and len(genders) == 4 and len(set(genders)) == 1  # of house

# %% [markdown]
# *the* is near other words that open a noun phrase.
# But what do a cat, a jacket and a bag have in common?
# Their German nouns are feminine (f): *die Katze, die Jacke, die Tasche*.
# The dog is among masculine ones (m: *der Hund, der Ball*), the house among neuter ones (n: *das Haus, das Sofa*).
# Are these three exceptions? We look up the nearest noun of every noun that is one token.

# %% tags=["nbval-check-output", "hide-input"]
entries = {noun: tokenizer.encode(noun) for noun in NOUN}
single = {noun: row[0] for noun, row in entries.items() if len(row) == 1}
rows = directions[list(single.values())]  # (nouns, d_model)
closest = (rows @ rows.T).fill_diagonal_(-1).argmax(dim=1).tolist()
gender = [NOUN[noun].gender for noun in single]
same = sum(gender[i] == gender[j] for i, j in enumerate(closest))
counted = Counter(gender).values()
chance = sum(n * (n - 1) for n in counted) / len(gender) / (len(gender) - 1)
print(f"same gender: {same} of {len(single)} nouns, by chance {chance:.0%}")

# %% tags=["hide-input"]
assert same == len(single) == 88 and 0.3 < chance < 0.35

# %% [markdown]
# In this model, the nearest noun has the same gender for all 88.
# Nobody told the model what gender is, and English nouns have no grammatical gender.
# A likely reason: to write *der*, *die* or *das*, the model must treat nouns with the same German forms alike.
#
# ## Who learns?
#
# The table is a parameter.
# Our batch has 16 different tokens, `<pad>` among them.
# We look them up in a fresh table, and call `backward` on a toy loss, the sum of squares.

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
assert PAD_ID in touched and trained[PAD_ID].any()
zeroed = torch.nn.Embedding(vocab_size, d_model, padding_idx=PAD_ID)
zeroed(batch.src).sum().backward()
assert not zeroed.weight[PAD_ID].any() and not zeroed.weight.grad[PAD_ID].any()
assert (zeroed.weight[PAD_ID] + position).any(dim=1).all()

# %% [markdown]
# So a word that no training sentence has learns nothing through the look-up, and a rare token learns only from the few batches that have it.
# Two things differ in the whole model: the mask and the loss leave `<pad>` out (lessons 05 and 09), and at the output every row takes part (lesson 08).
#
# **A common mistake**: "zero padding", as if padding were nothing and needed no mask.
# The *id* of `<pad>` is 0; its row is a row like any other.
# `nn.Embedding` sets it to zero if told so (`padding_idx=0`), but even then a position is added.
# Only a mask hides the padding (lesson [05](05_masks.ipynb)).
#
# ## What is still missing
#
# Row times √d_model: is that enough?
# Here are two sentences that mean different things.

# %% tags=["hide-input"]
from course_lib.figures import Panel, panels

width = trained.shape[1]  # d_model of `course`
shown, sets = [], []
for pair in pairs[1:3]:
    tokens, ids = tokenizer.tokens(pair.src), tokenizer.encode(pair.src)
    vectors = trained[ids] * math.sqrt(width)  # (length, d_model)
    shown.append(Panel(vectors[:, :10], tokens, range(10), pair.src, xlabel="feature"))
    sets.append({tuple(vector) for vector in vectors.tolist()})
title = "Two sentences, the same six vectors in another order (10 of 128 features)"
figure = panels(shown, title=title, words={"signed": "row × √d_model"})
figure

# %% tags=["hide-input"]
assert sets[0] == sets[1] and len(sets[0]) == 6 and width == 128
assert not torch.equal(shown[0].values, shown[1].values)

# %% [markdown]
# The same six vectors: only the order of the rows differs, and nothing *in* a vector says where it stands.
# Attention (lesson 03) makes weighted sums over the rows, with weights that depend on the vectors only: reorder the rows, and each word still gets the same sum.
#
# ## All of it in one module
#
# So the finished module, `Embedding` in `course_lib.transformer`, looks up, multiplies by √d_model, and adds a position (`sinusoidal`, lesson [02](02_position.ipynb)).
# (In training the paper applies dropout to the sum, too.)

# %% tags=["nbval-check-output"]
finished = translator.model.src_embedding
length = batch.src.shape[1]
with torch.no_grad():
    theirs = finished(batch.src)  # (batch, length, d_model)
ours = trained[batch.src] * math.sqrt(width) + sinusoidal(length, width)
print(type(finished).__name__)
print(len(pairs), "sentences ->", tuple(batch.src.shape), "->", tuple(theirs.shape))
print(f"ours and the library's: {(ours - theirs).abs().max():.0e} apart")

# %% tags=["hide-input"]
assert type(finished).__name__ == "Embedding" and not finished.training
torch.testing.assert_close(ours, theirs)

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
# - **vocabulary**: the numbered list of all subwords.
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
# A list of words is never complete, and characters make long sequences; subwords keep frequent words whole and spell the rest.
# Byte-pair encoding merges the most frequent pair of neighbors again and again; with the same rule for ties, our loop learns exactly the library's merges.
# Text comes back from ids, except for characters never seen, space at the ends, tabs, a literal `▁`, and accents written as characters of their own; the vocabulary is learned from the training part only.
# A batch has the shape (batch, length); padding belongs to the batch and needs a mask, and bucketing by length keeps it small.
# An embedding looks up a row for each id, which gives (batch, length, d_model); the factor √d_model lets one table start small enough for the output and large enough for the input.
#
# **Practice**: [assignment 01](assignments/release/01_text_to_tensors/01_text_to_tensors.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [02](02_position.ipynb) shows how the position vectors tell a model the order of the words.
