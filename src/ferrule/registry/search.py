"""Searching the deferred tools: by a part of their words, or by how well the words fit."""

import heapq
import math
import re
from collections.abc import Mapping, Sequence

from ferrule.core.catalog import Catalog, How
from ferrule.core.elsewhere import ToolFound
from ferrule.core.face import Face, copied
from ferrule.registry.ground import Deferred
from ferrule.registry.registry import Registry

RANKED = 8
"""How many are found where nobody says how many."""
_QUERY_CHARS = 1_000
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_NAME_COUNTS = 3
"""A word of a tool's name counts as often as this."""
_SATURATION = 1.2
_BY_LENGTH = 0.75


class Search(Catalog):
    """What `ctx.need(Catalog)` gives."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._index: Index | None = None

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        registry = self._registry
        if registry.before_search is not None:
            await registry.before_search()
        if self._index is None or self._index.made_of is not registry.deferred:
            self._index = Index(registry.deferred)
        query = query[:_QUERY_CHARS]
        found = self._index.holding(query) if how == "substring" else self._index.ranked(query)
        permits = registry.permits
        if permits is not None:
            found = [one for one in found if permits(one.face)]
        chosen = found[: RANKED if limit is None and how == "ranked" else limit]
        registry.load(one.face.tool for one in chosen)
        return [ToolFound(one.face.name, one.face.words, copied(one.face.schema)) for one in chosen]


class Index:
    """The words of the tools; made once for each change of them."""

    def __init__(self, tools: Mapping[str, Deferred]) -> None:
        self.made_of = tools
        self.tools = tuple(tools.values())
        self._texts: list[str] | None = None
        self._scores: dict[str, list[tuple[int, float]]] | None = None

    def holding(self, query: str) -> list[Deferred]:
        """The tools whose name or description holds the query, whatever its case, in their order."""
        if self._texts is None:
            # The whole name too: whoever looks for a server finds its tools.
            self._texts = [f"{one.face.name}\n{one.face.tool}\n{one.face.words}".lower() for one in self.tools]
        wanted = query.lower()
        return [one for one, text in zip(self.tools, self._texts, strict=True) if wanted in text]

    def ranked(self, query: str) -> list[Deferred]:
        """The tools that share words with the query, the best first and ties by name (BM25)."""
        if self._scores is None:
            self._scores = _scores([_counted(one.face) for one in self.tools])
        sums: dict[int, float] = {}
        for word in dict.fromkeys(_words(query)):
            for at, score in self._scores.get(word, ()):
                sums[at] = sums.get(at, 0.0) + score
        if not sums:
            return self.holding(query) if query.strip() else []
        tools = self.tools
        return [tools[at] for at in heapq.nsmallest(len(sums), sums, key=lambda at: (-sums[at], tools[at].face.name))]


def _scores(documents: Sequence[dict[str, int]]) -> dict[str, list[tuple[int, float]]]:
    """Each word → the tools that have it, with what the word counts for them."""
    having: dict[str, list[int]] = {}
    for at, words in enumerate(documents):
        for word in words:
            having.setdefault(word, []).append(at)
    lengths = [sum(words.values()) for words in documents]
    usual = sum(lengths) / len(lengths) if any(lengths) else 1.0
    damped = [_SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * length / usual) for length in lengths]
    out = {}
    for word, places in having.items():
        rarity = math.log(1 + (len(documents) - len(places) + 0.5) / (len(places) + 0.5))
        out[word] = [
            (at, rarity * (times := documents[at][word]) * (_SATURATION + 1) / (times + damped[at])) for at in places
        ]
    return out


def _counted(face: Face) -> dict[str, int]:
    """The words of a tool: those of its name, of its description and of its parameters, and how often each is there."""
    out: dict[str, int] = {}
    properties = face.schema.get("properties")
    named = " ".join(properties) if isinstance(properties, dict) else ""
    for text, counts in ((face.tool, _NAME_COUNTS), (face.words, 1), (named, 1)):
        for word in _words(text):
            out[word] = out.get(word, 0) + counts
    return out


def _words(text: str) -> list[str]:
    """The words of a text, also of `createIssue` and `create_issue`; an s at the end makes no difference."""
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
