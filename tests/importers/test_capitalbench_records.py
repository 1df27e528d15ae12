"""The real CapitalBench records: what is known of them must come out of the import."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter

import pytest

from assaymark.importers import IMPORTERS, Imported
from assaymark.records import Context, Decision, canonical_json, content_id, parse

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def files(shared) -> dict[str, bytes]:
    folder = shared / "data" / "capitalbench"
    return {name: (folder / name).read_bytes() for name in IMPORTERS["capitalbench"].files(folder)}


@pytest.fixture(scope="module")
def result(files) -> Imported:
    return IMPORTERS["capitalbench"].read(files)


@pytest.fixture(scope="module")
def rounds(files) -> list[dict[str, str]]:
    return [json.loads(line) for line in gzip.decompress(files["contexts.jsonl.gz"]).splitlines()]


def test_the_counts(result):
    report, counts = result.report, result.report.counts
    assert (counts["decisions"], counts["contexts"], counts["agents"], counts["clusters"]) == (719, 113, 10, 16)
    assert (report.good, report.bad, report.problems, report.no_text, report.replicates) == (719, 0, (), (), 0)
    assert len({d.record_id for d in result.decisions}) == 719
    assert report.formats == {"option": 4, "weights-v1": 371, "weights-v2": 270, "weights-v3": 74}
    assert (report.missing["candidate ledger"].count, report.missing["outcome"].count) == (4, 231)
    tables = [f"universe_{name}" for name in ("trailing_returns.csv", "decision_context.csv", "quality_evidence.json")]
    assert [report.verified[name] for name in tables] == [67, 46, 40]
    assert sum(n for name, n in report.verified.items() if name.startswith("universe_")) == 153
    assert len(result.outcomes) == 488
    assert {o.record_id for o in result.outcomes} <= {d.record_id for d in result.decisions}
    assert report.never_met == (
        ("anthropic-claude-opus-4-7", "anthropic-claude-opus-5"), ("anthropic-claude-opus-4-7", "xai-grok-4-6"),
        ("openai-gpt-5-5", "xai-grok-4-6"),
    )  # fmt: skip


def test_ten_clock_conflicts(result):
    assert result.report.flags == {"clock-conflict": 10}
    for decision in result.decisions:
        before = decision.decided_at < result.contexts[decision.context_id].cutoff
        assert before == ("clock-conflict" in decision.flags)


def test_families_and_texts(result):
    assert Counter(d.agent.family for d in result.decisions) == {
        "anthropic": 271, "xai": 183, "openai": 155, "google": 110,
    }  # fmt: skip
    arena = [d for d in result.decisions if any(r.kind == "arena" for r in d.rationales)]
    assert {d.format for d in arena} == {"weights-v3"}
    assert len(arena) == 74
    assert all(sum(r.kind == "summary" for r in d.rationales) == 1 for d in result.decisions)


def test_every_context_is_partial_and_says_what_is_absent_and_its_facts_were_known(result):
    sources = Counter(c.cutoff_source.partition(" line")[0] for c in result.contexts.values())
    assert sources == {"briefing.md": 104, "manifest.yaml notes": 5, "manifest.yaml created_at": 4}
    for seen in result.contexts.values():
        assert seen.completeness == "partial"
        assert any(path.endswith(".md") and "market_data/" in path for path in seen.missing)
        assert all(fact.available_at == seen.cutoff for fact in seen.facts)
        assert all(fact.as_of is None or fact.as_of <= seen.cutoff for fact in seen.facts)
        assert len({fact.id for fact in seen.facts}) == len(seen.facts)


def test_no_exit_price_is_a_fact_or_in_a_prompt(result, rounds):
    held = {d.episode_id: result.contexts[d.context_id] for d in result.decisions}
    with_exit = [files for files in rounds if "exit_prices.csv" in files]
    assert len(with_exit) == 82
    for files in with_exit:
        seen = held[files["round_id"]]
        assert not any("exit_prices" in fact.source or "entry_prices" in fact.source for fact in seen.facts)
        assert files["exit_prices.csv"] not in seen.prompt
        for row in list(csv.DictReader(io.StringIO(files["exit_prices.csv"])))[:3]:
            line = ",".join(row.values())
            assert line not in seen.prompt


def test_every_cell_of_the_returns_tables_is_a_fact_or_empty(result, rounds):
    held = {d.episode_id: result.contexts[d.context_id] for d in result.decisions}
    files = next(files for files in rounds if "universe_trailing_returns.csv" in files)
    facts = {fact.id: fact.value for fact in held[files["round_id"]].facts}
    for row in csv.DictReader(io.StringIO(files["universe_trailing_returns.csv"])):
        for column in ("return_7d", "return_30d", "return_6m", "return_1y"):
            assert facts[f"ret:{row['option_id']}.{column}"] == float(row[column])


def test_records_survive_json_and_contexts_are_named_by_content(result):
    for name, seen in list(result.contexts.items())[::16]:
        assert content_id(seen) == name
        assert parse(Context, canonical_json(seen)) == seen
    for decision in result.decisions[::40]:
        assert parse(Decision, canonical_json(decision)) == decision


def test_the_first_single_option_decision(result):
    decision = next(d for d in result.decisions if d.record_id == "CB-2026-05-10-1M/anthropic-claude-opus-4-7")
    assert [(a.instrument, a.weight) for a in decision.actions] == [("SEMICONDUCTORS", 1.0)]
    assert (decision.cluster, decision.confidence, len(decision.rationales)) == ("2026-W19", 0.58, 6)
