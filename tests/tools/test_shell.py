"""Bash, through the whole flow."""

import asyncio
import os

import pytest

from ferrule import Call, Engine, Settings
from ferrule.settings import LimitSettings


def parts(reply):
    """The command, folder, output and exit code of a reply."""
    text = reply.result
    return {
        name: text[text.index(f"<{name}>") + len(name) + 2 : text.rindex(f"</{name}>")]
        for name in ("command", "working_directory", "output", "exit_code")
    }


@pytest.mark.contract("bash.output-format")
async def test_the_reply_is_the_four_elements(engine, root):
    reply = await engine.call("Bash", cmd="echo out; echo err >&2")

    assert reply.result == (
        "<command>echo out; echo err >&2</command>\n"
        f"<working_directory>{os.path.realpath(root)}</working_directory>\n"
        "<output>out\nerr\n</output>\n"
        "<exit_code>0</exit_code>"
    )


@pytest.mark.contract("bash.exit-code-is-not-an-error")
async def test_an_exit_code_is_information(engine):
    reply = await engine.call("Bash", cmd="exit 3")

    assert (reply.status, parts(reply)["exit_code"]) == ("done", "3")


@pytest.mark.contract("bash.uses-bash")
async def test_it_is_bash(engine):
    reply = await engine.call("Bash", cmd="[[ -n $BASH_VERSION ]] && echo bash")

    assert parts(reply)["output"] == "bash\n"


@pytest.mark.contract("bash.output-limit", "truncate.bash")
async def test_the_last_50000_characters_are_shown_and_all_are_kept(engine):
    reply = await engine.call("Bash", cmd="for i in $(seq 20000); do echo line $i é; done")

    whole = "".join(f"line {number} é\n" for number in range(1, 20_001))
    assert parts(reply)["output"] == whole[-50_000:]
    assert any("50,000" in note for note in reply.notes)
    assert reply.output_id is not None
    stored = await engine.output(reply.output_id)
    assert stored.read(0, 10_000_000).text == whole


@pytest.mark.contract("bash.environment-does-not-persist", "bash.cd-does-not-persist")
async def test_nothing_carries_over(engine, root):
    (root / "sub").mkdir()
    await engine.call("Bash", cmd="export WORD=1; cd sub; pwd")

    reply = await engine.call("Bash", cmd="echo [$WORD] $(basename $PWD)")

    assert parts(reply)["output"] == "[] workspace\n"


@pytest.mark.contract("bash.serial")
async def test_commands_of_one_message_run_one_after_the_other(engine, root):
    replies = await engine.run(
        [Call("Bash", {"cmd": f"test ! -e busy && touch busy && echo {n} && rm busy"}) for n in range(6)]
    )

    assert [parts(reply)["output"] for reply in replies] == [f"{n}\n" for n in range(6)]


@pytest.mark.contract("bash.no-timeout", "timeout.disabled")
async def test_the_time_limit_does_not_hold_for_commands(tmp_path):
    async with Engine(tmp_path, ask=lambda _: True, settings=Settings(limits=LimitSettings(seconds=0.05))) as engine:
        reply = await engine.call("Bash", cmd="sleep 0.3; echo late")

    assert parts(reply)["output"] == "late\n"


@pytest.mark.contract("bash.trailing-ampersand", "bash.preprocess-cd")
@pytest.mark.parametrize(
    ("cmd", "ran", "folder", "output"),
    [
        pytest.param("echo hi &", "echo hi", "", "hi\n", id="one-trailing-ampersand"),
        pytest.param("echo 'a &' ", "echo 'a &'", "", "a &\n", id="quoted"),
        pytest.param("cd sub && pwd -P | xargs basename", "pwd -P | xargs basename", "sub", "sub\n", id="cd"),
        pytest.param("cd 'my dir' && ls", "ls", "my dir", "", id="cd-quoted"),
        pytest.param("cd sub && echo 'x && y'", "echo 'x && y'", "sub", "x && y\n", id="only-the-first"),
        pytest.param("echo a && echo b", "echo a && echo b", "", "a\nb\n", id="double-ampersand-stays"),
    ],
)
async def test_preprocessing(engine, root, cmd, ran, folder, output):
    (root / "sub").mkdir()
    (root / "my dir").mkdir()

    reply = await engine.call("Bash", cmd=cmd)

    said = parts(reply)
    assert (said["command"].strip(), said["output"]) == (ran, output)
    assert said["working_directory"] == os.path.realpath(root / folder)


@pytest.mark.contract("bash.cwd", "bash.expands-home")
async def test_the_folder_can_be_chosen_and_start_at_home(engine, root, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (root / "sub").mkdir()

    reply = await engine.call("Bash", cmd="pwd", cwd="~/workspace/sub")

    assert parts(reply)["output"] == f"{os.path.realpath(root / 'sub')}\n"


async def test_a_folder_that_is_not_there_is_a_clear_error(engine):
    reply = await engine.call("Bash", cmd="pwd", cwd="nowhere")

    assert reply.status == "error"
    assert "nowhere" in reply.error.message


async def test_a_folder_outside_is_refused(engine):
    reply = await engine.call("Bash", cmd="pwd", cwd="/")

    assert reply.status == "rejected-by-user"


async def test_a_background_child_does_not_hold_the_call(engine):
    async with asyncio.timeout(20):
        reply = await engine.call("Bash", cmd="sleep 300 & echo hi")

    assert parts(reply)["output"] == "hi\n"


async def test_standard_input_is_closed(engine):
    async with asyncio.timeout(20):
        reply = await engine.call("Bash", cmd="cat; read x; echo end")

    assert parts(reply)["output"] == "end\n"


async def test_cancelling_kills_the_whole_tree(engine, root):
    running = asyncio.create_task(
        engine.run([Call("Bash", {"cmd": "sleep 301 & setsid sleep 302 & echo $$ > pid; trap '' TERM; sleep 303"})])
    )
    async with asyncio.timeout(20):
        while not (root / "pid").exists() or not (root / "pid").read_text():
            await asyncio.sleep(0)
        engine.cancel()
        (reply,) = await running

    assert reply.status == "cancelled"
    assert not alive(str(root))


def alive(folder):
    """Processes that work in the folder."""
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/cwd").startswith(folder):
                    out.append(name)
            except OSError:
                continue
    return out


@pytest.mark.contract("permission.auto-allowed-commands")
@pytest.mark.parametrize(
    ("cmd", "status"),
    [
        pytest.param("git status", "done", id="git"),
        pytest.param("python3 -m unittest", "done", id="python"),
        pytest.param("git status; rm x", "rejected-by-user", id="operator"),
        pytest.param("git status > x", "rejected-by-user", id="redirection"),
        pytest.param("rm -rf x", "rejected-by-user", id="other-program"),
        pytest.param("git status\nrm x", "rejected-by-user", id="newline"),
        pytest.param("cat .env", "rejected-by-user", id="secret"),
        pytest.param("git -c core.pager=x status", "rejected-by-user", id="configuration"),
    ],
)
@pytest.mark.usefixtures("asking")
async def test_common_development_commands_need_no_question_when_they_are_plain_words(tmp_path, cmd, status):
    async with Engine(tmp_path) as engine:
        reply = await engine.call("Bash", cmd=cmd)

    assert reply.status == status


async def test_control_characters_go_but_the_kept_output_has_them(engine):
    reply = await engine.call("Bash", cmd=r"printf 'a\033[31mb\033[0m\x07\xe2\x80\xae\xff\n'")

    assert parts(reply)["output"] == "ab\ufffd\n"


async def test_secret_variables_do_not_reach_commands(engine, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "k")

    reply = await engine.call("Bash", cmd="echo [$MY_API_KEY] [$PAGER]")

    assert parts(reply)["output"] == "[] [cat]\n"


async def test_a_log_that_is_not_needed_is_removed(engine):
    await engine.call("Bash", cmd="echo small")

    logs = os.path.join(engine.state, "outputs", "logs")
    assert not os.path.isdir(logs) or os.listdir(logs) == []
