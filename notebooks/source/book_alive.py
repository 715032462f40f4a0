"""What lets widgets answer in the page, without a kernel: scripts, the shipped translators, and a runtime for them.

book_model.py, docs/book/alive, widgets' scripts, onnxruntime-web (npm), recordings -> files -> _static/alive/
"""

import hashlib
import html
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from course_lib.storage import replacing
from course_lib.translator import PRETRAINED, Translator
from course_lib.widgets import AttentionExplorer, Playground
from notebooks.source.book_recorded import place, recordings
from notebooks.source.book_recordings import RECORDED

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "docs" / "book" / "alive"
KEPT = ROOT / "build" / "alive"  # what takes long to make, or has to be fetched
RUNTIME = "onnxruntime-web@1.30.0"
OF_RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
WIDGETS = {"playground": Playground, "explorer": AttentionExplorer}
MODELS = ("everyday", "course")


@dataclass(frozen=True)
class Living:
    """A widget of a lesson that answers on the lesson's page.

    Args:
        lesson: its notebook.
        widget: the name under which its cell shows it, which is one of WIDGETS.
        model: the translator's name.
        text: the sentence that it begins with.
    """

    lesson: str
    widget: str
    model: str
    text: str

    @property
    def place(self) -> str:
        """HTML that docs/book/alive/mount.js fills."""
        data = {"widget": self.widget, "model": self.model, "text": self.text}
        return "".join(f' data-{name}="{html.escape(value)}"' for name, value in data.items())


THE_APPLE = "The old woman shows the child a sweet apple."
LIVING = (
    Living("notebooks/00_welcome.ipynb", "playground", "everyday", "We have to get up early tomorrow."),
    Living("notebooks/00_welcome.ipynb", "explorer", "everyday", "Today the boy opens the window."),
    Living("notebooks/12_reading_attention.ipynb", "explorer", "course", THE_APPLE),
)


def enliven(lesson: str, notebook: NotebookNode) -> None:
    """Puts the place of a living or recorded widget around the note below its first state."""
    places = [(living.widget, living.place) for living in LIVING if living.lesson == lesson]
    for name, recorded in RECORDED.items():
        if lesson == f"notebooks/{recorded.lesson}.ipynb":
            places.append((recorded.last, place(name, recorded)))
    for last, data in places:
        (cell,) = (c for c in notebook.cells if c.cell_type == "code" and c.source.splitlines()[-1:] == [last])
        note = cell.outputs[-1].data
        note["text/html"] = f'<div class="alive"{data}>{note["text/html"]}</div>'


def files() -> dict[str, Path | str]:
    """All that the pages need, by its place in _static/alive."""
    found: dict[str, Path | str] = {path.name: path for path in SCRIPTS.glob("*.js")}
    found |= {f"{name}.js": widget._esm for name, widget in WIDGETS.items()}
    found |= {f"{name}.js": recorded.kind._esm for name, recorded in RECORDED.items()}
    found |= {f"recorded/{path.name}": path for path in recordings(KEPT, RECORDED).values()}
    found["widgets.css"] = Playground._css
    for name in MODELS:
        found |= {f"models/{name}/{path.name}": path for path in model(name).iterdir()}
    return found | {f"runtime/{name}": runtime() / name for name in OF_RUNTIME}


def model(name: str) -> Path:
    """The folder of an exported translator; it is exported again when its weights or the export have changed."""
    weights, tokenizer = (PRETRAINED / name / file for file in ("model.safetensors", "tokenizer.json"))
    code = (Path(__file__).with_name(f"book_{part}.py") for part in ("graphs", "model"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (weights, tokenizer, *code))).hexdigest()[:12]
    folder = KEPT / f"{name}-{digest}"
    if not folder.exists():
        from notebooks.source.book_model import export  # needs the extra [book]

        export(Translator.from_pretrained(name), KEPT / "exported")
        (KEPT / "exported").rename(folder)
    return folder


def runtime() -> Path:
    """The folder of ONNX Runtime Web, see `from_npm`."""
    return from_npm(RUNTIME, *(f"dist/{name}" for name in OF_RUNTIME))


def from_npm(package: str, *files: str) -> Path:
    """The folder of some files of a package, `name@version`, as npm has it; it is fetched once.

    Raises:
        FileNotFoundError: npm is not installed.
        subprocess.CalledProcessError: it cannot fetch the package.
    """
    folder = KEPT / package
    if not folder.exists():
        if shutil.which("npm") is None:
            raise FileNotFoundError(f"npm is not installed; it fetches {package}")
        KEPT.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", package]
        packed = subprocess.run(command, cwd=KEPT, check=True, stdout=subprocess.PIPE, text=True)
        archive = KEPT / packed.stdout.split()[-1]
        with tarfile.open(archive) as content:
            for name in files:
                if (file := content.extractfile(f"package/{name}")) is not None:
                    with replacing(KEPT / "unpacked" / Path(name).name) as path:
                        path.write_bytes(file.read())
        (KEPT / "unpacked").rename(folder)
        archive.unlink()
    return folder
