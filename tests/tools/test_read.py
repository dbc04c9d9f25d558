"""Read, through the whole flow."""

import base64
import io
import os

import pytest
from PIL import Image

from ferrule import Engine


def image(kind: str, size: tuple[int, int] = (3, 2)) -> bytes:
    """A small image of the kind that Pillow calls so."""
    file = io.BytesIO()
    Image.new("RGB", size, "green").save(file, kind)
    return file.getvalue()


PNG = image("PNG")


@pytest.mark.contract("read.line-numbers")
async def test_lines_come_numbered_from_one(engine, root):
    (root / "a.txt").write_text("first line of content\nsecond\n\nfourth")

    reply = await engine.call("Read", path=str(root / "a.txt"))

    assert reply.as_dict() == {"status": "done", "result": "1: first line of content\n2: second\n3: \n4: fourth"}


@pytest.mark.contract("read.directory-listing")
async def test_a_folder_is_its_names_with_a_slash_after_folders(engine, root):
    (root / "subdir").mkdir()
    (root / "file.txt").write_text("")
    (root / "another-file.js").write_text("")

    reply = await engine.call("Read", path=str(root))

    assert reply.result == "another-file.js\nfile.txt\nsubdir/"


@pytest.mark.contract("read.images")
@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        pytest.param("a.png", PNG, "image/png", id="png"),
        pytest.param("a.jpg", image("JPEG"), "image/jpeg", id="jpeg"),
        pytest.param("a.gif", image("GIF"), "image/gif", id="gif"),
        pytest.param("a.webp", image("WEBP"), "image/webp", id="webp"),
        pytest.param("misnamed.txt", PNG, "image/png", id="by-content-not-by-name"),
    ],
)
async def test_images_come_as_base64_parts(engine, root, name, data, media_type):
    (root / name).write_bytes(data)

    reply = await engine.call("Read", path=name)

    assert reply.result == {"type": "image", "media_type": media_type, "data": base64.b64encode(data).decode()}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(PNG[:-20], "bad-image", id="cut-off"),
        pytest.param(PNG[:8] + bytes(30), "bad-image", id="magic-and-nothing-else"),
        pytest.param(image("PNG", (9000, 1)), "too-large-to-show", id="too-wide"),
        pytest.param(PNG + bytes(51_000_000), "too-large-to-show", id="too-many-bytes"),
    ],
)
async def test_an_image_that_would_harm_a_session_is_refused(engine, root, data, code):
    (root / "a.png").write_bytes(data)

    reply = await engine.call("Read", path="a.png")

    assert (reply.status, reply.error.error_code) == ("error", code)


async def test_a_large_image_is_scaled_down_and_the_note_says_so(engine, root):
    (root / "a.png").write_bytes(image("PNG", (3136, 10)))

    reply = await engine.call("Read", path="a.png")

    shown = Image.open(io.BytesIO(base64.b64decode(reply.result["data"])))
    assert shown.size == (1568, 5)
    assert reply.notes == ("The image was scaled from 3136 x 10 to 1568 x 5 pixels.",)


@pytest.mark.contract("read.error-not-found")
async def test_a_missing_file_suggests_its_neighbours(engine, root):
    (root / "settings.toml").write_text("")

    reply = await engine.call("Read", path="setings.toml")

    path = os.path.realpath(root / "setings.toml")
    assert reply.error.message.startswith(f"ENOENT: no such file or directory '{path}'")
    assert reply.error.message.endswith("settings.toml?")
    assert ".." not in reply.error.message.replace(path, "")
    assert reply.error.absolute_path == path


@pytest.mark.contract("read.error-secret-file", "read.blocks-secrets")
@pytest.mark.parametrize(
    "name", [".env", ".env.local", "credentials.json", "credentials.yml", "id_rsa", "key.pem", ".ENV"]
)
async def test_secret_files_are_refused_with_the_sentence_and_the_code(engine, root, name):
    (root / name).write_text("PASSWORD=1\n")

    reply = await engine.call("Read", path=name)

    told = reply.as_dict()
    (note,) = told.pop("notes")
    assert told == {
        "status": "error",
        "error": {
            "message": "Refusing to read env file. Reading secrets is not permitted.",
            "errorCode": "reading-secret-file",
            "absolutePath": os.path.realpath(root / name),
        },
    }
    assert note.startswith(name)
    assert "files.guarded_allow" in note


@pytest.mark.parametrize("name", [".env.example", ".env.sample", ".env.template"])
async def test_templates_of_secret_files_are_readable(engine, root, name):
    (root / name).write_text("PASSWORD=\n")

    reply = await engine.call("Read", path=name)

    assert reply.result == "1: PASSWORD="


async def test_a_link_to_a_secret_file_is_refused(engine, root):
    (root / ".env").write_text("PASSWORD=1\n")
    (root / "notes.txt").symlink_to(".env")

    reply = await engine.call("Read", path="notes.txt")

    assert reply.error.error_code == "reading-secret-file"


@pytest.mark.contract("read.error-binary")
async def test_a_binary_file_is_refused(engine, root):
    (root / "a.bin").write_bytes(bytes(range(256)) * 4)

    reply = await engine.call("Read", path="a.bin")

    assert reply.error.message == "File appears to be binary and cannot be displayed as text."


@pytest.mark.contract("read.error-too-large", "read.max-file-size")
@pytest.mark.parametrize(
    ("size", "status"),
    [pytest.param(65_536, "done", id="at-the-limit"), pytest.param(65_537, "error", id="one-more")],
)
async def test_a_file_over_64_KiB_needs_a_range(engine, root, size, status):
    (root / "a.txt").write_text(("x" * 1023 + "\n") * 64 + "y" * (size - 65_536))

    reply = await engine.call("Read", path="a.txt")

    assert reply.status == status
    if status == "error":
        assert reply.error.message.startswith("File content exceeds maximum allowed size (65536 bytes)")
        assert "read_range" in reply.error.message


async def test_a_large_file_is_read_by_range_and_the_answer_stays_in_bounds(engine, root):
    (root / "a.txt").write_text("".join(f"{number} {'x' * 95}\n" for number in range(1, 5001)))

    reply = await engine.call("Read", path="a.txt", read_range=[4000, 4999])

    assert reply.result.startswith("4000: 4000 x")
    assert len(reply.result.encode()) <= 65_536
    assert "These are lines 4000 to 4" in reply.notes[0]


async def test_a_huge_file_is_streamed(engine, root):
    with open(root / "huge.log", "w") as file:
        file.writelines(f"{number:06d} {'-' * 80}\n" for number in range(1, 120_001))

    reply = await engine.call("Read", path="huge.log", read_range=[100_000, 100_001])

    assert reply.result == f"100000: 100000 {'-' * 80}\n100001: 100001 {'-' * 80}"


@pytest.mark.contract("read.default-line-limit")
async def test_without_a_range_500_lines_come_back(engine, root):
    (root / "a.txt").write_text("x\n" * 600)

    reply = await engine.call("Read", path="a.txt")

    assert reply.result.count("\n") == 499
    assert reply.notes == ("These are lines 1 to 500 of 600. Give read_range for others.",)


@pytest.mark.contract("read.hard-line-cap")
async def test_a_range_never_gives_more_than_2000_lines(engine, root):
    (root / "a.txt").write_text("x\n" * 5000)

    reply = await engine.call("Read", path="a.txt", read_range=[11, 5000])

    lines = reply.result.split("\n")
    assert (len(lines), lines[0], lines[-1]) == (2000, "11: x", "2010: x")


@pytest.mark.contract("read.bytes-per-line")
@pytest.mark.parametrize(
    ("line", "kept"),
    [
        pytest.param("x" * 4096, "x" * 4096, id="at-the-limit"),
        pytest.param("x" * 5000, "x" * 4096, id="cut"),
        pytest.param("é" * 3000, "é" * 2048, id="whole-code-points"),
    ],
)
async def test_a_long_line_is_cut_after_4096_bytes(engine, root, line, kept):
    (root / "a.txt").write_text(line + "\nnext\n")

    reply = await engine.call("Read", path="a.txt")

    assert reply.result == f"1: {kept}\n2: next"


@pytest.mark.contract("read.range")
@pytest.mark.parametrize(
    ("span", "result"),
    [
        pytest.param([2, 3], "2: b\n3: c", id="inside"),
        pytest.param([0, 1], "1: a", id="from-before-the-start"),
        pytest.param([-5, 2], "1: a\n2: b", id="negative-start"),
        pytest.param([3, 99], "3: c\n4: d", id="past-the-end"),
        pytest.param([9, 12], "", id="wholly-past-the-end"),
        pytest.param([2.0, 2.0], "2: b", id="whole-floats"),
    ],
)
async def test_ranges(engine, root, span, result):
    (root / "a.txt").write_text("a\nb\nc\nd\n")

    reply = await engine.call("Read", path="a.txt", read_range=span)

    assert (reply.status, reply.result) == ("done", result)


@pytest.mark.parametrize(
    "span",
    [
        pytest.param([3, 1], id="backwards"),
        pytest.param([1], id="one"),
        pytest.param([1.5, 2], id="half"),
        pytest.param("x", id="a-word"),
        pytest.param(5, id="a-number"),
    ],
)
async def test_wrong_ranges_name_the_parameter(engine, root, span):
    (root / "a.txt").write_text("a\nb\n")

    reply = await engine.call("Read", path="a.txt", read_range=span)

    assert reply.status == "error"
    assert reply.error.message.startswith("read_range")
    assert reply.error.message.count("\n") == 0


@pytest.mark.contract("read.expands-home", "read.relative-paths")
@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "~/workspace/a.txt"])
async def test_paths_may_be_relative_or_start_at_home(engine, root, path, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (root / "sub").mkdir()
    (root / "a.txt").write_text("x\n")

    reply = await engine.call("Read", path=path)

    assert reply.result == "1: x"


async def test_a_pipe_does_not_hang(engine, root):
    os.mkfifo(root / "pipe")

    reply = await engine.call("Read", path="pipe")

    assert reply.status == "error"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/self/mem", "/etc/passwd", "../x"])
async def test_paths_outside_are_refused_by_naming_the_option(engine, path):
    reply = await engine.call("Read", path=path)

    assert reply.status == "rejected-by-user"
    assert "--add-dir" in reply.error.message


@pytest.mark.parametrize(
    "path", ["/proc/kmsg", "/proc/self/mem", "/proc/self/status", "/dev/zero", "/dev/full", "/dev"]
)
async def test_devices_and_proc_files_never_hang_even_when_allowed(tmp_path, path):
    async with Engine(tmp_path, add_dirs=["/proc", "/dev"]) as engine:
        reply = await engine.call("Read", path=path)

    assert reply.status in ("done", "error")


async def test_an_empty_file_is_noted(engine, root):
    (root / "a.txt").write_text("")

    reply = await engine.call("Read", path="a.txt")

    assert (reply.result, reply.notes) == ("", ("The file is empty.",))


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        pytest.param(b"a\r\nb\r\n", "1: a\n2: b", id="crlf"),
        pytest.param(b"a\rb\r", "1: a\n2: b", id="cr-only"),
        pytest.param(b"\xef\xbb\xbfa\n", "1: a", id="bom"),
        pytest.param("a\n".encode("utf-16"), "1: a", id="utf-16"),
        pytest.param(b"caf\xe9\n", "1: café", id="latin-1"),
        pytest.param("a\u2028b\x0bc\n".encode(), "1: a\u2028bc", id="other-line-breaks-do-not-count"),
        pytest.param(b"a\x1b[31mred\x1b[0m\n", "1: ared", id="escape-sequences-go"),
        pytest.param("x\u202ey\n".encode(), "1: xy", id="bidi-goes"),
    ],
)
async def test_every_text_reads_as_text(engine, root, raw, result):
    (root / "a.txt").write_bytes(raw)

    reply = await engine.call("Read", path="a.txt")

    assert reply.result == result
