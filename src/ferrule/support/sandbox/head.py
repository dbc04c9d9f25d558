"""The heads of HTTP messages, as the proxy reads and writes them. No header can be read in two ways."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ferrule.support.hosts import Target

_HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"upgrade"}
_WORDS = {400: "Bad Request", 403: "Forbidden", 407: "Proxy Authentication Required", 411: "Length Required"}
_WORDS |= {431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable"}


class Refusal(Exception):  # noqa: N818 - what the other side is told
    """An answer that ends the exchange."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Order(NamedTuple):
    """What the other side wants."""

    target: Target
    head: bytes
    """What the host is told; nothing for a tunnel."""
    body_bytes: int = 0


def header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(rb"[\x00\r\n]", value):
        raise Refusal(400, "A header is not well formed.")
    return name.lower(), value.strip(b" \t")


def plain(method: bytes, wanted: Target, path: str, headers: Sequence[tuple[bytes, bytes]]) -> Order:
    """One message to that host, which cannot be followed by one to another host on the same connection."""
    lengths = [value for name, value in headers if name == b"content-length"]
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise Refusal(411, "The sandbox's proxy takes bodies of plain http only with their length.")
    if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]{1,15}", length) for length in lengths):
        raise Refusal(400, "The length of the body is not clear.")
    host = str(wanted).removesuffix(":80")
    named = {each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",")}
    # A length that is dropped on demand would make the body the next message.
    dropped = _HOP_BY_HOP | {b"host"} | named - {b"content-length"}
    kept = [(name, value) for name, value in headers if name not in dropped]
    lines = [b"%s %s HTTP/1.1" % (method, path.encode()), b"host: " + host.encode(), b"connection: close"]
    lines += [name + b": " + value for name, value in kept]
    return Order(wanted, b"\r\n".join(lines) + b"\r\n\r\n", int(lengths[0]) if lengths else 0)


def answer(refusal: Refusal) -> bytes:
    body = f"{refusal}\n".encode()
    ask = b'Proxy-Authenticate: Basic realm="ferrule"\r\n' if refusal.status == 407 else b""
    # Programs that show no body show these words.
    words = str(refusal).encode("ascii", "replace") if refusal.status == 403 else _WORDS[refusal.status].encode()
    head = b"HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n" % (refusal.status, words)
    return head + ask + b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
