"""What is said about a host that a call comes to only on its way, by a redirect."""

from typing import Literal, NamedTuple

from ferrule.core.tool import Context

Verdict = Literal["allow", "ask", "deny"]


class Word(NamedTuple):
    """What holds for a host."""

    verdict: Verdict = "allow"
    why: str = ""
    """A whole sentence."""
    rule: str = ""
    """The rule that says it, as it was written."""


class HostsAllowed:
    """Whoever knows the rules: `ctx.need(HostsAllowed)`. A session with rules gives its own subclass."""

    def word(self, tool: str, host: str, url: str) -> Word:  # noqa: ARG002 - subclasses look at them
        """What would be said about a call of the tool that goes to this address of that host."""
        return Word()


def hosts_allowed(ctx: Context) -> HostsAllowed:
    """Whoever knows the rules here; where nobody does, one who lets everything pass."""
    try:
        return ctx.need(HostsAllowed)
    except TypeError:
        return HostsAllowed()
