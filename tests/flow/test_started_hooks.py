"""A hook runs outside the walls only with the bytes that the user approved, however it names its script.

Every script writes where it ran: beside the workspace, which only what is outside the walls can, or in it.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ferrule import Call, Engine, Settings
from ferrule.permissions import Answer, Question
from ferrule.permissions.trust import Trust, project_files
from ferrule.sandbox import choose
from ferrule.settings import HookSetting, SandboxSettings


class Spelled(NamedTuple):
    """A way to run a script from a folder."""

    command: str
    script: str = "check.sh"
    is_free: bool = True
    """Is it certain that it runs nothing else? Then it runs with the user's rights, as long as it is approved."""

    def at(self, folder: str) -> str:
        return self.command.replace("@", folder)


SPELLED = {
    "as it is": Spelled("@/check.sh"),
    "behind its shell": Spelled("bash ./@/check.sh"),
    "without an ending": Spelled("sh @/check", "check"),
    "read into the shell": Spelled(". ./@/check", "check"),
    "as its input": Spelled("sh < @/check", "check"),
    "in its folder": Spelled("cd @ && ./check.sh"),
    "in its folder by the variable": Spelled('cd "$CLAUDE_PROJECT_DIR/@" && sh check.sh'),
    "by the variable": Spelled('"$CLAUDE_PROJECT_DIR"/@/check.sh'),
    "by a variable with a default": Spelled('"${CLAUDE_PROJECT_DIR:-.}"/@/check.sh'),
    "by the present folder": Spelled('sh "$PWD"/@/check', "check"),
    "by what a command says": Spelled('"$(pwd)"/@/check.sh', is_free=False),
    "by a variable of its own": Spelled('D=@; "$D"/check.sh', is_free=False),
    "in a loop": Spelled('for f in @/*.sh; do "$f"; done', is_free=False),
    "by a pattern": Spelled("sh @/ch*.sh", is_free=False),
    "as a text of commands": Spelled("sh -c @/check.sh", is_free=False),
    "through a pipe": Spelled("cat @/check | sh", "check", is_free=False),
}
spelled = pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in SPELLED.items()])
folders = pytest.mark.parametrize("folder", [".claude/hooks", "scripts"])


class Agreeing:
    """Somebody who says yes to calls, and to what leaves the sandbox where that is wanted."""

    def __init__(self) -> None:
        self.is_outside = False
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked += [question] if question.kind == "call" else []
        return Answer(allow=question.kind == "call" or self.is_outside)


class Ground:
    """A project whose hook runs a script, and what has come of it."""

    def __init__(self, top: Path) -> None:
        self.work, self.outside, self.state = top / "work", top / "outside", str(top / "state")
        self.work.mkdir()
        self.asker = Agreeing()
        self.put("a.txt", "")

    def put(self, name: str, text: str) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def script(self, word: str) -> str:
        return f"#!/bin/sh\necho {word} >> {self.outside}\necho {word} >> {self.work}/inside\n"

    def hook(self, command: str, event: str = "PreToolUse") -> None:
        hooks = {event: [{"hooks": [{"type": "command", "command": command}]}]}
        self.put(".claude/settings.json", json.dumps({"hooks": hooks}))

    def trust(self) -> None:
        Trust(self.state).grant(str(self.work), project_files(str(self.work)))

    def opened(self, **settings: Any) -> Engine:
        return Engine(self.work, dialect="claude", ask=self.asker, settings=Settings(**settings), state=self.state)

    async def session(self, **settings: Any) -> tuple[str, ...]:
        """The words that scripts wrote outside the walls, and then those that they wrote behind them alone."""
        async with self.opened(**settings) as engine:
            await engine.call("Read", file_path="a.txt")
        return self.came()

    def came(self) -> tuple[str, ...]:
        outside, inside = (
            set(path.read_text().split()) if path.exists() else set() for path in (self.outside, self.work / "inside")
        )
        return (
            *(f"{word} outside" for word in sorted(outside)),
            *(f"{word} inside" for word in sorted(inside - outside)),
        )


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    if choose("auto") is None:
        pytest.skip("Nothing on this machine can confine a command.")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Ground(tmp_path)


@spelled
@folders
async def test_an_approved_script_runs_and_outside_only_where_nothing_else_could(ground, row, folder):
    ground.put(f"{folder}/{row.script}", ground.script("old"))
    ground.hook(row.at(folder))
    ground.trust()

    assert await ground.session() == ("old outside" if row.is_free else "old inside",)


@spelled
@folders
async def test_a_script_that_changed_after_it_was_trusted_does_not_run_outside(ground, row, folder):
    ground.put(f"{folder}/{row.script}", ground.script("old"))
    ground.hook(row.at(folder))
    ground.trust()
    ground.put(f"{folder}/{row.script}", ground.script("new"))

    assert "new outside" not in await ground.session()


@spelled
async def test_a_script_that_came_into_being_after_its_hook_was_trusted_does_not_run_outside(ground, row):
    ground.hook(row.at("scripts"))
    ground.trust()
    ground.put(f"scripts/{row.script}", ground.script("new"))

    assert "new outside" not in await ground.session()


@spelled
async def test_nothing_that_a_session_writes_is_run_outside_by_its_hooks(ground, row):
    path = ground.put(f"scripts/{row.script}", ground.script("old"))
    ground.hook(row.at("scripts"))
    ground.trust()
    async with ground.opened() as engine:
        await engine.call("Read", file_path=str(path))
        written = await engine.call("Write", file_path=str(path), content=ground.script("new"))
        command = f"printf '#!/bin/sh\\necho newer >> {ground.outside}\\n' > scripts/{row.script}"
        (ran,) = await engine.run([Call("Bash", {"command": command, "description": "x"})])
        await engine.call("Read", file_path="a.txt")

    assert not {"new outside", "newer outside"} & set(ground.came())
    if row.is_free:
        assert (written.error.error_code, ran.status, path.read_text()) == (
            "writing-protected-file",
            "error",
            ground.script("old"),
        )


@spelled
async def test_a_hook_of_the_users_runs_a_script_that_nobody_approved_behind_the_walls(ground, row):
    ground.put(f"scripts/{row.script}", ground.script("new"))
    mine = HookSetting(command=row.at("scripts"))

    assert await ground.session(hooks={"PreToolUse": [mine]}) == ("new inside",)


async def test_a_hook_of_the_users_runs_a_script_outside_that_is_approved_with_the_project(ground):
    ground.put("scripts/check", ground.script("old"))
    ground.hook("sh scripts/check", event="SessionEnd")
    ground.trust()

    assert await ground.session(hooks={"PreToolUse": [HookSetting(command='sh "$PWD/scripts/check"')]}) == (
        "old outside",
    )


async def test_a_hook_of_the_users_that_runs_nothing_of_the_workspace_is_free(ground):
    program = ground.work.parent / "tell"
    program.write_text(ground.script("mine"))
    program.chmod(0o755)

    assert await ground.session(hooks={"PreToolUse": [HookSetting(command=f"{program} done")]}) == ("mine outside",)


async def test_a_script_that_came_into_being_in_the_session_is_run_behind_the_walls_alone(ground):
    mine = HookSetting(matcher="Read", command="sh scripts/check")
    async with ground.opened(hooks={"PreToolUse": [mine]}) as engine:
        await engine.call("Write", file_path=str(ground.work / "scripts/check"), content=ground.script("new"))
        await engine.call("Read", file_path="a.txt")

    assert ground.came() == ("new inside",)


@pytest.mark.parametrize(
    ("command", "name", "text"),
    [
        pytest.param("make -s fmt", "Makefile", "fmt:\n\t@sh script\n", id="make"),
        pytest.param("npm run lint", "package.json", '{"scripts": {"lint": "sh script"}}', id="npm"),
        pytest.param("python3 -m hooks.check", "hooks/check.py", "import os; os.system('sh script')", id="module"),
        pytest.param("python3 hooks/check.py", "hooks/json.py", "import os; os.system('sh script')", id="beside"),
    ],
)
async def test_what_a_program_finds_in_the_workspace_by_itself_runs_behind_the_walls(ground, command, name, text):
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"There is no {command.split()[0]} on this machine.")
    ground.put("hooks/check.py", "import json\n")
    ground.hook(command)
    ground.trust()
    ground.put("script", ground.script("new"))
    ground.put(name, text)

    assert await ground.session() in {("new inside",), ()}


async def test_the_user_is_told_once_which_hooks_run_behind_the_walls_and_why(ground):
    ground.hook("make -s check")
    ground.trust()
    async with ground.opened() as engine:
        for _ in range(2):
            await engine.call("Read", file_path="a.txt")
        told = [warning for warning in engine.warnings if "sandbox" in warning]

    (said,) = told
    assert said == (
        f"The PreToolUse hook `make -s check` of {ground.work}/.claude/settings.json runs in the sandbox, as commands "
        "do: make runs code of the project. A hook that names its script literally, in a trusted project, runs with "
        "the user's rights."
    )


async def test_where_nothing_confines_commands_nothing_confines_hooks(ground):
    ground.put("scripts/check.sh", ground.script("old"))
    ground.hook("sh scripts/ch*.sh")
    ground.trust()

    assert await ground.session(sandbox=SandboxSettings(use="none")) == ("old outside",)


ALLOWS = """printf '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'\n"""


@pytest.mark.parametrize(("command", "asks"), [("sh scripts/check.sh", False), ("sh scripts/ch*.sh", True)])
async def test_a_hook_behind_the_walls_spares_no_question(ground, command, asks):
    ground.put("scripts/check.sh", ALLOWS)
    ground.hook(command)
    ground.trust()
    async with ground.opened(sandbox=SandboxSettings(auto_allow=False)) as engine:
        await engine.run([Call("Bash", {"command": "git push", "description": "x"})])

    assert bool(ground.asker.asked) is asks


async def test_a_hook_behind_the_walls_still_refuses_a_call(ground):
    ground.put("scripts/check.sh", "echo no >&2\nexit 2\n")
    ground.hook("sh scripts/ch*.sh")
    ground.trust()
    async with ground.opened() as engine:
        reply = await engine.call("Read", file_path="a.txt")

    assert reply.status == "rejected-by-user"


@pytest.mark.parametrize("outside", [False, True])
async def test_variables_of_a_hook_behind_the_walls_are_for_commands_behind_them(ground, outside):
    ground.put("scripts/start.sh", "echo 'export COLOUR=blue' >> \"$CLAUDE_ENV_FILE\"\n")
    ground.hook("sh scripts/st*.sh", event="SessionStart")
    ground.trust()
    given = {"command": 'echo "is ${COLOUR:-not there}"', "description": "x", "dangerouslyDisableSandbox": outside}
    ground.asker.is_outside = outside
    async with ground.opened() as engine:
        (reply,) = await engine.run([Call("Bash", given)])

    assert ("is not there" if outside else "is blue") in reply.text


LOADER = "#!/bin/sh\nif [ -f ./.loaderrc ]; then . ./.loaderrc; fi\necho formatted > a.txt\n"
"""A formatter whose settings are code, as many a one's are."""


@pytest.mark.parametrize(
    ("place", "command", "came"),
    [
        ("bin", "loader", ("planted inside",)),
        ("bin", "@/loader", ("planted inside",)),
        ("own", "@/loader", ("planted outside",)),  # as a script of the user's: what it loads is the user's to know
    ],
)
async def test_a_program_that_may_load_code_from_the_folder_works_behind_the_walls(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, command: str, came: tuple[str, ...]
) -> None:
    folder = tmp_path / place
    folder.mkdir()
    (folder / "loader").write_text(LOADER)
    (folder / "loader").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    ground.hook(command.replace("@", str(folder)))
    ground.trust()
    ground.put(".loaderrc", ground.script("planted"))

    assert (await ground.session(), (ground.work / "a.txt").read_text()) == (came, "formatted\n")
