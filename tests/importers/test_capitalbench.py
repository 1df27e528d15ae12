"""CapitalBench: what must come out of small made-up files, and what must be refused."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest
from made_capitalbench import (
    BRIEFING,
    CANDIDATE,
    CONTEXT_TABLE,
    HELD,
    OPTIONS,
    RESOLVED,
    RETURNS,
    SENTINEL,
    V3,
    context,
    manifest,
    packed,
    quality,
    record,
)

from assaymark.errors import InputError
from assaymark.importers import Imported, import_capitalbench
from assaymark.records import Context, Decision, canonical_json, content_id, parse

SHAPES = ("option", "weights-v1", "weights-v2", "weights-v3")


def imported(contexts=None, records=None, **options) -> Imported:
    return import_capitalbench(packed(contexts or [context()], records or [record()]), **options)


def only(result: Imported) -> tuple[Decision, Context]:
    (decision,) = result.decisions
    return decision, result.contexts[decision.context_id]


def refused(contexts=None, records=None) -> str:
    with pytest.raises(InputError, match="capitalbench") as caught:
        imported(contexts, records)
    return str(caught.value)


ASKED = ["summary", "portfolio", "risk", "risk"]


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ("option", ["summary", "risk", "risk"]), ("weights-v1", [*ASKED, "holding", "holding"]),
        ("weights-v2", [*ASKED, "candidate", "candidate", "holding", "holding"]),
        ("weights-v3", [*ASKED, "candidate", "candidate", "arena", "arena"]),
    ],
)  # fmt: skip
def test_every_shape_is_told_by_itself_with_its_texts_in_judging_order_and_survives_json(shape, kinds):
    decision, seen = only(imported(records=[record(shape)]))
    assert (decision.format, decision.record_id) == (shape, "CB-2026-05-17-1W/acme-one")
    assert (decision.cluster, decision.cycle, decision.agent.family) == ("2026-W20", "CB-2026-05-17-1W#0", "acme")
    assert [r.kind for r in decision.rationales] == kinds
    assert parse(Decision, canonical_json(decision)) == decision
    assert parse(Context, canonical_json(seen)) == seen
    assert content_id(seen) == decision.context_id


def test_no_arena_text_is_among_the_agents():
    decision, _ = only(imported(records=[record("weights-v3")]))
    own = "\n".join(r.text for r in decision.rationales if r.kind != "arena")
    for absent in ("V3 selected model", "shock_reversal", "4.2"):  # forecasts are fields, not text
        assert absent not in own
    assert "Recent return read as: overreaction" in own
    assert (decision.stages["weights_by"], decision.stages["confidence_by"]) == ("arena", "arena")
    first = decision.stages["candidates"][0]
    assert (first["excess_return_p50_pct"], first["p_beat_spy_pct"]) == (0.4, 58)
    said = {"portfolio_v3": {**V3, "market_rationale": "Another view."}}
    decision, _ = only(imported(records=[record("weights-v3", metadata=said)]))
    assert [r.text for r in decision.rationales if r.kind == "summary"] == [
        "Gold fell 3.1% in 7d and looks cheap.", "Another view.",
    ]  # fmt: skip


def test_a_v2_holding_repeats_nothing_and_weights_are_fractions_and_forecasts_ratios():
    decision, _ = only(imported(records=[record("weights-v2")]))
    gold, broad = [r.text for r in decision.rationales if r.kind == "holding"]
    assert gold == "GOLD: Gold lost 3.1%."
    assert broad == "SP500: Broad exposure.\nCatalyst: CPI on May 20\nInvalidation: Index below 7,000"
    assert [(a.instrument, a.weight, a.expected_return) for a in decision.actions] == [
        ("GOLD", 0.6, 0.015), ("SP500", 0.4, 0.005),
    ]  # fmt: skip
    assert decision.stages["forecast"] == {
        "portfolio_pct": 1.1, "benchmark_pct": 0.5, "alpha_pct": 0.6, "holdings": {"GOLD": 1.5, "SP500": 0.5},
    }  # fmt: skip
    option, _ = only(imported(records=[record("option")]))
    assert [(a.instrument, a.kind, a.weight) for a in option.actions] == [("GOLD", "target_weight", 1.0)]
    pilot, _ = only(imported(records=[record("weights-v2", candidate_ledger=...)]))
    assert pilot.format == "weights-v2"
    assert "candidate ledger" in pilot.missing


def test_the_call_is_measured_and_the_raw_response_named_by_hash():
    decision, _ = only(imported(records=[record(cost_usd=0.25)]))
    assert (decision.call.seconds, decision.call.timing_source, decision.call.cost_usd) == (20.5, "measured", 0.25)
    assert decision.stages["raw_response_sha256"] == "ab" * 32
    assert decision.call.raw_object is None
    assert decision.decided_at == datetime(2026, 5, 17, 7, 5, 3, tzinfo=UTC)


def test_replicates_are_told_apart_and_counted():
    second = record(replicate_index=2, replicate_count=2)
    result = imported(records=[record(replicate_count=2), second])
    assert [d.record_id for d in result.decisions] == ["CB-2026-05-17-1W/acme-one", "CB-2026-05-17-1W/acme-one/r2"]
    assert result.report.replicates == 1


def test_a_call_before_the_cutoff_is_kept_and_flagged():
    early = {"started_at_utc": "2026-05-17T06:00:59Z", "completed_at_utc": "2026-05-17T06:02:00Z"}
    result = imported(records=[record(call=early), record(agent="acme-two")])
    assert [d.flags for d in result.decisions] == [("clock-conflict",), ()]
    assert result.report.flags == {"clock-conflict": 1}


def test_what_followed_never_enters_a_context_nor_reaches_a_decision():
    result = imported()
    text = canonical_json(only(result)[1])
    assert SENTINEL not in text
    assert "456789.123" not in text
    other = imported([context(**{"exit_prices.csv": "anything", "entry_prices.csv": None})])
    assert list(other.contexts) == list(result.contexts)
    scored = imported(records=[record(outcome=RESOLVED)])
    assert (scored.decisions, scored.contexts) == (result.decisions, result.contexts)
    (outcome,) = scored.outcomes
    assert (outcome.value, outcome.benchmark, outcome.horizon) == (0.03, 0.01, "one week")
    assert outcome.resolved_at == datetime(2026, 5, 23, tzinfo=UTC)


def test_table_facts_carry_units_days_and_nothing_for_empty_cells():
    _, seen = only(imported())
    facts = {fact.id: fact for fact in seen.facts}
    gold = facts["ret:GOLD.return_7d"]
    assert (gold.value, gold.unit, gold.note, gold.instrument) == (-0.031, "ratio", "since 2026-05-08", "GOLD")
    assert gold.as_of == datetime(2026, 5, 15, tzinfo=UTC)
    assert gold.available_at == seen.cutoff
    assert "ret:CASH.corr_to_sp500_1y" not in facts
    assert facts["ret:CASH.return_7d"].value == 0.0
    assert facts["ret:SP500.as_of_adj_close"].unit == "price"
    assert len(facts) == len(seen.facts)


def test_the_decision_context_and_quality_are_read_where_they_stand():
    files = {
        "universe_trailing_returns.csv": None, "universe_decision_context.csv": CONTEXT_TABLE,
        "universe_quality_evidence.json": quality(),
    }  # fmt: skip
    _, seen = only(imported([context(**files)]))
    facts = {fact.id: (fact.value, fact.unit) for fact in seen.facts}
    assert facts["ctx:GOLD.active_return_21s"] == (-0.03, "ratio")
    assert facts["ctx:GOLD.economic_exposure_cluster"] == ("metals", "text")
    assert facts["qual:GOLD.quality_evidence_score"] == (0.25, "score")
    assert "ctx:CASH.distance_52w_high" not in facts


def test_briefing_facts_have_values_units_and_their_sentence():
    _, seen = only(imported())
    stated = [(f.value, f.unit) for f in seen.facts if f.id.startswith("b")]
    assert stated == [
        (-0.4, "percent"), (3.5, "percent"), (7100.5, "index"), (172000.0, "count"), (179000.0, "count"),
        (4.41, "percent"),
    ]  # fmt: skip
    first = next(f for f in seen.facts if f.id == "b1")
    assert first.note.startswith("May CPI decreased 0.4%")
    assert first.field == "May CPI decreased"


def test_the_context_says_what_it_lacks_beside_prompt_instruments_and_constraints():
    result = imported(records=[record(), record(agent="acme-two")])
    assert len(result.contexts) == len({d.context_id for d in result.decisions}) == 1  # shared by its round
    (seen,) = result.contexts.values()
    assert seen.completeness == "partial"
    assert "market_data/universe_trailing_returns.md" in seen.missing
    assert any("rendered" in item for item in seen.missing)
    assert result.report.unverifiable == {"universe_trailing_returns.md": 1}
    assert result.report.verified["universe_trailing_returns.csv"] == 1
    assert result.report.missing["file universe_trailing_returns.md"].examples == ("CB-2026-05-17-1W",)
    assert seen.prompt.startswith("# Task")
    assert seen.prompt.index("## Briefing") < seen.prompt.index("## Options")
    assert seen.instruments[1].aliases == ("GOLD", "IAU", "Gold")
    assert [(c.kind, c.limit, c.unit) for c in seen.constraints] == [
        ("min_holdings", 1.0, "count"), ("max_holdings", 5.0, "count"), ("min_weight", 0.05, "nav"),
        ("allow_cash", 1.0, "bool"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "at", "source"),
    [
        ({}, datetime(2026, 5, 17, 6, 1, tzinfo=UTC), "briefing.md line 3"),
        ({"briefing.md": "# B\n\nCPI rose 3%."}, datetime(2026, 5, 17, 6, 2, tzinfo=UTC), "manifest.yaml notes"),
        (
            {
                "briefing.md": "Decision deadline: 2026-05-18T01:00:00Z",
                "manifest.yaml": manifest("CB-2026-05-17-1W", notes="none"),
            },
            datetime(2026, 5, 17, 6, 39, 5, tzinfo=UTC), "manifest.yaml created_at",
        ),
    ],
)  # fmt: skip
def test_the_cutoff_is_read_in_order_and_never_from_the_deadline(changes, at, source):
    _, seen = only(imported([context(**changes)]))
    assert (seen.cutoff, seen.cutoff_source) == (at, source)


def test_an_option_without_return_has_benchmark_plus_alpha():
    result = imported(records=[record("option", outcome={**RESOLVED, "portfolio_return": ""})])
    (outcome,) = result.outcomes
    assert outcome.value == pytest.approx(0.03)
    assert outcome.source == "sp500_return + alpha_vs_sp500"


@pytest.mark.parametrize(
    "outcome", [None, dict.fromkeys(RESOLVED, ""), {**RESOLVED, "portfolio_return": "", "alpha_vs_sp500": ""}]
)
def test_an_empty_outcome_is_counted_as_missing(outcome):
    result = imported(records=[record(outcome=outcome)])
    assert result.outcomes == ()
    assert result.report.missing["outcome"].count == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": 1.4}, r"line 1, submission\.confidence: must be at most 1 \(got 1\.4\)"),
        ({"confidence": "0.6"}, r"submission\.confidence: must be a number \(got '0\.6'\)"),
        ({"surprise": 1}, r"submission\.surprise: unknown key \(allowed: round_id, .*portfolio, portfolio_rationale"),
        ({"rationale_summary": ...}, r"submission\.rationale_summary: "),
        ({"model_id": "a\nb"}, r"submission\.model_id: "), ({"portfolio": []}, r"submission\.portfolio: "),
        ({"portfolio": [{**HELD[0], "option_id": "TULIPS"}]}, r"is none of the round's options \(got 'TULIPS'\)"),
        ({"portfolio": [HELD[0], HELD[0]]}, r"names 'GOLD' twice"),
        ({"portfolio": [{**h, "allocation_pct": 80} for h in HELD]}, r"sum to 160 \(allowed at most 100\)"),
        ({"replicate_index": 2}, r"replicate_index: exceeds replicate_count"),
        ({"call": {"started_at_utc": "2026-05-17T07:05:03"}}, r"call\.started_at_utc: has no time zone"),
        ({"call": {"completed_at_utc": "yesterday"}}, r"call\.completed_at_utc: must be a time"),
        ({"call": {"completed_at_utc": "2026-05-17T07:00:00Z"}}, r"completed_at_utc: is before the start"),
        ({"call": {"validation_status": "rejected"}}, r"call\.validation_status: "),
        ({"call": {"raw_response_sha256": "short"}}, r"call\.raw_response_sha256: "),
        ({"outcome": {**RESOLVED, "alpha_vs_sp500": "0.5"}}, r"outcome\.alpha_vs_sp500: is not the return less"),
        ({"outcome": {**RESOLVED, "sp500_return": "much"}}, r"outcome\.sp500_return: must be a finite number"),
        ({"outcome": {**RESOLVED, "sp500_return": "nan"}}, r"outcome\.sp500_return: must be a finite number"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_line_value_and_what_is_allowed(changes, message):
    with pytest.raises(InputError, match=message):
        imported(records=[record(**changes)])


def test_a_wrong_candidate_is_found_in_every_shape():
    twice = [CANDIDATE, CANDIDATE]
    assert "candidate_ledger: names 'GOLD' twice" in refused(records=[record("weights-v2", candidate_ledger=twice)])
    said = {"portfolio_v3": {**V3, "candidate_assessments": [{**V3["candidate_assessments"][0], "option_id": "X"}]}}
    assert "candidate_assessments: is none of" in refused(records=[record("weights-v3", metadata=said)])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"round_id": 1,,}', r"line 2: not JSON: .* at column"), (b"[1]", r"line 2: must be an object \(got list\)"),
        (b'{"a": 1, "a": 2}', r"line 2: key 'a' stands twice"), (b'{"a": NaN}', r"line 2: NaN is not a number"),
        (b'{"a": "\xff"}', r"line 2: not UTF-8"), (b"[" * 100_000, r"line 2: (nested too deep|not JSON)"),
        (b'{"submission": 3}', r"line 2, submission: must be an object \(got int\)"),
    ],
)  # fmt: skip
def test_an_unreadable_line_is_named(line, message):
    with pytest.raises(InputError, match=message):
        imported(records=[record(), line])
    with pytest.raises(InputError, match=r"contexts\.jsonl\.gz line 2"):
        imported(contexts=[context(), line])


def test_what_does_not_fit_together_is_refused():
    far, line = "CB-2026-05-24-1W", record()
    line["submission"]["round_id"] = far
    for contexts, records, *said in (
        (None, [record(), record()], "line 2, submission.model_id: named twice on one round",
         "(first at decisions.jsonl.gz line 1)"),
        (None, [line], "submission.round_id: is another round's (got 'CB-2026-05-24-1W')"),
        ([context(), context()], None, "line 2, round_id: stands twice"),
        ([{**context(), "prompt.md": 3}], None, "line 1, prompt.md: must be text (got int)"),
        ([context("final")], [record(round_id="final")], "line 1, round_id: must hold a date"),
        ([context(**{"hashes.json": '{"algorithm": "sha256", "files": {}, "files": {}}'})], None,
         "hashes.json: key 'files' stands twice"),
        ([context(**{"unknown_file.csv": "a,b\n", "briefing.html": "x"})], None,
         "line 1 (CB-2026-05-17-1W), unknown_file.csv: unknown key (allowed: round_id, briefing.md, ",
         "exit_prices.csv)", ", briefing.html: unknown key", "1 decisions without a context: their round is broken"),
    ):  # fmt: skip
        text = refused(contexts, records)
        for one in said:
            assert one in text
    # the decisions of a round that is not there are told once
    other = [record(round_id=far, agent=f"acme-{n}") for n in range(3)]
    text = refused(records=[record(), *other])
    assert text.count("no such round") == 1
    assert "line 2, round_id: a record without a context: no such round (got 'CB-2026-05-24-1W') and 2 more" in text
    empty = {**packed([context()], [record(), *other]), "contexts.jsonl.gz": b"\n"}
    with pytest.raises(InputError, match=r"^capitalbench: contexts\.jsonl\.gz: holds no round: no line"):
        import_capitalbench(empty)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"briefing.md": None}, r"a round without briefing\.md"), ({"hashes.json": "{}"}, r"hashes\.json, "),
        ({"hashes.json": '{"algorithm": "md5", "files": {}}'}, r"hashes\.json, algorithm"),
        (
            {"hashes.json": json.dumps({"algorithm": "sha256", "files": {"a/prompt.md": "0" * 64}})},
            r"a/prompt\.md: does not match its hash",
        ),
        ({"options.yaml": "options: ["}, r"options\.yaml: not YAML: .*line"),
        ({"options.yaml": "options: []"}, r"options\.yaml, options"),
        ({"options.yaml": "a: &x 1\noptions: *x"}, r"aliases \(\*name\) are not read"),
        ({"options.yaml": "!!python/object/apply:os.getcwd []"}, r"options\.yaml: not YAML"),
        ({"options.yaml": OPTIONS + OPTIONS.partition("\n")[2]}, r"an option id stands twice"),
        ({"manifest.yaml": "x: 1"}, r"manifest\.yaml, round_id"),
        (
            {"manifest.yaml": manifest("CB-2026-05-24-1W")},
            r"manifest\.yaml, round_id: is another round's|another round's",
        ),
        (
            {"briefing.md": "none", "manifest.yaml": manifest("CB-2026-05-17-1W", notes="x", created_at="'noon'")},
            r"manifest\.yaml, created_at: must be a time",
        ),
        ({"universe_trailing_returns.csv": RETURNS.replace("GOLD", "TULIPS")}, r"line 3, option_id: is none of"),
        ({"universe_trailing_returns.csv": RETURNS.replace("-0.031", "much")}, r"line 3, return_7d: must be a finite"),
        ({"universe_trailing_returns.csv": RETURNS.replace("rank_7d", "omen")}, r"unknown column 'omen'"),
        ({"universe_trailing_returns.csv": RETURNS + RETURNS.splitlines()[1]}, r"line 5, option_id: stands twice"),
        ({"universe_trailing_returns.csv": RETURNS.replace("2026-05-15", "2026-05-22")}, r"a fact from the future"),
        ({"universe_trailing_returns.csv": RETURNS.replace("2026-05-15", "Friday")}, r"must be a day"),
        (
            {"universe_trailing_returns.csv": "option_id,a\nGOLD"},
            r"universe_trailing_returns\.csv, line 2: has 1 cells",
        ),
        ({"universe_quality_evidence.json": "{}"}, r"universe_quality_evidence\.json, "),
        ({"universe_quality_evidence.json": quality().replace("GOLD", "TULIPS")}, r"rows\.option_id: is none"),
        ({"universe_quality_evidence.json": quality().replace("GOLD", "SP500")}, r"rows\.option_id: stands twice"),
    ],
)  # fmt: skip
def test_a_broken_round_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        imported([context(**changes)])


def test_all_problems_are_carried_and_the_listing_is_capped():
    records = [record(agent=f"acme-{n}", confidence=2.0) for n in range(70)]
    with pytest.raises(InputError, match="70 problems") as caught:
        imported(records=records)
    assert len(caught.value.problems) == 70
    assert str(caught.value).endswith("and 50 more")
    assert str(caught.value).count("\n") == 21


def test_keep_going_imports_what_is_good_and_counts_both():
    records = [record(), record(agent="acme-two", confidence=2.0), b"not json", record(round_id="CB-2026-05-24-1W")]
    broken = context("CB-2026-05-24-1W", **{"options.yaml": "options: []"})
    result = imported([context(), broken], records, keep_going=True)
    assert (result.report.good, result.report.bad) == (1, 3)
    listed = "\n".join(map(str, result.report.problems))
    assert "CB-2026-05-24-1W: 1 decisions without a context: their round is broken" in listed
    assert "1 decision imported, 3 left out" in result.report.lines()[0]
    bad = context(**{"hashes.json": json.dumps({"algorithm": "sha256", "files": {"prompt.md": "0" * 64}})})
    result = imported([bad], keep_going=True)  # a mismatch leaves the round out
    assert (result.decisions, result.contexts) == ((), {})


def test_missing_damaged_and_doubled_files_are_named_and_plain_ones_read_as_well():
    files = packed([context()], [record()])
    without = {name: data for name, data in files.items() if name != "decisions.jsonl.gz"}
    for given, what in (
        (without, r"decisions\.jsonl: missing \(got contexts\.jsonl\.gz\); needed"),
        ({**files, "decisions.jsonl.gz": files["decisions.jsonl.gz"][:-12]}, r"decisions\.jsonl\.gz: damaged gzip"),
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


def test_progress_is_told_and_agents_that_never_met_are_listed():
    told, other = [], "CB-2026-05-24-1W"
    imported(records=[record(), record(agent="acme-two")], progress=lambda *seen: told.append(seen))
    assert told == [("rounds", 1, 1), ("decisions", 1, 2), ("decisions", 2, 2)]
    result = imported([context(), context(other)], [record(), record(round_id=other, agent="acme-two")])
    assert result.report.never_met == (("acme-one", "acme-two"),)


@pytest.mark.parametrize(("shape", "silent"), [("option", True), ("weights-v1", True), ("weights-v3", False)])
def test_a_record_without_text_to_judge_says_so(shape, silent):
    changes = {"rationale_summary": " ", "key_risks": []}
    if shape == "weights-v1":
        changes |= {"portfolio_rationale": ""}
    result = imported(records=[record(shape, **changes)])
    assert ("text" in only(result)[0].missing) is silent
    assert result.report.no_text == (("CB-2026-05-17-1W/acme-one",) if silent else ())


def test_every_bad_row_of_a_table_is_named():
    table = RETURNS.replace("SP500,SPY,S&P 500,equity", "SP500,SPY").replace("GOLD,IAU,Gold,commodity", "GOLD,IAU")
    text = refused([context(**{"universe_trailing_returns.csv": table})])
    assert "line 2: has 12 cells (the header has 14)" in text
    assert "line 3: has 12 cells (the header has 14)" in text


@pytest.mark.parametrize("name", ["options.yaml", "manifest.yaml", "hashes.json", "universe_quality_evidence.json"])
def test_no_problem_speaks_of_the_library(name):
    wrong = {"options.yaml": "options: [{id: '', nme: 3}]", "hashes.json": '{"files": {"a": "b"}, "x": 1}'}
    wrong |= {"manifest.yaml": "created_at: 3\nexit_date: Friday\nnotes: [1]\n" + f"round_id: {'1' * 5000}\n"}
    wrong |= {"universe_quality_evidence.json": '{"x": {"y": 1}, "rows": [{"z": 1}]}'}
    text = refused([context(**{name: wrong[name]})])
    for word in (
        "keyword", "input", "permitted", "Value error", "value error", "sys.", "field required", "Field required",
    ):  # fmt: skip
        assert word not in text
