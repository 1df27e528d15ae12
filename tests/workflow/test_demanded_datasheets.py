"""A study that demands datasheets of its judges: measured into the run folder, held against limits, shown."""

from __future__ import annotations

import json

import pytest
from made_records import STUDY

from assaymark.cli import main

LIMITS = """
[datasheets]
vacuum_score = 2.0
verbosity = 0.15
on_failure = "no-claim"
"""


@pytest.fixture
def demanding(imported, tmp_path, capsys):
    """A judged run whose plan demands datasheets, before any is measured, and the command that goes on with it.

    Planted: the auditor gives half a point for every 100 tokens.
    """
    path = tmp_path / "s.toml"
    fond = ('model = "reference/auditor"', 'model = "reference/auditor"\nargs = { slope = 0.5, pivot = 120.0 }')
    assert fond[0] in STUDY.read_text()
    path.write_text(STUDY.read_text().replace(*fond) + LIMITS)
    assert main(["lock", str(path), "--out", str(imported)]) == 0
    assert main(["judge", str(imported)]) == 0
    capsys.readouterr()
    return imported, ["run", str(path), "--out", str(imported)]


def test_nothing_is_said_of_a_judge_without_its_datasheet(demanding):
    folder, _ = demanding
    assert main(["measure", str(folder)]) == 0
    assert main(["claim", str(folder)]) == 0
    file = json.loads((folder / "verdicts.json").read_text())
    assert file["tally"]["no-claim"] == len(file["verdicts"])
    assert any("no datasheet of this judge" in reason for reason in file["verdicts"][0]["reasons"])


def test_a_run_measures_the_datasheets_that_its_plan_demands(demanding, capsys):
    folder, run = demanding
    assert main(run) == 0
    sheets = {one.name: one.read_bytes() for one in (folder / "datasheets").iterdir()}
    assert sheets.keys() == {"auditor.json", "reader.json", "allocator.json", "outsider.json"}
    file = json.loads((folder / "verdicts.json").read_text())
    gates = {name: one for name, one in file["measurements"].items() if name.startswith("datasheet.gate")}
    assert len(gates) == 3
    assert all(one["state"] == "ok" for one in gates.values())
    failed = {name for name, one in gates.items() if any("verbosity" in text for text in one["detail"]["failed"])}
    assert failed == {"datasheet.gate[judge=auditor]"}
    assert "datasheets" in file["verdicts"][0]["binding"]
    report = folder / "report"
    assert (report / "datasheets.html").is_file()
    assert (report / "datasheet" / "auditor.html").is_file()
    assert 'href="datasheets.html"' in (report / "index.html").read_text()
    # One that is lost is made again from the ledger.
    said = (folder / "verdicts.json").read_bytes()
    (folder / "datasheets" / "reader.json").unlink()
    assert main(run) == 0
    assert {one.name: one.read_bytes() for one in (folder / "datasheets").iterdir()} == sheets
    assert (folder / "verdicts.json").read_bytes() == said
