"""Reading a file of a skill's: a regular one of ordinary size, opened without following a link."""

import os

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import is_regular, open_folder, read_all
from ferrule.workspace.paths import Jail
from ferrule.workspace.skill import Unusable

FILE_BYTES = 1 << 18


def read_raw(jail: Jail, file: str, *, head_bytes: int | None = None) -> bytes:
    """The bytes of the file at a real path; its beginning with `head_bytes`. Raises OSError and Unusable."""
    try:
        with jail.place(file).folder() if jail.holds(file) else open_folder(os.path.dirname(file)) as folder:
            descriptor = folder.open(os.path.basename(file))
    except ToolFailure as error:
        raise Unusable(error.message.rstrip(".")) from error
    try:
        if not is_regular(descriptor):
            raise Unusable("it is no regular file")
        if (size := os.fstat(descriptor).st_size) > FILE_BYTES:
            raise Unusable(f"it has {size:,} bytes, and {FILE_BYTES:,} is the most")
        raw = read_all(descriptor, head_bytes or FILE_BYTES)
    finally:
        os.close(descriptor)
    if b"\0" in raw or len(raw) > FILE_BYTES:
        raise Unusable("it is no text")
    return raw


def as_text(raw: bytes) -> str:
    return raw.decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")
