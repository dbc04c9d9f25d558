"""Tavily."""

from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.support.web.search.api import Api, Asked, listed
from ferrule.support.web.search.result import Query, Row


def _ask(query: Query, key: str) -> Asked:
    allowed, blocked = query.domains.names()
    body = {
        "query": query.text,
        "max_results": query.results,
        "search_depth": "basic",
        "include_domains": allowed,
        "exclude_domains": blocked,
    }
    return Asked(headers={"Authorization": f"Bearer {key}"}, body=body)


def _rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), row.get("content"), row.get("published_date"))
        for row in listed(answer.get("results"))
    ]


TAVILY = Api(
    name="tavily",
    title="Tavily",
    ask=_ask,
    rows=_rows,
    address="https://api.tavily.com",
    path="/search",
    key_env="TAVILY_API_KEY",
)
