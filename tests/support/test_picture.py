"""Pictures: read from their headers alone, passed through or scaled, and never decoded when that could harm."""

import asyncio
import binascii
import contextlib
import ctypes
import io
import json
import os
import socket
import subprocess
import sys
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ferrule import documents
from ferrule.documents import LONG_SIDE, MOST_BYTES, BadPicture, DecoderLimits, fit, kind, size

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def drawn(form: str, width: int = 40, height: int = 30, mode: str = "RGB", colour: Any = None, **options) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height), colour).save(file, form, **options)
    return file.getvalue()


def noise(form: str, width: int, height: int, **options) -> bytes:
    """A picture that no format makes small."""
    file = io.BytesIO()
    Image.frombytes("RGB", (width, height), os.urandom(3 * width * height)).save(file, form, **options)
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def png(width: int, height: int, body: bytes = b"") -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + name + data + binascii.crc32(name + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + b"\0\0\0;"


def jpeg(width: int, height: int) -> bytes:
    sizes = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08" + sizes + b"\1\1\x11\0\xff\xda\0\2\xff\xd9"


def webp(name: bytes, body: bytes) -> bytes:
    chunk = name + len(body).to_bytes(4, "little") + body
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


def webp_canvas(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


@pytest.fixture(autouse=True)
def nothing_left():
    """No descriptor and no child, running or zombie, is left by any test of this module."""
    before, had = sorted(os.listdir("/dev/fd")), has_children()
    yield
    assert sorted(os.listdir("/dev/fd")) == before
    assert has_children() <= had


def has_children() -> bool:
    """Is there a child, running or not yet reaped? It is left as it is."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


async def refused(raw: bytes, **options) -> BadPicture:
    with pytest.raises(BadPicture) as caught:
        async with asyncio.timeout(60):
            await fit(raw, **options)
    return caught.value


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n", "image/png", id="png"),
        pytest.param(b"\xff\xd8\xff\xe1", "image/jpeg", id="jpeg"),
        pytest.param(b"GIF87a", "image/gif", id="old-gif"),
        pytest.param(b"GIF89a", "image/gif", id="gif"),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", id="webp"),
        pytest.param(b"RIFF\0\0\0\0WAVEfmt ", None, id="sound"),
        pytest.param(b"<svg xmlns=", None, id="svg"),
        pytest.param(b"BM\0\0", None, id="bmp"),
        pytest.param(b"II*\0", None, id="tiff"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF", None, id="postscript"),
        pytest.param(b"\x89PNG\r\n\x1a", None, id="cut-off"),
        pytest.param(b"", None, id="empty"),
    ],
)
def test_a_kind_is_told_by_the_first_bytes(head, expected):
    assert kind(head) == expected


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(drawn("PNG", 301, 207), id="png"),
        pytest.param(drawn("PNG", 301, 207, "RGBA"), id="png-alpha"),
        pytest.param(drawn("JPEG", 301, 207), id="jpeg"),
        pytest.param(drawn("JPEG", 301, 207, progressive=True), id="jpeg-progressive"),
        pytest.param(drawn("JPEG", 301, 207, comment=b"x" * 60_000), id="jpeg-comment"),
        pytest.param(drawn("GIF", 301, 207), id="gif"),
        pytest.param(drawn("WEBP", 301, 207), id="webp-lossy"),
        pytest.param(drawn("WEBP", 301, 207, lossless=True), id="webp-lossless"),
        pytest.param(drawn("WEBP", 301, 207, "RGBA", (1, 2, 3, 4)), id="webp-alpha"),
        pytest.param(drawn("WEBP", 301, 207, icc_profile=b"x" * 40), id="webp-extended"),
    ],
)
async def test_what_fits_is_measured_and_passed_through_byte_for_byte_without_any_library(raw, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    assert size(raw) == (301, 207)
    assert await fit(raw) == (kind(raw), raw, (301, 207), (301, 207))


@pytest.mark.parametrize("tail", [pytest.param(b"\0" * 9, id="zeros"), pytest.param(b"appended", id="words")])
@pytest.mark.parametrize("form", MEDIA_TYPES)
async def test_what_stands_behind_the_end_does_not_matter(form, tail):
    raw = drawn(form) + tail

    assert (await fit(raw)).data == raw


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(noise("PNG", 9, 7), id="png"),
        pytest.param(noise("JPEG", 9, 7), id="jpeg"),
        pytest.param(drawn("JPEG", 9, 7, progressive=True), id="jpeg-progressive"),
        pytest.param(noise("GIF", 9, 7), id="gif"),
        pytest.param(noise("WEBP", 9, 7), id="webp"),
        pytest.param(noise("WEBP", 9, 7, lossless=True), id="webp-lossless"),
        pytest.param(drawn("WEBP", 9, 7, "RGBA", (1, 2, 3, 4)), id="webp-alpha"),
    ],
)
async def test_no_beginning_of_a_picture_is_taken_for_a_picture(raw):
    assert (await fit(raw)).data == raw
    for end in range(len(raw)):
        assert (await refused(raw[:end])).code == "bad-image"


@pytest.mark.parametrize("form", MEDIA_TYPES)
async def test_the_beginning_of_a_large_picture_is_refused_by_the_decoder(form):
    raw = noise(form, LONG_SIDE + 8, 8)

    assert str(await refused(raw[: len(raw) // 2])) == "The image is damaged, or not what it claims to be."


heads = st.sampled_from(
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBP", b"RIFF1234WEBPVP8 "]
)
markers = st.lists(st.sampled_from([b"\xff", b"\xff\xc0", b"\xff\xda", b"\0\2", b"\0\x0b", b"\xd9", b"!", b",", b";"]))


@given(heads, st.one_of(st.binary(max_size=200), markers.map(b"".join)))
def test_a_hostile_header_has_a_size_or_is_bad(head, rest):
    with contextlib.suppress(BadPicture):
        assert min(size(head + rest)) > 0


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\xff\xd8" + b"\xff\xe0\0\2" * 2_000_000, id="jpeg-segments"),
        pytest.param(b"\xff\xd8" + b"\xff" * 3_000_000, id="jpeg-padding"),
        pytest.param(png(5, 5)[:33] + b"\0\0\0\0tEXt\0\0\0\0" * 300_000, id="png-chunks"),
        pytest.param(b"GIF89a\5\0\5\0\0\0\0!\xfe" + b"\1x" * 1_800_000, id="gif-pieces"),
        pytest.param(b"GIF89a\5\0\5\0\0\0\0" + b"!\xfe\0" * 1_200_000, id="gif-blocks"),
    ],
)
async def test_a_file_of_nothing_but_tiny_parts_is_given_up(raw):
    assert (await refused(raw)).code == "bad-image"


@pytest.mark.parametrize(
    ("raw", "width", "height"),
    [
        pytest.param(png(100_000, 100_000, zlib.compress(bytes(1000))), 100_000, 100_000, id="png"),
        pytest.param(png(8001, 1), 8001, 1, id="png-one-pixel-too-wide"),
        pytest.param(png(7100, 7100), 7100, 7100, id="png-pixels"),
        pytest.param(gif(65_535, 65_535), 65_535, 65_535, id="gif"),
        pytest.param(jpeg(65_500, 65_500), 65_500, 65_500, id="jpeg"),
        pytest.param(webp_canvas(1 << 24, 1 << 24), 1 << 24, 1 << 24, id="webp-canvas"),
        pytest.param(webp(b"VP8L", b"\x2f\xff\xff\xff\x0f"), 16_384, 16_384, id="webp-lossless"),
        pytest.param(webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\xff\x3f\xff\x3f"), 16_383, 16_383, id="webp-lossy"),
    ],
)
@pytest.mark.parametrize("original", [False, True])
async def test_a_bomb_is_refused_by_its_header(raw, width, height, original, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")  # nothing may be decoded

    assert size(raw) == (width, height)
    error = await refused(raw, original=original)

    assert error.code == "too-large-to-show"
    assert f"{width} x {height} pixels" in str(error)


async def test_a_file_of_too_many_bytes_is_refused(monkeypatch):
    monkeypatch.setattr(documents, "PICTURE_BYTES", 1000)

    error = await refused(png(50, 50, bytes(2000)))

    assert (error.code, "1,000 are the most" in str(error)) == ("too-large-to-show", True)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(png(0, 5), id="png-no-width"),
        pytest.param(png(1 << 31, 5), id="png-signed"),
        pytest.param(png(5, 5)[:20] + b"\0\0\0\7" + png(5, 5)[24:], id="png-checksum"),
        pytest.param(gif(5, 0), id="gif-no-height"),
        pytest.param(jpeg(5, 0), id="jpeg-height-comes-later"),
        pytest.param(b"\xff\xd8\xff\xda\0\2\xff\xd9", id="jpeg-scan-before-size"),
        pytest.param(b"\xff\xd8\xff\xe0\0\0\xff\xd9", id="jpeg-segment-without-length"),
        pytest.param(webp(b"ALPH", bytes(30)), id="webp-other-chunk"),
        pytest.param(webp(b"VP8 ", bytes(30)), id="webp-no-start-code"),
        pytest.param(b"no picture at all", id="text"),
    ],
)
async def test_a_broken_header_is_refused(raw):
    assert (await refused(raw)).code == "bad-image"


@pytest.mark.parametrize(
    ("raw", "media_type", "mode"),
    [
        pytest.param(drawn("PNG", 2000, 1000, "RGB", "red"), "image/png", "RGB", id="png"),
        pytest.param(drawn("PNG", 2000, 1000, "RGBA", (255, 0, 0, 99)), "image/png", "RGBA", id="png-alpha"),
        pytest.param(drawn("PNG", 2000, 1000, "P", 3), "image/png", "RGB", id="png-palette"),
        pytest.param(drawn("PNG", 2000, 1000, "P", 3, transparency=3), "image/png", "RGBA", id="png-clear-colour"),
        pytest.param(drawn("PNG", 2000, 1000, "1", 1), "image/png", "L", id="png-black-and-white"),
        pytest.param(drawn("PNG", 2000, 1000, "LA", (9, 9)), "image/png", "LA", id="png-grey-alpha"),
        pytest.param(drawn("JPEG", 2000, 1000, "RGB", "red"), "image/jpeg", "RGB", id="jpeg"),
        pytest.param(drawn("JPEG", 2000, 1000, "CMYK"), "image/jpeg", "RGB", id="jpeg-cmyk"),
        pytest.param(drawn("JPEG", 2000, 1000, "L", 7), "image/jpeg", "L", id="jpeg-grey"),
        pytest.param(drawn("GIF", 2000, 1000, "P", 3), "image/png", "RGB", id="gif"),
        pytest.param(drawn("WEBP", 2000, 1000, "RGB", "red"), "image/jpeg", "RGB", id="webp"),
        pytest.param(drawn("WEBP", 2000, 1000, "RGBA", (9, 9, 9, 99)), "image/png", "RGBA", id="webp-alpha"),
    ],
)
async def test_a_large_picture_is_scaled_down(raw, media_type, mode):
    fitted = await fit(raw)
    image = opened(fitted.data)

    assert fitted._replace(data=b"") == (media_type, b"", (LONG_SIDE, 784), (2000, 1000))
    assert (image.size, image.mode) == ((LONG_SIDE, 784), mode)


async def test_colours_and_alpha_survive():
    image = opened((await fit(drawn("PNG", 2000, 100, "RGBA", (200, 100, 50, 128)))).data)

    assert image.getpixel((700, 30)) == pytest.approx((200, 100, 50, 128), abs=1)


async def test_deep_greys_keep_their_shade():
    file = io.BytesIO()
    Image.frombytes("I;16", (1600, 10), b"\0\x80" * 16_000).save(file, "PNG")

    assert opened((await fit(file.getvalue())).data).getpixel((700, 5)) == 128


@pytest.mark.parametrize("turn", range(1, 9))
async def test_a_picture_is_turned_as_its_camera_was_held(turn):
    scene = Image.new("RGB", (1600, 800), "white")
    scene.paste("black", (0, 0, 400, 400))  # as seen upright: the corner at the top, on the left
    stored = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[turn]
    exif = Image.Exif()
    exif[0x0112] = turn
    file = io.BytesIO()
    (scene if stored is None else scene.transpose(stored)).save(file, "JPEG", exif=exif)

    fitted = await fit(file.getvalue())
    image = opened(fitted.data).convert("L")

    assert (fitted.size, fitted.source_size) == ((LONG_SIDE, 784), (1600, 800))
    corners = [image.crop((x, y, x + 1, y + 1)).tobytes()[0] for x, y in ((50, 50), (1500, 50), (50, 700), (1500, 700))]
    assert [value < 128 for value in corners] == [True, False, False, False]


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
async def test_only_the_first_picture_of_an_animation_is_decoded(form):
    frames = [Image.new("RGB", (1700, 40), colour) for colour in ("red", "blue", "green")]
    file = io.BytesIO()
    frames[0].save(file, form, save_all=True, append_images=frames[1:], lossless=True)

    image = opened((await fit(file.getvalue())).data)

    assert getattr(image, "n_frames", 1) == 1
    red, green, blue = image.convert("RGB").crop((800, 10, 801, 11)).tobytes()
    assert red > 200 > 50 > green + blue


async def test_a_png_of_too_many_bytes_becomes_a_jpeg():
    fitted = await fit(noise("PNG", 1500, 1200))

    assert len(fitted.data) <= MOST_BYTES
    assert (fitted.media_type, fitted.size) == ("image/jpeg", (1500, 1200))


async def test_transparent_parts_become_white_in_a_jpeg(monkeypatch):
    monkeypatch.setattr(documents, "MOST_BYTES", 40_000)
    file = io.BytesIO()
    image = Image.frombytes("RGBA", (1600, 20), os.urandom(4 * 1600 * 20))
    image.paste((0, 0, 0, 0), (0, 0, 100, 20))
    image.save(file, "PNG")

    fitted = await fit(file.getvalue())

    assert fitted.media_type == "image/jpeg"
    assert opened(fitted.data).getpixel((8, 8)) == (255, 255, 255)


async def test_the_original_keeps_its_pixels_and_obeys_the_limit_of_bytes():
    small, large = drawn("PNG", 3000, 2000), noise("PNG", 1700, 1000)

    assert (await fit(small, original=True)).data == small
    fitted = await fit(large, original=True)
    assert (fitted.size, len(fitted.data) <= MOST_BYTES < len(large)) == ((1700, 1000), True)


async def test_a_jpeg_becomes_smaller_until_it_fits(monkeypatch):
    monkeypatch.setattr(documents, "MOST_BYTES", 20_000)

    fitted = await fit(noise("JPEG", 800, 800), original=True)

    assert len(fitted.data) <= 20_000
    assert fitted.size[0] in (400, 200, 100)


async def test_without_pillow_a_large_picture_says_what_to_install_and_how_large_it_is(monkeypatch):
    raw = drawn("PNG", 2000, 1000)
    monkeypatch.setitem(sys.modules, "PIL", None)

    error = await refused(raw)

    assert error.code == "needs-docs"
    assert "2000 x 1000 pixels" in str(error)
    assert "pip install 'ferrule[docs]'" in str(error)


@pytest.mark.parametrize(
    ("make", "limits"),
    [
        pytest.param(
            lambda: png(7000, 7000, zlib.compress(bytes(7000 * 21_001))),
            DecoderLimits(memory_bytes=120 << 20),
            id="memory",
        ),
        pytest.param(lambda: noise("PNG", 1600, 400), DecoderLimits(output_bytes=1000), id="output"),
        pytest.param(lambda: noise("PNG", 1600, 400), DecoderLimits(seconds=0), id="time"),
    ],
)
async def test_what_needs_more_than_the_limits_is_refused(make, limits):
    assert "could not be decoded within the limits" in str(await refused(make(), limits=limits))


async def test_a_decompression_bomb_within_the_limits_is_just_a_picture():
    fitted = await fit(png(7000, 7000, zlib.compress(bytes(7000 * 21_001))))

    assert fitted.size == (LONG_SIDE, LONG_SIDE)


async def test_a_decoder_that_does_not_start_is_a_failure(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert "the decoder does not start" in str(await refused(drawn("PNG", 2000, 1000)))


async def test_many_pictures_at_once_wait_for_each_other():
    raw = drawn("JPEG", 1600, 30)

    async with asyncio.timeout(60):
        fitted = await asyncio.gather(*(fit(raw) for _ in range(12)))

    assert {one.size for one in fitted} == {(LONG_SIDE, 29)}


async def test_the_child_gets_nothing_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "spy.py"))
    (tmp_path / "spy.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([sorted(os.environ), os.getcwd(), sys.flags.isolated, len(os.listdir('/dev/fd'))]))\n"
    )

    spied = await documents.decode("picture", b"", {}, limits=DecoderLimits(), where=[])
    names, folder, isolated, descriptors = json.loads(spied.said)

    assert set(names) <= {"LC_CTYPE", *documents._KEPT}
    assert (folder, isolated) == ("/", 1)
    assert descriptors <= 4  # the three of every process, and the one that lists them


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_the_child_limits_itself():
    code = (
        "import json, resource, signal\n"
        "from ferrule.documents.worker import limit\n"
        "limit(7, 1 << 30)\n"
        "kinds = ('CPU', 'AS', 'FSIZE', 'CORE')\n"
        "print(json.dumps([[*(resource.getrlimit(getattr(resource, 'RLIMIT_' + kind))[1] for kind in kinds)], "
        "signal.alarm(0)]))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30)

    assert json.loads(done.stdout) == [[7, 1 << 30, 0, 0], 12]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import os; os.abort()", id="abort"),
        pytest.param("import os; os.kill(os.getpid(), 11)", id="segfault"),
        pytest.param("import os; os.kill(os.getpid(), 9)", id="killed"),
        pytest.param("while True: print('x' * 100_000)", id="endless-output"),
        pytest.param("import os; os.close(1); os.read(0, 1); os.read(0, 1)", id="silent"),
        pytest.param("import time; time.sleep(300)", id="asleep"),
    ],
)
async def test_a_decoder_that_breaks_is_a_failure_and_is_gone(tmp_path, monkeypatch, program):
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "broken.py"))
    (tmp_path / "broken.py").write_text(program)

    error = await refused(drawn("PNG", 2000, 1000), limits=DecoderLimits(seconds=2))

    assert "could not be decoded" in str(error)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]\n", id="other-json"),
        pytest.param(b'{"media_type": "image/png", "size": [5, 5], "turned": false}\nno picture', id="no-picture"),
        pytest.param(b'{"media_type": "image/png", "size": [5, 5], "turned": false}\n' + png(6, 6), id="other-size"),
        pytest.param(b'{"media_type": "text/html", "size": [6, 6], "turned": false}\n' + png(6, 6), id="other-kind"),
    ],
)
async def test_what_a_decoder_says_is_not_believed(tmp_path, monkeypatch, said):
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "liar.py"))
    (tmp_path / "liar.py").write_text(f"import os; os.write(1, {said!r})")

    assert (await refused(drawn("PNG", 2000, 1000))).code == "bad-image"


# What a hostile file would try once it has taken over the decoder.
TRIES = """
import json, os, socket, subprocess
def tries(wanted):
    def read(path): return open(path, "rb").read(4).decode()
    def connect(family, address):
        with socket.socket(family) as one: one.connect(address)
        return "came"
    def start(): return subprocess.run(["/bin/echo", "came"], capture_output=True, check=True).stdout.decode().strip()
    def datagram():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one: one.sendto(b"x", ("127.0.0.1", 9))
        return "came"
    def listed(): return "came" if os.listdir(os.path.dirname(wanted["secret"])) else ""
    def created(): os.close(os.open(wanted["secret"] + "-new", os.O_CREAT | os.O_WRONLY)); return "came"
    def removed(): os.rename(wanted["secret"] + "-old", wanted["secret"] + "-gone"); return "came"
    found = {}
    for name, act in {
        "read": lambda: read(wanted["secret"]), "list": listed, "create": created, "rename": removed, "start": start,
        "tcp": lambda: connect(socket.AF_INET, ("127.0.0.1", wanted["port"])), "udp": datagram,
        "unix": lambda: connect(socket.AF_UNIX, wanted["unix"]),
    }.items():
        try: found[name] = act()
        except OSError: found[name] = "denied"
    return found, []
"""
ATTEMPTED = ("read", "list", "create", "rename", "start", "tcp", "udp", "unix")


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lets a process close itself in.")
@pytest.mark.parametrize("task", ["picture", "pages"])
@pytest.mark.parametrize("confined", [True, False], ids=["confined", "as-it-would-be-without"])
async def test_a_decoder_opens_nothing_but_what_it_is_given(tmp_path, monkeypatch, task, confined):
    secret = tmp_path / "secret"
    secret.write_text("came from the file")
    (tmp_path / "secret-old").write_text("")
    open_up = "" if confined else "inside['confine'] = lambda *_: None\n"
    (tmp_path / "taken.py").write_text(
        f"{TRIES}\ninside = {{'__name__': 'decoding'}}\n"
        f"exec(compile(open({documents._PROGRAM!r}).read(), 'decoding', 'exec'), inside)\n"
        f"{open_up}inside['_TASKS'] = dict.fromkeys(inside['_TASKS'], tries)\ninside['main']()\n"
    )
    monkeypatch.setattr(documents, "_PROGRAM", str(tmp_path / "taken.py"))
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        wanted = {
            "media_type": "image/png",
            "secret": str(secret),
            "port": tcp.getsockname()[1],
            "unix": str(tmp_path / "s"),
        }
        where = documents.folders(["pypdfium2", "PIL"])
        assert where is not None
        said = json.loads((await documents.decode(task, b"", wanted, limits=DecoderLimits(), where=where)).said)

    # A kernel without Landlock still keeps the sockets away; it is said here which one was tested.
    by_landlock = ctypes.CDLL(None).syscall(444, None, 0, 1) > 0
    expected = dict.fromkeys(ATTEMPTED, "denied" if confined else "came")
    if not by_landlock:
        print("NOT TESTED HERE: this kernel has no Landlock, files stay open to decoders.")
        expected |= dict.fromkeys(("read", "list", "create", "rename", "start"), "came")
    assert said == expected
