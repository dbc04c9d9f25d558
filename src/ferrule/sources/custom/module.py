"""Python modules as tools: a `TOOL` record or a `TOOLS` list, and functions under `@tool`.

Such a module is the user's own code, with all that the user may do; nothing confines it, and one that takes forever is
waited for. What goes wrong in it is a warning. What it prints while it is read goes to the standard error: the standard
output may be somebody's protocol.

A folder called `tools` is often one of scripts that have nothing to do with this. A file that neither names `TOOL` or
`TOOLS` nor imports ferrule cannot be a tool, and is not run.
"""

import contextlib
import hashlib
import io
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ferrule.core.tool import AnyTool, Tool
from ferrule.output.clean import clean
from ferrule.sources.brought import Brought
from ferrule.sources.custom.declared import tool_of

_MOST_CHARS = 300


_NONE = "it has no TOOL, no TOOLS and no function under @tool."


def load_module(path: str, source: bytes, *, may_be_other: bool = False) -> Brought:
    """The tools of one module. It is compiled of these bytes, whatever the file may hold by now.

    `may_be_other`: is it nothing to speak of where the file is no tool at all?
    """
    import ast  # for sessions with such tools

    digest = hashlib.sha256(path.encode(errors="surrogateescape") + b"\0" + source).hexdigest()
    module = ModuleType(f"_ferrule_tools_{digest[:16]}")
    module.__file__ = path
    is_tool = False
    with foreign() as problems:
        tree = ast.parse(source, path)
        is_tool = any(_tells(node) for node in ast.walk(tree))
        code = compile(tree, path, "exec", dont_inherit=True)
    if problems:
        return Brought((), (f"failed to load {path}: {problems[0]}",))
    if not is_tool:
        return Brought((), () if may_be_other else (f"invalid tool format in {path}: {_NONE}",))
    # Classes look their module up while they are made.
    sys.modules[module.__name__] = module
    with foreign() as problems:
        exec(code, module.__dict__)  # noqa: S102 - this is what a tool module is for
    if problems:
        sys.modules.pop(module.__name__, None)
        return Brought((), (f"failed to execute {path}: {problems[0]}",))
    return _brought(module, path)


def _brought(module: ModuleType, path: str) -> Brought:
    members = dict(module.__dict__)
    listed = members.pop("TOOLS", ())
    offered: list[Any] = list(listed) if isinstance(listed, list | tuple) else [listed]
    if "TOOL" in members:
        offered.insert(0, members.pop("TOOL"))
    offered += [value for name, value in members.items() if not name.startswith("_") and isinstance(value, Tool)]
    return made_of(offered, path, none=_NONE)


def _tells(node: Any) -> bool:
    """Does this part of a module's source say that it is about tools?"""
    if getattr(node, "id", "") in {"TOOL", "TOOLS"}:
        return True
    imported = [
        getattr(node, "module", None),
        *(one.name for one in getattr(node, "names", ()) if hasattr(one, "name")),
    ]
    return any(name in {"TOOL", "TOOLS"} or str(name).split(".", 1)[0] == "ferrule" for name in imported)


def made_of(offered: list[Any], origin: str, *, none: str) -> Brought:
    """Tools of whatever a module or a package offers: tools and records, each once."""
    tools: dict[int, AnyTool] = {}
    warnings = [] if offered else [f"invalid tool format in {origin}: {none}"]
    for one in offered:
        if id(one) in tools:
            continue
        with foreign() as problems:
            tools[id(one)] = _tool(one, origin)
        warnings += [f"invalid tool format in {origin}: {problem}" for problem in problems]
    return Brought(tuple(tools.values()), tuple(warnings))


def _tool(one: Any, origin: str) -> AnyTool:
    if not isinstance(one, Tool):
        return tool_of(one, origin)
    one.source = "custom"
    one.origin = one.origin or origin
    return one


@contextlib.contextmanager
def foreign() -> Iterator[list[str]]:
    """Around code that Ferrule does not know: it prints to nobody's protocol, and what it raises is a sentence.

    The list has the sentence afterwards; also `SystemExit` and `KeyboardInterrupt` are only that.
    """
    problems: list[str] = []
    try:
        with contextlib.redirect_stdout(sys.stderr or io.StringIO()):
            yield problems
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the reading of one file
        problems.append(reason(error))


def reason(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, ValueError) and type(error) is ValueError and error.args and isinstance(error.args[0], str):
        text = error.args[0]
    else:
        import traceback  # only for what is broken; it can also tell of errors that cannot tell of themselves

        text = traceback.format_exception_only(type(error), error)[-1]
        if isinstance(error, SyntaxError) and error.lineno:
            text = f"{text.strip()} (line {error.lineno})"
    return clean(" ".join(text.split()))[:_MOST_CHARS]


def called(offer: Any) -> Any:
    """What a package offers: itself, or what it returns when it is a function and no tool."""
    is_function = callable(offer) and not isinstance(offer, Tool)
    return offer() if is_function else offer


Load = Callable[[str, bytes], Brought]
