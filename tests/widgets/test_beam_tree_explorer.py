"""The beam tree without a browser: its state is that of the library's search, for each sentence, beam and penalty."""

import math

import pytest
import torch

from course_lib.decoding import Steps, record_beam
from course_lib.widgets import BeamTreeExplorer
from course_lib.widgets.beam_tree_explorer import BEAM_SIZES, LENGTH_PENALTIES, MAX_TOKENS
from tests.helpers.laws import changed, raised
from tests.helpers.stored import stored_words
from tests.helpers.tiny import toy_translator

TEXT = "I play."
BEAR = "When the bear ate a banana, their happy sister dreamed of the boy and the girl."


@pytest.fixture(scope="module")
def bear(translator):
    return BeamTreeExplorer(translator, BEAR).beams


def searched(translator, text, **options):
    src = torch.tensor([[*translator.tokenizer.encode(text), translator.model.config.eos_id]])
    return record_beam(translator.model, src, max_len=MAX_TOKENS, **options)[0]


def law_the_view_is_the_search(beams, translator, text, beam_size):
    """Nodes, outputs and the ranking under each penalty are those of a search that is made with it."""
    assert len(beams) == len(BEAM_SIZES)
    view, tokenizer = beams[beam_size - 1], translator.tokenizer
    tree = searched(translator, text, beam_size=beam_size, length_penalty=0.0)
    assert view["nodes"] == [
        [tokenizer.token(node.token), node.step, node.parent, node.log_prob, node.total, node.fate]
        for node in tree.nodes
    ]
    ends = [index for index, node in enumerate(tree.nodes) if node.fate in ("finished", "unfinished")]
    assert [index for index, _ in view["outputs"]] == ends
    assert len(view["scores"]) == len(view["best"]) == len(LENGTH_PENALTIES)
    for place in range(0, len(LENGTH_PENALTIES), 20):
        options = dict(beam_size=beam_size, length_penalty=LENGTH_PENALTIES[place])
        other = searched(translator, text, **options)
        assert view["best"][place] == other.best
        assert view["scores"][place] == [other.nodes[index].score for index in ends]
        assert dict(view["outputs"])[other.best[0]] == translator.translate(text, **options).text


@pytest.mark.parametrize("text, sizes", [(TEXT, BEAM_SIZES), (BEAR, [4])])
def test_the_view_is_the_search(text, sizes, translator):
    beams = BeamTreeExplorer(translator, text).beams
    for beam_size in sizes:
        law_the_view_is_the_search(beams, translator, text, beam_size)


def _of_the_parent(nodes):
    nodes[30][4] = nodes[nodes[30][2]][4]


BROKEN = {
    "another total": changed(lambda beams: _of_the_parent(beams[3]["nodes"])),
    "another parent": changed(lambda beams: beams[3]["nodes"][-1].__setitem__(2, 0)),
    "tokens moved": changed(lambda beams: beams[3]["nodes"][1].__setitem__(0, beams[3]["nodes"][2][0])),
    "one ranking for all": changed(lambda beams: beams[3]["best"].__setitem__(60, beams[3]["best"][0])),
    "scores forget the length": changed(lambda beams: beams[3]["scores"].__setitem__(60, beams[3]["scores"][0])),
    "an output is missing": changed(lambda beams: beams[3]["outputs"].pop()),
    "beams moved": lambda beams: [*beams[1:], beams[0]],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_view_is_caught(broken, bear, translator):
    with pytest.raises(AssertionError):
        law_the_view_is_the_search(broken(bear), translator, BEAR, 4)


def test_new_text_is_searched_and_a_number_chooses(translator):
    tree = BeamTreeExplorer(translator, TEXT)
    tree.text = "The cat sleeps."
    law_the_view_is_the_search(tree.beams, translator, "The cat sleeps.", 3)
    before = tree.beams
    tree.beam_size, tree.length_penalty = 4, 0.61  # between two places of the slider
    assert tree.beams is before and tree.length_penalty == 0.6
    assert tree.tree == searched(translator, "The cat sleeps.", beam_size=4, length_penalty=0.6)
    tree.beam_size = 99
    assert tree.beam_size == 6


def test_a_text_that_cannot_be_searched_gives_a_message_and_changes_nothing_else(translator):
    tree = BeamTreeExplorer(translator, TEXT)
    before = tree.beams
    for text, message in {
        "": "an empty sentence cannot be translated: ''",
        "word " * 200: f"the sentence has 401 tokens; the widget takes up to {MAX_TOKENS}",
    }.items():
        tree.text = text
        assert (tree.message, tree.beams) == (message, before)
    tree.text = "The cat sleeps."
    assert tree.message == "" and tree.beams != before


def test_a_search_that_finds_no_end_is_cut_and_ranked_all_the_same(monkeypatch):
    def endless(steps, last, call=Steps.__call__):
        log_probs = call(steps, last)
        log_probs[:, 2] = -math.inf  # </s>
        return log_probs

    monkeypatch.setattr(Steps, "__call__", endless)
    tree = BeamTreeExplorer(toy_translator(1, max_len=64), "a dog sees a cat .", beam_size=2)
    for view, size in zip(tree.beams, BEAM_SIZES, strict=True):
        assert max(step for _, step, *_ in view["nodes"]) <= MAX_TOKENS and 1 <= len(view["best"][0]) <= size
    assert tree.tree.nodes[tree.tree.best[0]].fate == "unfinished"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(text=""), "an empty sentence cannot be translated: ''"),
        (dict(text="a " * 50), "the sentence has 51 tokens; the widget takes up to 40"),
        (dict(beam_size=0), "beam_size must be in 1..6, got 0"),
        (dict(beam_size=7), "beam_size must be in 1..6, got 7"),
        (dict(length_penalty=-0.1), "length_penalty must be in 0.0..3.0, got -0.1"),
        (dict(length_penalty=math.nan), "length_penalty must be in 0.0..3.0, got nan"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, translator):
    error = raised(ValueError, lambda: BeamTreeExplorer(translator, **{"text": TEXT} | arguments))
    assert str(error) == message


def test_the_stored_picture_says_what_is_seen(translator):
    tree = BeamTreeExplorer(translator, BEAR, beam_size=4, length_penalty=0.6)
    assert tree.picture().get_suptitle().replace("\n", " ").endswith("ihre glückliche Schwester vom Jungen.")
    tree.length_penalty = 0.0
    assert tree.picture().get_suptitle().replace("\n", " ") == (
        "A beam of 4 finds: Als der Bär eine Banane fraß, träumte ihre glückliche Schwester vom Jungen."
    )
    words = stored_words(tree)
    assert words.startswith("A beam of 4 finds: ")
