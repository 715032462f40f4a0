"""What a stored notebook keeps of a widget."""

import base64

from course_lib.widgets.base import CourseWidget


def stored_words(widget: CourseWidget) -> str:
    """The words of the picture that a stored notebook keeps; asserts that there is one, and that both are the same."""
    data, metadata = widget._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"]
    return data["text/plain"]
