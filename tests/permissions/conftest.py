"""A gate with nobody behind it."""

import pytest

from ferrule.permissions import Nobody

from .place import Place


@pytest.fixture
def nobody(tmp_path):
    return Place(tmp_path, Nobody())
