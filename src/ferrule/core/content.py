"""Content: what a prompt, a result and a turn are made of. Words, pictures, and files such as a PDF."""

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Words."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """A picture: base64 data, or an address where the API fetches it itself."""

    media_type: str
    data: str
    url: str = ""
    title: str = ""
    """The name of its file; it is shown to people, and no API is told."""

    def __str__(self) -> str:
        return _described("Image", self)


class Document(msgspec.Struct, frozen=True, tag="document"):
    """A file to read, such as a PDF: base64 data, plain text, or an address where the API fetches it itself."""

    media_type: str
    data: str = ""
    text: str = ""
    url: str = ""
    title: str = ""
    """The name of the file."""

    def __str__(self) -> str:
        return _described("Document", self)


def data_bytes(part: Image | Document) -> int:
    """How many bytes the file has; 0 where it is elsewhere."""
    if isinstance(part, Document) and part.text:
        return len(part.text.encode(errors="replace"))
    return len(part.data) * 3 // 4 - part.data[-2:].count("=")


def _described(kind: str, part: Image | Document) -> str:
    """What it is in a few words, for people and for logs: never the data."""
    where = part.title or part.url[:200]
    size = data_bytes(part)
    known = [one for one in (part.media_type, f"{size:,} bytes" if size else "") if one]
    words = f"{kind} {where}" if where else kind
    return f"{words} ({', '.join(known)})" if known else words
