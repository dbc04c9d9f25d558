"""Protected files: a person may allow one write, nobody else may, and nothing is obeyed that nobody has approved."""

from pathlib import Path

import msgspec
import pytest

from ferrule import Call, Engine, Settings
from ferrule.core.call import Reply
from ferrule.core.errors import ToolFailure
from ferrule.permissions import Answer, Everybody, Nobody, Question
from ferrule.permissions.trust import Trust, code_files, project_files
from tests.scripted import ALWAYS, NO, YES, Scripted

CONTENT = '{"a": 1}\n'
ASKED = (
    ".pre-commit-config.yaml",
    ".vscode/tasks.json",
    ".devcontainer/devcontainer.json",
    ".claude/commands/ship.md",
    ".claude/settings.json",
    ".mcp.json",
    ".husky/pre-commit",
    "sub/.vscode/settings.json",
    "lefthook.yml",
    "sitecustomize.py",
)
NEVER = (
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.git/config",
    ".ferrule/settings.toml",
    ".ferrule/tools/x.py",
    "bare/hooks/post-update",
    ".env",
    ".npmrc",
)


class Person(Scripted):
    """A person, by their own word."""

    is_person = True


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("objects", "refs", "hooks"):
        (tmp_path / "work" / "bare" / name).mkdir(parents=True)
    (tmp_path / "work" / "bare" / "HEAD").write_text("")
    return tmp_path / "work"


async def write(work: Path, asker: object, path: str, *, content: str = CONTENT, **more: object) -> Reply:
    state = work.parent / "state"
    async with Engine(work, dialect="claude", ask=asker, state=state, **more) as engine:  # type: ignore[arg-type]
        (reply,) = await engine.run([Call("Write", {"file_path": path, "content": content})])
    return reply


@pytest.mark.parametrize("path", ASKED)
async def test_a_person_is_shown_the_content_and_may_allow_it(work, path):
    asker = Person(YES)
    reply = await write(work, asker, path)

    (question,) = asker.questions
    assert reply.status == "done"
    assert (work / path).read_text() == CONTENT
    assert question.kind == "protected"
    assert question.changes == ("(new file, 9 bytes)", '1 + {"a": 1}')
    assert question.proposals == ()
    assert f"{path} is protected: " in question.why


@pytest.mark.parametrize("path", NEVER)
async def test_nobody_is_asked_about_what_is_never_written(work, path):
    asker = Person()
    reply = await write(work, asker, path)

    assert asker.questions == []
    assert reply.error is not None
    assert reply.error.error_code in {"writing-protected-file", "writing-secret-file"}
    assert not (work / path).exists()


def _yes(_: Question) -> bool:
    return True


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "dontAsk"])
@pytest.mark.parametrize(
    "asker", [Nobody(), Everybody(), _yes, Scripted()], ids=["nobody", "yes-to-all", "callback", "a-program"]
)
async def test_only_a_person_answers_whatever_the_mode_and_the_rules_say(work, asker, mode):
    settings = msgspec.convert({"permissions": {"allow": ["Write", "Edit(.vscode/**)"]}}, Settings)
    reply = await write(work, asker, ".vscode/tasks.json", permission_mode=mode, settings=settings)

    assert reply.status == "error"
    assert reply.error is not None
    assert reply.error.error_code == "writing-protected-file"
    assert "files.guarded_allow" in reply.error.message
    assert "Only a person may allow it" in reply.error.message
    assert not (work / ".vscode").exists()


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_no_mode_and_no_rule_spares_the_question(work, mode):
    settings = msgspec.convert({"permissions": {"allow": ["Write", "Edit(.vscode/**)"]}}, Settings)
    asker = Person(NO)
    reply = await write(work, asker, ".vscode/tasks.json", permission_mode=mode, settings=settings)

    assert [question.kind for question in asker.questions] == ["protected"]
    assert reply.status == "rejected-by-user"


async def test_a_silent_mode_asks_no_person(work):
    settings = msgspec.convert({"permissions": {"allow": ["Write"]}}, Settings)
    reply = await write(work, Person(), ".vscode/tasks.json", permission_mode="dontAsk", settings=settings)

    assert reply.error is not None
    assert reply.error.error_code == "writing-protected-file"


async def test_a_hook_cannot_allow_it(work):
    from ferrule.hooks import Hook

    def allow(_: dict[str, object]) -> dict[str, object]:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}

    reply = await write(work, Nobody(), ".vscode/a", hooks=(Hook("PreToolUse", function=allow, layer="session"),))

    assert reply.status == "error"
    assert not (work / ".vscode").exists()


async def test_a_person_is_asked_also_where_hooks_are_told(work):
    from ferrule.hooks import Hook

    hook = Hook("Notification", function=lambda _: None, layer="session")
    asker = Person(YES)
    reply = await write(work, asker, ".vscode/a", hooks=(hook,))

    assert reply.ok
    assert [question.kind for question in asker.questions] == ["protected"]


@pytest.mark.parametrize("rule", ["Edit(.vscode/**)", "Write", "Read(.vscode/**)"])
async def test_what_a_rule_denies_is_not_asked_about(work, rule):
    settings = msgspec.convert({"permissions": {"deny": [rule]}}, Settings)
    asker = Person()
    reply = await write(work, asker, ".vscode/tasks.json", settings=settings)

    assert asker.questions == []
    assert not reply.ok


async def test_in_plan_mode_nothing_changes(work):
    asker = Person()
    reply = await write(work, asker, ".vscode/tasks.json", permission_mode="plan")

    assert asker.questions == []
    assert reply.error is not None
    assert reply.error.error_code == "writing-protected-file"


async def test_always_holds_for_nothing_and_every_write_is_asked_about(work):
    asker = Person(ALWAYS, YES)
    async with Engine(work, dialect="amp", ask=asker, state=work.parent / "state") as engine:
        for content in ("1\n", "2\n"):
            reply = await engine.call("create_file", path=".vscode/a", content=content)
            assert reply.ok

    assert [question.kind for question in asker.questions] == ["protected"] * 2


async def test_the_write_is_in_the_journal_and_the_user_takes_it_back(work):
    async with Engine(work, dialect="amp", ask=Person(YES), state=work.parent / "state") as engine:
        await engine.call("create_file", path=".vscode/a", content="1\n")
        await engine.undo()

    assert not (work / ".vscode" / "a").exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("x\n" * 60_000, id="too-long"),
        pytest.param("x" * 5000, id="a-line-too-long"),
        pytest.param("\0\1\2", id="binary"),
    ],
)
async def test_what_cannot_be_shown_whole_is_not_asked_about(work, content):
    asker = Person()
    reply = await write(work, asker, ".vscode/a", content=content)

    assert asker.questions == []
    assert reply.error is not None
    assert "It was not asked about, because" in reply.error.message


async def test_what_was_agreed_to_is_what_is_written(work):
    class Sly:
        is_person = True

        async def ask(self, _: Question) -> Answer:
            (work / ".vscode").mkdir()
            (work / ".vscode" / "a").write_text("other\n")
            return YES

    reply = await write(work, Sly(), ".vscode/a")

    assert reply.status == "error"
    assert (work / ".vscode" / "a").read_text() == "other\n"


RULES = '{"permissions": {"allow": ["Bash"]}}\n'


@pytest.mark.parametrize(
    ("before", "trusts", "after"),
    [
        pytest.param({}, False, "trusted", id="nothing-before"),
        pytest.param({".claude/settings.json": "{}"}, True, "trusted", id="trusted-before"),
        pytest.param({".claude/settings.json": "{}"}, False, "unknown", id="never-trusted"),
        pytest.param({".amp/settings.json": "{}"}, False, "unknown", id="another-file-that-nobody-saw"),
    ],
)
async def test_trust_follows_what_a_person_approved_and_reaches_nothing_else(work, before, trusts, after):
    for name, text in before.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    trust = Trust(str(work.parent / "state"))
    if trusts:
        trust.grant(str(work), project_files(str(work)))
    async with Engine(work, dialect="amp", ask=Person(YES), state=work.parent / "state") as engine:
        reply = await engine.call("create_file", path=".claude/settings.json", content=RULES)

    assert reply.ok
    assert trust.state(str(work), project_files(str(work))) == after


async def test_a_server_file_that_a_person_approved_is_trusted_as_code(work):
    reply = await write(work, Person(YES), ".mcp.json", content='{"mcpServers": {}}\n')

    assert reply.ok
    assert Trust(str(work.parent / "state"), "code").state(str(work), code_files(str(work))) == "trusted"
    (work / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "evil"}}}\n')
    assert Trust(str(work.parent / "state"), "code").state(str(work), code_files(str(work))) == "changed"


def test_the_guard_itself_refuses_whoever_does_not_ask(work):
    from ferrule.files.guard import Guard
    from ferrule.files.jail import Jail

    with pytest.raises(ToolFailure):
        Guard(jail=Jail(str(work))).check_write(str(work / ".vscode" / "a"))
