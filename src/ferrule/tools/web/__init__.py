"""Tools that reach the web."""
