"""What people type: control characters, marks of direction, HTML, very long texts; nowhere does it become markup."""

import html.parser
import re
import warnings
from unittest import mock

import numpy as np
import pytest
from matplotlib.text import Text

from course_lib.decoding import record_beam
from course_lib.figures import attention_map, bars, beam_figure, curves
from course_lib.translator import Translator
from course_lib.widgets.live_training import samples_html
from course_lib.widgets.predict import Predict, Predictions
from tests.helpers.faults import at_most
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import padded, sources, tiny_model, toy_translator

NASTY = {
    "HTML": "<script>alert(1)</script><img src=x onerror='alert(1)'> & &amp; \"quoted\" <b>",
    "control characters": "a\0b\x07c\x1b[2Jd\x7fe\x85f",
    "marks of direction": "\u202eabc\u202c \u200fשלום\u200e \u2066x\u2069",
    "formulas": "$x^$ \\frac{1 $ $",
    "combining": "e" + "\u0301" * 200 + " 👩‍👩‍👧 🂡",
    "nothing but space": " \t\n\u00a0\u3000",
    "10,000 words": "dog " * 10_000,
    "one long word": "x" * 100_000,
    "many brackets": "<" * 20_000 + "(" * 20_000,
    "many sentences": "A dog sees. " * 3,
}


# --- HTML ---------------------------------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    """The tags and the words of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data):
        self.words.append(data)


def law_words_stay_words(page_of):
    """As many tags as with harmless words, and all the words."""
    harmless = Reader(page_of("words"))
    for text in filter(str.strip, NASTY.values()):
        found = Reader(page_of(text))
        assert found.tags == harmless.tags, "words became tags"
        assert text.replace("\r", "") in "".join(found.words), "words got lost"


def predicted(words):
    return Predict(words, [words, "other"], section=words).first_state()[0]["text/html"]


def summed_up(words):
    prediction = Predict(words, ["one", "other"], section=words)
    prediction.answer = 1
    prediction.reveal("one")
    table = Predictions()
    table.rows, table.sections = [row for row in table.rows if row[1] == words], [words]
    return re.sub(r'href="[^"]*"', "href", table._repr_html_())


PAGES = {
    "prediction": predicted,
    "predictions": summed_up,
    "samples": lambda words: samples_html([words], [(100, [words])]),
}


@pytest.mark.parametrize("page_of", PAGES.values(), ids=PAGES.keys())
def test_words_stay_words(page_of):
    def as_it_is(words):
        return page_of("words").replace("words", words)

    tells_apart(law_words_stay_words, page_of, as_it_is)


SCRIPTS = ("course_lib/widgets/static", "docs/book/alive")
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|\beval\(|new Function")
# What a textarea holds is text, never run.
DECODER = 'const box = document.createElement("textarea");\n  box.innerHTML = text;\n  return box.value;'


def law_no_script_makes_markup_of_words(text):
    found = MARKUP.findall(text.replace(DECODER, ""))
    assert not found, f"{found[0]} makes markup of words"


def test_no_script_makes_markup_of_words(root):
    paths = [path for folder in SCRIPTS for path in (root / folder).rglob("*.js")]
    assert len(paths) > 40
    for path in paths:
        law_no_script_makes_markup_of_words(path.read_text(encoding="utf-8"))
    for line in ("node.innerHTML = words", "node.insertAdjacentHTML('beforeend', words)", "new Function(words)()"):
        with pytest.raises(AssertionError, match="makes markup of words"):
            law_no_script_makes_markup_of_words(line)


# --- figures ------------------------------------------------------------------------------------

TREE = record_beam(tiny_model(), padded(sources([3])), beam_size=2, max_len=3)[0]
FIGURES = {
    "matrix": lambda words: attention_map(np.eye(2), [words, "b"], [words, "b"], title=words),
    "curves": lambda words: curves({words: ([1, 2], [1.0, 2.0]), "b": ([1], [1.0])}, xlabel="x", ylabel="y", title="t"),
    "bars": lambda words: bars([words, "b"], [1.0, 2.0], xlabel="x", title=words, reference=(words, 1.0)),
    "tree": lambda words: beam_figure(TREE, [words] * len(TREE.nodes), title=words),
}


def law_a_figure_shows_what_it_is_given(draw):
    """It is drawn without a warning, no word is taken for a formula, and no character controls others."""
    for text in NASTY.values():
        if "👩" in text or "ש" in text:
            continue  # of scripts that the font lacks
        figure = draw(text[:14])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            png, about = figure._repr_png_()
        assert png and about
        texts = [each for each in figure.findobj(Text) if each.get_text()]
        given = [each for each in texts if "$" in each.get_text() and "mathdefault" not in each.get_text()]
        assert not any(each.get_parse_math() for each in given), "taken for a formula"
        assert all(c.isprintable() or c == "\n" for each in texts for c in each.get_text()), "controls others"


def careless(draw):
    """The mistake: words go into the figure as they are, and a $ begins a formula."""
    modules = ("canvas", "row_charts", "beam_tree")
    plain = patched(draw, *(mock.patch(f"course_lib.figures.{module}.printable", str) for module in modules))

    def drawn(words):
        figure = plain(words)
        for each in figure.findobj(Text):
            each.set_parse_math(True)
        return figure

    return drawn


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_shows_what_it_is_given(name):
    law_a_figure_shows_what_it_is_given(FIGURES[name])
    with pytest.raises((AssertionError, ValueError, UserWarning)):
        law_a_figure_shows_what_it_is_given(careless(FIGURES[name]))


# --- translation --------------------------------------------------------------------------------


def law_any_text_is_translated_or_refused(translate):
    for name, text in NASTY.items():
        with at_most(20):
            error = raised(ValueError, lambda text=text: translate(text))
        assert error is None or str(error), name


def test_any_text_is_translated_or_refused():
    for translator in (toy_translator(), Translator.from_pretrained("everyday")):
        law_any_text_is_translated_or_refused(lambda text, by=translator: by.translate(text, beam_size=1))


def test_a_text_with_markup_loses_its_tags_and_says_so():
    found = Translator.from_pretrained("everyday").translate("<b>The dog</b> sleeps.", beam_size=1)
    assert "<" not in found.text and any("HTML tags were left out" in remark for remark in found.remarks)
