"""Starting a language server: confined where that can be had, with a clean environment, and in the roster."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import describe
from ferrule.support.environment import quiet_environment
from ferrule.support.launch import Launch
from ferrule.support.lsp.process import Line, ServerProcess
from ferrule.support.roster import Roster
from ferrule.support.sandbox.profile import Wrapped, nothing
from ferrule.workspace.confinement import Confinement
from ferrule.workspace.languages.finding import search_path
from ferrule.workspace.languages.table import Row
from ferrule.workspace.paths import Jail

if TYPE_CHECKING:
    from ferrule.support.starter import Starter


class Starting(NamedTuple):
    """What it takes to start any server of the session."""

    jail: Jail
    confinement: Callable[[], Confinement]
    roster: Callable[[], Roster]
    is_confined: bool
    """Are servers to run in the sandbox, where there is one?"""

    @property
    def roots(self) -> list[str]:
        return [root.path for root in self.jail.roots]

    @property
    def sees_all(self) -> bool:
        """Does nothing keep servers from secret and denied files?"""
        return not self.is_confined or self.confinement().sandbox is None

    def start(self, row: Row, program: str, root: str, line: Line) -> ServerProcess:
        """Start it. Raises ToolFailure where it cannot be started, or may not."""
        own = os.path.join(os.path.expanduser("~"), ".cache", "ferrule", "servers", row.name)
        wrapped = self._wrapped(row, [program, *row.args], root)
        with contextlib.ExitStack() as failed:
            failed.callback(wrapped.done)
            private = wrapped.env.get("TMPDIR", "").rstrip(os.sep) or own
            env = {
                **quiet_environment(os.environ),
                "PATH": search_path(self.roots),
                # What it keeps for itself goes where it may write.
                **({"XDG_CACHE_HOME": os.path.join(private, "cache")} if private != own else {}),
                **{name: value.replace("{private}", private) for name, value in row.env.items()},
                **wrapped.env,
            }
            launch = Launch(
                [word.replace("{private}", private) for word in wrapped.argv],
                root,
                env,
                stdin="pipe",
                starter=cast("Starter | None", wrapped.starter),
                descriptors=wrapped.descriptors,
                roster=self.roster(),
                command=" ".join((program, *row.args)),
                done=None if wrapped.done is nothing else wrapped.done,
            )
            try:
                self.jail.check(root)
            except BaseException:
                for descriptor in wrapped.descriptors:
                    os.close(descriptor)
                raise
            try:
                process = ServerProcess(launch, line)
            except OSError as error:
                message = f"The language server {row.name} cannot be started: {describe(error)}."
                raise ToolFailure(message, code="server-failed") from error
            failed.pop_all()  # from now on the process takes it back when it has ended
            return process

    def _wrapped(self, row: Row, argv: Sequence[str], root: str) -> Wrapped:
        confinement = self.confinement() if self.is_confined else None
        sandbox = None if confinement is None else confinement.sandbox
        if confinement is None or sandbox is None:
            if row.runs_project_code and not row.is_named:
                raise ToolFailure(
                    f"The language server {row.name} runs code of the project, and nothing confines it here. The user "
                    f"can allow that by naming it in the settings, as [lsp.servers.{row.name}], or install a sandbox.",
                    code="no-sandbox",
                )
            return Wrapped(tuple(argv))
        # It reads and never writes, whatever commands may.
        profile = confinement.reading_profile(*self.roots, *_own_folders(argv[0], self.roots))
        try:
            return sandbox.wrap(argv, profile, cwd=root)
        except (OSError, ValueError) as error:
            message = f"The language server {row.name} was not started, for it could not be confined: {error}"
            raise ToolFailure(message, code="no-sandbox") from error


def _own_folders(program: str, roots: Sequence[str]) -> list[str]:
    """Where the program lies, by its name and behind a link; for programs in places that are private to commands."""
    folders = [os.path.dirname(path) for path in (program, os.path.realpath(program))]
    return [folder for folder in dict.fromkeys(map(os.path.realpath, folders)) if folder not in {os.sep, *roots}]
