"""A small vocabulary of whole words, or of characters."""

from collections.abc import Iterable, Sequence

from course_lib.tokenizer import BOS_ID, EOS_ID, SPECIALS, UNK_ID


class WordIds:
    """Words to ids and back; the first four ids are <pad>, <s>, </s> and <unk>.

    Args:
        words: each of them once.

    Raises:
        ValueError: if one comes twice.
    """

    def __init__(self, words: Sequence[str]):
        self._words = [*SPECIALS, *words]
        self._ids = {word: index for index, word in enumerate(self._words)}
        if len(self._ids) != len(self._words):
            raise ValueError(f"each word must come once, got {len(self._words) - len(self._ids)} of them again")

    def __len__(self) -> int:
        """How many ids there are, with the four special ones."""
        return len(self._words)

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of words, or of the characters of a text; unknown ones are <unk>."""
        return [self._ids.get(word, UNK_ID) for word in words]

    def closed(self, words: Iterable[str]) -> list[int]:
        """As `ids`, between <s> and </s>."""
        return [BOS_ID, *self.ids(words), EOS_ID]

    def words(self, ids: Iterable[int]) -> list[str]:
        """The words of ids."""
        return [self._words[index] for index in ids]
