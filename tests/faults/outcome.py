"""What must be true after a scene, whatever happened in it."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.faults.desk import Desk, Picture, picture, temporary
from tests.faults.scenes import SCENES


class State(NamedTuple):
    """The workspace as it is, and how many steps can be undone and redone."""

    files: Picture
    steps: tuple[int, int]


class Ends(NamedTuple):
    """The only two states that a scene may leave."""

    old: State
    new: State


def begin(scene: str, home: Path) -> None:
    """The state before the scene, in a home that is swept clean."""
    for entry in os.scandir(home):
        shutil.rmtree(entry.path)
    with Desk(home) as desk:
        SCENES[scene].prepare(desk)


def ends(scene: str, home: Path) -> Ends:
    """Both states, from a run in which nothing goes wrong."""
    begin(scene, home)
    with Desk(home) as desk:
        old = state(desk)
        SCENES[scene].act(desk)
        return Ends(old, state(desk))


def state(desk: Desk) -> State:
    undoable, redoable = desk.history()
    return State(picture(desk.root), (len(undoable), len(redoable)))


def check_files(home: Path, both: Ends) -> None:
    """Before anybody has cleaned up: every file is the old one or the new one, byte for byte, with its mode."""
    now = picture(home / "workspace")
    strangers = {
        name: found
        for name, found in now.items()
        if not os.path.basename(name).startswith(".ferrule-")
        and found not in (both.old.files.get(name), both.new.files.get(name))
    }

    assert strangers == {}
    assert all(name in now for name in both.old.files.keys() & both.new.files.keys())


def check_settled(scene: str, home: Path, both: Ends) -> str:
    """After the sweep of a fresh process: nothing is left over, the history agrees with the files, and all goes on."""
    with Desk(home) as desk:
        desk.journal.sweep()

        assert temporary(home) == []
        assert desk.pending() == []
        return _went_on(scene, desk, both)


def _went_on(scene: str, desk: Desk, both: Ends) -> str:
    now = state(desk)
    if now == both.old:
        SCENES[scene].act(desk)

        assert state(desk) == both.new
        return "old"
    if now == both.new:
        SCENES[scene].back(desk)

        assert picture(desk.root) == both.old.files
        return "new"
    # Only several files can be half done; then the journal says so, and one step back brings all of them.
    assert scene in ("batch", "move")
    assert now.steps == both.new.steps
    desk.undo.undo_last()

    assert picture(desk.root) == both.old.files
    return "half"
