"""Frames, questions and answers, and the process of a language server."""
