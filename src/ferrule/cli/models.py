"""`ferrule models`: which models can be asked, where they are, and whether they answer."""

import asyncio
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from ferrule.cli.options import finish
from ferrule.cli.show import DONE, FAILED, USAGE, columns, format_json, paint
from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models import Model, ModelError, RetryNotice
from ferrule.models.catalog import (
    CATALOG,
    ELSEWHERE,
    NO_MODEL_IN_SHORT,
    SHORT,
    VARIABLE,
    ModelChoice,
    ModelProfile,
    check_key,
    choose,
    load_model,
    resolve_name,
)
from ferrule.models.hosts import find_host, host_names, stored_key
from ferrule.models.http import HttpModel
from ferrule.output import clean
from ferrule.settings import Models, load_settings
from ferrule.wire import ModelRequest, Turn
from ferrule.wire.stream import Assembler

_TEST_TOKENS = 2_000
_LIST_SECONDS = 30.0
_BY = {"flag": "by --model", "environment": f"by {VARIABLE}", "setting": "by models.default in the settings"}
"""Who chose a model; one that nobody chose says itself why."""


@click.command("models")
@click.argument("action", type=click.Choice(["show", "list", "test"]), default="show")
@click.argument("name", required=False)
@click.option("--model", metavar="NAME", help="The model that would be asked, as `ferrule run --model` takes it.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(action: str, name: str | None, *, model: str | None, as_json: bool) -> int:
    """Show the hosts of models and which of their keys are set, the model that is chosen, and what is known of models.

    `list HOST` asks a host for its models; `test NAME` asks a model for one word. Keys are never shown.

    \b
    Examples:
      ferrule models
      ferrule models list anthropic
      ferrule models test anthropic:claude-opus-5-5
      ferrule models test ollama:qwen3
      ferrule models --json
    """
    settings = load_settings().models
    if action == "show":
        if name is not None:
            raise click.UsageError("Write `ferrule models`, `ferrule models list HOST` or `ferrule models test NAME`.")
        _show(settings, model, as_json=as_json)
        return DONE
    if action == "list" and name is None:
        raise click.UsageError(f"Write `ferrule models list HOST`; HOST is {', '.join(host_names(settings))}.")
    code = USAGE
    try:
        # As `ferrule run` has it: what could not even be asked is wrong use.
        if action == "list":
            host = _open_host(name or "", settings)
            code = FAILED
            _print_names(finish(_names(host)), as_json=as_json)
        else:
            tested = _load_test_model(name, model, settings)
            code = FAILED
            finish(_test(tested, as_json=as_json))
    except ModelError as error:
        _complain(error, as_json=as_json)
        return code
    return DONE


def _show(settings: Models, flag: str | None, *, as_json: bool) -> None:
    try:
        choice: ModelChoice | None = choose(flag, settings)
    except ModelError:
        choice = None
    hosts = [_host(name, settings) for name in host_names(settings)]
    meant, wrong = _resolve_choice(choice, settings)
    if as_json:
        value = {
            "model": choice and {"name": choice.name, "by": choice.by, "means": meant or None, "error": wrong or None},
            "small": settings.small or None,
            "roles": {**SHORT, **settings.roles},
            "hosts": hosts,
            "known": [_row(one) for one in CATALOG],
        }
        click.echo(format_json(value))
        return
    if choice is None:
        click.echo(f"{NO_MODEL_IN_SHORT}\n")
    elif wrong:
        click.echo(
            f"{clean(choice.name)} is chosen, {choice.why or _BY[choice.by]}, and cannot be asked: {clean(wrong)}\n"
        )
    else:
        other = f", that is {clean(meant)}," if meant != choice.name else ""
        click.echo(f"{clean(choice.name)}{other} is asked, {choice.why or _BY[choice.by]}.\n")
    _table(("host", "api", "address", "key"), map(_host_line, hosts))
    click.echo(f"\nAlso {' and '.join(f'{kind}:FILE' for kind in ELSEWHERE)}.\n")
    roles = {**SHORT, **settings.roles}
    _table(("name", "stands for"), [(clean(name), clean(meant)) for name, meant in roles.items()])
    click.echo("\nPrices in dollars for a million tokens: input, output, read from the cache, written to it.\n")
    _table(("model", "window", "answer", "prices"), map(_catalog_row, CATALOG))


def _resolve_choice(choice: ModelChoice | None, settings: Models) -> tuple[str, str]:
    """The whole name of the model that is chosen, or why it means none."""
    if choice is None:
        return "", ""
    try:
        return ":".join(resolve_name(choice.name, settings)), ""
    except ConfigError as error:
        return "", str(error)


def _host(name: str, settings: Models) -> dict[str, Any]:
    try:
        host = find_host(name, settings, os.environ, stored_key)
    except ConfigError as error:
        return {
            "name": name,
            "api": "",
            "url": "",
            "key_env": "",
            "key_set": False,
            "key_from": "",
            "error": str(error),
        }
    found = {"name": name, "api": host.api, "url": host.url, "key_env": host.key_env, "key_set": bool(host.key)}
    return {**found, "key_from": host.key_from, "error": None}


def _host_line(host: dict[str, Any]) -> tuple[str, ...]:
    if host["error"]:
        return (clean(host["name"]), "", paint(clean(host["error"]), "red"), "")
    if not host["key_env"]:
        key = "none needed"
    elif host["key_from"] in {"keyring", "file"}:
        key = f"{host['key_env']} " + paint(f"is kept in the {host['key_from']}", "green")
    else:
        key = f"{host['key_env']} " + (paint("is set", "green") if host["key_set"] else paint("is not set", "dim"))
    return (clean(host["name"]), host["api"], clean(host["url"]), key)


def _row(one: ModelProfile) -> dict[str, Any]:
    prices = None if one.prices is None else one.prices._asdict()
    return {"begins": one.begins, "window": one.window, "most_output": one.most_output, "prices": prices}


def _catalog_row(one: ModelProfile) -> tuple[str, ...]:
    prices = "not known" if one.prices is None else " ".join(f"{price:g}" for price in one.prices)
    return (f"{one.begins}…", f"{one.window:,}", f"{one.most_output:,}", prices)


def _table(head: tuple[str, ...], cells: Iterable[tuple[str, ...]]) -> None:
    rows = [head, *cells]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    room = columns() if sys.stdout.isatty() else sum(widths) + 2 * len(widths)
    for number, row in enumerate(rows):
        lines = [""]
        for cell, width in zip(row, widths, strict=True):
            if lines[-1].strip() and len(lines[-1]) + len(click.unstyle(cell)) > room:
                lines.append("    ")  # a narrow terminal would break it anywhere
            lines[-1] += f"{cell:<{width}}  "
        text = "\n".join(line.rstrip() for line in lines)
        click.echo(paint(text, "bold") if number == 0 else text)


def _open_host(name: str, settings: Models) -> "HttpModel":
    """What a host is asked through for its models."""
    host = find_host(name, settings, os.environ, stored_key)
    check_key(host, name)
    return HttpModel(host, "", ModelProfile(""), settings)


async def _names(model: "HttpModel") -> list[str]:

    try:
        async with asyncio.timeout(_LIST_SECONDS):
            return await model.names()
    except TimeoutError:
        raise ModelError(
            f"{model.name.removesuffix(':')} did not list its models within {_LIST_SECONDS:g} seconds.", "network"
        ) from None
    finally:
        await model.close()


def _print_names(names: list[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(format_json(names))
        return
    for name in names:
        click.echo(clean(name))
    if not names:
        click.echo("The host lists no models.", err=True)


def _load_test_model(name: str | None, flag: str | None, settings: Models) -> Model:
    # Whoever tests wants to hear at once what is wrong.
    return load_model(name or choose(flag, settings).name, msgspec.structs.replace(settings, retries=0))


async def _test(model: Model, *, as_json: bool) -> None:

    asked = ModelRequest(
        model="", turns=(Turn("user", (Text("Answer with the one word: ready"),)),), max_tokens=_TEST_TOKENS
    )
    began, first, answer = time.perf_counter(), 0.0, Assembler()
    try:
        async for delta in model.ask(asked):
            if isinstance(delta, RetryNotice):
                click.echo(f"Asked again in {delta.seconds:.1f} s: {delta.why}.", err=True)
                answer = Assembler()
                continue
            first = first or time.perf_counter() - began
            answer.put(delta)
    finally:
        await model.close()
    seconds = time.perf_counter() - began
    said = answer.said()
    words = clean("".join(part.text for part in said.parts if isinstance(part, Text))).strip()
    cost = None if model.prices is None else model.prices.cost(said.usage)
    if as_json:
        usage = msgspec.to_builtins(said.usage)
        click.echo(
            format_json(
                {"model": model.name, "said": words, "first": first, "seconds": seconds, "usage": usage, "cost": cost}
            )
        )
        return
    price = "" if cost is None else f", ${cost:.6f}"
    click.echo(f"{clean(model.name)} said {words[:200]!r} after {first:.2f} s, all of it after {seconds:.2f} s.")
    click.echo(f"{said.usage.input} tokens in, {said.usage.output} out{price}.")


def _complain(error: ModelError, *, as_json: bool) -> None:
    if as_json:
        click.echo(format_json({"error": {"kind": error.kind, "message": clean(str(error))}}))
    else:
        click.echo(f"ferrule: {clean(str(error))}", err=True)
