"""Several `ferrule run` at once in one workspace: nobody's conversation, journal or file is harmed by another."""

import os
import subprocess

from tests.agent.stage import check_valid, results, words
from tests.cli.recordings import lines_of, recording, start

from ferrule.agent.threads import resume
from ferrule.cli.main import run
from ferrule.models.cues import calls, said
from ferrule.tools.threads.store import ThreadStore

RUNS = 8
EDITS = 4


def conversation(folder, number):
    """Each edits its own file, and its own line of the shared one; what it has not read again, it may not edit."""
    cues = []
    for at in range(EDITS):
        own = {"file_path": f"${{workspace}}/own{number}.txt", "content": f"{number} {at}\n" * 50}
        cues.append(calls(("Write", own), ("Read", {"file_path": "${workspace}/shared.txt"})))
        shared = {
            "file_path": "${workspace}/shared.txt",
            "old_string": f"line {number}: {at}\n",
            "new_string": f"line {number}: {at + 1}\n",
        }
        cues.append(calls(("Edit", shared), text=f"I edit {at}."))
    return recording(folder / f"{number}.jsonl", *cues, said(f"Done {number}."))


def test_runs_at_once_do_not_harm_each_other(tmp_path, monkeypatch, capsys):
    place = tmp_path / "work"
    place.mkdir()
    first = "".join(f"line {number}: 0\n" for number in range(RUNS))
    (place / "shared.txt").write_text(first)
    children = [
        start(
            ["run", f"Work {number}.", "--yes", "--output", "stream-json", "--replay", conversation(tmp_path, number)],
            place,
            stderr=subprocess.STDOUT,
        )
        for number in range(RUNS)
    ]
    said_ = [child.communicate(timeout=120)[0] for child in children]
    assert [child.returncode for child in children] == [0] * RUNS, said_

    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    made = [0] * RUNS
    for number, out in enumerate(said_):
        lines = lines_of(out)
        thread = store.load(lines[-1]["session_id"])
        assert thread is not None
        turns = resume(thread.items).history.turns
        check_valid(turns)
        assert [words(turn) for turn in turns if words(turn)] == [
            f"Work {number}.",
            *(f"I edit {at}." for at in range(EDITS)),
            f"Done {number}.",
        ]
        assert len(turns) == 4 * EDITS + 2
        # An edit may meet somebody else's write, and is then told so; it never loses it.
        while made[number] < EDITS and not results(turns[4 + 4 * made[number]])[0].failed:
            made[number] += 1
        assert (place / f"own{number}.txt").read_text() == f"{number} {EDITS - 1}\n" * 50
    store.close()
    assert (place / "shared.txt").read_text() == "".join(f"line {number}: {made[number]}\n" for number in range(RUNS))

    # Everything can be taken back, the last write first, until nothing is left.
    monkeypatch.chdir(place)
    undone = 0
    while run(["undo"]) == 0:
        undone += 1
        assert undone <= RUNS * EDITS * 2
    assert undone == RUNS * EDITS + sum(made), capsys.readouterr()
    assert (place / "shared.txt").read_text() == first
    assert sorted(os.listdir(place)) == ["shared.txt"]
