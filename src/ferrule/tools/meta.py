"""Ask the user to choose, search for deferred tools, and read the resources of MCP servers."""

from collections.abc import Iterable, Sequence
from typing import Any

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import (
    INSTRUCTIONS,
    Catalog,
    Choice,
    ChoiceAnswers,
    ChoiceKind,
    How,
    Mixed,
    Offered,
    Option,
    People,
    ServerResources,
    ToolFound,
    ToolsFound,
)
from ferrule.core.tool import READS, READS_OUTSIDE, Args, Context, Tool


class ReadResourceArgs(Args, frozen=True, kw_only=True):
    uri: str
    server: str | None = None


class ReadResource(Tool[ReadResourceArgs, Mixed]):
    """One resource, by its address."""

    name = "read_mcp_resource"
    args = ReadResourceArgs
    title = "Read a resource of a server"
    hints = READS_OUTSIDE

    def access(self, args: ReadResourceArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        if args.uri.startswith(INSTRUCTIONS):
            return ()  # they are kept here, and the user has approved them
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ReadResourceArgs, ctx: Context) -> Mixed:
        if not args.uri.strip():
            raise BadArguments(f"{ctx.param('uri')}: it is empty; list_mcp_resources says what there is.")
        return await ctx.need(Offered).read(args.server or None, args.uri)


class ListResourcesArgs(Args, frozen=True, kw_only=True):
    server: str | None = None
    cursor: str | None = None


class ListResources(Tool[ListResourcesArgs, ServerResources]):
    """The resources of one server, or of all."""

    name = "list_mcp_resources"
    args = ListResourcesArgs
    title = "List the resources of servers"
    hints = READS_OUTSIDE
    templates = False

    def access(self, args: ListResourcesArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ListResourcesArgs, ctx: Context) -> ServerResources:
        offered = ctx.need(Offered)
        return await offered.resources(args.server or None, templates=self.templates, cursor=args.cursor or "")


class ListResourceTemplates(ListResources):
    """The templates of one server, or of all."""

    name = "list_mcp_resource_templates"
    title = "List the resource templates"
    hints = READS_OUTSIDE
    templates = True


MOST = 50
"""How many tools one search loads at most: their schemas enter the prompt."""
_SELECT = "select:"
"""Before names of tools, with commas between them: these are loaded, and nothing is searched."""


class ToolSearchArgs(Args, frozen=True, kw_only=True):
    query: str
    limit: int | None = None
    how: How = "ranked"


class ToolSearch(Tool[ToolSearchArgs, ToolsFound]):
    """Looks in the session's catalog. It touches nothing: what it loads can be called, and is asked about as ever."""

    name = "tool_search"
    args = ToolSearchArgs
    title = "Search for tools"
    hints = READS
    schema: dict[str, Any] = {  # noqa: RUF012 - written once, as every schema
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool is to do, or a part of its name. `select:NAME,NAME` loads these by name.",
            },
            "limit": {"type": "integer", "description": "How many tools at most; 8 unless given."},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    words = (
        "Find tools that are not listed in full.\n\n"
        "You get back the tools that fit best, each with its description, and can call them from then on."
    )

    def access(self, args: ToolSearchArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is in memory
        return ()

    async def run(self, args: ToolSearchArgs, ctx: Context) -> ToolsFound:
        query = args.query.strip()
        if not query:
            raise ToolFailure(f"{ctx.param('query')}: say what to look for.", code="empty-query")
        if args.limit is not None and args.limit < 1:
            raise ToolFailure(f"{ctx.param('limit')}: must be at least 1.", code="bad-arguments")
        catalog = ctx.need(Catalog)
        if query[: len(_SELECT)].lower() == _SELECT:
            found = await self._select(query[len(_SELECT) :], catalog, ctx)
        else:
            limit = args.limit if args.limit is not None else MOST if args.how == "substring" else None
            found = await catalog.search(query, how=args.how, limit=limit if limit is None else min(limit, MOST))
            if len(found) == MOST:
                ctx.note(f"These are the first {MOST}; there may be more. A longer query finds fewer.")
        if not found:
            ctx.note(_hint(catalog))
        return ToolsFound(query, tuple(found), catalog.definitions_follow)

    async def _select(self, listed: str, catalog: Catalog, ctx: Context) -> list[ToolFound]:
        """The tools whose names are listed, and a note about the others."""
        names = list(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
        if not names:
            raise ToolFailure(f"{ctx.param('query')}: name a tool behind {_SELECT}", code="empty-query")
        found, unknown = await catalog.select(names[:MOST])
        there = [name for name in unknown if catalog.lists(name)]
        missing = [name for name in unknown if name not in there]
        if there:
            ctx.note(f"{', '.join(there)}: listed in full already; call it.")
        if missing:
            ctx.note(f"No deferred tool is called {' or '.join(missing)[:500]}. Search for words of what it does.")
        if len(names) > MOST:
            ctx.note(f"Only the first {MOST} names were looked at.")
        return found


def _hint(catalog: Catalog) -> str:
    there = catalog.summary()
    if not there:
        return "There is nothing to be found: all tools of this session are listed in full."
    return f"Say it in other words, or name a tool. There are: {there}."


MOST_QUESTIONS = 4
FEWEST_OPTIONS, MOST_OPTIONS = 2, 4
HEADER_CHARS = 12
_MOST_CHARS = {"question": 2_000, "label": 200, "description": 1_000, "id": 200}


class OptionArgs(Args, frozen=True, kw_only=True):
    label: str
    description: str = ""


class QuestionArgs(Args, frozen=True, kw_only=True):
    question: str
    header: str = ""
    options: tuple[OptionArgs, ...] = ()
    multiple: bool = False
    id: str = ""
    kind: ChoiceKind = "choice"
    placeholder: str = ""


class AskUserArgs(Args, frozen=True, kw_only=True):
    questions: tuple[QuestionArgs, ...]
    answers: dict[str, Any] | None = None
    header_chars: int = HEADER_CHARS


class AskUser(Tool[AskUserArgs, ChoiceAnswers]):
    """Waits for a person as long as that takes; only a person answers."""

    name = "ask_user"
    args = AskUserArgs
    title = "Ask the user"
    hints = READS
    timed = False

    def access(self, args: AskUserArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: AskUserArgs, ctx: Context) -> ChoiceAnswers:
        asked = ctx.param("questions")
        if wrong := list(_faults(args.questions, asked)):
            raise BadArguments("\n".join(wrong))
        if args.answers:
            ctx.note(f"{ctx.param('answers')} was ignored: only the user answers.")
        choices = [self._choice(one, args.header_chars, ctx) for one in args.questions]
        answers = await ctx.need(People).choose(choices, ctx)
        if answers is None:
            raise ToolFailure(
                "The user did not answer. Do not ask the same again: decide yourself, and say in your answer which "
                "assumption you have made.",
                code="not-answered",
            )
        return ChoiceAnswers(tuple((choice, answers.get(choice.key, ())) for choice in choices))

    def _choice(self, one: QuestionArgs, header_chars: int, ctx: Context) -> Choice:
        header = _line(one.header)
        if len(header) > header_chars:
            ctx.note(f"The header {header[:60]!r} was cut to {header_chars} characters.")
        options = tuple(Option(_line(option.label), _line(option.description)) for option in one.options)
        return Choice(
            question=_text(one.question),
            header=header[:header_chars].rstrip(),
            options={"choice": options, "text": (), "yesno": (Option("Yes"), Option("No"))}[one.kind],
            multiple=one.multiple and one.kind == "choice",
            id=_line(one.id),
            kind=one.kind,
            placeholder=_line(one.placeholder)[: _MOST_CHARS["label"]],
        )


def _faults(questions: Sequence[QuestionArgs], name: str) -> Iterable[str]:
    """What is wrong with them, a line each."""
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        yield f"{name}: has {len(questions)} questions; ask 1 to {MOST_QUESTIONS}."
    for at, one in enumerate(questions):
        where = f"{name}[{at}]"
        if not _text(one.question):
            yield f"{where}.question: is empty."
        yield from (
            f"{where}.{part}: has {len(text):,} characters; {_MOST_CHARS[part]:,} is the most."
            for part, text in (("question", one.question), ("id", one.id))
            if len(text) > _MOST_CHARS[part]
        )
        if one.kind == "choice":
            yield from _unfit(one.options, f"{where}.options")
    # Their answers could not be told apart.
    for part in ("question", "id"):
        every = [_text(getattr(one, part)) for one in questions]
        twice = sorted({text for text in every if text and every.count(text) > 1})
        yield from (f"{name}: two have the {part} {text[:80]!r}." for text in twice)
    texts = [_text(one.question) for one in questions]
    crossed = {_line(one.id) for at, one in enumerate(questions) if _line(one.id) in (*texts[:at], *texts[at + 1 :])}
    yield from (
        f"{name}: {text[:80]!r} is the id of one and the question of another." for text in sorted(crossed - {""})
    )


def _unfit(options: Sequence[OptionArgs], where: str) -> Iterable[str]:
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        yield (
            f"{where}: has {len(options)} options; offer {FEWEST_OPTIONS} to {MOST_OPTIONS}. The user can always "
            "answer in their own words."
        )
    labels = [_line(option.label).casefold() for option in options]
    if "" in labels:
        yield f"{where}: a label is empty."
    twice = sorted({label for label in labels if label and labels.count(label) > 1})
    yield from (f"{where}: two have the label {label[:80]!r}." for label in twice)
    for part in ("label", "description"):
        longest = max((len(getattr(option, part)) for option in options), default=0)
        if longest > _MOST_CHARS[part]:
            yield f"{where}: a {part} has {longest:,} characters; {_MOST_CHARS[part]:,} is the most."


def _line(text: str) -> str:
    """In one line, and nothing in it that steers a screen."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def _text(text: str) -> str:
    """The same with its line ends."""
    return "\n".join(map(_line, text.splitlines())).strip()
