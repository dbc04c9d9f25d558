"""`ferrule tools`: what a model is offered, and the tools that one makes oneself."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from ferrule.cli.candidates import tools
from ferrule.cli.codes import DONE
from ferrule.cli.loop import finish
from ferrule.cli.options import engine_options, open_engine
from ferrule.core.errors import UnknownTool
from ferrule.engine import Engine
from ferrule.registry.registry import Registered


class Actions(click.Command):
    """`ferrule tools make` and `ferrule tools use` are commands of their own, loaded when they are asked for."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in {"make", "use"}:
            if args[0] == "make":
                from ferrule.cli.make import command as chosen  # for who makes a tool
            else:
                from ferrule.cli.use import command as chosen  # for who uses one
            return chosen.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("tools", cls=Actions)
@click.argument("action", type=click.Choice(["list", "show"]), default="list")
@click.argument("name", required=False, shell_complete=tools)
@click.option("--json", "as_json", is_flag=True, help="Print the definitions, or with --tokens the counts, as JSON.")
@click.option("--wire", metavar="FORMAT", help="Print them exactly as this model API is sent them.")
@click.option("--tokens", is_flag=True, help="Show what each tool costs the prompt.")
@click.option("--toolbox", is_flag=True, help="Show the files of your toolboxes, and what became of each.")
@engine_options("dialect", "model", "workspace", "mcp_config", "permission_mode")
def command(
    action: str, name: str | None, *, as_json: bool, wire: str | None, tokens: bool, toolbox: bool, **session: Any
) -> int:
    """List the tools of a dialect, show one of them, or make and use your own.

    `ferrule tools make NAME` writes a toolbox tool, `ferrule tools use NAME --PARAMETER VALUE` runs any tool; each has
    its own --help.
    The formats of --wire: anthropic, openai-chat, openai-responses, gemini, mcp.

    \b
    Examples:
      ferrule tools
      ferrule tools show edit_file
      ferrule tools --json
      ferrule tools --tokens
      ferrule tools --dialect codex --wire openai-responses
      ferrule tools make run-tests --python
      ferrule tools use run-tests --dir src
    """
    if (action == "show") != (name is not None):
        raise click.UsageError("Write `ferrule tools`, or `ferrule tools show NAME`.")
    if toolbox:
        return finish(_show_toolboxes(session))
    engine, warnings = finish(_looked(session))
    if session["model"] is not None:
        click.echo(f"dialect: {engine.dialect.name}", err=True)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    chosen = _chosen(engine, name)
    if tokens:
        from ferrule.cli.cost import show  # for who wants to know

        show(engine.registry, chosen, wire, as_json=as_json)
    elif wire is not None:
        from ferrule.wire.wire import definition_of, load_wire  # for who looks at what goes over a wire

        definitions = load_wire(wire).definitions_out([definition_of(entry.face) for entry in chosen])
        click.echo(msgspec.json.format(msgspec.json.encode(definitions)))
    elif as_json:
        value: Any = [entry.spec() for entry in chosen] if name is None else chosen[0].spec()
        click.echo(msgspec.json.format(msgspec.json.encode(value)))
    elif name is None:
        _list(chosen)
    else:
        _show(chosen[0])
    return DONE


def _chosen(engine: Engine, name: str | None) -> list[Registered]:
    """One tool, or all that are advertised."""
    registry = engine.registry
    if name is None:
        return [registry.resolve(face.name) for face in engine.faces()]
    from ferrule.sources.toolbox.naming import PREFIX

    registry.load_all()  # who looks at a tool need not have searched for it
    try:
        return [registry.resolve(name if registry.knows(name) or not registry.knows(PREFIX + name) else PREFIX + name)]
    except UnknownTool as error:
        raise click.UsageError(error.message) from error


async def _looked(session: dict[str, Any]) -> tuple[Engine, Sequence[str]]:
    """The engine with all its tools, closed again: only to be looked at."""
    from ferrule.core.subagents import Subagents  # as a session with a model has it

    async with open_engine(**session, subagents=Subagents()) as engine:
        return engine, engine.warnings


async def _show_toolboxes(session: dict[str, Any]) -> int:
    """Every file of every toolbox with its status, and the reason for it."""
    from ferrule.output.clean import clean

    async with open_engine(**session) as engine:
        entries = engine.sources.toolbox
        folders = [warning for warning in engine.warnings if "toolbox folder" in warning]
    for warning in folders:
        click.echo(f"warning: {warning}", err=True)
    for entry in entries:
        click.echo(clean(f"{entry.status:<10}  {entry.path}  {entry.name or entry.reason}"))
        if entry.name and entry.reason:
            click.echo(clean(f"{'':<10}  {entry.reason}"))
    if not entries:
        click.echo("There are no toolbox tools. `ferrule tools make NAME` writes one.")
    return DONE


def _list(chosen: Sequence[Registered]) -> None:
    width = max(len(entry.face.name) for entry in chosen)
    for entry in chosen:
        source = "" if entry.tool.source == "builtin" else f"  ({entry.tool.source})"
        click.echo(f"{entry.face.name:<{width}}  {_headline(entry.face.words)}{source}")


def _headline(words: str) -> str:
    """The first sentence."""
    first = (words.splitlines() or [""])[0]
    return first.partition(". ")[0].removesuffix(".") + "."


def _show(entry: Registered) -> None:
    face = entry.face
    origin = f", {entry.tool.origin}" if entry.tool.origin else ""
    click.echo(f"{face.name}  (source: {entry.tool.source}{origin}; canonical name: {entry.tool.name})\n")
    click.echo(face.words)
    click.echo("\nParameters:")
    required = face.schema.get("required", ())
    for name, about in face.schema.get("properties", {}).items():
        said = about if isinstance(about, dict) else {}
        kind = said.get("type", "any")
        click.echo(f"  {name} ({kind}{', required' if name in required else ''})  {said.get('description', '')}")
