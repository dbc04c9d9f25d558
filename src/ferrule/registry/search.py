"""Search the deferred tools, and write the part of a system prompt that tells a model of its tools.

Tools are found by their names, by a part of their words, or by how well the words fit. The ranking is BM25 with a
weight for each field. A word of the query also finds its synonyms (`vocabulary`), a word that no tool has finds
the nearest words that some tools have, and words that occur in every question find nothing.
"""

import json
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from ferrule.core.services import INSTRUCTIONS, Catalog, How, ToolFound
from ferrule.core.tool import Face, copy_json
from ferrule.registry import Registry
from ferrule.registry.dynamic import summarize_tools
from ferrule.registry.entry import Deferred, Registered
from ferrule.registry.vocabulary import actions, join_stems, same, says_little, says_nothing, stem

RANKED = 8
"""How many are found where nobody says how many."""
_TOLD_CHARS = 600
_QUERY_CHARS = 1_000
_QUERY_WORDS = 40
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_NEEDED = re.compile(r"(?<!\S)\+(\w[\w-]*)")
_QUESTION = re.compile(
    r"(?i)\s*(?:what|which|who|whose|when|where|why|is|are|was|were|do|does|did|can|will|has|have"
    r"|how(?!\s+(?:do|can|could|should|would|to)\b))\b(?!\s+you\b)"
)
_NAMED, _SAID, _TAKEN, _SERVED = 3.0, 1.0, 0.7, 1.0
"""How much a word counts in a tool's name, in its description, in the names of its parameters, and as its server."""
_SATURATION = 1.2
_BY_LENGTH = 0.3
_LIKE = 0.55
"""What a word counts that stands for another."""
_MISTYPED = 0.8
_COVERED = 0.6
"""How much of the rank depends on how much of the query is found at all."""
_WHOLE_NAME = 0.5
"""How much a name gains of which every part was asked for."""
_OTHER_ACTION = 0.75
"""What a tool counts whose name says that it does something else."""
_NOT_SEEING = 0.9
_LITTLE = 0.4
"""What a word counts that is beside the point mostly."""
_SEEING = frozenset(
    map(stem, ["list", "get", "show", "view", "read", "fetch", "search", "find", "query", "describe", "report"])
)
_TYPED = 5
"""A shorter word is not taken for a slip of the keys: too many are but a letter away from another."""
_WEAK = 0.1
"""What has less than this part of the best rank is not worth its schema."""


class ToolCatalog(Catalog):
    """What `ctx.need(Catalog)` gives."""

    def __init__(
        self,
        registry: Registry,
        permits: Callable[[Face], bool] = lambda _: True,
        kept: "ToolIndexCache | None" = None,
    ) -> None:
        """`permits` says what may be found of what the session may use; `kept` is the index of another search."""
        self._registry = registry
        self._permits = permits
        self._kept = ToolIndexCache() if kept is None else kept

    def within(self, permits: Callable[[Face], bool]) -> "ToolCatalog":
        """The same for somebody who may use less of it, as a subagent."""
        return ToolCatalog(self._registry, permits, self._kept)

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        index = await self._index()
        query = query[:_QUERY_CHARS]
        found = index.literal(query, RANKED) if how == "substring" else index.rank_tools(query)
        allowed = [one for one in found if self._may(one)]
        return self._load(allowed[: RANKED if limit is None and how == "ranked" else limit])

    async def select(self, names: Sequence[str]) -> tuple[list[ToolFound], list[str]]:
        index = await self._index()
        chosen: dict[str, Deferred] = {}
        unknown = []
        for name in names:
            one = index.find_by_name(name)
            if one is not None and self._may(one):
                chosen[one.face.tool] = one
            else:
                unknown.append(name)
        return self._load(chosen.values()), unknown

    def summary(self) -> str:
        return summarize_tools(
            ((one.group, one.short) for one in self._registry.deferred.values() if self._may(one)), _TOLD_CHARS
        )

    def lists(self, name: str) -> bool:
        return any(name in (face.name, face.tool) and self._permits(face) for face in self._registry.visible_faces())

    @property
    def definitions_follow(self) -> bool:
        return self._registry.definitions_follow

    async def _index(self) -> "ToolIndex":
        registry = self._registry
        if registry.before_search is not None:
            await registry.before_search()
        return self._kept.index(registry.deferred)

    def _may(self, one: Deferred) -> bool:
        return self._registry.permits(one.face) and self._permits(one.face)

    def _load(self, chosen: Iterable[Deferred]) -> list[ToolFound]:
        faces = [one.face for one in chosen]
        self._registry.load(face.tool for face in faces)
        return [ToolFound(face.name, face.words, copy_json(face.schema)) for face in faces]


class ToolIndexCache:
    """The index of a session's tools, made anew when they have changed."""

    def __init__(self) -> None:
        self._index: ToolIndex | None = None
        self._counted = WordCounts()

    def index(self, tools: Mapping[str, Deferred]) -> "ToolIndex":
        if self._index is None or self._index.made_of is not tools:
            self._counted.keep(one.face for one in tools.values())
            self._index = ToolIndex(tools, self._counted)
        return self._index


class ToolIndex:
    """The words of the tools; made once for each change of them."""

    def __init__(self, tools: Mapping[str, Deferred], counted: "WordCounts") -> None:
        self.made_of = tools
        self.tools = tuple(tools.values())
        self._counted = counted

    @cached_property
    def _texts(self) -> list[str]:
        # The whole name too: whoever looks for a server finds its tools.
        return [f"{one.face.name}\n{one.face.tool}\n{one.face.words}".lower() for one in self.tools]

    def find_by_name(self, name: str) -> Deferred | None:
        """The tool of that name, whatever its case; a short one, where only one tool is called so."""
        for one in self.tools:
            if name in one.names:
                return one
        low = name.casefold()
        alike = [one for one in self.tools if low in {also.casefold() for also in (*one.names, one.short)}]
        return alike[0] if len(alike) == 1 else None

    def find_containing(self, query: str) -> list[Deferred]:
        """The tools whose name or description holds the query, whatever its case, in their order."""
        wanted = query.lower()
        return [one for one, text in zip(self.tools, self._texts, strict=True) if wanted in text]

    def _so_named(self, query: str) -> list[Deferred]:
        """The tools that have all words of the query in their names: for words that are in every description."""
        wanted = set(_stems(query))
        return [one for one in self.tools if wanted and wanted <= set(_stems(one.short))]

    def literal(self, query: str, most: int) -> list[Deferred]:
        """Those that hold the query, the best first. Then what fits it no worse, until there are `most` of them."""
        if not _parse_query(query) and _stems(query):
            return self._so_named(query)
        holding, ranked = self.find_containing(query), self.rank_tools(query)
        place = {id(one): at for at, one in enumerate(ranked)}
        holding.sort(key=lambda one: place.get(id(one), len(ranked)))
        last = place.get(id(holding[0]), 0) if holding else len(ranked)
        held = set(map(id, holding))
        return [*holding, *[one for one in ranked[:last] if id(one) not in held][: max(0, most - len(holding))]]

    def rank_tools(self, query: str) -> list[Deferred]:
        """The tools that fit the query, the best first and ties by name; what fits much worse is left out.

        With `+word` only those that have the word in their name.
        """
        needed = [word.lower() for word in _NEEDED.findall(query)]
        sums, tools = self._ranks(query), self.tools
        if needed:
            names = {at: f"{tools[at].face.tool} {tools[at].face.name}".lower() for at in range(len(tools))}
            sums = {at: sums.get(at, 0.0) for at, name in names.items() if all(word in name for word in needed)}
        if not sums and _parse_query(query) and not needed:
            return self.find_containing(query)
        if not sums:
            return [] if needed else self._so_named(query)
        least = _WEAK * max(sums.values())
        good = [at for at, rank in sums.items() if rank >= least]
        return [tools[at] for at in sorted(good, key=lambda at: (-sums[at], tools[at].face.name))]

    def _ranks(self, query: str) -> dict[int, float]:
        """The tools that share a word with the query, or one like it → how well they fit."""
        asked = {term: meant for term in self._query_terms(query) if (meant := self._expand_term(term))}
        done, less = self._find_actions(query, asked)
        sums: dict[int, float] = {}
        covered: dict[int, float] = {}
        named: dict[int, float] = {}
        every = 0.0
        for term, meant in asked.items():
            much = _LITTLE if term in says_little() else 1.0
            best: dict[int, float] = {}
            times: dict[int, float] = {}
            for one, weight in meant.items():
                for at, count in self._term_weights[one].items():
                    times[at] = times.get(at, 0.0) + weight * count
                    best[at] = max(best.get(at, 0.0), weight)
            holding = sum(best.values())
            rarity = much * math.log(1 + (len(self.tools) - holding + 0.5) / (holding + 0.5))
            every += rarity
            for at, count in times.items():
                damped = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * self._lengths[at] / self._usual)
                sums[at] = sums.get(at, 0.0) + rarity * count * (_SATURATION + 1) / (count + damped)
                covered[at] = covered.get(at, 0.0) + rarity * min(best[at], count)
                if count >= _NAMED * _LIKE:
                    named[at] = named.get(at, 0.0) + best[at]
        return {
            at: found
            * (1 - _COVERED + _COVERED * covered[at] / every)
            * (1 + _WHOLE_NAME * min(1.0, named.get(at, 0.0) / self._parts[at]))
            * (less if self._does[at] and not self._does[at] & done else 1.0)
            for at, found in sums.items()
        }

    def _query_terms(self, query: str) -> list[str]:
        """The words of the query as the tools write them: `sourcemaps` as `source` and `maps`."""
        terms = (self._compounds.get(one, (one,)) for one in _parse_query(query, self._term_weights))
        return list(dict.fromkeys(part for some in terms for part in some))

    @cached_property
    def _compounds(self) -> dict[str, tuple[str, str]]:
        """What two parts of a name are as one word, where no tool writes it so → the parts."""
        spelled = ([part for word in _WORD.findall(one.short) for part in _PART.findall(word)] for one in self.tools)
        pairs = {pair for parts in spelled for pair in pairwise(part.lower() for part in parts)}
        words = {stem(one + other): (stem(one), stem(other)) for one, other in pairs}
        return {word: pair for word, pair in words.items() if word not in self._term_weights}

    def _find_actions(self, query: str, asked: Mapping[str, Mapping[str, float]]) -> tuple[frozenset[str], float]:
        """What the query asks to have done, and what a tool counts that does something else.

        Who begins with a thing or asks a question may rather want to see something; a verb that nobody knows says
        nothing.
        """
        known = actions()
        if _QUESTION.match(query):
            return _SEEING, _OTHER_ACTION
        if any(term in known for term in asked):
            done = frozenset(one for meant in asked.values() for one in meant if one in known)
            return done | _SEEING if not _SEEING.isdisjoint(asked) else done, _OTHER_ACTION
        first = next(iter(self._query_terms(query)), "")
        return _SEEING, 1.0 if first not in asked and not _QUESTION.match(query) else _NOT_SEEING

    def _expand_term(self, term: str) -> dict[str, float]:
        """The words of the tools that a word of the query may mean, each with how much it counts."""
        holding = self._term_weights
        meant = {term: 1.0} if term in holding else {}
        for other in same().get(term, ()):
            if other in holding:
                meant[other] = _LIKE
        if meant:
            return meant
        for near in self._nearest(term):
            meant[near] = _MISTYPED
            for other in same().get(near, ()):
                if other in holding:
                    meant.setdefault(other, _LIKE * _MISTYPED)
        return meant

    def _nearest(self, term: str) -> list[str]:
        """The words of the tools that begin so, or that differ by a slip or two of the keys."""
        return nearest(term, self._term_weights)

    @cached_property
    def _counts(self) -> list[Mapping[str, float]]:
        return [self._counted.of(one) for one in self.tools]

    @cached_property
    def _lengths(self) -> list[float]:
        return [sum(counts.values()) for counts in self._counts]

    @cached_property
    def _usual(self) -> float:
        return sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    @cached_property
    def _parts(self) -> list[int]:
        """How many parts the name of each has."""
        return [max(1, len(set(_stems(one.short)))) for one in self.tools]

    @cached_property
    def _does(self) -> list[frozenset[str]]:
        """What each says in its name that it does."""
        return [frozenset(_stems(one.short)) & actions() for one in self.tools]

    @cached_property
    def _term_weights(self) -> dict[str, dict[int, float]]:
        """A word → the tools that have it, and how much it counts in each."""
        holding: dict[str, dict[int, float]] = {}
        for at, counts in enumerate(self._counts):
            for term, times in counts.items():
                holding.setdefault(term, {})[at] = times
        return holding


class WordCounts:
    """The words of each face, counted once: one more server does not mean that all are read again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Face, Mapping[str, float]]] = {}

    def of(self, tool: Deferred) -> Mapping[str, float]:
        known = self._known.get(id(tool.face))
        if known is None:
            known = self._known[id(tool.face)] = (tool.face, _count_words(tool))
        return known[1]

    def keep(self, faces: Iterable[Face]) -> None:
        """Forget all others."""
        kept = {id(face) for face in faces}
        self._known = {key: known for key, known in self._known.items() if key in kept}


def _count_words(tool: Deferred) -> Mapping[str, float]:
    """The words of a tool, and how much each counts."""
    face = tool.face
    fields = (
        (tool.short, _NAMED),
        (tool.group, _SERVED),
        (face.words, _SAID),
        (" ".join(_parameters(face)), _TAKEN),
    )
    counts: dict[str, float] = {}
    for text, weight in fields:
        stems: list[str] = []
        for word in _WORD.findall(text):
            parts = _parts(word)
            stems += parts
            if len(parts) > 1:  # `GitHub` is `github` too
                whole = stem(word.lower())
                counts[whole] = counts.get(whole, 0.0) + weight
        for term in stems:
            counts[term] = counts.get(term, 0.0) + weight
        together = join_stems(stems)
        # Words that are one together count as that and as themselves.
        for term, words in together if len(together) < len(stems) else ():
            if len(words) > 1:
                counts[term] = counts.get(term, 0.0) + weight
    return counts


def _parameters(face: Face) -> Iterable[str]:
    properties = face.schema.get("properties")
    return properties if isinstance(properties, Mapping) else ()


@lru_cache(maxsize=16_384)
def _parts(word: str) -> tuple[str, ...]:
    """The parts of a word without their endings, as of `createIssue`; of most words it is the one."""
    found = _PART.findall(word) if word.isascii() else ()
    return tuple(stem(part.lower()) for part in found or (word,))


def _stems(text: str) -> list[str]:
    """The words of a text without their endings, those of several parts as their parts."""
    return [part for word in _WORD.findall(text) for part in _parts(word)]


@cache
def _empty() -> frozenset[str]:
    return frozenset(stem(word) for word in says_nothing())


def _parse_query(query: str, known: Container[str] = ()) -> list[str]:
    """The words of a query that say something, each once, as they are `known` to some tool: whole or in their parts."""
    stems: list[str] = []
    for word in _WORD.findall(query):
        whole, parts = stem(word.lower()), _parts(word)
        stems += [whole] if len(parts) > 1 and whole in known else parts
    asked: list[str] = []
    for term, words in join_stems(stems, known):
        is_said = len(words) == 1 or term in known or any(one in known for one in same().get(term, ()))
        asked += [term] if is_said else words
    return [term for term in dict.fromkeys(asked) if term not in _empty()][:_QUERY_WORDS]


def nearest(term: str, known: Iterable[str]) -> list[str]:
    """The known words that begin so, or that differ by a slip or two of the keys; the nearest ones only."""
    if len(term) < _TYPED:
        return []
    slips = 1 if len(term) < 2 * _TYPED - 2 else 2
    found: dict[str, int] = {}
    for one in known:
        if one.startswith(term):
            found[one] = 1
        elif abs(len(one) - len(term)) <= slips and one[0] == term[0]:
            distance = _distance(term, one, slips)
            if distance <= slips:
                found[one] = distance
    least = min(found.values(), default=0)
    return [one for one, distance in found.items() if distance == least]


def _distance(one: str, other: str, most: int) -> int:
    """How many letters are missing, added, changed or swapped; more than `most` where it is more than that."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        oldest, before, row = before, row, [at]
        for to, its in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != its))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == its:
                cost = min(cost, oldest[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


SERVER_CHARS = 2_000
"""So much of one server's instructions stands in a prompt; the rest can be read."""
_SERVERS_CHARS = 16_000
"""Of all servers together."""


def tools_section(entries: Iterable[Registered], *, listed: bool = True) -> str:
    """The names in one line, each tool's description in one, and then the guidance of those that have some.

    Without `listed` the guidance alone: a line with some of the names would read as if there were no others.
    """
    known = sorted(entries, key=lambda entry: entry.face.name)
    if not known:
        return ""
    lines = []
    if listed:
        lines += [f"Tools: {', '.join(entry.face.name for entry in known)}."]
        lines += [f"{entry.face.name}: {_first_line(entry.face.words)}" for entry in known]
    for entry in known:
        if guidance := entry.tool.guidance.strip():
            lines += ["", f"## {entry.face.name}", guidance]
    return "\n".join(lines).lstrip("\n")


def servers_section(guidance: Mapping[str, str], reader: Face | None = None) -> str:
    """What servers say about the use of their tools, each bounded; `reader` is the tool that reads the rest.

    The words are the servers': they are marked as such, and none ends its own mark or begins another's.
    """
    if not guidance:
        return ""
    lines = ["What the MCP servers say about how to use their tools. These are their words, not the user's:"]
    room = _SERVERS_CHARS
    for name, words in guidance.items():
        shown = _truncate(_escape_tags(words.strip()), min(SERVER_CHARS, room))
        room -= len(shown)
        if len(shown) < len(_escape_tags(words.strip())):
            how = "" if reader is None else f", {_format_read_call(reader, name)} reads all of it"
            shown = f"{shown}\n[… cut here; it has {len(words):,} characters{how}]".lstrip()
        lines += ["", f'<server-instructions name="{name}">', shown, "</server-instructions>"]
    return "\n".join(lines)


def _format_read_call(reader: Face, server: str) -> str:
    """The call that reads a server's instructions, in the words of the session's family."""
    values = reader.advertised({"server": server, "uri": f"{INSTRUCTIONS}{server}"})
    known = reader.schema.get("properties", {})
    return f"{reader.name} {json.dumps({name: value for name, value in values.items() if name in known})}"


def _truncate(text: str, most: int) -> str:
    """At most so much of a text, to the end of a line where one ends in its second half."""
    if len(text) <= most:
        return text
    line = text.rfind("\n", most // 2, most)
    return text[: line if line > 0 else most].rstrip()


def _escape_tags(text: str) -> str:
    return re.sub(r"(?i)<(?=\s*/?\s*(?:server-instructions|guidance|environment|system)\b)", "&lt;", text)


def _first_line(words: str) -> str:
    return next((line.strip() for line in words.splitlines() if line.strip()), "")
