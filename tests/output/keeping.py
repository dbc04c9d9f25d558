"""A clock that tests of the store move, and what they do with the store."""

from pathlib import Path

from ferrule.output.store import Store


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def session(directory: Path, clock: Clock, *, keep_bytes: int = 1_000_000) -> Store:
    """The store as another run of the program opens it."""
    return Store(str(directory), keep_days=7, keep_bytes=keep_bytes, clock=clock)


async def write_log(store: Store, content: bytes, *, tool: str = "shell") -> str:
    _, path = store.new_log()
    Path(path).write_bytes(content)
    return await store.adopt(path, size_bytes=len(content), call_id="c", tool=tool)


async def kept(store: Store) -> list[str]:
    return [entry.tool for entry in await store.entries()]
