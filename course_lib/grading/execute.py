"""Runs a submission contained, and judges it from outside: the submission's process only says what it computed."""

import ast
import secrets
import shutil
import textwrap
import traceback
from pathlib import Path
from time import monotonic

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from nbgrader.utils import is_grade, is_solution
from traitlets import Integer

from course_lib.assignments import find
from course_lib.checks import VISIBLE, CheckFailed, Exercise, Reply, hidden_seed, read_replies, verdict, write
from course_lib.grading.beside import taken
from course_lib.grading.kernel_pool import Kernel, take
from course_lib.grading.personal import variants_of
from course_lib.grading.reading import only_defines
from course_lib.grading.remote import missing, source_of_ask

ASK = "import course_lib.grading.remote as _remote; _remote.answer({!r}, globals(), {!r}, {!r})"
LONGEST_MESSAGE = 2_000  # characters, of what a verdict says: results of a submission are part of it
OUT_OF_TIME = "OutOfTime"
NOT_COMPARED = "your results cannot be compared"
KEPT = ("text/plain", "image/png")  # of what a cell shows: nothing that a browser would run


class ContainedExecute(Execute):
    """nbgrader's Execute with four differences.

    The kernel is contained and limited, and has no answers. A cell of tests that only calls `check` is not run there:
    the cases go to the kernel as a file and in random order, results come back as a file, and the verdict is this
    process's, so that nothing that a submission does to assert, to checks or to its notebook can make a wrong answer
    right. A cell that kills the kernel, or cannot be interrupted, costs that cell: a new kernel runs the earlier ones
    again and goes on. And the cells that a learner added have a part of the time, so that the others have the rest.
    """

    budget = Integer(180, help="seconds for all cells of a notebook").tag(config=True)
    added_budget = Integer(60, help="of these, seconds for the cells that the learner added").tag(config=True)
    memory_limit = Integer(4 * 2**30, help="bytes of memory of a submission").tag(config=True)
    file_limit = Integer(64 * 2**20, help="bytes of a file that a submission writes").tag(config=True)
    output_limit = Integer(200_000, help="characters of output of one cell that are kept").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        """Runs all cells of a submission."""
        self._start_clock()
        self._beside = Path(resources.get("metadata", {}).get("path") or ".")
        self._kernel = self._fresh()
        self._variants = variants_of(nb)  # of what was released: a submission's own metadata are gone
        try:
            return super().preprocess(nb, resources, km=self._kernel.manager)
        finally:
            self._disconnect()

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """Runs or judges one cell; whatever happens in it, the next ones have their turn."""
        if cell.cell_type != "code" or cell.metadata.get("home"):  # such as a training; the mark is the release's
            return cell, resources
        added = _added(cell)
        if self._left(added) <= 0:
            whose = f"your own cells had {self.added_budget}" if added else f"the notebook had {self.budget}"
            cell.outputs = [_error(OUT_OF_TIME, f"{whose} seconds; this cell did not run")]
            return cell, resources
        try:
            if calls := _checks(cell):
                self._judge(cell, calls, index)
            else:
                self._run(cell, index, added=added)
        except DeadKernelError:
            cell.outputs = [_error("KernelDied", "this cell ended its process, or took more memory than it may")]
            self._start_again(index)
        except CellTimeoutError:
            cell.outputs = [_error("CellTimeoutError", f"no end after {self.timeout} seconds, even when interrupted")]
            self._start_again(index)
        return cell, resources

    def process_message(self, msg: dict, cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Handles messages as nbclient does, but keeps the beginning of a flood only, and of rich output no HTML."""
        content = msg["content"]
        if "data" in content:
            content["data"] = {kind: content["data"][kind] for kind in KEPT if kind in content["data"]}
            content["metadata"] = {}
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data", "error"):
            before = self._written
            self._written += len(str(content))
            if before > self.output_limit:
                return None
            if self._written > self.output_limit:
                _cut(content)
        return super().process_message(msg, cell, cell_index)

    def _start_clock(self) -> None:
        self._deadline, self._spare = monotonic() + self.budget, float(self.added_budget)

    def _left(self, added: bool) -> float:
        """Seconds; for what the learner added no more than is kept free of the assignment's own cells."""
        left = self._deadline - monotonic()
        return min(left, self._spare) if added else left

    def _run(self, cell: NotebookNode, index: int, *, added: bool = False) -> None:
        self._written, started = 0, monotonic()
        self.timeout_func = lambda cell: max(1, min(self.timeout, int(self._left(added)) + 1))
        try:
            self.execute_cell(cell, index, store_history=True)
        finally:
            self._spare -= (monotonic() - started) * added

    def _judge(self, cell: NotebookNode, calls: list[tuple[str, str, bool]], index: int) -> None:
        lines, shares = [], []
        try:
            for name, variable, hidden in calls:
                exercise = find(name, self._variants.get(name))
                cases = exercise.inputs(hidden_seed() if hidden else VISIBLE)
                found = self._ask(exercise, variable, cases, index)
                try:
                    lines.append(_verdict(exercise, cases, found))
                    shares.append(1.0)
                except CheckFailed as error:
                    if not error.share:
                        raise
                    lines.append(f"✗ {_shortened(str(error))}")
                    shares.append(error.share)
        except CheckFailed as error:
            said = _shortened(str(error))
            cell.outputs = [_error("CheckFailed", said, f"✗ {said}")]
        else:
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="\n".join(lines) + "\n")]
            if min(shares) < 1:
                cell.outputs.append(_points(min(shares) * cell.metadata.nbgrader.points))
        finally:
            self.nb.cells[index] = cell

    def _ask(self, exercise: Exercise, variable: str, cases: list[tuple], index: int) -> list[Reply]:
        name, folder, token = exercise.name, self._kernel.folder, secrets.token_hex(16)  # that nobody can take first
        order = secrets.SystemRandom().sample(range(len(cases)), len(cases))
        shuffled = [cases[number] for number in order]
        write([source_of_ask(exercise), exercise.names(), exercise.counts, shuffled], folder / f"cases-{token}")
        question = nbformat.v4.new_code_cell(ASK.format(variable, str(folder), token))
        self._run(question, index)
        try:
            found = read_replies(folder / f"replies-{token}")
        except (OSError, ValueError) as error:
            said = next((f"{out.ename}: {out.evalue}" for out in question.outputs if out.output_type == "error"), error)
            if str(said).startswith("KeyboardInterrupt"):
                raise CheckFailed(f"{name}: no answer in {self.timeout} seconds; does a loop not end?") from error
            raise CheckFailed(f"{name}: your notebook's kernel gave no answer that can be read ({said})") from error
        if found[:1] == [missing(variable)]:
            raise CheckFailed(f"{name}: {found[0].problem}")
        if len(found) != len(cases):
            raise CheckFailed(f"{name}: {len(cases)} cases, and replies to {len(found)}")
        return [found[order.index(number)] for number in range(len(cases))]

    def _fresh(self) -> Kernel:
        kernel = take(Path.cwd(), self.memory_limit, self.file_limit)
        for path in taken(self._beside):
            shutil.copy(path, kernel.folder)
        return kernel

    def _disconnect(self) -> None:
        if self.kc is not None:
            self.kc.stop_channels()
        self._kernel.close()

    def _start_again(self, index: int, *, again: bool = True) -> None:
        """A new kernel, in which the cells before this one run again (or not), their outputs as they were."""
        self._disconnect()
        self._kernel = self._fresh()
        self.km = self._kernel.manager
        self.start_new_kernel_client()
        if not again:
            return
        for number, cell in enumerate(self.nb.cells[:index]):
            ended = any(out.output_type == "error" for out in cell.get("outputs", []))
            added = _added(cell)
            runs = cell.cell_type == "code" and not cell.metadata.get("home") and not _checks(cell)
            if runs and not ended and self._left(added) > 0:
                try:
                    self._run(nbformat.v4.new_code_cell(cell.source), number, added=added)
                except (DeadKernelError, CellTimeoutError):  # what went well once did not go well twice
                    return self._start_again(index, again=False)
                finally:
                    self.nb.cells[number] = cell


def _verdict(exercise: Exercise, cases: list[tuple], found: list[Reply]) -> str:
    """The verdict; results that no comparison can take are wrong, and no error of the grading."""
    try:
        return verdict(exercise, cases, found)
    except CheckFailed:
        raise
    except Exception as error:  # whatever a stranger's results raise
        traceback.print_exc()  # for the log: it may be ours
        raise CheckFailed(f"{exercise.name}: {NOT_COMPARED} ({type(error).__name__}: {error})") from error


def _shortened(said: str) -> str:
    return textwrap.shorten(said, LONGEST_MESSAGE) if len(said) > LONGEST_MESSAGE else said


def _points(points: float) -> NotebookNode:
    """The output that nbgrader reads as a part of a cell's points."""
    return nbformat.v4.new_output("execute_result", data={"text/plain": f"{points:g}"}, execution_count=1)


def _cut(content: dict) -> None:
    """Leaves the beginning of a message."""
    note = "\n… more output is not kept\n"
    if "text" in content:
        content["text"] = content["text"][:1000] + note
    if "data" in content:
        content["data"] = {"text/plain": str(content["data"].get("text/plain", ""))[:1000] + note}
    if "traceback" in content:
        content["evalue"] = str(content["evalue"])[:1000]
        content["traceback"] = [f"{content['ename']}: {content['evalue']}{note}"]


def _added(cell: NotebookNode) -> bool:
    """Whether it is the learner's own, and does more than define: each code cell of an assignment has a mark."""
    return not cell.metadata.get("nbgrader") and not only_defines(cell.source)


def _checks(cell: NotebookNode) -> list[tuple[str, str, bool]]:
    """The exercise, the variable and whether hidden cases are meant, of each call in a cell of tests; else none."""
    if cell.cell_type != "code" or not is_grade(cell) or is_solution(cell):
        return []
    try:
        calls = [_call(statement) for statement in ast.parse(cell.source).body]
    except SyntaxError:
        return []
    return calls if all(calls) else []


def _call(statement: ast.stmt) -> tuple[str, str, bool] | None:
    match statement:
        case ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str(name)), ast.Name(variable)], keywords)) if all(
            keyword.arg == "hidden" for keyword in keywords
        ):
            return name, variable, bool(keywords)
    return None


def _error(name: str, text: str, shown: str | None = None) -> NotebookNode:
    return nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[shown or f"{name}: {text}"])
