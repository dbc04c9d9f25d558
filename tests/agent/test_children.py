"""Subagents: rights within their parent's, budgets of their own, one order of calls, and what is told of them."""

import asyncio
import json
import os

import pytest

from ferrule.agent import Began, Called, ChildBegan, ChildEnded, Ended, Limits, Spoke, TurnBegan
from ferrule.agent.subagents import model_name
from ferrule.core.call import Done, Started
from ferrule.core.services import Subagent
from ferrule.models.cues import calls, fails, hangs, said
from ferrule.permissions import Answer, CallbackAsker, Nobody
from ferrule.wire import Usage

from .stage import Stage, check_valid, results, words
from .test_loop import until


def task(prompt="child", kind="general-purpose", **more):
    return ("Task", {"description": "help", "prompt": prompt, "subagent_type": kind, **more})


def read(name="a.py"):
    return ("Read", {"file_path": f"${{workspace}}/{name}"})


def write(name="b.txt", text="x"):
    return ("Write", {"file_path": f"${{workspace}}/{name}", "content": text})


async def test_a_child_has_its_own_history_and_its_last_message_is_the_result(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    cues = (calls(task()), calls(read(), prompt="child"), said("x is 1", prompt="child"), said("1", expect="x is 1"))
    async with Stage(tmp_path, *cues) as stage:
        ended = await stage.run("What is x?")

        assert ended.text == "1"
        assert len(stage.agent.turns) == 4
        heard = [asked.turns for asked in stage.model.asked if "child" in words(asked.turns[1])]
        assert words(heard[0][1]) == "child"
        assert "What is x?" not in "".join(map(words, heard[-1]))
    began, over = stage.of(ChildBegan), stage.of(ChildEnded)
    assert [(one.name, one.call_id) for one in began] == [("general-purpose", "c1")]
    assert (over[0].child, over[0].reason, over[0].spent.turns) == (began[0].child, "end", 2)
    inner = [event for event in stage.events if event.thread == began[0].child]
    assert {type(event) for event in inner} >= {Began, Called, Ended}


async def test_a_child_whose_last_edit_failed_has_not_done_its_part_of_a_kraken(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"{name} = old\n")

    def edit(name, old):
        path = f"${{workspace}}/{name}"
        return ("edit_file", {"path": path, "old_str": old, "new_str": "new"})

    cues = (
        calls(("kraken", {"task": "Renew.", "files": ["a.py", "b.py"]})),
        calls(edit("a.py", "old"), prompt="Your file is ${workspace}/a.py"),
        said("Done.", prompt="Your file is ${workspace}/a.py"),
        calls(edit("b.py", "older"), prompt="Your file is ${workspace}/b.py"),
        said("I could not do it: the text is not there.", prompt="Your file is ${workspace}/b.py"),
        said("ok"),
    )
    async with Stage(tmp_path, *cues, dialect="amp") as stage:
        await stage.run()
        kraken = next(reply for reply in stage.replies if reply.name == "kraken")

    assert kraken.error is not None
    assert kraken.error.error_code == "part-failed"
    assert "its last edit failed" in kraken.error.message
    assert (tmp_path / "a.py").read_text() == "a.py = old\n"


async def test_an_explorer_cannot_write(tmp_path):
    cues = (calls(task(kind="Explore")), calls(write(), prompt="child"), said("no", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

    assert not (tmp_path / "b.txt").exists()
    denied = [reply for reply in stage.replies if reply.name == "Write"]
    assert [reply.status for reply in denied] == ["rejected-by-user"]


@pytest.mark.parametrize("kind", ["Explore", "Plan"])
async def test_who_finds_out_can_look_at_code_and_at_the_web_and_change_nothing(tmp_path, kind):
    async with Stage(tmp_path, calls(task(kind=kind)), said("done", prompt="child"), said("ok")) as stage:
        await stage.run()

        tools = set(stage.of(Began)[1].tools)
    assert tools == {"Read", "Glob", "Grep", "LSP", "WebFetch", "WebSearch", "Bash", "TaskOutput", "recall"}


@pytest.mark.parametrize(
    "kind",
    [pytest.param("enter", id="EnterPlanMode"), pytest.param("exit", id="ExitPlanMode")],
)
async def test_a_child_neither_enters_nor_leaves_plan_mode(tmp_path, kind):
    name = "EnterPlanMode" if kind == "enter" else "ExitPlanMode"
    cues = (calls(task()), calls((name, {}), prompt="child"), said("no", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

        tools = [set(event.tools) for event in stage.of(Began)]
        assert name in tools[0]
        assert name not in tools[1]
    assert [reply.ok for reply in stage.replies if reply.name == name] == [False]


async def test_plan_mode_binds_children_too(tmp_path):
    cues = (
        calls(("EnterPlanMode", {})),
        calls(task()),
        calls(write(), ("Bash", {"command": "touch c.txt"}), prompt="child"),
        said("no", prompt="child"),
        said("ok"),
    )
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

    assert os.listdir(tmp_path) == []
    assert [reply.ok for reply in stage.replies if reply.name in {"Write", "Bash"}] == [False, False]


async def test_a_child_has_no_right_that_its_parent_has_not(tmp_path):
    """T5: what the session's rules deny is denied to a child, and what nobody allows asks."""
    asked = []

    def no(question):
        asked.append((question.who, question.summary))
        return Answer(allow=False)

    cues = (calls(task()), calls(write(), prompt="child"), said("no", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues, ask=CallbackAsker(no)) as stage:
        await stage.run()

    assert asked == [("general-purpose", "Write: write b.txt")]
    assert not (tmp_path / "b.txt").exists()


async def test_what_the_user_always_allows_counts_for_children(tmp_path):
    asked = []

    def always(question):
        asked.append(question.who)
        return Answer(allow=True, always=True)

    cues = (
        calls(write("one.txt")),
        calls(task()),
        calls(write("two.txt"), prompt="child"),
        said("done", prompt="child"),
        said("ok"),
    )
    async with Stage(tmp_path, *cues, ask=CallbackAsker(always)) as stage:
        await stage.run()

    assert asked == [""]
    assert sorted(os.listdir(tmp_path)) == ["one.txt", "two.txt"]


async def test_children_run_side_by_side_and_never_collide_on_a_file(tmp_path):
    (tmp_path / "n.txt").write_text("")
    grow = ("Bash", {"command": "n=$(cat n.txt); sleep 0.05; echo \"$n+\" | tr -d '\\n' > n.txt"})
    cues = [calls(*(task(f"child {at}") for at in range(4)))]
    for at in range(4):
        cues += [calls(grow, prompt=f"child {at}"), said(f"done {at}", prompt=f"child {at}")]
    async with Stage(tmp_path, *cues, said("ok")) as stage:
        await stage.run()

        assert [words(one).split("\n")[0] for one in results(stage.agent.turns[2])] == [f"done {at}" for at in range(4)]
    assert (tmp_path / "n.txt").read_text() == "++++"


async def test_more_children_than_slots_all_finish(tmp_path):
    (tmp_path / "settings.toml").write_text("[limits]\nparallel = 2\n[loop]\nchildren = 2\n")
    os.environ["FERRULE_SETTINGS"] = str(tmp_path / "settings.toml")
    (tmp_path / "a.py").write_text("x\n")
    cues = [calls(*(task(f"child {at}") for at in range(6)))]
    for at in range(6):
        cues += [calls(read(), prompt=f"child {at}"), said("done", prompt=f"child {at}")]
    async with Stage(tmp_path, *cues, said("ok")) as stage:
        async with asyncio.timeout(60):
            assert (await stage.run()).reason == "end"


async def test_children_of_children_work_down_to_the_depth_that_is_set(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    cues = (
        calls(task("outer")),
        calls(task("inner"), prompt="outer"),
        calls(read(), prompt="inner"),
        said("deep", prompt="inner"),
        said("got deep", prompt="outer", expect="deep"),
        said("ok", expect="got deep"),
    )
    async with Stage(tmp_path, *cues) as stage:
        assert (await stage.run()).text == "ok"
        shown = [set(event.tools) for event in stage.of(Began)]

    assert ["Task" in tools for tools in shown] == [True, True, False]


async def test_a_child_past_its_turns_says_so(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    many = [calls(("Glob", {"pattern": f"*{at}"}), text=f"look {at}", prompt="child") for at in range(9)]
    async with Stage(tmp_path, calls(task(max_turns=2)), *many, said("ok")) as stage:
        await stage.run()

        said_ = words(results(stage.agent.turns[2])[0])
        assert "look 1" in said_
        assert "all of its turns" in said_
    assert stage.of(ChildEnded)[0].reason == "turns"


async def test_a_child_whose_model_fails_is_a_failed_call_and_the_parent_goes_on(tmp_path):
    async with Stage(
        tmp_path, calls(task()), fails("overloaded", "Too many others.", prompt="child"), said("I do it.")
    ) as stage:
        ended = await stage.run()

        result = results(stage.agent.turns[2])[0]
        assert ended.text == "I do it."
        assert result.failed
        assert "Too many others." in words(result)


async def test_what_children_take_counts_against_the_parents_budget(tmp_path):
    usage = Usage(100, 20)
    cues = (
        calls(task(), usage=usage),
        calls(("Glob", {"pattern": "*"}), usage=usage, prompt="child"),
        said("done", usage=usage, prompt="child"),
        calls(("Glob", {"pattern": "*"}), usage=usage),
    )
    async with Stage(tmp_path, *cues, limits=Limits(tokens=400)) as stage:
        ended = await stage.run()

    assert ended.reason == "tokens"
    assert ended.spent.usage.input == 400
    assert ended.spent.turns == 2


async def test_interrupting_the_parent_stops_the_child_and_its_calls(tmp_path):
    cues = (calls(task()), calls(("Bash", {"command": "sleep 60"}), prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues) as stage:

        def stop(event):
            if isinstance(event, Called) and isinstance(event.call, Started) and event.call.name == "Bash":
                asyncio.get_running_loop().call_soon(stage.agent.interrupt)

        stage.on = stop
        async with asyncio.timeout(30):
            ended = await stage.run()

        assert ended.reason == "interrupted"
        check_valid(stage.agent.turns)
    assert [one.reason for one in stage.of(ChildEnded)] == ["interrupted"]


async def test_a_child_in_the_background_is_read_later_and_announced_once(tmp_path):
    cues = (
        calls(task(run_in_background=True)),
        said("found it", prompt="child"),
        calls(("TaskOutput", {"task_id": "${result:c1:a[0-9a-f]{12}}", "block": True, "timeout": 20000})),
        said("ok", expect="found it"),
    )
    async with Stage(tmp_path, *cues) as stage:
        ended = await stage.run()

        assert ended.text == "ok"
        assert "async" in words(results(stage.agent.turns[2])[0]).lower() or "background" in words(
            results(stage.agent.turns[2])[0]
        )


async def test_the_end_of_a_background_child_is_told_with_the_next_prompt(tmp_path):
    cues = (calls(task(run_in_background=True)), said("later", prompt="child"), said("started"), said("I see."))
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()
        await until(stage, ChildEnded)
        await asyncio.sleep(0)
        await stage.run("And?")

        assert "is done" in words(stage.agent.turns[-2])


async def test_a_background_child_is_stopped_by_its_id_and_at_the_end_of_the_session(tmp_path):
    cues = (
        calls(task("one", run_in_background=True), task("two", run_in_background=True)),
        hangs("a", prompt="one"),
        hangs("b", prompt="two"),
        calls(("TaskStop", {"task_id": "${result:c1:a[0-9a-f]{12}}"})),
        said("stopped"),
    )
    async with asyncio.timeout(60):
        async with Stage(tmp_path, *cues) as stage:
            assert (await stage.run()).text == "stopped"
    assert sorted(one.reason for one in stage.of(ChildEnded)) == ["interrupted", "interrupted"]


async def test_a_child_is_resumed_with_its_own_history(tmp_path):
    cues = (
        calls(task("first words")),
        said("I am ready", prompt="first words"),
        calls(
            (
                "Task",
                {
                    "description": "d",
                    "prompt": "go on",
                    "subagent_type": "general-purpose",
                    "resume": "${result:c1:a[0-9a-f]{12}}",
                },
            )
        ),
        said("went on", prompt="first words"),
        said("ok", expect="went on"),
    )
    async with Stage(tmp_path, *cues) as stage:
        assert (await stage.run()).text == "ok"
        again = stage.model.asked[-2].turns
        assert [words(turn) for turn in again[1:]] == ["first words", "I am ready", "go on"]


async def test_a_childs_read_is_not_its_parents(tmp_path):
    """What a child has read, the parent has not: its edit of an unread file is refused."""
    (tmp_path / "a.py").write_text("x = 1\n")
    edit = ("Edit", {"file_path": "${workspace}/a.py", "old_string": "1", "new_string": "2"})
    cues = (calls(task()), calls(read(), prompt="child"), said("read it", prompt="child"), calls(edit), said("ok"))
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

    assert (tmp_path / "a.py").read_text() == "x = 1\n"
    assert "has not been read" in next(reply.text for reply in stage.replies if reply.name == "Edit")


async def test_without_a_person_a_child_is_refused_what_asks(tmp_path):
    cues = (calls(task()), calls(write(), prompt="child"), said("no", prompt="child"), said("ok"))
    async with Stage(tmp_path, *cues, ask=Nobody()) as stage:
        await stage.run()

    assert stage.replies[0].status == "rejected-by-user"


async def test_so_many_children_run_at_once_at_each_depth_of_a_session(tmp_path):
    (tmp_path / "settings.toml").write_text("[loop]\nchildren = 2\n")
    os.environ["FERRULE_SETTINGS"] = str(tmp_path / "settings.toml")
    cues = [calls(*(task(f"outer {at}") for at in range(3)))]
    for at in range(3):
        inner = [f"inner {at}{one}" for one in "abc"]
        cues += [calls(*map(task, inner), prompt=f"outer {at}"), said("got them", prompt=f"outer {at}")]
        for name in inner:
            cues += [calls(("Glob", {"pattern": "*"}), prompt=name), said("done", prompt=name)]
    async with Stage(tmp_path, *cues, said("ok")) as stage:
        async with asyncio.timeout(60):
            assert (await stage.run()).reason == "end"

        outer = stage.agent.thread
    now, most = {True: 0, False: 0}, {True: 0, False: 0}
    for event in stage.events:
        if isinstance(event, ChildBegan | ChildEnded):
            is_outer = event.thread == outer
            now[is_outer] += 1 if isinstance(event, ChildBegan) else -1
            most[is_outer] = max(most[is_outer], now[is_outer])
    assert len(stage.of(ChildBegan)) == 12
    assert most == {True: 2, False: 2}


async def test_only_so_many_are_left_in_the_background(tmp_path, monkeypatch):
    monkeypatch.setattr("ferrule.agent.subagents._REMEMBERED", 2)
    cues = (
        calls(*(task(f"child {at}", run_in_background=True) for at in range(3))),
        *(hangs("a", prompt=f"child {at}") for at in range(3)),
        said("ok"),
    )
    async with asyncio.timeout(60), Stage(tmp_path, *cues) as stage:
        await stage.run()

        heard = [words(one) for one in results(stage.agent.turns[2])]
    assert ["2 agents work in the background already" in one for one in heard] == [False, False, True]


async def test_those_that_children_left_in_the_background_are_counted_too(tmp_path, monkeypatch):
    monkeypatch.setattr("ferrule.agent.subagents._REMEMBERED", 1)
    cues = (
        calls(task("outer", run_in_background=True)),
        calls(task("inner", run_in_background=True), prompt="outer"),
        said("alone", prompt="outer", expect="1 agents work in the background already"),
        calls(("TaskOutput", {"task_id": "${result:c1:a[0-9a-f]{12}}", "block": True, "timeout": 20_000})),
        said("ok", expect="alone"),
    )
    async with asyncio.timeout(60), Stage(tmp_path, *cues) as stage:
        assert (await stage.run()).text == "ok"


async def test_one_of_the_background_that_is_stopped_leaves_what_it_said_and_took(tmp_path):
    agent = "${result:c1:a[0-9a-f]{12}}"
    cues = (
        calls(task(run_in_background=True)),
        said("started"),
        calls(("Glob", {"pattern": "*"}), text="I look around.", usage=Usage(100, 20), prompt="child"),
        hangs("half", prompt="child"),
        calls(("TaskStop", {"task_id": agent})),
        calls(("TaskOutput", {"task_id": agent, "block": True, "timeout": 0})),
        said("ok"),
    )
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()
        await until(stage, TurnBegan, 4)
        await stage.run("Enough.")

        assert stage.agent.spent.usage.input == 100
        (stopped,) = stage.session._helpers.children.list()
    assert (stopped.status, stopped.turns, stopped.calls, stopped.input_tokens) == ("stopped", 1, 1, 100)
    (heard,) = (reply.text for reply in stage.replies if reply.name == "TaskOutput")
    assert "I look around." in heard
    assert "(It was stopped before it was done.)" in heard


SPAWNED = "${result:c1:a[0-9a-f]{12}}"


def wait_agent():
    return calls(("wait_agent", {"targets": [SPAWNED], "timeout_ms": 20_000}))


async def test_an_agent_is_told_more_while_it_works_and_goes_on_when_it_is_done(tmp_path):
    cues = (
        calls(("spawn_agent", {"message": "child", "task_name": "t"})),
        calls(("send_input", {"target": SPAWNED, "message": "more words"})),
        wait_agent(),
        calls(("send_input", {"target": SPAWNED, "items": [{"type": "text", "text": "once again"}]})),
        wait_agent(),
        calls(("followup_task", {"target": SPAWNED, "message": "at last"})),
        wait_agent(),
        said("ok", expect="three"),
        calls(("exec_command", {"cmd": "until [ -e go ]; do sleep 0.02; done"}), prompt="child"),
        said("one", prompt="child", expect="more words"),
        said("two", prompt="child", expect="once again"),
        said("three", prompt="child", expect="at last"),
    )
    async with Stage(tmp_path, *cues, dialect="codex") as stage:

        def let_go(event):
            if isinstance(event, Called) and isinstance(event.call, Done) and event.call.reply.name == "send_input":
                (tmp_path / "go").touch()

        stage.on = let_go
        async with asyncio.timeout(60):
            ended = await stage.run()

        assert (ended.reason, ended.text) == ("end", "ok"), ended
    sent = [reply.text for reply in stage.replies if reply.name in {"send_input", "followup_task"}]
    assert ['"submission_id":"c2"' in sent[0], '"submission_id":"c4"' in sent[1]] == [True, True]
    assert len({event.child for event in stage.of(ChildBegan)}) == 1
    assert [event.spent.turns for event in stage.of(ChildEnded)] == [2, 1, 1]


async def test_agents_are_listed_with_how_far_they_are(tmp_path):
    cues = (
        calls(("spawn_agent", {"message": "child", "task_name": "look"})),
        wait_agent(),
        calls(("spawn_agent", {"message": "other", "task_name": "wait"})),
        calls(
            ("list_agents", {}),
            ("list_agents", {"path_prefix": "look"}),
            ("list_agents", {"path_prefix": "x"}),
            ("resume_agent", {"id": SPAWNED}),
            ("resume_agent", {"id": "a0"}),
        ),
        said("ok"),
        said("found", prompt="child"),
        hangs("on and on", prompt="other"),
    )
    async with asyncio.timeout(60), Stage(tmp_path, *cues, dialect="codex") as stage:
        await stage.run()

        every, one, none, again, nobody = [words(one) for one in results(stage.agent.turns[-2])]
    known = json.loads(every)["agents"]
    assert [(row["agent_status"], row["last_task_message"]) for row in known] == [
        ({"completed": "found"}, "look"),
        ("running", "wait"),
    ]
    assert json.loads(one) == {"agents": known[:1]}
    assert json.loads(none) == {"agents": []}
    assert json.loads(again) == {"status": {"completed": "found"}}
    assert "There is no agent with the id 'a0'" in nobody


async def test_two_messages_at_once_are_heard_by_one_agent(tmp_path):
    cues = (
        calls(("spawn_agent", {"message": "child", "task_name": "t"})),
        wait_agent(),
        calls(*(("send_input", {"target": SPAWNED, "message": text}) for text in ("this", "that"))),
        wait_agent(),
        said("ok", expect="both"),
        said("one", prompt="child"),
        said("both", prompt="child", expect="that"),
    )
    async with asyncio.timeout(60), Stage(tmp_path, *cues, dialect="codex") as stage:
        assert (await stage.run()).text == "ok"

    assert [reply.ok for reply in stage.replies if reply.name == "send_input"] == [True, True]
    assert len(stage.of(ChildEnded)) == 2


async def test_an_agent_that_is_interrupted_hears_what_it_is_told_at_once(tmp_path):
    cues = (
        calls(("spawn_agent", {"message": "child", "task_name": "t"})),
        said("started"),
        calls(("send_input", {"target": SPAWNED, "message": "leave that", "interrupt": True})),
        wait_agent(),
        said("ok", expect="left it"),
        hangs("for ever", prompt="child"),
        said("left it", prompt="child", expect="leave that"),
    )
    async with asyncio.timeout(60), Stage(tmp_path, *cues, dialect="codex") as stage:
        speaks = asyncio.Event()
        stage.on = lambda event: (
            speaks.set() if isinstance(event, Spoke) and event.thread != stage.agent.thread else None
        )
        await stage.run()
        await speaks.wait()
        assert (await stage.run("Enough.")).text == "ok"
    assert [event.reason for event in stage.of(ChildEnded)] == ["interrupted", "end"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param({"target": "a0", "message": "x"}, "There is no agent with the id 'a0'", id="nobody"),
        pytest.param({"target": SPAWNED}, "message: must say what", id="nothing"),
        pytest.param({"target": SPAWNED, "items": [{"type": "image"}]}, "items: only text", id="a-picture"),
        pytest.param({"target": SPAWNED, "message": "x" * 400_001}, "at most 400,000 characters", id="too-long"),
    ],
)
async def test_what_cannot_be_sent_is_said(tmp_path, call, says):
    cues = (
        calls(("spawn_agent", {"message": "child", "task_name": "t"})),
        wait_agent(),
        calls(("send_input", call)),
        said("ok"),
        said("done", prompt="child"),
    )
    async with Stage(tmp_path, *cues, dialect="codex") as stage:
        await stage.run()

    (reply,) = (reply for reply in stage.replies if reply.name == "send_input")
    assert not reply.ok
    assert says in reply.text


async def test_who_only_reads_is_not_told_of_a_plan_mode_that_nobody_is_in(tmp_path):
    cues = (
        calls(task(kind="Explore")),
        calls(("Bash", {"command": "touch b.txt"}), prompt="child"),
        said("no", prompt="child"),
        said("ok"),
    )
    async with Stage(tmp_path, *cues) as stage:
        await stage.run()

    (denied,) = (reply for reply in stage.replies if reply.name == "Bash")
    assert denied.status == "rejected-by-user"
    assert "you only read" in denied.text
    assert "plan" not in denied.text.lower()


CLOUD, AT_HOME = "anthropic:claude-opus-5-5", "ollama:qwen3"


@pytest.mark.parametrize(
    ("wanted", "roles", "own", "expected"),
    [
        pytest.param("haiku", {}, CLOUD, "haiku", id="at-the-same-host"),
        pytest.param("haiku", {}, AT_HOME, "", id="never-at-another"),
        pytest.param("haiku", {"haiku": CLOUD}, AT_HOME, "haiku", id="unless-the-settings-say-so"),
        pytest.param("haiku", {"Explore": "ollama:small"}, AT_HOME, "ollama:small", id="then-what-its-kind-has"),
        pytest.param("openai:gpt-5.5", {}, AT_HOME, "openai:gpt-5.5", id="by-its-whole-name"),
        pytest.param("inherit", {"Explore": "x:y"}, CLOUD, "x:y", id="its-kind"),
        pytest.param("", {}, CLOUD, "", id="nothing-said"),
    ],
)
def test_a_short_name_leads_to_no_other_host_than_the_session_s(wanted, roles, own, expected):
    """Agents of projects say `model: sonnet` everywhere: with a model at home, nothing is sent away for that."""
    assert model_name(Subagent("Explore", wanted, None, ""), roles, own) == expected


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        pytest.param("wayland", ("Delegate", {"goal": "child", "toolsets": ["Raed", "Read", "file"]}), id="toolsets"),
        pytest.param("claude", task(kind="Explore", allowed_tools=["Raed", "Write"]), id="allowed-tools"),
    ],
)
async def test_a_tool_that_nobody_has_is_said_to_be_lacking(tmp_path, dialect, call):
    async with Stage(tmp_path, calls(call), said("done", prompt="child"), said("ok"), dialect=dialect) as stage:
        await stage.run()

    (reply,) = stage.replies
    assert reply.ok
    assert [note for note in reply.notes if "have no tool" in note] == [
        "You have no tool 'Raed', so the agent works without."
    ]
