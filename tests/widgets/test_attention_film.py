"""The attention explorer with the film of a training, without a browser; and without a film nothing is there."""

import json
from itertools import islice

import numpy as np
import pytest
import torch
import traitlets

from course_lib.analysis import film
from course_lib.grammar import build as grammar
from course_lib.grammar import trees
from course_lib.recording import KINDS
from course_lib.translator import Translator
from course_lib.widgets import AttentionExplorer
from course_lib.widgets.attention_explorer import MAX_TOKENS, WRITTEN
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

COURSE = film("course", islice(trees(seed=1), 300))
PAIR = grammar.pair(grammar.clause(grammar.the("woman", "old"), "sehen", accusative=grammar.a("apple", "sweet")))
FILM_ONLY = {"film", "frame", "own"}


def widget(text=PAIR.src, **options):
    return AttentionExplorer(COURSE, text, **options)


def sent(explorer):
    """The maps as the browser has them, one kind after the other."""
    return np.frombuffer(explorer.weights, "<u2") / 65_535


def flat(exploration):
    """The library's maps in that order."""
    maps = [torch.stack(getattr(exploration.attention, kind))[..., :MAX_TOKENS, :MAX_TOKENS] for kind in KINDS]
    return torch.cat([each.flatten() for each in maps]).numpy()


def test_without_a_film_nothing_of_it_is_there():
    plain = AttentionExplorer(Translator.from_pretrained("course"), PAIR.src)
    assert not FILM_ONLY & {*plain.get_state(), *plain.view} and "written" not in plain.view
    assert set(widget().get_state()) - set(plain.get_state()) == FILM_ONLY


def every_frame_is_the_librarys(make):
    explorer = make()
    for own in (False, True):
        explorer.own = own
        for frame, step in enumerate(COURSE.steps):
            explorer.frame = frame
            found, written = COURSE.scene(PAIR.src, step, own=own)
            view = explorer.view
            assert (view["frame"], view["own"], view["text"]) == (frame, own, found.text)
            assert len(view["written"]) <= WRITTEN and written.startswith(view["written"].removesuffix(" …"))
            np.testing.assert_allclose(sent(explorer), flat(found), atol=1e-5)


class OfTheFinishedOne(AttentionExplorer):
    def _scene(self, frame):
        return super()._scene(len(COURSE.steps) - 1)


class NeverItsOwn(AttentionExplorer):
    def _translate(self):
        own, self.own = self.own, False
        super()._translate()
        self.view = self.view | {"own": own}


@pytest.mark.parametrize("wrong", [OfTheFinishedOne, NeverItsOwn])
def test_every_frame_is_the_librarys(wrong):
    every_frame_is_the_librarys(widget)
    with pytest.raises(AssertionError):
        every_frame_is_the_librarys(lambda: wrong(COURSE, PAIR.src))


def test_gold_links_stay_while_the_finished_text_is_read():
    explorer = widget(pairs=[PAIR])
    errors = []
    for frame in range(len(COURSE.steps)):
        explorer.frame = frame
        assert explorer.view["gold"]
        errors.append(explorer.view["rates"][1][2])
    assert errors[0] > 0.5 and errors[-1] == 0
    explorer.own = True
    assert explorer.view["gold"] and COURSE.steps[explorer.frame] == 5572
    explorer.frame = 0
    assert explorer.view["gold"] is explorer.view["rates"] is None


def test_what_is_known_of_all_steps_is_the_films():
    sent = json.loads(json.dumps(widget().film))
    assert sent["steps"] == COURSE.steps and sent["sentences"] == 150
    assert sent["rates"] == COURSE.rates.tolist() and sent["best_rates"] == COURSE.best_rates
    assert sent["rates"][3][1][2] == COURSE.rates[3, 1, 2].item()
    real = {(role.kind, role.relation): role for role in COURSE.roles if role.real or role.relation == "previous token"}
    assert {(role["kind"], role["relation"]) for role in sent["roles"]} == set(real) and len(real) > 2
    for role in sent["roles"]:
        ours = real[role["kind"], role["relation"]]
        assert role["shares"] == list(ours.shares) and (role["layer"], role["head"]) == (ours.layer, ours.head)
        assert role["distance"] == (None if role["relation"] == "previous token" else ours.distance)
    assert len(json.dumps(sent)) < 6_000


def test_the_sentence_the_frame_and_forced_tokens_go_together():
    explorer = widget()
    explorer.frame = 4
    explorer.text = "The cat sleeps."
    assert explorer.frame == explorer.view["frame"] == 4
    assert explorer.view["written"] == COURSE.scene("The cat sleeps.", 597).written
    explorer.forced = COURSE.finished.tokenizer.encode("Der Hund")
    expected = COURSE.scene("The cat sleeps.", 597, prefix=explorer.forced)
    assert (explorer.view["text"], explorer.view["written"]) == (expected.exploration.text, expected.written)
    explorer.silent = [["cross", 1, head] for head in range(4)]
    assert explorer.view["written"] != expected.written and explorer.view["text"] == expected.exploration.text


def test_a_step_that_is_not_there_and_a_bad_sentence_change_nothing():
    explorer = widget()
    before = explorer.view, explorer.weights
    for frame in (-1, 10):
        assert raised(traitlets.TraitError, lambda frame=frame: setattr(explorer, "frame", frame))
    explorer.text = ""
    explorer.frame = 3
    assert "empty sentence" in explorer.message and (explorer.view, explorer.weights) == before
    explorer.text = PAIR.src
    assert explorer.message == "" and explorer.view["frame"] == 3


def test_a_stored_notebook_keeps_the_head_at_several_steps():
    rates = COURSE.rates[:, 1, 2].tolist()
    words = stored_words(widget(head=2))
    assert words.startswith("Head 2 in layer 1 of cross attention as the model learns: its alignment error goes from ")
    assert words.endswith(f" {rates[0]:.0%} to {rates[-1]:.0%}")
    axes = widget(kind="encoder", head=1).picture().axes[:4]
    assert [each.get_xlabel() for each in axes] == ["step 100", "step 382", "step 1,459", "step 5,572"]
    first = COURSE.scene(PAIR.src, 100).exploration.attention.encoder[1][1]
    np.testing.assert_allclose(axes[0].images[0].get_array(), first)
    explorer = widget()
    explorer.frame = 5
    assert "All heads in layer 1 of cross attention after step 933" in explorer.picture().get_suptitle()
    assert explorer.picture().axes[0].get_ylabel() == "predicted token"
    explorer.head, explorer.own = 2, True
    assert explorer.picture().get_suptitle().startswith("Head 2 in layer 1 of cross attention after step 933")
    assert "an empty sentence" in widget("", head=2).picture().get_suptitle()
