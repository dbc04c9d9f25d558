"""Executables as tools: their names, what is written about them, how they are called, and that none is left."""

import asyncio
import contextlib
import hashlib
import os
import time
from pathlib import Path

import pytest
from tests.fifo import Fifo
from tests.rows import each_row
from tests.sources.custom.conftest import Calls

from ferrule.core.access import EVERYTHING
from ferrule.core.errors import ToolFailure
from ferrule.sources.custom import (
    ProbeOptions,
    ProgramArgs,
    ProgramTool,
    ToolFolder,
    about,
    load_program,
    split,
    tool_name,
)

ASKING = ProbeOptions(seconds=30)


def program(path: Path, body: str, *, head: str = "#!/bin/sh") -> Path:
    path.write_text(f"{head}\n{body}\n")
    path.chmod(0o755)
    return path


async def loaded(path: Path, asking: ProbeOptions = ASKING) -> ProgramTool:
    (made,) = (await load_program(str(path), ToolFolder(str(path.parent)), asking)).tools
    assert isinstance(made, ProgramTool)
    return made


async def test_load_cli_tool_with_md(tmp_path: Path):
    path = program(tmp_path / "deploy.sh", "exit 9")
    Path(f"{path}.md").write_text(
        "---\ndescription: Deploy the application\n---\n\nRun deploy only after all tests pass.\n\n"
    )
    made = await loaded(path)
    assert (made.name, made.aliases, made.words) == ("deploy_sh", ("deploy.sh",), "Deploy the application")
    assert made.guidance == "Run deploy only after all tests pass."
    assert (made.source, made.origin, list(made.schema["properties"])) == ("custom", str(path), ["args"])
    assert "required" not in made.schema


async def test_load_cli_tool_with_help(tmp_path: Path):
    path = program(tmp_path / "count", 'test "$1" = --help && printf "\\n  Counts things.  \\nmore\\n"')
    made = await loaded(path)
    assert (made.name, made.words, made.guidance, made.aliases) == ("count", "Counts things.", "", ())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("exit 0", id="silent"),
        pytest.param("echo wrong >&2; exit 2", id="only-errors"),
        pytest.param("printf '\\033[2J \\007 \\n'", id="only-control"),
    ],
)
async def test_a_program_that_says_nothing_is_called_by_its_name(tmp_path: Path, body: str):
    assert (await loaded(program(tmp_path / "x.sh", body))).words == "CLI tool: x.sh"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("sleep 600", id="sleeps"),
        pytest.param("sleep 600 & echo never; sleep 600", id="with-a-child"),
        pytest.param("trap '' TERM; while :; do :; done", id="ignores-being-stopped"),
        pytest.param("cat", id="reads"),
        pytest.param("yes", id="floods"),
    ],
)
async def test_a_program_that_does_not_know_help_costs_no_more_than_its_time(tmp_path: Path, body: str):
    noted = tmp_path / "pids"
    path = program(tmp_path / "x", f"echo $$ >> {noted}\n{body.replace('&', f'& echo $! >> {noted};')}")
    async with asyncio.timeout(30):
        made = await loaded(path, ProbeOptions(seconds=2.0))
    assert made.words in {"CLI tool: x", "never", "y"}
    await all_gone(noted.read_text())


async def all_gone(pids: str) -> None:
    """Wait until these processes have ended."""
    until = time.monotonic() + 20
    for pid in pids.split():
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.kill(int(pid), 0)
                await asyncio.sleep(0.01)
            pytest.fail(f"The process {pid} still lives.")


async def test_help_is_cut(tmp_path: Path):
    path = program(tmp_path / "x", "printf '%0500d' 0")
    assert (await loaded(path)).words == "0" * 200


async def test_a_program_that_cannot_be_started_has_no_help(tmp_path: Path):
    path = program(tmp_path / "x", "", head="#!/no/such/interpreter")
    assert (await loaded(path)).words == "CLI tool: x"


@each_row(
    ("text", "words", "guidance"),
    [
        pytest.param("---\ndescription: 'It: works'\n---\nbody", "It: works", "body", id="quoted"),
        pytest.param("---\ndescription: Use it so: then\n---\nbody", "Use it so: then", "body", id="no-yaml"),
        pytest.param("---\ndescription: >-\n  two\n  lines\n---\n", "two lines", "", id="folded"),
        pytest.param(
            "---\nother: x\n---\n# Title\n\nFirst line.\n", "First line.", "# Title\n\nFirst line.", id="none"
        ),
        pytest.param("# Title\n\nFirst line.\nSecond.", "First line.", "# Title\n\nFirst line.\nSecond.", id="plain"),
        pytest.param("---\r\ndescription: d\r\n---\r\nbody\r\n", "d", "body", id="crlf"),
        pytest.param("", "", "", id="empty"),
        pytest.param("# Only a title", "", "# Only a title", id="title"),
        pytest.param("---\na: &x [1]\nb: *x\n---\nText.", "a: &x [1]", None, id="trap"),
        pytest.param("---\ndescription: a\x1b[31mb\u202e\n---\n", "ab", "", id="hidden"),
    ],
)
def test_a_file_beside_it_describes_it(text: str, words: str, guidance: str | None):
    said = about(text)
    assert said[0] == words
    assert guidance is None or said[1] == guidance


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deploy.sh", "deploy_sh"),
        ("plain", "plain"),
        ("a b.c", "a_b_c"),
        ("ümlaut", "_mlaut"),
        ("x" * 80, "x" * 64),
        ("a-b_c", "a-b_c"),
    ],
)
def test_a_name_has_only_what_model_apis_take(name: str, expected: str):
    assert tool_name(f"/tools/{name}") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", [], id="none"),
        pytest.param("a  b\tc\n", ["a", "b", "c"], id="blanks"),
        pytest.param("--name 'two words' \"x y\"", ["--name", "two words", "x y"], id="quotes"),
        pytest.param("it's", ["it's"], id="unmatched"),
        pytest.param(
            "don't stop $(rm -rf /) `x` ; y | z > w",
            ["don't", "stop", "$(rm", "-rf", "/)", "`x`", ";", "y", "|", "z", ">", "w"],
            id="shell",
        ),
        pytest.param("a # b", ["a", "#", "b"], id="no-comments"),
    ],
)
def test_arguments_are_split_as_a_shell_would_and_never_given_to_one(text: str, words: list[str]):
    assert split(text) == words


@pytest.mark.parametrize(
    ("body", "args", "said", "is_error"),
    [
        pytest.param("echo out", "", "out\n", False, id="output"),
        pytest.param("echo out; echo err >&2", "", "out\nerr\n", False, id="combined"),
        pytest.param("echo out; exit 3", "", "out\n\nexit code: 3", True, id="failed"),
        pytest.param("exit 3", "", "exit code: 3", True, id="failed-silently"),
        pytest.param("exit 0", "", "(no output)", False, id="nothing"),
        pytest.param('printf "%s|" "$@"', "a 'b c' ; $x", "a|b c|;|$x|", False, id="arguments"),
        pytest.param("kill -9 $$", "", "exit code: 137", True, id="signal"),
        pytest.param("cat", "", "(no output)", False, id="nothing-to-read"),
        pytest.param("echo done; sleep 600 & exit 0", "", "done\n", False, id="left-running"),
        pytest.param("exit 0", "a\0b", "embedded null byte", True, id="nul"),
    ],
)
async def test_a_program_answers_as_a_command_does(
    calls: Calls, tmp_path: Path, body: str, args: str, said: str, is_error: bool
):
    made = ProgramTool(str(program(tmp_path / "x", body)), words="d")
    text, failed = await calls.text(made, args=args)
    assert failed is is_error
    assert said in text if "null" in said else text == said


async def test_it_runs_in_the_workspace_without_secrets(calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_API_TOKEN", "secret")
    monkeypatch.setenv("ORDINARY", "kept")
    made = ProgramTool(str(program(tmp_path / "x", 'pwd; echo "[$MY_API_TOKEN]$ORDINARY"')), words="d")
    assert await calls.text(made) == (f"{os.path.realpath(calls.workspace)}\n[]kept\n", False)
    assert made.access(ProgramArgs(), calls.new_context(made)) == (EVERYTHING,)


async def test_a_long_output_is_cut_and_kept_whole(calls: Calls, tmp_path: Path):
    made = ProgramTool(str(program(tmp_path / "x", "seq 1 40000")), words="d")
    text, failed = await calls.text(made)
    assert not failed
    assert text.startswith("1\n2\n")
    assert text.endswith("\n40000\n")
    assert len(text) < 100_000
    assert calls.context is not None
    assert calls.context.log is not None
    assert calls.context.kept == sum(len(f"{number}\n") for number in range(1, 40001))
    assert Path(calls.context.log[1]).read_text().count("\n") == 40000


async def test_a_call_that_is_given_up_leaves_no_process(calls: Calls, tmp_path: Path):
    started = Fifo(tmp_path / "started")
    made = ProgramTool(str(program(tmp_path / "x", f"sleep 600 & echo $! > {tmp_path}/started; sleep 600")), words="d")
    call = asyncio.create_task(calls.text(made))
    pid = await started.said()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await all_gone(pid)


async def test_what_was_trusted_runs_and_what_was_changed_does_not(calls: Calls, tmp_path: Path):
    path = program(tmp_path / "x", "echo good")
    made = ProgramTool(str(path), words="d", pin=hashlib.sha256(path.read_bytes()).hexdigest())
    assert await calls.text(made) == ("good\n", False)
    program(path, "echo evil")
    said, is_error = await calls.text(made)
    assert is_error
    assert "not what was trusted" in said
    assert "evil" not in said


@pytest.mark.parametrize("how", ["link", "gone", "folder", "fifo"])
async def test_what_is_no_file_any_more_is_refused(calls: Calls, tmp_path: Path, how: str):
    path = program(tmp_path / "x", "echo good")
    made = ProgramTool(str(path), words="d", pin=hashlib.sha256(path.read_bytes()).hexdigest())
    if how == "link":
        path.rename(tmp_path / "y")
        path.symlink_to(tmp_path / "y")
    else:
        path.unlink()
    if how == "folder":
        path.mkdir()
    if how == "fifo":
        os.mkfifo(path)
    with pytest.raises(ToolFailure, match="not what was trusted"):
        await calls.outcome(made)


async def test_a_changed_program_is_not_even_asked_for_help(tmp_path: Path):
    ran = tmp_path / "ran"
    path = program(tmp_path / "x", f"touch {ran}")
    brought = await load_program(str(path), ToolFolder(str(tmp_path), {str(path): b"what was trusted"}), ASKING)
    assert brought.tools == ()
    assert "not what was trusted" in brought.warnings[0]
    assert not ran.exists()
