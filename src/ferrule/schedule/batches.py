"""The batches of a message, as the Amp contract cuts them: for display; the scheduler itself needs none."""

from collections.abc import Sequence
from typing import TypeVar

from ferrule.core.access import Access
from ferrule.schedule.ticket import Places, Ticket

T = TypeVar("T")


def batches(calls: Sequence[tuple[T, Sequence[Access] | None]]) -> list[list[T]]:
    """A call that conflicts with one of the batch starts the next; no profile (None) conflicts with all."""
    cut: list[list[T]] = []
    places = Places()
    closed = True
    for call, touched in calls:
        ticket = Ticket()
        if touched is not None and not closed:
            places.enter(ticket, touched)
        if touched is None or closed or ticket.waits_for:
            cut.append([])
            places = Places()
            places.enter(Ticket(), touched or ())
        cut[-1].append(call)
        closed = touched is None
    return cut
