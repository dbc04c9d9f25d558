"""The store survives locks, damage, full disks and neighbours, and nobody else reads it."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from ferrule.output.store import Store, StoreError

from .keeping import Clock, kept, session, write_log


async def test_only_the_user_can_read_it(store: Store, directory: Path) -> None:
    await store.put("x", call_id="c", tool="t")
    store.new_log()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))}

    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


async def test_a_directory_that_others_could_read_is_closed_to_them(store: Store, directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o775)
    await store.put("x", call_id="c", tool="t")

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


async def test_a_directory_that_everybody_uses_is_refused(store: Store, directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o1777)

    with pytest.raises(StoreError, match="shared with other users"):
        await store.put("x", call_id="c", tool="t")
    with pytest.raises(StoreError, match="shared with other users"):
        store.new_log()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o1777
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/ferrule-state"])
async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    directory = tmp_path / place
    store = Store(str(directory), keep_days=1, keep_bytes=1)

    with pytest.raises(StoreError, match=f"^The store of full outputs in {directory} cannot be used: .*[.]$"):
        await store.put("x", call_id="c", tool="t")
    with pytest.raises(StoreError, match="cannot be used"):
        store.new_log()
    assert (tmp_path / "file").read_text() == ""
    await store.close()


def test_a_directory_that_cannot_be_written_is_named() -> None:
    program = (
        "import asyncio, os, sys\n"
        "from ferrule.output.store import Store, StoreError\n"
        "import ferrule.system.sqlite, ferrule.system\n"
        "os.chmod(sys.argv[1], 0o500)\n"
        "if os.geteuid() == 0:\n"
        "    os.chown(sys.argv[1], 65534, 65534)\n"
        "    os.setuid(65534)\n"
        "async def main():\n"
        "    store = Store(sys.argv[1], keep_days=1, keep_bytes=1)\n"
        "    try:\n"
        "        await store.put('x', call_id='c', tool='t')\n"
        "    except StoreError as error:\n"
        "        print(error)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    with tempfile.TemporaryDirectory() as directory:
        found = subprocess.run(
            [sys.executable, "-c", program, directory], check=True, timeout=60, capture_output=True, text=True
        )
        os.chmod(directory, 0o700)

    assert found.stdout == f"The store of full outputs in {directory} cannot be used: Permission denied.\n"


async def test_a_store_that_another_process_holds_is_waited_for(directory: Path) -> None:
    store = Store(str(directory), keep_days=1, keep_bytes=10**6, busy_seconds=60)
    first = await store.put("x", call_id="c", tool="first")
    with closing(sqlite3.connect(directory / "outputs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.put("x", call_id="c", tool="second"))
        # The event loop goes round while the store waits.
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("ROLLBACK")
    await asyncio.wait_for(waiting, 60)

    assert first
    assert await kept(store) == ["second", "first"]
    await store.close()


async def test_a_store_that_stays_locked_says_so_and_works_afterwards(directory: Path) -> None:
    store = Store(str(directory), keep_days=1, keep_bytes=10**6, busy_seconds=0.05)
    await store.put("x", call_id="c", tool="first")
    with closing(sqlite3.connect(directory / "outputs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            await store.put("x", call_id="c", tool="refused")
        assert await kept(store) == ["first"]
    await store.put("x", call_id="c", tool="second")

    assert str(caught.value) == (
        f"The store of full outputs in {directory} stayed locked by another process for 0.05 seconds."
    )
    assert await kept(store) == ["second", "first"]
    await store.close()


@pytest.mark.parametrize("remains", [b"", b"\0" * 16, b"garbage" * 1000], ids=["emptied", "zeroed", "garbage"])
async def test_a_damaged_store_is_set_aside_and_its_logs_stay_readable(
    store: Store, directory: Path, clock: Clock, remains: bytes
) -> None:
    lost = await store.put("x", call_id="c", tool="t")
    logged = await write_log(store, b"log")
    await store.close()
    (directory / "outputs.sqlite").write_bytes(remains)
    again = session(directory, clock)
    new = await again.put("new", call_id="c", tool="t")
    found = [await again.get(output_id) for output_id in (lost, logged, new)]
    await again.close()

    assert again.warning is not None
    assert again.warning.endswith("was damaged and is now outputs.damaged-1.sqlite; a new one was started.")
    assert (directory / "outputs.damaged-1.sqlite").read_bytes() == remains
    assert [stored and stored.read().text for stored in found] == [None, "log", "new"]


async def test_damage_during_a_session_does_not_lose_what_is_being_kept(store: Store, directory: Path) -> None:
    await store.put("x" * 100_000, call_id="c", tool="t")
    (directory / "outputs.sqlite").unlink()
    new = await store.put("new", call_id="c", tool="t")
    found = await store.get(new)

    assert found is not None
    assert found.text == "new"
    assert store.warning


async def test_a_directory_that_vanishes_is_made_again(store: Store, directory: Path) -> None:
    await store.put("x", call_id="c", tool="t")
    directory.rename(directory.with_name("moved"))
    new = await store.put("new", call_id="c", tool="t")

    assert await store.get(new)


def test_a_full_disk_costs_one_output_and_no_more(directory: Path) -> None:
    program = (
        "import asyncio, resource, sys\n"
        "from ferrule.output.store import Store, StoreError\n"
        "async def main():\n"
        "    store = Store(sys.argv[1], keep_days=1, keep_bytes=10**9)\n"
        "    first = await store.put('first', call_id='c', tool='t')\n"
        "    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))\n"
        "    try:\n"
        "        await store.put('x' * 1_000_000, call_id='c', tool='t')\n"
        "    except StoreError as error:\n"
        "        print(error)\n"
        "    small = await store.put('small', call_id='c', tool='t')\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "    large = await store.put('x' * 1_000_000, call_id='c', tool='t')\n"
        "    print([(await store.get(i)).size_bytes for i in (first, small, large)], store.warning)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(directory)], check=True, timeout=60, capture_output=True, text=True
    )
    sentence, rest = found.stdout.splitlines()

    assert sentence.startswith(f"The store of full outputs in {directory} ")
    assert rest == "[5, 5, 1000000] None"


def test_engines_of_several_processes_share_a_store(directory: Path, clock: Clock) -> None:
    program = (
        "import asyncio, sys\n"
        "from ferrule.output.store import Store\n"
        "async def main():\n"
        "    store = Store(sys.argv[1], keep_days=10**6, keep_bytes=10**9, busy_seconds=60)\n"
        "    puts = (store.put(sys.argv[2] * 3000, call_id='c', tool=sys.argv[2]) for _ in range(25))\n"
        "    print(*await asyncio.gather(*puts))\n"
        "    assert store.warning is None, store.warning\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(directory), name], stdout=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    outputs = [child.communicate(timeout=120)[0].split() for child in children]

    async def read() -> list[str | None]:
        store = session(directory, clock)
        found = [await store.get(output_id) for ids in outputs for output_id in ids]
        await store.close()
        return [stored.text if stored else None for stored in found]

    assert [child.returncode for child in children] == [0] * 4
    assert asyncio.run(read()) == [name * 3000 for name in "abcd" for _ in range(25)]


async def test_a_store_of_a_newer_version_is_left_alone(store: Store, directory: Path, clock: Clock) -> None:
    await store.put("x", call_id="c", tool="t")
    await store.close()
    with closing(sqlite3.connect(directory / "outputs.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    older = session(directory, clock)

    with pytest.raises(StoreError, match="newer version"):
        await older.put("x", call_id="c", tool="t")
    assert sorted(path.name for path in directory.glob("*.sqlite")) == ["outputs.sqlite"]
    await older.close()


async def test_a_cancelled_put_leaves_the_store_usable(directory: Path) -> None:
    store = Store(str(directory), keep_days=1, keep_bytes=10**6, busy_seconds=60)
    await store.put("x", call_id="c", tool="first")
    with closing(sqlite3.connect(directory / "outputs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.put("x", call_id="c", tool="cancelled"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.execute("ROLLBACK")
    await store.put("x", call_id="c", tool="second")

    assert {"first", "second"} <= set(await kept(store))
    await store.close()


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.put("x", call_id="c", tool="t")
    await store.close()
    await store.close()

    with pytest.raises(StoreError, match="closed"):
        await store.put("x", call_id="c", tool="t")


async def test_a_thousand_at_once_are_all_kept(store: Store) -> None:
    ids = await asyncio.gather(*(store.put(str(number), call_id="c", tool="t") for number in range(1000)))
    last = await store.get(ids[-1])

    assert len(set(ids)) == 1000
    assert last is not None
    assert last.text == "999"
