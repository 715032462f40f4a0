"""The shape of the library: imports point one way, the core needs no display, importing does no work."""

import ast
import importlib
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from notebooks.source import architecture

LIBRARY = Path(__file__).resolve().parents[1] / "course_lib"

# From the bottom to the top; a wing imports from wings before it. What stands in one line needs none of its neighbors.
ORDER = """
    storage config preprocessing masks metrics grammar figures
    tokenizer position attention checks cost
    data blocks
    transformer
    decoding recording alternatives
    translator families
    training analysis
    compression
    experiments
    widgets assignments __main__
    grading
"""
WINGS = {wing: floor for floor, wings in enumerate(ORDER.strip().splitlines()) for wing in wings.split()}
# What draws; all else runs on a machine without a screen.
DISPLAY = ("figures", "widgets")
DISPLAY_ONLY = ("matplotlib", "ipywidgets", "IPython", "anywidget")


def name_of(path, library=LIBRARY):
    """course_lib/data/batches.py → data.batches; course_lib/__init__.py → the empty name."""
    parts = path.relative_to(library).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(library=LIBRARY):
    return {name_of(path, library): path for path in sorted(library.rglob("*.py"))}


def imports_of(path, library=LIBRARY, *, top_level_only=False):
    """The modules that a file imports, by absolute name: `course_lib.` in front of ours."""
    package = [library.name, *path.relative_to(library).parts[:-1]] if path.is_relative_to(library) else []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                head, *below = module.split(".")
                inside = library.joinpath(*below, alias.name)
                is_module = head == library.name and (inside.is_dir() or inside.with_suffix(".py").exists())
                found.add(f"{module}.{alias.name}" if is_module else module)
    return found


@cache
def graph(library=LIBRARY, **how):
    """Each module of ours, and those of ours that it imports."""
    prefix = f"{library.name}."
    return {
        name: {target.removeprefix(prefix) for target in imports_of(path, library, **how) if target.startswith(prefix)}
        for name, path in sources(library).items()
    }


def ours_of(path):
    """The modules of ours that a file outside the library imports."""
    return {name.removeprefix("course_lib").lstrip(".") for name in imports_of(path) if name.startswith("course_lib")}


# --- one way ------------------------------------------------------------------------------------


def law_imports_point_one_way(imports):
    """`imports`: module → modules it imports."""
    for importer, targets in imports.items():
        for name in (importer, *targets):
            wing = name.split(".")[0]
            missing = f"course_lib.{wing} has no place yet: add it to ORDER in {Path(__file__).name}"
            assert not wing or wing in WINGS, missing
        own = importer.split(".")[0]
        others = {target for target in targets if target.split(".")[0] not in ("", own)}
        wrong = sorted(target for target in others if own and WINGS[target.split(".")[0]] >= WINGS[own])
        assert not wrong, f"course_lib.{importer} imports {', '.join(wrong)}, which are not below it"


# Modules that the faces of their wing or room list.
LISTED = {
    "assignments.inventory",
    "experiments.corpus_size",
    "grammar.build",
    "grammar.lexicon.function_words",
    "grammar.linearizers.english",
    "grammar.linearizers.german",
}


def law_nobody_reaches_past_a_face(imports):
    """`imports`: module → modules it imports, each of which is in a folder around the importer."""
    for importer, targets in imports.items():
        around = {importer, ""} | {importer[:end] for end, letter in enumerate(importer) if letter == "."}
        deep = sorted(name for name in targets - LISTED if name.rpartition(".")[0] not in around)
        assert not deep, f"{importer} imports {', '.join(deep)}: take it from the face of that wing or room"


def law_no_module_imports_itself_in_a_circle(imports):
    done, open_modules = set(), []

    def visit(module):
        assert module not in open_modules, f"a circle: {' → '.join([*open_modules, module])}"
        if module in done or module not in imports:
            return
        open_modules.append(module)
        for target in sorted(imports[module]):
            visit(target)
        done.add(open_modules.pop())

    for module in imports:
        visit(module)


def test_imports_point_one_way():
    assert len(graph()) > 20  # the files were found
    law_imports_point_one_way(graph())


def test_no_imports_in_a_circle():
    law_no_module_imports_itself_in_a_circle(graph(top_level_only=True))


@pytest.mark.parametrize(
    "importer, target, message",
    [
        ("masks", "attention", "course_lib.masks imports attention, which are not below it"),
        ("data.batches", "training", "course_lib.data.batches imports training, which are not below it"),
        ("blocks", "widgets", "course_lib.blocks imports widgets, which are not below it"),
        ("zebra", "masks", "course_lib.zebra has no place yet: add it to ORDER in test_architecture.py"),
        ("training", "zebra.stripes", "course_lib.zebra has no place yet"),
    ],
)
def test_an_import_the_other_way_is_found(importer, target, message):
    with pytest.raises(AssertionError, match=message):
        law_imports_point_one_way({importer: {target}})


def test_nobody_reaches_past_a_face():
    law_nobody_reaches_past_a_face(graph())
    lessons = sorted((LIBRARY.parent / "notebooks" / "source").glob("*.py"))
    lessons += sorted((LIBRARY / "assignments").glob("*/text.py"))
    assert len(lessons) > 20
    law_nobody_reaches_past_a_face({path.stem: ours_of(path) for path in lessons})


def test_who_reaches_past_a_face_is_found():
    law_nobody_reaches_past_a_face({"training.run": {"training.loss", "data"}, "12_reading": {"figures", "masks"}})
    with pytest.raises(AssertionError, match="12_reading imports figures.charts: take it from the face"):
        law_nobody_reaches_past_a_face({"12_reading": {"figures.charts"}})
    with pytest.raises(AssertionError, match="training.run imports data.batches"):
        law_nobody_reaches_past_a_face({"training.run": {"data.batches"}})
    law_nobody_reaches_past_a_face({"grammar.lexicon.verbs": {"grammar.lexicon.entries"}, "grammar": {"grammar.align"}})
    with pytest.raises(AssertionError, match="grammar.splits imports grammar.lexicon.verbs"):
        law_nobody_reaches_past_a_face({"grammar.splits": {"grammar.lexicon.verbs"}})


def law_a_name_of_a_face_stands_for_one_thing(code):
    """lazy_loader takes the last of two modules that offer the same name, without a word."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.keyword) and node.arg == "submod_attrs":
            modules = eval(compile(ast.Expression(node.value), "face", "eval"))
            names = [name for offered in modules.values() for name in offered]
            assert len(set(names)) == len(names), {name for name in names if names.count(name) > 1}


def test_a_name_of_a_face_stands_for_one_thing():
    for path in LIBRARY.rglob("__init__.py"):
        law_a_name_of_a_face_stands_for_one_thing(path.read_text(encoding="utf-8"))
    with pytest.raises(AssertionError, match="share"):
        law_a_name_of_a_face_stands_for_one_thing('attach("x", submod_attrs={"a": ["share"], "b": [*("share", "c")]})')


def law_a_lesson_needs_few_modules(path):
    """What comes after the paper brings much together; `checks` has the one helper that each lesson may need."""
    most = 8 if path.name < "13" else 14
    needed = {target.split(".")[0] for target in ours_of(path)} - {"checks"}
    assert len(needed) <= most, f"{path.name} imports from {len(needed)} places, at most {most}: {sorted(needed)}"


def test_a_lesson_needs_few_modules(tmp_path):
    for path in sorted((LIBRARY.parent / "notebooks" / "source").glob("[0-9]*.py")):
        law_a_lesson_needs_few_modules(path)
    for name, most in (("09_all.py", 8), ("99_all.py", 14)):
        wings = [wing for wing in WINGS if wing != "checks"][: most + 1]
        (tmp_path / name).write_text("".join(f"from course_lib.{wing} import x\n" for wing in wings))
        with pytest.raises(AssertionError, match=f"{name} imports from {most + 1} places"):
            law_a_lesson_needs_few_modules(tmp_path / name)


def law_the_library_is_seen_at_a_glance(library, most=30):
    entries = [path.name for path in library.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= most, f"{library.name} shows {len(entries)} entries, at most {most}"


def test_the_library_is_seen_at_a_glance(tmp_path):
    law_the_library_is_seen_at_a_glance(LIBRARY)
    for number in range(31):
        (tmp_path / f"{number}.py").write_text("")
    with pytest.raises(AssertionError, match="shows 31 entries"):
        law_the_library_is_seen_at_a_glance(tmp_path)


def test_a_circle_is_found():
    with pytest.raises(AssertionError, match="a circle: (a → b → c → a|b → c → a → b)"):
        law_no_module_imports_itself_in_a_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_every_way_to_import_is_seen(tmp_path):
    library = tmp_path / "course_lib"
    (library / "data").mkdir(parents=True)
    for name in ("__init__", "masks", "blocks", "data/__init__", "data/tsv"):
        (library / f"{name}.py").write_text("")
    (library / "data" / "other.py").write_text(
        "import torch.nn\nimport course_lib.masks as m\nfrom course_lib import blocks\nfrom . import tsv\n"
        "from ..position import sinusoidal\nfrom .tsv import load\nfrom course_lib.data import Pair\n"
        "def f():\n    from course_lib.figures import curves\n"
    )
    expected = {"masks", "blocks", "data.tsv", "position", "data", "figures"}
    assert graph(library)["data.other"] == expected
    assert graph(library, top_level_only=True)["data.other"] == expected - {"figures"}
    assert "torch.nn" in imports_of(library / "data" / "other.py", library)


# --- the picture --------------------------------------------------------------------------------


def reached(arrows):
    """Pairs of who needs what, also by way of others."""
    pairs = set(arrows)
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs


def law_the_picture_shows_what_needs_what(svg):
    drawn = re.findall(r'data-arrow="(\S+) (\S+)"', svg)
    tops = {(name.split(".")[0], target.split(".")[0]) for name, targets in graph().items() for target in targets}
    there = {(one, other) for one, other in tops if one and other and one != other}
    assert reached(drawn) == reached(there), "run: python -m notebooks.source.architecture"
    assert len(set(drawn)) == len(drawn) < len(there), "what follows is left out"
    boxes = set(re.findall(r">([\w.]+)/?</text>", svg))
    assert boxes == WINGS.keys(), f"drawn: {sorted(boxes ^ WINGS.keys())}"


def test_the_picture_shows_what_needs_what():
    svg = architecture.PICTURE.read_text(encoding="utf-8")
    law_the_picture_shows_what_needs_what(svg)
    assert svg == architecture.draw(architecture.imports()), "run: python -m notebooks.source.architecture"
    for old, new in (('"transformer blocks"', '"transformer masks"'), (">masks</text>", ">masques</text>")):
        assert old in svg
        with pytest.raises(AssertionError):
            law_the_picture_shows_what_needs_what(svg.replace(old, new))


# --- faces --------------------------------------------------------------------------------------

FACES = [f"course_lib.{name_of(path)}".rstrip(".") for path in sorted(LIBRARY.rglob("__init__.py"))]


def law_a_face_shows_its_names(face, modules=()):
    """Each name that a face lists is there; it is none of its modules, but for those that it lists as such."""
    for name in face.__all__:
        assert hasattr(face, name), f"{face.__name__} lists {name}, which is not there"
    files = {path.stem for path in Path(face.__file__).parent.glob("[!_]*.py")} - set(modules)
    both = files & set(face.__all__)
    assert not both, f"{face.__name__}: {both} could be the module as well"


def test_faces_show_their_names():
    assert len(FACES) > 8
    for name in FACES:
        modules = [Path(listed).suffix[1:] for listed in LISTED if f"course_lib.{listed}".rpartition(".")[0] == name]
        modules += ["generate"] if name.endswith("grammar") else []  # not a lazy face: its `generate` is the function
        law_a_face_shows_its_names(importlib.import_module(name), modules)


def test_a_name_that_a_face_hides_or_lacks_is_found(tmp_path):
    (tmp_path / "fit.py").write_text("")
    face = SimpleNamespace(__file__=str(tmp_path / "__init__.py"), __name__="wing", __all__=["fit"], fit=1)
    with pytest.raises(AssertionError, match="wing: {'fit'} could be the module as well"):
        law_a_face_shows_its_names(face)
    face.__all__ = ["nothing"]
    with pytest.raises(AssertionError, match="wing lists nothing, which is not there"):
        law_a_face_shows_its_names(face)


def law_the_face_costs_nothing(command):
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, cwd=LIBRARY.parent)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), f"loaded: {done.stdout}"


def test_importing_the_library_loads_nothing():
    heavy = "print(*({'torch', 'tokenizers', 'numpy', 'matplotlib', 'sacrebleu'} & set(__import__('sys').modules)))"
    law_the_face_costs_nothing(f"import course_lib; {heavy}")
    law_the_face_costs_nothing(f"from course_lib.storage import replacing; {heavy}")
    with pytest.raises(AssertionError, match="loaded: .*torch"):
        law_the_face_costs_nothing(f"from course_lib import Translator, Transformer, ModelConfig; {heavy}")
    with pytest.raises(AssertionError, match="loaded: .*torch"):
        law_the_face_costs_nothing(f"from course_lib.storage import save_tensors; {heavy}")


# --- what modules may need ----------------------------------------------------------------------


def law_needs_nothing_but_python(path, library=LIBRARY):
    outside = {module.split(".")[0] for module in imports_of(path, library)} - {"course_lib", "__future__"}
    assert outside <= sys.stdlib_module_names, f"{path.name} imports {outside - sys.stdlib_module_names}"


def test_configurations_and_grammar_need_nothing_but_python():
    plain = {name for name in sources() if name.split(".")[0] in ("config", "grammar")}
    assert len(plain) > 10
    for name in plain:
        law_needs_nothing_but_python(sources()[name])
        assert graph()[name] <= plain | {"grammar"}, f"{name} reaches further"


def test_a_need_of_torch_is_found(tmp_path):
    (tmp_path / "config.py").write_text("import json\ndef f():\n    from torch import nn")
    with pytest.raises(AssertionError, match="config.py imports {'torch'}"):
        law_needs_nothing_but_python(tmp_path / "config.py", tmp_path)


def law_figures_import_nothing_of_ours(imports):
    """`imports`: module → modules it imports. Arrays, labels and plain values go in: figures know no model."""
    for importer, targets in imports.items():
        ours = sorted(target for target in targets if target.split(".")[0] != "figures")
        assert importer.split(".")[0] != "figures" or not ours, f"{importer} imports {', '.join(ours)}"


def test_figures_import_nothing_of_ours():
    assert len([name for name in graph() if name.startswith("figures.")]) > 5
    law_figures_import_nothing_of_ours(graph())
    law_figures_import_nothing_of_ours({"figures.charts": {"figures.canvas"}, "widgets.base": {"figures"}})
    for target in ("decoding.beam", "config", "analysis.anatomy"):
        with pytest.raises(AssertionError, match=f"figures.beam_tree imports {target}"):
            law_figures_import_nothing_of_ours({"figures.beam_tree": {"figures.canvas", target}})


def law_only_what_draws_imports_figures(imports):
    """`imports`: module → modules it imports."""
    for importer, targets in imports.items():
        draws = importer.split(".")[0] in DISPLAY
        assert draws or not any(target.split(".")[0] == "figures" for target in targets), f"{importer} imports figures"


def test_only_what_draws_imports_figures():
    law_only_what_draws_imports_figures(graph())
    for importer, target in (("blocks", "figures"), ("training.run", "figures.charts")):
        with pytest.raises(AssertionError, match=f"{importer} imports figures"):
            law_only_what_draws_imports_figures({"widgets.base": {"figures"}, importer: {target}})


def law_no_pickle(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            assert not names & {"pickle", "dill", "joblib", "shelve", "marshal"}, f"{path.name} imports {names}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            assert node.attr not in ("load", "save"), f"{path.name} calls torch.{node.attr}"


def test_nothing_is_pickled(tmp_path):
    for path in sources().values():
        law_no_pickle(path)
    for code in ("import pickle", "from pickle import load", "import torch\ntorch.save(1, 'x')"):
        (tmp_path / "x.py").write_text(code)
        with pytest.raises(AssertionError, match="x.py"):
            law_no_pickle(tmp_path / "x.py")


def law_short(path, longest=250):
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= longest, f"{path.name} has {length} lines, at most {longest} are easy to read"


@pytest.mark.parametrize("name", sources())
def test_files_are_short(name):
    text = name.endswith(".text")  # a whole assignment, five or six exercises one after the other
    capstone = name == "assignments.a19_capstone.text"  # a whole model besides, and its training
    law_short(sources()[name], longest=410 if capstone else 260 if text else 250)


def test_a_long_file_is_found(tmp_path):
    (tmp_path / "x.py").write_text("pass\n" * 251)
    with pytest.raises(AssertionError, match="x.py has 251 lines"):
        law_short(tmp_path / "x.py")


# A docstring says what a function does, it does not tell a function what to do: "Maps", not "Map".
IMPERATIVES = frozenset(
    """Add Admit Append Apply Ask Bring Build Call Check Choose Clean Clear Close Collect Compare Complete Compute
    Convert Copy Count Create Decode Divide Download Draw Drop Encode Execute Fetch Fill Find Generate Get Give
    Handle Keep Kill Let Limit List Load Look Make Map Move Open Pad Pick Prefer Print Put Raise Read Record
    Refuse Remove Render Replace Request Reset Restore Return Run Save Say Send Show Shuffle Split Start Stop
    Store Take Tell Translate Try Turn Update Use Wait Walk Write""".split()
)


def law_docstrings_are_in_the_third_person(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            first = (ast.get_docstring(node) or "-").split()[0]
            where = f"{path.name}, {node.name}"
            assert first not in IMPERATIVES, f"{where}: expected {first}s or the like, got {first}"


def test_docstrings_are_in_the_third_person(tmp_path):
    for path in [*sources().values(), *(LIBRARY.parent / "notebooks" / "source").glob("build_*.py")]:
        law_docstrings_are_in_the_third_person(path)
    (tmp_path / "x.py").write_text('class Shop:\n    def sell(self):\n        """Give a thing away."""\n')
    with pytest.raises(AssertionError, match="x.py, sell: expected Gives or the like, got Give"):
        law_docstrings_are_in_the_third_person(tmp_path / "x.py")


def law_functions_are_short(path, longest=40):
    """From `def` to the end of the body; the docstring is not counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            length = node.end_lineno - node.lineno + 1 - told
            assert length <= longest, f"{path.name}: {node.name} has {length} lines, at most {longest} are easy to read"


@pytest.mark.parametrize("name", sources())
def test_functions_are_short(name):
    law_functions_are_short(sources()[name])


def test_a_long_function_is_found(tmp_path):
    fits = "@cache\ndef f(\n    x,\n):\n" + '    """One.\n\n    Two.\n    """\n' + "    x += 1\n" * 37
    (tmp_path / "x.py").write_text(fits)
    law_functions_are_short(tmp_path / "x.py")
    for kind in ("def", "async def"):
        (tmp_path / "x.py").write_text(f"class C:\n    {kind} g(self):\n" + "        pass\n" * 40)
        with pytest.raises(AssertionError, match="x.py: g has 41 lines, at most 40"):
            law_functions_are_short(tmp_path / "x.py")


# --- tests --------------------------------------------------------------------------------------

TESTS = LIBRARY.parent / "tests"


def law_no_test_imports_a_test(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            words = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            tests = [word for word in words if any(part.startswith("test_") for part in word.split("."))]
            assert not tests, f"{path.name} imports {', '.join(tests)}: what tests share is in tests/helpers"


def test_no_test_imports_a_test():
    paths = sorted(TESTS.rglob("*.py"))
    assert len(paths) > 60
    for path in paths:
        law_no_test_imports_a_test(path)


def test_an_import_between_tests_is_found(tmp_path):
    path = tmp_path / "test_x.py"
    path.write_text("import pytest\nfrom tests.helpers.laws import tells_apart")
    law_no_test_imports_a_test(path)
    for code in ("from tests.data.test_y import z", "from tests import test_y", "import tests.test_y as y"):
        path.write_text(f"def f():\n    {code}")
        with pytest.raises(AssertionError, match="test_x.py imports .*test_y: what tests share"):
            law_no_test_imports_a_test(path)


# --- importing in a process of its own ----------------------------------------------------------

IMPORT_ALONE = """
import importlib, importlib.abc, json, os, sys, time
modules, outside, blocked, folder = json.loads(sys.argv[1])
sys.path.insert(0, os.path.dirname(folder))
sys.dont_write_bytecode = True

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ImportError(f"{name} is blocked")

def watch(event, args):
    if not watching:
        return
    if event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "urllib.")):
        done.append(f"{event} {args[0]}")
    if event == "open" and isinstance(args[0], str):
        ours = args[0].startswith(folder) and not args[0].endswith((".py", ".pyc"))
        writes = isinstance(args[1], str) and set(args[1]) & set("wax+")
        if ours or writes:
            done.append(f"open {args[0]}")

watching, done, failed, seconds = False, [], {}, {}
sys.addaudithook(watch)
sys.meta_path.insert(0, Blocker())
for name in outside:  # other people's libraries may do what they like
    try:
        importlib.import_module(name)
    except ImportError:
        pass
watching = True
for name in modules:
    started = time.process_time()
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
    seconds[name] = time.process_time() - started
watching = False
print(json.dumps({"failed": failed, "done": done, "seconds": seconds}))
"""


def import_alone(names, library=LIBRARY, blocked=DISPLAY_ONLY):
    """Imports modules of ours in a fresh process: which failed, what they did to the outside, seconds of each."""
    found = sources(library)
    outside = {module for name in names for module in imports_of(found[name], library)}
    outside = sorted(module for module in outside if module.split(".")[0] not in (library.name, "__future__"))
    modules = [f"{library.name}.{name}".rstrip(".") for name in names]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALONE, json.dumps([modules, outside, blocked, str(library)])],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=library.parent,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def law_core_needs_no_display(report):
    assert not report["failed"], f"not importable without {', '.join(DISPLAY_ONLY)}: {report['failed']}"


def law_import_does_no_work(report):
    assert not report["done"], f"done at import: {report['done']}"
    slow = {name: seconds for name, seconds in report["seconds"].items() if seconds > 1.0}
    assert not slow, f"seconds of computation at import: {slow}"


@pytest.fixture(scope="module")
def core():
    """What importing every module of the core does in a process that has no display libraries."""
    core = [name for name in sources() if name.split(".")[0] not in DISPLAY]
    return import_alone([name for name in core if not (name.startswith("assignments.a") and name.endswith(".text"))])


def test_the_core_needs_no_display(core):
    law_core_needs_no_display(core)


def test_importing_the_core_does_no_work(core):
    law_import_does_no_work(core)


@pytest.fixture
def invented(tmp_path):
    """A library whose modules do what they must not."""
    library = tmp_path / "course_lib"
    library.mkdir()
    code = {
        "__init__": "",
        "good": "import json\nfrom dataclasses import dataclass",
        "draws": "import matplotlib.pyplot",
        "draws_by_the_way": "from course_lib import draws",
        "shows": "from IPython.display import display",
        "controls": "import ipywidgets",
        "connects": "import socket\ntry: socket.socket().connect(('127.0.0.1', 9))\nexcept OSError: pass",
        "writes": f"open({str(tmp_path / 'written')!r}, 'w').close()",
        "reads": f"open({str(library / 'table.txt')!r}).close()",
        "computes": "import time\nend = time.process_time() + 1.2\nwhile time.process_time() < end: pass",
    }
    (library / "table.txt").write_text("1")
    for name, text in code.items():
        (library / f"{name}.py").write_text(text)
    return library


def test_both_laws_of_importing_can_fail(invented):
    good = import_alone(["", "good"], invented)
    law_core_needs_no_display(good)
    law_import_does_no_work(good)
    bad = import_alone([name for name in sources(invented) if name not in ("", "good")], invented)
    drawing = {f"course_lib.{name}" for name in ("draws", "draws_by_the_way", "shows", "controls")}
    assert set(bad["failed"]) == drawing
    with pytest.raises(AssertionError, match="not importable without matplotlib"):
        law_core_needs_no_display(bad)
    assert sorted(each.split()[0] for each in bad["done"]) == ["open", "open", "socket.connect"]
    with pytest.raises(AssertionError, match="done at import"):
        law_import_does_no_work(bad)
    with pytest.raises(AssertionError, match="seconds of computation at import: {'course_lib.computes'"):
        law_import_does_no_work(bad | {"done": []})


def test_what_draws_is_found_by_the_blocker():
    drawing = ["figures.canvas", "widgets.base"]
    assert set(import_alone(drawing)["failed"]) == {f"course_lib.{name}" for name in drawing}
