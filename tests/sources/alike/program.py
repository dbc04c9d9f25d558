"""The tool as a program: the text and `--unique` are its arguments."""

import os
import signal
import sys
import time

text = sys.argv[1] if len(sys.argv) > 1 else ""
words = text.split()
if words[:1] == ["fail"]:
    print("I cannot count “that”.", end="")
    sys.exit(3)
if words[:1] == ["crash"]:
    os.kill(os.getpid(), signal.SIGKILL)
if words[:1] == ["hang"]:
    print("hangs", flush=True)
    time.sleep(600)
print(f"{len(set(words) if '--unique' in sys.argv else words)} words: {text}", end="")
