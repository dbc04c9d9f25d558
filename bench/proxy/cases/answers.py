"""What a model says, as every client of every API must read it behind every upstream."""

from bench.proxy import speak
from bench.proxy.cases.kit import Table, equal
from bench.proxy.stage import Scene
from bench.proxy.talk import NOW, TOOLS, Answer, Ask, Call, Counted, Think, Words, words
from bench.proxy.upstream import says, streams

TABLE = Table("answers")
_TOOLS = Ask(tools=TOOLS)
_LONG = tuple(f"{number} bottles on the wall, " for number in range(120))
_CODE = 'def f(x):\n\treturn {"a": [x, "\\n", \'\\\\\']}\r\n# \u2028 done\n'
_EMOJI = ("Grö", "ße: 日", "本 👩", "\u200d", "💻 — ", "e\u0301", " \U0001f1e9\U0001f1ea")
_ODD = (
    '{"path":"a b/\\u00fc \\"q\\".py","n":-3,'
    '"deep":{"list":[1,2.5,true,null,{"x":[]}],"s":"\\ud83d\\ude00 \\n\\t\\\\"}}'
)

TABLE.answer("one word", words("Hello"))
TABLE.answer("words in many pieces", words(*_LONG))
TABLE.answer("words in other scripts, pictographs in pieces", words(*_EMOJI))
TABLE.answer("code with quotes, tabs, line ends and separators", words(_CODE))
TABLE.answer("text that looks like an event", words("data: {}\n\nevent: error\n\n", "data: [DONE]\n\n"))
TABLE.answer("blanks and line ends at both ends", words("\n\n  said", " and done \n"))
TABLE.answer("nothing but a reason", Answer((), reason="end"), where=lambda _c, wire, _s: wire != "gemini")
TABLE.answer("stopped for its length", Answer((Words(("The story be",)),), reason="length"))
TABLE.answer("stopped at a stop word", Answer((Words(("one two",)),), reason="stopped"), Ask(stop=("three",)))
TABLE.answer("refused by a filter", Answer((Words(("I ",)),), reason="refused"))
TABLE.answer("cached tokens are counted", Answer((Words(("ok",)),), counted=Counted(50_000, 7, cached=48_000)))
TABLE.answer("many tokens", Answer((Words(("ok",)),), counted=Counted(1_234_567, 65_432)))

TABLE.answer("thinking, then words", Answer((Think(("I should ", "greet."), "c2lnbmF0dXJl"), Words(("Hello",)))))
TABLE.answer("long thinking in many pieces", Answer((Think(_LONG, "c2ln"), Words(("Done.",)))))
TABLE.answer("thinking in other scripts", Answer((Think(_EMOJI, "c2ln"), Words(("ok",)))))
TABLE.answer(
    "thinking, then a call",
    Answer((Think(("Look first.",), "c2ln"), Call("call_a", "Read", ('{"path":', '"a.py"}')))),
    _TOOLS,
)
TABLE.answer(
    "thinking, words and a call",
    Answer((Think(("Hm.",), "c2ln"), Words(("I look.",)), Call("call_a", "Read", ('{"path":"a.py"}',)))),
    _TOOLS,
)
TABLE.answer(
    "thinking cut by the length",
    Answer((Think(("So many ", "things"), "c2ln"),), reason="length"),
    where=lambda _c, wire, _s: wire != "gemini",
)

TABLE.answer("a whole call", Answer((Call("call_a", "Read", ('{"path":"a.py","n":3}',)),)), _TOOLS)
TABLE.answer("a call in single characters", Answer((Call("call_a", "Read", tuple('{"path":"a.py","n":3}')),)), _TOOLS)
TABLE.answer("words, then a call", Answer((Words(("I look.",)), Call("call_a", "Read", ('{"path":"a"}',)))), _TOOLS)
TABLE.answer("arguments with every kind of value", Answer((Call("call_a", "Read", (_ODD[:31], _ODD[31:])),)), _TOOLS)
TABLE.answer(
    "unicode split within its escapes",
    Answer((Call("call_a", "Read", ('{"path":"\\ud8', "3d\\u", "de00 gr\\u00f6", '\\u00dfe"}')),)),
    _TOOLS,
)
TABLE.answer("a call without arguments", Answer((Call("call_a", "Now", ("{}",)),)), Ask(tools=(NOW,)))
TABLE.answer(
    "a call whose arguments never come",
    Answer((Call("call_a", "Now", ()),)),
    Ask(tools=(NOW,)),
    # The makers' own hosts say {}, and are passed on as they are; imitators are among the odd streams.
    where=lambda client, wire, _s: client != wire or not wire.startswith("openai"),
)
TABLE.answer(
    "two calls one after the other",
    Answer((Call("call_a", "Read", ('{"path"', ':"a"}')), Call("call_b", "Read", ('{"path"', ':"b"}')))),
    _TOOLS,
)
TABLE.answer(
    "20 parallel calls",
    Answer(
        tuple(
            Call(f"call_{at}", ("Read", "Write", "Now")[at % 3], (f'{{"path":"f{at}.py",', f'"n":{at}}}'))
            for at in range(20)
        )
    ),
    _TOOLS,
)
TABLE.answer(
    "a call with 60,000 characters",
    Answer((Call("call_a", "Write", ('{"path":"big","content":"', *["ünïcode \\n" * 100] * 60, '"}')),)),
    _TOOLS,
)


@TABLE.case("the beginning of a stream counts the tokens of the input", clients=("anthropic",), modes=(True,))
async def _first(scene: Scene) -> None:
    scene.play(says(Answer((Words(("ok",)),), counted=Counted(1_200, 7, cached=1_000))))
    heard = await scene.ask()
    assert heard.first > 0, "message_start counts nothing"


@TABLE.case("words behind a call", wires=("anthropic", "openai-responses", "gemini"))
async def _words_behind(scene: Scene) -> None:
    said = (Words(("First. ",)), Call("call_a", "Read", ('{"path":"a"}',)), Words(("Then.",)))
    scene.play(says(Answer(said)))
    heard = await scene.ask(_TOOLS)
    equal((heard.text, heard.calls), ("First. Then.", [("Read", {"path": "a"})]), "said")


@TABLE.case("all events in one piece", modes=(True,))
async def _together(scene: Scene) -> None:
    answer = Answer((Think(("Hm.",), "c2ln"), Words(("Hel", "lo")), Call("call_a", "Read", ('{"path":"a"}',))))
    scene.play(streams(speak.stream(answer, scene.wire), together=True))
    heard = await scene.ask(_TOOLS)
    equal((heard.text, heard.calls), (answer.text, answer.calls), "said")


@TABLE.case("events torn into single bytes", modes=(True,))
async def _torn(scene: Scene) -> None:
    answer = Answer((Words(("Größe 日本 👩‍💻",)), Call("call_a", "Read", ('{"path":"ü"}',))))
    data = b"".join(speak.stream(answer, scene.wire))
    scene.play(streams([data[at : at + 3] for at in range(0, len(data), 3)]))
    heard = await scene.ask(_TOOLS)
    equal((heard.text, heard.calls), (answer.text, answer.calls), "said")


@TABLE.case("lines that end in CR LF, with comments", modes=(True,))
async def _lines(scene: Scene) -> None:
    answer = Answer((Words(("Hel", "lo")),))
    made = [b": keep-alive\r\n\r\n" + one.replace(b"\n", b"\r\n") for one in speak.stream(answer, scene.wire)]
    scene.play(streams(made))
    heard = await scene.ask()
    equal(heard.text, "Hello", "text")


@TABLE.case("the client's name for the model is told back", model="alias")
async def _name(scene: Scene) -> None:
    scene.play(says(words("ok")))
    heard = await scene.ask()
    equal(scene.last.get("model", "renamed"), "renamed", "the model that was asked for")
    if scene.wire == "gemini":
        assert "models/renamed:" in scene.got[-1].path
    if scene.client == scene.wire:
        return  # an answer of the same API is passed on as it is
    equal(heard.model, scene.name, "the model that answered")
