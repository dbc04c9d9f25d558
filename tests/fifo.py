"""A FIFO that a program writes to: a test goes on at that moment, and looks for no file again and again."""

import asyncio
import os
from pathlib import Path

WAIT_SECONDS = 60.0


class Fifo:
    """Made before the program starts; what it writes waits for whoever asks."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path

    async def said(self) -> str:
        """What was written to it, as soon as something was."""
        # To open only an end of it would wait for the other one, and at the end of the writer it would be at its end.
        descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, came.set)
        try:
            await asyncio.wait_for(came.wait(), WAIT_SECONDS)
            return os.read(descriptor, 1 << 12).decode()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
