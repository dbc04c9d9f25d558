"""Has the program that started this one answer the session's questions, as `can_use_tool`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ferrule.cli.driven.peer import Peer, PeerError
from ferrule.core.errors import FerruleError
from ferrule.permissions.ask import KINDS, NO, Answer, Question
from ferrule.tools import facts_of
from ferrule.wire.conversation import json_text

if TYPE_CHECKING:
    from ferrule.agent.session import Session


_EXCHANGED = ("call", "outside", "folder")
"""Questions about a call that has not begun: it may be made with another input."""
_OTHER = "The user wants this call with another input, so it was not made. Make it with exactly this input: {}"


class ByPeer:
    """Asks the other program. What it cannot be asked, such as whether a server may start, is denied."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.session: Session | None = None
        """Tells what the model calls the arguments, and is interrupted where the answer says so."""
        self.warn: Callable[[str], None] = lambda _: None
        self.change_mode: Callable[[str], object] = lambda _: None
        self.halt: Callable[[], object] = lambda: None
        """Told when an answer ends the work on a prompt: another one may follow."""
        self._halted: tuple[object, Answer] | None = None
        """The prompt that an answer has ended, by its budget, and that answer: nothing more is asked about it."""

    async def ask(self, question: Question) -> Answer:
        if question.kind in {"server", "values"} or KINDS[question.kind].only_persons:
            return NO
        if self._halted is not None and self.session is not None and self._halted[0] is self.session.agent.budget:
            return self._halted[1]
        given = self._tool_input(question)
        suggested = _render_suggestions(question)
        try:
            said = await self._peer.ask(
                "can_use_tool",
                tool_name=question.name,
                input=given,
                tool_use_id=question.call_id,
                description=question.summary,
                decision_reason=question.why,
                permission_suggestions=suggested,
                **({"preview": "\n".join(question.changes)} if question.changes else {}),
                **({"blocked_path": question.folder} if question.folder else {}),
                **({"agent_id": question.who} if question.who else {}),
            )
        except PeerError as error:
            return Answer(allow=False, message=f"Nobody could be asked about this: {error}")
        if said.get("behavior") != "allow":
            answer = Answer(allow=False, message=str(said.get("message") or ""), stop=said.get("interrupt") is True)
            if answer.stop and self.session is not None:
                self._halted = (self.session.agent.budget, answer)
                self.halt()
            return answer
        wanted = said.get("updatedInput")
        if question.kind == "choose":
            return _parse_choices(question, wanted if isinstance(wanted, dict) else {})
        always = self._always(said.get("updatedPermissions"), suggested)
        if isinstance(wanted, dict) and wanted != given and question.kind != "plan":
            if question.kind not in _EXCHANGED:
                # It is about something that came up while the call ran: its input is what it is.
                return Answer(allow=False, message=_OTHER.format(json_text(wanted)))
            return Answer(allow=True, always=always, input=wanted)
        return Answer(allow=True, always=always)

    def _tool_input(self, question: Question) -> dict[str, Any]:
        """The arguments as the model gave them, which is what the other program knows the call by."""
        if question.kind == "choose":
            return {"questions": [_render_choice(choice) for choice in question.choices]}
        if question.kind == "plan":
            return dict(question.input)
        if question.given is not None or self.session is None:
            return dict(question.input if question.given is None else question.given)
        try:
            face = self.session.engine.registry.resolve(question.name).face
            return face.advertised(question.input)
        except (FerruleError, TypeError, ValueError, KeyError):
            return dict(question.input)

    def _always(self, updates: Any, suggested: list[dict[str, Any]]) -> bool:
        """Does the answer hold for the like of it too? Only what was suggested can."""
        if not updates:
            return False
        if updates == suggested:
            for one in suggested:
                if one["type"] == "setMode":
                    self.change_mode(one["mode"])
            return True
        self.warn("Rules that differ from the suggested ones are not taken with an answer: this call is allowed once.")
        return False


def _render_suggestions(question: Question) -> list[dict[str, Any]]:
    """What "always" would save, in the form of the other program."""
    rules = []
    for text in question.proposals if question.kind == "call" else ():
        name, opened, inner = text.partition("(")
        rules.append({"toolName": name, **({"ruleContent": inner.removesuffix(")")} if opened else {})})
    if not rules:
        is_edit = question.kind == "call" and facts_of(question.tool).kind == "edit"
        return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}] if is_edit else []
    return [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "localSettings"}]


def _render_choice(choice: Any) -> dict[str, Any]:
    options = [{"label": one.label, "description": one.description} for one in choice.options]
    return {
        "question": choice.question,
        "header": choice.header,
        "options": options,
        "multiSelect": choice.multiple,
    }


def _parse_choices(question: Question, given: Mapping[str, Any]) -> Answer:
    answers = given.get("answers")
    if not isinstance(answers, dict):
        return NO
    values = {choice.key: answers[choice.question] for choice in question.choices if choice.question in answers}
    return Answer(allow=True, values=values) if values else NO
