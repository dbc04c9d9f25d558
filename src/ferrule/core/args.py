"""Arguments of a tool: one frozen struct per tool, in canonical names."""

from typing import Any, ClassVar

import msgspec


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool accepts, after a face has turned its own parameters into these."""


class Raw(Args, frozen=True, kw_only=True):
    """Arguments of a tool whose schema is not ours to know: as they came, once they fit it."""

    raw: ClassVar[bool] = True
    values: dict[str, Any]
