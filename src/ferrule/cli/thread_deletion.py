"""Deleting threads: none that a session has open, and their lists of todos with them."""

import contextlib
import os
from collections.abc import Sequence

import click

from ferrule.agent.claim import Claim
from ferrule.cli.loop import finish
from ferrule.cli.show import paint
from ferrule.core.errors import ToolFailure
from ferrule.settings import state_folder
from ferrule.workspace.thread_store import ThreadStore
from ferrule.workspace.todos import Todos


def deleted(store: ThreadStore, threads: Sequence[str]) -> None:
    """Delete them. Raises: ConfigError where one is open, for what its session keeps next would bring back a part."""
    folder = os.path.join(state_folder(), "threads", "open")
    with contextlib.ExitStack() as held:
        for thread in threads:
            held.callback(Claim(folder, thread).close)
        for thread in threads:
            store.delete(thread)
        for thread in threads:
            _forget_todos(thread)


def _forget_todos(thread: str) -> None:
    async def forget() -> None:
        todos = Todos(os.path.join(state_folder(), "todos"), thread)
        try:
            await todos.forget()
        finally:
            await todos.close()

    try:
        finish(forget())
    except ToolFailure as error:
        click.echo(paint(f"warning: the tasks of {thread} were not deleted: {error.message}", "yellow"), err=True)
