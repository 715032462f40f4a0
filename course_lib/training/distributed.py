"""Several processes train one model: torchrun starts them, each takes its rows of every batch, rank 0 writes."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from course_lib.data import Batch
from course_lib.tokenizer import PAD_ID
from course_lib.training.evaluation import batch_loss
from course_lib.transformer import Transformer


@contextmanager
def process_group(device: str) -> Iterator[str]:
    """In the block, the processes that torchrun has started work together; without torchrun it changes nothing.

    Args:
        device: "cpu" (they talk through gloo), or "cuda" (nccl): then each process of a machine takes a GPU of its own.

    Yields:
        the device of this process.

    Raises:
        ValueError: on another device, or if a machine has fewer GPUs than processes.
    """
    if not dist.is_torchelastic_launched():
        yield device
        return
    import torch.distributed.nn.functional  # noqa: F401  loaded later, its default arguments would keep the group

    device, backend = _own_device(device)
    store, rank, world_size = next(dist.rendezvous("env://"))
    dist.init_process_group(backend, store=_new_page(store), rank=rank, world_size=world_size)
    try:
        yield device
    finally:
        dist.destroy_process_group()  # its threads end when nothing holds it; later than Python, they may abort it


def _new_page(store: dist.Store) -> dist.Store:
    """The part of the processes' address book that belongs to this start of theirs.

    torchrun keeps one book for all restarts; who is back first would find the addresses of processes that are gone, and
    wait for them (PyTorch issue 135712). Several machines count their restarts apart: there, torchrun must be called
    with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    if os.environ["LOCAL_WORLD_SIZE"] != os.environ["WORLD_SIZE"]:
        return store
    return dist.PrefixStore(f"start {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)


def _own_device(device: str) -> tuple[str, str]:
    """The device of this process, and by what its processes talk."""
    kind, local = torch.device(device).type, int(os.environ["LOCAL_RANK"])
    if kind == "cpu":
        return device, "gloo"
    if kind != "cuda":
        raise ValueError(f"several processes train on cpu or cuda, got {device}")
    if local >= (gpus := torch.cuda.device_count()):
        raise ValueError(f"process {local} of this machine needs a GPU of its own, there are {gpus}")
    torch.cuda.set_device(local)
    return f"cuda:{local}", "cpu:gloo,cuda:nccl"


def rank() -> int:
    """The number of this process, from 0; the process with rank 0 alone writes files and prints."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes there are, on all machines together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def share_of(batch: Batch, rank: int, world_size: int) -> tuple[Batch, float]:
    """The rows rank, rank + world_size, ... of a batch: about equally long ones for each process.

    Args:
        batch: the whole one, which every process has.
        rank: of the process, 0 to world_size - 1.
        world_size: number of processes.

    Returns:
        its rows, without columns that are padding only; and the factor of their loss: 1, or 0 where the batch has too
        few rows and the process repeats one, because it must take part in every step.
    """
    if world_size == 1:
        return batch, 1.0
    enough = rank < len(batch.src)
    rows = slice(rank, None, world_size) if enough else slice(1)
    src, tgt_in, tgt_out = (_trimmed(ids[rows]) for ids in (batch.src, batch.tgt_in, batch.tgt_out))
    return Batch(src, tgt_in, tgt_out), float(enough)


def _trimmed(ids: Tensor) -> Tensor:
    return ids[:, : int((ids != PAD_ID).sum(dim=1).max())]


class BatchLoss(nn.Module):
    """A batch to its summed loss, as a module: PyTorch's wrappers act where the `forward` of a module is called.

    Args:
        model: that is trained.
        smoothing: label smoothing.
        loss: of a batch, called as `batch_loss` is.
    """

    def __init__(self, model: Transformer, smoothing: float, loss: Callable = batch_loss):
        super().__init__()
        self.model, self.smoothing, self.loss = model, smoothing, loss

    def forward(self, batch: Batch) -> Tensor:
        """The loss summed over the real tokens, in nats."""
        return self.loss(self.model, batch, smoothing=self.smoothing)[0]


def shared_loss(model: Transformer, smoothing: float, loss: Callable = batch_loss) -> nn.Module:
    """A BatchLoss whose gradients are, after `backward`, the mean over all processes; alone, a plain one."""
    plain = BatchLoss(model, smoothing, loss)
    if world_size() == 1:
        return plain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # later versions call it forward_sync_buffers
        return DistributedDataParallel(plain, broadcast_buffers=False)


def sharded_loss(model: Transformer, smoothing: float) -> nn.Module:
    """As shared_loss, but each process holds only its part of weights, gradients and moments.

    The whole weights of a layer are put together when it computes, and forgotten after it. For models that do not fit
    one device: make the optimizer after this call, `DTensor.full_tensor()` shows a whole tensor again.
    """
    from torch.distributed.device_mesh import init_device_mesh  # here, because loading it takes a second
    from torch.distributed.fsdp import fully_shard

    loss = BatchLoss(model, smoothing)
    # Without a mesh all would move to the GPU, if there is one, also what is to be computed on the CPU.
    mesh = init_device_mesh(next(model.parameters()).device.type, (world_size(),))
    getattr(mesh, "_pg_registry", {}).clear()  # for torch.compile alone; caches of meshes would keep the group
    for layer in (*model.encoder.layers, *model.decoder.layers):
        fully_shard(layer, mesh=mesh)
    return fully_shard(loss, mesh=mesh)


def gradients(loss: nn.Module, group: list[Batch], device: torch.device, precision: str = "float32") -> float:
    """Adds to the parameters the gradient of the mean loss over all target tokens of a group of batches.

    Each process computes the sum over its own rows, divided by the tokens of all, so that shares may differ in length.

    Args:
        loss: from shared_loss or sharded_loss.
        group: micro-batches, the same whole ones in every process.
        device: that the model is on.
        precision: "float32", or "bfloat16" for mixed precision.

    Returns:
        the mean loss, nats a token.
    """
    tokens, mean, count = sum(batch.num_tokens for batch in group), 0.0, world_size()
    for number, batch in enumerate(group, start=1):
        own, factor = share_of(batch, rank(), count)
        with _talking(loss, number == len(group)):
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                own_sum = factor * loss(own.to(device))
            (count * own_sum / tokens).backward()  # count: the wrapper divides by it
        mean += own_sum.item() / tokens
    return total(mean)


def _talking(loss: nn.Module, last: bool) -> AbstractContextManager:
    """Gradients are exchanged once a step, with the last micro-batch."""
    return nullcontext() if last or not isinstance(loss, DistributedDataParallel) else loss.no_sync()


def total(value: float) -> float:
    """The sum of a number over all processes, the same in each."""
    if world_size() == 1:
        return value
    tensor = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(tensor)
    return tensor.item()


def anyone(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    return total(float(flag)) > 0


def from_everyone(tensor: Tensor) -> list[Tensor]:
    """A tensor on the CPU, of one shape everywhere, from each process in the order of ranks."""
    if world_size() == 1:
        return [tensor]
    found = [torch.empty_like(tensor) for _ in range(world_size())]
    dist.all_gather(found, tensor)
    return found


def check_agreement(text: str, what: str) -> None:
    """Raises ValueError, in each process, unless all have the same text; `what` it tells of."""
    everyone = from_everyone(torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8))
    if len({bytes(each.tolist()) for each in everyone}) > 1:
        raise ValueError(f"the {world_size()} processes differ in their {what}")
