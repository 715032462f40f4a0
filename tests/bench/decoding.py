"""Translations a second with the same weights, beside Hugging Face and CTranslate2; what the cache brings."""

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean, median

import torch
from transformers import M2M100ForConditionalGeneration

from course_lib import Transformer, Translator, beam_search, greedy
from course_lib.data import load_corpus, pad
from tests.bench.hugging_face import to_ctranslate2, to_hugging_face
from tests.bench.measure import interleaved, ratio

SENTENCES, ONE_BY_ONE = 256, 32
LONG = 100
EXTRA = 50  # tokens more than the source has, at most


def rows(*, rounds: int, threads: int) -> list[dict]:
    """Lines of the table: for each batch size, beam and peer the sentences a second and the ratio.

    Each contestant runs with one thread and with all; what counts is the better of the two.
    """
    ids, found = sentences(), []
    for batch, beam in ((64, 1), (64, 4), (1, 1), (1, 4)):
        part = ids if batch > 1 else ids[:: SENTENCES // ONE_BY_ONE]
        contestants = {
            (name, number): partial(prepare, batch, beam, part, number)
            for name, prepare in DECODERS.items()
            for number in {1, threads}
        }
        seconds, results = interleaved(contestants, rounds)
        best = {name: min((1, threads), key=lambda n, name=name: median(seconds[name, n])) for name in DECODERS}
        mine = ("ours", best["ours"])
        for peer in list(DECODERS)[1:]:
            theirs = (peer, best[peer])
            same = [own == other for own, other in zip(results[mine][0], results[theirs][0], strict=True)]
            found.append(
                {
                    "work": f"decode, batch {batch}, {'greedy' if beam == 1 else f'beam {beam}'}",
                    "unit": "sentences/s",
                    "ours": round(len(part) / median(seconds[mine]), 1),
                    "peer": peer,
                    "theirs": round(len(part) / median(seconds[theirs]), 1),
                    "ratio": round(ratio(seconds[theirs], seconds[mine]), 2),
                    "threads": f"{mine[1]} : {theirs[1]}",
                    "same text": round(mean(same), 3),
                }
            )
    return [*found, *(cache_row(batch, rounds=rounds, threads=threads) for batch in (1, 16))]


def cache_row(batch: int, *, rounds: int, threads: int) -> dict:
    """The line of our own decoding without a cache, to a fixed length."""
    contestants = {"ours": partial(cached, batch, threads), "uncached": partial(uncached, batch, threads)}
    seconds, results = interleaved(contestants, max(3, rounds // 2))
    assert results["ours"] == results["uncached"]
    return {
        "work": f"decode {LONG} tokens, batch {batch}, greedy",
        "unit": "tokens/s",
        "ours": round(batch * LONG / median(seconds["ours"])),
        "peer": "ours without the cache",
        "theirs": round(batch * LONG / median(seconds["uncached"])),
        "ratio": round(ratio(seconds["uncached"], seconds["ours"]), 2),
        "threads": f"{threads} : {threads}",
    }


def sentences() -> list[list[int]]:
    """Source ids of test sentences, the shortest first, as a translator would sort them."""
    texts = sorted({pair.src for pair in load_corpus("tatoeba").test})
    random.Random(0).shuffle(texts)
    return sorted(Translator.from_pretrained("everyday").encode(texts[:SENTENCES]), key=len)


def ours(batch: int, beam: int, ids: list[list[int]], threads: int) -> Callable[[int], list[list[int]]]:
    """Prepares our decoding: it returns the target ids of all sentences."""
    torch.set_num_threads(threads)
    model = Translator.from_pretrained("everyday").model
    return lambda number: [row for part in batches_of(ids, batch) for row in our_search(model, beam, pad(part))]


def our_search(model: Transformer, beam: int, src: torch.Tensor) -> list[list[int]]:
    """The best target ids of each row."""
    if beam == 1:
        return [found.ids for found in greedy(model, src)]
    return [best.ids for best, *_ in beam_search(model, src, beam_size=beam)]


def hugging_face(batch: int, beam: int, ids: list[list[int]], threads: int) -> Callable[[int], list[list[int]]]:
    """The same with transformers' generate."""
    torch.set_num_threads(threads)
    model = to_hugging_face(Translator.from_pretrained("everyday").model)
    return lambda number: [row for part in batches_of(ids, batch) for row in their_search(model, beam, pad(part))]


def their_search(model: M2M100ForConditionalGeneration, beam: int, src: torch.Tensor) -> list[list[int]]:
    """The best target ids of each row."""
    found = model.generate(
        input_ids=src,
        attention_mask=src.ne(0),
        num_beams=beam,
        do_sample=False,
        max_new_tokens=src.shape[1] + EXTRA,
        early_stopping=beam > 1,
    )
    return [[token for token in row[1:] if token > 2] for row in found.tolist()]


def ctranslate(batch: int, beam: int, ids: list[list[int]], threads: int) -> Callable[[int], list[list[int]]]:
    """The same with CTranslate2 in float32."""
    import ctranslate2  # here, so that the GPU part does without it

    translator = Translator.from_pretrained("everyday")
    tokens = [translator.tokenizer.token(index) for index in range(translator.tokenizer.vocab_size)]
    index = {token: number for number, token in enumerate(tokens)}
    with tempfile.TemporaryDirectory() as folder:
        to_ctranslate2(to_hugging_face(translator.model), tokens, Path(folder))
        theirs = ctranslate2.Translator(folder, compute_type="float32", intra_threads=threads, inter_threads=1)

    def decode(rows: list[list[int]]) -> list[list[int]]:
        found = theirs.translate_batch(
            [[tokens[token] for token in row] for row in rows],
            beam_size=beam,
            length_penalty=0.6,
            max_decoding_length=len(rows[-1]) + EXTRA,
            max_batch_size=0,
        )
        return [[index[token] for token in one.hypotheses[0]] for one in found]

    return lambda number: [row for rows in batches_of(ids, batch) for row in decode(rows)]


DECODERS = {"ours": ours, "Hugging Face": hugging_face, "CTranslate2": ctranslate}


def cached(batch: int, threads: int) -> Callable[[int], list[list[int]]]:
    """Prepares greedy decoding of LONG tokens, all but the last as a prefix that is given; it returns them."""
    torch.set_num_threads(threads)
    model, src, prefix = _long(batch)
    return lambda number: [found.ids for found in greedy(model, src, prefix=prefix, max_len=LONG)]


def uncached(batch: int, threads: int) -> Callable[[int], list[list[int]]]:
    """The same, but the whole beginning goes through the decoder again for each token."""
    torch.set_num_threads(threads)
    model, src, prefix = _long(batch)
    config = model.config

    def decode(number: int) -> list[list[int]]:
        with torch.no_grad():
            memory, ids = model.encode(src), torch.full((batch, 1), config.bos_id)
            for step in range(LONG):
                logits = model.generator(model.decode(ids, memory, src)[:, -1])
                logits[:, [config.pad_id, config.bos_id]] = -torch.inf
                best = logits.argmax(dim=-1, keepdim=True)
                ids = torch.cat([ids, best if step == LONG - 1 else torch.full_like(best, prefix[step])], dim=1)
        return [[token for token in row if token != config.eos_id] for row in ids[:, 1:].tolist()]

    return decode


def _long(batch: int) -> tuple[Transformer, torch.Tensor, list[int]]:
    model = Translator.from_pretrained("everyday").model
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(4, model.config.vocab_size, (batch, 12), generator=generator)
    return model, src, torch.randint(4, model.config.vocab_size, (LONG - 1,), generator=generator).tolist()


def batches_of(ids: list[list[int]], size: int) -> list[list[list[int]]]:
    """So many rows at once."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]
