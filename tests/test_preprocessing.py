"""What people type, made readable: and what was copied is there again at the end."""

import re

import pytest

from course_lib.preprocessing import LONG_WORDS, PLACEHOLDERS, SPLIT_WORDS, Piece, doubts, prepare
from tests.helpers.laws import tells_apart


def known(character: str) -> bool:
    """The letters of Western Europe, digits, and the punctuation of a typewriter."""
    return character in PLACEHOLDERS or character.isspace() or ord(character) < 0x7F or character in "äöüßéèó–„“"


def only(text: str) -> str:
    """The one sentence that a text is prepared to."""
    (piece,) = prepare(text, known).pieces
    return piece.text


TYPOGRAPHY = {
    "She’s doing her homework.": "She's doing her homework.",
    "“Hello,” he said.": '"Hello," he said.',
    "I can’t come—I’m sick.": "I can't come - I'm sick.",
    "Well…": "Well...",
    "10–15 minutes": "10-15 minutes",
    "A well-known man": "A well-known man",
    "Tired\u00a0and\u200b sad": "Tired and sad",
    "You &amp; me": "You and me",
}


def law_typography_becomes_a_typewriters(change):
    for typed, read in TYPOGRAPHY.items():
        assert change(typed) == read


def test_typography_becomes_a_typewriters():
    tells_apart(law_typography_becomes_a_typewriters, only, str, lambda text: only(text).replace("-", " - "))


COPIED = {
    "Visit www.example.org/a-b?c=1.": ["www.example.org/a-b?c=1"],
    "Write to anna.schmidt@example.com, or to me!": ["anna.schmidt@example.com"],
    "(See https://my-site.example/page?id=7)": ["https://my-site.example/page?id=7"],
    "Go to example.com and then to example.net.": ["example.com", "example.net"],
    "My friend 李雷 has Москва on his T-shirt 😀": ["李雷", "Москва", "😀"],
    "π is not an address; github.com/example is.": ["π", "github.com/example"],
    "It ends.Here he is, at 5 p.m. or so.": [],
    "a.com, b.com, c.com, d.com": ["a.com", "b.com", "c.com", "d.com"],
    "Go to a.com b.com 李 雷, π": ["a.com b.com 李 雷", "π"],
}


def law_what_is_copied_comes_back(prepare):
    for text, copied in COPIED.items():
        piece, *others = prepare(text, known).pieces
        assert list(piece.copied) == copied and not others
        assert not any(original in piece.text for original in copied)
        assert all(known(character) for character in piece.text)
        assert piece.restore(piece.text) == text
        assert piece.restore(piece.text.upper()) != piece.restore("") == ""


def without_addresses_first(text, known):
    found = prepare(text.replace(".", " . "), known)
    return found


def test_what_is_copied_comes_back():
    tells_apart(law_what_is_copied_comes_back, prepare, lambda text, known: prepare(text, lambda _: True))
    tells_apart(law_what_is_copied_comes_back, prepare, without_addresses_first)


def test_the_marks_of_copies_cannot_be_typed():
    assert only(f"Hello{PLACEHOLDERS[0]} \ue100\U000f0001you.") == "Hello you."


def law_copies_come_back_in_tokens(restore_tokens):
    piece = Piece("", ("a", "b", "c", "d", "e"))
    first, second, third = PLACEHOLDERS
    tokens = [f" {first}", second, "x", third, first, "y", f" {second}", first]  # one too many
    assert restore_tokens(piece, tokens) == [" a", "b", "x", "c", "d", "y", " e", ""]
    assert restore_tokens(piece, [f"{first} x {third} {third}"]) == ["a x c"]


def one_token_at_a_time(piece, tokens):
    return [piece.restore(token) for token in tokens]


def test_copies_come_back_in_tokens():
    tells_apart(law_copies_come_back_in_tokens, Piece.restore_tokens, one_token_at_a_time)


def test_there_are_marks_for_a_long_text():
    words = ["π"] * 7000  # more than the private-use characters of two bytes
    text = "Not " + ", ".join(words)
    (piece,) = prepare(text, known).pieces
    assert list(piece.copied) == words and piece.restore(piece.text) == text


RARE = {"Zendaya", "zendaya", "Quux", "quux", "Unquestionably"}


def pieces(word: str) -> int:
    """Three of a rare word; a name of two syllables is in one piece only where it has its capital."""
    return 3 if word in RARE else 2 if word in ("berlin", "anna") else 1


NAMED = {
    "I saw Zendaya Quux.": ["Zendaya Quux"],
    "Zendaya's car is new.": ["Zendaya"],
    "Unquestionably, Zendaya saw Tom.": ["Zendaya"],
    "My flight is LH1234, on the 3rd, at 10am.": ["LH1234"],
    "So zendaya and I": [],
    "Take bus 46A to platform 7B at 7AM or 8 PM.": ["46A", "7B"],
}


def law_rare_names_are_copied(prepare):
    for text, copied in NAMED.items():
        (piece,) = prepare(text, known, pieces).pieces
        assert list(piece.copied) == copied and piece.restore(piece.text) == text


def every_rare_word(text, known, pieces):
    """Takes each word for a name that is rare, because a sentence begins with it."""
    return prepare(text, known, lambda word: 3 if word == "unquestionably" else pieces(word))


def one_by_one(text, known, pieces):
    """A mark for the first name and another for the last."""
    return prepare(text.replace(" Quux", "  Quux"), known, pieces)


def every_name(text, known, pieces):
    return prepare(text, known)


def test_rare_names_are_copied():
    tells_apart(law_rare_names_are_copied, prepare, every_name, every_rare_word, one_by_one)


CAPITALS = {
    "i live in berlin": "I live in Berlin",
    "who is anna? i am": "Who is Anna? I am",
    "I live in berlin": "I live in berlin",
    "WHERE IS BERLIN?": "Where is Berlin?",
    "...and you": "...And you",
}


def law_capitals_come_back(prepare):
    for text, read in CAPITALS.items():
        assert prepare(text, known, pieces).pieces[0].text == read


def test_capitals_come_back():
    tells_apart(law_capitals_come_back, prepare, every_name, lambda text, *others: prepare(text.lower(), *others))


def law_signs_are_copied(prepare):
    (piece,) = prepare("I think 3 < 5 is < or = &amp; 1+1 = 2, and so on.", known).pieces
    assert piece.copied == ("3 < 5", "<", "=", "1+1 = 2") and "and so on." in piece.text and "&" not in piece.text


def test_signs_and_formulas_are_copied():
    tells_apart(law_signs_are_copied, prepare, lambda text, known: prepare(text.replace("<", "("), known))
    assert only("It costs 3, 4 or 5 euros.") == "It costs 3, 4 or 5 euros."


def law_losses(losses):
    (piece,) = prepare("I have 12345 < books and π.", known).pieces
    first, second = PLACEHOLDERS[:2]
    assert losses(piece, f"Ich habe 12.345 {first} {second} Bücher.") == 0
    assert losses(piece, f"Ich habe 12.345 {first} Bücher.") == 1
    assert losses(piece, f"Ich habe 1345 {second}") == 2


def test_losses_are_counted():
    tells_apart(law_losses, Piece.losses, lambda piece, translation: len(doubts(piece.text, translation)))


@pytest.mark.parametrize("text", ["Привет, как дела?", "你好", "مرحبا", "こんにちは、元気ですか。", "Привет 12!"])
def test_another_script_is_refused(text):
    with pytest.raises(ValueError, match=f"expected English, got '{re.escape(text)}', in letters"):
        prepare(text, known)


def test_what_has_no_letters_is_not_refused():
    assert [only(text) for text in ("12345", "1, 2, 3")] == ["12345", "1, 2, 3"]
    for text in ("😀", "???", "- ! -"):
        assert prepare(text, known).pieces == (Piece(PLACEHOLDERS[0], (text,)),)


def law_capitals_are_read_in_lower_case(prepare):
    for text, read in (("I AM TIRED.", "I am tired."), ("HELP ME! 123", "Help me! 123")):
        found = prepare(text, known)
        assert found.pieces[0].text == read and "capitals" in found.remarks[0]
    assert only("I AM") == "I am"
    for text in ("I AM Tired.", "NATO", "USA!", "I", "A 3"):
        assert prepare(text, known).pieces[0].text == text and not prepare(text, known).remarks


def of_few(word: str) -> int:
    return 1 if word in ("help", "Anna", "OK", "ok") else 2


def law_one_word_in_capitals_is_read_as_it_is_known(prepare):
    as_it_is = {text: text for text in ("Anna", "DVD", "A DVD", "OK", "24 V OK")}
    for text, read in ({"HELP!": "Help!", "ANNA": "Anna", "I OK": "I ok"} | as_it_is).items():
        assert prepare(text, known, of_few).pieces[0].text == read


def test_one_word_in_capitals_is_read_as_it_is_known():
    tells_apart(
        law_one_word_in_capitals_is_read_as_it_is_known,
        prepare,
        lambda text, known, pieces: prepare(text, known),
        lambda text, known, pieces: prepare(text.lower(), known, pieces),
    )


@pytest.mark.parametrize("text", ["", " \n", "<b></b>", "<s> </s>", "\u200b", PLACEHOLDERS[0]])
def test_a_text_of_nothing_is_refused(text):
    with pytest.raises(ValueError, match=f"an empty sentence cannot be translated: '{re.escape(repr(text)[1:-1])}'"):
        prepare(text, known)


def test_capitals_are_read_in_lower_case():
    tells_apart(
        law_capitals_are_read_in_lower_case,
        prepare,
        lambda text, known: prepare(text.title(), known),
        lambda text, known: prepare(text + " IT IS", known),
    )
    assert only("SEE EXAMPLE.COM OR ÄÖ Q").startswith("See ")


def test_tags_are_left_out_and_said_so():
    for text, read in (("<b>I am tired.</b>", "I am tired."), ('<a href="https://a.org">Click</a> me', "Click  me")):
        found = prepare(text, known)
        assert found.pieces[0].text.strip() == read and "tags were left out" in found.remarks[0]
    assert not prepare("I think 3 < 5 and 7 > 2.", known).remarks


LONG = "Dr. Smith is here. He waits until 5 p.m. in room 3.\n\n He is busy now, see example.com or b.com. "
LONG += "Do not be late, he says."


def law_a_long_text_is_split(prepare):
    found = prepare(LONG, known)
    assert [piece.restore(piece.text) for piece in found.pieces] == [
        "Dr. Smith is here.",
        "He waits until 5 p.m. in room 3.",
        "He is busy now, see example.com or b.com.",
        "Do not be late, he says.",
    ]
    assert [piece.gap for piece in found.pieces] == [" ", "\n\n ", " ", ""]
    assert [len(piece.copied) for piece in found.pieces] == [0, 0, 2, 0]
    assert found.pieces[2].text.count(PLACEHOLDERS[0]) == found.pieces[2].text.count(PLACEHOLDERS[1]) == 1
    assert found.remarks == ("4 sentences, translated one by one",)


def at_full_stops(text, known):
    found = prepare(text.replace("Dr. ", "Dr.\n"), known)
    return found


def test_a_long_text_is_split_where_sentences_end():
    tells_apart(law_a_long_text_is_split, prepare, at_full_stops, lambda text, known: prepare(text[:60], known))
    short = "I am tired. Smith is here."
    assert len(short.split()) <= SPLIT_WORDS and only(short) == short
    for text, sentences in (("I am tired. I want to sleep. Good night!", 3), ("I am tired\nGood night", 2)):
        assert len(prepare(text, known).pieces) == sentences


def test_a_sentence_that_is_too_long_is_said_to_be():
    words = " ".join(["word"] * LONG_WORDS)
    assert not prepare(words, known).remarks
    assert "longer than 40 words" in prepare(words + " more", known).remarks[0]


def law_doubts(doubts):
    for src, translation in (
        ("I have 12345 books.", "Ich habe 12.345 Bücher."),
        ("In 1,250.5", "In 1.250,5"),
        ("3", "drei"),
    ):
        assert doubts(src, translation) == []
    assert doubts("I have 12345 books.", "Ich habe 1245 Bücher.") == ["not in the translation: 12345"]
    assert "much shorter" in doubts("word " * 30, "Wort Wort")[0]
    assert not doubts("word " * 30, "Wort " * 20)
    assert doubts("", "Zendayas Auto", ["Zendaya", "Quux"]) == ["not in the translation: Quux"]
    assert doubts("12345", "", ["12345"]) == ["not in the translation: 12345"]


def test_lost_numbers_and_words_are_seen():
    tells_apart(
        law_doubts,
        doubts,
        lambda *texts: [],
        lambda src, translation, copied=(): doubts(src, translation.replace(".", " "), copied),
        lambda src, translation, copied=(): doubts(src, translation),
    )
