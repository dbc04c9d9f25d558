"""What translating a stream costs: a call with a long argument, from the Messages API to Chat chunks, in small pieces.

Speed is given for the bytes on the wire that come in. Most of them are not argument: an event with 20 bytes of it has
150 bytes. How many bytes of argument that makes is in the detail. Nothing is waited for here, so time is the
processor's: whoever else works on the machine does not count.
"""

import json
import statistics
import time
from collections.abc import Iterator

from bench.measure import Row, ratio
from ferrule.wire import AnswerEnd, AnswerStart, Delta, Use, UseBegun, UseEnded, UsePiece
from ferrule.wire.anthropic_stream import AnthropicReader, AnthropicWriter
from ferrule.wire.openai_chat_stream import ChatReader, ChatWriter
from ferrule.wire.stream import EventReader, assemble, text
from ferrule.wire.translate import translate

SIZE = 200_000
NETWORK_BYTES = 4096
"""What comes from a socket at once."""
LINE = 'def größe(x: int) -> str:\n    return "x" * x  # \\ done\n'
ROUNDS = 15


def rows() -> Iterator[Row]:
    for fragment in (20, 50, 100, 1000, SIZE):
        yield _speed(fragment)
    for factor in (2, 4):
        yield _growth(factor, fragment=50)


def _speed(fragment: int) -> Row:
    argument, chunks = _stream(SIZE, fragment)
    wire = sum(map(len, chunks))
    assert _heard(b"".join(_translate(chunks))) == (Use("toolu_1", "Write", json.loads(argument)),)
    times = [_seconds(chunks) for _ in range(ROUNDS + 2)][2:]
    seconds = statistics.median(times)
    per_second = wire / seconds / 1e6
    return Row(
        f"a 200 KB argument in pieces of {fragment:,}, Messages to Chat: 50 MB/s of wire against what was reached",
        50 / per_second,
        1,
        detail=f"{per_second:.0f} MB/s of wire, {len(argument.encode()) / seconds / 1e6:.1f} MB/s of argument, "
        f"{seconds * 1000:.1f} ms",
    )


def _growth(factor: int, *, fragment: int) -> Row:
    small, large = _stream(SIZE, fragment)[1], _stream(SIZE * factor, fragment)[1]
    ones, others = [], []
    for _ in range(ROUNDS):
        others.append(_seconds(large))
        ones.append(_seconds(small))
    return Row(
        f"the same with {factor} times the argument, against {factor} times the time", ratio(others, ones) / factor, 1.3
    )


def _seconds(chunks: list[bytes]) -> float:
    start = time.process_time()
    for _ in _translate(chunks):
        pass
    return time.process_time() - start


def _translate(chunks: list[bytes]) -> Iterator[bytes]:
    return translate(AnthropicReader(), ChatWriter(created=0), chunks)


def _stream(size: int, fragment: int) -> tuple[str, list[bytes]]:
    """The argument, and the bytes of the stream as they come from the network."""
    content = (LINE * (size // len(LINE) + 1))[:size]
    argument = json.dumps({"file_path": "src/file.py", "content": content}, ensure_ascii=False)
    pieces = [argument[at : at + fragment] for at in range(0, len(argument), fragment)]
    deltas: list[Delta] = [AnswerStart("msg_1", "claude"), UseBegun(0, "toolu_1", "Write")]
    deltas += [UsePiece(0, piece) for piece in pieces]
    deltas += [UseEnded(0), AnswerEnd("tools")]
    writer = AnthropicWriter()
    stream = b"".join(text(event) for delta in deltas for event in writer.write(delta))
    return argument, [stream[at : at + NETWORK_BYTES] for at in range(0, len(stream), NETWORK_BYTES)]


def _heard(stream: bytes) -> tuple[object, ...]:
    reader = ChatReader()
    deltas = [delta for event in EventReader().feed(stream) for delta in reader.read(event)]
    return assemble(deltas + reader.end()).parts
