"""The question at the first start in a project: is it trusted, with what it would run? The answer is remembered.

What a project brings is listed from the very bytes that trust would be in. Nothing of it is run, loaded or obeyed to
ask, and a project with nothing to run is not asked about.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.permissions.ask import visible
from ferrule.permissions.layers import PROJECT_FILES, RuleContext, load_layers, project_files
from ferrule.permissions.trust import SERVERS, SKILLS, TOOLBOXES, StateFile, code_files, is_any
from ferrule.settings.schema import SOURCES, Permissions, Source, state_folder

if TYPE_CHECKING:
    from ferrule.cli.talk.screen import TalkFrontend
    from ferrule.permissions.trust import ProjectSnapshot, Trust


_MOST_ROWS = 12
_MOST_CHARS = 300
_HEAD_COLUMNS = 10
_LOOSE_MODES = frozenset({"acceptEdits", "bypassPermissions"})


class Declined(msgspec.Struct, frozen=True):
    """The folders that the user has said no about, by their real paths."""

    folders: tuple[str, ...] = ()


class TrustKind(NamedTuple):
    """One of the two kinds of a project's files that are trusted on their own."""

    trust: "Trust"
    files: Sequence[str]
    about: str


class TrustItem(NamedTuple):
    """Something that would run, or would let something run, once the project is trusted."""

    kind: str
    words: str


def kinds(folder: str, state: str) -> tuple[TrustKind, TrustKind]:
    """Both kinds of the files of a project."""
    from ferrule.permissions.trust import Trust  # for projects that have any

    return (
        TrustKind(Trust(state), project_files(folder), "rules, settings and hooks"),
        TrustKind(Trust(state, "code"), code_files(folder), "tools and servers"),
    )


async def ask_trust(front: "TalkFrontend", workspace: str, sources: Sequence[Source] = SOURCES) -> None:
    """Ask once whether the project in this folder is trusted, if it would run anything and was not asked about."""
    folder = os.path.realpath(os.path.expanduser(workspace))
    if "project" not in sources or wide(folder) == _MACHINE or not _has_files(folder):
        return
    state = state_folder()
    open_kinds = [(kind, seen) for kind in kinds(folder, state) if (seen := _find_untrusted(kind, folder)) is not None]
    if not open_kinds or _key(folder) in _decline_file(state).read().folders:
        return
    contents = {path: raw for _, seen in open_kinds for path, raw in seen.contents.items()}
    found = find_trust_items(folder, contents, sources)
    if not found:
        return
    has_changed = any(seen.state == "changed" for _, seen in open_kinds)
    is_trusted = await _answer(front, folder, found, has_changed=has_changed)
    try:
        for kind, seen in open_kinds if is_trusted else ():
            if seen.contents:
                kind.trust.grant(folder, kind.files, seen=seen.fingerprint)
        if not is_trusted:
            _decline_file(state).change(lambda kept: Declined((*kept.folders, _key(folder))))
    except ConfigError as error:  # a file has changed meanwhile, or nothing can be remembered: it is as it was
        from ferrule.cli.talk.text import BLANK, sentence  # as below

        front.print_lines(sentence(("yellow", "  ! "), str(error)), BLANK)


def _key(folder: str) -> str:
    # A path may hold bytes that are no text; JSON holds text only.
    return os.fsencode(folder).decode("utf-8", "backslashreplace")


def _has_files(folder: str) -> bool:
    return is_any(folder) or any(os.path.lexists(os.path.join(folder, name)) for name in PROJECT_FILES)


def _find_untrusted(kind: TrustKind, folder: str) -> "ProjectSnapshot | None":
    """The files of this kind, if they are there, could be trusted, and are not."""
    seen = kind.trust.look(folder, kind.files)
    return seen if seen.contents and seen.fingerprint and seen.state != "trusted" else None


def _decline_file(state: str) -> StateFile[Declined]:
    return StateFile(os.path.join(state, "trust", "declined.json"), Declined)


async def _answer(front: "TalkFrontend", folder: str, found: Sequence[TrustItem], *, has_changed: bool) -> bool:
    from ferrule.cli.talk.status import home_short
    from ferrule.cli.talk.text import BLANK, Line, line, sentence  # with the terminal, which is loaded by now

    def rows(some: Sequence[TrustItem]) -> list[Line]:
        return [sentence(("dim", f"    {one.kind:<{_HEAD_COLUMNS}}"), one.words) for one in some]

    what = "bring what runs with your rights, or allows calls"
    why = f"Its files have changed since you trusted them. They {what}:" if has_changed else f"Its files {what}:"
    front.print_lines(
        BLANK,
        line(("yellow bold", "? "), ("bold", f"Trust this folder?  {home_short(folder)}")),
        sentence(("dim", "  "), why),
        *rows(found[:_MOST_ROWS]),
    )
    more = len(found) - _MOST_ROWS
    if more > 0:
        front.print_lines(line(("dim", f"    … {more:,} more, s shows all")))
    front.print_lines(
        sentence(("dim", "  "), ("dim", "Without trust none of it counts, and rules of the project only tighten.")),
        sentence(
            ("dim", "  "), ("dim", "MCP servers are still approved one by one. Later: `ferrule permissions trust`.")
        ),
    )
    keys = [("y", "es, as it is now"), ("n", "o, and do not ask again")]
    keys += [("s", "how all")] if more > 0 else []
    while (key := await front.key("Trust it?", keys)) == "s":
        front.print_lines(*rows(found[_MOST_ROWS:]))
        keys = keys[:2]
    front.print_lines(line(("dim", f"  → {'trusted' if key == 'y' else 'not trusted'}")), BLANK)
    return key == "y"


def find_trust_items(
    folder: str, contents: Mapping[str, bytes], sources: Sequence[Source] = SOURCES
) -> list[TrustItem]:
    """What would run, or would allow calls, of these files of a project; what cannot be read brings nothing."""
    settings = {path: raw for path, raw in contents.items() if _name(path, folder) in PROJECT_FILES}
    code = {_name(path, folder): raw for path, raw in contents.items() if path in set(code_files(folder))}
    found = [
        *_hooks(settings),
        *_checks(settings),
        *_servers(code),
        *_programs(code),
        *_rules(folder, settings, sources),
    ]
    return [TrustItem(one.kind, visible(" ".join(one.words.split()))[:_MOST_CHARS]) for one in dict.fromkeys(found)]


def _name(path: str, folder: str) -> str:
    return os.path.relpath(path, folder)


def _hooks(settings: Mapping[str, bytes]) -> Iterator[TrustItem]:
    from ferrule.permissions.started import commands  # for projects with settings

    for path, raw in settings.items():
        hooks = _parse_file(path, raw).get("hooks")
        for event, value in hooks.items() if isinstance(hooks, dict) else ():
            for command in commands(value):
                yield TrustItem("hook", f"{event}: {command}")


def _checks(settings: Mapping[str, bytes]) -> Iterator[TrustItem]:
    """The commands of checks that a project sets."""
    for path, raw in settings.items():
        checks = _parse_file(path, raw).get("checks") if path.endswith(".toml") else None
        named = checks.get("commands") if isinstance(checks, dict) else None
        for name, one in named.items() if isinstance(named, dict) else ():
            if isinstance(one, dict) and isinstance(one.get("command"), str):
                yield TrustItem("check", f"{name}: {one['command']}")


def _servers(code: Mapping[str, bytes]) -> Iterator[TrustItem]:
    for name, raw in code.items():
        if name not in SERVERS and os.path.basename(name) != "mcp.json":
            continue
        said = _parse_file(name, raw)
        listed = said.get("mcpServers", said)
        for server, one in listed.items() if isinstance(listed, dict) else ():
            if isinstance(one, dict):
                args = one.get("args")
                words = [one.get("command"), *(args if isinstance(args, list) else ())]
                how = " ".join(str(word) for word in words if word) or str(one.get("url") or "")
                yield TrustItem("server", f"{server}: {how}")


def _programs(code: Mapping[str, bytes]) -> Iterator[TrustItem]:
    for name in code:
        if name in SERVERS or os.path.basename(name) == "mcp.json":
            continue
        if name.startswith(tuple(f"{one}/" for one in SKILLS)):
            yield TrustItem("skill", name)
        elif name.startswith(tuple(f"{one}/" for one in TOOLBOXES)):
            yield TrustItem("tool", name)
        elif name.endswith(".md") and "/commands/" in name:
            yield TrustItem("command", f"/{name.split('/commands/', 1)[1].removesuffix('.md').replace('/', ':')}")
        elif not name.endswith(".md"):
            yield TrustItem("tool", name)


def _rules(folder: str, settings: Mapping[str, bytes], sources: Sequence[Source]) -> Iterator[TrustItem]:
    """Rules that allow or hand calls to a program, modes that ask less, and what is opened."""
    try:
        sets = load_layers(
            RuleContext(folder, lambda name: name), Permissions(), trusted=settings, sources=sources
        ).sets
    except ConfigError:  # the session says what is wrong with it
        return
    for one in sets:
        yield from (
            TrustItem(f"{rule.action}s", rule.text) for rule in one.rules if rule.action in {"allow", "delegate"}
        )
        if one.mode in _LOOSE_MODES:
            yield TrustItem("mode", one.mode)
        yield from (TrustItem("opens", path) for path in (*one.folders, *one.guarded_allow))


def _parse_file(path: str, raw: bytes) -> dict[str, Any]:
    try:
        text = raw.removeprefix(b"\xef\xbb\xbf")
        said = msgspec.toml.decode(text) if path.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError):  # whoever obeys the file says what is wrong with it
        return {}
    return said if isinstance(said, dict) else {}


_MACHINE = "the whole machine"


def wide(workspace: str) -> str:
    """What makes a workspace wider than a project, in words; empty if nothing does."""
    real = os.path.realpath(os.path.expanduser(workspace))
    if os.path.dirname(real) == real:
        return _MACHINE
    return "your whole home folder" if real == os.path.realpath(os.path.expanduser("~")) else ""


def wide_warning(workspace: str) -> str:
    """What is said of such a workspace at the start; empty if it is none."""
    what = wide(workspace)
    if not what:
        return ""
    return (
        f"The workspace is {what} ({os.path.realpath(os.path.expanduser(workspace))}): the model can read all of it, "
        "and write it where you allow that. Leave, and start in the folder of a project, or with -C DIR."
    )
