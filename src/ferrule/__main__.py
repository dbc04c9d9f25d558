"""`python -m ferrule` is `ferrule`."""

import os
import sys

from ferrule.cli.main import main

# Python puts the working folder first; a workspace must not be able to stand in for a library.
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]


main()
