"""format_file, through the whole flow: one contract for every formatter, and formatters that mean no good."""

import asyncio
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.fifo import Fifo
from tests.scripted import Scripted
from tests.tools.confined import CONFINED, WAYS, has_it, living, new_mark

from ferrule import Engine, Settings
from ferrule.core.content import Formatted
from ferrule.permissions import NO, YES
from ferrule.settings import SandboxSettings
from ferrule.tools.files import format as subject
from ferrule.tools.files.format import Format

BEFORE, AFTER = "x  =  1\n", "x = 1\n"
SQUEEZE = 'printf \'%s\\n\' "$PWD" "$@" > "$0.seen"\nexec tr -s \' \''
"""A formatter that writes down where and with what it was run, and makes one blank of several."""
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Plain(Format):
    """The tool without a face of any family: the outcome is the result."""

    name = "plain_format"
    schema = SCHEMA


@pytest.fixture
def bin_folder(tmp_path, monkeypatch):
    """The only folder of programs besides the system's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder


@pytest.fixture
def ws(tmp_path):
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
async def engine(ws, bin_folder):
    async with Engine(ws, tools=[Plain()], ask=lambda question: question.kind == "call") as opened:
        yield opened


def put(file: Path, text: str | bytes = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def fake(folder: Path, name: str, body: str = SQUEEZE) -> Path:
    file = put(folder / name, f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def real_ruff(folder: Path) -> None:
    (folder / "ruff").symlink_to(os.path.join(sysconfig.get_path("scripts"), "ruff"))


def black_project(ws: Path, text: str | bytes = BEFORE) -> Path:
    put(ws / "pyproject.toml", "[tool.black]\n")
    return put(ws / "a.py", text)


def ended(pid: int) -> bool:
    """Is the process no more, or a zombie that only waits for its parent?"""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False, timeout=30).stdout
    return not state.strip() or state.startswith(b"Z")


async def call(engine, path="a.py"):
    async with asyncio.timeout(60):
        return await engine.call("plain_format", path=path)


FORMATTERS = [
    pytest.param("ruff", "a.py", {"pyproject.toml": "[tool.ruff]\n"}, id="ruff-itself"),
    pytest.param("black", "a.py", {"pyproject.toml": "[tool.black]\n"}, id="black"),
    pytest.param("prettier", "a.md", {"package.json": '{"prettier": {}}'}, id="prettier"),
    pytest.param("gofmt", "a.go", {"go.mod": "module x\n"}, id="gofmt"),
    pytest.param("rustfmt", "a.rs", {"Cargo.toml": "[package]\nedition = '2021'\n"}, id="rustfmt"),
    pytest.param("clang-format", "a.c", {".clang-format": "BasedOnStyle: LLVM\n"}, id="clang-format"),
]
WORDS = {
    "black": ["-q", "--stdin-filename", "{path}", "-"],
    "prettier": ["--stdin-filepath", "{path}"],
    "gofmt": [],
    "rustfmt": ["--edition=2021"],
    "clang-format": ["--assume-filename={path}"],
}


@pytest.mark.usefixtures("unconfined")
@pytest.mark.contract("format.formats-a-file")
@pytest.mark.parametrize(("program", "name", "files"), FORMATTERS)
async def test_every_formatter_keeps_one_contract(engine, ws, bin_folder, program, name, files):
    """Its answer is written as one write that can be undone; the second time there is nothing to do."""
    real_ruff(bin_folder) if program == "ruff" else fake(bin_folder, program)
    for config, text in files.items():
        put(ws / config, text)
    path = put(ws / "sub" / name, BEFORE)
    path.chmod(0o640)

    first, again = await call(engine, f"sub/{name}"), await call(engine, f"sub/{name}")

    shown = f"a/sub/{name} b/sub/{name}\n--- a/sub/{name}\n+++ b/sub/{name}"
    diff = f"diff --git {shown}\n@@ -1 +1 @@\n-{BEFORE}+{AFTER}"
    assert (first.result, first.track_files, first.notes) == (Formatted(str(path), program, diff), (str(path),), ())
    assert (again.result, again.track_files) == (Formatted(str(path), program, ""), ())
    assert again.notes == ()
    assert (path.read_text(), path.stat().st_mode & 0o777) == (AFTER, 0o640)
    if program in WORDS:
        seen = (bin_folder / f"{program}.seen").read_text().splitlines()
        assert seen == [str(ws), *(word.replace("{path}", str(path)) for word in WORDS[program])]
    await engine.undo()
    assert path.read_text() == BEFORE


async def test_the_question_is_the_command_that_does_the_same(ws, bin_folder):
    fake(bin_folder, "black")
    black_project(ws).rename(ws / "a b.py")
    asker = Scripted(NO, YES)
    async with Engine(ws, tools=[Plain()], ask=asker) as engine:
        refused, done = await call(engine, "a b.py"), await call(engine, "a b.py")

    assert [question.summary for question in asker.questions] == ["run `black 'a b.py'`"] * 2
    assert (refused.status, done.status) == ("rejected-by-user", "done")
    assert [(access.kind, access.mode) for access in asker.questions[0].touches] == [
        ("command", "write"),
        ("path", "write"),
    ]


async def test_nobody_to_ask_means_no(ws, bin_folder):
    fake(bin_folder, "black")
    path = black_project(ws)
    async with Engine(ws, tools=[Plain()]) as engine:
        reply = await call(engine)

    assert (reply.status, path.read_text()) == ("rejected-by-user", BEFORE)
    assert not (bin_folder / "black.seen").exists()


@pytest.mark.parametrize(
    ("own", "name", "config"),
    [
        pytest.param("node_modules/.bin/prettier", "a.js", ".prettierrc", id="prettier"),
        pytest.param(".venv/bin/ruff", "a.py", "ruff.toml", id="ruff"),
        pytest.param("sub/venv/bin/ruff", "a.py", "ruff.toml", id="nearest"),
    ],
)
async def test_the_projects_own_copy_runs_where_there_is_no_other(ws, bin_folder, own, name, config):
    put(ws / config)
    put(ws / "sub" / name, BEFORE)
    fake(ws, own)
    asker = Scripted(YES)
    async with Engine(ws, tools=[Plain()], ask=asker) as engine:
        reply = await call(engine, f"sub/{name}")

    assert (reply.status, (ws / "sub" / name).read_text()) == ("done", AFTER)
    assert asker.questions[0].summary.startswith(f"run `{own} ")


async def test_a_copy_outside_of_the_workspace_comes_first(engine, ws, bin_folder):
    fake(bin_folder, "black")
    black_project(ws)
    fake(ws, ".venv/bin/black", "exit 1")

    assert (await call(engine)).status == "done"


async def test_a_copy_in_the_workspace_that_path_leads_to_is_not_taken_for_one_outside(ws, bin_folder, monkeypatch):
    black_project(ws)
    fake(ws, "tools/black")
    monkeypatch.setenv("PATH", f"{ws}/tools{os.pathsep}/usr/bin{os.pathsep}/bin")
    async with Engine(ws, tools=[Plain()], ask=lambda _: True) as engine:
        reply = await call(engine)

    assert reply.error.error_code == "no-formatter"


@pytest.mark.parametrize(
    ("name", "files", "code", "says"),
    [
        pytest.param("a.py", {"a.py": "x"}, "no-formatter", "[tool.ruff] in pyproject.toml", id="no-configuration"),
        pytest.param("a.txt", {"a.txt": "x"}, "no-formatter", "No formatter is known for a.txt", id="no-such-kind"),
        pytest.param(
            "a.js", {"a.js": "x", ".prettierrc": ""}, "no-formatter", "npm install --save-dev prettier", id="missing"
        ),
        pytest.param("a.py", {"ruff.toml": ""}, "not-found", "no such file", id="no-file"),
        pytest.param(".", {"ruff.toml": ""}, "not-found", "no such file", id="the-workspace"),
        pytest.param(".env", {".env": "x"}, "writing-secret-file", "secret", id="secret"),
        pytest.param("nothing.env", {}, "writing-secret-file", "secret", id="secret-that-is-not-there"),
        pytest.param(
            ".vscode/a.json", {".vscode/a.json": "{}", ".prettierrc": ""}, "writing-protected-file", "", id="protected"
        ),
    ],
)
async def test_what_cannot_be_formatted_says_why_before_anybody_is_asked(ws, bin_folder, name, files, code, says):
    for file, text in files.items():
        put(ws / file, text)
    async with Engine(ws, tools=[Plain()], ask=Scripted()) as engine:
        reply = await call(engine, name)

    assert reply.error.error_code == code
    assert says in reply.error.message


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b"x = '\0'\n", "binary", id="binary"),
        pytest.param(b"#" * ((8 << 20) + 1), "too-large", id="too-large"),
    ],
)
async def test_what_is_no_text_of_a_usual_size_is_refused(engine, ws, bin_folder, raw, code):
    fake(bin_folder, "black")
    path = black_project(ws, raw)

    assert (await call(engine)).error.error_code == code
    assert path.read_bytes() == raw
    assert not (bin_folder / "black.seen").exists()


async def test_a_folder_with_the_name_of_a_file_is_a_clear_error(engine, ws, bin_folder):
    fake(bin_folder, "black")
    black_project(ws)
    (ws / "b.py").mkdir()

    assert "directory" in (await call(engine, "b.py")).error.message


HOSTILE = [
    pytest.param("echo 'error: line 3' >&2; echo half; exit 2", "exit code 2:\nerror: line 3\n", id="fails"),
    pytest.param("echo half; kill -9 $$", "exit code 137.", id="dies"),
    pytest.param("cat > /dev/null", "nothing for a file that is not empty", id="says-nothing"),
    pytest.param("cat > /dev/null; echo; echo", "nothing for a file that is not empty", id="says-blanks"),
    pytest.param("exec sleep 300", "did not finish within 0.3 seconds", id="hangs"),
    pytest.param("trap '' TERM; while :; do :; done", "did not finish within 0.3 seconds", id="spins"),
    pytest.param("exec yes", "more than 50,000 bytes", id="floods"),
    pytest.param("yes >&2", "did not finish within 0.3 seconds", id="floods-its-errors"),
    pytest.param(r"printf 'x\377'", "not UTF-8", id="no-utf-8"),
    pytest.param(r"printf 'x\000'", "not a text", id="nul"),
    pytest.param("seq 100 >&2; exit 1", "exit code 1:\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n Nothing", id="says-a-lot"),
]


@pytest.mark.parametrize(("body", "says"), HOSTILE)
async def test_a_formatter_that_misbehaves_changes_nothing(engine, ws, bin_folder, monkeypatch, body, says):
    if "did not finish" in says:
        monkeypatch.setattr(subject, "_SECONDS", 0.3)
    monkeypatch.setattr(subject, "_MOST_ANSWER_BYTES", 50_000)
    fake(bin_folder, "black", body)
    path = black_project(ws)

    reply = await call(engine)

    assert (reply.error.error_code, path.read_text()) == ("format-failed", BEFORE)
    assert says in reply.error.message
    assert reply.error.message.endswith("Nothing was changed.")
    assert sorted(os.listdir(ws)) == ["a.py", "pyproject.toml"]


async def test_a_program_that_cannot_be_started_is_a_failure_of_the_formatter(engine, ws, bin_folder):
    put(bin_folder / "black", "#!/no/such/interpreter\n").chmod(0o755)
    black_project(ws)

    assert (await call(engine)).error.error_code == "format-failed"


async def test_a_formatter_that_writes_the_file_itself_is_not_written_over(engine, ws, bin_folder):
    fake(bin_folder, "black", 'echo mine > "$3"; tr -s " "')
    path = black_project(ws)

    reply = await call(engine)

    assert (reply.error.error_code, path.read_text()) == ("changed-meanwhile", "mine\n")
    assert "black itself" in reply.error.message


async def test_a_formatter_that_removes_the_file_does_not_get_it_back(engine, ws, bin_folder):
    fake(bin_folder, "black", 'rm "$3"; tr -s " "')
    path = black_project(ws)

    assert (await call(engine)).error.error_code == "changed-meanwhile"
    assert not path.exists()


async def test_a_formatter_that_puts_a_link_in_the_files_place_does_not_lead_out(engine, ws, bin_folder, tmp_path):
    outside = put(tmp_path / "outside", BEFORE)
    fake(bin_folder, "black", f'ln -sf {shlex.quote(str(outside))} "$3"; tr -s " "')
    black_project(ws)

    assert (await call(engine)).status == "error"
    assert outside.read_text() == BEFORE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group can be found")
@pytest.mark.usefixtures("unconfined")
async def test_nothing_that_a_formatter_starts_lives_on(engine, ws, bin_folder, tmp_path):
    black_project(ws)
    fake(
        bin_folder,
        "black",
        f"exec > {tmp_path}/out; setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' &\n"
        f"until [ -s {tmp_path}/pid ]; do :; done",
    )

    await call(engine)

    assert ended(int((tmp_path / "pid").read_text()))


@pytest.mark.usefixtures("unconfined")
async def test_a_cancelled_call_changes_nothing(engine, ws, bin_folder, tmp_path):
    begun = Fifo(tmp_path / "pid")
    fake(bin_folder, "black", f"echo $$ > {tmp_path}/pid; exec sleep 300")
    path = black_project(ws)
    running = asyncio.create_task(call(engine))
    pid = int(await begun.said())
    engine.cancel()

    assert ((await running).status, path.read_text()) == ("cancelled", BEFORE)
    assert ended(pid)


@pytest.mark.parametrize(
    ("raw", "formatted"),
    [
        pytest.param(b"\xef\xbb\xbfx  =  1\n", b"\xef\xbb\xbfx = 1\n", id="byte-order-mark"),
        pytest.param(b"x  =  1\r\n", b"x = 1\r\n", id="crlf"),
        pytest.param("é  é\n".encode("cp1252"), "é é\n".encode("cp1252"), id="cp1252"),
        pytest.param("\ufeffx  =  1\n".encode("utf-16-le"), "\ufeffx = 1\n".encode("utf-16-le"), id="utf-16"),
        pytest.param("é  ß\n".encode(), "é ß\n".encode(), id="utf-8"),
        pytest.param(b"", b"", id="empty"),
        pytest.param(b"\n\n", b"\n\n", id="blank"),
    ],
)
async def test_the_file_keeps_its_encoding(engine, ws, bin_folder, raw, formatted):
    fake(bin_folder, "black")
    path = black_project(ws, raw)

    assert (await call(engine)).status == "done"
    assert path.read_bytes() == formatted


async def test_a_character_that_the_encoding_lacks_is_a_clear_error(engine, ws, bin_folder):
    fake(bin_folder, "black", "cat; echo ☃")
    path = black_project(ws, "é\n".encode("cp1252"))

    assert (await call(engine)).error.error_code == "unencodable"
    assert path.read_bytes() == "é\n".encode("cp1252")


async def test_a_byte_order_mark_that_the_formatter_adds_is_left_out(engine, ws, bin_folder):
    fake(bin_folder, "black", r"printf '\357\273\277'; tr -s ' '")
    path = black_project(ws)

    await call(engine)

    assert path.read_text(encoding="utf-8") == AFTER


async def test_secrets_of_the_environment_are_not_handed_over(engine, ws, bin_folder, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    fake(bin_folder, "black", 'cat > /dev/null; echo "# [$GITHUB_TOKEN]"')
    path = black_project(ws)

    await call(engine)

    assert path.read_text() == "# []\n"


async def test_a_configuration_that_changes_after_the_question_stops_the_call(ws, bin_folder):
    fake(bin_folder, "black")
    fake(bin_folder, "ruff")
    path = black_project(ws)

    def yes(question):
        if question.name == "plain_format":
            put(ws / "ruff.toml", "[format]\n")
        return True

    async with Engine(ws, tools=[Plain()], ask=yes) as engine:
        reply = await call(engine)
        again = await call(engine)

    assert (reply.error.error_code, again.result[1]) == ("changed-meanwhile", "ruff")
    assert path.read_text() == AFTER


async def test_a_file_outside_is_formatted_once_its_folder_is_open(ws, bin_folder, tmp_path):
    fake(bin_folder, "black")
    outside = Path(os.path.realpath(tmp_path)) / "outside"
    path = black_project(outside)
    async with Engine(ws, tools=[Plain()], ask=lambda _: True) as engine:
        first, second = await call(engine, str(path)), await call(engine, str(path))

    assert (first.error.error_code, second.status) == ("changed-meanwhile", "done")


async def test_formatting_is_not_reading(engine, ws, bin_folder):
    from ferrule.files.ledger import Ledger

    fake(bin_folder, "black")
    path = black_project(ws)
    ledger = engine._services[Ledger]

    await call(engine)
    unread = ledger.knows(str(path))
    put(path, BEFORE)
    ledger.saw(str(path), BEFORE.encode())
    await call(engine)

    assert not unread
    assert not ledger.stale(str(path), AFTER.encode())


@pytest.mark.parametrize("use", WAYS)
async def test_a_formatter_of_the_project_runs_as_its_commands_do(ws, tmp_path, use):
    """It lies where commands write: what it does is kept to where they may."""
    (out := tmp_path / "elsewhere").mkdir()
    (ws / ".prettierrc").write_text("{}")
    own = put(ws / "node_modules" / ".bin" / "prettier", f"#!/bin/sh\ntouch {out}/pwned {ws}/mine\nexec tr -s ' '\n")
    own.chmod(0o755)
    put(ws / "a.js", BEFORE)
    settings = Settings(sandbox=SandboxSettings(use=use))
    async with Engine(ws, tools=[Plain()], ask=Scripted(YES), settings=settings, dialect="claude") as engine:
        await has_it(engine, use)
        reply = await call(engine, "a.js")

    assert (reply.status, (ws / "a.js").read_text()) == ("done", AFTER)
    assert (ws / "mine").exists()
    assert (out / "pwned").exists() == (use == "none")


@pytest.mark.parametrize("use", CONFINED)
async def test_nothing_that_a_confined_formatter_starts_lives_on(ws, bin_folder, use):
    black_project(ws)
    mark = new_mark()
    fake(
        bin_folder,
        "black",
        f"setsid sh -c 'echo ready > {ws}/up; exec sleep {mark}' > /dev/null 2>&1 &\n"
        f"until [ -s {ws}/up ]; do :; done; exec tr -s ' '",
    )
    settings = Settings(sandbox=SandboxSettings(use=use))
    async with Engine(ws, tools=[Plain()], ask=Scripted(YES), settings=settings, dialect="claude") as engine:
        await has_it(engine, use)
        reply = await call(engine)

        assert (reply.error, living(mark)) == (None, [])
