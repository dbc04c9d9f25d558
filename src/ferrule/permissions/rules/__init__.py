"""Rules: one form inside, and a reader for each syntax that people write them in."""
