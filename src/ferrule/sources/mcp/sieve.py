"""The sieve between the `mcp` package and a server: what is bad in an answer is taken out, and the rest goes on.

The package judges a list as a whole: one tool with a bad schema would cost all the others. It also believes that a
server answers only what it was asked, and in moderation.
"""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.sources.mcp.listed import LISTS, fault, shown_name

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage

_NEWS_SECONDS = 0.05
"""Between two reports of one call, and two changes of one list; whoever acts on a change waits longer than this."""
_TOLD = 1000
_ASKING = 64
"""So many questions of a server may be open at once."""
_EDGE_BYTES = 256
_REJECTED = 1000
_BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})
_CALLS = frozenset({"tools/call", "tasks/result"})
_DEFAULT_VERSION = "2025-11-25"


class Sieve:
    """Sees every message of one life of a server, in both directions."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        """`fail` ends the server, with what it did as the end of a sentence."""
        self.rejected: dict[str, list[tuple[str, str]]] = {}
        """What was taken out of each kind of list since somebody cleared this: names and reasons."""
        self.version = ""
        """What was agreed on; empty until then."""
        self._fail = fail
        self._asked: dict[int | str, str] = {}
        self._asking: set[int | str] = set()
        self._told: dict[str, float] = {}

    def let_out(self, message: "JSONRPCMessage") -> None:
        """A message is about to be sent."""
        import mcp_types as types  # loaded by whoever started the server

        if isinstance(message, types.JSONRPCRequest):
            self._asked[message.id] = message.method
            _modest(message)
        elif isinstance(message, types.JSONRPCNotification):
            if message.method == "notifications/cancelled":
                self._asked.pop(_key((message.params or {}).get("requestId")), None)
        elif message.id is not None:
            self._asking.discard(message.id)

    def let_in(self, message: "JSONRPCMessage") -> bool:
        """Is a message that has come to go on? It may have been mended."""
        import mcp_types as types  # as above

        if isinstance(message, types.JSONRPCRequest):
            self._asking.add(message.id)
            if len(self._asking) > _ASKING:
                self._fail(f"asked more than {_ASKING} questions at once")
                return False
            return True
        if isinstance(message, types.JSONRPCNotification):
            return self._is_news(message.method, message.params or {})
        method = self._asked.pop(_key(message.id), None)
        if method is None:
            return False  # nobody asked, or it is the second answer
        if isinstance(message, types.JSONRPCResponse):
            if method in LISTS:
                self._sift(method, message.result)
            elif method in _CALLS:
                _mend(message.result)
        return True

    def rescued(self, line: bytes) -> "JSONRPCMessage | None":
        """A list in which something is nested deeper than the package reads: the entry is left out, not the list."""
        import mcp_types as types  # as above

        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(message, dict) or self._asked.get(_key(message.get("id"))) not in LISTS:
            return None
        result = message.get("result")
        return (
            types.JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=result) if isinstance(result, dict) else None
        )

    def broken(self, line: bytes) -> "list[JSONRPCError]":
        """Errors for the calls that a line seems to answer which nobody can read: they would wait for ever."""
        if b'"jsonrpc"' not in line:
            return []
        import mcp_types as types  # as above

        found = re.findall(rb'"id"\s*:\s*"?(\d{1,15})', line[:_EDGE_BYTES] + b" " + line[-_EDGE_BYTES:])
        keys = [key for key in dict.fromkeys(map(int, found)) if self._asked.pop(key, None) is not None]
        error = types.ErrorData(code=types.PARSE_ERROR, message="It is not a whole message.")
        return [types.JSONRPCError(jsonrpc="2.0", id=key, error=error) for key in keys]

    def _is_news(self, method: str, params: dict[str, Any]) -> bool:
        if method == "notifications/message":
            return False  # what a server logs is nobody's business
        if method == "notifications/cancelled":
            key = _key(params.get("requestId"))
            return key in self._asking or key in self._asked
        about, now = f"{method} {str(params.get('progressToken'))[:100]}", time.monotonic()
        if now - self._told.get(about, 0.0) < _NEWS_SECONDS:
            return False
        if len(self._told) >= _TOLD:
            self._told.clear()
        self._told[about] = now
        return True

    def _sift(self, method: str, result: dict[str, Any]) -> None:
        key = LISTS[method]
        entries = result.get(key)
        if not isinstance(entries, list) or not entries:
            return
        kept = []
        for entry in entries:
            reason = fault(method, entry) or self._header_fault(method, entry)
            if reason:
                self._reject(method, entry, reason)
            else:
                kept.append(entry)
        if self._misfit(method, result, kept) and not self._misfit(method, result, []):
            fitting = []
            for entry in kept:
                reason = self._misfit(method, result, [entry])
                if reason:
                    self._reject(method, entry, reason)
                else:
                    fitting.append(entry)
            kept = fitting
        result[key] = kept

    def _header_fault(self, method: str, entry: dict[str, Any]) -> str:
        """The package leaves such tools out without a word."""
        from mcp.shared.inbound import find_invalid_x_mcp_header
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # both came with the package

        if method != "tools/list" or self.version not in MODERN_PROTOCOL_VERSIONS:
            return ""
        reason = find_invalid_x_mcp_header(entry["inputSchema"])
        return f"It asks for HTTP headers that cannot be: {reason}" if reason else ""

    def _reject(self, method: str, entry: Any, reason: str) -> None:
        rejected = self.rejected.setdefault(method, [])
        if len(rejected) < _REJECTED:
            rejected.append((shown_name(entry), reason))

    def _misfit(self, method: str, result: dict[str, Any], entries: list[Any]) -> str:
        """What the package will say to a list of these entries; empty where it takes it."""
        from mcp_types import methods
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS
        from pydantic import ValidationError  # all three came with the package

        version = self.version or _DEFAULT_VERSION
        frame = dict(result) if version in MODERN_PROTOCOL_VERSIONS else {}
        ttl = frame.get("ttlMs")
        if isinstance(ttl, (int, float)) and ttl < 0:
            frame["ttlMs"] = 0  # the package takes this for nothing too
        frame[LISTS[method]] = entries
        try:
            methods.parse_server_result(method, version, frame)
        except KeyError:
            return ""
        except ValidationError as error:
            return said(error)
        return ""


def said(error: Any) -> str:
    """The first thing that pydantic finds wrong, in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"][-3:])
    return f"{where}: {first['msg']}"[:200]


def _key(id_: Any) -> Any:
    if isinstance(id_, (dict, list)):
        return None
    return int(id_) if isinstance(id_, str) and id_.isascii() and id_.isdecimal() and len(id_) < 16 else id_


def _mend(result: dict[str, Any]) -> None:
    """An answer without parts, or with a part of a kind that is not known, is still an answer."""
    content = result.setdefault("content", []) if "resultType" not in result or "content" in result else None
    if not isinstance(content, list):
        return
    for place, block in enumerate(content):
        if isinstance(block, dict) and block.get("type") not in _BLOCKS:
            kind = str(block.get("type"))[:40]
            content[place] = {"type": "text", "text": f"[A part of the kind {kind!r}, which cannot be shown.]"}


def _modest(message: Any) -> None:
    """The package says that pages can be opened for a server wherever forms can be filled in. They cannot."""
    params = message.params or {}
    if message.method == "initialize":
        capabilities = params.get("capabilities")
    else:
        capabilities = (params.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities")
    if isinstance(capabilities, dict) and isinstance(capabilities.get("elicitation"), dict):
        capabilities["elicitation"].pop("url", None)
