"""The command line: exit codes, messages and what goes where."""

import io
import json
import os
import subprocess
import sys

import click
import pytest

import ferrule.cli.tools
from ferrule import Engine
from ferrule.cli.main import cli, run
from ferrule.core.services import Subagents
from ferrule.dialects import FAMILIES


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(folder)
    return folder


def typed(monkeypatch, text):
    """Standard input with that text, and no terminal."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        pytest.param(["call", "Read", '{"path":"a.txt"}'], 0, "1: one\n2: two\n", "", id="done"),
        pytest.param(["call", "Read", '{"path":"b"}'], 1, "", "ENOENT", id="tool-error"),
        pytest.param(["call", "Raed", '{"path":"a.txt"}'], 2, "", "Did you mean Read", id="unknown-tool"),
        pytest.param(["call", "Read", "{}"], 2, "", "path: required", id="missing-parameter"),
        pytest.param(["call", "Read", '{"path": 5, "read_range": "x"}'], 2, "", "read_range: ", id="bad-parameter"),
        pytest.param(["call", "Read", "{"], 2, "", "not valid JSON: ", id="bad-json"),
        pytest.param(["call", "Read", "[]"], 2, "", "must be a JSON object, not an array", id="not-an-object"),
        pytest.param(["call", "Read", '{"path":"\udcff"}'], 2, "", "is not UTF-8 text", id="not-text"),
        pytest.param(["call"], 2, "", "Missing argument 'NAME'", id="no-name"),
        pytest.param(["call", "create_file", '{"path":"x","content":""}'], 3, "", "Nobody can be asked", id="refused"),
        pytest.param(["call", "Read", '{"path":"/etc/passwd"}'], 3, "", "--add-dir /etc", id="outside"),
        pytest.param(["call", "Read", '{"path":"/etc/passwd"}', "--yes"], 3, "", "--add-dir", id="yes-widens-nothing"),
        pytest.param(
            [*["call", "Bash", "--dialect", "claude", "--yes"], '{"command":"sleep 377","run_in_background":true}'],
            0,
            "Command running in background",
            "stopped with the session",
            id="left-running",
        ),
        pytest.param(["cal"], 2, "", "Did you mean 'call'", id="unknown-command"),
        pytest.param(["--workspace", ".", "tools"], 2, "", "Options come after the command", id="option-too-early"),
        pytest.param(["call", "Read", "{}", "--dialect", "latin"], 2, "", "no dialect called 'latin'", id="dialect"),
        pytest.param(["call", "Read", "{}", "--workspace", "nowhere"], 2, "", "is not a folder", id="workspace"),
        pytest.param(["tools", "show"], 2, "", "ferrule tools show NAME", id="show-what"),
        pytest.param(["tools", "show", "nothing"], 2, "", "no tool called", id="show-unknown"),
        pytest.param(["undo"], 1, "", "No edit history found", id="nothing-to-undo"),
        pytest.param(["undo", "a.txt"], 1, "", "No edit history found for file", id="nothing-to-undo-here"),
        pytest.param(["redo"], 1, "", "Nothing to redo", id="nothing-to-redo"),
        pytest.param(["output", "zzzz"], 1, "", "No output is kept as", id="unknown-output"),
        pytest.param(["output"], 0, "No outputs are kept.", "", id="no-outputs"),
        pytest.param(["--version"], 0, "ferrule 0", "", id="version"),
        pytest.param([], 0, "Commands:", "", id="help"),
    ],
)
def test_exit_codes_and_messages(workspace, capsys, monkeypatch, arguments, code, out, err):
    typed(monkeypatch, "")

    assert run(arguments) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    assert "Traceback" not in said.err
    if not err:
        assert said.err == ""


def test_call_reads_arguments_from_standard_input(workspace, capsys, monkeypatch):
    typed(monkeypatch, '{"path": "a.txt", "read_range": [2, 2]}')

    assert run(["call", "Read", "-"]) == 0
    assert capsys.readouterr().out == "2: two\n"


def test_call_mends_what_models_do_to_arguments(workspace, capsys, monkeypatch):
    typed(monkeypatch, '```json\n{"path": "a.txt", "read_range": ["2", 2]}\n```\n')

    assert run(["call", "Read", "-"]) == 0
    said = capsys.readouterr()
    assert said.out == "2: two\n"
    assert "note: The arguments came inside a code fence, which was removed.\n" in said.err


@pytest.mark.parametrize("text", ["{", "[]", '{"path":', "nonsense", "5"])
def test_call_says_in_one_line_what_is_wrong_with_the_arguments(workspace, capsys, text):
    assert run(["call", "Read", text]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    what, advice = [*said.err.splitlines(), ""][:2]
    assert what.startswith("The arguments ")
    assert advice.startswith("note: Write the arguments as JSON, for example: ferrule call Read") or "object" in what


def test_call_json_is_the_reply_object(workspace, capsys):
    assert run(["call", "edit_file", '{"path":"a.txt","old_str":"one","new_str":"1"}', "--json", "--yes"]) == 0

    reply = json.loads(capsys.readouterr().out)
    assert set(reply) == {"status", "result", "trackFiles"}
    assert reply["trackFiles"] == [os.path.realpath(workspace / "a.txt")]


def test_yes_allows_and_deny_denies(workspace, capsys):
    values = '{"path":"b.txt","content":"x"}'

    assert run(["call", "create_file", values, "--deny"]) == 3
    assert not (workspace / "b.txt").exists()
    assert run(["call", "create_file", values, "--yes"]) == 0
    assert (workspace / "b.txt").exists()


def test_add_dir_widens(workspace, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("x\n")

    assert (
        run(
            [
                "call",
                "Read",
                json.dumps({"path": str(tmp_path / "other" / "b.txt")}),
                "--add-dir",
                str(tmp_path / "other"),
            ]
        )
        == 0
    )
    assert capsys.readouterr().out == "1: x\n"


def test_workspace_is_where_relative_paths_start(workspace, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert run(["call", "Read", '{"path":"a.txt"}', "--workspace", "workspace"]) == 0


def test_undo_and_redo_across_processes(workspace, capsys):
    run(["call", "create_file", '{"path":"a.txt","content":"new"}', "--yes"])
    capsys.readouterr()

    assert run(["undo", "--list"]) == 0
    assert "undo  write of a.txt" in capsys.readouterr().out
    assert run(["undo", "a.txt"]) == 0
    assert "-new\n" in capsys.readouterr().out
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    assert run(["redo"]) == 0
    assert (workspace / "a.txt").read_text() == "new\n"


def test_exec_answers_in_order_as_json_lines(workspace, capsys, monkeypatch):
    typed(
        monkeypatch,
        '{"id":"x","name":"Read","input":{"path":"a.txt"}}\n\n'
        '{"name":"Read","input":{"path":"nope"}}\n'
        '{"id":"z","name":"glob","input":{"filePattern":"*"}}\n',
    )

    assert run(["exec", "--timing"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["id"], line["status"]) for line in lines] == [("x", "done"), ("2", "error"), ("z", "done")]
    assert all(0 <= line["timing"]["start"] <= line["timing"]["end"] for line in lines)


def test_exec_prints_every_reply_once_without_timing(workspace, capsys, monkeypatch):
    typed(monkeypatch, "".join(f'{{"id":"{n}","name":"Read","input":{{"path":"a.txt"}}}}\n' for n in range(30)))

    assert run(["exec"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == [str(number) for number in range(30)]


@pytest.mark.parametrize(
    ("text", "err"),
    [
        pytest.param('{"name":"Read"}\n{oops\n', "line 2: not JSON", id="not-json"),
        pytest.param('{"input":{}}\n', "line 1: ", id="no-name"),
        pytest.param('{"name":"Read","input":[1]}\n', "line 1: ", id="input-is-no-object"),
    ],
)
def test_exec_runs_nothing_when_a_line_is_wrong(workspace, capsys, monkeypatch, text, err):
    typed(monkeypatch, text)

    assert run(["exec"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert err in said.err


@pytest.mark.contract("batch.example")
def test_exec_plan_prints_the_batches(workspace, capsys, monkeypatch):
    typed(
        monkeypatch,
        '{"id":"A","name":"Read","input":{"path":"a"}}\n'
        '{"id":"B","name":"Read","input":{"path":"b"}}\n'
        '{"id":"E","name":"edit_file","input":{"path":"a","old_str":"x","new_str":"y"}}\n'
        '{"id":"C","name":"Read","input":{"path":"c"}}\n',
    )

    assert run(["exec", "--plan"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [[call["id"] for call in line["calls"]] for line in lines] == [["A", "B"], ["E", "C"]]


def test_tools_lists_shows_and_gives_json(workspace, capsys):
    assert run(["tools"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "Read", "edit_file", "create_file", "Bash", "glob", "Grep", "delete_file", "undo_edit", "format_file",
        "Check", "task_list", "Task", "finder", "oracle", "kraken", "web_search", "read_web_page", "read_thread",
        "find_thread", "get_diagnostics",
    ]  # fmt: skip
    assert run(["tools", "show", "Write"]) == 0
    assert capsys.readouterr().out.startswith("create_file ")
    assert run(["tools", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 20
    assert run(["tools", "show", "Bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["meta"] == {"disableTimeout": True}


@pytest.mark.parametrize(
    ("wire", "names"),
    [
        pytest.param("anthropic", lambda said: [tool["name"] for tool in said], id="anthropic"),
        pytest.param("openai-chat", lambda said: [tool[tool["type"]]["name"] for tool in said], id="openai-chat"),
        pytest.param("openai-responses", lambda said: [tool["name"] for tool in said], id="openai-responses"),
        pytest.param("gemini", lambda said: [tool["name"] for tool in said[0]["functionDeclarations"]], id="gemini"),
        pytest.param("mcp", lambda said: [tool["name"] for tool in said], id="mcp"),
    ],
)
@pytest.mark.parametrize("dialect", FAMILIES)
def test_tools_prints_exactly_what_a_model_api_is_sent(workspace, capsys, dialect, wire, names):
    assert run(["tools", "--dialect", dialect, "--wire", wire]) == 0
    said = json.loads(capsys.readouterr().out)
    engine = Engine(workspace, dialect=dialect, subagents=Subagents())

    assert said == engine.definitions(wire)
    assert names(said) == [definition["name"] for definition in engine.definitions()]


def test_a_wire_that_there_is_not_is_answered_with_those_that_there_are(workspace, capsys):
    assert run(["tools", "--wire", "telex"]) == 2
    assert "anthropic, openai-chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "tool"),
    [("claude-opus-4-5", "NotebookEdit"), ("gpt-5.2-codex", "apply_patch"), ("gemini-3-pro", "replace")],
)
def test_a_model_speaks_its_own_dialect(workspace, capsys, model, tool):
    assert run(["tools", "--model", model]) == 0
    assert f"\n{tool} " in "\n" + capsys.readouterr().out


def test_a_tool_for_a_program_that_is_not_there_is_made_with_a_word_about_it(workspace, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["tools", "make", "mine", "--zsh", "--folder", str(tmp_path / "box")]) == 0
    assert "note: zsh is not installed here" in capsys.readouterr().err


def test_a_dialect_and_a_model_at_once_are_too_much(workspace, capsys):
    assert run(["tools", "--model", "gpt-5.2", "--dialect", "amp"]) == 2
    assert "not both" in capsys.readouterr().err


def test_output_prints_what_was_cut(workspace, capsys):
    (workspace / "many").mkdir()
    assert run(["call", "Bash", '{"cmd":"seq 100000"}', "--json", "--yes"]) == 0
    reply = json.loads(capsys.readouterr().out)

    assert run(["output", reply["outputId"]]) == 0
    assert capsys.readouterr().out == "".join(f"{number}\n" for number in range(1, 100_001))
    assert run(["output"]) == 0
    assert reply["outputId"] in capsys.readouterr().out


def test_doctor_finds_what_is_needed(workspace, capsys):
    assert run(["doctor"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("ripgrep", "sandbox", "store", "Python", "settings", "languages"))


@pytest.mark.parametrize("wrong", ['private_hosts = ["*"]', 'proxy = "socks://proxy.example"'])
def test_doctor_says_what_would_only_fail_when_a_page_is_fetched(wrong, workspace, capsys, tmp_path, monkeypatch):
    path = tmp_path / "wrong.toml"
    path.write_text(f"[web]\n{wrong}\n")
    monkeypatch.setenv("FERRULE_SETTINGS", str(path))

    assert run(["doctor"]) == 1
    assert f"web.{wrong.split()[0]}" in capsys.readouterr().out


def test_doctor_notes_that_the_web_cannot_be_searched(workspace, capsys, tmp_path, monkeypatch):
    path = tmp_path / "keyless.toml"
    path.write_text('[web.search]\nbackend = "brave"\nkey_env = "NO_SUCH_KEY"\n')
    monkeypatch.setenv("FERRULE_SETTINGS", str(path))

    assert run(["doctor"]) == 0
    assert "NO_SUCH_KEY" in capsys.readouterr().out


def test_doctor_notes_language_servers_that_are_named_and_not_there(workspace, capsys, tmp_path, monkeypatch):
    path = tmp_path / "named.toml"
    path.write_text('[lsp.servers.mine]\ncommand = "nope-lsp"\nendings = [".py"]\n[lsp.servers.idle]\ncommand = "sh"\n')
    monkeypatch.setenv("FERRULE_SETTINGS", str(path))

    assert run(["doctor"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    assert any("mine of the settings is not used, for nope-lsp was not found" in line for line in notes)
    assert any("idle of the settings is for no file" in line for line in notes)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_doctor_knows_rustup_s_stand_in_from_a_server(workspace, capsys, tmp_path, monkeypatch):
    stand_in = tmp_path / "cargo" / "rust-analyzer"
    stand_in.parent.mkdir()
    (tmp_path / "cargo" / "rustup").write_text("#!/bin/sh\n")
    (tmp_path / "cargo" / "rustup").chmod(0o755)
    stand_in.symlink_to("rustup")
    monkeypatch.setenv("PATH", f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))

    assert run(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "rust-analyzer" in line]
    assert line.startswith("note")
    assert line.endswith(f"{stand_in} is only rustup's stand-in for it; rustup component add rust-analyzer")


def test_doctor_says_what_is_wrong_with_settings_beside_the_rest(workspace, capsys, tmp_path, monkeypatch):
    path = tmp_path / "wrong.toml"
    path.write_text("[limits]\nsecond = 3\n")
    monkeypatch.setenv("FERRULE_SETTINGS", str(path))

    assert run(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FAIL")] == ["settings"]
    assert any("wrong.toml" in line and "Did you mean seconds?" in line for line in lines)
    assert any(line.startswith("ok    ripgrep") for line in lines)


def test_doctor_looks_at_every_package_that_is_needed(workspace, capsys):
    run(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    (packages,) = [line for line in lines if line.split()[1] == "packages"]

    assert all(name in packages for name in ("click", "h11", "httpcore2", "msgspec", "tree-sitter-bash"))
    assert {"documents", "servers", "Lua", "terminal", "tokens", "web"} <= {line.split()[1] for line in lines}


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        pytest.param("", "note  model      No model is chosen: set a key", id="none"),
        pytest.param(
            "anthropic:claude-opus-5-5", "note  model      anthropic:claude-opus-5-5 needs a key", id="no-key"
        ),
        pytest.param("ollama:qwen3", "ok    model      ollama:qwen3", id="ready"),
        pytest.param("nope:x", "note  model", id="unknown"),
    ],
)
def test_doctor_says_which_model_would_be_asked(name, begins, workspace, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("FERRULE_MODEL", name)

    assert run(["doctor"]) == 0
    assert any(line.startswith(begins) for line in capsys.readouterr().out.splitlines())


OF_SESSIONS = (
    *("--dialect", "--model", "--workspace", "--add-dir", "--network", "--mcp-config", "--permission-mode"),
    *("--yes", "--deny"),
)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        pytest.param(("chat", "run", "call", "exec", "check"), OF_SESSIONS, id="a session"),
        pytest.param(
            ("tools",), ("--dialect", "--model", "--workspace", "--mcp-config", "--permission-mode"), id="a list"
        ),
        pytest.param(("undo", "redo"), ("--workspace", "--add-dir"), id="files"),
        pytest.param(("output",), ("--workspace",), id="the store"),
        pytest.param(("doctor",), ("--workspace", "--network", "--mcp-config"), id="the machine"),
        pytest.param(("models",), ("--model",), id="hosts"),
        pytest.param(("skills",), ("--workspace",), id="a folder"),
        pytest.param(
            (
                *("permissions", "mcp", "threads", "tasks", "config", "login", "logout", "demo", "completion"),
                "version",
            ),
            (),
            id="no session",
        ),
    ],
)
def test_the_help_of_a_command_has_the_options_that_mean_something_there(names, shown, capsys):
    for name in names:
        assert run([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert "Usage: ferrule" in said
        assert tuple(option for option in OF_SESSIONS if f"{option} " in said.partition("Options:")[2]) == shown


def test_options_that_mean_nothing_for_a_command_are_taken_all_the_same(workspace, capsys):
    assert run(["undo", "--list", "--dialect", "claude", "--yes"]) == 0


def commands(command, path=()):
    """Every command with the words that it is called by."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


def test_no_help_is_wider_than_80_columns_and_none_is_cut_off(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    wrong = []
    for path in commands(cli):
        assert run([*path, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        wrong += [
            (path, line) for line in lines if len(line) > 80 or (line.endswith("...") and not line.startswith("Usage"))
        ]

    assert wrong == []


@pytest.mark.parametrize(
    ("words", "as_"),
    [
        pytest.param(["config"], ["config", "show"], id="config"),
        pytest.param(["permissions"], ["permissions", "list"], id="permissions"),
        pytest.param(["mcp"], ["mcp", "list"], id="mcp"),
        pytest.param(["tasks", "list"], ["tasks"], id="tasks"),
        pytest.param(["sessions"], ["threads", "list"], id="sessions"),
        pytest.param(["version"], ["--version"], id="version"),
        pytest.param(["-V"], ["--version"], id="-V"),
    ],
)
def test_what_people_try_first_does_what_they_mean(workspace, capsys, words, as_):
    assert run(words) == 0
    said = capsys.readouterr()
    assert run(as_) == 0
    assert capsys.readouterr() == said


def test_the_tour_of_the_engine_mends_the_project_in_plain_text(workspace, capsys):
    assert run(["demo", "--calls"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "Could not find exact match for old_str" in said
    assert "-    if full > THRESHOLD:" in said
    assert "+    if full >= THRESHOLD:" in said
    assert "6. Grep" in said


def test_a_bug_is_one_line_not_a_traceback(workspace, capsys, monkeypatch):
    def broken(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(ferrule.cli.tools, "open_engine", broken)

    assert run(["tools"]) == 70
    assert "a bug: RuntimeError: boom" in capsys.readouterr().err


def test_python_m_ferrule_is_ferrule(workspace):
    done = subprocess.run(
        [sys.executable, "-m", "ferrule", "call", "Read", '{"path":"a.txt"}'],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "1: one\n2: two\n")


def test_a_reader_that_leaves_early_is_no_error(workspace):
    (workspace / "big.txt").write_text("x" * 60 + "\n")
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m ferrule tools --json | head -c 10"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == ""


def test_a_read_that_has_to_come_first_is_advised_to_come_in_the_same_message(workspace, capsys):
    edit = '{"file_path":"a.txt","old_string":"one","new_string":"1"}'
    assert run(["call", "Edit", edit, "--dialect", "claude", "--yes"]) == 1
    assert "give the read and Edit to one `ferrule exec`" in capsys.readouterr().err


def test_a_line_with_another_key_is_refused(workspace, capsys, monkeypatch):
    typed(monkeypatch, '{"name":"Read","arguments":{"path":"a.txt"}}\n')

    assert run(["exec"]) == 2
    assert "a call has id, name and input, and no arguments" in capsys.readouterr().err


def test_an_image_is_not_printed_as_its_bytes(workspace, capsys):
    from PIL import Image

    Image.new("RGB", (2, 2)).save(workspace / "a.png")
    assert run(["call", "Read", '{"path":"a.png"}']) == 0
    assert capsys.readouterr().out.startswith("[image/png, ")


def test_help_may_stand_before_a_command(workspace, capsys):
    assert run(["help", "undo"]) == 0
    first = capsys.readouterr().out
    assert run(["undo", "--help"]) == 0

    assert first == capsys.readouterr().out
    assert run(["help"]) == 0
    assert "Commands:" in capsys.readouterr().out
