"""A workday of fifteen prompts on click 8.1.8: what happened is on the screen, and nothing else is claimed there.

The model is scripted, its tools are not: tests fail and pass, a server runs, an agent looks, a commit is made, a change
is taken back. What stood on the screen is kept in `.trials/workday` to be read.
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.talk.model_server import Item, ModelServer, Script, Think, Use
from tests.cli.talk.terminals import Tmux
from tests.ordinary.person import myself

from trials.sdists import fetched, repository
from trials.trial import Place, Row, tried

_PIN = "click==8.1.8"
_READY = r"^> *\n  \S"
_LIMIT_SECONDS = 60.0
_QUIET_SECONDS = 0.7
_PLAIN = "-q -p no:cacheprovider -p no:asyncio -p no:randomly -p no:xdist"
_TEST = f"PYTHONPATH=src {sys.executable} -m pytest {_PLAIN} tests/test_utils.py"
_OLD = "def make_default_short_help("
_NEW = '''def make_bytes(value: t.Any) -> bytes:
    """Converts a value into bytes, as `make_str` does into a string."""
    return value if isinstance(value, bytes) else make_str(value).encode()


def make_default_short_help('''
_TESTS = """

@pytest.mark.parametrize(("value", "expect"), [(b"a", b"a"), ("ä", "ä".encode()), (5, b"6")])
def test_make_bytes(value, expect):
    assert click.utils.make_bytes(value) == expect
"""
_PLAN = """# Add make_bytes

1. Add `make_bytes` to `src/click/utils.py`, next to `make_str`
2. Test it in `tests/test_utils.py`
3. Say so in `CHANGES.rst`
"""


class Prompt(NamedTuple):
    """What the user types, and what has to be on the screen then."""

    text: str
    answers: Sequence[Any]
    seen: tuple[str, ...]
    """Expressions, each of which is in what came onto the screen."""
    holds: str = ""
    """A command of a shell that holds in the project then."""


def prompts(port: int) -> list[Prompt]:
    """The day."""
    utils, tests = "src/click/utils.py", "tests/test_utils.py"
    serve = {
        "command": f"python3 -m http.server {port} --bind 127.0.0.1 --directory docs",
        "description": "Serve the docs",
        "run_in_background": True,
    }
    ask = {
        "description": "Find users of make_str",
        "prompt": "Find who calls make_str under src, and name the places.",
        "subagent_type": "Explore",
    }
    wrong = {"file_path": tests, "old_string": '(5, b"6")', "new_string": '(5, b"5")'}
    fail = f"{_TEST} -k make_bytes"
    fetch = f"curl -s --max-time 10 http://127.0.0.1:{port}/index.rst | head -2"
    head = Use("Bash", {"command": "head -5 CHANGES.rst", "description": "See the head"})
    mend = Use("Bash", {"command": "sed -i '1i make_bytes was added.' CHANGES.rst", "description": "Add a line"})
    commit = "git add -A src tests && git -c user.name=Me -c user.email=me@example.org commit -q -m 'Add make_bytes'"
    return [
        Prompt(
            "What is this project?",
            [
                [Think("I look."), "I read the README.", Use("Read", {"file_path": "README.md", "limit": 20})],
                ["**Click** makes command lines, with:\n\n- arguments\n- help pages\n\nIts source is in `src/click`."],
            ],
            (r"✓ Read README\.md +\d+ lines", "Click makes command lines"),
        ),
        Prompt(
            "/plan Think about make_bytes first",
            [[Use("Read", {"file_path": utils, "limit": 60})], _planned, [Use("ExitPlanMode", {})], ["Then I begin."]],
            (r"\? approve the plan", "Add make_bytes", "→ yes", "Then I begin"),
        ),
        Prompt(
            "Note what is to be done",
            [
                [_todo("Add make_bytes"), _todo("Test it"), _todo("Say it in CHANGES.rst")],
                ["Three things are noted."],
            ],
            ("✓ TaskCreate Add make_bytes", "✓ TaskCreate Test it", "Three things are noted"),
        ),
        Prompt(
            "Write the function",
            [
                [_status("1", "in_progress"), Use("Read", {"file_path": utils})],
                [Use("Edit", {"file_path": utils, "old_string": _OLD, "new_string": _NEW})],
                [_status("1", "completed")],
                ["`make_bytes` is there."],
            ],
            (r"\? Edit: write src/click/utils\.py", r"\+ def make_bytes", r"✓ Edit src/click/utils\.py +\+5"),
            "grep -q 'def make_bytes' src/click/utils.py",
        ),
        Prompt(
            "Now the test",
            [
                [Use("Bash", {"command": f"cat >> {tests} <<'END'{_TESTS}END", "description": "Append a test"})],
                [Use("Bash", {"command": fail, "description": "Run the new test"})],
                ["One of the three fails: 5 becomes `5`, and the test says `6`."],
            ],
            (r"✗ Bash(.|\n)*?exit 1", "1 failed", r"assert b'5' == b'6'", "One of the three fails"),
            "grep -q test_make_bytes tests/test_utils.py",
        ),
        Prompt(
            "Mend the test",
            [
                [Use("Read", {"file_path": tests, "offset": 490})],
                [Use("Edit", wrong)],
                [Use("Bash", {"command": fail, "description": "Run it again"})],
                [_status("2", "completed")],
                ["All three pass."],
            ],
            (r"^ +\d+ \+ @pytest", "3 passed", "All three pass"),
            "grep -q '(5, b\"5\")' tests/test_utils.py",
        ),
        Prompt(
            "Run all tests of utils",
            [[Use("Bash", {"command": _TEST, "description": "Run the tests"})], ["They pass."]],
            (r"✓ Bash(.|\n)*?exit 0", r"\d+ passed", "They pass"),
        ),
        Prompt(
            "Build the docs please",
            [
                [Use("Bash", {"command": "make -C docs html", "description": "Build the documentation"})],
                ["The documentation cannot be built here: the output says why."],
            ],
            (r"✗ Bash make -C docs html", r"exit 2", r"(?i)not found|no rule|no such|no makefile"),
        ),
        Prompt(
            "Serve the docs in the background",
            [
                [Use("Bash", serve)],
                [Use("Bash", {"command": fetch, "description": "Look whether it answers"})],
                ["The docs are served."],
            ],
            (r"• Bash python3 -m http\.server(.|\n)*?background, as", "The docs are served"),
        ),
        Prompt(
            "Have an agent find the users of make_str",
            [[Use("Task", ask)], ["The agent has found them."]],
            (r"✓ Task Find users of make_str", r"└ ✓ Explore", "The agent has found them"),
        ),
        Prompt(
            "Add a line to the changes",
            [[head], [mend], [_status("3", "completed")], ["The line is there."]],
            (r"Bash sed -i", "The line is there"),
            "head -1 CHANGES.rst | grep -q 'make_bytes was added'",
        ),
        Prompt("/undo", [], ("Undone", r"CHANGES\.rst"), "! grep -q 'make_bytes was added' CHANGES.rst"),
        Prompt(
            "Commit it",
            [[Use("Bash", {"command": commit, "description": "Commit"})], ["It is committed."]],
            (r"✓ Bash git add", "It is committed"),
            "git log --oneline | grep -q 'Add make_bytes'",
        ),
        Prompt(
            "Stop the server",
            [_stopped, ["The server is stopped."]],
            (r"✓ TaskStop", "The server is stopped"),
        ),
        Prompt("/tasks", [], (r"\[x\]|✓|completed|Add make_bytes",)),
    ]


def _todo(subject: str) -> Use:
    return Use("TaskCreate", {"subject": subject, "description": f"{subject}, no more."})


def _status(number: str, status: str) -> Use:
    return Use("TaskUpdate", {"taskId": number, "status": status})


def _planned(body: Mapping[str, Any]) -> Sequence[Item]:
    path = re.search(r"[^\s`\"\\]*\.ferrule/plans/[\w-]+\.md", json.dumps(body))
    return ["I write the plan.", Use("Write", {"file_path": path[0] if path else "plan.md", "content": _PLAN})]


def _stopped(body: Mapping[str, Any]) -> Sequence[Item]:
    task = re.findall(r"running in background with ID: (\w+)", json.dumps(body))
    return [Use("TaskStop", {"task_id": task[-1] if task else "none"})]


_AGENT: Sequence[Any] = [
    [Use("Grep", {"pattern": "make_str", "path": "src", "output_mode": "files_with_matches"})],
    ["It is called in src/click/utils.py and src/click/_compat.py."],
]


def workday(place: Place) -> list[Row]:
    """Play the day; a row for each prompt, and for the day as a whole."""
    archive = fetched(place, _PIN)
    if isinstance(archive, str):
        return [Row("a workday on click 8.1.8", "played", archive, None)]
    kept = place.tool("workday")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, myself() as me, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        top = Path(name)
        (top / "packed").mkdir()
        project = repository(me, archive, top / "packed").rename(top / "click")
        day = prompts(port)
        script: Script = {"Find who calls make_str": _AGENT, **{_key(one): one.answers for one in day if one.answers}}
        with ModelServer(script, pause=0.001) as server:
            rows, shown = _played(top, project, server, day)
    (kept / "transcript.txt").write_text(shown, encoding="utf-8")
    return [*rows, tried("the workday as a whole", "nothing doubled, nothing left over", lambda: _whole(shown, day))]


def _key(prompt: Prompt) -> str:
    return prompt.text.removeprefix("/plan ")


def _played(top: Path, project: Path, server: ModelServer, day: list[Prompt]) -> tuple[list[Row], str]:
    terminal = Tmux(100, 40)
    (top / "settings.toml").touch()
    environment = {
        "HOME": str(top),
        "FERRULE_STATE": str(top / "state"),
        "FERRULE_SETTINGS": str(top / "settings.toml"),
    }
    rows = []
    try:
        terminal.start(["chat"], project, **environment, **server.environment)
        terminal.wait(_READY)
        for number, prompt in enumerate(day, 1):
            what = f"prompt {number}: {prompt.text}"
            rows.append(tried(what, "; ".join(prompt.seen), lambda one=prompt: _said(terminal, project, one)))  # type: ignore[misc]
        terminal.press("C-d")
        terminal.ended()
        return rows, terminal.screen()
    finally:
        terminal.close()


def _said(terminal: Tmux, project: Path, prompt: Prompt) -> tuple[str, bool]:
    """Type it, say yes to what is asked, and look at what has come onto the screen."""
    before = terminal.screen().count("\n> ")
    terminal.type(prompt.text)
    terminal.wait(re.escape(prompt.text[-10:]))
    if prompt.text.startswith("/"):
        terminal.press("Space", "BSpace")  # no completion is chosen
    terminal.press("Enter")
    end = time.monotonic() + _LIMIT_SECONDS
    asked = 0.0
    while True:
        time.sleep(0.1)
        shown = terminal.screen()
        last = shown[-2000:]
        if re.search(r"\[y\]es", last[last.rfind("\n? ") :]) and "\n  → " not in last[last.rfind("\n? ") :]:
            if time.monotonic() - asked > _QUIET_SECONDS + 0.5:
                time.sleep(_QUIET_SECONDS)
                terminal.type("y")
                asked = time.monotonic()
        elif re.search(_READY, last[-600:], re.MULTILINE) and not re.search(r"^[⠀-⣿] ", last[-1200:], re.MULTILINE):
            new = _since(shown, before)
            if all(re.search(one, new, re.MULTILINE) for one in prompt.seen):
                break
        if time.monotonic() > end:
            new = _since(shown, before)
            missing = [one for one in prompt.seen if not re.search(one, new, re.MULTILINE)]
            return f"missing: {missing}; seen: {new[-500:]}", False
    if prompt.holds and subprocess.run(["sh", "-c", prompt.holds], cwd=project, check=False).returncode:
        return f"on the screen, but not true: {prompt.holds}", False
    return "all on the screen" + (", and true in the project" if prompt.holds else ""), True


def _since(shown: str, before: int) -> str:
    """What stands behind as many prompts as there were."""
    parts = shown.split("\n> ")
    return "\n> ".join(parts[max(0, before - 1) :])


def _whole(shown: str, day: list[Prompt]) -> tuple[str, bool]:
    counts = {one.text: len(re.findall(rf"^> {re.escape(one.text)}$", shown, re.MULTILINE)) for one in day}
    wrong = [f"{text!r} stands there {count} times" for text, count in counts.items() if count != 1]
    left = re.findall(r"^[⠀-⣿] .*$", shown, re.MULTILINE)
    wrong += [f"left over: {row}" for row in left]
    return "; ".join(wrong) or f"{len(shown.splitlines())} rows, in .trials/workday/transcript.txt", not wrong
