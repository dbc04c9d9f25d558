"""The GitHub action and the container: their steps, done as a runner and a builder would do them."""
