"""SQLite files are shared between processes, brought up to date once, and replaced when damaged, never overwritten."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ferrule.system.sqlite import Database, UnusableError, open_database, set_aside, transaction

TABLE = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
COLUMN = "ALTER TABLE notes ADD COLUMN author TEXT"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "notes.sqlite")


@pytest.fixture
def database(path: str) -> Iterator[Database]:
    database = Database(path, migrations=[TABLE], busy_seconds=5)
    yield database
    database.close()


def add(text: str) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))

    return work


def notes(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY id")]


def test_a_new_file_is_private_and_writes_ahead(path: str) -> None:
    with closing(open_database(path, migrations=[TABLE], busy_seconds=5)) as connection:
        connection.execute("INSERT INTO notes (text) VALUES ('x')")
        settings = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "user_version")
        ]
        modes = {stat.S_IMODE(os.stat(path + side).st_mode) for side in ("", "-wal", "-shm")}

    assert settings == ["wal", 1, 1, 1]
    assert modes == {0o600}


def test_only_new_migrations_run(path: str) -> None:
    with closing(open_database(path, migrations=[TABLE], busy_seconds=5)) as connection:
        connection.execute("INSERT INTO notes (text) VALUES ('old')")
    with closing(open_database(path, migrations=[TABLE, COLUMN], busy_seconds=5)) as connection:
        rows = connection.execute("SELECT text, author FROM notes").fetchall()

    assert rows == [("old", None)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(path: str) -> None:
    with closing(open_database(path, migrations=[TABLE], busy_seconds=5)):
        pass
    with pytest.raises(sqlite3.OperationalError, match="syntax"):
        open_database(path, migrations=[TABLE, COLUMN, "NONSENSE"], busy_seconds=5)
    with closing(open_database(path, migrations=[TABLE], busy_seconds=5)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(notes)")]

    assert columns == ["id", "text"]


def test_a_file_of_a_newer_version_is_left_alone(path: str) -> None:
    with closing(open_database(path, migrations=[TABLE, COLUMN], busy_seconds=5)):
        pass
    before = Path(path).read_bytes()

    with pytest.raises(UnusableError, match="newer version"):
        open_database(path, migrations=[TABLE], busy_seconds=5)
    assert Path(path).read_bytes() == before


def test_a_transaction_is_everything_or_nothing(path: str) -> None:
    with closing(open_database(path, migrations=[TABLE], busy_seconds=5)) as connection:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.executemany("INSERT INTO notes (text) VALUES (?)", [("lost",), (None,)])
        with transaction(connection):
            add("kept")(connection)

        assert notes(connection) == ["kept"]


def test_processes_that_make_the_same_file_at_once_all_succeed(path: str) -> None:
    program = (
        "import sys\n"
        "from ferrule.system.sqlite import Database\n"
        "database = Database(sys.argv[1], migrations=[sys.argv[2]], busy_seconds=60)\n"
        "for number in range(20):\n"
        "    database.write(lambda c: c.execute('INSERT INTO notes (text) VALUES (?)', (sys.argv[3],)))\n"
        "database.close()\n"
        "assert database.warning is None, database.warning\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, path, TABLE, str(number)]) for number in range(5)]
    codes = [child.wait(timeout=120) for child in children]
    with closing(sqlite3.connect(path)) as connection:
        written = notes(connection)

    assert codes == [0] * 5
    assert sorted(written) == sorted(str(number) for number in range(5) for _ in range(20))


def test_a_locked_file_is_waited_for_and_then_named(path: str) -> None:
    database = Database(path, migrations=[TABLE], busy_seconds=0.05)
    database.write(add("first"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(UnusableError, match=r"^stayed locked by another process for 0\.05 seconds$"):
            database.write(add("refused"))
        assert database.read(notes) == ["first"]
    database.write(add("second"))

    assert database.read(notes) == ["first", "second"]
    database.close()


def test_a_full_disk_is_named_and_the_file_stays_usable(database: Database) -> None:
    database.write(add("first"))
    pages = database.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    database.read(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    with pytest.raises(UnusableError, match=r"^has no room left on its disk$"):
        database.write(add("x" * 100_000))
    database.read(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchone())
    database.write(add("second"))

    assert database.read(notes) == ["first", "second"]


def zero_the_header(path: str) -> None:
    with open(path, "r+b") as file:
        file.write(bytes(16))


def write_garbage(path: str) -> None:
    Path(path).write_bytes(b"not a database at all\n" * 500)


def truncate(path: str) -> None:
    os.truncate(path, os.path.getsize(path) - 4096)


def cut_short(path: str) -> None:
    os.truncate(path, 100)


def empty(path: str) -> None:
    os.truncate(path, 0)


def put_another_in_its_place(path: str) -> None:
    os.unlink(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(zero_the_header, id="zeroed-header"),
        pytest.param(write_garbage, id="garbage"),
        pytest.param(truncate, id="truncated"),
        pytest.param(cut_short, id="cut-short"),
        pytest.param(empty, id="emptied"),
        pytest.param(put_another_in_its_place, id="another-database"),
    ],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_started(path: str, damage: Callable[[str], None]) -> None:
    first = Database(path, migrations=[TABLE], busy_seconds=5)
    first.write(add("old" * 5000))
    first.close()
    damage(path)
    remains = Path(path).read_bytes()

    second = Database(path, migrations=[TABLE], busy_seconds=5)
    second.write(add("new"))

    assert second.read(notes) == ["new"]
    assert second.warning == f"{path} was damaged and is now notes.damaged-1.sqlite; a new one was started."
    assert Path(path.replace(".sqlite", ".damaged-1.sqlite")).read_bytes() == remains
    second.close()


def test_the_write_ahead_log_of_an_emptied_file_is_set_aside_with_it(path: str) -> None:
    database = Database(path, migrations=[TABLE], busy_seconds=5)
    database.write(add("old"))
    log = Path(path + "-wal").read_bytes()
    database.close()
    Path(path + "-wal").write_bytes(log)
    empty(path)

    again = Database(path, migrations=[TABLE], busy_seconds=5)
    again.write(add("new"))
    again.close()

    assert log
    assert Path(path.replace(".sqlite", ".damaged-1.sqlite-wal")).read_bytes() == log


def test_damage_that_is_found_later_is_handled_too(path: str) -> None:
    first = Database(path, migrations=[TABLE], busy_seconds=5)
    for _ in range(50):
        first.write(add("old" * 2000))
    first.close()
    with open(path, "r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * (os.path.getsize(path) - 5 * 4096))
    second = Database(path, migrations=[TABLE], busy_seconds=5)

    assert second.read(notes) == []
    assert second.warning
    assert os.path.exists(path.replace(".sqlite", ".damaged-1.sqlite"))
    second.close()


def test_a_file_that_is_gone_is_said_to_be_gone(database: Database, path: str) -> None:
    database.write(add("old"))
    database.close()
    os.unlink(path)
    database.write(add("new"))

    assert database.read(notes) == ["new"]
    assert database.warning == f"{path} was gone; a new one was started."


def test_an_empty_file_that_never_was_a_store_is_no_damage(database: Database, path: str) -> None:
    Path(path).touch()
    database.write(add("first"))

    assert database.warning is None


def test_a_lost_identity_file_is_written_again(database: Database, path: str) -> None:
    database.write(add("kept"))
    database.close()
    identity = Path(path).with_name("store.id")
    before = identity.read_text()
    identity.unlink()

    assert database.read(notes) == ["kept"]
    assert identity.read_text() == before
    assert database.warning is None
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600


def test_a_replacement_by_another_process_is_noticed_and_not_harmed(database: Database, path: str) -> None:
    database.write(add("old"))
    other = Database(path, migrations=[TABLE], busy_seconds=5)
    set_aside(path)
    other.write(add("by the other"))
    database.write(add("by the first"))
    database.close()
    other.write(add("after"))

    assert other.read(notes) == ["by the other", "by the first", "after"]
    other.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_two_that_find_the_same_damage_set_it_aside_once(path: str) -> None:
    first, second = (Database(path, migrations=[TABLE], busy_seconds=5) for _ in range(2))
    for _ in range(50):
        first.write(add("old" * 2000))
    second.read(notes)
    first.read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(path) - 4096))
    for database in (first, second):
        database.read(lambda connection: connection.execute("PRAGMA cache_size = 0").fetchone())
        database.read(lambda connection: connection.execute("PRAGMA shrink_memory").fetchone())
    first.read(notes)
    first.write(add("new"))
    kept = second.read(notes)
    aside = [name for name in os.listdir(os.path.dirname(path)) if name.endswith(".sqlite")]
    first.close()
    second.close()

    assert kept == ["new"]
    assert sorted(aside) == ["notes.damaged-1.sqlite", "notes.sqlite"]


def test_each_damaged_file_gets_a_number_of_its_own(path: str) -> None:
    names = []
    for content in ("one", "two"):
        Path(path).write_text(content)
        names.append(set_aside(path))

    assert names == [path.replace(".sqlite", f".damaged-{number}.sqlite") for number in (1, 2)]
    assert [Path(name or "").read_text() for name in names] == ["one", "two"]
    assert set_aside(path) is None


def test_a_new_file_is_filled_with_what_is_known_otherwise(path: str) -> None:
    database = Database(path, migrations=[TABLE], busy_seconds=5, refill=add("known"))
    database.write(add("first"))
    database.close()
    database.write(add("second"))

    assert database.read(notes) == ["known", "first", "second"]
    database.close()
