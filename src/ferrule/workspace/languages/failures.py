"""What is said when a language server does not answer as it should."""

from ferrule.core.errors import ToolFailure
from ferrule.support.lsp.peer import NO_METHOD, Refusal
from ferrule.workspace.languages.life import Life

_SAID_CHARS = 500


def given_up(name: str, starts: int, seconds: float, life: Life | None) -> ToolFailure:
    last = f" {life.failure.message}" if life is not None else ""
    return ToolFailure(
        f"The language server {name} was started {starts} times within {seconds / 60:g} minutes and did not stay: it "
        f"is left alone for a while. Go on without it.{last}",
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
