"""Cold starts."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.measure import Row, commands, milliseconds, ratio

LIBRARIES = "import asyncio, msgspec, click, sqlite3, jsonschema_rs"
LEAST = "import asyncio, msgspec"
ENGINE = "from ferrule import Engine, Call, tool"


def rows() -> Iterator[Row]:
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("hello\n" * 20)
        settings = f"{folder}/none.toml"
        with open(settings, "w", encoding="utf-8"):
            pass
        environment = {**os.environ, "FERRULE_STATE": f"{folder}/state", "FERRULE_SETTINGS": settings}
        ferrule = os.path.join(os.path.dirname(sys.executable), "ferrule")
        read = [ferrule, "call", "Read", '{"path": "a.txt"}']
        for name, argv, code, limit in (
            ("ferrule call Read, against importing its libraries", read, LIBRARIES, 1.6),
            ("import ferrule, against importing asyncio and msgspec", _python("import ferrule"), LEAST, 1.2),
            ("from ferrule import Engine, Call, tool, against the same", _python(ENGINE), LEAST, 1.8),
        ):
            ours, theirs = commands(argv, _python(code), 30, cwd=folder, env=environment)
            detail = f"{milliseconds(ours)} and {milliseconds(theirs)}"
            yield Row(name, ratio(ours, theirs), limit, "×", detail)


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]
