"""The rules about hosts, for calls that come to another host on their way."""

from ferrule.core.access import Access
from ferrule.core.hosts_allowed import HostsAllowed, Word
from ferrule.permissions.case import Case
from ferrule.permissions.policy import Policy


class RuledHosts(HostsAllowed):
    """What the policy says to a call that goes there from the start."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def word(self, tool: str, host: str, url: str) -> Word:
        decision = self._policy.decide(Case("", tool, tool, (Access.host(host),), input={"url": url}))
        return Word(decision.verdict, decision.why, decision.rule)
