"""One translation with all that can be looked into: its weights, what else the decoder might have said, and what if."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from course_lib.analysis.ablation import Head, ablate_heads
from course_lib.data import pad
from course_lib.decoding import greedy
from course_lib.recording import KINDS, AttentionMaps, record_attention
from course_lib.transformer import eval_mode
from course_lib.translator import Translator


@dataclass(frozen=True)
class Candidate:
    """A token that the decoder considered at some place, with its probability after the beginning that was there."""

    id: int
    token: str
    probability: float


@dataclass(frozen=True)
class Exploration:
    """A greedy translation, open to inspection.

    Args:
        text, src_tokens, tgt_tokens: as in Translation.
        tgt_ids: of tgt_tokens.
        probabilities: of each target token, after the tokens before it.
        candidates: for each target token the most probable tokens at its place, best first.
        attention: as in Translation, always recorded.
    """

    text: str
    src_tokens: list[str]
    tgt_tokens: list[str]
    tgt_ids: list[int]
    probabilities: list[float]
    candidates: list[list[Candidate]]
    attention: AttentionMaps


def explore(
    translator: Translator,
    text: str,
    *,
    prefix: Sequence[int] = (),
    target: Sequence[int] = (),
    silent: Iterable[Head] = (),
    num_candidates: int = 5,
) -> Exploration:
    """Translates greedily, from a forced beginning if wanted, and with heads switched off if wanted.

    Or it writes nothing and reads a given translation, token by token: teacher forcing.

    Args:
        translator: of any size.
        text: source sentence.
        prefix: ids of target tokens that the translation must begin with.
        target: ids of a whole translation, with </s>, which the decoder reads instead of its own.
        silent: heads to switch off, see ablate_heads.
        num_candidates: tokens to keep at each place.

    Raises:
        ValueError: if text is empty, several sentences, or too long for the model, the prefix is unusable (see greedy),
            there is a target too, the model has no such head, or num_candidates is below 1.
    """
    if num_candidates < 1:
        raise ValueError(f"num_candidates must be at least 1, got {num_candidates}")
    if len(prefix) and len(target):
        raise ValueError(f"expected a prefix or a target, got both: {list(prefix)} and {list(target)}")
    model, tokenizer = translator.model, translator.tokenizer
    sentence = translator.sentence(text)
    (src_ids,) = translator.encode([sentence.text])
    src = pad([src_ids]).to(next(model.parameters()).device)
    with eval_mode(model), ablate_heads(model, silent):
        outputs = list(target) or greedy(model, src, prefix=prefix)[0].outputs(model.config.eos_id)
        tgt_in = torch.tensor([[model.config.bos_id, *outputs[:-1]]], device=src.device)
        with record_attention(model) as maps:
            probs = model(src, tgt_in)[0].float().softmax(dim=-1).cpu()  # (tgt_len, vocab)
    probs[:, [model.config.pad_id, model.config.bos_id]] = 0  # no search ever takes them
    top = probs.topk(min(num_candidates, probs.shape[-1]))
    return Exploration(
        text=sentence.restore(tokenizer.decode(outputs)),
        src_tokens=sentence.restore_tokens(map(tokenizer.token, src_ids)),
        tgt_tokens=sentence.restore_tokens(map(tokenizer.token, outputs)),
        tgt_ids=outputs,
        probabilities=probs.gather(1, torch.tensor(outputs)[:, None]).squeeze(1).tolist(),
        candidates=[
            [Candidate(i, tokenizer.token(i), p) for i, p in zip(ids, values, strict=True)]
            for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
        attention=AttentionMaps(**{kind: [weights[0].cpu() for weights in getattr(maps, kind)] for kind in KINDS}),
    )
