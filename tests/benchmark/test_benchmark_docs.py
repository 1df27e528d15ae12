"""The page about the benchmark and its plan say what the code does."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel

from assaymark.benchmark.plan import BenchPlan, Market, Pipeline, Questions, parse_plan
from assaymark.plan import BiasRules, Missing, OrderRules
from assaymark.protocol import EngineChoice
from assaymark.workflow.tracks.benchmark import Wanted, plan_text

ROOT = Path(__file__).resolve().parents[2]
PLAN = (ROOT / "studies" / "portbench.toml").read_text(encoding="utf-8")

TABLES: dict[str, type[BaseModel]] = {
    "": BenchPlan,
    "market": Market,
    "pipeline": Pipeline,
    "questions": Questions,
    "inference": OrderRules,
    "missing": Missing,
    "claims": BiasRules,
    "engine": EngineChoice,
}


def test_the_shipped_plan_is_what_the_commands_run_when_nothing_is_said():
    assert parse_plan(PLAN) == parse_plan(plan_text(None, Wanted())[0])


def fields() -> Iterator[tuple[str, str]]:
    for table, kind in TABLES.items():
        for name in kind.model_fields:
            if name not in (*TABLES, "version", "models"):
                yield table, name


def lines_of(table: str) -> list[str]:
    """The lines of one table, comments included."""
    parts = re.split(r"^\[(\w+)\]$", PLAN, flags=re.M)
    tables = {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
    return tables[table].splitlines()


@pytest.mark.parametrize(("table", "name"), list(fields()))
def test_every_field_stands_in_the_plan_with_a_comment(table, name):
    found = [line for line in lines_of(table) if re.match(rf"(?:# )?{name} = ", line)]
    assert len(found) == 1
    assert re.search(r" +# \S.{10,}$", found[0])


def test_lines_of_the_plan_are_short():
    assert [line for line in PLAN.splitlines() if len(line) > 120] == []


def beside_the_page(name: str) -> ModuleType:
    """A module of ``docs``, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_worked_conventions_on_the_page_are_what_the_code_computes():
    begin, end = beside_the_page("portbench_table").marks("conventions")
    page = (ROOT / "docs" / "portbench.md").read_text(encoding="utf-8")
    shown = page.partition(begin)[2].partition(end)[0]
    assert shown.strip() == beside_the_page("portbench_examples").conventions_table().strip()


def test_every_worked_difference_differs():
    rows = list(beside_the_page("portbench_examples").rows())
    assert len(rows) >= 12
    assert [what for what, _, paper, reference in rows if paper == reference] == []
