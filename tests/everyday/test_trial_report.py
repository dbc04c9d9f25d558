"""The page of the trials: what was tried elsewhere stays in it."""

from trials import report
from trials.trial import Trial


def test_a_run_of_one_trial_leaves_the_sections_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PAGE", tmp_path / "TRIALS.md")
    one, other = (Trial(name, f"About {name}.", lambda _: iter(())) for name in ("one", "other"))

    def tried(what):
        return {"date": "2026-01-01", "commit": "abc", "seconds": 3, "rows": [["a", "b", what, True]]}

    report.write({"one": tried("first"), "other": tried("yes")}, (one, other))
    both = report.PAGE.read_text()
    report.write({"other": tried("third")}, (one, other))

    assert report.PAGE.read_text() == both.replace("| yes |", "| third |")
