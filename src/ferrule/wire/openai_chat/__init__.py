"""OpenAI Chat Completions: whole messages from here, streams from `reader` and `writer`."""

from ferrule.wire.openai_chat.bodies import (
    asked_in,
    asked_out,
    calls_in,
    choice_in,
    choice_out,
    definitions_in,
    definitions_out,
    said_in,
    said_out,
)
from ferrule.wire.openai_chat.turns import NAME, results_out, turns_in, turns_out

__all__ = [
    "NAME",
    "asked_in",
    "asked_out",
    "calls_in",
    "choice_in",
    "choice_out",
    "definitions_in",
    "definitions_out",
    "results_out",
    "said_in",
    "said_out",
    "turns_in",
    "turns_out",
]
