"""What bash itself makes of a command line."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from ferrule.permissions.shell.line import CommandLine, Simple
from ferrule.permissions.shell.parse import parse

BOUND_SECONDS = 60
# Bash prints a function back from its own reading of it, so nothing that stays inside of it ever runs.
_PRINT = 'for body; do (eval "f() {\n$body\n}" && declare -f f) 2>/dev/null || echo unreadable; echo "%%"; done'


def run(script: str, folder: Path | str, *arguments: str, path: str = "/nowhere") -> bytes:
    """The output of a script in a bash that sees nothing of this machine's environment and finds no program."""
    return subprocess.run(
        [which("bash") or "bash", "--noprofile", "--norc", "-c", script, "bash", *arguments],
        cwd=folder,
        env={"PATH": path, "HOME": "/nowhere", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=BOUND_SECONDS,
        check=False,
    ).stdout


def readings(commands: Sequence[str], folder: Path | str) -> list[str | None]:
    """Each command as bash prints it back; None where bash cannot read it."""
    printed = run(_PRINT, folder, *commands).decode(errors="replace").split("%%\n")[:-1]
    assert len(printed) == len(commands)
    return [
        None if "unreadable" in one else one[one.index("{") + 1 : one.rindex("}")].strip("\n").removeprefix("    ")
        for one in printed
    ]


def taken(command: str, cwd: str = "/workspace") -> CommandLine:
    """A command line taken apart, in a folder that does not matter."""
    return parse(command, cwd=cwd, roots=[cwd])


def texts(simple: Simple) -> list[str | None]:
    """The words of a command, None for those that are not known."""
    return [word.text if word.known else None for word in simple.words]


def every(line: CommandLine) -> list[str]:
    """Every command of a line by its words, those inside of others too."""
    return [" ".join(word.text for word in one.words) for simple in line.commands for one in (simple, *simple.inside)]


def meaning(line: CommandLine) -> object:
    """All that two readings of the same line have in common."""
    found = [
        (
            [(word.text if word.known else "", word.known, word.start, word.single) for word in simple.words],
            [(name, value.text if value.known else "", value.known) for name, value in simple.assigns],
            sorted(one.target.text for one in simple.redirects if one.writes and one.target.known),
        )
        for simple in line.commands
    ]
    # Bash spells `|&` as a copied descriptor, which is nothing by itself.
    return sorted(one for one in found if any(one))
