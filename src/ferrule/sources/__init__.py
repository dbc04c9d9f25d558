"""Tools from elsewhere than the built-in list."""
