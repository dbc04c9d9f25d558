"""Read the manifest files of a folder that declare checks, without running anything.

The content was written by others. A file that is too large, nested too deeply or not valid text of its kind
counts as empty, and the user is told. Each file is read once. Folders are listed without following links.

`Row` is one check as an ecosystem's table finds it, before the checks of the folder are weighed against each
other.
"""

import itertools
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.system.folder import is_regular, read_all
from ferrule.tools.checks import CheckKind
from ferrule.tools.files.format import MOST_BYTES, Reader, upwards

MOST_NAMES = 5000
"""Of one folder."""
_MOST_ELSEWHERE = 12
_OWN_PYTHON = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")


def reader(jail: Jail, guard: Guard) -> Reader:
    """Reads regular files of the workspace that are no secrets, up to one byte more than is wanted of them."""

    def read(file: str) -> bytes | None:
        try:
            real = jail.real(file)
            guard.check_read(real)
            place = jail.place(real)
            if not place.parts:
                return None
            with place.folder() as folder:
                descriptor = folder.open(place.name)
                try:
                    return read_all(descriptor, MOST_BYTES) if is_regular(descriptor) else None
                finally:
                    os.close(descriptor)
        except (OSError, ToolFailure):  # not there, or not for us
            return None

    return read


class FolderManifests:
    """What one folder says."""

    def __init__(
        self, read: Reader, root: str, folder: str, warn: Callable[[str], None] = lambda _: None, *, top: str = ""
    ) -> None:
        self.root = root
        self._top = top or root
        self.folder = folder
        self.shown = os.path.relpath(folder, root).replace(os.sep, "/") if folder != root else ""
        """The folder from the root, empty for the root itself."""
        self.names, self.folders = _list_names(folder)
        self.looked: dict[str, None] = {}
        self._read = read
        self._warn = warn
        self._raw: dict[str, bytes] = {}
        self._understood: dict[str, Mapping[str, Any]] = {}

    def path_from_top(self, name: str) -> str:
        """A file of this folder as it is called from the top."""
        return os.path.relpath(os.path.join(self.folder, name), self._top).replace(os.sep, "/")

    def has(self, *names: str) -> str:
        """The first of these files that is here, or nothing."""
        found = next((name for name in names if name in self.names), "")
        if found:
            self.looked[self.path_from_top(found)] = None
        return found

    def find_by_suffix(self, *endings: str) -> str:
        """The first file with such an ending, or nothing."""
        found = min((name for name in self.names if name.endswith(endings)), default="")
        return self.has(found) if found else ""

    def raw(self, name: str) -> bytes:
        """The bytes of a file below this folder; none where it cannot be read or is too large."""
        if name not in self._raw:
            raw = (self._read(os.path.join(self.folder, *name.split("/"))) or b"") if self._may_be(name) else b""
            if len(raw) > MOST_BYTES:
                self._warn(f"{self.path_from_top(name)} is not read: it has more than {MOST_BYTES:,} bytes.")
                raw = b""
            self._raw[name] = raw
        return self._raw[name]

    def text(self, name: str) -> str:
        return self.raw(name).decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")

    def content(self, name: str) -> Mapping[str, Any]:
        """What is in a TOML, JSON or INI file; nothing where it cannot be understood."""
        if name not in self._understood:
            self._understood[name] = self._parse(name) if self.has(name) else {}
        return self._understood[name]

    def at(self, name: str, *key: str) -> Any:
        """The value under a key of such a file, or None."""
        found: Any = self.content(name)
        for part in key:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def says(self, *words: str) -> bool:
        """Do the files that say how the project is checked elsewhere have one of these texts?"""
        return any(word.encode() in self.elsewhere for word in words)

    @property
    def elsewhere(self) -> bytes:
        """The pipelines of the project and the hooks of its commits, as they are written."""
        if "\0elsewhere" not in self._raw:
            names = [".pre-commit-config.yaml", ".gitlab-ci.yml", "tox.ini", "noxfile.py"]
            kept = _list_names(os.path.join(self.folder, ".github", "workflows"))[0]
            names += [f".github/workflows/{name}" for name in sorted(kept) if name.endswith((".yml", ".yaml"))]
            self._raw["\0elsewhere"] = b"\n".join(map(self.raw, names[:_MOST_ELSEWHERE]))
        return self._raw["\0elsewhere"]

    def own(self, program: str, *places: str) -> str:
        """The copy of a program that the project has for itself, as a path from here; of this folder or one above."""
        for above in upwards(self.folder, self._top):
            for place in places or _OWN_PYTHON:
                for name in (program, f"{program}.exe"):
                    file = os.path.join(above, *place.split("/"), name)
                    if os.path.isfile(file) and os.access(file, os.X_OK):
                        return os.path.relpath(file, self.folder).replace(os.sep, "/")
        return ""

    def above(self, *names: str) -> str:
        """The first of these files that is here or in a folder above, up to the top."""
        for name in names:
            if any(os.path.isfile(os.path.join(folder, name)) for folder in upwards(self.folder, self._top)):
                return name
        return ""

    def _may_be(self, name: str) -> bool:
        first = name.partition("/")[0]
        return first in self.names or first in self.folders

    def _parse(self, name: str) -> Mapping[str, Any]:
        raw = self.raw(name)
        if not raw:
            return {}
        try:
            content = _content(name, raw)
        except (ValueError, RecursionError):  # no such text, or nested to overflow the reader
            self._warn(f"{self.path_from_top(name)} cannot be understood, and what it says of checks is not known.")
            return {}
        return content if isinstance(content, dict) else {}


def _list_names(folder: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of files and of folders. Links to files count, links to folders do not: they may lead anywhere."""
    files, folders = set(), set()
    try:
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, MOST_NAMES):
                if entry.is_dir(follow_symlinks=False):
                    folders.add(entry.name)
                elif entry.is_file():
                    files.add(entry.name)
    except OSError:
        pass  # not there, or not for us
    return frozenset(files), frozenset(folders)


def _content(name: str, raw: bytes) -> object:
    """Raises ValueError and RecursionError."""
    if name.endswith(".toml") or name == "Pipfile":
        return tomllib.loads(raw.decode())
    if name.endswith((".cfg", ".ini")) or name == ".flake8":
        return _sections(raw.decode(errors="replace"))

    return json.loads(raw.decode("utf-8-sig"))


def _sections(text: str) -> dict[str, dict[str, str]]:
    """The sections of an INI file and the first lines of their values: more is never asked of them."""
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("[") and "]" in line:
            section = found.setdefault(line[1 : line.rindex("]")].strip(), {})
        elif line[:1].strip() and line[0] not in "#;":
            key, equals, value = line.partition("=")
            if equals:
                section[key.strip()] = value.strip()
    return found


ALONE = "files"
"""What a check shares that writes to the files of the project: nothing else runs at the same time."""


class FolderCheck(NamedTuple):
    """A check of one folder. Nothing of its command line is taken from a file: only words of our own are in it."""

    name: str
    kind: CheckKind
    command: str
    source: str
    """The file of the folder that speaks for it."""
    program: str = ""
    """A plain name, or a path from the folder where the project has its own copy."""
    shares: str = ""
    does: tuple[str, ...] = ()
    """What it runs, as a target of a Makefile would write it: `pytest`, `ruff check`, `npm run lint`."""
    is_default: bool = True
    """Does it run where nobody names a check?"""


class Ecosystem(NamedTuple):
    """How the checks of one language or tool are found in a folder."""

    name: str
    rows: Callable[[FolderManifests], Iterator[FolderCheck]]
    covers: Callable[[FolderManifests], bool] = lambda _: True
    """Are folders below a folder that has such checks covered by them?"""


PYPROJECT = "pyproject.toml"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_MOST_LINES = 5000
_LOCKS = {
    "uv.lock": "uv run --frozen",
    "poetry.lock": "poetry run",
    "pdm.lock": "pdm run",
    "Pipfile.lock": "pipenv run",
}


def find_dependencies(files: FolderManifests) -> dict[str, str]:
    """The packages that the project asks for, each with the file that does."""
    found: dict[str, str] = {}
    for text in _texts(files.content(PYPROJECT)):
        _take(text, PYPROJECT, found)
    if files.has("Pipfile"):
        for key in ("packages", "dev-packages"):
            for name in _keys(files.at("Pipfile", key)):
                _take(name, "Pipfile", found)
    for file in sorted(files.names):
        if file.endswith(("requirements.txt", "requirements.in")) or re.fullmatch(
            r"requirements[\w.-]*\.(txt|in)", file
        ):
            files.has(file)
            for line in files.text(file).splitlines()[:_MOST_LINES]:
                _take(line, file, found)
    return found


def run_as(files: FolderManifests, program: str) -> tuple[str, str]:
    """How a program of the project's environment is called, and the program that this needs.

    The project's own copy, if it has an environment; else whoever keeps its lock file runs it; else it is on PATH.
    """
    if own := files.own(program):
        return own, own
    if lock := files.above(*_LOCKS):
        runner = _LOCKS[lock]
        return f"{runner} {program}", runner.partition(" ")[0]
    return (program, program) if program != "python" else ("python3", "python3")


def _take(text: str, source: str, found: dict[str, str]) -> None:
    if name := re.match(_NAME, text):
        found.setdefault(re.sub(r"[._]", "-", name[0].lower()).rstrip("-"), source)


def _texts(project: Mapping[str, Any]) -> Iterator[str]:
    """What every list or table of dependencies in a pyproject.toml names, whoever invented it."""
    tool = _table(project.get("tool"))
    poetry = _table(tool.get("poetry"))
    yield from _items(_table(project.get("project")).get("dependencies"))
    for groups in (
        _table(project.get("project")).get("optional-dependencies"),
        project.get("dependency-groups"),
        _table(tool.get("pdm")).get("dev-dependencies"),
    ):
        for group in _table(groups).values():
            yield from _items(group)
    yield from _items(_table(tool.get("uv")).get("dev-dependencies"))
    for key in ("dependencies", "dev-dependencies"):
        yield from _keys(poetry.get(key))
    for group in _table(poetry.get("group")).values():
        yield from _keys(_table(group).get("dependencies"))
    for env in _table(_table(tool.get("hatch")).get("envs")).values():
        for key in ("dependencies", "extra-dependencies"):
            yield from _items(_table(env).get(key))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))


def _keys(value: Any) -> Iterator[str]:
    yield from _table(value)
