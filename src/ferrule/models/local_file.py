"""What a GGUF file says about itself, read from its head before any library opens it."""

import os
import stat
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ferrule.models.model import ModelError

_Found = TypeVar("_Found")
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The bytes of each kind of number."""
_STRING, _ARRAY = 8, 9
_NUMBERS = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_CONTROL, _USER_DEFINED = 3, 4
"""Kinds of tokens."""
_VERSIONS = (2, 3)
_MOST_MEMBERS = 1 << 16
_LONGEST = 1 << 22


class LocalFile(NamedTuple):
    """A model in a file."""

    path: str
    context_length: int
    """The window that it was trained for; 0 where it does not say."""
    template: str
    """How a conversation is written for it, in Jinja."""
    specials: tuple[str, ...] = ()
    """Texts that are more than text to it: the ends of turns, and other marks."""


def look(path: str) -> LocalFile:
    """Raises: ModelError where there is no such file, or no model in it."""
    path = os.path.abspath(os.path.expanduser(path))
    try:
        # To open a pipe would wait for whoever writes into it, and nothing could stop that.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelError(f"The model {path} is no file. Name one as local:FILE.gguf.", "no-model")
        with open(path, "rb") as file:
            import mmap  # only who has a model here pays for it

            if os.fstat(file.fileno()).st_size < 24:
                raise _no_model(path, "it is too short")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                reading = _Head(memory, path)
                found = reading.read()
                specials = reading.specials()
    except FileNotFoundError as error:
        raise ModelError(f"There is no file {path}. Name a model as local:FILE.gguf.", "no-model") from error
    except OSError as error:
        raise ModelError(f"The model {path} cannot be read: {error.strerror}.", "no-model") from error
    architecture = found.get("general.architecture", "")
    length = found.get(f"{architecture}.context_length", 0)
    template = found.get("tokenizer.chat_template", "")
    return LocalFile(
        path, length if isinstance(length, int) else 0, template if isinstance(template, str) else "", specials
    )


class _Head:
    """Reads member after member; whatever a length says, nothing is read behind the end of the file."""

    def __init__(self, memory: Any, path: str) -> None:
        self._memory = memory
        self._path = path
        self._at = 0
        self._arrays: dict[str, int] = {}
        """Where each array begins."""

    def read(self) -> dict[str, int | str]:
        return self._safely(self._read)

    def specials(self) -> tuple[str, ...]:
        """The tokens of the kinds control and user-defined; of the latter those that look like a mark."""
        return self._safely(self._specials)

    def _safely(self, read: Callable[[], _Found]) -> _Found:
        try:
            return read()
        except (struct.error, UnicodeDecodeError, KeyError, OverflowError) as error:
            raise _no_model(self._path, "its head is damaged") from error

    def _specials(self) -> tuple[str, ...]:
        if "tokenizer.ggml.tokens" not in self._arrays or "tokenizer.ggml.token_type" not in self._arrays:
            return ()
        self._at = self._arrays["tokenizer.ggml.token_type"]
        self._number("<I")
        count = self._number("<Q")
        if count * 4 > len(self._memory):
            raise _no_model(self._path, "its head is damaged")
        kinds = struct.unpack_from(f"<{count}i", self._memory, self._at)
        self._at = self._arrays["tokenizer.ggml.tokens"] + 12
        found = []
        for kind in kinds:
            length = self._number("<Q")
            if kind in {_CONTROL, _USER_DEFINED}:
                text = self._memory[self._at : self._at + length].decode(errors="replace").strip()
                if len(text) >= 3 and (kind == _CONTROL or text[0] in "<["):
                    found.append(text)
            self._at += length
        return tuple(found)

    def _read(self) -> dict[str, int | str]:
        if self._memory[:4] != b"GGUF":
            raise _no_model(self._path, "it does not begin with GGUF")
        self._at = 4
        version = self._number("<I")
        if version not in _VERSIONS:
            raise _no_model(self._path, f"its version is {version}, and {' and '.join(map(str, _VERSIONS))} are known")
        self._number("<Q")
        count = self._number("<Q")
        if count > _MOST_MEMBERS:
            raise _no_model(self._path, "its head is damaged")
        found: dict[str, int | str] = {}
        for _ in range(count):
            name = self._text()
            kind = self._number("<I")
            if kind == _STRING:
                found[name] = self._text()
            elif kind in _NUMBERS:
                found[name] = self._number(_NUMBERS[kind])
            else:
                self._arrays[name] = self._at
                self._skip(kind)
        return found

    def _number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self._memory, self._at)[0]
        self._at += struct.calcsize(form)
        return value

    def _text(self) -> str:
        length = self._number("<Q")
        if length > _LONGEST or self._at + length > len(self._memory):
            raise _no_model(self._path, "its head is damaged")
        raw: bytes = self._memory[self._at : self._at + length]
        self._at += length
        return raw.decode()

    def _skip(self, kind: int) -> None:
        if kind != _ARRAY:
            self._at += _SIZES[kind]
            return
        member, count = self._number("<I"), self._number("<Q")
        if member == _STRING:
            # Each has at least the eight bytes of its length: more than the file holds cannot be.
            if count * 8 > len(self._memory):
                raise _no_model(self._path, "its head is damaged")
            for _ in range(count):
                length = self._number("<Q")
                self._at += length
        else:
            self._at += _SIZES[member] * count


def _no_model(path: str, why: str) -> ModelError:
    return ModelError(f"{path} is no GGUF model: {why}. Name a model as local:FILE.gguf.", "no-model")
