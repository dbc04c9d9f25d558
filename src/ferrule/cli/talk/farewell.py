"""What is printed when the user leaves: the conversation, what it cost and changed, and how to go on with it."""

from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.cli.leaving import running_now
from ferrule.cli.talk.line import Line, sentence, wide
from ferrule.cli.talk.words import dollars, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ferrule.workspace.journal import Entry

_HEAD_COLUMNS = 12


class Farewell(msgspec.Struct, frozen=True):
    """What is known of the conversation that is left."""

    thread: str = ""
    """Empty if nothing was said."""
    is_kept: bool = True
    cost: float | None = None
    used_tokens: int = 0
    files: tuple[str, ...] = ()
    stopped: str = ""
    """What ran in the background and was stopped."""

    def after(self, session: Any, *, is_said: bool) -> "Farewell":
        """The farewell behind a session. `is_said`: the user has said something in it."""
        agent, engine = session.agent, session.engine
        if not is_said and agent.thread != self.thread:
            return Farewell()
        from ferrule.workspace.journal import Journal  # for who leaves

        journal = engine.need(Journal)
        own = (entry for entry in journal.entries() if journal.wrote(entry))
        usage = agent.spent.usage
        return Farewell(
            thread=str(agent.thread),
            is_kept=bool(engine.settings.threads.keep),
            cost=agent.spent.cost,
            used_tokens=usage.input + usage.output,
            files=tuple(map(engine.jail.shown, changed_files(own))),
            stopped=running_now(engine),
        )

    def lines(self, width: int) -> list[Line]:
        """It in rows of so many columns; none if nothing was said."""
        if not self.thread:
            return []
        used = f"{tokens(self.used_tokens)} tokens" if self.used_tokens else ""
        cost = " · ".join(fact for fact in (dollars(self.cost), used) if fact)
        rows = [("thread", self.thread), *([("cost", cost)] if cost else [])]
        if self.files:
            rows.append(("changed", _names(self.files, width - _HEAD_COLUMNS)))
        if self.stopped:
            rows.append(("stopped", self.stopped))
        on = f"ferrule --continue, or ferrule --resume {self.thread}" if self.is_kept else "not kept (threads.keep)"
        rows.append(("go on", on))
        return [sentence(("dim", f"  {head:<{_HEAD_COLUMNS - 2}}"), words) for head, words in rows]


def changed_files(entries: "Iterable[Entry]") -> list[str]:
    """The files that these writes together have left another than they found it, in the order of the first write."""
    from ferrule.workspace.entry_words import files_of  # as above

    first: dict[str, object] = {}
    last: dict[str, object] = {}
    for entry in entries:
        named = frozenset(files_of(entry))
        sides: list[tuple[str, object, object]] = [(one.path, one.before, one.after) for one in entry.files]
        sides += [(one.path, one.before, one.after) for one in entry.nodes if one.path in named]
        for path, before, after in sides:
            first.setdefault(path, _content(before))
            last[path] = _content(after)
    return [path for path, before in first.items() if before != last[path]]


def _content(side: Any) -> object:
    """What tells one content from another; None for no file."""
    content = getattr(side, "content", None)
    return content or side


def _names(files: tuple[str, ...], width: int) -> str:
    """How many there are, and their names as far as they fit into a row."""
    words = f"{len(files):,} file{'s' * (len(files) > 1)}"
    for at, name in enumerate(files):
        more = f" and {len(files) - at - 1} more" if at + 1 < len(files) else ""
        longer = f"{words}{', ' if at else ': '}{name}"
        if wide(longer + more) > width:
            left = len(files) - at
            return words if not at else f"{words} and {left} more"
        words = longer
    return words
