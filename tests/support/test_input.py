"""What a process is given to read at once: as much as there is room for, and never into what another one writes."""

import asyncio
import contextlib
import os

import pytest

from ferrule.system.child import Input


async def test_what_there_is_room_for_is_written_at_once():
    reading, writing = os.pipe()
    given = Input(writing)
    try:
        assert given.push(b"hello") == 5
        assert os.read(reading, 99) == b"hello"
        assert 0 < given.push(b"x" * (1 << 22)) < 1 << 22
        assert given.push(b"more") == 0
    finally:
        given.close()
        os.close(reading)


async def test_nothing_is_put_into_what_somebody_else_writes():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    given = Input(writing)
    size = 1 << 20
    task = asyncio.create_task(given.write(b"x" * size, seconds=60))
    try:
        await asyncio.sleep(0)
        assert given.push(b"y") == 0

        got = b""
        async with asyncio.timeout(60):
            while len(got) < size:
                with contextlib.suppress(BlockingIOError):
                    got += os.read(reading, 1 << 16)
                await asyncio.sleep(0)
            await task
        assert got == b"x" * size
    finally:
        task.cancel()
        given.close()
        os.close(reading)


async def test_whoever_reads_no_more_is_noticed():
    reading, writing = os.pipe()
    os.close(reading)
    given = Input(writing)
    try:
        with pytest.raises(BrokenPipeError):
            given.push(b"hello")
    finally:
        given.close()
