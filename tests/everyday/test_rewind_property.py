"""Whatever commands and edits did in any number of prompts: rewound, the tree is what it was, byte for byte.

And so it is after the process was killed at any moment. `make trials NAMES=rewind` tries many more of each.
"""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.stage import why_no_strace
from tests.ordinary.person import myself
from tests.ordinary.picture import removed
from tests.ordinary.rewinding import PHASES, Kill, Step, killed, lived, prompts

FEW = 8
FILES = [
    [Step("create_file", {"path": path, "content": f"words {number}\n"}) for path in (f"new/{number}.txt", "a")]
    for number in range(2)
]
COMMANDS = [
    [Step("Bash", {"cmd": "echo more >> a; mv b.txt c.txt"}), Step("create_file", {"path": "a", "content": "anew\n"})],
    [Step("Bash", {"cmd": "rm -rf d && mkdir d && echo x > d/x; chmod 700 a; ln -sfn a link; mv 'odd name' d/even"})],
]


@settings(max_examples=FEW)
@given(work=prompts(3), data=st.data())
def test_a_rewind_brings_back_the_tree_of_any_prompt_and_can_be_taken_back(work, data):
    to = data.draw(st.integers(1, len(work)), "the prompt that it goes back to")
    assert held(work, to, "auto", copies=False) == ""


@settings(max_examples=FEW)
@given(work=prompts(3), data=st.data())
def test_the_comparison_holds_for_a_folder_that_was_copied(work, data):
    to = data.draw(st.integers(1, len(work)), "the prompt that it goes back to")
    assert held(work, to, "none", copies=True) == ""


def held(work, to: int, use: str, *, copies: bool) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            return asyncio.run(lived(Path(folder), work, to, use, copies=copies))
        finally:
            removed(Path(folder, "work"))


@pytest.mark.parametrize(
    ("phase", "at"),
    [("during", 1), ("during", 12), ("during", 40), ("after", 1), ("rewind", 2), ("rewind", 12), ("rewind", 40)],
)
def test_a_new_engine_rewinds_what_a_killed_one_has_left(phase, at, needs):
    with myself() as person:
        needs(person, "namespaces")
        _, wrong = killed(person.home, Kill(COMMANDS, phase, at, to=2))

    assert wrong == ""


@pytest.mark.parametrize("phase", PHASES)
def test_a_new_engine_undoes_the_edits_that_a_killed_one_has_left(phase):
    with myself() as person:
        was_killed, wrong = killed(person.home, Kill(FILES, phase, 14, use="none", back="undo"))

    assert (was_killed, wrong) == (True, "")


@pytest.mark.skipif(bool(why_no_strace()), reason=f"NOT TESTED ON THIS MACHINE: {why_no_strace()}")
def test_a_kill_at_a_system_call_leaves_what_can_be_undone():
    with myself() as person:
        was_killed, wrong = killed(person.home, Kill(FILES, "during", 2, "fsync", use="none", back="undo"))

    assert (was_killed, wrong) == (True, "")
