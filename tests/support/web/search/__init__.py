"""Tests of the back ends of a search."""
