"""Whoever cheats gets no point; and each cheat has been seen to earn some where the grading is weaker."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Listener
from pathlib import Path
from threading import Thread

import pytest

from course_lib.assignments import find
from course_lib.checks.tree import on_meta
from course_lib.grading.sandbox import available
from notebooks.source.build_assignments import FOLDER
from tests.helpers.classroom import LIMITS, Classroom, Submission, forge, insert

ASSIGNMENT = "03_attention"
CHECKOUT = Path(__file__).resolve().parents[2]
VARIABLES = {
    "03-scores": "scores",
    "03-softmax": "softmax",
    "03-attention": "attention",
    "03-repeated": "prediction",
    "03-additive": "additive",
}

# How grading can be weak: lines for nbgrader_config.py.
WEAK = {
    "nbgrader alone": """
from nbgrader.converters import Autograde
c.Autograde.autograde_preprocessors = Autograde.autograde_preprocessors.default()
""",
    "cells as submitted": """
from nbgrader.converters import Autograde
from nbgrader.preprocessors import CheckCellMetadata
c.Autograde.sanitize_preprocessors = [CheckCellMetadata]
c.Autograde.autograde_preprocessors = Autograde.autograde_preprocessors.default()
""",
    "answers mounted": """
from course_lib.grading import sandbox
sandbox.library = lambda: sandbox.LIBRARY
""",
    "not contained": """
from course_lib.grading import sandbox
sandbox.available = lambda: False
""",
    "hides what is known alone": """
from course_lib.grading import sandbox
sandbox.HIDDEN = ()
""",
    "takes an excuse": """
from course_lib.checks import verdict
from course_lib.checks.exercise import NUMBERLESS
from course_lib.grading import execute
def believing(exercise, cases, found):
    excused = all(reply.problem in (None, NUMBERLESS) and reply.result is None for reply in found)
    return "✓" if excused else verdict(exercise, cases, found)
execute.verdict = believing
""",
    "compares carelessly": """
from course_lib.checks import judge
def numbers(result):
    return [x for one in result for x in numbers(one)] if isinstance(result, tuple) else result.flatten().tolist()
def careless(expected, got, *rest, **more):
    try:
        far = [abs(one - other) > 1e-4 for one, other in zip(numbers(expected), numbers(got))]
    except NotImplementedError:
        return None  # of the device meta
    except Exception as error:
        return str(error)
    return "too far" if any(far) else None
judge.difference = careless
""",
    "asks what everybody knows": """
from course_lib.grading import execute
execute.hidden_seed = lambda: 0
""",
    "asks once": """
from course_lib.checks import verdict
from course_lib.grading import execute
execute.verdict = lambda exercise, cases, found: verdict(exercise, cases[:1], found[:1])
""",
}


@dataclass(frozen=True)
class Cheat:
    """A way to points without work.

    Attributes:
        weakness: of the grading under which it succeeds.
        code: defines `take`, which has an answer to each exercise by its name; or nothing of the kind if `first`.
        first: the code is a cell of its own in front of stubs that nobody touched.
        edit: what else is done to the notebook.
    """

    weakness: str
    code: str = ""
    first: bool = False
    edit: Callable = lambda notebook: None


FILES = """import json, os, re, subprocess
from pathlib import Path
import course_lib
LIBRARY = Path(course_lib.__file__).parent
CHECKOUT = Path({checkout!r})
COURSE = Path({course!r})
def solved(codes, name):
    names = {{}}
    for code in codes:
        try:
            exec(code, names)
        except Exception:
            pass
    return names["prediction" if name == "03.repeated" else name[3:]]
def notebook(text):
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
def take(name):
    return solved({codes}, name)
"""
FOUND = "re.split('(?m)^# %%.*', (LIBRARY / 'assignments/a03_attention/text.py').read_text())"
SOURCE = "(COURSE / 'source/03_attention/03_attention.ipynb').read_text()"
OTHERS = "(COURSE / 'submitted/right/03_attention/03_attention.ipynb').read_text()"
SOLUTION = "(CHECKOUT / 'notebooks/assignments/solution/03_attention/03_attention.ipynb').read_text()"
IN_GIT = (
    "subprocess.run(['git', '-C', str(CHECKOUT), '-c', 'safe.directory=*', 'show', "
    "'HEAD:notebooks/assignments/solution/03_attention/03_attention.ipynb'], capture_output=True, text=True).stdout"
)
# A friend who listens at a socket, and one whose home is on this machine, where this program may put either.
RUNTIME = next((one for one in (os.environ.get("XDG_RUNTIME_DIR"), "/run") if one and os.access(one, os.W_OK)), None)
SOCKET = Path(RUNTIME or "/run") / f"course-{os.getpid()}.socket"
FRIEND = Path(f"/home/course-{os.getpid()}/03_attention.ipynb")
ASKED = """__import__("multiprocessing.connection").connection.Client({socket!r}).recv()"""
AT_HOME = "Path({friend!r}).read_text()"
CATALOG = """def take(name):
    from course_lib.assignments import find
    solution = find(name).reference
    return (lambda *inputs: solution(*inputs)) if callable(solution) else solution
"""
ANSWERS = """import course_lib
from pathlib import Path
names = {}
exec((Path(course_lib.__file__).parent / "assignments/a03_attention/answers.py").read_text(), names)
def take(name):
    return names["RIGHT"][name][0]
"""
PATCH = """import course_lib.assignments
course_lib.assignments.check = check = lambda *_, **__: print("✓")
"""
VERDICT = """import course_lib.assignments.catalog as catalog
catalog.verdict = lambda *_: "✓"
"""
TRANSFORMER = """def without_checks(lines):
    return ["pass"] if any("check(" in line for line in lines) else lines
get_ipython().input_transformers_cleanup.append(without_checks)
"""
SHELL = """shell = get_ipython()
whole = shell.transform_cell
shell.transform_cell = lambda code: "pass" if "check(" in code else whole(code)
"""
TRACE = """import sys
def watch(frame, event, argument):
    if frame.f_code.co_name == "verdict":
        frame.f_globals["_difference"] = lambda *_: None
        frame.f_globals["Reply"].problem = None
        frame.f_locals["found"][:] = [frame.f_globals["Reply"](0) for _ in frame.f_locals["cases"]]
sys.settrace(watch)
"""
EXPECTED = """import course_lib.grading.remote as remote
from course_lib.checks import Reply, read, write_replies
from pathlib import Path
def answer(variable, namespace, folder, token):
    from course_lib.assignments import find
    cases = read(Path(folder) / f"cases-{token}")[-1]
    exercise = find("03." + {"prediction": "repeated"}.get(variable, variable))
    write_replies([Reply(exercise.expected(inputs)) for inputs in cases], Path(folder) / f"replies-{token}")
remote.answer = answer
"""
SAYS = """import course_lib.grading.remote as remote
from course_lib.checks import Reply, read, write_replies
from pathlib import Path
def answer(variable, namespace, folder, token):
    cases = read(Path(folder) / f"cases-{token}")[-1]
    write_replies([{reply} for _ in cases], Path(folder) / f"replies-{token}")
remote.answer = answer
"""
NUMBERLESS = "Reply(problem='it asks for numbers that a tensor on the device meta does not have')"
RESULTS = """import torch
def take(name):
    def answer(*inputs):
        query, *others = inputs
        shape = (*query.shape[:-1], others[0].shape[1]) if others else query.shape
        result = {result}
        return (result, result) if name == "03.attention" else result
    return answer
"""
FIRST_CASE = """def take(name):
    return lambda query, key, *rest: query @ key.transpose(1, 2) / 2
"""
KNOWN = """import torch
TABLE = {table!r}
def take(name):
    def answer(*inputs):
        result = TABLE.get(name, {}).get(None if inputs[0].is_meta else round(inputs[0].flatten()[0].item(), 4))
        if result:
            return torch.tensor(result, dtype=inputs[0].dtype)
        return torch.zeros(*inputs[0].shape[:-1], inputs[-1].shape[-2], dtype=inputs[0].dtype, device=inputs[0].device)
    return answer
"""

FROM_FILES = {
    "the text of the assignment": ("answers mounted", FOUND),
    "the instructor's version": ("not contained", f"notebook({SOURCE})"),
    "another student's submission": ("not contained", f"notebook({OTHERS})"),
    "the solution in the checkout": ("not contained", f"notebook({SOLUTION})"),
}
FROM_FILES |= {"the solution in git": ("not contained", f"notebook({IN_GIT})")} if (CHECKOUT / ".git").exists() else {}
FRIENDS = {
    "a friend at a socket": ("hides what is known alone", f"notebook({ASKED})", RUNTIME),
    "a friend's home": ("hides what is known alone", f"notebook({AT_HOME})", os.access("/home", os.W_OK)),
}
FROM_FILES |= {name: (weakness, codes) for name, (weakness, codes, possible) in FRIENDS.items() if possible}
CHEATS = {
    "check replaced": Cheat("nbgrader alone", PATCH, first=True),
    "verdict replaced": Cheat("nbgrader alone", VERDICT, first=True),
    "input transformer": Cheat("nbgrader alone", TRANSFORMER, first=True),
    "shell replaced": Cheat("nbgrader alone", SHELL, first=True),
    "trace function": Cheat("nbgrader alone", TRACE, first=True),
    "checks forged": Cheat("cells as submitted", edit=forge),
    "solution of the catalog": Cheat("answers mounted", CATALOG),
    "answers beside the checks": Cheat("answers mounted", ANSWERS),
    "replies from the reference": Cheat("answers mounted", EXPECTED, first=True),
    "says that it needs numbers": Cheat("takes an excuse", SAYS.replace("{reply}", NUMBERLESS), first=True),
    "says nothing": Cheat("takes an excuse", SAYS.replace("{reply}", "Reply()"), first=True),
    "a number for all": Cheat("compares carelessly", RESULTS.replace("{result}", "torch.full(shape, torch.nan)")),
    "an empty result": Cheat("compares carelessly", RESULTS.replace("{result}", "torch.zeros(0)")),
    "a shape without numbers": Cheat(
        "compares carelessly", RESULTS.replace("{result}", "torch.empty(shape, device='meta')")
    ),
    "one case for all": Cheat("asks once", FIRST_CASE),
    "a table of what is known": Cheat("asks what everybody knows", KNOWN),
} | {name: Cheat(weakness, FILES.replace("{codes}", codes)) for name, (weakness, codes) in FROM_FILES.items()}


def submission(name: str, cheat: Cheat, course: Path) -> Submission:
    """A notebook without an answer, but for what the cheat takes."""
    places = {"{checkout!r}": repr(str(CHECKOUT)), "{course!r}": repr(str(course)), "{table!r}": repr(known())}
    places |= {"{socket!r}": repr(str(SOCKET)), "{friend!r}": repr(str(FRIEND))}
    code = cheat.code
    for place, text in places.items():
        code = code.replace(place, text)
    code = code.replace("{{", "{").replace("}}", "}") if "CHECKOUT" in code else code
    cells = {cell: f"{variable} = None" for cell, variable in VARIABLES.items()}
    if code and not cheat.first:
        cells = {cell: f"{code}\n{variable} = take({cell.replace('-', '.')!r})" for cell, variable in VARIABLES.items()}
    edit = insert(code) if cheat.first else cheat.edit
    return Submission(name.replace(" ", "-"), cells=cells, edit=edit)


def known() -> dict:
    """The results of an exercise for the inputs that everybody sees, known by their first number."""
    exercise = find("03.scores")
    cases = [inputs for inputs in exercise.inputs(0) if not on_meta(inputs)]  # float64 comes last, and stays
    return {exercise.name: {round(case[0].flatten()[0].item(), 4): exercise.expected(case).tolist() for case in cases}}


def points(course: Path, cheats: dict[str, Cheat], settings: str = "") -> dict[str, float]:
    """What the cheats earn: automatic points, by name."""
    classroom = Classroom(course, ASSIGNMENT, f"{LIMITS}{settings}")
    if not settings or any(OTHERS in cheat.code for cheat in cheats.values()):
        classroom.submit(Submission("right"))
    for name, cheat in cheats.items():
        classroom.submit(submission(name, cheat, course))
    classroom.autograde()
    found = classroom.scores()
    assert settings or sum(filter(None, found["right"].values())) == 12
    return {name: sum(filter(None, found[name.replace(" ", "-")].values())) for name in cheats}


@pytest.fixture(scope="module", autouse=True)
def friends() -> Iterator[None]:
    """Both have the solution, and give it to whoever asks."""
    solution = (FOLDER / "solution" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text(encoding="utf-8")
    with ExitStack() as leaving:
        if "a friend's home" in CHEATS:
            leaving.callback(shutil.rmtree, FRIEND.parent)
            FRIEND.parent.mkdir()
            FRIEND.write_text(solution, encoding="utf-8")
        if "a friend at a socket" in CHEATS:
            listener = leaving.enter_context(Listener(str(SOCKET)))
            Thread(target=answer, args=(listener, solution), daemon=True).start()
        yield


def answer(listener: Listener, solution: str) -> None:
    with suppress(OSError):  # of the listener that is closed
        while True:
            with listener.accept() as asking:
                asking.send(solution)


@pytest.fixture(scope="module")
def earned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    return points(tmp_path_factory.mktemp("strong") / "course", CHEATS)


@pytest.fixture(scope="module")
def earned_before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What each cheat earns where the grading has the weakness that it is made for."""
    found: dict[str, float] = {}
    for weakness, settings in WEAK.items():
        cheats = {name: cheat for name, cheat in CHEATS.items() if cheat.weakness == weakness}
        found |= {} if not cheats else points(tmp_path_factory.mktemp("weak") / "course", cheats, settings)
    return found


def test_there_are_enough() -> None:
    unused = set() if FRIENDS.keys() & CHEATS.keys() else {"hides what is known alone"}
    assert len(CHEATS) >= 20 and {cheat.weakness for cheat in CHEATS.values()} == WEAK.keys() - unused


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_nothing(name: str, earned: dict[str, float], earned_before: dict[str, float]) -> None:
    contained = CHEATS[name].weakness not in ("not contained", "answers mounted", "hides what is known alone")
    if not (contained or available()):
        pytest.skip("no bubblewrap here: submissions are not contained")
    assert earned[name] == 0
    assert earned_before[name] > 0, "this cheat proves nothing: it earns nothing where the grading is weak"
