"""What a person has agreed to write counts as seen: where the project was trusted, it is so with these bytes too.

Trust is in the contents of all rules, or of all code, of a project. It follows a write only where everything else is
as it was trusted, or where there was nothing: a yes to one file is none to others that nobody has looked at.
"""

from collections.abc import Callable, Sequence

from ferrule.core.errors import ConfigError
from ferrule.core.preview import Preview
from ferrule.permissions.code import code_files
from ferrule.permissions.layers import project_files
from ferrule.permissions.trust import Seen, Trust

Kept = Callable[[], None]
"""Called when what was agreed to is written."""


def nothing() -> None:
    """Nothing follows."""


class Approved:
    """Lets trust follow the writes that a person has agreed to."""

    def __init__(self, state: str, workspace: str) -> None:
        self._workspace = workspace
        self._trusts = ((Trust(state), project_files), (Trust(state, "code"), code_files))

    def obeys(self, path: str) -> bool:
        """Would this program itself obey the file?"""
        return any(path in files(self._workspace) for _, files in self._trusts)

    def before(self, agreed: Preview) -> Kept:
        """Look at what is trusted before the write; the result is called after it."""
        seen = [trust.look(self._workspace, files(self._workspace)) for trust, files in self._trusts]

        def written() -> None:
            for (trust, files), one in zip(self._trusts, seen, strict=True):
                self._follow(trust, files(self._workspace), one, agreed)

        return written

    def _follow(self, trust: Trust, files: Sequence[str], before: Seen, agreed: Preview) -> None:
        is_first = before.state == "unknown" and not before.contents and not before.obstacle
        if before.state != "trusted" and not is_first:
            return
        now = trust.look(self._workspace, files)
        if not now.fingerprint or now.fingerprint == before.fingerprint:
            return
        expected: dict[str, bytes | None] = dict(before.contents)
        expected |= {one.path: one.after for one in agreed if one.path in files or one.path in before.contents}
        if dict(now.contents) != {path: raw for path, raw in expected.items() if raw is not None}:
            return
        try:
            trust.grant(self._workspace, files, seen=now.fingerprint)
        except (ConfigError, OSError):
            return  # it is asked about, as whatever is not trusted
