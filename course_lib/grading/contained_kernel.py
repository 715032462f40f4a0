"""A submission's kernel: limits itself, loads what every assignment needs, then is an ordinary IPython kernel."""

import os
import resource
import sys


def limit(memory: int, file: int) -> None:
    """Limits this process, and what it starts, for good.

    Args:
        memory: bytes that may be written to; address space that is only reserved, as CUDA does, is free.
        file: bytes of any file that it writes.
    """
    for kind, amount in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))


def main() -> None:
    """Starts the kernel: the limits come in the environment, everything else goes to ipykernel."""
    limit(int(os.environ["COURSE_MEMORY"]), int(os.environ["COURSE_FILE"]))
    os.environ.pop("JPY_PARENT_PID", None)  # in a process namespace of its own a kernel would think its parent gone
    import torch

    import course_lib.grading.remote  # noqa: F401  (loaded now, while another submission runs)
    from course_lib.checks import warm_up

    warm_up()
    torch.set_num_threads(1)
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance(argv=sys.argv[1:])


if __name__ == "__main__":
    main()
