"""The face of a tool that is known by name alone: what it says of itself is read when somebody looks at it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ferrule.core.elsewhere import failed, said
from ferrule.core.face import Face
from ferrule.core.tool import AnyTool


class LateFace(Face, frozen=True, kw_only=True):
    """As its tool describes itself: a session that begins with a thousand tools looks at few of them."""

    described: AnyTool | None = None

    @property  # type: ignore[misc]  # read late, then as good as set
    def schema(self) -> Mapping[str, Any]:
        return {} if self.described is None else self.described.schema

    @property  # type: ignore[misc]  # read late, then as good as set
    def words(self) -> str:
        return "" if self.described is None else self.described.words


def late_faces() -> Callable[[AnyTool, str], LateFace]:
    """Makes the face of a tool under a name, and reads nothing of the tool."""
    replace = msgspec.structs.replace
    pattern = LateFace(tool="", name="", schema={}, words="", says=said, failed=failed)

    def late_face(tool: AnyTool, name: str) -> LateFace:
        # What they have in common is made once: that is most of a face.
        return replace(pattern, tool=tool.name, name=name, described=tool)

    return late_face
