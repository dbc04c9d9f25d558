"""The table: every case, by its subject."""
