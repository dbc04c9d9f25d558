"""Build the words, redirections and simple commands of a command line from its syntax tree.

A word is expanded only if its value is certain before anything runs. Tokens of the tree are checked against
bash's own rules for the end of a token. Wrappers such as `timeout 5`, `nice`, `nohup` and `time` are taken off
the front of a command.

Commands that change how later ones of the same line run are a doubt about the whole line, because the later words
no longer tell what those commands do.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import tree_sitter
import tree_sitter_bash

from ferrule.system.environment import is_telling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node


class Word(NamedTuple):
    """One word of a command."""

    text: str
    """What the program is given, quotes removed, where that is known; otherwise as it was written."""
    known: bool = True
    """Is it exactly one word, and exactly this one, whatever the shell expands?"""
    start: str = ""
    """Where it is not known: the literal beginning, such as `--output=` or `src/`."""
    single: bool = False
    """Where it is not known: does it stay one word all the same, as `"$name.txt"` does? Always so where it is known."""
    glob: bool = False
    """Is it a pattern of file names, and nothing else about it unknown, as in `src/*.py`?"""
    told: bool = False
    """Where it is not known: does all that the shell puts in come from the line itself or from variables that anybody
    may see? Then it tells nothing that the line's own commands do not."""
    stream: bool = False
    """Is it the output of commands of the line under the name of a file, as in `<(sort a)`?"""


class Redirect(NamedTuple):
    """One redirection."""

    operator: str
    """`>`, `>>`, `>|`, `&>`, `&>>`, `<`, `<>`, `<<`, `<<<`, `>&`, `<&`."""
    target: Word
    """A file, a descriptor's number or `-`, or the text that is given as input."""

    @property
    def writes(self) -> bool:
        """Does it open a file for writing? The copy of a descriptor does not."""
        if self.operator in {">&", "<&"}:
            return not (self.target.known and self.target.text.rstrip("-").isdigit()) and self.target.text != "-"
        return ">" in self.operator


class Simple(NamedTuple):
    """One simple command: assignments, words, redirections."""

    words: tuple[Word, ...]
    source: str
    """As it was written, without its redirections."""
    redirects: tuple[Redirect, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()
    cwd: str | None = None
    """The folder that it would run in; None where that is not certain."""
    inside: tuple["Simple", ...] = ()
    """The commands that it runs by itself: of `env`, `sudo`, `xargs`, `sh -c`, `find -exec`, outermost first."""
    stripped: tuple[Word, ...] = ()
    """The words without what only changes how it runs (`timeout 5`, `nice`, `nohup`, `time`); else the same words."""
    fed: tuple["Simple", ...] = ()
    """For `xargs`: the simple commands before it in its pipe, where there are no others."""
    heard: tuple["Simple", ...] = ()
    """In a loop: the simple commands whose output it goes over, where there are no others."""

    @property
    def literal(self) -> bool:
        """Is every word known? Then `words` is what the program is given."""
        return all(word.known for word in self.words)


class CommandLine(NamedTuple):
    """A whole command line."""

    commands: tuple[Simple, ...]
    """In the order in which they stand, those in substitutions and loops among them."""
    doubts: tuple[str, ...] = ()
    """Why the line as a whole cannot be decided, each as a sentence without a full stop: `it does not parse`."""
    roots: tuple[str, ...] = ()
    """The folders of the workspace, the first one its own."""


# Each of these can put another program, another value or another descriptor under what follows.
CHANGES = frozenset(
    {
        *("alias", "unalias", "export", "declare", "typeset", "local", "readonly", "unset", "set", "shopt", "enable"),
        *("trap", "eval", "source", ".", "exec", "hash", "bind", "complete", "compgen", "compopt", "ulimit", "umask"),
        *("mapfile", "readarray", "getopts", "let", "fc", "coproc", "history", "suspend", "logout"),
    }
)
LATER = "`{}` changes how later commands run"
_SUBSCRIPT = "`{}` evaluates a name that is not a plain one"


@cache
def _own_name() -> re.Pattern[str]:
    return re.compile(r"(?!.*(?:proxy|npm_config|histchars|auto_resume))[a-z][a-z0-9_]*")


def harmless_name(name: str) -> bool:
    """Is a variable of this name one that neither bash nor a program looks at?

    A name that is in the environment already would be handed on to programs with its new value.
    """
    return _own_name().fullmatch(name) is not None and name not in os.environ


_OBEYED = (
    r"(?:BASH|COMP|HIST|READLINE|LC|MAIL|PROMPT|OPT|EPOCH|LD|DYLD|GIT|SSH|GPG|NPM|NODE|PYTHON|PIP|UV|CARGO|RUST|GO|JAVA|JDK"
    r"|MAKE|SSL|CURL|HTTP|HTTPS|ALL|NO|FTP|XDG|DOCKER|TERM|TMP|TEMP|PERL|RUBY|GEM|BUNDLE|FERRULE|CLAUDE|GCC|ZIP|XZ|TAR|GREP"
    r"|LESS|RIPGREP|AWK|POSIX)(?:_?[A-Z0-9_]*)"
    r"|CDPATH|COLUMNS|COPROC|DIRSTACK|ENV|EUID|UID|EXECIGNORE|FCEDIT|FIGNORE|FUNC\w*|GLOB\w*|GROUPS|HOME|HOST\w*|IFS"
    r"|IGNOREEOF|INPUTRC|INSIDE_EMACS|EMACS|LANG\w*|LINENO|LINES|MACHTYPE|MAPFILE|OLDPWD|OSTYPE|PATH|PIPESTATUS|PPID|PS\d|PWD"
    r"|RANDOM|SRANDOM|REPLY|SECONDS|SHELL|SHELLOPTS|SHLVL|TIMEFORMAT|TMOUT|CHILD_MAX|USER|LOGNAME|PAGER|EDITOR|VISUAL|CI|TZ"
)
"""Names in capitals that bash looks at, or that may be in a command's environment though they are not in ours."""


def may_be_set(name: str) -> bool:
    """Is a variable of this name the line's own business: one that is not handed on, and that bash does not look at?"""
    if harmless_name(name):
        return True
    own = re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and not re.fullmatch(_OBEYED, name)
    return bool(own) and name not in os.environ


def assignment_doubt(name: str) -> str:
    """Why an assignment that stays is a doubt, or nothing."""
    return "" if may_be_set(name) else f"it sets {name}, which later commands may obey"


def stops_early(words: Sequence[Word]) -> bool:
    """Is it a `set` that only makes the line stop where something fails? With `-x` it would tell variables."""
    texts = [word.text if word.known else "" for word in words]
    return re.fullmatch(r"set(?: -[eu]+| -[eu]*o (?:pipefail|errexit|nounset))+", " ".join(texts)) is not None


def effect(words: Sequence[Word]) -> str:
    """Why a command is a doubt about the whole line, or nothing."""
    if not words or not words[0].known:
        return ""
    name, rest = words[0].text, words[1:]
    if stops_early(words):
        return ""
    if name in CHANGES:
        return LATER.format(name)
    match name:
        case "read":
            return _read(rest)
        case "printf" if rest and rest[0].known and rest[0].text.startswith("-v"):
            return LATER.format("printf -v")
        case "test" | "[" if any(word.known and word.text in {"-v", "-R"} for word in rest):
            return _SUBSCRIPT.format(name)
        case "wait" if any(not word.known or word.text.startswith("-p") for word in rest):
            return LATER.format("wait -p")
    return ""


def _read(rest: Sequence[Word]) -> str:
    names: list[str] = []
    skip = False
    for word in rest:
        if skip:
            skip = False
        elif not word.known:
            return LATER.format("read")
        elif word.text.startswith("-") and not names:
            if "a" in word.text:
                return LATER.format("read -a")
            skip = word.text[-1] in "dinNptu"
        else:
            names.append(word.text)
    return next((why for name in names if (why := assignment_doubt(name))), "")


AMBIGUOUS = "bash may read it in another way"
COMPLICATED = "it uses an expansion that is too complicated to follow"
UNKNOWN = "it uses a construct that is not understood"

_LITERAL_DOLLAR = rb"\$(?=[ \t\n'/.|)%^,+=\]:;&<>~]|$)"
_PATTERNS = {
    "gap": rb"(?:[ \t\n]|\\\n)*",
    "word": rb"(?!#)(?:[^ \t\n\\'\"`$&|;<>()]|\\[^\n])+",
    "number": rb"-?\d+(?:#[0-9A-Za-z@_]+)?",
    "raw_string": rb"'[^']*'",
    "ansi_c_string": rb"\$'(?:[^'\\]|\\.)*'",
    "simple_expansion": rb"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])",
    # Only what cannot hide a quote or a bracket, does not assign, and does not read a value as code.
    "expansion": rb"\$\{(?:#?[A-Za-z_]\w*|[0-9@*#?$!-])(?:\[[@*]\])?"
    rb"(?:(?::?[-+?]|##?|%%?|//?|\^\^?|,,?)[^'\"`\\{}()\[\]<>&|;]*)?\}",
    # No brackets: `$((a) || (b))` is a list of commands.
    "arithmetic_expansion": rb"\$\(\([\w \t+\-*/%<>=!&|^~?:,$]*\)\)",
    "text": rb"(?:[^\"\\`$]|\\.|" + _LITERAL_DOLLAR + rb")*",
    "variable_name": rb"[A-Za-z_][A-Za-z0-9_]*",
    "special_variable_name": rb"[0-9@*#?$!-]",
    "file_descriptor": rb"\d+",
    "test_operator": rb"-[A-Za-z]+",
    "regex": rb"[^ \t\n\\'\"`&|;<>(){}]+",
    "extglob_pattern": rb"(?!#)(?:[^ \t\n\\'\"`$&|;<>()]|\\[^\n])+",
    "brace_expression": rb"\{-?\w+\.\.-?\w+(?:\.\.-?\w+)?\}",
    "heredoc_start": rb"[A-Za-z0-9_.-]+|'[^'\n]*'|\"[A-Za-z0-9_ .-]*\"|\\[A-Za-z0-9_]+",
    "comment": rb"#[^\n]*",
    "heredoc": rb"(?:[^\\`$]|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}|\\[^\n]|\$(?![A-Za-z0-9_{(\[@*#?$!'\"-]))*",
}


@cache
def pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(_PATTERNS[name], re.DOTALL)


def begins(node: "Node", source: bytes) -> int:
    """Where a token begins: inside of quotes the tree counts the blanks before an expansion to it."""
    start = node.start_byte
    while source[start : start + 1] in {b" ", b"\t", b"\n"} and start < node.end_byte:
        start += 1
    return start


class Tokens:
    """The tokens of one line, one by one."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.doubts: dict[str, None] = {}
        self.inner: list[Node] = []
        """Substitutions that were met, and whose commands are not looked at yet."""

    def doubt(self, why: str = AMBIGUOUS) -> None:
        self.doubts[why] = None

    def atom(self, node: "Node", *, quoted: bool = False) -> None:
        """Is the token one that bash too would begin and end just here?"""
        # Only between quotes are blanks before it a part of the text; elsewhere they would end a command.
        start = begins(node, self.source) if quoted else node.start_byte
        text = self.source[start : node.end_byte]
        match node.type:
            case "concatenation":
                self._concatenation(node)
            case "string":
                self._string(node, text)
            case "command_substitution" | "process_substitution":
                self._substitution(node, text)
            case "variable_assignment":
                self._assignment(node)
            case "simple_expansion":
                self._variable(node, text)
            case "expansion" | "arithmetic_expansion":
                if not pattern(node.type).fullmatch(text) or b"$(" in text[2:] or b"`" in text:
                    self.doubt(COMPLICATED)
            case "comment" if self.source[node.end_byte : node.end_byte + 1] not in {b"", b"\n"}:
                self.doubt()
            case kind if kind in _PATTERNS:
                self._match(kind, text)
            case _:
                self.doubt(COMPLICATED)

    def _concatenation(self, node: "Node") -> None:
        end = node.start_byte
        for part in node.children:
            if part.start_byte != end or part.type == "variable_assignment":
                self.doubt()
            self.atom(part)
            end = part.end_byte

    def _substitution(self, node: "Node", text: bytes) -> None:
        # Inside of backquotes a backslash, a quote and a comment each mean something else than elsewhere.
        if text.startswith(b"$((") or (text.startswith(b"`") and any(mark in text for mark in (b"\\", b"#", b'"'))):
            self.doubt(COMPLICATED)
        if not text.startswith((b"$(", b"`", b"<(", b">(")):
            self.doubt()
        self.inner.append(node)

    def _variable(self, node: "Node", text: bytes) -> None:
        following = self.source[node.end_byte : node.end_byte + 1]
        is_name = text[1:2].isalpha() or text[1:2] == b"_"
        if is_name and (following.isalnum() or following == b"_"):
            self.doubt()
        self._match(node.type, text)

    def _match(self, kind: str, text: bytes) -> None:
        if not pattern(kind).fullmatch(text):
            self.doubt()

    def _string(self, node: "Node", text: bytes) -> None:
        if len(text) < 2 or not text.startswith(b'"') or not text.endswith(b'"'):
            self.doubt()
            return
        at = node.start_byte + 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            self._match("text", self.source[at : begins(child, self.source)])
            self.atom(child, quoted=True)
            at = child.end_byte
        self._match("text", self.source[at : node.end_byte - 1])

    def _assignment(self, node: "Node") -> None:
        name, *rest = node.children
        end = name.end_byte
        if name.type != "variable_name":
            self.doubt(COMPLICATED)
        for part in rest:
            if part.start_byte != end:
                self.doubt()
            if part.is_named:
                self.atom(part)
            end = part.end_byte

    def here_document(self, node: "Node") -> None:
        """Does the text of the here-document begin and end where bash says it does?"""
        parts = {child.type: child for child in node.children}
        start, body, end = parts.get("heredoc_start"), parts.get("heredoc_body"), parts.get("heredoc_end")
        if start is None or end is None:
            self.doubt()
            return
        mark = self.source[start.start_byte : start.end_byte]
        strips = "<<-" in parts
        quoted = mark[:1] in b"'\"\\"
        mark = mark.strip(b"'\"\\")
        newline = self.source.find(b"\n", start.end_byte)
        at = newline + 1
        before = end.start_byte if body is None else body.start_byte
        # The tree leaves blanks at the beginning out of the text.
        if newline < 0 or self.source[at:before].strip(b" \t\n"):
            self.doubt()
        line_end = -1
        while at < len(self.source):
            found = self.source.find(b"\n", at)
            line_end = len(self.source) if found < 0 else found
            line = self.source[at:line_end]
            if (line.lstrip(b"\t") if strips else line) == mark:
                break
            at = line_end + 1
        if line_end != end.end_byte or at > end.start_byte:
            self.doubt()
        text = self.source[newline + 1 : at]
        if not quoted:
            self._read_heredoc_body(body, text, newline + 1, at)

    def _read_heredoc_body(self, body: "Node | None", text: bytes, at: int, end: int) -> None:
        if b"\\\n" in text:
            self.doubt()
        for child in body.named_children if body else ():
            if child.type == "heredoc_content":
                continue
            if not pattern("heredoc").fullmatch(self.source[at : begins(child, self.source)]):
                self.doubt(COMPLICATED)
            self.atom(child, quoted=True)
            at = child.end_byte
        if not pattern("heredoc").fullmatch(self.source[at:end]):
            self.doubt(COMPLICATED)


# One mark per character of a word beside the character itself: what is quoted, and what is not known.
QUOTED = "q"
KEPT = "Q"
"""Unknown, and one piece of one word whatever it becomes."""
SPLIT = "$"
"""Unknown, and any number of words."""

UNKNOWN_WORD = "\0"
"""Stands for what is not known, so that characters and marks stay side by side."""
TOLD = "\1"
"""The same for what is not known and may be told."""

OPEN = frozenset(
    {
        *("HOME", "PWD", "OLDPWD", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "HOSTNAME", "CI"),
        *("HOSTTYPE", "OSTYPE", "MACHTYPE", "UID", "EUID", "PPID", "RANDOM", "SECONDS", "EPOCHSECONDS", "LINENO"),
        *("SHLVL", "BASH_VERSION", "VIRTUAL_ENV", "NODE_ENV", "EDITOR", "PAGER", "COLUMNS", "LINES", "TZ", "LC_ALL"),
    }
)
"""Variables of the environment whose values anybody may see."""


class LineVariables(NamedTuple):
    """What is known of a line's variables at one place."""

    values: Mapping[str, Word] = {}
    """What they stand for, where that is certain."""
    closed: bool = True
    """May a variable that the line sets hold what it should not tell?"""
    own: frozenset[str] = frozenset()
    """The names in capitals that the line sets itself."""

    def tells(self, name: str) -> bool:
        if name in OPEN or re.fullmatch(r"[\d?#$!]", name):
            return True
        return not self.closed and (harmless_name(name) or name in self.own)


NO_VARIABLES = LineVariables()


def uses_private_variables(source: bytes) -> bool:
    """Does the line use a variable that it does not set itself, and that not everybody may see?"""
    names = {name.decode() for name in re.findall(rb"\$\{?[#!]?([A-Za-z_]\w*)", source)} - own(source)
    return any(name not in OPEN and not harmless_name(name) for name in names)


def own(source: bytes) -> frozenset[str]:
    """The names in capitals that the line sets before it uses them, and that no secret would have."""
    found: set[str] = set()
    for match in re.finditer(rb"(?:^|[;&|({\n]|\b(?:do|then|else))\s*([A-Z][A-Z0-9_]*)=", source):
        name = match[1]
        before = re.search(rb"\$\{?[#!]?" + name + rb"(?!\w)", source[: match.end()])
        value = re.match(rb"[^;&|\n]*\$\{?" + name + rb"(?!\w)", source[match.end() :])
        if not before and not value and may_be_set(name.decode()) and not is_telling(name.decode()):
            found.add(name.decode())
    return frozenset(found)


_SIMPLE_ESCAPES = dict(zip("ntrabeEfv\\'\"?", "\n\t\r\a\b\x1b\x1b\f\v\\'\"?", strict=True))


@cache
def _plain() -> re.Pattern[bytes]:
    return re.compile(rb"[A-Za-z0-9_./:@%+,^=-]+")


@cache
def _braces() -> re.Pattern[str]:
    return re.compile(r"\{.*(?:,|\.\.|[$Q]).*\}", re.DOTALL)


@cache
def _codes() -> re.Pattern[str]:
    return re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)


def home() -> str | None:
    """The folder that `~` stands for."""
    folder = os.path.expanduser("~")
    return os.path.normpath(folder) if os.path.isabs(folder) else None


def word_of(node: "Node", source: bytes, *, assigned: bool = False, variables: LineVariables = NO_VARIABLES) -> Word:
    """The word of a node; `assigned` where it is the value of an assignment."""
    raw = source[node.start_byte : node.end_byte]
    if node.type in {"word", "number"} and _plain().fullmatch(raw):
        return Word(raw.decode(), single=True)
    if node.type == "process_substitution" and raw.startswith(b"<("):
        # Bash puts the name of an open file in its place, which never begins with a dash.
        return Word(raw.decode(errors="replace"), known=False, start="/dev/fd/", single=True, told=True, stream=True)
    if raw.startswith(b'"') and not assigned and (found := re.fullmatch(rb'"\$(?:(\w+)|\{(\w+)\})"', raw)):
        value = variables.values.get((found[1] or found[2]).decode())
        if value is not None and value.glob:  # each of the files that it finds, one at a time
            return value
    pieces = list(_pieces(node, source, variables))
    shape = "".join(mark for _, mark in pieces)
    text = "".join(character for character, _ in pieces)
    written = raw.decode(errors="replace")
    unknown = [index for index, mark in enumerate(shape) if mark in {SPLIT, KEPT}]
    single = SPLIT not in shape
    if shape.startswith("~"):
        folder = home()
        # As it is written: even an empty pair of quotes keeps bash from expanding it.
        if folder is not None and (written == "~" or written.startswith("~/")):
            # Only what follows is looked at further: the home's own name is not expanded again.
            text, shape = folder + text[1:], QUOTED * len(folder) + shape[1:]
            unknown = [index + len(folder) - 1 for index in unknown]
        else:
            unknown.append(0)
    if re.search("[=:]~" if assigned or "=" in shape else "=~", shape):
        unknown.append(shape.index("~"))
    glob = not assigned and re.search(r"[*?\[]", shape) if shape != "[" else None
    braces = None if assigned else _braces().search(shape)
    # An unquoted blank cannot be inside of a word: the reading is not bash's.
    if re.search(r"[\s\\'\"`&|;<>()]", shape):
        unknown.append(0)
        single = False
    told = all(text[index] == TOLD for index in unknown)
    only_glob = glob is not None and not unknown and not braces
    unknown += [found.start() for found in (glob, braces) if found]
    if not unknown:
        return Word(text, single=True)
    return Word(
        written,
        known=False,
        start=text[: min(unknown)],
        single=(single or assigned) and not glob and not braces,
        glob=only_glob,
        told=told and not glob,
    )


def _pieces(node: "Node", source: bytes, variables: LineVariables) -> "Iterator[tuple[str, str]]":
    for part in node.children if node.type == "concatenation" else [node]:
        raw = source[part.start_byte : part.end_byte].decode(errors="replace")
        match part.type:
            case "word" | "number" | "extglob_pattern" | "variable_name" | "test_operator" | "brace_expression":
                yield from _bare(raw)
            case "raw_string":
                yield from ((character, QUOTED) for character in raw[1:-1])
            case "ansi_c_string":
                decoded = ansi(raw[2:-1])
                yield from [(UNKNOWN_WORD, KEPT)] if decoded is None else [(character, QUOTED) for character in decoded]
            case "string":
                yield from _double(part, source, variables)
            case "arithmetic_expansion":
                yield TOLD, KEPT
            case "process_substitution":
                yield UNKNOWN_WORD, KEPT
            case _:
                value, mark = _expand(part, source, variables)
                # Unquoted, a value is split and expanded again: only plain ones stay what they are.
                if value is not None and _plain().fullmatch(value.encode()):
                    yield from ((character, QUOTED) for character in value)
                else:
                    yield mark, SPLIT


def _expand(node: "Node", source: bytes, variables: LineVariables) -> tuple[str | None, str]:
    """The value of an expansion, where it is certain, and the mark of what is not."""
    raw = source[begins(node, source) : node.end_byte]
    if node.type == "command_substitution" and raw == b"$(nproc)":
        return str(os.cpu_count() or 1), TOLD
    if node.type == "command_substitution":
        return None, TOLD  # what its commands tell is decided on by themselves
    found = re.match(rb"\$\{?#?(\w+|[?#$!])", raw) if node.type in {"simple_expansion", "expansion"} else None
    if found is None:
        return None, UNKNOWN_WORD
    name = found[1].decode()
    value = variables.values.get(name)
    if value is not None and value.known:
        # What stands behind `:-` counts only where the variable is empty.
        otherwise = value.text and re.fullmatch(rb"\$\{\w+:?-[\w./]*\}", raw)
        if raw in {b"$" + found[1], b"${" + found[1] + b"}"} or otherwise:
            return value.text, UNKNOWN_WORD
    return None, TOLD if variables.tells(name) else UNKNOWN_WORD


def _bare(raw: str) -> "Iterator[tuple[str, str]]":
    characters = iter(raw)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following != "\n":
                yield following, QUOTED
        else:
            # The marks for what is unknown are letters and a dollar here.
            yield character, QUOTED if character in "qQ" else SPLIT if character == "$" else character


def _double(node: "Node", source: bytes, variables: LineVariables) -> "Iterator[tuple[str, str]]":
    at = node.start_byte + 1
    for child in node.named_children:
        if child.type == "string_content":
            continue
        yield from _in_double(source[at : begins(child, source)].decode(errors="replace"))
        many = b"@" in source[child.start_byte : child.end_byte] and child.type in {"simple_expansion", "expansion"}
        value, mark = (None, TOLD) if child.type == "arithmetic_expansion" else _expand(child, source, variables)
        if value is not None:
            yield from ((character, QUOTED) for character in value)
        else:
            yield mark, SPLIT if many else KEPT
        at = child.end_byte
    yield from _in_double(source[at : node.end_byte - 1].decode(errors="replace"))


def _in_double(raw: str) -> "Iterator[tuple[str, str]]":
    characters = iter(raw)
    for character in characters:
        if character != "\\":
            yield character, QUOTED
            continue
        following = next(characters, "")
        if following == "\n":
            continue
        if following not in '$`"\\':
            yield "\\", QUOTED
        if following:
            yield following, QUOTED


def ansi(body: str) -> str | None:
    """What is between the quotes of `$'…'`, where it is the same in every locale."""
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out.append(body[at])
            at += 1
            continue
        found = _codes().match(body, at)
        if found is None:
            return None
        octal, *hexadecimal, letter = found.groups()
        if letter is not None:
            character = _SIMPLE_ESCAPES.get(letter)
        else:
            code = int(octal, 8) if octal else int(next(digits for digits in hexadecimal if digits), 16)
            character = chr(code) if 0 < code < 127 else None
        if character is None:
            return None
        out.append(character)
        at = found.end()
    return "".join(out)


HERE = "heredoc_redirect"
REDIRECTS = frozenset({"file_redirect", HERE, "herestring_redirect"})
_PARTS = frozenset({"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor", "comment", "ERROR"})


def redirect(node: "Node", source: bytes, variables: LineVariables) -> tuple[Redirect, tuple["Node", ...]]:
    """The redirection of a node, and the words behind it: the tree hangs a command's further words on it."""
    operator = next((child.type for child in node.children if not child.is_named), "<")
    if node.type == HERE:
        extra = tuple(node.children_by_field_name("argument"))
        return Redirect("<<", _text(node, source, variables)), extra
    words = [child for child in node.named_children if child.type not in _PARTS]
    if operator.endswith("&-"):
        return Redirect(operator[:-1], Word("-", single=True)), tuple(words)
    if not words:
        # Only in a tree with errors: what it would open is not known.
        return Redirect(operator, Word("", known=False)), ()
    return Redirect(operator, word_of(words[0], source, variables=variables)), tuple(words[1:])


def _text(node: "Node", source: bytes, variables: LineVariables) -> Word:
    parts = {child.type: child for child in node.children}
    body, start = parts.get("heredoc_body"), parts.get("heredoc_start")
    if body is None or start is None:
        return Word("", single=True)
    text = source[body.start_byte : body.end_byte].decode(errors="replace")
    literal = source[start.start_byte : start.start_byte + 1] in b"'\"\\" or not any(mark in text for mark in "$`\\")
    # Commands in it are decided on by themselves.
    names = re.findall(r"(?<!\\)\$(?!\()(?:(\w+|[?#$!])|\{(\w+)\}|(.?))", text)
    told = all(not odd and variables.tells(bare or braced) for bare, braced, odd in names)
    return Word(text, known=literal, single=True, told=told and not literal)


MOST = 10
TOO_WRAPPED = "it wraps a command too many times"
GIVEN = Word("…", known=False)
"""The words that `xargs` adds from its input: any number, and any at all."""

_DURATION = r"(?:\d+(?:\.\d*)?|\.\d+)[smhd]?"
_SIGNAL = r"(?:\d+|[A-Z][A-Z0-9+-]*)"
_MODE = r"(?:L|\d+[KMG]?B?)"
# For each program: its flags that are known to be harmless, those whose value is the next word, and what must follow.
_SHAPES = {
    "timeout": (
        rf"--preserve-status|--foreground|-v|--verbose|-k{_DURATION}|--kill-after={_DURATION}|-s{_SIGNAL}|--signal={_SIGNAL}",
        {"-k": _DURATION, "--kill-after": _DURATION, "-s": _SIGNAL, "--signal": _SIGNAL},
        _DURATION,
    ),
    "time": ("-p|--", {}, ""),
    "nice": (r"-n-?\d+|--adjustment=-?\d+|-\d+|--", {"-n": r"-?\d+", "--adjustment": r"-?\d+"}, ""),
    "nohup": ("--", {}, ""),
    "stdbuf": (
        rf"-[ioe]{_MODE}|--(?:input|output|error)={_MODE}",
        {"-i": _MODE, "-o": _MODE, "-e": _MODE},
        "",
    ),
    "command": ("--", {}, ""),
    "builtin": ("--", {}, ""),
    "noglob": ("", {}, ""),
    "xargs": (
        r"-0|--null|-r|--no-run-if-empty|-t|--verbose|-[nPL]\d+|-I\{\}|-d\\n|--",
        {"-n": r"\d+", "-P": r"\d+", "-L": r"\d+", "-I": r"\{\}", "-d": r"\\n"},
        "",
    ),
}
WRAPPERS = frozenset(_SHAPES)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def strip(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The words of the command itself; None where the wrappers do not end.

    A wrapper with a flag that is not known is left on: no rule about the inner command then speaks about it.
    """
    rest = tuple(words)
    for _ in range(MOST + 1):
        inner = _inner(rest)
        if inner is None:
            return rest
        rest = inner
    return None


def _inner(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    if not words or not words[0].known or words[0].text not in _SHAPES:
        return None
    name = words[0].text
    flags, valued, operand = _SHAPES[name]
    at = 1
    while at < len(words) and words[at].known and words[at].text.startswith("-"):
        text = words[at].text
        if text in valued:
            if at + 1 >= len(words) or not _is(words[at + 1], valued[text]):
                return None
            at += 2
        elif _compile(flags).fullmatch(text):
            at += 1
            if text == "--":
                break
        else:
            return None
    if operand:
        if at >= len(words) or not _is(words[at], operand):
            return None
        at += 1
    # What follows must be the command and nothing that could be another flag.
    if at >= len(words) or not words[at].known or words[at].text.startswith("-"):
        return None
    return words[at:] if name != "xargs" else _add_xargs_operand(words[:at], words[at:])


def _add_xargs_operand(before: tuple[Word, ...], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command of `xargs` with what it adds: at the end, or with `-I` wherever the mark stands."""
    if any(word.known and word.text.startswith("-I") for word in before):
        return tuple(GIVEN if word.text == "{}" else _mark_placeholder(word) for word in words)
    return (*words, GIVEN)


def _mark_placeholder(word: Word) -> Word:
    before, mark, _ = word.text.partition("{}")
    return Word(word.text, known=False, start=before, single=True) if word.known and mark else word


def _is(word: Word, pattern: str) -> bool:
    return word.known and _compile(pattern).fullmatch(word.text) is not None


# Several tokens of bash, or one, that are one word or one part of a word.
ATOMS = frozenset(
    {
        *("word", "concatenation", "string", "raw_string", "ansi_c_string", "translated_string", "number"),
        *("simple_expansion", "expansion", "arithmetic_expansion", "command_substitution", "process_substitution"),
        *("variable_name", "special_variable_name", "file_descriptor", "test_operator", "regex", "extglob_pattern"),
        *("variable_assignment", "brace_expression", "subscript", "array", "comment"),
        *("heredoc_start", "heredoc_body", "heredoc_end"),
    }
)
SEQUENCES = frozenset(
    {
        *("program", "compound_statement", "subshell", "command_substitution", "process_substitution", "do_group"),
        *("if_statement", "elif_clause", "else_clause", "while_statement", "case_item"),
    }
)
# Newlines may stand between their parts without ending anything.
LOOSE = SEQUENCES | {
    *("for_statement", "c_style_for_statement", "case_statement", "function_definition"),
    *("test_command", "binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"),
}
TIGHT = frozenset(
    {
        *("command", "command_name", "redirected_statement", "file_redirect", "herestring_redirect"),
        *("declaration_command", "unset_command", "negated_command", "variable_assignments"),
    }
)
_EXPRESSIONS = frozenset(
    {"binary_expression", "unary_expression", "parenthesized_expression", "negation_expression"},
)
# No whole command may hang directly below these: bash would not read one there.
WORDS_ONLY = _EXPRESSIONS | {"command", "test_command", "declaration_command", "unset_command", "file_redirect"}
PARTS_OF_COMMANDS = ATOMS | _EXPRESSIONS | {"command_name", "file_redirect", "herestring_redirect"}
CONTAINERS = LOOSE | TIGHT | {"list", "pipeline", "heredoc_redirect"}

OPERATORS = frozenset(
    {
        *(b";", b"&", b"&&", b"||", b"|", b"|&", b"(", b")", b";;", b";&", b";;&"),
        *(b"<", b">", b">>", b">|", b"&>", b"&>>", b"<&", b">&", b"<&-", b">&-", b"<<", b"<<-", b"<<<"),
    }
)
KEYWORDS = frozenset(
    {
        *(b"if", b"then", b"elif", b"else", b"fi", b"for", b"select", b"in", b"do", b"done", b"while", b"until"),
        *(b"case", b"esac", b"function", b"{", b"}", b"!", b"[", b"]", b"[[", b"]]"),
        *(b"declare", b"typeset", b"export", b"readonly", b"local", b"unset", b"unsetenv"),
        # Inside of `[[ ]]` and `[ ]`.
        *(b"=", b"==", b"!=", b"=~", b"-a", b"-o", b"+", b"-", b"<=", b">="),
    }
)
RESERVED = frozenset(
    {
        *(b"if", b"then", b"elif", b"else", b"fi", b"for", b"select", b"in", b"do", b"done", b"while", b"until"),
        *(b"case", b"esac", b"function", b"{", b"}", b"!", b"[[", b"]]", b"time", b"coproc"),
    }
)
# The grammar's scanner asks the C library whether what follows `{` is a digit, which for a character above U+00FF
# reads memory that is not its own: most often it is told nonsense, and sometimes the process dies.
_WIDE_IN_BRACE = re.compile(rb"(\{[0-9]*(?:\.\.[0-9]*)?)([\xc4-\xf4][\x80-\xbf]+)")


@cache
def _language() -> "Language":
    # Loading the grammar is for the first command line to pay.

    return tree_sitter.Language(tree_sitter_bash.language())


def tree(source: bytes) -> "Node":
    """Return the root of the line's tree; its offsets are those of `source`, which is UTF-8."""
    return tree_sitter.Parser(_language()).parse(_WIDE_IN_BRACE.sub(_narrow, source)).root_node


def _narrow(found: re.Match[bytes]) -> bytes:
    """Return what was found with a Latin character of the same kind and length for the wide one."""
    letter = "\u00e9" if found[2].decode().isalpha() else "\u00d7"
    return found[1] + letter.encode().ljust(len(found[2]), b"x")
