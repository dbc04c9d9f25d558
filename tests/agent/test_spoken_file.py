"""Files that an answer writes out: which edit they are, and which are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.agent.text_calls import SpokenFiles, hunk, merge_block
from tests.rows import each_row

OLD = '''"""Sums."""

import math

LIMIT = 3


def add(a, b):
    """The sum."""
    return a - b


class Pot:
    def __init__(self):
        self.held = 0

    def put(self, value):
        self.held = value
'''
ADD = 'def add(a, b):\n    """The sum."""\n    return a + b\n'
PUT = "def put(self, value):\n    self.held += value\n"
MENDED = OLD.replace("a - b", "a + b")
WITH_PUT = OLD.replace("held = value", "held += value")


class Face:
    """The tool that edits, in words of some family."""

    name = "edit"

    def shown_param(self, name):
        return {"path": "file_path"}.get(name, name)


def heard(folder, text, *, names=("a.py",), is_quoted=lambda _: False):
    return SpokenFiles(Face(), names, str(folder)).hear(text, is_quoted)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.py").write_text(OLD)
    (tmp_path / "b.py").write_text(OLD)
    return tmp_path


@each_row(
    ("block", "new"),
    [
        pytest.param(MENDED, MENDED, id="the whole file"),
        pytest.param(ADD, MENDED, id="one function of it"),
        pytest.param(PUT, WITH_PUT, id="a method without its class"),
        pytest.param("class Pot:\n    " + PUT.replace("\n    ", "\n        "), WITH_PUT, id="a class with one method"),
        pytest.param(f"import math\n\n\n{ADD}", MENDED, id="a function below an import that is there"),
        pytest.param(OLD.partition("def add")[1] + MENDED.partition("def add")[2], MENDED, id="all but the head"),
        pytest.param("import re\n\n\n" + ADD, None, id="a function below a new import: not clear where that goes"),
        pytest.param("def other():\n    pass\n", None, id="a function that is not there"),
        pytest.param("x = 1\n", None, id="some other line"),
    ],
)
def test_a_block_is_put_in_the_place_of_what_it_was(block, new):
    assert merge_block(OLD, block) == new


@pytest.mark.parametrize(
    ("text", "names", "old", "new"),
    [
        pytest.param(f"a.py\n```\n{MENDED}```", ("a.py",), "    return a - b\n", "    return a + b\n", id="headed"),
        pytest.param(
            f"```python\n{MENDED}```\nDone.", ("a.py",), "    return a - b\n", "    return a + b\n", id="bare"
        ),
        pytest.param(
            f"```b.py\n{MENDED}```", ("a.py", "b.py"), "    return a - b\n", "    return a + b\n", id="in the info"
        ),
        pytest.param(f"a.py\n```\n{MENDED}", ("a.py",), "    return a - b\n", "    return a + b\n", id="never closed"),
    ],
)
def test_a_file_that_is_written_out_is_one_edit_of_the_lines_that_differ(folder, text, names, old, new):
    written = heard(folder, text, names=names)
    assert (written.old, written.new, written.broken) == (old, new, "")
    assert SpokenFiles(Face(), names, str(folder)).call(written).values == {
        "file_path": written.name,
        "old": old,
        "new": new,
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("All is well.", ("a.py",), id="words"),
        pytest.param(f"```\n{MENDED}```", ("a.py", "b.py"), id="it may be either of two files"),
        pytest.param("```bash\npython3 check.py\n```", ("a.py",), id="a command"),
        pytest.param("```json\n{}\n```", ("a.py",), id="another language"),
        pytest.param(f"```\n{MENDED}```\nor\n```\n{WITH_PUT}```", ("a.py",), id="two proposals"),
        pytest.param(f"```\n{MENDED}```", ("missing.py",), id="a file that is not there"),
    ],
)
def test_what_is_no_file_is_no_edit(folder, text, names):
    assert heard(folder, text, names=names) is None


@pytest.mark.parametrize(
    ("block", "told"),
    [
        pytest.param(OLD, "as it is", id="unchanged"),
        pytest.param("# ... existing code ...\n" + ADD, "left out", id="elided in a comment"),
        pytest.param(ADD + "...\n", "left out", id="elided by dots"),
        pytest.param("x = 1\n", "left out", id="a piece of something"),
    ],
)
def test_a_block_that_cannot_be_taken_is_told(folder, block, told):
    written = heard(folder, f"a.py\n```\n{block}```")
    assert told in written.broken
    assert (written.old, written.new) == ("", "")


def test_a_block_that_others_wrote_is_no_edit(folder):
    assert heard(folder, f"a.py\n```\n{MENDED}```", is_quoted=lambda _: True) is None


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "  a\n"]), min_size=1, max_size=8)


@given(LINES, LINES)
def test_an_edit_of_the_lines_that_differ_gives_the_new_text(before, after):
    old, new = "".join(before), "".join(after)
    was, becomes = hunk(old, new)
    assert old.find(was) == old.rfind(was)
    assert old.replace(was, becomes, 1) == new
