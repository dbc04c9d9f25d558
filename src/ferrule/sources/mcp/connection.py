"""Connect to one MCP server: start it when it is needed, restart it after it died, and answer its requests.

A failing server harms no other. One that ends again and again is left alone for a while.

A server may ask for values from the user and for the folders of the session, and for nothing else.

Calls that a server runs as tasks (MCP 2025-11-25) are started, polled until they are over, and then fetched.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from ferrule.arguments.schema import judge
from ferrule.core.access import within
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.services import Mixed, ServerResource
from ferrule.output import clean, clean_value
from ferrule.sources.mcp import McpServerEntry, ServerListing, results
from ferrule.sources.mcp.config import start_folder
from ferrule.sources.mcp.keeper import Keeper, Wants
from ferrule.sources.mcp.results import McpResultReader, contents, prompt_text
from ferrule.sources.mcp.transport import SENT, describe_error
from ferrule.system.environment import quiet_environment
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, ElicitResult, ListRootsResult, ServerCapabilities, Task


PAUSES_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""After the first end, the second and so on; the last one holds for all that follow."""
_STEADY_SECONDS = 60.0
"""A server that has run so long did not end at once: its earlier ends are forgotten."""


class Rest:
    """Counts the ends of one server that nobody asked for."""

    def __init__(self, pauses_seconds: tuple[float, ...]) -> None:
        self._pauses_seconds = pauses_seconds
        self._ends = 0
        self._until = 0.0

    def count(self, began: float) -> None:
        """It has just ended, and had begun then, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._ends = 1 if now - began > _STEADY_SECONDS else self._ends + 1
        self._until = now + self._pauses_seconds[min(self._ends, len(self._pauses_seconds)) - 1]

    def words(self) -> str:
        """When it may be started again, as a sentence without its subject; empty where that is now."""
        left = self._until - asyncio.get_running_loop().time()
        if left <= 0:
            return ""
        times = "once" if self._ends == 1 else f"{self._ends} times in a row"
        return f"has failed {times} and may be started again in {left:.1f} seconds"


_MESSAGE_CHARS = 4_000
_FIELDS = 50

Elicit = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Server's name, its message and the JSON Schema of what it asks for → the values, or None for no."""


class Elicited:
    """Answers the questions of one server, one after the other."""

    def __init__(self, server: str, elicit: Elicit, note: Callable[[str], None], waiting: Callable[[], None]) -> None:
        """`waiting` is called while somebody is being asked, so that nobody's time runs out over it."""
        self._server = server
        self._elicit = elicit
        self._note = note
        self._waiting = waiting
        self._lock = asyncio.Lock()

    async def __call__(self, context: Any, params: Any) -> "ElicitResult":  # noqa: ARG002 - the package's way to ask
        import mcp_types as types  # whoever asks has been spoken to with it

        if params.mode != "form":
            self._note(
                f'The MCP server "{self._server}" wanted a page to be opened. It was told no: only forms are shown.'
            )
            return types.ElicitResult(action="decline")
        schema = clean_value(dict(params.requested_schema))
        properties = schema.get("properties")
        if not isinstance(properties, dict) or len(properties) > _FIELDS:
            self._note(f'A question of the MCP server "{self._server}" could not be shown. It was told no.')
            return types.ElicitResult(action="decline")
        values = await self._ask(clean(params.message)[:_MESSAGE_CHARS], schema)
        if values is None:
            return types.ElicitResult(action="decline")
        content = fill_defaults(schema, values)
        if content is None:
            self._note(f'The answer did not fit the question of the MCP server "{self._server}". It was told no.')
            return types.ElicitResult(action="cancel")
        return types.ElicitResult(action="accept", content=content)

    async def _ask(self, message: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        async with self._lock:
            asking = asyncio.ensure_future(self._elicit(self._server, message, schema))
            try:
                while not asking.done():
                    self._waiting()
                    await asyncio.wait([asking], timeout=1.0)
                return None if asking.cancelled() else asking.result()
            except Exception:  # noqa: BLE001 - whoever was asked is code that we do not know; no answer is a no
                return None
            finally:
                asking.cancel()


def fill_defaults(schema: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values that were asked for, with the defaults of those that were not given; None where they do not fit."""
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        value = values.get(name)
        if value is None and isinstance(field, dict):
            value = field.get("default")
        if value is not None:
            content[name] = value
    try:
        return content if judge(dict(schema)).is_valid(content) else None
    except (ConfigError, ValueError):
        return None


def make_roots_callback(folders: Sequence[str]) -> "Callable[[Any], Awaitable[ListRootsResult]]":
    """Tells a server which folders the session is about."""

    async def answer(context: Any) -> "ListRootsResult":  # noqa: ARG001 - the package's way to ask

        import mcp_types as types  # as above

        named = [{"uri": f"file://{quote(os.path.abspath(one))}", "name": os.path.basename(one)} for one in folders]
        return types.ListRootsResult.model_validate({"roots": named})

    return answer


_POLL_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 1.0, 0.05, 30.0
"""Between two questions: where the server names no interval, and the bounds of what it may name."""
_CANCEL_SECONDS = 2.0
"""So long a server may take to hear that nobody wants its task any more."""
_WORDS_CHARS = 500
_OVER = frozenset({"completed", "failed", "cancelled"})
_WAITS = "input_required"


def can_run(offered: "ServerCapabilities") -> bool:
    """Does a server run calls of its tools as tasks? The newest version of MCP knows tasks only as an extension."""
    requests = offered.tasks and offered.tasks.requests
    return bool(requests and requests.tools and requests.tools.call is not None)


async def run(
    client: "Client",
    tool: str,
    arguments: Mapping[str, Any],
    *,
    tell: Callable[[str], None],
    report: Any,
    failure: Callable[[str], ToolFailure],
) -> "CallToolResult":
    """Call a tool as a task, and wait for its result; giving up waiting cancels the task at the server.

    `tell` hears how the task gets on, `report` is given to the package for progress of the server's own, and `failure`
    makes an error of the end of a sentence about the server.
    """
    import mcp_types as types  # came with the client

    params = types.CallToolRequestParams(name=tool, arguments=dict(arguments), task=types.TaskMetadata())
    begun = await client.session.send_request(
        types.CallToolRequest(params=params), types.CreateTaskResult, progress_callback=report
    )
    task_id = begun.task.task_id
    fetching: asyncio.Task[CallToolResult] | None = None

    def fetch() -> "asyncio.Task[CallToolResult]":
        wanted = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task_id))
        return asyncio.ensure_future(client.session.send_request(wanted, types.CallToolResult))

    try:
        task: Task = begun.task
        told = ""
        while task.status not in _OVER:
            # Questions to the user come by the request for the result, which waits until there is one.
            if task.status == _WAITS and fetching is None:
                fetching = fetch()
            if (words := _words(task)) != told:
                told = words
                tell(words)
            await _pause(task, fetching)
            if fetching is not None and fetching.done():
                return fetching.result()
            asked = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task_id))
            task = await client.session.send_request(asked, types.GetTaskResult)
        if task.status == "cancelled":
            raise failure(f"has cancelled the task. {_status_text(task)}".rstrip())
        return await (fetching or fetch())
    except asyncio.CancelledError:
        await _cancel(client, task_id)
        raise
    finally:
        if fetching is not None:
            fetching.cancel()


async def _pause(task: "Task", fetching: "asyncio.Task[Any] | None") -> None:
    """Wait as long as the server wants, or until the result has come."""
    named = task.poll_interval
    seconds = _POLL_SECONDS if named is None else max(_LEAST_SECONDS, min(named / 1000, _MOST_SECONDS))
    if fetching is None:
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait({fetching}, timeout=seconds)


async def _cancel(client: "Client", task_id: str) -> None:
    import mcp_types as types  # as above

    wanted = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task_id))
    asked = asyncio.ensure_future(client.session.send_request(wanted, types.CancelTaskResult))
    await asyncio.wait({asked}, timeout=_CANCEL_SECONDS)
    if not asked.done():
        asked.cancel()
    elif not asked.cancelled():
        asked.exception()  # a server that does not cancel is left to it


def _words(task: "Task") -> str:
    state = "waits for an answer" if task.status == _WAITS else task.status
    said = _status_text(task)
    return f"{state}: {said}" if said else state


def _status_text(task: "Task") -> str:
    return " ".join(clean(task.status_message or "").split())[:_WORDS_CHARS]


_T = TypeVar("_T")
_CHANGED_SECONDS = 0.1
"""Changes that come so close are one."""
_GONE, _GONE_SECONDS = "Connection closed", 2.0
"""What the package says to a call whose server is gone, and how long the keeper may take to learn why."""
_BROKEN = "SSE stream ended"
"""What it says to a call whose answer broke off and could not be fetched either; servers use the same code."""
_UNKNOWN = "; what the call had done by then is not known, and it was not repeated"
_CONNECTION_MESSAGE_CHARS = 2_000
_PROGRESS_CHARS = 500
_GUIDANCE_CHARS = 16_384


class McpConnection:
    """One server. Every method starts it first where it does not run; failures are `ToolFailure`s with a sentence."""

    def __init__(
        self,
        server: McpServerEntry,
        *,
        environment: Mapping[str, str],
        folder: str,
        roots: tuple[str, ...] = (),
        on_changed: Callable[[], None] = lambda: None,
        elicit: Elicit | None = None,
        roster: object | None = None,
        result_bytes: int = 32 << 20,
        unsearched: tuple[str, ...] = (),
        on_note: Callable[[str], None] = lambda _: None,
        pauses_seconds: tuple[float, ...] = PAUSES_SECONDS,
    ) -> None:
        """`server` has its variables expanded already; `folder` is the workspace; `on_note` gets warnings.

        In the folders `unsearched` programs are not looked for, though they are on the user's PATH.
        """
        self._server = server
        self._unsearched = unsearched
        self._on_changed = on_changed
        self._on_note = on_note
        self._rest = Rest(pauses_seconds)
        self._wants = Wants(
            server=server,
            environment=environment,
            folder=folder,
            roster=roster if isinstance(roster, Roster) else None,
            result_bytes=result_bytes,
            elicit=None if elicit is None else Elicited(server.name, elicit, on_note, self._wait_for_user),
            roots=make_roots_callback(roots) if roots else None,
            changed=self._change,
        )
        self._keeper: Keeper | None = None
        self._mode = "auto"
        self._closed = False
        self._junk_told = False
        self._changing: asyncio.TimerHandle | None = None
        self._pending: set[_Pending] = set()
        self._answers = McpResultReader()
        self._listing = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        return self._keeper is not None and self._keeper.ready

    async def listing(self) -> ServerListing:
        return await _twice(self._list)

    async def _list(self) -> ServerListing:
        async with self._listing, self._open_client("list its tools", self._server.start_seconds) as (keeper, client):
            assert keeper.transport is not None
            sieve = keeper.transport.sieve
            sieve.rejected["tools/list"] = []
            offered = client.server_capabilities
            found: list[Any] = []
            cut = ""
            if offered.tools is not None:
                found, cut = await results.pages(_pages(client.list_tools, "tools"))
            rejected = [*sieve.rejected["tools/list"], *([("(and more)", cut)] if cut else [])]
            prompts: list[Any] = []
            if offered.prompts is not None:
                prompts, _ = await results.pages(_pages(client.list_prompts, "prompts"))
            tools, doubles = results.tools(found, tasks=can_run(offered))
            about = client.server_info
            return ServerListing(
                title=clean((about and (about.title or about.name)) or self._server.name)[:200],
                version=clean((about and about.version) or "")[:100],
                guidance=clean(client.instructions or "")[:_GUIDANCE_CHARS],
                tools=tools,
                prompts=results.prompts(prompts),
                has_resources=offered.resources is not None,
                rejected=(*rejected, *doubles),
            )

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Callable[[str], None],
        output_schema: Mapping[str, Any] | None = None,
        is_task: bool = False,
    ) -> Mixed:
        """Cancelling it cancels the call at the server. `is_task`: does the server run it as a task only?"""

        async def ask() -> Any:
            pending = _Pending(progress)
            async with self._open_client(f"run {tool}", None) as (_, client):
                self._pending.add(pending)
                try:
                    if is_task:
                        return await run(
                            client, tool, arguments, tell=pending.tell, report=pending.report, failure=self._refusal
                        )
                    return await client.call_tool(tool, dict(arguments), progress_callback=pending.report)
                finally:
                    self._pending.discard(pending)
                    pending.over = True

        result = await _twice(ask)
        self._tell_of_junk()
        return await self._answers.read_result(tool, result, output_schema)

    async def resources(self, *, templates: bool = False) -> list[ServerResource]:
        async def ask() -> list[Any]:
            async with self._open_client("list its resources", self._server.start_seconds) as (_, client):
                self._need(client, "resources")
                if templates:
                    found, _ = await results.pages(_pages(client.list_resource_templates, "resource_templates"))
                else:
                    found, _ = await results.pages(_pages(client.list_resources, "resources"))
                return found

        return results.resources(self._server.name, await _twice(ask))

    async def read(self, uri: str) -> Mixed:
        async def ask() -> Any:
            async with self._open_client(f"read {uri}", None) as (_, client):
                self._need(client, "resources")
                return await client.read_resource(uri)

        return await contents(await _twice(ask))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        async def ask() -> Any:
            async with self._open_client(f"give its prompt {name}", None) as (_, client):
                self._need(client, "prompts")
                return await client.get_prompt(name, dict(arguments))

        return await prompt_text(await _twice(ask))

    async def close(self) -> None:
        """End the server and all that it has started; a connection that was closed is not opened again."""
        self._closed = True
        if self._changing is not None:
            self._changing.cancel()
        if self._keeper is not None:
            await self._keeper.stop()

    @asynccontextmanager
    async def _open_client(self, doing: str, seconds: float | None) -> "AsyncIterator[tuple[Keeper, Client]]":
        """The server, started where it does not run; whatever goes wrong meanwhile becomes a ToolFailure."""
        keeper = await self._ensure_ready()
        client = keeper.client
        assert client is not None
        sent: list[Any] = []
        before = SENT.set(sent)
        try:
            async with asyncio.timeout(seconds):
                yield keeper, client
        except ToolFailure:
            raise
        except TimeoutError as error:
            within = "in time" if seconds is None else f"within {seconds:g} seconds"
            raise self._failure(f"did not {doing} {within}", code="mcp-timeout") from error
        except Exception as error:  # the package, with whatever a server made of it
            raise await self._explain_error(keeper, error, sent) from error
        finally:
            SENT.reset(before)

    async def _ensure_ready(self) -> Keeper:
        while True:
            keeper = await self._ensure_keeper()
            await keeper.wait()
            if keeper.ready:
                if self._server.transport == "stdio" and keeper.is_legacy:
                    self._mode = "legacy"  # the next start need not ask
                return keeper
            if self._is_older(keeper):
                self._mode = "legacy"
                if self._keeper is keeper:
                    self._keeper = None
            elif keeper.over and not keeper.was_ready:
                self._bury(keeper)
                raise self._failure(keeper.why.rstrip(".") + self._path_hint(), keeper=keeper)

    def _path_hint(self) -> str:
        """What to write where the program that was meant lies in the workspace, as in an activated environment."""
        server, folder = self._server, os.path.realpath(self._wants.folder)
        is_searched = server.transport == "stdio" and not os.path.dirname(server.command) and "PATH" not in server.env
        found = shutil.which(server.command, path=os.pathsep.join(self._unsearched)) if is_searched else None
        if found is None:
            return ""
        if within(found, folder):
            found = os.path.relpath(found, folder)
            if os.path.realpath(start_folder(server, folder)) != folder:
                found = os.path.join("${WORKSPACE}", found)
        return (
            f". On PATH there is {found}, but programs are not looked for in folders that a model can write to: if you "
            f"mean that one, write {found!r} as the command in {server.source}"
        )

    async def _ensure_keeper(self) -> Keeper:
        """A life of the server that is not about to end."""
        while True:
            keeper = self._keeper
            if keeper is not None and keeper.is_stopping:
                await keeper.wait_until_over()
                self._bury(keeper)
            if self._closed:
                raise self._failure("was closed with its session")
            if self._keeper is not keeper:
                continue  # another call was first
            if keeper is not None and not keeper.is_stopping:
                return keeper
            if keeper is not None and (resting := self._rest.words()):
                raise self._failure(f"{keeper.why}. It {resting}", keeper=keeper, code="mcp-resting")
            self._keeper = Keeper(self._wants, self._mode)

    def _is_older(self, keeper: Keeper) -> bool:
        """Some servers of the older protocol end when they are greeted in the newer one: they get another chance."""
        transport = keeper.transport
        started = self._server.transport == "stdio" and transport is not None and not transport.answered
        return self._mode == "auto" and started and not keeper.closing and "ended with exit code" in keeper.why

    def _bury(self, keeper: Keeper) -> None:
        """Count an end that nobody asked for, once."""
        if not keeper.closing and not keeper.buried and not keeper.is_forgotten:
            keeper.buried = True
            self._rest.count(keeper.began)

    async def _explain_error(self, keeper: Keeper, error: Exception, sent: Sequence[Any]) -> ToolFailure:
        from mcp.shared.exceptions import MCPError  # loaded when the server was started
        from pydantic import ValidationError

        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MCPError):
            keeper.look()
        if keeper.is_stopping or str(error) == _GONE:
            await keeper.wait_until_over(None if keeper.is_stopping else _GONE_SECONDS)
        if keeper.over and keeper.is_untaken:
            return _ForgottenError(self._failure(keeper.why, keeper=keeper).message, code="mcp-server")
        if keeper.over:
            self._bury(keeper)
            tale = "" if keeper.closing else _UNKNOWN
            if keeper.unsent is not None and keeper.unsent in sent:
                tale = "; the call was not sent"
            return self._failure(keeper.why.rstrip(".") + tale, keeper=keeper)
        if isinstance(error, MCPError):
            return self._explain_mcp_error(keeper, error)
        if isinstance(error, ValidationError):
            return self._failure(
                f"answered with something that is not MCP ({describe_error(error)})", code="mcp-answer"
            )
        return self._failure(f"could not be asked: {_truncate(str(error)) or type(error).__name__}")

    def _explain_mcp_error(self, keeper: Keeper, error: "MCPError") -> ToolFailure:
        """An error that the server answered with, or that the package made in its place."""
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR  # loaded when the server was started

        if error.code == CONNECTION_CLOSED and error.message.startswith(_BROKEN):
            return self._failure(f"broke off the connection before it had answered{_UNKNOWN}")
        if reason := keeper.status_reason(error.message):
            return self._failure(reason)
        what = "gave an answer that cannot be read" if error.code == PARSE_ERROR else "refused"
        return self._failure(f"{what}: {_truncate(error.message)}", code="mcp-error")

    def _failure(self, why: str, *, keeper: Keeper | None = None, code: str = "mcp-server") -> ToolFailure:
        words = "" if keeper is None else keeper.last_words
        tail = f" It said last:\n{words}" if words else ""
        return ToolFailure(clean(f'The MCP server "{self._server.name}" {why.rstrip(".")}.{tail}'), code=code)

    def _refusal(self, why: str) -> ToolFailure:
        return self._failure(why, code="mcp-error")

    def _need(self, client: "Client", what: str) -> None:
        if getattr(client.server_capabilities, what) is None:
            raise self._failure(f"offers no {what}", code="mcp-not-offered")

    def _change(self) -> None:
        if self._changing is None and not self._closed:
            self._changing = asyncio.get_running_loop().call_later(_CHANGED_SECONDS, self._report_change)

    def _report_change(self) -> None:
        self._changing = None
        self._on_changed()

    def _wait_for_user(self) -> None:
        for pending in tuple(self._pending):
            pending.progress("It waits for an answer of the user.")

    def _tell_of_junk(self) -> None:
        keeper = self._keeper
        if keeper is not None and keeper.transport is not None and keeper.transport.junk_lines and not self._junk_told:
            self._junk_told = True
            lines = keeper.transport.junk_lines
            self._on_note(
                f'The MCP server "{self._server.name}" wrote {lines:,} lines that are no messages; they were dropped.'
            )


class _ForgottenError(ToolFailure):
    """The server did not know the session, so it has not taken what was asked."""


async def _twice(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask, and once more where the server had forgotten the session: as after it was started anew."""
    try:
        return await ask()
    except _ForgottenError:
        return await ask()


class _Pending:
    """A call that has no answer yet."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.progress = progress
        self.over = False

    def tell(self, words: str) -> None:
        if not self.over:
            self.progress(words)

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        if not self.over:
            words = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            self.progress(f"{words}: {clean(message)[:_PROGRESS_CHARS]}" if message else words)


def _pages(
    fetch: Callable[..., Awaitable[Any]], key: str
) -> Callable[[str | None], Awaitable[tuple[list[Any], str | None]]]:
    async def page(cursor: str | None) -> tuple[list[Any], str | None]:
        result = await fetch(cursor=cursor)
        return getattr(result, key), result.next_cursor

    return page


def _truncate(message: str) -> str:
    return clean(message)[:_CONNECTION_MESSAGE_CHARS].strip()


class Opening(NamedTuple):
    """The same for all servers of a session."""

    environment: Mapping[str, str]
    """The whole one: variables are expanded from it. Servers get what of it is no secret."""
    roots: tuple[str, ...] = ()
    elicit: "Elicit | None" = None
    roster: object | None = None
    result_bytes: int = 32 << 20
    keep_env: tuple[str, ...] = ()
    """Variables that look secret and are handed to servers all the same."""
    unsearched: tuple[str, ...] = ()
    """Folders of the user's PATH that programs are not looked for in, because a model can write there."""
    kind: "type[McpConnection] | None" = None
    """What makes a connection, where it is not the usual class."""

    def connection(self, server: McpServerEntry, folder: str, on_changed: Callable[[], None]) -> "McpConnection":
        """A connection to a server whose variables are expanded; nothing is started yet."""
        kind = self.kind
        if kind is None:
            kind = McpConnection
        return kind(
            server,
            environment=quiet_environment(self.environment, keep=self.keep_env),
            folder=folder,
            roots=self.roots,
            on_changed=on_changed,
            elicit=self.elicit,
            roster=self.roster,
            result_bytes=self.result_bytes,
            unsearched=self.unsearched,
        )
