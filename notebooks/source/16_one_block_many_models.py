# %% [markdown]
# # 16 · One block, many models: what else the same layers do
#
# **Question.** BERT, GPT, vision transformers and image captioners are called Transformers, too. What in them is new, and what have we already built? And if a captioner has met yellow things and squares, but never a yellow square: what does it say?
#
# **Afterwards you can**
#
# 1. tell from what goes in and what comes out whether a task calls for an encoder, a decoder or both;
# 2. build each of them from the blocks of lessons 03 to 08, without a new attention class;
# 3. ask what "unseen" means in a result, and compare a new model with a cheap baseline.
#
# **You need** the blocks (lessons [06](06_encoder.ipynb) and [07](07_decoder.ipynb)), masks ([05](05_masks.ipynb)), the whole model ([08](08_transformer.ipynb)), decoding ([11](11_decoding.ipynb)) and probes ([12](12_reading_attention.ipynb)).
# **Time**: {minutes} minutes to read, under 150 seconds to run.
# **In the paper**: section 6.3 parses English; the conclusion hopes for "images, audio and video" [@vaswani2017].

# %%
import math
from collections import Counter, defaultdict

import torch
from torch import nn

from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other

# %% [markdown]
# ## Which half is which
#
# This lesson is about six models. Each has the attention of lesson [04](04_multi_head.ipynb), unchanged.
# Look only at what goes in and what should come out (`_` is a space). Which three need a causal mask?
#
# | model | goes in | should come out |
# |---|---|---|
# | writer | `<s> T h e _` | `T h e _ c` |
# | blanks | he repaired the `<mask>` chair | black |
# | odd or sensible? | the shirt that she likes is hungry . | odd |
# | digits | a picture of 8 × 8 pixels | one of 0 to 9 |
# | parser | does his daughter open the wardrobe ? | `(SQ XX (NP XX XX )NP (VP XX (NP XX XX )NP )VP XX )SQ` |
# | captioner | a picture of 16 × 16 pixels | a red square left of a blue ring |
#
# There are three designs.
#
# - An **encoder-only model** (the left half of the paper's figure 1) reads its whole input at once. The answer is a label, or a word for each blank.
# - A **decoder-only model** (the right half, without the memory) gets a beginning, and the answer is what comes next.
# - An **encoder-decoder model** (both halves) reads one thing and writes another one.
#
# A design is its attentions and their masks (lesson [05](05_masks.ipynb); `grid` draws one):

# %% tags=["hide-input"]
from course_lib.figures import Panel


def grid(name, queries, keys, causal=False):
    """The mask of one attention."""
    mask = torch.ones(len(queries), len(keys), dtype=torch.bool)
    return Panel(mask.tril() if causal else mask, queries, keys, name, "mask")


# %%
from course_lib.figures import panels

read, written = "r1 r2 r3 r4".split(), "w1 w2 w3".split()
grids = [
    grid("full: an encoder", read, read),
    grid("causal: a decoder, on its own words", written, written, causal=True),
    grid("full: a decoder, on the memory", written, read),
]
panels(grids, title="Who may look where: rows look at columns", per_row=3)

# %% tags=["hide-input"]
assert [int(each.values.sum()) for each in grids] == [16, 6, 12]

# %% [markdown]
# An encoder-only model uses the first mask, a decoder-only model the second. An encoder-decoder model uses all three.
# So the writer, the parser and the captioner need a causal mask: they write token by token, and the next token must be hidden.
# The parser and the captioner also read something, as a whole: they have all three.
#
# Where well-known models belong:
#
# | model | first posted | design | learns to predict |
# |---|---|---|---|
# | the original [@vaswani2017] | 2017 | encoder-decoder | a translation |
# | GPT [@radford2018] | 2018 | decoder only | the next token |
# | BERT [@devlin2019] | 2018 | encoder only | hidden tokens, and whether one text follows another |
# | T5 [@raffel2020] | 2019 | encoder-decoder | hidden stretches of a text |
# | ViT [@dosovitskiy2021] | 2020 | encoder only | the class of a picture |
#
# A decoder layer has three sub-layers: masked self-attention, attention to the memory, and a feed-forward network.
# Without a memory the second has nothing to attend to, so we drop it.
# What is left?

# %%
of_parts = Predict(
    "A decoder layer without attention to the memory: which library layer is that?",
    ["none of them", "EncoderLayer without a mask", "EncoderLayer with a causal mask"],
    section="Which half is which",
)
of_parts

# %%
from course_lib.blocks import DecoderLayer, EncoderLayer
from course_lib.masks import causal_mask

torch.manual_seed(0)
decoder = DecoderLayer(16, 4, 32, 0.0, norm_first=True)
encoder = EncoderLayer(16, 4, 32, 0.0, norm_first=True)
nn.init.zeros_(decoder.cross_attn.output_proj.weight)  # the memory adds nothing
nn.init.zeros_(decoder.cross_attn.output_proj.bias)
shared = {name: of for name, of in decoder.state_dict().items() if "cross" not in name}
encoder.load_state_dict(shared)
x, memory = torch.randn(1, 6, 16), torch.randn(1, 3, 16)
mask = causal_mask(6)
gap = (decoder(x, memory, mask) - encoder(x, mask)).abs().max().item()
of_parts.reveal(of_parts.choices[2 if gap < 1e-6 else 0])
print(f"largest difference of the outputs: {gap:.0e}")

# %% tags=["hide-input"]
assert gap < 1e-6

# %% [markdown]
# So a model like GPT is a stack of *encoder* layers with a causal mask.
# (We tested pre-norm. In the paper's order, post-norm, the silenced sub-layer must be taken out together with its LayerNorm.)
#
# ## A model that writes, letter by letter
#
# First the decoder-only model. It reads a text, one character at a time, and we ask at each character for the next.
# There is no second text: the target is the text itself, shifted by one position.
# Such a model is a **language model**; it needs nothing but text. Here it is, whole.


# %%
from course_lib.config import ModelConfig
from course_lib.transformer import Embedding, Encoder


class OurLanguageModel(nn.Module):
    """The beginning of a text to the logits of what comes next, at each place."""

    def __init__(self, config):
        super().__init__()
        self.embedding = Embedding(config)
        self.stack = Encoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.generator.weight = self.embedding.table.weight  # one matrix (lesson 08)

    def forward(self, ids):
        mask = causal_mask(ids.shape[1])
        x = self.stack(self.embedding(ids), mask)  # (batch, length, d_model)
        return self.generator(x)  # (batch, length, vocab)


# %% tags=["hide-input"]
from course_lib.families import LanguageModel

sizes = dict(d_model=32, num_heads=4, num_layers=2, d_ff=64, dropout=0.0)
config = ModelConfig(vocab_size=30, **sizes)
ours, theirs = OurLanguageModel(config), LanguageModel(config)
ours.load_state_dict(theirs.state_dict())
ids = torch.randint(4, 30, (2, 9))
difference = (ours(ids) - theirs(ids)).abs().max().item()
print("largest difference from the library's:", difference)

# %% tags=["hide-input"]
torch.testing.assert_close(ours(ids), theirs(ids))
one, other = (sum(each.numel() for each in of.parameters()) for of in (ours, theirs))
assert one == other and theirs.generator.weight is theirs.embedding.table.weight

# %% [markdown]
# **A common mistake**: a language model without its mask.
# No error is raised, but each position can see its answer: it is the next token of the input.
# One changed token shows the leak.

# %% tags=["hide-input"]
changed = ids.clone()
changed[:, -1] = (changed[:, -1] + 1 - 4) % 26 + 4  # another last token
x, other = theirs.embedding(ids), theirs.embedding(changed)
moved = {}
for name, mask in (("causal mask", causal_mask(9)), ("no mask", None)):
    with torch.no_grad():
        difference = theirs.stack(x, mask) - theirs.stack(other, mask)
    moved[name] = difference[:, :-1].abs().max().item()
    print(f"{name:12} the earlier positions change by up to {moved[name]:.2g}")

# %% tags=["hide-input"]
assert moved["causal mask"] == 0 < 1e-3 < moved["no mask"]

# %% [markdown]
# We train the library's class on English sentences of the course corpus.

# %%
from course_lib.experiments import CHARACTERS, sentences_to_write, train_writer

texts, unseen = sentences_to_write(seed=0)
writer = train_writer(texts, seed=0)
print(len(texts), "sentences, for example:", texts[20])

# %% [markdown]
# Two steps of such a training, by hand, with one sentence and a new model (`shown` prints ids as characters, a space as `_`):


# %% tags=["hide-input"]
def shown(ids):
    """The first five characters of a row."""
    read = CHARACTERS.words(ids[0, :5].tolist())
    return " ".join(each.replace(" ", "_") for each in read)


# %%
torch.manual_seed(0)
model = LanguageModel(writer.config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
ids = torch.tensor([CHARACTERS.closed(texts[20])])  # (1, length)
print("read:  ", shown(ids[:, :-1]))
print("wanted:", shown(ids[:, 1:]))
losses = []
for _ in range(2):
    logits = model(ids[:, :-1])  # (1, length - 1, vocab)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss before the first step {:.2f}, after it {:.2f}".format(*losses))

# %% tags=["hide-input"]
assert losses[1] < losses[0]

# %% [markdown]
# `train_writer` takes 600 such steps, each with 32 sentences, and lets the learning rate rise and fall.
# Its model has 71,000 parameters. (In this lesson each trained stack has two layers, with d_model 64, 4 heads and d_ff 128.)
# The models below have the same step. They differ in what is read (here `ids[:, :-1]`) and what is wanted (here `ids[:, 1:]`).
#
# To write, we start with `<s>`, draw a character from the predicted distribution, append it and read again.
# Temperature, top-k and top-p are those of lesson [11](11_decoding.ipynb): `write` calls the same function.

# %%
from course_lib.families import write


def drawn(temperature, seed=0, number=4):
    """Sentences that the writer draws."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.full((number, 1), 1)  # <s>
    rows = write(writer, start, most=80, temperature=temperature, generator=generator)
    return ["".join(CHARACTERS.words(i for i in row if i > 3)) for row in rows.tolist()]


for temperature in (0.3, 0.7, 1.5):
    print(f"temperature {temperature}:", *drawn(temperature), sep="\n   ")

# %% [markdown]
# Each text of the training was one sentence, so the model has seen where sentences begin and end. Nothing told it what a word is.
# Yet at low temperatures much of what it writes is words.
#
# ### How good is it?
#
# **Bits per character** measure its surprise: the mean of log₂(1 / probability of the right character), on sentences that it never saw.
# Each of the six models meets a cheap baseline, without a Transformer.
# Here it is an old one: *count* what follows each run of up to five characters in the training texts.

# %%
LONGEST = 5
followers = defaultdict(Counter)  # up to five characters to what came next
for text in texts:
    read = [1] * LONGEST + CHARACTERS.closed(text)[1:]  # five times <s>
    for at in range(LONGEST, len(read)):
        for back in range(LONGEST + 1):
            followers[tuple(read[at - back : at])][read[at]] += 1

for context in ("c", "e c", "the c"):
    after = followers[tuple(CHARACTERS.ids(context))]
    most = (f"{CHARACTERS.words([i])[0]} {n}" for i, n in after.most_common(4))
    print(f"after “{context}”, {after.total()} times:", ", ".join(most), "…")

# %% [markdown]
# A long context says more about what follows, but it is rare: we may have met it once, or never.
# So we trust a context that we met often, and otherwise ask a shorter one (`counted_prob`, folded).
# A context that was met N times, with k different followers, keeps the share N / (N + k) of the probability. The rest goes to the context that is one character shorter (Witten–Bell smoothing). Met 8 times with 2 followers, it keeps 80 %.


# %% tags=["hide-input"]
def counted_prob(read, at, longest):
    """Probability of the character at `at`, from counts of what precedes it."""
    prob = 1 / len(CHARACTERS)
    for back in range(longest + 1):
        if after := followers.get(tuple(read[at - back : at])):
            share = len(after) / (after.total() + len(after))  # k / (N + k)
            prob = share * prob + (1 - share) * after[read[at]] / after.total()
    return prob


# %% [markdown]
# From here on, `40 % (35–45)` is the mean of three runs from a stored record, with its 95 % confidence interval, cut off at 0 and 100. (`python -m course_lib.experiments families` makes the record again; the folded `seeds` and `told` read it.)
# Unless marked, a model's score without an interval is one run, seed 0.

# %% tags=["hide-input"]
from course_lib.experiments import read_record
from course_lib.metrics import mean_estimate

record = read_record("records/families.json")


def seeds(side, name):
    """A result of the record, seed after seed."""
    runs = sorted(record["runs"], key=lambda run: run["seed"])
    return [run["results"][name] for run in runs if run["side"] == side]


# %% tags=["hide-input"]
def told(values, share=True):
    """Their mean, with its 95 % confidence interval: shares in percent, or bits."""
    found = mean_estimate(values)
    if not share:
        return f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})"
    low, high = max(found.low, 0), min(found.high, 1)
    return f"{100 * found.value:.0f} % ({100 * low:.0f}–{100 * high:.0f})"


# %%
of_counts = Predict(
    "Bits per character on unseen sentences: who has fewer?",
    ["the Transformer, after 600 steps", "the counts of up to five characters"],
    section="A model that writes, letter by letter",
)
of_counts

# %% tags=["hide-input"]
bits = {}
print("bits per character (in parentheses: 95 % interval of three runs)")
for longest in (0, 1, 3, 5):
    surprise = []
    for text in unseen:
        read = [1] * LONGEST + CHARACTERS.closed(text)[1:]
        for at in range(LONGEST, len(read)):
            surprise.append(-math.log2(counted_prob(read, at, longest)))
    bits[longest] = sum(surprise) / len(surprise)
    characters = "character:" if longest == 1 else "characters:"
    print(f"counts of up to {longest} {characters:11} {bits[longest]:.2f}")
WRITERS = {"600 steps": "writer", "3,000 steps": "long writer"}
for steps, side in WRITERS.items():
    print(f"Transformer, {steps + ':':16}", told(seeds(side, "bits"), share=False))
of_counts.reveal(of_counts.choices[int(bits[5] < min(seeds("writer", "bits")))])

# %% tags=["hide-input"]
assert bits[1] > 3 and bits[5] < 1.3 < 1.8 < min(seeds("writer", "bits"))
assert all(abs(each - bits[5]) < 0.1 for each in seeds("long writer", "bits"))
assert sum(each.numel() for each in writer.parameters()) == 70_976

# %% [markdown]
# After 600 steps our writer is far behind the counts of five characters. After 3,000 steps, where the record stops, the two are about equal.
# A small corpus made by a grammar repeats itself, and there a table may be hard to beat.
#
# At temperature 0.7, how many drawn words occur in the training texts, and how many sentences are copied?

# %% tags=["hide-input"]
for steps, side in WRITERS.items():
    print(f"{steps}: known words {told(seeds(side, 'known words'))};", end=" ")
    print(f"copied sentences, at most {max(seeds(side, 'copied')):.0%}")
print(*seeds("long writer", "written")[0][:3], sep="\n")

# %% tags=["hide-input"]
shares = [seeds(side, "known words") for side in WRITERS.values()]
assert 0.6 < min(shares[0]) < max(shares[0]) < 0.8 < 0.9 < min(shares[1])
assert max(seeds("writer", "copied")) == 0 and max(seeds("long writer", "copied")) < 0.1

# %% [markdown]
# After 3,000 steps almost all words are known ones, though the sentences are still odd.
#
# ## A model that fills in blanks
#
# Now an encoder. It sees both sides of each word, so predicting the next word would teach it nothing: the answer is part of its input.
# BERT's task [@devlin2019] hides some of the tokens and asks for them.
# A model trained in this way is a **masked language model**. (Our tokens are whole words.)
# Its class is `OurLanguageModel` without the causal mask: `x = self.stack(self.embedding(ids), None)`. Nothing else changes.
# (In a padded batch the padding mask stands there.)


# %%
def our_blanks(ids, mask_id, vocab_size, generator):
    """Ids with blanks, and what stood there; -100 where nothing is asked."""

    def draw():
        return torch.rand(ids.shape, generator=generator)

    asked = (draw() < 0.15) & (ids > 4)  # no special tokens
    fate, other = draw(), torch.randint(5, vocab_size, ids.shape, generator=generator)
    blanks = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, other, ids))
    return torch.where(asked, blanks, ids), torch.where(asked, ids, -100)


# %% tags=["hide-input"]
text = "at a quarter to nine he repaired the black chair because it was old ."
more = "did our mother pick up her aunts four days ago ? big mouse hid"
names = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
names += sorted({*text.split(), *more.split()})
row = torch.tensor([[names.index(word) for word in text.split()]])

# %%
print("text:  ", text)
drawn_by = torch.Generator().manual_seed(283)
blanks, wanted = our_blanks(row, 4, len(names), drawn_by)
print("read:  ", *(names[i] for i in blanks[0]))
print("wanted:", *(names[i] if i > 0 else "·" for i in wanted[0].tolist()))

# %% tags=["hide-input"]
assert [names[i] for i in wanted[wanted > 0]] == ["nine", "the", "."]
assert [names[i] for i in blanks[wanted > 0]] == ["<mask>", "four", "."]
row = torch.arange(5, 20_005)[None]
blanks, wanted = our_blanks(row, 4, 20_005, torch.Generator().manual_seed(0))
assert ((wanted == row) | (wanted == -100)).all()
assert (blanks == row)[wanted == -100].all()
number = (wanted > 0).sum().item()
masked = (blanks == 4).sum().item()
stayed = ((blanks == row) & (wanted > 0)).sum().item()
assert abs(number / 20_000 - 0.15) < 0.01
assert abs(masked / number - 0.8) < 0.03 and abs(stayed / number - 0.1) < 0.03

# %% [markdown]
# Three tokens are asked for: *nine* became `<mask>`, *the* became a random word (*four*), and the period stayed as it is.
# In the long run, 15 % of the tokens are asked for. Of these, 80 % become `<mask>`, 10 % a random token, and 10 % stay.
# Why not always `<mask>`? Later texts have none. The model should have something to say about ordinary words, too: any of them may be wrong.
#
# The step of training is the writer's, without a shift: `cross_entropy(model(blanks).flatten(0, 1), wanted.flatten())`.
# The −100 is PyTorch's: `cross_entropy` leaves such targets out.
# In the record, one model (110,000 parameters) learned from 4,000 sentences, in 1,000 steps of 64; another had ten times both.
#
# What have they learned? We hide the third word of new sentences. How often is it found?
# The baseline guesses the word that it has met most often, at the third place, between the same two neighbors. (If it never met these together, it goes by the left one; failing that, by frequency alone.)

# %% tags=["hide-input"]
from course_lib.experiments import labeled_sentences

parts = {seed: labeled_sentences(1000, seed) for seed in (100, 101, 102, 300, 301, 302)}
many = labeled_sentences(80_000, seed=0)
asked = [words for seed in (300, 301, 302) for words, odd in parts[seed] if not odd]
around = (slice(1, 4, 2), slice(1, 2), slice(0))  # both neighbors, the first, none


# %% tags=["hide-input"]
def by_counts(number):
    """Share of hidden third words that counts of so many sentences find."""
    counts = defaultdict(Counter)
    for words, odd in many[: 2 * number]:
        for place in () if odd else around:
            counts[tuple(words[place])][words[2]] += 1
    right = 0
    for words in asked:
        place = next(place for place in around if tuple(words[place]) in counts)
        right += words[2] == counts[tuple(words[place])].most_common(1)[0][0]
    return right / len(asked)


# %% tags=["hide-input"]
longer, counted = "masked, longer, more", {}
print(f"{'hidden words found':24} {'model':14} counts of neighbors")
for number, side in ((4000, "masked"), (40_000, longer)):
    counted[number] = by_counts(number)
    found = told(seeds(side, "valid"))
    print(f"after {number:6,} sentences   {found:14} {100 * counted[number]:.0f} %")

# %% tags=["hide-input"]
from dataclasses import replace

from course_lib.families import MaskedLanguageModel

assert all(abs(each - counted[4000]) < 0.05 for each in seeds("masked", "valid"))
assert 0.35 < counted[40_000] < min(seeds(longer, "valid")) - 0.1
met = {word for words, odd in many[:8000] if not odd for word in words}
untaught = MaskedLanguageModel(replace(writer.config, vocab_size=len(met) + 5))
assert abs(sum(each.numel() for each in untaught.parameters()) - 110_000) < 1000
texts_of = [{tuple(w) for w, odd in many[: 2 * n] if not odd} for n in (4000, 40_000)]
known = [sum(tuple(words) in each for words in asked) / len(asked) for each in texts_of]
assert [round(100 * each) for each in known] == [2, 8]

# %% tags=["hide-input"]
# The library's masked language model is the writer's class without its mask.
short = {}
for name, of in untaught.state_dict().items():
    short[name.replace("text_encoder.", "").replace("encoder.", "stack.")] = of
ours, ids = OurLanguageModel(untaught.config), torch.randint(5, 600, (2, 9))
ours.load_state_dict(short)
logits = ours.generator(ours.stack(ours.embedding(ids), None))
torch.testing.assert_close(logits, untaught(ids))

# %% [markdown]
# With 4,000 sentences the model is no better than counts; with 40,000, and more steps, it is far ahead.
# (8 % of the test sentences are among the 40,000: too few to explain it.)
#
# What is this good for?
# Here are sentences in which a noun may have been replaced by one of another kind. If one was, the sentence is called odd.

# %% tags=["nbval-check-output"]
for sentence, odd in labeled_sentences(12, seed=3)[4:]:
    print("odd     " if odd else "sensible", " ".join(sentence))

# %% [markdown]
# Half are odd, so guessing gives 50 %. Some of the new nouns happen to make sense, so 100 % is out of reach.
#
# Take *the shirt that she likes is hungry*. It is odd, and we know why: boys can be hungry, shirts cannot.
# Could a model learn this from 100 labeled sentences? In the record's three sets of 100, no sentence has both *shirt* and *hungry*.
# But a model that fills in blanks learns from sentences that nobody had to label. What do ours put in place of the last word of *the boy is sick* and *the shirt is old*? (Seed 0; the five most probable words.)

# %% tags=["hide-input"]
for number, side in ((4000, "masked"), (40_000, longer)):
    print(f"after {number:,} sentences")
    for sentence, best in seeds(side, "fillings")[0].items():
        guesses = ", ".join(f"{word} {prob:.0%}" for word, prob in best.items())
        print(f"   {sentence:24} {guesses}")

# %% tags=["hide-input"]
boys, shirts = (list(best) for best in seeds(longer, "fillings")[0].values())
assert boys[:2] == ["sick", "clever"] and shirts[:3] == ["old", "expensive", "cheap"]
of_few = seeds("masked", "fillings")[0]["the shirt is <mask> ."]
assert list(of_few)[0] == "tired" and not {"sick", "tired", "hungry"} & set(shirts)

# %% [markdown]
# After 4,000 sentences, the model would have a tired shirt. After 40,000, boys are sick and clever; shirts are old, expensive or cheap.
# It has learned which words go with what, and nobody told it.
# So first we train on blanks, the **pretraining**. Then we put a new linear layer, `head`, on the vector of the first token, `<s>`, and train all weights on a few labels, here for 200 steps of 32: **fine-tuning**.
# Blanks asked nothing at `<s>`; now its vector learns to collect what the others know.
# The loss of one step, with three of the sentences above (`ours` has random weights here; in the record they are pretrained):

# %% tags=["hide-input"]
from course_lib.families import TextClassifier

lookup = names[:5] + sorted(met)
eight = [each for each in labeled_sentences(12, seed=3)[4:] if len(each[0]) == 8]
ids = torch.tensor([[1, *map(lookup.index, words), 2] for words, _ in eight])
classes = torch.tensor([odd for _, odd in eight])

# %%
torch.manual_seed(0)
head = nn.Linear(64, 2)  # new: sensible or odd
x = ours.stack(ours.embedding(ids), None)  # (batch, length, d_model)
logits = head(x[:, 0])  # (batch, 2), read at <s>
loss = nn.functional.cross_entropy(logits, classes)
loss.backward()  # to the head, the stack and the embedding
print(f"loss of the first step: {loss:.2f}")

# %% tags=["hide-input"]
classifier = TextClassifier(untaught.text_encoder, 2)
classifier.head.load_state_dict(head.state_dict())
torch.testing.assert_close(logits, classifier(ids))
assert len(eight) == 3 and all(each.grad is not None for each in ours.parameters())

# %% [markdown]
# The library's `TextClassifier` does the same.
#
# The baseline is a logistic regression on the words and the pairs of neighboring words of a sentence, with the same labels. (For the Transformers, 1,000 other labeled sentences chose one of two learning rates.) Fewer than 1 % of the test sentences occur among the labeled ones.

# %%
of_labels = Predict(
    "4,000 sentences with blanks, then 1,000 labels: what share of new ones is right?",
    unit="%",
    off_by=5,
    section="A model that fills in blanks",
)
of_labels

# %% tags=["hide-input"]
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def words_and_pairs(words):
    return [*words, *map(" ".join, zip(words, words[1:], strict=False))]


def on_pairs(labeled, exam):
    """Share of an exam that a logistic regression has right."""
    counter = CountVectorizer(analyzer=words_and_pairs)
    model = make_pipeline(counter, LogisticRegression(solver="liblinear"))
    return model.fit(*zip(*labeled, strict=True)).score(*zip(*exam, strict=True))


# %% tags=["hide-input"]
LABELS = (100, 1000)
simple = {}  # number of labels to a share for each seed
for labels in LABELS:
    of_seeds = ((parts[100 + n][:labels], parts[300 + n]) for n in range(3))
    simple[labels] = [on_pairs(*taught_and_exam) for taught_and_exam in of_seeds]
ceiling = on_pairs(many, parts[300])
fresh = {labels: seeds("masked", f"from scratch, {labels}") for labels in LABELS}
after = {labels: seeds("masked", f"pretrained, {labels}") for labels in LABELS}
more_after = {labels: seeds(longer, f"pretrained, {labels}") for labels in LABELS}

# %% tags=["hide-input"]
print(f"{'sentences judged rightly':30} 100 labels     1,000 labels")
rows = {
    "word pairs, no Transformer": simple,
    "Transformer, no pretraining": fresh,
    "pretrained,  4,000 sentences": after,
    "pretrained, 40,000 sentences": more_after,
}
for name, of in rows.items():
    print(f"{name:30}", *(f"{told(of[labels]):14}" for labels in LABELS))
print(f"word pairs with 80,000 labels: {100 * ceiling:.0f} %")
why = "guessing gives 50 %, and filling in blanks adds a few points"
of_labels.reveal(round(100 * sum(after[1000]) / 3), because=why)

# %% tags=["hide-input"]
for labels in LABELS:
    gain = [b - a for a, b in zip(fresh[labels], after[labels], strict=True)]
    assert min(gain) > 0
low, high = min(simple[1000]), max(simple[1000])
assert mean_estimate(gain).low > 0 and min(after[1000]) > high > low > 0.53
assert sum(simple[1000]) / 3 > sum(fresh[1000]) / 3 + 0.01
assert max(after[100]) < 0.6 and max(after[1000]) < 0.65
means = (sum(of[1000]) / 3 for of in (fresh, after, more_after))
assert [round(100 * mean) for mean in means] == [53, 59, 72]
assert all(mean_estimate(of[100]).low < 0.51 for of in (simple, fresh, after))
assert 0.51 < mean_estimate(more_after[100]).low < 0.54 < sum(more_after[100]) / 3
assert sum(more_after[100]) / 3 < 0.57

# %% tags=["hide-input"]
for seed in (100, 101, 102):
    texts_100 = [" ".join(words) for words, _ in parts[seed][:100]]
    has = [("hungry" in each, "shirt" in each) for each in texts_100]
    assert sum(a for a, _ in has) <= 4 and sum(b for _, b in has) <= 2
    assert not any(a and b for a, b in has)
    labeled = {tuple(words) for words, _ in parts[seed]}
    assert sum(tuple(words) in labeled for words, _ in parts[seed + 200]) < 10

# %% tags=["hide-input"]
assert 0.65 < min(more_after[1000]) < ceiling - 0.05
assert max(more_after[100]) < 0.65 and 0.8 < ceiling < 0.86
labeled = {tuple(words) for words, _ in many}
assert sum(tuple(words) in labeled for words, _ in parts[300]) / 1000 < 0.05

# %% [markdown]
# Pretraining helps. With the same 1,000 labels, 53 % become 59 % after 4,000 sentences with blanks, and 72 % after 40,000 (with ten times the steps, too).
# With 1,000 labels and without pretraining, the Transformer does not even beat word pairs; with it, it does, with every seed.
# With 100 labels only the last is clearly better than guessing, and by little.
# Is 72 % good? Word pairs with 80,000 labels are right on four of five, so at least that much can be known. (They met fewer than 5 % of the test sentences.)
#
# ## Patches instead of words
#
# The same stack can read pictures. A picture becomes a sequence when it is cut into **patches**, small squares, read row by row [@dosovitskiy2021].
# Here is one of scikit-learn's handwritten digits, 8 × 8 pixels.
# We cut it into patches of 2 × 2 in a loop.

# %% tags=["nbval-check-output"]
from course_lib.data import load_digits

train, valid, test = load_digits()
picture = test.pictures[0, 0]  # (8, 8), 0 is white and 1 is black
for row in (picture * 16).int().tolist():
    print(*(f"{number:2}" for number in row))
by_hand = []
for row in range(0, 8, 2):
    for column in range(0, 8, 2):
        by_hand.append(picture[row : row + 2, column : column + 2].flatten())
print("patches:", len(by_hand), "of", len(by_hand[0]), "numbers each")

# %% [markdown]
# An embedding table turns the id of a word into a vector.
# A patch has no id; it *is* four numbers, so a linear layer takes the table's place.
# In front we put one more learned vector, the **class token**: its output stands for the whole picture, as that of `<s>` did for a sentence.
# The positions are learned (`table`).
# Such a model is a **vision transformer**, and this is all of it but `cut`, which follows:


# %%
class OurVisionTransformer(nn.Module):
    """Pictures (batch, 1, 8, 8) to the logits of ten classes."""

    def __init__(self, config):
        super().__init__()
        self.patch_proj = nn.Linear(4, config.d_model)
        self.class_token = nn.Parameter(torch.randn(config.d_model))
        self.table = nn.Parameter(torch.randn(config.max_len, config.d_model))
        self.encoder, self.head = Encoder(config), nn.Linear(config.d_model, 10)

    def forward(self, pictures):
        patches = cut(pictures)  # (batch, 16, 4)
        first = self.class_token.expand(len(patches), 1, -1)
        x = torch.cat([first, self.patch_proj(patches)], dim=1)  # (batch, 17, d_model)
        return self.head(self.encoder(x + self.table[: x.shape[1]])[:, 0])


# %%
def cut(pictures):
    """Pictures (batch, 1, 8, 8) to patches, row by row."""
    rows = pictures[:, 0].unflatten(1, (4, 2)).unflatten(3, (4, 2))  # b, 4, 2, 4, 2
    return rows.transpose(2, 3).flatten(3).flatten(1, 2)  # (batch, 16, 4)


# %% [markdown]
# We train the library's model, 74,000 parameters, on 1,197 digits in 1,000 steps of 64; the step is `cross_entropy(model(pictures), classes)`.
# Then we give ours its weights (`short`).

# %% tags=["hide-input"]
from course_lib.experiments import right_share, train_digits

digits = train_digits(train, seed=0)
short = {}  # the same weights, under the shorter names of our class
for name, of in digits.state_dict().items():
    for part in ("picture_encoder.", "embedding.", "position."):
        name = name.removeprefix(part)
    short[name] = of

# %%
ours = OurVisionTransformer(digits.picture_encoder.config).eval()
ours.load_state_dict(short)
with torch.no_grad():
    apart = (ours(test.pictures) - digits(test.pictures)).abs().max().item()
print(f"largest difference from the library's: {apart:.0e}")
share = right_share(digits, test.pictures, test.classes)
print(f"right on {len(test.classes)} new pictures: {share:.1%}")

# %% tags=["hide-input"]
assert apart < 1e-4 and share >= 0.97

# %% [markdown]
# The baseline gives a picture the class of the training picture whose pixels are nearest.

# %%
from sklearn.neighbors import KNeighborsClassifier

nearest = KNeighborsClassifier(1).fit(train.pictures.flatten(1), train.classes)
nearest_share = nearest.score(test.pictures.flatten(1), test.classes)
print("vision transformer, three seeds:", told(seeds("digits", "test")))
print(f"nearest training picture:        {100 * nearest_share:.0f} %")

# %% tags=["hide-input"]
import sklearn.datasets

assert min(seeds("digits", "test")) >= 0.97 and nearest_share > 0.98
about = " ".join(sklearn.datasets.load_digits().DESCR.split())
assert "copy of the test set" in about and "different 13 to the test set" in about
assert 13 * (12 / 13) ** len(test.classes) < 1e-9  # none of 13 equal shares is missed

# %% [markdown]
# A tie, on this one random split. (13 people wrote these digits; almost surely all are in both parts, so no new person is tested.)
# With so few and so small pictures, nothing is gained over the nearest neighbor, which needs no training at all.
# @dosovitskiy2021 saw something similar with far more pictures. After 1.3 million, their models were still behind convolutional networks, which are built to treat neighboring pixels together. With 14 to 300 million they caught up and won.
# A vision transformer is not told which patches are neighbors: its position vectors have to learn it.
#
# **A common mistake**: cutting patches with `view`.
# The shape is right, no error is raised, and the "patches" are strips of four pixels in a row.

# %% tags=["hide-input"]
strips = picture.view(16, 4)
ways = {"by hand": by_hand[1], "cut": cut(picture[None, None])[0, 1], "view": strips[1]}
for name, one in ways.items():
    print(f"{name:8}", (one * 16).int().tolist())

# %% tags=["hide-input"]
assert torch.equal(torch.stack(by_hand), cut(picture[None, None])[0])
assert not torch.equal(torch.stack(by_hand), strips)
assert sum(each.numel() for each in digits.parameters()) == 74_250

# %% [markdown]
# In the widget, erase or paint pixels of a digit and see when the answer changes. It begins with the three test pictures that the model is least sure of. Which digits do you see? (Their labels stand below.)
# The writer continues a text that you begin.

# %%
from course_lib.widgets import ModelPlayground

with torch.no_grad():
    sure = digits(test.pictures).softmax(dim=-1).amax(dim=-1)
unsure = test.pictures[sure.argsort()[:3], 0]
playground = ModelPlayground(digits, writer, CHARACTERS, unsure)
playground

# %% tags=["hide-input"]
from course_lib.checks import written_for

labels_of_unsure = test.classes[sure.argsort()[:3]].tolist()
print("labels of the three pictures:", *labels_of_unsure)
with written_for(playground.examples[0], playground.pixels):
    assert max(playground.probs) < 0.9

# %% [markdown]
# **Try yourself**: `train_writer(texts, seed=0, steps=3000)` takes five times as long. What does it write? (`ModelPlayground` takes it as its second argument.)
#
# ## A sentence in, a tree out
#
# Now both halves. The parser is the Transformer of lesson 08, unchanged: words go in, brackets come out.
#
# A **constituency tree** puts labeled brackets around words that belong together: S is a sentence, SQ a question, NP a noun phrase, VP a verb phrase, PP a prepositional one, ADVP an adverb phrase, which says when, where or how. (In our grammar *in the evening* is an ADVP, too; linguists call it a PP.)
# The grammar behind the course corpus knows the trees of its sentences.
# Here is one as a row of brackets, with XX for each token, and then as the tree that it describes.

# %% tags=["nbval-check-output"]
from course_lib.experiments import tree_bank

words, brackets = tree_bank(60, seed=0)[50]
print(" ".join(brackets))
depth, ahead = 0, iter(words)
for token in brackets:
    depth -= token.startswith(")")
    if not token.startswith(")"):
        print("   " * depth + (next(ahead) if token == "XX" else token[1:]))
    depth += token.startswith("(")

# %% [markdown]
# The row is a **linearized tree**.
# Section 6.3 of the paper lets the model translate sentences into such rows, as @vinyals2015 did.
# The loss of a step, before any training:

# %%
from course_lib.experiments import WordIds
from course_lib.transformer import Transformer

vocabulary = WordIds(sorted({*words, *brackets}))
parser = Transformer(ModelConfig(vocab_size=len(vocabulary), **sizes))
src = torch.tensor([[*vocabulary.ids(words), 2]])  # </s> behind the words
row = torch.tensor([vocabulary.closed(brackets)])
logits = parser(src, row[:, :-1])  # (1, tgt_len, vocab)
loss = nn.functional.cross_entropy(logits.flatten(0, 1), row[:, 1:].flatten())
print(f"loss of an untrained parser: {loss:.2f}")

# %% tags=["hide-input"]
assert logits.shape == (1, len(brackets) + 1, len(vocabulary)) and loss > 1

# %% [markdown]
# **Labeled F1** measures the trees.
# A constituent, a labeled pair of brackets, is right if its label, its first and its last word are right.
# Precision is right / said, recall is right / wanted, and F1 is their harmonic mean, 2 · right / (said + wanted).
# In this example the second NP is missing:

# %% tags=["nbval-check-output"]
from course_lib.grammar import labeled_f1

wanted = "(S (NP XX XX )NP (VP XX (NP XX XX )NP )VP )S".split()
said = "(S (NP XX XX )NP (VP XX XX XX )VP )S".split()
print(f"right 3, said 3, wanted 4: {2 * 3 / (3 + 4):.4f}")

# %% tags=["hide-input"]
assert abs(labeled_f1([said], [wanted]) - 6 / 7) < 1e-9

# %% [markdown]
# The parsers of the record (212,000 parameters) learned from 4,000 sentences of up to 10 tokens (punctuation counts), in 800 steps of 32.
# How do they do on new sentences, and on longer ones?
# The baseline, `nearest_trees`, takes the tree of the training sentence of the same length that has the most words in the same places.


# %% tags=["hide-input"]
def nearest_trees(seed):
    """F1, share of perfect trees; and for each tree, whether training has it, too."""
    bank = tree_bank(4600, seed)
    taught, test = bank[:4000], bank[-300:]
    same = defaultdict(list)
    for words, row in taught:
        same[len(words)].append((words, row))
    said = []
    for words, _ in test:
        shares = [sum(map(str.__eq__, each, words)) for each, _ in same[len(words)]]
        said.append(same[len(words)][shares.index(max(shares))][1])
    right, known = [row for _, row in test], {tuple(row) for _, row in taught}
    perfect = sum(map(list.__eq__, said, right)) / len(test)
    return labeled_f1(said, right), perfect, [tuple(row) in known for row in right]


# %% tags=["hide-input"]
for name, of in (("test", "unseen, up to 10 tokens"), ("longer", "11 tokens or more")):
    f1, whole = (told(seeds("parser", each)) for each in (name, f"perfect, {name}"))
    print(f"{of:24} F1 {f1}, perfect trees {whole}")
near_trees = list(zip(*map(nearest_trees, range(3)), strict=True))
f1, whole = map(told, near_trees[:2])
print(f"{'nearest, up to 10 tokens':24} F1 {f1}, perfect trees {whole}")
seen = [sum(of) / len(of) for of in near_trees[2]]
print(f"short test sentences whose tree occurs in training: {told(seen)}")

# %% tags=["hide-input"]
assert min(seeds("parser", "test")) > 0.9 > 0.87 > max(near_trees[0])
assert min(seeds("parser", "perfect, test")) > 0.8 and max(near_trees[1]) < 0.6
assert max(seeds("parser", "longer")) < 0.35 and min(seen) > 0.75
assert round(100 * sum(seen) / 3) == 82
assert max(len(words) for words, _ in tree_bank(4000, seed=0)) == 10
met = {token for pair in tree_bank(4000, seed=0) for side in pair for token in side}
whole_parser = Transformer(replace(writer.config, vocab_size=len(met) + 4))
assert abs(sum(each.numel() for each in whole_parser.parameters()) - 212_000) < 1000

# %% [markdown]
# On short sentences the parser is well ahead of its baseline.
# But look at what "unseen" meant. 82 % of the new short sentences have a tree that occurs in training: only the choice of words is new.
# And the other 18 %?

# %% tags=["hide-input"]
of_trees = {True: [], False: []}  # known or new, to a share for each seed
every_tree = zip(near_trees[2], seeds("parser", "each perfect, test"), strict=True)
for kinds, perfect in every_tree:
    for is_known, shares in of_trees.items():
        of_kind = zip(kinds, perfect, strict=True)
        hits = [hit for kind, hit in of_kind if kind == is_known]
        shares.append(sum(hits) / len(hits))
print("perfect trees of short test sentences, where the tree")
for is_known, name in ((True, "occurs in training:"), (False, "is new:")):
    print(f"   {name:20} {told(of_trees[is_known])}")

# %% tags=["hide-input"]
assert min(of_trees[False]) > 0.5
assert mean_estimate(of_trees[False]).high < min(of_trees[True])
longer_bank = tree_bank(300, seed=100, shortest=11, longest=99)
assert min(row.count("XX") for _, row in longer_bank) > 10

# %% [markdown]
# New trees are harder, but most are right.
# Longer sentences have only new trees, and 18 % are right: longer ones are harder still.
#
# One new tree that is right, and the end of one that is wrong; words stand for XX:


# %% tags=["hide-input"]
def with_words(sentence, row):
    """A row with the words, in turn, in place of XX; and the words left over."""
    ahead = iter(sentence.split())
    placed = [next(ahead) if token == "XX" else token for token in row.split()]
    return " ".join(placed), " ".join(ahead)


# %% tags=["nbval-check-output", "hide-input"]
words, row = tree_bank(4600, seed=0)[-300:][37]
placed, _ = with_words(" ".join(words), " ".join(row))
print(*words, f"\n  said, and right: {placed}")
sentence, said, right = seeds("parser", "wrong, longer")[1][0]
print(sentence)
unplaced = []
for what, row in (("said: ", said), ("right:", right)):
    placed, left_over = with_words(sentence, row)
    unplaced.append(left_over)
    end = placed[placed.index("eat") :]
    tail = f"   left over: “{left_over}”" if left_over else ""
    print(f"  {what} … {end}{tail}")

# %% [markdown]
# The wrong tree lacks one XX and an NP: words move up, and the period is left over.
# How often is an XX missing?

# %% tags=["nbval-check-output", "hide-input"]
for name, of in (("test", "up to 10 tokens"), ("longer", "11 tokens or more")):
    missing = seeds("parser", f"words missing, {name}")
    complete = [each.count(0) / len(each) for each in missing]
    perfect = seeds("parser", f"perfect, {name}")
    of_these = [part / whole for part, whole in zip(perfect, complete, strict=True)]
    print(f"{of + ':':18} one XX for each token: {told(complete)}", end=", ")
    print(f"perfect among these: {told(of_these)}")
too_short = [sum(n > 0 for n in each) / len(each) for each in missing]
print(f"{of + ':':18} fewer XX than tokens: {told(too_short)}")

# %% tags=["hide-input"]
assert 0.7 < min(too_short) and abs(sum(too_short) / 3 - 0.75) < 0.05
assert max(complete) < 0.26 and 0.8 < min(of_these)
assert unplaced == [".", ""] and len(words) == 10 and not near_trees[2][0][37]
assert seeds("parser", "each perfect, test")[0][37] == 1

# %% [markdown]
# About three of four longer sentences get too few XX. Where every token has its XX, more than four of five trees are perfect.
# So on longer sentences the parser mostly leaves words out. Is it the counting, or positions it never saw (lesson [13](13_positions_past_the_paper.ipynb))? These numbers do not tell.
#
# The paper's F1 of 91.3 is on real sentences, of the Wall Street Journal [@vaswani2017, table 4]; ours cannot be compared with it.
#
# ## A picture in, a sentence out
#
# The decoder attends to vectors. It does not ask where they come from.
# So we keep the right half, with its words, and put pictures on the left: an **image captioner**.
# `Captioner` is called like the Transformer, with pictures as sources: the step is `cross_entropy` of `model(pictures, tgt_in)` against `tgt_out`.
# Its pictures are drawn by a program: 16 × 16 pixels, with one or two things, each of one color and shape. A patch has 4 × 4 pixels, so the memory has 16 vectors (no class token).
# We train it, 184,000 parameters, on 6,000 pictures with captions in 1,000 steps of 64, and write out its forward pass.

# %%
from course_lib.experiments import CAPTIONS, captions_of, train_captioner

captioner = train_captioner(seed=0)


def our_captioner(pictures, tgt_in):
    """Pictures and the words so far to the logits of the next word."""
    memory = captioner.picture_encoder(pictures)  # (batch, patches, d_model)
    x = captioner.tgt_embedding(tgt_in)  # (batch, tgt_len, d_model)
    x = captioner.decoder(x, memory, causal_mask(tgt_in.shape[1]))
    return captioner.generator(x)  # (batch, tgt_len, vocab)


# %% [markdown]
# What does it say about a picture of ours?
# Lesson 11's `greedy` decodes it, unchanged.
# Change the things, and the row and column of each thing's upper left pixel (0 to 10).

# %%
from course_lib.data import Scene, draw_scenes
from course_lib.decoding import greedy

things = ("red", "square"), ("blue", "ring")
scene = Scene(things, "left of", ((5, 1), (3, 9)))
picture = draw_scenes([scene])  # (1, 3, 16, 16)
(found,) = greedy(captioner, picture, max_len=12)
said = CAPTIONS.words(found.ids)
print("caption:", *said)

# %% tags=["hide-input"]
tgt_in = torch.tensor([[1, *CAPTIONS.ids(said)]])
with torch.no_grad():
    theirs = captioner(picture, tgt_in)
    torch.testing.assert_close(our_captioner(picture, tgt_in), theirs)
assert sum(each.numel() for each in captioner.parameters()) == 184_256

# %% [markdown]
# Where does the model look when it predicts a word?
# `record_weights` listens to any attention module, as `record_attention` did to a Transformer's.
# We take the cross-attention of the last layer, averaged over its heads; `draw_looks` draws it under the outlines of the things.

# %% tags=["hide-input"]
from course_lib.figures import new_figure, styled


def draw_patches(one, ink, look):
    """A map of patch weights under the outline of a picture's ink."""
    side = len(ink)
    middles = torch.arange(side) + 0.5
    one.contour(middles, middles, ink, levels=[0.5], colors="#d55e00", linewidths=1)
    return one.imshow(look, cmap="Blues", extent=(0, side, side, 0), vmin=0, vmax=1)


# %% tags=["hide-input"]
@styled
def draw_looks(picture, ink, looks, labels, title):
    """The picture, and maps of patch weights under its outline, five in a row."""
    rows = -(-(len(looks) + 1) // 5)
    figure = new_figure(title, 9.0, 0.4 + 1.75 * rows)
    axes = figure.subplots(rows, 5, squeeze=False).flatten().tolist()
    while len(axes) > len(looks) + 1:
        axes.pop().remove()
    axes[0].imshow(picture, cmap="gray_r")
    maps = zip(axes[1:], looks, strict=True)
    shown = [draw_patches(one, ink, look) for one, look in maps]
    for one, label in zip(axes, ["the picture", *labels], strict=True):
        one.set(title=label, xticks=[], yticks=[])
    figure.colorbar(shown[0], ax=axes, label="weight of the patch")
    return figure


# %%
from course_lib.recording import record_weights

crossing = [captioner.decoder.layers[-1].cross_attn]
with record_weights(crossing) as maps, torch.no_grad():
    captioner(picture, tgt_in[:, :-1])  # row t predicts word t
looks = maps[0][0].mean(dim=0).unflatten(1, (4, 4))  # (words, rows, columns)
title = "In this picture, color and shape words look at their thing"
colors = picture[0].permute(1, 2, 0).clamp(0, 1)  # (rows, columns, 3)
draw_looks(colors, colors.amax(dim=2), looks, said, title)

# %% tags=["hide-input"]
with written_for((("red", "square"), ("blue", "ring")), things):
    assert looks[1:3, :, :2].sum(dim=(1, 2)).min() > 0.6
    assert looks[-2:, :, 2:].sum(dim=(1, 2)).min() > 0.6
    assert said[3] == "left" and looks[3, 3].max() > 0.9  # no thing in the lowest row

# %% [markdown]
# The color and shape words look at patches that their thing touches; *left* puts nearly all its weight on an empty patch.
# Each memory vector has read the whole picture, so where a word looks need not be what it is about. And this is one picture.
# In 200 pictures of two things, how much of a shape word's weight lies on the patches that each thing touches?

# %% tags=["hide-input"]
from course_lib.data import make_batch, make_scenes

pairs = [one for one in make_scenes(300, seed=6000) if len(one.things) == 2][:200]
batch = make_batch([([1], CAPTIONS.ids(one.caption.split())) for one in pairs])
with record_weights(crossing) as maps, torch.no_grad():
    captioner(draw_scenes(pairs, seed=6000), batch.tgt_in)
on_things = torch.zeros(2, 2)  # (word for the first or second shape, on which thing)
for one, look in zip(pairs, maps[0].mean(dim=1), strict=True):
    for thing, place in enumerate(one.places):
        rows, columns = (slice(at // 4, (at + 5) // 4 + 1) for at in place)
        for word, at in enumerate((2, len(one.caption.split()) - 1)):
            part = look[at].view(4, 4)[rows, columns]
            on_things[word, thing] += part.sum() / len(pairs)
for word, (first, second) in zip(("first", "second"), on_things, strict=True):
    print(f"{word:6} shape word: {first:.0%} on thing 1, {second:.0%} on thing 2")

# %% tags=["hide-input"]
touched = sum((at + 5) // 4 - at // 4 + 1 for at in range(11)) / 11  # of 4 each way
assert abs(touched**2 / 16 - 0.3) < 0.01
assert on_things.diag().min() > 0.6 and on_things.max(dim=1).indices.tolist() == [0, 1]

# %% [markdown]
# Equal weights would put about 30 % on each thing. Nobody showed the model which patches a word is about.
#
# ## Three kinds of unseen
#
# The parser's test sentences were new, but most of their trees were not. With pictures we can choose exactly what is new.
# Training shows 20 of the 25 things. The five on the diagonal (✗) it never shows:
#
# | | circle | ring | triangle | square | cross |
# |---|---|---|---|---|---|
# | red | ✗ | ✓ | ✓ | ✓ | ✓ |
# | green | ✓ | ✗ | ✓ | ✓ | ✓ |
# | blue | ✓ | ✓ | ✗ | ✓ | ✓ |
# | yellow | ✓ | ✓ | ✓ | ✗ | ✓ |
# | white | ✓ | ✓ | ✓ | ✓ | ✗ |
#
# All test pictures are new, but in three ways:
#
# - *known*: things and pairs of training, in other places and with other noise;
# - *new pair*: two things with a ✓ that never stood together in a picture;
# - *new thing*: at least one thing with a ✗.


# %% tags=["hide-input"]
@styled
def draw_kinds(pictures, labels, title):
    """Pictures side by side, each under its kind and its caption."""
    figure = new_figure(title, 9.0, 3.0)
    axes = figure.subplots(1, len(pictures))
    for one, picture, label in zip(axes, pictures, labels, strict=True):
        one.imshow(picture.permute(1, 2, 0).clamp(0, 1))
        one.set(title=label, xticks=[], yticks=[])
    return figure


# %% tags=["hide-input"]
KINDS = ("known", "new pair", "new thing")
exams = {kind: make_scenes(300, seed=6000, kind=kind) for kind in KINDS}
examples = {"known": 5, "new pair": 3, "new thing": 0}
shown_scenes = [exams[kind][at] for kind, at in examples.items()]
captions = [one.caption for one in shown_scenes]
heads = list(map(":\n".join, zip(KINDS, captions, strict=True)))
taught = make_scenes(6000, seed=0)
title = "Three test pictures, each new in its own way"
draw_kinds(draw_scenes(shown_scenes), heads, title)

# %% tags=["hide-input"]
from course_lib.data import NEW_THINGS

shapes = "circle ring triangle square cross".split()
diagonal = zip("red green blue yellow white".split(), shapes, strict=True)
assert set(diagonal) == NEW_THINGS
assert len({thing for one in taught for thing in one.things}) == 20
together = {tuple(sorted(one.things)) for one in taught}
for kind, scenes in exams.items():
    for one in scenes:
        assert bool(NEW_THINGS & set(one.things)) == (kind == "new thing")
        if kind == "new pair":
            assert tuple(sorted(one.things)) not in together

# %% [markdown]
# The baseline, `nearest_captions`: the caption of the nearest training picture.

# %%
of_captions = Predict(
    "New things: what share of captions will be right, word for word?",
    unit="%",
    off_by=10,
    section="Three kinds of unseen",
)
of_captions

# %% tags=["hide-input"]
taught_pixels = draw_scenes(taught, seed=0).flatten(1)


def nearest_captions(kind):
    """Share of test pictures whose nearest training picture has the right caption."""
    scenes = make_scenes(300, seed=6000, kind=kind)
    pixels = draw_scenes(scenes, seed=6000).flatten(1)
    nearest = torch.cdist(pixels, taught_pixels).argmin(dim=1).tolist()
    said = [taught[number].caption for number in nearest]
    return sum(a == b.caption for a, b in zip(said, scenes, strict=True)) / 300


# %% tags=["hide-input"]
near = {kind: nearest_captions(kind) for kind in KINDS}
for kind in KINDS:
    print(f"{kind:10} {told(seeds('captions', kind)):14} nearest: {near[kind]:.0%}")
of_captions.reveal(round(100 * sum(seeds("captions", "new thing")) / 3))
for wrong, wanted in seeds("captions", "wrong, new thing")[0][:3]:
    print(f"  said: {wrong}; right: {wanted}")

# %% tags=["hide-input"]
assert min(seeds("captions", "known")) > 0.9 and near["known"] < 0.4
assert min(seeds("captions", "new pair")) > 0.85 and near["new pair"] == 0
assert max(seeds("captions", "new thing")) < 0.25 and near["new thing"] == 0
for wrong, wanted in seeds("captions", "wrong, new thing")[0][:3]:
    pairs_of_words = list(zip(wrong.split(), wanted.split(), strict=True))
    (differs,) = [(a, b) for a, b in pairs_of_words if a != b]
    assert set(differs) <= set(shapes)

# %% [markdown]
# The right color, a wrong shape, three times.
#
# On known things and new pairs the captioner is far ahead of the nearest picture, which never gives a new caption.
# A person who knows *yellow* and *square* can say *yellow square*. After 1,000 steps this model mostly cannot.
# What it has not learned yet is **compositional generalization**: combining known parts in a new way [@lake2018].
# A single number, "96 % on unseen pictures", would have hidden it.
#
# Is it always the shape? We ask about pictures with one thing.


# %% tags=["hide-input"]
def single(kind, seed):
    """Scenes of one thing, and their pictures."""
    scenes = [one for one in make_scenes(4000, seed, kind=kind) if len(one.things) == 1]
    return scenes, draw_scenes(scenes, seed=seed)


tests = {kind: single(kind, seed=90) for kind in ("known", "new thing")}
right = {}
for kind, (scenes, pictures) in tests.items():
    said = [caption.split() for caption in captions_of(captioner, pictures)]
    wanted = [one.caption.split() for one in scenes]
    both = list(zip(said, wanted, strict=True))
    hits = [[a[at : at + 1] == [b[at]] for a, b in both] for at in (1, 2)]
    right[kind] = [sum(hit) / len(both) for hit in hits]
    print(f"{kind:10} right color {right[kind][0]:.1%}, shape {right[kind][1]:.1%}")

# %% tags=["hide-input"]
assert min(right["new thing"][0], *right["known"]) > 0.95
assert right["new thing"][1] < 0.4

# %% [markdown]
# On new things the color is right, and the shape mostly is not.
# Is this a limit of the model, or of its training?
# The record also has captioners that were trained longer, on the same 6,000 pictures and on 20,000 of the same known things.

# %%
of_longer = Predict(
    "12,000 steps, 20,000 pictures: what share of captions of new things is right?",
    unit="%",
    off_by=10,
    section="Three kinds of unseen",
)
of_longer

# %% tags=["hide-input"]
print(f"{'steps, pictures':17}", *(f"{kind:15}" for kind in KINDS))
trainings = {
    " 1,000,  6,000": "captions",
    " 4,000,  6,000": "captions, longer",
    " 4,000, 20,000": "captions, longer, more",
    "12,000, 20,000": "captions, longest, more",
}
for name, side in trainings.items():
    print(f"{name:17}", *(f"{told(seeds(side, kind)):15}" for kind in KINDS))
of_longer.reveal(round(100 * sum(seeds(side, "new thing")) / 3))

# %% tags=["hide-input"]
for kind in ("known", "new pair"):
    assert min(min(seeds(side, kind)) for side in list(trainings.values())[1:]) > 0.98
assert min(seeds(side, "known") + seeds(side, "new pair")) == 1
new_things = [seeds(side, "new thing") for side in trainings.values()]
assert max(new_things[0]) + 0.1 < min(new_things[1]) < max(new_things[1]) < 0.6
assert 0.55 < min(new_things[2]) < max(new_things[2]) < min(new_things[3])
assert 0.7 < min(new_things[3]) < max(new_things[3]) < 0.8

# %% [markdown]
# Longer training on more pictures removed most of these errors.
# Four times the steps, on the *same* pictures: from 12 % to 49 %. More pictures perhaps help: 63 %. Three times the steps on these: 74 %, though no training picture shows a new thing.
# A quarter is still wrong; longer trainings we have not measured.
#
# By the other two columns, the model was finished after 4,000 steps.
#
# Back to the captioner of 1,000 steps: is the shape in its memory at all? We ask a **linear probe** (lesson [12](12_reading_attention.ipynb)), from the mean of the memory's vectors to the shape.
# It learns from other pictures of all 25 things, the new ones too. (*Untrained* is a random encoder.)

# %% tags=["hide-input"]
import random
from functools import partial

from matplotlib.patches import Rectangle
from sklearn.preprocessing import StandardScaler

from course_lib.data import compose
from course_lib.families import Captioner

COLORS = ["red", "green", "blue", "yellow", "white"]
every = [(color, shape) for color in COLORS for shape in shapes]
is_new = torch.tensor([thing in NEW_THINGS for thing in every])


# %% tags=["hide-input"]
def equally_often(number, seed):
    """Things, each so many times, and a picture of each."""
    things, rng = every * number, random.Random(seed)
    scenes = [compose([thing], "", rng) for thing in things]
    return things, draw_scenes(scenes, seed=seed)


def by_thing(right):
    """The share right of each thing; the things come in turn."""
    return torch.tensor(right).view(-1, len(every)).float().mean(dim=0)


# %% tags=["hide-input"]
def probed(model, seed):
    """Share of each thing's shapes that a probe of the memory has right."""
    things, pictures = equally_often(50, 2 * seed + 1)
    asked, others = equally_often(20, 2 * seed + 2)
    with torch.no_grad():
        x, new_x = (model.encode(each).mean(dim=1) for each in (pictures, others))
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probe.fit(x.numpy(), [shape for _, shape in things])
    said = probe.predict(new_x.numpy())
    return by_thing([a == shape for a, (_, shape) in zip(said, asked, strict=True)])


# %% tags=["hide-input"]
def decoded(seed):
    """Share of each thing's shapes that the captioner's own decoder has right."""
    asked, others = equally_often(20, 2 * seed + 2)
    said = (caption.split()[2:3] for caption in captions_of(captioner, others))
    return by_thing([a == [shape] for a, (_, shape) in zip(said, asked, strict=True)])


# %% tags=["hide-input"]
torch.manual_seed(0)
untrained = Captioner(captioner.config, side=16, patch=4, channels=3).eval()
readers = {
    "decoder": decoded,
    "probe": partial(probed, captioner),
    "probe, untrained": partial(probed, untrained),
}
print("shape right (guess: 20 %), mean and interval of three draws of pictures")
print(f"{'':17} {'known things':14} new things")
shape_right, halves = {}, {}  # a reader to shares: (3, 25), and of known and new things
for name, reader in readers.items():
    shape_right[name] = of = torch.stack([reader(seed) for seed in range(3)])
    runs = [of[:, part].mean(dim=1).tolist() for part in (~is_new, is_new)]
    halves[name] = [sum(each) / 3 for each in runs]
    print(f"{name:17} {told(runs[0]):14} {told(runs[1])}")

# %% tags=["hide-input"]
assert halves["decoder"][0] > 0.9 and 0.15 < halves["decoder"][1] < 0.3
assert halves["probe"][0] > 0.8 and 0.7 < halves["probe"][1] < 0.9
assert 0.35 < halves["probe, untrained"][1] < 0.5

# %% tags=["hide-input"]
squares = {"the decoder says": "decoder", "a probe of the memory reads": "probe"}
squares = {key: shape_right[of].mean(dim=0).view(5, 5) for key, of in squares.items()}
panes = [Panel(of, COLORS, shapes, key, "weights") for key, of in squares.items()]
title = "New things are on the diagonal: a probe reads most of their shapes"
words = {"weights": "share of shapes right"}
figure = panels(panes, title=title, per_row=2, words=words)
for axes in figure.axes[:2]:
    for at in range(5):
        look = dict(fill=False, lw=2.5, edgecolor="#d55e00", clip_on=False)
        axes.add_patch(Rectangle((at - 0.5, at - 0.5), 1, 1, **look))
figure

# %% tags=["hide-input"]
by_decoder, by_probe = (of.diag() for of in squares.values())
assert by_probe.mean() > 0.6 > 0.45 > by_decoder.mean()
assert by_probe[3] > 0.6 and by_decoder[3] < 0.2  # the yellow square
assert (by_probe > by_decoder).sum() >= 4
assert by_decoder[4] > by_decoder[:4].sum()  # the white cross

# %% [markdown]
# On new things this probe, which was shown them, reads 84 % of the shapes (42 % from an untrained encoder). The decoder names 20 %, mostly through the white cross.
# So this captioner's memory holds most shapes; why its decoder misses them, this does not tell.
#
# **A common mistake**: reporting a result on "unseen" examples without saying what was unseen.
#
# ## What was gained?
#
# Six models, one block. What did they gain over their baselines?


# %% tags=["hide-input"]
@styled
def draw_gains(gains, title):
    """A row for each result: the baseline a ring, the model a dot with its interval."""
    figure = new_figure(title, 9.0, 0.9 + 0.34 * len(gains))
    one, places = figure.subplots(), range(len(gains))[::-1]
    for at, (runs, cheap) in zip(places, gains.values(), strict=True):
        mean, line = mean_estimate(runs), "-" if cheap else ":"
        one.plot([cheap, mean.value], [at, at], color="#cccccc", linewidth=5, zorder=1)
        one.hlines(at, max(mean.low, 0), min(mean.high, 1), "#222222", lw=1, zorder=2)
        one.scatter(mean.value, at, s=60, color="#0072b2", zorder=3)
        one.scatter(cheap, at, 110, "none", ls=line, edgecolor="#d55e00", zorder=4)
    one.set(yticks=list(places), yticklabels=gains, xlim=(-0.03, 1.03))
    words = "share right (ring: baseline, dotted: always 0; line: 95 % interval)"
    one.set_xlabel(words)
    return figure


# %% tags=["hide-input"]
near_tree = sum(near_trees[1]) / 3
gains = {  # name: three seeds, baseline
    "digits": (seeds("digits", "test"), nearest_share),
    "blanks, 4,000 sentences": (seeds("masked", "valid"), counted[4000]),
    "blanks, 40,000 sentences": (seeds(longer, "valid"), counted[40_000]),
    "odd or sensible, 40,000 sentences": (more_after[1000], sum(simple[1000]) / 3),
    "parser, up to 10 tokens": (seeds("parser", "perfect, test"), near_tree),
}
for kind in KINDS:
    gains[f"captioner, {kind}"] = seeds("captions", kind), near[kind]
gains["captioner, new thing (20,000 pictures)"] = new_things[-1], near["new thing"]
draw_gains(gains, "Digits and blanks (4,000) tie; the other rows gain on average")

# %% tags=["hide-input"]
gained = [sum(runs) / 3 - cheap for runs, cheap in gains.values()]
assert max(map(abs, gained[:2])) < 0.03 < 0.08 < min(gained[2:])
assert gained[5] > 0.1 + max(gained[:5]) and near["new pair"] == near["new thing"] == 0

# %% [markdown]
# Where the circles lie on each other, the nearest example or a table of counts is as good.
# Of the rows whose baseline can be right, *captioner, known* gains most.
# Rows differ in data and in what counts as right: compare only within a row. (*Odd or sensible*: only the model also read 40,000 sentences without labels. Last row: 12,000 steps. Weaker settings and the writer are left out.)
#
# And which design is used elsewhere? Cover the last two columns, and decide.
#
# | what it does | goes in | comes out | design | for example |
# |---|---|---|---|---|
# | search by meaning | a text | a vector, near those of similar texts | encoder only | Sentence-BERT [@reimers2019] |
# | summaries | a text | a shorter text | encoder-decoder, or decoder only | T5 [@raffel2020] |
# | chat | a conversation | its continuation | decoder only | InstructGPT [@ouyang2022] |
# | code | a program with a gap | what is missing | decoder only; reads both sides of the gap, then writes | Code Llama [@roziere2023] |
# | chat about a picture | patches, through a vision transformer, then a question | an answer | decoder only, behind the vision transformer | LLaVA [@liu2023] |
# | speech to text | frames of a spectrogram, through two convolutions | a text | encoder-decoder | Whisper [@radford2023] |
# | detection | the feature map of a convolutional network, and learned queries | a box and a label for each query | encoder-decoder without a causal mask | DETR [@carion2020] |
#
# If the output is a label or a vector, one usually takes an encoder. If it continues the input, a decoder. If it is another sequence, both, or one decoder that reads the source and then writes the target, as most large language models do.
#
# ## Today's language models
#
# Back to the writer. What does Llama 3 or a chat model have that it lacks?
# Size and data, first of all. Then there are changes to the block, and two more trainings.
#
# ### Today's block
#
# The plan is still ours; the parts changed:
#
# | part | the paper (2017) | Llama 3 [@grattafiori2024] | why |
# |---|---|---|---|
# | norm | LayerNorm, after the sum | **RMSNorm** [@zhang2019], before the sub-layer | *before*: deep stacks train more easily (lesson [06](06_encoder.ipynb)); *RMS*: less to compute |
# | positions | sinusoids, added to the words | rotary (lesson [13](13_positions_past_the_paper.ipynb)) | scores depend on the distance of two tokens |
# | keys and values | as many heads as queries | 8 heads for 32 or more ([14](14_cost_and_memory.ipynb#Fewer-keys-than-queries)) | a smaller cache |
# | feed-forward | ReLU, d_ff = 4 d_model | **SwiGLU** [@shazeer2020], d_ff = 3.25 to 3.5 d_model | a lower loss at the same size; Shazeer offers no explanation |
#
# GPT-2 [@radford2019] stands between them: the norm before the sub-layer, learned positions, and GELU, a smooth ReLU.
#
# RMSNorm does not subtract the mean. It divides by the square root of the mean of the squares.
# SwiGLU (`GatedFeedForward`) multiplies two projections, number by number. One of them has gone through SiLU, z · sigmoid(z), and works as a gate: where it is near 0, nothing passes.


# %%
from torch.nn.functional import scaled_dot_product_attention as attend

from course_lib.position import Rotary


class GatedFeedForward(nn.Module):
    """SwiGLU: one projection decides how much of another one passes."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


# %% [markdown]
# `LlamaBlock` puts the parts of the Llama 3 column together, without biases.
# (`attend` is PyTorch's fused attention; `enable_gqa=True` lets several heads of queries share a head of keys and values.)


# %%
class LlamaBlock(nn.Module):
    def __init__(self, d_k, heads, key_heads, feed_forward):
        super().__init__()
        d_model, self.split = d_k * heads, [heads, key_heads, key_heads]
        self.norm1, self.norm2 = nn.RMSNorm(d_model), nn.RMSNorm(d_model)
        self.all_proj = nn.Linear(d_model, sum(self.split) * d_k, bias=False)
        self.output_proj = nn.Linear(d_model, d_model, bias=False)
        self.rotary, self.feed_forward = Rotary(max_len=64, d_k=d_k), feed_forward

    def forward(self, x):  # (batch, length, d_model)
        each = self.all_proj(self.norm1(x)).unflatten(-1, (sum(self.split), -1))
        query, key, value = each.transpose(1, 2).split(self.split, dim=1)
        query, key, _ = self.rotary(query, key)  # (batch, heads, length, d_k)
        context = attend(query, key, value, is_causal=True, enable_gqa=True)
        x = x + self.output_proj(context.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norm2(x))


# %% tags=["hide-input"]
torch.manual_seed(0)
block, x = LlamaBlock(8, 8, 2, GatedFeedForward(64, 172)), torch.randn(1, 9, 64)
other = x.clone()
other[:, -1] += 1  # another last token
with torch.no_grad():
    change = (block(other) - block(x)).abs().amax(dim=2)[0]
old = EncoderLayer(64, 8, 256, 0.0)
for name, layer in (("lesson 06's, d_ff 256", old), ("Llama's way, d_ff 172", block)):
    numbers = sum(each.numel() for each in layer.parameters())
    print(f"{name:22} {numbers:,} parameters")
print(f"a new last token moves itself {change[-1]:.1f}", end=", ")
print(f"earlier ones {change[:-1].max():.0f}")

# %% tags=["hide-input"]
assert change[:-1].max() == 0 < change[-1]
normed = x / (x.square().mean(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt()
torch.testing.assert_close(block.norm1(x), normed)
with torch.no_grad():  # of rotary: words moved along together change no score
    query = block.all_proj(x[:, :1].expand(1, 9, 64)).unflatten(-1, (12, -1))
    query, key, _ = block.rotary(*query.transpose(1, 2).split([8, 4], dim=1))
    scores = (query[0, 0, 3:] * key[0, 0, :-3]).sum(dim=-1)
assert (scores - scores[0]).abs().max() < 1e-4

# %% [markdown]
# With three matrices instead of two, a d_ff two thirds as large keeps the size of the feed-forward network.
# (Llama 3's is larger than that.) The block is smaller mostly because its keys and values have fewer heads. Earlier tokens do not move: it is causal.
#
# ### From a language model to an assistant
#
# Our writer only continues text.
# But a source and its target can be written as one text: `does his daughter open the wardrobe ? <tree> (SQ XX (NP …`.
# With the loss on the part after `<tree>`, the writer's class becomes a parser, without cross-attention. A picture can go in the same way, its patches in front: one model and one loss serve every task.
# The price: under a causal mask the words of the source do not see what follows them.
# Put a few solved examples of a task in front, and a very large model often solves the next one: **in-context learning** [@brown2020]. No weight changes.
# For an assistant, two more trainings follow.
#
# - **Instruction tuning**: the writer's loss, on conversations with good answers, usually on the answer alone: in `<user> What is 2 + 2 ? <assistant> 4 </s>` at `4` and `</s>`.
# - **Preference learning**: people say which of two answers is better. Either a second model learns to predict their choice, and its score is used as a reward [@ouyang2022], or the better answer is made more probable directly, compared with the worse one [@rafailov2023].
#
# Block, mask and sampling stay as they are.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **encoder-only model**: the left half of figure 1; each token's vector has seen the whole input.
# - **decoder-only model**: one stack with a causal mask that predicts the next token.
# - **encoder-decoder model**: both halves; something is read, something else is written.
# - **language model**: a model that gives a probability to what comes next.
# - **bits per character**: mean of log₂(1 / probability of the right character).
# - **masked language model**: an encoder-only model trained to fill in blanks.
# - **pretraining**: training on much data, usually without labels, before fine-tuning.
# - **fine-tuning**: further training of a trained model on another task.
# - **patches**: small squares of a picture, which take the place of tokens.
# - **class token**: a learned vector in front, whose output stands for the whole input.
# - **vision transformer**: an encoder-only model that reads patches.
# - **image captioner**: an encoder-decoder model from pictures to sentences.
# - **compositional generalization**: being right about new combinations of known parts.
# - **linear probe**: a linear layer trained to read a property from a model's vectors.
# - **constituency tree**: labeled brackets around the words that belong together.
# - **linearized tree**: a constituency tree as a row of tokens.
# - **labeled F1**: 2 · right / (said + wanted), over constituents.
# - **RMSNorm**: a layer norm that does not subtract the mean.
# - **SwiGLU**: a feed-forward network in which one projection gates another.
# - **in-context learning**: doing a task from examples in the text, without training.
# - **instruction tuning**: training a language model on conversations with good answers.
# - **preference learning**: training a language model with pairs of answers of which people prefer one.

# %% [markdown]
# ## Summary
#
# A decoder layer without a memory is an encoder layer with a causal mask, so one class builds both kinds of one-stack models. None of the six models needed a new attention class.
# What such a model does is decided by its mask, its tokens and its target.
# Today's language models have gates, other norms and positions, and fewer key heads, in the same plan.
#
# That the blocks fit a task does not make them the best choice. Counts were about as good as the writer (3,000 steps) and the blanks model (4,000 sentences), and the nearest picture was as good as the vision transformer.
# With 1,000 labels, pretraining on blanks helped the classifier, and more pretraining helped it more.
#
# "Unseen" can mean a new picture, a new pair or a new thing. After a short training the captioner is wrong on most new things (a yellow square is "a yellow circle"), though a probe that was shown them reads most of their shapes; after a long one, on more pictures, it is right on most.
#
# **Practice**: [assignment 16](assignments/release/16_one_block_many_models/16_one_block_many_models.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [17](17_scaling_out.ipynb) trains on more data and in more processes.
