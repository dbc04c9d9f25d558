"""Client programs: the environment and the options by which each asks the proxy."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

_BASE = MappingProxyType(
    {
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "{token}",
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_BASE": "{url}/v1",
        "OPENAI_API_KEY": "{token}",
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_API_KEY": "{token}",
    }
)
"""What most programs read."""
_UNSET = ("GOOGLE_API_KEY",)
"""What would come before that: Google's package takes this key and leaves the other one."""
_WAYS = ("http_proxy", "all_proxy")
_DIRECT = ("no_proxy", "NO_PROXY")


class Program(NamedTuple):
    """What one program needs besides."""

    environment: Mapping[str, str] = MappingProxyType({})
    unset: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Stand before the user's own."""


_CODEX = "model_providers.ferrule"
PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        # With a key as well it would ask which one to use.
        "claude": Program({"ANTHROPIC_AUTH_TOKEN": "{token}"}, unset=("ANTHROPIC_API_KEY",)),
        "codex": Program(
            arguments=(
                *("-c", 'model_provider="ferrule"', "-c", f'{_CODEX}.name="Ferrule"'),
                *("-c", f'{_CODEX}.base_url="{{url}}/v1"', "-c", f'{_CODEX}.env_key="OPENAI_API_KEY"'),
                *("-c", f'{_CODEX}.wire_api="responses"'),
            )
        ),
        "gemini": Program({"GEMINI_DEFAULT_AUTH_TYPE": "gemini-api-key"}),
        "qwen": Program(arguments=("--auth-type", "openai")),
    }
)


class ProgramLaunch(NamedTuple):
    """How a program is started."""

    command: list[str]
    environment: dict[str, str]


def start_of(
    command: Sequence[str], url: str, token: str, environment: Mapping[str, str] = os.environ
) -> ProgramLaunch:
    """The command line and the environment of a program that is to ask the proxy."""
    name = os.path.basename(command[0]).removesuffix(".cmd").removesuffix(".exe")
    program = PROGRAMS.get(name, Program())
    filled = {key: text.format(url=url, token=token) for key, text in {**_BASE, **program.environment}.items()}
    filled |= _direct(url, environment)
    unset = {*program.unset, *_UNSET}
    kept = {key: text for key, text in {**environment, **filled}.items() if key not in unset}
    first = [word.format(url=url, token=token) for word in program.arguments]
    return ProgramLaunch([command[0], *first, *command[1:]], kept)


def _direct(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The machines that a program asks without a proxy on the way: this one too, where there is such a proxy."""
    if not any(environment.get(spelling) for way in _WAYS for spelling in (way, way.upper())):
        return {}
    host = urlsplit(url).hostname or ""
    there = next((text for name in _DIRECT if (text := environment.get(name, ""))), "")
    return dict.fromkeys(_DIRECT, f"{there},{host}" if there else host)
