"""Show the status of the chat: the live rows, the line below the input, token usage, `/context` and `/cost`.

On a narrow terminal the most important parts of the line survive. Usage also tells whether the prompt cache is hit
as it should be.
"""

import asyncio
import contextlib
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.agent import AgentEvent, Began, Called, ChildBegan, Compacted, FellBack, TurnEnded, add_usage, clamp_usage
from ferrule.agent.conversation import CHARS_PER_TOKEN, STOPPED_BEFORE, SUMMED_UP, tokens_of
from ferrule.agent.prompt import read_git_head
from ferrule.cli.talk.commands import Next
from ferrule.cli.talk.events import ChatTranscript, Piece, Prose, about, busy, dollars, render_queued, tokens
from ferrule.cli.talk.own_commands import OUTSIDE, RAN
from ferrule.cli.talk.text import BLANK, Line, Theme, UnbrokenLine, fit_line, line, paint_lines, plain, sentence, wide
from ferrule.core.call import ToolsChanged
from ferrule.core.content import Document, Image, Text
from ferrule.flow import CHANGED_COMMAND
from ferrule.models import Prices
from ferrule.sandbox.confinement import Confinement
from ferrule.system.tasks import Tasks
from ferrule.wire import Part, Result, Thinking, Turn, Usage, Use

if TYPE_CHECKING:
    from ferrule.cli.talk.chat import Chat


OPENING = [line(("dim", "opening…"))]
_MOST_NAME = 44
_MOST_BRANCH = 32
_MOST_FOLDER = 40
_MOST_PORTS = 4
_BETWEEN = 3
_FULL_PERCENT = 70
_BRANCH_SECONDS = 1.0
_PORTS_SECONDS = 2.0
_STYLES = {"plan": "magenta bold", "bypassPermissions": "red bold", "acceptEdits": "yellow"}


class Port(NamedTuple):
    """A port on which a command listens."""

    number: int
    is_forwarded: bool
    """Does the user reach it too?"""


class StatusSegment(NamedTuple):
    """One thing that the line says, at length and in short."""

    rank: int
    """The lowest of them are left out last."""
    whole: Line
    short: Line


class Beside:
    """What is looked at now and then, for it changes without an event: the branch, and the ports of commands."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._branch = ("", float("-inf"), "")
        self._ports: tuple[Port, ...] = ()
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def branch(self, folder: str) -> str:
        """What is checked out there, from the files of git; empty outside of a repository."""
        now = self._clock()
        known, looked_at, branch = self._branch
        if known != folder or now - looked_at >= _BRANCH_SECONDS:
            branch = read_git_head(folder)
            self._branch = folder, now, branch
        return branch

    def ports(self, engine: Any) -> tuple[Port, ...]:
        """Where commands listen, as it was seen last. Nothing is asked while none runs."""
        if not engine.need(Tasks).active_count:
            self._ports = ()
        elif self._clock() - self._looked_at >= _PORTS_SECONDS and self._looking is None:
            self._looking = asyncio.ensure_future(self._look(engine))
        return self._ports

    async def _look(self, engine: Any) -> None:

        try:
            found = await asyncio.to_thread(engine.need(Confinement).ports)
            self._ports = tuple(Port(*one) for one in found)
        finally:
            self._looked_at, self._looking = self._clock(), None


def status(agent: Any, engine: Any, mode: str, *, answer: str, beside: Beside, width: int) -> list[Line]:
    """Permission mode, model, context, cost, what runs in the background, branch, folder and dialect.

    Only what fits into so many columns; each in short if not all of them have room at length.
    """
    folder = engine.jail.folder
    parts = [
        StatusSegment(0, *_mode(mode, answer)),
        StatusSegment(4, *_model(agent.model.name)),
        StatusSegment(1, *_context(agent)),
        _same(2, dollars(agent.spent.cost)),
        StatusSegment(3, *_background(engine.need(Tasks).active_count, beside.ports(engine))),
        _same(5, _cut(beside.branch(folder), _MOST_BRANCH)),
        StatusSegment(6, *(line(("dim", text)) for text in _folder(folder))),
        _same(7, engine.dialect.name),
    ]
    return fit([part for part in parts if plain(part.whole)], width)


def fit(parts: Sequence[StatusSegment], width: int) -> list[Line]:
    """The parts that have room, in their order: first all of them in short, and then at length as far as it goes."""
    kept = {part.rank: part.short for part in parts}
    for part in sorted(parts, reverse=True):
        if _size(kept.values()) <= width:
            break
        if len(kept) > 1:
            del kept[part.rank]
    for part in sorted(parts):
        if part.rank in kept and _size({**kept, part.rank: part.whole}.values()) <= width:
            kept[part.rank] = part.whole
    return [kept[part.rank] for part in parts if part.rank in kept]


def _size(lines: Any) -> int:
    sizes = [wide(plain(one)) for one in lines]
    return sum(sizes) + _BETWEEN * (len(sizes) - 1)


def _same(rank: int, text: str) -> StatusSegment:
    one = line(("dim", text))
    return StatusSegment(rank, one, one)


def _mode(mode: str, answer: str) -> tuple[Line, Line]:
    shown = line((_STYLES.get(mode, "dim"), "plan mode" if mode == "plan" else mode))
    more = {"yes": line(("red bold", "yes")), "deny": line(("dim", "asks nobody"))}.get(answer, ())
    whole = (*shown, ("dim", " + "), *more) if more else shown
    return whole, whole


def _model(name: str) -> tuple[Line, Line]:
    """A model's name; in short without its host. Of one that is a file's, the end tells more than the way to it."""
    host, _, rest = name.partition(":")
    whole = name if len(name) <= _MOST_NAME else f"{host}:…{name[-_MOST_NAME // 2 :]}"
    short = os.path.basename(rest.rstrip("/")) or name
    return line(("dim", whole)), line(("dim", _cut(short, _MOST_NAME // 2)))


def _context(agent: Any) -> tuple[Line, Line]:
    window = agent.model.window
    used = min(100, 100 * agent.context_tokens // window) if window else 0
    style = "yellow" if used >= _FULL_PERCENT else "dim"
    return line((style, f"context {100 - used}% left")), line((style, f"{100 - used}% left"))


def _background(running: int, ports: Sequence[Port]) -> tuple[Line, Line]:
    """How many commands run, and where they listen; `inside` is a port that only other commands reach."""
    if not running:
        return (), ()
    count = f"{running} running"
    shown = [f"{one.number}{'' if one.is_forwarded else ' inside'}" for one in ports[:_MOST_PORTS]]
    shown += [f"{len(ports) - _MOST_PORTS} more"] if len(ports) > _MOST_PORTS else []
    if not shown:
        return (one := line(("yellow", count))), one
    few = f" :{shown[0]}" + (f" +{len(ports) - 1}" if len(ports) > 1 else "")
    named = f" on port{'s' * (len(ports) > 1)} {', '.join(shown)}"
    return line(("yellow", count + named)), line(("yellow", count + few))


def _folder(folder: str) -> tuple[str, str]:
    short = home_short(folder)
    return _cut(short, _MOST_FOLDER), os.path.basename(short.rstrip(os.sep)) or short


def _cut(text: str, most: int) -> str:
    """The end of a text: it tells more of a path or a branch than the beginning."""
    return text if len(text) <= most else f"…{text[-most + 1 :]}"


def home_short(path: str) -> str:
    """A path with `~` for the home folder."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if home != "/" and (path == home or path.startswith(home + os.sep)) else path


_MOST_ANSWERS = 10
_FRESH_SECONDS = 240.0
"""Hosts keep a prompt for five minutes at least."""
_LEAST_TOKENS = 5_000
"""No host that is known caches less than a part of this."""
_LEAST_SHARE = 0.5
"""Of the prompt before, which stands at the beginning of this one."""
_MISSES = 3


class AnswerTally(NamedTuple):
    """One answer."""

    usage: Usage
    is_missed: bool = False
    """Should the cache have been hit, and was it not?"""


class ModelTally(NamedTuple):
    """What one model has taken."""

    answers: int = 0
    usage: Usage = Usage()
    is_child: bool = False
    """Was it asked by subagents alone?"""


class _Before(NamedTuple):
    """The answer before, as far as the next one can expect its prompt in the cache."""

    model: str
    tokens: int
    at: float


class Tally:
    """Hears the events of the chat, whichever session they come from."""

    def __init__(self, clock: Callable[[], float], prices: Callable[[str], Prices | None]) -> None:
        """`prices` gives those of a model by its whole name."""
        self._clock = clock
        self._prices = prices
        self.models: dict[str, ModelTally] = {}
        self.answers: deque[AnswerTally] = deque(maxlen=_MOST_ANSWERS)
        """The last ones of the conversation itself."""
        self._asked: dict[str, str] = {}
        """The model that is asked, by thread."""
        self._children: set[str] = set()
        self._shape: tuple[object, ...] = ()
        self._before: _Before | None = None
        self._caching: set[str] = set()
        """Models that were seen to use a cache."""
        self._misses = 0

    def feed(self, event: AgentEvent) -> str:
        """Count what happened; a sentence where the user should know that the cache is not hit any more."""
        match event:
            case ChildBegan():
                self._children.add(event.child)
                self._asked[event.child] = event.model
            case Began():
                self._asked[event.thread] = event.model
                self._update_shape(event)
            case FellBack():
                self._asked[event.thread] = event.fallback
            case TurnEnded():
                return self._on_turn_end(event)
            case Compacted() if event.thread not in self._children:
                self._before = None
            case Called() if event.thread not in self._children and isinstance(event.call, ToolsChanged):
                self._before = None
        return ""

    def switch_model(self, thread: str, model: str) -> None:
        """Another model is asked from now on."""
        self._asked[thread] = model

    def has_cache(self, model: str) -> bool:
        """Is it known to keep prompts?"""
        prices = self._prices(model)
        return model in self._caching or (prices is not None and prices.cache_read < prices.input)

    def _update_shape(self, event: Began) -> None:
        """Other tools, another dialect or another conversation: a prompt that begins otherwise."""
        if event.thread in self._children:
            return
        shape = (event.thread, event.dialect, event.tools)
        if shape != self._shape:
            self._shape, self._before = shape, None

    def _on_turn_end(self, event: TurnEnded) -> str:
        is_child = event.thread in self._children
        model, usage = self._asked.get(event.thread, ""), clamp_usage(event.said.usage)
        old = self.models.get(model, ModelTally(is_child=True))
        self.models[model] = ModelTally(old.answers + 1, add_usage(old.usage, usage), old.is_child and is_child)
        if usage.cache_read:
            self._caching.add(model)
        if is_child:
            return ""
        is_missed = self._is_missed(model, usage)
        self.answers.append(AnswerTally(usage, is_missed))
        self._before = _Before(model, usage.input, self._clock())
        if not is_missed:
            self._misses = 0 if usage.cache_read else self._misses
            return ""
        self._misses += 1
        return _alarm(model) if self._misses == _MISSES else ""

    def _is_missed(self, model: str, usage: Usage) -> bool:
        before = self._before
        if before is None or before.model != model or before.tokens < _LEAST_TOKENS or usage.input < before.tokens:
            return False
        is_fresh = self._clock() - before.at < _FRESH_SECONDS
        return is_fresh and self.has_cache(model) and usage.cache_read < _LEAST_SHARE * before.tokens

    def cost(self, model: str) -> float | None:
        """Dollars; None where its prices are not known."""
        prices, taken = self._prices(model), self.models.get(model)
        return None if prices is None or taken is None else prices.cost(taken.usage)


def _alarm(model: str) -> str:
    return (
        f"The prompt cache was missed {_MISSES} times in a row, though nothing changed: each answer of {model} costs "
        "the full price of its whole prompt. /context shows the hits. The usual cause is a proxy that rewrites "
        "requests, or a host that caches nothing."
    )


_BAR = 12
_MOST_NAMED = 6
_SERVER = "mcp__"
_GUIDE = r'<guidance file="([^"]*)">\n.*?\n</guidance>'
_INSTRUCTIONS = r'<server-instructions name="([^"]*)">\n.*?\n</server-instructions>'
_KINDS = ("prompts", "answers", "thinking", "calls", "results of calls", "pictures and files")


class WindowShare(NamedTuple):
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
    free = [WindowShare("free", max(0, window - used))] if window else []
    column = max(wide(part.name) for part in (*parts, *free))
    for part in (*parts, *free):
        chat.say(_row(part, window or total, column))
    chat.say(BLANK, *_render_cache(chat), BLANK)
    return None


def _row(part: WindowShare, window: int, column: int) -> Line:
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


def _render_cache(chat: "Chat") -> list[Line]:
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
        UnbrokenLine(line("       ", *hits)),
    ]


def shares(system: str, definitions: Iterable[Any], turns: Sequence[Turn]) -> list[WindowShare]:
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
        WindowShare("system prompt", _tokens(len(system) - inside)),
        WindowShare("tools", _tokens(sum(own)), f"{len(own)} tools"),
    ]
    if servers or told:
        chars = sum(size for _, size in servers.values()) + sum(len(found[0]) for found in told)
        named = [f"{name} {count}" for name, (count, _) in sorted(servers.items(), key=lambda item: -item[1][1])]
        out.append(WindowShare("MCP tools", _tokens(chars), _join_names(named or [found[1] for found in told])))
    if guides:
        names = [f"{found[1].rpartition('/')[2]} {tokens(_tokens(len(found[0])))}" for found in guides]
        out.append(WindowShare("guidance files", _tokens(sum(len(found[0]) for found in guides)), _join_names(names)))
    counts = dict.fromkeys(_KINDS, 0)
    numbers = dict.fromkeys(_KINDS, 0)
    for turn in turns:
        for part in turn.parts:
            _count(part, turn.role, counts, numbers)
    out += [WindowShare(name, size, f"{numbers[name]:,}") for name, size in counts.items() if size]
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


def _join_names(names: Sequence[str]) -> str:
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


MOST_COLUMNS = 110
"""Prose in longer lines is hard to read."""
_FIXED_ROWS = 7
"""Of the rows that are not live, those that are free: where a terminal gets half as wide, an unfinished block takes
twice its rows, and what leaves the screen at its top can never be taken away again."""


class Live:
    """The live part, as rows."""

    def __init__(
        self,
        lines: ChatTranscript,
        draw: Callable[[str, int, int], list[str]],
        clock: Callable[[], float],
        *,
        colour: Theme | bool,
    ) -> None:
        """`draw` makes at most so many rows of an unfinished block, each within so many columns."""
        self._lines = lines
        self._draw = draw
        self._clock = clock
        self.colour = colour
        self._doing = ""
        self._since = 0.0
        self.is_asked: Callable[[], bool] = lambda: False
        """Is a question open? Then nothing but its answer is waited for."""
        self.ahead: list[str] = []
        """What was sent while something else is waited for."""
        self._drawn: tuple[tuple[str, int, int], list[str]] = ("", 0, 0), []

    @contextlib.contextmanager
    def show_activity(self, what: str) -> Iterator[None]:
        """Something is waited for that is no work of the agent's."""
        self._doing, self._since = what, self._clock()
        try:
            yield
        finally:
            self._doing = ""

    def rows(self, width: int, most_rows: int) -> list[str]:
        """At most so many rows, each within so many columns."""
        now = self._clock()
        waiting = [busy(self._doing, now - self._since, now)] if self._doing and not self.is_asked() else []
        waiting += map(render_queued, self.ahead) if self._doing else []
        rows = [*self._lines.live(), *waiting][-most_rows:]
        if not rows and not self._lines.open_block:
            return []
        below = paint_lines((fit_line(one, width) for one in rows), colour=self.colour).split("\n")[:-1]
        room = min(most_rows - len(below) - 2, (most_rows + _FIXED_ROWS - len(below)) // 2)
        above = self._tail(self._lines.open_block, min(width, MOST_COLUMNS), room) if room > 0 else []
        if above:
            return ["", *above, "", *below]
        return below if self._lines.is_after_tools else ["", *below]

    def _tail(self, source: str, width: int, room: int) -> list[str]:
        """The unfinished block; drawn anew only when it has changed."""
        if self._drawn[0] != (source, width, room):
            self._drawn = (source, width, room), self._draw(source, width, room)
        return self._drawn[1]


_MOST_TURNS = 8
_MOST_CHARS = 2000


def tail(
    turns: Sequence[Turn], cwd: str, typed: Mapping[int, str] | None = None, written: Collection[str] = ()
) -> list[Piece]:
    """The last turns; calls as a line each, and of long words only their end.

    `typed` is what the user wrote for the prompts, by the places of their turns, `written` all that they wrote, where
    that is known.
    """
    spoken = [(at, turn) for at, turn in enumerate(turns) if any(_is_shown(part) for part in turn.parts)]
    if not spoken:
        return []
    more = len(spoken) - _MOST_TURNS
    out: list[Piece] = [BLANK, line(("dim", f"  … {more} earlier messages"))] if more > 0 else []
    results = {part.id: part for turn in turns for part in turn.parts if isinstance(part, Result)}
    for at, turn in spoken[-_MOST_TURNS:]:
        for part in turn.parts:
            if isinstance(part, Use):
                values = part.input if isinstance(part.input, dict) else {"input": part.input}
                result = results.get(part.id)
                sign = ("red", "  ✗ ") if result is not None and result.failed else ("dim", "  • ")
                out.append(line(sign, ("bold", part.name), f" {about(values, cwd)}"))
                out += _render_changed_command(result)
            elif isinstance(part, Text) and part.text == STOPPED_BEFORE:
                out += [BLANK, line(("dim", "  Interrupted."))]
            elif isinstance(part, Text) and turn.role == "user" and _is_told(part, turn, written):
                out += [BLANK, *_render_note(part.text)]
            elif isinstance(part, Text) and part.text.strip():
                text = (typed or {}).get(at, "") if part is _prompt(turn) else ""
                out += [BLANK, *_words(turn.role, text or part.text.strip())]
            elif isinstance(part, Image | Document):
                out.append(line(("dim", f"  [{part}]")))
    return [*out, BLANK]


def _render_note(text: str) -> list[Piece]:
    """The first line of what the model is told; of a command of the user's own that command, as it was typed."""
    if text.startswith(RAN) and "\n$ " in text:
        first, command, *_ = text.split("\n", 2)
        return _words("user", f"{'!!' if OUTSIDE in first else '!'}{command[2:]}")
    return [sentence(("dim", "  "), ("dim", text.split("\n", 1)[0]))]


def _render_changed_command(result: Result | None) -> list[Piece]:
    """What the user made of a command before they allowed it: that is what has run."""
    texts = [part.text for part in result.parts[1:] if isinstance(part, Text)] if result is not None else []
    notes = [row for text in texts for row in text.split("\n")]
    changed = next((row for row in notes if row.startswith(f"Note: {CHANGED_COMMAND}")), "")
    return [sentence(("dim", f"    {changed.removeprefix('Note: ')}"))] if changed else []


def _prompt(turn: Turn) -> Part | None:
    """What the user has typed first; the answer to calls begins with their results."""
    first = next((part for part in turn.parts if not isinstance(part, Text) or part.text != STOPPED_BEFORE), None)
    return first if isinstance(first, Text) else None


def _is_told(part: Text, turn: Turn, written: Collection[str]) -> bool:
    """Is it what the program tells the model: a summary, a hook's words, what the user stopped or put in with @?"""
    told = ("[The user ", "[The session ")
    if part is _prompt(turn):
        return part.text.startswith(SUMMED_UP)
    return part.text not in written if written else part.text.startswith(told)


def _words(role: str, text: str) -> list[Piece]:
    text = text if len(text) <= _MOST_CHARS else f"…{text[-_MOST_CHARS:]}"
    if role == "assistant":
        return [Prose(text)]
    first, *rest = text.split("\n")
    shown = [sentence(("cyan bold", "> "), ("bold", first)), *(sentence("  ", ("bold", row)) for row in rest[:10])]
    return (
        [*shown, line(("dim", f"  … {len(rest) - 10} more line{'s' * (len(rest) > 11)}"))]
        if len(rest) > 10
        else [*shown]
    )


def _is_shown(part: Part) -> bool:
    return isinstance(part, Use | Image | Document) or (isinstance(part, Text) and bool(part.text.strip()))
