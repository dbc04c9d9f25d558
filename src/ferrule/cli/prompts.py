"""Ask the user at the terminal for approval, values, choices and edits.

The event loop goes on while a question is open. Values that a server asks for are filled in one after the other.
Choices of the model are answered by number or in the user's own words. A command or a plan can be changed, also in
an editor, before it is approved.
"""

import asyncio
import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TextIO

from ferrule.arguments import schema as complaints
from ferrule.arguments.schema import judge
from ferrule.core.errors import ConfigError
from ferrule.core.services import Choice
from ferrule.permissions import KINDS, NO, YES, Answer, Question, visible
from ferrule.permissions import question as showing
from ferrule.permissions.question import headline, question_rows
from ferrule.tools import facts_of

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


def offer_text(question: Question) -> str:
    """What a yes means. What came up while a call ran need not be about the sandbox."""
    is_other = question.kind == "outside" and not facts_of(question.tool).reserved
    return "Allow it?" if is_other else KINDS[question.kind].offer


def covers(question: Question) -> str:
    """What "always" would allow."""
    is_command = any(access.kind == "command" for access in question.touches)
    return showing.covers(question, host="in this workspace", like="{}" if is_command else "{} in this session")


class TerminalAsker:
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
            return await choose(question, _say, self._prompt_line)
        who = f"The subagent {visible(question.who)}: " if question.who else ""
        _say(f"\n{who}{truncate_summary(headline(question))}")
        if question.kind == "values":
            return await fill(question, _say, self._prompt_line)
        shown = question_rows(question)
        _show(shown if KINDS[question.kind].is_whole else shown[:_MOST_LINES], len(shown))
        for line in touches(question):
            _say(f"  {line}")
        if question.why:
            _say(f"  {question.why}")
        return await self._ask_decision(question, shown)

    async def _ask_decision(self, question: Question, shown: list[str]) -> Answer:
        """Yes, always, no, or why not; nothing else ends it."""
        is_cut = len(shown) > _MOST_LINES and not KINDS[question.kind].is_whole
        made = draft(question) if self._many else None
        choices = "[s]how all, " * is_cut + self._choices(question) + "[e]dit it first, " * (made is not None)
        choices += "[t]ell the model why not, [n]o: " if self._many else "[n]o: "
        while True:
            print(f"{offer_text(question)} {choices}", end="", file=sys.stderr, flush=True)
            line = await self._line()
            if not line.endswith("\n"):
                _say("")  # the end of input, at the end of the prompt
                return NO
            said = line.strip().lower()
            if said in _ALL and is_cut:
                _show(shown, len(shown))
                continue
            if said in _TELL and self._many:
                return await self._ask_reason()
            if made is not None and said in _EDIT:
                made, answer = await self._edit_draft(question, made)
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

    async def _edit_draft(self, question: Question, made: "Draft") -> "tuple[Draft, Answer | None]":
        """What the person makes of it; with a command, that is a yes."""
        text = await self._rewrite(made)
        if text is None:
            _say(f"The {'command' if made.param else 'plan'} is as it was.")
        elif made.param:
            return made, approve_draft(question, made, text)
        else:
            made = made._replace(text=text)
            rows = [visible(row) for row in text.splitlines()]
            _show(rows, len(rows))
        return made, None

    async def _rewrite(self, made: "Draft") -> str | None:
        """The text as the person leaves it; None where it stays as it is."""
        from ferrule.tools.plan import unfit

        command = editor()
        if not command and not made.param:
            _say("Set VISUAL or EDITOR to edit the plan.")
            return None
        if not command:
            text = await self._prompt_line("The command as it should be; nothing goes back: ")
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

    async def _prompt_line(self, offer: str) -> str | None:
        """What the person types after an offer; None at the end of input."""
        print(offer, end="", file=sys.stderr, flush=True)
        line = await self._line()
        return line.strip() if line.endswith("\n") else None

    async def _ask_reason(self) -> Answer:
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


def truncate_summary(summary: str) -> str:
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


Typed = Callable[[str], Awaitable[str | None]]
"""Shows an offer and gives back the line that was typed; None at the end of input."""
_FILLING_YES, _FILLING_NO = {"y", "yes", "true", "1"}, {"n", "no", "false", "0"}


async def fill(question: Question, say: Callable[[str], None], typed: Typed) -> Answer:
    """The values, or no. An empty line takes the default, or leaves out what may be left out; `!` says no to all."""
    say("  A server asks you for this. An empty line takes what is in brackets; ! answers nothing at all.")
    required = set(question.schema.get("required") or ())
    values: dict[str, Any] = {}
    for name, about in (question.schema.get("properties") or {}).items():
        while True:
            said = await typed(_offer(name, about, optional=name not in required))
            if said is None or said == "!":
                return NO
            if not said and ("default" in about or name not in required):
                if "default" in about:
                    values[name] = about["default"]
                break
            try:
                values[name] = _validate_value(name, read(said, about), about)
                break
            except ValueError as error:
                say(visible(f"  {error}"))
    return Answer(allow=True, values=values)


def _offer(name: str, about: Mapping[str, Any], *, optional: bool) -> str:
    words = about.get("title") or about.get("description") or name
    choices = _choices(about)
    kinds = (
        f" ({', '.join(_label_choices(choices, about))})"
        if choices
        else " (y/n)"
        if about.get("type") == "boolean"
        else ""
    )
    usual = f" [{_plain(about['default'])}]" if "default" in about else " [nothing]" if optional else ""
    return visible(f"  {words}{kinds}{usual}: ")


def _plain(default: Any) -> str:
    """A default as one would type it."""
    if isinstance(default, bool):
        return "y" if default else "n"
    if isinstance(default, list):
        return ", ".join(map(str, default))
    return default if isinstance(default, str) and default else json.dumps(default, ensure_ascii=False)


def _validate_value(name: str, value: Any, about: Mapping[str, Any]) -> Any:
    """The value, where the server will take it: one that it would not would make an end of all that was typed."""
    schema = {"type": "object", "properties": {name: dict(about)}}
    try:
        judged = judge(schema)
    except ConfigError:
        return value  # what refers to other parts of the schema is looked at with the whole
    if not judged.is_valid({name: value}):
        line = complaints.lines(schema, {name: value}, judged.iter_errors({name: value}))[0]
        raise ValueError(f"It {line.removeprefix(f'{name}: ')}")
    return value


def _choices(about: Mapping[str, Any]) -> list[str]:
    held = about.get("items") if about.get("type") == "array" else about
    if not isinstance(held, Mapping):
        return []
    listed = held.get("enum") or [one.get("const") for one in held.get("oneOf") or held.get("anyOf") or ()]
    return [str(one) for one in listed if one is not None]


def _label_choices(choices: list[str], about: Mapping[str, Any]) -> list[str]:
    """The choices with what they mean, where the server says so."""
    held = about.get("items") if about.get("type") == "array" else about
    assert isinstance(held, Mapping)
    named = {str(one.get("const")): one.get("title") for one in held.get("oneOf") or held.get("anyOf") or ()}
    named |= dict(zip(choices, held.get("enumNames") or (), strict=False))
    return [f"{one} = {named[one]}" if named.get(one) else one for one in choices]


def read(said: str, about: Mapping[str, Any]) -> Any:
    """What was typed, as the kind of value that is wanted. Raises `ValueError` with a sentence."""
    if not said:
        raise ValueError("This one is needed.")
    choices, kind = _choices(about), about.get("type")
    if kind == "array":
        several = [one.strip() for one in said.split(",") if one.strip()]
        if choices and not set(several) <= set(choices):
            raise ValueError(f"Some of {', '.join(choices)}, with commas between them.")
        return several
    if choices and said not in choices:
        raise ValueError(f"One of {', '.join(choices)}.")
    if kind == "boolean":
        if said.lower() not in _FILLING_YES | _FILLING_NO:
            raise ValueError("y or n.")
        return said.lower() in _FILLING_YES
    if kind in {"integer", "number"}:
        return _number(said, whole=kind == "integer")
    return said


def _number(said: str, *, whole: bool) -> int | float:
    try:
        return int(said) if whole else float(said)
    except ValueError:
        raise ValueError("A whole number." if whole else "A number.") from None


_OWN = "0"
_NOTHING = "!"


async def choose(question: Question, say: Callable[[str], None], typed: Typed) -> Answer:
    """The answers, or no. An empty line leaves a question open; `!` answers nothing at all."""
    say("\nThe model asks you. An empty line leaves a question open; ! answers nothing at all.")
    values: dict[str, str | list[str]] = {}
    for choice in question.choices:
        _show_choice(choice, say)
        said = await _ask_choice(choice, say, typed)
        if said is None:
            return NO
        if said:
            values[choice.key] = said if choice.multiple else said[0]
    return Answer(allow=True, values=values) if values else NO


def _show_choice(choice: Choice, say: Callable[[str], None]) -> None:
    say("")
    lines = [visible(line) for line in choice.question.splitlines()] or [""]
    head = f"[{visible(choice.header)}] " if choice.header else ""
    for line in (f"{head}{lines[0]}", *lines[1:]):
        say(f"  {line}")
    for number, option in enumerate(choice.options, 1):
        about = f" - {visible(option.description)}" if option.description else ""
        say(f"    {number}. {visible(option.label)}{about}")


async def _ask_choice(choice: Choice, say: Callable[[str], None], typed: Typed) -> list[str] | None:
    """Labels and own words; none where it is left open, None where nothing at all is to be answered."""
    while True:
        said = await typed(_choice_prompt(choice))
        if said is None or said == _NOTHING:
            return None
        if not said:
            return []
        chosen = parse_choice(choice, said)
        if isinstance(chosen, str):
            say(f"  {chosen}")
            continue
        if "" not in chosen:
            return chosen
        own = await typed("  In your own words: ")
        if own is None:
            return None
        if own:
            return [*filter(None, chosen), own]


def _choice_prompt(choice: Choice) -> str:
    if not choice.options:
        return f"  Your answer{f' ({visible(choice.placeholder)})' if choice.placeholder else ''}: "
    numbers = f"1-{len(choice.options)}, several with commas between them" if choice.multiple else "A number"
    return f"  {numbers}{', or 0 or text for your own words' if choice.free else ''}: "


def parse_choice(choice: Choice, said: str) -> list[str] | str:
    """The labels that a line names by number or by name, or the line itself as own words; empty for a `0`.

    A sentence where the line is no answer.
    """
    if not choice.options:
        return [said]
    labels = [option.label for option in choice.options]
    numbered = {str(number): label for number, label in enumerate(labels, 1)} | ({_OWN: ""} if choice.free else {})
    pieces = [piece.strip() for piece in said.split(",") if piece.strip()] if choice.multiple else [said]
    are_numbers = bool(pieces) and all(piece.isascii() and piece.isdigit() for piece in pieces)
    numbers = [piece.lstrip("0") or _OWN for piece in pieces] if are_numbers else []
    # First: a label may be a number too, and the numbers are what is offered.
    if numbers and numbered.keys() >= set(numbers):
        return list(dict.fromkeys(numbered[number] for number in numbers))
    by_name = {label.casefold(): label for label in labels}
    if choice.kind == "yesno":
        by_name |= {label[:1].casefold(): label for label in labels}
    if said.casefold() in by_name:
        return [by_name[said.casefold()]]
    if choice.free and not numbers:
        return [said]
    own = " Type 0 to answer in your own words." if choice.free else ""
    return f"The answers are 1 to {len(labels)}.{own}"


_EXCHANGED = ("call", "outside", "folder")
"""Questions about a call that has not begun: it may be made with another command."""


class Draft(NamedTuple):
    """What can be changed."""

    text: str
    suffix: str
    """What an editor knows it by."""
    param: str = ""
    """Under which name the call has the command; empty for a plan."""


def draft(question: Question) -> Draft | None:
    """The command or the plan that the question is about; None where it is about something else."""
    if question.kind == "plan":
        return Draft(str(question.input.get("plan", "")), ".md")
    command = question.input.get("command")
    if question.kind not in _EXCHANGED or not isinstance(command, str) or not command.strip():
        return None
    if question.kind == "outside" and not question.input.get("outside"):
        return None  # it came up while the command ran
    if [access.key for access in question.touches if access.kind == "command"] != [command]:
        return None
    given = question.input if question.given is None else question.given
    param = next((name for name, value in given.items() if _command_of(value) == command), "")
    return Draft(command, ".sh", param) if param else None


def approve_draft(question: Question, made: Draft, text: str) -> Answer:
    """A yes to what was made of it."""
    if not made.param:
        return Answer(allow=True, input={"plan": text})
    given = dict(question.input if question.given is None else question.given)
    before = given[made.param]
    given[made.param] = text if isinstance(before, str) else [*before[:-1], text]
    return Answer(allow=True, input=given)


def _command_of(value: object) -> str | None:
    """A command line as a call may have it: as a text, or as the last word of a shell's own."""
    if isinstance(value, list | tuple) and len(value) == 3 and value[1] in {"-c", "-lc"}:
        return value[2] if isinstance(value[2], str) else None
    return value if isinstance(value, str) else None


def editor() -> list[str]:
    """The command that opens the user's editor; empty where none is set."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    with contextlib.suppress(ValueError):
        return shlex.split(chosen)
    return []


def edit(text: str, suffix: str, command: list[str]) -> str | None:
    """The text as the user left it in the editor; None where the editor failed. It waits for the editor.

    Raises: OSError.
    """
    with tempfile.TemporaryDirectory(prefix="ferrule-edit-") as folder:
        path = os.path.join(folder, f"text{suffix}")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        if subprocess.run([*command, path], check=False).returncode != 0:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            edited = file.read()
    return edited if text.endswith("\n") else edited.removesuffix("\n")
