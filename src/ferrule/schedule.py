"""Schedule calls: each runs once the earlier calls that it conflicts with are finished and a slot is free.

    ticket = scheduler.ticket(touched)    # in the order of the calls, before anything is awaited
    try:
        await scheduler.turn(ticket)
        ...
    finally:
        scheduler.release(ticket)

One event loop owns a scheduler; other threads must not use it. A call that makes calls of its own and waits for
them touches nothing itself and takes no slot, or they would wait for the slot and the access that it holds.

Unfinished tickets stand in a tree of the places that they touch, in which a new ticket finds those that it waits
for. Everything is the top of the tree; the roots of paths and the hosts are below it, folders and files below the
roots. Processes stand beside it, because input to one process waits for nothing else; and so does the shell's
folder, which commands change and in which others begin. Two rules keep each step short and do not change the
order of calls:

- A writer replaces all tickets that stood at its place and below. A ticket that conflicts with those conflicts
  with the writer too, and the writer finishes after them.
- A crowd that a ticket has to wait for is joined into one ticket, which takes the crowd's place in the tree: the
  next ticket that would wait for the same crowd waits for that one.

The batches of a message, as the Amp contract cuts them, are for display only; the scheduler does not use them.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ferrule.core.access import UNKNOWN, Access
from ferrule.core.errors import Cancelled, ConfigError


class Ticket(msgspec.Struct, eq=False):
    """A call's stand in the order of calls, finished once it is released and all before it are finished."""

    number: int = 0
    waits_for: int = 0
    """How many unfinished tickets stand right before it; a joined crowd counts as one."""
    released: bool = False
    slotless: bool = False
    """Is it for a call that only waits for other calls? It takes no slot from them."""
    running: bool = False
    """Has it had its turn? Then it holds one of the scheduler's slots, unless it takes none."""
    waiter: asyncio.Future[None] | None = None
    """Set while somebody awaits the ticket's turn."""
    heed: asyncio.Future[None] | None = None
    """Set while somebody waits for those before it, and not yet for its turn."""
    followers: list["Ticket"] = msgspec.field(default_factory=list)
    places: list["ResourceNode"] = msgspec.field(default_factory=list)
    """Where it must be taken out when it is finished."""

    def __repr__(self) -> str:
        return f"Ticket({self.number}, waits_for={self.waits_for})"


Name = str | tuple[str, str]
"""Of a place under its parent: the next component of its path, or the kind and key of what is no path."""


class ResourceNode(msgspec.Struct, eq=False):
    """Something that can be touched, and the unfinished tickets that touch it."""

    name: Name
    path: str = ""
    """With a separator at its end, so that whole components are compared."""
    parent: "ResourceNode | None" = None
    children: dict[Name, "ResourceNode"] = msgspec.field(default_factory=dict)
    readers: set[Ticket] = msgspec.field(default_factory=set)
    writer: Ticket | None = None
    """The last one; it waits for the others."""
    below: set[Ticket] | None = None
    """The writers under the place; kept from the time somebody reads the place with something under it."""

    def __repr__(self) -> str:
        return f"Place({self.path or self.name!r})"


class ResourceTree:
    """The tree. It knows unfinished tickets only, and no place that nobody stands at or below.

    Folders that nobody touches have no place of their own, unless the ways to two places part there.
    """

    def __init__(self) -> None:
        self._everything = ResourceNode("everything")
        self._processes = ResourceNode("processes")
        self._shell = ResourceNode("shell")
        self._paths: dict[str, ResourceNode] = {}

    def enter(self, ticket: Ticket, touched: Sequence[Access]) -> None:
        """Put the ticket behind every earlier one that conflicts with it."""
        # All places first: what is no access raises before anybody's stand has changed. All looks before the
        # first stand: no call waits for itself.
        stands = [(self._place(access), _reads(access)) for access in touched]
        stands += [(self._shell, access.shell != "moves") for access in touched if access.shell]
        earlier: set[Ticket] = set()
        for place, reads in stands:
            if reads:
                _look_before_read(place, earlier)
            else:
                _look_before_write(place, earlier)
                earlier |= self._clear(place)
        for place, reads in stands:
            _stand(place, ticket, reads=reads)
        for one in earlier:
            one.followers.append(ticket)
        ticket.waits_for = len(earlier)

    def leave(self, ticket: Ticket) -> list[Ticket]:
        """Take out a finished ticket and, after it, the released ones that waited for nobody else.

        Gives the tickets that now wait for nobody and are not released.
        """
        free: list[Ticket] = []
        finished = [ticket]
        # It grows on the way; a chain of released tickets may be longer than a stack is deep.
        for one in finished:
            for place in one.places:
                _step_out(place, one)
                self._forget(place)
            one.places = []
            for follower in one.followers:
                follower.waits_for -= 1
                if not follower.waits_for:
                    (finished if follower.released else free).append(follower)
            one.followers = []
        return free

    def _place(self, access: Access) -> ResourceNode:
        if access.kind == "path":
            return self._path(access.key if access.key.endswith(os.sep) else access.key + os.sep)
        if access.kind in UNKNOWN:
            return self._everything
        name = (access.kind, access.key)
        top = self._processes if access.kind == "process" else self._everything
        return top.children.get(name) or _child(top, name)

    def _path(self, path: str) -> ResourceNode:
        place = self._paths.get(path)
        if place is not None:
            return place
        # Calls of a message like to touch neighbours, so their folder is often known.
        place = self._paths.get(path[: path.rfind(os.sep, 0, -1) + 1], self._everything)
        while place.path != path:
            name = _next_component(place, path)
            child = place.children.get(name)
            if child is None:
                place = self._paths[path] = _child(place, name, path)
            elif path.startswith(child.path):
                place = child
            else:
                place = _fork(child, path)
                self._paths[place.path] = place
        return place

    def _clear(self, place: ResourceNode) -> set[Ticket]:
        """Everybody who reads at the place or stands below it; a writer takes their stand from now on."""
        stood = {*place.readers}
        place.readers.clear()
        place.below = None
        under = [*place.children.values()]
        place.children.clear()
        for child in under:  # grows on the way
            stood |= child.readers
            if child.writer is not None:
                stood.add(child.writer)
            under += child.children.values()
            child.children.clear()
            if child.path:
                del self._paths[child.path]
        return stood

    def _forget(self, place: ResourceNode) -> None:
        """Drop the place if nobody stands there or below, and then the ones above it in the same way."""
        while not (place.children or place.readers or place.writer or place.below):
            parent = place.parent
            # The top stays; a place that a writer above has cleared away is out already.
            if parent is None or parent.children.get(place.name) is not place:
                return
            del parent.children[place.name]
            if place.path:
                del self._paths[place.path]
            place = parent


def _next_component(place: ResourceNode, path: str) -> str:
    start = len(place.path)
    return path[start : path.index(os.sep, start)]


def _child(parent: ResourceNode, name: Name, path: str = "") -> ResourceNode:
    place = parent.children[name] = ResourceNode(name, path, parent)
    return place


def _fork(place: ResourceNode, path: str) -> ResourceNode:
    """A new parent for the place: the deepest folder above it that `path` is, or is below."""
    assert place.parent is not None
    shared = []
    for one, other in zip(place.path[:-1].split(os.sep), path[:-1].split(os.sep), strict=False):
        if one != other:
            break
        shared.append(one)
    fork = _child(place.parent, place.name, os.sep.join([*shared, ""]))
    place.parent = fork
    place.name = _next_component(fork, place.path)
    fork.children[place.name] = place
    return fork


def _reads(access: Access) -> bool:
    # Two calls that may touch everything conflict whatever their mode says.
    return access.mode == "read" and access.kind != "everything"


def _look_before_read(place: ResourceNode, earlier: set[Ticket]) -> None:
    if place.below is None and place.children:
        place.below = _watch(place)
    if place.below:
        earlier.add(_join_tickets(place.below, place))
    here: ResourceNode | None = place
    while here is not None:
        if here.writer is not None:
            # The nearest came last, since a writer clears away all below it; so it waits for those above it.
            earlier.add(here.writer)
            return
        here = here.parent


def _look_before_write(place: ResourceNode, earlier: set[Ticket]) -> None:
    writer = place.writer
    above = place.parent
    while above is not None:
        if above.readers:
            earlier.add(_join_tickets(above.readers, above))
        writer = writer or above.writer
        above = above.parent
    if writer is not None:
        earlier.add(writer)


def _stand(place: ResourceNode, ticket: Ticket, *, reads: bool) -> None:
    ticket.places.append(place)
    if reads:
        place.readers.add(ticket)
        return
    place.writer = ticket
    above = place.parent
    while above is not None:
        if above.below is not None:
            above.below.add(ticket)
            ticket.places.append(above)
        above = above.parent


def _step_out(place: ResourceNode, ticket: Ticket) -> None:
    place.readers.discard(ticket)
    if place.below:
        place.below.discard(ticket)
    if place.writer is ticket:
        place.writer = None


def _watch(place: ResourceNode) -> set[Ticket]:
    """The writers under the place, which now are to be taken out there as well."""
    writers = set()
    under = [*place.children.values()]
    for child in under:  # grows on the way
        if child.writer is not None:
            writers.add(child.writer)
            child.writer.places.append(place)
        under += child.children.values()
    return writers


def _join_tickets(crowd: set[Ticket], place: ResourceNode) -> Ticket:
    """One ticket that is finished when the crowd is, and stands in the crowd's set at `place` from now on."""
    if len(crowd) == 1:
        return next(iter(crowd))
    join = Ticket(waits_for=len(crowd), released=True, places=[place])
    for one in crowd:
        one.followers.append(join)
    crowd.clear()
    crowd.add(join)
    return join


T = TypeVar("T")


def batches(calls: Sequence[tuple[T, Sequence[Access] | None]]) -> list[list[T]]:
    """A call that conflicts with one of the batch starts the next; no profile (None) conflicts with all."""
    cut: list[list[T]] = []
    places = ResourceTree()
    closed = True
    for call, touched in calls:
        ticket = Ticket()
        if touched is not None and not closed:
            places.enter(ticket, touched)
        if touched is None or closed or ticket.waits_for:
            cut.append([])
            places = ResourceTree()
            places.enter(Ticket(), touched or ())
        cut[-1].append(call)
        closed = touched is None
    return cut


class Scheduler:
    """Orders calls by what they touch; at most `parallel` of them run at a time."""

    def __init__(self, parallel: int) -> None:
        if parallel < 1:
            raise ConfigError(f"The number of calls at a time must be 1 or more, not {parallel}.")
        self.parallel = parallel
        self._free = parallel
        self._issued = 0
        self._places = ResourceTree()
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
