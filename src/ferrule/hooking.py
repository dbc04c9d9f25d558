"""The user's hooks around calls: they are told in Claude Code's words, whatever family the session speaks.

Hooks are written for one family's names and parameters. A call is told in those words where that family has a face for
the tool, and an input that a hook gives back is heard in them; the call is then looked at like any other.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.arguments.arguments import Arguments
from ferrule.core.call import Call
from ferrule.core.errors import FerruleError
from ferrule.core.face import Face
from ferrule.core.reply import Reply
from ferrule.dialects.dialect import load_dialect
from ferrule.flow import Told
from ferrule.output.clean import clean
from ferrule.permissions.asker import Answer, Asker, Question
from ferrule.permissions.layers import project_files
from ferrule.registry.registry import Registry
from ferrule.settings import Settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ferrule.execute.hooks.hook import Hook
    from ferrule.execute.hooks.hooks import Hooks
    from ferrule.execute.hooks.read import Found
    from ferrule.layered import Layered
    from ferrule.registry.names import Names

_WORDS = "claude"
_AFTER = ("PostToolUse", "PostToolUseFailure")


def find(settings: Settings, layered: "Layered | None", workspace: str, state: str, given: "Sequence[Hook]") -> "Found":
    """The hooks of every layer, in their order. A project's count only where its rules are trusted."""
    from ferrule.execute.hooks.read import from_claude, from_program, from_settings, together

    layers = {"user": settings} if layered is None else {**layered.layers, "user": settings}
    founds = [
        from_settings(layers[layer].hooks, layer=layer, source=f"the {layer}'s settings")
        for layer in ("managed", "user", "project")
        if layer in layers and layers[layer].hooks
    ]
    files = [os.path.expanduser(file) for file in settings.permissions.files if file.endswith(".json")]
    read = [(file, raw) for file in files if (raw := read_settings(file)) is not None]
    founds += [from_claude(raw, layer="user", source=file) for file, raw in read]
    for path, raw in trusted(workspace, state).items():
        if path.endswith(".json") and os.path.basename(os.path.dirname(path)) == ".claude":
            founds.append(from_claude(raw, layer="project", source=path))
    return together([*founds, from_program(given)])


def trusted(workspace: str, state: str) -> "Mapping[str, bytes]":
    """The project's files of rules and settings, where the user trusts them: the very bytes that were looked at."""
    if not any(os.path.lexists(path) for path in project_files(workspace)):
        return {}
    from ferrule.permissions.trust import Trust  # for projects with such files

    seen = Trust(state).look(workspace, project_files(workspace))
    return seen.contents if seen.state == "trusted" else {}


class Notifying:
    """Tells the hooks that somebody is asked, and asks."""

    def __init__(self, asker: Asker, hooks: "Hooks") -> None:
        self._asker = asker
        self._hooks = hooks

    async def ask(self, question: Question) -> Answer:
        """The question does not wait for the hooks, but the call waits for both."""
        told = asyncio.create_task(
            self._hooks.fire("Notification", message=question.summary, notification_type="permission_prompt")
        )
        try:
            return await self._asker.ask(question)
        finally:
            await asyncio.wait([told])


class Hooking:
    """What the flow asks before and after each call."""

    def __init__(self, hooks: "Hooks", registry: Registry, arguments: Arguments, names: "Callable[[], Names]") -> None:
        self._hooks = hooks
        self._registry = registry
        self._arguments = arguments
        self._names = names
        self._told: dict[str, tuple[str, dict[str, Any]]] = {}
        """Calls that run, by id, as the hooks were told of them."""

    async def before(self, call: Call) -> Told:
        """Tell the hooks that a call is about to be looked at."""
        if not any(map(self._hooks.has, ("PreToolUse", *_AFTER))):
            return Told(call)
        name, values = self._in_their_words(call)
        self._told[call.id] = (name, values)
        if not self._hooks.has("PreToolUse"):
            return Told(call)
        said = await self._hooks.before(self._every_name(call), name, values, call.id)
        if said.input is not None:
            self._told[call.id] = (name, said.input)
            call = Call(name, said.input, call.id)
        return Told(call, said.verdict, said.reason, said.notes)

    async def after(self, call: Call, reply: Reply) -> Reply:
        """Tell them of its reply; what they say comes with it."""
        name, values = self._told.pop(call.id, (call.name, {}))
        if not any(map(self._hooks.has, _AFTER)):
            return reply
        told = reply.result if reply.error is None else reply.error.as_dict()
        failed = reply.error is not None
        said = await self._hooks.after(self._every_name(call), name, values, call.id, told, failed=failed)
        objection = (f"A hook objects to this: {said.blocked}",) if said.blocked else ()
        notes = (*reply.notes, *(clean(note) for note in (*objection, *said.notes)))
        return msgspec.structs.replace(reply, notes=notes) if notes != reply.notes else reply

    def _every_name(self, call: Call) -> frozenset[str]:
        """A hook on `Edit` is told of every family's way to call that tool."""
        return self._names().of(self._registry.canonical(call.name)) | {call.name}

    def _in_their_words(self, call: Call) -> tuple[str, dict[str, Any]]:
        """The call in that family's words; as it came where it has none, or where it is wrong anyway."""
        came = call.input if isinstance(call.input, dict) else {"input": call.input}
        try:
            face = self._registry.resolve(call.name).face
            heard = self._registry.hear(call.name, self._arguments.receive(face, call.input).values)
            theirs = _face_of(heard.face.tool)
            if theirs is None:
                return heard.spoken.name, heard.values
            if theirs.name == heard.spoken.name and theirs.schema == heard.spoken.schema:
                return theirs.name, heard.values
            return theirs.name, theirs.advertised(heard.spoken.heard(heard.values))
        except (FerruleError, TypeError, ValueError, KeyError, AttributeError):
            return call.name, came


def _face_of(tool: str) -> Face | None:
    return next((face for face in load_dialect(_WORDS).faces if face.tool == tool and face.shown), None)
