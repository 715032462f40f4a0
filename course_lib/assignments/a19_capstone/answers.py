"""Answers to the capstone: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math
import re
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.training import label_smoothed_loss
from course_lib.transformer import Transformer

HEADS = "x.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
TRANSLATED = "translate(model.eval(), sentences)"


def attend_by_letters(query, key, value, mask, num_heads):
    query, key, value = query.unflatten(-1, (num_heads, -1)), key.unflatten(-1, (num_heads, -1)), value
    products = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.size(-1))
    weights = products.masked_fill(mask.logical_not(), -math.inf).softmax(dim=-1)
    return torch.einsum("bhqk,bkhd->bhqd", weights, value.unflatten(-1, (num_heads, -1)))


def attend_by_chunks(query, key, value, mask, num_heads):
    query = torch.stack(query.chunk(num_heads, dim=-1), dim=1)
    key = torch.stack(key.chunk(num_heads, dim=-1), dim=1)
    value = torch.stack(value.chunk(num_heads, dim=-1), dim=1)
    exponentials = (query @ key.mT / query.size(-1) ** 0.5).exp() * mask
    return exponentials @ value / exponentials.sum(dim=-1, keepdim=True)


class WithoutModules:
    """The whole model as formulas over a dict of weights."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff):
        self.heads, self.layers, self.d_model = num_heads, num_layers, d_model
        angle = torch.arange(64)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.position = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

    def load_state_dict(self, weights):
        self.weights = {name: tensor.float() for name, tensor in weights.items()}
        self.table = SimpleNamespace(weight=self.weights["table.weight"])

    def eval(self):
        return self

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.scale"], self.weights[f"{name}.shift"])

    def attention(self, name, query, memory, mask):
        query = self.linear(query, f"{name}.query_proj")
        key, value = self.linear(memory, f"{name}.key_proj"), self.linear(memory, f"{name}.value_proj")
        context = attend_by_letters(query, key, value, mask, self.heads)
        return self.linear(context.transpose(1, 2).flatten(2), f"{name}.output_proj")

    def network(self, x, name):
        return self.linear(self.linear(x, f"{name}.feed_forward.0").relu(), f"{name}.feed_forward.2")

    def embed(self, ids):
        return self.weights["table.weight"][ids] * self.d_model**0.5 + self.position[: ids.size(1)]

    def encode(self, src):
        x = self.embed(src)
        for layer in range(self.layers):
            name = f"encoder.{layer}"
            normed = self.norm(x, f"{name}.norms.0")
            x = x + self.attention(f"{name}.self_attn", normed, normed, (src != 0)[:, None, None, :])
            x = x + self.network(self.norm(x, f"{name}.norms.1"), name)
        return self.norm(x, "encoder_norm")

    def decode(self, tgt_in, memory, src):
        real, x = (src != 0)[:, None, None, :], self.embed(tgt_in)
        causal = torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).tril()[None, None]
        for layer in range(self.layers):
            name = f"decoder.{layer}"
            normed = self.norm(x, f"{name}.norms.0")
            x = x + self.attention(f"{name}.self_attn", normed, normed, causal)
            x = x + self.attention(f"{name}.cross_attn", self.norm(x, f"{name}.norms.1"), memory, real)
            x = x + self.network(self.norm(x, f"{name}.norms.2"), name)
        return self.norm(x, "decoder_norm")

    def __call__(self, src, tgt_in):
        return self.decode(tgt_in, self.encode(src), src) @ self.table.weight.T


def memorize_by_hand(model, src, tgt, steps, rate):
    """Adam from its formulas, and the loss from the logarithms."""
    lengths = (tgt != 0).sum(dim=1)
    tgt_in, tgt_out = F.pad(tgt, (1, 0), value=1), F.pad(tgt, (0, 1), value=0)
    tgt_out[range(len(tgt)), lengths] = 2
    real, losses = tgt_out != 0, []
    first, second = ([torch.zeros_like(parameter) for parameter in model.parameters()] for _ in range(2))
    for step in range(1, steps + 1):
        log_probs = model(src, tgt_in)[real].log_softmax(dim=-1)
        loss = -log_probs[range(len(log_probs)), tgt_out[real]].mean()
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        for parameter, gradient, m, v in zip(model.parameters(), gradients, first, second, strict=True):
            m.mul_(0.9).add_(gradient, alpha=0.1)
            v.mul_(0.98).add_(gradient**2, alpha=0.02)
            parameter.data -= rate * m / (1 - 0.9**step) / ((v / (1 - 0.98**step)).sqrt() + 1e-9)
    return losses


def adopt_by_pattern(shipped):
    found = {}
    for name, tensor in shipped.items():
        name = re.sub(r"^src_embedding\.", "", name)
        name = re.sub(r"^(en|de)coder\.norm", r"\1coder_norm", name)
        name = re.sub(r"\.layers\.(\d+)\.", r".\1.", name)
        name = re.sub(r"feed_forward\.(up|down)", lambda m: "feed_forward." + {"up": "0", "down": "2"}[m[1]], name)
        name = name.replace("self_attn_path.norm", "norms.0").replace("cross_attn_path.norm", "norms.1")
        found[name.replace("feed_forward_path.norm", f"norms.{2 if name[:3] == 'dec' else 1}")] = tensor
    return found


def adopt_by_words(shipped):
    def renamed(name):
        stack, *words = name.split(".")
        if stack == "src_embedding":
            return ".".join(words)
        if words[0] == "norm":
            return f"{stack}_norm.{words[1]}"
        number, part, *rest = words[1:]
        if part.endswith("_path"):
            order = ["self_attn_path", *["cross_attn_path"] * (stack == "decoder"), "feed_forward_path"]
            part, rest[0] = "norms", str(order.index(part))
        if part == "feed_forward":
            rest[0] = "0" if rest[0] == "up" else "2"
        return ".".join([stack, number, part, *rest])

    return {renamed(name): tensor.clone() for name, tensor in sorted(shipped.items())}


RIGHT = {
    "19.parts": [
        Edit(),
        Edit("query @ key.transpose(1, 2)", "torch.bmm(query, key.mT)", "context @ slices", "context.matmul(slices)"),
        Edit("x.var(dim=-1, keepdim=True, correction=0)", "((x - mean) ** 2).mean(dim=-1, keepdim=True)"),
    ],
    "19.attend": [
        *(attend_by_letters, attend_by_chunks),
        Edit(HEADS, "x.view(len(x), x.size(1), num_heads, -1).movedim(2, 1)"),
    ],
    "19.model": [
        WithoutModules,
        Edit("partial(self.attend_itself, layer.self_attn, mask)",
             "lambda x, layer=layer: layer.self_attn(x, x, x, mask)"),
        Edit("return ends(tgt_in[:, :0], hidden, self.table.weight, self.position)[1]",
             "return hidden @ self.table.weight.T"),
    ],
    "19.memorize": [
        memorize_by_hand,
        Edit("optimizer.zero_grad()", "model.zero_grad()",
             "torch.optim.Adam(", "torch.optim.AdamW(weight_decay=0, params="),
        Edit("logits.flatten(0, 1), tgt_out.flatten()", "logits.transpose(1, 2), tgt_out"),
    ],
    "19.adopt": [adopt_by_pattern, adopt_by_words, Edit("mine = {}", "mine = dict()")],
    "19.weights": [
        Edit(),
        Edit(TRANSLATED, "[text for at in range(0, len(sentences), 40)\n"
             "            for text in translate(model, sentences[at : at + 40])]"),
        Edit(f"return {TRANSLATED}", "order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))\n"
             "    found = translate(model, [sentences[place] for place in order])\n"
             "    return [text for _, text in sorted(zip(order, found))]"),
    ],
}

NINE = "9 of 10 parts are yours\n  "
NORMED = "x + dropout(sublayer(norm(x)))"
WRONG = {
    "19.parts": [
        (Edit(" / math.sqrt(query.size(-1))", ""), f"{NINE}scores: scores[0]"),
        (Edit("context @ slices", "2 * context @ slices"), f"{NINE}contributions: "),
        (Edit("-math.inf), dim=-1)", "-1e9), dim=-1)"), f"{NINE}masked_softmax: "),
        (Edit("place <= place[:, None]", "place < place[:, None]"), f"{NINE}decoder_masks: "),
        (Edit("correction=0", "correction=1"), f"{NINE}layer_norm: "),
        (Edit(NORMED, NORMED.replace("x +", "norm(x) +")), f"{NINE}encoder_layer: "),
        (Edit("value=BOS_ID", "value=EOS_ID"), f"{NINE}targets: "),
        (Edit("memory, memory, memory_mask", "memory, norms[1](memory), memory_mask"), f"{NINE}decoder_layer: "),
        (Edit("ids.size(1) <= max_len", "ids.size(1) < max_len"), f"{NINE}generate: "),
        (Edit("table[ids] * math.sqrt(table.size(1))", "table[ids]"), f"{NINE}ends: "),
        (Edit("def generate(step", "def write(step"), f"{NINE}generate: it is missing"),
        ({}, "0 of 10 parts are yours"),
    ],
    "19.attend": [
        Edit("weights @ value", "weights @ key"),
        Edit("split(value, num_heads)", "split(value, num_heads).flip(1)"),
    ],
    "19.model": [
        Edit("x = decoder_layer(x, memory", "x = decoder_layer(x, 2 * memory"),
        Edit("return ends(", "return -ends("),
    ],
    "19.memorize": [Edit("return losses", "return losses[::-1]"), Edit("return losses", "return losses[-1:]")],
    "19.adopt": [
        Edit("return mine", "return {**shipped, **mine}"),
        Edit("mine[name] = tensor", "mine[name] = 2 * tensor"),
    ],
    "19.weights": [
        (Edit(TRANSLATED, "sentences"), "0.0% of 200 sentences"),
        (Edit(TRANSLATED, f"[text.lower() for text in {TRANSLATED}]"), "90% are asked"),
        (Edit(TRANSLATED, f"[text[:-1] for text in {TRANSLATED}]"), "0.0% of 200 sentences"),
        (Edit(TRANSLATED, f"{TRANSLATED}[::-1]"), "90% are asked"),
        (Edit(TRANSLATED, "translate(model.eval(), sentences[::2])"), "expected 200 translations, got 100"),
        (Edit(TRANSLATED, f"'\\n'.join({TRANSLATED})"), "expected a list of texts"),
        (Edit(TRANSLATED, f"{TRANSLATED}[:1] * len(sentences)"), "90% are asked"),
        (Edit(TRANSLATED, f"[' '.join(text.split()[:4]) for text in {TRANSLATED}]"), "90% are asked"),
    ],
}


class OfTheLibrary:
    """The course's Transformer with weights of our names."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff):
        sizes = dict(d_model=d_model, num_heads=num_heads, num_layers=num_layers, d_ff=d_ff, dropout=0.0)
        self.model = Transformer(ModelConfig(vocab_size, norm_first=True, **sizes)).eval()

    def load_state_dict(self, weights):
        from course_lib.assignments.a19_capstone.names import theirs  # here: where answers are graded it is missing
        tensors = {theirs(name): tensor for name, tensor in weights.items()}
        tied = dict.fromkeys(("tgt_embedding.table.weight", "generator.weight"), tensors["src_embedding.table.weight"])
        self.model.load_state_dict(tensors | tied)

    def __call__(self, src, tgt_in):
        return self.model(src, tgt_in)


def library_memorize(model, src, tgt, steps, rate):
    ends = [[id for id in row if id] for row in tgt.tolist()]
    width = max(map(len, ends)) + 1
    tgt_in = torch.tensor([[1, *row, *[0] * (width - 1 - len(row))] for row in ends])
    tgt_out = torch.tensor([[*row, 2, *[0] * (width - 1 - len(row))] for row in ends])
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9), []
    for _ in range(steps):
        loss = label_smoothed_loss(model(src, tgt_in)[tgt_out != 0], tgt_out[tgt_out != 0]) / (tgt_out != 0).sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


# What a solution must agree with.
LIBRARY = {"19.model": OfTheLibrary, "19.memorize": library_memorize}
