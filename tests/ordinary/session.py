"""A session as whichever user: an engine in a process of its own, and what came of its calls."""

import contextlib
import json
import re
import select
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.ordinary.person import LIMIT_SECONDS, Person

# By its path, and without the folder that it starts in: a workspace may have a folder named `tests` too.
_ENGINE = str(Path(__file__).with_name("engine.py"))
_EXIT_CODE = re.compile(r"\AExit code (\d+)\n?")
CONFINED = ("namespaces", "bubblewrap", "landlock")
HIDES = CONFINED[:2]
"""The ways that can take a file out of a folder, and that give a session a network and a /tmp of its own."""
YES = ("call",)
"""What is answered with yes: that a call may run. Nothing leaves the sandbox and no other folder is opened."""


class Said(NamedTuple):
    """What came of one call."""

    status: str
    text: str
    notes: tuple[str, ...] = ()
    code: str | None = None
    asked: tuple[dict[str, str], ...] = ()

    @property
    def exit_code(self) -> int:
        """A command's exit code, as Claude Code's words tell it; -1 where none ran to its end."""
        if self.status == "done":
            return 0
        found = _EXIT_CODE.match(self.text)
        return int(found[1]) if found else -1

    @property
    def output(self) -> str:
        """What the command printed."""
        return _EXIT_CODE.sub("", self.text)

    @property
    def kinds(self) -> list[str]:
        return [one["kind"] for one in self.asked]


class EndedError(Exception):
    """The engine's process ended or is silent; with what it said last."""


class Session:
    """Calls to an engine, one after another."""

    def __init__(self, process: Any, errors: Any) -> None:
        self._process, self._errors = process, errors
        self.pid: int = process.pid
        self.ways: dict[str, str] = self._heard()["ways"]
        """What can confine commands, for this user → why it cannot, or nothing where it can."""

    def call(self, name: str, **arguments: object) -> Said:
        self._process.stdin.write(json.dumps({"name": name, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        heard = self._heard()
        return Said(heard["status"], heard["text"], tuple(heard["notes"]), heard["code"], tuple(heard["asked"]))

    def bash(self, command: str, **more: object) -> Said:
        return self.call("Bash", command=command, description="A trial", **more)

    def _heard(self) -> dict[str, Any]:
        ready, _, _ = select.select([self._process.stdout], [], [], LIMIT_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._errors.seek(0)
            raise EndedError(self._errors.read()[-2000:] or "It said nothing in time.")
        found: dict[str, Any] = json.loads(line)
        return found


@contextlib.contextmanager
def session(
    person: Person,
    folder: Path,
    use: str = "auto",
    *,
    settings: Mapping[str, Any] | None = None,
    yes: tuple[str, ...] = YES,
    mode: str = "",
    env: Mapping[str, str] | None = None,
    dialect: str = "claude",
    said: str = "",
) -> Iterator[Session]:
    """An open session of a person in a folder; closed, and waited for, at the end. `said`: to a model, which calls."""
    more = dict(settings or {})
    merged = {**more, "sandbox": {"use": use, **more.get("sandbox", {})}}
    how = {"folder": str(folder), "settings": merged, "dialect": dialect, "yes": yes, "mode": mode, "said": said}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = person.start([sys.executable, "-P", _ENGINE], cwd=folder, env=env, stderr=errors)
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(how) + "\n")
            process.stdin.flush()
            yield Session(process, errors)
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(LIMIT_SECONDS)
            finally:
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


_ways: dict[int, dict[str, str]] = {}


def ways_of(person: Person) -> dict[str, str]:
    """What can confine this user's commands → why it cannot, or nothing; asked once for each user."""
    script = (
        "import json\nfrom ferrule.sandbox import report\n"
        "print(json.dumps({row.name: '' if row.works else row.why for row in report()}))"
    )
    if person.uid not in _ways:
        _ways[person.uid] = json.loads(person.run([sys.executable, "-P", "-c", script]).stdout)
    return _ways[person.uid]
