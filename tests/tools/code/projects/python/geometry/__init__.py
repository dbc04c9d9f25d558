"""Forms, and sums over them."""
