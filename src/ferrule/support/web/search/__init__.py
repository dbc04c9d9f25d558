"""Searching the web: one form of results, and a row for each back end."""
