"""Four ways to divide the corpus into training, validation and test, each asking another question.

random: has the model learned the language? length: does it carry over to longer sentences?
compositional: does it combine known parts in new ways? one_shot: does it learn a word from one sentence?
"""

from collections.abc import Callable, Iterator

from course_lib.grammar.align import CoursePair
from course_lib.grammar.generate import distinct
from course_lib.grammar.lexicon import VERB
from course_lib.grammar.linearizers import joined_forms
from course_lib.grammar.sampler import Chooser

Parts = tuple[list[CoursePair], list[CoursePair], list[CoursePair]]
MAX_TRAIN_WORDS = 10  # of the "length" split, in both languages, punctuation included

_UNSEEN = "form:unseen"  # a fact of a pair

# Held out from training by the "compositional" split
SUBJECT_ONLY = frozenset({"Bruder", "Vogel", "Schwester", "Ente", "Pferd", "Mädchen"})
NEVER_FINAL = frozenset({"anrufen", "aufstehen", "einladen", "zumachen"})
NEW_CELLS = frozenset(
    {
        "cell:rot/m/accusative",
        "cell:alt/f/dative",
        "cell:klein/n/nominative",
        "cell:neu/m/dative",
        "cell:schwarz/f/accusative",
        "cell:müde/m/nominative",
        "cell:schön/f/nominative",
        "cell:teuer/n/accusative",
        "cell:jung/m/accusative",
        "cell:groß/n/accusative",
        "cell:hungrig/f/nominative",
        "cell:weiß/m/accusative",
    }
)
# Seen in one training sentence each by the "one_shot" split
RARE = frozenset(
    {
        "Löwe",
        "Mantel",
        "Kirche",
        "Ente",
        "Huhn",
        "Messer",
        "grün",
        "klug",
        "billig",
        "tanzen",
        "danken",
        "wegwerfen",
        "reparieren",
    }
)


def novelties(pair: CoursePair) -> frozenset[str]:
    """What of a pair the compositional split keeps from training: object, verb final, cell."""
    found = {"cell"} if pair.facts & NEW_CELLS else set()
    found |= {"object" for noun in SUBJECT_ONLY if "object:" + noun in pair.facts}
    found |= {"verb final" for verb in NEVER_FINAL if "final:" + verb in pair.facts}
    return frozenset(found)


def needs_unseen_form(pair: CoursePair) -> bool:
    """Whether a test pair of the one-shot split has a word form that training lacks: it asks for inflection, too."""
    return _UNSEEN in pair.facts


def _mark_unseen(pair: CoursePair, known: frozenset[str]) -> CoursePair:
    new = {word.lower() for word in pair.src_words + pair.tgt_words} - known
    return pair._replace(facts=pair.facts | {_UNSEEN}) if new else pair


def _divide(pairs: list[CoursePair], sizes: tuple[int, ...], chooser: Chooser) -> list[list[CoursePair]]:
    """Shuffles and divides, all translations of one English sentence into the same part."""
    groups: dict[str, list[CoursePair]] = {}
    for pair in pairs:
        groups.setdefault(pair.src, []).append(pair)
    sources = list(groups)
    chooser.shuffle(sources)
    parts: list[list[CoursePair]] = [[] for _ in sizes]
    for source in sources:
        group = groups[source]
        room = (part for part, size in zip(parts, sizes, strict=True) if len(part) + len(group) <= size)
        part = next(room, None)
        if part is not None:
            part.extend(group)
    return parts


def _fill(
    pairs: Iterator[CoursePair], route: Callable[[CoursePair], int | None], sizes: tuple[int, ...]
) -> list[list[CoursePair]]:
    """Sends each pair to the bin that `route` names (None drops it) until every bin has its size."""
    bins: list[list[CoursePair]] = [[] for _ in sizes]
    missing = sum(sizes)
    while missing:
        pair = next(pairs)
        index = route(pair)
        if index is not None and len(bins[index]) < sizes[index]:
            bins[index].append(pair)
            missing -= 1
    return bins


def random_split(num_train: int, num_valid: int, num_test: int, seed: int, ambiguous: bool) -> Parts:
    """Draws all parts alike; no sentence of either language is in two of them."""
    pairs = distinct(seed, ambiguous)
    pool = [next(pairs) for _ in range(num_train + num_valid + num_test)]
    test, valid, train = _divide(pool, (num_test, num_valid, num_train), Chooser(seed))
    return train, valid, test


def length_split(num_train: int, num_valid: int, num_test: int, seed: int, ambiguous: bool) -> Parts:
    """Draws test sentences that are longer than all of training and validation, in both languages."""

    def route(pair: CoursePair) -> int | None:
        lengths = len(pair.src_words), len(pair.tgt_words)
        return 0 if max(lengths) <= MAX_TRAIN_WORDS else 1 if min(lengths) > MAX_TRAIN_WORDS else None

    short, test = _fill(distinct(seed, ambiguous), route, (num_train + num_valid, num_test))
    valid, train = _divide(short, (num_valid, num_train), Chooser(seed))
    return train, valid, test


def compositional_split(num_train: int, num_valid: int, num_test: int, seed: int, ambiguous: bool) -> Parts:
    """Draws test sentences that combine known words in a way that training never shows; see `novelties`.

    Validation sentences are like training sentences, so choosing a model by them gives nothing away.
    Every test word is in training too, but for the joined verb forms (aufsteht) that are the question.
    """
    spare = 2 * num_test
    pool, novel = _fill(
        distinct(seed, ambiguous), lambda pair: 1 if novelties(pair) else 0, (num_train + num_valid, spare)
    )
    valid, train = _divide(pool, (num_valid, num_train), Chooser(seed))
    known = {word for pair in train for words in (pair.src_words, pair.tgt_words) for word in words}
    joined = {form for name in NEVER_FINAL for form in joined_forms(VERB[name])}
    test = [pair for pair in novel if all(word in known or word in joined for word in pair.src_words + pair.tgt_words)]
    return train, valid, test[:num_test]


def one_shot_split(num_train: int, num_valid: int, num_test: int, seed: int, ambiguous: bool) -> Parts:
    """Draws one training sentence for each rare word, none for validation, and test sentences with one of them each.

    Many test sentences have the word in a form that its one sentence does not show (tanzte after tanzt), so they ask
    for learning a word and inflecting it; `needs_unseen_form` tells them from those that ask for the word alone.
    """
    shown: dict[str, CoursePair] = {}

    def route(pair: CoursePair) -> int | None:
        rare = pair.lemmas & RARE
        if not rare:
            return 0
        if len(rare) > 1:
            return None
        word = next(iter(rare))
        if word not in shown:
            shown[word] = pair
            return None
        return None if pair.src == shown[word].src else 1

    size = num_train - len(RARE) + num_valid
    common, test = _fill(distinct(seed, ambiguous), route, (size, num_test))
    valid, train = _divide(common, (num_valid, num_train - len(RARE)), Chooser(seed))
    train += [shown[word] for word in sorted(shown)]
    Chooser(seed).shuffle(train)
    known = frozenset(word.lower() for pair in train for word in pair.src_words + pair.tgt_words)
    return train, valid, [_mark_unseen(pair, known) for pair in test]


SPLITS = {
    "random": random_split,
    "length": length_split,
    "compositional": compositional_split,
    "one_shot": one_shot_split,
}
