"""What hosts say when they refuse, and what whoever asked hears of it: the kind, the advice, and never a key."""

import asyncio
import json

import pytest

from ferrule.models import LIMIT_CHARS, ModelError, clean_text
from ferrule.models.http import HttpModel
from ferrule.settings import ModelHost, Models

from .conftest import KEY, question
from .server import Exchange
from .spoken import ANTHROPIC, CHAT, GEMINI, RESPONSES


def anthropic(kind: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def gemini(code: int, status: str, message: str, *details: object) -> dict[str, object]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


ASK = ["POST"]
ASK_AND_LIST = ["POST", "GET"]
REFUSALS = [
    *(
        pytest.param(CHAT, status, openai(words), "bad", "cannot call tools", id=name)
        for name, status, words in (
            ("ollama-tools", 400, "registry.ollama.ai/library/gemma:2b does not support tools"),
            ("openrouter-tools", 404, "No endpoints found that support tool use. Try another model."),
            ("vllm-tools", 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
            ("llamacpp-tools", 500, "tools param requires --jinja flag"),
        )
    ),
    pytest.param(
        ANTHROPIC,
        401,
        anthropic("authentication_error", "invalid x-api-key"),
        "wrong-key",
        "ANTHROPIC_API_KEY",
        id="anthropic-key",
    ),
    pytest.param(
        ANTHROPIC,
        403,
        anthropic("permission_error", "no access"),
        "wrong-key",
        "ANTHROPIC_API_KEY",
        id="anthropic-permission",
    ),
    pytest.param(
        ANTHROPIC,
        404,
        anthropic("not_found_error", "model: claude-opus-4-5"),
        "no-model",
        "ferrule models list anthropic",
        id="anthropic-model",
    ),
    pytest.param(
        ANTHROPIC,
        400,
        anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "too-long",
        "/compact",
        id="anthropic-long",
    ),
    pytest.param(
        ANTHROPIC,
        400,
        anthropic(
            "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000"
        ),
        "too-long",
        "/compact",
        id="anthropic-long-answer",
    ),
    pytest.param(
        ANTHROPIC,
        413,
        anthropic("request_too_large", "Request exceeds the maximum size"),
        "too-long",
        "/compact",
        id="anthropic-large",
    ),
    pytest.param(
        ANTHROPIC,
        400,
        anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
        "limit",
        "billing",
        id="anthropic-money",
    ),
    pytest.param(
        ANTHROPIC,
        400,
        anthropic("invalid_request_error", "tools.0: bad schema"),
        "bad",
        "tools.0: bad schema",
        id="anthropic-bad",
    ),
    pytest.param(
        CHAT,
        401,
        openai("Incorrect API key provided: sk-proj-abcdefghijkl123456.", "invalid_api_key"),
        "wrong-key",
        "DEEPSEEK_API_KEY",
        id="chat-key",
    ),
    pytest.param(
        CHAT,
        404,
        openai("The model `x` does not exist", "model_not_found"),
        "no-model",
        "ferrule models list deepseek",
        id="chat-model",
    ),
    pytest.param(
        CHAT,
        400,
        openai("deepseek-reasoner is not a valid model ID", None),
        "no-model",
        "ferrule models list",
        id="openrouter-model",
    ),
    pytest.param(
        CHAT,
        400,
        openai("This model's maximum context length is 128000 tokens.", "context_length_exceeded"),
        "too-long",
        "/compact",
        id="chat-long",
    ),
    pytest.param(
        CHAT,
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        "too-long",
        "/compact",
        id="llamacpp-long",
    ),
    pytest.param(
        CHAT,
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        "too-long",
        "/compact",
        id="vllm-long",
    ),
    pytest.param(CHAT, 404, {"error": "model 'qwen9' not found"}, "no-model", "ferrule models list", id="ollama-model"),
    pytest.param(
        CHAT,
        429,
        openai("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
        "limit",
        "billing",
        id="chat-quota",
    ),
    pytest.param(CHAT, 402, openai("Insufficient credits"), "limit", "billing", id="openrouter-money"),
    pytest.param(CHAT, 422, {"detail": "field required"}, "bad", "field required", id="chat-detail"),
    pytest.param(CHAT, 404, "404 page not found", "bad", "models.hosts.deepseek.url", id="wrong-address"),
    pytest.param(
        RESPONSES,
        400,
        openai("Your input exceeds the context window of this model.", "context_length_exceeded"),
        "too-long",
        "/compact",
        id="responses-long",
    ),
    pytest.param(
        RESPONSES,
        400,
        openai("The requested model 'gpt-9' does not exist.", "model_not_found"),
        "no-model",
        "ferrule models list openai",
        id="responses-model",
    ),
    pytest.param(
        GEMINI,
        400,
        gemini(
            400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", {"reason": "API_KEY_INVALID"}
        ),
        "wrong-key",
        "GEMINI_API_KEY",
        id="gemini-key",
    ),
    pytest.param(
        GEMINI,
        400,
        gemini(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "too-long",
        "/compact",
        id="gemini-long",
    ),
    pytest.param(
        GEMINI,
        404,
        gemini(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta"),
        "no-model",
        "ferrule models list gemini",
        id="gemini-model",
    ),
    pytest.param(
        GEMINI,
        429,
        gemini(
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded",
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]},
        ),
        "limit",
        "billing",
        id="gemini-day",
    ),
    pytest.param(
        ANTHROPIC,
        403,
        "<html><body>Blocked by ACME</body></html>",
        "network",
        "look at the proxy",
        id="page-of-a-proxy",
    ),
    pytest.param(CHAT, 400, {"code": "x", "error": "Incorrect API key provided: xa***"}, "wrong-key", "KEY", id="xai"),
    pytest.param(
        CHAT,
        429,
        openai("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000."),
        "too-long",
        "/compact",
        id="more-than-the-rate",
    ),
    *(
        pytest.param(spoken, 400, openai(words), "bad", "models.max_tokens", id=name)
        for spoken, name, words in (
            (ANTHROPIC, "answer-anthropic", "max_tokens: 64001 > 64000, which is the maximum allowed number of output"),
            (CHAT, "answer-vllm", "'max_tokens' is too large: 8192. This model's maximum context length is 4096"),
            (CHAT, "answer-groq", "`max_tokens` must be less than or equal to `8192`"),
            (CHAT, "answer-deepseek", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        )
    ),
    pytest.param(ANTHROPIC, 400, [1, 2], "bad", "did not take", id="no object"),
    pytest.param(ANTHROPIC, 400, "\x1b[31mred\x07 \u202eevil", "bad", "red evil", id="words-that-steer"),
]


@pytest.mark.parametrize(("spoken", "status", "body", "kind", "words"), REFUSALS)
async def test_a_refusal_says_what_to_do_and_is_not_tried_again(server, asker, spoken, status, body, kind, words):
    async def refuse(exchange: Exchange) -> None:
        await exchange.whole(status, body if isinstance(body, str) else json.dumps(body))

    server.play(refuse)
    with pytest.raises(ModelError) as caught:
        await asker.said(asker.model(spoken))

    message = str(caught.value)
    assert caught.value.kind == kind
    assert words in message
    assert str(status) in message
    assert message.isprintable()
    assert "sk-" not in message
    assert [one.method for one in server.asked] == (ASK_AND_LIST if kind == "no-model" else ASK)
    assert asker.sleeps.seconds == []


async def test_a_model_that_is_not_there_names_those_that_are_like_it(server, asker):
    async def refuse(exchange: Exchange) -> None:
        if exchange.method == "GET":
            await exchange.whole(200, {"data": [{"id": "claude-opus-4-5"}, {"id": "claude-haiku-4-5"}, {"id": "x"}]})
        else:
            await exchange.whole(404, anthropic("not_found_error", "model: claude-opus-45"))

    server.play(refuse)
    with pytest.raises(ModelError, match=r"Did you mean claude-opus-4-5") as caught:
        await asker.said(asker.model(ANTHROPIC, model="claude-opus-45"))

    assert caught.value.kind == "no-model"


async def test_a_huge_refusal_is_not_read_to_its_end(server, asker):
    cut = asyncio.Event()

    async def refuse(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 400 X\r\ncontent-length: 999999999\r\n\r\n")
        try:
            while True:
                await exchange.send(b"x" * 65536)
        except ConnectionError:
            cut.set()
            raise

    server.play(refuse)
    async with asyncio.timeout(20):
        with pytest.raises(ModelError) as caught:
            await asker.said(asker.model(ANTHROPIC))
        await cut.wait()

    assert len(str(caught.value)) < LIMIT_CHARS + 200


@pytest.mark.parametrize("where", ["message", "header", "page"])
async def test_a_key_that_a_host_repeats_is_not_shown(server, asker, where):
    async def refuse(exchange: Exchange) -> None:
        if where == "message":
            await exchange.whole(400, anthropic("invalid_request_error", f"bad header x-api-key: {KEY}"))
        elif where == "header":
            await exchange.whole(307, KEY, location=f"https://x/?key={KEY}")
        else:
            await exchange.whole(400, f"Bearer {KEY} {KEY}", "text/plain")

    server.play(refuse)
    model = asker.model(ANTHROPIC)
    with pytest.raises(ModelError) as caught:
        await asker.said(model)

    shown = f"{caught.value} {caught.value!r} {model!r} {vars(model)['_host']!r} {caught.value.__context__!r}"
    assert KEY not in shown


async def test_a_host_that_is_not_there_is_named_with_its_address(asker):
    model = asker.model(ANTHROPIC, url="http://127.0.0.1:9", retries=1)

    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9.*[Cc]onnect") as caught:
        await asker.said(model)

    assert caught.value.kind == "network"
    assert asker.sleeps.seconds == []


def test_a_header_of_the_settings_is_a_secret_too():
    from ferrule.models.catalog import ModelProfile
    from ferrule.models.hosts import find_host

    models = Models(hosts={"mine": ModelHost(url="https://x", headers={"Authorization": "Basic ${WORD}"})})
    host = find_host("mine", models, {"WORD": "hunter2hunter2"})
    model = HttpModel(host, "m", ModelProfile("m"), models)

    assert host.headers == {"Authorization": "Basic hunter2hunter2"}
    assert clean_text("it was Basic hunter2hunter2", host.secrets) == "it was [key]"
    assert "hunter2" not in f"{model!r}{host!r}"
    assert model.ask(question()) is not None


CLEANED = [
    pytest.param("a\nb\tc", "a b c", id="one line"),
    pytest.param("\x1b]0;title\x07hi", "]0;title hi", id="escapes"),
    pytest.param("x" * 900, "x" * (LIMIT_CHARS - 1) + "…", id="long"),
    pytest.param("key sk-proj-abcdefghijklmnop used", "key [key] used", id="a key by its looks"),
    pytest.param("half \ud800 pair", "half pair", id="half a pair"),
]


@pytest.mark.parametrize(("text", "wanted"), CLEANED)
def test_foreign_words_are_cleaned(text, wanted):
    assert clean_text(text) == wanted
