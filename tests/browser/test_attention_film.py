import pytest
from playwright.sync_api import Locator, expect
from tests.helpers.pages import move, new_widget
CELLS = (
    "from itertools import islice\n"
    "from course_lib.analysis import film\n"
    "from course_lib.grammar import build as grammar, realize, trees\n"
    "from course_lib.widgets import AttentionExplorer",
    'apple = grammar.a("apple", "sweet")\n'
    'tree = grammar.clause(grammar.the("woman", "old"), "zeigen", dative=grammar.the("child"), accusative=apple)\n'
    "example = grammar.pair(tree)\n"
    'course = film("course", islice(trees(seed=1), 500))\n'
    "explorer = AttentionExplorer(course, example.src, head=2, pairs=[example])\n"
    "explorer",
)
explorer = new_widget

def test_it_is_photographed(explorer, lab):
    lab.page.set_viewport_size({"width": 1280, "height": 1300})
    lab.photograph(explorer, "film_first")
    move(explorer, "training step", 4)
    lab.page.wait_for_timeout(1000)
    lab.photograph(explorer, "film")
    explorer.get_by_label("head", exact=True).select_option("all")
    lab.photograph(explorer, "film_all")
