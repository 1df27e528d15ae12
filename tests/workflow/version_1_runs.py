"""Run folders as assaymark 0.1 left them: its plans, its locks, and its plan hashes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from made_records import STUDY
from season_runs import season_text

from assaymark import __version__
from assaymark.plan import Frozen
from assaymark.protocol import Study, parse_study
from assaymark.records import content_id, sha256_text
from assaymark.workflow import json_text, texts_of, texts_of_1, tracks

FIELDS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("version_1_plans.json").read_text())
"""The canonical plans of the files below, as 0.1 hashed them."""


def version_1(text: str) -> str:
    """A file of version 2 as one of version 1."""
    old = text.replace('version = "2"', 'version = "1"').replace('test = "moderated-t"', 'gating_test = "auto"')
    return old.replace("within = true", "rankings = true")


STUDY_1 = version_1(STUDY.read_text())


def _judge(kind: str, name: str, family: str, model: str) -> str:
    return f'[[{kind}]]\nname = "{name}"\nfamily = "{family}"\nmodel = "reference/{model}"\n'


SEASON = "\n".join((
    season_text(head="universe = 6", last="2024-03-06"), _judge("panel", "auditor", "east", "season-auditor"),
    _judge("panel", "reader", "west", "season-reader"),
))  # fmt: skip
SEASON_1 = version_1(SEASON)

BENCHMARK = """# a small one
[market]
instruments = 12
[pipeline]
profiles = ["balanced"]
windows = ["covid-2020"]
frequency = "quarterly"
""" + "".join((
    *(_judge("models", name, name, f"portbench-{name}") for name in ("literal", "stubborn")),
    *(_judge("judges", name, name, name) for name in ("auditor", "reader")),
))  # fmt: skip
"""Of either version: it does not say."""


PANEL_1 = f"""version = "1"
name = "portbench-rationales"
title = "Rationales of portbench"
seed = 0

[rubric]
name = "v1.0"

{_judge("judges", "auditor", "auditor", "auditor")}
{_judge("judges", "reader", "reader", "reader")}"""
"""The study of its judges."""


def study_texts(text: str) -> dict[str, str]:
    """The digests of what judges and agents of a study are told."""
    return {name: sha256_text(one) for name, one in texts_of(parse_study(text)).items()}


def without_new(plan: Frozen) -> dict[str, Any]:
    """The canonical plan that 0.1 would have made of one that says nothing new."""
    fields = plan.model_dump(mode="json", exclude={"engine"}) | {"version": "1"}
    shape = FIELDS["study" if isinstance(plan, Study) else "season"]
    if isinstance(plan, Study):
        fields["inference"] |= {"gating_test": "auto", "share_alpha": True}
        fields["claims"]["rankings"] = True
    return {
        name: {key: fields[name][key] for key in value} if name in ("inference", "claims", "calendar") else fields[name]
        for name, value in shape.items()
    }


def back_to_1(folder: Path, kind: str, text: str, fields: Mapping[str, Any] | None = None) -> None:
    """Make a run folder of this version what 0.1 would have left: the plan and its lock."""
    lock = json.loads((folder / "study.lock").read_text())
    del lock["preregistered"], lock["plan_sha256"]
    if kind in ("season", "benchmark"):
        del lock["amendments"]
    lock["format"] = lock["format"].replace("lock 2", "lock 1")
    lock["software"] = "assaymark 0.1.0"
    if kind == "season":
        lock["inputs"]["market"] = lock["inputs"]["market"].replace(__version__, "0.1.0")
        texts = texts_of_1(tracks.parse_season(SEASON))
        hashed: Mapping[str, Any] = {"season": fields or FIELDS[kind], "texts": texts, "inputs": lock["inputs"]}
    elif kind == "benchmark":
        hashed = {"plan": FIELDS[kind], "texts": tracks.texts_of_stages(), "inputs": lock["inputs"]}
    else:
        texts = study_texts((folder / "plan.toml").read_text())
        hashed = {"plan": fields or FIELDS[kind], "texts": texts, "tables": lock["tables"]}
    lock["plan_hash"] = content_id(hashed)
    (folder / "study.lock").write_text(json.dumps(lock))
    (folder / "plan.toml").write_text(text)
    unanchored(folder)


def unanchored(folder: Path) -> None:
    """Make a run folder one of a version that did not write down how rows, locks and files were."""
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    manifest = folder / "tables" / "manifest.json"
    entries = json.loads(manifest.read_text())
    for entry in entries.values():
        entry.pop("seal", None)
    manifest.write_text(json_text(entries))
    if (folder / "ledger.db").is_file():
        with closing(sqlite3.connect(folder / "ledger.db")) as ledger, ledger:
            ledger.execute("delete from meta where name in ('note lock', 'note seal')")
