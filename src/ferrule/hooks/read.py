"""Reading hooks: from settings of Claude Code, from our own settings, and from the program that uses the engine.

What is wrong in one hook does not stop the others: it is left out, with a warning. But a hook that would have been told
before a call may not vanish so quietly, for it might have refused the call: unless it is a project's, it is a
`ConfigError`, and so is all that may have been meant as one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError, near
from ferrule.hooks import EVENTS, BadMatcher, Hook, Layer, check
from ferrule.settings import HookSetting

_STRONG = frozenset({"managed", "user", "session"})
_ORDER: tuple[Layer, ...] = ("managed", "user", "project", "session")
_SILENCES: dict[Layer, frozenset[Layer]] = {
    "managed": frozenset(_ORDER),
    "user": frozenset({"user", "project"}),
    "project": frozenset({"project"}),
    "session": frozenset({"session"}),
}
"""Whose hooks a file of a layer can switch off: never those of somebody who has more to say."""
_UNDERSTOOD = frozenset({"type", "command", "timeout", "shell"})
_HARMLESS = frozenset({"statusMessage", "description", "async", "asyncRewake", "once"})
"""What changes nothing about which calls a hook is told of or what it may say."""
_SECONDS = 60.0


class HookSet(NamedTuple):
    """The hooks of one file, or of all of them."""

    hooks: tuple[Hook, ...] = ()
    warnings: tuple[str, ...] = ()
    layer: Layer = "user"
    off: bool = False
    """Does the file switch hooks off (`disableAllHooks`)?"""
    managed_only: bool = False
    """Do only the hooks of whoever runs the machine count, besides the program's own (`allowManagedHooksOnly`)?"""


class _Wrong(ValueError):  # noqa: N818 - it never leaves this file
    """What is wrong, as the end of a sentence."""


def from_claude(raw: bytes, *, layer: Layer, source: str) -> HookSet:
    """The hooks of a settings file of Claude Code. For a project: only contents that the user trusts."""
    reader = _HooksReader(layer, source)
    try:
        settings = _object(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _Wrong) as error:
        # Settings of Amp may have comments in them; hooks of this form are not there.
        if b'"amp.' not in raw or b'"hooks"' in raw:
            reader.complain(None, f"its hooks cannot be read: {error}")
        return reader.build_hook_set()
    off = reader.flag(settings, "disableAllHooks")
    only = reader.flag(settings, "allowManagedHooksOnly") and layer == "managed"
    events = settings.get("hooks")
    if isinstance(events, dict):
        for event, groups in events.items():
            reader.event(event, groups)
    elif events is not None:
        reader.complain(None, "“hooks” must be an object that has a list for each event")
    return reader.build_hook_set()._replace(off=off, managed_only=only)


def from_settings(hooks: Mapping[str, Sequence[HookSetting]], *, layer: Layer, source: str) -> HookSet:
    """The hooks of a settings file of ours."""
    reader = _HooksReader(layer, source)
    for event, settings in hooks.items():
        if reader.knows(event):
            for one in settings:
                reader.add(Hook(event, one.matcher, one.command, None, one.seconds))
    return reader.build_hook_set()


def from_program(hooks: Iterable[Hook]) -> HookSet:
    """Hooks that the program gives itself. Raises ConfigError for one that is wrong: whoever wrote it is here."""
    found = []
    for hook in hooks:
        if not isinstance(hook, Hook):
            raise ConfigError(f"hooks holds something that is no Hook: {hook!r:.100}.")
        try:
            _check(hook)
        except _Wrong as error:
            raise ConfigError(f"A hook for {hook.event} cannot be used: {error}.") from error
        found.append(hook._replace(layer="session", source=hook.source or "the program"))
    return HookSet(tuple(found), layer="session")


def together(founds: Sequence[HookSet]) -> HookSet:
    """All of them in one order: whoever runs the machine, the user, the project, the program; without those off."""
    silenced = {layer for one in founds if one.off for layer in _SILENCES[one.layer]}
    if any(one.managed_only for one in founds):
        silenced |= {"user", "project"}
    hooks = [hook for layer in _ORDER for one in founds for hook in one.hooks if hook.layer == layer]
    warnings = tuple(warning for one in founds for warning in one.warnings)
    return HookSet(tuple(hook for hook in hooks if hook.layer not in silenced), warnings)


class _HooksReader:
    """One file, hook by hook."""

    def __init__(self, layer: Layer, source: str) -> None:
        self._layer: Layer = layer
        self._source = source
        self._hooks: list[Hook] = []
        self._warnings: list[str] = []

    def build_hook_set(self) -> HookSet:
        return HookSet(tuple(self._hooks), tuple(self._warnings), self._layer)

    def complain(self, event: str | None, wrong: str) -> None:
        """A warning, or a ConfigError where it may be about a hook before a call; `event` is None where all may be."""
        about = f"{self._source}: " if event is None else f"{self._source}: a hook for {event} is left out: "
        if self._layer in _STRONG and event in {None, "PreToolUse"}:
            about = about.replace("is left out", "cannot be used")
            raise ConfigError(f"{about}{wrong}. Mend it or take it out; it might have refused calls.")
        self._warnings.append(f"{about}{wrong}.")

    def flag(self, settings: Mapping[str, Any], name: str) -> bool:
        value = settings.get(name, False)
        if not isinstance(value, bool):
            self._warnings.append(f"{self._source}: “{name}” must be true or false; it is taken for false.")
        return value is True

    def knows(self, event: str) -> bool:
        if event in EVENTS:
            return True

        close = near(event.replace("_", "").replace("-", ""), EVENTS, most=1)
        if close == ["PreToolUse"]:
            self.complain(None, f"there is no event “{event}” for hooks; PreToolUse may be meant")
        else:
            hint = f" Is {close[0]} meant?" if close else ""
            self._warnings.append(f"{self._source}: hooks for “{event}” are left out, there is no such event.{hint}")
        return False

    def event(self, event: str, groups: object) -> None:
        if not self.knows(event):
            return
        if not isinstance(groups, list):
            self.complain(event, "there must be a list for each event")
            return
        for group in groups:
            for matcher, entry in self._entries(event, group):
                self._entry(event, matcher, entry)

    def _entries(self, event: str, group: object) -> Iterator[tuple[str, object]]:
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            self.complain(event, "it must be an object with a “matcher” and a list of “hooks”")
            return
        matcher = group.get("matcher")
        if not isinstance(matcher, str | None):
            self.complain(event, "its “matcher” must be a text")
            return
        for entry in group["hooks"]:
            yield matcher or "", entry

    def _entry(self, event: str, matcher: str, entry: object) -> None:
        try:
            hook = Hook(event, matcher, *_command(entry))
        except _Wrong as error:
            self.complain(event, str(error))
            return
        assert isinstance(entry, dict)
        if unknown := sorted(set(entry) - _UNDERSTOOD - _HARMLESS):
            # It is told of more than it wants rather than of less.
            names = ", ".join(f"“{name[:40]}”" for name in unknown)
            self._warnings.append(f"{self._source}: {names} of a hook for {event} is not known and has no effect.")
        self.add(hook)

    def add(self, hook: Hook) -> None:
        try:
            _check(hook)
        except _Wrong as error:
            self.complain(hook.event, str(error))
        else:
            self._hooks.append(hook._replace(layer=self._layer, source=self._source))


def _command(entry: object) -> tuple[str, None, float]:
    """The command, no function, and the seconds of an entry."""
    if not isinstance(entry, dict):
        raise _Wrong("it must be an object with “type” and “command”")
    kind, command, seconds = entry.get("type"), entry.get("command"), entry.get("timeout", _SECONDS)
    if kind != "command":
        raise _Wrong(f"the type “{kind}” is not known, only “command” is")
    if not isinstance(command, str):
        raise _Wrong("its “command” must be a text")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise _Wrong("its “timeout” must be a number of seconds")
    if "args" in entry or entry.get("shell", "bash") != "bash":
        raise _Wrong("it can only be a command line for bash, without “args”")
    return command, None, float(seconds)


def _object(raw: bytes) -> dict[str, Any]:
    settings = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(settings, dict):
        raise _Wrong("it is no JSON object")
    return settings


def _check(hook: Hook) -> None:
    if hook.event not in EVENTS:
        raise _Wrong(f"there is no such event; there are {', '.join(EVENTS)}")
    if (hook.function is None) == (not hook.command.strip()):
        raise _Wrong("it needs a command or a function, one of both")
    if hook.function is not None and not callable(hook.function):
        raise _Wrong("its function cannot be called")
    if "\0" in hook.command:
        raise _Wrong("its command has a NUL in it")
    if not hook.seconds > 0:
        raise _Wrong("its time limit must be more than 0 seconds")
    try:
        check(hook.matcher)
    except BadMatcher as error:
        raise _Wrong(f"its matcher “{hook.matcher[:80]}” cannot be used: {error}") from error
