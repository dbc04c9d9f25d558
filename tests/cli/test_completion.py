"""Completion by a real shell, with the script that `ferrule completion` prints."""

import os
import shutil
import subprocess
import sys

import pytest

from ferrule.cli.main import run

ASK = """
eval "$("$PROGRAM" completion bash)"
compopt() { options+=" $*"; }
COMP_WORDS=($LINE ${BEGUN:-""}) COMP_CWORD=${#COMP_WORDS[@]}
COMP_CWORD=$((COMP_CWORD - 1))
$(complete -p ferrule | sed 's/.*-F \\([a-z_]*\\) .*/\\1/') "$PROGRAM"
printf '%s\\n' "${COMPREPLY[@]}" $options
"""
"""As readline calls it; `compopt` works only there. What is typed comes in the words that it makes of it."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "begun", "offered"),
    [
        pytest.param("ferrule", "comp", ["completion"], id="commands"),
        pytest.param("ferrule config", "ge", ["get"], id="commands below"),
        pytest.param("ferrule chat", "--max-co", ["--max-cost"], id="options"),
        pytest.param("ferrule run -m", "opu", ["opus"], id="short names of models"),
        pytest.param("ferrule chat --model", "claude-opus-5-5", ["claude-opus-5-5"], id="models"),
        pytest.param("ferrule chat --model", "oll", ["ollama:", "-o", "nospace"], id="hosts of models"),
        pytest.param("ferrule chat --model", "anthropic : claude-opus-5-", ["claude-opus-5-5"], id="models of a host"),
        pytest.param("ferrule chat -m opus --resume T : --effort", "xh", ["xhigh"], id="behind a colon"),
        pytest.param("ferrule undo", "src", ["-o", "default"], id="files"),
        pytest.param("ferrule run -C", "src", ["-o", "default"], id="folders"),
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
@pytest.mark.parametrize(
    ("begun", "offered"), [("anthropic:claude-opus-5-", "anthropic:claude-opus-5-5"), ("oll", "ollama:")]
)
def test_where_words_are_whole_so_are_the_names_of_models(shell, begun, offered):
    program = os.path.join(os.path.dirname(sys.executable), "ferrule")
    asked = {"_FERRULE_COMPLETE": f"{shell}_complete", "COMP_WORDS": f"ferrule run -m {begun}"}
    at = {"COMP_CWORD": "3" if shell == "zsh" else begun}
    done = subprocess.run([program], env={**os.environ, **asked, **at}, capture_output=True, text=True, check=True)

    assert offered in done.stdout.replace(",", "\n").split()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_the_script_and_puts_no_blank_behind_a_host(tmp_path):
    program = os.path.dirname(sys.executable)
    ask = """
    autoload -U compinit && compinit -u -D; eval "$(ferrule completion zsh)"
    compadd() { print -r -- "$@" "($hosts) ($completions)"; }
    words=(ferrule run -m oll) CURRENT=4; _ferrule_completion
    words=(ferrule run -m son) CURRENT=4; _ferrule_completion
    """
    environment = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["zsh", "-f", "-c", ask], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "-U -V unsorted -S  -a hosts (ollama:) ()",
        "-U -V unsorted -a completions () (sonnet)",
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_too(shell, capsys):
    assert run(["completion", shell]) == 0
    assert "_FERRULE_COMPLETE" in capsys.readouterr().out
