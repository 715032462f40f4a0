# %% [markdown]
# # 00 · Welcome: the whole thing first
#
# **Question.** What happens between an English sentence and its German translation? *The boy* is *der Junge*, *the girl* is *das Mädchen*: how can the right *the* be written before its noun?
#
# **Afterwards you can**
#
# 1. translate sentences with a Transformer that runs on your own machine, offline;
# 2. look at what it attended to while it chose each German token, and test whether that decided the token;
# 3. say what the encoder does, what the decoder does, and what goes between them.
#
# **You need** Python, and a little PyTorch: tensors, modules, `loss.backward()`. No German.
# **Before you start**: [twelve questions](assignments/release/00_concepts_before/00_concepts_before.ipynb) ask what you already know. They come again after lesson 18, and show what you have learned.
# **Time**: {minutes} minutes to read, under 20 seconds to run.
# **In the paper**: section 1, which says why; figure 1, in outline [@vaswani2017].

# %% [markdown]
# ## Translate
#
# Run this cell: click into it, and press **Shift + Enter**.

# %%
import math

import torch

from course_lib import Translator
from course_lib.checks import written_for
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # one sentence at a time: one thread is enough
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained()
model = translator.model.to(device)
print(f"PyTorch {torch.__version__} on {device}: ready")

# %% tags=["hide-input"]
config = model.config
assert (config.num_layers, round(config.num_parameters / 1e6)) == (3, 11)

# %% tags=["nbval-check-output"]
sentence = "The cat drinks the milk."
print(translator.translate(sentence))

# %% [markdown]
# Eleven million numbers did this, the model's parameters.
# They came with the course ([model card](../course_lib/pretrained/everyday/README.md)).
# No dictionary and no rule of grammar went in, only pairs of sentences: 160,000 that volunteers wrote and translated on [tatoeba.org](https://tatoeba.org), and more than 100,000 that were made for the course.
# In lesson [10](10_translation.ipynb) you train such a model yourself, a smaller one, in minutes.
#
# Change this sentence, or any other, and run its cell again.
# Where the text depends on the old one, the notebook tells you so and carries on.
#
# Here are six more, chosen because they come out right. None is in the training pairs word for word, though close relatives of some are.
# (We also gave it 2,001 new sentences that nobody had picked. A quarter of its answers are exactly what a volunteer wrote. Many others are right in other words, and many are wrong.)

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

# %% [markdown]
# If you know no German, see the order of the words:
#
# ```
# Heute  öffnet  der  Junge  das  Fenster.        Wir  müssen   morgen    früh   aufstehen.
# today  opens   the  boy    the  window          we   have to  tomorrow  early  get up
#
# Der  Junge  schläft,  weil     er  müde   ist.
# the  boy    sleeps    because  he  tired  is
# ```
#
# After *Heute* the verb stays in second position, so the subject moves after it. After *weil* the verb comes last, *ist*; after *müssen* the second verb comes last, *aufstehen*. Replacing word by word would not do.
# And *the* became *der*, *die*, *das* or *dem*, by the case and the gender of a noun that comes after it.

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

# %% tags=["hide-input"]
import json
from pathlib import Path

import course_lib

card = Path(course_lib.__file__).parent / "pretrained" / "everyday" / "log.json"
told = json.loads(card.read_text(encoding="utf-8"))
assert all(0.2 < score["exact_match"] < 0.3 for score in told["test"])
assert 104_000 < told["train_pairs"] - 160_000 < 107_000  # made for the course

# %% [markdown]
# Now you.
# Type a sentence of your own; it is translated while you type.
# The number beside each German piece (`</s>` ends the sentence) is the probability that the model gave it.
# For the right piece, training aimed at only about 90 % (lesson [09](09_training.ipynb) shows why), so expect little more.
# Where does it hesitate?

# %%
from course_lib.widgets import Playground

playground = Playground(translator, "We have to get up early tomorrow.")
playground

# %% tags=["hide-input"]
with written_for("We have to get up early tomorrow.", playground.text):
    assert playground.view["text"].endswith(" aufstehen.")

# %% [markdown]
# Here it hardly hesitates: the pieces get 87 % to 97 %. A rare word, or one with several translations, gets less.
#
# ## What goes where
#
# The model reads and writes **tokens**: a token is a word, a piece of one, or a punctuation mark, and `▁` marks where a word begins.
# Common words are one token each; a rare word is put together from pieces.
# Inside the model every token becomes a vector, here of 256 numbers.
# The model has two halves. Here they choose the fifth of seven tokens:

# %% tags=["hide-input"]
from course_lib.figures import Block, attention_map, flow_figure

name_of = translator.tokenizer.token


def ids_of(text):
    """The source's ids, with </s> at the end: (1, length)."""
    ids = [*translator.tokenizer.encode(text), model.config.eos_id]
    return torch.tensor([ids], device=device)


# %% tags=["hide-input"]
def write(memory, source, begin=()):
    """The best token, again and again; returns the three best of each step."""
    so_far, steps = [model.config.bos_id, *begin], []  # <s>
    while so_far[-1] != model.config.eos_id and len(so_far) < 20:
        states = model.decode(torch.tensor([so_far], device=device), memory, source)
        logits = model.generator(states)[0, -1]  # for what follows the last token
        best = logits.softmax(dim=-1).topk(3)
        so_far.append(best.indices[0].item())
        names = map(name_of, best.indices.tolist())
        steps.append(list(zip(names, best.values.tolist(), strict=True)))
    return steps


# %% tags=["hide-input"]
early = "We have to get up early tomorrow."
steps = write(model.encode(ids_of(early)), ids_of(early))
pieces = tuple(name_of(number) for number in ids_of(early)[0].tolist())
german = ("<s>", *(step[0][0] for step in steps[:4]), "")  # "": what step 5 writes
surest = tuple(f"{token} {prob:.0%}".replace("%", " %") for token, prob in steps[4])
many = f"{len(pieces)} vectors, each of {config.d_model} numbers"
blocks = [
    Block("English", (1, len(pieces)), "", (1.8, 0), "data", pieces),
    Block("encoder", (), "", (1.8, 0.63), "step"),
    Block("memory", (config.d_model, len(pieces)), many, (1.8, 1.45), "data", pieces),
    Block("German so far", (1, len(german)), "", (0.3, 2.55), "data", german),
    Block("decoder", (), "", (1.8, 2.55), "step"),
]

# %% tags=["hide-input"]
of_all = f"the three best of {config.vocab_size}"
blocks += [Block("next token", (3, 1), of_all, (3.4, 2.55), "result", surest)]
ways = [("English", "encoder", ""), ("encoder", "memory", "")]
ways += [("memory", "decoder", "attention"), ("German so far", "decoder", "")]
ways += [("decoder", "next token", "linear layer,\nsoftmax")]
ways += [("next token", "German so far", "append the best, and again")]
finding = "The encoder runs once, the decoder once for each German token"
flow_figure(blocks, ways, title=finding)

# %% tags=["hide-input"]
assert model.encode(ids_of(early))[0].T.shape == blocks[2].shape == (256, 9)
assert len(steps) == 7 and config.vocab_size == 8000
assert [token.split()[0] for token in surest[:2]] == ["▁aufstehen", "▁auf"]

# %% [markdown]
# - The **encoder** reads the source (here English), all of it at once, and outputs one vector for each token. Together these vectors are the **memory**.
# - The **decoder** writes the target (German), starting from the token `<s>`. It reads the memory and what has been written so far. It outputs a vector for each token read; from the last one, a linear layer makes **logits**: one score for each token that the model knows, here 8,000 (its vocabulary). A softmax (exponentials, divided by their sum) makes them the playground's probabilities.
#
# The most probable token, the best, is written, and the decoder reads it in the next step.
# This repeats until the best token is `</s>`.
# (Each half is a stack of three *layers* of the same form. The paper's base model has six, vectors of d_model = 512 numbers, and 65 million parameters.)
#
# Here is this loop as code.
# `ids_of`, from a folded cell, gives a sentence's tokens as numbers, and `name_of` the token of a number; `model.generator` is the linear layer.

# %%
source = ids_of("We have to get up early tomorrow.")
memory = model.encode(source)  # the encoder runs once
so_far = [model.config.bos_id]  # <s>
while so_far[-1] != model.config.eos_id and len(so_far) < 20:
    # `source` again: only to find padding (lesson 05), of which there is none here
    states = model.decode(torch.tensor([so_far], device=device), memory, source)
    logits = model.generator(states)[0, -1]  # last row: what comes next
    best = logits.softmax(dim=-1).topk(3)
    read = " ".join(name_of(number).strip("▁") for number in so_far)  # as words
    three = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    print(f"{read:38} →", *(f"{name_of(number)} {prob:.0%} " for number, prob in three))
    so_far.append(best.indices[0].item())

# %% tags=["hide-input"]
found = write(memory, source)
assert [step[0][0] for step in found] == [name_of(number) for number in so_far[1:]]
with written_for(early, translator.tokenizer.decode(source[0, :-1].tolist())):
    sure = [step[0][1] for step in found]
    assert all(0.8 < share < 0.98 for share in sure)
    assert sum(share > 0.88 for share in sure) == 6

# %% [markdown]
# Left of the arrow is what the decoder has read, right of it are the three best tokens.
# (Always writing the best is called greedy search. `translate` follows several candidates at once, lesson [11](11_decoding.ipynb). A folded cell makes a function of this loop, `write`.)
#
# Back to the memory. We change one English word. Choose an answer, then run on.

# %%
other_drink = Predict(
    "“The cat drinks the milk.” becomes “The cat drinks the water.” "
    "Which vectors of the memory change?",
    ["that word's", "that word's and those after it", "all of them"],
    section="What goes where",
)
other_drink

# %%
milk, water = ids_of("The cat drinks the milk."), ids_of("The cat drinks the water.")
with_milk, with_water = model.encode(milk)[0], model.encode(water)[0]
print(milk.shape[1], "tokens, memory", tuple(with_milk.shape))
moved = (with_milk - with_water).norm(dim=1) / with_milk.norm(dim=1)
for number, share in zip(water[0].tolist(), moved, strict=True):
    print(f"{name_of(number):8} moves by {share:4.0%} of its norm")

# %% tags=["hide-input"]
found = other_drink.choices[2 if (moved > 0.01).all() else 0]
because = "the encoder's attention makes each vector from the whole sentence"
other_drink.reveal(found, because=because)
drinks = (milk, water)
drinks = tuple(translator.tokenizer.decode(ids[0, :-1].tolist()) for ids in drinks)
with written_for(("The cat drinks the milk.", "The cat drinks the water."), drinks):
    assert milk.shape[1] == len(with_milk) == 7
    assert (moved > 0.01).all() and moved.argmax() == 4 and 0.25 < moved[3] < 0.27

# %% [markdown]
# Most of them move little. But how does the news of the water reach the vector at *the*, the word before?
# By **attention**: a token's vector takes something from the vectors of other tokens.
# In the encoder, each token gives a weight to every token of the sentence, itself included.
# These are the weights that the *the* before *milk* gives, in one layer:

# %% tags=["hide-input"]
own = translator.translate("The cat drinks the milk.", attention=True)
from_the = [weights.mean(dim=0)[3].tolist() for weights in own.attention.encoder]
print("".join(f"{token:9}" for token in own.src_tokens))
print("".join(f"{weight:<9.2f}" for weight in from_the[1]))
assert own.src_tokens[3:5] == ["▁the", "▁milk"] and abs(sum(from_the[1]) - 1) < 1e-4
assert from_the[1].index(max(from_the[1])) == 4 and abs(from_the[1][4] - 0.36) < 0.01
assert max(weights[4] for weights in from_the) == from_the[1][4]

# %% [markdown]
# Such **attention weights** are no parameters: they are computed anew for each sentence. They lie between 0 and 1 and sum to 1; here *milk* gets the most, 0.36.
# With them the model takes a weighted mean of vectors made from these tokens, and adds the result to the vector at *the*. Now this vector has something of *milk* in it.
# (More exactly, a layer has eight sets of weights, and a linear layer joins the eight means. The numbers above are averages over the eight, in the layer where *milk* gets the most. Then a small network, the same at every position, works on each vector alone: lesson [06](06_encoder.ipynb).)
#
# The model uses attention in three places:
#
# 1. in the encoder, English tokens attend to English tokens, as here;
# 2. in the decoder, each German token attends to itself and to the German tokens before it;
# 3. then it attends to the memory: this is *cross-attention* (lesson [07](07_decoder.ipynb)).
#
# ## Look inside
#
# We translate once more, and keep the weights of the cross-attention this time.

# %%
sentence = "Today the boy opens the window."
seen = translator.translate(sentence, attention=True)
print("reads: ", *seen.src_tokens)
print("writes:", *seen.tgt_tokens)

# %% tags=["hide-input"]
# Recording changes nothing.
plain = translator.translate(sentence)
assert (seen.text, seen.tgt_tokens) == (plain.text, plain.tgt_tokens)
assert abs(seen.score - plain.score) < 1e-5 * abs(plain.score)
with written_for("Today the boy opens the window.", sentence):
    assert len(seen.src_tokens) == len(sentence.split()) + 2  # the full stop, and </s>

# %% [markdown]
# The decoder has three layers, counted from 0, and each of them attends in eight ways at once (its *heads*, lesson [04](04_multi_head.ipynb)).
# In each layer we average the heads' weights, and ask for each German word: does the largest fall on the English word that it translates?
# The word order differs: a model that always looked at the same position would be right for only three of the six words.

# %%
english = dict(Heute=0, öffnet=3, der=1, Junge=2, das=4, Fenster=5)  # positions
means = [layer.mean(dim=0).cpu() for layer in seen.attention.cross]  # of the heads
hits = []
for number, weights in enumerate(means):  # weights: (German tokens, English tokens)
    pairs = zip(seen.tgt_tokens, weights.argmax(dim=1).tolist(), strict=True)
    hits.append(sum(english.get(word.strip("▁")) == look for word, look in pairs))
    print(f"layer {number}, {len(seen.attention.cross[number])} heads: {hits[-1]} of 6")
layer = hits.index(max(hits))

# %% [markdown]
# Here is the first layer with the highest count, picked because it is tidy.
# Each row is a German token when it is chosen, before the decoder has read it. Where among the English tokens does the model look?

# %%
finding = f"Layer {layer}: {hits[layer]} of the 6 German words look most\n"
finding += "at the English word that they translate"
figure = attention_map(means[layer], seen.tgt_tokens, seen.src_tokens, title=finding)
_ = figure.axes[0].set(xlabel="English", ylabel="German, being chosen")
_ = figure.axes[0].axhspan(1.5, 2.5, fill=False, linewidth=2)  # a frame around row 2
figure

# %% tags=["hide-input"]
for weights in means:
    assert torch.allclose(weights.sum(dim=1), torch.ones(len(seen.tgt_tokens)))
assert sum(place == look for place, look in enumerate(english.values())) == 3
with written_for("Today the boy opens the window.", sentence):
    assert hits[layer] == 6 and seen.tgt_tokens[2] == "▁der"
    of_the, of_boy = means[layer][2, 1:3]
    assert abs(of_the - 0.86) < 0.01 and abs(of_boy - 0.12) < 0.01

# %% [markdown]
# Nobody told the model which words belong together: it learned from whole sentences.
#
# Now to our question: *der*, in the frame. Where does the model find the gender of *Junge*, which it has not written yet?
# The map suggests *the*: weight 0.86, against 0.12 for *boy*.
# That is possible. When *milk* became *water*, the vector at the *the* before it moved by 26 %. So it may know its noun.
# We test it.
# For *Today the girl opens the window.* the model writes *das Mädchen*.
# We take the memory of the sentence with *boy*, and replace one vector by the vector from the same place in the sentence with *girl*.

# %%
exchanged = Predict(
    "Which vector, exchanged, turns *der* into *das*?",
    ["the one at *the*", "the one at *boy*", "either", "neither alone"],
    section="Look inside",
)
exchanged

# %%
boy = ids_of("Today the boy opens the window.")
girl = ids_of("Today the girl opens the window.")
a_boy = ids_of("Today a boy opens the window.")
exchanges = [(girl, []), (girl, [1]), (girl, [2]), (girl, [0, 1, 3, 4, 5, 6, 7])]
exchanges += [(a_boy, [1])]
answers = []
print(f"{'memory, exchanged vectors in [ ]':41} → the decoder writes")
for other, places in exchanges:
    mixed = model.encode(boy)
    mixed[:, places] = model.encode(other)[:, places]
    words = [name_of(number).strip("▁") for number in boy[0].tolist()]
    for place in places:
        words[place] = f"[{name_of(other[0, place].item()).strip('▁')}]"
    answers.append([step[0][0].strip("▁") for step in write(mixed, boy)])
    print(f"{' '.join(words).replace('] [', ' '):41} →", *answers[-1][:-1])

# %% tags=["hide-input"]
turned = tuple(answer[2] == "das" for answer in answers[1:3])
which = {(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}[turned]
because = "the others, all together, leave each token as it was"
exchanged.reveal(exchanged.choices[which], because=because)
phrases = [" ".join(answer[2:4]) for answer in answers]
usual = "der Junge"
of_these = translator.tokenizer.decode(boy[0, :-1].tolist())
with written_for("Today the boy opens the window.", of_these):
    assert phrases == [usual, usual, "das Mädchen", usual, "ein Junge"]
    assert answers[0] == answers[1] == answers[3] and answers[0][-1] == "</s>"

# %% [markdown]
# The vector at *the* decides something else: taken from *Today a boy …*, it turns *der* into *ein*.
# So we misread the map: *the* decides *der* or *ein*, and *boy* decides *der* or *das*.
# The map is the mean of eight heads, in one layer of three.
# Here are the eight:

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, sentence, layer=layer)
explorer

# %% tags=["hide-input"]
with written_for(sentence, explorer.text):
    assert explorer.view["src"] == seen.src_tokens
with written_for("Today the boy opens the window.", sentence):
    heads = seen.attention.cross[1]  # (heads, German tokens, English tokens)
    assert heads[0, 2, 2] > 0.85 and (heads[1:, 2].argmax(dim=1) == 1).all()
    assert heads[0, 4].argmax() == 5 and heads[0, 4, 5] > 0.85

# %% [markdown]
# For *der*, head 0 looks at *boy*, the other seven at *the*. In the mean, *boy* got only 0.12. For *das*, head 0 looks at *window*: again the noun that comes next.
# (Choose another layer, point at a word, type another sentence.)
#
# Does head 0, then, bring the gender? Which head of each layer looks most at *boy*, for *der*?

# %%
record = translator.translate("Today the boy opens the window.", attention=True)
watching = []  # (layer, head)
for number, heads in enumerate(record.attention.cross):
    on_boy = heads[:, 2, 2]  # row 2 is *der*, column 2 is *boy*
    watching.append((number, on_boy.argmax().item()))
    print(f"layer {number}: head {watching[-1][1]} gives *boy* {on_boy.max():.2f}")

# %% tags=["hide-input"]
assert (record.tgt_tokens[2], record.src_tokens[2]) == ("▁der", "▁boy")
most = [record.attention.cross[number][head, 2, 2].item() for number, head in watching]
assert watching[1:] == [(1, 0), (2, 0)] and most[0] < 0.5 < 0.8 < min(most[1:])

# %% [markdown]
# We switch off the last two (each layer has its own head 0): they add 0.
# Then, as a control, their layers' 14 others, in four sentences (*Today … opens the window.*).

# %% tags=["hide-input"]
from itertools import combinations, product

from course_lib.analysis import ablate_heads

four = torch.cat([boy, girl, a_boy, ids_of("Today a girl opens the window.")])
after = [model.config.bos_id, *translator.tokenizer.encode("Heute öffnet")]
after = torch.tensor([after] * 4, device=device)
of_four = model.encode(four)


def next_without(*off):
    """Probabilities of what follows, for each of the four, with some heads off."""
    with ablate_heads(model, [("cross", *head) for head in off]), torch.no_grad():
        states = model.decode(after, of_four, four)
        return model.generator(states)[:, -1].softmax(dim=-1)


# %% tags=["hide-input"]
ours = watching[1:]
rest = [(n, head) for n, looks in ours for head in range(8) if head != looks]
switched = {"all heads on": next_without(), "the two heads off": next_without(*ours)}
switched["their layers' 14 others off"] = next_without(*rest)
articles = [translator.tokenizer.encode(w)[0] for w in ("der", "die", "das", "ein")]

# %% tags=["hide-input"]
from course_lib.figures import Panel, panels

labels = ("the boy", "the girl", "a boy", "a girl"), ("der", "die", "das", "ein")
drawn = [
    Panel(probs[:, articles].tolist(), *labels, name, "weights")
    for name, probs in switched.items()
]
finding = "Two heads bring the gender, the 14 others tell the from a"
meaning = "probability after Heute öffnet (other tokens get the rest)"
panels(drawn, title=finding, words={"weights": meaning})

# %% tags=["hide-input"]
on, mixing, alone = (probs[:, articles].cpu() for probs in switched.values())
der, die, das, ein = range(4)  # columns
assert on.argmax(dim=1).tolist() == [der, das, ein, ein] and on.amax(dim=1).min() > 0.9
assert mixing.argmax(dim=1).tolist() == [der, die, ein, ein]
assert mixing[0, die] > 0.15 and mixing[1, :3].min() > 0.15
assert 1.9 < mixing[0, der] / mixing[1, der] < 2.8 and mixing[2:, ein].min() > 0.8
assert len(rest) == 14 and alone.argmax(dim=1).tolist() == [der, das, der, das]
assert alone.amax(dim=1).min() > 0.8 and alone[2:, ein].max() < 0.1

# %% tags=["hide-input"]
# One of the two off, or any two of the 14: the articles stay right.
for off in (*((head,) for head in ours), *combinations(rest, 2)):
    found = next_without(*off).argmax(dim=-1).tolist()
    assert found == [articles[place] for place in (der, das, ein, ein)]
# Layer 0 alone does not tell boy from girl.
neither = next_without(*product((1, 2), range(8)))[:2, articles]
assert (neither[0] - neither[1]).abs().max() < 0.1 and neither.max() < 0.3

# %% [markdown]
# The two bring the gender; *ein*, shared by both nouns, hardly needs them.
# Without the two, *der* is still twice as likely for *boy* as for *girl*: others help.
# The 14 bring *the* or *a*: without them *a boy* gets *der*.
# (Without one of the two, or any two of the 14, no article changes: folded.)
#
# A picture of attention raises a question; an experiment answers it. Lesson [12](12_reading_attention.ipynb) does both for a whole, smaller model.
#
# ## How it learned
#
# In training the decoder does not read its own words, but the translation of the pair, here a *human* one, with `<s>` in front.
# Each position has to answer with the token that follows:
#
# ```
# reads    <s>  Der    Junge    schläft  ,     denn  er   ist   müde  .
# answers  Der  Junge  schläft  ,        denn  er    ist  müde  .     </s>
# ```
#
# All that is read is known beforehand, so one pass predicts all the answers. Each position sees only the tokens up to its own (lesson [05](05_masks.ipynb) shows how), so it cannot see its answer.
# The **loss** is the mean of −log(probability) of the human's tokens:

# %%
source = ids_of("The boy is sleeping because he is tired.")
human = translator.tokenizer.encode("Der Junge schläft, denn er ist müde.")
read = torch.tensor([[model.config.bos_id, *human]], device=device)
wanted = [*human, model.config.eos_id]
logits = model(source, read)[0]  # (German tokens, vocabulary)
costs = -logits.log_softmax(dim=-1)
for place, token in enumerate(wanted):
    best, cost = name_of(costs[place].argmin().item()), costs[place, token].item()
    line = f"… {name_of(read[0, place].item()):9} → {name_of(token):9}"
    print(line, f"{math.exp(-cost):6.1%}   costs {cost:4.2f}   its own guess: {best}")
print(f"loss: {sum(costs[range(len(wanted)), wanted]).item() / len(wanted):.2f}")

# %% tags=["hide-input"]
of_wanted = costs[range(len(wanted)), wanted].detach()
answer = torch.tensor(wanted, device=device)
loss = torch.nn.functional.cross_entropy(logits, answer)
torch.testing.assert_close(of_wanted.mean(), loss.detach())
assert name_of(wanted[4]) == "▁denn" and of_wanted[4] > of_wanted.sum() - of_wanted[4]
assert (costs.argmin(dim=-1) == answer).sum() == len(wanted) - 1
short = model(source, read[:, :3])[0]  # nothing is read ahead
torch.testing.assert_close(short, logits[:3], rtol=1e-3, atol=1e-3)

# %% [markdown]
# Each row has read its own token and all the tokens above it in the left column.
# The model would have written *weil* where the human wrote *denn*, two words for *because*, and this one token costs more than all the others together.
# And see what comes next: *weil* sends the verb to the end, *weil er müde ist*; *denn* keeps the order of English, *denn er ist müde*. Having read *denn*, the model expects *ist* right after *er*.
#
# Learning means changing every parameter slightly so that the loss falls; `backward()` computes in which direction. We let a copy learn this one sentence:

# %%
import copy

answer = torch.tensor(wanted, device=device)
pupil = copy.deepcopy(model)
optimizer = torch.optim.SGD(pupil.parameters(), lr=0.01)
for step in range(4):
    logits = pupil(source, read)[0]
    loss = torch.nn.functional.cross_entropy(logits, answer)
    probability = logits.softmax(dim=-1)[4, wanted[4]].item()
    print(f"steps: {step}, loss: {loss.item():.2f}, denn: {probability:.2%}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% tags=["hide-input"]
assert loss.item() < 0.8 * of_wanted.mean()
assert 15 < probability / math.exp(-of_wanted[4]) < 27
assert name_of(logits[4].argmax().item()) == "▁weil"

# %% [markdown]
# After three steps *denn* is about twenty times as likely, but *weil* still wins.
#
# Real training repeats this on batches of many pairs, for hours. It also aims at about 90 % instead of 100 %, uses a better optimizer with a schedule for its step size (lesson [09](09_training.ipynb)), and cuts some English words into smaller pieces, so that rare words are practiced, too.
#
# ## What it cannot do
#
# The model has learned from everyday sentences.
# What does it make of a plaintiff, a tendon and lichens? None of the words is in its training pairs.

# %%
outside = Predict(
    "No sentence of its training has the word *tendon*. "
    "What does it do with this word in “The tendon is inflamed.”?",
    [
        "it says that it is unknown",
        "it leaves it out",
        "it puts another word in its place",
        "it copies it",
    ],
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
for text, right in new.items():
    answer = translator.translate(text, **plain)
    print(f"{text}\n  it says  {answer}\n  right is {right}")
print("tendon:", *translator.tokenizer.tokens("tendon"))

# %% tags=["hide-input"]
says = {text: translator.translate(text, **plain).text for text in new}
because = "its three pieces are tokens, and can be written one by one"
assert len(translator.tokenizer.tokens("tendon")) == 3
outside.reveal(outside.choices[3], because=because)
originals = "The plaintiff waived the appeal.", "The tendon is inflamed."
originals += ("Lichens grow on granite.",)
with written_for(originals, tuple(new)):
    assert all(says[text] and says[text] != right for text, right in new.items())
    told = "wartete auf das Appetit", "Der Tendon ist eingerannt", "Lichens baut"
    assert all(part in says[text] for part, text in zip(told, originals, strict=True))

# %% [markdown]
# The first means *the statement waited for the appetite*, with a wrong article.
# In the second, *tendon* is copied, as if it were German, and *eingerannt* is said of doors: *battered down*.
# The third copies *Lichens*, and its verb is *baut* (*builds*), in the singular.
#
# A reader who knows no German gets no warning. Do the probabilities warn? Here is their geometric mean over the tokens of each answer.


# %%
def sureness(text):
    """The geometric mean of the tokens' probabilities."""
    answer = translator.translate(text, **plain)
    return math.exp(answer.score / len(answer.tgt_tokens))


for text in (*examples, *new):
    print("wrong" if text in new else "right", f"{sureness(text):4.0%}  {text}")

# %% tags=["hide-input"]
with written_for(originals, tuple(new)):
    assert min(map(sureness, claims)) > 0.7 > max(map(sureness, new))

# %% [markdown]
# It looks like a rule: trust an answer above 70 %. One more, made of everyday words:

# %%
spring = "The spring is broken."
print(f"{sureness(spring):.0%}  {spring}  {translator.translate(spring, **plain)}")

# %% tags=["hide-input"]
with written_for("The spring is broken.", spring):
    assert translator.translate(spring, **plain).text == "Der Frühling ist kaputt."
    assert sum(sureness(text) < sureness(spring) for text in claims) == 2
source = ids_of("The spring is broken.")
second = write(model.encode(source), source, translator.tokenizer.encode("Die"))[0]
assert second[0][0] == "▁Frühling" and abs(second[0][1] - 0.185) < 0.02
assert not any(token.startswith("▁Fe") for token, _ in second)

# %% [markdown]
# *Frühling* is the season. A spring that breaks is a coil, *die Feder*. Even if we make the answer begin with *Die*, as *Feder* needs, *Frühling* is still the best next token, and *Feder* is not among the first three (folded).
# The rule is refuted: this wrong answer is above two of our six right ones.
# A low probability hints at an error; a high one proves nothing.
#
# ## Why another network?
#
# Before 2017 most neural translators were of another kind: a **recurrent network** reads a word, updates its state vector, and goes on to the next word.
# Read from left to right, *water* changes only its own state and those after it: that answer to our first prediction was not silly. (Often a second network read from right to left.)
# Reading word by word has two costs.
# Word 50 must wait for word 49.
# And what word 1 said has to survive 49 updates before word 50 can use it.
#
# Attention already existed, as an addition to recurrent networks: with it, the decoder could look back at all the encoder's states [@bahdanau2015].
# Convolutional translators, which look at a few neighbors at a time, had already dropped recurrence (lesson [15](15_alternatives.ipynb)).
# The paper dropped recurrence and convolutions, and let attention alone carry information from word to word. In the encoder every word looks at every other word directly, and all do so at once. So *water* could reach all seven vectors of the memory. In training the decoder's positions need not wait for each other either.
#
# The result, the **Transformer**, was made for translation; most language models today are built on it.
#
# ## More than translation
#
# The same blocks are used in three arrangements:
#
# | arrangement | reads | outputs | for example |
# |---|---|---|---|
# | encoder and decoder | a sequence | another sequence | translation, summaries, speech to text: T5, BART, Whisper |
# | encoder only | a sequence | one vector for each token, or one for all | search, classification: BERT; pictures cut into patches: ViT |
# | decoder only, without a memory | the beginning of a sequence | what comes next | text, code, dialogue: GPT, Llama |
#
# ## The way ahead
#
# In lessons 01 to 09 you build the pieces by hand, see what each one does, break it, and then import the finished version. Lessons 10 to 18 train the model, decode with it, look inside it, and go beyond the paper.
#
# | lesson | subject |
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
# The paper is "Attention Is All You Need" [@vaswani2017]; each lesson says which section it belongs to.
# A word that you have forgotten is in the [list of terms](terms.md).
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **encoder**: reads the source, all tokens at once.
# - **tokens**: words, pieces of words and punctuation marks, which the model reads and writes.
# - **memory**: the encoder's vectors, one for each source token.
# - **decoder**: writes the target token by token, reading the memory.
# - **logits**: one score for each token of the vocabulary, for what comes next.
# - **attention**: each token takes a weighted mean of vectors made from tokens, of its own sentence or of the source; every token has its own weights.
# - **attention weights**: how much of each token attention takes; they sum to 1.
# - **loss**: what training makes smaller; here the mean of −log(probability) of the human's tokens.
# - **recurrent network**: reads a sequence step by step, updating one state vector.
# - **Transformer**: a network of attention and of small networks that are the same at every position, without recurrence.

# %% [markdown]
# ## Summary
#
# How can our Transformer write *der* before *Junge*?
# The encoder reads the whole English sentence first, and makes the memory: one vector for each token. By attention each takes something from the others.
# The decoder writes token by token. At *der* it has read `<s> Heute öffnet`; it attends to these and to the memory.
# There, the vector at *boy* decides *der* or *das*, and the one at *the* decides *der* or *ein*. The mean weights misled us; exchanging vectors did not.
# All this was learned by making the loss smaller: in training the decoder predicts all tokens of a human translation at once.
# The model can be badly wrong, on rare words and on everyday ones; it answers all the same, and its probabilities are a hint at best.
#
# **Next**: lesson [01](01_text_to_tensors.ipynb) turns sentences into numbers.
