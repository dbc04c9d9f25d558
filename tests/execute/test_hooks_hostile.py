"""Hooks that do wrong: each harms nothing but its own word, and nothing of it is left running."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from ferrule.hooks import After, Hook, HookVerdict
from ferrule.system import tree
from tests.support.test_process import children, descriptors, living

from .hooking import LIMIT_SECONDS, Desk

LINUX = sys.platform == "linux"


@pytest.fixture
def desk(tmp_path):
    one = Desk(tmp_path)
    yield one
    one.close()
    assert list((one.top / "roster").glob("*")) == []


@pytest.fixture
def mark(tmp_path) -> Iterator[str]:
    """A time to sleep for that no other process has."""
    one = f"302.{os.getpid()}{abs(hash(str(tmp_path))) % 100_000:05d}"
    yield one
    for pid in living(one):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    before, had = set(descriptors()), children()
    yield
    assert set(descriptors()) <= before  # what a thread of another test had open may be gone
    assert children() <= had


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("sleep {mark}", "did not end within 0.3 seconds", id="too-slow"),
        pytest.param("trap '' TERM; sleep {mark}; sleep {mark}", "did not end within", id="will-not-end"),
        pytest.param("sleep {mark} & sleep {mark}", "did not end within", id="with-a-child"),
        pytest.param("kill -9 $$", "was ended by signal 9", id="dies"),
        pytest.param("no-such-program-at-all", "could not be run (exit code 127)", id="is-not-there"),
        pytest.param("/dev/null", "could not be run (exit code 126)", id="is-no-program"),
    ],
)
@pytest.mark.contract("hook.closed")
async def test_no_word_before_a_call_is_a_question(desk, mark, command, why):
    seconds = 0.3 if "sleep" in command else LIMIT_SECONDS
    said = await desk.before(Hook("PreToolUse", command=command.format(mark=mark), seconds=seconds, source="s.json"))

    assert said.verdict == "ask"
    assert why in said.reason
    assert desk.reports == [said.reason]
    assert "of s.json" in said.reason
    assert living(mark) == []


@pytest.mark.usefixtures("nothing_left")
async def test_a_flood_before_a_call_is_a_question(desk, mark):
    said = await desk.before(f"yes & sleep {mark}")

    assert (said.verdict, "printed more than 1,048,576 bytes" in said.reason) == ("ask", True)
    assert living(mark) == []


async def test_no_word_after_a_call_is_only_told(desk, mark):
    said = await desk.after(Hook("PostToolUse", command=f"sleep {mark}", seconds=0.2), "yes", "kill -9 $$")

    assert said == After()
    assert [report.partition("` ")[2] for report in desk.reports] == [
        "did not end within 0.2 seconds.",
        "printed more than 1,048,576 bytes.",
        "was ended by signal 9.",
    ]
    assert living(mark) == []


@pytest.mark.parametrize("command", ["a\0b", "x" * 3_000_000, "\ud800"])
async def test_what_cannot_be_started_is_a_question(desk, command):
    said = await desk.before(Hook("PreToolUse", command=command))

    assert (said.verdict, "could not be started" in said.reason) == ("ask", True)
    assert len(said.reason) < 1000


async def test_a_workspace_that_is_gone_is_a_question(desk):
    said = await desk.before("true", workspace=str(desk.top / "gone"))

    assert (said.verdict, "ENOENT" in said.reason) == ("ask", True)


@pytest.mark.parametrize("told", [{"x": object()}, {"x": float("nan")}, {"x": b"y"}])
async def test_a_call_that_cannot_be_told_is_a_question(desk, told):
    assert (await desk.before("true", told=told)).verdict == "ask"


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("exec <&-; echo No. >&2; exit 2", id="closes-its-input"),
        pytest.param("echo No. >&2; exit 2", id="ignores-its-input"),
        pytest.param("head -c 1 > /dev/null; echo No. >&2; exit 2", id="reads-a-little"),
        pytest.param("head -c 5000000 /dev/zero > /dev/null; echo No. >&2; exec >&-; exit 2", id="closes-its-output"),
    ],
)
async def test_a_hook_need_not_read(desk, body):
    assert await desk.before(body, told={"x": "y" * 2_000_000}) == HookVerdict("deny", "No.")


@pytest.mark.usefixtures("nothing_left")
async def test_errors_without_end_do_not_fill_the_memory(desk):
    said = await desk.before("head -c 30000000 /dev/zero | tr '\\0' x >&2; exit 2")

    assert said == HookVerdict("deny", "x" * 10_000 + " …")


@pytest.mark.usefixtures("nothing_left")
async def test_what_a_hook_leaves_running_ends_with_it(desk, mark):
    said = await desk.before(f'sleep {mark} & echo \'{{"decision": "approve"}}\'')

    assert said == HookVerdict("allow")
    assert living(mark) == []


@pytest.mark.usefixtures("nothing_left")
async def test_a_daemon_ends_with_its_hook(desk, mark):
    if not LINUX:
        # Elsewhere whoever has left the group cannot be found: only what stays in it is promised.
        assert await desk.before(f"sh -c 'exec sleep {mark}' & true") == HookVerdict()
        assert living(mark) == []
        return
    daemon = f"setsid sh -c 'echo $$ > pid; exec sleep {mark}' > /dev/null 2>&1 < /dev/null &"
    said = await desk.before(f"{daemon} until [ -s pid ]; do :; done; echo No. >&2; exit 2")

    assert said == HookVerdict("deny", "No.")
    assert living(mark) == []


async def test_a_hook_that_has_ended_is_forgotten(desk):
    """Somebody else gets the id of its process; and who leads alone takes in the orphans."""
    before = set(tree._LED)
    await desk.before("exit 0")

    assert before == tree._LED


async def test_bytes_that_are_no_text_are_a_text(desk):
    assert await desk.before("printf '\\377\\000' >&2; exit 2") == HookVerdict("deny", "\ufffd\0")


@pytest.mark.usefixtures("nothing_left")
async def test_cancelling_ends_all_of_them(desk, mark):
    for name in ("a", "b"):
        os.mkfifo(desk.work / name)
    commands = [f"echo $$ > {name}; sleep {mark} & sleep {mark}" for name in ("a", "b")]
    asking = asyncio.create_task(desk.before(*commands))
    async with asyncio.timeout(LIMIT_SECONDS):
        for name in ("a", "b"):
            await asyncio.to_thread((desk.work / name).read_text)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert living(mark) == []


async def test_a_cancelled_start_leaves_no_file_for_variables(desk, mark):
    os.mkfifo(desk.work / "file")
    hooks = desk.hooks(Hook("SessionStart", command=f"echo $CLAUDE_ENV_FILE > file; sleep {mark}"))
    starting = asyncio.create_task(hooks.fire("SessionStart", source="startup"))
    async with asyncio.timeout(LIMIT_SECONDS):
        path = (await asyncio.to_thread((desk.work / "file").read_text)).strip()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert path
    assert not os.path.exists(path)


async def test_hundreds_of_calls_at_once_are_all_told(desk):
    hooks = desk.hooks(Hook("PreToolUse", command="echo No. >&2; exit 2"))
    async with asyncio.timeout(LIMIT_SECONDS):
        said = await asyncio.gather(*(hooks.before(["Bash"], "Bash", {}, str(number)) for number in range(100)))

    assert said == [HookVerdict("deny", "No.")] * 100


async def test_a_running_hook_is_on_the_roster(desk):
    for name in ("started", "go"):
        os.mkfifo(desk.work / name)
    asking = asyncio.create_task(desk.before("echo x > started; read line < go"))
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.to_thread((desk.work / "started").read_text)
        listed = [entry.command for entry in desk.roster.entries()]
        await asyncio.to_thread((desk.work / "go").write_text, "x\n")
        await asking

    assert [command.endswith("read line < go") for command in listed] == [True]
    assert desk.roster.entries() == []


def raises(_):
    raise ValueError("boom")


def leaves(_):
    sys.exit(0)


async def cancels(_):
    raise asyncio.CancelledError


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError


def unspeakable(_):
    raise UnspeakableError


@pytest.mark.parametrize(
    ("function", "why"),
    [
        pytest.param(raises, "`raises` raised ValueError: boom.", id="raises"),
        pytest.param(leaves, "`leaves` raised RuntimeError: SystemExit: 0.", id="wants-to-end-the-program"),
        pytest.param(cancels, "`cancels` cancelled itself.", id="cancels-itself"),
        pytest.param(unspeakable, "`unspeakable` raised UnspeakableError: it cannot say why.", id="cannot-say-why"),
        pytest.param(lambda _: "deny", "answered with a string instead of an object.", id="answers-with-a-text"),
        pytest.param(lambda _: False, "answered with false instead of an object.", id="answers-with-no"),
        pytest.param(lambda _: {"decision": object()}, "raised TypeError", id="answers-with-an-object"),
        pytest.param(lambda _: {"reason": "\ud800"}, "raised UnicodeEncodeError", id="answers-with-half-a-character"),
        pytest.param(lambda: None, "raised TypeError", id="takes-nothing"),
    ],
)
async def test_a_function_that_does_wrong_is_a_question(desk, function, why):
    said = await desk.before(Hook("PreToolUse", function=function))

    assert said.verdict == "ask"
    assert why in said.reason


async def test_a_function_that_blocks_holds_up_nobody(desk):
    go = threading.Event()

    def block(_):
        go.wait(LIMIT_SECONDS)

    try:
        said = await desk.before(
            Hook("PreToolUse", function=block, seconds=0.1), Hook("PreToolUse", function=lambda _: None)
        )
    finally:
        go.set()

    assert (said.verdict, "did not end within 0.1 seconds" in said.reason) == ("ask", True)
