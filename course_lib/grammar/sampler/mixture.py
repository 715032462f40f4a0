"""The kinds of sentences, mixed."""

from course_lib.grammar.sampler.anaphora import repeats
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.pairs import because, together
from course_lib.grammar.sampler.questions import wh, yes_no
from course_lib.grammar.sampler.sentences import clock, complement, simple, weather
from course_lib.grammar.syntax import Sentence

_KINDS = Weighted(
    {
        simple: 45,
        yes_no: 8,
        wh: 10,
        complement: 8,
        because: 25,
        together: 25,
        clock: 0.7,
        weather: 1,
    }
)


def attempt(chooser: Chooser) -> Sentence | None:
    """A random tree of a random kind; None where its random parts make no sense together."""
    tree = chooser.weighted(_KINDS)(chooser)
    return None if tree is None or repeats(tree) else tree
