"""CapitalBench: expected results of small made-up files, rejected files, and the real records."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from made_capitalbench import (
    BRIEFING, CANDIDATE, CONTEXT_TABLE, HELD, OPTIONS, RESOLVED, RETURNS, SENTINEL, V3, context, manifest, packed,
    quality, record,
)  # fmt: skip

from assaymark.errors import InputError
from assaymark.importers import IMPORTERS, Imported, import_capitalbench
from assaymark.records import Context, Decision, canonical_json, content_id, parse

ROUND, FAR = "CB-2026-05-17-1W", "CB-2026-05-24-1W"
TABLE = "universe_trailing_returns.csv"


def imported(contexts=None, records=None, **options) -> Imported:
    return import_capitalbench(packed(contexts or [context()], records or [record()]), **options)


def only(*given, **options) -> tuple[Decision, Context]:
    result = imported(*given, **options)
    (decision,) = result.decisions
    return decision, result.contexts[decision.context_id]


def one(shape: str = "weights-v1", **changes) -> Decision:
    return only(records=[record(shape, **changes)])[0]


def refused(contexts=None, records=None) -> str:
    with pytest.raises(InputError, match="capitalbench") as caught:
        imported(contexts, records)
    return str(caught.value)


def test_every_shape_is_told_by_itself_with_its_texts_in_judging_order_and_survives_json():
    asked, candidates, holdings = ["summary", "portfolio", "risk", "risk"], ["candidate"] * 2, ["holding"] * 2
    for shape, kinds in (("option", ["summary", "risk", "risk"]), ("weights-v1", asked + holdings),
                         ("weights-v2", asked + candidates + holdings),
                         ("weights-v3", asked + candidates + ["arena"] * 2)):  # fmt: skip
        decision, seen = only(records=[record(shape)])
        assert (decision.format, decision.record_id) == (shape, f"{ROUND}/acme-one")
        assert (decision.cluster, decision.cycle, decision.agent.family) == ("2026-W20", f"{ROUND}#0", "acme")
        assert [r.kind for r in decision.rationales] == kinds
        assert parse(Decision, canonical_json(decision)) == decision
        assert parse(Context, canonical_json(seen)) == seen
        assert content_id(seen) == decision.context_id


def test_no_arena_text_is_among_the_agents():
    decision = one("weights-v3")
    own = "\n".join(r.text for r in decision.rationales if r.kind != "arena")
    # forecasts are fields, not text
    assert [text for text in ("V3 selected model", "shock_reversal", "4.2") if text in own] == []
    assert "Recent return read as: overreaction" in own
    assert (decision.stages["weights_by"], decision.stages["confidence_by"]) == ("arena", "arena")
    first = decision.stages["candidates"][0]
    assert (first["excess_return_p50_pct"], first["p_beat_spy_pct"]) == (0.4, 58)
    decision = one("weights-v3", metadata={"portfolio_v3": {**V3, "market_rationale": "Another view."}})
    summaries = [r.text for r in decision.rationales if r.kind == "summary"]
    assert summaries == ["Gold fell 3.1% in 7d and looks cheap.", "Another view."]


def test_a_v2_holding_repeats_nothing_and_weights_are_fractions_and_forecasts_ratios():
    decision = one("weights-v2")
    assert [r.text for r in decision.rationales if r.kind == "holding"] == [
        "GOLD: Gold lost 3.1%.", "SP500: Broad exposure.\nCatalyst: CPI on May 20\nInvalidation: Index below 7,000",
    ]  # fmt: skip
    actions = [(a.instrument, a.weight, a.expected_return) for a in decision.actions]
    assert actions == [("GOLD", 0.6, 0.015), ("SP500", 0.4, 0.005)]
    assert decision.stages["forecast"] == {
        "portfolio_pct": 1.1, "benchmark_pct": 0.5, "alpha_pct": 0.6, "holdings": {"GOLD": 1.5, "SP500": 0.5},
    }  # fmt: skip
    assert [(a.instrument, a.kind, a.weight) for a in one("option").actions] == [("GOLD", "target_weight", 1.0)]
    pilot = one("weights-v2", candidate_ledger=...)
    assert (pilot.format, "candidate ledger" in pilot.missing) == ("weights-v2", True)


def test_calls_are_measured_replicates_told_apart_and_clocks_checked():
    decision = one(cost_usd=0.25)
    call = decision.call
    assert (call.seconds, call.timing_source, call.cost_usd, call.raw_object) == (20.5, "measured", 0.25, None)
    assert decision.stages["raw_response_sha256"] == "ab" * 32
    assert decision.decided_at == datetime(2026, 5, 17, 7, 5, 3, tzinfo=UTC)
    result = imported(records=[record(replicate_count=2), record(replicate_index=2, replicate_count=2)])
    assert [d.record_id for d in result.decisions] == [f"{ROUND}/acme-one", f"{ROUND}/acme-one/r2"]
    assert result.report.replicates == 1
    early = {"started_at_utc": "2026-05-17T06:00:59Z", "completed_at_utc": "2026-05-17T06:02:00Z"}
    result = imported(records=[record(call=early), record(agent="acme-two")])
    assert [d.flags for d in result.decisions] == [("clock-conflict",), ()]  # before the cutoff
    assert result.report.flags == {"clock-conflict": 1}


def test_what_followed_never_enters_a_context_nor_reaches_a_decision():
    result = imported()
    (seen,) = result.contexts.values()
    assert [text for text in (SENTINEL, "456789.123") if text in canonical_json(seen)] == []
    other = imported([context(**{"exit_prices.csv": "anything", "entry_prices.csv": None})])
    assert list(other.contexts) == list(result.contexts)
    scored = imported(records=[record(outcome=RESOLVED)])
    assert (scored.decisions, scored.contexts) == (result.decisions, result.contexts)
    (outcome,) = scored.outcomes
    assert (outcome.value, outcome.benchmark, outcome.horizon) == (0.03, 0.01, "one week")
    assert outcome.resolved_at == datetime(2026, 5, 23, tzinfo=UTC)
    # an option without return has benchmark plus alpha
    (outcome,) = imported(records=[record("option", outcome={**RESOLVED, "portfolio_return": ""})]).outcomes
    assert (outcome.value, outcome.source) == (pytest.approx(0.03), "sp500_return + alpha_vs_sp500")
    for empty in (None, dict.fromkeys(RESOLVED, ""), {**RESOLVED, "portfolio_return": "", "alpha_vs_sp500": ""}):
        result = imported(records=[record(outcome=empty)])
        assert (result.outcomes, result.report.missing["outcome"].count) == ((), 1)


def test_facts_carry_units_days_and_nothing_for_empty_cells():
    _, seen = only()
    facts = {fact.id: fact for fact in seen.facts}
    assert len(facts) == len(seen.facts)
    gold = facts["ret:GOLD.return_7d"]
    assert (gold.value, gold.unit, gold.note, gold.instrument) == (-0.031, "ratio", "since 2026-05-08", "GOLD")
    assert (gold.as_of, gold.available_at) == (datetime(2026, 5, 15, tzinfo=UTC), seen.cutoff)
    assert "ret:CASH.corr_to_sp500_1y" not in facts
    assert (facts["ret:CASH.return_7d"].value, facts["ret:SP500.as_of_adj_close"].unit) == (0.0, "price")
    assert [(f.value, f.unit) for f in seen.facts if f.id.startswith("b")] == [
        (-0.4, "percent"), (3.5, "percent"), (7100.5, "index"), (172000.0, "count"), (179000.0, "count"),
        (4.41, "percent"),
    ]  # fmt: skip
    assert facts["b1"].note.startswith("May CPI decreased 0.4%")
    assert facts["b1"].field == "May CPI decreased"
    evidence = {"universe_decision_context.csv": CONTEXT_TABLE, "universe_quality_evidence.json": quality()}
    _, seen = only([context(**{TABLE: None}, **evidence)])
    facts = {fact.id: (fact.value, fact.unit) for fact in seen.facts}
    assert facts["ctx:GOLD.active_return_21s"] == (-0.03, "ratio")
    assert facts["ctx:GOLD.economic_exposure_cluster"] == ("metals", "text")
    assert facts["qual:GOLD.quality_evidence_score"] == (0.25, "score")
    assert "ctx:CASH.distance_52w_high" not in facts


def test_the_context_says_what_it_lacks_beside_prompt_instruments_and_constraints():
    result = imported(records=[record(), record(agent="acme-two")])
    assert {d.context_id for d in result.decisions} == {*result.contexts}  # shared by its round
    (seen,) = result.contexts.values()
    assert seen.completeness == "partial"
    assert "market_data/universe_trailing_returns.md" in seen.missing
    assert any("rendered" in item for item in seen.missing)
    report = result.report
    assert (report.unverifiable, report.verified[TABLE]) == ({"universe_trailing_returns.md": 1}, 1)
    assert report.missing["file universe_trailing_returns.md"].examples == (ROUND,)
    assert seen.prompt.startswith("# Task")
    assert seen.prompt.index("## Briefing") < seen.prompt.index("## Options")
    assert seen.instruments[1].aliases == ("GOLD", "IAU", "Gold")
    assert [(c.kind, c.limit, c.unit) for c in seen.constraints] == [
        ("min_holdings", 1.0, "count"), ("max_holdings", 5.0, "count"), ("min_weight", 0.05, "nav"),
        ("allow_cash", 1.0, "bool"),
    ]  # fmt: skip


def test_the_cutoff_is_read_in_order_and_never_from_the_deadline():
    deadline = "Decision deadline: 2026-05-18T01:00:00Z"
    for changes, at, source in (
        ({}, (6, 1), "briefing.md line 3"), ({"briefing.md": "# B\n\nCPI rose 3%."}, (6, 2), "manifest.yaml notes"),
        ({"briefing.md": deadline, "manifest.yaml": manifest(ROUND, notes="none")}, (6, 39, 5),
         "manifest.yaml created_at"),
    ):  # fmt: skip
        _, seen = only([context(**changes)])
        assert (seen.cutoff, seen.cutoff_source) == (datetime(2026, 5, 17, *at, tzinfo=UTC), source)


@pytest.mark.parametrize(("changes", "message"), [
    ({"confidence": 1.4}, r"line 1, submission\.confidence: must be at most 1 \(got 1\.4\)"),
    ({"confidence": "0.6"}, r"submission\.confidence: must be a number \(got '0\.6'\)"),
    ({"surprise": 1}, r"submission\.surprise: unknown key \(allowed: round_id, .*portfolio, portfolio_rationale"),
    ({"rationale_summary": None}, r"submission\.rationale_summary: must be text \(got None\)"),
    ({"rationale_summary": ...}, r"submission\.rationale_summary: is missing"),
    ({"model_id": "a\nb"}, r"submission\.model_id: cannot be a name: 1 to 120 characters, "),
    ({"portfolio": []}, r"submission\.portfolio: needs at least 1 \(got 0\)"),
    ({"portfolio": [{**HELD[0], "option_id": "TULIPS"}]}, r"is not one of the round's options \(got 'TULIPS'\)"),
    ({"portfolio": [HELD[0], HELD[0]]}, r"names 'GOLD' twice"),
    ({"portfolio": [{**h, "allocation_pct": 80} for h in HELD]}, r"sum to 160 \(allowed at most 100\)"),
    ({"replicate_index": 2}, r"replicate_index: exceeds replicate_count"),
    ({"call": {"started_at_utc": "2026-05-17T07:05:03"}}, r"call\.started_at_utc: has no time zone"),
    ({"call": {"completed_at_utc": "yesterday"}}, r"call\.completed_at_utc: must be a time"),
    ({"call": {"completed_at_utc": "2026-05-17T07:00:00Z"}}, r"completed_at_utc: is before the start"),
    ({"call": {"validation_status": "rejected"}}, r"call\.validation_status: "),
    ({"call": {"raw_response_sha256": "short"}}, r"call\.raw_response_sha256: must be a sha256: 64 digits of 0-9 and"),
    ({"outcome": {**RESOLVED, "alpha_vs_sp500": "0.5"}}, r"outcome\.alpha_vs_sp500: is not the return less"),
    ({"outcome": {**RESOLVED, "sp500_return": "much"}}, r"outcome\.sp500_return: must be a finite number"),
    ({"outcome": {**RESOLVED, "sp500_return": "nan"}}, r"outcome\.sp500_return: must be a finite number"),
    ({"shape": "weights-v2", "candidate_ledger": [CANDIDATE, CANDIDATE]}, "candidate_ledger: names 'GOLD' twice"),
    ({"shape": "weights-v3", "metadata": {"portfolio_v3": {
        **V3, "candidate_assessments": [{**V3["candidate_assessments"][0], "option_id": "X"}]}}},
     "candidate_assessments: is not one of"),
])  # fmt: skip
def test_a_wrong_field_is_named_with_line_value_and_what_is_allowed(changes, message):
    with pytest.raises(InputError, match=message):
        imported(records=[record(**changes)])


@pytest.mark.parametrize(("line", "message"), [
    (b'{"round_id": 1,,}', r"line 2: not JSON: .* at column"), (b"[1]", r"line 2: must be an object \(got \[1\]\)"),
    (b'{"a": 1, "a": 2}', r"line 2: key 'a' occurs twice"), (b'{"a": NaN}', r"line 2: NaN is not a number"),
    (b'{"a": "\xff"}', r"line 2: not UTF-8"), (b"[" * 100_000, r"line 2: (nested too deep|not JSON)"),
    (b'{"submission": 3}', r"line 2, submission: must be an object \(got 3\)"),
])  # fmt: skip
def test_an_unreadable_line_is_named(line, message):
    with pytest.raises(InputError, match=message):
        imported(records=[record(), line])
    with pytest.raises(InputError, match=r"contexts\.jsonl\.gz line 2"):
        imported(contexts=[context(), line])


def test_what_does_not_fit_together_is_refused():
    line = record()
    line["submission"]["round_id"] = FAR
    for contexts, records, *said in (
        (None, [record(), record()], "line 2, submission.model_id: named twice on one round",
         "(first at decisions.jsonl.gz line 1)"),
        (None, [line], f"submission.round_id: is another round's (got '{FAR}')"),
        ([context(), context()], None, "line 2, round_id: occurs twice"),
        ([{**context(), "prompt.md": 3}], None, "line 1, prompt.md: must be text (got 3)"),
        ([context("final")], [record(round_id="final")], "line 1, round_id: must hold a date"),
        ([context(**{"hashes.json": '{"algorithm": "sha256", "files": {}, "files": {}}'})], None,
         "hashes.json: key 'files' occurs twice"),
        ([context(**{"unknown_file.csv": "a,b\n", "briefing.html": "x"})], None,
         f"line 1 ({ROUND}), unknown_file.csv: unknown key (allowed: round_id, briefing.md, ",
         "exit_prices.csv)", ", briefing.html: unknown key", "1 decision without a context: their round is broken"),
    ):  # fmt: skip
        text = refused(contexts, records)
        assert [part for part in said if part not in text] == []
    # the decisions of a round that is not there are told once
    other = [record(round_id=FAR, agent=f"acme-{n}") for n in range(3)]
    text = refused(records=[record(), *other])
    assert text.count("no such round") == 1
    assert f"line 2, round_id: a record without a context: no such round (got '{FAR}') and 2 more" in text
    empty = {**packed([context()], [record(), *other]), "contexts.jsonl.gz": b"\n"}
    with pytest.raises(InputError, match=r"^capitalbench: contexts\.jsonl\.gz: contains no round: every line is empty"):
        import_capitalbench(empty)


EVIDENCE = "universe_quality_evidence.json"


@pytest.mark.parametrize(("name", "text", "message"), [
    ("briefing.md", None, r"a round without briefing\.md"), ("hashes.json", "{}", r"hashes\.json, "),
    ("hashes.json", '{"algorithm": "md5", "files": {}}', r"hashes\.json, algorithm"),
    ("hashes.json", json.dumps({"algorithm": "sha256", "files": {"a/prompt.md": "0" * 64}}),
     r"a/prompt\.md: does not match its hash"),
    ("options.yaml", "options: [", r"options\.yaml: not YAML: .*line"),
    ("options.yaml", "options: []", r"options\.yaml, options"),
    ("options.yaml", "a: &x 1\noptions: *x", r"aliases \(\*name\) are not read"),
    ("options.yaml", "!!python/object/apply:os.getcwd []", r"options\.yaml: not YAML"),
    ("options.yaml", OPTIONS + OPTIONS.partition("\n")[2], r"an option id occurs twice"),
    ("manifest.yaml", "x: 1", r"manifest\.yaml, round_id"),
    ("manifest.yaml", manifest(FAR), r"manifest\.yaml, round_id: is another round's|another round's"),
    ("manifest.yaml", manifest(ROUND, notes="x", created_at="'noon'"), r"manifest\.yaml, created_at: must be a time"),
    (TABLE, RETURNS.replace("GOLD", "TULIPS"), r"line 3, option_id: is not one of"),
    (TABLE, RETURNS.replace("-0.031", "much"), r"line 3, return_7d: must be a finite"),
    (TABLE, RETURNS.replace("rank_7d", "omen"), r"unknown column 'omen'"),
    (TABLE, RETURNS + RETURNS.splitlines()[1], r"line 5, option_id: occurs twice"),
    (TABLE, RETURNS.replace("2026-05-15", "2026-05-22"), r"a fact from the future"),
    (TABLE, RETURNS.replace("2026-05-15", "Friday"), r"must be a day"),
    (TABLE, "option_id,a\nGOLD", r"universe_trailing_returns\.csv, line 2: has 1 cells"),
    (TABLE, RETURNS.replace("SP500,SPY,S&P 500,equity", "SP500,SPY").replace("GOLD,IAU,Gold,commodity", "GOLD,IAU"),
     r"(?s)line 2: has 12 cells \(the header has 14\).*line 3: has 12 cells \(the header has 14\)"),
    (EVIDENCE, "{}", r"universe_quality_evidence\.json, "),
    (EVIDENCE, quality().replace("GOLD", "TULIPS"), r"rows\.option_id: is not one of the round's options"),
    (EVIDENCE, quality().replace("GOLD", "SP500"), r"rows\.option_id: occurs twice"),
])  # fmt: skip
def test_a_broken_round_is_named(name, text, message):
    beside = {"briefing.md": "none"} if "created_at" in message else {}
    with pytest.raises(InputError, match=message):
        imported([context(**{name: text}, **beside)])


def test_all_problems_are_carried_the_listing_is_capped_and_keep_going_imports_what_is_good():
    with pytest.raises(InputError, match="70 problems") as caught:
        imported(records=[record(agent=f"acme-{n}", confidence=2.0) for n in range(70)])
    text = str(caught.value)
    assert (len(caught.value.problems), text[-11:], text.count("\n")) == (70, "and 50 more", 21)
    records = [record(), record(agent="acme-two", confidence=2.0), b"not json", record(round_id=FAR)]
    broken = context(FAR, **{"options.yaml": "options: []"})
    report = imported([context(), broken], records, keep_going=True).report
    assert (report.good, report.bad) == (1, 3)
    listed = "\n".join(map(str, report.problems))
    assert f"{FAR}: 1 decision without a context: their round is broken" in listed
    assert "1 decision imported, 3 left out" in report.lines()[0]
    bad = context(**{"hashes.json": json.dumps({"algorithm": "sha256", "files": {"prompt.md": "0" * 64}})})
    result = imported([bad], keep_going=True)  # a mismatch leaves the round out
    assert (result.decisions, result.contexts) == ((), {})


def test_missing_damaged_and_doubled_files_are_named_and_plain_ones_read_as_well():
    files = packed([context()], [record()])
    contexts, decisions = files["contexts.jsonl.gz"], files["decisions.jsonl.gz"]
    for given, what in (
        ({"contexts.jsonl.gz": contexts}, r"decisions\.jsonl: missing \(got contexts\.jsonl\.gz\); needed"),
        ({**files, "decisions.jsonl.gz": decisions[:-12]}, r"decisions\.jsonl\.gz: damaged gzip"),
        ({**files, "decisions.jsonl": b"{}"}, "given twice"),
    ):
        with pytest.raises(InputError, match=what):
            import_capitalbench(given)
    plain = {name.removesuffix(".gz"): gzip.decompress(data) for name, data in files.items()}
    misnamed = {f"{name}.gz": data for name, data in plain.items()}  # the name decides nothing
    found = import_capitalbench(files)
    assert found == import_capitalbench(files)
    assert import_capitalbench(plain).decisions == import_capitalbench(misnamed).decisions == found.decisions
    assert BRIEFING in next(iter(found.contexts.values())).prompt + "\n"


def test_progress_is_told_agents_that_never_met_listed_and_records_without_text_to_judge_named():
    told = []
    imported(records=[record(), record(agent="acme-two")], progress=lambda *seen: told.append(seen))
    assert told == [("rounds", 1, 1), ("decisions", 1, 2), ("decisions", 2, 2)]
    result = imported([context(), context(FAR)], [record(), record(round_id=FAR, agent="acme-two")])
    assert result.report.never_met == (("acme-one", "acme-two"),)
    silent = {"rationale_summary": " ", "key_risks": []}
    for shape, more in (("option", {}), ("weights-v1", {"portfolio_rationale": ""}), ("weights-v3", {})):
        result = imported(records=[record(shape, **silent, **more)])
        assert ("text" in result.decisions[0].missing) == (shape != "weights-v3")
        assert result.report.no_text == (() if shape == "weights-v3" else (f"{ROUND}/acme-one",))


def test_no_problem_speaks_of_the_library():
    for name, wrong in (
        ("options.yaml", "options: [{id: '', nme: 3}]"), ("hashes.json", '{"files": {"a": "b"}, "x": 1}'),
        ("manifest.yaml", f"created_at: 3\nexit_date: Friday\nnotes: [1]\nround_id: {'1' * 5000}\n"),
        (EVIDENCE, '{"x": {"y": 1}, "rows": [{"z": 1}]}'),
    ):  # fmt: skip
        text = refused([context(**{name: wrong})])
        words = ("keyword", "input", "permitted", "alue error", "sys.", "ield required")
        assert [word for word in words if word in text] == []


# The real records: what is known of them must come out of the import


@pytest.fixture(scope="module")
def files(shared) -> dict[str, bytes]:
    folder = shared / "data" / "capitalbench"
    return {name: (folder / name).read_bytes() for name in IMPORTERS["capitalbench"].files(folder)}


@pytest.fixture(scope="module")
def result(files) -> Imported:
    return IMPORTERS["capitalbench"].read(files)


@pytest.mark.shared
def test_the_counts_of_the_real_records(result):
    report, counts = result.report, result.report.counts
    assert (counts["decisions"], counts["contexts"], counts["agents"], counts["clusters"]) == (719, 113, 10, 16)
    assert (report.good, report.bad, report.problems, report.no_text, report.replicates) == (719, 0, (), (), 0)
    assert len({d.record_id for d in result.decisions}) == 719
    assert report.formats == {"option": 4, "weights-v1": 371, "weights-v2": 270, "weights-v3": 74}
    assert (report.missing["candidate ledger"].count, report.missing["outcome"].count) == (4, 231)
    verified = {name: n for name, n in report.verified.items() if name.startswith("universe_")}
    assert verified == {TABLE: 67, "universe_decision_context.csv": 46, EVIDENCE: 40}
    assert len(result.outcomes) == 488
    assert {o.record_id for o in result.outcomes} <= {d.record_id for d in result.decisions}
    assert report.never_met == (
        ("anthropic-claude-opus-4-7", "anthropic-claude-opus-5"), ("anthropic-claude-opus-4-7", "xai-grok-4-6"),
        ("openai-gpt-5-5", "xai-grok-4-6"),
    )  # fmt: skip
    assert report.flags == {"clock-conflict": 10}
    for d in result.decisions:
        assert (d.decided_at < result.contexts[d.context_id].cutoff) == ("clock-conflict" in d.flags)
    families = Counter(d.agent.family for d in result.decisions)
    assert families == {"anthropic": 271, "xai": 183, "openai": 155, "google": 110}
    arena = Counter(d.format for d in result.decisions if any(r.kind == "arena" for r in d.rationales))
    assert arena == {"weights-v3": 74}
    assert all(sum(r.kind == "summary" for r in d.rationales) == 1 for d in result.decisions)
    decision = next(d for d in result.decisions if d.record_id == "CB-2026-05-10-1M/anthropic-claude-opus-4-7")
    assert [(a.instrument, a.weight) for a in decision.actions] == [("SEMICONDUCTORS", 1.0)]
    assert (decision.cluster, decision.confidence, len(decision.rationales)) == ("2026-W19", 0.58, 6)
    for decision in result.decisions[::40]:
        assert parse(Decision, canonical_json(decision)) == decision


@pytest.mark.shared
def test_every_real_context_says_what_is_absent_and_holds_nothing_that_came_later(result, files):
    sources = Counter(c.cutoff_source.partition(" line")[0] for c in result.contexts.values())
    assert sources == {"briefing.md": 104, "manifest.yaml notes": 5, "manifest.yaml created_at": 4}
    for place, (name, seen) in enumerate(result.contexts.items()):
        assert seen.completeness == "partial"
        assert any(path.endswith(".md") and "market_data/" in path for path in seen.missing)
        assert all(fact.available_at == seen.cutoff for fact in seen.facts)
        assert all(fact.as_of is None or fact.as_of <= seen.cutoff for fact in seen.facts)
        assert len({fact.id for fact in seen.facts}) == len(seen.facts)
        if place % 16 == 0:
            assert content_id(seen) == name
            assert parse(Context, canonical_json(seen)) == seen
    held = {d.episode_id: result.contexts[d.context_id] for d in result.decisions}
    rounds = [json.loads(line) for line in gzip.decompress(files["contexts.jsonl.gz"]).splitlines()]
    with_exit = [given for given in rounds if "exit_prices.csv" in given]
    assert len(with_exit) == 82
    for given in with_exit:
        seen = held[given["round_id"]]
        assert not any("exit_prices" in fact.source or "entry_prices" in fact.source for fact in seen.facts)
        lines = [",".join(row.values()) for row in list(csv.DictReader(io.StringIO(given["exit_prices.csv"])))[:3]]
        assert [line for line in (given["exit_prices.csv"], *lines) if line in seen.prompt] == []
    given = next(given for given in rounds if TABLE in given)
    facts = {fact.id: fact.value for fact in held[given["round_id"]].facts}
    for row in csv.DictReader(io.StringIO(given[TABLE])):
        for column in ("return_7d", "return_30d", "return_6m", "return_1y"):
            assert facts[f"ret:{row['option_id']}.{column}"] == float(row[column])
