# %% [markdown]
# # 12 · Reading attention: what a map shows, and what it does not
#
# **Question.** We can draw every attention weight of a trained model. What may we conclude from such a picture?
#
# **Afterwards you can**
#
# 1. draw the attention of every layer and head, with the right token beside each row;
# 2. test a claim about a head: against a baseline, against a control, and by switching the head off;
# 3. find out where in a model a piece of information is, and whether the model uses it.
#
# **You need** several heads (lesson [04](04_multi_head.ipynb)), the decoder ([07](07_decoder.ipynb)) and a trained translator ([10](10_translation.ipynb)).
# **Time**: {minutes} minutes to read, about a minute to run.
# **In the paper**: the last paragraph of section 4, and figures 3 to 5 [@vaswani2017].

# %%
import torch

from course_lib import Translator
from course_lib.figures import Panel, attention_grid, bars, curves, panels
from course_lib.recording import KINDS, attentions, record_attention
from course_lib.widgets import AttentionExplorer, Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.to(device), translator.tokenizer

# %% [markdown]
# ## Every map
#
# The small translator, `course`, has 2 + 2 layers of 4 heads.
# How many attention maps does one translation produce?

# %% tags=["nbval-check-output"]
text = "The old woman shows the child a sweet apple."
seen = translator.translate(text, attention=True)
src, tgt = seen.src_tokens, seen.tgt_tokens
maps = {kind: torch.stack(getattr(seen.attention, kind)).cpu() for kind in KINDS}
print(seen.text)
for kind, weights in maps.items():
    print(f"{kind:8}{tuple(weights.shape)}")  # (layers, heads, queries, keys)

# %% [markdown]
# Twenty-four: eight of each kind.
# We count layers and heads from 0, and write 1.3 for head 3 of layer 1.
#
# Before we look: which token belongs to which row and column?
# In the encoder both are English tokens.
# In the decoder a row belongs to the token that it *predicts*, a column to a token that was *read*.
# In the cross-attention a row again belongs to the predicted German token, a column to an English one.

# %% tags=["hide-input"]
labels = {
    "encoder": (src, src, "query"),
    "decoder": (tgt, ["<s>", *tgt[:-1]], "predicted token"),
    "cross": (tgt, src, "predicted token"),
}


def draw(kind, title):
    """All heads of one kind, a row of maps for each layer."""
    rows, columns, name = labels[kind]
    figure = attention_grid(maps[kind].flatten(0, 1), rows, columns, title=title)
    for number, axes in enumerate(figure.axes[:8]):
        axes.set_xlabel(f"layer {number // 4}, head {number % 4}")
        if number % 4 == 0:
            axes.set_ylabel(name)
    return figure


# %% [markdown]
# First the encoder; `draw` shows all heads of one kind.
# Look for one whose work you can describe in a sentence.

# %%
draw("encoder", "The encoder's self-attention, all heads")

# %% tags=["hide-input"]
nouns = {0: "▁woman", 5: "▁child", 7: "▁apple"}  # of the articles in rows 0, 5 and 7
first = maps["encoder"].argmax(dim=-1)  # (layers, heads, queries)
finders = [
    (layer, head)
    for layer in range(2)
    for head in range(4)
    if all(src[first[layer, head, row]] == noun for row, noun in nouns.items())
]
assert finders == [(1, 1)]
assert (maps["decoder"].triu(1) == 0).all()  # the decoder never looks ahead

# %% [markdown]
# Head 1.1 is one, and the only one that takes each article to its noun: *The* → *woman*, *the* → *child*, *a* → *apple*.
#
# Now the cross-attention.
# Some of these maps could serve as a dictionary.

# %%
draw("cross", "Head 0.2 and heads 1.1 to 1.3 mostly find the word that is translated")

# %% tags=["hide-input"]
first = maps["cross"].argmax(dim=-1)
dictionary = {"▁alte": "▁old", "▁Frau": "▁woman", "▁Kind": "▁child", "▁süß": "▁sweet"}
dictionary |= {"▁Die": "▁The", "▁dem": "▁the", "▁einen": "▁a", "▁Apfel": "▁apple"}
found = torch.zeros(2, 4, dtype=torch.long)
for word, translation in dictionary.items():
    found += first[:, :, tgt.index(word)] == src.index(translation)
assert (found == 8).tolist() == [[False, False, True, False], [False, True, True, True]]

# %% [markdown]
# **A common mistake** in published plots: labeling the rows with the source tokens.
# Both sentences have twelve tokens here, so the shape does not give it away.
# Each query distributes a weight of 1, so a map that came transposed gives itself away by its sums; labels do not:

# %% tags=["nbval-check-output"]
for name, each in (("as recorded", maps["cross"]), ("transposed", maps["cross"].mT)):
    sums_to_one = ((each[1, 1].sum(dim=1) - 1).abs() < 1e-5).sum()
    print(f"{name:12}{sums_to_one:3} of 12 rows sum to 1")

# %% tags=["hide-input"]
assert sums_to_one == 0  # of the transposed one

# %% [markdown]
# Now explore this sentence or any other: point at a token or at a cell of the map.
# Click a German token to see its alternatives, and choose one: how does the sentence continue?

# %%
explorer = AttentionExplorer(translator, text, head=1)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for(text, explorer.text):
    assert explorer.view["text"] == seen.text and explorer.view["tgt"] == tgt

# %% [markdown]
# ## From a picture to a number
#
# One sentence is an anecdote.
# We need many sentences and something to count.
#
# The grammar of the course corpus builds a tree of phrases and expresses it in both languages.
# So it knows which English word belongs to which German word: the gold links of lesson 04.
# We take 1,000 trees whose sentences the model has never seen.

# %%
from course_lib.data import encode_pairs, load_course, make_batch
from course_lib.grammar import MAX_WORDS, realize, trees

train = load_course(num_train=60_000).train  # what the translator learned from
known, new = {pair.src for pair in train}, {}
for tree in trees(seed=1):
    pair = realize(tree)
    if pair.src not in known and len(pair.tgt_words) <= MAX_WORDS:
        new.setdefault(pair.src, (tree, pair))
    if len(new) == (3000 if device == "cuda" else 1000):
        break
tree_of, pairs = zip(*new.values(), strict=True)
half = len(pairs) // 2
choosing, reporting = range(half), range(half, len(pairs))
print(len(pairs), "sentences; the last:", pairs[-1].src, "→", pairs[-1].tgt)

# %% [markdown]
# The first half is for *choosing* (which head is best?), the second for *reporting*.
# Choosing and reporting on the same sentences would flatter the winner.
#
# The model reads the true German sentence (teacher forcing), and we record its cross-attention.
# But links connect words and weights connect tokens: *shows* is `▁show` and `s`.
# If a key word has two tokens, we add their weights; if a query word has two, we average their rows [@clark2019, section 4.1].
# The weight on `</s>` goes to a column of its own: "no word".

# %%
from course_lib.analysis import word_spans, word_weights


def spans(pair):
    """The token positions of each English word, and of each German word."""
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, tokenizer.tokens(text)) for text, words in texts]


def record(pairs, size=50):
    """For each pair its cross-attention (layers, heads, tgt_len, src_len), padded."""
    for begin in range(0, len(pairs), size):
        batch = make_batch(encode_pairs(tokenizer, pairs[begin : begin + size]))
        with torch.no_grad(), record_attention(model) as maps:
            model(batch.src.to(device), batch.tgt_in.to(device))
        yield from torch.stack(maps.cross, dim=1).cpu()


# %%
recorded = list(record(pairs))
between = [  # (layers, heads, German words, English words + 1)
    word_weights(cross, *spans(pair))
    for cross, pair in zip(recorded, pairs, strict=True)
]
print(tuple(recorded[0].shape), "between tokens, padded")
print(tuple(between[0].shape), "between words")

# %% tags=["hide-input"]
sum_of_pieces = [  # of one sentence, by hand: sums over keys, means over queries
    [
        recorded[0][1, 2][list(row)][:, list(key)].sum(1).mean()
        for key in spans(pairs[0])[0]
    ]
    for row in spans(pairs[0])[1]
]
torch.testing.assert_close(torch.tensor(sum_of_pieces), between[0][1, 2][:, :-1])

# %% [markdown]
# The largest weight of each row is a link that the head *predicts*.
# The **alignment error rate** compares the predicted links P with the gold links G: 1 − 2 |P ∩ G| / (|P| + |G|) [@och2003, with all gold links sure].
# It is 0 if they are the same, and 1 if they have nothing in common.
# Here it is by hand, for head 1.0 on our sentence.

# %% tags=["nbval-check-output"]
from course_lib.grammar import build as grammar

woman, child = grammar.the("woman", "old"), grammar.the("child")
apple = grammar.a("apple", "sweet")
example = grammar.pair(grammar.clause(woman, "zeigen", dative=child, accusative=apple))
rows = word_weights(maps["cross"][1, 0], *spans(example)).argmax(dim=1).tolist()
predicted = {(key, row) for row, key in enumerate(rows) if key < len(example.src_words)}
gold = set(example.links)
for name, only in (("predicted", predicted - gold), ("gold", gold - predicted)):
    words = [(example.src_words[s], example.tgt_words[t]) for s, t in sorted(only)]
    print(f"{name} only:", " · ".join(f"{src} = {tgt}" for src, tgt in words))
by_formula = 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))
print(f"alignment error rate: {by_formula:.2f}")

# %% tags=["hide-input"]
from course_lib.analysis import alignment_error_rate, strongest_links

assert example.tgt == seen.text
assert predicted == strongest_links(word_weights(maps["cross"][1, 0], *spans(example)))
assert by_formula == alignment_error_rate(predicted, gold) > 0.4

# %% [markdown]
# To predict an adjective or, mostly, an article, head 1.0 looks at the *noun*.
# So it is a bad dictionary, but perhaps it does something else; we shall come back to it.
#
# ## Which row belongs to which token?
#
# **A common mistake**: "row *t* of the cross-attention explains word *t*."
# Position *t* reads the token y_t and predicts y_{t+1} (lesson [07](07_decoder.ipynb)).
# So if we label the rows by what was read, each word gets the row below its own.
# How much does that matter?
# `rates_of` scores all heads, with either labels.

# %%
of_lower = Predict(
    "With the right rows, the best head has an error rate of 9 %. With the rows below?",
    unit="%",
    off_by=10,
    section="Which row belongs to which token?",
)
of_lower

# %%
from course_lib.analysis import corpus_error_rate, strongest_links


def error(find, part=reporting):
    """The error rate of links that are found from the number of a sentence."""
    return corpus_error_rate([find(n) for n in part], [pairs[n].links for n in part])


# %% tags=["hide-input"]
def rates_of(weights):
    """Error rates of all heads, (layers, heads)."""
    found = [
        error(lambda n, at=(layer, head): strongest_links(weights[n][at]))
        for layer in range(2)
        for head in range(4)
    ]
    return torch.tensor(found).view(2, 4)


# %%
lower = (cross.roll(-1, dims=-2) for cross in recorded)
below = [
    word_weights(each, *spans(pair)) for each, pair in zip(lower, pairs, strict=True)
]
rates, rates_below = rates_of(between), rates_of(below)
best_below = rates_below.min().item()
print(f"lowest error rate: {rates.min():.0%}; with the rows below: {best_below:.0%}")
of_lower.reveal(round(100 * best_below))

# %% tags=["hide-input"]
heads = [f"head {head}" for head in range(4)]
panels(
    [
        Panel(each, ["layer 0", "layer 1"], heads, f"labels: token {name}", "weights")
        for name, each in (("predicted", rates), ("read", rates_below))
    ],
    title=f"Labeled by the token read, no head is below {rates_below.min():.0%}",
    words={"weights": "alignment error rate"},
)

# %% tags=["hide-input"]
assert (rates_below > rates + 0.3).all() and rates_below.min() > 0.8
assert rates.argmin() == 6 and rates.min() < 0.1

# %% [markdown]
# On the left, heads 1.1, 1.2 and 1.3 are the good aligners.
#
# ## Good compared with what?
#
# An error rate alone says little.
# We compare with three aligners that have no attention.
#
# The first, the **diagonal**, uses no words at all: it links each German word to the English word at the same relative position.
#
# The second uses nothing *but* words: **IBM model 1** [@brown1993].
# It has one table, t(German word | English word), and learns it from sentence pairs without any links.
# How can it?
# In rounds: divide each German word among the English words of its sentence in proportion to t; add up the shares; normalize the sums to get the new t.
# (This is **expectation maximization**. `None` is the empty word, for German words that translate nothing.)

# %%
from collections import defaultdict

toy = {"the cat sleeps": "die Katze schläft", "the dog sleeps": "der Hund schläft"}
toy |= {"a cat sees": "eine Katze sieht", "a dog sees": "ein Hund sieht"}
toy = [(source.split(), target.split()) for source, target in toy.items()]


def one_round(t):
    """Divides each German word by t, and turns the sums of the shares into a new t."""
    counts, totals = defaultdict(float), defaultdict(float)
    for src_words, tgt_words in toy:
        for word in tgt_words:
            total = sum(t[source, word] for source in [None, *src_words])
            for source in [None, *src_words]:
                counts[source, word] += t[source, word] / total
                totals[source] += t[source, word] / total
    return {(source, word): n / totals[source] for (source, word), n in counts.items()}


# %% [markdown]
# At first *Katze* is divided equally among the article, *cat*, the verb and the empty word.
# But *Katze* is in all sentences with *cat*, and in only some of those with the article, the verb or the empty word; so the share of *cat* grows.

# %%
of_sleeps = Predict(
    "After ten rounds, what explains *schläft* better?",
    ["*sleeps*", "*the*", "both alike"],
    section="Good compared with what?",
)
of_sleeps

# %%
rounds, t = [], defaultdict(lambda: 1 / 8)  # eight German words, all equal at first
for _ in range(10):
    t = one_round(t)
    rounds.append(t)
verb, article = t["sleeps", "schläft"], t["the", "schläft"]
print(f"t(schläft | sleeps) = {verb:.2f}, t(schläft | the) = {article:.2f}")
why = "they always come together in these four pairs"
of_sleeps.reveal(
    "both alike" if abs(verb - article) < 1e-9 else "*sleeps*", because=why
)

# %% tags=["hide-input"]
watched = [("cat", "Katze"), ("sleeps", "schläft"), ("the", "schläft"), ("cat", "die")]
curves(
    {
        f"t({word} | {source})": (range(1, 11), [t[source, word] for t in rounds])
        for source, word in watched
    },
    xlabel="round",
    ylabel="probability",
    title="“Katze” finds “cat”; “schläft” cannot choose between “sleeps” and “the”",
)

# %% tags=["hide-input"]
from course_lib.analysis import train_ibm1

assert t["cat", "Katze"] > 0.75 > 0.15 > t["cat", "die"]
finished = train_ibm1(toy, iterations=10)
for (source, word), share in t.items():
    assert abs(finished.table([source], [word]).item() - share) < 1e-12

# %% [markdown]
# The table sharpens by itself; to separate *sleeps* from *the* it needs more sentences.
#
# Model 1 ignores positions: if a sentence has two *the*, both explain *dem* equally well.
# (We break such ties toward the diagonal; always taking the first word would make a needlessly weak baseline.)
#
# The third aligner also *learns* how much positions matter: **fast_align** [@dyer2013], a widely used tool.
# It multiplies t for German word i of m and English word j of n by exp(−λ |i/m − j/n|).
# The **tension** λ is one number for the whole corpus, fitted together with t: at 0 positions do not matter, and the larger it is, the closer the links keep to the diagonal.
#
# These aligners give each *German* word one link; trained in the other direction, they give each *English* word one.
# A map can be read in both directions, too: the largest weight of each row, or of each column.
# So heads and aligners all use their better direction, chosen on the first half.

# %%
of_best = Predict(
    "Whose links have fewer errors, on sentences that neither has seen?",
    ["the best head's", "fast_align's", "no clear difference"],
    section="Good compared with what?",
)
of_best

# %%
from course_lib.analysis import column_links, diagonal_links, train_fast_align

texts = [(pair.src_words, pair.tgt_words) for pair in train[:20_000]]
backwards = [(tgt_words, src_words) for src_words, tgt_words in texts]
aligners = {"IBM model 1": (train_ibm1(texts), train_ibm1(backwards))}
aligners["fast_align"] = train_fast_align(texts), train_fast_align(backwards)
tensions = [round(aligner.tension, 1) for aligner in aligners["fast_align"]]
print("tension of fast_align, in each direction:", *tensions)


# %% tags=["hide-input"]
def by_aligner(aligner, other_way=False):
    def find(n):
        sides = pairs[n].src_words, pairs[n].tgt_words
        links = aligner.links(*(sides[::-1] if other_way else sides))
        return {link[::-1] for link in links} if other_way else links

    return find


# %% tags=["hide-input"]
def by_head(layer, head, read):
    return lambda n: read(between[n][layer, head])


def by_place(n):
    return diagonal_links(len(pairs[n].src_words), len(pairs[n].tgt_words))


ways = {"diagonal": [by_place]}
for name, both in aligners.items():
    ways[name] = [by_aligner(each, side) for side, each in enumerate(both)]
for layer in range(2):
    for head in range(4):
        both = [by_head(layer, head, read) for read in (strongest_links, column_links)]
        ways[f"head {layer}.{head}"] = both

# %%
best_way = {  # of each, chosen on the first half
    name: min(finders, key=lambda find: error(find, choosing))
    for name, finders in ways.items()
}
head_ways = {name: find for name, find in best_way.items() if name.startswith("head")}
best = min(head_ways, key=lambda name: error(head_ways[name], choosing))
print("best head, by the first half:", best)

# %% tags=["hide-input"]
import numpy as np

from course_lib.analysis import error_rate_estimate

gold = [pairs[n].links for n in reporting]
links = {name: [find(n) for n in reporting] for name, find in best_way.items()}
rate = {name: error_rate_estimate(found, gold) for name, found in links.items()}
lead = error_rate_estimate(links[best], gold, against=links["fast_align"])
print(f"{best}: {rate[best].value:.1%}; fast_align: {rate['fast_align'].value:.1%}")
told = f"{100 * lead.value:.1f} points ({100 * lead.low:.1f} to {100 * lead.high:.1f})"
print("difference on the second half:", told)
outcome = "fast_align's" if lead.low > 0 else "the best head's"
of_best.reveal(outcome if lead.high < 0 or lead.low > 0 else "no clear difference")

# %% tags=["hide-input"]
ranked = dict(sorted(rate.items(), key=lambda row: row[1].value))
shown = [100 * each.value for each in ranked.values()]
ends = [[100 * (e.value - e.low), 100 * (e.high - e.value)] for e in ranked.values()]
figure = bars(
    list(ranked),
    shown,
    xlabel="alignment error rate (%), with 95 % intervals; lower is better",
    title="Best head and fast_align: no clear difference; most heads align badly",
    value_format="     {:.1f}",
)
style = dict(fmt="none", ecolor="black", capsize=3)
_ = figure.axes[0].errorbar(shown, range(len(shown)), xerr=np.array(ends).T, **style)
figure

# %% tags=["hide-input"]
print("error rates of the first and second half, in each direction")
for name, found in ways.items():
    print(
        f"{name:12}",
        *(f"{error(each, choosing):.3f} {error(each):.3f}" for each in found),
    )
assert best == "head 1.2" and rate["fast_align"].value < rate["IBM model 1"].value
assert rate[best].high < rate["IBM model 1"].low
beat_it = [name for name in head_ways if rate[name].value < rate["diagonal"].value]
assert len(beat_it) == 7

# %% [markdown]
# The best head aligns as well as our fast_align, although it was never trained to align.
# (It saw three times as many pairs.)
# These sentences cannot say whether it does better: the interval of the difference contains 0.
# (By rows, as such maps are usually read, the head leads; by columns it does not.)
# Against the diagonal alone, seven of the eight heads would have looked like discoveries.
#
# Does the head know anything that the aligners do not?
# When a word occurs twice in a sentence, a table of words cannot tell *which* of the two is meant, and the tension can only guess.
# So `found_share` counts these links separately.


# %% tags=["hide-input"]
def found_share(links, repeated):
    """Percent of the gold links found, of English words that are repeated or not."""
    hits = []
    for n, found in zip(reporting, links, strict=True):
        words = pairs[n].src_words
        for link in pairs[n].links:
            if (words.count(words[link[0]]) > 1) == repeated:
                hits.append(link in found)
    return 100 * sum(hits) / len(hits)


# %%
three = ["IBM model 1", "fast_align", best]
single = [found_share(links[name], repeated=False) for name in three]
twice = [found_share(links[name], repeated=True) for name in three]
for name, *both in zip(three, single, twice, strict=True):
    print(f"{name:12} finds {both[0]:.1f} % of single words", end=", ")
    print(f"{both[1]:.1f} % of repeated ones")

# %% tags=["hide-input"]
assert max(single) - min(single) < 3 and twice[2] > twice[1] + 4 > twice[0] + 15
head_row, fast_row = (
    by_head(1, 2, strongest_links),
    by_aligner(aligners["fast_align"][0]),
)
by_rows = error_rate_estimate(
    [head_row(n) for n in reporting], gold, against=[fast_row(n) for n in reporting]
)
print(
    f"read by rows, head minus fast_align: {100 * by_rows.value:.1f} points,", end=" "
)
print(f"{100 * by_rows.low:.1f} to {100 * by_rows.high:.1f}")
assert by_rows.high < 0 and lead.low < 0 < lead.high

# %% [markdown]
# All three find single words about equally well, but the head knows better which of two equal words is meant, perhaps because its keys come from the whole sentence, and its queries from all that has been written.
#
# ## When does a head learn to align?
#
# The translator comes with ten checkpoints of its training.
# `film` measures all heads at all checkpoints on our sentences: again it chooses on the first half and reports on the second.

# %%
of_step = Predict(
    "After how many of the 5,572 steps is the best head better than the diagonal?",
    unit="steps",
    within=0.5,
    section="When does a head learn to align?",
)
of_step

# %%
from course_lib.analysis import film

course_film = film("course", tree_of)
for step, (layer, head), each in zip(
    course_film.steps, course_film.best, course_film.best_rates, strict=True
):
    print(f"step {step:5}: head {layer}.{head}, alignment error {each:.0%}")
below_diagonal = [each < course_film.diagonal for each in course_film.best_rates]
of_step.reveal(course_film.steps[below_diagonal.index(True)])

# %% tags=["hide-input"]
lowest = course_film.rates.amin(dim=2)  # (steps, layers)
curves(
    {f"best of layer {n}": (course_film.steps, lowest[:, n]) for n in range(2)},
    xlabel="training step",
    ylabel="alignment error rate, read by rows",
    title="Heads of layer 0 align first; then layer 1 overtakes them",
    log_x=True,
    marks={"diagonal": (None, course_film.diagonal)},
)

# %% tags=["hide-input"]
torch.testing.assert_close(course_film.rates[-1], rates, atol=5e-3, rtol=0)
first_below = course_film.steps[below_diagonal.index(True)]
assert course_film.best[0][0] == 0 and course_film.best[-1] == (1, 2)
assert 200 < first_below < 1000

# %% [markdown]
# The best head passes the diagonal after a tenth of the training and needs the rest of it to become as good as it is; at the end the best aligners are in layer 1.
# The explorer plays the checkpoints as a film when you press its button.
# Every checkpoint reads the translation of the finished model, so the maps can be compared cell by cell.

# %%
film_explorer = AttentionExplorer(course_film, text, head=2)
film_explorer

# %% tags=["hide-input"]
with written_for(text, film_explorer.text):
    assert film_explorer.film["steps"] == course_film.steps

# %% [markdown]
# ## Tasks of heads
#
# The paper says that heads "clearly learn to perform different tasks" (section 4), and shows examples.
# An example can be chosen to suit a claim, so we count.
# Our trees know which words belong together: a verb and its subject, a pronoun and its noun, a separated prefix and its verb.

# %% tags=["nbval-check-output"]
from course_lib.analysis import goals

chosen = next(n for n, pair in enumerate(pairs) if "pronoun gender" in pair.phenomena)
print(pairs[chosen].src, "→", pairs[chosen].tgt)
asking, answers = pairs[chosen].src_words, tokenizer.tokens(pairs[chosen].src)
src_spans, tgt_spans = spans(pairs[chosen])
for goal in goals(tree_of[chosen], "encoder", src_spans, tgt_spans):
    print(f"{goal.relation:28}{answers[goal.row]} → {answers[goal.keys[0]]}")

# %% [markdown]
# How often does a head's largest weight go from the first word of such a pair to the second?
# A share alone says as little as an error rate alone, so each one must beat two opponents:
#
# - the **best fixed distance** [@clark2019]: a determiner mostly stands right before its noun, so "one to the right" finds many nouns without knowing any;
# - the **control rows**: rows of the sentence that should not look there (in the decoder, those between the two words). If they look there as often, the head prefers that word for any query.
#
# For each relation we take the best head and the best distance of the first half, and count on the second. ("Previous token" is a distance itself, so no head can win there.)
# We call a role *real* if the head is more than 15 points ahead of both opponents.
# (In the cross-attention, adjective → noun goes from the row that predicts *süßen* to *apple*.)

# %%
of_control = Predict(
    "In the decoder, head 0.0 looks from 82 % of the prefixes to their verb. "
    "How many of the words in between look at that verb, too?",
    unit="%",
    off_by=10,
    section="Tasks of heads",
)
of_control

# %% tags=["hide-input"]
from course_lib.metrics import share_estimate

print(f"{'':45}head (95 % interval)   distance   control")
for role in course_film.roles:
    share = share_estimate(round(role.shares[-1] * role.cases), role.cases)
    name = f"{role.kind} {role.layer}.{role.head}: {role.relation}"
    print(f"{name:44}{share.value:5.0%} ({share.low:.0%} to {share.high:.0%})", end="")
    print(f"{role.distance:10.0%}{role.control:10.0%}", "  real" if role.real else "")
role_of = {(role.kind, role.relation): role for role in course_film.roles}
prefix = role_of["decoder", "prefix → verb"]
of_control.reveal(round(100 * prefix.control))

# %% tags=["hide-input"]
names = [
    f"{role.kind} {role.layer}.{role.head}: {role.relation}"
    for role in course_film.roles
    if role.real
]
assert names == [
    "encoder 1.1: determiner → noun",
    "encoder 1.1: pronoun → its noun",
    "decoder 0.0: prefix → verb",
    "decoder 0.2: finite verb → conjunction",
    "cross 1.0: adjective → noun",
]

# %% tags=["hide-input"]
assert 0.4 < prefix.control < 0.6 and prefix.shares[-1] > prefix.control + 0.25
conjunction = role_of["decoder", "finite verb → conjunction"]
assert conjunction.control < 0.1
subject, adjective = (
    role_of["encoder", name] for name in ("finite verb → subject", "adjective → noun")
)
assert min(subject.shares[-1], adjective.shares[-1]) > 0.7
assert (
    subject.shares[-1] < subject.distance
    and adjective.shares[-1] < adjective.distance + 0.05
)
pronoun = role_of["encoder", "pronoun → its noun"]
assert (
    share_estimate(round(pronoun.shares[-1] * pronoun.cases), pronoun.cases).low > 0.55
)

# %% [markdown]
# Five of the seventeen candidates are real.
# One is that of cross 1.0, our bad aligner: when it predicts an adjective, it looks at the noun.
# But half of the words between a prefix and its verb look at the verb as well, so part of "a prefix finds its verb" is "this head prefers verbs".
# And "encoder 1.0 finds subjects" or "encoder 1.1 finds the nouns of adjectives" would make fine pictures, but a fixed distance does about as well or better.
# (They may still be true; these sentences cannot tell.)
#
# Figure 4 of the paper shows two heads "apparently involved in anaphora resolution".
# Encoder 1.1 does find the noun of a pronoun far more often than any distance, in about seven of ten cases; no figure could have said in how many, and it is less than the 99 % of lesson [03](03_attention.ipynb), whose sentences all had one form.
#
# ## Switch it off
#
# A head that looks at the right place may still be useless; what it does for the model shows when it is gone.
# Removing a part and measuring what breaks is called **ablation**; @michel2019 and @voita2019 did it with larger models.
#
# The context of a head enters the rest of the model through its columns of W_O, and nowhere else (lesson [04](04_multi_head.ipynb)).
# With zeros there, nothing of the head reaches the rest of the model.
# `ablate_heads` does the same without touching the weights.

# %%
from course_lib.analysis import ablate_heads, all_heads

batch = make_batch(encode_pairs(tokenizer, pairs[half : half + 50])).to(device)
output_proj = attentions(model, "cross")[1].output_proj
before = output_proj.weight.clone()
with torch.no_grad():
    output_proj.weight.unflatten(1, (4, -1))[:, 3] = 0  # (d_model, heads, d_k): head 3
    by_hand = model(batch.src, batch.tgt_in)
    output_proj.weight.copy_(before)
    plain = model(batch.src, batch.tgt_in)
    with ablate_heads(model, [("cross", 1, 3)]):
        ablated = model(batch.src, batch.tgt_in)
print(f"by hand and by the library: {(by_hand - ablated).abs().max():.0e} apart")
print(f"with the head and without:  {(plain - ablated).abs().max():.1f} apart")

# %% tags=["hide-input"]
torch.testing.assert_close(ablated, by_hand, rtol=1e-4, atol=1e-4)
assert not torch.allclose(ablated, plain, atol=0.1)

# %% [markdown]
# Our measure is exact match on the second half of the sentences.
# One parallel pass is enough: greedy search is right exactly if every prediction under teacher forcing is right (lesson [07](07_decoder.ipynb)).

# %% tags=["hide-input"]
order = sorted(reporting, key=lambda n: len(pairs[n].tgt_words))  # like lengths: faster
starts = range(0, half, 50)
chunks = [[pairs[n] for n in order[begin : begin + 50]] for begin in starts]
batches = [make_batch(encode_pairs(tokenizer, chunk)).to(device) for chunk in chunks]


# %%
@torch.no_grad()
def right(off=(), batches=batches):
    """For each sentence, whether every prediction is right when these heads are off."""
    found = []
    with ablate_heads(model, off):
        for batch in batches:
            guesses = model(batch.src, batch.tgt_in).argmax(dim=-1)
            wrong = (guesses != batch.tgt_out) & (batch.tgt_out != model.config.pad_id)
            found.append(~wrong.any(dim=1))
    return torch.cat(found).cpu()


print(f"exact match with all heads: {right().float().mean():.1%}")

# %%
of_costliest = Predict(
    "Without which single head does exact match fall most?",
    ["cross 1.2, the best aligner", "encoder 1.1, article → noun", "another one"],
    section="Switch it off",
)
of_costliest

# %%
all_right, without = right(), {head: right([head]) for head in all_heads(model)}
start = all_right.float().mean().item()
cost = {head: start - each.float().mean().item() for head, each in without.items()}
costliest = max(cost, key=cost.get)
kind, *place = costliest
print(f"costliest: {kind} {place[0]}.{place[1]}, {100 * cost[costliest]:.0f} points")

# %% tags=["hide-input"]
named = {("cross", 1, 2): 0, ("encoder", 1, 1): 1}
of_costliest.reveal(of_costliest.choices[named.get(costliest, 2)])
for head in sorted(cost, key=cost.get, reverse=True)[:3]:
    lost = share_estimate(int((all_right & ~without[head]).sum()), half)
    print(f"{head[0]} {head[1]}.{head[2]} off breaks {lost.value:.0%}", end=" ")
    print(f"({lost.low:.0%} to {lost.high:.0%})")

# %% tags=["hide-input"]
places = [f"{kind}, layer {layer}" for kind in KINDS for layer in range(2)]
costs = torch.tensor(list(cost.values())).unflatten(0, (6, 4))
panels(
    [Panel(100 * costs, places, heads, "one head off")],
    title="Two heads cost most, and neither sees both languages",
    words={"signed": "exact match lost, in points"},
)

# %% tags=["hide-input"]
assert start > 0.95 and costliest == ("decoder", 0, 3)
assert (
    min(cost[costliest], cost["encoder", 1, 1]) > 0.25 > 0.2 > sorted(cost.values())[-3]
)
assert costs[5].min() > costs[4].max()  # of the cross-attention, layer 1 costs most

# %% [markdown]
# Two heads cost more than 25 points each, and neither can align anything: decoder 0.3 sees only German, encoder 1.1 only English.
# The table of roles, above, has a hint: decoder 0.3 mostly looks at the previous token, so perhaps without it the decoder no longer knows where it is in its sentence.
# Encoder 1.1 is the one that takes words to their noun.
# In the cross-attention the four heads of layer 1 cost most, even 1.0, which aligns no better than some heads of layer 0.
#
# ### One at a time is not the whole story
#
# A head may be dispensable only because another can replace it.
# So, like @michel2019, we also keep *one* head of a layer and switch off the other three.

# %%
of_alone = Predict(
    "Cross-attention, layer 1, keeps one head, whichever does best. Exact match?",
    unit="%",
    off_by=10,
    section="One at a time is not the whole story",
)
of_alone

# %%
some = batches[::3]  # every third batch
alone = torch.zeros(6, 5)
for row in range(6):
    for kept in range(5):  # the last time, none is kept
        others = [head for head in range(4) if head != kept]
        off = [(KINDS[row // 2], row % 2, head) for head in others]
        alone[row, kept] = right(off, some).float().mean()
best_alone = alone[5, :4].max().item()
print(f"one head of the last layer keeps at most {best_alone:.0%} of sentences right")
of_alone.reveal(round(100 * best_alone))

# %% tags=["hide-input"]
panels(
    [Panel(alone, places, [*heads, "none"], "the only head left", "weights")],
    title="All heads of a layer off cost more than the single costs added up",
    words={"weights": "exact match"},
)

# %% tags=["hide-input"]
sample = torch.arange(half) // 50 % 3 == 0  # the sentences of `some`
intact = all_right[sample].float().mean()
single_costs = [intact - each[sample].float().mean() for each in without.values()]
added_up = torch.stack(single_costs).unflatten(0, (6, 4)).sum(dim=1)
assert (intact - alone[:, 4] > added_up).all() and alone[5].max() < 0.35

# %% [markdown]
# In each of the six attention layers, switching off all four heads costs more than the four single costs added up.
# So a small single cost does not mean "not needed".
#
# ### A pattern is not yet a task
#
# Encoder 1.1 looks from *it* to its noun, and encoder 1.3 often does, too; decoder 0.2 looks from a verb at the end to its conjunction.
# If these are their tasks, then without the head sentences with such a pronoun or such a verb should break more often than others.
# The controls are other sentences of two clauses, because longer sentences break more easily.

# %%
of_tasks = Predict(
    "For how many of the three heads is that so?",
    ["0", "1", "2", "3"],
    section="A pattern is not yet a task",
)
of_tasks

# %% tags=["hide-input"]
suspects = {("encoder", 1, 1): "pronoun gender", ("encoder", 1, 3): "pronoun gender"}
suspects[("decoder", 0, 2)] = "verb final"
double = torch.tensor([tree_of[n].second is not None for n in order]) & all_right
damage = {}
for head, tag in suspects.items():
    tagged = torch.tensor([tag in pairs[n].phenomena for n in order])
    broken = [~without[head][each & double] for each in (tagged, ~tagged)]
    damage[head] = [share_estimate(int(each.sum()), len(each)) for each in broken]
    print(f"{head[0]} {head[1]}.{head[2]} off breaks", end=" ")
    for each, which in zip(damage[head], (f"with a {tag}", "without"), strict=True):
        print(f"{which} {each.value:.0%} ({each.low:.0%} to {each.high:.0%})", end="  ")
    print()
holds = sum(each.low > control.value + 0.05 for each, control in damage.values())
of_tasks.reveal(str(holds))

# %% tags=["hide-input"]
pronouns, double_of_it, last_verbs = damage.values()
assert holds == 1 and pronouns[0].value > pronouns[1].value + 0.12
assert double_of_it[0].value < 0.15 and last_verbs[0].value < last_verbs[1].value + 0.05

# %% [markdown]
# For encoder 1.1 it is so.
# Encoder 1.3 looks at the same noun, but without it alone hardly any sentence breaks: 1.1 may stand in for it.
# The pattern of decoder 0.2 is real, but sentences with a verb at the end break no more often than others.
# A pattern is a hypothesis; ablation is a test. (A mild one would put the head's mean there, not zeros.)
#
# ## Where attention misleads
#
# "Attention is not Explanation" is the title of a paper [@jain2019]; "Attention is not not Explanation" is the title of a reply [@wiegreffe2019].
# We look at three ways in which a map can mislead.
#
# ### 1. Other weights, the same output
#
# If a head's weights are the reason for an output, other weights should give another output.
# Jain and Wallace **permuted** the weights of text classifiers at random, and we do the same to our heads: each row keeps its weights, but on keys drawn at random.


# %%
from contextlib import contextmanager


def permute(weights, mask, generator):
    """The same weights in each row, on keys drawn at random among the allowed ones."""
    numbers = torch.rand(weights.shape, generator=generator).to(weights.device)
    keys = numbers.masked_fill(~mask, -1).argsort(dim=-1, descending=True)
    values = weights.sort(dim=-1, descending=True).values
    return torch.zeros_like(weights).scatter(-1, keys, values)


# %% tags=["hide-input"]
@contextmanager
def permuted(layer, heads):
    generator = torch.Generator().manual_seed(0)

    def hook(module, args, context):  # context (batch, heads, queries, d_k)
        query, key, value, mask, _ = args
        scores = query @ key.mT / query.shape[-1] ** 0.5  # as in lesson 03
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)[:, heads]
        weights = permute(weights, mask.expand_as(weights), generator)
        context[:, heads] = weights @ value[:, heads]
        return context

    handle = attentions(model, "cross")[layer].fused.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


# %% tags=["hide-input"]
@torch.no_grad()
def predictions():
    """The predicted tokens of some sentences, without padding."""
    found = []
    for batch in some:
        guesses = model(batch.src, batch.tgt_in).argmax(dim=-1)
        found.append(guesses[batch.tgt_out != model.config.pad_id])
    return torch.cat(found)


# %%
of_permuted = Predict(
    "We permute one head of the cross-attention. "
    "How many predicted tokens stay the same, at least?",
    unit="%",
    off_by=3,
    section="1. Other weights, the same output",
)
of_permuted

# %% tags=["hide-input"]
usual, stays, whole = predictions(), {}, {}
for layer in range(2):
    for picked in ([0], [1], [2], [3], [0, 1, 2, 3]):
        name = (
            f"head {layer}.{picked[0]}" if len(picked) == 1 else f"all of layer {layer}"
        )
        with permuted(layer, picked):
            stays[name] = (predictions() == usual).float().mean().item()
        with permuted(layer, picked):
            whole[name] = right(batches=some).float().mean().item()
        print(f"{name:15}{stays[name]:6.1%} of tokens stay,", end=" ")
        print(f"{whole[name]:6.1%} of sentences right")
least = min(each for name, each in stays.items() if name[:4] == "head")
of_permuted.reveal(round(100 * least, 1))

# %% tags=["hide-input"]
allowed = torch.tensor([True] * 6 + [False] * 2).expand(3, 8)
generator = torch.Generator().manual_seed(0)
given = torch.rand(3, 8, generator=generator).masked_fill(~allowed, 0)
mixed = permute(given, allowed, generator)
assert torch.equal(mixed.sort().values, given.sort().values)
assert (mixed[~allowed] == 0).all() and not torch.equal(mixed, given)
assert torch.equal(predictions(), usual) and least > 0.95
assert stays["all of layer 1"] < 0.5 and stays["all of layer 0"] > 0.9
off = without["cross", 1, 2][sample].float().mean().item()
assert whole["head 1.2"] < min(all_right[sample].float().mean() - 0.1, off - 0.05)

# %% [markdown]
# With any single head permuted, more than 95 % of the tokens stay, so where a single head looks decides few of them, given the others; but one changed token spoils a sentence.
# In contrast, with all of layer 1 permuted, more than half of the tokens change, so where a *layer* looks does matter.
# And permuting head 1.2 does more harm than switching it off. A likely reason: other heads can replace missing information, but not correct wrong information.
# That fits the reply: even if another pattern gives the same output, the one that was used need not be meaningless.
#
# ### 2. The attention sink
#
# A row must sum to 1, even where a head has nothing to look for.
# Many heads then put their weight on a token that means little: an **attention sink** [@xiao2023, who found it at the first token of language models; @clark2019 saw it at BERT's separator].
# In our figure, head 0.1 of the cross-attention goes to `</s>` in the row that predicts *zeigt*.
#
# What counts is not the weight alone but weight times value [@kobayashi2020].
# So we measure the length of the vector that each head of layer 0 adds to a row, through its slice of W_O.
# We compare rows of words whose largest weight is on a punctuation mark or `</s>` with the other rows of words.

# %% tags=["hide-input"]
marks = [tokenizer.encode(f"Hund{mark}")[-1] for mark in ".?,"]
marks = torch.tensor([*marks, model.config.eos_id, model.config.pad_id]).to(device)
layer_0 = attentions(model, "cross")[0]
slices = layer_0.output_proj.weight.detach().T.unflatten(0, (4, -1))


# %% tags=["hide-input"]
@torch.no_grad()
def look(batch):
    """Whether in a sink, whether a word, length added: (batch, heads, queries) each."""
    contexts, keep = [], lambda module, args, context: contexts.append(context)
    handle = layer_0.fused.register_forward_hook(keep)
    with record_attention(model) as maps:
        model(batch.src, batch.tgt_in)
    handle.remove()
    is_word = ~torch.isin(batch.tgt_out, marks)[:, None].expand(-1, 4, -1)
    closing = torch.isin(batch.src, marks)[:, None].expand(-1, 4, -1)
    in_sink = closing.gather(2, maps.cross[0].argmax(dim=-1)) & is_word
    return in_sink, is_word, (contexts[0] @ slices).norm(dim=-1)


# %% tags=["hide-input"]
looks = [[each.transpose(0, 1).flatten(1) for each in look(one)] for one in batches]
in_sink, is_word, lengths = (torch.cat(each, 1) for each in zip(*looks, strict=True))
added = {}
for head in range(4):
    sink, busy = in_sink[head], is_word[head] & ~in_sink[head]
    added[head] = [lengths[head][rows].mean().item() for rows in (sink, busy)]
    share = (sink.sum() / is_word[head].sum()).item()
    print(f"head 0.{head}: {share:4.0%} of rows in a sink,", end=" ")
    print(f"where it adds {added[head][0]:.1f}; elsewhere {added[head][1]:.1f}")

# %% tags=["hide-input"]
assert all(sink < 0.8 * busy for sink, busy in added.values())
assert maps["cross"][0, 1, tgt.index("▁zeigt"), -1] > 0.9

# %% [markdown]
# The weights sum to 1 either way, but in these rows the head adds a quarter to two fifths less: partial sinks.
# So a dark cell at the full stop says less than its weight suggests.

# %% [markdown]
# ### 3. A position is not a word
#
# We read a weight on *woman* as "the model looks at the word *woman*".
# But keys and values are computed from the memory, and there the encoder has mixed the words.
# What does a position hold, layer by layer?
#
# ## What each layer represents
#
# The usual tool is a **probe**: a small classifier that is trained to read a property off the vectors of a layer.
# Ours is linear, and short:


# %%
from torch import nn


def our_probe(vectors, labels, classes):
    """Multinomial logistic regression: standardized vectors to scores of classes."""
    linear = nn.Linear(vectors.shape[1], classes)
    nn.init.zeros_(linear.weight), nn.init.zeros_(linear.bias)
    settings = dict(max_iter=60, line_search_fn="strong_wolfe")
    optimizer = torch.optim.LBFGS(linear.parameters(), **settings)

    def loss():
        optimizer.zero_grad()
        decay = 1e-4 * linear.weight.square().sum()
        value = nn.functional.cross_entropy(linear(vectors), labels) + decay
        value.backward()
        return value

    optimizer.step(loss)
    return linear


# %% [markdown]
# Which property?
# First the classic one, the **part of speech**: noun, verb, determiner and so on.
# Then one that English does not have but this translator needs: the German gender.
# *The woman* must become *die Frau* and *the boy* *der Junge*, so at every *the* we ask for the gender of its noun.
# We collect the vectors of all English words: at the embedding, after layer 0 and after layer 1.
# For comparison we do the same with an untrained model of random weights.
# `where` picks words, `standardized` brings their vectors to one scale.

# %%
from course_lib import Transformer
from course_lib.analysis import fit_probe, layer_states, word_labels

torch.manual_seed(0)
models = {"trained": model, "random": Transformer(model.config).to(device).eval()}
words = [label for tree in tree_of for label in word_labels(tree)]
for word in words[-8:]:
    print(f"{word.word:10}{word.part_of_speech or '-':14}", word.noun, word.gender)

# %% tags=["hide-input"]
vectors = {name: [] for name in models}
for begin in range(0, len(pairs), 50):
    batch = make_batch(encode_pairs(tokenizer, pairs[begin : begin + 50])).to(device)
    for name, each in models.items():
        states = layer_states(each, batch.src, batch.tgt_in)["encoder"]
        states = torch.stack(states).cpu()  # (layers + 1, batch, src_len, d_model)
        for row, pair in enumerate(pairs[begin : begin + 50]):
            last = [span.stop - 1 for span in spans(pair)[0]]  # last tokens of words
            vectors[name].append(states[:, row, last])
vectors = {name: torch.cat(each, dim=1) for name, each in vectors.items()}
first_half = [n < half for n in range(len(pairs)) for _ in pairs[n].src_words]
in_first = torch.tensor(first_half)
assert vectors["trained"].shape == (3, len(words), model.config.d_model)


# %% tags=["hide-input"]
def standardized(name, layer, keep):
    """With mean 0 and standard deviation 1 in the first half of the sentences."""
    picked = vectors[name][layer][keep]
    ours = picked[in_first[keep]]
    mean, spread = ours.mean(dim=0), ours.std(dim=0, correction=0)
    return (picked - mean) / spread.clamp(min=1e-6)


def where(condition):
    """The numbers of the words for which it holds."""
    return torch.tensor([n for n, word in enumerate(words) if condition(word)])


# %%
at_the = where(lambda word: word.word == "the" and word.noun)
genders = torch.tensor(["mfn".index(words[n].gender) for n in at_the])
inputs, fitted = standardized("trained", 2, at_the), in_first[at_the]
ours = our_probe(inputs[fitted], genders[fitted], classes=3)
correct = ours(inputs[~fitted]).argmax(dim=1) == genders[~fitted]
most_common = (genders[~fitted] == genders[fitted].mode().values).float().mean()
print(f"after layer 1, gender at {len(correct)} new the: {correct.float().mean():.0%}")
print(f"always the most common gender: {most_common:.0%}")

# %% tags=["hide-input"]
at_layer_1 = vectors["trained"][2][at_the]
library = fit_probe(at_layer_1[fitted], genders[fitted]).predict(at_layer_1[~fitted])
same = library == ours(inputs[~fitted]).argmax(dim=1)
assert same.float().mean() > 0.97 and correct.float().mean() > 0.85

# %% [markdown]
# The word *the* is the same for all genders, yet a linear function of its vector after layer 1 gives the gender of its noun nine times in ten.
# Does that mean that the model represents gender?
# A high accuracy can have three other reasons, and each has its control:
#
# - one class is so frequent that guessing it is enough: hence the second line above;
# - the *architecture* alone passes the property on, whatever its weights: hence the random model;
# - the probe has memorized words: hence the **control task** [@hewitt2019]. Each noun gets a random class instead of its gender, the same in all sentences. Only the noun itself predicts this class, so a probe that gets it right has recognized nouns, not genders. The difference between the two accuracies is the **selectivity** of the probe.

# %%
from course_lib.analysis import control_labels


def probe_layers(name, keep, labels, test, types=None):
    """Accuracy of a probe at each layer; with types, on the control task."""
    labels = labels if types is None else control_labels(types, labels, seed=0)
    found, classes = [], int(labels.max()) + 1
    for layer in range(3):
        inputs = vectors[name][layer][keep]
        probe = fit_probe(inputs[~test], labels[~test], classes=classes)
        found.append(probe.accuracy(inputs[test], labels[test]))
    return found


# %% tags=["hide-input"]
def table_of(keep, labels, types, test):
    """The trained model, the random one, and the control task of the trained one."""
    rows = [probe_layers(name, keep, labels, test) for name in models]
    return torch.tensor([*rows, probe_layers("trained", keep, labels, test, types)])


# %% [markdown]
# We probe three things (`table_of` does it at each depth): the part of speech of each word, the gender at each *noun*, and the gender at each *the*.

# %%
of_noun = Predict(
    "At the noun itself, in which model does a probe find the gender more often?",
    ["the trained one, by far", "the random one, by far", "about equally often"],
    section="What each layer represents",
)
of_noun

# %% tags=["hide-input"]
tagged = where(lambda word: word.part_of_speech)
kinds = sorted({words[n].part_of_speech for n in tagged})
kind_of = torch.tensor([kinds.index(words[n].part_of_speech) for n in tagged])
at_noun = where(lambda word: word.part_of_speech == "noun")
of_gender = torch.tensor(["mfn".index(words[n].gender) for n in at_noun])
asked = {
    "part of speech": (tagged, kind_of, [words[n].word for n in tagged]),
    "gender at the noun": (at_noun, of_gender, [words[n].noun for n in at_noun]),
    "gender at “the”": (at_the, genders, [words[n].noun for n in at_the]),
}

# %%
probed = {
    name: table_of(keep, labels, types, test=~in_first[keep])
    for name, (keep, labels, types) in asked.items()
}
at_nouns = probed["gender at the noun"]
print("at the noun, embedding:", *(f"{each:.1%}" for each in at_nouns[:, 0]))
gap = (at_nouns[0, 0] - at_nouns[1, 0]).item()
of_noun.reveal(of_noun.choices[2 if abs(gap) < 0.03 else 0 if gap > 0 else 1])

# %% tags=["hide-input"]
panels(
    [
        Panel(
            each,
            ["trained", "random weights", "control task"],
            ["embedding", "layer 0", "layer 1"],
            f"{name} ({int((~in_first[asked[name][0]]).sum())})",
            "weights",
        )
        for name, each in probed.items()
    ],
    title="Gender at “the” rises from guessing to 93 %; both controls stay far below",
    words={"weights": "accuracy of a linear probe, on new sentences"},
)

# %% tags=["hide-input"]
assert probed["part of speech"][0, 2] > 0.98 and probed["part of speech"][1, 0] > 0.85
assert at_nouns[:, 0].min() > 0.93 and abs(gap) < 0.03
of_the = probed["gender at “the”"]
assert 0.925 < of_the[0, 2] < 0.935
assert of_the[0].diff().min() > 0.1 and of_the[0, 2] > 0.85
assert of_the[1].max() < most_common + 0.06 and of_the[0, 2] > of_the[2, 2] + 0.2

# %% [markdown]
# - **Part of speech**: nearly perfect, but already about 90 % at the embedding of the random model. In this corpus the word mostly decides, and the probe can memorize words. Random layers blur that, trained ones sharpen it.
# - **Gender at the noun**: 97 % at the embedding, but the random model and the control task are just as good. This probe has memorized the nouns, and says nothing about the model.
# - **Gender at *the***: at the embedding no better than guessing, after layer 0 three quarters, after layer 1 more than nine tenths. The random model never gets beyond guessing, and the control task stays 30 points behind. So *this* is in the model: the encoder carries the gender to the article.
#
# Does the model represent no gender at the noun, then?
# That probe succeeds on any model, so it could not tell.
# A sharper control asks about nouns that are new to the *probe* (not to the model): we leave out a third of the nouns, three times over.

# %%
of_unmet = Predict(
    "Gender at the embedding of nouns that are new to the probe, trained model?",
    unit="%",
    off_by=10,
    section="What each layer represents",
)
of_unmet

# %% tags=["hide-input"]
nouns = sorted({words[n].noun for n in at_noun})
mixed = torch.randperm(len(nouns), generator=torch.Generator().manual_seed(0))
nouns, unmet = [nouns[n] for n in mixed], {name: [] for name in models}
for third in range(3):
    out = set(nouns[third::3])
    test = torch.tensor([words[n].noun in out for n in at_noun])
    for name in models:
        unmet[name].append(probe_layers(name, at_noun, of_gender, test))
for name, thirds in unmet.items():
    print(f"{name:8}", end="")
    for each in zip(*thirds, strict=True):
        print(f"  {sum(each) / 3:.0%} ({min(each):.0%} to {max(each):.0%})", end="")
    print()
of_unmet.reveal(round(100 * sum(each[0] for each in unmet["trained"]) / 3))

# %% tags=["hide-input"]
assert min(min(each) for each in unmet["trained"]) > 0.65
assert max(sum(each) / 3 for each in zip(*unmet["random"], strict=True)) < 0.5

# %% [markdown]
# (Columns: embedding, layer 0, layer 1; in parentheses the lowest and highest of the three.)
# Now the trained model is far ahead: a probe that has seen two thirds of the nouns is right about most of the others, because the embeddings group nouns by gender.
# With a control that *can* fail, the same question has another answer.
#
# ### Does the model use it?
#
# A probe shows what *can* be read, not what the model *does* read.
# **Activation patching** tests that: it replaces one vector of a run with the vector of another run, and checks whether the output follows [@vig2020].
# We take the memory of *The man sees the boy.*, and replace one vector with that from the memory of *The woman sees the boy.*
# So for all sentences of this form: `donors` are those with a subject of another gender, and `article` is a sentence's own first German word.

# %% tags=["hide-input"]
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
assert batch.src.shape[1] == batch.tgt_in.shape[1] == 7  # one token a word, in all


# %% tags=["hide-input"]
def donor(number):
    """A sentence with the same object and a subject of another gender."""
    subject, thing, _ = made[number]
    for other in [*range(number + 1, len(made)), *range(number)]:
        if made[other][1] is thing and made[other][0].gender != subject.gender:
            return other


donors = [donor(number) for number in range(len(made))]
article = batch.tgt_out[:, 0]  # Der, Die or Das
assert (article != article[donors]).all() and model.config.pad_id not in batch.src
assert (short[0].src, short[donors[0]].src) == (
    "The man sees the boy.",
    "The woman sees the boy.",
)

# %%
of_patch = Predict(
    "At which position does the replacement turn *Der* into *Die*?",
    ["*The*", "the noun", "at both", "at neither"],
    section="Does the model use it?",
)
of_patch


# %%
@torch.no_grad()
def first_token(memory):
    """The most probable first token of each sentence."""
    hidden = model.decode(batch.tgt_in[:, :1], memory, batch.src)
    return model.generator(hidden)[:, 0].argmax(dim=-1)


memory, turned = model.encode(batch.src).detach(), {}  # (batch, src_len, d_model)
for position, word in enumerate(["The", "noun", "verb", "the", "object", ".", "</s>"]):
    patched = memory.clone()
    patched[:, position] = memory[donors, position]
    turned[word] = (first_token(patched) == article[donors]).float().mean().item()
    print(
        f"{word:7}{turned[word]:6.1%} of {len(made)} articles take the donor's gender"
    )

# %% tags=["hide-input"]
both = tuple(turned[word] > 0.5 for word in ("The", "noun"))
which = {(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}
of_patch.reveal(
    of_patch.choices[which[both]], because="the encoder has carried it there"
)

# %% tags=["hide-input"]
with torch.no_grad(), record_attention(model) as short_maps:
    model(batch.src, batch.tgt_in)
row_0 = torch.cat([each[:, :, 0].mean(dim=0) for each in short_maps.cross]).cpu()
names_of = [f"head {number // 4}.{number % 4}" for number in range(8)]
panels(
    [Panel(row_0, names_of, list(turned), "row that predicts the article", "weights")],
    title="All heads look at “The”; the noun that decides gets almost no weight",
)

# %% tags=["hide-input"]
assert turned["The"] > 0.99 and sorted(turned.values())[-2] < 0.01
assert (first_token(memory) == article).float().mean() > 0.99
assert row_0[:, 0].min() > 0.9 and row_0[:, 1].max() < 0.1  # The, the noun

# %% [markdown]
# The probe found the gender at *The*, and patching shows that for the article at the beginning the model reads it there and nowhere else.
# In the row that predicts the article, all eight heads look at *The*, and the noun that decides its gender gets almost no weight.
# So the cross-attention alone does not tell which word was used.
#
# Which head carried the gender to *The*?
# The map of encoder 1.1, from articles to nouns, suggests one.
# We switch off heads of that layer, and count the articles that are still right.


# %%
def right_articles(*heads):
    """The share of right articles without these heads of encoder layer 1."""
    with ablate_heads(model, [("encoder", 1, head) for head in heads]):
        found = first_token(model.encode(batch.src))
    return (found == article).float().mean().item()


carried = {off: right_articles(*off) for off in ((0,), (1,), (2,), (3,), (0, 1))}
for off, share in carried.items():
    print(f"without {' and '.join(f'1.{head}' for head in off):11} {share:.0%} right")

# %% tags=["hide-input"]
assert min(carried[0,], carried[2,], carried[3,]) > 0.99 > 0.8 > carried[1,] > 0.6
assert carried[0, 1] < 0.45  # of three articles

# %% [markdown]
# The map pointed to the right head: without 1.1 more than a quarter of the articles are wrong, without any other head none.
# But most stay right, because 1.0 stands in; without both, the model guesses among three.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **alignment error rate**: 1 − 2 |P ∩ G| / (|P| + |G|) of predicted and gold links.
# - **diagonal**: linking words at the same relative position.
# - **IBM model 1**: word alignment by a table of word pairs alone.
# - **expectation maximization**: divide by the current model, add up the shares, make the sums the next model.
# - **fast_align**: model 1 with a prior that prefers the diagonal.
# - **tension**: how strongly fast_align prefers the diagonal, one fitted number.
# - **best fixed distance**: a head's opponent that uses no words: the same distance from every row.
# - **control rows**: rows without a reason to look at a word; their share says how many look there anyway.
# - **ablation**: removing a part, to see what breaks.
# - **permuted**: put in random order; here, the weights of a row.
# - **attention sink**: a token that gets weight where a head has nothing to look for.
# - **probe**: a small classifier that reads a property off the vectors of a layer.
# - **part of speech**: noun, verb, determiner and so on.
# - **control task**: random classes for words, which a probe can only memorize.
# - **selectivity**: accuracy on the property minus accuracy on the control task.
# - **activation patching**: replacing a vector of one run by that of another, to see whether the output follows.

# %% [markdown]
# ## Summary
#
# A row of cross-attention belongs to the token that is predicted: with the rows below, every head's error rate is above 80 %.
# The best head aligns words as well as a dedicated aligner, and better among repeated words; it passes the diagonal early in training, and improves to the end.
# For five patterns a fixed distance and control rows are ruled out as explanations, for the others not; ablation shows that even a real pattern need not be needed.
# A map misleads where another head can replace the one shown, where a head uses a sink, and where a position holds more than its word.
# Probes show what a layer holds, if their controls could have failed; activation patching shows what of it is used, and ablation which head brought it there.
#
# **Practice**: [assignment 12](assignments/release/12_reading_attention/12_reading_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the model of the paper is built, trained, used and opened.
# Lesson [13](13_positions_past_the_paper.ipynb) begins with what came after it.
