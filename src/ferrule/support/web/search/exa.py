"""Exa."""

from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.support.web.search.api import Api, Asked, listed
from ferrule.support.web.search.result import Query, Row

_SNIPPET_CHARS = 500


def _ask(query: Query, key: str) -> Asked:
    allowed, blocked = query.domains.names()
    body: dict[str, Any] = {
        "query": query.text,
        "numResults": query.results,
        "contents": {"highlights": {"maxCharacters": _SNIPPET_CHARS}},
    }
    # It takes a list that is empty for one that lets nothing through.
    body |= {"includeDomains": allowed} if allowed else {}
    body |= {"excludeDomains": blocked} if blocked else {}
    return Asked(headers={"x-api-key": key}, body=body)


def _rows(answer: Mapping[str, Any]) -> Iterable[Row]:
    return [
        (row.get("title"), row.get("url"), _snippet(row), row.get("publishedDate"))
        for row in listed(answer.get("results"))
    ]


def _snippet(row: Mapping[str, Any]) -> object:
    highlights = row.get("highlights")
    if isinstance(highlights, list) and highlights:
        return " … ".join(part for part in highlights if isinstance(part, str))
    return row.get("summary") or row.get("text")


EXA = Api(
    name="exa",
    title="Exa",
    ask=_ask,
    rows=_rows,
    address="https://api.exa.ai",
    path="/search",
    key_env="EXA_API_KEY",
    most=50,
)
