"""The last approved listing of each server, kept so that a session knows its tools without starting anything.

One file for each server, read when something of it is first looked at: names alone are in the pins.
"""

import contextlib
import hashlib
import os

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept
from ferrule.sources.mcp.server import Listing

_MOST_BYTES = 2 << 20
"""A longer listing is not kept: the server is asked for it in every session."""


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    version: int = 1
    listing: Listing | None = None


class KeptListings:
    """The listings by the keys of their servers. Who reads one compares it with the pins."""

    def __init__(self, state_folder: str) -> None:
        self._folder = os.path.join(os.path.realpath(state_folder), "mcp", "listings")

    def is_kept(self, key: str) -> bool:
        return os.path.exists(self._path(key))

    def get(self, key: str) -> Listing | None:
        return Kept(self._path(key), _Kept).read().listing

    def put(self, key: str, listing: Listing) -> None:
        """Keep it. Where that cannot be, none is kept: the server is asked again in the next session."""
        kept = _Kept(listing=listing)
        with contextlib.suppress(ConfigError):
            if len(msgspec.json.encode(kept)) > _MOST_BYTES:
                self.drop(key)
            else:
                Kept(self._path(key), _Kept).change(lambda _: kept)

    def drop(self, key: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(key))

    def _path(self, key: str) -> str:
        name = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
        return os.path.join(self._folder, f"{name}.json")
