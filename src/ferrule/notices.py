"""What is said of a message as a whole, when all of its calls are over: the errors that its edits have made."""

from collections.abc import Iterable, Sequence

import msgspec

from ferrule.core.access import Access
from ferrule.core.reply import Reply
from ferrule.output.clean import clean
from ferrule.workspace.languages.noticing import Before, Noticing


class Notices:
    """Looks at the files of a message's edits before and after. A session has it once it has language servers."""

    def __init__(self, noticing: Noticing) -> None:
        self._noticing = noticing

    def begin(self, touches: Iterable[Access]) -> "Watch | None":
        """Look at what the calls are about to write; None where no server runs."""
        paths = [access.key for access in touches if access.kind == "path" and access.mode != "read"]
        before = self._noticing.begin(paths)  # also where nothing is declared: kraken's files are known afterwards
        return None if before is None else Watch(self._noticing, before)


class Watch:
    """One message between its first call and its last."""

    def __init__(self, noticing: Noticing, before: Before) -> None:
        self._noticing = noticing
        self._before = before

    async def end(self, replies: Sequence[Reply]) -> list[Reply]:
        """The replies, with what is new about the files that they changed. Each is said once, with the last of them."""
        out = list(replies)
        tracked = dict.fromkeys(path for reply in replies for path in reply.track_files)
        if not tracked:
            return out
        notes = await self._noticing.end(self._before, tuple(tracked))
        for path, note in notes.items():
            last = max((at for at, reply in enumerate(out) if path in reply.track_files), default=None)
            if last is not None:
                out[last] = msgspec.structs.replace(out[last], notes=(*out[last].notes, clean(note)))
        return out
