"""Asking a person at the terminal, while the event loop goes on."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, TextIO

from ferrule.permissions import showing
from ferrule.permissions.asker import NO, YES, Answer, Question, visible
from ferrule.permissions.kinds import KINDS
from ferrule.permissions.showing import headed, rows

if TYPE_CHECKING:
    from ferrule.cli.editor import Draft

_MOST_LINES = 24
_MOST_CHARS = 1600
_YES, _ALWAYS, _NO, _ALL, _TELL = ("y", "yes"), ("a", "always"), ("n", "no"), ("s", "show"), ("t", "tell")
_ACCEPT, _OUTSIDE, _EDIT = ("a", "accept"), ("o", "outside"), ("e", "edit")
_MOST_TOUCHES = 6


def at_a_terminal() -> TextIO | None:
    """Where a person's answers can be read: standard input, or the terminal itself when input comes from a file."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        return sys.stdin
    try:
        return open("/dev/tty", encoding="utf-8", errors="replace")
    except OSError:
        return None


def offered(question: Question) -> str:
    """What a yes means. What came up while a call ran need not be about the sandbox."""
    is_other = question.kind == "outside" and question.tool not in {"shell", "shell_session", "skill", "check"}
    return "Allow it?" if is_other else KINDS[question.kind].offer


def covers(question: Question) -> str:
    """What "always" would allow."""
    is_command = any(access.kind == "command" for access in question.touches)
    return showing.covers(question, host="in this workspace", like="{}" if is_command else "{} in this session")


class Terminal:
    """Asks on standard error, reads a line from the terminal."""

    is_person = True

    def __init__(self, source: TextIO | None = None, *, many: bool = True) -> None:
        """`many`: more calls may come, so that "always" means something."""
        self._source = source or sys.stdin
        self._many = many
        self._typed = b""
        """Typed ahead of the question; Python's own buffer would hide it from the event loop."""

    async def ask(self, question: Question) -> Answer:
        self._forget_typed()
        if question.kind == "choose":
            from ferrule.cli.choosing import choose  # for models that ask

            return await choose(question, _say, self._typed_line)
        who = f"The subagent {visible(question.who)}: " if question.who else ""
        _say(f"\n{who}{bounded(headed(question))}")
        if question.kind == "values":
            from ferrule.cli.filling import fill  # for servers that ask for something

            return await fill(question, _say, self._typed_line)
        shown = rows(question)
        _show(shown if KINDS[question.kind].is_whole else shown[:_MOST_LINES], len(shown))
        for line in touches(question):
            _say(f"  {line}")
        if question.why:
            _say(f"  {question.why}")
        return await self._chosen(question, shown)

    async def _chosen(self, question: Question, shown: list[str]) -> Answer:
        """Yes, always, no, or why not; nothing else ends it."""
        from ferrule.cli.editor import draft  # for whoever is asked

        is_cut = len(shown) > _MOST_LINES and not KINDS[question.kind].is_whole
        made = draft(question) if self._many else None
        choices = "[s]how all, " * is_cut + self._choices(question) + "[e]dit it first, " * (made is not None)
        choices += "[t]ell the model why not, [n]o: " if self._many else "[n]o: "
        while True:
            print(f"{offered(question)} {choices}", end="", file=sys.stderr, flush=True)
            line = await self._line()
            if not line.endswith("\n"):
                _say("")  # the end of input, at the end of the prompt
                return NO
            said = line.strip().lower()
            if said in _ALL and is_cut:
                _show(shown, len(shown))
                continue
            if said in _TELL and self._many:
                return await self._told()
            if made is not None and said in _EDIT:
                made, answer = await self._edited(question, made)
            else:
                answer = self._answer(said, question)
            if answer is not None:
                return _with_plan(answer, question, made)
            if made is None or said not in _EDIT:
                letters = [part[0] for part in choices.split("[")[1:]]
                _say(f"Answer with {', '.join(letters[:-1])} or {letters[-1]}.")

    def _choices(self, question: Question) -> str:
        """The ways to say yes."""
        choices = "[y]es (in this session), " if question.kind == "host" else "[y]es, "
        choices += f"[a]lways ({covers(question)}), " * self._has_always(question)
        choices += "[a]ccept edits too, unasked, " * _lets_edits(question)
        return choices + "run it once [o]utside the sandbox, " * (question.kind == "host")

    def _has_always(self, question: Question) -> bool:
        return question.kind == "host" or (question.kind == "call" and (self._many or bool(question.proposals)))

    def _answer(self, said: str, question: Question) -> Answer | None:
        """What a key says; None for one that was not offered."""
        if said in (*_NO, ""):
            return NO
        if said in _YES:
            return YES
        if said in _ACCEPT and _lets_edits(question):
            return Answer(allow=True, values={"mode": "acceptEdits"})
        if said in _OUTSIDE and question.kind == "host":
            return Answer(allow=False, values={"run": "outside"})
        return Answer(allow=True, always=True) if said in _ALWAYS and self._has_always(question) else None

    async def _edited(self, question: Question, made: "Draft") -> "tuple[Draft, Answer | None]":
        """What the person makes of it; with a command, that is a yes."""
        from ferrule.cli.editor import approved  # for who edits

        text = await self._rewritten(made)
        if text is None:
            _say(f"The {'command' if made.param else 'plan'} is as it was.")
        elif made.param:
            return made, approved(question, made, text)
        else:
            made = made._replace(text=text)
            rows = [visible(row) for row in text.splitlines()]
            _show(rows, len(rows))
        return made, None

    async def _rewritten(self, made: "Draft") -> str | None:
        """The text as the person leaves it; None where it stays as it is."""
        from ferrule.cli.editor import edit, editor  # for who edits
        from ferrule.workspace.plan_file import unfit

        command = editor()
        if not command and not made.param:
            _say("Set VISUAL or EDITOR to edit the plan.")
            return None
        if not command:
            text = await self._typed_line("The command as it should be; nothing goes back: ")
        else:
            try:
                text = await asyncio.to_thread(edit, made.text, made.suffix, command)
            except OSError as error:
                _say(f"The editor could not be started: {error}.")
                return None
        if text is None or not text.strip() or text.strip() == made.text.strip():
            return None
        if not made.param and (problem := unfit(text)):
            _say(f"What you left has a fault: {problem}.")
            return None
        return text

    async def _typed_line(self, offer: str) -> str | None:
        """What the person types after an offer; None at the end of input."""
        print(offer, end="", file=sys.stderr, flush=True)
        line = await self._line()
        return line.strip() if line.endswith("\n") else None

    async def _told(self) -> Answer:
        """No, with a reason in the person's own words."""
        print("What should the model know? ", end="", file=sys.stderr, flush=True)
        reason = visible((await self._line()).strip())
        return Answer(allow=False, message=f"The user did not allow this and says: {reason}") if reason else NO

    def _forget_typed(self) -> None:
        """What was typed before a question was shown is no answer to it."""
        self._typed = b""
        if self._source.isatty():
            import termios  # not on Windows, and only at a terminal

            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    async def _line(self) -> str:
        """One line; the end of input ends it too, without a newline."""
        while b"\n" not in self._typed:
            typed = await piece(self._source.fileno())
            if not typed:
                break
            self._typed += typed
        line, newline, self._typed = self._typed.partition(b"\n")
        return (line + newline).decode(errors="replace")


def _lets_edits(question: Question) -> bool:
    """May a yes to a plan let edits pass unasked, too?"""
    return question.kind == "plan" and question.input.get("mode") == "default"


def _with_plan(answer: Answer, question: Question, made: "Draft | None") -> Answer:
    """A yes to a plan that was changed is one to what it became."""
    is_plan = question.kind == "plan" and made is not None and made.text != question.input.get("plan")
    if made is None or not is_plan or not answer.allow:
        return answer
    return Answer(allow=True, values=answer.values, input={"plan": made.text})


async def piece(descriptor: int) -> bytes:
    """What was typed, when something was; the event loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except (NotImplementedError, OSError):
        return await asyncio.to_thread(os.read, descriptor, 4096)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 4096)


def bounded(summary: str) -> str:
    """Long commands with their beginnings and their ends in sight; of several, each is a row."""
    half = _MOST_CHARS // 2
    return "\n".join(
        row if len(row) <= _MOST_CHARS else f"{row[:half]}\n… {len(row) - 2 * half:,} more characters …\n{row[-half:]}"
        for row in summary.split("\n")
    )


def touches(question: Question) -> list[str]:
    """What a command would touch, as far as can be seen; of other calls the summary names it."""
    if question.kind == "server":
        return []  # they are shown whole
    if question.kind == "plan":
        return list(map(visible, question.effects))
    more = len(question.effects) - _MOST_TOUCHES
    shown = [visible(effect) for effect in question.effects[:_MOST_TOUCHES]]
    return [*shown, f"… and {more} more"] if more > 0 else shown


def _show(lines: list[str], total: int) -> None:
    for line in lines:
        _say(f"  {line}")
    if total > len(lines):
        _say(f"  … {total - len(lines)} more line{'s' * (total - len(lines) > 1)}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
