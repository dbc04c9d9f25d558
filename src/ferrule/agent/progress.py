"""How far the work on a prompt is, and what a model is told that stops before it has done any."""

from collections.abc import Iterable, Sequence

import msgspec

from ferrule.agent.asking import Answered
from ferrule.agent.conversation import Conversation
from ferrule.agent.history import words_of
from ferrule.agent.promise import (
    AGAIN,
    EDIT_AGAIN,
    NEXT,
    NOT_DONE,
    NOT_EDITED,
    NOT_PASSED,
    UNCHANGED,
    UNCHECKED,
    UNWRITTEN,
    WISH,
    WISH_ABOVE,
    WRITE_AGAIN,
    checks_in,
    is_promise,
    named_files,
    wants_command,
    wants_words,
)
from ferrule.agent.prompt import edit_example
from ferrule.agent.spoken_file import SpokenFiles
from ferrule.core.events import Done, Event, Prepared
from ferrule.dialects.pick import is_small
from ferrule.wire.turn import Asked, Choice, Text, Turn

_AGAIN_TEMPERATURE = 0.7
_MOST_REPEATED = 1_000
"""A prompt of so many characters is said once more."""
_WRITES = ("", "edited-failed", "ran-failed")
"""What came of the last call where a file is to be written next."""

_UNREAD = "The model's last call was written as text and could not be read: {why}"
_PROMISED = "Nothing was done: the model said what it would do, and made no call."
_UNCHANGED = "Nothing was done: the model changed no file."
_UNEDITED = "The last edit of the model failed, and it made no other."


class Progress:
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
        if self.written() is None:
            return ()
        if len(self._prompt) > _MOST_REPEATED:
            return (WISH_ABOVE.format(name=self._shown[0]),)
        return (WISH.format(name=self._shown[0], prompt=self._prompt.strip()),)

    def written(self) -> SpokenFiles | None:
        """The files that it may write out; None where it may write none."""
        face = next((one for one in self._talk.hands.faces() if one.tool == "edit"), None)
        if face is None or not self._shown or self._talk.setup.permission_mode() == "plan":
            return None
        return SpokenFiles(face, self._shown, self._talk.setup.cwd)

    def held(self, asked: Asked, *, is_nudged: bool) -> Asked:
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
        command = next((one.name for one in self._talk.hands.faces() if one.tool == "shell"), "")
        shell = tuple(one for one in asked.definitions if one.name == command)
        if self._last == "edited" and not self._is_checked and shell and checks_in(self._talk.setup.cwd):
            self._is_checked = True
            return msgspec.structs.replace(asked, definitions=shell, choice=Choice("tool", command))
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
        told = "" if self._has_changed else self._unchanged()
        return (told, _UNCHANGED) if told else ("", "")

    def _unchanged(self) -> str:
        """What it is told where nothing of a file was changed that was to be; else nothing."""
        if wants_words(self._prompt):
            return ""
        files = named_files(self._prompt, self._talk.setup.cwd)
        if self._shown:
            return UNWRITTEN.format(again=self._again(""))
        form = edit_example(self._talk.hands.faces(), {"path": files[0]}) if files else ""
        return UNCHANGED.format(file=files[0], form=form) if form else ""
