"""Plan mode at the policy: only reading and the plan pass, whatever rules, grants, hooks and modes say."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.core.access import EVERYTHING, MODE, Access
from ferrule.core.errors import ConfigError, Denied, ToolFailure
from ferrule.core.services import Planning
from ferrule.dialects import COMING
from ferrule.permissions import MODES, YES, Answer, Case, Everybody, Nobody, Question, parse_mode
from ferrule.permissions.plan_mode import Planner
from ferrule.permissions.policy import StricterPolicy
from ferrule.permissions.rules import Rule, RuleSet
from ferrule.tools import BUILTIN
from tests.catalog import LOOKS, WRITES_PLAN
from tests.rows import each_kept_row, each_row
from tests.scripted import Scripted

from .place import Place

STANDINGS = ("default", "acceptEdits", "bypassPermissions", "dontAsk")


class Everything:
    """Binds whatever it is asked about."""

    def binds(self, subject: Any) -> bool:
        return True


ALLOW_ALL = RuleSet((Rule("allow", "*", "*", binds=Everything()),), ordered=False, source="test", layer="user")


def place_of(tmp_path: Path, standing: str = "default", *, allow_all: bool = False) -> tuple[Place, Planner]:
    place = Place(tmp_path, Scripted())
    policy = place.gate.policy
    policy.standing = parse_mode(standing)
    if allow_all:
        policy.add(ALLOW_ALL)
    planner = Planner(
        place.jail,
        place.gate._guard,
        policy,
        folder=".ferrule/plans",
        ask=place.gate.put,
        allow=lambda texts: texts,
        exit_tool="ExitPlanMode",
    )
    return place, planner


def test_whoever_adds_a_tool_says_whether_a_planning_session_has_it():
    assert BUILTIN.keys() | COMING.keys() | {"recall"} >= LOOKS | WRITES_PLAN
    assert BUILTIN.keys() - LOOKS - WRITES_PLAN == {
        *("notebook_edit", "delete", "undo", "format", "shell_stop", "request_permissions", "kraken", "check"),
        *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
    }


ACCESSES = {
    "nothing": ((), True),
    "read": ((Access.read("a.txt"),), True),
    "look-at-a-process": ((Access.process("1", mode="read"),), True),
    "host": ((Access.host("example.org"),), True),
    "write": ((Access.write("a.txt"),), False),
    "restore": ((Access.restore("a.txt"),), False),
    "notes": ((Access.write(".amp/notes.md"),), False),
    "read-and-write": ((Access.read("a.txt"), Access.write("b.txt")), False),
    "type-into-a-process": ((Access.process("1"),), False),
    "stop-a-process": ((Access("process", "write", "1", "own"),), False),
    "post-to-a-host": ((Access.host("example.org", mode="write"),), False),
    "server": ((Access.server("s"),), False),
    "server-that-says-it-reads": ((Access.server("s", mode="read"),), False),
    "everything": ((EVERYTHING,), False),
    "a-kind-that-nobody-knows": ((Access("folder", "read", "a"),), False),  # type: ignore[arg-type]
}
COMMANDS = {
    "ls": True,
    "cat a.txt | grep x": True,
    "git log --oneline": None,  # where it is no repository it asks, and so it does not pass
    "touch b.txt": False,
    "echo hi > b.txt": False,
    "pytest": False,
    "make test": False,
    "python3 -c 'open(1)'": False,
    "sed -i s/a/b/ a.txt": False,
    "ls; rm a.txt": False,
    "$(touch b)": False,
    "npm test": False,
}


@each_row("allow_all", [False, True])
@each_row("standing", STANDINGS)
@each_row("kind", ACCESSES)
def test_only_reading_passes_in_every_mode(tmp_path, kind, standing, allow_all):
    place, planner = place_of(tmp_path, standing, allow_all=allow_all)
    planner.enter()
    touches, reads = ACCESSES[kind]
    for tool in BUILTIN:
        verdict = place.gate.policy.decide(place.case(tool, *touches)).verdict
        if not reads or tool not in LOOKS:
            assert verdict == "deny", tool
        elif kind in ("nothing", "read", "look-at-a-process") or tool in ("web_fetch", "web_search"):
            assert verdict == "allow", tool
        else:
            assert (verdict == "deny") is (standing == "dontAsk" and not allow_all), tool


@each_row("allow_all", [False, True])
@each_row("standing", STANDINGS)
@each_row(("command", "reads"), COMMANDS.items())
def test_commands_pass_only_where_they_only_read(tmp_path, command, reads, standing, allow_all):
    place, planner = place_of(tmp_path, standing, allow_all=allow_all)
    (place.work / "a.txt").write_text("x\n")
    planner.enter()
    verdict = place.gate.policy.decide(place.command(command)).verdict

    if reads is not None:
        assert verdict == ("allow" if reads else "deny")


def test_a_reading_command_does_not_leave_the_sandbox_in_plan_mode(tmp_path):
    place, planner = place_of(tmp_path, "bypassPermissions")
    planner.enter()
    case = place.command("ls")._replace(input={"outside": True})

    assert place.gate.policy.decide(case).verdict == "deny"


@each_row("standing", STANDINGS)
@each_row("tool", sorted(WRITES_PLAN))
def test_the_plan_itself_can_be_written(tmp_path, tool, standing):
    place, planner = place_of(tmp_path, standing)
    path = planner.enter("Add a login!").path
    case = place.case(tool, Access.write(path))
    place.gate.forbid(case.touches)

    assert place.gate.policy.decide(case).verdict == "allow"
    assert Path(path).parent == place.work / ".ferrule" / "plans"
    assert Path(path).name.endswith("-add-a-login.md")


@each_row("tool", [*sorted(set(BUILTIN) - WRITES_PLAN), "mcp__files__write", "tb__write", "my_write", "Write"])
def test_no_other_tool_writes_the_plan(tmp_path, tool):
    place, planner = place_of(tmp_path, "bypassPermissions", allow_all=True)
    path = planner.enter().path

    assert place.gate.policy.decide(place.case(tool, Access.write(path))).verdict == "deny"


def others(place: Place, path: str) -> dict[str, Case]:
    """Calls that come near the plan, and must not pass."""
    write = Access.write(path)
    name = Path(path).name
    return {
        "another-file-too": Case("1", "patch", "patch", (write, Access.write(str(place.work / "a.txt")))),
        "another-file-beside-it": Case("1", "write", "write", (Access.write(path + "x"),)),
        "its-folder": Case("1", "write", "write", (Access.write(str(Path(path).parent)),)),
        "another-case": Case("1", "write", "write", (Access.write(path.upper()),)),
        "a-name-in-another-case": Case("1", "write", "write", (Access.write(path[:-3] + ".MD"),)),
        "dots": Case("1", "write", "write", (Access.write(str(Path(path).parent / ".." / "plans" / name)),)),
        "by-a-link": Case("1", "write", "write", (write,), spelled={path: str(place.work / "link.md")}),
        "restored": Case("1", "undo", "undo", (Access.restore(path),)),
        "deleted": Case("1", "delete", "delete", (write,)),
        "by-a-subagent": Case("1", "write", "write", (write,), context="subagent"),
        "by-a-tool-of-that-name": Case("1", "write", "write", (write,), builtin=False),
        "with-a-command": Case("1", "format", "format", (Access.command("fmt", str(place.work)), write)),
        "with-everything": Case("1", "write", "write", (write, EVERYTHING)),
        "no-access": Case("1", "write", "write", ()),
        "by-redirection": Case("1", "Bash", "shell", (Access.command(f"echo x > {path}", str(place.work)),)),
        "a-reading-tool-of-elsewhere": Case("1", "read", "read", (Access.read(path),), builtin=False),
    }


@pytest.mark.parametrize("standing", STANDINGS)
def test_whatever_only_comes_near_the_plan_is_refused(tmp_path, standing):
    place, planner = place_of(tmp_path, standing, allow_all=True)
    path = planner.enter().path
    found = {name: place.gate.policy.decide(case).verdict for name, case in others(place, path).items()}

    assert found == dict.fromkeys(found, "deny")


def test_the_guard_opens_that_one_file_and_nothing_beside_it(tmp_path):
    place, planner = place_of(tmp_path)
    path = planner.enter().path
    place.gate.forbid((Access.write(path),))
    for other in (path + ".md", path.upper(), str(Path(path).parent / "other.md"), str(place.work / ".ferrule/x.md")):
        with pytest.raises(ToolFailure, match="programs run or obey"):
            place.gate.forbid((Access.write(other),))
    with pytest.raises(ToolFailure, match="programs run or obey"):
        place.gate.forbid((Access.write(path),), {path: str(place.work / ".ferrule" / "link.md")})


async def test_grants_hooks_and_delegates_do_not_beat_it(tmp_path):
    place = Place(tmp_path, Scripted(Answer(allow=True, always=True)))
    command = place.command("touch b.txt")
    await place.admit(command)
    policy = place.gate.policy
    delegating = Rule("delegate", "*", "delegate", binds=Everything(), to="/bin/true")
    policy.add(RuleSet((delegating,), ordered=False, source="test", layer="user"))
    policy.plan = str(place.work / "plan.md")
    for case in (command, command._replace(hooked=("allow", "I say so")), place.case("write", Access.write("a"))):
        with pytest.raises(Denied, match="Plan mode is on"):
            await place.admit(case)


async def test_a_yes_that_comes_after_planning_began_does_not_count(tmp_path):
    class Slow:
        async def ask(self, question: Question) -> Answer:
            place.gate.policy.plan = str(place.work / "plan.md")
            return YES

    place = Place(tmp_path, Slow())
    with pytest.raises(Denied, match="Plan mode is on"):
        await place.admit(place.case("write", Access.write("a.txt")))


async def test_nothing_is_widened_while_a_call_runs_in_plan_mode(tmp_path):
    place, planner = place_of(tmp_path)
    planner.enter()

    assert await place.gate.approve(place.command("ls"), "run it outside the sandbox", place.blocked.append) is False


def test_a_rule_of_the_user_s_still_denies_or_asks_about_the_plan(tmp_path):
    for action, verdict in (("deny", "deny"), ("ask", "ask")):
        place, planner = place_of(tmp_path)
        rule = Rule(action, "*", f"{action} all", binds=Everything())  # type: ignore[arg-type]
        place.gate.policy.add(RuleSet((rule,), ordered=False, source="test", layer="user"))
        case = place.case("write", Access.write(planner.enter().path))

        assert place.gate.policy.decide(case).verdict == verdict


def test_a_subagent_is_held_too_whichever_mode_it_wants(tmp_path):
    place, planner = place_of(tmp_path, "bypassPermissions")
    child = StricterPolicy(place.gate.policy, parse_mode("acceptEdits"))
    write = place.case("write", Access.write("a.txt"))._replace(context="subagent")
    assert child.decide(write).verdict == "allow"
    planner.enter()
    assert child.decide(write).verdict == "deny"
    planner.leave()
    assert child.decide(write).verdict == "allow"


@pytest.mark.parametrize("tool", ["enter_plan", "exit_plan"])
async def test_a_subagent_neither_enters_nor_leaves(tmp_path, tool):
    place, _ = place_of(tmp_path, "bypassPermissions")
    with pytest.raises(Denied, match="subagent"):
        await place.admit(place.case(tool)._replace(context="subagent"))


async def test_a_subagent_s_plan_mode_refuses_and_knows_whether_its_session_plans(tmp_path):
    _, planner = place_of(tmp_path)
    own = Planning.under(planner)
    assert own.reminder() == ""
    planner.enter()
    assert "only reading" in own.reminder()
    for refused in (own.enter, own.leave, own.readable):
        with pytest.raises(ToolFailure, match="subagent"):
            refused()
    with pytest.raises(ToolFailure, match="subagent"):
        await own.propose("x", (), None)  # type: ignore[arg-type]


def test_entering_needs_no_question_in_any_mode(tmp_path):
    for standing in MODES:
        place, _ = place_of(tmp_path, standing.name)

        assert place.gate.policy.decide(place.case("enter_plan", MODE)).verdict == "allow"


@pytest.mark.parametrize("standing", STANDINGS)
def test_the_earlier_mode_comes_back(tmp_path, standing):
    place, planner = place_of(tmp_path, standing)
    assert (planner.is_on, planner.plan_path, planner.reminder()) == (False, "", "")
    first = planner.enter(by="model")
    again = planner.enter(by="model")
    assert (first.already, again) == (False, first._replace(already=True))
    assert planner.is_on
    assert "ExitPlanMode" in planner.reminder()
    assert planner.leave() == standing == place.gate.policy.standing.name
    assert not planner.is_on


def test_a_mode_that_the_user_chooses_meanwhile_stays(tmp_path):
    place, planner = place_of(tmp_path, "acceptEdits")
    planner.enter()
    place.gate.policy.standing = parse_mode("dontAsk")

    assert planner.leave() == "dontAsk"


def test_a_session_that_begins_in_plan_mode_ends_it_in_the_default_one(tmp_path):
    place, planner = place_of(tmp_path, "plan")
    write = place.case("write", Access.write(planner.plan_path))
    assert planner.is_on
    assert place.gate.policy.decide(write).verdict == "allow"
    assert planner.enter(by="model").already
    assert planner.leave() == "default"
    assert not planner.is_on


def test_the_mode_alone_holds_as_tightly_before_anybody_has_made_a_plan(tmp_path):
    place = Place(tmp_path, Nobody())
    place.gate.policy.standing = parse_mode("plan")
    decide = place.gate.policy.decide

    assert decide(place.case("read", Access.read("a"))).verdict == "allow"
    assert decide(place.case("my_tool")).verdict == "deny"
    assert decide(place.case("write", Access.write(".ferrule/plans/a.md"))).verdict == "deny"


@pytest.mark.parametrize(
    ("begun_by", "everybody"), [pytest.param("model", True, id="model"), pytest.param("user", False, id="user")]
)
async def test_a_yes_beforehand_ends_only_what_the_model_began(begun_by, everybody):
    question = Question(
        kind="plan", call_id="1", name="x", summary="s", touches=(), input={"plan": "p", "begun_by": begun_by}
    )

    assert (await Everybody().ask(question)).allow is everybody
    nobody = await Nobody().ask(question)
    assert not nobody.allow
    assert "Nobody is here to approve" in nobody.message


@each_kept_row
def test_a_folder_that_cannot_be_used_is_refused(tmp_path, folder):
    place = Place(tmp_path, Nobody())
    (place.work / "real").mkdir()
    (place.work / "link").symlink_to(place.work / "real")
    (place.work / "file").write_text("")
    policy = place.gate.policy
    planner = Planner(place.jail, place.gate._guard, policy, folder=folder, ask=place.gate.put, allow=tuple)
    with pytest.raises(ConfigError, match=r"plan\.folder"):
        planner.enter()
    assert not planner.is_on


MODE_NAMES = st.sampled_from(["read", "write", "restore"])
KINDS = st.sampled_from(["path", "process", "host", "server", "everything", "command"])
KEYS = st.sampled_from(["PLAN", "PLAN/x", "a.txt", "ls", "touch x", "mode", "", "*", ".amp/notes.md"])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from([*BUILTIN, "mcp__a__b", "tb__x", "own", "Write"]),
    touches=st.lists(st.tuples(KINDS, MODE_NAMES, KEYS, st.sampled_from(["", "own", "WORK"])), max_size=3),
    standing=st.sampled_from([one.name for one in MODES]),
    allow_all=st.booleans(),
    context=st.sampled_from(["thread", "subagent"]),
    hooked=st.sampled_from([("", ""), ("allow", "x"), ("ask", "x")]),
    builtin=st.booleans(),
)
def test_no_call_that_writes_anything_but_the_plan_ever_passes(
    tmp_path, tool, touches, standing, allow_all, context, hooked, builtin
):
    place, planner = place_of(tmp_path, standing, allow_all=allow_all)
    path = planner.enter().path
    real = tuple(
        Access(
            kind,
            mode,
            key.replace("PLAN", path) if key.startswith("PLAN") else str(place.work / key) if kind == "path" else key,
            str(place.work) if kind == "command" else folder.replace("WORK", str(place.work)),
        )
        for kind, mode, key, folder in touches
    )
    case = Case("1", tool, tool, real, context=context, hooked=hooked, builtin=builtin)
    try:
        decision = asyncio.run(place.gate.decide_case(case))
    finally:
        planner.leave()
    if decision.verdict == "deny":
        return
    assert builtin
    changes = [
        one
        for one in real
        if one.kind in ("server", "everything")
        or (one.kind == "command" and one.key not in {"", "ls"})
        or (one.mode != "read" and one.kind != "command")
    ]
    if real == (MODE,):
        assert tool in LOOKS
    elif changes:
        assert {*changes} == {*real} == {Access.write(path)}
        assert tool in WRITES_PLAN
        assert context == "thread"
