"""Secret files of a large workspace are looked for away from the event loop, and found all the same."""

import threading
from typing import TYPE_CHECKING, cast

from ferrule.workspace.precious import Precious

if TYPE_CHECKING:
    from ferrule.workspace.guarded import Guard


class Watching:
    """A guard that knows one secret, and who asked for it."""

    def __init__(self):
        self.asked: list[threading.Thread] = []

    def secret(self, path):
        self.asked.append(threading.current_thread())
        return path.endswith(".env")

    def protected(self, path):
        return path.endswith("setup.cfg")


async def test_what_a_workspace_has_is_not_looked_at_on_the_event_loop(tmp_path):
    for name in (".env", "setup.cfg", *(f"f{at}" for at in range(50))):
        (tmp_path / name).touch()
    guard = Watching()
    precious = Precious(cast("Guard", guard))
    await precious.look_ahead([str(tmp_path)])
    found = precious.find([str(tmp_path)])

    assert found == ((str(tmp_path / ".env"),), (str(tmp_path / "setup.cfg"),), False)
    assert len(guard.asked) == 52
    assert threading.main_thread() not in guard.asked
