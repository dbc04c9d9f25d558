"""The engine for programs that do not await."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferrule import Call, ConfigError, SyncEngine

LIST = Call("list_directory", {"path": "."})


def test_calls_are_made_without_awaiting(tmp_path):
    (tmp_path / "a.txt").write_text("words\n")
    with SyncEngine(tmp_path, dialect="amp", ask=lambda _: True) as engine:
        read = engine.call("Read", path="a.txt")
        written = engine.call("create_file", path="b.txt", content="x")
        engine.undo()

        assert "words" in read.text
        assert written.ok
        assert "Read" in {one["name"] for one in engine.definitions()}
        assert engine.decide(LIST).verdict == "allow"
        assert engine.do(lambda inner: inner.session_id).startswith("T-")
        assert len(engine.do(lambda inner: inner.history())[0]) == 0
    assert not (tmp_path / "b.txt").exists()


async def test_it_works_beside_a_running_loop(tmp_path):
    with SyncEngine(tmp_path, dialect="amp") as engine:
        assert engine.run([LIST])[0].ok


def test_several_threads_share_one_engine(tmp_path):
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"text {number}\n")
    with SyncEngine(tmp_path, dialect="amp") as engine, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: engine.call("Read", path=f"{number}.txt").text, range(8)))

    assert [f"text {number}" in text for number, text in enumerate(replies)] == [True] * 8


def test_closing_ends_calls_that_other_threads_wait_for(tmp_path):
    begun = threading.Event()
    engine = SyncEngine(tmp_path, dialect="amp", ask=lambda _: True, on_event=lambda event: begun.set())
    with engine, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.call, "Bash", cmd="sleep 600")
        assert begun.wait(30)
        engine.close()

        assert waiting.result(30).status == "cancelled"


def test_it_says_when_it_is_not_open_and_opens_again(tmp_path):
    engine = SyncEngine(tmp_path, dialect="amp")
    for _ in range(2):
        with pytest.raises(ConfigError, match="is not open: use it as `with SyncEngine"):
            engine.run([LIST])
        with engine, engine:
            assert engine.run([LIST])[0].ok
    engine.close()


def test_what_cannot_open_says_why_at_once(tmp_path):
    with pytest.raises(ConfigError, match="no-such"):
        SyncEngine(tmp_path / "no-such")


def test_a_callback_that_calls_back_gets_an_answer(tmp_path):
    heard: list[str] = []

    def ask(_):
        try:
            engine.run([LIST])
        except ConfigError as error:
            heard.append(str(error))
        return False

    with SyncEngine(tmp_path, dialect="amp", ask=ask) as engine:
        engine.call("create_file", path="b.txt", content="x")

    assert "cannot wait for itself" in heard[0]


def test_a_program_that_forgets_to_close_it_ends(tmp_path):
    program = "import sys\nfrom ferrule import SyncEngine\nprint(SyncEngine(sys.argv[1]).__enter__().call('x').status)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "error\n"
