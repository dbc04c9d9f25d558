"""How the checks of a call go: told in one line as things change, and to whoever watches them."""

import time

from ferrule.core.checks import Check, Checked, CheckRun, CheckWatch
from ferrule.core.tool import Context

_SHOWN = 3
_MOST_CHARS = 200


class Board:
    """Knows which checks run and which have ended."""

    def __init__(self, ctx: Context, total: int) -> None:
        self._ctx = ctx
        self.total = total
        self._watch = _watch(ctx)
        self._running: dict[str, float] = {}
        self._ended: list[Checked] = []

    def began(self, check: Check) -> None:
        self._running[check.name] = time.monotonic()
        self._watch.began(check)
        self.tell()

    def ended(self, checked: Checked) -> None:
        self._running.pop(checked.check.name, None)
        self._ended.append(checked)
        self._watch.ended(checked)
        self.tell()

    def done(self, run: CheckRun) -> None:
        self._watch.done(run)

    def tell(self) -> None:
        self._ctx.progress(self.line())

    def line(self) -> str:
        """`2 of 5 done: mypy passed 3.2 s; running: pytest (41 s)`."""
        done = ", ".join(f"{one.check.name} {one.status} {one.seconds:.1f} s" for one in self._ended[-_SHOWN:])
        now = time.monotonic()
        running = ", ".join(f"{name} ({now - since:.0f} s)" for name, since in self._running.items())
        said = f"{len(self._ended)} of {self.total} done" + f": {done}" * bool(done)
        said += f"; running: {running}" * bool(running)
        return said if len(said) <= _MOST_CHARS else said[: _MOST_CHARS - 1] + "…"


def _watch(ctx: Context) -> CheckWatch:
    try:
        return ctx.need(CheckWatch)
    except TypeError:  # nobody watches
        return CheckWatch()
