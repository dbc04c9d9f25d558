"""Order conversations as model APIs demand, and share pieces that several wire formats need.

Results come right behind the calls that they answer. Shared pieces are arguments as JSON text, files as
addresses, and marks on failed results.

A call has one id on every wire: the one that its model gave it. Only two places demand a form. Anthropic takes
letters, digits, `_` and `-`; an item of the Responses API (not its `call_id`) begins with `fc_`. An id that does
not fit is spelt out behind a mark, and `incoming` knows the mark. For every form, `incoming(outgoing(id))` is
the id, and an id that the API itself gave comes back to it as it was.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.content import Document, Image, Text
from ferrule.wire import Content, Definition, Foreign, Part, Reason, Result, Thinking, Turn, Use, WireError

FREE = "input"
"""The one parameter of a free-text tool where an API knows only objects."""
_FAILED = "[Error] "


def arguments_out(use: Use) -> str:
    """Arguments as the text of a JSON object, in any case: many servers read it, and refuse the whole conversation for
    one call that they cannot read."""
    return json_text(object_out(use))


def arguments_in(text: str) -> dict[str, Any] | str:
    """JSON text as arguments. What is no object is kept as it is: the engine tells the model what is wrong with it."""
    if not text.strip():
        return {}
    try:
        read = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return read if isinstance(read, dict) else text


def object_out(use: Use) -> dict[str, Any]:
    """Arguments for an API that knows only objects. Text stands under `input`, as free-text tools have it."""
    return {FREE: use.input} if isinstance(use.input, str) else use.input


def json_text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


def picture_address(image: Image) -> str:
    """Where the picture is: its address, or the picture itself as one."""
    return image.url or f"data:{image.media_type};base64,{image.data}"


def picture(address: str) -> Image:
    """The picture at an address, which may hold the picture itself."""
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(head.removeprefix("data:").removesuffix(";base64"), data)
    return Image("", "", address)


def document_address(document: Document) -> str:
    """Where the file is: the file itself as an address."""
    return f"data:{document.media_type};base64,{document.data}"


def document_at(address: str, title: str) -> Document | None:
    """The file that an address holds; None for an address of any other form."""
    head, comma, data = address.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return Document(head.removeprefix("data:").removesuffix(";base64"), data, title=title)


def plain_text(document: Document) -> str:
    """The words of a file of plain text; empty for any other."""
    if document.text or not document.media_type.startswith("text/") or not document.data:
        return document.text
    return base64.b64decode(document.data, validate=False).decode(errors="replace")


def document_words(document: Document) -> str:
    """A file of plain text, for APIs that have no other place for one than the conversation."""
    return f"Document {document.title}:\n\n{document.text}" if document.title else document.text


def omission_note(part: Foreign | Document) -> str:
    """What stands in place of a block that this wire has no place for."""
    if isinstance(part, Document):
        return f"[The document at {part.url} was left out here.]"
    return f"[A part of the kind {part.kind} was left out here.]"


def words(result: Result) -> str:
    """The text of a result, parts joined by line ends; pictures and files are not in it."""
    return "\n".join(_words(part) for part in result.parts if not is_attached(part))


def _words(part: Content) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Document):
        return document_words(part)
    assert isinstance(part, Foreign), "Pictures have no words."
    return omission_note(part)


def is_attached(part: Content) -> bool:
    """Must it follow behind, where a result may hold only text?"""
    return isinstance(part, Image) or (isinstance(part, Document) and not part.text)


def mark_failure(text: str, *, failed: bool) -> str:
    """A result's text, for APIs that have no other place to say that it is a failure."""
    return _FAILED + text if failed else text


def strip_failure_mark(parts: Iterable[Part]) -> tuple[tuple[Content, ...], bool]:
    """What a result holds, and whether the mark of a failure stood before it. Text without words is nothing."""
    kept = [part for part in parts if isinstance(part, Text | Image | Document | Foreign)]
    first = kept[0] if kept else None
    failed = False
    if isinstance(first, Text) and first.text.startswith(_FAILED):
        failed = True
        kept[0] = msgspec.structs.replace(first, text=first.text.removeprefix(_FAILED))
    return tuple(part for part in kept if not isinstance(part, Text) or part.text), failed


FOLLOWS = "The {what} follows below."
"""A result of which nothing could stand in the result itself: without words it would look as if there were none."""


def find_attachments(result: Result) -> list[Image | Document]:
    """The pictures and files of a result that cannot stand among its text."""
    return [part for part in result.parts if isinstance(part, Image | Document) and is_attached(part)]


def words_or_pointer(result: Result) -> str:
    """The text of a result; where it has none, what follows behind it."""
    files = find_attachments(result)
    said = words(result)
    return FOLLOWS.format(what=_kind(files)) if files and not said else said


def _kind(files: Iterable[Image | Document]) -> str:
    return "image" if any(isinstance(one, Image) for one in files) else "document"


def label(result: Result, name: str) -> str:
    """What is said before pictures and files that could not stand in the result itself."""
    return f"{_kind(find_attachments(result)).capitalize()} from {name or 'the tool'} (call {result.id}):"


def reason_of(reason: Reason, parts: Iterable[Part]) -> Reason:
    """Some servers say that a model is done although it wants tools run."""
    return "tools" if reason == "end" and any(isinstance(part, Use) for part in parts) else reason


Role = Literal["system", "user", "assistant"]

_NOT_IN: dict[str, tuple[type, ...]] = {
    "user": (Use, Thinking),
    "assistant": (Result,),
    "system": (Use, Thinking, Result, Image, Document),
}


def order_turns(turns: Iterable[Turn]) -> list[Turn]:
    """Between two turns of the model, all results come first, in their order; nothing else moves.

    Every API refuses words between a call and its result, and people do write while a tool runs.
    """
    out: list[Turn] = []
    for is_model, run in groupby(turns, key=lambda turn: turn.role == "assistant"):
        given = [_check_turn(turn) for turn in run]
        out += given if is_model else _results_first(given)
    return out


def _results_first(turns: list[Turn]) -> list[Turn]:
    results = tuple(part for turn in turns for part in turn.parts if isinstance(part, Result))
    if not results:
        return turns
    rest = [
        Turn(turn.role, tuple(part for part in turn.parts if not isinstance(part, Result)), turn.extra)
        for turn in turns
    ]
    first = next(at for at, turn in enumerate(rest) if turn.role == "user")
    # A system turn between the calls and their results would stand in the way as well.
    host = rest.pop(first)
    return [Turn("user", results + host.parts, host.extra), *(turn for turn in rest if turn.parts)]


def _check_turn(turn: Turn) -> Turn:
    if wrong := next((part for part in turn.parts if isinstance(part, _NOT_IN[turn.role])), None):
        raise WireError(f"A turn of the {turn.role} cannot hold {type(wrong).__name__}.")
    return turn


def system_words(turn: Turn) -> str:
    """A system turn as one text."""
    return "\n\n".join(part.text for part in turn.parts if isinstance(part, Text))


def apart(turns: Iterable[Turn]) -> tuple[str, list[Turn]]:
    """All system turns as one text, and the turns without them: for APIs that have one place for the system's words."""
    given = list(turns)
    texts = (system_words(_check_turn(turn)) for turn in given if turn.role == "system")
    system = "\n\n".join(text for text in texts if text)
    return system, order_turns(turn for turn in given if turn.role != "system")


def uses_of(turns: Iterable[Turn]) -> dict[str, Use]:
    """The calls of a conversation by their ids."""
    return {part.id: part for turn in turns for part in turn.parts if isinstance(part, Use)}


def name_of(result: Result, uses: dict[str, Use]) -> str:
    """The tool that a result comes from, where anything says so."""
    if result.name or result.id not in uses:
        return result.name
    return uses[result.id].name


def group_turns(given: Iterable[Turn]) -> tuple[Turn, ...]:
    """Turns from what an API lists one by one: what the model said in a row is one turn, and so is what answers it.

    Results open a turn of the user, and the words right behind them belong to it. What its API says of a whole message
    keeps it apart.
    """
    turns: list[Turn] = []
    for turn in given:
        before = turns[-1] if turns and turns[-1].role == turn.role else None
        joins = before is not None and turn.extra is None and before.extra is None
        if (
            joins
            and before is not None
            and (turn.role == "assistant" or (turn.role == "user" and _only_results(before)))
        ):
            turns[-1] = Turn(before.role, before.parts + turn.parts)
        else:
            turns.append(turn)
    return tuple(turns)


def _only_results(turn: Turn) -> bool:
    return all(isinstance(part, Result) for part in turn.parts)


def unwrap_free_text(turns: Sequence[Turn], definitions: Iterable[Definition]) -> Sequence[Turn]:
    """Calls of free-text tools that came as objects, as the text that they hold."""
    names = {definition.name for definition in definitions if definition.grammar}
    if not names:
        return turns
    return [Turn(turn.role, tuple(_unwrap_part(part, names) for part in turn.parts), turn.extra) for turn in turns]


def _unwrap_part(part: Part, names: set[str]) -> Part:
    if not isinstance(part, Use) or part.name not in names or part.is_text:
        return part
    if isinstance(part.input, str):
        return Use(part.id, part.name, part.input, is_text=True)
    text = part.input.get(FREE)
    if len(part.input) != 1 or not isinstance(text, str):
        return part
    return Use(part.id, part.name, text, is_text=True)


class IdForm(NamedTuple):
    """What an API demands of an id."""

    prefix: str
    """How the id must begin."""
    mark: str
    """How an id begins that had to be spelt out."""


ITEM = IdForm(prefix="fc_", mark="fc_x_")
PLAIN = IdForm(prefix="", mark="toolu_x_")

LIMIT_CHARS = 1000
"""No API takes ids of this length; one that long is not looked into."""

_FITS = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPE = re.compile(r"-([0-9a-f]{2})")
_UNSPELT = re.compile(rb"[^A-Za-z0-9_]")


def encode_id(id_: str, form: IdForm) -> str:
    """An id as the API takes it: itself where it fits."""
    if _fits(id_, form) and decode_id(id_, form) == id_:
        return id_
    spelt = _escape_id(id_, form)
    if len(spelt) > LIMIT_CHARS:
        raise WireError(f"The id of a call may have at most {LIMIT_CHARS} characters where it has to be spelt out.")
    return spelt


def decode_id(id_: str, form: IdForm) -> str:
    """The id that was meant by one on the wire: itself unless it was spelt out."""
    if not id_.startswith(form.mark) or len(id_) > LIMIT_CHARS:
        return id_
    meant = _unescape_id(id_.removeprefix(form.mark))
    # Whatever `outgoing` would not have written is an id of the API's own that happens to look like ours.
    if meant is None or _escape_id(meant, form) != id_:
        return id_
    return id_ if _fits(meant, form) and decode_id(meant, form) == meant else meant


def derive_id(seed: str, at: int) -> str:
    """An id for a call that came without one: the same for the same seed and place, and different for any other."""
    return "call_" + hashlib.sha256(f"{at}\0{seed}".encode(errors="surrogatepass")).hexdigest()[:24]


def _fits(id_: str, form: IdForm) -> bool:
    return id_.startswith(form.prefix) and _FITS.fullmatch(id_) is not None


def _escape_id(id_: str, form: IdForm) -> str:
    raw = id_.encode(errors="surrogatepass")
    return form.mark + _UNSPELT.sub(lambda found: b"-%02x" % found.group()[0], raw).decode("ascii")


def _unescape_id(spelt: str) -> str | None:
    try:
        raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), spelt).encode("latin-1")
        return raw.decode(errors="surrogatepass")
    except UnicodeError:
        return None
