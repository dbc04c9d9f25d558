"""What an open session can look back on: full outputs, the writes that can be undone, guidance, the plan's steps."""

import functools
import os
from typing import TYPE_CHECKING

from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.flow import Flow
from ferrule.permissions.asker import Asker, Question
from ferrule.services import Services
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ferrule.core.outcomes import Planned
    from ferrule.output.store import Store, Stored
    from ferrule.workspace.guidance import Guide
    from ferrule.workspace.journal import Entry, Node
    from ferrule.workspace.rewind import Rewind
    from ferrule.workspace.undo import Undone


class Lookback:
    """The part of an engine that makes no calls."""

    jail: Jail
    _services: Services
    _flow: Flow
    _asker: Asker
    _opened = False

    @property
    def store(self) -> "Store":
        """Full outputs by id."""
        self._check_open()
        return self._services.store()

    @property
    def steps(self) -> "Planned":
        """The plan as the model last wrote it: steps, and how far each is."""
        self._check_open()
        return self._services.steps().plan

    def begin_prompt(self, number: int) -> None:
        """What is written from now on is for this prompt of the conversation; prompts count from 1."""
        self._check_open()
        self._services.begin_prompt(number)
        self._flow.checkpoints.prepare()

    async def undo(self, path: str | os.PathLike[str] | None = None) -> "Undone":
        """Take back the last write, of one file or of all, or all that the last command has changed.

        Raises `ToolFailure` where it would lose something. A repository that was removed comes back only if whoever
        the engine asks agrees.
        """
        self._check_open()
        await self._settle()
        undo = self._services.undo()
        gone = await self._services[Threads].run(undo.removed_repositories, self._real(path))
        with_git = bool(gone) and await self._may_bring_back(gone)
        return await self._step(functools.partial(undo.back, with_git=with_git), path)

    async def _may_bring_back(self, repositories: "tuple[str, ...]") -> bool:
        names = ", ".join(map(self.jail.shown, repositories))
        question = Question(
            kind="call",
            call_id="",
            name="undo",
            summary=f"Bring the removed repository {names} back, from the objects that were kept of it",
            touches=tuple(Access.write(path) for path in repositories),
        )
        return (await self._asker.ask(question)).allow

    async def _settle(self, *, is_looked: bool = False) -> None:
        """Have what commands in the background have changed written down."""
        if self._services.keeps_checkpoints():
            await self._flow.checkpoints.settle(is_looked=is_looked)

    async def rewind_preview(self, prompt: int, *, over: bool = False) -> "Rewind":
        """What going back to before a prompt of this conversation would do to the files. Raises `ToolFailure`."""
        self._check_open()
        await self._settle(is_looked=True)
        return await self._services[Threads].run(self._services.history().preview, prompt, over=over)

    async def rewind(self, prompt: int, *, over: bool = False) -> "Rewind":
        """Put every file back to what it was before a prompt of this conversation; `undo` takes that back.

        `over`: also what somebody else has changed since. Raises `ToolFailure`.
        """
        self._check_open()
        await self._settle()
        history = self._services.history()
        gone = (await self._services[Threads].run(history.preview, prompt, over=over)).repositories
        with_git = bool(gone) and await self._may_bring_back(gone)
        done = await self._services[Threads].finish(history.back, prompt, over=over, with_git=with_git)
        files = {
            one.path: None
            if one.after is None or one.after.kind != "file" or one.after.is_unkept
            else one.after.content
            for one in done.changes
        }
        self._services[Ledger].follow_to(files)
        return done

    async def redo(self, path: str | os.PathLike[str] | None = None) -> "Undone":
        """Write again what was last undone."""
        self._check_open()
        return await self._step(self._services.undo().again, path)

    async def history(self, path: str | os.PathLike[str] | None = None) -> "tuple[list[Entry], list[Entry]]":
        """The writes that can be undone and those that can be redone, the next one last."""
        self._check_open()
        return await self._services[Threads].run(self._services.undo().history, self._real(path))

    def bytes_before(self, node: "Node") -> bytes | None:
        """The bytes of a file as it was before a command, where they were kept."""
        return self._services.checkpoints().read(node)

    async def _step(self, step: "Callable[[str | None], Undone]", path: str | os.PathLike[str] | None) -> "Undone":
        done = await self._services[Threads].finish(step, self._real(path))
        self._services[Ledger].follow(done.after)
        for touched in done.touched:
            if touched not in done.after:
                self._services[Ledger].forget(touched)
        return done

    def _real(self, path: str | os.PathLike[str] | None) -> str | None:
        return None if path is None else self.jail.real(os.fspath(path))

    async def output(self, output_id: str) -> "Stored":
        """A full output that was kept. Raises `ToolFailure` for an unknown id."""
        self._check_open()
        stored = await self.store.get(output_id)
        if stored is None:
            raise ToolFailure(f"No output is kept as {output_id!r}. It may have been let go by age or size.")
        return stored

    def tell_left_out(self, tell: "Callable[[Mapping[str, str]], None]") -> None:
        """Have somebody told once, after the first look, which paths checkpoints leave out, and why."""
        self._flow.checkpoints.tell = tell

    def name_outputs(self, where: "Callable[[str], str]") -> None:
        """Have the notes about results that were cut say how the whole is read, by its id."""
        self._flow.bounds.where = where

    async def guidance(self) -> "tuple[Guide, ...]":
        """The guidance files that hold from the start, outermost first, with what they mention.

        For a system prompt. What lies deeper comes with the notes of the calls that go there.
        """
        self._check_open()
        return await self._services[Threads].run(self._services.guidance().start)

    def _check_open(self) -> None:
        if not self._opened:
            raise ConfigError("The engine is not open: use `async with Engine(...) as engine:`.")
