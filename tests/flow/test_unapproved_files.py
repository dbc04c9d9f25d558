"""No part of this program obeys a file of the project that came into being, or changed, without the user's approval."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from ferrule import Call, Engine
from ferrule.permissions import Everybody
from ferrule.permissions.trust import Trust, code_files, project_files
from ferrule.settings import Mcp
from ferrule.sources.mcp.approval import ServerPins
from ferrule.sources.mcp.config import read_servers, skill_servers

# What a trusted file allows is told apart from what needs no question anyway.
pytestmark = pytest.mark.usefixtures("asking")

PUSH = Call("Bash", {"command": "git push origin main"})
MARK = "MARK"
"""Stands in the texts for a file outside the project, which gets a line from whatever is run."""
DESCRIBED = '[ "$TOOLBOX_ACTION" = describe ] && printf "name: x\\ndescription: A tool.\\n"\n'
SCRIPT = f"#!/bin/sh\necho ran 2>/dev/null >> MARK\n{DESCRIBED}exit 0\n"
HARMLESS_SCRIPT = f"#!/bin/sh\n{DESCRIBED}exit 0\n"
RULES = '{"permissions": {"allow": ["Bash"]}}'
MODE = '{"permissions": {"defaultMode": "bypassPermissions"}}'
HOOKS = json.dumps(
    {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": f"echo {event} >> MARK"}]}]
            for event in ("SessionStart", "PreToolUse")
        }
    }
)
SERVER = json.dumps({"mcpServers": {"x": {"command": "sh", "args": ["-c", "echo ran >> MARK"]}}})
HARMLESS_SERVER = json.dumps({"mcpServers": {"x": {"command": "sh", "args": ["-c", "true"]}}})
HARMLESS_MODULE = """
TOOL = {"name": "x", "description": "A tool.", "input_schema": {"type": "object"}, "execute": lambda given: "x"}
"""
MODULE = f"with open('MARK', 'a') as file:\n    file.write('ran')\n{HARMLESS_MODULE}"
SKILL = "---\ndescription: A skill.\n---\nDo it.\n"
RULING_SKILL = "---\ndescription: A skill.\nallowed-tools: Bash\n---\nDo it.\n"
SKILL_FILE = ".agents/skills/s/SKILL.md"


class Obeyed(NamedTuple):
    """What has come of a session: the verdict on a push, and what was run."""

    verdict: str = "ask"
    ran: frozenset[str] = frozenset()


ALLOWED = Obeyed("allow")
RAN = Obeyed(ran=frozenset({"ran"}))
HOOKED = Obeyed(ran=frozenset({"SessionStart", "PreToolUse"}))


class Planted(NamedTuple):
    """A file that does harm where it is obeyed, and the like of it that does none."""

    path: str
    text: str
    harmless: str
    obeyed: Obeyed
    """What comes of it where the user has approved it."""
    mode: int = 0o644
    is_of_skill: bool = False
    """Does it lie beside a skill that is as the user trusts it?"""


ROWS = {
    "servers": Planted(".mcp.json", SERVER, HARMLESS_SERVER, RAN),
    "rules": Planted(".claude/settings.json", RULES, "{}", ALLOWED),
    "mode": Planted(".claude/settings.json", MODE, "{}", ALLOWED),
    "hooks": Planted(".claude/settings.json", HOOKS, "{}", HOOKED),
    "local rules": Planted(".claude/settings.local.json", RULES, "{}", ALLOWED),
    "local mode": Planted(".claude/settings.local.json", MODE, "{}", ALLOWED),
    "local hooks": Planted(".claude/settings.local.json", HOOKS, "{}", HOOKED),
    "own rules": Planted(
        ".ferrule/settings.toml", '[permissions]\nallow = ["Bash"]\n', "[permissions]\nallow = []\n", ALLOWED
    ),
    "own hooks": Planted(
        ".ferrule/settings.toml", '[[hooks.PreToolUse]]\ncommand = "echo ran >> MARK"\n', "[permissions]\n", RAN
    ),
    "amp rules": Planted(
        ".amp/settings.json", '{"amp.permissions": [{"tool": "Bash", "action": "allow"}]}', "{}", ALLOWED
    ),
    "amp toolbox": Planted(".amp/toolbox/x", SCRIPT, HARMLESS_SCRIPT, RAN, mode=0o755),
    "toolbox": Planted(".agents/tools/x", SCRIPT, HARMLESS_SCRIPT, RAN, mode=0o755),
    "module": Planted("tools/x.py", MODULE, HARMLESS_MODULE, RAN),
    "own module": Planted(".ferrule/tools/x.py", MODULE, HARMLESS_MODULE, RAN),
    "own program": Planted(".ferrule/tools/x", SCRIPT, HARMLESS_SCRIPT, RAN, mode=0o755),
    "rules of a skill": Planted(SKILL_FILE, RULING_SKILL, SKILL, ALLOWED),
    "toolbox of a skill": Planted(
        ".agents/skills/s/toolbox/x", SCRIPT, HARMLESS_SCRIPT, RAN, mode=0o755, is_of_skill=True
    ),
    "servers of a skill": Planted(".agents/skills/s/mcp.json", SERVER, HARMLESS_SERVER, RAN, is_of_skill=True),
}
rows = pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project; no skill, tool or server of whoever runs the tests is beside it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "AMP_TOOLBOX", "FERRULE_TOOLBOX"):
        monkeypatch.delenv(name, raising=False)
    settings = tmp_path / "settings.toml"
    settings.write_text("[sandbox]\nauto_allow = false\n")  # what rules allow is to be seen
    monkeypatch.setenv("FERRULE_SETTINGS", str(settings))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("")
    return folder


def put(work: Path, name: str, text: str, mode: int = 0o644) -> None:
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(MARK, str(work.parent / "mark")))
    path.chmod(mode)


def plant(work: Path, row: Planted, text: str) -> None:
    put(work, row.path, text, row.mode)


def surround(work: Path, row: Planted) -> None:
    if row.is_of_skill:
        put(work, SKILL_FILE, SKILL)
    if row.path == ".ferrule/tools/x":
        put(work, f"{row.path}.md", "A tool.\n")


def trust(work: Path, *, with_servers: bool = True) -> None:
    """Approve the project as it is now: its rules, its code, and how each of its servers is started."""
    state = str(work.parent / "state")
    Trust(state).grant(str(work), project_files(str(work)))
    Trust(state, "code").grant(str(work), code_files(str(work)))
    if with_servers:
        approve_servers(work, state)


def approve_servers(work: Path, state: str) -> None:
    servers = list(read_servers(str(work), Mcp()).servers)
    for file in work.glob(".agents/skills/*/mcp.json"):
        servers += skill_servers(json.loads(file.read_text()), source=str(file)).servers
    pins = ServerPins(state, str(work))
    for server in servers:
        pins.approve(server, pins.start(server))


async def session(work: Path) -> Obeyed:
    """What comes of a session that allows what it can allow, and that looks at and uses all there is."""
    async with Engine(work, dialect="claude", ask=Everybody(), state=work.parent / "state") as engine:
        await engine.connect()
        await engine.call("Read", file_path="a.txt")
        await engine.call("Skill", skill="s")
        for name in ("x", "tb__x"):
            await engine.call(name)
        engine.definitions()
        engine.section()
        verdict = (await engine.decide(PUSH)).verdict
    mark = work.parent / "mark"
    return Obeyed(verdict, frozenset(mark.read_text().split() if mark.exists() else ()))


@rows
async def test_a_file_that_came_into_being_is_not_obeyed(work, row):
    surround(work, row)
    trust(work)
    plant(work, row, row.text)

    assert await session(work) == Obeyed()


@rows
async def test_a_file_that_changed_after_it_was_trusted_is_not_obeyed(work, row):
    surround(work, row)
    plant(work, row, row.harmless)
    trust(work)
    plant(work, row, row.text)

    assert await session(work) == Obeyed()


@rows
async def test_the_same_file_is_obeyed_when_it_is_trusted(work, row):
    surround(work, row)
    plant(work, row, row.text)
    trust(work)

    assert await session(work) == row.obeyed


@pytest.mark.parametrize("name", ["servers", "servers of a skill"])
async def test_a_server_of_a_trusted_project_is_not_started_before_it_is_approved(work, name):
    surround(work, ROWS[name])
    plant(work, ROWS[name], SERVER)
    trust(work, with_servers=False)

    assert await session(work) == Obeyed()


CHECK = ".claude/hooks/check.sh"
NAMED = pytest.mark.parametrize(
    "command",
    [
        pytest.param(CHECK, id="from the project"),
        pytest.param(f'"$CLAUDE_PROJECT_DIR"/{CHECK}', id="by the variable"),
        pytest.param(f'"$CLAUDE_PROJECT_DIR/{CHECK}"', id="in quotes"),
        pytest.param(f"bash {CHECK}", id="behind its shell"),
    ],
)


def hook(work: Path, command: str) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    put(work, ".claude/settings.json", json.dumps({"hooks": hooks}))


@NAMED
async def test_the_script_of_a_hook_that_changed_after_it_was_trusted_is_not_run(work, command):
    hook(work, command)
    put(work, CHECK, "#!/bin/sh\n", 0o755)
    trust(work)
    put(work, CHECK, "#!/bin/sh\necho ran >> MARK\n", 0o755)

    assert await session(work) == Obeyed()


@NAMED
async def test_the_script_of_a_hook_that_came_into_being_after_the_hook_was_trusted_is_not_run(work, command):
    hook(work, command)
    trust(work)
    put(work, CHECK, "#!/bin/sh\necho ran >> MARK\n", 0o755)

    assert await session(work) == Obeyed()


@NAMED
async def test_the_script_of_a_hook_is_run_as_it_was_trusted(work, command):
    hook(work, command)
    put(work, CHECK, "#!/bin/sh\necho ran >> MARK\n", 0o755)
    trust(work)

    assert await session(work) == RAN
