"""A workspace, rules as people write them, and what is said about a command line there."""

import json
from collections.abc import Sequence
from pathlib import Path

from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.permissions.policy import Policy
from ferrule.permissions.rules import Subject
from ferrule.permissions.shell.judge import CommandVerdict, judge
from ferrule.permissions.shell.scene import Scene
from ferrule.permissions.trust import RuleContext, from_settings
from ferrule.settings import Permissions

FOLDERS = (
    "src",
    "sub",
    "tests",
    "docs",
    "build",
    "a",
    ".git/hooks",
    ".git/objects",
    ".git/refs",
    "src/app",
    "dir",
    "sub/deep",
)
FILES = ("README.md", "package.json", "src/main.py", "src/app.py", "Makefile", ".env", "a.txt", "file.txt", "sub/b.txt")
_NAMES = {"Bash": "shell", "Read": "read", "Edit": "edit", "Write": "write"}


def furnish(top: Path) -> Path:
    """A small project with a repository in it."""
    for folder in FOLDERS:
        (top / folder).mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (top / file).write_text("x\n", encoding="utf-8")
    (top / "out").symlink_to("/etc")
    (top / ".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (top / ".git/config").write_text("", encoding="utf-8")
    return top


class Bench:
    """Judges command lines in a workspace."""

    def __init__(self, top: Path) -> None:
        self.top = str(top.resolve())
        self.jail = Jail(self.top)
        self.guard = Guard((), self.jail)

    def policy(self, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> Policy:
        written = Permissions(allow=tuple(allow), ask=tuple(ask), deny=tuple(deny))
        origin = RuleContext(self.top, _NAMES.get, home="/home/somebody")
        return Policy(self.jail, self.guard, from_settings(written, origin, source="test", layer="user"))

    def judge(
        self,
        command: str,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
        development: bool = False,
    ) -> CommandVerdict:
        policy = self.policy(allow, ask, deny)
        scene = Scene((self.top,), secret=self.guard.secret, protected=self.guard.is_protected)
        subject = Subject(
            "shell", frozenset({"shell", "Bash"}), {"command": command}, command_keys=frozenset({"command"})
        )
        return judge(
            command,
            self.top,
            subject=subject,
            weigh=policy.weigh,
            bound=policy.bound,
            scene=scene,
            refuses=any(rule.startswith("Bash(") for rule in (*deny, *ask)),
            development=development,
        )


def corpus(folder: Path) -> list[dict[str, object]]:
    """Every row of every file of the corpus."""
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
