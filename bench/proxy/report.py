"""The table as it was measured: by group for each program, with all that failed."""

import platform
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import version

from bench.proxy.stage import Case, NotServedError, Target, play
from bench.proxy.upstream import Upstream

_SHOWN = 110


@dataclass
class Tally:
    """What became of the cases with one program; counted are combinations of client, upstream and form."""

    label: str
    passed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    not_served: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cases: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """Each case that failed, and with what."""


async def measure(cases: list[Case], upstream: Upstream, target: Target) -> Tally:
    """Play every case with one program."""
    tally = Tally(target.label)
    for case in cases:
        for combination in case.combinations():
            client, wire, stream = combination
            try:
                await play(case, combination, upstream, target)
            except NotServedError:
                tally.not_served[case.group] += 1
            except Exception as error:  # noqa: BLE001 - whatever a package raises is a failure of what it read
                tally.failed[case.group] += 1
                why = " ".join(f"{type(error).__name__}: {error}".split())
                form = "stream" if stream else "whole"
                tally.cases[case.group, case.name].append(f"{client} → {wire}, {form}: {why}")
            else:
                tally.passed[case.group] += 1
    return tally


def shown(tally: Tally) -> str:
    """The sums, for a terminal."""
    passed, failed = sum(tally.passed.values()), sum(tally.failed.values())
    return f"{tally.label}: {passed} passed, {failed} failed, {sum(tally.not_served.values())} not served"


def page(cases: list[Case], tallies: list[Tally]) -> str:
    """RESULTS.md."""
    groups = list(dict.fromkeys(case.group for case in cases))
    runs = sum(len(case.combinations()) for case in cases)
    packages = ", ".join(f"{name} {version(name)}" for name in ("anthropic", "openai", "google-genai"))
    made = f"{time.strftime('%Y-%m-%d')} ({platform.system()}, Python {platform.python_version()})"
    words = f"""# The table of the proxy

Made by `python -m bench.proxy --peers --write` on {made}; do not edit it.

{len(cases)} cases, {runs} combinations of a client's API, an upstream's API, and streams or whole answers. The judges
are the makers' packages ({packages}), the laws of each API's streams
([rules.py](rules.py)), and the body that the upstream received ([seen.py](seen.py)).

Each program is given the same upstream and the same judges. *Not served* is what a program does not offer at all, or
what is asked of settings and pages that are ours. The status of a refusal is judged strictly for ours; for the others
any fitting one counts.
"""
    lines = [words, "| group | " + " | ".join(tally.label for tally in tallies) + " |"]
    lines.append("|---|" + "---|" * len(tallies))
    for group in groups:
        cells = [_cell(tally.passed[group], tally.failed[group], tally.not_served[group]) for tally in tallies]
        lines.append(f"| {group} | " + " | ".join(cells) + " |")
    sums = [_cell(sum(one.passed.values()), sum(one.failed.values()), sum(one.not_served.values())) for one in tallies]
    lines += ["| **all** | " + " | ".join(sums) + " |", ""]
    for tally in tallies:
        lines += [f"## What failed: {tally.label}", ""]
        if not tally.cases:
            lines += ["Nothing.", ""]
            continue
        lines += ["| case | combinations | the first of them |", "|---|---|---|"]
        for (group, name), found in tally.cases.items():
            first = found[0].replace("|", "\\|").replace("`", "'").replace("<", "‹")
            lines.append(f"| {group}: {name} | {len(found)} | {first[:_SHOWN]} |")
        lines.append("")
    return "\n".join(lines)


def _cell(passed: int, failed: int, not_served: int) -> str:
    judged = passed + failed
    if not judged:
        return "not served"
    share = f"{100 * passed / judged:.0f} %" if not failed else f"{100 * passed / judged:.1f} %"
    return f"{passed} of {judged} ({share})" + (f", {not_served} not served" if not_served else "")


def complain(tally: Tally) -> None:
    """Every failure, on standard error."""
    for (group, name), found in tally.cases.items():
        print(f"{tally.label}: {group}: {name}", file=sys.stderr)
        for one in found:
            print(f"    {one[:300]}", file=sys.stderr)
