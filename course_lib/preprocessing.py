"""From what people type to sentences that a model can read, and back: tidying, placeholders, sentence splitting."""

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Private-use characters, which nobody types: they stand for what is copied. `course_lib.data.augment` teaches them.
PLACEHOLDERS = ("\ue000", "\ue001", "\ue002")
SPLIT_WORDS = 20  # a longer text is split where its sentences end
RARE_PIECES = 3  # a word in so many pieces, or more, stood hardly anywhere in what the model learned from
LONG_WORDS = 40  # no sentence of the everyday corpus is longer

_PLAIN = str.maketrans(
    {"&": "and"}
    | {"’": "'", "‘": "'", "‚": "'", "ʼ": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"', "‟": '"', "«": '"'}
    | {"»": '"', "…": "...", "\u00ad": None, "\u200b": None, "\ufeff": None, "\u00a0": " "}
)
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")
_PLACEHOLDER = re.compile(f" ?[{''.join(PLACEHOLDERS)}]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ENDING = "com org net edu gov info io de at ch uk fr eu example".replace(" ", "|")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # at a beginning only, or long words take long
    rf"|\b[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:{_ENDING})\b(?:/\S*)?"
)
_TRAILING = ".,;:!?)]}\"'"
_DASH = re.compile(r"\s*[–—―−]\s*")
_RANGE = re.compile(r"(?<=\d)\s*[–—―−]\s*(?=\d)")
_MARKS = 0xF0000  # private-use characters too, 65,534: what is copied, while the whole text is still one
_WORD = re.compile(r"\b[a-z]+\b")
_BEGINNING = re.compile(r"^\W*[a-z]|(?<=[.!?] )[a-z]|\bi\b")
_WITHIN = re.compile(r"[.!?]\s+\S")  # an end of a sentence that is not that of the text
_SIGNS = "<>=+*/|~^#@"
_MARK = f"[{chr(_MARKS)}-\U000ffffd]"
_NUMBER = r"\d+(?:[.,]\d+)*"
_FORMULA = rf"{_NUMBER}(?: ?[<>=+*/^] ?{_NUMBER})+"


@dataclass(frozen=True)
class Piece:
    """A sentence for the model.

    Args:
        text: with placeholders.
        copied: what they stand for, in order.
        gap: the white space that follows in the whole text.
    """

    text: str
    copied: tuple[str, ...] = ()
    gap: str = ""

    def losses(self, translation: str) -> int:
        """How much of what must come through is not in a translation: placeholders, and what `doubts` tells."""
        lost = sum(_placeholder(number) not in translation for number in range(len(self.copied)))
        return lost + len(doubts(self.text, translation))

    def restore(self, translation: str) -> str:
        """The translation, in which what was copied stands for its placeholders again; one too many is left out."""
        return "".join(self.restore_tokens([translation]))

    def restore_tokens(self, tokens: Iterable[str]) -> list[str]:
        """The same for a translation in tokens, one after another; one too many becomes an empty token."""
        waiting = {mark: iter(self.copied[number :: len(PLACEHOLDERS)]) for number, mark in enumerate(PLACEHOLDERS)}

        def original(found: re.Match) -> str:
            *space, mark = found[0]
            copied = next(waiting[mark], None)
            return "" if copied is None else "".join([*space, copied])

        return [_PLACEHOLDER.sub(original, token) for token in tokens]


@dataclass(frozen=True)
class Prepared:
    """A text for the model: its sentences, and remarks on what was done to it that the reader should know."""

    pieces: tuple[Piece, ...]
    remarks: tuple[str, ...]


def prepare(text: str, known: Callable[[str], bool], pieces: Callable[[str], int] = lambda word: 1) -> Prepared:
    """A text as people type it to sentences that the model can read.

    HTML tags are left out; typographic quotes, dashes and dots become those of a typewriter; a text in capitals is
    read in lower case, one word alone if the model knows it so (HELP, but not DVD); a text without any capital gets
    those of its beginning and of the names that the model knows;
    placeholders take the place of web addresses, of words with characters that the model does not know, of signs such
    as <, of formulas such as 3 < 5, of rare names, and of a text without letters and digits; a text of more than two
    sentences, or of many words, is split where its sentences end, and any text where its lines end.

    Args:
        text: of any length.
        known: whether the model knows a character.
        pieces: into how many pieces the model cuts a word: one if it has often seen it. A rare name is in many pieces
            in lower case too, so that no word is taken for a name because a sentence begins with it.

    Raises:
        ValueError: if nothing is left of it; if all its letters are of a script that the model does not know.
    """
    remarks: list[str] = []
    typed = text
    text, copied = _without_addresses(_without_tags(_PRIVATE.sub("", text), remarks))
    text = text.translate(_PLAIN)
    text = _DASH.sub(" - ", _RANGE.sub("-", text))
    if not text.strip():
        raise ValueError(f"an empty sentence cannot be translated: {typed[:60]!r}")
    if _is_shouted(text, pieces):
        text = text.lower()
        remarks.append("the text is in capitals: it was read in lower case")
    if text.islower():
        text = _with_capitals(text, pieces)
    if not copied and not any(map(str.isalnum, text)):
        return Prepared((Piece(_placeholder(0), (text.strip(),)),), ())
    text, copied = _without_unknown(text, copied, known, pieces)
    found = tuple(_piece(sentence, copied) for sentence in _sentences(text))
    if len(found) > 1:
        remarks.append(f"{len(found)} sentences, translated one by one")
    if any(len(piece.text.split()) > LONG_WORDS for piece in found):
        remarks.append(f"a sentence is longer than {LONG_WORDS} words: expect mistakes, or split it")
    return Prepared(found, tuple(remarks))


def doubts(src: str, translation: str, copied: Iterable[str] = ()) -> list[str]:
    """What is wrong with a translation, as far as one can see without reading it.

    That is: numbers and copies that are not in it, and much left out.
    """
    missing = [number for number in _long_numbers(src) if number not in _long_numbers(translation)]
    missing += [original for original in copied if original not in translation and original not in missing]
    found = [f"not in the translation: {', '.join(missing)}"] if missing else []
    if len(src.split()) >= 10 and len(translation.split()) < len(src.split()) / 3:
        found.append("the translation is much shorter than the text: try it in shorter sentences")
    return found


def _without_tags(text: str, remarks: list[str]) -> str:
    plain = _TAG.sub(" ", text)
    if plain != text:
        remarks.append("HTML tags were left out: pass plain text to be sure")
    return html.unescape(plain)


def _without_addresses(text: str) -> tuple[str, list[str]]:
    copied: list[str] = []

    def mark(found: re.Match) -> str:
        address = found[0].rstrip(_TRAILING)
        copied.append(address)
        return chr(_MARKS + len(copied) - 1) + found[0][len(address) :]

    return _ADDRESS.sub(mark, text), copied


def _without_unknown(
    text: str, copied: list[str], known: Callable[[str], bool], pieces: Callable[[str], int]
) -> tuple[str, list[str]]:
    """Marks for rare names, signs, and words with characters that the model does not know, in the order of the text.

    Neighbors have one mark together: first name and last name.
    """
    in_order: list[str] = []

    def mark(found: re.Match) -> str:
        word = found[0]
        if is_mark(word):
            in_order.append(copied[ord(word) - _MARKS])
        elif word not in _SIGNS and all(map(known, word)) and not _is_copied(word, pieces):
            return word
        else:
            in_order.append(word)
        return chr(_MARKS + len(in_order) - 1)

    def is_mark(word: str) -> bool:
        return len(word) == 1 and 0 <= ord(word) - _MARKS < len(copied)

    marked = re.sub(rf"{_MARK}|{_FORMULA}|\w+|[^\w\s]", mark, text)
    unread = [letter for word in in_order for letter in word if letter.isalpha() and not known(letter)]
    if unread and not any(letter.isalpha() for letter in marked):
        raise ValueError(f"expected English, got {text[:60]!r}, in letters that this translator cannot read")
    together: list[str] = []

    def join(found: re.Match) -> str:
        together.append(" ".join(in_order[ord(mark) - _MARKS] for mark in found[0].split()))
        return chr(_MARKS + len(together) - 1)

    return re.sub(rf"{_MARK}(?: {_MARK})*", join, marked), together


def _is_copied(word: str, pieces: Callable[[str], int]) -> bool:
    """3 < 5; a rare name, Zendaya; or LH1234, the number of a flight, and 7B, but not 7AM."""
    if re.fullmatch(_FORMULA, word):
        return True
    if any(map(str.isdigit, word)):
        return any(map(str.isupper, word)) and not re.fullmatch(r"\d+[AP]M", word)
    return word[0].isupper() and min(pieces(word), pieces(word.lower())) >= RARE_PIECES


def _with_capitals(text: str, pieces: Callable[[str], int]) -> str:
    """i live in berlin → I live in Berlin"""
    text = _WORD.sub(lambda found: min(found[0], found[0].capitalize(), key=pieces), text)
    return _BEGINNING.sub(lambda found: found[0].upper(), text)


def _sentences(text: str) -> list[str]:
    """With the white space after each."""
    if len(text.split()) <= SPLIT_WORDS and "\n" not in text.strip() and len(_WITHIN.findall(text)) < 2:
        return [text]
    import sentencex  # the first short sentence need not wait for it

    found: list[str] = []
    for line, gap in re.findall(r"([^\n]*\S)(\s*)", text.lstrip()):
        *before, last = sentencex.segment("en", line)
        found += [*before, last.rstrip() + gap]
    return found


def _piece(sentence: str, copied: list[str]) -> Piece:
    stripped = sentence.rstrip()
    marks = [character for character in stripped if 0 <= ord(character) - _MARKS < len(copied)]
    for number, mark in enumerate(marks):
        stripped = stripped.replace(mark, _placeholder(number))
    return Piece(stripped, tuple(copied[ord(mark) - _MARKS] for mark in marks), sentence[len(sentence.rstrip()) :])


def _placeholder(number: int) -> str:
    return PLACEHOLDERS[number % len(PLACEHOLDERS)]


def _is_shouted(text: str, pieces: Callable[[str], int]) -> bool:
    words = re.findall(r"[^\W\d_]+", text) if text.isupper() else []
    long = [word for word in words if len(word) > 1]
    if len(long) == 1 and "I" not in words:
        return pieces(long[0]) > 1 == min(map(pieces, (long[0].lower(), long[0].title())))
    return bool(long)


def _long_numbers(text: str) -> list[str]:
    """Numbers of three digits and more, without their separators; smaller ones may be words in the translation."""
    return [digits for found in re.findall(r"\d[\d.,]*\d", text) if len(digits := re.sub(r"\D", "", found)) > 2]
