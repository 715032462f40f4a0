"""Mutants of the plain steps say nothing where the packed ones are taken."""

from unittest import mock

import pytest

from course_lib.decoding import packed


@pytest.fixture
def plain_steps():
    with mock.patch.object(packed, "fits", lambda model: False):
        yield
