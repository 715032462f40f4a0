"""Training steps a second, beside torch.nn.Transformer and the Annotated Transformer: Multi30k, batches of 2,048."""

import statistics
from collections.abc import Callable
from functools import partial
from itertools import islice

import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib import Tokenizer, Transformer, model_preset
from course_lib.data import Batch, BucketedBatches, encode_pairs, load_corpus
from course_lib.training import train_preset
from course_lib.training.allocator import keep_freed_memory
from course_lib.training.evaluation import batch_loss
from course_lib.training.run import _optimizer as our_optimizer
from tests.bench import annotated, torch_nn
from tests.bench.measure import interleaved, peak, ratio

VOCAB, BATCH_TOKENS, BATCHES = 8000, 2048, 8
SMOOTHING = 0.1
PEERS = {"torch.nn.Transformer": torch_nn.TorchTransformer, "Annotated Transformer": annotated.AnnotatedTransformer}
OPTIMIZERS = {"torch.nn.Transformer": torch_nn.optimizer, "Annotated Transformer": annotated.optimizer}


def rows(*, rounds: int, threads: int) -> list[dict]:
    """Lines of the table: for each size and peer target tokens a second, the ratio, and our share of the peak."""
    batches, found = first_batches(), []
    tokens = statistics.mean(batch.num_tokens for batch in batches)
    best = peak(threads)
    for size in ("tiny", "small"):
        contestants = {name: partial(steps, name, size, batches, threads) for name in ("ours", *PEERS)}
        seconds, _ = interleaved(contestants, rounds, warm_up=2)
        ours = statistics.median(seconds["ours"])
        for peer in PEERS:
            found.append(
                {
                    "work": f"train {size}",
                    "unit": "target tokens/s",
                    "ours": round(tokens / ours),
                    "peer": peer,
                    "theirs": round(tokens / statistics.median(seconds[peer])),
                    "ratio": round(ratio(seconds[peer], seconds["ours"]), 2),
                    "share of peak": round(operations(size, batches) / ours / best, 2),
                }
            )
    return found


def first_batches(batch_tokens: int = BATCH_TOKENS) -> list[Batch]:
    """Of the corpus as everybody trains on it."""
    corpus = load_corpus("multi30k")
    tokenizer = Tokenizer.train((text for pair in corpus.train for text in (pair.src, pair.tgt)), vocab_size=VOCAB)
    pairs = encode_pairs(tokenizer, corpus.train)
    return list(islice(BucketedBatches(pairs, batch_tokens=batch_tokens, seed=0).epoch(0), BATCHES))


def steps(name: str, size: str, batches: list[Batch], threads: int) -> Callable[[int], None]:
    """Prepares a model in training, and returns its step on the batch of a round."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    torch.manual_seed(0)
    config = model_preset(size, vocab_size=VOCAB)
    if name == "ours":
        model = Transformer(config).train()
        optimizer = our_optimizer(model, train_preset(size))
        loss = partial(our_loss, model)
    else:
        model = PEERS[name](config).train()
        optimizer, loss = OPTIMIZERS[name](model), partial(model.loss, smoothing=SMOOTHING)

    def step(number: int) -> None:
        optimizer.zero_grad()
        loss(batches[number % len(batches)]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def our_loss(model: Transformer, batch: Batch) -> torch.Tensor:
    """The mean a target token."""
    return batch_loss(model, batch, smoothing=SMOOTHING)[0] / batch.num_tokens


def operations(size: str, batches: list[Batch]) -> float:
    """Multiplications and additions that our step's matrix products take, forward and backward."""
    model = Transformer(model_preset(size, vocab_size=VOCAB)).to(batches[0].src.device).train()
    with FlopCounterMode(display=False) as counter:
        for batch in batches:
            our_loss(model, batch).backward()
    return counter.get_total_flops() / len(batches)
