"""Tests of the stage that decides whether a call may run."""
