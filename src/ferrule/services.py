"""The engine's services, each made when it is first needed: a session that only reads loads nothing that writes."""

import hashlib
import os
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.settings import Settings
from ferrule.support.threads import Threads
from ferrule.workspace.guarded import Guard
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from ferrule.output.store import Store
    from ferrule.workspace.journal import Journal
    from ferrule.workspace.undo import Undo

S = TypeVar("S")
_WORKERS = 16


class Services:
    """One object of each kind; `services[Writer]` is the writer."""

    def __init__(self, jail: Jail, settings: Settings, state: str) -> None:
        self._jail = jail
        self._settings = settings
        self._state = state
        self._made: dict[type, Any] = {
            Jail: jail,
            Settings: settings,
            Guard: Guard(settings.files.guarded_allow),
            Ledger: Ledger(),
            Threads: Threads(_WORKERS),
        }
        self._journal: Journal | None = None
        self._store: Store | None = None
        self._undo: Undo | None = None

    def __getitem__(self, service: type[S]) -> S:
        made = self._made.get(service)
        if made is None:
            made = self._made[service] = getattr(self, f"_{service.__name__.lower()}_made")()
        return made  # type: ignore[no-any-return]

    def journal_folder(self) -> str:
        """Where the journal of this workspace is."""
        home = hashlib.blake2b(os.fsencode(self._jail.folder), digest_size=10).hexdigest()
        return os.path.join(self._state, "journals", home)

    def journal(self) -> "Journal":
        if self._journal is None:
            from ferrule.workspace.journal import Journal  # noqa: PLC0415 - for sessions that write

            undo = self._settings.undo
            self._journal = Journal(self.journal_folder(), keep_bytes=undo.keep_mb << 20, keep_days=undo.keep_days)
        return self._journal

    def sweep(self) -> None:
        """Settle what a dead process may have left in this workspace; mostly there is nothing to load anything for."""
        pending = os.path.join(self.journal_folder(), "pending")
        try:
            left = os.listdir(pending)
        except OSError:
            return
        if left:
            self.journal().sweep()

    def undo(self) -> "Undo":
        if self._undo is None:
            from ferrule.workspace.transaction import Writer  # noqa: PLC0415 - for sessions that write
            from ferrule.workspace.undo import Undo  # noqa: PLC0415

            self._undo = Undo(self.journal(), self[Writer])
        return self._undo

    def store(self) -> "Store":
        if self._store is None:
            from ferrule.output.store import Store  # noqa: PLC0415 - for outputs that are cut

            output = self._settings.output
            self._store = Store(
                os.path.join(self._state, "outputs"), keep_days=output.keep_days, keep_bytes=output.keep_mb << 20
            )
        return self._store

    def _writer_made(self) -> object:
        from ferrule.support.locks import Locks  # noqa: PLC0415 - for sessions that write
        from ferrule.workspace.transaction import Writer  # noqa: PLC0415

        return Writer(self._jail, self.journal(), Locks(os.path.join(self._state, "locks")))

    def _guidance_made(self) -> object:
        from ferrule.workspace.guidance import Guidance  # noqa: PLC0415 - for sessions that write

        return Guidance(self._jail)

    async def close(self) -> None:
        """Let go of everything that was made."""
        self[Threads].close()
        if self._store is not None:
            await self._store.close()
        self._jail.close()
