"""The terminal of `ferrule chat`: every key and command that is documented, in tmux, at three widths, dark and light.

The model is scripted and asked over HTTP. At last a workday of fifteen prompts is played on a real package, and what
stood on the screen is kept in `.trials/workday`.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Self

from tests.cli.talk.model_server import Hold, ModelServer, Script, Use
from tests.cli.talk.terminals import FERRULE, Tmux
from tests.ordinary.person import ROOT

from ferrule.cli.talk.commands import commands
from trials.trial import Place, Row, Trial
from trials.workday import workday

SIZES = ((60, 24), (80, 24), (140, 40))
THEMES = {"dark": "15;0", "light": "0;15"}
"""What terminals say of their colours."""
_READY = r"^> *\n  \S"
_WAIT_SECONDS = 12.0
_MOST_SEEN = 160
_WAITING = "until [ -e go ]; do sleep 0.05; done"


class Stage:
    """One chat in one terminal."""

    def __init__(self, top: Path, columns: int, rows: int, theme: str) -> None:
        self.columns, self.rows = columns, rows
        self.top = top
        self.project = top / "shop"
        self.project.mkdir()
        (self.project / "app.py").write_text("def add(a, b):\n    return a - b\n")
        (self.project / "notes.md").write_text("The word is heron.\n")
        (self.project / ".claude" / "commands").mkdir(parents=True)
        (top / "settings").mkdir()
        (top / "settings" / "commands").mkdir()
        (top / "settings" / "commands" / "greet.md").write_text("Say hello to $1 from the file.\n")
        (top / "settings" / "settings.toml").touch()
        editor = top / "editor"
        editor.write_text('#!/bin/sh\necho "written in the editor" > "$1"\n')
        editor.chmod(0o755)
        self.server = ModelServer(_script(), pause=0.001)
        self.terminal = Tmux(columns, rows)
        self.environment = {
            "HOME": str(top),
            "FERRULE_STATE": str(top / "state"),
            "FERRULE_SETTINGS": str(top / "settings" / "settings.toml"),
            "EDITOR": str(editor),
            "PAGER": "less",
            "COLORFGBG": THEMES[theme],
        }
        self.mark = 0
        """How much of the screen was there when the step began."""

    def __enter__(self) -> Self:
        self.server.__enter__()
        self.terminal.start(["chat"], self.project, **self.environment, **self.server.environment)
        self.see(_READY)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            (self.project / "go").touch()
        self.terminal.close()
        self.server.__exit__()

    def type(self, text: str) -> None:
        self.terminal.type(text)

    def press(self, *keys: str) -> None:
        self.terminal.press(*keys)

    def say(self, text: str) -> None:
        """Type a line, see it, and send it."""
        self.type(text)
        self.see(re.escape(text[-8:]))
        self.press("Enter")

    def new(self) -> str:
        """What has come onto the screen since the step began."""
        return "\n".join(self.terminal.screen().split("\n")[self.mark :])

    def see(self, pattern: str, *, gone: bool = False) -> str:
        """Wait for it in what is new; what was seen."""
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            shown = self.new()
            found = re.search(pattern, shown, re.MULTILINE)
            if (found is None) == gone:
                return found[0] if found else f"no {pattern}"
            if time.monotonic() > end:
                raise AssertionError(f"{pattern!r} is {'still' if gone else 'not'} seen: …{shown[-400:]!r}")
            time.sleep(0.05)

    def ready(self) -> None:
        """The input is empty, the status below it stands there at most once, and nothing is wider than the terminal."""
        self.see(_READY)
        rows = self.terminal.screen().split("\n")
        assert max(map(len, rows)) <= self.columns
        assert sum("claude-opus" in row and " · " in row and not row.startswith("Ferrule") for row in rows[-8:]) <= 1

    def begin(self) -> None:
        """The next step begins at the input."""
        (self.project / "go").unlink(missing_ok=True)
        last, shown = "", self.terminal.screen()
        while shown != last:
            time.sleep(0.2)
            last, shown = shown, self.terminal.screen()
        rows = shown.split("\n")
        self.mark = max((at for at, row in enumerate(rows) if row.startswith(">")), default=0)

    def restore(self) -> None:
        """After a step that went wrong, go on with an empty input."""
        (self.project / "go").touch()
        for key in ("q", "C-u", "Escape", "C-u"):
            self.press(key)
            time.sleep(0.4)
        with suppress(AssertionError):
            self.see(_READY)


class Step(NamedTuple):
    """One thing that is tried: the keys and commands by their documented names, what is expected, and how it is done.

    What is done gives what was seen, and fails where it was not.
    """

    tries: tuple[str, ...]
    expected: str
    act: Callable[[Stage], str]


def _script() -> Script:
    wait = Use("Bash", {"command": f"echo it waits; {_WAITING}", "description": "Wait"})
    edit = Use("Edit", {"file_path": "app.py", "old_string": "a - b", "new_string": "a + b"})
    return {
        "hello there": [["Hello, **you**."]],
        "two lines": [["Two lines it was."]],
        "Run and wait": [[wait], ["It ran to its end."]],
        "Hold on": [["Half an answer", Hold(), " and the rest."]],
        "look at @notes": [["The word stands there."]],
        "Change it": [[Use("Read", {"file_path": "app.py"})], [edit], ["It is changed."]],
        "Count": [[Use("Bash", {"command": "seq 1 300", "description": "Count"})], ["Counted."]],
        "Say hello to heron": [["Hello, heron, from a file."]],
        "from the user": [["The output is seen."]],
        "in the editor": [["The editor wrote."]],
        "steer it": [["Steered."]],
        "plan a thing": [["I only look."]],
        "summary": [["A short summary."]],
    }


def _typed(text: str, pattern: str) -> Callable[[Stage], str]:
    def act(stage: Stage) -> str:
        stage.say(text)
        # What was typed stands there too, and is no answer.
        seen = stage.see(rf"(?i)^(?!>).*(?:{pattern}).*")
        stage.ready()
        return seen

    return act


def _esc_stops(stage: Stage) -> str:
    stage.say("Hold on")
    stage.see("Half an answer")
    stage.press("Escape")
    seen = stage.see("Interrupted")
    stage.ready()
    return seen


def _ctrl_c_stops(stage: Stage) -> str:
    stage.say("Hold on")
    stage.see("Half an answer")
    stage.press("C-c")
    seen = stage.see("Interrupted")
    stage.ready()
    stage.type("some words")
    stage.see("some words")
    stage.press("C-c")
    stage.see("^> *$")
    stage.press("C-c")
    return f"{seen}; {stage.see('Press ctrl-C again to leave')}"


def _esc_twice(stage: Stage) -> str:
    time.sleep(3.2)  # one that was pressed before does not count
    stage.press("Escape")
    stage.see("Press esc again")
    time.sleep(0.5)
    stage.press("Escape")
    stage.see("hello there")
    stage.see("before which one")
    time.sleep(0.6)
    stage.press("Escape")
    stage.see("before which one", gone=True)
    stage.ready()
    return "the earlier prompts, and back"


def _newline(keys: tuple[str, ...]) -> Callable[[Stage], str]:
    def act(stage: Stage) -> str:
        stage.type("in all")
        stage.press(*keys)
        stage.say("two lines")
        seen = stage.see(r"> in all\n  two lines")
        stage.see("Two lines it was")
        stage.ready()
        return " / ".join(seen.split("\n"))

    return act


def _modes(stage: Stage) -> str:
    seen = []
    for mode in ("acceptEdits", "plan mode", "default"):
        stage.press("BTab")
        seen.append(stage.see(f"permission mode is {mode.split()[0]}"))
        stage.type("x")
        stage.see(rf"^  .*{mode}")
        stage.press("BSpace")
    return ", ".join(seen)


def _background(stage: Stage) -> str:
    stage.say("Run and wait")
    stage.see("it waits")
    stage.press("C-b")
    seen = stage.see("went to the background|in the background")
    stage.see("It ran to its end")
    stage.ready()
    (stage.project / "go").touch()
    return seen


def _editor(stage: Stage) -> str:
    stage.press("C-g")
    seen = stage.see("> written in the editor")
    stage.press("Enter")
    stage.see("The editor wrote")
    stage.ready()
    return seen


def _bang(stage: Stage) -> str:
    stage.say("!echo as typed by me")
    stage.see("^ *as typed by me")
    stage.ready()
    stage.begin()
    stage.say("!!echo outside it")
    stage.see(r"\[y\]es")
    time.sleep(0.7)
    stage.type("y")
    stage.see("^ *outside it")
    stage.say("What is from the user?")
    seen = stage.see("The output is seen")
    stage.ready()
    asked = str(stage.server.asked[-1])
    assert "as typed by me" in asked
    assert "outside it" in asked
    return f"both outputs, then {seen!r}"


def _mention(stage: Stage) -> str:
    stage.type("look at @not")
    time.sleep(0.3)
    stage.press("Tab")
    stage.see("@notes.md")
    stage.press("Enter")
    time.sleep(0.2)
    if re.search(r"^> look at", stage.new().rpartition("\n> ")[1] + stage.new().rpartition("\n> ")[2], re.MULTILINE):
        stage.press("Enter")
    seen = stage.see("The word stands there")
    stage.ready()
    assert "The word is heron" in str(stage.server.asked[-1])
    return f"completed; its content was sent; {seen}"


def _slash(stage: Stage) -> str:
    stage.type("/co")
    stage.see("compact")
    seen = stage.see("cost")
    stage.press("Escape")
    time.sleep(0.4)
    stage.press("C-u")
    stage.ready()
    return f"offered: compact, {seen}"


def _earlier(stage: Stage) -> str:
    stage.press("Up")
    seen = stage.see("^> \\S+")
    stage.press("Down")
    stage.ready()
    return seen


def _search(stage: Stage) -> str:
    stage.press("C-r")
    stage.see("typed before:")
    stage.type("hello")
    seen = stage.see("hello there")
    stage.press("C-c")
    stage.see("typed before:", gone=True)
    stage.press("C-u")
    stage.ready()
    return seen


def _expand(stage: Stage) -> str:
    stage.say("Count")
    stage.see("Counted")
    stage.see("… 290 more lines")
    stage.press("C-o")
    seen = "Bash seq 1 300"
    stage.terminal.wait(f"^{seen}$")  # on the terminal's other screen
    stage.type("q")
    stage.ready()
    return f"{seen} in a pager, and back"


def _steer(stage: Stage) -> str:
    stage.say("Run and wait")
    stage.see("it waits")
    stage.say("steer it please")
    seen = stage.see("queued: steer it please")
    (stage.project / "go").touch()
    stage.see("Steered")
    stage.ready()
    return seen


def _suspend(stage: Stage) -> str:
    """From a shell with jobs; what runs as a terminal's only program cannot be suspended."""
    shell = Shell(stage.columns, stage.rows)
    try:
        shell.begin(stage.project, {**stage.environment, **stage.server.environment})
        shell.wait(_READY)
        shell.press("C-z")
        shell.wait("Stopped|suspended")
        shell.type("fg")
        shell.press("Enter")
        shell.wait(r"fg\n(.*\n)*> *\n  \S")
        shell.press("C-d")
        shell.wait(r"\$ *$")
        return "stopped, on after fg, and left"
    finally:
        shell.close()


class Shell(Tmux):
    """A terminal with a shell in it, where the chat is one job."""

    def begin(self, cwd: Path, environment: dict[str, str]) -> None:
        words = [f"{name}={value}" for name, value in {**environment, "PS1": "$ "}.items()]
        self._run("new-session", "-d", *self._size, "-c", str(cwd), "env", *words, "bash", "--norc", "--noprofile")
        self.type(f"{FERRULE[0]} -m ferrule chat")
        self.press("Enter")


def _model(stage: Stage) -> str:
    stage.say("/model")
    seen = stage.see("opus")
    time.sleep(0.7)
    stage.press("Escape")
    stage.see("type to search|Which model", gone=True)
    stage.ready()
    return f"a list with {seen}, and back"


def _undo(stage: Stage) -> str:
    stage.say("/permissions acceptEdits")
    stage.see("permission mode is acceptEdits")
    stage.say("Change it")
    stage.see("It is changed")
    stage.say("/undo")
    seen = stage.see("Undone: edit of app.py")
    stage.ready()
    assert "a - b" in (stage.project / "app.py").read_text()
    stage.say("/redo")
    more = stage.see("(?i)redone|written again|again: edit of app.py")
    stage.ready()
    assert "a + b" in (stage.project / "app.py").read_text()
    return f"{seen}; {more}"


def _rewind(stage: Stage) -> str:
    stage.say("/rewind")
    stage.see("before which one")
    stage.type("1")
    stage.press("Enter")
    stage.see("Go back to before prompt 1")
    time.sleep(0.7)
    stage.type("n")
    stage.ready()
    return "the list, what would change, and nothing on n"


def _clear(name: str) -> Callable[[Stage], str]:
    def act(stage: Stage) -> str:
        stage.say("hello there again")
        stage.see("Hello, you")
        stage.say(name)
        seen = stage.see("A new conversation")
        stage.ready()
        return seen

    return act


def _resume(stage: Stage) -> str:
    stage.say("/resume")
    stage.see("hello there")
    stage.type("hello")  # the list is searched
    time.sleep(0.7)
    stage.press("Enter")
    seen = stage.see("Hello, you")
    stage.ready()
    return seen


def _leave(way: str) -> Callable[[Stage], str]:
    def act(stage: Stage) -> str:
        with tempfile.TemporaryDirectory() as folder, Stage(Path(folder), stage.columns, stage.rows, "dark") as other:
            if way.startswith("/"):
                other.say(way)
            elif way == "C-c":
                other.press("C-c")
                other.see("Press ctrl-C again")
                other.press("C-c")
            else:
                other.press(way)
            return f"left with exit code {other.terminal.ended()}"

    return act


STEPS = (
    Step(("/help",), "every command and key", _typed("/help", "ctrl-D +leave")),
    Step(("Enter",), "sent, and answered", _typed("hello there", "Hello, you")),
    Step(("esc Enter",), "a new line", _newline(("Escape", "Enter"))),
    Step(("ctrl-J",), "a new line", _newline(("C-j",))),
    Step(("Enter",), "steers while it works", _steer),
    Step(("esc",), "stops what runs", _esc_stops),
    Step(("esc",), "twice: earlier prompts", _esc_twice),
    Step(("ctrl-C",), "stops, empties the line, leaves at last", _ctrl_c_stops),
    Step(("shift-tab",), "the next mode", _modes),
    Step(("ctrl-B",), "to the background", _background),
    Step(("ctrl-G",), "the editor writes the input", _editor),
    Step(("!",), "runs, and the model has the output", _bang),
    Step(("@",), "completes, and its content is sent", _mention),
    Step(("/",), "completes", _slash),
    Step(("up, down",), "what was typed before", _earlier),
    Step(("ctrl-R",), "looks for it", _search),
    Step(("ctrl-O",), "the whole output in a pager", _expand),
    Step(("ctrl-Z",), "into the background of the shell", _suspend),
    Step(("ctrl-D",), "leaves", _leave("C-d")),
    Step(("ctrl-C",), "twice: leaves", _leave("C-c")),
    Step(("/exit",), "leaves", _leave("/exit")),
    Step(("/quit",), "leaves", _leave("/quit")),
    Step(("/model",), "the model", _model),
    Step(("/model",), "another one", _typed("/model anthropic:claude-opus-5-5", "claude-opus-5-5 from now on")),
    Step(("/dialect",), "the dialect", _typed("/dialect", "The dialect is claude")),
    Step(
        ("/dialect",),
        "another one, and the conversation stays",
        _typed("/dialect codex", "dialect is codex from now on"),
    ),
    Step(("/dialect",), "and back", _typed("/dialect claude", "dialect is claude from now on")),
    Step(("/tools",), "the tools", _typed("/tools", "Bash")),
    Step(("/permissions",), "mode and rules", _typed("/permissions", "The permission mode is default")),
    Step(("/plan",), "plan mode with a task", _typed("/plan plan a thing", "I only look")),
    Step(("/plan",), "and its end", _typed("/plan", "Plan mode is off")),
    Step(("/undo", "/redo"), "a write is taken back and done again", _undo),
    Step(("/diff",), "what was changed", _typed("/diff", r"\+ +return a \+ b")),
    Step(
        ("/tasks",),
        "what runs in the background, or nothing",
        _typed("/tasks", "task|background|nothing|todo|killed|running|ended"),
    ),
    Step(("/cost",), "tokens and money", _typed("/cost", r"cost +\$")),
    Step(("/rewind",), "the prompts, and what would change", _rewind),
    Step(("/thinking",), "whole, or folded", _typed("/thinking", "think")),
    Step(("/theme",), "the themes", _typed("/theme", "The theme is")),
    Step(("/theme",), "other colours", _typed("/theme dark", "The theme (is )?dark")),
    Step(("/compact",), "summed up", _typed("/compact", "summed up")),
    Step(("/threads",), "earlier conversations", _typed("/threads", "hello there|T-")),
    Step(("/clear",), "a new conversation", _clear("/clear")),
    Step(("/new",), "a new conversation", _clear("/new")),
    Step(("/resume",), "an earlier conversation", _resume),
    Step(("/context",), "what fills the window, by part", _typed("/context", "tools.*\\d")),
    Step(("/ports",), "ports that are open, or none", _typed("/ports", "port|listen")),
    Step(("/mcp",), "servers, or none", _typed("/mcp", "server")),
    Step(("/agents",), "kinds of subagents", _typed("/agents", "Explore")),
    Step(("/skills",), "skills, or none", _typed("/skills", "skill")),
    Step(("/rename",), "a title", _typed("/rename A title of mine", "A title of mine")),
    Step(("/fork",), "a copy goes on", _typed("/fork", "copy|fork of|forked")),
    Step(("/export",), "a file", _typed("/export talk.md", r"talk\.md")),
    Step(("/init",), "the model is asked for AGENTS.md", _typed("/init", "Done\\.")),
    Step(("/review",), "the changes are reviewed", _typed("/review", "git|nothing|Done")),
    Step(("commands of files",), "the file is the prompt", _typed("/greet heron", "Hello, heron, from a file")),
)


def _rows(place: Place) -> Iterator[Row]:
    if shutil.which("tmux") is None:
        yield Row("terminal", "tried", "tmux is not there", None)
        return
    yield _complete()
    for columns, rows in SIZES:
        for theme in THEMES:
            yield from _at(columns, rows, theme)
    yield from workday(place)


def _complete() -> Row:
    tried = {name for step in STEPS for name in step.tries}
    named = documented()
    missing = sorted(named - tried)
    shown = f"{len(named)} named" + (f"; not tried: {', '.join(missing)}" if missing else "")
    return Row("every command and key of /help and docs/chat.md is tried", "none is missing", shown, not missing)


def documented() -> set[str]:
    """The keys and commands of the page, and the commands that there are."""
    page = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
    keys = page.split("## Keys", 1)[1].split("## ", 1)[0]
    listed = page.split("## Commands", 1)[1].split("## ", 1)[0]
    named = set(re.findall(r"(?<=[` ])(/[a-z]+)", "".join(re.findall(r"^\|[^|]*\|", listed, re.MULTILINE))))
    named |= {f"/{name}" for name in commands()}
    for cell in re.findall(r"^\| ([^|]+) \|", keys, re.MULTILINE):
        whole = cell.replace("`", "")
        named |= {whole} if whole.startswith("up") else set(whole.split(", "))
    return named - {"key", "---"}


def _at(columns: int, rows: int, theme: str) -> Iterator[Row]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        stage = stack.enter_context(Stage(Path(folder), columns, rows, theme))
        for step in STEPS:
            what = f"{', '.join(step.tries)}, {columns} columns, {theme}"
            stage.begin()
            try:
                seen = " ".join(step.act(stage).split())
            except Exception as error:  # noqa: BLE001 - the other steps go on, and the page says what was seen
                yield Row(what, step.expected, f"{type(error).__name__}: {error}", False)
                stage.restore()
            else:
                yield Row(what, step.expected, seen[:_MOST_SEEN], True)


TRIAL = Trial(
    "terminal",
    "Every key and command of `ferrule chat` in tmux with a scripted model over HTTP, at 60, 80 and 140 columns, on a "
    "dark and a light background; then a workday of fifteen prompts on a real package.",
    _rows,
)
