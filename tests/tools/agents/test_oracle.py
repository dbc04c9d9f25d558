"""oracle: a subagent that looks, thinks and answers, and can do nothing else."""

import pytest
from tests.tools.agents.acting import alone, done, nobody, opened


async def test_it_is_given_the_task_the_context_and_the_names_of_files(tmp_path):
    (tmp_path / "a.py").write_text("secret_of_a = 1\n")

    async def think(job, use):
        assert (await use("Read", path="a.py")).ok
        return "Do this."

    engine, acting = opened(tmp_path, think)
    async with engine:
        reply = await engine.call("oracle", task="Why does it fail?", context="It is slow.", files=["a.py", "b.py"])
    (job,) = acting.jobs

    assert reply.result == "Do this."
    assert job.prompt == (
        "Why does it fail?\n\nWhat is known already:\n\nIt is slow.\n\n"
        "Files to begin with; read them yourself:\n\n- a.py\n- b.py"
    )
    assert "secret_of_a" not in job.prompt
    assert (job.agent.name, job.agent.role) == ("oracle", "oracle")
    assert {"read", "grep", "glob", "web_search", "read_web_page"} <= set(job.agent.tools)


async def test_the_task_alone_is_the_prompt(tmp_path):
    async def think(job, use):
        return "Yes."

    engine, acting = opened(tmp_path, think)
    async with engine:
        await engine.call("oracle", task="Is it right?")

    assert acting.jobs[0].prompt == "Is it right?"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("edit_file", {"path": "a.py", "old_str": "1", "new_str": "2"}),
        ("create_file", {"path": "b.py", "content": "x"}),
        ("Bash", {"cmd": "touch b.py"}),
        ("delete_file", {"path": "a.py"}),
        ("oracle", {"task": "again"}),
        ("kraken", {"task": "x", "files": ["a.py"]}),
    ],
)
async def test_it_can_change_nothing(tmp_path, name, values):
    (tmp_path / "a.py").write_text("1\n")
    refused = []

    async def reach(job, use):
        refused.append(await use(name, **values))
        return "no"

    engine, _ = opened(tmp_path, reach, ask=lambda _: True)
    async with engine:
        await engine.call("oracle", task="Try.")

    assert refused[0].status != "done"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.py": "1\n"}


async def test_a_secret_that_is_named_as_a_file_stays_one(tmp_path):
    (tmp_path / ".env").write_text("KEY=hidden\n")
    seen = []

    async def look(job, use):
        seen.append((await use("Read", path=".env")).text)
        return "I could not read it."

    engine, acting = opened(tmp_path, look)
    async with engine:
        await engine.call("oracle", task="What is in it?", files=[".env"])

    assert "hidden" not in seen[0] + acting.jobs[0].prompt


@pytest.mark.parametrize(
    ("end", "says"),
    [
        pytest.param(done("", why="The model refused")._replace(status="failed"), "The model refused.", id="failed"),
        pytest.param(done(""), "ended without an answer", id="nothing"),
    ],
)
async def test_an_answer_that_never_came_is_a_failure(tmp_path, end, says):
    async def fail(job, use):
        return end

    engine, _ = opened(tmp_path, fail)
    async with engine:
        reply = await engine.call("oracle", task="Think.")

    assert reply.status == "error"
    assert says in reply.error.message


@pytest.mark.parametrize(
    "values",
    [{"task": " "}, {"task": "x", "files": ["a"] * 101}],
    ids=["no-task", "too-many-files"],
)
async def test_what_cannot_be_asked_is_refused_before_anybody_is(tmp_path, values):
    engine, _ = opened(tmp_path, nobody)
    async with engine:
        reply = await engine.call("oracle", **values)

    assert reply.error.error_code == "bad-arguments"


async def test_without_a_model_it_says_so(tmp_path):
    async with alone(tmp_path) as engine:
        reply = await engine.call("oracle", task="Think.")

    assert reply.error.error_code == "no-model"
