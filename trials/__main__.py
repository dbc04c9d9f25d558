"""Run all trials, or those named: `python -m trials [--list] [--again] [NAME ...]`. Exit code 1 where a row fails."""

import argparse
import importlib
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

from trials import report
from trials.trial import Place, Row, Trial, places

NAMES = (
    *(
        "git",
        "web",
        "everyday",
        "tasks",
        "flags",
        "attacks",
        "injections",
        "restore",
        "rewind",
        "suite",
        "anywhere",
        "environments",
        "container",
        "terminal",
    ),
    "proxy",
    "small",
    "small_fresh",
)
_MOST_COLUMNS = 240
_COLOURS = {True: "\033[32m", False: "\033[31m", None: "\033[33m"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make trials", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--again", action="store_true", help="also what passed today with the same commit")
    given = parser.parse_args()
    # Whoever is started in the background of a shell ignores it, and so would every program that is sent one here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"no such trial: {', '.join(unknown)} (there are {', '.join(NAMES)})")
    trials: tuple[Trial, ...] = tuple(importlib.import_module(f"trials.{name}").TRIAL for name in NAMES)
    if given.list:
        for trial in trials:
            print(f"{trial.name:<14} {trial.description}")
        return 0
    chosen = [trial for trial in trials if trial.name in given.names or not given.names]
    with ExitStack() as stack:
        return 0 if run(chosen, trials, places(stack), again=given.again) else 1


def run(chosen: list[Trial], trials: tuple[Trial, ...], place: Place, *, again: bool) -> bool:
    """Each trial is kept and written as soon as it has ended."""
    good = True
    version, found = report.commit(), report.kept()
    for number, trial in enumerate(chosen, 1):
        head = f"[{number}/{len(chosen)}] {trial.name}"
        if not again and report.passed_today(found, trial.name, version):
            print(f"{head}: passed today with this commit (--again runs it all the same)", flush=True)
            continue
        print(f"{head}: {trial.description}", flush=True)
        start = time.monotonic()
        rows, stopped = _until_stopped(_shown(trial, place))
        report.keep(found, trial.name, version, time.monotonic() - start, rows)
        report.write(found, trials)
        bad = sum(row.ok is False for row in rows)
        untried = sum(row.ok is None for row in rows)
        more = f", {untried} NOT TRIED" if untried else ""
        print(f"{head}: {len(rows) - bad - untried} passed, {bad} failed{more}", flush=True)
        good = good and not bad and not stopped
        if stopped:
            break
    return good


def _until_stopped(source: Iterator[Row]) -> tuple[list[Row], bool]:
    """The rows, and whether ctrl-C ended them early: what was measured is kept, and the page says what is missing."""
    rows: list[Row] = []
    try:
        rows.extend(source)
    except KeyboardInterrupt:
        return [*rows, Row(report.REST, "tried", "stopped by whoever ran it", None)], True
    return rows, False


def _shown(trial: Trial, place: Place) -> Iterator[Row]:
    """The rows as they come; what goes wrong in between is a row that fails."""
    start = time.monotonic()
    source = trial.rows(place)
    while True:
        try:
            row = next(source)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - the other trials go on, and the page says what happened
            row = Row(f"{trial.name} itself", "runs to its end", f"{type(error).__name__}: {error}", False)
        colour, plain = (_COLOURS[row.ok], "\033[0m") if sys.stdout.isatty() else ("", "")
        word = report.mark(row.ok).strip("*")
        line = f"{time.monotonic() - start:6.1f} s  {row.what}: {' '.join(row.measured.split())}"
        print(f"  {colour}{word:<9}{plain} {line}"[:_MOST_COLUMNS], flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
