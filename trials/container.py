"""The container: the steps of its Dockerfile done in a folder, from the lock, and what they make used by every user."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.cli.recordings import recording
from tests.ordinary.person import ROOT

from ferrule.models.cues import said
from trials.trial import Place, Row, Trial

_SECONDS = 900
_PREFIX = "/opt/ferrule"
"""Where the image has it; here it is a folder."""


class Instruction(NamedTuple):
    """A line of a Dockerfile."""

    name: str
    words: str


def instructions(text: str) -> list[Instruction]:
    whole = re.sub(r"\\\n\s*", "", text)
    lines = [line.strip() for line in whole.splitlines() if line.strip() and not line.startswith("#")]
    return [Instruction(name.upper(), words) for name, _, words in (line.partition(" ") for line in lines)]


def is_copied(name: str) -> bool:
    """Does the builder get this file, as .dockerignore says? The last line that speaks of it holds."""
    parts = name.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    is_ignored = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        plain = pattern.removeprefix("**/")
        if any(fnmatch.fnmatchcase(one if plain == pattern else one.rpartition("/")[2], plain) for one in above):
            is_ignored = not line.startswith("!")
    return not is_ignored


def context(folder: Path) -> None:
    """What the builder is given, as files of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if is_copied(name) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("the container")
    lines = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="ferrule-container-") as made:
        os.chmod(made, 0o755)
        build, prefix = Path(made, "build"), Path(made, "opt")
        build.mkdir()
        context(build)
        for one in (one.words for one in lines if one.name == "RUN"):
            if not one.startswith(("python ", _PREFIX)):
                yield Row(one, "done by the builder", "no container engine here, so it was not run", None)
                continue
            words = [
                sys.executable if word == "python" else word.replace(_PREFIX, str(prefix)) for word in shlex.split(one)
            ]
            done = subprocess.run(words, cwd=build, capture_output=True, text=True, timeout=_SECONDS, check=False)
            said_last = (done.stderr.strip() or "done").splitlines()[-1]
            yield Row(one, "exit code 0", "exit code 0" if done.returncode == 0 else said_last, done.returncode == 0)
            if done.returncode != 0:
                return
        yield from _used(place, prefix)


def _used(place: Place, prefix: Path) -> Iterator[Row]:
    """What the image is for, by every user."""
    for person in place.people:
        work = person.folder("container")
        path = recording(work / "c.jsonl", said("One."))
        person.give(work)
        env = {"PATH": f"{prefix}/bin:/usr/bin:/bin"}
        for what, words, wanted in (
            ("the version", ["ferrule", "--version"], "ferrule "),
            ("a scripted run", ["ferrule", "run", "x", "--replay", path], "One."),
            ("ripgrep", ["rg", "--version"], "ripgrep "),
        ):
            done = person.run([f"{prefix}/bin/{words[0]}", *words[1:]], cwd=work, env=env)
            good = done.returncode == 0 and done.stdout.startswith(wanted)
            shown = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[0]
            yield Row(f"{what}, {person.title}", json.dumps(wanted), shown, good)


TRIAL = Trial("container", "the steps of the Dockerfile, from the lock, and the program that they make", _rows)
