"""A server that an agent starts, and who can reach it: the next command, the tool for pages, whoever sits outside."""

import contextlib
import http.client
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ferrule import Settings
from tests.ordinary.session import Said, Session

PYTHON = "python3 -m http.server {port} --bind 127.0.0.1"
NODE = (
    "node -e \"require('http').createServer((q, s) => s.end(require('fs').readFileSync('index.html')))"
    ".listen({port}, '127.0.0.1')\""
)
_TASK = re.compile(r"ID: (\w+)")
_FETCH = """python3 - <<'END'
import time, urllib.request
for _ in range(100):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:{port}/", timeout=5).read().decode())
        break
    except OSError as error:
        last = error
        time.sleep(0.1)
else:
    raise SystemExit(str(last))
END"""
_TRY = """python3 - <<'END'
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:{port}/", timeout=5).read().decode())
END"""


def forwarding() -> dict[str, Any]:
    """The setting that forwards a session's ports to the user; nothing where this engine has none."""
    settings = {"sandbox": {"forward": "on"}}
    try:
        msgspec.convert(settings, Settings)
    except msgspec.ValidationError:
        return {}
    return settings


def free_port() -> int:
    """One that nobody listens on outside, for both families of addresses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def started(session: Session, command: str) -> tuple[Said, str]:
    """What was said, and the task's id."""
    said = session.bash(command, run_in_background=True)
    found = _TASK.search(said.text)
    return said, found[1] if found else ""


def from_command(session: Session, port: int) -> Said:
    """What the next command hears; it waits until the server is up."""
    return session.bash(_FETCH.format(port=port))


def once_from_command(session: Session, port: int) -> Said:
    """What a command hears at once."""
    return session.bash(_TRY.format(port=port))


def from_tool(session: Session, port: int) -> Said:
    """What the tool for pages hears."""
    return session.call("read_web_page", url=f"http://127.0.0.1:{port}/")


def from_outside(port: int, host: str = "127.0.0.1", seconds: float = 10) -> str:
    """What somebody outside hears; the last error where nobody answers in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            line = http.client.HTTPConnection(host, port, timeout=5)
            with contextlib.closing(line):
                line.request("GET", "/")
                return line.getresponse().read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() > end:
                return f"{type(error).__name__}: {error}"
            time.sleep(0.1)


def listens_outside(port: int) -> bool:
    """Is the port taken on this machine?"""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def processes(mark: str) -> list[str]:
    """The command lines in which a word stands."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{name}/cmdline").read_bytes()
                if mark.encode() in line:
                    found.append(line.replace(b"\0", b" ").decode(errors="replace")[:80])
    return found


def below(folder: Path) -> list[str]:
    """Every name in a folder, at any depth."""
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


@contextlib.contextmanager
def machine_server(page: str, headers: dict[str, str] | None = None, status: int = 200) -> Iterator[int]:
    """A server of this machine, outside every sandbox, that answers everything with one page."""
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
