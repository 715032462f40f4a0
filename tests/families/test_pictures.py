"""Models of pictures: patches, the class token, a captioner that lesson 11 decodes, and that they learn."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.config import ModelConfig
from course_lib.decoding import beam_search, greedy, sample
from course_lib.families import Captioner, PatchEmbedding, PictureEncoder, VisionTransformer, pictures
from course_lib.recording import record_weights
from tests.helpers.interface import law_no_output_sees_the_future
from tests.helpers.laws import tells_apart
from tests.helpers.parity import close, scrambled

CONFIG = ModelConfig(vocab_size=13, d_model=12, num_heads=3, num_layers=2, d_ff=20, dropout=0.0, max_len=8)
PATCHES = dict(side=4, patch=2, channels=3)
pytestmark = pytest.mark.usefixtures("float64")


def some_pictures(number=3, seed=0):
    return torch.randn(number, 3, 4, 4, generator=torch.Generator().manual_seed(seed))


def law_patches_are_cut_row_by_row(cut):
    found, by_hand = cut(some_pictures()), []
    for row in (0, 2):
        for column in (0, 2):
            by_hand.append(some_pictures()[:, :, row : row + 2, column : column + 2].flatten(1))
    assert found.shape == (3, 4, 12)
    close(found, torch.stack(by_hand, dim=1), "patches")


def test_patches_are_cut_row_by_row():
    ours = PatchEmbedding(CONFIG, **PATCHES, class_token=False).cut
    tells_apart(law_patches_are_cut_row_by_row, ours, lambda x: x.flatten(2).reshape(3, 4, 12), lambda x: ours(x.mT))


def test_patches_are_a_convolution():
    embedding = PatchEmbedding(replace(CONFIG, position="none"), **PATCHES, class_token=False)
    convolution = nn.Conv2d(3, 12, 2, stride=2)
    convolution.weight.data = embedding.patch_proj.weight.data.unflatten(1, (3, 2, 2))
    convolution.bias.data = embedding.patch_proj.bias.data
    close(embedding(some_pictures()), convolution(some_pictures()).flatten(2).mT, "patches")


@pytest.mark.parametrize(
    "position, differs", [("sinusoidal", True), ("learned", True), ("rotary", True), ("none", False)]
)
def test_a_class_needs_positions_to_know_where_a_patch_is(position, differs):
    config = replace(CONFIG, position=position)
    model = scrambled(VisionTransformer(config, **PATCHES, num_classes=5))
    assert model(some_pictures()).shape == (3, 5)
    shuffled = some_pictures().unflatten(2, (2, 2)).flip(2).flatten(2, 3)  # upper and lower patches change places
    gap = (model(some_pictures()) - model(shuffled)).abs().max()
    assert (gap > 1e-3) == differs and (differs or gap < 1e-9)


def test_each_picture_of_a_batch_counts_alone():
    for model in (
        scrambled(VisionTransformer(CONFIG, **PATCHES, num_classes=5)),
        scrambled(PictureEncoder(CONFIG, **PATCHES)),
    ):
        close(model(some_pictures())[1:2], model(some_pictures()[1:2]), "second picture")


def test_pictures_that_do_not_fit_are_refused():
    for changes, message in (
        (dict(patch=3), "side must be divisible by patch, got side=4, patch=3"),
        (dict(side=8), "the picture has 16 tokens, the model has positions for 8"),
    ):
        with pytest.raises(ValueError, match=message):
            PictureEncoder(CONFIG, **PATCHES | changes)
    model = PictureEncoder(CONFIG, **PATCHES)
    for bad in (some_pictures()[0], some_pictures()[:, :1], some_pictures(0)):
        with pytest.raises(ValueError, match=r"expected pictures \(batch, 3, 4, 4\), got"):
            model(bad)


# --- captions -----------------------------------------------------------------------------------


def caption_model(**changes):
    return scrambled(Captioner(replace(CONFIG, **changes), **PATCHES))


class SeesAhead(Captioner):
    def decode(self, tgt_in, memory, src, *, cache=None):
        return self.decoder(self.tgt_embedding(tgt_in), memory)


def law_no_word_of_a_caption_sees_the_future(model):
    law_no_output_sees_the_future(lambda_of(model))


class lambda_of:
    """The model with the pictures in place, called with any source."""

    def __init__(self, model):
        self.model, self.tgt_embedding = model, model.tgt_embedding

    def __call__(self, src, tgt_in):
        return self.model(some_pictures(len(src)), tgt_in)


def test_no_word_of_a_caption_sees_the_future():
    ahead = scrambled(SeesAhead(CONFIG, **PATCHES))
    tells_apart(law_no_word_of_a_caption_sees_the_future, caption_model(), ahead)


def law_cached_decoding_is_uncached(model):
    tgt_in, src = torch.tensor([[1, 6, 7, 8, 9]] * 3), some_pictures()
    memory = model.encode(src)
    whole = model.decode(tgt_in, memory, src)
    for cuts in ([1, 1, 1, 1, 1], [2, 3]):
        cache = model.new_cache()
        pieces = [model.decode(piece, memory, src, cache=cache) for piece in tgt_in.split(cuts, dim=1)]
        close(torch.cat(pieces, dim=1), whole, f"in pieces of {cuts}")


class Forgets(Captioner):
    def decode(self, tgt_in, memory, src, *, cache=None):
        return super().decode(tgt_in, memory, src)


def test_cached_decoding_is_uncached():
    tells_apart(law_cached_decoding_is_uncached, caption_model(), scrambled(Forgets(CONFIG, **PATCHES)))


def test_lesson_11_decodes_captions_as_they_are():
    model = caption_model()
    found = greedy(model, some_pictures(), max_len=6)
    assert len(found) == 3
    ids = found[0].outputs(2)
    logits = model(some_pictures()[:1], torch.tensor([[1, *ids[:-1]]]))[0]
    logits[:, [0, 1]] = -torch.inf
    assert logits.argmax(dim=-1).tolist() == ids
    alone = greedy(model, some_pictures()[1:2], max_len=6)
    assert alone[0].ids == found[1].ids
    best = beam_search(model, some_pictures(), beam_size=1, max_len=6)
    assert [hypotheses[0].ids for hypotheses in best] == [each.ids for each in found]


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
def test_a_picture_says_nothing_of_how_long_its_caption_may_be(search):
    with pytest.raises(ValueError, match=r"give max_len: .* got \(3, 3, 4, 4\) torch.float64"):
        search(caption_model(), some_pictures())


def test_captions_of_another_batch_are_refused():
    model = caption_model()
    with pytest.raises(ValueError, match="memory and tgt_in must belong together, got 3 and 2 rows"):
        model.decode(torch.tensor([[1], [1]]), model.encode(some_pictures()), some_pictures())


def test_weights_of_any_modules_are_recorded_as_they_were_used():
    model = caption_model()
    layers = [layer.cross_attn for layer in model.decoder.layers]
    with record_weights(layers) as weights:
        model(some_pictures(), torch.tensor([[1, 6, 7]] * 3))
    assert [each.shape for each in weights] == [(3, 3, 3, 4)] * 2  # (batch, heads, tgt_len, patches)
    close(weights[1].sum(dim=-1), torch.ones(3, 3, 3), "rows")
    kept = weights[0].clone()
    model(some_pictures(seed=1), torch.tensor([[1, 6, 7]] * 3))
    assert weights[0].equal(kept)  # nothing is left on the model


# --- learning -----------------------------------------------------------------------------------


def learn(model, loss_of, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def bright_patches():
    """All pictures of two bright patches of four, their places, and as captions which patches they are."""
    places = torch.combinations(torch.arange(4))
    images = torch.zeros(6, 3, 2, 2, 2, 2)  # (number, channels, row, within, column, within)
    for image, pair in zip(images, places.tolist(), strict=True):
        for place in pair:
            image[:, place // 2, :, place % 2] = 1
    return images.flatten(4).flatten(2, 3), places


def test_a_vision_transformer_learns_where_it_is_bright():
    torch.manual_seed(0)
    images, _ = bright_patches()
    model = VisionTransformer(CONFIG, **PATCHES, num_classes=6)
    assert learn(model, lambda: F.cross_entropy(model(images), torch.arange(6)), 150) < 0.1


def test_a_captioner_learns_to_say_where_it_is_bright():
    torch.manual_seed(0)
    images, places = bright_patches()
    ids = torch.cat([torch.ones(6, 1).long(), places + 4, torch.full((6, 1), 2)], dim=1)
    model = Captioner(CONFIG, **PATCHES)
    assert (
        learn(model, lambda: F.cross_entropy(model(images, ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()), 150) < 0.2
    )
    assert [each.ids for each in greedy(model, images, max_len=5)] == (places + 4).tolist()


def test_no_family_has_attention_of_its_own():
    own = [cls for cls in vars(pictures).values() if isinstance(cls, type) and cls.__module__ == pictures.__name__]
    assert len(own) == 4 and not any("ttention" in cls.__name__ for cls in own)
