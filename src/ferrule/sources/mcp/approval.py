"""Ask for, pin and remember the user's approval of MCP servers, their tools and their prompts.

A question shows everything in full: nothing is approved that was not shown. Approvals are kept as hashes of how
each server is started, and of each of its tools and prompts.

Servers in the user's own settings are approved by being written there, and their first listing is pinned. A
server of a project, or of a skill, is approved only by the user, for this workspace, in the exact words of its
configuration; and so is one of the user's own that runs a script of the workspace, which others may have written.
A tool or prompt that is new, or has changed, is withheld until it is approved.

The last approved listing of each server is kept, so that a session knows its tools without starting anything.
There is one file for each server, read when it is first needed: the pins hold names alone.
"""

import contextlib
import hashlib
import json
import os
import shlex
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.output import clean
from ferrule.permissions.trust import StateFile
from ferrule.sources.mcp import Layer, ListedPrompt, ListedTool, McpServerEntry, ServerListing
from ferrule.sources.mcp.config import expand_variables, start_folder, variables

State = Literal["new", "approved", "changed"]
FOREIGN = frozenset({"project", "skill"})
"""Layers that others write."""
_FILE_BYTES = 16 << 20
_MOST_BYTES = 1 << 20


class PinnedTool(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tool as it was approved."""

    fingerprint: str
    chars: int
    """How long its definition is."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is approved of one server."""

    start: str
    """The hash of how it is started."""
    folder: tuple[int, int] = (0, 0)
    """Device and inode of the workspace, for a server that others wrote."""
    is_listed: bool = False
    """Has it been listed since it was approved?"""
    tools: dict[str, PinnedTool] = {}
    prompts: dict[str, str] = {}
    """Names → hashes."""
    withheld: tuple[str, ...] = ()
    """Tools that read otherwise when the server was last listed."""
    gone: tuple[str, ...] = ()
    """Tools that the server did not list any more."""
    quarantined: tuple[tuple[str, str], ...] = ()
    """Names and reasons."""
    has_resources: bool = False
    guidance: str | None = None
    """The hash of its instructions, empty where none are approved; None where it was listed before they were shown."""
    is_guidance_withheld: bool = False
    """Did its instructions read otherwise when it was last listed?"""


class _Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    version: Literal[1] = 1
    servers: dict[str, Pin] = {}


class ServerPins:
    """The pins of a workspace's servers, kept in the state folder.

    Where that lies inside of the workspace, what it holds could be anybody's: then pins last for the session only.
    """

    def __init__(self, state_folder: str, workspace: str) -> None:
        self._workspace = os.path.realpath(workspace)
        state = os.path.realpath(state_folder)
        self.is_believed = not within(state, self._workspace)
        self._kept = StateFile(os.path.join(state, "mcp", "pins.json"), _Pinned)
        self._pins: dict[str, Pin] | None = None
        self._unkept: dict[str, Pin] = {}
        """What could not be kept, and holds for the session."""
        self._runs: dict[tuple[object, ...], list[str]] = {}
        """The scripts that command lines were found to run. Whoever starts a server looks for them anew."""
        self.obstacle = ""
        """Why something could not be kept, as a sentence."""

    def key(self, server: McpServerEntry) -> str:
        """What a server is known by: its layer and name, and the workspace where others wrote it."""
        if not self.is_foreign(server):
            return f"{server.layer}|{server.name}"
        # A path may hold bytes that are no text; JSON holds text only.
        return f"{server.layer}|{server.name}|{os.fsencode(self._workspace).decode('utf-8', 'backslashreplace')}"

    def look(self, server: McpServerEntry) -> tuple[State, Pin | None]:
        """May it be started as it is written now, and what is pinned of it as it is now?"""
        pin = self._read().get(self.key(server))
        is_foreign = self.is_foreign(server)
        if pin is None or (is_foreign and pin.folder != self._folder()):
            return "new" if is_foreign else "approved", None
        if pin.start == self.start(server):
            return "approved", pin
        # What the user has written anew in settings of their own, they have approved by that.
        return "changed" if is_foreign else "approved", None

    def approve(self, server: McpServerEntry, start: str) -> None:
        """Let it be started in the way that `start` is the hash of; what it lists first is pinned then.

        A server that was approved before, for this folder, keeps the pins of its tools: it may not change them in
        passing.
        """
        folder = self._folder() if self.is_foreign(server) else (0, 0)
        before = self._read().get(self.key(server))
        is_same = before is not None and before.folder == folder
        self._put(server, msgspec.structs.replace(before, start=start) if before and is_same else Pin(start, folder))

    def refresh(self) -> None:
        """Look again at what is kept: the user may have approved something elsewhere."""
        self._pins = None
        self.forget_scripts()

    def forget_scripts(self) -> None:
        """Look again for the scripts that servers run: a command may have written one."""
        self._runs.clear()

    def put(self, server: McpServerEntry, change: Callable[[Pin], Pin]) -> Pin:
        """Keep what `change` makes of a server's pin."""
        _, pin = self.look(server)
        if pin is None:
            pin = Pin(self.start(server), self._folder() if self.is_foreign(server) else (0, 0))
        after = change(pin)
        if after != self._read().get(self.key(server)):
            self._put(server, after)
        return after

    def forget(self, server: McpServerEntry) -> None:
        """Keep nothing of it: it is as if it had never been approved. Raises `ConfigError`."""
        key = self.key(server)
        if self.is_believed:
            self._kept.change(
                lambda kept: _Pinned(servers={name: pin for name, pin in kept.servers.items() if name != key})
            )
        self._unkept.pop(key, None)
        self.refresh()

    def start(self, server: McpServerEntry) -> str:
        """The hash of how a server is started, in the words of its configuration.

        Where others wrote it, the files of the workspace that its command line names are part of it: otherwise whoever
        writes into the workspace would decide what runs. Of the user's own, only those that run.
        """
        words: list[Any] = [server.transport, server.command, server.args, server.cwd, server.url]
        words += [sorted(server.env.items()), sorted(server.headers.items())]
        if server.layer in FOREIGN and server.command:
            words.append(sorted(self._files(server)))
        elif scripts := self._scripts(server):
            words.append([(path, _content(path)) for path in scripts])
        return fingerprint(words)

    def is_foreign(self, server: McpServerEntry) -> bool:
        """Does it take more than the user's own settings to start it?"""
        return server.layer in FOREIGN or bool(self._scripts(server))

    def _scripts(self, server: McpServerEntry) -> list[str]:
        """The scripts and programs of the workspace that its command line runs, as it was last looked."""
        if not server.command:
            return []
        key = (server.layer, server.name, server.command, server.args, server.cwd)
        if key not in self._runs:
            self._runs[key] = self._find_scripts(server)
        return self._runs[key]

    def _find_scripts(self, server: McpServerEntry) -> list[str]:

        from ferrule.permissions.shell.started import look, rough

        try:
            meant = expand_variables(server, {"PWD": self._workspace, **os.environ})
        except ConfigError:  # it will not start
            meant = server
        line = " ".join((server.command, *server.args))
        found = set()
        for folder in {start_folder(meant, self._workspace), *((self._workspace,) * (server.layer in FOREIGN))}:
            found |= {*rough(line, self._workspace, start=folder)}
            found |= {*look(shlex.join((meant.command, *meant.args)), self._workspace, start=folder).run}
        return sorted(found)

    def _files(self, server: McpServerEntry) -> Iterable[tuple[str, str]]:
        start = os.path.join(self._workspace, server.cwd)
        for text in (server.command, *server.args):
            for name in dict.fromkeys((text, text.partition("=")[2])):
                path = os.path.join(start, name)
                if name and os.path.isfile(path) and within(os.path.realpath(path), self._workspace):
                    yield name, _content(path)
        # What a shell is given to run, `sh -c ./server.sh`, stands inside of one word.
        for path in self._scripts(server):
            yield path, _content(path)

    def _folder(self) -> tuple[int, int]:
        try:
            here = os.stat(self._workspace)
        except OSError:
            return (-1, -1)
        return here.st_dev, here.st_ino

    def _read(self) -> dict[str, Pin]:
        if self._pins is None:
            kept = self._kept.read().servers if self.is_believed else {}
            self._pins = {**kept, **self._unkept}
        return self._pins

    def _put(self, server: McpServerEntry, pin: Pin) -> None:
        key = self.key(server)
        self._unkept[key] = pin
        self.refresh()
        if not self.is_believed:
            self.obstacle = "What you approve of MCP servers is not kept inside of the workspace. Set FERRULE_STATE."
            return
        try:
            self._kept.change(lambda kept: _Pinned(servers=_within_limit(kept.servers, key, pin)))
        except ConfigError as error:
            self.obstacle = str(error)
            return
        del self._unkept[key]


def _within_limit(servers: Mapping[str, Pin], key: str, pin: Pin) -> dict[str, Pin]:
    """The pins with this one, the last; the oldest go where the file would become too large to be read."""
    after = {name: one for name, one in servers.items() if name != key} | {key: pin}
    left = len(msgspec.json.encode(after)) - _MOST_BYTES
    for name in list(after)[:-1]:
        if left <= 0:
            break
        left -= len(msgspec.json.encode(after.pop(name)))
    return after


def tool_pin(tool: ListedTool) -> PinnedTool:
    """The pin of a tool: all that the model or the engine gets to see of it."""
    definition = [tool.name, tool.title, tool.words, tool.schema, tool.output_schema, tool.hints]
    if tool.is_task:
        definition.append("task")
    shown = len(tool.name) + len(tool.words) + len(msgspec.json.encode(tool.schema))
    return PinnedTool(fingerprint(definition), shown)


def prompt_pin(prompt: ListedPrompt) -> str:
    """The pin of a prompt."""
    return fingerprint(list(prompt))


def guidance_pin(guidance: str) -> str:
    """The pin of a server's instructions; empty where it has none."""
    return fingerprint(guidance) if guidance else ""


def fingerprint(value: Any) -> str:
    """A hash of a JSON value; the order of members does not count."""
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()


def _content(path: str) -> str:
    """A hash of a file's content, or a word for what it is instead."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return "no file"
            if status.st_size > _FILE_BYTES:
                return f"{status.st_size} bytes at {status.st_mtime_ns}"
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except OSError:
        return "not there"


_KEPT_LISTINGS_MOST_BYTES = 2 << 20
"""A longer listing is not kept: the server is asked for it in every session."""


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    version: int = 1
    listing: ServerListing | None = None


class KeptListings:
    """The listings by the keys of their servers. Who reads one compares it with the pins."""

    def __init__(self, state_folder: str) -> None:
        self._folder = os.path.join(os.path.realpath(state_folder), "mcp", "listings")

    def is_kept(self, key: str) -> bool:
        return os.path.exists(self._path(key))

    def get(self, key: str) -> ServerListing | None:
        return StateFile(self._path(key), _Kept).read().listing

    def put(self, key: str, listing: ServerListing) -> None:
        """Keep it. Where that cannot be, none is kept: the server is asked again in the next session."""
        kept = _Kept(listing=listing)
        with contextlib.suppress(ConfigError):
            if len(msgspec.json.encode(kept)) > _KEPT_LISTINGS_MOST_BYTES:
                self.drop(key)
            else:
                StateFile(self._path(key), _Kept).change(lambda _: kept)

    def drop(self, key: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(key))

    def _path(self, key: str) -> str:
        name = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
        return os.path.join(self._folder, f"{name}.json")


class Approval(NamedTuple):
    """One question about a server."""

    server: str
    layer: Layer
    about: Literal["start", "tools"]
    text: str
    """All that is approved by a yes."""


Approve = Callable[[Approval], Awaitable[bool]]


class Difference(NamedTuple):
    """A tool, a prompt or the instructions: new, or reading otherwise than they did."""

    kind: Literal["tool", "prompt", "instructions"]
    name: str
    """Empty for a server's instructions: it has but one text of them."""
    old: str | None
    """Its definition as it was approved; None where it is new, and empty where only its hash is left."""
    new: str


def start_question(server: McpServerEntry, folder: str, *, is_changed: bool) -> Approval:
    """May the server be started at all?"""
    lines = [f"The MCP server {server.name} is configured in {server.source}."]
    if is_changed:
        lines.append("How it is started, or a file that its command line names, has CHANGED since you approved it.")
    if server.url:
        lines.append(f"It would be talked to at {server.url}")
        lines += [f"  with the header {name}: {value}" for name, value in server.headers.items()]
    else:
        lines += ["It would run this program, with your own rights:", f"  {shlex.join((server.command, *server.args))}"]
        lines.append(f"in {server.cwd or folder}")
        lines += [f"  with the variable {name}={value}" for name, value in server.env.items()]
    if names := variables(server):
        lines.append(f"It would get the values of {', '.join(names)} from your environment.")
    return Approval(server.name, server.layer, "start", clean("\n".join(map(_one_line, lines))))


def tools_question(server: McpServerEntry, differences: Sequence[Difference], *, is_first: bool = False) -> Approval:
    """May tools, prompts and instructions be used that are new, or that changed?

    What a server lists first is pinned as it is, but for the instructions of a server that others wrote.
    """
    lines = [f"The MCP server {server.name} offers something else than you approved."]
    if is_first:
        lines = [f"The MCP server {server.name} has instructions, which the model would read in every session."]
    for one in differences:
        what, has = f"{one.kind} {one.name}".rstrip(), "have" if one.kind == "instructions" else "has"
        if one.old is None:
            lines += [f"New {what}:", _indent(one.new)]
        elif not one.old:
            lines += [f"The {what} {has} CHANGED; what was approved is not known any more:", _indent(one.new)]
        else:
            lines += [f"The {what} {has} CHANGED:", _indent(_difference(one.old, one.new))]
    return Approval(server.name, server.layer, "tools", clean("\n".join(lines)))


def _difference(old: str, new: str) -> str:
    from ferrule.files.diff import diff  # only a question pays for it

    text = diff("definition", f"{old}\n", f"{new}\n")
    return text[text.find("@@") :]


def tool_text(tool: ListedTool | None) -> str:
    """A tool's definition as a person reads it, whole."""
    if tool is None:
        return ""

    parts = [tool.words or "(no description)", json.dumps(tool.schema, indent=1, sort_keys=True, ensure_ascii=False)]
    if tool.hints or tool.title:
        parts.append(json.dumps({"title": tool.title, **tool.hints}, sort_keys=True, ensure_ascii=False))
    if tool.output_schema is not None:
        parts.append(f"Results: {json.dumps(tool.output_schema, sort_keys=True, ensure_ascii=False)}")
    return "\n".join(parts)


def prompt_text(prompt: ListedPrompt | None) -> str:
    """A prompt's definition as a person reads it."""
    if prompt is None:
        return ""
    needs = [f"  {name}{' (required)' if needed else ''}: {words}" for name, words, needed in prompt.arguments]
    return "\n".join([prompt.words or "(no description)", *needs])


def _one_line(text: str) -> str:
    """A value with line breaks in it must not look like more lines of ours."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
