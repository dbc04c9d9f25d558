"""Whether what counts as only reading only reads: lines of every such program, really run, with strace looking on."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.permissions.shell.flags import Ground, lines, programs

from ferrule.permissions.shell.programs import table
from trials.trial import Place, Row, Trial

_LINES = 250
"""So many lines are made for each program; most of them the judge does not let pass."""
_SECONDS = 12.0
"""So long each program is tried."""
_SEED = 20


def _rows(place: Place) -> Iterator[Row]:
    missing = [name for name in ("bwrap", "strace") if shutil.which(name) is None]
    if missing:
        yield Row("flags of the programs that only read", "tried", f"there is no {' and no '.join(missing)}", None)
        return
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        ground = Ground(top, confine=_confined(top), trace=True)
        there = programs(ground.path)
        for name in there:
            yield _tried(ground, name)
        absent = {name.split(maxsplit=1)[0] for name, form in table().items() if form.harmless} - {
            name.split(maxsplit=1)[0] for name in there
        }
    yield Row("programs that are not on this machine", "few", ", ".join(sorted(absent)) or "none", None)


def _confined(top: Path) -> list[str]:
    """No network, and nothing but the folder to write."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(top), str(top)]
    argv += ["--unshare-net", "--unshare-pid", "--die-with-parent"]
    subprocess.run([*argv, "true"], check=True, capture_output=True)
    return argv


def _tried(ground: Ground, name: str) -> Row:
    run, deeds, end = 0, [], time.monotonic() + _SECONDS
    made = [line for line in dict.fromkeys(lines(name, _LINES, _SEED)) if ground.only_reads(line)]
    for line in made:
        if time.monotonic() > end:
            break
        run += 1
        deeds += ground.run(line)
    shown = "; ".join(f"{deed.line}: {deed.what}" for deed in deeds[:3])
    return Row(f"{name}, {run} lines run", "only reads", shown or "nothing else", not deeds)


TRIAL = Trial(
    "flags",
    "Lines of every program that counts as only reading, with its flags in every order and spelling: abbreviated, "
    "joined, twice, behind operands and behind --, and with variables that carry options. Those that pass unasked are "
    "run, in a namespace of their own: none changes or makes a file, opens a connection or starts a program of the "
    "folder.",
    _rows,
)
