"""Measurements, as ratios taken in one run so that a slow or busy machine changes little. `make bench` runs them."""
