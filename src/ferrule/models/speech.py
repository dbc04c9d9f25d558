"""How each API is spoken to over HTTP: where it is asked, how the key is shown, and who reads its streams."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ferrule.models.hosts import Host
from ferrule.wire.stream import StreamReader

Headers = list[tuple[bytes, bytes]]


class Speech(NamedTuple):
    """One API."""

    path: Callable[[str], str]
    """From a model's id to where it is asked."""
    list_path: str
    key: tuple[str, str]
    """The header of the key, and what stands before it."""
    reader: tuple[str, str]
    """The module and the class that read its streams."""
    plain: tuple[tuple[str, str], ...] = ()
    """Headers that it always wants."""
    forgets: bool = False
    """Does it sometimes end an answer before it has begun, and say that all is well?"""

    def signed(self, host: Host, betas: Sequence[str] = ()) -> Headers:
        """Headers that say who asks, and what is switched on; what the settings say comes over all others."""
        name, before = self.key
        headers = dict(self.plain)
        if host.key:
            headers[name] = before + host.key
        own = {key.lower(): value for key, value in host.headers.items()}
        if betas:
            asked = own.pop(_BETA, "").split(",")
            headers[_BETA] = ",".join(dict.fromkeys(one.strip() for one in (*betas, *asked) if one.strip()))
        headers |= {key: value for key, value in own.items() if key not in _OURS}
        return [(key.encode(), value.encode()) for key, value in headers.items()]


_BETA = "anthropic-beta"
_OURS = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
"""Headers that belong to the line itself."""


def generate_path(model: str, action: str) -> str:
    """Where something is asked of a model of Gemini's API."""
    from urllib.parse import quote  # for an API that has the model in its address

    where = model if "/" in model else f"models/{model}"
    return f"/{quote(where, safe='/-._~')}:{action}"


SPEECH = {
    "anthropic": Speech(
        lambda _: "/v1/messages",
        "/v1/models?limit=1000",
        ("x-api-key", ""),
        ("ferrule.wire.anthropic.reader", "AnthropicReader"),
        # The version that every gateway and every model knows; the newer one only takes things away that are not sent.
        (("anthropic-version", "2023-06-01"),),
    ),
    "openai-chat": Speech(
        lambda _: "/chat/completions",
        "/models",
        ("authorization", "Bearer "),
        ("ferrule.wire.openai_chat.reader", "ChatReader"),
    ),
    "openai-responses": Speech(
        lambda _: "/responses",
        "/models",
        ("authorization", "Bearer "),
        ("ferrule.wire.openai_responses.reader", "ResponsesReader"),
    ),
    "gemini": Speech(
        lambda model: generate_path(model, "streamGenerateContent?alt=sse"),
        "/models?pageSize=1000",
        ("x-goog-api-key", ""),
        ("ferrule.wire.gemini.reader", "GeminiReader"),
        forgets=True,
    ),
}


def reader_of(api: str) -> StreamReader:
    """A reader for one answer."""
    from importlib import import_module  # as for the wires: only who speaks to a model pays for it

    module, name = SPEECH[api].reader
    made = getattr(import_module(module), name)()
    assert isinstance(made, StreamReader)
    return made


def listed(body: bytes) -> list[str]:
    """The ids in an answer that lists models, whatever the API calls them."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    rows = value.get("data") or value.get("models") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    kept = (name.removeprefix("models/") for name in names if isinstance(name, str) and name.isprintable())
    return sorted(dict.fromkeys(kept))
