"""Servers that are configured for one command: `--mcp-config`."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "sources" / "mcp" / "hostile.py"
CONFIG = json.dumps({"mcpServers": {"one": {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), "good"]}}})


def ferrule(folder, *words):
    argv = [sys.executable, "-m", "ferrule", *words, "--mcp-config", CONFIG]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_call_finds_its_server_and_needs_no_schema_first(tmp_path):
    ran = ferrule(tmp_path, "call", "mcp__one__echo", '{"text": "hello"}', "--yes", "--dialect", "wayland")

    assert (ran.returncode, ran.stdout) == (0, "hello\n"), ran.stderr


def test_a_call_of_a_server_asks_like_any_other(tmp_path):
    ran = ferrule(tmp_path, "call", "mcp__one__echo", '{"text": "hello"}', "--deny")

    assert ran.returncode == 3
    assert "ask the MCP server one" in ran.stderr


def test_a_configuration_that_is_wrong_is_told(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "ferrule", "tools", "--mcp-config", '{"mcpServers": {"one": {"command": 7}}}'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "one" in ran.stderr
    assert "command" in ran.stderr
