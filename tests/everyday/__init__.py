"""A sample of `make trials`: everyday work and attacks, as whoever runs the tests and as an ordinary user."""
