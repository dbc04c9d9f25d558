"""The full outputs of results that were cut, as resources of the server. Only those of this server's own calls."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from ferrule.core.errors import FerruleError
from ferrule.core.reply import Reply
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.serve.results import FRESH, output_uri

_PAGE_BYTES = 1 << 20
_MOST = 200


class Outputs:
    """Remembers what its calls have kept: the store itself also holds what other sessions of the user have."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.name_outputs(lambda output_id: f"the resource {output_uri(output_id)} has it.")
        self._kept: dict[str, str] = {}

    def note(self, reply: Reply) -> bool:
        """Was an output kept that is not known yet?"""
        if reply.output_id is None or reply.output_id in self._kept:
            return False
        self._kept[reply.output_id] = reply.name
        if len(self._kept) > _MOST:
            self._kept.pop(next(iter(self._kept)))
        return True

    def listed(self) -> dict[str, Any]:
        """The answer to `resources/list`, the newest first."""
        kept = reversed(self._kept.items())
        return {
            **FRESH,
            "ttlMs": 0,
            "resources": [
                {
                    "uri": output_uri(output_id),
                    "name": f"output {output_id}",
                    "description": f"The full output of a call of {name}.",
                    "mimeType": "text/plain",
                }
                for output_id, name in kept
            ],
        }

    @staticmethod
    def templates() -> dict[str, Any]:
        """The answer to `resources/templates/list`."""
        pages = {
            "uriTemplate": f"{output_uri('{id}')}{{?offset}}",
            "name": "full output",
            "description": "The full output of a call whose result was cut, from a byte on.",
            "mimeType": "text/plain",
        }
        return {**FRESH, "resourceTemplates": [pages]}

    async def read(self, uri: str) -> dict[str, Any] | None:
        """The answer to `resources/read`, a page of it where it is long; None for what is not here."""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        output_id = parts.path.strip("/")
        if (parts.scheme, parts.netloc) != ("ferrule", "output") or output_id not in self._kept:
            return None
        asked = parse_qs(parts.query).get("offset", ["0"])[0]
        if not asked.isascii() or not asked.isdigit() or len(asked) > 18:
            return None
        try:
            page = (await self._engine.output(output_id)).read(int(asked), _PAGE_BYTES)
        except FerruleError:
            return None
        contents = [{"uri": uri, "mimeType": "text/plain", "text": clean(page.text)}]
        if page.next_offset is not None:
            rest = f"{output_uri(output_id)}?offset={page.next_offset}"
            contents.append({"uri": rest, "mimeType": "text/plain", "text": f"The output goes on: read {rest}"})
        return {**FRESH, "contents": contents}
