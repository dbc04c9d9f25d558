"""Request one answer from the model, and judge how far the work on a prompt is."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Container, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ferrule.agent import AgentEvent, Calling, Retrying, Spoke, Thought
from ferrule.agent.conversation import Conversation, words_of
from ferrule.agent.prompt import edit_example
from ferrule.agent.text_calls import SpokenCalls, SpokenFiles, TextCalls
from ferrule.core.call import Done, Event, Prepared
from ferrule.core.content import Text
from ferrule.core.errors import FerruleError
from ferrule.dialects import is_small
from ferrule.models import Model, ModelError, RetryNotice
from ferrule.tools import EDIT, SHELL
from ferrule.wire import (
    AnswerEnd,
    Delta,
    ModelRequest,
    ModelResponse,
    Part,
    TextPiece,
    ThinkingPiece,
    ToolChoice,
    Turn,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.stream import Assembler, make_id
from ferrule.wire.text_calls import Holdback

_log = logging.getLogger("ferrule")

MOST_CHARS = 128 << 20
"""Of one answer. No model says so much; a host that sends without an end would fill the memory."""


class Answered(NamedTuple):
    """What came of asking."""

    said: ModelResponse
    whole: frozenset[str] = frozenset()
    """The ids of the calls whose input came to its end; no other may be run."""
    is_cut: bool = False
    """Was it stopped before its end? Then there are only words in it."""
    broken: TextCalls | None = None
    """A call that it wrote as text and that nobody could read."""


NOTHING = Answered(ModelResponse(id="", model="", parts=(), reason="end"), is_cut=True)


async def ask(
    model: Model,
    asked: ModelRequest,
    thread: str,
    tell: Callable[[AgentEvent], None],
    taken: Container[str] = frozenset(),
    *,
    spoken: SpokenCalls | None = None,
) -> Answered:
    """Ask, tell what is heard, and give the whole. Raises: ModelError.

    No two calls of a conversation have one id: one that is `taken`, or none at all, gets another.
    With `spoken`, calls that are written as text are calls as well.
    Cancelling it gives the words that were heard so far, where there are any; whoever cancels asks the task for it.
    """
    hearing = _Hearing(thread, tell, taken, spoken)
    answer = model.ask(asked)
    try:
        while (delta := await _next(answer, model)) is not None:
            hearing.hear(delta)
    except asyncio.CancelledError:
        return hearing.cut()
    finally:
        await _close(answer)
    return hearing.end()


async def _next(answer: AsyncIterator[Delta | RetryNotice], model: Model) -> Delta | RetryNotice | None:
    """One more piece, or None at the end. Raises: ModelError, whatever else went wrong in there."""
    try:
        return await anext(answer, None)
    except ModelError:
        raise
    except FerruleError as error:  # such as a recording that cannot be written
        raise ModelError(str(error), "bad") from error
    except Exception as error:  # a model may be anybody's code: its faults end a run as others do
        _log.exception("The model %s failed.", model.name)
        raise ModelError(f"The model {model.name} failed by a fault of its own: {_words(error)}", "server") from error


def _words(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else f"{type(error).__name__}."


async def _close(answer: AsyncIterator[Delta | RetryNotice]) -> None:
    """A generator that was left in the middle lets go of its connection now, not when somebody collects it."""
    close = getattr(answer, "aclose", None)
    if close is not None:
        await close()


class _Hearing:
    """What was heard of one answer."""

    def __init__(
        self, thread: str, tell: Callable[[AgentEvent], None], taken: Container[str], spoken: SpokenCalls | None
    ) -> None:
        self._thread = thread
        self._tell = tell
        self._taken = taken
        self._spoken = spoken
        self._begin()

    def _begin(self) -> None:
        self._chars = 0
        self._assembler = Assembler()
        self._ids: dict[int, str] = {}
        self._given: set[str] = set()
        self._whole: set[str] = set()
        self._ended = False
        self._held = Holdback() if self._spoken is not None else None
        """Words since the last thought; none where a call was made: whoever makes calls does not write them."""

    def hear(self, delta: Delta | RetryNotice) -> None:
        match delta:
            case TextPiece():
                self._speak(delta.text if self._held is None else self._held.feed(delta.text))
            case ThinkingPiece():
                self._let_go()
                if self._spoken is not None:
                    self._held = Holdback()
                if delta.text:
                    self._tell(Thought(thread=self._thread, text=delta.text))
            case UseBegun():
                self._let_go()
                self._held = None
                delta = msgspec.structs.replace(delta, id=self._own_id(delta))
                self._ids[delta.at] = delta.id
                self._tell(Calling(thread=self._thread, id=delta.id, name=delta.name))
            case UseEnded():
                if not delta.cut and delta.at in self._ids:
                    self._whole.add(self._ids[delta.at])
            case AnswerEnd():
                self._ended = True
            case RetryNotice():
                self._begin()
                self._tell(Retrying(thread=self._thread, why=delta.why, seconds=delta.seconds, attempt=delta.attempt))
                return
            case _:
                pass
        self._bound(delta)
        self._assembler.put(delta)

    def _speak(self, text: str) -> None:
        if text:
            self._tell(Spoke(thread=self._thread, text=text))

    def _let_go(self) -> None:
        """What was held back are words after all."""
        if self._held is not None:
            self._speak(self._held.rest())

    def _bound(self, delta: Delta) -> None:
        if isinstance(delta, TextPiece | ThinkingPiece | UsePiece):
            self._chars += len(delta.text)
        if self._chars > MOST_CHARS:
            raise ModelError(f"The model's answer does not end: it has more than {MOST_CHARS:,} characters.", "cut")

    def _own_id(self, begun: UseBegun) -> str:
        if begun.at in self._ids:
            return self._ids[begun.at]
        name, own, number = begun.id or "call", begun.id, len(self._ids)
        while not own or own in self._taken or own in self._given:
            number += 1
            own = f"{name}_{number}"
        self._given.add(own)
        return own

    def cut(self) -> Answered:
        """Words only: thinking without its signature and calls without their end go back to no API."""
        self._let_go()
        said = self._assembler.said()
        texts = tuple(part for part in said.parts if isinstance(part, Text) and part.text.strip())
        return Answered(
            ModelResponse(id=said.id, model=said.model, parts=texts, reason="end", usage=said.usage), is_cut=True
        )

    def end(self) -> Answered:
        said = self._assembler.said()
        if not self._ended:
            raise ModelError("The model's answer broke off before its end. Ask again.", "cut")
        if self._assembler.broke is not None and not any(isinstance(part, Text | Use) for part in said.parts):
            raise ModelError(f"The model broke off: {self._assembler.broke.message}", "server")
        last = said.parts[-1] if said.parts else None
        if said.reason in {"length", "refused"} and isinstance(last, Use) and isinstance(last.input, str):
            # Out of tokens in the middle of an input that nobody can tell the end of.
            self._whole.discard(last.id)
        heard = self._parse_text_calls(said)
        if heard is not None and heard.calls:
            said = self._with_calls(said, heard)
        self._let_go()
        return Answered(said, frozenset(self._whole), broken=heard if heard is not None and heard.broken else None)

    def _parse_text_calls(self, said: ModelResponse) -> TextCalls | None:
        """What the last words amount to, where no call was made."""
        last = said.parts[-1] if said.parts else None
        if self._spoken is None or self._held is None or not isinstance(last, Text) or self._ids:
            return None
        return self._spoken.hear(last.text, is_whole=said.reason not in {"length", "refused"})

    def _with_calls(self, said: ModelResponse, heard: TextCalls) -> ModelResponse:
        """The answer with calls in the place of the text that they were written as."""
        last = said.parts[-1]
        assert isinstance(last, Text)
        assert self._held is not None
        before = last.text[: heard.start].rstrip()
        # The assembler may have joined words that came before a thought; only the last ones were held.
        offset = len(last.text) - self._held.length
        self._speak(self._held.rest(max(0, heard.start - offset)))
        self._held = None
        uses: list[Part] = []
        for at, call in enumerate(heard.calls):
            begun = UseBegun(at, make_id("call_"), call.name)
            own = self._own_id(begun)
            self._ids[at] = own
            self._whole.add(own)
            self._tell(Calling(thread=self._thread, id=own, name=call.name))
            uses.append(Use(own, call.name, call.values))
        parts = (*said.parts[:-1], *((Text(before),) if before else ()), *uses)
        return msgspec.structs.replace(said, parts=parts, reason="tools")


_DOING = (
    "add|apply|begin|call|change|check|correct|create|debug|delete|edit|examine|execute|find|fix|implement|inspect"
    "|investigate|list|look|make|mend|modify|move|open|patch|proceed|read|refactor|remove|rename|replace|review|rewrite"
    "|run|search|see|start|test|try|update|use|view|write"
)
_WILL = r"(?:i(?:'ll|(?:\s+a|')m\s+going\s+to|\s+will|\s+shall|\s+need\s+to)|let\s+me|let's|we\s+(?:will|need\s+to))"
_FIRST = r"(?:(?:now|first|then|also|just|next|start\s+by|begin\s+by|proceed\s+to)\s+)*"
_PROMISE = re.compile(rf"(?i)\b{_WILL}\s+{_FIRST}(?:{_DOING})(?:ing)?\b")
_ONLY_WORDS = re.compile(
    r"(?i)\A\W*(?:(?:please|now|then|first|just|can you|could you)\s+)*(?:plan|explain|describe|tell|say|answer|how|why"
    r"|what|which|where|who|when|is|are|does|summari[sz]e|suggest|propose|show|discuss|find|list|review|read|look"
    r"|analy[sz]e|count|search|compare|remember|think|consider)\b"
    r"|\b(?:don't|do not|without)\s+(?:chang|edit|touch|writ|do|mak)|\b(?:would you|you would|leave (?:it|them))\b"
)
"""In a prompt: words are all that is wanted."""
_COMMAND = re.compile(
    r"(?i)\W*(?:(?:please|now|then|first|just|can you|could you)\s+)*"
    r"(?:run|execute|start|install|build|compile|commit|push|delete|remove the file|move|copy|rename the file|test)\b"
)
_ASKS = re.compile(r"(?i)\b(?:if you|would you like|do you want|shall i|should i|let me know|once you|when you)\b")
_CODE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ ]{0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"[\w./-]*\w\.\w{1,8}\b|\b(?:Makefile|Dockerfile)\b")
_CHECKS = re.compile(r"(?i)(?<![a-z])(?:tests?|checks?|spec)(?![a-z]).*\.\w+$")
_NUMBERED = re.compile(r"[ ]*(\d+)(?:\t|→|: ?|\| ?)")
_LAST_CHARS = 400

UNCHANGED = (
    "[No file was changed yet. If the user wants {file} changed, do it now with one call, in this form:]\n{form}\n"
    "[If nothing is to be changed, say so in one sentence.]"
)
UNWRITTEN = (
    "[No file was changed yet. If the user wants it changed, {again}. If nothing is to be changed, say so in one "
    "sentence.]"
)
NOT_DONE = (
    "[You have said what you would do, and made no call: nothing was done. Make the call now. If there is nothing to "
    "do, say so in one sentence.]"
)
NOT_EDITED = (
    "[Your last edit failed, and the file is as it was. Make it again: {again}. Or say in one sentence why it cannot "
    "be done.]"
)
EDIT_AGAIN = "the old text must be whole lines, copied from the file exactly"
AGAIN = "edit the file again"
WRITE_AGAIN = "write {name} and a code block with all of the new file"
"""What a model does that writes files out in its answer."""
WISH = "Write {name} with this mended or done: {prompt}"
WISH_ABOVE = "Write {name} with the wish above done."

NEXT = {
    "edited": "[The file is changed. If all is done, say in one sentence what you did, without another call.]",
    "edited, checks": "[The file is changed. Now run the check: {names}]",
    "ran": "[That went well. If all is done, say in one sentence what you did, without another call.]",
    "ran-failed": "[That failed. If your change is wrong, {again}, and then run the check again.]",
}
"""What a small model is told to do next, by what came of its last call: left to itself, it goes on and on."""
UNCHECKED = (
    "[You have changed a file and run nothing since. {names} may be a check of it: run that now with a command. If it "
    "fails, edit again.]"
)
NOT_PASSED = (
    "[The last command failed. If your change is wrong, read why, and {again}; then run the command again. If the "
    "failure has nothing to do with it, say so in one sentence.]"
)


def is_promise(answer: str, prompt: str, workspace: str, *, has_changed: bool) -> bool:
    """Does an answer without a call leave undone what was asked for?

    It does where it ends by saying what comes next; and where it shows code for a file that the prompt names, while
    nothing was changed. A question is answered by words, and who asks back waits for an answer.
    """
    words = answer.strip().replace("\u2019", "'")
    if not words or words.endswith("?") or wants_words(prompt):
        return False
    last = _CODE.sub("", words).strip()[-_LAST_CHARS:]
    last = re.split(r"\n\s*\n", last)[-1]
    if (_PROMISE.search(last) or words.endswith(":")) and not _ASKS.search(last):
        return True
    return not has_changed and _CODE.search(words) is not None and bool(find_named_files(prompt, workspace))


def wants_words(prompt: str) -> bool:
    """Is an answer in words all that a prompt asks for?"""
    return prompt.rstrip().endswith("?") or _ONLY_WORDS.search(prompt) is not None


def wants_command(prompt: str) -> bool:
    """Does a prompt ask first of all for something to be run?"""
    return _COMMAND.match(prompt) is not None


def find_named_files(prompt: str, workspace: str, most_bytes: int | None = None) -> Sequence[str]:
    """The files of the workspace that a prompt names, without those that are larger."""
    found = dict.fromkeys(_FILE.findall(prompt))
    paths = {name: os.path.join(workspace, name) for name in found if not os.path.isabs(name) and ".." not in name}
    return [
        name
        for name, path in paths.items()
        if os.path.isfile(path) and (most_bytes is None or os.path.getsize(path) <= most_bytes)
    ]


def checks_in(workspace: str) -> Sequence[str]:
    """Files beside the work whose names say that they check it."""
    try:
        names = sorted(os.listdir(workspace))
    except OSError:
        return []
    return [name for name in names if _CHECKS.search(name) and os.path.isfile(os.path.join(workspace, name))][:3]


def without_numbers(text: str) -> str:
    """A file as it stands, of what a tool shows with the numbers of its lines; any other text as it is."""
    lines = text.splitlines()
    numbered = [_NUMBERED.match(line) for line in lines]
    if not lines or any(found is None or int(found[1]) != at for at, found in enumerate(numbered, 1)):
        return text
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines).rstrip("\n")


_AGAIN_TEMPERATURE = 0.7
_MOST_REPEATED = 1_000
"""A prompt of so many characters is said once more."""
_WRITES = ("", "edited-failed", "ran-failed")
"""What came of the last call where a file is to be written next."""

_UNREAD = "The model's last call was written as text and could not be read: {why}"
_PROMISED = "Nothing was done: the model said what it would do, and made no call."
_UNCHANGED = "Nothing was done: the model changed no file."
_UNEDITED = "The last edit of the model failed, and it made no other."


class PromptProgress:
    """Of one prompt. Only small models, and those that write calls as text, are led step by step."""

    def __init__(self, talk: Conversation, prompt: str = "") -> None:
        self._talk = talk
        self._prompt = prompt
        self._changing: dict[str, bool] = {}
        """The calls that change something; true for those that write files by themselves."""
        self._last = ""
        """What came of the last of these: `edited` or `ran`, with `-failed` behind it."""
        self._is_checked = False
        """Has the model been told that nothing was run since its edit?"""
        self._has_changed = False
        self._is_misread = False
        """Was something in its last answer that is no call, and meant to be one?"""
        self._shown: list[str] = []
        """The files that the prompt names and the model was shown."""

    def show(self, names: Iterable[str]) -> None:
        """The model is shown files. If all its calls are text, it may change them by writing them out."""
        if self._talk.model.wire == "local" and not wants_words(self._prompt) and not wants_command(self._prompt):
            self._shown += names

    def wish(self) -> Sequence[str]:
        """What is said behind the files: with the wish far above, a small model copies the file as it is."""
        if self.writable_files() is None:
            return ()
        if len(self._prompt) > _MOST_REPEATED:
            return (WISH_ABOVE.format(name=self._shown[0]),)
        return (WISH.format(name=self._shown[0], prompt=self._prompt.strip()),)

    def writable_files(self) -> SpokenFiles | None:
        """The files that it may write out; None where it may write none."""
        face = next((one for one in self._talk.hands.faces() if one.tool == EDIT), None)
        if face is None or not self._shown or self._talk.setup.permission_mode() == "plan":
            return None
        return SpokenFiles(face, self._shown, self._talk.setup.cwd)

    def constrain_request(self, asked: ModelRequest, *, is_nudged: bool) -> ModelRequest:
        """What the model is asked, such that it does what comes next.

        Where it is to write a file out, it is shown no tools, which it would write the file into as JSON; if it does
        not, it gets them.

        Held to a command, it runs the check instead of telling what would come of it. What it has said to no avail, it
        would say again if nothing were left to chance.
        """
        if not self._shown:
            return asked
        if is_nudged:
            asked = msgspec.structs.replace(asked, temperature=_AGAIN_TEMPERATURE)
        command = next((one.name for one in self._talk.hands.faces() if one.tool == SHELL), "")
        shell = tuple(one for one in asked.definitions if one.name == command)
        if self._last == "edited" and not self._is_checked and shell and checks_in(self._talk.setup.cwd):
            self._is_checked = True
            return msgspec.structs.replace(asked, definitions=shell, choice=ToolChoice("tool", command))
        if self._last in _WRITES and (not is_nudged or self._is_misread):
            return msgspec.structs.replace(asked, definitions=())
        return asked

    @property
    def is_led(self) -> bool:
        """Is the model one that forgets to do what it says?"""
        model = self._talk.model
        return model.wire == "local" or is_small(model.model, model.window)

    def hear(self, event: Event) -> None:
        """Something happened to a call."""
        match event:
            case Prepared() if any(one.mode == "write" for one in event.touches):
                self._changing[event.id] = all(one.kind == "path" for one in event.touches)
            case Done() if event.id in self._changing:
                reply = event.reply
                kind = "edited" if self._changing[event.id] else "ran"
                self._last = f"{kind}-failed" if reply.status == "error" else kind
                self._is_checked = False
                self._has_changed |= bool(reply.track_files or (reply.changes and reply.changes.files))
            case _:
                pass

    def next_step(self) -> tuple[Text, ...]:
        """What the model is told with the replies, when it has changed a file."""
        if not self._has_changed or not self.is_led:
            return ()
        names = checks_in(self._talk.setup.cwd) if self._last == "edited" else ()
        told = NEXT.get(f"{self._last}, checks" if names else self._last, "")
        return (Text(told.format(names=" or ".join(names), again=self._again(AGAIN))),) if told else ()

    def _again(self, usual: str) -> str:
        """How it changes a file another time."""
        return WRITE_AGAIN.format(name=self._shown[0]) if self._shown else usual

    def left(self, answered: Answered) -> tuple[str, str]:
        """What a model is told that stops too early, and what the user is told of it if it does so again.

        The latter is empty where something was done: that counts as an end. Both are, where nothing is to be told.
        """
        self._is_misread = answered.broken is not None
        if answered.broken is not None:
            return answered.broken.broken, _UNREAD.format(why=answered.broken.why)
        if not self.is_led or self._talk.setup.permission_mode() == "plan":
            return "", ""
        if (left := self._left_off()) != ("", ""):
            return left
        words = words_of(Turn("assistant", answered.said.parts))
        # A command counts as a change: nobody can look into it.
        if is_promise(words, self._prompt, self._talk.setup.cwd, has_changed=bool(self._changing)):
            return NOT_DONE, _PROMISED
        return "", ""

    def _left_off(self) -> tuple[str, str]:
        """The same, by what came of the last call."""
        match self._last:
            case "edited-failed":
                return NOT_EDITED.format(again=self._again(EDIT_AGAIN)), "" if self._has_changed else _UNEDITED
            case "ran-failed" if self._has_changed:
                return NOT_PASSED.format(again=self._again(AGAIN)), ""
            case "edited" if not self._is_checked and (names := checks_in(self._talk.setup.cwd)):
                self._is_checked = True
                return UNCHECKED.format(names=" or ".join(names)), ""
            case _:
                pass
        told = "" if self._has_changed else self._explain_no_change()
        return (told, _UNCHANGED) if told else ("", "")

    def _explain_no_change(self) -> str:
        """What it is told where nothing of a file was changed that was to be; else nothing."""
        if wants_words(self._prompt):
            return ""
        files = find_named_files(self._prompt, self._talk.setup.cwd)
        if self._shown:
            return UNWRITTEN.format(again=self._again(""))
        form = edit_example(self._talk.hands.faces(), {"path": files[0]}) if files else ""
        return UNCHANGED.format(file=files[0], form=form) if form else ""
