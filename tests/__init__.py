"""The tests, as a package: what they share is imported from `tests`."""
