"""Tests of how a command line is taken apart and judged."""
