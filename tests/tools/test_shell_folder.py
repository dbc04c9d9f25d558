"""The folder that carries over from command to command in Claude Code's sessions, and the exit codes that it keeps."""

import asyncio
import os
import subprocess

import pytest
from tests.rows import each_row

from ferrule import Call, Engine
from ferrule.system.environment import shell
from ferrule.tools.shell.shell import may_go_on


@pytest.fixture
async def claude(tmp_path):
    (tmp_path / "ws" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "ws" / "away").symlink_to("/")
    async with Engine(tmp_path / "ws", dialect="claude", ask=lambda question: question.kind == "call") as engine:
        yield engine


@pytest.fixture
def root(tmp_path):
    return os.path.realpath(tmp_path / "ws")


COMMANDS = [
    pytest.param("cd sub", "sub", id="cd"),
    pytest.param("cd sub && cd deep && true", "sub/deep", id="twice"),
    pytest.param("cd sub; exit 3", "sub", id="exit"),
    pytest.param("set -e; cd sub; false; cd deep", "sub", id="exit-at-an-error"),
    pytest.param("set -euo pipefail; cd sub; ls | false; cd deep", "sub", id="exit-at-a-broken-pipe"),
    pytest.param("set -u; cd sub; echo $NOT_THERE; cd deep", "sub", id="exit-at-an-unset-variable"),
    pytest.param("cd sub && cat <<END\nhere $PWD\nEND", "sub", id="here-document-at-the-end"),
    pytest.param("cd sub # and a comment", "sub", id="comment-at-the-end"),
    pytest.param("cd sub && echo a \\", "sub", id="backslash-at-the-end"),
    pytest.param("cd sub &&\\\n echo a", "sub", id="joined-lines"),
    pytest.param("cd sub; echo 'x\ny'", "sub", id="newline-in-quotes"),
    pytest.param("cd sub; set -x; true", "sub", id="traced"),
    pytest.param("cd sub; exec 1>&- 2>&-", "sub", id="without-outputs"),
    pytest.param("pushd sub > /dev/null", "sub", id="pushd"),
    pytest.param("f() { cd sub; return 4; }; f", "sub", id="function"),
    pytest.param("false; cd sub; ! true", "sub", id="negation"),
    pytest.param("cd sub; kill -TERM $$", "sub", id="terminated"),
    pytest.param("echo (", "", id="unreadable"),
    pytest.param("echo 'unterminated", "", id="open-quote"),
    pytest.param("cd sub\n)", "sub", id="unreadable-later"),
    pytest.param("(cd sub)", "", id="subshell"),
    pytest.param("cd nowhere", "", id="nowhere"),
    pytest.param("cd sub; exec true", "", id="replaced-shell"),
    pytest.param("trap 'echo bye' EXIT; cd sub", "", id="trap-of-its-own"),
    pytest.param("cd sub; kill -9 $$", "", id="killed"),
    pytest.param("cd sub; rmdir deep; rmdir ../sub", "", id="folder-that-is-gone"),
    pytest.param("bash -c 'cd sub'", "", id="another-shell"),
    pytest.param("nowhere-to-be-found", "", id="no-such-program"),
]


@pytest.mark.parametrize(("command", "folder"), COMMANDS)
async def test_the_next_command_begins_where_this_one_ended(claude, root, command, folder):
    plain = subprocess.run(
        [shell(), "-c", command],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    for name in ("sub/deep", "sub"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    async with asyncio.timeout(30):
        reply = await claude.call("Bash", command=command)
        where = await claude.call("Bash", command="pwd")
    code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode

    assert where.result == os.path.join(root, folder).rstrip("/")
    assert (reply.status == "done") == (code == 0)
    if code:
        assert reply.error.message.startswith(f"Exit code {code}\n" if plain.stdout.strip() else f"Exit code {code}")
    assert plain.stdout.decode().strip() in reply.text
    assert not any("reset" in note for note in reply.notes)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("cd /", id="outside"),
        pytest.param("cd ..", id="above"),
        pytest.param("cd away", id="through-a-link"),
        pytest.param("cd /tmp; exit 3", id="outside-and-failing"),
    ],
)
async def test_a_folder_outside_does_not_carry_over_and_that_is_said(claude, root, command):
    await claude.call("Bash", command="cd sub")
    reply = await claude.call("Bash", command=f"cd {root}; {command}")
    where = await claude.call("Bash", command="pwd")

    assert f"Shell cwd was reset to {root}" in reply.notes
    assert where.result == root


async def test_an_added_folder_carries_over(tmp_path):
    for name in ("ws", "more"):
        (tmp_path / name).mkdir()
    async with Engine(tmp_path / "ws", dialect="claude", ask=lambda _: True, add_dirs=[tmp_path / "more"]) as engine:
        await engine.call("Bash", command=f"cd {tmp_path / 'more'}")
        where = await engine.call("Bash", command="pwd")

    assert where.result == os.path.realpath(tmp_path / "more")


async def test_a_folder_that_is_gone_or_became_a_link_is_left(claude, root):
    await claude.call("Bash", command="cd sub/deep")
    os.rmdir(os.path.join(root, "sub/deep"))
    os.symlink("/", os.path.join(root, "sub/deep"))
    where = await claude.call("Bash", command="pwd")

    assert where.result == root


async def test_nothing_of_it_is_in_the_environment(claude):
    reply = await claude.call(
        "Bash", command="env | grep -e BASH_ENV -e CARRIED_FOLDER_DESCRIPTOR; bash -c 'echo [$BASH_ENV]'"
    )

    assert reply.result == "[]"


async def test_background_commands_and_stopped_ones_carry_nothing(claude, root):
    await claude.call("Bash", command="cd sub; exec sleep 60", run_in_background=True)
    await claude.call("Bash", command="cd sub; sleep 60; git", timeout=200)
    where = await claude.call("Bash", command="pwd")

    assert where.result == root


@pytest.mark.parametrize("move", ["cd sub", "cd sub && ls", "cd sub && touch made", "pushd sub > /dev/null"])
async def test_every_command_of_a_message_begins_where_the_one_before_it_ended(claude, root, move):
    sub = os.path.join(root, "sub")
    replies = await claude.run(
        [Call("Bash", {"command": line}) for line in (move, "pwd", "ls -d $PWD", "cd ..", "pwd")]
    )
    later = await claude.call("Bash", command="cd sub"), await claude.call("Bash", command="pwd")

    assert [reply.result for reply in (replies[1], replies[2], replies[4])] == [sub, sub, root]
    assert later[1].result == sub


async def test_no_command_runs_in_another_folder_than_the_one_it_was_let_in_for(claude, root):
    replies = await claude.run(
        [Call("Bash", {"command": "touch a && cd sub"}), Call("Bash", {"command": "touch here; pwd"})]
    )

    ran = os.path.join(root, "sub", "here")
    if replies[1].ok:
        assert replies[1].result == os.path.join(root, "sub")
        assert os.path.exists(ran)
    else:
        assert replies[1].error.error_code == "folder-changed"
        assert not os.path.exists(ran)
    assert not os.path.exists(os.path.join(root, "here"))


@pytest.mark.parametrize("family", ["amp", "wayland", "ah", "opencode", "pi"])
async def test_in_other_families_no_folder_carries_over(tmp_path, family):
    (tmp_path / "sub").mkdir()
    async with Engine(tmp_path, dialect=family, ask=lambda _: True) as engine:
        await engine.call("shell", command="cd sub")
        reply = await engine.call("shell", command="pwd")

    assert f"{os.path.realpath(tmp_path)}\n" in reply.result + "\n"


@each_row(
    ("command", "may"),
    [
        pytest.param("npm run dev", True, id="a-server"),
        pytest.param("echo it\\'s && make", True, id="quotes"),
        pytest.param("sleep 5", False, id="sleep"),
        pytest.param("  sleep 5 && make", False, id="sleep-first"),
        pytest.param("# wait\nsleep 5", False, id="sleep-after-a-comment"),
        pytest.param("make && git push", False, id="git"),
        pytest.param("echo 'open", False, id="unreadable"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_what_may_go_on_when_its_time_is_up(command, may):
    assert may_go_on(command) is may


async def test_the_folder_before_is_that_of_the_session_and_not_of_whoever_started_it(claude, root, monkeypatch):
    monkeypatch.setenv("OLDPWD", "/")
    first = await claude.call("Bash", command="cd -")
    there = await claude.run([Call("Bash", {"command": command}) for command in ("cd sub/deep", "cd -", "pwd")])
    back = await claude.run([Call("Bash", {"command": command}) for command in ("cd -", "pwd")])

    assert (first.ok, first.notes) == (False, ())
    assert [reply.text for reply in there[1:]] == [root, root]
    assert [reply.text for reply in back] == [f"{root}/sub/deep"] * 2
