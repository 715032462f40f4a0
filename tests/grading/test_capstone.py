"""The capstone: weights are scored without training, nobody else's translations count, and the best have a place."""

import json
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import torch
from safetensors.torch import load_file, save_file

from course_lib.assignments.a19_capstone.names import PARTS
from course_lib.grading import beside, leaderboard
from course_lib.grading.sandbox import available
from notebooks import parts
from notebooks.source.build_assignments import FOLDER
from tests.helpers.answers import written
from tests.helpers.classroom import Classroom, Submission
from tests.helpers.laws import tells_apart

ASSIGNMENT = "19_capstone"
LIMITS = "c.ContainedExecute.timeout = 30\n"
SOLUTION = FOLDER / "solution" / ASSIGNMENT
SHIPPED = beside.PRETRAINED / "course" / "model.safetensors"

NAMED = "NICKNAME = {!r}\n"
ELSEWHERE = 'load_file("really.safetensors")'
# Translations that are somebody else's: of the shipped translator, of the grammar, of the checks.
TRANSLATOR = """def my_translations(sentences):
    from course_lib import Translator
    return [str(one) for one in Translator.from_pretrained("course").translate_batch(sentences)]
"""
GRAMMAR = """def my_translations(sentences):
    from course_lib.data import load_course
    corpus = load_course(num_train=200_000)
    known = {pair.src: pair.tgt for pair in (*corpus.train, *corpus.valid, *corpus.test)}
    return [known.get(sentence, "") for sentence in sentences]
"""
GOLD = """def my_translations(sentences):
    from course_lib.assignments.a19_capstone.sentences import translations
    return translations(sentences)
"""
SPOOF = "99.9% of 200 sentences are right, word for word"


def name_of(cell: nbformat.NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def train_more(notebook: nbformat.NotebookNode) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell("train(fresh(1), 'other.safetensors')"))


def mine(classroom: Classroom, name: str, change: str = "") -> str:
    """The right cell with a nickname, and its last line changed."""
    cell = classroom.right["19-weights"].replace('NICKNAME = ""', f"NICKNAME = {name!r}")
    assert name in cell
    return cell.replace("return translate(model.eval(), sentences)", change) if change else cell


def some_wrong(share: float, wrong: str) -> str:
    return f"""found = translate(model.eval(), sentences)
    return [{wrong!r} if place < {share} * len(found) else text for place, text in enumerate(found)]"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    made = Classroom(tmp_path_factory.mktemp("capstone") / "teacher", ASSIGNMENT, LIMITS)
    own = made.right["19-parts"]
    missing = own.replace("def layer_norm(", "def not_layer_norm(")
    borrowed = parts.BORROWED + written("06.layer_norm").solution

    def borrow(notebook) -> None:
        place = next(n for n, cell in enumerate(notebook.cells) if name_of(cell) == "19-parts-check")
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(borrowed))

    assert missing != own
    for submission in (
        Submission("ada", cells={"19-weights": mine(made, "Ada & <b>co</b>")}),
        Submission("borrower", cells={"19-parts": missing, "19-weights": mine(made, "Bo")}, edit=borrow),
        Submission("half", cells={"19-weights": mine(made, "Hal", some_wrong(0.2, SPOOF))}),
        Submission("half-spoof", cells={"19-weights": mine(made, "Spo", some_wrong(0.2, f"x\n  {SPOOF}"))}),
        Submission("low", cells={"19-weights": mine(made, "Low", some_wrong(0.5, SPOOF))}),
        Submission("nameless"),
        Submission("no-weights", cells={"19-weights": mine(made, "Nil")}),
        Submission("too-large", cells={"19-weights": mine(made, "Big")}),
        Submission("pickled", cells={"19-weights": mine(made, "Pic")}),
        Submission("translator", cells={"19-weights": NAMED.format("Tra") + TRANSLATOR}),
        Submission("grammar", cells={"19-weights": NAMED.format("Gra") + GRAMMAR}),
        Submission("gold", cells={"19-weights": NAMED.format("Gol") + GOLD}),
        Submission("trains", edit=train_more),
        Submission("decoy", cells={"19-weights": mine(made, "Dec").replace("load_file(WEIGHTS)", ELSEWHERE)}),
    ):
        made.submit(submission)
    folder = made.root / "submitted"
    (folder / "no-weights" / ASSIGNMENT / beside.WEIGHTS).unlink()
    decoy = folder / "decoy" / ASSIGNMENT
    (decoy / beside.WEIGHTS).rename(decoy / "really.safetensors")
    save_file({"one": torch.zeros(1)}, decoy / beside.WEIGHTS)
    with (folder / "too-large" / ASSIGNMENT / beside.WEIGHTS).open("ab") as file:
        file.truncate(20 * 2**20)
    (folder / "pickled" / ASSIGNMENT / beside.WEIGHTS).write_bytes(b"\x80\x04cbuiltins\nexec\n")
    made.seconds = made.autograde()
    made.found = made.scores()
    made.nbgrader("generate_feedback", ASSIGNMENT)
    return made


def weights_points(room: Classroom, student: str) -> float:
    return room.found[student]["19-weights-check"]


def test_weights_are_scored_and_nothing_is_trained(room: Classroom) -> None:
    for name, points in room.points.items():
        assert room.found["ada"][name] == (points if name.endswith("-check") else None)
    assert "sentences are right, word for word" in room.graded("ada")
    assert re.search(r"ada: (\d+) of \1, 1 in words to read", room.said)
    assert room.found["trains"] == room.found["ada"]
    assert "No module named 'course_lib.grammar'" in room.graded("trains")


def test_a_borrowed_part_costs_its_share_and_nothing_else(room: Classroom) -> None:
    points = room.points["19-parts-check"]
    assert room.found["borrower"] == room.found["ada"] | {"19-parts-check": pytest.approx(points * 0.9)}
    assert "9 of 10 parts are yours\n  layer_norm: it is missing" in room.graded("borrower")


def test_half_of_the_points_are_for_less(room: Classroom) -> None:
    assert weights_points(room, "half") == room.points["19-weights-check"] / 2
    assert weights_points(room, "low") == 0


@pytest.mark.parametrize(
    ("student", "said"),
    [
        ("no-weights", "No such file"),
        ("too-large", "weights.safetensors has 20 MB, which is more than 8, and was left out"),
        ("pickled", "weights.safetensors is no file of safetensors"),
    ],
)
def test_only_weights_of_safetensors_that_are_not_too_large_count(room: Classroom, student: str, said: str) -> None:
    assert weights_points(room, student) == 0
    assert said in room.graded(student) + room.said


@pytest.mark.parametrize("student", ["translator", "grammar", "gold"])
def test_nobody_elses_translations_are_within_reach(room: Classroom, student: str) -> None:
    if not available() and student == "gold":
        pytest.skip("no bubblewrap here: submissions are not contained")
    assert weights_points(room, student) == 0


def looks(folder: Path, tensors: dict[str, torch.Tensor], file: str = beside.WEIGHTS) -> list[str]:
    save_file(tensors, folder / file)
    return list(beside.look_beside(folder, weights=True))


@pytest.mark.parametrize("file", [beside.WEIGHTS, "other.safetensors", "notes.txt"])
def test_weights_of_the_shipped_translator_are_seen_under_any_name(tmp_path: Path, file: str) -> None:
    shipped = load_file(SHIPPED)
    name = max(shipped, key=lambda name: shipped[name].numel())
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(shipped[name].shape, generator=generator)
    said = [f"{file} has weights of the shipped translator"]
    assert looks(tmp_path, shipped, file) == said
    assert looks(tmp_path, {"mine": shipped[name].float() + 1e-4 * noise}, file) == said
    assert looks(tmp_path, {name: shipped[name].float().std() * noise}, file) == []
    small = {key: tensor for key, tensor in shipped.items() if tensor.numel() < beside.MATRIX}
    assert looks(tmp_path, small, file) == []


def test_numbers_of_a_kind_that_cannot_be_compared_are_said_to_be_so(tmp_path: Path) -> None:
    """Two in a byte, which PyTorch can load, and do nothing with."""
    place = {"dtype": "F4", "shape": [4 * beside.MATRIX], "data_offsets": [0, 2 * beside.MATRIX]}
    head = json.dumps({"a": place}).encode()
    path = tmp_path / beside.WEIGHTS
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(2 * beside.MATRIX))
    (said,) = beside.look_beside(tmp_path, weights=True)
    assert said.startswith("weights.safetensors has numbers that cannot be compared")


def test_whatever_could_hold_weights_is_seen_and_counted(tmp_path: Path) -> None:
    """So that a small file of the right name gets nobody to the top who has the weights elsewhere."""
    assert looks(tmp_path, {"decoy": torch.zeros(1)}) == [] and beside.numbers(tmp_path) == 1
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / "19_capstone.ipynb.as-submitted").write_bytes(bytes(50_000))
    assert looks(tmp_path, {"a": torch.zeros(300, 300)}, "more.safetensors") == []
    assert beside.numbers(tmp_path) == 90_001
    (tmp_path / "data.bin").write_bytes(bytes(50_000))
    assert list(beside.look_beside(tmp_path, weights=True)) == ["data.bin has 50,000 bytes, and could hold weights"]
    assert list(beside.look_beside(tmp_path, weights=False)) == []
    assert beside.numbers(tmp_path) == 140_001
    (tmp_path / "left out.bin").write_bytes(bytes(beside.LARGEST + 1))
    assert beside.numbers(tmp_path) == 140_001


def test_the_leaderboard_has_who_chose_a_nickname_and_earned_points(
    room: Classroom, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(room.root)
    assert leaderboard.main([ASSIGNMENT]) == 0
    page = leaderboard.PAGE.read_text(encoding="utf-8")
    names = re.findall(r"<tr><td>\d+</td><td>(.*?)</td>", page)
    assert set(names) == {"Ada &amp; &lt;b&gt;co&lt;/b&gt;", "Bo", "Hal", "Spo", "Dec"}
    assert "<b>" not in page and "99.9" not in page and page.count("<circle") == 5
    number = sum(tensor.numel() for tensor in load_file(SOLUTION / beside.WEIGHTS).values())
    assert page.count(f"<td>{number:,}</td>") >= 4
    assert page.count(f"<td>{number + 1:,}</td>") == 1 and "<td>1</td></tr>" not in page, "of the decoy"
    assert f"5 of {len(room.found)} submissions" in capsys.readouterr().out


def test_other_assignments_have_no_leaderboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert leaderboard.main(["03_attention"]) == 0 and not leaderboard.PAGE.exists()
    assert "Nobody is on it yet." in leaderboard.page([])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("NICKNAME = 'Grace'", "Grace"),
        ("NICKNAME = '  a\\n\\u202eb  '", "a b"),
        ("NICKNAME = 'x' * 10**9", ""),
        ("NICKNAME = 42", ""),
        ("NICKNAME = '" + "x" * 100 + "'", "x" * 24),
        ("def my(", ""),
        ("OTHER = 'x'", ""),
    ],
)
def test_a_nickname_is_a_short_text_and_nothing_is_run(code: str, name: str) -> None:
    assert leaderboard.nickname(code) == name


# Bringing the parts.


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The reader's copies, as they come."""
    for source in sorted((FOLDER / "release").iterdir()):
        if source.name[:2] in {"01", "03", "04", "05", "06", "07", "08", "19"}:
            shutil.copytree(source, tmp_path / source.name)
    return tmp_path


def solve(copies: Path, name: str, code: str | None = None) -> None:
    """Write the solution of an exercise, or other code, into the reader's copy."""
    (path,) = copies.glob(f"{name[:2]}_*/*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if name_of(cell) == name.replace(".", "-"))
    cell.source = written(name).solution if code is None else code
    nbformat.write(notebook, path)


def run(path: Path, until: str) -> dict:
    """Run the cells of the capstone up to a check."""
    names: dict = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and name_of(cell) != "19-parts-check":
            exec(cell.source, names)
        if name_of(cell) == until:
            return names
    raise AssertionError(f"no {until}")


def test_parts_that_work_are_brought_and_the_others_borrowed(copies: Path, capsys: pytest.CaptureFixture) -> None:
    for name in PARTS.values():
        solve(copies, name)
    solve(copies, "03.scores", "def scores(query, key):\n    return query @ key.mT  # my own, and wrong")
    solve(copies, "06.layer_norm", "def layer_norm(x, scale, shift, eps=1e-6):\n    raise NotImplementedError")
    own, borrowed = parts.bring_parts(copies)
    assert borrowed == ["03.scores", "06.layer_norm"] and len(own) == 8
    names = run(copies / parts.CAPSTONE, "19-parts-check")
    assert names["own"]["scores"] is None and callable(names["own"]["ends"])
    names = run(copies / parts.CAPSTONE, "19-attend")
    assert names["scores"](torch.ones(1, 1, 4), torch.ones(1, 1, 4)).item() == 2, "the borrowed one divides by √d_k"
    solve(copies, "03.scores")
    assert parts.bring_parts(copies)[1] == ["06.layer_norm"], "what is written since is brought too"
    text = (copies / parts.CAPSTONE).read_text(encoding="utf-8")
    assert text.count("# Borrowed from the solutions") == 1 and "my own, and wrong" not in text


def law_parts_are_found_wherever_they_lie(main: Callable, copies: Path, capsys: pytest.CaptureFixture) -> None:
    """In the folder itself, where nbgrader's exchange puts them and which comes first, or where the course does."""
    solve(copies, "03.scores")
    assert main([str(copies)]) == 0 and "1 parts are yours: 03.scores" in capsys.readouterr().out
    course = copies / "course"
    place = course / "assignments" / "release"
    place.mkdir(parents=True)
    for topic in ("01_text_to_tensors", "03_attention", "08_transformer", "19_capstone"):
        shutil.move(copies / topic, place)
    assert main([str(course)]) == 0 and "1 parts are yours: 03.scores" in capsys.readouterr().out
    solve(place, "08.ends")
    shutil.copytree(place / "19_capstone", course / "19_capstone")
    shutil.move(place / "03_attention", course)
    before = (place / "19_capstone" / "19_capstone.ipynb").read_bytes()
    assert main([str(course)]) == 0 and "2 parts are yours: 03.scores, 08.ends" in capsys.readouterr().out
    assert (place / "19_capstone" / "19_capstone.ipynb").read_bytes() == before


def test_parts_are_found_wherever_they_lie(copies: Path, capsys: pytest.CaptureFixture) -> None:
    law_parts_are_found_wherever_they_lie(parts.main, copies, capsys)


@pytest.mark.parametrize("places", [slice(0, 1), slice(1, 2), slice(None, None, -1)])
def test_each_place_and_their_order_matters(
    places: slice, copies: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PLACES", parts.PLACES[places])
    with pytest.raises(AssertionError):
        law_parts_are_found_wherever_they_lie(parts.main, copies, capsys)


def model_class(old: str = "", new: str = "") -> type:
    """MyTransformer of the solution, from a text in which something is changed."""
    names: dict = {"__name__": "__main__"}
    for cell in nbformat.read(SOLUTION / f"{ASSIGNMENT}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("check("):
            exec(cell.source.replace(old, new), names)
        if "MyTransformer" in names:
            return names["MyTransformer"]
    raise AssertionError("no model")


def has_positions_of_its_own(model: type) -> None:
    """As the assignment proposes, a reader takes one model's positions away; no other model loses its own."""
    first, second = (model(20, 8, 2, 1, 16) for _ in range(2))
    first.position.zero_()
    assert second.position.any()


def test_an_ablation_touches_one_model() -> None:
    shared = model_class("def sinusoids(", "@__import__('functools').cache\ndef sinusoids(")
    tells_apart(has_positions_of_its_own, model_class(), shared)


def test_a_cell_that_the_reader_wrote_stays(copies: Path) -> None:
    path = copies / parts.CAPSTONE
    notebook = nbformat.read(path, as_version=4)
    next(cell for cell in notebook.cells if name_of(cell) == parts.CELL).source = "own = {}  # by hand"
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="written in by hand"):
        parts.bring_parts(copies)
    assert path.read_bytes() == before


def test_without_a_capstone_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert parts.main([str(tmp_path)]) == 1
    expected = " or ".join(str(tmp_path / place / parts.CAPSTONE) for place in ("", "assignments/release"))
    assert capsys.readouterr().err == f"error: no capstone: expected {expected}\n"
