"""The user's hooks around calls: they are told in Claude Code's words, whatever family the session speaks.

Hooks are written for one family's names and parameters. A call is told in those words where that family has a face for
the tool, and an input that a hook gives back is heard in them; the call is then looked at like any other.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.arguments.arguments import Arguments
from ferrule.core.call import Call
from ferrule.core.errors import FerruleError
from ferrule.core.face import Face
from ferrule.core.reply import Reply
from ferrule.dialects.dialect import load_dialect
from ferrule.execute.hooks.hooks import Hooks
from ferrule.flow import Told
from ferrule.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from ferrule.registry.names import Names

_WORDS = "claude"


class Hooking:
    """What the flow asks before and after each call."""

    def __init__(self, hooks: Hooks, registry: Registry, arguments: Arguments, names: "Callable[[], Names]") -> None:
        self._hooks = hooks
        self._registry = registry
        self._arguments = arguments
        self._names = names
        self._told: dict[str, tuple[str, dict[str, Any]]] = {}
        """Calls that run, by id, as the hooks were told of them."""

    async def before(self, call: Call) -> Told:
        """Tell the hooks that a call is about to be looked at."""
        if not self._hooks.has("PreToolUse") and not self._hooks.has("PostToolUse"):
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
        if not self._hooks.has("PostToolUse"):
            return reply
        told = reply.result if reply.error is None else reply.error.as_dict()
        failed = reply.error is not None
        said = await self._hooks.after(self._every_name(call), name, values, call.id, told, failed=failed)
        objection = (f"A hook objects to this: {said.blocked}",) if said.blocked else ()
        notes = (*reply.notes, *objection, *said.notes)
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
