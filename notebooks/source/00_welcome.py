# %% [markdown]
# # 00 · Welcome: the whole thing first
#
# **Question.** What happens between an English sentence and its German translation?
#
# **Afterwards you can**
#
# 1. translate sentences with a Transformer that runs on your own machine, offline;
# 2. look at what it attended to while it chose each German token, and test whether that decided the token;
# 3. say what the encoder does, what the decoder does, and what goes between them.
#
# **You need** Python, and a little PyTorch: tensors, modules, `loss.backward()`. No German.
# **Before you start**: [twelve questions](assignments/release/00_concepts_before/00_concepts_before.ipynb) ask what you know of all this already. They come once more after lesson 18, and show you what moved.
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
# No dictionary and no rule of grammar went in: the numbers were learned from pairs of everyday sentences, which volunteers wrote and translated on [tatoeba.org](https://tatoeba.org).
# They came with the course, as a file in `course_lib/pretrained/everyday`, next to the [model card](../course_lib/pretrained/everyday/README.md).
# In lesson [10](10_translation.ipynb) you train such a model yourself, a smaller one, in minutes.
#
# Change the sentence and run the cell again.
# You can change any sentence: where the text relies on one, the notebook tells you and carries on.
#
# Here are six more, chosen because they come out right.
# (Of 2,001 sentences that nobody chose and that it had not seen, it translates a quarter exactly as one of the volunteers did. Many other answers are right in other words, and many are wrong.)

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
# Der  Junge  schläft,  weil     er  müde   ist.  Ich  lebe  hier  seit  zehn  Jahren.
# the  boy    sleeps    because  he  tired  is    I    live  here  for   ten   years
#
# Die  alte  Frau   gab   dem     Kind   einen  roten  Apfel.
# the  old   woman  gave  to the  child  a      red    apple
#
# Wenn  ich  mehr  Zeit  hätte,  würde  ich  Deutsch  lernen.
# if    I    more  time  had     would  I    German   learn
# ```
#
# After *Heute* the verb stays in second position, so the subject moves after it. After *weil* the verb comes last, *müde ist*; after *müssen* the second verb comes last, *aufstehen*.
# *The* became *die, dem, der* or *das*, by gender and case.
# English looks back with *have been living*, where German stays in the present.
# None of these six English sentences is among its pairs, word for word, though close relatives may be.

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
scores = json.loads(card.read_text(encoding="utf-8"))["test"]
assert all(0.2 < score["exact_match"] < 0.3 for score in scores)

# %% [markdown]
# Now you.
# Type a sentence of your own; it is translated while you type.
# The number beside each German piece (`</s>` ends the sentence) is the probability that the model gave it.
# Training aimed at about 90 % even for a token that is certain (lesson [09](09_training.ipynb) shows why), so expect no number far above 0.9.
# Where does it hesitate?

# %%
from course_lib.widgets import Playground

playground = Playground(translator, "We have to get up early tomorrow.")
playground

# %% tags=["hide-input"]
with written_for("We have to get up early tomorrow.", playground.text):
    assert playground.view["text"].endswith(" aufstehen.")

# %% [markdown]
# *Aufstehen* gets about a half. What gets the other half? We shall see.
#
# ## Why another network?
#
# Before 2017 most neural translators were **recurrent networks**: they read word by word, updating one state vector as they go.
# That has two costs.
# Word 50 must wait for word 49.
# And what word 1 said has to survive 49 steps before word 50 can use it.
# Attention already existed, as an add-on to such networks [@bahdanau2015].
# Convolutional translators had already dropped the recurrence (lesson [15](15_alternatives.ipynb)). The paper dropped convolution as well, and let attention alone carry information from word to word: in reading, every word looks at every other one directly, all of them at once.
# (Writing still goes word by word. In training even that is done at once, as we shall see.)
#
# The result, the **Transformer**, was made for translation, and is in most language models today.
#
# ## What goes where
#
# The model reads and writes **tokens**: a token is a word, a piece of one, or a punctuation mark, and `▁` marks where a word begins.
# Common words are one token each; a rare word is put together from pieces.
# The model has two halves:
#
# - The **encoder** reads the source sentence, all of it at once, and outputs one vector of numbers for each token: the **memory**.
# - The **decoder** starts from the token `<s>`. It attends to the memory and to what has been written so far, and a linear layer turns its output into **logits**: one score for each token of the vocabulary. A softmax turns these scores into the probabilities that the playground shows.
#
# To attend is this: for one token, **attention** gives every token that it may see a weight between 0 and 1, and these **attention weights** sum to 1.
# Its result is the mean, with these weights, of vectors that are made from those tokens; through a linear layer it is added to the token's own vector.
# There are three kinds of it: in the encoder English tokens attend to English ones; in the decoder German tokens attend to themselves and to those before them, and then to the memory.
#
# The best token is written, and becomes part of what the decoder reads next, until it is `</s>`, the end of the sentence.

# %% tags=["hide-input"]
from course_lib.figures import Block, attention_map, flow_figure

name_of = translator.tokenizer.token


def ids_of(text):
    """The source's ids, with </s> at the end: (1, length)."""
    ids = [*translator.tokenizer.encode(text), model.config.eos_id]
    return torch.tensor([ids], device=device)


early = "We have to get up early tomorrow."
german = translator.tokenizer.encode("Wir müssen morgen früh aufstehen.")
lengths = ids_of(early).shape[1], 1 + len(german)  # with </s>, with <s>

# %% tags=["hide-input"]
blocks = [
    Block("English", (lengths[0], 1), "tokens", (0, 0)),
    Block("encoder", (), "", (1.1, 0), "step"),
    Block("memory", (lengths[0], config.d_model), "English tokens × d_model", (2.3, 0)),
    Block("German so far", (lengths[1], 1), "<s>, tokens", (0, 1.6)),
    Block("decoder", (), "", (2.3, 1.6), "step"),
]
size = lengths[1], config.vocab_size
blocks += [Block("logits", size, "German tokens × vocabulary", (3.7, 1.6), "result")]
ways = [("English", "encoder", ""), ("encoder", "memory", "")]
ways += [("memory", "decoder", "attention"), ("German so far", "decoder", "")]
ways += [("decoder", "logits", "linear layer")]
ways += [("logits", "German so far", "append the best token, and again")]
finding = "The encoder runs once, the decoder once for each German token"
flow_figure(blocks, ways, title=finding)

# %% tags=["hide-input"]
so_far = torch.tensor([[model.config.bos_id, *german]], device=device)
assert model(ids_of(early), so_far)[0].shape == blocks[-1].shape
assert model.encode(ids_of(early))[0].shape == blocks[2].shape

# %% [markdown]
# (There is a row of logits for each token that the decoder has read. In writing only the last row is new; training uses all of them.
# Our model has three layers in each half, and vectors of 256 numbers, d_model in the paper's words; the paper's base model has six layers, 512 numbers, and 65 million parameters.)
#
# Here is this picture as code. (The decoder is given `source` as well, only to find padding, lesson [05](05_masks.ipynb); here there is none.) `ids_of`, from a folded cell, gives a sentence's tokens as numbers, and `name_of` the token of a number.

# %%
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


source = ids_of("We have to get up early tomorrow.")
for step in write(model.encode(source), source):
    print("".join(f"{token:11} {prob:4.0%}     " for token, prob in step))

# %% tags=["hide-input"]
found = write(model.encode(source), source)
with written_for(early, translator.tokenizer.decode(source[0, :-1].tolist())):
    (first, sure), (second, rival), _ = found[4]
    assert (first, second) == ("▁aufstehen", "▁auf")
    assert 0.4 < sure < 0.6 and rival > 0.3
    assert lengths[1] == len(found)

# %% [markdown]
# Each row is a step, with the three best tokens; the first one is written.
# (This search is called greedy. `translate` follows several candidates at once, lesson [11](11_decoding.ipynb).)
#
# The rival of *aufstehen* is *auf*, a word of its own (*on*, *up*). What would follow it here?

# %%
begin = translator.tokenizer.encode("Wir müssen morgen früh auf")
for step in write(model.encode(source), source, begin)[:2]:
    print("".join(f"{token:11} {prob:4.0%}     " for token, prob in step))

# %% tags=["hide-input"]
with written_for(early, translator.tokenizer.decode(source[0, :-1].tolist())):
    forced = write(model.encode(source), source, begin)
    assert [step[0][0] for step in forced[:2]] == ["ste", "hen"]

# %% [markdown]
# *Ste* and *hen*: the same word, in three pieces.
# During training, some words were cut into smaller pieces than needed. That is probably why the model keeps a share for other spellings; *W* beside *Wir* looks like another.
# So *aufstehen* has more than its 48 %, and a low probability need not mean that the model does not know a word.
#
# If one English word changes, which vectors of the memory change?

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
assert milk.shape[1] == len(with_milk) and (moved > 0.01).all() and moved.argmax() == 4

# %% [markdown]
# All of them, but most of them little.
# The memory has one vector for each token, so a longer sentence has a larger memory.
#
# ## Look inside
#
# The attention of German tokens to the memory, cross-attention (lesson [07](07_decoder.ipynb)), is the easiest to look at.
# We translate once more, and this time we keep its weights.

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
# It attends in three layers, counted from 0, and in each of them in several ways at once (its *heads*, lesson [04](04_multi_head.ipynb)).
# In each layer we take the mean of the heads, and ask for each German word: does the largest weight fall on the English word that it translates?
# The order differs, *Heute öffnet der Junge* for *Today the boy opens*, so looking at the same place is right for three of the six words only.

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
# A row is the German token that is being chosen (it has not been read yet), a column an English one.
# Read it row by row: where does the model look to choose this token?

# %%
finding = f"To choose a German word, layer {layer} looks most\n"
finding += f"at the English word that it translates: {hits[layer]} of 6"
figure = attention_map(means[layer], seen.tgt_tokens, seen.src_tokens, title=finding)
_ = figure.axes[0].set(xlabel="English", ylabel="German, being chosen")
figure

# %% tags=["hide-input"]
for weights in means:
    assert torch.allclose(weights.sum(dim=1), torch.ones(len(seen.tgt_tokens)))
assert sum(place == look for place, look in enumerate(english.values())) == 3
with written_for("Today the boy opens the window.", sentence):
    assert hits[layer] == 6 and seen.tgt_tokens[2] == "▁der"
    assert means[layer][2, 1] > 0.75 and means[layer][2, 2] < 0.2

# %% [markdown]
# Nobody told the model which words belong together: it learned from whole sentences.
#
# Does the picture say what decides a token?
# Take *der*. To choose among *der*, *die* and *das*, the model must know the gender of a noun that it has not written yet.
# The row says: 0.84 of *the*, and 0.12 of *boy*.
# We can test it.
# For *Today the girl opens the window.* it writes *das Mädchen*.
# So we take the memory of the sentence with *boy*, and exchange a single vector for the one at the same place in the sentence with *girl*.

# %%
exchanged = Predict(
    "Which vector, exchanged, turns *der* into *das*?",
    ["the one at *the*", "the one at *boy*", "either", "neither alone"],
    section="Look inside",
)
exchanged

# %%
boy = ids_of("Today the boy opens the window.")
of_boy = model.encode(boy)
of_girl = model.encode(ids_of("Today the girl opens the window."))
of_a_boy = model.encode(ids_of("Today a boy opens the window."))
exchanges = {"nothing": (of_boy, [0]), "the, beside girl": (of_girl, [1])}
exchanges |= {"boy → girl": (of_girl, [2])}
exchanges |= {"all but boy": (of_girl, [0, 1, 3, 4, 5, 6, 7])}
exchanges |= {"the → a": (of_a_boy, [1])}
answers = {}
for exchange, (other, places) in exchanges.items():
    mixed = of_boy.clone()
    mixed[0, places] = other[0, places]
    answers[exchange] = [step[0][0] for step in write(mixed, boy)]
    print(f"{exchange:17}", *answers[exchange])

# %% tags=["hide-input"]
single = "the, beside girl", "boy → girl"
turned = tuple(answers[name][2] == "▁das" for name in single)
which = {(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}[turned]
because = "the others, all together, leave each token as it was"
exchanged.reveal(exchanged.choices[which], because=because)
usual, neuter = "▁der ▁Junge", "▁das ▁Mädchen"
told = {name: " ".join(answer[2:4]) for name, answer in answers.items()}
assert told == {
    "nothing": usual,
    "the, beside girl": usual,
    "boy → girl": neuter,
    "all but boy": usual,
    "the → a": "▁ein ▁Junge",
}

# %% [markdown]
# In this sentence each vector decides something else: exchanging the one at *boy* turns *der* into *das*, and exchanging the one at *the* turns it into *ein*.
# Our map alone would have misled us: it gives *boy* 0.12.
# It is one layer of three, and the mean of eight heads. In this layer head 0 gives *boy* 0.9 for *der*, and the other seven look at *the*; the mean hides that.
#
# Is it this head that brings the gender? We ask for the token after *Heute öffnet* three times: with all heads on; with head 0 of layer 1 off (it adds 0); and with head 0 of layer 2 off as well, which looks at *boy*, too.

# %%
from course_lib.analysis import ablate_heads

heads = [("cross", 1, 0), ("cross", 2, 0)]
begin = translator.tokenizer.encode("Heute öffnet")
for name, memory in (("boy", of_boy), ("girl", of_girl)):
    for number in range(3):
        with ablate_heads(model, heads[:number]):
            article = write(memory, boy, begin)[0]
        shown = "".join(f"{token:6}{prob:4.0%}    " for token, prob in article)
        print(f"{name:5} {number} heads off:  {shown}")

# %% tags=["hide-input"]
probs = {}
for number in range(3):
    with ablate_heads(model, heads[:number]):
        found = [write(memory, boy, begin)[0][0] for memory in (of_boy, of_girl)]
    assert [token for token, _ in found] == ["▁der", "▁das"]
    probs[number] = [prob for _, prob in found]
assert min(probs[0]) > 0.75 and min(probs[1]) > 0.7
assert all(probs[2][case] < 0.55 * probs[0][case] for case in (0, 1))
with written_for("Today the boy opens the window.", sentence):
    heads = seen.attention.cross[1][:, 2]  # (heads, English tokens)
    assert heads[0, 2] > 0.85 and (heads[1:].argmax(dim=1) == 1).all()
    assert seen.attention.cross[2][0, 2, 2] > 0.9

# %% [markdown]
# Without the one head almost nothing changes. Without both, the right article loses more than half of its probability, and is still the best for *boy* and for *girl*: some gender must arrive by other heads. (Much probability went to other tokens, so these two heads do more than carry gender.)
# A picture of attention is where a question begins, and an experiment answers it; lesson [12](12_reading_attention.ipynb) does both for a whole model, a smaller one.
# Look at all layers and heads here: choose one, point at a word, type another sentence.

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, sentence, layer=layer)
explorer

# %% tags=["hide-input"]
with written_for(sentence, explorer.text):
    assert explorer.view["src"] == seen.src_tokens

# %% [markdown]
# ## How it learned
#
# In training the decoder reads a *human* translation, whatever it would have written itself.
# It reads that sentence with `<s>` in front, and each position has to answer with the token that follows:
#
# ```
# reads    <s>  Der    Junge    schläft  ,     denn  er   ist   müde  .
# answers  Der  Junge  schläft  ,        denn  er    ist  müde  .     </s>
# ```
#
# A position sees the tokens up to its own only (lesson [05](05_masks.ipynb) shows how), so none has seen its answer, and all answers are predicted in one pass.
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
# Each row has read every token on the left down to its own.
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
    print(f"after {step} steps: loss {loss.item():.2f}, denn {probability:.2%}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% tags=["hide-input"]
assert loss.item() < 0.8 * of_wanted.mean()
assert probability > 5 * math.exp(-of_wanted[4])

# %% [markdown]
# Real training repeats this on batches of many pairs, for hours. Among other changes, the target is about 90 % in place of 100 %, the optimizer is a better one, with steps of scheduled size (lesson [09](09_training.ipynb)), and some words are cut into smaller pieces.
#
# ## What it cannot do
#
# The model has learned from everyday sentences.
# What does it make of a court, a tendon and lichens?

# %%
outside = Predict(
    "No sentence of its training has the word *tendon*. "
    "What does it answer to “The tendon is inflamed.”?",
    ["it says that it is unknown", "it leaves it out", "it copies or invents a word"],
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
because = "reading and writing in pieces make both possible"
outside.reveal(outside.choices[2], because=because)
originals = "The plaintiff waived the appeal.", "The tendon is inflamed."
originals += ("Lichens grow on granite.",)
with written_for(originals, tuple(new)):
    assert all(says[text] and says[text] != right for text, right in new.items())
    assert "Tendon" in says[originals[1]] and "baut" in says[originals[2]]

# %% [markdown]
# It answers all the same, out of the pieces that it knows.
# The first means something like *the order waited the sight*, in bad grammar.
# In the second, *Tendon* is copied, and *unentschämt* is no German word at all: it was made up.
# In the third, *Lichens* is copied, and the verb is *baut* (*builds*), in the singular.
# (The 160,000 pairs of Tatoeba from which it learned have neither *plaintiff* nor *tendon* nor *lichen*.)
#
# A reader who knows no German gets no warning. Do its probabilities tell?
# We take their geometric mean over the tokens of each answer, for our six sentences, these three, and one more.
# Can we trust an answer above 60 %?

# %%
def sureness(text):
    """The geometric mean of the tokens' probabilities."""
    answer = translator.translate(text, **plain)
    return math.exp(answer.score / len(answer.tgt_tokens))


for text in (*examples, *new, "The spring is broken."):
    print(f"{sureness(text):4.0%}  {text}\n      {translator.translate(text, **plain)}")
source = ids_of("The spring is broken.")
first = write(model.encode(source), source)[0]
print("begins: ", *(f"{token} {prob:.0%} " for token, prob in first))
second = write(model.encode(source), source, translator.tokenizer.encode("Die"))[0]
print("Die …: ", *(f"{token} {prob:.0%} " for token, prob in second))

# %% tags=["hide-input"]
spring = "The spring is broken."
with written_for(originals, tuple(new)):
    assert min(map(sureness, claims)) > 0.6 > max(map(sureness, new))
    assert translator.translate(spring, **plain).text == "Der Frühling ist kaputt."
    assert sureness(spring) > 0.7
assert first[0][0] == "▁Der" and first[0][1] > 0.8
assert all("▁Frühling".startswith(token) for token, _ in second)

# %% [markdown]
# All of the six are above 60 %, and none of the three. But the last one refutes the rule: a spring that breaks is a coil, *Die Feder ist kaputt*; the model wrote *Frühling*, the season.
# *Feder* would need *Die*. The model is sure of *Der*; and forced to begin with *Die*, it still prefers pieces of *Frühling*. *Feder* begins none of its three best continuations.
# A low probability is a hint, and a high one is no proof.
#
# ## More than translation
#
# The same blocks, in other arrangements, are everywhere:
#
# | arrangement | reads | outputs | for example |
# |---|---|---|---|
# | encoder and decoder | a sequence | another sequence | translation, summaries, speech to text: T5, BART, Whisper |
# | encoder only | a sequence | one vector for each token, or one for all | search, classification, finding names: BERT |
# | decoder only, without a memory | the beginning of a sequence | what comes next | text, code, dialogue: GPT, Llama |
# | encoder on patches | a picture, cut into patches | a label, or a vector | what is in a picture: ViT |
#
# ## The way ahead
#
# In lessons 01 to 09 you build one piece after another by hand, see what it does, break it, and then import the finished one; those after it train, decode, look inside and go past the paper.
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
# The paper is "Attention Is All You Need" [@vaswani2017]; each lesson says which section it belongs to.
# A word that you have forgotten is in the [list of terms](terms.md).
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **attention**: a token gets the weighted mean of vectors made from tokens, of the other sentence or of its own; the weights are computed anew for each token.
# - **recurrent networks**: read a sequence step by step, updating one state vector.
# - **Transformer**: a network of attention and of small networks that are the same at every position, without recurrence.
# - **tokens**: words, pieces of words and punctuation marks, which the model reads and writes.
# - **encoder**: reads the source, all tokens at once.
# - **memory**: the encoder's vectors, one for each source token.
# - **decoder**: writes the target token by token, reading the memory.
# - **logits**: one score for each token of the vocabulary, for what comes next.
# - **attention weights**: how much of each token attention takes; they sum to 1.
# - **loss**: what training makes smaller; here the mean of −log(probability) of the human's tokens.

# %% [markdown]
# ## Summary
#
# Our Transformer turns a sequence of tokens into another sequence of tokens.
# The encoder reads the source at once and makes the memory, one vector for each source token.
# The decoder writes the target token by token; in training it predicts all tokens of a human translation at once.
# Attention weighs the memory for each token that is written. We can look at the weights, but they do not say what a vector changes in the output. To find out, exchange it and see.
# The model can be badly wrong, on rare words and on everyday ones; it answers all the same, and its probabilities are a hint at best.
#
# **Next**: lesson [01](01_text_to_tensors.ipynb) turns sentences into numbers.
