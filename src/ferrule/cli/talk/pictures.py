"""Pictures in the terminal: those that a tool has read or the user has attached, by the protocol of kitty or iTerm2.

What is written is the picture's own bytes, encoded anew, in room that was made for it before: the cursor ends where it
is known to be. A picture elsewhere is never fetched, the terminal is never asked, and one that is not known to show
pictures gets none.
"""

import base64
import binascii
import math
import os
from collections.abc import Mapping

from ferrule.core.content import Image

_MOST_BYTES = 4 << 20
_MOST_COLUMNS = 60
_MOST_ROWS = 18
_CELL_PIXELS = 8
"""A cell is taken to be so wide, and twice as high."""
_CHUNK = 4096
_MARGIN = 4


def find_protocol(setting: str, environment: Mapping[str, str] = os.environ) -> str:
    """`kitty` or `iterm2`; empty if the terminal is not known to show pictures, or something stands between."""
    if setting != "auto":
        return "" if setting == "off" else setting
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("screen", "tmux")):
        return ""
    if term in {"xterm-kitty", "xterm-ghostty"} or program == "ghostty":
        return "kitty"
    is_iterm = program in {"iTerm.app", "WezTerm"} or environment.get("LC_TERMINAL") == "iTerm2"
    return "iterm2" if is_iterm else ""


def picture(image: Image, protocol: str, columns: int) -> str:
    """The rows of a picture, with what draws it there; empty if it cannot be drawn."""
    from ferrule.support.picture import BadPicture, kind, size  # for whoever has pictures

    if not protocol or image.url or not image.data or len(image.data) > _MOST_BYTES * 4 // 3:
        return ""
    try:
        raw = base64.b64decode(image.data, validate=True)
        pixels = size(raw)
    except (binascii.Error, BadPicture):
        return ""
    if protocol == "kitty" and kind(raw) != "image/png":
        return ""  # the only form that its protocol takes encoded
    width, height = cells(*pixels, most_columns=min(_MOST_COLUMNS, columns - _MARGIN))
    draw = _kitty(raw, width, height) if protocol == "kitty" else _iterm2(raw, width, height)
    # Room first, so that nothing scrolls while it is drawn; then back to where the rows end.
    return f"{chr(10) * height}\x1b[{height}A\x1b[2C\x1b7{draw}\x1b8\r\x1b[{height}B"


def cells(width: int, height: int, *, most_columns: int) -> tuple[int, int]:
    """How many columns and rows a picture of so many pixels gets; a small one is not made larger."""
    columns = max(1, min(most_columns, math.ceil(width / _CELL_PIXELS)))
    rows = max(1, math.ceil(columns * height / width / 2))
    if rows > _MOST_ROWS:
        columns, rows = max(1, columns * _MOST_ROWS // rows), _MOST_ROWS
    return columns, rows


def _kitty(raw: bytes, columns: int, rows: int) -> str:
    data = base64.b64encode(raw).decode()
    pieces = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    out = []
    for at, piece in enumerate(pieces):
        # q=2: no answer, which would come over the line as if typed. C=1: the cursor stays.
        head = f"a=T,f=100,q=2,C=1,c={columns},r={rows}," if at == 0 else "q=2,"
        out.append(f"\x1b_G{head}m={int(at + 1 < len(pieces))};{piece}\x1b\\")
    return "".join(out)


def _iterm2(raw: bytes, columns: int, rows: int) -> str:
    facts = f"inline=1;size={len(raw)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={facts}:{base64.b64encode(raw).decode()}\x07"
