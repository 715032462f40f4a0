"""Checks of the capstone: parts from other assignments, the model they make, its training, what it translates."""

import inspect
import math
import textwrap
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.assignments import declared
from course_lib.assignments.a19_capstone.names import PARTS, shapes_of, theirs
from course_lib.assignments.a19_capstone.sentences import translations, unseen_sentences, worth_of_translations
from course_lib.checks import Edit, Exercise, call, difference

OTHERS = {path.name[1:3]: path for path in Path(__file__).parents[1].glob("a0[1-8]_*")}
FINISHED = (F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward)
STACKS = (nn.Transformer, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


def cases_of_parts(generator):
    """For each part how its own exercise asks, as code, and that exercise's cases."""
    found = {}
    for name, exercise in PARTS.items():
        part = declared(OTHERS[exercise[:2]])[exercise]
        way = "def ask(answer, *inputs):\n    return answer(*inputs)\n"
        if part.ask is not call:
            way = textwrap.dedent(inspect.getsource(part.ask)) + f"ask = {part.ask.__name__}\n"
        found[name] = [way, [tuple(case) for case in part.cases(generator)]]
    return [(found,)]


def replies_of_parts(own, parts):
    """What each part returns for its cases; of one that is missing or raises, why."""
    found = {}
    for name, (way, cases) in parts.items():
        names = {"torch": torch, "math": math, "F": F, "nn": nn, "partial": partial}
        exec(way, names)
        try:
            found[name] = [names["ask"](own[name], *inputs) for inputs in cases]
        except Exception as error:
            found[name] = "it is missing" if own.get(name) is None else f"it raises {type(error).__name__}: {error}"
    return found


def worth_of_parts(expected, got):
    """A share for each part that is right; which ones are not, and why."""
    if not isinstance(got, dict):
        return 0.0, "own must be a dict of your functions, as the cell has it"
    wrong = {}
    for name, results in expected.items():
        reply = got.get(name, "it is missing")
        said = reply if isinstance(reply, str) else difference(results, reply, 1e-4, name)
        wrong |= {name: said} if said else {}
    said = "".join(f"\n  {name}: {why}" for name, why in wrong.items())
    return 1 - len(wrong) / len(expected), f"{len(expected) - len(wrong)} of {len(expected)} parts are yours{said}"


def projected(generator):
    """Queries, keys and values after their projections, masks of all kinds, and a number of heads."""
    cases = []
    sizes = [(2, 3, 5, 8, 2), (1, 4, 4, 12, 3), (3, 4, 4, 8, 4), (2, 5, 3, 6, 1)]
    for batch, queries, keys, d_model, num_heads in sizes:
        tensors = [torch.randn(batch, length, d_model, generator=generator) for length in (queries, keys, keys)]
        lengths = torch.randint(2, keys, (batch,), generator=generator)
        mask = (torch.arange(keys) < lengths[:, None])[:, None, None, :]
        if queries == keys:
            mask = mask & torch.ones(1, 1, keys, keys, dtype=torch.bool).tril()
        cases.append((*tensors, mask, num_heads))
    return cases


def weights_and_sentences(generator):
    """Small models with weights of our choice, and padded sentences."""
    cases = []
    for vocab, d_model, num_heads, num_layers, d_ff in [(11, 8, 2, 2, 12), (9, 6, 3, 1, 5), (13, 8, 4, 3, 10)]:
        weights = {}
        for name, shape in shapes_of(vocab, d_model, num_layers, d_ff).items():
            numbers = torch.randn(shape, generator=generator)
            weights[name] = numbers / d_model**0.5 if len(shape) > 1 else name.endswith("scale") + 0.3 * numbers
        src = torch.randint(3, vocab, (3, 6), generator=generator)
        tgt_in = torch.randint(3, vocab, (3, 5), generator=generator)
        src[0, 4:] = src[2, 3:] = tgt_in[1, 3:] = tgt_in[0, 4:] = 0
        tgt_in[:, 0] = 1
        cases.append((weights, num_heads, src, tgt_in))
    return cases


def logits_with(answer, weights, num_heads, src, tgt_in):
    """Logits (tokens, vocab) of the real target tokens, by the answer's model with these weights."""
    vocab, d_model = weights["table.weight"].shape
    num_layers = sum(name.endswith(".norms.2.scale") for name in weights)
    model = answer(vocab, d_model, num_heads, num_layers, len(weights["encoder.0.feed_forward.0.bias"]))
    model.load_state_dict(weights)
    with torch.no_grad():
        return model(src, tgt_in)[tgt_in != 0]


def batches_and_models(generator):
    """Three matrices of a small model, a padded batch, a number of steps and a rate."""
    cases = []
    for batch, src_len, tgt_len, vocab, d_model, steps, rate in [(3, 4, 5, 9, 4, 5, 0.3), (2, 3, 2, 7, 6, 8, 0.1)]:
        shapes = (vocab, d_model), (vocab, d_model), (d_model, vocab)
        matrices = [torch.randn(shape, generator=generator) for shape in shapes]
        src, tgt = (torch.randint(3, vocab, (batch, length), generator=generator) for length in (src_len, tgt_len))
        tgt[0, 1:] = src[1, 2:] = 0
        cases.append((matrices, src, tgt, steps, rate))
    return cases


def losses_of(answer, matrices, src, tgt, steps, rate):
    """The losses of a small model that reads the source as a whole, and of the target all tokens so far."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.src, self.tgt, self.out = (nn.Parameter(matrix.clone()) for matrix in matrices)

        def forward(self, src, tgt_in):
            read = self.src[src].mean(dim=1, keepdim=True) + self.tgt[tgt_in].cumsum(dim=1)
            return torch.tanh(read) @ self.out  # (batch, tgt_len, vocab)

    return answer(Model(), src, tgt, steps, rate)


def shipped_weights(generator):
    """Small sets of weights under the names of course_lib's Transformer."""
    cases = []
    for sizes in [(5, 4, 1, 3), (6, 2, 3, 5), (4, 6, 2, 2)]:
        shapes = shapes_of(*sizes).items()
        cases.append(({theirs(name): torch.randn(shape, generator=generator) for name, shape in shapes},))
    return cases


def in_hundreds(answer, sentences):
    """The translations, asked for a hundred at a time."""
    return [answer(sentences[at : at + 100]) for at in range(0, len(sentences), 100)]


HEADS = "x.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
WEIGHTS = "masked_softmax(flat.unflatten(0, (-1, num_heads)), mask)"
SHIFTED = "tgt_in, tgt_out = targets(tgt)"
LOSS = "F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)"

EXERCISES = (
    Exercise("19.parts", cases_of_parts, ask=replies_of_parts, worth=worth_of_parts, any_device=False),
    Exercise(
        "19.attend",
        projected,
        {
            "The heads share the d_model features, but their scores are divided by √d_model: it is √d_k of a head.":
                Edit("masked_softmax(flat", "masked_softmax(num_heads**-0.5 * flat"),
            "The shape is right, but heads get other positions. Split the features first, then exchange two axes.":
                Edit(HEADS, "x.reshape(len(x), num_heads, x.size(1), -1)"),
            "Each head gets every num_heads-th feature. Head 0 has the first d_k.":
                Edit(HEADS, "x.unflatten(-1, (-1, num_heads)).movedim(-1, 1)"),
            "The mask has no effect.": Edit(WEIGHTS, "flat.unflatten(0, (-1, num_heads)).softmax(dim=-1)"),
            "Hidden weights become 0 after the softmax here, so the others do not sum to 1.":
                Edit(WEIGHTS, "flat.unflatten(0, (-1, num_heads)).softmax(dim=-1) * mask"),
            "Sentences and heads are exchanged when the scores are put back in order.":
                Edit("flat.unflatten(0, (-1, num_heads))", "flat.unflatten(0, (num_heads, -1)).transpose(0, 1)"),
            "The heads are merged already. Each is asked for by itself: (batch, heads, queries, d_k).":
                Edit("return weights @ value", "return (weights @ value).transpose(1, 2).flatten(2)"),
            "These are the weights; asked is the context.": Edit("return weights @ value", "return weights"),
        },
        forbidden=FINISHED,
        loops=False,
        any_device=False,  # masked_softmax looks for queries with nothing to attend to
    ),
    Exercise(
        "19.model",
        weights_and_sentences,
        {
            "The encoder's stack ends with a norm, which is missing.": Edit("return self.encoder_norm(x)", "return x"),
            "The decoder's stack ends with a norm, which is missing.": Edit("return self.decoder_norm(x)", "return x"),
            "The encoder ends with the decoder's norm.":
                Edit("return self.encoder_norm(x)", "return self.decoder_norm(x)"),
            "Your encoder is causal; a word of the source may look at later ones.": Edit("PAD_ID)[1]", "PAD_ID)[0]"),
            "In the encoder, the padding of the source is not hidden.": Edit("PAD_ID)[1]", "-1)[1]"),
            "In the cross-attention, the padding of the source is not hidden.":
                Edit("tgt_mask, memory_mask)", "tgt_mask, torch.ones_like(memory_mask))"),
            "Your decoder sees the future.": Edit("*parts, tgt_mask", "*parts, torch.ones_like(tgt_mask)"),
            "The encoder is post-norm here.": Edit("nn.Identity(), True", "nn.Identity(), False"),
            "Only the first layer of the decoder runs.": Edit("in self.decoder:", "in self.decoder[:1]:"),
            "The source has no positions.":
                Edit("self.position)\n        mask", "0 * self.position)\n        mask"),
            "The target has no positions.":
                Edit("self.position)\n        tgt_mask", "0 * self.position)\n        tgt_mask"),
            "The decoder attends to the embedded source; the memory is what the encoder makes of it.":
                Edit("self.encode(src), src)", "ends(src, self.table.weight[None, :0], *table)[0], src)",
                     "        hidden =", "        table = self.table.weight, self.position\n        hidden ="),
        },
        ask=logits_with,
        forbidden=(*FINISHED, *STACKS),
        any_dtype=False,  # the table of positions is float32
        any_device=False,
    ),
    Exercise(
        "19.memorize",
        batches_and_models,
        {
            "The model reads what it is to predict: nothing is shifted.":
                Edit(SHIFTED, "tgt_in = tgt_out = targets(tgt)[1]"),
            "The model is to predict what it reads: nothing is shifted.":
                Edit(SHIFTED, "tgt_in = tgt_out = targets(tgt)[0]"),
            "The padding counts in this loss.": Edit(", ignore_index=PAD_ID", ""),
            "This is the sum over the tokens; asked is their mean.":
                Edit("ignore_index=PAD_ID", 'ignore_index=PAD_ID, reduction="sum"'),
            "The gradients of all steps add up: they are never cleared.": Edit("        optimizer.zero_grad()\n", ""),
            "These are the losses after each step; asked are those before it.":
                Edit("losses.append(loss", f"losses.append({LOSS.replace('logits', 'model(src, tgt_in)')}"),
            "These are Adam's usual β and ε, not the paper's.": Edit(", betas=(0.9, 0.98), eps=1e-9", ""),
            "This is plain gradient descent.":
                Edit("torch.optim.Adam", "torch.optim.SGD", ", betas=(0.9, 0.98), eps=1e-9", ""),
            "The rate of the steps is not the given one.": Edit("lr=rate", "lr=1e-3"),
        },
        ask=losses_of,
        any_device=False,
    ),
    Exercise(
        "19.adopt",
        shipped_weights,
        {
            "In the decoder the second norm is that around the cross-attention, and the third that of the network.":
                Edit('cross_attn_path.norm": 1', 'cross_attn_path.norm": 2', "2 if cross else 1", "1"),
            "An encoder layer has two norms, number 0 and number 1.": Edit("2 if cross else 1", "2"),
            "up is the first matrix of the network, down the last.":
                Edit('.up": "feed_forward.0"', '.up": "feed_forward.2"',
                     '.down": "feed_forward.2"', '.down": "feed_forward.0"'),
            "Number 1 of the network is the ReLU, which has no weights.":
                Edit('.down": "feed_forward.2"', '.down": "feed_forward.1"'),
            "Both models keep their matrices the same way round; nothing has to be turned.":
                Edit("mine[name] = tensor", "mine[name] = tensor.mT if tensor.dim() > 1 else tensor"),
            "Your names have no `layers` in them.": Edit('".layers.": ".", ', ""),
            "The norms at the ends of the stacks have names of their own.": Edit(', "coder.norm.": "coder_norm."', ""),
            "Your matrix of the embeddings is `table.weight`.": Edit('"src_embedding.": "", ', ""),
        },
    ),
    Exercise("19.weights", unseen_sentences, ask=in_hundreds, truth=translations, worth=worth_of_translations),
)
