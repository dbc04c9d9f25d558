"""Start a chat: open its sessions, choose screen or lines, and ask at the first start in a project whether to trust it.

A project's files are read to ask, and nothing of them is run, loaded or obeyed. A project with nothing to run is not
asked about.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.agent.session import Session
from ferrule.cli.options import take_limits
from ferrule.cli.session_flags import FITTING, FLAGS, Fitting, SessionFlags
from ferrule.cli.talk import own_commands
from ferrule.cli.talk.chat import Chat
from ferrule.cli.talk.commands import SessionRestart
from ferrule.cli.talk.keyboard import InputCompleter, Keyboard, Typed
from ferrule.cli.talk.plain import Plain
from ferrule.cli.talk.questions import InPerson
from ferrule.cli.talk.status import home_short
from ferrule.cli.talk.text import BLANK, Line, find_theme, line, sentence
from ferrule.core.errors import ConfigError
from ferrule.models.catalog import WHY, last_model
from ferrule.permissions import YES, Answer, Nobody, Question, visible
from ferrule.permissions.shell.started import commands
from ferrule.permissions.trust import (
    PROJECT_FILES,
    SERVERS,
    SKILLS,
    TOOLBOXES,
    RuleContext,
    StateFile,
    Trust,
    code_files,
    is_any,
    load_layers,
    project_files,
)
from ferrule.settings import SOURCES, Permissions, Source, load_settings, state_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ferrule.agent import AgentEvent
    from ferrule.cli.talk.screen import TalkFrontend
    from ferrule.permissions import Asker
    from ferrule.permissions.trust import ProjectSnapshot


async def start(wishes: dict[str, Any], resume: str, record: str, first: str | None) -> int:

    front = _front()
    opened = _SessionOpener(wishes, record)
    opened.front = front if wishes.get("answer") != "deny" else None
    model = wishes["model"] or opened.remembered
    chat = Chat(front, opened, first=SessionRestart(resume, wishes["dialect"], wishes["permission_mode"], model))
    # Nobody gave any option where `ferrule` alone was typed.
    opened.ask = _asker(wishes.get("answer"), front, chat)
    _complete(front, chat)
    if first and first.strip():
        chat.submit_line(first)
    chat.answer = wishes.get("answer") or ""
    code = await front.run_chat(chat.talk)
    if farewell := chat.farewell.lines(front.width):
        front.print_lines((), *farewell)
    return code


class _SessionOpener:
    """Opens one session after the other, each as the options say but for what has changed."""

    ask: "Asker"
    front: "TalkFrontend | None" = None
    """Where the user is asked whether the project is trusted, if they are."""

    def __init__(self, wishes: dict[str, Any], record: str) -> None:
        self._wishes = dict(wishes)
        self._record = record
        self._count = 0
        self._limits = take_limits(self._wishes)
        self.remembered = ""
        """The model that was chosen in the chat before, if this one is given none."""
        self._flags = SessionFlags({name: self._wishes.pop(name) for name in FLAGS})
        said = {name: self._wishes.pop(name) for name in FITTING}
        # Without any of them, an open session is let alone: the first paint waits for it.
        self._fitting = Fitting(**said) if any(value not in ((), "", None) for value in said.values()) else None
        if not self._wishes["model"] and not self._flags.model:
            self.remembered = last_model(load_settings().models) or ""

    @contextlib.asynccontextmanager
    async def __call__(
        self, wanted: "SessionRestart", tell: "Callable[[AgentEvent], None]"
    ) -> "AsyncIterator[Session]":

        self._count += 1
        is_first = self._count == 1
        if is_first and self.front is not None:
            sources = self._flags.over.get("sources") or load_settings().sources
            await ask_trust(self.front, self._wishes["workspace"], sources)
        # A recording is never written over: what follows another start is another one.
        record = f"{self._record}.{self._count}" if self._record and self._count > 1 else self._record
        session = Session(
            self._wishes["workspace"],
            model=wanted.model or self._flags.model or None,
            dialect=wanted.dialect,
            ask=self.ask,
            resume=wanted.resume or "",
            thread=self._flags.thread if is_first else "",
            fork=self._flags.fork and is_first,
            fallback=self._flags.fallback,
            limits=self._limits,
            over=self._flags.over,
            hooks=tuple(self._flags.hooks),
            mode=self._fitting.mode if self._fitting is not None else None,
            record=record,
            permission_mode=wanted.permission_mode,
            add_dirs=(*self._wishes["add_dirs"], *self._flags.folders),
            mcp_config=(*self._wishes["mcp_config"], *self._flags.servers),
            network=self._wishes["network"],
            allow_hosts=self._wishes["allow_hosts"],
            watched=True,
            on_event=tell,
        )
        async with session:
            if self.remembered and is_first:
                session.why_model = WHY
            self._flags.give(session)
            if self._fitting is not None:
                self._fitting.fit(session)
            for warning in (*self._flags.warnings, *_wide(self._wishes["workspace"])) if is_first else ():
                session.agent.talk.warn(warning)
            yield session


def _wide(workspace: str) -> tuple[str, ...]:
    return (warning,) if (warning := wide_warning(workspace)) else ()


def _front() -> "TalkFrontend":
    """The screen or, on a terminal that can do little, lines."""
    if os.environ.get("TERM", "dumb") in {"dumb", "unknown", ""} and os.name == "posix":
        return Plain()

    return Keyboard(history=Typed(state_folder()), colour=find_theme("auto"))


def _asker(answer: str | None, front: "TalkFrontend", chat: Any) -> "Asker":

    if answer == "deny":
        return Nobody()
    person = InPerson(front, markdown=chat.markdown)
    person.on_shown = chat.lines.mark_seen
    person.on_asked = lambda summary: setattr(front, "subject", summary)
    person.on_waiting = chat.lines.mark_asked
    person.on_printed = lambda: chat.lines.mark_printed("question")
    if answer != "yes":
        return person

    class Willing:
        """Every call is allowed beforehand; what widens the session is still asked about."""

        is_person = True
        """To all but calls."""

        async def ask(self, question: Question) -> Answer:
            return YES if question.kind == "call" else await person.ask(question)

    return Willing()


def _complete(front: "TalkFrontend", chat: Any) -> None:
    """Completion, where there is a screen for it."""
    if not isinstance(front, Keyboard):
        return
    from ferrule.cli.talk.commands import commands, files, values_of

    front.input.completer = InputCompleter(
        lambda: [
            *((name, one.about) for name, one in commands().items()),
            *own_commands.completions(chat),
            *chat.skills(),
        ],
        lambda name: values_of(chat, name),
        lambda: files(chat.session.engine.jail.folder),
    )


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
