"""A workspace, a server on loopback, and how the two loops are run against it."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

FERRULE = os.path.join(os.path.dirname(sys.executable), "ferrule")


class Place(NamedTuple):
    """Where it happens."""

    folder: str
    port: int
    environment: dict[str, str]

    def times(self) -> dict[str, list[float]]:
        """What the server has taken down since it was last asked."""
        line = http.client.HTTPConnection("127.0.0.1", self.port)
        line.request("GET", "/times")
        found: dict[str, list[float]] = json.loads(line.getresponse().read())
        line.close()
        return found

    def ours(self, model: str, *more: str) -> list[str]:
        asked = ["--model", f"anthropic:{model}", "--dialect", "claude", "--yes", "--output", "json"]
        return [FERRULE, "run", "Do it.", *asked, *more]

    def floor(self, model: str) -> list[str]:
        return [sys.executable, "-m", "bench.agent.floor", str(self.port), model, self.folder]

    def run(self, argv: list[str]) -> list[float]:
        """Run one of them to its end; the seconds of its turns."""
        where = self.folder if argv[0] == FERRULE else os.getcwd()
        subprocess.run(
            argv,
            check=True,
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )
        return self.times()["times"]

    def lay_out(self) -> None:
        """The files as they are at the start."""
        for at in range(8):
            with open(os.path.join(self.folder, f"small{at}.py"), "w", encoding="utf-8") as file:
                file.writelines(f"value_{at} = {line}\n" for line in range(40))
        with open(os.path.join(self.folder, "large.py"), "w", encoding="utf-8") as file:
            file.writelines(
                f"line {at} {'0' if at == 1000 else 'of the file with some more words'}\n" for at in range(2000)
            )


@contextlib.contextmanager
def place(*, sandbox: str = "none", more: str = "") -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as home:
        folder = os.path.join(home, "workspace")
        os.mkdir(folder)
        settings = os.path.join(home, "settings.toml")
        environment: dict[str, Any] = {
            **os.environ,
            "FERRULE_STATE": os.path.join(home, "state"),
            "FERRULE_SETTINGS": settings,
            "ANTHROPIC_API_KEY": "none",
            "BENCH_FOLDER": folder,
            "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
        }
        server = subprocess.Popen(
            [sys.executable, "-m", "bench.agent.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            port = int(server.stdout.readline())
            environment["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{port}"
            with open(settings, "w", encoding="utf-8") as file:
                file.write(f'[sandbox]\nuse = "{sandbox}"\n[loop]\nrepeats = 100000\n{more}')
            here = Place(folder, port, environment)
            here.lay_out()
            yield here
        finally:
            server.stdin.close()
            server.wait(30)
            server.stdout.close()
