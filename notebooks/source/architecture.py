"""The picture of the library: which folder or module at its top imports which, read from the code.

    course_lib/**.py -> imports -> needed -> draw -> docs/pictures/architecture.svg

An arrow that follows from others is left out: what blocks import, transformer need not show again.

Usage: python -m notebooks.source.architecture, after a change of imports.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "course_lib"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
BOX, GAP, HEIGHT, ROW, MARGIN = 112, 18, 30, 74, 20
INK, PALE, PAPER, BLUE = "#1a1a1a", "#9a9a9a", "#ffffff", "#0072b2"


def imports(library: Path = LIBRARY) -> dict[str, set[str]]:
    """Each folder or module at the top of the library, and those at the top that it imports.

    Args:
        library: its folder.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(library.rglob("*.py")):
        own = path.relative_to(library).parts[0].removesuffix(".py")
        if own != "__init__":
            found.setdefault(own, set()).update(_imported(path, library) - {own})
    return found


def _imported(path: Path, library: Path) -> set[str]:
    """What stands at the top of the library among what a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    inside = {name.split(".")[1] for name in names if name.startswith(f"{library.name}.")}
    return {name for name in inside if (library / name).is_dir() or (library / f"{name}.py").is_file()}


def needed(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""
    reached = {name: _reached(graph, name) for name in graph}
    return {
        name: {one for one in targets if not any(one in reached[other] for other in targets - {one})}
        for name, targets in graph.items()
    }


def _reached(graph: dict[str, set[str]], name: str) -> set[str]:
    below = graph[name]
    return below.union(*(_reached(graph, target) for target in below))


def levels(graph: dict[str, set[str]]) -> list[list[str]]:
    """Rows from the bottom: what needs nothing of the library, then what needs that, and so on."""
    height: dict[str, int] = {}
    while len(height) < len(graph):
        ready = [name for name in graph if name not in height and graph[name] <= height.keys()]
        if not ready:
            raise ValueError(f"expected no circle of imports, got one among {sorted(graph.keys() - height.keys())}")
        height |= {name: 1 + max((height[below] for below in graph[name]), default=-1) for name in ready}
    return [sorted(name for name in graph if height[name] == row) for row in range(max(height.values()) + 1)]


def draw(graph: dict[str, set[str]]) -> str:
    """The picture as SVG: an arrow leads from who imports to what it imports."""
    arrows, rows = needed(graph), _untangled(levels(graph), needed(graph))
    width = max(map(len, rows)) * (BOX + GAP) + 2 * MARGIN
    place = {}
    for number, row in enumerate(reversed(rows)):
        left = (width - len(row) * (BOX + GAP) + GAP) / 2
        place |= {name: (left + at * (BOX + GAP), MARGIN + number * ROW) for at, name in enumerate(row)}
    height = len(rows) * ROW - ROW + HEIGHT + 2 * MARGIN
    shapes = [f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>']
    for name, targets in sorted(arrows.items()):
        shapes += [_arrow(name, target, place) for target in sorted(targets)]
    shapes += [_box(name, *place[name], folder=(LIBRARY / name).is_dir()) for name in sorted(place)]
    tip = '<marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7" markerHeight="7" orient="auto">'
    tip += f'<path d="M0 0L6 3L0 6z" fill="{PALE}"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="13">', f"<defs>{tip}</defs>", *shapes, "</svg>\n"])


def _untangled(rows: list[list[str]], arrows: dict[str, set[str]]) -> list[list[str]]:
    """Each row in the order of what it needs below, so that few arrows cross."""
    at: dict[str, float] = {}
    for row in rows:
        middle = {name: [at[below] for below in arrows[name]] for name in row}
        row.sort(key=lambda name: (sum(middle[name]) / len(middle[name]) if middle[name] else 0.5, name))  # noqa: B023
        at |= {name: (number + 0.5) / len(row) for number, name in enumerate(row)}
    return rows


def _arrow(name: str, target: str, place: dict[str, tuple[float, float]]) -> str:
    (x, y), (to, below) = place[name], place[target]
    x, y, to, below = x + BOX / 2, y + HEIGHT, to + BOX / 2, below - 2
    curve = f"M{x:.0f} {y}C{x:.0f} {y + ROW / 2:.0f} {to:.0f} {below - ROW / 2:.0f} {to:.0f} {below:.0f}"
    return f'<path d="{curve}" data-arrow="{name} {target}" stroke="{PALE}" fill="none" marker-end="url(#tip)"/>'


def _box(name: str, x: float, y: float, *, folder: bool) -> str:
    words = f"{name}/" if folder else name
    rect = f'<rect x="{x:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="4" fill="{PAPER}" stroke="{BLUE}"/>'
    return f'{rect}<text x="{x + BOX / 2:.0f}" y="{y + 20}" fill="{INK}" text-anchor="middle">{words}</text>'


def main() -> None:
    """Draws the library as it is."""
    PICTURE.write_text(draw(imports()), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
