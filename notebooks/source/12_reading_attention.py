# %% [markdown]
# # 12 · Reading attention: what a map shows, and what it does not
#
# **Question.** We can draw every weight of a trained model. What may we conclude from such a picture?
#
# **Afterwards you can**
#
# 1. draw the attention of every layer and head, with the right token at each row;
# 2. test what a head does: against gold links, against the grammar, and by switching it off;
# 3. name three ways in which a map misleads, and the experiment that tells.
#
# **You need** several heads (lesson [04](04_multi_head.ipynb)), the decoder ([07](07_decoder.ipynb)) and a trained translator ([10](10_translation.ipynb)).
# **Time**: 35 minutes to read, under a minute to run.
# **In the paper**: the last paragraph of section 4, and figures 3 to 5.

# %%
from collections import defaultdict
from contextlib import contextmanager

import torch

from course_lib import Translator
from course_lib.analysis import ablate_heads, all_heads
from course_lib.data import encode_pairs, make_batch
from course_lib.figures import Panel, attention_grid, bars, curves, panels
from course_lib.recording import KINDS, attentions, record_attention

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
text = "The old woman shows the child a sweet apple."
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
# We count layers and heads from 0, and write 1.3 for head 3 of layer 1.
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
assert finders == [(1, 1)]
draw("encoder", "Layer 1, head 1 is the only one that takes each article to its noun")

# %% [markdown]
# Head 1 of layer 1: *The* → *woman*, *the* → *child*, *a* → *apple*.
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
dictionary = {"▁alte": "▁old", "▁Frau": "▁woman", "▁Kind": "▁child", "▁süß": "▁sweet"}
dictionary |= {"▁Die": "▁The", "▁dem": "▁the", "▁einen": "▁a", "▁Apfel": "▁apple"}
found = torch.zeros(2, 4, dtype=torch.long)
for word, translation in dictionary.items():
    found += first[:, :, tgt.index(word)] == src.index(translation)
print("words found, of 8:", found.tolist())
assert (found == 8).tolist() == [[False, False, True, False], [False, True, True, True]]
draw("cross", "Head 0.2 and heads 1.1 to 1.3 find the word that is translated")

# %% [markdown]
# Head 2 of layer 0 and three heads of layer 1 find all eight words; no other head does.
#
# **A common mistake** in published plots: the source tokens stand on the axis of the target.
# Both sentences have twelve tokens here, so no shape warns us.
# But every query shares out a weight of 1, so each row of a true map sums to 1: rows are target queries, columns are source keys.

# %% tags=["nbval-check-output"]
weights = maps["cross"][1, 1]
for name, each in (("as recorded", weights), ("transposed", weights.T)):
    sums_to_one = (each.sum(dim=1) - 1).abs() < 1e-5
    print(f"{name:12}{int(sums_to_one.sum()):3} of 12 rows sum to 1")
    assert sums_to_one.all() == (name == "as recorded")

# %% [markdown]
# Now look for yourself.
# Every head of every layer is here, for this sentence or any other one: point at a token, or at a cell of the map.
# Click a German token to see what else might have stood there, and put it there: how does the sentence go on?

# %%
from course_lib.widgets import AttentionExplorer

explorer = AttentionExplorer(translator, text, head=1)
assert explorer.view["text"] == seen.text and explorer.view["tgt"] == tgt
explorer

# %% [markdown]
# ## From a picture to a number
#
# One sentence is an anecdote.
# We need many sentences, and something to count.
#
# The grammar of the course corpus knows which English word belongs to which German word: the **gold links**.
# It builds a tree of phrases first, and says it in both languages.
# We keep the trees, because later we ask them for more.
# And we want sentences that the model has never seen, so we make sure.

# %%
from course_lib.data import load_course
from course_lib.grammar import MAX_WORDS, realize, trees

count = 3000 if device == "cuda" else 1000
train = load_course(num_train=60_000).train  # what the translator learned from
known, new = {pair.src for pair in train}, {}
for tree in trees(seed=1):
    pair = realize(tree)
    if pair.src not in known and len(pair.tgt_words) <= MAX_WORDS:
        new.setdefault(pair.src, (tree, pair))
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


recorded = record(pairs)
assert len(recorded) == count and recorded[0]["cross"].shape[:2] == (2, 4)

# %% [markdown]
# Links connect words, and attention connects subwords.
# What should we do with *shows*, which is `▁show` and `s`?
# A key in two pieces gets the sum of both weights; a query in two pieces, the mean of both rows (as @clark2019 do).
# Whatever goes to `</s>` gets a column of its own: "no word".


# %%
from course_lib.analysis import word_spans, word_weights
from course_lib.grammar import build as grammar


def spans(pair):
    """The token positions of each English word, and of each German word."""
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, tokenizer.tokens(text)) for text, words in texts]


woman, child = grammar.the("woman", "old"), grammar.the("child")
apple = grammar.a("apple", "sweet")
example = grammar.pair(grammar.clause(woman, "zeigen", dative=child, accusative=apple))
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
# We compare these predicted links P with the gold links G.
# The **alignment error rate** (@och2003; here all gold links are sure) is 1 − 2 |P ∩ G| / (|P| + |G|).
# It is 0 if they are the same, and 1 if they share nothing.
# Here is head 1.0 on our sentence.

# %% tags=["nbval-check-output"]
from course_lib.analysis import alignment_error_rate, strongest_links

best_columns = enumerate(by_hand.argmax(dim=1).tolist())
predicted = {(column, row) for row, column in best_columns if column < len(src_spans)}
gold = set(example.links)
by_formula = 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))
for name, only in (("predicted", predicted - gold), ("gold", gold - predicted)):
    words = [(example.src_words[s], example.tgt_words[t]) for s, t in sorted(only)]
    print(f"{name} only:", " · ".join(f"{src} = {tgt}" for src, tgt in words))
print(f"alignment error rate of head 1.0: {by_formula:.2f}")
assert predicted == strongest_links(by_hand)
assert by_formula == alignment_error_rate(predicted, gold) > 0.4

# %% [markdown]
# Where an adjective or an article is due, head 1.0 goes to the *noun*; only for *Die*, the first word, it stays with the article.
# So as a dictionary it is a bad one.
# Keep that in mind: a bad aligner may be busy with something else.
#
# ## Which row belongs to which token?
#
# **A common mistake**: "row *t* of the cross-attention explains word *t*."
# The query at position *t* holds y_t, which was read, and the position predicts y_{t+1} (lesson [07](07_decoder.ipynb)).
# Our rows are named by what they predict.
# Whoever names them by what they read takes for each word the row below its own.
#
# We score every head of the cross-attention both ways, and the mean of each layer's heads too.
# Predict: how much worse is the wrong way?

# %%
from course_lib.analysis import corpus_error_rate, diagonal_links


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
    title=f"One row lower, the best error rate is {100 * rates_lower.min():.0f} %",
    words={"weights": "alignment error rate"},
)
drawn = [axes.images[0].get_array().tolist() for axes in figure.axes[:2]]
assert drawn == [rates.tolist(), rates_lower.tolist()]
figure

# %% [markdown]
# Every head, in both layers, is more than 30 points worse one row lower.
# The left table also names the good aligners: heads 1, 2 and 3 of layer 1.
#
# ## Good compared with what?
#
# An error rate alone says little.
# A first baseline knows no words at all: it links each German word to the English word at the same share of its sentence, the **diagonal**.
#
# The second knows nothing *but* words: **IBM model 1** [@brown1993], the simplest of the classic alignment models.
# It has one table, t(German word | English word), and learns it from sentence pairs without any links.
# How can it?
# In rounds: share each German word among the words that may explain it, in proportion to t; count the shares; make the counts the new t.
# `None` is the empty word, for German words that translate nothing.

# %%
toy = {"the cat sleeps": "die Katze schläft", "the dog sleeps": "der Hund schläft"}
toy |= {"a cat sees": "eine Katze sieht", "a dog sees": "ein Hund sieht"}
toy = [(source.split(), target.split()) for source, target in toy.items()]


def one_round(t):
    """Shares each German word by t, and turns the counts into a new t."""
    counts, totals = defaultdict(float), defaultdict(float)
    for src_words, tgt_words in toy:
        for word in tgt_words:
            explain = [None, *src_words]
            total = sum(t[source, word] for source in explain)
            for source in explain:
                counts[source, word] += t[source, word] / total
                totals[source] += t[source, word] / total
    return {(source, word): n / totals[source] for (source, word), n in counts.items()}


# %% [markdown]
# Nothing is known, so the first round shares each *Katze* equally between its article, *cat*, the verb and the empty word.
# But *cat* is there whenever *Katze* is.
# Predict: what happens to t(Katze | cat), to t(die | cat), and to t(schläft | sleeps)?

# %%
rounds, t = [], defaultdict(lambda: 1 / 8)  # eight German words, all equal at first
for _ in range(10):
    t = one_round(t)
    rounds.append(t)
watched = [("cat", "Katze"), ("sleeps", "schläft"), ("the", "schläft"), ("cat", "die")]
series = {
    f"t({word} | {source})": (range(1, 11), [t[source, word] for t in rounds])
    for source, word in watched
}
assert t["cat", "Katze"] > 0.75 > 0.15 > t["cat", "die"]
assert abs(t["sleeps", "schläft"] - t["the", "schläft"]) < 1e-12
title = "Katze finds cat; schläft cannot tell sleeps from the"
curves(series, xlabel="round", ylabel="probability", title=title)

# %% [markdown]
# The dictionary sharpens by itself.
# *Sleeps* and *the* always come together here, so no counting can tell them apart (their two lines are one).
# That takes more sentences.
# We take 10,000 of those that the translator learned from, and the finished `train_ibm1`.
# On our four pairs it finds the same numbers.

# %%
from course_lib.analysis import train_ibm1

finished = train_ibm1(toy, iterations=10)
for (source, word), share in t.items():
    assert abs(finished.table([source], [word]).item() - share) < 1e-12
ibm = train_ibm1([(pair.src_words, pair.tgt_words) for pair in train[:10_000]])
for word in ("dog", "sleeps", "the", None):
    best = ibm.translations(word, 4)
    print(f"{word or '(empty)':8}", *(f"{tgt} {share:.0%}" for tgt, share in best))
assert ibm.translations("dog", 1)[0][0] == "Hund"


# %%
def error_of(find):
    """Error rate of links that are found from a pair, on the second half."""
    found = [find(pairs[number]) for number in reporting]
    return corpus_error_rate(found, [pairs[number].links for number in reporting])


def by_words(pair):
    return ibm.links(pair.src_words, pair.tgt_words)


def by_place(pair):
    return diagonal_links(len(pair.src_words), len(pair.tgt_words))


def one_a_word(pair):
    """The best that is possible with one link for each German word."""
    return {max(link for link in pair.links if link[1] == tgt) for _, tgt in pair.links}


# %% [markdown]
# Now the comparison.
# The best head is chosen on the first half, and reported on the second.
# Not even a perfect aligner reaches 0 with one link a word, because some German words have several: *holt … ab* is *picks up*.

# %%
rates_before = error_rates(head_links(choosing), choosing)
best = divmod(rates_before[:, :4].argmin().item(), 4)
bound, diagonal, ibm_1 = map(error_of, (one_a_word, by_place, by_words))
assert best == (1, 2) and 0.01 < bound < rates[best] < 0.8 * ibm_1
assert rates[1, 4] < ibm_1 < rates[1, [1, 3]].min()
assert rates[1, [1, 3]].max() < 1.5 * ibm_1
assert 2 * ibm_1 < min(rates[0, :4].min(), rates[1, 0], diagonal)

# %%
rows = {}
for layer in range(2):
    *each, rows[f"mean of layer {layer}"] = rates[layer].tolist()
    rows |= {f"head {layer}.{head}": rate for head, rate in enumerate(each)}
rows |= {"diagonal": diagonal, "IBM model 1": ibm_1, "best with one link a word": bound}
rows = dict(sorted(rows.items(), key=lambda row: row[1]))
assert rows["head 1.2"] < rows["IBM model 1"] < rows["diagonal"]
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
# Heads 1.1 and 1.3 are not far behind IBM model 1; the other five err more than twice as often as it does.
# Head 0.2 is one of them, though it found all eight words of our first sentence: one sentence is an anecdote.
#
# What does the head know that model 1 does not?
# One guess: *which* of two equal words; there are two *the* in *gives the child the apple*.
# We split the gold links by that.


# %%
def found_share(find, repeated):
    """Percent of the gold links found, of English words that are repeated or not."""
    hits = []
    for number in reporting:
        pair, found = pairs[number], find(pairs[number])
        for link in pair.links:
            if (pair.src_words.count(pair.src_words[link[0]]) > 1) == repeated:
                hits.append(link in found)
    return 100 * sum(hits) / len(hits)


# %%
sources = [pairs[number].src for number in reporting]
links_of = dict(zip(sources, links[best], strict=True))
finders = {"head 1.2": lambda pair: links_of[pair.src], "IBM model 1": by_words}
single = [found_share(find, repeated=False) for find in finders.values()]
twice = [found_share(find, repeated=True) for find in finders.values()]
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
#
# ## Tasks of heads
#
# The paper says that heads "clearly learn to perform different tasks" (section 4), and shows examples.
# One sentence can be chosen to please, so we count.
#
# Figure 4, for example, shows two heads "apparently involved in anaphora resolution", in finding what a pronoun stands for.
# To test that, we must know who belongs to whom, and our trees do.
# A part of a tree is a node with a name, like (clause, "verb"), and each word knows the parts that it says.


# %% tags=["nbval-check-output"]
from course_lib.grammar import Notes, english, german


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
# In a clause: a separable prefix and its verb (*macht … zu*), a finite verb and its subject, a pronoun and its noun.
# In a noun phrase: determiner and noun, adjective and noun.
# And a German verb at the end belongs to the conjunction that sends it there.


# %%
def relations(tree, parts):
    """Name, who should look, at what; some of these parts are not said at all."""
    for clause in filter(None, (tree.first, tree.second)):
        yield "prefix → verb", (clause, "verb"), (clause, "verb")
        yield "finite verb → subject", (clause, "tense"), (clause.subject, "noun")
        for phrase in (clause.subject, clause.accusative, clause.dative):
            noun = getattr(phrase, "antecedent", None)
            yield "pronoun → its noun", (phrase, "pronoun"), (noun, "noun")
    for node in [node for node, name in parts if name == "noun"]:
        yield "determiner → noun", (node, "det"), (node, "noun")
        for adjective in node.adjectives:
            yield "adjective → noun", (node, adjective.english), (node, "noun")
    if tree.second and tree.conjunction.subordinating:
        sent = (tree.second, "tense"), (tree, "conjunction")
        yield "finite verb → conjunction", *sent


# %% [markdown]
# Then we carry them over to rows and keys.
# Where several words say one part, as *macht … zu*, the last one looks for the first.
# In the decoder, the row is the one that *predicts* the word, and the wanted word must have been read already; it stands one place further right, behind `<s>`.
# In the cross-attention, a German word asks for an English one, but not for its own translation: that was the last section.


# %%
def goals(number, kind):
    """Name, row and wanted keys of every relation that the sentence has."""
    tree, (src, tgt) = tree_of[number], spans(pairs[number])
    read, written = where(english.sentence(tree)), where(german.sentence(tree, Notes()))
    asks, rows = (read, src) if kind == "encoder" else (written, tgt)
    answers, columns = (written, tgt) if kind == "decoder" else (read, src)
    for name, a, b in relations(tree, asks):
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
# A head that always looks at one fixed distance could find most nouns, and know nothing about them.
# So the opponent is the **best fixed distance**, as in @clark2019.
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
print(f"{len(tasks)} tasks, and in {len(real)} the head is far ahead of the distance")

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
# - **Real**: encoder 1.1 takes pronouns and determiners to their nouns, decoder 0.2 a last verb to its conjunction, decoder 0.0 a prefix to its verb, cross 1.0 an adjective to its noun.
# - **Seeming**: "encoder 1.0 finds subjects" and "encoder 1.1 finds the nouns of adjectives" would make fine pictures, but a fixed distance does about as well, or better.

# %%
assert {
    ("encoder", "pronoun → its noun (1.1)"),
    ("encoder", "determiner → noun (1.1)"),
    ("decoder", "finite verb → conjunction (0.2)"),
    ("decoder", "prefix → verb (0.0)"),
    ("cross", "adjective → noun (1.0)"),
} <= real
for task in ("finite verb → subject (1.0)", "adjective → noun (1.1)"):
    by_head, by_distance, _ = tasks["encoder", task]
    assert by_head > 0.65 and by_head - by_distance < 0.05
assert tasks["encoder", "determiner → noun (1.1)"][1] > 0.5
pronoun = tasks["encoder", "pronoun → its noun (1.1)"]
assert min(pronoun[2][5], pronoun[2][7]) > 0.6  # encoder 1.1 and 1.3

# %% [markdown]
# So a head of our model does what the paper's figure suggests of its heads; for ours we have counted it.
# Here are two of the real tasks, in the sentence from above.

# %%
src, tgt = ([*tokenizer.tokens(each), "</s>"] for each in pairs[chosen][:2])
read = ["<s>", *tgt[:-1]]
anaphora = recorded[chosen]["encoder"][1, 1, : len(src), : len(src)]
last_verb = recorded[chosen]["decoder"][0, 2, : len(tgt), : len(tgt)]
assert src[anaphora[src.index("▁it")].argmax()] == "▁city"
assert read[last_verb[tgt.index("▁ist")].argmax()] == "▁weil"
panels(
    [
        Panel(anaphora, src, src, "encoder 1.1", "weights", ylabel="query"),
        Panel(last_verb, tgt, read, "decoder 0.2", "weights", ylabel="predicted"),
    ],
    title="Row it looks at city; row ist, the last verb, looks at weil",
)

# %% [markdown]
# ## Switch it off
#
# A head that looks at the right place may still be useless.
# What it is *for* shows when it is gone (@michel2019 and @voita2019 took heads out of larger models).
#
# Its context enters the rest of the model through its columns of W_O, and nowhere else (lesson [04](04_multi_head.ipynb)).
# With zeros in these columns the head can look wherever it likes; nobody hears of it.
# `ablate_heads` does the same without touching the weights.

# %%
batch = make_batch(encode_pairs(tokenizer, pairs[half : half + 50])).to(device)
output_proj = attentions(model, "cross")[1].output_proj
before = output_proj.weight.clone()
with torch.no_grad():
    output_proj.weight.unflatten(1, (4, -1))[:, 3] = 0  # (d_model, heads, d_k): head 3
    by_hand = model(batch.src, batch.tgt_in)
    output_proj.weight.copy_(before)
    plain = model(batch.src, batch.tgt_in)
    with ablate_heads(model, [("cross", 1, 3)]):
        silent = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(silent, by_hand, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model(batch.src, batch.tgt_in), plain)
    assert not torch.allclose(silent, plain, atol=0.1)

# %% [markdown]
# Our measure is exact match, on sentences that the model has never seen.
# One parallel pass is enough: greedy search is right exactly if every prediction under teacher forcing is right (lesson 07).
# Batches of like length save time.

# %%
order = sorted(reporting, key=lambda number: len(pairs[number].tgt_words))
parts = [[pairs[n] for n in order[begin : begin + 50]] for begin in range(0, half, 50)]
batches = [make_batch(encode_pairs(tokenizer, part)).to(device) for part in parts]


@torch.no_grad()
def right(silent=(), batches=batches):
    """For each sentence: is every prediction right when these heads are silent?"""
    found = []
    with ablate_heads(model, silent):
        for batch in batches:
            guesses = model(batch.src, batch.tgt_in).argmax(dim=-1)
            wrong = (guesses != batch.tgt_out) & (batch.tgt_out != model.config.pad_id)
            found.append(~wrong.any(dim=1))
    return torch.cat(found).cpu()


# %% [markdown]
# Now all 24 heads, one at a time.
# Predict: which loss hurts most?
# That of cross 1.2, the best aligner?

# %%
all_right = right()
without = {head: right([head]) for head in all_heads(model)}
start = all_right.float().mean().item()
cost = {head: start - each.float().mean().item() for head, each in without.items()}
costliest = max(cost, key=cost.get)
least = start - cost[costliest]
print(f"exact match {start:.1%}, without the costliest head {least:.1%}: {costliest}")
assert start > 0.95 and costliest == ("decoder", 0, 3)
assert min(cost[costliest], cost["encoder", 1, 1]) > 0.25
assert sorted(cost.values())[-3] < 0.2

# %%
places = [f"{kind}, layer {layer}" for kind in KINDS for layer in range(2)]
costs = torch.tensor(list(cost.values())).unflatten(0, (6, 4))
figure = panels(
    [Panel(100 * costs, places, heads, "one head silent")],
    title="The costliest head is decoder 0.3, which never sees an English word",
    words={"signed": "exact match lost, in points"},
)
quality, lost = (1 - rates[:, :4]).flatten().tolist(), costs[4:].flatten().tolist()
assert min(lost[4:]) > max(lost[:4])
assert abs(quality[4] - quality[2]) < 0.05 and lost[4] > 2 * lost[2]  # 1.0 and 0.2
figure

# %% [markdown]
# Two heads are worth more than 25 points each, and no other head is worth 20.
# Neither has an alignment error rate at all: the keys of decoder 0.3 are German, and the queries of encoder 1.1 are English.
#
# Among the eight heads of the cross-attention, the four of the last layer cost most.
# So aligning and mattering agree, up to a point: 1.0 aligns no better than 0.2, and costs more than twice as much.
# It has another task: nouns.
#
# ### One at a time is not the whole story
#
# A head may be dispensable only because another can stand in.
# So, like @michel2019, we also keep *one* head of a layer and silence the other three; and we silence all four.
# Predict for the last layer's cross-attention: is one good aligner enough?

# %%
some = batches[::3]  # every third batch
alone = torch.zeros(6, 5)
for row in range(6):
    for kept in range(5):  # the last time, none is kept
        others = [head for head in range(4) if head != kept]
        silent = [(KINDS[row // 2], row % 2, head) for head in others]
        alone[row, kept] = right(silent, some).float().mean()
assert alone[5].max() < 0.35 and alone[5, 4] < 0.05
panels(
    [Panel(alone, places, [*heads, "none"], "the only head left", "weights")],
    title=f"One aligner alone keeps at most {alone[5].max():.0%} of sentences right",
    words={"weights": "exact match"},
)

# %%
sample = torch.arange(half) // 50 % 3 == 0  # the sentences of `some`
intact = all_right[sample].float().mean()
single = [intact - each[sample].float().mean() for each in without.values()]
added_up = torch.stack(single).unflatten(0, (6, 4)).sum(dim=1)
assert (intact - alone[:, 4] > added_up).all()

# %% [markdown]
# Not nearly enough (the last row).
# And in each of the six layers, silencing all four costs more than the four single costs together.
# So small single costs do not add up to "not needed": heads stand in for each other.
#
# ### A pattern is not yet a task
#
# Two heads had striking patterns: encoder 1.1 takes *it* to its noun, decoder 0.2 takes the last verb to its conjunction.
# Encoder 1.3 takes *it* to its noun about as often as 1.1 does.
# If these are their tasks, then without encoder 1.1 or 1.3 sentences with such a pronoun should break, and without decoder 0.2 those with a verb at the end.
# We split the sentences by what they contain, and keep to those of two clauses, because longer sentences break more easily.
# On which of the three predictions would you bet?

# %%
suspects = [("encoder", 1, 1), ("encoder", 1, 3), ("decoder", 0, 2)]
columns, damage = [], []
double = torch.tensor([tree_of[n].second is not None for n in order])
for tag in ("pronoun gender", "verb final"):
    tagged = torch.tensor([tag in pairs[n].phenomena for n in order])
    for name, part in ((tag, tagged), (f"no {tag}", ~tagged)):
        part = part & double & all_right
        columns.append(f"{name} ({part.sum()})")
        damage.append([1 - without[head][part].float().mean() for head in suspects])
damage = torch.tensor(damage).T  # (heads, columns)

# %%
assert damage[0, 0] > damage[0, 1] + 0.15 and damage[0, 0] > 0.4
assert damage[1, :2].max() < 0.15
assert damage[2, 2] < damage[2, 3] + 0.05 and damage[2, 2] < 0.25
rows = [f"{kind} {layer}.{head}" for kind, layer, head in suspects]
panels(
    [Panel(damage, rows, columns, "silent", "weights")],
    title="Losing encoder 1.1 hits pronouns; losing its double 1.3 does not",
    words={"weights": "share of right sentences that become wrong"},
)

# %% [markdown]
# The first prediction holds: without encoder 1.1, about half of the sentences with such a pronoun break, and about a third of the others.
# The second fails: encoder 1.3 looks at the same noun as often, and hardly any sentence needs it.
# The third fails too: without decoder 0.2, sentences with a last verb break no more often than others.
# A pattern is a hypothesis; switching off is a test.
#
# ## Where attention misleads
#
# "Attention is not Explanation" is the title of a paper [@jain2019].
# "Attention is not not Explanation" is the title of the answer by Wiegreffe and Pinter, in the same year.
# We look at three ways to be misled, each on many sentences.
#
# ### 1. Other weights, the same output
#
# If a head's weights are the reason for an output, other weights should give another one.
# Jain and Wallace permuted the weights of text classifiers at random; we do it with our heads.
# Each row keeps its numbers, but they go to keys drawn at random.


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
usual, stays, whole = predictions(), {}, {}
for layer in range(2):
    for picked in ([0], [1], [2], [3], [0, 1, 2, 3]):
        with dealt_out(layer, picked):
            same = predictions() == usual
        with dealt_out(layer, picked):
            exact = right(batches=some).float().mean().item()
        one = len(picked) == 1
        name = f"head {layer}.{picked[0]}" if one else f"all of layer {layer}"
        stays[name], whole[name] = 100 * same.float().mean().item(), 100 * exact
assert torch.equal(predictions(), usual)

# %%
single = [share for name, share in stays.items() if name.startswith("head")]
assert min(single) > 95 and max(single) > 99.5
assert stays["all of layer 1"] < 50 and stays["all of layer 0"] > 90
bars(
    list(stays),
    list(stays.values()),
    xlabel=f"predicted tokens that stay the same (%), of {len(usual)}",
    title="Dealt out, no single head changes many tokens; the last layer does",
    value_format="{:.1f}",
)

# %% [markdown]
# Deal out any single head, and more than 95 % of the tokens stay; with some heads nearly all of them.
# But deal out the whole last layer, and more than half of the tokens change.
#
# A sentence is right only if *all* of its tokens are.
# How many are, with a single head dealt out?

# %%
untouched = 100 * right(batches=some).float().mean().item()
print(f"untouched       {untouched:.1f} % of sentences right")
for name, exact in whole.items():
    print(f"{name:16}{exact:.1f} %")
assert all(whole[f"head 0.{head}"] > untouched - 8 for head in range(4))
silent = 100 * without["cross", 1, 2][sample].float().mean().item()
assert whole["head 1.2"] < min(untouched - 10, silent - 5)

# %% [markdown]
# In layer 0 few sentences break, so the map of such a head explains little, however convincing it looks.
# But head 1.2, looking at random places, costs more than 10 points of exact match, and more than 5 points more than silencing it does.
# So whether the map of *one* head explains anything depends on the head, and on what we count.
#
# And where a whole layer looks does matter.
# That fits the answer of Wiegreffe and Pinter: that another pattern can give the same output does not make the one that was used meaningless.
# Ask what was changed, and what could stand in.
#
# ### 2. At rest
#
# A row must sum to 1, even where a head has nothing to look for.
# Where does it put its weight then?
# In the figure of the cross-attention, head 0.1 went to `</s>` in the row that predicts *zeigt*.
#
# What counts is not the weight alone, but what it carries: weight times value [@kobayashi2020].
# We measure the length of the vector that each head of layer 0 adds to a row, through its slice of W_O.
# A head is *at rest* in a row if its largest weight lies on a punctuation mark or on `</s>`, while a word is being predicted.

# %%
marks = [tokenizer.encode(f"Hund{mark}")[-1] for mark in ".?,"]
marks = torch.tensor([*marks, model.config.eos_id, model.config.pad_id]).to(device)
layer_0 = attentions(model, "cross")[0]
slices = layer_0.output_proj.weight.detach().T.unflatten(0, (4, -1))
zeigt = maps["cross"][0, 1, labels["cross"][0].index("▁zeigt")]
print(f"weight of head 0.1 on </s> in the row of zeigt: {zeigt[-1]:.2f}")
assert zeigt[-1] > 0.9
assert slices.shape == (4, layer_0.output_proj.in_features // 4, model.config.d_model)


# %%
@torch.no_grad()
def look(batch):
    """Rests, words, lengths of what is added: (batch, heads, queries) each."""
    contexts, keep = [], lambda module, args, context: contexts.append(context)
    handle = layer_0.fused.register_forward_hook(keep)
    with record_attention(model) as maps:
        model(batch.src, batch.tgt_in)
    handle.remove()
    words = ~torch.isin(batch.tgt_out, marks)[:, None].expand(-1, 4, -1)
    closing = torch.isin(batch.src, marks)[:, None].expand(-1, 4, -1)
    resting = closing.gather(2, maps.cross[0].argmax(dim=-1)) & words
    return resting, words, (contexts[0] @ slices).norm(dim=-1)


# %%
looks = [look(batch) for batch in batches]
flat = [[each.transpose(0, 1).flatten(1) for each in found] for found in looks]
resting, words, lengths = (torch.cat(each, dim=1) for each in zip(*flat, strict=True))
added = {}
for head in range(4):
    rest, busy = resting[head], words[head] & ~resting[head]
    share = (rest.sum() / words[head].sum()).item()
    print(f"head 0.{head} rests in {share:.1%} of the rows")
    added[f"head 0.{head}, at rest"] = lengths[head][rest].mean().item()
    added[f"head 0.{head}, on a word"] = lengths[head][busy].mean().item()

# %%
for head in range(4):
    assert added[f"head 0.{head}, at rest"] < 0.8 * added[f"head 0.{head}, on a word"]
bars(
    list(added),
    list(added.values()),
    xlabel="length of what the head adds to a row (mean)",
    title="At rest, each head adds at least a fifth less than on a word",
    value_format="{:.1f}",
)

# %% [markdown]
# The weights sum to 1 either way, but less arrives.
# So a dark cell on the full stop need not say that the full stop mattered.
#
# ### 3. A position is not a word
#
# We read a weight on *woman* as "the model looks at the word *woman*".
# But keys and values are made from the memory, and there the encoder has mixed the words.
#
# So let us ask the words themselves.
# We hide one English word after the other behind `<unk>`, and see what that costs each German word, in nats of log-probability.
# (It is a crude tool: none of our sentences has an `<unk>`.)


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
print(f"{needed.sum()} times a word is needed; weight below 0.05: {overlooked:.0%}")
assert agreement > 0.85 and by_luck < 0.15 and overlooked > 0.1

# %% [markdown]
# In more than 85 % of the rows, so as a first guess the largest weight is a good one.
# But of the words that are *needed*, whose absence costs more than 1 nat, more than one in ten gets next to no weight in the last layer.
# Which are they? We make many short sentences, and look at one.

# %% tags=["nbval-check-output"]
from itertools import permutations

from course_lib.grammar import NOUNS

animate, made = [noun for noun in NOUNS if "animate" in noun.classes], []
for subject, thing in permutations(animate, 2):
    who, whom = grammar.the(subject.english), grammar.the(thing.english)
    pair = grammar.pair(grammar.clause(who, "sehen", accusative=whom))
    whole_words = all(len(tokenizer.tokens(each)) == 6 for each in pair[:2])
    if pair.src not in known and whole_words:
        made.append((subject, thing, pair))
short = [pair for *_, pair in made]
batch = make_batch(encode_pairs(tokenizer, short)).to(device)
print(len(short), "new sentences, the first:", short[0].src, short[0].tgt)
assert batch.src.shape[1] == batch.tgt_in.shape[1] == 7  # one token a word, in all
assert model.config.pad_id not in batch.src and len(short) > 500

# %%
pair = short[0]
weights, costs_of = mean_weights(pair, record([pair])[0]), effects(pair)
assert weights[0, 1] < 0.02 and costs_of[0, 1] > 2  # Der, man
assert weights[0, 0] > 0.9  # Der, The
axes = pair.tgt_words, pair.src_words
panels(
    [
        Panel(weights, *axes, "weight (mean of layer 1)", "weights"),
        Panel(costs_of.round(decimals=1), *axes, "cost of hiding the word"),
    ],
    title=f"{pair.tgt_words[0]} needs {pair.src_words[1]}, "
    "and the last layer gives it no weight",
    words={"signed": "nats"},
)

# %% [markdown]
# *Der* needs *man*, because the article depends on the gender of the noun.
# But in the last layer its row looks at *The*.
# How does it know?
#
# Our guess: the encoder has carried the gender to *The*.
# That can be tested by an operation on the memory.
# We take the memory of *The man sees the boy.*, and transplant *one* vector from the memory of *The woman sees the boy.*
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
    title="The model reads the gender of the noun at The, not at the noun",
)

# %% [markdown]
# At *The*, in more than 99 % of the sentences; nowhere else in even 1 %.
#
# What do the maps of this very row say, the one that predicts the article?
# We draw the mean over all these sentences.

# %%
with torch.no_grad(), record_attention(model) as short_maps:
    model(batch.src, batch.tgt_in)
row_0 = torch.cat([each[:, :, 0].mean(dim=0) for each in short_maps.cross]).cpu()
assert row_0[:, 0].min() > 0.9 and row_0[:, 1].max() < 0.1  # The, the noun
names = [f"head {number // 4}.{number % 4}" for number in range(8)]
panels(
    [Panel(row_0, names, list(turned), "row that predicts the article", "weights")],
    title="All heads look at The; the noun that decides gets next to nothing",
)

# %% [markdown]
# All eight heads have nearly all their weight on *The*, and what they read there comes from the noun.
# An arrow from *The* to its noun is in another map: that of encoder head 1.1.
# "Which word was used?" cannot be read from the cross-attention alone.

# %% [markdown]
# ## Summary
#
# A row of cross-attention belongs to the token that is predicted: one row lower, the error rate of every head is above 70 %.
# The best head of our translator aligns words better than the diagonal and IBM model 1, and its lead is in knowing which of two equal words is meant.
# Counted against a fixed distance, some heads do find grammar, such as the noun of a pronoun, and others only seem to.
# What a head is for shows when it is silent: the costliest head is no aligner, and the loss of a head with a striking pattern may do no special harm there.
# A map misleads where another head can stand in, where a head rests, and where a position holds more than its word.
#
# **Practice**: [assignment 12](assignments/release/12_reading_attention/12_reading_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the model of the paper is built, trained, used and opened; look once more at the first picture of lesson [00](00_welcome.ipynb).
# Lesson [13](13_positions_past_the_paper.ipynb) begins with what came after it.
