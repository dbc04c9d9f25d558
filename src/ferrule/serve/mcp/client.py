"""Ask the client of an MCP server: questions to its user, and its roots.

Up to 2025-11-25 the question goes to the client while its request waits. From 2026-07-28 on a server sends no
requests: the call is given up before it has run, its answer says what is asked, and the client calls again with what
its user said.

Desktop clients start servers in `/` or in the home folder. A workspace so wide would let a model read all that its
user can, without a question; so the client's roots decide, and without any `/` is never taken.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ferrule.core.access import within
from ferrule.core.errors import ConfigError
from ferrule.engine import Engine
from ferrule.output import clean, clean_value
from ferrule.permissions import KINDS, NO, Answer, Question, end_sentence, visible
from ferrule.permissions.question import covers, question_rows

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import CallToolRequestParams


ONCE, ALWAYS, DENY = "allow once", "always", "deny"
SESSION, OUTSIDE = "allow for this session", "run it once outside the sandbox"
APPROVE, APPROVE_EDITS, KEEP_PLANNING = "approve", "approve, and edits need no question", "keep planning"
_MOST_CHARS = 20_000
_MOST_SAID_CHARS = 1000
_MOST_EFFECTS = 6
_WHOLE_CHARS = 50_000
"""What a server's question has to show whole; where that is more, it is not asked."""
_ASK_SECONDS = 600.0
"""A client that never answers must not keep the questions of others waiting for ever."""
_FORMS = ("values", "choose")
"""Questions that bring a form of their own."""
_SILENT = frozenset({"outside", "host", "planted", "values", "secret"})
"""Questions that come up in the middle of a call, which says itself what a no has meant."""


class _Rounds(msgspec.Struct, frozen=True):
    """What goes to the client and comes back when it calls again; the package seals it."""

    asked: str
    answers: dict[str, Any]


class ClientRequest:
    """One request of a client: what its user was asked and has answered."""

    def __init__(self, ctx: "ServerRequestContext[Any, Any]", params: "CallToolRequestParams") -> None:

        self._ctx = ctx
        self._modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._answers = _answers(params) if self._modern else {}
        self.client = ctx.session.client_params or self
        """What is the same for all requests of one client."""
        self.pending: tuple[str, Question] | None = None
        """The question that the call was given up for."""

    async def ask(self, question: Question) -> Answer:
        if not self._can_be_asked():
            return _cannot(question, "this MCP client cannot be asked")
        if KINDS[question.kind].is_whole and sum(map(len, (*question.effects, *question.changes))) > _WHOLE_CHARS:
            return _cannot(question, "there is more to look at than a form can show")
        if not self._modern:
            return _answer(question, *await self._elicit(question))
        if not KINDS[question.kind].comes_first or not question.call_id:
            return _cannot(question, "clients of this version of MCP cannot be asked while a call runs")
        key = _key(question)
        if key in self._answers:
            return _answer(question, *_read(self._answers[key]))
        self.pending = (key, question)
        if question.kind in {"choose", "plan"} and (running := asyncio.current_task()) is not None:
            # Its body runs: what only fell over in there would be taken for a mistake of the tool.
            running.cancel()
            await asyncio.sleep(0)
        raise asyncio.CancelledError  # nothing of the call has run yet, and nothing of it will before the answer

    def input_required(self) -> dict[str, Any]:
        """The answer to a call that waits for its user, with all that was answered before."""
        assert self.pending is not None
        key, question = self.pending
        params = {"mode": "form", "message": _message(question), "requestedSchema": _form(question)}
        return {
            "resultType": "input_required",
            "inputRequests": {key: {"method": "elicitation/create", "params": params}},
            "requestState": msgspec.json.encode(_Rounds(key, self._answers)).decode(),
        }

    def _can_be_asked(self) -> bool:
        """A client that names no way of being asked means forms."""
        capabilities = self._ctx.session.client_capabilities
        can = None if capabilities is None else capabilities.elicitation
        return can is not None and (can.form is not None or can.url is None)

    async def _elicit(self, question: Question) -> tuple[str, Mapping[str, Any]]:

        params = ElicitRequestFormParams(message=_message(question), requested_schema=_form(question))
        result = await self._ctx.session.send_request(
            ElicitRequest(params=params),
            ElicitResult,
            request_read_timeout_seconds=_ASK_SECONDS,
            metadata=ServerMessageMetadata(related_request_id=self._ctx.request_id),
        )
        return result.action, result.content or {}


class Clients:
    """The `Asker` of a serving engine: finds the request that a question belongs to by the id of its call."""

    is_person = True

    def __init__(self) -> None:
        self._asked: dict[str, ClientRequest] = {}

    def add(self, call_id: str, asked: ClientRequest) -> None:
        self._asked[call_id] = asked

    def remove(self, call_id: str) -> None:
        self._asked.pop(call_id, None)

    async def ask(self, question: Question) -> Answer:
        asked = self._asked.get(question.call_id) if question.call_id else self._only()
        if asked is None:
            return _cannot(question, "it is not known which client it is about")
        return await asked.ask(question)

    def _only(self) -> ClientRequest | None:
        """The last request, where all that run are of one client: then a question that is about no call is for it."""
        running = list(self._asked.values())
        if not running or any(one.client is not running[0].client for one in running):
            return None
        return running[-1]


def _decline(question: Question) -> Answer:
    """No, in the name of a client: some decline by themselves, and so nobody knows whether its user has seen it."""
    if question.kind in _SILENT - {"outside"}:
        return NO
    said = "The MCP client declined the question, by its user's choice or without asking anybody"
    if question.kind == "choose":
        return Answer(allow=False, message=f"{said}.")
    if question.kind == "plan":
        return Answer(allow=False, message=f"{said}, so the plan is not approved.")
    more = ""
    if not KINDS[question.kind].only_persons:
        more = "Where nobody is ever asked, a rule or --permission-mode of `ferrule mcp serve` lets it pass."
    left = "let out of the sandbox" if question.kind == "outside" else "allowed"
    return Answer(
        allow=False, message=f"{said}, so this was not {left}: {end_sentence(question.summary)}{more}".rstrip()
    )


def _cannot(question: Question, why: str) -> Answer:
    if question.kind in _SILENT:
        return NO
    if question.kind in {"choose", "plan"}:
        return Answer(allow=False, message=f"Nobody can be asked, because {why}.")
    if KINDS[question.kind].only_persons:
        return Answer(
            allow=False,
            message=f"Nobody can be asked, because {why}, so this was not allowed: {end_sentence(question.summary)}"
            f"{question.why} Ask the user to do it by hand.",
        )
    return Answer(
        allow=False,
        message=f"Nobody can be asked, because {why}, so this was not allowed: "
        f"{end_sentence(question.summary)}To let it pass, add a rule that allows it, start `ferrule mcp serve` with "
        "--permission-mode or --yes, or use a client that supports elicitation.",
    )


def _answer(question: Question, action: str, content: Mapping[str, Any]) -> Answer:
    """What the user said. Whatever is not plainly a yes is a no."""
    if action != "accept":
        return _decline(question)
    if question.kind in _FORMS:
        return Answer(allow=True, values=clean_value(dict(content)))
    if question.kind == "host" and content.get("decision") == OUTSIDE:
        return Answer(allow=False, values={"run": "outside"})
    said = content.get("message")
    if content.get("decision") in _decisions(question)[:-1]:
        values = {"mode": "acceptEdits"} if content["decision"] == APPROVE_EDITS else None
        return Answer(allow=True, always=content["decision"] == ALWAYS, values=values)
    if isinstance(said, str) and said.strip():
        told = visible(clean(said.strip())[:_MOST_SAID_CHARS])
        left = "approve the plan" if question.kind == "plan" else "allow this"
        return Answer(allow=False, message=f"The user did not {left} and says: {told}")
    return NO


def _decisions(question: Question) -> tuple[str, ...]:
    """What can be answered, no last."""
    if question.kind == "plan":
        more = (APPROVE_EDITS,) if question.input.get("mode") == "default" else ()
        return (APPROVE, *more, KEEP_PLANNING)
    if question.kind == "host":
        return (SESSION, ALWAYS, OUTSIDE, DENY)
    return (ONCE, ALWAYS, DENY) if question.kind == "call" else (ONCE, DENY)


def _form(question: Question) -> dict[str, Any]:
    if question.kind in _FORMS:
        return {**question.schema, "type": "object", "properties": dict(question.schema.get("properties", {}))}
    decision = {
        "type": "string",
        "title": "Decision",
        "description": "May it happen?",
        "enum": list(_decisions(question)),
        "default": _decisions(question)[-1],  # a client that fills in what is usual has not asked anybody
    }
    why_not = {"type": "string", "title": "Message", "description": "What the model should know, if it may not."}
    return {"type": "object", "properties": {"decision": decision, "message": why_not}, "required": ["decision"]}


def _message(question: Question) -> str:
    lines = [_truncate_middle(visible(row)) for row in question.summary.split("\n")]
    is_whole = KINDS[question.kind].is_whole
    shown = question_rows(question)
    lines += shown if is_whole else _first(shown)
    if question.kind != "server":  # its effects are the rows
        shown_effects = len(question.effects) if is_whole else _MOST_EFFECTS
        lines += [visible(effect) for effect in question.effects[:shown_effects]]
        if len(question.effects) > shown_effects:
            lines.append(f"… and {len(question.effects) - shown_effects} more")
    if question.why:
        lines.append(visible(question.why))
    if KINDS[question.kind].has_always:
        lines.append(f"“{ALWAYS}” {_covers(question)}.")
    return "\n".join(lines)


def _first(shown: list[str]) -> list[str]:
    """As many rows as a form has room for, each bounded, and how many are left out."""
    left = _MOST_CHARS
    for at, row in enumerate(shown):
        left -= len(row) + 1
        if left < 0 and at:
            return [*shown[:at], f"… {len(shown) - at:,} more line{'s' * (len(shown) - at > 1)}"]
    return list(map(_truncate_middle, shown))


def _covers(question: Question) -> str:
    """What "always" would allow."""
    host = "allows it in this workspace from now on"
    return covers(question, host=host, like="allows {} until this server ends, to all of its clients")


def _truncate_middle(text: str) -> str:
    """A long text with its beginning and its end in sight."""
    if len(text) <= _MOST_CHARS:
        return text
    half = _MOST_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} more characters …\n{text[-half:]}"


def _key(question: Question) -> str:
    """A question is the same one only when all of it is the same, also what was too long to be shown."""
    whole = [
        question.summary,
        question.input,
        question.effects,
        question.touches,
        question.choices,
        question.changes,
    ]
    shown = msgspec.json.encode([question.kind, question.name, _message(question), repr(whole)])
    return f"permission-{hashlib.sha256(shown).hexdigest()[:32]}"


def _answers(params: "CallToolRequestParams") -> dict[str, Any]:
    """What the user has answered so far: in earlier rounds, and to the question of the last one and no other."""
    if params.request_state is None:
        return {}
    try:
        rounds = msgspec.json.decode(params.request_state, type=_Rounds)
    except msgspec.DecodeError:
        return {}
    given = (params.input_responses or {}).get(rounds.asked)
    if given is None:
        return rounds.answers
    return {**rounds.answers, rounds.asked: given.model_dump(mode="json", by_alias=True)}


def _read(given: Any) -> tuple[str, Mapping[str, Any]]:
    content = given.get("content") if isinstance(given, dict) else None
    action = given.get("action") if isinstance(given, dict) else None
    return str(action), content if isinstance(content, dict) else {}


_ROOTS_SECONDS = 30.0
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var")
_HOW = "add `--workspace DIR` to the arguments of `ferrule mcp serve` in the client's configuration"


def is_nowhere(folder: str) -> bool:
    """Is this a folder that programs are started in when nobody has chosen one: `/`, or the user's home?"""
    real = os.path.realpath(folder)
    return _is_everything(real) or real == os.path.realpath(os.path.expanduser("~"))


def _is_everything(folder: str) -> bool:
    return os.path.dirname(folder) == folder


def _is_wide(folder: str) -> str:
    """What makes a root wider than a project, as words behind its path; empty where nothing does."""
    home = os.path.realpath(os.path.expanduser("~"))
    if within(home, folder):
        return "the home folder" if home == folder else "with the home folder in it"
    return "a folder of the system" if folder in _SYSTEM else ""


def refuse_everything(folder: str) -> None:
    """Raise `ConfigError` where the folder is the whole machine, and nobody is there to name a better one."""
    real = os.path.realpath(folder)
    if _is_everything(real):
        raise ConfigError(f"The workspace would be {real}, the whole machine: choose a folder with `--workspace DIR`.")


class Roots:
    """Opens an engine over the client's first root that is a folder, and another one when that is gone."""

    def __init__(self, start: str, open_engine: Callable[[str], Engine], warn: Callable[[str], None]) -> None:
        """`start` is where the server was started; without roots it is the workspace, unless it is everything."""
        self._start = os.path.realpath(start)
        self._open = open_engine
        self._warn = warn
        self._engine: Engine | None = None
        self._is_asked = False
        self._lock = asyncio.Lock()

    def welcome(self) -> str:
        """What a client is told before the workspace is known."""
        return "Tools over the first folder among the client's roots. Relative paths start there."

    async def engine(self, session: "ServerSession | Any", *, anew: bool = False) -> Engine:
        """The engine of this client's workspace; `anew` asks for the roots again. Raises `ConfigError`."""
        # Whoever gives up a request must not leave an engine behind that is half open.
        return await asyncio.shield(asyncio.ensure_future(self._resolve_engine(session, anew=anew)))

    async def _resolve_engine(self, session: "ServerSession | Any", *, anew: bool) -> Engine:
        async with self._lock:
            if self._engine is not None and self._is_asked and not anew:
                return self._engine
            folders, why = await _list_root_folders(session)
            self._is_asked = True
            known = None if self._engine is None else self._engine.jail.folder
            if self._engine is not None and (known in folders or not folders):
                return self._engine
            if not folders and _is_everything(self._start):
                raise ConfigError(
                    f"There is no workspace: the server was started in {self._start}, the whole machine, and {why}. "
                    f"Ask the user to {_HOW}."
                )
            if not folders:
                self._warn(
                    f"The workspace is the home folder, {self._start}, because {why}. To choose a smaller one, {_HOW}."
                )
            elif wide := _is_wide(folders[0]):
                self._warn(
                    f"The workspace is {folders[0]}, {wide}, because it is this client's first root: a model reads all "
                    f"of it without a question. Open a smaller folder in the client, or {_HOW}."
                )
            await self._move(folders[0] if folders else self._start)
            assert self._engine is not None
            return self._engine

    async def _move(self, folder: str) -> None:
        await self.close()
        engine = self._open(folder)
        await engine.__aenter__()
        self._engine = engine
        for warning in engine.warnings:
            self._warn(warning)

    async def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.__aexit__(None, None, None)


async def _list_root_folders(session: "ServerSession | Any") -> tuple[list[str], str]:
    """The folders among a client's roots, and otherwise why there are none, as the end of a sentence."""
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return [], "this client names no roots"
    try:
        async with asyncio.timeout(_ROOTS_SECONDS):
            result = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
    except TimeoutError:
        return [], f"this client did not name its roots within {_ROOTS_SECONDS:g} seconds"
    except (MCPError, ValidationError, RuntimeError) as error:
        return [], f"the roots of this client cannot be read ({visible(str(error).splitlines()[0])[:200]})"
    named = [_folder(str(root.uri)) for root in result.roots]
    folders = [folder for folder in named if folder and os.path.isdir(folder) and not _is_everything(folder)]
    return folders, "none of this client's roots is a folder of this machine, or all of it"


def _folder(uri: str) -> str:
    """The real path of a `file:` address of this machine; empty where it is another address."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return ""
    path = unquote(parts.path)
    if os.name == "nt":
        path = path.lstrip("/")
    return os.path.realpath(path) if os.path.isabs(path) and "\0" not in path else ""
