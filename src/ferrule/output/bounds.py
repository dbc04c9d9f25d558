"""Clean every result, cut it to the limit of its face, and keep the full text if it was cut.

This is the only place that bounds results. There is one pure function for each kind of bound that a family has.

The laws of `cut` hold here, too: a text that fits is returned itself, a code point is never split, and the kept
part is within the bound. There is one exception: the sentence about the missing part comes on top, as the
families have it, so a shortened text may be shortened again; the engine shortens only once. `missing` is the
number of characters that a tool has already left out of the middle; the sentences count them.
"""

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from ferrule.core.call import result_text
from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.core.face import WHOLE, Bound
from ferrule.output.clean import clean_value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ferrule.output.store import Store
    from ferrule.system.highlights import OutputHighlights


_SMALL = 200_000
"""Characters, items or members."""


class BoundingContext(Protocol):
    """What bounding needs of a call's context."""

    call_id: str
    name: str
    log: tuple[str, str] | None
    kept: int | None
    missing: int
    found: "Callable[[], OutputHighlights] | None"

    def note(self, sentence: str) -> None: ...

    def drop_log(self) -> None: ...


class BoundedResult(NamedTuple):
    """A result fit to be sent, and where the whole of it is."""

    result: Any
    output_id: str | None


class OutputLimiter:
    """Cuts and keeps."""

    def __init__(self, store: "Callable[[], Store]", where: "Callable[[str], str]") -> None:
        self._store = store
        self.where = where
        """Says how whoever reads the note gets at an output, by its id."""

    async def bound(
        self, result: Any, ctx: BoundingContext, bound: Bound = WHOLE, *, limit_bytes: int
    ) -> BoundedResult:
        """The result within the limit. Raises `ToolFailure` for a result that is no JSON value."""
        if bound is not WHOLE and isinstance(result, str):
            return await self._shorten_text(result, ctx, bound, limit_bytes)
        if isinstance(result, str) and len(result) * 4 <= limit_bytes:
            return BoundedResult(clean_value(result), await self._keep_log(ctx))
        try:
            if _is_small(result):
                kept, whole, omitted = _shape(result, limit_bytes)
            else:
                kept, whole, omitted = await asyncio.to_thread(_shape, result, limit_bytes)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise ToolFailure(
                f"{ctx.name} returned something that is not a JSON value ({type(result).__name__}).", code="bad-result"
            ) from error
        output_id = await self._keep_log(ctx)
        if omitted and output_id is None:
            output_id = await self._keep_output(
                self._store().put(result_text(whole), call_id=ctx.call_id, tool=ctx.name), ctx
            )
        return BoundedResult(kept, output_id)

    async def _shorten_text(self, result: str, ctx: BoundingContext, bound: Bound, limit_bytes: int) -> BoundedResult:
        """A text within the family's own bound; whatever that is, the general limit holds as well."""
        from ferrule.output.shorten import shorten  # for families with a bound of their own

        whole = clean_value(result)
        short = shorten(whole, bound, missing=ctx.missing, found=ctx.found)
        kept, _, omitted = _shape(short.text, limit_bytes)
        output_id = await self._keep_log(ctx)
        if (short.omitted_bytes or omitted) and output_id is None:
            output_id = await self._keep_output(self._store().put(whole, call_id=ctx.call_id, tool=ctx.name), ctx)
        return BoundedResult(kept, output_id)

    async def _keep_log(self, ctx: BoundingContext) -> str | None:
        """The id of the log that the tool itself wrote, when it is worth keeping."""
        if ctx.log is None or ctx.kept is None:
            return None
        path, size = ctx.log[1], ctx.kept
        return await self._keep_output(
            self._store().adopt(path, size_bytes=size, call_id=ctx.call_id, tool=ctx.name), ctx
        )

    async def _keep_output(self, keeping: "Coroutine[Any, Any, str]", ctx: BoundingContext) -> str | None:
        try:
            output_id = await keeping
        except FerruleError as error:
            ctx.note(f"The full output could not be kept: {error}")
            ctx.drop_log()
            return None
        ctx.note(f"The full output is kept as {output_id}: {self.where(output_id)}")
        return output_id


def _is_small(result: Any) -> bool:
    """Is it shaped before anybody would notice? What is large is shaped away from the event loop."""
    return not isinstance(result, (str, list, tuple, dict)) or len(result) < _SMALL


def _shape(result: Any, limit_bytes: int) -> tuple[Any, Any, int]:
    """The result within the limit, the whole of it, and how many bytes were left out."""
    # Values of other types become the JSON values that they stand for, so that nothing hides inside them.
    cleaned = clean_value(msgspec.to_builtins(result, str_keys=True))
    if len(msgspec.json.encode(cleaned)) <= limit_bytes:
        return cleaned, cleaned, 0
    from ferrule.output.cut import cut_value  # most outputs fit

    kept, omitted = cut_value(cleaned, limit_bytes)
    return kept, cleaned, omitted
