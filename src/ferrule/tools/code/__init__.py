"""Tools that ask language servers about code."""
