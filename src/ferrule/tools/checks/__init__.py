"""Running the project's own checks."""
