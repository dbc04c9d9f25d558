"""The requests of the proxy for people: a live table in a terminal, a line for each elsewhere."""

import re
import time
from typing import Any

from ferrule.serve.proxy.records import Record, Records

_ROWS = 20
_CLIENT_WIDTH = 14
_STATUS = 3
"""The column that is coloured."""
_COLOURS = {"done": "green", "failed": "red", "cancelled": "yellow"}


def line(record: Record) -> str:
    """A request that has ended, in one line."""
    words = [
        time.strftime("%H:%M:%S", time.localtime(record.at)),
        f"{record.status or '-'}",
        f"{record.api} {_route(record) or '?'}",
        f"{record.input:,} in ({record.cache_read:,} cached), {record.output:,} out",
    ]
    if record.cost is not None:
        words.append(f"${record.cost:.4f}")
    if record.first_ms is not None:
        words.append(f"first byte {_time(record.first_ms)}")
    if record.ms is not None:
        words.append(_time(record.ms))
    words += [
        f"{count} {what}" for count, what in ((record.retries, "retries"), (record.searches, "searches")) if count
    ]
    if record.tried:
        words.append(f"after {', '.join(record.tried)}")
    if record.dropped:
        words.append(f"left out: {', '.join(record.dropped)}")
    if record.error:
        words.append(record.error)
    return " · ".join(words)


def summary(records: Records) -> str:
    """What all requests made together."""
    usage = records.tokens()
    share = f", {usage.cache_read / usage.input:.0%} of them cached" if usage.cache_read and usage.input else ""
    cost = f", ${records.cost:.4f}" if records.cost else ""
    requests = f"{records.count:,} request{'s' * (records.count != 1)}"
    return f"{requests}, {usage.input:,} tokens in{share}, {usage.output:,} out{cost}"


def table(records: Records) -> Any:
    """The newest requests as a table of rich, and the sum of all."""
    from rich.console import Group  # only for a terminal
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, expand=True)
    made.add_column("time", no_wrap=True)
    made.add_column("client", no_wrap=True, overflow="ellipsis", max_width=_CLIENT_WIDTH)
    made.add_column("model", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("status", "in", "cached", "out", "cost", "first", "total"):
        made.add_column(name, justify="right", no_wrap=True)
    newest = [*records.recent, *records.open.values()][-_ROWS:]
    for record in newest:
        colour = _COLOURS.get(record.state, "cyan")
        # Names come from clients: none of them may be taken for markup.
        cells = [Text(text, style=colour if at == _STATUS else "") for at, text in enumerate(_cells(record))]
        made.add_row(*cells, style="red" if record.state == "failed" else None)
    # A line that is not full comes last: the terminal writes ^C behind it, and must not need another one.
    return Group(made, Text(summary(records)))


def _cells(record: Record) -> list[str]:
    return [
        time.strftime("%H:%M:%S", time.localtime(record.at)),
        re.split(r"[ /]", record.client, maxsplit=1)[0] or record.api,
        _route(record),
        str(record.status) if record.status else record.state,
        f"{record.input:,}",
        f"{record.cache_read:,}",
        f"{record.output:,}",
        "" if record.cost is None else f"${record.cost:.4f}",
        "" if record.first_ms is None else _time(record.first_ms),
        "…" if record.ms is None else _time(record.ms),
    ]


def _route(record: Record) -> str:
    """What was asked for and who answers, once where both are the same."""
    if not record.model or not record.requested or record.model.endswith(record.requested):
        return record.model or record.requested
    return f"{record.requested} → {record.model}"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"
