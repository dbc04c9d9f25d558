"""What fills the model's window, and what the conversation has cost: `/context` and `/cost`."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.agent.history import CHARS_PER_TOKEN, tokens_of
from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.line import BLANK, Line, Whole, line, sentence, wide
from ferrule.cli.talk.words import dollars, tokens
from ferrule.wire.turn import Document, Image, Part, Result, Text, Thinking, Turn, Use

if TYPE_CHECKING:
    from ferrule.cli.talk.chatting import Chat
    from ferrule.wire.turn import Usage

_BAR = 12
_MOST_NAMED = 6
_SERVER = "mcp__"
_GUIDE = r'<guidance file="([^"]*)">\n.*?\n</guidance>'
_INSTRUCTIONS = r'<server-instructions name="([^"]*)">\n.*?\n</server-instructions>'
_KINDS = ("prompts", "answers", "thinking", "calls", "results of calls", "pictures and files")


class Share(NamedTuple):
    """A part of the window."""

    name: str
    tokens: int
    about: str = ""


async def context(chat: "Chat", _: str) -> Next:
    """The parts are estimates, in the proportion of what the host has counted."""
    agent = chat.session.agent
    asked, window, used = agent.talk.question(agent.turns), agent.model.window, agent.context_tokens
    parts = shares(agent.talk.setup.system, asked.definitions, agent.turns)
    total = sum(part.tokens for part in parts)
    scale = used / total if total and used else 1.0
    parts = [part._replace(tokens=round(part.tokens * scale)) for part in parts]
    of = f" of {tokens(window)} tokens, {_percent(used, window)}" if window else " tokens"
    chat.say(BLANK, line(("bold", f"  {tokens(used)}{of}"), ("dim", f"  {agent.model.name}")), BLANK)
    free = [Share("free", max(0, window - used))] if window else []
    column = max(wide(part.name) for part in (*parts, *free))
    for part in (*parts, *free):
        chat.say(_row(part, window or total, column))
    chat.say(BLANK, *_cached(chat), BLANK)
    return None


def _row(part: Share, window: int, column: int) -> Line:
    cells = round(_BAR * part.tokens / window) if window else 0
    cells = max(cells, 1) if part.tokens else 0
    style = "dim" if part.name == "free" else "cyan"
    bar = ("░" if part.name == "free" else "█") * min(_BAR, cells)
    gap = " " * (column - wide(part.name))
    numbers = f"  {tokens(part.tokens):>7}  {_percent(part.tokens, window):>4}  "
    return sentence(f"  {part.name}{gap}", numbers, (style, f"{bar:<{_BAR}}"), ("dim", f"  {part.about}"))


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f}%" if share >= 1 or not part else "<1%"


def _cached(chat: "Chat") -> list[Line]:
    """How the last answers found their prompts."""
    model = chat.session.agent.model.name
    answers = list(chat.tally.answers)
    if not answers:
        return [line(("dim", "  cache  no answer yet in this session"))]
    if not chat.tally.has_cache(model):
        return [line(("dim", f"  cache  none is known of {model}"))]
    hits: list[tuple[str, str]] = []
    for heard in answers:
        share = 100 * heard.usage.cache_read // heard.usage.input if heard.usage.input else 0
        words = f"{share}%" if share else "missed" if heard.is_missed else "new"
        hits.append(("yellow" if heard.is_missed else "green" if share else "dim", f"  {words}"))
    return [
        sentence(("dim", "  cache  "), ("dim", "the part of each prompt that was read from it, the newest last:")),
        Whole(line("       ", *hits)),
    ]


def shares(system: str, definitions: Iterable[Any], turns: Sequence[Turn]) -> list[Share]:
    """All that is sent, by part."""
    guides = list(re.finditer(_GUIDE, system, re.DOTALL))
    told = list(re.finditer(_INSTRUCTIONS, system, re.DOTALL))
    inside = sum(len(found[0]) for found in (*guides, *told))
    own: list[int] = []
    servers: dict[str, tuple[int, int]] = {}
    for one in definitions:
        size = len(one.name) + len(one.words) + len(str(one.schema))
        if one.name.startswith(_SERVER):
            server = one.name.removeprefix(_SERVER).partition("__")[0]
            count, chars = servers.get(server, (0, 0))
            servers[server] = (count + 1, chars + size)
        else:
            own.append(size)
    out = [
        Share("system prompt", _tokens(len(system) - inside)),
        Share("tools", _tokens(sum(own)), f"{len(own)} tools"),
    ]
    if servers or told:
        chars = sum(size for _, size in servers.values()) + sum(len(found[0]) for found in told)
        named = [f"{name} {count}" for name, (count, _) in sorted(servers.items(), key=lambda item: -item[1][1])]
        out.append(Share("MCP tools", _tokens(chars), _named(named or [found[1] for found in told])))
    if guides:
        names = [f"{found[1].rpartition('/')[2]} {tokens(_tokens(len(found[0])))}" for found in guides]
        out.append(Share("guidance files", _tokens(sum(len(found[0]) for found in guides)), _named(names)))
    counts = dict.fromkeys(_KINDS, 0)
    numbers = dict.fromkeys(_KINDS, 0)
    for turn in turns:
        for part in turn.parts:
            _count(part, turn.role, counts, numbers)
    out += [Share(name, size, f"{numbers[name]:,}") for name, size in counts.items() if size]
    return out


def _count(part: Part, role: str, counts: dict[str, int], numbers: dict[str, int]) -> None:
    if isinstance(part, Image | Document):
        name = "pictures and files"
    elif isinstance(part, Result):
        seen = [one for one in part.parts if isinstance(one, Image | Document)]
        for one in seen:
            _count(one, role, counts, numbers)
        name = "results of calls"
        part = Result(part.id, tuple(one for one in part.parts if one not in seen))
    elif isinstance(part, Text):
        name = "answers" if role == "assistant" else "prompts"
    else:
        name = "thinking" if isinstance(part, Thinking) else "calls" if isinstance(part, Use) else "answers"
    counts[name] += tokens_of(Turn("user", (part,)))
    numbers[name] += 1


def _tokens(chars: int) -> int:
    return int(chars / CHARS_PER_TOKEN)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f", … {more} more" if more > 0 else "")


async def cost(chat: "Chat", _: str) -> Next:
    agent = chat.session.agent
    spent, usage = agent.spent, agent.spent.usage
    window = agent.model.window
    nothing = "nothing yet" if agent.model.prices is not None and not usage.input else ""
    share = f" ({_percent(agent.context_tokens, window)} of {tokens(window)})" if window else ""
    chat.say(
        BLANK,
        line(("dim", "  model    "), agent.model.name),
        line(("dim", "  prompts  "), f"{agent.talk.past.number}"),
        line(("dim", "  answers  "), f"{spent.turns}"),
        line(("dim", "  input    "), f"{tokens(usage.input)} tokens{_read(usage)}"),
        line(("dim", "  output   "), f"{tokens(usage.output)} tokens"),
        line(("dim", "  context  "), f"{tokens(agent.context_tokens)} tokens{share}"),
        line(("dim", "  cost     "), dollars(spent.cost) or nothing or "not known: no prices for this model"),
        *_by_model(chat),
        BLANK,
    )
    return None


def _read(usage: "Usage") -> str:
    parts = [f"{tokens(usage.cache_read)} from the cache"] if usage.cache_read else []
    parts += [f"{tokens(usage.cache_write)} written to it"] if usage.cache_write else []
    return f" ({', '.join(parts)})" if parts else ""


def _by_model(chat: "Chat") -> list[Line]:
    """A row for each model, where several were asked since the chat began."""
    tally = chat.tally
    if len(tally.models) < 2:
        return []
    column = max(map(wide, tally.models))
    rows: list[Line] = [BLANK, line(("dim", "  since this chat began:"))]
    for name, taken in tally.models.items():
        facts = f"{taken.answers} answers, {tokens(taken.usage.input)} in{_read(taken.usage)}"
        who = ", by subagents" if taken.is_child else ""
        price = dollars(tally.cost(name)) or "no prices"
        rows.append(line(f"  {name:<{column}}", ("dim", f"  {facts}, {tokens(taken.usage.output)} out · {price}{who}")))
    return rows
