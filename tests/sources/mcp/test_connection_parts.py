"""The parts of a connection: frames out of bytes, entries of lists, questions, and the rest of a server."""

import asyncio
import base64
import contextlib
import json
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.core.services import McpContent
from ferrule.sources.mcp.connection import Rest, fill_defaults
from ferrule.sources.mcp.results import contents, fault, pages
from ferrule.sources.mcp.transport import Frames, TooLong

LINES = st.one_of(
    st.binary(max_size=30).filter(lambda line: b"\n" not in line),
    st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3).map(lambda one: json.dumps(one).encode()),
    st.sampled_from([b"", b" ", b"\r", b"junk", b"{", b'  {"a": 1} \r', b"\xff\xfe", b"[1]"]),
)


@given(lines=st.lists(LINES, max_size=30), sizes=st.lists(st.integers(1, 20), min_size=1, max_size=20))
def test_frames_are_the_same_however_the_bytes_come(lines: list[bytes], sizes: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    frames = Frames(1000)
    found: list[bytes] = []
    at = step = 0
    while at < len(data):
        size = sizes[step % len(sizes)]
        found += frames.feed(data[at : at + size])
        at, step = at + size, step + 1
    stripped = [line.strip(b" \t\r") for line in lines]
    assert found == [line for line in stripped if line.startswith(b"{")]


@given(data=st.lists(st.binary(max_size=50), max_size=40), limit=st.integers(1, 60))
def test_frames_hold_no_more_than_their_limit(data: list[bytes], limit: int) -> None:
    frames = Frames(limit)
    for piece in data:
        with contextlib.suppress(TooLong):
            assert all(len(line) <= limit for line in frames.feed(piece))
        assert sum(map(len, frames._pieces)) <= limit


def test_junk_without_an_end_is_not_held() -> None:
    frames = Frames(100)
    for _ in range(1000):
        assert frames.feed(b"x{" * 100) == []
    assert frames.feed(b'\n{"a": 1}\n') == [b'{"a": 1}']
    assert frames.junk_lines == 1


SCHEMA = {"type": "object", "properties": {}}


@each_row(
    ("entry", "reason"),
    [
        pytest.param({"name": "a", "inputSchema": SCHEMA}, "", id="good"),
        pytest.param({"name": "a", "inputSchema": {}}, "", id="empty-schema"),
        pytest.param(None, "It is not an object.", id="null"),
        pytest.param({"name": 5}, "It has no name.", id="number-for-a-name"),
        pytest.param({"name": "  "}, "It has no name.", id="blank"),
        pytest.param({"name": "a" * 300}, "Its name has 300 characters", id="long-name"),
        pytest.param({"name": "a\u202eb", "inputSchema": SCHEMA}, "Its name has characters that", id="bidi"),
        pytest.param({"name": "a\nb", "inputSchema": SCHEMA}, "Its name has characters that", id="two-lines"),
        pytest.param({"name": "a"}, "Its schema is not an object.", id="no-schema"),
        pytest.param(
            {"name": "a", "inputSchema": SCHEMA, "outputSchema": 1}, "Its output schema is not an object.", id="output"
        ),
    ],
)
def test_an_entry_is_used_or_has_a_reason(entry: Any, reason: str) -> None:
    assert fault("tools/list", entry).startswith(reason)
    assert bool(fault("tools/list", entry)) == bool(reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(entry=JSON | st.fixed_dictionaries({}, optional={"name": JSON, "inputSchema": JSON, "description": JSON}))
def test_no_entry_breaks_the_judge(entry: Any) -> None:
    for method in ("tools/list", "prompts/list", "resources/list"):
        assert isinstance(fault(method, entry), str)


async def test_pages_end_where_the_entries_are_too_many() -> None:
    async def fetch(cursor: str | None) -> tuple[list[Any], str | None]:
        return list(range(4000)), str(int(cursor or 0) + 1)

    found, why = await pages(fetch)
    assert len(found) == 10_000
    assert why == "The server lists more than 10,000 of them."


@pytest.mark.parametrize(
    ("values", "content"),
    [
        pytest.param({}, {"age": 7}, id="defaults"),
        pytest.param({"age": 3, "name": "x", "else": 1}, {"age": 3, "name": "x"}, id="nothing-else"),
        pytest.param({"age": "x"}, None, id="misfit"),
        pytest.param({"name": None}, {"age": 7}, id="nothing-said"),
    ],
)
def test_an_answer_is_filled_with_defaults_and_must_fit(values: dict[str, Any], content: Any) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "default": 7}, "name": {"type": "string"}}}
    assert fill_defaults(schema, values) == content


def test_an_answer_without_what_is_required_does_not_fit() -> None:
    assert fill_defaults({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {}) is None


async def test_a_server_rests_longer_the_more_often_it_ends() -> None:
    now = asyncio.get_running_loop().time()
    rest = Rest((0.0, 10.0, 20.0))
    assert rest.words() == ""
    rest.count(now)
    assert rest.words() == ""
    rest.count(now)
    assert rest.words().startswith("has failed 2 times in a row and may be started again in ")
    for _ in range(5):
        rest.count(now)
    assert float(rest.words().split()[-2]) > 10
    rest.count(now - 1000)
    assert rest.words() == ""  # it had run for long


@each_row(
    ("media_type", "data", "words"),
    [
        pytest.param("text/plain", "grüße".encode(), "grüße", id="plain"),
        pytest.param("text/csv; charset=latin-1", "grüße".encode("latin-1"), "grüße", id="charset"),
        pytest.param('TEXT/html;charset="UTF-16"', "grüße".encode("utf-16"), "grüße", id="quoted-charset"),
        pytest.param("text/plain; charset=utf-8", b"\xef\xbb\xbfmarked", "marked", id="byte-order-mark"),
        pytest.param("application/json", b'{"a": 1}', '{"a": 1}', id="json"),
        pytest.param("application/ld+json", b"{}", "{}", id="kind-of-json"),
        pytest.param("image/svg+xml", b"<svg/>", "<svg/>", id="drawing"),
        pytest.param("application/x-yaml", b"a: 1", "a: 1", id="yaml"),
        pytest.param("text/plain", b"\xff\xfe\xfa", None, id="no-text-though-it-says-so"),
        pytest.param("text/plain", b"a\0b", None, id="with-a-zero"),
        pytest.param("text/plain; charset=base64", b"YQ==", None, id="no-charset"),
        pytest.param("application/gzip", b"plain", None, id="packed"),
        pytest.param("application/octet-stream", b"plain", None, id="anything"),
    ],
)
async def test_a_blob_that_is_text_can_be_read_and_others_are_named(
    media_type: str, data: bytes, words: str | None
) -> None:
    blob = types.BlobResourceContents(uri="mem://x", mime_type=media_type, blob=base64.b64encode(data).decode())

    (part,) = (await contents(types.ReadResourceResult(contents=[blob]))).parts

    assert isinstance(part, McpContent)
    named = f"[The resource mem://x of the type {media_type}, {len(data)} bytes.]"
    assert part.words == (named if words is None else words)
    assert part.block["resource"]["blob"] == blob.blob
