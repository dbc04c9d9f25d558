"""Anthropic's tools that are named by a type and carry no schema, as tools that any model can be shown."""

from typing import Any

from ferrule.wire.turn import Definition


def _text(words: str) -> dict[str, Any]:
    return {"type": "string", "description": words}


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_POINT = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_ACTIONS = [
    "key",
    "type",
    "mouse_move",
    "left_click",
    "left_click_drag",
    "right_click",
    "middle_click",
    "double_click",
    "screenshot",
    "cursor_position",
]

_COMPUTER = Definition(
    "computer",
    "Use the mouse and the keyboard of a computer, and take pictures of its screen. "
    "Take a picture first to see where things are.",
    _object(
        ["action"],
        action={"type": "string", "enum": _ACTIONS, "description": "What to do."},
        coordinate={**_POINT, "description": "Where on the screen: pixels from the left, then from the top."},
        text=_text("What to type, or the key to press."),
    ),
)
_EDITOR = Definition(
    "str_replace_editor",
    "View, create and edit text files. In str_replace, old_str must occur exactly once in the file.",
    _object(
        ["command", "path"],
        command={
            "type": "string",
            "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
            "description": "What to do with the file.",
        },
        path=_text("The absolute path of the file or folder."),
        file_text=_text("For create: the content of the new file."),
        old_str=_text("For str_replace: the text to replace."),
        new_str=_text("For str_replace: the new text. For insert: the text to insert."),
        insert_line={"type": "integer", "description": "For insert: the line after which the text is inserted."},
        view_range={
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
            "description": "For view: the first and the last line, from 1; -1 is the end of the file.",
        },
    ),
)
_BASH = Definition(
    "bash",
    "Run a command in a shell that keeps its state from one call to the next.",
    _object(
        [],
        command=_text("The command to run. It is needed unless the shell is restarted."),
        restart={"type": "boolean", "description": "Start the shell anew."},
    ),
)

_KINDS = {"computer_": _COMPUTER, "text_editor_": _EDITOR, "bash_": _BASH}


def builtin(kind: str, name: str) -> Definition | None:
    """The tool that a type such as `bash_20241022` stands for, under the name that the caller gave it."""
    for prefix, definition in _KINDS.items():
        if kind.startswith(prefix) and kind.removeprefix(prefix).isdigit():
            return Definition(name or definition.name, definition.words, definition.schema)
    return None
