"""Everyday work and attacks, tried whole on a real machine: larger than what `make test` can hold, and not shipped."""
