"""What the bytes of a page are: what the server says of them counts, and what they begin with counts more.

The characters of a text come out of them here too.
"""

import codecs
import functools
import re
from typing import Literal

from ferrule.support import document, picture

Kind = Literal["page", "text", "data", "document", "picture", "binary"]

_HEAD_BYTES = 8192
_META_BYTES = 4096
"""So far into a page its charset may be told."""
_HTML = ("text/html", "application/xhtml+xml")
_VAGUE = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-unknown-content-type",
    "unknown/unknown",
)
"""What servers say when they do not know."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer before the shorter one that it begins with."""
_OTHER_NAMES = {
    # What sites call by these names is what Windows made of them, and every browser reads it so.
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "macintosh": "mac_roman",
    "x-mac-roman": "mac_roman",
}
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b\b")
_MOST_CONTROLS = 0.02
_MOST_CONTROLS_TOLD = 0.1
"""The same of what the server says is text."""
_FEW_CONTROLS = 3
"""So many may be in such a text, however short it is, but no more than a quarter of it."""


def judged(raw: bytes, media_type: str) -> Kind:
    """What it is. A media type that the bytes belie is not believed."""
    head = raw[:_HEAD_BYTES]
    if document.known(head):
        return "document"
    if picture.kind(head) is not None:
        return "picture"
    if not _is_text(head, lenient=media_type.startswith("text/")):
        return "binary"
    if media_type in _HTML:
        return "page" if _tag().search(raw) else _plain_kind(head, "")
    if media_type in _VAGUE and _is_page(head):
        return "page"
    return _plain_kind(head, media_type)


def decoded(raw: bytes, charset: str, kind: Kind) -> str:
    """The characters. The mark at the beginning is believed first, then the server, then the page itself."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    told = (charset, _told_inside(raw) if kind in {"page", "text"} else "")
    for encoding in filter(None, map(_encoding, told)):
        return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # A text that was cut off may end in the middle of a character.
        is_cut = error.end == len(raw) and len(raw) - error.start < 4
        return raw.decode("utf-8" if is_cut else "cp1252", "replace")


def _plain_kind(head: bytes, media_type: str) -> Kind:
    if media_type.endswith(("/json", "+json")):
        return "data"
    is_vague = media_type in _VAGUE
    return "data" if is_vague and head.lstrip()[:1] in {b"{", b"["} else "text"


def _is_text(head: bytes, *, lenient: bool) -> bool:
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return True
    if b"\0" in head and not lenient:
        return False
    found = sum(byte in _CONTROLS for byte in head)
    if lenient:
        return found <= max(min(_FEW_CONTROLS, len(head) // 4), len(head) * _MOST_CONTROLS_TOLD)
    return found <= len(head) * _MOST_CONTROLS


def _is_page(head: bytes) -> bool:
    return _beginning().match(head) is not None


def _told_inside(raw: bytes) -> str:
    found = _meta().search(raw, 0, _META_BYTES)
    return "" if found is None else found[1].decode("ascii")


def _encoding(name: str) -> str:
    """A way to decode; nothing for what is no charset of the web: Python knows some that are no charsets at all."""
    plain = name.strip().strip("\"'").lower()
    if plain in _OTHER_NAMES:
        return _OTHER_NAMES[plain]
    if not _charset().fullmatch(plain):
        return ""
    # A page that can be read so far as to name it is not written in sixteen bits.
    return "utf-8" if plain.startswith(("utf-16", "utf16", "utf-32", "utf32")) else _known(plain)


def _known(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""


@functools.cache
def _charset() -> re.Pattern[str]:
    return re.compile(
        r"utf-?(?:8|16|32)(?:-?[lb]e)?|iso-?8859-?[0-9]{1,2}|(?:windows|cp)-?[0-9]{3,4}|koi8-[rut]"
        r"|euc-?jp|big5(?:-hkscs)?|gb18030|iso-2022-(?:jp|kr)|mac[_-]?cyrillic"
    )


@functools.cache
def _meta() -> re.Pattern[bytes]:
    return re.compile(
        rb"""(?i)(?:<meta[^<>]{0,300}?charset\s{0,9}=\s{0,9}["']?|<\?xml[^<>]{0,100}?encoding\s{0,9}=\s{0,9}["'])"""
        rb"([a-z0-9_-]{2,30})"
    )


@functools.cache
def _beginning() -> re.Pattern[bytes]:
    return re.compile(rb"(?i)\s*(?:<!--[^<>]*-->\s*|<\?xml[^<>]*>\s*)*<(?:!doctype\s+html|html|head|body|title)\b")


@functools.cache
def _tag() -> re.Pattern[bytes]:
    return re.compile(rb"<[A-Za-z!/?]")
