"""What is said when a language server does not answer as it should."""

from collections.abc import Sequence

from ferrule.core.errors import ToolFailure
from ferrule.support.lsp.peer import NO_METHOD, Refusal
from ferrule.workspace.languages.life import Life
from ferrule.workspace.languages.table import Row

_SAID_CHARS = 500
_NAMED = 4


class GivenUp(ToolFailure):
    """A server has ended too often: another one is to be asked in its place."""


def absent(row: Row) -> str:
    """Why a server that the user named is not used, where its program is not there."""
    how = row.install or "a name on PATH or an absolute path, outside the workspace, is to be its command"
    return f"The language server {row.name} of the settings is not used, for {row.program} was not found ({how})."


def outdated(row: Row, program: str) -> str:
    return f"The language server {row.name} of the settings is not used, for {program} is too old ({row.install})."


def replaced(why: str, by: str) -> str:
    """What is noted where another server answers than the one that the user named."""
    end = "\n" if "\n" in why else " "  # after what a program has said a line of its own
    return f"{why}{end}{by} answers in its place."


def missing(name: str, path: str, known: Sequence[Row], failures: Sequence[ToolFailure]) -> ToolFailure:
    """No server can be had for the file of that name; those that were tried have failed so."""
    if not known:
        message = f"No language server is known for {name}. One can be named in the settings: lsp.servers."
        return ToolFailure(message, code="no-language-server", path=path)
    ways = "; ".join(f"{row.name}: {row.install or _otherwise(row, failures)}" for row in known[:_NAMED])
    if not failures:
        message = f"No language server for {name} is installed. Any of these would do ({ways})."
    else:
        said = "\n".join(failure.message for failure in failures[:_NAMED])
        if all(failure.code == "no-sandbox" for failure in failures):
            return ToolFailure(said, code="no-sandbox", path=path)
        message = f"No language server for {name} can be used. {said}\nHow to get one that can ({ways})."
    return ToolFailure(f"{message} Until then search with a pattern.", code="no-language-server", path=path)


def _otherwise(row: Row, failures: Sequence[ToolFailure]) -> str:
    return "see its own page" if failures else f"its program {row.program} was not found"


def given_up(name: str, starts: int, seconds: float, life: Life | None) -> ToolFailure:
    last = f" {life.failure.message}" if life is not None else ""
    return GivenUp(
        f"The language server {name} was started {starts} times within {seconds / 60:g} minutes and did not stay: it "
        f"is left alone for a while.{last}",
        code="server-failed",
    )


def unsupported(name: str, method: str) -> ToolFailure:
    return ToolFailure(f"The language server {name} does not offer {method}.", code="unsupported")


def refused(name: str, method: str, error: Refusal) -> ToolFailure:
    if error.code == NO_METHOD:
        return unsupported(name, method)
    said = error.message[:_SAID_CHARS]
    return ToolFailure(f"The language server {name} answered {method} with an error: {said}", code="server-failed")


def slow(name: str, seconds: float) -> ToolFailure:
    return ToolFailure(
        f"The language server {name} did not answer within {seconds:g} seconds. It may still be reading the project: "
        "try again later, or search with a pattern.",
        code="server-slow",
    )
