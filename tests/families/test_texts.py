"""Models of one stack: who sees what, what they share with the Transformer, and that they learn."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib.config import ModelConfig
from course_lib.decoding import sampling_probs
from course_lib.families import (
    UNASKED,
    LanguageModel,
    MaskedLanguageModel,
    TextClassifier,
    TextEncoder,
    mask_tokens,
    texts,
    write,
    writing,
)
from course_lib.masks import causal_mask, padding_mask
from course_lib.transformer import Transformer
from tests.helpers.interface import BAD_IDS, SRC
from tests.helpers.laws import tells_apart
from tests.helpers.parity import close, scrambled
from tests.helpers.tiny import padded

CONFIG = ModelConfig(vocab_size=13, d_model=12, num_heads=3, num_layers=2, d_ff=20, dropout=0.0, max_len=8)
MASK_ID = 12
CONFIGS = [replace(CONFIG, position=position) for position in ("sinusoidal", "learned", "rotary", "alibi")]
each_config = pytest.mark.parametrize("config", CONFIGS, ids=[config.position for config in CONFIGS])


def gradients(model, ids):
    """Which embedded inputs each output depends on, bool (outputs, inputs)."""
    embedded = []

    def cut(module, inputs, output):
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    handle = model.embedding.register_forward_hook(cut)
    outputs = model(ids)
    handle.remove()
    rows = []
    for t in range(ids.shape[1]):
        (gradient,) = torch.autograd.grad(outputs[:, t].square().sum(), embedded, retain_graph=True)
        rows.append(gradient.abs().amax(dim=(0, 2)) > 0)
    return torch.stack(rows)


def law_an_encoder_sees_all(model):
    assert gradients(model, torch.tensor([[1, 6, 7, 8, 9]])).all()


def law_a_language_model_sees_the_past_only(model):
    assert gradients(model, torch.tensor([[1, 6, 7, 8, 9]])).equal(causal_mask(5)[0, 0])


@each_config
def test_an_encoder_sees_all_and_a_language_model_the_past(config):
    encoder, language_model = scrambled(TextEncoder(config)), scrambled(LanguageModel(config))
    tells_apart(law_an_encoder_sees_all, encoder, language_model)
    tells_apart(law_a_language_model_sees_the_past_only, language_model, encoder)


def law_padding_changes_nothing(model):
    rows = [[1, *row] for row in SRC[1:]]
    together = model(padded(rows, 7))
    for row, ids in enumerate(rows):
        close(together[row, : len(ids)], model(torch.tensor([ids]))[0], f"row {row}")


class WithoutMask(TextEncoder):
    def forward(self, ids):
        return self.encoder(self.embedding(ids))


@pytest.mark.usefixtures("float64")
def test_padding_changes_nothing():
    tells_apart(law_padding_changes_nothing, scrambled(TextEncoder(CONFIG)), scrambled(WithoutMask(CONFIG)))
    law_padding_changes_nothing(scrambled(MaskedLanguageModel(CONFIG)))
    law_padding_changes_nothing(scrambled(LanguageModel(CONFIG)))


@pytest.mark.usefixtures("float64")
def test_a_text_encoder_is_the_left_half_of_the_transformer():
    whole, half = scrambled(Transformer(CONFIG)), TextEncoder(CONFIG)
    half.embedding.load_state_dict(whole.src_embedding.state_dict())
    half.encoder.load_state_dict(whole.encoder.state_dict())
    close(half(padded(SRC)), whole.encode(padded(SRC)), "memory")


@pytest.mark.usefixtures("float64")
def test_a_language_model_is_a_decoder_without_memory():
    """With cross-attention that adds nothing and a norm of what is normal, pre-norm, the decoder is its one stack."""
    config = replace(CONFIG, norm_first=True)
    whole, one = scrambled(Transformer(config)), LanguageModel(config)
    for layer in whole.decoder.layers:
        for parameter in layer.cross_attn.output_proj.parameters():
            torch.nn.init.zeros_(parameter)
    shared = {name: of for name, of in whole.decoder.state_dict().items() if "cross" not in name}
    one.stack.load_state_dict(shared)
    one.embedding.load_state_dict(whole.tgt_embedding.state_dict())
    one.generator.load_state_dict(whole.generator.state_dict())
    ids = torch.tensor([[1, 6, 7, 8, 9]])
    close(one(ids), whole(torch.tensor([[5, 6, 2]]), ids), "logits")


@pytest.mark.parametrize("tied", [True, False])
def test_generators_are_tied_as_asked(tied):
    config = replace(CONFIG, tie_weights=tied)
    masked, language_model = MaskedLanguageModel(config), LanguageModel(config)
    assert (masked.generator.weight is masked.text_encoder.embedding.table.weight) == tied
    assert (language_model.generator.weight is language_model.embedding.table.weight) == tied


@pytest.mark.usefixtures("float64")
def test_a_classifier_goes_on_with_the_encoder_it_is_given():
    masked = MaskedLanguageModel(CONFIG)
    classifier = TextClassifier(masked.text_encoder, 3)
    ids = torch.tensor([[1, 5, 6, 2]])
    assert classifier(ids).shape == (1, 3)
    close(classifier(ids), classifier.head(masked.text_encoder(ids)[:, 0]), "logits")
    assert classifier.text_encoder is masked.text_encoder


def test_first_logits_have_variance_about_1():
    torch.manual_seed(0)
    config = replace(CONFIG, d_model=64, num_heads=4, vocab_size=500)
    for model in (MaskedLanguageModel(config), LanguageModel(config)):
        assert 0.7 < model(torch.randint(4, 500, (8, 8))).var() < 1.4


@pytest.mark.parametrize("name", ["float", "negative", "too large", "too long", "no tokens"])
def test_bad_ids_are_refused(name):
    bad, message = BAD_IDS[name]
    for model in (TextEncoder(CONFIG), MaskedLanguageModel(CONFIG), LanguageModel(CONFIG)):
        with pytest.raises(ValueError, match=message):
            model(bad)


# --- holes --------------------------------------------------------------------------------------


def law_holes_are_made_as_the_paper_says(mask):
    ids = torch.randint(4, 12, (400, 40), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = 1, 2
    holes, targets = mask(ids, CONFIG, MASK_ID, generator=torch.Generator().manual_seed(1))
    asked = targets != UNASKED
    assert not asked[:, 0].any() and not asked[:, -1].any()  # special tokens
    assert asked[:, 1:-1].float().mean().item() == pytest.approx(0.15, abs=0.01)
    assert targets[asked].equal(ids[asked]) and holes[~asked].equal(ids[~asked])
    hidden = (holes == MASK_ID)[asked].float().mean().item()
    kept = (holes == ids)[asked].float().mean().item()
    assert hidden == pytest.approx(0.8, abs=0.03) and kept == pytest.approx(0.1 + 0.1 * 5 / 13, abs=0.03)
    assert not torch.isin(holes[:, 1:-1], torch.tensor([0, 1, 2])).any()


def all_hidden(ids, config, mask_id, generator):
    _, targets = mask_tokens(ids, config, mask_id, generator=generator)
    return torch.where(targets == UNASKED, ids, mask_id), targets


def specials_too(ids, config, mask_id, generator):
    holes, targets = mask_tokens(ids.where(ids > 2, 5), config, mask_id, generator=generator)
    return holes, targets


def answers_everywhere(ids, config, mask_id, generator):
    return mask_tokens(ids, config, mask_id, generator=generator)[0], ids


def test_holes_are_made_as_the_paper_says():
    tells_apart(law_holes_are_made_as_the_paper_says, mask_tokens, all_hidden, specials_too, answers_everywhere)


@pytest.mark.parametrize("options, message", [(dict(share=0), "share must be above 0"), (dict(share=2), "at most 1")])
def test_shares_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mask_tokens(torch.tensor([[5]]), CONFIG, MASK_ID, **options)
    with pytest.raises(ValueError, match="mask_id must be in 0..12, got 13"):
        mask_tokens(torch.tensor([[5]]), CONFIG, 13)


# --- writing ------------------------------------------------------------------------------------


def law_the_most_probable_text_is_written(go_on):
    """With top_k 1 nothing is left to chance: each token is the best one after all before it."""
    torch.manual_seed(0)
    model = LanguageModel(replace(CONFIG, max_len=30, tie_weights=False))
    written = go_on(model, torch.tensor([[1, word] for word in range(4, 12)]), most=20, top_k=1)
    for row in written.tolist():
        ids = row[: row.index(2) + 1] if 2 in row else row
        for length in range(2, len(ids)):
            logits = model(torch.tensor([ids[:length]]))[0, -1]
            logits[[0, 1]] = -torch.inf
            assert ids[length] == logits.argmax()
        assert set(row[len(ids) :]) <= {0}


def from_the_first_place(model, prompt, **options):
    ids = prompt
    for _ in range(20):
        logits = model(ids)[:, 0]
        logits[:, :2] = -torch.inf
        ids = torch.cat([ids, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def test_the_most_probable_text_is_written():
    tells_apart(law_the_most_probable_text_is_written, write, from_the_first_place)


def test_tokens_are_drawn_as_in_lesson_11():
    torch.manual_seed(0)
    model = scrambled(LanguageModel(CONFIG))
    prompt = torch.tensor([[1, 5, 6]]).expand(4000, -1)
    drawn = write(model, prompt, most=1, temperature=0.7, top_p=0.9, generator=torch.Generator().manual_seed(0))
    log_probs = model(prompt[:1])[:, -1].detach().log_softmax(dim=-1)
    log_probs[:, [0, 1]] = -torch.inf
    wanted = sampling_probs(log_probs, temperature=0.7, top_p=0.9)[0]
    found = drawn[:, -1].bincount(minlength=13) / 4000
    assert (found - wanted).abs().max() < 0.03 and (found[wanted == 0] == 0).all()


def test_long_texts_are_read_from_their_last_tokens():
    torch.manual_seed(0)
    model = scrambled(LanguageModel(CONFIG)).train()
    long = torch.randint(4, 12, (1, 20))
    options = dict(most=1, top_k=1)
    assert write(model, long, **options)[0, -1] == write(model, long[:, -8:], **options)[0, -1]
    assert model.training
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        write(model, long, most=0)


def test_a_padded_beginning_is_refused():
    prompt = torch.tensor([[1, 5, 6], [1, 5, 0], [0, 1, 5]])
    with pytest.raises(ValueError, match=r"expected beginnings without padding, rows \[1, 2\] have some"):
        write(LanguageModel(CONFIG), prompt, most=3)


# --- learning -----------------------------------------------------------------------------------


def learned(model, loss_of, steps=150, rate=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def test_a_language_model_learns_to_count():
    torch.manual_seed(0)
    model, ids = LanguageModel(CONFIG), torch.tensor([[1, 5, 6, 7, 8, 9, 2], [1, 9, 8, 7, 6, 5, 2]])
    assert learned(model, lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())) < 0.3
    assert write(model, torch.tensor([[1, 5], [1, 9]]), most=9, top_k=1).tolist() == ids.tolist()


def test_a_masked_language_model_reads_both_sides():
    """The hole in the middle is the sum of its neighbors: no side alone tells it."""
    torch.manual_seed(0)
    model = MaskedLanguageModel(CONFIG)
    left, right = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T
    middle = (left + right) % 4 + 4
    ids = torch.stack([torch.ones(16).long(), left + 8, torch.full((16,), 3), right + 8, torch.full((16,), 2)], dim=1)
    assert learned(model, lambda: F.cross_entropy(model(ids)[:, 2], middle), steps=300) < 0.05
    assert model(ids)[:, 2].argmax(dim=-1).equal(middle)


def test_a_classifier_learns_who_stands_in_front():
    torch.manual_seed(0)
    model = TextClassifier(TextEncoder(CONFIG), 2)
    ids = torch.randint(4, 12, (200, 8))
    ids[:, 0] = 1
    place_5, place_6 = ((ids == word).int().argmax(dim=1) for word in (5, 6))
    keep = (ids == 5).any(dim=1) & (ids == 6).any(dim=1)
    ids, classes = ids[keep], (place_5 < place_6)[keep].long()
    assert len(ids) > 50 and learned(model, lambda: F.cross_entropy(model(ids), classes), steps=200) < 0.05


def test_no_family_has_attention_of_its_own():
    for module in (texts, writing):
        assert not any("Attention" in name or "softmax" in name for name in vars(module))


def test_padding_mask_is_the_librarys():
    assert texts.padding_mask is padding_mask and texts.causal_mask is causal_mask
