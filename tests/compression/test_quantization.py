"""Int8: a quarter of the bytes, nearly the same outputs, and the model that was there before is untouched."""

import logging
from copy import deepcopy

import pytest
import torch
from torch import nn

from course_lib.compression import quantized, weight_bytes
from course_lib.compression.quantization import Int8Rows
from course_lib.decoding import greedy
from course_lib.tokenizer import EOS_ID
from course_lib.translator import Translator
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import tiny_batch, tiny_model

WAYS = [
    dict(activations=activations, embedding=embedding) for activations in (False, True) for embedding in (False, True)
]
WIDE = dict(d_model=32, num_heads=4, d_ff=64, vocab_size=64, tie_weights=True)


def law_outputs_stay_close(way, make=quantized):
    model = tiny_model(**WIDE)
    with torch.no_grad():
        before, after = (each(*tiny_batch()) for each in (model, make(model, **way)))
    off = (after - before).norm() / before.norm()
    assert 1e-4 < off < 0.05, f"{off:.4f} off"


@pytest.mark.parametrize("way", WAYS)
def test_outputs_stay_close(way):
    def halves_all(model, **way):
        copy = quantized(model, **way)
        copy.generator.weight.data.scale.mul_(0.5)
        return copy

    tells_apart(lambda make: law_outputs_stay_close(way, make), quantized, lambda model, **way: model, halves_all)


def law_each_row_has_its_scale(rows_of):
    """Of each row, the number farthest from 0 becomes 127 or -128, and none is off by more than half a step."""
    weight = torch.randn(5, 8, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [[0.01], [1], [3], [9], [100]]
    )
    rows, scale = rows_of(weight)
    assert rows.dtype is torch.int8 and rows.int().abs().amax(dim=1).min() >= 126
    assert ((rows * scale.reshape(-1, 1) - weight).abs() <= 0.51 * scale.reshape(-1, 1)).all()


def rows_of_a_layer(weight):
    model = tiny_model(**WIDE)
    model.generator = nn.Linear(8, 5, bias=False)
    model.generator.weight.data = weight
    found = quantized(model).generator.weight
    return found.qdata, found.scale


def test_each_row_has_its_scale():
    def one_scale(weight):
        scale = weight.abs().max() / 127
        return (weight / scale).round().to(torch.int8), scale

    tells_apart(law_each_row_has_its_scale, rows_of_a_layer, one_scale)


def test_an_embedding_in_int8_looks_rows_up():
    rows, scale = torch.tensor([[1, -2], [127, 0]], dtype=torch.int8), torch.tensor([0.5, 2.0])
    table = Int8Rows(rows, scale)
    assert table(torch.tensor([[1, 0]])).tolist() == [[[254.0, 0.0], [0.5, -1.0]]]
    assert table.embedding_dim == 2


def test_the_embedding_reads_the_rows_of_the_generator():
    small = quantized(tiny_model(**WIDE), embedding=True)
    tables = [small.src_embedding.table.rows, small.tgt_embedding.table.rows, small.generator.weight.qdata]
    assert len({table.data_ptr() for table in tables}) == 1


def law_bytes_are_those_of_int8(count):
    model = tiny_model(**WIDE)
    linear = [each.weight for each in model.modules() if isinstance(each, nn.Linear)]
    numbers, rows = sum(weight.numel() for weight in linear), sum(len(weight) for weight in linear)
    table, all_bytes = model.src_embedding.table.weight, 4 * model.config.num_parameters
    assert count(model) == all_bytes
    # A row of int8 has a scale of four bytes and a zero point of one.
    beside = all_bytes - 4 * (numbers - table.numel())  # biases, norms, and the embedding, which stays
    assert count(quantized(model)) == beside + numbers + 5 * rows
    assert count(quantized(model, embedding=True)) == beside - 4 * table.numel() + numbers + 5 * rows


def test_bytes_are_those_of_int8():
    tells_apart(
        law_bytes_are_those_of_int8,
        weight_bytes,
        lambda model: sum(each.nbytes for each in model.state_dict().values()),
        lambda model: sum(each.nbytes for each in model.parameters()),
    )


def test_the_model_stays_as_it_is():
    model = tiny_model(**WIDE).train()
    before = deepcopy(model.state_dict())
    assert not quantized(model, embedding=True).training and model.training
    for name, tensor in model.state_dict().items():
        assert tensor.dtype is torch.float32 and torch.equal(tensor, before[name])


@pytest.mark.parametrize("way", WAYS)
def test_a_search_reads_the_int8_weights(way):
    """The packed steps are for float32; the slower ones are taken, and find what the model's own logits say."""
    small = quantized(tiny_model(**WIDE), **way)
    src = tiny_batch()[0]
    with torch.no_grad():
        first = small(src, torch.full((3, 1), 1))[:, -1].argmax(dim=-1)
    outputs = greedy(small, src, max_len=4)
    assert [(found.ids or [EOS_ID])[0] for found in outputs] == first.tolist()


def test_nothing_is_said_and_the_log_stays_on(capfd):
    before = logging.root.manager.disable
    quantized(tiny_model(**WIDE))
    assert capfd.readouterr() == ("", "") and logging.root.manager.disable == before


def test_embeddings_of_their_own_are_refused():
    message = str(raised(ValueError, lambda: quantized(tiny_model(), embedding=True)))
    assert message.startswith("only embeddings that are tied to the generator")


@pytest.mark.parametrize("embedding", [False, True])
def test_the_shipped_translator_shrinks_and_translates(embedding):
    translator = Translator.from_pretrained("course")
    small = Translator(quantized(translator.model, embedding=embedding), translator.tokenizer)
    share = weight_bytes(small.model) / weight_bytes(translator.model)
    assert share < (0.3 if embedding else 0.6)
    sentence = "The old woman gives the child a red apple."
    assert small.translate(sentence).text == translator.translate(sentence).text
