"""Tickets, and the tree of what the unfinished ones touch: how a new ticket finds those it waits for.

Everything is the top of the tree; the roots of paths and the hosts are below it, folders and files below the roots.
Processes stand beside it: a word to one waits for nobody else; and so does the shell's folder, to which commands move
and in which others begin. Two rules keep each step short and change nothing
about who runs when:

- A writer stands in for all that stood at its place and below. Whatever conflicts with those conflicts with
  the writer too, and the writer finishes after them.
- A crowd that a ticket has to wait for is joined into one ticket, which takes the crowd's place in the tree:
  whoever would wait for the same crowd next waits for that one.
"""

import asyncio
import os
from collections.abc import Sequence

import msgspec

from ferrule.core.access import UNKNOWN, Access


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
    places: list["Place"] = msgspec.field(default_factory=list)
    """Where it must be taken out when it is finished."""

    def __repr__(self) -> str:
        return f"Ticket({self.number}, waits_for={self.waits_for})"


Name = str | tuple[str, str]
"""Of a place under its parent: the next component of its path, or the kind and key of what is no path."""


class Place(msgspec.Struct, eq=False):
    """Something that can be touched, and the unfinished tickets that touch it."""

    name: Name
    path: str = ""
    """With a separator at its end, so that whole components are compared."""
    parent: "Place | None" = None
    children: dict[Name, "Place"] = msgspec.field(default_factory=dict)
    readers: set[Ticket] = msgspec.field(default_factory=set)
    writer: Ticket | None = None
    """The last one; it waits for the others."""
    below: set[Ticket] | None = None
    """The writers under the place; kept from the time somebody reads the place with something under it."""

    def __repr__(self) -> str:
        return f"Place({self.path or self.name!r})"


class Places:
    """The tree. It knows unfinished tickets only, and no place that nobody stands at or below.

    Folders that nobody touches have no place of their own, unless the ways to two places part there.
    """

    def __init__(self) -> None:
        self._everything = Place("everything")
        self._processes = Place("processes")
        self._shell = Place("shell")
        self._paths: dict[str, Place] = {}

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

    def _place(self, access: Access) -> Place:
        if access.kind == "path":
            return self._path(access.key if access.key.endswith(os.sep) else access.key + os.sep)
        if access.kind in UNKNOWN:
            return self._everything
        name = (access.kind, access.key)
        top = self._processes if access.kind == "process" else self._everything
        return top.children.get(name) or _child(top, name)

    def _path(self, path: str) -> Place:
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

    def _clear(self, place: Place) -> set[Ticket]:
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

    def _forget(self, place: Place) -> None:
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


def _next_component(place: Place, path: str) -> str:
    start = len(place.path)
    return path[start : path.index(os.sep, start)]


def _child(parent: Place, name: Name, path: str = "") -> Place:
    place = parent.children[name] = Place(name, path, parent)
    return place


def _fork(place: Place, path: str) -> Place:
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


def _look_before_read(place: Place, earlier: set[Ticket]) -> None:
    if place.below is None and place.children:
        place.below = _watch(place)
    if place.below:
        earlier.add(_joined(place.below, place))
    here: Place | None = place
    while here is not None:
        if here.writer is not None:
            # The nearest came last, since a writer clears away all below it; so it waits for those above it.
            earlier.add(here.writer)
            return
        here = here.parent


def _look_before_write(place: Place, earlier: set[Ticket]) -> None:
    writer = place.writer
    above = place.parent
    while above is not None:
        if above.readers:
            earlier.add(_joined(above.readers, above))
        writer = writer or above.writer
        above = above.parent
    if writer is not None:
        earlier.add(writer)


def _stand(place: Place, ticket: Ticket, *, reads: bool) -> None:
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


def _step_out(place: Place, ticket: Ticket) -> None:
    place.readers.discard(ticket)
    if place.below:
        place.below.discard(ticket)
    if place.writer is ticket:
        place.writer = None


def _watch(place: Place) -> set[Ticket]:
    """The writers under the place, which now are to be taken out there as well."""
    writers = set()
    under = [*place.children.values()]
    for child in under:  # grows on the way
        if child.writer is not None:
            writers.add(child.writer)
            child.writer.places.append(place)
        under += child.children.values()
    return writers


def _joined(crowd: set[Ticket], place: Place) -> Ticket:
    """One ticket that is finished when the crowd is, and stands in the crowd's set at `place` from now on."""
    if len(crowd) == 1:
        return next(iter(crowd))
    join = Ticket(waits_for=len(crowd), released=True, places=[place])
    for one in crowd:
        one.followers.append(join)
    crowd.clear()
    crowd.add(join)
    return join
