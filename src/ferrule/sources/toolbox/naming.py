"""What a toolbox tool is called in a session."""

import hashlib
import re

PREFIX = "tb__"
MOST_CHARS = 64
"""What model APIs take, with the prefix."""
_HASH_CHARS = 8


def tool_name(said: str) -> str:
    """`tb__` and the name that a tool gives itself, in characters that model APIs take.

    Blanks become hyphens, other characters go, and a name that is too long ends in a hash of the whole.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "", re.sub(r"\s", "-", said))
    plain = re.sub(r"-{2,}", "-", plain).strip("-") or "tool"
    room = MOST_CHARS - len(PREFIX)
    if len(plain) > room:
        digest = hashlib.blake2b(said.encode(errors="surrogatepass"), digest_size=_HASH_CHARS // 2).hexdigest()
        plain = f"{plain[: room - _HASH_CHARS - 1]}-{digest}"
    return PREFIX + plain
