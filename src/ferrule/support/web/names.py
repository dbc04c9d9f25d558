"""Looking up the names of hosts, as the system knows them.

The system takes its time for a name whose servers do not answer, and cannot be stopped. On the event loop's own threads
a few of those would hold up every other name, all else that needs a thread, and the end of the program.
"""

import threading
from collections.abc import Sequence

from ferrule.support.web.apart import apart

MOST = 32
"""Names at once, with those that nobody waits for any more."""
_places = threading.BoundedSemaphore(MOST)


async def looked_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a host. Raises OSError."""
    from socket import SOCK_STREAM, getaddrinfo  # whoever fetches pays for it

    if not _places.acquire(blocking=False):
        raise OSError("too many names are being looked up")

    def work() -> Sequence[str]:
        try:
            return [str(each[4][0]) for each in getaddrinfo(host, port, type=SOCK_STREAM)]
        finally:
            _places.release()

    try:
        return await apart(work, "ferrule-names")
    except RuntimeError as error:  # no thread can be started
        _places.release()
        raise OSError(str(error)) from error
