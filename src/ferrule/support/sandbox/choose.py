"""Which sandbox this machine has: the strongest that works, or the one that was asked for, or an error."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from ferrule.support.sandbox.profile import Backend, Sandbox, SandboxError

Wanted = Literal["auto", "bubblewrap", "namespaces", "landlock", "seatbelt", "none"]

NAMES: tuple[Wanted, ...] = ("namespaces", "bubblewrap", "landlock", "seatbelt")
"""In the order in which they are taken on Linux, the fastest first; the last one is that of macOS."""


class Tried(NamedTuple):
    """What `ferrule doctor` says of one of them."""

    name: str
    works: bool
    why: str
    """Why it does not work; where it works, what it cannot enforce, or nothing."""


_ADVICE = {
    "bubblewrap": "Install bubblewrap and allow user namespaces",
    "namespaces": "Allow user namespaces",
    "landlock": "Use a kernel with Landlock",
    "seatbelt": "Use macOS",
}


def choose(wanted: Wanted = "auto", *, outside: Sequence[str] = ()) -> Sandbox | None:
    """The sandbox to use; None where none is wanted, or with `auto` where this machine has none.

    `outside` are the folders whose programs are not trusted. Raises SandboxError where the wanted one does not work.
    """
    if wanted == "none":
        return None
    if wanted == "auto":
        return next((found for found in map(_maker(outside), NAMES) if not found.works()), None)
    if wanted not in NAMES:
        raise SandboxError(f"There is no sandbox called {wanted!r}. Choose one of auto, {', '.join(NAMES)}, none.")
    found = _maker(outside)(wanted)
    why = found.works()
    if why:
        raise SandboxError(
            f"The sandbox {wanted} does not work here: {why.rstrip('.')}. {_ADVICE[wanted]}, or choose another one in "
            "the setting sandbox.use; auto takes the strongest that works."
        )
    return found


def report(*, outside: Sequence[str] = ()) -> list[Tried]:
    """Every sandbox: whether it works, and why not or what it lacks."""
    rows: list[Tried] = []
    for found in map(_maker(outside), NAMES):
        why = found.works()
        rows.append(Tried(found.name, not why, why or " ".join(found.lacks)))
    return rows


def _maker(outside: Sequence[str]) -> Callable[[str], Backend]:
    """Makes one by its name. Each is imported when it is its turn: most machines need the first only."""

    def namespaces() -> Backend:
        from ferrule.support.sandbox.namespaces import Namespaces

        return Namespaces()

    def make(name: str) -> Backend:
        if name == "bubblewrap":
            from ferrule.support.sandbox.bubblewrap import Bubblewrap

            return Bubblewrap(outside=outside, otherwise=namespaces)
        if name == "namespaces":
            return namespaces()
        if name == "landlock":
            from ferrule.support.sandbox.landlock import Landlock

            return Landlock()
        from ferrule.support.sandbox.seatbelt import Seatbelt

        return Seatbelt()

    return make
