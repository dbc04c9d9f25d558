"""Tests of the stage that turns what a call brings into what its tool takes."""
