"""Whether a drawn text shows all of its Markdown: much of it is legal there and seen by nobody."""

import re
from collections import Counter

_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_FENCE = re.compile(r"^[ \t>*+-]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*$", re.MULTILINE)
"""Where code begins, with the name of its language at most."""
_WORD = re.compile(r"[^\W_]+")


def is_whole(source: str, drawn: str) -> bool:
    """Is every word of the source in what was drawn of it, as often as it was written?

    Titles of links, definitions that nothing refers to, and cells beyond the last column are not.
    """
    written = Counter(_WORD.findall(_FENCE.sub("", source)))
    return not written - Counter(_WORD.findall(_COLOUR.sub("", drawn)))
