"""One network for one session: commands reach one another, the engine and the user reach them, nobody else does."""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule import sandbox as variables
from ferrule.models import Unreachable
from ferrule.models.connection import open_stream
from ferrule.sandbox import Profile, Sandbox, Wrapped, bubblewrap, landlock, spawner
from ferrule.sandbox.network import KNOWN_SERVICES, Machine, answer_query
from ferrule.sandbox.spawner import Spawned
from ferrule.system.hosts import is_forwarded
from tests.rows import each_row

LIMIT_SECONDS = 60
SERVE = """import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"page of " + self.path.encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer((os.environ["AT"], int(os.environ["PORT"])), Page)
print("up", flush=True)
server.serve_forever()
"""
GET = """import urllib.request, os
print(urllib.request.urlopen("http://127.0.0.1:" + os.environ["PORT"] + "/x", timeout=20).read().decode())
"""
ASK = """import socket
try: socket.getaddrinfo("packages.example.test", 443)
except OSError as error: print("none")
"""
SANDBOXES = [
    pytest.param(landlock.Namespaces(), id="namespaces"),
    pytest.param(bubblewrap.Bubblewrap(), id="bubblewrap"),
]


class Session:
    """The commands of one session."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.machine = Machine()
        self.folder = folder
        self.processes: list[asyncio.subprocess.Process | object] = []

    def profile(self, *hosts: str) -> Profile:
        return Profile(
            writable=(str(self.folder),),
            loopback=True,
            machine=self.machine.name,
            proxy=variables.ADDRESS if hosts else "",
            hosts=hosts,
        )

    async def start(self, *hosts: str) -> None:
        profile = self.profile(*hosts)
        network = bubblewrap.network_of(profile)
        kind = landlock.cell_of(profile) if self.sandbox.name == "namespaces" else network
        assert kind is not None
        await self.machine.start(kind, hosts)

    async def run(self, program: str, *hosts: str, **env: str) -> str:
        """What a program prints until it ends."""
        reader, _ = self.begin(program, *hosts, **env)
        return await asyncio.to_thread(_all, reader)

    def begin(self, program: str, *hosts: str, **env: str) -> tuple[int, Spawned]:
        wrapped: Wrapped = self.sandbox.wrap(
            ["/usr/bin/python3", "-c", program], self.profile(*hosts), cwd=str(self.folder)
        )
        reader, writer = os.pipe()
        starter = wrapped.starter
        assert isinstance(starter, spawner.Confined)
        with open(os.devnull, "rb") as nothing:
            started = starter.start(
                wrapped.argv,
                cwd=str(self.folder),
                env={"PATH": os.defpath, **wrapped.env, **env},
                stdin=nothing.fileno(),
                stdout=writer,
                stderr=writer,
                descriptors=wrapped.descriptors,
            )
        for descriptor in (writer, *wrapped.descriptors):
            os.close(descriptor)
        return reader, started


def _all(reader: int) -> str:
    with os.fdopen(reader, "rb") as file:
        return file.read().decode()


@pytest.fixture(params=SANDBOXES)
async def session(request, tmp_path) -> AsyncIterator[Session]:
    made = Session(request.param, tmp_path)
    await made.start()
    async with asyncio.timeout(LIMIT_SECONDS):
        yield made
    await made.machine.close()


@contextlib.contextmanager
def serving(session: Session, port: int, at: str = "127.0.0.1"):
    reader, started = session.begin(SERVE, AT=at, PORT=str(port))
    assert os.read(reader, 3) == b"up\n"
    try:
        yield
    finally:
        started.end()
        started.wait(LIMIT_SECONDS)
        os.close(reader)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


async def page(sock: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(sock=sock)
    writer.write(b"GET /y HTTP/1.0\r\n\r\n")
    said = await reader.read()
    writer.close()
    return said.rpartition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("at", ["127.0.0.1", "0.0.0.0"])
async def test_the_next_command_the_engine_and_the_user_reach_a_server(session, at):
    port = free_port()
    with serving(session, port, at):
        listening = [(one.host, one.port) for one in session.machine.listeners()]
        from_inside = await session.run(GET, PORT=str(port))
        by_the_engine = await page(await session.machine.connect(port))
        refused = await session.machine.forward(port)
        outside = socket.socket()
        outside.setblocking(False)
        await asyncio.get_running_loop().sock_connect(outside, ("127.0.0.1", port))
        by_the_user = await page(outside)
    while session.machine.listens(port):
        await asyncio.sleep(0)
    session.machine.stop_forwards()

    assert listening == [("127.0.0.1", port)]
    assert from_inside == "page of /x\n"
    assert (by_the_engine, refused, by_the_user) == (b"page of /y", "", b"page of /y")
    assert session.machine.forwarded == {}


async def test_a_port_on_which_nobody_listens_is_not_connected_to(session):
    with socket.create_server(("127.0.0.1", 0)) as machines:
        port = machines.getsockname()[1]

        assert not session.machine.listens(port)
        with pytest.raises(ConnectionRefusedError):
            await session.machine.connect(port)


async def test_a_port_that_is_taken_outside_is_not_forwarded(session):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "is not free outside" in await session.machine.forward(taken.getsockname()[1])


@each_row("port", [80, 1023, *sorted(KNOWN_SERVICES)[:4], 5432, 6379, 11434, 2375])
def test_ports_of_known_services_are_not_forwarded_by_themselves(port):
    assert not Machine().forwards_by_itself(port)


async def test_a_forwarded_port_is_never_taken_for_a_model(session):
    port = free_port()
    with serving(session, port):
        assert await session.machine.forward(port) == ""
        with pytest.raises(Unreachable, match="no model"):
            await open_stream("127.0.0.1", port, seconds=5, quiet_seconds=5)
    while session.machine.listens(port):
        await asyncio.sleep(0)
    session.machine.stop_forwards()

    assert not is_forwarded("127.0.0.1", port)


async def test_another_session_does_not_reach_it(session, tmp_path):
    port = free_port()
    other = Session(session.sandbox, tmp_path)
    await other.start()
    with serving(session, port):
        said = await other.run(GET, PORT=str(port))
        listening = other.machine.listeners()
    await other.machine.close()

    assert "refused" in said
    assert listening == []


async def test_the_name_that_is_asked_for_is_heard_and_not_answered(session):
    assert await session.run(ASK) == "none\n"
    assert session.machine.names.heard.is_set()
    assert session.machine.names.take() == ["packages.example.test"]
    assert not session.machine.names.heard.is_set()


async def test_a_host_that_the_user_allows_later_is_let_through_by_the_proxy(session):
    fetch = (
        "import urllib.request as u\n"
        "try: u.urlopen('http://named.test/', timeout=20)\n"
        "except OSError as error: print(getattr(error, 'code', error))"
    )
    refused = await session.run(fetch, "other.test")
    session.machine.allow("named.test")
    allowed = await session.run(fetch, "other.test")

    assert (refused, allowed) == ("403\n", "502\n")  # nobody has such a name
    assert session.machine.proxy.take_refused() == ["named.test:80"]


def query(name: str, *, flags: int = 0x0100, questions: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 7, flags, questions, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        pytest.param(query("Example.TEST"), "example.test", 3, id="a-name"),
        pytest.param(query("a.test", questions=2), "", 1, id="two-questions"),
        pytest.param(query("a.test")[:-3], "", 1, id="cut-off"),
        pytest.param(query("a.test", flags=0x8100), "", None, id="an-answer"),
        pytest.param(b"short", "", None, id="no-query"),
        pytest.param(query("a.test")[:12] + b"\xc0\x0c\0\1\0\1", "", 1, id="a-pointer"),
    ],
)
def test_a_resolver_answers_every_query_with_no_such_name(data, name, code):
    found, answer = answer_query(data)

    assert found == name
    assert (struct.unpack_from("!H", answer, 2)[0] & 0xF if answer else None) == code
    assert answer[:2] == (data[:2] if answer else b"")
