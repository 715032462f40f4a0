"""The tokenizer: text to subwords and back without loss, unknown characters, and texts that look like specials."""

import random
import subprocess
import sys
import unicodedata

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Tokenizer
from tests.helpers.laws import raised, tells_apart

TEXTS = [
    "Ein Mann fährt mit dem Fahrrad über die Straße.",
    "A man (in a red shirt) rides -- slowly! -- across the street.",
    'Die Größe der Übung: 3,50 € für "alles" & mehr; 100 %?',
    "It's the dog's, isn't it? [No] {maybe} <s> </s> <pad> <unk> #1 a_b c/d e=f*g+h @ ~ ^ ` | \\ $",
    "„Ja“, sagte er – wirklich … naïve café, déjà vu.",
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, 200)


def normal(text):
    """What a round trip is promised to return."""
    return unicodedata.normalize("NFC", text).strip()


def random_texts(number=300):
    """Strings of characters that occur in the texts, with spaces anywhere and more than one in a row."""
    rng, alphabet = random.Random(0), sorted(set("".join(TEXTS)) - {" ", "<"})
    return ["".join(rng.choices(alphabet + [" "] * 20, k=rng.randint(1, 30))) for _ in range(number)]


SENTENCES = [
    *TEXTS[:3],
    TEXTS[4],
    "a  b   c",
    "  stripped  ",
    ".a",
    "(a)",
    "a .b",
    "' s",
    "-",
    "für",
    "für",  # u and a combining diaeresis: NFD
    "Fahrräder fahren",
    "",
    "   ",
]


def law_round_trip_is_lossless(round_trip):
    for text in [*SENTENCES, *random_texts()]:
        assert round_trip(text) == normal(text)


def test_round_trip_is_lossless(tokenizer):
    law_round_trip_is_lossless(lambda text: tokenizer.decode(tokenizer.encode(text)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tok, text: " ".join(tok.tokens(text)).replace("▁", ""),
        lambda tok, text: " ".join(tok.decode(tok.encode(word)) for word in text.split()),  # double spaces
        lambda tok, text: tok.decode(tok.encode(text.replace("ü", "u"))),
        lambda tok, text: tok.decode(tok.encode(text)).replace(" .", "."),  # a rule for punctuation
    ],
)
def test_a_lossy_round_trip_breaks_the_law(tokenizer, wrong):
    with pytest.raises(AssertionError):
        law_round_trip_is_lossless(lambda text: wrong(tokenizer, text))


def test_the_same_text_composed_and_decomposed_has_the_same_ids(tokenizer):
    for text in ("für die Größe", "déjà vu"):
        assert tokenizer.encode(unicodedata.normalize("NFD", text)) == tokenizer.encode(text)


@pytest.mark.parametrize("name", ["encode", "encode_batch", "normalize", "words"])
def test_half_a_surrogate_pair_is_refused(tokenizer, name):
    text = b"ein Caf\xe9".decode(errors="surrogateescape")
    with pytest.raises(ValueError, match="holds a lone surrogate, which is no character: was it UTF-8?"):
        getattr(tokenizer, name)([text] if name == "encode_batch" else text)


def test_unknown_characters_become_unk_and_nothing_else_does(tokenizer):
    ids = tokenizer.encode("Ein Ж Mann 漢!")
    assert ids.count(UNK_ID) == 2
    assert tokenizer.decode(ids) == "Ein <unk> Mann <unk>!"
    for text in (*TEXTS[:3], TEXTS[4]):
        assert UNK_ID not in tokenizer.encode(text)
    assert tokenizer.encode("漢a字").count(UNK_ID) == 2 and tokenizer.encode("漢字").count(UNK_ID) == 2


def law_text_never_becomes_a_special(encode):
    for text in ("<s>", "</s>", "<pad>", "a <s> b", "x</s>y", "<pad><pad>", "</s> ", "<<s>>"):
        assert not {PAD_ID, BOS_ID, EOS_ID} & set(encode(text)), f"{text!r} became a special token"


def test_text_that_looks_like_a_special_token_stays_text(tokenizer):
    law_text_never_becomes_a_special(tokenizer.encode)
    law_text_never_becomes_a_special(lambda text: tokenizer.encode_batch([text])[0])
    for text in ("<s>", "a </s> b", "<pad>"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    again = Tokenizer.from_json(tokenizer.to_json())
    law_text_never_becomes_a_special(again.encode)


def test_text_that_becomes_a_special_token_breaks_the_law(tokenizer):
    def naive(text):
        return [SPECIALS.index(word) if word in SPECIALS else 9 for word in text.split()]

    with pytest.raises(AssertionError, match="became a special token"):
        law_text_never_becomes_a_special(naive)


def test_no_subword_holds_a_space_inside_or_mixes_letters_and_punctuation(tokenizer):
    def punctuation(character):
        return unicodedata.category(character).startswith("P")

    for token in (tokenizer.token(i) for i in range(len(SPECIALS), tokenizer.vocab_size)):
        assert " " not in token and "▁" not in token[1:]
        assert len(token) == 1 or not any(map(punctuation, token))


def test_tokens_are_the_subwords_of_the_ids(tokenizer):
    text = "Die Straße."
    assert tokenizer.tokens(text) == [tokenizer.token(i) for i in tokenizer.encode(text)]
    assert "".join(tokenizer.tokens(text)) == "▁Die▁Straße."


def law_words_are_what_is_split_into_subwords(words_of, tokenizer):
    """No subword reaches over the end of a word, and nothing is lost between them."""
    for text in [*TEXTS, "  eine\xa0gro\u0308\u00dfe  Stra\u00dfe "]:
        tokens = tokenizer.tokens(text)
        for word in words_of(text):
            spelled = ""
            while len(spelled) < len(word):
                spelled += tokens.pop(0)
            assert spelled == word
        assert tokens == []


def test_words_are_what_is_split_into_subwords(tokenizer):
    law_words_are_what_is_split_into_subwords(tokenizer.words, tokenizer)
    for wrong in (lambda text: ["▁" + word for word in text.split()], lambda text: tokenizer.words(text)[:-1]):
        with pytest.raises(AssertionError):
            law_words_are_what_is_split_into_subwords(wrong, tokenizer)


def law_case_is_lost_where_asked_for(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    for each in (tokenizer, Tokenizer.load(tmp_path / "tokenizer.json")):
        assert each.lowercase and each.decode(each.encode("Der HUND sieht Äpfel.")) == "der hund sieht äpfel."


def test_case_is_lost_where_asked_for(tokenizer, tmp_path):
    law_case_is_lost_where_asked_for(Tokenizer.train(TEXTS, 300, lowercase=True), tmp_path)
    with pytest.raises(AssertionError):
        law_case_is_lost_where_asked_for(tokenizer, tmp_path)


def test_decoding_leaves_specials_out_and_shows_unk(tokenizer):
    ids = tokenizer.encode("Ein Mann")
    assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, PAD_ID]) == "Ein Mann"
    assert tokenizer.decode([*ids, UNK_ID]) == "Ein Mann<unk>"
    assert tokenizer.decode([]) == ""


def test_a_batch_is_its_texts_one_by_one(tokenizer):
    assert tokenizer.encode_batch(SENTENCES) == [tokenizer.encode(text) for text in SENTENCES]
    assert tokenizer.encode_batch([]) == []


def test_specials_have_the_first_ids(tokenizer):
    assert [tokenizer.token(i) for i in (PAD_ID, BOS_ID, EOS_ID, UNK_ID)] == list(SPECIALS)


def test_training_holds_the_size_and_gives_the_same_twice(tokenizer):
    assert tokenizer.vocab_size <= 200
    assert Tokenizer.train(TEXTS * 3, 200).to_json() == tokenizer.to_json()
    characters = len(set("".join(TEXTS)) - {" "} | {"▁"})
    smallest = Tokenizer.train(TEXTS, characters + 4)
    assert smallest.vocab_size == characters + 4 and all(len(t) == 1 for t in smallest.tokens("Ein Mann"))


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.to_json() == tokenizer.to_json()
    assert again.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("token_id", [-1, 10_000])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, token_id):
    message = rf"expected an id in 0..{tokenizer.vocab_size - 1}, got {token_id}"
    with pytest.raises(ValueError, match=message):
        tokenizer.token(token_id)
    with pytest.raises(ValueError, match=message):
        tokenizer.decode([5, token_id])


@pytest.mark.parametrize("texts", [[], [""], ["  ", " "]])
def test_training_needs_text(texts):
    with pytest.raises(ValueError, match="no text to learn subwords from"):
        Tokenizer.train(texts, 50)


def law_one_text_is_no_list_of_letters(train):
    for text in ("a dog", b"a dog"):
        error = raised(ValueError, lambda text=text: train(text, 60))
        assert error and "its letters are no texts" in str(error)


def letter_by_letter(texts, vocab_size):
    return Tokenizer.train([str(each) for each in texts], vocab_size)


def test_one_text_is_no_list_of_letters(tokenizer):
    tells_apart(law_one_text_is_no_list_of_letters, Tokenizer.train, letter_by_letter)
    with pytest.raises(ValueError, match="its letters are no texts"):
        tokenizer.encode_batch("a dog")


@pytest.mark.parametrize("vocab_size", [10**6 + 1, 10**9, 10**30])
def test_so_many_subwords_are_refused_at_once(vocab_size):
    with pytest.raises(ValueError, match=f"vocab_size must be at most 1,000,000, got {vocab_size}"):
        Tokenizer.train(["a dog"], vocab_size)


def test_training_needs_room_for_the_characters():
    with pytest.raises(ValueError, match="vocab_size must hold 4 specials and 4 characters, got 7"):
        Tokenizer.train(["abc"], 7)
    assert Tokenizer.train(["abc"], 8).vocab_size == 8


@pytest.mark.parametrize("content", ["", "no json", "{}", "[1]"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match="not a tokenizer.json of the tokenizers library"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_a_tokenizer_with_other_specials_is_refused(tokenizer):
    foreign = tokenizers.Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1, "b": 2}, unk_token="[PAD]"))
    foreign.pre_tokenizer = pre_tokenizers.Whitespace()
    message = r"the first ids must be the special tokens .*, got \('\[PAD\]', 'a', 'b', None\)"
    with pytest.raises(ValueError, match=message):
        Tokenizer.from_json(foreign.to_str())
    with pytest.raises(ValueError, match="the first ids must be the special tokens"):
        Tokenizer.from_json(tokenizer.to_json().replace("<s>", "<bos>"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_full_disk_costs_nothing_of_the_old_file(root, tmp_path):
    code = (
        "import resource, sys; from course_lib.tokenizer import Tokenizer\n"
        "path, old = sys.argv[1:]; Tokenizer.train([old], 20).save(path); before = open(path).read()\n"
        "larger = Tokenizer.train(['abcdefghijklmnopqrstuvwxyz ' * 3], 60)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), resource.RLIM_INFINITY))\n"
        "try: larger.save(path)\n"
        "except OSError: sys.exit(0 if open(path).read() == before else 'the old file is lost')\n"
        "sys.exit('the full disk went unnoticed')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "t.json", "abc"], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
