"""Tests of the layer that knows the operating system and no tool."""
