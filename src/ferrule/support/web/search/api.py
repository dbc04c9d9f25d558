"""What a back end is: as the user has set it up, and as a row that says how it is asked and how it answers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ferrule.support.web.search.result import Query, Row

DDGS = "ddgs"
"""The back end that is a library and no API."""
INSTEAD = f'set web.search.backend = "{DDGS}", which needs no key'


class Backend(NamedTuple):
    """A back end as the user has set it up."""

    name: str
    url: str = ""
    """Another address than its own."""
    key: str = ""
    key_env: str = ""
    """The variable that the key is from."""
    seconds: float = 30.0
    proxy: str = ""


class Asked(NamedTuple):
    """What is sent to a back end."""

    parameters: Mapping[str, str | int] = {}
    headers: Mapping[str, str] = {}
    body: Any = None
    """Sent as JSON; where there is none, the query is in the address."""


class Api(NamedTuple):
    """A row: one back end that is asked over HTTP and answers in JSON."""

    name: str
    title: str
    ask: Callable[[Query, str], Asked]
    """The query and the key → what is sent."""
    rows: Callable[[Mapping[str, Any]], Iterable[Row]]
    """The answer → its results. Raises `Odd`."""
    path: str
    address: str = ""
    key_env: str = ""
    """Where the key is, unless the settings say otherwise; empty where none is needed."""
    most: int = 20
    """How many results it gives at once."""
    refused: str = ""
    """What status 403 means, where it is not about a key."""

    def variable(self, backend: Backend) -> str:
        """The variable that is to have the key."""
        return backend.key_env or self.key_env


class Odd(ValueError):  # noqa: N818 - the state of an answer
    """An answer of another shape than the API has."""


def listed(value: object) -> list[dict[str, Any]]:
    """The members of a list that are objects. Raises `Odd` where it is no list."""
    if not isinstance(value, list):
        raise Odd
    return [member for member in value if isinstance(member, dict)]
