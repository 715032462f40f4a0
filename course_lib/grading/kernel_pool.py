"""Contained kernels, one started ahead: while one submission runs, the next one's kernel loads its libraries."""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from course_lib.grading.sandbox import command, environment


class _Contained(KernelSpecManager):
    """The one kernel that submissions get, whatever their notebooks ask for."""

    def __init__(self, argv: list[str], **kwargs) -> None:
        super().__init__(**kwargs)
        self._argv = argv

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(argv=self._argv, display_name="submission", language="python", interrupt_mode="message")


class Kernel:
    """A kernel with a folder of its own.

    Attributes:
        folder: all that the kernel can write to.
        manager: jupyter_client's.
    """

    def __init__(self, course: Path, memory: int, file: int) -> None:
        """
        Args:
            course: the teacher's folder, which the kernel must not see.
            memory: bytes, see `contained_kernel.limit`.
            file: bytes, see `contained_kernel.limit`.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="grading-"))
        inside = [*command(self.folder, [course, Path.home(), self.folder.parent])]
        argv = [*inside, sys.executable, "-m", "course_lib.grading.contained_kernel", "-f", "{connection_file}"]
        runtime = self.folder / ".kernel"
        runtime.mkdir()
        self.manager = AsyncKernelManager(
            transport="ipc",
            connection_file=str(runtime / "c.json"),
            kernel_spec_manager=_Contained(argv),
            kernel_name="submission",
        )
        variables = environment(self.folder, memory, file)
        run_sync(self.manager.start_kernel)(cwd=str(self.folder), env=variables)

    def close(self) -> None:
        """Kills the kernel and whatever it started, and removes its folder."""
        if self.manager.provisioner is not None:
            run_sync(self.manager.provisioner.kill)()
            run_sync(self.manager.provisioner.wait)()
        run_sync(self.manager.cleanup_resources)()
        shutil.rmtree(self.folder, ignore_errors=True)


_ahead: dict[tuple, Kernel] = {}


def take(course: Path, memory: int, file: int) -> Kernel:
    """Returns a kernel that nothing has run in, and starts the next one; the arguments are those of `Kernel`."""
    wanted = (course, memory, file)
    kernel = _ahead.pop(wanted, None) or Kernel(*wanted)
    _ahead[wanted] = Kernel(*wanted)
    return kernel


@atexit.register
def _close() -> None:
    while _ahead:
        _ahead.popitem()[1].close()
