"""Skills through the whole flow: instructions, commands under the policy, and what a skill brings."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ferrule import Call, Engine, Settings
from ferrule.core.call import Progress
from ferrule.core.errors import ToolFailure
from ferrule.core.services import Bringing, SkillLoaded
from ferrule.settings import Permissions, SandboxSettings
from ferrule.tools import BUILTIN
from ferrule.tools.skills import Parameter, ServerPrompt, Skills, tool
from ferrule.tools.skills.tool import MOST_ARGUMENTS_CHARS, UseSkill

LIMIT_SECONDS = 60
PROMPTS = (ServerPrompt("docs", "ask", "Asks.", (Parameter("topic", "", is_required=True),)),)


class Recorder(UseSkill):
    """The tool, and what it came back with last."""

    schema = {  # noqa: RUF012 - a test's
        "type": "object",
        "properties": {"skill": {"type": "string"}, "args": {"type": "string"}},
        "required": ["skill"],
    }

    def __init__(self, *, by_user: bool) -> None:
        super().__init__(by_user=by_user)
        self.loaded: SkillLoaded | None = None

    async def run(self, args: Any, ctx: Any) -> SkillLoaded:
        self.loaded = await super().run(args, ctx)
        return self.loaded


class Bag(Bringing):
    """Everything that was brought, in the order in which it was."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def allow(self, rules):
        self.all.append(("allow", *rules))
        return tuple(rule for rule in rules if "odd" not in rule)

    async def tools(self, folder):
        self.all.append(("tools", folder))
        return ("tb__run",)

    async def servers(self, servers, origin):
        self.all.append(("servers", dict(servers), origin))
        if "bad" in servers:
            raise ToolFailure("The server bad has no command.")
        return ("mcp__x__y",)

    async def prompt(self, server, name, arguments):
        self.all.append(("prompt", server, name, dict(arguments)))
        return "About $ARGUMENTS and !`id`."


class Session:
    """An engine, its skill tool, and what was asked and brought."""

    def __init__(self, folder: Path, *, trusted: bool, by_user: bool, answer: bool) -> None:
        self.folder = folder.resolve()
        self.own = self.folder / "home" / ".claude" / "skills"
        self.project = self.folder / "work" / ".claude" / "skills"
        self.project.mkdir(parents=True, exist_ok=True)
        self.tool = Recorder(by_user=by_user)
        self.bag = Bag()
        self.asked: list[str] = []
        self.trusted = trusted
        self.answer = answer
        self.before_answer = lambda: None
        self.engine: Engine

    def ask(self, question):
        self.asked.append(question.summary)
        self.before_answer()
        return self.answer

    def put(self, place: Path, name: str, body: str, **header: str) -> Path:
        folder = place / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in header.items())
        (folder / "SKILL.md").write_text(f"---\ndescription: Does it.\n{lines}---\n{body}", "utf-8")
        return folder

    async def load(self, name: str, args: str = ""):
        async with asyncio.timeout(LIMIT_SECONDS):
            return await self.engine.call("skill", skill=name, args=args)

    async def text(self, name: str, args: str = "") -> str:
        reply = await self.load(name, args)
        assert reply.status == "done", reply.error
        assert self.tool.loaded is not None
        return self.tool.loaded.text


@asynccontextmanager
async def opened(folder: Path, *, trusted=False, by_user=False, answer=True, **permissions):
    session = Session(folder, trusted=trusted, by_user=by_user, answer=answer)
    is_built_in = "skill" in BUILTIN
    async with Engine(
        session.folder / "work",
        dialect="claude",
        tools=() if is_built_in else (session.tool,),
        ask=session.ask,
        settings=Settings(permissions=Permissions(**permissions), sandbox=SandboxSettings(auto_allow=False)),
    ) as engine:
        if is_built_in:
            engine.registry._tools["skill"] = session.tool
        made = engine._services._made
        made["Skills"] = Skills(
            engine.jail,
            home=str(session.folder / "home"),
            config="",
            session="s1",
            trusted=lambda: session.trusted,
            prompts=lambda: PROMPTS,
        )
        made["Bringing"] = session.bag
        session.engine = engine
        yield session


@pytest.fixture
async def session(tmp_path):
    async with opened(tmp_path) as one:
        yield one


@pytest.mark.parametrize("name", ["x", "/x", " X "])
async def test_instructions_come_without_a_question(session, name):
    folder = session.put(session.own, "x", "Do $0 in ${CLAUDE_SESSION_ID} at ${CLAUDE_SKILL_DIR}.\n")
    (folder / "notes.md").touch()

    assert await session.text(name, "this") == f"Do this in s1 at {folder}.\n"
    assert session.asked == []
    assert session.tool.loaded._replace(text="") == SkillLoaded("x", str(folder), "", files=("notes.md",))


async def test_a_project_s_instructions_come_without_a_question_too(session):
    session.put(session.project, "x", "Do it.")

    assert await session.text("x") == "Do it."
    assert (session.asked, session.bag.all) == ([], [])


async def test_an_unknown_skill_is_answered_with_the_nearest(session):
    session.put(session.own, "deploy", "x")
    reply = await session.load("deplyo")

    assert reply.status == "error"
    assert (reply.error.error_code, "Did you mean deploy?" in reply.error.message) == ("unknown-skill", True)


@pytest.mark.parametrize("args", ["x" * (MOST_ARGUMENTS_CHARS + 1), "a\0b"], ids=["long", "nul"])
async def test_arguments_have_a_limit(session, args):
    session.put(session.own, "x", "x")

    assert (await session.load("x", args)).error.error_code == "bad-arguments"


@pytest.mark.parametrize(
    ("header", "by_user", "status"),
    [
        pytest.param({"disable_model_invocation": "true"}, False, "error", id="model-kept-out"),
        pytest.param({"disable_model_invocation": "true"}, True, "done", id="user-let-in"),
        pytest.param({"user_invocable": "false"}, True, "error", id="user-kept-out"),
        pytest.param({"user_invocable": "false"}, False, "done", id="model-let-in"),
    ],
)
async def test_a_skill_says_who_may_load_it(tmp_path, header, by_user, status):
    async with opened(tmp_path, by_user=by_user) as session:
        session.put(session.own, "x", "x", **header)
        reply = await session.load("x")

    assert reply.status == status
    assert reply.error is None or reply.error.error_code == "not-invocable"


async def test_a_command_of_the_user_s_that_only_reads_runs_without_a_question(session):
    (session.folder / "work" / "a.txt").write_text("here\n", "utf-8")
    session.put(session.own, "x", "Now: !`cat a.txt`\nEnd.")

    assert await session.text("x") == "Now: here\nEnd."
    assert session.asked == []


@pytest.mark.contract("skill.commands")
async def test_a_command_that_does_more_is_asked_about_in_its_final_form(session):
    work = session.folder / "work"
    session.put(session.own, "x", "!`sh -c 'echo ran > ran; cat ran' $0`")

    assert await session.text("x", "'a; b'") == "ran"
    assert session.asked == ["run `sh -c 'echo ran > ran; cat ran' 'a; b'`"]
    assert (work / "ran").exists()


async def test_a_no_runs_nothing(tmp_path):
    async with opened(tmp_path, answer=False) as session:
        session.put(session.own, "x", "!`touch one` !`touch two`")
        reply = await session.load("x")

    assert reply.status == "rejected-by-user"
    assert sorted(os.listdir(tmp_path / "work")) == [".claude"]


async def test_a_rule_that_denies_a_command_denies_the_skill(tmp_path):
    async with opened(tmp_path, deny=("Bash(touch *)",)) as session:
        session.put(session.own, "x", "!`cat a` and !`touch two`")
        reply = await session.load("x")

    assert (reply.status, reply.error.error_code) == ("rejected-by-user", "denied-by-rule")
    assert (session.asked, (tmp_path / "work" / "two").exists()) == ([], False)


@pytest.mark.parametrize("rule", ["Skill(x)", "Skill(x *)", "Skill"])
async def test_a_rule_that_denies_a_skill_keeps_it_out(tmp_path, rule):
    async with opened(tmp_path, deny=(rule,)) as session:
        session.put(session.own, "x", "!`cat a`")
        reply = await session.load("x", "more")

    assert reply.status == "rejected-by-user"


async def test_a_file_that_may_not_be_read_is_no_skill_either(tmp_path):
    async with opened(tmp_path, deny=(f"Read(/{tmp_path.resolve()}/home/**)",)) as session:
        session.put(session.own, "x", "secret words")
        reply = await session.load("x")

    assert reply.status == "error"
    assert "secret words" not in str(reply)


async def test_no_command_of_a_project_runs_unasked_before_it_is_trusted(session):
    (session.folder / "work" / "a.txt").write_text("here\n", "utf-8")
    session.put(session.project, "x", "!`cat a.txt`")
    await session.text("x")
    session.trusted = True
    assert await session.text("x") == "here"

    assert len(session.asked) == 1
    assert "cat a.txt" in session.asked[0]


@pytest.mark.parametrize("whose", ["own", "project"])
@pytest.mark.parametrize("rule", ["Skill", "Skill(x)"])
async def test_a_rule_that_allows_a_skill_allows_none_of_its_commands(tmp_path, whose, rule):
    async with opened(tmp_path, answer=False, allow=(rule,)) as session:
        session.put(getattr(session, whose), "x", "!`touch one`")
        reply = await session.load("x")

    assert (reply.status, len(session.asked)) == ("rejected-by-user", 1)


async def test_a_rule_that_allows_a_command_allows_it_in_a_skill_of_the_user_s(tmp_path):
    async with opened(tmp_path, allow=("Bash(touch *)",)) as session:
        session.put(session.own, "x", "!`touch one`")
        reply = await session.load("x")

    assert (reply.status, session.asked) == ("done", [])


async def test_commands_run_in_order_and_their_faults_are_told_in_the_text(session):
    session.put(session.own, "x", "1 !`echo one` 2 !`echo out; exit 3` 3 !`no-such-program-here` 4 !`true`.\n")
    text = await session.text("x")

    assert text.startswith("1 one 2 out\n[`echo out; exit 3` ended with exit code 3.] 3 ")
    assert text.endswith("\n[`no-such-program-here` ended with exit code 127.] 4 .\n")


async def test_an_output_is_bounded_and_is_only_text(session):
    session.put(session.own, "x", "!`seq 100000`\n!`echo '$0 !'; printf '\\140id\\140'`\n$0")
    text = await session.text("x", "given")

    assert len(text) < 3 * tool.HALF_CHARS
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("100000\n$0 !\n`id`\ngiven")
    assert not [name for _, _, names in os.walk(session.engine.state) for name in names if name.endswith(".log")]


async def test_a_command_that_takes_too_long_is_stopped(session, monkeypatch):
    monkeypatch.setattr(tool, "SECONDS", 0.3)
    session.put(session.own, "x", "!`echo begun; sleep 600`\nEnd.")

    assert await session.text("x") == "begun\n[`echo begun; sleep 600` was stopped after 0.3 seconds.]\nEnd."


async def test_arguments_that_cannot_be_quoted_are_refused(session):
    session.put(session.own, "x", "!`echo $(cat $0)`")
    reply = await session.load("x", "a")

    assert (reply.error.error_code, session.asked) == ("unquotable", [])


async def test_a_skill_has_a_limited_number_of_commands(session):
    session.put(session.own, "x", "!`date` " * 21)

    assert (await session.load("x")).error.error_code == "bad-skill"


async def test_what_changed_while_the_user_was_asked_does_not_run(session):
    session.put(session.own, "x", "!`touch one`")
    session.before_answer = lambda: session.put(session.own, "x", "!`touch other`")
    reply = await session.load("x")

    assert (reply.status, reply.error.error_code) == ("error", "skill-changed")
    assert sorted(os.listdir(session.folder / "work")) == [".claude"]


def carrying(session: Session, place: Path, servers: str = '{"s": {"command": "x"}}', **header: str) -> Path:
    """A skill that brings all there is."""
    folder = session.put(place, "x", "Do it.", **{"allowed_tools": "Read, Bash(git *)", **header})
    (folder / "toolbox").mkdir(exist_ok=True)
    (folder / "mcp.json").write_text(servers, "utf-8")
    return folder


@pytest.mark.parametrize("whose", ["own", "project"])
async def test_a_trusted_skill_brings_what_it_carries_after_a_question(tmp_path, whose):
    async with opened(tmp_path, trusted=True) as session:
        folder = carrying(session, getattr(session, whose))
        await session.text("x")

    assert len(session.asked) == 1
    assert session.tool.loaded.brought == ("tb__run", "mcp__x__y")
    assert session.tool.loaded.allowed == ("Read", "Bash(git *)")
    assert [one for one in session.bag.all if one[1] != f"Read(/{folder}/**)"] == [
        ("allow", "Read", "Bash(git *)"),
        ("tools", str(folder / "toolbox")),
        ("servers", {"s": {"command": "x"}}, str(folder / "mcp.json")),
    ]


async def test_a_no_brings_nothing(tmp_path):
    async with opened(tmp_path, trusted=True, answer=False) as session:
        carrying(session, session.own)
        reply = await session.load("x")

    assert (reply.status, session.bag.all) == ("rejected-by-user", [])


@pytest.mark.contract("skill.trust")
async def test_a_skill_of_an_untrusted_project_brings_nothing(session):
    carrying(session, session.project)
    reply = await session.load("x")

    assert (reply.status, session.asked, session.bag.all) == ("done", [], [])
    assert any("would bring rules and tools and servers" in note for note in reply.notes)


async def test_the_rules_of_the_user_s_own_skills_need_no_question_and_those_of_a_project_do(tmp_path):
    async with opened(tmp_path, trusted=True) as session:
        session.put(session.own, "own", "x", allowed_tools="Read")
        session.put(session.project, "theirs", "x", allowed_tools="Read")
        await session.text("own")
        assert session.asked == []
        await session.text("theirs")

    assert len(session.asked) == 1


@pytest.mark.parametrize("what", ["rules", "servers", "toolbox"])
async def test_what_is_carried_must_be_what_the_user_was_asked_about(tmp_path, what):
    def change(session: Session) -> None:
        if what == "rules":
            carrying(session, session.project, allowed_tools="Bash")
        elif what == "servers":
            carrying(session, session.project, '{"s": {"command": "evil"}}')
        else:
            (session.project / "x" / "toolbox" / "evil").touch()

    async with opened(tmp_path, trusted=True) as session:
        carrying(session, session.project)
        session.before_answer = lambda: change(session)
        reply = await session.load("x")

    assert (reply.error.error_code, session.bag.all) == ("skill-changed", [])


@pytest.mark.parametrize(
    ("servers", "brought", "noted"),
    [
        pytest.param('{"mcpServers": {"s": {}}}', {"s": {}}, "", id="under-a-key"),
        pytest.param("[1]", None, "is no map from names to servers", id="list"),
        pytest.param("{", None, "cannot be read", id="no-json"),
        pytest.param("[" * 100_000, None, "cannot be read", id="deep"),
        pytest.param(" " * 300_000, None, "cannot be read: it has 300,000 bytes", id="large"),
        pytest.param('{"bad": {}}', {"bad": {}}, "The server bad has no command.", id="refused"),
    ],
)
async def test_servers_that_cannot_be_used_are_noted(session, servers, brought, noted):
    carrying(session, session.own, servers)
    reply = await session.load("x")

    assert reply.status == "done"
    assert [one[1] for one in session.bag.all if one[0] == "servers"] == ([] if brought is None else [brought])
    assert not noted or any(noted in note for note in reply.notes)


async def test_a_rule_that_is_not_understood_and_what_is_not_obeyed_are_noted(session):
    session.put(session.own, "x", "x", allowed_tools="Read odd(", hooks="{Stop: []}", context="fork")
    reply = await session.load("x")

    assert session.tool.loaded.allowed == ("Read",)
    assert any("odd( was not understood" in note for note in reply.notes)
    assert any("hooks, context is not obeyed" in note for note in reply.notes)


async def test_the_files_of_the_user_s_skill_can_be_read_afterwards(session):
    folder = session.put(session.own, "x", "x")
    await session.text("x")

    assert session.bag.all == [("allow", f"Read(/{folder}/**)")]


async def test_the_rule_for_that_lets_read_and_not_write(tmp_path):
    folder = tmp_path.resolve() / "home" / ".config" / "amp" / "skills" / "x"
    async with opened(tmp_path, answer=False, allow=(f"Read(/{folder}/**)",)) as session:
        session.put(folder.parent, "x", "x")
        (folder / "notes.md").write_text("words\n", "utf-8")
        (folder / "out").symlink_to(tmp_path)
        (tmp_path / "outside.md").write_text("other\n", "utf-8")
        calls = [
            Call("Read", {"file_path": str(folder / "notes.md")}),
            Call("Write", {"file_path": str(folder / "new.md"), "content": "x"}),
            Call("Read", {"file_path": str(folder / "out" / "outside.md")}),
        ]
        replies = await session.engine.run(calls)

    assert [reply.status for reply in replies] == ["done", "rejected-by-user", "rejected-by-user"]


async def test_a_skill_that_is_a_link_to_the_home_folder_does_not_open_it(session, monkeypatch):
    home = session.folder / "home"
    monkeypatch.setenv("HOME", str(home))
    session.own.mkdir(parents=True)
    (home / "SKILL.md").write_text("---\ndescription: x\n---\nx", "utf-8")
    (session.own / "x").symlink_to(home)
    await session.text("x")

    assert session.bag.all == []


async def test_a_prompt_of_a_server_is_asked_for_and_its_text_is_data(session):
    assert await session.text("mcp__docs__ask", "cats and dogs") == "About $ARGUMENTS and !`id`."

    assert session.bag.all == [("prompt", "docs", "ask", {"topic": "cats and dogs"})]


async def test_a_prompt_that_lacks_an_argument_says_which(session):
    reply = await session.load("docs:ask")

    assert (reply.error.error_code, "needs topic" in reply.error.message) == ("bad-arguments", True)


async def test_cancelling_ends_the_command(session):
    session.put(session.own, "x", "!`echo begun; sleep 600`")
    events = session.engine.events()
    call = asyncio.create_task(session.engine.run([Call("skill", {"skill": "x"})]))
    async with asyncio.timeout(LIMIT_SECONDS):
        async for event in events:
            if isinstance(event, Progress):
                break
        session.engine.cancel()
        (reply,) = await call

    assert (reply.status, session.tool.loaded) == ("cancelled", None)


async def test_what_a_skill_says_cannot_steer_a_terminal(session):
    session.put(session.own, "x", "a\x1b[2Jb\u202ec")
    reply = await session.load("x")

    assert "\x1b" not in reply.text
    assert "\u202e" not in reply.text
