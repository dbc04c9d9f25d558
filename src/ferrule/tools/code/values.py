"""Values in what a server says: types like `Literal["…"]` may hold what stands in files that may not be read."""

import re

from ferrule.core.tool import Context
from ferrule.workspace.languages.servers import LanguageServers

_FENCED = r"^(`{3,}+)[^\n]*+\n.*?(?:^\1|\Z)"
_VALUE = r"""(["'`])((?:\\.|(?!\1)[^\\\n])+)(?:\1|$)|\d{4,}"""


def sees_all(ctx: Context) -> bool:
    """Do servers see secret and denied files too? Only the sandbox hides those from them."""
    return ctx.need(LanguageServers).sees_all


def without_values(text: str, source: str) -> str:
    """The text with the values in its code left out that do not stand in the source which was asked about."""

    def hidden(value: re.Match[str]) -> str:
        bare = value[2] or value[0]
        return value[0] if bare in source else f"{value[1] or ''}…{value[1] or ''}"

    def kept(block: re.Match[str]) -> str:
        head, line, rest = block[0].partition("\n")
        body = rest.removesuffix(block[1])
        return head + line + re.sub(_VALUE, hidden, body, flags=re.MULTILINE) + rest[len(body) :]

    return re.sub(_FENCED, kept, text, flags=re.DOTALL | re.MULTILINE)
