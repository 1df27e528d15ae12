"""The sentence bench: what its data hold of each sentence, and what they never hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import assay_runs as runs
import full_runs
from page_words import pages

from assaymark.claims import kind_of
from assaymark.report import PaidView, RunIndex, render_pages
from assaymark.report import study as study_pages

LEVELS = ("headline", "qualified", "no-claim")


def data_of(run) -> dict:
    book = RunIndex.of(run)
    return study_pages.bench_data(book, study_pages.bench_pages(book), "index.html")


def told(data: dict, text: int, names: list[int], score: int) -> str:
    """A text of the data with its agents and its score in their places, as the script puts them."""
    found = re.sub(r"\{([01])\}", lambda at: data["names"][names[int(at[1])]], data["texts"][text])
    return found.replace("{s}", data["scores"][score][1])


def test_every_sentence_has_a_record_and_both_directions_share_it():
    run = replace(full_runs.full(), reference_panel=())
    data, agents = data_of(run), sorted({name for v in run.verdicts for name in v.claim.subjects if "cell" not in name})
    about = [v for v in run.verdicts if kind_of(v.claim) != "cell"]
    assert len(data["records"]) == len(about)
    scores = [name for name, _ in data["scores"]]
    for verdict in about:
        places = sorted(agents.index(name) for name in verdict.claim.subjects)
        key = ".".join(map(str, (kind_of(verdict.claim)[0], scores.index(verdict.claim.dimension), *places)))
        record = data["records"][key]
        assert LEVELS[record[0]] == verdict.publication_level
        if record[0] < 2:
            sentence = told(data, record[1], record[10], scores.index(verdict.claim.dimension))
            assert sentence == verdict.claim.statement.replace("'", "’")
            assert [told(data, text, record[10], 0) for text in record[3]] == [one.text for one in verdict.conditions]


def test_an_unsupported_record_has_no_strip_of_a_difference_and_stops_at_one_gate():
    data = data_of(replace(full_runs.full(), reference_panel=()))
    stopped = [record for record in data["records"].values() if record[0] == 2]
    assert stopped
    for record in stopped:
        gates = [data["gates"][at] for at in record[5]]
        assert [gate[0] for gate in gates].count("stops") == 1
        assert gates[-1][0] == "stops", "what comes after it is not reached"
        assert all(gate[2] == 0 for gate in gates[1:4])
        assert record[2] == -1
        assert len(record) == 10


def test_a_supported_record_has_its_numbers_beside_what_they_are_compared_with():
    run = replace(full_runs.full(), reference_panel=())
    pair = next(v for v in run.verdicts if v.claim.id == runs.above("Marten", "Otter", "aggregate").id)
    found = study_pages.sentence_record(RunIndex.of(run), pair)
    agree, gap, without, length, tests = found.gates
    assert agree.line == "κ 0.51 in prose (0.46 to 0.55); 0.40 needed"
    assert gap.line.startswith("+0.25 (0.18 to 0.32); above 0 needed; without judges of their makers p < .001")
    assert without.line == "+0.10, +0.10, +0.10; all above 0 needed"
    assert length.state == ""
    assert tests.line == "no limit was set for the judges’ own tests"
    assert [gate.strip is not None for gate in found.gates] == [True, True, True, True, False]
    assert gap.strip.points == ((0.246, 0.176, 0.316),)


def test_a_rule_that_was_not_preregistered_has_its_own_tally_and_never_names_who_leads():
    run = runs.realistic(reference_panel=())
    data = data_of(run)
    assert data["rules"][0][1::2] == ["the preregistered rule", [31, 5, 79]]
    assert sum(data["rules"][2][3]) == 115
    firsts = {record[6] for key, record in data["records"].items() if key.startswith("f") and record[0] == 2}
    assert firsts == {"222"}
    # One that cannot reject is there, and supports nothing.
    found = tuple(
        replace(m, detail=m.detail | {"p_sign_flip": 0.0625}) if m.name == "contrast" else m for m in run.measurements
    )
    data = data_of(replace(run, measurements=found))
    _, words, why, tally = data["rules"][-1]
    assert words == "ValueBlindBench’s sign flip with Holm"
    assert why.startswith("With five clusters this test cannot reject: p = .062 at least")
    assert tally == [0, 0, 115]
    assert all(record[6].endswith("3") for record in data["records"].values())


def test_more_than_400_sentences_have_a_bench_for_each_score():
    made = render_pages(replace(runs.large(), reference_panel=()))
    datas = [in_page(page) for path, page in made.items() if path == "index.html" or path.startswith("sentences-")]
    found = list(map(json.loads, datas))
    assert max(len(data.encode()) for data in datas) <= 40_000
    for one in found:
        here = {str(at) for at, page in enumerate(one["pages"]) if not page}
        assert {key.split(".")[1] for key in one["records"]} == here
    assert (len(found), sum(len(one["records"]) for one in found)) == (7, 430)


def in_page(page: str) -> str:
    (data,) = re.findall(r'id="b-data">(.*?)</script>', page, flags=re.S)
    return data


def test_only_built_in_judges_turn_copying_off_and_hostile_names_cannot_end_the_data():
    assert data_of(runs.realistic(reference_panel=()))["copy"]
    page = pages("realistic")["index.html"]
    assert "disabled>Nothing to copy" in page
    assert json.loads(in_page(page))["copy"] == ""
    data = in_page(pages("hostile")["index.html"])
    assert "<" not in data
    assert any("onload=alert" in name for name in json.loads(data)["names"])


# --- the finding and the limits ---------------------------------------------------------------------------------------


def test_the_finding_is_the_first_rank_else_a_pair_else_why_there_is_none():
    run = runs.realistic(reference_panel=())
    assert study_pages.top_finding(RunIndex.of(run)).title == "Marten ranks first of the 5 agents on the overall score."
    pairs = tuple(v for v in run.verdicts if kind_of(v.claim) == "pair")
    assert (
        study_pages.top_finding(RunIndex.of(replace(run, verdicts=pairs))).title
        == "Marten scores above Badger on the overall score."
    )
    none = study_pages.top_finding(RunIndex.of(replace(runs.withheld(), reference_panel=())))
    assert none.verdict is None
    assert none.title == "No sentence is supported by this study yet"
    assert "κ 0.11" in none.also
    assert "Rewrite the anchors" in none.also


def test_pairs_that_no_test_can_reach_are_not_called_close():
    run = runs.realistic(reference_panel=())
    stopped = [v for v in run.verdicts if v.pair_state is not None and v.publication_level == "no-claim"]
    few = tuple(replace(v, pair_state="cannot-be-tested") for v in stopped)
    titles = {title: measured for title, measured, *_ in study_pages.limits_of(RunIndex.of(replace(run, verdicts=few)))}
    assert "Some agents are too close" not in titles
    assert titles["Pairs of agents cannot be tested"].startswith("Too few common clusters; the study has")


def test_limits_are_in_order_of_what_they_affect_and_have_a_price():
    run = runs.realistic(reference_panel=())
    found = study_pages.limits_of(RunIndex.of(run))
    affected = [sum(map(int, re.findall(r"\d+", effect))) for _, _, effect, _ in found]
    assert affected == sorted(affected, reverse=True)
    stopped = sum(v.publication_level == "no-claim" for v in run.verdicts)
    assert sum(int(n) for _, _, effect, _ in found for n in re.findall(r"Stops (\d+)", effect)) == stopped
    assert any("calls" in fix and "USD" not in fix for *_, fix in found)
    paid = PaidView(model="a/b", calls=1000, input_tokens=1, cached_tokens=None, output_tokens=1, usd=9.0)
    priced = {title: fix for title, _, _, fix in study_pages.limits_of(RunIndex.of(replace(run, paid=(paid,))))}
    assert priced["Some rankings rest on one judge family"] == (
        "Add a judge from a maker that built no agent: 1,250 calls, about 11.25 USD. No guarantee."
    )
