"""What the timings in a log depend on."""

import os
import platform
from pathlib import Path

import torch


def machine(device: str) -> dict:
    """What a timing depends on.

    Args:
        device: that is computed on, "cpu", "cuda:0", ...

    Returns:
        the name of the processor or GPU, how many cores the machine has, how many threads torch uses, the versions of
        torch and Python, and the operating system.
    """
    processor = platform.processor() or platform.machine()
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        names = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    if device.startswith("cuda"):
        processor = torch.cuda.get_device_name(device)
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
    }
