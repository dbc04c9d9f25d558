"""Tests of the wire formats: what goes out, what comes in, and what streams."""
