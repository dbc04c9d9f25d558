"""Read the layers of rules, and store the user's trust in a project's rules and code.

Trust is in the contents of these files, in this folder, and in nothing else. A project is known by its real path
and the folder that is there now, and its rules by a hash of them all. A folder that is moved or replaced, or a
file that is changed, added or removed, ends the trust. Nothing is inherited: not from the parent folder, and not
from a repository that a `.git` file points to, for anybody can write such a file.

The code of a project is every file that would run or start something: tools, toolboxes, servers, commands, and
the files that skills carry. None of it is used before the user trusts it, with these contents and this mode; a
file that is added, changed or removed ends the trust in all of it.

A write that a person has agreed to keeps the trust, with the new bytes, but only if everything else is as it was
trusted, or if there was nothing: a yes to one file is no yes to others that nobody has looked at.

Decisions are kept in small files that only their owner can read. They are written whole, and distrusted if odd.
Grants are kept for each workspace, outside of it.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.core.tool import Preview
from ferrule.permissions import visible
from ferrule.permissions.rules import Layer, RuleSet
from ferrule.settings import COMMAND_FOLDERS, SOURCES, Permissions, Source, decode_settings, settings_path
from ferrule.system.folder import (
    FRESH,
    READ_NO_LINK,
    Folder,
    Locks,
    LockTimeoutError,
    describe,
    open_folder,
    read_all,
    read_regular,
    sync,
    write_all,
)

PROJECT_FILES = (
    ".ferrule/settings.toml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".amp/settings.json",
    ".amp/settings.jsonc",
)
"""The files of a project that rules are read from. Until the user trusts them they can only tighten."""
_WITH_HOOKS = 3
"""The first of them may have hooks."""
_MOST_BYTES = 1 << 20

Canonical = Callable[[str], str | None]


class RuleContext(NamedTuple):
    """What reading rules takes."""

    workspace: str
    canonical: Canonical
    """A tool's name in any family → the canonical tool."""
    home: str = ""


class RuleLayers(NamedTuple):
    """All rules of a session, and what the files ask for beside them."""

    sets: tuple[RuleSet, ...]
    mode: str = ""
    """The permission mode that a file asks for; the project's counts only where it is trusted."""
    bypass: bool = True
    """May the session be in the mode bypassPermissions?"""
    wishes: tuple[str, ...] = ()
    """Modes that an untrusted project asks for: they count where they tighten."""

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(visible(warning) for one in self.sets for warning in one.warnings)


def active_files(sources: Sequence[Source]) -> list[str]:
    """Those files of a project that count in a session with these sources."""
    return [name for name in PROJECT_FILES if ("local" if name.endswith(".local.json") else "project") in sources]


def has_rules(
    workspace: str, permissions: Permissions, managed: str, grants: str, sources: Sequence[Source] = SOURCES
) -> bool:
    """Is there any rule at all? Mostly there is none, and then nothing is loaded for them."""
    if permissions != Permissions() or os.path.exists(managed) or os.path.exists(grants):
        return True
    return any(os.path.lexists(os.path.join(workspace, name)) for name in active_files(sources))


def project_files(workspace: str) -> list[str]:
    """The files that trust is about, whether they are there or not, and the scripts that their hooks name."""
    files = [os.path.join(workspace, name) for name in PROJECT_FILES]
    if not any(map(os.path.lexists, files[:_WITH_HOOKS])):
        return files
    from ferrule.permissions.shell.started import find_hook_scripts  # for projects with such files

    return [*files, *find_hook_scripts(workspace, files[:_WITH_HOOKS])]


def load_layers(
    origin: RuleContext,
    permissions: Permissions,
    *,
    managed: str = "",
    trusted: Mapping[str, bytes] | None = None,
    said: Sequence[str] = (),
    sources: Sequence[Source] = SOURCES,
) -> RuleLayers:
    """The rules of every layer. Raises `ConfigError` for rules that cannot be understood: they might have denied.

    `trusted` are the contents of the project's files that the user trusts, by path; None: the project is not trusted.
    """
    sets: list[RuleSet] = []
    bypass = permissions.bypass
    if managed and os.path.exists(managed):
        ruling = decode_settings(_contents(managed), managed).permissions
        sets += from_settings(ruling, origin, source=managed, layer="managed")
        bypass = bypass and ruling.bypass
        if ruling.mode != "default":
            sets.append(RuleSet((), ordered=False, source=managed, layer="managed", mode=ruling.mode))
    sets += from_settings(permissions, origin, source="the user's settings", layer="user")
    sets += _project(origin, trusted, sources)
    if said and "local" in sources:
        sets.append(allow_rules(said, origin))
    asked = [one.mode for one in sets if one.mode and (one.layer != "project" or trusted is not None)]
    bypass = bypass and not any(one.forbids_bypass for one in sets)
    wishes = tuple(one.mode for one in sets if one.mode and one.layer == "project" and trusted is None)
    return RuleLayers(tuple(sets), asked[0] if asked else "", bypass, wishes)


def from_settings(permissions: Permissions, origin: RuleContext, *, source: str, layer: Layer) -> list[RuleSet]:
    """The rules of one of our own settings files."""
    sets = [
        _build_rules(action, texts, origin, source=source, layer=layer)
        for action, texts in (("deny", permissions.deny), ("ask", permissions.ask), ("allow", permissions.allow))
        if texts
    ]
    if permissions.ordered:
        from ferrule.permissions.rules import amp  # for whoever writes ordered rules

        sets.append(amp.read("\n".join(permissions.ordered), source=source, layer=layer, home=_home(origin)))
    for file in permissions.files:
        path = os.path.join(origin.workspace, os.path.expanduser(file)) if layer == "project" else own_path(file)
        read = read_rules(path, origin, layer=layer)
        # Trust is about the project's own files of settings: what they name may be written by anybody since.
        sets.append(_strict_rules(read) if layer == "project" else read)
    return sets


def _strict_rules(rules: RuleSet) -> RuleSet:
    """What of the rules can only tighten."""
    kept = tuple(
        rule._replace(action="ask", to="") if rule.action == "delegate" else rule
        for rule in rules.rules
        if rule.action != "allow"
    )
    mode = rules.mode if rules.mode in {"plan", "dontAsk"} else ""
    return rules._replace(rules=kept, mode=mode, folders=(), guarded_allow=())


def read_rules(
    path: str, origin: RuleContext, *, layer: Layer, alone: bool = False, raw: bytes | None = None
) -> RuleSet:
    """A file of rules, in whichever syntax it is. One that stands `alone` speaks of the workspace, wherever it lies."""
    from ferrule.permissions.rules import amp, claude  # only files of rules need them

    try:
        text = (_contents(path) if raw is None else raw).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: it is not UTF-8 text.") from error
    except OSError as error:
        raise ConfigError(f"Cannot read the rules in {path}: {error.strerror}.") from error
    if path.endswith(".toml"):
        return claude.read_wayland(text, source=path, layer=layer)
    if _is_claude(text, path):
        folder = os.path.dirname(os.path.dirname(path)) if os.path.basename(os.path.dirname(path)) == ".claude" else ""
        kind: claude.Kind = "project" if layer == "project" or alone else "user"
        if path.endswith("settings.local.json"):
            kind = "local"
        return claude.read(
            text,
            source=path,
            layer=layer,
            root=folder if layer == "project" and folder else origin.workspace,
            home=_home(origin),
            cwd=origin.workspace,
            kind=kind,
            canonical=origin.canonical,
        )
    return amp.read(text, source=path, layer=layer, home=_home(origin))


def _is_claude(text: str, path: str) -> bool:
    """Is it a settings file of Claude Code? The other syntaxes have lists, other keys, or no JSON at all."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        said = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return ".claude" in path.split(os.sep)  # its own reader says what is wrong with it
    if not isinstance(said, dict) or any(key.startswith("amp.") for key in said):
        return False
    return not isinstance(said.get("permissions"), list)


def _project(origin: RuleContext, trusted: Mapping[str, bytes] | None, sources: Sequence[Source]) -> Iterable[RuleSet]:
    for path in (os.path.join(origin.workspace, name) for name in active_files(sources)):
        if not os.path.lexists(path):
            continue
        # What is trusted are the very bytes that were looked at, whatever is there by now.
        raw = _readable(path) if trusted is None else trusted.get(path, b"")
        if path.endswith(".toml"):
            ruling = decode_settings(raw, path).permissions
            yield from from_settings(ruling, origin, source=path, layer="project")
            if ruling.mode != "default":
                yield RuleSet((), ordered=False, source=path, layer="project", mode=ruling.mode)
        else:
            yield read_rules(path, origin, layer="project", raw=raw)


def allow_rules(texts: Sequence[str], origin: RuleContext) -> RuleSet:
    """What the user said "always" to."""
    return _build_rules("allow", texts, origin, source="what you said before", layer="session")


def deny_rules(texts: Sequence[str], origin: RuleContext, *, source: str) -> RuleSet:
    """What the user does not want in this session."""
    return _build_rules("deny", texts, origin, source=source, layer="session")


def _build_rules(action: str, texts: Sequence[str], origin: RuleContext, *, source: str, layer: Layer) -> RuleSet:

    from ferrule.permissions.rules import claude  # for whoever has rules

    return claude.read(
        json.dumps({"permissions": {action: list(texts)}}),
        source=source,
        layer=layer,
        root=origin.workspace,
        home=_home(origin),
        cwd=origin.workspace,
        kind="session",
        canonical=origin.canonical,
    )


def _contents(path: str) -> bytes:
    """A file of rules: a regular one of ordinary size, and in a project not somebody else's behind a link."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"{path}: more than {_MOST_BYTES:,} bytes of rules.")
    return raw


def _readable(path: str) -> bytes:
    """The same of a project, which may have put anything there. Raises `ConfigError`."""
    try:
        return _contents(path)
    except OSError as error:
        raise ConfigError(f"Cannot read the rules in {path}: {error.strerror}.") from error


def _home(origin: RuleContext) -> str:
    return origin.home or os.path.expanduser("~")


def own_path(path: str) -> str:
    """A file that the user's settings name, from the folder of those: where a session is started may be anybody's."""
    return os.path.abspath(os.path.join(os.path.dirname(settings_path()), os.path.expanduser(path)))


_LIMIT_BYTES = 4 << 20

Content = TypeVar("Content", bound=msgspec.Struct)


class StateFile(Generic[Content]):
    """One JSON file in a folder of the user's state. Without it, and where it cannot be believed, it says nothing."""

    def __init__(self, path: str, kind: type[Content]) -> None:
        """`kind` is what the file holds; all its fields have defaults, which say nothing."""
        self.path = path
        self._kind = kind

    def read(self) -> Content:
        """What the file says. A damaged one is moved aside; that, and one that others can write, says nothing."""
        try:
            return self._decode_file()
        except _DamagedError:
            pass
        except (OSError, _ForeignError):
            return self._kind()

        with contextlib.suppress(OSError, LockTimeoutError, _ForeignError), self._locks().hold([self.path]):
            return self._read_or_reset()
        return self._kind()

    def change(self, change: Callable[[Content], Content]) -> None:
        """Write what `change` makes of what the file says; nobody else changes it meanwhile.

        Raises: ConfigError when it cannot be written; then it is as it was.
        """
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with self._locks().hold([self.path]):
                before = self._read_or_reset()
                after = change(before)
                if after != before:
                    self._write(msgspec.json.format(msgspec.json.encode(after)) + b"\n")
        except _ForeignError as error:
            raise ConfigError(
                f"{self.path} is not a file that only you can write. Remove it, or take it over."
            ) from error
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written ({describe(error)}).") from error
        except LockTimeoutError as error:
            raise ConfigError(f"{self.path} cannot be written: {error}. Try again.") from error

    def _locks(self) -> "Locks":

        return Locks(os.path.join(os.path.dirname(self.path), "locks"))

    def _read_or_reset(self) -> Content:
        """What the file says, with the lock held: what cannot be believed is out of the way afterwards."""
        try:
            return self._decode_file()
        except FileNotFoundError:
            return self._kind()
        except _DamagedError:
            # Kept, not deleted: a person may want to see what happened to it.
            os.rename(self.path, f"{self.path}.damaged-{os.urandom(4).hex()}")
            return self._kind()

    def _decode_file(self) -> Content:
        try:
            descriptor = os.open(self.path, READ_NO_LINK)
        except OSError as error:
            if os.path.islink(self.path):
                raise _ForeignError from error
            raise
        try:
            status = os.fstat(descriptor)
            shared = os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022)
            if not stat.S_ISREG(status.st_mode) or shared:
                raise _ForeignError
            raw = read_all(descriptor, _LIMIT_BYTES)
        finally:
            os.close(descriptor)
        if len(raw) > _LIMIT_BYTES:
            raise _DamagedError
        try:
            return msgspec.json.decode(raw, type=self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _DamagedError from error

    def _write(self, data: bytes) -> None:
        temporary = f"{self.path}.{os.urandom(8).hex()}.new"
        try:
            descriptor = os.open(temporary, FRESH, 0o600)
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if os.name == "posix":
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sync(folder)
            finally:
                os.close(folder)


class _DamagedError(Exception):
    """The file does not hold what we wrote."""


class _ForeignError(Exception):
    """The file is a link, or somebody else's, or others can write it. It may be another user's own: it stays there."""


State = Literal["trusted", "changed", "unknown"]

_FILE_BYTES = 1 << 20
_FILES = 256


class Trusted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project that the user trusts."""

    device: int
    inode: int
    fingerprint: str
    """The hash of its rules."""
    since: float


class _Trusts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file, by the real paths of the projects."""

    version: Literal[1] = 1
    workspaces: dict[str, Trusted] = {}


class ProjectSnapshot(NamedTuple):
    """A look at a project: what decides is the very content that was hashed."""

    state: State
    contents: Mapping[str, bytes]
    """The files that are there, by the names that were given."""
    fingerprint: str
    """Empty where the files cannot be trusted at all."""
    obstacle: str = ""
    """Why they cannot, as a sentence."""


class Trust:
    """What the user trusts, kept in the state folder."""

    def __init__(self, state_folder: str, about: Literal["rules", "code"] = "rules") -> None:
        self._folder = os.path.realpath(state_folder)
        name = "projects.json" if about == "rules" else "code.json"
        self._kept = StateFile(os.path.join(self._folder, "trust", name), _Trusts)

    def state(self, workspace: str, files: Sequence[str]) -> State:
        """Are these files, absolute or from the workspace, as the user trusted them?"""
        return self.look(workspace, files).state

    def look(self, workspace: str, files: Sequence[str]) -> ProjectSnapshot:
        """The files' contents, and whether the user trusts just these."""
        real = os.path.realpath(workspace)
        try:
            with open_folder(real) as folder:
                here = os.stat(real) if folder.descriptor is None else os.fstat(folder.descriptor)
                names = {name: _from(os.path.abspath(workspace), real, name) for name in files}
                contents = _read_contents(folder, names)
        except _UntrustworthyError as error:
            return ProjectSnapshot(
                "changed" if _key(real) in self._kept.read().workspaces else "unknown", {}, "", str(error)
            )
        except OSError as error:
            return ProjectSnapshot("unknown", {}, "", f"{workspace} cannot be looked at ({error.strerror}).")
        found = {name: raw for name, raw in contents.items() if raw is not None}
        fingerprint = _fingerprint({names[name]: raw for name, raw in contents.items()})
        if within(self._folder, real):
            return ProjectSnapshot("unknown", found, "", "What the user trusts is kept inside of the workspace.")
        trusted = self._kept.read().workspaces.get(_key(real))
        if trusted is None or (trusted.device, trusted.inode) != (here.st_dev, here.st_ino):
            return ProjectSnapshot("unknown", found, fingerprint)
        return ProjectSnapshot("trusted" if trusted.fingerprint == fingerprint else "changed", found, fingerprint)

    def grant(self, workspace: str, files: Sequence[str], *, seen: str = "") -> None:
        """Trust the files as they are; `seen` is the fingerprint of what the user was shown.

        Raises: ConfigError when they changed since, or cannot be trusted.
        """
        look = self.look(workspace, files)
        if not look.fingerprint:
            raise ConfigError(look.obstacle)
        if seen not in {"", look.fingerprint}:
            raise ConfigError(f"The rules of {workspace} have changed since they were shown. Look at them again.")
        real = os.path.realpath(workspace)
        here = os.stat(real)
        trusted = Trusted(here.st_dev, here.st_ino, look.fingerprint, time.time())
        self._kept.change(lambda kept: _Trusts(workspaces=kept.workspaces | {_key(real): trusted}))

    def revoke(self, workspace: str) -> None:
        """Trust the project no more."""
        key = _key(os.path.realpath(workspace))
        self._kept.change(
            lambda kept: _Trusts(workspaces={name: one for name, one in kept.workspaces.items() if name != key})
        )

    def list(self) -> Mapping[str, Trusted]:
        """The projects that were trusted, by their real paths; whether they still are, `state` says."""
        return self._kept.read().workspaces


class _UntrustworthyError(Exception):
    """A file of rules that is no plain file of the project's own."""


def _key(real: str) -> str:
    # A path may hold bytes that are no text; JSON holds text only.
    return os.fsencode(real).decode("utf-8", "backslashreplace")


def _from(workspace: str, real: str, name: str) -> str:
    """A file's name from the workspace, whichever way it was given."""
    path = os.path.normpath(os.path.join(real, name))
    folder = next((one for one in (real, workspace) if within(path, one) and path != one), None)
    if folder is None:
        raise _UntrustworthyError(f"{name} is not in the workspace.")
    return os.path.relpath(path, folder)


def _read_contents(folder: Folder, names: Mapping[str, str]) -> dict[str, bytes | None]:
    if len(names) > _FILES:
        raise _UntrustworthyError(f"There are more than {_FILES} files, which nobody can look through.")
    return {given: _content(folder, name) for given, name in names.items()}


def _content(folder: Folder, name: str) -> bytes | None:
    """A file's content, None where there is none. No step on the way to it is a link."""
    *way, last = name.split(os.sep)
    try:
        _refuse_links(folder, [*way, last])
        with folder.below(way) as inner:
            descriptor = inner.open(last)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _UntrustworthyError(f"{name} cannot be read ({error.strerror}).") from error
    raw = read_regular(descriptor, _FILE_BYTES)
    if raw is None:
        raise _UntrustworthyError(f"{name} is not a regular file, so it cannot be trusted.")
    if len(raw) > _FILE_BYTES:
        raise _UntrustworthyError(f"{name} is larger than {_FILE_BYTES:,} bytes, so it cannot be trusted.")
    return raw


def _refuse_links(folder: Folder, parts: Sequence[str]) -> None:
    """Say so where a step is a link. Opening refuses links anyway; this tells one from what is not there."""
    for count in range(1, len(parts) + 1):
        path = os.path.join(folder.path, *parts[:count])
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise _UntrustworthyError(f"{path} is a link, so it cannot be trusted. Put the file itself there.")


def _fingerprint(contents: Mapping[str, bytes | None]) -> str:
    """One hash over names and contents, each with its length: no two projects run together into the same bytes."""
    total = hashlib.sha256()
    for name, raw in sorted(contents.items()):
        for part in (os.fsencode(name), b"missing" if raw is None else b"there", raw or b""):
            total.update(len(part).to_bytes(8, "big"))
            total.update(part)
    return total.hexdigest()


_MOST = 1000
_CHARS = 4096


class _Granted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of one workspace."""

    workspace: str = ""
    device: int = 0
    inode: int = 0
    rules: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Those that confined commands may reach."""


def grants_path(state_folder: str, workspace: str) -> str:
    """The file of a workspace, which is given by its real path."""
    name = hashlib.blake2b(os.fsencode(workspace), digest_size=10).hexdigest()
    return os.path.join(state_folder, "grants", f"{name}.json")


class Grants:
    """The rules and hosts of one workspace that hold from session to session.

    They belong to the folder that they were given in: another one that comes to the same path has none of them.
    """

    def __init__(self, state_folder: str, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._state = os.path.realpath(state_folder)
        self._kept = StateFile(grants_path(self._state, self._workspace), _Granted)

    def texts(self) -> tuple[str, ...]:
        """The rules as they were said, oldest first."""
        return () if within(self._state, self._workspace) else self._valid(self._kept.read()).rules

    def hosts(self) -> tuple[str, ...]:
        """The hosts that confined commands may reach, oldest first."""
        return () if within(self._state, self._workspace) else self._valid(self._kept.read()).hosts

    def add_host(self, host: str) -> None:
        """Keep a host. Where that cannot be, it holds for the session alone."""
        if _showable(host) and not within(self._state, self._workspace):
            with contextlib.suppress(ConfigError, OSError):
                self._kept.change(lambda granted: self._with(granted, host=host))

    def remove_host(self, host: str) -> None:
        """Keep it no more."""
        self._change(
            lambda granted: self._bind_to_workspace(granted.rules, tuple(one for one in granted.hosts if one != host))
        )

    def add(self, rule_text: str) -> None:
        """Keep a rule, such as `Bash(git commit *)`. One that is there already stays where it is.

        Raises: ConfigError when it is no rule that a person could be shown, or when it cannot be kept.
        """
        if not _showable(rule_text):
            raise ConfigError(f"A rule is one line of visible text, of at most {_CHARS} characters.")
        if within(self._state, self._workspace):
            raise ConfigError("Rules are not kept inside of the workspace that they are about. Set FERRULE_STATE.")
        self._kept.change(lambda granted: self._with(granted, rule=rule_text))

    def remove(self, rule_text: str) -> None:
        """Keep it no more."""
        self._change(
            lambda granted: self._bind_to_workspace(
                tuple(one for one in granted.rules if one != rule_text), granted.hosts
            )
        )

    def _change(self, function: Callable[[_Granted], _Granted]) -> None:
        if os.path.exists(self._kept.path):
            self._kept.change(lambda granted: function(self._valid(granted)))

    def _with(self, granted: _Granted, *, rule: str = "", host: str = "") -> _Granted:
        """What was granted, with one more rule or host at the end."""
        valid = self._valid(granted)
        rules = (*valid.rules, rule) if rule and rule not in valid.rules else valid.rules
        hosts = (*valid.hosts, host) if host and host not in valid.hosts else valid.hosts
        for kept, what in ((rules, "rules"), (hosts, "hosts")):
            if len(kept) > _MOST:
                raise ConfigError(f"There are {_MOST} {what} already. Remove some that are of no use any more.")
        return self._bind_to_workspace(rules, hosts)

    def _valid(self, granted: _Granted) -> _Granted:
        """What of it holds: nothing of what was granted in another folder that was here."""
        if granted != self._bind_to_workspace(granted.rules, granted.hosts):
            return self._bind_to_workspace((), ())
        return self._bind_to_workspace(tuple(filter(_showable, granted.rules)), tuple(filter(_showable, granted.hosts)))

    def _bind_to_workspace(self, rules: tuple[str, ...], hosts: tuple[str, ...]) -> _Granted:
        try:
            here = os.stat(self._workspace)
        except OSError:
            return _Granted()
        name = os.fsencode(self._workspace).decode("utf-8", "backslashreplace")
        return _Granted(name, here.st_dev, here.st_ino, rules, hosts)


def _showable(text: str) -> bool:
    return 0 < len(text) <= _CHARS and text == text.strip() and text.isprintable()


SERVERS = (".mcp.json",)
TOOLS = ("tools", ".ferrule/tools")
"""Folders of custom tools; the later one overrides the earlier one."""
TOOLBOXES = (".agents/tools", ".amp/toolbox")
SKILLS = (".agents/skills", ".claude/skills", ".ferrule/skills", ".ah/skills")
_CARRIED = ("toolbox", "tools")
_MOST_CODE_FILES = 256


def code_files(workspace: str) -> list[str]:
    """All of them that are there, and `.mcp.json` in any case; more than can be trusted are cut, and then none is."""
    found = [os.path.join(workspace, name) for name in SERVERS]
    for name in TOOLS:
        found += _tools(os.path.join(workspace, name))
    for name in TOOLBOXES:
        found += _files(os.path.join(workspace, name))
    for name in SKILLS:
        for skill in _names(os.path.join(workspace, name)):
            folder = os.path.join(workspace, name, skill)
            found += [path for path in (os.path.join(folder, "mcp.json"),) if os.path.lexists(path)]
            found += [path for path in (os.path.join(folder, "SKILL.md"),) if os.path.lexists(path)]
            for carried in _CARRIED:
                found += _files(os.path.join(folder, carried))
    from ferrule.tools.skills.text import markdown_files  # loads skills, which most sessions have none of

    for name in COMMAND_FOLDERS:
        found += markdown_files(os.path.join(workspace, name))
    return found


def is_any(workspace: str) -> bool:
    """Is there anything of the kind at all? Mostly there is not."""
    folders = (*SERVERS, *TOOLS, *TOOLBOXES, *SKILLS, *COMMAND_FOLDERS)
    return any(os.path.lexists(os.path.join(workspace, name)) for name in folders)


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))[:_MOST_CODE_FILES]
    except OSError:
        return []


def _files(folder: str) -> list[str]:
    return [path for name in _names(folder) if not os.path.isdir(path := os.path.join(folder, name))]


def _tools(folder: str) -> list[str]:
    """Modules, executables, and what is written about an executable; other files of such a folder are the project's."""
    files = _files(folder)
    programs = {path for path in files if path.endswith((".py", ".lua")) or _is_executable(path)}
    return [path for path in files if path in programs or path.removesuffix(".md") in programs]


def _is_executable(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


ApprovedWrites = Callable[[], None]
"""Called when what was agreed to is written."""


def do_nothing() -> None:
    """Nothing follows."""


class Approved:
    """Lets trust follow the writes that a person has agreed to."""

    def __init__(self, state: str, workspace: str) -> None:
        self._workspace = workspace
        self._trusts = ((Trust(state), project_files), (Trust(state, "code"), code_files))

    def obeys(self, path: str) -> bool:
        """Would this program itself obey the file?"""
        return any(path in files(self._workspace) for _, files in self._trusts)

    def before(self, agreed: Preview) -> ApprovedWrites:
        """Look at what is trusted before the write; the result is called after it."""
        seen = [trust.look(self._workspace, files(self._workspace)) for trust, files in self._trusts]

        def written() -> None:
            for (trust, files), one in zip(self._trusts, seen, strict=True):
                self._follow(trust, files(self._workspace), one, agreed)

        return written

    def _follow(self, trust: Trust, files: Sequence[str], before: ProjectSnapshot, agreed: Preview) -> None:
        is_first = before.state == "unknown" and not before.contents and not before.obstacle
        if before.state != "trusted" and not is_first:
            return
        now = trust.look(self._workspace, files)
        if not now.fingerprint or now.fingerprint == before.fingerprint:
            return
        expected: dict[str, bytes | None] = dict(before.contents)
        expected |= {one.path: one.after for one in agreed if one.path in files or one.path in before.contents}
        if dict(now.contents) != {path: raw for path, raw in expected.items() if raw is not None}:
            return
        try:
            trust.grant(self._workspace, files, seen=now.fingerprint)
        except (ConfigError, OSError):
            return  # it is asked about, as whatever is not trusted
