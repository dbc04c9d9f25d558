"""Where a session's rules come from: whoever runs the machine, the user, the project, and what was said before."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.permissions.ask import visible
from ferrule.permissions.rules.rule import Layer, RuleSet
from ferrule.settings.schema import SOURCES, Permissions, Source, decode_settings, settings_path

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
    from ferrule.permissions.started import find_hook_scripts  # for projects with such files

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
    try:
        text = (_contents(path) if raw is None else raw).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: it is not UTF-8 text.") from error
    except OSError as error:
        raise ConfigError(f"Cannot read the rules in {path}: {error.strerror}.") from error
    if path.endswith(".toml"):
        from ferrule.permissions.rules import wayland  # for files of that family

        return wayland.read(text, source=path, layer=layer)
    if _is_claude(text, path):
        from ferrule.permissions.rules import claude  # for files in that syntax

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
    from ferrule.permissions.rules import amp  # for files in that syntax

    return amp.read(text, source=path, layer=layer, home=_home(origin))


def _is_claude(text: str, path: str) -> bool:
    """Is it a settings file of Claude Code? The other syntaxes have lists, other keys, or no JSON at all."""
    import json  # for whoever has such files

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
    import json  # as its own reader would get them

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
