"""Tests of the stage that bounds what a tool says, and keeps the whole of it."""
