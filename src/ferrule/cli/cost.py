"""`ferrule tools --tokens`: what each tool costs the prompt."""

from typing import NamedTuple

import click
import msgspec

from ferrule.core.face import Face
from ferrule.registry.cost import written
from ferrule.registry.registry import Registered, Registry


class Row(NamedTuple):
    """One line of the table."""

    name: str
    tokens: int
    source: str


def show(registry: Registry, chosen: list[Registered], wire: str | None, *, as_json: bool = False) -> None:
    """A table of the tools by what their definitions cost; those that only a search finds come apart."""
    from ferrule.support.tokens import name as tokenizer  # for who wants to know

    shown = _sorted([_row(entry.face, entry.tool.source, wire) for entry in chosen])
    known = {face.name for face in registry.shown()}
    later = _sorted(
        [_row(one.face, one.group, wire) for one in registry.deferred.values() if one.face.name not in known]
    )
    if len(chosen) == 1:
        later = []
    total = sum(row.tokens for row in shown)
    if as_json:
        rows = [row._asdict() | {"deferred": row in later} for row in (*shown, *later)]
        value = {"total": total, "counted_by": tokenizer(), "tools": rows}
        click.echo(msgspec.json.format(msgspec.json.encode(value)))
        return
    width = max(len(row.name) for row in (*shown, *later, Row("total", 0, "")))
    click.echo(f"{'tool':<{width}}  {'tokens':>7}  {'share':>6}  source")
    for row in shown:
        click.echo(f"{row.name:<{width}}  {row.tokens:>7,}  {row.tokens / max(total, 1):>6.1%}  {row.source}")
    click.echo(f"{'total':<{width}}  {total:>7,}  {'':>6}  counted by {tokenizer()}")
    if later:
        click.echo("\nDeferred: not in the prompt until a search finds them.")
        for row in later:
            click.echo(f"{row.name:<{width}}  {row.tokens:>7,}  {'':>6}  {row.source}")
        click.echo(f"{'total':<{width}}  {sum(row.tokens for row in later):>7,}")


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-row.tokens, row.name))


def _row(face: Face, source: str, wire: str | None) -> Row:
    """A tool with its tokens: as a model is shown it or, with `wire`, as that model API is sent it."""
    from ferrule.support.tokens import count  # as above

    if wire is None:
        return Row(face.name, count(written(face).decode()), source)
    from ferrule.wire.wire import definition_of, load_wire  # as in `ferrule tools --wire`

    sent = load_wire(wire).definitions_out([definition_of(face)])
    return Row(face.name, count(msgspec.json.encode(sent).decode()), source)
