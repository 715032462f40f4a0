"""A warm start: what another translator has learned, in new subwords."""

from dataclasses import replace
from unittest import mock

import pytest
import torch

from course_lib.alternatives import model_like
from course_lib.config import ModelConfig
from course_lib.data import Pair
from course_lib.storage import load_tensors
from course_lib.tokenizer import UNK_ID, Tokenizer
from course_lib.training import choice, experiment
from course_lib.training.config import Experiment, TrainConfig
from course_lib.training.evaluation import score
from course_lib.training.experiment import train_translator
from course_lib.training.warm_start import EMBEDDINGS, take_over
from course_lib.transformer import Transformer
from course_lib.translator import Translator
from tests.helpers.corpora import CORPUS, toy_pairs
from tests.helpers.laws import patched, tells_apart
from tests.helpers.tiny import SMALL, tiny_preset
from tests.helpers.training import assert_same_weights, weights_of

TEXTS = [text for pair in toy_pairs() for text in pair]


def translator(texts, vocab_size, seed, **changes):
    tokenizer = Tokenizer.train(texts, vocab_size)
    torch.manual_seed(seed)
    config = ModelConfig(**SMALL | dict(vocab_size=tokenizer.vocab_size, max_len=64, tie_weights=True) | changes)
    return Translator(Transformer(config).eval(), tokenizer)


def pieces_of(tokenizer, token):
    """The pieces of a token that opens a word."""
    return tokenizer.encode(token.removeprefix("▁"))


def law_rows_follow_the_pieces(take) -> None:
    """All weights but the embeddings are the same; a row is that of its subword, or the mean of its pieces' rows."""
    start, new = translator(TEXTS, 80, seed=0), translator([*TEXTS, "Zzz Zzz"], 120, seed=1)
    before = {name: tensor.clone() for name, tensor in new.model.state_dict().items()}
    take(new, start)
    learned, counted = start.model.state_dict(), {"same": 0, "mean": 0, "unseen": 0}
    for name, tensor in new.model.state_dict().items():
        if name not in EMBEDDINGS:
            assert torch.equal(tensor, learned[name]), name
            continue
        for token_id in range(UNK_ID + 1, new.tokenizer.vocab_size):
            token = new.tokenizer.token(token_id)
            if not token.startswith("▁") or token == "▁":
                continue
            ids = pieces_of(start.tokenizer, token)
            kind = "unseen" if UNK_ID in ids else "same" if len(ids) == 1 else "mean"
            expected = before[name][token_id] if kind == "unseen" else learned[name][ids].mean(dim=0)
            assert torch.allclose(tensor[token_id], expected), token
            counted[kind] += 1
        assert torch.equal(tensor[: UNK_ID + 1], learned[name][: UNK_ID + 1])
    assert min(counted.values()) > 0


def nothing(new, start):
    """Leaves the new translator as it is."""


def by_number(new, start):
    """Copies the rows as if both had the same subwords."""
    take_over(new, start)
    for name in EMBEDDINGS:
        mine, learned = new.model.state_dict()[name], start.model.state_dict()[name]
        mine[: len(learned)] = learned


def unseen_too(new, start):
    """Gives subwords with unseen characters what stands for the unknown."""
    take_over(new, start)
    for name in EMBEDDINGS:
        for token_id in range(new.tokenizer.vocab_size):
            if UNK_ID in pieces_of(start.tokenizer, new.tokenizer.token(token_id)):
                new.model.state_dict()[name][token_id] = start.model.state_dict()[name][UNK_ID]


def test_rows_follow_the_pieces():
    tells_apart(law_rows_follow_the_pieces, take_over, nothing, by_number, unseen_too)


def test_the_same_subwords_give_the_same_translator():
    start, new = translator(TEXTS, 80, seed=0), translator(TEXTS, 80, seed=1)
    take_over(new, start)
    for text in TEXTS[:5]:
        assert new.translate(text, beam_size=1).text == start.translate(text, beam_size=1).text


def law_new_units_change_nothing_at_first(take) -> None:
    """A wider model translates as its start does, and new units that are not at 0 learn at the first step."""
    start, new = translator(TEXTS, 80, seed=0), translator(TEXTS, 80, seed=1, d_ff=40)
    old = start.model.config.d_ff
    take(new, start)
    ids = torch.tensor([new.tokenizer.encode(" ".join(TEXTS[:5]))])
    ours, theirs = (one.model(ids, ids) for one in (new, start))
    assert torch.allclose(ours, theirs, atol=1e-5)
    ours.square().sum().backward()
    for name, weight in new.model.named_parameters():
        if name.endswith(".down.weight"):
            assert weight.grad[:, old:].any(dim=0).sum() >= 4, name  # of 8


def random_units(new, start):
    """New units speak at once."""
    keep = {name: tensor.clone() for name, tensor in new.model.state_dict().items() if name.endswith(".down.weight")}
    take_over(new, start)
    for name, tensor in keep.items():
        new.model.state_dict()[name][:, start.model.config.d_ff :] = tensor[:, start.model.config.d_ff :]


def dead_units(new, start):
    """New units neither hear nor speak, and never will."""
    take_over(new, start)
    for name, tensor in new.model.state_dict().items():
        if ".up." in name:
            tensor[start.model.config.d_ff :] = 0


def test_new_units_change_nothing_at_first():
    tells_apart(law_new_units_change_nothing_at_first, take_over, random_units, dead_units)


def test_another_model_is_refused():
    start, new = translator(TEXTS, 80, seed=0), translator(TEXTS, 80, seed=1, d_ff=16, norm_first=True)
    with pytest.raises(ValueError, match=r"its model differs in \['d_ff', 'norm_first'\]"):
        take_over(new, start)


def test_an_experiment_starts_where_it_is_told(tmp_path):
    """With a rate of nothing its weights stay those of the start; the log says what it was, and there is no other."""
    config = TrainConfig(epochs=1, batch_tokens=256, peak_lr=1e-30, warmup_steps=4)
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        train_translator(CORPUS, tmp_path / "first", Experiment("tiny", 60, config), progress=False)
        again = Experiment("tiny", 60, TrainConfig(**config.to_dict() | {"seed": 5}), start=str(tmp_path / "first"))
        log = train_translator(CORPUS, tmp_path / "second", again, progress=False)
    first, second = (Translator.from_pretrained(tmp_path / name).model for name in ("first", "second"))
    for ours, theirs in zip(second.parameters(), first.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)
    assert log["start"] == str(tmp_path / "first")
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        with pytest.raises(ValueError, match=r"holds another run: its training configuration differs in \['start'\]"):
            train_translator(CORPUS, tmp_path / "second", replace(again, start=None), progress=False)


def law_subwords_are_kept(train, folder):
    """The subwords, and what they mean, are those of the start, whatever the new pairs are."""
    config = TrainConfig(epochs=1, batch_tokens=256, peak_lr=1e-30, warmup_steps=4)
    turned = [Pair(pair.tgt, pair.src) for pair in CORPUS.train[:6]]
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        train_translator(CORPUS, folder / "first", Experiment("tiny", 60, config, lowercase=True), progress=False)
        asked = Experiment("tiny", 50, config, start=str(folder / "first"), keep_subwords=True)
        log = train(replace(CORPUS, train=turned), folder / "second", asked, progress=False)
    first, second = (Translator.from_pretrained(folder / name) for name in ("first", "second"))
    assert second.tokenizer.to_json() == first.tokenizer.to_json()
    for ours, theirs in zip(second.model.parameters(), first.model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)
    assert log["keep_subwords"] and log["lowercase"] and log["model"]["vocab_size"] == first.tokenizer.vocab_size


def test_subwords_are_kept(tmp_path):
    def anew(corpus, folder, asked, **options):
        return train_translator(corpus, folder, replace(asked, keep_subwords=False), **options)

    law_subwords_are_kept(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        law_subwords_are_kept(anew, tmp_path / "anew")
    with pytest.raises(ValueError, match="needs a start whose subwords"):
        Experiment("tiny", 60, TrainConfig(), keep_subwords=True)


SHARES = {0.0: 3.0, 0.25: 7.0, 0.75: 5.0}  # of the start in the finished weights, and BLEU on the validation part


def law_the_finished_weights_keep_a_share_of_the_start(train, folder):
    """The mean of both ends of the training, by the share that translates the validation part best."""
    config = TrainConfig(epochs=1, batch_tokens=256, peak_lr=0.01, warmup_steps=4)
    tried, means = [], []

    def scored(translator, pairs, **search):
        assert list(pairs) == CORPUS.valid
        tried.append(list(SHARES)[len(tried)])
        means.append(weights_of(translator.model))
        found = score(translator, pairs, **search)
        return replace(found, bleu=replace(found.bleu, score=SHARES[tried[-1]]))

    with mock.patch.object(experiment, "model_preset", tiny_preset), mock.patch.object(choice, "score", scored):
        train_translator(CORPUS, folder / "first", Experiment("tiny", 60, config), progress=False)
        asked = Experiment("tiny", 60, config, start=str(folder / "first"), start_share=tuple(SHARES), beam_size=1)
        log = train(CORPUS, folder / "second", asked, progress=False)
    began = weights_of(Translator.from_pretrained(folder / "first").model)
    ended, _ = load_tensors(folder / "second" / "checkpoints" / "epoch-0001.safetensors")
    for share, mean in zip(tried, means, strict=True):
        for name, end in ended.items():
            assert torch.allclose(mean[name], share * began[name] + (1 - share) * end, atol=1e-7), (share, name)
    assert [(entry["start_share"], entry["bleu"]) for entry in log["choices"]] == [(0.25, 7), (0.75, 5), (0, 3)]
    assert log["start_share"] == 0.25
    assert_same_weights(Translator.from_pretrained(folder / "second").model, means[1])


def test_the_finished_weights_keep_a_share_of_the_start(tmp_path):
    def with_another(change):
        return patched(train_translator, mock.patch.object(experiment, "choose", change))

    def mean_with_itself(translator, folder, asked, pairs, start):
        return choice.choose(translator, folder, asked, pairs, weights_of(translator.model))

    def shares_of_the_end(translator, folder, asked, pairs, start):
        turned = replace(asked, start_share=tuple(1 - share for share in asked.start_share if share) + (0.0,))
        return choice.choose(translator, folder, turned, pairs, start)

    law_the_finished_weights_keep_a_share_of_the_start(train_translator, tmp_path / "ours")
    worst_first = with_another(lambda *arguments: choice.choose(*arguments)[::-1])
    for mutant in (worst_first, with_another(mean_with_itself), with_another(shares_of_the_end)):
        with pytest.raises(AssertionError):
            law_the_finished_weights_keep_a_share_of_the_start(mutant, tmp_path / f"{id(mutant)}")


@pytest.mark.parametrize("share, complaint", [(0.5, "needs a start"), (1.0, "must be in"), ((), "got none")])
def test_a_share_of_no_start_is_refused(share, complaint):
    with pytest.raises(ValueError, match=complaint):
        Experiment("tiny", 60, TrainConfig(), start="everyday" if share == 1 else None, start_share=share)


def test_an_lstm_has_no_start_and_is_none():
    with pytest.raises(ValueError, match="only a Transformer can start"):
        Experiment("tiny", 60, TrainConfig(), architecture="lstm", start="everyday")
    new = translator(TEXTS, 80, seed=0)
    lstm = Translator(model_like("lstm", new.model.config), new.tokenizer)
    with pytest.raises(ValueError, match="only a Transformer can be started from, this translator is lstm"):
        take_over(new, lstm)
