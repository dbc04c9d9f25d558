"""The pieces that several wires write alike: arguments as JSON text, pictures as addresses, marks on failed results."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ferrule.wire.turn import Foreign, Image, Part, Reason, Result, Text, Use

FREE = "input"
"""The one parameter of a free-text tool where an API knows only objects."""
_FAILED = "[Error] "


def arguments_out(use: Use) -> str:
    """Arguments as JSON text; what was no object goes back as the model wrote it."""
    return use.input if isinstance(use.input, str) else json_text(use.input)


def arguments_in(text: str) -> dict[str, Any] | str:
    """JSON text as arguments. What is no object is kept as it is: the engine tells the model what is wrong with it."""
    if not text.strip():
        return {}
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return read if isinstance(read, dict) else text


def object_out(use: Use) -> dict[str, Any]:
    """Arguments for an API that knows only objects. Text stands under `input`, as free-text tools have it."""
    return {FREE: use.input} if isinstance(use.input, str) else use.input


def json_text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        import json  # lone surrogates can only be written with escapes, and only the standard library does that

        return json.dumps(value, separators=(",", ":"))


def picture_address(image: Image) -> str:
    """Where the picture is: its address, or the picture itself as one."""
    return image.url or f"data:{image.media_type};base64,{image.data}"


def picture(address: str) -> Image:
    """The picture at an address, which may hold the picture itself."""
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(head.removeprefix("data:").removesuffix(";base64"), data)
    return Image("", "", address)


def left_out(foreign: Foreign) -> str:
    """What stands in place of a block that this wire has no place for."""
    return f"[A part of the kind {foreign.kind} was left out here.]"


def words(result: Result) -> str:
    """The text of a result, parts joined by line ends; pictures are not in it."""
    return "\n".join(
        part.text if isinstance(part, Text) else left_out(part) for part in result.parts if not isinstance(part, Image)
    )


def marked(text: str, *, failed: bool) -> str:
    """A result's text, for APIs that have no other place to say that it is a failure."""
    return _FAILED + text if failed else text


def unmarked_parts(parts: Iterable[Part]) -> tuple[tuple[Text | Image | Foreign, ...], bool]:
    """What a result holds, and whether the mark of a failure stood before it. Text without words is nothing."""
    kept = [part for part in parts if isinstance(part, Text | Image | Foreign)]
    first = kept[0] if kept else None
    failed = isinstance(first, Text) and first.text.startswith(_FAILED)
    if isinstance(first, Text):
        kept[0] = Text(first.text.removeprefix(_FAILED))
    return tuple(part for part in kept if not isinstance(part, Text) or part.text), failed


def pictures(result: Result) -> list[Image]:
    return [part for part in result.parts if isinstance(part, Image)]


def label(result: Result, name: str) -> str:
    """What is said before pictures that could not stand in the result itself."""
    return f"Image from {name or 'the tool'} (call {result.id}):"


def reason_of(reason: Reason, parts: Iterable[Part]) -> Reason:
    """Some servers say that a model is done although it wants tools run."""
    return "tools" if reason == "end" and any(isinstance(part, Use) for part in parts) else reason
