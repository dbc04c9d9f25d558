"""One small tool, written for every source that a session takes tools from: what each row of that table can and cannot.

`count_words {text, unique?}` says how many words a text has, and the text. Texts that begin with `fail`, `crash` or
`hang` make it do so.
"""

import asyncio
import importlib.util
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ferrule import Engine, Settings
from ferrule.core.tool import AnyTool
from ferrule.permissions import Question
from ferrule.settings import LimitSettings, Mcp, McpServer, Permissions, Tools

if TYPE_CHECKING:
    from ferrule.core.call import Event

HERE = Path(__file__).parent / "alike"
WORDS = "Zählt Wörter — 数える."
SECONDS = 60
"""Longer than anything here takes, on whatever machine."""


class Session(NamedTuple):
    """What a row makes of a folder: the parts of the settings and of the engine that bring its tool."""

    tools: Mapping[str, Any] = MappingProxyType({})
    servers: Mapping[str, McpServer] = MappingProxyType({})
    given: tuple[AnyTool, ...] = ()


class Row(NamedTuple):
    """A source, as far as it differs."""

    id: str
    make: Callable[[Path, pytest.MonkeyPatch], Session]
    name: str = "count_words"
    short: str = ""
    """What it is called in families with short names; empty where that is no other name."""
    arguments: Callable[..., dict[str, Any]] = lambda **values: values
    schema: Mapping[str, str] = MappingProxyType({"text": "string", "unique": "boolean"})
    required: tuple[str, ...] = ("text",)
    without: str = ""
    """What a call without any argument gives, where nothing is required."""
    near: Mapping[str, Any] = MappingProxyType({"text": "a a", "unique": "true"})
    """Arguments that nearly fit; they count one word."""
    extra: str = "passes"
    """What becomes of an argument that its schema does not name: it passes where the schema lets it, as JSON Schema
    says; it is ignored and noted where the tool could not take it; and it is refused where the schema forbids it.
    """
    guidance: bool = True
    """Can it say how it is to be used, for a system prompt?"""
    body: str = "process"
    """Where it runs, and so what becomes of it when its call is over:

    process: it is ended. server: the call is, and the process serves on until the session is closed.
    interpreter: it is interrupted. thread: nothing can end it; it runs on, alone, and nobody hears of it.
    """
    progresses: bool = True
    """Can it say how far it is?"""
    code: str | None = "failed"
    """What a failure that the tool itself tells of is known by; a function of Python says that with its exception."""
    crashed: str = ""
    """What is said of a call whose tool ended itself."""


def _program(path: Path, source: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable} -ISXutf8\n{(HERE / source).read_text('utf-8')}", "utf-8")
    path.chmod(0o755)


def _module(source: str) -> Callable[[Path, pytest.MonkeyPatch], Session]:
    def make(folder: Path, patch: pytest.MonkeyPatch) -> Session:
        (folder / "own").mkdir()
        (folder / "own" / source).write_bytes((HERE / source).read_bytes())
        return Session({"folders": (str(folder / "own"),)})

    return make


def _executable(folder: Path, patch: pytest.MonkeyPatch) -> Session:
    _program(folder / "own" / "count_words", "program.py")
    (folder / "own" / "count_words.md").write_text(f"---\ndescription: {WORDS}\n---\nCount before you cut.\n", "utf-8")
    return Session({"folders": (str(folder / "own"),)})


def _boxed(form: str) -> Callable[[Path, pytest.MonkeyPatch], Session]:
    def make(folder: Path, patch: pytest.MonkeyPatch) -> Session:
        _program(folder / "box" / f"words_{form}", "boxed.py")
        return Session({"toolbox": (str(folder / "box"),), "describe_seconds": SECONDS})

    return make


def _served(folder: Path, patch: pytest.MonkeyPatch) -> Session:
    # In the workspace, like the others: by that its process is found.
    server = McpServer(command=sys.executable, args=("-ISXutf8", str(HERE / "served.py")), cwd=".", exposure="direct")
    return Session(servers={"words": server})


def _packaged(folder: Path, patch: pytest.MonkeyPatch) -> Session:
    installed = folder / "installed"
    about = installed / "wordy-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wordy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ferrule.tools]\nwords = wordy_alike:count_words\n")
    (installed / "wordy_alike.py").write_bytes((HERE / "decorated.py").read_bytes())
    patch.syspath_prepend(str(installed))
    patch.delitem(sys.modules, "wordy_alike", raising=False)
    return Session({"packages": True})


def _given(folder: Path, patch: pytest.MonkeyPatch) -> Session:
    spec = importlib.util.spec_from_file_location("given_alike", HERE / "decorated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, "given_alike", module)
    spec.loader.exec_module(module)
    return Session(given=(module.count_words,))


def _line(**values: Any) -> dict[str, Any]:
    """The arguments of a program, in its one parameter."""
    return {"args": shlex.join([values["text"], *(["--unique"] if values.get("unique") else [])])}


_EXIT = "SystemExit"
ROWS = (
    Row("python-record", _module("record.py"), body="thread", crashed=_EXIT),
    Row("python-function", _module("decorated.py"), extra="noted", body="thread", code=None, crashed=_EXIT),
    Row("lua", _module("count_words.lua"), body="interpreter", progresses=False, crashed="memory"),
    Row(
        "executable",
        _executable,
        arguments=_line,
        schema={"args": "string"},
        required=(),
        without="0 words: ",
        near={"args": 1},
        extra="noted",
        crashed="exit code: 137",
    ),
    Row("toolbox-json", _boxed("json"), "tb__count_words", guidance=False, crashed="exit code 137"),
    Row("toolbox-text", _boxed("text"), "tb__count_words", extra="refused", guidance=False, crashed="exit code 137"),
    Row("server", _served, "mcp__words__count_words", "count_words", guidance=False, body="server", crashed="ended"),
    Row("package", _packaged, extra="noted", body="thread", code=None, crashed=_EXIT),
    Row("given", _given, extra="noted", body="thread", code=None, crashed=_EXIT),
)


class Alike:
    """A session's parts for one row, in a folder of its own."""

    def __init__(self, row: Row, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.row = row
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.session = row.make(folder, patch)
        self.events: list[Event] = []
        self.questions: list[Question] = []

    def engine(self, *, seconds: float = SECONDS, answer: bool = True, rules: Any = None, **more: Any) -> Engine:
        """An engine that has the tool; whoever is asked answers so."""

        def asked(question: Question) -> bool:
            self.questions.append(question)
            return answer

        return Engine(
            self.workspace,
            settings=Settings(
                tools=Tools(**{"toolbox": (), "packages": False, **self.session.tools}),
                mcp=Mcp(servers=dict(self.session.servers)),
                permissions=rules or Permissions(),
                limits=LimitSettings(seconds=seconds),
            ),
            tools=self.session.given,
            state=self.folder / "state",
            ask=asked,
            on_event=self.events.append,
            **more,
        )

    def input(self, text: str, **values: Any) -> dict[str, Any]:
        return self.row.arguments(text=text, **values)

    def processes(self) -> list[str]:
        """The processes that work in the workspace, as all of these tools do."""
        out = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in {b"Z", b"X"} and os.readlink(f"/proc/{name}/cwd") == os.path.realpath(self.workspace):
                    out.append(name)
            except OSError:
                continue
        return out

    async def until(self, check: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not check():
                await asyncio.sleep(0.005)
