"""Confined commands without a question: where that holds, and what asks all the same."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from ferrule import Call, Engine, Settings
from ferrule.permissions import Nobody, Question
from ferrule.permissions.trust import Trust, project_files
from ferrule.sandbox import choose
from ferrule.settings import Permissions, SandboxSettings
from tests.permissions.shell.everyday import EXECUTABLES, FILES, everyday
from tests.workspace.test_walls import Wall

AutoAllow = bool | Literal["auto"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in (*FILES, *EXECUTABLES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n", encoding="utf-8")
    return folder


@asynccontextmanager
async def opened(
    work: Path,
    *,
    sandbox: SandboxSettings | None = None,
    permissions: Permissions | None = None,
    can_take_back: bool = True,
    wall: str = "namespaces",
    **more: Any,
) -> AsyncIterator[Engine]:
    """An engine whose commands are behind a wall of this name, and which makes checkpoints or not."""
    settings = Settings(sandbox=sandbox or SandboxSettings(), permissions=permissions or Permissions())
    given = {"settings": settings, "state": work.parent / "state", "ask": Nobody(), "dialect": "claude", **more}
    async with Engine(work, **given) as engine:
        engine._services.can_take_back = lambda: can_take_back
        walls = engine._services.confinement()
        walls._sandbox, walls._chosen = (None if wall == "none" else Wall(wall)), True
        yield engine


async def verdict(engine: Engine, command: str = "python src/app.py", **more: Any) -> str:
    return (await engine.decide(Call("Bash", {"command": command, **more}))).verdict


@pytest.mark.parametrize("wall", ["namespaces", "bubblewrap", "seatbelt"])
async def test_a_confined_command_that_can_be_taken_back_needs_no_question(work: Path, wall: str) -> None:
    async with opened(work, wall=wall) as engine:
        assert (await verdict(engine), engine.why_asked()) == ("allow", "")


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ({"can_take_back": False}, "No checkpoint is kept here"),
        ({"wall": "none"}, "Nothing confines commands here"),
        ({"wall": "landlock"}, "landlock cannot take files out"),
        ({"sandbox": SandboxSettings(network=True)}, "the whole network"),
        ({"sandbox": SandboxSettings(unix_sockets=True)}, "sandbox.unix_sockets"),
        ({"sandbox": SandboxSettings(auto_allow=False)}, "sandbox.auto_allow is false"),
        ({"network": True}, "the whole network"),
    ],
)
async def test_it_asks_where_one_condition_is_missing(work: Path, missing: dict[str, Any], why: str) -> None:
    async with opened(work, **missing) as engine:
        assert await verdict(engine) == "ask"
        assert why in engine.why_asked()


@pytest.mark.parametrize(
    ("auto_allow", "wall", "can_take_back", "said"),
    [
        (True, "landlock", False, "ask"),  # there is a secret file
        (True, "namespaces", False, "allow"),
        (False, "namespaces", True, "ask"),
        ("auto", "namespaces", False, "ask"),
    ],
)
async def test_true_and_false_mean_what_they_meant(
    work: Path, auto_allow: AutoAllow, wall: str, can_take_back: bool, said: str
) -> None:
    sandbox = SandboxSettings(auto_allow=auto_allow)
    async with opened(work, sandbox=sandbox, wall=wall, can_take_back=can_take_back) as engine:
        assert await verdict(engine) == said


async def test_who_has_said_true_is_not_asked_about_what_checkpoints_leave_out(work: Path) -> None:
    async with opened(work, sandbox=SandboxSettings(auto_allow=True), can_take_back=False) as engine:
        assert await verdict(engine, "rm -rf node_modules") == "allow"


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("python src/app.py", {"dangerouslyDisableSandbox": True}),
        ("rm -rf node_modules", {}),
        ("git push --force origin main", {}),
        ("truncate -s 0 .git/objects/x", {}),
        ("cat .env", {}),
        ("echo x > .git/hooks/pre-commit", {}),
        ("cat /proc/1/environ", {}),
    ],
)
async def test_these_ask_all_the_same(work: Path, command: str, more: dict[str, Any]) -> None:
    async with opened(work) as engine:
        assert await verdict(engine, command, **more) == "ask"


async def test_rules_that_ask_or_deny_hold(work: Path) -> None:
    rules = Permissions(ask=("Bash(make *)",), deny=("Bash(python *)",))
    async with opened(work, permissions=rules) as engine:
        said = [await verdict(engine, one) for one in ("make x", "python src/app.py", "node scripts/build.js")]

    assert said == ["ask", "deny", "allow"]


async def test_a_rule_allows_also_what_checkpoints_leave_out(work: Path) -> None:
    async with opened(work, permissions=Permissions(allow=("Bash(rm -rf node_modules)",))) as engine:
        assert await verdict(engine, "rm -rf node_modules") == "allow"


@pytest.mark.parametrize(
    ("mode", "said"), [("default", "ask"), ("dontAsk", "deny"), ("bypassPermissions", "allow"), ("plan", "deny")]
)
async def test_modes_settle_what_is_left(work: Path, mode: str, said: str) -> None:
    async with opened(work, permission_mode=mode) as engine:
        assert await verdict(engine, "git push --force") == said


async def test_a_path_outside_asks(work: Path) -> None:
    asked: list[str] = []

    def ask(question: Question) -> bool:
        asked.append(question.kind)
        return False

    async with opened(work, ask=ask, dialect="amp") as engine:
        reply = await engine.call("Bash", cmd="python x.py", cwd=str(work.parent))

    assert (reply.status, asked) == ("rejected-by-user", ["folder"])


async def test_what_somebody_else_knows_to_be_left_out_asks(work: Path) -> None:
    async with opened(work) as engine:
        assert await verdict(engine, "rm README.md") == "allow"
        engine._services.left_out = lambda path: path.endswith("README.md")

        assert await verdict(engine, "rm README.md") == "ask"
        assert await verdict(engine, "rm -rf node_modules") == "allow"


async def test_a_folder_beside_the_workspace_is_in_no_checkpoint(work: Path) -> None:
    other = work.parent / "other"
    other.mkdir()
    (other / "a.txt").write_text("a\n")
    async with opened(work, sandbox=SandboxSettings(writable=(str(other),))) as engine:
        assert [await verdict(engine, one) for one in (f"rm {other}/a.txt", f"touch {other}/b.txt")] == ["ask", "allow"]


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_project_cannot_have_its_commands_run_unasked(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    monkeypatch.setenv("FERRULE_SETTINGS", str(tmp_path / "settings.toml"))
    (tmp_path / "settings.toml").write_text("[sandbox]\nauto_allow = false\n")
    (work / ".ferrule").mkdir()
    (work / ".ferrule" / "settings.toml").write_text("[sandbox]\nauto_allow = true\n")
    state = tmp_path / "state"
    if trusted:
        kept = Trust(str(state))
        files = project_files(str(work))
        kept.grant(str(work), files, seen=kept.look(str(work), files).fingerprint)

    async with opened(work, settings=None, state=state) as engine:
        assert (await verdict(engine), engine.settings.sandbox.auto_allow) == ("ask", False)


async def test_a_project_that_asks_is_obeyed(work: Path) -> None:
    (work / ".ferrule").mkdir()
    (work / ".ferrule" / "settings.toml").write_text('[permissions]\nask = ["Bash"]\n')

    async with opened(work) as engine:
        assert await verdict(engine) == "ask"


async def test_at_most_one_in_twenty_everyday_commands_asks(work: Path) -> None:
    rows = list(everyday())
    async with opened(work) as engine:
        asking = [row.command for row in rows if await verdict(engine, row.command) != "allow"]

    assert len(rows) >= 200
    assert len(asking) <= len(rows) / 20, asking


async def test_it_holds_on_this_machine_as_it_is(work: Path) -> None:
    found = choose()
    if found is None or found.name == "landlock":
        pytest.skip("nothing here has whole walls")
    async with Engine(work, settings=Settings(), state=work.parent / "state", dialect="claude") as engine:
        engine._services.can_take_back = lambda: True
        reply = await engine.call("Bash", command="echo made > made.txt && cat made.txt")

    assert (reply.status, (work / "made.txt").read_text()) == ("done", "made\n")
