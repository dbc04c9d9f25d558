"""Canonical tools that faces name already and that are not here yet, with the issue that brings each."""

from collections.abc import Mapping

COMING: Mapping[str, int] = {}
