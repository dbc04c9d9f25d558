"""Tests of what keeps commands from what they must not touch."""
