# %% [markdown]
# # 16 · One block, many models: what else the same layers do
#
# **Question.** The paper has one encoder, one decoder and one task. BERT, GPT, vision transformers and captioners are said to be "Transformers", too. What of them is new, and what do we have already?
#
# **Afterwards you can**
#
# 1. name the shape of a model, encoder only, decoder only or both, from what goes in and what comes out;
# 2. build each of them from the blocks of lessons 03 to 08, without a new attention class;
# 3. say what "unseen" means in a result, and test which kind of unseen a model can do.
#
# **You need** the blocks (lessons [06](06_encoder.ipynb) and [07](07_decoder.ipynb)), masks ([05](05_masks.ipynb)) and decoding ([11](11_decoding.ipynb)).
# **Time**: {minutes} minutes to read, under 150 seconds to run.
# **In the paper**: section 6.3 parses English; the conclusion hopes for "images, audio and video" [@vaswani2017].

# %%
import torch
from torch import nn

from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other

# %% [markdown]
# ## Which half is which
#
# Figure 1 of the paper has a left and a right half.
# Each can stand alone.
#
# - **Encoder only**: keep the left half. A text goes in, a vector for each token comes out, and each of them has seen the whole text.
# - **Decoder only**: keep the right half, without the memory. The beginning of a text goes in, and at each place the next token is predicted.
# - **Encoder-decoder**: keep both. Something is read, and something else is written.
#
# A decoder layer has three sub-layers: masked self-attention, attention to the memory, and a feed-forward network.
# Without a memory the second has nothing to attend to, and it goes.
# What is left?

# %%
of_parts = Predict(
    "A decoder layer without its attention to the memory: which layer of the library is that?",
    ["none, it needs a class of its own", "EncoderLayer, called with a causal mask"],
    section="Which half is which",
)
of_parts

# %%
from course_lib.blocks import DecoderLayer, EncoderLayer
from course_lib.masks import causal_mask

torch.manual_seed(0)
decoder, encoder = DecoderLayer(16, 4, 32, 0.0, norm_first=True), EncoderLayer(16, 4, 32, 0.0, norm_first=True)
nn.init.zeros_(decoder.cross_attn.output_proj.weight)  # the memory adds nothing
nn.init.zeros_(decoder.cross_attn.output_proj.bias)
shared = {name: of for name, of in decoder.state_dict().items() if "cross" not in name}
encoder.load_state_dict(shared)
x, memory = torch.randn(1, 6, 16), torch.randn(1, 3, 16)
gap = (decoder(x, memory, causal_mask(6)) - encoder(x, causal_mask(6))).abs().max().item()
of_parts.reveal(of_parts.choices[int(gap < 1e-6)])
print(f"largest difference of the outputs: {gap:.0e}")

# %% tags=["hide-input"]
assert gap < 1e-6

# %% [markdown]
# So a model like GPT [@radford2018] is a stack of *encoder* layers, and only the mask makes a decoder of it.
# Here it is, whole.


# %%
from course_lib.config import ModelConfig
from course_lib.position import LearnedPosition
from course_lib.transformer import Embedding, Encoder


class OurLanguageModel(nn.Module):
    """The beginning of a text to the logits of what comes next, at each place."""

    def __init__(self, config):
        super().__init__()
        self.embedding = Embedding(config)
        self.stack = Encoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, ids):
        mask = causal_mask(ids.shape[1])
        x = self.stack(self.embedding(ids), mask)  # (batch, length, d_model)
        return self.generator(x)  # (batch, length, vocab)


# %%
from course_lib.families import LanguageModel

config = ModelConfig(vocab_size=30, d_model=32, num_heads=4, num_layers=2, d_ff=64, dropout=0.0)
ours, theirs = OurLanguageModel(config), LanguageModel(config)
ours.load_state_dict(theirs.state_dict())
ids = torch.randint(4, 30, (2, 9))
print("ours equals the library's:", torch.allclose(ours(ids), theirs(ids)))

# %% tags=["hide-input"]
torch.testing.assert_close(ours(ids), theirs(ids))

# %% [markdown]
# ## A model that writes, letter by letter
#
# We give it sentences of the course corpus, one character at a time, and ask at each character for the next.
# There is no second text: the target is the text itself, moved by one place.
# That is a **language model**, and it needs nothing but text.

# %%
from course_lib.experiments import CHARACTERS, sentences_to_write, train_writer

texts, unseen = sentences_to_write(seed=0)
writer = train_writer(texts, seed=0)
print(texts[20])
print("characters:", len(CHARACTERS) - 4, "and four special tokens")

# %% [markdown]
# To write, we start with `<s>`, draw a character from the predicted distribution, append it and read again.
# Temperature, top-k and top-p are those of lesson 11: `write` calls the same function.

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
# Nobody has told the model what a word is, or a sentence.
# How much of it are words that the training texts have, and does it copy whole sentences?
# The record `families.json` has three seeds, each examined by sentences that it never saw.
# **Bits per character** say how surprised a model is: log₂ of one over the probability that it gave to the right one.

# %%
from course_lib.experiments import final_results, read_record
from course_lib.metrics import mean_estimate

record = read_record("records/families.json")


def told(side, result, form="{:.1%}"):
    """Mean of three seeds, with the interval that holds it in 95 of 100 repetitions."""
    found = mean_estimate(final_results(record, result)[side])
    return f"{form.format(found.value)} ({form.format(found.low)} to {form.format(found.high)})"


print("bits a character:", told("writer", "bits", "{:.2f}"))
print("known words:", told("writer", "known words"))
print("whole sentences copied from training:", told("writer", "copied"))

# %% [markdown]
# ## A model that reads: holes
#
# An encoder sees both sides of each word, so "predict the next one" would be no exercise: it can look.
# BERT's exercise [@devlin2019] hides some of the words, and asks for them.
# That is a **masked language model**.
# 15 percent of the words are asked for; of ten of those, eight become `<mask>`, one becomes a random word, and one stays, so that the model cannot rely on seeing a `<mask>` where it is asked.


# %%
def our_holes(ids, mask_id, vocab_size, generator):
    """Ids with holes, and what stood there; -100 where nothing is asked."""
    def draw():
        return torch.rand(ids.shape, generator=generator)

    asked = (draw() < 0.15) & (ids > 3)  # no special tokens
    fate, other = draw(), torch.randint(5, vocab_size, ids.shape, generator=generator)
    holes = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, other, ids))
    return torch.where(asked, holes, ids), torch.where(asked, ids, -100)


# %% [markdown]
# What is it good for?
# Its vectors have to know which words fit where, and that was learned without a single label.
# A **classifier** puts one linear layer on the vector of the first token, `<s>`, and goes on training with few labeled examples: **fine-tuning**.
#
# Our question: is a sentence sensible or odd?
# In every second one, a noun was exchanged for one of another kind.

# %% tags=["nbval-check-output"]
from course_lib.experiments import labeled_sentences

for sentence, odd in labeled_sentences(12, seed=3)[4:]:
    print("odd     " if odd else "sensible", " ".join(sentence))

# %%
of_holes = Predict(
    "100 labeled sentences: what share does a classifier without pretraining get right?",
    unit="%",
    off_by=5,
    section="A model that reads: holes",
)
of_holes

# %%
for labels in (100, 1000):
    for name in ("from scratch", "pretrained"):
        print(f"{labels:5} labels, {name:12}:", told("masked", f"{name}, {labels}"))

# %% [markdown]
# ## Patches instead of words
#
# A picture becomes a sentence when it is cut into **patches**, small squares, read row by row [@dosovitskiy2021].
# Here is one of scikit-learn's handwritten digits, 8 × 8 pixels, and its first patches of 2 × 2 by hand.

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
# In front we put one more vector, learned, the **class token**: its output stands for the whole picture, as `<s>` did for a sentence.
# A model of that kind is a **vision transformer**, and this is all of it:


# %%
class OurVisionTransformer(nn.Module):
    """Pictures (batch, 1, 8, 8) to the logits of ten classes."""

    def __init__(self, config):
        super().__init__()
        self.patch_proj = nn.Linear(4, config.d_model)
        self.class_token = nn.Parameter(torch.randn(config.d_model))
        self.position = LearnedPosition(config.max_len, config.d_model)
        self.encoder, self.head = Encoder(config), nn.Linear(config.d_model, 10)

    def forward(self, pictures):
        rows = pictures[:, 0].unflatten(1, (4, 2)).unflatten(3, (4, 2))  # (batch, 4, 2, 4, 2)
        patches = rows.transpose(2, 3).flatten(3).flatten(1, 2)  # (batch, 16, 4)
        first = self.class_token.expand(len(patches), 1, -1)
        x = torch.cat([first, self.patch_proj(patches)], dim=1)  # (batch, 17, d_model)
        return self.head(self.encoder(self.position(x))[:, 0])


# %%
from course_lib.experiments import train_digits

digits = train_digits(train, seed=0)

# %% [markdown]
# While it learned, nobody told it which patches are neighbors: it knows a place only by its learned position.

# %%
from course_lib.experiments import right_share

share = right_share(digits, test.pictures, test.classes)
print(f"right on {len(test.classes)} digits that it never saw: {share:.1%}")
print("three seeds:", told("digits", "test"))

# %% tags=["hide-input"]
assert share >= 0.97

# %% [markdown]
# Where does the class token look?
# `record_weights` listens to any attention module, as `record_attention` did to a Transformer's.

# %%
from course_lib.recording import record_weights

layers = [layer.self_attn for layer in digits.picture_encoder.encoder.layers]
with record_weights(layers) as weights, torch.no_grad():
    digits(test.pictures[:1])
looks = weights[-1][0, :, 0, 1:].unflatten(1, (4, 4))  # (heads, patch rows, patch columns)
for head, look in enumerate(looks):
    row, column = divmod(look.argmax().item(), 4)
    print(f"head {head}: {look.max():.0%} on the patch in row {row}, column {column}")

# %% [markdown]
# Paint a digit of your own, and let the model of letters go on with a beginning of yours:

# %%
from course_lib.widgets import ModelPlayground

ModelPlayground(digits, writer, CHARACTERS, test.pictures[:3, 0])

# %% [markdown]
# ## A picture in, a sentence out
#
# The decoder attends to vectors, and does not ask where they are from.
# So we put a picture on the left of figure 1 and words on the right.
# `Captioner` has the Transformer's calls, with pictures for sources, and `greedy` of lesson 11 decodes it as it is.
#
# The pictures are generated: one or two colored shapes, and the caption names colors, shapes and their relation.
# Three kinds of test pictures are **held out** differently:
#
# - *known*: new pictures of what training shows;
# - *new pair*: two things that training shows, never together;
# - *new thing*: a color and a shape that training shows, never together: no training picture has a red circle.

# %%
of_captions = Predict(
    "New things: what share of captions will be right, word for word?",
    unit="%",
    off_by=10,
    section="A picture in, a sentence out",
)
of_captions

# %%
for kind in ("known", "new pair", "new thing"):
    print(f"{kind:10}", told("captions", kind))
for said, right in final_results(record, "wrong, new thing")["captions"][0][:3]:
    print(f"  said: {said}; right: {right}")

# %% [markdown]
# ## A sentence in, a tree out
#
# A **constituency tree** puts brackets around words that belong together, and labels them: NP is a noun phrase, VP a verb phrase.
# The grammar behind the course corpus knows the trees of its sentences.

# %% tags=["nbval-check-output"]
from course_lib.experiments import tree_bank

for words, row in tree_bank(60, seed=0)[50:53]:
    print(" ".join(words), "\n  ", " ".join(row))

# %% [markdown]
# That is a **linearized tree**: a row of brackets, with XX for each word.
# Section 6.3 of the paper lets the model translate sentences into such rows, as @vinyals2015 did.
# So a parser is no new model at all; it is the Transformer of lesson 08 with another target.
#
# **Labeled F1** is its measure.
# A constituent is right if its label, its first and its last word are right; precision is the share of right ones among those said, recall among those wanted, and F1 is 2 · right / (said + wanted).

# %% tags=["nbval-check-output"]
from course_lib.grammar import labeled_f1

wanted = "(S (NP XX XX )NP (VP XX (NP XX XX )NP )VP )S".split()
said = "(S (NP XX XX )NP (VP XX XX XX )VP )S".split()
print("right 3, said 3, wanted 4:", 2 * 3 / (3 + 4))
print("the library's:            ", labeled_f1([said], [wanted]))

# %%
for name, of in (("test", "up to 10 words, as in training"), ("longer", "longer than in training")):
    print(f"{of:32} F1 {told('parser', name)}, perfect trees {told('parser', f'perfect, {name}')}")

# %% [markdown]
# The paper reaches 91.3 on the Wall Street Journal with 40,000 trees [@vaswani2017, table 4]; our grammar is far smaller, and the numbers cannot be compared.
#
# ## Which shape is it?
#
# | what it does | goes in | comes out | shape |
# |---|---|---|---|
# | summaries | a text | a shorter text | encoder-decoder, or decoder only: the text is the beginning |
# | answers to questions, chat | a conversation | its continuation | decoder only |
# | answers marked in a text | question and text | first and last word | encoder only, two scores for each word |
# | code | a program with a gap or a beginning | what is missing | decoder only |
# | search | a text | one vector | encoder only |
# | speech to text | frames of a spectrogram | a text | encoder-decoder; frames are patches |
# | music and speech from text | a text | codes of sound | decoder only, or encoder-decoder |
# | pictures made from text | a text, and noise or codes of patches | codes, or a picture with less noise | decoder only over codes; encoder layers inside a diffusion model |
# | detection | patches, and learned queries | a box and a label for each query | encoder-decoder without a causal mask |
# | proteins | a row of amino acids | a vector for each | encoder only |
#
# Almost every line is a question of what is cut into tokens, and of what the model writes.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **encoder-only model**: the left half of figure 1; each token's vector has seen the whole text.
# - **decoder-only model**: one stack with a causal mask that predicts the next token.
# - **encoder-decoder model**: both halves; something is read, something else is written.
# - **language model**: a model that gives a probability to what comes next.
# - **masked language model**: an encoder-only model trained to fill holes.
# - **fine-tuning**: further training of a trained model on another task.
# - **bits per character**: mean of log₂ of one over the probability of the right character.
# - **patch**: a small square of a picture, which takes the place of a token.
# - **class token**: a learned vector in front, whose output stands for the whole input.
# - **vision transformer**: an encoder-only model that reads patches.
# - **constituency tree**: labeled brackets around the words that belong together.
# - **linearized tree**: the same as a row of tokens.
# - **labeled F1**: 2 · right / (said + wanted), over constituents.

# %% [markdown]
# ## Summary
#
# A decoder layer without a memory is an encoder layer with a causal mask, so one class builds both kinds of one-stack models.
# What a model of such blocks does is decided by its mask, by what is cut into tokens, and by the exercise that it is trained with.
# Patches need a linear layer in the place of the embedding table, a caption needs only another memory, and a parser needs nothing new at all.
# A model that has filled holes knows which words fit, and needs fewer labels for a question about that.
# "Unseen" can mean a new picture, a new pair or a new combination of properties, and a result that does not say which says little.
#
# **Next**: lesson 17 trains on more than one machine.
