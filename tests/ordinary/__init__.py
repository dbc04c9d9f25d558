"""Ferrule as an ordinary user: one that is made for it, and sessions and programs that run as that user."""
