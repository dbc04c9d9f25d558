"""How a program drives each client: lines of JSON on its standard input and output, in four protocols."""

import asyncio
import contextlib
import itertools
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 45.0
"""Nothing here is waited for longer."""
_LINE = 1 << 26


class EndedError(Exception):
    """The client has ended, or said nothing for too long."""


@dataclass
class Said:
    """What came back for one prompt."""

    text: str = ""
    error: str = ""
    tokens: int = 0
    """What the client says that it has sent and got; 0 where it says nothing of it."""


class Lines:
    """A process that reads and writes lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process, kept: Path) -> None:
        self._process = process
        self._kept = kept

    @classmethod
    async def start(cls, command: list[str], folder: Path, env: dict[str, str], log: Path) -> "Lines":
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env=env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=_LINE,
                start_new_session=True,
            )
        return cls(process, log.with_suffix(".jsonl"))

    async def put(self, value: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.drain()

    async def get(self) -> dict[str, Any]:
        """The next object; what is none is passed over. Raises EndedError."""
        assert self._process.stdout is not None
        while True:
            try:
                async with asyncio.timeout(SECONDS):
                    line = await self._process.stdout.readline()
            except TimeoutError:
                raise EndedError(f"it said nothing for {SECONDS:.0f} seconds") from None
            if not line:
                raise EndedError("its output ended")
            with self._kept.open("ab") as file:
                file.write(line)
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                return value

    async def close(self) -> int:
        """End the input, and wait for the process. Returns its exit code."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        for end in (None, self._process.terminate, self._process.kill):
            if end is not None:
                with contextlib.suppress(ProcessLookupError):
                    end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    assert self._process.stdout is not None
                    while await self._process.stdout.read(1 << 16):
                        pass
                    return await self._process.wait()
        return -1


class Talk(ABC):
    """A conversation with a client that is running."""

    def __init__(self, lines: Lines, folder: Path, model: str) -> None:
        self.lines = lines
        self.folder = folder
        self.model = model
        self.hears = asyncio.Event()
        """Has the client told of a word of the answer that it is getting?"""

    @abstractmethod
    async def open(self) -> None:
        """Say what has to be said before the first prompt."""

    @abstractmethod
    async def prompt(self, text: str, picture: str = "") -> Said:
        """One prompt, with a picture in base64 or without, until the client waits for the next one."""

    @abstractmethod
    async def interrupt(self) -> None:
        """Stop what it is doing; `prompt` then comes back."""

    async def close(self) -> int:
        return await self.lines.close()


class ClaudeTalk(Talk):
    """Claude Code's own lines, as its SDK speaks them."""

    async def open(self) -> None:
        pass

    async def prompt(self, text: str, picture: str = "") -> Said:
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if picture:
            source = {"type": "base64", "media_type": "image/png", "data": picture}
            content.append({"type": "image", "source": source})
        await self.lines.put({"type": "user", "message": {"role": "user", "content": content}})
        said = Said()
        while True:
            line = await self.lines.get()
            if line["type"] == "stream_event" and line["event"]["type"] == "content_block_delta":
                self.hears.set()
            elif line["type"] == "assistant" and not line.get("parent_tool_use_id"):
                blocks = line["message"]["content"]
                said.text += "".join(block["text"] for block in blocks if block["type"] == "text")
            elif line["type"] == "result":
                usage = line.get("usage") or {}
                said.tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
                if line.get("is_error") or line.get("subtype") != "success":
                    said.error = str(line.get("result") or line.get("errors") or line.get("subtype"))
                return said

    async def interrupt(self) -> None:
        request = {"subtype": "interrupt"}
        await self.lines.put({"type": "control_request", "request_id": "stop", "request": request})


class _Rpc(Talk):
    """JSON-RPC in lines."""

    def __init__(self, lines: Lines, folder: Path, model: str) -> None:
        super().__init__(lines, folder, model)
        self._numbers = itertools.count(1)

    async def ask(self, method: str, **params: Any) -> int:
        number = next(self._numbers)
        await self.lines.put({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    async def asked(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and wait for the answer. Raises EndedError for an error."""
        number = await self.ask(method, **params)
        while True:
            line = await self.lines.get()
            if "method" in line:
                await self.told(line)
            elif line.get("id") == number:
                if "error" in line:
                    raise EndedError(f"{method}: {line['error']}")
                result = line["result"]
                assert isinstance(result, dict)
                return result

    async def told(self, line: dict[str, Any]) -> None:
        """What the client says or asks in between; every question is answered with yes."""
        if "id" not in line:
            return
        options = line.get("params", {}).get("options") or ()
        chosen = [one["optionId"] for one in options if str(one.get("kind", "")).startswith("allow")]
        outcome = {"outcome": "selected", "optionId": chosen[0]} if chosen else {"outcome": "cancelled"}
        await self.lines.put({"jsonrpc": "2.0", "id": line["id"], "result": {"outcome": outcome}})


class AcpTalk(_Rpc):
    """The Agent Client Protocol: gemini-cli, qwen-code, opencode."""

    session = ""

    async def open(self) -> None:
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        await self.asked("initialize", protocolVersion=1, clientCapabilities=able)
        made = await self.asked("session/new", cwd=str(self.folder), mcpServers=[])
        self.session = made["sessionId"]

    async def prompt(self, text: str, picture: str = "") -> Said:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if picture:
            blocks.append({"type": "image", "mimeType": "image/png", "data": picture})
        number = await self.ask("session/prompt", sessionId=self.session, prompt=blocks)
        said = Said()
        while True:
            line = await self.lines.get()
            if "method" in line:
                update = line.get("params", {}).get("update", {})
                if update.get("sessionUpdate") == "agent_message_chunk":
                    said.text += update["content"].get("text", "")
                    self.hears.set()
                elif update.get("sessionUpdate") == "usage_update":
                    said.tokens = update.get("used", 0)
                await self.told(line)
            elif line.get("id") == number:
                if "error" in line:
                    said.error = json.dumps(line["error"])
                    return said
                result = line["result"]
                said.tokens = _most(result) or said.tokens
                if result["stopReason"] not in {"end_turn", "cancelled"}:
                    said.error = result["stopReason"]
                return said

    async def interrupt(self) -> None:
        params = {"sessionId": self.session}
        await self.lines.put({"jsonrpc": "2.0", "method": "session/cancel", "params": params})


def _most(value: Any) -> int:
    """The greatest number of tokens that is told of anywhere in an answer."""
    if not isinstance(value, dict):
        return max(map(_most, value), default=0) if isinstance(value, list) else 0
    own = [one for name, one in value.items() if "token" in name.lower() and type(one) is int]
    return max((*own, *map(_most, value.values())), default=0)


class CodexTalk(_Rpc):
    """The app server of codex."""

    thread = ""
    turn = ""

    async def open(self) -> None:
        await self.asked("initialize", clientInfo={"name": "trial", "title": "Trial", "version": "1"})
        await self.lines.put({"jsonrpc": "2.0", "method": "initialized"})
        made = await self.asked(
            "thread/start",
            cwd=str(self.folder),
            approvalPolicy="never",
            sandbox="danger-full-access",
            model=self.model,
        )
        self.thread = made["thread"]["id"]

    async def prompt(self, text: str, picture: str = "") -> Said:
        given: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if picture:
            given.append({"type": "image", "url": f"data:image/png;base64,{picture}"})
        number = await self.ask("turn/start", threadId=self.thread, input=given)
        said = Said()
        while True:
            line = await self.lines.get()
            params = line.get("params", {})
            if line.get("id") == number and "method" not in line:
                if "error" in line:
                    said.error = json.dumps(line["error"])
                    return said
                self.turn = line["result"]["turn"]["id"]
            elif line.get("method") == "item/agentMessage/delta" and params["threadId"] == self.thread:
                said.text += params["delta"]
                self.hears.set()
            elif line.get("method") == "thread/tokenUsage/updated" and params["threadId"] == self.thread:
                said.tokens = params["tokenUsage"]["total"]["totalTokens"]
            elif line.get("method") == "turn/completed" and params["threadId"] == self.thread:
                turn = params["turn"]
                if turn["status"] == "failed":
                    said.error = json.dumps(turn["error"])
                return said
            elif "method" in line:
                await self.told(line)

    async def interrupt(self) -> None:
        await self.ask("turn/interrupt", threadId=self.thread, turnId=self.turn)


class PiTalk(Talk):
    """The RPC mode of pi."""

    async def open(self) -> None:
        pass

    async def prompt(self, text: str, picture: str = "") -> Said:
        more = {"images": [{"type": "image", "data": picture, "mimeType": "image/png"}]} if picture else {}
        await self.lines.put({"id": "p", "type": "prompt", "message": text, **more})
        said = Said()
        while True:
            line = await self.lines.get()
            if line["type"] == "response" and not line["success"] and line["command"] == "prompt":
                said.error = line["error"]
                return said
            if line["type"] == "message_update":
                self.hears.set()
            elif line["type"] == "message_end" and line["message"]["role"] == "assistant":
                message = line["message"]
                said.text += "".join(part["text"] for part in message["content"] if part["type"] == "text")
                said.tokens = (message.get("usage") or {}).get("totalTokens", 0) or said.tokens
                said.error = message.get("errorMessage") or ""
            elif line["type"] == "agent_settled":
                return said

    async def interrupt(self) -> None:
        await self.lines.put({"type": "abort"})
