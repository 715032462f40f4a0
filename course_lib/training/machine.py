"""What the timings in a log depend on."""

import os
import platform
import subprocess
from pathlib import Path

import torch

HERE = Path(__file__).parent


def revision() -> str | None:
    """The commit of the code, with a plus sign if files differ from it; None where the code is in no repository."""

    def git(*command: str) -> str:
        return subprocess.run(["git", "-C", str(HERE), *command], capture_output=True, text=True, check=True).stdout

    try:
        return git("rev-parse", "HEAD").strip() + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_machine(device: str) -> dict:
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
