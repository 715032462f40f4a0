"""What tests of widgets share: the translator that comes with the course."""

import pytest

from course_lib.translator import Translator


@pytest.fixture(scope="session")
def translator() -> Translator:
    return Translator.from_pretrained("course")
