"""What a cell is told of one command: its folder, its descriptors, its limits, its words and its variables."""

import errno
import os
from collections.abc import Collection, Mapping, Sequence

_KINDS = 16
"""How many limits a process has."""
Limit = tuple[int, int, int]
"""Its kind, and how far it can be gone now and at most."""


def order(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    descriptors: Sequence[int],
    *,
    known: Collection[Limit],
    is_certain: bool = False,
) -> list[bytes]:
    """The fields of an order. The limits in `known` are those that the command has anyway. Raises OSError.

    `is_certain`: nobody waits until the program runs; if it cannot, its standard error says why.
    """
    words = [os.fsencode(word) for word in argv]
    entries = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    if not words or any(not name or "=" in name for name in env) or any(b"\0" in word for word in (*words, *entries)):
        raise OSError(errno.EINVAL, "The command cannot be started: a word or a variable holds what none can.")
    numbers = " ".join(str(number) for row in limits() if row not in known for number in row)
    targets = " ".join(map(str, descriptors))
    head = [b"%d" % is_certain, os.fsencode(cwd), targets.encode(), numbers.encode()]
    return [*head, b"%d" % len(words), *words, *entries]


def limits() -> list[Limit]:
    """The limits of this process."""
    import resource  # not on Windows, and only commands need it

    return [(kind, *resource.getrlimit(kind)) for kind in range(_KINDS)]
