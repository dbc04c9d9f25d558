"""Calls that a model wrote as text instead of making them: heard where it means them, mended by one word where not."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.agent.spoken_file import SpokenFiles
from ferrule.core.call import Call
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.support.near import near
from ferrule.wire.text_calls import Block, Named, example, find, leading, trailing
from ferrule.wire.turn import Definition, Result, Text, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Heard(NamedTuple):
    """What an answer in words amounts to."""

    start: int
    """Where the calls begin; what stands before them are words."""
    calls: tuple[Named, ...] = ()
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

    def hear(self, text: str, *, is_whole: bool = True) -> Heard | None:
        """The calls in an answer, or what is wrong with them; None where it is words. One that was cut has none."""
        if not is_whole or len(text) > _MOST_CHARS:
            return None
        return self._call(text) or self._file(text)

    def _call(self, text: str) -> Heard | None:
        blocks = find(text)
        if not blocks or _OPEN_THOUGHT.search(text[: blocks[-1].start]):
            return None
        run = trailing(text, blocks) or (leading(text, blocks) if self._is_text_only else [])
        if not run or self._is_quoted(run) or self._is_only_told(text[: run[0].start]):
            return None
        calls: list[Named] = []
        for block in run:
            for named in block.calls:
                error = self._misfit(Call(named.name, named.values, "text"))
                if error is not None:
                    return self._broken(run[0].start, block, named.name, error)
            if block.fault:
                return self._broken(run[0].start, block, block.name, None)
            calls += block.calls
        return Heard(run[0].start, tuple(calls))

    def _file(self, text: str) -> Heard | None:
        """A file that the answer writes out: the edit that makes it so."""
        written = self._files.hear(text, self._is_copied) if self._files is not None else None
        if self._files is None or written is None or _OPEN_THOUGHT.search(text[: written.start]):
            return None
        if written.broken:
            return Heard(written.start, broken=written.broken, why=written.why)
        return Heard(written.start, (self._files.call(written),))

    def _broken(self, start: int, block: Block, name: str, error: ToolFailure | None) -> Heard | None:
        """What to say about a call that cannot be made; None where no tool is meant by it."""
        meant = name if self._is_tool(name, error) else next(iter(near(name, self._definitions, most=1)), "")
        if not meant:
            return None
        why = f"{block.fault}." if error is None else " ".join(str(error).split())
        form = "tag" if self._is_text_only else block.form
        shown = example(form, meant, self._parameters(meant))
        return Heard(start, broken=_NUDGE.format(why=why[:_MOST_WHY], form=shown), why=why[:_MOST_WHY])

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

    def _is_quoted(self, run: Sequence[Block]) -> bool:
        """Does it stand in what somebody else has written?"""
        return self._is_others(*(block.payload.strip("[] \n") for block in run))

    def _is_others(self, *payloads: str) -> bool:
        wanted = [seen for payload in payloads for seen in _seen(payload)]
        for text in _others(self._turns):
            told = [*_seen(text), *_seen(_unescaped(text))]
            if any(needle and needle in one for one in told for needle in wanted):
                return True
        return False

    def _is_copied(self, payload: str) -> bool:
        """Is a file that it writes out somebody else's, to the letter? Quotes and blanks may be all that it mends."""
        wanted = _lined(payload)
        return bool(wanted) and any(
            wanted in _lined(told)
            for text in _others(self._turns)
            for told in (text, _LINE_MARKS.sub("", text), _unescaped(text))
        )


def _lined(text: str) -> str:
    """A text without the blanks at the ends of its lines."""
    return "\n".join(map(str.rstrip, text.strip("\n").split("\n")))


def _squeezed(text: str) -> str:
    """A text without what quoting changes: blanks, quotes and what escapes them."""
    return _SQUEEZED.sub("", text)


def _seen(text: str) -> tuple[str, str]:
    """A text as it is compared: as it stands, and without what tools put before lines."""
    return _squeezed(text), _squeezed(_LINE_MARKS.sub("", text))


def _unescaped(text: str) -> str:
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
