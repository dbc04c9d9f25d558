"""Prompts with pictures and files: what is taken, sent to every API, kept, and left of them in a summary."""

import base64
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from ferrule.agent import Began, Steered
from ferrule.agent.attachments import MOST_FILES, TEXT_BYTES, attach, prompt_parts, with_contents
from ferrule.agent.threads import as_text
from ferrule.core.content import Document, Image, Text
from ferrule.core.errors import ConfigError
from ferrule.engine import Engine
from ferrule.models.catalog import about
from ferrule.models.cues import Header, calls, said
from ferrule.models.recorder import Scripted
from ferrule.tools.threads.store import ThreadStore
from tests.models.conftest import Asker, asker, server
from tests.rows import each_row

from .stage import Stage
from .test_loop_over_http import DONE, EACH, plays, stream

__all__ = ["asker", "server"]


def png(width: int = 2, height: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PNG = png()
PDF = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n%%EOF\n"
B64 = base64.b64encode(PNG).decode()
PDF64 = base64.b64encode(PDF).decode()


@pytest.mark.parametrize(
    ("raw", "media_type", "expected"),
    [
        pytest.param(PNG, "", Image("image/png", B64, title="x"), id="a picture"),
        pytest.param(PNG, "image/jpeg", Image("image/png", B64, title="x"), id="a picture under another's name"),
        pytest.param(PDF, "application/pdf", Document("application/pdf", PDF64, title="x"), id="a PDF"),
        pytest.param(b"a,b\n", "text/csv", Document("text/plain", text="a,b\n", title="x"), id="a text"),
        pytest.param(b"\xef\xbb\xbfa", "", Document("text/plain", text="a", title="x"), id="a text with a mark"),
    ],
)
async def test_what_a_file_is_its_content_says(tmp_path, raw, media_type, expected):
    (tmp_path / "x").write_bytes(raw)

    assert await attach(raw, media_type=media_type, title="x") == expected
    assert await attach(tmp_path / "x", media_type=media_type) == expected


@each_row(
    ("raw", "media_type", "sentence"),
    [
        pytest.param(b"", "", "is empty", id="nothing"),
        pytest.param(b"\x00\x01\x02", "", "none of these: PNG, JPEG, GIF and WebP pictures, PDF files", id="bytes"),
        pytest.param(b"RIFF\0\0\0\0WAVE", "audio/wav", "of the type audio/wav and none of these", id="sound"),
        pytest.param(
            PDF, "image/png", "is said to be image/png, and its content is application/pdf", id="a wrong type"
        ),
        pytest.param(b"words", "image/png", "its content is text/plain", id="words as a picture"),
        pytest.param(PNG[:-20], "", "cut off", id="a cut picture"),
        pytest.param(b"a" * (TEXT_BYTES + 1), "", "Name its path in the prompt instead", id="a long text"),
        pytest.param(png(9_000, 1), "", "9000 x 1 pixels", id="a picture of too many pixels"),
    ],
)
async def test_what_cannot_be_attached_says_why_and_what_can(raw, media_type, sentence):
    with pytest.raises(ConfigError, match=sentence):
        await attach(raw, media_type=media_type)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(lambda path: None, "is not there", id="missing"),
        pytest.param(lambda path: path.mkdir(), "is no file", id="a folder"),
        pytest.param(os.mkfifo, "is no file", id="a pipe that nobody writes"),
    ],
)
async def test_a_path_that_is_no_file_is_refused(tmp_path, make, sentence):
    make(tmp_path / "x")
    with pytest.raises(ConfigError, match=sentence):
        await attach(tmp_path / "x")


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        pytest.param([Text("a")] + [Image("image/png", B64)] * (MOST_FILES + 1), "21 pictures and files", id="many"),
        pytest.param(
            [Document("application/pdf", base64.b64encode(PDF + bytes(8_000_000)).decode())] * 3, "24,000,", id="large"
        ),
        pytest.param([Image("image/png", "no base64!")], "no base64", id="no base64"),
        pytest.param([7], "cannot hold int", id="a number"),
        pytest.param(b"raw", "not bytes", id="bytes"),
    ],
)
async def test_a_prompt_is_limited(prompt, sentence):
    with pytest.raises(ConfigError, match=sentence):
        await prompt_parts(prompt)


async def test_an_agent_that_refused_a_prompt_takes_the_next(tmp_path):
    async with Stage(tmp_path, said("Yes.")) as stage:
        with pytest.raises(ConfigError, match="is not there"):
            await stage.run([tmp_path / "gone.png"])
        ended = await stage.run("Well?")

        assert (ended.text, stage.of(Began)[0].attached) == ("Yes.", ())


SENT = {
    "anthropic": [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF64},
            "title": "b.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "c.txt"},
    ],
    "openai-chat": [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{B64}"}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"}},
        {"type": "text", "text": "Document c.txt:\n\nwords"},
    ],
    "openai-responses": [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{B64}", "detail": "auto"},
        {"type": "input_file", "filename": "b.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"},
        {"type": "input_text", "text": "Document c.txt:\n\nwords"},
    ],
    "gemini": [
        {"text": "What is it?"},
        {"inlineData": {"mimeType": "image/png", "data": B64}},
        {"inlineData": {"mimeType": "application/pdf", "data": PDF64}},
        {"inlineData": {"mimeType": "text/plain", "data": base64.b64encode(b"words").decode()}},
    ],
}


def content(api: str, body: Any) -> Any:
    """The user's first message, without marks for caches."""
    if api == "gemini":
        return body["contents"][0]["parts"]
    messages = body["input"] if api == "openai-responses" else body["messages"]
    first = next(one for one in messages if one["role"] == "user")
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in first["content"]]


def files(tmp_path) -> list[Path]:
    given = [tmp_path / "a.png", tmp_path / "b.pdf", tmp_path / "c.txt"]
    for path, raw in zip(given, (PNG, PDF, b"words"), strict=True):
        path.write_bytes(raw)
    return given


@EACH
async def test_pictures_and_files_go_over_every_wire(tmp_path, asker: Asker, api):
    asker.server.play(plays(await stream(api.api, DONE)))
    async with Stage(tmp_path, model=asker.model(api)) as stage:
        await stage.run(["What is it?", *files(tmp_path)])

        assert content(api.api, json.loads(asker.server.asked[0].body)) == SENT[api.api]
        assert stage.of(Began)[0].attached == (
            f"Image a.png (image/png, {len(PNG)} bytes)",
            f"Document b.pdf (application/pdf, {len(PDF)} bytes)",
            "Document c.txt (text/plain, 5 bytes)",
        )


async def test_a_conversation_with_pictures_is_kept_and_goes_on_with_them(tmp_path):
    async with Stage(tmp_path, said("A square.")) as stage:
        await stage.run([Path(one) for one in files(tmp_path)])
        thread, before = stage.agent.thread, stage.agent.turns
    async with Stage(tmp_path, said("White."), resume=thread) as stage:
        await stage.run("Which colour?")
        after = stage.agent.turns
    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    kept = store.load(thread)
    store.close()

    assert after[: len(before)] == before
    assert kept is not None
    assert kept.about.title.startswith("Image a.png (image/png")
    assert f"(Image a.png (image/png, {len(PNG)} bytes))" in as_text(kept.items)
    assert "words" in as_text(kept.items)
    assert B64 not in as_text(kept.items)


async def test_a_summary_says_which_pictures_went_with_it(tmp_path):
    async with Stage(tmp_path, said("A square."), said("We looked at a square.")) as stage:
        await stage.run(["What is it?", *files(tmp_path)])
        full = stage.agent.context_tokens
        await stage.agent.compact()
        opening = stage.agent.turns[0].parts[0].text

        assert "You see no more what the user had attached: Image a.png (image/png" in opening
        assert "Document b.pdf" in opening
        assert full > 3_600  # a picture and a page


async def test_a_model_that_is_known_to_see_nothing_is_sent_no_picture(tmp_path):
    blind = Scripted(said("Yes."), header=Header(vision=False), workspace=str(tmp_path))
    async with Stage(tmp_path, model=blind) as stage:
        with pytest.raises(ConfigError, match=r"takes no pictures, so Image a\.png .* vision = true"):
            await stage.run(["What is it?", *files(tmp_path)])
        with pytest.raises(ConfigError, match="takes no files that are not text"):
            stage.agent.steer([Document("application/pdf", PDF64)])
        ended = await stage.run(["What is it?", tmp_path / "c.txt"])

        assert ended.text == "Yes."
        assert stage.model.asked[0].turns[-1].parts == (
            Text("What is it?"),
            Document("text/plain", text="words", title="c.txt"),
        )


async def test_another_model_that_sees_nothing_is_told_what_was_there(tmp_path):
    async with Stage(tmp_path, said("A square.")) as stage:
        await stage.run(["What is it?", *files(tmp_path)])
        blind = Scripted(said("I see."), header=Header(vision=False), workspace=str(tmp_path))
        stage.agent.use(blind)
        await stage.run("And now?")
        heard = [part for turn in blind.asked[0].turns for part in turn.parts]

        assert Text(f"[Image a.png (image/png, {len(PNG)} bytes), which you cannot see.]") in heard
        assert Text(f"[Document b.pdf (application/pdf, {len(PDF)} bytes), which you cannot read.]") in heard
        assert not any(isinstance(part, Image | Document) for part in heard)


async def test_a_picture_can_be_given_while_the_model_works(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    async with Stage(tmp_path, calls(("Read", {"file_path": "a.py"})), said("I see it.")) as stage:
        shown = await prompt_parts([Image("image/png", B64, title="a.png")])
        stage.on = lambda event: stage.agent.steer((Text("Look."), *shown)) if isinstance(event, Began) else None
        await stage.run("Begin.")

        assert stage.of(Steered)[0].attached == (f"Image a.png (image/png, {len(PNG)} bytes)",)
        assert any(Image("image/png", B64, title="a.png") in turn.parts for turn in stage.agent.turns)


def test_models_are_known_by_what_they_see():
    assert [about(one, {}).vision for one in ("claude-opus-5-5", "gpt-oss-20b", "o3-mini", "o3", "unheard-of")] == [
        True,
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("Look at @a.png.", ["a.png"], id="at the end of a sentence"),
        pytest.param('@"my shot.png" and @a.png, and @a.png', ["my shot.png", "a.png"], id="in quotes, and twice"),
        pytest.param("Read @b.pdf", ["b.pdf"], id="a PDF"),
        pytest.param("Read @c.txt, ask me@a.png or @gone.png", [], id="words"),
        pytest.param("See @../out.png and @link.png", [], id="what lies outside"),
    ],
)
async def test_pictures_that_a_line_of_the_chat_mentions_are_shown(tmp_path, text, names):
    folder = tmp_path / "w"
    folder.mkdir()
    files(folder)
    for path in (folder / "my shot.png", tmp_path / "out.png"):
        path.write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    async with Engine(folder, dialect="claude") as engine:
        prompt = (await with_contents(text, engine, Scripted())).prompt
    shown = [part.title for part in prompt if isinstance(part, Image | Document)]

    assert shown == names
