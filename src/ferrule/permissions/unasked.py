"""What asks all the same where confined commands run without a question: some of them, and some pages."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferrule.core.access import Access
from ferrule.permissions.decision import Case, Decision

if TYPE_CHECKING:
    from ferrule.permissions.shell.scene import Scene
    from ferrule.tools.web.conversation_addresses import Addresses


_MADE_UP = (
    "{name} goes to {hosts}, at an address that the model made up: the user has not written it, and no search and no "
    "page that the user named has shown it. Commands run without a question, and it could carry away what they have "
    "read."
)


class Unasked:
    """What a policy needs to know beside whether confined commands need no question."""

    def __init__(
        self,
        left_out: Callable[[str], bool] | None = None,
        addresses: "Callable[[], Addresses] | None" = None,
    ) -> None:
        """`left_out` tells what no checkpoint keeps; without it the user wants no question about any confined command.

        `addresses` are those that may be fetched without a question; without them all are.
        """
        self._left_out = left_out
        self._addresses = addresses
        self.tell: Callable[[], None] = lambda: None
        """Called whenever a command is let in because it runs confined and can be taken back."""

    def decision(self, asks: Decision, commands: Sequence[Access], scene: "Scene", *, is_held: bool) -> Decision:
        """What becomes of a question about confined commands: yes, unless they lose what nothing brings back.

        `is_held`: nothing of it will run, because the session plans.
        """
        if self._left_out is None:
            return Decision("allow", "It runs confined, and sandbox.auto_allow is set.")
        from ferrule.permissions.shell.losses import loss  # only commands need it

        for access in commands:
            if why := loss(access.key, access.folder, scene, self._left_out):
                return asks._replace(why=why)
        if not is_held:
            self.tell()
        return Decision("allow", "It runs confined, and what it changes can be taken back.")

    def explain_made_up(self, case: Case) -> str:
        """Why a call asks because of where it fetches from, as sentences; empty where no model made that up."""
        if self._addresses is None or not case.is_fetch or not (addresses := self._addresses()).is_heard:
            return ""
        given = [case.input.get("url"), *(case.input.get("more") or ())]
        urls = [url for url in given if isinstance(url, str)]
        hosts = addresses.find_made_up(urls, [access.key for access in case.touches])
        return _MADE_UP.format(name=case.name, hosts=", ".join(hosts)) if hosts else ""

    def agree(self, case: Case) -> None:
        """The user has said yes to a fetch: its hosts are not asked about again."""
        if self._addresses is not None:
            self._addresses().agree(access.key for access in case.touches)
