"""How a conversation reads to a local model: what its template is given, and what it is told about tools."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ferrule.models.local_grammar import CLOSE, OPEN, TAIL, head
from ferrule.models.standins import each_text
from ferrule.wire.content import document_words, json_text, object_out
from ferrule.wire.conversation import apart
from ferrule.wire.turn import Definition, Document, Image, Result, Text, Turn, Use

_HOW = f"""To use a tool, write only this:
{OPEN}
{{"name": "NAME", "arguments": {{"PARAMETER": "VALUE"}}}}
{CLOSE}
The tools:"""
RESULT = ("<tool_response>", "</tool_response>")
_MARKS = (OPEN, CLOSE, *RESULT)
_LINE_CHARACTERS = 160


def knows_tools(template: str) -> bool:
    """Does the template itself tell the model about tools, in the form that the grammar demands?"""
    return bool(re.search(r"\btools\b", template)) and OPEN in template and "<function=" not in template


class Telling:
    """Tells one model a conversation.

    What others wrote cannot pose as a mark: the ends of turns and of results are broken up by a space in it, wherever
    it comes from. For the model they would otherwise be the real ones, and a file could speak as the user.
    """

    def __init__(self, template: str, specials: Sequence[str]) -> None:
        self._is_known = knows_tools(template)
        marks = sorted({*specials, *_MARKS}, key=len, reverse=True)
        self._marks = re.compile("|".join(map(re.escape, marks)))

    def conversation(self, turns: Sequence[Turn], definitions: Sequence[Definition]) -> dict[str, Any]:
        """The members of the body that say what was said. A template that does not know tools is told in words."""
        system, rest = apart(turns)
        system = self._plain(system)
        body: dict[str, Any] = {}
        if definitions and self._is_known:
            body["chat_template_kwargs"] = {"tools": [self._function(one) for one in definitions]}
        elif definitions:
            told = "\n".join([_HOW, *map(self._line, definitions)])
            system = f"{system}\n\n{told}" if system else told
        messages = [{"role": "system", "content": system}] if system else []
        for turn in rest:
            for message in self._with_calls(turn) if self._is_known else self._in_words(turn):
                # Many templates insist on turns that alternate.
                if messages and _are_one(messages[-1], message):
                    messages[-1]["content"] += "\n\n" + message["content"]
                else:
                    messages.append(message)
        return {**body, "messages": messages}

    def _plain(self, text: str) -> str:
        return self._marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    def _function(self, one: Definition) -> dict[str, Any]:
        function = {"name": one.name, "description": one.words, "parameters": dict(one.schema)}
        return {"type": "function", "function": each_text(function, self._plain)}

    def _line(self, one: Definition) -> str:
        """A tool in one line: its parameters, and the first sentence about it. The grammar knows the rest."""
        required = set(one.schema.get("required", ()))
        names = (name if name in required else f"{name}?" for name in one.schema.get("properties", {}))
        about = re.split(r"(?<=[.!?])\s|\n", one.words.strip(), maxsplit=1)[0]
        return self._plain(f"{one.name}({', '.join(names)}): {about[:_LINE_CHARACTERS]}")

    def _with_calls(self, turn: Turn) -> Iterator[dict[str, Any]]:
        for part in turn.parts:
            if isinstance(part, Result):
                yield {"role": "tool", "tool_call_id": part.id, "content": self._words(part)}
        text = self._words(turn)
        called = [
            {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": self._arguments(use)}}
            for use in turn.parts
            if isinstance(use, Use)
        ]
        if called:
            yield {"role": "assistant", "content": text, "tool_calls": called}
        elif text:
            yield {"role": turn.role, "content": text}

    def _in_words(self, turn: Turn) -> Iterator[dict[str, Any]]:
        texts = []
        for part in turn.parts:
            if isinstance(part, Result):
                texts.append(f"{RESULT[0]}\n{self._words(part)}\n{RESULT[1]}")
            elif isinstance(part, Use):
                texts.append(f"{head(part.name)}{self._arguments(part)}{TAIL}")
            elif text := self._text(part):
                texts.append(text)
        if texts:
            yield {"role": turn.role, "content": "\n".join(texts)}

    def _arguments(self, use: Use) -> str:
        return self._plain(json_text(object_out(use)))

    def _words(self, holder: Turn | Result) -> str:
        return "\n".join(text for part in holder.parts if (text := self._text(part)))

    def _text(self, part: object) -> str:
        """Pictures are not shown to local models."""
        if isinstance(part, Text):
            return self._plain(part.text)
        if isinstance(part, Document):
            return self._plain(document_words(part) if part.text else "[A file, which this model cannot read.]")
        return "[A picture, which this model cannot see.]" if isinstance(part, Image) else ""


def _are_one(last: dict[str, Any], message: dict[str, Any]) -> bool:
    return last["role"] == message["role"] != "tool" and "tool_calls" not in last and "tool_calls" not in message
