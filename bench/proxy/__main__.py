"""Play the table with our proxy, and with `--peers` with others; `--write` puts the result into RESULTS.md.

`python -m bench.proxy WORD…` plays only the cases that have one of the words in their name or group.
"""

import asyncio
import sys
import warnings
from pathlib import Path

from bench.proxy.cases import table
from bench.proxy.peers import PEERS, running
from bench.proxy.report import Tally, complain, measure, page, shown
from bench.proxy.stage import ours


async def _main(words: list[str], *, peers: bool, write: bool) -> int:
    cases = [case for case in table() if not words or any(word in f"{case.group}: {case.name}" for word in words)]
    tallies: list[Tally] = []
    async with ours() as (upstream, target):
        tallies.append(await measure(cases, upstream, target))
        complain(tallies[0])
        print(shown(tallies[0]), flush=True)
        for install in PEERS if peers else ():
            async with running(install, upstream.url) as peer:
                tallies.append(await measure(cases, upstream, peer))
            print(shown(tallies[-1]), flush=True)
    if write:
        Path(__file__).with_name("RESULTS.md").write_text(page(cases, tallies), encoding="utf-8")
    return 1 if tallies[0].cases else 0


def main() -> int:
    warnings.simplefilter("ignore")  # what the makers' packages warn of is not ours
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return asyncio.run(_main(words, peers="--peers" in sys.argv, write="--write" in sys.argv))


if __name__ == "__main__":
    sys.exit(main())
