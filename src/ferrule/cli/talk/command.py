"""Implement `ferrule chat`: its options, and what they must not be together."""

import importlib.util
import sys
from typing import Any

import click

from ferrule.cli.options import NO_ID, Prompted, finish, limit_options, session_options, thread_ids
from ferrule.cli.session_flags import add_fitting_options, session_flags
from ferrule.cli.show import USAGE

_MISSING = "ferrule: the terminal needs two more packages: pip install 'ferrule[tui]'"


@click.command("chat", cls=Prompted)
@click.argument("prompt", required=False)
@click.option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=NO_ID,
    shell_complete=thread_ids,
    help="Go on with an earlier conversation; without ID it is chosen from a list.",
)
@click.option("-c", "--continue", "last", is_flag=True, help="Go on with the last conversation of this folder.")
@click.option(
    "--record", type=click.Path(), metavar="FILE", default="", help="Record what the model says, to be played again."
)
@click.option(
    "--replay",
    type=click.Path(),
    metavar="FILE",
    help="Play a recorded conversation; the same as --model scripted:FILE.",
)
@limit_options
@add_fitting_options
@session_flags
@session_options
def command(
    prompt: str | None, *, resume: str | None, last: bool, record: str, replay: str | None, **session: Any
) -> int:
    """Talk to an agent at the terminal. PROMPT is the first thing that is said.

    \b
    Examples:
      ferrule
      ferrule chat --model anthropic:claude-opus-5-5
      ferrule "why does test_cart fail?"
      ferrule --continue
      ferrule chat --resume
      ferrule chat --permission-mode plan --max-cost 2
    """
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        raise click.UsageError('ferrule chat is for a terminal. For scripts and pipes use `ferrule run "TASK"`.')
    if any(importlib.util.find_spec(name) is None for name in ("prompt_toolkit", "rich")):
        click.echo(_MISSING, err=True)
        return USAGE
    if resume and last:
        raise click.UsageError("Give --resume or --continue, not both.")
    if replay is not None:
        if session["model"] is not None:
            raise click.UsageError("Give --replay or --model, not both.")
        session["model"] = f"scripted:{replay}"
    from ferrule.cli.talk.start import start  # the whole chat, which `--help` does not need
    from ferrule.models import ModelError

    try:
        first = "/resume" if resume == NO_ID else prompt
        resumed = "" if resume == NO_ID else resume or ""
        return finish(start(session, "last" if last else resumed, record, first))
    except ModelError as error:
        click.echo(f"ferrule: {error}", err=True)
        return USAGE


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()
