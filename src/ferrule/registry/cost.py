"""What a tool's definition costs a prompt, in tokens."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from ferrule.core.face import Face
from ferrule.registry.late import LateFace
from ferrule.support.tokens import BYTES_A_TOKEN, estimate


class Cost(NamedTuple):
    """One tool's part of the prompt."""

    name: str
    tokens: int


class Costs:
    """Counts each face once: a definition does not change, and counting loads a tokenizer."""

    def __init__(self, count: Callable[[str], int] | None = None) -> None:
        """`count` gives the tokens of a text; without it they are estimated."""
        self._count = count
        self._known: dict[int, tuple[Face, int]] = {}
        """By the face's identity; the face is kept, so that no other can come to have it."""

    def of(self, face: Face) -> int:
        """The tokens of a face's definition."""
        if self._count is None and isinstance(face, LateFace) and face.described is not None:
            return -(-face.described.definition_chars // BYTES_A_TOKEN)
        known = self._known.get(id(face))
        if known is None:
            raw = written(face)
            known = self._known[id(face)] = (face, estimate(raw) if self._count is None else self._count(raw.decode()))
        return known[1]

    def keep(self, faces: Iterable[Face]) -> None:
        """Forget all others."""
        kept = {id(face) for face in faces}
        self._known = {key: known for key, known in self._known.items() if key in kept}

    def each(self, faces: Iterable[Face]) -> list[Cost]:
        """Every face with its tokens, the dearest first."""
        return sorted((Cost(face.name, self.of(face)) for face in faces), key=lambda cost: (-cost.tokens, cost.name))


def written(face: Face) -> bytes:
    """A definition as JSON, without the copy that whoever changes it would need."""
    shown = {"name": face.name, "description": face.words, "inputSchema": face.schema}
    return as_json({**shown, "grammar": face.grammar} if face.grammar else shown)


def as_json(value: Any) -> bytes:
    """A value as JSON. Raises `TypeError`, `ValueError` or `RecursionError` where it cannot be one."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except NotImplementedError as error:
        raise TypeError(str(error)) from error


def _plain(value: Any) -> Any:
    """For schemas whose parts nobody may change."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON")
