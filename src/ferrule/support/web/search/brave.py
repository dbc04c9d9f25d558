"""Brave Search."""

from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.support.web.search.api import Api, Asked, Odd, listed
from ferrule.support.web.search.result import Query, Row

_QUERY_CHARS = 400


def _ask(query: Query, key: str) -> Asked:
    words = query.domains.worded(query.text, _QUERY_CHARS)
    parameters: dict[str, str | int] = {
        "q": words,
        "count": query.results,
        "result_filter": "web",
        "text_decorations": "false",
    }
    return Asked(parameters, {"X-Subscription-Token": key})


def _rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    web = answer.get("web")
    if web is None and answer.get("type") == "search":
        return []  # without results the part is left out
    if not isinstance(web, dict):
        raise Odd
    return [
        (row.get("title"), row.get("url"), row.get("description"), row.get("page_age") or row.get("age"))
        for row in listed(web.get("results"))
    ]


BRAVE = Api(
    name="brave",
    title="Brave Search",
    ask=_ask,
    rows=_rows,
    address="https://api.search.brave.com",
    path="/res/v1/web/search",
    key_env="BRAVE_API_KEY",
)
