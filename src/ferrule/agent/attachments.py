"""Prompts that are more than words: pictures and files beside them, checked, and made fit for a model."""

import asyncio
import base64
import binascii
import os
import stat
from collections.abc import Iterable, Sequence

import msgspec

from ferrule.core.content import Document, Image, Text, data_bytes
from ferrule.core.errors import ConfigError
from ferrule.models.model import Model, has_vision
from ferrule.support import picture
from ferrule.support.beneath import describe, read_all
from ferrule.support.document import known as is_pdf
from ferrule.wire.content import document_words
from ferrule.wire.turn import Part, Result, Turn

PromptPart = Text | Image | Document
"""What a user says, prepared for a turn."""
Prompt = str | Sequence[str | os.PathLike[str] | PromptPart]
"""What a user says at once: words, or words, files and prepared parts in their order."""

MOST_FILES = 20
"""Pictures and files of one prompt."""
MOST_BYTES = 20_000_000
"""Of all of them together, as they are sent: APIs refuse larger questions, and base64 makes a third more of it."""
TEXT_BYTES = 500_000
"""Of a text file. A larger one fills a window; the model had better read it with its tools."""

_TAKEN = "PNG, JPEG, GIF and WebP pictures, PDF files and text files can be attached"
_PDF = "application/pdf"


async def attach(source: str | os.PathLike[str] | bytes, *, media_type: str = "", title: str = "") -> Image | Document:
    """A picture or a file for a prompt, from its path or its bytes. What it is, its content says.

    Pictures are scaled down to what APIs take. With `media_type`, a file that is something else is refused.

    Raises: ConfigError, where it cannot be read, is too large, or is nothing that a model takes.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        raw, said = bytes(source), title or "The attachment"
    else:
        path = os.fspath(source)
        raw, said = await asyncio.to_thread(_read, path), path
        title = title or os.path.basename(path)
    if not raw:
        raise ConfigError(f"{said} is empty: there is nothing to attach.")
    kind = _kind(raw)
    if kind is None:
        raise ConfigError(f"{said} is {f'of the type {media_type} and ' if media_type else ''}none of these: {_TAKEN}.")
    if media_type and not _agree(media_type, kind):
        raise ConfigError(f"{said} is said to be {media_type}, and its content is {kind}. {_TAKEN}.")
    if kind.startswith("image/"):
        return await _picture(raw, title, said)
    if kind == _PDF:
        _check_size(said, len(raw), MOST_BYTES)
        return Document(_PDF, base64.b64encode(raw).decode(), title=title)
    _check_size(said, len(raw), TEXT_BYTES)
    return Document("text/plain", text=raw.decode().removeprefix("\ufeff"), title=title)


async def prompt_parts(prompt: Prompt) -> tuple[PromptPart, ...]:
    """A prompt in parts that a turn can hold: files are read, pictures scaled, and all of it is within the limits.

    Raises: ConfigError.
    """
    if isinstance(prompt, str):
        return (Text(prompt),)
    given: object = prompt
    if not isinstance(given, list | tuple):
        raise ConfigError(f"A prompt is text, or a list of text, paths and content, not {type(prompt).__name__}.")
    files = sum(not isinstance(one, str | Text) for one in prompt)
    if files > MOST_FILES:
        raise ConfigError(f"The prompt has {files} pictures and files; {MOST_FILES} are the most. Send fewer at once.")
    parts = tuple([await _part(one) for one in prompt])
    size = sum(data_bytes(part) for part in parts if isinstance(part, Image | Document))
    if size > MOST_BYTES:
        raise ConfigError(
            f"The pictures and files of the prompt have {size:,} bytes together; {MOST_BYTES:,} are the most. "
            "Send fewer at once, or name their paths: the model reads them with its tools."
        )
    return parts


def is_shown(path: str) -> bool:
    """Is it a picture or a PDF? What cannot be read is neither."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return False
    return picture.kind(head) is not None or is_pdf(head)


def check_vision(parts: Iterable[Part], model: Model) -> None:
    """Refuse what the model is known not to take. Raises: ConfigError."""
    if has_vision(model):
        return
    unseen = next((part for part in parts if _is_unseen(part)), None)
    if unseen is not None:
        what = "pictures" if isinstance(unseen, Image) else "files that are not text"
        raise ConfigError(
            f"The model {model.name} takes no {what}, so {unseen} cannot be sent. Take another model; if this one "
            f'does take them, set vision = true under [models.known."{model.model}"] in your settings.'
        )


def without_sight(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Turns for a model that takes no pictures: words stand in their place."""
    if not any(_is_unseen(part) for turn in turns for part in turn.parts):
        return turns
    return [msgspec.structs.replace(turn, parts=tuple(map(_told, turn.parts))) for turn in turns]


def words_of_parts(parts: Iterable[Part]) -> str:
    """What of a prompt is words, one part below the other."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text) and part.text.strip())


def names_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """The pictures and files among parts, each in a few words."""
    return tuple(str(part) for part in parts if isinstance(part, Image | Document))


def attached(turns: Iterable[Turn]) -> list[Image | Document]:
    """The pictures and files that users have given, in their order."""
    return [part for turn in turns if turn.role == "user" for part in turn.parts if isinstance(part, Image | Document)]


def _read(path: str) -> bytes:
    """The bytes of a file. Raises: ConfigError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise ConfigError(f"{path} is no file, so it cannot be attached. {_TAKEN}.")
            _check_size(path, about.st_size, picture.SOURCE_BYTES)
            return read_all(descriptor, picture.SOURCE_BYTES)
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} is not there: check the path; a relative one counts from {os.getcwd()}.") from error
    except (OSError, ValueError) as error:
        why = describe(error) if isinstance(error, OSError) else "The path is not valid"
        raise ConfigError(f"{why}: {path}") from error


def _kind(raw: bytes) -> str | None:
    """The media type, by the content alone."""
    if (found := picture.kind(raw[:16])) is not None:
        return found
    if is_pdf(raw[:16]):
        return _PDF
    if b"\0" in raw:
        return None
    try:
        raw.decode()
    except UnicodeDecodeError:
        return None
    return "text/plain"


def _agree(media_type: str, kind: str) -> bool:
    """Can a file of this kind be called that? Pictures are called by each other's names every day."""
    said = media_type.partition(";")[0].strip().lower()
    if kind == "text/plain":
        return not said.startswith(("image/", "audio/", "video/")) and said != _PDF
    return said == kind or (kind.startswith("image/") and said.startswith("image/"))


async def _picture(raw: bytes, title: str, said: str) -> Image:
    try:
        fitted = await picture.fit(raw)
    except picture.BadPicture as error:
        raise ConfigError(f"{said} cannot be attached. {error}") from error
    return Image(fitted.media_type, base64.b64encode(fitted.data).decode(), title=title)


def _check_size(said: str, size: int, most: int) -> None:
    if size > most:
        raise ConfigError(
            f"{said} has {size:,} bytes; {most:,} are the most of such a file. Name its path in the prompt instead: "
            "the model reads it with its tools, in parts."
        )


async def _part(one: str | os.PathLike[str] | PromptPart) -> PromptPart:
    match one:
        case str():
            return Text(one)
        case Text():
            return one
        case Image() | Document() if one.url and not one.data:
            return one
        case Document() if one.text:
            _check_size(str(one), data_bytes(one), TEXT_BYTES)
            return one
        case Image() | Document():
            try:
                raw = base64.b64decode(one.data, validate=True)
            except (binascii.Error, ValueError) as error:
                raise ConfigError(f"{one} has data that is no base64: give `await attach(data)` the bytes.") from error
            return await attach(raw, media_type=one.media_type, title=one.title)
        case os.PathLike():
            return await attach(one)
        case _:
            raise ConfigError(
                f"A prompt cannot hold {type(one).__name__}: give text, a path (pathlib.Path), or what attach() gives."
            )


def _is_unseen(part: Part) -> bool:
    if isinstance(part, Result):
        return any(map(_is_unseen, part.parts))
    return isinstance(part, Image) or (isinstance(part, Document) and not part.text)


def _told(part: Part) -> Part:
    match part:
        case Image():
            return Text(f"[{part}, which you cannot see.]")
        case Document():
            return Text(document_words(part) if part.text else f"[{part}, which you cannot read.]")
        case Result():
            held = tuple(Text(f"[{one}, which you cannot see.]") if _is_unseen(one) else one for one in part.parts)
            return msgspec.structs.replace(part, parts=held)
        case _:
            return part
