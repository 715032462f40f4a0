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
# To write *Die alte Frau* for *The old woman*, a translator must choose between *der*, *die* and *das*, and *woman* decides.
# At which English word will it look when it writes *Die*?
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
# We count layers and heads from 0: "cross 1.3" is head 3 in layer 1 of the cross-attention.
#
# Before we look: which token belongs to which row and column?
#
# | map | row | column |
# |---|---|---|
# | encoder | an English token | an English token |
# | decoder | the German token that it *predicts* | a German token that was *read* |
# | cross | the German token that it *predicts* | an English token |
#
# (Each row sums to 1, so row sums reveal a transposed map. They cannot reveal wrong labels.)
# %% tags=["hide-input"]
from matplotlib.patches import Rectangle

labels = {
    "encoder": (src, src, "query"),
    "decoder": (tgt, ["<s>", *tgt[:-1]], "predicted token"),
    "cross": (tgt, src, "predicted token"),
}
frame = dict(fill=False, lw=2, edgecolor="#c8102e", zorder=5)  # of a frame


# %% tags=["hide-input"]
def draw(kind, title, framed=()):
    """All heads of one kind, a row of maps a layer; (head, row, column)s framed."""
    rows, columns, name = labels[kind]
    figure = attention_grid(maps[kind].flatten(0, 1), rows, columns, title=title)
    for number, axes in enumerate(figure.axes[:8]):
        axes.set_xlabel(f"layer {number // 4}, head {number % 4}")
        if number % 4 == 0:
            axes.set_ylabel(name)
    for number, row, column in framed:
        corner = column - 0.5, row - 0.5
        figure.axes[number].add_patch(Rectangle(corner, 1, 1, **frame))
    return figure


# %% tags=["hide-input", "hide-output", "nbval-check-output"]
for name, each in (("as recorded", maps["cross"]), ("transposed", maps["cross"].mT)):
    sums_to_one = ((each[1, 1].sum(dim=1) - 1).abs() < 1e-5).sum()
    print(f"{name:12}{sums_to_one:3} of 12 rows sum to 1")

# %% tags=["hide-input"]
assert sums_to_one == 0  # of the transposed one

# %% [markdown]
# First the cross-attention; `draw` shows all heads of one kind.

# %%
draw("cross", "To write “Die”, all eight heads look at “The”")

# %% tags=["hide-input"]
top = maps["cross"][:, :, 0]  # (layers, heads, keys), of the row that predicts Die
assert (tgt[0], src[0], src[2]) == ("▁Die", "▁The", "▁woman")
assert top[..., 0].min() > 0.8 and top[..., 2].max() < 0.05
meant = "▁The ▁old ▁woman ▁show ▁the ▁child ▁a ▁sweet ▁sweet ▁apple . </s>".split()
meant = torch.tensor([src.index(token) for token in meant])  # of each German token
first = maps["cross"].argmax(dim=-1)
one_word = first.where(first != src.index("s"), src.index("▁show"))  # shows
for keys in (first, one_word):
    found = (keys == meant).sum(dim=-1)  # (layers, heads)
    assert ((found >= 8) == torch.tensor([[1, 0, 1, 1], [0, 1, 1, 1]])).all()
    assert found[0, 3] == 10

# %% [markdown]
# Look at the top row of each map: to write *Die*, all eight heads look at *The*, and none at *woman*.
# But *The* does not tell which of the three it must be.
# So how does the model know that it must be *Die*?
#
# Perhaps the encoder has an answer.

# %%
framed = [(5, 0, 2), (5, 5, 6), (5, 7, 9)]  # of 1.1: three articles, and their nouns
draw("encoder", "Of eight heads, only 1.1 takes every article to its noun", framed)

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
assert all(src[column] == nouns[row] for _, row, column in framed)

# %% [markdown]
# Encoder 1.1 takes *The* to *woman*, *the* to *child* and *a* to *apple* (framed).
#
# The third kind of map is the decoder's (here 0.3): no row looks at a token that is not yet written.
# Explore this sentence or another: point at a token or at a cell of the map.
# Click a German token to see its alternatives, and choose one: how does the sentence continue?
# (BertViz [@vig2019] draws such maps for many published models.)

# %%
explorer = AttentionExplorer(translator, text, kind="decoder", layer=0, head=3)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for(text, explorer.text):
    assert explorer.view["text"] == seen.text and explorer.view["tgt"] == tgt

# %% tags=["hide-input"]
assert (maps["decoder"].triu(1) == 0).all()

# %% [markdown]
# The cross-attention and encoder maps suggest two stories:
#
# - *The dictionary.* Most maps of the cross-attention take *Frau* to *woman* and *Kind* to *child*: a head looks at the word that it translates.
# - *The messenger.* In the encoder, 1.1 brings the gender of *woman* to *The*; later, the decoder reads it there.
#
# Two pictures prove neither. The messenger raises five questions:
#
# | question | test |
# |---|---|
# | 1. Does 1.1 do this in many sentences? | count, with a baseline and a control |
# | 2. Does the model need 1.1? | switch it off |
# | 3. Is the gender really at *The*? | train a probe |
# | 4. Does the decoder read it there? | swap the vector |
# | 5. Does 1.1 bring it there? | swap what it brings |
#
# We follow the messenger; the dictionary comes after it.

# %% [markdown]
# ## Question 1: does encoder 1.1 take articles to their nouns? Count
#
# The paper says that heads "clearly learn to perform different tasks" (section 4), and shows examples.
# An example can be chosen to suit a claim, so we count.
#
# The grammar of the course corpus builds a tree of phrases and expresses it in both languages.
# We take 1,000 trees whose sentences the model has never seen: `tree_of[n]` is a tree, `pairs[n]` its two sentences.
# A tree knows which words belong together: a verb and its subject, for example, or a determiner (an article, or a word in its place, such as *their*) and its noun.
# `goals` lists such pairs as rows and keys of a map. (`spans` finds the tokens of each word.)

# %% tags=["hide-input"]
from course_lib.data import encode_pairs, load_course, make_batch
from course_lib.grammar import MAX_WORDS, realize, trees

train = load_course(num_train=60_000).train  # what the translator learned from
known, new = {pair.src for pair in train}, {}
for tree in trees(seed=1):
    pair = realize(tree)
    if pair.src not in known and len(pair.tgt_words) <= MAX_WORDS:
        new.setdefault(pair.src, (tree, pair))
    if len(new) == 1000:
        break
tree_of, pairs = zip(*new.values(), strict=True)
half = len(pairs) // 2
choosing, reporting = range(half), range(half, len(pairs))
print(len(pairs), "sentences; the last:", pairs[-1].src, "→", pairs[-1].tgt)

# %% tags=["hide-input"]
from course_lib.analysis import word_spans, word_weights


def spans(pair):
    """The token positions of each English word, and of each German word."""
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, tokenizer.tokens(text)) for text, words in texts]


def record(pairs, kind, size=50):
    """For each pair its maps of one kind, (layers, heads, queries, keys), padded."""
    for begin in range(0, len(pairs), size):
        batch = make_batch(encode_pairs(tokenizer, pairs[begin : begin + size]))
        with torch.no_grad(), record_attention(model) as maps:
            model(batch.src.to(device), batch.tgt_in.to(device))
        yield from torch.stack(getattr(maps, kind), dim=1).cpu()


# %% tags=["hide-input", "nbval-check-output"]
from course_lib.analysis import goals

chosen = next(n for n, pair in enumerate(pairs) if "pronoun gender" in pair.phenomena)
print(pairs[chosen].src, "→", pairs[chosen].tgt)
asking, answers = pairs[chosen].src_words, tokenizer.tokens(pairs[chosen].src)
src_spans, tgt_spans = spans(pairs[chosen])
for goal in goals(tree_of[chosen], "encoder", src_spans, tgt_spans):
    print(f"{goal.relation:28}{answers[goal.row]} → {answers[goal.keys[0]]}")

# %% [markdown]
# (*is* → *it* is missing: we count only subjects that are nouns.)
#
# How often does a head's largest weight go from the first word of such a pair to the second?
# A share alone says little, so each head must beat two opponents:
#
# - the **best fixed distance** [@clark2019]: a determiner mostly stands right before its noun, so "one token to the right of the row" finds many nouns without knowing any;
# - the **control rows**: rows that have no reason to look at this word. If they look at *man* as often as *The* does, the head likes *man*, whoever asks. (Here: all rows but those of *The*, *man* and its verb *likes*.)
#
# We *choose* head and distance on the first half of the sentences, and *report* on the second.
# On the sentences that chose it, the winner looks better than it is.
# For determiners the first half chooses encoder 1.1, and one token to the right. (`record` yields the maps of each sentence.)

# %%
from course_lib.analysis import control_rows

hits = {"encoder 1.1": [], "one to the right": [], "control rows": []}
for n, each in zip(reporting, record(pairs[half:], "encoder"), strict=True):
    looks_at = each[1, 1].argmax(dim=-1).tolist()  # of 1.1: a key for each row
    src_spans, tgt_spans = spans(pairs[n])
    wanted = list(goals(tree_of[n], "encoder", src_spans, tgt_spans))
    for goal in (goal for goal in wanted if goal.relation == "determiner → noun"):
        controls = control_rows(goal, wanted, "encoder", src_spans[-1].stop)
        hits["encoder 1.1"].append(looks_at[goal.row] in goal.keys)
        hits["one to the right"].append(goal.row + 1 in goal.keys)
        hits["control rows"] += [looks_at[row] in goal.keys for row in controls]
for name, each in hits.items():
    print(f"{name:17}{sum(each) / len(each):4.0%} of {len(each):,}")

# %% [markdown]
# Encoder 1.1 finds nearly every noun, far ahead of any fixed distance, and hardly any control row looks there.
# Our first question has its answer: yes.
#
# `film` counts fifteen candidates (a relation in one kind of attention) in this way.
# One *passes* if the head is more than 15 points ahead of both opponents. (The 15 are our choice; to pass means only: worth testing.)
# In the decoder, the control rows are those between the two words; in the cross-attention, all other rows.
#
# Predict one: in *Heute setzt der Student den Hut auf.*, *auf* is the prefix of *setzt*.

# %%
of_control = Predict(
    "In decoder 0.0, 82 % of the rows of prefixes look at their verb. How many rows "
    "in between (here those of *der*, *Student*, *den* and *Hut*) look at it, too?",
    unit="%",
    off_by=10,
    section="Question 1: does encoder 1.1 take articles to their nouns? Count",
)
of_control

# %% tags=["hide-input"]
german = "Heute setzt der Student den Hut auf."
worn = next(n for n, pair in enumerate(pairs) if pair.tgt == german)
hat = list(goals(tree_of[worn], "decoder", *spans(pairs[worn])))
(auf,) = [goal for goal in hat if goal.relation == "prefix → verb"]
hat_in = ["<s>", *tokenizer.tokens(german)]
assert hat_in[auf.row + 1] == "▁auf" and [hat_in[key] for key in auf.keys] == ["▁setzt"]

# %% tags=["hide-input"]
from course_lib.analysis import film
from course_lib.metrics import share_estimate

course_film = film("course", tree_of)  # of ten checkpoints; the last is our model
role_of = {(role.kind, role.relation): role for role in course_film.roles}
role_of = {name: role for name, role in role_of.items() if "previous" not in name[1]}


def tell(*names):
    """A line for each role."""
    print(f"{'':43}head (95 % interval)   distance   control")
    for role in map(role_of.get, names):
        share = share_estimate(round(role.shares[-1] * role.cases), role.cases)
        name = f"{role.kind} {role.layer}.{role.head}: {role.relation}"
        print(f"{name:42}{share.value:5.0%}", end=" ")
        print(f"({share.low:.0%} to {share.high:.0%})", end="")
        print(f"{role.distance:10.0%}{role.control:10.0%}", "  passes" * role.real)


# %% tags=["hide-input"]
determiner = role_of["encoder", "determiner → noun"]
subject = role_of["encoder", "finite verb → subject"]
prefix = role_of["decoder", "prefix → verb"]
pronoun = role_of["encoder", "pronoun → its noun"]
tell(*((role.kind, role.relation) for role in (pronoun, subject, prefix)))
of_control.reveal(round(100 * prefix.control))

# %% tags=["hide-input", "hide-output"]
tell(*role_of)

# %% tags=["hide-input"]
names = [
    f"{role.kind} {role.layer}.{role.head}: {role.relation}"
    for role in role_of.values()
    if role.real
]
assert len(role_of) == 15 and names == [
    "encoder 1.1: determiner → noun",
    "encoder 1.1: pronoun → its noun",
    "decoder 0.0: prefix → verb",
    "decoder 0.2: finite verb → conjunction",
    "cross 1.0: adjective → noun",
]

# %% tags=["hide-input"]
assert determiner.shares[-1] > 0.9 > 0.85 > determiner.distance
assert determiner.control < 0.1 and (determiner.layer, determiner.head) == (1, 1)
counted = [sum(each) / len(each) for each in hits.values()]
by_film = determiner.shares[-1], determiner.distance, determiner.control
assert all(abs(a - b) < 0.01 for a, b in zip(counted, by_film, strict=True))
assert 0.4 < prefix.control < 0.6
assert abs(prefix.shares[-1] - prefix.control - 0.31) < 0.02
assert 0.7 < subject.shares[-1] < subject.distance
adjective = role_of["encoder", "adjective → noun"]
assert (adjective.layer, adjective.head) == (1, 1) and adjective.shares[-1] > 0.93
assert adjective.distance > 0.9 and not adjective.real
least = share_estimate(round(pronoun.shares[-1] * pronoun.cases), pronoun.cases).low
assert least > 0.55 and pronoun.distance < 0.35

# %% [markdown]
# - *Pronoun → noun*: encoder 1.1 finds seven in ten, far more than any distance. (Figure 4 of the paper shows two such heads, in one sentence.)
# - *Verb → subject*: encoder 1.0 finds three of four, which would make a fine picture. But a fixed distance finds more: it does not pass.
# - *Prefix → verb*: decoder 0.0 is 31 points ahead. But half of the rows in between (dashed below) look there, too: passing does not show that it looks there *for the prefix*.

# %% tags=["hide-input"]
from course_lib.figures import attention_map

batch = make_batch(encode_pairs(tokenizer, [pairs[worn]])).to(device)
with torch.no_grad(), record_attention(model) as worn_maps:
    model(batch.src, batch.tgt_in)
worn_map = worn_maps.decoder[0][0, 0].cpu()  # of decoder 0.0: (queries, keys)
title = "To write “auf”, decoder 0.0 looks at “setzt”; to write “der” and “den”, too"
figure = attention_map(worn_map, [*hat_in[1:], "</s>"], hat_in, title=title)
(axes, _) = figure.axes
axes.set(xlabel="token read", ylabel="predicted token")
corner, between_them = auf.keys[0] - 0.5, auf.row - auf.keys[0]
axes.add_patch(Rectangle((corner, auf.row - 0.5), 1, 1, **frame))
dashed = Rectangle((corner, corner), 1, between_them, **frame, ls="--")
_ = axes.add_patch(dashed)
figure

# %% tags=["hide-input"]
its_controls = control_rows(auf, hat, "decoder", len(hat_in) - 1)
assert [hat_in[row + 1] for row in its_controls] == "▁der ▁Student ▁den ▁Hut".split()
assert (its_controls[0], len(its_controls)) == (auf.keys[0], between_them)
of_verb = worn_map[:, auf.keys[0]]  # the weights on setzt
assert of_verb[[2, 4, auf.row]].min() > 0.8 and of_verb[[3, 5]].max() < 0.45

# %% [markdown]
# Of the fifteen (folded cell) five pass.
#
# ## Question 2: does the model need encoder 1.1? Switch it off
#
# A head may look at the right place and still be useless.
# So we remove it and measure what breaks. This is called **ablation**; @michel2019 and @voita2019 did it with larger models.
#
# The context of a head enters the rest of the model through its slice of W_O, and nowhere else (lesson [04](04_multi_head.ipynb)).
# With zeros there, the head is off.
# `ablate_heads` does the same without touching the weights.

# %%
from course_lib.analysis import ablate_heads, all_heads

batch = make_batch(encode_pairs(tokenizer, pairs[half : half + 50])).to(device)
output_proj = attentions(model, "encoder")[1].output_proj
before = output_proj.weight.clone()
with torch.no_grad():
    output_proj.weight.unflatten(1, (4, -1))[:, 1] = 0  # (d_model, heads, d_k): head 1
    by_hand = model(batch.src, batch.tgt_in)
    output_proj.weight.copy_(before)
    plain = model(batch.src, batch.tgt_in)
    with ablate_heads(model, [("encoder", 1, 1)]):
        ablated = model(batch.src, batch.tgt_in)
print(
    f"logits, by hand and by the library: {(by_hand - ablated).abs().max():.0e} apart"
)
print(f"logits, with and without the head: {(plain - ablated).abs().max():.1f} apart")

# %% tags=["hide-input"]
torch.testing.assert_close(ablated, by_hand, rtol=1e-4, atol=1e-4)
assert not torch.allclose(ablated, plain, atol=0.1)

# %% [markdown]
# Both ways agree, and the logits change.
#
# We measure exact match on the second half of the sentences.
# If it falls by 10 points without a head, its *cost* is 10 points.
# One parallel pass is enough: greedy search is right exactly if every prediction under teacher forcing is right (lesson [07](07_decoder.ipynb)).
# We let 1.1 compete with cross 1.2, the best dictionary of all heads (counted later).

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
of_cost = Predict(
    "Which head costs more?",
    [
        "cross 1.2, the best dictionary",
        "encoder 1.1, article → noun",
        "both about as much",
    ],
    section="Question 2: does the model need encoder 1.1? Switch it off",
)
of_cost

# %%
all_right, without = right(), {head: right([head]) for head in all_heads(model)}
start = all_right.float().mean().item()
cost = {head: start - each.float().mean().item() for head, each in without.items()}
gap = cost["encoder", 1, 1] - cost["cross", 1, 2]
of_cost.reveal(of_cost.choices[2 if abs(gap) < 0.05 else int(gap > 0)])

# %% tags=["hide-input"]
from course_lib.metrics import mean_estimate

costliest = sorted(cost, key=cost.get, reverse=True)[:3]
lost = {head: all_right.float() - without[head].float() for head in costliest}
for (kind, *place), each in lost.items():
    told = mean_estimate((100 * each).tolist())
    print(f"{kind} {place[0]}.{place[1]} costs {told.value:.1f} points", end=" ")
    print(f"({told.low:.1f} to {told.high:.1f})")
top, runner_up, _ = lost.values()
apart = mean_estimate((100 * (top - runner_up)).tolist())
print(f"first minus second: {apart.value:.1f} ({apart.low:.1f} to {apart.high:.1f})")

# %% tags=["hide-input"]
heads = [f"head {head}" for head in range(4)]
places = [f"{kind}, layer {layer}" for kind in KINDS for layer in range(2)]
costs = torch.tensor(list(cost.values())).unflatten(0, (6, 4))
panels(
    [Panel(100 * costs, places, heads, "one head off")],
    title="Two heads cost most, and neither sees both languages",
    words={"signed": "exact match lost, in points"},
)

# %% tags=["hide-input"]
assert start > 0.95 and set(costliest[:2]) == {("decoder", 0, 3), ("encoder", 1, 1)}
assert cost[costliest[1]] > 0.25 > 0.2 > cost[costliest[2]] and apart.low < 2
read_last = [role for role in course_film.roles if role.relation == "previous token"]
(read_last,) = (role for role in read_last if role.kind == "decoder")
assert (read_last.layer, read_last.head) == (0, 3) and read_last.shares[-1] > 0.55
assert costs[5].min() > costs[4].max()  # of the cross-attention, layer 1 costs most

# %% tags=["hide-input"]
# A gentler ablation: the head always brings its mean over the first half.
begins = range(0, half, 50)
first_batches = [encode_pairs(tokenizer, pairs[n : n + 50]) for n in begins]
first_batches = [make_batch(each).to(device) for each in first_batches]


def mean_context(kind, layer, head):
    """(d_k,), over all real tokens of the first half."""
    fused, kept = attentions(model, kind)[layer].fused, []
    handle = fused.register_forward_hook(lambda *call: kept.append(call[2][:, head]))
    right(batches=first_batches)
    handle.remove()
    ids = [each.src if kind == "encoder" else each.tgt_out for each in first_batches]
    no_padding = torch.cat([(each != model.config.pad_id).flatten() for each in ids])
    return torch.cat([each.flatten(0, 1) for each in kept])[no_padding].mean(dim=0)


# %% tags=["hide-input", "hide-output"]
def right_at_mean(kind, layer, head):
    """As `right`, with the mean context in place of this head's."""
    mean = mean_context(kind, layer, head)
    number = torch.tensor([head], device=device)
    handle = attentions(model, kind)[layer].fused.register_forward_hook(
        lambda *call: call[2].index_copy(1, number, mean.expand_as(call[2][:, number]))
    )
    try:
        return right()
    finally:
        handle.remove()


# %% tags=["hide-input", "hide-output"]
shocked = {}  # costs, each head at its mean
for kind, layer, number in costliest[:2]:
    head = kind, layer, number
    at_mean = right_at_mean(*head).float()
    shocked[head] = start - at_mean.mean().item()
    print(f"{kind} {layer}.{number} costs {100 * cost[head]:.1f} points", end=", ")
    change = mean_estimate((100 * (without[head].float() - at_mean)).tolist())
    print(f"at its mean {100 * shocked[head]:.1f}: {change.value:.1f} more", end=" ")
    print(f"({change.low:.1f} to {change.high:.1f})")
assert abs(shocked["encoder", 1, 1] - 0.31) < 0.02
assert abs(shocked["decoder", 0, 3] - 0.42) < 0.02
assert torch.equal(right(), all_right)  # no hook is left

# %% [markdown]
# Yes, the model needs it: without encoder 1.1 about a third of the sentences are lost, and without decoder 0.3 about as many (another story: it mostly looks at the token just read).
# But zeros are an unusual input: is part of the loss the shock?
# Hardly: if the head always brings its mean output instead, we lose 31 and 42 points (folded cell).
#
# If 1.1 is the messenger, determiners should break.
# For each token that is right, `newly_wrong` tells what the model guesses without a head.


# %% tags=["hide-input"]
@torch.no_grad()
def guesses(off=()):
    """For each batch, the most probable tokens without these heads."""
    with ablate_heads(model, off):
        return [model(x.src, x.tgt_in).argmax(dim=-1).tolist() for x in batches]


# %% tags=["hide-input"]
from course_lib.grammar import Notes
from course_lib.grammar import german as in_german

word_kinds = {"det": "determiner", "pronoun": "pronoun", "preposition": "preposition"}


def kinds_of(tree):
    """The kind of each German word."""
    for word in in_german.sentence(tree, Notes()):
        node, part = word.parts[0] if word.parts else (None, "")
        adjectives = [each.english for each in getattr(node, "adjectives", ())]
        is_adjective = part in ["adjective", *adjectives]
        yield "adjective" if is_adjective else word_kinds.get(part, "other token")


# %% tags=["hide-input"]
def newly_wrong(head):
    """(sentence, row, kind, token, guess without the head) of tokens right with it."""
    found, both = [], zip(batches, guesses(), guesses([head]), strict=True)
    for begin, (batch, with_head, without_it) in zip(starts, both, strict=True):
        for number, n in enumerate(order[begin : begin + 50]):
            tokens = batch.tgt_out[number].tolist()
            words = zip(kinds_of(tree_of[n]), spans(pairs[n])[1], strict=True)
            for kind, row in ((kind, row) for kind, span in words for row in span):
                if with_head[number][row] == tokens[row]:
                    guess = without_it[number][row]
                    found.append((n, row, kind, tokens[row], guess))
    return found


# %% tags=["hide-input"]
from collections import Counter, defaultdict

without_1_1, of_kind = newly_wrong(("encoder", 1, 1)), {}
for *_, kind, token, guess in without_1_1:
    of_kind.setdefault(kind, []).append((token, guess))
failed = {k: Counter(x for x in each if x[0] != x[1]) for k, each in of_kind.items()}
all_failed = sum(each.total() for each in failed.values())
print(f"{all_failed} of {len(without_1_1):,} tokens are wrong only without 1.1:")
for kind in sorted(failed, key=lambda kind: -failed[kind].total()):
    swaps, total = failed[kind], len(of_kind[kind])
    (((token, guess), times), *_) = swaps.most_common(1)
    told = [tokenizer.token(each).lstrip("▁") for each in (guess, token)]
    note = f"; most often {' for '.join(told)} ({times})" if times > 1 else ""
    count = swaps.total()
    print(f"{kind:12}{count:4} of {total:5,} ={count / total:6.1%}{note}")

# %% tags=["hide-input"]
assert abs(all_failed - 209) < 10 and abs(failed["determiner"].total() - 162) < 8
assert abs(failed["determiner"].total() / all_failed - 0.78) < 0.02
assert abs(len(of_kind["determiner"]) / len(without_1_1) - 0.16) < 0.01
rest = [failed[kind].total() for kind in ("pronoun", "preposition")]
assert sum(rest) > 0.7 * (all_failed - failed["determiner"].total())

# %% [markdown]
# Of the 209, 162 (78 %) are determiners, though only 16 % of all tokens are.
# Most others are pronouns, or *ins* (*in das*).
# The model needs 1.1 where the messenger says.
#
# ## Question 3: does the article hold the gender? Train a probe
#
# The decoder looks at *The* when it writes *Die*, but it does not see words.
# It sees the memory, one vector per token, in which the encoder has mixed the words.
#
# A **probe** can tell what a vector holds: a small classifier that is trained to read a property off the vectors of a layer.
# Ours is linear (`fit_probe` is multinomial logistic regression).
# At every *the* we ask it for the gender of the noun: feminine for *the woman* (*die Frau*), masculine for *the boy* (*der Junge*).
#
# We collect the vectors of all English words at the embedding, after layer 0 and after layer 1, from our trained model and a random one.
# (`words` lists the words, `where` finds those that meet a condition, and `in_first` marks the first half of the sentences. `vectors["trained"][2]` are our model's vectors after layer 1.)

# %% tags=["hide-input"]
from course_lib import Transformer
from course_lib.analysis import fit_probe, layer_states, word_labels

torch.manual_seed(0)
models = {"trained": model, "random": Transformer(model.config).to(device).eval()}
words = [label for tree in tree_of for label in word_labels(tree)]
print("word       its noun and its gender")
for word in words[-8:]:
    print(f"{word.word:10}", word.noun, word.gender)

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
def where(condition):
    """The numbers of the words for which it holds."""
    return torch.tensor([n for n, word in enumerate(words) if condition(word)])


# %%
at_the = where(lambda word: word.word == "the" and word.noun)
genders = torch.tensor(["mfn".index(words[n].gender) for n in at_the])
inputs, fitted = vectors["trained"][2][at_the], in_first[at_the]
probe = fit_probe(inputs[fitted], genders[fitted])
correct = probe.predict(inputs[~fitted]) == genders[~fitted]
most_common = (genders[~fitted] == genders[fitted].mode().values).float().mean()
print(f"after layer 1, gender at {len(correct)} new the: {correct.float().mean():.0%}")
print(f"always the most common gender: {most_common:.0%}")


# %% tags=["hide-input", "hide-output"]
def is_plural(n):
    """Whether the noun of this article is in the plural."""
    own = (word for word in words[n:] if word.part_of_speech == "noun")
    return next(each.word != each.noun for each in own if each.noun == words[n].noun)


plural = torch.tensor([is_plural(n) for n in at_the.tolist()])[~fitted]
guess = genders[~fitted] == genders[fitted].mode().values
for name, these in (("singular", ~plural), ("plural", plural)):
    print(f"{name:9}{correct[these].float().mean():.0%} of {these.sum()}", end=", ")
    print(f"the most common gender {guess[these].float().mean():.0%}")
assert correct.float().mean() > 0.85 and correct[~plural].float().mean() > 0.97
assert correct[plural].float().mean() < guess[plural].float().mean() + 0.2

# %% [markdown]
# The word is always *the*, and yet its vector gives the gender nine times in ten.
# (In the singular it is nearly always right; in the plural, where German has one article for all genders, not much better than guessing: folded cell.)
#
# Does the model know gender, then?
# Perhaps the vector at *the* only says which noun follows, and the probe memorized each noun's gender.
# Can a probe do that?
# We test it at the *nouns*, at the embedding, in both models. (`table_of` probes every layer.)


# %% tags=["hide-input"]
def probe_layers(name, keep, labels, test):
    """Accuracy of a probe at each layer."""
    found, classes = [], int(labels.max()) + 1
    for layer in range(3):
        inputs = vectors[name][layer][keep]
        probe = fit_probe(inputs[~test], labels[~test], classes=classes)
        found.append(probe.accuracy(inputs[test], labels[test]))
    return found


def table_of(keep, labels, test):
    """The accuracies of the trained model, and of the random one."""
    return torch.tensor([probe_layers(name, keep, labels, test) for name in models])


# %% tags=["hide-input"]
at_noun = where(lambda word: word.part_of_speech == "noun")
of_gender = torch.tensor(["mfn".index(words[n].gender) for n in at_noun])
asked = {
    "the noun": (at_noun, of_gender, [words[n].noun for n in at_noun]),
    "“the”": (at_the, genders, [words[n].noun for n in at_the]),
}

# %%
of_noun = Predict(
    "At the noun's embedding, in which model does a probe find the gender more often?",
    ["the trained one, by far", "the random one, by far", "about equally often"],
    section="Question 3: does the article hold the gender? Train a probe",
)
of_noun

# %%
probed = {
    name: table_of(keep, labels, test=~in_first[keep])
    for name, (keep, labels, _) in asked.items()
}
at_nouns = probed["the noun"]
for name, each in zip(models, at_nouns[:, 0], strict=True):
    print(f"gender at the embedding of the noun, {name} model: {each:.1%}")
gap = (at_nouns[0, 0] - at_nouns[1, 0]).item()
of_noun.reveal(of_noun.choices[2 if abs(gap) < 0.03 else 0 if gap > 0 else 1])

# %% tags=["hide-input", "hide-output"]
print("accuracies at the embedding, after layer 0 and after layer 1")
for place, table in probed.items():
    for name, each in zip(models, table, strict=True):
        print(f"at {place}, {name}:", *(f"{share:.1%}" for share in each))
assert at_nouns[:, 0].min() > 0.93 and abs(gap) < 0.03
of_the = probed["“the”"]
assert of_the[0].diff().min() > 0.1 and of_the[0, 2] > 0.905
assert of_the[1].max() < most_common + 0.06

# %% [markdown]
# A model of random weights knows nothing about gender.
# Yet its probe is right 97 times in 100.
# A probe can memorize: this vector is *woman*, so feminine.
# So the 97 % of the trained model say nothing about the model.
#
# Memorizing must not help: we hide a third of the nouns from the *probe* (each third once), and test it on these.

# %% tags=["hide-input"]
unmet, guessed = {}, []  # (property, model) → accuracies at each depth, for each third
for place, (keep, labels, types) in asked.items():
    kinds = sorted(set(types))
    mixed = torch.randperm(len(kinds), generator=torch.Generator().manual_seed(0))
    for third in range(3):
        out = {kinds[n] for n in mixed[third::3].tolist()}
        test = torch.tensor([noun in out for noun in types])
        frequent = labels[test] == labels[~test].mode().values
        guessed.append(100 * frequent.float().mean().item())
        for name in models:
            found = probe_layers(name, keep, labels, test)
            unmet.setdefault((place, name), []).append(found)

# %% tags=["hide-input"]
averages = {name: 100 * torch.tensor(each).mean(dim=0) for name, each in unmet.items()}
shifts = dict(zip(unmet, (-0.03, 0.03, -0.01, 0.01), strict=True))  # bars side by side
figure = curves(
    {
        f"at {place}, {name} model": ([n + shifts[place, name] for n in range(3)], mean)
        for (place, name), mean in averages.items()
    },
    xlabel="vectors that the probe reads",
    ylabel="gender right (%)",
    title="Gender at “the” rises layer by layer, in the trained model only",
    marks={"guessing the most common gender": (None, sum(guessed) / 6)},
)

# %% tags=["hide-input"]
(axes,) = figure.axes
axes.set(xlim=(-0.2, 2.2), ylim=(0, 100), xticks=range(3))
axes.set_xticklabels(["embedding", "after layer 0", "after layer 1"])
for line, ((place, name), thirds) in zip(axes.lines, unmet.items(), strict=False):
    line.set(color="C0" if place == "the noun" else "C1")
    line.set(linestyle="-" if name == "trained" else "--")
    least, most = torch.tensor(thirds).aminmax(dim=0)
    ends = averages[place, name] - 100 * least, 100 * most - averages[place, name]
    style = dict(fmt="none", ecolor=line.get_color(), elinewidth=1, capsize=3)
    axes.errorbar(
        line.get_xdata(), averages[place, name], yerr=torch.stack(ends), **style
    )
axes.get_legend().remove()
_ = figure.legend(loc="outside lower center", ncols=2)
figure

# %% tags=["hide-input", "hide-output"]
for (place, name), thirds in unmet.items():
    print(f"at {place}, {name} model", end="")
    for each in zip(*thirds, strict=True):
        print(f"  {sum(each) / 3:.0%} ({min(each):.0%} to {max(each):.0%})", end="")
    print()
at_nouns_now, at_the_now = (unmet[place, "trained"] for place in asked)
assert min(min(each) for each in at_nouns_now) > 0.65
assert all(each[2] > 0.8 > 0.55 > each[0] for each in at_the_now)
assert all(averages[place, "random"].max() < 50 for place in asked)
assert all(abs(sum(each) / 3 - 46) < 3 for each in (guessed[:3], guessed[3:]))
assert averages["“the”", "trained"].diff().min() > 10

# %% [markdown]
# Now the two models differ. (The error bars show the worst and the best third; plurals included.)
#
# - At the noun (blue), the trained model has the gender from the start (90 %), and the random model does not (38 %): training has grouped the embeddings of nouns by gender.
# - At *the* (orange), the embedding gives no more than guessing. After layer 0 the probe is right 61 % of the time, after layer 1 88 %; in the random model it never beats guessing.
#
# So after layer 1 a probe can read the gender at both places.
#
# ## Question 4: does the decoder read it there? Swap the vector
#
# A probe shows what *can* be read, not what the model *does* read.
# We take the memory of *The man sees the boy.*, and replace one vector with that from the memory of *The woman sees the boy.*
# If the model now writes *Die*, it reads the gender from this vector.
# This is **activation patching**: one vector of a run is replaced with that of another run, to see whether the output follows [@vig2020].
#
# We do it for 754 sentences of this form, in `short_batch`.
# Each gets a donor: a sentence with the same object, and a subject of another gender. (`donors` holds their numbers, `article` the correct first token of each sentence.)

# %% tags=["hide-input"]
from itertools import permutations

from course_lib.grammar import NOUNS
from course_lib.grammar import build as grammar

animate, built = [noun for noun in NOUNS if "animate" in noun.classes], []
for subject, thing in permutations(animate, 2):
    who, whom = grammar.the(subject.english), grammar.the(thing.english)
    pair = grammar.pair(grammar.clause(who, "sehen", accusative=whom))
    whole_words = all(len(tokenizer.tokens(each)) == 6 for each in pair[:2])
    if pair.src not in known and whole_words:
        built.append((subject, thing, pair))
short = [pair for *_, pair in built]
short_batch = make_batch(encode_pairs(tokenizer, short)).to(device)
assert short_batch.src.shape[1] == short_batch.tgt_in.shape[1] == 7  # a token a word


# %% tags=["hide-input"]
def donor(number):
    """A sentence with the same object and a subject of another gender."""
    subject, thing, _ = built[number]
    for other in [*range(number + 1, len(built)), *range(number)]:
        if built[other][1] is thing and built[other][0].gender != subject.gender:
            return other


donors = [donor(number) for number in range(len(built))]
article = short_batch.tgt_out[:, 0]  # Der, Die or Das
assert (article != article[donors]).all() and model.config.pad_id not in short_batch.src
assert (short[0].src, short[donors[0]].src) == (
    "The man sees the boy.",
    "The woman sees the boy.",
)

# %%
@torch.no_grad()
def first_token(memory):
    """The most probable first token of each sentence."""
    hidden = model.decode(short_batch.tgt_in[:, :1], memory, short_batch.src)
    return model.generator(hidden)[:, 0].argmax(dim=-1)


memory, turned = model.encode(short_batch.src).detach(), {}  # (batch, src_len, d_model)
unpatched = (first_token(memory) == article).float().mean()
print(f"without a patch {unpatched:.1%} of the articles are right")
for position, word in enumerate(["The", "noun", "verb", "the", "object", ".", "</s>"]):
    patched = memory.clone()
    patched[:, position] = memory[donors, position]
    turned[word] = (first_token(patched) == article[donors]).float().mean().item()
    print(
        f"{word:7}{turned[word]:6.1%} of {len(short)} articles take the donor's gender"
    )

# %% tags=["hide-input"]
with torch.no_grad(), record_attention(model) as short_maps:
    model(short_batch.src, short_batch.tgt_in)
mean_rows = [each.mean(dim=0) for each in short_maps.cross]  # over the sentences
mean_rows = torch.cat(mean_rows).cpu()  # (heads of both layers, queries, keys)
row_0, row_3 = mean_rows[:, 0], mean_rows[4, 3]  # of the articles; 4 is cross 1.0
assert turned["The"] > 0.99 and sorted(turned.values())[-2] < 0.01
assert unpatched > 0.99 and len(short) == 754
assert len({subject.english for subject, *_ in built}) == 28
assert row_0[:, 0].min() > 0.9 and row_0[:, 1].max() < 0.1  # The, the noun
assert 0.7 < row_3[4] < 0.8  # the object's noun

# %% [markdown]
# All 754 articles (of only 28 nouns) follow the vector at *The*, and none follows any other vector.
#
# The second article, that of the *object*, is a harder test: to predict it, cross 1.0 (adjective → noun) puts three quarters of its weight on the noun.
# Now the donor has the same subject, and an object of another gender.

# %%
of_patch = Predict(
    "At which position does the replacement change the gender of the object's article?",
    ["the object's “the”", "the object's noun", "at both", "at neither"],
    section="Question 4: does the decoder read it there? Swap the vector",
)
of_patch


# %% tags=["hide-input"]
def object_donor(number):
    """A sentence with the same subject and an object of another gender."""
    subject, thing, _ = built[number]
    for other, (who, whom, _) in enumerate(built):
        if who is subject and whom.gender != thing.gender:
            return other


@torch.no_grad()
def second_article(memory):
    """The most probable token after the subject and the verb."""
    hidden = model.decode(short_batch.tgt_in[:, :4], memory, short_batch.src)
    return model.generator(hidden)[:, 3].argmax(dim=-1)

# %% tags=["hide-input"]
object_donors = [object_donor(n) for n in range(len(built))]
second, followed = short_batch.tgt_out[:, 3], {}  # den, die or das
for position, word in ((3, "the"), (4, "noun")):
    patched = memory.clone()
    patched[:, position] = memory[object_donors, position]
    follows = second_article(patched) == second[object_donors]
    followed[word] = follows.float().mean().item()
    print(f"the object's {word:5}{followed[word]:6.1%} of {len(short)} follow")
both = tuple(each > 0.5 for each in followed.values())
which = {(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}
of_patch.reveal(of_patch.choices[which[both]])

# %% tags=["hide-input"]
assert (second != second[object_donors]).all() and second_article(memory).equal(second)
assert followed["the"] > 0.99 and followed["noun"] < 0.01

# %% [markdown]
# All follow the vector at *the*, none that at the noun.
#
# ## Question 5: does encoder 1.1 bring it there? Swap what it brings
#
# How many of these articles are still right if we switch heads of the encoder off?


# %% tags=["hide-input"]
def right_articles(off):
    """The share of right articles without these heads."""
    with ablate_heads(model, off):
        found = first_token(model.encode(short_batch.src))
    return (found == article).float().mean().item()


this_head, encoder_heads = ("encoder", 1, 1), all_heads(model)[:8]
the_rest = [head for head in encoder_heads if head != this_head]
print(f"without 1.1: {right_articles([this_head]):.1%} right")
print(f"without the seven others: {right_articles(the_rest):.1%}")
print(f"without all eight: {right_articles(encoder_heads):.1%}")

# %% tags=["hide-input"]
assert right_articles(the_rest) > 0.99 and 0.6 < right_articles([this_head]) < 0.8
with ablate_heads(model, encoder_heads):
    left = first_token(model.encode(short_batch.src))
assert (left == tokenizer.encode("Die")[0]).all()
assert abs(right_articles(encoder_heads) - 0.36) < 0.02
assert max(cost[head] for head in the_rest) < 0.13

# %% [markdown]
# 1.1 is enough alone. But without it 72 % are right, twice as many as without all eight (then it always writes *Die*): others can do a part of its work (compare the probe's 61 % after layer 0).
# Who does it when all heads are on?
# We patch one step earlier: at *The*, we replace only the context of 1.1 (its d_k numbers before W_O) with the donor's. (`hooked` runs the encoder so; `contexts` are those of all heads.)

# %%
of_swap = Predict(
    "All heads are on, and only the context of encoder 1.1 at *The* is the donor's. "
    "How many of the articles take the donor's gender?",
    unit="%",
    off_by=10,
    section="Question 5: does encoder 1.1 bring it there? Swap what it brings",
)
of_swap


# %% tags=["hide-input"]
@torch.no_grad()
def hooked(hook_of):
    """The memory, with a hook of each layer of the encoder on its contexts."""
    handles = []
    for layer, each in enumerate(attentions(model, "encoder")):
        handles.append(each.fused.register_forward_hook(hook_of(layer)))
    try:
        return model.encode(short_batch.src)
    finally:
        for handle in handles:
            handle.remove()


contexts = {}  # layer → the contexts of all sentences, (batch, heads, queries, d_k)
hooked(lambda layer: lambda *call: contexts.update({layer: call[2].clone()}))
assert contexts[1].shape[:3] == (len(short), 4, 7)


# %%
def swapped(heads, position=0):
    """Which articles follow, if these heads bring the donor's contexts there."""

    def hook_of(layer):
        numbers = [number for _, at, number in heads if at == layer]

        def hook(module, args, context):
            context = context.clone()
            donated = contexts[layer][donors]  # (batch, heads, queries, d_k)
            context[:, numbers, position] = donated[:, numbers, position]
            return context

        return hook

    return first_token(hooked(hook_of)) == article[donors]


# %%
follow = swapped([this_head])
print(f"context of 1.1 at The: {follow.float().mean():.1%} of {len(short)} follow")
of_others = [swapped([head]).float().mean() for head in the_rest]
print(f"of another head: {max(of_others):.1%} at most")
print(f"of the seven others together: {swapped(the_rest).float().mean():.1%}")
elsewhere = [swapped([this_head], n).float().mean() for n in range(1, 7)]
print(f"of 1.1 at another position: {max(elsewhere):.1%} at most")
of_swap.reveal(round(100 * follow.float().mean().item()))

# %% tags=["hide-input"]
agree = defaultdict(list)  # by the noun
for (subject, *_), each in zip(built, follow.tolist(), strict=True):
    agree[subject.english].append(each)
by_noun = share_estimate(sum(all(each) for each in agree.values()), len(agree))
print(f"95 % interval: {by_noun.low:.0%} to {by_noun.high:.0%} of the nouns", end=" ")
print(f"(here all {len(agree)})")
looked = short_maps.encoder[1][:, 1, 0, 1].mean()
print(f"at The, 1.1 puts {looked:.0%} of its weight on the noun")
assert follow.all() and max(*of_others, *elsewhere) == 0
assert not swapped(the_rest).any() and first_token(memory).equal(article)
assert looked > 0.97 and by_noun.low > 0.87

# %% [markdown]
# All 754 articles follow 1.1 (of 28 nouns; 95 % interval: 88 to 100 %), and none follows the other seven, not even together.
# So 1.1 brings the gender, from the noun, where it has nearly all of its weight.
# What the others bring decides some articles when 1.1 is silent; against 1.1, it decides none.

# %% [markdown]
# ## How the model knows
#
# The messenger's five questions have their answers:
#
# | question | answer |
# |---|---|
# | 1. Does 1.1 take determiners to nouns? | yes, 95 %; best distance 76 %, control rows 2 % |
# | 2. Does the model need 1.1? | yes, a third of the sentences are lost, and 162 of the 209 wrong tokens are determiners; another head of the encoder costs about 10 points at most |
# | 3. Is the gender at *The*? | yes, 88 % by a probe on new nouns; guessing about 46 %, random model 34 % |
# | 4. Does the decoder read it there? | yes, in these sentences: all articles follow the vector at *The*, none that of another position |
# | 5. Does 1.1 bring it there? | yes, in these sentences: all articles follow its context at *The*, none that of the seven others |
#
# So, in these sentences, the gender gets to *Die* in two steps:
#
# ```
# English    The  ◄────────────────  woman   sees   the   boy .
#             │    all 754 articles    │
#             │    follow what 1.1     ┊   none follows the
#             │    brings to "The"     ┊   vector at the noun
#             ▼    all 754 articles follow the vector at "The"
# German     Die
# ```
#
# For *Die*, the cross-attention map was right about *where* the decoder finds the gender. For the object's article, cross 1.0 alone would have misled us: it reads the noun, and the gender comes from *the*.
# No map could show *what* the decoder finds at *The*: the gender of *woman*.
# The gender passes through two maps: to follow such paths, *attention rollout* [@abnar2020] multiplies the maps of all layers (each mixed with the residual); but it, too, knows only weights.
#
# (This is one trained model: in another run another head may do this, or none.)

# %% [markdown]
# ## One at a time is not the whole story
#
# Perhaps a head costs little only because another can replace it.
# So we switch off all four heads of one kind in a layer.
# If the heads did separate work, the loss would be at most the sum of the four single costs (less, where two heads break the same sentence).

# %% tags=["hide-input"]
four_off, added_up = [], []
for row in range(6):
    of_layer = [(KINDS[row // 2], row % 2, head) for head in range(4)]
    four_off.append(right(of_layer).float().mean().item())
    added_up.append(max(0, start - sum(cost[head] for head in of_layer)))
bar_names = [(f"{place}: all four off", "if the costs added up") for place in places]
figure = bars(
    [name for both in bar_names for name in both],
    [100 * each for both in zip(four_off, added_up, strict=True) for each in both],
    xlabel=f"sentences right (%), of {half}; all heads on: {start:.1%}",
    title="All heads off: in five of six cases clearly worse than the costs added up",
)
for number, bar in enumerate(figure.axes[0].patches):
    bar.set_facecolor("C7" if number % 2 else "C0")
figure

# %% tags=["hide-input"]
excess = torch.tensor(added_up) - torch.tensor(four_off)  # (layers of all kinds,)
assert excess[[0, 2, 3, 4, 5]].min() > 0.06 and excess[1].abs() < 0.1
assert four_off[5] < 0.005 and abs(added_up[5] - 0.7) < 0.05

# %% tags=["hide-input", "hide-output"]
some = batches[::3]  # every third batch
alone = torch.zeros(6, 4)
for row in range(6):
    for kept in range(4):
        others = [head for head in range(4) if head != kept]
        three_off = [(KINDS[row // 2], row % 2, head) for head in others]
        alone[row, kept] = right(three_off, some).float().mean()
print("sentences right, of 200, with only one head of a layer on: heads 0 to 3")
for place, row in zip(places, alone, strict=True):
    print(f"{place:17}", *(f"{each:.0%}" for each in row))
assert 0.83 < alone[4].min() < alone[4].max() < 0.91 and alone[5].max() < 0.23

# %% [markdown]
# See the last two bars (cross-attention, layer 1): by the single costs at least about 70 % should be left, and none is.
# So a small single cost does not mean "not needed".
# (With only *one* head of that layer on, as @michel2019 tested it, at most 22 % are right; in layer 0, 84 to 90 %: folded cell.)

# %% [markdown]
# ## Back to the dictionary
#
# The other story: a head of the cross-attention looks at the word that it translates.
# How often is each head right?
#
# Our trees also know which English word belongs to which German word: the gold links of lesson [04](04_multi_head.ipynb).
# The model reads the true German sentence (teacher forcing), and we record the cross-attention.
# But links connect words and weights connect tokens: *shows* is `▁show` and `s`.
# If a key word has two tokens, we add their weights; if a query word has two, we average their rows [@clark2019, section 4.1].
# The weight on `</s>` gets a column of its own: "no word". (`between` has the maps between words.)

# %% tags=["hide-input"]
recorded = list(record(pairs, "cross"))
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
# The largest weight of each row is a link that the head *predicts*, unless it is on "no word".
# For predicted links A and gold links G, the **alignment error rate** is 1 − 2 |A ∩ G| / (|A| + |G|), that is, 1 − F1 [@och2003, when no gold link is doubtful].
# It is 0 if A and G are the same, and 1 if they have nothing in common.
# For cross 1.0 on our sentence it is 1 − 2 · 5 / (9 + 10):

# %% tags=["hide-input", "nbval-check-output"]
woman, child = grammar.the("woman", "old"), grammar.the("child")
apple = grammar.a("apple", "sweet")
example = grammar.pair(grammar.clause(woman, "zeigen", dative=child, accusative=apple))
rows = word_weights(maps["cross"][1, 0], *spans(example)).argmax(dim=1).tolist()
predicted = {(key, row) for row, key in enumerate(rows) if key < len(example.src_words)}
gold = set(example.links)
shared = len(predicted & gold)
print(f"{shared} of {len(predicted)} predicted links are among {len(gold)} gold links")
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
# To predict both adjectives and two of the three articles, cross 1.0 looks at the *noun*.
# That makes it a bad dictionary; it is the head that passed for *adjective → noun*.
#
# ### Which row belongs to which token?
#
# **A common mistake**: "row *t* of the cross-attention explains word *t*."
# Position *t* reads the token y_t and predicts y_{t+1} (lesson [07](07_decoder.ipynb)).
# If we label the rows by the token read, each word gets the row below its own: *Frau* gets the row that predicted *zeigt*, and the map says *Frau* = *shows*.
# `rates_of` scores all heads.

# %%
of_lower = Predict(
    "Labeled by the predicted token, the best head's error rate is 9 %. "
    "What is the lowest error rate if every word gets the row below its own?",
    unit="%",
    off_by=10,
    section="Which row belongs to which token?",
)
of_lower

# %% tags=["hide-input"]
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

# %% tags=["hide-input", "hide-output"]
for name, each in (("predicted", rates), ("read", rates_below)):
    for layer, row in enumerate(each):
        print(f"rows labeled by the token {name}, layer {layer}:", end=" ")
        print(*(f"{head} {rate:.0%}" for head, rate in zip(heads, row, strict=True)))
assert (rates_below > rates + 0.3).all() and rates_below.min() > 0.8
assert rates.argmin() == 6 and rates.min() < 0.1 and abs(rates[0, 3] - 0.27) < 0.02
assert rates.flatten().sort().values[1] > rates.min() + 0.05  # wins by far

# %% [markdown]
# With the wrong labels, every head's error rate is above 80 %.
# (Here the same half chose and scored the best head; it is far ahead.)
# (In larger translators it can be the other way round, lesson [07](07_decoder.ipynb): measure.)
#
# ### Do the weights matter? Scramble them
#
# "Attention is not Explanation" is the title of a paper [@jain2019]: often, other weights gave the same output.
# "Attention is not not Explanation" is the title of a reply [@wiegreffe2019]: the weights that were used can still be an explanation.
#
# Does our model use its dictionary, cross 1.2? And cross 0.3 (top right in our first figure), which looks neat there (27 % error over all)?
# If their weights are the reason for the output, other weights should give another output.
# So we scramble them, as Jain and Wallace did, mainly with recurrent models of one attention layer.
# We *permute* each row: it keeps its weights, but puts them on keys drawn at random.
# We do the same with all four heads of each layer.

# %% tags=["hide-input"]
from contextlib import contextmanager


def permute(weights, mask, generator):
    """The same weights in each row, on keys drawn at random among the allowed ones."""
    numbers = torch.rand(weights.shape, generator=generator).to(weights.device)
    keys = numbers.masked_fill(~mask, -1).argsort(dim=-1, descending=True)
    values = weights.sort(dim=-1, descending=True).values
    return torch.zeros_like(weights).scatter(-1, keys, values)


# %% tags=["hide-input"]
@contextmanager
def permuted(layer, heads, seed):
    generator = torch.Generator().manual_seed(seed)

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


# %%
of_permuted = Predict(
    "As it is, the model translates 97 % of the sentences exactly; without cross 1.2, "
    "89 %. Now we permute cross 1.2 instead. What share is still exact?",
    unit="%",
    off_by=5,
    section="Do the weights matter? Scramble them",
)
of_permuted

# %% tags=["hide-input"]
scrambled, off = {}, {}  # shares of right sentences
for layer in range(2):
    for picked in ([0], [1], [2], [3], [0, 1, 2, 3]):
        one = len(picked) == 1
        name = f"cross {layer}.{picked[0]}" if one else f"layer {layer}, all four"
        shares = []
        for seed in range(3):
            with permuted(layer, picked, seed):
                shares.append(right().float().mean().item())
        scrambled[name] = sum(shares) / 3
        off[name] = four_off[4 + layer]
        if one:
            off[name] = without["cross", layer, picked[0]].float().mean().item()

# %% tags=["hide-input"]
print("sentences right:     permuted (mean of 3 draws)   switched off")
print(f"{'nothing changed':20}{start:9.1%}")
for name in ("cross 1.2", "cross 0.3", "layer 0, all four", "layer 1, all four"):
    print(f"{name:20}{scrambled[name]:9.1%}{off[name]:32.1%}")
of_permuted.reveal(round(100 * scrambled["cross 1.2"]))

# %% tags=["hide-input", "hide-output"]
for name in scrambled:
    print(f"{name:20} permuted {scrambled[name]:.1%}, switched off {off[name]:.1%}")
of_layer_1 = [f"cross 1.{head}" for head in range(4)]
assert min(off[name] - scrambled[name] for name in of_layer_1) > 0.02
assert off["cross 1.2"] - scrambled["cross 1.2"] > 0.05
assert abs(off["cross 1.2"] - 0.89) < 0.04
assert abs(off["cross 0.3"] - scrambled["cross 0.3"]) < 0.02
assert 0.6 < scrambled["layer 0, all four"] < 0.8
assert scrambled["cross 0.3"] > start - 0.03 > 0.94 > 0.02 > scrambled[name]  # layer 1

# %% tags=["hide-input"]
allowed = torch.tensor([True] * 6 + [False] * 2).expand(3, 8)
generator = torch.Generator().manual_seed(0)
given = torch.rand(3, 8, generator=generator).masked_fill(~allowed, 0)
mixed = permute(given, allowed, generator)
assert torch.equal(mixed.sort().values, given.sort().values)
assert (mixed[~allowed] == 0).all() and not torch.equal(mixed, given)
assert torch.equal(right(), all_right)  # nothing is permuted any more

# %% [markdown]
# - Cross 1.2: with the same weights on other keys, 97 % become 80 %. So it matters where it looks. Off, it costs less (89 %): perhaps other heads can replace what is missing, but cannot correct what is wrong.
# - Cross 0.3: scrambled or off, 96 of 100 sentences are right. Alone it is hardly missed; other heads may replace it.
# - All four heads of a layer, scrambled: in layer 0 about 70 of 100 sentences stay right, in layer 1 almost none.
#
# Here both titles have a point: the weights of one head may hardly matter; but those of a layer together do.
# (One small model cannot judge two papers.)

# %% [markdown]
# ## For a second reading
#
# The main part of the lesson ends here; the [summary](#Summary) can come next.
# **The rest can wait for a second reading**: two heads that look alike, the best head against word aligners, what a dark cell brings, and when a head learns to align.
#
# ### Two heads that look alike
#
# *The man likes the city because it is beautiful.*
# For *it* the model must write *sie*, because *Stadt* is feminine.
# Encoder 1.1 finds the nouns of pronouns, and encoder 1.3 about as often:

# %% tags=["hide-input"]
to_noun, total, only_it = torch.zeros(2, 4), 0, 0
for n in reporting:
    wanted = goals(tree_of[n], "encoder", *spans(pairs[n]))
    wanted = [goal for goal in wanted if goal.relation == "pronoun → its noun"]
    if wanted:
        batch = make_batch(encode_pairs(tokenizer, [pairs[n]])).to(device)
        with torch.no_grad(), record_attention(model) as each:
            model(batch.src, batch.tgt_in)
        first = torch.cat(each.encoder).argmax(dim=-1).cpu()  # (layers, heads, queries)
    for goal in wanted:
        row, total = first[..., goal.row], total + 1
        to_noun += (row >= goal.keys.start) & (row < goal.keys.stop)
        only_it += tokenizer.tokens(pairs[n].src)[goal.row] == "▁it"
for head in (1, 3):
    print(f"encoder 1.{head}: {to_noun[1, head] / total:.0%} of {total} pronouns")

# %% [markdown]
# By this number the two look like twins. (Most of the 86 are *it*.)
# We switch off one: which tokens of sentences with *it* are wrong only now (`broken_by`)?


# %% tags=["hide-input"]
def broken_by(head):
    """Of the tokens of each kind: whether only now it is wrong."""
    found = {"pronoun → its noun": [], "determiner → noun": [], "other token": []}
    for n, row, _, token, guess in newly_wrong(head):
        if "pronoun gender" in pairs[n].phenomena:
            wanted = goals(tree_of[n], "cross", *spans(pairs[n]))
            name = {goal.row: goal.relation for goal in wanted}.get(row)
            found[name if name in found else "other token"].append(guess != token)
    return found


# %% tags=["hide-input"]
wrong_now, shares = {head: broken_by(("encoder", 1, head)) for head in (1, 3)}, {}
print(f"{'wrong only':12}{'without 1.1':>18}{'without 1.3':>20}")
for name, each in wrong_now[1].items():
    print(f"{name.split(' →')[0]:12}", end="")
    for head, found in wrong_now.items():
        shares[name, head] = wrong = share_estimate(sum(found[name]), len(each))
        told = f"{wrong.value:.0%} ({wrong.low:.0%} to {wrong.high:.0%})"
        print(f"{told:>18}", end="  ")
    print(f"of {len(each)}")

# %% tags=["hide-input"]
of_pronouns, of_determiners, of_others = (shares[name, 1].value for name in found)
assert abs(of_pronouns - 0.125) < 0.03 and abs(of_determiners - 0.25) < 0.03
assert of_others < 0.02 and only_it / total > 0.65
of_twins = [shares["pronoun → its noun", head] for head in (1, 3)]
assert of_twins[1].value == 0 and of_twins[1].high < of_twins[0].low
assert abs(to_noun[1, 1] - to_noun[1, 3]) / total < 0.1 and to_noun[1, 1] / total > 0.6

# %% [markdown]
# Without 1.1, one determiner in four and one pronoun in eight are wrong; without 1.3, no pronoun.
# A pattern is not a need.
#
# ### Good compared with what?
#
# The best head, cross 1.2, has an error rate of 9 %. Is that good?
# That depends on the baselines, which align without attention (and learn from the translator's 60,000 pairs):
#
# - The **diagonal** uses no words: it links each German word to the English word at the same relative position.
# - **IBM model 1** [@brown1993] learns a table from sentence pairs without links: how likely is this German word for that English word (or the reverse)?
# - **fast_align** [@dyer2013], a widely used tool, has such a table, and also prefers words near the diagonal.
#
# (Code: `course_lib.analysis`.)

# %% tags=["hide-input"]
# For word i of m German words and word j of n English words, fast_align multiplies the
# table's entry by exp(−λ |i/m − j/n|): 1 on the diagonal, and smaller away from it.
# λ, the tension, is one number for the whole corpus, fitted together with the table.
from course_lib.analysis import (
    column_links,
    diagonal_links,
    train_fast_align,
    train_ibm1,
)

texts = [(pair.src_words, pair.tgt_words) for pair in train]
backwards = [(tgt_words, src_words) for src_words, tgt_words in texts]
aligners = {"IBM model 1": (train_ibm1(texts), train_ibm1(backwards))}
aligners["fast_align"] = train_fast_align(texts), train_fast_align(backwards)

# %% [markdown]
# Links can be read by rows (each German word chooses an English one) or by columns (the other way round; an aligner is trained in either direction).
# On the first half, columns are better for every head and both aligners; so we use them, and the 9 % becomes 8 %.

# %%
of_best = Predict(
    "Read by columns, whose links have fewer errors, on sentences that neither has "
    "seen?",
    ["the best head's", "fast_align's", "no clear difference"],
    section="Good compared with what?",
)
of_best


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
        ways[f"cross {layer}.{head}"] = both

# %% tags=["hide-input"]
best_way = {  # of each, chosen on the first half
    name: min(finders, key=lambda find: error(find, choosing))
    for name, finders in ways.items()
}
head_ways = {name: find for name, find in best_way.items() if name.startswith("cross")}
best = min(head_ways, key=lambda name: error(head_ways[name], choosing))
print("best head, by the first half:", best)

# %% tags=["hide-input"]
import numpy as np

from course_lib.analysis import error_rate_estimate

gold = [pairs[n].links for n in reporting]
links = {name: [find(n) for n in reporting] for name, find in best_way.items()}
rate = {name: error_rate_estimate(found, gold) for name, found in links.items()}

# %% tags=["hide-input"]
leads = {}  # the head's error rate minus fast_align's, read by rows or by columns
for way, name in enumerate(("rows", "columns")):
    rivals = ways[best][way], ways["fast_align"][way]
    ours, theirs = ([find(n) for n in reporting] for find in rivals)
    leads[name] = error_rate_estimate(ours, gold, against=theirs)
lead = leads["columns"]
print("error rates, second half:", end=" ")
print(f"{best} {error(rivals[0]):.1%}, fast_align {error(rivals[1]):.1%}; ", end="")
print(f"difference {100 * lead.value:.1f}", end=" ")
print(f"points (95 %: {100 * lead.low:.1f} to {100 * lead.high:.1f})")
outcome = "fast_align's" if lead.low > 0 else "the best head's"
of_best.reveal(outcome if lead.high < 0 or lead.low > 0 else "no clear difference")

# %% tags=["hide-input"]
ranked = dict(sorted(rate.items(), key=lambda row: row[1].value))
shown = [100 * each.value for each in ranked.values()]
ends = [[100 * (e.value - e.low), 100 * (e.high - e.value)] for e in ranked.values()]
figure = bars(
    [name.replace("model 1", "model 1: the table alone") for name in ranked],
    shown,
    xlabel="alignment error rate (%), with 95 % intervals; gray: without attention",
    title="The best head aligns like fast_align, the worst like the diagonal",
    value_format="         {:.1f}",
)
style = dict(fmt="none", ecolor="black", capsize=3)
_ = figure.axes[0].errorbar(shown, range(len(shown)), xerr=np.array(ends).T, **style)
for bar, name in zip(figure.axes[0].patches, ranked, strict=True):
    bar.set_facecolor("C0" if name in head_ways else "C7")
figure

# %% tags=["hide-input"]
assert best == "cross 1.2" and rate["fast_align"].value < rate["IBM model 1"].value
assert rate[best].high < rate["IBM model 1"].low
ahead = [name for name in head_ways if rate[name].value < rate["diagonal"].value - 0.03]
assert len(ahead) == 7 and set(head_ways) - set(ahead) == {"cross 0.1"}
assert abs(rate["cross 0.1"].value - rate["diagonal"].value) < 0.03
assert all(find is ways[name][-1] for name, find in best_way.items())
assert lead.low < 0 < lead.high
assert 0.085 < rates.min() < 0.095 and 0.075 < rate[best].value < 0.085

# %% tags=["hide-input", "hide-output"]
by_rows = leads["rows"]
assert by_rows.high < -0.005 and -0.03 < by_rows.value < -0.02
print(f"by rows, {best} minus fast_align, in points:", end=" ")
print(f"{100 * by_rows.value:.1f}", end=" ")
print(f"({100 * by_rows.low:.1f} to {100 * by_rows.high:.1f})")
print("error rates of the first and second half, by rows and by columns")
for name, found in ways.items():
    print(
        f"{name:12}",
        *(f"{error(each, choosing):.3f} {error(each):.3f}" for each in found),
    )

# %% [markdown]
# Against the diagonal alone, seven of the eight heads would have looked like discoveries.
# Against fast_align the best head has no clear lead: the interval contains 0. (By rows it leads by two points: folded cell.)
# So cross 1.2 is a good dictionary: it aligns about as well as fast_align in one direction.
#
# ### A dark cell that brings less
#
# To predict *zeigt*, cross 0.1 (first figure, second map) puts nearly all its weight on `</s>`.
# A row must sum to 1, even where a head has nothing to look for; perhaps that is why.
# A token that gets weight in this way is an **attention sink**; in BERT, @clark2019 found heads that look at the separator `[SEP]` like this. (The name is from @xiao2023; in their language models it is the first tokens.)
#
# How much does a head bring from there?
# It adds weights times values [@kobayashi2020], so a dark cell may bring less than its weight says.
# In layer 0 of the cross-attention, where such rows are more frequent, we measured the value (after W_O) under the largest weight of each row that predicts a word.
# On punctuation or `</s>` it is on average 28 to 42 % shorter than elsewhere (folded cell).
# So the map alone does not tell how much a head brings, nor *what*.

# %% tags=["hide-input"]
marks = [tokenizer.encode(f"Hund{mark}")[-1] for mark in ".?,"]
marks = torch.tensor([*marks, model.config.eos_id, model.config.pad_id]).to(device)
layer_0 = attentions(model, "cross")[0]
slices = layer_0.output_proj.weight.detach().T.unflatten(0, (4, -1))


# %% tags=["hide-input"]
@torch.no_grad()
def look(batch):
    """Whether in a sink of layer 0, of 1; whether a word; length of the value seen."""
    calls, keep = [], lambda module, args, context: calls.append(args)
    handle = layer_0.fused.register_forward_hook(keep)
    with record_attention(model) as maps:
        model(batch.src, batch.tgt_in)
    handle.remove()
    is_word = ~torch.isin(batch.tgt_out, marks)[:, None].expand(-1, 4, -1)
    closing = torch.isin(batch.src, marks)[:, None].expand(-1, 4, -1)
    in_sinks = (closing.gather(2, each.argmax(dim=-1)) & is_word for each in maps.cross)
    of_keys = (calls[0][2] @ slices).norm(dim=-1)  # (batch, heads, keys), of the values
    return *in_sinks, is_word, of_keys.gather(2, maps.cross[0].argmax(dim=-1))


# %% tags=["hide-input", "hide-output"]
looks = [[each.transpose(0, 1).flatten(1) for each in look(one)] for one in batches]
looks = [torch.cat(each, dim=1) for each in zip(*looks, strict=True)]
in_sink, in_sink_1, is_word, lengths = looks  # (heads, rows) each
of_values = {}
print(f"rows in a sink: {in_sink.sum()} in layer 0, {in_sink_1.sum()} in layer 1")
for head in range(4):
    sink, busy = in_sink[head], is_word[head] & ~in_sink[head]
    of_values[head] = [lengths[head][rows].mean().item() for rows in (sink, busy)]
    share, (at_sink, at_word) = sink.sum() / is_word[head].sum(), of_values[head]
    print(f"cross 0.{head}: {share:4.0%} in a sink, value {at_sink:.1f};", end=" ")
    print(f"elsewhere {at_word:.1f} ({1 - at_sink / at_word:.0%} shorter)")

# %% tags=["hide-input"]
shorter = [1 - sink / busy for sink, busy in of_values.values()]
assert abs(min(shorter) - 0.28) < 0.02 and abs(max(shorter) - 0.42) < 0.02
assert in_sink.sum() > 2 * in_sink_1.sum()
assert maps["cross"][0, 1, tgt.index("▁zeigt"), -1] > 0.9

# %% [markdown]
# ### When does a head learn to align?
#
# The translator comes with ten checkpoints of its training (`course_film`).
# Press the button: the explorer plays them as a film of cross 1.2, always on the same translation.

# %%
film_explorer = AttentionExplorer(course_film, text, head=2)
film_explorer

# %% tags=["hide-input"]
with written_for(text, film_explorer.text):
    assert film_explorer.film["steps"] == course_film.steps

# %% tags=["hide-input"]
for step, rows_right in ((100, 3), (382, 5)):
    scene = course_film.scene(text, step).exploration
    first = scene.attention.cross[1][2].argmax(dim=-1).cpu()
    assert scene.tgt_tokens == tgt and (first == meant).sum() == rows_right
    if step == 100:
        two = [src.index(token) for token in ("s", "▁sweet")]
        assert sum((first == key).sum() for key in two) >= 8

# %% tags=["hide-input", "hide-output"]
print("the best head by the first half, its error rate on the second; read by rows")
for step, (layer, head), each in zip(
    course_film.steps, course_film.best, course_film.best_rates, strict=True
):
    print(f"step {step:5}: cross {layer}.{head}, alignment error {each:.0%}")
print(f"diagonal: {course_film.diagonal:.0%}")

# %% tags=["hide-input"]
torch.testing.assert_close(course_film.rates[-1], rates, atol=5e-3, rtol=0)
above = course_film.rates.amin(dim=(1, 2)) - course_film.diagonal  # (steps,)
level = course_film.steps.index(382)
assert above[level - 1] > 0.05 and above[level].abs() < 0.03
assert (above[level:].diff() < 0).all() and course_film.best[-1] == (1, 2)

# %% [markdown]
# At step 100 most rows look at the same two tokens.
# At step 382, after 7 % of the training, five of the twelve rows are right.
# The best head of that moment (not this one) is level with the diagonal, at 41 %; by the end, the lowest error rate is 9 %. (Links by rows: folded cell.)

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **best fixed distance**: a head's opponent that uses no words: the same distance from every row.
# - **control rows**: rows without a reason to look at a word; their share says how many look there anyway.
# - **ablation**: removing a part, to see what breaks.
# - **probe**: a small classifier that reads a property off the vectors of a layer.
# - **activation patching**: replacing a vector of one run by that of another, to see whether the output follows.
# - **alignment error rate**: 1 − 2 |A ∩ G| / (|A| + |G|) of predicted links A and gold links G.
# - **diagonal**: linking words at the same relative position.
# - **IBM model 1**: word alignment by a table of word pairs alone.
# - **fast_align**: model 1 with a prior that prefers the diagonal.
# - **attention sink**: a token that gets weight where a head seems to have nothing to look for.

# %% [markdown]
# ## Summary
#
# A map shows where a head looks, and nothing else.
#
# - *Whose row is it?* In the decoder, that of the token that it predicts.
# - *Does it always look there?* Count, and compare with a baseline and control rows: of fifteen candidates five pass.
# - *Does the model need it?* Switch the head off, and look at what breaks: without encoder 1.1 about a third of the sentences are lost, mostly at a determiner. A small cost does not mean "not needed": another head may replace it.
# - *Does it bring it?* With all heads on, swap only what this head brings.
# - *What is at that place?* Not only the word. A probe shows what a vector holds, if it fails where the information is missing; patching shows what the model reads there.
# - *Do its weights matter?* Scramble them, in one head and in a whole layer.
#
# **Practice**: [assignment 12](assignments/release/12_reading_attention/12_reading_attention.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the model of the paper is built, trained, used and opened.
# Lesson [13](13_positions_past_the_paper.ipynb) begins with what came after it.
