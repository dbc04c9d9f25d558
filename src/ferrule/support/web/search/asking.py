"""Asking the API of a search: one way for all of them."""

import re
from typing import TYPE_CHECKING

import msgspec

from ferrule.support.hosts import Bad, Target, leads_inside, target
from ferrule.support.web.errors import WebError
from ferrule.support.web.search.api import INSTEAD, Api, Backend, Odd
from ferrule.support.web.search.failing import failed, odd, refusal, unreached, without_key
from ferrule.support.web.search.result import Query, Result, Row, tidied

if TYPE_CHECKING:
    from ferrule.support.web.web import Web

_FILTERED = 2
"""How many times as many results are asked for where some may have to be left out."""


async def asked(web: "Web", api: Api, backend: Backend, query: Query) -> tuple[Result, ...]:
    """The results of one query. Raises `WebError`, without the key in it whoever has said what."""
    try:
        return await _asked(web, api, backend, query)
    except WebError as error:
        raise without_key(error, backend.key.strip()) from None


async def _asked(web: "Web", api: Api, backend: Backend, query: Query) -> tuple[Result, ...]:
    url, host = place(api, backend)
    wanted = query.results * (_FILTERED if query.domains else 1)
    sent = api.ask(query._replace(results=min(wanted, api.most)), key(api, backend))
    if sent.parameters:
        from urllib.parse import urlencode  # for the back ends that are asked by their address

        url = f"{url}?{urlencode(sent.parameters)}"
    headers = {"Accept": "application/json", **sent.headers}
    data = None
    if sent.body is not None:
        headers["Content-Type"] = "application/json"
        data = msgspec.json.encode(sent.body)
    try:
        got = await web.ask("GET" if data is None else "POST", url, headers=headers, data=data, seconds=backend.seconds)
    except WebError as error:
        raise unreached(error, host) from error
    refused = refusal(got, api, backend, host)
    if refused is not None:
        raise refused
    return tidied(_rows(got.body, api, host), query)


def place(api: Api, backend: Backend) -> tuple[str, Target]:
    """The address that is asked, and its host. Raises `WebError` for an address that cannot be one."""
    written = (backend.url or api.address).strip().rstrip("/")
    if not written:
        raise failed(
            f"web.search.backend is {api.name!r}, and it is not said where its server is. Set web.search.url to its"
            f" address, as https://search.example.org, or {INSTEAD}.",
            "bad-address",
        )
    found = re.fullmatch(r"(?i:(https?)://)([^/?#]+)((?:/[^?#\s\\\x00-\x20\x7f-\x9f]*)?)", written)
    if found is None:
        raise failed("web.search.url must be of the form https://search.example.org.", "bad-address")
    if "@" in found[2]:
        # It is not repeated: what stands before the sign may be a password, and a model reads this.
        raise failed("web.search.url must have no user's name and no password in it.", "bad-address")
    scheme = found[1].lower()
    try:
        host = target(found[2], port=443 if scheme == "https" else 80)
    except Bad as error:
        raise failed(f"the setting web.search.url does not fit. {error}", "bad-address") from error
    if scheme == "http" and api.key_env and not _is_near(host):
        raise failed(
            f"web.search.url begins with http://, so that the key for {api.title} could be read on the way."
            " Use https://.",
            "bad-address",
        )
    whole = f"{scheme}://{found[2]}{found[3]}"
    return (whole if found[3].endswith(api.path) else whole + api.path), host


def _is_near(host: Target) -> bool:
    """Does what is sent there stay on this machine or in its own network?"""
    if host.address is None:
        return host.host.split(".")[-1] == "localhost"
    return bool(leads_inside(host.address)) and not leads_inside(host.address, private=True)


def key(api: Api, backend: Backend) -> str:
    """The key as it is sent; nothing where none is needed. Raises `WebError`."""
    if not api.key_env:
        return ""
    name, found = api.variable(backend), backend.key.strip()
    if not found:
        raise failed(
            f"{api.title} needs a key, and the environment variable {name} has none. Put one there, name another"
            f" variable with web.search.key_env, or {INSTEAD}.",
            "no-key",
        )
    if not found.isascii() or not found.isprintable():
        raise failed(
            f"what is in {name} has characters that no key has. Set it to a key for {api.title}, or {INSTEAD}.",
            "wrong-key",
        )
    return found


def _rows(body: bytes, api: Api, host: Target) -> list[Row]:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise odd(api, host, "is not JSON") from error
    try:
        return list(api.rows(answer if isinstance(answer, dict) else {}))
    except Odd as error:
        raise odd(api, host, "is of another shape than its API has") from error
