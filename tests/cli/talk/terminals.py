"""A terminal for tests: tmux, which is a real one, or a pseudo-terminal whose output is read as a stream."""

import contextlib
import itertools
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FERRULE = [sys.executable, "-m", "ferrule"]
_LIMIT_SECONDS = 30.0
_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b.|\r")
_KEYS = {"Enter": "\r", "C-c": "\x03", "C-d": "\x04", "C-e": "\x05", "C-r": "\x12", "C-u": "\x15"}
_numbers = itertools.count()


def open_terminal(columns=100, rows=30):
    """tmux or, where it is missing, what comes next to it."""
    if shutil.which("tmux") is not None:
        return Tmux(columns, rows)
    print(
        "tmux is not there: the conversation is tested on a pseudo-terminal, and not how its screen looks.",
        file=sys.stderr,
    )
    return Pty(columns, rows)


class _Waiting:
    """Waits until something is on the screen, and not for ever."""

    def screen(self) -> str:
        raise NotImplementedError

    def wait(self, pattern, *, gone=False):
        """The screen on which the pattern is, or on which it no longer is."""
        limit = time.monotonic() + _LIMIT_SECONDS
        wanted = re.compile(pattern, re.MULTILINE)
        while bool(wanted.search(shown := self.screen())) == gone:
            assert time.monotonic() < limit, f"{pattern!r} is {'still' if gone else 'not'} on the screen:\n{shown}"
            time.sleep(0.03)
        return shown


class Tmux(_Waiting):
    """One window of a tmux server of its own."""

    is_real = True

    def __init__(self, columns, rows):
        self._folder = tempfile.mkdtemp(prefix="tmux-", dir="/tmp")
        self._size = [f"-x{columns}", f"-y{rows}"]
        self._name = f"ferrule-{os.getpid()}-{next(_numbers)}"

    def start(self, arguments, cwd, **environment):
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        inner = f"echo $$ > {self._folder}/pid; {words} exec {shlex.join([*FERRULE, *arguments])}"
        # tmux itself sometimes forgets how a process ended.
        command = (
            f"sh -c {shlex.quote(inner)}; echo $? > {self._folder}/part; mv {self._folder}/part {self._folder}/code"
        )
        # Whoever runs this may have no shell.
        options = {"default-shell": "/bin/sh", "remain-on-exit": "on", "history-limit": "5000"}
        keep = [word for name, value in options.items() for word in ("set-option", "-g", name, value, ";")]
        self._run(*keep, "new-session", "-d", *self._size, "-c", str(cwd), command)

    def type(self, text):
        self._run("send-keys", "-l", "--", text)

    def press(self, *keys):
        self._run("send-keys", *keys)

    def paste(self, text):
        """As a terminal pastes that says so."""
        self._run("set-buffer", text)
        self._run("paste-buffer", "-p")

    def resize(self, columns, rows):
        self._run("resize-window", f"-x{columns}", f"-y{rows}")

    def screen(self):
        """All that can be scrolled to, without what is blank at its end."""
        return self._run("capture-pane", "-p", "-S-").rstrip()

    def signal(self, number):
        with open(f"{self._folder}/pid", encoding="ascii") as file:
            os.kill(int(file.read()), number)

    def ended(self):
        """The exit code, after its end."""
        limit = time.monotonic() + _LIMIT_SECONDS
        while not os.path.exists(f"{self._folder}/code"):
            assert time.monotonic() < limit, self.screen()
            time.sleep(0.03)
        with open(f"{self._folder}/code", encoding="ascii") as file:
            return int(file.read())

    def close(self):
        subprocess.run([*self._tmux(), "kill-server"], capture_output=True, env=self._environment(), check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tmux(self):
        return ["tmux", "-L", self._name, "-f", os.devnull]

    def _environment(self):
        return {**os.environ, "TMUX_TMPDIR": self._folder, "LC_ALL": "C.UTF-8"}

    def _run(self, *words):
        done = subprocess.run(
            [*self._tmux(), *words], capture_output=True, text=True, env=self._environment(), check=True, timeout=30
        )
        return done.stdout


class Pty(_Waiting):
    """A pseudo-terminal: all that was ever written to it, without what steers."""

    is_real = False

    def __init__(self, columns, rows):
        self._size = columns, rows
        self._raw = b""
        self._pid = self._terminal = -1

    def start(self, arguments, cwd, **environment):
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.environ.update({"TERM": "xterm", **environment})
            os.execv(FERRULE[0], [*FERRULE, *arguments])
        os.set_blocking(self._terminal, False)
        self.resize(*self._size)

    def type(self, text):
        """Whoever does not read what is typed does not hold up the test for ever."""
        raw, limit = text.encode(), time.monotonic() + _LIMIT_SECONDS
        while raw:
            assert time.monotonic() < limit, self.screen()
            if select.select([], [self._terminal], [], 0.03)[1]:
                with contextlib.suppress(BlockingIOError):
                    raw = raw[os.write(self._terminal, raw) :]
            self.screen()

    def press(self, *keys):
        for key in keys:
            self.type(_KEYS.get(key, key))

    def paste(self, text):
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns, rows):
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def raw(self):
        """Every byte that was written, with what steers."""
        self.screen()
        return self._raw

    def screen(self):
        limit = time.monotonic() + 1
        while time.monotonic() < limit and select.select([self._terminal], [], [], 0)[0]:
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            self._raw += piece
        return _STEERING.sub("", self._raw.decode(errors="replace"))

    def signal(self, number):
        os.kill(self._pid, number)

    def ended(self):
        limit = time.monotonic() + _LIMIT_SECONDS
        while not (found := os.waitpid(self._pid, os.WNOHANG))[0]:
            assert time.monotonic() < limit, self.screen()
            self.screen()
            time.sleep(0.03)
        self._pid = -1
        return os.waitstatus_to_exitcode(found[1])

    def close(self):
        if self._pid > 0:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)
