"""An answer in a form that the user gives: the model calls a tool whose input is the answer."""

import os
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ferrule.agent.events import AgentEvent, Began, Called
from ferrule.core.errors import ConfigError
from ferrule.core.events import Done
from ferrule.core.tool import Context, Tool

if TYPE_CHECKING:
    from ferrule.core.access import Access
    from ferrule.core.args import Args
    from ferrule.execute.hooks.hook import Hook

NAME = "StructuredOutput"
_WORDS = f"When you are done, give your answer by calling {NAME}, once, as your last call. Its input is the answer."
_AGAIN = f"Your answer is not given yet: call {NAME} with it."


class Form:
    """The form, and the answer of the prompt that is worked on."""

    def __init__(self, text: str) -> None:
        """`text` is a JSON Schema of an object, or the path of one. Raises: ConfigError."""
        self.schema = _schema(text)
        self.words = _WORDS
        self.value: dict[str, Any] | None = None
        """None while there is none."""
        self._given: dict[str, dict[str, Any]] = {}
        self._main = ""

    def tool(self) -> "Answering":
        return Answering(self.schema, self._given)

    def hook(self) -> "Hook":
        """Sends the model back to work that wants to end without an answer."""
        from ferrule.execute.hooks.hook import Hook  # for whoever wants a form

        return Hook("Stop", function=self._stop, source="--json-schema")

    def _stop(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"decision": "block", "reason": _AGAIN} if self.value is None else {}

    def put(self, event: AgentEvent) -> None:
        """An answer is what the session itself gives: a subagent has the tool too, and its own task."""
        if isinstance(event, Began) and event.thread == (self._main or event.thread):
            self._main, self.value = event.thread, None
        elif isinstance(event, Called) and event.thread == self._main and isinstance(event.call, Done):
            self.value = self._given.pop(event.call.reply.id, self.value)


class Answering(Tool[Any, str]):
    """Takes the answer."""

    args = cast("type[Args]", dict)
    name = NAME
    words = "Give your final answer, in the form that was asked for."

    def __init__(self, schema: dict[str, Any], given: dict[str, dict[str, Any]]) -> None:
        self.schema = schema
        self._given = given

    def access(self, args: Any, ctx: Context) -> "tuple[Access, ...]":  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: Any, ctx: Context) -> str:
        self._given[ctx.call_id] = dict(args)
        return "The answer is taken. Nothing more is needed."


def _schema(text: str) -> dict[str, Any]:
    from ferrule.arguments.judge import judge  # for whoever wants a form

    where = "--json-schema"
    try:
        if not text.lstrip().startswith("{"):
            where = os.path.expanduser(text)
            with open(where, "rb") as file:
                text = file.read().decode("utf-8-sig")
        schema = msgspec.json.decode(text)
    except OSError as error:
        raise ConfigError(f"The form {where} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is no JSON: {error}.") from error
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError(f"{where} has to be the JSON Schema of an object.")
    judge(schema)
    return {"type": "object", **schema}
