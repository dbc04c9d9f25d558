"""The program that an SDK starts, and what one query of the SDK has shown of it."""

import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, query
from tests.cli.sdk.messages_api import MessagesApi, Talk, texts

MODEL = "claude-opus-4-5"


class Seen:
    """What came of a query."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.messages: list[Any] = []
        self.stderr: list[str] = []
        self.error = ""

    def kinds(self) -> list[str]:
        return [f"{type(one).__name__} {getattr(one, 'subtype', '')}".strip() for one in self.messages]

    def of(self, kind: str) -> list[Any]:
        """The messages of a kind, or the system messages of a subtype."""
        return [one for one in self.messages if kind in {type(one).__name__, getattr(one, "subtype", None)}]

    @property
    def result(self) -> Any:
        return self.of("ResultMessage")[-1]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests of the conversation itself, without those that programs make beside it."""
        return [body for body in self.talk.asked if any("PROMPT" in text for text in texts(body["messages"]))]

    @property
    def system(self) -> str:
        """The system prompt of the last request."""
        given = self.asked[-1].get("system") or ""
        return given if isinstance(given, str) else "\n".join(block["text"] for block in given)

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.asked[0].get("tools", ())]

    @property
    def warnings(self) -> list[str]:
        return [one.data["message"] for one in self.of("warning")]

    def results(self) -> list[str]:
        """What the model was told of its calls, as text."""
        blocks = [
            block
            for message in self.asked[-1]["messages"]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        return [_text(block["content"]) for block in blocks]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", block["type"]) for block in content)


class Program:
    """`ferrule run`, or any other program that FERRULE_TESTED_PROGRAM names: the table is also what that one does."""

    def __init__(self, api: MessagesApi, folder: Path) -> None:
        self._api = api
        self.home = folder / "home"
        self.workspace = folder / "work"
        for made in (self.home, self.workspace):
            made.mkdir()
        self.path = os.environ.get("FERRULE_TESTED_PROGRAM") or str(_script(folder / "ferrule-run"))
        self.is_own = "FERRULE_TESTED_PROGRAM" not in os.environ

    def user_rules(self, **rules: list[str]) -> None:
        """Rules in the user's own settings, of either program."""
        (self.home / ".claude").mkdir(exist_ok=True)
        (self.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": rules}))
        with open(os.environ["FERRULE_SETTINGS"], "a", encoding="utf-8") as file:
            file.write("[permissions]\n" + "".join(f"{name} = {json.dumps(texts)}\n" for name, texts in rules.items()))

    def write(self, name: str, text: str) -> Path:
        """A file of the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def files(self) -> dict[str, str]:
        """The files at the top of the workspace."""
        return {path.name: path.read_text() for path in sorted(self.workspace.iterdir()) if path.is_file()}

    def environment(self, address: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "key",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1",
        }

    def options(self, address: str, seen: Seen, given: Mapping[str, Any]) -> ClaudeAgentOptions:
        environment = {**self.environment(address), **given.get("env", {})}
        usual = {"cwd": self.workspace, "model": MODEL, "stderr": seen.stderr.append}
        return ClaudeAgentOptions(cli_path=self.path, **{**usual, **given, "env": environment})

    async def query(self, cues: Any, prompt: Any = "PROMPT", **given: Any) -> Seen:
        """One `query()` with these options. `cues` are those of the conversation, or of several by words of theirs."""
        address, talk = self._api.talk(cues if isinstance(cues, Mapping) else {"PROMPT": cues})
        seen = Seen(talk)
        try:
            async for message in query(
                prompt=prompt if isinstance(prompt, str) else _stream(prompt),
                options=self.options(address, seen, given),
            ):
                seen.messages.append(message)
        except Exception as error:  # noqa: BLE001 - what a start that fails raises is of no one type
            seen.error = f"{type(error).__name__}: {error}"
        return seen


async def _stream(content: Any) -> AsyncIterator[dict[str, Any]]:
    yield {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "session_id": "",
    }


def _script(path: Path) -> Path:
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m ferrule run "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
