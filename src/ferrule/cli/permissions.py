"""`ferrule permissions`: the rules of a session, what they say about a call, and whether a project is trusted."""

import json
import os
import re
from collections.abc import Collection, Iterator
from typing import Any

import click

from ferrule.cli.options import as_text, engine_options, finish, open_engine, read_stdin
from ferrule.cli.show import DONE, FAILED, REFUSED, DefaultCommandGroup, paint
from ferrule.core.call import Call
from ferrule.engine import Engine
from ferrule.permissions import Decision
from ferrule.permissions.trust import Grants, Trust, code_files, project_files
from ferrule.settings import state_folder

_RULES = click.option(
    "--rules",
    type=click.Path(),
    metavar="FILE",
    help="Rules that replace all others: settings of Claude Code, or Amp's rules as JSON or text.",
)
_COMMANDS = frozenset({"command", "cmd"})
"""What the parameters are called that hold a command line."""
_MISSING = re.compile(r"(\w+): required, but missing")
_MISSING_ALL = re.compile(r"one of (\w+)[\w, ]* is required, but missing")
_SUBJECTS = frozenset({*_COMMANDS, "path", "file_path", "filePath", "url", "notebook_path"})
"""Arguments that decide what rules say; any others may be left out where a call is tried."""
_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red", "delegate": "cyan"}


@click.group("permissions", cls=DefaultCommandGroup)
def command() -> None:
    """Show the rules, and what they say about a call.

    \b
    Examples:
      ferrule permissions list
      ferrule permissions test Bash --command 'git status && rm -rf build'
      ferrule permissions check - < calls.jsonl
      ferrule permissions check calls.jsonl --rules .claude/settings.json
      ferrule permissions trust
    """


@command.command("list")
@engine_options("dialect", "model", "workspace", "add_dirs", "network", "allow_hosts", "mcp_config", "permission_mode")
@_RULES
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_rules(*, rules: str | None, as_json: bool, **session: Any) -> int:
    """List the rules with their files, the mode and the trust."""

    async def show() -> int:
        async with _engine(session, rules) as engine:
            for row in _rows(engine):
                if as_json:
                    click.echo(json.dumps(row, ensure_ascii=False))
                else:
                    action = paint(f"{row['action']:<8}", _COLOURS.get(row["action"], "white"))
                    click.echo(f"{action} {row['rule']}  ({row['layer']}: {row['source']})")
            if not as_json:
                _about(engine, session["workspace"])
        return DONE

    return finish(show())


@command.command("test", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@engine_options("dialect", "model", "workspace", "add_dirs", "network", "allow_hosts", "mcp_config", "permission_mode")
@_RULES
@click.argument("tool")
@click.pass_context
def test_call(ctx: click.Context, /, *, tool: str, rules: str | None, **session: Any) -> int:
    """Say what would happen to one call: `test TOOL --key value …`. Nothing is run.

    \b
    Exit code 0 when it is allowed, 3 when it asks or is denied.
    """
    given = dict(_pairs(ctx.args))

    async def decide() -> int:
        async with _engine(session, rules) as engine:
            decision = await engine.decide(Call(tool, given))
            open_ones = [*_MISSING_ALL.findall(decision.why), *_MISSING.findall(decision.why)]
            if needed := [name for name in open_ones if name in _SUBJECTS]:
                raise click.UsageError(f"What {tool} would touch is not said: give --{needed[0]}.")
            if open_ones:
                # Rules look at what a call touches; the rest may be anything.
                decision = await engine.decide(Call(tool, {**given, **{name: f"<{name}>" for name in open_ones}}))
            click.echo(f"tool: {tool}")
            click.echo(f"arguments: {json.dumps(given, ensure_ascii=False)}")
            if open_ones:
                click.echo(f"left open: {', '.join(open_ones)}")
            click.echo(f"action: {paint(decision.verdict, _COLOURS[decision.verdict])}")
            click.echo(f"matched-rule: {decision.rule or 'none'}")
            click.echo(f"source: {_source(engine, decision)}")
            click.echo(f"why: {decision.why}")
            if reason := _explain_question(engine, decision, given):
                click.echo(f"confined commands: ask. {reason}")
            return DONE if decision.verdict == "allow" else REFUSED

    return finish(decide())


@command.command("check")
@engine_options("dialect", "model", "workspace", "add_dirs", "network", "allow_hosts", "mcp_config", "permission_mode")
@_RULES
@click.argument("file", type=click.Path(), default="-")
def check(*, file: str, rules: str | None, **session: Any) -> int:
    """Decide on calls from FILE, as JSON lines.

    A line is {"tool": …, "input": {…}}. Without FILE, or with -, standard input is read.

    \b
    For each line one is printed:
      {"decision": "allow|ask|deny", "rule": …, "why": …}
    Names and parameters may be those of any dialect. Nothing is run.
    """
    lines = (read_stdin() if file == "-" else _file(file)).splitlines()

    async def decide() -> int:
        bad = False
        async with _engine(session, rules) as engine:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                call = _call(line)
                if isinstance(call, str):
                    bad = True
                    decision = Decision("deny", f"Line {number}: {call}")
                else:
                    decision = await engine.decide(call)
                said = {"decision": decision.verdict, "rule": decision.rule or None, "why": decision.why}
                click.echo(json.dumps(said, ensure_ascii=False))
        return FAILED if bad else DONE

    return finish(decide())


@command.command("trust")
@click.option(
    "-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help="The project (default: this folder)."
)
@click.option("--revoke", is_flag=True, help="Trust it no more.")
def trust(*, workspace: str, revoke: bool) -> int:
    """Trust this project's rules and code as they are now.

    Until then its rules can only tighten, and its tools, toolboxes, hooks and servers are not used. A change of any of
    these files ends the trust in all of their kind.
    """
    folder = os.path.realpath(workspace)
    kinds = (
        (Trust(state_folder()), project_files(folder), "rules, settings and hooks"),
        (Trust(state_folder(), "code"), code_files(folder), "tools and servers"),
    )
    for kept, files, what in kinds:
        if revoke:
            kept.revoke(folder)
            continue
        seen = kept.look(folder, files)
        kept.grant(folder, files, seen=seen.fingerprint)
        state = "as they are now" if seen.contents else "which are none now"
        click.echo(f"{folder} is trusted with its files of {what}, {state}.")
        for path, raw in seen.contents.items():
            click.echo(f"  {os.path.relpath(path, folder)}, {len(raw):,} bytes")
    if revoke:
        click.echo(f"{folder} is not trusted.")
    return DONE


@command.command("forget")
@click.option(
    "-C", "--workspace", type=click.Path(), metavar="DIR", default=".", help="The project (default: this folder)."
)
@click.argument("rules", nargs=-1)
def forget(*, workspace: str, rules: tuple[str, ...]) -> int:
    """Take back what "always" has saved; without RULES, list it.

    \b
    ferrule permissions forget 'Bash(git push *)'
    ferrule permissions forget pypi.org
    """
    kept = Grants(state_folder(), os.path.realpath(workspace))
    for rule in rules:
        if rule not in (known := (*kept.texts(), *kept.hosts())):
            raise click.UsageError(f"No rule {rule!r} was saved here. Saved are: {', '.join(known) or 'none'}.")
        kept.remove(rule)
        kept.remove_host(rule)
    for rule in (left := (*kept.texts(), *kept.hosts())):
        click.echo(rule)
    if not left:
        click.echo("No rules are saved here.", err=True)
    return DONE


def _engine(session: dict[str, Any], rules: str | None) -> Engine:
    return open_engine(**{**session, "answer": "deny"}, rules=rules, lazy=True)


def _explain_question(engine: Engine, decision: Decision, given: Collection[str]) -> str:
    """Why a command asks that would run without a question if it were confined whole; empty where it asks anyway."""
    is_open = decision.verdict == "ask" and not decision.fixed and not decision.rule
    return engine.why_asked() if is_open and _COMMANDS.intersection(given) else ""


def _rows(engine: Engine) -> Iterator[dict[str, str]]:
    for rules in engine.policy.sets:
        for rule in rules.rules:
            yield {"layer": rules.layer, "source": rules.source, "action": rule.action, "rule": rule.text}


def _about(engine: Engine, workspace: str) -> None:
    click.echo(f"mode: {engine.policy.standing.name}")
    click.echo(f"project rules: {'trusted' if engine.policy.trusted else 'not trusted, so they can only tighten'}")
    click.echo(f"project code: {_code(os.path.realpath(os.path.expanduser(workspace)), engine.state)}")
    why = engine.why_asked()
    click.echo(f"confined commands: {f'ask. {why}' if why else 'run without a question'}")
    for warning in engine.warnings:
        click.echo(paint(f"warning: {warning}", "yellow"))


def _code(folder: str, state: str) -> str:
    """Whether a project's tools, toolboxes, servers and skills may be used."""
    seen = Trust(state, "code").look(folder, code_files(folder))
    if not seen.contents:
        return "none"
    said = {"trusted": "trusted", "changed": "changed since you trusted it, so it is not used"}
    return f"{said.get(seen.state, 'not trusted, so it is not used')} ({len(seen.contents)} files)"


def _source(engine: Engine, decision: Decision) -> str:
    for rules in engine.policy.sets:
        if decision.rule and any(rule.text == decision.rule for rule in rules.rules):
            return f"{rules.layer} ({rules.source})"
    return "built-in"


def _call(line: str) -> Call | str:
    """The call of a line, or what is wrong with it."""
    try:
        said = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        return f"it is not JSON ({error})."
    if not isinstance(said, dict) or not isinstance(said.get("tool"), str):
        return 'it needs a tool: {"tool": "Read", "input": {"path": "a.txt"}}.'
    given = said.get("input", {})
    return Call(said["tool"], given) if isinstance(given, dict) else "its input is not an object."


def _pairs(words: list[str]) -> Iterator[tuple[str, Any]]:
    """`--key value` and `--key=value`; numbers and true, false, null are what they look like."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise click.UsageError(f"Give arguments as --key value, not {word!r}.")
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = next(rest, "")
        try:
            yield key, json.loads(value)
        except json.JSONDecodeError:
            yield key, value


def _file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return as_text(file.read(), path)
    except OSError as error:
        raise click.UsageError(f"Cannot read {path}: {error.strerror}.") from error
