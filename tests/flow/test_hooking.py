"""Hooks around calls: what they are told, what they may change, and what they can never do."""

import asyncio
import json
import os

import pytest

from ferrule import Call, Engine, Hook, Reported, Settings
from ferrule.dialects import FAMILIES
from ferrule.permissions.trust import Trust, project_files
from ferrule.settings import HookSetting, Permissions
from tests.fifo import Fifo


class Asked(list):
    """Somebody who remembers every question, and answers them all alike."""

    def __init__(self, *, allow):
        self.allow = allow

    def __call__(self, question):
        self.append(question)
        return self.allow


class Heard:
    """A hook that remembers what it was told, and says what it was given to say."""

    def __init__(self, said=None):
        self.told = []
        self.said = said

    def __call__(self, given):
        self.told.append(given)
        return self.said(given) if callable(self.said) else self.said


def pre(**fields):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def opened(tmp_path, *hooks, dialect="claude", ask=None, **settings):
    (tmp_path / "work").mkdir(exist_ok=True)
    return Engine(
        tmp_path / "work",
        dialect=dialect,
        hooks=hooks,
        ask=ask,
        settings=Settings(**settings),
        state=tmp_path / "state",
    )


READS = {
    "amp": ("Read", {"path": "a.txt"}),
    "claude": ("Read", {"file_path": "a.txt"}),
    "wayland": ("Read", {"file_path": "a.txt"}),
    "ah": ("read", {"path": "a.txt"}),
    "gemini": ("read_file", {"file_path": "a.txt"}),
    "opencode": ("read", {"filePath": "a.txt"}),
    "pi": ("read", {"path": "a.txt"}),
}


@pytest.mark.parametrize("dialect", READS)
@pytest.mark.contract("hook.words")
async def test_a_hook_is_told_in_one_familys_words_whatever_the_session_speaks(tmp_path, dialect):
    heard = Heard()
    async with opened(tmp_path, Hook("PreToolUse", "Read", function=heard), dialect=dialect) as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        name, given = READS[dialect]
        (reply,) = await engine.run([Call(name, given)])

    assert reply.ok, reply
    (told,) = heard.told
    assert (told["tool_name"], told["tool_input"]["file_path"]) == ("Read", "a.txt")
    assert told["session_id"] == engine.session_id


@pytest.mark.parametrize("dialect", [name for name in FAMILIES if name != "codex"])
async def test_a_refusal_reaches_the_model_and_nothing_runs(tmp_path, dialect):
    said = pre(permissionDecision="deny", permissionDecisionReason="not today")
    async with opened(tmp_path, Hook("PreToolUse", "Edit|Write", function=Heard(said)), dialect=dialect) as engine:
        (reply,) = await engine.run([Call("Write", {"file_path": "a.txt", "content": "x"})])

    assert (reply.status, reply.text) == ("rejected-by-user", "not today")
    assert not (tmp_path / "work/a.txt").exists()


@pytest.mark.contract("hook.input")
async def test_a_changed_input_is_validated_and_decided_on_like_any_other(tmp_path):
    asked = Asked(allow=True)
    said = pre(updatedInput={"command": "rm -rf build"})
    hook = Hook("PreToolUse", "Bash", function=Heard(said))
    rules = Permissions(deny=("Bash(rm *)",))
    async with opened(tmp_path, hook, ask=asked, permissions=rules) as engine:
        denied = await engine.call("Bash", command="ls")
    wrong = Hook("PreToolUse", "Bash", function=Heard(pre(updatedInput={"cmnd": ["ls"]})))
    async with opened(tmp_path, wrong) as engine:
        bad = await engine.call("Bash", command="ls")

    assert denied.status == "rejected-by-user"
    assert asked == []
    assert (bad.status, bad.error.error_code) == ("error", "bad-arguments")


async def test_a_changed_input_runs_in_the_place_of_the_first(tmp_path):
    said = pre(updatedInput={"file_path": "b.txt"})
    async with opened(tmp_path, Hook("PreToolUse", "Read", function=Heard(said)), dialect="amp") as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        (tmp_path / "work/b.txt").write_text("two\n")
        (reply,) = await engine.run([Call("Read", {"path": "a.txt"}, "toolu_1")])

    assert (reply.id, reply.name) == ("toolu_1", "Read")
    assert "two" in reply.text


async def test_the_order_of_a_message_stays_when_a_hook_changes_what_a_call_touches(tmp_path):
    """The write goes to another file than the model said; the read of that file behind it sees what was written."""

    def elsewhere(given):
        return pre(updatedInput={**given["tool_input"], "file_path": "b.txt"}, permissionDecision="allow")

    async with opened(tmp_path, Hook("PreToolUse", "Write", function=elsewhere)) as engine:
        write = Call("Write", {"file_path": "a.txt", "content": "new\n"})
        replies = await engine.run([write, Call("Read", {"file_path": "b.txt"})])

    assert [reply.ok for reply in replies] == [True, True]
    assert "new" in replies[1].text


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(Permissions(), "done", id="no-rule"),
        pytest.param(Permissions(ask=("Write",)), "rejected-by-user", id="a-rule-that-asks"),
        pytest.param(Permissions(deny=("Edit(a.txt)",)), "error", id="a-rule-that-denies-the-file"),
        pytest.param(Permissions(deny=("Write",)), "rejected-by-user", id="a-rule-that-denies"),
        pytest.param(Permissions(mode="plan"), "rejected-by-user", id="plan-mode"),
    ],
)
@pytest.mark.contract("hook.allow")
async def test_a_hooks_yes_spares_only_a_question_that_no_rule_demands(tmp_path, rules, expected):
    hook = Hook("PreToolUse", "Write", function=Heard(pre(permissionDecision="allow")))
    async with opened(tmp_path, hook, permissions=rules) as engine:
        reply = await engine.call("Write", file_path="a.txt", content="x")

    assert reply.status == expected, reply


async def test_a_hooks_yes_reads_no_secret(tmp_path):
    async with opened(tmp_path, Hook("PreToolUse", function=Heard(pre(permissionDecision="allow")))) as engine:
        (tmp_path / "work/.env").write_text("KEY=s3cr3t")
        reply = await engine.call("Read", file_path=".env")

    assert not reply.ok
    assert "s3cr3t" not in json.dumps(reply.as_dict())


async def test_a_hook_that_asks_makes_a_person_decide(tmp_path):
    asked = Asked(allow=False)
    hook = Hook("PreToolUse", "Read", function=Heard(pre(permissionDecision="ask", permissionDecisionReason="why?")))
    async with opened(tmp_path, hook, ask=asked) as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        reply = await engine.call("Read", file_path="a.txt")

    assert (reply.status, [one.why for one in asked]) == ("rejected-by-user", ["A hook wants it asked: why?"])
    assert asked[0].summary == "Read: read a.txt"
    assert reply.text == "The user did not allow this: Read: read a.txt. A hook wants it asked: why?"


async def test_a_hook_that_raises_makes_a_person_decide(tmp_path):
    def broken(given):
        raise RuntimeError("boom")

    asked = Asked(allow=True)
    hook = Hook("PreToolUse", "Read", function=broken)
    async with opened(tmp_path, hook, ask=asked) as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        stream = engine.events()
        reply = await engine.call("Read", file_path="a.txt")
        warnings = engine.warnings
    reported = [event.sentence async for event in stream if isinstance(event, Reported)]

    assert reply.ok
    assert len(asked) == 1
    assert any("boom" in warning for warning in warnings)
    assert any("boom" in sentence for sentence in reported)


async def test_what_a_hook_wants_known_comes_with_the_reply_and_steers_no_screen(tmp_path):
    before = Heard(pre(additionalContext="mind the gap \x1b[2J"))
    after = Heard({"decision": "block", "reason": "tests fail", "hookSpecificOutput": {"additionalContext": "more"}})
    hooks = (Hook("PreToolUse", "Read", function=before), Hook("PostToolUse", "Read", function=after))
    async with opened(tmp_path, *hooks) as engine:
        (tmp_path / "work/a.txt").write_text("one\n")
        reply = await engine.call("Read", file_path="a.txt")

    assert reply.ok
    assert any("mind the gap" in note for note in reply.notes)
    assert any("tests fail" in note for note in reply.notes)
    assert not any("\x1b" in note for note in reply.notes)
    assert "one" in json.dumps(after.told[0]["tool_response"])


async def test_a_failed_call_is_told_as_one(tmp_path):
    success, failure = Heard(), Heard()
    hooks = (Hook("PostToolUse", function=success), Hook("PostToolUseFailure", function=failure))
    async with opened(tmp_path, *hooks, dialect="wayland", ask=lambda question: True) as engine:
        reply = await engine.call("Bash", command="exit 3")

    assert reply.status == "error"
    assert (len(success.told), len(failure.told)) == (0, 1)


async def test_the_session_is_told_of_and_may_set_the_environment(tmp_path):
    begun, ended = Heard(), Heard()
    command = 'echo "export GREETING=hello" >> "$CLAUDE_ENV_FILE"; echo "Be kind."'
    hooks = (
        Hook("SessionStart", command=command),
        Hook("SessionStart", function=begun),
        Hook("SessionEnd", function=ended),
    )
    async with opened(tmp_path, *hooks, ask=lambda question: True) as engine:
        reply = await engine.call("Bash", command="echo $GREETING")
        beginning = engine.beginning

    assert "hello" in reply.text
    assert beginning == ("Be kind.",)
    assert begun.told[0]["source"] == "startup"
    assert len(ended.told) == 1


async def test_hooks_hear_that_somebody_is_asked(tmp_path):
    heard = Heard()
    async with opened(tmp_path, Hook("Notification", function=heard), ask=lambda question: True) as engine:
        await engine.call("Write", file_path="a.txt", content="x")

    assert "a.txt" in heard.told[0]["message"]


@pytest.mark.contract("hook.trust")
async def test_a_project_s_hooks_run_only_when_it_is_trusted(tmp_path):
    (tmp_path / "work/.claude").mkdir(parents=True)
    entry = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/ran; exit 2"}]}
    (tmp_path / "work/.claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    (tmp_path / "work/a.txt").write_text("one\n")
    async with opened(tmp_path) as engine:
        before = await engine.call("Read", file_path="a.txt")
        (warning,) = engine.warnings
    assert not (tmp_path / "ran").exists()
    assert warning.endswith("are not run: look at them, then `ferrule permissions trust`.")
    Trust(str(tmp_path / "state")).grant(str(tmp_path / "work"), project_files(str(tmp_path / "work")))
    async with opened(tmp_path) as engine:
        after = await engine.call("Read", file_path="a.txt")

    assert (before.status, after.status) == ("done", "rejected-by-user")
    assert (tmp_path / "ran").exists()


async def test_hooks_of_the_settings_run(tmp_path):
    hook = HookSetting(command="echo no >&2; exit 2", matcher="Write")
    async with opened(tmp_path, hooks={"PreToolUse": (hook,)}) as engine:
        reply = await engine.call("Write", file_path="a.txt", content="x")

    assert (reply.status, reply.text.strip()) == ("rejected-by-user", "no")


async def test_a_call_can_be_cancelled_while_its_hooks_run(tmp_path):
    hook = Hook("PreToolUse", "Read", command="echo > ../begun; exec sleep 300")
    begun = Fifo(tmp_path / "begun")
    async with opened(tmp_path, hook) as engine:
        running = asyncio.create_task(engine.call("Read", file_path="a.txt"))
        await begun.said()
        engine.cancel()
        reply = await asyncio.wait_for(running, 60)

    assert reply.status == "cancelled"


async def test_every_call_of_a_message_gets_its_answer_when_a_hook_refuses_one(tmp_path):
    def only_a(given):
        refused = given["tool_input"].get("file_path") == "a.txt"
        return pre(permissionDecision="deny", permissionDecisionReason="a") if refused else None

    async with opened(tmp_path, Hook("PreToolUse", "Read", function=only_a)) as engine:
        for name in "ab":
            (tmp_path / f"work/{name}.txt").write_text(name)
        replies = await engine.run([Call("Read", {"file_path": f"{name}.txt"}) for name in "abab"])

    assert [reply.status for reply in replies] == ["rejected-by-user", "done"] * 2


async def test_a_call_whose_tool_refuses_its_arguments_is_told_as_a_failure(tmp_path):
    failure = Heard()
    async with opened(tmp_path, Hook("PostToolUseFailure", "Read", function=failure)) as engine:
        reply = await engine.call("Read", file_path="missing.txt")

    assert not reply.ok
    assert "missing.txt" in json.dumps(failure.told[0])


async def test_the_next_call_on_a_file_waits_for_the_hooks_of_the_one_before(tmp_path):
    begun = Fifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "go")
    hook = Hook("PostToolUse", "Write", command="echo > ../begun; read line < ../go; echo formatted > a.txt")
    async with opened(tmp_path, hook, ask=lambda question: True) as engine:
        write = Call("Write", {"file_path": "a.txt", "content": "raw\n"})
        running = asyncio.create_task(engine.run([write, Call("Read", {"file_path": "a.txt"})]))
        await begun.said()
        await asyncio.to_thread((tmp_path / "go").write_text, "go\n")
        replies = await asyncio.wait_for(running, 60)

    assert "formatted" in replies[1].text
