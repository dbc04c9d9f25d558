"""Clean texts: take out what steers a terminal or hides from a reader, and leave the rest alone.

What goes: escape sequences as a whole, control characters but tab and newline, characters that turn the
direction of writing, tag characters, byte-order marks. A carriage return becomes a newline, so that a
progress bar is a list of lines. Half of a surrogate pair becomes U+FFFD. Joiners stay: emoji and whole scripts
need them.
"""

import re
from functools import cache
from typing import Any

_PLAIN = (
    "[\t\n -~\u00a0-\u061b\u061d-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff"
    "\ue000-\ufefe\uff00-\U000dffff\U000e0080-\U0010ffff]*+"
)

# Every repetition is possessive and ends at the next escape, so no text makes the search walk back.
_PAYLOAD = "[^\x07\x18\x1a\x1b\x80-\x9f]*+"
_END = "(?:\x07|\x1b\\\\|\x9c)"
_CSI = "[0-?]*+[ -/]*+[@-~]?"
_STEERING = (
    "\x1b++(?:"
    f"\\[{_CSI}"
    # A title or a picture that never ends takes its line with it, not the rest of the text.
    f"|[PX\\]^_k](?:{_PAYLOAD}{_END}|[^\x07\x18\x1a\x1b\x80-\x9f\r\n]*+)"
    "|[ -/]*+[0-~]?"
    ")"
    f"|\x9b{_CSI}"
    # Quotation marks that were decoded wrongly look like these; without an end, only they themselves go.
    f"|[\x90\x98\x9d-\x9f](?:{_PAYLOAD}{_END})?"
    "|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]++"
)
_RETURN = "\r++\n?"
_HALF = "[\ud800-\udfff]"
_compiled = cache(re.compile)
"""On first use: most texts are plain ASCII, and a session that sees no other pays for no expression."""


def clean(text: str) -> str:
    """The text without what steers or hides; a text without any of it is returned itself."""
    if _is_plain(text):
        return text
    for pattern, instead in ((_STEERING, ""), (_RETURN, "\n"), (_HALF, "\ufffd")):
        text = _compiled(pattern).sub(instead, text)
    return text


def _is_plain(text: str) -> bool:
    if text.isascii():
        return text.replace("\n", "").replace("\t", "").isprintable()
    return _compiled(_PLAIN).fullmatch(text) is not None


def clean_value(value: Any) -> Any:
    """A JSON value with every text in it cleaned, keys too; a clean value is returned itself."""
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, (dict, list, tuple)) or _is_clean(value):
        return value
    # A loop instead of a recursion: the depth of the value is chosen by whoever sent it.
    whole = [value]
    unfinished: list[Any] = [whole]
    while unfinished:
        box = unfinished.pop()
        for place, member in box.items() if isinstance(box, dict) else enumerate(box):
            if isinstance(member, str):
                box[place] = clean(member)
            elif isinstance(member, (dict, list, tuple)):
                box[place] = _clean_keys(member) if isinstance(member, dict) else list(member)
                unfinished.append(box[place])
    return whole[0]


def _is_clean(value: Any) -> bool:
    unseen = [value]
    while unseen:
        member = unseen.pop()
        if isinstance(member, str):
            if not _is_plain(member):
                return False
        elif isinstance(member, dict):
            unseen.extend(member)
            unseen.extend(member.values())
        elif isinstance(member, (list, tuple)):
            try:
                if not _is_plain("".join(member)):  # one look at all of a thousand texts
                    return False
            except TypeError:
                unseen.extend(member)
    return True


def _clean_keys(members: dict[Any, Any]) -> dict[Any, Any]:
    """The members under clean keys. A key that becomes the same as another one is numbered."""
    taken = {key for key in members if not isinstance(key, str) or clean(key) == key}
    numbers: dict[str, int] = {}
    renamed = {}
    for key, member in members.items():
        name = key
        if key not in taken:
            name = clean(key)
            while name in taken:
                numbers[clean(key)] = number = numbers.get(clean(key), 1) + 1
                name = f"{clean(key)}_{number}"
            taken.add(name)
        renamed[name] = member
    return renamed
