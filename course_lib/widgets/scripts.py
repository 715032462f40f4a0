"""The widgets' scripts: ES modules in static/, joined into one module for pages that load only one."""

import re
from pathlib import Path

STATIC = Path(__file__).with_name("static")
IMPORT = re.compile(r'^import \{([\w,\s]+)\} from "(\.[\w./]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export(?! default \{)).*", re.MULTILINE)


def joined(script: Path) -> str:
    """Maps a script to one module with all that it imports in front, each file in a scope of its own.

    Args:
        script: an ES module, which imports from its folder and below; anywidget loads its default export.

    Raises:
        ValueError: if files import in a circle, a name is not exported, or an import or export is of another kind
            than `import { a, b } from "./c.js";`, `export const`, `export function` and `export default {`.
    """
    scopes: dict[Path, str] = {}  # an imported file comes before those that import it
    code = _linked(script, script.parent, scopes, ())
    return "\n".join([*scopes.values(), code])


def _linked(path: Path, root: Path, scopes: dict[Path, str], importers: tuple[Path, ...]) -> str:
    """A file's code, in which imports are taken from scopes; those that are missing are added."""
    importers = (*importers, path)

    def link(found: re.Match) -> str:
        names, target = found[1].replace(",", " ").split(), (path.parent / found[2]).resolve()
        if target in importers:
            raise ValueError(f"a circle of imports: {' → '.join(each.name for each in (*importers, target))}")
        if target not in scopes:
            scopes[target] = _scope(target, root, scopes, importers)
        missing = sorted(set(names) - set(exports(target)))
        if missing:
            raise ValueError(f"{path.name} imports {', '.join(missing)}, which {target.name} does not export")
        return f"const {{ {', '.join(names)} }} = {_name(target, root)};"

    code = IMPORT.sub(link, path.read_text(encoding="utf-8"))
    other = OTHER.search(EXPORT.sub("", code))
    if other:
        raise ValueError(f"{path.name}: expected an import or export of a known kind, got {other[0]!r}")
    return code


def _scope(path: Path, root: Path, scopes: dict[Path, str], importers: tuple[Path, ...]) -> str:
    code = EXPORT.sub("", _linked(path, root, scopes, importers))
    return f"const {_name(path, root)} = (() => {{\n{code}return {{ {', '.join(exports(path))} }};\n}})();\n"


def _name(path: Path, root: Path) -> str:
    """static/shared/dom.js → shared_dom, which no script calls anything else."""
    return "_".join(path.relative_to(root).with_suffix("").parts)


def exports(path: Path) -> list[str]:
    """Returns the names that a script exports."""
    return EXPORT.findall(path.read_text(encoding="utf-8"))
