"""The pieces that several wires write alike: arguments as JSON text, files as addresses, marks on failed results."""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from ferrule.wire.turn import Content, Document, Foreign, Image, Part, Reason, Result, Text, Use

FREE = "input"
"""The one parameter of a free-text tool where an API knows only objects."""
_FAILED = "[Error] "


def arguments_out(use: Use) -> str:
    """Arguments as the text of a JSON object, in any case: many servers read it, and refuse the whole conversation for
    one call that they cannot read."""
    return json_text(object_out(use))


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


def document_address(document: Document) -> str:
    """Where the file is: the file itself as an address."""
    return f"data:{document.media_type};base64,{document.data}"


def document_at(address: str, title: str) -> Document | None:
    """The file that an address holds; None for an address of any other form."""
    head, comma, data = address.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return Document(head.removeprefix("data:").removesuffix(";base64"), data, title=title)


def plain_text(document: Document) -> str:
    """The words of a file of plain text; empty for any other."""
    if document.text or not document.media_type.startswith("text/") or not document.data:
        return document.text
    return base64.b64decode(document.data, validate=False).decode(errors="replace")


def document_words(document: Document) -> str:
    """A file of plain text, for APIs that have no other place for one than the conversation."""
    return f"Document {document.title}:\n\n{document.text}" if document.title else document.text


def left_out(part: Foreign | Document) -> str:
    """What stands in place of a block that this wire has no place for."""
    if isinstance(part, Document):
        return f"[The document at {part.url} was left out here.]"
    return f"[A part of the kind {part.kind} was left out here.]"


def words(result: Result) -> str:
    """The text of a result, parts joined by line ends; pictures and files are not in it."""
    return "\n".join(_words(part) for part in result.parts if not is_attached(part))


def _words(part: Content) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Document):
        return document_words(part)
    assert isinstance(part, Foreign), "Pictures have no words."
    return left_out(part)


def is_attached(part: Content) -> bool:
    """Must it follow behind, where a result may hold only text?"""
    return isinstance(part, Image) or (isinstance(part, Document) and not part.text)


def marked(text: str, *, failed: bool) -> str:
    """A result's text, for APIs that have no other place to say that it is a failure."""
    return _FAILED + text if failed else text


def unmarked_parts(parts: Iterable[Part]) -> tuple[tuple[Content, ...], bool]:
    """What a result holds, and whether the mark of a failure stood before it. Text without words is nothing."""
    kept = [part for part in parts if isinstance(part, Text | Image | Document | Foreign)]
    first = kept[0] if kept else None
    failed = False
    if isinstance(first, Text) and first.text.startswith(_FAILED):
        failed = True
        kept[0] = msgspec.structs.replace(first, text=first.text.removeprefix(_FAILED))
    return tuple(part for part in kept if not isinstance(part, Text) or part.text), failed


FOLLOWS = "The {what} follows below."
"""A result of which nothing could stand in the result itself: without words it would look as if there were none."""


def attached(result: Result) -> list[Image | Document]:
    """The pictures and files of a result that cannot stand among its text."""
    return [part for part in result.parts if isinstance(part, Image | Document) and is_attached(part)]


def words_or_pointer(result: Result) -> str:
    """The text of a result; where it has none, what follows behind it."""
    files = attached(result)
    said = words(result)
    return FOLLOWS.format(what=_kind(files)) if files and not said else said


def _kind(files: Iterable[Image | Document]) -> str:
    return "image" if any(isinstance(one, Image) for one in files) else "document"


def label(result: Result, name: str) -> str:
    """What is said before pictures and files that could not stand in the result itself."""
    return f"{_kind(attached(result)).capitalize()} from {name or 'the tool'} (call {result.id}):"


def reason_of(reason: Reason, parts: Iterable[Part]) -> Reason:
    """Some servers say that a model is done although it wants tools run."""
    return "tools" if reason == "end" and any(isinstance(part, Use) for part in parts) else reason
