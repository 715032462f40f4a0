"""The attention explorer on a page: the cells that show it, and what it shows."""

from playwright.sync_api import Locator

from tests.helpers.lab import eventually

CELLS = (
    "from course_lib.grammar import build as grammar\n"
    "from course_lib.translator import Translator\n"
    "from course_lib.widgets import AttentionExplorer",
    'apple = grammar.a("apple", "red")\n'
    'tree = grammar.clause(grammar.the("woman", "old"), "geben", dative=grammar.the("child"), accusative=apple)\n'
    "example = grammar.pair(tree)\n"
    'explorer = AttentionExplorer(Translator.from_pretrained("course"), example.src, head=1, pairs=[example])\n'
    "explorer",
)
KINDS = ("encoder", "decoder", "cross")
TEXT = "The old woman gives the child a red apple."


def choose(explorer: Locator, name: str, value: str) -> None:
    explorer.get_by_label(name, exact=True).select_option(value)


def drawn(explorer: Locator) -> dict[tuple[int, int], float]:
    """The weights in the matrix on the page."""
    cells = explorer.locator(".cw-stage rect[data-weight]")
    return {
        (int(row), int(column)): float(weight)
        for row, column, weight in cells.evaluate_all(
            "nodes => nodes.map(n => [n.dataset.row, n.dataset.column, n.dataset.weight])"
        )
    }


@eventually
def shows(explorer: Locator, weights) -> None:
    """The page has every weight of a map (queries, keys), to 4 digits, and no other."""
    found = drawn(explorer)
    assert found.keys() == {(row, column) for row in range(weights.shape[0]) for column in range(weights.shape[1])}
    for (row, column), weight in found.items():
        assert abs(weight - weights[row, column].item()) < 1e-4, (row, column)


def shows_every_head(explorer: Locator, maps) -> None:
    """The page shows each map of maps[layer][head], as soon as it is chosen."""
    for layer, heads in enumerate(maps):
        choose(explorer, "layer", str(layer))
        for head, weights in enumerate(heads):
            choose(explorer, "head", str(head))
            shows(explorer, weights)
