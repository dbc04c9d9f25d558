"""Searching the deferred tools: by a part of their words, or by how well the words fit."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

from ferrule.core.catalog import Catalog, How
from ferrule.core.elsewhere import ToolFound
from ferrule.core.face import Face, copied
from ferrule.registry.ground import Deferred
from ferrule.registry.registry import Registry

RANKED = 8
"""How many are found where nobody says how many."""
_QUERY_CHARS = 1_000
_PLAIN = re.compile(r"[^\W_]+")
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
        self._counted = Counted()

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        registry = self._registry
        if registry.before_search is not None:
            await registry.before_search()
        if self._index is None or self._index.made_of is not registry.deferred:
            self._counted.keep(one.face for one in registry.deferred.values())
            self._index = Index(registry.deferred, self._counted)
        query = query[:_QUERY_CHARS]
        found = self._index.holding(query) if how == "substring" else self._index.ranked(query)
        found = [one for one in found if registry.permits(one.face)]
        chosen = found[: RANKED if limit is None and how == "ranked" else limit]
        registry.load(one.face.tool for one in chosen)
        return [ToolFound(one.face.name, one.face.words, copied(one.face.schema)) for one in chosen]


class Index:
    """The words of the tools; made once for each change of them."""

    def __init__(self, tools: Mapping[str, Deferred], counted: "Counted") -> None:
        self.made_of = tools
        self.tools = tuple(tools.values())
        self._counted = counted
        # The whole name too: whoever looks for a server finds its tools.
        self._texts = [f"{one.face.name}\n{one.face.tool}\n{one.face.words}".lower() for one in self.tools]

    def holding(self, query: str) -> list[Deferred]:
        """The tools whose name or description holds the query, whatever its case, in their order."""
        wanted = query.lower()
        return [one for one, text in zip(self.tools, self._texts, strict=True) if wanted in text]

    def ranked(self, query: str) -> list[Deferred]:
        """The tools that share words with the query, the best first and ties by name (BM25)."""
        texts, tools = self._whole, self.tools
        usual = sum(map(len, texts)) / len(texts) if texts else 1.0
        sums: dict[int, float] = {}
        for word in dict.fromkeys(_words(query)):
            # Only what holds the letters at all is taken apart into words.
            likely = [(at, self._counted.of(tools[at].face).get(word, 0)) for at, t in enumerate(texts) if word in t]
            found = [(at, times) for at, times in likely if times]
            rarity = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for at, times in found:
                damped = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * len(texts[at]) / usual)
                sums[at] = sums.get(at, 0.0) + rarity * times * (_SATURATION + 1) / (times + damped)
        if not sums:
            return self.holding(query) if query.strip() else []
        return [tools[at] for at in sorted(sums, key=lambda at: (-sums[at], tools[at].face.name))]

    @cached_property
    def _whole(self) -> list[str]:
        """What each tool says of itself, its parameters too; how long that is stands for how many words it has."""
        named = (" ".join(_parameters(one.face)).lower() for one in self.tools)
        return [f"{text}\n{names}" for text, names in zip(self._texts, named, strict=True)]


class Counted:
    """The words of each face, counted once: one more server does not mean that all are read again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Face, dict[str, int]]] = {}

    def of(self, face: Face) -> dict[str, int]:
        known = self._known.get(id(face))
        if known is None:
            known = self._known[id(face)] = (face, _counted(face))
        return known[1]

    def keep(self, faces: Iterable[Face]) -> None:
        """Forget all others."""
        kept = {id(face) for face in faces}
        self._known = {key: known for key, known in self._known.items() if key in kept}


def _counted(face: Face) -> dict[str, int]:
    """The words of a tool: those of its name, of its description and of its parameters, and how often each is there."""
    named = _words(" ".join(_parameters(face)))
    return Counter(_words(face.tool) * _NAME_COUNTS + named + list(map(_stem, _PLAIN.findall(face.words.lower()))))


def _parameters(face: Face) -> Iterable[str]:
    properties = face.schema.get("properties")
    return properties if isinstance(properties, Mapping) else ()


def _words(text: str) -> list[str]:
    """The words of a text, also of `createIssue` and `create_issue`."""
    return [_stem(word) for word in _WORD.findall(text)]


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    """A word, whatever its case; an s at its end makes no difference."""
    low = word.lower()
    return low[:-1] if len(low) > 3 and low.endswith("s") and not low.endswith("ss") else low
