# %% [markdown]
# # 00 · Welcome: the whole thing first
#
# **Question.** What happens between an English sentence and its German translation?
#
# **Afterwards you can**
#
# 1. translate sentences with a Transformer that runs on your own machine, offline;
# 2. look at what it attended to while it chose each German token;
# 3. say what the encoder does, what the decoder does, and what goes between them.
#
# **You need** Python, and a little PyTorch: tensors, modules, `loss.backward()`.
# **Time**: {minutes} minutes to read, under 20 seconds to run.
# **In the paper**: section 1, which says why; figure 1, in outline [@vaswani2017].

# %% [markdown]
# ## Why another network?
#
# What do you know of all this already? [Twelve questions](assignments/release/00_concepts_before/00_concepts_before.ipynb) ask for it before the course, and once more after lesson 18, where you see what moved.
#
# Before 2017 most neural translators were **recurrent networks**: they read word by word, updating one state vector as they go.
# That has two costs.
# Word 50 must wait for word 49.
# And what word 1 said has to survive 49 steps before word 50 can use it.
# Attention already existed, as an add-on to such networks [@bahdanau2015].
# The paper's step was to drop the recurrence, and to let **attention** alone carry information from word to word: in reading, every word looks at every other one directly, all of them at once.
# (Writing still goes one token after the other; but in training even that is done for all positions at once.)
#
# The result, the **Transformer**, was made for translation, and did not stay there, as the end of this page shows.
# It has two halves, an encoder that reads and a decoder that writes.
# First we use it; then we build it, piece by piece.
#
# ## Is everything installed?

# %%
import math

import torch

from course_lib import Translator
from course_lib.checks import written_for
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # one sentence at a time: one thread is enough
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained()
translator.model.to(device)
print(f"PyTorch {torch.__version__} on {device}: ready")

# %% tags=["hide-input"]
config = translator.model.config
assert (config.num_layers, round(config.num_parameters / 1e6)) == (3, 11)

# %% [markdown]
# The translator came with the course: its parameters are a file in `course_lib/pretrained/everyday`, next to its [model card](../course_lib/pretrained/everyday/README.md).
# It has three layers on each side and 11 million parameters; the paper's base model has six and 65 million.
# It learned from pairs of everyday sentences, which volunteers wrote and translated on [tatoeba.org](https://tatoeba.org).
# In lesson [10](10_translation.ipynb) you train a smaller one yourself, in minutes.
#
# ## Translate

# %% tags=["nbval-check-output"]
sentence = "The cat drinks the milk."
print(translator.translate(sentence))

# %% [markdown]
# Change the sentence and run the cell again: **Shift + Enter**.
# You can change any sentence: where the text relies on one, the notebook tells you and carries on.
#
# German does many things differently.
# Its verb, for example, has a position of its own:

# %%
verb = Predict(
    "“Today the boy opens the window.” Where will German put the verb?",
    ["second: before the subject", "after the subject, as in English", "last"],
    section="Translate",
)
verb

# %% tags=["nbval-check-output"]
examples = [
    "Today the boy opens the window.",
    "The old woman gave the child a red apple.",
    "The boy is sleeping because he is tired.",
    "We have to get up early tomorrow.",
    "If I had more time, I would learn German.",
    "I have been living here for ten years.",
]
for example in examples:
    print(f"{example}\n  {translator.translate(example)}")
german = translator.translate("Today the boy opens the window.").text.split()
place = next((i for i, word in enumerate(german) if word in ("öffnet", "macht")), -1)
why = "in a German main clause the verb comes second, so the subject moves after it"
verb.reveal(verb.choices[{1: 0, len(german) - 1: 2}.get(place, 1)], because=why)

# %% [markdown]
# After *Heute* (today) the verb stays in second position, so the subject moves after it.
# *The* became *die, dem, der* or *das*, by gender and case.
# After *weil* (because) the verb goes to the end.
# *Aufstehen* (get up) moved to the end, away from its *müssen* (have to).
# And English looks back with *have been living*, where German stays in the present.
# No rule for any of this is written anywhere in the model: it has learned from pairs of sentences alone.
# And it does not look them up: word for word, none of these six English sentences is among those pairs, though close relatives may be.

# %% tags=["hide-input"]
import re

claims = {
    "Today the boy opens the window.": "Heute (öffnet|macht) der Junge das",
    "The old woman gave the child a red apple.": "Die alte Frau .*dem Kind einen",
    "The boy is sleeping because he is tired.": "weil er müde ist[.]",
    "We have to get up early tomorrow.": "Wir müssen .* aufstehen[.]",
    "If I had more time, I would learn German.": "[Hh]ätte.*, würde ich .*lernen[.]",
    "I have been living here for ten years.": "(wohne|lebe) .*zehn Jahre",
}
for text, pattern in claims.items():
    assert re.search(pattern, translator.translate(text).text), text

# %% [markdown]
# Now you.
# Type a sentence of your own; it is translated while you type.
# The number beside each German piece (`</s>` ends the sentence) is the probability that the model gave it: where does it hesitate?
# (A low number may mean that the model does not know, or that several continuations are good.)

# %%
from course_lib.widgets import Playground

playground = Playground(translator, "We have to get up early tomorrow.")
playground

# %% tags=["hide-input"]
with written_for("We have to get up early tomorrow.", playground.text):
    assert playground.view["text"].endswith(" aufstehen.")

# %% [markdown]
# ## Look inside
#
# The model reads and writes **tokens**: a token is a word, a piece of one, or a punctuation mark, and `▁` marks where a word begins.
# Common words, like those of our sentence, are one token each; a rare word is put together from pieces.
# We translate once more, and this time we keep what the model looks at.

# %%
sentence = "Today the boy opens the window."
seen = translator.translate(sentence, attention=True)
print("reads: ", *seen.src_tokens)
print("writes:", *seen.tgt_tokens)
print("tendon:", *translator.tokenizer.tokens("tendon"))

# %% tags=["hide-input"]
# Recording changes nothing.
plain = translator.translate(sentence)
assert (seen.text, seen.tgt_tokens) == (plain.text, plain.tgt_tokens)
assert abs(seen.score - plain.score) < 1e-5 * abs(plain.score)
assert len(translator.tokenizer.tokens("tendon")) > 1
with written_for("Today the boy opens the window.", sentence):
    assert len(seen.src_tokens) == len(sentence.split()) + 2  # the full stop, and </s>

# %% [markdown]
# (`</s>`, the end of the sentence, is read as well.)
# Inside, a vector of numbers has been made for each English token, out of the whole sentence, and the model writes one German token after another.
# Before each one it *attends* to the English tokens: it takes a weighted mean of their vectors.
# The **attention weights** say how much of each it takes, and sum to 1.
#
# It does so in three layers, counted from 0, and in each of them in several ways at once (its *heads*, lesson [04](04_multi_head.ipynb)).
# We take the mean of the heads, and ask in each layer: how many German words look most at the English word they translate?
# The order differs, *Heute öffnet der Junge* for *Today the boy opens*, so looking at the same place is not enough.

# %%
english = dict(Heute=0, öffnet=3, der=1, Junge=2, das=4, Fenster=5)  # positions
means = [layer.mean(dim=0).cpu() for layer in seen.attention.cross]  # of the heads
hits = []
for number, weights in enumerate(means):  # weights: (German tokens, English tokens)
    pairs = zip(seen.tgt_tokens, weights.argmax(dim=1).tolist(), strict=True)
    hits.append(sum(english.get(word.strip("▁")) == look for word, look in pairs))
    print(f"layer {number}, {len(seen.attention.cross[number])} heads: {hits[-1]} of 6")
tidy = max(range(len(hits)), key=hits.__getitem__)

# %% [markdown]
# Here is the layer with the highest count, picked because it is tidy.
# A row is the German token that is being chosen, a column an English one.
# Read it row by row: where does the model look to choose this token?

# %%
from course_lib.figures import Block, attention_map, flow_figure

finding = f"In this sentence, in layer {tidy}, {hits[tidy]} of 6 German words\n"
finding += "look most at the English word they translate"
figure = attention_map(means[tidy], seen.tgt_tokens, seen.src_tokens, title=finding)
_ = figure.axes[0].set(xlabel="English", ylabel="German, being chosen")
figure

# %% tags=["hide-input"]
for weights in means:
    assert torch.allclose(weights.sum(dim=1), torch.ones(len(seen.tgt_tokens)))
with written_for("Today the boy opens the window.", sentence):
    assert hits[tidy] >= 5
    opens, boy = (seen.tgt_tokens.index(word) for word in ("▁öffnet", "▁Junge"))
    looks = means[tidy].argmax(dim=1)
    assert opens < boy and looks[opens] > looks[boy]  # the order crosses

# %% [markdown]
# Nobody told the model which words belong together: it learned from whole sentences.
# Layers and heads differ; lesson [12](12_reading_attention.ipynb) scores them, in a smaller model.
# Look at all of them here: choose a layer and a head, point at a word, type another sentence.

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, sentence, layer=tidy)
explorer

# %% tags=["hide-input"]
with written_for(sentence, explorer.text):
    assert explorer.view["src"] == seen.src_tokens

# %% [markdown]
# ## What goes where
#
# The **encoder** reads the source sentence, all of it at once, and outputs vectors: the **memory**.
# The **decoder** starts from the token `<s>`, attends to the memory and to what it has written, and predicts the next token.
# It goes on until it predicts `</s>`, the token that ends a sentence.

# %%
other_drink = Predict(
    "“The cat drinks the milk.” becomes “The cat drinks the water.” Which vectors of "
    "the memory change?",
    ["that word's", "that word's and those after it", "all of them"],
    section="What goes where",
)
other_drink

# %%
model, memories = translator.model, []
name_of = translator.tokenizer.token
for text in ("The cat drinks the milk.", "The cat drinks the water."):
    ids = [*translator.tokenizer.encode(text), model.config.eos_id]
    memories.append(model.encode(torch.tensor([ids], device=device))[0])
print(len(ids), "tokens, memory", tuple(memories[0].shape))
moved = (memories[0] - memories[1]).norm(dim=1)  # of each token's vector
for number, distance in zip(ids, moved.tolist(), strict=True):
    print(f"{name_of(number):8} moves by {distance:5.2f}")
found = other_drink.choices[2 if (moved > 0.01).all() else 0]
other_drink.reveal(found, because="each token's vector is made from the whole sentence")

# %% tags=["hide-input"]
assert len(ids) == len(memories[0]) and (moved > 0.01).all() and moved.argmax() == 4

# %% [markdown]
# The memory has one vector for each token, so a longer sentence has a longer memory.
#
# Here is the decoder at work, in the simplest way, called greedy.
# From the English tokens and the German ones so far it computes **logits**, one score for each token of its vocabulary; the best one is written, and becomes part of what is read next.
# (`translate` follows several candidates, lesson [11](11_decoding.ipynb).)

# %% tags=["nbval-check-output"]
milk = [*translator.tokenizer.encode("The cat drinks the milk."), model.config.eos_id]
so_far = [model.config.bos_id]  # <s>
while so_far[-1] != model.config.eos_id and len(so_far) < 20:
    pair = [torch.tensor([ids], device=device) for ids in (milk, so_far)]
    logits = model(*pair)[0]  # (German tokens, vocabulary)
    so_far.append(logits[-1].argmax().item())  # what follows the last one
    print(*map(name_of, so_far))

# %% [markdown]
# In training the decoder reads a *human* translation, whatever it would have written itself, and predicts all its tokens in one pass.
# A position sees only the German tokens up to its own (lesson [05](05_masks.ipynb) shows how), so no prediction has seen its answer.
# The loss is small where the human's next token got a high probability:

# %%
tired = "The boy is sleeping because he is tired."
human = "Der Junge schläft, denn er ist müde."
source = [*translator.tokenizer.encode(tired), model.config.eos_id]
so_far = [model.config.bos_id, *translator.tokenizer.encode(human)]
pair = [torch.tensor([ids], device=device) for ids in (source, so_far)]
logits = model(*pair)[0]  # (German tokens, vocabulary)
following = [*so_far[1:], model.config.eos_id]
for read, wanted, probs in zip(so_far, following, logits.softmax(-1), strict=True):
    line = f"{name_of(read):9} → {name_of(wanted):9}{probs[wanted]:5.0%}"
    print(line, "  its own guess:", name_of(probs.argmax().item()))

# %% [markdown]
# It would have written *weil* where the human wrote *denn*, two words for *because*; then it goes on from what it reads.
# Here is the same in one picture, with shapes: each token is now a vector of 256 numbers, d_model in the paper's words.

# %% tags=["hide-input"]
best = logits.argmax(dim=-1).tolist()
assert sum(map(int.__eq__, best, following)) == len(best) - 1
cut = model(pair[0], pair[1][:, :3])[0]  # nothing is read ahead
torch.testing.assert_close(cut, logits[:3], rtol=1e-3, atol=1e-3)

# %% tags=["hide-input"]
sizes = len(source), len(so_far)
d_model, vocabulary = model.config.d_model, logits.shape[1]
blocks = [
    Block("source", (sizes[0], 1), "English tokens", (0, 0)),
    Block("memory", (sizes[0], d_model), "English tokens × d_model", (1.5, 0)),
    Block("so far", (sizes[1], 1), "<s>, German tokens", (0, 1.6)),
    Block("states", (sizes[1], d_model), "German tokens × d_model", (1.5, 1.6)),
    Block("logits", logits.shape, "German tokens × vocabulary", (3, 1.6), "result"),
]
ways = [("source", "memory", "encoder"), ("so far", "states", "decoder")]
ways += [("memory", "states", "attention in it"), ("states", "logits", "linear layer")]
finding = "Two sequences go in; scores of the next token come out"
flow_figure(blocks, ways, title=finding)

# %% tags=["hide-input"]
assert memories[0].shape[1] == d_model and blocks[-1].shape == logits.shape

# %% [markdown]
# ## What it cannot do
#
# The model has learned from everyday sentences.
# What does it make of a court, a tendon and lichens?

# %%
outside = Predict(
    "“The plaintiff waived the appeal.” What will it answer?",
    ["the right German", "“unknown”, or an error", "German that is wrong"],
    section="What it cannot do",
)
outside

# %%
new = {
    "The plaintiff waived the appeal.": "Der Kläger verzichtete auf die Berufung.",
    "The tendon is inflamed.": "Die Sehne ist entzündet.",
    "Lichens grow on granite.": "Flechten wachsen auf Granit.",
}
plain = dict(length_penalty=0.0)  # so that scores are log-probabilities: lesson 11
answers = {text: translator.translate(text, **plain).text for text in new}
for text, answer in answers.items():
    print(f"{text}\n  it says  {answer}\n  right is {new[text]}")
made = [new[text] != answer for text, answer in answers.items()]
seems = outside.choices[2 if made[0] else 0]
outside.reveal(seems, because="it must write something, and never learned *plaintiff*")

# %% tags=["hide-input"]
originals = "The plaintiff waived the appeal.", "The tendon is inflamed."
originals += ("Lichens grow on granite.",)
with written_for(originals, tuple(new)):
    assert any(made) and all(answers.values())

# %% [markdown]
# It answers all the same, out of the pieces that it knows: the first means something like *the order waited the sight*, in bad grammar.
# (Of its 160,000 Tatoeba sentences none has *plaintiff*, *tendon* or *lichen*.)
# A reader who knows no German gets no warning. Do its probabilities tell?
# We take their geometric mean over the tokens of each answer.
# (Training aimed at about 90 % even for a token that is certain; lesson [09](09_training.ipynb) shows why.)

# %%
def sureness(text):
    """The geometric mean of the tokens' probabilities."""
    answer = translator.translate(text, **plain)
    return math.exp(answer.score / len(answer.tgt_tokens))


for text in (*examples, *new):
    print(f"{sureness(text):4.0%}  {text}")

# %% tags=["hide-input"]
with written_for(originals, tuple(new)):
    assert min(map(sureness, claims)) > max(map(sureness, new))

# %% [markdown]
# Here they do: it is less sure of each new sentence than of any of ours, which we chose because they come out right.
# But a model may be sure and wrong, so nine sentences are a hint and no proof.
#
# ## More than translation
#
# The same blocks, in other arrangements, are everywhere:
#
# | arrangement | reads | outputs | for example |
# |---|---|---|---|
# | encoder and decoder | a sequence | another sequence | translation, summaries, speech to text: T5, BART, Whisper |
# | encoder only | a sequence | one vector for each token, or one for all | search, classification, finding names: BERT |
# | decoder only | the beginning of a sequence | what comes next | text, code, dialogue: GPT, Llama |
# | encoder on patches | a picture, cut into patches | a label, or a vector | what is in a picture: ViT |
#
# ## The way ahead
#
# In each lesson you build one piece by hand, see what it does, break it, and then import the finished one.
# Predict before you run, and change what you like.
#
# | lesson | builds |
# |---|---|
# | **00 welcome** | this page |
# | **[01 text to tensors](01_text_to_tensors.ipynb)** | words, subwords, ids, padded batches, embeddings |
# | **[02 position](02_position.ipynb)** | what tells the model the order of the words |
# | **[03 attention](03_attention.ipynb)** | a dictionary look-up that is soft enough to learn |
# | **[04 multi-head](04_multi_head.ipynb)** | several look-ups side by side |
# | **[05 masks](05_masks.ipynb)** | what must not be looked at: padding, and the future |
# | **[06 encoder](06_encoder.ipynb)** | feed-forward networks, residuals and norms, stacked |
# | **[07 decoder](07_decoder.ipynb)** | the part that writes, and reads what the encoder made |
# | **[08 transformer](08_transformer.ipynb)** | the whole model, with the paper's sizes; where its parameters and its work are |
# | **[09 training](09_training.ipynb)** | the loss, Adam, the schedule, and all that keeps a long run going |
# | **[10 translation](10_translation.ipynb)** | trains it from scratch, live, and scores it on unseen sentences |
# | **[11 how to decode](11_decoding.ipynb)** | from probabilities to a sentence: greedy, sampling, beam search |
# | **[12 reading attention](12_reading_attention.ipynb)** | what the heads look at, tested; and where the pictures mislead |
# | **[13 positions past the paper](13_positions_past_the_paper.ipynb)** | relative biases, ALiBi, rotary; texts longer than any in training |
# | **[14 cost and memory](14_cost_and_memory.ipynb)** | what attention costs in time and memory, and how to spend less |
# | **[15 alternatives](15_alternatives.ipynb)** | recurrent, convolutional and state-space networks on the same tasks |
# | **[16 one block, many models](16_one_block_many_models.ipynb)** | BERT, GPT, the Vision Transformer and captioning in small, from the same blocks |
# | **[17 scaling out](17_scaling_out.ipynb)** | your own sentence pairs, several processes, and what the paper's run takes |
# | **[18 errata lab](18_errata_lab.ipynb)** | popular sentences about the Transformer, put to the test |
#
# The paper is "Attention Is All You Need" [@vaswani2017]; each lesson says which section it builds.
# A word that you have forgotten is in the [list of terms](terms.md).
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **attention**: a token's new vector is a weighted mean of vectors made from tokens, of the other sentence or of its own; the weights are computed anew for each token.
# - **recurrent networks**: read a sequence step by step, updating one state vector.
# - **Transformer**: a network of attention and of small networks that are the same at every position, without recurrence.
# - **tokens**: words, pieces of words and punctuation marks, which the model reads and writes.
# - **attention weights**: how much of each token attention takes; they sum to 1.
# - **encoder**: reads the source, all tokens at once.
# - **memory**: the encoder's vectors, one for each source token.
# - **decoder**: writes the target token by token, reading the memory.
# - **logits**: one score for each token of the vocabulary, for what comes next.

# %% [markdown]
# ## Summary
#
# Our Transformer turns a sequence of tokens into another sequence of tokens.
# The encoder reads the source at once; the decoder writes the target token by token, and in training predicts all of it at once.
# Between them is the memory, one vector for each source token.
# Attention weighs these vectors for each token that is written, and we can look at the weights; whether they *explain* it is a question for lesson [12](12_reading_attention.ipynb).
# On sentences unlike those it learned from it can be badly wrong; it answers all the same, and in our three examples its probabilities hinted at it.
#
# **Next**: lesson [01](01_text_to_tensors.ipynb) turns sentences into numbers.
