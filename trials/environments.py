"""Environments of every kind: a program of each does inside the sandbox what it does outside."""

import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.ordinary.person import Person
from tests.ordinary.session import CONFINED, session

from trials.trial import Place, Row, Trial, tried

SYSTEM = "/usr/local/bin:/usr/bin:/bin"
_PACKAGES = {"cargo": "cargo", "go": "golang-go"}
"""Program → its Debian package."""


class Kit(NamedTuple):
    """One environment that was set up, and the command that needs all of it."""

    path: tuple[Path, ...]
    """What comes first on PATH."""
    command: str
    env: dict[str, str] = {}  # noqa: RUF012 - a default of a tuple, which nobody changes


class Kind(NamedTuple):
    """A kind of environment."""

    name: str
    make: Callable[[Place, Person, Path], Kit | str]
    """Sets one up in a folder, as the person; words instead where it cannot be had here."""
    at_home: str
    """Where it lies in the home folder."""


def _rows(place: Place) -> Iterator[Row]:
    yield from place.missing_user("environments")
    for person in place.people:
        works = {way: why for one, way, why in place.each(CONFINED) if one is person}
        for kind in KINDS:
            for where in ("at home", "below /tmp"):
                with _folder(person, kind, where) as folder:
                    yield from _kit(place, person, kind, where, folder, works)


def _kit(place: Place, person: Person, kind: Kind, where: str, folder: Path, works: dict[str, str]) -> Iterator[Row]:
    what = f"{kind.name} {where}, {person.title}"
    try:
        kit = kind.make(place, person, folder)
    except (OSError, AssertionError) as error:
        yield Row(what, "set up", str(error), False)
        return
    if isinstance(kit, str):
        yield Row(what, "set up", kit, None)
        return
    bare = _outside(person, kit)
    if bare[0]:
        yield Row(what, "works outside", f"exit code {bare[0]}: {bare[1]}", None)
        return
    for way, why in works.items():
        if why:
            yield Row(f"{what}, {way}", "tried", why, None)
        else:
            yield tried(f"{what}, {way}", "as outside", partial(_compared, person, kit, way, bare))


@contextlib.contextmanager
def _folder(person: Person, kind: Kind, where: str) -> Iterator[Path]:
    """Where an environment is set up; gone afterwards."""
    if where == "at home":
        top = person.home / Path(kind.at_home).parts[0]
        folder = person.home / kind.at_home
    else:
        top = Path(tempfile.mkdtemp(prefix="ferrule-kit-", dir="/tmp"))
        top.chmod(0o755)
        folder = top / kind.at_home.lstrip(".")
    folder.mkdir(parents=True, exist_ok=True)
    person.give(top)
    try:
        yield folder
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _environment(kit: Kit) -> dict[str, str]:
    return {**kit.env, "PATH": os.pathsep.join([*map(str, kit.path), SYSTEM])}


def _outside(person: Person, kit: Kit) -> tuple[int, str]:
    work = person.folder(f"kit-{uuid.uuid4().hex[:8]}")
    done = person.run(["bash", "-c", f"{{ {kit.command}; }} 2>&1"], cwd=work, env=_environment(kit))
    shutil.rmtree(work, ignore_errors=True)
    return done.returncode, done.stdout.strip()


def _compared(person: Person, kit: Kit, way: str, bare: tuple[int, str]) -> tuple[str, bool]:
    work = person.folder(f"kit-{uuid.uuid4().hex[:8]}")
    try:
        with session(person, work, way, env=_environment(kit)) as opened:
            said = opened.bash(kit.command)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    same = (said.exit_code, said.output.strip()) == bare
    return ("the same" if same else f"exit code {said.exit_code}: {said.output[-200:]} {' '.join(said.notes)}"), same


def _ran(person: Person, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = person.run(argv, cwd=cwd, env=env, seconds=300)
    if done.returncode:
        raise AssertionError(f"{argv[0]}: {(done.stderr or done.stdout)[-200:]}")
    return done.stdout


def _wrote(person: Person, path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    top = path
    while top.parent not in (person.home, Path("/tmp")):
        top = top.parent
    person.give(top)
    return path


def _module(person: Person, environment: Path) -> str:
    """A package in it, and what is said by whoever finds it."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    _wrote(person, packages / "trial_package.py", "WORD = 'found'\n")
    return "python -c 'import sys, trial_package; print(trial_package.WORD, sys.prefix)'"


def _venv(place: Place, person: Person, folder: Path) -> Kit | str:
    _ran(person, sys.executable, "-m", "venv", "--without-pip", str(folder))
    return Kit((folder / "bin",), _module(person, folder), {"VIRTUAL_ENV": str(folder)})


def _uv(place: Place, person: Person, folder: Path) -> Kit | str:
    tool = place.tool("uv")
    if not (tool / "bin" / "uv").exists():
        why = place.fetch([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tool), "uv"])
        if why:
            return f"pip cannot fetch uv: {why}"
    program = _wrote(person, folder / "bin" / "uv", "")
    shutil.copy(tool / "bin" / "uv", program)
    program.chmod(0o755)
    environment = folder / "project"
    cache = {"UV_CACHE_DIR": str(folder / "cache"), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    _ran(person, str(program), "venv", "--quiet", "--python", sys.executable, str(environment), env=cache)
    command = _module(person, environment).replace("python -c", "uv run --no-project --active python -c")
    # Its cache is where it may write: what is tried here is that uv and the environment are whole.
    cache["UV_CACHE_DIR"] = ".uv-cache"
    return Kit((folder / "bin", environment / "bin"), command, {**cache, "VIRTUAL_ENV": str(environment)})


def _conda(place: Place, person: Person, folder: Path) -> Kit | str:
    return "conda is in no package of PyPI or Debian; its layout is tried by hand"


def _by_hand(layout: str, program: str, shim: str = "") -> Callable[[Place, Person, Path], Kit | str]:
    """A program in `LAYOUT/bin` that reads a file beside it, as the manager of its versions lays it out."""

    def make(place: Place, person: Person, folder: Path) -> Kit | str:
        inner = folder / layout
        _wrote(person, inner / "lib" / "data" / "word.txt", f"{program} found its files\n")
        if "conda" in folder.name:
            _wrote(person, inner / "conda-meta" / "history", "")
        script = '#!/bin/sh\nexec cat "$(dirname "$(readlink -f "$0")")/../lib/data/word.txt"\n'
        _wrote(person, inner / "bin" / program, script, 0o755)
        if not shim:
            return Kit((inner / "bin",), program)
        _wrote(person, folder / shim / program, f'#!/bin/sh\nexec "{inner}/bin/{program}" "$@"\n', 0o755)
        return Kit((folder / shim,), program)

    return make


def _node(place: Place, person: Person, folder: Path) -> Kit | str:
    node = shutil.which("node", path=SYSTEM)
    if node is None:
        return "node is not there"
    version = folder / "versions" / "node" / "v20.0.0"
    modules = version / "lib" / "node_modules" / "tool"
    _wrote(person, modules / "cli.js", "#!/usr/bin/env node\nconsole.log(require('./word.js'), __dirname)\n", 0o755)
    _wrote(person, modules / "word.js", "module.exports = 'found'\n")
    (version / "bin").mkdir()
    (version / "bin" / "tool").symlink_to("../lib/node_modules/tool/cli.js")
    (version / "bin" / "node").symlink_to(node)
    person.give(version)
    return Kit((version / "bin",), "tool && node -p 1+1")


def _debian(place: Place, program: str) -> str:
    if shutil.which(program, path=SYSTEM):
        return ""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{program} is not there (Debian: {_PACKAGES[program]})"
    place.fetch(["apt-get", "update"])
    why = place.fetch(["apt-get", "install", "--yes", "--no-install-recommends", _PACKAGES[program]])
    return f"{program} cannot be installed: {why}" if shutil.which(program, path=SYSTEM) is None else ""


def _cargo(place: Place, person: Person, folder: Path) -> Kit | str:
    if why := _debian(place, "cargo"):
        return why
    _wrote(person, folder / "bin" / "cargo-word", "#!/bin/sh\necho found\n", 0o755)
    command = "cargo init --quiet --vcs none --name trial . && cargo run --quiet --offline && cargo word"
    return Kit((folder / "bin",), command, {"CARGO_HOME": str(folder)})


def _go(place: Place, person: Person, folder: Path) -> Kit | str:
    if why := _debian(place, "go"):
        return why
    _wrote(person, folder / "bin" / "gotool", "#!/bin/sh\necho found\n", 0o755)
    source = 'package main\nimport "fmt"\nfunc main() { fmt.Println("built") }\n'
    command = (
        f"printf '%s' '{source}' > main.go && go mod init trial 2> /dev/null; go build -o main . && ./main && gotool"
    )
    return Kit((folder / "bin",), command, {"GOPATH": str(folder), "GOFLAGS": "-mod=mod", "GOPROXY": "off"})


KINDS = (
    Kind("venv", _venv, "envs/venv"),
    Kind("uv", _uv, "envs/uv"),
    Kind("conda", _conda, "envs/conda"),
    Kind("conda, laid out by hand", _by_hand("envs/work", "condatool"), "miniconda3"),
    Kind("pyenv, laid out by hand", _by_hand("versions/3.12.1", "pytool", "shims"), ".pyenv"),
    Kind("nvm, laid out by hand, with the machine's node", _node, ".nvm"),
    Kind("asdf, laid out by hand", _by_hand("installs/tool/1.0.0", "asdftool", "shims"), ".asdf"),
    Kind("cargo", _cargo, ".cargo"),
    Kind("go", _go, "go"),
)

TRIAL = Trial(
    "environments",
    "venv, uv, conda, pyenv, nvm, asdf, cargo and go, at home and below /tmp: a program of each inside the sandbox "
    "does what it does outside.",
    _rows,
)
