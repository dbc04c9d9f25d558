"""Bringing tools only when somebody looks: a session with a thousand of them may never need one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.registry.ground import Deferred


class PuttingOff:
    """The part of a registry that knows of tools which are not here yet."""

    def __init__(self) -> None:
        self.on_changed: Callable[[], object] | None = None
        """Told when what is advertised has changed."""
        self._deferred: Mapping[str, Deferred] = {}
        self._put_off: Callable[[], object] | None = None

    def put_off(self, bring: Callable[[], object]) -> None:
        """Have `bring` called before anybody looks at more than names that are known: it may replace none of them."""
        self._put_off = bring

    def settle(self) -> None:
        """Bring now what was put off. It is no news: nobody has seen the registry without it."""
        bring, self._put_off = self._put_off, None
        if bring is not None:
            told, self.on_changed = self.on_changed, None
            try:
                bring()
            finally:
                self.on_changed = told

    @property
    def deferred(self) -> "Mapping[str, Deferred]":
        """The tools that a search can find, those that are loaded among them."""
        self.settle()
        return self._deferred
