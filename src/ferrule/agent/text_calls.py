"""Recognize tool calls and file edits that a model writes as text in its answer.

A call in text is made if the model means it as one; otherwise one message tells the model how to make it. A code
block that holds a whole file, or definitions of it, counts as an edit.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple, Protocol

from ferrule.core.call import Call
from ferrule.core.content import Text
from ferrule.core.errors import BadArguments, ToolFailure, near
from ferrule.wire import Definition, Result, Turn
from ferrule.wire.text_calls import CallBlock, TextCall, example, find, find_leading_calls, find_trailing_calls

FORM = (
    "A file that the user shows you is changed by your answer: write its name, and one code block that holds all of "
    "the new file. Write every line out: what you leave out is deleted. For example:\n\n"
    "calc.py\n```\ndef add(a, b):\n    return a + b\n```"
)
"""How a model changes a file without a call: small ones copy a file better than they write JSON."""
SAME = (
    "[Your code block is {name} as it is: nothing was changed. Find the line that is wrong, and write the file with "
    "that line changed.]"
)
LEFT_OUT = "[{name} was not changed: lines of it are left out in your code block. Write all of the new file out.]"

_SAME_WHY = "the file that it wrote out is the file as it is."
_LEFT_OUT_WHY = "lines of the file were left out."

_BLOCK = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})([^\n`]*)\n(.*?)(?:^[ ]{0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_OTHERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bash", "sh", "shell", "console", "zsh"), (".sh", ".bash", ".zsh", "")),
    **dict.fromkeys(("text", "txt", "output", "plaintext", "tool_response"), (".txt", ".md", "")),
    **dict.fromkeys(("diff", "patch"), (".diff", ".patch")),
    "json": (".json",),
}
"""Languages of blocks that hold something else than a file, unless its name ends so."""
_DEFINITION = re.compile(
    r"(?P<blank>[ \t]*)(?:(?:export|default|async|public|private|protected|static|final|abstract|pub)\s+)*"
    r"(?P<kind>def|class|function|fn|func|interface|struct|impl|trait|enum|module|sub)\b\*?\s+(?P<name>[\w$.]+)"
)
_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b)")
_LEADS = re.compile(r"\s*(?:@|#|//|/\*|\*)")
"""What stands before a definition and belongs to it."""
_ELIDED = re.compile(
    r"(?i)\s*(?:(?:#|//|/\*|--|<!--)\s*)?(?:\.{3}|\u2026)|\s*(?:#|//|/\*|--|<!--)[^\n]*"
    r"\b(?:rest of|remaining|existing (?:code|functions?|methods?)|unchanged|same as before"
    r"|other (?:functions?|methods?))\b"
)
_MOST_LOST = (0.5, 0.3)
"""How much of a file may be other lines in its new form: where its definitions tell that it is whole, and where not."""
_ALWAYS_LOST = 3


class AnswerFile(NamedTuple):
    """A file that an answer writes out."""

    start: int
    payload: str
    name: str
    old: str = ""
    new: str = ""
    """What is replaced by what; both are empty where it comes to nothing."""
    broken: str = ""
    """What the model is told of a block that cannot be taken."""
    why: str = ""
    """The same for the user."""


class EditTool(Protocol):
    """The face of the tool that edits files."""

    @property
    def name(self) -> str: ...

    def shown_param(self, name: str, /) -> str: ...


class SpokenFiles:
    """The files that an answer may write out: those that the user has named, and the model was shown."""

    def __init__(self, edit: EditTool, names: Sequence[str], workspace: str) -> None:
        self._edit = edit
        self._names = names
        self._workspace = workspace

    def call(self, written: AnswerFile) -> TextCall:
        """The call that makes the change, by the tool that edits files."""
        values = {"path": written.name, "old": written.old, "new": written.new}
        return TextCall(self._edit.name, {self._edit.shown_param(name): value for name, value in values.items()})

    def hear(self, text: str, is_quoted: Callable[[str], bool]) -> AnswerFile | None:
        """The one file that an answer writes out; None where it writes none, or several."""
        found = list(self._blocks(text))
        told = [one for one in found if one.broken or not is_quoted(one.payload)]
        changed = [one for one in told if not one.broken]
        if len(changed) == 1:
            return changed[0]
        return told[-1] if told and not changed else None

    def _blocks(self, text: str) -> Iterator[AnswerFile]:
        end = 0
        for block in _BLOCK.finditer(text):
            name = self._file(text[end : block.start()], block[2])
            end = block.end()
            old = self._read(name) if name else ""
            if old and "```" not in old and "\r" not in old:
                yield _build_answer_file(block.start(), block[3], name, old)

    def _file(self, before: str, info: str) -> str:
        """Which file a block is."""
        headed = [name for name in self._names if name in info or name in _last_line(before)]
        names = headed or (self._names if len(self._names) == 1 else [])
        if len(names) != 1:
            return ""
        language = info.strip().split(" ")[0].split(":")[0].lower()
        ends = _OTHERS.get(language)
        return names[0] if headed == [language] or ends is None or os.path.splitext(names[0])[1] in ends else ""

    def _read(self, name: str) -> str:
        try:
            with open(os.path.join(self._workspace, name), encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            return ""


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def _build_answer_file(start: int, payload: str, name: str, old: str) -> AnswerFile:
    if _is_elided(old, payload):
        return AnswerFile(start, payload, name, broken=LEFT_OUT.format(name=name), why=_LEFT_OUT_WHY)
    new = merge_block(old, payload)
    if new is None:
        return AnswerFile(start, payload, name, broken=LEFT_OUT.format(name=name), why=_LEFT_OUT_WHY)
    new = new.rstrip("\n") + "\n" * (len(old) - len(old.rstrip("\n")))
    if new == old:
        return AnswerFile(start, payload, name, broken=SAME.format(name=name), why=_SAME_WHY)
    return AnswerFile(start, payload, name, *hunk(old, new))


def _is_elided(old: str, new: str) -> bool:
    known = set(map(str.strip, old.splitlines()))
    return any(_ELIDED.match(line) and line.strip() not in known for line in new.splitlines())


def hunk(old: str, new: str) -> tuple[str, str]:
    """The lines in which two texts differ, with as many before and behind as make them the only ones of their kind."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    first = last = 0
    most = min(len(before), len(after))
    while first < most and before[first] == after[first]:
        first += 1
    while last < most - first and before[-1 - last] == after[-1 - last]:
        last += 1
    while True:
        text = "".join(before[first : len(before) - last])
        if (text.strip() and old.find(text) == old.rfind(text)) or not (first or last):
            return text, "".join(after[first : len(after) - last])
        first, last = (first - 1, last) if first else (0, last - 1)


def merge_block(old: str, new: str) -> str | None:
    """A file with what a block holds in the place of what it was; None where it cannot be told what that is."""
    if _is_whole(old, new) and not _lacks_head(old, new):
        return new
    lines = old.splitlines()
    for span in _units(new.splitlines()):
        if span.key is None:
            if any(line.strip() and line not in lines for line in span.lines):
                return None
            continue
        places = [one for one in _units(lines, deep=True) if one.key == span.key]
        if len(places) != 1:
            return None
        place = places[0]
        mine, theirs = "\n".join(_dedent_lines(place.lines)), "\n".join(_dedent_lines(span.lines))
        if not _is_whole(mine, theirs) and _count(mine) > 1:
            # Of a class with some of its methods the others stay.
            inner = merge_block("\n".join(place.lines[1:]), "\n".join(span.lines[1:])) if _count(theirs) > 1 else None
            if inner is None:
                return None
            put = [place.lines[0], *inner.splitlines()]
        else:
            blank = place.lines[0][: len(place.lines[0]) - len(place.lines[0].lstrip())]
            put = [blank + line if line.strip() else "" for line in theirs.splitlines()]
        lines[place.start : place.start + len(place.lines)] = put
    return "\n".join(lines) + "\n" if any(one.key for one in _units(new.splitlines())) else None


class _Unit(NamedTuple):
    start: int
    lines: list[str]
    key: tuple[str, str] | None
    """What it defines; None for lines between definitions."""


def _units(lines: list[str], *, deep: bool = False) -> Iterator[_Unit]:
    """The outermost definitions of a text, and the lines between them; all definitions, where it is to be `deep`."""
    at = 0
    least = min((_indent(line) for line in lines if line.strip()), default=0)
    between: list[str] = []
    while at < len(lines):
        head = _DEFINITION.match(lines[at])
        if head is None or (not deep and _indent(lines[at]) != least):
            between.append(lines[at])
            at += 1
            continue
        leads: list[str] = []
        while between and not deep and _LEADS.match(between[-1]):
            leads.insert(0, between.pop())
        if between and not deep:
            yield _Unit(at - len(leads) - len(between), between, None)
        between = []
        end = _end(lines, at)
        # What leads stays where it stands in the file: a block often leaves it out.
        yield _Unit(at, lines[at:end], (head["kind"], head["name"]))
        at = at + 1 if deep else end
    if between and not deep:
        yield _Unit(len(lines) - len(between), between, None)


def _end(lines: list[str], start: int) -> int:
    """Behind the last line of the definition that begins at a line."""
    own, end = _indent(lines[start]), start + 1
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        if _indent(line) < own or (_indent(line) == own and not _CLOSES.match(line) and line.strip() != "{"):
            break
        end = at + 1
    return end


def _indent(line: str) -> int:
    line = line.expandtabs(8)
    return len(line) - len(line.lstrip())


def _dedent_lines(lines: list[str]) -> list[str]:
    blank = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return [line.removeprefix(blank) for line in lines]


def _count(text: str) -> int:
    return sum(_DEFINITION.match(line) is not None for line in text.splitlines())


def _lacks_head(old: str, new: str) -> bool:
    """Are the lines above and between the definitions, such as imports, left out altogether?"""
    mine, theirs = ([one for one in _units(text.splitlines()) if one.key is None] for text in (old, new))
    return any(line.strip() for one in mine for line in one.lines) and not any(
        line.strip() for one in theirs for line in one.lines
    )


def _is_whole(old: str, new: str) -> bool:
    """Is a text all of another in a new form? Not where less is defined in it, or few lines are the same."""
    if _count(new) < _count(old):
        return False
    before = [line.rstrip() for line in old.splitlines() if line.strip()]
    after = [line.rstrip() for line in new.splitlines() if line.strip()]
    kept = sum(match.size for match in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    return len(before) - kept <= max(_ALWAYS_LOST if kept else 0, len(before) * _MOST_LOST[not _count(old)])


_SQUEEZED = re.compile(r"[\s\\\"'`]+")
_LINE_MARKS = re.compile(r"(?m)^[ \t]*(?:L?\d+[ \t]*[:|→\t-][ \t]?|\d+[ \t]{2,}|[>+-] ?)+")
"""What tools put before the lines of a file: numbers, and the signs of differences and quotes."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_MOST_WHY = 400
_MOST_CHARS = 1 << 20
"""No model writes a longer call as text."""
_NUDGE_HEAD = "[Your call was not made:"
_NUDGE = _NUDGE_HEAD + " {why} Make it again, as the last thing in your answer and exactly in this form:]\n{form}"
_DENIED = re.compile(
    r"(?i)(?:\bnot|\bnever|n['\u2019]t|\bavoid|\bagainst)\s+(?:(?:ever|going\s+to|want\s+to|be)\s+)*"
    r"(?:run|do|doing|call|make|execut\w+|us(?:e|ing)|try|send|recommend)\b(?!.*\byet\b)"
    r"|\b(?:refuse|malicious|harmful|instead\s+of)\b|\b(?:wrong|bad|dangerous|forbidden)\s*:\s*\Z|\?\s*\Z"
)
"""Words before a call that say that it is not to be made, or ask whether it is."""
_SHOWN = re.compile(
    r"(?i)\b(?:for\s+(?:example|instance)|examples?|looks?\s+like|would\s+(?:be|look|have)|syntax|format|explain\w*)\b"
    r"|\be\.g\.|\bif\s+you\s+(?:want|like|wish|prefer)\b|\byou\s+(?:can|could|may|might)\b|\bwants?\s+(?:me|you)\s+to\b"
    r"|\b(?:says?|shows?|contains?|reads|there\s+(?:is|was)|ran)\s*:?\s*\Z"
)
"""Words before what is only shown."""
_LEAD_CHARS = 300
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>(?!.*</think(?:ing)?>)", re.DOTALL)


class TextCalls(NamedTuple):
    """What an answer in words amounts to."""

    start: int
    """Where the calls begin; what stands before them are words."""
    calls: tuple[TextCall, ...] = ()
    broken: str = ""
    """What the model is told about a call that nobody could read; empty where there is none."""
    why: str = ""
    """The same for the user, as a clause."""


class SpokenCalls:
    """Hears one answer of a model in one conversation.

    A call counts where the answer ends with it. A model whose calls are text in any case, as one in a file is, may go
    on behind it: what it says there, it says without having seen the reply. What others wrote never counts: a model
    that quotes a file, a result or its user does not act.
    """

    def __init__(
        self,
        misfit: Callable[[Call], ToolFailure | None],
        definitions: Sequence[Definition],
        turns: Iterable[Turn],
        *,
        is_text_only: bool,
        files: SpokenFiles | None = None,
    ) -> None:
        """`misfit` says why a name with its arguments is no call of a tool; `files` may be written out."""
        self._misfit = misfit
        self._definitions = {one.name: one for one in definitions}
        self._turns = turns
        self._is_text_only = is_text_only
        self._files = files

    def hear(self, text: str, *, is_whole: bool = True) -> TextCalls | None:
        """The calls in an answer, or what is wrong with them; None where it is words. One that was cut has none."""
        if not is_whole or len(text) > _MOST_CHARS:
            return None
        return self._call(text) or self._file(text)

    def _call(self, text: str) -> TextCalls | None:
        blocks = find(text)
        if not blocks or _OPEN_THOUGHT.search(text[: blocks[-1].start]):
            return None
        run = find_trailing_calls(text, blocks) or (find_leading_calls(text, blocks) if self._is_text_only else [])
        if not run or self._is_quoted(run) or self._is_only_told(text[: run[0].start]):
            return None
        calls: list[TextCall] = []
        for block in run:
            for named in block.calls:
                error = self._misfit(Call(named.name, named.values, "text"))
                if error is not None:
                    return self._explain_broken_call(run[0].start, block, named.name, error)
            if block.fault:
                return self._explain_broken_call(run[0].start, block, block.name, None)
            calls += block.calls
        return TextCalls(run[0].start, tuple(calls))

    def _file(self, text: str) -> TextCalls | None:
        """A file that the answer writes out: the edit that makes it so."""
        written = self._files.hear(text, self._is_copied) if self._files is not None else None
        if self._files is None or written is None or _OPEN_THOUGHT.search(text[: written.start]):
            return None
        if written.broken:
            return TextCalls(written.start, broken=written.broken, why=written.why)
        return TextCalls(written.start, (self._files.call(written),))

    def _explain_broken_call(
        self, start: int, block: CallBlock, name: str, error: ToolFailure | None
    ) -> TextCalls | None:
        """What to say about a call that cannot be made; None where no tool is meant by it."""
        meant = name if self._is_tool(name, error) else next(iter(near(name, self._definitions, most=1)), "")
        if not meant:
            return None
        why = f"{block.fault}." if error is None else " ".join(str(error).split())
        form = "tag" if self._is_text_only else block.form
        shown = example(form, meant, self._parameters(meant))
        return TextCalls(start, broken=_NUDGE.format(why=why[:_MOST_WHY], form=shown), why=why[:_MOST_WHY])

    def _is_tool(self, name: str, error: ToolFailure | None) -> bool:
        if name in self._definitions or isinstance(error, BadArguments):
            return True
        return error is None and isinstance(self._misfit(Call(name, {"": None}, "text")), BadArguments)

    def _parameters(self, name: str) -> "Mapping[str, str]":
        definition = self._definitions.get(name)
        schema: Mapping[str, Any] = {} if definition is None else definition.schema
        wanted = schema.get("required") or list(schema.get("properties", ()))[:2]
        return dict.fromkeys(wanted, "…")

    def _is_only_told(self, before: str) -> bool:
        """Do the words before it say that it is not to be made? A model that can call shows what is not meant, too."""
        lines = before[-_LEAD_CHARS:].strip().splitlines()
        lead = re.split(r"(?<=[.!])\s+", lines[-1].strip())[-1] if lines else ""
        return _DENIED.search(lead) is not None or (not self._is_text_only and _SHOWN.search(lead) is not None)

    def _is_quoted(self, run: Sequence[CallBlock]) -> bool:
        """Does it stand in what somebody else has written?"""
        return self._is_others(*(block.payload.strip("[] \n") for block in run))

    def _is_others(self, *payloads: str) -> bool:
        wanted = [seen for payload in payloads for seen in _comparable_forms(payload)]
        for text in _others(self._turns):
            told = [*_comparable_forms(text), *_comparable_forms(_unescape(text))]
            if any(needle and needle in one for one in told for needle in wanted):
                return True
        return False

    def _is_copied(self, payload: str) -> bool:
        """Is a file that it writes out somebody else's, to the letter? Quotes and blanks may be all that it mends."""
        wanted = _strip_line_ends(payload)
        return bool(wanted) and any(
            wanted in _strip_line_ends(told)
            for text in _others(self._turns)
            for told in (text, _LINE_MARKS.sub("", text), _unescape(text))
        )


def _strip_line_ends(text: str) -> str:
    """A text without the blanks at the ends of its lines."""
    return "\n".join(map(str.rstrip, text.strip("\n").split("\n")))


def _strip_quoting(text: str) -> str:
    """A text without what quoting changes: blanks, quotes and what escapes them."""
    return _SQUEEZED.sub("", text)


def _comparable_forms(text: str) -> tuple[str, str]:
    """A text as it is compared: as it stands, and without what tools put before lines."""
    return _strip_quoting(text), _strip_quoting(_LINE_MARKS.sub("", text))


def _unescape(text: str) -> str:
    """A text as it was before it was put into JSON; line ends of Windows as all others."""
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"n": "\n", "t": "\t", "r": "\r"}.get(escape[2], escape[2])


def _others(turns: Iterable[Turn]) -> Iterable[str]:
    """What the model has not written itself: prompts, results, and what stands above the conversation."""
    for turn in turns:
        if turn.role == "assistant":
            continue
        for part in turn.parts:
            if isinstance(part, Text) and not part.text.startswith(_NUDGE_HEAD):
                yield part.text
            elif isinstance(part, Result):
                yield "\n".join(one.text for one in part.parts if isinstance(one, Text))
