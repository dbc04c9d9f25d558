"""The ids of calls, written as an API demands them and read back without loss.

A call has one id on every wire: the one that its model gave it. Only two places demand a form. Anthropic takes
letters, digits, `_` and `-`; an item of the Responses API (not its `call_id`) begins with `fc_`. An id that does not
fit is spelt out behind a mark, and `incoming` knows the mark. For every form, `incoming(outgoing(id))` is the id, and
an id that the API itself gave comes back to it as it was.
"""

import hashlib
import re
from typing import NamedTuple

from ferrule.wire.shape import WireError


class Form(NamedTuple):
    """What an API demands of an id."""

    prefix: str
    """How the id must begin."""
    mark: str
    """How an id begins that had to be spelt out."""


ITEM = Form(prefix="fc_", mark="fc_x_")
PLAIN = Form(prefix="", mark="toolu_x_")

LIMIT_CHARS = 1000
"""No API takes ids of this length; one that long is not looked into."""

_FITS = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPE = re.compile(r"-([0-9a-f]{2})")
_UNSPELT = re.compile(rb"[^A-Za-z0-9_]")


def outgoing(id_: str, form: Form) -> str:
    """An id as the API takes it: itself where it fits."""
    if _fits(id_, form) and incoming(id_, form) == id_:
        return id_
    spelt = _spelt(id_, form)
    if len(spelt) > LIMIT_CHARS:
        raise WireError(f"The id of a call may have at most {LIMIT_CHARS} characters where it has to be spelt out.")
    return spelt


def incoming(id_: str, form: Form) -> str:
    """The id that was meant by one on the wire: itself unless it was spelt out."""
    if not id_.startswith(form.mark) or len(id_) > LIMIT_CHARS:
        return id_
    meant = _meant(id_.removeprefix(form.mark))
    # Whatever `outgoing` would not have written is an id of the API's own that happens to look like ours.
    if meant is None or _spelt(meant, form) != id_:
        return id_
    return id_ if _fits(meant, form) and incoming(meant, form) == meant else meant


def made(seed: str, at: int) -> str:
    """An id for a call that came without one: the same for the same seed and place, and different for any other."""
    return "call_" + hashlib.sha256(f"{at}\0{seed}".encode(errors="surrogatepass")).hexdigest()[:24]


def _fits(id_: str, form: Form) -> bool:
    return id_.startswith(form.prefix) and _FITS.fullmatch(id_) is not None


def _spelt(id_: str, form: Form) -> str:
    raw = id_.encode(errors="surrogatepass")
    return form.mark + _UNSPELT.sub(lambda found: b"-%02x" % found.group()[0], raw).decode("ascii")


def _meant(spelt: str) -> str | None:
    try:
        raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), spelt).encode("latin-1")
        return raw.decode(errors="surrogatepass")
    except UnicodeError:
        return None
