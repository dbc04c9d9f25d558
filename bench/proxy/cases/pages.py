"""What is asked beside answers: how many tokens a request has, and which models there are."""

from typing import Any

from bench.proxy import ask as asking
from bench.proxy.cases.kit import Table, equal
from bench.proxy.stage import Scene
from bench.proxy.talk import TOOLS, Ask, user
from bench.proxy.upstream import refuses

TABLE = Table("pages")
_LONG = Ask(turns=(user("The quick brown fox jumps over the lazy dog. " * 200),), tools=TOOLS, system="Be brief.")
_COUNTS = ("anthropic", "openai-responses", "gemini")


async def _count(scene: Scene, ask: Ask) -> int:
    """The tokens of a request, asked through the package of the client."""
    body = asking.body(ask, scene.client, scene.name, stream=False)
    clients = scene.clients
    few: dict[str, Any] = {"model": scene.name}
    if scene.client == "anthropic":
        body.pop("max_tokens")
        counted: Any = await clients.anthropic.messages.count_tokens(**few, messages=[], extra_body=body)
        return int(counted.input_tokens)
    if scene.client == "openai-responses":
        body = {name: body[name] for name in ("input", "instructions", "tools") if name in body}
        counted = await clients.openai.responses.input_tokens.count(**few, extra_body=body)
        return int(counted.input_tokens)
    from google.genai import types

    contents: Any = [types.Content.model_validate(one) for one in body["contents"]]
    counted = await clients.gemini.aio.models.count_tokens(**few, contents=contents)
    return int(counted.total_tokens or 0)


@TABLE.case("tokens are counted here where the host does not count", clients=_COUNTS, modes=(False,))
async def _here(scene: Scene) -> None:
    scene.play(refuses(404, "no such page"))
    few, many = await _count(scene, Ask()), await _count(scene, _LONG)
    assert 3 <= few <= 60, few
    assert 1_900 <= many <= 2_600, many
    equal(len(scene.got), 0, "answers that were asked for")


@TABLE.case("tokens are counted by the host that can", clients=_COUNTS, wires=_COUNTS, modes=(False,), variant="counts")
async def _there(scene: Scene) -> None:
    async def play(got: Any) -> None:
        await got.whole(200, {"totalTokens": 4321} if got.wire == "gemini" else {"input_tokens": 4321})

    scene.play(play)
    equal(await _count(scene, _LONG), 4321, "tokens")
    equal([got.wire for got in scene.upstream.others], [scene.wire], "who was asked")


@TABLE.case("the list of models", own=True, wires=("anthropic",), modes=(False,))
async def _models(scene: Scene) -> None:
    clients = scene.clients
    if scene.client == "anthropic":
        names = [one.id async for one in clients.anthropic.models.list()]
    elif scene.client == "gemini":
        names = [one.name or "" async for one in await clients.gemini.aio.models.list()]
        names = [name.removeprefix("models/") for name in names]
    else:
        names = [one.id async for one in clients.openai.models.list()]
    for alias in ("as-anthropic", "as-openai-chat", "as-openai-responses", "as-gemini"):
        assert alias in names, names
    equal(len(set(names)), len(names), "names that come twice")


@TABLE.case("one model by its name", own=True, wires=("anthropic",), modes=(False,))
async def _model(scene: Scene) -> None:
    clients = scene.clients
    if scene.client == "anthropic":
        found = (await clients.anthropic.models.retrieve("as-anthropic")).id
    elif scene.client == "gemini":
        found = ((await clients.gemini.aio.models.get(model="as-anthropic")).name or "").removeprefix("models/")
    else:
        found = (await clients.openai.models.retrieve("as-anthropic")).id
    equal(found, "as-anthropic", "name")


@TABLE.case(
    "a model that no rule knows is answered by the one that is set",
    own=True,
    modes=(True, False),
    wires=("openai-chat",),
)
async def _default(scene: Scene) -> None:
    from bench.proxy.talk import words
    from bench.proxy.upstream import says

    scene.play(says(words("ok")))
    name = "some-model-of-tomorrow"
    body = scene.body()
    if scene.client != "gemini":
        body["model"] = name
    heard = await scene.clients.ask(scene.client, name, body, stream=scene.stream)
    equal(heard.text, "ok", "text")
    equal(heard.headers["x-ferrule-model"], "vllm:m", "who answered")
