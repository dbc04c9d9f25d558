"""What a hook answers: by its exit code and what it prints, or by what a function gives back.

| exit code | meaning |
|---|---|
| 0 | it prints its answer as a JSON object, or nothing; `SessionStart` and `UserPromptSubmit` may print plain context |
| 2 | it objects, and what it wrote to its standard error is the reason |
| 126, 127, or the end by a signal | it could not run, or did not come to its end: it failed |
| others | a note for the user; the call goes on |

A hook that fails has said nothing. Before a call that counts as `ask`, for it might have refused: a person decides, and
where nobody can be asked the call is denied. So does an answer before a call that speaks of a decision in words which
are not understood. Every other mistake is told to the user and changes nothing.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

TEXT_CHARS = 10_000
"""So much of a reason, a context or a message is passed on."""
_NO_REASON = "A hook refused this and gave no reason."
_NO_STOP_REASON = "A hook stopped the work and gave no reason."
_STOPS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"})
"""Events where `continue: false` is an objection,"""
_OBJECTS = _STOPS | {"Stop", "SubagentStop", "PermissionRequest"}
"""and those where there is something to object to, and where it ends the work. At the others the user is told."""
_PLAIN = frozenset({"SessionStart", "UserPromptSubmit"})
"""Events whose hooks may give context as a plain text."""
_CANNOT_RUN = frozenset({126, 127})
_SIGNALS = range(129, 193)
_DECIDES = r"(?i)['\"](?:permissionDecision|decision|updatedInput|continue)\\?['\"]\s*:"
"""Part of an answer, in a text that is not all JSON;"""
_MAY_DECIDE = r"(?i)decision|updatedInput|continue|hookSpecificOutput"
"""and in one that should have been."""

Verdict = Literal["", "allow", "ask", "deny"]
_DECISIONS: dict[str, Verdict] = {"allow": "allow", "deny": "deny", "ask": "ask"}
_OLDER: dict[str, Verdict] = {"approve": "allow", "block": "deny"}
_STRICTNESS = {"": 0, "allow": 1, "ask": 2, "deny": 3}


class HookAnswer(NamedTuple):
    """What one hook says. Where an event has no call to decide about, `deny` means that it objects."""

    verdict: Verdict = ""
    reason: str = ""
    input: dict[str, Any] | None = None
    context: str = ""
    told: tuple[str, ...] = ()
    """Sentences for the user."""
    variables: dict[str, str] | None = None
    """What the session's commands shall find in their environment."""
    stop: str = ""
    """Why the whole work is to end; empty where it goes on."""
    printed: tuple[int, bytes, bytes] | None = None
    """The exit code, the output and the error output of a program that came to its end."""
    is_confined: bool = False
    """Did it run where commands run? Then whoever writes the workspace may have spoken."""


def strictest(verdicts: list[Verdict]) -> Verdict:
    return max(verdicts, key=_STRICTNESS.__getitem__, default="")


def truncate(text: str) -> str:
    text = text.strip()
    return text if len(text) <= TEXT_CHARS else text[:TEXT_CHARS].rstrip() + " …"


def failure(event: str, who: str, why: str) -> HookAnswer:
    """The answer of a hook that gave none. `who` begins a sentence, and `why` ends it."""
    sentence = truncate(f"{who} {why}.")
    return HookAnswer("ask", sentence, told=(sentence,)) if event == "PreToolUse" else HookAnswer(told=(sentence,))


def from_exit(event: str, who: str, exit_code: int, stdout: bytes, stderr: bytes) -> HookAnswer:
    """What a program said by its exit code and its output."""
    if exit_code == 0:
        return _parse_stdout(event, who, stdout)
    said = truncate(stderr.decode(errors="replace"))
    if exit_code == 2:
        return _objection(event, who, said)
    ending = f": {said}" if said else ""
    if exit_code in _CANNOT_RUN:
        return failure(event, who, f"could not be run (exit code {exit_code}){ending}")
    if exit_code in _SIGNALS:
        return failure(event, who, f"was ended by signal {exit_code - 128}{ending}")
    return HookAnswer(told=(truncate(f"{who} failed with exit code {exit_code}{ending or '.'}"),))


def _objection(event: str, who: str, reason: str) -> HookAnswer:
    if event in _OBJECTS:
        return HookAnswer("deny", reason or _NO_REASON)
    return HookAnswer(told=(truncate(f"{who} says: {reason}"),)) if reason else HookAnswer()


def _parse_stdout(event: str, who: str, stdout: bytes) -> HookAnswer:
    text = stdout.decode(errors="replace").removeprefix("\ufeff").strip()
    if not text.startswith("{"):
        if event == "PreToolUse" and re.search(_DECIDES, text):
            # Something on the way, a start-up file for one, has printed before it.
            return failure(event, who, "printed a decision among other text; it must print nothing but one JSON object")
        return HookAnswer(context=truncate(text)) if event in _PLAIN else HookAnswer()
    try:
        answer = msgspec.json.decode(stdout.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"printed what is no JSON ({error})"
        return (
            failure(event, who, why) if re.search(_MAY_DECIDE, text) else HookAnswer(told=(truncate(f"{who} {why}."),))
        )
    return from_object(event, who, answer)


def from_object(event: str, who: str, answer: object) -> HookAnswer:
    """What an answer means. It never raises, whatever it is given."""
    if answer is None:
        return HookAnswer()
    if not isinstance(answer, Mapping):
        return failure(event, who, f"answered with {_kind(answer)} instead of an object")
    reading = _HookAnswerReader(answer)
    specific = reading.specific(event)
    decided = specific.choice("permissionDecision", _DECISIONS)
    older = reading.choice("decision", _OLDER)
    stopped = reading.flag("continue") is False
    stop_reason = reading.text("stopReason")
    reasons = [stop_reason if stopped else "", specific.text("permissionDecisionReason"), reading.text("reason")]
    reasons.append(specific.denial())
    changed = specific.input()
    context = specific.text("additionalContext") or reading.text("additionalContext")
    told = [reading.text("systemMessage")]
    reading.flag("suppressOutput")
    verdict: Verdict = ""
    if event == "PreToolUse":
        verdict = strictest([decided, older, "deny" if stopped else ""])
    elif event in _OBJECTS:
        objects = older == "deny" or (stopped and event in _STOPS) or specific.denies()
        verdict = "deny" if objects else ""
    elif stopped:
        told.append(stop_reason)
    if wrong := [*reading.wrong, *specific.wrong]:
        mistake = f"{who} answered with {' and '.join(wrong)}."
        told.append(mistake)
        if event == "PreToolUse" and (reading.mentions() or specific.mentions()):
            verdict = strictest([verdict, "ask"])
            reasons.append(mistake)
    if verdict == "deny":
        reasons.append(_NO_REASON)
        changed = None
    return HookAnswer(
        verdict,
        next((truncate(one) for one in reasons if one), "") if verdict else "",
        changed if event == "PreToolUse" else None,
        context,
        tuple(truncate(one) for one in told if one),
        stop=(stop_reason or _NO_STOP_REASON) if stopped and event in _OBJECTS else "",
    )


class _HookAnswerReader:
    """An object that somebody else wrote: what is right in it, and what is wrong."""

    def __init__(self, fields: Mapping[Any, Any]) -> None:
        self._fields = fields
        self.wrong: list[str] = []
        """What is wrong, as in "answered with …"."""

    def specific(self, event: str) -> "_HookAnswerReader":
        """The part that is for one event."""
        part = self._fields.get("hookSpecificOutput")
        if event == "PreToolUse":
            for name in ("permissionDecision", "updatedInput"):
                if self._fields.get(name) is not None:
                    self.wrong.append(f"{name} outside of hookSpecificOutput")
        if part is None:
            return _HookAnswerReader({})
        if not isinstance(part, Mapping):
            self.wrong.append(f"{_kind(part)} as hookSpecificOutput")
            return _HookAnswerReader({})
        reading = _HookAnswerReader(part)
        named = part.get("hookEventName")
        if named is not None and named != event:
            reading.wrong.append(f"a hookEventName that is not {event}")
        return reading

    def mentions(self) -> bool:
        """Is there a word on the call in it, right or wrong?"""
        deciding = ("decision", "permissionDecision", "updatedInput", "continue")
        part = self._fields.get("hookSpecificOutput")
        return any(self._fields.get(name) is not None for name in deciding) or not isinstance(part, Mapping | None)

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            return truncate(value or "")
        self.wrong.append(f"{_kind(value)} as {name}")
        return ""

    def flag(self, name: str) -> bool | None:
        value = self._fields.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.wrong.append(f"{_kind(value)} as {name}")
        return None

    def choice(self, name: str, meanings: Mapping[str, Verdict]) -> Verdict:
        value = self._fields.get(name)
        if value is None:
            return ""
        found = meanings.get(value) if isinstance(value, str) else None
        if found is None:
            shown = f"“{value[:40]}”" if isinstance(value, str) else _kind(value)
            self.wrong.append(f"{shown} as {name}, which is one of {', '.join(meanings)}")
        return found or ""

    def denies(self) -> bool:
        """Is the answer to a question no?"""
        decision = self._fields.get("decision")
        return isinstance(decision, Mapping) and decision.get("behavior") == "deny"

    def denial(self) -> str:
        """Why it is."""
        decision = self._fields.get("decision")
        return truncate(str(decision.get("message") or "")) if isinstance(decision, Mapping) and self.denies() else ""

    def input(self) -> dict[str, Any] | None:
        value = self._fields.get("updatedInput")
        if value is None or isinstance(value, dict):
            return value
        self.wrong.append(f"{_kind(value)} as updatedInput")
        return None


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), f"a {type(value).__name__}")
