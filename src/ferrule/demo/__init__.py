"""The demonstration: a small project and a recorded list of calls."""
