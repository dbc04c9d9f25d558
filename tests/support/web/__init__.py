"""Tests of the way to pages of the web."""
