"""Completion: commands after a slash, files of the workspace after an @."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from ferrule.permissions.asker import visible

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

_MOST = 40
_MOST_FILES = 50_000
_FRESH_SECONDS = 5.0
_FRESH_VALUES_SECONDS = 2.0


class Words(Completer):
    """Names after a slash at the beginning, files after an @ anywhere."""

    def __init__(
        self,
        commands: Callable[[], Sequence[tuple[str, str]]],
        values: Callable[[str], Sequence[str]],
        files: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        """`commands` with what each does, `values` that a command takes, `files` of the workspace."""
        self._commands = commands
        self._values = values
        self._files = files
        self._listed: Sequence[str] = ()
        self._listed_at = -_FRESH_SECONDS
        self._last: tuple[str, float, Sequence[str]] = ("", 0.0, ())

    def get_completions(self, document: "Document", complete_event: "CompleteEvent") -> Iterable[Completion]:  # noqa: ARG002 - the original's
        """Only those that need no waiting."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, blank, rest = text[1:].partition(" ")
        if blank:
            for value in self._valued(name):
                if value.startswith(rest) and value != rest:
                    yield Completion(value, start_position=-len(rest), display=visible(value))
            return
        seen = {name}
        for one, about in self._commands():
            if one.startswith(name) and one not in seen:
                seen.add(one)
                yield Completion(f"/{one}", start_position=-len(text), display=f"/{one}", display_meta=about)

    def _valued(self, name: str) -> Sequence[str]:
        """What a command takes; some of it is read from files, which is not done for every key."""
        now = time.monotonic()
        known, at, found = self._last
        if known != name or now - at >= _FRESH_VALUES_SECONDS:
            found = self._values(name)
            self._last = (name, now, found)
        return found

    async def get_completions_async(
        self, document: "Document", complete_event: "CompleteEvent"
    ) -> AsyncGenerator[Completion, None]:
        for one in self.get_completions(document, complete_event):
            yield one
        wanted = mentioned(document.text_before_cursor)
        if wanted is None:
            return
        now = time.monotonic()
        if now - self._listed_at >= _FRESH_SECONDS:
            self._listed, self._listed_at = (await self._files())[:_MOST_FILES], now
        for path in ranked(wanted, self._listed):
            yield Completion(f"@{path}", start_position=-len(wanted) - 1, display=visible(path))


def mentioned(text: str) -> str | None:
    """The beginning of a path after the last @, where the cursor is still in it."""
    word = text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""
    return word[1:] if word.startswith("@") else None


def ranked(wanted: str, paths: Sequence[str]) -> list[str]:
    """The paths that begin so, or whose names do, or that have it in them; short ones first."""
    low = wanted.lower()
    found: list[tuple[int, int, str]] = []
    for path in paths:
        lower = path.lower()
        if not path.isprintable() or low not in lower or path == wanted:
            continue
        name = lower.rsplit("/", 1)[-1]
        rank = 0 if lower.startswith(low) else 1 if name.startswith(low) else 2
        found.append((rank, len(path), path))
    return [path for _, _, path in sorted(found)[:_MOST]]
