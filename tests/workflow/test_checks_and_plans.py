"""Certificates checked by a stranger, a bare table measured, and further calls planned, as a user types them."""

from __future__ import annotations

import json
from functools import partial

from made_records import refused
from test_bare_tables import make_rows, study_of, written

from assaymark.cli import main
from assaymark.workflow import study_toml, verbs


def test_certificates_follow_from_their_own_tables_and_a_changed_one_does_not(finished, tmp_path, capsys):
    paths = sorted((finished / "certificates").iterdir())
    assert main(["claim", *(part for path in paths for part in ("--verify", str(path)))]) == 0
    assert capsys.readouterr().out.count("follows from its own tables") == len(paths)
    good, bad = next(path for path in paths if path.name.startswith("above")), tmp_path / "c.json"
    raw = json.loads(good.read_text())
    raw["tuple"]["permitted_publication_level"] = "headline"
    bad.write_text(json.dumps(raw))
    assert main(["claim", "--verify", str(bad)]) == 1
    captured = capsys.readouterr()
    assert "does NOT follow from its own tables" in captured.out
    assert "publication level: the certificate says headline" in captured.out
    assert captured.err == "assaymark: 1 of 1 certificates do not follow from their own tables\n"
    for path in (good, bad):  # for a program too
        assert main(["claim", "--verify", str(path), "--json"]) == (path == bad)
        assert json.loads(capsys.readouterr().out)[str(path)]["ok"] == (path == good)
    for text, told in (
        ("{", "line 1: is not JSON"), ("[]", "must be a JSON object"),
        ('{"format": "assaymark certificate 1"}', "is read by assaymark 0.1"), ("[" * 100_000, "is not JSON"),
    ):  # fmt: skip
        bad.write_text(text)
        assert told in refused(["claim", "--verify", bad], capsys).removeprefix(f"assaymark: {bad}")


def test_a_bare_table_goes_from_scores_to_verdicts_under_a_plan_or_without(tmp_path, capsys):
    out, path = tmp_path / "out", written(tmp_path, make_rows(clusters=5, cycles=8))
    measure = ["measure", "--judgments", str(path), "--dimensions", "clarity,risk"]
    assert main([*measure, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "3 systems, 5 \nclusters, 3 judges, two criteria: 720 scores, scale 1 to 5" in said
    assert "[/] “ash ranks first of the three agents on the overall score.”" in said
    assert json.loads((out / "verdicts.json").read_text())["tally"]["headline"] == 0
    plan = study_of(extra="[rubric.weights]\nclarity = 1\nrisk = 1\n[gates]\npublish = 0.99\nhalt = 0.98\n")
    (tmp_path / "plan.toml").write_text(study_toml(plan))
    assert main([*measure, "--study", str(tmp_path / "plan.toml")]) == 0
    assert "[x] 0 supported   [/] 0 only with a condition" in capsys.readouterr().out


def test_a_plan_of_pairs_is_on_shares_of_wins(tmp_path, capsys):
    judges = [f'[[judges]]\nname = "{name}"\nmodel = "elsewhere/{name}"\nfamily = "{name}"\n'
              for name in ("north", "south")]  # fmt: skip
    rows = [f"q{q},ash,elm,{j},{'ab'[q % 3 == 0]}\n" for q in range(12) for j in ("north", "south")]
    (tmp_path / "pairs.csv").write_text("".join(["item,agent_a,agent_b,judge,winner\n", *rows]))
    plan, said = tmp_path / "plan.toml", []
    for rubric in ("", "scale = [0, 1]", 'scale = [0, 1]\nagreement = "icc"'):
        plan.write_text(f'name = "mine"\nseed = 1\n[rubric]\n{rubric}\n' + "".join(judges))
        run = main(["check", str(tmp_path / "pairs.csv"), "--study", str(plan), "--out", str(tmp_path / "out")])
        said.append((run, "pairs give shares of comparisons won; the plan needs" in capsys.readouterr().err))
    assert said == [(1, True), (1, True), (0, False)]


def test_further_calls_are_planned_from_a_finished_run(finished, capsys, monkeypatch):
    fewer = partial(verbs.plan_calls_report, studies=4)  # what it foretells is held against planted studies elsewhere
    monkeypatch.setattr(verbs, "plan_calls_report", fewer)
    assert main(["plan-calls", str(finished), "--budget", "60"]) == 0
    said = capsys.readouterr().out
    assert "of 4 simulated studies" in said
    study = said[said.index("\nD-study") + 1 : said.index("\nAssumed:")].splitlines()
    assert len(study) <= 7
    assert max(map(len, study)) <= 80
    assert main(["plan-calls", str(finished), "--budget", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    design = found["design"]
    assert (found["budget"], design["state"], set(design["per_call"])) == (60, "ok", {"J", "T", "C", "G"})
    assert f"power {design['power_now']:.2f}." in study[1]
    assert {one["option"] for one in found["prospects"]} <= {one["name"] for one in found["options"]}
