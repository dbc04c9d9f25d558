"""Run all measurements, or those named, and print them; `--write` puts them into RESULTS.md."""

import importlib
import os
import platform
import sys
import time

from bench.measure import Row

NAMES = (
    "search",
    "overhead",
    "edits",
    "start",
    "shell",
    "checkpoints",
    "analysis",
    "dialects",
    "patch",
    "stream",
    "elsewhere",
    "agent",
    "web",
    "languages",
    "terminal",
    "proxy.load",
)


def main() -> int:
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or list(NAMES)
    rows: list[Row] = []
    for name in chosen:
        for row in importlib.import_module(f"bench.{name}").rows():
            rows.append(row)
            mark = "ok  " if row.good else "MISS"
            print(
                f"{mark}  {row.value:9.3f} {row.unit:<3} (at most {row.target:g})  {row.name}  {row.detail}", flush=True
            )
    if "--write" in sys.argv:
        _write(rows)
    return 0 if all(row.good for row in rows) else 1


def _write(rows: list[Row]) -> None:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [
        "# Results",
        "",
        f"Measured with `make bench` on {time.strftime('%Y-%m-%d')}: {machine}.",
        "Ratios are medians over neighbouring pairs of one run, so that the machine's speed cancels.",
        "",
        "| what | measured | at most | detail |",
        "|---|---|---|---|",
        *(f"| {row.name} | {row.value:.3g} {row.unit} | {_limit(row)} | {row.detail} |" for row in rows),
        "",
    ]
    path = os.path.join(os.path.dirname(__file__), "RESULTS.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def _limit(row: Row) -> str:
    return "no limit" if row.target == float("inf") else f"{row.target:g} {row.unit}"


if __name__ == "__main__":
    sys.exit(main())
