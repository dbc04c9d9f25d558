"""Have the program that drives us answer the session's questions and run the tools of its own MCP servers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ferrule.cli.driven import Peer, PeerError
from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, FerruleError, ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.output import clean, clean_value
from ferrule.permissions.ask import KINDS, NO, Answer, Question
from ferrule.sources.mcp import fault, full_names
from ferrule.sources.mcp.results import MOST_ENTRIES, MOST_PAGES, McpResultReader
from ferrule.sources.mcp.results import fault as tool_fault
from ferrule.tools import facts_of
from ferrule.wire.conversation import json_text

if TYPE_CHECKING:
    from ferrule.agent.session import Session
    from ferrule.core.services import Mixed
    from ferrule.core.tool import Args


_EXCHANGED = ("call", "outside", "folder")
"""Questions about a call that has not begun: it may be made with another input."""
_OTHER = "The user wants this call with another input, so it was not made. Make it with exactly this input: {}"


class ByPeer:
    """Asks the other program. What it cannot be asked, such as whether a server may start, is denied."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.session: Session | None = None
        """Tells what the model calls the arguments, and is interrupted where the answer says so."""
        self.warn: Callable[[str], None] = lambda _: None
        self.change_mode: Callable[[str], object] = lambda _: None
        self.halt: Callable[[], object] = lambda: None
        """Told when an answer ends the work on a prompt: another one may follow."""
        self._halted: tuple[object, Answer] | None = None
        """The prompt that an answer has ended, by its budget, and that answer: nothing more is asked about it."""

    async def ask(self, question: Question) -> Answer:
        if question.kind in {"server", "values"} or KINDS[question.kind].only_persons:
            return NO
        if self._halted is not None and self.session is not None and self._halted[0] is self.session.agent.budget:
            return self._halted[1]
        given = self._tool_input(question)
        suggested = _render_suggestions(question)
        try:
            said = await self._peer.ask(
                "can_use_tool",
                tool_name=question.name,
                input=given,
                tool_use_id=question.call_id,
                description=question.summary,
                decision_reason=question.why,
                permission_suggestions=suggested,
                **({"preview": "\n".join(question.changes)} if question.changes else {}),
                **({"blocked_path": question.folder} if question.folder else {}),
                **({"agent_id": question.who} if question.who else {}),
            )
        except PeerError as error:
            return Answer(allow=False, message=f"Nobody could be asked about this: {error}")
        if said.get("behavior") != "allow":
            answer = Answer(allow=False, message=str(said.get("message") or ""), stop=said.get("interrupt") is True)
            if answer.stop and self.session is not None:
                self._halted = (self.session.agent.budget, answer)
                self.halt()
            return answer
        wanted = said.get("updatedInput")
        if question.kind == "choose":
            return _parse_choices(question, wanted if isinstance(wanted, dict) else {})
        always = self._always(said.get("updatedPermissions"), suggested)
        if isinstance(wanted, dict) and wanted != given and question.kind != "plan":
            if question.kind not in _EXCHANGED:
                # It is about something that came up while the call ran: its input is what it is.
                return Answer(allow=False, message=_OTHER.format(json_text(wanted)))
            return Answer(allow=True, always=always, input=wanted)
        return Answer(allow=True, always=always)

    def _tool_input(self, question: Question) -> dict[str, Any]:
        """The arguments as the model gave them, which is what the other program knows the call by."""
        if question.kind == "choose":
            return {"questions": [_render_choice(choice) for choice in question.choices]}
        if question.kind == "plan":
            return dict(question.input)
        if question.given is not None or self.session is None:
            return dict(question.input if question.given is None else question.given)
        try:
            face = self.session.engine.registry.resolve(question.name).face
            return face.advertised(question.input)
        except (FerruleError, TypeError, ValueError, KeyError):
            return dict(question.input)

    def _always(self, updates: Any, suggested: list[dict[str, Any]]) -> bool:
        """Does the answer hold for the like of it too? Only what was suggested can."""
        if not updates:
            return False
        if updates == suggested:
            for one in suggested:
                if one["type"] == "setMode":
                    self.change_mode(one["mode"])
            return True
        self.warn("Rules that differ from the suggested ones are not taken with an answer: this call is allowed once.")
        return False


def _render_suggestions(question: Question) -> list[dict[str, Any]]:
    """What "always" would save, in the form of the other program."""
    rules = []
    for text in question.proposals if question.kind == "call" else ():
        name, opened, inner = text.partition("(")
        rules.append({"toolName": name, **({"ruleContent": inner.removesuffix(")")} if opened else {})})
    if not rules:
        is_edit = question.kind == "call" and facts_of(question.tool).kind == "edit"
        return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}] if is_edit else []
    return [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"}]


def _render_choice(choice: Any) -> dict[str, Any]:
    options = [{"label": one.label, "description": one.description} for one in choice.options]
    return {
        "question": choice.question,
        "header": choice.header,
        "options": options,
        "multiSelect": choice.multiple,
    }


def _parse_choices(question: Question, given: Mapping[str, Any]) -> Answer:
    answers = given.get("answers")
    if not isinstance(answers, dict):
        return NO
    values = {choice.key: answers[choice.question] for choice in question.choices if choice.question in answers}
    return Answer(allow=True, values=values) if values else NO


_VERSION = "2025-06-18"
_START_SECONDS = 30.0


def inside(config: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """What of `--mcp-config` is for everybody, and the names of the servers that the other program has inside."""
    kept, names = [], []
    for text in config:
        try:
            servers = dict(msgspec.json.decode(text)["mcpServers"]) if text.lstrip().startswith("{") else {}
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            servers = {}  # whoever reads it says what is wrong with it
        own = [name for name, entry in servers.items() if isinstance(entry, dict) and entry.get("type") == "sdk"]
        names += own
        rest = {name: entry for name, entry in servers.items() if name not in own}
        if not own:
            kept.append(text)
        elif rest:
            kept.append(msgspec.json.encode({"mcpServers": rest}).decode())
    return tuple(kept), names


async def tools_of(server: str, peer: Peer) -> tuple[list["PeerTool"], list[str]]:
    """All tools of one server, and sentences about those that cannot be used. Raises: ConfigError."""
    if why := fault(server):
        raise ConfigError(f"The MCP server {clean(server)!r} cannot be used: {why}.")
    line = PeerServer(server, peer)
    try:
        async with asyncio.timeout(_START_SECONDS):
            entries = await line.list_tools()
    except (PeerError, TimeoutError) as error:
        why = str(error) or f"it did not list its tools within {_START_SECONDS:g} seconds"
        raise ConfigError(f"The MCP server {server} cannot be used: {clean(why).removesuffix('.')}.") from error
    wrong = [(entry, tool_fault("tools/list", entry)) for entry in entries]
    warnings = [f"A tool of the MCP server {server} is left out. {why}" for _, why in wrong if why]
    usable = list({entry["name"]: entry for entry, why in wrong if not why}.values())
    names = full_names(server, [entry["name"] for entry in usable])
    return [PeerTool(line, entry, names[entry["name"]]) for entry in usable], warnings


class PeerServer:
    """The way to one server."""

    def __init__(self, server: str, peer: Peer) -> None:
        self.server = server
        self._peer = peer
        self._count = 0

    async def list_tools(self) -> list[dict[str, Any]]:
        """Introduce this program, and have the tools listed. Raises: PeerError."""
        about = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "ferrule", "version": "1"}}
        await self.ask("initialize", about)
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._peer.ask("mcp_message", server_name=self.server, message=message)
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self.ask("tools/list", cursor)
            tools = page.get("tools")
            found += tools if isinstance(tools, list) else ()
            if not page.get("nextCursor") or len(found) > MOST_ENTRIES:
                break
            cursor = {"cursor": page["nextCursor"]}
        return found[:MOST_ENTRIES]

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises: PeerError."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        said = await self._peer.ask("mcp_message", server_name=self.server, message=message)
        answer = said.get("mcp_response")
        if not isinstance(answer, dict):
            raise PeerError("its answer is no message of MCP")
        if isinstance(answer.get("error"), dict):
            raise PeerError(str(answer["error"].get("message") or "it does not say why"))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


class PeerTool(Tool[Any, "Mixed"]):
    """One tool of such a server."""

    args = cast("type[Args]", dict)
    source = "mcp"

    def __init__(self, line: PeerServer, entry: Mapping[str, Any], name: str) -> None:
        self.name = name
        self.origin = line.server
        self.tool = str(entry["name"])
        self.schema = clean_value(entry["inputSchema"])
        self.words = clean(str(entry.get("description") or entry.get("title") or ""))
        self.output_schema = entry.get("outputSchema")
        hints = entry.get("annotations")
        self.hints = clean_value(hints) if isinstance(hints, dict) else {}
        self._line = line

    def access(self, args: Any, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nobody knows what it touches
        reads = self.hints.get("readOnlyHint") is True
        return (Access.server(self.origin, mode="read" if reads else "write"),)

    async def run(self, args: Any, ctx: Context) -> "Mixed":  # noqa: ARG002 - it needs nothing of this machine
        from mcp_types import CallToolResult  # for whoever has such servers
        from pydantic import ValidationError

        try:
            said = await self._line.ask("tools/call", {"name": self.tool, "arguments": args})
            result = CallToolResult.model_validate(said)
        except PeerError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} could not run {self.tool}: {error}", code="mcp-error"
            ) from error
        except ValidationError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} answered with no result of a tool.", code="mcp-answer"
            ) from error
        return await McpResultReader().read_result(self.tool, result, self.output_schema)
