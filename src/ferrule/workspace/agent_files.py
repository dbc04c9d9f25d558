"""The kinds of subagents that files describe: the project's, and the user's own.

Of two with one name the project's counts, as the one that is nearer; the user is told. A file is a prompt that others
may have written: it gives no right to anybody, and in a project nothing is read through a link.
"""

import itertools
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe
from ferrule.workspace.agent_file import AgentFile, Layer, read_agent
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.skill import Unusable, shown
from ferrule.workspace.skill_file import as_text, read_raw

MOST_FILES = 200
_MOST_ENTRIES = 2000
_PROJECT = (".ferrule/agents", ".claude/agents")
_END = ".md"


class _Read(NamedTuple):
    """A file as it was when it was last read."""

    signature: tuple[object, ...]
    found: AgentFile | None
    warnings: tuple[str, ...]


class AgentFiles:
    """Finds them when it is asked, and remembers of each file what it said; nothing is read before."""

    def __init__(
        self,
        jail: Jail,
        guard: Guard,
        *,
        home: str | None = None,
        beside: str = "",
        models: Collection[str] = (),
        taken: Collection[str] = (),
        sources: Collection[str] = ("user", "project"),
    ) -> None:
        """`home` is the user's home folder, `beside` the folder of the settings file.

        `models` are those that the settings name, and `taken` are names that no file of a project may have.
        `sources` says whose files count.
        """
        self._sources = frozenset(sources)
        self._jail = jail
        self._guard = guard
        home = os.path.expanduser("~") if home is None else home
        self._home = home if os.path.isabs(home) else ""
        self._beside = beside
        self._models = frozenset(models)
        self._taken = frozenset(map(_alike, taken))
        self._lock = threading.Lock()
        self._read: dict[str, _Read] = {}
        self._warnings: dict[str, None] = {}
        self._given: dict[str, AgentFile] = {}
        self._folders: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence, by the last look."""
        return tuple(self._warnings)

    def give(self, agents: Iterable[AgentFile] = (), folders: Iterable[str] = ()) -> None:
        """Have these kinds beside those of files, and those of these folders; they count before all others."""
        with self._lock:
            self._given.update((one.agent.name, one) for one in agents)
            self._folders += folders

    def all(self) -> tuple[AgentFile, ...]:
        """Every kind that a file describes, those that count first first."""
        with self._lock:
            return tuple(self._found().values())

    def places(self) -> list[tuple[str, Layer]]:
        """The folders that are looked in, whether they are there or not."""
        root = self._jail.folder
        given: list[tuple[str, Layer]] = [(os.path.normpath(folder), "user") for folder in self._folders]
        places: list[tuple[str, Layer]] = [(os.path.join(root, *name.split("/")), "project") for name in _PROJECT]
        own = [os.path.join(self._beside, "agents")] if self._beside else []
        own += [os.path.join(self._home, ".claude", "agents")] if self._home else []
        known = {path for path, _ in places}
        places += [(path, "user") for path in map(os.path.normpath, own) if path not in known]
        return given + [place for place in places if place[1] in self._sources]

    def _found(self) -> dict[str, AgentFile]:
        self._warnings = {}
        found = dict(self._given)
        seen: set[str] = set()
        # Of each of the two: however many a project brings, the user's own are read.
        counts: dict[Layer, int] = {"project": 0, "user": 0}
        for folder, layer in self.places():
            for file in self._files(folder, layer):
                if file in seen:
                    continue
                if counts[layer] >= MOST_FILES:
                    self._warn(f"There are more than {MOST_FILES} files of agents; those of {folder} are not all read.")
                    break
                counts[layer] += 1
                seen.add(file)
                self._take(file, layer, found)
        self._read = {file: read for file, read in self._read.items() if file in seen}
        return found

    def _take(self, file: str, layer: Layer, found: dict[str, AgentFile]) -> None:
        read = self._looked_at(file, layer)
        for warning in read.warnings:
            self._warn(warning)
        if read.found is None:
            return
        name = read.found.agent.name
        if _alike(name) in self._taken and read.found.layer == "project":
            self._warn(f"{file} is left out: {name} is, or looks like, a kind that is built in. Give it another name.")
        elif name in found:
            self._warn(f"{file} is left out: {found[name].file} has the name {name} as well, and counts before it.")
        else:
            found[name] = read.found

    def _files(self, folder: str, layer: Layer) -> Iterator[str]:
        """The paths of the files of a folder: real ones for the user's own, and for a project as they are."""
        try:
            if layer == "project" and os.path.realpath(folder) != folder:
                if os.path.isdir(folder):
                    self._warn(f"{folder} is reached through a link and is not looked at.")
                return
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _MOST_ENTRIES + 1))
        except OSError:
            return  # mostly it is not there
        if len(names) > _MOST_ENTRIES:
            self._warn(f"{folder} has more than {_MOST_ENTRIES:,} entries; the others are not looked at.")
        for name in names[:_MOST_ENTRIES]:
            if name.endswith(_END) and not name.startswith("."):
                path = os.path.join(folder, name)
                yield os.path.realpath(path) if layer == "user" else path

    def _looked_at(self, file: str, layer: Layer) -> _Read:
        """What a file says; one that is as it was is not read again."""
        # What lies in the workspace is the project's, whoever linked to it: a model may write there.
        if any(within(file, root.path) for root in self._jail.roots):
            layer = "project"
        try:
            self._guard.check_read(file)
            status = os.stat(file, follow_symlinks=False)
            signature = (layer, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            read = self._read.get(file)
            if read is None or read.signature != signature:
                read = self._read[file] = self._understood(file, layer, signature)
        except OSError as error:
            return _Read((), None, (f"{file} describes no agent: {describe(error)}.",))
        except ToolFailure as error:  # a rule may deny it
            return _Read((), None, (f"{file} describes no agent: {error.message}",))
        return read

    def _understood(self, file: str, layer: Layer, signature: tuple[object, ...]) -> _Read:
        try:
            text = as_text(read_raw(self._jail, file))
            found = read_agent(text, file=file, layer=layer, models=self._models)
        except Unusable as error:
            return _Read(signature, None, (f"{file} describes no agent: {error}.",))
        return _Read(signature, found, tuple(f"{file}: {warning}." for warning in found.warnings))

    def _warn(self, sentence: str) -> None:
        self._warnings[shown(sentence)] = None


def _alike(name: str) -> str:
    """What names have in common that are easily taken for each other."""
    return name.casefold().replace("_", "").replace("-", "")
