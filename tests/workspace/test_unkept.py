"""Nothing is lost for want of a copy: what is large, hidden, damaged or late comes back, or stays, or is told."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.kept import LIMITS, MB, Kept

from ferrule.checkpoints import left_out_words
from ferrule.checkpoints.blobs import BlobStoreError
from ferrule.checkpoints.restore import Move, RestorePlan
from ferrule.checkpoints.store import CheckpointLimits
from ferrule.core.errors import ToolFailure
from ferrule.files.journal import FileChange
from ferrule.files.ledger import fingerprint

LARGE = b"large" * MB


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path)
    (made.root / "a").write_text("a\n")
    yield made
    made.checkpoints.close()
    made.jail.close()


def planned(kept: Kept, at: int = -1, **more) -> RestorePlan:
    """What taking an entry back would do."""
    entry = kept.journal.entries()[at]
    return kept.restorer.plan((Move(one.path, one.after, one.before) for one in entry.nodes), **more)


def taken_back(kept: Kept, at: int = -1, **more) -> RestorePlan:
    plan = planned(kept, at, **more)
    kept.restorer.apply(plan.changes, kind="undo", of=kept.journal.entries()[at].id)
    return plan


def names(kept: Kept) -> list[str]:
    return sorted(os.listdir(kept.root))


def test_a_large_file_that_was_moved_is_moved_back_and_forth(kept):
    (kept.root / "big").write_bytes(LARGE)
    (kept.root / "big").chmod(0o600)
    kept.run("mkdir d; mv big d/bigger; chmod 644 d/bigger")
    taken_back(kept)

    assert names(kept) == ["a", "big"]
    assert (kept.root / "big").read_bytes() == LARGE
    assert (kept.root / "big").stat().st_mode & 0o777 == 0o600
    taken_back(kept)
    assert (kept.root / "d/bigger").read_bytes() == LARGE
    assert names(kept) == ["a", "d"]


def test_a_large_file_that_a_command_made_stays_and_the_rest_is_taken_back(kept):
    kept.run("head -c 3000000 /dev/zero > big; echo b > a")
    plan = taken_back(kept)

    assert plan.left_alone == (str(kept.root / "big"),)
    assert names(kept) == ["a", "big"]
    assert (kept.root / "a").read_text() == "a\n"


def test_a_large_file_that_was_removed_is_told_and_the_rest_comes_back(kept):
    (kept.root / "big").write_bytes(LARGE)
    kept.run("rm a big")
    plan = taken_back(kept)

    assert plan.lost == (str(kept.root / "big"),)
    assert names(kept) == ["a"]


@pytest.mark.parametrize("name", ["big", b"caf\xe9", "d/x", ".env"], ids=["large", "no-text", "in-a-folder", "secret"])
def test_what_a_killed_command_did_not_touch_is_not_its_doing(tmp_path, name):
    kept = Kept(tmp_path)
    path = Path(os.fsdecode(os.path.join(os.fsencode(kept.root), os.fsencode(name))))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(LARGE if name == "big" else b"mine\n")
    (kept.root / "a").write_text("a\n")
    hidden = frozenset({str(kept.root / ".env")})
    kept.checkpoints.begin(hidden)
    kept.checkpoints.begin(hidden, about="echo b > a", call_id="1")
    (kept.root / "a").write_text("b\n")
    kept.die()
    later = Kept(tmp_path)
    later.checkpoints.begin(hidden)
    taken_back(later)

    assert [one.path for one in kept.journal.entries()[0].nodes] == [str(kept.root / "a")]
    assert (kept.root / "a").read_text() == "a\n"
    assert path.exists()
    later.checkpoints.close()


def test_a_write_that_is_under_way_is_not_the_doing_of_a_killed_command(tmp_path):
    kept = Kept(tmp_path)
    (kept.root / "a").write_text("a\n")
    kept.checkpoints.begin()
    kept.checkpoints.begin(about="echo > pid", call_id="1")
    (kept.root / "pid").write_text("1\n")
    kept.die()
    later = Kept(tmp_path)
    path = str(kept.root / "a")
    change = FileChange(
        path=path, temp="", before=fingerprint(b"a\n"), after=fingerprint(b"b\n"), start=0, old=2, new=2
    )
    write = later.journal.announce("edit", [change], b"a\nb\n")
    (kept.root / "a").write_text("b\n")
    later.checkpoints.begin()
    later.journal.commit(write)

    assert [entry.paths for entry in later.journal.entries()] == [(str(kept.root / "pid"),), (path,)]
    later.checkpoints.close()


def test_what_somebody_wrote_long_after_a_command_was_killed_is_asked_about(tmp_path):
    kept = Kept(tmp_path)
    for name in ("a", "u"):
        (kept.root / name).write_text(f"{name}\n")
    kept.checkpoints.begin()
    kept.checkpoints.begin(about="echo b > a", call_id="1")
    (kept.root / "a").write_text("b\n")
    pending = next(iter(kept.checkpoints._running.values())).pending.path
    kept.die()
    (kept.root / "u").write_text("work after the crash\n")
    long_ago = time.time() - 60
    os.utime(pending, (long_ago, long_ago))
    later = Kept(tmp_path)
    later.checkpoints.begin()

    assert set(planned(later).by_hand) == {str(kept.root / "a"), str(kept.root / "u")}
    assert planned(later, over=True).changes != ()
    later.checkpoints.close()


def test_another_session_finds_what_a_killed_one_has_left(tmp_path):
    (one, other) = (Kept(tmp_path), Kept(tmp_path))
    (one.root / "precious").write_text("p\n")
    other.run("touch b1")
    one.checkpoints.begin(about="rm precious", call_id="1")
    (one.root / "precious").unlink()
    one.die()
    other.run("touch b2")

    assert [entry.about for entry in other.journal.entries()] == ["touch b1", "rm precious", "touch b2"]
    other.checkpoints.close()


def test_a_secret_that_a_command_makes_is_taken_back_and_one_that_it_cannot_see_is_not_kept(kept):
    secret, before = str(kept.root / ".env"), str(kept.root / ".env.old")
    Path(before).write_text("old secret\n")
    kept.checkpoints.begin(frozenset({before}), about="cp", call_id="1")
    Path(secret).write_text("new secret\n")
    (kept.root / "a").write_text("b\n")
    kept.checkpoints.end("cp", "1", frozenset({secret, before}))
    taken_back(kept)

    assert names(kept) == [".env.old", "a"]
    stored = [path.read_bytes() for path in (kept.state / "kept/blobs").rglob("*") if path.is_file()]
    assert b"old secret\n" not in stored


def test_where_there_is_no_room_nothing_runs_as_if_it_were_kept(tmp_path):
    kept = Kept(tmp_path, CheckpointLimits(MB, MB))
    for number in range(6):
        (kept.root / f"f{number}").write_bytes(os.urandom(400_000))

    with pytest.raises(BlobStoreError, match="no room"):
        kept.checkpoints.begin()
    kept.checkpoints.close()


def test_what_could_not_be_written_down_when_a_command_ended_is_written_down_later(kept, monkeypatch):
    kept.checkpoints.begin(about="rm a", call_id="1")
    (kept.root / "a").unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(kept.journal, "record", full)
        with pytest.raises(OSError, match="No space"):
            kept.checkpoints.end("rm a", "1")
    kept.run("touch b")

    assert [entry.about for entry in kept.journal.entries()] == ["rm a", "touch b"]
    taken_back(kept, 0)
    assert (kept.root / "a").read_text() == "a\n"


def test_a_command_that_fills_the_store_can_be_taken_back_as_far_as_that_goes(kept, monkeypatch):
    kept.checkpoints.begin(about="fill", call_id="1")
    (kept.root / "a").unlink()
    (kept.root / "log").write_text("what there is no room for\n")

    def full(*_: object) -> None:
        raise BlobStoreError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(kept.checkpoints.blobs, "put", full)
        kept.checkpoints.end("fill", "1")
    plan = taken_back(kept)

    assert (kept.root / "a").read_text() == "a\n"
    assert plan.left_alone == (str(kept.root / "log"),)


def test_an_object_of_git_that_is_damaged_or_forged_takes_nobodys_place(kept):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "1"]):
        subprocess.run([*git, *words], cwd=kept.root, check=True)
    name = subprocess.run([*git, "rev-parse", "HEAD:a"], cwd=kept.root, check=True, capture_output=True, text=True)
    loose = kept.root / ".git/objects" / name.stdout[:2] / name.stdout[2:].strip()
    loose.chmod(0o600)
    loose.write_bytes(b"")
    kept.run("rm a")
    taken_back(kept)

    assert (kept.root / "a").read_text() == "a\n"


def test_an_object_that_git_let_go_of_long_ago_is_let_go_of_unless_a_file_needs_it(kept):
    git = "git -c user.name=a -c user.email=a@example.org"
    kept.run(f"{git} init -q; {git} add -A; {git} commit -qm 1")
    kept.run(f"echo needed | {git} hash-object -w --stdin; echo nobody | {git} hash-object -w --stdin")
    kept.run("git repack -qad; git prune --expire=now")
    pins = kept.checkpoints.pins_of(str(kept.root / ".git"))
    needed, nobody = (
        subprocess.run(["git", "hash-object", "--stdin"], input=f"{word}\n", capture_output=True, text=True, check=True)
        for word in ("needed", "nobody")
    )
    before = [pins.has(one.stdout.strip()) for one in (needed, nobody)]
    pins.prune(str(kept.root / ".git/objects"), {needed.stdout.strip()}, keep_days=-1)

    assert before == [True, True]
    assert [pins.has(one.stdout.strip()) for one in (needed, nobody)] == [True, False]
    assert subprocess.run(["git", "fsck"], cwd=kept.root, check=False, capture_output=True).returncode == 0


def test_a_folder_that_a_command_turns_into_a_tools_is_still_looked_into(kept):
    (kept.root / "build").mkdir()
    (kept.root / "build/mine.sh").write_text("mine\n")
    kept.run("touch build/CMakeCache.txt; rm build/mine.sh")
    taken_back(kept)

    assert (kept.root / "build/mine.sh").read_text() == "mine\n"


def test_a_step_that_died_when_folders_were_made_can_be_made_again(kept):
    (kept.root / "d/e").mkdir(parents=True)
    (kept.root / "d/e/f").write_text("f\n")
    before = kept.tree()
    kept.run("rm -rf d")
    (kept.root / "d/e").mkdir(parents=True)
    for name in ("d", "d/e"):
        (kept.root / name).chmod(0o700)
    taken_back(kept)

    assert kept.tree() == before


@pytest.mark.parametrize("died", ["rm -rf d", "rm -f f; mkdir -m 700 f"])
def test_a_step_that_died_between_a_folder_and_a_file_can_be_made_again(kept, died):
    (kept.root / "d").mkdir()
    (kept.root / "f").write_text("f\n")
    before = kept.tree()
    kept.run("rmdir d; echo file > d; rm f; mkdir f; chmod 755 f; echo x > f/x")
    after = kept.tree()
    taken_back(kept)
    assert kept.tree() == before
    subprocess.run(["bash", "-c", died], cwd=kept.root, check=True)
    taken_back(kept)

    assert kept.tree() == after


def test_a_damaged_copy_is_told_and_the_rest_comes_back(kept):
    (kept.root / "b").write_text("b\n")
    kept.run("rm a b")
    entry = kept.journal.entries()[-1]
    content = next(one.before.content for one in entry.nodes if one.path.endswith("/a"))
    (kept.state / "kept/blobs" / content[:2] / content[2:]).write_bytes(b"xx")
    plan = taken_back(kept)

    assert plan.lost == (str(kept.root / "a"),)
    assert names(kept) == ["b"]


def test_a_save_between_the_plan_and_the_step_is_not_written_over(kept):
    (kept.root / "b").write_text("b\n")
    kept.run("echo 2 > a; rm b")
    plan = planned(kept)
    (kept.root / "a").write_text("saved now\n")

    with pytest.raises(ToolFailure, match="at this very moment"):
        kept.restorer.apply(plan.changes, kind="undo")
    assert (kept.root / "a").read_text() == "saved now\n"
    assert names(kept) == ["a"]


def test_a_removed_store_is_noticed_and_no_file_counts_as_removed(kept):
    kept.run("touch x")
    (kept.state / "kept/blobs").rename(kept.state / "elsewhere")
    told = kept.run("for i in 1 2 3; do echo $i > f$i; done")

    assert sorted(map(os.path.basename, told.files)) == ["f1", "f2", "f3"]
    assert all(one.after is not None for one in kept.journal.entries()[-1].nodes)


def test_what_another_session_needs_is_not_let_go_of(tmp_path):
    one, other = Kept(tmp_path), Kept(tmp_path)
    other.run("touch x")
    (one.root / "notes").write_text("notes\n")
    one.checkpoints.begin()
    ago = time.time() - 7200
    for path in (one.state / "kept/blobs").rglob("*"):
        os.utime(path, (ago, ago))
    other.checkpoints.close()
    one.run("rm notes")
    taken_back(one)

    assert (one.root / "notes").read_text() == "notes\n"
    one.checkpoints.close()


def test_what_was_written_through_a_link_that_is_gone_is_found_out_before_anything_is_taken_back(kept):
    kept.checkpoints.begin()
    kept.run("ln a x; echo bad > x; rm x")
    kept.checkpoints.make_sure()
    taken_back(kept)

    assert (kept.root / "a").read_text() == "a\n"


def test_what_was_written_through_another_name_is_found_out_before_anything_is_taken_back(kept):
    (kept.root / "node_modules").mkdir()
    kept.checkpoints.begin()
    kept.run("ln a node_modules/x; echo bad > node_modules/x")
    kept.checkpoints.make_sure()
    taken_back(kept)

    assert (kept.root / "a").read_text() == "a\n"


OPERATIONS = st.sampled_from(
    (
        "echo {0} >> {1}",
        "mkdir -p {1}/n && echo {0} > {1}/n/f",
        "mv {1} {2}",
        "rm -rf {1}",
        "cp -r {1} {2}",
        "chmod 700 {1}",
        "ln -sfn {1} {2}",
        "rm -rf {1}; mkdir {1}; echo {0} > {1}/x",
        "mv {1} aside; mkdir {1}; mv aside {1}/in; echo {0} > {1}/in2",
        "truncate -s 10 {1}",
        "python3 -c \"import mmap;f=open('{1}','r+b');m=mmap.mmap(f.fileno(),0);m[0:1]=b'X'\"",
    )
)
NAMES = st.sampled_from(("a", "b", "d", "d/a", "d/e", "d/e/f", "g"))
WORDS = st.sampled_from(("one", "two"))
LINES = st.builds(str.format, OPERATIONS, WORDS, NAMES, NAMES)
LINKS = st.builds("; ln -f {1} {2}; echo {0} >> {2}".format, WORDS, NAMES, NAMES)
"""The last line of a script: a link that is gone when its command ends is found by the next look at everything."""
SCRIPTS = st.builds("{}{}".format, st.lists(LINES, min_size=1, max_size=4).map("; ".join), st.just("") | LINKS)


@settings(max_examples=15, deadline=None)
@given(scripts=st.lists(SCRIPTS, min_size=1, max_size=4))
def test_what_is_heard_of_is_all_that_has_changed(tmp_path_factory, scripts):
    kept = Kept(tmp_path_factory.mktemp("heard"))
    (kept.root / "d/e").mkdir(parents=True)
    for name in ("a", "b", "d/a", "d/e/f"):
        (kept.root / name).write_text(f"{name}\n")
    for script in scripts:
        kept.run(script)
        assert kept.checkpoints._tree.look(whole=True) == []
    kept.checkpoints.close()
    kept.jail.close()


def test_limits_are_those_that_were_meant():
    """A large file here is larger than what is kept."""
    assert len(LARGE) > LIMITS.file_bytes


def test_what_is_left_out_is_named_by_kind_and_not_one_by_one(kept):
    for name in ("node_modules", "sub/node_modules", ".venv", "sub/__pycache__"):
        (kept.root / name).mkdir(parents=True)
    (kept.root / "big").write_bytes(LARGE)
    kept.checkpoints.begin()
    words = left_out_words(kept.checkpoints.left_out, lambda path: os.path.relpath(path, kept.root))

    assert words == (
        ".venv, __pycache__, node_modules, which tools make again; big (it is larger than 1 MB (checkpoints.file_mb))"
    )
