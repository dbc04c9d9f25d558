"""finder, oracle, librarian and kraken in a whole session: a scripted model, real conversations of subagents."""

import os

from tests.agent.stage import Stage

from ferrule import Settings
from ferrule.models.cues import calls, said
from ferrule.settings import LibrarianRepository


def edit(name, prompt):
    path = f"${{workspace}}/{name}"
    return (
        calls(("Read", {"path": path}), prompt=prompt),
        calls(("edit_file", {"path": path, "old_str": "load", "new_str": "load_all"}), prompt=prompt),
        calls(("Read", {"path": path}), prompt=prompt, expect="diff"),
        said(f"{name} is done.", prompt=prompt, expect="load_all"),
    )


def lay_out(folder):
    for name in ("a.py", "b.py"):
        (folder / name).write_text("load()\n")


async def test_a_kraken_plans_works_and_writes_at_once(tmp_path):
    lay_out(tmp_path)
    plan = '```json\n[{"path": "a.py", "change": "part one"}, {"path": "b.py", "change": "part two"}]\n```'
    cues = (
        calls(("kraken", {"task": "Rename load."})),
        said(plan, prompt="At most 50 files"),
        *edit("a.py", "What is to change in it:\n\npart one"),
        *edit("b.py", "What is to change in it:\n\npart two"),
        said("Renamed.", expect="2 files written at once"),
    )
    async with Stage(tmp_path, *cues, dialect="amp") as stage:
        ended = await stage.run("Rename it.")
        undoable, _ = await stage.session.engine.history()

    assert (ended.reason, ended.text) == ("end", "Renamed."), ended
    assert [(tmp_path / name).read_text() for name in ("a.py", "b.py")] == ["load_all()\n"] * 2
    assert [len(entry.files) for entry in undoable] == [2]


async def test_a_kraken_whose_helper_fails_writes_nothing(tmp_path):
    lay_out(tmp_path)
    cues = (
        calls(("kraken", {"task": "Rename load.", "files": ["a.py", "b.py"]})),
        *edit("a.py", "/a.py."),
        said("CANNOT: b.py is generated.", prompt="/b.py."),
        said("It did not work.", expect="b.py is generated"),
    )
    async with Stage(tmp_path, *cues, dialect="amp") as stage:
        ended = await stage.run("Rename it.")

    assert ended.text == "It did not work.", ended
    assert [(tmp_path / name).read_text() for name in ("a.py", "b.py")] == ["load()\n"] * 2


async def test_a_finder_and_an_oracle_look_side_by_side(tmp_path):
    lay_out(tmp_path)
    cues = (
        calls(("finder", {"query": "who loads"}), ("oracle", {"task": "why load", "files": ["a.py"]})),
        calls(("Grep", {"pattern": "load"}), ("glob", {"filePattern": "*.py"}), prompt="who loads"),
        said("a.py#L1-L1: it does", prompt="who loads", expect="a.py"),
        calls(("create_file", {"path": "${workspace}/x.py", "content": "x"}), prompt="why load"),
        said("Because.", prompt="why load"),
        said("Both say so.", expect="Because."),
    )
    async with Stage(tmp_path, *cues, dialect="amp") as stage:
        ended = await stage.run("Look.")

    assert ended.text == "Both say so.", ended
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


async def test_a_librarian_reads_what_was_lent_and_asks_nobody(tmp_path):
    workspace, library = tmp_path / "workspace", tmp_path / "library"
    workspace.mkdir()
    library.mkdir()
    (library / "lib.py").write_text("def borrow(): ...\n")
    asked: list[object] = []
    cues = (
        calls(("librarian", {"query": "how to borrow"})),
        calls(("Read", {"path": str(library / "lib.py")}), prompt="how to borrow"),
        said("With borrow().", prompt="how to borrow", expect="def borrow"),
        said("So.", expect="With borrow()."),
    )
    settings = Settings(repositories={"lib": LibrarianRepository(path=str(library))})
    async with Stage(workspace, *cues, dialect="amp", settings=settings, ask=asked.append) as stage:
        ended = await stage.run("Ask.")

    assert ended.text == "So.", ended
    assert asked == []
