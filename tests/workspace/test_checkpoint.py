"""What commands change is found out exactly, kept, and put back: files, modes, links, folders, and git's objects."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.kept import MB, Kept, lay_out

from ferrule.checkpoints.blobs import Blobs
from ferrule.checkpoints.restore import Move
from ferrule.core.errors import ToolFailure
from ferrule.files.ledger import fingerprint


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path)
    lay_out(made.root)
    yield made
    made.jail.close()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("rm -rf * .[a-z]*", id="everything-removed"),
        pytest.param("echo more >> a.py; rm sub/b.txt; mkdir new; echo x > new/y", id="changed-removed-made"),
        pytest.param("chmod 600 a.py run.sh; chmod 700 sub", id="modes"),
        pytest.param("ln -sfn sub link; ln -sf a.py lost; rm pipe; echo x > pipe", id="links-and-pipes"),
        pytest.param("rm -rf sub; ln -s /etc sub", id="a-folder-becomes-a-link"),
        pytest.param("rm link; mkdir link; echo x > link/x", id="a-link-becomes-a-folder"),
        pytest.param("rm a.py; mkdir a.py; echo x > a.py/x", id="a-file-becomes-a-folder"),
        pytest.param("rm -rf sub; echo x > sub", id="a-folder-becomes-a-file"),
        pytest.param("mv sub moved; mv a.py moved/", id="moved"),
        pytest.param("mv a.py t; mv run.sh a.py; mv t run.sh", id="swapped"),
        pytest.param("rmdir empty; mkdir -p p/q/r", id="empty-folders"),
        pytest.param("chmod 500 sub; chmod 000 a.py", id="closed"),
        pytest.param("printf 'x' > $'odd\\nname'; printf 'y' > $'\\xff'; mkdir -- -dash", id="odd-names"),
        pytest.param("truncate -s 900K a.py; truncate -s 0 sub/b.txt", id="grown-and-emptied"),
        pytest.param(
            "touch -d '2001-01-01' a.py; printf 'two\\none\\n' > a.py; touch -d '2001-01-01' a.py", id="times"
        ),
    ],
)
def test_what_a_script_changes_is_put_back_and_can_be_done_again(kept, script):
    before = kept.tree()
    told = kept.run(script)
    after = kept.tree()
    kept.back()

    assert told is not None
    assert kept.tree() == before
    kept.back()  # the undo is an entry too
    assert kept.tree() == after


def test_a_look_tells_nothing_where_nothing_changed(kept):
    assert kept.run("cat a.py; ls -R; touch -a a.py") is None
    assert kept.run("echo x > new; rm new") is None
    assert kept.journal.entries() == []


def test_lines_are_counted_and_files_named(kept):
    told = kept.run("printf 'one\\n2\\n3\\n' > a.py; echo x > new; mkdir only")

    assert [os.path.relpath(path, kept.root) for path in told.files] == ["a.py", "new"]
    assert (told.added, told.removed, str(told)) == (3, 1, "changed 2 files, +3 \u22121")


def test_what_others_change_between_commands_is_not_the_commands(kept):
    kept.run("echo x > new")
    (kept.root / "mine").write_text("by hand")
    told = kept.run("rm new mine")
    kept.back()

    assert len(told.files) == 2
    assert (kept.root / "mine").read_text() == "by hand"


def test_a_file_that_was_changed_by_hand_since_is_left_alone(kept):
    kept.run("echo command > a.py; echo x > new")
    (kept.root / "a.py").write_text("by hand")
    entry = kept.journal.entries()[-1]
    moves = [Move(one.path, one.after, one.before) for one in entry.nodes]
    plan = kept.restorer.plan(moves)

    assert plan.by_hand == (str(kept.root / "a.py"),)
    assert [one.path for one in plan.changes] == [str(kept.root / "new")]
    kept.restorer.apply(kept.restorer.plan(moves, over=True).changes, kind="undo", of=entry.id)
    assert (kept.root / "a.py").read_text() == "one\ntwo\n"


def test_nothing_is_put_back_through_a_link_that_somebody_has_put_there(kept, tmp_path):
    kept.run("rm sub/b.txt")
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(kept.root / "sub")
    (kept.root / "sub").symlink_to(outside)
    entry = kept.journal.entries()[-1]

    with pytest.raises(ToolFailure, match="is a link now"):
        kept.restorer.plan(Move(one.path, one.after, one.before) for one in entry.nodes)
    assert list(outside.iterdir()) == []


def test_nothing_is_put_back_into_another_repository(kept):
    git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    subprocess.run(["bash", "-c", git], cwd=kept.root, check=True)
    kept.run("rm sub/b.txt")
    subprocess.run(["bash", "-c", git], cwd=kept.root / "sub", check=True)
    entry = kept.journal.entries()[-1]
    moves = [Move(one.path, one.after, one.before) for one in entry.nodes]

    assert entry.repositories == (str(kept.root),)
    with pytest.raises(ToolFailure, match="is another repository now"):
        kept.restorer.plan(moves, repositories=entry.repositories)


def test_bytes_that_git_has_are_pinned_and_survive_the_removal_of_all_objects(kept):
    script = "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
    subprocess.run(["bash", "-c", script], cwd=kept.root, check=True)
    blobs = kept.state / "kept/blobs"
    kept.checkpoints.begin()
    copied = {path.name for path in blobs.rglob("*") if path.is_file()}
    before = kept.tree()
    told = kept.run("rm -rf a.py sub .git/objects; mkdir .git/objects")
    kept.back()

    assert fingerprint(b"one\ntwo\n")[2:] not in copied
    assert len(told.files) == 3
    assert kept.tree() == before


def test_a_file_over_the_limit_is_named_and_not_kept(tmp_path):
    kept = Kept(tmp_path)
    (kept.root / "large").write_bytes(b"x" * (MB + 1))
    kept.run("rm large")
    (entry,) = kept.journal.entries()
    plan = kept.restorer.plan(Move(one.path, one.after, one.before) for one in entry.nodes)

    assert plan.lost == (str(kept.root / "large"),)
    kept.jail.close()


def test_a_folder_that_a_tool_makes_again_is_left_out_whatever_becomes_of_it(kept):
    (kept.root / "node_modules/x").mkdir(parents=True)
    (kept.root / "node_modules/x/index.js").write_text("x")
    (kept.root / "dist").mkdir()
    (kept.root / "dist/out").write_text("x")

    assert kept.run("echo y > node_modules/x/index.js") is None
    assert kept.checkpoints.left_out == {str(kept.root / "node_modules"): "a tool makes it again"}
    # It counts as made by a tool when the manifest is there before a command, and not any more when that is gone.
    told = kept.run("echo '{}' > package.json; echo z > dist/out")
    assert told.files == (str(kept.root / "dist/out"), str(kept.root / "package.json"))
    assert kept.run("echo more > dist/out") is None
    (kept.root / "dist/out").write_text("z\n")
    kept.back()
    assert (kept.root / "dist/out").read_text() == "x"


def test_the_next_session_reads_only_what_has_changed(kept, tmp_path):
    kept.run("echo x > new")
    kept.checkpoints.close()
    later = Kept(tmp_path)
    (kept.root / "a.py").write_text("changed")
    (kept.state / "kept/blobs").rename(kept.state / "elsewhere")  # whatever is read again has to be kept again
    shutil.copytree(kept.state / "elsewhere", kept.state / "kept/blobs")
    before = {path.stat().st_ino for path in (kept.state / "kept/blobs").rglob("*")}
    later.checkpoints.begin()
    made = {path for path in (kept.state / "kept/blobs").rglob("*") if path.is_file()}

    assert [path.name for path in made if path.stat().st_ino not in before] == [fingerprint(b"changed")[2:]]
    later.jail.close()


def test_a_damaged_content_is_as_good_as_none(tmp_path):
    blobs = Blobs(str(tmp_path / "blobs"))
    name = fingerprint(b"some bytes")
    blobs.put(b"some bytes", name)
    (tmp_path / "blobs" / name[:2] / name[2:]).write_bytes(b"SOME bytes")

    assert (blobs.has(name), blobs.read(name)) == (True, None)


def test_what_nobody_needs_goes_and_the_past_goes_oldest_first(tmp_path):
    blobs = Blobs(str(tmp_path / "blobs"))
    names = []
    for number in range(4):
        raw = bytes([number]) * 8192
        names.append(fingerprint(raw))
        blobs.put(raw, names[-1])
        path = tmp_path / "blobs" / names[-1][:2] / names[-1][2:]
        os.utime(path, (1000.0 + number, 1000.0 + number))
    unneeded, old, newer, current = names
    left = blobs.prune({current}, {old, newer}, keep_bytes=16384)

    assert [blobs.has(name) for name in (unneeded, old, newer, current)] == [False, False, True, True]
    assert left <= 16384


def test_holes_stay_holes(tmp_path):
    blobs = Blobs(str(tmp_path / "blobs"))
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(20 * MB)
        file.seek(10 * MB)
        file.write(b"here")
    with sparse.open("rb") as file:
        name = blobs.take(file.fileno())
    with (tmp_path / "back").open("wb") as file:
        assert blobs.copy(name, file.fileno())

    assert (tmp_path / "back").read_bytes() == sparse.read_bytes()
    assert os.stat(tmp_path / "back").st_blocks * 512 < MB


NAMES = st.sampled_from(["a", "b", "sub", "sub/x", "sub/y", "sub/z/q", "new"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.sampled_from(["", "one", "two\nlines\n"])),
        st.tuples(st.sampled_from(["remove", "folder", "link"]), NAMES, st.just("")),
        st.tuples(st.just("mode"), NAMES, st.sampled_from(["600", "755"])),
        st.tuples(st.just("move"), NAMES, NAMES),
    ),
    max_size=8,
)


def do(root: Path, step: tuple[str, str, str]) -> None:
    what, name, value = step
    path = root / name
    try:
        match what:
            case "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(value)
            case "remove" if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            case "remove":
                path.unlink()
            case "folder":
                path.mkdir(parents=True)
            case "link":
                path.symlink_to("a")
            case "mode":
                # What lies in a folder that its owner has closed stays as it is, and that is said.
                is_kept_out = path.is_dir() and os.geteuid() != 0
                path.chmod(int(value, 8) | is_kept_out * 0o100, follow_symlinks=not path.is_symlink())
            case "move":
                path.rename(root / value)
    except (OSError, NotImplementedError):
        return


@settings(max_examples=40, deadline=None)
@given(first=STEPS, second=STEPS)
def test_any_changes_can_be_taken_back_one_after_the_other(tmp_path_factory, first, second):
    kept = Kept(tmp_path_factory.mktemp("any"))
    trees = [kept.tree()]
    made = []
    for steps in (first, second):
        kept.checkpoints.begin()
        for step in steps:
            do(kept.root, step)
        made.append(kept.checkpoints.end("steps") is not None)
        trees.append(kept.tree())
    entries = kept.journal.entries()
    for was_made, before in reversed(list(zip(made, trees, strict=False))):
        if was_made:
            entry = entries.pop()
            plan = kept.restorer.plan(Move(one.path, one.after, one.before) for one in entry.nodes)
            kept.restorer.apply(plan.changes, kind="undo", of=entry.id)
            assert (plan.by_hand, plan.lost) == ((), ())
        assert kept.tree() == before
    kept.jail.close()
