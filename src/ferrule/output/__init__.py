"""Stage 7: what a call gives back is cleaned, cut to its bound, and kept in full."""
