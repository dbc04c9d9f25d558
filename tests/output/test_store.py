"""The store keeps full outputs by id, forgets the oldest, and reads pages of them."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.output.store import (
    ALPHABET,
    Aged,
    OutputEntry,
    Store,
    Stored,
    StoreError,
    is_id,
    new_id,
    normalize_id,
    surplus,
)

from .keeping import Clock, kept, session, write_log

DAY = 86_400.0


def test_making_a_store_touches_nothing_and_loads_nothing(directory: Path) -> None:
    program = (
        "import sys\n"
        "from ferrule.output.store import Store\n"
        "Store(sys.argv[1], keep_days=1, keep_bytes=1)\n"
        "assert not {'sqlite3', 'concurrent.futures.thread'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(directory)], check=True, timeout=60)

    assert not directory.exists()


async def test_a_text_comes_back_by_its_id(store: Store, clock: Clock) -> None:
    output_id = await store.put("all of it\n", call_id="call-1", tool="grep")

    assert is_id(output_id)
    assert await store.get(output_id) == Stored(output_id, "grep", "call-1", clock.now, 10, "all of it\n", None)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.text(st.characters()), st.text(st.characters(), max_size=5)), max_size=5))
def test_any_text_comes_back_as_it_was(pairs: list[tuple[str, str]]) -> None:
    async def there_and_back(directory: str) -> list[str | None]:
        store = Store(directory, keep_days=1, keep_bytes=10**9)
        ids = [await store.put(text, call_id=name, tool=name) for text, name in pairs]
        found = [await store.get(output_id) for output_id in ids]
        await store.close()
        return [stored.text if stored else None for stored in found]

    with tempfile.TemporaryDirectory() as directory:
        assert asyncio.run(there_and_back(directory)) == [text for text, _ in pairs]


async def test_what_is_not_there_is_none_and_makes_nothing(store: Store, directory: Path) -> None:
    assert await store.get("0123456789") is None
    assert await store.entries() == []
    assert not directory.exists()


@pytest.mark.parametrize("typed", ["", "%", "0", "../../etc", "a' OR 1", "\ud800", "zzzzzzzzzz", "~~~~~~~~~~"])
async def test_an_id_that_is_none_finds_nothing(store: Store, typed: str) -> None:
    await store.put("x", call_id="c", tool="t")

    assert await store.get(typed) is None


async def test_a_beginning_finds_the_only_output_that_has_it(store: Store) -> None:
    output_id = await store.put("x", call_id="c", tool="t")
    found = await store.get(f" {output_id[:6].upper()} ")

    assert found is not None
    assert found.id == output_id


async def test_a_beginning_of_two_outputs_finds_none(store: Store, directory: Path) -> None:
    await store.put("x", call_id="c", tool="t")
    with closing(sqlite3.connect(directory / "outputs.sqlite")) as connection, connection:
        for output_id in ("abcd000000", "abcd000001"):
            connection.execute(
                "INSERT INTO outputs (id, tool, call_id, created, size_bytes, body) VALUES (?, '', '', 0, 0, x'')",
                (output_id,),
            )

    assert await store.get("abcd") is None
    assert await store.get("abcd000001") is not None


def test_letters_that_look_alike_mean_the_same() -> None:
    assert normalize_id("O1lI") == "0111"


def test_ids_are_easy_to_type() -> None:
    ids = [new_id() for _ in range(200)]

    assert all(re.fullmatch(f"[{ALPHABET}]{{10}}", output_id) for output_id in ids)
    assert len(set(ids)) == 200


async def test_entries_are_newest_first(store: Store, clock: Clock) -> None:
    for tool in ("first", "second", "third"):
        await store.put(tool, call_id="c", tool=tool)
    clock.now += 1
    last = await store.put("later", call_id="c4", tool="fourth")

    assert await kept(store) == ["fourth", "third", "second", "first"]
    assert await store.entries(1) == [OutputEntry(last, "fourth", "c4", clock.now, 5)]


async def test_a_log_is_an_output_that_stays_a_file(store: Store, directory: Path) -> None:
    output_id, path = store.new_log()

    assert path == str(directory / "logs" / f"{output_id}.log")
    assert not os.path.exists(path)

    Path(path).write_bytes(b"line\n\xff")

    assert await store.adopt(path, size_bytes=6, call_id="c", tool="shell") == output_id
    stored = await store.get(output_id)
    assert stored is not None
    assert (stored.path, stored.text, stored.size_bytes) == (path, None, 6)
    assert stored.read() == ("line\n\ufffd", None)


async def test_a_log_may_be_adopted_again_when_it_has_grown(store: Store) -> None:
    _, path = store.new_log()
    Path(path).write_bytes(b"one")
    await store.adopt(path, size_bytes=3, call_id="c", tool="shell")
    await store.adopt(path, size_bytes=9, call_id="c", tool="shell")

    assert [entry.size_bytes for entry in await store.entries()] == [9]


async def test_a_huge_log_is_never_read_whole(store: Store) -> None:
    size_bytes = 300 * 1024 * 1024
    _, path = store.new_log()
    with open(path, "wb") as file:
        file.truncate(size_bytes)
        file.seek(size_bytes - 5)
        file.write(b"last\n")
    tracemalloc.start()
    stored = await store.get(await store.adopt(path, size_bytes=size_bytes, call_id="c", tool="shell"))
    assert stored is not None
    page = stored.read(size_bytes - 5, 100)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert page == ("last\n", None)
    assert peak_bytes < 2_000_000


@pytest.mark.parametrize("name", ["../outputs.sqlite", "../../elsewhere.log", "short.log", "0123456789.txt"])
async def test_only_a_log_of_the_store_is_adopted(store: Store, name: str) -> None:
    logs = os.path.dirname(store.new_log()[1])
    path = os.path.join(logs, name)
    Path(os.path.normpath(path)).write_bytes(b"x")

    with pytest.raises(StoreError, match="no log of the store"):
        await store.adopt(path, size_bytes=1, call_id="c", tool="t")


async def test_a_link_or_nothing_is_not_adopted(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    _, missing = store.new_log()
    _, link = store.new_log()
    os.symlink(tmp_path / "secret", link)

    for path in (missing, link):
        with pytest.raises(StoreError, match="no log of the store"):
            await store.adopt(path, size_bytes=1, call_id="c", tool="t")


@pytest.mark.parametrize("swap", ["link", "pipe", "nothing"])
async def test_a_log_that_was_swapped_is_not_read(store: Store, tmp_path: Path, swap: str) -> None:
    (tmp_path / "secret").write_text("secret")
    stored = await store.get(await write_log(store, b"log"))
    assert stored is not None
    assert stored.path is not None
    os.unlink(stored.path)
    if swap == "link":
        os.symlink(tmp_path / "secret", stored.path)
    elif swap == "pipe":
        os.mkfifo(stored.path)

    with pytest.raises(StoreError, match=f"The log of output {stored.id} cannot be read"):
        stored.read()


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 12))
def test_pages_make_up_the_whole(text: str, limit_bytes: int) -> None:
    stored = Stored("x", "t", "c", 0, 0, text)
    pages = [stored.read(0, limit_bytes)]
    while (offset := pages[-1].next_offset) is not None:
        pages.append(stored.read(offset, limit_bytes))

    assert "".join(page.text for page in pages) == text
    assert all(len(page.text.encode()) <= max(4, limit_bytes) for page in pages)


@given(st.binary(max_size=30), st.integers(0, 40), st.integers(0, 9))
def test_any_piece_of_any_log_is_text(raw: bytes, offset: int, limit_bytes: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        page = Stored("x", "t", "c", 0, 0, None, file.name).read(offset, limit_bytes)

    page.text.encode()
    assert page.next_offset is None or offset < page.next_offset < len(raw)


rows = st.lists(
    st.builds(Aged, st.floats(0, 100), st.integers(0, 99), st.text("abc", min_size=1, max_size=2), st.integers(0, 50)),
    max_size=12,
).map(sorted)


@given(rows, st.floats(0, 100), st.integers(0, 200), st.sets(st.text("abc", min_size=1, max_size=2), max_size=4))
def test_what_goes_is_old_or_too_much_and_never_spared(
    oldest_first: list[Aged], expired: float, keep_bytes: int, spared: set[str]
) -> None:
    gone = surplus(oldest_first, expired=expired, keep_bytes=keep_bytes, spared=spared)
    left = list(oldest_first)
    for row in gone:
        left.remove(row)
    free = [row for row in left if row.id not in spared]

    assert not any(row.id in spared for row in gone)
    assert all(row.created >= expired for row in free)
    assert not free or sum(row.size_bytes for row in left) <= keep_bytes
    # Only as much as needed: with the newest of what went, and is not too old, it would be too much.
    fresh = [row for row in gone if row.created >= expired]
    assert not fresh or sum(row.size_bytes for row in [*left, fresh[-1]]) > keep_bytes


async def test_old_outputs_go_with_their_logs(store: Store, directory: Path, clock: Clock) -> None:
    await store.put("x", call_id="c", tool="old")
    await write_log(store, b"x", tool="old-log")
    await store.close()
    clock.now += 8 * DAY
    later = session(directory, clock)
    await later.put("x", call_id="c", tool="new")

    assert await kept(later) == ["new"]
    assert os.listdir(directory / "logs") == []
    await later.close()


async def test_the_oldest_go_when_there_is_too_much(store: Store, directory: Path, clock: Clock) -> None:
    for number in range(6):
        await store.put("x" * 1000, call_id="c", tool=str(number))
        clock.now += 1
    await store.close()
    clock.now += 2 * 3600
    later = session(directory, clock, keep_bytes=3500)
    await later.put("x" * 1000, call_id="c", tool="new")

    assert await kept(later) == ["new", "5", "4"]
    await later.close()


async def test_what_this_session_wrote_stays_however_old_and_large(directory: Path, clock: Clock) -> None:
    store = session(directory, clock, keep_bytes=10)
    await store.put("x" * 1000, call_id="c", tool="a")
    await write_log(store, b"x" * 1000, tool="b")
    clock.now += 30 * DAY
    await store.put("x" * 1000, call_id="c", tool="c")

    assert await kept(store) == ["c", "b", "a"]
    await store.close()


async def test_sweeping_happens_once_an_hour_over_all_sessions(store: Store, directory: Path, clock: Clock) -> None:
    await store.put("x" * 1000, call_id="c", tool="a")
    await store.close()
    for minutes, expected in ((30, ["x", "a"]), (31, ["x", "x"])):
        clock.now += minutes * 60
        later = session(directory, clock, keep_bytes=10)
        await later.put("", call_id="c", tool="x")
        assert await kept(later) == expected
        await later.close()


async def test_a_clock_that_was_set_back_does_not_stop_the_sweeping(
    store: Store, directory: Path, clock: Clock
) -> None:
    await store.put("x" * 1000, call_id="c", tool="a")
    await store.close()
    clock.now -= 100 * DAY
    later = session(directory, clock, keep_bytes=10)
    await later.put("", call_id="c", tool="x")

    assert await kept(later) == ["x"]
    await later.close()


async def test_logs_that_nobody_adopted_go_after_a_day(store: Store, directory: Path, clock: Clock) -> None:
    other = session(directory, clock)
    paths = [Path(other.new_log()[1]) for _ in range(2)]
    mine = Path(store.new_log()[1])
    foreign = directory / "logs" / "notes.txt"
    for path, age in ((paths[0], 2 * DAY), (paths[1], 0.9 * DAY), (mine, 2 * DAY), (foreign, 2 * DAY)):
        path.write_text("x")
        os.utime(path, (clock.now - age, clock.now - age))
    with_rows = session(directory, clock)
    await with_rows.put("makes the file", call_id="c", tool="t")
    await with_rows.close()
    # A store that is new takes in the logs it finds; these shall have no row.
    with closing(sqlite3.connect(directory / "outputs.sqlite")) as connection, connection:
        connection.execute("DELETE FROM outputs")
    clock.now += 3700
    await store.put("x", call_id="c", tool="t")

    assert [path.exists() for path in (*paths, mine, foreign)] == [False, True, True, True]
    await other.close()


async def test_room_is_given_back_to_the_disk(store: Store, directory: Path, clock: Clock) -> None:
    await store.put("x" * 3_000_000, call_id="c", tool="large")
    await store.close()
    before = (directory / "outputs.sqlite").stat().st_size
    clock.now += 8 * DAY
    later = session(directory, clock)
    await later.put("x", call_id="c", tool="new")
    await later.close()

    assert before > 3_000_000
    assert (directory / "outputs.sqlite").stat().st_size < 100_000
