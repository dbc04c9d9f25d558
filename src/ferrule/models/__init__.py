"""Define what a model is to the loop: its request, its answer, its faults and its retries."""

import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from ferrule.core.errors import FerruleError
from ferrule.models.hosts import Host
from ferrule.wire import Delta, ModelRequest, Usage

Trouble = Literal[
    "no-key", "wrong-key", "no-model", "too-long", "limit", "overloaded", "server", "network", "cut", "bad", "none"
]
"""What went wrong with a model: no key, a key that is refused, a model that is not there, a conversation that is too
long for it, too many tokens or too little money, too many others, a fault of its own, a line that does not stand, a
stream that broke off, a body that it does not take, or no model at all."""


class ModelError(FerruleError):
    """A model could not be asked, or did not answer to its end. The message says what to do next."""

    def __init__(self, message: str, kind: Trouble, seconds: float | None = None, *, is_nonsense: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.seconds = seconds
        """How long the host wants to be left alone; None if it does not say."""
        self.is_nonsense = is_nonsense
        """Is what came back no answer of such a host, whatever it was asked?"""


class RetryNotice(msgspec.Struct, frozen=True):
    """It is asked again after so many seconds: all that came of the answer until here is void."""

    why: str
    seconds: float
    attempt: int
    """1 for the first repetition."""
    kind: Trouble = "server"
    """What went wrong."""


class Prices(NamedTuple):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float:
        """Dollars."""
        plain = usage.input - usage.cache_read - usage.cache_write
        return (
            max(0, plain) * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1e6


class Model(Protocol):
    """One model at one host. Whoever made it closes it."""

    name: str
    """`host:model`, as the user names it."""
    model: str
    """The model's own id: it says which dialect the model knows best."""
    wire: str
    """The wire that it speaks; thinking that came on it may go back on it."""
    window: int
    """How many tokens of conversation and answer it takes together."""
    most_output: int
    """How many tokens an answer may have."""
    prices: Prices | None
    """None where they are not known; then nothing is said about cost."""

    def ask(self, asked: ModelRequest) -> AsyncIterator[Delta | RetryNotice]:
        """The answer as it arrives; `Ended` is its last delta. `asked.model` is filled in by the model itself.

        Raises: ModelError.
        """
        ...

    async def close(self) -> None: ...


def has_vision(model: Model) -> bool:
    """Does it take pictures and PDF files? False only for one that says `vision = False`."""
    return bool(getattr(model, "vision", True))


LIMIT_CHARS = 500
LIMIT_BYTES = 64 * 1024

PROXY_ADVICE = "wants a name and a password, or refuses those it got: set HTTPS_PROXY to http://NAME:PASSWORD@HOST:PORT"

PASSING = frozenset((408, 409, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 530))
"""Statuses after which it is asked again; those from 520 on are what Cloudflare says of a host behind it."""

_TOO_LONG = (
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceed the context window",
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context size",
    "maximum context length",
    "maximum number of tokens allowed",
    "maximum prompt length",
    "context window exceeded",
    "reduce the length of the messages",
    "request_too_large",
    "string_above_max_length",
)
_NO_MONEY = (
    "insufficient_quota",
    "credit balance",
    "billing",
    "payment required",
    "perday",
    "spend limit",
    "out of credits",
)
_NO_MODEL = (
    "model_not_found",
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
    "is not found for api version",
    "unexpected model name format",
)
_NO_TOOLS = (
    "does not support tools",
    "support tool use",
    "requires --enable-auto-tool-choice",
    "requires --jinja",
)
"""What hosts say whose model, or whose server as it was started, cannot call tools."""
_NO_KEY = (
    "api_key_invalid",
    "api key not valid",
    "api key expired",
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
)
_ANSWER = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens")
_TOO_MUCH = ("too large", "at most", "less than or equal", "valid range", "maximum allowed number of output")
"""What hosts say of an answer that may be longer than they give."""
_PAGE = "it answered with a web page, which a proxy or a wrong address may be the reason for"
_UNTHINKABLE = ("signature` in `thinking", "thinking` block", "thought_signature", "encrypted_content")
"""What was thought before is not taken back: it came of another model, or the conversation is no longer the same."""

_STATUSES = {
    "overloaded_error": 529,
    "overloaded": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "UNAVAILABLE": 503,
    "RESOURCE_EXHAUSTED": 429,
    "DEADLINE_EXCEEDED": 504,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "MISSING_THOUGHT_SIGNATURE": 400,
    "partial-arguments": 400,
}
"""What an error in the middle of a stream is called, and the status that it would have had; 500 for all others."""


class Fault(Exception):  # noqa: N818 - it is caught and judged here, and never leaves
    """The host did not answer to the end."""

    def __init__(
        self,
        kind: Trouble,
        message: str,
        why: str,
        *,
        passing: bool,
        seconds: float | None = None,
        unthinkable: bool = False,
        is_nonsense: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: Trouble = kind
        self.message = message
        """For whoever asked, if it stays so."""
        self.why = why
        """In a few words, for a line that says that it is asked again."""
        self.passing = passing
        self.seconds = seconds
        """How long the host wants us to wait."""
        self.unthinkable = unthinkable
        self.is_nonsense = is_nonsense

    def error(self) -> ModelError:
        return ModelError(self.message, self.kind, self.seconds, is_nonsense=self.is_nonsense)


def clean_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Foreign words on one line, of a bounded length, without what steers a terminal, and without keys."""
    text = text[: LIMIT_CHARS * 8]
    for secret in secrets:
        text = text.replace(secret, "[key]")
    text = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    text = re.sub(r"\b(?:sk|pk|rk|gsk|xai|key|AIza)[-_]?[\w*-]{12,}", "[key]", text)
    return text if len(text) <= LIMIT_CHARS else text[: LIMIT_CHARS - 1] + "…"


def model_label(host: Host, model: str) -> str:
    """What a sentence is about: a model, or a host that is asked for its list of them."""
    return f"{host.name}:{model}" if model else host.name


def classify_failure(status: int, body: bytes, content_type: str, host: Host, model: str) -> Fault:
    """What a status and a body mean."""
    said, code, seconds = _parse_error_body(body, content_type)
    fault = _fault(status, said, code, host, model)
    fault.seconds = seconds
    return fault


def classify_stream_error(message: str, kind: str, host: Host, model: str) -> Fault:
    """What an error in the middle of a stream means."""
    status = int(kind) if kind.isdigit() and len(kind) == 3 else _STATUSES.get(kind, 500)
    return _fault(status, message, kind, host, model)


def _parse_error_body(body: bytes, content_type: str) -> tuple[str, str, float | None]:
    """What the body says, the words for programs in it, and how long to wait."""
    text = body.decode("utf-8", "replace")
    if text.lstrip()[:1] == "<" or "html" in content_type:
        return _PAGE, "", None
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text.strip(), "", None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return text.strip(), "", None
    error = value.get("error", value)
    if isinstance(error, str):
        return error, "", None
    if not isinstance(error, dict):
        return text.strip(), "", None
    message = next((error[key] for key in ("message", "detail", "msg") if isinstance(error.get(key), str)), "")
    codes = [str(error[key]) for key in ("code", "type", "status") if error.get(key) is not None]
    details = _list_or_empty(error.get("details"))
    codes += [text for one in details if isinstance(one, dict) for text in _inner(one)]
    return message or text.strip(), " ".join(codes), _delay(details)


def _inner(detail: dict[str, Any]) -> list[str]:
    ids = [one.get("quotaId") for one in _list_or_empty(detail.get("violations")) if isinstance(one, dict)]
    return [text for text in (detail.get("reason"), *ids) if isinstance(text, str)]


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _delay(details: list[Any]) -> float | None:
    for one in details:
        text = one.get("retryDelay") if isinstance(one, dict) else None
        if isinstance(text, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?s", text):
            return float(text[:-1])
    return None


def _fault(status: int, said: str, code: str, host: Host, model: str) -> Fault:
    words = f"{code} {said}".lower()
    kind, advice = _classify_trouble(status, words, host, model)
    text = clean_text(said, host.secrets)
    quoted = f" It said: {text}{'' if text[-1] in '.!?…' else '.'}" if text else ""
    passing = status in PASSING and kind in {"limit", "overloaded", "server", "network"}
    if kind == "limit" and any(one in words for one in _NO_MONEY):
        passing = False
    unthinkable = status == 400 and kind == "bad" and any(one in words for one in _UNTHINKABLE)
    message = f"{model_label(host, model)} {advice} (HTTP {status}).{quoted}"
    why = f"{_WHY.get(kind, 'it failed')} (HTTP {status})"
    is_nonsense = kind == "bad" and (status < 400 or status in {404, 405})
    return Fault(kind, message, why, passing=passing, unthinkable=unthinkable, is_nonsense=is_nonsense)


_WHY: dict[str, str] = {
    "limit": "too much was asked for in a short time",
    "overloaded": "the host is overloaded",
    "server": "the host failed",
}


def _has(words: str, parts: Iterable[str]) -> bool:
    return any(part in words for part in parts)


def _classify_trouble(status: int, words: str, host: Host, model: str) -> tuple[Trouble, str]:
    """The kind of trouble, and what to do, as the end of a sentence about the model."""
    if status in {400, 422} and _has(words, _ANSWER) and _has(words, _TOO_MUCH):
        known = f'most_output and window under [models.known."{model}"]'
        return "bad", f"does not give so long an answer: set models.max_tokens, or {known}, in the settings to less"
    if status == 413 or (status in {400, 422, 500} and _has(words, _TOO_LONG)) or _is_over_rate(status, words):
        return "too-long", "does not take so long a conversation: make it shorter with /compact, or begin a new one"
    if status == 401 or (status in {400, 403} and _has(words, _NO_KEY)):
        return "wrong-key", _key_hint(host, "refuses the key")
    if status == 402 or (status in {400, 403, 429} and _has(words, _NO_MONEY)):
        return "limit", f"has no more to give for this key: look at the plan and the billing of {host.name}"
    if status in {400, 404, 422, 500} and _has(words, _NO_TOOLS):
        return "bad", "cannot call tools as it is: use another model, or start its server so that it can"
    if (status < 500 and _has(words, _NO_MODEL)) or (status == 404 and _has(words, ("model", model.lower()))):
        return "no-model", f"is not there; `ferrule models list {host.name}` lists those that are"
    return _by_status(status, words, host)


def _is_over_rate(status: int, words: str) -> bool:
    """Is it more than the key may ever ask for at once? Waiting makes it no smaller."""
    return status == 429 and "request too large" in words


def _by_status(status: int, words: str, host: Host) -> tuple[Trouble, str]:
    if 300 <= status < 400:
        return "bad", f"leads elsewhere, which is not followed with a key; set {host.where} to the right address"
    if status == 407:
        return "network", f"is behind a proxy that {PROXY_ADVICE.replace('HTTPS_', 'HTTP_')}"
    if status == 403 and _PAGE in words:
        return "network", f"is kept from you on the way: look at the proxy, and at {host.where}"
    if status == 403:
        return "wrong-key", _key_hint(host, "may not be used with the key")
    if status in {404, 405}:
        is_bare = "/" not in host.url.partition("://")[2] and host.api.startswith("openai")
        version = "; most such addresses end in /v1" if is_bare else ""
        return "bad", f"is not at this address, {host.url}: look at {host.where}{version}"
    if status == 429:
        return "limit", "has been asked for too much in a short time; wait, or look at the limits of the key"
    if status in {503, 529} or "overloaded" in words:
        return "overloaded", "is overloaded; try again later"
    if status in PASSING or status >= 500:
        return "server", "failed; try again later"
    return "bad", "did not take what was sent" if status >= 400 else "did not answer with a stream"


def _key_hint(host: Host, verb: str) -> str:
    if not host.key_env:
        return f"{verb}; set models.hosts.{host.name}.key_env in the settings to the variable that has one"
    return f"{verb} of {host.key_env}; set that variable to a key that is valid for {host.name}"


class BrokenConnection(Exception):  # noqa: N818 - it is judged by whoever reads, and never leaves
    """The line does not stand any more, or what came on it is no HTTP."""


class Unreachable(BrokenConnection):
    """The line never stood."""

    def __init__(
        self,
        why: str,
        *,
        passing: bool = True,
        refused: bool = False,
        nameless: bool = False,
        has_advice: bool = False,
    ) -> None:
        super().__init__(why)
        self.passing = passing
        """May another try help?"""
        self.refused = refused
        """Is the machine there, and does nobody listen on it?"""
        self.nameless = nameless
        """Is there no machine of that name?"""
        self.has_advice = has_advice
        """Is it said already what to do?"""


class Silent(BrokenConnection):
    """Nothing came for too long."""
