"""Make tools from typed functions.

The schema of a function comes from its signature, and the description from its docstring.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints, overload

import msgspec

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool, Args, Context, Tool

F = TypeVar("F", bound=Callable[..., Any])
Touches = Access | Sequence[Access] | Callable[..., Access | Sequence[Access]]


class FunctionTool(Tool[Args, Any]):
    """What `@tool` makes. It can still be called as the function that it was."""

    own_thread = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        touches: Touches | None = None,
        timed: bool = True,
        inline: bool = False,
        guidance: str = "",
    ) -> None:
        self._function = function
        self._touches = touches
        self.name = str(name or getattr(function, "__name__", ""))
        if not self.name:
            raise ConfigError(f"A tool made of {function!r} needs a name.")
        _check(function, self.name, touches)
        self.timed = timed
        self.own_thread = not inline
        self.guidance = guidance
        self.words = inspect.cleandoc(function.__doc__ or "")
        if not self.words:
            raise ConfigError(f"The tool {self.name} needs a docstring: it is the description that the model reads.")
        self._wants_context, fields = _fields(function, self.name)
        try:
            made = msgspec.defstruct(f"{self.name}_args", fields, bases=(Args,), frozen=True, kw_only=True)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The tool {self.name}: {error}") from error
        self.args = cast("type[Args]", made)
        self.schema = _schema(self.args, self.name)
        self._touches_by = _parameters(touches, self.args, self.name) if callable(touches) else ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def access(self, args: Args, ctx: Context) -> tuple[Access, ...]:
        if self._touches is None:
            return (EVERYTHING,)
        declared = self._touches
        if callable(declared):
            declared = declared(**{name: getattr(args, name) for name in self._touches_by})
        return tuple(
            resolve_access(access, ctx) for access in ((declared,) if isinstance(declared, Access) else declared)
        )

    async def run(self, args: Args, ctx: Context) -> Any:
        values = _values(args)
        if self._wants_context:
            values[self._wants_context] = ctx
        result = self._function(**values)
        return await result if inspect.isawaitable(result) else result


@overload
def tool(function: F, /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    touches: Touches | None = None,
    timed: bool = True,
    inline: bool = False,
    guidance: str = "",
) -> Callable[[F], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    touches: Touches | None = None,
    timed: bool = True,
    inline: bool = False,
    guidance: str = "",
) -> Any:
    """Make a tool of a typed function.

    `touches` says what a call touches: a list of `Access`, or a function of some of the arguments that returns one;
    without it a call runs alone and asks. The body runs on a thread of its own, where it may block; `inline=True` runs
    an async body on the engine's loop, for code that belongs to that loop and never blocks it. `guidance` is for the
    system prompt: how the tool is meant to be used.
    """

    def make(function: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(function, name=name, touches=touches, timed=timed, inline=inline, guidance=guidance)

    return make if function is None else make(function)


def _check(function: Callable[..., Any], name: str, touches: Touches | None) -> None:
    """Refuse what could only fail later, in front of a model."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ConfigError(f"A tool cannot be called {name!r}: model APIs take letters, digits, _ and -, 64 at most.")
    if inspect.isclass(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"The tool {name}: a class or a generator cannot be a tool; write a function that returns.")
    given: object = touches
    listed = given if isinstance(given, (list, tuple)) and not isinstance(given, Access) else (given,)
    if not callable(given) and given is not None and not all(isinstance(access, Access) for access in listed):
        raise ConfigError(f"The tool {name}: touches takes Access values, or a function that returns them.")


def resolve_access(access: Access, ctx: Context) -> Access:
    """The access with real paths in it."""
    if access.kind == "path":
        return access._replace(key=ctx.path(access.key))
    return access._replace(folder=ctx.path(access.folder or ".")) if access.kind == "command" else access


def _values(args: Args) -> dict[str, Any]:
    return {field: getattr(args, field) for field in args.__struct_fields__}


def _fields(function: Callable[..., Any], name: str) -> tuple[str, list[Any]]:
    """The name of the parameter that takes the context, if any, and the fields of all others."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ConfigError(f"The tool {name}: its types cannot be read: {error}.") from error
    wants = ""
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"The tool {name}: a parameter like {parameter} cannot be described to a model.")
        if parameter.name not in hints:
            raise ConfigError(f"The tool {name}: the parameter {parameter.name} needs a type.")
        hint = _describe_hint(hints[parameter.name])
        if hint is Context:
            if wants:
                raise ConfigError(f"The tool {name}: {wants} and {parameter.name} both take the context.")
            wants = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter, name)))
    return wants, fields


def _describe_hint(hint: Any) -> Any:
    """`Annotated[int, "how many"]` describes the parameter to the model."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    for note in notes:
        kind = Annotated[kind, msgspec.Meta(description=note) if isinstance(note, str) else note]
    return kind


def _default(parameter: inspect.Parameter, name: str) -> Any:
    if isinstance(parameter.default, (list, dict, set, bytearray)) and parameter.default:
        raise ConfigError(
            f"The tool {name}: the default of {parameter.name} is mutable and would be shared by all calls; "
            "use None, or an empty one."
        )
    return msgspec.field(default=parameter.default)


def _parameters(touches: Callable[..., Any], args: type[Args], name: str) -> tuple[str, ...]:
    """The arguments that a function of them asks for."""
    known, asked = args.__struct_fields__, inspect.signature(touches).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in asked):
        return known
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = [parameter for parameter in asked if parameter.kind in by_name and parameter.name in known]
    missing = [str(parameter) for parameter in asked if parameter not in given and parameter.default is parameter.empty]
    if missing:
        raise ConfigError(f"The tool {name}: touches asks for {', '.join(missing)}, which is no parameter of the tool.")
    return tuple(parameter.name for parameter in given)


def _schema(args: type[Args], name: str) -> Mapping[str, Any]:
    try:
        (top,), parts = msgspec.json.schema_components([args], ref_template="#/$defs/{name}")
    except TypeError as error:
        kind = re.search(r"type <class '(.+)'> is not supported", str(error))
        raise ConfigError(f"The tool {name}: the type {kind[1] if kind else error} has no JSON form.") from error
    schema = parts.pop(top["$ref"].rsplit("/", 1)[-1])
    schema.pop("title", None)
    return {**schema, "$defs": parts} if parts else schema


class SourceTools(NamedTuple):
    """The tools of one source, as they are now."""

    tools: tuple[AnyTool, ...]
    warnings: tuple[str, ...] = ()
    """What could not be used, each as a sentence with the file or the server in it."""
