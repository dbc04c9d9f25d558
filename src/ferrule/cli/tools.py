"""`ferrule tools`: what a model is offered."""

from typing import Any

import click
import msgspec

from ferrule.cli.codes import DONE
from ferrule.cli.options import open_engine, session_options
from ferrule.core.errors import UnknownTool
from ferrule.registry.registry import Registered


@click.command("tools")
@click.argument("action", type=click.Choice(["list", "show"]), default="list")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the definitions as JSON.")
@click.option("--wire", metavar="FORMAT", help="Print them exactly as this model API is sent them.")
@session_options
def command(action: str, name: str | None, *, as_json: bool, wire: str | None, **session: Any) -> int:
    """List the tools of a dialect, or show one of them.

    \b
    The formats of --wire: anthropic, openai-chat, openai-responses, gemini, mcp.

    \b
    Examples:
      ferrule tools
      ferrule tools show edit_file
      ferrule tools --json
      ferrule tools --dialect codex --wire openai-responses
    """
    if (action == "show") != (name is not None):
        raise click.UsageError("Write `ferrule tools`, or `ferrule tools show NAME`.")
    engine = open_engine(**session)
    registry = engine.registry
    if session["model"] is not None:
        click.echo(f"dialect: {engine.dialect.name}", err=True)
    if name is None:
        chosen = [registry.resolve(face.name) for face in registry.shown()]
    else:
        try:
            chosen = [registry.resolve(name)]
        except UnknownTool as error:
            raise click.UsageError(error.message) from error
    if wire is not None:
        from ferrule.wire.wire import definition_of, load_wire  # for who looks at what goes over a wire

        definitions = load_wire(wire).definitions_out([definition_of(entry.face) for entry in chosen])
        click.echo(msgspec.json.format(msgspec.json.encode(definitions)))
    elif as_json:
        value: Any = [entry.spec() for entry in chosen]
        click.echo(msgspec.json.format(msgspec.json.encode(value if name is None else value[0])))
    elif name is None:
        width = max(len(entry.face.name) for entry in chosen)
        for entry in chosen:
            click.echo(f"{entry.face.name:<{width}}  {_headline(entry.face.words)}")
    else:
        _show(chosen[0])
    return DONE


def _headline(words: str) -> str:
    """The first sentence."""
    first = words.splitlines()[0]
    return first.partition(". ")[0].removesuffix(".") + "."


def _show(entry: Registered) -> None:
    face = entry.face
    click.echo(f"{face.name}  (source: {entry.tool.source}; canonical name: {entry.tool.name})\n")
    click.echo(face.words)
    click.echo("\nParameters:")
    required = face.schema.get("required", ())
    for name, about in face.schema.get("properties", {}).items():
        kind = about.get("type", "any")
        click.echo(f"  {name} ({kind}{', required' if name in required else ''})  {about.get('description', '')}")
