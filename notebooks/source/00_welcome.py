# %% [markdown]
# # 00 · Welcome: the whole thing first
#
# **Question.** What happens between an English sentence and its German translation?
#
# **Afterwards you can**
#
# 1. translate sentences with a Transformer that runs on your own machine, without a network;
# 2. look at what it attended to while it chose each German token;
# 3. say what the encoder does, what the decoder does, and what goes between them.
#
# **You need** Python, and a little PyTorch: tensors, modules, `loss.backward()`.
# **Time**: 15 minutes to read, under 20 seconds to run.
# **In the paper**: figure 1, from afar.

# %% [markdown]
# ## Is everything installed?

# %%
import torch

from course_lib import Translator

torch.set_num_threads(1)  # one sentence at a time: one thread is enough
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained()
translator.model.to(device)
print(f"PyTorch {torch.__version__} on {device}: ready")
assert not translator.model.training

# %% [markdown]
# That was it.
# The translator came with the course: its weights are a file of 15 MB in `course_lib/pretrained/everyday`, next to its [model card](../course_lib/pretrained/everyday/README.md).
# It learned from 160,000 pairs of everyday sentences, which volunteers wrote and translated on [tatoeba.org](https://tatoeba.org).
# In lesson [10](10_translation.ipynb) you train a smaller one yourself, in minutes.
#
# ## Translate

# %% tags=["nbval-check-output"]
sentence = "The cat drinks the milk."
print(translator.translate(sentence))

# %% [markdown]
# Change the sentence and run the cell again: **Shift + Enter**.
# Here are a few to try, each with something that German does differently.
# What do you expect for *the child* after *gave*, and where will the verb stand after *Today*?

# %% tags=["nbval-check-output"]
examples = [
    "The old woman gave the child a red apple.",
    "Today the boy opens the window.",
    "The boy is sleeping because he is tired.",
    "We have to get up early tomorrow.",
    "If I had more time, I would learn German.",
    "I have been living here for ten years.",
]
for example in examples:
    print(f"{example}\n  {translator.translate(example)}")

# %% [markdown]
# Look closely at what had to happen.
# *The* became *die, dem, der, das* or *den*, by gender and case.
# After *Today* the verb stays in second place, so the subject moves behind it.
# After *weil* (because) the verb goes to the end.
# *Aufstehen* moved to the end, away from its *müssen*.
# And English looks back with *have been living*, where German stays in the present.
# No rule for any of this is written anywhere in the model.

# %%
woman, today, because, early, if_i, years = (
    translator.translate(example).text for example in examples
)
assert woman.startswith("Die alte Frau") and "dem Kind einen" in woman
assert today.split()[1:5] == ["öffnet", "der", "Junge", "das"]
assert because.endswith("weil er müde ist.")
assert early.split()[1] == "müssen" and early.endswith(" aufstehen.")
assert if_i.startswith("Wenn ich mehr Zeit hätte, würde ich")
assert if_i.endswith(" lernen.")
assert years.split()[1] in ("wohne", "lebe") and "seit zehn Jahren" in years

# %% [markdown]
# Now you.
# Type a sentence of your own; it is translated while you type.
# The darker a piece, the surer was the model of it: where does it hesitate?

# %%
from course_lib.widgets import Playground

playground = Playground(translator, examples[3])
assert playground.exploration.text == early
playground

# %% [markdown]
# ## Look inside
#
# The model writes one token after another.
# Before each one it looks at the English sentence, and *attends* to some of its tokens more than to others.
# The weights of each row sum to 1: they are shares of attention.
#
# A token is a word, a piece of one, or a sign, and `▁` marks where a word begins.
# Common words like those of our sentence are one token each; *enzyme* is put together from pieces.
# First we record the weights of one translation.

# %%
import math

sentence = "The old woman gave the child a red apple."
plain = translator.translate(sentence)
seen = translator.translate(sentence, attention=True)
print(seen.src_tokens, seen.tgt_tokens, translator.tokenizer.tokens("enzyme"), sep="\n")
assert len(seen.src_tokens) == len(sentence.split()) + 2  # the full stop, and </s>
assert len(translator.tokenizer.tokens("enzyme")) > 1
assert (seen.text, seen.tgt_tokens) == (plain.text, plain.tgt_tokens)
assert math.isclose(seen.score, plain.score, rel_tol=1e-6)

# %% [markdown]
# Recording changes nothing: text, tokens and score are the same.
#
# The decoder has three layers.
# Each of them looks in eight ways at once (its *heads*, lesson [04](04_multi_head.ipynb)); we show their average in the middle layer.
# A row of the picture, a *query*, is the German token that is being chosen; the columns, the *keys*, are the English tokens.
# Read it row by row: where does the model look to choose this token?

# %%
from course_lib.figures import attention_map

middle = seen.attention.cross[1].cpu()  # (heads, tgt_len, src_len)
assert len(seen.attention.cross) == 3 and len(middle) == 8
weights = middle.mean(dim=0)  # (tgt_len, src_len)
assert torch.allclose(weights.sum(dim=1), torch.ones(len(seen.tgt_tokens)))
finding = "Each German word looks most at the English word it translates"
attention_map(weights, seen.tgt_tokens, seen.src_tokens, title=finding)

# %% [markdown]
# Each row does sum to 1.
# And here is the column of the largest weight in each row:

# %%
looked_at = [seen.src_tokens[key] for key in weights.argmax(dim=1).tolist()]
for german, english in zip(seen.tgt_tokens, looked_at, strict=True):
    print(f"{german:8}{english}")
in_english = "▁The ▁old ▁woman ▁gave ▁the ▁child ▁a ▁red ▁apple".split()
assert looked_at[:9] == in_english
for other in (seen.attention.cross[0], seen.attention.cross[2]):
    columns = other.mean(dim=0).argmax(dim=1).tolist()
    assert [seen.src_tokens[key] for key in columns[:9]] != in_english

# %% [markdown]
# Nobody told the model which words belong together: it learned from whole sentences.
# The two other layers are less tidy; lesson [12](12_reading_attention.ipynb) scores layers and heads, of a smaller model.
# Look at them here: choose a layer and a head, point at a word, type another sentence.

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, sentence, layer=1)
assert explorer.view["src"] == seen.src_tokens
explorer

# %% [markdown]
# ## What goes where
#
# ```text
#                                        Die Katze trinkt die Milch . </s>
#                                                   ▲ each position
#                                                   │ predicts one token
#  ┌───────────────┐       memory          ┌─────────┴─────────┐
#  │ encoder stack │ ────────────────────► │   decoder stack   │
#  └───────────────┘  one vector for       └───────────────────┘
#          ▲          each English token             ▲
#          │ reads all at once                       │ what it has written
#          │                                         │
#  The cat drinks the milk . </s>         <s> Die Katze trinkt die Milch .
# ```
#
# The **encoder** reads the source sentence, all of it at once, and gives one vector for each token: the *memory*.
# It is no fixed-length summary: a longer sentence has a longer memory.
# The **decoder** starts from the sign `<s>`, attends to the memory and to what it has written, and predicts the next token.
# It goes on until it predicts `</s>`, the sign that ends a sentence.

# %% tags=["nbval-check-output"]
for text in ("The cat sleeps.", "The old woman gave the child a red apple."):
    ids = [*translator.tokenizer.encode(text), translator.model.config.eos_id]
    ids = torch.tensor([ids], device=device)  # (batch, src_len)
    memory = translator.model.encode(ids)  # (batch, src_len, d_model)
    print(f"{ids.shape[1]:2} tokens -> memory {tuple(memory.shape)}")
    assert memory.shape[:2] == ids.shape

# %% [markdown]
# ## What it cannot do
#
# The model has read everyday sentences, and nothing else.
# Ask it about politics, plants and scripture:

# %%
new = {
    "The parliament postponed the vote.": "Das Parlament verschob die Abstimmung.",
    "Photosynthesis needs light.": "Photosynthese braucht Licht.",
    "The spirit is willing, but the flesh is weak.": (
        "Der Geist ist willig, aber das Fleisch ist schwach."
    ),
}
for text, right in new.items():
    answer = translator.translate(text).text
    print(f"{text}\n  {answer}   (one right answer: {right})")
    assert answer and answer != right

# %% [markdown]
# It answers all the same, out of the pieces that it knows.
# Nothing in the answer says that the model is guessing; lesson [10](10_translation.ipynb) comes back to it.
#
# ## More than translation
#
# The same blocks, in other arrangements, are everywhere:
#
# | arrangement | reads | gives | for example |
# |---|---|---|---|
# | encoder and decoder | a sequence | another sequence | translation, summaries, speech to text, captions from pictures |
# | encoder only | a sequence | one vector for each token, or one for all | search, classification, finding names |
# | decoder only | the beginning of a sequence | what comes next | writing text, code, dialogue |
# | encoder on patches | a picture, cut into squares | a label, or a vector | recognizing what is in a picture |
#
# ## The way ahead
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
# | **[10 translation](10_translation.ipynb)** | trains it from nothing, live, and scores it on unseen sentences |
# | **[11 how to decode](11_decoding.ipynb)** | from probabilities to a sentence: greedy, drawn, with a beam |
# | **[12 reading attention](12_reading_attention.ipynb)** | what the heads look at, tested; and where the pictures mislead |
#
# The paper is "Attention Is All You Need" [@vaswani2017]; each lesson says which section it builds.

# %% [markdown]
# ## Summary
#
# A Transformer turns a sequence of tokens into another sequence of tokens.
# The encoder reads the source at once; the decoder writes the target token by token.
# Between them is the memory, one vector for each source token.
# Attention decides which of these vectors count for the token that comes next, and we can look at it.
# What the model was not trained on, it does not translate, and it answers all the same.
#
# **Next**: lesson [01](01_text_to_tensors.ipynb) turns sentences into numbers.
