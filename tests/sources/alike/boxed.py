"""The tool as a toolbox's program; the word behind its file's name, json or text, is the form that it speaks."""

import contextlib
import json
import os
import signal
import sys
import time

FORM = os.path.basename(sys.argv[0]).rpartition("_")[2]
DESCRIBED = {
    "json": json.dumps(
        {
            "name": "count_words",
            "description": "Zählt Wörter — 数える.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "unique": {"type": "boolean"}},
                "required": ["text"],
            },
        }
    ),
    "text": "name: count_words\ndescription: Zählt Wörter — 数える.\n"
    "text: string what to count\nunique: boolean? each word once",
}


def read():
    if FORM == "json":
        return json.load(sys.stdin)
    given = dict(line.rstrip("\n").split(": ", 1) for line in sys.stdin)
    text = given["text"]
    with contextlib.suppress(ValueError):
        text = json.loads(text) if text[:1] == '"' else text
    return {"text": text, "unique": given.get("unique") == "true"}


if os.environ["TOOLBOX_ACTION"] == "describe":
    print(DESCRIBED[FORM])
    sys.exit(0)
given = read()
text = given["text"]
words = text.split()
if words[:1] == ["fail"]:
    print("I cannot count “that”.")
    sys.exit(3)
if words[:1] == ["crash"]:
    os.kill(os.getpid(), signal.SIGKILL)
if words[:1] == ["hang"]:
    print("hangs", flush=True)
    time.sleep(600)
print(f"{len(set(words) if given.get('unique') else words)} words: {text}")
