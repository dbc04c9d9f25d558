"""Why a search did not work, in a sentence that says what to do about it."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ferrule.support.hosts import Target
from ferrule.support.web.errors import Code, WebError
from ferrule.support.web.search.api import INSTEAD, Api, Backend
from ferrule.support.web.search.result import plain

if TYPE_CHECKING:
    from ferrule.support.web.web import Got

_UNREACHED = ("no-such-host", "unreachable")
_QUOTA = (402, 429, 432, 433)
"""Too many, or more than is paid for; the last two are Tavily's."""
_NOTHING_THERE = 404
_LEAST_KEY_CHARS = 4
"""What is shorter stands in any sentence."""
_REASON_BYTES = 20_000
_REASON_DEPTH = 3


def failed(said: str, code: Code) -> WebError:
    """All of these begin in the same way."""
    return WebError(f"The web cannot be searched: {said}", code)


def without_key(error: WebError, key: str) -> WebError:
    """The same without the key: a back end may have echoed it, in another spelling too."""
    if len(key) < _LEAST_KEY_CHARS:
        return error
    from urllib.parse import quote, unquote  # for searches that fail

    said = error.message
    for form in (key, quote(key), quote(key, safe=""), repr(key)[1:-1]):
        said = re.sub(re.escape(form), "[key]", said, flags=re.IGNORECASE)
    if key.casefold() in unquote(said).casefold():
        return failed("the back end has answered with the key. Check web.search.url.", error.code)
    return error if said == error.message else WebError(said, error.code)


def unreached(error: WebError, host: Target) -> WebError:
    """No answer came at all."""
    said = f"{host.host} could not be reached. {error.message}" if error.code in _UNREACHED else error.message
    return failed(
        f"{said} Check the network, or set web.search.backend or web.search.url to a search that can be reached from"
        " here.",
        error.code,
    )


def refusal(got: "Got", api: Api, backend: Backend, host: Target) -> WebError | None:
    """What is wrong with an answer by its status and size; None where it may be a result."""
    if got.why_partial:
        return failed(f"the answer of {host.host} is not whole. {got.why_partial}", "bad-answer")
    if 200 <= got.status < 300:
        return None
    if got.status in {401, 403} and api.key_env:
        name = api.variable(backend)
        said = f"{api.title} refuses the key in {name} (status {got.status}). Put a valid one there, or {INSTEAD}."
        return failed(said, "wrong-key")
    if got.status == 403 and api.refused:
        return failed(f"{host.host} {api.refused}", "refused")
    if got.status in _QUOTA:
        return failed(
            f"{api.title} takes no more searches for now (status {got.status}).{_again(got.headers)}"
            " Wait, make fewer searches, or set web.search.backend to another one.",
            "quota",
        )
    said = f"{api.title} at {host.host} answers with status {got.status}"
    if got.status >= 500:
        return failed(f"{said}. Try again later, or set web.search.backend to another one.", "bad-answer")
    if got.status == _NOTHING_THERE:
        return failed(
            f"{said}: there is no search. Check web.search.url, which must lead to {api.title}.", "bad-address"
        )
    if got.status >= 400:
        said += _reason(got.body, backend.key)
        return failed(f"{said}. Try a shorter and plainer query; if that is no help, check web.search.url.", "refused")
    return failed(f"{said}, which is no result. Check web.search.url.", "bad-answer")


def odd(api: Api, host: Target, said: str) -> WebError:
    """An answer that says yes and is no result."""
    return failed(
        f"the answer of {host.host} {said}. Check that web.search.url leads to {api.title}, and that"
        " web.search.backend is right.",
        "bad-answer",
    )


def _again(headers: Mapping[str, str]) -> str:
    """When the back end wants to be asked again."""
    said = plain(next((value for name, value in headers.items() if name.lower() == "retry-after"), ""), 40)
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", said, re.ASCII):
        return f" It can be asked again in {said} second{'s' * (said != '1')}."
    return f" It can be asked again after {said}." if re.fullmatch(r"[A-Za-z0-9 ,:+-]+", said) else ""


def _reason(body: bytes, key: str) -> str:
    """What the back end says about its refusal; never the key."""
    if len(body) > _REASON_BYTES:
        return ""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    for _ in range(_REASON_DEPTH):
        if isinstance(said, dict):
            said = next((said[name] for name in ("detail", "error", "message", "msg") if name in said), None)
        elif isinstance(said, list):
            said = said[0] if said else None
    text = plain(said, 200).rstrip(".")
    return f": {text}" if text and (not key or key not in str(said)) else ""
