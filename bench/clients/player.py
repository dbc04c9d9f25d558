"""The upstream of a conversation: it finds in a body which turn is meant, and judges every body that it receives."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bench.clients.script import Step, Turn
from bench.proxy import speak, strict
from bench.proxy.seen import Seen
from bench.proxy.talk import Answer, Call, Saying, Think, Words
from bench.proxy.upstream import Got, refuses, says

_MARK = re.compile(r"\[\[(t\d\d|child)\]\]")
_BUNDLE = "bundle "
FINISH = "complete_task"
_MOST_REQUESTS = 150
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBmYWtl"


@dataclass
class Player:
    """What a conversation's upstream is asked and says."""

    wire: str
    face: Any
    """Deed → (tool, arguments), or None."""
    turns: dict[str, Turn]
    faults: list[str] = field(default_factory=list)
    given: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each step was asked for."""
    pictures: set[str] = field(default_factory=set)
    """Turns in which a picture came."""
    side: int = 0
    """Requests that are not of the script, such as those for a title."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0
    answers: int = 0
    declared: dict[str, str] = field(default_factory=dict)
    """The tools of the last request, by the kinds of OpenAI's APIs."""

    async def __call__(self, got: Got) -> None:
        """Answer one request."""
        if "count" in got.path.lower() or got.path.endswith("input_tokens"):
            await refuses(404, "no such page")(got)
            return
        body = got.body
        self.bodies.append(body)
        if len(self.bodies) > _MOST_REQUESTS:
            self._fault(f"more than {_MOST_REQUESTS} requests")
            await refuses(400, "It goes in circles.")(got)
            return
        if got.wire != self.wire:
            self._fault(f"{got.wire} was asked")
        try:
            seen = strict.check(body, got.wire)
        except Exception as error:  # noqa: BLE001 - a body that nobody can read is what is looked for
            self._fault(f"a body that a host refuses: {type(error).__name__}: {error}")
            await refuses(400, str(error))(got)
            return
        turn, at = self._place(seen)
        if turn is None or not seen.tools or at >= len(turn.steps):
            self.side += 1
            await says(self._whole(Words(("Aside.",))))(got)
            return
        self._judge_results(seen, turn, at)
        await self._give(got, turn, at)

    def _place(self, seen: Seen) -> tuple[Turn | None, int]:
        """The turn that is asked for, and how many answers it has had."""
        for at in range(len(seen.turns) - 1, -1, -1):
            role, parts = seen.turns[at]
            if role != "user":
                continue
            found = [name for part in parts if part[0] == "text" for name in _MARK.findall(part[1])]
            if found:
                return self.turns.get(found[-1]), sum(role == "assistant" for role, _ in seen.turns[at + 1 :])
        return None, 0

    def _fault(self, words: str) -> None:
        if words not in self.faults:
            self.faults.append(words)

    def _judge_results(self, seen: Seen, turn: Turn, at: int) -> None:
        last = _since_answer(seen)
        flat = json.dumps(last, ensure_ascii=False)
        if any(_has_picture(part) for part in last):
            self.pictures.add(turn.name)
        if at == 0:
            return
        for deed in turn.steps[at - 1].deeds:
            if deed.shows not in flat and self.face(deed) is not None:
                self._fault(f"{turn.name}: no {deed.shows!r} in {flat[:300]}")

    async def _give(self, got: Got, turn: Turn, at: int) -> None:
        self.declared = _declared(got.body)
        step = turn.steps[at]
        before = self.given[turn.name, at]
        self.given[turn.name, at] += 1
        if before < len(step.refusals):
            status = step.refusals[before]
            # Others know no 529.
            await refuses(status if self.wire == "anthropic" or status != 529 else 503, "Not now.", retry_after="0")(
                got
            )
            return
        if step.ending == "whole":
            await says(self._answer(step))(got)
        elif step.ending == "held":
            await self._hold(got, step)
        elif before == 0:
            await self._cut(got, step)
        else:
            await says(self._whole(Words((step.words,))))(got)

    async def _cut(self, got: Got, step: Step) -> None:
        events = speak.stream(self._answer(step), got.wire)
        await got.begin()
        for one in events[: max(1, len(events) // 2)]:
            await got.chunk(one)
            await asyncio.sleep(0)
        got.cut()

    async def _hold(self, got: Got, step: Step) -> None:
        events = speak.stream(self._answer(step), got.wire)
        await got.begin()
        for one in events[: max(1, len(events) // 2)]:
            await got.chunk(one)
        self.holding.set()
        await got.gone()
        self.left.set()

    def _answer(self, step: Step) -> Answer:
        made: list[Saying] = []
        if step.thinking:
            made.append(Think(_pieces(step.thinking), SIGNATURE))
        if step.words and FINISH in self.declared and not step.deeds:
            # A subagent of gemini-cli reports by a call.
            self.calls += 1
            return self._whole(
                Call(f"call_{self.calls}", FINISH, _pieces(json.dumps({"result": {"response": step.words}})))
            )
        if step.words:
            made.append(Words(_pieces(step.words)))
        for deed in step.deeds:
            called = self.face(deed)
            if called is not None:
                self.calls += 1
                name, arguments = called
                made.append(self._call(name, arguments))
        return self._whole(*made)

    def _call(self, name: str, arguments: dict[str, Any]) -> Call:
        """A call in the form in which its tool was declared: some clients have theirs in bundles."""
        found = next((one for one in self.declared if one == name or one.endswith(f"__{name}")), name)
        kind = self.declared.get(found, "function")
        bundle = kind.removeprefix(_BUNDLE) if kind.startswith(_BUNDLE) else ""
        given = arguments["input"] if kind == "custom" else json.dumps(arguments, ensure_ascii=False)
        return Call(f"call_{self.calls}", found, _pieces(given), is_text=kind == "custom", bundle=bundle)

    def _whole(self, *made: Saying) -> Answer:
        """An answer with an id of its own."""
        self.answers += 1
        return Answer(made or (Words(("I have no such tool.",)),), id=f"answer_{self.answers}")


def _declared(body: dict[str, Any]) -> dict[str, str]:
    """Tool → its kind, as far as the API has kinds."""
    out = {}
    for tool in body.get("tools") or ():
        for one in tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]:
            for nested in one.get("tools") or ():
                out[nested["name"]] = f"{_BUNDLE}{one['name']}"
            inner = one.get("custom") or one.get("function") or one
            out[str(inner.get("name", one.get("type")))] = str(one.get("type", "function"))
    return out


def _pieces(text: str, size: int = 24) -> tuple[str, ...]:
    return tuple(text[at : at + size] for at in range(0, len(text), size))


def _since_answer(seen: Seen) -> list[Any]:
    """All that was said behind the model's last answer."""
    out: list[Any] = []
    for role, parts in reversed(seen.turns):
        if role == "assistant":
            break
        out += parts
    return out


def _has_picture(part: Any) -> bool:
    if part[0] == "image":
        return True
    return part[0] == "result" and any(_has_picture(one) for one in part[2])
