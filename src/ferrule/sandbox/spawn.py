"""The spawner: a program of its own, started by the engine, that forks a cell for each kind of confinement.

Run as a script, without the site's packages and without this package's own beginning, so that it starts quickly
and its forks are small. It follows its socket and nothing else, and ends when the engine does.
"""

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(number: int) -> None:
    """Serve the engine at the other end of a socket."""
    import gc
    import types

    # The package's own modules, but not what it loads for its users.
    package = types.ModuleType("ferrule")
    package.__path__ = [os.path.join(_ROOT, "ferrule")]
    sys.modules["ferrule"] = package
    sys.path.insert(0, _ROOT)
    from ferrule.sandbox import parent

    sys.path.remove(_ROOT)
    gc.collect()
    gc.disable()
    gc.freeze()
    parent.serve(number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
