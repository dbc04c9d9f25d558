"""OpenAI Responses: whole messages from here, streams from `reader` and `writer`."""

from ferrule.wire.openai_responses.bodies import (
    SEARCHES,
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
from ferrule.wire.openai_responses.turns import NAME, results_out, turns_in, turns_out

__all__ = [
    "NAME",
    "SEARCHES",
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
