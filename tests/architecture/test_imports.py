"""The start-up contract: what an import loads, and that it does nothing else.

Each question is asked in a fresh interpreter. What a bare interpreter has loaded by itself does not count.
"""

import json
from pathlib import Path

import pytest

from ferrule.wire import WIRES

from .project import PACKAGE, dotted, modules, python

DEPENDENCIES = {"click", "jsonschema_rs", "msgspec", "platformdirs"}
BROUGHT_ALONG = {"typing_extensions"}
"""Loaded by a dependency where it happens to be installed; never asked for by us."""

OURS_OF_THE_STANDARD_LIBRARY = {"concurrent.futures.thread", "hashlib", "queue"}
"""What a read needs of the standard library beyond what the dependencies load for themselves."""
HEAVY = {"ctypes", "dataclasses", "difflib", "http", "multiprocessing", "sqlite3", "unittest", "urllib.request", "xml"}

_LOADED = """
import json, sys
bare = set(sys.modules)
{work}
def origin(name):
    return getattr(sys.modules[name], "__file__", None) or ""
new = sorted(set(sys.modules) - bare)
print(json.dumps([[name, "site-packages" in origin(name)] for name in new]))
"""


def loaded(work: str, home: Path) -> dict[str, bool]:
    """The modules that the work loads, and for each whether it comes from an installed package."""
    return dict(json.loads(python(_LOADED.format(work=work), home=home).splitlines()[-1]))


def tops(names: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.fixture
def call_read(tmp_path) -> str:
    """The work of `ferrule call Read`, on a workspace of one file."""
    (tmp_path / "a.txt").write_text("hello\n")
    return (
        "from ferrule.cli.main import run\n"
        f"assert run(['call', 'Read', '{{\"path\": \"a.txt\"}}', '--workspace', {str(tmp_path)!r}]) == 0"
    )


def test_importing_ferrule_loads_nothing_but_itself(tmp_path):
    found = loaded("import ferrule", tmp_path)

    assert {name for name in found if name.startswith("ferrule")} == {"ferrule"}
    assert [name for name, installed in found.items() if installed] == []


def test_a_read_loads_only_these_packages(tmp_path, call_read):
    found = loaded("import os; del os.environ['FERRULE_STATE']\n" + call_read, tmp_path)
    packages = tops([name for name, installed in found.items() if installed])

    assert packages - BROUGHT_ALONG == DEPENDENCIES


def test_a_read_whose_folders_are_chosen_does_not_look_for_them(tmp_path, call_read):
    (tmp_path / "settings.toml").touch()
    work = f"import os; os.environ['FERRULE_SETTINGS'] = {str(tmp_path / 'settings.toml')!r}\n" + call_read

    assert "platformdirs" not in loaded(work, tmp_path)


def test_a_read_loads_nothing_heavy(tmp_path, call_read):
    assert HEAVY.isdisjoint(loaded(call_read, tmp_path))


def test_a_read_needs_little_of_the_standard_library_by_itself(tmp_path, call_read):
    dependencies = loaded("import asyncio, click, jsonschema_rs, msgspec, platformdirs.unix", tmp_path)
    found = set(loaded(call_read, tmp_path)) - set(dependencies)

    assert {name for name in found if not name.startswith(("_", "ferrule"))} <= OURS_OF_THE_STANDARD_LIBRARY


def test_the_table_of_wire_formats_loads_none_of_them(tmp_path):
    assert set(WIRES.values()).isdisjoint(loaded("import ferrule.wire", tmp_path))


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_format_loads_no_other_one_and_no_stream(name, tmp_path):
    found = loaded(f"from ferrule.wire import load_wire; load_wire({name!r})", tmp_path)

    assert set(WIRES.values()) & set(found) == {WIRES[name]}
    assert not any(one.endswith((".reader", ".stream", ".writer")) for one in found if one.startswith("ferrule.wire"))


def test_importing_any_module_makes_no_file_starts_no_thread_and_says_nothing(tmp_path):
    names = [dotted(path) for path in modules() if path != PACKAGE / "__main__.py"]  # which runs the program
    code = (
        "import importlib, sys, threading\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(threading.active_count())"
    )

    assert python(code, *names, home=tmp_path) == "1\n"
    assert list(tmp_path.iterdir()) == []
