# %% [markdown]
# # 12 · Reading attention: what a map shows, and what it does not
#
# **Question.** We can draw every weight of a trained model. What may we conclude from such a picture?
#
# **Afterwards you can**
#
# 1. draw the attention of every layer and head, with the right token at each row;
# 2. test what a head does: against gold links, against the grammar, and by switching it off;
# 3. name four ways in which a map misleads, and the experiment that tells.
#
# **You need** several heads (lesson [04](04_multi_head.ipynb)), the decoder ([07](07_decoder.ipynb)) and a trained translator ([10](10_translation.ipynb)).
# **Time**: 40 minutes to read, under a minute to run.
# **In the paper**: the last paragraph of section 4, and figures 3 to 5.

# %%
from collections import defaultdict
from contextlib import contextmanager

import torch

from course_lib.charts import bars, curves
from course_lib.data.batches import encode_pairs, make_batch
from course_lib.panels import Panel, panels
from course_lib.plots import attention_grid, attention_map
from course_lib.recording import record_attention
from course_lib.silence import KINDS, all_heads, attentions, silence_heads
from course_lib.translator import Translator

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.to(device), translator.tokenizer
assert not model.training

# %% [markdown]
# ## Every map
#
# The small course translator has 2 + 2 layers of 4 heads.
# How many maps does one translation leave behind?

# %% tags=["nbval-check-output"]
text = "The old woman gives the child a red apple."
seen = translator.translate(text, attention=True)
src, tgt = seen.src_tokens, seen.tgt_tokens
maps = {kind: torch.stack(getattr(seen.attention, kind)).cpu() for kind in KINDS}
print(seen.text)
for kind, weights in maps.items():
    print(f"{kind:8}{tuple(weights.shape)}")  # (layers, heads, queries, keys)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
assert [len(each.flatten(0, 1)) for each in maps.values()] == [8, 8, 8]

# %% [markdown]
# Twenty-four: eight of each kind, and every row of each sums to 1.
# We count layers and heads from 0.
#
# Which token belongs to which row, and which to which column?
# That is half of reading a map, so we write it down once.


# %%
labels = {
    "encoder": (src, src),  # an English token looks at English tokens
    "decoder": (tgt, ["<s>", *tgt[:-1]]),  # a prediction looks at what was read
    "cross": (tgt, src),  # a prediction looks at English tokens
}


def draw(kind, title):
    """All heads of one kind, a row of maps for each layer."""
    figure = attention_grid(maps[kind].flatten(0, 1), *labels[kind], title=title)
    for number, axes in enumerate(figure.axes[:8]):
        axes.set_xlabel(f"layer {number // 4}, head {number % 4}")
    return figure


# %% [markdown]
# First the encoder: English tokens look at English tokens.
# Look for a head of which you can say in one sentence what it does.

# %%
nouns = {0: "▁woman", 5: "▁child", 7: "▁apple"}  # of the articles in rows 0, 5 and 7
first = maps["encoder"].argmax(dim=-1)  # (layers, heads, queries)
finders = [
    (layer, head)
    for layer in range(2)
    for head in range(4)
    if all(src[first[layer, head, row]] == noun for row, noun in nouns.items())
]
assert finders == [(1, 3)]
draw("encoder", "Layer 1, head 3 is the only one that takes each article to its noun")

# %% [markdown]
# Head 3 of layer 1: *The* → *woman*, *the* → *child*, *a* → *apple*.
#
# Now the decoder's self-attention.
# Its rows are named by what they *predict*, its columns by what was *read*.
# What must all these maps have in common?

# %%
decoder = maps["decoder"]
assert (decoder.triu(1) == 0).all() and (decoder.tril() > 0).sum() > 8 * 12
assert decoder[..., 0, 0].min() > 0.999
draw("decoder", "The decoder looks back, never ahead: all above the diagonal is 0")

# %% [markdown]
# Nothing above the diagonal; and the first row has no choice, it can look at `<s>` only.
#
# Last the cross-attention: German predictions look at English.
# Some of these eight maps could serve as a dictionary. Which?

# %%
first = maps["cross"].argmax(dim=-1)
dictionary = {"▁alte": "▁old", "▁Frau": "▁woman", "▁Kind": "▁child", "▁rot": "▁red"}
dictionary |= {"▁Die": "▁The", "▁dem": "▁the", "▁einen": "▁a", "▁Apfel": "▁apple"}
found = torch.zeros(2, 4, dtype=torch.long)
for word, translation in dictionary.items():
    found += first[:, :, tgt.index(word)] == src.index(translation)
print("words found, of 8:", found.tolist())
assert (found[1, 1:] == 8).all() and found[0].max() < 8 and found[1, 0] < 8
draw("cross", "Heads 1 to 3 of layer 1 find the word that is translated")

# %% [markdown]
# Three heads of layer 1 find all eight words; no other head does.
#
# **A common mistake** in published plots: the source tokens stand on the axis of the target.
# Both sentences have twelve tokens here, so no shape warns us.
# But every query shares out a weight of 1, so along the rows of a true map the sums are 1: rows are target queries, columns are source keys.
#
# <!-- widget: attention explorer -->

# %% tags=["nbval-check-output"]
weights = maps["cross"][1, 1]
for name, each in (("as recorded", weights), ("transposed", weights.T)):
    sums_to_one = (each.sum(dim=1) - 1).abs() < 1e-5
    print(f"{name:12}{int(sums_to_one.sum()):3} of 12 rows sum to 1")
    assert sums_to_one.all() == (name == "as recorded")

# %% [markdown]
# ## From a picture to a number
#
# One sentence is an anecdote.
# We need many sentences, and something to count.
#
# The grammar of the course corpus knows which English word belongs to which German word: the **gold links**.
# It builds a tree first, and says it in both languages.
# We keep the trees, because later we ask them for more.
# And we want sentences that the model has never seen, so we make sure.

# %%
from course_lib.data.course import load_course
from course_lib.grammar.align import realize
from course_lib.grammar.generate import MAX_WORDS, trees

count = 3000 if device == "cuda" else 1000
train = load_course(num_train=60_000).train  # what the translator learned from
known, new = {pair.src for pair in train}, {}
for tree in trees(seed=1):
    pair = realize(tree)
    if pair.src not in known and len(pair.tgt_words) <= MAX_WORDS:
        new[pair.src] = tree, pair
    if len(new) == count:
        break
tree_of, pairs = zip(*new.values(), strict=True)
assert len({pair.src for pair in pairs} - known) == count

# %% [markdown]
# The first half is for *choosing* (which head is best?), the second for *reporting*.
# To choose and report on the same sentences would flatter the head.
#
# The model gets the true German sentence, shifted right, and we record all its maps.

# %%
half = count // 2
choosing, reporting = range(half), range(half, count)
HEADS = [(layer, head) for layer in range(2) for head in range(4)]


def record(pairs, size=50):
    """For each pair its maps: kind → (layers, heads, queries, keys), padded."""
    found = []
    for begin in range(0, len(pairs), size):
        batch = make_batch(encode_pairs(tokenizer, pairs[begin : begin + size]))
        with torch.no_grad(), record_attention(model) as maps:
            model(batch.src.to(device), batch.tgt_in.to(device))
        stacks = [torch.stack(getattr(maps, kind), dim=1).cpu() for kind in KINDS]
        for each in zip(*stacks, strict=True):
            found.append(dict(zip(KINDS, each, strict=True)))
    return found


# %%
recorded = record(pairs)
assert len(recorded) == count and recorded[0]["cross"].shape[:2] == (2, 4)

# %% [markdown]
# Links connect words, and attention connects subwords.
# What should we do with *gives*, which is `▁gi` and `ves`?
# A key in two pieces gets the sum of both weights; a query in two pieces, the mean of both rows (as Clark et al. 2019 do).
# Whatever goes to `</s>` gets a column of its own: "no word".


# %%
from course_lib.alignment import word_spans, word_weights
from course_lib.grammar import build as grammar


def spans(pair):
    """The token positions of each English word, and of each German word."""
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, tokenizer.tokens(text)) for text, words in texts]


woman, child = grammar.the("woman", "old"), grammar.the("child")
apple = grammar.a("apple", "red")
example = grammar.pair(grammar.clause(woman, "geben", dative=child, accusative=apple))
assert (example.src, example.tgt) == (text, seen.text)

# %%
weights = maps["cross"][1, 0]  # layer 1, head 0
src_spans, tgt_spans = spans(example)
by_hand = torch.zeros(len(tgt_spans), len(src_spans) + 1)
for row, tgt_span in enumerate(tgt_spans):
    for column, src_span in enumerate([*src_spans, [len(src) - 1]]):
        parts = [sum(weights[t, s] for s in src_span) for t in tgt_span]
        by_hand[row, column] = sum(parts) / len(parts)
torch.testing.assert_close(by_hand, word_weights(weights, src_spans, tgt_spans))
assert weights.shape == (12, 12) and by_hand.shape == (10, 11)

# %% [markdown]
# Twelve tokens became ten words, and the loop agrees with `course_lib`.
#
# The largest weight of a row is a link that the head *predicts*.
# Now we compare the predicted links P with the gold links G.
# The **alignment error rate** (Och and Ney 2003; here all gold links are sure) is 1 − 2 |P ∩ G| / (|P| + |G|).
# It is 0 if they are the same, and 1 if they share nothing.

# %% tags=["nbval-check-output"]
from course_lib.alignment import strongest_links
from course_lib.metrics import alignment_error_rate

best_columns = enumerate(by_hand.argmax(dim=1).tolist())
predicted = {(column, row) for row, column in best_columns if column < len(src_spans)}
gold = set(example.links)
by_formula = 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))
for name, only in (("predicted", predicted - gold), ("gold", gold - predicted)):
    words = [(example.src_words[s], example.tgt_words[t]) for s, t in sorted(only)]
    print(f"{name} only:", " · ".join(f"{src} = {tgt}" for src, tgt in words))
print(f"alignment error rate of head 1.0: {by_formula:.2f}")
assert predicted == strongest_links(by_hand)
assert by_formula == alignment_error_rate(predicted, gold) > 0.5

# %% [markdown]
# Head 1.0 means head 0 of layer 1.
# It goes to the *noun* where an article or an adjective is due, so as a dictionary it is a bad one.
# Keep that in mind: a bad aligner may be busy with something else.
#
# ## Which row belongs to which token?
#
# **A common mistake**: "row *t* of the cross-attention explains word *t*."
# The query at position *t* holds y_t, which was read, and the position predicts y_{t+1} (lesson 07).
# Our rows are named by what they predict.
# What if we name them by what they read? That is one row lower.
#
# We score every head of the cross-attention both ways, and the mean of each layer's heads too.
# Predict: how much worse is the wrong way?

# %%
from course_lib.alignment import corpus_error_rate, diagonal_links


def head_links(part, lower=0):
    """Links of each sentence, by layer and head; `lower` takes rows further down."""
    found = defaultdict(list)
    for number in part:
        cross = recorded[number]["cross"].roll(-lower, dims=-2)  # (layers, heads, …)
        cross = torch.cat([cross, cross.mean(dim=1, keepdim=True)], dim=1)
        for layer, heads in enumerate(word_weights(cross, *spans(pairs[number]))):
            for head, weights in enumerate(heads):
                found[layer, head].append(strongest_links(weights))
    return found


# %%
def error_rates(links, part):
    """Error rates on a part of the sentences: (layers, heads and their mean)."""
    gold = [pairs[number].links for number in part]
    rates = [corpus_error_rate(found, gold) for found in links.values()]
    return torch.tensor(rates).unflatten(0, (2, 5))


links = head_links(reporting)
rates = error_rates(links, reporting)
rates_lower = error_rates(head_links(reporting, lower=1), reporting)
assert (rates_lower > rates + 0.3).all() and rates_lower.min() > 0.7

# %%
heads = [f"head {head}" for head in range(4)]
axes = ["layer 0", "layer 1"], [*heads, "mean"]
figure = panels(
    [
        Panel(rates, *axes, "named by what is predicted", "weights"),
        Panel(rates_lower, *axes, "named by what is read", "weights"),
    ],
    title=f"One row lower, no head errs in less than {100 * rates_lower.min():.0f} %",
    words={"weights": "alignment error rate"},
)
drawn = [axes.images[0].get_array().tolist() for axes in figure.axes[:2]]
assert drawn == [rates.tolist(), rates_lower.tolist()]
figure

# %% [markdown]
# Every head, in both layers, is at least 30 points worse one row lower.
# The left table also names the good aligners: heads 1, 2 and 3 of layer 1.
#
# ## Good compared with what?
#
# An error rate alone says little.
# A first baseline knows no words at all: it links each German word to the English word at the same share of its sentence, the **diagonal**.
#
# The second knows nothing *but* words: **IBM model 1** (Brown et al. 1993), by which word alignment began.
# It has one table, t(German word | English word), and learns it from sentence pairs without any links.
# How can it? Four pairs are enough to see it.

# %%
toy = {"the cat sleeps": "die Katze schläft", "the dog sleeps": "der Hund schläft"}
toy |= {"a cat sees": "eine Katze sieht", "a dog sees": "ein Hund sieht"}
toy = [(source.split(), target.split()) for source, target in toy.items()]


def expectation(t):
    """Each German word is shared among the words that may explain it, by t."""
    counts = defaultdict(float)
    for src_words, tgt_words in toy:
        for word in tgt_words:
            total = sum(t[source, word] for source in [None, *src_words])
            for source in [None, *src_words]:
                counts[source, word] += t[source, word] / total
    return counts


# %% [markdown]
# `None` is the empty word, for German words that translate nothing.
# The other half of a round turns counts into probabilities again.


# %%
def maximization(counts):
    """What share of an English word's counts goes to each German word?"""
    totals = defaultdict(float)
    for (source, _), number in counts.items():
        totals[source] += number
    return {(source, word): n / totals[source] for (source, word), n in counts.items()}


rounds, t = [], defaultdict(lambda: 1 / 8)  # eight German words, all equal at first
for _ in range(10):
    t = maximization(expectation(t))
    rounds.append(t)
assert len({word for _, tgt_words in toy for word in tgt_words}) == 8

# %% [markdown]
# Nothing is known, so the first round shares each *Katze* equally between its article, *cat*, the verb and the empty word.
# But *cat* is there whenever *Katze* is.
# Predict: what happens to t(Katze | cat), to t(die | cat), and to t(schläft | sleeps)?

# %%
from course_lib.ibm import train_ibm1

watched = [("cat", "Katze"), ("sleeps", "schläft"), ("the", "schläft"), ("cat", "die")]
series = {
    f"t({word} | {source})": (range(1, 11), [t[source, word] for t in rounds])
    for source, word in watched
}
finished = train_ibm1(toy, iterations=10)
for (source, word), share in t.items():
    assert abs(finished.table([source], [word]).item() - share) < 1e-12
assert t["cat", "Katze"] > 0.75 > 0.15 > t["cat", "die"]
assert abs(t["sleeps", "schläft"] - t["the", "schläft"]) < 1e-12
title = "Katze finds cat; schläft cannot tell sleeps from the"
curves(series, xlabel="round", ylabel="probability", title=title)

# %% [markdown]
# The dictionary sharpens by itself, and `course_lib.ibm` finds the same numbers.
# *Sleeps* and *the* always come together here, so no counting can tell them apart (their two lines are one).
# That takes more sentences.
#
# We train on sentences that the translator learned from.
# How many are enough?

# %%
models = {}
for number in (2_500, 10_000):
    words = [(pair.src_words, pair.tgt_words) for pair in train[:number]]
    models[number] = train_ibm1(words)
    likelihoods = models[number].log_likelihoods
    assert likelihoods == sorted(likelihoods) and likelihoods[0] < likelihoods[-1]
ibm = models[10_000]
for word in ("dog", "sleeps", "the", None):
    best = ibm.translations(word, 4)
    print(f"{word or '(empty)':8}", *(f"{tgt} {share:.0%}" for tgt, share in best))
assert ibm.translations("dog", 1)[0][0] == "Hund"


# %%
def error_of(find):
    """Error rate of links that are found from a pair, on the second half."""
    found = [find(pairs[number]) for number in reporting]
    return corpus_error_rate(found, [pairs[number].links for number in reporting])


def by_words(model):
    return lambda pair: model.links(pair.src_words, pair.tgt_words)


def by_place(pair):
    return diagonal_links(len(pair.src_words), len(pair.tgt_words))


ibm_1, smaller = error_of(by_words(ibm)), error_of(by_words(models[2_500]))
print(f"IBM model 1: {smaller:.1%} from 2,500 pairs, {ibm_1:.1%} from 10,000")
assert 0 < smaller - ibm_1 < 0.02

# %% [markdown]
# Each round makes the German sentences more probable (that is asserted above), and four times as many pairs bring little.
# So it is not the amount of text that limits the model.
#
# Now the comparison.
# The best head is chosen on the first half, and reported on the second.
# Not even a perfect aligner reaches 0 with one link a word, because some German words have several: *holt … ab* is *picks up*.


# %%
def one_a_word(pair):
    """The best that is possible with one link for each German word."""
    return {max(link for link in pair.links if link[1] == tgt) for _, tgt in pair.links}


rates_before = error_rates(head_links(choosing), choosing)
best = divmod(rates_before[:, :4].argmin().item(), 4)
bound, diagonal = error_of(one_a_word), error_of(by_place)
assert best == (1, 1) and 0.01 < bound < rates[best] < 0.8 * ibm_1
assert rates[1, [2, 4]].max() < ibm_1 < rates[1, 3] < 1.5 * ibm_1
assert 2 * ibm_1 < min(rates[0, :4].min(), rates[1, 0], diagonal)

# %%
rows = {}
for layer in range(2):
    *each, rows[f"mean of layer {layer}"] = rates[layer].tolist()
    rows |= {f"head {layer}.{head}": rate for head, rate in enumerate(each)}
rows |= {"diagonal": diagonal, "IBM model 1": ibm_1, "best with one link a word": bound}
rows = dict(sorted(rows.items(), key=lambda row: row[1]))
assert rows["head 1.1"] < rows["IBM model 1"] < rows["diagonal"]
bars(
    list(rows),
    [100 * rate for rate in rows.values()],
    xlabel="alignment error rate (%); lower is better",
    title=f"The best head, {best[0]}.{best[1]}, errs in {rates[best]:.0%}, "
    f"IBM model 1 in {ibm_1:.0%}, the diagonal in {diagonal:.0%}",
    value_format="{:.1f}",
)

# %% [markdown]
# The best head is below both baselines, though nobody ever told it what a link is.
# Head 1.2 is below both as well, and head 1.3 not far behind; the other five err more than twice as often as IBM model 1.
#
# What does the head know that model 1 does not?
# One guess: *which* of two equal words. *The cat sees the dog.* has two *the*.
# We split the gold links by that.


# %%
def found_share(find, repeated):
    """Percent of the gold links found, of English words that are repeated or not."""
    hits = []
    for number in reporting:
        pair, found = pairs[number], find(pairs[number])
        words = [word.lower() for word in pair.src_words]
        for link in pair.links:
            if (words.count(words[link[0]]) > 1) == repeated:
                hits.append(link in found)
    return 100 * sum(hits) / len(hits)


# %%
sources = [pairs[number].src for number in reporting]
links_of = dict(zip(sources, links[best], strict=True))
finders = {"head 1.1": lambda pair: links_of[pair.src], "IBM model 1": by_words(ibm)}
single = [found_share(find, repeated=False) for find in finders.values()]
twice = [found_share(find, repeated=True) for find in finders.values()]

# %%
assert abs(single[0] - single[1]) < 4 and twice[0] > twice[1] + 20
names = [f"{name}, {words}" for words in ("single", "repeated") for name in finders]
bars(
    names,
    single + twice,
    xlabel="gold links found (%)",
    title=f"With single words both are alike; of repeated ones the head "
    f"finds {twice[0]:.0f} %, IBM model 1 {twice[1]:.0f} %",
)

# %% [markdown]
# The difference lies in repeated words: model 1 has one number for *the*, whichever *the* it is.
# So let us be fair, and help it: of equally probable words it may take the one nearest to the diagonal.


# %%
def nearest_of_equals(pair):
    """Links of IBM model 1, where positions decide between equal words."""
    table = torch.tensor(ibm.table([*pair.src_words, None], pair.tgt_words))
    place = torch.tensor(sorted((tgt, src) for src, tgt in by_place(pair)))[:, 1]
    distance = (torch.arange(table.shape[1]) - place[:, None]).abs()
    distance[:, -1] = table.shape[1]  # the empty word is near to nothing
    first = (table * (1 - 1e-6 * distance)).argmax(dim=1)
    known = (first < len(pair.src_words)) & (table.max(dim=1).values > 0)
    return {(first[row].item(), row) for row in known.nonzero().flatten().tolist()}


helped = error_of(nearest_of_equals)
print(f"IBM model 1 {ibm_1:.1%}, helped {helped:.1%}, head 1.1 {rates[best]:.1%}")
assert 0.25 < (ibm_1 - helped) / (ibm_1 - rates[best]) < 0.75

# %% [markdown]
# That is about half the way.
# The head is still ahead, but note: a baseline is as strong as we care to make it.
#
# ## Tasks of heads
#
# The paper says that heads "clearly learn to perform different tasks" (section 4), and shows examples.
# One sentence can be chosen to please, so we count.
#
# The simplest task is a *place*: always the token before, the same one, the next, or the first.
# Voita et al. (2019) call a head positional if its largest weight keeps to one place in 90 % of the rows.
# Has our model such heads?


# %%
def place_shares(kind):
    """Share of rows that look before, at, or after themselves, or first: (heads, 4)."""
    hits, total = torch.zeros(8, 4), 0
    for number in reporting:
        rows = sum(map(len, spans(pairs[number])[kind != "encoder"])) + 1  # with </s>
        first = recorded[number][kind].argmax(dim=-1).flatten(0, 1)[:, :rows]
        own = torch.arange(rows)
        places = torch.stack([own - 1, own, own + 1, torch.zeros_like(own)])
        hits += (first[:, None] == places).sum(dim=-1)
        total += rows
    return hits / total


# %%
places = {kind: place_shares(kind) for kind in KINDS}
faithful = {kind: shares.max().item() for kind, shares in places.items()}
assert 0.6 < faithful["decoder"] == places["decoder"][3, 1].item() < 0.9
assert max(faithful["encoder"], faithful["cross"]) < 0.5
names, columns = [f"{a}.{b}" for a, b in HEADS], ["before", "same", "after", "first"]
panels(
    [Panel(shares, names, columns, kind, "weights") for kind, shares in places.items()],
    title="No head keeps to one place; decoder 0.3, at the newest token, comes nearest",
    words={"weights": "share of rows"},
)

# %% [markdown]
# None, by that measure.
#
# So what do they look for?
# Figure 4 of the paper shows two heads "apparently involved in anaphora resolution": *its* looks at the noun that it stands for.
# To test that, we must know who belongs to whom, and our trees do.
# A part of a tree is a node with a name, like (clause, "verb"), and each word knows the parts that it says.


# %% tags=["nbval-check-output"]
from course_lib.grammar import english, german
from course_lib.grammar.syntax import Notes


def where(words):
    """Part of the tree → the positions of the words that say it."""
    found = defaultdict(list)
    for position, word in enumerate(words):
        for part in word.parts:
            found[part].append(position)
    return found


chosen = next(n for n, pair in enumerate(pairs) if "pronoun gender" in pair.phenomena)
said = english.sentence(tree_of[chosen]), german.sentence(tree_of[chosen], Notes())
for words, same in zip(said, (pairs[chosen].src, pairs[chosen].tgt), strict=True):
    print(*(word.text for word in words))
    assert " ".join(word.text for word in words[1:-1]).replace(" ,", ",") in same

# %% [markdown]
# Here are the relations that we ask for.
# In a clause: a separable prefix and its verb (*macht … zu*), a finite verb and its subject, a pronoun and its noun, a determiner of an object and the verb, a verb at the end and the conjunction that sends it there.


# %%
def clause_relations(tree):
    """Name, who should look, at what; some of these parts are not said at all."""
    for clause in filter(None, (tree.first, tree.second)):
        subject, objects = clause.subject, (clause.accusative, clause.dative)
        yield "prefix → verb", (clause, "verb"), (clause, "verb")
        yield "finite verb → subject", (clause, "tense"), (subject, "noun")
        for phrase in (subject, *objects):
            noun = getattr(phrase, "antecedent", None)
            yield "pronoun → its noun", (phrase, "pronoun"), (noun, "noun")
        for phrase in objects:
            yield "object's determiner → verb", (phrase, "det"), (clause, "verb")
    if tree.second and tree.conjunction.subordinating:
        finite, conjunction = (tree.second, "tense"), (tree, "conjunction")
        yield "finite verb → conjunction", finite, conjunction


# %% [markdown]
# And in a noun phrase: determiner and noun, adjective and noun, adjective and determiner, determiner and preposition.


# %%
def phrase_relations(parts):
    """The same for the noun phrases that are said."""
    for node, name in list(parts):
        if name == "noun":
            yield "determiner → noun", (node, "det"), (node, "noun")
            for adjective in node.adjectives:
                word = (node, adjective.english)
                yield "adjective → noun", word, (node, "noun")
                yield "adjective → determiner", word, (node, "det")
        elif name == "preposition":
            phrase = node.noun_phrase
            yield "determiner → preposition", (phrase, "det"), (node, "preposition")


# %% [markdown]
# Then we carry them over to rows and keys.
# In the decoder, the row is the one that *predicts* the word, and the wanted word must have been read already; it stands one place further right, behind `<s>`.
# In the cross-attention, a German word asks for an English one, but not for its own translation: that was the last section.


# %%
def goals(number, kind):
    """Name, row and wanted keys of every relation that the sentence has."""
    tree, (src, tgt) = tree_of[number], spans(pairs[number])
    read, written = where(english.sentence(tree)), where(german.sentence(tree, Notes()))
    asks, rows = (read, src) if kind == "encoder" else (written, tgt)
    answers, columns = (written, tgt) if kind == "decoder" else (read, src)
    for name, a, b in [*clause_relations(tree), *phrase_relations(asks)]:
        if a not in asks or b not in answers:
            continue
        word, wanted = asks[a][-1], answers[b][0]
        keys, own = columns[wanted], pairs[number].links
        if kind == "decoder":  # behind <s>, and read already
            keys = range(keys.start + 1, keys.stop + 1) if wanted < word else ()
        if keys and (word != wanted if kind != "cross" else (wanted, word) not in own):
            yield name, rows[word][0], keys


# %% [markdown]
# We need something to compare with, and chance is too easy.
# A determiner mostly stands right before its noun.
# A head that always looks one place to the right would find most nouns, and know nothing about them.
# So the opponent is the **best fixed distance**.
# Head and distance are chosen on the first half of the sentences; both are scored on the second.


# %%
def collect(kind):
    """For each relation its cases: half, distances of the keys, hits of the heads."""
    found = defaultdict(list)
    for number in range(count):
        first = recorded[number][kind].argmax(dim=-1).flatten(0, 1)  # (heads, queries)
        for name, row, keys in goals(number, kind):
            hits = [key in keys for key in first[:, row].tolist()]
            found[name].append((number >= half, {key - row for key in keys}, hits))
    return found


def shares(cases):
    """How often each head finds the keys, and how often each distance does."""
    total, every = len(cases), [hits for *_, hits in cases]
    by_head = [sum(each) / total for each in zip(*every, strict=True)]
    distances = range(-20, 21)
    return by_head, [sum(d in near for _, near, _ in cases) / total for d in distances]


# %%
tasks = {}
for kind in KINDS:
    for name, cases in collect(kind).items():
        old, new = ([case for case in cases if case[0] == later] for later in (0, 1))
        if min(len(old), len(new)) < 40:
            continue  # a share of so few says little
        head, distance = (each.index(max(each)) for each in shares(old))
        by_head, by_distance = shares(new)
        task = f"{name} ({head // 4}.{head % 4})"
        tasks[kind, task] = by_head[head], by_distance[distance], by_head

real = {task for task, (head, distance, _) in tasks.items() if head > distance + 0.15}
seeming = {task for task, (head, *_) in tasks.items() if head > 0.75} - real
print(f"{len(tasks)} tasks: {len(real)} real, {len(seeming)} seeming")

# %% [markdown]
# We draw the tasks that a head solves in more than half of the cases.
# The head that does it best stands behind the task, in parentheses.

# %%
drawn = []
for kind in KINDS:
    of_kind = {task: each for (which, task), each in tasks.items() if which == kind}
    solved = {task: each[:2] for task, each in of_kind.items() if each[0] > 0.5}
    values = list(solved.values())
    drawn.append(Panel(values, list(solved), ["head", "distance"], kind, "weights"))
assert all(panel.values for panel in drawn)
panels(
    drawn,
    title="Some heads find what no fixed distance finds; others only seem to",
    words={"weights": "share found, on new sentences"},
    per_row=2,
)

# %% [markdown]
# Read the numbers in pairs: only the difference to the distance is knowledge.
#
# - **Real**: encoder 1.3 takes pronouns to their nouns, decoder 1.0 a last verb to its conjunction, decoder 1.2 a prefix to its verb, cross 1.0 a determiner to the noun that comes next.
# - **Seeming**: "encoder 1.0 finds subjects" and "encoder 1.3 finds the nouns of adjectives" would make fine pictures, but a fixed distance does as well.

# %%
assert {
    ("encoder", "pronoun → its noun (1.3)"),
    ("encoder", "determiner → noun (1.3)"),
    ("decoder", "finite verb → conjunction (1.0)"),
    ("decoder", "prefix → verb (1.2)"),
    ("cross", "determiner → noun (1.0)"),
} <= real
for task in ("finite verb → subject (1.0)", "adjective → noun (1.3)"):
    by_head, by_distance, _ = tasks["encoder", task]
    assert ("encoder", task) in seeming and by_head - by_distance < 0.05
conjunction = tasks["decoder", "finite verb → conjunction (1.0)"]
assert conjunction[0] > 0.99

# %% [markdown]
# So the paper's guess about anaphora holds for a head of our model, and now it is a number.
# Here are two of the real tasks, in the sentence from above.

# %%
src, tgt = ([*tokenizer.tokens(each), "</s>"] for each in pairs[chosen][:2])
read = ["<s>", *tgt[:-1]]
anaphora = recorded[chosen]["encoder"][1, 3, : len(src), : len(src)]
last_verb = recorded[chosen]["decoder"][1, 0, : len(tgt), : len(tgt)]
assert src[anaphora[src.index("▁it")].argmax()] == "▁station"
assert read[last_verb[tgt.index("▁mag")].argmax()] == "▁weil"
panels(
    [
        Panel(anaphora, src, src, "encoder 1.3", "weights", ylabel="query"),
        Panel(last_verb, tgt, read, "decoder 1.0", "weights", ylabel="predicted"),
    ],
    title="Row it looks at station; row mag, the last verb, looks at weil",
)

# %% [markdown]
# ## Switch it off
#
# A head that looks at the right place may still be useless.
# What it is *for* shows when it is gone (Michel et al. 2019 and Voita et al. 2019 did that with large models).
#
# Its context enters the rest of the model through its columns of W_O, and nowhere else (lesson 04).
# With zeros in these columns the head can look wherever it likes; nobody hears of it.
# `silence_heads` does the same without touching the weights.

# %%
batch = make_batch(encode_pairs(tokenizer, pairs[half : half + 50])).to(device)
output_proj = attentions(model, "cross")[1].output_proj
before = output_proj.weight.clone()
with torch.no_grad():
    output_proj.weight.unflatten(1, (4, -1))[:, 3] = 0  # (d_model, heads, d_k): head 3
    by_hand = model(batch.src, batch.tgt_in)
    output_proj.weight.copy_(before)
    plain = model(batch.src, batch.tgt_in)
    with silence_heads(model, [("cross", 1, 3)]):
        silent = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(silent, by_hand, rtol=1e-4, atol=1e-4)
    assert torch.equal(model(batch.src, batch.tgt_in), plain)
    assert not torch.allclose(silent, plain, atol=0.1)

# %% [markdown]
# Our measure is exact match, on sentences that the model has never seen.
# One parallel pass is enough: a free-running translation is right exactly if every prediction is right under teacher forcing (lesson 07).
# Batches of like length save time.

# %%
order = sorted(reporting, key=lambda number: len(pairs[number].tgt_words))
parts = [[pairs[n] for n in order[begin : begin + 50]] for begin in range(0, half, 50)]
batches = [make_batch(encode_pairs(tokenizer, part)).to(device) for part in parts]


@torch.no_grad()
def right(silent=(), batches=batches):
    """For each sentence: is every prediction right when these heads are silent?"""
    found = []
    with silence_heads(model, silent):
        for batch in batches:
            guesses = model(batch.src, batch.tgt_in).argmax(dim=-1)
            wrong = (guesses != batch.tgt_out) & (batch.tgt_out != model.config.pad_id)
            found.append(~wrong.any(dim=1))
    return torch.cat(found).cpu()


# %%
from course_lib.decoding import greedy

middle = len(batches) // 2
with silence_heads(model, [("decoder", 0, 2)]):
    outputs = [hypothesis.ids for hypothesis in greedy(model, batches[middle].src)]
true = [tokenizer.encode(pair.tgt) for pair in parts[middle]]
free = [ids == wanted for ids, wanted in zip(outputs, true, strict=True)]
assert right([("decoder", 0, 2)], batches[middle : middle + 1]).tolist() == free
assert 0 < sum(free) < len(free)

# %% [markdown]
# Free-running and in one pass, the same sentences are right, with a silent head too.
#
# Now all 24 heads, one at a time.
# Predict: which loss hurts most? That of 1.1 in the cross-attention, the best aligner?

# %%
all_right = right()
without = {head: right([head]) for head in all_heads(model)}
start = all_right.float().mean().item()
cost = {head: start - each.float().mean().item() for head, each in without.items()}
costliest = max(cost, key=cost.get)
least = start - cost[costliest]
print(f"exact match {start:.1%}, without the costliest head {least:.1%}: {costliest}")
assert start > 0.95 and costliest == ("decoder", 0, 2)
assert cost[costliest] > 0.25 > 0.2 > sorted(cost.values())[-2]

# %%
places = [f"{kind}, layer {layer}" for kind in KINDS for layer in range(2)]
costs = torch.tensor(list(cost.values())).unflatten(0, (6, 4))
figure = panels(
    [Panel(100 * costs, places, heads, "one head silent")],
    title="The costliest head is decoder 0.2, which never sees an English word",
    words={"signed": "exact match lost, in points"},
)
assert divmod(figure.axes[0].images[0].get_array().argmax(), 4) == (2, 2)
assert places[2] == "decoder, layer 0"
figure

# %% [markdown]
# One head of the decoder's self-attention is worth more than 25 points, and no other head is worth 20.
# It has no alignment error rate at all, because its keys are German.
#
# Does a better aligner at least cost more?
# We put the eight heads of the cross-attention in order, by the one number and by the other.
# A rank correlation of 1 means the same order, −1 the reverse (Spearman).


# %%
def rank_correlation(x, y):
    """Correlation of the ranks; equal values share the mean of their ranks."""
    both = torch.tensor([x, y])[:, None]  # (2, 1, values)
    below = (both < both.transpose(1, 2)).sum(dim=-1)
    equal = (both == both.transpose(1, 2)).sum(dim=-1)
    return torch.corrcoef(below + (equal + 1) / 2)[0, 1].item()


by_hand = rank_correlation([3, 1, 2], [9, 0, 0])  # ranks 3 1 2 and 3 1.5 1.5
assert abs(by_hand - 0.75**0.5) < 1e-6

# %%
quality, lost = (1 - rates[:, :4]).flatten().tolist(), costs[4:].flatten().tolist()
print(f"all eight heads:          {rank_correlation(quality, lost):5.2f}")
print(f"without the 3 aligners:   {rank_correlation(quality[:5], lost[:5]):5.2f}")
assert min(lost[5:]) > max(lost[:5]) and rank_correlation(quality, lost) > 0
assert quality.index(min(quality)) == lost[:5].index(max(lost[:5])) == 4  # head 1.0

# %% [markdown]
# The three aligners cost most: so far, aligning and mattering agree.
# But of the other five, the *worst* aligner, 1.0, costs most.
# It has another task: nouns.
# (Five heads are too few to say more.)
#
# ### One at a time is not the whole story
#
# A head may be dispensable only because another can stand in.
# So we also keep *one* head of a layer and silence the other three, or silence all four.
# Predict for the last layer's cross-attention: is one good aligner enough?

# %%
some = batches[::3]  # every third batch
alone = torch.zeros(6, 5)
for row in range(6):
    for kept in range(5):  # the last time, none is kept
        others = [head for head in range(4) if head != kept]
        silent = [(KINDS[row // 2], row % 2, head) for head in others]
        alone[row, kept] = right(silent, some).float().mean()
together = right(batches=some).float().mean() - alone[:, 4]
for place, one_by_one, all_four in zip(places, costs.sum(dim=1), together, strict=True):
    print(f"{place:17} one by one {one_by_one:.0%} in sum, all four {all_four:.0%}")
assert (together > costs.sum(dim=1)).all()

# %%
assert alone[5].max() < 0.35 and alone[5, 4] < 0.05
panels(
    [Panel(alone, places, [*heads, "none"], "the only head left", "weights")],
    title=f"One aligner alone keeps at most {alone[5].max():.0%} of sentences right",
    words={"weights": "exact match"},
)

# %% [markdown]
# Not nearly enough (the last row).
# And in each of the six layers, silencing all four costs more than the four single costs together.
# So small single costs do not add up to "not needed": heads stand in for each other.
#
# ### A pattern is not yet a task
#
# Two heads had striking patterns: encoder 1.3 takes *it* to its noun, decoder 1.0 takes the last verb to its conjunction.
# If these are their tasks, then without 1.3 the pronouns should break, and without 1.0 the verbs at the end.
# We split the sentences by what they contain.
# On which of the two predictions would you bet?

# %%
suspects = [("encoder", 1, 3), ("decoder", 1, 0), ("decoder", 0, 2)]
columns, damage = [], []
for tag in ("pronoun gender", "verb final"):
    tagged = torch.tensor([tag in pairs[n].phenomena for n in order])
    for name, part in ((tag, tagged), (f"no {tag}", ~tagged)):
        part = part & all_right
        columns.append(f"{name} ({part.sum()})")
        damage.append([1 - without[head][part].float().mean() for head in suspects])
damage = torch.tensor(damage).T  # (heads, columns)

# %%
assert damage[0, 0] > 0.5 > 0.2 > damage[0, 1]
assert abs(damage[1, 2] - damage[1, 3]) < 0.06 and damage[1, 2] < 0.2
assert damage[2, 2] > 0.5 > 0.2 > damage[2, 3] and conjunction[2][2] < 0.4
rows = [f"{kind} {layer}.{head}" for kind, layer, head in suspects]
panels(
    [Panel(damage, rows, columns, "silent", "weights")],
    title="Without encoder 1.3 pronouns break; without decoder 1.0 last verbs do not",
    words={"weights": "share of right sentences that become wrong"},
)

# %% [markdown]
# The first prediction holds: without encoder 1.3, most sentences with such a pronoun break, and few others.
#
# The second fails.
# Decoder 1.0 looks at the conjunction nearly every time, and without it last verbs break no more often than anything else.
# They do break without decoder 0.2, which rarely looks there (in less than 40 % of the cases).
# A pattern is a hypothesis; switching off is a test.
#
# ## Where attention misleads
#
# "Attention is not Explanation" is the title of a paper by Jain and Wallace (2019).
# "Attention is not not Explanation" is the title of the answer by Wiegreffe and Pinter, in the same year.
# We look at four ways to be misled, each on many sentences.
#
# ### 1. Other weights, the same output
#
# If a head's weights are the reason for an output, other weights should give another one.
# Jain and Wallace dealt out the weights of recurrent classifiers at random; we do it with our heads.
# Each row keeps its numbers, but they go to the wrong keys.


# %%
from course_lib.attention import attention_weights


def deal_out(weights, mask, generator):
    """The same weights in each row, on keys drawn at random among the allowed ones."""
    numbers = torch.rand(weights.shape, generator=generator).to(weights.device)
    keys = numbers.masked_fill(~mask, -1).argsort(dim=-1, descending=True)
    values = weights.sort(dim=-1, descending=True).values
    return torch.zeros_like(weights).scatter(-1, keys, values)


allowed = torch.tensor([True] * 6 + [False] * 2).expand(3, 8)
generator = torch.Generator().manual_seed(0)
given = torch.rand(3, 8, generator=generator).masked_fill(~allowed, 0)
dealt = deal_out(given, allowed, generator)
assert torch.equal(dealt.sort().values, given.sort().values)
assert (dealt[~allowed] == 0).all() and not torch.equal(dealt, given)


# %%
@contextmanager
def dealt_out(layer, heads):
    """Inside the block, these heads of the cross-attention look at random places."""
    generator = torch.Generator().manual_seed(0)

    def hook(module, args, context):  # context (batch, heads, queries, d_k)
        query, key, value, mask, _ = args
        weights = attention_weights(query, key, mask)[:, heads]
        weights = deal_out(weights, mask.expand_as(weights), generator)
        context[:, heads] = weights @ value[:, heads]
        return context

    handle = attentions(model, "cross")[layer].fused.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


# %% [markdown]
# How many of the predicted tokens stay the same?
# First one head at a time, then all four of a layer together.
# (One seed; every row of every sentence is a draw of its own.)


# %%
@torch.no_grad()
def predictions():
    """The predicted tokens of some sentences, without padding."""
    found = []
    for batch in some:
        guesses = model(batch.src, batch.tgt_in).argmax(dim=-1)
        found.append(guesses[batch.tgt_out != model.config.pad_id])
    return torch.cat(found)


# %%
usual, stays = predictions(), {}
for layer in range(2):
    for picked in ([0], [1], [2], [3], [0, 1, 2, 3]):
        with dealt_out(layer, picked):
            same = predictions() == usual
        one = len(picked) == 1
        name = f"head {layer}.{picked[0]}" if one else f"all of layer {layer}"
        stays[name] = 100 * same.float().mean().item()
assert torch.equal(predictions(), usual)

# %%
single = [share for name, share in stays.items() if name.startswith("head")]
assert min(single) > 95 and max(single) > 99.5
assert stays["all of layer 1"] < 50 and stays["all of layer 0"] > 90
bars(
    list(stays),
    list(stays.values()),
    xlabel=f"predicted tokens that stay the same (%), of {len(usual)}",
    title="Dealt out at random, no single head changes much, but the last layer does",
    value_format="{:.1f}",
)

# %% [markdown]
# Whatever a single head looks at, more than 95 % of the tokens stay; with some heads nearly all of them.
# So the map of *one* head explains little, however convincing it looks.
#
# But deal out the whole last layer, and more than half of the tokens change.
# That is close to the answer of Wiegreffe and Pinter: if another pattern can give the same output, the one that was used need not be meaningless.
# Ask what was changed, and what could stand in.
#
# ### 2. At rest
#
# A row must sum to 1, even where a head has nothing to look for.
# Where does it put its weight then?
# In the first figures, several heads went to the full stop or to `</s>`.
#
# What counts is not the weight, but what it carries: weight times value (Kobayashi et al. 2020).
# We measure the length of what each head of the last layer adds to a row, through its slice of W_O.
# A head is *at rest* in a row if its largest weight lies on the final mark or on `</s>`, while a word is being predicted.

# %%
marks = [tokenizer.encode(f"Hund{mark}")[-1] for mark in ".?,"]
marks = torch.tensor([*marks, model.config.eos_id, model.config.pad_id]).to(device)
last = attentions(model, "cross")[1]
slices = last.output_proj.weight.detach().T.unflatten(0, (4, -1))
closing = maps["cross"][:, :, :-2].argmax(dim=-1) >= 10  # first sentence: "." and </s>
assert closing.any(dim=-1).sum() >= 4  # heads that go there in the row of a word
assert slices.shape == (4, last.output_proj.in_features // 4, model.config.d_model)


# %%
@torch.no_grad()
def look(batch):
    """Rests, words, lengths of what is added: (batch, heads, queries) each."""
    contexts, keep = [], lambda module, args, context: contexts.append(context)
    handle = last.fused.register_forward_hook(keep)
    with record_attention(model) as maps:
        model(batch.src, batch.tgt_in)
    handle.remove()
    words = ~torch.isin(batch.tgt_out, marks)[:, None].expand(-1, 4, -1)
    closing = torch.isin(batch.src, marks)[:, None].expand(-1, 4, -1)
    resting = closing.gather(2, maps.cross[1].argmax(dim=-1)) & words
    return resting, words, (contexts[0] @ slices).norm(dim=-1)


# %%
looks = [look(batch) for batch in batches]
flat = [[each.transpose(0, 1).flatten(1) for each in found] for found in looks]
resting, words, lengths = (torch.cat(each, dim=1) for each in zip(*flat, strict=True))
added = {}
for head in range(4):
    rest, busy = resting[head], words[head] & ~resting[head]
    share = (rest.sum() / words[head].sum()).item()
    print(f"head 1.{head} rests in {share:.1%} of the rows")
    if share > 0.05:
        added[f"head 1.{head}, at rest"] = lengths[head][rest].mean().item()
        added[f"head 1.{head}, on a word"] = lengths[head][busy].mean().item()

# %%
assert list(added)[::2] == ["head 1.0, at rest", "head 1.3, at rest"]
for head in (0, 3):
    assert added[f"head 1.{head}, at rest"] < added[f"head 1.{head}, on a word"] / 2
bars(
    list(added),
    list(added.values()),
    xlabel="length of what the head adds to a row (mean)",
    title="The weights sum to 1 either way; a head at rest adds less than half",
    value_format="{:.1f}",
)

# %% [markdown]
# Less, but does it matter less?
# We silence a head only in the rows where it rests, then only in its other rows, and look at these rows.
# How far do the probabilities of the next token move? (0: not at all; 1: all of it goes to other tokens.)


# %%
@torch.no_grad()
def moved(batch, rows, head):
    """Half the sum of the changes in rows (batch, queries) where a head is silent."""

    def mute(module, args, context):  # (batch, heads, queries, d_k)
        context = context.clone()
        context[:, head] = context[:, head].masked_fill(rows[..., None], 0)
        return context

    before = model(batch.src, batch.tgt_in).softmax(dim=-1)
    handle = last.fused.register_forward_hook(mute)
    after = model(batch.src, batch.tgt_in).softmax(dim=-1)
    handle.remove()
    return (before - after).abs().sum(dim=-1)[rows] / 2


# %%
moves = defaultdict(list)
for batch, (rest, words, _) in list(zip(batches, looks, strict=True))[::2]:
    for head in (0, 3):
        moves[head, "at rest"].append(moved(batch, rest[:, head], head))
        moves[head, "on a word"].append(moved(batch, (words & ~rest)[:, head], head))
moves = {name: torch.cat(each) for name, each in moves.items()}
for (head, name), each in moves.items():
    print(f"head 1.{head} {name:10} {each.mean():.3f} in {len(each)} rows")
for head in (0, 3):
    assert moves[head, "at rest"].mean() < moves[head, "on a word"].mean() / 3

# %% [markdown]
# At rest, a head moves next to nothing; on a word, more than three times as much.
# So a dark cell on the full stop does not say that the full stop mattered.
#
# ### 3. A position is not a word
#
# We read a weight on *woman* as "the model looks at the word *woman*".
# But keys and values are made from the memory, and there the encoder has mixed all words.
#
# So let us ask the words themselves.
# We hide one English word after the other behind `<unk>`, and see what that costs each German word, in nats of log-probability.
# (It is a crude tool: no sentence of the course has an `<unk>`.)


# %%
@torch.no_grad()
def effects(pair):
    """What hiding each English word costs each German word: (tgt_words, src_words)."""
    ((ids, tgt_ids),) = encode_pairs(tokenizer, [pair])
    src_spans, tgt_spans = spans(pair)
    without = [ids.copy() for _ in src_spans]
    for each, span in zip(without, src_spans, strict=True):
        each[span.start : span.stop] = [model.config.unk_id] * len(span)
    batch = make_batch([(each, tgt_ids) for each in [ids, *without]]).to(device)
    log_probs = model(batch.src, batch.tgt_in).log_softmax(dim=-1)
    log_probs = log_probs.gather(-1, batch.tgt_out[..., None])[..., 0].cpu()
    lost = (log_probs[0] - log_probs[1:]).T  # (tgt_len, src_words)
    return torch.stack([lost[list(span)].sum(dim=0) for span in tgt_spans])


# %%
def mean_weights(pair, maps):
    """The last layer's weights between words, mean over its heads."""
    return word_weights(maps["cross"][1].mean(dim=0), *spans(pair))[:, :-1]


assert effects(example).shape == (len(example.tgt_words), len(example.src_words))
ids = [ids for both in encode_pairs(tokenizer, pairs) for ids in both]
assert not any(model.config.unk_id in each for each in ids)


# %% [markdown]
# First the good news.
# In how many rows is the word with the largest weight also the one whose absence costs most?

# %%
every_cost, every_weight, agree, chance = [], [], [], []
for number in order[::8]:
    costs_of = effects(pairs[number])
    weights = mean_weights(pairs[number], recorded[number])
    agree += (costs_of.argmax(dim=1) == weights.argmax(dim=1)).tolist()
    chance += [1 / weights.shape[1]] * len(weights)
    every_cost.append(costs_of.flatten())
    every_weight.append(weights.flatten())
agreement, by_luck = sum(agree) / len(agree), sum(chance) / len(chance)
needed = torch.cat(every_cost) > 1  # nat: without it, 2.7 times less probable
overlooked = (torch.cat(every_weight)[needed] < 0.05).float().mean().item()
print(f"largest weight, largest cost: {agreement:.0%} of rows; chance {by_luck:.0%}")
print(f"{needed.sum()} words are needed; weights below 0.05: {overlooked:.0%}")
assert agreement > 0.85 and by_luck < 0.15 and overlooked > 0.1

# %% [markdown]
# In more than 85 % of the rows: as a first guess, the largest weight is a good one.
# But of the words that are *needed*, more than one in ten gets next to no weight.
# Which are they? We make many short sentences, and look at one.

# %% tags=["nbval-check-output"]
from itertools import permutations

from course_lib.grammar.nouns import NOUNS

animate, made = [noun for noun in NOUNS if "animate" in noun.classes], []
for subject, thing in permutations(animate, 2):
    who, whom = grammar.the(subject.english), grammar.the(thing.english)
    pair = grammar.pair(grammar.clause(who, "sehen", accusative=whom))
    if pair.src not in known:
        made.append((subject, thing, pair))
short = [pair for *_, pair in made]
batch = make_batch(encode_pairs(tokenizer, short)).to(device)
print(len(short), "new sentences, the first:", short[0].src, short[0].tgt)
assert batch.src.shape[1] == batch.tgt_in.shape[1] == 7  # one token a word, in all
assert (batch.src != 0).all() and (batch.tgt_in != 0).all() and len(short) > 500

# %%
pair = short[0]
weights, costs_of = mean_weights(pair, record([pair])[0]), effects(pair)
assert weights[0, 1] < 0.02 and costs_of[0, 1] > 2  # Der, man
assert weights[0, 5] > 0.2 > costs_of[0, 5]  # Der, full stop
axes = pair.tgt_words, pair.src_words
panels(
    [
        Panel(weights, *axes, "weight (mean of layer 1)", "weights"),
        Panel(costs_of.round(decimals=1), *axes, "cost of hiding the word"),
    ],
    title=f"{pair.tgt_words[0]} needs {pair.src_words[1]}, and gives it no weight",
    words={"signed": "nats"},
)

# %% [markdown]
# Of course *Der* needs *man*: the article depends on the gender of the noun.
# But its row looks at *The* and at the full stop.
# How does it know?
#
# Our guess: the encoder has carried the gender to *The*.
# That can be tested by an operation on the memory.
# We take the memory of *The man sees the boy.*, and transplant *one* vector from *The woman sees the boy.*
# Predict: at which position does this turn *Der* into *Die*?


# %%
def donor(number):
    """A sentence with the same object and a subject of another gender."""
    subject, thing, _ = made[number]
    for other in [*range(number + 1, len(made)), *range(number)]:
        if made[other][1] is thing and made[other][0].gender != subject.gender:
            return other


donors = [donor(number) for number in range(len(made))]
article = batch.tgt_out[:, 0]  # Der, Die or Das
assert (article != article[donors]).all()
assert short[donors[0]].src == "The woman sees the boy."


# %%
@torch.no_grad()
def first_token(memory):
    """The most probable first token of each sentence."""
    hidden = model.decode(batch.tgt_in[:, :1], memory, batch.src)
    return model.generator(hidden)[:, 0].argmax(dim=-1)


with torch.no_grad():
    memory = model.encode(batch.src)  # (batch, src_len, d_model)
turned = {}
for position, word in enumerate(["The", "noun", "verb", "the", "object", ".", "</s>"]):
    operated = memory.clone()
    operated[:, position] = memory[donors, position]
    same = first_token(operated) == article[donors]
    turned[word] = 100 * same.float().mean().item()
assert (first_token(memory) == article).float().mean() > 0.99

# %%
assert turned["The"] > 99 and sorted(turned.values())[-2] < 1
bars(
    list(turned),
    list(turned.values()),
    xlabel=f"articles that take the gender of the donor (%), of {len(made)}",
    title="The gender of the noun sits at The, not at the noun",
)

# %% [markdown]
# Always at *The*, never at the noun.
#
# What do the maps of this very row say?

# %%
with torch.no_grad(), record_attention(model) as short_maps:
    model(batch.src, batch.tgt_in)
row_0 = torch.cat([each[:, :, 0].mean(dim=0) for each in short_maps.cross]).cpu()
assert row_0[1, 1] > 0.95 and row_0[4, 5] > 0.95  # head 0.1: the noun; 1.0: the stop
assert row_0[[0, 2, 3, 5, 6, 7], 0].min() > 0.95  # all others: The
names = [f"head {number // 4}.{number % 4}" for number in range(8)]
panels(
    [Panel(row_0, names, list(turned), "row that predicts the article", "weights")],
    title="Head 0.1 looks at the noun, from which the gender does not come",
)

# %% [markdown]
# Head 0.1 has nearly all its weight on the noun, and exchanging what it finds there changes next to no article.
# The arrow that counts, from *The* to its noun, is in another map: that of encoder head 1.3.
#
# Is head 0.1 of no use, then?
# We silence both, one at a time and together.
# Predict the four shares of right articles.

# %%
pointer, spare = ("encoder", 1, 3), ("cross", 0, 1)
articles = {}
for silent in ([], [pointer], [spare], [pointer, spare]):
    with torch.no_grad(), silence_heads(model, silent):
        share = (first_token(model.encode(batch.src)) == article).float().mean().item()
    name = " and ".join(f"{kind} {layer}.{head}" for kind, layer, head in silent)
    articles[f"without {name}" if silent else "all heads"] = share

# %%
everything, no_pointer, no_spare, neither = articles.values()
assert everything > 0.99 and no_spare > 0.99 and no_pointer > 0.75 and neither < 0.5
bars(
    list(articles),
    [100 * share for share in articles.values()],
    xlabel=f"first articles that are right (%), of {len(made)}",
    title="Without encoder 1.3, cross 0.1 stands in; without both, most are wrong",
)

# %% [markdown]
# It is a spare.
# As long as encoder 1.3 works, losing 0.1 changes nothing; once 1.3 is gone, 0.1 saves most articles.
# "Which word was used?" cannot be read from a map of the last layers alone.
#
# ### 4. A row is older than its token
#
# The row that we label *Frau* was computed from the tokens *before* it.
# Its weights cannot depend on a token that was not there yet.
# What if another token is put there by force?
#
# We force a beginning that is wrong: for *The boy sees the aunt.*, the model must go on from *Die Tante*, the aunt.
# Predict: whom does the aunt see?


# %%
@torch.no_grad()
def go_on(src, ids, steps=4):
    """Target ids after a forced beginning (batch, tgt_len), the most probable ones."""
    memory = model.encode(src)
    for _ in range(steps):
        logits = model.generator(model.decode(ids, memory, src)[:, -1])
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return ids


# %% tags=["nbval-check-output"]
numbers = {(subject, thing): number for number, (subject, thing, _) in enumerate(made)}
kept = [n for n, (subject, thing, _) in enumerate(made) if (thing, subject) in numbers]
swapped = [numbers[made[n][1], made[n][0]] for n in kept]
forced = go_on(batch.src[kept], batch.tgt_in[swapped, :3])  # <s>, article, noun
aunt = [short[n].src for n in kept].index("The boy sees the aunt.")
sentence = tokenizer.decode(forced[aunt].tolist())
print("The boy sees the aunt. →", sentence)
assert sentence == "Die Tante sieht die Tante."

# %%
follows = (forced[:, 3:] == batch.tgt_out[kept, 2:6]).all(dim=1).float().mean().item()
print(f"{follows:.1%} of {len(kept)} go on as the source says")
assert follows > 0.99

# %% [markdown]
# The aunt sees the aunt.
# In nearly all of these sentences, the model ignores what was forced on it and follows the source.
#
# And what does the best aligner, head 1.1, show in the row of the forced noun?

# %%
with torch.no_grad(), record_attention(model) as forced_maps:
    model(batch.src[kept], forced)
aligner = forced_maps.cross[1][:, 1].cpu()  # (batch, queries, keys)
at_subject = (aligner[:, 1].argmax(dim=-1) == 1).float().mean().item()
rows = [tokenizer.token(i) for i in [*forced[aunt, 1:].tolist(), model.config.eos_id]]
keys = [tokenizer.token(i) for i in batch.src[kept[aunt]].tolist()]
print(f"the row of the forced noun points at the subject in {at_subject:.1%}")
assert at_subject > 0.99 and (rows[1], keys[1]) == ("▁Tante", "▁boy")
finding = "The row named Tante points at boy: it is older than the token it is named by"
attention_map(aligner[aunt], rows, keys, title=finding)

# %% [markdown]
# Read as a dictionary, this map says that *Tante* means *boy*.
# It shows what the model was about to say, not what stands there.
# A row explains a *prediction*.

# %% [markdown]
# ## Summary
#
# A row of cross-attention belongs to the token that is predicted: one row lower, most links of every head are wrong.
# The best head of our translator aligns words better than the diagonal and IBM model 1, mostly because it knows which of two equal words is meant.
# Counted against a fixed distance, some heads do find grammar, such as the noun of a pronoun, and others only seem to.
# What a head is for shows when it is silent: the costliest head is no aligner, and a perfect pattern can be without effect.
# A map misleads where another head can stand in, where a head rests, where a position holds more than its word, and where a row is older than its token.
#
# **Next**: the model is built, trained, used and opened; look once more at the first picture of lesson [00](00_welcome.ipynb), and read it with new eyes.
