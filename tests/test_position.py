"""Laws of the positions: the sinusoids of the paper, and what the modules add to embedded tokens."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from course_lib.position import (
    ALiBi,
    ConcatenatedPosition,
    LearnedPosition,
    RelativeBias,
    Rotary,
    SinusoidalPosition,
    sinusoidal,
)
from tests.helpers.laws import tells_apart
from tests.helpers.parity import close, noise

pytestmark = pytest.mark.usefixtures("float64")

MODULES = [SinusoidalPosition, LearnedPosition]


def law_formula_is_the_papers(table_of):
    table = table_of(50, 16)
    for pos in range(50):
        for i in range(8):
            angle = pos / 10000 ** (2 * i / 16)
            assert math.isclose(table[pos, 2 * i], math.sin(angle), rel_tol=1e-9, abs_tol=1e-12)
            assert math.isclose(table[pos, 2 * i + 1], math.cos(angle), rel_tol=1e-9, abs_tol=1e-12)


def law_an_offset_is_a_rotation(table_of):
    """PE(pos + k) = PE(pos) @ R for one R, whatever pos; R turns each pair of dimensions, so it keeps lengths."""
    table = table_of(300, 16)
    for offset in (1, 7, 100):
        before, after = table[:-offset], table[offset:]
        best = torch.linalg.lstsq(before, after).solution  # the best linear map of all, (d_model, d_model)
        assert (before @ best - after).abs().max() < 1e-9
        for i in range(8):
            pair = slice(2 * i, 2 * i + 2)
            turn = torch.linalg.lstsq(before[:, pair], after[:, pair]).solution  # (2, 2)
            assert (turn @ turn.T - torch.eye(2)).abs().max() < 1e-9 and torch.linalg.det(turn) > 0


def law_every_position_has_the_same_norm(table_of):
    table = table_of(200, 64)
    close(table.norm(dim=1), torch.full((200,), math.sqrt(64 / 2)))


def exponent_of_odd_dimensions_wrong(max_len, d_model):
    """i / d_model for odd i too, instead of 2⌊i/2⌋ / d_model."""
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(d_model) / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())


def sine_only(max_len, d_model):
    return torch.arange(max_len)[:, None].mul(1 / 10000 ** (torch.arange(d_model) / d_model)).sin()


def exponent_not_doubled(max_len, d_model):
    """10000^(i / d_model), i the index of the pair."""
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(d_model // 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


WRONG = {
    law_formula_is_the_papers: [exponent_of_odd_dimensions_wrong, exponent_not_doubled, partial(sinusoidal, base=1e3)],
    law_an_offset_is_a_rotation: [exponent_of_odd_dimensions_wrong, sine_only],
    law_every_position_has_the_same_norm: [exponent_of_odd_dimensions_wrong, sine_only],
}


@pytest.mark.parametrize("law", WRONG)
def test_sinusoids_obey_and_other_tables_do_not(law):
    tells_apart(law, sinusoidal, *WRONG[law])


def test_with_the_wrong_odd_exponent_the_best_linear_map_is_off_by_about_1():
    def residual(table):
        return (table[:-1] @ torch.linalg.lstsq(table[:-1], table[1:]).solution - table[1:]).abs().max().item()

    assert residual(sinusoidal(300, 16)) < 1e-9
    assert residual(exponent_of_odd_dimensions_wrong(300, 16)) > 0.1


def test_position_0_adds_1_to_every_odd_dimension():
    assert sinusoidal(3, 6)[0].tolist() == [0, 1, 0, 1, 0, 1]


def test_the_norm_is_16_at_the_papers_width():
    assert sinusoidal(10, 512).norm(dim=1).tolist() == pytest.approx([16.0] * 10, rel=1e-12)


def test_a_float32_table_is_the_float64_one_rounded():
    exact = sinusoidal(5000, 64)
    torch.set_default_dtype(torch.float32)
    assert torch.equal(sinusoidal(5000, 64), exact.float())  # sines of large float32 angles would differ


class SlicedByBatch(nn.Module):
    """A (max_len, 1, d_model) table sliced by x.size(0), as for (length, batch, d_model), under batch-first tokens."""

    def __init__(self, max_len, d_model):
        super().__init__()
        self.table = sinusoidal(max_len, d_model)[:, None]

    def forward(self, x, *, start=0):
        return x + self.table[start : start + x.shape[0]]


class IgnoresStart(SinusoidalPosition):
    def forward(self, x, *, start=0):
        return super().forward(x)


def law_adds_the_row_of_the_token_not_of_the_sentence(module_class):
    module = module_class(9, 8)
    for batch, length in ((3, 5), (5, 3), (1, 1), (4, 9)):
        x = noise(batch, length, 8)
        added = module(x) - x
        for row in range(batch):
            for place in range(length):
                close(added[row, place].detach(), module.table[place].detach().flatten())


def law_a_sentence_in_pieces_is_the_sentence(module_class):
    module, x = module_class(9, 8), noise(2, 7, 8)
    whole = module(x).detach()
    for cut in (1, 3, 6):
        pieces = [module(x[:, :cut]), module(x[:, cut:], start=cut)]
        close(torch.cat(pieces, dim=1).detach(), whole)


@pytest.mark.parametrize("module_class", MODULES)
def test_positions_are_of_tokens_not_of_sentences(module_class):
    law_adds_the_row_of_the_token_not_of_the_sentence(module_class)


@pytest.mark.parametrize("module_class", MODULES)
def test_a_sentence_in_pieces_is_the_sentence(module_class):
    law_a_sentence_in_pieces_is_the_sentence(module_class)


def test_a_table_sliced_by_the_batch_breaks_the_law():
    with pytest.raises(AssertionError):
        law_adds_the_row_of_the_token_not_of_the_sentence(SlicedByBatch)
    x = noise(3, 5, 8)
    assert SlicedByBatch(9, 8)(x).shape == x.shape  # and nothing else would have told


def test_a_start_that_is_ignored_breaks_the_law():
    with pytest.raises(AssertionError):
        law_a_sentence_in_pieces_is_the_sentence(IgnoresStart)


@pytest.mark.parametrize("module_class", MODULES)
def test_a_sentence_longer_than_the_positions_is_refused(module_class):
    module = module_class(5, 8)
    assert module(noise(1, 5, 8)).shape == (1, 5, 8)
    for length, start in ((6, 0), (1, 5), (3, 3)):
        with pytest.raises(ValueError, match="the sentence has 6 tokens, the model has positions for 5"):
            module(noise(1, length, 8), start=start)


@pytest.mark.parametrize("module_class", MODULES)
def test_anything_but_batch_length_d_model_is_refused(module_class):
    for shape in ((4, 8), (8, 8), (2, 3, 4), (2, 3, 1)):  # the second and the last would broadcast silently
        with pytest.raises(ValueError, match=r"expected \(batch, length, 8\), got \(" + ", ".join(map(str, shape))):
            module_class(16, 8)(noise(*shape))


@pytest.mark.parametrize("d_model", [1, 7, 511])
def test_sinusoids_need_an_even_width(d_model):
    for build in (sinusoidal, SinusoidalPosition):
        with pytest.raises(ValueError, match=f"d_model must be even, got {d_model}"):
            build(10, d_model)


def test_learned_positions_are_learned_and_sinusoids_are_not():
    assert [name for name, _ in LearnedPosition(4, 6).named_parameters()] == ["table"]
    assert not list(SinusoidalPosition(4, 6).parameters()) and not SinusoidalPosition(4, 6).state_dict()
    module = LearnedPosition(4, 6)
    module(noise(2, 3, 6)).sum().backward()
    assert module.table.grad[:, 0].tolist() == [2, 2, 2, 0]  # each sentence of the batch counts, unused places do not


def law_the_base_is_passed_on(module_class):
    for base in (10.0, 1e4, 1e8):
        close(module_class(9, 8, base=base)(torch.zeros(1, 9, 8))[0], sinusoidal(9, 8, base=base))


class FixedBase(SinusoidalPosition):
    def __init__(self, max_len, d_model, *, base):
        super().__init__(max_len, d_model)


def test_the_base_is_passed_on():
    tells_apart(law_the_base_is_passed_on, SinusoidalPosition, FixedBase)


def law_the_table_starts_as_wide_as_asked(module_class):
    for std, expected in ((None, 64**-0.5), (0.5**0.5, 0.5**0.5), (0.01, 0.01)):
        torch.manual_seed(0)
        found = module_class(500, 64, std=std).table.std().item()
        assert math.isclose(found, expected, rel_tol=0.02), (std, found)


class OneWidth(LearnedPosition):
    def __init__(self, max_len, d_model, *, std):
        super().__init__(max_len, d_model)


def test_the_table_starts_as_wide_as_asked():
    tells_apart(law_the_table_starts_as_wide_as_asked, LearnedPosition, OneWidth)


# --- positions beside the tokens ----------------------------------------------------------------


def law_tokens_and_positions_lie_side_by_side(module_class):
    module, x = module_class(9, 12, 4), noise(2, 7, 8)
    out = module(x)
    assert out.shape == (2, 7, 12)
    close(out[..., :8], x)
    for row in range(2):
        close(out[row, :, 8:], sinusoidal(9, 4)[:7])
    close(torch.cat([module(x[:, :3]), module(x[:, 3:], start=3)], dim=1), out)


class PositionsFirst(ConcatenatedPosition):
    def forward(self, x, *, start=0):
        return super().forward(x, start=start).roll(4, dims=-1)


class BesideIgnoresStart(ConcatenatedPosition):
    def forward(self, x, *, start=0):
        return super().forward(x)


def test_tokens_and_positions_lie_side_by_side():
    law_tokens_and_positions_lie_side_by_side(ConcatenatedPosition)
    assert not list(ConcatenatedPosition(9, 12, 4).parameters())
    for wrong in (PositionsFirst, BesideIgnoresStart):
        with pytest.raises(AssertionError):
            law_tokens_and_positions_lie_side_by_side(wrong)


def test_positions_beside_tokens_refuse_what_does_not_fit():
    for d_position in (0, 12, 14, -2):
        with pytest.raises(ValueError, match=f"between 0 and d_model, got d_position={d_position}, d_model=12"):
            ConcatenatedPosition(9, 12, d_position)
    with pytest.raises(ValueError, match="must be even, got 3"):
        ConcatenatedPosition(9, 12, 3)
    module = ConcatenatedPosition(9, 12, 4)
    with pytest.raises(ValueError, match=r"expected \(batch, length, 8\), got \(2, 3, 12\)"):
        module(noise(2, 3, 12))
    with pytest.raises(ValueError, match="the sentence has 10 tokens, the model has positions for 9"):
        module(noise(2, 7, 8), start=3)


# --- positions told to attention ----------------------------------------------------------------


def scores(relative, query, keys):
    query, keys, bias = relative(query, keys)
    products = query @ keys.transpose(-2, -1)
    return products if bias is None else products + bias


def law_only_the_distance_counts(relative):
    """The same query and key vectors everywhere: each score depends on key position - query position alone."""
    query, keys = (noise(2, 4, 1, 8, seed=seed).expand(2, 4, 12, 8) for seed in (1, 2))
    found = scores(relative, query, keys)
    for offset in range(-11, 12):
        diagonal = found.diagonal(offset, dim1=-2, dim2=-1)
        close(diagonal, diagonal[..., :1].expand_as(diagonal))
    assert (found[..., 0, :] - found[..., 0, :1]).abs().amax() > 0.1, "nothing counts"


def law_queries_are_the_last_positions(relative):
    query, keys = noise(2, 4, 9, 8, seed=1), noise(2, 4, 9, 8, seed=2)
    whole = scores(relative, query, keys)
    for count in (1, 4):
        close(scores(relative, query[..., -count:, :], keys), whole[..., -count:, :])


def law_left_is_not_right(relative):
    query, keys = (noise(1, 4, 1, 8, seed=seed).expand(1, 4, 5, 8) for seed in (1, 2))
    found = scores(relative, query, keys)
    assert not torch.allclose(found, found.transpose(-2, -1))


class AbsoluteRotary(Rotary):
    """Turns the queries only."""

    def forward(self, query, keys):
        return self.rotate(query), keys, None


class StartsAgain(Rotary):
    def forward(self, query, keys):
        return self.rotate(query), self.rotate(keys), None


class AlibiStartsAgain(ALiBi):
    def bias(self, queries, keys):
        return super().bias(keys, keys)[:, :queries]


def relative_bias(num_heads, farthest, kind=RelativeBias):
    """With random numbers: at the start all are 0."""
    module = kind(num_heads, farthest)
    nn.init.normal_(module.table, generator=torch.Generator().manual_seed(0))
    return module.requires_grad_(False)


class BiasStartsAgain(RelativeBias):
    def bias(self, queries, keys):
        return super().bias(keys, keys)[:, :queries]


class AbsoluteBias(RelativeBias):
    """A number for each key's position, not for its offset."""

    def bias(self, queries, keys):
        return self.table[:, :keys][:, None].expand(-1, queries, -1)


class Even(RelativeBias):
    def bias(self, queries, keys):
        bias = super().bias(keys, keys)
        return (bias + bias.transpose(-2, -1))[:, keys - queries :]

    def forward(self, query, keys):
        return torch.ones_like(query), torch.ones_like(keys), self.bias(query.shape[-2], keys.shape[-2])


class Symmetric(ALiBi):
    def forward(self, query, keys):
        bias = super().forward(query, keys)[2].tril()
        return torch.ones_like(query), torch.ones_like(keys), bias + bias.transpose(-2, -1)


RELATIVE_LAWS = [law_only_the_distance_counts, law_queries_are_the_last_positions, law_left_is_not_right]


@pytest.mark.parametrize("law", RELATIVE_LAWS)
@pytest.mark.parametrize(
    "make, sizes", [(ALiBi, (4,)), (Rotary, (12, 8)), (relative_bias, (4, 11)), (relative_bias, (4, 3))]
)
def test_relative_positions_obey(law, make, sizes):
    law(make(*sizes))


@pytest.mark.parametrize(
    "law, wrong, sizes",
    [
        (law_only_the_distance_counts, AbsoluteRotary, (12, 8)),
        (law_queries_are_the_last_positions, StartsAgain, (12, 8)),
        (law_queries_are_the_last_positions, AlibiStartsAgain, (4,)),
        (law_left_is_not_right, Symmetric, (4,)),
        (law_only_the_distance_counts, partial(relative_bias, kind=AbsoluteBias), (4, 11)),
        (law_queries_are_the_last_positions, partial(relative_bias, kind=BiasStartsAgain), (4, 11)),
        (law_left_is_not_right, partial(relative_bias, kind=Even), (4, 11)),
    ],
)
def test_a_wrong_relative_position_breaks(law, wrong, sizes):
    with pytest.raises(AssertionError):
        law(wrong(*sizes))


def law_each_offset_has_its_number_and_far_ones_share(module_class):
    module = relative_bias(3, 2, module_class)
    bias = module.bias(6, 6)
    for query in range(6):
        for key in range(6):
            column = max(-2, min(2, key - query)) + 2
            assert bias[:, query, key].tolist() == module.table[:, column].tolist(), (query, key)


class Backwards(RelativeBias):
    def bias(self, queries, keys):
        return super().bias(queries, keys).transpose(-2, -1)


class ComesRound(RelativeBias):
    """Far offsets begin again at the other end of the table."""

    def bias(self, queries, keys):
        offset = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
        return self.table[:, (offset + self.farthest) % self.table.shape[1]]


def test_each_offset_has_its_number_and_far_ones_share():
    tells_apart(law_each_offset_has_its_number_and_far_ones_share, RelativeBias, Backwards, ComesRound)


def test_relative_biases_start_at_0_and_learn_from_the_offsets_that_occur():
    module = RelativeBias(2, 4)
    assert module.table.shape == (2, 9) and not module.table.any()
    assert [name for name, _ in module.named_parameters()] == ["table"]
    module.bias(3, 3).sum().backward()
    assert module.table.grad[0].tolist() == [0, 0, 1, 2, 3, 2, 1, 0, 0]


def law_alibi_before_the_query_is_the_papers(module_class):
    bias = module_class(8).bias(6, 6)
    for head in range(8):
        for query in range(6):
            for key in range(query + 1):
                assert math.isclose(bias[head, query, key], -(2.0 ** -(head + 1)) * (query - key), abs_tol=1e-12)


class SlopesFromOne(ALiBi):
    """The first head's slope is 1 instead of 1/2."""

    def bias(self, queries, keys):
        return 2 * super().bias(queries, keys)


def test_alibi_before_the_query_is_the_papers():
    tells_apart(law_alibi_before_the_query_is_the_papers, ALiBi, SlopesFromOne)


def test_alibi_is_as_steep_as_asked():
    close(ALiBi(8, scale=16.0).bias(5, 7), 16 * ALiBi(8).bias(5, 7))


def test_alibi_after_the_query_takes_the_slopes_in_reverse_order():
    bias = ALiBi(4).bias(3, 3)
    assert bias[:, 1, 2].tolist() == bias[:, 1, 0].flip(0).tolist() == [-1 / 256, -1 / 64, -1 / 16, -1 / 4]
    assert (bias.diagonal(dim1=-2, dim2=-1) == 0).all()


def law_rotation_is_a_complex_product(rotate):
    """Pair (2i, 2i+1) as a complex number, times e^(j · pos / base^(2i/d_k))."""
    x = noise(2, 3, 11, 8)
    angle = torch.arange(11)[:, None] / 10000 ** (torch.arange(0, 8, 2) / 8)
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angle), angle)
    close(rotate(x), torch.view_as_real(turned).flatten(-2))
    close(rotate(x).norm(dim=-1), x.norm(dim=-1))


def test_rotation_is_a_complex_product():
    rotary = Rotary(11, 8)
    law_rotation_is_a_complex_product(rotary.rotate)
    backwards, added = lambda x: rotary.rotate(x.flip(-1)).flip(-1), lambda x: x + rotary.table
    for wrong in (backwards, added, Rotary(11, 8, base=9).rotate):
        with pytest.raises(AssertionError):
            law_rotation_is_a_complex_product(wrong)


def test_relative_positions_refuse_what_does_not_fit():
    for relative in (ALiBi(4), Rotary(12, 8), RelativeBias(4, 3)):
        with pytest.raises(ValueError, match="the last of the keys' positions, got 5 queries and 4 keys"):
            relative(noise(1, 4, 5, 8), noise(1, 4, 4, 8))
    with pytest.raises(ValueError, match="the sentence has 13 tokens, the model has positions for 12"):
        Rotary(12, 8)(noise(1, 4, 1, 8), noise(1, 4, 13, 8))
    with pytest.raises(ValueError, match=r"expected \(..., length, 8\), got \(1, 4, 3, 6\)"):
        Rotary(12, 8).rotate(noise(1, 4, 3, 6))
    with pytest.raises(ValueError, match="must be even, got 7"):
        Rotary(12, 7)
    for farthest, message in ((0, "farthest must be at least 1, got 0"), ("3", "farthest must be an int, got '3'")):
        with pytest.raises(ValueError, match=message):
            RelativeBias(4, farthest)
