"""Canonical tools that faces name already and that are not here yet, with the issue that brings each."""

from collections.abc import Mapping

COMING: Mapping[str, int] = {
    "delegate": 6,
    "finder": 6,
    "oracle": 6,
    "librarian": 6,
    "kraken": 6,
    "ask_user": 6,
    "enter_plan": 6,
    "exit_plan": 6,
    "todo_create": 6,
    "todo_get": 6,
    "todo_update": 6,
    "todo_list": 6,
    "find_thread": 6,
    "read_thread": 6,
    "web_fetch": 7,
    "web_search": 7,
    "lsp": 7,
    "diagnostics": 7,
    "check": 7,
}
