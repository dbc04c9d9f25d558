"""The same engine for others."""
