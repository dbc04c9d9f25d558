"""The user's hooks around calls: they are told in Claude Code's words, whatever family the session speaks.

Hooks are written for one family's names and parameters. A call is told in those words where that family has a face for
the tool, and an input that a hook gives back is heard in them; the call is then looked at like any other.
"""

import asyncio
import contextlib
import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.arguments.schema import Arguments, Schema
from ferrule.core.call import Call, Reply, Stop
from ferrule.core.errors import ConfigError, FerruleError
from ferrule.core.tool import Face
from ferrule.dialects import load_dialect
from ferrule.hooks import HookOutcome
from ferrule.hooks.read import from_claude, from_program, from_settings, together
from ferrule.output import clean
from ferrule.permissions import Answer, Asker, Question
from ferrule.permissions.trust import Trust, active_files, own_path, project_files
from ferrule.registry import Registry
from ferrule.settings import Settings, read_settings
from ferrule.tools import SHELL, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ferrule.flow import ScheduledCall, Unready
    from ferrule.hooks import Hook, HookVerdict
    from ferrule.hooks.hooks import Hooks
    from ferrule.hooks.read import HookSet
    from ferrule.permissions.shell.started import Look
    from ferrule.registry.foreign import FamilyNames, ForeignCall
    from ferrule.settings.layers import Layered


_WORDS = "claude"
_LOOK_BYTES = 1 << 20
_AFTER = ("PostToolUse", "PostToolUseFailure")
_UNSAYABLE = "The hooks could not be told of this call in their own words."
_CHANGED = "A hook wants another command than the one that comes with this call."


def find(
    settings: Settings,
    layered: "Layered | None",
    workspace: str,
    state: str,
    given: "Sequence[Hook]",
    *,
    look: "Look",
) -> "HookSet":
    """The hooks of every layer, in their order. A project's count only where its rules are trusted."""
    layers = {"user": settings} if layered is None else {**layered.layers, "user": settings}
    founds = [
        from_settings(layers[layer].hooks, layer=layer, source=f"the {layer}'s settings")
        for layer in ("managed", "user", "project")
        if layer in layers and layers[layer].hooks
    ]
    own = [own_path(file) for file in settings.permissions.files if file.endswith(".json")]
    read = [(file, raw) for file in own if (raw := read_settings(file)) is not None]
    founds += [from_claude(raw, layer="user", source=file) for file, raw in read]
    contents = read_trusted(workspace, state)
    files = active_files(settings.sources)
    for path in (os.path.join(workspace, name) for name in files if name.startswith(".claude/")):
        if path in contents:
            founds.append(from_claude(contents[path], layer="project", source=path))
    found = together([*founds, from_program(given)])
    if not contents and _has_hooks(workspace, files):
        left = f"The hooks of {workspace} are not run: look at them, then `ferrule permissions trust`."
        found = found._replace(warnings=(*found.warnings, left))
    return found._replace(hooks=tuple(_pin_hook(hook, look, contents) for hook in found.hooks))


def _has_hooks(workspace: str, files: "Sequence[str]") -> bool:
    """Do files of the project speak of hooks? They are not read for it, only looked at."""
    for path in (os.path.join(workspace, name) for name in files):
        with contextlib.suppress(OSError, ConfigError):
            if os.path.isfile(path) and b"hooks" in (read_settings(path) or b"")[:_LOOK_BYTES]:
                return True
    return False


def _pin_hook(hook: "Hook", look: "Look", contents: "Mapping[str, bytes]") -> "Hook":
    """A project's hook runs only the scripts that the user trusts; what a script is now tells when it is run.

    Another's is held to them where all of its scripts are trusted with the project's; else it runs confined.
    """
    if hook.function is not None:
        return hook

    real = {os.path.realpath(path): raw for path, raw in contents.items()}
    named = look(hook.command).files
    if hook.layer != "project" and not (named and all(path in real for path in named)):
        return hook
    return hook._replace(pins=tuple((path, hashlib.sha256(real.get(path, b"")).hexdigest()) for path in named))


def read_trusted(workspace: str, state: str) -> "Mapping[str, bytes]":
    """The project's files of rules and settings, where the user trusts them: the very bytes that were looked at."""
    if not any(os.path.lexists(path) for path in project_files(workspace)):
        return {}

    seen = Trust(state).look(workspace, project_files(workspace))
    return seen.contents if seen.state == "trusted" else {}


def find_scripts(hooks: "Sequence[Hook]", look: "Look") -> list[str]:
    """The scripts of the workspace that hooks run: while they do, nothing in the session may write them."""
    return sorted({path for hook in hooks if hook.command for path in look(hook.command).files})


_REQUESTS = ("call", "outside", "folder")
"""Questions about a call that has not begun."""


class Notifying:
    """Tells the hooks that somebody is asked, and asks. A hook may answer no."""

    def __init__(self, asker: Asker, hooks: "Hooks") -> None:
        self.behind = asker
        self._hooks = hooks

    async def ask(self, question: Question) -> Answer:
        """The question does not wait for the hooks of notifications, but the call waits for both."""
        if question.kind in _REQUESTS:
            said = await self._hooks.fire(
                "PermissionRequest",
                tool_name=question.name,
                tool_input=dict(question.input if question.given is None else question.given),
                permission_suggestions=[],
            )
            if said.blocked:
                return Answer(allow=False, message=said.blocked)
        told = asyncio.create_task(
            self._hooks.fire("Notification", message=question.summary, notification_type="permission_prompt")
        )
        try:
            return await self.behind.ask(question)
        finally:
            await asyncio.wait([told])


class _Spoken(NamedTuple):
    """A call as the hooks are told of it."""

    name: str
    values: dict[str, Any]
    names: frozenset[str]
    """What a matcher may call its tool."""
    is_clear: bool = True
    """Could it be said in their words, as far as they have any for it?"""
    tool: str = ""
    """The tool that was understood; empty where none was."""


class Hooking:
    """What the flow asks before and after each call."""

    def __init__(
        self,
        hooks: "Hooks",
        registry: Registry,
        arguments: Arguments,
        names: "Callable[[], FamilyNames]",
        look: "Callable[[Call], ScheduledCall | Unready] | None" = None,
    ) -> None:
        """`look` tells what a call touches: a skill has commands in its text."""
        self._look = look
        self._hooks = hooks
        self._registry = registry
        self._arguments = arguments
        self._names = names
        self._told: dict[str, _Spoken] = {}
        """Calls that run, by id, as the hooks were told of them."""

    async def before(self, call: Call) -> HookOutcome:
        """Tell the hooks that a call is about to be looked at."""
        if not any(map(self._hooks.has, ("PreToolUse", *_AFTER))):
            return HookOutcome(call)
        spoken = self._told[call.id] = self._in_their_words(call)
        if not self._hooks.has("PreToolUse"):
            return HookOutcome(call)
        said = await self._hooks.before(spoken.names, spoken.name, spoken.values, call.id)
        changed = call if said.input is None else Call(spoken.name, said.input, call.id)
        if said.verdict != "deny" and spoken.tool and facts_of(spoken.tool).kind != "command":
            said = await self._with_commands(changed, said)
        if not spoken.is_clear and said.verdict in {"", "allow"}:
            # What they look for may be in it under a name that they do not know.
            return HookOutcome(call, "ask", _UNSAYABLE, said.notes, said.stop)
        if said.input is not None:
            self._told[call.id] = spoken._replace(values=said.input)
        return HookOutcome(changed, said.verdict, said.reason, said.notes, said.stop)

    async def _with_commands(self, call: Call, said: "HookVerdict") -> "HookVerdict":
        """Their word, with the one on each command that comes with a call: it is the shell's, whoever runs it."""
        if self._look is None:
            return said
        theirs, shell = _face_of(SHELL), self._names().of(SHELL)
        for access in self._look(call).ctx.touches:
            if access.kind != "command" or theirs is None:
                continue
            one = await self._hooks.before(shell, theirs.name, theirs.advertised({"command": access.key}), call.id)
            if one.verdict == "deny":
                return said._replace(verdict="deny", reason=one.reason)
            # A command in a text cannot be another one: then the user decides. Who allows one allows not all of it.
            if said.verdict != "ask" and (one.verdict == "ask" or one.input is not None):
                said = said._replace(verdict="ask", reason=one.reason or _CHANGED)
        return said

    async def after(self, call: Call, reply: Reply) -> Reply:
        """Tell them of its reply; what they say comes with it."""
        spoken = self._told.pop(call.id, None) or self._in_their_words(call)
        if not any(map(self._hooks.has, _AFTER)):
            return reply
        told = reply.result if reply.error is None else reply.error.as_dict()
        failed = reply.error is not None
        said = await self._hooks.after(spoken.names, spoken.name, spoken.values, call.id, told, failed=failed)
        objection = (f"A hook objects to this: {said.blocked}",) if said.blocked else ()
        notes = (*reply.notes, *(clean(note) for note in (*objection, *said.notes)))
        stop = Stop("hook", said.stop) if said.stop else reply.stop
        is_same = notes == reply.notes and stop == reply.stop
        return reply if is_same else msgspec.structs.replace(reply, notes=notes, stop=stop)

    def _every_name(self, call: Call, *tools: str) -> frozenset[str]:
        """A hook on `Edit` is told of every family's way to call that tool, or one that does the same."""
        known = {self._registry.canonical(call.name), *tools}
        alike = {one for tool in known for one in facts_of(tool).watched_as}
        return frozenset({call.name}).union(*map(self._names().of, known | alike))

    def _in_their_words(self, call: Call) -> _Spoken:
        """The call in that family's words; as it came where it has none, or where it is wrong anyway."""
        spoken = _Spoken(call.name, _as_mapping(call.input), self._every_name(call))
        try:
            face = self._registry.resolve(call.name).face
            heard = self._registry.hear(call.name, self._arguments.receive(face, call.input).values)
            names = self._every_name(call, heard.face.tool, heard.tool.name)
            spoken = spoken._replace(names=names, tool=heard.tool.name)
            name, values = _in_claudes(heard)
        except FerruleError:
            return spoken
        except (TypeError, ValueError, KeyError, AttributeError):
            return spoken._replace(is_clear=False)
        return spoken._replace(name=name, values=values)


def _in_claudes(heard: "ForeignCall") -> tuple[str, dict[str, Any]]:
    """Name and input, as they will be once they are mended. Raises what a call that is wrong raises."""
    said, tool = heard.spoken, heard.face.tool
    theirs = next((face for one in (tool, *facts_of(tool).watched_as) if (face := _face_of(one)) is not None), None)
    if theirs is None:
        return said.name, heard.values
    # A number in quotation marks, for one, is only mended later; what cannot be reckoned with cannot be said.
    fitted = Schema(said.schema).fit(dict(heard.values)).values
    if theirs.name == said.name and theirs.schema == said.schema:
        return theirs.name, fitted
    values = theirs.advertised(said.heard(fitted))
    if theirs.tool == tool:
        return theirs.name, values
    # It does the same; what it takes beside that may mean something else, or be all that it takes.
    required = theirs.schema.get("required", ())
    if not values.keys() >= set(required):
        return said.name, heard.values
    return theirs.name, {key: values[key] for key in required}


def _as_mapping(given: object) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"input": given}


def _face_of(tool: str) -> Face | None:
    """Their face for a tool, also one that they had in older days."""
    faces = [face for face in load_dialect(_WORDS).faces if face.tool == tool]
    return next((face for face in faces if face.shown), faces[0] if faces else None)
