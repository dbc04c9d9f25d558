"""Commands that are left running, in the words of every family: what is said of them and how they are named."""

from typing import Any

import pytest
from tests.rows import each_row

from ferrule.core.content import CommandResult
from ferrule.core.errors import BadArguments
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.tools.shell import Left, Permitted, TaskList, TaskRead, TaskSeen, TaskStopped

FACES = {(name, face.name): face for name in FAMILIES for face in load_dialect(name).faces}
RUNS = TaskSeen("bq7k2m", 3, 4711, "npm run dev", "/w", "running", output="ready\n", took=1.5, total_chars=6)
SILENT = RUNS._replace(output="", total_chars=0)
DONE = RUNS._replace(status="completed", exit_code=0, output="ok\n", total_chars=3)
BROKEN = RUNS._replace(status="failed", exit_code=2, description="Serve it")
KILLED = RUNS._replace(status="killed", exit_code=143)
GOES_ON = (
    "The command goes on in the background, as task bq7k2m (process 4711)."
    " TaskOutput reads what it prints, and TaskStop stops it."
)


def told(status: str, task: TaskSeen) -> dict[str, Any]:
    """What Claude Code reads of a task."""
    return {
        "retrieval_status": status,
        "task": {
            "task_id": "bq7k2m",
            "task_type": "local_bash",
            "status": task.status,
            "description": task.description or "npm run dev",
            "output": task.output,
            "exitCode": task.exit_code,
        },
    }


@each_row(
    ("family", "name", "outcome", "said"),
    [
        pytest.param(
            "amp",
            "Bash",
            Left(RUNS),
            "<command>npm run dev</command>\n<working_directory>/w</working_directory>\n<output>ready\n</output>\n"
            f"<background>{GOES_ON}</background>",
            id="amp",
        ),
        pytest.param("wayland", "Bash", Left(RUNS), f"ready\n\n\n{GOES_ON}", id="wayland"),
        pytest.param("ah", "bash", Left(SILENT), GOES_ON, id="ah"),
        pytest.param("opencode", "bash", Left(SILENT), GOES_ON, id="opencode"),
        pytest.param(
            "pi",
            "bash",
            Left(SILENT, after=2.0),
            GOES_ON.replace("background,", "background after 2 seconds,"),
            id="pi",
        ),
        pytest.param(
            "claude",
            "Bash",
            Left(SILENT),
            "Command running in background with ID: bq7k2m. Use TaskOutput to read its output and TaskStop to stop it.",
            id="claude",
        ),
        pytest.param(
            "claude",
            "Bash",
            Left(RUNS, after=120.0),
            "Command did not complete within its 120s timeout and was moved to the background with ID: bq7k2m."
            " Use TaskOutput to read its output and TaskStop to stop it.\n\nOutput so far:\nready",
            id="claude-moved",
        ),
        pytest.param(
            "gemini",
            "run_shell_command",
            Left(SILENT),
            "Command: npm run dev\nDirectory: /w\nOutput: (empty)\nBackground PIDs: 4711 (read_background_output reads"
            " what it prints, and TaskStop with the task_id bq7k2m stops it)",
            id="gemini",
        ),
        *(
            pytest.param(
                "codex",
                name,
                Left(RUNS, after=1.5),
                "Wall time: 1.5000 seconds\nProcess running with session ID 3\nOutput:\nready\n",
                id=f"codex-{name}",
            )
            for name in ("exec_command", "shell_command", "shell")
        ),
        pytest.param(
            "codex",
            "exec_command",
            CommandResult("x", "/w", "out\n", 3, took=0.25, total_chars=4),
            "Wall time: 0.2500 seconds\nProcess exited with code 3\nOutput:\nout\n",
            id="codex-ended",
        ),
        pytest.param(
            "codex",
            "exec_command",
            CommandResult("x", "/w", "o…t", 0, took=0.25, total_chars=41),
            "Wall time: 0.2500 seconds\nProcess exited with code 0\nOriginal token count: 11\nOutput:\no…t",
            id="codex-cut",
        ),
        pytest.param(
            "codex",
            "write_stdin",
            TaskRead(RUNS, "time", 0.25),
            "Wall time: 0.2500 seconds\nProcess running with session ID 3\nOutput:\nready\n",
            id="codex-typed",
        ),
        pytest.param(
            "codex",
            "write_stdin",
            TaskRead(DONE, "ended", 0.25),
            "Wall time: 0.2500 seconds\nProcess exited with code 0\nOutput:\nok\n",
            id="codex-typed-and-ended",
        ),
        pytest.param("claude", "TaskOutput", TaskRead(DONE, "ended"), told("success", DONE), id="claude-ended"),
        pytest.param("claude", "TaskOutput", TaskRead(RUNS, "found"), told("success", RUNS), id="claude-found"),
        pytest.param("claude", "TaskOutput", TaskRead(RUNS, "time"), told("timeout", RUNS), id="claude-timeout"),
        pytest.param("claude", "TaskOutput", TaskRead(RUNS, "running"), told("not_ready", RUNS), id="claude-not-ready"),
        pytest.param("claude", "BashOutput", TaskRead(BROKEN, "ended"), told("success", BROKEN), id="claude-failed"),
        pytest.param("claude", "TaskOutput", TaskRead(KILLED, "ended"), told("success", KILLED), id="claude-killed"),
        pytest.param(
            "claude",
            "TaskStop",
            TaskStopped(KILLED),
            {
                "message": "Successfully stopped task: bq7k2m (npm run dev)",
                "task_id": "bq7k2m",
                "task_type": "local_bash",
                "command": "npm run dev",
            },
            id="claude-stopped",
        ),
        pytest.param(
            "gemini",
            "list_background_processes",
            TaskList((RUNS, BROKEN, KILLED)),
            "- [PID 4711] Running: `npm run dev`\n- [PID 4711] Exited (exit code 2): `npm run dev`\n"
            "- [PID 4711] Killed (exit code 143): `npm run dev`",
            id="gemini-listed",
        ),
        pytest.param(
            "gemini",
            "list_background_processes",
            TaskList(()),
            "No background processes found.",
            id="gemini-nothing-listed",
        ),
        pytest.param(
            "gemini",
            "read_background_output",
            TaskRead(RUNS, "time"),
            "[PID 4711] Running\nOutput:\nready\n",
            id="gemini-read",
        ),
        pytest.param(
            "gemini",
            "read_background_output",
            TaskRead(SILENT._replace(status="completed", exit_code=0), "ended"),
            "[PID 4711] Exited (exit code 0)\nOutput: (empty)",
            id="gemini-read-nothing",
        ),
        pytest.param(
            "codex",
            "request_permissions",
            Permitted(network=True, read=("/a",)),
            {"permissions": {"network": {"enabled": True}, "file_system": {"read": ["/a"]}}, "scope": "session"},
            id="codex-permitted",
        ),
        pytest.param(
            "codex",
            "request_permissions",
            Permitted(),
            {"permissions": {}, "scope": "session"},
            id="codex-not-permitted",
        ),
    ],
)
def test_it_is_said_like_this(family, name, outcome, said):
    assert FACES[family, name].says(outcome) == said


@each_row(("family", "name"), [key for key, face in FACES.items() if face.tool == "shell"])
def test_a_command_that_goes_on_is_no_failure_to_anybody_and_names_its_task(family, name):
    face = FACES[family, name]

    assert face.failed(Left(RUNS)) is False
    assert any(word in face.says(Left(RUNS)) for word in ("bq7k2m", "session ID 3"))
    assert "ready" in face.says(Left(RUNS))


@pytest.mark.parametrize(
    ("family", "name", "said"),
    [
        pytest.param("claude", "Bash", "so far\n\nCommand printed nothing for 5s and was stopped", id="claude"),
        pytest.param("ah", "bash", "so far\nerror: command printed nothing for 5s and was stopped", id="ah"),
        pytest.param("pi", "bash", "so far\n\nCommand printed nothing for 5 seconds and was stopped", id="pi"),
        pytest.param(
            "wayland", "Bash", "Stopped after 5 seconds without output.\nSTDOUT:\nso far\nSTDERR:\n", id="wayland"
        ),
        pytest.param(
            "opencode",
            "bash",
            "so far\n\n<metadata>\nCommand was stopped after 5000 ms without output\nExit code: 143\n</metadata>",
            id="opencode",
        ),
        pytest.param(
            "gemini",
            "run_shell_command",
            "Command: x\nDirectory: /w\nOutput: so far\nError: stopped after 5 seconds without output\nExit Code: 143",
            id="gemini",
        ),
        pytest.param(
            "codex",
            "shell_command",
            "Exit code: 143\nWall time: 6.0 seconds\nStopped after 5 seconds without output.\nOutput:\nso far",
            id="codex",
        ),
    ],
)
def test_a_command_that_was_stopped_for_its_silence_says_so(family, name, said):
    outcome = CommandResult("x", "/w", "so far", 143, took=6.0, quiet_after=5.0)

    assert FACES[family, name].says(outcome) == said
    assert FACES[family, name].failed(outcome) is (family in ("claude", "ah", "pi", "wayland"))


@each_row(
    ("name", "values", "heard"),
    [
        pytest.param(
            "exec_command",
            {"cmd": "x", "workdir": "/w", "tty": True, "yield_time_ms": 250, "max_output_tokens": 5},
            {"command": "x", "cwd": "/w", "terminal": True, "seconds": 0.25, "most_tokens": 5},
            id="session",
        ),
        pytest.param(
            "exec_command",
            {"cmd": "x", "shell": "zsh", "login": False, "environment_id": "e", "prefix_rule": ["x"]},
            {"command": "x"},
            id="session-without-what-has-no-effect",
        ),
        *(
            pytest.param(
                name,
                {
                    command: ["ls", "-l"] if name == "shell" else "ls -l",
                    "sandbox_permissions": "require_escalated",
                    "justification": "May I?",
                },
                {"command": "ls -l", "outside": True, "description": "May I?"},
                id=f"{name}-outside",
            )
            for name, command in (("exec_command", "cmd"), ("shell_command", "command"), ("shell", "command"))
        ),
        *(
            pytest.param(
                "exec_command",
                {"cmd": "x", "sandbox_permissions": wanted},
                {"command": "x"},
                id=f"inside-{wanted}",
            )
            for wanted in ("use_default", "with_additional_permissions")
        ),
        pytest.param(
            "write_stdin",
            {"session_id": 3, "chars": "x\n", "yield_time_ms": 500},
            {"number": 3, "chars": "x\n", "seconds": 0.5},
            id="typed",
        ),
        pytest.param(
            "request_permissions",
            {
                "permissions": {"network": {"enabled": True}, "file_system": {"write": ["/a"]}},
                "reason": "Why.",
                "environment_id": "e",
            },
            {"network": True, "write": ["/a"], "reason": "Why."},
            id="permissions",
        ),
        pytest.param("request_permissions", {"permissions": {}}, {}, id="no-permissions"),
    ],
)
def test_codex_asks_for_it_like_this(name, values, heard):
    assert FACES["codex", name].heard(values) == heard


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({}, "task_id: required, but missing.", id="nothing"),
        pytest.param({"task_id": ""}, "task_id: required, but missing.", id="empty"),
        pytest.param({"task_id": "a", "shell_id": "b"}, "shell_id: is another than task_id.", id="two"),
    ],
)
def test_claude_must_say_which_task_is_to_be_stopped(values, message):
    with pytest.raises(BadArguments) as caught:
        FACES["claude", "TaskStop"].heard(values)

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("family", "name", "values", "usual"),
    [
        pytest.param("claude", "TaskOutput", {"task_id": "b1"}, {"block": True, "seconds": 30}, id="claude"),
        pytest.param("claude", "BashOutput", {"task_id": "b1"}, {"block": True, "seconds": 30}, id="claude-loosely"),
        pytest.param("claude", "BashOutput", {"bash_id": "b1"}, {"block": False}, id="claude-by-its-older-name"),
        pytest.param("gemini", "read_background_output", {"pid": 1}, {"lines": 100, "seconds": 0}, id="gemini"),
        pytest.param("gemini", "run_shell_command", {"command": "x"}, {"delay_seconds": 0.2}, id="gemini-command"),
    ],
)
def test_who_says_nothing_gets_the_family_s_usual_wait(family, name, values, usual):
    assert FACES[family, name].canonical(values).items() >= usual.items()
