"""Completion by a real shell, with the script that `ferrule completion` prints."""

import os
import shutil
import subprocess
import sys

import pytest

from ferrule.cli.main import run

ASK = """
eval "$("$PROGRAM" completion bash)"
COMP_WORDS=($LINE "$BEGUN") COMP_CWORD=${#COMP_WORDS[@]}
COMP_CWORD=$((COMP_CWORD - 1))
_ferrule_completion "$PROGRAM"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "begun", "offered"),
    [
        pytest.param("ferrule", "comp", ["completion"], id="commands"),
        pytest.param("ferrule config", "ge", ["get"], id="commands below"),
        pytest.param("ferrule chat", "--max-co", ["--max-cost"], id="options"),
        pytest.param("ferrule run -m", "opu", ["opus"], id="short names of models"),
        pytest.param("ferrule chat --model", "claude-opus-5-5", ["claude-opus-5-5"], id="models"),
        pytest.param("ferrule chat --model", "oll", ["ollama:"], id="hosts of models"),
        pytest.param("ferrule chat --dialect", "co", ["codex"], id="dialects"),
        pytest.param("ferrule run --permission-mode", "acc", ["acceptEdits"], id="modes"),
        pytest.param("ferrule call --dialect claude", "NotebookE", ["NotebookEdit"], id="tools"),
        pytest.param("ferrule tools show", "undo_", ["undo_edit"], id="tools of the settings' dialect"),
        pytest.param("ferrule config get", "chat.th", ["chat.theme"], id="settings"),
        pytest.param("ferrule login", "anth", ["anthropic"], id="hosts"),
        pytest.param("ferrule completion", "", ["bash", "zsh", "fish"], id="shells"),
    ],
)
def test_bash_offers_what_fits(line, begun, offered):
    program = os.path.join(os.path.dirname(sys.executable), "ferrule")
    environment = {**os.environ, "PROGRAM": program, "LINE": line, "BEGUN": begun}
    done = subprocess.run(["bash", "-c", ASK], env=environment, capture_output=True, text=True, check=True)

    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_too(shell, capsys):
    assert run(["completion", shell]) == 0
    assert "_FERRULE_COMPLETE" in capsys.readouterr().out
