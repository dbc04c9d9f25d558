"""Skills: instructions that are loaded when they are needed."""
