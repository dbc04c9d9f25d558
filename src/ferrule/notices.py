"""What is said of a message as a whole, when all of its calls are over: the errors that its edits have made."""

from collections.abc import Sequence

import msgspec

from ferrule.core.access import UNKNOWN, Access
from ferrule.core.reply import Reply
from ferrule.output.clean import clean
from ferrule.workspace.languages.noticing import Before, Noticing
from ferrule.workspace.languages.servers import LanguageServers
from ferrule.workspace.paths import Jail


class Notices:
    """Looks at the files of a message's edits before and after. A session has it once it has language servers."""

    def __init__(self, noticing: Noticing, servers: LanguageServers, jail: Jail) -> None:
        self._noticing = noticing
        self._servers = servers
        self._jail = jail

    def begin(self, touches: Sequence[Access]) -> "Watch | None":
        """Look at what the calls are about to write; None where no server runs."""
        writes = [access for access in touches if access.mode != "read"]
        paths = [access.key for access in writes if access.kind == "path"]
        before = self._noticing.begin(paths)  # also where nothing is declared: kraken's files are known afterwards
        if before is None:
            return None
        is_wide = any(access.kind in UNKNOWN for access in writes)
        return Watch(self, before, is_wide=is_wide)

    async def end(self, before: Before, tracked: Sequence[str], *, is_wide: bool) -> dict[str, str]:
        """What is new about the files that were changed, by path. `is_wide`: commands may have changed any file."""
        if is_wide:
            self._servers.touched([root.path for root in self._jail.roots])
        return dict(await self._noticing.end(before, tracked)) if tracked else {}


class Watch:
    """One message between its first call and its last."""

    def __init__(self, notices: Notices, before: Before, *, is_wide: bool) -> None:
        self._notices = notices
        self._before = before
        self._is_wide = is_wide

    async def end(self, replies: Sequence[Reply]) -> list[Reply]:
        """The replies, with what is new about the files that they changed. Each is said once, with the last of them."""
        out = list(replies)
        tracked = dict.fromkeys(path for reply in replies for path in reply.track_files)
        notes = await self._notices.end(self._before, tuple(tracked), is_wide=self._is_wide)
        for path, note in notes.items():
            last = max((at for at, reply in enumerate(out) if path in reply.track_files), default=None)
            if last is not None:
                out[last] = msgspec.structs.replace(out[last], notes=(*out[last].notes, clean(note)))
        return out
