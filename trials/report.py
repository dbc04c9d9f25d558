"""What came of trials: kept between runs, so that one that was stopped goes on, and written into bench/TRIALS.md."""

import hashlib
import json
import os
import platform
import re
import subprocess
import time
from typing import Any

from tests.ordinary.person import ROOT

from trials.trial import FOLDER, Row, Trial

PAGE = ROOT / "bench" / "TRIALS.md"
_KEPT = FOLDER / "results.json"
REST = "the rest"
"""The row of a trial that was stopped early."""
_MOST_WORDS = 300
_HOMES = re.compile(r"/[\w/]*/ferrule-home-\w+")


def commit() -> str:
    """The commit that is tried, with a hash of what was changed since; what this module writes does not count."""
    changed = _git("diff", "HEAD", "--", ".", ":(exclude)bench/TRIALS.md") + _git("status", "--porcelain", "-unormal")
    lines = [line for line in changed.splitlines() if not line.endswith("bench/TRIALS.md")]
    dirt = f"+{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}" if lines else ""
    return _git("rev-parse", "--short=10", "HEAD").strip() + dirt


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


def kept() -> dict[str, Any]:
    """Name of a trial → its date, commit, seconds and rows."""
    try:
        found: dict[str, Any] = json.loads(_KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def passed_today(found: dict[str, Any], name: str, version: str) -> bool:
    one = found.get(name)
    return bool(
        one
        and one["commit"] == version
        and one["date"] == time.strftime("%Y-%m-%d")
        and all(row[3] is not False and row[0] != REST for row in one["rows"])
    )


def keep(found: dict[str, Any], name: str, version: str, seconds: float, rows: list[Row]) -> None:
    # Another run may have kept something meanwhile.
    found.update(kept())
    found[name] = {"date": time.strftime("%Y-%m-%d"), "commit": version, "seconds": round(seconds), "rows": rows}
    half = _KEPT.with_suffix(".half")
    half.write_text(json.dumps(found, indent=1), encoding="utf-8")
    os.replace(half, _KEPT)


def write(found: dict[str, Any], trials: tuple[Trial, ...]) -> None:
    """The page, in the order of the list. What was tried elsewhere stays as it is there."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = ["# Trials", "", f"Tried with `make trials` on {machine}.", ""]
    lines += ["| trial | passed | failed | not tried | when | commit | seconds |", "|---|--:|--:|--:|---|---|--:|"]
    page = {**_sections(), **{one.name: _section(one, found[one.name]) for one in trials if one.name in found}}
    run = [page[trial.name] for trial in trials if trial.name in page]
    lines += [head for head, _ in run]
    lines += [f"\n{text}" for _, text in run]
    PAGE.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _sections() -> dict[str, tuple[str, str]]:
    """Name of a trial → its row at the head of the page, and its section, as they stand in the page now."""
    try:
        text = PAGE.read_text(encoding="utf-8")
    except OSError:
        return {}
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    rows = {found[1]: found[0] for found in re.finditer(r"^\| \[(\w+)\]\(#.*$", head, re.MULTILINE)}
    named = {one.partition("\n")[0].removeprefix("## "): one.rstrip("\n") for one in sections}
    return {name: (row, named[name]) for name, row in rows.items() if name in named}


def _section(trial: Trial, one: dict[str, Any]) -> tuple[str, str]:
    """The same of a trial that was tried here."""
    good, bad, untried = (sum(row[3] is wanted for row in one["rows"]) for wanted in (True, False, None))
    facts = f"{good} | {bad} | {untried} | {one['date']} | {one['commit']} | {one['seconds']:,}"
    lines = [f"## {trial.name}", "", trial.description, ""]
    lines += ["| | what | expected | measured |", "|---|---|---|---|"]
    lines += [f"| {mark(row[3])} | {_cell(row[0])} | {_cell(row[1])} | {_cell(row[2])} |" for row in one["rows"]]
    return f"| [{trial.name}](#{trial.name}) | {facts} |", "\n".join(lines)


def mark(ok: bool | None) -> str:  # noqa: FBT001 - the value itself is the subject
    return {True: "ok", False: "**FAIL**", None: "NOT TRIED"}[ok]


def _cell(text: str) -> str:
    """One line without a path of this machine."""
    plain = _HOMES.sub("~", " ".join(text.split()).replace(str(ROOT), ".").replace(os.path.expanduser("~"), "~"))
    plain = plain.replace("|", "\\|")
    return plain if len(plain) <= _MOST_WORDS else plain[:_MOST_WORDS] + " …"
