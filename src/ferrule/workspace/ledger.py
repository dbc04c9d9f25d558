"""What the model has read: the content it saw, by hash, because modification times prove nothing."""

import hashlib


def fingerprint(raw: bytes) -> str:
    """The name of a content; equal names mean equal bytes."""
    return hashlib.blake2b(raw, digest_size=20).hexdigest()


class Ledger:
    """The contents that this session has seen, by real path."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def saw(self, path: str, raw: bytes) -> None:
        self._seen[path] = fingerprint(raw)

    def knows(self, path: str) -> bool:
        return path in self._seen

    def stale(self, path: str, raw: bytes) -> bool:
        """Has the file other bytes now than when it was last read or written here?"""
        seen = self._seen.get(path)
        return seen is not None and seen != fingerprint(raw)

    def forget(self, path: str) -> None:
        self._seen.pop(path, None)
