"""A workspace whose changes are kept, without an engine around it."""

import contextlib
import itertools
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ferrule.checkpoints.checkpoint import Checkpoints
from ferrule.checkpoints.restore import Move, Restorer
from ferrule.checkpoints.store import CheckpointLimits
from ferrule.files.jail import Jail
from ferrule.files.journal import Journal
from ferrule.files.ledger import fingerprint

MB = 1 << 20
LIMITS = CheckpointLimits(MB, 50 * MB)


class Kept:
    """A workspace whose changes are kept."""

    def __init__(self, folder: Path, limits: CheckpointLimits = LIMITS) -> None:
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.state = folder / "state"
        self.journal = Journal(str(self.state / "journal"), keep_bytes=50 * MB, keep_days=1)
        self.checkpoints = Checkpoints([str(self.root)], self.journal, str(self.state / "kept"), limits)
        self.jail = Jail(str(self.root))
        self.restorer = Restorer(self.jail, self.journal, self.checkpoints)

    def run(self, script: str):
        """Run a script between two looks; what it has changed."""
        self.checkpoints.begin(about=script, call_id="call")
        subprocess.run(["bash", "-c", script], cwd=self.root, check=False, capture_output=True, timeout=60)
        return self.checkpoints.end(script, "call")

    def back(self) -> None:
        entry = self.journal.entries()[-1]
        plan = self.restorer.plan(Move(one.path, one.after, one.before) for one in entry.nodes)
        assert (plan.by_hand, plan.lost) == ((), ())
        self.restorer.apply(plan.changes, kind="undo", of=entry.id)

    def die(self) -> None:
        """Leave everything as a killed process does, in the middle of what it runs."""
        for running in self.checkpoints._running.values():
            os.close(running.pending.descriptor)
        self.checkpoints._running.clear()
        self.checkpoints.close()

    def tree(self) -> dict[str, tuple[str, int, str]]:
        return tree(self.root)


def tree(root: Path) -> dict[str, tuple[str, int, str]]:
    """Everything but git's own data: kind, mode, and bytes or target."""
    found = {}
    for path in itertools.chain((root,), _below(root)):  # each while the folder that it is in is open
        status = path.lstat()
        held = ""
        if stat.S_ISLNK(status.st_mode):
            held = os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            with _readable(path):
                held = fingerprint(path.read_bytes())
        mode = 0 if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
        found[os.path.relpath(path, root)] = (stat.filemode(status.st_mode)[0], mode, held)
    return found


def _below(folder: Path) -> Iterator[Path]:
    with _readable(folder):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name != ".git" or not entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(Path(entry.path))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Open for its owner, who is not always root."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & stat.S_IRWXU == stat.S_IRWXU or (path.is_file() and mode & stat.S_IRUSR):
        yield
        return
    path.chmod(mode | stat.S_IRWXU)
    try:
        yield
    finally:
        path.chmod(mode)


def lay_out(root: Path) -> None:
    for name, text in {"a.py": "one\ntwo\n", "sub/b.txt": "b", "sub/deep/c": "", "run.sh": "#!/bin/sh\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "run.sh").chmod(0o755)
    (root / "empty").mkdir()
    (root / "link").symlink_to("a.py")
    (root / "lost").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
