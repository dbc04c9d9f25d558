"""The scheduler: a call runs once the earlier calls that it conflicts with are finished and a slot is free.

    ticket = scheduler.ticket(touched)    # in the order of the calls, before anything is awaited
    try:
        await scheduler.turn(ticket)
        ...
    finally:
        scheduler.release(ticket)

One event loop owns a scheduler; other threads stay away. A call that makes calls of its own and waits for them
touches nothing itself and is slotless, or they would wait for the slot and the access that it holds.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from ferrule.core.access import Access
from ferrule.core.errors import Cancelled, ConfigError
from ferrule.schedule.ticket import Places, Ticket


class Scheduler:
    """Orders calls by what they touch; at most `parallel` of them run at a time."""

    def __init__(self, parallel: int) -> None:
        if parallel < 1:
            raise ConfigError(f"The number of calls at a time must be 1 or more, not {parallel}.")
        self.parallel = parallel
        self._free = parallel
        self._issued = 0
        self._places = Places()
        # Those who could run but for a slot, first come first served. While a slot is free it is empty.
        self._queue: OrderedDict[Ticket, None] = OrderedDict()

    def ticket(self, touched: Sequence[Access], *, slotless: bool = False) -> Ticket:
        """A stand behind every earlier unfinished call that conflicts with `touched`. It must be released.

        A `slotless` one is for a call that waits for other calls: it does not count among those that run at a time.
        """
        self._issued += 1
        ticket = Ticket(self._issued, slotless=slotless)
        if touched:
            self._places.enter(ticket, touched)
        return ticket

    async def turn(self, ticket: Ticket) -> bool:
        """Wait until the call may run; from then on it holds a slot. Did it have to wait?

        If the wait is cancelled the ticket keeps its stand, without a slot: release it, or wait again.
        Raises `Cancelled` for a ticket that is released, also when that happens during the wait.
        """
        if ticket.waiter is not None or ticket.running:
            raise RuntimeError(f"{ticket} has its turn or is waiting for it already.")
        if ticket.released:
            raise Cancelled("The call was given up before its turn.")
        if (self._free or ticket.slotless) and not ticket.waits_for:
            self._free -= not ticket.slotless
            ticket.running = True
            return False
        ticket.waiter = asyncio.get_running_loop().create_future()
        if not ticket.waits_for:
            self._queue[ticket] = None
        woken = False
        try:
            await ticket.waiter
            woken = True
        finally:
            ticket.waiter = None
            if not woken:
                self._step_back(ticket)
        if ticket.released:
            raise Cancelled("The call was given up before its turn.")
        return True

    async def earlier(self, ticket: Ticket) -> None:
        """Wait until every earlier call that it conflicts with is finished. It is not its turn by that: it has no slot.

        Whoever asks a person about a call looks at its files then, as they will be when it runs.
        """
        if not ticket.waits_for or ticket.released:
            return
        ticket.heed = asyncio.get_running_loop().create_future()
        try:
            await ticket.heed
        finally:
            ticket.heed = None

    def release(self, ticket: Ticket) -> None:
        """The call is over, or will never run. Once is enough, more does no harm; it never raises.

        A call that is given up while others are before it counts as finished when they are: those behind it
        may have been told to wait for it alone.
        """
        if ticket.released:
            return
        ticket.released = True
        self._queue.pop(ticket, None)
        for waiter in (ticket.waiter, ticket.heed):
            if waiter is not None:
                _wake(waiter)
        if ticket.running:
            ticket.running = False
            self._free += not ticket.slotless
        if not ticket.waits_for:
            free = self._places.leave(ticket)
            if len(free) > 1:
                free.sort(key=_number)
            for follower in free:
                self._advance(follower)
        self._serve()

    def _advance(self, ticket: Ticket) -> None:
        """Nobody is before it any more."""
        if ticket.heed is not None:
            _wake(ticket.heed)
        if ticket.waiter is None:
            return
        if ticket.slotless:
            ticket.running = True
            _wake(ticket.waiter)
        else:
            self._queue[ticket] = None

    def _step_back(self, ticket: Ticket) -> None:
        """Undo a wait that ended without its turn: the slot may have been given just before."""
        self._queue.pop(ticket, None)
        if ticket.running:
            ticket.running = False
            self._free += not ticket.slotless
            self._serve()

    def _serve(self) -> None:
        while self._free and self._queue:
            ticket, _ = self._queue.popitem(last=False)
            # A waiter that is done was cancelled a moment ago; its task is about to step back.
            if ticket.waiter is not None and not ticket.waiter.done():
                self._free -= 1
                ticket.running = True
                _wake(ticket.waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if waiter.done():
        return
    try:
        waiter.set_result(None)
    except RuntimeError:
        # The event loop of that waiter is closed: nobody is left to be told.
        return


def _number(ticket: Ticket) -> int:
    return ticket.number
