"""Dialects: the same canonical tools in every model family's words."""
