"""Tests of the rules in each of their syntaxes."""
