"""The program that tests start: `ferrule mcp serve` with the tools of `offered`, over HTTP where it gets an address."""

import sys

from ferrule.cli.mcp_serve import serve_clients
from ferrule.cli.options import StoppedError, finish
from tests.serve.offered import TOOLS


def main(address: str | None = None, token: str | None = None) -> None:
    session = {"dialect": None, "model": None, "workspace": ".", "add_dirs": (), "answer": None, "tools": TOOLS}
    try:
        finish(serve_clients(session, address=address, token=token, names=()))
    except StoppedError as stopped:
        sys.exit(128 + stopped.number)


if __name__ == "__main__":
    main(*sys.argv[1:])
