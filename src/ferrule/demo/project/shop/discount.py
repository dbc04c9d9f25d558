"""Less to pay for large orders."""

THRESHOLD = 2000
PERCENT = 10


def discount(full):
    """What is taken off a sum, in cents."""
    if full > THRESHOLD:
        return full * PERCENT // 100
    return 0
