"""A SearXNG server."""

from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.support.web.search.api import Api, Asked, listed
from ferrule.support.web.search.result import Query, Row

_QUERY_CHARS = 400


def _ask(query: Query, key: str) -> Asked:  # noqa: ARG001 - it has none
    return Asked({"q": query.domains.worded(query.text, _QUERY_CHARS), "format": "json"})


def _rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), row.get("content"), row.get("publishedDate"))
        for row in listed(answer.get("results"))
    ]


SEARXNG = Api(
    name="searxng",
    title="SearXNG",
    ask=_ask,
    rows=_rows,
    path="/search",
    most=50,
    refused="does not give its results as JSON (status 403). Whoever runs it can switch that on: `json` belongs under"
    " `search: formats:` in its settings.yml. Else set web.search.url to another server, or web.search.backend to"
    " another back end.",
)
