"""All back ends, and the one function that asks whichever the user has chosen."""

from typing import TYPE_CHECKING

from ferrule.support.web.errors import WebError
from ferrule.support.web.search import ddgs
from ferrule.support.web.search.api import DDGS, Api, Backend
from ferrule.support.web.search.asking import asked, key, place
from ferrule.support.web.search.brave import BRAVE
from ferrule.support.web.search.exa import EXA
from ferrule.support.web.search.result import Query, Result
from ferrule.support.web.search.searxng import SEARXNG
from ferrule.support.web.search.tavily import TAVILY

if TYPE_CHECKING:
    from ferrule.support.web.web import Web

APIS: dict[str, Api] = {api.name: api for api in (BRAVE, TAVILY, EXA, SEARXNG)}


def hosts(backend: Backend) -> tuple[str, ...]:
    """Who is asked. Raises `WebError` where the settings do not say it."""
    if backend.name == DDGS:
        return tuple(ddgs.ENGINES.values())
    return (place(APIS[backend.name], backend)[1].host,)


def complaint(backend: Backend) -> str:
    """Why a search cannot work as it is set up, as far as that shows without a network; empty where it may."""
    try:
        if backend.name not in APIS:
            return ddgs.complaint() if backend.name == DDGS else _unknown(backend.name)
        place(APIS[backend.name], backend)
        key(APIS[backend.name], backend)
    except WebError as error:
        return error.message
    return ""


def _unknown(name: str) -> str:
    return f"The web cannot be searched: there is no back end {name[:80]!r}; there are {', '.join([DDGS, *APIS])}."


async def search(web: "Web", backend: Backend, query: Query) -> tuple[Result, ...]:
    """The results of one query, the best first. Raises `WebError`."""
    if backend.name == DDGS:
        return await ddgs.searched(backend, query)
    return await asked(web, APIS[backend.name], backend, query)
