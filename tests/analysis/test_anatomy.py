"""The boxes of figure 1 on paper: their counts add up, their formulas give them, their shapes are a real model's."""

import copy
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch

from course_lib.analysis.anatomy import stations
from course_lib.config import model_preset
from course_lib.recording import record_attention
from course_lib.transformer import Transformer
from tests.helpers.laws import raised
from tests.helpers.tiny import MODEL_VARIANTS, on_paper

CONFIGS = [*MODEL_VARIANTS, model_preset("base", vocab_size=37_000), model_preset("big", vocab_size=37_000)]
SRC_LEN, TGT_LEN = 7, 5
SUBLAYERS = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}


def station_of(name, config):
    """The station that a parameter or module of a Transformer belongs to."""
    top, *parts = name.split(".")
    if top == "generator":
        return "generator"
    if top.endswith("embedding"):
        side = "source" if top.startswith("src") else "target"
        return f"{side} {'position' if parts[0] == 'position' else 'embedding'}"
    if parts[0] == "norm":
        return f"{top} final norm"
    sublayer, _, norm = parts[2].partition("_path")
    return f"{top} {SUBLAYERS[sublayer]}{' norm' if '_path' in parts[2] else ''}"


def law_counts_add_up(stations):
    for config in CONFIGS:
        for src_len, tgt_len in ((SRC_LEN, TGT_LEN), (1, 1), (30, 3000)):
            found = stations(config, src_len, tgt_len)
            assert len({station.name for station in found}) == len(found)
            assert sum(station.parameters for station in found) == config.num_parameters
            assert sum(station.flops for station in found) == sum(config.flop_counts(src_len, tgt_len).values())


def law_each_box_has_its_parameters(stations):
    for config in CONFIGS:
        counted = Counter()
        for name, parameter in on_paper(config).named_parameters():  # a shared one comes once
            counted[station_of(name, config)] += parameter.numel()
        assert counted == {each.name: each.parameters for each in stations(config, 3, 4) if each.parameters}


def law_formulas_give_the_counts(stations):
    for config in CONFIGS:
        for station in stations(config, SRC_LEN, TGT_LEN):
            times = max(1, station.layers)
            for formula, count in (
                (station.parameter_formula, station.parameters),
                (station.flop_formula, station.flops),
            ):
                value = eval(formula.replace("·", "*").replace(",", "")) if formula else 0
                assert value * times == count, (station.name, formula)


def shapes_in(config):
    """Runs a real model: module name to the shapes that go in and come out, without the batch axis; and its maps."""
    model, seen, handles = Transformer(config).eval(), {}, []

    def note(name, inputs, output):
        seen[name] = [tuple(each.shape[1:]) for each in inputs if torch.is_tensor(each)], tuple(output.shape[1:])

    for name, module in model.named_modules():
        if name.split(".")[-1] in ("self_attn", "cross_attn", "up", "down", "norm", "generator", "src_embedding"):
            handles.append(module.register_forward_hook(lambda _, *both, name=name: note(name, *both)))
    with torch.no_grad(), record_attention(model) as maps:
        model(*(torch.arange(4, 4 + length)[None] for length in (SRC_LEN, TGT_LEN)))
    for handle in handles:
        handle.remove()
    return seen, maps


def law_shapes_are_those_of_a_model(stations):
    for config in MODEL_VARIANTS:
        seen, maps = shapes_in(config)
        found = {station.name: station for station in stations(config, SRC_LEN, TGT_LEN)}
        first = found.get("source position", found["source embedding"])
        assert first.shapes["out"] == seen.pop("src_embedding")[1]
        assert found["softmax"].shapes["probabilities"] == seen["generator"][1]
        for name, (inputs, output) in seen.items():
            if name.endswith("norm") and not name.split(".")[-2].endswith("path") and not config.norm_first:
                continue  # the identity
            shapes = found[station_of(name, config)].shapes
            if name.endswith("attn"):
                assert [shapes["in, for queries"], shapes["in, for keys and values"]] == inputs[:2]
                assert shapes["out"] == output
            elif name.endswith("up"):
                assert (shapes["in"], shapes["inside"]) == (inputs[0], output)
            elif name.endswith("down"):
                assert (shapes["inside"], shapes["out"]) == (inputs[0], output)
            else:
                assert (shapes["in"], shapes.get("out", shapes.get("logits"))) == (inputs[0], output)
        for kind, name in (("encoder", "encoder self"), ("decoder", "decoder self"), ("cross", "decoder cross")):
            shapes = found[f"{name}-attention"].shapes
            assert shapes["scores, weights"] == tuple(getattr(maps, kind)[0].shape[1:])
            heads, queries, keys = shapes["scores, weights"]
            d_v = config.d_model // heads
            assert (shapes["query"], shapes["context"]) == ((heads, queries, config.d_k), (heads, queries, d_v))
            key, value = (shapes.get(kind, shapes.get("key, value")) for kind in ("key", "value"))
            assert (key, value) == ((heads, keys, config.d_k), (heads, keys, d_v))


def law_data_flows_in_order(stations):
    """What goes into a box is what comes out of the one before it, in each column."""
    for config in CONFIGS:
        for stack in ("encoder", "decoder"):
            column = [each for each in stations(config, SRC_LEN, TGT_LEN) if each.stack == stack]
            for before, after in zip(column[1:], column[2:], strict=False):
                out = before.shapes.get("out", before.shapes.get("logits"))
                goes_in = [after.shapes[name] for name in ("in", "in, for queries", "added") if name in after.shapes]
                assert goes_in == [out] or (after.name == "softmax" and after.shapes["logits"] == out)
            norms = [each.label for each in column if "norm" in each.label]
            assert ("final norm" in norms) == config.norm_first
            layer = [each.label for each in column if each.layers]
            assert layer[0].endswith("norm") == config.norm_first
            assert {each.layers for each in column} == {0, config.num_layers}


def changed(change):
    def broken(config, src_len, tgt_len):
        found = stations(config, src_len, tgt_len)
        return [change(copy.deepcopy(each), config) for each in found]

    return broken


def lengths_swapped(config, src_len, tgt_len):
    return stations(config, tgt_len, src_len)


def _of(box, **values):
    return changed(
        lambda station, config: (
            replace(station, **{key: value(station, config) for key, value in values.items()})
            if station.name == box
            else station
        )
    )


def _shape(box, key, shape):
    return _of(box, shapes=lambda station, config: station.shapes | {key: shape(config)})


BROKEN = [
    (law_counts_add_up, _of("generator", parameters=lambda station, config: config.vocab_size * config.d_model)),
    (law_counts_add_up, _of("decoder self-attention norm", parameters=lambda station, config: 2 * config.d_model)),
    (law_counts_add_up, lengths_swapped),
    (law_each_box_has_its_parameters, _of("decoder cross-attention", name=lambda *_: "decoder self-attention")),
    (
        law_each_box_has_its_parameters,
        _of("encoder feed-forward", parameters=lambda station, _: station.parameters + 1),
    ),
    (law_formulas_give_the_counts, _of("encoder feed-forward", layers=lambda *_: 1)),
    (
        law_formulas_give_the_counts,
        _of("decoder cross-attention", flop_formula=lambda station, _: station.flop_formula.replace("4", "2")),
    ),
    (law_formulas_give_the_counts, _of("encoder self-attention", parameter_formula=lambda *_: "")),
    (law_shapes_are_those_of_a_model, lengths_swapped),
    (
        law_shapes_are_those_of_a_model,
        _shape("decoder cross-attention", "scores, weights", lambda c: (c.num_heads, SRC_LEN, TGT_LEN)),
    ),
    (
        law_shapes_are_those_of_a_model,
        _shape("encoder self-attention", "query", lambda c: (SRC_LEN, c.num_heads, c.d_k)),
    ),
    (law_shapes_are_those_of_a_model, _shape("encoder feed-forward", "inside", lambda c: (SRC_LEN, c.d_model))),
    (law_data_flows_in_order, lambda *arguments: stations(*arguments)[::-1]),
    (law_data_flows_in_order, changed(lambda station, config: replace(station, layers=max(1, station.layers)))),
]


@pytest.mark.parametrize("law", dict.fromkeys(law for law, _ in BROKEN))
def test_law_of_the_boxes(law):
    law(stations)


@pytest.mark.parametrize("law, broken", BROKEN)
def test_wrong_boxes_are_caught(law, broken):
    with pytest.raises(AssertionError):
        law(broken)


def test_the_boxes_of_the_base_model():
    found = {station.name: station for station in stations(model_preset("base", vocab_size=37_000), 7, 7)}
    assert found["encoder self-attention"].shapes["scores, weights"] == (8, 7, 7)
    assert found["encoder self-attention"].parameters == 6 * 4 * (512 * 512 + 512)
    assert found["generator"].parameters == found["target embedding"].parameters == 0
    assert "same matrix" in found["generator"].note and "same matrix" in found["target embedding"].note
    assert math.isclose(sum(each.parameters for each in found.values()), 63.1e6, rel_tol=1e-3)


def test_a_length_below_1_is_refused():
    assert str(raised(ValueError, lambda: stations(CONFIGS[0], 0, 1))) == "src_len must be at least 1, got 0"
    assert str(raised(ValueError, lambda: stations(CONFIGS[0], 1, -2))) == "tgt_len must be at least 1, got -2"
