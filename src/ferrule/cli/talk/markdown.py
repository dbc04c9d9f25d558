"""Markdown for a terminal, drawn by Rich: finished blocks whole, an unfinished one as far as it can be seen."""

import io
import re
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from ferrule.cli.talk.blocks import parser
from ferrule.cli.talk.line import harmless
from ferrule.output.clean import clean

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.block_quote": "italic dim",
        "markdown.hr": "dim",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.link": "cyan",
        "markdown.link_url": "dim underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_MOST_TAIL_LINES = 60
_END = re.compile("(?:\x1b\\[[0-9;]*m| )+$")
"""Rich fills rows up with blanks: on a terminal that is made narrower, they would become rows of their own."""


class _Code(CodeBlock):
    """Code on the terminal's own background: a box in another colour fits only half of all terminals."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        syntax = Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")
        yield Padding(syntax, (0, 0, 0, 2))


class _Heading(Heading):
    """All of them begin at the left."""

    LEVEL_ALIGN: ClassVar = {}


class _Rule(HorizontalRule):
    """A line of its own, and nothing below it."""

    new_line = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr")


class _Shown(Markdown):
    """Markdown whose words cannot steer the screen, also not by way of entities such as `&#x202e;`."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "hr": _Rule,
    }

    def __init__(self, source: str) -> None:
        # Addresses are written out: what a link says and where it leads are both the model's.
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
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

    def __init__(self, *, colour: bool, steer: bool = True) -> None:
        """Without `steer` there is no escape sequence at all."""
        self._colour = colour
        self._steer = steer

    def markdown(self, source: str, width: int, *, dim: bool = False) -> str:
        """A block, or several, as rows that end in newlines."""
        sheet = io.StringIO()
        console = Console(
            file=sheet,
            width=max(20, width),
            force_terminal=self._steer,
            color_system="standard" if self._steer else None,
            no_color=not self._colour,
            legacy_windows=False,
            highlight=False,
            emoji=False,
            theme=_THEME,
            _environ={},
        )
        console.print(Text(clean(source), style="dim italic") if dim else _Shown(source), end="")
        rows = _trimmed([_END.sub(_reset, row) for row in sheet.getvalue().split("\n")])
        return harmless("\n".join(rows) + "\n") if rows else ""

    def tail(self, source: str, width: int, most_rows: int) -> list[str]:
        """The last rows of an unfinished block; however long it is, only its end is drawn."""
        if not source.strip() or most_rows <= 0:
            return []
        lines = source.split("\n")
        if len(lines) > _MOST_TAIL_LINES:
            first = lines[0].lstrip()
            fence = [lines[0]] if first.startswith(("```", "~~~")) else []
            lines = [*fence, *lines[-_MOST_TAIL_LINES:]]
        rows = self.markdown("\n".join(lines)[-8192:], width).split("\n")[:-1]
        return rows[-most_rows:]


def _reset(end: re.Match[str]) -> str:
    return "\x1b[0m" if "\x1b" in end[0] else ""


def _trimmed(rows: list[str]) -> list[str]:
    """Without blank rows at the beginning and at the end."""
    full = [at for at, row in enumerate(rows) if row not in {"", "\x1b[0m"}]
    return rows[full[0] : full[-1] + 1] if full else []
