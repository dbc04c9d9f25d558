"""Implement `ferrule tools`: list the tools that a model is offered, count their tokens, and make new ones.

`ferrule tools --tokens` shows how much each tool adds to the prompt. `ferrule tools make` writes a toolbox tool
from a template.
"""

import os
from collections.abc import Mapping, Sequence
from shutil import which
from typing import Any, NamedTuple

import click
import msgspec

from ferrule.cli.call import show_unused
from ferrule.cli.options import as_text, engine_options, exit_code, finish, open_engine, show_report, tools
from ferrule.cli.show import DONE, FAILED, plain
from ferrule.core.access import within
from ferrule.core.call import Call, Reply
from ferrule.core.errors import UnknownTool
from ferrule.core.services import Subagents
from ferrule.core.tool import Face
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.engine import Engine
from ferrule.output import clean
from ferrule.registry import Registry
from ferrule.registry.dynamic import count, encode_definition
from ferrule.registry.dynamic import name as tokenizer
from ferrule.registry.entry import Registered
from ferrule.settings import load_settings, settings_path
from ferrule.sources.toolbox import LANGUAGES, PROJECT, Language, choose_folder, folders, make
from ferrule.sources.toolbox.tool import PREFIX
from ferrule.wire import definition_of, load_wire


class Actions(click.Command):
    """`ferrule tools make` and `ferrule tools use` are commands of their own, loaded when they are asked for."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in {"make", "use"}:
            chosen = make_command if args[0] == "make" else use_command
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
    engine, warnings = finish(_load_engine(session))
    if session["model"] is not None:
        click.echo(f"dialect: {engine.dialect.name}", err=True)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    chosen = _find_tools(engine, name)
    if tokens:
        show(engine.registry, chosen, wire, as_json=as_json)
    elif wire is not None:
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


def _find_tools(engine: Engine, name: str | None) -> list[Registered]:
    """One tool, or all that are advertised."""
    registry = engine.registry
    if name is None:
        return [registry.resolve(face.name) for face in engine.faces()]

    registry.load_all()  # who looks at a tool need not have searched for it
    try:
        return [registry.resolve(name if registry.knows(name) or not registry.knows(PREFIX + name) else PREFIX + name)]
    except UnknownTool as error:
        raise click.UsageError(error.message) from error


async def _load_engine(session: dict[str, Any]) -> tuple[Engine, Sequence[str]]:
    """The engine with all its tools, closed again: only to be looked at."""
    async with open_engine(**session, subagents=Subagents()) as engine:
        return engine, engine.warnings


async def _show_toolboxes(session: dict[str, Any]) -> int:
    """Every file of every toolbox with its status, and the reason for it."""
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


class CostRow(NamedTuple):
    """One line of the table."""

    name: str
    tokens: int
    source: str


def show(registry: Registry, chosen: list[Registered], wire: str | None, *, as_json: bool = False) -> None:
    """A table of the tools by what their definitions cost; those that only a search finds come apart."""
    shown = _sort_rows([_row(entry.face, entry.tool.source, wire) for entry in chosen])
    known = {face.name for face in registry.visible_faces()}
    later = _sort_rows(
        [_row(one.face, one.group, wire) for one in registry.deferred.values() if one.face.name not in known]
    )
    if len(chosen) == 1:
        later = []
    total = sum(row.tokens for row in shown)
    if as_json:
        rows = [row._asdict() | {"deferred": row in later} for row in (*shown, *later)]
        value = {"total": total, "counted_by": tokenizer(), "tools": rows}
        click.echo(msgspec.json.format(msgspec.json.encode(value)))
        return
    width = max(len(row.name) for row in (*shown, *later, CostRow("total", 0, "")))
    click.echo(f"{'tool':<{width}}  {'tokens':>7}  {'share':>6}  source")
    for row in shown:
        click.echo(f"{row.name:<{width}}  {row.tokens:>7,}  {row.tokens / max(total, 1):>6.1%}  {row.source}")
    click.echo(f"{'total':<{width}}  {total:>7,}  {'':>6}  counted by {tokenizer()}")
    if later:
        click.echo("\nDeferred: not in the prompt until a search finds them.")
        for row in later:
            click.echo(f"{row.name:<{width}}  {row.tokens:>7,}  {'':>6}  {row.source}")
        click.echo(f"{'total':<{width}}  {sum(row.tokens for row in later):>7,}")


def _sort_rows(rows: list[CostRow]) -> list[CostRow]:
    return sorted(rows, key=lambda row: (-row.tokens, row.name))


def _row(face: Face, source: str, wire: str | None) -> CostRow:
    """A tool with its tokens: as a model is shown it or, with `wire`, as that model API is sent it."""
    if wire is None:
        return CostRow(face.name, count(encode_definition(face).decode()), source)

    sent = load_wire(wire).definitions_out([definition_of(face)])
    return CostRow(face.name, count(msgspec.json.encode(sent).decode()), source)


@click.command("make")
@click.argument("name")
@click.option("--bash", "language", flag_value="bash", default=True, help="Write it for bash (the default).")
@click.option("--zsh", "language", flag_value="zsh", help="Write it for zsh.")
@click.option("--python", "language", flag_value="python", help="Write it for Python.")
@click.option("--node", "language", flag_value="node", help="Write it for Node.")
@click.option("--folder", type=click.Path(), metavar="DIR", help="The toolbox that it goes into (default: your own).")
def make_command(name: str, language: Language, folder: str | None) -> int:
    """Write a toolbox tool that works, for you to change.

    \b
    Examples:
      ferrule tools make run-tests
      ferrule tools make open-ticket --python
    """
    assert language in LANGUAGES
    tools, path = load_settings().tools, settings_path()
    folder = folder or choose_folder(tools, environment=os.environ, settings_file=path)
    if folder is None:
        raise click.UsageError("There are no toolboxes (FERRULE_TOOLBOX or AMP_TOOLBOX is empty): give --folder DIR.")
    folder = os.path.abspath(os.path.expanduser(folder))
    made = make(name, language, folder)
    click.echo(f"Wrote {made}, a tool for {language}.")

    program = "python3" if language == "python" else language
    if which(program) is None:
        click.echo(f"note: {program} is not installed here, and the tool does not work without it.", err=True)
    used = folders(tools, environment=os.environ, settings_file=path).boxes
    if folder in {os.path.join(os.getcwd(), place) for place in PROJECT}:
        click.echo("It is the project's: it is used once you trust that, with `ferrule permissions trust`.")
    elif within(os.path.realpath(folder), os.path.realpath(".")):
        click.echo(f"No toolbox is found there: a project's own are {' and '.join(PROJECT)}, below its root.")
    elif not any(os.path.realpath(box.path) == os.path.realpath(folder) for box in used):
        click.echo(f"It is found once its folder is a toolbox: export FERRULE_TOOLBOX={folder}")

    taken = {one for family in FAMILIES for face in load_dialect(family).faces for one in (face.name, *face.aliases)}
    called = f"{PREFIX}{name}" if name in taken else name
    click.echo(f"Try it:    ferrule tools use {called} --text hello --only output")
    click.echo("Change it: what it says when it is described is what a model reads.")
    return DONE


_VALUES = "ferrule.values"


class ToolCommand(click.Command):
    """A command whose unknown options are a tool's parameters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, ctx.meta[_VALUES] = split_args(args, self.params)
        return super().parse_args(ctx, own)


@click.command("use", cls=ToolCommand, options_metavar="[--PARAMETER VALUE]... [OPTIONS]")
@click.argument("name")
@click.option("--only", type=click.Choice(["output", "exitCode"]), help="Print only this.")
@click.option("--json", "as_json", is_flag=True, help="Print the reply object.")
@engine_options()
@click.pass_context
def use_command(ctx: click.Context, /, name: str, *, only: str | None, as_json: bool, **session: Any) -> int:
    """Run the tool NAME; its parameters are options.

    Prints {"output": …, "exitCode": …}; notes go to standard error. `tb__` may be left out. What stands behind a lone
    `--` belongs to the tool, also where an option of this command has the same name.
    Exit codes: 0 done, 1 the tool failed, 2 wrong use, 3 refused.

    \b
    Examples:
      ferrule tools use run-tests --dir src --only output
      ferrule tools use Read --path README.md --read_range '[1, 5]' --only output
    """
    reply, code = finish(_run_tool(name, ctx.meta[_VALUES], session))
    ended = exit_code([reply])
    if as_json:
        click.echo(msgspec.json.encode(reply.as_dict()))
        return ended
    if ended not in {DONE, FAILED}:
        click.echo(plain(reply), err=True)
    elif only == "output":
        click.echo(plain(reply), err=reply.error is not None)
    elif only == "exitCode":
        click.echo(code)
    else:
        click.echo(msgspec.json.encode({"output": plain(reply), "exitCode": code}))
    for note in reply.notes:
        click.echo(f"note: {note}", err=True)
    return ended


async def _run_tool(name: str, given: Sequence[tuple[str, str | None]], session: dict[str, Any]) -> tuple[Reply, int]:
    """The reply, and the exit code: the tool's own, where it is a program and has failed."""
    async with open_engine(**session, many=False, lazy=True, on_event=show_report) as engine:
        registry = engine.registry
        await engine.sources.ensure([name])
        if not registry.knows(name):
            await engine.sources.ensure([PREFIX + name])
        if not registry.knows(name) and registry.knows(PREFIX + name):
            name = PREFIX + name
        entry = registry.resolve(name) if registry.knows(name) else None
        schema = {} if entry is None else entry.face.schema
        (reply,) = await engine.run([Call(name, arguments(given, schema))])
        show_unused(engine, reply)
    if reply.status == "done":
        return reply, DONE
    return reply, getattr(entry.tool if entry is not None else None, "exit_code", None) or FAILED


def split_args(
    args: Sequence[str], params: Sequence[click.Parameter]
) -> tuple[list[str], list[tuple[str, str | None]]]:
    """This command's own words, and the tool's parameters with their values; None for one without a value.

    What would be both is refused: a value must not become an option such as `--yes`.
    """
    flags = {word: getattr(param, "is_flag", False) for param in params for word in param.opts if word.startswith("-")}
    flags |= {"--help": True, "-h": True}
    own: list[str] = []
    values: list[tuple[str, str | None]] = []
    left = list(reversed(args))
    is_ours = True
    while left:
        word = left.pop()
        key, equals, value = word.partition("=")
        if word == "--" and is_ours:
            is_ours = False
        elif is_ours and key in flags:
            own.append(word)
            if not flags[key] and not equals and left:
                own.append(left.pop())
        elif not word.startswith("--") or word == "--":
            own.append(word)
        elif equals:
            values.append((key[2:], value))
        elif left and not left[-1].startswith("--"):
            values.append((key[2:], left.pop()))
        elif left and is_ours and left[-1].partition("=")[0] in flags:
            raise click.UsageError(
                f"Is {left[-1]} the value of {key}? Write {key}={left[-1]} if it is, and {key}=true if it is not."
            )
        else:
            values.append((key[2:], None))
    return own, values


def arguments(given: Sequence[tuple[str, str | None]], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The values as the schema has them; what does not look like it stays text, and the engine has a word on it."""
    properties = schema.get("properties", {})
    out: dict[str, Any] = {}
    for word, text in given:
        name = word if word in properties else word.replace("-", "_") if word.replace("-", "_") in properties else word
        kind = _kind(properties.get(name))
        value = True if text is None else _value(as_text(text.encode(errors="surrogateescape"), f"--{word}"), kind)
        if name in out:
            if kind != "array" or not isinstance(out[name], list):
                raise click.UsageError(f"--{word} is given twice.")
            value = [*out[name], *(value if isinstance(value, list) else [value])]
        out[name] = value
    return out


def _kind(about: Any) -> str:
    kind = about.get("type") if isinstance(about, dict) else None
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return "string" if "string" in kinds or not kinds else str(kinds[0])


def _value(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = text
    return (
        [text if isinstance(value, dict | str) else value] if kind == "array" and not isinstance(value, list) else value
    )
