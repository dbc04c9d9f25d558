"""Find the skills of a session, read their files, and list them for the model.

A skill is a folder with a `SKILL.md`, or a prompt of an MCP server. If two skills have one name, the first one
found counts. The user's own folders may be links to anywhere. A skill in a folder of the project must lie in
that folder, and a skill in the workspace is the project's, even if a link elsewhere leads to it: a model can
write there.

A skill's file must be a regular file of ordinary size, and is opened without following a link.
"""

import contextlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure, near
from ferrule.files.frontmatter import FrontMatter, front_matter, is_true
from ferrule.files.jail import Jail
from ferrule.system.folder import describe, is_regular, open_folder, read_all

FILE = "SKILL.md"
MOST_DESCRIPTION_CHARS = 1024
_MOST_WORD_CHARS = 200
_MOST_RULES = 100
_MOST_RULE_CHARS = 1000
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_UNOBEYED = ("hooks", "context", "agent", "model")

Layer = Literal["user", "project", "server"]


class Parameter(NamedTuple):
    """What a server's prompt wants to know."""

    name: str
    words: str = ""
    is_required: bool = False


class ServerPrompt(NamedTuple):
    """A prompt of an MCP server, which counts as a skill."""

    server: str
    name: str
    words: str
    parameters: tuple[Parameter, ...] = ()


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as it is on disk, or as a server offers it."""

    name: str
    description: str
    layer: Layer
    """Whose it is. What lies inside the workspace is the project's, wherever it was found."""
    trusted: bool = False
    """May it bring rules, tools and servers? The user's own may, and a project's that the user trusts."""
    place: str = ""
    """The folder of skills that it was found in."""
    folder: str = ""
    """Its own folder, real; empty for a prompt."""
    called: str = ""
    """What its folder is called where it was found, which a link may call otherwise."""
    file: str = ""
    """Its `SKILL.md`, real."""
    hint: str = ""
    """What it wants as arguments, for people."""
    for_model: bool = True
    """May a model load it?"""
    for_user: bool = True
    """May a person?"""
    rules: tuple[str, ...] = ()
    """Its `allowed-tools`: calls that it wants allowed."""
    unobeyed: Mapping[str, Any] = {}
    """What it says about hooks, a model, a context and an agent. It is kept as data and not obeyed."""
    body: str = ""
    """The instructions; only where one skill was asked for."""
    toolbox: str = ""
    """The folder of tools that it carries; as above."""
    servers: str = ""
    """The file of MCP servers that it carries; as above."""
    server: str = ""
    """For a prompt: the server that has it."""
    prompt: str = ""
    """For a prompt: its name there."""
    parameters: tuple[Parameter, ...] = ()


class SkillFileContent(NamedTuple):
    """What a `SKILL.md` says, and what was wrong with it though it can be used."""

    values: dict[str, Any]
    """Fields of `Skill`."""
    warnings: tuple[str, ...]
    """Each as the end of a sentence about the file."""


class Unusable(ValueError):  # noqa: N818 - the state
    """The file is no skill; the message says why, as the end of a sentence about it."""


def require_front_matter(text: str) -> FrontMatter:
    """The front matter of a file that has to have one. Raises: Unusable."""
    header = front_matter(text, lenient=True)
    if not header.present:
        raise Unusable("it does not begin with a front matter between two lines of `---`")
    if header.problem:
        raise Unusable(f"its front matter cannot be read, for {header.problem}")
    if header.twice:
        raise Unusable(
            f"its front matter says {clean_line(header.twice[0])} twice, and only one of the two would count"
        )
    return header


def read_skill(text: str, folder_name: str) -> SkillFileContent:
    """Understand a `SKILL.md`; its folder's name counts where it has none of its own.

    Raises: Unusable.
    """
    header = require_front_matter(text)
    said = {key.strip().lower().replace("_", "-"): value for key, value in header.values.items()}
    warnings: list[str] = []
    name = _name(said.get("name"), folder_name, warnings)
    description = clean_line(_text(said.get("description")))
    if not description:
        raise Unusable("its front matter has no description")
    if len(description) > MOST_DESCRIPTION_CHARS:
        warnings.append(f"its description has {len(description):,} characters and was cut")
        description = description[:MOST_DESCRIPTION_CHARS]
    values = {
        "name": name,
        "description": description,
        "hint": clean_line(_text(said.get("argument-hint")))[:_MOST_WORD_CHARS],
        # A word that nobody understands here was to keep something out.
        "for_model": not is_true(
            said.get("disable-model-invocation"), otherwise=_says(said, "disable-model-invocation")
        ),
        "for_user": is_true(said.get("user-invocable"), otherwise=not _says(said, "user-invocable")),
        "rules": rules(said.get("allowed-tools")),
        "unobeyed": {key: said[key] for key in _UNOBEYED if said.get(key) is not None},
        "body": header.body,
    }
    return SkillFileContent(values, tuple(warnings))


def from_prompt(prompt: ServerPrompt) -> Skill:
    """A server's prompt as a skill."""
    hint = " ".join(f"{one.name}=…" if one.is_required else f"[{one.name}=…]" for one in prompt.parameters)
    words = clean_line(prompt.words)[:MOST_DESCRIPTION_CHARS]
    return Skill(
        name=clean_line(f"{prompt.server}:{prompt.name}")[:_MOST_WORD_CHARS],
        description=words or f"A prompt of the server {clean_line(prompt.server)}.",
        layer="server",
        hint=clean_line(hint)[:_MOST_WORD_CHARS],
        server=prompt.server,
        prompt=prompt.name,
        parameters=prompt.parameters,
    )


def rules(value: Any) -> tuple[str, ...]:
    """The rules of `allowed-tools`: a list, or words between commas or blanks, of which parentheses keep some whole."""
    if isinstance(value, list):
        found = [one.strip() for one in value if isinstance(one, str)]
    else:
        found = _split_words(value) if isinstance(value, str) else []
    return tuple(dict.fromkeys(one for one in found if one and len(one) <= _MOST_RULE_CHARS))[:_MOST_RULES]


def clean_line(text: str) -> str:
    """A text in one line, without characters that steer a terminal or cannot be seen."""
    return " ".join("".join(char if char.isprintable() else " " if char.isspace() else "" for char in text).split())


def is_name(name: str) -> bool:
    return re.fullmatch(_NAME, name) is not None


def _name(value: Any, folder_name: str, warnings: list[str]) -> str:
    for name in (_text(value).strip(), folder_name):
        if not name:
            continue
        if is_name(name):
            return name
        if is_name(name.lower()):
            warnings.append(f"its name {name} was taken as {name.lower()}")
            return name.lower()
        warnings.append(f"its name {clean_line(name)[:80]!r} is not made of small letters, digits and hyphens")
    raise Unusable(warnings[-1])


def _says(said: Mapping[str, Any], key: str) -> bool:
    return said.get(key) is not None


def _text(value: Any) -> str:
    """A value that is to be a text; `[file] [more]` is read as a list, and was meant as it is written."""
    if isinstance(value, list):
        return " ".join(f"[{one}]" for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _split_words(words: str) -> list[str]:
    """The parts between commas and blanks, but for those inside of parentheses."""
    found, word, depth = [], "", 0
    for char in words:
        if depth == 0 and (char == "," or char.isspace()):
            found.append(word)
            word = ""
            continue
        depth = max(0, depth + (char == "(") - (char == ")"))
        word += char
    return [*found, word]


CATALOG_CHARS = 8000
_HEAD = "<available_skills>\nInstructions for special tasks. Load one with the skill tool when its line fits the task."
_TAIL = "</available_skills>"
_MORE_CHARS = 40
_MOST_NAMED = 20
_MOST_ENTRIES, _MOST_BESIDE = 2000, 50


def catalog(skills: Sequence[Skill], limit_chars: int) -> str:
    """A line for each skill; where there is no room for that, only their names."""
    if not skills:
        return ""
    room = limit_chars - len(_HEAD) - len(_TAIL) - _MORE_CHARS
    kept = list(itertools.takewhile(_fits(room), (_line(skill) for skill in skills)))
    if len(kept) < len(skills):
        # Names are worth more than some of the descriptions: what is named can be loaded.
        kept = list(itertools.takewhile(_fits(room), (_escape_markup(f"- {skill.name}") for skill in skills)))
    more = [f"- and {len(skills) - len(kept):,} more"] if len(kept) < len(skills) else []
    return "\n".join((_HEAD, *kept, *more, _TAIL))


def unknown(name: str, known: Mapping[str, Skill]) -> ToolFailure:
    """What is said about a name that no skill has."""
    meant = near(name[:100], known)
    if meant:
        hint = f"Did you mean {' or '.join(meant)}?"
    elif known:
        names = ", ".join(itertools.islice(known, _MOST_NAMED))
        hint = f"The skills are {names}{' and others' if len(known) > _MOST_NAMED else ''}."
    else:
        hint = "There are no skills in this session."
    return ToolFailure(f"There is no skill called {clean_line(name)[:100]!r}. {hint}", code="unknown-skill")


def prompt_of(name: str, known: Iterable[Skill]) -> Skill | None:
    """A server's prompt by its longer name, `mcp__server__prompt`."""
    return next((one for one in known if one.server and name == f"mcp__{one.server}__{one.prompt}"), None)


def files_beside(skill: Skill) -> tuple[str, ...]:
    """The names of what lies beside a `SKILL.md`, folders with a slash at their end."""
    try:
        with os.scandir(skill.folder) as entries:
            found = [(entry.name, entry.is_dir()) for entry in itertools.islice(entries, _MOST_ENTRIES)]
    except OSError:
        return ()
    named = sorted(f"{name}/" if is_folder else name for name, is_folder in found)
    return tuple(clean_line(name) for name in named if name != FILE and not name.startswith("."))[:_MOST_BESIDE]


def _line(skill: Skill) -> str:
    hint = f" (arguments: {skill.hint})" if skill.hint else ""
    return _escape_markup(f"- {skill.name}{hint}: {skill.description}")


def _escape_markup(line: str) -> str:
    """No line of a skill's ends the list."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fits(room: int) -> Callable[[str], bool]:
    """Is there room for one more line? Asked for each in turn."""
    left = [room]

    def fits(line: str) -> bool:
        left[0] -= len(line) + 1
        return left[0] >= 0

    return fits


FILE_BYTES = 1 << 18


def read_raw(jail: Jail, file: str, *, head_bytes: int | None = None) -> bytes:
    """The bytes of the file at a real path; its beginning with `head_bytes`. Raises OSError and Unusable."""
    try:
        with jail.place(file).folder() if jail.holds(file) else open_folder(os.path.dirname(file)) as folder:
            descriptor = folder.open(os.path.basename(file))
    except ToolFailure as error:
        raise Unusable(error.message.rstrip(".")) from error
    try:
        if not is_regular(descriptor):
            raise Unusable("it is no regular file")
        if (size := os.fstat(descriptor).st_size) > FILE_BYTES:
            raise Unusable(f"it has {size:,} bytes, and {FILE_BYTES:,} is the most")
        raw = read_all(descriptor, head_bytes or FILE_BYTES)
    finally:
        os.close(descriptor)
    if b"\0" in raw or len(raw) > FILE_BYTES:
        raise Unusable("it is no text")
    return raw


def as_text(raw: bytes) -> str:
    return raw.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")


MOST_SKILLS = 500
_HEADER_BYTES = 1 << 16
"""So much of a file is read for a list; the largest front matter fits."""
_SKILLS_MOST_ENTRIES = 2000
"""Names of one folder that are looked at."""
_PROJECT = (".agents/skills", ".claude/skills", ".ferrule/skills", ".ah/skills")
CARRIED = "toolbox"
SERVERS = "mcp.json"


class SkillFolder(NamedTuple):
    """A folder that skills are looked for in."""

    path: str
    owner: Literal["user", "project"]


class _SkillSnapshot(NamedTuple):
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
        self._read: dict[str, _SkillSnapshot] = {}
        self._first: dict[str, tuple[object, ...]] = {}
        """Files → how each was when it was first seen."""
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be used, each as a sentence, by the last look."""
        return tuple(self._warnings)

    def places(self) -> list[SkillFolder]:
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
        places = [SkillFolder(path, "user") for path in own]
        places += [SkillFolder(os.path.join(root, *name.split("/")), "project") for name in _PROJECT]
        places += [SkillFolder(path, "user") for path in later]
        counted = [place for place in places if place.owner in self._sources]
        found: dict[str, SkillFolder] = {}
        for place in (*(SkillFolder(path, "user") for path in given), *counted):
            path = os.path.normpath(place.path)
            # Where the home folder is the workspace, one folder is both: then the stricter look counts.
            if path not in found or place.owner == "project":
                found[path] = place
        return list(found.values())

    def all(self) -> tuple[Skill, ...]:
        """Every skill of the session, those of folders first, each without its instructions."""
        with self._lock:
            found = self._find_skills()
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
        carried = {"toolbox": self._find_carried(skill, CARRIED), "servers": self._find_carried(skill, SERVERS)}
        trusted = skill.trusted and self._is_as_trusted(skill, raw)
        return msgspec.structs.replace(skill, **said.values, **carried, trusted=trusted)

    def _is_as_trusted(self, skill: Skill, raw: bytes | None = None) -> bool:
        """Is a project's skill what the user trusts, to the byte? Without its bytes: may it be?"""
        if skill.layer != "project" or self._contents is None:
            return True
        trusted = self._contents().get(skill.file)
        return trusted is not None and raw in {None, trusted}

    def read_servers(self, skill: Skill) -> str:
        """What the file of servers says that a skill carries. Raises OSError and Unusable."""
        return as_text(read_raw(self._jail, skill.servers)) if skill.servers else ""

    def catalog_text(self, *, limit_chars: int = CATALOG_CHARS) -> str:
        """The skills that a model may load, for a system prompt; empty where there are none."""
        return catalog([skill for skill in self.all() if skill.for_model], limit_chars)

    def _find_skills(self) -> dict[str, Skill]:
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
                skill = self._load_skill(file, called, place)
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

    def _files(self, place: SkillFolder) -> Iterator[tuple[str, str]]:
        """The real paths of the `SKILL.md` files of a place, each with what its folder is called there."""
        try:
            folder = os.path.realpath(place.path)
            if place.owner == "project" and not within(folder, self._jail.folder):
                if os.path.isdir(folder):
                    self._warn(f"{place.path} leads out of the workspace and is not looked at.")
                return
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _SKILLS_MOST_ENTRIES + 1))
        except OSError:
            return  # mostly it is not there
        if len(names) > _SKILLS_MOST_ENTRIES:
            self._warn(f"{place.path} has more than {_SKILLS_MOST_ENTRIES:,} entries; the others are not looked at.")
        for name in names[:_SKILLS_MOST_ENTRIES]:
            file = os.path.join(folder, name, FILE)
            if name.startswith(".") or not os.path.lexists(file):
                continue
            with contextlib.suppress(OSError):  # a link that went away meanwhile
                real = os.path.realpath(file)
                if place.owner == "project" and not within(real, folder):
                    self._warn(f"{file} leads out of {place.path} and is not a skill.")
                else:
                    yield real, name

    def _load_skill(self, file: str, called: str, place: SkillFolder) -> Skill | None:
        """A skill of a list; a file that is as it was is not read again."""
        try:
            signature = _signature(file, called)
            read = self._read.get(file)
            if read is None or read.signature != signature:
                read = self._read[file] = self._parse_file(file, called, signature)
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

    def _parse_file(self, file: str, called: str, signature: tuple[object, ...]) -> _SkillSnapshot:
        try:
            said = read_skill(as_text(read_raw(self._jail, file, head_bytes=_HEADER_BYTES)), called)
        except Unusable as error:
            return _SkillSnapshot(signature, None, (f"{file} is not a skill: {error}.",))
        values = {**said.values, "body": ""}
        skill = Skill(layer="project", folder=os.path.dirname(file), called=called, file=file, **values)
        return _SkillSnapshot(signature, skill, tuple(f"{file}: {warning}." for warning in said.warnings))

    def _find_carried(self, skill: Skill, name: str) -> str:
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

        return any(fnmatchcase(name, pattern) for pattern in self._disable)

    def _warn(self, sentence: str) -> None:
        self._warnings[clean_line(sentence)] = None


def _is_strange(skill: Skill) -> bool:
    return skill.layer == "project" and not skill.trusted


def _signature(file: str, called: str) -> tuple[object, ...]:
    """What tells that a file is as it was. Raises OSError."""
    status = os.stat(file, follow_symlinks=False)
    return (called, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
