"""What all subjects of the table share: how a case is entered, and what an answer must be read as."""

from collections.abc import Callable
from typing import Any

from bench.proxy.hear import Heard
from bench.proxy.stage import Act, Case, Scene
from bench.proxy.talk import Answer, Ask
from bench.proxy.upstream import says

REASONS: dict[str, dict[str, str]] = {
    "anthropic": {
        "end": "end_turn",
        "tools": "tool_use",
        "length": "max_tokens",
        "stopped": "stop_sequence",
        "refused": "refusal",
    },
    "openai-chat": {
        "end": "stop",
        "tools": "tool_calls",
        "length": "length",
        "stopped": "stop",
        "refused": "content_filter",
    },
    "openai-responses": {
        "end": "completed",
        "tools": "completed",
        "length": "max_output_tokens",
        "stopped": "completed",
        "refused": "content_filter",
    },
    "gemini": {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "stopped": "STOP", "refused": "SAFETY"},
}
"""How each API calls the reasons why a model stopped."""
TELLS_STOPPED = frozenset(("anthropic",))
"""The APIs that tell a stop word from an end; behind the others it is an end."""


class Table:
    """The cases of one subject."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.cases: list[Case] = []

    def case(self, name: str, **options: Any) -> Callable[[Act], Act]:
        """Enter a function as a case."""

        def enter(act: Act) -> Act:
            assert all(one.name != name for one in self.cases), f"two cases are called {name!r}"
            self.cases.append(Case(self.group, name, act, **options))
            return act

        return enter

    def answer(self, name: str, answer: Answer, ask: Ask | None = None, **options: Any) -> None:
        """Enter an answer that every client must read as it was said."""

        async def act(scene: Scene) -> None:
            scene.play(says(answer))
            heard = await scene.ask(ask)
            is_answer(heard, answer, scene)

        self.cases.append(Case(self.group, name, act, **options))


def equal(found: Any, wanted: Any, what: str) -> None:
    """Raises AssertionError with both where they differ."""
    assert found == wanted, f"{what}: {str(found)[:400]!r}, and must be {str(wanted)[:400]!r}"


def is_answer(heard: Heard, answer: Answer, scene: Scene) -> None:
    """Raises AssertionError unless a client has read just this answer."""
    if heard.failed is not None:
        raise AssertionError(f"failed: {heard.failed}")
    equal(heard.text, answer.text, "text")
    equal(heard.thinking, answer.thinking, "thinking")
    equal(heard.calls, answer.calls, "calls")
    is_told(heard, answer, scene)
    assert all(heard.ids), f"ids: {heard.ids}"
    assert len(set(heard.ids)) == len(heard.ids), f"ids: {heard.ids}"


def is_told(heard: Heard, answer: Answer, scene: Scene) -> None:
    """Raises AssertionError unless the end of an answer is told as it was."""
    stop = answer.stop
    if stop == "stopped" and scene.wire not in TELLS_STOPPED:
        stop = "end"
    equal(heard.reason, REASONS[scene.client][stop], "reason")
    counted = answer.counted
    equal((heard.input, heard.output, heard.cached), (counted.input, counted.output, counted.cached), "tokens")
    assert heard.id or scene.client == "gemini", "an answer without an id"  # which need not have one
