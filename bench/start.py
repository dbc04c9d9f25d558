"""Cold starts."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.measure import Row, commands, milliseconds, ratio

LIBRARIES = "import asyncio, msgspec, click, sqlite3, jsonschema_rs"


def rows() -> Iterator[Row]:
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("hello\n" * 20)
        environment = {**os.environ, "FERRULE_STATE": f"{folder}/state", "FERRULE_SETTINGS": f"{folder}/none.toml"}
        ferrule = os.path.join(os.path.dirname(sys.executable), "ferrule")
        ours, theirs = commands(
            [ferrule, "call", "Read", '{"path": "a.txt"}'],
            [sys.executable, "-c", LIBRARIES],
            30,
            cwd=folder,
            env=environment,
        )
        yield Row(
            "ferrule call Read, against importing its libraries",
            ratio(ours, theirs),
            1.6,
            "×",
            f"{milliseconds(ours)} and {milliseconds(theirs)}",
        )
        ours, theirs = commands(
            [sys.executable, "-c", "import ferrule"],
            [sys.executable, "-c", "import asyncio, msgspec"],
            30,
            cwd=folder,
            env=environment,
        )
        yield Row(
            "import ferrule, against importing asyncio and msgspec",
            ratio(ours, theirs),
            1.2,
            "×",
            f"{milliseconds(ours)} and {milliseconds(theirs)}",
        )
        ours, theirs = commands(
            [sys.executable, "-c", "from ferrule import Engine, Call, tool"],
            [sys.executable, "-c", "import asyncio, msgspec"],
            20,
            cwd=folder,
            env=environment,
        )
        yield Row(
            "from ferrule import Engine, Call, tool, against the same",
            ratio(ours, theirs),
            1.8,
            "×",
            f"{milliseconds(ours)} and {milliseconds(theirs)}",
        )
