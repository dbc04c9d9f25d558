"""The program that `decoder` starts: it decodes one picture or some pages, under limits that it cannot lift.

It runs without `site` and imports nothing of Ferrule: it starts quickly, and no setting of the environment and no
module of the workspace gets into it. What to do is its only argument, the file is its standard input. It answers with
one line of JSON and then the bytes which that line announces. Its exit code says what went wrong.

Before it reads the first byte of the file it closes itself in, where the kernel can do that: from then on it opens
nothing but the libraries that it consists of and the system's own and its fonts, and no connection at all.
"""

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image as Drawing


# Exit codes.
_DAMAGED = 1
_TOO_MUCH = 3
_UNLOADED = 4

_PASSWORD = 4
"""The library's own number for a document that needs one."""
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
_QUALITIES = (85, 70, 50)
_MOST_SCALE = 2.0
"""Pixels to a point of a page: a small page is not blown up to the longest side that fits."""

_PLUGINS = {"image/png": "Png", "image/jpeg": "Jpeg", "image/gif": "Gif", "image/webp": "WebP"}
_PACKAGES = ("PIL", "pillow.libs", "pypdfium2", "pypdfium2_cfg", "pypdfium2_raw")
SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/usr/share/X11/fonts",
)
"""Libraries of the system, and its fonts: a page that does not bring its own along is drawn with those."""
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 1 << 2 | 1 << 3
"""Of Landlock: to read files and to list folders."""

Answer = tuple[dict[str, Any], list[bytes]]


def main() -> None:
    wanted = json.loads(sys.argv[1])
    exit_code = _DAMAGED
    try:
        limit(wanted["seconds"], wanted["memory_bytes"])
        sys.path.extend(wanted["folders"])
        _load(wanted)
        if sys.platform == "linux":
            confine([*_libraries(wanted["folders"]), *SYSTEM], bytes.fromhex(wanted["rules"]))
        said, parts = _TASKS[wanted["task"]](wanted)
        with open(1, "wb", closefd=False) as out:
            out.write(json.dumps(said).encode() + b"\n")
            out.writelines(parts)
        exit_code = 0
    except MemoryError:
        exit_code = _TOO_MUCH
    except ImportError:
        exit_code = _UNLOADED
    finally:
        os._exit(exit_code)  # libraries that have met a hostile file are not asked to tidy up


def limit(seconds: int, memory_bytes: int) -> None:
    """Bound memory, processor time and files. The clock counts even when nobody is left who would end this."""
    if sys.platform == "win32":
        return
    import resource

    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whoever started the engine may have had it ignored
    signal.alarm(seconds + 5)
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # some systems do not know or not allow every limit
            resource.setrlimit(kind, (most, most))


def _load(wanted: dict[str, Any]) -> None:
    """Load what will be needed. Other parts of the same libraries are still found later."""
    from importlib import import_module
    from importlib.util import find_spec

    if wanted["task"] == "pages":
        import_module("pypdfium2")
        find_spec("PIL")  # not every page is drawn: it is enough to know where it is
    else:
        import_module(f"PIL.{_PLUGINS[wanted['media_type']]}ImagePlugin")


def _libraries(folders: Iterable[str]) -> list[str]:
    """Where the code is that is loaded when it is first used: Python's own, and that of the packages."""
    return [os.path.dirname(os.__file__), *(os.path.join(each, name) for each in folders for name in _PACKAGES)]


def confine(readable: Iterable[str], rules: bytes) -> None:
    """Open no file but those in these folders, start no program, and make none of the system calls that `rules` deny.

    What this kernel does not know is left out: the limits hold in any case.
    """
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *values: Any) -> int:
        return int(libc.syscall(number, *(ctypes.c_long(each) if isinstance(each, int) else each for each in values)))

    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return
    version = call(_CREATE_RULESET, None, 0, 1)
    if version > 0:
        files = (1 << 13) - 1 | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
        handled = struct.pack("=3Q", files, 3, 3)[: 24 if version >= 6 else 16 if version >= 4 else 8]
        ruleset = call(_CREATE_RULESET, handled, len(handled), 0)
        for path in readable:
            with contextlib.suppress(OSError):
                folder = os.open(path, os.O_PATH | os.O_DIRECTORY)
                call(_ADD_RULE, ruleset, 1, struct.pack("=Qi", _READ, folder), 0)
                os.close(folder)
        call(_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)
    if rules:
        code = ctypes.create_string_buffer(rules, len(rules))
        program = struct.pack("@HP", len(rules) // 8, ctypes.addressof(code))
        libc.prctl(_PR_SET_SECCOMP, 2, program, 0, 0)


def _source(most_bytes: int) -> bytes:
    with open(0, "rb", closefd=False) as file:
        raw = file.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise MemoryError
    return raw


def _picture(wanted: dict[str, Any]) -> Answer:
    """Scale a picture to `side`, upright, in a format that suits it, in at most `most_bytes`."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = wanted["pixels"]
    image: Drawing = Image.open(io.BytesIO(_source(wanted["source_bytes"])), formats=(_FORMATS[wanted["media_type"]],))
    if image.width * image.height > wanted["pixels"]:  # the decoder may see another header than we did
        raise MemoryError
    lossless = image.format not in {"JPEG", "MPO", "WEBP"}
    if "transparency" in image.info:
        image = image.convert("RGBA")
    elif image.mode in {"P", "1"}:
        image = image.convert("RGB" if image.mode == "P" else "L")  # only then are pixels mixed when it shrinks
    if wanted["side"]:
        image.thumbnail((wanted["side"], wanted["side"]), Image.Resampling.LANCZOS)
    image, turned = _upright(image)
    image = _plain(image)
    media_type, data, size = _encode_image(
        image, lossless=lossless or "A" in image.mode, most_bytes=wanted["most_bytes"]
    )
    return {"media_type": media_type, "size": size, "turned": turned}, [data]


def _upright(image: "Drawing") -> tuple["Drawing", bool]:
    """The picture as its camera was held, and whether that makes its height its width."""
    from PIL.Image import Transpose

    turns = (
        Transpose.FLIP_LEFT_RIGHT,
        Transpose.ROTATE_180,
        Transpose.FLIP_TOP_BOTTOM,
        Transpose.TRANSPOSE,
        Transpose.ROTATE_270,
        Transpose.TRANSVERSE,
        Transpose.ROTATE_90,
    )
    turn = image.getexif().get(0x0112)
    if not isinstance(turn, int) or not 2 <= turn <= 8:
        return image, False
    return image.transpose(turns[turn - 2]), turn >= 5


def _plain(image: "Drawing") -> "Drawing":
    """Eight bits of grey or colour, with alpha where there is some."""
    if image.mode.startswith("I"):
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    return image if image.mode in {"L", "LA", "RGB", "RGBA"} else image.convert("RGB")


def _encode_image(image: "Drawing", *, lossless: bool, most_bytes: int) -> tuple[str, bytes, tuple[int, int]]:
    """PNG where that is wanted and fits, or else JPEG on white, in worse quality and smaller until it fits."""
    if lossless:
        file = io.BytesIO()
        image.save(file, "PNG")
        if file.tell() <= most_bytes:
            return "image/png", file.getvalue(), image.size
    if "A" in image.mode:
        from PIL import Image

        white = Image.new("RGB", image.size, "white")
        white.paste(image.convert("RGBA"), mask=image.getchannel("A"))
        image = white
    while True:
        for quality in _QUALITIES:
            file = io.BytesIO()
            image.save(file, "JPEG", quality=quality)
            if file.tell() <= most_bytes:
                return "image/jpeg", file.getvalue(), image.size
        if max(image.size) == 1:
            raise MemoryError
        image = image.reduce(2)


def _pages(wanted: dict[str, Any]) -> Answer:
    """Text and pictures of the pages in `ranges`; without ranges of all, if they are not too many."""
    from importlib import import_module

    pdfium: Any = import_module("pypdfium2")
    try:
        document = pdfium.PdfDocument(_source(wanted["source_bytes"]))
    except pdfium.PdfiumError as error:
        return {"wrong": "encrypted" if getattr(error, "err_code", 0) == _PASSWORD else "damaged"}, []
    total = len(document)
    numbers = _numbers(wanted, total)
    if isinstance(numbers, str):
        return {"wrong": numbers, "total": total}, []
    rows: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for number in numbers:
        try:
            page = document[number - 1]
            text = _text(page, wanted["page_chars"])
        except pdfium.PdfiumError:
            return {"wrong": "page", "total": total, "number": number}, []
        row = {"number": number, "text": text}
        if wanted["pictures"] == "all" or (wanted["pictures"] and not text.strip()):
            drawn = _render_page(page, wanted["side"], wanted["most_bytes"], blank=wanted["pictures"] == "all")
            if drawn is not None:
                row |= {"media_type": drawn[0], "size_bytes": len(drawn[1])}
                parts.append(drawn[1])
        rows.append(row)
        page.close()
    return {"total": total, "pages": rows}, parts


def _numbers(wanted: dict[str, Any], total: int) -> Iterable[int] | str:
    """The pages that are meant, each once, or what is wrong with them."""
    if wanted["ranges"] is None and total > wanted["most_unasked"]:
        return "unasked"
    found: dict[int, None] = {}
    for first, last in wanted["ranges"] or ((1, None),):
        if first > total > 0:
            return "past"
        end = total if last is None else min(last, total)
        if end - first >= wanted["most_pages"]:
            return "many"
        found |= dict.fromkeys(range(first, end + 1))
    return "many" if len(found) > wanted["most_pages"] else found or "damaged"


def _text(page: Any, most_chars: int) -> str:
    words = page.get_textpage()
    text: str = words.get_text_bounded(errors="replace")
    words.close()
    # The two stand for a hyphen at the end of a line, which the library would rather take back.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").replace("\2", "-").replace("\0", "")
    if len(text) > most_chars:
        text = f"{text[:most_chars]}\n[The page has {len(text):,} characters; these are the first {most_chars:,}.]"
    return text.encode("utf-8", "replace").decode()


def _render_page(page: Any, side: int, most_bytes: int, *, blank: bool) -> tuple[str, bytes] | None:
    """The page as a picture; nothing for a page on which nothing is, unless a blank one is wanted too."""
    longest = max(page.get_size())
    if not 0 < longest < float("inf") or (not blank and next(iter(page.get_objects(max_depth=1)), None) is None):
        return None
    bitmap = page.render(scale=min(_MOST_SCALE, (side - 0.5) / longest), may_draw_forms=False)
    media_type, data, _ = _encode_image(_plain(bitmap.to_pil()), lossless=True, most_bytes=most_bytes)
    bitmap.close()
    return media_type, data


_TASKS = {"picture": _picture, "pages": _pages}

if __name__ == "__main__":
    main()
