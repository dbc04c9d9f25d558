"""Keeping a command from what it must not touch: one profile, and several ways to enforce it."""
