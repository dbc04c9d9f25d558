"""What a running process is given to read, and how long it may take to read it."""

import asyncio
import errno
import os


class Input:
    """The writing end of a pipe, or the near end of a terminal, on the running event loop."""

    def __init__(self, descriptor: int) -> None:
        """The descriptor is its own from now on."""
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()
        self._waiter: asyncio.Future[None] | None = None
        os.set_blocking(descriptor, False)

    async def write(self, data: bytes, *, seconds: float) -> None:
        """Raises BrokenPipeError when nobody reads any more, TimeoutError when nobody does for so long."""
        left = memoryview(data)
        try:
            async with asyncio.timeout(seconds), self._writing:
                while left:
                    if self._descriptor < 0:
                        raise BrokenPipeError(errno.EPIPE, "The command reads no more")
                    try:
                        left = left[os.write(self._descriptor, left) :]
                    except BlockingIOError:
                        await self._writable()
                    except OSError as error:
                        raise BrokenPipeError(errno.EPIPE, "The command reads no more") from error
        except TimeoutError as error:
            message = f"The command did not read {len(left):,} of {len(data):,} bytes within {seconds:g} seconds"
            raise TimeoutError(errno.ETIMEDOUT, message) from error

    def push(self, data: bytes) -> int:
        """Write what there is room for now, and nothing while somebody else writes; how many bytes that was.

        Raises BrokenPipeError when nobody reads any more.
        """
        if self._writing.locked():
            return 0
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise BrokenPipeError(errno.EPIPE, "The command reads no more") from error

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._wake()

    async def _writable(self) -> None:
        self._waiter = self._loop.create_future()
        self._loop.add_writer(self._descriptor, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if self._descriptor >= 0:
                self._loop.remove_writer(self._descriptor)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
