"""A model's answer as it arrives, in no API's words: what every stream is read into and written from."""

from typing import Any

import msgspec

from ferrule.wire.turn import Reason, Usage


class Begun(msgspec.Struct, frozen=True):
    """The answer begins."""

    id: str
    model: str
    usage: Usage = Usage()
    """What is counted already, for APIs that say so at once; `Ended` counts all of it."""


class TextPiece(msgspec.Struct, frozen=True):
    """More words."""

    text: str


class ThinkingPiece(msgspec.Struct, frozen=True):
    """More thinking; a signature comes with or after its last words."""

    text: str
    signature: str = ""
    sealed: str = ""
    wire: str = ""
    """The wire that it came on; only there a signature means anything."""


class UseBegun(msgspec.Struct, frozen=True):
    """A call whose id and name are known. `at` numbers the calls of the answer from 0, in the order of their begin."""

    at: int
    id: str
    name: str
    is_text: bool = False
    """Is the input free text and not JSON?"""
    namespace: str = ""
    """The bundle of tools that the name is of, for APIs that have bundles."""


class UsePiece(msgspec.Struct, frozen=True):
    """More of a call's input, as text; the pieces together are its JSON."""

    at: int
    text: str


class UseEnded(msgspec.Struct, frozen=True):
    """A call's input is complete."""

    at: int
    cut: bool = False
    """Did the answer stop in the middle of the input? Then the call must not be run."""


class Block(msgspec.Struct, frozen=True):
    """A whole block or item that only one API knows. Other APIs are not told of it."""

    wire: str
    block: dict[str, Any]


class Ended(msgspec.Struct, frozen=True):
    """The answer is complete. It is the last delta, and there is always one."""

    reason: Reason
    usage: Usage = Usage()
    skipped: int = 0
    """Events that nobody could read. All others were; nothing else is missing."""


class Broke(msgspec.Struct, frozen=True):
    """The answer broke off. `Ended` still follows; a writer says the error, and nothing behind it."""

    message: str
    kind: str = ""


Delta = Begun | TextPiece | ThinkingPiece | UseBegun | UsePiece | UseEnded | Block | Ended | Broke
