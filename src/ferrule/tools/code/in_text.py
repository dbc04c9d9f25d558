"""What a text search finds, where no language server could be asked."""

from ferrule.core.code import Asked, InText
from ferrule.core.outcomes import Hits
from ferrule.core.tool import Context
from ferrule.tools.code.pointing import words
from ferrule.tools.search.grep import Grep, GrepArgs

MOST_LINES = 30


async def in_text(asked: Asked, why: str, ctx: Context) -> InText:
    """The lines of the workspace that have the name as a whole word; never of files that may not be read."""
    name = asked.name
    is_word = [word.text for word in words(name)] == [name]
    # The `$` of a name is no part of a word to the search program.
    escaped = name.replace("$", r"\$")
    pattern = rf"(?:^|[^\w$])(?:{escaped})(?:[^\w$]|$)" if is_word else name
    found = await Grep().run(
        GrepArgs(pattern=pattern, literal=not is_word, case_sensitive=True, per_file=0, limit=MOST_LINES), ctx
    )
    assert isinstance(found, Hits)  # it was not asked for files
    return InText(asked, why, found)
