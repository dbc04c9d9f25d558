"""What dialects cost: definitions, and a call from one family's words into another's."""

import functools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.measure import Row
from ferrule import Engine
from ferrule.core.call import Call
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.dialects.claude import NAMES, claude_code_definition
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.registry.foreign import Family
from ferrule.tools import BUILTIN, load

_EDIT = {"path": "src/app.py", "old_str": "x = 1\n", "new_str": "x = 2\n"}
_FOREIGN = {"file_path": "src/app.py", "instruction": "two", "old_string": "x = 1\n", "new_string": "x = 2\n"}


def rows() -> Iterator[Row]:
    faces = [face for face in load_dialect("claude").faces if face.name in NAMES]
    assert len(faces) == len(NAMES)
    yield Row(
        "definitions of the whole claude dialect, warm",
        _median(lambda: [face.definition() for face in faces]) * 1e3,
        1.0,
        "ms",
        f"{len(faces)} tools",
    )
    tools = [{"name": name, "description": "", "input_schema": {}} for name in NAMES]
    yield Row(
        "claude_code_definition of all of them",
        _median(lambda: [claude_code_definition(tool) for tool in tools]) * 1e3,
        1.0,
        "ms",
    )
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder, dialect="claude")
        yield Row("Engine.definitions() of a session", _median(engine.definitions) * 1e3, 1.0, "ms")
    registry = _registry("amp")
    yield Row(
        "a call in the session's own words, heard and made canonical",
        _median(lambda: _heard(registry, Call("edit_file", _EDIT))) * 1e6,
        20,
        "µs",
    )
    yield Row(
        "a call in another family's words, heard and made canonical",
        _median(lambda: _heard(registry, Call("replace", _FOREIGN))) * 1e6,
        20,
        "µs",
    )
    own = {face.name: face for face in load_dialect("amp").faces}["edit_file"]
    other = {face.name: face for face in load_dialect("gemini").faces}["replace"]
    yield Row(
        "a call's arguments from one face's words into another's",
        _median(lambda: other.advertised(own.heard(_EDIT))) * 1e6,
        20,
        "µs",
    )


def _heard(registry: Registry, call: Call) -> object:
    assert isinstance(call.input, dict)
    heard = registry.hear(call.name, call.input)
    return heard.face.completed(heard.spoken.heard(heard.values))


def _registry(name: str) -> Registry:
    dialect = load_dialect(name)
    others = [load_dialect(other) for other in FAMILIES if other != name]
    return Registry(
        [Later(tool, functools.partial(load, tool)) for tool in BUILTIN],
        dialect.faces,
        dialect.aliases,
        lambda: [Family(other.name, other.faces, other.aliases) for other in others],
    )


def _median(work: Callable[[], object], rounds: int = 400) -> float:
    for _ in range(20):
        work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
