"""What of a folder's checks runs by default, where the same programs are written down in more than one place."""

from collections.abc import Sequence

from ferrule.workspace.checks.row import ALONE, Row
from ferrule.workspace.checks.targets import Target


def weighed(rows: Sequence[Row], targets: Sequence[Target], above: Sequence[Target] = ()) -> list[Row]:
    """All of them, each with the decision whether it runs by default; `found` says by which rules.

    `above` are targets of a folder above that run and go into this one.
    """
    chosen = running(targets)
    kept = [row._replace(is_default=row.is_default and not _is_covered(row, chosen, above)) for row in rows]
    beside = [row for row in kept if row.is_default and row.shares != ALONE] + [one.row for one in chosen]
    is_linted = any(row.kind in {"lint", "format"} for row in beside)
    kept = [row._replace(is_default=False) if row.shares == ALONE and is_linted else row for row in kept]
    named = {one.row.name for one in chosen}
    said = [_sharing(one, rows)._replace(is_default=one.row.name in named) for one in targets]
    return [*kept, *said]


def running(targets: Sequence[Target]) -> list[Target]:
    """The targets that run: none that another one runs."""
    usable = [one for one in targets if one.row.is_default]
    names = {(one.row.program, one.target) for one in usable}
    # Made of nothing but others that can run by themselves: they say more about each.
    usable = [
        one for one in usable if not one.is_made_of or not {(one.row.program, part) for part in one.is_made_of} <= names
    ]
    run = {(one.row.program, below) for one in usable for below in one.targets}
    return [one for one in usable if (one.row.program, one.target) not in run]


def _is_covered(row: Row, chosen: Sequence[Target], above: Sequence[Target]) -> bool:
    is_run = any(not one.runs.isdisjoint(row.does) for one in (*chosen, *above))
    return is_run or any(not one.is_shown and one.row.kind == row.kind for one in chosen)


def _sharing(target: Target, rows: Sequence[Row]) -> Row:
    """The target's row; what it runs has to have for itself what it would have alone."""
    shares = next((row.shares for row in rows if row.shares and not target.runs.isdisjoint(row.does)), "")
    return target.row._replace(shares=shares) if shares else target.row
