"""A reply in parts: words, pictures and files; and never the data of one as text."""

import pytest

from ferrule.core.call import Failure, Reply, result_text
from ferrule.core.content import Document, Image, Text

PICTURE = {"type": "image", "media_type": "image/png", "data": "AAAA"}
PDF = {"type": "document", "media_type": "application/pdf", "data": "AAAAAA=="}


@pytest.mark.parametrize(
    ("result", "content", "text"),
    [
        pytest.param("words", (Text("words"),), "words", id="words"),
        pytest.param(PICTURE, (Image("image/png", "AAAA"),), "[Image (image/png, 3 bytes)]", id="a picture"),
        pytest.param(
            [{"type": "text", "text": "See:"}, PICTURE, PDF],
            (Text("See:"), Image("image/png", "AAAA"), Document("application/pdf", "AAAAAA==")),
            "See:\n[Image (image/png, 3 bytes)]\n[Document (application/pdf, 4 bytes)]",
            id="several",
        ),
        pytest.param({"a": 1}, (Text('{"a":1}'),), '{"a":1}', id="a value"),
        pytest.param([1, PICTURE], (Text(result_text([1, PICTURE])),), None, id="a list"),
        pytest.param({"type": "image", "data": 7}, (Text('{"type":"image","data":7}'),), None, id="no picture"),
    ],
)
def test_a_result_is_told_in_parts(result, content, text):
    reply = Reply(id="1", name="Read", status="done", result=result)

    assert reply.content == content
    assert text is None or reply.text == text


def test_a_failure_is_its_sentence():
    reply = Reply(id="1", name="Read", status="error", error=Failure("It is not there."))

    assert (reply.content, reply.text) == ((Text("It is not there."),), "It is not there.")
