"""Hooks: programs and functions of the user that are told of calls, before and after."""
