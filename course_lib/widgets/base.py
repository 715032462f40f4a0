"""What widgets share: how script and style come into the page, a picture where no script runs, numbers, sentences."""

import base64

import anywidget

from course_lib.figures import CourseFigure
from course_lib.translator import Translator
from course_lib.widgets.scripts import STATIC, joined

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float, digits: int = 1) -> str:
    """A number with a power of ten where it is small or large; shared/numbers.js writes it likewise."""
    if value == 0 or 0.01 <= abs(value) < 1e6:
        return f"{value:,.{digits + 2}f}".rstrip("0").rstrip(".")
    factor, power = map(float, f"{value:.{digits}e}".split("e"))
    return ("" if factor == 1 else f"{factor:g}·") + "10" + f"{power:.0f}".translate(SUPERSCRIPTS)


def source_ids(translator: Translator, text: str, *, longest: int) -> list[int]:
    """A sentence as ids, closed by </s>.

    Raises:
        ValueError: if it is several sentences, has no token, or with </s> more than `longest`.
    """
    (ids,) = translator.encode([translator.sentence(text).text])
    if len(ids) > longest:
        raise ValueError(f"the sentence has {len(ids)} tokens; the widget takes up to {longest}")
    return ids


class CourseWidget(anywidget.AnyWidget):
    """An anywidget whose script in static/ is named as its module, and whose style is widgets.css.

    A subclass draws its first state as a figure, which a notebook keeps: pages that run no script, such as a stored
    lesson before its cells are run, show that. One whose first state is words has `first_state` instead. Nothing is
    fetched from the network.
    """

    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)
        if CourseWidget in cls.__bases__:  # anywidget makes a subclass of each object's class to add traits to it
            cls._esm = joined(STATIC / f"{cls.__module__.rpartition('.')[2]}.js")
            cls._css = (STATIC / "widgets.css").read_text(encoding="utf-8")

    def picture(self) -> CourseFigure:
        """The present state as a figure; its title says what is seen."""
        raise NotImplementedError

    def first_state(self) -> tuple[dict, dict]:
        """What a notebook keeps and shows without a script, by MIME type, and metadata of it: picture and title."""
        png, about = self.picture()._repr_png_()
        return {"image/png": base64.b64encode(png).decode(), "text/plain": about["alt"]}, {"image/png": about}

    def _repr_mimebundle_(self, **named) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**named)
        kept, about = self.first_state()
        return {**data, **kept}, {**metadata, **about}
