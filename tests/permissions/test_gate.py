"""The gate: what passes by itself, what asks, and what no answer can allow."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule import Call, Engine
from ferrule.core.access import EVERYTHING, Access
from ferrule.core.call import Blocked, Done, Event, Prepared
from ferrule.core.errors import Denied, ToolFailure
from ferrule.permissions import Answer, Case, ModeConfig, Nobody, Question
from tests.scripted import NO, YES, Scripted

from .place import Place


@pytest.mark.contract("permission.always-allowed")
@pytest.mark.parametrize("tool", ["read", "glob", "grep"])
@pytest.mark.parametrize("path", [".", "a.txt", "src", "not/there/yet"])
async def test_reads_inside_the_workspace_pass(nobody, tool, path):
    await nobody.admit(nobody.case(tool, Access.read(path)))

    assert nobody.blocked == []


@pytest.mark.contract("permission.writes-require-approval")
@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_writes_ask(tmp_path, tool):
    asker = Scripted(YES)
    place = Place(tmp_path, asker)
    case = place.case(tool, Access.write("src/a.py"))
    await place.admit(case)

    assert asker.questions == [
        Question(
            kind="call",
            call_id="1",
            name=case.name,
            tool=case.tool,
            summary=f"{case.name}: write src/a.py",
            touches=case.touches,
            given={},
            why=f"{case.name} writes src/a.py, and no rule covers it.",
        )
    ]
    assert place.blocked == [f"{case.name}: write src/a.py"]


@pytest.mark.parametrize(
    "touches",
    [
        pytest.param((EVERYTHING,), id="everything"),
        pytest.param((Access.host("example.com"),), id="host"),
        pytest.param((Access.process("server"),), id="process"),
        pytest.param((Access.read("a"), Access.write("b")), id="a-read-and-a-write"),
        pytest.param((Access.read("a"), EVERYTHING), id="a-read-and-everything"),
        pytest.param((Access("path", "Write", "a"),), id="a-mode-that-nobody-knows"),  # type: ignore[arg-type]
        pytest.param((Access("folder", "read", "a"),), id="a-kind-that-nobody-knows"),  # type: ignore[arg-type]
    ],
)
async def test_whatever_is_not_a_read_of_the_workspace_asks(nobody, touches):
    assert await nobody.asks(nobody.case("own", *touches))


async def test_a_call_that_touches_nothing_passes(nobody):
    assert not await nobody.asks(nobody.case("own"))


async def test_nobody_to_ask_means_no(nobody):
    with pytest.raises(Denied) as caught:
        await nobody.admit(nobody.case("write", Access.write("a.txt")))

    assert (caught.value.message, caught.value.code) == (
        (
            "Nobody can be asked, so this was not allowed: Write: write a.txt. "
            "On the command line, --yes allows it; in a program, ask= answers questions."
        ),
        "not-allowed",
    )


async def test_the_person_s_reason_reaches_the_model(tmp_path):
    place = Place(tmp_path, Scripted(Answer(allow=False, message="Use the other file.")))

    with pytest.raises(Denied, match=r"^Use the other file\.$"):
        await place.admit(place.case("write", Access.write("a.txt")))


@pytest.mark.parametrize("allow", ["yes", 1, None, "no"])
async def test_only_true_is_a_yes(tmp_path, allow):
    place = Place(tmp_path, Scripted(Answer(allow=allow, always=True), NO))
    case = place.case("write", Access.write("a.txt"))

    assert [await place.asks(case), await place.asks(case)] == [True, True]


@pytest.mark.contract("permission.auto-allowed-amp")
@pytest.mark.parametrize(
    "path",
    [".amp/notes.md", ".amp/plan.txt", ".amp/deep/er/state.json", ".amp/log.jsonl", ".amp/todo", ".amp/a b.csv"],
)
async def test_the_agent_s_notes_need_no_question(nobody, path):
    case = nobody.case("write", Access.write(path))
    nobody.gate.forbid(case.touches)

    assert not await nobody.asks(case)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(".amp", id="the-folder-itself"),
        pytest.param(".amp2/notes.md", id="another-folder"),
        pytest.param("src/.amp/notes.md", id="deeper"),
        pytest.param(".amp/../src/a.md", id="out-of-it-again"),
        pytest.param(".AMP/notes.md", id="another-case"),
        pytest.param(".amp/evil.test.js", id="picked-up-by-a-test-run"),
        pytest.param(".amp/conftest.py", id="picked-up-by-pytest"),
        pytest.param(".amp/eslint.config.mjs", id="picked-up-by-eslint"),
        pytest.param(".amp/.prettierrc", id="picked-up-by-prettier"),
        pytest.param(".amp/.prettierrc.json", id="hidden"),
        pytest.param(".amp/package.json", id="picked-up-by-npm"),
        pytest.param(".amp/x/PACKAGE.JSON", id="in-capitals"),
        pytest.param(".amp/project.json", id="picked-up-by-nx"),
        pytest.param(".amp/BUILD", id="picked-up-by-bazel"),
        pytest.param(".amp/Makefile", id="makefile"),
        pytest.param(".amp/run.sh", id="script"),
    ],
)
async def test_code_and_settings_among_the_notes_ask(nobody, path):
    assert await nobody.asks(nobody.case("write", Access.write(path)))


async def test_notes_are_the_workspace_s_not_those_of_other_folders(tmp_path):
    asker = Scripted(YES, NO)
    place = Place(tmp_path, asker)
    (place.top / ".amp").mkdir()
    place.jail.add(str(place.top))
    await place.admit(place.case("write", Access.write(str(place.top / ".amp" / "notes.md"))))

    assert await place.asks(place.case("write", Access.write(str(place.top / ".amp" / "notes.md"))))


async def test_notes_that_are_really_elsewhere_ask(nobody):
    (nobody.work / "src").mkdir()
    (nobody.work / ".amp").symlink_to(nobody.work / "src")

    assert await nobody.asks(nobody.case("write", Access.write(".amp/notes.md")))


SECRET = ".env", "deploy/id_rsa", "credentials.json", "a/.ssh/config", ".ENV"
PROTECTED = (
    ".amp/settings.json",
    ".amp/settings.local.json",
    ".git/config",
    ".git/hooks/pre-commit",
    ".claude/x",
    ".GIT/x",
)


@pytest.mark.parametrize("path", SECRET)
def test_a_secret_file_is_refused_whatever_anybody_says(tmp_path, path):
    place = Place(tmp_path, Scripted())

    with pytest.raises(
        ToolFailure, match=r"^Refusing to read env file\. Reading secrets is not permitted\.$"
    ) as caught:
        place.gate.forbid(place.case("read", Access.read(path)).touches)
    assert caught.value.code == "reading-secret-file"
    with pytest.raises(ToolFailure, match=r"Refusing to write .*, a secret file"):
        place.gate.forbid(place.case("edit", Access.write(path)).touches)


@pytest.mark.parametrize("path", PROTECTED)
def test_a_protected_file_is_never_written(tmp_path, path):
    place = Place(tmp_path, Scripted())
    place.gate.forbid(place.case("read", Access.read(path)).touches)

    with pytest.raises(ToolFailure, match="Refusing to write") as caught:
        place.gate.forbid(place.case("write", Access.write(path)).touches)
    assert caught.value.code == "writing-protected-file"


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("path", ["own.toml", "own.toml/x"])
def test_the_engine_s_own_files_are_never_written_even_inside_the_workspace(tmp_path, path, linked):
    (tmp_path / "work").mkdir()
    own = tmp_path / "work" / "own.toml"
    if linked:
        own.symlink_to(tmp_path / "work" / "real.toml")
    place = Place(tmp_path, Scripted(), own=[str(own)])

    with pytest.raises(ToolFailure, match="belongs to Ferrule itself") as caught:
        place.gate.forbid(place.case("write", Access.write(path)).touches)
    assert caught.value.code == "writing-protected-file"


def test_another_engine_s_state_can_be_named(tmp_path):
    place = Place(tmp_path, Scripted(), own=[str(tmp_path / "work" / "state")])
    place.gate.forbid(place.case("write", Access.write("state2")).touches)

    with pytest.raises(ToolFailure, match="Ferrule"):
        place.gate.forbid(place.case("write", Access.write("state/journals/1")).touches)


@pytest.mark.parametrize("old", ["TOKEN=1", "not in the file"], ids=["matches", "does-not-match"])
@pytest.mark.parametrize("name", ["edit_file", "create_file", "Read"])
async def test_a_refusal_comes_before_any_question_and_does_not_tell_what_is_in_the_file(tmp_path, name, old):
    (tmp_path / ".env").write_text("TOKEN=1\n")
    asker = Scripted()
    arguments = {
        "edit_file": {"path": ".env", "old_str": old, "new_str": "x"},
        "create_file": {"path": ".env", "content": old},
        "Read": {"path": ".env"},
    }
    async with Engine(tmp_path, ask=asker) as engine:
        (reply,) = await engine.run([Call(name, arguments[name])])

    expected = "Refusing to read env file." if name == "Read" else "Refusing to write .env, a secret file."
    assert (reply.status, asker.questions) == ("error", [])
    assert reply.text.startswith(expected)
    assert "TOKEN" not in reply.text


@pytest.mark.contract("status.blocked-on-user", "status.rejected-by-user", "flow.permission")
async def test_a_call_that_asks_is_blocked_and_then_rejected(tmp_path):
    heard: list[Event] = []
    async with Engine(tmp_path, ask=Scripted(NO), on_event=heard.append) as engine:
        reply = await engine.call("create_file", path="a.txt", content="x")

    assert [type(event) for event in heard] == [Prepared, Blocked, Done]
    assert (reply.status, (tmp_path / "a.txt").exists()) == ("rejected-by-user", False)


@pytest.mark.contract("flow.aliases")
@pytest.mark.parametrize("alias", ["Write", "write", "write_file"])
async def test_an_alias_does_not_walk_around_the_question(tmp_path, alias):
    async with Engine(tmp_path, ask=Nobody()) as engine:
        reply = await engine.call(alias, path="a.txt", content="x")

    assert reply.status == "rejected-by-user"


@pytest.mark.parametrize("alias", ["Read", "read", "read_file"])
async def test_an_alias_does_not_walk_around_the_mode(tmp_path, alias):
    async with Engine(tmp_path, mode=ModeConfig(include_tools=("glob",))) as engine:
        reply = await engine.call(alias, path="a.txt")

    assert (reply.status, reply.text) == ("rejected-by-user", "Read is not part of this mode.")


async def test_what_is_not_in_the_mode_is_refused_without_a_question(tmp_path):
    place = Place(tmp_path, Scripted(), mode=ModeConfig(include_tools=("read",)))

    with pytest.raises(Denied, match=r"Write is not part of this mode\.") as caught:
        await place.admit(place.case("write", Access.write("a.txt")))
    assert caught.value.code == "not-in-mode"


async def test_a_toolbox_tool_is_for_its_subagents(tmp_path):
    place = Place(tmp_path, Scripted(YES), mode=ModeConfig(allow_toolbox=True, subagent_type="scope"))
    await place.admit(Case("1", "tb__x", "tb__x", (EVERYTHING,), subagent_types=("scope",)))

    with pytest.raises(Denied):
        await place.admit(Case("1", "tb__x", "tb__x", (EVERYTHING,), subagent_types=("finder",)))


@pytest.mark.contract("permission.bash-requires-approval", "permission.auto-allowed-commands")
@pytest.mark.parametrize(
    ("command", "cwd", "expected"),
    [
        pytest.param("ls", ".", False, id="plain"),
        pytest.param("ls src", ".", False, id="plain-with-a-path"),
        pytest.param("ls; rm -rf src", ".", True, id="operator"),
        pytest.param("rm -rf src", ".", True, id="not-in-the-table"),
        pytest.param("make test", ".", False, id="a-build"),
        pytest.param("make test", ".amp", True, id="in-the-notes"),
        pytest.param("ls .amp", ".", False, id="a-look-at-the-notes"),
        pytest.param("ls .env", ".", False, id="the-name-of-a-secret-file"),
        pytest.param("cat .env", ".", True, id="secret-operand"),
        pytest.param("ls /etc", ".", True, id="outside-operand"),
    ],
)
async def test_commands_ask_unless_they_are_plain_development_commands(nobody, command, cwd, expected):
    (nobody.work / ".amp").mkdir()

    assert await nobody.asks(nobody.command(command, cwd)) is expected


async def test_a_plain_command_excuses_nothing_else_that_a_call_touches(nobody):
    assert await nobody.asks(nobody.case("own", Access.command("ls", str(nobody.work)), Access.write("a")))


paths = st.sampled_from([".", "a", "src/b", ".amp/n.md", ".amp/x.py", "..", "../x", "/", "/etc"])
touches = st.lists(
    st.builds(Access, st.just("path"), st.sampled_from(["read", "write"]), paths)
    | st.just(EVERYTHING)
    | st.builds(Access.host, st.just("h")),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(touches)
async def test_without_anybody_to_ask_only_reads_and_notes_inside_the_workspace_pass(nobody, touched):
    case = nobody.case("own", *touched)
    root = str(nobody.work)

    def is_free(access: Access) -> bool:
        inside = access.key == root or access.key.startswith(root + "/")
        return access.kind == "path" and inside and (access.mode == "read" or access.key == f"{root}/.amp/n.md")

    assert await nobody.asks(case) is not all(is_free(access) for access in case.touches)
