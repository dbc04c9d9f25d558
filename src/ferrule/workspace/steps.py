"""The plan that a session follows."""

from collections.abc import Callable

from ferrule.core.outcomes import Planned


class Steps:
    """One plan per session, replaced as a whole."""

    def __init__(self, on_change: Callable[[Planned], object] = lambda _: None) -> None:
        self.plan = Planned(())
        self._on_change = on_change

    def replace(self, plan: Planned) -> Planned:
        self.plan = plan
        self._on_change(plan)
        return plan
