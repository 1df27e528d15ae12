"""A study that demands datasheets of its judges: measured into the run folder, held against limits, shown."""

from __future__ import annotations

import json

from made_records import STUDY

from assaymark.cli import main


def test_a_study_can_demand_datasheets_with_limits(imported, tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(STUDY.read_text() + '\n[datasheets]\nvacuum_score = 2.0\nslope = 0.3\non_failure = "no-claim"\n')
    run = ["run", str(path), "--out", str(imported)]
    assert main(run) == 0
    file = json.loads((imported / "verdicts.json").read_text())
    assert file["tally"]["no-claim"] == len(file["verdicts"])
    assert any("no datasheet of this judge" in reason for reason in file["verdicts"][0]["reasons"])
    assert main(["datasheet", "--run", str(imported)]) == 0
    names = {one.name for one in (imported / "datasheets").iterdir()}
    assert names == {"auditor.json", "reader.json", "allocator.json", "outsider.json"}
    assert main(run) == 0
    file = json.loads((imported / "verdicts.json").read_text())
    gates = {name: one for name, one in file["measurements"].items() if name.startswith("datasheet.gate")}
    assert len(gates) == 3
    assert all(one["state"] == "ok" for one in gates.values())
    assert any("slope" in text for one in gates.values() for text in one["detail"]["failed"])
    assert "datasheets" in file["verdicts"][0]["binding"]
    report = imported / "report"
    assert (report / "datasheets.html").is_file()
    assert (report / "datasheet" / "auditor.html").is_file()
    assert 'href="datasheets.html"' in (report / "index.html").read_text()
    capsys.readouterr()
