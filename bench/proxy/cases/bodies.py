"""What a client asks, as it must reach every upstream: the body is taken apart and compared with what was meant."""

import base64
import json
from collections.abc import Callable
from typing import Any

from bench.proxy import strict
from bench.proxy.cases.kit import Table, equal
from bench.proxy.seen import Seen, plain_base64
from bench.proxy.stage import Scene
from bench.proxy.talk import (
    IMAGE,
    IMAGE_URL,
    NOW,
    PDF,
    READ,
    TOOLS,
    Ask,
    Call,
    Part,
    call,
    calls,
    image,
    model,
    result,
    text,
    user,
    words,
)
from bench.proxy.upstream import says

TABLE = Table("bodies")
_STREAM: dict[str, Any] = {"modes": (True,)}
_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
_Where = Callable[[str, str, bool], bool]


def _reaches(name: str, ask: Ask, wanted: Callable[[Seen, Scene], None], **options: Any) -> None:
    """Enter a request, and what must be true of the body that the upstream receives."""

    async def act(scene: Scene) -> None:
        scene.play(says(words("ok")))
        heard = await scene.ask()
        assert heard.failed is None, heard.failed
        equal(heard.text, "ok", "text")
        equal(
            scene.got[-1].wants_stream, scene.stream if scene.client == scene.wire else scene.got[-1].wants_stream, ""
        )
        wanted(scene.seen(), scene)

    TABLE.case(name, ask=ask, **{**_STREAM, **options})(act)


def _turns(*wanted: tuple[str, list[Any]]) -> Callable[[Seen, Scene], None]:
    def check(seen: Seen, _: Scene) -> None:
        equal(seen.turns, list(wanted), "turns")

    return check


def _field(**wanted: Any) -> Callable[[Seen, Scene], None]:
    def check(seen: Seen, _: Scene) -> None:
        for name, value in wanted.items():
            equal(getattr(seen, name), value, name)

    return check


_HELLO = ("user", [("text", "Say hello.")])
_reaches("a prompt", Ask(), _turns(_HELLO), modes=(True, False))
_reaches("a system prompt", Ask(system="Be brief.\n\nAlways."), _field(system="Be brief.\n\nAlways.", turns=[_HELLO]))
_reaches(
    "a conversation of several turns",
    Ask(turns=(user("Hi."), model("Hello!"), user("How are you?", "And you?"))),
    _turns(
        ("user", [("text", "Hi.")]),
        ("assistant", [("text", "Hello!")]),
        ("user", [("text", "How are you?"), ("text", "And you?")]),
    ),
)
_reaches(
    "other scripts, control signs and halves of pairs",
    Ask(turns=(user('日本 👩‍💻 \u2028 \t \\ " é'),)),
    _turns(("user", [("text", '日本 👩‍💻 \u2028 \t \\ " é')])),
)


def _tools(seen: Seen, _: Scene) -> None:
    equal([(name, said) for name, said, _ in seen.tools], [(one.name, one.words) for one in TOOLS], "tools")
    for (_name, _said, schema), one in zip(seen.tools, TOOLS, strict=True):
        properties = {name: value["type"].lower() for name, value in schema.get("properties", {}).items()}
        equal(properties, {name: value["type"] for name, value in one.schema["properties"].items()}, "properties")
        equal(schema.get("required", []), one.schema.get("required", []), "required")


_reaches("tools with their schemas", Ask(tools=TOOLS), _tools, modes=(True, False))
_DEEP = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "state": {"type": "string", "enum": ["open", "done"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["state"],
            },
        }
    },
    "required": ["todos"],
}


def _deep(seen: Seen, _: Scene) -> None:
    schema = seen.tools[0][2]
    items = schema["properties"]["todos"]["items"]
    equal(items["properties"]["state"]["enum"], ["open", "done"], "enum")
    equal(items["properties"]["tags"]["items"]["type"].lower(), "string", "items")
    equal(items["required"], ["state"], "required")


_reaches("a schema with lists of objects and enums", Ask(tools=(READ.__class__("Todo", "x", _DEEP),)), _deep)

for _choice in ("auto", "any", "none", "Read"):
    _reaches(f"tool choice: {_choice}", Ask(tools=TOOLS, choice=_choice), _field(choice=_choice))


def _alone(seen: Seen, scene: Scene) -> None:
    if scene.wire != "gemini":  # which has no word for it
        equal(seen.parallel, False, "parallel calls")


_reaches(
    "one call at a time",
    Ask(tools=TOOLS, choice="auto", parallel=False),
    _alone,
    clients=("anthropic", "openai-chat", "openai-responses"),
)
_reaches(
    "one call at a time, of a tool by name",
    Ask(tools=TOOLS, choice="Read", parallel=False),
    _alone,
    clients=("anthropic", "openai-chat", "openai-responses"),
)

_CALLED = (
    user("Read a."),
    model("I look.", call("call_a", "Read", path="a", n=1)),
    user(result("call_a", "Read", "content of a")),
)


def _read_a(seen: Seen, _: Scene) -> None:
    wanted = [
        ("user", [("text", "Read a.")]),
        ("assistant", [("text", "I look."), ("call", 0, "Read", {"path": "a", "n": 1})]),
        ("user", [("result", 0, [("text", "content of a")], False)]),
    ]
    equal(seen.turns, wanted, "turns")


_reaches("a call and its result", Ask(turns=_CALLED, tools=TOOLS), _read_a, modes=(True, False))
_PAIR = (
    user("Read both."),
    model(call("call_a", "Read", path="a"), call("call_b", "Read", path="b"), call("call_c", "Now")),
    user(
        result("call_a", "Read", "A"),
        result("call_b", "Read", "B"),
        result("call_c", "Now", "12:00"),
        "Go on.",
    ),
)
_reaches(
    "parallel calls, their results, and words behind",
    Ask(turns=_PAIR, tools=TOOLS),
    _turns(
        ("user", [("text", "Read both.")]),
        (
            "assistant",
            [("call", 0, "Read", {"path": "a"}), ("call", 1, "Read", {"path": "b"}), ("call", 2, "Now", {})],
        ),
        (
            "user",
            [
                ("result", 0, [("text", "A")], False),
                ("result", 1, [("text", "B")], False),
                ("result", 2, [("text", "12:00")], False),
                ("text", "Go on."),
            ],
        ),
    ),
)
_SWAPPED = (
    _PAIR[0],
    model(call("call_a", "Read", path="a"), call("call_b", "Read", path="b")),
    user(result("call_b", "Read", "B"), result("call_a", "Read", "A")),
)


def _paired(seen: Seen, _: Scene) -> None:
    results = {part[1]: part[2][0][1] for _, parts in seen.turns for part in parts if part[0] == "result"}
    equal(results, {0: "A", 1: "B"}, "results by the call they answer")


_reaches("results in another order than the calls", Ask(turns=_SWAPPED, tools=TOOLS), _paired)
_FAILED = (*_CALLED[:2], user(result("call_a", "Read", "There is no a.", failed=True)))


def _failure(seen: Seen, scene: Scene) -> None:
    part = seen.turns[-1][1][0]
    assert "There is no a." in json.dumps(part), part
    if scene.wire in {"anthropic", "gemini"}:
        equal(part[3], True, "failed")


_reaches("a result that is a failure", Ask(turns=_FAILED, tools=TOOLS), _failure, clients=("anthropic", "gemini"))
_ODD_ID = "call|with:odd/ids+of=64.characters and a blank"


def _odd_ids(seen: Seen, scene: Scene) -> None:
    equal([part[0] for _, parts in seen.turns for part in parts], ["text", "call", "result"], "parts")
    if scene.wire == "anthropic":
        made = scene.last["messages"][1]["content"][0]["id"]
        assert made.replace("_", "").replace("-", "").isalnum(), f"an id that the API refuses: {made}"


_reaches(
    "ids that another API refuses",
    Ask(turns=(user("x"), model(call(_ODD_ID, "Now")), user(result(_ODD_ID, "Now", "12:00"))), tools=TOOLS),
    _odd_ids,
    clients=("openai-chat", "openai-responses", "gemini"),
)
_reaches(
    "a result without a word",
    Ask(turns=(user("x"), model(call("call_a", "Now")), user(result("call_a", "Now", text("")))), tools=TOOLS),
    lambda seen, _: equal([part[0] for part in seen.turns[-1][1]], ["result"], "parts"),
    clients=("anthropic", "openai-chat", "openai-responses"),
)

_reaches(
    "a picture",
    Ask(turns=(user("What is it?", image()),)),
    _turns(("user", [("text", "What is it?"), ("image", IMAGE)])),
)


def _address(seen: Seen, scene: Scene) -> None:
    assert IMAGE_URL in json.dumps(scene.last), "the address of the picture"
    equal(len(seen.turns[0][1]), 2, "parts")


_reaches("a picture at an address", Ask(turns=(user("What is it?", Part("image-url")),)), _address)


def _shown(seen: Seen, scene: Scene) -> None:
    sent = plain_base64(json.dumps(scene.last))
    equal(sent.count(IMAGE), 1, "times that the picture is sent")
    assert "a screen" in sent
    equal([part[1] for _, parts in seen.turns for part in parts if part[0] == "result"], [0], "results")


_reaches(
    "a picture in a result",
    Ask(
        turns=(user("Look."), model(call("call_a", "Now")), user(result("call_a", "Now", "a screen", image()))),
        tools=TOOLS,
    ),
    _shown,
    modes=(True, False),
)


def _pictures(seen: Seen, scene: Scene) -> None:
    equal(plain_base64(json.dumps(scene.last)).count(IMAGE), 2, "times that pictures are sent")
    equal([part[1] for _, parts in seen.turns for part in parts if part[0] == "result"], [0, 1], "results")


_reaches(
    "pictures in two results at once",
    Ask(
        turns=(
            user("Look."),
            model(call("call_a", "Now"), call("call_b", "Read", path="b")),
            user(result("call_a", "Now", "first", image()), result("call_b", "Read", "second", image())),
        ),
        tools=TOOLS,
    ),
    _pictures,
)


def _pdf(seen: Seen, _: Scene) -> None:
    equal(seen.turns[0][1], [("text", "Sum it up."), ("document", PDF)], "parts")


_reaches("a PDF", Ask(turns=(user("Sum it up.", Part("pdf")),)), _pdf)


def _document(_: Seen, scene: Scene) -> None:
    sent, notes = json.dumps(scene.last, ensure_ascii=False), "the notes of the day"
    packed = base64.b64encode(notes.encode()).decode()
    assert notes in sent or packed in sent, "the words of the document"


_reaches(
    "a document of plain text",
    Ask(turns=(user("Sum it up.", Part("document", "the notes of the day")),)),
    _document,
    clients=("anthropic",),
)

_reaches("the length of the answer", Ask(max_tokens=321), _field(max_tokens=321), modes=(True, False))


def _clamped(seen: Seen, _: Scene) -> None:
    assert seen.max_tokens is not None
    assert 1_000 < seen.max_tokens <= _MOST[_.wire], seen.max_tokens


_MOST = {"anthropic": 64_000, "openai-chat": 32_768, "openai-responses": 32_768, "gemini": 65_536}
_KNOWN = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "gemini": "gemini-2.5-pro",
}
for _wire, _model in _KNOWN.items():
    _reaches(
        f"an answer longer than the model gives: {_wire}",
        Ask(max_tokens=200_000),
        _clamped,
        wires=(_wire,),
        model=_model,
        modes=(True, False),
    )

_reaches("a temperature", Ask(temperature=0.25), _field(temperature=0.25))
_reaches("top_p", Ask(top_p=0.5), _field(top_p=0.5))
_reaches(
    "top_k",
    Ask(top_k=40),
    lambda seen, scene: equal(seen.top_k, 40 if scene.wire in {"anthropic", "gemini"} else None, "top_k"),
    clients=("anthropic", "gemini"),
)
_reaches(
    "stop words",
    Ask(stop=("END", "\n\n")),
    lambda seen, scene: equal(seen.stop, () if scene.wire == "openai-responses" else ("END", "\n\n"), "stop"),
    clients=("anthropic", "openai-chat", "gemini"),
)
_reaches(
    "a seed",
    Ask(seed=42),
    lambda seen, scene: equal(seen.seed, 42 if scene.wire in {"openai-chat", "gemini"} else None, "seed"),
    clients=("openai-chat", "gemini"),
)


def _form(seen: Seen, _: Scene) -> None:
    schema = seen.schema
    equal(
        {name: one["type"].lower() for name, one in schema["properties"].items()},
        {"name": "string", "n": "integer"},
        "",
    )
    equal(schema["required"], ["name", "n"], "required")


_reaches("an answer in JSON of a schema", Ask(schema=_SCHEMA), _form, modes=(True, False))


def _thinks(_: Seen, scene: Scene) -> None:
    body = scene.last
    wanted = {
        "anthropic": lambda: body["thinking"]["budget_tokens"] < body["max_tokens"],
        "openai-chat": lambda: body["reasoning_effort"] in {"low", "medium", "high"},
        "openai-responses": lambda: body["reasoning"]["effort"] in {"low", "medium", "high"},
        "gemini": lambda: 'inkingbudget": 16000' in json.dumps(body).lower().replace("_", ""),
    }
    assert wanted[scene.wire](), body


_reaches("how much to think", Ask(thinking=16_000, max_tokens=40_000), _thinks)


@TABLE.case("top_p, metadata and service tier of a Messages body", clients=("anthropic",), modes=(True,))
async def _metadata(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask(metadata={"user_id": "someone"}, service_tier="auto", top_p=0.9)
    assert heard.failed is None, heard.failed
    body = scene.last
    who = {"anthropic": lambda: body["metadata"]["user_id"], "gemini": lambda: "someone"}
    equal(who.get(scene.wire, lambda: body["user"])(), "someone", "the user")
    if scene.wire != "gemini":
        equal(body["service_tier"], "auto", "service tier")
    equal(scene.seen().top_p, 0.9, "top_p")


@TABLE.case("user, seed and penalties of a Chat body", clients=("openai-chat",), modes=(True,))
async def _chat_fields(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask(user="someone", frequency_penalty=0.5, presence_penalty=0.25, seed=3)
    assert heard.failed is None, heard.failed
    body = scene.last
    if scene.wire == "openai-chat":
        equal((body["frequency_penalty"], body["presence_penalty"], body["seed"]), (0.5, 0.25, 3), "fields")
    elif scene.wire == "gemini":
        config = body["generationConfig"]
        equal((config["frequencyPenalty"], config["presencePenalty"], config["seed"]), (0.5, 0.25, 3), "fields")
    else:
        dropped = scene.heard[-1].headers.get("x-ferrule-dropped", "")
        for name in ("frequency_penalty", "presence_penalty", "seed"):
            assert name not in body, f"{name} is none of this API's"
            assert name in dropped or not scene.is_ours, f"{name} was left out and not named: {dropped!r}"


@TABLE.case("what has no place is left out and named", own=True, clients=("anthropic",), modes=(True, False))
async def _dropped(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask(top_k=7, context_management={"edits": []}, stop_sequences=["END"])
    assert heard.failed is None, heard.failed
    dropped = heard.headers.get("x-ferrule-dropped", "")
    wanted = {
        "anthropic": (),
        "openai-chat": ("top_k", "context_management"),
        "openai-responses": ("top_k", "context_management", "stop_sequences"),
        "gemini": ("context_management",),
    }[scene.wire]
    for name in wanted:
        assert name in dropped, f"{name} was left out and not named: {dropped!r}"
        assert name not in scene.last
    if not wanted:
        equal(dropped, "", "left out")
        equal(scene.last["context_management"], {"edits": []}, "kept as it is")


@TABLE.case("the system's words in the middle", clients=("anthropic", "openai-chat", "openai-responses"), modes=(True,))
async def _middle(scene: Scene) -> None:
    scene.play(says(words("ok")))
    said = {
        "anthropic": lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
        "openai-chat": lambda role, text: {"role": role, "content": text},
        "openai-responses": lambda role, text: {"type": "message", "role": role, "content": text},
    }[scene.client]
    given = [said("user", "Hi."), said("assistant", "Hello."), said("system", "Be brief."), said("user", "Go on.")]
    own: dict[str, Any] = {"input" if scene.client == "openai-responses" else "messages": given}
    heard = await scene.ask(**own)
    assert heard.failed is None, heard.failed
    sent = json.dumps(scene.last)
    equal(sent.count("Be brief."), 1, "times that the system's words are sent")
    if scene.wire != scene.client:
        texts = [part[1] for _, parts in scene.seen().turns for part in parts]
        equal([one for one in texts if one != "Be brief."], ["Hi.", "Hello.", "Go on."], "turns")


@TABLE.case(
    "plain strings where parts may stand", clients=("anthropic", "openai-chat", "openai-responses"), modes=(True,)
)
async def _strings(scene: Scene) -> None:
    scene.play(says(words("ok")))
    if scene.client == "openai-responses":
        heard = await scene.ask(input="Say hello.")
    else:
        heard = await scene.ask(messages=[{"role": "user", "content": "Say hello."}])
    assert heard.failed is None, heard.failed
    equal(scene.seen().turns, [_HELLO], "turns")


@TABLE.case("a Claude Code prompt: the billing line goes to its own host alone", clients=("anthropic",), modes=(True,))
async def _billing(scene: Scene) -> None:
    scene.play(says(words("ok")))
    line = "x-anthropic-billing-header: cc_version=2.1.325.abc; cc_entrypoint=cli;"
    blocks = [{"type": "text", "text": line}, {"type": "text", "text": "You write code."}]
    heard = await scene.ask(system=blocks)
    assert heard.failed is None, heard.failed
    equal("billing-header" in json.dumps(scene.last), scene.wire == "anthropic", "the billing line is sent")
    assert "You write code." in json.dumps(scene.last)


@TABLE.case("Claude Code's tool results with a reminder behind", clients=("anthropic",), modes=(True,))
async def _reminder(scene: Scene) -> None:
    scene.play(says(calls(Call("call_b", "Now", ("{}",)))))
    turns = (*_CALLED[:2], user(result("call_a", "Read", "A"), "<system-reminder>Be brief.</system-reminder>"))
    heard = await scene.ask(Ask(turns=turns, tools=(READ, NOW)))
    equal(heard.calls, [("Now", {})], "calls")
    sent = scene.seen().turns[-1]
    equal([part[0] for part in sent[1]], ["result", "text"], "parts")


@TABLE.case("keys and tokens go only where they belong", modes=(True, False))
async def _keys(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask()
    assert heard.failed is None
    from bench.proxy.stage import KEY, TOKEN

    head = json.dumps(scene.got[-1].headers) + scene.got[-1].path
    assert TOKEN not in head, "the proxy's token went to the host"
    assert TOKEN.encode() not in scene.got[-1].raw
    assert KEY in head, "the host got no key"
    assert KEY.encode() not in heard.raw
    assert KEY not in json.dumps(heard.headers)


@TABLE.case(
    "a conversation that begins with the model is one that the host takes",
    ask=Ask(turns=(model("A walrus."), user("Remember it."))),
    own=True,
)
async def _model_first(scene: Scene) -> None:
    if scene.client == scene.wire:
        return  # passed on as it is
    scene.play(says(words("ok")))
    heard = await scene.ask()
    assert heard.failed is None, heard.failed
    said = strict.check(scene.last, scene.wire).turns
    equal(said[-2:], [("assistant", [("text", "A walrus.")]), ("user", [("text", "Remember it.")])], "turns")
