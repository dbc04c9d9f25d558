"""Names whose servers do not answer: they hold up nobody but who asks for them."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from ferrule.tools.web import connect
from ferrule.tools.web.connect import MOST, resolve_host

WAIT_SECONDS = 30


@pytest.fixture
def stuck(monkeypatch):
    """Names that begin with `stuck` are not answered before the test is over."""
    over, known = threading.Event(), socket.getaddrinfo
    places = threading.BoundedSemaphore(MOST)

    def answer(host: str, *more: Any, **options: Any) -> Any:
        if host.startswith("stuck"):
            over.wait(WAIT_SECONDS)
            raise OSError(-3, "Temporary failure in name resolution")
        return known("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    monkeypatch.setattr(connect, "_places", places)
    yield places
    over.set()
    for _ in range(MOST):
        assert places.acquire(timeout=WAIT_SECONDS)


async def given_up(count: int) -> None:
    tasks = [asyncio.create_task(resolve_host(f"stuck{number}.example", 443)) for number in range(count)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.usefixtures("stuck")
async def test_names_that_hang_hold_up_neither_other_names_nor_other_threads():
    async with asyncio.timeout(WAIT_SECONDS):
        await given_up(MOST - 1)

        assert await resolve_host("quick.example", 443) == ["127.0.0.1"]
        assert await asyncio.to_thread(int, "1") == 1


@pytest.mark.usefixtures("stuck")
async def test_there_are_never_more_than_so_many():
    async with asyncio.timeout(WAIT_SECONDS):
        await given_up(MOST)

        with pytest.raises(OSError, match="too many names"):
            await resolve_host("quick.example", 443)


async def test_a_name_that_nobody_knows_is_an_error(monkeypatch):
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="not known"):
        await resolve_host("nobody.example", 443)


async def test_the_system_is_asked():
    assert await resolve_host("127.0.0.1", 80) == ["127.0.0.1"]
