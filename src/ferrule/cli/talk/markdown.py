"""Draw Markdown in a terminal with Rich, block by block as it arrives.

A block is judged by whole lines only, because an unfinished line may become something else. In a text of whole
lines every block but the last is final: the next one has ended it. The last one is final too if a blank line ends
its kind. Finished blocks are drawn whole, an unfinished one as far as it can be seen.

Much legal Markdown is not visible when drawn, so `is_whole` tells whether a drawn text shows all of its source.
"""

import io
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from markdown_it.token import Token
from pygments.token import (  # type: ignore[import-untyped]  # it comes with Rich, and has no types
    Comment,
    Error,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    String,
)
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement, TableElement
from rich.rule import Rule
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme as RichTheme

from ferrule.cli.talk.text import Theme, as_theme, harmless
from ferrule.output import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_ENDED_BY_BLANK = frozenset({"paragraph_open", "heading_open", "hr", "fence", "table_open"})
_MOST_WAITING = 64
"""So many lines of one block are looked at again whenever a line comes; of a longer one when it has grown by much."""
_MOST_DEFINITIONS = 4096


@cache
def parser() -> "MarkdownIt":
    """CommonMark with tables and strikethrough. Angle brackets are words: `List<String>` is no markup here."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


@cache
def _label() -> re.Pattern[str]:
    return re.compile(r" {0,3}\[([^\[\]\n]{1,200})\]")


class Blocks:
    """One answer's text. `feed` gives back the blocks that are finished, `end` what is left."""

    def __init__(self) -> None:
        self._waiting = ""
        self._definitions = ""
        self._used: set[str] = set()
        """What stands in brackets in blocks that are printed already: some of it may name links."""
        self._looked_at = 0

    @property
    def open_block(self) -> str:
        return self._waiting

    def feed(self, text: str) -> list[str]:
        """More text; the blocks that it has finished."""
        self._waiting += text
        if "\n" not in text:
            return []
        return self._cut()

    def end(self) -> list[str]:
        """There is no more: all that is left, block by block."""
        if self._waiting and not self._waiting.endswith("\n"):
            self._waiting += "\n"
        self._looked_at = 0
        out = self._cut()
        left, self._waiting = self._waiting, ""
        lines = left.split("\n")
        spans = [token.map for token in parser().parse(left) if token.level == 0 and token.map]
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        out += self._define(lines[:start])
        block = "\n".join(lines[start:end]).strip("\n")
        out += [self._with_definitions(block + "\n")] if block.strip() else []
        return out + self._define(lines[end:])

    def drop(self) -> None:
        """What was not finished was never said."""
        self._waiting = ""
        self._looked_at = 0

    def _cut(self) -> list[str]:
        whole, _, begun = self._waiting.rpartition("\n")
        lines = (whole + "\n").split("\n")[:-1]
        if len(lines) > _MOST_WAITING and len(lines) - self._looked_at < len(lines) // 4:
            return []
        self._looked_at = len(lines)
        tokens = [token for token in parser().parse(whole + "\n") if token.level == 0 and token.map]
        starts = [token.map[0] for token in tokens if token.map]
        if not starts:
            return []
        ends = [*starts[1:], starts[-1]]
        last = tokens[-1]
        assert last.map is not None
        if last.type in _ENDED_BY_BLANK and last.map[1] < len(lines) and not lines[-1].strip():
            ends[-1] = len(lines)
        out, done = [], 0
        for token, start, end in zip(tokens, starts, ends, strict=True):
            if end == start:
                break
            out += self._define(lines[done:start])
            assert token.map is not None
            done = min(token.map[1], end)
            out.append(self._with_definitions("\n".join(lines[start:done]).rstrip() + "\n"))
        if out:
            while done < len(lines) and not lines[done].strip():
                done += 1
            self._waiting = "".join(row + "\n" for row in lines[done:]) + begun
            self._looked_at = 0
        return out

    def _with_definitions(self, block: str) -> str:
        if "[" in block and len(self._used) < _MOST_DEFINITIONS:
            self._used.update(label.casefold() for label in _label().findall(block))
        return self._definitions + block

    def _define(self, rows: list[str]) -> list[str]:
        """Rows between two blocks are blank or define links, which the blocks that come after may use.

        What a link in an earlier block leads to was not known when that was printed: it is said now.
        """
        text = "\n".join(rows).strip()
        if text and len(self._definitions) + len(text) < _MOST_DEFINITIONS:
            self._definitions += text + "\n\n"
        late = [row.strip() for row in rows if (found := _label().match(row)) and found[1].casefold() in self._used]
        return ["  \n".join(f"`` {row} ``" for row in late) + "\n"] if late else []


_STYLES = {
    "markdown.code": "cyan",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold dim",
    "markdown.h6": "dim",
    "markdown.h7": "dim italic",
    "markdown.code_block": "",
    "markdown.block_quote": "italic dim",
    "markdown.hr": "dim",
    "markdown.item.bullet": "cyan",
    "markdown.item.number": "cyan",
    "markdown.link": "cyan",
    "markdown.link_url": "dim underline",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}
_CODE = {
    Comment: "dim italic",
    Keyword: "blue",
    Keyword.Type: "cyan",
    Operator.Word: "magenta",
    Name.Builtin: "cyan",
    Name.Function: "green",
    Name.Class: "green",
    Name.Namespace: "cyan",
    Name.Decorator: "magenta",
    Name.Tag: "blue",
    Name.Attribute: "cyan",
    Name.Exception: "red",
    String: "yellow",
    Number: "magenta",
    Generic.Deleted: "red",
    Generic.Inserted: "green",
    Generic.Heading: "bold",
    Generic.Subheading: "cyan",
    Generic.Error: "red",
    Error: "red",
}
"""The parts of code, in the styles of a theme."""
_MOST_TAIL_LINES = 60
_END = re.compile("(?:\x1b\\[[0-9;]*m| )+$")
"""Rich fills rows up with blanks: on a terminal that is made narrower, they would become rows of their own."""


class _Code(CodeBlock):
    """Code from the first column on the terminal's own background, so that a selection copies the code and no more."""

    wraps = False

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_Code":
        code = cls((token.info or "").partition(" ")[0] or "text", markdown.code_theme)
        code.wraps = isinstance(markdown, _Shown) and markdown.wraps
        return code

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n").expandtabs(4)
        colours = ANSISyntaxTheme({part: console.get_style(f"code.{part}") for part in _CODE})
        syntax = Syntax(code, self.lexer_name, theme=colours, word_wrap=True, background_color="default")
        if self.wraps or options.max_width < console.width:  # in a list, or to be counted in rows
            yield syntax
            return
        # The terminal breaks long lines: what it has broken itself, it copies as one line.
        text = syntax.highlight(code)
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        yield text


class _Heading(Heading):
    """All of them begin at the left."""

    LEVEL_ALIGN: ClassVar = {}


class _Rule(HorizontalRule):
    """A line of its own, and nothing below it."""

    new_line = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr")


class _Rows(TableElement):
    """A table without an edge: rich would draw a blank row above it, below the one that parts it from the text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class _Shown(Markdown):
    """Markdown whose words cannot steer the screen, also not by way of entities such as `&#x202e;`."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "hr": _Rule,
        "table_open": _Rows,
    }

    def __init__(self, source: str, *, wraps: bool = False) -> None:
        """Where it `wraps`, long lines of code are broken too."""
        self.wraps = wraps
        # Addresses are written out: what a link says and where it leads are both the model's.
        super().__init__("", hyperlinks=False)
        self.parsed = parser().parse(clean(source))
        for token in self.parsed:
            _disarm(token)


def _disarm(token: Token) -> None:
    token.content = clean(token.content)
    token.attrs = {name: clean(value) if isinstance(value, str) else value for name, value in token.attrs.items()}
    for child in token.children or ():
        _disarm(child)


class Drawer:
    """Draws for a terminal of one kind."""

    def __init__(self, *, colour: Theme | bool, steer: bool = True) -> None:
        """Without `steer` there is no escape sequence at all."""
        self._theme = as_theme(colour)
        self._steer = steer
        styles = {name: self._theme.rich(style) for name, style in _STYLES.items()}
        styles |= {f"code.{part}": self._theme.rich(style) for part, style in _CODE.items()}
        self._styles = RichTheme({**styles, "thought": self._theme.rich("dim italic")})

    def markdown(self, source: str, width: int, *, dim: bool = False, wraps: bool = False) -> str:
        """A block, or several, as rows that end in newlines. Long lines of code are broken only where it `wraps`."""
        sheet = io.StringIO()
        console = Console(
            file=sheet,
            width=max(20, width),
            force_terminal=self._steer,
            color_system=self._theme.depth if self._steer else None,
            no_color=not self._theme,
            legacy_windows=False,
            highlight=False,
            emoji=False,
            theme=self._styles,
            _environ={},
        )
        shown = Text(clean(source), style="thought") if dim else _Shown(source, wraps=wraps)
        console.print(shown, end="", crop=False)
        rows = _trim_rows([_END.sub(_reset, row) for row in sheet.getvalue().split("\n")])
        return harmless("\n".join(rows) + "\n") if rows else ""

    def tail(self, source: str, width: int, most_rows: int) -> list[str]:
        """The last rows of an unfinished block; however long it is, only its end is drawn."""
        if not source.strip() or most_rows <= 0:
            return []
        lines = source.split("\n")
        is_code = lines[0].lstrip().startswith(("```", "~~~"))
        # Each line of code takes a row at least; several lines of prose may share one.
        most = most_rows + 1 if is_code else _MOST_TAIL_LINES
        if len(lines) > most + 1:
            lines = [*lines[:is_code], *lines[-most:]]
        rows = self.markdown("\n".join(lines)[-8192:], width, wraps=True).split("\n")[:-1]
        return rows[-most_rows:]


def _reset(end: re.Match[str]) -> str:
    return "\x1b[0m" if "\x1b" in end[0] else ""


def _trim_rows(rows: list[str]) -> list[str]:
    """Without blank rows at the beginning and at the end."""
    full = [at for at, row in enumerate(rows) if row not in {"", "\x1b[0m"}]
    return rows[full[0] : full[-1] + 1] if full else []


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
