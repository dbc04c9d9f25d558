"""`ferrule tools use`: one call with its arguments as options."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from ferrule.cli.call import show_unused
from ferrule.cli.codes import DONE, FAILED
from ferrule.cli.loop import finish
from ferrule.cli.options import as_text, engine_options, exit_code, open_engine, show_report
from ferrule.cli.show import plain
from ferrule.core.call import Call
from ferrule.core.reply import Reply
from ferrule.sources.toolbox.naming import PREFIX

_VALUES = "ferrule.values"


class Options(click.Command):
    """A command whose unknown options are a tool's parameters."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, ctx.meta[_VALUES] = divided(args, self.params)
        return super().parse_args(ctx, own)


@click.command("use", cls=Options, options_metavar="[--PARAMETER VALUE]... [OPTIONS]")
@click.argument("name")
@click.option("--only", type=click.Choice(["output", "exitCode"]), help="Print only this.")
@click.option("--json", "as_json", is_flag=True, help="Print the reply object.")
@engine_options()
@click.pass_context
def command(ctx: click.Context, /, name: str, *, only: str | None, as_json: bool, **session: Any) -> int:
    """Run the tool NAME; its parameters are options.

    Prints {"output": …, "exitCode": …}; notes go to standard error. `tb__` may be left out. What stands behind a lone
    `--` belongs to the tool, also where an option of this command has the same name.
    Exit codes: 0 done, 1 the tool failed, 2 wrong use, 3 refused.

    \b
    Examples:
      ferrule tools use run-tests --dir src --only output
      ferrule tools use Read --path README.md --read_range '[1, 5]' --only output
    """
    reply, code = finish(_used(name, ctx.meta[_VALUES], session))
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


async def _used(name: str, given: Sequence[tuple[str, str | None]], session: dict[str, Any]) -> tuple[Reply, int]:
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


def divided(args: Sequence[str], params: Sequence[click.Parameter]) -> tuple[list[str], list[tuple[str, str | None]]]:
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
