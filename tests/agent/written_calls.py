"""Calls as models write them into their answers: every form, of many tools, with whatever models put around them."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Pair = tuple[str, dict[str, Any]]

TOOLS: list[Pair] = [
    ("Read", {"file_path": "/w/src/app.py"}),
    ("Read", {"file_path": "/w/ünïcode – 文件.txt", "offset": 3, "limit": 20}),
    ("Bash", {"command": "grep -rn \"def main\" . | awk '{print $1}' && echo done", "timeout": 5000}),
    (
        "Edit",
        {"file_path": "/w/a.py", "old_string": "x = 1\n    y = [2, 3]", "new_string": 'x = {"k": "v\\n"}\n\ty = "ß"'},
    ),
    ("Write", {"file_path": "/w/new/README.md", "content": "# Title\n\n- one\n- two, it is <b>bold</b>\n"}),
    ("Grep", {"pattern": r"^\s*class\s+\w+\(", "path": "/w"}),
    ("read_file", {"path": "src/lib.rs"}),
    ("edit_file", {"path": "/w/a.txt", "old_str": "one", "new_str": "eins"}),
    ("run_shell_command", {"command": "make test"}),
    ("list_dir", {"dir_path": "/w"}),
]
"""In the words of several families."""


class Case(NamedTuple):
    """An answer, and the calls that are in it."""

    id: str
    text: str
    calls: list[Pair]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _json(name: str, values: dict[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": name, key: values}, ensure_ascii=False)


def _python(name: str, values: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in values.items())})"


def _parameters(values: dict[str, Any], form: str) -> str:
    return "".join(form.format(key, as_text(value)) for key, value in values.items())


def _qwen_coder(name: str, values: dict[str, Any]) -> str:
    return f"<function={name}>\n" + _parameters(values, "<parameter={}>\n{}\n</parameter>\n") + "</function>"


def _invoke(name: str, values: dict[str, Any]) -> str:
    return f'<invoke name="{name}">\n' + _parameters(values, '<parameter name="{}">{}</parameter>\n') + "</invoke>"


FORMS: dict[str, Callable[[list[Pair]], str]] = {
    "fenced": lambda calls: "\n".join(f"```json\n{_json(*call)}\n```" for call in calls),
    "fenced-pretty": lambda calls: "\n".join(
        f"```json\n{json.dumps({'name': name, 'arguments': values}, indent=2)}\n```" for name, values in calls
    ),
    "fenced-plain": lambda calls: "```\n" + "\n".join(_json(*call) for call in calls) + "\n```",
    "fenced-list": lambda calls: "```json\n[" + ", ".join(_json(*call) for call in calls) + "]\n```",
    "hermes": lambda calls: "\n".join(f"<tool_call>\n{_json(*call)}\n</tool_call>" for call in calls),
    "hermes-one-line": lambda calls: "".join(f"<tool_call>{_json(*call)}</tool_call>" for call in calls),
    "hermes-list": lambda calls: "<tool_call>\n[" + ", ".join(_json(*call) for call in calls) + "]\n</tool_call>",
    "hermes-in-a-fence": lambda calls: (
        "```xml\n" + "\n".join(f"<tool_call>{_json(*call)}</tool_call>" for call in calls) + "\n```"
    ),
    "function-call": lambda calls: "\n".join(f"<function_call>{_json(*call)}</function_call>" for call in calls),
    "qwen-coder": lambda calls: "\n".join(f"<tool_call>\n{_qwen_coder(*call)}\n</tool_call>" for call in calls),
    "qwen-coder-bare": lambda calls: "\n".join(_qwen_coder(*call) for call in calls),
    "llama": lambda calls: "\n".join(f"<function={name}>{json.dumps(values)}</function>" for name, values in calls),
    "invoke": lambda calls: "<function_calls>\n" + "\n".join(_invoke(*call) for call in calls) + "\n</function_calls>",
    "mistral": lambda calls: "[TOOL_CALLS][" + ", ".join(_json(*call) for call in calls) + "]",
    "mistral-arguments": lambda calls: "".join(
        f"[TOOL_CALLS]{name}[ARGS]{json.dumps(values)}" for name, values in calls
    ),
    "pythonic": lambda calls: "[" + ", ".join(_python(*call) for call in calls) + "]",
    "python-tag": lambda calls: "<|python_tag|>[" + ", ".join(_python(*call) for call in calls) + "]<|eom_id|>",
    "harmony": lambda calls: "".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(values)}<|call|>"
        for name, values in calls
    ),
    "harmony-start": lambda calls: "".join(
        f"<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>{json.dumps(values)}<|call|>"
        for name, values in calls
    ),
    "openai": lambda calls: (
        "```json\n"
        + json.dumps(
            {
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(values)}}
                    for name, values in calls
                ]
            }
        )
        + "\n```"
    ),
    "bare": lambda calls: "\n".join(_json(*call, key="parameters") for call in calls),
}
"""How each family was taught to write calls."""

IN_TEXT = ("qwen-coder", "qwen-coder-bare", "invoke")
"""Forms whose values are all text."""
_MARKED = ("hermes", "hermes-one-line", "qwen-coder", "qwen-coder-bare", "llama", "function-call", "mistral")
_OBJECTS = ("fenced", "fenced-plain", "hermes", "hermes-one-line", "function-call", "bare")


def _without_end(text: str) -> str:
    return text[: text.rstrip().rfind("</")].rstrip()


def _single(calls: list[Pair], form: str) -> str:
    text = FORMS[form](calls)
    for name, values in calls:
        text = text.replace(_json(name, values), repr({"name": name, "arguments": values}))
        text = text.replace(_json(name, values, "parameters"), repr({"name": name, "parameters": values}))
    return text


def _noisy(form: str, calls: list[Pair]) -> Iterator[tuple[str, str]]:
    text = FORMS[form](calls)
    yield "alone", text
    yield "prose-before", f"I will look at it first, as it's the *only* one.\n\n{text}"
    yield "blanks-and-end-marks", f"\n\n{text}\n \n<|im_end|>\n"
    yield "unicode-before", f"Ich prüfe das — 好的 👍:\n{text}\n"
    yield "code-before", f"This is wrong:\n\n```python\nx = {{'name': 'Read'}}\n```\n\n{text}"
    yield "line-ends-of-windows", "Now:\r\n" + text
    if form in _MARKED:
        yield "on-the-same-line", f"Let me see. {text}"
    if form in {"hermes", "qwen-coder", "qwen-coder-bare", "llama", "function-call"}:
        yield "no-closing-tag", _without_end(text)
    if form == "hermes":
        yield "no-closing-brace", text.replace("}}\n</tool_call>", "}\n</tool_call>")
    if form in {"fenced", "fenced-pretty", "fenced-plain", "fenced-list"}:
        yield "no-closing-fence", text.removesuffix("```")
    if form in _OBJECTS:
        yield "single-quotes", _single(calls, form)
        yield "trailing-commas", text.replace("}}", ",},}")


def cases() -> Iterator[Case]:
    """Every form with every tool and every noise, and several calls at once."""
    several = [TOOLS[0], TOOLS[2]]
    for form in FORMS:
        for at, calls in enumerate([*([one] for one in TOOLS), several]):
            for noise, text in _noisy(form, calls):
                # A line end of Windows would change the values that are written as they are.
                if noise == "line-ends-of-windows" and form in IN_TEXT and "\n" in str(calls):
                    continue
                expected = [
                    (name, {key: as_text(value) for key, value in values.items()} if form in IN_TEXT else values)
                    for name, values in calls
                ]
                yield Case(f"{form}-{noise}-{at}", text, expected)
