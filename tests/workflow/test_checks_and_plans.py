"""Certificates checked by a stranger, a bare table measured, and further calls planned, as a user types them."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from assaymark.cli import main
from assaymark.workflow import verbs


def certificate(run, head: str):
    return next(path for path in sorted((run / "certificates").iterdir()) if path.name.startswith(head))


def test_every_certificate_of_a_run_follows_from_its_own_tables(finished, capsys):
    paths = sorted((finished / "certificates").iterdir())
    assert main(["claim", *(part for path in paths for part in ("--verify", str(path)))]) == 0
    assert capsys.readouterr().out.count("follows from its own tables") == len(paths)


def test_a_changed_certificate_is_found_and_said(finished, tmp_path, capsys):
    raw = json.loads(certificate(finished, "above").read_text())
    raw["tuple"]["permitted_publication_level"] = "headline"
    path = tmp_path / "c.json"
    path.write_text(json.dumps(raw))
    assert main(["claim", "--verify", str(path)]) == 1
    captured = capsys.readouterr()
    assert "does NOT follow from its own tables" in captured.out
    assert "publication level: the certificate says headline" in captured.out
    assert captured.err == "assaymark: 1 of 1 certificates do not follow from their own tables\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1: is not JSON"), ("[]", "must be a JSON object"),
        ('{"format": "assaymark certificate 1"}', "is read by assaymark 0.1"), ("[" * 100_000, "is not JSON"),
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused_by_name(tmp_path, capsys, text, told):
    path = tmp_path / "c.json"
    path.write_text(text)
    assert main(["claim", "--verify", str(path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"assaymark: {path}")
    assert told in message
    assert "Traceback" not in message


def test_claim_and_measure_say_what_they_need(capsys):
    assert main(["claim"]) == 2
    assert main(["measure"]) == 2
    assert main(["datasheet"]) == 2
    capsys.readouterr()


def scores(path):
    rng = np.random.default_rng(1)
    lines = ["trajectory,agent,cluster,cycle,judge,family,trial,clarity,risk"]
    for cycle in range(40):
        base = 3 + rng.normal(0, 0.6)
        for agent, effect in (("ash", 0.9), ("birch", 0.0), ("cedar", 0.0)):
            quality = base + effect + rng.normal(0, 0.4, 2)
            for judge in ("north", "south", "east"):
                given = np.clip(np.floor(quality + rng.normal(0, 0.4, 2) + 0.5), 1, 5).astype(int)
                lines.append(f"{agent}{cycle},{agent},w{cycle // 8},c{cycle},{judge},{judge},1,{given[0]},{given[1]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_bare_table_goes_from_scores_to_verdicts(tmp_path, capsys):
    out = tmp_path / "out"
    path = str(scores(tmp_path / "s.csv"))
    assert main(["measure", "--judgments", path, "--dimensions", "clarity,risk", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "3 systems, 5 \nclusters, 3 judges, two criteria: 720 scores, scale 1 to 5" in said
    assert "[/] “ash ranks first of the three agents on the overall score.”" in said
    assert json.loads((out / "verdicts.json").read_text())["tally"]["headline"] == 0


def test_a_bare_table_under_a_plan_of_ones_own(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    judges = "".join(
        f'[[judges]]\nname = "{j}"\nmodel = "elsewhere/{j}"\nfamily = "{j}"\n' for j in ("north", "south", "east")
    )
    rubric = "[rubric.weights]\nclarity = 1\nrisk = 1\n"
    plan.write_text(f'name = "mine"\nseed = 1\n{judges}{rubric}[gates]\npublish = 0.99\nhalt = 0.98\n')
    assert main(["measure", "--judgments", str(scores(tmp_path / "s.csv")), "--study", str(plan)]) == 0
    assert "[x] 0 supported   [/] 0 only with a condition" in capsys.readouterr().out


def test_a_plan_of_pairs_is_on_shares_of_wins(tmp_path, capsys):
    judge = '[[judges]]\nname = "{0}"\nmodel = "elsewhere/{0}"\nfamily = "{0}"\n'
    rows = [f"q{q},ash,elm,{j},{'ab'[q % 3 == 0]}\n" for q in range(12) for j in ("north", "south")]
    (tmp_path / "pairs.csv").write_text("".join(["item,agent_a,agent_b,judge,winner\n", *rows]))
    plan, said = tmp_path / "plan.toml", {}
    for rubric in ("", "scale = [0, 1]", 'scale = [0, 1]\nagreement = "icc"'):
        plan.write_text(
            f'name = "mine"\nseed = 1\n[rubric]\n{rubric}\n' + judge.format("north") + judge.format("south")
        )
        run = main(["check", str(tmp_path / "pairs.csv"), "--study", str(plan), "--out", str(tmp_path / "out")])
        said[rubric] = (run, "pairs give shares of comparisons won; the plan needs" in capsys.readouterr().err)
    assert list(said.values()) == [(1, True), (1, True), (0, False)]


def test_further_calls_are_planned_from_a_finished_run(finished, capsys, monkeypatch):
    fewer = partial(verbs.plan_calls_report, studies=4)  # what it foretells is held against planted studies elsewhere
    monkeypatch.setattr(verbs, "plan_calls_report", fewer)
    assert main(["plan-calls", str(finished), "--budget", "60"]) == 0
    said = capsys.readouterr().out
    assert "of 4 simulated studies" in said
    assert "Assumed:" in said
    rows = said.splitlines()
    start = next(at for at, row in enumerate(rows) if row.startswith("D-study"))
    study = rows[start : next(at for at, row in enumerate(rows) if row.startswith("Assumed:"))]
    assert len(study) <= 7
    assert max(map(len, study)) <= 80
    assert main(["plan-calls", str(finished), "--budget", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["budget"] == 60
    design = found["design"]
    assert design["state"] == "ok"
    assert f"power {design['power_now']:.2f}." in study[1]
    assert set(design["per_call"]) == {"J", "T", "C", "G"}
    assert {one["option"] for one in found["prospects"]} <= {one["name"] for one in found["options"]}
