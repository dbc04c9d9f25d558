"""Tools that a program gives as records: the pair of `spec` and `fn`, and what modules call `TOOL`."""

import pytest

from ferrule import Call, ConfigError, Engine

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def pair(name, fn, **more):
    spec = {"name": name, "description": "Count it.", "inputSchema": SCHEMA, "source": "builtin", **more}
    return {"spec": spec, "fn": fn}


def opened(tmp_path, *tools):
    return Engine(tmp_path, tools=tools, state=tmp_path / "state", ask=lambda _: True)


async def test_a_spec_and_its_function_are_a_tool(tmp_path):
    count = pair("count", lambda args, env: {"status": "done", "result": len(args["path"])})
    async with opened(tmp_path, count) as engine:
        reply = await engine.call("count", path="four")
        wrong = await engine.call("count", other=1)

    assert (reply.result, wrong.ok) == (4, False)


async def test_a_function_of_the_arguments_alone_will_do_and_the_schema_may_have_its_other_name(tmp_path):
    async def count(args):
        return len(args["path"])

    spec = {"name": "later", "description": "Count it.", "input_schema": SCHEMA}
    tools = (pair("count", lambda args: len(args["path"])), {"spec": spec, "fn": count})
    async with opened(tmp_path, *tools) as engine:
        replies = [await engine.call(name, path="four") for name in ("count", "later")]

    assert [reply.result for reply in replies] == [4, 4]


async def test_its_own_error_is_an_error_and_may_come_later(tmp_path):
    async def fail(args, env):
        return {"status": "error", "error": {"message": f"no {args['path']}"}}

    async with opened(tmp_path, pair("fail", fail)) as engine:
        reply = await engine.call("fail", path="x")

    assert not reply.ok
    assert "no x" in reply.text


async def test_its_profile_says_what_it_touches_and_its_arguments_can_be_prepared(tmp_path):
    keys = {"serial": False, "resourceKeys": lambda args: [{"key": args["path"], "mode": "write"}]}
    record = pair("write_it", lambda args, env: args["path"], executionProfile=keys)
    record["preprocessArgs"] = lambda args, env: {"path": args["path"].upper()}
    async with opened(tmp_path, record) as engine:
        outside = await engine.decide(Call("write_it", {"path": "../outside"}))
        reply = await engine.call("write_it", path="inside")

    assert "outside" in outside.why
    assert reply.result == "INSIDE"


async def test_the_record_of_a_module_is_a_tool_too(tmp_path):
    record = {"name": "say", "description": "Say it.", "input_schema": SCHEMA, "execute": lambda given: given["path"]}
    async with opened(tmp_path, record) as engine:
        assert (await engine.call("say", path="words")).text == "words"


@pytest.mark.parametrize("record", [{"spec": {"name": "x"}, "fn": None}, {"spec": {}, "fn": print}, {}])
def test_a_record_that_is_none_is_refused_at_once(tmp_path, record):
    with pytest.raises(ConfigError, match="no model could call"):
        opened(tmp_path, record)
