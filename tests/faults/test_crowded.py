"""Many writers of one file: no edit is lost, and every one of them can be undone (fault 8)."""

import threading

import pytest

from tests.faults.desk import Desk, temporary
from tests.faults.errands import CROWD, TURNS, shared


@pytest.mark.contract("edit.lock", "create.lock")
def test_many_processes_that_edit_one_file_lose_no_edit(stage, home):
    with Desk(home) as desk:
        desk.write("shared.txt", shared(0))

    ended = stage.play(errand="crowd", home=str(home))

    assert ended == {"signal": 0, "report": {"ended": [0] * CROWD}}
    with Desk(home) as desk:
        assert desk.bytes("shared.txt") == shared(TURNS)
        assert len(desk.journal.entries()) == 1 + CROWD * TURNS
        assert len(desk.history()[0]) == 1 + CROWD * TURNS
        assert temporary(home) + desk.pending() == []
        for _ in range(CROWD * TURNS):
            desk.undo.undo_last()
        assert desk.bytes("shared.txt") == shared(0)
        for _ in range(CROWD * TURNS):
            desk.undo.redo_last()
        assert desk.bytes("shared.txt") == shared(TURNS)


def test_threads_of_one_engine_that_edit_one_file_lose_no_edit(home):
    with Desk(home) as desk:
        desk.write("counter.txt", b"".join(b"%d: 0.\n" % slot for slot in range(16)))

        def work(slot):
            for turn in range(5):
                desk.edit("counter.txt", b"\n%d: %d." % (slot, turn), b"\n%d: %d." % (slot, turn + 1))

        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(1, 16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert desk.bytes("counter.txt") == b"0: 0.\n" + b"".join(b"%d: 5.\n" % slot for slot in range(1, 16))
        assert len(desk.journal.entries()) == 1 + 15 * 5
