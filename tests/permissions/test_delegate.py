"""A program that decides about calls: what it is given, what its exit code means, and that no decision is a refusal."""

import asyncio
import json
import os

import pytest

from ferrule.permissions.question import DelegateDecision, delegate

LIMIT_SECONDS = 30


class Desk:
    """A workspace, and a folder on PATH beside it."""

    def __init__(self, top, monkeypatch):
        self.top = top.resolve()
        self.work, self.bin = self.top / "work", self.top / "bin"
        self.work.mkdir()
        self.bin.mkdir()
        monkeypatch.setenv("PATH", f"{self.work}/bin{os.pathsep}{self.bin}{os.pathsep}{os.environ['PATH']}")

    def program(self, body, name="decide", folder=None):
        path = (folder or self.bin) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return str(path)

    async def ask(self, program="decide", tool="Bash", arguments=None, seconds=LIMIT_SECONDS, thread="T-1"):
        async with asyncio.timeout(LIMIT_SECONDS):
            return await delegate(
                program,
                tool,
                {"cmd": "ls"} if arguments is None else arguments,
                thread_id=thread,
                workspace_roots=[str(self.work)],
                seconds=seconds,
            )


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return Desk(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("exit 0", DelegateDecision("allow", ""), id="0-allows"),
        pytest.param("echo hm >&2; exit 0", DelegateDecision("allow", ""), id="0-allows-whatever-it-says"),
        pytest.param("exit 1", DelegateDecision("ask", ""), id="1-asks"),
        pytest.param("echo sure? >&2; exit 1", DelegateDecision("ask", "sure?"), id="1-asks-with-a-reason"),
        pytest.param("echo 'Not on main.' >&2; exit 2", DelegateDecision("deny", "Not on main."), id="2-refuses"),
        pytest.param("echo no >&2; exit 77", DelegateDecision("deny", "no"), id="more-refuses"),
        pytest.param(
            "echo seen; exit 2", DelegateDecision("deny", "decide refused this call (exit code 2)."), id="silently"
        ),
        pytest.param(
            r"printf '\033[31mno\033[0m \033]0;x\007\rway\000' >&2; exit 2",
            DelegateDecision("deny", "no way"),
            id="colours",
        ),
    ],
)
async def test_the_exit_code_decides(desk, body, expected):
    desk.program(body)

    assert await desk.ask() == expected


async def test_it_gets_the_call(desk):
    seen = desk.top / "seen"
    desk.program(f'cat > {seen}; echo "$AGENT $AGENT_TOOL_NAME $AMP_THREAD_ID" >> {seen}; exit 0')
    arguments = {"cmd": "é\n\ud800", "n": [1, None, {"x": True}]}

    assert await desk.ask(arguments=arguments, tool="Bash") == DelegateDecision("allow", "")
    given, _, told = seen.read_text().rpartition("amp ")
    assert json.loads(given) == arguments
    assert told == "Bash T-1\n"


async def test_it_gets_no_secrets_and_no_code_to_load(desk, monkeypatch):
    for name in ("GITHUB_TOKEN", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "LD_PRELOAD"):
        monkeypatch.setenv(name, str(desk.work))
    desk.program(f'env > {desk.top}/env; printf %s "$PATH" > {desk.top}/path; exit 0')

    assert (await desk.ask()).action == "allow"
    names = {line.partition("=")[0] for line in (desk.top / "env").read_text().splitlines()}
    assert not names & {"GITHUB_TOKEN", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "LD_PRELOAD"}
    assert str(desk.work) not in (desk.top / "path").read_text()


async def test_a_program_may_be_given_by_its_whole_path(desk):
    assert (await desk.ask(desk.program("exit 0", name="else where"))).action == "allow"


async def test_a_program_of_the_workspace_never_decides(desk):
    inside = desk.program("exit 0", folder=desk.work / "bin")
    out = desk.bin / "linked"
    out.symlink_to(inside)
    (desk.work / "folder").symlink_to(desk.bin)
    desk.program("exit 0", name="there")

    for program in (
        "decide",
        inside,
        "linked",
        str(out),
        f"{desk.work}/folder/there",
        f"{desk.bin}/../work/bin/decide",
    ):
        said = await desk.ask(program)
        assert said.action == "deny"
        assert "was to decide" in said.message


async def test_the_one_on_path_outside_is_taken_instead(desk):
    desk.program("exit 0", folder=desk.work / "bin")
    desk.program("exit 1")

    assert (await desk.ask()).action == "ask"


@pytest.mark.parametrize(
    "program", ["nowhere", "/nowhere/at/all", "./decide", "bin/decide", "", ".", "..", "a\0b", "/"]
)
async def test_a_program_that_is_not_there_refuses(desk, program):
    desk.program("exit 0")

    assert (await desk.ask(program)).action == "deny"


async def test_a_program_that_cannot_start_refuses(desk):
    path = desk.bin / "broken"
    path.write_bytes(b"\x7fELF nothing of the kind")
    path.chmod(0o755)

    assert "cannot be started" in (await desk.ask("broken")).message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("sleep 600", "did not decide within 0.2 seconds", id="too-slow"),
        pytest.param("trap '' TERM; while :; do sleep 1; done", "did not decide", id="will-not-end"),
        pytest.param("yes; exit 0", "wrote more than", id="says-too-much"),
    ],
)
async def test_a_program_that_goes_on_and_on_refuses(desk, body, message):
    desk.program(body)

    said = await desk.ask(seconds=LIMIT_SECONDS if "yes" in body else 0.2)
    assert said.action == "deny"
    assert message in said.message


async def test_a_program_that_dies_refuses(desk):
    desk.program("kill -9 $$")

    assert await desk.ask() == DelegateDecision(
        "deny", "decide was to decide about this call, but it ended by signal 9."
    )


async def test_a_program_that_does_not_read_decides_all_the_same(desk):
    desk.program("exit 2")

    assert (await desk.ask(arguments={"x": "y" * 1_000_000})).action == "deny"


async def test_only_so_much_of_its_reason_is_passed_on(desk):
    desk.program("head -c 100000 /dev/zero | tr '\\000' x >&2; exit 2")

    said = await desk.ask()
    assert said.message == "x" * 2000 + " …"


@pytest.mark.parametrize("arguments", [{"x": object()}, {"x": float("nan")}, {"x": b"y"}])
async def test_arguments_that_are_no_json_refuse(desk, arguments):
    desk.program("exit 0")

    assert (await desk.ask(arguments=arguments)).action == "deny"


@pytest.mark.parametrize(("tool", "thread"), [("a\0b", "T"), ("a", "\0"), ("x" * 500_000, "T")])
async def test_a_call_that_cannot_be_told_about_is_refused(desk, tool, thread):
    desk.program("exit 0")

    assert (await desk.ask(tool=tool, thread=thread)).action == "deny"


async def test_cancelling_ends_the_program(desk):
    started = desk.top / "started"
    os.mkfifo(started)
    desk.program(f"echo $$ > {started}; exec sleep 600")
    asking = asyncio.create_task(desk.ask())
    number = int(await asyncio.wait_for(asyncio.to_thread(started.read_text), LIMIT_SECONDS))
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
