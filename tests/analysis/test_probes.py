"""Linear probes: they find what is there and not what is not; labels are the grammar's."""

import pytest
import torch

from course_lib.analysis import fit_probe, layer_states, probes, word_labels
from course_lib.grammar import build as grammar
from course_lib.grammar import realize
from course_lib.grammar.lexicon import function_words
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import tiny_batch, tiny_model

SRC, TGT_IN = tiny_batch()
SIZES = (600, 8)


def blobs(seed=0, spread=1.0):
    """Vectors of three classes, a step apart along one direction, behind noise and far from 0."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (SIZES[0],), generator=generator)
    vectors = torch.randn(SIZES, generator=generator) * spread + 100
    vectors[:, 2] += 4 * labels
    return vectors, labels


# --- probes -------------------------------------------------------------------------------------


def a_probe_finds_what_is_there(fit):
    vectors, labels = blobs()
    assert fit(vectors[:400], labels[:400]).accuracy(vectors[400:], labels[400:]) > 0.93
    shuffled = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))]
    assert fit(vectors[:400], shuffled[:400]).accuracy(vectors[400:], shuffled[400:]) < 0.45


def test_a_probe_finds_what_is_there_and_nothing_else():
    def untrained(vectors, labels):
        return patched(fit_probe, _Steps(0))(vectors, labels)

    tells_apart(a_probe_finds_what_is_there, fit_probe, untrained)


class _Steps:
    """In force between start and stop: a probe takes so many steps."""

    def __init__(self, steps):
        self.steps, self.patch = steps, pytest.MonkeyPatch()

    def start(self):
        self.patch.setattr(probes, "STEPS", self.steps)
        self.patch.setattr(probes, "DECAY", 1e9)

    def stop(self):
        self.patch.undo()


def test_a_probe_is_the_minimum_of_its_loss():
    """The gradient of cross-entropy and decay is 0 there."""
    vectors, labels = (each.double() if each.is_floating_point() else each for each in blobs())
    probe = fit_probe(vectors, labels)
    weight, bias = probe.weight.clone().requires_grad_(), probe.bias.clone().requires_grad_()
    inputs = (vectors - probe.mean) / probe.spread
    loss = torch.nn.functional.cross_entropy(inputs @ weight + bias, labels) + probes.DECAY * weight.square().sum()
    for gradient in torch.autograd.grad(loss, [weight, bias]):
        assert gradient.abs().max() < 1e-3
    assert inputs.mean(dim=0).abs().max() < 1e-9 and (inputs.std(dim=0, correction=0) - 1).abs().max() < 1e-9


def test_a_feature_that_never_changes_does_no_harm():
    vectors, labels = blobs()
    vectors[:, 5] = 3
    assert fit_probe(vectors, labels).accuracy(vectors, labels) > 0.93


def test_a_class_that_does_not_occur_can_be_kept():
    vectors, labels = blobs()
    probe = fit_probe(vectors, labels, classes=5)
    assert probe.bias.shape == (5,) and probe.predict(vectors).max() < 3


@pytest.mark.parametrize("vectors, labels", [(torch.zeros(0, 2), torch.zeros(0)), (torch.zeros(3, 2), torch.zeros(2))])
def test_vectors_without_labels_are_refused(vectors, labels):
    message = f"expected a label for each of some vectors, got {len(vectors)} vectors, {len(labels)} labels"
    assert message in str(raised(ValueError, lambda: fit_probe(vectors, labels)))


# --- labels -------------------------------------------------------------------------------------

TREE = grammar.sentence(
    grammar.clause(grammar.the("woman", "old"), "abholen", accusative=(dog := grammar.the("dog"))),
    function_words.BECAUSE,
    grammar.clause(grammar.it(dog), "schlafen"),
)


def test_labels_are_the_grammars():
    labels = word_labels(TREE)
    assert [each.word for each in labels] == [word.lower() for word in realize(TREE).src_words]
    assert [tuple(each) for each in labels] == [
        ("the", "determiner", "woman", "f"),
        ("old", "adjective", "woman", "f"),
        ("woman", "noun", "woman", "f"),
        ("picks", "verb", None, None),
        ("up", "verb", None, None),
        ("the", "determiner", "dog", "m"),
        ("dog", "noun", "dog", "m"),
        ("because", "conjunction", None, None),
        ("it", "pronoun", None, None),
        ("sleeps", "verb", None, None),
        (".", None, None, None),
    ]


# --- states -------------------------------------------------------------------------------------


def states_are_what_goes_from_layer_to_layer(states):
    model = tiny_model(spread=3).double().train()
    found = states(model, SRC, TGT_IN)
    assert model.training and not model.encoder.layers[0]._forward_hooks and not found["encoder"][0].requires_grad
    model.eval()
    torch.testing.assert_close(found["encoder"][0], model.src_embedding(SRC))
    torch.testing.assert_close(found["decoder"][0], model.tgt_embedding(TGT_IN))
    torch.testing.assert_close(model.encoder.norm(found["encoder"][-1]), model.encode(SRC))
    torch.testing.assert_close(model.decoder.norm(found["decoder"][-1]), model.decode(TGT_IN, model.encode(SRC), SRC))
    assert len(found["encoder"]) == len(found["decoder"]) == model.config.num_layers + 1


def test_states_are_what_goes_from_layer_to_layer():
    def one_early(model, src, tgt_in):
        return {name: [each[0], *each[:-1]] for name, each in layer_states(model, src, tgt_in).items()}

    def of_the_other(model, src, tgt_in):
        found = layer_states(model, src, tgt_in)
        return {"encoder": found["decoder"], "decoder": found["encoder"]}

    tells_apart(states_are_what_goes_from_layer_to_layer, layer_states, one_early, of_the_other)
