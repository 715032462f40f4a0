"""The merge stepper without a browser: its view is what the library learns, for each text, at each step."""

import json

import pytest
import traitlets as t

from course_lib.analysis.merges import learn_merges
from course_lib.widgets import MergeStepper
from course_lib.widgets.merge_stepper import LONGEST, OFFERED
from tests.helpers.laws import changed, raised
from tests.helpers.stored import stored_words

TINY = "The cat sleeps. The cat sees the dog. The dog sees the cat."
TEXTS = [TINY, "a", "aaaa aaa aaaaaaa", "😀 <b onclick=alert(1)>fett</b> & so", "Donaudampfschifffahrt " * 13]


def law_the_view_is_what_the_library_learns(view, text):
    learned = learn_merges(text)
    assert view["numbers"] == learned.vocab and len(view["steps"]) == len(learned.pairs)
    assert [view["steps"][number]["pair"] for number in range(len(learned.pairs))] == list(map(list, learned.pairs))
    for step, counts, pair in zip(view["steps"], learned.counts, learned.pairs, strict=True):
        assert step["count"] == counts[pair] == max(counts.values()) and step["different"] == len(counts)
        assert step["tied"] == list(counts.values()).count(step["count"]) - 1
        offered = {(left, right): count for left, right, count in step["offered"]}
        assert len(offered) == min(OFFERED, len(counts)) and offered.items() <= counts.items() and pair in offered
        rest = [count for each, count in counts.items() if each not in offered]
        assert sorted(offered.values())[1:] == [] or max(rest, default=0) <= sorted(offered.values())[1]
    for merges, stage in enumerate(learned.stages):
        pieces = []
        for index in view["order"]:
            pieces += [symbols for at, symbols in view["words"][index] if at <= merges][-1]
        assert pieces == [symbol for word in learned.words for symbol in stage[word]]
    assert view["start"] == 4 + len(set("".join(learned.words)))


@pytest.mark.parametrize("text", TEXTS)
def test_the_view_is_what_the_library_learns(text):
    stepper = MergeStepper(text)
    law_the_view_is_what_the_library_learns(stepper.view, text)
    assert json.loads(json.dumps(stepper.view)) == stepper.view  # what arrives in the browser


BROKEN = {
    "pairs in another order": changed(lambda view: view["steps"].reverse()),
    "another count": changed(lambda view: view["steps"][3].update(count=4)),
    "no ties": changed(lambda view: view["steps"][1].update(tied=0)),
    "an offer is missing": changed(lambda view: view["steps"][0]["offered"].pop()),
    "an offer is wrong": changed(lambda view: view["steps"][0]["offered"][0].__setitem__(2, 6)),
    "words in another order": changed(lambda view: view["order"].sort()),
    "one merge late": changed(lambda view: view["words"][0][1].__setitem__(0, 2)),
    "other numbers": changed(lambda view: view["numbers"].update(he=17)),
    "specials forgotten": changed(lambda view: view.update(start=14)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_view_is_caught(broken):
    with pytest.raises(AssertionError):
        law_the_view_is_what_the_library_learns(broken(MergeStepper(TINY).view), TINY)


def test_the_pieces_are_those_of_the_step():
    stepper = MergeStepper(TINY, merges=1)
    assert stepper.pieces()[:6] == ["▁", "T", "he", "▁", "c", "a"]
    stepper.merges = 0
    assert "".join(stepper.pieces()) == "▁" + TINY.replace(" ", "▁") and "he" not in stepper.pieces()
    stepper.merges = 99  # more than there are
    assert stepper.merges == 19 and stepper.pieces() == stepper.learned.words


def test_another_text_starts_anew():
    stepper = MergeStepper(TINY, merges=19)
    stepper.text = "Der Hund sieht die Katze."
    assert (stepper.merges, stepper.message) == (0, "")
    law_the_view_is_what_the_library_learns(stepper.view, "Der Hund sieht die Katze.")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no text to learn subwords from"),
        (" \n ", "no text to learn subwords from"),
        ("word " * 200, f"the text has 1000 characters; the stepper shows up to {LONGEST}"),
    ],
)
def test_a_text_that_cannot_be_learned_gives_a_message_and_changes_nothing_else(text, message):
    assert str(raised(ValueError, lambda: MergeStepper(text))) == message
    stepper = MergeStepper(TINY, merges=5)
    before = stepper.view
    stepper.text = text
    assert (stepper.message, stepper.merges, stepper.view) == (message, 5, before)
    stepper.text = "a b"
    assert stepper.message == "" and stepper.view != before


@pytest.mark.parametrize("merges", [-1, 20])
def test_bad_arguments_are_refused(merges):
    error = raised(ValueError, lambda: MergeStepper(TINY, merges=merges))
    assert str(error) == f"merges must be in 0..19, got {merges}"
    stepper = MergeStepper(TINY)
    with pytest.raises(t.TraitError):
        stepper.merges = -1


def law_the_picture_shows_the_state(picture, stepper):
    figure = picture(stepper)
    title = figure.get_suptitle().replace("\n", " ")
    pieces = " ".join(stepper.pieces())
    assert title.startswith(f"After {stepper.merges} of {len(stepper.learned.pairs)} merges: {pieces[:40]}")
    axes = figure.axes[0]
    bars = {label.get_text(): bar.get_width() for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)}
    if stepper.merges < len(stepper.learned.pairs):
        counts = {" ".join(pair): count for pair, count in stepper.learned.counts[stepper.merges].items()}
    else:
        counts = {piece: stepper.pieces().count(piece) for piece in stepper.pieces()}
    assert bars.items() <= counts.items() and sorted(bars.values()) == sorted(counts.values())[-OFFERED:]


def test_the_picture_shows_the_present_state():
    stepper = MergeStepper(TINY)
    first = stepper.picture()
    for merges in (0, 1, 18, 19):
        stepper.merges = merges
        law_the_picture_shows_the_state(MergeStepper.picture, stepper)
    with pytest.raises(AssertionError):
        law_the_picture_shows_the_state(lambda _: first, stepper)


@pytest.mark.parametrize("text", [TINY, "a", "😀 हिन्दी 中文", "x" * 300, "Wort " * 60])
def test_a_stored_notebook_has_the_picture_and_its_words(text):
    words = stored_words(MergeStepper(text))
    assert words.startswith("After 0 of ")
