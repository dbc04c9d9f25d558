"""Canonical tools that faces name already and that are not here yet, with the issue that brings each."""

from collections.abc import Mapping

COMING: Mapping[str, int] = {
    "web_fetch": 7,
    "web_search": 7,
    "lsp": 7,
    "diagnostics": 7,
    "check": 7,
}
