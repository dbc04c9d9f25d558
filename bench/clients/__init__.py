"""Real client programs in whole conversations through `ferrule proxy`; `trials/proxy.py` and the tests use it."""
