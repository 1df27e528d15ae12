"""A table of scores with texts, checked into a run folder, whose answers people are to grade."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assaymark.workflow import FIELDS, RunFolder
from assaymark.workflow import check_table as check

AGENTS = ("zorblax", "quimper", "wexford", "tindall")
JUDGES = ("heronry", "kestrelle")
NAMES = (*AGENTS, *JUDGES, "sundewco", "gpt-4o")
SCALE = (1.0, 5.0)


def checked(
    folder: Path, *, items: int = 10, scale: tuple[float, float] = SCALE, criteria: Sequence[str] = ("score",),
    text: str = "As {agent} of sundewco I buy {item}; {judge} and GPT-4o agree.", agents: Sequence[str] = AGENTS,
) -> RunFolder:  # fmt: skip
    """A table of ``items`` questions in ``folder``, and its check in ``folder/run``."""
    low, high = scale
    path = folder / "scores.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        out = csv.writer(handle)
        out.writerow(["item", "prompt", "agent", "agent_family", "judge", *criteria, "response"])
        for item in range(items):
            for a, agent in enumerate(agents):
                for j, judge in enumerate(JUDGES):
                    scores = [
                        (low, high, low + round((high - low) / 2))[(item + a + j + k) % 3] for k in range(len(criteria))
                    ]
                    made = text.format(agent=agent, item=f"asset {item}", judge=JUDGES[a % 2])
                    out.writerow([f"q{item:02d}", f"What now, {agents[0]}? Week {item}.", agent, "Sundewco", judge,
                                  *map("{:g}".format, scores), made])  # fmt: skip
    check(path, scale=scale, dimensions=criteria if len(criteria) > 1 else None, out=folder / "run")
    return RunFolder(folder / "run")


def data_of(page: str) -> dict[str, Any]:
    """Return the data embedded in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def ids_of(page: str) -> list[list[str]]:
    """The ids of a page's texts, by cycle, in their order."""
    return [[text["id"] for text in cycle["texts"]] for cycle in data_of(page)["cycles"]]


def graded(page: str, path: Path, at: str = "2100-01-02T03:04:05Z", **changed: str) -> Path:
    """A file of labels as the page would export it, every text a 4; ``changed`` are cells of the first row."""
    data = data_of(page)
    rows: list[Mapping[str, str]] = [
        {"run": data["run"], "id": name, "grader": data["grader"], "dimension": one["name"], "grade": "4", "at": at,
         "seconds": "7.5", "comment": 'well, "so"'}
        for ids in ids_of(page) for name in ids for one in data["questions"]
    ]  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as handle:
        out = csv.DictWriter(handle, FIELDS)
        out.writeheader()
        out.writerows([{**rows[0], **changed}, *rows[1:]])
    return path
