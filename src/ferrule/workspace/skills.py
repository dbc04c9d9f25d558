"""The skills of a session: folders with a `SKILL.md` in the places where agents look for them, and servers' prompts.

Of two skills with one name the first one found counts. The user's own folders may be links to anywhere. What is found
in a folder of the project must lie in that folder, and what lies in the workspace is the project's, whoever linked to
it: a model can write there.
"""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe
from ferrule.workspace.paths import Jail
from ferrule.workspace.skill import FILE, ServerPrompt, Skill, Unusable, from_prompt, read_skill, shown
from ferrule.workspace.skill_catalog import CATALOG_CHARS, catalog, prompt_of, unknown
from ferrule.workspace.skill_file import FILE_BYTES, as_text, read_raw

__all__ = ["FILE_BYTES", "MOST_SKILLS", "Place", "Skills"]

MOST_SKILLS = 500
_HEADER_BYTES = 1 << 16
"""So much of a file is read for a list; the largest front matter fits."""
_MOST_ENTRIES = 2000
"""Names of one folder that are looked at."""
_PROJECT = (".agents/skills", ".claude/skills", ".ferrule/skills", ".ah/skills")
CARRIED = "toolbox"
SERVERS = "mcp.json"


class Place(NamedTuple):
    """A folder that skills are looked for in."""

    path: str
    owner: Literal["user", "project"]


class _Read(NamedTuple):
    """A file as it was when it was last read for a list."""

    signature: tuple[object, ...]
    skill: Skill | None
    warnings: tuple[str, ...]


class Skills:
    """Finds skills when it is asked, and remembers of each file what it said; nothing is read before."""

    def __init__(
        self,
        jail: Jail,
        *,
        home: str | None = None,
        config: str | None = None,
        beside: str = "",
        folders: Sequence[str] = (),
        disable: Sequence[str] = (),
        only: Sequence[str] | None = None,
        session: str = "",
        trusted: Callable[[], bool] = bool,
        contents: Callable[[], Mapping[str, bytes]] | None = None,
        prompts: Callable[[], Sequence[ServerPrompt]] = tuple,
        sources: Sequence[str] = ("user", "project"),
    ) -> None:
        """`folders`, `disable` and `only` are the user's settings, and `beside` is the folder of the settings file.

        `home` and `config` stand for the user's folders, `trusted` says whether the user trusts the project's code, and
        `contents` are the files of it, by real path, with what was in them then: a skill that came or changed since
        is none of those. `sources` says whose folders are looked in; `folders` always are.
        """
        self._jail = jail
        self._sources = frozenset(sources)
        home = os.path.expanduser("~") if home is None else home
        chosen = os.environ.get("XDG_CONFIG_HOME", "") if config is None else config
        self._home = home if os.path.isabs(home) else ""
        self._config = chosen if os.path.isabs(chosen) else os.path.join(home, ".config") if self._home else ""
        self._beside = beside
        self._folders = tuple(folders)
        self._disable = tuple(disable)
        self._only = None if only is None else frozenset(only)
        self.session = session
        """The session's id, for instructions that name it."""
        self._trusted = trusted
        self._contents = contents
        self._is_trusted: bool | None = None
        """What was said of it during this look."""
        self._prompts = prompts
        self._lock = threading.Lock()
        self._roots = tuple(root.path for root in jail.roots)
        """What the session began with. A folder that is added later may only be lent to it for reading."""
        self._read: dict[str, _Read] = {}
        self._first: dict[str, tuple[object, ...]] = {}
        """Files → how each was when it was first seen."""
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence, by the last look."""
        return tuple(self._warnings)

    def places(self) -> list[Place]:
        """The folders that are looked in, the one that counts most first, whether they are there or not."""
        root = self._jail.folder
        given = [os.path.join(root, os.path.expanduser(folder)) for folder in self._folders]
        own = []
        if self._home:
            own += [
                os.path.join(self._config, "agents", "skills"),
                os.path.join(self._home, ".agents", "skills"),
                os.path.join(self._config, "amp", "skills"),
            ]
        later = [os.path.join(self._home, ".claude", "skills")] if self._home else []
        later += [os.path.join(self._beside, "skills")] if self._beside else []
        places = [Place(path, "user") for path in own]
        places += [Place(os.path.join(root, *name.split("/")), "project") for name in _PROJECT]
        places += [Place(path, "user") for path in later]
        counted = [place for place in places if place.owner in self._sources]
        found: dict[str, Place] = {}
        for place in (*(Place(path, "user") for path in given), *counted):
            path = os.path.normpath(place.path)
            # Where the home folder is the workspace, one folder is both: then the stricter look counts.
            if path not in found or place.owner == "project":
                found[path] = place
        return list(found.values())

    def all(self) -> tuple[Skill, ...]:
        """Every skill of the session, those of folders first, each without its instructions."""
        with self._lock:
            found = self._found()
        return tuple(skill for skill in found.values() if not self._is_disabled(skill.name))

    def get(self, name: str) -> Skill:
        """One skill with its instructions, as they are now. Raises `ToolFailure`, with the names that are near."""
        wanted = name.strip().removeprefix("/")
        known = {skill.name: skill for skill in self.all()}
        skill = known.get(wanted) or known.get(wanted.lower()) or prompt_of(wanted, known.values())
        # A plugin's skill may be called with the plugin's name before it.
        skill = skill or known.get(wanted.rpartition(":")[2].lower())
        if skill is None:
            raise unknown(wanted, known)
        if skill.server:
            return skill
        try:
            raw = read_raw(self._jail, skill.file)
            said = read_skill(as_text(raw), skill.called)
            # Whose it is was decided by the file as it was in the list.
            listed = self._read.get(skill.file)
            is_same = listed is not None and _signature(skill.file, skill.called) == listed.signature
        except (OSError, Unusable) as error:
            why = describe(error) if isinstance(error, OSError) else str(error)
            raise ToolFailure(f"The skill {skill.name} cannot be used: {why}.", code="bad-skill") from error
        if said.values["name"] != skill.name or not is_same:
            raise ToolFailure(f"The skill {skill.name} changed while it was looked at. Try again.", code="bad-skill")
        carried = {"toolbox": self._carried(skill, CARRIED), "servers": self._carried(skill, SERVERS)}
        trusted = skill.trusted and self._is_as_trusted(skill, raw)
        return msgspec.structs.replace(skill, **said.values, **carried, trusted=trusted)

    def _is_as_trusted(self, skill: Skill, raw: bytes | None = None) -> bool:
        """Is a project's skill what the user trusts, to the byte? Without its bytes: may it be?"""
        if skill.layer != "project" or self._contents is None:
            return True
        trusted = self._contents().get(skill.file)
        return trusted is not None and raw in {None, trusted}

    def carried_text(self, skill: Skill) -> str:
        """What the file of servers says that a skill carries. Raises OSError and Unusable."""
        return as_text(read_raw(self._jail, skill.servers)) if skill.servers else ""

    def catalog_text(self, *, limit_chars: int = CATALOG_CHARS) -> str:
        """The skills that a model may load, for a system prompt; empty where there are none."""
        return catalog([skill for skill in self.all() if skill.for_model], limit_chars)

    def _found(self) -> dict[str, Skill]:
        self._warnings = {}
        found: dict[str, Skill] = {}
        seen: set[str] = set()
        self._is_trusted = None
        for place in self.places():
            for file, called in self._files(place):
                if file in seen:
                    continue
                if len(seen) >= MOST_SKILLS:
                    self._warn(
                        f"There are more than {MOST_SKILLS} skills; those of {place.path} are not all looked at."
                    )
                    break
                seen.add(file)
                skill = self._listed(file, called, place)
                # One of a project that nobody trusts is not in front of the user's own.
                if skill is not None and (
                    skill.name not in found or (skill.layer == "user" and _is_strange(found[skill.name]))
                ):
                    found[skill.name] = skill
        self._read = {file: read for file, read in self._read.items() if file in seen}
        for prompt in self._prompts():
            skill = from_prompt(prompt)
            found.setdefault(skill.name, skill)
        return found

    def _files(self, place: Place) -> Iterator[tuple[str, str]]:
        """The real paths of the `SKILL.md` files of a place, each with what its folder is called there."""
        try:
            folder = os.path.realpath(place.path)
            if place.owner == "project" and not within(folder, self._jail.folder):
                if os.path.isdir(folder):
                    self._warn(f"{place.path} leads out of the workspace and is not looked at.")
                return
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _MOST_ENTRIES + 1))
        except OSError:
            return  # mostly it is not there
        if len(names) > _MOST_ENTRIES:
            self._warn(f"{place.path} has more than {_MOST_ENTRIES:,} entries; the others are not looked at.")
        for name in names[:_MOST_ENTRIES]:
            file = os.path.join(folder, name, FILE)
            if name.startswith(".") or not os.path.lexists(file):
                continue
            with contextlib.suppress(OSError):  # a link that went away meanwhile
                real = os.path.realpath(file)
                if place.owner == "project" and not within(real, folder):
                    self._warn(f"{file} leads out of {place.path} and is not a skill.")
                else:
                    yield real, name

    def _listed(self, file: str, called: str, place: Place) -> Skill | None:
        """A skill of a list; a file that is as it was is not read again."""
        try:
            signature = _signature(file, called)
            read = self._read.get(file)
            if read is None or read.signature != signature:
                read = self._read[file] = self._understood(file, called, signature)
        except OSError as error:
            self._warn(f"{file} is not a skill: {describe(error)}.")
            return None
        for warning in read.warnings:
            self._warn(warning)
        if read.skill is None:
            return None
        layer = "user" if place.owner == "user" and self._is_own(file, read.signature) else "project"
        if layer == "project" and self._is_trusted is None:
            self._is_trusted = self._trusted()
        skill = msgspec.structs.replace(read.skill, layer=layer, place=place.path)
        trusted = layer == "user" or (self._is_trusted is True and self._is_as_trusted(skill))
        return msgspec.structs.replace(skill, trusted=trusted)

    def _is_own(self, file: str, signature: tuple[object, ...]) -> bool:
        """Is it nothing that this session can have written?"""
        first = self._first.setdefault(file, signature)
        if any(within(file, root) for root in self._roots):
            return False
        return first == signature or not self._jail.holds(file)

    def _understood(self, file: str, called: str, signature: tuple[object, ...]) -> _Read:
        try:
            said = read_skill(as_text(read_raw(self._jail, file, head_bytes=_HEADER_BYTES)), called)
        except Unusable as error:
            return _Read(signature, None, (f"{file} is not a skill: {error}.",))
        values = {**said.values, "body": ""}
        skill = Skill(layer="project", folder=os.path.dirname(file), called=called, file=file, **values)
        return _Read(signature, skill, tuple(f"{file}: {warning}." for warning in said.warnings))

    def _carried(self, skill: Skill, name: str) -> str:
        """What a skill carries under this name, as a real path; a project's may not be a link."""
        path = os.path.join(skill.folder, name)
        real = os.path.realpath(path)
        if not (os.path.isdir if name == CARRIED else os.path.isfile)(real):
            return ""
        if real != path and (skill.layer == "project" or any(within(real, root) for root in self._roots)):
            self._warn(f"{path} is a link and is left out.")
            return ""
        return real

    def _is_disabled(self, name: str) -> bool:
        if self._only is not None and name not in self._only:
            return True
        if not self._disable:
            return False
        from fnmatch import fnmatchcase  # for whoever leaves some out

        return any(fnmatchcase(name, pattern) for pattern in self._disable)

    def _warn(self, sentence: str) -> None:
        self._warnings[shown(sentence)] = None


def _is_strange(skill: Skill) -> bool:
    return skill.layer == "project" and not skill.trusted


def _signature(file: str, called: str) -> tuple[object, ...]:
    """What tells that a file is as it was. Raises OSError."""
    status = os.stat(file, follow_symlinks=False)
    return (called, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
