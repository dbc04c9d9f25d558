"""Models: their names, their bodies, and what they say over real HTTP."""
