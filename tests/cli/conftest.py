"""What tests of the command line share."""

import pytest
from tests.cli.talk.terminals import Pty


@pytest.fixture
def terminal():
    """Starts `ferrule chat` on a pseudo-terminal, and closes it at the end."""
    opened = []

    def start(arguments, cwd, columns=90, rows=30, **environment):
        one = Pty(columns, rows)
        opened.append(one)
        one.start(["chat", *arguments], cwd, **environment)
        return one

    yield start
    for one in opened:
        one.close()
